"""Whether a design may serve secrets with more room than it was made for (F14).

The last rooms that designs are made for stand for all larger ones. There a local design either
redacts everything beyond, which forgets it, or releases a record entirely within the room (of order
m: m in a row), given which everything beyond is independent of the secret. A walk must end there.
To the left of a chain that is not stationary it matters, too, how the chain began: what that can
change at most is bounded by Birkhoff's contraction, and taken off ε.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import flint

from offrecord.release.certificate import (
    Design,
    Designs,
    LocalDesign,
    LocalDesigns,
    Model,
    OwnerDesign,
    OwnerDesigns,
    spelled_rows,
)
from offrecord.verify.balls import Ball, Matrix, infinite, is_zero, largest, matrix
from offrecord.verify.chain import completed


def unserved(designs: Designs, design: Design, model: Model) -> str | None:
    """Why a design must not serve larger rooms although it stands for them; None if it may."""
    for side, room, cap in (
        ("left", design.left, _cap(designs, "left")),
        ("right", design.right, _cap(designs, "right")),
    ):
        if cap is not None and room >= cap and not _ends(designs, design, model, side, room):
            return f"neither ends within its {side} room nor redacts all beyond it"
    return None


def _cap(designs: Designs, side: str) -> int | None:
    """The room that stands for all larger ones."""
    if designs.grids is not None:
        grid = designs.grids.left if side == "left" else designs.grids.right
        return int(grid[-1])
    return designs.left_limit if side == "left" else designs.right_limit


def _ends(designs: Designs, design: Design, model: Model, side: str, room: int) -> bool:
    """Whether what lies beyond the room cannot matter."""
    if isinstance(designs, OwnerDesigns) and isinstance(design, OwnerDesign):
        levels = [
            one.levels for one in designs.stoppings[design.stopping].sides if one.side == side
        ]
        # a walk that leaves the chain goes on in what the model would have there
        return not _is_cut(designs, design, model, side) or all(
            not one or one[-1] < room for one in levels
        )
    if not (isinstance(designs, LocalDesigns) and isinstance(design, LocalDesign)):
        return True  # of a kind that is not judged here
    number = design.redaction_left if side == "left" else design.redaction_right
    rests = design.left_rest if side == "left" else design.right_rest
    rows = spelled_rows(designs.sides[number])
    if _is_cut(designs, design, model, side):
        certain = rests and all(min(row) == 1.0 for row in rows)
        return certain or (not rests and len(rows) + 1 < room)
    return rests or len(rows) + model.order <= room


def _is_cut(designs: Designs, design: Design, model: Model, side: str) -> bool:
    """Whether the chain may have begun before the records that the design was judged with, in
    another way than they do.
    """
    return (
        side == "left"
        and not model.stationary
        and model.set is None
        and designs.left_limit is not None
        and design.left >= designs.left_limit
    )


def slack(designs: Designs, design: Design, model: Model) -> Ball:
    """What the beginning of a longer chain may add to what is told."""
    if not _is_cut(designs, design, model, "left"):
        return flint.arb(0)
    kernels: Any = model.transition if model.phase is not None else [model.transition]
    if model.length is not None or model.order > 1 or model.shows is not None:
        return infinite()
    widest = largest(_diameter(matrix([completed(row) for row in kernel])) for kernel in kernels)
    if not widest.is_finite():
        return infinite()
    return widest * (widest / 4).tanh() ** (design.left - 1)


def _diameter(kernel: Matrix) -> Ball:
    """The largest log of a cross-ratio of its entries."""
    k = kernel.nrows()
    if any(is_zero(one) for one in kernel.entries()):
        return infinite()
    return largest(
        kernel[i, x] * kernel[j, y] / (kernel[i, y] * kernel[j, x])
        for i, j, x, y in product(range(k), repeat=4)
    ).log()
