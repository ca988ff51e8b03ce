"""Bayes for all secrets of a table at once: walk from the nearest released stretch of records on
either side to the secret. Beyond it nothing matters: given as many records in a row as the chain
remembers, all others are independent of the secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from offrecord.attack.reading import Reading, Told
from offrecord.attack.shown import Shown
from offrecord.attack.steps import Steps
from offrecord.mechanisms.blocks import Mask, Secrets
from offrecord.models.base import Floats, Integers
from offrecord.models.lifted import coordinate

_CHUNK = 1 << 15  # secrets at a time


def told(steps: Steps, shown: Shown, secrets: Secrets) -> Told:
    """What is told of each secret."""
    k, parts = shown.k, []
    ends = np.empty(0, dtype=np.int64) if steps.hidden else shown.stretches(steps.order)
    by_length = np.argsort(secrets.last - secrets.first, kind="stable")
    for begin in range(0, secrets.count, _CHUNK):
        some = by_length[begin : begin + _CHUNK]
        part = Secrets(*(one[some] for one in vars(secrets).values()))
        parts.append(_Walks(steps, shown, part, ends).told())
    found = Told(np.empty(secrets.count), *(np.empty((secrets.count, k)) for _ in range(2)))
    for whole, pieces in zip(found, zip(*parts, strict=True), strict=False):
        whole[by_length] = np.concatenate(pieces)
    return found


@dataclass(frozen=True, eq=False)
class _Walks:
    """Some secrets. ends: the rows with which stretches end beyond which nothing matters."""

    steps: Steps
    shown: Shown
    secrets: Secrets
    ends: Integers

    @cached_property
    def length(self) -> Integers:
        """(s,) how many records a secret holds."""
        return self.secrets.last - self.secrets.first + 1

    @cached_property
    def is_long(self) -> Mask:
        """(s,) which hold as many as a state does."""
        return np.asarray(self.length >= self.steps.order)

    @cached_property
    def near(self) -> Integers:
        """(s,) where the state ends that the walk from the left arrives at: it holds as much of the
        secret's first records as it can.
        """
        order, secrets = self.steps.order, self.secrets
        short = np.maximum(secrets.last, order - 1)
        return np.where(self.is_long, secrets.first + order - 1, short)

    @cached_property
    def far(self) -> Integers:
        """(s,) the same of the walk from the right, and the last records."""
        return np.where(self.is_long, self.secrets.last, self.near)

    def told(self) -> Told:
        """What is told of each."""
        far, beyond = self._from_right()
        prior = np.asarray(self.steps.priors(self.secrets.chain, self.near))
        ends = self.near, self.far
        return Reading(
            self.steps, self.secrets, *ends, self._from_left(), far, beyond, prior
        ).told()

    # ---- walks

    def _from_left(self) -> Floats:
        """(s, S) how likely all that lies to the left is together with each state."""
        steps, shown, secrets = self.steps, self.shown, self.secrets
        at = np.searchsorted(self.ends, secrets.low) - 1
        row = self.ends[at] if len(self.ends) else np.full(secrets.count, -1)
        known = (at >= 0) & (row >= shown.chains.starts[secrets.chain])
        since = np.where(known, shown.chains.places[row], steps.order - 1)
        weights = np.zeros((secrets.count, steps.states))
        weights[known, self._state_at(row[known])] = 1.0
        unknown = np.flatnonzero(~known)
        if len(unknown):
            weights[unknown] = self._begun(secrets.chain[unknown])
        counts = self.near - since
        order = np.argsort(-counts, kind="stable")
        weights, counts = weights[order], counts[order]
        chain, near = secrets.chain[order], self.near[order]
        for left in range(int(counts.max(initial=0)), 0, -1):
            active = int(np.searchsorted(-counts, -left, side="right"))
            here, place = chain[:active], near[:active] - left + 1
            on = steps.onward(weights[:active], here, place) * shown.at(here, place)[:, steps.value]
            weights[:active] = _scaled(on)
        found = np.empty_like(weights)
        found[order] = weights
        return found

    def _from_right(self) -> tuple[Floats, Floats]:
        """(s, S) how likely all that lies to the right is by the state that ends at `far`, and by
        the one that ends at `near`.
        """
        steps, shown, secrets = self.steps, self.shown, self.secrets
        begins = self.ends - (steps.order - 1)
        at = np.searchsorted(begins, secrets.high)
        row = self.ends[np.minimum(at, len(begins) - 1)] if len(begins) else at
        known = (at < len(begins)) & (row < shown.chains.starts[secrets.chain + 1])
        places = shown.chains.places[np.where(known, row, 0)]
        until = np.where(known, places, np.maximum(shown.sizes[secrets.chain] - 1, self.far))
        counts = until - self.near
        order = np.argsort(-counts, kind="stable")
        weights = np.ones((secrets.count, steps.states))
        counts, chain, near = counts[order], secrets.chain[order], self.near[order]
        inside = (self.far - self.near)[order]
        far = weights.copy()
        for left in range(int(counts.max(initial=0)), 0, -1):
            active = int(np.searchsorted(-counts, -left, side="right"))
            here, place = chain[:active], near[:active] + left
            seen = weights[:active] * shown.at(here, place)[:, steps.value]
            weights[:active] = _scaled(steps.back(seen, here, place))
            arrived = np.flatnonzero(inside[:active] == left - 1)
            far[arrived] = weights[arrived]
        both = np.empty((2, *weights.shape))
        both[:, order] = far, weights
        return both[0], both[1]

    def _state_at(self, row: Integers) -> Integers:
        """(r,) the states that end with some rows, all released."""
        state = np.zeros(len(row), dtype=np.int64)
        for back in range(self.steps.order - 1, -1, -1):
            state = state * self.steps.k + self.shown.symbols[row - back] - 1
        return state

    def _begun(self, chain: Integers) -> Floats:
        """(r, S) the first state of chains, with all that its records show."""
        steps, shown = self.steps, self.shown
        weights = steps.begun(chain)
        for at in range(steps.order):
            value = steps.value if steps.hidden else coordinate(steps.k, steps.order, at)
            weights *= shown.at(chain, np.full(len(chain), at))[:, value]
        return weights


def _scaled(weights: Floats) -> Floats:
    """Rows with a largest entry of 1, so that nothing underflows."""
    most = weights.max(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, most, out=weights, where=most > 0))
