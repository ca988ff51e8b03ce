"""The menu: all sides that the secrets of one model and budget may take."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from offrecord.mechanisms.owner.designing.between import asked_gaps, gap_stopping
from offrecord.mechanisms.owner.designing.labels import stopping_pair
from offrecord.mechanisms.owner.designing.sides import (
    Effort,
    closed_side,
    effort_for,
    stopping_side,
    window_side,
)
from offrecord.mechanisms.owner.stopping import (
    GapStopping,
    Option,
    Stopping,
    StoppingPair,
    StoppingSide,
    is_shorter,
)
from offrecord.mechanisms.owner.ways import Ways
from offrecord.processes.crew import Work
from offrecord.theory.problem import Secret

if TYPE_CHECKING:
    from offrecord.mechanisms.owner.designing.set_referee import Verdicts

#: Shares of ε that a side may have: half of it serves every cluster, more those in which no secret
#: is near both ends (O11), and all of it those with nothing on the other side.
HALF, WHOLE = 0.5, 1.0
MORE = (0.6, 0.7, 0.8, 0.9)
PAIR = 0.0  #: stands for both sides in turn
_FEW_VALUES = 3  # up to which clusters have all shares
_QUICK_VALUES = 5  # up to which sides with all of ε have programmes, too
_PAIRED_VALUES = 5  # up to which both sides may go in turn
#: For more values than a few, pairs are made where no walk is longer than this.
_PAIRED_REACH = 12
_LEVELS_OVER_SETS = 24
_SPARE = 1e-6  # of the budget of a window over a set
_MOST = 100.0  # of a budget: beyond, nothing is withheld that floats could tell

_Sides: TypeAlias = tuple[StoppingSide | None, StoppingSide | None]
_Judged: TypeAlias = tuple[_Sides, "Verdicts"]


@dataclass(frozen=True, eq=False)
class Menu:
    """Sides that are made one after the other, and kept.

    window: what the best data-independent mechanism redacts to the left and right in unlimited
    room, None where that is not known: the menu redacts no more. only: the secret that has its
    chain to itself, and how many records that has, if it is to serve no other: then nothing is made
    that it would not take. in_turn: both sides of a single record may go in turn.
    """

    ways: Ways
    epsilon: float
    window: tuple[int, int] | None = None
    only: tuple[Secret, int] | None = None
    in_turn: bool = True
    made: dict[float, _Sides] = field(default_factory=dict)
    pairs: list[StoppingPair | None] = field(default_factory=list)
    lengths: set[int] = field(default_factory=set)
    adopted: list[Stopping] = field(default_factory=list)
    gaps: dict[int, GapStopping] = field(default_factory=dict)

    @cached_property
    def stopping(self) -> Stopping:
        """All that was asked for, with what the model says of it."""
        gaps = tuple(self._gap(length) for length in self._asked)
        if self.adopted:
            known = self.adopted[0]
            others = (gap for gap in known.gaps if gap.length not in self._asked)
            every = sorted((*gaps, *others), key=lambda gap: gap.length)
            return self.ways.told_of(replace(known, gaps=tuple(every)))
        base = self._base
        options = [base]
        for share in self.tasks[1:]:
            left, right = self._both(share) if share else (None, None)
            if left is not None and right is not None:
                options.append((left, right))
        if self._is_near_an_end:
            options += self._one_sided()
        kept = [option for option in options[1:] if is_shorter(option, base)]
        pair = self._pair() if PAIR in self.tasks else None
        return self.ways.told_of(Stopping(self.epsilon, (base, *kept), pair, gaps))

    def adopt(self, known: Stopping) -> None:
        """Take a menu that was made before, and make only what it lacks."""
        self.adopted.append(known)
        self.gaps.update({gap.length: gap for gap in known.gaps})

    @property
    def everything(self) -> Stopping:
        """Both sides closed."""
        return Stopping(self.epsilon, ((self._closed(-1), self._closed(1)),))

    @property
    def tasks(self) -> list[float]:
        """All that takes time."""
        if not self.ways.are_even or self.adopted:
            return [HALF]
        if self.ways.models is not None:
            return [HALF, WHOLE]
        if self.only is not None:
            (first, last), _ = self.only
            return [HALF, PAIR] if first == last and self.in_turn else [HALF]
        more = MORE if self.ways.right.k <= _FEW_VALUES else ()
        return [HALF, *more, WHOLE, *((PAIR,) if self.in_turn else ())]

    def work(self, task: float) -> None:
        """Do one of the tasks."""
        if self.adopted:
            return
        if task == PAIR:
            self._pair()
        else:
            self._both(task)

    def apart(self, task: float) -> Work | None:
        """Sides with a share of ε, which need no others; None for both in turn, which do."""
        if self.adopted or task == PAIR:
            return None
        return _judged_sides, (self.ways, self.epsilon, task)

    def keep(self, task: float, made: _Judged) -> None:
        """What such work has come to."""
        self.made[task], found = made
        if found:
            from offrecord.mechanisms.owner.designing.set_referee import remember

            remember(found)

    def _both(self, share: float) -> _Sides:
        if share not in self.made:
            self.made[share] = _sides(self.ways, self.epsilon, share)
        return self.made[share]

    @cached_property
    def _base(self) -> Option:
        """What serves every cluster: half of ε on either side, or all of it where the other has to
        be closed; the window where that costs less.
        """
        if self.adopted:
            return self.adopted[0].options[0]
        left, right = self._both(HALF)
        if left is not None and right is not None:
            found = [(left, right), *self._as_window()]
            return min(found, key=lambda both: self.ways.cost(*both))
        return min(
            (*self._one_sided(), (self._closed(-1), self._closed(1))),
            key=lambda both: all(side.is_closed for side in both),
        )

    @property
    def _is_near_an_end(self) -> bool:
        """Some secret may have so little room on one side that it is closed instead."""
        base, rooms = self._base, self.ways.rooms
        if self.only is None:
            return self.ways.are_even or any(
                room < side.deadline for side, room in zip(base, rooms, strict=True)
            )
        (first, last), n = self.only
        return min(first - 1, n - last) < self.ways.cost(*base)

    def _one_sided(self) -> list[Option]:
        """All of ε on one side, the other closed."""
        left, right = self._both(WHOLE)
        found = [] if right is None else [(self._closed(-1), right)]
        return found if left is None else [*found, (left, self._closed(1))]

    @property
    def _asked(self) -> list[int]:
        """Lengths of gaps between neighbouring runs that are worth it."""
        return asked_gaps(self.lengths, self._base) if self.ways.serve_gaps else []

    def _gap(self, length: int) -> GapStopping:
        """What is released of a gap; nothing where nothing is proven."""
        if length not in self.gaps:
            left, right = self._base
            chain, budgets = self.ways.left.chain, (right.budget, left.budget)
            self.gaps[length] = gap_stopping(chain, length, budgets)
        return self.gaps[length]

    def _closed(self, direction: int) -> StoppingSide:
        return closed_side(direction, self.ways.right.k)

    def _as_window(self) -> list[Option]:
        """The window as a pair of sides, where its two influences sum to at most ε."""
        if self.window is None:
            return []
        sides = []
        for direction, size in zip((-1, 1), self.window, strict=True):
            side = window_side(direction, self.ways.right.k, 0.0, size + self.ways.right.nearest)
            sides.append(replace(side, budget=float(self.ways.told(side).max())))
        left, right = sides
        return [(left, right)] if left.budget + right.budget <= self.epsilon else []

    def _pair(self) -> StoppingPair | None:
        """Both sides in turn, where that pays."""
        if not self.pairs:
            k, base = self.ways.right.k, self._base
            few = k <= _FEW_VALUES
            longest = max(side.deadline for side in base)
            pays = self.ways.right.nearest < longest and (
                few or (k <= _PAIRED_VALUES and longest <= _PAIRED_REACH)
            )
            effort = Effort(effort_for(k).levels, ahead=few)
            ways = self.ways.right, self.ways.left
            budget = min(self.epsilon, _MOST)
            self.pairs.append(stopping_pair(*ways, budget, effort) if pays else None)
        return self.pairs[0]


def _judged_sides(ways: Ways, epsilon: float, share: float) -> _Judged:
    """Both sides, and what the referee over a set said of them, who is asked again where they are
    kept.
    """
    sides = _sides(ways, epsilon, share)
    if ways.models is None:
        return sides, {}
    from offrecord.mechanisms.owner.designing.set_referee import verdict

    found: Verdicts = {}
    for side in sides:
        if side is not None:
            found |= verdict(ways.intervals(side.direction), side)
    return sides, found


def _sides(ways: Ways, epsilon: float, share: float) -> _Sides:
    """Both sides with a share of ε; None where no window keeps within it."""
    right = _side(ways, epsilon, share, 1)
    if not ways.are_alike:
        return _side(ways, epsilon, share, -1), right
    return None if right is None else replace(right, direction=-1), right


def _side(ways: Ways, epsilon: float, share: float, direction: int) -> StoppingSide | None:
    budget = min(share * epsilon, _MOST)
    way = ways.left if direction < 0 else ways.right
    if ways.models is None:
        effort = effort_for(way.k)
        if budget > HALF * epsilon and way.k > _QUICK_VALUES:
            effort = Effort(None)  # for the chain's ends alone, where little is gained
        return stopping_side(way, budget, effort)
    from offrecord.mechanisms.owner.designing.under_set import side_over, window_over

    models = ways.intervals(direction)
    given = models, way.kernels[0], direction, way.weights, budget
    found = side_over(*given, levels=_LEVELS_OVER_SETS)
    deadline = window_over(models, budget - _SPARE) if found is None else None
    return found if deadline is None else window_side(direction, way.k, budget, deadline)
