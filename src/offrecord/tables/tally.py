"""What was decided, in numbers that add up over the batches of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from offrecord.fitting.counting import Counts
from offrecord.mechanisms.blocks import ALWAYS, PRIVATE, REGIONS, Block, Certainty, Mask
from offrecord.models.base import Floats, Integers
from offrecord.tables.batch import ChainBatch
from offrecord.tables.choice import Choice
from offrecord.tables.seen import Sighting
from offrecord.tables.several.growing import Grown
from offrecord.tables.several.remembered import Remembered
from offrecord.tables.telling import Sample


class Touched(NamedTuple):
    """What became of the chains that hold a secret.

    records, released: of theirs, and those that leave. lost: chains of which no record leaves.
    closed: of these, those that lose everything by the rule, whatever their values are.
    """

    records: int = 0
    released: float = 0
    lost: int = 0
    closed: int = 0

    @classmethod
    def of(
        cls,
        batch: ChainBatch,
        block: Block,
        leaves: Mask | Floats,
        certainty: Certainty,
        valued: Mask | None,
    ) -> Touched:
        """Count a block of a batch; valued: which of its records have a value, None for all."""
        if block.secrets.count == 0:
            return cls()
        starts = batch.arranged.chains.starts
        first, end = np.searchsorted(starts, (block.rows.start, block.rows.stop))
        begins = starts[first:end] - block.rows.start
        chain = batch.whole_chains(block.secrets.chain)
        chain = chain[np.diff(chain, prepend=-1) > 0] - first  # sorted, as secrets are
        records = np.diff(starts[first : end + 1])
        if valued is not None:
            records = np.add.reduceat(valued, begins, dtype=np.int64)
            certainty = np.where(valued, certainty, np.int8(ALWAYS))
        kind = np.int64 if leaves.dtype == bool else np.float64
        released = np.add.reduceat(leaves, begins, dtype=kind)[chain]
        records = records[chain]
        closed = (np.minimum.reduceat(certainty, begins)[chain] == ALWAYS) & (records > 0)
        lost = closed | ((released == 0) & (records > 0))
        return cls(int(records.sum()), released.sum().item(), int(lost.sum()), int(closed.sum()))


@dataclass(frozen=True, repr=False)
class Tally:
    """Counts of what was decided: records by region (S, M, L with private ones), and those that
    leave, also by the window. Records without a value count nowhere, private ones everywhere.

    touched: the chains that hold a secret. moves: transitions among records that are never
    redacted, as the model counts them. firsts: the values of first records that are never redacted.
    choice: which values private records have. All None where nothing was decided. kept: released
    rows with their kept cells, a sample of them. rows: how many were decided, those without a value
    too. content: a digest of what leaves of the chains that hold a secret, record by record, for
    the key's owner alone. seen: records that may be redacted, and that the model was learned from.
    uses: how many secrets each design of the rule serves. grown: what is counted of a table that
    grows. remembered: what is kept for later releases, where that is asked for.
    """

    regions: tuple[int, ...] = (0, 0, 0)
    released: float = 0
    window: int = 0
    touched: Touched = field(default_factory=Touched)
    moves: Counts | None = None
    firsts: Counts | None = None
    choice: Choice | None = None
    kept: Sample | None = None
    rows: int = 0
    content: int = 0
    seen: Sighting = field(default_factory=Sighting)
    uses: Integers | None = None
    grown: Grown = field(default_factory=Grown)
    remembered: Remembered = field(default_factory=Remembered)

    @classmethod
    def of(
        cls, batch: ChainBatch, block: Block, leaves: Mask | Floats, certainty: Certainty
    ) -> Tally:
        """Count a block of a batch. leaves: which of its records leave, or how likely that is."""
        valued = None if batch.valued is None else batch.valued[block.rows]
        if valued is not None:
            leaves = leaves * valued
        counted = certainty if valued is None else certainty[valued]
        # far faster than to count numbers, or to sum truths
        return cls(
            tuple(int(np.count_nonzero(counted == one)) for one in range(len(REGIONS))),
            int(np.count_nonzero(leaves)) if leaves.dtype == bool else leaves.sum().item(),
            touched=Touched.of(batch, block, leaves, certainty, valued),
            rows=block.size,
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            _added(self.regions, other.regions),
            self.released + other.released,
            self.window + other.window,
            Touched(*_added(self.touched, other.touched)),
            _sum(self.moves, other.moves),
            _sum(self.firsts, other.firsts),
            _sum(self.choice, other.choice),
            _sum(self.kept, other.kept),
            self.rows + other.rows,
            self.content ^ other.content,
            self.seen + other.seen,
            _sum(self.uses, other.uses),
            self.grown + other.grown,
            self.remembered + other.remembered,
        )

    def named_regions(self, private: int) -> dict[str, int]:
        """Records by region; private ones, which are always redacted, named apart."""
        small, middle, large = self.regions
        counts = (small, middle, large - private, private)
        return dict(zip((*REGIONS, PRIVATE), counts, strict=True))


def _added(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _sum(one: Any, other: Any) -> Any:
    """The sum of what is there."""
    return other if one is None else one if other is None else one + other
