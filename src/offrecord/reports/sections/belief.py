"""Whether the model can be believed."""

from __future__ import annotations

import math

from offrecord.models.audited import Audited
from offrecord.reports.content import Content
from offrecord.reports.page import Block, Paragraph, Section


def belief_section(content: Content) -> Section:
    """Whether the model can be believed."""
    learned, check = content.certificate.learned, content.certificate.model_check
    blocks: list[Block] = []
    if learned is None:
        blocks.append(
            Paragraph("Nobody looked: the model does not say what it was learned from.", True)
        )
    elif learned.audit is None:
        blocks.append(Paragraph("Nobody checked the promise in data that were held back.", True))
    else:
        audit = Audited(**vars(learned.audit))
        blocks.append(Paragraph(f"The audit calls the model {audit.short}.", True))
        blocks.append(Paragraph(_audited(audit)))
    if learned is not None:
        blocks.append(Paragraph(f"The fit says of itself: {learned.verdict}"))
        if learned.calibration is not None:
            blocks.append(
                Paragraph(f"Calibrated until the audit passed: {learned.calibration} (empirical).")
            )
    compared = check.compared
    if compared is not None:
        blocks.append(
            Paragraph(
                f"{compared.transitions:,} released transitions were compared with the model: a"
                f" table that follows it differs as much in {_chance(compared.p_value)}."
            )
        )
    return Section("belief", "Can the model be believed?", blocks)


def _audited(audit: Audited) -> str:
    """What an audit did, in plain numbers."""
    counted = "infinitely many" if math.isinf(audit.odds) else f"{audit.odds:.3g}"
    return (
        f"Held back were {audit.held_back}. In these data odds of {counted} to 1 were counted where"
        f" they exceed the promise most; chance allowed for, at least {audit.at_least:.3g} to 1."
        f" Designs for ε = {audit.epsilon:g} promise {audit.promised:.3g} to 1. What tells:"
        f" {audit.where}."
    )


def _chance(p_value: float) -> str:
    if p_value >= 0.095:
        return f"{p_value:.0%} of cases"
    return "less than 1 of a million cases" if p_value < 1e-6 else f"{100 * p_value:.2g} % of cases"
