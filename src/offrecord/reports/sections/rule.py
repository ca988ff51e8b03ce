"""What happens around one private record: the rule, never a value."""

from __future__ import annotations

from offrecord.charts import rule_chart
from offrecord.reports.around import Around, Step
from offrecord.reports.content import Content
from offrecord.reports.page import Listing, Paragraph, Picture, Section
from offrecord.text import many

_MOST_RULES = 30  # rows of the table of a rule
_KINDS = {
    "local": "Each record beside it draws a coin of its own. What its value is decides how the coin"
    " is weighted, and how far away it is.",
    "owner": "A walk leads away from it on each side, looks at the values it meets, and stops at a"
    " random place; what lies before the stop is redacted, all from it on is released.",
}


def rule_section(content: Content) -> Section:
    """What happens around one private record: the rule, never a value."""
    around = content.around
    title = "Around one private record"
    if around is None:
        return Section("rule", title, [Paragraph("No private record stands alone in this table.")])
    how = _KINDS.get(around.kind, "")
    counts = around.counts
    shown = (
        f"Of the records shown {counts['L']} are always redacted (L), {counts['M']} at times (M)"
        f" and {counts['S']} never (S)."
    )
    long = "" if around.length == 1 else f", here a run of {around.length} records"
    text = (
        f"The rule, as most private records have it{long}. {how} It shows what may happen to any of"
        " them, never what a value was."
    )
    rows = [
        {"distance": step.distance, "name": name, "redaction": chance, "region": step.region}
        for step in around.steps
        for name, chance in zip(around.names[: around.drawn], step.rule, strict=False)
    ]
    picture = Picture(
        "rule",
        "How likely the records around a private one are redacted",
        f"{shown} {_described(around)}",
        rule_chart(rows, around.names[: around.drawn]),
    )
    table = Listing(
        "The same in numbers: records before (−) and after the private one",
        ("Records", "Region", *around.names),
        _stretches(around),
        is_detail=True,
    )
    return Section("rule", title, [Paragraph(text), picture, table])


def _described(around: Around) -> str:
    """The lines of the picture, in words."""
    reach = [step.distance for step in around.steps if step.region in ("L", "M")]
    if not reach:
        return "Nothing but the private record itself is redacted."
    before, after = -min(*reach, 0), max(*reach, 0)
    return (
        f"Redaction reaches {many(before, 'record')} before and {many(after, 'record')} after the"
        " private one."
    )


def _stretches(around: Around) -> list[list[str]]:
    """The rule by stretches of equal records."""
    rows: list[list[str]] = []
    begun: Step | None = None
    last: Step | None = None

    def end() -> None:
        if begun is not None and last is not None:
            rows.append([_span(begun.distance, last.distance), begun.region, *map(_p, begun.rule)])

    for step in around.steps:
        same = begun is not None and (begun.region, begun.rule) == (step.region, step.rule)
        if not same:
            end()
            begun = step
        last = step
    end()
    if len(rows) > _MOST_RULES:
        half = _MOST_RULES // 2
        rows = [*rows[:half], ["…", "", *[""] * len(around.names)], *rows[-half:]]
    return rows


def _span(low: int, high: int) -> str:
    def signed(number: int) -> str:
        return f"{number:+d}".replace("-", "−") if number else "0"

    return signed(low) if low == high else f"{signed(low)} to {signed(high)}"


def _p(chance: float) -> str:
    return f"{chance:.4g}"
