"""What can be asked: one state of the explorer, with a limit on every field."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from offrecord.errors import InputError, in_python
from offrecord.mechanisms import MECHANISMS
from offrecord.models.chain import MarkovChain
from offrecord.models.file import Model
from offrecord.theory.problem import Problem, listed_records

MOST_RECORDS = 300
LARGEST_EPSILON = 20.0
MOST_CONTEXTS = 8  #: of a model file; designs of every mechanism then take at most a few seconds
LARGEST_MODEL = 1 << 20  #: bytes of a model file
_RAREST = 1e-6  # step from one value to the other
_LONGEST_LABEL = 64
_RANGE = r" *[0-9]{1,9}(-[0-9]{1,9})? *"


class FieldError(InputError):
    """What is wrong with one field; None: with all of them together."""

    def __init__(self, field: str | None, message: str) -> None:
        super().__init__(message)
        self.field = field


_Chance = Annotated[float, Field(ge=_RAREST, le=1)]
_Budget = Annotated[float, Field(ge=0, le=LARGEST_EPSILON)]


class Asked(BaseModel):
    """A state of the explorer.

    alpha, beta: P(0→1) and P(1→0) of a chain with two values. model: the content of a model file
    instead. n: number of records. private: which are private, such as 3,7 or 10-12. about: which
    private run is looked at, the last if there are fewer. seed: which sample is drawn.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    alpha: _Chance = 0.01
    beta: _Chance = 0.8
    model: dict[str, Any] | None = None
    n: Annotated[int, Field(ge=2, le=MOST_RECORDS)] = 10
    private: Annotated[str, Field(max_length=400, pattern=f"^{_RANGE}(,{_RANGE})*$")] = "1"
    epsilon: _Budget = 1.0
    mechanism: Annotated[str, Field(json_schema_extra={"enum": list(MECHANISMS)})] = "best-local"
    about: Annotated[int, Field(ge=1, le=MOST_RECORDS)] = 1
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1

    @property
    def chain(self) -> MarkovChain:
        """The chain; FieldError for a model that is none."""
        if self.model is None:
            return MarkovChain.binary(self.alpha, self.beta)
        try:
            json.dumps(self.model, ensure_ascii=False).encode()  # as the key of a design needs it
            chain = Model.from_dict(self.model).only_chain
        except UnicodeEncodeError:
            why = "not a model file: it holds text that is not Unicode"
            raise FieldError("model", why) from None
        except InputError as error:
            raise FieldError("model", str(error)) from None
        contexts = chain.k**chain.order
        if contexts > MOST_CONTEXTS:
            most = f"at most {MOST_CONTEXTS} values or contexts here"
            why = f"the model must have {most}, got {contexts}; offrecord design takes more"
            raise FieldError("model", why)
        if max(len(str(label)) for label in chain.labels) > _LONGEST_LABEL:
            raise FieldError("model", f"labels must have at most {_LONGEST_LABEL} characters here")
        return chain

    def problem(self) -> Problem:
        """The problem, as `offrecord design` makes it; FieldError for what cannot be one."""
        chain = self.chain
        try:
            private = listed_records(self.private, self.n)
        except InputError as error:
            raise FieldError("private", str(error)) from None
        try:
            return Problem(chain, self.n, private, self.epsilon)
        except InputError as error:
            first = in_python(str(error)).split(maxsplit=1)[0]
            known = first in ("n", "private", "epsilon")
            raise FieldError(first if known else "model", str(error)) from None

    @property
    def key(self) -> str:
        """All that a design depends on."""
        return self.model_dump_json(exclude={"about", "seed", "mechanisms"})


class AskedCurve(Asked):
    """A state, and the mechanisms whose curves over ε are asked for."""

    mechanisms: Annotated[list[str], Field(min_length=1, max_length=len(MECHANISMS))]
