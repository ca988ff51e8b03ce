"""The privacy–utility curve of a table: which budgets are foretold. That depends on the model, the
mechanism, ε and counts alone, never on the clock: the same release has the same report everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from offrecord.mechanisms import BestLocal, BestWindow, Mechanism, OwnerStopping
from offrecord.models.base import Model
from offrecord.reports.content import Curve
from offrecord.tables.budgets import Blank, Point
from offrecord.tables.rule import Rule

_MANY = (1 / 4, 1 / 3, 1 / 2, 2 / 3, 5 / 6, 1, 5 / 4, 3 / 2, 2, 5 / 2, 3, 4)
_SEVERAL = (1 / 4, 1 / 2, 2 / 3, 1, 3 / 2, 2, 4)
_FEW = (1 / 4, 1 / 2, 1, 2, 4)
_THREE = (1 / 2, 1, 2)
#: Surroundings of secrets up to which designs for many budgets are quickly made.
_FEW_NEEDS = 16
#: Steps of a window's search in all surroundings, about, for one budget: more would be waited for.
_MOST_WORK = 4_000_000
NO_ROOM = "what other budgets would release takes too long to foretell for this model and table"


def quick_curve(
    blank: Blank,
    mechanism: Mechanism,
    epsilon: float,
    window: float | None,
    rule: Rule | None,
) -> Curve:
    """What costs next to nothing: windows, and the mechanism itself where its designs are quickly
    made. window, rule: what the window for ε releases, and the mechanism's own rule for it, where
    they are known.
    """
    if epsilon == 0:
        return Curve(why="ε = 0 allows nothing to be told, and no multiple of it does")
    needs, model = blank.batch.needs, blank.spec.model
    few = len(needs) <= _FEW_NEEDS
    if _work(model, len(needs)) > _MOST_WORK or not (model.is_stationary or few):
        return Curve(why=NO_ROOM)
    factors = _MANY if few else _FEW if blank.every == 1 else _THREE
    points = _points(blank, BestWindow(), epsilon, factors, window)
    is_alone = few and not needs.gaps and blank.every == 1
    if mechanism.name != BestWindow.name and is_alone and _is_quick(model, mechanism):
        own = None if rule is None else rule.expect(blank.batch).released / max(blank.records, 1)
        points = [*_points(blank, mechanism, epsilon, _THREE, own), *points]
    return Curve(tuple(points), every=blank.every)


def thorough_curve(blank: Blank, mechanism: Mechanism, epsilon: float) -> Curve:
    """What is worth waiting some seconds for: the mechanism itself and, where secrets are few and
    far apart, the owner's, the best local one and windows.
    """
    if epsilon == 0:
        return quick_curve(blank, mechanism, epsilon, None, None)
    needs, model = blank.batch.needs, blank.spec.model
    few = len(needs) <= _FEW_NEEDS
    if not (model.is_stationary or few):
        return Curve(why=NO_ROOM)
    is_alone = few and not needs.gaps and blank.every == 1
    others: Sequence[Mechanism] = (OwnerStopping(), BestLocal()) if is_alone else ()
    known = {one.name: one for one in (mechanism, *others)}
    known.pop(BestWindow.name, None)
    points: list[Point] = []
    for one in known.values():
        if one.unserved(model) is None and (blank.every == 1 or one.name == mechanism.name):
            points += _points(blank, one, epsilon, _SEVERAL if is_alone else _THREE)
    points += _points(blank, BestWindow(), epsilon, _MANY if few else _FEW)
    return Curve(tuple(points), every=blank.every)


def _points(
    blank: Blank,
    mechanism: Mechanism,
    epsilon: float,
    factors: Sequence[float],
    known: float | None = None,
) -> list[Point]:
    """Of a mechanism, at multiples of the budget. known: what it releases with that itself."""
    found = {
        one: blank.points(mechanism, [one * epsilon]) for one in factors if one != 1 or not known
    }
    if known:
        found[1] = [Point(epsilon, mechanism.name, known)]
    return [point for one in factors for point in found[one]]


def _work(model: Model, needs: int) -> int:
    """How much there is to do for windows with one budget, about."""
    return int(needs * (model.k**model.order) ** 3)


def _is_quick(model: Model, mechanism: Mechanism) -> bool:
    """Its designs are made in a moment."""
    plain = model.is_stationary and (model.k, model.order) == (2, 1) and not model.has_states
    return plain and (model.box is None or mechanism.designs.kind == "local")
