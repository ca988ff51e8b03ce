"""Asked: what a person wants of a fit."""

from __future__ import annotations

from dataclasses import dataclass, field

from offrecord.errors import InputError
from offrecord.fitting.boxes import Sureness
from offrecord.fitting.orders import AUTO
from offrecord.models.clock import phase_count


@dataclass(frozen=True)
class Asked:
    """What a person wants of a fit.

    order: how many records the next one depends on, or AUTO. phase: what has a kernel each. sure:
    of the set of models. states: hidden ones that are tried too. audit: check the promise against
    data held back. calibrate: enlarge the model until it holds there. distance: in steps, from
    private records, of those to learn from; None for chains without any.
    """

    order: int | str = AUTO
    phase: str | None = None
    sure: Sureness = field(default_factory=Sureness)
    states: int | None = None
    audit: bool = True
    calibrate: bool = False
    distance: int | None = None

    def __post_init__(self) -> None:
        if self.phase is not None:
            phase_count(self.phase)
        if self.states is not None and self.phase is not None:
            raise InputError("--states is for one kernel throughout: leave --phase out")
        if self.calibrate and not self.audit:
            raise InputError("--calibrate goes by the audit: leave --no-audit out")
        if self.calibrate and self.states is not None:
            raise InputError("--calibrate tries chains on values: leave --states out")
