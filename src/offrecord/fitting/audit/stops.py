"""Looks at stops: where the owner's mechanism begins to release beside a pretended secret.

A stop depends on the secret, so it is part of what tells: with the value there, and the far one
that was looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.fitting.audit.looks import STOPS, Depth, Look, most_cells
from offrecord.fitting.audit.odds import Table
from offrecord.fitting.audit.records import Records
from offrecord.mechanisms.owner.stopping import Option, StoppingSide
from offrecord.models.base import Floats, Integers, Model
from offrecord.models.chain import MarkovChain
from offrecord.models.records import Codes

EPSILON = 1.0  #: the budget of the designs that are looked at
FURTHEST = 200  #: deadlines up to which they are
_VALUES = 3  # up to which they are
_WINDOW = 16  # deadlines up to which sides for a set of models are made within seconds
_SPARE = 1e-6  # of a budget, as designs leave it
_SEED = 20130102  # the same data get the same stops


# ---- the sides that walk


@dataclass(frozen=True, eq=False, repr=False)
class Walkers:
    """The owner's two sides, which together promise e^epsilon.

    edges: for the left and the right side, the first distance of every stretch of stops that is
    told apart from the others, and the end of the last one.
    """

    epsilon: float
    sides: Option
    edges: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def span(self) -> int:
        """Secrets no further apart may show the same records."""
        return sum(side.deadline for side in self.sides)


def walkers(model: Model, share: float = 1.0, *, alone: bool = True) -> Walkers | None:
    """The sides that a model's secrets take in every cluster, made for a share of ε; None where
    none are made, or only with more time than a look is worth.

    Made for the model's set, where it is served and that is quick, else for the model alone. alone:
    whether that may be; it would be wrong where it is the set that was enlarged.
    """
    from offrecord.mechanisms.owner.designing.laws import with_laws
    from offrecord.mechanisms.owner.menu import HALF, Menu
    from offrecord.mechanisms.owner.ways import Ways

    chain = _served(model, share * EPSILON)
    if chain is None or (chain.box is None and not alone):
        return None
    menu = Menu(Ways.far(chain), share * EPSILON)
    menu.work(HALF)
    left, right = menu.made[HALF]
    if left is None or right is None or max(left.deadline, right.deadline) > FURTHEST:
        return None
    left, right = (with_laws(side, menu.ways.of(side), FURTHEST) for side in (left, right))
    return Walkers(EPSILON, (left, right), (stretches(left), stretches(right)))


def _served(model: Model, epsilon: float) -> MarkovChain | None:
    """The chain that sides are made for; None for a model that they are not made for."""
    from offrecord.mechanisms.owner.mechanism import OwnerStopping

    if model.order != 1 or model.k > _VALUES or model.clock is not None:
        return None
    if OwnerStopping().unserved(model.with_box(None)) is not None or not model.is_stationary:
        return None
    if model.box is not None and OwnerStopping().unserved(model) is None:
        from offrecord.mechanisms.owner.designing.under_set import window_over

        chain = model.along()
        assert chain.box is not None
        windows = [window_over(one, epsilon / 2 - _SPARE) for one in chain.box.lifted]
        if all(one is not None and one <= _WINDOW for one in windows):
            return chain
    chain = model.with_box(None).along()
    return chain if _forgets(chain, epsilon) else None


def _forgets(chain: MarkovChain, epsilon: float) -> bool:
    """Within the deadlines that are looked at."""
    from offrecord.mechanisms.owner.ways import Ways

    ways = Ways.far(chain)
    for way in (ways.left, ways.right):
        deadline = way.deadline(epsilon / 2 - _SPARE, np.ones(chain.k))
        if deadline is None or deadline > FURTHEST:
            return False
    return True


def stretches(side: StoppingSide) -> tuple[int, ...]:
    """Where stretches of stops begin, and where the last one ends: the first level, the deadline,
    and two halves of what is stopped in between, as the model has it.
    """
    levels = side.levels.tolist()
    begins = {levels[0], levels[-1]}
    if len(levels) > 2:
        begins.add(levels[1])
        assert side.law is not None
        between = side.law.sum(axis=1)[1:-1].cumsum()
        half = int(np.searchsorted(between, between[-1] / 2)) + 1
        begins.add(levels[1 + half])
    return (*sorted(begins), levels[-1] + 1)


# ---- what they show


class _Seen(NamedTuple):
    """One side of some secrets: distances of stops, and records there and at the deadline."""

    stops: Integers
    shown: NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Stops(Look):
    """What two sides let be seen: `left` and `right` are the record at which releasing begins, and
    the one at the deadline.

    stretch: (2, m) in which each side stopped. edges: as those of `Walkers`.
    """

    stretch: Integers
    edges: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def depths(self) -> list[Depth]:
        """The left alone, the right alone, both."""
        return [Depth(2, 0), Depth(0, 2), Depth(2, 2)]

    def tables(self, codes: Codes, at: Integers, k: int) -> Iterator[tuple[Depth, Table]]:
        """What was seen with which value of a secret; both sides, where the data can carry it.

        A pattern is (stretch, value at the stop, far value) of the left side, then of the right.
        """
        from offrecord.fitting.audit._tables import SHORT, cells_seen

        values = codes.astype(np.int64)
        sides = (self.left, self.right)
        shown = [
            (stop * k + values[records[:, 0]]) * k + values[records[:, 1]]
            for stop, records in zip(self.stretch, sides, strict=True)
        ]
        sizes = [(len(edges) - 1) * k * k for edges in self.edges]
        patterns = (shown[0], shown[1], shown[0] * sizes[1] + shown[1])
        for depth, pattern, size in zip(
            self.depths, patterns, (*sizes, sizes[0] * sizes[1]), strict=True
        ):
            if all(depth) and size * k > most_cells(len(self.secrets)):
                continue
            cells = pattern * k + values[self.secrets]
            given = cells, at[self.secrets], self.span, size * k
            found = cells_seen.over(len(cells), *given, short=SHORT)
            counts, separate = (cell.reshape(1, size, k) for cell in found)
            yield depth, Table(counts, separate)


def stops(records: Records, walking: Walkers) -> Stops:
    """Walks on both sides of every record that has room for them, with nothing missing in it."""
    deadlines = [side.deadline for side in walking.sides]
    own = np.arange(len(records))
    first, last = own - deadlines[0], own + deadlines[1]
    own = own[(first >= 0) & (last < len(records))]
    apart = records.at[own + deadlines[1]] - records.at[own - deadlines[0]]
    own = own[apart == sum(deadlines)]
    rng = np.random.default_rng(_SEED)
    left, right = (_walked(records.codes, own, side, rng) for side in walking.sides)
    stretch = [
        np.searchsorted(edges, seen.stops, side="right") - 1
        for edges, seen in zip(walking.edges, (left, right), strict=True)
    ]
    return Stops(
        STOPS,
        walking.epsilon,
        own.astype(np.int32),
        left.shown,
        right.shown,
        walking.span,
        np.zeros(len(own), dtype=np.int32),
        stretch=np.array(stretch),
        edges=walking.edges,
    )


def _walked(codes: Codes, own: Integers, side: StoppingSide, rng: np.random.Generator) -> _Seen:
    """Where walks from some records stop; all of them go on level by level."""
    limits = stop_probabilities(side)
    far = codes[own + side.direction * side.deadline]
    stopped = np.full(len(own), side.deadline, dtype=np.int64)
    going = np.arange(len(own))
    for number, (level, after) in enumerate(zip(side.levels[:-1], side.levels[1:], strict=True)):
        secret = own[going]
        here, ahead = (codes[secret + side.direction * distance] for distance in (level, after))
        if limits.shape[-1] == 1:
            ahead = np.zeros_like(ahead)
        likely = limits[far[going], number, codes[secret], here, ahead]
        stays = rng.random(len(going)) < likely
        stopped[going[stays]] = level
        going = going[~stays]
    shown = own[:, np.newaxis] + side.direction * np.stack(
        (stopped, np.full(len(own), side.deadline)), axis=1
    )
    return _Seen(stopped, shown.astype(np.int32))


def stop_probabilities(side: StoppingSide) -> Floats:
    """The thresholds of a side as probabilities: ALWAYS becomes 1."""
    return np.asarray(np.ldexp(side.limits.astype(np.float64), -64))
