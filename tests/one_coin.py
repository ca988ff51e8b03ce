"""A mechanism that is not local, to show that one can be: a secret's window is always redacted, and
one keyed coin for each secret decides whether everything else in its chain is redacted too.

Records of a chain share the coin, so no matrix of probabilities says what it does. It is private:
the coin does not depend on values, and both of what it chooses from are windows within ε.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from offrecord.mechanisms.blocks import (
    ALWAYS,
    AT_TIMES,
    NEVER,
    Block,
    Decision,
    Expectation,
    Explanation,
)
from offrecord.mechanisms.surroundings import Surrounding

from offrecord.files import read_number
from offrecord.mechanisms.base import Made, Mechanism, Policy, Shared
from offrecord.mechanisms.window import BestWindow, window_of
from offrecord.release.certificate import Composition
from offrecord.release.coins import redacts, thresholds
from offrecord.theory.leakage import WorstOutput, worst_output
from offrecord.theory.problem import Problem
from offrecord.theory.redaction import Redaction

PURPOSE = b"one coin"


@dataclass(frozen=True)
class OneCoinDesign:
    """A window, and how likely everything else goes too."""

    kind: ClassVar[str] = "one coin"
    shares: ClassVar[str] = "chances"
    composition: ClassVar[Composition] = Composition(
        rule="union",
        draw_bits=64,
        text="A record is redacted if the window or the coin of any secret says so.",
    )

    surrounding: Surrounding
    leakage: float
    rounding: float
    method: str
    window: tuple[int, int]
    chance: float

    @property
    def reach(self) -> int:
        return max(self.window)

    @property
    def identity(self) -> bytes:
        return repr((self.surrounding, self.window, self.chance)).encode()

    def cost(self, masses, left: int, right: int) -> float:
        inside = min(self.window[0], left) + min(self.window[1], right)
        return inside + self.chance * (left + right - inside)

    def fits(self, order: int) -> bool:
        return self.window[0] <= self.surrounding.left and self.window[1] <= self.surrounding.right

    def serves_gaps(self, lengths) -> bool:
        return True

    def for_gaps(self, lengths) -> OneCoinDesign:
        return self

    def judged(self, problem: Problem) -> OneCoinDesign | None:
        window = window_of(problem)
        if any(mine < least for mine, least in zip(self.window, window, strict=True)):
            return None
        worst = worst_output(problem, BestWindow().design(problem).sparse)
        return replace(self, **_found(worst))

    def leakage_under(self, problem: Problem) -> float:
        first, last = problem.private[0] - 1, problem.private[-1]
        low, high = max(first - self.window[0], 0), min(last + self.window[1], problem.n)
        k = problem.chain.k
        redaction = Redaction.of(problem.n, k, [(low, high, np.ones(k))])
        return worst_output(problem, redaction).leakage

    def to_dict(self, shared: Shared) -> dict[str, Any]:
        return {"chance": shared.number(self.chance, self.chance)}

    @classmethod
    def read(
        cls, entries: Sequence[tuple[Made, Mapping[str, Any]]], shared: Sequence[Any], model
    ) -> list[OneCoinDesign]:
        return [cls(*made, read_number(shared[content["chance"]])) for made, content in entries]

    @classmethod
    def decider(cls, designs: Sequence[OneCoinDesign], model) -> OneCoinDecider:
        windows = np.array([design.window for design in designs], dtype=np.int64).reshape(-1, 2)
        rooms = [design.surrounding[:2] for design in designs]
        rests = windows >= np.array(rooms, dtype=np.int64).reshape(-1, 2)
        return OneCoinDecider(windows, rests, np.array([design.chance for design in designs]))


def _found(worst: WorstOutput) -> dict[str, Any]:
    """What a window leaks, which is what it leaks with the coin too."""
    return {"leakage": worst.leakage, "rounding": worst.rounding, "method": worst.method}


@dataclass(frozen=True, eq=False)
class OneCoinDecider:
    """windows, rests: (designs, 2). chances: (designs,)."""

    windows: np.ndarray
    rests: np.ndarray
    chances: np.ndarray

    def _covered(self, block: Block, heads: np.ndarray) -> np.ndarray:
        """(n,) what the windows redact, and where a secret's coin shows heads all of its chain."""
        rests = self.rests[block.which] | heads[:, np.newaxis]
        begin, end = block.secrets.bounds(block.chains, self.windows[block.which], rests)
        covered = np.zeros(block.size, dtype=bool)
        for low, high in zip(begin - block.rows.start, end - block.rows.start, strict=True):
            covered[low:high] = True
        return covered

    def _certainty(self, block: Block) -> np.ndarray:
        none, all_ = np.zeros(block.secrets.count, dtype=bool), self.chances[block.which] > 0
        ever = np.where(self._covered(block, all_), AT_TIMES, NEVER)
        return np.where(self._covered(block, none), ALWAYS, ever).astype(np.int8)

    def decide(self, block: Block, draw) -> Decision:
        drawn = draw(block.secrets.chain, block.secrets.order, PURPOSE)
        heads = redacts(drawn, thresholds(self.chances[block.which]))
        return Decision(self._covered(block, heads), self._certainty(block))

    def expect(self, block: Block, masses) -> Expectation:
        released = np.ones(block.size)
        chains = block.chains.chain_of[block.rows]
        for chain, which in zip(block.secrets.chain, block.which, strict=True):
            released[chains == chain] *= 1 - self.chances[which]
        certainty = self._certainty(block)
        return Expectation(np.where(certainty == ALWAYS, 0.0, released), certainty)

    def explain(self, block: Block, labels) -> Explanation:
        expected = self.expect(block, np.empty(0))
        return Explanation(expected.certainty, {"Pr(redacted)": 1 - expected.released})


@dataclass(frozen=True, eq=False)
class OneCoinPolicy(Policy):
    """window: the redaction that is always there."""

    kind: ClassVar[str] = "one coin"

    problem: Problem
    mechanism: str
    window: Redaction
    chance: float

    @property
    def leakage(self) -> float:
        return worst_output(self.problem, self.window).leakage

    @property
    def is_private(self) -> bool:
        return worst_output(self.problem, self.window).upper <= self.problem.epsilon

    @property
    def utility(self) -> float:
        none = (1 - self.chance) ** len(self.problem.secrets)
        return none * self.window.released(self.problem.chain) / self.problem.n

    def outcomes(self, values: Sequence[int]) -> Iterator[tuple[np.ndarray, float]]:
        released = self.window.matrix()[:, 0] == 0
        for coins in product((False, True), repeat=len(self.problem.secrets)):
            chance = np.prod([self.chance if heads else 1 - self.chance for heads in coins])
            yield released & (not any(coins)), float(chance)

    def summary(self) -> dict[str, Any]:
        return {"mechanism": self.mechanism, "leakage": self.leakage, "utility": self.utility}

    def to_dict(self) -> dict[str, Any]:
        problem = self.problem
        return {
            "format": "offrecord-policy",
            "version": 1,
            "kind": self.kind,
            "chance": self.chance,
            "model": problem.chain.to_dict(),
            "given": [problem.n, list(problem.private), problem.epsilon, problem.protect],
        }

    @classmethod
    def from_dict(cls, content: Any) -> OneCoinPolicy:
        from offrecord.models.loading import model_from_dict

        problem = Problem(model_from_dict(content["model"]), *content["given"])
        return OneCoin(content["chance"]).design(problem)


@dataclass(frozen=True)
class OneCoin(Mechanism):
    """chance: that everything goes."""

    name: ClassVar[str] = "one-coin"
    designs: ClassVar[type[OneCoinDesign]] = OneCoinDesign
    chance: float = 0.25

    def design(self, problem: Problem) -> OneCoinPolicy:
        return OneCoinPolicy(problem, self.name, BestWindow().design(problem).sparse, self.chance)

    def around(self, problem: Problem, surrounding: Surrounding) -> OneCoinDesign:
        worst, window = BestWindow().design(problem).worst, window_of(problem)
        return OneCoinDesign(surrounding, **_found(worst), window=window, chance=self.chance)
