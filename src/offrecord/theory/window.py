"""The smallest windows that keep ε, for many members at once.

Hiding more never raises the leakage of a member (F3), so sizes are found by bisection: a size is
tried on the members that exceed ε at the smaller ones alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from offrecord.models.base import Integers, Mask
from offrecord.models.members import Members
from offrecord.theory.pairs import record_exceeds, side_leakages
from offrecord.theory.sides import SIDES, local_outcomes, margin_beyond

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
    """(M,) whether members exceed ε, by the sizes of a setting's window beyond the core."""

    def judged(members: Members, left: int, right: int) -> Mask:
        size = max(_CHUNK // members.contexts**2, 1)
        parts = members.parts(size)
        found = [_exceeds(one, kind, place, (left, right), epsilon) for one in parts]
        # bisection asks a few members for many sizes, and many members for few
        if _FEW < members.count <= size:
            members.forget()
        return np.concatenate(found)

    return judged


def _exceeds(
    members: Members, kind: str, place: int, sizes: tuple[int, int], epsilon: float
) -> Mask:
    law, absent = members.law(place), {"first": "left", "last": "right"}.get(kind)
    found = [
        local_outcomes(np.ones((size, members.k)), members, place, side)
        for side, size in zip(SIDES, sizes, strict=True)
        if side != absent
    ]
    if kind == "record":
        return record_exceeds(found[0], found[1], law, members.last_value, epsilon)
    return np.asarray(np.sum([side_leakages(one, law) for one in found], axis=0) > epsilon)


def _first_enough(is_enough: Callable[[int], bool], begin: int, longest: int) -> int | None:
    """The smallest size from `begin` on that is enough; None if `longest` is not."""
    low, high = begin - 1, begin
    while not is_enough(high):
        if high >= longest:
            return None
        low, high = high, min(max(2 * high, 1), longest)
    return low + 1 + bisect_left(range(low + 1, high), True, key=is_enough)


@dataclass(frozen=True)
class _Windows:
    """The windows of one setting, tried on members."""

    members: Members
    kind: str
    place: int
    judge: Judge

    def cut(self, left: int, right: int) -> tuple[int, int]:
        """Sizes of at least 0, no longer than the margins of the place."""
        margins = [margin_beyond(self.members, self.place, side) for side in SIDES]
        left, right = (
            max(size if margin is None else min(size, margin), 0)
            for size, margin in zip((left, right), margins, strict=True)
        )
        return left, right

    def even(self, size: int) -> tuple[int, int]:
        """Sizes beyond the core of a window with `size` records on each side."""
        # a lone record's core holds the records before it too: they are a part of its left side
        ahead = self.members.order - 1 if self.kind == "record" else 0
        return self.cut(size - ahead, size)

    def failing(self, asked: Integers, sizes: tuple[int, int]) -> Integers:
        """Those of the members asked that exceed ε."""
        everyone = len(asked) == self.members.count  # whose powers of the kernel may be known
        return asked[self.judge(self.members if everyone else self.members.part(asked), *sizes)]

    def is_kept(self, asked: Integers, sizes: tuple[int, int], allowed: int) -> bool:
        """Whether at most `allowed` members exceed ε."""
        count = 0
        # most windows that are too small show it in the first members
        for begin in range(0, len(asked), _PILOT):
            count += len(self.failing(asked[begin : begin + _PILOT], sizes))
            if count > allowed:
                return False
        return True

    def smallest(
        self, asked: Integers, allowed: int, begin: int, longest: int = LONGEST
    ) -> tuple[int, Integers] | None:
        """The smallest even size from `begin` on that all but `allowed` of the members asked keep,
        and those of them that may exceed ε with one record less.
        """
        is_open = asked

        def is_enough(size: int) -> bool:
            nonlocal is_open
            # members that keep a smaller window keep all larger ones (F3)
            failing = self.failing(is_open, self.even(size))
            if len(failing) > allowed:
                is_open = failing
            return len(failing) <= allowed

        size = _first_enough(is_enough, begin, longest)
        return None if size is None else (size, is_open)


def even_window(
    members: Members, place: int, epsilon: float, allowed: int, longest: int
) -> int | None:
    """How many records on each side of a lone one the smallest even window redacts that all but
    `allowed` members keep; None beyond `longest`.
    """
    windows = _Windows(members, "record", place, judge_of("record", place, epsilon))
    members.law(place)  # once for all parts of the members
    found = windows.smallest(np.arange(members.count), allowed, 0, longest)
    return None if found is None else found[0]


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
    windows = _Windows(members, kind, place, judge_of(kind, place, epsilon))
    members.law(place)  # once for all parts of the members
    asked, begin = np.arange(members.count), 0
    if before is not None:
        asked, begin = windows.failing(asked, before), max(before)
        if len(asked) <= allowed:
            return before
    elif members.count > _PILOT:
        # sizes that many of the first members exceed are not tried on all
        pilot = windows.smallest(asked[:_PILOT], _PILOT // 10, 0)
        begin = 0 if pilot is None else pilot[0]
    found = windows.smallest(asked, allowed, begin)
    if found is None:
        return None
    size, failing = found
    smaller = before if before is not None and size == begin else windows.even(size - 1)
    return _trimmed(windows, windows.even(size), smaller, failing, allowed)


def _trimmed(
    windows: _Windows,
    best: tuple[int, int],
    smaller: tuple[int, int],
    failing: Integers,
    allowed: int,
) -> tuple[int, int]:
    """A window, or that with one record less on one side if this does: both sides grew at once.

    failing: the members that may exceed ε with the `smaller` window.
    """
    for fewer in ((1, 0), (0, 1)):
        tried = max(best[0] - fewer[0], 0), max(best[1] - fewer[1], 0)
        if tried == best:
            continue
        # whoever keeps a smaller window keeps this one (F3); at a chain's end it is not smaller
        within = smaller[0] <= tried[0] and smaller[1] <= tried[1]
        some = failing if within else np.arange(windows.members.count)
        if windows.is_kept(some, tried, allowed):
            return tried
    return best


def shortest_window(
    members: Members, kind: str, place: int, epsilon: float
) -> tuple[int, int] | None:
    """The window with the fewest records that every member keeps, of any shape; see `staircase`."""
    judge = judge_of(kind, place, epsilon)
    windows = _Windows(members, kind, place, judge)
    most = windows.cut(0 if kind == "first" else LONGEST, 0 if kind == "last" else LONGEST)
    return staircase(lambda left, right: not judge(members, left, right).any(), most)


def staircase(
    keeps: Callable[[int, int], bool], margins: tuple[int, int]
) -> tuple[int, int] | None:
    """The smallest window of any shape, by whether a window is enough.

    keeps: of sizes to the left and right; true for all larger windows if it is for one. Returns the
    most even one of the smallest; None if none of up to LONGEST records is enough.
    """
    # More redaction never leaks more (F3): the windows that are enough are bounded by a staircase,
    # and a walk along it meets the smallest sum in about twice as many steps as records.
    most = min(margins[0], LONGEST), min(margins[1], LONGEST)

    def evenly(size: int) -> tuple[int, int]:
        return min(size, most[0]), min(size, most[1])

    even = _first_enough(lambda size: keeps(*evenly(size)), 0, max(most))
    if even is None:
        return None
    best = _walked(keeps, most, evenly(even))
    return next((other for other in _as_small(best, most) if other == best or keeps(*other)), best)


def _as_small(best: tuple[int, int], most: tuple[int, int]) -> list[tuple[int, int]]:
    """All windows of as many records, the most even ones first."""
    total = sum(best)
    lefts = range(max(total - most[1], 0), min(total, most[0]) + 1)
    windows = [(left, total - left) for left in lefts]
    return sorted(windows, key=lambda sizes: abs(sizes[1] - sizes[0]))


def _walked(
    keeps: Callable[[int, int], bool], most: tuple[int, int], best: tuple[int, int]
) -> tuple[int, int]:
    """A window of the smallest sum, by a walk along the staircase from the left."""
    left, right, step = 0, most[1], 1
    while left <= min(most[0], sum(best) - 1):
        right = min(right, sum(best) - left - 1)
        if keeps(left, right):
            best, step = (left, right), 1
        elif left + step <= most[0] and not keeps(left + step, right):
            left, step = left + step + 1, 2 * step  # none of those between is enough either
        else:
            left, step = left + 1, 1
    return best
