"""The rule of a release: which records are redacted, by what, and how likely. It needs no key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from offrecord.designs.library import Designs
from offrecord.designs.needs import SurroundingCounts
from offrecord.errors import InputError
from offrecord.mechanisms.base import Decider
from offrecord.mechanisms.blocks import ALWAYS, PRIVATE, REGIONS, Block, Certainty, Secrets, blocks
from offrecord.models.base import Floats, Integers, Model
from offrecord.models.records import MISSING, UNKNOWN, Chains
from offrecord.tables.batch import ChainBatch
from offrecord.tables.chains import Arranged
from offrecord.tables.tally import Tally

if TYPE_CHECKING:
    import polars as pl

#: Rows that are decided at a time: so many that what is done once for each block counts little.
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class Rule:
    """Designs, and for each surrounding that a secret of the table has which of them is its own.

    windows, rooms: (designs, 2) how far the best window would redact, and what they are made for.
    reach: how far any of them redacts.
    """

    model: Model
    decider: Decider
    which: dict[tuple[int, ...], int]
    windows: Integers
    rooms: Integers
    reach: int

    @classmethod
    def of(cls, designs: Designs, needs: SurroundingCounts, which: Integers) -> Rule:
        """From the designs of the surroundings of a whole table."""
        rows = zip(*(column.tolist() for column in needs.columns), strict=True)
        made = designs.designs
        return cls(
            designs.model,
            designs.decider,
            dict(zip(rows, which.tolist(), strict=True)),
            np.array([design.window for design in made], dtype=np.int64).reshape(-1, 2),
            np.array([design.surrounding[:2] for design in made], dtype=np.int64).reshape(-1, 2),
            max((design.reach for design in made), default=0),
        )

    def which_of(self, batch: ChainBatch) -> Integers:
        """Which design each secret of a batch has; InputError if it was not surveyed."""
        rows, used, _ = batch.distinct
        try:
            found = [self.which[tuple(row)] for row in rows.tolist()]
        except KeyError:
            raise InputError("the table was changed while it was read; start again") from None
        return np.array(found, dtype=np.int64)[used]

    def blocks(self, batch: ChainBatch, which: Integers) -> Iterator[Block]:
        """A batch, a stretch of whole chains at a time; which: the design of each secret."""
        return blocks(batch.arranged.chains, batch.secrets, which, _BLOCK)

    def expect(self, batch: ChainBatch) -> Tally:
        """What a release is expected to show, by the model and without a look at the values."""
        masses, which = batch.masses(self.model), self.which_of(batch)
        counts = np.zeros(3, dtype=np.int64)
        released = 0.0
        for block in self.blocks(batch, which):
            weights = masses if masses.ndim == 1 else masses[block.rows]
            expected = self.decider.expect(block, weights)
            check_known(batch.arranged, block, expected.certainty)
            released += float(expected.released[block.codes >= 0].sum())
            counts += np.bincount(expected.certainty, minlength=3)
        window = self.windows_release(batch.arranged.chains, batch.secrets, which)
        return Tally(tuple(counts.tolist()), released, window)

    def explain(self, batch: ChainBatch) -> pl.DataFrame:
        """For each row its region and the rule: never what was drawn."""
        import polars as pl

        arranged = batch.arranged
        regions, columns = self._explained(batch)
        names = arranged.columns.released[: -1 - len(arranged.columns.keep)]
        taken = "region" in names
        added = [pl.Series("region of the record" if taken else "region", regions)]
        added += [pl.Series(name, rule) for name, rule in columns.items()]
        return arranged.frame.select(names).with_columns(added) if names else pl.DataFrame(added)

    def _explained(self, batch: ChainBatch) -> tuple[NDArray[np.str_], dict[str, Floats]]:
        """The region of each row, and the columns that tell its rule."""
        private = np.zeros(batch.rows, dtype=bool)
        private[batch.private.rows(batch.arranged.chains)] = True
        labels, which = batch.arranged.labels, self.which_of(batch)
        told = [self.decider.explain(block, labels) for block in self.blocks(batch, which)]
        certainty = np.concatenate([one.certainty for one in told])
        columns = {name: np.concatenate([one.rule[name] for one in told]) for name in told[0].rule}
        named = np.array([*REGIONS, PRIVATE])[np.where(private, len(REGIONS), certainty)]
        return named, columns

    def windows_release(self, chains: Chains, secrets: Secrets, which: Integers) -> int:
        """How many records with a value the best data-independent mechanism would release: all
        outside its windows. which: the design of each secret.
        """
        valued = None if chains.whole else np.concatenate(([0], np.cumsum(chains.codes != MISSING)))
        total = len(chains.codes) if valued is None else int(valued[-1])
        if secrets.count == 0:
            return total
        rests = (self.windows >= self.rooms)[which]
        begin, end = secrets.bounds(chains, self.windows[which], rests)
        if np.any(begin[1:] < begin[:-1]):  # a longer window reaches beyond those before it
            order = np.argsort(begin, kind="stable")
            begin, end = begin[order], end[order]
        before = np.maximum.accumulate(np.concatenate(([0], end[:-1])))
        begin = np.maximum(begin, before)  # count no row twice
        end = np.maximum(end, begin)
        inside = end - begin if valued is None else valued[end] - valued[begin]
        return total - int(inside.sum())


def check_known(arranged: Arranged, block: Block, certainty: Certainty) -> None:
    """InputError for a value that the model does not know, unless its record is redacted whatever
    it is.
    """
    unknown = (block.codes == UNKNOWN) & (certainty != ALWAYS)
    if not unknown.any():
        return
    first = block.rows.start + int(np.argmax(unknown))
    row = (first if arranged.rows is None else int(arranged.rows[first])) + 1
    raise InputError(
        f"value column {arranged.columns.value!r} holds a value the model does not know in"
        f" {int(unknown.sum())} rows, first in row {row}"
    )
