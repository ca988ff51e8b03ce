"""Policy: what a mechanism decided, with its exact leakage and utility; prints, saves, loads, and
answers record by record.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from offrecord.errors import InputError
from offrecord.files import checked_content, read_json, write_text
from offrecord.models.base import Floats, Label
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import whole_number
from offrecord.theory.influence import Region
from offrecord.theory.leakage import WorstOutput, worst_output
from offrecord.theory.problem import Problem
from offrecord.theory.redaction import Redaction

POLICY_VERSION = 1
#: Up to this many records, `first` and `last` are the whole chain.
WHOLE = 10_000
#: The longest span of records that is listed one by one.
MAX_LISTED = 1_000_000
PRIVATE = "private"
_SHOWN = 24


@dataclass(frozen=True, eq=False)
class Policy:
    """A local redaction mechanism for one problem.

    sparse: the redaction matrix where it is not 0. mechanism: the name of what designed it.
    utility_bound: what no local mechanism exceeds, where that is known. details: what else there is
    to say about the design.
    """

    problem: Problem
    sparse: Redaction
    mechanism: str
    utility_bound: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def worst(self) -> WorstOutput:
        """The output that tells most about a private record."""
        return worst_output(self.problem, self.sparse)

    @property
    def leakage(self) -> float:
        """Exact leakage, the largest over the secrets; for chains of order above 1 an upper bound
        (worst.exact tells).
        """
        return self.worst.leakage

    @cached_property
    def utility(self) -> float:
        """Expected share of the n records that is released."""
        return self.sparse.released(self.problem.chain) / self.problem.n

    @property
    def redaction(self) -> Floats:
        """(n, k) redaction probabilities; InputError where n·k is too large to spell out (use
        rows).
        """
        return self.sparse.matrix()

    @property
    def first(self) -> int:
        """First record that may be redacted; 1 for chains of at most 10,000 records."""
        return (
            1
            if self.problem.n <= WHOLE or len(self.sparse.starts) == 0
            else int(self.sparse.starts[0]) + 1
        )

    @property
    def last(self) -> int:
        """Last record that may be redacted; n for chains of at most 10,000 records."""
        if self.problem.n <= WHOLE or len(self.sparse.stops) == 0:
            return self.problem.n
        return int(self.sparse.stops[-1])

    def rows(self, first: int, last: int) -> Floats:
        """(last − first + 1, k) redaction probabilities of the records first … last, counted from
        1.
        """
        if not 1 <= first <= last <= self.problem.n:
            raise InputError(
                f"records must be from 1 to {self.problem.n}, in order, got {first} to {last}"
            )
        return self.sparse.matrix(first - 1, last)

    @property
    def regions(self) -> list[str]:
        """For the records first … last: "private", else "L" (all values always redacted), "S" (none
        ever) or "M".
        """
        rows = self._listed()
        names: list[str] = np.where(
            np.all(rows == 1, axis=1),
            Region.LARGE.value,
            np.where(np.all(rows == 0, axis=1), Region.SMALL.value, Region.MEDIUM.value),
        ).tolist()
        for p in self.problem.private:
            if self.first <= p <= self.last:
                names[p - self.first] = PRIVATE
        return names

    def _listed(self) -> Floats:
        span = self.last - self.first + 1
        if span > MAX_LISTED:
            raise InputError(
                f"{span} records lie between the first and the last redaction; only {MAX_LISTED}"
                " are listed one by one, so save the policy instead"
            )
        return self.rows(self.first, self.last)

    def rule(self, record: int) -> dict[Label, float]:
        """What the owner of one record must know: for each value, the probability of staying
        silent.
        """
        record = whole_number("record", record)
        if not 1 <= record <= self.problem.n:
            raise InputError(f"record must be from 1 to {self.problem.n}, got {record}")
        return dict(
            zip(self.problem.chain.labels, self.sparse.row(record - 1).tolist(), strict=True)
        )

    # ---- for machines

    def summary(self) -> dict[str, Any]:
        """What `offrecord design --json` prints."""
        return {
            "mechanism": self.mechanism,
            "epsilon": self.problem.epsilon,
            "n": self.problem.n,
            "private": list(self.problem.private),
            "protect": self.problem.protect,
            "leakage": self.leakage if math.isfinite(self.leakage) else "inf",
            "leakage_is_exact": self.worst.exact,
            "utility": self.utility,
            "utility_bound": self.utility_bound,
            "first": self.first,
            "last": self.last,
            "regions": self.regions,
            "redaction": self._listed().tolist(),
            "worst_output": str(self.worst),
            "details": dict(self.details),
        }

    def to_dict(self) -> dict[str, Any]:
        """The content of a policy file."""
        return {
            "format": "offrecord-policy",
            "version": POLICY_VERSION,
            "mechanism": self.mechanism,
            "details": dict(self.details),
            "model": self.problem.chain.to_dict(),
            "n": self.problem.n,
            "private": list(self.problem.private),
            "protect": self.problem.protect,
            "epsilon": self.problem.epsilon,
            "leakage": self.leakage if math.isfinite(self.leakage) else "inf",
            "utility": self.utility,
            "redaction": [
                [int(start) + 1, int(stop), row.tolist()]
                for start, stop, row in zip(
                    self.sparse.starts, self.sparse.stops, self.sparse.rows, strict=True
                )
            ],
        }

    @classmethod
    def from_dict(cls, content: Any) -> Policy:
        """The policy of a policy file's content; its leakage and utility are computed anew, never
        taken from the file.
        """
        keys = ("model", "n", "private", "protect", "epsilon", "redaction")
        content = checked_content(content, "policy", POLICY_VERSION, keys)
        chain = MarkovChain.from_dict(content["model"])
        problem = Problem(
            chain, content["n"], content["private"], content["epsilon"], content["protect"]
        )
        details = content.get("details", {})
        return cls(
            problem,
            _stretches(content["redaction"], problem.n, chain.k),
            str(content.get("mechanism", "unnamed")),
            None,
            details if isinstance(details, dict) else {},
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a policy file; complete or absent, and never over an existing one without force."""
        write_text(path, json.dumps(self.to_dict(), allow_nan=False) + "\n", force=force)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file."""
        content = read_json(path)
        try:
            return cls.from_dict(content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    # ---- for people

    @property
    def private(self) -> bool:
        """Within its ε, rounding included: always so for what a mechanism designed, to be asked of
        what came from a file.
        """
        return self.worst.upper <= self.problem.epsilon

    def __repr__(self) -> str:
        leakage = (
            f"leakage {self.leakage:.4g} {'≤' if self.private else '>'} ε ="
            f" {self.problem.epsilon:g}"
        )
        return f"<Policy {self.mechanism}: utility {self.utility:.4f}, {leakage}>"

    def __str__(self) -> str:
        lines = [
            *(
                []
                if self.private
                else [
                    f"NOT PRIVATE: leakage {self.leakage:.6g} exceeds ε = {self.problem.epsilon:g}"
                ]
            ),
            (
                f"{self.mechanism}: releases {self.utility:.2%} of {self.problem.n} records,"
                f" {'exact leakage' if self.worst.exact else 'leakage at most'} {self.leakage:.6g}"
                f" of ε = {self.problem.epsilon:g}"
            ),
            *(
                []
                if self.utility_bound is None
                else [f"no local mechanism releases more than {self.utility_bound:.4%}"]
            ),
            f"worst output: {self.worst}",
            *(f"{name}: {value}" for name, value in self.details.items()),
            "",
        ]
        table = self._table()
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines += [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in table
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *body = self._table()
        cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in body
        )
        title, worst = (html.escape(line) for line in str(self).splitlines()[:2])
        table = f"<table><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<p><b>{title}</b><br>{worst}</p>{table}"

    def _table(self) -> list[list[str]]:
        """Stretches of records that are treated alike: records, region, and how often each value is
        withheld.
        """
        private = set(self.problem.private)
        stretches: list[tuple[int, int, str, Floats]] = []

        def add(first: int, last: int, row: Floats) -> None:
            if last < first:
                return
            region = (
                PRIVATE
                if first in private
                else "L"
                if np.all(row == 1)
                else "S"
                if not row.any()
                else "M"
            )
            stretches.append((first, last, region, row))

        position = 1
        for start, stop, row in zip(
            self.sparse.starts, self.sparse.stops, self.sparse.rows, strict=True
        ):
            if len(stretches) > 4 * _SHOWN:
                break
            add(position, int(start), np.zeros(self.sparse.k))
            position = int(start) + 1
            for p in self.problem.private:
                if position <= p <= stop:
                    add(position, p - 1, row)
                    add(p, p, row)
                    position = p + 1
            add(position, int(stop), row)
            position = int(stop) + 1
        else:
            add(position, self.problem.n, np.zeros(self.sparse.k))
        table = [
            ["records", "region", *(f"Pr(⊥ | {label})" for label in self.problem.chain.labels)]
        ]
        for first, last, region, row in stretches[:_SHOWN]:
            table.append(
                [
                    str(first) if first == last else f"{first}–{last}",
                    region,
                    *(_probability(q) for q in row),
                ]
            )
        if len(stretches) > _SHOWN:
            table.append(["…"] * len(table[0]))
        return table


def _probability(q: float) -> str:
    """Four digits, and never 0 or 1 for what is neither."""
    if q in (0.0, 1.0):
        return str(int(q))
    shown = f"{q:.4f}"
    return shown if 0.0 < float(shown) < 1.0 else f"{q:.17g}"


def _stretches(content: Any, n: int, k: int) -> Redaction:
    parts = []
    position = 0
    if not isinstance(content, list):
        raise InputError('"redaction" must be a list of [first, last, probabilities]')
    for entry in content:
        if not (
            isinstance(entry, list)
            and len(entry) == 3
            and isinstance(entry[2], list)
            and len(entry[2]) == k
        ):
            raise InputError(f'"redaction" must hold entries [first, last, {k} probabilities]')
        first, last = (
            whole_number("redaction: first", entry[0]),
            whole_number("redaction: last", entry[1]),
        )
        if not position < first <= last <= n:
            raise InputError(
                f'"redaction" must name records from 1 to {n} in order, got {first} to {last}'
            )
        if not all(
            isinstance(q, (int, float)) and not isinstance(q, bool) and 0 <= q <= 1
            for q in entry[2]
        ):
            raise InputError('"redaction" must hold probabilities between 0 and 1')
        parts.append((first - 1, last, entry[2]))
        position = last
    return Redaction.of(n, k, parts)
