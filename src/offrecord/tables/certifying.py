"""What a plan says in its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from offrecord.designs.sharing import room_limits
from offrecord.mechanisms.base import Shared
from offrecord.models.base import Model
from offrecord.models.clock import phase_count
from offrecord.release import certificate as form
from offrecord.tables.model_check import Comparison

if TYPE_CHECKING:
    from offrecord.tables.plan import Plan


def certificate_of(
    plan: Plan, comparison: Comparison | None, accepted: tuple[str, ...]
) -> form.Certificate:
    """The certificate, checked to be of its form; the release and its output are for others to
    tell.
    """
    job, survey, model = plan.job, plan.survey, plan.designs.model
    epsilon, dry_run = job.epsilon, job.options.dry_run
    content = {
        "format": form.FORMAT,
        "version": form.CERTIFICATE_VERSION,
        "claim": {
            "epsilon": epsilon,
            "protect": job.options.protect,
            "mechanism": job.mechanism.name,
            "leakage": plan.designs.leakage,
            "leakage_is_exact": model.order == 1,
            "statement": form.claim_statement(epsilon),
        },
        "assumptions": list(form.assumptions(kept=bool(job.columns.keep))),
        "dataset": job.options.dataset,
        "key_id": None if dry_run else job.key.id,
        "columns": _columns(plan),
        "counts": {
            name: getattr(survey, name)
            for name in ("rows", "chains", "missing", "private", "secrets")
        },
        "private": _private(plan),
        "release": {"other_releases": None, "composed": None, "why": None},
        "designs": _designs(plan),
        "model": _model(model),
        "learned": None if model.learned is None else model.learned.to_dict(),
        "model_check": {
            "compared": None if comparison is None else comparison.to_dict(),
            "accepted": list(accepted),
        },
        "versions": form.software_versions(),
        "output": None,
    }
    return form.Certificate.from_dict(content)


def certified(
    certificate: form.Certificate, kind: str, columns: Sequence[str], digest: str
) -> bytes:
    """A certificate file, with what it says about its output: format, columns and SHA-256."""
    rows = certificate.counts.rows
    output = form.Output(format=kind, rows=rows, columns=tuple(columns), sha256=digest)
    return certificate.with_output(output).to_json()


def _columns(plan: Plan) -> dict[str, Any]:
    columns, survey, step = plan.job.columns, plan.survey, plan.job.step
    return {
        "value": columns.value,
        "order": columns.order or "row",
        "by": list(columns.by),
        "keep": list(columns.keep),
        "keep_all": columns.keep_all,
        "step": None if step is None else step.text,
        "order_kind": "time" if survey.is_timed else "integer",
        "zone": getattr(survey.order_type, "time_zone", None),
    }


def _private(plan: Plan) -> dict[str, Any]:
    columns, options = plan.job.columns, plan.job.options
    positions = None
    if options.publish_positions and not options.dry_run:
        names = [*columns.by, columns.order or "row"]
        positions = {"columns": names, "keys": plan.survey.published_positions()}
    return {
        "count": plan.survey.private,
        "digest": None if options.dry_run else plan.identity["private list"],
        "positions": positions,
        "note": form.POSITIONS,
    }


def _designs(plan: Plan) -> dict[str, Any]:
    """The designs section: what every kind says, and what its own designs add."""
    kind, model, grids = plan.job.mechanism.designs, plan.designs.model, plan.designs.grids
    shared, sequences = Shared(), Shared()
    modulus = None if model.clock is None else phase_count(model.clock.phase)
    designs = []
    for design, uses in zip(plan.designs.designs, plan.uses.tolist(), strict=True):
        around = design.surrounding
        along = None
        if modulus is not None:
            runs = list(map(list, form.phase_runs(around.along.tolist(), modulus)))
            along = sequences.number(around.phases, runs)
        designs.append(
            {
                "left": around.left,
                "right": around.right,
                "length": around.length,
                "phases": along,
                "leakage": design.leakage,
                "rounding": design.rounding,
                "uses": int(uses),
                "window": list(design.window),
                **design.to_dict(shared),
            }
        )
    return {
        "kind": kind.kind,
        "mechanism": plan.job.mechanism.name,
        "epsilon": plan.job.epsilon,
        "protect": plan.job.options.protect,
        "composition": {
            "rule": kind.composition.name,
            "draw_bits": form.DRAW_BITS,
            "text": kind.composition.words,
        },
        "grids": None if grids is None else {"left": list(grids[0]), "right": list(grids[1])},
        "loss": plan.designs.loss,
        "right_limit": None if model.is_stationary else room_limits(model, plan.job.epsilon)[1],
        "phases": sequences.listed,
        kind.shares: shared.listed,
        "designs": designs,
    }


def _model(model: Model) -> dict[str, Any]:
    """The model with its start spelled out."""
    said = model.to_dict()
    start = said["start"]
    if start is None:
        start = np.asarray(model.along().start).tolist()
    return {"phase": None, "zone": None, **said, "start": start, "stationary": model.is_stationary}
