"""A stretch of records improved in a set of models: linear programmes under the kernels that are
about the worst for each output (F7 under R5).

The referee takes long for a set, so that steps go by the kernels that are found, and it is asked
about what they come to: that is raised towards where it began until it keeps within the budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.best_local.sequential_lp import (
    BAND,
    LEANS,
    OVER,
    RADIUS,
    STEPS,
    WIDEST,
    Rows,
    Span,
    snapped,
)
from offrecord.mechanisms.best_local.set_walks import (
    Outputs,
    never_released,
    slopes_under,
    told_under,
    worst_kernels,
)
from offrecord.models.base import Floats
from offrecord.theory.leakage import walked_output
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.side import Side

_IDLE = 2  # programmes in a row that may gain nothing
#: How often a proposal, or what all came to, is raised, by how much more than was too much.
_AIMS, _FURTHER = 3, 1.1
#: How often the part of it that is missing is cut, how near to the ends at least, and how near to
#: the aim is near enough.
_CUTS, _SPARE, _NEAR = 6, 0.01, 1e-4


def is_over_set(problem: Problem) -> bool:
    """The problem is about a set of models of order 1, with one box of kernels for all steps to a
    side.
    """
    models = [side.models for side in problem.sides(problem.secrets[0])]
    return problem.chain.order == 1 and all(
        one is not None and len(one.low) == 1 and one.odds is None for one in models
    )


@dataclass(frozen=True, eq=False)
class _SetSide:
    """One side of a secret. entries: (T, k) of the span's matrix, −1 beyond it. shut: (T, k) those
    that stay redacted; all others have outputs.
    """

    side: Side
    entries: NDArray[np.int64]
    shut: NDArray[np.bool_]
    outputs: Outputs

    def rows(self, matrix: Floats) -> Floats:
        """(T, k) redaction probabilities by distance."""
        return np.asarray(np.append(matrix.ravel(), 0.0)[self.entries])


#: By secret and direction, the kernels that are about the worst for each output.
_Kernels = dict[tuple[Secret, int], Floats]


class SetSpan(Span):
    """For a set with one box of kernels for all steps to a side."""

    def descend(self, matrix: Floats, closed: NDArray[np.bool_], tolerance: float) -> Floats:
        """From one feasible matrix to a better one until steps no longer pay."""
        self.sides = self._sides(matrix, closed)
        self.kernels: _Kernels = {}
        self.kernels = self._worst(matrix)
        best, cost = matrix, self.cost(matrix)
        radius, idle = RADIUS, 0
        for step in range(STEPS):
            if self.work > self.most or idle > _IDLE:
                break
            proposal = self.propose(best, closed, radius, LEANS[step % len(LEANS)])
            found = None if proposal is None else self._within(snapped(proposal), best)
            gained = 0.0
            if found is not None:
                gained = cost - self.cost(found[0])
                best, cost, self.kernels = found[0], cost - gained, found[1]
            idle = 0 if gained > tolerance else idle + 1
            radius = min(2 * radius, WIDEST) if gained > tolerance else radius / 2
        return self._proven(best, matrix)

    def _sides(
        self, matrix: Floats, closed: NDArray[np.bool_]
    ) -> dict[tuple[Secret, int], _SetSide]:
        """Those with records, with the outputs that may come to be."""
        found = {}
        for secret in self.secrets:
            for side in self.problem.sides(secret):
                if not side.room or side.independent:
                    continue
                entries, models = self._entries(side), side.models
                assert models is not None
                box = models.low[0].tobytes(), models.high[0].tobytes()
                never = never_released(*box, self.k, len(entries), self.problem.epsilon)
                shut = (matrix.ravel()[entries] == 1.0) & (closed.ravel()[entries] | never)
                shut &= entries >= 0
                outputs = Outputs.of(~shut, ends=bool((entries >= 0).all()))
                found[secret, side.direction] = _SetSide(side, entries, shut, outputs)
        return found

    def _entries(self, side: Side) -> NDArray[np.int64]:
        """(T, k) to the span's end, and one record more where the chain has one."""
        start = side.edge - 1 - self.first + side.direction
        order = np.arange(start, self.size) if side.direction > 0 else np.arange(start, -1, -1)
        entries = order[: side.room, np.newaxis] * self.k + np.arange(self.k)
        if len(order) < side.room:
            entries = np.vstack((entries, np.full(self.k, -1)))
        return entries

    def _worst(self, matrix: Floats) -> _Kernels:
        """Kernels for a matrix, from those for another one."""
        found = {}
        for key, one in self.sides.items():
            models = one.side.models
            assert models is not None
            found[key] = worst_kernels(
                models.low[0], models.high[0], one.rows(matrix), one.outputs, self.kernels.get(key)
            )
        return found

    def _told(self, matrix: Floats, kernels: _Kernels) -> dict[tuple[Secret, int], Floats]:
        """(k, k) by secret and direction, what is told under these kernels, x over x'."""
        every = {
            (secret, direction): np.zeros((self.k, self.k))
            for secret in self.secrets
            for direction in (-1, 1)
        }
        for key, one in self.sides.items():
            told = told_under(kernels[key], one.rows(matrix), one.outputs)
            np.maximum.at(every[key], (one.outputs.above, one.outputs.below), told)
        return every

    def _most(self, matrix: Floats, kernels: _Kernels) -> float:
        """What is told about any secret, pair by pair (F2), or for a run side by side (F9)."""
        told, most = self._told(matrix, kernels), 0.0
        for secret in self.secrets:
            left, right = told[secret, -1], told[secret, 1]
            both = left.max() + right.max() if secret.last > secret.first else (left + right).max()
            most = max(most, float(both))
        return most

    def _within(self, proposal: Floats, best: Floats) -> tuple[Floats, _Kernels] | None:
        """The proposal, raised towards the best as little as makes it keep within the budget under
        the worst kernels that are found for it, and these; None where it is no better.
        """
        aim, least = self.problem.epsilon, self.cost(best)
        for _ in range(_AIMS):
            raised = self._raised(proposal, best, aim)
            if self.cost(raised) >= least:
                return None
            kernels = self._worst(raised)
            excess = self._most(raised, kernels) - self.problem.epsilon
            if excess <= 0:
                return raised, kernels
            aim -= _FURTHER * excess
        return None

    def _raised(self, proposal: Floats, feasible: Floats, aim: float) -> Floats:
        """A proposal as near as can be that aims at a budget, as the present kernels say."""
        missing = np.maximum(feasible - proposal, 0.0)
        bad, good = 0.0, 1.0
        over = self._most(proposal, self.kernels) - aim
        if over <= 0:
            return proposal
        under = self._most(np.maximum(proposal, feasible), self.kernels) - aim
        for _ in range(_CUTS if under < 0 else 0):
            # where a line through both would meet the aim, and a little further
            share = min(over / (over - under) + _SPARE, 1.0 - _SPARE)
            middle = bad + (good - bad) * share
            excess = self._most(np.minimum(proposal + middle * missing, 1.0), self.kernels) - aim
            if excess <= 0:
                good, under = middle, excess
                if excess > -_NEAR:
                    break
            else:
                bad, over = middle, excess
        if good == 1.0:  # not by a sum, whose rounding might fall short of what is feasible
            return np.maximum(proposal, feasible)
        return np.minimum(proposal + good * missing, 1.0)

    def _proven(self, best: Floats, start: Floats) -> Floats:
        """What was found as the referee lets it pass, or where it began."""
        aim, least, raised = self.problem.epsilon, self.cost(start), best
        for _ in range(_AIMS):
            told = walked_output(self.problem, self.whole(raised)).upper
            if told <= self.problem.epsilon:
                return raised
            aim -= _FURTHER * (told - self.problem.epsilon)
            raised = self._raised(best, start, aim)
            if self.cost(raised) >= least:
                break
        return start

    def told(self, matrix: Floats, secret: Secret) -> tuple[Floats, Floats]:
        """As the kernels say."""
        told = self._told(matrix, self.kernels)
        return told[secret, -1], told[secret, 1]

    def constrain_side(
        self,
        matrix: Floats,
        side: Side,
        limit: Floats,
        share: NDArray[np.int64],
        sign: float,
        held: NDArray[np.bool_],
        rows: Rows,
    ) -> None:
        """Linearise what is within reach of its limit."""
        key, one = next((key, one) for key, one in self.sides.items() if one.side is side)
        outputs, probabilities, flat = one.outputs, one.rows(matrix), matrix.ravel()
        told, slopes = slopes_under(self.kernels[key], probabilities, outputs)
        caps = limit[outputs.above, outputs.below]
        places = one.entries[outputs.distances - 1, outputs.values]
        is_shut = (outputs.values >= 0) & (places >= 0)
        is_shut &= probabilities[outputs.distances - 1, outputs.values] == 1.0
        held[one.entries[one.shut]] = True
        # a value whose release would exceed its limit stays redacted, and so gives no output
        held[places[is_shut & (told > caps - OVER)]] = True
        counted = ~(is_shut & held[places]) & (told >= caps - BAND)
        budget = self.problem.epsilon if sign > 0 else 0.0
        inside = one.entries.ravel() >= 0
        indices = one.entries.ravel()[inside]
        for at in np.flatnonzero(counted).tolist():
            slope = slopes[at].ravel()[inside]
            bound = budget - float(told[at]) + float(slope @ flat[indices])
            column = share[outputs.above[at], outputs.below[at]]
            rows.add(np.append(indices, column), np.append(slope, sign), bound)
