"""What mechanisms and budgets would release of a table: designed and expected, never decided."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from offrecord.errors import InputError
from offrecord.mechanisms.base import Mechanism
from offrecord.mechanisms.deciding import expected_released
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.promise import Promise
from offrecord.tables.engines.memory import read_table
from offrecord.tables.frames import Native
from offrecord.tables.given import Given
from offrecord.tables.options import MemoryOptions
from offrecord.tables.plan import designed
from offrecord.tables.summary import leakage_of
from offrecord.tables.survey import Survey
from offrecord.text import Progress, followed, unwatched

#: No key is needed and none is made: there is nothing at this path, and never will be.
_NO_KEY = Path(os.devnull, "key.json")


class Trial(NamedTuple):
    """A mechanism with a budget. released: the share of records that is expected to leave; None
    where the mechanism serves no such table, and why.
    """

    epsilon: float
    mechanism: str
    released: float | None
    policy: TablePolicy | None = None
    why: str | None = None

    @property
    def leakage(self) -> float | None:
        """As a dry run's summary says it; None where the mechanism serves no such table."""
        return None if self.policy is None else leakage_of(self.policy, self.epsilon)

    def of_touched(self, survey: Survey) -> float | None:
        """The share of the records of chains with a private record that is expected to leave."""
        if self.released is None:
            return None
        left = self.released * survey.records - (survey.records - survey.touched_records)
        return max(left, 0.0) / max(survey.touched_records, 1)


def compared(
    frame: Native,
    options: MemoryOptions,
    mechanisms: Mapping[str, Mechanism],
    epsilons: Sequence[float],
    progress: Progress = unwatched,
) -> tuple[Survey, list[Trial]]:
    """The survey of a table, and a trial for each budget and mechanism, by their names; values are
    not looked at.

    Raises:
        InputError: for a table that is wrong, and if no mechanism serves it.
    """
    options = replace(
        options, epsilon=epsilons[0], dry_run=True, key_file=_NO_KEY, mechanism=None, policy=None
    )
    read = read_table(frame, Given.of(options))
    if read.model is None:
        raise InputError("give either --model or --fit (model or fit=True)")
    promise, protect = read.model.promise, options.protect
    wanted = list(product(epsilons, mechanisms.items()))
    trials = [
        trial(read.survey, promise, protect, mechanism, epsilon)
        for epsilon, (_, mechanism) in followed(wanted, "comparing", progress)
    ]
    named = zip(trials, wanted, strict=True)
    trials = [one._replace(mechanism=name) for one, (_, (name, _)) in named]
    if all(one.released is None for one in trials):
        raise InputError(str(trials[0].why))
    return read.survey, trials


def trial(
    survey: Survey, promise: Promise, protect: str, mechanism: Mechanism, epsilon: float
) -> Trial:
    """One mechanism with one budget on a table.

    Args:
        survey: of the table, by positions.
        promise: the chains that ε is promised for.
        protect: "run" or "each".
        mechanism: what makes the rules; where it serves no such table, windows act.
        epsilon: the budget.
    """
    try:
        policy = designed(mechanism, promise, epsilon, protect, survey)
    except InputError as error:
        return Trial(epsilon, mechanism.name, None, why=str(error))
    released = expected_released(survey.geometry, policy, promise.mean)
    return Trial(epsilon, mechanism.name, released / max(survey.records, 1), policy)
