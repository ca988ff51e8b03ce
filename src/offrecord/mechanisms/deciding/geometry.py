"""Geometry: where private runs and missing records are, small enough to keep for a whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.deciding.layout import Layout, PlaceOf, layout_of
from offrecord.models.base import Integers
from offrecord.models.records import MISSING, Chains, Runs


@dataclass(frozen=True, eq=False, repr=False)
class Geometry:
    """The layout of a table's private runs; chains with the same layout are held once.

    layout: of chains that have a private run. copies: (chains,) how many are like each. records:
    number of records with a value in all chains, those without a private run included.
    """

    layout: Layout
    copies: Integers
    records: int

    @classmethod
    def joined(cls, parts: Sequence[Geometry]) -> Geometry:
        """That of several batches of chains; at least one."""
        layouts = [part.layout for part in parts]
        counts = [len(layout.ends) for layout in layouts]
        shifts = np.cumsum([0, *counts[:-1]])
        moved = [
            layout.holes + np.array([[shift], [0], [0]])
            for layout, shift in zip(layouts, shifts, strict=True)
        ]
        whole = Layout(
            layouts[0].order,
            np.concatenate([layout.ends for layout in layouts]),
            np.concatenate([one.chain + shift for one, shift in zip(layouts, shifts, strict=True)]),
            np.concatenate([layout.first for layout in layouts]),
            np.concatenate([layout.last for layout in layouts]),
            np.concatenate([layout.single for layout in layouts]),
            np.concatenate([layout.places for layout in layouts]),
            np.concatenate(moved, axis=1),
        )
        copies = np.concatenate([part.copies for part in parts])
        return cls(*_once(whole, copies), sum(part.records for part in parts))


def geometry(chains: Chains, runs: Runs, order: int, place_of: PlaceOf) -> Geometry:
    """The geometry of a batch of whole chains, by positions alone; `Geometry.joined` adds up.

    Args: see `layout_of`.
    """
    layout = layout_of(chains, runs, order, place_of)
    copies = np.zeros(chains.count, dtype=np.int64)
    copies[layout.chain] = 1  # chains without a private run are not kept
    records = int(np.count_nonzero(chains.codes != MISSING))
    return Geometry(*_once(layout, copies), records)


def _once(layout: Layout, copies: Integers) -> tuple[Layout, Integers]:
    """Each layout of a chain once, and how many copies of it there are; none without copies."""
    kept = np.flatnonzero(copies)
    # sums of 64-bit digests of what a chain holds: two layouts are taken for one another by chance
    # in fewer than one of 10⁶ tables of 10⁶ chains, and then an expectation is a little wrong
    digests = _mixed(layout.ends)
    cores = _mixed(layout.first, layout.last, layout.single, *layout.places.T)
    np.add.at(digests, layout.chain, cores)
    np.add.at(digests, layout.holes[0], _mixed(*layout.holes[1:]))
    _, first, inverse = np.unique(digests[kept], return_index=True, return_inverse=True)
    total = np.bincount(inverse, weights=copies[kept], minlength=len(first)).astype(np.int64)
    order = np.argsort(first)  # as they came
    number = np.full(len(copies), -1)
    number[kept[first[order]]] = np.arange(len(first))
    here, holes = number[layout.chain] >= 0, layout.holes[:, number[layout.holes[0]] >= 0]
    holes = np.stack((number[holes[0]], holes[1], holes[2]))
    some = Layout(
        layout.order,
        layout.ends[kept[first[order]]],
        number[layout.chain[here]],
        layout.first[here],
        layout.last[here],
        layout.single[here],
        layout.places[here],
        holes,
    )
    return some, total[order]


# (r,) a 64-bit digest of each row of some columns (SplitMix64's finaliser, column by column).
def _mixed(*columns: NDArray[np.integer] | NDArray[np.bool_]) -> NDArray[np.uint64]:
    state = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        state = (state + column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state
