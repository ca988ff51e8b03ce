"""Side: the records on one side of a secret, by their distance from it, and what they tell about
it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain

#: A chain that never forgets is followed this many matrix entries far; beyond, everything counts as
#: large leakage.
MAX_PROFILE = 4_000_000


@dataclass(frozen=True, eq=False)
class SideLeakage:
    """Directional leakage of one side (F1): worst[x, x'] is the largest log-ratio of x over x'
    among its outputs.

    distance, value: (k, k) where that output is met: the first release, or value −1 if nothing is
    released to the end.
    rounding: no entry of worst is further than this from the true one.
    """

    worst: Floats
    distance: Integers
    value: Integers
    rounding: float


@dataclass(frozen=True, eq=False)
class Side:
    """The records at distance 1 … room from `edge` (a record, from 1), to the right (direction 1)
    or left (−1).

    For a chain of order m the walk is that of the lifted chain (F8): its states are m-tuples, of
    which a record on this side shows one value, and who sees that is taken to see all of the tuple.
    """

    record_chain: MarkovChain
    edge: int
    direction: int
    room: int
    run: bool = False  # the secret is a run of records: every two states at the origin differ in it
    secret_place: int = 0  # where in the tuple at the origin a single secret record stands

    @cached_property
    def chain(self) -> MarkovChain:
        """The first-order chain that is walked."""
        return self.record_chain.lifted

    @property
    def origin(self) -> int:
        """Where the walk begins, as a record of that chain."""
        return self.edge if self.direction < 0 else self.edge - self.record_chain.order + 1

    @cached_property
    def shown_value_of_state(self) -> NDArray[np.int64]:
        """(states,) the value a record shows in each state: the tuple's newest on the right, its
        oldest on the left.
        """
        return self.record_chain.coordinate(
            0 if self.direction < 0 else self.record_chain.order - 1
        )

    @cached_property
    def secret_values(self) -> NDArray[np.int64]:
        """(states,) the secret's value in each state at the origin; pairs with the same one do not
        count.
        """
        if self.run or self.record_chain.order == 1:
            return np.arange(self.chain.k)
        return self.record_chain.coordinate(self.secret_place)

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """(k,) the values the record at the origin takes with positive probability."""
        return self.chain.support(self.origin)

    @cached_property
    def independent(self) -> bool:
        """Nothing on this side depends on the origin: the first step is the same whatever its
        value.
        """
        if self.room == 0 or self.support.sum() < 2:
            return True
        rows = self.kernels(1)[0][self.support]
        return bool(np.all(rows == rows[0]))

    @property
    def closed_form(self) -> bool:
        """The paper's setting, where Proposition 1 gives every influence by itself."""
        return self.chain.is_paper_setting

    def kernels(self, count: int) -> Floats:
        """The kernels met on the first `count` steps away from the origin, (1, k, k) if they are
        all the same.
        """
        if not self.chain.is_stationary and count * self.chain.k**2 > MAX_PROFILE:
            raise InputError(
                f"{count} records with a kernel each are too many to follow;"
                " give the chain its stationary start, or fewer records"
            )
        return np.ascontiguousarray(
            self.chain.kernels(self.origin, self.origin + self.direction * count)
        )

    # ---- influence at each distance

    @cached_property
    def _profile(self) -> dict[str, Floats]:
        return {}

    def likelihoods(self, count: int) -> Floats:
        """(count, k, k) log Pr(X at distance d = j | origin = x), each column shifted so that its
        largest entry is 0.
        """
        from offrecord.theory import _walk

        known = self._profile.get("likelihoods")
        if known is None or len(known) < count:
            size = min(self.room, max(count, 2 * (0 if known is None else len(known)), 64))
            with np.errstate(divide="ignore"):
                logs = np.log(self.kernels(size))
            ok, known = _walk.likelihoods(logs, self.support, size, False)
            if not ok:
                _, known = _walk.likelihoods(logs, self.support, size, True)
            self._profile["likelihoods"] = known
        return known[:count]

    def influence(self, count: int) -> Floats:
        """(count, k) pointwise influence at distances 1 … count; −∞ for a value that is never taken
        there.

        Order above 1: the largest among the tuples that show a value.
        """
        if self.record_chain.order > 1:
            return self._tuple_influence(count)
        if self.closed_form:
            known = self._profile.get("influence")
            if known is None or len(known) < count:
                size = min(self.room, max(count, 2 * (0 if known is None else len(known)), 64))
                distances = np.arange(1, size + 1)
                known = self._profile["influence"] = binary_influence(
                    self.chain.alpha, self.chain.beta, distances
                )
            return known[:count]
        if self.support.sum() < 2:
            return np.where(np.isfinite(self.likelihoods(count)).any(axis=1), 0.0, -np.inf)
        lowest = self.likelihoods(count)[:, self.support].min(axis=1)
        return np.where(np.isfinite(self.likelihoods(count)).any(axis=1), -lowest, -np.inf)

    def _tuple_influence(self, count: int) -> Floats:
        logs = self.likelihoods(count)[:, self.support]
        groups = self.secret_values[self.support]
        names = np.unique(groups)
        highest = np.stack([logs[:, groups == g].max(axis=1) for g in names], axis=1)
        lowest = np.stack([logs[:, groups == g].min(axis=1) for g in names], axis=1)
        taken = np.isfinite(self.likelihoods(count)).any(axis=1)
        tuples = np.where(taken, 0.0, -np.inf)
        for a in range(len(names)):
            for b in range(len(names)):
                if a != b:
                    with np.errstate(invalid="ignore"):
                        ratio = np.where(
                            np.isfinite(highest[:, a]), highest[:, a] - lowest[:, b], -np.inf
                        )
                    tuples = np.where(taken, np.maximum(tuples, ratio), -np.inf)
        return np.stack(
            [
                tuples[:, self.shown_value_of_state == x].max(axis=1)
                for x in range(self.record_chain.k)
            ],
            axis=1,
        )

    def pairs(self, count: int) -> Floats:
        """(count, k, k) directional max-influence: the largest log-ratio of x over x' among the
        values at each distance.
        """
        if self.closed_form:
            low_high = self.influence(count)
            out = np.zeros((count, 2, 2))
            # x = 0 favours value 0 where (1 − α − β)^d > 0, and value 1 where it is negative.
            flips = (np.arange(1, count + 1) % 2 == 1) & (self.chain.alpha + self.chain.beta > 1)
            out[:, 0, 1] = np.where(flips, low_high[:, 1], low_high[:, 0])
            out[:, 1, 0] = np.where(flips, low_high[:, 0], low_high[:, 1])
            return out
        logs = self.likelihoods(count)
        out = np.zeros((count, self.chain.k, self.chain.k))
        for x in np.flatnonzero(self.support):
            for other in np.flatnonzero(self.support):
                if x != other:
                    with np.errstate(invalid="ignore"):
                        ratios = np.where(
                            np.isfinite(logs[:, x]), logs[:, x] - logs[:, other], -np.inf
                        )
                    out[:, x, other] = ratios.max(axis=1)
        return out

    def delta_star(self, epsilon: float) -> int | None:
        """The smallest distance whose max-influence is at most epsilon (the paper's Δ*); None if no
        record of this side has it.

        The max-influence never rises with the distance, so everything from there on is region S.
        """
        if self.independent:
            return 1 if self.room else None
        if epsilon <= 0:
            return None
        limit = self.horizon
        count = min(64, limit)
        while True:
            largest = self._profile.get("largest")
            if largest is None or len(largest) < count:
                largest = self._profile["largest"] = self.influence(count).max(axis=1)
            if largest[-1] <= epsilon:
                return int(np.argmax(largest <= epsilon)) + 1
            if len(largest) >= limit:
                return None
            count = min(4 * len(largest), limit)

    @property
    def horizon(self) -> int:
        """How many records are looked at: all of the room, unless the chain forgets more slowly
        than can be followed.
        """
        return min(self.room, MAX_PROFILE // self.chain.k**2)

    def masses(self, count: int) -> Floats:
        """(count, k) distributions of the records at distances 1 … count."""
        if self.direction > 0:
            return self.record_chain.marginals(self.edge + 1, self.edge + count)
        return self.record_chain.marginals(self.edge - count, self.edge - 1)[::-1]

    # ---- leakage of a redaction of this side

    def counted(self, worst: Floats) -> float:
        """The largest entry over pairs of states in which the secret differs."""
        if self.record_chain.order == 1:
            return float(worst.max())
        values = self.secret_values
        return float(np.where(values[:, None] != values, worst, 0.0).max())

    def leakage(
        self, rows: Floats, lengths: Integers, *, opens: bool, index: int = 0, step: int = 1
    ) -> SideLeakage:
        """Exact directional leakage (F1) of stretches of redaction rows met when walking away from
        the origin.

        rows, lengths: rows[index], rows[index + step], … until the array's end; opens: a record
        follows that is never redacted, else the chain ends there.
        """
        from offrecord.theory import _walk

        k = self.chain.k
        if self.record_chain.order > 1:
            rows = np.ascontiguousarray(rows[:, self.shown_value_of_state])
        count = len(rows) - index if step > 0 else index + 1
        nothing = SideLeakage(
            np.zeros((k, k)),
            np.zeros((k, k), dtype=np.int64),
            np.full((k, k), -1, dtype=np.int64),
            0.0,
        )
        if self.independent or (count == 0 and not opens):
            return nothing
        if self.chain.is_stationary or (self.chain.is_homogeneous and self.direction > 0):
            kernels = self.kernels(1)
        else:
            walked = rows[index:] if step > 0 else rows[index::-1]
            sizes = lengths[index:] if step > 0 else lengths[index::-1]
            frees = np.flatnonzero(
                ~walked.any(axis=1)
            )  # the walk ends at a record that is never redacted
            total = int(sizes[: frees[0] + 1].sum()) if len(frees) else int(sizes.sum()) + opens
            kernels = self.kernels(min(total, self.room))
        if k == 2:
            ok, high, high_at, high_value, low, low_at, low_value, rounding = _walk.binary(
                kernels, rows, lengths, index, step, count, opens
            )
            if ok:
                with np.errstate(divide="ignore"):
                    nothing.worst[0, 1] = max(float(np.log(high)), 0.0)
                    nothing.worst[1, 0] = max(-float(np.log(low)), 0.0)
                nothing.distance[0, 1], nothing.distance[1, 0] = high_at, low_at
                nothing.value[0, 1], nothing.value[1, 0] = high_value, low_value
                return SideLeakage(
                    nothing.worst,
                    nothing.distance,
                    nothing.value,
                    self._with_bayes(rounding, kernels),
                )
        with np.errstate(divide="ignore"):
            logs = np.log(kernels)
        given = logs, self.support, rows, lengths, index, step, count, opens
        ok, worst, at, value, rounding = _walk.general(*given, False)
        if not ok:
            ok, worst, at, value, rounding = _walk.general(*given, True)
        return SideLeakage(np.maximum(worst, 0.0), at, value, self._with_bayes(rounding, kernels))

    def _with_bayes(self, rounding: float, kernels: Floats) -> float:
        """The rounding of a walk and what reversed kernels add to it: each entry is off as much as
        two marginals are.

        Stationary ones are accurate to 2k units or so, and those of two values are the chain's own;
        others have come a record's way from the start. A walk that meets no output has no rounding.
        """
        if (
            self.direction > 0
            or rounding == 0.0
            or (self.chain.is_stationary and self.chain.k == 2)
        ):
            return rounding
        if self.chain.is_stationary:
            return (
                9.0 * rounding
            )  # a step of the walk itself counts for at least an eighth of what that adds
        return rounding + 4.0 * 2.0**-53 * (self.chain.k + 2) * self.origin * len(kernels)


def binary_influence(alpha: float, beta: float, distances: NDArray[np.int64]) -> Floats:
    """(m, 2) Proposition 1: pointwise influence of the values 0 and 1 at each distance, without
    cancellation.

    With s = (1 − α − β)^Δ, value 0 has |log (1 + (α/β)·s) − log(1 − s)|, value 1 the same with β/α.
    """
    distances = np.asarray(distances, dtype=np.float64)
    gap = math.fsum((1.0, -alpha, -beta))
    size = abs(gap)
    if alpha + beta == 1.0:  # independent, as in MarkovChain.binary
        return np.zeros((len(distances), 2))
    if gap > 0.5:
        log_size = np.log1p(-(alpha + beta))
    elif gap < -0.5:
        log_size = np.log1p(-((1.0 - alpha) + (1.0 - beta)))
    else:
        log_size = np.log(size)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        power = np.exp(distances * log_size)
        odd = (distances % 2 == 1) & (gap < 0)
        signed = np.where(odd, -power, power)
        shortfall = -np.expm1(distances * log_size)  # 1 − |s|
        log_rest = np.where(
            odd, np.log1p(power), np.where(power > 0.5, np.log(shortfall), np.log1p(-power))
        )
        columns = []
        for own, other in ((beta, alpha), (alpha, beta)):
            ratio = other / own
            # 1 + ratio·s for s < 0, as a sum of positive terms:
            # 1 − ratio·|λ| = (α + β)(1 − other)/own
            inner = (alpha + beta) * (1.0 - other) / own - ratio * size * np.expm1(
                (distances - 1) * log_size
            )
            log_top = np.where(ratio * signed < -0.5, np.log(inner), np.log1p(ratio * signed))
            if ratio > 1e300:
                # too large to be multiplied; 1 + ratio·s is then that product, as far as s > 0
                # can be told from 0
                log_top = np.logaddexp(0.0, np.log(other) - np.log(own) + distances * log_size)
            columns.append(np.abs(log_top - log_rest))
    return np.stack(columns).T  # column by column in memory: reductions over values are then fast
