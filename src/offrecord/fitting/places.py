"""Whether kernels depend on the place (hour, weekday, month, step) enough to foretell better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from offrecord.errors import InputError
from offrecord.fitting.counting import Cells, Keys, Reference, shares
from offrecord.fitting.order import ENOUGH_UNITS
from offrecord.models.base import Floats, Integers
from offrecord.models.members import PLACE_COUNTS, PlaceKind, Places
from offrecord.models.posterior import Posterior

AUTO = "auto"  #: instead of a kind of place: the one that foretells best, or none
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
    """Places of records, and the counts by place."""

    places: Places
    of_record: Keys
    counts: Integers
    kappa: float


def candidates(
    reference: Reference, clocks: Mapping[str, Keys], phase: str | None
) -> dict[PlaceKind, Keys]:
    """The kinds of places that may make a difference, with the place of each record."""
    known: dict[PlaceKind, Keys] = {}
    for kind in _CLOCKS:
        if kind in clocks:
            known[kind] = clocks[kind]
    if _is_panel(reference) or phase == STEP:
        known["step"] = reference.chains.places
    if phase is None or phase == AUTO:
        return known if phase == AUTO else {}
    kinds = [*_CLOCKS, STEP]
    if phase not in kinds:
        raise InputError(f"--phase must be one of {', '.join(kinds)}, got {phase!r:.40}")
    if phase not in known:
        raise InputError(f"--phase {phase} needs an order column with times that have it")
    return {kind: places for kind, places in known.items() if kind == phase}


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
        if count * reference.k ** (order + 1) * _FOLDS > _MOST_CELLS:
            continue
        if kind == STEP and not reference.first_counts(order).any():
            continue
        places = Places(kind, count, None if kind == STEP else zone)
        gain, counts = _gain(reference, order, places, of_record)
        gains.append(gain)
        found[kind] = Placed(places, of_record, counts, gain.kappa)
    best = min(gains, key=lambda gain: gain.placed, default=None)
    if best is None or not (forced or best.worth_it):
        return None, gains
    return found[best.kind], gains


def _gain(
    reference: Reference, order: int, places: Places, of_record: Keys
) -> tuple[Gain, Integers]:
    """Loss of held-back folds without and with places; and the counts of each place."""
    fold = folds(reference)
    # folds are places of their own for a moment
    both = fold * places.count + of_record
    counts = reference.counts(order, both, _FOLDS * places.count)
    by_fold = counts.reshape(_FOLDS, places.count, -1, reference.k)
    whole = by_fold.sum(axis=0)
    pooled_loss = placed_loss = 0.0
    for held in by_fold:
        seen = whole - held
        if not seen.any():
            continue
        pooled = Posterior(seen.sum(axis=0), order).mean.rows[0, 0]
        kappa = place_kappa(seen, pooled)
        # posterior mean of rows that are Dirichlet(κ·pooled)
        rows = (kappa * pooled + seen) / (kappa + seen.sum(axis=-1, keepdims=True))
        pooled_loss -= _likelihood(held, np.broadcast_to(pooled, held.shape))
        placed_loss -= _likelihood(held, rows)
    total = max(int(whole.sum()), 1)
    mean = Posterior(whole.sum(axis=0), order).mean.rows[0, 0]
    kappa = place_kappa(whole, mean)
    return Gain(places.kind, pooled_loss / total, placed_loss / total, kappa), whole


def _likelihood(counts: Integers, rows: Floats) -> float:
    seen = counts > 0
    return float(counts[seen] @ np.log(rows[seen]))


def place_kappa(counts: Integers, rows: Floats) -> float:
    """The likeliest concentration of (P, S, k) counts of places around common rows (S, k)."""
    place, context, value = np.nonzero(counts)
    k, size = counts.shape[2], counts.shape[1] * counts.shape[2]
    seen = counts[place, context, value]
    return Cells.of(context * k + value, place, k, size, seen).best(rows)[0]


def folds(reference: Reference) -> Integers:
    """(n,) the fold of each record: chains by turns, or blocks of time where there are few."""
    chains = reference.chains
    if chains.count >= ENOUGH_UNITS:
        return np.asarray(chains.chain_of % _FOLDS)
    return np.arange(len(chains.codes)) * _BLOCKS // max(len(chains.codes), 1) % _FOLDS


def block_kappa(reference: Reference, order: int, blocks: int) -> float:
    """The likeliest concentration of blocks of time around the common rows."""
    at = reference.reaching(order)
    when = reference.chains.order[at]
    rank = np.searchsorted(np.sort(when), when)
    block = rank * blocks // max(len(rank), 1)
    keys, size = reference.tuples(at, order), reference.k ** (order + 1)
    counts = np.bincount(keys, minlength=size).reshape(-1, reference.k)
    rows = Posterior(counts, order).mean.rows[0, 0]
    return Cells.of(keys, block, reference.k, size).best(rows)[0]


def unit_kappa(reference: Reference, order: int, rows: Floats | None = None) -> float:
    """The likeliest concentration of chains around the common rows."""
    at = reference.reaching(order)
    keys, size = reference.tuples(at, order), reference.k ** (order + 1)
    if rows is None:
        rows = shares(np.bincount(keys, minlength=size).reshape(-1, reference.k))
    return Cells.of(keys, reference.chains.chain_of[at], reference.k, size).best(rows)[0]
