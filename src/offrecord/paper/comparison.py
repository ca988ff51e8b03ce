"""Mechanisms side by side: utility and exact leakage of each for the same problem."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from offrecord.errors import InputError
from offrecord.mechanisms import MECHANISMS, design, mechanism_named
from offrecord.mechanisms.base import Mechanism
from offrecord.paper.bounds import theorem2_as_printed
from offrecord.text import Progress, aligned, followed, unwatched
from offrecord.theory.problem import Problem

#: The column of Theorem 2, which is a bound and no mechanism.
THEOREM2 = "Theorem 2 (printed bound)"
_TITLE = "utility (expected share of records released)"

Row: TypeAlias = Mapping[str, Any]


class Comparison(tuple[Row, ...]):
    """Mechanisms side by side, for people and machines.

    A row for each ε and mechanism: epsilon, mechanism, utility, leakage.
    """

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows."""
        return tuple(self)

    @property
    def names(self) -> list[str]:
        """The mechanisms in order."""
        return list(dict.fromkeys(row["mechanism"] for row in self))

    @property
    def epsilons(self) -> list[float]:
        """The privacy budgets in order."""
        return list(dict.fromkeys(row["epsilon"] for row in self))

    def csv(self) -> str:
        """The rows as CSV, numbers in full."""
        text = io.StringIO()
        # the same bytes on every system
        writer = csv.DictWriter(text, list(self[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self)
        return text.getvalue()

    def chart(self) -> Any:
        """Utility over ε, a line for each mechanism."""
        from offrecord.charts import utility_chart

        return utility_chart([dict(row) for row in self], self.names)

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.names)} mechanisms and bounds at {len(self.epsilons)} ε>"

    def __str__(self) -> str:
        found = {(row["epsilon"], row["mechanism"]): f"{row['utility']:.4f}" for row in self}
        lines = [["ε", *self.names]]
        for one in self.epsilons:
            lines.append([f"{one:.6g}", *(found.get((one, name), "–") for name in self.names)])
        return f"{_TITLE}\n{aligned(lines)}"


def compare(
    problem: Problem,
    mechanisms: Mapping[str, Mechanism] | Iterable[str | Mechanism] | None = None,
    *,
    epsilons: Iterable[float] | None = None,
    split: str | float | None = None,
    progress: Progress = unwatched,
) -> Comparison:
    """Mechanisms side by side for one problem: what each releases and leaks.

    mechanisms: some by name or as they are, of any kind; without them all that take the problem's
    chain. epsilons: the privacy budgets, without them the problem's own. split: of the 3R
    mechanisms that are named.

    Theorem 2 of the paper comes first where it applies; it is a bound as printed, and its leakage
    is None.
    """
    chosen = _by_name(MECHANISMS if mechanisms is None else mechanisms, split)
    budgets = [problem.epsilon] if epsilons is None else list(epsilons)
    if not budgets:
        raise InputError("epsilons must hold at least one privacy budget, got none")
    problems = [problem.with_epsilon(one) for one in budgets]
    rows: list[Row] = []
    for one in followed(problems, "comparing", progress):
        rows += _rows(one, chosen, required=mechanisms is not None)
    return Comparison(rows)


def _by_name(
    given: Mapping[str, Mechanism] | Iterable[str | Mechanism], split: str | float | None
) -> Mapping[str, Mechanism]:
    if isinstance(given, Mapping):
        return given
    if isinstance(given, str):
        raise InputError(f"mechanisms must be a list of them, got the text {given!r}")
    made = [_named(one, split) if isinstance(one, str) else one for one in given]
    found = {one.name: one for one in made}
    if len(found) < len(made):
        raise InputError("two mechanisms have the same name: give a mapping from names to them")
    return found


def _named(name: str, split: str | float | None) -> Mechanism:
    has_split = split is not None and name.strip().startswith("3r-")
    return mechanism_named(name.strip(), **({"split": split} if has_split else {}))


def _rows(problem: Problem, chosen: Mapping[str, Mechanism], *, required: bool) -> Iterator[Row]:
    # A row for each mechanism; those that do not take the chain are left out, or an error.
    def row(name: str, utility: float, leakage: float | None) -> Row:
        said = {"mechanism": name, "utility": utility, "leakage": leakage}
        return {"epsilon": problem.epsilon, **said}

    if problem.chain.is_paper_setting and len(problem.private) == 1:
        yield row(THEOREM2, theorem2_as_printed(problem), None)
    for name, mechanism in chosen.items():
        try:
            policy = design(problem, mechanism)
        except InputError:
            # of mechanisms that nobody named, some are for chains of another kind
            if required:
                raise
            continue
        yield row(name, policy.utility, policy.leakage)
