"""Model files: the chains a promise is for, where they come from, and how they were tested."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from offrecord.errors import InputError
from offrecord.files import read_json, write_text
from offrecord.models.chain import MarkovChain
from offrecord.models.known import KnownChains
from offrecord.models.members import PLACE_COUNTS, PlaceKind, Places
from offrecord.models.origin import Content, Origin, Verdict
from offrecord.models.posterior import Posterior
from offrecord.models.promise import Promise

FORMAT = "offrecord-model"
VERSION = 2
_MOST_LABELS = 1024
_Content = TypeVar("_Content", bound=BaseModel)


class ChainContent(Content):
    """One known chain. transition: nested lists, the next record's value last."""

    kind: Literal["chain"]
    labels: list[str | bool | int | float] = Field(max_length=_MOST_LABELS)
    order: int = 1
    transition: list[Any]
    start: list[Any] | None = None

    def chain(self) -> MarkovChain:
        """The chain; InputError if it cannot be one."""
        return MarkovChain(self.transition, self.start, self.labels, self.order)


class ListContent(Content):
    """A list of known chains, every one of which keeps the promise."""

    kind: Literal["chains"]
    chains: list[ChainContent] = Field(min_length=1)

    def promise(self) -> KnownChains:
        """The list; InputError if chains do not belong together."""
        return KnownChains([one.chain() for one in self.chains])


class PlacesContent(Content):
    """What kernels depend on besides the context."""

    kind: PlaceKind
    count: int = Field(ge=2, le=10**6)
    zone: str | None = None

    def places(self) -> Places:
        """The places; InputError if their number does not fit their kind."""
        if PLACE_COUNTS.get(self.kind, self.count) != self.count:
            raise InputError(f"places of kind {self.kind} are {PLACE_COUNTS[self.kind]}")
        return Places(self.kind, self.count, self.zone)


class PosteriorContent(Content):
    """Plausible chains by counts; see `Posterior`."""

    kind: Literal["posterior"]
    labels: list[str | bool | int | float] = Field(max_length=_MOST_LABELS)
    order: int
    coverage: float
    prior: Literal["1/k"]
    kappa: float | None
    counts: list[list[int]]
    places: PlacesContent | None
    place_kappa: float | None
    place_counts: list[list[list[int]]] | None
    first_counts: list[int] | None

    def promise(self) -> Posterior:
        """The posterior; InputError if the counts cannot be some."""
        return Posterior(
            self.counts,
            self.order,
            self.labels,
            self.coverage,
            kappa=self.kappa,
            places=None if self.places is None else self.places.places(),
            place_counts=self.place_counts,
            place_kappa=self.place_kappa,
            first_counts=self.first_counts,
        )


PromiseContent = Annotated[ListContent | PosteriorContent, Field(discriminator="kind")]


class ModelContent(Content):
    """A whole model file."""

    format: Literal["offrecord-model"]
    version: Literal[2]
    model: PromiseContent
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
        return {
            "format": FORMAT,
            "version": VERSION,
            "model": self.promise.to_dict(),
            "origin": None if self.origin is None else self.origin.model_dump(),
            "verdicts": [one.model_dump() for one in self.verdicts],
        }

    @classmethod
    def from_dict(cls, content: Any) -> Model:
        """The model of a file's content; InputError for anything else."""
        if isinstance(content, dict) and content.get("format") == FORMAT:
            if content.get("version") != VERSION:
                raise InputError(
                    f"model file version must be {VERSION}, got {content.get('version')!r:.40}:"
                    " fit again"
                )
        elif not isinstance(content, dict) or "format" not in content:
            raise InputError(f'not a model file: "format" must be "{FORMAT}"')
        known = parsed(ModelContent, content, "model file")
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


def promise_from_dict(content: Any) -> Promise:
    """The promise of `Promise.to_dict`; InputError for anything else."""
    adapter: TypeAdapter[ListContent | PosteriorContent] = TypeAdapter(PromiseContent)
    try:
        return adapter.validate_python(content).promise()
    except ValidationError as error:
        raise InputError(f"model: {first_problem(error)}") from None


def parsed(kind: type[_Content], content: Any, what: str) -> _Content:
    """The content as a pydantic model; InputError in one line for what it does not take."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{what}: {first_problem(error)}") from None


def first_problem(error: ValidationError) -> str:
    """The first thing that is wrong, in one line."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f'"{where[:80]}": {first["msg"]}' if where else str(first["msg"])
