"""One test for "this model is broken": windows of one half, counted in the other (section 6).

No test reads a private record: a reference holds none, and any record may stand in for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from offrecord.fitting.counting import Keys, Reference
from offrecord.fitting.kernels import ENOUGH_UNITS
from offrecord.fitting.patterns import (
    Counted,
    Line,
    balance,
    counted,
    odds,
    patterns,
    quotient,
    visible,
)
from offrecord.models.base import Floats, Label, Mask
from offrecord.models.evidence import Dependence, Verdict
from offrecord.models.members import Members
from offrecord.models.posterior import Posterior
from offrecord.models.promise import ACCEPTANCE
from offrecord.theory.window import even_window

_SHUFFLES = 99  # of chains, of which none may show as much: 1 % of independent tables by chance
_MOVABLE = 6  # beside one of each block: there are 105 pairings of seven chains, 15 of six
_ROUNDS = 4  # of weights that balance times and ages in turn
_ALIKE = 8  # chains that begin one after the other and are shuffled among each other
_REACH = 64  # steps beyond a window that patterns never reach; gaps are kept this long

#: Members for windows that are compared or tested, not released by: over 20 seeds the 99.7 %
#: quantile of 400 is within a tenth of that of 8,000.
_DRAWN = 400
_CONTEXTS = 32  # up to which so many are drawn; of more, as many as fit into the same memory
LONGEST = 20_000  #: records on one side: the widest window of section 5 is 7,524
_LEAST_DRAWN = 100  # of any number of contexts: 128 take 2 s of CPU a budget
_PLACES = 4  # of those that make a difference, at which windows are looked at

Windows = tuple[int | None, ...]
#: Learns a posterior from part of the records.
Learn = Callable[[Reference], Posterior]


class _Half(NamedTuple):
    """A half that windows are counted in, the posterior of the other one, and its windows by ε."""

    records: Reference
    posterior: Posterior
    windows: Windows

    def worst(
        self, labels: Sequence[Label], size: int, epsilon: float, place: Keys | None
    ) -> _Worst:
        """What its records show beyond a window of this size."""
        places = self.posterior.places
        once = places is not None and not places.cyclic
        line = Line.of(self.records, 2 * size + _REACH, place, once)
        # a lone record's core holds order - 1 records before it
        return _beyond(line, labels, max(size, self.posterior.order - 1), size, epsilon)


class _Worst(NamedTuple):
    """The largest odds so far, None if no pattern has enough cases."""

    odds: float | None = None
    pattern: str | None = None
    cases: tuple[int, int] = (0, 0)
    visible: float = math.inf

    def or_worse(self, other: _Worst) -> _Worst:
        """The larger odds, and the least that either could see."""
        larger = other if (other.odds or 0.0) > (self.odds or 0.0) else self
        return larger._replace(visible=min(self.visible, other.visible))

    def verdict(self, epsilon: float, windows: Sequence[int]) -> Verdict:
        """What follows for ε."""
        promised = math.exp(epsilon)
        broken = self.odds is not None and self.odds > promised
        shown = self.odds is not None and self.visible < math.inf
        return Verdict(
            epsilon=epsilon,
            verdict="broken" if broken else "holds" if shown else "not shown",
            counted=self.odds,
            promised=promised,
            visible=self.visible if self.visible < math.inf else None,
            pattern=self.pattern,
            cases=list(self.cases),
            windows=list(windows),
        )


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
    # each half judges the other: windows are never counted in what they were learned from
    first, halves = _first_half(reference, by_step=by_step), []
    for seed, mask in enumerate((first, ~first)):
        learned_from = reference.only(mask)
        if learned_from.reaching(order).any():
            posterior = learn(learned_from)
            sizes = windows(posterior, epsilons, seed, reference.longest)
            halves.append(_Half(reference.only(~mask), posterior, sizes))
    return [_verdict(halves, labels, one, number, place) for number, one in enumerate(epsilons)]


def _first_half(reference: Reference, *, by_step: bool) -> Mask:
    """(n,) every other chain, or the first half of each where there are few."""
    chains = reference.chains
    # where kernels depend on the step, half a chain would lack half of them
    if by_step or reference.units >= ENOUGH_UNITS:
        return np.asarray(chains.chain_of % 2 == 0)
    lengths, begins = chains.spread(np.diff(chains.starts)), chains.spread(chains.starts[:-1])
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
            worst = worst.or_worse(half.worst(labels, size, epsilon, place))
    return worst.verdict(epsilon, sizes)


def counted_beyond(
    reference: Reference, labels: Sequence[Label], size: int, epsilon: float, *, once: bool
) -> Verdict:
    """What patterns beyond a window of any records say of ε. once: of a chain, cases count once."""
    line = Line.of(reference, 2 * size + _REACH, None, once)
    return _beyond(line, labels, size, size, epsilon).verdict(epsilon, [size])


def _beyond(line: Line, labels: Sequence[Label], left: int, right: int, epsilon: float) -> _Worst:
    """The largest odds of patterns just beyond windows of a size."""
    worst = _Worst()
    for pattern in patterns(line, left, right):
        found = counted(line, pattern, max(left + right, 1))
        if found is not None:
            worst = worst.or_worse(_of_pattern(pattern.name, found, labels, epsilon))
    return worst


def _of_pattern(name: str, found: Counted, labels: Sequence[Label], epsilon: float) -> _Worst:
    best = odds(found)
    if best is None:
        return _Worst()
    ratio, (value, other, what) = best
    cases = int(found.cases[value, what]), int(found.cases[other, what])
    favours = f"{name} favours {labels[value]!r} over {labels[other]!r}"
    return _Worst(ratio, favours, cases, visible(found, math.exp(epsilon)))


# ---- windows that a posterior's rule gives, as a yardstick


def windows(
    posterior: Posterior, epsilons: Sequence[float], seed: int = 0, longest: int = LONGEST
) -> Windows:
    """Records redacted on each side of a lone private one by the windows of a posterior.

    To its left they are order - 1 at least: its core goes whole.
    """
    contexts = posterior.counts.shape[0]
    drawn = _DRAWN if contexts <= _CONTEXTS else _DRAWN * _CONTEXTS**2 // contexts**2
    drawn = max(drawn, _LEAST_DRAWN)
    allowed = round((1 - ACCEPTANCE[posterior.coverage].quantile) * drawn)
    return _of_members(posterior.members(drawn, seed), epsilons, allowed, longest)


def mean_windows(
    posterior: Posterior, epsilons: Sequence[float], longest: int = LONGEST
) -> Windows:
    """The same for the mean chain alone."""
    return _of_members(posterior.mean, epsilons, 0, longest)


def _of_members(members: Members, epsilons: Sequence[float], allowed: int, longest: int) -> Windows:
    found, places = list[int | None](), _looked_at(members)
    for epsilon in epsilons:
        sizes = [even_window(members, place, epsilon, allowed, longest) for place in places]
        enough = [size for size in sizes if size is not None]
        found.append(max(enough) if len(enough) == len(sizes) else None)
    return tuple(found)


def _looked_at(members: Members) -> list[int]:
    count, first = members.place_count, members.order - 1
    if members.places is None:
        return [0]
    if members.places.cyclic:
        return list(range(0, count, max(count // _PLACES, 1)))
    return [first + (count - 1 - first) // 2]


# ---- chains that depend on each other


def dependence(reference: Reference, seed: int = 0) -> Dependence | None:
    """How far records of neighbouring chains at the same time depend on each other; None where too
    few have records at the same times, or too few others to be paired with.
    """
    # What all chains have in common at a time, such as a season, shows in random pairs too, so
    # only what exceeds these is dependence.
    records = _Records.of(reference)
    own = records.paired(np.arange(reference.chains.count))
    neighbours = records.odds(own)
    if neighbours is None or records.movable < _MOVABLE:
        return None
    shuffled = _shuffled_odds(records, own, neighbours, seed)
    if not shuffled:
        return None
    return Dependence(
        counted=neighbours.odds,
        by_chance=max(one.odds for one in shuffled),
        alike=neighbours.alike,
        alike_by_chance=float(np.mean([one.alike for one in shuffled])),
    )


def _shuffled_odds(records: _Records, own: Keys, neighbours: _Odds, seed: int) -> list[_Odds]:
    """Those of other pairings, up to one that shows as much; none if they have too few pairs."""
    random, shuffled = np.random.default_rng(seed), list[_Odds]()
    for _ in range(_SHUFFLES):
        paired = records.paired(records.shuffled(random))
        if _pairing(paired) == _pairing(own):
            continue
        found = records.odds(paired)
        if found is None or 2 * found.pairs < neighbours.pairs:
            return []  # too few random pairs to say what time alone would show
        shuffled.append(found)
        if found.odds >= neighbours.odds:
            break  # chance gives as much: more shuffles would not change that
    return shuffled


class _Odds(NamedTuple):
    """The lower limit of the largest odds, how many pairs, and the share with equal values."""

    odds: float
    pairs: int
    alike: float


def _pairing(paired: Keys) -> bytes:
    """Which chains are paired, in whatever order."""
    # odds are the same whichever chain of a pair comes first
    low, high = np.sort(paired, axis=0)
    order = np.argsort(low)
    return np.stack((low[order], high[order])).tobytes()


def _spread_alike(reference: Reference, time: Keys, age: Keys) -> Floats:
    """(n,) weights with which records of each value lie alike in times and ages of chains: what all
    chains have in common shows no odds then.
    """
    weight: Floats = np.ones(len(reference.codes))
    ages = np.unique(age, return_inverse=True)[1]
    for _ in range(_ROUNDS):
        for place in (time, ages):
            weight = balance(reference.codes, place, reference.k, weight)
    return weight


class _Records(NamedTuple):
    """Records at common times, to be paired by chains.

    keys: (n,) chain and time as one number, sorted. times: how many times there are. weight: (n,)
    of the records of each value. block: (chains,) of chains that begin at about the same time. any:
    (chains,) which have records.
    """

    keys: Keys
    times: int
    codes: Keys
    k: int
    weight: Floats
    block: Keys
    any: Mask

    @classmethod
    def of(cls, reference: Reference) -> _Records:
        chains = reference.chains
        here = np.flatnonzero(reference.codes >= 0)
        times, number = np.unique(chains.order, return_inverse=True)
        # an empty chain, which is in no pair, begins where the next one does
        first = chains.order[np.minimum(chains.starts[:-1], len(chains.order) - 1)]
        weight = _spread_alike(reference, number, chains.order - chains.spread(first))
        # Chains that begin together are as old at any time and share as many times: where chains
        # begin one after the other, others are no measure of what neighbours have in common.
        block = np.searchsorted(np.sort(first), first) // _ALIKE
        keys = chains.chain_of[here] * len(times) + number[here]
        codes = reference.codes[here].astype(np.int64)
        some = np.bincount(chains.chain_of[here], minlength=chains.count) > 0
        return cls(keys, len(times), codes, reference.k, weight[here], block, some)

    @property
    def movable(self) -> int:
        """How many chains with records there are, beside one of each block."""
        return int(self.any.sum()) - len(np.unique(self.block[self.any]))

    def shuffled(self, random: np.random.Generator) -> Keys:
        """(chains,) the chains in an order in which those of a block change places."""
        chains = np.arange(len(self.block))
        turn = np.empty_like(chains)
        turn[np.lexsort((chains, self.block))] = np.lexsort(
            (random.random(len(chains)), self.block)
        )
        return turn

    def paired(self, turn: Keys) -> Keys:
        """(2, p) every second chain of a turn and the next one, where both have records."""
        # pairs that share no records: limits take cases to be independent
        last = len(turn) // 2 * 2
        pairs = np.stack((turn[:last:2], turn[1:last:2]))
        return np.asarray(pairs[:, self.any[pairs].all(axis=0)])

    def _met(self, paired: Keys) -> tuple[Keys, Keys]:
        """Records of the first chains of pairs, and those of the second at the same times."""
        partner = np.full(len(self.any), -1, dtype=np.int64)
        partner[paired[0]] = paired[1]
        wanted = partner[self.keys // self.times] * self.times + self.keys % self.times
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        looking = np.flatnonzero(self.keys[at] == wanted)
        return looking, at[looking]

    def odds(self, paired: Keys) -> _Odds | None:
        """Of records of the first chains of pairs, and those of the second at the same time."""
        looking, at = self._met(paired)
        if len(looking) == 0:
            return None
        own, met = self.codes[looking], self.codes[at]
        weight, both = self.weight[looking], own * self.k + met
        sums, squares = (
            np.bincount(both, weight**power, self.k**2).reshape(self.k, self.k).astype(np.float64)
            for power in (1, 2)
        )
        cases = quotient(sums**2, squares)  # Kish
        own_cases = cases.sum(axis=1, keepdims=True)
        best = odds(Counted.of(sums, cases, sums.sum(axis=1, keepdims=True), own_cases))
        return None if best is None else _Odds(best[0], len(own), float((own == met).mean()))
