"""The promise of designs checked against data, without a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.fitting.audit.across import across_chains
from offrecord.fitting.audit.chance import Drawing
from offrecord.fitting.audit.designs import Learn
from offrecord.fitting.audit.looks import NEIGHBOURS, STOPS, Depth, Look
from offrecord.fitting.audit.odds import SEPARATE
from offrecord.fitting.audit.records import HeldBack, Records, held_back, without_each
from offrecord.fitting.audit.result import Audit, Finding
from offrecord.fitting.audit.stops import Walkers, stops
from offrecord.fitting.audit.survey import Phases, Survey, looks_at
from offrecord.models.audited import GOOD, verdict_on
from offrecord.models.base import Label
from offrecord.models.records import Chains, Codes

EPSILONS = (0.5, 1.0, 2.0)  #: budgets of the designs that are checked
_SEED = 20130101  # the same data get the same verdict


def audited(
    chains: Chains,
    labels: Sequence[Label],
    learn: Learn,
    *,
    phases: Phases | None = None,
    by: Mapping[str, Phases] | None = None,
    instants: NDArray[np.integer] | None = None,
    walking: Walkers | None = None,
    epsilons: Sequence[float] = EPSILONS,
) -> Audit:
    """Hold back each quarter of the reference, and count there what designs made without it let
    through.

    learn: makes designs from records; those to be left out have no value. phases: (n,) of all
    records, where designs depend on the phase of a secret. by: other phases that may matter, by
    name. instants: (n,) when records were made, where chains share time; without them chains are
    not compared. walking: the owner's sides, the same in all parts; without them stops are not
    looked at. InputError where data are too few.
    """
    cut = held_back(chains)
    records = Records.of(chains, cut)
    rows = records.rows
    designs = [learn(part) for part in without_each(chains, cut)]
    own = None if phases is None else phases[rows]
    told = {name: given[rows] for name, given in (by or {}).items()}
    looks: list[Look] = list(looks_at(records, designs, own, told, epsilons))
    if instants is not None:
        span = max(look.span for look in looks)
        looks += across_chains(records, instants[rows], min(epsilons), span)
    if walking is not None:
        looks.append(stops(records, walking))
    survey = Survey.of(records, labels, looks)

    def drawn() -> Callable[[], Codes]:
        """What draws records of the same kind; only learned where it is needed."""
        drawing = Drawing.along(learn(chains).model, records, own)
        rng = np.random.default_rng(_SEED)
        return lambda: drawing.drawn(rng)

    return _judged(survey, cut, epsilons, drawn)


def _judged(
    survey: Survey,
    cut: HeldBack,
    epsilons: Sequence[float],
    drawn: Callable[[], Callable[[], Codes]],
) -> Audit:
    """The verdict on the worst that is found; on neighbours, only if chance does not do it."""
    near, other = survey.worst(neighbours=True), survey.worst(neighbours=False)
    chance = near is not None and near.excess > GOOD and survey.is_chance(GOOD, drawn())
    found = [one for one in (near, other) if one is not None]
    worst = max(found, key=lambda one: one.excess, default=None)
    if chance and other is not None and other.excess > GOOD:
        worst, chance = other, False
    if all(one.kind == STOPS for one in survey.findings):  # stops do not speak for windows
        nothing = _nothing(survey, max(epsilons))
        worst = worst or nothing
    assert worst is not None
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
        survey.kinds,
        tuple(one for one in epsilons if not survey.is_open(one)),
        len(survey.records),
        survey.patterns,
        survey.left_out,
        survey.findings,
    )


def _nothing(survey: Survey, epsilon: float) -> Finding:
    """Nothing was seen often enough: because nothing is released, or because data are few."""
    looks = (look for look, _, _ in survey.tables if look.kind != STOPS)
    if any(look.groups.max(initial=-1) >= 0 for look in looks):
        raise InputError(
            "the reference is too short for the audit: nothing was released around"
            f" {SEPARATE} records whose windows do not overlap; --no-audit goes without"
        )
    return Finding(NEIGHBOURS, epsilon, Depth(0, 0), 1.0, 1.0, "nothing, all is redacted")
