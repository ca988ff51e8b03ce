"""How far the rows of a chain stand apart: in steps, or as they come."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models import clock
from offrecord.models.base import Integers
from offrecord.tables.problems import Check, RowNames
from offrecord.tables.steps import Step

_SPACINGS = 1 << 16  # pairs of neighbours from which their usual distance is taken
#: Steps of clocks and calendars.
_STEPS = ("1s", "10s", "15s", "30s", "1m", "5m", "10m", "15m", "30m", "1h", "1d", "1w", "1mo", "1y")


@dataclass(frozen=True)
class OrderColumn:
    """What orders rows, by the name and type of its column; name None: rows as they stand."""

    name: str | None
    kind: pl.DataType

    @property
    def timed(self) -> bool:
        """Its values are times, or days."""
        return not self.kind.is_integer()

    @property
    def zone(self) -> str | None:
        """The time zone of its times, if they have one."""
        return getattr(self.kind, "time_zone", None)


class Spacing(NamedTuple):
    """How far neighbouring rows are apart."""

    median: float
    pairs: int  # that were looked at
    near: int  # of these, within a tenth of the median, as months are


@dataclass(frozen=True, eq=False)
class Grid:
    """Where rows stand."""

    steps: Integers | None  # (n,) from the first row of the chain; None: as rows come
    beside: int  # rows that do not lie on the grid of the step
    pairs: tuple[int, int]  # neighbouring rows, and how many of them are one step apart
    spread: tuple[int, int] | None = None  # without a step, least and most time between rows
    spacing: Spacing | None = None  # without a step


def grid_of(
    order: NDArray[Any], starts: Integers, column: OrderColumn, step: Step | None, names: RowNames
) -> Grid:
    """The grid of sorted rows; InputError if they cannot be counted in steps without a guess.

    names: how errors name rows.
    """
    pairs = len(order) - len(starts) + 1
    if column.name is not None:
        _check_strict(order, starts, column, names)
    if step is None:
        named, timed = column.name is not None, column.timed
        return Grid(
            None,
            0,
            (pairs, pairs),
            _spread(order, starts) if timed else None,
            _spacing(order, starts) if named else None,
        )
    steps, off = _counted(order, starts, column, step, names)
    linked = int(marked_inside(np.diff(steps) == 1, starts).sum())
    return Grid(steps, int(np.count_nonzero(off)), (pairs, linked))


def inside_chains(neighbours: NDArray[Any], starts: Integers) -> NDArray[Any]:
    """What holds of neighbouring rows, for those of one chain alone. neighbours: (n − 1,)."""
    inside = np.ones(len(neighbours), dtype=bool)
    inside[starts[1:-1] - 1] = False
    return neighbours[inside]


def marked_inside(neighbours: NDArray[np.bool_], starts: Integers) -> NDArray[np.bool_]:
    """(n − 1,) what is true of neighbouring rows, but for those of two chains."""
    neighbours[starts[1:-1] - 1] = False
    return neighbours


def _both(neighbours: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n,) the rows of which something is true together with a neighbour."""
    return np.asarray(np.append(neighbours, False) | np.append(False, neighbours))


def _check_strict(
    order: NDArray[Any], starts: Integers, column: OrderColumn, names: RowNames
) -> None:
    repeated = marked_inside(order[1:] == order[:-1], starts)
    if not repeated.any():
        return
    why = ""
    if isinstance(column.kind, pl.Datetime) and column.zone is None:
        # without a zone, clocks show an hour twice in autumn
        hour = "give times with a time zone, or drop the second hour: see offrecord look"
        why = f"; where clocks were put back, {hour}"
    said = (
        f"column {column.name!r} must order the records of a chain, but has the same value in ",
        "row",
        f" of one chain or another{why}",
    )
    raise names.error(_both(repeated), Check.DISTINCT, said)


def _check_kind(column: OrderColumn, step: Step) -> None:
    if column.name is None:
        raise InputError("--step needs an order column, not --order row")
    if step.timed != column.timed:
        raise InputError(
            f"--step {step.text} is {'a time' if step.timed else 'a number'}, but column"
            f" {column.name!r} holds {'times' if column.timed else 'whole numbers'}"
        )


def _counted(
    order: NDArray[Any], starts: Integers, column: OrderColumn, step: Step, names: RowNames
) -> tuple[Integers, Integers]:
    """(n,) each row's distance from the first of its chain in steps, and how far off the grid."""
    _check_kind(column, step)
    first = np.repeat(order[starts[:-1]], np.diff(starts))
    if int((order.astype(np.int64) - first.astype(np.int64)).min()) < 0:  # beyond 64 bits
        raise _too_short(step, column)
    steps, off = step.counted(first, order, column.zone)
    far = 4 * off > step.length
    if far.any():
        is_dense = 2 * np.median(_distances(order, starts)) <= step.length
        raise names.error(far, Check.ON_GRID, _off_grid(step, column, is_dense=bool(is_dense)))
    if (int(steps.max()) + 2) * len(starts) >= 2**62:  # chain and place must fit into one number
        raise _too_short(step, column)
    same = marked_inside(steps[1:] == steps[:-1], starts)
    if same.any():
        long = f"--step {step.text} is too long for column {column.name!r}: "
        said = (long, "row", " on the same step as another of the chain")
        raise names.error(_both(same), Check.ONE_A_STEP, said)
    return steps, off


def _too_short(step: Step, column: OrderColumn) -> InputError:
    return InputError(
        f"--step {step.text} is too short for column {column.name!r}: it makes more steps than can"
        " be counted"
    )


def _off_grid(step: Step, column: OrderColumn, *, is_dense: bool) -> tuple[str, str, str]:
    """What is said of rows off the grid. is_dense: most rows follow within half a step."""
    lying = " lying over a quarter step off the grid that the first row of the chain begins"
    if is_dense:
        lying += f" (to keep a row every {step.text}: {step.thinning(str(column.name))})"
    return f"--step {step.text} does not fit column {column.name!r}: ", "row", lying


def _spacing(order: NDArray[Any], starts: Integers) -> Spacing | None:
    # of a sample, which costs nothing: it is for warnings alone
    rows = np.arange(0, len(order) - 1, max(len(order) // _SPACINGS, 1))
    rows = rows[starts[np.searchsorted(starts, rows + 1)] != rows + 1]
    if not len(rows):
        return None
    distances = order[rows + 1].astype(np.int64) - order[rows].astype(np.int64)
    median = float(np.median(distances))
    near = np.count_nonzero(10 * np.abs(distances - median) <= median)
    return Spacing(median, len(rows), int(near))


def _spread(order: NDArray[Any], starts: Integers) -> tuple[int, int] | None:
    distances = inside_chains(np.diff(order), starts)
    return (int(distances.min()), int(distances.max())) if len(distances) else None


def _distances(order: NDArray[Any], starts: Integers) -> Integers:
    return inside_chains(np.diff(order.astype(np.int64)), starts)


# ---- the step of a table of which nobody says one


def usual_step(
    order: NDArray[Any], starts: Integers, column: OrderColumn, names: RowNames
) -> tuple[Step, int] | None:
    """The step on whose grid most rows follow each other, and how many of its steps have no row."""
    between = _distances(order, starts)
    if column.name is None or not len(between):
        return None
    for step in _likely_steps(between, timed=column.timed):
        with suppress(InputError):  # rows that do not lie on its grid
            grid = grid_of(order, starts, column, step, names)
            pairs, linked = grid.pairs
            if grid.steps is not None and 2 * linked >= pairs:
                return step, int((inside_chains(np.diff(grid.steps), starts) - 1).sum())
    return None


def _likely_steps(between: Integers, *, timed: bool) -> list[Step]:
    """Steps that are about as long as the most common distance of neighbours."""
    distances, counts = np.unique(between, return_counts=True)
    usual = int(distances[counts.argmax()])
    if not timed:
        return [Step.parsed(usual), Step.parsed(int(np.gcd.reduce(distances)))]
    known = map(Step.parsed, _STEPS)
    near = [step for step in known if 0.9 * step.length <= usual <= 1.15 * step.length]
    return [*near, _exactly(usual)]


def _exactly(length: int) -> Step:
    """A step of so many nanoseconds, in the largest unit that fits."""
    units = {"d": clock.DAY, "m": 60 * 10**9, "s": 10**9, "ns": 1}
    return next(
        Step.parsed(f"{length // units[one]}{one}") for one in units if not length % units[one]
    )
