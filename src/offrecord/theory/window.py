"""The smallest windows that keep ε, for many members at once.

Hiding more never raises the leakage of a member (F3), so sizes are found by bisection: a size is
tried on the members that exceed ε at the smaller ones alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from offrecord.models.base import Integers, Mask
from offrecord.models.members import Members
from offrecord.theory.pairs import record_exceeds, side_leakages
from offrecord.theory.sides import local_outcomes, margin_beyond

#: Records on one side beyond which no window is tried: of 2,986 plausible tables the widest needed
#: 7,524.
LONGEST = 100_000
_PILOT = 500  # members that bracket the size: 8,000 of order 5 take 2 s instead of 15
# Numbers of outcomes judged at once, 8 MB: with 128 MB a third of the time went into new memory.
_CHUNK = 2**20
_FEW = 100  # members whose powers of the kernel are kept from one size to the next

#: Which of some members exceed ε with so many records redacted to the left and right.
Judge = Callable[[Members, int, int], Mask]


def judge_of(kind: str, place: int, epsilon: float) -> Judge:
    """How the windows of a setting are judged.

    Returns a function of members and the sizes beyond the core: (M,) whether a member exceeds ε.
    """

    def judged(members: Members, left: int, right: int) -> Mask:
        size = max(_CHUNK // members.contexts**2, 1)
        if members.count <= size:
            found = [_exceeds(members, kind, place, left, right, epsilon)]
            if members.count > _FEW:
                members.forget()
            return found[0]
        parts = members.parts(size)
        return np.concatenate([_exceeds(one, kind, place, left, right, epsilon) for one in parts])

    return judged


def _exceeds(
    members: Members, kind: str, place: int, left: int, right: int, epsilon: float
) -> Mask:
    law, found = members.law(place), []
    if kind != "first":
        rows = np.broadcast_to(1.0, (left, members.k))
        found.append(local_outcomes(rows, members, place, "left"))
    if kind != "last":
        rows = np.broadcast_to(1.0, (right, members.k))
        found.append(local_outcomes(rows, members, place, "right"))
    if kind == "record":
        return record_exceeds(found[0], found[1], law, members.last_value, epsilon)
    return np.asarray(np.sum([side_leakages(one, law) for one in found], axis=0) > epsilon)


def smallest_windows(
    members: Members,
    kind: str,
    place: int,
    epsilon: float,
    allowed: int,
    before: tuple[int, int] | None = None,
) -> tuple[int, int] | None:
    """The smallest window of a setting that enough members keep.

    Both sides are as long as each other, counted from the private record, up to one record. before:
    the window of the same members at a larger ε.

    Returns how many records are redacted beyond the core to the left and right; None if none of up
    to LONGEST records is enough.
    """
    judge = judge_of(kind, place, epsilon)
    members.law(place)  # once for all parts of the members
    # a lone record's core holds the records before it too: they are a part of its left side
    ahead = members.order - 1 if kind == "record" else 0

    def exceeds(some: Members, size: int) -> Mask:
        return judge(some, *_cut(members, place, size - ahead, size))

    asked, begin = np.arange(members.count), 0
    if before is not None:
        asked, begin = _failing(members, judge, asked, before), max(before)
        if len(asked) <= allowed:
            return before
    elif members.count > _PILOT:
        # sizes that many of the first members exceed are not tried on all
        pilot = np.arange(_PILOT)
        begin = (_smallest(members, exceeds, pilot, _PILOT // 10, 0) or (0,))[0]
    found = _smallest(members, exceeds, asked, allowed, begin)
    if found is None:
        return None
    size, failing = found
    # one record less on one side may do: both sides grew at once
    best = _cut(members, place, size - ahead, size)
    smaller = _cut(members, place, size - ahead - 1, size - 1)
    if before is not None and size == begin:
        smaller = before
    for fewer in ((1, 0), (0, 1)):
        tried = max(best[0] - fewer[0], 0), max(best[1] - fewer[1], 0)
        if tried == best:
            continue
        # whoever keeps a smaller window keeps this one (F3); at a chain's end it is not smaller
        within = smaller[0] <= tried[0] and smaller[1] <= tried[1]
        some = failing if within else np.arange(members.count)
        if _is_kept(members, judge, some, tried, allowed):
            return tried
    return best


def _is_kept(
    members: Members, judge: Judge, asked: Integers, sizes: tuple[int, int], allowed: int
) -> bool:
    """Whether at most `allowed` members exceed; most windows that are too small show it early."""
    count = 0
    for begin in range(0, len(asked), _PILOT):
        count += len(_failing(members, judge, asked[begin : begin + _PILOT], sizes))
        if count > allowed:
            return False
    return True


def _failing(members: Members, judge: Judge, asked: Integers, sizes: tuple[int, int]) -> Integers:
    """Those of the members asked that exceed ε."""
    return asked[judge(members.part(asked), *sizes)]


# Sizes of at least 0, no longer than the margin of a place.
def _cut(members: Members, place: int, left: int, right: int) -> tuple[int, int]:
    margins = margin_beyond(members, place, "left"), margin_beyond(members, place, "right")
    left, right = (
        max(size if margin is None else min(size, margin), 0)
        for size, margin in zip((left, right), margins, strict=True)
    )
    return left, right


def _smallest(
    members: Members,
    exceeds: Callable[[Members, int], Mask],
    asked: Integers,
    allowed: int,
    begin: int,
) -> tuple[int, Integers] | None:
    """The smallest size from `begin` on that all but `allowed` of the members asked keep, and those
    of them that may exceed with one record less.
    """
    low, high, open_at_low = begin - 1, begin, asked
    while True:
        failing = open_at_low[exceeds(members.part(open_at_low), high)]
        if len(failing) <= allowed:
            break
        if high >= LONGEST:
            return None
        low, open_at_low, high = high, failing, min(max(2 * high, 1), LONGEST)
    while high - low > 1:
        middle = (low + high) // 2
        failing = open_at_low[exceeds(members.part(open_at_low), middle)]
        if len(failing) <= allowed:
            high = middle
        else:
            low, open_at_low = middle, failing
    return high, open_at_low


def shortest_window(
    members: Members, kind: str, place: int, epsilon: float
) -> tuple[int, int] | None:
    """The window with the fewest records that every member keeps, of any shape.

    More redaction never leaks more (F3), so the windows that keep ε are bounded by a staircase, and
    a walk along it meets the smallest sum: about twice as many evaluations as records.

    Returns how many records are redacted to the left and right, the most even of the smallest; None
    if none of up to LONGEST records is enough.
    """
    judge = judge_of(kind, place, epsilon)
    sides = (0 if kind == "first" else LONGEST, 0 if kind == "last" else LONGEST)
    most = _cut(members, place, *sides)
    return staircase(lambda left, right: not judge(members, left, right).any(), most)


def staircase(
    keeps: Callable[[int, int], bool], margins: tuple[int, int]
) -> tuple[int, int] | None:
    """The smallest window of any shape, by whether a window is enough.

    keeps: of sizes to the left and right; true for all larger windows if it is for one. Returns the
    most even one of the smallest; None if none of up to LONGEST records is enough.
    """
    most = min(margins[0], LONGEST), min(margins[1], LONGEST)
    low, high = -1, 0
    while not keeps(min(high, most[0]), min(high, most[1])):
        if high >= max(most):
            return None
        low, high = high, max(2 * high, 1)
    while high - low > 1:
        middle = (low + high) // 2
        enough = keeps(min(middle, most[0]), min(middle, most[1]))
        low, high = (low, middle) if enough else (middle, high)
    best = min(high, most[0]), min(high, most[1])
    left, right, step = 0, most[1], 1
    while left <= min(most[0], sum(best) - 1):
        right = min(right, sum(best) - left - 1)
        if keeps(left, right):
            best, step = (left, right), 1
        elif left + step <= most[0] and not keeps(left + step, right):
            left, step = left + step + 1, 2 * step  # none of those between is enough either
        else:
            left, step = left + 1, 1
    total = sum(best)
    even = sorted(range(max(total - most[1], 0), min(total, most[0]) + 1), key=_unevenness(total))
    return next(
        (one, total - one) for one in even if (one, total - one) == best or keeps(one, total - one)
    )


# How much longer one side of a window is than the other, by its left side.
def _unevenness(total: int) -> Callable[[int], int]:
    return lambda left: abs(total - 2 * left)
