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
from itertools import pairwise

import numpy as np

from offrecord.verify.members import Drawn, Floats
from offrecord.verify.pairs import joint_leakage, largest_ratio
from offrecord.verify.rules import Local, Rules, Side, Stops

#: What is added to ε for rounding: an upper bound within the limits of size
#: (docs/proofs/rounding.md).
ROUNDING = 1e-9
_BYTES = 1 << 28  # that the likelihoods of members judged at a time may take
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
        """How many chains exceed ε."""
        return int(np.count_nonzero(self.leakages > self.epsilon + ROUNDING))

    @property
    def quantiles(self) -> tuple[float, float, float]:
        """What 50, 95 and 99 % of the chains do not exceed."""
        found = np.quantile(self.leakages, (0.5, 0.95, 0.99), method="higher")
        return float(found[0]), float(found[1]), float(found[2])

    @property
    def largest(self) -> float:
        """The largest of all."""
        return float(self.leakages.max())


def leakages(rules: Rules, drawn: Drawn) -> Floats:
    """(M,) the largest leakage of each chain over all settings that have rules."""
    outcomes = max((_outcome_count(one, rules) for one in rules.sides.values()), default=1)
    size = max(_BYTES // (16 * outcomes * rules.kind.contexts), 1)
    return np.concatenate([_leakages(rules, part) for part in drawn.parts(size)])


def _outcome_count(side: Side, rules: Rules) -> int:
    """About how many outcomes are held at a time."""
    if isinstance(side, Stops):
        return int(side.stop.shape[0] * side.stop.shape[1] + 1) * rules.kind.contexts
    return 4 * rules.kind.contexts


def _leakages(rules: Rules, drawn: Drawn) -> Floats:
    none = np.zeros(len(drawn.rows))
    alone, runs = none, {"left": none, "right": none}
    for (setting, place, direction), side in rules.sides.items():
        if setting == "record":
            if direction == "left":
                alone = np.maximum(alone, _lone_record(rules, drawn, place))
            continue
        found = largest_ratio(_outcomes(side, drawn, place, direction), drawn.law(place))
        if setting == "run":
            runs[direction] = np.maximum(runs[direction], found)
        else:
            alone = np.maximum(alone, found)
    return np.maximum(alone, runs["left"] + runs["right"])


def _lone_record(rules: Rules, drawn: Drawn, place: int) -> Floats:
    both = [rules.sides["record", place, direction] for direction in ("left", "right")]
    left, right = (
        _outcomes(side, drawn, place, direction)
        for side, direction in zip(both, ("left", "right"), strict=True)
    )
    return joint_leakage(left, right, drawn.law(place), rules.kind.k)


def _outcomes(side: Side, drawn: Drawn, place: int, direction: str) -> Floats:
    """(M, O, S) likelihoods of what a side may show, given the start context."""
    walk = _Walk(drawn, place, direction)
    if isinstance(side, Local):
        if side.is_window or drawn.kind.order > 1:
            return walk.window(side.reach)
        return walk.sure(walk.first_release(side))
    if walk.room is not None and walk.room < side.deadline:
        return walk.window(side.reach)  # it cannot look (S5)
    found = list(walk.stops(side))
    if direction == "left" and drawn.kind.endless(place):
        found.append(walk.window(side.reach))  # nor can it in a chain that began not long ago
    return walk.sure(np.concatenate(found, axis=1))


class _Walk:
    """One side of a core. All likelihoods are (M, S shown, S start)."""

    def __init__(self, drawn: Drawn, place: int, direction: str) -> None:
        self.drawn, self.place, self.right = drawn, place, direction == "right"
        kind = drawn.kind
        #: Records beyond the core, where that is limited by the places themselves.
        self.room = kind.beyond(place) if self.right else kind.before(place)
        if not self.right and self.room is not None:
            self.room = max(self.room - kind.order + 1, 0)
        law = drawn.law(place)
        self.inverse = np.divide(1.0, law, out=np.zeros_like(law), where=law > 0)
        self.occurs = law > 0
        #: Members in which a likelihood may have vanished.
        self.vanished = np.zeros(len(law), dtype=bool)

    def sure(self, outcomes: Floats) -> Floats:
        """The outcomes, but members in which some may have vanished leak without limit."""
        if self.vanished.any():
            last = np.arange(outcomes.shape[2]) % self.drawn.kind.k
            outcomes[self.vanished, 0], outcomes[self.vanished, 1] = last == 0, last > 0
        return outcomes

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
        if self.room is not None and self.room <= size:
            return np.ones((len(self.inverse), 1, self.inverse.shape[1]))
        seen = order if self.room is None else min(order, self.room - size)
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

    def first_release(self, side: Local) -> Floats:
        """The first record released and its value; nothing, up to a real end (F1).

        Of many outcomes those with the largest ratio of each pair of start values are kept.
        """
        members, k = self.inverse.shape
        best = np.zeros((members, k, k)), np.zeros((members, k, k, k))
        hidden = np.broadcast_to(np.eye(k), (members, k, k))
        reach = side.reach if self.room is None else min(side.reach, self.room)
        for distance in range(1, reach + 1):
            hidden = self._across(distance - 1, distance) @ hidden
            chances = side.redaction[distance - 1][:, np.newaxis]
            shown = hidden * self._shown(distance)
            self._keep(best, shown[:, side.redaction[distance - 1] < 1])
            hidden = shown * chances
            most = hidden.max(axis=(1, 2), keepdims=True)
            hidden = hidden / np.where(most > 0, most, 1.0)
            self._watch(hidden)
        if self.room is None or self.room > reach:
            last = self._across(reach, reach + 1) @ hidden
            self._keep(best, last * self._shown(reach + 1))
        else:
            law = self.drawn.law(self._at(reach))[:, np.newaxis, :]
            nothing = hidden.sum(axis=1, keepdims=True) if self.right else law @ hidden
            self._keep(best, nothing)
        if not self.right and self.drawn.kind.endless(self.place):
            for room in range(self.place, side.reach + 1):
                self._keep(best, self._nothing_since_start(side.redaction[:room]))
        return best[1].reshape(members, k * k, k)

    def _nothing_since_start(self, redaction: Floats) -> Floats:
        """(M, 1, k) nothing is released between the first record and the start value."""
        mass = self.drawn.law(0)[:, np.newaxis, :]
        for at, chances in enumerate(redaction[::-1]):
            mass = (mass * chances) @ self.drawn.kernel(min(at, self.drawn.kind.places - 1))
            most = mass.max(axis=(1, 2), keepdims=True)
            mass = mass / np.where(most > 0, most, 1.0)
        return mass

    def _keep(self, best: tuple[Floats, Floats], likelihood: Floats) -> None:
        """Keep outcomes whose ratio exceeds the best of their pair so far. best: ratios (M, x, y)
        of x over y, and the outcome (M, x, y, S) of each.
        """
        ratios, outcomes = best
        given = np.where(self.occurs[:, np.newaxis], self._given(likelihood), 0.0)
        for one in np.moveaxis(given, 1, 0):
            with np.errstate(divide="ignore", invalid="ignore"):
                here = one[:, :, np.newaxis] / one[:, np.newaxis, :]
            here[np.isnan(here) | ~self.occurs[:, np.newaxis, :]] = 0.0
            better = here > ratios
            ratios[better] = here[better]
            shown = np.broadcast_to(one[:, np.newaxis, np.newaxis, :], outcomes.shape)
            outcomes[better] = shown[better]

    # ---- stopping rules

    def stops(self, side: Stops) -> Iterator[Floats]:
        """Level, far class and context of each stop; at the deadline the far context (S1)."""
        classes = int(side.far.max()) + 1
        levels = side.levels.tolist()
        step = self._across(0, levels[0])
        going = np.broadcast_to(step[:, np.newaxis], (len(step), classes, *step.shape[1:]))
        for number, (near, beyond) in enumerate(pairwise(levels)):
            self._watch(going)
            chances = np.swapaxes(side.stop[number], 1, 2)  # class, shown, start
            seen = self._leads_to(near, side) * self._shown(near).swapaxes(1, 2)
            # outcomes that no start context allows are left out
            far, at = np.nonzero(chances.any(axis=2))
            stopped = going[:, far, at] * chances[far, at] * seen[:, far, at, np.newaxis]
            yield self._given(stopped)
            going = self._across(near, beyond)[:, np.newaxis] @ (going * (1.0 - chances))
        contexts = np.arange(len(side.far))
        yield self._given(going[:, side.far, contexts] * self._shown(levels[-1]))

    def _leads_to(self, near: int, side: Stops) -> Floats:
        """(M or 1, C, S) 1 where some context of a far class stands beyond a level's context."""
        some = self.drawn
        if np.all(some.rows > 0):  # then all chains have the same zeros
            some = next(some.parts(1))
        walk = _Walk(some, self.place, "right" if self.right else "left")
        leads = (walk._across(near, side.deadline) * walk._shown(side.deadline)) > 0
        if self.right:
            leads = walk._across(near, side.deadline) > 0
        found = [leads[:, side.far == one].any(axis=1) for one in range(int(side.far.max()) + 1)]
        return np.stack(found, axis=1).astype(np.float64)

    def _watch(self, likelihoods: Floats) -> None:
        """Mark members in which the next step might make a likelihood 0 that is not."""
        if likelihoods.min() < _VANISHING:
            small = (likelihoods > 0) & (likelihoods < _VANISHING)
            self.vanished |= small.reshape(len(small), -1).any(axis=1)
