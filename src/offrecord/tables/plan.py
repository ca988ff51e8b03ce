"""The plan for a table: which rules act, chosen from positions and the model alone.

Three steps, none of which looks at a value: `choose` finds the rules, or that every chain with a
private record must go as a whole; the engine then has its final table; `Plan.of` checks it against
model and ledger.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms import compared as compared_mechanisms
from offrecord.mechanisms.base import Mechanism, Unserved
from offrecord.mechanisms.deciding import expected_released
from offrecord.mechanisms.design_table import design_table
from offrecord.mechanisms.rules import LocalRule, Pair, Setting
from offrecord.mechanisms.table_policy import TablePolicy, Validation
from offrecord.mechanisms.window import pair_of_window
from offrecord.models.base import Label
from offrecord.models.file import Model
from offrecord.models.origin import Origin, Verdict
from offrecord.models.posterior import Posterior, never_followed
from offrecord.models.promise import Promise
from offrecord.release.ledger import Ledger
from offrecord.tables import remembered
from offrecord.tables.decision import Rule
from offrecord.tables.given import Given
from offrecord.tables.growing import (
    GROWING,
    Before,
    Holding,
    growing_settings,
    holding_of,
    state_text,
)
from offrecord.tables.model_check import NEIGHBOURS, check_origin, spaced, sparse
from offrecord.tables.seen import Seen
from offrecord.tables.standing import (
    about_elsewhere,
    foretold,
    refuse_another,
    release_identity,
)
from offrecord.tables.survey import Survey, Surveyor
from offrecord.tables.table import Dropped
from offrecord.text import Progress, many, unwatched
from offrecord.theory.window import judge_of

#: Chains from which whole ones can go where no model is believable: fewer would leave too little.
MANY_CHAINS = 8
_NOTHING = "the rules would release nothing of these chains"
_LEAST_LEFT = 0.5  # records of chains with a private one: with fewer left they may go as a whole
_PILOT = 50  # plausible chains whose windows say whether rules are worth designing
_GAIN = 1e-6  # of a record: less is no reason to take a mechanism that is harder to follow
RULES, WHOLE, NONE = "rules", "whole chains", "none"


@dataclass(frozen=True, eq=False)
class Chosen:
    """What acts in a table.

    kind: "rules", "whole chains" (each with a private record goes) or "none" (private chains are
    whole, or there are none). policy: the rules. expected, runner_up, runner_up_expected: shares of
    records that are expected to leave. why: for whole chains, the reason. warnings: what a person
    should know.
    """

    kind: str
    policy: TablePolicy | None = None
    expected: float = 1.0
    runner_up: str | None = None
    runner_up_expected: float | None = None
    window: float | None = None
    why: str | None = None
    warnings: tuple[str, ...] = ()


def surveyor(given: Given, model: Model | None) -> Surveyor:
    """What surveys the table of some options. model: None where there is none."""
    options = given.options
    promise = None if model is None else model.promise
    return Surveyor(
        options.protect,  # type: ignore[arg-type] # checked to be one of both
        1 if promise is None else promise.order,
        None if promise is None else promise.places,
        before(given),
        positions=options.publish_positions and not options.dry_run,
        open_ended=options.growing,
    )


def before(given: Given) -> Before | None:
    """The release that one of a growing table is to continue, if there is one."""
    if not given.options.growing:
        return None
    book = Ledger.read(given.key)
    dataset = given.options.dataset
    return Before.of(book.releases.get(dataset, ()), dataset)


def choose(given: Given, model: Model | None, survey: Survey) -> Chosen:
    """What acts in a table, by positions and the model alone.

    Args:
        given: what is asked for.
        model: the model, if one is given or was learned.
        survey: of the table.

    Raises:
        InputError: where a model is needed and there is none to believe, and for given rules that
            do not serve the table.
    """
    if survey.partly == 0 and not given.options.growing:
        return Chosen(NONE)
    if model is None:
        raise InputError(
            "give either --model or --fit (model or fit=True); where whole chains are private, no"
            " model is needed"
        )
    broken = _broken(given, model)
    if broken is not None:
        return _whole_chains(given, model, survey, broken, _BELIEVE)
    try:
        chosen = _rules(given, model.promise, survey)
    except Unserved as error:
        return _whole_chains(given, model, survey, str(error))
    left = chosen.expected * survey.records - (survey.records - survey.touched_records)
    fitted = isinstance(model.promise, Posterior) and given.options.policy is None
    if not fitted or left >= _LEAST_LEFT or given.options.growing:
        return chosen
    if survey.chains >= MANY_CHAINS:
        return _whole_chains(given, model, survey, _NOTHING)
    if survey.touched_records == survey.records:
        raise InputError(f"the rules would release nothing of this table. {_RELEASE}")
    return chosen


#: What the rules of a release were chosen before, which a release made again cannot see.
_COMPARED = ("runner_up", "runner_up_expected", "window")


def compared(chosen: Chosen, survey: Survey) -> dict[str, Any]:
    """What is kept of a choice beside its rules."""
    return {name: getattr(chosen, name) for name in _COMPARED} | {"table": survey.table_fingerprint}


# ---- whether the model is believed


def _broken(given: Given, model: Model) -> str | None:
    """Why the model is not believed, unless that is accepted."""
    verdict = model.verdict(given.epsilon)
    if verdict is None or verdict.verdict != "broken" or given.options.accepts("model"):
        return None
    return f"the model is broken at ε = {given.epsilon:g}: {about_verdict(verdict)}"


def about_verdict(verdict: Verdict) -> str:
    """What was counted, what was promised, and what could have been seen."""
    if verdict.counted is None:
        return "no pattern beside two values has enough cases to be counted"
    where = "" if verdict.pattern is None else f" ({verdict.pattern})"
    seen = ""
    if verdict.visible is not None:
        seen = f"; odds of {verdict.visible:.3g} to 1 or more would have shown"
    return (
        f"held-back records give odds of at least {verdict.counted:.3g} to 1{where} where"
        f" {verdict.promised:.3g} to 1 is promised{seen}"
    )


#: What helps against a broken model, and where rules would redact everything.
_BELIEVE = (
    "Fit a model with a coarser --step, a higher --chain-order or another --phase, take an"
    " --epsilon at which it is not broken, or add --accept model, and the certificate says so"
)
_RELEASE = "Take a larger --epsilon or a coarser --step, or fit a model to more data like these"


def _whole_chains(
    given: Given, model: Model, survey: Survey, why: str, remedies: str = _RELEASE
) -> Chosen:
    """Every chain with a private record goes; InputError where that is no way out."""
    if given.options.growing:
        raise InputError(f"{why}; whole chains cannot go from a table that grows. {remedies}")
    if survey.chains < MANY_CHAINS:
        raise InputError(
            f"{why}; with {many(survey.chains, 'chain')} whole ones cannot go instead. {remedies}"
        )
    dependence = None if model.origin is None else model.origin.dependence
    if dependence is not None:
        raise InputError(
            f"{why}; whole chains cannot go instead, as neighbouring ones tell of them: odds of at"
            f" least {dependence:.3g} to 1 at the same time. {remedies}"
        )
    return Chosen(WHOLE, why=why, expected=1 - survey.touched_records / max(survey.records, 1))


# ---- which rules act


def _rules(given: Given, promise: Promise, survey: Survey) -> Chosen:
    """The rules that are given, those of the release before, or new ones."""
    if given.policy is not None:
        policy = _judged(given, promise, survey, given.policy)
        return _expected(promise, survey, [policy])
    known = remembered.load(given, promise)
    if known is not None and _settings(survey, known[0]) <= set(known[0].rules):
        policy, compared = known
        chosen = _expected(promise, survey, [policy])
        if compared.get("table") != survey.table_fingerprint:
            return chosen
        return replace(chosen, **{name: compared[name] for name in _COMPARED})
    if not given.options.growing and _is_hopeless(promise, survey, given.epsilon):
        raise Unserved(_NOTHING)
    return _expected(promise, survey, list(_candidates(given, promise, survey)))


def _is_hopeless(promise: Promise, survey: Survey, epsilon: float) -> bool:
    """Whether even half of the windows of a few plausible chains would release nothing of chains
    with a private record, where these can go as a whole. Designing rules that redact everything
    takes minutes where memory is long.
    """
    few = survey.chains < MANY_CHAINS and survey.touched_records < survey.records
    if few or promise.places is not None or not isinstance(promise, Posterior):
        return False
    members, judge = promise.members(_PILOT, promise.seed(epsilon, "pilot")), judge_of("record", 0)
    size, beside = 2, survey.records - survey.touched_records
    while np.count_nonzero(judge(members, size, size) > epsilon) > _PILOT // 10:
        half = (size // 2, size // 2)
        rules = {one: pair_of_window(one, half, promise.k) for one in survey.settings}
        policy = TablePolicy("window", epsilon, "run", None, rules)
        if expected_released(survey.geometry, policy, promise.mean) - beside < _LEAST_LEFT:
            return True
        size *= 2
    return False


def _settings(survey: Survey, policy: TablePolicy) -> frozenset[Setting]:
    """The settings that rules are needed for: more where near runs become one."""
    return survey.settings if policy.is_local else survey.joined


def designed(
    mechanism: Mechanism,
    promise: Promise,
    epsilon: float,
    protect: str,
    survey: Survey,
    watch: Progress = unwatched,
    *,
    growing: bool = False,
) -> TablePolicy:
    """The policy of a mechanism for a table.

    Args:
        mechanism: what makes the rules; where it serves no such table, windows act.
        promise: the chains that ε is promised for.
        epsilon: the budget.
        protect: "run" or "each".
        survey: of the table.
        watch: follows the progress.
        growing: rules are for every setting that may come to occur.

    Raises:
        Unserved: where no rules keep ε.
    """
    joins = mechanism.joins and protect == "run"
    settings: Collection[Setting] = survey.joined if joins else survey.settings
    if growing:
        settings = growing_settings(promise, protect)
    return design_table(mechanism, promise, epsilon, protect, settings, watch)


def _candidates(given: Given, promise: Promise, survey: Survey) -> Iterable[TablePolicy]:
    """Policies of the mechanism that is asked for, or of all that are compared."""
    asked, protect = given.mechanism, given.options.protect
    # of equal ones the first acts
    every = [asked] if asked is not None else compared_mechanisms(protect)
    watch, found, last = given.options.progress, set[str](), None
    growing = given.options.growing
    for mechanism in every:
        try:
            policy = designed(
                mechanism, promise, given.epsilon, protect, survey, watch, growing=growing
            )
        except Unserved as error:
            last = error
            continue
        if policy.mechanism not in found:
            found.add(policy.mechanism)
            yield policy
    if not found and last is not None:
        raise last


def _expected(promise: Promise, survey: Survey, policies: list[TablePolicy]) -> Chosen:
    """The policy that is expected to release most, and the one that comes next."""
    records = max(survey.records, 1)
    released = [expected_released(survey.geometry, one, promise.mean) for one in policies]
    best = 0
    for at, count in enumerate(released):
        if count > released[best] + _GAIN:
            best = at
    acting = policies[best]
    others = [(count, one) for count, one in zip(released, policies, strict=True)]
    rest = sorted((one for one in others if one[1] is not acting), key=lambda one: -one[0])
    window = next((count for count, one in others if one.mechanism == "window"), None)
    chosen = Chosen(
        RULES,
        acting,
        min(max(released[best] / records, 0.0), 1.0),
        window=None if window is None else window / records,
    )
    if not rest:
        return chosen
    count, second = rest[0]
    share = min(max(count / records, 0.0), 1.0)
    return replace(chosen, runner_up=second.mechanism, runner_up_expected=share)


def _judged(given: Given, promise: Promise, survey: Survey, policy: TablePolicy) -> TablePolicy:
    """Rules that are given, judged on draws of this command's own; InputError where they do not
    serve the table, or do not keep ε.
    """
    if policy.protect != given.options.protect:
        raise InputError(f"the policy protects {policy.protect!r}: add --protect {policy.protect}")
    _check_shape(policy, promise)
    missing = sorted(_settings(survey, policy) - set(policy.rules))
    if missing:
        first = missing[0]
        raise InputError(
            f"the policy has no rule for the setting {first.kind!r} at place {first.place}, which"
            " occurs in the table: design it for this setting too"
        )
    rule = promise.acceptance
    members = promise.members(0 if rule is None else rule.drawn, remembered.own_seed())
    found = Validation.of(policy.leakages(members), given.epsilon)
    if found.above > (0 if rule is None else rule.verifier):
        raise InputError(
            f"the policy exceeds ε = {given.epsilon:g} under {found.above:,} of {found.drawn:,}"
            " chains of the model"
        )
    return replace(policy, epsilon=given.epsilon, coverage=promise.coverage, validation=found)


def _check_shape(policy: TablePolicy, promise: Promise) -> None:
    """InputError for rules on other values, of another order or place, than the model's."""
    places = 1 if promise.places is None else promise.places.count
    for setting, pair in policy.rules.items():
        sides = (pair.left is not None, pair.right is not None)
        if sides != {"first": (False, True), "last": (True, False)}.get(setting.kind, (True, True)):
            raise InputError(f"the policy has other sides for {setting.kind!r} than it needs")
        if setting.place >= places:
            raise InputError(f"the policy has rules for place {setting.place}, the model none")
        if not all(rule.fits(promise.k, promise.order) for rule in pair if rule is not None):
            raise InputError(
                f"the policy has rules for other chains than the model's, which have {promise.k}"
                f" values and order {promise.order}"
            )


def erased(policy: TablePolicy, promise: Promise) -> float:
    """What erasing private records alone would leak under the mean chain."""
    nothing = LocalRule.window(0, promise.k)
    rules = {
        setting: Pair(*(None if rule is None else nothing for rule in pair))
        for setting, pair in policy.rules.items()
    }
    return float(replace(policy, rules=rules).leakages(promise.mean)[0])


# ---- the plan


@dataclass(frozen=True, eq=False)
class Plan:
    """What is done to a table.

    identity: digests of what decides the release. labels: the values. holding, before: of a
    growing table. accepted: what speaks against the model, and was accepted. warnings: what a
    person should know. started: when, by a clock that never goes back.
    """

    given: Given
    model: Model | None
    chosen: Chosen
    survey: Survey
    dropped: Dropped
    holding: Holding | None
    before: Before | None
    seen: Seen | None
    identity: dict[str, str]
    labels: tuple[Label, ...]
    accepted: tuple[str, ...]
    warnings: tuple[str, ...]
    started: float

    @classmethod
    def of(
        cls,
        given: Given,
        model: Model | None,
        chosen: Chosen,
        survey: Survey,
        dropped: Dropped,
        labels: tuple[Label, ...],
        started: float | None = None,
    ) -> Plan:
        """The plan for a final table.

        Raises:
            InputError: where the table speaks against its model, or was released differently
                before.
        """
        given.check_private(survey.private + dropped.private)
        if chosen.kind != RULES:
            model = None
        accepted: tuple[str, ...] = ()
        if model is not None:
            accepted = accept(given, _doubts(given, model, survey))
        warnings = [*survey.warnings(given.columns, given.step), *chosen.warnings]
        warnings += _model_warnings(given, model, chosen)
        warnings += about_columns(given)
        holding = None
        if given.options.growing and chosen.policy is not None and model is not None:
            lag = given.options.lag
            holding = holding_of(chosen.policy, model.promise.order, survey.newest, lag)
        promise = None if model is None else model.promise
        identity = release_identity(given, survey, dropped, promise, chosen.policy)
        if holding is not None:
            identity[GROWING] = state_text(holding)
        last = before(given)
        if given.options.dry_run:
            warnings += foretold(given, survey, last, identity)
        else:
            book = Ledger.read(given.key)
            refuse_another(given, book, survey, last, identity)
            warnings += about_elsewhere(given, book, identity)
        return cls(
            given,
            model,
            chosen,
            survey,
            dropped,
            holding,
            last,
            None if model is None else seen_of(given, model),
            identity,
            labels,
            accepted,
            tuple(warnings),
            time.monotonic() if started is None else started,
        )

    @property
    def rule(self) -> Rule:
        """What decides its table."""
        protect, policy = self.given.options.protect, self.chosen.policy
        if policy is None or self.model is None:
            return Rule(None, protect)
        promise = self.model.promise
        return Rule(
            policy,
            protect,
            promise.order,
            promise.places,
            promise.places if promise.mean.rows.shape[1] > 1 else None,
            promise.k,
            self.holding,
            self.before,
            self.seen,
        )


#: How an objection begins that is about what a fit saw.
_LEARNED = "the model was learned from"
SAW = f"{_LEARNED} records that"


def accept(given: Given, objections: Iterable[str | None]) -> tuple[str, ...]:
    """What speaks against the model, if that is to be accepted; InputError if it is not."""
    found = tuple(filter(None, objections))
    if found and not given.options.accepts("model"):
        said = found[0]
        if not said.startswith(_LEARNED):
            said = f"the model does not match these data: {said}; fit a model to data like these"
        raise InputError(f"{said}, or add --accept model, and the certificate says so")
    return found


def seen_of(given: Given, model: Model) -> Seen | None:
    """Which records a model was learned from, where that is known."""
    origin, secret = model.origin, given.key.secret
    seen: Seen | None = None
    if origin is not None and isinstance(origin._counted, Seen):
        seen = origin._counted.keyed(secret)
    elif origin is not None and origin.seen is not None:
        seen = Seen.load(given.key, origin.seen)
    if seen is None or not given.options.dry_run:
        return seen
    return seen.by_places()


def _doubts(given: Given, model: Model, survey: Survey) -> list[str | None]:
    """What speaks against a model before a value is looked at; InputError where the table is read
    in another way.
    """
    doubts = [sparse(survey.pairs, survey.linked)]
    verdict = model.verdict(given.epsilon)
    if verdict is not None and verdict.verdict == "broken":  # else whole chains go
        doubts.append(about_verdict(verdict))
    if model.origin is not None:
        timed = "time" if survey.is_timed else "integer"
        kind = "row" if given.columns.order is None else timed
        check_origin(model.origin, kind, given.step, survey.zone)
        doubts.append(spaced(model.origin, survey.spacing if survey.pairs >= NEIGHBOURS else None))
        doubts.append(_elsewhere(given, model, model.origin))
    return doubts


def _elsewhere(given: Given, model: Model, origin: Origin) -> str | None:
    """What speaks against a model of another column, or one of this column that was made under
    another key: which records it saw is not known here.
    """
    value = given.options.value
    if origin.column != value:
        return f"{_LEARNED} the column {origin.column!r}, not {value!r}: fit one of this column"
    if origin.seen is not None and seen_of(given, model) is None:
        return (
            f"{_LEARNED} a column {value!r} under another key, so whether it saw records that are"
            " redacted here is not known: fit it under this key"
        )
    return None


_UNTOLD = (
    "the model does not say what it was learned from; that it belongs to these data is taken on"
    " trust"
)
_UNSEEN = (
    "whether the model was learned from records that are redacted here is not known, as it was not"
    " fitted under this key; if it was, its counts say something of them"
)
BY_ROW = "coins go by row number: a row inserted later changes the draws of those after it"
KEPT_ROWS = (
    "rows of chains that went as a whole stay, with empty values: that how long chains are, and"
    " when their records were made, does not depend on values is an assumption"
)
_NEAR_ROUNDS = 1.3  # sensitivities above it are warned of (plausible chains, section 6)


def _model_warnings(given: Given, model: Model | None, chosen: Chosen) -> list[str]:
    """What a person should know about the model, or about going without one."""
    if model is None:
        said = [] if chosen.why is None else [f"whole chains go: {chosen.why}"]
        return said + ([KEPT_ROWS] if given.options.keep_rows else [])
    origin = model.origin
    warnings = about_origin(model, given.options.value)
    if isinstance(model.promise, Posterior) and not given.options.fit:
        warnings.append(published(model))
        warnings += never_followed(model.promise)
    if isinstance(model.promise, Posterior):
        warnings += _verdict_warnings(given, model)
    if origin is not None and seen_of(given, model) is None:
        warnings.append(_UNSEEN)
    return warnings


def about_origin(model: Model, value: str) -> list[str]:
    """Of what a model was learned from, for a column of this name."""
    origin = model.origin
    if origin is None:
        return [_UNTOLD]
    warnings = []
    if origin.distance is not None:
        warnings.append(
            f"the model was learned from records {origin.distance} steps or more from every private"
            " one: that those nearer by follow it too is an assumption"
        )
    return warnings


def published(model: Model) -> str:
    """What the certificate gives away of the reference records."""
    origin = model.origin
    if origin is None:
        return "the certificate publishes the counts that the model was learned from"
    table = "another table" if origin.table is None else repr(origin.table)
    alone = f"; {many(origin.lone_cells, 'cell')} come from one chain alone"
    return (
        f"the certificate publishes the counts of {many(origin.records, 'record')} of {table}"
        f"{alone if origin.lone_cells else ''}"
    )


def _verdict_warnings(given: Given, model: Model) -> list[str]:
    """What the test of a fitted model says at this ε."""
    verdict = model.verdict(given.epsilon)
    if verdict is None:
        return [
            f"the model was not tested at ε = {given.epsilon:g}: fit it with --epsilon"
            f" {given.epsilon:g}"
        ]
    warnings = []
    if verdict.verdict == "not shown":
        warnings.append(f"whether the promise holds is not shown: {about_verdict(verdict)}")
    elif verdict.counted is not None and verdict.counted > 0.75 * verdict.promised:
        warnings.append(f"the promise holds barely: {about_verdict(verdict)}")
    ratios = {
        "with the order that AIC chooses": verdict.order_ratio,
        "with one more block of time": verdict.time_ratio,
    }
    warnings += [
        f"{name} windows would be {ratio:.2g} times as wide: memory or drift beyond the model"
        for name, ratio in ratios.items()
        if ratio is not None and ratio > _NEAR_ROUNDS
    ]
    return warnings


def about_columns(given: Given) -> list[str]:
    """What a person should know about columns."""
    columns, warnings = given.columns, []
    if columns.keep:
        how = "leave empty where the value is redacted"
        how = "are released as they are" if columns.keep_all else how
        kept = ", ".join(columns.keep)
        warnings.append(f"kept columns {how}; the guarantee does not cover them: {kept}")
    if columns.order is None:
        warnings.append(BY_ROW)
    return warnings
