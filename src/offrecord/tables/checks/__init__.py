"""Checks on the data, run in one place. A new check is a file here and a line in `CHECKS`.

reading  how the table was read        choice  were opt-outs chosen by their values?
model    does it follow its model?     kept    does a kept column leak the value?
seen     did the model see secrets?    ledger  does the ledger know another release?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from offrecord.errors import ChosenByValue, InputError, advise
from offrecord.tables.checks.check import ACCEPT, DataCheck, Finding, Part
from offrecord.tables.checks.choice import ChosenByValues
from offrecord.tables.checks.kept import KeptColumns
from offrecord.tables.checks.ledger import OtherReleases
from offrecord.tables.checks.model import FollowsModel
from offrecord.tables.checks.reading import Reading
from offrecord.tables.checks.seen import LearnedFrom

if TYPE_CHECKING:
    from offrecord.tables.plan import Plan

#: In the order in which they speak: of several refusals, a person reads the first.
CHECKS: Mapping[str, DataCheck] = {
    "choice": ChosenByValues(),
    "reading": Reading(),
    "seen": LearnedFrom(),
    "model": FollowsModel(),
    "kept": KeptColumns(),
    "ledger": OtherReleases(),
}


def observed(part: Part) -> dict[str, Any]:
    """What each check sees in a part of a table."""
    seen = {name: check.observe(part) for name, check in CHECKS.items()}
    return {name: one for name, one in seen.items() if one is not None}


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The observations of two parts as those of one."""
    both = {name: one[name] + other[name] for name in one.keys() & other.keys()}
    return {**one, **other, **both}


def findings_before(plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Check a plan: what was accepted against its model, and warnings; InputError if refused."""
    return _judged(plan, (one for check in CHECKS.values() for one in check.before(plan)))


def findings_after(
    plan: Plan, observations: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Check what was decided, as `findings_before` does a plan."""
    named = [(CHECKS[name], observations[name]) for name in CHECKS if name in observations]
    return _judged(plan, (one for check, seen in named for one in check.after(plan, seen)))


def _judged(plan: Plan, findings: Iterable[Finding]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    said: dict[str, list[str]] = {"doubt": [], "warning": [], "secret": []}
    for one in findings:
        if one.kind == "refusal":
            raise InputError(one.text)
        if one.kind == "doubt" and not plan.given.options.accepts("model"):
            raise InputError((one.error or one.text) + ACCEPT)
        if one.kind == "secret":
            advise([one.text], ChosenByValue)
        said[one.kind].append(one.text)
    return tuple(said["doubt"]), tuple(said["warning"])
