"""Problem: which records are private, under which chains, within which budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from offrecord.errors import InputError
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import whole_number
from offrecord.models.members import Members
from offrecord.models.posterior import Posterior
from offrecord.models.promise import ACCEPTANCE, KnownChains, Promise

PROTECT = ("run", "each")
MAX_PRIVATE = 1_000_000  # records that a person lists
MAX_RECORDS = 10**7  # a matrix of two values is then 160 MB
_SEED = b"offrecord problem"  # leakage of a problem is the same in every run


class Secret(NamedTuple):
    """Neighbouring private records that are protected as one: first … last, counted from 1."""

    first: int
    last: int


@dataclass(frozen=True, eq=False, init=False)
class Problem:
    """n records of a chain, of which `private` (positions from 1) stay within e^epsilon.

    No output is more than e^epsilon times likelier under one value of a secret than another.
    protect: "run" makes each contiguous private run one secret, "each" every private record its own
    (F9). promise: for which chains that holds: without models for `chain` alone, for every one of
    a list, or for a share of those a posterior draws (coverage, 0.99 or 0.95, if not its own).
    Utility is computed at `chain`.
    """

    chain: MarkovChain
    n: int
    private: tuple[int, ...]
    epsilon: float
    protect: str
    promise: Promise

    def __init__(
        self,
        chain: MarkovChain,
        n: int,
        private: int | Iterable[int],
        epsilon: float,
        protect: str = "run",
        models: Sequence[MarkovChain] | Promise | None = None,
        coverage: float | None = None,
    ) -> None:
        if not isinstance(chain, MarkovChain):
            raise InputError(f"chain must be a MarkovChain, got {type(chain).__name__}")
        n = _checked_length(n, chain)
        if not isinstance(protect, str) or protect not in PROTECT:
            raise InputError(f'--protect must be "run" or "each", got {protect!r}')
        self.__dict__.update(
            chain=chain,
            n=n,
            private=_private(private, n),
            epsilon=budget(epsilon),
            protect=protect,
            promise=_promise(chain, models, coverage),
        )

    @property
    def is_for_one_chain(self) -> bool:
        """Whether ε is promised for `chain` alone."""
        return isinstance(self.promise, KnownChains) and self.promise.chains == (self.chain,)

    @cached_property
    def members(self) -> Members:
        """The chains that leakage is computed for, with a place for each record if not stationary.

        Of a posterior the draws of its acceptance rule, the same in every run.
        """
        if isinstance(self.promise, KnownChains):
            return self.promise.of_length(self.n)
        rule = self.promise.acceptance
        return self.promise.members(0 if rule is None else rule.drawn, _SEED)

    @cached_property
    def secrets(self) -> list[Secret]:
        """What is protected: runs of private records, or each private record."""
        if self.protect == "each":
            return [Secret(p, p) for p in self.private]
        private = np.array(self.private)
        # a run ends where the next private record is not the next record
        ends = np.flatnonzero(np.diff(private) > 1)
        first, last = private[np.append(0, ends + 1)], private[np.append(ends, -1)]
        return [Secret(*run) for run in zip(first.tolist(), last.tolist(), strict=True)]

    def with_epsilon(self, epsilon: float) -> Problem:
        """The same problem with another budget.

        Args:
            epsilon: the budget.

        Returns:
            A problem that shares the drawn members.

        Raises:
            InputError: For what is no budget.
        """
        return self._with(epsilon=budget(epsilon))

    def about(self, private: Iterable[int]) -> Problem:
        """The same problem about some private records only.

        Args:
            private: their positions, from 1.

        Returns:
            A problem that shares the drawn members.
        """
        return self._with(private=_private(private, self.n))

    def _with(self, **changed: Any) -> Problem:
        other = object.__new__(Problem)
        other.__dict__.update({**self.__dict__, **changed})
        if "private" in changed:
            other.__dict__.pop("secrets", None)
        return other

    def __repr__(self) -> str:
        shown = list(self.private[:5]) + (["…"] if len(self.private) > 5 else [])
        private = ", ".join(map(str, shown))
        return (
            f"Problem({self.chain!r}, n={self.n}, private=[{private}], epsilon={self.epsilon!r},"
            f" protect={self.protect!r})"
        )


def budget(epsilon: Any, name: str = "epsilon") -> float:
    """A privacy budget as a float; InputError unless it is finite and at least 0."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float, np.integer, np.floating)):
        raise InputError(f"{flag} must be a number, got {name}={epsilon!r}")
    try:
        value = float(epsilon)
    except OverflowError:
        value = math.inf
    if not (math.isfinite(value) and value >= 0):
        raise InputError(f"{flag} must be finite and at least 0, got {name}={value}")
    return value


def _checked_length(given: Any, chain: MarkovChain) -> int:
    n = whole_number("n", given)
    if not 2 <= n <= MAX_RECORDS:
        raise InputError(f"--n must be from 2 to {MAX_RECORDS}, got n={n}")
    if chain.length is not None and n != chain.length:
        raise InputError(
            f"--n must be {chain.length}, one more than the chain's kernels, got n={n}"
        )
    if n < chain.order + 1:
        raise InputError(f"n must exceed the chain's order {chain.order}, got n={n}")
    return n


def _promise(
    chain: MarkovChain, models: Sequence[MarkovChain] | Promise | None, coverage: float | None
) -> Promise:
    """What ε is promised for."""
    if models is None:
        return KnownChains([chain])
    if not isinstance(models, Promise):
        if isinstance(models, (str, bytes)) or not isinstance(models, Iterable):
            raise InputError(
                f"models must be a list of chains or a posterior, got {type(models).__name__}"
            )
        models = KnownChains(list(models))
    if models.labels != chain.labels or models.order != chain.order:
        raise InputError(
            f"models must have the chain's values {list(chain.labels)} and order {chain.order},"
            f" got {list(models.labels)} and {models.order}"
        )
    if coverage is not None and coverage not in ACCEPTANCE:
        accepted = " or ".join(map(str, ACCEPTANCE))
        raise InputError(f"coverage must be {accepted}, got {coverage!r}")
    if coverage is None or models.coverage is None:
        return models
    if not isinstance(models, Posterior):
        raise InputError("coverage is for models that were fitted: leave it out")
    return models.with_coverage(coverage)


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


# ---- private records as a person lists them: 3,7 or 10-12


def listed_records(text: str, n: int) -> list[int]:
    """The records of a list, counted from 1; InputError for anything else."""
    positions: list[int] = []
    for part in map(str.strip, text.split(",")):
        low, high = _range(part)
        if high < low or high - low >= n:
            raise InputError(f"--private must be ranges within 1 to {n}, got {part!r}")
        if len(positions) + high - low >= MAX_PRIVATE:
            raise InputError(
                f"--private must name at most {MAX_PRIVATE} records, got {part!r} and"
                f" {len(positions)} more"
            )
        positions.extend(range(low, high + 1))
    return positions


def _range(part: str) -> tuple[int, int]:
    """The first and the last record of 7 or 10-12."""
    first, dash, last = part.partition("-")
    try:
        low = int(first)
        return low, int(last) if dash else low
    except ValueError:
        raise InputError(f"--private must be records such as 3,7 or 10-12, got {part!r}") from None
