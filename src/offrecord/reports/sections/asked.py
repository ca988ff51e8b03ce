"""What was asked."""

from __future__ import annotations

import math

from offrecord.reports.content import Content
from offrecord.reports.page import Facts, Section
from offrecord.text import many, odds

_MECHANISMS = {
    "owner": "the owner's mechanism: whoever redacts sees all values, and begins to release at a"
    " random distance from each private record",
    "best-local": "the best local mechanism: each record is redacted by a coin of its own, which"
    " its value and its distance from private records weight",
    "window": "windows: around each private record all is redacted, whatever it is",
    "quilt": "the Markov quilt: windows as an older method makes them",
    "3r-constant": "three regions, with one probability for the middle one",
    "3r-relaxed": "three regions, with the paper's closed form",
    "3r-convex": "three regions, with the paper's convex programme",
}


def asked_section(content: Content) -> Section:
    """What was asked."""
    certificate = content.certificate
    claim, columns, counts = certificate.claim, certificate.columns, certificate.counts
    chains = "one chain" if not columns.by else f"a chain for each {', '.join(columns.by)}"
    order = "the order of rows" if columns.order == "row" else columns.order
    step = "" if columns.step is None else f", one step is {columns.step}"
    protect = "neighbouring private records count as one secret"
    if claim.protect == "each":
        protect = "each private record is a secret of its own"
    rows = [
        ("Data set", certificate.dataset),
        ("Table", f"{many(counts.rows, 'row')} in {many(counts.chains, 'chain')}"),
        ("Value", f"{columns.value}, ordered by {order}: {chains}{step}"),
        (
            "Off the record",
            f"{many(counts.private, 'private record')}, {many(counts.secrets, 'secret')}:"
            f" {protect}",
        ),
        ("Budget", f"ε = {claim.epsilon:g}: odds may change by {odds(claim.epsilon)} to 1 at most"),
        ("Mechanism", _mechanism(content)),
    ]
    if columns.keep:
        how = "as they are" if columns.keep_all else "emptied where the value is redacted"
        rows.append(("Kept beside it", f"{', '.join(columns.keep)}, {how}"))
    if counts.missing:
        rows.append(("Without a value", f"{many(counts.missing, 'row')}, before anything was done"))
    growing = certificate.growing
    if growing is not None:
        rows.append(
            ("Growing", f"records leave {many(growing.lag, 'step')} after they came, or later")
        )
    joint = certificate.joint
    if joint is not None:
        with_ = many(len(joint.releases), "earlier release")
        told = "infinitely much" if math.isinf(joint.leakage) else f"odds of {odds(joint.leakage)}"
        rows.append(("Judged together", f"with {with_}: together they tell {told} to 1 at most"))
    return Section("asked", "What was asked", [Facts(rows)])


def _mechanism(content: Content) -> str:
    name = content.certificate.claim.mechanism
    said = f"{name}, {_MECHANISMS[name]}" if name in _MECHANISMS else name
    return said if content.unserved is None else f"{said} ({content.unserved})"
