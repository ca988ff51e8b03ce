"""Improve any feasible redaction by linear programmes, each refereed by the exact leakage (F7).

Every log-ratio that counts (F1) is linearised in the redaction probabilities of a span of records;
a linear programme within a trust region proposes; what it proposes is raised towards the last
feasible matrix until its exact leakage is within the budget, which it is at the latest there (F3).
So every step is feasible and none is worse than the last. No number below decides about privacy:
the referee does, rounding included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats
from offrecord.theory import _walk
from offrecord.theory.leakage import side_leakage, walked_output
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.programmes import Entries, Solver
from offrecord.theory.redaction import Redaction
from offrecord.theory.side import Side

STEPS, _IDLE = 80, 8  # linear programmes of one descent, and those in a row that may gain nothing
RADIUS, WIDEST = 0.25, 0.5  # how far entries may move in one step, at first and at most
BAND = 0.5  # log-ratios further than this below their limit are left to the referee
_ENTRIES = 250_000  # of one linear programme, for each side of each secret
_WORK = 30_000_000  # entries of all of them together: then what has been found will do
SNAP = 1e-9  # entries this close to 0 or 1 are: just below 1 is a release like any other
_MET = 1e-4  # log-ratios this close to their limit meet it
OVER = 1e-12  # and this close, a value that is not released yet would exceed it
_NEGLIGIBLE = 1e-12  # derivatives that are left out of a linear programme
_CLOSE, _SMALLEST = 1e-3, 1e-9  # how exactly a proposal is repaired, relative and absolute
#: The left side's part of what neither side uses, step by step: it decides what may be opened.
LEANS = (0.5, 1.0, 0.0)


def improve(
    problem: Problem,
    matrix: Floats,
    first: int,
    movable: NDArray[np.bool_],
    tolerance: float,
    tries: int,
    effort: float = 1.0,
    kind: type[Span] | None = None,
) -> Floats:
    """A matrix that redacts no more in expectation, for w records from position `first` (from 0).

    All others are released. matrix: (w, k), feasible, with all of the problem's secrets within.
    movable: (w, k), the entries that may change. tolerance: expected redactions not worth a step.
    effort: how much work the linear programmes may take, as a multiple of the default. kind: of
    span, where another descends better.

    Releasing a value with whatever probability puts a bound on everything nearer to the secret, so
    closing one (redacting it always) can pay: that is tried for up to `tries` of the values whose
    bound is met.
    """
    span = (kind or Span)(problem, first, len(matrix), effort * _WORK)
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


class Rows:
    """Rows of a linear programme, gathered one by one."""

    def __init__(self) -> None:
        self.indices: list[NDArray[np.int64]] = []
        self.values: list[Floats] = []
        self.limits: list[float] = []

    def add(self, indices: NDArray[np.int64], values: Floats, limit: float) -> None:
        """One more: values at some columns, and what their sum may be at most."""
        kept = np.abs(values) > _NEGLIGIBLE  # further from the output, they hardly matter
        self.indices.append(indices[kept])
        self.values.append(values[kept])
        self.limits.append(limit)

    @property
    def entries(self) -> Entries:
        """All of them; what several tuples show comes more than once."""
        row = np.repeat(np.arange(len(self.indices)), [len(one) for one in self.indices])
        return Entries(row, np.concatenate(self.indices), np.concatenate(self.values)).summed()


@dataclass(frozen=True, eq=False)
class _Walk:
    """One side of a secret within a span: what F1's walk meets at each distance, and its state.

    entries: (T, k) of the span's matrix, −1 beyond it. reached: (T, k, k) U of first_release.py, up
    to a factor common to a distance.
    """

    kernels: Floats
    entries: NDArray[np.int64]
    probabilities: Floats
    reached: Floats
    ends: bool  # the chain's end follows, so that "nothing released" is an output


@dataclass(frozen=True, eq=False)
class _Outputs:
    """Outputs of one distance whose log-ratios are near their limits.

    pairs: which pair of secret values, values: which value is released, or 0 at the chain's end;
    ratios: the log-ratios, excess: how far above the limit.
    """

    distance: int
    pairs: NDArray[np.int64]
    values: NDArray[np.int64]
    ratios: Floats
    excess: Floats

    def at(self, kept: NDArray[np.bool_]) -> _Outputs:
        """Those of them."""
        return _Outputs(
            self.distance, self.pairs[kept], self.values[kept], self.ratios[kept], self.excess[kept]
        )


class Span:
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
        """From one feasible matrix to a better one until steps no longer pay.

        Closed entries stay as they are. The trust region grows where a step paid, else it shrinks:
        the leakage is linear only nearby.
        """
        best, cost = matrix, self.cost(matrix)
        radius, idle = RADIUS, 0
        for step in range(STEPS):
            if self.work > self.most:
                break
            proposal = self.propose(best, closed, radius, LEANS[step % len(LEANS)])
            gained = 0.0
            if proposal is not None:
                repaired = self.repaired(proposal, best)
                gained = cost - self.cost(repaired)
                if gained > 0:
                    best, cost = repaired, cost - gained
            idle = 0 if gained > tolerance else idle + 1
            radius = min(2 * radius, WIDEST) if gained > tolerance else radius / 2
            if idle > _IDLE:
                break
        return best

    def bounding(self, matrix: Floats) -> list[NDArray[np.bool_]]:
        """Entries whose release meets its limit, record by record and one by one.

        Closing them may pay.
        """
        entries: set[int] = set()
        for secret in self.secrets:
            sides, limits = self.problem.sides(secret), self.limits(matrix, secret, 0.5)
            for side, limit in zip(sides, limits, strict=True):
                if side.room > 0 and not side.independent:
                    entries |= set(self._met(matrix, side, limit).tolist())
        moves = []
        for record in sorted({entry // self.k for entry in entries}):
            here = [entry for entry in sorted(entries) if entry // self.k == record]
            for group in ([here] if len(here) > 1 else []) + [[entry] for entry in here]:
                move = np.zeros(self.size * self.k, dtype=bool)
                move[group] = True
                moves.append(move.reshape(self.size, self.k))
        return moves

    def _met(self, matrix: Floats, side: Side, limit: Floats) -> NDArray[np.int64]:
        """Entries of one side that may be released and then meet a limit."""
        walk = self._walk(matrix, side)
        possible = side.support
        secret = side.secret_values[possible]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(walk.reached)[:, possible]
            limits = limit[np.ix_(possible, possible)][:, :, None]
            excess = logs[:, :, None] - logs[:, None] - limits
        excess[:, secret[:, None] == secret] = -np.inf
        met = np.where(np.isnan(excess), -np.inf, excess).max(axis=(1, 2)) > -_MET
        met &= (walk.probabilities < 1.0) & (walk.entries >= 0)
        return np.asarray(walk.entries[met])

    def cost(self, matrix: Floats) -> float:
        """Expected number of redacted records."""
        return float((self.weights * matrix).sum())

    def whole(self, matrix: Floats) -> Redaction:
        """The matrix as a redaction of the whole chain."""
        starts = np.arange(self.first, self.first + self.size)
        return Redaction(self.problem.n, starts, starts + 1, np.ascontiguousarray(matrix))

    def private(self, matrix: Floats) -> bool:
        """Within the budget, rounding included."""
        return walked_output(self.problem, self.whole(matrix)).upper <= self.problem.epsilon

    def repaired(self, proposal: Floats, feasible: Floats) -> Floats:
        """The proposal, raised towards a feasible matrix as little as makes it feasible."""
        proposal = snapped(proposal)
        if self.private(proposal):
            return proposal
        missing = np.maximum(feasible - proposal, 0.0)
        bad, good = 0.0, 1.0
        while good - bad > _CLOSE * good and good > _SMALLEST:
            middle = (bad + good) / 2
            if self.private(np.minimum(proposal + middle * missing, 1.0)):
                good = middle
            else:
                bad = middle
        if good == 1.0:  # not by a sum, whose rounding might fall short of what is feasible
            return np.maximum(proposal, feasible)
        return np.minimum(proposal + good * missing, 1.0)

    # ---- the linear programme

    def propose(
        self, matrix: Floats, closed: NDArray[np.bool_], radius: float, lean: float
    ) -> Floats | None:
        """The best matrix within a radius of this one, as far as linearised leakage tells."""
        width = self.size * self.k
        held = closed.ravel().copy()
        rows, columns = Rows(), width
        for secret in self.secrets:
            columns = self._constrain(matrix, secret, lean, held, rows, columns)
        flat = matrix.ravel()
        low = np.where(held, flat, np.maximum(flat - radius, 0.0))
        high = np.where(held, flat, np.minimum(flat + radius, 1.0))
        shares = np.full(columns - width, self.problem.epsilon)
        self.work += sum(len(row) for row in rows.indices) + 10_000
        if not rows.limits:
            return low.reshape(matrix.shape)
        others = np.zeros(columns - width)
        solved = Solver().least(
            np.concatenate((self.weights.ravel(), others)),
            rows.entries,
            -np.inf,
            np.array(rows.limits),
            columns=(np.concatenate((low, others)), np.concatenate((high, shares))),
        )
        return None if solved is None else solved[:width].reshape(matrix.shape)

    def _constrain(
        self,
        matrix: Floats,
        secret: Secret,
        lean: float,
        held: NDArray[np.bool_],
        rows: Rows,
        columns: int,
    ) -> int:
        """Add one secret's constraints: both sides' log-ratios share ε.

        Pair by pair (F2), or for a run side by side (F9). Each share is a column of its own: the
        left side's log-ratios are at most that, the right side's at most ε less it.
        """
        run = secret.last > secret.first
        sides, limits = self.problem.sides(secret), self.limits(matrix, secret, lean)
        states = sides[0].chain.k
        share = (
            np.full((states, states), columns)
            if run
            else columns + np.arange(states**2).reshape(states, states)
        )
        for sign, side, limit in zip((-1.0, 1.0), sides, limits, strict=True):
            if side.room and not side.independent:
                self.constrain_side(matrix, side, limit, share, sign, held, rows)
        return columns + (1 if run else states**2)

    def limits(self, matrix: Floats, secret: Secret, lean: float) -> tuple[Floats, Floats]:
        """What each side's log-ratios may reach: what they do now, and a part of what is unused.

        Pair by pair (F2), or for a run in all (F9).
        """
        left, right = self.told(matrix, secret)
        if secret.last > secret.first:
            left, right = np.full_like(left, left.max()), np.full_like(right, right.max())
        unused = self.problem.epsilon - left - right
        return left + lean * unused, right + (1 - lean) * unused

    def told(self, matrix: Floats, secret: Secret) -> tuple[Floats, Floats]:
        """What either side's log-ratios reach now."""
        redaction = self.whole(matrix)
        lengths = redaction.stops - redaction.starts
        left, right = self.problem.sides(secret)
        return (
            side_leakage(left, redaction, lengths).worst,
            side_leakage(right, redaction, lengths).worst,
        )

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
        walk = self._walk(matrix, side)
        values = side.secret_values
        xs, ys = np.nonzero(side.support[:, None] & side.support & (values[:, None] != values))
        near = _near_outputs(walk, xs, ys, limit[xs, ys][:, None], matrix.ravel(), held)
        if not near:
            return
        excesses = np.concatenate([output.excess for output in near])
        most = max(_ENTRIES // (len(walk.probabilities) * side.chain.k), 200)
        least = np.partition(excesses, -most)[-most] if len(excesses) > most else -np.inf
        for output in near:
            kept = output.excess >= least
            if kept.any():
                pairs = xs[output.pairs[kept]], ys[output.pairs[kept]]
                self._linearise(walk, output.at(kept), pairs, share, sign, matrix.ravel(), rows)

    def _linearise(
        self,
        walk: _Walk,
        output: _Outputs,
        pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
        share: NDArray[np.int64],
        sign: float,
        flat: Floats,
        rows: Rows,
    ) -> None:
        """log-ratio + slope·(q − q now) ≤ share on the left, ≤ ε − share on the right."""
        t, k = output.distance, walk.kernels.shape[1]
        ends = t == len(walk.probabilities)
        onward = np.ones((k, 1)) if ends else walk.kernels[t]
        indices = walk.entries[:t].ravel()
        gradients = _walk.log_gradients(
            walk.kernels, walk.probabilities, walk.reached, t, onward
        ).reshape(k, onward.shape[1], t * k)
        budget = self.problem.epsilon if sign > 0 else 0.0
        for x, y, value, ratio in zip(*pairs, output.values, output.ratios, strict=True):
            slope = gradients[x, value] - gradients[y, value]
            bound = budget - float(ratio) + float(slope @ flat[indices])
            rows.add(np.append(indices, share[x, y]), np.append(slope, sign), bound)

    def _walk(self, matrix: Floats, side: Side) -> _Walk:
        """F1's walk to the span's end, the chain's end, or the first record never redacted."""
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
        shown = side.shown_value_of_state
        entries, probabilities = entries[:, shown], probabilities[:, shown]
        kernels = np.ascontiguousarray(
            np.broadcast_to(side.kernels(count), (count, states, states))
        )
        reached = np.empty((count, states, states))
        state = np.eye(states)
        for t in range(count):
            reached[t] = state @ kernels[t]
            state = reached[t] * probabilities[t]
            largest = state.max()
            state = state / largest if largest > 0 else state  # a common factor cancels (F1)
        return _Walk(
            kernels,
            entries[:count],
            np.ascontiguousarray(probabilities[:count]),
            reached,
            len(free) == 0,
        )


def snapped(proposal: Floats) -> Floats:
    """Probabilities, none of them just above 0 or below 1."""
    proposal = np.clip(proposal, 0.0, 1.0)
    proposal[proposal > 1 - SNAP] = 1.0
    proposal[proposal < SNAP] = 0.0
    return proposal


def _near_outputs(
    walk: _Walk,
    xs: NDArray[np.int64],
    ys: NDArray[np.int64],
    caps: Floats,
    flat: Floats,
    held: NDArray[np.bool_],
) -> list[_Outputs]:
    """Outputs of a walk within reach of their caps (pairs, 1), for the pairs (xs, ys).

    Entries at 1 whose release would exceed a cap are held there.
    """
    steps = len(walk.probabilities)
    near = []
    for t in range(steps + walk.ends):
        ratios = _ratios(walk, t, xs, ys)
        last = False
        if t < steps:
            # Later ratios are averages of those of the values still unreleased: if none of these is
            # within reach, none will be.
            last = not np.any(ratios[:, walk.probabilities[t] > 0.0] >= caps - BAND)
            entries = walk.entries[t]
            always = (entries >= 0) & (flat[entries] == 1.0)
            # A value whose release would exceed its limit stays redacted, and so gives no output.
            held[entries[always & np.any(ratios > caps - OVER, axis=0)]] = True
            ratios[:, always & held[entries]] = -np.inf
        pairs, outputs = np.nonzero(ratios >= caps - BAND)
        if len(pairs):
            excess = (ratios - caps)[pairs, outputs]
            near.append(_Outputs(t, pairs, outputs, ratios[pairs, outputs], excess))
        if last:
            break
    return near


def _ratios(walk: _Walk, t: int, xs: NDArray[np.int64], ys: NDArray[np.int64]) -> Floats:
    """(pairs, outputs) log-ratios of the first releases at a step, or of none to the end."""
    masses = (
        walk.reached[t]
        if t < len(walk.probabilities)
        else (walk.reached[t - 1] * walk.probabilities[t - 1]).sum(axis=1)[:, None]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(masses)
        return np.where(masses[xs] > 0, logs[xs] - logs[ys], -np.inf)
