"""The promise of designs checked against data, without a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.fitting.audit.across import across_chains
from offrecord.fitting.audit.chance import Drawing
from offrecord.fitting.audit.designs import Designs, Learn
from offrecord.fitting.audit.looks import CHAINS, NEIGHBOURS, Depth, Look, neighbours
from offrecord.fitting.audit.odds import PLAIN, SEPARATE, Limits, Table
from offrecord.fitting.audit.periods import at_lag, by_phase, periods
from offrecord.fitting.audit.records import HeldBack, Records, held_back, without_each
from offrecord.fitting.audit.result import Audit, Finding
from offrecord.fitting.audit.wording import described
from offrecord.models.audited import GOOD, verdict_on
from offrecord.models.base import Integers, Label
from offrecord.models.records import Chains, Codes

EPSILONS = (0.5, 1.0, 2.0)  #: budgets of the designs that are checked
#: Tables drawn from the model, and how many of them may show as much as was seen if that is not to
#: be chance: 3 in 120, or 1 in 40 where
REPLICATES, SHOWING = (119, 39), (2, 0)
MANY = 100_000  #: records make chance small, and drawing slow
_SEED = 20130101  # the same data get the same verdict

Phases = NDArray[np.integer]


def audited(
    chains: Chains,
    labels: Sequence[Label],
    learn: Learn,
    *,
    phases: Phases | None = None,
    by: Mapping[str, Phases] | None = None,
    instants: NDArray[np.integer] | None = None,
    epsilons: Sequence[float] = EPSILONS,
) -> Audit:
    """Hold back each quarter of the reference, and count there what designs made without it let
    through.

    learn: makes designs from records; those to be left out have no value. phases: (n,) of all
    records, where designs depend on the phase of a secret. by: other phases that may matter, by
    name. instants: (n,) when records were made, where chains share time; without them chains are
    not compared. InputError where data are too few.
    """
    cut = held_back(chains)
    records = Records.of(chains, cut)
    designs = [learn(part) for part in without_each(chains, cut)]
    told = None if phases is None else phases[records.rows]
    looks = list(_looks(records, designs, told, epsilons))
    looks += _by_phase(looks, records, by or {})
    if instants is not None:
        span = max(look.span for look in looks)
        looks += across_chains(records, instants[records.rows], min(epsilons), span)
    survey = Survey.of(records, labels, looks)
    if not survey.findings:
        return _without_findings(survey, cut, epsilons)
    closed = tuple(one for one in epsilons if not survey.is_open(one))
    return _judged(survey, cut, closed, lambda: Drawing.along(learn(chains).model, records, told))


# ---- what is looked at


def _looks(
    records: Records,
    designs: Sequence[Designs],
    phases: Phases | None,
    epsilons: Sequence[float],
) -> Iterator[Look]:
    """Neighbours, and what lies a period away, for designs of every ε."""
    lags = periods(records)
    for epsilon in epsilons:
        windows = windows_of(designs, records.part, phases, epsilon)
        look = neighbours(records, windows, epsilon)
        yield look
        for lag in lags:
            further = at_lag(look, records, windows, lag)
            if further is not None:
                yield further


def _by_phase(looks: Sequence[Look], records: Records, by: Mapping[str, Phases]) -> list[Look]:
    """Neighbours once more, apart by the phases that may matter."""
    near = [look for look in looks if look.kind == NEIGHBOURS]
    values = records.codes.astype(np.int64)
    found = [
        by_phase(look, name, phases[records.rows], values)
        for name, phases in by.items()
        for look in near
    ]
    return [look for look in found if look is not None]


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
    def of(cls, records: Records, labels: Sequence[Label], looks: Sequence[Look]) -> Survey:
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
            limits = PLAIN if look.kind == NEIGHBOURS else _together(tables, look.kind)
            # chains are told pair by pair
            apart = look.kind == CHAINS and depth == Depth(1, 0)
            for worst in table.worst_by_group(limits) if apart else [table.worst(limits)]:
                if worst is not None:
                    where = described(look, depth, worst, labels)
                    odds = worst.odds, worst.at_least
                    findings.append(Finding(look.kind, look.epsilon, depth, *odds, where))
        return cls(records, len(labels), tuple(tables), tuple(findings))

    @property
    def worst(self) -> Finding:
        """Where the odds exceed the promise most."""
        return max(self.findings, key=lambda finding: finding.excess)

    @property
    def patterns(self) -> int:
        """How many were seen often enough."""
        return sum(table.looked_at for _, _, table in self.tables)

    @property
    def left_out(self) -> int:
        """How many were seen too seldom."""
        return sum(table.left_out for _, _, table in self.tables)

    def is_open(self, epsilon: float) -> bool:
        """Whether designs for this ε release enough to be looked at."""
        near = [finding for finding in self.findings if finding.kind == NEIGHBOURS]
        return any(finding.epsilon == epsilon for finding in near)

    def is_beyond_chance(self, excess: float) -> bool:
        """Whether neighbours tell so much by limits that hold for all cells together."""
        limits = _together(self.tables, NEIGHBOURS)
        return any(
            table.reaches(excess * look.promised, limits)
            for look, _, table in self.tables
            if look.kind == NEIGHBOURS
        )

    def is_reached_by(self, codes: Codes, excess: float) -> bool:
        """Whether neighbours tell so much if the records have other values."""
        looks = {id(look): look for look, _, _ in self.tables if look.kind == NEIGHBOURS}
        return any(
            _is_reached(look, codes, self.records.at, self.k, excess * look.promised)
            for look in looks.values()
        )


def _is_reached(look: Look, codes: Codes, at: Integers, k: int, odds: float) -> bool:
    """Whether a look at records with these values finds such odds."""
    # as if every case were separate, which is faster, and mostly enough to say no
    if not any(table.reaches(odds, PLAIN) for table in look.bounds(codes, at, k)):
        return False
    return any(table.reaches(odds, PLAIN) for _, table in look.tables(codes, at, k))


def _together(tables: Sequence[tuple[Look, Depth, Table]], kind: str) -> Limits:
    """Limits that hold for all that is looked at of a kind."""
    return Limits.together(sum(table.cells for look, _, table in tables if look.kind == kind))


def _judged(
    survey: Survey, cut: HeldBack, closed: tuple[float, ...], drawing: Callable[[], Drawing]
) -> Audit:
    """The verdict on the worst of what is found; on neighbours, only if chance does not do it."""
    worst, chance = survey.worst, False
    if worst.kind == NEIGHBOURS and worst.excess > GOOD:
        chance = not survey.is_beyond_chance(GOOD) and _is_chance(survey, worst.excess, drawing())
        others = [finding for finding in survey.findings if finding.kind != NEIGHBOURS]
        beside = max(others, key=lambda finding: finding.excess, default=worst)
        if chance and beside.excess > GOOD and beside.kind != NEIGHBOURS:
            worst, chance = beside, False
    return Audit(
        verdict_on(worst.excess, chance=chance),
        worst.odds,
        worst.at_least,
        math.exp(worst.epsilon),
        worst.epsilon,
        worst.kind,
        worst.where,
        chance,
        str(cut),
        _kinds(survey),
        closed,
        len(survey.records),
        survey.patterns,
        survey.left_out,
        survey.findings,
    )


def _is_chance(survey: Survey, excess: float, drawing: Drawing) -> bool:
    """Whether more than a few of the tables drawn from the model itself show as much.

    Cases overlap, and the largest of many odds is taken: limits of single cells do not know that.
    """
    rng, showing = np.random.default_rng(_SEED), 0
    many = len(survey.records) > MANY
    for _ in range(REPLICATES[many]):
        showing += survey.is_reached_by(drawing.drawn(rng), excess)
        if showing > SHOWING[many]:
            return True
    return False


def _kinds(survey: Survey) -> tuple[str, ...]:
    """What was looked at, each kind once."""
    return tuple(dict.fromkeys(finding.kind for finding in survey.findings))


def _without_findings(survey: Survey, cut: HeldBack, epsilons: Sequence[float]) -> Audit:
    """Nothing was seen often enough: because nothing is released, or because data are few."""
    if any(look.groups.max(initial=-1) >= 0 for look, _, _ in survey.tables):
        raise InputError(
            "the reference is too short for the audit: nothing was released around"
            f" {SEPARATE} records whose windows do not overlap"
        )
    epsilon = max(epsilons)
    return Audit(
        "good",
        1.0,
        1.0,
        math.exp(epsilon),
        epsilon,
        NEIGHBOURS,
        "nothing, all is redacted",
        False,
        str(cut),
        (),
        tuple(epsilons),
        len(survey.records),
    )
