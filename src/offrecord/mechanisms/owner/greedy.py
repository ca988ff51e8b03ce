"""GreedyPolicy: nothing leaks at all, ε = 0, for one known chain.

At every distance a walk stops with the mass that all start contexts have in common, so whatever is
seen is as likely from each of them. Σ_i min_x P^t(x, i) has stopped by distance t, more than which
no mechanism can (O2). What has not stopped at the chain's end leaves nothing on that side. Between
several private runs everything is redacted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from offrecord.mechanisms.rules import Direction
from offrecord.mechanisms.rules_policy import RulesPolicy, mean_of
from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.members import Members

#: What is not stopped of a mass up to this share is rounding: independent records stop at once.
_NOTHING = 1e-13


class Greedy:
    """One side. stop: (distances, S, S) probability of stopping at m, m + 1, … if not before, by
    start context and context. waiting: (distances,) probability of not having stopped by then.
    """

    def __init__(self, chain: Members, place: int, direction: Direction, margin: int) -> None:
        self.margin, self.order = margin, chain.order
        law = chain.law(place)[0]
        occurs = law > 0
        # masses are those of walks that have not stopped, which keeps totals of different start
        # contexts together; else their difference, however small, would outlast both
        mass, totals = np.eye(len(law))[occurs], np.ones(int(occurs.sum()))
        self.stop: list[Floats] = []
        waiting, ratios = [], [0.0]
        for step in _kernels(chain, place, direction, margin):
            mass = mass @ step
            chances = _shared(mass)
            ratios.append(_log_range((totals[:, np.newaxis] * chances * mass).T))
            everyone = np.zeros((len(law), len(law)))
            everyone[occurs] = chances
            self.stop.append(everyone)
            mass = mass * (1.0 - chances)
            left = mass.sum(axis=1)
            totals, mass = totals * left, mass / np.where(left > 0, left, 1.0)[:, np.newaxis]
            waiting.append(float(law[occurs] @ totals))
        self.waiting = np.array(waiting)
        self.leakage = max(*ratios, _log_range(totals[np.newaxis]))

    @property
    def redactions(self) -> float:
        """Expected redactions beyond the core."""
        # the record at distance j goes in a walk that has not stopped by j + m − 1; no context ends
        # beyond the chain, so the last m − 1 go with the walk that never stops
        certain = min(self.margin, self.order - 1)
        last = self.waiting[-1] if len(self.waiting) else 1.0
        return float(self.waiting.sum()) + certain * float(last)

    @property
    def law(self) -> Floats:
        """(margin + 1,) how likely releasing begins at each distance from the core."""
        begins = np.zeros(self.margin + 1)
        begins[1 : 1 + len(self.waiting)] = -np.diff([1.0, *self.waiting])
        return begins

    def stops(self, start: int, contexts: Sequence[int]) -> Iterator[tuple[int, float]]:
        """How many records are redacted, with which probability, given the contexts passed."""
        chance = 1.0
        for number, (stop, context) in enumerate(zip(self.stop, contexts, strict=True)):
            yield number, chance * float(stop[start, context])
            chance *= 1.0 - float(stop[start, context])
        yield self.margin, chance


# The kernels from the start context to distance m, and from each distance to the next.
def _kernels(chain: Members, place: int, direction: Direction, margin: int) -> Iterator[Floats]:
    kernel, sign = (chain.ahead, 1) if direction == "right" else (chain.back, -1)
    passed = 0
    for distance in range(chain.order, margin + 1):
        yield kernel(chain.place_after(place, sign * passed), distance - passed)[0]
        passed = distance


# (starts, S) the probability of stopping with the mass that all starts have in common.
def _shared(mass: Floats) -> Floats:
    shared = mass.min(axis=0)
    chances = np.where(mass > 0, shared / np.where(mass > 0, mass, 1.0), 0.0)
    chances[mass - shared <= _NOTHING * mass] = 1.0
    return chances


# The largest log-ratio of rows that can occur.
def _log_range(likelihoods: Floats) -> float:
    rows = likelihoods[likelihoods.max(axis=1) > 0]
    with np.errstate(divide="ignore"):
        return float(np.log(rows.max(axis=1) / rows.min(axis=1)).max(initial=0.0))


class GreedyPolicy(RulesPolicy):
    """Stopping at every distance with what all start contexts share; its leakage is 0."""

    @cached_property
    def _core(self) -> tuple[int, int]:
        """First and last step of what goes whole."""
        private, order = self.problem.private, self.problem.chain.order
        first = max(min(private[0] - 1, private[-1] - order), 0)
        return first, max(private[-1] - 1, order - 1)

    @cached_property
    def sides(self) -> tuple[Greedy, Greedy]:
        """To the left and to the right."""
        chain, (first, last) = mean_of(self.problem), self._core
        places = (0, 0) if chain.places is None else (first + chain.order - 1, last)
        beyond = self.problem.n - 1 - last
        left = Greedy(chain, places[0], "left", first)
        return left, Greedy(chain, places[1], "right", beyond)

    @cached_property
    def leakages(self) -> Floats:
        """(1,) what rounding leaves."""
        return np.array([sum(side.leakage for side in self.sides)])

    @cached_property
    def utility(self) -> float:
        """See `Policy.utility`; exact."""
        first, last = self._core
        redacted = last - first + 1 + sum(side.redactions for side in self.sides)
        return 1.0 - redacted / self.problem.n

    @cached_property
    def stopping_law(self) -> tuple[Floats, Floats]:
        """See `RulesPolicy.stopping_law`; in the margins there are."""
        left, right = self.sides
        return left.law, right.law

    def outcomes(self, values: Sequence[int]) -> Iterator[tuple[Mask, float]]:
        """See `Policy.outcomes`."""
        self._check_listed(values)
        left, right = self._stops(values)
        for nearer, chance in left:
            for further, other in right:
                if chance * other > 0:
                    yield self._mask(nearer, further), chance * other

    def apply(self, values: Sequence[int], rng: np.random.Generator) -> Mask:
        """See `Policy.apply`."""
        drawn = []
        for stops in self._stops(values):
            redacted, chances = zip(*stops, strict=True)
            drawn.append(redacted[rng.choice(len(redacted), p=np.array(chances) / sum(chances))])
        return self._mask(*drawn)

    def _mask(self, left: int, right: int) -> Mask:
        first, last = self._core
        steps = np.arange(self.problem.n)
        return (steps < first - left) | (steps > last + right)

    # What each side redacts of a sequence, with which probability.
    def _stops(self, values: Sequence[int]) -> list[list[tuple[int, float]]]:
        order, (first, last), (left, right) = self.problem.chain.order, self._core, self.sides
        weights = self.problem.chain.k ** np.arange(order)[::-1]
        windows = np.lib.stride_tricks.sliding_window_view(np.asarray(values), order)
        contexts: Integers = windows @ weights  # by their first record
        beyond = contexts[last + 1 : last + 1 + len(right.stop)]
        before = contexts[: max(first - order + 1, 0)][::-1]
        return [
            list(left.stops(int(contexts[first]), before.tolist())),
            list(right.stops(int(contexts[last - order + 1]), beyond.tolist())),
        ]
