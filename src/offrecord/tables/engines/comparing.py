"""What mechanisms and budgets would release of a table: dry runs side by side, on one reading."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from offrecord.errors import InputError, advise
from offrecord.mechanisms import Mechanism
from offrecord.tables.cautions import UNKNOWN_SIGHT
from offrecord.tables.engines.memory import TableRead
from offrecord.tables.frames import Native
from offrecord.tables.job import Job
from offrecord.tables.options import Options
from offrecord.tables.summary import Summary
from offrecord.text import Progress, followed, unwatched

#: No key is needed and none is made: there is nothing at this path, and never will be.
_NO_KEY = Path(os.devnull, "key.json")


class Trial(NamedTuple):
    """A mechanism with a budget: what a dry run expects, or what it was refused for."""

    epsilon: float
    mechanism: str
    summary: Summary | None
    refused: InputError | None = None

    @property
    def why(self) -> str | None:
        """Why there is nothing to expect."""
        return None if self.refused is None else str(self.refused)


def compared(
    frame: Native,
    options: Options,
    mechanisms: Mapping[str, Mechanism],
    epsilons: Sequence[float],
    progress: Progress = unwatched,
) -> list[Trial]:
    """A trial for each budget and mechanism, by their names; values are not looked at.

    InputError for a table that is wrong, and if no mechanism serves it.
    """
    options = replace(
        options, epsilon=epsilons[0], dry_run=True, designs=None, key_file=_NO_KEY, mechanism=None
    )
    read = TableRead.of(frame, Job.of(options))
    began = monotonic()
    trials: list[Trial] = []
    warnings: dict[str, None] = {}
    for epsilon, name in followed(list(product(epsilons, mechanisms)), "comparing", progress):
        left = options.design_minutes - (monotonic() - began) / 60
        if trials and left <= 0:
            over = f"not tried, as {options.design_minutes:g} minutes are over: --design-minutes"
            trials.append(Trial(epsilon, name, None, InputError(over)))
            continue
        asked = replace(
            options, epsilon=epsilon, mechanism=mechanisms[name], design_minutes=max(left, 0)
        )
        trial = _tried(read, Job.of(asked), name)
        trials.append(trial)
        warnings |= dict.fromkeys(() if trial.summary is None else trial.summary.warnings)
    if trials[0].refused is not None and all(trial.summary is None for trial in trials):
        raise trials[0].refused
    warnings.pop(UNKNOWN_SIGHT, None)  # which a key would tell, and there is none here
    advise(warnings)
    return trials


def _tried(read: TableRead, job: Job, name: str) -> Trial:
    """A dry run on a table that has been read."""
    modelled = job.modelled(read.model)
    if modelled.unserved is not None:
        return Trial(job.epsilon, name, None, InputError(modelled.unserved))
    try:
        plan, keyed = read.planned(modelled)
        outcome = plan.judged(plan.worker.expect(keyed))
    except InputError as error:
        return Trial(job.epsilon, name, None, error)
    return Trial(job.epsilon, name, outcome.summary(None))
