"""What owner's designs tell, from the certificate alone: that sides, pairs and gaps keep within
their budgets.

way       kernels by distance        outcomes  of one side, and of both in turn
gap       between two near secrets   over_set  of one side, over a set of models of two values

Left to the check of a table: that a cluster takes no option but the first, one whose budgets sum to
at most ε, or one with larger budgets by which every secret in it keeps within ε through the records
between it and the cluster's ends (rule 2 of the rule `stopping`); which secrets join, which gaps
are held out, and that walks stop where their draws say. Values drawn for missing records have the
model's law here; what rounding changes of it is no part of a certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import flint

from offrecord.release.certificate import (
    GapStopping,
    Model,
    OwnerDesign,
    OwnerDesigns,
    Stopping,
    StoppingPair,
    StoppingSide,
)
from offrecord.verify.balls import Ball, Each, ball, double, infinite
from offrecord.verify.stopping.gap import told_between
from offrecord.verify.stopping.outcomes import told_by, told_in_turn
from offrecord.verify.stopping.over_set import box_of, told_over
from offrecord.verify.stopping.way import Ways, ways_around, ways_far

__all__ = ["Kept", "bounds"]


class Kept(NamedTuple):
    """What must keep within a limit. bound: no smaller than what it is, at the precision set;
    infinite where nothing can be proven.
    """

    place: str
    limit: float
    bound: Callable[[], Ball]


def bounds(designs: OwnerDesigns, model: Model, each: Each = map) -> Iterator[Kept]:
    """All that must keep within a limit, in every stopping that some design has.

    Of a side that an option uses, what it tells, and its budget; of a pair, what both sides tell in
    turn (a side that only goes second has its budget together with its label); of a gap, what it
    tells about either end; and that the first option's budgets sum to at most ε.
    Where places differ, a stopping is judged around every design that has it. each: as of `judged`.
    """
    if model.stationary:
        judge = _Judge(model, partial(ways_far, model), each=each)
        for number in sorted({design.stopping for design in designs.designs}):
            place = f"designs.stoppings[{number}]"
            yield from _of(designs.stoppings[number], judge, place, "")
        return
    for at, design in enumerate(designs.designs):
        place = f"designs.stoppings[{design.stopping}]"
        judge = _Judge(model, partial(ways_around, designs, design, model), _Cut(designs, design))
        yield from _of(designs.stoppings[design.stopping], judge, place, f", designs.designs[{at}]")


def _of(stopping: Stopping, judge: _Judge, place: str, around: str) -> Iterator[Kept]:
    sides = stopping.sides

    def kept(name: str, limit: float, asked: Callable[[], Ball]) -> Kept:
        return Kept(f"{place}.{name}{around}", limit, partial(_sure, asked))

    first = [double(sides[number].budget) for number in stopping.options[0]]
    yield kept("options[0]", stopping.epsilon, lambda: ball(sum(first)))
    for number in sorted({number for option in stopping.options for number in option}):
        side = sides[number]
        yield kept(f"sides[{number}]", side.budget, partial(judge.side, side))
    if stopping.pair is not None:
        asked = partial(judge.pair, stopping.pair, sides)
        yield kept("pair", stopping.pair.epsilon, asked)
    for number, gap in enumerate(stopping.gaps):
        for end, budget in enumerate(gap.budgets):
            yield kept(f"gaps[{number}].budgets[{end}]", budget, partial(judge.gap, gap, end))


def _sure(asked: Callable[[], Ball]) -> Ball:
    """Infinite where a model has no one stationary distribution."""
    try:
        return asked()
    except ZeroDivisionError:
        return infinite()


@dataclass(frozen=True, eq=False)
class _Cut:
    """A design whose records may be part of a longer chain."""

    designs: OwnerDesigns
    design: OwnerDesign

    @property
    def is_single(self) -> bool:
        """It is for a secret of one record."""
        return self.design.length == 1

    def ends_within(self, side: str, levels: Sequence[int]) -> bool:
        """No walk comes to where the design's records end and those of a chain may go on by other
        kernels: that is where rooms are cut.
        """
        if not levels:
            return True
        if side == "left":
            return self.design.left != self.designs.left_limit or levels[-1] < self.design.left
        is_cut = self.design.phases is not None and self.design.right == self.designs.right_limit
        return not is_cut or levels[-1] <= self.design.right


@dataclass(eq=False)
class _Judge:
    """What sides, pairs and gaps tell under a model or a set of models; infinite where that is not
    known how to tell. What was computed before at the same precision is kept.

    make: what walks meet. cut: for a model that is not stationary. each: as of `judged`.
    """

    model: Model
    make: Callable[[], Ways]
    cut: _Cut | None = None
    each: Each = map
    known: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def side(self, side: StoppingSide) -> Ball:
        """One side by itself."""
        if not self._is_served or not self._ends_within(side.side, side.levels):
            return infinite()
        if self.model.set is not None:
            box = box_of(self.model, side.side)
            if box is None:
                return infinite()
            over = (box, tuple(side.levels), side.ahead, side.stop, side.budget)
            return self._once(over, lambda: told_over(box, side, self.each))
        # a stationary chain of two values is its own reverse
        towards = "right" if self._is_even and self.model.k**self.model.order == 2 else side.side
        return self._once(
            (towards, tuple(side.levels), side.ahead, side.stop),
            lambda: told_by(self._ways.towards(towards), side),
        )

    def pair(self, pair: StoppingPair, sides: Sequence[StoppingSide]) -> Ball:
        """Both sides in turn."""
        walks = [(pair.first, pair.levels)]
        walks += [(sides[number].side, sides[number].levels) for number in pair.seconds]
        is_single = self.cut is None or self.cut.is_single
        served = self._is_served and is_single and self.model.set is None
        if not served or not all(self._ends_within(*walk) for walk in walks):
            return infinite()
        return told_in_turn(self._ways, pair, sides)

    def gap(self, gap: GapStopping, end: int) -> Ball:
        """About the left secret's last record (end 0), or the right one's first (1)."""
        served = self._is_served and self._is_even and self.model.set is None
        if not served or self.model.order > 1:
            return infinite()
        chain = self._ways.right.chain
        return self._once(("gap", gap), lambda: told_between(chain, gap))[end]

    @property
    def _is_even(self) -> bool:
        return self.model.stationary

    @property
    def _is_served(self) -> bool:
        is_known = self.model.shows is None and (self.model.order == 1 or self._is_even)
        return is_known and (self._is_even or self.model.set is None)

    def _ends_within(self, side: str, levels: Sequence[int]) -> bool:
        return self.cut is None or self.cut.ends_within(side, levels)

    @property
    def _ways(self) -> Ways:
        found: Ways = self._once(("ways",), self.make)
        return found

    def _once(self, what: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        key = (flint.ctx.prec, *what)
        if key not in self.known:
            self.known[key] = compute()
        return self.known[key]
