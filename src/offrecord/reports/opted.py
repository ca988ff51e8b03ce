"""What each opt-out costs whose position is published anyway."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from offrecord.mechanisms.base import Design
from offrecord.models.base import Model
from offrecord.reports.around import expected_of
from offrecord.reports.content import Named
from offrecord.tables.acting import Acting
from offrecord.tables.batch import ChainBatch

MOST = 100  #: opt-outs that are listed


def named_costs(
    batch: ChainBatch, acting: Acting, designs: Sequence[Design], model: Model
) -> tuple[Named, ...]:
    """What is expected to be redacted beside each secret, or cluster of near ones: the most
    expensive first, up to MOST. designs: all that may act, by their numbers.
    """
    secrets = acting.secrets
    rows = np.flatnonzero(secrets.high > secrets.low)  # without those that are gaps alone
    numbers, used = np.unique(acting.which[rows], return_inverse=True)
    if not len(numbers):
        return ()
    expected = expected_of([designs[number] for number in numbers.tolist()], model)[used]
    listed = np.argsort(-expected, kind="stable")[:MOST].tolist()
    return tuple(
        Named(
            _name(batch, int(secrets.low[rows[at]])),
            int(secrets.last[rows[at]] - secrets.first[rows[at]] + 1),
            float(expected[at]),
        )
        for at in listed
    )


def _name(batch: ChainBatch, row: int) -> tuple[str, ...]:
    """The cells that name a record."""
    frame, columns = batch.arranged.frame, batch.arranged.columns
    named = [str(frame[name][row]) for name in columns.by]
    return (*named, f"row {row + 1:,}" if columns.order is None else str(frame[columns.order][row]))
