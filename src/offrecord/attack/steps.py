"""How an attacker takes records to follow each other: a chain on states, in arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain

#: (chain, place) of some records: the number of the kernel of the step into each.
Into = Callable[[Integers, Integers], Integers]


@dataclass(frozen=True, eq=False)
class Steps:
    """How an attacker takes records to follow each other, as a chain on states.

    kernels: (c, S, S). starts: (p, S) of the first state. value: (S,) what the newest record of a
    state shows. order: a state is so many records, or hidden. settled: every record has the first
    start's distribution. into, first: which kernel and which start, where there are several.
    """

    k: int
    kernels: Floats
    starts: Floats
    value: Integers
    order: int = 1
    hidden: bool = False
    settled: bool = False
    into: Into | None = None
    first: Callable[[Integers], Integers] | None = None

    @classmethod
    def of_chain(cls, chain: MarkovChain) -> Steps:
        """Those of a chain of records that all stand in the same phase."""
        lifted, hidden = chain.lifted, chain.shows is not None
        value = chain.coordinate(0 if hidden else chain.order - 1)
        kernels = lifted.transition
        several = kernels.ndim == 3
        return cls(
            chain.k,
            kernels if several else kernels[np.newaxis],
            lifted.start[np.newaxis],
            np.asarray(value),
            chain.order,
            hidden,
            chain.is_stationary,
            (lambda chain, place: np.clip(place - 1, 0, len(kernels) - 1)) if several else None,
        )

    @property
    def states(self) -> int:
        """How many states there are."""
        return int(self.kernels.shape[-1])

    def onward(self, weights: Floats, chain: Integers, place: Integers) -> Floats:
        """(n, S) one step on, into the places."""
        if self.into is None:
            return np.asarray(weights @ self.kernels[0])
        kernels = self.kernels[self.into(chain, place)]
        return np.asarray(np.einsum("ns,nst->nt", weights, kernels))

    def back(self, weights: Floats, chain: Integers, place: Integers) -> Floats:
        """(n, S) what is seen from the places on, as told by the state before them."""
        if self.into is None:
            return np.asarray(weights @ self.kernels[0].T)
        kernels = self.kernels[self.into(chain, place)]
        return np.asarray(np.einsum("nt,nst->ns", weights, kernels))

    def begun(self, chain: Integers) -> Floats:
        """(n, S) how likely the first state of some chains is."""
        which = np.zeros(len(chain), dtype=np.int64) if self.first is None else self.first(chain)
        return np.array(self.starts[which])

    def priors(self, chain: Integers, place: Integers) -> Floats:
        """(n, S) how likely the states are that end at some places, before anything is seen."""
        if self.settled:
            return np.broadcast_to(self.starts[0], (len(chain), self.states))
        if self.into is None and self.first is None:
            different, which = np.unique(place, return_inverse=True)
            return self._walked(np.zeros_like(different), different)[which]
        return self._walked(chain, place)

    def _walked(self, chain: Integers, place: Integers) -> Floats:
        """The same, step by step from the beginning."""
        found = np.empty((len(chain), self.states))
        by_place = np.argsort(place, kind="stable")
        chain, place = chain[by_place], place[by_place]
        weights, at = self.begun(chain), self.order - 1
        done = int(np.searchsorted(place, at, side="right"))
        found[:done] = weights[:done]
        while done < len(place):
            at += 1
            here = np.full(len(place) - done, at)
            weights = self.onward(weights[-len(here) :], chain[done:], here)
            more = int(np.searchsorted(place, at, side="right"))
            found[done:more] = weights[: more - done]
            done = more
        out = np.empty_like(found)
        out[by_place] = found
        return out


@dataclass(frozen=True, eq=False)
class Opened:
    """The same from before a chain's first record on: a state is `order` records, and as long as
    there are fewer, those before the first one count as 0.

    kernels: (c, S, S) those of the steps, then one for each start and each of the first records.
    body: how many are of steps. opening: how many of a chain's first records have their own.
    """

    steps: Steps
    order: int
    kernels: Floats
    body: int
    opening: int

    @classmethod
    def of(cls, steps: Steps, order: int) -> Opened:
        """With states of so many records, no fewer than the steps' own have."""
        k, own, size = steps.k, steps.order, steps.k**order
        state = np.arange(size)
        kernels = np.zeros((len(steps.kernels) + len(steps.starts) * own, size, size))
        held = state % k**own
        for value in range(k):
            after = (state * k + value) % size
            kernels[: len(steps.kernels), state, after] = steps.kernels[
                :, held, (held * k + value) % k**own
            ]
        for number, start in enumerate(steps.starts):
            for place in range(own):
                kernel = kernels[len(steps.kernels) + number * own + place]
                before = start.reshape(k**place, -1).sum(axis=1)
                here = start.reshape(k**place, k, -1).sum(axis=2)
                some = np.flatnonzero(before > 0)
                for value in range(k):
                    kernel[some, some * k + value] = here[some, value] / before[some]
        lifted = replace(steps, kernels=kernels, value=state % k, order=order)
        return cls(lifted, order, kernels, len(steps.kernels), own)

    @property
    def states(self) -> int:
        """How many states there are."""
        return self.steps.states

    @property
    def is_even(self) -> bool:
        """All steps but the first ones are alike."""
        return self.steps.into is None

    def numbers(self, chain: Integers, place: Integers) -> Integers:
        """(n,) the kernels of the steps into some places."""
        first = self.steps.first
        start = np.zeros_like(chain) if first is None else first(chain)
        begun = self.body + start * self.opening + place
        if self.steps.into is None:
            return np.where(place < self.opening, begun, 0)
        later = np.maximum(place, self.opening)
        return np.where(place < self.opening, begun, self.steps.into(chain, later))

    def carried(self, weights: Floats, chain: Integers, place: Integers, count: Integers) -> Floats:
        """(n, S) states that end at some places, so many steps on."""
        return self._moved(weights, chain, place, count, back=False)

    def carried_back(
        self, weights: Floats, chain: Integers, place: Integers, count: Integers
    ) -> Floats:
        """(n, S) what is seen beyond some places, as told by the states so many steps before."""
        return self._moved(weights, chain, place, count, back=True)

    def _moved(
        self, weights: Floats, chain: Integers, place: Integers, count: Integers, back: bool
    ) -> Floats:
        """Along steps, or against them."""
        least = place - count if back else place
        if self.is_even and np.all((least >= self.opening - 1) | (count == 0)):
            return self._leapt(weights, count, back)
        found, by_count = weights.copy(), np.argsort(-count, kind="stable")
        chain, place, left = chain[by_count], place[by_count], count[by_count]
        moved = weights[by_count]
        for step in range(int(count.max(initial=0))):
            active = int(np.searchsorted(-left, -step, side="left"))
            here = place[:active] - step if back else place[:active] + step + 1
            kernels = self.kernels[self.numbers(chain[:active], here)]
            form = "nt,nst->ns" if back else "ns,nst->nt"
            moved[:active] = np.einsum(form, moved[:active], kernels)
        found[by_count] = moved
        return found

    def _leapt(self, weights: Floats, count: Integers, back: bool) -> Floats:
        """Where all steps are alike: by powers of two of them."""
        found, kernel = weights.copy(), self.kernels[0].T if back else self.kernels[0]
        for bit in range(int(count.max(initial=0)).bit_length()):
            some = np.flatnonzero(count >> bit & 1)
            found[some] = found[some] @ kernel
            kernel = kernel @ kernel
        return found

    def priors(self, chain: Integers, place: Integers) -> Floats:
        """(n, S) how likely the states are that end at some places, before anything is seen."""
        if self.steps.settled:
            place = np.minimum(place, self.order - 1)
        if self.is_even and self.steps.first is None:  # all chains are alike
            different, which = np.unique(place, return_inverse=True)
            return self._laws(np.zeros_like(different), different)[which]
        return self._laws(chain, place)

    def _laws(self, chain: Integers, place: Integers) -> Floats:
        """The same, step by step from before the first record."""
        start = np.zeros((len(place), self.states))
        start[:, 0] = 1.0
        return self._moved(start, chain, np.full(len(place), -1), place + 1, back=False)
