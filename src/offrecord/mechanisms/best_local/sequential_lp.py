"""Improve any feasible redaction by linear programs, each checked by exact leakage (F7).

Every log-ratio that counts (F1) is linearised in the redaction probabilities of a span of records;
a linear program within a trust region proposes; what it proposes is raised towards the last
feasible matrix until its leakage is within the budget, which it is at the latest there (F3). So
every step is feasible and none is worse than the last. No number below decides about privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.theory.one_side import OneSide
from offrecord.theory.problem import Problem, Secret

_STEPS, _IDLE = 80, 8  # programs of one descent, and those in a row that may gain nothing
_RADIUS, _WIDEST = 0.25, 0.5  # how far entries may move in one step, at first and at most
_BAND = 0.5  # log-ratios further than this below their limit are left to the check
_SNAP = 1e-9  # entries this close to 0 or 1 are: just below 1 is a release like any other
_MET = 1e-4  # log-ratios this close to their limit meet it
_OVER = 1e-12  # and this close, a value that is not released yet would exceed it
_CLOSE, _SMALLEST = 1e-3, 1e-9  # how exactly a proposal is repaired, relative and absolute
#: The left side's part of what neither side uses, step by step: it decides what may be opened.
_LEANS = (0.5, 1.0, 0.0)


def improve(problem: Problem, matrix: Floats, first: int, effort: tuple[float, int, int]) -> Floats:
    """(w, k) a matrix that redacts no more in expectation.

    Releasing a value with whatever probability bounds everything nearer to the secret, so closing
    one (redacting it always) can pay: that is tried for values whose bound is met.

    problem: for one chain of order 1; all its secrets lie in the span. matrix: (w, k) a redaction
    within ε, of the span; all other records are released.
    """
    tolerance, tries, most = effort
    span = _Span(problem, first, len(matrix), most)
    closed = span.fixed
    best = span.descend(matrix, closed, tolerance)
    tried: set[bytes] = set()
    while tries > 0 and span.programs < most:
        for move in span.bounding(best):
            trial = closed | move
            if np.any(move & closed) or tries <= 0 or trial.tobytes() in tried:
                continue
            tried.add(trial.tobytes())
            tries -= 1
            found = span.descend(np.where(move, 1.0, best), trial, tolerance)
            if span.cost(found) < span.cost(best) - 2 * tolerance:
                best, closed = found, trial
                break
        else:
            break
    return best


@dataclass(frozen=True, eq=False)
class _Walk:
    """F1's walk over one side of a secret, to the first record that is never redacted or the end.

    entries: (T, k) places in the span's matrix, −1 beyond it. q: (T, k). kernels: (T, k, k), each
    divided by a factor that keeps `reached`, U of F1, near 1. ends: the chain's end follows.
    """

    entries: Integers
    q: Floats
    kernels: Floats
    reached: Floats
    ends: bool

    @cached_property
    def likely(self) -> Floats:
        """(T + ends, x, k) likelihoods of first releases, and of no release to the end."""
        if not self.ends:
            return self.reached
        nothing = np.zeros((1, *self.reached.shape[1:]))
        nothing[0, :, 0] = (self.reached[-1] * self.q[-1]).sum(axis=1)
        return np.concatenate((self.reached, nothing))

    def ratios(self) -> Floats:
        """(T + ends, x, y, k) log-ratios of these outputs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(self.likely)
            found = logs[:, :, np.newaxis] - logs[:, np.newaxis]
        return np.where(self.likely[:, :, np.newaxis] > 0, found, -np.inf)

    def released(self) -> NDArray[np.bool_]:
        """(T + ends, k) which of these outputs there are."""
        shown = self.q < 1
        return np.vstack((shown, np.arange(shown.shape[1]) == 0)) if self.ends else shown

    def gradients(self) -> Floats:
        """(T + ends, T, x, j, v) derivatives of log-likelihoods of outputs by each earlier q."""
        (steps, k), outputs = self.q.shape, len(self.likely)
        found = np.zeros((outputs, steps, k, k, k))
        onward = np.zeros((outputs, k, k))  # from each record on to the output
        if self.ends:
            onward[-1] = np.arange(k) == 0  # its only column sums up the last record
        with np.errstate(divide="ignore"):
            inverse = np.where(self.likely > 0, 1.0 / self.likely, 0.0)
        for s in range(steps - 1, -1, -1):
            after = slice(s + 1, outputs)
            if s + 1 < steps:
                onward[s + 2 :] = (self.kernels[s + 1] * self.q[s + 1]) @ onward[s + 2 :]
                onward[s + 1] = self.kernels[s + 1]
            found[after, s] = np.einsum(
                "xv,tvj,txj->txjv", self.reached[s], onward[after], inverse[after]
            )
        return found


class _Span:
    """Consecutive records whose probabilities may change.

    most: how many linear programs may be solved, of which `programs` were.
    """

    def __init__(self, problem: Problem, first: int, size: int, most: int) -> None:
        self.problem, self.first, self.size, self.most = problem, first, size, most
        self.k, self.programs = problem.chain.k, 0
        self.weights = np.array(problem.chain.marginals(first + 1, first + size))
        self.fixed = np.zeros((size, self.k), dtype=bool)
        for secret in problem.secrets:
            self.fixed[secret.first - 1 - first : secret.last - first] = True
        self.sides = {secret: OneSide.both(problem, secret) for secret in problem.secrets}

    def descend(self, matrix: Floats, closed: NDArray[np.bool_], tolerance: float) -> Floats:
        """From one feasible matrix to a better one until steps no longer pay.

        Closed entries stay as they are. The trust region grows where a step paid, else it shrinks:
        the leakage is linear only nearby.
        """
        best, cost = matrix, self.cost(matrix)
        radius, idle = _RADIUS, 0
        for step in range(_STEPS):
            if self.programs >= self.most:
                break
            proposal = self._propose(best, closed, radius, _LEANS[step % len(_LEANS)])
            gained = 0.0
            if proposal is not None:
                repaired = self._repaired(proposal, best)
                gained = cost - self.cost(repaired)
                if gained > 0:
                    best, cost = repaired, cost - gained
            idle = 0 if gained > tolerance else idle + 1
            radius = min(2 * radius, _WIDEST) if gained > tolerance else radius / 2
            if idle > _IDLE:
                break
        return best

    def cost(self, matrix: Floats) -> float:
        """Expected number of redacted records."""
        return float((self.weights * matrix).sum())

    def bounding(self, matrix: Floats) -> list[NDArray[np.bool_]]:
        """Entries whose release meets its limit, record by record and one by one."""
        entries: set[int] = set()
        for secret in self.problem.secrets:
            limits = self._limits(matrix, secret, 0.5)
            for side, limit in zip(self.sides[secret], limits, strict=True):
                if not side.is_independent:
                    entries |= set(self._met(self._walk(matrix, side), side, limit).tolist())
        moves = []
        for record in sorted({entry // self.k for entry in entries}):
            here = [entry for entry in sorted(entries) if entry // self.k == record]
            moves += [here] if len(here) > 1 else []
            moves += [[entry] for entry in here]
        return [np.isin(np.arange(self.fixed.size), one).reshape(self.fixed.shape) for one in moves]

    # Entries of one side that may be released and then meet a limit.
    def _met(self, walk: _Walk, side: OneSide, limit: Floats) -> Integers:
        excess = self._excess(walk, side, limit)[: len(walk.q)].max(axis=(1, 2))
        met = (excess > -_MET) & (walk.q < 1.0) & (walk.entries >= 0)
        return np.asarray(walk.entries[met])

    # (outputs, x, y, k) by how much log-ratios of possible private values exceed limits.
    def _excess(self, walk: _Walk, side: OneSide, limit: Floats) -> Floats:
        support = side.chain.support(side.edge)
        apart = support[:, np.newaxis] & support & ~np.eye(self.k, dtype=bool)
        found = walk.ratios() - limit[:, :, np.newaxis]
        return np.where(np.isnan(found) | ~apart[:, :, np.newaxis], -np.inf, found)

    # ---- leakage

    # (k, k) what either side's log-ratios reach.
    def _leakages(self, matrix: Floats, secret: Secret) -> tuple[Floats, Floats]:
        left, right = (self._leakage(matrix, side) for side in self.sides[secret])
        return left, right

    def _leakage(self, matrix: Floats, side: OneSide) -> Floats:
        nothing = np.zeros((self.k, self.k))
        if side.is_independent:
            return nothing
        walk = self._walk(matrix, side)
        shown = walk.released()[:, np.newaxis, np.newaxis]
        excess = np.where(shown, self._excess(walk, side, nothing), -np.inf)
        return np.asarray(np.maximum(excess.max(axis=(0, 3)), 0.0))

    # Within the budget: both sides add, pair by pair, for a run in all (F2, F9).
    def _is_private(self, matrix: Floats) -> bool:
        for secret in self.problem.secrets:
            left, right = self._leakages(matrix, secret)
            is_run = secret.last > secret.first
            total = left.max() + right.max() if is_run else (left + right).max()
            if not total <= self.problem.epsilon:
                return False
        return True

    # What each side's log-ratios may reach: what they do now, and a part of what is unused.
    def _limits(self, matrix: Floats, secret: Secret, lean: float) -> tuple[Floats, Floats]:
        left, right = self._leakages(matrix, secret)
        if secret.last > secret.first:
            left, right = np.full_like(left, left.max()), np.full_like(right, right.max())
        unused = self.problem.epsilon - left - right
        return left + lean * unused, right + (1 - lean) * unused

    # The proposal, raised towards a feasible matrix as little as makes it feasible.
    def _repaired(self, proposal: Floats, feasible: Floats) -> Floats:
        proposal = np.clip(proposal, 0.0, 1.0)
        proposal[proposal > 1 - _SNAP] = 1.0
        proposal[proposal < _SNAP] = 0.0
        if self._is_private(proposal):
            return proposal
        missing = np.maximum(feasible - proposal, 0.0)
        bad, good = 0.0, 1.0
        while good - bad > _CLOSE * good and good > _SMALLEST:
            middle = (bad + good) / 2
            if self._is_private(np.minimum(proposal + middle * missing, 1.0)):
                good = middle
            else:
                bad = middle
        if good == 1.0:  # not by a sum, whose rounding might fall short of what is feasible
            return np.maximum(proposal, feasible)
        return np.minimum(proposal + good * missing, 1.0)

    def _walk(self, matrix: Floats, side: OneSide) -> _Walk:
        start = side.edge - 1 - self.first + side.direction
        ahead = np.arange(start, self.size) if side.direction > 0 else np.arange(start, -1, -1)
        order = ahead[: side.margin]
        q, entries = matrix[order], order[:, np.newaxis] * self.k + np.arange(self.k)
        if len(order) < side.margin:  # one record beyond the span, which is never redacted
            q = np.vstack((q, np.zeros(self.k)))
            entries = np.vstack((entries, np.full(self.k, -1)))
        free = np.flatnonzero(~q.any(axis=1))
        count = int(free[0]) + 1 if len(free) else len(q)
        kernels = np.array(side.kernels(count))
        reached = np.empty((count, self.k, self.k))
        state = np.eye(self.k)
        for t in range(count):
            moved = state @ kernels[t]
            largest = float(moved.max())
            if largest > 0:
                kernels[t] /= largest  # a common factor cancels (F1)
                moved = moved / largest
            reached[t], state = moved, moved * q[t]
        return _Walk(entries[:count], q[:count], kernels, reached, len(free) == 0)

    # ---- the linear program

    # The best matrix within a radius of this one, as far as linearised leakage says.
    def _propose(
        self, matrix: Floats, closed: NDArray[np.bool_], radius: float, lean: float
    ) -> Floats | None:
        from scipy.optimize import linprog

        self.programs += 1
        held = closed.ravel().copy()
        table, bound = self._constraints(matrix, held, lean)
        flat = matrix.ravel()
        low = np.where(held, flat, np.maximum(flat - radius, 0.0))
        high = np.where(held, flat, np.minimum(flat + radius, 1.0))
        if not len(bound):
            return low.reshape(matrix.shape)
        shares = np.zeros(table.shape[1] - flat.size)
        costs = np.append(self.weights.ravel(), shares)
        lowest, highest = np.append(low, shares), np.append(high, shares + self.problem.epsilon)
        limits = list(zip(lowest.tolist(), highest.tolist(), strict=True))
        solved = linprog(costs, table, bound, bounds=limits, method="highs")
        if solved.status != 0 or solved.x is None:
            return None
        return np.asarray(solved.x[: flat.size].reshape(matrix.shape))

    # A table and its bounds: the left side's log-ratios are at most a share of ε, the right side's
    # ε less it (F2). The shares are the columns beyond the probabilities: one for a run, else one
    # for each pair of values. held: entries that must not be released are added.
    def _constraints(
        self, matrix: Floats, held: NDArray[np.bool_], lean: float
    ) -> tuple[Floats, Floats]:
        rows, limits, columns = [], [], matrix.size
        for secret in self.problem.secrets:
            run = secret.last > secret.first
            sides = self.sides[secret], self._limits(matrix, secret, lean), (-1.0, 1.0)
            for side, limit, sign in zip(*sides, strict=True):
                if not side.is_independent:
                    slopes, pairs, bounds = self._linearised(matrix, side, limit, held)
                    rows.append((slopes, columns + (0 if run else pairs), sign))
                    limits.append(bounds + (self.problem.epsilon if sign > 0 else 0.0))
            columns += 1 if run else self.k**2
        bound = np.concatenate([*limits, np.empty(0)])
        table, at = np.zeros((len(bound), columns)), 0
        for slopes, share, sign in rows:
            here = np.arange(at, at + len(slopes))
            table[here, : matrix.size] = slopes
            table[here, share] = sign
            at += len(slopes)
        return table, bound

    # The log-ratios of one side within reach of their limits: slopes · q − share ≤ bounds, and the
    # pairs of private values, x·k + y, that they are of.
    def _linearised(
        self, matrix: Floats, side: OneSide, limit: Floats, held: NDArray[np.bool_]
    ) -> tuple[Floats, Integers, Floats]:
        walk = self._walk(matrix, side)
        excess = self._excess(walk, side, limit)
        flat, steps = matrix.ravel(), len(walk.q)
        always = (walk.entries >= 0) & (flat[walk.entries] == 1.0)
        # a value whose release would exceed its limit stays redacted, and so gives no output
        over = always & (excess[:steps].max(axis=(1, 2)) > -_OVER)
        held[walk.entries[over]] = True
        silent = always & held[walk.entries]
        excess[:steps] = np.where(silent[:, np.newaxis, np.newaxis], -np.inf, excess[:steps])
        t, x, y, j = np.nonzero(excess >= -_BAND)
        gradients = walk.gradients()
        slopes = np.zeros((len(t), flat.size))
        change = gradients[t, :, x, j] - gradients[t, :, y, j]  # (rows, T, k)
        inside = walk.entries >= 0
        slopes[:, walk.entries[inside]] = change[:, inside]
        ratios = excess[t, x, y, j] + limit[x, y]
        return slopes, x * self.k + y, slopes @ flat - ratios
