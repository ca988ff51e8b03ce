"""Bayes for all secrets of a table at once: walk from the nearest released stretch of records on
either side to the secret. Beyond it nothing matters: given as many records in a row as the chain
remembers, all others are independent of the secret.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from offrecord.attack.shown import Shown
from offrecord.mechanisms.blocks import Mask, Secrets
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain
from offrecord.models.lifted import coordinate
from offrecord.models.walks import pattern_power

_CHUNK = 1 << 15  # secrets at a time
_MOST_RUNS = 4096  # values of a run over hidden states that are told apart

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


class Told(NamedTuple):
    """What is told of secrets. ratio: (s,) the largest log-ratio of the likelihoods of what is
    shown under two values; above 0 where the value of higher number is the likelier one, else
    below; NaN where what is shown cannot be, or was not attacked. prior, posterior: (s, k) of the
    value of a secret's first record.
    """

    ratio: Floats
    prior: Floats
    posterior: Floats


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
        near = self._from_left()
        far, beyond = self._from_right()
        prior = np.asarray(self.steps.priors(self.secrets.chain, self.near))
        first = self._first_values()
        joint = near * beyond
        total = joint.sum(axis=1, keepdims=True)
        posterior = np.divide(joint, total, out=np.full_like(joint, np.nan), where=total > 0)
        ratio = np.where(total[:, 0] > 0, self._ratios(near, far, joint, prior), np.nan)
        return Told(
            ratio, _by_value(prior, first, self.shown.k), _by_value(posterior, first, self.shown.k)
        )

    def _first_values(self) -> Integers:
        """(s, S) the value of the secret's first record in each state."""
        steps = self.steps
        if steps.hidden:
            return np.broadcast_to(steps.value, (self.secrets.count, steps.states))
        digits = np.stack([coordinate(steps.k, steps.order, at) for at in range(steps.order)])
        return np.asarray(digits[self.secrets.first - (self.near - steps.order + 1)])

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

    # ---- ratios

    def _ratios(self, near: Floats, far: Floats, joint: Floats, prior: Floats) -> Floats:
        """(s,) the largest log-ratios, with their sign."""
        ratio = np.empty(self.secrets.count)
        whole = self.length == self.steps.order
        single = np.flatnonzero((whole & ~np.bool_(self.steps.hidden)) | ~self.is_long)
        if self.steps.hidden:
            single = np.flatnonzero(self.length == 1)
        if len(single):
            ratio[single] = self._of_records(single, joint[single], prior[single])
        runs = np.setdiff1d(np.arange(self.secrets.count), single)
        if len(runs):
            several = self._of_states if self.steps.hidden else self._of_runs
            ratio[runs] = several(runs, near[runs], far[runs], prior[runs])
        return ratio

    def _of_records(self, some: Integers, joint: Floats, prior: Floats) -> Floats:
        """Of secrets that one state holds: by all that it says of them."""
        steps = self.steps
        if steps.hidden:
            return _spread(*_likelihoods(joint, prior, steps.value, steps.k))
        begin = self.secrets.first[some] - (self.near[some] - steps.order + 1)
        size, ratio = self.length[some], np.empty(len(some))
        for key in np.unique(begin * (steps.order + 1) + size).tolist():
            at, count = divmod(key, steps.order + 1)
            here = np.flatnonzero((begin == at) & (size == count))
            held = np.arange(steps.states) // steps.k ** (steps.order - at - count)
            held %= steps.k**count
            found = _likelihoods(joint[here], prior[here], held, steps.k**count)
            ratio[here] = _spread(*found)
        return ratio

    def _of_runs(self, some: Integers, near: Floats, far: Floats, prior: Floats) -> Floats:
        """Of longer ones: by the states at both ends, as far as they occur together."""
        with np.errstate(divide="ignore", invalid="ignore"):
            left, right = np.log(near) - np.log(prior), np.log(far)
        between = self.length[some] - self.steps.order
        ratio = np.empty(len(some))
        for at in range(len(some)) if self.steps.into is not None else ():
            ends = self._ends(int(some[at])) & (prior[at] > 0)[:, np.newaxis]
            ratio[at] = of_ends(left[at : at + 1], right[at : at + 1], ends[np.newaxis])[0]
        if self.steps.into is None:
            pattern = self.steps.kernels[0] > 0
            for count in np.unique(between).tolist():
                here = np.flatnonzero(between == count)
                reached = pattern_power(pattern, count)
                if reached.all() and np.all(prior[here] > 0):
                    ratio[here] = _of_all_ends(left[here], right[here])
                    continue
                for one in np.array_split(here, -(-len(here) * reached.size // (1 << 22))):
                    ends = reached & (prior[one] > 0)[:, :, np.newaxis]
                    ratio[one] = of_ends(left[one], right[one], ends)
        return ratio

    def _ends(self, secret: int) -> Mask:
        """(S, S) which states may end a run that begins with another, where steps differ."""
        steps, reached = self.steps, np.eye(self.steps.states, dtype=bool)
        assert steps.into is not None
        places = np.arange(self.near[secret] + 1, self.far[secret] + 1)
        chain = np.full(len(places), self.secrets.chain[secret])
        for kernel in steps.kernels[steps.into(chain, places)]:
            reached = reached @ (kernel > 0)
        return reached

    def _of_states(self, some: Integers, near: Floats, far: Floats, prior: Floats) -> Floats:
        """Of runs whose states are hidden: every value of the run by itself, if they are few."""
        steps, ratio = self.steps, np.full(len(some), np.nan)
        shows = steps.value == np.arange(steps.k)[:, np.newaxis]
        for at, length in enumerate(self.length[some].tolist()):
            if steps.k**length > _MOST_RUNS:
                continue
            seen, alone = near[at] * shows, prior[at] * shows
            for _ in range(length - 1):
                seen, alone = (
                    ((one @ steps.kernels[0])[:, np.newaxis] * shows).reshape(-1, steps.states)
                    for one in (seen, alone)
                )
            mass = alone.sum(axis=1)
            likely = np.divide(seen @ far[at], mass, out=np.zeros(len(mass)), where=mass > 0)
            ratio[at] = _spread(likely[np.newaxis], (mass > 0)[np.newaxis])[0]
        return ratio


def _scaled(weights: Floats) -> Floats:
    """Rows with a largest entry of 1, so that nothing underflows."""
    most = weights.max(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, most, out=weights, where=most > 0))


def _by_value(weights: Floats, value: Integers, k: int) -> Floats:
    """(n, k) sums of weights over the states with each value."""
    return np.stack([np.where(value == one, weights, 0.0).sum(axis=1) for one in range(k)], axis=1)


def _likelihoods(joint: Floats, prior: Floats, held: Integers, count: int) -> tuple[Floats, Mask]:
    """(n, count) how likely what is shown is by what a state holds, and what may be held."""
    of = held == np.arange(count)[:, np.newaxis]
    seen, mass = joint @ of.T, prior @ of.T
    return np.divide(seen, mass, out=np.zeros_like(seen), where=mass > 0), mass > 0


def _spread(likely: Floats, can_be: Mask) -> Floats:
    """(n,) the largest log-ratio in each row, below 0 where the likeliest comes first."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(likely)
        high, low = np.where(can_be, logs, -np.inf), np.where(can_be, logs, np.inf)
        gap = high.max(axis=1) - low.min(axis=1)
    return np.asarray(np.where(high.argmax(axis=1) < low.argmin(axis=1), -gap, gap))


def _of_all_ends(left: Floats, right: Floats) -> Floats:
    """(n,) the same over sums of an entry of either, whatever they are."""
    with np.errstate(invalid="ignore"):
        gap = np.ptp(left, axis=1) + np.ptp(right, axis=1)
    ends = [(one.argmax(axis=1), one.argmin(axis=1)) for one in (left, right)]
    states = left.shape[1]
    high, low = (ends[0][one] * states + ends[1][one] for one in range(2))
    return np.asarray(np.where(high < low, -gap, gap))


def of_ends(left: Floats, right: Floats, ends: Mask) -> Floats:
    """(n,) the largest log-ratio over sums of an entry of either that occur together, with its
    sign.
    """
    with np.errstate(invalid="ignore"):
        sums = left[:, :, np.newaxis] + right[:, np.newaxis, :]
    likely = np.where(ends, sums, 0.0).reshape(len(left), -1)
    can_be = np.broadcast_to(ends, sums.shape).reshape(len(left), -1)
    with np.errstate(invalid="ignore"):
        high = np.where(can_be, likely, -np.inf)
        low = np.where(can_be, likely, np.inf)
        gap = high.max(axis=1) - low.min(axis=1)
    return np.asarray(np.where(high.argmax(axis=1) < low.argmin(axis=1), -gap, gap))
