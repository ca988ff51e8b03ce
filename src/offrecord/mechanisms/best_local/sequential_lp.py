"""Improve any feasible redaction by a sequence of linear programmes, each refereed by the exact
leakage (F7).

Every log-ratio that counts (F1) is linearised in the redaction probabilities of a span of records;
a linear programme within a trust region proposes; what it proposes is raised towards the last
feasible matrix until its exact leakage is within the budget, which it is at the latest there (F3).
So every step is feasible and none is worse than the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats
from offrecord.theory import _walk
from offrecord.theory.leakage import side_leakage, worst_output
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.redaction import Redaction
from offrecord.theory.side import Side

_STEPS = 80
_BAND = 0.5  # log-ratios further than this below their limit are left to the referee
_ENTRIES = 250_000  # of one linear programme, for each side of each secret
_WORK = 30_000_000  # entries of all of them together: then what has been found will do
_SNAP = 1e-9
_LEANS = (
    0.5,
    1.0,
    0.0,
)  # the left side's part of what neither side uses, when a step decides what may be opened


def improve(
    problem: Problem,
    matrix: Floats,
    first: int,
    movable: NDArray[np.bool_],
    tolerance: float,
    tries: int,
    effort: float = 1.0,
) -> Floats:
    """A matrix that redacts no more in expectation, for the records at positions first … (from 0);
    all others are released.

    matrix: (w, k), feasible, with all of the problem's secrets within. movable: (w, k), the entries
    that may change.
    tolerance: expected redactions not worth a step. Releasing a value with whatever probability
    puts a bound on everything nearer to the secret, so closing one (redacting it always) can pay:
    that is tried for up to `tries` of the values whose bound is met. effort: how much work the
    linear programmes may take, as a multiple of the default.
    """
    span = _Span(problem, first, len(matrix), effort * _WORK)
    closed = span.fixed | ~movable
    best = span.descend(matrix, closed, tolerance)
    tried: set[bytes] = set()
    while tries > 0 and span.work < span.most:
        for move in span.bounding(best):
            if np.any(move & closed):
                continue
            trial = closed | move
            if tries <= 0 or trial.tobytes() in tried:
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


class _Rows:
    """Rows of a linear programme, gathered one by one."""

    def __init__(self) -> None:
        self.indices: list[NDArray[np.int64]] = []
        self.values: list[Floats] = []
        self.limits: list[float] = []

    def add(self, indices: NDArray[np.int64], values: Floats, limit: float) -> None:
        kept = np.abs(values) > 1e-12  # what is further off hardly matters
        self.indices.append(indices[kept])
        self.values.append(values[kept])
        self.limits.append(limit)


@dataclass(frozen=True, eq=False)
class _Walk:
    """One side of a secret within a span: entries (T, k) of the span met at each distance (−1
    beyond it), and the walk's state.

    reached: (T, k, k) Pr(nothing released before, X = j | x) up to a factor common to a distance.
    """

    kernels: Floats
    entries: NDArray[np.int64]
    probabilities: Floats
    reached: Floats
    ends: bool  # the chain's end follows, so that "nothing released" is an output


class _Span:
    """A stretch of records whose probabilities may change."""

    def __init__(self, problem: Problem, first: int, size: int, most: float) -> None:
        self.problem, self.first, self.size, self.k = problem, first, size, problem.chain.k
        self.work, self.most = 0, most  # entries of all linear programmes, so far and allowed
        self.weights = np.array(problem.chain.marginals(first + 1, first + size))
        self.secrets = problem.secrets
        self.fixed = np.zeros((size, self.k), dtype=bool)
        for core in map(problem.core, self.secrets):
            self.fixed[core.first - 1 - first : core.last - first] = True

    def descend(self, matrix: Floats, closed: NDArray[np.bool_], tolerance: float) -> Floats:
        """From one feasible matrix to a better one until steps no longer pay; closed entries stay
        as they are.
        """
        best, cost = matrix, self.cost(matrix)
        radius, idle = 0.25, 0
        for step in range(_STEPS):
            if self.work > self.most:
                break
            proposal = self.propose(best, closed, radius, _LEANS[step % len(_LEANS)])
            gained = 0.0
            if proposal is not None:
                repaired = self.repaired(proposal, best)
                gained = cost - self.cost(repaired)
                if gained > 0:
                    best, cost = repaired, cost - gained
            idle = 0 if gained > tolerance else idle + 1
            radius = min(2 * radius, 0.5) if gained > tolerance else radius / 2
            if idle > 8:
                break
        return best

    def bounding(self, matrix: Floats) -> list[NDArray[np.bool_]]:
        """Entries whose release meets its limit, one by one and record by record: closing them may
        pay.
        """
        entries: set[int] = set()
        for secret in self.secrets:
            sides, limits = self._limits(matrix, secret, 0.5)
            for side, limit in zip(sides, limits, strict=True):
                if side.room == 0 or side.independent:
                    continue
                walk = self._walk(matrix, side)
                with np.errstate(divide="ignore", invalid="ignore"):
                    logs = np.log(walk.reached)[:, side.support]
                    ratios = (
                        logs[:, :, None]
                        - logs[:, None]
                        - limit[np.ix_(side.support, side.support)][:, :, None]
                    )
                    same = side.secret_values[side.support]
                    ratios[:, same[:, None] == same] = -np.inf
                    met = (
                        np.nanmax(np.where(np.isnan(ratios), -np.inf, ratios), axis=(1, 2)) > -1e-4
                    )
                met &= (walk.probabilities < 1.0) & (walk.entries >= 0)
                entries |= set(walk.entries[met].tolist())
        moves = []
        records = sorted({entry // self.k for entry in entries})
        for record in records:
            here = [entry for entry in sorted(entries) if entry // self.k == record]
            for group in ([here] if len(here) > 1 else []) + [[entry] for entry in here]:
                move = np.zeros(self.size * self.k, dtype=bool)
                move[group] = True
                moves.append(move.reshape(self.size, self.k))
        return moves

    def cost(self, matrix: Floats) -> float:
        """Expected number of redacted records."""
        return float((self.weights * matrix).sum())

    def whole(self, matrix: Floats) -> Redaction:
        """The matrix as a redaction of the whole chain."""
        starts = np.arange(self.first, self.first + self.size)
        return Redaction(self.problem.n, starts, starts + 1, np.ascontiguousarray(matrix))

    def private(self, matrix: Floats) -> bool:
        """Within the budget, rounding included."""
        return worst_output(self.problem, self.whole(matrix)).upper <= self.problem.epsilon

    def repaired(self, proposal: Floats, feasible: Floats) -> Floats:
        """The proposal, raised towards a feasible matrix as little as makes it feasible."""
        proposal = np.clip(proposal, 0.0, 1.0)
        proposal[proposal > 1 - _SNAP] = 1.0
        proposal[proposal < _SNAP] = 0.0
        if self.private(proposal):
            return proposal
        missing = np.maximum(feasible - proposal, 0.0)
        bad, good = 0.0, 1.0
        while good - bad > 1e-3 * good and good > 1e-9:
            middle = (bad + good) / 2
            if self.private(np.minimum(proposal + middle * missing, 1.0)):
                good = middle
            else:
                bad = middle
        return (
            np.maximum(proposal, feasible)
            if good == 1.0
            else np.minimum(proposal + good * missing, 1.0)
        )

    # ---- the linear programme

    def propose(
        self, matrix: Floats, closed: NDArray[np.bool_], radius: float, lean: float
    ) -> Floats | None:
        """The best matrix within a radius of this one, as far as linearised leakage tells."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        width = self.size * self.k
        held = closed.ravel().copy()
        rows, columns = _Rows(), width
        for secret in self.secrets:
            columns = self._constrain(matrix, secret, lean, held, rows, columns)
        flat = matrix.ravel()
        low = np.where(held, flat, np.maximum(flat - radius, 0.0))
        high = np.where(held, flat, np.minimum(flat + radius, 1.0))
        shares = np.full(columns - width, self.problem.epsilon)
        self.work += sum(len(row) for row in rows.indices) + 10_000
        pointers = np.concatenate(([0], np.cumsum([len(row) for row in rows.indices])))
        if not rows.limits:
            return low.reshape(matrix.shape)
        table = csr_array(  # entries that several tuples show come more than once
            (np.concatenate(rows.values), np.concatenate(rows.indices), pointers),
            shape=(len(rows.limits), columns),
        )
        table.sum_duplicates()
        result = milp(  # without integrality: HiGHS as it is
            np.concatenate((self.weights.ravel(), np.zeros(columns - width))),
            constraints=LinearConstraint(table, ub=np.array(rows.limits)),
            bounds=Bounds(
                np.concatenate((low, np.zeros(columns - width))), np.concatenate((high, shares))
            ),
        )
        return None if result.x is None else np.array(result.x[:width]).reshape(matrix.shape)

    def _constrain(
        self,
        matrix: Floats,
        secret: Secret,
        lean: float,
        held: NDArray[np.bool_],
        rows: _Rows,
        columns: int,
    ) -> int:
        """Add one secret's constraints: both sides' log-ratios share ε, pair by pair (F2), or for a
        run side by side (F9).
        """
        run = secret.last > secret.first
        sides, limits = self._limits(matrix, secret, lean)
        states = sides[0].chain.k
        share = (
            np.full((states, states), columns)
            if run
            else columns + np.arange(states**2).reshape(states, states)
        )
        for sign, side, limit in zip((-1.0, 1.0), sides, limits, strict=True):
            if side.room and not side.independent:
                self._constrain_side(matrix, side, limit, share, sign, held, rows)
        return columns + (1 if run else states**2)

    def _limits(
        self, matrix: Floats, secret: Secret, lean: float
    ) -> tuple[tuple[Side, Side], tuple[Floats, Floats]]:
        """What the log-ratios of each side may reach: what they do now, and a part of what neither
        side uses.

        Pair by pair (F2), or for a run in all (F9).
        """
        redaction = self.whole(matrix)
        lengths = redaction.stops - redaction.starts
        sides = self.problem.sides(secret)
        left, right = (side_leakage(side, redaction, lengths).worst for side in sides)
        if secret.last > secret.first:
            left, right = np.full_like(left, left.max()), np.full_like(right, right.max())
        unused = self.problem.epsilon - left - right
        return sides, (left + lean * unused, right + (1 - lean) * unused)

    def _constrain_side(
        self,
        matrix: Floats,
        side: Side,
        limit: Floats,
        share: NDArray[np.int64],
        sign: float,
        held: NDArray[np.bool_],
        rows: _Rows,
    ) -> None:
        """Linearise what is within reach of its limit; hold entries at 1 whose release would exceed
        it.
        """
        walk = self._walk(matrix, side)
        epsilon = self.problem.epsilon
        values = side.secret_values
        xs, ys = np.nonzero(side.support[:, None] & side.support & (values[:, None] != values))
        caps = limit[xs, ys][:, None]
        steps, flat = len(walk.probabilities), matrix.ravel()
        last = False
        chosen: list[tuple[Floats, int, NDArray[np.int64], NDArray[np.int64], Floats]] = []
        for t in range(steps + walk.ends):
            final = t == steps
            masses = (
                (walk.reached[t - 1] * walk.probabilities[t - 1]).sum(axis=1)[:, None]
                if final
                else walk.reached[t]
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(masses)
                ratios = np.where(masses[xs] > 0, logs[xs] - logs[ys], -np.inf)  # (pairs, outputs)
            if not final:
                # later ratios are averages of those of the values still unreleased: none will be
                # within reach
                last = not np.any(ratios[:, walk.probabilities[t] > 0.0] >= caps - _BAND)
                entries = walk.entries[t]
                always = (entries >= 0) & (flat[entries] == 1.0)
                # a value whose release would exceed its limit stays redacted, and so gives no
                # output
                held[entries[always & np.any(ratios > caps - 1e-12, axis=0)]] = True
                ratios[:, always & held[entries]] = -np.inf
            pairs, outputs = np.nonzero(ratios >= caps - _BAND)
            if len(pairs):
                distances = (ratios - caps)[pairs, outputs]
                chosen.append((distances, t, pairs, outputs, ratios[pairs, outputs]))
            if last:
                break
        if not chosen:
            return
        distances = np.concatenate([part[0] for part in chosen])
        most = max(_ENTRIES // (steps * side.chain.k), 200)
        nearest = np.partition(distances, -most)[-most] if len(distances) > most else -np.inf
        for distances, t, pairs, outputs, ratios in chosen:
            kept = distances >= nearest
            if not kept.any():
                continue
            onward = np.ones((side.chain.k, 1)) if t == steps else walk.kernels[t]
            indices = walk.entries[:t].ravel()
            gradients = _walk.log_gradients(
                walk.kernels, walk.probabilities, walk.reached, t, onward
            ).reshape(side.chain.k, onward.shape[1], t * side.chain.k)
            for pair, output, ratio in zip(pairs[kept], outputs[kept], ratios[kept], strict=True):
                x, y = xs[pair], ys[pair]
                slope = gradients[x, output] - gradients[y, output]
                bound = (epsilon if sign > 0 else 0.0) - float(ratio) + float(slope @ flat[indices])
                rows.add(np.append(indices, share[x, y]), np.append(slope, sign), bound)

    def _walk(self, matrix: Floats, side: Side) -> _Walk:
        """Away from the secret to the span's end, the chain's end, or the first record that is
        never redacted.
        """
        start = side.edge - 1 - self.first + side.direction
        order = (np.arange(start, self.size) if side.direction > 0 else np.arange(start, -1, -1))[
            : side.room
        ]
        probabilities = matrix[order]
        entries = order[:, None] * self.k + np.arange(self.k)
        if len(order) < side.room:  # one record beyond the span, which is never redacted
            probabilities = np.vstack((probabilities, np.zeros(self.k)))
            entries = np.vstack((entries, np.full(self.k, -1)))
        free = np.flatnonzero(~probabilities.any(axis=1))
        count = int(free[0]) + 1 if len(free) else len(probabilities)
        states = side.chain.k
        entries, probabilities = (
            entries[:, side.shown_value_of_state],
            probabilities[:, side.shown_value_of_state],
        )
        kernels = np.ascontiguousarray(
            np.broadcast_to(side.kernels(count), (count, states, states))
        )
        reached = np.empty((count, states, states))
        state = np.eye(states)
        for t in range(count):
            reached[t] = state @ kernels[t]
            state = reached[t] * probabilities[t]
            largest = state.max()
            state = state / largest if largest > 0 else state
        return _Walk(
            kernels,
            entries[:count],
            np.ascontiguousarray(probabilities[:count]),
            reached,
            len(free) == 0,
        )
