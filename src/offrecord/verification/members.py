"""The chains that a certificate's promise is about, drawn anew from its own counts.

The verifier's draws are independent of the publisher's: they come after the certificate, with a
seed of their own. Nothing here is shared with what drew for the design but the file's form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.models.file import PromiseForm
from offrecord.models.members import Places
from offrecord.models.posterior import Posterior

#: By coverage, how many chains are drawn and how many of them may exceed ε: a policy that fails in
#: more than 1 - coverage of all chains is accepted with probability at most 0.001
#: (docs/proofs/plausible.md).
DRAWS = {0.99: (8000, 53), 0.95: (2000, 70)}
_SELDOM, _OFTEN = 5, 50  # visits of a context that borrows, and of a suffix that lends
_FLOOR = 1e-13  # least probability of a drawn row


class CannotJudgeError(Exception):
    """The certificate holds rules or a model of a kind that this verifier does not know."""


@dataclass(frozen=True)
class Kind:
    """What all chains of a promise have in common."""

    k: int
    order: int
    where: Places | None = None  # what kernels depend on beside values

    @property
    def contexts(self) -> int:
        """k to the power of the order."""
        return int(self.k**self.order)

    @property
    def places(self) -> int:
        """How many places have a kernel or law of their own; 1: none."""
        return 1 if self.where is None else self.where.count

    @property
    def steps(self) -> Places | None:
        """The places, if they are steps from the first record."""
        return None if self.where is None or self.where.cyclic else self.where

    def after(self, place: int, steps: int) -> int:
        """The place so many steps later, or earlier if negative."""
        if self.steps is None:
            return (place + steps) % self.places
        return min(max(place + steps, 0), self.places - 1)

    def endless(self, place: int) -> bool:
        """Whether the place stands for all later ones."""
        return self.steps is not None and self.steps.goes_on and place == self.places - 1

    def before(self, place: int) -> int | None:
        """How many records stand before one at a place; None: any number."""
        return None if self.steps is None or self.endless(place) else place

    def beyond(self, place: int) -> int | None:
        """How many records stand after one at a place; None: any number."""
        endless = self.steps is None or self.steps.goes_on
        return None if endless else self.places - 1 - place


@dataclass(frozen=True, eq=False)
class Drawn:
    """M chains."""

    kind: Kind
    rows: Floats  # (M, P, S, k); P is 1 if all steps have the same
    first: Floats | None = None  # (M, S) law of the first context

    def parts(self, size: int) -> Iterator[Drawn]:
        """The same chains, at most `size` at a time."""
        for at in range(0, len(self.rows), size):
            first = None if self.first is None else self.first[at : at + size]
            yield Drawn(self.kind, self.rows[at : at + size], first)

    @cached_property
    def kernels(self) -> Floats:
        """(M, P, S, S) from each context to the next one."""
        members, places, contexts, k = self.rows.shape
        found = np.zeros((members, places, contexts, contexts))
        context = np.arange(contexts)[:, np.newaxis]
        # the earliest digit goes, the next value comes last
        found[:, :, context, (context * k + np.arange(k)) % contexts] = self.rows
        return found

    def kernel(self, place: int) -> Floats:
        """(M, S, S) from a context at a place to the next one."""
        return self.kernels[:, min(place, self.kernels.shape[1] - 1)]

    @cached_property
    def laws(self) -> Floats:
        """(M, places, S) of the context at each place; of a place before the first context, 0."""
        kind = self.kind
        if kind.places == 1 and self.first is None:
            # chains without a beginning are stationary
            return _stationary(self.kernels[:, 0])[:, np.newaxis]
        laws = np.zeros((len(self.rows), kind.places, kind.contexts))
        begin = 0  # the first place at which a whole context ends
        if kind.steps is None:
            round_trip = self.kernel(0)
            for place in range(1, kind.places):
                round_trip = round_trip @ self.kernel(place)
            laws[:, 0] = _stationary(round_trip)
        else:
            assert self.first is not None
            begin = kind.order - 1
            laws[:, begin] = self.first
        for place in range(begin, kind.places - 1):
            laws[:, place + 1] = (laws[:, place, np.newaxis] @ self.kernel(place))[:, 0]
        return laws

    def law(self, place: int) -> Floats:
        """(M, S) of the context at a place."""
        return np.asarray(self.laws[:, min(place, self.laws.shape[1] - 1)])

    def ahead(self, place: int, steps: int) -> Floats:
        """(M, S, S) from the context at a place to that so many steps later."""
        if self.kernels.shape[1] == 1:
            return np.asarray(np.linalg.matrix_power(self.kernels[:, 0], steps))
        found = np.broadcast_to(np.eye(self.kind.contexts), self.kernels[:, 0].shape)
        for step in range(steps):
            found = found @ self.kernel(self.kind.after(place, step))
        return np.asarray(found)


class Promised:
    """The promise of a certificate: known chains, or counts with a rule to draw from them."""

    def __init__(self, form: PromiseForm) -> None:
        self.read = read = form.promise()
        self.labels, self.coverage = read.labels, read.coverage
        self.kind = Kind(read.k, read.order, read.places)
        self._name = form.kind

    @property
    def drawn(self) -> int:
        """How many chains are judged."""
        return self.read.members(0, 0).count if self.coverage is None else DRAWS[self.coverage][0]

    @property
    def allowed(self) -> int:
        """How many of them may exceed ε."""
        return 0 if self.coverage is None else DRAWS[self.coverage][1]

    def draw(self, count: int, random: np.random.Generator) -> Drawn:
        """Plausible chains; of a list all of them, whatever the count."""
        if self.coverage is None:
            listed = self.read.members(0, 0)  # a list draws nothing
            return Drawn(self.kind, listed.rows, listed.first)
        # others are drawn by nothing but what made the release; a subclass may draw by another
        # law, which this one would pass or refuse for no reason
        if type(self.read) is not Posterior:
            raise CannotJudgeError(f"models of the kind {self._name!r:.40}")
        return _sampled(self.read, self.kind, count, random)


# ---- draws


def _sampled(read: Posterior, kind: Kind, count: int, random: np.random.Generator) -> Drawn:
    lenders = _lenders(read.counts, kind.order)
    own = _concentrations(read, {*lenders})
    rows = np.empty((count, len(own), kind.contexts, kind.k))
    for place, parameters in enumerate(own):
        for one, alpha in parameters.items():
            # contexts that borrow from one suffix share one draw of its row
            here = [context for context, lender in enumerate(lenders) if lender == one]
            rows[:, place, here] = _rows(alpha, (count, kind.k), random)[:, np.newaxis]
    if read.kappa is not None:  # the promise is about one more chain, which varies around them
        rows = _rows(read.kappa * rows, rows.shape, random)
    if read.first_counts is None:
        return Drawn(kind, rows)
    first = _rows(read.first_counts + 1 / kind.contexts, (count, kind.contexts), random)
    return Drawn(kind, rows, first)


def _concentrations(read: Posterior, used: set[tuple[int, int]]) -> list[dict[Any, Any]]:
    """By place and suffix, the parameters of the Dirichlet law of its row."""
    k = read.k
    pooled = {one: _total(read.counts, one, k) + 1 / k for one in used}
    if read.place_counts is None or read.place_kappa is None:
        return [pooled]
    # each place's rows vary around those of all places together
    spread = {one: read.place_kappa * alpha / alpha.sum() for one, alpha in pooled.items()}
    return [
        {one: alpha + _total(at, one, k) for one, alpha in spread.items()}
        for at in read.place_counts
    ]


def mean_rows(read: Posterior) -> Floats:
    """(S, k) the posterior mean of each context's row, all places together."""
    seen = [_total(read.counts, one, read.k) for one in _lenders(read.counts, read.order)]
    return np.array([(one + 1 / read.k) / (one.sum() + 1) for one in seen])


def _lenders(counts: Integers, order: int) -> list[tuple[int, int]]:
    """Whose row each context takes: (length, number) of itself or of a suffix."""
    return [_lender(counts, order, context) for context in range(len(counts))]


def _lender(counts: Integers, order: int, context: int) -> tuple[int, int]:
    k = counts.shape[1]
    if counts[context].sum() < _SELDOM:
        for length in range(order - 1, 0, -1):
            suffix = length, context % k**length
            if _total(counts, suffix, k).sum() >= _OFTEN:
                return suffix
    return order, context


def _total(counts: Integers, suffix: tuple[int, int], k: int) -> Integers:
    """(k,) counts of all contexts that end in a suffix."""
    length, number = suffix
    return np.asarray(counts[number :: k**length].sum(axis=0))


def _rows(alpha: Any, shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    """Draws from Dirichlet laws, no entry below the floor."""
    # of Gamma(α) the logarithm: that of Gamma(α + 1) plus ln(U)/α, as small α underflow
    alpha = np.broadcast_to(np.asarray(alpha, dtype=np.float64), shape)
    logs = np.log(random.gamma(alpha + 1)) + np.log1p(-random.random(shape)) / alpha
    found: Any = np.exp(logs - logs.max(axis=-1, keepdims=True))
    found = np.maximum(found / found.sum(axis=-1, keepdims=True), _FLOOR)
    if not np.isfinite(found).all():
        raise InputError("chains of this model cannot be drawn: its counts or κ are out of range")
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def _stationary(kernels: Floats) -> Floats:
    """(M, S) stationary laws by elimination of states, without a subtraction."""
    with np.errstate(divide="ignore", invalid="ignore"):
        law = np.ones((len(kernels), 1))
        for share in reversed([*_eliminated(kernels)]):
            law = np.concatenate((law, np.sum(law * share, axis=1, keepdims=True)), axis=1)
        law /= law.sum(axis=1, keepdims=True)
    for member in np.flatnonzero(~np.isfinite(law).all(axis=1)):
        law[member] = _eigenvector(kernels[member])
    return law


def _eliminated(left: Floats) -> Iterator[Floats]:
    """(M, state) of each state, from the last: how often it is entered, by the state before."""
    # taking out the last state sends what enters it on to where it leaves to
    for state in range(left.shape[-1] - 1, 0, -1):
        leaves = left[:, state, :state].sum(axis=-1, keepdims=True)
        share = left[:, :state, state] / leaves
        yield share
        onward = share[:, :, np.newaxis] * left[:, state, np.newaxis, :state]
        left = left[:, :state, :state] + onward


def _eigenvector(kernel: Floats) -> Floats:
    # contexts that never occur have a 0 here, where elimination divides by it
    values, vectors = np.linalg.eig(kernel.T)
    one = np.abs(np.real(vectors[:, np.argmin(np.abs(values - 1))]))
    return np.asarray(np.where(one < 1e-12 * one.max(), 0.0, one) / one.sum())
