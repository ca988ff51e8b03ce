"""What a person should know about a release that its certificate tells too: of the model, its
audit, the columns beside the value, and other releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from offrecord.fitting.audit.audit import EPSILONS
from offrecord.models.audited import Audited
from offrecord.release.certificate import Release
from offrecord.text import many

UNTOLD = (
    "the model does not say what it was learned from; that it belongs to these data is taken on"
    " trust"
)
UNAUDITED = "the promise was not checked against data: fit the model without --no-audit"
UNKNOWN_SIGHT = (
    "whether the model was learned from records that are redacted here is not known, as it was not"
    " fitted under this key; if it was, it tells of them"
)
BY_ROW = "coins go by row number: a row inserted later changes the draws of those after it"


class Origin(Protocol):
    """What a model was learned from, as a model file or a certificate says it."""

    @property
    def value(self) -> str:
        """The column it is about."""

    @property
    def distance(self) -> int | None:
        """How far from private records it was learned, if from the very table."""


def about_origin(learned: Origin | None, value: str) -> list[str]:
    """Of what a model was learned from, for a column of this name."""
    if learned is None:
        return [UNTOLD]
    if learned.value != value:
        return [
            f"the model was learned from a column called {learned.value!r}, not {value!r}: is it"
            " about the same?"
        ]
    return []


def about_distance(learned: Origin | None) -> list[str]:
    """Of a model that was learned from the table itself."""
    if learned is None or learned.distance is None:
        return []
    return [
        f"the model was learned from records {learned.distance} steps or more from every private"
        " one: that those nearer by follow it too is an assumption"
    ]


def about_audit(audit: Audited, epsilon: float) -> list[str]:
    """Of an audit: what it found, and what it did not look at."""
    warnings = []
    if audit.verdict == "doubtful":
        warnings.append(f"the audit of the model calls it {audit.short} ({audit.where})")
    if not audit.looked_at:
        warnings.append(
            "the audit had nothing to look at: its designs redact everything, so it does not speak"
            " for one that does not"
        )
    elif epsilon > max(EPSILONS):
        warnings.append(
            f"the audit looked at designs for ε up to {max(EPSILONS):g}, not {epsilon:g}"
        )
    return warnings


def about_accepted(accepted: Sequence[str]) -> list[str]:
    """Of what speaks against the model, and was accepted."""
    return [f"this is not the model of these data, which was accepted: {one}" for one in accepted]


def about_columns(order: str | None, keep: Sequence[str], *, keep_all: bool) -> list[str]:
    """Of columns. order: None where rows stand in it."""
    warnings = []
    if keep:
        how = "leave empty where the value is redacted"
        how = "are released as they are" if keep_all else how
        warnings.append(f"kept columns {how}; the guarantee does not cover them: {', '.join(keep)}")
    if order is None:
        warnings.append(BY_ROW)
    return warnings


def about_others(release: Release, dataset: str) -> list[str]:
    """Of other releases of the data set."""
    if release.composed:
        return []
    if release.other_releases:
        had = many(release.other_releases, "other release")
        return [
            f"data set {dataset!r} has had {had}; together they may leak more than this one's ε"
        ]
    return [] if release.why is None else [f"other releases of the data set: {release.why}"]
