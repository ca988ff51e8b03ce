"""docs/reliability.md, from what was run and found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from soak.coverage import DUE
from soak.running import Campaign, results, watched

PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"
_HEAD = """# Reliability, in figures

What was run against this package, and what was found. `make soak` runs the campaigns for an hour (`make soak MINUTES=10` for ten), goes on where it was, and writes this page. `make test` runs a small sample of each. The code is in [soak](../soak/__init__.py).

"""  # noqa: E501 - prose, as the other pages have it
_FOOT = """## Again

`python -m soak run rules --minutes 5` runs one campaign, `python -m soak batch CAMPAIGN KIND NUMBER --cases 1` draws a case again: it depends on these names and the number alone. The moment of a kill depends on the machine. `python -m soak report` writes this page.
"""  # noqa: E501
_LEAST = 0.95  # coverage that is due in every cell
_SURE = 100  # tables of a cell from which on that is judged


@dataclass
class Total:
    """What was run of a kind."""

    cases: int = 0
    seconds: float = 0.0
    notes: Counter[str] = field(default_factory=Counter)
    found: list[tuple[int, str]] = field(default_factory=list)


def written(campaigns: Mapping[str, Campaign], state: Path) -> int:
    """Write the page; 1 if what was found is still so, or a cell is not covered."""
    totals = {name: {kind: Total() for kind in one.kinds} for name, one in campaigns.items()}
    commits: Counter[str] = Counter()
    for one in results(state):
        total = totals.get(one.campaign, {}).get(one.kind)
        if total is not None:
            total.cases += one.cases
            total.seconds += one.seconds
            total.notes.update(one.notes)
            total.found += [(number, what) for number, what in one.found]
            commits[one.commit] += one.cases
    still = list(_still(campaigns, totals))
    parts = [_HEAD, *_overview(totals, commits), *_open(still)]
    for name, campaign in campaigns.items():
        parts += [f"## {name.capitalize()}\n\n", campaign.words, "\n\n"]
        parts += _cells(totals[name]) if name == "coverage" else _kinds(totals[name])
    PAGE.write_text("".join([*parts, _FOOT]), encoding="utf-8")
    return 1 if still else 0


def _overview(totals: Mapping[str, Mapping[str, Total]], commits: Counter[str]) -> Iterator[str]:
    yield "| campaign | cases | minutes |\n| --- | --- | --- |\n"
    for name, kinds in totals.items():
        cases = sum(one.cases for one in kinds.values())
        yield f"| {name} | {cases:,} | {sum(one.seconds for one in kinds.values()) / 60:.0f} |\n"
    last = ", ".join(commit for commit, _ in commits.most_common(3)) or "none"
    yield f"\nVersion {version('offrecord')}; sources: {last}.\n\n"


def _still(
    campaigns: Mapping[str, Campaign], totals: Mapping[str, Mapping[str, Total]]
) -> Iterator[str]:
    """What was found, drawn again by the present sources, and cells that are not covered."""
    for name, kinds in totals.items():
        for kind, total in kinds.items():
            for number, what in total.found[:3]:
                limit = campaigns[name].limit
                again = watched(name, kind, number, limit, seconds=1, cases=1).found
                if again or name == "kills":
                    yield f"{name}, {kind}, {number}: {again[0][1] if again else what}"
    for kind in DUE:
        total = totals["coverage"][kind]
        tables, covered = total.notes["tables"], total.notes["covered"]
        if tables >= _SURE and covered < _LEAST * tables:
            yield f"coverage, {kind}: {covered} of {tables} tables"


def _open(still: list[str]) -> Iterator[str]:
    yield "**Open violations: " + (f"{len(still)}.**\n\n" if still else "none.**\n\n")
    yield from (f"- {one}\n" for one in still)
    yield "\n" if still else ""


def _kinds(kinds: Mapping[str, Total]) -> Iterator[str]:
    counted: Counter[str] = sum((one.notes for one in kinds.values()), Counter())
    columns = [what for what, _ in counted.most_common(8)]
    yield f"| kind | cases | {' | '.join(columns)} | ms a case |\n"
    yield f"|{' --- |' * (len(columns) + 3)}\n"
    for kind, one in kinds.items():
        cells = " | ".join(f"{one.notes[what]:,.0f}" for what in columns)
        each = 1000 * one.seconds / max(one.cases, 1)
        yield f"| {kind} | {one.cases:,} | {cells} | {each:.0f} |\n"
    yield "\n"


def _cells(kinds: Mapping[str, Total]) -> Iterator[str]:
    yield "| tables from, records | due | tables | covered | median window a side |"
    yield " sensitive | verdict broken |\n|" + " --- |" * 7 + "\n"
    for kind, one in kinds.items():
        tables = int(one.notes["tables"])
        share = f"{100 * one.notes['covered'] / tables:.0f} %" if tables else "–"
        due = f"{100 * _LEAST:.0f} %" if kind in DUE else "–"
        tried = kind not in DUE and tables
        more = [f"{100 * one.notes[what] / tables:.0f} %" if tried else "–" for what in
                ("sensitive", "broken")]  # fmt: skip
        yield f"| {kind} | {due} | {tables} | {share} | {_median(one.notes)} | {more[0]} |"
        yield f" {more[1]} |\n"
    yield "\n"


def _median(notes: Counter[str]) -> str:
    sizes = sorted(
        int(name.split()[1]) for name, count in notes.items() if name.startswith("window ")
        for _ in range(int(count))
    )  # fmt: skip
    return str(sizes[len(sizes) // 2]) if sizes else "–"
