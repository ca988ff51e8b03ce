"""The rules of one setting: the better of two designs, at the largest target that keeps ε.

A target s is asked of every outcome of a side. What both sides leak together about the record is
then found exactly under members that had no part in the design, and s is adapted to it. The worst
outcomes of both sides rarely meet in the same member, so s may be more than half of ε.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from offrecord.mechanisms.base import Unserved
from offrecord.mechanisms.owner.common_mass import bridges_in_common, common_mass
from offrecord.mechanisms.owner.law import unstopped
from offrecord.mechanisms.owner.programs import all_levels, level_by_level
from offrecord.mechanisms.owner.side import Side
from offrecord.mechanisms.rules import (
    Direction,
    Pair,
    Setting,
    SettingKind,
    StoppingRule,
    expected_cost,
    of_setting,
)
from offrecord.models.base import Floats, Integers
from offrecord.models.members import Members
from offrecord.theory.pairs import record_bounds, record_leakages, side_leakages

_UNIT = 2.0**64
#: Contexts up to which each far context is a class of its own, and classes beyond: six lost nothing
#: at 8 and 32 contexts.
_OWN_CLASSES, _CLASSES = 9, 6
#: Contexts up to which linear programs are solved: at 8 they take longer and redact more than
#: common mass does.
_MOST_PROGRAMS, _MOST_PROGRAMS_KNOWN = 5, 8
#: Levels of rules for one known chain, where 16 redact 9 % more, of linear programs, and of common
#: mass under many chains, where 10, 16 and 24 redact the same.
_LEVELS_KNOWN, _LEVELS_PROGRAMS, _LEVELS = 40, 16, 16
_LEVELS_MANY = 10  # with more contexts than have classes of their own, where time counts
#: Level by level, κ: the best at orders 1 and 2 of rain, with no longer deadline than needed.
_PATIENCE = 0.8
#: A deadline beyond it means that the chain hardly forgets.
_MOST_DEADLINE = 20_000
_MOST_DEADLINE_PLACES = 800  # with a product of kernels for every distance from every place
#: By setting, shares of ε between which the target lies, and the one that is tried first: what one
#: known chain of order 1 needs.
_RANGES = {"record": (0.3, 1.0), "run": (0.2, 0.6), "first": (0.4, 1.0), "last": (0.4, 1.0)}
_EVEN = {"record": 0.5, "run": 0.5, "first": 1.0, "last": 1.0}
#: Designs that are made at most each time, how near two targets are the same, and how near to ε is
#: near enough: nearer, rules redact 0.5 % less. With more contexts than have classes of their own
#: the time counts, and twice that is near enough.
_STEPS, _CLOSE, _NEAR = 7, 0.02, 0.02
#: A search takes about so many designs more, and so many times as long to confirm the rules as to
#: judge the first ones: of 36 and 64 contexts, where it is known after 10 s that 60 s are too few.
_MORE_DESIGNS, _CONFIRMED = 2.0, 2.0
#: Designs are compared under so many times the judges that may exceed, those that come out worst;
#: all judges confirm the best, or say which else come out worst, so often.
_WORST, _ROUNDS = 30, 4

_DIRECTIONS: dict[SettingKind, tuple[Direction, ...]] = {
    "record": ("left", "right"),
    "run": ("left", "right"),
    "first": ("right",),
    "last": ("left",),
}
_TOO_LONG = "designing stopping rules takes too long"

_Design = Callable[[Side, float], StoppingRule | None]
_Stops = Callable[[Side, list[int], float], Floats]


@dataclass(frozen=True)
class Plausible:
    """The chains of a design.

    mean: M = 1. makers: under whom outcomes are allowed. judges: under whom a design is accepted;
    of a list both are all of it. exceed: the share of the makers that may leak more. allowed: how
    many judges may.
    """

    mean: Members
    makers: Members
    judges: Members
    exceed: float = 0.0
    allowed: int = 0

    @property
    def known(self) -> bool:
        """Whether there is one chain only."""
        return self.makers.count == 1

    @property
    def few(self) -> bool:
        """Whether each far context is a class of its own; with more the time counts."""
        return self.mean.contexts <= _OWN_CLASSES

    def without(self, judges: Integers) -> Plausible:
        """The chains for the next setting of a table, which may exceed where others already do."""
        rest = np.delete(np.arange(self.judges.count), judges)
        return replace(self, judges=self.judges.part(rest), allowed=self.allowed - len(judges))


class Judged(NamedTuple):
    """What judges say. figure: the leakage that no more than those allowed exceed. worst: the
    judges that come out worst. over: those above ε, all of them if the figure is not.
    """

    figure: float
    worst: Integers
    over: Integers


class Best(NamedTuple):
    """The rules of a setting. cost: expected redactions beyond the core. over: the judges that
    exceed ε.
    """

    pair: Pair
    cost: float
    over: Integers


class _Made(NamedTuple):
    target: float
    pair: Pair | None
    cost: float


@dataclass(frozen=True)
class Search:
    """The rules of one setting. latest: the seconds of CPU after which it is given up."""

    chains: Plausible
    setting: Setting
    epsilon: float
    latest: float = np.inf

    def best(self) -> Best:
        """The rules that redact the least of those within ε.

        Raises Unserved where there are none, or no time is left.
        """
        places, last = self.chains.mean.places, self.chains.mean.place_count - 1
        ends = self.setting.kind != "first" and self.setting.place == last
        if places is not None and places.goes_on and ends:
            # records from there on have beginnings at any distance, and no law says which
            raise Unserved("a chain with a start of its own that goes on is not served there")
        worst = np.zeros(0, dtype=np.int64)
        found: Best | None = None
        for design in self.designs():
            one, worst = self.largest(design, worst, np.inf if found is None else found.cost)
            found = one or found
        if found is None:
            raise Unserved("the chain forgets too slowly for stopping rules")
        return found

    def designs(self) -> Iterator[_Design]:
        """Those worth their time for chains of this size."""
        contexts, known = self.chains.mean.contexts, self.chains.known
        if known and contexts <= _MOST_PROGRAMS_KNOWN:
            yield partial(_rule, all_levels, _LEVELS_KNOWN)
        elif contexts <= _MOST_PROGRAMS:
            yield partial(_rule, partial(level_by_level, patience=_PATIENCE), _LEVELS_PROGRAMS)
        many = _LEVELS if self.chains.few else _LEVELS_MANY
        yield partial(_rule, common_mass, _LEVELS_KNOWN if known else many)

    def largest(
        self, design: _Design, worst: Integers, limit: float
    ) -> tuple[Best | None, Integers]:
        """The cheapest pair within ε on the way to the largest target that keeps it.

        Returns the pair, None if there is none below the limit, and the judges that came out worst.
        """
        judges, begun = self.chains.judges, time.process_time()
        made = [self._made(design, _EVEN[self.setting.kind] * self.epsilon * (1.0 - 1e-6))]
        if made[0].pair is None:
            return None, worst
        designed = time.process_time()
        worst = self._judged_first(made[0].pair, worst)
        now = time.process_time()
        more = _MORE_DESIGNS * (designed - begun) + _CONFIRMED * (now - designed)
        if now + more > self.latest:
            raise Unserved(_TOO_LONG)
        for _ in range(_ROUNDS):
            one = self._towards(design, made, judges.part(worst), limit)
            if one.pair is None or one.cost >= limit:
                break
            said = self.judged(one.pair, judges)
            if said.figure <= self.epsilon:
                return Best(one.pair, one.cost, said.over), worst
            worst = np.union1d(worst, said.worst)
        return None, worst

    # The judges under whom designs are compared, given those who came out worst before.
    def _judged_first(self, pair: Pair, worst: Integers) -> Integers:
        judges = self.chains.judges
        if judges.count <= 2 * _WORST * (self.chains.allowed + 1):
            return np.arange(judges.count)
        if len(worst):
            return worst
        return self.judged(pair if self.chains.few else _of_one_class(pair), judges).worst

    # The cheapest pair within ε of those made, and of more, which are added, at targets between the
    # largest that keeps ε and the least that does not.
    def _towards(self, design: _Design, made: list[_Made], judges: Members, limit: float) -> _Made:
        low, high = (share * self.epsilon for share in _RANGES[self.setting.kind])
        best = _Made(0.0, None, np.inf)
        near = _NEAR if self.chains.few else 2 * _NEAR
        waiting, aimed = list(made), low
        for _ in range(len(made) + _STEPS):
            if waiting:
                one = waiting.pop()
            elif high <= low * (1.0 + _CLOSE):
                break
            else:
                inner = low + 0.15 * (high - low), high - 0.15 * (high - low)
                one = self._made(design, min(max(aimed, inner[0]), inner[1]))
                made.append(one)
            figure = np.inf if one.pair is None else self.judged(one.pair, judges).figure
            if figure <= self.epsilon:
                low = max(low, one.target)
                best = min(best, one, key=lambda it: it.cost)
                if not waiting and figure >= (1.0 - near) * self.epsilon:
                    break
            else:
                high = min(high, one.target)
                if limit <= one.cost < np.inf:  # and smaller targets cost more
                    break
            # leakage grows about as the target does
            aimed = one.target * self.epsilon / figure if figure > 0 else high
        return best

    def _made(self, design: _Design, target: float) -> _Made:
        if time.process_time() > self.latest:
            raise Unserved(_TOO_LONG)
        pair = self._pair(design, target)
        cost = np.inf if pair is None else expected_cost(pair, self.chains.mean, self.setting.place)
        return _Made(target, pair, cost)

    def _pair(self, design: _Design, target: float) -> Pair | None:
        known: list[StoppingRule | None] = []
        for side in self.sides:
            if not known or not self._alike:
                known.append(design(side, target))
        if None in known:
            return None
        return of_setting(self.setting, known[0], known[-1])

    @cached_property
    def sides(self) -> list[Side]:
        """Those that the setting has, the left one first."""
        chains, place, directions = self.chains, self.setting.place, _DIRECTIONS
        far = far_classes(chains.mean, place, chains.mean.contexts if chains.few else _CLASSES)
        is_record = self.setting.kind == "record"
        return [
            Side(chains.mean, chains.makers, place, direction, chains.exceed, is_record, far)
            for direction in directions[self.setting.kind]
        ]

    @cached_property
    def _alike(self) -> bool:
        """Whether both directions have the same kernels, as all chains of two values have."""
        makers = self.chains.makers
        if makers.places is not None:
            return False
        return bool(np.allclose(makers.back(0, 1), makers.ahead(0, 1), rtol=1e-9, atol=1e-12))

    # ---- judging

    def judged(self, pair: Pair, judges: Members) -> Judged:
        """The leakage of a pair."""
        count = self.chains.allowed + 1
        largest = np.full(count, -np.inf)
        judges.law(self.setting.place)  # of all at once, which is faster than part by part
        parts = []
        for part in judges.parts(_part(pair, judges)):
            found, largest = self._leakages(pair, part, largest)
            parts.append(found)
        leakages = np.concatenate(parts) if parts else np.empty(0)
        worst = np.argsort(-leakages, kind="stable")[: _WORST * count]
        return Judged(float(largest[0]), worst, np.flatnonzero(leakages > self.epsilon))

    # (M,) leakages, and the largest ones so far, in order. About a lone record the exact leakage is
    # dear: it is computed only while a bound (O8) says that it may be among the largest. The other
    # entries are bounds.
    def _leakages(self, pair: Pair, judges: Members, largest: Floats) -> tuple[Floats, Floats]:
        place = self.setting.place
        law = judges.law(place)
        rules = [one for one in pair if one is not None]
        seen = [
            rule.outcomes(judges, place, side.direction)
            for rule, side in zip(rules, self.sides, strict=True)
        ]
        if self.setting.kind != "record":  # the sides of a run add (O7)
            found = np.sum([side_leakages(one, law) for one in seen], axis=0)
            return found, _largest(largest, found)
        bound = record_bounds(seen[0], seen[1], law, judges.last_value)
        found, order = np.minimum(bound, largest[0]), np.argsort(-bound)
        size = 4 * len(largest)
        for first in range(0, len(order), size):
            asked = order[first : first + size]
            asked = asked[bound[asked] > largest[0]]
            if not len(asked):
                break
            left, right = (one[asked] for one in seen)
            found[asked] = record_leakages(left, right, law[asked], judges.last_value)
            largest = _largest(largest, found[asked])
        return found, largest


# The largest of both, as many as are known, in order.
def _largest(known: Floats, more: Floats) -> Floats:
    return np.asarray(np.sort(np.concatenate([known, more]))[-len(known) :])


# A rule whose deadline keeps the target, with `most` levels; None where none within reach does.
def _rule(stops: _Stops, most: int, side: Side, target: float) -> StoppingRule | None:
    margin, order, k = side.margin, side.mean.order, side.mean.k
    reach = _MOST_DEADLINE if side.mean.places is None else _MOST_DEADLINE_PLACES
    # S2: a rule exists exactly where its deadline alone keeps the target
    nearest = side.deadline(target, reach if margin is None else min(reach, margin))
    if nearest is not None:
        levels = placed_levels(side, nearest, most)
        # coins draw multiples of 2**-64; what acts is what is judged
        stop = np.floor(stops(side, levels, target) * _UNIT) / _UNIT
        return StoppingRule(order, k, np.array(levels), side.far, stop)
    if margin is None:
        return None
    closed = np.zeros((0, side.classes, side.contexts, side.contexts))
    return StoppingRule(order, k, np.array([margin + order]), side.far, closed)


# The same rules with the same stops for all far classes: they say which judges come out worst in a
# sixth of the time, and all judges confirm the best rules.
def _of_one_class(pair: Pair) -> Pair:
    sides = [
        replace(rule, far=np.zeros_like(rule.far), stop=rule.stop.mean(axis=1, keepdims=True))
        if isinstance(rule, StoppingRule)
        else rule
        for rule in pair
    ]
    return Pair(*sides)


# How many members are judged at a time: their outcomes take at most 32 MB.
def _part(pair: Pair, members: Members) -> int:
    outcomes = max(
        int(rule.stop.any(axis=2).sum()) + members.contexts
        for rule in pair
        if isinstance(rule, StoppingRule)
    )
    return max(2**25 // (8 * outcomes * members.contexts), 1)


def placed_levels(side: Side, deadline: int, most: int) -> list[int]:
    """At most `most` levels, the last one the deadline.

    All distances up to it, if they are few; else so that the law of stopping, with every distance
    allowed, puts its roots evenly between them (O6).
    """
    every = list(range(side.mean.order, deadline + 1))
    if len(every) <= most:
        return every
    mean = side.steps(every, mean=True)
    stop = bridges_in_common(mean, side)
    waiting = [
        float(np.einsum("x,cxi,ic->", mean.start[0], mass[0], beyond[0]))
        for mass, beyond in zip(unstopped(mean, stop), mean.beyond, strict=True)
    ]
    roots = np.cumsum(np.sqrt(np.maximum(-np.diff([*waiting, 0.0]), 0.0)))
    wanted = roots[-1] * np.arange(1, most + 1) / most
    chosen = np.minimum(np.searchsorted(roots, wanted * (1 - 1e-9)), len(every) - 1)
    return sorted({every[0], *(every[one] for one in chosen.tolist()), deadline})


def far_classes(mean: Members, place: int, most: int) -> Integers:
    """(S,) the class of each far context: each its own if they are few, else the likeliest
    half of the classes alone and the others in groups that look alike from a distance.
    """
    contexts = mean.contexts
    if contexts <= most:
        return np.arange(contexts)
    from scipy.cluster.hierarchy import fcluster, linkage

    law = mean.law(place)[0]
    alone = np.argsort(-law, kind="stable")[: most // 2]
    others = np.setdiff1d(np.arange(contexts), alone)
    seen = np.log(mean.ahead(place, 2 * mean.order)[0][:, others] / law[others])
    grouped = fcluster(linkage(seen.T, "ward"), most - len(alone), "maxclust") - 1
    far = np.zeros(contexts, dtype=np.int64)
    far[alone] = np.arange(len(alone))
    far[others] = len(alone) + grouped
    return far
