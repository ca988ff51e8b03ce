"""What a model was learned from, and what a test of it found: parts of its file."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PrivateAttr

from offrecord.models.section import Section


class Origin(Section):
    """Where a model comes from, as far as its use depends on it.

    column: whose values it is about. order: what ordered its records. step: the distance of one
    record from the next, None where neighbours counted as one step apart. spacing: their median
    distance, in seconds or numbers, where there is no step. zone: the time zone of order values.
    bins: where numbers were cut into values.
    others: the label of all values that were too rare to be learned. table: what the records are
    called. chains, records: how many were counted. lone_cells: transitions that one chain alone
    shows. distance: of the records counted from private ones, in steps, where the table itself
    holds private records. dependence: odds at least, to 1, between records of neighbouring chains
    at the same time, None where chance gives as much. seen: the name under which the key's folder
    keeps which records they were.
    """

    column: str
    order: Literal["time", "integer", "row"]
    step: str | None = None
    spacing: float | None = None
    zone: str | None = None
    bins: list[float] | None = None
    others: str | None = None
    table: str | None = None
    chains: int = Field(default=1, ge=1)
    records: int = Field(default=0, ge=0)
    lone_cells: int = Field(default=0, ge=0)
    distance: int | None = Field(default=None, ge=1)
    dependence: float | None = Field(default=None, ge=0)
    seen: str | None = None
    #: Which records were counted, as long as they are in memory; in no file.
    _counted: Any = PrivateAttr(default=None)


class Verdict(Section):
    """What a test of windows on held-back records found, for one ε (plausible chains, section 6).

    verdict: "broken" if the odds counted exceed those promised, "not shown" if too few cases exist
    to see any excess, else "holds". counted: lower limit of the largest odds found; None if no
    pattern has enough cases. promised: e^ε. visible: the least true odds that these records would
    show as broken; None if there are none. pattern: what was counted. cases: beside the two values.
    windows: records redacted on each side of a record, in each half. order_ratio, time_ratio:
    windows with the order that AIC chooses, and with one more block of time, divided by the
    windows that act.
    """

    epsilon: float = Field(ge=0)
    verdict: Literal["holds", "not shown", "broken"]
    counted: float | None = Field(default=None, ge=0)
    promised: float = Field(gt=0)
    visible: float | None = Field(default=None, ge=0)
    pattern: str | None = None
    cases: list[int] = Field(default=[])
    windows: list[int] = Field(default=[])
    order_ratio: float | None = Field(default=None, ge=0)
    time_ratio: float | None = Field(default=None, ge=0)
