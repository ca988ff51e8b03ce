"""What the best data-independent mechanism would have released of a table, to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from offrecord.designs.needs import SurroundingCounts
from offrecord.mechanisms.base import Design
from offrecord.mechanisms.blocks import Mask, Secrets
from offrecord.models.base import Integers
from offrecord.models.records import Chains
from offrecord.tables.batch import ChainBatch
from offrecord.tables.openings import summed


@dataclass(frozen=True, eq=False)
class Windows:
    """The shortest window of each surrounding that a secret of the table has.

    which: which one each surrounding has. sizes, rests: (windows, 2) how far they reach to the left
    and right, and whether to the end of the chain.
    """

    which: dict[tuple[int, ...], int]
    sizes: Integers
    rests: Mask

    @classmethod
    def of(cls, designs: Sequence[Design], which: Integers, needs: SurroundingCounts) -> Windows:
        """From designs that know their windows."""
        sizes = np.array([design.window for design in designs], dtype=np.int64).reshape(-1, 2)
        rooms = [design.surrounding[:2] for design in designs]
        rests = sizes >= np.array(rooms, dtype=np.int64).reshape(-1, 2)
        return cls(dict(zip(needs.rows, which.tolist(), strict=True)), sizes, rests)

    def released(self, batch: ChainBatch) -> int:
        """How many records with a value lie outside of all windows."""
        which = batch.looked_up(self.which)
        valued, openings = batch.valued, batch.openings
        total = batch.rows if valued is None else int(valued.sum())
        if batch.secrets.count == 0:
            return total
        begin, end = self._inside(batch.chains, batch.secrets, which)
        inside = end - begin if valued is None else summed(valued, begin, end)
        lost = int(inside.sum())
        if openings is not None and batch.behind is not None:
            lost += openings.behind_missing(batch.secrets.chain, valued)
            lost += int(summed(batch.behind, begin, end).sum())
        return total - lost

    def _inside(
        self, chains: Chains, secrets: Secrets, which: Integers
    ) -> tuple[Integers, Integers]:
        """Where windows begin and end, no row within two of them."""
        # taken, which is far faster than an index into rows of two
        sizes, rests = self.sizes.take(which, axis=0), self.rests.take(which, axis=0)
        begin, end = secrets.bounds(chains, sizes, rests)
        if np.any(begin[1:] < begin[:-1]):  # a longer window reaches beyond those before it
            order = np.argsort(begin, kind="stable")
            begin, end = begin[order], end[order]
        before = np.maximum.accumulate(np.concatenate(([0], end[:-1])))
        begin = np.maximum(begin, before)  # count no row twice
        return begin, np.maximum(end, begin)
