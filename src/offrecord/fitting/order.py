"""How many records the next one depends on (plausible chains, section 1, "Order").

BIC sees too little memory: windows of the order that it prefers protect 24 to 100 % of true chains.
So the model's order lies above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from offrecord.errors import InputError
from offrecord.fitting.counting import Cells, Reference, shares
from offrecord.models.base import Integers
from offrecord.models.checking import whole_number
from offrecord.models.posterior import MOST_CONTEXTS

AUTO = "auto"  #: instead of an order: the rule's
_LONGEST = 6  # the longest memory of section 5's chains
_PER_PARAMETER = 10  # transitions for each free parameter of an order that is compared
_SHARE = 1 / 2  # of all transitions that must have so many predecessors: short chains have few
#: Chains from which on the promise is about one more of them.
ENOUGH_UNITS = 8


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
        order = base + 2 if self.k == 2 else max(base, 1) + 1
        while order > 1 and (self.k**order > MOST_CONTEXTS or order > self.longest):
            order -= 1
        return order


def compared(reference: Reference) -> Orders:
    """BIC and AIC of all orders that the reference can carry."""
    k, longest = reference.k, _longest(reference, compare=True)
    at = reference.reaching(longest)
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
    if units is not None:
        return Cells.of(keys, units, k, size).best(rows)[1]
    counts = np.bincount(keys, minlength=size)
    seen = counts > 0
    return float(counts[seen] @ np.log(rows.ravel()[seen]))


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
