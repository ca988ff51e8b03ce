"""LocalPolicy: a redaction matrix for one problem, with its exact leakage and utility."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.mechanisms.base import Policy
from offrecord.models.base import Floats, Label, Mask
from offrecord.models.checking import whole_number
from offrecord.text import aligned, plain
from offrecord.theory.leakage import leakages, released
from offrecord.theory.problem import Problem

PRIVATE = "private"  #: how a private record's region is called
WHOLE = 10_000  #: up to this many records, `first` and `last` are the whole chain
MAX_LISTED = 1_000_000  #: the longest span of records that is listed one by one
_SHOWN = 24  # runs of records shown to people


@dataclass(frozen=True, eq=False, repr=False)
class LocalPolicy(Policy):
    """A local redaction mechanism for one problem.

    redaction: (n, k) probabilities. mechanism: the name of what designed it. utility_bound: what no
    local mechanism exceeds, where that is known. details: what else there is to say about it.
    """

    kind: ClassVar[str] = "local"
    version: ClassVar[int] = 2
    held: ClassVar[str] = "redaction"

    problem: Problem
    redaction: Floats
    mechanism: str
    utility_bound: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def leakages(self) -> Floats:
        """(M,) the exact leakage under each plausible chain."""
        return leakages(self.problem, self.redaction)

    @cached_property
    def utility(self) -> float:
        """Expected share of the n records that is released."""
        return released(self.redaction, self.problem) / self.problem.n

    @cached_property
    def _span(self) -> tuple[int, int]:
        if self.problem.n <= WHOLE:
            return 1, self.problem.n
        used = np.flatnonzero(self.redaction.any(axis=1))
        return int(used[0]) + 1, int(used[-1]) + 1

    @property
    def first(self) -> int:
        """First record that may be redacted; 1 for chains of at most 10,000 records."""
        return self._span[0]

    @property
    def last(self) -> int:
        """Last record that may be redacted; n for chains of at most 10,000 records."""
        return self._span[1]

    def rows(self, first: int, last: int) -> Floats:
        """Redaction probabilities of some records.

        Args:
            first, last: the records, from 1.

        Returns:
            (last − first + 1, k)

        Raises:
            InputError: For what are no records.
        """
        if not 1 <= first <= last <= self.problem.n:
            raise InputError(
                f"records must be from 1 to {self.problem.n}, in order, got {first} to {last}"
            )
        return self.redaction[first - 1 : last]

    @property
    def regions(self) -> list[str]:
        """For the records first … last: "private", else "L" (all values always redacted), "S" (none
        ever) or "M".
        """
        names: list[str] = _regions(self._listed()).tolist()
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
        """What the owner of one record must know.

        Args:
            record: its number, from 1.

        Returns:
            For each value the probability of staying silent.

        Raises:
            InputError: For what is no record.
        """
        record = whole_number("record", record)
        if not 1 <= record <= self.problem.n:
            raise InputError(f"record must be from 1 to {self.problem.n}, got {record}")
        row = self.redaction[record - 1].tolist()
        return dict(zip(self.problem.chain.labels, row, strict=True))

    def outcomes(self, values: Sequence[int]) -> Iterator[tuple[Mask, float]]:
        """See `Policy.outcomes`: each record is decided by itself."""
        self._check_listed(values)
        n = self.problem.n
        silent = self.redaction[np.arange(n), np.asarray(values)]
        unsure = np.flatnonzero((silent > 0) & (silent < 1))
        for choice in product((False, True), repeat=len(unsure)):
            mask = silent < 1
            mask[unsure] = choice
            chance = np.where(choice, 1 - silent[unsure], silent[unsure])
            yield mask, float(np.prod(chance))

    def apply(self, values: Sequence[int], rng: np.random.Generator) -> Mask:
        """See `Policy.apply`."""
        silent = self.redaction[np.arange(self.problem.n), np.asarray(values)]
        return np.asarray(rng.random(self.problem.n) >= silent)

    # ---- for machines

    def summary(self) -> dict[str, Any]:
        """What `offrecord design --json` prints."""
        return {
            **self._head(),
            "utility_bound": self.utility_bound,
            "first": self.first,
            "last": self.last,
            "regions": self.regions,
            "redaction": self._listed().tolist(),
        }

    def _head(self) -> dict[str, Any]:
        return {**super()._head(), "details": dict(self.details)}

    def _held(self) -> Any:
        return [
            [first, last, self.redaction[first - 1].tolist()]
            for first, last in self._alike()
            if self.redaction[first - 1].any()
        ]

    # First and last records, from 1, of neighbours with the same row; private ones by themselves
    # where they are distinguished.
    def _alike(self, *, apart: bool = False) -> list[tuple[int, int]]:
        changes = np.any(self.redaction[1:] != self.redaction[:-1], axis=1)
        if apart:
            private = np.zeros(self.problem.n, dtype=bool)
            private[np.array(self.problem.private) - 1] = True
            changes = changes | private[1:] | private[:-1]
        edges = [0, *(np.flatnonzero(changes) + 1).tolist(), self.problem.n]
        return [(low + 1, high) for low, high in pairwise(edges)]

    @classmethod
    def _from_file(cls, problem: Problem, content: dict[str, Any], mechanism: str) -> Self:
        matrix, details = _matrix(content[cls.held], problem), content.get("details", {})
        return cls(problem, matrix, mechanism, None, details if isinstance(details, dict) else {})

    def __str__(self) -> str:
        return "\n".join([*map(plain, self._headlines()), "", aligned(self._table(), right=True)])

    # What it releases, and its leakage.
    def _headlines(self) -> list[str]:
        epsilon, lines = self.problem.epsilon, []
        if not self.is_private:
            lines.append(f"NOT PRIVATE: leakage {self.leakage:.6g} exceeds ε = {epsilon:g}")
        lines.append(
            f"{self.mechanism}: releases {self.utility:.2%} of {self.problem.n} records, exact"
            f" leakage {self.leakage:.6g} of ε = {epsilon:g}"
        )
        if self.utility_bound is not None:
            lines.append(f"no local mechanism releases more than {self.utility_bound:.4%}")
        return [*lines, *(f"{name}: {value}" for name, value in self.details.items())]

    # Records treated alike, around the first private one if there are many.
    def _table(self) -> list[list[str]]:
        labels, private = self.problem.chain.labels, self.problem.private
        table = [["records", "region", *(f"Pr(⊥ | {label})" for label in labels)]]
        alike = self._alike(apart=True)
        at = next(i for i, (_, last) in enumerate(alike) if last >= private[0])
        begin = max(min(at - _SHOWN // 2, len(alike) - _SHOWN), 0)
        for first, last in alike[begin : begin + _SHOWN]:
            row = self.redaction[first - 1]
            region = PRIVATE if first in private else str(_regions(row[np.newaxis])[0])
            records = str(first) if first == last else f"{first}–{last}"
            table.append([records, region, *map(_probability, row.tolist())])
        omitted = ["…"] * len(table[0])
        if begin:
            table.insert(1, omitted)
        return [*table, omitted] if begin + _SHOWN < len(alike) else table


# Which region each row is in, apart from private records.
def _regions(rows: Floats) -> NDArray[np.str_]:
    return np.where(np.all(rows == 1, axis=1), "L", np.where(rows.any(axis=1), "M", "S"))


# Four digits, and never 0 or 1 for what is neither.
def _probability(q: float) -> str:
    if q in (0.0, 1.0):
        return str(int(q))
    shown = f"{q:.4f}"
    return shown if 0.0 < float(shown) < 1.0 else f"{q:.17g}"


# The matrix of a file's [first, last, probabilities].
def _matrix(content: Any, problem: Problem) -> Floats:
    n, k, position = problem.n, problem.chain.k, 0
    matrix = np.zeros((n, k))
    if not isinstance(content, list):
        raise InputError('"redaction" must be a list of [first, last, probabilities]')
    for entry in content:
        if not (isinstance(entry, list) and len(entry) == 3 and isinstance(entry[2], list)):
            raise InputError(f'"redaction" must hold entries [first, last, {k} probabilities]')
        first = whole_number("redaction: first", entry[0])
        last = whole_number("redaction: last", entry[1])
        if not position < first <= last <= n:
            raise InputError(
                f'"redaction" must name records from 1 to {n} in order, got {first} to {last}'
            )
        if len(entry[2]) != k or not all(map(_is_probability, entry[2])):
            raise InputError(f'"redaction" must hold {k} probabilities between 0 and 1')
        matrix[first - 1 : last] = entry[2]
        position = last
    return matrix


def _is_probability(q: Any) -> bool:
    return isinstance(q, (int, float)) and not isinstance(q, bool) and 0 <= q <= 1
