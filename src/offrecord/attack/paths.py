"""Forward–backward along the records of a chain, from a core to the nearest released context.

Contexts are tuples of the last `order` values. Rows that show nothing are skipped by powers of the
kernel, so a window costs as much as two contexts; results are kept by what is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from offrecord.attack.shown import Shown
from offrecord.mechanisms.deciding import PlaceOf
from offrecord.models.base import Floats, Integers
from offrecord.models.members import Members


class Path(NamedTuple):
    """Rows that show something, in order of time, between two places of a chain."""

    chain: int
    begin: int
    rows: Integers
    end: int


@dataclass(frozen=True, eq=False, repr=False)
class Paths:
    """An attacker's chain (M = 1) on a table.

    mean: the chain. place_of: from chain numbers and steps to places.
    """

    shown: Shown
    mean: Members
    place_of: PlaceOf
    _known: dict[tuple[object, ...], Floats] = field(default_factory=dict, init=False)

    @cached_property
    def anchors(self) -> Integers:
        """Rows that end a released context."""
        return self.shown.anchors(self.mean.order)

    def place(self, chain: int, step: int) -> int:
        """The place of a record."""
        return int(self.place_of(np.array([chain]), np.array([step]))[0])

    def law(self, chain: int, step: int) -> Floats:
        """(S,) law of the context that ends at a record, before anything is seen."""
        return np.asarray(self.mean.law(self.place(chain, step))[0])

    def ahead(self, chain: int, step: int, count: int) -> Floats:
        """(S, S) from the context that ends at a record to the one `count` steps after it."""
        return np.asarray(self.mean.ahead(self.place(chain, step), count)[0])

    # ---- evidence beside a core

    def right(self, chain: int, far: int) -> Floats:
        """(S,) likelihood of all that is shown behind `far`, given the context that ends there."""
        rows = slice(*self._rows(chain, far + 1, None))
        at = int(np.searchsorted(self.anchors, rows.start + self.mean.order - 1))
        stop = rows.stop
        if at < len(self.anchors) and self.anchors[at] < rows.stop:
            stop = int(self.anchors[at]) + 1
        path = self._path(chain, far, rows.start, stop, far)
        ones = np.ones((self.mean.contexts, 1))
        return np.asarray(self._backward(path, ones)[:, 0])

    def left(self, chain: int, near: int, before: int) -> Floats:
        """(S,) probability of all that is shown at places below `before`, together with the
        context that ends at `near`.
        """
        rows = slice(*self._rows(chain, 0, before))
        at = int(np.searchsorted(self.anchors, rows.stop)) - 1
        order = self.mean.order
        if at >= 0 and self.anchors[at] - order + 1 >= rows.start:
            last = int(self.anchors[at])
            symbols = self.shown.symbols[last - order + 1 : last + 1] - 1
            context = int(symbols @ self.mean.k ** np.arange(order - 1, -1, -1))
            begin = int(self.shown.chains.places[last])
            path = self._path(chain, begin, last + 1, rows.stop, near)
            start = np.eye(self.mean.contexts)[context]
            return np.asarray(self._forward(path, start[np.newaxis], (context,))[0])
        begin = order - 1
        start, shows = self.law(chain, begin).copy(), []
        first = self._rows(chain, 0, min(order, before))
        for row in range(*first):  # the first context holds the chain's first records
            back = begin - int(self.shown.chains.places[row])
            digit = np.arange(self.mean.contexts) // self.mean.k**back % self.mean.k
            start *= self.shown.likes[self.shown.symbols[row], digit]
            shows += [back, int(self.shown.symbols[row])]
        path = self._path(chain, begin, first[1], rows.stop, near)
        return np.asarray(self._forward(path, start[np.newaxis], ("start", *shows))[0])

    def across(self, chain: int, far: int, near: int, first: int) -> Floats:
        """(S, S) probability of all that is shown between two cores, together with the second
        one's context at `near`, given the first one's at `far`. first: where the second begins.
        """
        rows = self._rows(chain, far + 1, first)
        path = self._path(chain, far, *rows, near)
        return self._forward(path, np.eye(self.mean.contexts), ("all",))

    def is_cut(self, chain: int, far: int, first: int) -> bool:
        """Whether a released context lies between two cores."""
        begin, end = self._rows(chain, far + 1, first)
        at = int(np.searchsorted(self.anchors, begin + self.mean.order - 1))
        return at < len(self.anchors) and bool(self.anchors[at] < end)

    # ---- rows

    def _rows(self, chain: int, low: int, high: int | None) -> tuple[int, int]:
        """The rows of a chain at the places low … high − 1."""
        of = np.array([chain])
        begin = int(self.shown.row(of, np.array([low]))[0])
        if high is None:
            return begin, int(self.shown.chains.starts[chain + 1])
        return begin, int(self.shown.row(of, np.array([high]))[0])

    def _path(self, chain: int, begin: int, low: int, high: int, end: int) -> Path:
        """The informative rows among them, from a place to another."""
        informative = self.shown.informative
        inside = informative[slice(*np.searchsorted(informative, (low, high)))]
        return Path(chain, begin, inside, end)

    def _key(self, path: Path) -> tuple[bytes, bytes, int, int]:
        """What a path shows, and from which place on."""
        steps = self.shown.chains.places[path.rows] - path.begin
        symbols = self.shown.symbols[path.rows]
        place = self.place(path.chain, path.begin)
        return steps.tobytes(), symbols.tobytes(), path.end - path.begin, place

    def _forward(self, path: Path, start: Floats, name: tuple[object, ...]) -> Floats:
        """(r, S) from the contexts at the path's begin to those at its end. name: of the start."""
        key = ("forward", *name, *self._key(path))
        found = self._known.get(key)
        if found is None:
            found, at = start, path.begin
            for place, like in self._seen(path):
                found = scaled(found @ self.ahead(path.chain, at, place - at) * like)
                at = place
            found = self._known[key] = found @ self.ahead(path.chain, at, path.end - at)
        return found

    def _backward(self, path: Path, start: Floats) -> Floats:
        """(S, r) the likelihood of a path given the context at its begin."""
        key = ("backward", *self._key(path))
        found = self._known.get(key)
        if found is None:
            found, seen = start, self._seen(path)
            places = [path.begin, *(place for place, _ in seen)]
            for before, (place, like) in zip(reversed(places[:-1]), reversed(seen), strict=True):
                moved = self.ahead(path.chain, before, place - before)
                found = scaled(moved @ (like[:, np.newaxis] * found))
            self._known[key] = found
        return found

    def _seen(self, path: Path) -> list[tuple[int, Floats]]:
        """Place of each row, and the likelihood of what it shows given the context there."""
        places = self.shown.chains.places[path.rows].tolist()
        symbols, last = self.shown.symbols[path.rows].tolist(), self.mean.last_value
        likes = self.shown.likes[:, last]
        return [(place, likes[one]) for place, one in zip(places, symbols, strict=True)]


def scaled(weights: Floats) -> Floats:
    """The same with a largest entry of 1, so that nothing underflows."""
    most = float(weights.max())
    return weights / most if most > 0 else weights
