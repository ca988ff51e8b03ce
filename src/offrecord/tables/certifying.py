"""What a release says in its certificate."""

from __future__ import annotations

from offrecord.release import certificate as form
from offrecord.tables.choosing import RULES
from offrecord.tables.decision import Decision
from offrecord.tables.plan import Plan
from offrecord.tables.survey import digest_text


def certificate_of(
    plan: Plan,
    decision: Decision,
    accepted: tuple[str, ...],
    unseen: bool | None,
    release: form.Standing,
) -> form.Certificate:
    """The certificate of what a plan came to; it names no output yet.

    Args:
        plan: what was done.
        decision: what was decided, of the whole table.
        accepted: what speaks against the model, and was accepted.
        unseen: the model was learned from no record that may be redacted, None if not known.
        release: how the release stands in the ledger.
    """
    given, chosen, survey = plan.given, plan.chosen, plan.survey
    options, model = given.options, plan.model
    coverage = model.promise.coverage if model is not None else None
    origin = None if model is None else model.origin
    if origin is not None:
        origin = origin.model_copy(update={"seen": None})
    holding = plan.holding
    policy = None if chosen.policy is None else form.Policy.of(chosen.policy.to_dict())
    return form.Certificate(
        kind=chosen.kind,  # type: ignore[arg-type] # one of three
        claim=form.Claim(
            epsilon=given.epsilon,
            protect=options.protect,  # type: ignore[arg-type] # checked
            coverage=coverage,
            statement=form.statement(chosen.kind, given.epsilon, coverage),
        ),
        assumptions=form.assumptions(
            chosen.kind, growing=holding is not None, kept=bool(given.columns.keep)
        ),
        dataset=options.dataset,
        key_id=None if options.dry_run else given.key.id,
        columns=_columns(plan),
        counts=form.Counts(
            rows=survey.rows,
            chains=survey.chains,
            missing=survey.missing,
            private=survey.private,
            runs=survey.runs,
            released=decision.released,
            dropped_chains=plan.dropped.chains,
            dropped_records=plan.dropped.records,
        ),
        private=_private(plan),
        release=release,
        growing=None if holding is None else form.Growing(**vars(holding)),
        policy=policy,
        choice=_choice(plan),
        model=None if model is None else model.promise.form(),
        origin=origin,
        verdicts=() if model is None else model.verdicts,
        evidence=form.Evidence(unseen=unseen, accepted=accepted),
        versions=form.software_versions(),
    )


def _columns(plan: Plan) -> form.Columns:
    columns, survey, step = plan.given.columns, plan.survey, plan.given.step
    calendar = step is not None and step.kind in ("days", "months")
    return form.Columns(
        value=columns.value,
        order=columns.order or "row",
        by=columns.by,
        keep=columns.keep,
        keep_all=columns.keep_all,
        step=None if step is None else step.text,
        order_kind="time" if survey.is_timed else "integer",
        # where steps depend on it: engines may write times in another
        zone=survey.zone if calendar else None,
    )


def _private(plan: Plan) -> form.Private:
    columns, options, survey = plan.given.columns, plan.given.options, plan.survey
    positions = None
    if options.publish_positions and not options.dry_run:
        names = (*columns.by, columns.order or "row")
        keys = tuple(tuple(key) for key in survey.published_positions())
        positions = form.Positions(columns=names, keys=keys)
    digest = None if options.dry_run else digest_text(survey.private_digest, survey.private)
    return form.Private(count=survey.private, digest=digest, positions=positions)


def _choice(plan: Plan) -> form.Choice | None:
    chosen = plan.forecast
    if chosen.kind != RULES or chosen.policy is None:
        return None
    return form.Choice(
        acting=chosen.policy.mechanism,
        expected=chosen.expected,
        runner_up=chosen.runner_up,
        runner_up_expected=chosen.runner_up_expected,
    )
