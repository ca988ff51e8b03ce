"""The rule of a release: which records are redacted, by what, and how likely. It needs no key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.designs.library import Designs
from offrecord.designs.needs import SurroundingCounts
from offrecord.designs.sharing import windows_for
from offrecord.mechanisms.base import Decider
from offrecord.mechanisms.blocks import (
    ALWAYS,
    NEVER,
    PRIVATE,
    REGIONS,
    Block,
    Certainty,
    Decision,
    Draw,
    Expectation,
    Explanation,
    Mask,
    blocks,
)
from offrecord.models.base import Floats, Integers, Label, Model
from offrecord.models.records import UNKNOWN
from offrecord.tables.acting import BLOCK, Acting, Alternatives
from offrecord.tables.batch import ChainBatch
from offrecord.tables.chains import Arranged
from offrecord.tables.problems import Check, Places
from offrecord.tables.several.growing import Grown, Holding
from offrecord.tables.tally import Tally
from offrecord.tables.windows import Windows

if TYPE_CHECKING:
    import polars as pl

WAITS = "waits"  #: what is called a record that leaves later, in a table that grows
#: Which designs the surroundings of secrets have, and which windows.
Which: TypeAlias = tuple[Integers, Integers]


@dataclass(frozen=True, eq=False)
class Rule:
    """Designs, and for each surrounding that a secret of the table has which of them is its own.

    windows: what the best data-independent mechanism would redact. reach: how far any of the
    designs redacts. alternatives: what may act instead of a secret's own design. holding: which
    records of a growing table wait.
    """

    model: Model
    decider: Decider
    which: dict[tuple[int, ...], int]
    windows: Windows
    reach: int
    alternatives: Alternatives | None
    holding: Holding | None = None

    @classmethod
    def of(
        cls,
        designs: Designs,
        instead: Designs | None,
        needs: SurroundingCounts,
        which: Which,
        holding: Holding | None = None,
    ) -> Rule:
        """From the designs of the surroundings of a whole table. instead: windows that may act in
        their place. which: of either, those that each surrounding of a secret has.
        """
        acting, alternatives = designs, None
        if instead is None:
            windows = windows_for(designs, needs, which[0])
        else:
            grids = designs.grids
            cap = 0 if grids is None else grids[0][-1]
            alternatives = Alternatives.of(
                designs.designs, instead.designs, needs, which, designs.model, cap
            )
            acting = replace(designs, designs=(*designs.designs, *instead.designs))
            windows = instead.designs, which[1]
        return cls(
            designs.model,
            acting.decider,
            dict(zip(needs.rows, which[0].tolist(), strict=True)),
            Windows.of(*windows, needs),
            max((design.reach for design in designs.designs), default=0),
            alternatives,
            holding,
        )

    def due(self, batch: ChainBatch) -> ChainBatch:
        """A batch with what waits in it, where the table grows."""
        if self.holding is None:
            return batch
        return replace(batch, waits=self.holding.waits(batch.arranged, batch.private))

    def acting(self, batch: ChainBatch) -> Acting:
        """Which design acts around each secret of a batch; InputError if it was not surveyed."""
        which = batch.looked_up(self.which)
        if self.alternatives is None or batch.secrets.count == 0:
            return Acting(batch.secrets, which)
        return self.alternatives.acting(batch, which, self.decider, self.model)

    def blocks(self, batch: ChainBatch, acting: Acting) -> Iterator[Block]:
        """A batch, a stretch of whole chains at a time, and what acts there."""
        size = BLOCK * int(getattr(self.decider, "breadth", 1))
        cuts = None if batch.openings is None else batch.openings.cuts
        return blocks(batch.chains, acting.secrets, acting.which, size, cuts)

    def decided(self, batch: ChainBatch, block: Block, draw: Draw) -> Decision:
        """Which records of a block of a batch leave empty."""
        found = self.decider.decide(block, draw)
        if batch.openings is not None and block.secrets.count:
            batch.openings.redacted(block, found.redacted, found.certainty)
        return found

    def foretold(self, batch: ChainBatch, block: Block, masses: Floats) -> Expectation:
        """How likely each record of a block leaves. masses: of values, the same for all records or
        those of each.
        """
        weights = masses if masses.ndim == 1 else masses[block.rows]
        found = self.decider.expect(block, weights)
        if batch.openings is not None and block.secrets.count:
            batch.openings.expected(block, found.released, found.certainty)
        return found

    def told(self, batch: ChainBatch, block: Block, labels: Sequence[Label]) -> Explanation:
        """The rule for each record of a block."""
        found = self.decider.explain(block, labels)
        if batch.openings is not None and block.secrets.count:
            batch.openings.explained(block, found.certainty, found.rule)
        return found

    def expect(self, batch: ChainBatch) -> Tally:
        """What a release is expected to show, by the model and without a look at the values."""
        return self.expected(batch)[0]

    def expected(self, batch: ChainBatch) -> tuple[Tally, Mask]:
        """The same, and (n,) which records are released for certain."""
        batch = self.due(batch)
        masses, acting = batch.masses(self.model), self.acting(batch)
        counted, unknown, sure = Tally(), [], np.zeros(batch.rows, dtype=bool)
        for block in self.blocks(batch, acting):
            expected = self.foretold(batch, block, masses)
            certainty = with_waiting(batch, block, expected.certainty)
            unknown.append(unknown_rows(block, certainty))
            sure[block.rows] = certainty == NEVER
            counted += Tally.of(batch, block, expected.released, certainty)
        check_known(batch.arranged, unknown)
        counted = replace(
            counted,
            window=self.windows.released(batch),
            uses=acting.uses,
            grown=Grown(*batch.waiting),
        )
        return counted, sure

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
        batch = self.due(batch)
        private = np.zeros(batch.rows, dtype=bool)
        private[batch.private.rows(batch.arranged.chains)] = True
        labels, acting = batch.arranged.labels, self.acting(batch)
        told = [self.told(batch, block, labels) for block in self.blocks(batch, acting)]
        certainty = np.concatenate([one.certainty for one in told])
        columns = {name: np.concatenate([one.rule[name] for one in told]) for name in told[0].rule}
        named = np.array([*REGIONS, PRIVATE, WAITS])[np.where(private, len(REGIONS), certainty)]
        if batch.waits is not None:
            named[batch.waits & ~private] = WAITS
        return named, columns


def with_waiting(batch: ChainBatch, block: Block, certainty: Certainty) -> Certainty:
    """How certain it is that records are redacted, those that wait included."""
    if batch.waits is None:
        return certainty
    return np.where(batch.waits[block.rows], np.int8(ALWAYS), certainty)


def unknown_rows(block: Block, certainty: Certainty) -> Integers:
    """The rows with a value that the model does not know, unless their record is redacted whatever
    it is.
    """
    unknown = (block.codes == UNKNOWN) & (certainty != ALWAYS)
    return np.asarray(np.flatnonzero(unknown) + block.rows.start)


def check_known(arranged: Arranged, unknown: Sequence[Integers]) -> None:
    """InputError for rows with a value that the model does not know."""
    rows = np.concatenate(unknown)
    if not len(rows):
        return
    columns = arranged.columns
    problem = "a value the model does not know"
    said = (f"value column {columns.value!r} holds {problem} in ", "row", "")
    places = Places(arranged.frame, columns.by, columns.ordering, arranged.rows)
    raise places.wrong(rows, Check.KNOWN, said, problem)
