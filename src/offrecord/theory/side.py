"""Side: the records on one side of a secret, by distance, and what they tell about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain
from offrecord.theory.sets.side_set import SideSet

#: A chain that never forgets is followed this many matrix entries far; beyond, everything counts as
#: large leakage.
MAX_PROFILE = 4_000_000
_FIRST_LOOK = 64  # influences are computed for this many distances at least, and then for more
_STUCK = 32  # distances over which an influence that will fall further falls
_UNIT = 2.0**-53  # what rounding to the nearest float may change, relative to the number
#: Reversed kernels of a stationary chain add at most this many times what its walk charges itself
#: (docs/proofs/rounding.md, "Walks to the left").
_STATIONARY_REVERSE = 8.0

#: What a compiled walk visits: rows, lengths, index, step, count, opens (see _walk.py).
_Stretches: TypeAlias = tuple[Floats, Integers, int, int, int, bool]


@dataclass(frozen=True, eq=False)
class SideLeakage:
    """Directional leakage of one side (F1): the largest log-ratio of x over x' in worst[x, x'].

    distance, value: (k, k) where that output is met: the first release, or value −1 if nothing is
    released to the end, −2 if that is not known.
    rounding: no entry of worst is further than this from the true one. method: how it was found, of
    a set of models.
    """

    worst: Floats
    distance: Integers
    value: Integers
    rounding: float
    method: str | None = None

    @classmethod
    def none(cls, k: int) -> SideLeakage:
        """Of a side without an output that tells anything."""
        return cls(
            np.zeros((k, k)),
            np.zeros((k, k), dtype=np.int64),
            np.full((k, k), -1, dtype=np.int64),
            0.0,
        )


@dataclass(frozen=True, eq=False)
class Side:
    """The records at distance 1 … room from record `edge`, to the right (direction 1) or left (−1).

    For a chain of order m the walk is that of the lifted chain (F8): its states are m-tuples, of
    which a record on this side shows one value, and who sees that is taken to see all of the tuple.
    For a chain on hidden states likewise: who sees a value is taken to see the state.
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
        """(states,) the value a record shows in each state.

        The tuple's newest on the right, its oldest on the left.
        """
        return self.record_chain.coordinate(
            0 if self.direction < 0 else self.record_chain.order - 1
        )

    @cached_property
    def secret_values(self) -> NDArray[np.int64]:
        """(states,) the secret's value in each state at the origin; equal ones do not count."""
        if self.run or not self.record_chain.has_states:
            return np.arange(self.chain.k)
        return self.record_chain.coordinate(self.secret_place)

    @cached_property
    def models(self) -> SideSet | None:
        """The kernels that steps on this side may have, where a set of models is given."""
        box = self.record_chain.box
        return None if box is None else SideSet.of(box, self.origin, self.direction)

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """(k,) the values the record at the origin takes with positive probability.

        In a set of models any of them may.
        """
        if self.models is not None:
            return np.ones(self.chain.k, dtype=bool)
        return self.chain.support(self.origin)

    @cached_property
    def independent(self) -> bool:
        """Nothing on this side depends on the origin: whatever its value, the first step is alike.

        To the last bit: at ε = 0 rows that differ by rounding would be told apart
        (docs/proofs/rounding.md).
        """
        if self.room == 0 or self.support.sum() < 2:
            return True
        if self.models is not None:
            return self.models.is_independent
        rows = self.kernels(1)[0][self.support]
        return bool(np.all(rows == rows[0]))

    @property
    def closed_form(self) -> bool:
        """The paper's setting, where Proposition 1 gives every influence by itself."""
        return self.models is None and self.chain.is_paper_setting

    def kernels(self, count: int) -> Floats:
        """The kernels of the first `count` steps away from the origin, (1, k, k) if all alike.

        Of a set of models: those under which values stay longest, a good guess at the worst.
        """
        if self.models is not None:
            return self.models.stickiest[:count]
        if not self.chain.is_stationary and count * self.chain.k**2 > MAX_PROFILE:
            raise InputError(
                f"{count} records with a kernel each are too many to follow;"
                " give the chain its stationary start, or fewer records"
            )
        return np.ascontiguousarray(
            self.chain.kernels(self.origin, self.origin + self.direction * count)
        )

    def masses(self, count: int) -> Floats:
        """(count, k) distributions of the records at distances 1 … count."""
        if self.direction > 0:
            return self.record_chain.marginals(self.edge + 1, self.edge + count)
        return self.record_chain.marginals(self.edge - count, self.edge - 1)[::-1]

    # ---- influence at each distance

    @cached_property
    def _profile(self) -> dict[str, Floats]:
        """What has been computed by distance, as far as it was asked for."""
        return {}

    def _size(self, known: Floats | None, count: int) -> int:
        """For how many distances to compute when `count` are asked for.

        Twice as many as known at least: asking for one more, again and again, stays cheap.
        """
        return min(self.room, max(count, 2 * (0 if known is None else len(known)), _FIRST_LOOK))

    def likelihoods(self, count: int) -> Floats:
        """(count, k, k) log Pr(X at distance d = j | origin = x), each column's largest entry 0."""
        known = self._profile.get("likelihoods")
        if known is None or len(known) < count:
            size = self._size(known, count)
            known = _walked_likelihoods(self.kernels(size), self.support, size)
            self._profile["likelihoods"] = known
        return known[:count]

    def influence(self, count: int) -> Floats:
        """(count, k) pointwise influence at distances 1 … count; −∞ for a value never taken there.

        Of tuples or hidden states: the largest among those that show a value. Of a set of models:
        the largest.
        """
        if self.models is not None:
            return self._set_influence(count)
        if self.record_chain.has_states:
            return self._state_influence(count)
        if self.closed_form:
            return self._binary_influence(count)
        logs = self.likelihoods(count)
        # Each column's largest entry is 0, so the influence is less its smallest one.
        highest = 0.0 if self.support.sum() < 2 else -logs[:, self.support].min(axis=1)
        return np.where(np.isfinite(logs).any(axis=1), highest, -np.inf)

    def _set_influence(self, count: int) -> Floats:
        assert self.models is not None
        known = self._profile.get("influence")
        if known is None or len(known) < count:
            size = self._size(known, count)
            states, shown = self.models.influences(size), self.shown_value_of_state
            of_values = (states[:, shown == x].max(axis=1) for x in range(self.record_chain.k))
            # of tuples that tell the secret apart no value tells more than all of them
            apart = self._largest(self.pairs(size))[:, np.newaxis]
            known = np.minimum(np.stack(list(of_values), axis=1), apart)
            self._profile["influence"] = known
        return known[:count]

    def _largest(self, pairs: Floats) -> Floats:
        """(count,) the largest entry at each distance over pairs in which the secret differs."""
        values = self.secret_values
        apart = values[:, np.newaxis] != values
        return np.asarray(np.where(apart, pairs, 0.0).max(axis=(1, 2)))

    def _binary_influence(self, count: int) -> Floats:
        known = self._profile.get("influence")
        if known is None or len(known) < count:
            distances = np.arange(1, self._size(known, count) + 1)
            known = self._profile["influence"] = binary_influence(
                self.chain.alpha, self.chain.beta, distances
            )
        return known[:count]

    def _state_influence(self, count: int) -> Floats:
        logs = self.likelihoods(count)[:, self.support]
        groups = self.secret_values[self.support]
        names = np.unique(groups)
        highest = np.stack([logs[:, groups == g].max(axis=1) for g in names], axis=1)
        lowest = np.stack([logs[:, groups == g].min(axis=1) for g in names], axis=1)
        taken = np.isfinite(self.likelihoods(count)).any(axis=1)
        states = np.where(taken, 0.0, -np.inf)
        for a in range(len(names)):
            for b in range(len(names)):
                if a != b:
                    ratio = _differences(highest[:, a], lowest[:, b])
                    states = np.where(taken, np.maximum(states, ratio), -np.inf)
        shown = self.shown_value_of_state
        return np.stack(
            [states[:, shown == x].max(axis=1) for x in range(self.record_chain.k)], axis=1
        )

    def pairs(self, count: int) -> Floats:
        """(count, k, k) directional max-influence at each distance: x over x', any value."""
        if self.models is not None:
            known = self._profile.get("pairs")
            if known is None or len(known) < count:
                known = self._profile["pairs"] = self.models.windows(self._size(known, count))
            return np.asarray(known[:count])
        if self.closed_form:
            return self._binary_pairs(count)
        logs = self.likelihoods(count)
        out = np.zeros((count, self.chain.k, self.chain.k))
        possible = np.flatnonzero(self.support)
        for x in possible:
            for other in possible[possible != x]:
                out[:, x, other] = _differences(logs[:, x], logs[:, other]).max(axis=1)
        return out

    def _binary_pairs(self, count: int) -> Floats:
        """Proposition 1 by direction.

        x = 0 favours value 0 where (1 − α − β)^d is positive, and value 1 where it is negative.
        """
        low_high = self.influence(count)
        flips = (np.arange(1, count + 1) % 2 == 1) & (self.chain.alpha + self.chain.beta > 1)
        out = np.zeros((count, 2, 2))
        out[:, 0, 1] = np.where(flips, low_high[:, 1], low_high[:, 0])
        out[:, 1, 0] = np.where(flips, low_high[:, 0], low_high[:, 1])
        return out

    def delta_star(self, epsilon: float) -> int | None:
        """The paper's Δ*: the smallest distance with max-influence at most epsilon, or None.

        The max-influence never rises with the distance, so everything from there on is region S.
        """
        if self.independent:
            return 1 if self.room else None
        if epsilon <= 0:
            return None
        limit = self.horizon
        count = min(_FIRST_LOOK, limit)
        while True:
            largest = self._profile.get("largest")
            if largest is None or len(largest) < count:
                largest = self._profile["largest"] = self._max_influence(count)
            if largest[-1] <= epsilon:
                return int(np.argmax(largest <= epsilon)) + 1
            if len(largest) >= limit or self._is_stuck(largest):
                return None
            count = min(4 * len(largest), limit)

    def _max_influence(self, count: int) -> Floats:
        """(count,) the paper's max-influence at distances 1 … count."""
        if self.models is not None:
            return self._largest(self.pairs(count))
        return np.asarray(self.influence(count).max(axis=1))

    def _is_stuck(self, largest: Floats) -> bool:
        """A set with models that never forget: what was found no longer falls, to the last bit."""
        last = largest[-_STUCK:]
        return self.models is not None and len(last) == _STUCK and bool(np.all(last == last[0]))

    @property
    def horizon(self) -> int:
        """How many records are looked at: the room, or as far as a slow chain can be followed."""
        furthest = min(self.room, MAX_PROFILE // self.chain.k**2)
        if self.models is not None and self.models.horizon is not None:
            return min(furthest, self.models.horizon)
        return furthest

    # ---- leakage of a redaction of this side

    def counted(self, worst: Floats) -> float:
        """The largest entry over pairs of states in which the secret differs."""
        if not self.record_chain.has_states:
            return float(worst.max())
        values = self.secret_values
        return float(np.where(values[:, None] != values, worst, 0.0).max())

    def leakage(
        self, rows: Floats, lengths: Integers, *, opens: bool, index: int = 0, step: int = 1
    ) -> SideLeakage:
        """Exact directional leakage of stretches of redaction rows, walking away from the origin.

        The formula is `first_release.directional_leakage`. rows, lengths: rows[index],
        rows[index + step], … until the array's end; opens: a record follows that is never redacted,
        else the chain ends there.
        """
        if self.record_chain.has_states:
            rows = np.ascontiguousarray(rows[:, self.shown_value_of_state])
        count = len(rows) - index if step > 0 else index + 1
        if self.independent or (count == 0 and not opens):
            return SideLeakage.none(self.chain.k)
        if self.models is not None:
            return SideLeakage(*self.models.leakage((rows, lengths, index, step, count, opens)))
        kernels = self._kernels_met(rows, lengths, opens, index, step)
        walked = rows, lengths, index, step, count, opens
        found = _walk_of_two(kernels, walked) if self.chain.k == 2 else None
        if found is None:
            found = _walk_of_any(kernels, self.support, walked)
        worst, distance, value, rounding = found
        return SideLeakage(worst, distance, value, float(self._with_bayes(rounding, kernels)))

    def _kernels_met(
        self, rows: Floats, lengths: Integers, opens: bool, index: int, step: int
    ) -> Floats:
        """The kernels of a walk; where each step has its own, no more than it can visit."""
        if self.chain.is_stationary or (self.chain.is_homogeneous and self.direction > 0):
            return self.kernels(1)
        walked = rows[index:] if step > 0 else rows[index::-1]
        sizes = lengths[index:] if step > 0 else lengths[index::-1]
        free = np.flatnonzero(~walked.any(axis=1))  # a record that is never redacted ends the walk
        total = int(sizes[: free[0] + 1].sum()) if len(free) else int(sizes.sum()) + opens
        return self.kernels(min(total, self.room))

    def _with_bayes(self, rounding: float, kernels: Floats) -> float:
        """The rounding of a walk and what reversed kernels add to it (docs/proofs/rounding.md).

        Two values of a stationary chain are their own reverse: nothing is added. A walk that meets
        no output has no rounding.
        """
        if (
            self.direction > 0
            or rounding == 0.0
            or (self.chain.is_stationary and self.chain.k == 2)
        ):
            return rounding
        if self.chain.is_stationary:
            return (1.0 + _STATIONARY_REVERSE) * rounding
        # Two marginals an entry, each off by (k + 2) units for every record since the start, in
        # both entries of a ratio, at every step.
        return rounding + 4.0 * _UNIT * (self.chain.k + 2) * self.origin * len(kernels)


def _walked_likelihoods(kernels: Floats, support: NDArray[np.bool_], size: int) -> Floats:
    """(size, k, k) as `Side.likelihoods`, the same whether or not they were found for another room.

    Where all steps are alike, distances have what they have in a longer walk, unless that had to be
    careful. So one walk serves all rooms and budgets that a table, or a curve, asks for.
    """
    if len(kernels) == 1:
        further = max(_FIRST_LOOK, 1 << (size - 1).bit_length())
        if further * kernels[0].size <= MAX_PROFILE:
            ok, found = _walk_of_even_steps(kernels.tobytes(), support.tobytes(), further)
            if ok:
                return found[:size]
    ok, found = _walk_of_likelihoods(kernels, support, size, careful=False)
    return found if ok else _walk_of_likelihoods(kernels, support, size, careful=True)[1]


@lru_cache(maxsize=32)
def _walk_of_even_steps(kernel: bytes, support: bytes, size: int) -> tuple[bool, Floats]:
    """Given by the very numbers, as chains are made anew."""
    possible = np.frombuffer(support, dtype=bool).copy()  # loops are compiled for such arrays
    k = len(possible)
    kernels = np.frombuffer(kernel).reshape(1, k, k)
    ok, found = _walk_of_likelihoods(kernels, possible, size, careful=False)
    found.flags.writeable = False
    return ok, found


def _walk_of_likelihoods(
    kernels: Floats, support: NDArray[np.bool_], size: int, *, careful: bool
) -> tuple[bool, Floats]:
    """(size, k, k) likelihoods; False where ratios became too large for a walk without care."""
    from offrecord.theory import _walk

    with np.errstate(divide="ignore"):
        logs = np.log(kernels)
    ok, found = _walk.likelihoods.over(size * len(support) ** 2, logs, support, size, careful)
    return bool(ok), found


def _differences(logs: Floats, others: Floats) -> Floats:
    """logs − others, −∞ where the first is: what cannot occur under x has no ratio over x'."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(logs), logs - others, -np.inf)


def _walk_of_two(
    kernels: Floats, walked: _Stretches
) -> tuple[Floats, Integers, Integers, float] | None:
    """The walk for two values in plain products; None where numbers became too small for it."""
    from offrecord.theory import _walk

    ok, met, rounding = _walk.binary.over(_walk.visited(walked), kernels, walked)
    if not ok:
        return None
    high, high_at, high_value, low, low_at, low_value = met
    found = SideLeakage.none(2)
    with np.errstate(divide="ignore"):
        found.worst[0, 1] = max(float(np.log(high)), 0.0)
        found.worst[1, 0] = max(-float(np.log(low)), 0.0)
    found.distance[0, 1], found.distance[1, 0] = high_at, low_at
    found.value[0, 1], found.value[1, 0] = high_value, low_value
    return found.worst, found.distance, found.value, float(rounding)


def _walk_of_any(
    kernels: Floats, support: NDArray[np.bool_], walked: _Stretches
) -> tuple[Floats, Integers, Integers, float]:
    """The walk for any number of values; with logarithms throughout where ratios are too large."""
    from offrecord.theory import _walk

    with np.errstate(divide="ignore"):
        logs = np.log(kernels)
    given, visited = (logs, support, walked), _walk.visited(walked) * len(support) ** 2
    ok, worst, distance, value, rounding = _walk.general.over(visited, *given, False)
    if not ok:
        _, worst, distance, value, rounding = _walk.general.over(visited, *given, True)
    return np.maximum(worst, 0.0), distance, value, rounding


def binary_influence(alpha: float, beta: float, distances: NDArray[np.int64]) -> Floats:
    """(m, 2) Proposition 1 without cancellation: pointwise influence of 0 and 1 at each distance.

    With s = (1 − α − β)^Δ, value 0 has |log (1 + (α/β)·s) − log(1 − s)|, value 1 the same with β/α.
    """
    steps: Floats = np.asarray(distances, dtype=np.float64)
    gap = math.fsum((1.0, -alpha, -beta))
    if alpha + beta == 1.0:  # independent, as in MarkovChain.binary
        return np.zeros((len(steps), 2))
    log_size = _log_size(alpha, beta, gap)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        power = np.exp(steps * log_size)  # |s|
        odd = (steps % 2 == 1) & (gap < 0)  # where s is negative
        shortfall = -np.expm1(steps * log_size)  # 1 − |s|
        log_rest = np.where(
            odd, np.log1p(power), np.where(power > 0.5, np.log(shortfall), np.log1p(-power))
        )
        signed = np.where(odd, -power, power)
        columns = [
            np.abs(_log_top(own, other, signed, steps, abs(gap), log_size) - log_rest)
            for own, other in ((beta, alpha), (alpha, beta))
        ]
    return np.stack(columns).T  # column by column in memory: reductions over values are then fast


def _log_size(alpha: float, beta: float, gap: float) -> float:
    """log |1 − α − β|, from α + β or 2 − α − β where that is small, so that no digits are lost."""
    if gap > 0.5:
        return float(np.log1p(-(alpha + beta)))
    if gap < -0.5:
        return float(np.log1p(-((1.0 - alpha) + (1.0 - beta))))
    return float(np.log(abs(gap)))


def _log_top(
    own: float, other: float, signed: Floats, steps: Floats, size: float, log_size: float
) -> Floats:
    """log(1 + (other/own)·s), s = signed, |s| = size^steps."""
    ratio = other / own
    if ratio > 1e300:
        # Too large to be multiplied; 1 + ratio·s is then that product, as far as s > 0 can be told
        # from 0.
        return np.asarray(np.logaddexp(0.0, np.log(other) - np.log(own) + steps * log_size))
    # Where s < 0 brings 1 + ratio·s near 0, it is a sum of positive terms all the same:
    # 1 − ratio·|1 − α − β| = (α + β)(1 − other)/own, and what is gained beyond the first step.
    inner = (own + other) * (1.0 - other) / own - ratio * size * np.expm1((steps - 1) * log_size)
    return np.where(ratio * signed < -0.5, np.log(inner), np.log1p(ratio * signed))
