"""Layout: what positions say about private runs, before any rule is known and any value is read.

Everything that chooses rules, joins near runs or sends a side to its deadline reads a layout and
nothing else, so it cannot depend on a value. Places are steps from the chain's first record;
absent records count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.rules import SETTINGS
from offrecord.models.base import Integers
from offrecord.models.records import MISSING, Chains, Runs

Mask: TypeAlias = NDArray[np.bool_]
#: From numbers of chains and steps in them to the places that kernels depend on (`Places`).
PlaceOf: TypeAlias = Callable[[Integers, Integers], Integers]

#: What a core is: the number of its setting, or the whole chain, which needs no rule.
RECORD, RUN, FIRST, LAST = map(SETTINGS.index, ("record", "run", "first", "last"))
WHOLE = len(SETTINGS)
#: The sides of a core: columns of everything that there is twice.
LEFT, RIGHT = 0, 1


class Draw(Protocol):
    """Keyed coins: the same draw for the same record, purpose and counter."""

    def __call__(
        self,
        chain: Integers,
        order: NDArray[np.integer],
        purpose: bytes = ...,
        counter: int | Integers = ...,
    ) -> NDArray[np.uint64]:
        """(r,) 64 bits each for records of these chains with these order values."""


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """Cores of the private runs of some chains, sorted; (r,) each unless said otherwise.

    order: m. ends: (chains,) the place of each chain's last record. chain, first, last: where a
    core is. single: whether its run is one record. places: (r, 2) those of the last record of the
    left and of the right start context. holes: (3, h) chain, first and last place of each range
    without values, sorted.
    """

    order: int
    ends: Integers
    chain: Integers
    first: Integers
    last: Integers
    single: Mask
    places: Integers
    holes: Integers

    @property
    def count(self) -> int:
        """Number of cores."""
        return len(self.chain)

    @cached_property
    def kinds(self) -> Integers:
        """(r,) the setting of each core, or WHOLE."""
        return kinds_of(self.first == 0, self.last == self.ends[self.chain], self.single)

    @cached_property
    def _hole_keys(self) -> tuple[Integers, Integers, int]:
        """First and last places of the holes as numbers that grow from chain to chain."""
        width = int(self.ends.max(initial=0)) + 2
        chain, first, last = self.holes
        return chain * width + first, chain * width + last, width

    def misses(self, chain: Integers, low: Integers, high: Integers) -> Mask:
        """Whether any record at the places low … high of chains, all within them, has no value."""
        firsts, lasts, width = self._hole_keys
        if not len(firsts):
            return np.zeros(len(chain), dtype=bool)
        following = np.searchsorted(lasts, chain * width + low)
        found = firsts[np.minimum(following, len(firsts) - 1)] <= chain * width + high
        return np.asarray(found & (following < len(firsts)))


def margins_of(
    chain: Integers, first: Integers, last: Integers, end: Integers
) -> tuple[Integers, Mask]:
    """(c, 2) records, absent ones included, from cores up to the next one or the chain's end,
    negative where cores overlap; and whether a core is what comes next.

    end: (c,) the place of the last record of each one's chain.
    """
    margins = np.stack((first, end - last), axis=1)
    faces = np.zeros(margins.shape, dtype=bool)
    faces[1:, LEFT] = faces[:-1, RIGHT] = chain[1:] == chain[:-1]
    between = first[1:] - last[:-1] - 1
    margins[1:, LEFT] = np.where(faces[1:, LEFT], between, margins[1:, LEFT])
    margins[:-1, RIGHT] = np.where(faces[:-1, RIGHT], between, margins[:-1, RIGHT])
    return margins, faces


def rows_between(
    chains: Chains, chain: Integers, low: Integers, high: Integers
) -> tuple[Integers, Integers]:
    """The first row at a place from `low` on, and the one after the last up to `high`, in chains
    that reach from one to the other.
    """
    if chains.steps is None:
        begin = chains.starts[chain]
        return begin + low, begin + high + 1
    base = chain * chains.width
    return (
        np.searchsorted(chains.keys, base + low, side="left"),
        np.searchsorted(chains.keys, base + high, side="right"),
    )


def filled(count: int, low: Integers, high: Integers) -> Mask:
    """(count,) which rows lie in any of the ranges low[i] … high[i] − 1.

    Ranges belong to cores in order: each holds its core's rows, so where one begins before
    that of an earlier core the two overlap.
    """
    low = np.minimum.accumulate(low[::-1])[::-1]
    reached = np.maximum.accumulate(high)
    begin = np.maximum(low, np.concatenate(([0], reached[:-1])))
    edges = np.stack((begin, np.maximum(reached, begin)), axis=1).ravel()
    lengths = np.diff(edges, prepend=0, append=count)
    inside = np.arange(len(lengths)) % 2 == 1
    return np.repeat(inside, lengths)


def groups(numbers: Integers) -> Iterator[tuple[int, Integers]]:
    """Each number from 0 on that occurs, and where."""
    order = np.argsort(numbers, kind="stable")
    found, begin = np.unique(numbers[order], return_index=True)
    for number, some in zip(found.tolist(), np.split(order, begin[1:]), strict=bool(len(found))):
        if number >= 0:
            yield number, some


def kinds_of(opens: Mask, closes: Mask, single: Mask) -> Integers:
    """Settings of cores: whether they reach the first and the last record of their chain, and
    whether they are for one private record.
    """
    inside = np.where(single, RECORD, RUN)
    one_side = np.where(opens, FIRST, LAST)
    return np.where(opens & closes, WHOLE, np.where(opens | closes, one_side, inside))


def layout_of(chains: Chains, runs: Runs, order: int, place_of: PlaceOf) -> Layout:
    """The layout of private runs.

    chains: whole chains; of their values, only which are missing counts.
    """
    # cores hold at least m records: knowing all of one is knowing more than its run (S4)
    ends = _last_places(chains)
    end = ends[runs.chain]
    # a run shorter than m takes the records before it, or at the chain's beginning those after it
    first = np.maximum(np.minimum(runs.first, runs.last - order + 1), 0)
    last = np.minimum(np.maximum(runs.last, order - 1), end)
    left = place_of(runs.chain, np.minimum(first + order - 1, end))
    places = np.stack((left, place_of(runs.chain, last)), axis=1)
    single = runs.first == runs.last
    return Layout(order, ends, runs.chain, first, last, single, places, _holes(chains))


# (chains,) the place of each chain's last record; -1 of an empty chain.
def _last_places(chains: Chains) -> Integers:
    sizes = np.diff(chains.starts)
    if chains.steps is None:
        return sizes - 1
    rows = np.maximum(chains.starts[1:] - 1, 0)
    return np.where(sizes > 0, chains.steps[rows], -1)


# (3, h) chain, first and last place of ranges without values.
def _holes(chains: Chains) -> Integers:
    empty = np.flatnonzero(chains.codes == MISSING)
    chain = np.searchsorted(chains.starts, empty, side="right") - 1
    if chains.steps is None:
        place = empty - chains.starts[chain]
        return np.stack((chain, place, place))
    place = chains.steps[empty]
    before = np.flatnonzero(np.diff(chains.steps) > 1)  # rows after which records are absent
    of = np.searchsorted(chains.starts, before, side="right") - 1
    within = before + 1 < chains.starts[of + 1]
    before, of = before[within], of[within]
    absent = (of, chains.steps[before] + 1, chains.steps[before + 1] - 1)
    holes = np.concatenate((np.stack((chain, place, place)), np.stack(absent)), axis=1)
    return holes[:, np.lexsort(holes[1::-1])]
