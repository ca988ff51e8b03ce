"""What another budget would release."""

from __future__ import annotations

from offrecord.charts import budgets_chart
from offrecord.reports.content import Content
from offrecord.reports.page import Listing, Paragraph, Picture, Section, sentence
from offrecord.text import odds, share_text


def budgets_section(content: Content) -> Section:
    """What another budget would release."""
    curve, claim, left = content.curve, content.certificate.claim, content.left
    title = "What another budget would release"
    if not curve.points:
        why = curve.why or "nothing is known of other budgets"
        return Section("budgets", title, [Paragraph(sentence(f"not drawn: {why}"))])
    rows = [point._asdict() for point in curve.points]
    sample = ""
    if curve.every > 1:
        sample = f" It is estimated from 1 in {curve.every:,} chains of this table."
    text = (
        "Expected for this very table, by the rule and the model, without a second look at a value:"
        " a smaller ε protects more and releases less." + sample
    )
    picture = Picture(
        "budgets",
        "Share of records released over the privacy budget",
        _told(content),
        budgets_chart(rows, curve.mechanisms, claim.epsilon, left.released),
    )
    by_budget: dict[float, dict[str, float]] = {}
    for point in curve.points:
        by_budget.setdefault(point.epsilon, {})[point.mechanism] = point.released
    table = Listing(
        "The same in numbers: expected share of records released",
        ("ε", "Odds allowed", *curve.mechanisms),
        [
            [
                f"{epsilon:.3g}{' (chosen)' if epsilon == claim.epsilon else ''}",
                f"{odds(epsilon)} to 1",
                *(share_text(told[one]) if one in told else "–" for one in curve.mechanisms),
            ]
            for epsilon, told in sorted(by_budget.items())
        ],
        is_detail=True,
    )
    return Section("budgets", title, [Paragraph(text), picture, table])


def _told(content: Content) -> str:
    """The curve in words: from which share it rises to which."""
    curve, epsilon = content.curve, content.certificate.claim.epsilon
    said = []
    for name in curve.mechanisms:
        mine = sorted(point for point in curve.points if point.mechanism == name)
        low, high = mine[0], mine[-1]
        said.append(
            f"{name}: from {share_text(low.released)} at ε = {low.epsilon:.3g} to"
            f" {share_text(high.released)} at ε = {high.epsilon:.3g}"
        )
    released = content.left.released
    this = "" if released is None else f"; this release let {share_text(released)} go"
    return f"{'; '.join(said)}. Chosen was ε = {epsilon:g}{this}."
