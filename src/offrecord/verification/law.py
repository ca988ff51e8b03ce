"""How much a policy leaks under drawn chains: the verifier's own evaluation of both kinds of rules.

What one side shows has a likelihood for each start context z, up to a factor that z does not
change. To the left it is computed with the chain's own kernels, not with reversed ones: by Bayes
Pr(past | z) is Pr(past)·Pr(z | past) / Pr(z), and Pr(past) is such a factor. So each column of
"from the record shown to z" is an outcome, divided by the law of z. Facts: docs/proofs F1, R6, S1
to S4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from offrecord.models.base import Floats
from offrecord.verification.members import Drawn, Kind
from offrecord.verification.pairs import joint_leakage, largest_ratio
from offrecord.verification.rules import Local, Rules, Side, Stops

#: What is added to ε for rounding: an upper bound within the limits of size
#: (docs/proofs/rounding.md).
ROUNDING = 1e-9
SHARES = (0.5, 0.95, 0.99)  #: of chains, whose largest leakage is stated
_BYTES = 1 << 24  # that likelihoods of one side may take; beyond the cache it takes twice as long
#: A likelihood below this beside others might vanish in the next step, so it counts as a leak. Of
#: order 6 a step lowers it by at most 1e-78 · 2**-64.
_VANISHING = 1e-200


@dataclass(frozen=True)
class Judged:
    """The leakage of each drawn chain over everything that may act."""

    leakages: Floats
    epsilon: float

    @property
    def above(self) -> int:
        """How many chains exceed ε; a leakage that is no number does too."""
        return int(np.count_nonzero(~(self.leakages <= self.epsilon + ROUNDING)))

    @property
    def quantiles(self) -> tuple[float, float, float]:
        """What 50, 95 and 99 % of the chains do not exceed."""
        half, most, all_but_few = np.quantile(self.leakages, SHARES, method="higher").tolist()
        return half, most, all_but_few

    @property
    def largest(self) -> float:
        """The largest of all."""
        return float(self.leakages.max())

    def to_dict(self) -> dict[str, Any]:
        """For JSON; numbers without a limit are the text "inf"."""
        stated = [one if one < np.inf else "inf" for one in (*self.quantiles, self.largest)]
        counts = {"chains": len(self.leakages), "above": self.above}
        return counts | {"quantiles": stated[:3], "largest": stated[3]}


def leakages(rules: Rules, drawn: Drawn) -> Floats:
    """(M,) the largest leakage of each chain over all settings that have rules."""
    most = max((_likelihoods(one, rules.kind) for one in rules.sides.values()), default=1)
    parts = drawn.parts(max(_BYTES // (8 * max(most, 1)), 1))
    return np.concatenate([_leakages(rules, part) for part in parts])


def _likelihoods(side: Side, kind: Kind) -> int:
    """About how many likelihoods are held of a chain."""
    # an outcome for each level, far class and context, or for each distance and value
    if isinstance(side, Stops):
        return kind.contexts * int(side.stop.any(axis=2).sum() + side.stop[:1].size)
    return kind.contexts**2 * (4 if side.is_window else side.reach + 4)


def _leakages(rules: Rules, drawn: Drawn) -> Floats:
    alone = np.zeros(len(drawn.rows))
    runs: dict[str, Any] = {"left": 0.0, "right": 0.0}
    known: dict[tuple[int, int, str], Floats] = {}
    for (setting, place, direction), side in rules.sides.items():
        if setting == "record":
            if direction == "left":
                alone = np.maximum(alone, _lone_record(rules, drawn, place))
            continue
        one = id(side), place, direction  # rules that are equal are one object
        if one not in known:
            known[one] = _one_side(side, drawn, place, direction)
        if setting == "run":
            runs[direction] = np.maximum(runs[direction], known[one])
        else:
            alone = np.maximum(alone, known[one])
    # the two sides of a longer run depend on different values of it, so they add (O7, O8)
    return np.asarray(np.maximum(alone, runs["left"] + runs["right"]))


def _one_side(side: Side, drawn: Drawn, place: int, direction: str) -> Floats:
    law = drawn.law(place)
    found = [largest_ratio(piece, law) for piece in _outcomes(side, drawn, place, direction)]
    return np.asarray(np.max(found, axis=0))


def _lone_record(rules: Rules, drawn: Drawn, place: int) -> Floats:
    # both sides depend on one value, and are judged as one (F2)
    pieces = (
        _outcomes(rules.sides["record", place, side], drawn, place, side)
        for side in ("left", "right")
    )
    left, right = (np.concatenate([*each], axis=1) for each in pieces)
    return joint_leakage(left, right, drawn.law(place), rules.kind.k)


def _outcomes(side: Side, drawn: Drawn, place: int, direction: str) -> Iterator[Floats]:
    """(M, O, S) likelihoods of what a side may show given the start context, in pieces."""
    walk = _Walk(drawn, place, direction)
    if isinstance(side, Local) and not side.is_window:
        yield from walk.first_release(side)
    elif isinstance(side, Local) or (walk.margin is not None and walk.margin < side.deadline):
        yield walk.window(side.reach)  # a walk that cannot look is one, too (S5)
    else:
        yield from walk.stops(side)
        if direction == "left" and drawn.kind.endless(place):
            yield walk.window(side.reach)  # in a chain that began not long ago it cannot look
    if walk.vanished.any():
        yield walk.without_limit()


def stop_law(side: Stops, drawn: Drawn, place: int, direction: str) -> Floats:
    """(M, n) probability that a walk stops at each level, if it can look."""
    size = max(_BYTES // (8 * side.stop[:1].size or 1), 1)
    parts = (_Walk(part, place, direction) for part in drawn.parts(size))
    return np.concatenate([walk.stop_law(side) for walk in parts])


class _Walk:
    """One side of a core. All likelihoods are (M, S shown, S start)."""

    def __init__(self, drawn: Drawn, place: int, direction: str) -> None:
        self.drawn, self.place, self.right = drawn, place, direction == "right"
        kind = drawn.kind
        #: Records beyond the core, where that is limited by the places themselves.
        self.margin = kind.beyond(place) if self.right else kind.before(place)
        # to the left the records of the start context stand before the place, too
        if not self.right and self.margin is not None:
            self.margin = max(self.margin - kind.order + 1, 0)
        law = drawn.law(place)
        self.inverse = np.divide(1.0, law, out=np.zeros_like(law), where=law > 0)
        #: Members in which a likelihood may have vanished.
        self.vanished = np.zeros(len(law), dtype=bool)

    def without_limit(self) -> Floats:
        """Two outcomes by which members leak everything where a likelihood may have vanished."""
        found = np.ones((len(self.inverse), 2, self.inverse.shape[1]))
        last = np.arange(found.shape[2]) % self.drawn.kind.k
        found[self.vanished, 0], found[self.vanished, 1] = last == 0, last > 0
        return found

    def _at(self, distance: int) -> int:
        """The place of the context at a distance."""
        return self.drawn.kind.after(self.place, distance if self.right else -distance)

    def _given(self, likelihood: Floats) -> Floats:
        """To the left: from "the start context given what is shown" to the other way round."""
        return likelihood if self.right else likelihood * self.inverse[:, np.newaxis, :]

    def _shown(self, distance: int) -> Floats:
        """(M, S, 1) 1 for contexts that occur at a distance, else 0."""
        law = self.drawn.law(self._at(distance))
        if self.drawn.kind.endless(self.place):
            law = np.maximum(law, self.drawn.law(self.place))
        return np.asarray((law > 0)[:, :, np.newaxis], dtype=np.float64)

    def _across(self, near: int, far: int) -> Floats:
        """(M, S far, S near) the kernel between two distances: of the far context given the near
        one to the right, of the near one given the far one to the left.
        """
        if self.right:
            return np.swapaxes(self.drawn.ahead(self._at(near), far - near), 1, 2)
        return self.drawn.ahead(self._at(far), far - near)

    # ---- windows

    def window(self, size: int) -> Floats:
        """The nearest m records beyond `size` redacted ones, as many as there are."""
        order = self.drawn.kind.order
        if self.margin is not None and self.margin <= size:
            return np.ones((len(self.inverse), 1, self.inverse.shape[1]))
        seen = order if self.margin is None else min(order, self.margin - size)
        found = [self._records(size, seen)]
        if not self.right and self.drawn.kind.endless(self.place):
            # chains that began not long ago show fewer
            before = self.place - order + 1
            found += [self._records(size, few) for few in range(1, order) if size + few >= before]
        return self._given(np.concatenate(found, axis=1))

    def _records(self, size: int, seen: int) -> Floats:
        """(M, k**seen, S) the `seen` records beyond a window."""
        order, k = self.drawn.kind.order, self.drawn.kind.k
        found = self._across(0, size + seen)
        if seen == order:
            return np.asarray(found * self._shown(size + seen))
        members, contexts = self.inverse.shape
        if self.right:  # the last digits of the context stand beyond the window
            return np.asarray(found.reshape(members, -1, k**seen, contexts).sum(axis=1))
        begin = self.drawn.law(order - 1)[:, :, np.newaxis]  # the chain's first context, its first
        return np.asarray((begin * found).reshape(members, k**seen, -1, contexts).sum(axis=2))

    # ---- local rules of order 1

    def first_release(self, side: Local) -> Iterator[Floats]:
        """The first record released and its value; nothing, up to a real end (F1)."""
        hidden = np.broadcast_to(np.eye(self.drawn.kind.k), self.drawn.kernels[:, 0].shape)
        reach = side.reach if self.margin is None else min(side.reach, self.margin)
        for distance, chances in enumerate(side.redaction[:reach], 1):
            shown = self._across(distance - 1, distance) @ hidden * self._shown(distance)
            yield self._given(shown[:, chances < 1])  # up to the chance to leave, a factor
            hidden = _scaled(shown * chances[:, np.newaxis])
            self._watch(hidden)
        if self.margin is None or self.margin > reach:
            yield self._given(self._across(reach, reach + 1) @ hidden * self._shown(reach + 1))
        elif self.right:
            yield hidden.sum(axis=1, keepdims=True)
        else:
            yield self._given(self.drawn.law(self._at(reach))[:, np.newaxis] @ hidden)
        if not self.right and self.drawn.kind.endless(self.place):
            # chains that began not long ago end within the rule's reach
            for margin in range(self.place, side.reach + 1):
                yield self._given(self._nothing_since_start(side.redaction[:margin]))

    def _nothing_since_start(self, redaction: Floats) -> Floats:
        """(M, 1, k) nothing is released between the first record and the start value."""
        mass = self.drawn.law(0)[:, np.newaxis, :]
        for at, chances in enumerate(redaction[::-1]):
            mass = _scaled((mass * chances) @ self.drawn.kernel(at))
        return mass

    # ---- stopping rules

    @cached_property
    def _alike(self) -> _Walk:
        """A walk of chains that have the zeros of these ones."""
        if not np.all(self.drawn.rows > 0):
            return self
        # where all steps are possible one chain is enough
        return _Walk(next(self.drawn.parts(1)), self.place, "right" if self.right else "left")

    def stops(self, side: Stops) -> Iterator[Floats]:
        """Level, far class and context of each stop; at the deadline the far context (S1)."""
        for number, going in self._masses(side):
            near = int(side.levels[number])
            if near == side.deadline:
                contexts = np.arange(len(side.far))
                yield self._given(going[:, contexts, side.far] * self._shown(near))
                return
            chances = _by_context(side.stop[number])
            # outcomes that no start context allows are left out
            at, far = np.nonzero(chances.any(axis=2))
            seen = self._leads_to(near, side) * self._shown(near)
            yield self._given(going[:, at, far] * chances[at, far] * seen[:, at, far, np.newaxis])

    def stop_law(self, side: Stops) -> Floats:
        """(M, n) probability that the walk stops at each level."""
        groups = np.eye(int(side.far.max()) + 1)[side.far]  # (S, C)
        start, end = self.drawn.law(self.place), self.drawn.law(self._at(side.deadline))
        found = np.zeros((len(start), len(side.levels)))
        for number, going in self._masses(side):
            if number == len(side.stop):
                break
            # far class given the level's context; to the left jointly with it
            beyond = self._across(int(side.levels[number]), side.deadline)
            stopped = going * _by_context(side.stop[number])
            if self.right:
                stopped = stopped * start[:, np.newaxis, np.newaxis, :]
            else:
                beyond = beyond * end[:, :, np.newaxis]
            far = beyond.swapaxes(1, 2) @ groups
            found[:, number] = np.einsum("micx,mic->m", stopped, far)
        found[:, -1] = 1.0 - found.sum(axis=1)
        return found

    def _masses(self, side: Stops) -> Iterator[tuple[int, Floats]]:
        """Number of each level at which anything stops, and the deadline's, with what has not
        stopped before: (M, shown, class, start).
        """
        numbers = [*np.flatnonzero(side.stop.any(axis=(1, 2, 3))).tolist(), len(side.stop)]
        levels, classes = side.levels.tolist(), int(side.far.max()) + 1
        step = self._across(0, levels[numbers[0]])
        going, least = np.repeat(step[:, :, np.newaxis], classes, axis=2), step.min()
        yield numbers[0], going
        for number, following in pairwise(numbers):
            goes_on = 1.0 - _by_context(side.stop[number])
            step = self._across(levels[number], levels[following])
            # one product for all classes
            left = (going * goes_on).reshape(*going.shape[:2], -1)
            going = (step @ left).reshape(going.shape)
            least *= step.min() * goes_on.min()
            if least < _VANISHING:  # a bound, and much too low
                self._watch(going)
                least = going.min()
            yield following, going

    def _leads_to(self, near: int, side: Stops) -> Floats:
        """(M or 1, S, C) 1 where some context of a far class stands beyond a level's context."""
        walk = self._alike
        leads = walk._across(near, side.deadline) * walk._shown(side.deadline) > 0
        classes = range(int(side.far.max()) + 1)
        found = [leads[:, side.far == one].any(axis=1) for one in classes]
        return np.stack(found, axis=2).astype(np.float64)

    def _watch(self, likelihoods: Floats) -> None:
        """Mark members in which the next step might make a likelihood 0 that is not."""
        if likelihoods.min() < _VANISHING:
            small = (likelihoods > 0) & (likelihoods < _VANISHING)
            self.vanished |= small.reshape(len(small), -1).any(axis=1)


def _by_context(stop: Floats) -> Floats:
    """(S shown, C, S start) the chances of a level."""
    return np.moveaxis(stop, 2, 0)


def _scaled(likelihoods: Floats) -> Floats:
    """The same with a largest one of 1 in each member, so that nothing underflows."""
    most = likelihoods.max(axis=(1, 2), keepdims=True)
    return np.asarray(likelihoods / np.where(most > 0, most, 1.0))
