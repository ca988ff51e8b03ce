"""What an observer of one side sees of a local rule, for all members at once (F1, R6).

Only the first release beyond the core says anything about it, so a side has few outcomes. Walking
outwards with U = V·K and V = U·diag(redaction), the outcome "first release: value j at distance d"
has likelihood U[x, j] given the start context x, up to a factor that x does not change. To the left
K is the transposed kernel and x is divided by its own law: the law of what is released is such a
factor. Docs: proofs/F1-first-release.md, proofs/rounding.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, Literal

import numpy as np

from offrecord.errors import InputError
from offrecord.models.base import Floats, Mask
from offrecord.models.members import of_value
from offrecord.models.stationary import pattern_power

if TYPE_CHECKING:
    from offrecord.models.members import Members

Direction = Literal["left", "right"]
SIDES: tuple[Direction, Direction] = ("left", "right")

#: Likelihoods below this, relative to the largest at the same distance, might vanish in the next
#: step; a chain that comes to them counts as leaking without limit. Products of two stay normal.
LEAST = 1e-150


def local_outcomes(
    redaction: Floats,
    members: Members,
    place: int,
    direction: Direction,
    margin: int | None = None,
) -> Floats:
    """(M, O, S) likelihood of each outcome of one side given the start context, up to factors.

    redaction: (reach, k) probability of redaction by distance and value; beyond, 0. margin: how
    many records lie there; without it as many as the place says. Raises InputError for a rule of
    order 2 and more that is not a window.
    """
    walk = Walk(members, place, direction)
    margin = margin_beyond(members, place, direction) if margin is None else margin
    if np.all(redaction == 1):
        return _window_outcomes(walk, len(redaction), margin)
    # of higher order one release does not end the walk, m in a row do (R6)
    if members.order > 1:
        raise InputError(
            f"of order {members.order} windows are judged exactly, other local rules are not"
        )
    return _collected(first_releases(walk, redaction, margin), members)


def _collected(outcomes: Iterator[tuple[Floats, Mask]], members: Members) -> Floats:
    found, most = np.zeros((members.count, 0, members.k)), 4 * members.k**2
    for likelihoods, certain in outcomes:
        found = np.concatenate((found, np.swapaxes(likelihoods, 1, 2)), axis=1)
        if found.shape[1] > most:  # a long side has an outcome for each record and value
            found = _widest(found)
        found = _refused(found, ~certain)
    return found


def local_redactions(
    redaction: Floats, members: Members, place: int, direction: Direction
) -> Floats:
    """(M,) expected number of records redacted beyond the core, in a chain with all its margin."""
    walk = Walk(members, place, direction)
    rows = redaction[: margin_beyond(members, place, direction)]
    # without a sum of shares, which would round
    if np.all(redaction == 1):
        return np.full(members.count, float(len(rows)))
    if members.places is None:
        return np.asarray(of_value(members.law(), members.k) @ rows.sum(axis=0))
    expected = (walk.value_law(distance) @ row for distance, row in enumerate(rows, 1))
    return np.asarray(sum(expected, np.zeros(members.count)))


def margin_beyond(members: Members, place: int, direction: Direction) -> int | None:
    """How many records lie beyond the core on one side; None: as many as a rule may reach."""
    before, after = members.margin(place)
    if direction == "right":
        return after
    return None if before is None else max(before - members.order + 1, 0)


def fully_redacted(rows: Floats) -> int:
    """How many rows there are before the first that may release something."""
    return int(np.argmin(np.append(np.all(rows == 1, axis=1), False)))


@dataclass(frozen=True, eq=False)
class Walk:
    """A walk away from the start context, which ends at a place, to one side, for all members."""

    members: Members
    place: int
    direction: Direction

    @property
    def order(self) -> int:
        """Of the chains."""
        return self.members.order

    @property
    def ends_anywhere(self) -> bool:
        """Whether this place is that of all later records too: the margin to the left differs."""
        places = self.members.places
        return places is not None and places.goes_on and self.place == places.count - 1

    @property
    def law(self) -> Floats:
        """(M, S) of the start context."""
        return self.members.law(self.place)

    def law_at(self, steps: int) -> Floats:
        """(M, S) of the context so many steps after it."""
        return self.members.law(self._place(steps))

    def value_law(self, distance: int) -> Floats:
        """(M, k) of the record at a distance beyond the core."""
        # contexts end at their last record: to the left the core has all of the start context's
        steps = distance if self.direction == "right" else -distance - self.order + 1
        law = self.members.law(self.members.place_after(self.place, steps))
        return np.asarray(of_value(law, self.members.k))

    def _place(self, steps: int) -> int:
        if self.ends_anywhere and steps < 0:
            # all further records stand at the last place too, so a walk back from it may be longer
            # than the places; its kernels are all alike then
            return max(self.place + steps, 0)
        return self.members.place_after(self.place, steps)

    def product(self, steps: int) -> Floats:
        """(M, S, S) likelihood of the context so many steps from the start context.

        To the right Pr(context c | start x) in row x; to the left Pr(x | c) / Pr(x) in row x,
        which is Pr(c | x) up to the law of c, and 0 for contexts c that do not occur.
        """
        if self.direction == "right":
            return _forwards(self.members, self.place, steps)
        ahead = _forwards(self.members, self._place(-steps), steps)
        product = np.swapaxes(ahead, 1, 2) * _inverse(self.law)[:, :, np.newaxis]
        return product * self._occurs(steps)[:, np.newaxis, :]

    def one_further(self, state: Floats, distance: int) -> Floats:
        """(M, S, S) likelihoods one record further, at a distance from the start context."""
        if self.direction == "right":
            return np.asarray(state @ self.members.kernel(self._place(distance - 1)))
        kernel = self.members.kernel(self._place(-distance))
        return np.asarray(state @ np.swapaxes(kernel, 1, 2)) * self._occurs(distance)[:, np.newaxis]

    def nothing_released(self, state: Floats, reach: int) -> Floats:
        """(M, S) that nothing is released up to the chain's end, so many records away."""
        if self.direction == "right":
            return np.asarray(state.sum(axis=2))
        # states hold likelihoods up to the law of where they are: here it counts
        return np.asarray(np.einsum("mxi,mi->mx", state, self.law_at(-reach)))

    def _occurs(self, steps: int) -> Floats:
        """(M, S) 1 for contexts that may stand so many steps before the place, else 0."""
        possible = self.law_at(-steps) > 0
        if self.ends_anywhere:  # later records count as standing there too
            possible = possible | (self.law > 0)
        return np.asarray(possible, dtype=np.float64)

    def has_vanished(self, product: Floats, steps: int) -> Mask:
        """(M,) members with a possible step below LEAST, in a row or in the product: their leakage
        counts as endless.
        """
        tiny, empty = self._has_tiny(), np.any(product < LEAST, axis=(1, 2))
        if (
            empty.any()
        ):  # zeros are common where steps are impossible: compare with what is possible
            some = np.flatnonzero(empty)
            possible = replace(self, members=self.members.part(some))._possible(steps)
            tiny[some] |= np.any(possible & (product[some] < LEAST), axis=(1, 2))
        return tiny

    def _has_tiny(self) -> Mask:
        """(M,) whether a member has a possible step or start context below LEAST."""
        steps = np.any(_is_tiny(self.members.rows), axis=(1, 2, 3))
        return np.asarray(steps | np.any(_is_tiny(self.law), axis=1))

    def _possible(self, steps: int) -> Mask:
        """(M, S, S) which entries of `product` are possible."""
        starts = (self.law > 0)[:, :, np.newaxis]
        if self.direction == "right":
            return _pattern(self.members, self.place, steps) & starts
        back = np.swapaxes(_pattern(self.members, self._place(-steps), steps), 1, 2)
        return np.asarray(back & starts & (self._occurs(steps) > 0)[:, np.newaxis, :])

    def context_outcomes(self, steps: int, seen: int) -> Floats:
        """(M, k**seen, S) likelihoods of what the nearest released context shows (R6).

        seen: how many of its records are released, the furthest from the start context; fewer than
        the order only at a chain's end.
        """
        product = self.product(steps)
        shown = product if seen == self.order else self._at_end(product, seen)
        return _refused(np.swapaxes(shown, 1, 2), self.has_vanished(product, steps))

    def _at_end(self, product: Floats, seen: int) -> Floats:
        """(M, S, k**seen) of contexts of which so many records are released."""
        size, values = product.shape[:2], self.members.k**seen
        if self.direction == "right":
            return np.asarray(product.reshape(*size, -1, values).sum(axis=2))
        first = self.members.law(0 if self.members.places is None else self.order - 1)
        joint = product * first[:, np.newaxis, :]
        return np.asarray(joint.reshape(*size, values, -1).sum(axis=3))


def _is_tiny(numbers: Floats) -> Mask:
    return np.asarray((numbers > 0) & (numbers < LEAST))


def _inverse(law: Floats) -> Floats:
    """1 / law, and 0 where that is 0 or too small."""
    return np.divide(1.0, law, out=np.zeros_like(law), where=law > LEAST)


def _forwards(members: Members, place: int, steps: int) -> Floats:
    """(M, S, S) the product of the kernels from a place on."""
    if members.rows.shape[1] == 1 or steps == 0:
        return members.ahead(place, steps)
    product = members.kernel(place)
    # not by `ahead`, which keeps the product of each step: too much memory for many members
    for step in range(1, steps):
        product = product @ members.kernel(members.place_after(place, step))
    return product


def _pattern(members: Members, place: int, steps: int) -> Mask:
    """(M, S, S) which contexts are possible so many steps on."""
    if members.rows.shape[1] == 1:
        return pattern_power(members.kernel() > 0, steps)
    found: Mask = members.ahead(place, 0) > 0
    for step in range(steps):
        found = found @ (members.kernel(members.place_after(place, step)) > 0)
    return found


def _refused(outcomes: Floats, members: Mask) -> Floats:
    """(M, O, S) outcomes with more of them, of endless leakage for these members."""
    if not np.any(members):
        return outcomes
    endless = members[:, np.newaxis, np.newaxis] * np.eye(outcomes.shape[2])
    return np.concatenate((outcomes, endless), axis=1)


def _window_outcomes(walk: Walk, size: int, margin: int | None) -> Floats:
    """(M, O, S) the nearest `order` released records, fewer at a real end (R6)."""
    members, order = walk.members, walk.order
    if margin is not None and margin <= size:
        return np.ones((members.count, 1, members.contexts))
    ends = [order if margin is None else min(margin - size, order)]
    if walk.direction == "left" and walk.ends_anywhere:
        # the chain's real beginning may leave fewer of them
        ends += [few for few in range(1, order) if size + few + order - 1 >= walk.place]
    return np.concatenate([walk.context_outcomes(size + seen, seen) for seen in ends], axis=1)


def first_releases(
    walk: Walk, redaction: Floats, margin: int | None
) -> Iterator[tuple[Floats, Mask]]:
    """F1's walk away from the core, for chains of order 1: by distance, (M, S, O) likelihoods of
    first releases given the start value, and (M,) whether none became too small.

    redaction: (reach, k) probability of redaction by distance and value; beyond, 0. margin: how
    many records lie there, None for any number.
    """
    reach = len(redaction[:margin])
    # one product of kernels in the place of many steps, whose powers are kept
    always = fully_redacted(redaction[:reach])
    state = walk.product(always)
    certain = ~walk.has_vanished(state, always)
    for distance, row in enumerate(redaction[always:reach], always + 1):
        reached = walk.one_further(state, distance)
        yield reached[:, :, row < 1], certain
        # everything is released here: nothing further counts (F1)
        if not row.any():
            return
        state = scaled(reached * row)
        certain = certain & ~np.any(_is_tiny(state), axis=(1, 2))
    for outcome in _without_release(walk, redaction, state, margin):
        yield outcome, certain


def _without_release(
    walk: Walk, redaction: Floats, state: Floats, margin: int | None
) -> Iterator[Floats]:
    """(M, S, O) what follows if no record that may be redacted is released."""
    if margin is None or margin > len(redaction):
        yield walk.one_further(state, len(redaction) + 1)
    else:
        yield walk.nothing_released(state, margin)[:, :, np.newaxis]
    if walk.direction == "left" and walk.ends_anywhere:
        for end in range(walk.place, len(redaction) + 1):
            yield _nothing_before(walk, redaction[:end])[:, :, np.newaxis]


def scaled(state: Floats) -> Floats:
    """Likelihoods by the largest of each member."""
    largest = state.max(axis=(1, 2), keepdims=True)
    # a factor that all start values share cancels in every ratio
    return np.asarray(state / np.where(largest > 0, largest, 1.0))


def _nothing_before(walk: Walk, rows: Floats) -> Floats:
    """(M, k) that nothing is released from the chain's first record up to the start value."""
    members, last = walk.members, walk.members.place_count - 1
    state = members.law(0)
    # forwards from the beginning: how much lies before it is not known
    for step, row in enumerate(rows[::-1]):
        state = state * row
        state = state / np.maximum(state.max(axis=1, keepdims=True), np.finfo(float).tiny)
        state = np.asarray(np.einsum("mi,mij->mj", state, members.kernel(min(step, last))))
    return np.asarray(state * _inverse(walk.law))


def _widest(outcomes: Floats) -> Floats:
    """(M, k·(k − 1), k) of each pair of values the outcome with the largest ratio."""
    # the others change no largest ratio of any two values, alone or beside another side (F2)
    pairs = permutations(range(outcomes.shape[2]), 2)
    best = [np.argmax(_ratio(outcomes, x, y), axis=1) for x, y in pairs]
    return np.take_along_axis(outcomes, np.stack(best, axis=1)[:, :, np.newaxis], axis=1)


def _ratio(outcomes: Floats, x: int, y: int) -> Floats:
    """(M, O) how much likelier each outcome is under x than under y; −1 if impossible under x."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = outcomes[:, :, x] / outcomes[:, :, y]
    return np.where(outcomes[:, :, x] == 0, -1.0, ratio)
