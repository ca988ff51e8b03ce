"""Which settings a table needs rules for, by positions alone, before any rule is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from offrecord.mechanisms.deciding.layout import (
    FIRST,
    LAST,
    LEFT,
    RECORD,
    RIGHT,
    RUN,
    Layout,
    PlaceOf,
    layout_of,
)
from offrecord.mechanisms.rules import SETTINGS, Setting
from offrecord.models.base import Integers
from offrecord.models.records import Chains, Runs


def settings_needed(
    chains: Chains,
    runs: Runs,
    order: int,
    protect: Literal["run", "each"],
    place_of: PlaceOf,
    *,
    joining: bool = True,
) -> set[Setting]:
    """The settings that rules must cover so that `decide` can act on these chains.

    runs: their private runs; with protect="each", one for each private record.
    """
    layout = layout_of(chains, runs, order, place_of)
    found = set(_own(layout))
    if joining and protect == "run":
        found.update(_joined(layout))
    return found


# The settings of the cores as they are.
def _own(layout: Layout) -> Iterator[Setting]:
    kinds, places = layout.kinds, layout.places
    yield from _settings(RECORD, places[kinds == RECORD, RIGHT])
    yield from _settings(RUN, places[kinds == RUN])
    yield from _settings(FIRST, places[kinds == FIRST, RIGHT])
    yield from _settings(LAST, places[kinds == LAST, LEFT])


def _joined(layout: Layout) -> Iterator[Setting]:
    """The settings of all clusters that neighbours in a chain may become: each is from one core to
    a later one of the chain.
    """
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
