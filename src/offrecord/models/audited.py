"""What an audit of a model's promise came to, as model files and certificates say it."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

from offrecord.errors import InputError

Verdict = Literal["good", "doubtful", "unfit"]

GOOD = 1.25  #: times what was promised, up to which a model is good
DOUBTFUL = 2.0  #: and up to which it is doubtful
VERDICTS: tuple[Verdict, ...] = ("good", "doubtful", "unfit")
_DIGITS = 3  # of odds, in files
_OFF = 0.011  # by how much a ratio of two such numbers may be off
_MOST = 700.0  # that e can be raised to


@dataclass(frozen=True)
class Audited:
    """Designs for several ε, made without part of the data, and counted in that part.

    verdict: "good" if the odds are at most GOOD times what was promised or within chance,
    "doubtful" up to DOUBTFUL times, else "unfit". odds: as counted where they exceed the promise
    most, infinite where something was never seen with the other value; at_least: their lower limit,
    promised: e^epsilon there. kind, where: what tells, and of what. chance: whether chance does as
    much. held_back: what was. looked_at: the kinds of findings. closed: every ε for which too
    little is released to look at.
    """

    verdict: Verdict
    odds: float
    at_least: float
    promised: float
    epsilon: float
    kind: str
    where: str
    chance: bool
    held_back: str
    looked_at: tuple[str, ...]
    closed: tuple[float, ...]

    @property
    def excess(self) -> float:
        """How many times what was promised the odds are at least."""
        return self.at_least / self.promised

    @property
    def short(self) -> str:
        """The verdict and its number, in few words."""
        if self.excess <= 1:
            return f"{self.verdict}: no odds beyond the {self.promised:.3g} to 1 promised"
        chance = ", within chance" if self.chance else ""
        return (
            f"{self.verdict}: odds of at least {self.at_least:.3g} to 1 where"
            f" {self.promised:.3g} were promised{chance}"
        )

    def to_dict(self) -> dict[str, Any]:
        """What files hold: few digits, and no count, which would tell of single records."""
        return {one.name: rounded(getattr(self, one.name)) for one in fields(Audited)}

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """From a file; InputError for anything else."""
        names = [one.name for one in fields(Audited)]
        if not isinstance(content, Mapping) or set(content) != set(names):
            raise InputError(f'"audit" must hold {", ".join(names)}, and nothing else')
        for name, kind in _KINDS.items():
            if not isinstance(content[name], kind):
                raise InputError(f'"{name}" in "audit" is not what it should be')
        if content["verdict"] not in VERDICTS:
            raise InputError(f'"verdict" in "audit" must be one of {", ".join(VERDICTS)}')
        numbers = {name: _number(name, content[name]) for name in _NUMBERS}
        listed = {
            "looked_at": tuple(map(str, content["looked_at"])),
            "closed": tuple(_number("closed", one) for one in content["closed"]),
        }
        found = cls(**{**content, **numbers, **listed})
        found._check_verdict()
        return found

    def _check_verdict(self) -> None:
        """InputError unless the verdict is that on its own numbers, as far as few digits tell."""
        least, most = (
            verdict_on(self.excess * off, chance=self.chance) for off in (1 - _OFF, 1 + _OFF)
        )
        if not VERDICTS.index(least) <= VERDICTS.index(self.verdict) <= VERDICTS.index(most):
            raise InputError(f'"verdict" in "audit" is {self.verdict}, but its numbers say {least}')
        if abs(self.promised / math.exp(min(self.epsilon, _MOST)) - 1) > _OFF:
            raise InputError('"promised" in "audit" must be e to the power of its "epsilon"')


def verdict_on(excess: float, *, chance: bool) -> Verdict:
    """One word for odds that are at least `excess` times what was promised."""
    if chance or excess <= GOOD:
        return "good"
    return "doubtful" if excess <= DOUBTFUL else "unfit"


_NUMBERS = ("odds", "at_least", "promised", "epsilon")
_KINDS: dict[str, type | tuple[type, ...]] = {
    "verdict": str,
    "kind": str,
    "where": str,
    "chance": bool,
    "held_back": str,
    "looked_at": (list, tuple),
    "closed": (list, tuple),
}


def rounded(value: Any) -> Any:
    """Numbers with few digits, infinity as text, tuples as lists; anything else as it is."""
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, float):
        return value
    return "inf" if math.isinf(value) else float(f"{value:.{_DIGITS}g}")


def _number(name: str, value: Any) -> float:
    if value == "inf" and name == "odds":
        return math.inf
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # whole numbers may be too large for a float
    if not number or not 0 < value <= sys.float_info.max:
        raise InputError(f'"{name}" in "audit" must be a positive number')
    return float(value)
