"""Posterior: the chains that transition counts leave plausible (plausible chains, section 1).

Each row of a member is a draw from Dirichlet(1/k + counts). Contexts that were hardly seen borrow
the row of a shorter context: otherwise they might stay for ever, and windows would explode.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers, Label, Section
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import MAX_VALUES, array_of, checked_labels, checked_order
from offrecord.models.members import PLACE_COUNTS, Members, PlaceKind, Places
from offrecord.models.promise import ACCEPTANCE, Promise

#: A context seen less often borrows from its longest suffix seen at least LENDER times. Borrowing
#: from suffixes seen less often loses coverage; without it windows of rain grow from 27 to 1,447.
BORROWER = 5
LENDER = 50
MOST_CONTEXTS = 128  #: of a posterior; exact leakage over 8,000 members stays within seconds
#: Least probability of a draw: small gamma shapes would otherwise leave exact zeros.
LEAST = 1e-13
MOST_COUNT = 10**12  #: of one cell; sums stay exact in floats


class Posterior(Promise):
    """Plausible chains, by how often each value followed each context.

    counts: (S, k) whole numbers, S = k**order; contexts are numbered with the latest value as the
    last digit in base k. kappa: concentration of single units (chains) around the common rows, if
    the promise is about one more unit. places: what kernels depend on besides the context;
    place_counts: (P, S, k) the same counts by the place of the context; place_kappa: concentration
    of a place's rows around the pooled ones. first_counts: (S,) how often each context was the
    first of a chain, for places that are steps. coverage: share of the plausible chains that a
    promise holds in, 0.99 or 0.95.

    Raises InputError for anything that cannot be counts of such chains.
    """

    def __init__(  # noqa: PLR0913 - an argument for each part of the model file
        self,
        counts: ArrayLike,
        order: int,
        labels: Sequence[Label] | None = None,
        coverage: float = 0.99,
        *,
        kappa: float | None = None,
        places: Places | None = None,
        place_counts: ArrayLike | None = None,
        place_kappa: float | None = None,
        first_counts: ArrayLike | None = None,
    ) -> None:
        self.order = checked_order(order)
        self.counts = _checked_counts("counts", counts, self.order)
        self.labels = checked_labels(labels, self.counts.shape[1])
        if coverage not in ACCEPTANCE:
            raise InputError(f"--coverage must be 0.99 or 0.95, got {coverage!r:.40}")
        self.coverage: float = coverage
        self.kappa = _checked_kappa("kappa", kappa)
        self._places = places
        self.place_kappa = _checked_kappa("place_kappa", place_kappa)
        self.place_counts: Integers | None = None
        self.first_counts: Integers | None = None
        self._set_places(place_counts, first_counts)

    def _set_places(self, place_counts: ArrayLike | None, first_counts: ArrayLike | None) -> None:
        """Check what belongs to places, which must all be given or none."""
        places = self.places
        if places is None:
            if not (place_counts is None and first_counts is None and self.place_kappa is None):
                raise InputError("place_counts, place_kappa and first_counts need places")
            return
        if place_counts is None or self.place_kappa is None:
            raise InputError("places need place_counts and place_kappa")
        self.place_counts = _whole("place_counts", place_counts)
        if self.place_counts.shape != (places.count, *self.counts.shape):
            raise InputError(f"place_counts must hold counts for each of {places.count} places")
        if not np.array_equal(self.place_counts.sum(axis=0), self.counts):
            raise InputError("place_counts must sum to counts")
        if places.cyclic != (first_counts is None):
            raise InputError("first_counts belong to places that are steps, and only to these")
        if first_counts is not None:
            self.first_counts = _whole("first_counts", first_counts)
            if self.first_counts.shape != self.counts.shape[:1] or not self.first_counts.any():
                raise InputError(f"first_counts must hold {len(self.counts)} counts, not all 0")

    # ---- what it is

    @property
    def places(self) -> Places | None:
        """Which places make a difference."""
        return self._places

    @cached_property
    def lenders(self) -> Integers:
        """(S,) number of the suffix whose row each context takes, often the context itself."""
        k, contexts = self.k, np.arange(len(self.counts))
        visits, own = self._suffix_counts.sum(axis=1), self._own_suffixes
        found, rare = own, visits[own] < BORROWER
        # From length 1 on: the row of all records knows no memory, and of rain with 150 records 4
        # of 12 tables were then covered, with windows of 3. The longest suffix seen often lends.
        for length in range(1, self.order):
            suffix = _begin(k, length) + contexts % k**length
            found = np.where(rare & (visits[suffix] >= LENDER), suffix, found)
        return found

    @cached_property
    def borrowed(self) -> Integers:
        """The contexts that take the row of a suffix."""
        return np.flatnonzero(self.lenders != self._own_suffixes)

    @property
    def _own_suffixes(self) -> Integers:
        return _begin(self.k, self.order) + np.arange(len(self.counts))

    @cached_property
    def _suffix_counts(self) -> Integers:
        return _counts_of_suffixes(self.counts, self.order)

    # ---- the mean chain and draws

    @cached_property
    def mean(self) -> Members:
        """The posterior mean of every row."""
        rows = self._concentrations / self._concentrations.sum(axis=-1, keepdims=True)
        first = None
        if self._first is not None:
            first = (self._first / self._first.sum())[np.newaxis]
        return Members(rows[np.newaxis, :, self.lenders], self.order, self.places, first)

    @cached_property
    def chain(self) -> MarkovChain:
        """The mean chain of all places together, as one known chain."""
        rows = self._pooled[self.lenders]
        return MarkovChain(
            rows.reshape((self.k,) * (self.order + 1)), None, self.labels, self.order
        )

    def members(self, count: int, seed: bytes | int) -> Members:
        """`count` chains drawn from the posterior.

        Args:
            count: how many.
            seed: the same seed gives the same chains, on the same version of numpy.

        Returns:
            Members of this order, with the same places.
        """
        entropy = int.from_bytes(seed, "big") if isinstance(seed, bytes) else seed
        random = np.random.default_rng(entropy)
        used, place_of = np.unique(self.lenders, return_inverse=True)
        shapes = self._concentrations[:, used]
        shapes = np.broadcast_to(shapes, (count, *shapes.shape))
        # contexts that borrow from one suffix share one draw of its row
        rows = _dirichlet(shapes, random)[:, :, place_of]
        if self.kappa is not None:  # one more unit: its rows lie around those that units share
            rows = _dirichlet(self.kappa * rows, random)
        first = None
        if self._first is not None:
            first = _dirichlet(np.broadcast_to(self._first, (count, len(self._first))), random)
        return Members(rows, self.order, self.places, first)

    def draw(self, count: int, seed: bytes | int) -> list[MarkovChain]:
        """The same chains one by one; InputError where kernels depend on the place."""
        if self.places is not None:
            raise InputError("chains whose kernels depend on the place have no single kernel")
        shape = (self.k,) * (self.order + 1)
        rows = self.members(count, seed).rows[:, 0]
        return [MarkovChain(one.reshape(shape), None, self.labels, self.order) for one in rows]

    @cached_property
    def _pooled(self) -> Floats:
        """(rows, k) posterior mean of each suffix's row, all places together."""
        counts = self._suffix_counts
        # the prior adds 1/k to each of k values, so 1 to a row
        totals: Floats = counts.sum(axis=1, keepdims=True) + 1.0
        return np.asarray((counts + 1 / self.k) / totals)

    @cached_property
    def _concentrations(self) -> Floats:
        """(P, rows, k) parameters of the Dirichlet law of each place's and suffix's row."""
        if self.place_counts is None:
            return np.asarray((self._suffix_counts + 1 / self.k)[np.newaxis])
        assert self.place_kappa is not None
        counts = [_counts_of_suffixes(one, self.order) for one in self.place_counts]
        return np.asarray(self.place_kappa * self._pooled + np.array(counts))

    @property
    def _first(self) -> Floats | None:
        """(S,) parameters of the Dirichlet law of a chain's first context."""
        if self.first_counts is None:
            return None
        return np.asarray(self.first_counts + 1 / len(self.first_counts))

    # ---- files

    def form(self) -> PosteriorForm:
        """What files hold of it: all that draws depend on."""
        places = self.places
        return PosteriorForm(
            kind="posterior",
            labels=list(self.labels),
            order=self.order,
            coverage=self.coverage,
            prior="1/k",
            kappa=self.kappa,
            counts=self.counts.tolist(),
            places=None if places is None else PlacesForm.holding(places),
            place_kappa=self.place_kappa,
            place_counts=_listed(self.place_counts),
            first_counts=_listed(self.first_counts),
        )

    def with_coverage(self, coverage: float) -> Posterior:
        """The same counts under a promise of another coverage."""
        return self.form().model_copy(update={"coverage": coverage}).promise()

    def __repr__(self) -> str:
        seen = int(self.counts.sum())
        return f"<Posterior k={self.k} order={self.order} of {seen:,} transitions>"


class PlacesForm(Section):
    """Places in a file."""

    kind: PlaceKind
    count: int = Field(ge=2, le=10**6)
    zone: str | None = None

    @classmethod
    def holding(cls, places: Places) -> PlacesForm:
        """What files hold of places."""
        return cls(kind=places.kind, count=places.count, zone=places.zone)

    def places(self) -> Places:
        """The places; InputError if their number does not fit their kind."""
        if PLACE_COUNTS.get(self.kind, self.count) != self.count:
            raise InputError(f"places of kind {self.kind} are {PLACE_COUNTS[self.kind]}")
        return Places(self.kind, self.count, self.zone)


class PosteriorForm(Section):
    """A posterior in a file; see `Posterior`."""

    kind: Literal["posterior"]
    labels: list[str | bool | int | float] = Field(max_length=MAX_VALUES)
    order: int
    coverage: float
    prior: Literal["1/k"]
    kappa: float | None
    counts: list[list[int]]
    places: PlacesForm | None
    place_kappa: float | None
    place_counts: list[list[list[int]]] | None
    first_counts: list[int] | None

    def promise(self) -> Posterior:
        """The posterior; InputError if the counts cannot be some."""
        given = dict(self)
        del given["kind"], given["prior"]
        given["places"] = None if self.places is None else self.places.places()
        return Posterior(**given)


def _listed(counts: Integers | None) -> list[Any] | None:
    return None if counts is None else counts.tolist()


def never_followed(posterior: Posterior) -> list[str]:
    """The warning that nothing is known of what follows some values, if that is so."""
    k, after = posterior.k, posterior.counts.sum(axis=0)
    followed = posterior.counts.reshape(-1, k, k).sum(axis=(0, 2))
    # as after a value that ends every chain; what follows is left to the prior
    ends = [posterior.labels[value] for value in np.flatnonzero((after > 0) & (followed == 0))]
    if not ends:
        return []
    listed = ", ".join(f"{label!r:.40}" for label in ends[:5])
    return [
        f"nothing was counted after {listed}, so any record may follow there, and windows may be"
        " endless: leave out the records that only end chains, or add --merge rare"
    ]


def _counts_of_suffixes(counts: Integers, order: int) -> Integers:
    """(rows, k) counts of all contexts up to the order: shorter ones first, then by number."""
    k = counts.shape[1]
    by_length = [counts.reshape(-1, k**length, k).sum(axis=0) for length in range(order + 1)]
    return np.concatenate(by_length)


def _begin(k: int, length: int) -> int:
    """The number of the first context of a length among all contexts."""
    return sum(k**shorter for shorter in range(length))


def _dirichlet(parameters: Floats, random: np.random.Generator) -> Floats:
    """A draw for each row of parameters (last axis), none of its entries below LEAST."""
    # a gamma variable of shape a is one of shape a + 1 times U^(1/a); logs do not underflow
    logs = np.log(random.standard_gamma(parameters + 1))
    logs -= random.standard_exponential(parameters.shape) / parameters
    logs -= logs.max(axis=-1, keepdims=True)
    weights = np.exp(logs)
    weights /= weights.sum(axis=-1, keepdims=True)
    np.maximum(weights, LEAST, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


# ---- whether given numbers can be counts


def _checked_counts(name: str, counts: ArrayLike, order: int) -> Integers:
    known = _whole(name, counts)
    if known.ndim != 2 or known.shape[1] < 2 or known.shape[0] != known.shape[1] ** order:
        raise InputError(
            f"{name} of order {order} must be k**{order} rows of k ≥ 2 counts, got shape"
            f" {' × '.join(map(str, known.shape))}"
        )
    if len(known) > MOST_CONTEXTS:
        raise InputError(f"{name} must have at most {MOST_CONTEXTS} contexts, got {len(known)}")
    if not known.any():
        raise InputError(f"{name} must not all be 0")
    return known


def _whole(name: str, counts: ArrayLike) -> Integers:
    # sums of counts above MOST_COUNT would round in floats
    known = array_of(name, counts, "iu", "whole numbers")
    if known.size and not (known.min() >= 0 and known.max() <= MOST_COUNT):
        raise InputError(f"{name} must be from 0 to {MOST_COUNT:,}")
    return known.astype(np.int64)


def _checked_kappa(name: str, kappa: float | None) -> float | None:
    if kappa is None:
        return None
    if isinstance(kappa, bool) or not isinstance(kappa, (int, float)) or not 0.01 <= kappa < 1e9:
        raise InputError(f"{name} must be a number from 0.01 to 1e9, got {kappa!r:.40}")
    return float(kappa)
