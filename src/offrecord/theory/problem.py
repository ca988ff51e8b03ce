"""Problem: which records are private, under which chain, within which budget."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from offrecord.errors import InputError
from offrecord.models.box import Box
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import whole_number
from offrecord.theory.side import Side

PROTECT = ("run", "each")
MAX_RECORDS = 10**15


class Secret(NamedTuple):
    """Neighbouring private records that are protected as one: first … last, counted from 1."""

    first: int
    last: int


@dataclass(frozen=True, eq=False, init=False)
class Problem:
    """n records of a chain, of which `private` (positions from 1) stay within e^epsilon.

    No output is more than e^epsilon times likelier under one value of a secret than another.
    protect: "run" makes each contiguous private run one secret, "each" every private record its own
    (F9). models: a set of models for all of which that is promised; without it the chain's own, and
    if it has none the chain alone.
    """

    chain: MarkovChain
    n: int
    private: tuple[int, ...]
    epsilon: float
    protect: str

    def __init__(
        self,
        chain: MarkovChain,
        n: int,
        private: int | Iterable[int],
        epsilon: float,
        protect: str = "run",
        models: Box | None = None,
    ) -> None:
        if not isinstance(chain, MarkovChain):
            raise InputError(f"chain must be a MarkovChain, got {type(chain).__name__}")
        n = whole_number("n", n)
        if not 2 <= n <= MAX_RECORDS:
            raise InputError(f"n must be from 2 to {MAX_RECORDS}, got n={n}")
        if chain.length is not None and n != chain.length:
            raise InputError(
                f"n must be {chain.length}, one more than the chain's kernels, got n={n}"
            )
        if n < chain.order + 1:
            raise InputError(f"n must exceed the chain's order {chain.order}, got n={n}")
        if not isinstance(protect, str) or protect not in PROTECT:
            raise InputError(f'protect must be "run" or "each", got {protect!r}')
        object.__setattr__(self, "chain", chain if models is None else chain.with_box(models))
        if self.chain.box is not None and self.chain.box.since > 1:
            raise InputError(
                f"the set of models holds from record {self.chain.box.since} of a chain on, which"
                " tables know what to do with; take the chain alone (models=None, --exact-model)"
            )
        object.__setattr__(self, "n", n)
        object.__setattr__(self, "private", _private(private, n))
        object.__setattr__(self, "epsilon", budget(epsilon))
        object.__setattr__(self, "protect", protect)

    @property
    def models(self) -> Box | None:
        """The set of models that the promise is for; None: the chain alone."""
        return self.chain.box

    @cached_property
    def corner(self) -> MarkovChain | None:
        """The chain whose best design is the best for all models: the chain itself where it is the
        only one, else the corner of a box for two values at which values stay longest (R2). None
        where there is no such chain.
        """
        box = self.models
        if box is None:
            return self.chain
        shape = box.k, box.order, box.start, box.by_step
        if shape != (2, 1, "stationary", None) or not box.is_its_own_reverse:
            return None
        (_, alpha), (beta, _) = box.lifted[0].low
        return MarkovChain.binary(float(alpha), float(beta)) if min(alpha, beta) > 0 else None

    @cached_property
    def secrets(self) -> list[Secret]:
        """What is protected: runs of private records, or each private record."""
        if self.protect == "each":
            return [Secret(p, p) for p in self.private]
        secrets: list[Secret] = []
        for p in self.private:
            if secrets and secrets[-1].last == p - 1:
                secrets[-1] = Secret(secrets[-1].first, p)
            else:
                secrets.append(Secret(p, p))
        return secrets

    def sides(self, secret: Secret) -> tuple[Side, Side]:
        """The records to the left and to the right of a secret."""
        known = self._sides.get(secret)
        if known is None:
            core, run = self.core(secret), secret.last > secret.first
            place = secret.first - core.first
            left = Side(self.chain, core.first, -1, core.first - 1, run, place)
            right = Side(self.chain, core.last, 1, self.n - core.last, run, place)
            known = self._sides[secret] = (left, right)
        return known

    def core(self, secret: Secret) -> Secret:
        """The records redacted with a secret: itself, and for order m the m − 1 before it (F8).

        Or the first m, where fewer come before it.
        """
        first = max(secret.first - self.chain.order + 1, 1)
        return Secret(first, max(secret.last, first + self.chain.order - 1))

    @cached_property
    def _sides(self) -> dict[Secret, tuple[Side, Side]]:
        return {}

    def with_epsilon(self, epsilon: float) -> Problem:
        """The same problem with another budget."""
        return Problem(self.chain, self.n, self.private, epsilon, self.protect)

    def __repr__(self) -> str:
        shown = list(self.private[:5]) + (["…"] if len(self.private) > 5 else [])
        private = ", ".join(map(str, shown))
        return (
            f"Problem({self.chain!r}, n={self.n}, private=[{private}], epsilon={self.epsilon!r},"
            f" protect={self.protect!r})"
        )


def budget(epsilon: Any, name: str = "epsilon") -> float:
    """A privacy budget as a float; InputError unless it is a finite number of at least 0."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float, np.integer, np.floating)):
        raise InputError(f"{name} must be a number, got {name}={epsilon!r}")
    try:
        value = float(epsilon)
    except OverflowError:
        value = math.inf
    if not (math.isfinite(value) and value >= 0):
        raise InputError(f"{name} must be finite and at least 0, got {name}={value}")
    return value


def _private(private: int | Iterable[int], n: int) -> tuple[int, ...]:
    listed: Iterable[Any] = (
        private if isinstance(private, Iterable) and not isinstance(private, str) else [private]
    )
    positions = sorted(whole_number("private", p) for p in listed)
    if not positions:
        raise InputError("private must name at least one record")
    for p in (positions[0], positions[-1]):
        if not 1 <= p <= n:
            hint = " (records count from 1)" if p == 0 else ""
            raise InputError(f"private must be records from 1 to {n}, got {p}{hint}")
    for p, following in pairwise(positions):
        if p == following:
            raise InputError(f"private must name each record once, got {p} twice")
    return tuple(positions)
