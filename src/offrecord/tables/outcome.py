"""What came of a plan: checks of what was decided, the ledger, certificate and summary."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from offrecord.errors import advise, as_called
from offrecord.release.certificate import Certificate
from offrecord.release.ledger import Ledger, ledger
from offrecord.tables import remembered
from offrecord.tables.certifying import certificate_of
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
    """What came of a plan. accepted: what speaks against the model, and was accepted."""

    plan: Plan
    decision: Decision
    accepted: tuple[str, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, plan: Plan, decision: Decision) -> Outcome:
        """Judge what was decided of a whole table, by values that are released anyway.

        Raises:
            InputError: where a check refuses the release.
        """
        accepted, warnings = findings_after(plan, decision.observations)
        accepted = plan.accepted + accepted
        said = [*plan.warnings, *warnings]
        said += [
            f"the model does not match these data (accepted with --accept model): {one}"
            for one in accepted
        ]
        return cls(plan, decision, accepted, tuple(map(as_called, said)))

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
        what a person should know.

        Args:
            more: warnings besides its own.
            before: how it stood there when it was entered earlier: what was said is not said again.

        Returns:
            How it stands there; None after a dry run, which is no release.

        Raises:
            InputError: for a second, different release; then nothing is warned of.
        """
        given = self.plan.given
        if not given.options.dry_run:
            self._refuse_another(Ledger.read(given.key))
        advise([*(self.warnings if before is None else ()), *more])
        if given.options.dry_run:
            return None
        entered = self._entered()
        said = () if before is None else before.warnings
        advise(one for one in entered.warnings if one not in said)
        return entered

    def _entered(self) -> Entered:
        given, plan = self.plan.given, self.plan
        with ledger(given.key) as book:
            self._refuse_another(book)
            # Before the entry: a crash in between leaves rules that no release has used.
            if plan.model is not None and plan.chosen.policy is not None:
                kept = compared(plan.chosen, plan.survey)
                remembered.save(given, plan.model.promise, plan.chosen.policy, kept)
            book.add(given.options.dataset, self._identity)
            return standing(given, book, self._identity)

    def _refuse_another(self, book: Ledger) -> None:
        """InputError if the release may not be entered."""
        plan, before = self.plan, self.plan.before
        if book.differences(plan.given.options.dataset, self._identity) == []:
            return  # it has been entered already
        refuse_another(plan, book, self._identity)
        if before is not None and before.is_unsettled(f"{self.decision.repeated:032x}"):
            said = "what left before would leave otherwise: values or rows have changed"
            raise not_continued(plan.given, said)

    def certificate(self, entered: Entered | None) -> Certificate:
        """The certificate; it names no output yet."""
        given = self.plan.given
        unseen = None
        if self.plan.seen is not None and not given.options.dry_run:
            sighting = self.decision.observations.get("seen")
            unseen = sighting is None or sighting.count == 0
        stands = not_entered(given) if entered is None else entered.said
        return certificate_of(self.plan, self.decision, self.accepted, unseen, stands)

    def summary(self, entered: Entered | None) -> Summary:
        """What the release amounts to."""
        warnings = (*self.warnings, *(() if entered is None else entered.warnings))
        seconds = round(time.monotonic() - self.plan.started, 3)
        return Summary.of(self.plan, self.decision, warnings, seconds)
