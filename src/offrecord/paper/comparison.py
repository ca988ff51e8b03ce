"""Mechanisms side by side: utility and exact leakage of each for the same problem."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

from offrecord.errors import InputError
from offrecord.mechanisms import MECHANISMS, design, mechanism_named
from offrecord.mechanisms.base import Mechanism
from offrecord.paper.bounds import theorem2_as_printed
from offrecord.text import (
    Progress,
    aligned,
    followed,
    unwatched,
)
from offrecord.theory.problem import Problem

#: The column of Theorem 2, which is a bound and no mechanism.
THEOREM2 = "Theorem 2 (printed bound)"
_TITLE = "utility (expected share of records released)"

Row: TypeAlias = Mapping[str, Any]


def mechanisms(names: Sequence[str] | None, parameters: Mapping[str, Any]) -> dict[str, Mechanism]:
    """The mechanisms of these names, all without them; parameters go to those that have them."""
    chosen = {}
    for name in map(str.strip, names or MECHANISMS):
        taken = parameters if name.startswith("3r-") else {}
        chosen[name] = mechanism_named(name, **taken)
    return chosen


@dataclass(frozen=True, repr=False)
class Comparison(Sequence[Row]):
    """Mechanisms side by side, for people and machines.

    rows: one for each ε and mechanism: epsilon, mechanism, utility, leakage.
    """

    rows: tuple[Row, ...]

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, at: int | slice) -> Row | tuple[Row, ...]:
        return self.rows[at]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def names(self) -> list[str]:
        """The mechanisms in order."""
        return list(dict.fromkeys(row["mechanism"] for row in self.rows))

    @property
    def epsilons(self) -> list[float]:
        """The privacy budgets in order."""
        return list(dict.fromkeys(row["epsilon"] for row in self.rows))

    def csv(self) -> str:
        """The rows as CSV, numbers in full."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def chart(self) -> Any:
        """Utility over ε, a line for each mechanism."""
        from offrecord.charts import utility_chart

        return utility_chart([dict(row) for row in self.rows], self.names)

    # ---- for people

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.names)} mechanisms and bounds at {len(self.epsilons)} ε>"

    def __str__(self) -> str:
        return "\n".join([_TITLE, aligned(self._table())])

    def _table(self) -> list[list[str]]:
        """Utility, a line for each ε and a column for each mechanism."""
        found = {(row["epsilon"], row["mechanism"]): row["utility"] for row in self.rows}
        lines = [["ε", *self.names]]
        for one in self.epsilons:
            lines.append([f"{one:.6g}", *(_share(found.get((one, name))) for name in self.names)])
        return lines


def compare(
    problem: Problem,
    mechanisms: Mapping[str, Mechanism] | Iterable[str | Mechanism] | None = None,
    *,
    epsilons: Iterable[float] | None = None,
    named: bool | None = None,
    progress: Progress = unwatched,
) -> Comparison:
    """Mechanisms side by side for one problem: what each releases and leaks.

    mechanisms: some by name or as they are, of any kind; without them all that take the problem's
    chain. epsilons: the privacy budgets, without them the problem's own. named: a mechanism that
    does not take the chain is an error, as it is of those that are given; otherwise it is left out.

    Theorem 2 of the paper comes first where it applies; it is a bound as printed, and its leakage
    is None.
    """
    required = mechanisms is not None if named is None else named
    chosen = _by_name(mechanisms)
    budgets = [problem.epsilon] if epsilons is None else list(epsilons)
    if not budgets:
        raise InputError("epsilons must hold at least one privacy budget, got none")
    problems = [problem.with_epsilon(one) for one in budgets]
    rows: list[Row] = []
    for one in followed(problems, "comparing", progress):
        rows += _rows(one, chosen, required=required)
    return Comparison(tuple(rows))


def _by_name(
    given: Mapping[str, Mechanism] | Iterable[str | Mechanism] | None,
) -> Mapping[str, Mechanism]:
    if isinstance(given, Mapping):
        return given
    if isinstance(given, str):
        raise InputError(f"mechanisms must be a list of them, got the text {given!r}")
    asked = list(MECHANISMS) if given is None else list(given)
    made = [mechanism_named(one) if isinstance(one, str) else one for one in asked]
    found = {one.name: one for one in made}
    if len(found) < len(made):
        raise InputError("two mechanisms have the same name: give a mapping from names to them")
    return found


def _rows(problem: Problem, chosen: Mapping[str, Mechanism], *, required: bool) -> list[Row]:
    """A row for each mechanism."""
    rows: list[Row] = []

    def add(name: str, utility: float, leakage: float | None) -> None:
        said = {"mechanism": name, "utility": utility, "leakage": leakage}
        rows.append({"epsilon": problem.epsilon, **said})

    if problem.chain.is_paper_setting and len(problem.private) == 1:
        add(THEOREM2, theorem2_as_printed(problem), None)
    for name, mechanism in chosen.items():
        try:
            policy = design(problem, mechanism)
        except InputError:
            if required:
                raise
            continue
        add(name, policy.utility, policy.leakage)
    return rows


def _share(utility: float | None) -> str:
    return "–" if utility is None else f"{utility:.4f}"
