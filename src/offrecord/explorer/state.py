"""What can be asked: one state of the explorer, with a limit on every field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from offrecord.errors import InputError
from offrecord.mechanisms import MECHANISMS, mechanism_named
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import checked_probability, whole_number
from offrecord.theory.listed import listed_records
from offrecord.theory.problem import Problem, budget

MOST_RECORDS = 1_000
LARGEST_EPSILON = 20.0
MOST_STATES = 16  #: values of an uploaded model, lifted to its order
LARGEST_MODEL = 1 << 20  #: bytes of an uploaded model file
MOST_BUDGETS = 8  #: points of a curve in one request
_RAREST = 1e-6  # step from one value to the other
_LONGEST_LABEL = 64  # each stands in every row of an answer
_LONGEST_LIST = 400  # characters that name private records
_SEEDS = 2**31 - 1
_DEEPEST = 24  # lists and objects within each other
_RANGE = r" *[0-9]{1,9}(-[0-9]{1,9})? *"
_LIST = f"^{_RANGE}(,{_RANGE})*$"


class FieldError(InputError):
    """What is wrong with one field; None: with all of them together."""

    def __init__(self, field: str | None, message: str) -> None:
        super().__init__(message)
        self.field = field


def _probability(name: str) -> Callable[[Any], float]:
    def checked(value: Any) -> float:
        chance = checked_probability(name, value)
        if chance < _RAREST:
            raise InputError(f"{name} must be from {_RAREST:g} to 1 here, got {name}={chance}")
        return chance

    return checked


def _budget(value: Any) -> float:
    epsilon = budget(value)
    if epsilon > LARGEST_EPSILON:
        raise InputError(
            f"epsilon must be from 0 to {LARGEST_EPSILON:g} here, got epsilon={epsilon:g}"
        )
    return epsilon


def _whole(name: str, least: int, most: int) -> Callable[[Any], int]:
    def checked(value: Any) -> int:
        value = value if not isinstance(value, float) or value % 1 else int(value)  # JSON's 10.0
        number = whole_number(name, value)
        if not least <= number <= most:
            got = number if abs(number) < 10**15 else "a huge number"
            more = "; offrecord design takes more" if name == "n" and number > most else ""
            raise InputError(f"{name} must be from {least} to {most} here, got {name}={got}{more}")
        return number

    return checked


def _listed(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"--private must be text such as 3,7 or 10-12, got {value!r:.60}")
    if len(value) > _LONGEST_LIST:
        raise InputError(f"--private must have at most {_LONGEST_LIST} characters here")
    if re.fullmatch(_LIST, value) is None:
        raise InputError(f"--private must be records such as 3,7 or 10-12, got {value!r:.60}")
    return value


def _named(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {value!r:.60}")
    mechanism_named(value[:60])
    return value


def _content(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InputError('not a model file: "format" must be "offrecord-model"')
    if _is_deep(value):
        raise InputError("not a model file: lists within lists within lists without end")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError("not a model file: it holds text that is no Unicode") from None
    return value


def _is_deep(content: Any) -> bool:
    """Whether lists and objects stand in each other further than in any model file."""
    level = [content]
    for _ in range(_DEEPEST):
        inner = [one.values() if isinstance(one, dict) else one for one in level]
        level = [one for some in inner for one in some if isinstance(one, (dict, list))]
        if not level:
            return False
    return True


class Asked(BaseModel):
    """A state of the explorer."""

    # Limits stand before the checks, which come first all the same: so the description of the API
    # has them, and people are told in the command line's words.

    model_config = ConfigDict(frozen=True, extra="forbid")

    alpha: Annotated[
        float,
        Field(ge=_RAREST, le=1, description="P(0→1) of a chain with two values."),
        BeforeValidator(_probability("alpha")),
    ] = 0.01
    beta: Annotated[
        float,
        Field(ge=_RAREST, le=1, description="P(1→0)."),
        BeforeValidator(_probability("beta")),
    ] = 0.8
    model: Annotated[
        dict[str, Any] | None,
        Field(
            description="The content of a model file, instead of alpha and beta: at most"
            f" {MOST_STATES} values or tuples of them."
        ),
        BeforeValidator(_content),
    ] = None
    n: Annotated[
        int,
        Field(ge=2, le=MOST_RECORDS, description="Number of records."),
        BeforeValidator(_whole("n", 2, MOST_RECORDS)),
    ] = 10
    private: Annotated[
        str,
        Field(
            max_length=_LONGEST_LIST,
            description="Private records, counted from 1: 3,7 or 10-12.",
            json_schema_extra={"pattern": _LIST},
        ),
        BeforeValidator(_listed),
    ] = "1"
    epsilon: Annotated[
        float,
        Field(ge=0, le=LARGEST_EPSILON, description="Privacy budget ε."),
        BeforeValidator(_budget),
    ] = 1.0
    mechanism: Annotated[
        str,
        Field(description="Which mechanism decides.", json_schema_extra={"enum": list(MECHANISMS)}),
        BeforeValidator(_named),
    ] = "best-local"
    about: Annotated[
        int,
        Field(
            ge=1,
            le=MOST_RECORDS,
            description="Which secret (run of private records) is looked at; the last if there are"
            " fewer.",
        ),
        BeforeValidator(_whole("about", 1, MOST_RECORDS)),
    ] = 1
    seed: Annotated[
        int,
        Field(ge=0, le=_SEEDS, description="Which sample is drawn."),
        BeforeValidator(_whole("seed", 0, _SEEDS)),
    ] = 1

    @property
    def chain(self) -> MarkovChain:
        """The chain that is asked about; FieldError for a model that is none."""
        if self.model is None:
            return MarkovChain.binary(self.alpha, self.beta)
        try:
            chain = MarkovChain.from_dict(self.model)
        except InputError as error:
            raise FieldError("model", str(error)) from None
        if chain.lifted.k > MOST_STATES:
            raise FieldError(
                "model",
                f"the model must have at most {MOST_STATES} values or tuples of them here, got"
                f" {chain.lifted.k}; offrecord design takes more",
            )
        if max(len(str(label)) for label in chain.labels) > _LONGEST_LABEL:
            raise FieldError(
                "model", f"the model's labels must have at most {_LONGEST_LABEL} characters here"
            )
        return chain

    def problem(self) -> Problem:
        """The problem, as `offrecord design` makes it; FieldError for what cannot be one."""
        chain = self.chain
        try:
            private = listed_records(self.private, self.n)
        except InputError as error:
            raise FieldError("private", str(error)) from None
        share = 1.0 if chain.learned is None else chain.learned.share
        try:
            return Problem(chain, self.n, private, share * self.epsilon)
        except InputError as error:
            raise FieldError(_about(str(error)), str(error)) from None


def _about(message: str) -> str:
    """The field that a problem's message begins with."""
    first = message.split(maxsplit=1)[0]
    return first if first in ("n", "private", "epsilon") else "model"


class AskedPolicy(Asked):
    """A state, and whether its policy is asked for while somebody waits."""

    soon: Annotated[
        bool,
        Field(
            strict=True,
            description="Answer at once: where the mechanism takes longer, by what it begins with,"
            " which is private too and releases a little less; `final` says whether that was so.",
        ),
    ] = False


class AskedCurve(Asked):
    """A state, and the budgets at which the utility of its mechanism is asked for."""

    epsilons: Annotated[
        list[Annotated[float, Field(ge=0, le=LARGEST_EPSILON), BeforeValidator(_budget)]],
        Field(min_length=1, max_length=MOST_BUDGETS, description="Budgets on the curve."),
    ]
