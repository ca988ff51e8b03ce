"""LocalDesign: by distance from a secret, with which probability each value is redacted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from offrecord.files import read_count, read_truth
from offrecord.mechanisms.base import Made, Shared
from offrecord.mechanisms.local.referee import passed
from offrecord.mechanisms.local.secrets import cut, stamped
from offrecord.mechanisms.local.stamping import Stamping
from offrecord.mechanisms.local.stretches import Sides, Stretches
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.models.base import Floats, Model
from offrecord.release.certificate import MAXIMUM, Composition
from offrecord.theory.leakage import WorstOutput, worst_output
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.redaction import Redaction


@dataclass(frozen=True, eq=False)
class LocalDesign:
    """Redaction around a secret by distance; stamped around every secret of a table, the per-value
    maximum of all stamps is private for each of them (F3).

    left, right: from the secret outwards; then all is released, or (rest) redacted to the chain's
    end. leakage: for the surrounding it was made for; method: how it was found. inside: of a
    cluster of near secrets, what is redacted from its first to its last record; None: all of it.
    """

    kind: ClassVar[str] = "local"
    shares: ClassVar[str] = "sides"
    composition: ClassVar[Composition] = MAXIMUM

    surrounding: Surrounding
    left: Stretches
    right: Stretches
    left_rest: bool
    right_rest: bool
    leakage: float
    rounding: float
    method: str
    window: tuple[int, int]
    inside: Stretches | None = None

    @classmethod
    def made(
        cls,
        problem: Problem,
        surrounding: Surrounding,
        sides: Sides,
        worst: WorstOutput,
        window: tuple[int, int],
        inside: Stretches | None = None,
    ) -> LocalDesign:
        """What redacts these sides of a problem's one secret or cluster, and the inside of a
        cluster, and tells so much at worst.
        """
        sides = _to_the_end(sides, _rooms(problem), problem.chain.order)
        made = cls._resting(surrounding, sides, _rooms(problem), worst, window)
        return made if inside is None else replace(made, inside=inside)

    @classmethod
    def _resting(
        cls,
        surrounding: Surrounding,
        sides: Sides,
        rooms: tuple[int, int],
        worst: WorstOutput,
        window: tuple[int, int],
    ) -> LocalDesign:
        """A side that does not end before its room does rests: in a larger room everything beyond
        is redacted too.
        """
        rests = 0 < rooms[0] <= sides[0].size, 0 < rooms[1] <= sides[1].size
        leakage, rounding, method = worst.leakage, worst.rounding, worst.method
        return cls(surrounding, *sides, *rests, leakage, rounding, method, window)

    @classmethod
    def refereed(
        cls,
        problem: Problem,
        surrounding: Surrounding,
        sides: Sides,
        window: tuple[int, int],
        rooms: tuple[int, int] | None = None,
    ) -> LocalDesign:
        """What redacts these sides if that keeps within ε, else everything.

        rooms: that sides may fill; without them the problem's, which may have records of its own.
        """
        secret = Secret(problem.private[0], problem.private[-1])
        found = passed(problem, sides, stamped(problem, secret, sides))
        if found is None:
            everything = Redaction.everything(problem.n, problem.chain.k)
            worst = worst_output(problem, everything)
            leakage, rounding, method = worst.leakage, worst.rounding, worst.method
            whole = cut(problem, everything)
            return cls(surrounding, *whole, True, True, leakage, rounding, method, window)
        rooms = rooms or _rooms(problem)
        sides = _to_the_end(sides, rooms, problem.chain.order)
        return cls._resting(surrounding, sides, rooms, found.worst, window)

    @property
    def sides(self) -> Sides:
        """What it redacts to the left and to the right."""
        return self.left, self.right

    @property
    def reach(self) -> int:
        """How far it redacts, apart from what it redacts to the chain's end."""
        return max(self.left.size, self.right.size)

    @property
    def lasting(self) -> dict[str, bytes]:
        """All of it stands for itself."""
        return {"": self.identity}

    @property
    def back(self) -> tuple[int, int] | None:
        """In a table that grows: how far to its left it redacts, and that a record after it may
        make its secret longer, and so the design another one.
        """
        return None if self.left_rest else (self.left.size, 1)

    @cached_property
    def identity(self) -> bytes:
        """Everything in it that decides which records are redacted."""
        around = self.surrounding
        shape = (around.left, around.right, around.length, around.context)
        sizes = (self.left.size, self.right.size, self.left_rest, self.right_rest)
        parts = [side.spelled_out.tobytes() for side in self.sides]
        if self.inside is not None:
            parts += [around.inside, self.inside.spelled_out.tobytes()]
        return repr(shape + sizes).encode() + b"".join(parts)

    def cost(self, masses: Floats, left: int, right: int) -> float:
        """Expected redactions beside the secret, in rooms no larger than it was made for."""
        total = 0.0 if self.inside is None else float((self.inside.spelled_out @ masses).sum())
        rests = self.left_rest, self.right_rest
        for side, rest, room in zip(self.sides, rests, (left, right), strict=True):
            total += float((side.spelled_out[:room] @ masses).sum())
            total += max(room - side.size, 0) if rest else 0
        return total

    def redaction(self, problem: Problem) -> Redaction:
        """What it comes to around a problem's one secret."""
        secret = Secret(problem.private[0], problem.private[-1])
        rests, sides = (self.left_rest, self.right_rest), []
        for side, rest, room in zip(self.sides, rests, _rooms(problem), strict=True):
            beyond = Stretches.always(problem.chain.k, room - side.size if rest else 0)
            sides.append(beyond.after(side))
        return stamped(problem, secret, (sides[0], sides[1]), self.inside)

    def serves_gaps(self, lengths: Sequence[int]) -> bool:
        """Designs are laid over each other, however near they are."""
        return True

    def for_gaps(self, lengths: Sequence[int]) -> LocalDesign:
        """All of it."""
        return self

    def serves_beyond(self, left: int) -> bool:
        """It redacts all records to the left for certain, or releases one of them entirely, and not
        the furthest: where a chain begins, values may be impossible that are not elsewhere.
        """
        return self.left.size + 1 < left or bool(np.all(self.left.rows == 1))

    def loosened(self, slack: float) -> LocalDesign:
        """The same, where it may tell so much more than its leakage says."""
        return replace(self, rounding=self.rounding + slack)

    def judged(self, problem: Problem) -> LocalDesign | None:
        """With all but its probabilities computed anew; None if it does not fit or leaks more."""
        from offrecord.mechanisms.window import window_of

        if not self._spans(_rooms(problem)):
            return None
        secret = Secret(problem.private[0], problem.private[-1])
        found = passed(problem, self.sides, stamped(problem, secret, self.sides, self.inside))
        if found is None:
            return None
        window, around = window_of(problem), self.surrounding
        return LocalDesign.made(problem, around, self.sides, found.worst, window, self.inside)

    def fits(self, order: int) -> bool:
        """It is no longer than the rooms it says it was made for, and as long as its cluster."""
        around = self.surrounding
        return self._spans((around.left, around.records(order) - around.left - around.length))

    def _spans(self, rooms: tuple[int, int]) -> bool:
        within = all(side.size <= room for side, room in zip(self.sides, rooms, strict=True))
        is_one = self.inside is None and not self.surrounding.inside
        return within and (is_one or self._is_cluster())

    def _is_cluster(self) -> bool:
        """It has rows for the records of a cluster, and always redacts the private ones."""
        around = self.surrounding
        if self.inside is None or not len(around.inside) == around.length == self.inside.size:
            return False
        private = np.frombuffer(around.inside, dtype=np.uint8) > 0
        return bool(np.all(self.inside.spelled_out[private] == 1)) and bool(
            private[0] & private[-1]
        )

    def leakage_under(self, problem: Problem) -> float:
        """What it would leak if another model were right, its secret being the problem's."""
        return worst_output(problem, self.redaction(problem)).leakage

    # ---- files

    def to_dict(self, shared: Shared) -> dict[str, Any]:
        """Its own part of a file; equal sides are written once. A cluster has its inside too."""
        content: dict[str, Any] = {
            "redaction_left": self.left.number(shared),
            "redaction_right": self.right.number(shared),
            "left_rest": self.left_rest,
            "right_rest": self.right_rest,
        }
        if self.inside is not None:
            content["redaction_inside"] = self.inside.number(shared)
        return content

    @classmethod
    def read(
        cls, entries: Sequence[tuple[Made, Mapping[str, Any]]], shared: Sequence[Any], model: Model
    ) -> list[LocalDesign]:
        """As a file says they are, nothing of it proven."""
        sides = [Stretches.read(one, model.k) for one in shared]
        return [
            cls(
                made.surrounding,
                sides[read_count(content["redaction_left"])],
                sides[read_count(content["redaction_right"])],
                read_truth(content["left_rest"]),
                read_truth(content["right_rest"]),
                made.leakage,
                made.rounding,
                made.method,
                made.window,
                sides[read_count(content["redaction_inside"])] if made.surrounding.inside else None,
            )
            for made, content in entries
        ]

    @classmethod
    def decider(cls, designs: Sequence[LocalDesign], model: Model) -> Stamping:
        """What decides by these designs."""
        return Stamping.of(designs, model.k)


def _to_the_end(sides: Sides, rooms: tuple[int, int], order: int) -> Sides:
    """Sides without what they release in the end, unless fewer records than the chain's order are
    left of the room: in a larger one more would be released than was judged (F14).
    """
    found = []
    for side, room in zip((one.trimmed() for one in sides), rooms, strict=True):
        free = room - side.size if 0 < room - side.size < order else 0
        released = Stretches(np.zeros((1, side.rows.shape[1])), np.array([free]))
        found.append(released.after(side) if free else side)
    return found[0], found[1]


def _rooms(problem: Problem) -> tuple[int, int]:
    """How many records lie to the left and right of a problem's one secret."""
    return problem.private[0] - 1, problem.n - problem.private[-1]
