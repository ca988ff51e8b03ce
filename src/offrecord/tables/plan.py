"""The plan for a table: what is known about it, which rules act, and what a person should know."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from offrecord.models.base import Label
from offrecord.models.file import Model
from offrecord.models.promise import Promise
from offrecord.release.ledger import Ledger
from offrecord.tables.checks import findings_before
from offrecord.tables.checks.ledger import release_identity
from offrecord.tables.checks.seen import Seen, seen_of
from offrecord.tables.choosing import RULES, Chosen
from offrecord.tables.decision import Rule
from offrecord.tables.given import Given
from offrecord.tables.growing import GROWING, Before, Holding, holding_of
from offrecord.tables.survey import Survey, Surveyor
from offrecord.tables.table import Dropped


def surveyor_of(given: Given, model: Model | None) -> Surveyor:
    """What surveys the table of some options. model: None where there is none."""
    options = given.options
    promise = None if model is None else model.promise
    return Surveyor(
        options.protect,  # type: ignore[arg-type] # checked to be one of both
        1 if promise is None else promise.order,
        None if promise is None else promise.places,
        _before(given),
        positions=options.publish_positions and not options.dry_run,
        open_ended=options.growing,
    )


def _before(given: Given) -> Before | None:
    """The release that one of a growing table is to continue, if there is one."""
    if not given.options.growing:
        return None
    return Before.of(Ledger.read(given.key), given.options.dataset)


@dataclass(frozen=True, eq=False)
class Plan:
    """What is done to a table."""

    given: Given
    model: Model | None  # None where no rules act
    chosen: Chosen
    survey: Survey
    dropped: Dropped
    holding: Holding | None  # of a growing table: what waits
    before: Before | None  # and the release that this one continues
    seen: Seen | None  # which records the model was learned from, if that is known
    identity: dict[str, str]  # digests of what decides the release
    labels: tuple[Label, ...]  # the values
    accepted: tuple[str, ...] = ()  # what speaks against the model, and was accepted
    warnings: tuple[str, ...] = ()  # what a person should know
    started: float = 0.0  # when, by a clock that never goes back

    @classmethod
    def of(
        cls,
        given: Given,
        model: Model | None,
        chosen: Chosen,
        survey: Survey,
        dropped: Dropped,
        before: Before | None,
        labels: tuple[Label, ...],
        started: float,
    ) -> Plan:
        """The plan for a final table; InputError where it speaks against its model, or was released
        differently before. before: the release that its survey compared it with.
        """
        if chosen.kind != RULES:
            model = None
        promise = None if model is None else model.promise
        holding = _holding(given, promise, chosen, survey)
        identity = release_identity(given, survey, dropped, promise, chosen.policy)
        if holding is not None:
            identity[GROWING] = holding.text
        seen = None if model is None else seen_of(given, model)
        plan = cls(given, model, chosen, survey, dropped, holding, before, seen, identity, labels)
        accepted, warnings = findings_before(plan)
        return replace(plan, accepted=accepted, warnings=warnings, started=started)

    @property
    def seconds(self) -> float:
        """How long ago it was started."""
        return round(time.monotonic() - self.started, 3)

    @property
    def records(self) -> int:
        """How many records have a value, in chains that are left out too."""
        return self.survey.records + self.dropped.records

    @property
    def forecast(self) -> Chosen:
        """What was chosen, with shares of all records: chains that are left out count too."""
        left, chosen = self.survey.records / max(self.records, 1), self.chosen
        named = ("expected", "runner_up_expected", "window")
        shares = {name: getattr(chosen, name) for name in named}
        shares = {name: share * left for name, share in shares.items() if share is not None}
        return replace(chosen, **shares)

    @property
    def rule(self) -> Rule:
        """What decides its table."""
        protect, policy = self.given.options.protect, self.chosen.policy
        if policy is None or self.model is None:
            return Rule(None, protect)
        promise = self.model.promise
        # one kernel for all places needs no counts by place
        kernels = promise.places if promise.mean.rows.shape[1] > 1 else None
        rule = Rule(policy, protect, promise.order, promise.places, kernels, promise.k)
        return replace(rule, holding=self.holding, before=self.before, seen=self.seen)


def _holding(
    given: Given, promise: Promise | None, chosen: Chosen, survey: Survey
) -> Holding | None:
    """What waits, where rules act on a growing table."""
    if not given.options.growing or chosen.policy is None or promise is None:
        return None
    return holding_of(chosen.policy, promise.order, survey.newest, given.options.lag)
