"""Whether a certificate agrees with itself, what no check of it can say, and what checks found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from offrecord.errors import InputError
from offrecord.models.evidence import Verdict
from offrecord.models.file import Origin
from offrecord.models.promise import ACCEPTANCE
from offrecord.release.certificate import (
    Certificate,
    Columns,
    Counts,
    Growing,
    Matrix,
    Policy,
    Private,
    Stopping,
    Validated,
    Window,
)
from offrecord.release.certificate import assumptions as assumed
from offrecord.release.certificate import statement as stated
from offrecord.tables.steps import Step

_MOST_EPSILON = 700.0  # e to this is still a float


@dataclass
class Found:
    """problems: what is wrong, a line each. checked, not_checked: sentences."""

    problems: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """What another check found."""
        self.problems += other.problems
        self.checked += other.checked
        self.not_checked += other.not_checked

    def wrong(self, says: str) -> None:
        """One more problem, in one line."""
        self.problems.append(" ".join(says.split()))

    def unequal(self, what: str, said: object, there: object) -> bool:
        """A problem if the certificate says something else than is there; whether it does."""
        if said == there:
            return False
        self.wrong(f"{what}: the certificate says {said}, there is {there}")
        return True


def disagreements(certificate: Certificate) -> Iterator[str]:
    """What contradicts what, one line each."""
    model = certificate.model
    coverage = None if model is None else model.promise().coverage
    for what, there, should in _stated_twice(certificate, coverage):
        if not _same(there, should):
            yield f"{what} must be {should}, is {there}"
    yield from _counts(certificate.counts)
    if certificate.output is not None and None in (certificate.key_id, certificate.private.digest):
        yield "key_id and private.digest must be there, as there is an output"
    yield from _columns(certificate)
    if certificate.policy is not None:
        yield from _policy(certificate, certificate.policy, coverage)
    if certificate.growing is not None:
        yield from _growing(certificate, certificate.growing)
    if certificate.origin is not None:
        yield from _origin(certificate, certificate.origin)
    for verdict in certificate.verdicts:
        yield from _verdict(certificate, verdict)


def _same(there: object, should: object) -> bool:
    if isinstance(there, float) and isinstance(should, float):
        return math.isclose(there, should)
    return there == should


#: Names, what is stated, and what follows from other fields.
_Twice = Iterator[tuple[str, object, object]]


def _stated_twice(certificate: Certificate, coverage: float | None) -> _Twice:
    kind, claim = certificate.kind, certificate.claim
    yield "claim.coverage", claim.coverage, coverage
    yield "claim.statement", claim.statement, stated(kind, claim.epsilon, coverage)
    growing, kept = certificate.growing is not None, bool(certificate.columns.keep)
    yield "assumptions", certificate.assumptions, assumed(kind, growing=growing, kept=kept)
    yield from _private_twice(certificate.private, certificate.counts.private)
    if certificate.output is not None:
        yield "output.rows", certificate.output.rows, certificate.counts.rows
        yield "output.columns", certificate.output.columns, _released(certificate.columns)
    for verdict in certificate.verdicts:
        yield "verdicts.promised", verdict.promised, math.exp(min(verdict.epsilon, _MOST_EPSILON))


def _private_twice(private: Private, count: int) -> _Twice:
    yield "counts.private", count, private.count
    if private.digest is not None:  # it ends with the number of records
        yield "private.digest, count", int(private.digest.partition(":")[2]), count
    if private.positions is not None:
        yield "private.positions, count", len(private.positions.keys), count


def _released(columns: Columns) -> tuple[str, ...]:
    order = () if columns.order == "row" else (columns.order,)
    return (*columns.by, *order, columns.value, *columns.keep)


def _counts(counts: Counts) -> Iterator[str]:
    # private records may have no row, so that there may be more of them
    most = max(counts.rows, counts.private)
    fits = max(counts.runs, counts.released + counts.missing, counts.chains) <= most
    if not fits or counts.runs > counts.private:
        yield "counts do not go together"
    if counts.dropped_records and not counts.dropped_chains:
        yield "counts.dropped_records must be 0, as no chain was left out"


def _columns(certificate: Certificate) -> Iterator[str]:
    step, zone = certificate.columns.step, certificate.columns.zone
    try:
        kind = None if step is None else Step.parsed(step).kind
    except InputError as error:
        yield f"columns.step: {error}"
        return
    # only days and months are of different lengths where clocks are changed
    if zone is not None and kind not in ("days", "months"):
        yield "columns.zone must not be there, as no step depends on it"


def _policy(certificate: Certificate, policy: Policy, coverage: float | None) -> Iterator[str]:
    claim, choice = certificate.claim, certificate.choice
    named = ("epsilon", "protect", "coverage")
    if any(getattr(policy, name) != getattr(claim, name) for name in named):
        yield "policy must have the claim's epsilon, protect and coverage"
    if choice is not None and choice.acting != policy.mechanism:
        yield f"choice.acting must be {policy.mechanism!r}, is {choice.acting!r}"
    if policy.validation is None:
        return
    drawn, accepted = len(getattr(certificate.model, "chains", ())), 0
    if coverage is not None:
        # a policy that is given is judged once more, as a verifier would
        drawn, accepted = ACCEPTANCE[coverage].drawn, ACCEPTANCE[coverage].verifier
    yield from _validation(policy.validation, drawn, accepted, claim.epsilon)


def _validation(validated: Validated, drawn: int, accepted: int, epsilon: float) -> Iterator[str]:
    if validated.drawn != drawn or validated.above > accepted:
        yield (
            f"policy.validation must be of {drawn:,} chains of which {accepted} may exceed ε, is of"
            f" {validated.drawn:,}, {validated.above} of which do"
        )
    numbers = [*validated.quantiles, validated.largest]
    if numbers != sorted(numbers) or (validated.above > 0) != (validated.largest > epsilon):
        yield "policy.validation: its numbers do not go together"


def _growing(certificate: Certificate, growing: Growing) -> Iterator[str]:
    if certificate.columns.step is None:
        yield "a growing table needs columns.step"
    order = 1 if certificate.model is None else certificate.model.promise().order
    deadline, reach = _reaches(certificate.policy)
    reach += order - 1  # a core begins up to so many records before its run
    if growing.reach < reach or growing.lag < growing.reach:
        yield f"growing.lag and growing.reach must be at least {reach}, and lag at least reach"
    if growing.link < 2 * (deadline + order):  # two walks meet where their deadlines do
        yield f"growing.link must be at least {2 * (deadline + order)}, is {growing.link}"


def _reaches(policy: Policy | None) -> tuple[int, int]:
    """The longest deadline of walks, and how far any rule reaches."""
    entries = () if policy is None else policy.rules
    rules = [one for entry in entries for one in (entry.left, entry.right)]
    deadline = max((one.levels[-1] for one in rules if isinstance(one, Stopping)), default=0)
    windows = [one.window for one in rules if isinstance(one, Window)]
    matrices = [len(one.redaction) for one in rules if isinstance(one, Matrix)]
    return deadline, max([deadline, *windows, *matrices])


def _origin(certificate: Certificate, origin: Origin) -> Iterator[str]:
    columns = certificate.columns
    kind = "row" if columns.order == "row" else columns.order_kind
    if origin.order != kind:
        yield f"origin.order must be {kind!r}, is {origin.order!r}"
    if origin.column != columns.value and not certificate.evidence.accepted:
        yield f"origin.column is {origin.column!r}, and nobody accepted that"


def _verdict(certificate: Certificate, verdict: Verdict) -> Iterator[str]:
    counted = verdict.counted
    broken = counted is not None and counted > verdict.promised
    if broken != (verdict.verdict == "broken"):
        yield f"verdicts: {verdict.verdict!r} does not go with the odds counted"
    if verdict.verdict == "holds" and None in (counted, verdict.visible):
        yield "verdicts: 'holds', but nothing was counted that could have shown otherwise"
    if broken and _acts(certificate, verdict) and not certificate.evidence.accepted:
        yield "the model is broken at this ε, and nobody accepted that"


def _acts(certificate: Certificate, verdict: Verdict) -> bool:
    """Whether a test of the model is about the promise made here."""
    return certificate.policy is not None and verdict.epsilon == certificate.claim.epsilon


#: Fields that no check compares with anything, whatever is given, and what they state: the shortest
#: and most important first.
_STATED = {
    "assumptions": "That the assumptions hold, which the certificate lists",
    "release": "Other releases of these records: together they may leak more",
    "versions": "Which software made the release",
    "evidence, origin, verdicts": (
        "Where the model was learned, what its test counted, and what was accepted against it"
    ),
}
_OF_GROWING = {
    "growing": "That this release repeats those before, and that opt-outs were known in time",
}
_OF_POLICY = {
    "choice, policy.mechanism": "Which mechanism made the rules, and why it was chosen",
    "policy.rules": "Whether other rules, which keep ε too, would give the same table",
    "policy.validation": (
        "The publisher's own validation, more closely than chance allows: other chains were drawn"
    ),
}
_OF_WHOLE_CHAINS = {
    "kind, claim.epsilon, claim.protect": "Why chains went as a whole",
}


def left_out(certificate: Certificate) -> Iterator[str]:
    """What no check of this certificate can say, in sentences that name its fields."""
    if certificate.model is not None:
        yield "That the model is right: that the truth is among its plausible chains."
    for objection in certificate.evidence.accepted:
        yield f"The model, against which speaks: {objection}."
    yield "Who made the certificate: it is not signed."
    stated = _STATED | (_OF_WHOLE_CHAINS if certificate.policy is None else _OF_POLICY)
    stated |= {} if certificate.growing is None else _OF_GROWING
    if certificate.counts.dropped_chains:
        stated["counts.dropped_records"] = "How many values the chains had that were left out"
    if certificate.columns.step is None:
        stated["columns.step"] = "Whether rows that follow each other are one step apart"
    for fields, says in stated.items():
        yield f"{says} ({fields})."
    for verdict in certificate.verdicts:
        if _acts(certificate, verdict):
            yield f"What the publisher's test of the model says: {verdict.words()} (verdicts)."
