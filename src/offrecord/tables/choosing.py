"""Which rules act on a table: chosen from positions and the model alone, without any value.

Rules that are given, those of the release before, or new ones; or every chain with a private record
goes as a whole, where no model is believed or rules would leave nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms import compared as compared_mechanisms
from offrecord.mechanisms.base import Unserved
from offrecord.mechanisms.deciding.expect import expected_released
from offrecord.mechanisms.design_table import design_table
from offrecord.mechanisms.rules import Pair, Setting
from offrecord.mechanisms.table_policy import TablePolicy, Validation
from offrecord.models.evidence import REMEDY
from offrecord.models.file import Model
from offrecord.models.posterior import Posterior
from offrecord.models.promise import Promise
from offrecord.tables import remembered
from offrecord.tables.advice import is_little, released_by, remedies, what_helps
from offrecord.tables.checks.check import ACCEPT
from offrecord.tables.checks.ledger import refuse_early
from offrecord.tables.checks.seen import of_elsewhere
from offrecord.tables.growing import growing_settings
from offrecord.tables.survey import Survey
from offrecord.text import many
from offrecord.theory.window import judge_of

if TYPE_CHECKING:
    from offrecord.tables.given import Given

#: Chains from which whole ones can go where no model is believable: fewer would leave too little.
MANY_CHAINS = 8
_NOTHING = "the rules would release nothing of these chains"
_LEAST_LEFT = 1.0  # records expected: chains of which fewer leave go, and so few are no release
#: Plausible chains whose windows say whether rules are worth designing, and how many of them may
#: exceed ε: where a table's rules pass their validation, 1.3 of 500 do on average.
_PILOT, _PILOT_EXCEEDING = 500, 4
_GAIN = 1e-6  # of a record: less is no reason to take a mechanism that is harder to follow
_ONE_SIDED = {"first": (False, True), "last": (True, False)}  # at the ends of a chain
RULES, WHOLE, NONE = "rules", "whole chains", "none"


@dataclass(frozen=True, eq=False)
class Chosen:
    """What acts in a table.

    kind: "rules", "whole chains" (each with a private record goes) or "none" (private chains are
    whole, or there are none). policy: the rules. expected, runner_up, runner_up_expected: shares of
    records that are expected to leave. why: for whole chains, the reason. advice: where little
    leaves, what would help.
    """

    kind: str
    policy: TablePolicy | None = None
    expected: float = 1.0
    runner_up: str | None = None
    runner_up_expected: float | None = None
    window: float | None = None
    why: str | None = None
    advice: str | None = None


def choose(given: Given, model: Model | None, survey: Survey) -> Chosen:
    """What acts in a table, by positions and the model alone.

    Args:
        given: what is asked for.
        model: the model, if one is given or was learned.
        survey: of the table.

    Raises:
        InputError: where a model is needed and there is none to believe, for given rules that do
            not serve the table, and where next to nothing would leave.
    """
    if survey.partly == 0 and not given.options.growing:
        return Chosen(NONE)
    if model is None:
        raise InputError(
            "give either --model or --fit; where whole chains are private, no model is needed"
        )
    # Whatever can be refused before rules are designed is: that may take minutes.
    foreign = of_elsewhere(given, model)
    if foreign is not None and not given.options.accepts("model"):
        raise InputError(foreign + ACCEPT)
    refuse_early(given, survey)
    broken = _broken(given, model)
    if broken is None:
        chosen = _rules_or_whole_chains(given, model, survey)
    else:
        chosen = _whole_chains(given, model, survey, broken)
    # Records of a growing table wait: how many leave says nothing yet.
    return chosen if given.options.growing else _advised(given, model, survey, chosen)


def _rules_or_whole_chains(given: Given, model: Model, survey: Survey) -> Chosen:
    try:
        chosen = _rules(given, model, survey)
    except Unserved as error:
        return _whole_chains(given, model, survey, str(error))
    beside = survey.records - survey.touched_records
    left = chosen.expected * survey.records - beside
    fitted = isinstance(model.promise, Posterior) and given.options.policy is None
    few = survey.chains < MANY_CHAINS
    if not fitted or few or left >= _LEAST_LEFT or given.options.growing:
        return chosen
    return _whole_chains(given, model, survey, _NOTHING)


def _advised(given: Given, model: Model, survey: Survey, chosen: Chosen) -> Chosen:
    """The choice with what would help; InputError where next to nothing leaves."""
    records = chosen.expected * survey.records
    if not is_little(survey, records):
        if chosen.kind == RULES or _broken(given, model) is not None:
            return chosen
        helps = remedies(given, model, survey, chosen.expected)
        return chosen if helps is None else replace(chosen, why=f"{chosen.why}. {helps}")
    advice = _helps(given, model, survey, chosen.expected)
    # Chains that were written down, not learned, are for studies: those may be of a few records.
    learned = isinstance(model.promise, Posterior) or model.origin is not None
    if learned and records < _LEAST_LEFT and not given.options.accepts("empty"):
        raise InputError(
            f"of {many(survey.records, 'record')} less than one is expected to leave. {advice}. Or"
            " add --accept empty"
        )
    return replace(chosen, advice=advice)


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
    return f"the model is broken at ε = {given.epsilon:g}: {verdict.reasons()}"


def _helps(given: Given, model: Model, survey: Survey, share: float) -> str:
    """What helps against a broken model, or where little leaves. share: of records that leaves."""
    if _broken(given, model) is None:
        return what_helps(given, model, survey, share)
    kept = [one.epsilon for one in model.verdicts if one.verdict != "broken"]
    larger = [f"{one:g}" for one in sorted(kept) if one > given.epsilon]
    take = f", take --epsilon {larger[0]}, at which it is not broken" if larger else ""
    other = "a coarser --step, a higher --chain-order or another --phase"
    return f"Fit a model with {other}{take}{ACCEPT}"


def _whole_chains(given: Given, model: Model, survey: Survey, why: str) -> Chosen:
    """Every chain with a private record goes; InputError where that is no way out."""
    # A few chains are not given up unasked, and none that says something of its neighbours.
    dependence = None if model.origin is None else model.origin.dependence
    few = survey.chains < MANY_CHAINS
    if not few and not given.options.growing and dependence is None:
        share = survey.touched_records / max(survey.records, 1)
        return Chosen(WHOLE, why=why, expected=1 - share)
    helps = _helps(given, model, survey, 0.0)
    if given.options.growing:
        raise InputError(f"{why}; whole chains cannot go from a table that grows. {helps}")
    if few:
        by = ", ".join(given.columns.by)
        whole = f". Or name whole chains as private: a --private-list of {by} alone"
        raise InputError(
            f"{why}; with {many(survey.chains, 'chain')} whole ones do not go unasked."
            f" {helps}{whole if survey.chains > survey.touched else ''}"
        )
    assert dependence is not None
    raise InputError(
        f"{why}; whole chains cannot go instead, as neighbouring ones depend on them:"
        f" {dependence.words}. {REMEDY.capitalize()}. {helps}"
    )


# ---- which rules act


def _rules(given: Given, model: Model, survey: Survey) -> Chosen:
    promise = model.promise
    if given.policy is not None:
        policy = _judged(given, promise, survey, given.policy)
        return _expected(promise, survey, [policy])
    before = _before(given, promise, survey)
    if before is not None:
        return before
    if not given.options.growing and _is_hopeless(promise, survey, given.epsilon):
        raise Unserved(_NOTHING)
    policies = _candidates(given, promise, survey)
    near = None if model.origin is None else model.origin.distance
    if near is not None:  # rules that leave alone what the model was learned from go first
        policies = [one for one in policies if one.reach + promise.order <= near] or policies
    return _expected(promise, survey, policies)


def _before(given: Given, promise: Promise, survey: Survey) -> Chosen | None:
    """The rules of the release before, if there are any and they serve the table."""
    # Made anew they might differ, by another version of a solver: a second observation.
    known = remembered.load(given, promise)
    if known is None or not _settings(survey, known[0]) <= set(known[0].rules):
        return None
    policy, compared = known
    chosen = _expected(promise, survey, [policy])
    if compared.get("table") != survey.table_fingerprint:
        return chosen
    return replace(chosen, **{name: compared[name] for name in _COMPARED})


def _is_hopeless(promise: Promise, survey: Survey, epsilon: float) -> bool:
    """Whether windows of a few plausible chains release nothing of chains with a private record."""
    # Where whole chains cannot go, rules are designed in any case.
    few = survey.chains < MANY_CHAINS and survey.touched_records < survey.records
    if few or promise.places is not None or not isinstance(promise, Posterior):
        return False
    members = promise.members(_PILOT, promise.seed(epsilon, "pilot"))
    judge = judge_of("record", 0, epsilon)
    size, beside = 2, survey.records - survey.touched_records
    # Where memory is long, designing rules that redact everything takes minutes; this takes a
    # second. A design may redact less than the window, so half of it decides.
    while np.count_nonzero(judge(members, size, size)) > _PILOT_EXCEEDING:
        half = dict.fromkeys(survey.settings, (size // 2, size // 2))
        if released_by(half, promise, survey.geometry, epsilon) - beside < _LEAST_LEFT:
            return True
        size *= 2
    return False


def _settings(survey: Survey, policy: TablePolicy) -> frozenset[Setting]:
    """The settings that rules are needed for: more where near runs become one."""
    return survey.settings if policy.is_local else survey.joined


def _candidates(given: Given, promise: Promise, survey: Survey) -> list[TablePolicy]:
    """Policies of the mechanism asked for, or of all compared; Unserved where none keeps ε."""
    options, asked, served, unserved = given.options, given.mechanism, [], []
    for mechanism in compared_mechanisms(options.protect) if asked is None else [asked]:
        joins = mechanism.joins and options.protect == "run"
        settings: Collection[Setting] = survey.joined if joins else survey.settings
        if options.growing:
            settings = growing_settings(promise, options.protect)
        try:
            policy = design_table(
                mechanism,
                promise,
                given.epsilon,
                options.protect,
                settings,
                options.progress,
                or_window=asked is not None,  # else windows are among those compared
            )
        except Unserved as error:
            unserved.append(error)
        else:
            served.append(policy)
    if not served:
        raise unserved[-1]
    return served


def _expected(promise: Promise, survey: Survey, policies: list[TablePolicy]) -> Chosen:
    counts = [expected_released(survey.geometry, one, promise.mean) for one in policies]
    records = max(survey.records, 1)
    best = _best(counts)
    window = next((at for at, one in enumerate(policies) if one.mechanism == "window"), None)
    rest = sorted((at for at in range(len(counts)) if at != best), key=lambda at: -counts[at])
    shares = [min(max(count / records, 0.0), 1.0) for count in counts]
    return Chosen(
        RULES,
        policies[best],
        shares[best],
        policies[rest[0]].mechanism if rest else None,
        shares[rest[0]] if rest else None,
        None if window is None else counts[window] / records,
    )


def _best(counts: list[float]) -> int:
    best = 0
    for at, count in enumerate(counts):
        if count > counts[best] + _GAIN:  # of equal ones the first acts
            best = at
    return best


def _judged(given: Given, promise: Promise, survey: Survey, policy: TablePolicy) -> TablePolicy:
    """Rules that are given; InputError where they do not serve the table, or do not keep ε."""
    if policy.protect != given.options.protect:
        raise InputError(f"the policy protects {policy.protect!r}: add --protect {policy.protect}")
    rule = promise.acceptance
    # A file may be of another table's rules, or edited: nothing in it is believed.
    for fault in _misfits(policy, promise, survey):
        raise _not_serving(fault)
    # Drawn here and now: whoever made the policy cannot have fitted it to these chains.
    members = promise.members(0 if rule is None else rule.drawn, remembered.own_seed())
    found = Validation.of(policy.leakages(members), given.epsilon)
    if found.above > (0 if rule is None else rule.verifier):
        raise _not_serving(
            f"exceeds ε = {given.epsilon:g} under {found.above:,} of {found.drawn:,} chains of the"
            " model"
        )
    return replace(policy, epsilon=given.epsilon, coverage=promise.coverage, validation=found)


def _not_serving(fault: str) -> InputError:
    return InputError(
        f"the policy {fault}. Leave --policy out: rules are then designed for this table"
    )


def _misfits(policy: TablePolicy, promise: Promise, survey: Survey) -> Iterator[str]:
    """Rules on other values, of another order or place, than the model's, and rules that lack."""
    places = 1 if promise.places is None else promise.places.count
    for setting, pair in policy.rules.items():
        if _sides(pair) != _ONE_SIDED.get(setting.kind, (True, True)):
            yield f"has other sides for {setting.kind!r} than it needs"
        if setting.place >= places:
            yield f"has rules for place {setting.place}, the model none"
        if not all(rule.fits(promise.k, promise.order) for rule in pair if rule is not None):
            yield (
                f"has rules for other chains than the model's, which have {promise.k} values and"
                f" order {promise.order}"
            )
    for missing in sorted(_settings(survey, policy) - set(policy.rules)):
        yield (
            f"has no rule for the setting {missing.kind!r} at place {missing.place}, which occurs"
            " in the table"
        )


def _sides(pair: Pair) -> tuple[bool, bool]:
    return pair.left is not None, pair.right is not None
