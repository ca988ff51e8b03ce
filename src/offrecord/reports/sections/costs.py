"""What each opt-out cost."""

from __future__ import annotations

from collections.abc import Sequence

from offrecord.reports.around import Cost
from offrecord.reports.content import Content
from offrecord.reports.page import Block, Listing, Paragraph, Section
from offrecord.text import many

_MOST_COSTS = 12  # rows of the table of costs


def costs_section(content: Content) -> Section:
    """What each opt-out cost."""
    title = "What each opt-out cost"
    counts = content.certificate.counts
    if not content.costs:
        return Section("costs", title, [Paragraph("No record is private.")])
    known = sum(cost.secrets for cost in content.costs)
    mean = sum(cost.secrets * cost.expected for cost in content.costs) / known
    about = "" if known == counts.secrets else f" (of {known:,} of {counts.secrets:,} secrets)"
    blocks: list[Block] = [
        Paragraph(
            f"Beside itself, a secret takes {_few(mean)} expected to be redacted with it, on"
            f" average{about}.",
            True,
        ),
        Paragraph(
            "Counted is each secret as if no other were near; what near ones redact between them is"
            " counted for each. How much it is depends on how many records lie beside a secret, up"
            " to where more make no difference."
        ),
        Listing(
            "Expected redactions beside a secret, by its surroundings",
            (
                "Secret",
                "How many",
                "Records that matter before, after",
                "Expected redactions",
                "Window",
            ),
            _cost_rows(content.costs),
        ),
    ]
    if content.named:
        columns = content.certificate.private.positions
        assert columns is not None
        more = "" if len(content.named) >= counts.secrets else ", the most expensive first"
        blocks.append(
            Listing(
                f"By name, as the certificate publishes which records are private{more}",
                (*columns.columns, "Records", "Expected redactions"),
                [[*one.name, f"{one.records:,}", _number(one.expected)] for one in content.named],
                is_detail=True,
            )
        )
    return Section("costs", title, blocks)


def _cost_rows(costs: Sequence[Cost]) -> list[list[str]]:
    rows = [
        [
            _secret(cost),
            f"{cost.secrets:,}",
            f"{cost.rooms[0]:,}, {cost.rooms[1]:,}",
            _number(cost.expected),
            f"{cost.window:,}",
        ]
        for cost in costs[:_MOST_COSTS]
    ]
    rest = costs[_MOST_COSTS:]
    if rest:
        count = sum(cost.secrets for cost in rest)
        mean = sum(cost.secrets * cost.expected for cost in rest) / count
        window = sum(cost.secrets * cost.window for cost in rest) / count
        about = f"{many(len(rest), 'other surrounding')}, on average"
        rows.append([about, f"{count:,}", "", _number(mean), _number(window)])
    return rows


def _secret(cost: Cost) -> str:
    if cost.is_cluster:
        return f"near ones within {cost.length} records, together"
    return "a single record" if cost.length == 1 else f"a run of {cost.length} records or more"


def _number(value: float) -> str:
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def _few(mean: float) -> str:
    return f"{_number(mean)} record{'' if round(mean, 1) == 1 else 's'}"
