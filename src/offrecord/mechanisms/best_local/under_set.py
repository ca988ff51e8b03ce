"""Designs for a set of models that has no worst one: found under some of its models, judged and
improved under all of them (R5).

Nothing here decides about privacy: the referee does, over the whole set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from offrecord.mechanisms.local.policy import LocalPolicy
from offrecord.models.base import Floats
from offrecord.models.chain import MarkovChain
from offrecord.theory.leakage import worst_output
from offrecord.theory.problem import Problem
from offrecord.theory.redaction import Redaction

if TYPE_CHECKING:
    from offrecord.mechanisms.best_local.mechanism import BestLocal

_STATES = 3  # above, judging a set takes too long to be asked hundreds of times
_ENTRIES = 250  # of a matrix, above which it is left as it is
_SHARES = (1.0, 0.85, 0.7, 0.5)  # of ε, for which designs of single models are made
_SWEEPS, _HALVINGS = 4, 9
_GAIN = 1e-4  # expected redactions not worth another sweep


def is_large_set(problem: Problem) -> bool:
    """The problem is about a set of models, of too many states to try designs by the hundred."""
    return problem.models is not None and problem.chain.lifted.k > _STATES


def candidates(problem: Problem, mechanism: BestLocal) -> list[LocalPolicy]:
    """For the nominal and the stickiest model alone, with the largest share of ε for which the
    design keeps within the set's ε.
    """
    found = []
    for chain in _models(problem):
        for share in _SHARES:
            single = Problem(
                chain, problem.n, problem.private, problem.epsilon * share, problem.protect
            )
            redaction = mechanism.design(single).sparse
            policy = LocalPolicy(problem, redaction, mechanism.name)
            if policy.is_private:
                found.append(policy)
                break
    return found


def _models(problem: Problem) -> Iterator[MarkovChain]:
    """Single models of a set, as far as one chain can be made of them."""
    chain = problem.chain
    yield chain.alone
    if chain.order == 1 and chain.is_homogeneous:
        right = problem.sides(problem.secrets[0])[1].models
        assert right is not None
        yield MarkovChain(right.stickiest[0], labels=chain.labels)


def descended(problem: Problem, start: Redaction) -> Redaction:
    """A redaction lowered entry by entry, as far as the set allows: by F3 what an entry may be is
    an interval that ends with 1.
    """
    if len(start.starts) == 0:
        return start
    first, last = int(start.starts[0]), int(start.stops[-1])
    if (last - first) * problem.chain.k > _ENTRIES:
        return start
    return _Descent(problem, first, last).of(start.matrix(first, last))


class _Descent:
    """Entries of the rows first … last − 1 (from 0), those of secrets apart."""

    def __init__(self, problem: Problem, first: int, last: int) -> None:
        self.problem, self.positions = problem, np.arange(first, last)
        self.weights = np.array(problem.chain.marginals(first + 1, last))
        self.movable = np.ones(self.weights.shape, dtype=bool)
        for core in map(problem.core, problem.secrets):
            self.movable[core.first - 1 - first : core.last - first] = False

    def of(self, matrix: Floats) -> Redaction:
        """The matrix after some sweeps, the costliest entries first."""
        matrix = matrix.copy()
        for _ in range(_SWEEPS):
            costs = np.where(self.movable, self.weights * matrix, 0.0)
            for at in np.argsort(-costs, axis=None):
                place = np.unravel_index(at, costs.shape)
                if costs[place] > 0:
                    matrix[place] = self._least(matrix, place)
            if costs.sum() - (self.weights * matrix)[self.movable].sum() < _GAIN:
                break
        return self._redaction(matrix)

    def _least(self, matrix: Floats, place: tuple[np.intp, ...]) -> float:
        """The smallest that one entry may be, all others as they are."""
        trial, low, high = matrix.copy(), 0.0, float(matrix[place])
        trial[place] = low
        if self._keeps(trial):
            return low
        for _ in range(_HALVINGS):
            trial[place] = (low + high) / 2
            low, high = (low, trial[place]) if self._keeps(trial) else (trial[place], high)
        return high

    def _keeps(self, matrix: Floats) -> bool:
        return worst_output(self.problem, self._redaction(matrix)).upper <= self.problem.epsilon

    def _redaction(self, matrix: Floats) -> Redaction:
        return Redaction(self.problem.n, self.positions, self.positions + 1, matrix)
