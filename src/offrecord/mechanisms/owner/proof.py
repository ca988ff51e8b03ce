"""The proof of a menu: every side within its budget, every pair within ε, as they act."""

from __future__ import annotations

from offrecord.mechanisms.owner.designing.between import is_proven
from offrecord.mechanisms.owner.designing.repair import MARGIN
from offrecord.mechanisms.owner.stopping import Stopping, StoppingSide, is_shorter
from offrecord.mechanisms.owner.ways import Ways
from offrecord.models.base import Model

#: How the owner's leakage is found, as designs and certificates call it.
METHOD = "stopping (O3)"
_STATES = 16  # tuples of a chain of order above 1


def unserved(model: Model) -> str | None:
    """Why the owner's mechanism cannot be proven for a model; None where it can."""
    if model.shows is not None:
        return "the owner's mechanism is not proven for hidden states"
    if model.order > 1 and (not model.is_stationary or model.k**model.order > _STATES):
        return "the owner's mechanism is not made for chains of so high an order"
    if model.box is not None:
        from offrecord.mechanisms.owner.designing.set_referee import serves_set

        # of another start nothing is known about steps back in time
        if not model.is_stationary or not serves_set(model.box):
            return "the owner's mechanism is not proven for such a set of models"
    return None


def proven_leakage(stopping: Stopping, ways: Ways) -> float | None:
    """What no secret that takes any of a menu's options tells more than; None if anything in the
    menu is not what it should be. It is refereed as it will be used.
    """
    epsilon, base = stopping.epsilon, stopping.options[0]
    sides = {id(side): side for option in stopping.options for side in option}
    told = {number: ways.told(side) for number, side in sides.items()}
    if not all(told[number].max() <= _allowed(side) for number, side in sides.items()):
        return None
    if not base[0].budget + base[1].budget <= epsilon:
        return None
    largest = float((told[id(base[0])] + told[id(base[1])]).max())
    for option in stopping.options[1:]:
        if not (is_shorter(option, base) and max(side.budget for side in option) <= epsilon):
            return None
        # Budgets may sum to more: a cluster takes them where that tells ε at most (O11).
        largest = max(largest, min(option[0].budget + option[1].budget, epsilon))
    for gap in stopping.gaps:
        # What lies beyond one run counts as told about the other's end by as much (O15).
        budgets = base[1].budget, base[0].budget
        if gap.budgets != budgets or not is_proven(gap, ways.left.chain):
            return None
    if stopping.pair is not None:
        paired = float(ways.told_by_pair(stopping.pair).max())
        if not paired <= epsilon - MARGIN / 2:
            return None
        largest = max(largest, paired)
    return largest if largest <= epsilon else None


def _allowed(side: StoppingSide) -> float:
    """What a side may tell: of its budget, half of the margin is for values that are drawn where
    records are missing; one that looks at none needs it not.
    """
    return side.budget - MARGIN / 2 if len(side.levels) > 1 else side.budget
