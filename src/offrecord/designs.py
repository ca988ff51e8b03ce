"""Designs at scale: one for each distinct surrounding of a secret, shared by all secrets that have it (F14).

A design says, by distance from the secret, with which probability each value is redacted. Stamped around every secret, the
per-value maximum of all stamps is private for each of them (F3). In a stationary chain a surrounding is how many records
there are to the left and to the right, up to where the chain has forgotten; rooms may be rounded up to a coarser grid.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from offrecord.chain import Floats, MarkovChain
from offrecord.draws import subkey
from offrecord.errors import InputError
from offrecord.exact_leakage import worst_output
from offrecord.files import checked_content, read_json, write_text
from offrecord.mechanisms import BestLocal, BestWindow, Mechanism, best_local
from offrecord.phased import PhasedChain, model_from_dict
from offrecord.policy import Policy
from offrecord.problem import Problem
from offrecord.redaction import Integers, Redaction
from offrecord.side import Side

DESIGNS_VERSION = 1
#: How many surroundings are designed one by one before rooms are rounded up: where a design takes milliseconds, and seconds.
QUICK, SLOW = 400, 40
#: Entries of a redaction matrix above which both sides are designed apart and combined.
JOINT = 500
_SHARES = (0.5, 1.0)  # of ε that a side designed apart may have; 0 is a side that is redacted to its end
_SIDE_EFFORT = 0.07
_SIDE_LARGE = 2500  # entries of a side for which the window will do: anything else takes minutes and gains next to nothing
_SIDE_NODES = 12
_UNFORGETTING = 64  # room that is designed where the chain never forgets
_FAR = 4096  # records to the right that are looked at where the model is not stationary
_RATIOS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0)
_LOSSES = 10  # surroundings from which the loss by rounding is estimated
MAX_MINUTES = 10.0

Model = MarkovChain | PhasedChain


class Surrounding(NamedTuple):
    """What a design is made for: records to the left and right of a secret, the secret's length, and the chain's phases."""

    left: int
    right: int
    length: int
    context: str = ""


@dataclass(frozen=True, eq=False)
class Design:
    """Redaction around a secret by distance.

    left, right: (a, k) and (b, k), row d − 1 for distance d; then all is released, or (rest) redacted to the chain's end.
    leakage: exact for the surrounding it was made for (for order above 1 an upper bound), rounding: of that computation.
    window: how far the best data-independent mechanism would redact to the left and right, for comparison.
    """

    surrounding: Surrounding
    left: Floats
    right: Floats
    left_rest: bool
    right_rest: bool
    leakage: float
    rounding: float
    window: tuple[int, int]

    def cost(self, masses: Floats, left: int, right: int) -> float:
        """Expected number of redacted records beside the secret in rooms no larger than it was made for."""
        total = 0.0
        for rows, rest, room in ((self.left, self.left_rest, left), (self.right, self.right_rest, right)):
            total += float((rows[:room] @ masses).sum()) + (max(room - len(rows), 0) if rest else 0)
        return total


@dataclass(frozen=True, eq=False)
class Needs:
    """The surroundings of all secrets of a table. contexts: for a model with phases, those along the secret's chain."""

    left: Integers
    right: Integers
    length: Integers
    context: Callable[[int, int], Integers] | None = None


@dataclass(frozen=True, eq=False)
class Designs:
    """Designs for one model, budget and mechanism.

    grids: the rooms to the left and right they are made for, up to where the chain has forgotten; None for a model that is
    not stationary. loss: expected redactions that rounding rooms up to these grids costs a secret. sealed: read from a file
    as it was written.
    """

    model: Model
    epsilon: float
    mechanism: str
    protect: str
    designs: tuple[Design, ...]
    grids: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    loss: float = 0.0
    sealed: bool = False

    # ---- files

    def to_dict(self) -> dict[str, Any]:
        """The content of a designs file; equal sides are written once."""
        sides: dict[bytes, int] = {}
        listed: list[Any] = []

        def number(rows: Floats) -> int:
            name = repr(rows.shape).encode() + rows.tobytes()
            if name not in sides:
                sides[name] = len(listed)
                listed.append(_stretches(rows))
            return sides[name]

        designs = [
            {
                **design.surrounding._asdict(),
                "redaction_left": number(design.left),
                "redaction_right": number(design.right),
                "left_rest": design.left_rest,
                "right_rest": design.right_rest,
                "leakage": design.leakage,
                "rounding": design.rounding,
                "window": list(design.window),
            }
            for design in self.designs
        ]
        return {
            "format": "offrecord-designs",
            "version": DESIGNS_VERSION,
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "protect": self.protect,
            "grids": self.grids,
            "loss": self.loss,
            "model": self.model.to_dict(),
            "sides": listed,
            "designs": designs,
        }

    def save(self, path: str | Path, key: bytes | None = None) -> None:
        """Write a designs file, over an older one, sealed with a key if there is one."""
        content = self.to_dict()
        sealed = content if key is None else {**content, "seal": _seal(content, key)}
        write_text(path, json.dumps(sealed, allow_nan=False) + "\n", force=True)

    @classmethod
    def load(
        cls, path: str | Path, model: Model, epsilon: float, mechanism: str, protect: str, key: bytes | None = None
    ) -> Designs:
        """Read a designs file made for the same model, budget and mechanism.

        Every leakage is computed anew, unless this version wrote the file and sealed it with the same key.
        """
        content = read_json(path)
        try:
            return cls._from_dict(content, model, epsilon, mechanism, protect, key)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def _from_dict(cls, content: Any, model: Model, epsilon: float, mechanism: str, protect: str, key: bytes | None) -> Designs:
        keys = ("mechanism", "epsilon", "protect", "model", "sides", "designs", "grids", "loss")
        content = checked_content(content, "designs", DESIGNS_VERSION, keys)
        seal = content.pop("seal", None)
        sealed = key is not None and isinstance(seal, str) and hmac.compare_digest(seal, _seal(content, key))
        wanted = {"mechanism": mechanism, "epsilon": epsilon, "protect": protect}
        for name, value in wanted.items():
            if content[name] != value:
                raise InputError(f"made for {name} {content[name]!r}, not {value!r}; give another file to --designs")
        if model_from_dict(content["model"]).to_dict() != model.to_dict():
            raise InputError("made for another model; give another file to --designs")
        try:
            sides = [_rows(part, model.k) for part in content["sides"]]
            grids = content["grids"]
            designs = []
            for one in content["designs"]:
                around = Surrounding(int(one["left"]), int(one["right"]), int(one["length"]), str(one["context"]))
                if around.context:
                    continue  # phases are not in the file: designed anew
                left, right = sides[one["redaction_left"]], sides[one["redaction_right"]]
                rests = bool(one["left_rest"]), bool(one["right_rest"])
                window = int(one["window"][0]), int(one["window"][1])
                if not sealed:  # in a larger room than it was made for, a plan that does not end redacts all the rest
                    rests = rests[0] or _fills(left, around.left), rests[1] or _fills(right, around.right)
                if sealed:
                    designs.append(Design(around, left, right, *rests, one["leakage"], one["rounding"], window))
                else:
                    problem = _problem(model, epsilon, protect, around, None)
                    designs.append(_refereed(problem, around, left, right, rests, window))
            kept = None if grids is None else (tuple(map(int, grids[0])), tuple(map(int, grids[1])))
            if kept is not None and not all(grid and grid[0] == 0 and list(grid) == sorted(set(grid)) for grid in kept):
                raise ValueError("not a grid")
            loss = float(content["loss"])
            if not (0 <= loss < math.inf):
                raise ValueError("not a loss")
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError):
            raise InputError("damaged: it does not hold what a designs file holds") from None
        return cls(model, epsilon, mechanism, protect, tuple(designs), kept, loss, sealed)

    def merged(self, known: Designs | None) -> Designs:
        """These designs and those known before."""
        if known is None:
            return self
        mine = {design.surrounding for design in self.designs}
        return replace(self, designs=(*self.designs, *(one for one in known.designs if one.surrounding not in mine)))

    # ---- for stamping

    @cached_property
    def digest(self) -> str:
        """Of everything that decides which records are redacted: surroundings and redaction probabilities."""
        digest = hashlib.sha256()
        for design in self.designs:
            shape = (*design.surrounding, len(design.left), len(design.right), design.left_rest, design.right_rest)
            digest.update(repr(shape).encode() + design.left.tobytes() + design.right.tobytes())
        return digest.hexdigest()


def designs_for(
    model: Model,
    epsilon: float,
    mechanism: Mechanism,
    protect: str,
    needs: Needs,
    *,
    known: Designs | None = None,
    progress: Callable[[list[Any]], Iterable[Any]] = list,
    max_minutes: float = MAX_MINUTES,
) -> tuple[Designs, Integers]:
    """The designs that some secrets need, and which of them each secret gets.

    known: designs from before, used where they fit. progress: goes through a list of what is to be designed.
    """
    maker = _Maker(model, epsilon, mechanism, protect, max_minutes)
    if len(needs.left) == 0:
        return Designs(model, epsilon, mechanism.name, protect, ()), np.empty(0, dtype=np.int64)
    if not maker.stationary:
        return maker.one_by_one(needs, known, progress)
    return maker.shared(needs, known, progress)


class _Maker:
    """Makes designs for one model, budget and mechanism."""

    def __init__(self, model: Model, epsilon: float, mechanism: Mechanism, protect: str, max_minutes: float) -> None:
        self.model, self.epsilon, self.mechanism, self.protect = model, epsilon, mechanism, protect
        self.max_minutes = max_minutes
        self.stationary = isinstance(model, MarkovChain) and model.stationary
        self.model_length = model.length if isinstance(model, MarkovChain) else None
        self.apart: dict[tuple[int, int, float], Floats] = {}

    # ---- stationary: rooms alone matter

    def shared(self, needs: Needs, known: Designs | None, progress: Any) -> tuple[Designs, Integers]:
        assert isinstance(self.model, MarkovChain)
        lengths = self._length_classes(needs.length)
        grids = None if known is None else known.grids
        cap = self._cap() if grids is None else min(grids[0][-1], grids[1][-1])
        left, right = np.minimum(needs.left, cap), np.minimum(needs.right, cap)
        before = {design.surrounding: design for design in (known.designs if known else ())}
        sided = False
        if grids is None:
            sided = self._sided(cap)
            grids = self._grids(left, right, lengths, cap, sided)
        nodes = [np.array(grid)[np.searchsorted(grid, rooms)] for grid, rooms in zip(grids, (left, right), strict=True)]
        triples, used, counts = distinct(nodes[0], nodes[1], lengths)
        wanted = [Surrounding(int(a), int(b), int(length)) for a, b, length in triples]
        missing = [around for around in wanted if around not in before]
        loss = 0.0 if known is None else known.loss
        if missing:
            sided = sided or self._sided(cap)
            make = self._combined if sided else self._joint
            if sided:
                self._prepare(missing, progress)
            for around in missing if sided else progress(missing):
                before[around] = make(around)
            loss = self._loss([before[a] for a in wanted], np.stack((left, right), axis=1), used, counts, grids, make)
        found = tuple(before[around] for around in wanted)
        return Designs(self.model, self.epsilon, self.mechanism.name, self.protect, found, grids, loss), used

    def _cap(self) -> int:
        """Room beyond which nothing changes: about twice what both sides need if each may tell ε/2."""
        far = 10**12
        chain = self.model
        assert isinstance(chain, MarkovChain)
        reaches = [Side(chain, far, d, far - 1).reach(self.epsilon / 2) for d in (-1, 1)]
        known = [reach for reach in reaches if reach is not None]
        return 2 * max(known) + 6 if len(known) == len(reaches) else _UNFORGETTING

    def _length_classes(self, lengths: Integers) -> Integers:
        """The shortest secret with the same possible ends as one of each length: all else about a longer one is the same."""
        present = np.unique(lengths)
        patterns: dict[bytes, int] = {}
        classes = {}
        chain = self.model
        assert isinstance(chain, MarkovChain)
        if chain.order == 1 and np.all(chain.transition > 0):
            return np.minimum(lengths, 2)
        base = chain.lifted.transition > 0
        reached, steps = np.eye(len(base), dtype=bool), 0
        for length in range(1, int(present[-1]) + 1):
            while steps < length - 1:
                reached, steps = reached @ base, steps + 1
            first = patterns.setdefault(bytes([length > 1]) + reached.tobytes(), length)
            classes[length] = first
            if length > 4096:
                raise InputError("private runs of more than 4,096 records need a model in which every transition is possible")
        return np.array([classes[int(length)] for length in present])[np.searchsorted(present, lengths)]

    def _sided(self, cap: int) -> bool:
        """Both sides are too large to be improved together."""
        if not isinstance(self.mechanism, BestLocal):
            return False
        problem = _problem(self.model, self.epsilon, self.protect, Surrounding(cap, cap, 1), None)
        return not best_local.solved(problem) and 2 * cap * self.model.k > JOINT

    def _grids(
        self, left: Integers, right: Integers, lengths: Integers, cap: int, sided: bool
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The finest grids of rooms whose surroundings are few enough."""
        if sided:
            return self._side_grid(-1, cap), self._side_grid(1, cap)
        problem = _problem(self.model, self.epsilon, self.protect, Surrounding(cap, cap, 1), None)
        quick = not isinstance(self.mechanism, BestLocal) or best_local.solved(problem)
        limit = QUICK if quick else SLOW
        for ratio in _RATIOS:
            grid = np.array(_geometric(cap, ratio))
            rooms = grid[np.searchsorted(grid, left)], grid[np.searchsorted(grid, right)]
            if len(distinct(*rooms, lengths)[0]) <= limit:
                break
        return tuple(grid.tolist()), tuple(grid.tolist())

    def _side_grid(self, direction: int, cap: int) -> tuple[int, ...]:
        """Few rooms: none, all that F4 forces to be redacted altogether, then growing."""
        chain = self.model
        assert isinstance(chain, MarkovChain)
        side = Side(chain, 10**12, direction, 10**12 - 1)
        forced = int(np.argmin(np.append(np.all(side.influence(cap) > self.epsilon, axis=1), False)))
        first = max(forced, 1)
        ratio = max((cap / first) ** (1 / (_SIDE_NODES - 2)), 1.01)
        nodes = {0, cap, *(min(round(first * ratio**i), cap) for i in range(_SIDE_NODES - 1))}
        return tuple(sorted(nodes))

    def _joint(self, around: Surrounding) -> Design:
        problem = _problem(self.model, self.epsilon, self.protect, around, None)
        return _designed(self.mechanism, problem, around)

    # ---- both sides apart

    def _prepare(self, missing: list[Surrounding], progress: Any) -> None:
        """Design every side that some surrounding needs."""
        wanted = {(direction, room) for around in missing for direction, room in ((-1, around.left), (1, around.right)) if room}
        for direction, room, share in progress(sorted((d, room, share) for d, room in wanted for share in _SHARES)):
            self._side(direction, room, share)

    def _side(self, direction: int, room: int, share: float) -> Floats:
        """(room, k) the best redaction of one side that tells at most a share of ε, by distance."""
        key = (direction, room, share)
        if key not in self.apart:
            chain = self.model
            assert isinstance(chain, MarkovChain)
            secret = room + 1 if direction < 0 else 1
            problem = Problem(chain, max(room + 1, chain.order + 1), [secret], self.epsilon * share, self.protect)
            assert isinstance(self.mechanism, BestLocal)
            mechanism: Mechanism = BestWindow()
            if room * chain.k <= _SIDE_LARGE:
                mechanism = replace(self.mechanism, effort=self.mechanism.effort * _SIDE_EFFORT)
            matrix = mechanism.design(problem).redaction
            self.apart[key] = matrix[:room][::-1] if direction < 0 else matrix[1:]
        return self.apart[key]

    def _combined(self, around: Surrounding) -> Design:
        """The best of: both sides with half of ε, one with all of it and the other redacted to its end, and the window."""
        k = self.model.k
        masses = self._masses
        options = []
        for left_share, right_share in ((0.5, 0.5), (0.0, 1.0), (1.0, 0.0)):
            left, right = (
                self._side(direction, room, share) if share and room else np.ones((room, k))
                for direction, room, share in ((-1, around.left, left_share), (1, around.right, right_share))
            )
            options.append((float((left @ masses).sum() + (right @ masses).sum()), left, right))
        problem = _problem(self.model, self.epsilon, self.protect, around, None)
        window = _window(problem)
        options.append((float(sum(window)), np.ones((window[0], k)), np.ones((window[1], k))))
        _, left, right = min(options, key=lambda option: option[0])
        rests = (_fills(left, around.left), _fills(right, around.right))
        return _refereed(problem, around, _trimmed(left), _trimmed(right), rests, window)

    @property
    def _masses(self) -> Floats:
        assert isinstance(self.model, MarkovChain)
        return self.model.marginal(1)

    def _loss(
        self,
        designs: list[Design],
        rooms: Integers,
        used: Integers,
        counts: Integers,
        grids: tuple[tuple[int, ...], tuple[int, ...]],
        make: Callable[[Surrounding], Design],
    ) -> float:
        """Expected redactions that rounding rooms up costs a secret, estimated from the most frequent surroundings.

        A design for the true rooms redacts at least about as much as one for the next smaller rooms of the grid does there, and
        beyond these what F4 forces.
        """
        if np.array_equal(rooms, np.array([design.surrounding[:2] for design in designs])[used]):
            return 0.0
        forced = [self._forced(-1, max(grids[0])), self._forced(1, max(grids[1]))]
        total, seen = 0.0, 0
        frequent = np.argsort(-counts, kind="stable")[:_LOSSES]
        smaller: dict[Surrounding, Design] = {design.surrounding: design for design in designs}
        for index in frequent.tolist():
            design = designs[index]
            around = design.surrounding
            mine = rooms[used == index]
            seen += len(mine)
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
            least = smaller[floor].cost(self._masses, floor.left, floor.right)
            pairs, _, times = distinct(*mine[~own].T)
            for (a, b), count in zip(pairs.tolist(), times.tolist(), strict=True):
                beyond = forced[0][a] - forced[0][floor.left] + forced[1][b] - forced[1][floor.right]
                total += count * max(design.cost(self._masses, a, b) - least - beyond, 0.0)
        return total / max(seen, 1)

    def _forced(self, direction: int, room: int) -> Floats:
        """(room + 1,) expected redactions that F4 forces among the nearest 0, 1, … records of a side."""
        assert isinstance(self.model, MarkovChain)
        side = Side(self.model, 10**12, direction, 10**12 - 1)
        forced = (side.influence(max(room, 1)) > self.epsilon * (1 + 1e-9) + 1e-12) @ self._masses
        return np.concatenate(([0.0], np.cumsum(forced[:room])))

    # ---- not stationary: a design for each position

    def one_by_one(self, needs: Needs, known: Designs | None, progress: Any) -> tuple[Designs, Integers]:
        """A design for each place in a chain; InputError if that would take too long."""
        places: dict[Surrounding, list[int]] = {}
        phases: dict[Surrounding, Integers] = {}
        for secret in range(len(needs.left)):
            left, length = int(needs.left[secret]), int(needs.length[secret])
            right = int(needs.right[secret])
            if self.model_length is None:
                right = min(right, _FAR)  # further ones may be forgotten; one design then serves more places
            context = ""
            if needs.context is not None:
                along = needs.context(secret, left + length + max(right, 1))
                context = hashlib.sha256(along.astype(np.int16).tobytes()).hexdigest()[:16]
            around = Surrounding(left, right, length, context)
            if around not in places and needs.context is not None:
                phases[around] = along
            places.setdefault(around, []).append(secret)
        before = {design.surrounding: design for design in (known.designs if known else ())}
        missing = [around for around in places if around not in before]
        started = time.monotonic()
        for done, around in enumerate(progress(missing)):
            problem = _problem(self.model, self.epsilon, self.protect, around, phases.get(around))
            before[around] = _designed(self.mechanism, problem, around)
            minutes = (time.monotonic() - started) / 60 / (done + 1) * len(missing)
            if done in (0, 2, 20, 200) and done + 1 < len(missing) and minutes > self.max_minutes:
                raise InputError(
                    f"the model is not stationary, so each place in a chain needs a design of its own: {len(missing)} of them"
                    f" would take about {minutes:.0f} minutes; allow that with --design-minutes {np.ceil(minutes) + 1:.0f},"
                    " take a quicker --mechanism (window, 3r-relaxed), or a stationary model"
                )
        used = np.empty(len(needs.left), dtype=np.int64)
        for index, secrets in enumerate(places.values()):
            used[secrets] = index
        made = tuple(before[around] for around in places)
        return Designs(self.model, self.epsilon, self.mechanism.name, self.protect, made), used


def _seal(content: dict[str, Any], key: bytes) -> str:
    """What only this version and the key's owner can write under a designs file."""
    text = json.dumps([version("offrecord"), content], sort_keys=True)
    return hmac.new(subkey(key, b"offrecord/seal"), text.encode(), "sha256").hexdigest()


def distinct(*columns: Integers) -> tuple[Integers, Integers, Integers]:
    """The distinct rows of some columns of small whole numbers: the rows, which one each is, and how often each comes.

    Rows become one number each; counting those is far faster than sorting rows where few are distinct.
    """
    sizes = [int(column.max()) + 1 for column in columns]
    if math.prod(sizes) >= 2**62:
        rows, used, counts = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True, return_counts=True)
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


def _problem(model: Model, epsilon: float, protect: str, around: Surrounding, phases: Integers | None) -> Problem:
    """The secret of a surrounding, in as much chain as it has around it (and at least one record more than the order)."""
    n = max(around.left + around.length + around.right, model.order + 1, 2)
    if isinstance(model, PhasedChain):
        assert phases is not None
        n = len(phases)
        chain = model.along(phases)
    else:
        chain = model
    return Problem(chain, n, range(around.left + 1, around.left + around.length + 1), epsilon, protect)


def _designed(mechanism: Mechanism, problem: Problem, around: Surrounding) -> Design:
    policy = mechanism.design(problem)
    left, right = _around(policy)
    rests = (_fills(left, around.left), _fills(right, problem.n - problem.private[-1]))
    window = (len(left), len(right)) if policy.mechanism == "window" else _window(problem)
    return Design(around, left, right, *rests, policy.leakage, policy.worst.rounding, window)


def _around(policy: Policy) -> tuple[Floats, Floats]:
    """The redaction to the left and right of a policy's one secret, by distance."""
    first, last = policy.problem.private[0], policy.problem.private[-1]
    low, high = int(policy.sparse.starts[0]), int(policy.sparse.stops[-1])
    return _trimmed(policy.sparse.matrix(low, first - 1)[::-1]), _trimmed(policy.sparse.matrix(last, high))


def _window(problem: Problem) -> tuple[int, int]:
    left, right = _around(BestWindow().design(problem))
    return len(left), len(right)


def _refereed(
    problem: Problem, around: Surrounding, left: Floats, right: Floats, rests: tuple[bool, bool], window: tuple[int, int]
) -> Design:
    """A design with its exact leakage; everything redacted should that exceed the budget."""
    first, last, n, k = problem.private[0], problem.private[-1], problem.n, problem.chain.k
    matrix = _whole(problem, left, right, rests)
    worst = worst_output(problem, matrix)
    if worst.upper <= problem.epsilon:
        return Design(around, left, right, *rests, worst.leakage, worst.rounding, window)
    ones = np.ones((first - 1, k)), np.ones((n - last, k))
    return _refereed(problem, around, *ones, (True, True), window)


def _whole(problem: Problem, left: Floats, right: Floats, rests: tuple[bool, bool]) -> Redaction:
    """The redaction of a design's own problem."""
    first, last, n, k = problem.private[0], problem.private[-1], problem.n, problem.chain.k
    matrix = np.zeros((n, k))
    matrix[first - 1 : last] = 1.0
    for rows, rest, view in ((left, rests[0], matrix[: first - 1][::-1]), (right, rests[1], matrix[last:])):
        if rest:
            view[:] = 1.0
        view[: len(rows)] = rows[: len(view)]
    return Redaction.from_matrix(matrix, n, k).compressed()


def _trimmed(rows: Floats) -> Floats:
    kept = np.flatnonzero(rows.any(axis=1))
    return np.ascontiguousarray(rows[: kept[-1] + 1 if len(kept) else 0])


def _fills(rows: Floats, room: int) -> bool:
    """The plan does not end before its room does: in a larger room everything beyond is redacted too."""
    return room > 0 and len(_trimmed(rows)) >= room


def _geometric(cap: int, ratio: float) -> list[int]:
    nodes = [0]
    while nodes[-1] < cap:
        nodes.append(min(max(nodes[-1] + 1, int(nodes[-1] * ratio)), cap))
    return nodes


def _stretches(rows: Floats) -> list[list[Any]]:
    """Rows as [count, probabilities], equal neighbours together."""
    out: list[list[Any]] = []
    for row in rows.tolist():
        if out and out[-1][1] == row:
            out[-1][0] += 1
        else:
            out.append([1, row])
    return out


def _rows(stretches: Any, k: int) -> Floats:
    counts = [int(count) for count, _ in stretches]
    rows = np.array([row for _, row in stretches], dtype=np.float64).reshape(len(counts), k)
    if any(not 0 < count <= 10**7 for count in counts) or not np.all((rows >= 0) & (rows <= 1)):
        raise ValueError("not a redaction")
    return np.ascontiguousarray(np.repeat(rows, counts, axis=0))
