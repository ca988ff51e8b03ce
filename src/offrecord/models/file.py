"""Model files: the chains a promise is for, where they come from, and how they were tested."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr

from offrecord.errors import InputError
from offrecord.files import read_json, write_text
from offrecord.models.base import Section
from offrecord.models.chain import MarkovChain
from offrecord.models.evidence import Dependence, Verdict
from offrecord.models.posterior import PosteriorForm
from offrecord.models.promise import KnownChains, ListForm, Promise


class Origin(Section):
    """Where a model comes from, as far as its use depends on it.

    column: whose values it is about. order: what ordered its records. step: the distance of one
    record from the next, None where neighbours counted as one step apart. spacing: their median
    distance, in seconds or numbers, where there is no step. zone: the time zone of order values.
    bins: where numbers were cut into values.
    others: the label of all values that were too rare to be learned. table: what the records are
    called. chains, records: how many were counted. lone_cells: transitions that one chain alone
    shows. distance: of the records counted from private ones, in steps, where the table itself
    holds private records. dependence: of neighbouring chains on each other, None where chance gives
    as much. seen: the name under which the key's folder keeps which records they were.
    """

    column: str
    order: Literal["time", "integer", "row"]
    step: str | None = None
    spacing: float | None = None
    zone: str | None = None
    bins: list[float] | None = None
    others: str | None = None
    table: str | None = None
    chains: int = Field(default=1, ge=1)
    records: int = Field(default=0, ge=0)
    lone_cells: int = Field(default=0, ge=0)
    distance: int | None = Field(default=None, ge=1)
    dependence: Dependence | None = None
    seen: str | None = None
    #: Which records were counted, as long as they are in memory; in no file.
    _counted: Any = PrivateAttr(default=None)


FORMAT = "offrecord-model"
VERSION = 2

#: The kinds of models there are: a kind is a file with its `Promise` and its form, named here.
PromiseForm = Annotated[ListForm | PosteriorForm, Field(discriminator="kind")]


class ModelForm(Section):
    """A whole model file."""

    format: Literal["offrecord-model"] = "offrecord-model"
    version: Literal[2] = 2
    model: PromiseForm
    origin: Origin | None = None
    verdicts: list[Verdict] = Field(default=[])


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds.

    promise: the chains. origin: what they were learned from. verdicts: one for each ε tested.
    """

    promise: Promise
    origin: Origin | None = None
    verdicts: tuple[Verdict, ...] = ()

    @property
    def only_chain(self) -> MarkovChain:
        """The single known chain; InputError if there are several, or counts."""
        if not isinstance(self.promise, KnownChains) or len(self.promise.chains) > 1:
            raise InputError("the model is not one known chain: read it with load_model")
        return self.promise.chains[0]

    def verdict(self, epsilon: float) -> Verdict | None:
        """The verdict for this ε, if it was tested."""
        return next((one for one in self.verdicts if one.epsilon == epsilon), None)

    def to_dict(self) -> dict[str, Any]:
        """Content of a model file."""
        form = self.promise.form()
        return ModelForm(model=form, origin=self.origin, verdicts=[*self.verdicts]).to_dict()

    @classmethod
    def from_dict(cls, content: Any) -> Model:
        """The model of a file's content; InputError for anything else."""
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError(f'not a model file: "format" must be "{FORMAT}"')
        # before the fields, which other versions have not: the message says what to do
        if content.get("version") != VERSION:
            raise InputError(
                f"model file version must be {VERSION}, got {content.get('version')!r:.40}:"
                " fit again"
            )
        known = ModelForm.of(content, "model file")
        return cls(known.model.promise(), known.origin, tuple(known.verdicts))

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a model file; complete or absent, and never over an existing one without force."""
        entries = [
            f" {json.dumps(key)}: {json.dumps(entry, allow_nan=False)}"
            for key, entry in self.to_dict().items()
        ]
        write_text(path, "{\n" + ",\n".join(entries) + "\n}\n", force=force)


def load_model(path: str | Path) -> Model:
    """Read a model file.

    Args:
        path: of the file.

    Returns:
        The chains with what is known about them.

    Raises:
        InputError: for a file that is missing, damaged, of an earlier version or no model file.
    """
    content = read_json(path)
    try:
        return Model.from_dict(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
