"""What a person should know about how the table is read and what leaves beside the values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from offrecord.tables.checks.check import DataCheck, Finding

if TYPE_CHECKING:
    from offrecord.tables.plan import Plan

_BY_ROW = "coins go by row number: a row inserted later changes the draws of those after it"
_KEPT_ROWS = (
    "rows of chains that went as a whole stay, with empty values: that how long chains are, and"
    " when their records were made, does not depend on values is an assumption"
)


class Reading(DataCheck):
    """Warns of what reading the table takes for granted."""

    def before(self, plan: Plan) -> Iterator[Finding]:
        for text in _warnings(plan):
            yield Finding("warning", text)


def _warnings(plan: Plan) -> Iterator[str]:
    columns = plan.given.columns
    yield from plan.survey.warnings(columns, plan.given.step)
    if plan.chosen.why is not None:
        yield f"whole chains go: {plan.chosen.why}"
    if plan.model is None and plan.given.options.keep_rows:
        yield _KEPT_ROWS
    if columns.keep:
        how = "leave empty where the value is redacted"
        how = "are released as they are" if columns.keep_all else how
        yield f"kept columns {how}; the guarantee does not cover them: {', '.join(columns.keep)}"
    if columns.order is None:
        yield _BY_ROW
