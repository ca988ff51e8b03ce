"""ThreeRegion: the paper's 3R mechanisms (Sec. IV), for any finite alphabet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.mechanisms.local_mechanism import LocalMechanism, Sides, always
from offrecord.models.base import Floats
from offrecord.theory.one_side import OneSide
from offrecord.theory.problem import Problem, Secret

TUNINGS: tuple[str, ...] = ("relaxed", "convex", "constant")
SPLITS = ("best", "even")
#: split="best" tries this many evenly spaced shares of ε for the left side, 0, ½ and 1 among them.
SHARES = 201
_LEAST = 2.0**-40  # q below which only 0 is tried
_MOST_LOOKS = 100  # in the search for q; a dozen are enough, halving alone would take 60
_CLOSE = 2.0**-47  # how close log q, at least −28, comes to the smallest one
_BEYOND = 100.0  # leakages further than this above the share are all alike
_LONGEST = 100_000  # records of a side of a chain that never forgets in which M is looked for


@dataclass(frozen=True)
class ThreeRegion(LocalMechanism):
    """Redact L always, S never, and in M the values with large influence always, the others with
    probability q_t.

    Theorem 1 says that this is private, and what it releases; here both are computed exactly.

    tuning: how q_t is chosen on each side, within that side's share of ε.
      "relaxed": the closed form of Sec. IV-C, one q.
      "convex": the convex program of App. A, min Σ q_t under the relaxed leakage bound, solved in
      closed form (F13).
      "constant": one q for all of a side's M, the smallest whose exact leakage is within the share.
    split: the left side's share of ε.
      "even": ½, as in the paper. "best": no worse than 201 evenly spaced shares. Or a number in
      [0, 1]. A side without records takes no share.

    Takes every chain of order 1.
    """

    tuning: str = "constant"
    split: str | float = "best"

    def __post_init__(self) -> None:
        if self.tuning not in TUNINGS:
            raise InputError(f"tuning must be one of {', '.join(TUNINGS)}, got {self.tuning!r}")
        is_number = isinstance(self.split, (int, float)) and not isinstance(self.split, bool)
        if not (0 <= float(self.split) <= 1 if is_number else self.split in SPLITS):
            raise InputError(
                f"--split must be best, even or a number from 0 to 1, got {self.split!r}"
            )

    @property
    def name(self) -> str:
        """The name on the command line."""
        return f"3r-{self.tuning}"

    def sides(self, problem: Problem, secret: Secret) -> Sides:
        """The cheapest of the shares tried."""
        left, right = OneSide.both(problem, secret)
        left_shares, right_shares = self._shares(problem.epsilon, left.margin, right.margin)
        known = dict(zip(left_shares, self._plans(left, left_shares), strict=True))
        # both sides of the paper's chain are alike as far as a plan does not meet the chain's end
        near = min(left.margin, right.margin) if problem.chain.is_paper_setting else 0
        alike = {share: plan for share, plan in known.items() if len(plan.rows) < near}
        rest = [share for share in right_shares if share not in alike]
        alike.update(zip(rest, self._plans(right, rest), strict=True))
        plans = [known[one] for one in left_shares], [alike[one] for one in right_shares]
        costs = [a.cost + b.cost for a, b in zip(*plans, strict=True)]
        middle = (len(costs) - 1) / 2
        best = min(range(len(costs)), key=lambda i: (costs[i], abs(i - middle)))
        return plans[0][best].rows, plans[1][best].rows

    # The shares of ε to be tried for the left side, and for the right beside each.
    def _shares(self, epsilon: float, left: int, right: int) -> tuple[list[float], list[float]]:
        if left == 0 or right == 0:
            return [epsilon], [epsilon]
        if self.split == "best":
            shares = (epsilon * np.arange(SHARES) / (SHARES - 1)).tolist()
            return shares, shares[::-1]
        share = 0.5 if self.split == "even" else float(self.split)
        return [epsilon * share], [epsilon - epsilon * share]

    # What is redacted on a side within each share.
    def _plans(self, side: OneSide, shares: list[float]) -> list[_Plan]:
        mediums = [_Medium.of(side, share) for share in shares]
        chances = iter(self._chances(side, [one for one in mediums if one is not None]))
        found = []
        for medium, share in zip(mediums, shares, strict=True):
            if medium is None:  # all of a side up to region S
                reach = (side.delta_star(share) or side.margin + 1) - 1
                found.append(_Plan(always(reach, side.chain.k), float(reach)))
            else:
                rows = medium.rows(next(chances))
                found.append(_Plan(rows, side.cost(rows)))
        return found

    def _chances(self, side: OneSide, mediums: list[_Medium]) -> Iterable[Floats]:
        if self.tuning == "constant":
            return _constants(side, mediums)
        return [one.relaxed() if self.tuning == "relaxed" else one.convex() for one in mediums]


class _Plan(NamedTuple):
    """Rows of one side by distance, and the redactions they come to."""

    rows: Floats
    cost: float


class _Medium(NamedTuple):
    """Regions L and M of one side at a share of ε.

    releasable: (R, k) which values may be released. slack: (|M|,) the share less the paper's δ_t.
    share: of ε.
    """

    releasable: NDArray[np.bool_]
    slack: Floats
    share: float

    @classmethod
    def of(cls, side: OneSide, share: float) -> _Medium | None:
        """None where no record is in M."""
        if share <= 0 or side.is_independent:
            return None
        reach = side.delta_star(share)
        influence = side.influence(reach or min(side.margin, _LONGEST))
        inner = influence[: reach - 1] if reach else influence
        releasable = inner <= share
        medium = np.flatnonzero((releasable & (inner > -np.inf)).any(axis=1))
        if len(medium) == 0:
            return None
        # δ_t speaks of the values that a record may release
        largest = np.where(releasable, inner, -np.inf).max(axis=1)
        following = influence[reach - 1].max() if reach else 0.0
        keep = np.zeros((reach - 1 if reach else side.margin, side.chain.k), dtype=bool)
        # region M: some values have influence within the share (Sec. IV-A)
        keep[medium] = releasable[medium]
        return cls(keep, share - np.append(largest[medium[1:]], following), share)

    def rows(self, q: float | Floats) -> Floats:
        """Redact releasable values with probability q: one number, or one for each record of M."""
        medium = np.asarray(self.releasable.any(axis=1))
        each = np.ones(len(medium))
        each[medium] = np.minimum(np.asarray(q), 1.0)
        return np.where(self.releasable, each[:, np.newaxis], 1.0)

    def relaxed(self) -> Floats:
        """The closed form of Sec. IV-C, rounded up, which is always safe (F3)."""
        q = np.exp(-np.min(self.slack / np.arange(1, len(self.slack) + 1)))
        return np.asarray(q * (1 + 2.0**-50))

    def convex(self) -> Floats:
        """(|M|,) the solution of App. A, rounded up."""
        return np.asarray(np.exp(-convex_minorant_slopes(self.slack)) * (1 + 2.0**-50))


def convex_minorant_slopes(heights: Floats) -> Floats:
    """(m,) slopes of the greatest convex minorant of (0, 0), (1, heights[0]), … (F13)."""
    from scipy.optimize import isotonic_regression

    # they are the isotonic regression of the heights' increments
    return np.maximum(isotonic_regression(np.diff(heights, prepend=0.0)).x, 0.0)


# (B,) the smallest private constant q for each share: leakage never rises with q (F3).
def _constants(side: OneSide, mediums: list[_Medium]) -> Floats:
    if not mediums:
        return np.empty(0)
    reach = max(len(one.releasable) for one in mediums)
    shares = np.array([one.share for one in mediums])
    base = np.zeros((len(mediums), reach, side.chain.k))  # a released record ends the walk
    soft = np.zeros(base.shape, dtype=bool)
    for i, one in enumerate(mediums):
        soft[i, : len(one.releasable)] = one.releasable
        base[i, : len(one.releasable)] = 1.0

    def excess(q: Floats) -> Floats:
        rows = np.where(soft, q[:, np.newaxis, np.newaxis], base)
        return np.asarray(np.minimum(side.worst(rows) - shares, _BEYOND))

    return _smallest_roots(excess, len(mediums))


# (count,) the least q at which each excess is at most 0; it falls about with log q. By the Illinois
# method with a bracket, which ends within the last bits of log q.
def _smallest_roots(excess: Callable[[Floats], Floats], count: int) -> Floats:
    low, high = np.full(count, np.log(_LEAST)), np.zeros(count)
    above, below = excess(np.exp(low)), excess(np.exp(high))
    high, low = np.where(above <= 0, low, high), np.where(below > 0, high, low)
    before = np.zeros(count)
    for step in range(_MOST_LOOKS):
        width = high - low
        if np.all(width <= _CLOSE):
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            at = (low * below - high * above) / (below - above)
        middle = (low + high) / 2
        at = np.where(np.isfinite(at) & (step % 3 != 2), at, middle)
        # a little to the far side, so that the other end of the bracket moves too
        at = np.clip(at + np.sign(middle - at) * _CLOSE / 2, low, high)
        found = excess(np.exp(at))
        good = found <= 0
        moved = np.where(good, 1.0, -1.0)
        again = moved == before
        above = np.where(good, np.where(again, above / 2, above), found)
        below = np.where(good, found, np.where(again, below / 2, below))
        low, high, before = np.where(good, low, at), np.where(good, at, high), moved
    q = np.exp(high)
    nothing = excess(np.zeros(count)) <= 0
    return np.where(nothing & (q <= 2 * _LEAST), 0.0, q)
