"""What came of a plan: checks of what was decided, the ledger, certificate and summary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from offrecord.errors import advise, as_called
from offrecord.release import certificate as form
from offrecord.release.ledger import Ledger, ledger
from offrecord.tables import remembered
from offrecord.tables.checks import findings_after
from offrecord.tables.checks.ledger import (
    Entered,
    not_continued,
    not_entered,
    refuse_another,
    standing,
)
from offrecord.tables.choosing import compared
from offrecord.tables.decision import Decision
from offrecord.tables.growing import KNOWN, SETTLED
from offrecord.tables.plan import Plan
from offrecord.tables.summary import Summary
from offrecord.tables.survey import digest_text

CONTENT = "set of released values"  #: what the ledger calls what left, beside what decided it


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a plan."""

    plan: Plan
    decision: Decision
    accepted: tuple[str, ...]  # what speaks against the model, and was accepted
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, plan: Plan, decision: Decision) -> Outcome:
        """Judge what was decided of a whole table, by values that are released anyway; InputError
        where a check refuses the release.
        """
        accepted, warnings = findings_after(plan, decision.observations)
        accepted = plan.accepted + accepted
        said = [
            f"the model does not match these data (accepted with --accept model): {one}"
            for one in accepted
        ]
        warnings = tuple(map(as_called, (*plan.warnings, *warnings, *said)))
        return cls(plan, decision, accepted, warnings)

    @property
    def _identity(self) -> dict[str, str]:
        """What distinguishes the release from others: what decides it, and what leaves."""
        decision = self.decision
        left = {CONTENT: f"{decision.content:032x}"}
        if self.plan.holding is not None:
            left[SETTLED] = f"{decision.settled:032x}"
            left[KNOWN] = digest_text(decision.known_digest, decision.known)
        return {**self.plan.identity, **left}

    def enter(self, more: Iterable[str] = (), before: Entered | None = None) -> Entered | None:
        """Enter the release, and what leaves, into the ledger before anyone sees it, and warn of
        what a person should know: how it stands there; None after a dry run, which is no release.

        more: warnings besides its own. before: how it stood there when it was entered earlier: what
        was said is not said again. InputError for a second, different release, without a warning.
        """
        given = self.plan.given
        if not given.options.dry_run:
            self._refuse_another(Ledger.read(given.key))
        advise([*(self.warnings if before is None else ()), *more])
        if given.options.dry_run:
            return None
        entered = self._entered()
        advise(entered.since(before))
        return entered

    def _entered(self) -> Entered:
        given = self.plan.given
        with ledger(given.key) as book:
            self._refuse_another(book)  # another run may have entered one meanwhile
            # Before the entry: a crash in between leaves rules that no release has used.
            self._keep_rules()
            book.add(given.options.dataset, self._identity)
            return standing(given, book, self._identity)

    def _keep_rules(self) -> None:
        """Keep the rules beside the key, for a release that is made again."""
        plan, policy = self.plan, self.plan.chosen.policy
        if plan.model is not None and policy is not None:
            others = compared(plan.chosen, plan.survey)
            remembered.save(plan.given, plan.model.promise, policy, others)

    def _refuse_another(self, book: Ledger) -> None:
        """InputError if the release may not be entered."""
        plan, before = self.plan, self.plan.before
        if book.differences(plan.given.options.dataset, self._identity) == []:
            return  # it has been entered already
        refuse_another(plan, book, self._identity)
        if before is not None and before.entry.get(SETTLED) != f"{self.decision.repeated:032x}":
            said = "what left before would leave otherwise: values or rows have changed"
            raise not_continued(plan.given, said)

    def certificate(self, entered: Entered | None) -> form.Certificate:
        """The certificate, which names no output yet. entered: how it stands in the ledger."""
        plan, given, chosen = self.plan, self.plan.given, self.plan.chosen
        return form.Certificate(
            kind=chosen.kind,  # type: ignore[arg-type] # one of three
            claim=_claim(plan),
            assumptions=_assumptions(plan),
            dataset=given.options.dataset,
            key_id=None if given.options.dry_run else given.key.id,
            columns=_columns(plan),
            counts=_counts(plan, self.decision),
            private=_private(plan),
            release=not_entered(given) if entered is None else entered.said,
            growing=plan.holding,
            policy=None if chosen.policy is None else form.Policy.of(chosen.policy.to_dict()),
            choice=_choice(plan),
            evidence=form.Evidence(unseen=self._unseen, accepted=self.accepted),
            versions=form.software_versions(),
            **_model(plan),
        )

    @property
    def _unseen(self) -> bool | None:
        """The model was learned from no record that may be redacted; None if not known."""
        if self.plan.seen is None or self.plan.given.options.dry_run:
            return None
        sighting = self.decision.observations.get("seen")
        return sighting is None or sighting.count == 0

    def summary(self, entered: Entered | None) -> Summary:
        """What the release amounts to."""
        warnings = self.warnings if entered is None else self.warnings + entered.warnings
        return Summary.of(self.plan, self.decision, warnings, self.plan.seconds)


# ---- the parts of a certificate


def _claim(plan: Plan) -> form.Claim:
    epsilon, kind = plan.given.epsilon, plan.chosen.kind
    coverage = None if plan.model is None else plan.model.promise.coverage
    return form.Claim(
        epsilon=epsilon,
        protect=plan.given.options.protect,  # type: ignore[arg-type] # checked
        coverage=coverage,
        statement=form.statement(kind, epsilon, coverage),
    )


def _assumptions(plan: Plan) -> tuple[str, ...]:
    growing, kept = plan.holding is not None, bool(plan.given.columns.keep)
    return form.assumptions(plan.chosen.kind, growing=growing, kept=kept)


def _model(plan: Plan) -> dict[str, Any]:
    """What a certificate says of the model, if there is one."""
    if plan.model is None:
        return {}
    model, origin = plan.model, plan.model.origin
    if origin is not None:  # which records the model has seen is for the key's owner alone
        origin = origin.model_copy(update={"seen": None})
    return {"model": model.promise.form(), "origin": origin, "verdicts": model.verdicts}


def _counts(plan: Plan, decision: Decision) -> form.Counts:
    survey = plan.survey
    return form.Counts(
        rows=survey.rows,
        chains=survey.chains,
        missing=survey.missing,
        private=survey.private,
        runs=survey.runs,
        released=decision.released,
        dropped_chains=plan.dropped.chains,
        dropped_records=plan.dropped.records,
    )


def _columns(plan: Plan) -> form.Columns:
    columns, step = plan.given.columns, plan.given.step
    return form.Columns(
        value=columns.value,
        order=columns.order or "row",
        by=columns.by,
        keep=columns.keep,
        keep_all=columns.keep_all,
        step=None if step is None else step.text,
        order_kind="time" if plan.survey.is_timed else "integer",
        zone=_zone(plan),
    )


def _zone(plan: Plan) -> str | None:
    """The time zone, where steps depend on it: engines may write times in another."""
    step = plan.given.step
    calendar = step is not None and step.kind in ("days", "months")
    return plan.survey.zone if calendar else None


def _private(plan: Plan) -> form.Private:
    survey = plan.survey
    if plan.given.options.dry_run:
        return form.Private(count=survey.private)
    digest = digest_text(survey.private_digest, survey.private)
    return form.Private(count=survey.private, digest=digest, positions=_positions(plan))


def _positions(plan: Plan) -> form.Positions | None:
    columns = plan.given.columns
    if not plan.given.options.publish_positions:
        return None
    names = (*columns.by, columns.order or "row")
    keys = tuple(map(tuple, plan.survey.published_positions()))
    return form.Positions(columns=names, keys=keys)


def _choice(plan: Plan) -> form.Choice | None:
    chosen = plan.forecast
    if chosen.policy is None:
        return None
    return form.Choice(
        acting=chosen.policy.mechanism,
        expected=chosen.expected,
        runner_up=chosen.runner_up,
        runner_up_expected=chosen.runner_up_expected,
    )
