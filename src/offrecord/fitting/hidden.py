"""A chain on hidden states learned from data, and whether it foretells more than any order does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offrecord.errors import InputError
from offrecord.fitting.counting import counted, linked_records, reaching, tuples
from offrecord.fitting.expectation import (
    HALF,
    Climb,
    HiddenKernel,
    Sightings,
    climbed,
    random_kernel,
)
from offrecord.models.base import Floats, Integers, Label
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import whole_number
from offrecord.models.published_rounding import rounded_distributions
from offrecord.models.records import Chains
from offrecord.models.stationary import stationary_distribution
from offrecord.text import many

MAX_STATES = 64  #: that a fit takes
LARGEST_ORDER = 4  #: of the orders that are compared
MAX_HISTORIES = 256  #: that an order which is compared may have

HELD_SHARE = 0.2  #: of the records, held back to judge by
_WHOLE_CHAINS = 10  # from so many chains on, whole ones are held back
_ALL_ALLOCATIONS = 12  # of states to values that are tried one by one; else state after state
_FEW_VALUES = 6  # the commonest ones, which may be given another state then
_RESTARTS, _TRIED, _FINISHED = 8, 25, 2  # climbs begun, their iterations, and those carried on
_ITERATIONS, _LEAST_GAIN = 500, 1e-6  # of a climb; in log-likelihood a record


@dataclass(frozen=True, eq=False)
class HiddenFit:
    """What was learned, and how well it foretells records that were held back.

    transition: (h, h) on states, rounded as published, from all records. shows: (h,) which of the
    labels each state shows; states of one value stand side by side, the commonest first. held_out:
    mean log-likelihood, in nats, of held_out_records records that were held back, each given all
    before it in its chain, by the kernel learned without them. by_order: the same of chains on
    values of each order, on the same records. by_shows: the same of each way to give states to
    values that was tried. converged: whether the last climb ended by itself.
    """

    transition: Floats
    shows: Integers
    labels: tuple[Label, ...]
    held_out: float
    held_out_records: int
    by_order: dict[int, float]
    by_shows: dict[tuple[int, ...], float]
    records: int
    chains: int
    iterations: int
    converged: bool

    @cached_property
    def model(self) -> MarkovChain:
        """The stationary chain on the states, as it is published."""
        return MarkovChain(self.transition, labels=self.labels, shows=self.shows)

    @property
    def best_order(self) -> int:
        """The order that foretells best; the smaller one of equals."""
        return max(self.by_order, key=lambda order: (self.by_order[order], -order))

    @property
    def gain(self) -> float:
        """How much better than the best order it foretells, in nats a record."""
        return self.held_out - self.by_order[self.best_order]

    @property
    def is_preferred(self) -> bool:
        """Whether it foretells better than every order that was compared."""
        return self.gain > 0

    def summary(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "states": len(self.shows),
            "shows": self.shows.tolist(),
            "labels": list(self.labels),
            "transition": self.transition.tolist(),
            "held_out": self.held_out,
            "held_out_records": self.held_out_records,
            "by_order": {str(order): value for order, value in self.by_order.items()},
            "by_shows": [
                {"shows": list(shows), "held_out": value} for shows, value in self.by_shows.items()
            ],
            "best_order": self.best_order,
            "gain": self.gain,
            "records": self.records,
            "chains": self.chains,
            "iterations": self.iterations,
            "converged": self.converged,
        }


def fit_states(
    chains: Chains,
    labels: Sequence[Label],
    *,
    states: int,
    dropped: ArrayLike | None = None,
    seed: int = 0,
) -> HiddenFit:
    """Learn a chain on hidden states, each of which shows one value.

    Every value has a state; who has more is tried, and chosen by the records held back: the last
    fifth of each chain, or whole chains where there are many. dropped: (m,) chains that hold a
    private record: they are left out. seed: of where climbs begin. Records without a value, and
    those that are missing, are steps that nobody sees.

    InputError for fewer states than values, or too few records to hold any back.
    """
    k, states = len(labels), _checked_states(states, len(labels))
    used = _used_records(chains, dropped)
    held = _held_back(chains, used, seed)
    by_order, judged = _orders_compared(chains, used, held, k)
    split = _split(chains, used, held, judged, k, seed)
    trials = _trials(split, states)
    best = max(trials, key=lambda trial: trial.held_out)
    last = climbed(best.climb.kernel, split.known, _ITERATIONS, least_gain=_LEAST_GAIN)
    kernel = _arranged(last.kernel)
    return HiddenFit(
        rounded_distributions(kernel.transition),
        kernel.shows,
        tuple(labels),
        best.held_out,
        int(np.count_nonzero(judged)),
        by_order,
        {trial.shows: trial.held_out for trial in trials},
        int(np.count_nonzero(used)),
        len(np.unique(chains.chain_of[used])),
        last.iterations,
        last.converged,
    )


# ---- which records to learn from, and which to judge by


def _checked_states(states: Any, k: int) -> int:
    number = whole_number("states", states)
    if not k <= number <= MAX_STATES:
        raise InputError(
            f"states must be from {k}, one for each value, to {MAX_STATES}, got {number}"
        )
    return number


def _used_records(chains: Chains, dropped: ArrayLike | None) -> NDArray[np.bool_]:
    """(n,) the records with values, of chains that are not left out."""
    out = np.zeros(chains.count, dtype=bool) if dropped is None else np.asarray(dropped)
    if out.shape != (chains.count,) or out.dtype != np.bool_:
        raise InputError(f"dropped must say true or false for each of {chains.count} chains")
    return np.asarray((chains.codes >= 0) & ~np.repeat(out, np.diff(chains.starts)))


def _held_back(chains: Chains, used: NDArray[np.bool_], seed: int) -> NDArray[np.bool_]:
    """(n,) the records to judge by; no value decides which they are."""
    sizes = np.add.reduceat(used, chains.starts[:-1], dtype=np.int64)
    kept = np.flatnonzero(sizes)
    if len(kept) >= _WHOLE_CHAINS:
        mixed = np.random.default_rng(seed).permutation(kept)
        before = np.cumsum(sizes[mixed]) - sizes[mixed]
        held = np.zeros(chains.count, dtype=bool)
        held[mixed[before < HELD_SHARE * sizes.sum()]] = True
        return np.asarray(used & np.repeat(held, np.diff(chains.starts)))
    numbers = np.cumsum(used) - np.repeat(np.cumsum(sizes) - sizes, np.diff(chains.starts))
    kept_back = numbers > np.repeat((1 - HELD_SHARE) * sizes, np.diff(chains.starts))
    return np.asarray(used & kept_back)


def _orders_compared(
    chains: Chains, used: NDArray[np.bool_], held: NDArray[np.bool_], k: int
) -> tuple[dict[int, float], NDArray[np.bool_]]:
    """The mean log-likelihood of each order on the records held back, and which of them count.

    Those with as many predecessors as the largest order has, so that all orders are judged by
    the same records. Learned from those that are not held back: shares of counts plus one half.
    """
    codes = np.where(used, chains.codes, np.int8(-1))
    linked = linked_records(codes, chains.starts, chains.steps)
    learned = linked_records(np.where(held, np.int8(-1), codes), chains.starts, chains.steps)
    if not learned.any():
        raise InputError(
            "no two records with values stand one step apart: there is nothing to"
            " learn the model from"
        )
    orders = [m for m in range(1, LARGEST_ORDER + 1) if m == 1 or k**m <= MAX_HISTORIES]
    deep = [m for m in orders if (reaching(linked, m) & held).any()]
    if not deep:
        raise InputError(
            f"{many(int(np.count_nonzero(used)), 'record')} with values are too few to hold any"
            " back to judge the model by"
        )
    deepest = deep[-1]
    judged = reaching(linked, deepest) & held
    asked = tuples(codes, judged, k, deepest)
    found = {}
    for order in range(deepest + 1):
        counts = counted(codes, learned, k, order)[0] if order else _value_counts(codes, held, k)
        found[order] = float(np.log(_shares(counts).ravel()[asked % k ** (order + 1)]).mean())
    return found, judged


def _split(
    chains: Chains,
    used: NDArray[np.bool_],
    held: NDArray[np.bool_],
    judged: NDArray[np.bool_],
    k: int,
    seed: int,
) -> _Split:
    learned, known = Sightings.of(chains, used & ~held), Sightings.of(chains, used)
    codes = np.where(used & ~held, chains.codes, np.int8(-1))
    linked = linked_records(codes, chains.starts, chains.steps)
    return _Split(
        learned, known, judged[known.rows], _shares(counted(codes, linked, k, 1)[0]), seed
    )


def _shares(counts: Integers) -> Floats:
    """Distributions along the last axis: counts plus one half, as fits without states have them."""
    more = counts + HALF
    return np.asarray(more / more.sum(axis=-1, keepdims=True))


def _value_counts(codes: NDArray[np.int8], held: NDArray[np.bool_], k: int) -> Integers:
    return np.bincount(codes[(codes >= 0) & ~held], minlength=k)


# ---- which states show which value


@dataclass(frozen=True, eq=False)
class _Split:
    """Records to learn from, all that are known, and which of those judge.

    values: (k, k) the kernel on values, to begin from.
    """

    learned: Sightings
    known: Sightings
    judged: NDArray[np.bool_]
    values: Floats
    seed: int

    def tried(self, widths: tuple[int, ...]) -> _Trial:
        """The best of several climbs, and how well it foretells."""
        climb = _best_climb(widths, self)
        log_chances = _settled(climb.kernel).log_chances(self.known)
        return _Trial(climb, float(log_chances[self.judged].mean()))


@dataclass(frozen=True, eq=False)
class _Trial:
    """A fit with some number of states for each value."""

    climb: Climb
    held_out: float

    @property
    def shows(self) -> tuple[int, ...]:
        """The value that each state shows."""
        return tuple(self.climb.kernel.shows.tolist())


def _trials(split: _Split, states: int) -> list[_Trial]:
    """A fit for each way to give states to values.

    Where there are many ways, one state after the other goes to the value where it helps most,
    and the last one is tried with each of the commonest values.
    """
    k = len(split.values)
    if math.comb(states - 1, k - 1) <= _ALL_ALLOCATIONS:
        return [split.tried(widths) for widths in allocations(k, states)]
    common = np.argsort(-np.bincount(split.learned.values, minlength=k), kind="stable")
    widths = (1,) * k
    trials = []
    for _ in range(states - k):
        trials = [split.tried(_one_more(widths, int(v))) for v in common[:_FEW_VALUES]]
        widths = max(trials, key=lambda trial: trial.held_out).climb.kernel.widths
    return trials


def allocations(k: int, states: int) -> Iterator[tuple[int, ...]]:
    """Every way to give each of k values at least one of the states."""
    for ends in combinations(range(1, states), k - 1):
        yield tuple(b - a for a, b in pairwise((0, *ends, states)))


def _one_more(widths: tuple[int, ...], value: int) -> tuple[int, ...]:
    return tuple(width + (v == value) for v, width in enumerate(widths))


def _best_climb(widths: tuple[int, ...], split: _Split) -> Climb:
    """Several short climbs from random kernels, the best of them carried on."""
    rng = np.random.default_rng([split.seed, *widths])
    restarts = _RESTARTS if max(widths) > 1 else 1  # one state for each value: nothing is hidden
    begun = [
        climbed(
            random_kernel(widths, split.values, rng), split.learned, _TRIED, least_gain=_LEAST_GAIN
        )
        for _ in range(restarts)
    ]
    begun.sort(key=lambda climb: -climb.heights[-1])
    finished = [
        climbed(climb.kernel, split.learned, _ITERATIONS, least_gain=_LEAST_GAIN)
        for climb in begun[:_FINISHED]
    ]
    return max(finished, key=lambda climb: climb.heights[-1])


def _settled(kernel: HiddenKernel) -> HiddenKernel:
    """The kernel with its stationary distribution where chains begin: as it is published."""
    return HiddenKernel(
        kernel.widths, kernel.transition, stationary_distribution(kernel.transition)
    )


def _arranged(kernel: HiddenKernel) -> HiddenKernel:
    """The same chain, its states of one value from the commonest to the rarest."""
    often = _settled(kernel).start
    order = np.lexsort((-often, kernel.shows))
    return HiddenKernel(kernel.widths, kernel.transition[np.ix_(order, order)], kernel.start[order])
