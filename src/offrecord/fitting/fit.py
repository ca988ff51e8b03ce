"""Fit: which chains reference records leave plausible, and whether to believe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from offrecord.errors import InputError, as_called
from offrecord.fitting import printed
from offrecord.fitting.audit import Windows, mean_windows, verdicts, windows
from offrecord.fitting.counting import Keys, Reference
from offrecord.fitting.order import ENOUGH_UNITS, Orders, checked_order, compared
from offrecord.fitting.places import (
    AUTO,
    STEP,
    Gain,
    Placed,
    block_kappa,
    candidates,
    chosen_places,
    unit_kappa,
)
from offrecord.models.base import Floats, Integers, Label, Mask
from offrecord.models.chain import MarkovChain
from offrecord.models.evidence import Verdict, sensitivities
from offrecord.models.file import Model, Origin
from offrecord.models.posterior import Posterior, never_followed
from offrecord.models.records import Chains

EPSILONS = (0.5, 1.0, 2.0)  #: that a fit is tested at unless others are given
_TOO_WIDE = 3.0  # times the mean chain's window: wider windows are a matter of too few records
_BLOCKS = 24  # of time, one more of which is drawn for the second sensitivity


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """What was learned from reference records.

    model: the posterior, where it comes from, its verdicts. orders: BIC and AIC by order. gains: of
    kinds of places that were tried. values: how many records have each value. records, units: how
    many records and chains were looked at. windows: by ε, records redacted on each side of a lone
    private one by the window of the posterior and of the mean chain; None where none is long
    enough.
    """

    model: Model
    orders: Orders
    gains: tuple[Gain, ...]
    values: Mapping[Label, int]
    records: int
    units: int
    windows: Mapping[float, tuple[int | None, int | None]]
    warnings: tuple[str, ...] = ()

    @property
    def posterior(self) -> Posterior:
        """The plausible chains."""
        assert isinstance(self.model.promise, Posterior)
        return self.model.promise

    @property
    def chain(self) -> MarkovChain:
        """The mean chain, all places together."""
        return self.posterior.chain

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """A verdict for each ε."""
        return self.model.verdicts

    @property
    def transitions(self) -> int:
        """How many transitions were counted."""
        return int(self.posterior.counts.sum())

    def with_origin(self, origin: Origin) -> Fit:
        """The same fit, with what is known of the table its records are from."""
        known = self.model.origin
        counts = (
            {} if known is None else known.model_dump(include={"chains", "records", "lone_cells"})
        )
        return replace(self, model=replace(self.model, origin=origin.model_copy(update=counts)))

    def with_warnings(self, *more: str) -> Fit:
        """The same fit, with further warnings."""
        return replace(self, warnings=(*self.warnings, *map(as_called, more)))

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the model file; complete or absent."""
        self.model.save(path, force=force)

    def summary(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            **self.model.to_dict(),
            "values": {str(value): count for value, count in self.values.items()},
            "records": self.records,
            "chains": self.units,
            "transitions": self.transitions,
            "bic": {str(order): value for order, value in self.orders.bic.items()},
            "preferred_order": self.orders.preferred,
            "contexts_borrowing": self.posterior.borrowed.tolist(),
            "gains": [vars(gain) for gain in self.gains],
            "windows": {str(epsilon): list(both) for epsilon, both in self.windows.items()},
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        return f"<Fit of {printed.headline(self)}>"

    def __str__(self) -> str:
        return printed.page(self)


def fit(  # noqa: PLR0913 - what there is to choose, by name
    chains: Chains,
    labels: Sequence[Label],
    *,
    chain_order: int | str = "auto",
    phase: str | None = AUTO,
    clocks: Mapping[str, Keys] | None = None,
    zone: str | None = None,
    coverage: float = 0.99,
    epsilons: Sequence[float] = EPSILONS,
    reference: Mask | None = None,
    origin: Origin | None = None,
) -> Fit:
    """Learn which chains are plausible, and test whether to believe it.

    What stands one step apart and has values is counted. clocks: (n,) hour, weekday or month of
    each record, by kind. phase: one of these or "step" for a kernel each, "auto" for the kind that
    foretells held-back records clearly better, None for one kernel. zone: that clocks were read in.
    reference: (n,) the records that may be used. origin: what is known of the table. InputError if
    there is nothing to learn from, or for an option that is not accepted.
    """
    known, asked = _reference(chains, len(labels), reference, chain_order)
    orders = compared(known)
    order = orders.chosen if asked is None else asked
    tried = candidates(known, clocks or {}, phase)
    placed, gains = chosen_places(known, order, tried, zone, forced=phase not in (None, AUTO))
    rule = _Rule(known, order, tuple(labels), coverage, placed)
    posterior = rule.learn(known)
    acting = windows(posterior, epsilons, longest=known.longest)
    tested = _tested(rule, orders, epsilons, acting)
    seen = np.bincount(known.codes[known.codes >= 0], minlength=len(labels)).tolist()
    counted = {
        "chains": known.units,
        "records": sum(seen),
        "lone_cells": known.lone_cells(order) if known.units > 1 else 0,
    }
    origin = Origin(column="value", order="row") if origin is None else origin
    both = zip(acting, mean_windows(posterior, epsilons, known.longest), strict=True)
    result = Fit(
        Model(posterior, origin.model_copy(update=counted), tuple(tested)),
        orders,
        tuple(gains),
        dict(zip(labels, seen, strict=True)),
        sum(seen),
        known.units,
        dict(zip(epsilons, both, strict=True)),
    )
    return result.with_warnings(*_warnings(result))


def _reference(
    chains: Chains, k: int, allowed: Mask | None, chain_order: int | str
) -> tuple[Reference, int | None]:
    """The records to learn from, and the order asked for; InputError unless it occurs."""
    known, asked = Reference.of(chains, k, allowed), checked_order(chain_order, k)
    if not known.reaching(asked or 1).any():
        raise InputError(
            f"no {(asked or 1) + 1} records with values stand one step apart: there is nothing to"
            " learn from; if each column is a step, see offrecord look"
        )
    return known, asked


def _tested(
    rule: _Rule, orders: Orders, epsilons: Sequence[float], acting: Windows
) -> list[Verdict]:
    """A verdict for each ε, and how far other assumptions would widen the windows."""
    placed = rule.placed
    place = None if placed is None else placed.of_record
    by_step = placed is not None and placed.places.kind == STEP
    found = verdicts(
        rule.whole, rule.learn, rule.labels, epsilons, rule.order, place, by_step=by_step
    )
    return _with_ratios(found, rule, orders, acting) if placed is None else found


@dataclass(frozen=True, eq=False)
class _Rule:
    """How a posterior is learned, from all of a reference or from part of it.

    κ of units and places is that of the whole reference.
    """

    whole: Reference
    order: int
    labels: tuple[Label, ...]
    coverage: float
    placed: Placed | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kappa", self._kappa(self.order))

    kappa: float | None = None

    def _kappa(self, order: int) -> float | None:
        if self.whole.units < ENOUGH_UNITS:
            return None
        counts = self.whole.counts(order)[0]
        return unit_kappa(self.whole, order, _mean_rows(counts, order))

    def learn(self, part: Reference) -> Posterior:
        """The posterior of some of the records."""
        placed = self.placed
        if placed is None:
            return Posterior(
                part.counts(self.order)[0], self.order, self.labels, self.coverage, kappa=self.kappa
            )
        counts = part.counts(self.order, placed.of_record, placed.places.count)
        first_counts = None
        if placed.places.kind == STEP:  # a part may hold no chain's first records
            first_counts = part.first_counts(self.order)
            if not first_counts.any():
                first_counts = self.whole.first_counts(self.order)
        return Posterior(
            counts.sum(axis=0),
            self.order,
            self.labels,
            self.coverage,
            kappa=self.kappa,
            places=placed.places,
            place_counts=counts,
            place_kappa=placed.kappa,
            first_counts=first_counts,
        )

    def of_order(self, order: int) -> Posterior:
        """What the posterior would be with another order."""
        kappa = self._kappa(order)
        return Posterior(
            self.whole.counts(order)[0], order, self.labels, self.coverage, kappa=kappa
        )

    def with_blocks(self) -> Posterior:
        """What the posterior would be if it were about one more block of time."""
        kappa = block_kappa(self.whole, self.order, _BLOCKS)
        kappa = min(kappa, self.kappa or kappa)
        counts = self.whole.counts(self.order)[0]
        return Posterior(counts, self.order, self.labels, self.coverage, kappa=kappa)


def _mean_rows(counts: Integers, order: int) -> Floats:
    return np.asarray(Posterior(counts, order).mean.rows[0, 0])


def _with_ratios(
    verdicts: Sequence[Verdict], rule: _Rule, orders: Orders, acting: Windows
) -> list[Verdict]:
    """The verdicts with both sensitivities."""
    epsilons, other = [one.epsilon for one in verdicts], orders.chosen_by_aic
    by_order = (
        acting
        if other == rule.order
        else windows(rule.of_order(other), epsilons, longest=rule.whole.longest)
    )
    by_time = windows(rule.with_blocks(), epsilons, longest=rule.whole.longest)
    ratios = [
        (_ratio(wider, other, own, rule.order), _ratio(later, rule.order, own, rule.order))
        for wider, own, later in zip(by_order, acting, by_time, strict=True)
    ]
    return [
        verdict.model_copy(update={"order_ratio": order, "time_ratio": time})
        for verdict, (order, time) in zip(verdicts, ratios, strict=True)
    ]


def _ratio(window: int | None, order: int, own: int | None, own_order: int) -> float | None:
    """How many times as many records one window takes as another, of chains of two orders."""
    if window is None or own is None:
        return None
    return _taken(window, order) / _taken(own, own_order)


def _taken(window: int, order: int) -> int:
    """Records that go with a lone private one, itself included; its core always does."""
    return max(window, order - 1) + 1 + window


def _warnings(found: Fit) -> list[str]:
    """What to be warned of: too few records, broken models, sensitivities."""
    order, said = found.posterior.order, never_followed(found.posterior)
    for epsilon, (acting, mean) in found.windows.items():
        wide = acting is None or mean is None
        if wide or _taken(acting or 0, order) > _TOO_WIDE * _taken(mean or 0, order):
            said.append(printed.too_few(found, epsilon))
            break
    for verdict in found.verdicts:
        if verdict.verdict == "broken" or verdict.is_narrow:
            said.append(printed.verdict_sentence(verdict))
    return [*said, *sensitivities(found.verdicts)]
