"""One test for "this model is broken": windows of one half, counted in the other (section 6).

No test reads a private record: a reference holds none, and any record may stand in for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from offrecord.fitting.counting import Keys, Reference
from offrecord.fitting.order import ENOUGH_UNITS
from offrecord.fitting.patterns import Counted, Line, counted, odds, patterns, visible
from offrecord.fitting.windows import Windows, windows
from offrecord.models.base import Label, Mask
from offrecord.models.file import Verdict
from offrecord.models.posterior import Posterior

_NEAR = 0.75  # of the promised odds, from which on a verdict says that they come near
_SHUFFLES = 20  # of neighbouring chains, to separate dependence from the effect of time
_REACH = 64  # steps beyond a window that patterns never reach; gaps are kept this long

#: Learns a posterior from part of the records.
Learn = Callable[[Reference], Posterior]


class _Half(NamedTuple):
    """A half that windows are counted in, the posterior of the other one, and its windows by ε."""

    records: Reference
    posterior: Posterior
    windows: Windows


class _Worst(NamedTuple):
    """The largest odds so far. window: None if none was long enough."""

    odds: float | None = None
    pattern: str | None = None
    cases: tuple[int, int] = (0, 0)
    visible: float = math.inf


def verdicts(
    reference: Reference,
    learn: Learn,
    labels: Sequence[Label],
    epsilons: Sequence[float],
    order: int,
    place: Keys | None = None,
    *,
    by_step: bool = False,
) -> list[Verdict]:
    """Test the windows of each half in the other half."""
    first, halves = _first_half(reference, by_step=by_step), []
    for seed, mask in enumerate((first, ~first)):
        learned_from = reference.only(mask)
        if learned_from.reaching(order).any():
            posterior = learn(learned_from)
            sizes = windows(posterior, epsilons, seed, reference.longest)
            halves.append(_Half(reference.only(~mask), posterior, sizes))
    return [_verdict(halves, labels, one, number, place) for number, one in enumerate(epsilons)]


def is_near(verdict: Verdict) -> bool:
    """Whether the odds counted come near those promised, or exceed them."""
    return verdict.counted is not None and verdict.counted > _NEAR * verdict.promised


def _first_half(reference: Reference, *, by_step: bool) -> Mask:
    """(n,) every other chain, or the first half of each where there are few."""
    chains = reference.chains
    if by_step or reference.units >= ENOUGH_UNITS:
        return np.asarray(chains.chain_of % 2 == 0)
    lengths = np.repeat(np.diff(chains.starts), np.diff(chains.starts))
    begins = np.repeat(chains.starts[:-1], np.diff(chains.starts))
    return np.asarray(2 * (np.arange(len(chains.codes)) - begins) < lengths)


def _verdict(
    halves: Sequence[_Half],
    labels: Sequence[Label],
    epsilon: float,
    number: int,
    place: Keys | None,
) -> Verdict:
    worst, sizes = _Worst(), []
    for half in halves:
        size = half.windows[number]
        if size is not None:
            sizes.append(size)
            worst = _worse(worst, _in_half(half, labels, size, epsilon, place))
    promised = math.exp(epsilon)
    broken = worst.odds is not None and worst.odds > promised
    shown = worst.odds is not None and worst.visible < math.inf
    return Verdict(
        epsilon=epsilon,
        verdict="broken" if broken else "holds" if shown else "not shown",
        counted=worst.odds,
        promised=promised,
        visible=worst.visible if worst.visible < math.inf else None,
        pattern=worst.pattern,
        cases=list(worst.cases),
        windows=sizes,
    )


def _worse(one: _Worst, other: _Worst) -> _Worst:
    """The larger odds, and the least that either could see."""
    larger = other if (other.odds or 0.0) > (one.odds or 0.0) else one
    return larger._replace(visible=min(one.visible, other.visible))


def _in_half(
    half: _Half, labels: Sequence[Label], size: int, epsilon: float, place: Keys | None
) -> _Worst:
    """The largest odds of patterns just beyond windows of a size."""
    places = half.posterior.places
    once = places is not None and not places.cyclic
    line = Line.of(half.records, 2 * size + _REACH, place, once)
    worst = _Worst()
    # a lone record's core holds order - 1 records before it
    left = max(size, half.posterior.order - 1)
    for pattern in patterns(line, left, size):
        found = counted(line, pattern, max(left + size, 1))
        best = None if found is None else odds(found)
        if found is None or best is None:
            continue
        ratio, (value, other, what) = best
        cases = int(found.cases[value, what]), int(found.cases[other, what])
        name = f"{pattern.name}, beside {labels[value]!r} and {labels[other]!r}"
        seen = visible(found, math.exp(epsilon))
        worst = _worse(worst, _Worst(ratio, name, cases, seen))
    return worst


# ---- chains that depend on each other


class Dependence(NamedTuple):
    """Odds between a record and that of the neighbouring chain at the same time.

    counted: lower limit of the largest odds. by_chance: the same between chains that are paired at
    random, at the same times: the largest of all shuffles.
    """

    counted: float
    by_chance: float

    @property
    def exists(self) -> bool:
        """Whether neighbours depend on each other beyond what they share with all chains."""
        return self.counted > self.by_chance


def dependence(reference: Reference, seed: int = 0) -> Dependence | None:
    """How far records of neighbouring chains at the same time depend on each other.

    What all chains have in common at a time, such as a season, shows in random pairs too, so only
    what exceeds these is dependence.
    """
    number, when = _moments(reference)
    chains = reference.chains.count
    if chains < 3:
        return None
    # of chains in their own order, then of random pairs: what exceeds these is dependence
    found = _odds_of_pairs(reference, number, when, np.arange(chains))
    if found is None:
        return None
    random = np.random.default_rng(seed)
    shuffled = [
        _odds_of_pairs(reference, number, when, random.permutation(chains))
        for _ in range(_SHUFFLES)
    ]
    return Dependence(found, max((one for one in shuffled if one is not None), default=1.0))


def _moments(reference: Reference) -> tuple[Keys, int]:
    """(n,) the number of the time of each record, and how many times there are."""
    chains = reference.chains
    times, number = np.unique(chains.order, return_inverse=True)
    return number, len(times)


def _odds_of_pairs(reference: Reference, number: Keys, times: int, turn: Keys) -> float | None:
    """Largest odds between records and those of the chain that follows theirs in a turn."""
    here = np.flatnonzero(reference.codes >= 0)
    place = np.empty(len(turn), dtype=np.int64)
    place[turn] = np.arange(len(turn))
    chain = place[reference.chains.chain_of[here]]
    keys = chain * times + number[here]
    order = np.argsort(keys)
    keys, codes = keys[order], reference.codes[here][order].astype(np.int64)
    # pairs do not share records: every second chain looks at the next one
    looking = np.flatnonzero((keys // times) % 2 == 0)
    at = np.searchsorted(keys, keys[looking] + times)
    met = at < len(keys)
    looking, at = looking[met], at[met]
    met = keys[at] == keys[looking] + times
    looking, at = looking[met], at[met]
    if len(looking) == 0:
        return None
    k = reference.k
    cases = np.bincount(codes[looking] * k + codes[at], minlength=k * k).reshape(k, k)
    return _table_odds(cases)


def _table_odds(cases: Keys) -> float | None:
    own = cases.sum(axis=1, keepdims=True).astype(np.float64)
    trials = np.broadcast_to(own, cases.shape)
    best = odds(Counted(cases.astype(np.float64), trials, cases / np.maximum(trials, 1), own))
    return None if best is None else best[0]
