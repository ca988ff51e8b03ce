"""Whether a table follows its model, judged by the records that are released whatever they are.

What is found in these can be computed from the release, and which they are does not depend on
values. Every large table differs from its model beyond chance, so a difference counts only if it
matters: under the table's own transitions the rules would leak clearly more than they may, or the
model describes the data clearly worse than these transitions do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from offrecord.mechanisms.rules import LocalRule, StoppingRule
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Floats, Integers
from offrecord.models.evidence import Verdict, lone_counts, sensitivities
from offrecord.models.file import Model, Origin
from offrecord.models.members import Members
from offrecord.models.posterior import Posterior, never_followed
from offrecord.models.records import MISSING
from offrecord.tables.checks.check import DataCheck, Finding, Part
from offrecord.tables.steps import Step
from offrecord.text import many, odds

if TYPE_CHECKING:
    from offrecord.tables.plan import Plan

SIGNIFICANCE = 1e-6  #: a smaller p-value is more than chance
ODDS = 1.25  #: how much larger than promised the odds may be under the table's own transitions
#: how much more a record may cost under the model than under its own transitions, as a share of its
#: entropy
WASTE = 0.05
SPARSE = 0.1  #: share of neighbouring rows that must be one step apart
#: how many times as far as where the model comes from neighbours may be, or as near, where no step
#: is given
SPACING = 1.5
_NEIGHBOURS = 20  # rows below which their distance says nothing
ENOUGH = 100  #: transitions below which nothing is said
_SEEN = 50  # visits of a context from which its own row is compared: a χ² of fewer is no χ²
# transitions that the model itself counts for where a context's own row is estimated
_PRIOR = 50


class FollowsModel(DataCheck):
    """Compares a table with its model: how it is read, how far apart rows are, what follows."""

    def before(self, plan: Plan) -> Iterator[Finding]:
        model, given = plan.model, plan.given
        origin = None if (known := model or given.model) is None else known.origin
        if origin is not None and origin.dependence is not None:
            # whole chains that go say something of their neighbours, under no rules at all
            yield Finding("warning", origin.dependence.warning)
        if model is None:
            return
        yield from _read_otherwise(plan, origin)
        yield from _doubt(sparse(plan.survey.pairs, plan.survey.linked))
        verdict = model.verdict(given.epsilon)
        if verdict is not None and verdict.verdict == "broken":
            yield from _doubt(f"it is broken at ε = {given.epsilon:g}: {verdict.reasons()}")
        for text in _warnings(plan, model, verdict):
            yield Finding("warning", text)

    def observe(self, part: Part) -> Integers | None:
        # (P, S, k) transitions among records that are never redacted
        rule, table = part.rule, part.table
        if part.gone is None or rule.policy is None:
            return None
        from offrecord.fitting.counting import Reference

        codes = np.where(part.never & ~part.waits, table.chains.codes, np.int8(MISSING))
        reference = Reference(replace(table.chains, codes=codes), rule.values)
        kernels = rule.kernel_places
        if kernels is None:
            return reference.counts(rule.order)
        return reference.counts(rule.order, table.record_places(kernels), kernels.count)

    def after(self, plan: Plan, observed: Integers) -> Iterator[Finding]:
        policy, model = plan.chosen.policy, plan.model
        if policy is None or model is None or not plan.survey.private:
            return
        objection, warning = _objection(observed, model.promise.mean, policy)
        yield from _doubt(objection)
        if warning is not None:
            yield Finding("warning", warning)


def _read_otherwise(plan: Plan, origin: Origin | None) -> Iterator[Finding]:
    """What speaks against a model that was learned from data with another order or step."""
    if origin is None:
        return
    survey, given = plan.survey, plan.given
    timed = "time" if survey.is_timed else "integer"
    kind = "row" if given.columns.order is None else timed
    said = other_reading(origin, kind, given.step, survey.zone)
    if said is not None:
        yield Finding("refusal", said)
    yield from _doubt(_spaced(origin, survey.spacing if survey.pairs >= _NEIGHBOURS else None))


def _doubt(said: str | None) -> Iterator[Finding]:
    if said is not None:
        error = f"the model does not match these data: {said}; fit a model to data like these"
        yield Finding("doubt", said, error)


def _objection(
    counts: Integers, mean: Members, policy: TablePolicy
) -> tuple[str | None, str | None]:
    """What speaks clearly against a model's mean chain, or else what a person should know."""
    rows, total = mean.rows[0], int(counts.sum())
    impossible = int(np.where(rows == 0, counts, 0).sum())
    if impossible:
        said = f"{many(impossible, 'transition')} among released records are impossible under it"
        return said, None
    if total < ENOUGH:
        return None, (
            f"only {many(total, 'transition')} are released as they are, too few to decide"
            " whether the table follows the model; that it does is taken on trust"
        )
    p_value, waste = _compared(counts, rows)
    if p_value >= SIGNIFICANCE:
        return None, None
    return _significant(_own_leakage(counts, mean, policy), policy.epsilon, waste)


def _own_leakage(counts: Integers, mean: Members, policy: TablePolicy) -> float:
    rows, visits = mean.rows[0], counts.sum(axis=-1, keepdims=True)
    # Drawn towards the model: a context that was hardly seen has no frequencies of its own.
    own: Floats = (counts + _PRIOR * rows) / (visits + _PRIOR)
    members = Members(own[np.newaxis], mean.order, mean.places, mean.first)
    return float(policy.leakages(members)[0])


def _significant(leakage: float, epsilon: float, waste: float) -> tuple[str | None, str | None]:
    """As `_objection`, of a table that differs beyond chance."""
    chance = f"p below {SIGNIFICANCE:g}"
    reached = f"by the table's own transitions the odds would reach {odds(leakage)} to 1"
    if leakage > epsilon + math.log(ODDS):
        return f"{reached} instead of {odds(epsilon)} ({chance})", None
    if waste > WASTE:
        worse = f"it describes a record {waste:.0%} worse than the table's own transitions do"
        return f"{worse} ({chance})", None
    differs = f"the table differs from the model beyond chance ({chance}), but not by much"
    return None, f"{differs}: {reached}"


def _compared(counts: Integers, rows: Floats) -> tuple[float, float]:
    """The p-value of a likelihood-ratio test, and by which share a record costs more."""
    from scipy.stats import chi2

    # One row of counts has as many degrees of freedom as values that can follow, less one.
    visits = counts.sum(axis=-1)
    statistic, entropy = _likelihoods(counts, rows, visits)
    free = np.maximum(np.count_nonzero(rows, axis=-1) - 1, 0)
    degrees = int((free * (visits >= _SEEN)).sum())
    if degrees == 0:
        return 1.0, 0.0
    excess = max(statistic - degrees, 0.0) / 2
    return float(chi2.sf(statistic, degrees)), excess / entropy if entropy > 0 else math.inf


def _likelihoods(counts: Integers, rows: Floats, visits: Integers) -> tuple[float, float]:
    """The statistic of the test, and the table's entropy under its own transitions."""
    often = visits[..., np.newaxis]
    own, there = counts / np.maximum(often, 1), (counts > 0) & (often >= _SEEN)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(there, np.log(np.where(there, own / rows, 1.0)), 0.0)
        costs = np.where(there, np.log(np.where(there, own, 1.0)), 0.0)
    statistic = max(2 * float((counts * ratios).sum()), 0.0)
    return statistic, -float((counts * costs).sum())


# ---- before a value is looked at


def other_reading(
    origin: Origin, order_kind: str, step: Step | None, zone: str | None
) -> str | None:
    """Why a table is read in another way than the data that its model was learned from."""
    if origin.order != order_kind:
        kinds = {"row": "the order of rows", "integer": "whole numbers", "time": "times"}
        return (
            f"the model was learned from records ordered by {kinds[origin.order]}, not by"
            f" {kinds[order_kind]}: it is not the model of these"
        )
    known = None if origin.step is None else Step.parsed(origin.step)
    same = known is step if known is None or step is None else known.same(step, zone)
    if same:
        return None
    fitted, asked = (f"--step {one.text}" if one else "no --step" for one in (known, step))
    remedy = f"give {fitted}" if known else f"fit it with {asked}"
    return (
        f"the model was learned with {fitted}, but is used with {asked}: it says how records"
        f" change from one such step to the next; {remedy}, or fit a model for this step"
    )


def sparse(pairs: int, linked: int) -> str | None:
    """What speaks against a step at which hardly any record has a neighbour."""
    if pairs < _NEIGHBOURS or linked >= SPARSE * pairs:
        return None
    return (
        f"only {linked:,} of {pairs:,} neighbouring rows are one --step apart: records come at"
        " another step than that"
    )


def _spaced(origin: Origin, spacing: float | None) -> str | None:
    if not origin.spacing or not spacing:
        return None
    if max(origin.spacing / spacing, spacing / origin.spacing) <= SPACING:
        return None
    unit = " seconds" if origin.order == "time" else ""
    return (
        f"neighbours are {spacing:g}{unit} apart (the median), but {origin.spacing:g}{unit} in the"
        " data that the model was learned from"
    )


# ---- what a person should know about the model


def _warnings(plan: Plan, model: Model, verdict: Verdict | None) -> Iterator[str]:
    if plan.chosen.policy is not None:
        yield from _unjudged(plan.chosen.policy)
    yield from _trusted(model.origin)
    if not isinstance(model.promise, Posterior):
        return
    if not plan.given.options.fit:
        yield _published(model.origin)
        yield from never_followed(model.promise)
    yield from _tested(verdict, plan.given.epsilon)


def _unjudged(policy: TablePolicy) -> Iterator[str]:
    others = policy.kinds - {LocalRule.kind, StoppingRule.kind}
    if others:
        yield (
            f"rules of the kind {', '.join(sorted(others))} keep ε by their own account of what"
            " they show, which verify cannot judge"
        )


def _trusted(origin: Origin | None) -> Iterator[str]:
    if origin is None:
        yield (
            "the model does not say what it was learned from; that it belongs to these data is"
            " taken on trust"
        )
    elif origin.distance is not None:
        yield (
            f"the model was learned from records {origin.distance} steps or more from every private"
            " one: whether the records nearer to private ones change in the same way was not tested"
        )


def _published(origin: Origin | None) -> str:
    """What the certificate gives away of the reference records."""
    if origin is None:
        return "the certificate publishes the counts that the model was learned from"
    table = "another table" if origin.table is None else repr(origin.table)
    return (
        f"the certificate publishes the counts of {many(origin.records, 'record')} of {table}"
        f"{lone_counts(origin.lone_cells)}"
    )


def _tested(verdict: Verdict | None, epsilon: float) -> Iterator[str]:
    if verdict is None:
        yield f"the model was not tested at ε = {epsilon:g}: fit it with --epsilon {epsilon:g}"
        return
    if verdict.verdict == "not shown":
        yield f"whether the promise holds is not shown: {verdict.reasons()}"
    elif verdict.is_narrow:
        yield f"the promise holds narrowly: {verdict.reasons()}"
    yield from sensitivities([verdict])
