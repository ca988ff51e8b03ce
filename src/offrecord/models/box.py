"""Box: a set of models, an interval for every one-step probability (docs/proofs/R1-two-values.md).

The promise then holds for every chain whose steps to the right of a secret have their kernels in
`forward`, and whose steps to the left, told backwards, have theirs in `backward`; they may change
from step to step.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats
from offrecord.models.checking import checked_order, numbers, shape_text, whole_number
from offrecord.models.lifted import lifted_back, lifted_kernel
from offrecord.models.walks import pattern_power

#: What is wrong with a set in which a transition may be possible or not.
TOO_FEW = (
    "too few transitions were seen to know that all of them happen, so the chain may never forget;"
    " merge rare values, or learn from more data"
)
STARTS = ("stationary", "settled", "any")
INTERVALS = ("clopper-pearson", "mixture")
LATEST = 1_000  #: record of a chain from which on a set may hold
#: Rows must be able to sum to 1, and the nominal probabilities to be inside, within this much.
_ROUNDING = 1e-12
_Pair: TypeAlias = tuple[ArrayLike, ArrayLike]


class Intervals(NamedTuple):
    """The least and the largest value of each of an array of probabilities."""

    low: Floats
    high: Floats

    def of(self, steps: NDArray[np.integer[Any]]) -> Intervals:
        """Those of some steps, by their numbers."""
        return Intervals(self.low[steps], self.high[steps])


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Box:
    """Intervals for the one-step probabilities of a chain, forwards and backwards in time.

    forward: two arrays shaped as a chain's transition, the least and the largest probabilities.
    backward: the same for steps back in time: of order m, the values of m records in the order of
    time, and last the value of the record before them. A leading axis holds a box for each step
    (or phase), told by the earlier of its two records.
    order: of the chain. start: what is known of how likely values are, for the left of a secret.
      "stationary": what `backward` says. "settled", "any" (two values only): kernels are known
      forwards alone, and the chain has been under way for long, or may start in any way (R4).
    confidence, interval: how sure it is that the true chain lies inside, and by which intervals,
    where it was learned.
    since: the record of a chain, counted from 1, from which on `backward` holds: what leads back to
    earlier ones is not known. Of order 1 only, with one box for every step.

    Raises InputError for anything that is no such set.
    """

    forward: Intervals
    backward: Intervals
    order: int
    start: str
    confidence: float | None
    interval: str | None
    since: int

    def __init__(
        self,
        forward: _Pair,
        backward: _Pair,
        order: int = 1,
        start: str = "stationary",
        confidence: float | None = None,
        interval: str | None = None,
        since: int = 1,
    ) -> None:
        order = checked_order(order)
        ahead, back = (
            _checked_intervals(name, pair, order)
            for name, pair in (("forward", forward), ("backward", backward))
        )
        if ahead.low.shape != back.low.shape:
            raise InputError(
                f"forward and backward must have the same shape, got {shape_text(ahead.low)} and"
                f" {shape_text(back.low)}"
            )
        object.__setattr__(self, "forward", ahead)
        object.__setattr__(self, "backward", back)
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "confidence", checked_confidence(confidence))
        object.__setattr__(self, "interval", checked_interval(interval))
        self._set_start(start)
        self._set_since(since)

    @classmethod
    def binary(cls, alpha: tuple[float, float], beta: tuple[float, float], **described: Any) -> Box:
        """Of the paper's chain: P(0→1) and P(1→0) in intervals; it is its own reverse."""
        (alpha_low, alpha_high), (beta_low, beta_high) = (
            _checked_pair(name, pair) for name, pair in (("alpha", alpha), ("beta", beta))
        )
        low = [[_rest(alpha_high), alpha_low], [beta_low, _rest(beta_high)]]
        high = [[_rest(alpha_low), alpha_high], [beta_high, _rest(beta_low)]]
        return cls((low, high), (low, high), **described)

    def _set_start(self, start: Any) -> None:
        if not isinstance(start, str) or start not in STARTS:
            raise InputError(f"start must be one of {', '.join(STARTS)}, got {start!r}")
        if start != "stationary" and (self.k != 2 or self.order != 1 or self.by_step):
            raise InputError(
                f'start "{start}" is for two values, order 1 and one box for every step'
            )
        object.__setattr__(self, "start", start)

    def _set_since(self, since: Any) -> None:
        since = whole_number("since", since)
        if not 1 <= since <= LATEST:
            raise InputError(f"since must be a record from 1 to {LATEST:,}, got {since}")
        if since > 1 and (self.order != 1 or self.by_step or self.start != "stationary"):
            raise InputError(
                'since above 1 is for order 1, one box for every step and start "stationary"'
            )
        object.__setattr__(self, "since", since)

    @property
    def k(self) -> int:
        """Number of values."""
        return int(self.forward.low.shape[-1])

    @property
    def by_step(self) -> int | None:
        """How many steps (or phases) have a box of their own; None where one serves all."""
        return len(self.forward.low) if self.forward.low.ndim == self.order + 2 else None

    @cached_property
    def is_its_own_reverse(self) -> bool:
        """Both directions have the same intervals, as for two values of a stationary chain."""
        return all(
            np.array_equal(ahead, back)
            for ahead, back in zip(self.forward, self.backward, strict=True)
        )

    @cached_property
    def has_unseen(self) -> bool:
        """Some transition may have probability 0 and may not: it was never seen."""
        return any(bool(np.any((pair.low == 0) & (pair.high > 0))) for pair in self.directions)

    @property
    def directions(self) -> tuple[Intervals, Intervals]:
        """Forward and backward intervals."""
        return self.forward, self.backward

    @cached_property
    def lifted(self) -> tuple[Intervals, Intervals]:
        """Both directions on tuples of `order` records, each interval no wider than rows that sum
        to 1 leave it; what cannot follow has the interval 0, 0.
        """
        ahead, back = (_tightened(*pair) for pair in self.directions)
        if self.order == 1:
            return ahead, back
        return Intervals(*map(lifted_kernel, ahead)), Intervals(*map(lifted_back, back))

    def can_follow(self, first: int, second: int) -> NDArray[np.bool_]:
        """(k^order, k^order) whether some model has tuple j at place `second` after i at `first`.

        Places count from 1, first ≤ second.
        """
        possible = self.lifted[0].high > 0
        if self.by_step is None:
            return pattern_power(possible, second - first)
        reached = np.eye(self.k, dtype=bool)
        for pattern in possible[first - 1 : second - 1]:
            reached = reached @ pattern
        return reached

    def along(self, phases: NDArray[np.integer[Any]]) -> Box:
        """The box of records that stand in these phases, one step apart, with a box a step."""
        steps = phases[:-1] if len(phases) > 1 else phases
        return Box(self.forward.of(steps), self.backward.of(steps), 1, "stationary", **self._made)

    def with_start(self, start: str) -> Box:
        """The same intervals, with another thing known of how likely values are. Forwards they hold
        at every record.
        """
        since = self.since if start == "stationary" else 1
        return Box(self.forward, self.backward, self.order, start, **self._made, since=since)

    @property
    def settled(self) -> Box:
        """The set of what is left of its chains from the record on since which it holds."""
        if self.since == 1:
            return self
        return Box(self.forward, self.backward, self.order, self.start, **self._made)

    def holds(self, nominal: Floats, *, back: bool = False) -> bool:
        """Whether probabilities shaped as those of one direction lie inside."""
        return not np.any(self._outside(nominal, back))

    def _outside(self, nominal: Floats, back: bool) -> NDArray[np.bool_]:
        low, high = self.directions[back]
        return np.asarray((nominal < low - _ROUNDING) | (nominal > high + _ROUNDING))

    def check_holds(self, name: str, nominal: Floats, *, back: bool = False) -> None:
        """InputError unless probabilities shaped as those of one direction lie inside."""
        low, high = self.directions[back]
        outside = self._outside(nominal, back)
        if np.any(outside):
            at = tuple(np.argwhere(np.broadcast_to(outside, low.shape))[0])
            given = np.broadcast_to(nominal, low.shape)[at]
            raise InputError(
                f"the set of models must hold the chain itself: its {name} probability"
                f" {given:.6g} is not in [{low[at]:.6g}, {high[at]:.6g}]"
            )

    # ---- files

    @property
    def _made(self) -> dict[str, Any]:
        return {"confidence": self.confidence, "interval": self.interval}

    def to_dict(self) -> dict[str, Any]:
        """What it is, as model files and certificates hold it."""
        return {
            "kind": "box",
            **self._made,
            "start": self.start,
            **({} if self.since == 1 else {"since": self.since}),
            "forward": [side.tolist() for side in self.forward],
            "backward": [side.tolist() for side in self.backward],
        }

    @classmethod
    def from_dict(cls, content: Any, order: int) -> Box:
        """From a file; InputError for anything else."""
        wanted = {"kind", "confidence", "interval", "start", "forward", "backward"}
        named = set(content) - {"since"} if isinstance(content, dict) else set()
        if named != wanted or content["kind"] != "box":
            raise InputError(
                f'"set" must be of kind "box" and hold {", ".join(sorted(wanted))}, and nothing'
                " else"
            )
        forward, backward_ = (_read_pair(name, content[name]) for name in ("forward", "backward"))
        made = content["confidence"], content["interval"]
        since = content.get("since", 1)
        return cls(forward, backward_, order, content["start"], *made, since=since)

    def __repr__(self) -> str:
        sure = "" if self.confidence is None else f" confidence={self.confidence:g}"
        return f"<Box k={self.k} order={self.order}{sure}>"


# ---- what is given


def _read_pair(name: str, value: Any) -> _Pair:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(f'"{name}" of a set must hold two arrays, the least and the largest')
    return value[0], value[1]


def _checked_pair(name: str, value: Any) -> tuple[float, float]:
    pair = numbers(name, value)
    if pair.shape != (2,):
        raise InputError(f"{name} must be an interval, two numbers, got {value!r}")
    low, high = pair.tolist()
    if not 0 <= low <= high <= 1:
        raise InputError(f"{name} must be an interval within 0 and 1, got {low:g} to {high:g}")
    return low, high


def _rest(share: float) -> float:
    """What a probability leaves of 1, by its decimals: as doubles, both may sum to more, and then a
    set that is one chain holds none.
    """
    return float(1 - Decimal(repr(share)))


def _checked_intervals(name: str, pair: _Pair, order: int) -> Intervals:
    low, high = (
        numbers(f"{name} ({end})", array) for end, array in zip(("low", "high"), pair, strict=True)
    )
    k = low.shape[-1] if low.ndim else 0
    by_step = low.ndim == order + 2
    if low.shape != high.shape or low.shape[by_step:] != (k,) * (order + 1) or k < 2:
        raise InputError(
            f"{name} must be two arrays of {order + 1} axes of k ≥ 2, or of such for each step, got"
            f" shapes {shape_text(low)} and {shape_text(high)}"
        )
    if not (np.all(low >= 0) and np.all(low <= high) and np.all(high <= 1)):
        at = tuple(np.argwhere(~((low >= 0) & (low <= high) & (high <= 1)))[0])
        raise InputError(
            f"{name} must hold intervals within 0 and 1, got {low[at]:g} to {high[at]:g}"
        )
    least, most = low.sum(axis=-1), high.sum(axis=-1)
    wrong = (least > 1 + _ROUNDING) | (most < 1 - _ROUNDING)
    if np.any(wrong):
        at = tuple(np.argwhere(wrong)[0])
        raise InputError(
            f"{name}: a row cannot sum to 1, its least probabilities sum to {least[at]:.6g} and its"
            f" largest to {most[at]:.6g}"
        )
    low.setflags(write=False)
    high.setflags(write=False)
    return Intervals(low, high)


def _tightened(low: Floats, high: Floats) -> Intervals:
    """What rows that sum to 1 leave of intervals: a probability is what the others leave of 1.

    Rounded outwards (docs/proofs/rounding.md); where nothing is gained, as given.
    """
    others_low = low.sum(axis=-1, keepdims=True) - low
    others_high = high.sum(axis=-1, keepdims=True) - high
    margin = low.shape[-1] ** 2 * 2.0**-52
    most, least = 1.0 - others_low + margin, 1.0 - others_high - margin
    # rows that can sum to 1 only up to rounding keep the interval that they have
    return Intervals(
        np.minimum(np.maximum(low, least), high), np.maximum(np.minimum(high, most), low)
    )


def checked_confidence(confidence: Any) -> float | None:
    """How sure a set is, if that is known; InputError unless it is between 0 and 1."""
    if confidence is None:
        return None
    number = isinstance(confidence, (int, float)) and not isinstance(confidence, bool)
    if not number or not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {confidence!r}")
    return float(confidence)


def checked_interval(interval: Any) -> str | None:
    """By which intervals a set was learned, if it was; InputError for others."""
    if interval is None or (isinstance(interval, str) and interval in INTERVALS):
        return interval
    raise InputError(f"interval must be one of {', '.join(INTERVALS)}, got {interval!r}")
