"""All looks at the records of a reference, and what each of them found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.fitting.audit.designs import Designs
from offrecord.fitting.audit.looks import CHAINS, NEIGHBOURS, Depth, Look, neighbours
from offrecord.fitting.audit.odds import ERROR, Table, error_together
from offrecord.fitting.audit.periods import at_lag, by_phase, periods
from offrecord.fitting.audit.records import Records
from offrecord.fitting.audit.result import Finding
from offrecord.fitting.audit.wording import described
from offrecord.models.base import Floats, Integers, Label
from offrecord.models.records import Codes

Phases: TypeAlias = NDArray[np.integer]

#: Tables drawn to see what chance does: fewer where records are many, which makes chance small and
MANY = 100_000  #: drawing slow.
_DRAWN, _DRAWN_MANY = 119, 79


# ---- what is looked at


def looks_at(
    records: Records,
    designs: Sequence[Designs],
    phases: Phases | None,
    by: Mapping[str, Phases],
    epsilons: Sequence[float],
) -> Iterator[Look]:
    """Neighbours, neighbours by phase, and what lies a period away, for designs of every ε.

    phases: (n,) of these records, where designs depend on them. by: (n,) phases that may matter.
    """
    lags = periods(records)
    values = records.codes.astype(np.int64)
    for epsilon in epsilons:
        windows = windows_of(designs, records.part, phases, epsilon)
        near = neighbours(records, windows, epsilon)
        yield near
        further = [at_lag(near, records, windows, lag) for lag in lags]
        further += [by_phase(near, name, told, values) for name, told in by.items()]
        yield from (look for look in further if look is not None)


def windows_of(
    designs: Sequence[Designs], part: Integers, phases: Phases | None, epsilon: float
) -> Integers:
    """(2, n) how far is redacted around each record; −1 where all is. designs: one for a part."""
    told = np.zeros(len(part), dtype=np.int64) if phases is None else phases.astype(np.int64)
    found = np.full((2, len(part)), -1, dtype=np.int64)
    for number, made in enumerate(designs):
        for phase in np.unique(told[part == number]).tolist():
            window = made.window(epsilon, None if phases is None else phase)
            if window is not None:
                found[:, (part == number) & (told == phase)] = np.array(window)[:, np.newaxis]
    return found


# ---- what was found


@dataclass(frozen=True, eq=False, repr=False)
class Survey:
    """All looks at some records, and what each found at each depth."""

    records: Records
    k: int
    tables: tuple[tuple[Look, Depth, Table], ...]
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, records: Records, labels: Sequence[Label], looks: Iterable[Look]) -> Survey:
        """Count everything.

        Only neighbours are compared with what chance does; of all else so many cells are looked at
        that limits hold for all of them together.
        """
        tables = [
            (look, *counted)
            for look in looks
            for counted in look.tables(records.codes, records.at, len(labels))
        ]
        findings = []
        for look, depth, table in tables:
            error = ERROR if look.kind == NEIGHBOURS else _together(tables, look.kind)
            # chains are told pair by pair
            apart = look.kind == CHAINS and depth == Depth(1, 0)
            for worst in table.worst_by_group(error) if apart else [table.worst(error)]:
                if worst is not None:
                    where = described(look, depth, worst, labels)
                    odds = worst.odds, worst.at_least
                    findings.append(Finding(look.kind, look.epsilon, depth, *odds, where))
        return cls(records, len(labels), tuple(tables), tuple(findings))

    @property
    def patterns(self) -> int:
        """How many were seen often enough."""
        return sum(table.looked_at for _, _, table in self.tables)

    @property
    def left_out(self) -> int:
        """How many were seen too seldom."""
        return sum(table.left_out for _, _, table in self.tables)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What was looked at, each kind once."""
        return tuple(dict.fromkeys(finding.kind for finding in self.findings))

    def worst(self, *, neighbours: bool) -> Finding | None:
        """Where odds exceed the promise most: those of neighbours, or all others."""
        own = [one for one in self.findings if (one.kind == NEIGHBOURS) == neighbours]
        return max(own, key=lambda finding: finding.excess, default=None)

    def is_open(self, epsilon: float) -> bool:
        """Whether designs for this ε release enough to be looked at."""
        return any(one.kind == NEIGHBOURS and one.epsilon == epsilon for one in self.findings)

    # ---- what chance does to neighbours

    def is_chance(self, excess: float, drawn: Callable[[], Codes]) -> bool:
        """Whether neighbours tell of records that a model draws as much as of these.

        Cases overlap, and the largest of many odds is taken: limits of single cells do not know
        that. So two things are compared with records drawn anew: the largest odds, and the mean of
        their logarithms over all tables, which shows earlier that a model is wrong, and later that
        one cell is. Each is beyond chance where at most 1 in 80 of the tables reach it, so both
        together leave 1 in 40 to chance.
        """
        if self._is_beyond_chance(excess):
            return False
        many = len(self.records) > MANY
        own = self._excesses(self.records.codes, many=many)
        reached = np.zeros(2, dtype=np.int64)
        most = (0, 0) if many else (0, 1)
        for _ in range(_DRAWN_MANY if many else _DRAWN):
            other = self._excesses(drawn(), many=many)
            reached += (other.max() >= own.max(), other.mean() >= own.mean())
            if np.all(reached > most):
                return True
        return False

    def _is_beyond_chance(self, excess: float) -> bool:
        """Whether limits that hold for all cells together say so much."""
        error = _together(self.tables, NEIGHBOURS)
        return any(
            table.at_least(error) > excess * look.promised
            for look, _, table in self.tables
            if look.kind == NEIGHBOURS
        )

    def _excesses(self, codes: Codes, *, many: bool) -> Floats:
        """(tables,) logarithms of odds over promise, if the records have these values.

        Of many records, as if all cases were separate: that is faster, and more is chance then.
        """
        looks = {id(look): look for look, _, _ in self.tables if look.kind == NEIGHBOURS}
        found = []
        for look in looks.values():
            given = (codes, self.records.at, self.k)
            counted = look.bounds(*given) if many else (one for _, one in look.tables(*given))
            found += [np.log(table.at_least(ERROR)) - look.epsilon for table in counted]
        return np.array(found)


def _together(tables: Sequence[tuple[Look, Depth, Table]], kind: str) -> float:
    """The error of limits that hold for all that is looked at of a kind."""
    return error_together(sum(table.cells for look, _, table in tables if look.kind == kind))
