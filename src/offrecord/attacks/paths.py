"""What a released table shows, and what it says about a private run, by forward–backward.

Evidence is followed from a core to the nearest released context on each side.

Contexts are tuples of the last `order` values. Rows that show nothing are skipped by powers of the
kernel, so a window costs as much as two contexts; results are kept by what is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.deciding.layout import PlaceOf
from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.members import Members
from offrecord.models.records import Chains, Codes

NOTHING = 0  #: the symbol of a record that shows nothing: private, missing, or redacted for certain


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """A released table as an attacker sees it.

    chains: its records. symbols: (n,) which row of `likes` each has: NOTHING, then the k released
    values, then redacted records. likes: (s, k) likelihood of what is shown given the record's
    value, up to a factor.
    """

    chains: Chains
    symbols: NDArray[np.int32]
    likes: Floats

    @classmethod
    def of(cls, chains: Chains, codes: Codes, k: int, redacted: Integers, chances: Floats) -> Shown:
        """What local rules leave: the `redacted` rows went with these (h, k) chances, by value."""
        symbols = np.maximum(codes, -1).astype(np.int32) + 1
        rules, which = np.unique(chances.reshape(-1, k), axis=0, return_inverse=True)
        symbols[redacted] = k + 1 + which.reshape(-1)
        return cls(chains, symbols, np.concatenate((np.ones((1, k)), np.eye(k), rules)))

    @property
    def k(self) -> int:
        """Number of values."""
        return int(self.likes.shape[1])

    @cached_property
    def released(self) -> Mask:
        """(n,) which records show their value."""
        return np.asarray((self.symbols > NOTHING) & (self.symbols <= self.k))

    @cached_property
    def informative(self) -> Integers:
        """The rows that show anything, sorted."""
        return np.flatnonzero(self.symbols != NOTHING)

    def anchors(self, order: int) -> Integers:
        """The rows, sorted, that end `order` released records one step apart.

        Given such a context, what lies before it is independent of what lies behind it.
        """
        fits = self.released.copy()
        fits[: order - 1] = False
        same = np.diff(self.chains.chain_of, prepend=-1) == 0
        follows = same & (np.diff(self.chains.places, prepend=-1) == 1)
        for back in range(1, order):
            fits[back:] &= self.released[:-back]
            fits[back - 1 :] &= follows[: len(follows) - back + 1]
        return np.flatnonzero(fits)

    def row(self, chain: Integers, place: Integers) -> Integers:
        """(r,) the first row of each chain at a place or behind it; the chain's end, if none is."""
        chains = self.chains
        if chains.steps is None:
            return np.asarray(np.minimum(chains.starts[chain] + place, chains.starts[chain + 1]))
        key = np.minimum(place, chains.width - 1) + chain * chains.width
        return np.asarray(np.searchsorted(chains.keys, key))


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


class Core(NamedTuple):
    """A core with its private run, in steps from the chain's first record.

    first, last: of the core; the whole core is the secret where runs became one (`run` is None),
    else the records `run` of it are.
    """

    chain: int
    first: int
    last: int
    run: tuple[int, int] | None


class Inferred(NamedTuple):
    """What is inferred about private runs; (r,) and (r, k).

    ratio: the largest log-ratio of the likelihoods of the release between two values of a run;
    above 0 where the value of higher number is likelier, NaN where the release is impossible.
    prior, posterior: of the value of the run's first record.
    """

    ratio: Floats
    prior: Floats
    posterior: Floats


def read(paths: Paths, core: Core, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
    """Ratio, prior and posterior of a core's run.

    left: (S,) probability of the left evidence together with the core's first context. right: (S,)
    likelihood of the right evidence given the core's last context.
    """
    mean = paths.mean
    k, near = mean.k, core.first + mean.order - 1
    begin, end = core.run or (core.first, core.last)
    law, inner = paths.law(core.chain, near), paths.ahead(core.chain, near, core.last - near)
    joint = left * (inner @ right)
    value = np.arange(mean.contexts) // k ** (near - begin) % k
    prior, posterior = (_by(value, one, k) for one in (law, joint))
    total = float(posterior.sum())
    if not total > 0:
        return np.nan, prior, np.full(k, np.nan)
    if core.last == near and core.run is not None:
        held = np.arange(mean.contexts) // k ** (near - end) % k ** (end - begin + 1)
        mass = _by(held, law, k ** (end - begin + 1))
        seen = _by(held, joint, len(mass))
        ratio = _spread(np.divide(seen, mass, out=np.zeros_like(seen), where=mass > 0), mass > 0)
    else:
        ratio = _spread_of_ends(left, right, law, inner)
    return ratio, prior, posterior / total


def _by(held: Integers, weights: Floats, count: int) -> Floats:
    """(count,) sums of weights by what is held."""
    return np.asarray(np.bincount(held, weights=weights, minlength=count), dtype=np.float64)


def _spread_of_ends(left: Floats, right: Floats, law: Floats, inner: Floats) -> float:
    """Over first and last contexts of a core that occur together (O7)."""
    occurs = (law > 0)[:, np.newaxis] & (inner > 0)
    given = np.divide(left, law, out=np.zeros_like(left), where=law > 0)
    return _spread((given[:, np.newaxis] * right).reshape(-1), occurs.reshape(-1))


def _spread(likely: Floats, occurs: Mask) -> float:
    """The largest log-ratio, below 0 where the likeliest comes first."""
    with np.errstate(divide="ignore"):
        logs = np.log(likely)
    # values that never occur are no secret
    high, low = np.where(occurs, logs, -np.inf), np.where(occurs, logs, np.inf)
    gap = float(high.max() - low.min())
    return -gap if high.argmax() < low.argmin() else gap
