"""What a released table shows, and what it says about a private run, by forward–backward.

Evidence is followed from a core to the nearest released context on each side. Contexts are tuples
of the last `order` values. Rows that show nothing are skipped by powers of the kernel, so a window
costs as much as two contexts; results are kept by what is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.deciding.layout import WHOLE, Layout, PlaceOf
from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.members import Members
from offrecord.models.records import Chains, Runs

NOTHING = 0  #: the symbol of a record that shows nothing: private, missing, or redacted for certain


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """A released table as an attacker sees it."""

    chains: Chains
    symbols: NDArray[np.int32]  # (n,) the row of `likes`: NOTHING, the k values, redacted ones
    likes: Floats  # (s, k) likelihood of what is shown given the value, up to a factor

    @classmethod
    def of(cls, chains: Chains, k: int, redaction: Floats | None = None) -> Shown:
        """Released values; redaction: (n, k) the chances of records with a coin of their own."""
        symbols = np.maximum(chains.codes, -1).astype(np.int32) + 1
        likes = np.concatenate((np.ones((1, k)), np.eye(k)))
        if redaction is not None:
            gone = redaction[np.flatnonzero(symbols == NOTHING)]
            # what goes for certain, or was missing, depends on no value
            unsure = ~np.all(gone == 1.0, axis=1) & np.any(gone > 0.0, axis=1)
            rules, which = np.unique(gone[unsure], axis=0, return_inverse=True)
            symbols[np.flatnonzero(symbols == NOTHING)[unsure]] = k + 1 + which.reshape(-1)
            likes = np.concatenate((likes, rules))
        return cls(chains, symbols, likes)

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
        """The rows, sorted, that end `order` released records one step apart."""
        fits = self.released.copy()
        fits[: order - 1] = False
        for back in range(1, order):
            fits[back:] &= self.released[:-back]
            fits[back - 1 :] &= self._follows[: len(fits) - back + 1]
        return np.flatnonzero(fits)

    @cached_property
    def _follows(self) -> Mask:
        """(n,) the rows one step after the row before."""
        # keys of two chains are never neighbours, as the width is more than one beyond any place
        return np.asarray(np.diff(self.chains.keys, prepend=0) == 1)

    def row(self, chain: int, place: int) -> int:
        """The first row of a chain at a place or behind it; the chain's end, if none is."""
        chains = self.chains
        # places beyond the last record would be rows of the next chain
        if chains.steps is None:
            return int(min(chains.starts[chain] + place, chains.starts[chain + 1]))
        key = min(place, chains.width - 1) + chain * chains.width
        return int(np.searchsorted(chains.keys, key))

    def context(self, chain: int, end: int, order: int) -> int | None:
        """The released context that ends at a place; None unless all of it is released."""
        row = self.row(chain, max(end - order + 1, 0))
        if end < order - 1 or row + order > len(self.symbols):
            return None
        rows = np.arange(row, row + order)
        places = np.arange(end - order + 1, end + 1)
        there = self.released[rows] & (self.chains.places[rows] == places)
        return self._number(rows) if there.all() else None

    def _number(self, rows: Integers) -> int:
        """The context of released rows."""
        powers = self.k ** np.arange(len(rows) - 1, -1, -1)
        return int((self.symbols[rows] - 1) @ powers)


@dataclass(frozen=True, eq=False, repr=False)
class Paths:
    """An attacker's chain on a table. mean: the chain (M = 1)."""

    shown: Shown
    mean: Members
    place_of: PlaceOf
    _known: dict[tuple[object, ...], Floats] = field(default_factory=dict, init=False)

    @cached_property
    def anchors(self) -> Integers:
        """Rows that end a released context."""
        # given it, what lies before is independent of what lies behind (R6)
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
        low, high = self._rows(chain, far + 1, None)
        anchor = self._anchor(low, high)
        # what lies behind a released context is as likely whatever lies before it
        rows = low, high if anchor is None else anchor + 1
        return np.asarray(self._forward(chain, (far, None), rows).sum(axis=1))

    def left(self, chain: int, near: int, before: int) -> Floats:
        """(S,) probability of all that is shown below `before`, and the context that ends at
        `near`.
        """
        order, (low, high) = self.mean.order, self._rows(chain, 0, before)
        at = int(np.searchsorted(self.anchors, high)) - 1
        if at >= 0 and self.anchors[at] - order + 1 >= low:
            low = int(self.anchors[at]) + 1
            begin = int(self.shown.chains.places[low - 1])
            start = np.zeros(self.mean.contexts)
            start[self.shown.context(chain, begin, order)] = 1.0
        else:
            first = range(*self._rows(chain, 0, min(order, before)))
            begin, start, low = order - 1, self._from_start(chain, first), first.stop
        return np.asarray(self._forward(chain, (begin, near), (low, high), start)[0])

    def _from_start(self, chain: int, first: range) -> Floats:
        """(S,) law of a chain's first context, with what the first records show."""
        start, contexts = self.law(chain, self.mean.order - 1).copy(), np.arange(self.mean.contexts)
        for row in first:
            back = self.mean.order - 1 - int(self.shown.chains.places[row])
            digit = contexts // self.mean.k**back % self.mean.k
            start *= self.shown.likes[self.shown.symbols[row], digit]
        return start

    def across(self, chain: int, far: int, near: int, first: int) -> Floats:
        """(S, S) probability of all that is shown between two cores, and the context at `near`,
        given the one at `far`. first: where the second core begins.
        """
        return self._forward(chain, (far, near), self._rows(chain, far + 1, first))

    def is_cut(self, chain: int, far: int, first: int) -> bool:
        """Whether a released context lies between two cores."""
        return self._anchor(*self._rows(chain, far + 1, first)) is not None

    def _anchor(self, low: int, high: int) -> int | None:
        """The first row that ends a released context of some rows."""
        at = int(np.searchsorted(self.anchors, low + self.mean.order - 1))
        inside = at < len(self.anchors) and self.anchors[at] < high
        return int(self.anchors[at]) if inside else None

    def _rows(self, chain: int, low: int, high: int | None) -> tuple[int, int]:
        """The rows of a chain at the places low … high − 1."""
        shown = self.shown
        end = shown.chains.starts[chain + 1] if high is None else shown.row(chain, high)
        return shown.row(chain, low), int(end)

    def _forward(
        self,
        chain: int,
        span: tuple[int, int | None],
        rows: tuple[int, int],
        start: Floats | None = None,
    ) -> Floats:
        """(r, S) from the contexts `start` at one place, each by default, to those at another, by
        default that of the last row that shows anything, with what the rows between them show.
        """
        begin, end = span
        inside = self.shown.informative
        inside = inside[slice(*np.searchsorted(inside, rows))]
        steps = (self.shown.chains.places[inside] - begin).tolist()
        symbols, place = self.shown.symbols[inside].tolist(), self.place(chain, begin)
        named = None if start is None else start.tobytes()
        # what is shown says all: most runs of a table have the same beside them
        length = max(steps, default=0) if end is None else end - begin
        key = (named, tuple(steps), tuple(symbols), length, place)
        if key not in self._known:
            found = np.eye(self.mean.contexts) if start is None else start[np.newaxis]
            likes, at = self.shown.likes[:, self.mean.last_value], 0
            for step, symbol in zip(steps, symbols, strict=True):
                found = scaled(found @ self.ahead(chain, begin + at, step - at) * likes[symbol])
                at = step
            self._known[key] = found @ self.ahead(chain, begin + at, length - at)
        return self._known[key]


def scaled(weights: Floats) -> Floats:
    """The same with a largest entry of 1, so that nothing underflows."""
    most = float(weights.max())
    return weights / most if most > 0 else weights


# ---- from evidence to odds


class Core(NamedTuple):
    """A core in steps from the chain's first record."""

    chain: int
    first: int
    last: int
    run: tuple[int, int] | None  # the secret; None where runs became one: the whole core


class Inferred(NamedTuple):
    """What is inferred about private runs; (r,), and (r, k) of the first record's value."""

    # the largest log-ratio of the release between two values of a run; above 0 where the value of
    # higher number is likelier, NaN where the release is impossible
    ratio: Floats
    prior: Floats
    posterior: Floats

    @classmethod
    def of(
        cls, paths: Paths, runs: Runs, cores: Iterable[tuple[slice, Core, Floats, Floats]]
    ) -> Inferred:
        """From cores with the numbers of their runs, and the evidence on both sides: see `read`."""
        ratio = np.zeros(runs.count)
        prior, posterior = np.full((2, runs.count, paths.mean.k), np.nan)
        for which, core, left, right in cores:
            found = read(paths, core, left, right)
            ratio[which], prior[which], posterior[which] = found
        return cls(ratio, prior, posterior)


def inferred(paths: Paths, layout: Layout, runs: Runs) -> Inferred:
    """What is inferred about each run where every record was redacted by a coin of its own."""
    # with the probabilities of redaction as emissions, forward–backward is exact
    cores = []
    for at in np.flatnonzero(layout.kinds != WHOLE).tolist():
        chain, first, last = (int(one[at]) for one in (layout.chain, layout.first, layout.last))
        core = Core(chain, first, last, (int(runs.first[at]), int(runs.last[at])))
        left = paths.left(chain, first + paths.mean.order - 1, first)
        cores.append((slice(at, at + 1), core, left, paths.right(chain, last)))
    return Inferred.of(paths, runs, cores)


def read(paths: Paths, core: Core, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
    """Ratio, prior and posterior of a core's run.

    left: (S,) probability of the evidence there with the core's first context. right: (S,)
    likelihood given its last context.
    """
    mean = paths.mean
    k, near = mean.k, core.first + mean.order - 1
    begin, end = core.run or (core.first, core.last)
    law, inner = paths.law(core.chain, near), paths.ahead(core.chain, near, core.last - near)
    joint = left * (inner @ right)
    value = np.arange(mean.contexts) // k ** (near - begin) % k
    prior, posterior = _by(value, law, k), _by(value, joint, k)
    total = float(posterior.sum())
    if not total > 0:
        return np.nan, prior, np.full(k, np.nan)
    if core.last == near and core.run is not None:
        # one context holds the whole run, so all of its values are compared
        held = np.arange(mean.contexts) // k ** (near - end) % k ** (end - begin + 1)
        mass = _by(held, law)
        ratio = _spread(_share(_by(held, joint), mass), mass > 0)
    else:
        # over first and last contexts of a core that occur together (O7)
        together = (law > 0)[:, np.newaxis] & (inner > 0)
        ratio = _spread(np.outer(_share(left, law), right), together)
    return ratio, prior, posterior / total


def _share(part: Floats, whole: Floats) -> Floats:
    """Part by whole; 0 where the whole is."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _by(held: Integers, weights: Floats, count: int = 0) -> Floats:
    """(count,) sums of weights by what is held."""
    return np.asarray(np.bincount(held, weights, count), dtype=np.float64)


def _spread(likely: Floats, occurs: Mask) -> float:
    """The largest log-ratio, below 0 where the likeliest comes first."""
    with np.errstate(divide="ignore"):
        logs = np.log(likely)
    # values that never occur are no secret
    high, low = np.where(occurs, logs, -np.inf), np.where(occurs, logs, np.inf)
    gap = float(high.max() - low.min())
    return -gap if high.argmax() < low.argmin() else gap
