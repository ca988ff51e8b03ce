"""The budgets at which curves over ε are drawn."""

from __future__ import annotations

from offrecord.explorer.state import LARGEST_EPSILON, MOST_BUDGETS

_COUNT = 30
_WIDEST = (3.0, 6.0, 12.0, LARGEST_EPSILON)
_STRIDES = (8, 4, 2, 1)  # coarse lines first, finer ones between them


def spelled(epsilon: float) -> str:
    """All of them, as `offrecord compare` takes them."""
    last = _last(epsilon)
    return f"{last / _COUNT:g}:{last:g}:{_COUNT}"


def budgets(epsilon: float) -> list[list[float]]:
    """In the order in which they are asked for, so many at a time as one request may."""
    last, asked = _last(epsilon), set[int]()
    batches = []
    for stride in _STRIDES:
        new = [one for one in range(_COUNT, 0, -stride) if one not in asked]
        asked.update(new)
        for begin in range(0, len(new), MOST_BUDGETS):
            some = sorted(new[begin : begin + MOST_BUDGETS])
            batches.append([float(f"{last * one / _COUNT:.12g}") for one in some])
    return batches


def _last(epsilon: float) -> float:
    """The first of some widths that holds a budget."""
    return next(one for one in _WIDEST if epsilon <= one)
