"""What came of a plan: checks of what was decided, the ledger, certificate and summary."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from offrecord.errors import ChosenByValue, InputError, advise
from offrecord.release.certificate import Certificate
from offrecord.release.ledger import Ledger, ledger
from offrecord.tables import remembered
from offrecord.tables.certifying import certificate_of
from offrecord.tables.decision import Decision
from offrecord.tables.growing import KNOWN, SETTLED
from offrecord.tables.model_check import objection_to
from offrecord.tables.plan import SAW, Plan, accept, compared
from offrecord.tables.standing import (
    Entered,
    not_continued,
    not_entered,
    refuse_another,
    standing,
)
from offrecord.tables.summary import Summary
from offrecord.tables.survey import digest_text
from offrecord.text import many

CONTENT = "set of released values"  #: what the ledger calls what left, beside what decided it
#: How a dry run begins to tell what a release would be refused for.
FORETOLD = "this would be refused, as far as can be told without a look at the values,"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a plan. accepted: what speaks against the model, and was accepted."""

    plan: Plan
    decision: Decision
    accepted: tuple[str, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, plan: Plan, decision: Decision) -> Outcome:
        """Judge what was decided of a whole table.

        It looks at values that are released anyway. What it finds about private ones is a Python
        warning, and in no artefact.

        Raises:
            InputError: where the released records speak against the model, or a kept column tells
                the value.
        """
        if decision.choice is not None and (said := decision.choice.warning()) is not None:
            advise([said], ChosenByValue)
        warnings: list[str] = []
        accepted = plan.accepted + _sight(plan, decision.seen.count, warnings)
        policy, model = plan.chosen.policy, plan.model
        moves = decision.moves if plan.survey.private else None
        if moves is not None and policy is not None and model is not None:
            objection, warning = objection_to(moves, model.promise.mean, policy)
            accepted += accept(plan.given, [objection])
            warnings += [] if warning is None else [warning]
        findings = [] if decision.kept is None else decision.kept.findings
        for finding in findings:
            told = finding.says(plan.labels)
            if finding.sure:
                raise InputError(f"{told}; leave it out of --keep")
            warnings.append(f"{told}; is it needed?")
        warnings += [
            f"the model does not match these data, which was accepted: {one}" for one in accepted
        ]
        return cls(plan, decision, accepted, (*plan.warnings, *warnings))

    @property
    def _identity(self) -> dict[str, str]:
        """What distinguishes the release from others: what decides it, and what leaves."""
        decision = self.decision
        left = {CONTENT: f"{decision.content:032x}"}
        if self.plan.holding is not None:
            left[SETTLED] = f"{decision.settled:032x}"
            left[KNOWN] = digest_text(decision.known_digest, decision.known)
        return {**self.plan.identity, **left}

    def advise(self, more: Iterable[str] = ()) -> None:
        """Warn of what a person should know before a release is entered; InputError, and no
        warning, if the ledger refuses it.
        """
        given = self.plan.given
        if not given.options.dry_run:
            self._refuse_another(Ledger.read(given.key))
        advise([*self.warnings, *more])

    def enter(self) -> Entered | None:
        """Enter the release, and what leaves, into the ledger before anyone sees it: how it stands
        there. InputError for a second, different one. A dry run is no release.
        """
        given, plan = self.plan.given, self.plan
        if given.options.dry_run:
            return None
        with ledger(given.key) as book:
            self._refuse_another(book)
            if plan.model is not None and plan.chosen.policy is not None:
                kept = compared(plan.chosen, plan.survey)
                remembered.save(given, plan.model.promise, plan.chosen.policy, kept)
            book.add(given.options.dataset, self._identity)
            return standing(given, book, self._identity)

    def _refuse_another(self, book: Ledger) -> None:
        """InputError if the release may not be entered."""
        plan = self.plan
        if book.differences(plan.given.options.dataset, self._identity) == []:
            return  # it has been entered already
        refuse_another(plan.given, book, plan.survey, plan.before, self._identity)
        before = plan.before
        if before is not None and before.is_unsettled(f"{self.decision.repeated:032x}"):
            said = "what left before would leave otherwise: values or rows have changed"
            raise not_continued(plan.given, [said])

    def certificate(self, entered: Entered | None) -> Certificate:
        """The certificate; it names no output yet."""
        is_known = self.plan.seen is not None and not self.plan.given.options.dry_run
        unseen = self.decision.seen.count == 0 if is_known else None
        stands = not_entered(self.plan.given) if entered is None else entered.said
        return certificate_of(self.plan, self.decision, self.accepted, unseen, stands)

    def summary(self, entered: Entered | None) -> Summary:
        """What the release amounts to."""
        warnings = (*self.warnings, *(() if entered is None else entered.warnings))
        seconds = round(time.monotonic() - self.plan.started, 3)
        return Summary.of(self.plan, self.decision, warnings, seconds)


def _sight(plan: Plan, count: int, warnings: list[str]) -> tuple[str, ...]:
    """What speaks against a model that saw so many records that may be redacted, if that is to be
    accepted; a dry run, which knows them by their places alone, warns instead.
    """
    if count == 0:
        return ()
    said = (
        f"{SAW} are not released for certain here ({many(count, 'record')}), so it says something"
        " of them"
    )
    origin = None if plan.model is None else plan.model.origin
    if origin is not None and origin.distance is not None:
        said += f"; learn from further away than --fit-distance {origin.distance}, or other data"
    else:
        said += "; fit it with --private-list or --private, or use redact --fit"
    try:
        return accept(plan.given, [said])
    except InputError as error:
        if not plan.given.options.dry_run:
            raise
        warnings.append(f"{FORETOLD} unless the model was learned from other data: {error}")
        return ()
