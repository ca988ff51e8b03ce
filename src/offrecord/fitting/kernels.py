"""What a kernel depends on: how many records before (section 1 of plausible chains, "Order"), and
whether the place (hour, weekday, month, step) foretells enough better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from offrecord.errors import InputError
from offrecord.fitting.counting import Cells, Keys, Reference, shares
from offrecord.models.base import Floats, Integers
from offrecord.models.checking import whole_number
from offrecord.models.members import PLACE_COUNTS, PlaceKind, Places
from offrecord.models.posterior import MOST_CONTEXTS, Posterior

AUTO = "auto"  #: instead of an order or a kind of place: the rule's
_LONGEST = 6  # the longest memory of section 5's chains
_PER_PARAMETER = 10  # transitions for each free parameter of an order that is compared
_SHARE = 1 / 2  # of all transitions that must have so many predecessors: short chains have few
#: Chains from which on the promise is about one more of them.
ENOUGH_UNITS = 8
STEP: PlaceKind = "step"
_CLOCKS: tuple[PlaceKind, ...] = ("hour", "weekday", "month")
_FOLDS = 5
_BLOCKS = 20  # of time, dealt to the folds where there are few chains
#: Least share by which the loss must fall: panels gained 5 and 21 %, hours of rain 1 %.
_GAIN = 0.02
_FULL = 0.8  # share of steps that chains of a panel have on average
_MOST_STEPS = 512  # of a panel
_MOST_CELLS = 2**23  # counts that are held for a kind of place


@dataclass(frozen=True)
class Orders:
    """Orders that were compared, on the same transitions.

    bic, aic: by order. k: number of values. longest: that the reference reaches.
    """

    bic: dict[int, float]
    aic: dict[int, float]
    k: int
    longest: int

    @property
    def preferred(self) -> int:
        """The order that BIC prefers; the smaller one of equals."""
        return min(self.bic, key=lambda order: (self.bic[order], order))

    @property
    def chosen(self) -> int:
        """The model's order."""
        return self._above(self.preferred)

    @property
    def chosen_by_aic(self) -> int:
        """What the model's order would be with AIC in the place of BIC."""
        return self._above(min(self.aic, key=lambda order: (self.aic[order], order)))

    def _above(self, base: int) -> int:
        # BIC sees too little memory: windows of the order that it prefers protect 24 to 100 % of
        # true chains. So the model's order lies above.
        order = base + 2 if self.k == 2 else max(base, 1) + 1
        while order > 1 and (self.k**order > MOST_CONTEXTS or order > self.longest):
            order -= 1
        return order


def compared(reference: Reference) -> Orders:
    """BIC and AIC of all orders that the reference can carry."""
    k, longest = reference.k, _longest(reference, compare=True)
    at = reference.reaching(longest)
    # the same transitions for all orders: likelihoods of others could not be compared
    keys, records = reference.tuples(at, longest), int(np.count_nonzero(at))
    units = reference.chains.chain_of[at] if reference.units >= ENOUGH_UNITS else None
    bic, aic = {}, {}
    for order in range(longest + 1):
        size = k ** (order + 1)
        own = keys % size
        likelihood = _likelihood(own, units, k, size)
        parameters = k**order * (k - 1)  # a row of k shares sums to 1
        bic[order] = parameters * float(np.log(max(records, 1))) - 2 * likelihood
        aic[order] = 2.0 * parameters - 2 * likelihood
    return Orders(bic, aic, k, _longest(reference, compare=False))


def _likelihood(keys: Integers, units: Integers | None, k: int, size: int) -> float:
    rows = shares(np.bincount(keys, minlength=size).reshape(-1, k))
    if units is not None:  # chains that differ would look like longer memory
        return Cells.of(keys, units, k, size).best(rows)[1]
    return _log_likelihood(np.bincount(keys, minlength=size), rows.ravel())


def _longest(reference: Reference, *, compare: bool) -> int:
    """The longest order that may be compared, or used: enough transitions reach as far back."""
    k, longest = reference.k, 0 if compare else 1
    for order in range(1, _LONGEST + 1 if compare else MOST_CONTEXTS):
        if k**order > MOST_CONTEXTS:
            break
        if compare and _PER_PARAMETER * (k - 1) * k**order > reference.transitions:
            break
        if np.count_nonzero(reference.reaching(order)) < _SHARE * reference.transitions:
            break
        longest = order
    return longest


def checked_order(order: Any, k: int) -> int | None:
    """The order that is asked for; None for AUTO.

    Raises InputError for one that k values are not learned with.
    """
    largest = max(m for m in range(1, 8) if k**m <= MOST_CONTEXTS or m == 1)
    if order == AUTO:
        return None
    if isinstance(order, str):
        raise InputError(f"--chain-order must be {AUTO} or a whole number, got {order!r:.40}")
    number = whole_number("--chain-order", order)
    if not 1 <= number <= largest:
        accepted = "1" if largest == 1 else f"from 1 to {largest}"
        raise InputError(
            f"--chain-order must be {accepted} for {k} values, or {AUTO}, got {number}"
        )
    return number


# ---- places


@dataclass(frozen=True)
class Gain:
    """How much better places foretell held-back records.

    kind: of place. pooled, placed: loss in nats a record without and with them. kappa: likeliest
    concentration of a place's rows around the pooled ones.
    """

    kind: PlaceKind
    pooled: float
    placed: float
    kappa: float

    @property
    def worth_it(self) -> bool:
        """Whether places are used."""
        return self.placed < (1 - _GAIN) * self.pooled


@dataclass(frozen=True, eq=False)
class Placed:
    """Places of records, and the concentration of a place's rows around the pooled ones."""

    places: Places
    of_record: Keys
    kappa: float


def candidates(
    reference: Reference, clocks: Mapping[str, Keys], phase: str | None
) -> dict[PlaceKind, Keys]:
    """The kinds of places that may make a difference, with the place of each record."""
    if phase is None:
        return {}
    known = {kind: clocks[kind] for kind in _CLOCKS if kind in clocks}
    if _is_panel(reference) or phase == STEP:
        known[STEP] = reference.chains.places
    if phase == AUTO:
        return known
    kinds = [*_CLOCKS, STEP]
    if phase not in kinds:
        raise InputError(f"--phase must be one of {', '.join(kinds)}, got {phase!r:.40}")
    if phase not in known:
        raise InputError(f"--phase {phase} needs an order column with times that have it")
    return {kind: known[kind] for kind in kinds if kind == phase}


def _is_panel(reference: Reference) -> bool:
    """Whether most chains have the same steps."""
    chains = reference.chains
    steps = int(chains.places.max(initial=0)) + 1
    full = len(chains.codes) >= _FULL * steps * chains.count
    return chains.count >= ENOUGH_UNITS and full and 2 < steps <= _MOST_STEPS


def chosen_places(
    reference: Reference,
    order: int,
    candidates: Mapping[PlaceKind, Keys],
    zone: str | None,
    *,
    forced: bool,
) -> tuple[Placed | None, list[Gain]]:
    """The kind of place that foretells held-back records best, and what each was found to gain.

    forced: take the best one even if it gains too little.
    """
    gains, found = [], {}
    for kind, of_record in candidates.items():
        count = PLACE_COUNTS.get(kind) or int(of_record.max(initial=0)) + 1
        too_many = count * reference.k ** (order + 1) * _FOLDS > _MOST_CELLS
        if too_many or (kind == STEP and not reference.first_counts(order).any()):
            continue
        places = Places(kind, count, None if kind == STEP else zone)
        gains.append(gain_of(reference, order, places, of_record))
        found[kind] = Placed(places, of_record, gains[-1].kappa)
    best = min(gains, key=lambda gain: gain.placed, default=None)
    if best is None or not (forced or best.worth_it):
        return None, gains
    return found[best.kind], gains


def gain_of(reference: Reference, order: int, places: Places, of_record: Keys) -> Gain:
    """Loss of held-back folds without and with places."""
    # folds are places of their own for a moment
    both = _folds(reference) * places.count + of_record
    counts = reference.counts(order, both, _FOLDS * places.count)
    by_fold = counts.reshape(_FOLDS, places.count, -1, reference.k)
    whole = by_fold.sum(axis=0)
    losses = np.zeros(2)
    for held in by_fold:
        if (whole != held).any():
            losses += _losses(whole - held, held, order)
    # by record, so that numbers compare between tables
    pooled, placed = losses / max(int(whole.sum()), 1)
    kappa = _place_kappa(whole, mean_rows(whole.sum(axis=0), order))
    return Gain(places.kind, float(pooled), float(placed), kappa)


def _losses(seen: Integers, held: Integers, order: int) -> Floats:
    """(2,) loss on counts held back, by the pooled rows of those seen and by the places' own."""
    pooled = mean_rows(seen.sum(axis=0), order)
    kappa = _place_kappa(seen, pooled)
    # posterior mean of rows that are Dirichlet(κ·pooled)
    rows = (kappa * pooled + seen) / (kappa + seen.sum(axis=-1, keepdims=True))
    both = np.broadcast_to(pooled, held.shape), rows
    return np.array([-_log_likelihood(held, one) for one in both])


def _log_likelihood(counts: Integers, rows: Floats) -> float:
    seen = counts > 0
    return float(counts[seen] @ np.log(rows[seen]))


def _place_kappa(counts: Integers, rows: Floats) -> float:
    """The likeliest concentration of (P, S, k) counts of places around common rows (S, k)."""
    place, context, value = np.nonzero(counts)
    k, size = counts.shape[2], counts.shape[1] * counts.shape[2]
    seen = counts[place, context, value]
    return Cells.of(context * k + value, place, k, size, seen).best(rows)[0]


def _folds(reference: Reference) -> Integers:
    """(n,) the fold of each record: chains by turns, or blocks of time where there are few."""
    chains = reference.chains
    if chains.count >= ENOUGH_UNITS:
        return np.asarray(chains.chain_of % _FOLDS)
    return np.arange(len(chains.codes)) * _BLOCKS // max(len(chains.codes), 1) % _FOLDS


# ---- how far units and blocks of time differ


def unit_kappa(reference: Reference, order: int) -> float:
    """The likeliest concentration of chains around the common rows."""
    return _kappa(reference, order, reference.chains.chain_of[reference.reaching(order)])


def block_kappa(reference: Reference, order: int, blocks: int) -> float:
    """The likeliest concentration of blocks of time around the common rows."""
    when = reference.chains.order[reference.reaching(order)]
    # by rank, so that blocks hold as many records each however time is spread
    rank = np.searchsorted(np.sort(when), when)
    return _kappa(reference, order, rank * blocks // max(len(rank), 1))


def _kappa(reference: Reference, order: int, groups: Keys) -> float:
    """Of groups of the records that have `order` predecessors."""
    keys, k = reference.tuples(reference.reaching(order), order), reference.k
    counts = np.bincount(keys, minlength=k ** (order + 1)).reshape(-1, k)
    return Cells.of(keys, groups, k, counts.size).best(mean_rows(counts, order))[0]


def mean_rows(counts: Integers, order: int) -> Floats:
    """(S, k) the posterior mean of each context's row."""
    return np.asarray(Posterior(counts, order).mean.rows[0, 0])
