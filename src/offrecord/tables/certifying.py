"""What a plan says in its certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from offrecord.designs.library import Designs
from offrecord.designs.sharing import room_limits
from offrecord.mechanisms.base import Design, Shared
from offrecord.mechanisms.window import BestWindow
from offrecord.models.base import Integers, Model
from offrecord.models.clock import phase_count
from offrecord.release import certificate as form
from offrecord.tables.model_check import Comparison
from offrecord.tables.survey import digest_text

if TYPE_CHECKING:
    from offrecord.tables.plan import Plan


class Stands(NamedTuple):
    """How a release stands in the ledger, and to other releases that it is judged with."""

    release: form.Release
    joint: form.Joint | None = None


def certificate_of(
    plan: Plan,
    acting: tuple[Designs, Integers],
    comparison: Comparison | None,
    accepted: tuple[str, ...],
    unseen: bool | None,
    stands: Stands,
) -> form.Certificate:
    """The certificate of what a plan came to; it names no output yet.

    acting: the designs that do, and how many secrets each serves. comparison: of model and table.
    accepted: what speaks against the model, and was accepted. unseen: the model was learned from no
    record that may be redacted, None where that is not known.
    stands: in the ledger, and to other releases.
    """
    job, model = plan.job, plan.designs.model
    release, joint = stands
    growing = _growing(plan)
    compared = None if comparison is None else form.ModelComparison(**comparison.to_dict())
    said = model_section(model, plan.modelled.since)
    return form.Certificate(
        claim=_claim(plan, acting[0]),
        assumptions=form.assumptions(said, growing or joint, kept=bool(job.columns.keep)),
        dataset=job.options.dataset,
        key_id=None if job.options.dry_run else job.key.id,
        columns=_columns(plan),
        counts=_counts(plan),
        private=_private(plan),
        release=release,
        growing=growing,
        joint=joint,
        designs=designs_section(*acting, plan.designs),
        model=said,
        learned=_learned(model),
        model_check=form.ModelCheck(unseen=unseen, compared=compared, accepted=accepted),
        versions=form.software_versions(),
    )


def certified(
    certificate: form.Certificate, kind: str, columns: Sequence[str], digest: str
) -> bytes:
    """A certificate file, with what it says about its output: format, columns and SHA-256."""
    rows = certificate.counts.rows
    output = form.Output(format=kind, rows=rows, columns=tuple(columns), sha256=digest)
    return certificate.with_output(output).to_json()


def _claim(plan: Plan, designs: Designs) -> form.Claim:
    epsilon = plan.job.epsilon
    return form.Claim(
        epsilon=epsilon,
        protect=plan.job.options.protect,
        mechanism=designs.setting.mechanism.name,
        leakage=designs.leakage,
        leakage_is_exact=designs.is_exact,
        statement=form.claim_statement(epsilon),
    )


def _growing(plan: Plan) -> form.Growing | None:
    holding = plan.rule.holding
    return None if holding is None else form.Growing(**asdict(holding))


def _columns(plan: Plan) -> form.Columns:
    columns, survey, step = plan.job.columns, plan.survey, plan.job.step
    return form.Columns(
        value=columns.value,
        order=columns.order or "row",
        by=columns.by,
        keep=columns.keep,
        keep_all=columns.keep_all,
        step=None if step is None else step.text,
        order_kind="time" if survey.is_timed else "integer",
        zone=_calendar_zone(plan),
        order_unit=None if columns.unit is None else columns.unit.text,
    )


def _calendar_zone(plan: Plan) -> str | None:
    """The zone of the order column where steps depend on it: engines may tell times in another."""
    step = plan.job.step
    if step is None or step.kind not in ("days", "months"):
        return None
    zone: str | None = getattr(plan.survey.order_type, "time_zone", None)
    return zone


def _counts(plan: Plan) -> form.Counts:
    survey = plan.survey
    return form.Counts(
        rows=survey.rows,
        chains=survey.chains,
        missing=survey.missing,
        private=survey.private,
        secrets=survey.secrets,
    )


def _private(plan: Plan) -> form.Private:
    columns, options = plan.job.columns, plan.job.options
    positions = None
    if options.publish_positions and not options.dry_run:
        names = (*columns.by, columns.order or "row")
        positions = form.Positions(columns=names, keys=plan.survey.published_positions())
    survey = plan.survey
    digest = None if options.dry_run else digest_text(survey.private_digest, survey.private)
    return form.Private(count=survey.private, digest=digest, positions=positions)


def model_section(model: Model, since: int = 1) -> form.Model:
    """The model with its start spelled out. since: the record from which on its set holds."""
    said = model.to_dict()
    if said["start"] is None:
        said["start"] = model.along().start.tolist()
    models = said.pop("set", None)
    said["set"] = None if models is None else form.ModelSet(**models, since=since)
    return form.Model(**said, stationary=model.is_stationary)


def _learned(model: Model) -> form.Learned | None:
    """What the model was learned from, and what its audit came to."""
    if model.learned is None:
        return None
    said, audit = model.learned.to_dict(), model.learned.audit
    del said["seen"]  # a name for the key's owner
    said["audit"] = None
    if audit is not None:
        told = audit.to_dict()
        odds = {"odds": math.inf} if math.isinf(audit.odds) else {}  # which model files spell
        said["audit"] = form.Audit(**(told | odds))
    return form.Learned(**said)


def designs_section(acting: Designs, served: Integers, planned: Designs) -> form.Designs:
    """What every kind says of designs, and what those of this kind add. Where local designs are for
    clusters, or are windows instead of those that were planned, that is a kind of its own.

    served: how many secrets each serves.
    """
    setting, grids = acting.setting, acting.grids
    kind, model = setting.mechanism.designs, setting.model
    limits: tuple[int | None, int | None] = None, None
    if not model.is_stationary:
        limits = room_limits(model, setting.epsilon)
    shared, sequences = Shared(), Shared()
    designs = [
        _said(design, uses, _sequence(design, model, sequences)) | design.to_dict(shared)
        for design, uses in zip(acting.designs, served.tolist(), strict=True)
    ]
    name, composition = kind.kind, kind.composition
    own = set(map(id, planned.designs))
    if any(design.surrounding.inside or id(design) not in own for design in acting.designs):
        name, composition = form.CLUSTERED, form.LARGEST
        for design, said in zip(acting.designs, designs, strict=True):
            said["mechanism"] = setting.mechanism.name if id(design) in own else BestWindow.name
            said["inside"] = list(design.surrounding.inside)
            said.setdefault("redaction_inside", None)
    content = {
        "kind": name,
        "mechanism": setting.mechanism.name,
        "epsilon": setting.epsilon,
        "protect": setting.protect,
        "composition": composition.to_dict(),
        "grids": None if grids is None else {"left": list(grids[0]), "right": list(grids[1])},
        "loss": acting.loss,
        "left_limit": limits[0],
        "right_limit": limits[1],
        "phases": sequences.listed,
        kind.shares: shared.listed,
        "designs": designs,
    }
    return form.read_designs(content)


def _said(design: Design, uses: float, sequence: int | None) -> dict[str, Any]:
    """What every kind says of a design that serves so many secrets."""
    return {
        "left": design.surrounding.left,
        "right": design.surrounding.right,
        "length": design.surrounding.length,
        "phases": sequence,
        "leakage": design.leakage,
        "rounding": design.rounding,
        "method": design.method,
        "uses": int(uses),
        "window": list(design.window),
    }


def _sequence(design: Design, model: Model, sequences: Shared) -> int | None:
    """Which sequence of phases it was made for; None for a model without phases."""
    if model.clock is None:
        return None
    modulus = phase_count(model.clock.phase)
    runs = form.phase_runs(design.surrounding.along.tolist(), modulus)
    return sequences.number(runs, [list(run) for run in runs])
