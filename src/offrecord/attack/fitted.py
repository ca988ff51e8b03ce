"""Attackers who know more than the certificate's model, fitted on released values alone: of longer
memory, with a clock, with a corner of the set, or with another chain of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from offrecord.attack.released import Table
from offrecord.attack.shown import Shown
from offrecord.attack.steps import Steps
from offrecord.errors import InputError
from offrecord.mechanisms.blocks import Mask
from offrecord.models import clock
from offrecord.models.base import Floats, Integers, Model
from offrecord.models.chain import MarkovChain
from offrecord.models.phased import PhasedChain

_MOST_ROWS = 4_000_000  # that are counted
MOST_STATES = 1024  #: of a chain that is walked
_MOST_CORNERS = 64  # of a set that are tried
_HALF = 0.5  # added to every count
_INSIDE = 1e-9  # by which a corner's kernel back in time may lie outside of its interval


# ---- how records follow each other


def counted(shown: Shown, free: Mask, order: int) -> Floats:
    """(k, …, k) how often each value follows each tuple of `order` values, among free rows."""
    k, chains = shown.k, shown.chains
    last = int(np.searchsorted(chains.starts, _MOST_ROWS, side="right")) - 1
    rows = int(chains.starts[max(last, 1)])
    use = free[:rows].copy()
    use[:order] = False
    digits = np.zeros(rows, dtype=np.int64)
    for back in range(order, -1, -1):
        values = shown.symbols[: rows - back].astype(np.int64) - 1
        digits[back:] += values * k**back
        if back:
            use[back:] &= free[: rows - back] & shown.follows(back)[: rows - back]
    found = np.bincount(digits[use], minlength=k ** (order + 1)).astype(np.float64)
    return found.reshape((k,) * (order + 1))


def of_order(shown: Shown, free: Mask, order: int) -> Steps:
    """A chain with a memory of so many records."""
    counts = counted(shown, free, order) + _HALF
    kernel = counts / counts.sum(axis=-1, keepdims=True)
    return Steps.of_chain(MarkovChain(kernel, order=order))


# ---- clocks


def phased(table: Table, model: PhasedChain) -> Steps:
    """The steps of a chain with a clock, along a table."""
    phases = _Phases(table, model)
    return Steps(
        model.k,
        model.transition,
        model.start,
        np.arange(model.k),
        into=lambda chain, place: phases.at(chain, place - 1),
        first=lambda chain: phases.at(chain, np.zeros_like(chain)),
    )


class _Phases:
    """The phases of the places of a table, also of those without a row."""

    def __init__(self, table: Table, model: PhasedChain) -> None:
        self.table, self.shown = (
            table,
            Shown.of(
                table.chains, table.codes, np.empty(0, dtype=np.int64), np.zeros((0, model.k))
            ),
        )
        self.phases = table.arranged.phases(model.phase, model.zone)
        self.spec = replace(table.said.spec, model=model)
        self.dense: dict[int, Integers] = {}

    def at(self, chain: Integers, place: Integers) -> Integers:
        """(n,) the phases of some places."""
        row = self.shown.rows(chain, place)
        found = self.phases[np.maximum(row, 0)].astype(np.int64)
        for one in np.flatnonzero(row < 0).tolist():
            found[one] = self._along(int(chain[one]))[place[one]]
        return found

    def _along(self, chain: int) -> Integers:
        """The phases of all places of a chain."""
        if chain not in self.dense:
            batch = self.table.batch
            places = 0, int(self.shown.sizes[chain])
            self.dense[chain] = self.spec._along(
                batch.arranged, batch.private, self.phases, chain, places
            )
        return self.dense[chain]


def by_clock(table: Table, shown: Shown, free: Mask, phase: str) -> Steps | None:
    """A chain with a kernel for each phase; None where the table's times tell no two of them."""
    if not shown.chains.timed:
        return None
    zone = table.arranged.zone
    try:
        phases = table.arranged.phases(phase, zone)[:_MOST_ROWS].astype(np.int64)
    except InputError:  # dates have no hours
        return None
    if phases.min() == phases.max():
        return None
    k, count, rows = shown.k, clock.phase_count(phase), len(phases)
    values = shown.symbols[:rows].astype(np.int64) - 1
    pairs = free[1:rows] & free[: rows - 1] & shown.follows(1)[: rows - 1]
    steps = (phases[:-1] * k + values[:-1]) * k + values[1:]
    follows = np.bincount(steps[pairs], minlength=count * k * k).reshape(count, k, k) + _HALF
    alone = (phases * k + values)[free[:rows]]
    occurs = np.bincount(alone, minlength=count * k).reshape(count, k) + _HALF
    kernels = follows / follows.sum(axis=2, keepdims=True)
    starts = occurs / occurs.sum(axis=1, keepdims=True)
    return phased(table, PhasedChain(phase, kernels, starts, table.said.model.labels, zone))


# ---- corners of a set


def corners(model: Model) -> Iterator[Steps]:
    """Stationary chains in the corners of a set of models; none where it has no set of one box."""
    box = model.box
    if box is None or box.by_step is not None or not isinstance(model, MarkovChain):
        return
    low, high = (one.reshape(-1, box.k) for one in box.forward)
    rows = [_extremes(*one) for one in zip(low, high, strict=True)]
    for kernel in _some_products(rows):
        try:
            chain = MarkovChain(kernel.reshape(box.forward.low.shape), order=box.order)
        except InputError:  # several stationary distributions
            continue
        if box.start != "stationary" or _holds(box.backward, chain._lifted_reverse):
            yield Steps.of_chain(chain)


def _holds(backward: tuple[Floats, Floats], reverse: Floats) -> bool:
    low, high = backward
    return bool(np.all((reverse >= low - _INSIDE) & (reverse <= high + _INSIDE)))


def _extremes(low: Floats, high: Floats) -> list[Floats]:
    """The corners of all distributions within intervals: all entries but one at an end."""
    k, found = len(low), {}
    for spare in range(k):
        others = [at for at in range(k) if at != spare]
        for ends in product(*((low[at], high[at]) for at in others)):
            row = np.zeros(k)
            row[others] = ends
            row[spare] = 1.0 - row.sum()
            if low[spare] - _INSIDE <= row[spare] <= high[spare] + _INSIDE:
                found[np.round(row, 12).tobytes()] = np.clip(row, 0.0, 1.0)
        if len(found) > _MOST_CORNERS:
            break
    return list(found.values())


def _some_products(rows: list[list[Floats]]) -> Iterator[Floats]:
    """A corner of each row: all choices if they are few, else some, the same ones always."""
    if np.prod([float(len(one)) for one in rows]) <= _MOST_CORNERS:
        yield from (np.array(one) for one in product(*rows))
        return
    rng = np.random.default_rng(0)
    for _ in range(_MOST_CORNERS):
        yield np.array([one[rng.integers(len(one))] for one in rows])
