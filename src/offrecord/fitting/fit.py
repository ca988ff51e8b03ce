"""Fit: which chains reference records leave plausible, and whether to believe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from offrecord.errors import InputError, as_called
from offrecord.fitting import printed
from offrecord.fitting.audit import Windows, mean_windows, verdicts, windows
from offrecord.fitting.counting import Keys, Reference
from offrecord.fitting.kernels import (
    AUTO,
    ENOUGH_UNITS,
    STEP,
    Gain,
    Orders,
    Placed,
    block_kappa,
    candidates,
    checked_order,
    chosen_places,
    compared,
    unit_kappa,
)
from offrecord.models.base import Integers, Label, Mask
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
        if known is not None:
            counts = known.model_dump(include={"chains", "records", "lone_cells"})
            origin = origin.model_copy(update=counts)
        return replace(self, model=replace(self.model, origin=origin))

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
    both = zip(acting, mean_windows(posterior, epsilons, known.longest), strict=True)
    tested = _tested(rule, orders, epsilons, acting)
    seen = np.bincount(known.codes[known.codes >= 0], minlength=len(labels)).tolist()
    origin = Origin(column="value", order="row") if origin is None else origin
    counted = origin.model_copy(update=_counted(known, order))
    result = Fit(
        Model(posterior, counted, tuple(tested)),
        orders,
        tuple(gains),
        dict(zip(labels, seen, strict=True)),
        sum(seen),
        known.units,
        dict(zip(epsilons, both, strict=True)),
    )
    return result.with_warnings(*_warnings(result))


def _counted(known: Reference, order: int) -> dict[str, int]:
    """What a model's origin says of the records counted."""
    return {
        "chains": known.units,
        "records": int(np.count_nonzero(known.codes >= 0)),
        "lone_cells": known.lone_cells(order) if known.units > 1 else 0,
    }


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
    # both sensitivities pool all places
    if placed is None:
        found = verdicts(rule.whole, rule.learn, rule.labels, epsilons, rule.order)
        return _with_ratios(found, rule, orders, acting)
    by_step = placed.places.kind == STEP
    how = rule.whole, rule.learn, rule.labels, epsilons, rule.order
    return verdicts(*how, placed.of_record, by_step=by_step)


@dataclass(frozen=True, eq=False)
class _Rule:
    """How a posterior is learned, from all of a reference or from part of it."""

    whole: Reference
    order: int
    labels: tuple[Label, ...]
    coverage: float
    placed: Placed | None

    @cached_property
    def kappa(self) -> float | None:
        """Concentration of units; None where there are too few."""
        # that of the whole reference, for its parts too
        return self._kappa(self.order)

    def _kappa(self, order: int) -> float | None:
        return unit_kappa(self.whole, order) if self.whole.units >= ENOUGH_UNITS else None

    def learn(self, part: Reference) -> Posterior:
        """The posterior of some of the records."""
        placed = self.placed
        if placed is None:
            return self._pooled(part, self.order, self.kappa)
        counts = part.counts(self.order, placed.of_record, placed.places.count)
        return Posterior(
            counts.sum(axis=0),
            self.order,
            self.labels,
            self.coverage,
            kappa=self.kappa,
            places=placed.places,
            place_counts=counts,
            place_kappa=placed.kappa,
            first_counts=self._first_counts(part) if placed.places.kind == STEP else None,
        )

    def _first_counts(self, part: Reference) -> Integers:
        found = part.first_counts(self.order)
        # a part may hold no chain's first records
        return found if found.any() else self.whole.first_counts(self.order)

    def _pooled(self, part: Reference, order: int, kappa: float | None) -> Posterior:
        return Posterior(part.counts(order)[0], order, self.labels, self.coverage, kappa=kappa)

    def of_order(self, order: int) -> Posterior:
        """What the posterior would be with another order."""
        return self._pooled(self.whole, order, self._kappa(order))

    def with_blocks(self) -> Posterior:
        """What the posterior would be if it were about one more block of time."""
        kappa = block_kappa(self.whole, self.order, _BLOCKS)
        return self._pooled(self.whole, self.order, min(kappa, self.kappa or kappa))


def _with_ratios(
    verdicts: Sequence[Verdict], rule: _Rule, orders: Orders, acting: Windows
) -> list[Verdict]:
    """The verdicts with both sensitivities."""
    epsilons, longest = [one.epsilon for one in verdicts], rule.whole.longest
    other, by_order = orders.chosen_by_aic, acting
    if other != rule.order:
        by_order = windows(rule.of_order(other), epsilons, longest=longest)
    by_time = windows(rule.with_blocks(), epsilons, longest=longest)
    return [
        verdict.model_copy(
            update={
                "order_ratio": _ratio(wider, other, own, rule.order),
                "time_ratio": _ratio(later, rule.order, own, rule.order),
            }
        )
        for verdict, wider, own, later in zip(verdicts, by_order, acting, by_time, strict=True)
    ]


def _ratio(window: int | None, order: int, own: int | None, own_order: int) -> float | None:
    """How many times as many records one window takes as another, of chains of two orders."""
    if window is None or own is None:
        return None
    return _taken(window, order) / _taken(own, own_order)


def _taken(window: int, order: int) -> int:
    """Records that go with a lone private one, itself included."""
    # its core, which holds order - 1 records before it, always goes
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
