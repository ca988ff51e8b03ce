"""Counting again what a model was learned from, where that is the released table itself.

Counts, order and κ decide how wide the plausible chains spread: one that is too large, or an order
too low, would narrow them. All three are computed here by code of the verifier's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.posterior import Posterior
from offrecord.tables.private import Private
from offrecord.verification.agreement import Found
from offrecord.verification.members import Promised, mean_rows
from offrecord.verification.reading import Records
from offrecord.verification.runs import covered

#: What is said of counts, order and κ that were not counted again.
OTHER = (
    "The model's counts, order and κ, which inflated would narrow the plausible chains, and that it"
    " saw no record that may be redacted (model)"
)
#: The rule of orders and κ (docs/proofs/plausible.md): the longest order compared, contexts at
#: most, transitions for each free parameter, chains from which the promise is about one more.
_LONGEST, _CONTEXTS, _PER_PARAMETER, _UNITS = 6, 128, 10, 8
_KAPPAS = 2.0 ** np.arange(-1, 15)


def check_counts(records: Records, private: Private, promised: Promised) -> None:
    """Compare the model's counts with those of the released records it was learned from."""
    read, origin, found = promised.read, records.said.origin, records.found
    if not isinstance(read, Posterior):
        found.not_checked.append("Where the known chains come from (model).")
        return
    distance = None if origin is None else origin.distance
    reference = _Reference.of(records, _apart(records, private, distance), read.k)
    if np.array_equal(reference.counts(read.order), read.counts):
        found.checked.append("The model's counts, which are those of released records here.")
        _check_rule(reference, read, found)
    elif distance is None:
        found.not_checked.append(f"{OTHER}: they are of other data.")
    else:
        found.wrong(
            f"the model's counts are not those of the records {distance} steps or more from every"
            " private one"
        )


def _apart(records: Records, private: Private, distance: int | None) -> Mask:
    """(n,) the records that a model may have been learned from."""
    # chains without a private record, or records so many steps from every private one
    if distance is None:
        return ~np.isin(records.chains.chain_of, private.chain)
    low, high = private.place - distance + 1, private.place + distance - 1
    return ~covered(records, private.chain, low, high)


def _check_rule(reference: _Reference, read: Posterior, found: Found) -> None:
    """Compare order and κ with those that the rule gives for the same records."""
    kappa = None  # with few chains the promise is about these, not about one more
    if reference.units >= _UNITS:
        kappa = reference.spread(read.order, mean_rows(read))[0]
    if kappa != read.kappa:
        found.wrong(
            f"the model's κ is {_kappa_text(read.kappa)}, that of the records it was learned from"
            f" {_kappa_text(kappa)}"
        )
    order = reference.order_of_the_rule()
    if order == read.order:
        found.checked.append("The model's order, κ and borrowing, which are those of the rule.")
    else:
        found.checked.append("The model's κ and borrowing, which are those of the rule.")
        found.not_checked.append(
            f"The model's order: it is {read.order}, where the rule gives {order} (model.order)."
        )
    if read.places is not None:
        found.not_checked.append(
            "The places that were chosen for the model, and their counts (model.places,"
            " model.place_kappa, model.place_counts, model.first_counts)."
        )


def _kappa_text(kappa: float | None) -> str:
    return "none" if kappa is None else f"{kappa:g}"


@dataclass(frozen=True, eq=False)
class _Reference:
    """Records that a model was learned from. linked: (n,) whether a record follows the one before
    it by one step, both with values.
    """

    codes: Integers
    chain_of: Integers
    linked: Mask
    k: int

    @classmethod
    def of(cls, records: Records, counts: Mask, k: int) -> _Reference:
        """The released records of a mask."""
        codes = np.where(counts & (records.codes >= 0), records.codes, -1).astype(np.int64)
        linked = np.zeros(len(codes), dtype=bool)
        linked[1:] = (codes[1:] >= 0) & (codes[:-1] >= 0)
        linked[1:] &= records.chains.chain_of[1:] == records.chains.chain_of[:-1]
        linked[1:] &= np.diff(records.chains.places) == 1
        return cls(codes, records.chains.chain_of, linked, k)

    @property
    def units(self) -> int:
        """How many chains have a value."""
        return len(np.unique(self.chain_of[self.codes >= 0]))

    @cached_property
    def steps(self) -> Integers:
        """(n,) how many records before each are linked to it without a break."""
        rows = np.arange(len(self.codes))
        return np.asarray(rows - np.maximum.accumulate(np.where(self.linked, 0, rows)))

    def cells(self, order: int, reach: int) -> tuple[Integers, Integers]:
        """Context and value as one number, and chain, of records that reach so far back."""
        rows = np.flatnonzero((self.codes >= 0) & (self.steps >= reach))
        cells = np.zeros(len(rows), dtype=np.int64)
        for back in range(order, -1, -1):
            cells = cells * self.k + self.codes[rows - back]
        return cells, self.chain_of[rows]

    def counts(self, order: int, reach: int | None = None) -> Integers:
        """(S, k) how often each value follows each context."""
        cells, _ = self.cells(order, order if reach is None else reach)
        return np.bincount(cells, minlength=self.k ** (order + 1)).reshape(-1, self.k)

    def spread(self, order: int, rows: Floats, reach: int | None = None) -> tuple[float, float]:
        """The likeliest κ of chains around common rows, and its log-likelihood (Pólya's)."""
        cells, chains = self.cells(order, order if reach is None else reach)
        both, seen = np.unique(chains * rows.size + cells, return_counts=True)
        visits = np.bincount(np.unique(both // self.k, return_inverse=True)[1], seen)
        # equal cells have equal terms, which are computed once
        alike, often = np.unique(both % rows.size * (seen.max() + 1) + seen, return_counts=True)
        share, times = rows.ravel()[alike // (seen.max() + 1)], alike % (seen.max() + 1)
        sizes, as_often = np.unique(visits, return_counts=True)
        likelihoods = [
            often @ (gammaln(kappa * share + times) - gammaln(kappa * share))
            + as_often @ (gammaln(kappa) - gammaln(kappa + sizes))
            for kappa in _KAPPAS
        ]
        best = int(np.argmax(likelihoods))
        return float(_KAPPAS[best]), float(likelihoods[best])

    def order_of_the_rule(self) -> int:
        """Above the order that BIC prefers, as far as the records reach."""
        k, transitions = self.k, int(self.linked.sum())
        reached = [int(np.sum(self.steps >= order)) for order in range(_CONTEXTS)]
        # contexts that half of the transitions reach
        longest = 0
        while k ** (longest + 1) <= _CONTEXTS and 2 * reached[longest + 1] >= transitions:
            longest += 1
        compared = self._compared(min(_LONGEST, longest), transitions)
        bic = [self._bic(order, compared) for order in range(compared + 1)]
        best = int(np.argmin(bic))
        # BIC sees too little memory, so the rule takes a longer one (docs/proofs/plausible.md)
        return min(best + 2 if k == 2 else max(best, 1) + 1, max(longest, 1))

    def _compared(self, longest: int, transitions: int) -> int:
        """The longest order with enough transitions for each parameter."""
        sizes = ((self.k - 1) * self.k**order for order in range(1, longest + 1))
        return sum(_PER_PARAMETER * size <= transitions for size in sizes)

    def _bic(self, order: int, reach: int) -> float:
        counts = self.counts(order, reach)
        visits = counts.sum(axis=1, keepdims=True)
        rows = np.where(visits > 0, counts / np.maximum(visits, 1), 1 / self.k)
        # chains that differ among each other would look like longer memory
        if self.units >= _UNITS:
            likelihood = self.spread(order, rows, reach)[1]
        else:
            likelihood = float(counts[counts > 0] @ np.log(rows[counts > 0]))
        parameters = self.k**order * (self.k - 1)
        return float(parameters * np.log(max(visits.sum(), 1)) - 2 * likelihood)
