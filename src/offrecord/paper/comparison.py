"""Mechanisms side by side: utility and exact leakage of each for the same problem."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from offrecord.errors import InputError
from offrecord.mechanisms import MECHANISMS, Mechanism, design, mechanism_named
from offrecord.paper.bounds import theorem2_as_printed
from offrecord.text import aligned
from offrecord.theory.problem import Problem

#: The column of Theorem 2, which is a bound and no mechanism.
THEOREM2 = "Theorem 2 (printed bound)"


def mechanisms(names: Sequence[str] | None, parameters: Mapping[str, Any]) -> dict[str, Mechanism]:
    """The mechanisms of these names, all without them; parameters go to those that have them."""
    chosen = {}
    for name in map(str.strip, names or MECHANISMS):
        taken = parameters if name.startswith("3r-") else {}
        chosen[name] = mechanism_named(name, **taken)
    return chosen


def compare(
    problem: Problem, chosen: Mapping[str, Mechanism], *, named: bool = True
) -> list[dict[str, Any]]:
    """A row for each mechanism: epsilon, mechanism, utility, leakage.

    Theorem 2 comes first where it applies; its leakage is None. named: a mechanism that does not
    take the problem's chain is an error; otherwise it is left out.
    """
    rows: list[dict[str, Any]] = []

    def add(name: str, utility: float, leakage: float | None) -> None:
        said = {"mechanism": name, "utility": utility, "leakage": leakage}
        rows.append({"epsilon": problem.epsilon, **said})

    if problem.chain.is_paper_setting and len(problem.private) == 1:
        add(THEOREM2, theorem2_as_printed(problem), None)
    for name, mechanism in chosen.items():
        try:
            policy = design(problem, mechanism)
        except InputError:
            if named:
                raise
            continue
        add(name, policy.utility, policy.leakage)
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Utility as text, a line for each ε and a column for each mechanism; below, why some have
    none.
    """
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    lines = [["ε", *names]]
    for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
        here = {row["mechanism"]: row["utility"] for row in rows if row["epsilon"] == epsilon}
        lines.append([f"{epsilon:.6g}", *(_share(here.get(name)) for name in names)])
    whys = dict.fromkeys(f"{row['mechanism']}: {row['why']}" for row in rows if row.get("why"))
    return "\n".join(["utility (expected share of records released)", aligned(lines), *whys])


def _share(utility: float | None) -> str:
    return "–" if utility is None else f"{utility:.4f}"


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as CSV, numbers in full."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
