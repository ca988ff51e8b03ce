"""Which designs the secrets of a table need: one for each distinct surrounding, shared by all
secrets that have it (F14).

In a stationary chain a surrounding is how many records there are to the left and to the right, up
to where the chain has forgotten; rooms may be rounded up to a coarser grid, and sides too large to
be improved together are designed apart. A model that is not stationary has a design for each place
in a chain.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from offrecord.designs.library import (
    Candidate,
    Design,
    Designs,
    Model,
    Surrounding,
    designed,
    fills,
    problem_of,
    refereed_design,
    trimmed,
    window_of,
)
from offrecord.errors import InputError
from offrecord.mechanisms import BestLocal, BestWindow, Mechanism, best_local
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain
from offrecord.theory.problem import Problem
from offrecord.theory.side import Side

#: Goes through a list of what is to be designed, and may show how far it is.
Progress: TypeAlias = Callable[[list[Any]], Iterable[Any]]
#: How many surroundings are designed one by one before rooms are rounded up: where a design takes
#: milliseconds, and seconds.
QUICK, SLOW = 400, 40
#: Entries of a redaction matrix above which both sides are designed apart and combined.
JOINT = 500
_SHARES = (
    0.5,
    1.0,
)  # of ε that a side designed apart may have; 0 is a side that is redacted to its end
_SIDE_EFFORT = 0.07
# entries of a side for which the window will do: anything else takes minutes and gains next to
# nothing
_SIDE_LARGE = 2500
_SIDE_NODES = 12
_UNFORGETTING = 64  # room that is designed where the chain never forgets
_FAR = 4096  # records to the right that are looked at where the model is not stationary
_RATIOS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0)
_LOSSES = 10  # surroundings from which the loss by rounding is estimated
MAX_MINUTES = 10.0


@dataclass(frozen=True, eq=False)
class Needs:
    """The surroundings of the secrets of a table.

    around: (m, 4) records to the left, to the right, the secret's length, and the number of its
    context: for a model with phases what they are along the secret's chain, given in `phases`, else
    0. counts: (m,) how many secrets have each.
    """

    around: Integers
    counts: Integers
    phases: dict[int, Integers] = field(default_factory=dict)


def room_limits(
    model: Model, epsilon: float, known: Designs | None = None
) -> tuple[int | None, int | None]:
    """Rooms to the left and right of a secret beyond which a larger one makes no difference; None:
    it always does.

    known: designs from before, which say so themselves if they are sealed.
    """
    if isinstance(model, MarkovChain) and model.is_stationary:
        grids = None if known is None else known.grids
        cap = (
            _Rooms(model, epsilon, BestWindow(), "run").cap()
            if grids is None
            else max(grids[0][-1], grids[1][-1])
        )
        return max(cap, model.order), max(cap, model.order)
    return None, None if isinstance(model, MarkovChain) and model.length is not None else _FAR


def context_of(phases: Integers) -> int:
    """The number that stands for the phases along a chain."""
    return int.from_bytes(hashlib.sha256(phases.astype(np.int16).tobytes()).digest()[:8]) >> 1


def designs_for(
    model: Model,
    epsilon: float,
    mechanism: Mechanism,
    protect: str,
    needs: Needs,
    *,
    known: Designs | None = None,
    progress: Progress = list,
    max_minutes: float = MAX_MINUTES,
) -> tuple[Designs, Integers]:
    """The designs that some secrets need, and which of them each surrounding gets; rooms are within
    `room_limits`.

    known: designs from before, used where they fit, and candidates, judged where they do. progress:
    goes through a list of what is to be designed.
    """
    if len(needs.around) == 0:
        return Designs(model, epsilon, mechanism.name, protect, ()), np.empty(0, dtype=np.int64)
    if isinstance(model, MarkovChain) and model.is_stationary:
        return _Rooms(model, epsilon, mechanism, protect).shared(needs, known, progress)
    return _one_by_one(model, epsilon, mechanism, protect, needs, known, progress, max_minutes)


class _Rooms:
    """Designs for a stationary chain, where the rooms of a secret alone matter."""

    def __init__(
        self, chain: MarkovChain, epsilon: float, mechanism: Mechanism, protect: str
    ) -> None:
        self.chain, self.epsilon, self.mechanism, self.protect = chain, epsilon, mechanism, protect
        self.masses = self.chain.marginal(1)
        self.apart: dict[tuple[int, int, float], Floats] = {}

    def shared(
        self, needs: Needs, known: Designs | None, progress: Progress
    ) -> tuple[Designs, Integers]:
        lengths = self._length_classes(needs.around[:, 2])
        grids = None if known is None else known.grids
        cap = self.cap() if grids is None else min(grids[0][-1], grids[1][-1])
        left, right = np.minimum(needs.around[:, :2], cap).T
        before = {design.surrounding: design for design in (known.designs if known else ())}
        sided = False
        if grids is None:
            sided = self._sided(cap)
            grids = self._grids(left, right, lengths, cap, sided)
        nodes = [
            np.array(grid)[np.searchsorted(grid, rooms)]
            for grid, rooms in zip(grids, (left, right), strict=True)
        ]
        triples, used, _ = distinct(nodes[0], nodes[1], lengths)
        wanted = [Surrounding(int(a), int(b), int(length)) for a, b, length in triples]
        missing = [around for around in wanted if around not in before]
        loss = 0.0 if known is None else known.loss
        offered = {} if known is None else known.candidates
        refused = 0
        if missing:
            before |= {
                around: taken
                for around in missing
                if (taken := self._taken(around, offered)) is not None
            }
            refused = sum(around in offered and around not in before for around in missing)
            missing = [around for around in missing if around not in before]
            sided = sided or self._sided(cap)
            make = self._combined if sided else self._joint
            if sided and missing:
                self._prepare(missing, progress)
            for around in missing if sided or not missing else progress(missing):
                before[around] = make(around)
            rooms = np.stack((left, right), axis=1)
            loss = self._loss(
                [before[a] for a in wanted],
                rooms,
                needs.counts,
                used,
                grids,
                lambda a: self._taken(a, offered) or make(a),
            )
        found = tuple(before[around] for around in wanted)
        made = Designs(
            self.chain,
            self.epsilon,
            self.mechanism.name,
            self.protect,
            found,
            grids,
            loss,
            refused=refused,
        )
        return made, used

    def _taken(
        self, around: Surrounding, offered: Mapping[Surrounding, Candidate]
    ) -> Design | None:
        """The design that is offered for a surrounding, judged there."""
        if around not in offered:
            return None
        return offered[around].judged(
            problem_of(self.chain, self.epsilon, self.protect, around), around
        )

    def cap(self) -> int:
        """Room beyond which nothing changes: about twice what both sides need if each may
        tell ε/2.
        """
        reaches = [self._side_of(d).delta_star(self.epsilon / 2) for d in (-1, 1)]
        known = [reach for reach in reaches if reach is not None]
        return 2 * max(known) + 6 if len(known) == len(reaches) else _UNFORGETTING

    def _side_of(self, direction: int) -> Side:
        """All that lies to the left or right of a secret with unlimited room."""
        far = 10**12
        return Side(self.chain, far, direction, far - 1)

    def _length_classes(self, lengths: Integers) -> Integers:
        """The shortest secret with the same possible ends as one of each length: all else about a
        longer one is the same.
        """
        present = np.unique(lengths)
        patterns: dict[bytes, int] = {}
        classes = {}
        if self.chain.order == 1 and np.all(self.chain.transition > 0):
            return np.minimum(lengths, 2)
        base = self.chain.lifted.transition > 0
        reached, steps = np.eye(len(base), dtype=bool), 0
        for length in range(1, int(present[-1]) + 1):
            while steps < length - 1:
                reached, steps = reached @ base, steps + 1
            first = patterns.setdefault(bytes([length > 1]) + reached.tobytes(), length)
            classes[length] = first
            if length > 4096:
                raise InputError(
                    "private runs of more than 4,096 records need a model in which every transition"
                    " is possible"
                )
        return np.array([classes[int(length)] for length in present])[
            np.searchsorted(present, lengths)
        ]

    def _sided(self, cap: int) -> bool:
        """Both sides are too large to be improved together."""
        return not self._quick(cap) and 2 * cap * self.chain.k > JOINT

    def _quick(self, cap: int) -> bool:
        """A design takes milliseconds: of every mechanism but best-local, and of that where the
        optimum is known.
        """
        problem = problem_of(self.chain, self.epsilon, self.protect, Surrounding(cap, cap, 1))
        return not isinstance(self.mechanism, BestLocal) or best_local.solved(problem)

    def _grids(
        self, left: Integers, right: Integers, lengths: Integers, cap: int, sided: bool
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The finest grids of rooms whose surroundings are few enough."""
        if sided:
            return self._side_grid(-1, cap), self._side_grid(1, cap)
        limit = QUICK if self._quick(cap) else SLOW
        for ratio in _RATIOS:
            grid = np.array(_geometric(cap, ratio))
            rooms = grid[np.searchsorted(grid, left)], grid[np.searchsorted(grid, right)]
            if len(distinct(*rooms, lengths)[0]) <= limit:
                break
        return tuple(grid.tolist()), tuple(grid.tolist())

    def _side_grid(self, direction: int, cap: int) -> tuple[int, ...]:
        """Few rooms: none, all that F4 forces to be redacted altogether, then growing."""
        side = self._side_of(direction)
        forced = int(
            np.argmin(np.append(np.all(side.influence(cap) > self.epsilon, axis=1), False))
        )
        first = max(forced, 1)
        ratio = max((cap / first) ** (1 / (_SIDE_NODES - 2)), 1.01)
        nodes = {0, cap, *(min(round(first * ratio**i), cap) for i in range(_SIDE_NODES - 1))}
        return tuple(sorted(nodes))

    def _joint(self, around: Surrounding) -> Design:
        problem = problem_of(self.chain, self.epsilon, self.protect, around)
        return designed(self.mechanism, problem, around)

    # ---- both sides apart

    def _prepare(self, missing: list[Surrounding], progress: Progress) -> None:
        """Design every side that some surrounding needs."""
        wanted = {
            (direction, room)
            for around in missing
            for direction, room in ((-1, around.left), (1, around.right))
            if room
        }
        for direction, room, share in progress(
            sorted((d, room, share) for d, room in wanted for share in _SHARES)
        ):
            self._side(direction, room, share)

    def _side(self, direction: int, room: int, share: float) -> Floats:
        """(room, k) the best redaction of one side that tells at most a share of ε, by distance."""
        key = (direction, room, share)
        if key not in self.apart:
            secret = room + 1 if direction < 0 else 1
            problem = Problem(
                self.chain,
                max(room + 1, self.chain.order + 1),
                [secret],
                self.epsilon * share,
                self.protect,
            )
            assert isinstance(self.mechanism, BestLocal)
            mechanism: Mechanism = BestWindow()
            if room * self.chain.k <= _SIDE_LARGE:
                mechanism = replace(self.mechanism, effort=self.mechanism.effort * _SIDE_EFFORT)
            matrix = mechanism.design(problem).redaction
            self.apart[key] = matrix[:room][::-1] if direction < 0 else matrix[1 : room + 1]
        return self.apart[key]

    def _combined(self, around: Surrounding) -> Design:
        """The best of: both sides with half of ε, one with all of it and the other redacted to its
        end, and the window.
        """
        k = self.chain.k
        options = []
        for left_share, right_share in ((0.5, 0.5), (0.0, 1.0), (1.0, 0.0)):
            left, right = (
                self._side(direction, room, share) if share and room else np.ones((room, k))
                for direction, room, share in (
                    (-1, around.left, left_share),
                    (1, around.right, right_share),
                )
            )
            options.append(
                (float((left @ self.masses).sum() + (right @ self.masses).sum()), left, right)
            )
        problem = problem_of(self.chain, self.epsilon, self.protect, around)
        window = window_of(problem)
        options.append((float(sum(window)), np.ones((window[0], k)), np.ones((window[1], k))))
        _, left, right = min(options, key=lambda option: option[0])
        rests = (fills(left, around.left), fills(right, around.right))
        return refereed_design(problem, around, trimmed(left), trimmed(right), rests, window)

    def _loss(
        self,
        designs: list[Design],
        rooms: Integers,
        counts: Integers,
        used: Integers,
        grids: tuple[tuple[int, ...], tuple[int, ...]],
        make: Callable[[Surrounding], Design],
    ) -> float:
        """Expected redactions that rounding rooms up costs a secret, estimated from the most
        frequent surroundings.

        A design for the true rooms redacts at least about as much as one for the next smaller rooms
        of the grid does there, and beyond these what F4 forces.
        """
        if np.array_equal(rooms, np.array([design.surrounding[:2] for design in designs])[used]):
            return 0.0
        forced = [self._forced(-1, max(grids[0])), self._forced(1, max(grids[1]))]
        total, seen = 0.0, 0
        frequent = np.argsort(-np.bincount(used, counts), kind="stable")[:_LOSSES]
        smaller: dict[Surrounding, Design] = {design.surrounding: design for design in designs}
        for index in frequent.tolist():
            design = designs[index]
            around = design.surrounding
            mine, times = rooms[used == index], counts[used == index]
            seen += int(times.sum())
            own = np.all(mine == (around.left, around.right), axis=1)
            if own.all():
                continue
            lower = []
            for grid, node, exact in zip(grids, around[:2], mine.T, strict=True):
                place = grid.index(node)
                lower.append(node if np.all(exact == node) else grid[max(place - 1, 0)])
            floor = Surrounding(lower[0], lower[1], around.length)
            if floor not in smaller:
                smaller[floor] = make(floor)
            least = smaller[floor].cost(self.masses, floor.left, floor.right)
            for (a, b), count in zip(mine[~own].tolist(), times[~own].tolist(), strict=True):
                beyond = (
                    forced[0][a] - forced[0][floor.left] + forced[1][b] - forced[1][floor.right]
                )
                total += count * max(design.cost(self.masses, a, b) - least - beyond, 0.0)
        return total / max(seen, 1)

    def _forced(self, direction: int, room: int) -> Floats:
        """(room + 1,) expected redactions that F4 forces among the nearest 0, 1, … records of a
        side.
        """
        side = self._side_of(direction)
        forced = (side.influence(max(room, 1)) > self.epsilon * (1 + 1e-9) + 1e-12) @ self.masses
        return np.concatenate(([0.0], np.cumsum(forced[:room])))


def _one_by_one(
    model: Model,
    epsilon: float,
    mechanism: Mechanism,
    protect: str,
    needs: Needs,
    known: Designs | None,
    progress: Progress,
    max_minutes: float,
) -> tuple[Designs, Integers]:
    """Where the model is not stationary: a design for each place in a chain; InputError if that
    would take too long.
    """
    places: dict[Surrounding, list[int]] = {}
    phases: dict[Surrounding, Integers] = {}
    for row, (left, right, length, context) in enumerate(needs.around.tolist()):
        around = Surrounding(left, right, length, f"{context:016x}" if context else "")
        if context:
            phases[around] = needs.phases[context]
        places.setdefault(around, []).append(row)
    before = {design.surrounding: design for design in (known.designs if known else ())}
    offered = {} if known is None or phases else known.candidates
    refused = 0
    for around in [around for around in places if around not in before and around in offered]:
        taken = offered[around].judged(problem_of(model, epsilon, protect, around), around)
        refused += taken is None
        if taken is not None:
            before[around] = taken
    missing = [around for around in places if around not in before]
    started = time.monotonic()
    for done, around in enumerate(progress(missing)):
        problem = problem_of(model, epsilon, protect, around, phases.get(around))
        before[around] = designed(mechanism, problem, around)
        minutes = (time.monotonic() - started) / 60 / (done + 1) * len(missing)
        if done in (0, 2, 20, 200) and done + 1 < len(missing) and minutes > max_minutes:
            raise InputError(
                "the model is not stationary, so each place in a chain needs a design of its own:"
                f" {len(missing)} of them would take about {minutes:.0f} minutes; allow that with"
                f" --design-minutes {np.ceil(minutes) + 1:.0f}, take a quicker --mechanism (window,"
                " 3r-relaxed), or a stationary model"
            )
    used = np.empty(len(needs.around), dtype=np.int64)
    for index, rows in enumerate(places.values()):
        used[rows] = index
    made = tuple(before[around] for around in places)
    return Designs(model, epsilon, mechanism.name, protect, made, refused=refused), used


def distinct(*columns: Integers) -> tuple[Integers, Integers, Integers]:
    """The distinct rows of some columns of small whole numbers: the rows, which one each is, and
    how often each comes.

    Rows become one number each; counting those is far faster than sorting rows where few are
    distinct.
    """
    sizes = [int(column.max()) + 1 for column in columns]
    if math.prod(sizes) >= 2**62:
        rows, used, counts = np.unique(
            np.stack(columns, axis=1), axis=0, return_inverse=True, return_counts=True
        )
        return rows, used.ravel(), counts
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        codes = codes * size + column
    if math.prod(sizes) < max(4 * len(codes), 1 << 20):
        counts = np.bincount(codes)
        found = np.flatnonzero(counts)
        number = np.zeros(len(counts), dtype=np.int64)
        number[found] = np.arange(len(found))
        used, counts = number[codes], counts[found]
    else:
        found, used, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return np.stack(np.unravel_index(found, sizes), axis=1), used, counts


def _geometric(cap: int, ratio: float) -> list[int]:
    nodes = [0]
    while nodes[-1] < cap:
        nodes.append(min(max(nodes[-1] + 1, int(nodes[-1] * ratio)), cap))
    return nodes
