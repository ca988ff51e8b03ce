"""What an observer of one side sees of a local rule, for all members at once (F1, R6).

Only the first release beyond the core says anything about it, so a side has few outcomes. Walking
outwards with U = V·K and V = U·diag(redaction), the outcome "first release: value j at distance d"
has likelihood U[x, j] given the start context x, up to a factor that x does not change. To the left
K is the transposed kernel and x is divided by its own law: the law of what is released is such a
factor. Docs: proofs/F1-first-release.md, proofs/rounding.md.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    margin = margin_beyond(members, place, direction) if margin is None else margin
    if np.all(redaction == 1):
        return _window_outcomes(len(redaction), members, place, direction, margin)
    # of higher order one release does not end the walk, m in a row do (R6)
    if members.order > 1:
        raise InputError(
            f"of order {members.order} windows are judged exactly, other local rules are not"
        )
    found, k = np.zeros((members.count, 0, members.k)), members.k
    for likelihoods, certain in first_releases(redaction, members, place, direction, margin):
        found = np.concatenate((found, np.swapaxes(likelihoods, 1, 2)), axis=1)
        if found.shape[1] > 4 * k * k:  # a long side has an outcome for each record and value
            found = _widest(found)
        found = _refused(found, ~certain)
    return found


def local_redactions(
    redaction: Floats, members: Members, place: int, direction: Direction
) -> Floats:
    """(M,) expected number of records redacted beyond the core, in a chain with all its margin."""
    margin = margin_beyond(members, place, direction)
    count = len(redaction) if margin is None else min(len(redaction), margin)
    if np.all(redaction == 1):
        return np.full(members.count, float(count))
    if members.places is None:
        return np.asarray(of_value(members.law(), members.k) @ redaction[:count].sum(axis=0))
    total = np.zeros(members.count)
    near = members.order - 1 if direction == "left" else 0
    for distance in range(1, count + 1):
        steps = distance if direction == "right" else -distance - near
        law = of_value(members.law(members.place_after(place, steps)), members.k)
        total += law @ redaction[distance - 1]
    return total


def margin_beyond(members: Members, place: int, direction: Direction) -> int | None:
    """How many records lie beyond the core on one side; None: as many as a rule may reach."""
    before, after = members.margin(place)
    if direction == "right":
        return after
    return None if before is None else max(before - members.order + 1, 0)


def kernel_product(members: Members, place: int, steps: int, direction: Direction) -> Floats:
    """(M, S, S) likelihood of the context so many steps from the start context.

    To the right Pr(context c | start x) in row x; to the left Pr(x | c) / Pr(x) in row x,
    which is Pr(c | x) up to the law of c, and 0 for contexts c that do not occur.
    """
    if direction == "right":
        return _forwards(members, place, steps)
    source = place_at(members, place, -steps)
    product = np.swapaxes(_forwards(members, source, steps), 1, 2)
    product = product * _inverse(members.law(place))[:, :, np.newaxis]
    return product * _occurs(members, place, steps)[:, np.newaxis, :]


def place_at(members: Members, place: int, steps: int) -> int:
    """The place so many steps from another; 0 where places make no difference."""
    if ends_anywhere(members, place) and steps < 0:
        # all further records stand at the last place too, so a walk back from it may be longer
        # than the places; its kernels are all alike then
        return max(place + steps, 0)
    return members.place_after(place, steps)


def ends_anywhere(members: Members, place: int) -> bool:
    """Whether this place is that of all later records too: the margin to the left differs."""
    places = members.places
    return places is not None and places.goes_on and place == places.count - 1


def _forwards(members: Members, place: int, steps: int) -> Floats:
    """(M, S, S) the product of the kernels from a place on."""
    if members.rows.shape[1] == 1 or steps == 0:
        return members.ahead(0 if members.places is None else place, steps)
    product = members.kernel(place)
    for step in range(1, steps):
        product = product @ members.kernel(place_at(members, place, step))
    return product


def has_vanished(
    product: Floats, members: Members, place: int, steps: int, direction: Direction
) -> Mask:
    """(M,) members with a possible step below LEAST, in a row or in the product: their leakage
    counts as endless.
    """
    tiny, empty = _has_tiny(members, place), np.any(product < LEAST, axis=(1, 2))
    if empty.any():  # zeros are common where steps are impossible: compare with what is possible
        some = np.flatnonzero(empty)
        possible = _possible(members.part(some), place, steps, direction)
        tiny[some] |= np.any(possible & (product[some] < LEAST), axis=(1, 2))
    return tiny


def _has_tiny(members: Members, place: int) -> Mask:
    """(M,) whether a member has a possible step or start context below LEAST."""
    law = members.law(place)
    steps = np.any((members.rows > 0) & (members.rows < LEAST), axis=(1, 2, 3))
    return np.asarray(steps | np.any((law > 0) & (law < LEAST), axis=1))


def _possible(members: Members, place: int, steps: int, direction: Direction) -> Mask:
    """(M, S, S) which entries of `kernel_product` are possible."""
    starts = (members.law(place) > 0)[:, :, np.newaxis]
    if direction == "right":
        return _pattern(members, place, steps) & starts
    back = np.swapaxes(_pattern(members, place_at(members, place, -steps), steps), 1, 2)
    return np.asarray(back & starts & (_occurs(members, place, steps) > 0)[:, np.newaxis, :])


def _pattern(members: Members, place: int, steps: int) -> Mask:
    """(M, S, S) which contexts are possible so many steps on."""
    if members.rows.shape[1] == 1:
        return pattern_power(members.kernel() > 0, steps)
    size = (members.count, members.contexts, members.contexts)
    found: Mask = np.broadcast_to(np.eye(members.contexts, dtype=bool), size)
    for step in range(steps):
        found = found @ (members.kernel(place_at(members, place, step)) > 0)
    return found


def _refused(outcomes: Floats, members: Mask) -> Floats:
    """(M, O, S) outcomes with more of them, of endless leakage for these members."""
    if not np.any(members):
        return outcomes
    contexts = outcomes.shape[2]
    endless = members[:, np.newaxis, np.newaxis] * np.eye(contexts)
    return np.concatenate((outcomes, endless), axis=1)


def _inverse(law: Floats) -> Floats:
    """1 / law, and 0 where that is 0 or too small."""
    return np.divide(1.0, law, out=np.zeros_like(law), where=law > LEAST)


def _occurs(members: Members, place: int, steps: int) -> Floats:
    """(M, S) 1 for contexts that may stand so many steps before a place, else 0."""
    possible = members.law(place_at(members, place, -steps)) > 0
    if ends_anywhere(members, place):  # later records count as standing there too
        possible = possible | (members.law(place) > 0)
    return np.asarray(possible, dtype=np.float64)


def _window_outcomes(
    size: int, members: Members, place: int, direction: Direction, margin: int | None
) -> Floats:
    """(M, O, S) the nearest `order` released records, fewer at a real end (R6)."""
    order = members.order
    if margin is not None and margin <= size:
        return np.ones((members.count, 1, members.contexts))
    seen = order if margin is None else min(margin - size, order)
    found = [context_outcomes(members, place, size + seen, seen, direction)]
    if direction == "left" and ends_anywhere(members, place):
        # the chain's real beginning may leave fewer of them
        ends = [few for few in range(1, order) if size + few + order - 1 >= place]
        found += [context_outcomes(members, place, size + few, few, direction) for few in ends]
    return np.concatenate(found, axis=1)


def context_outcomes(
    members: Members, place: int, steps: int, seen: int, direction: Direction
) -> Floats:
    """(M, k**seen, S) likelihoods of what the nearest released context shows (R6).

    seen: how many of its records are released, the furthest from the start context; fewer than the
    order only at a chain's end.
    """
    found = kernel_product(members, place, steps, direction)
    vanished = has_vanished(found, members, place, steps, direction)
    values = members.k**seen
    if seen < members.order and direction == "right":
        found = found.reshape(*found.shape[:2], -1, values).sum(axis=2)
    elif seen < members.order:
        first = members.law(members.order - 1 if members.places is not None else 0)
        found = (found * first[:, np.newaxis, :]).reshape(*found.shape[:2], values, -1).sum(axis=3)
    return _refused(np.swapaxes(found, 1, 2), vanished)


def first_releases(
    redaction: Floats, members: Members, place: int, direction: Direction, margin: int | None
) -> Iterator[tuple[Floats, Mask]]:
    """F1's walk away from the core, for chains of order 1: by distance, (M, S, O) likelihoods of
    first releases given the start value, and (M,) whether none became too small.

    redaction: (reach, k) probability of redaction by distance and value; beyond, 0. margin: how
    many records lie there, None for any number.
    """
    reach = len(redaction) if margin is None else min(len(redaction), margin)
    always = int(np.argmin(np.append(np.all(redaction[:reach] == 1, axis=1), False)))
    state = kernel_product(members, place, always, direction)
    certain = ~has_vanished(state, members, place, always, direction)
    for distance in range(always + 1, reach + 1):
        reached = one_further(state, members, place, distance, direction)
        row = redaction[distance - 1]
        yield reached[:, :, row < 1], certain
        # everything is released here: nothing further counts (F1)
        if not row.any():
            return
        state = _scaled(reached * row)
        certain = certain & ~np.any((state > 0) & (state < LEAST), axis=(1, 2))
    if margin is None or margin > reach:
        yield one_further(state, members, place, reach + 1, direction), certain
    else:
        yield nothing_released(state, members, place, reach, direction)[:, :, np.newaxis], certain
    if direction == "left" and ends_anywhere(members, place):
        for end in range(place, len(redaction) + 1):
            yield _nothing_before(members, place, redaction[:end])[:, :, np.newaxis], certain


def _scaled(state: Floats) -> Floats:
    """Likelihoods by the largest of each member."""
    largest = state.max(axis=(1, 2), keepdims=True)
    # a factor that all start values share cancels in every ratio
    return np.asarray(state / np.where(largest > 0, largest, 1.0))


def one_further(
    state: Floats, members: Members, place: int, distance: int, direction: Direction
) -> Floats:
    """(M, S, S) likelihoods one record further, at a distance from the start context."""
    if direction == "right":
        return np.asarray(state @ members.kernel(place_at(members, place, distance - 1)))
    kernel = members.kernel(place_at(members, place, -distance))
    occurs = _occurs(members, place, distance)
    return np.asarray(state @ np.swapaxes(kernel, 1, 2)) * occurs[:, np.newaxis, :]


def nothing_released(
    state: Floats, members: Members, place: int, reach: int, direction: Direction
) -> Floats:
    """(M, S) that nothing is released up to the chain's end, so many records away."""
    if direction == "right":
        return np.asarray(state.sum(axis=2))
    law = members.law(place_at(members, place, -reach))
    return np.asarray(np.einsum("mxi,mi->mx", state, law))


def _nothing_before(members: Members, place: int, rows: Floats) -> Floats:
    """(M, k) that nothing is released from the chain's first record up to the start value."""
    state = members.law(0)
    for step, row in enumerate(rows[::-1]):
        state = state * row
        state = state / np.maximum(state.max(axis=1, keepdims=True), np.finfo(float).tiny)
        kernel = members.kernel(min(step, members.place_count - 1))
        state = np.asarray(np.einsum("mi,mij->mj", state, kernel))
    return np.asarray(state * _inverse(members.law(place)))


def _widest(outcomes: Floats) -> Floats:
    """(M, k·(k − 1), k) of each pair of values the outcome with the largest ratio."""
    members, _, k = outcomes.shape
    best = []
    for x, y in permutations(range(k), 2):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = outcomes[:, :, x] / outcomes[:, :, y]
        ratio[outcomes[:, :, x] == 0] = -1.0
        best.append(outcomes[np.arange(members), np.argmax(ratio, axis=1)])
    return np.stack(best, axis=1)
