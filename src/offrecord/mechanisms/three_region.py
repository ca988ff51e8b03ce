"""ThreeRegion: the paper's 3R mechanisms (Sec. IV), for any finite alphabet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.mechanisms._constant import found_constant
from offrecord.mechanisms.local.side_mechanism import SideMechanism
from offrecord.mechanisms.local.stretches import Sides, Stretches
from offrecord.models.base import Floats, Integers
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.side import Side

TUNINGS: tuple[str, ...] = ("relaxed", "convex", "constant")
QUICK_TUNINGS = TUNINGS[:2]  #: those that go by influences, and ask for no leakage
SPLITS = ("best", "even")
#: split="best" tries this many evenly spaced shares of ε for the left side, 0, ½ and 1 among them.
SHARES = 201


@dataclass(frozen=True)
class ThreeRegion(SideMechanism):
    """Redact L always, S never, and in M the values with large influence always, the others with
    probability q_t.

    Theorem 1 says that this is private, and what it releases; here both are computed exactly.

    tuning: how q_t is chosen on each side, within that side's share of ε.
      "relaxed": the closed form of Sec. IV-C, one q.
      "convex": the programme of App. A, min Σ q_t under the relaxed leakage bound, solved in closed
      form (F13).
      "constant": one q for all of a side's M, the smallest whose exact leakage is within the share.
    split: the left side's share of ε.
      "even": ½, as in the paper. "best": no worse than 201 evenly spaced shares. Or a number in
      [0, 1]. A side without records takes no share.

    Takes every chain.
    """

    tuning: str = "constant"
    split: str | float = "best"

    names: ClassVar[tuple[str, ...]] = tuple(f"3r-{tuning}" for tuning in TUNINGS)

    def __post_init__(self) -> None:
        if self.tuning not in TUNINGS:
            raise InputError(f"tuning must be one of {', '.join(TUNINGS)}, got {self.tuning!r}")
        if isinstance(self.split, str):
            if self.split not in SPLITS:
                raise InputError(
                    f"split must be best, even or a number from 0 to 1, got {self.split!r}"
                )
        elif (
            isinstance(self.split, bool)
            or not isinstance(self.split, (int, float))
            or not 0 <= self.split <= 1
        ):
            raise InputError(f"split must be best, even or a number from 0 to 1, got {self.split}")

    @property
    def name(self) -> str:
        """The name on the command line."""
        return f"3r-{self.tuning}"

    def sides(self, problem: Problem, secret: Secret, left: Side, right: Side) -> Sides:
        """The cheapest of the shares tried; O(window·k³) for each."""
        left_shares, right_shares = self._shares(problem.epsilon, left.room, right.room)
        left_plans = {share: self.side(left, share) for share in left_shares}
        # Both sides of the paper's chain are alike as far as a plan does not meet the chain's end.
        alike = {
            s: p
            for s, p in left_plans.items()
            if left.closed_form and p.size < min(left.room, right.room)
        }
        right_plans = {s: alike[s] if s in alike else self.side(right, s) for s in right_shares}
        left_costs = [left_plans[s].cost(left) for s in left_shares]
        right_costs = [right_plans[s].cost(right) for s in right_shares]
        middle = (len(left_shares) - 1) / 2
        best = min(
            range(len(left_shares)), key=lambda i: (left_costs[i] + right_costs[i], abs(i - middle))
        )
        return left_plans[left_shares[best]], right_plans[right_shares[best]]

    def _shares(self, epsilon: float, left: int, right: int) -> tuple[list[float], list[float]]:
        """The shares of ε to be tried for the left side, and for the right beside each."""
        if left == 0 or right == 0:
            return [epsilon], [epsilon]
        if self.split == "best":
            shares = (epsilon * np.arange(SHARES) / (SHARES - 1)).tolist()
            return shares, shares[::-1]
        share = 0.5 if self.split == "even" else float(self.split)
        return [epsilon * share], [epsilon - epsilon * share]

    def side(self, side: Side, share: float) -> Stretches:
        """The plan for one side within its share of ε."""
        medium = _Medium.of(side, share)
        if medium is None:
            return Stretches.always(
                side.record_chain.k, (side.delta_star(share) or side.room + 1) - 1
            )
        if self.tuning == "constant":
            return medium.constant(share)
        slack = share - medium.deltas
        if self.tuning == "relaxed":
            return medium.plan(np.exp(-np.min(slack / np.arange(1, len(slack) + 1))))
        return medium.plan(np.exp(-convex_minorant_slopes(slack)))


def convex_minorant_slopes(heights: Floats) -> Floats:
    """(m,) slopes of the greatest convex minorant of (0, 0), (1, heights[0]), …, (m, heights[m −
    1]) (F13).

    They are the isotonic regression of the heights' increments.
    """
    from scipy.optimize import isotonic_regression

    return np.maximum(isotonic_regression(np.diff(heights, prepend=0.0)).x, 0.0)


@dataclass(frozen=True, eq=False)
class _Medium:
    """Regions L and M of one side at a share of ε: which values may be released where.

    releasable: (m, k) for stretches of `lengths` records; opens: region S follows. deltas: (|M|,)
    the paper's δ_t.
    """

    side: Side
    releasable: NDArray[np.bool_]
    lengths: Integers
    opens: bool
    deltas: Floats

    @classmethod
    def of(cls, side: Side, share: float) -> _Medium | None:
        """None where no record is in M."""
        if share <= 0 or side.independent:
            return None
        reach = side.delta_star(share)
        influence = side.influence(reach or side.horizon)
        inner = influence[: reach - 1] if reach else influence
        releasable = inner <= share
        medium = np.flatnonzero((releasable & (inner > -np.inf)).any(axis=1))
        if len(medium) == 0:
            return None
        # δ_t speaks of the values that a record may release
        largest = np.where(releasable, inner, -np.inf).max(axis=1)
        following = influence[reach - 1].max() if reach else 0.0
        keep = np.zeros_like(releasable)
        keep[medium] = releasable[medium]
        changes = np.flatnonzero(np.any(keep[1:] != keep[:-1], axis=1)) + 1
        starts = np.concatenate(([0], changes, [len(keep)]))
        lengths = np.diff(starts)
        beyond = 0 if reach else side.room - len(inner)
        rows = keep[starts[:-1]]
        if beyond:  # a chain that never forgets: what is not followed stays redacted
            rows = np.vstack((rows, np.zeros((1, side.record_chain.k), dtype=bool)))
            lengths = np.append(lengths, beyond)
        deltas = np.append(largest[medium[1:]], following)
        return cls(side, rows, lengths, reach is not None, deltas)

    def plan(self, q: float | Floats) -> Stretches:
        """Redact releasable values with probability q: one number, or one for each record of M in
        order of distance.
        """
        q = np.minimum(np.asarray(q) * (1 + 2.0**-50), 1.0)  # rounded up, which is always safe (F3)
        if q.ndim == 0:
            return Stretches(np.where(self.releasable, q, 1.0), self.lengths)
        medium = self.releasable.any(axis=1)
        rows = np.repeat(self.releasable, np.where(medium, self.lengths, 1), axis=0)
        each = np.ones(len(rows))
        each[rows.any(axis=1)] = q
        lengths = np.repeat(np.where(medium, 1, self.lengths), np.where(medium, self.lengths, 1))
        return Stretches(np.where(rows, each[:, np.newaxis], 1.0), lengths)

    def constant(self, share: float) -> Stretches:
        """The smallest private constant q, to the last few bits or 2^-40: leakage never rises with
        q (F3).
        """
        if self.side.closed_form:
            given = self.side.kernels(1), self.releasable, self.lengths, self.opens, share
            q = found_constant(*given)
            if q is not None:
                return Stretches(np.where(self.releasable, q, 1.0), self.lengths)
        return self._searched(share)

    def _searched(self, share: float) -> Stretches:
        """The same by Brent's method, for any chain."""
        from scipy.optimize import brentq

        @cache
        def excess(q: float) -> float:
            found = self.side.leakage(
                np.where(self.releasable, q, 1.0), self.lengths, opens=self.opens
            )
            return min(self.side.counted(found.worst), share + 100.0) - share

        least, most = 2.0**-40, 1.0 - 2.0**-53
        if excess(most) > 0.0:
            return self.plan(1.0)
        if excess(least) <= 0.0:
            q = 0.0 if excess(0.0) <= 0.0 else least
            return Stretches(np.where(self.releasable, q, 1.0), self.lengths)
        # where bounds over a set are not smooth it may not converge: what follows makes it private
        near = 4 * float(np.finfo(float).eps)
        q = float(brentq(excess, least, most, xtol=2.0**-60, rtol=near, disp=False))
        step = 2.0**-52
        while q < 1.0 and excess(q) > 0.0:
            q, step = min(q * (1 + step), 1.0), 2 * step
        return Stretches(np.where(self.releasable, q, 1.0), self.lengths)
