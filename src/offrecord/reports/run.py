"""A report of a release that has just been made: all that the run knows is at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from offrecord.errors import InputError
from offrecord.release.certificate import Certificate
from offrecord.reports.around import around_of, costs_of
from offrecord.reports.content import Checked, Content, Curve, Left, Named, Names
from offrecord.reports.curve import quick_curve
from offrecord.reports.opted import named_costs
from offrecord.tables.budgets import Blank
from offrecord.tables.cautions import about_others
from offrecord.tables.plan import Outcome, Plan
from offrecord.tables.summary import Summary

if TYPE_CHECKING:
    from offrecord.tables.engines.memory import Release
    from offrecord.tables.engines.spark import SparkRelease
    from offrecord.tables.engines.stream import Streamed

    #: What engines give back.
    Made: TypeAlias = Release | Streamed | SparkRelease

_IN_PARTS = (
    "the table went through part by part, and is not held to foretell other budgets; offrecord"
    " report with --private-list draws the curve from the released table"
)


def content_of(made: Made, names: Names) -> Content:
    """What there is to say about a release; InputError for a dry run."""
    outcome = made._outcome
    if made.summary.dry_run:
        raise InputError("a dry run is no release: there is nothing to report")
    certificate = _certificate(made, outcome)
    designs, uses = outcome.acting
    batch: Any = getattr(made, "_batch", None)
    counts = [int(count) for count in uses.tolist()]
    told = about_others(certificate.release, certificate.dataset)
    published = certificate.private.positions is not None
    return Content(
        certificate=certificate,
        names=names,
        left=left_of(made.summary),
        warnings=tuple(dict.fromkeys((*outcome.warnings, *told))),
        checked=Checked(designs.most_told),
        models=made.summary.models,
        meaning=made.summary.meaning,
        around=around_of(designs.designs, counts, designs.model),
        costs=costs_of(designs.designs, counts, designs.model),
        curve=_curve(outcome, batch, made.summary),
        unserved=made.summary.unserved,
        named=_named(outcome.plan, batch) if published else (),
    )


def left_of(summary: Summary) -> Left:
    """What left, as a run sums it up."""
    return Left(
        records=summary.rows - summary.missing - summary.waiting,
        released=summary.released,
        kept_back=summary.redacted,
        waiting=summary.waiting,
        touched=summary.touched,
        touched_records=summary.touched_records,
        touched_released=summary.touched_released,
        lost=summary.lost,
        closed=summary.closed,
        window=summary.window,
        private=summary.regions["private"],
        regions=summary.regions,
        erasure=summary.erasure,
        erasure_is_least=summary.erasure_is_least,
    )


def _certificate(made: Made, outcome: Outcome) -> Certificate:
    if hasattr(made, "_entered"):
        return outcome.certificate(made._entered)
    said = made.certificate
    assert isinstance(said, dict)  # that of Spark, which is made at once
    return Certificate.from_dict(said)


def _named(plan: Plan, batch: Any) -> tuple[Named, ...]:
    if batch is None:
        return ()
    instead = () if plan.windows is None else plan.windows.designs
    every = (*plan.designs.designs, *instead)
    return named_costs(batch, plan.rule.acting(batch), every, plan.designs.model)


def _curve(outcome: Outcome, batch: Any, summary: Summary) -> Curve:
    plan = outcome.plan
    if batch is None:
        return Curve(why=_IN_PARTS)
    if summary.secrets == 0:
        return Curve(why="no record is private: all of them leave with every budget")
    job, setting = plan.job, plan.modelled.setting
    share = 1.0 if setting.model.learned is None else setting.model.learned.share
    blank = Blank.of(
        plan.modelled.worker.spec, plan.rule.due(batch), share, growing=job.options.growing
    )
    return quick_curve(blank, setting.mechanism, job.epsilon, summary.window, plan.rule)
