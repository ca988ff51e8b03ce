"""OwnerDesign: what the owner's mechanism makes around one secret, and its proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from offrecord.files import read_count
from offrecord.mechanisms.base import Made, Shared
from offrecord.mechanisms.owner.deciding.decider import OwnerDecider
from offrecord.mechanisms.owner.designing.between import asked_gaps
from offrecord.mechanisms.owner.files import stopping_from_dict, stopping_to_dict
from offrecord.mechanisms.owner.proof import METHOD, proven_leakage, unserved
from offrecord.mechanisms.owner.stopping import Stopping, StoppingSide
from offrecord.mechanisms.owner.ways import Ways
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.mechanisms.window import window_of
from offrecord.models.base import Floats, Model
from offrecord.release.certificate import STOPPING, Composition
from offrecord.theory.problem import Problem


@dataclass(frozen=True, eq=False)
class OwnerDesign:
    """Stopping for the secrets of one model and budget; in a stationary chain the same for all.

    leakage: of what its surrounding says, whatever the room is.
    """

    kind: ClassVar[str] = "owner"
    shares: ClassVar[str] = "stoppings"
    composition: ClassVar[Composition] = STOPPING

    surrounding: Surrounding
    leakage: float
    rounding: float
    method: str
    window: tuple[int, int]
    stopping: Stopping

    @classmethod
    def proven(
        cls, stopping: Stopping, ways: Ways, problem: Problem, surrounding: Surrounding
    ) -> OwnerDesign | None:
        """A menu around the one secret of a problem; None if its proof fails."""
        leakage = None if unserved(problem.chain) else proven_leakage(stopping, ways)
        if leakage is None or stopping.epsilon != problem.epsilon:
            return None
        return cls(surrounding, leakage, 0.0, METHOD, window_of(problem), stopping)

    @property
    def reach(self) -> int:
        """How far it redacts, apart from what it redacts to the chain's end."""
        return self.stopping.reach

    @property
    def back(self) -> tuple[int, int] | None:
        """In a table that grows: how far walks lead to the left, and how far a later secret must be
        for neither's walks to depend on it: as far as both lead.
        """
        is_closed = self.stopping.options[0][0].is_closed
        return None if is_closed else (self.reach, 2 * self.reach + 1)

    @property
    def lasting(self) -> dict[str, bytes]:
        """What of it acts on tables with other gaps too, and each of its gaps."""
        stopping = self.stopping
        gaps = {f"gap {gap.length}": gap.identity for gap in stopping.gaps}
        return {"": replace(stopping, gaps=()).identity, **gaps}

    @cached_property
    def identity(self) -> bytes:
        """Everything in it that decides which records are redacted."""
        around = self.surrounding
        shape = (around.left, around.right, around.length, around.context)
        return repr(shape).encode() + self.stopping.identity

    def cost(self, masses: Floats, left: int, right: int) -> float:
        """Expected redactions beside the secret, in rooms no larger than it was made for."""
        rooms = left, right
        return min(
            sum(_cost(side, room) for side, room in zip(option, rooms, strict=True))
            for option in self.stopping.options
            if sum(side.budget for side in option) <= self.stopping.epsilon
        )

    def fits(self, order: int) -> bool:
        """One menu serves every room."""
        return True

    def serves_gaps(self, lengths: Sequence[int]) -> bool:
        """It has been asked about these lengths, as far as gaps are worth it."""
        asked = asked_gaps(lengths, self.stopping.options[0])
        return {gap.length for gap in self.stopping.gaps} >= set(asked)

    def for_gaps(self, lengths: Sequence[int]) -> OwnerDesign:
        """Without gaps of other lengths, which other tables have brought to the menu."""
        present = set(lengths)
        gaps = tuple(gap for gap in self.stopping.gaps if gap.length in present)
        if len(gaps) == len(self.stopping.gaps):
            return self
        return replace(self, stopping=replace(self.stopping, gaps=gaps))

    def serves_beyond(self, left: int) -> bool:
        """Every walk to the left ends before so many records, or redacts all of them."""
        sides = [side for side, _ in self.stopping.options]
        return all(side.is_closed or side.deadline < left for side in sides)

    def loosened(self, slack: float) -> OwnerDesign:
        """The same, where it may tell so much more than its leakage says."""
        return replace(self, rounding=self.rounding + slack)

    def judged(self, problem: Problem) -> OwnerDesign | None:
        """With its proof anew; None if that fails."""
        return OwnerDesign.proven(self.stopping, Ways.around(problem), problem, self.surrounding)

    def leakage_under(self, problem: Problem) -> float:
        """What it would leak if another model were right, its secret being the problem's."""
        ways, stopping = Ways.around(problem), self.stopping
        left, right = (ways.told(side) for side in stopping.options[0])
        told = float((left + right).max())
        if stopping.pair is not None:
            told = max(told, float(ways.told_by_pair(stopping.pair).max()))
        return told

    # ---- files

    def to_dict(self, shared: Shared) -> dict[str, Any]:
        """Its own part of a file; what several share is written once."""
        content = shared.number(self.stopping.identity, stopping_to_dict(self.stopping))
        return {"stopping": content}

    @classmethod
    def read(
        cls, entries: Sequence[tuple[Made, Mapping[str, Any]]], shared: Sequence[Any], model: Model
    ) -> list[OwnerDesign]:
        """As a file says they are, nothing of it proven."""
        known = [stopping_from_dict(one, model.k**model.order) for one in shared]
        if model.is_stationary:
            known = [Ways.far(model.along()).told_of(stopping) for stopping in known]
        found = [cls(*made, known[read_count(content["stopping"])]) for made, content in entries]
        return found if model.is_stationary else [one._told(model) for one in found]

    def _told(self, model: Model) -> OwnerDesign:
        """With what a model that is not stationary says of its sides."""
        ways = Ways.around(self.surrounding.problem(model, self.stopping.epsilon, "run"))
        return replace(self, stopping=ways.told_of(self.stopping))

    @classmethod
    def decider(cls, designs: Sequence[OwnerDesign], model: Model) -> OwnerDecider:
        """What decides by these designs."""
        rooms = np.array([design.surrounding[:2] for design in designs], dtype=np.int64)
        stoppings = [design.stopping for design in designs]
        return OwnerDecider.of(stoppings, rooms.reshape(-1, 2), model)


def _cost(side: StoppingSide, room: int) -> float:
    """Expected redactions of a side in a room."""
    if side.is_closed:
        return float(room)
    assert side.law is not None
    return float(side.law.sum(axis=1) @ np.minimum(side.levels - 1, room))
