"""What an audit is given: designs made from part of the data, by the windows they redact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Integers, Model
from offrecord.models.chain import MarkovChain
from offrecord.models.phased import PhasedChain
from offrecord.models.records import Chains

Window: TypeAlias = tuple[int, int]
_ROOMS = (32, 128, 512)  # records on either side in which a window is looked for, one by one


class Designs(Protocol):
    """Windows around a secret, made with a model.

    Windows depend on no value, so what is released nearest stands at known distances.
    """

    @property
    def model(self) -> Model:
        """What they were made with."""

    def window(self, epsilon: float, phase: int | None) -> Window | None:
        """How many records are redacted left and right of a secret in a phase, so that no output
        is more than e^epsilon times likelier under one of its values than another; None: all.
        """


#: From records to the designs learned from them.
Learn: TypeAlias = Callable[[Chains], Designs]


@dataclass(frozen=True, eq=False)
class BestWindows:
    """The shortest windows under one stationary chain, in unlimited room (F14)."""

    model: Model

    def window(self, epsilon: float, phase: int | None) -> Window | None:
        """The best window; None for a chain that never forgets so much."""
        from offrecord.theory.room import forgotten_room

        chain = self.model.along()
        room = forgotten_room(chain, epsilon)
        if room is None:
            return None
        room = max(room, chain.order)
        return _within(chain, room, 2 * room + 1, epsilon)


@dataclass(frozen=True, eq=False)
class PhasedWindows:
    """The shortest windows under a chain with phases.

    around: for each phase, the phases along a stretch of records, and the place of one in it that
    is in the middle of the phase. Windows of other records of the phase may differ a little.
    """

    model: PhasedChain
    around: Mapping[int, tuple[Integers, int]]

    @classmethod
    def along(
        cls, model: PhasedChain, chains: Chains, phases: NDArray[np.integer]
    ) -> PhasedWindows:
        """With the surroundings that a reference shows; phases: (n,) of its records."""
        return cls(model, surroundings(chains, phases))

    def window(self, epsilon: float, phase: int | None) -> Window | None:
        """The best window; None where it would reach further than is looked."""
        assert phase is not None
        phases, place = self.around[phase]
        for room in _ROOMS:
            first, end = max(place - room, 0), min(place + room + 1, len(phases))
            chain = self.model.along(phases[first:end])
            found = _within(chain, place - first, end - first, epsilon)
            if found is not None:
                return found
        return None


@dataclass(frozen=True, eq=False)
class WidenedWindows:
    """The windows that others have for a share of ε: wider than their model asks for."""

    designs: Designs
    share: float

    @property
    def model(self) -> Model:
        """What they were made with."""
        return self.designs.model

    def window(self, epsilon: float, phase: int | None) -> Window | None:
        """That of a smaller budget."""
        return self.designs.window(self.share * epsilon, phase)


def _within(chain: MarkovChain, place: int, n: int, epsilon: float) -> Window | None:
    """The best window around a record of a chain; None if it does not end before the chain does."""
    from offrecord.mechanisms.window import window_of
    from offrecord.theory.problem import Problem

    left, right = window_of(Problem(chain, n, [place + 1], epsilon))
    return None if left >= place or right >= n - 1 - place else (left, right)


def surroundings(chains: Chains, phases: NDArray[np.integer]) -> dict[int, tuple[Integers, int]]:
    """For each phase seen, phases along a stretch and the place in it of a record in that phase.

    Of all records in a phase, one with much room in steps on both sides, and of these one in the
    middle of the phase.
    """
    linked = np.diff(chains.places, prepend=-2) == 1
    linked[chains.starts[:-1]] = False
    before, after = _runs(linked)
    same = linked.copy()
    same[1:] &= phases[1:] == phases[:-1]
    into, to_go = _runs(same)
    room = np.minimum(np.minimum(before, after), _ROOMS[-1])
    found = {}
    for phase in np.unique(phases).tolist():
        rows = np.flatnonzero(phases == phase)
        off = np.abs(into[rows] - to_go[rows])
        best = int(rows[np.lexsort((off, -room[rows]))[0]])
        first, end = best - before[best], best + after[best] + 1
        found[phase] = phases[first:end].astype(np.int64), int(before[best])
    return found


def _runs(linked: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """(n,) twice: how many records come before and after each in its run of linked records."""
    starts = np.flatnonzero(~linked)
    lengths = np.diff(starts, append=len(linked))
    before = np.arange(len(linked)) - np.repeat(starts, lengths)
    return before, np.repeat(lengths, lengths) - 1 - before
