"""Designs: by distance from a secret, with which probability each value is redacted; and files of
them.

Stamped around every secret, the per-value maximum of all stamps is private for each of them (F3).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from offrecord.errors import InputError
from offrecord.files import checked_content, read_json, write_text
from offrecord.mechanisms import BestWindow, Mechanism
from offrecord.mechanisms.policy import Policy
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain
from offrecord.models.loading import model_from_dict
from offrecord.models.phased import PhasedChain
from offrecord.release.coins import subkey
from offrecord.theory.leakage import worst_output
from offrecord.theory.problem import MAX_RECORDS, Problem
from offrecord.theory.redaction import Redaction

DESIGNS_VERSION = 1
_MOST_ALIKE = 10**7  # rows that one stretch of a file may stand for

Model = MarkovChain | PhasedChain


class Surrounding(NamedTuple):
    """What a design is made for: records to the left and right of a secret, the secret's length,
    and the chain's phases.
    """

    left: int
    right: int
    length: int
    context: str = ""


@dataclass(frozen=True, eq=False)
class Design:
    """Redaction around a secret by distance.

    left, right: (a, k) and (b, k), row d − 1 for distance d; then all is released, or (rest)
    redacted to the chain's end.
    leakage: exact for the surrounding it was made for (for order above 1 an upper bound), rounding:
    of that computation.
    window: how far the best data-independent mechanism would redact to the left and right, for
    comparison.
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
        """Expected number of redacted records beside the secret in rooms no larger than it was made
        for.
        """
        total = 0.0
        for rows, rest, room in (
            (self.left, self.left_rest, left),
            (self.right, self.right_rest, right),
        ):
            total += float((rows[:room] @ masses).sum()) + (max(room - len(rows), 0) if rest else 0)
        return total


@dataclass(frozen=True, eq=False)
class Stretches:
    """Rows by distance as a file has them: each with how often it comes, and not spelled out before
    they are known to fit.
    """

    counts: tuple[int, ...]
    rows: Floats

    def __len__(self) -> int:
        return sum(self.counts)

    @cached_property
    def spelled_out(self) -> Floats:
        """(a, k) row by row."""
        return np.ascontiguousarray(np.repeat(self.rows, self.counts, axis=0))


class Candidate(NamedTuple):
    """What a file that is not sealed would redact to the left and right of a secret; all else that
    it says is not read.
    """

    left: Stretches
    right: Stretches

    def judged(self, problem: Problem, around: Surrounding) -> Design | None:
        """The design this makes of a problem with one secret; None if it is longer than its rooms
        or leaks more than ε.
        """
        rooms = problem.private[0] - 1, problem.n - problem.private[-1]
        if len(self.left) > rooms[0] or len(self.right) > rooms[1]:
            return None
        left, right = trimmed(self.left.spelled_out), trimmed(self.right.spelled_out)
        rests = fills(left, rooms[0]), fills(right, rooms[1])
        worst = worst_output(problem, _whole(problem, left, right, rests))
        if not worst.upper <= problem.epsilon:
            return None
        return Design(
            around, left, right, *rests, worst.leakage, worst.rounding, window_of(problem)
        )


class _Read(NamedTuple):
    """What a file says about one surrounding."""

    candidate: Candidate
    rests: tuple[bool, bool]
    leakage: float
    rounding: float
    window: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Designs:
    """Designs for one model, budget and mechanism.

    grids: the rooms to the left and right they are made for, up to where the chain has forgotten;
    None for a model that is not stationary. loss: expected redactions that rounding rooms up to
    these grids costs a secret. sealed: read from a file as it was written. candidates: all there is
    of a file that is not sealed; a surrounding that needs one judges it, and `refused` counts those
    it did not take.
    """

    model: Model
    epsilon: float
    mechanism: str
    protect: str
    designs: tuple[Design, ...]
    grids: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    loss: float = 0.0
    sealed: bool = False
    candidates: Mapping[Surrounding, Candidate] = field(default_factory=dict)
    refused: int = 0

    # ---- files

    def to_dict(self) -> dict[str, Any]:
        """The content of a designs file; equal sides are written once."""
        sides: dict[bytes, int] = {}
        listed: list[Any] = []

        def number(rows: Floats) -> int:
            name = repr(rows.shape).encode() + rows.tobytes()
            if name not in sides:
                sides[name] = len(listed)
                listed.append(_joined(rows))
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
        """Write a designs file, over an older one, sealed with a key if there is one; candidates
        are left out.
        """
        content = self.to_dict()
        sealed = content if key is None else {**content, "seal": _seal(content, key)}
        write_text(path, json.dumps(sealed, allow_nan=False) + "\n", force=True)

    @classmethod
    def load(
        cls,
        path: str | Path,
        model: Model,
        epsilon: float,
        mechanism: str,
        protect: str,
        key: bytes | None = None,
    ) -> Designs:
        """Read a designs file made for the same model, budget and mechanism.

        Unless this version wrote the file and sealed it with the same key, it holds no designs,
        only candidates for some.
        """
        content = read_json(path)
        try:
            return cls._from_dict(content, model, epsilon, mechanism, protect, key)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except RecursionError:
            raise InputError(
                f"{path}: damaged: it is nested too deeply for a designs file"
            ) from None

    @classmethod
    def _from_dict(
        cls,
        content: Any,
        model: Model,
        epsilon: float,
        mechanism: str,
        protect: str,
        key: bytes | None,
    ) -> Designs:
        keys = ("mechanism", "epsilon", "protect", "model", "sides", "designs", "grids", "loss")
        content = checked_content(content, "designs", DESIGNS_VERSION, keys)
        seal = content.pop("seal", None)
        given = seal if isinstance(seal, str) and seal.isascii() else ""
        sealed = key is not None and hmac.compare_digest(given, _seal(content, key))
        wanted = {"mechanism": mechanism, "epsilon": epsilon, "protect": protect}
        for name, value in wanted.items():
            if content[name] != value or isinstance(content[name], bool):
                raise InputError(
                    f"made for {name} {content[name]!r:.60}, not {value!r}; give another file to"
                    " --designs"
                )
        if model_from_dict(content["model"]).to_dict() != model.to_dict():
            raise InputError("made for another model; give another file to --designs")
        try:
            sides = [_stretches(part, model.k) for part in _list(content["sides"])]
            read: dict[Surrounding, _Read] = {}
            for one in _list(content["designs"]):
                around = Surrounding(
                    _count(one["left"]),
                    _count(one["right"]),
                    _count(one["length"], 1),
                    _text(one["context"]),
                )
                if around in read:
                    raise ValueError("a surrounding comes twice")
                candidate = Candidate(
                    sides[_count(one["redaction_left"])], sides[_count(one["redaction_right"])]
                )
                rests = _truth(one["left_rest"]), _truth(one["right_rest"])
                left, right = _list(one["window"])
                window = _count(left), _count(right)
                read[around] = _Read(
                    candidate, rests, _number(one["leakage"]), _number(one["rounding"]), window
                )
            grids = None if content["grids"] is None else _grids(content["grids"])
            loss = _number(content["loss"])
            kept = {
                around: one for around, one in read.items() if not around.context
            }  # phases are not in the file
            if not sealed:
                candidates = (
                    {}
                    if isinstance(model, PhasedChain)
                    else {around: one.candidate for around, one in kept.items()}
                )
                return cls(model, epsilon, mechanism, protect, (), candidates=candidates)
            if grids is not None and not 0 < grids[0][-1] == grids[1][-1]:
                raise ValueError("not grids of the same room")
            designs = tuple(
                _sealed_design(model, epsilon, around, one) for around, one in kept.items()
            )
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError):
            raise InputError(
                "damaged: it does not hold what a designs file holds; delete it, or give another"
            ) from None
        return cls(model, epsilon, mechanism, protect, designs, grids, loss, sealed)

    def merged(self, known: Designs | None) -> Designs:
        """These designs and those known before: sealed ones, for what is not sealed is no design
        but a candidate.
        """
        if known is None:
            return self
        mine = {design.surrounding for design in self.designs}
        return replace(
            self,
            designs=(*self.designs, *(one for one in known.designs if one.surrounding not in mine)),
        )

    # ---- for stamping

    @cached_property
    def digest(self) -> str:
        """Of everything that decides which records are redacted: surroundings and redaction
        probabilities.
        """
        digest = hashlib.sha256()
        for design in self.designs:
            shape = (
                *design.surrounding,
                len(design.left),
                len(design.right),
                design.left_rest,
                design.right_rest,
            )
            digest.update(repr(shape).encode() + design.left.tobytes() + design.right.tobytes())
        return digest.hexdigest()


def _seal(content: dict[str, Any], key: bytes) -> str:
    """What only this version and the key's owner can write under a designs file.

    The purpose has a number because an earlier form of it also sealed designs that had been judged
    in the wrong room.
    """
    text = json.dumps([version("offrecord"), content], sort_keys=True)
    return hmac.new(subkey(key, b"offrecord/seal 2"), text.encode(), "sha256").hexdigest()


def problem_of(
    model: Model, epsilon: float, protect: str, around: Surrounding, phases: Integers | None = None
) -> Problem:
    """The secret of a surrounding, in as much chain as it has around it (and at least one record
    more than the order).
    """
    n = _records(model, around)
    if isinstance(model, PhasedChain):
        assert phases is not None
        phases = (
            phases if len(phases) > 1 else np.repeat(phases, 2)
        )  # a second record, to be forgotten
        n, chain = len(phases), model.along(phases)
    else:
        chain = model
    return Problem(
        chain, n, range(around.left + 1, around.left + around.length + 1), epsilon, protect
    )


def _records(model: Model, around: Surrounding) -> int:
    """How many records a problem with this surrounding has."""
    return max(around.left + around.length + around.right, model.order + 1, 2)


def designed(mechanism: Mechanism, problem: Problem, around: Surrounding) -> Design:
    """What a mechanism makes of a problem with one secret."""
    policy = mechanism.design(problem)
    left, right = _around(policy)
    rests = (fills(left, around.left), fills(right, problem.n - problem.private[-1]))
    window = (len(left), len(right)) if policy.mechanism == "window" else window_of(problem)
    return Design(around, left, right, *rests, policy.leakage, policy.worst.rounding, window)


def _around(policy: Policy) -> tuple[Floats, Floats]:
    """The redaction to the left and right of a policy's one secret, by distance."""
    first, last = policy.problem.private[0], policy.problem.private[-1]
    low, high = int(policy.sparse.starts[0]), int(policy.sparse.stops[-1])
    return trimmed(policy.sparse.matrix(low, first - 1)[::-1]), trimmed(
        policy.sparse.matrix(last, high)
    )


def window_of(problem: Problem) -> tuple[int, int]:
    """How far the best data-independent mechanism redacts to the left and right."""
    left, right = _around(BestWindow().design(problem))
    return len(left), len(right)


def refereed_design(
    problem: Problem,
    around: Surrounding,
    left: Floats,
    right: Floats,
    rests: tuple[bool, bool],
    window: tuple[int, int],
) -> Design:
    """A design with its exact leakage; everything redacted should that exceed the budget."""
    first, last, n, k = problem.private[0], problem.private[-1], problem.n, problem.chain.k
    matrix = _whole(problem, left, right, rests)
    worst = worst_output(problem, matrix)
    if worst.upper <= problem.epsilon:
        return Design(around, left, right, *rests, worst.leakage, worst.rounding, window)
    ones = np.ones((first - 1, k)), np.ones((n - last, k))
    return refereed_design(problem, around, *ones, (True, True), window)


def leakage_under(design: Design, chain: MarkovChain, epsilon: float, protect: str) -> float:
    """What a design would leak, were another stationary chain the right one."""
    problem = problem_of(chain, epsilon, protect, design.surrounding)
    rests = design.left_rest, design.right_rest
    return worst_output(problem, _whole(problem, design.left, design.right, rests)).leakage


def _whole(problem: Problem, left: Floats, right: Floats, rests: tuple[bool, bool]) -> Redaction:
    """The redaction of a design's own problem."""
    first, last, n, k = problem.private[0], problem.private[-1], problem.n, problem.chain.k
    matrix = np.zeros((n, k))
    matrix[first - 1 : last] = 1.0
    for rows, rest, view in (
        (left, rests[0], matrix[: first - 1][::-1]),
        (right, rests[1], matrix[last:]),
    ):
        if rest:
            view[:] = 1.0
        view[: len(rows)] = rows
    return Redaction.from_matrix(matrix, n, k).compressed()


def trimmed(rows: Floats) -> Floats:
    """The rows up to the last that redacts anything."""
    kept = np.flatnonzero(rows.any(axis=1))
    return np.ascontiguousarray(rows[: kept[-1] + 1 if len(kept) else 0])


def fills(rows: Floats, room: int) -> bool:
    """The plan does not end before its room does: in a larger room everything beyond is redacted
    too.
    """
    return room > 0 and len(trimmed(rows)) >= room


def _joined(rows: Floats) -> list[list[Any]]:
    """Rows as [count, probabilities], equal neighbours together."""
    out: list[list[Any]] = []
    for row in rows.tolist():
        if out and out[-1][1] == row:
            out[-1][0] += 1
        else:
            out.append([1, row])
    return out


# ---- what a file says, if it is of its kind; ValueError otherwise


def _stretches(stretches: Any, k: int) -> Stretches:
    counts = tuple(_count(count, 1, _MOST_ALIKE) for count, _ in _list(stretches))
    listed = [_list(row) for _, row in stretches]
    if not {type(q) for row in listed for q in row} <= {int, float}:
        raise ValueError("not numbers")
    rows = np.array(listed, dtype=np.float64).reshape(len(counts), k)
    if not np.all((rows >= 0) & (rows <= 1)):
        raise ValueError("not a redaction")
    return Stretches(counts, rows)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("not a list")
    return value


def _count(value: Any, least: int = 0, most: int = MAX_RECORDS) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError("not a count")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise ValueError("not a number")
    return float(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("not a truth value")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def _grids(value: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    left, right = (tuple(_count(node) for node in _list(grid)) for grid in _list(value))
    if not all(grid[0] == 0 and list(grid) == sorted(set(grid)) for grid in (left, right)):
        raise ValueError("not grids of rooms")
    return left, right


def _sealed_design(model: Model, epsilon: float, around: Surrounding, one: _Read) -> Design:
    left, right = one.candidate
    room = _records(model, around) - around.left - around.length
    if len(left) > around.left or len(right) > room or one.leakage + one.rounding > epsilon:
        raise ValueError("not a design for this surrounding")
    return Design(
        around,
        left.spelled_out,
        right.spelled_out,
        *one.rests,
        one.leakage,
        one.rounding,
        one.window,
    )
