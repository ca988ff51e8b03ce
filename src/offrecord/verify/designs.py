"""What every design of a certificate tells, proven to be within ε or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from offrecord.release.certificate import (
    Design,
    Designs,
    LocalDesign,
    LocalDesigns,
    Model,
    OwnerDesign,
    OwnerDesigns,
)
from offrecord.verify.alone import told as told_alone
from offrecord.verify.balls import Ball, Each, ball, decided, double, upper
from offrecord.verify.problem import Problem
from offrecord.verify.room import slack, unserved
from offrecord.verify.two_values import told as told_of_two

INFINITE = float("inf")
#: Walks that find what is told itself, not only a bound of it.
_EXACT = (told_alone, told_of_two)


class Judged(NamedTuple):
    """One thing that must keep within a limit. told: the least double above it; why: it is not
    proven, None if it is.
    """

    place: str
    limit: float
    told: float
    why: str | None


def judged(designs: Designs, model: Model, each: Each = map) -> Iterator[Judged]:
    """Every design, in their order, then whatever else keeps within a limit of its own. each: calls
    a function that takes long for several arguments; it may do so at once.
    """
    for at, design in enumerate(designs.designs):
        yield _judged(designs, design, model, f"designs.designs[{at}]")
    if isinstance(designs, OwnerDesigns):
        from offrecord.verify.stopping import bounds

        for kept in bounds(designs, model, each):
            yield _within(kept.place, kept.bound, kept.limit)


def _judged(designs: Designs, design: Design, model: Model, place: str) -> Judged:
    why = unserved(designs, design, model)
    if why is not None:
        return Judged(place, designs.epsilon, INFINITE, why)
    if isinstance(designs, LocalDesigns) and isinstance(design, LocalDesign):
        problem, bound = Problem.of(designs, design, model), _bound(model)
        if problem.tells_nothing:
            return Judged(place, designs.epsilon, 0.0, None)
        found = _within(
            place,
            lambda: bound(problem) + slack(designs, design, model),
            designs.epsilon,
        )
        if found.why is None and bound in _EXACT and found.told < INFINITE:
            return _as_stated(found, design, bound(problem))
        return found
    if isinstance(designs, OwnerDesigns) and isinstance(design, OwnerDesign):
        return _within(place, lambda: _summed(designs, design, model), designs.epsilon)
    return Judged(place, designs.epsilon, INFINITE, "is of a kind that is not known")


def _as_stated(found: Judged, design: Design, told: Ball) -> Judged:
    """Not proven, too, where the certificate says that it tells less than it does."""
    stated = ball(double(design.leakage)) + ball(double(design.rounding))
    if not told > stated:
        return found
    return found._replace(why=f"states that it tells {design.leakage:.12g}, but tells more")


def _summed(designs: OwnerDesigns, design: OwnerDesign, model: Model) -> Ball:
    """What both sides of the first option may tell together, by their budgets."""
    stopping = designs.stoppings[design.stopping]
    budgets = [ball(double(stopping.sides[number].budget)) for number in stopping.options[0]]
    return budgets[0] + budgets[1] + slack(designs, design, model)


def _bound(model: Model) -> Callable[[Problem], Ball]:
    """By which walk local designs of a model are judged."""
    if model.set is not None:
        if model.k == 2 and model.order == 1:
            return told_of_two
        from offrecord.verify.sets import told as told_over_sets

        return told_over_sets
    if model.shows is not None:
        from offrecord.verify.hidden import told as told_of_hidden

        return told_of_hidden
    if model.order > 1:
        from offrecord.verify.histories import told as told_of_histories

        return told_of_histories
    return told_alone


def _within(place: str, bound: Callable[[], Ball], limit: float) -> Judged:
    kept, found = decided(bound, limit)
    told = upper(found)
    why = None if kept else f"tells {told:.12g}, more than the {limit:.12g} allowed"
    return Judged(place, limit, told, why)
