"""Reading: from all that is seen on either side of secrets to what that tells of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from offrecord.attack.steps import Steps
from offrecord.mechanisms.blocks import Mask, Secrets
from offrecord.models.base import Floats, Integers
from offrecord.models.lifted import coordinate
from offrecord.models.walks import pattern_power

_MOST_RUNS = 4096  # values of a run over hidden states that are told apart


class Told(NamedTuple):
    """What is told of secrets. ratio: (s,) the largest log-ratio of the likelihoods of what is
    shown under two values; above 0 where the value of higher number is the likelier one, else
    below; NaN where what is shown cannot be, or was not attacked. prior, posterior: (s, k) of the
    value of a secret's first record.
    """

    ratio: Floats
    prior: Floats
    posterior: Floats


@dataclass(frozen=True, eq=False)
class Reading:
    """Some secrets. near: (s,) where a state ends that holds as much of a secret's first records as
    it can, far: the same of the last records. left: (s, S) how likely all that lies to the left is
    together with each state at `near`, and prior: each state alone. right, beyond: how likely all
    that lies to the right is by the state at `far`, and by the one at `near`.
    """

    steps: Steps
    secrets: Secrets
    near: Integers
    far: Integers
    left: Floats
    right: Floats
    beyond: Floats
    prior: Floats

    @cached_property
    def length(self) -> Integers:
        """(s,) how many records a secret holds."""
        return self.secrets.last - self.secrets.first + 1

    @cached_property
    def is_long(self) -> Mask:
        """(s,) which hold as many as a state does."""
        return np.asarray(self.length >= self.steps.order)

    def told(self) -> Told:
        """What is told of each."""
        first, k = self._first_values(), self.steps.k
        joint = self.left * self.beyond
        total = joint.sum(axis=1, keepdims=True)
        posterior = np.divide(joint, total, out=np.full_like(joint, np.nan), where=total > 0)
        ratio = np.where(total[:, 0] > 0, self._ratios(joint), np.nan)
        return Told(ratio, _by_value(self.prior, first, k), _by_value(posterior, first, k))

    def _first_values(self) -> Integers:
        """(s, S) the value of the secret's first record in each state."""
        steps = self.steps
        if steps.hidden:
            return np.broadcast_to(steps.value, (self.secrets.count, steps.states))
        digits = np.stack([coordinate(steps.k, steps.order, at) for at in range(steps.order)])
        return np.asarray(digits[self.secrets.first - (self.near - steps.order + 1)])

    def _ratios(self, joint: Floats) -> Floats:
        """(s,) the largest log-ratios, with their sign."""
        ratio = np.empty(self.secrets.count)
        whole = self.length == self.steps.order
        single = np.flatnonzero((whole & ~np.bool_(self.steps.hidden)) | ~self.is_long)
        if self.steps.hidden:
            single = np.flatnonzero(self.length == 1)
        if len(single):
            ratio[single] = self._of_records(single, joint[single])
        runs = np.setdiff1d(np.arange(self.secrets.count), single)
        if len(runs):
            several = self._of_states if self.steps.hidden else self._of_runs
            ratio[runs] = several(runs)
        return ratio

    def _of_records(self, some: Integers, joint: Floats) -> Floats:
        """Of secrets that one state holds: by all that it says of them."""
        steps, prior = self.steps, self.prior[some]
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

    def _of_runs(self, some: Integers) -> Floats:
        """Of longer ones: by the states at both ends, as far as they occur together."""
        near, far, prior = self.left[some], self.right[some], self.prior[some]
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

    def _of_states(self, some: Integers) -> Floats:
        """Of runs whose states are hidden: every value of the run by itself, if they are few."""
        near, far, prior = self.left[some], self.right[some], self.prior[some]
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
