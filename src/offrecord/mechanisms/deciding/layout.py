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

from offrecord.mechanisms.rules import SETTINGS, Setting
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
    def width(self) -> int:
        """More than any place: chain × width + place are numbers that grow from chain to chain."""
        return int(self.ends.max(initial=0)) + 2

    @cached_property
    def hole_keys(self) -> tuple[Integers, Integers]:
        """First and last places of the holes as such numbers."""
        chain, first, last = self.holes
        return chain * self.width + first, chain * self.width + last

    def misses(self, chain: Integers, low: Integers, high: Integers) -> Mask:
        """Whether any record at the places low … high of chains, all within them, has no value."""
        firsts, lasts = self.hole_keys
        if not len(firsts):
            return np.zeros(len(chain), dtype=bool)
        following = np.searchsorted(lasts, chain * self.width + low)
        found = firsts[np.minimum(following, len(firsts) - 1)] <= chain * self.width + high
        return np.asarray(found & (following < len(firsts)))


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
    """(count,) which rows lie in a range low[i] … high[i] − 1, given those of cores in order."""
    # each holds its core's rows, so where one begins before that of an earlier core they overlap
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


# ---- which rules a table needs, before any is known


def settings_needed(
    chains: Chains, runs: Runs, order: int, protect: str, place_of: PlaceOf, *, joining: bool = True
) -> set[Setting]:
    """The settings that rules must cover so that `decide` can act on these chains.

    runs: their private runs; with protect="each", one for each private record.
    """
    layout = layout_of(chains, runs, order, place_of)
    found = set(_of_cores(layout))
    if joining and protect == "run":
        found.update(_of_clusters(layout))
    return found


# The settings of the cores as they are.
def _of_cores(layout: Layout) -> Iterator[Setting]:
    kinds, places = layout.kinds, layout.places
    yield from _settings(RECORD, places[kinds == RECORD, RIGHT])
    yield from _settings(RUN, places[kinds == RUN])
    yield from _settings(FIRST, places[kinds == FIRST, RIGHT])
    yield from _settings(LAST, places[kinds == LAST, LEFT])


# The settings of all clusters that neighbours in a chain may become: each is from one core to a
# later one of the chain.
def _of_clusters(layout: Layout) -> Iterator[Setting]:
    if not layout.count:
        return
    same = layout.chain[1:] == layout.chain[:-1]
    head = np.concatenate(([True], ~same))  # the first and the last core of a chain
    tail = np.concatenate((~same, [True]))
    begin, end = np.flatnonzero(head), np.flatnonzero(tail)
    of = np.cumsum(head) - 1  # which chain's core, among those that have any
    opens = (layout.first[begin] == 0)[of]
    closes = (layout.last[end] == layout.ends[layout.chain[end]])[of]
    index = np.arange(layout.count)
    after, before = end[of] - index, index - begin[of]
    # one end of a cluster is free if some cluster with it does not reach the chain's end beyond
    starts_here, ends_here = ~(head & opens) & (after > 0), ~(tail & closes) & (before > 0)
    left, right = layout.places.T
    yield from _settings(RUN, left[starts_here & ((after > 1) | ~closes)])
    yield from _settings(RUN, right[ends_here & ((before > 1) | ~opens)])
    yield from _settings(LAST, left[starts_here & closes])
    yield from _settings(FIRST, right[ends_here & opens])


def _settings(kind: int, places: Integers) -> Iterator[Setting]:
    return (Setting(SETTINGS[kind], place) for place in np.unique(places).tolist())
