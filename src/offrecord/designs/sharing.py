"""Which designs the secrets of a table share: one for each distinct surrounding (F14).

In a stationary chain a surrounding is how many records there are to the left and to the right, up
to where the chain has forgotten; rooms may be rounded up to a coarser grid, as a design for more
room serves less. A model with phases has a design for each sequence of phases around a secret, as
far as they make a difference; a chain with a start of its own one for each place up to where it has
forgotten that; any other that is not stationary one for each place in a chain.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from offrecord.designs.library import Designs, Setting
from offrecord.designs.loss import expected_loss
from offrecord.designs.needs import SurroundingCounts, distinct
from offrecord.errors import InputError
from offrecord.mechanisms.base import Design
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.mechanisms.window import BestWindow
from offrecord.mechanisms.workshop import Workshop
from offrecord.models.base import Integers, Model
from offrecord.models.chain import MarkovChain
from offrecord.models.phased import PhasedChain
from offrecord.models.walks import pattern_powers
from offrecord.processes import crew
from offrecord.processes.crew import Work
from offrecord.text import Progress, followed, unwatched
from offrecord.theory.problem import Problem
from offrecord.theory.room import CUT, cut_room, forgotten_room

Grids: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
_DESIGNING = "designing"
_UNFORGETTING = 64  # room that is designed where the chain never forgets
_FAR = 4096  # records to the right that are looked at where the model is not stationary
_LONGEST_RUN = 4096  # private records, where not every transition is possible
_RATIOS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0)
_LOOKS = (0, 2, 20, 200)  # designs after which it is foretold how long all will take


def room_limits(
    model: Model, epsilon: float, known: Designs | None = None
) -> tuple[int | None, int | None]:
    """Rooms to the left and right of a secret beyond which a larger one makes no difference; None:
    it always does.

    known: designs from before, which say so themselves if they are sealed.
    """
    if model.is_stationary:
        grids = None if known is None else known.grids
        room = _cap(model.along(), epsilon) if grids is None else max(grids[0][-1], grids[1][-1])
        return max(room, model.order), max(room, model.order)
    cut = cut_room(model, epsilon) if _forgets(model) else None
    if cut is not None:
        return cut, cut
    return None, None if model.length is not None else _FAR


def _forgets(model: Model) -> TypeGuard[PhasedChain | MarkovChain]:
    """Whether it is known when a model that is not stationary forgets how it began: one kernel, or
    one for each phase, on values.
    """
    if isinstance(model, PhasedChain):
        return True
    one_kernel = isinstance(model, MarkovChain) and model.is_homogeneous
    return one_kernel and not model.has_states


def designs_for(
    setting: Setting,
    needs: SurroundingCounts,
    *,
    known: Designs | None = None,
    growing: bool = False,
    progress: Progress = unwatched,
    max_minutes: float = math.inf,
) -> tuple[Designs, Integers]:
    """The designs that some secrets need, and which of them each surrounding gets; rooms are within
    `room_limits`.

    known: designs from before, used where they fit, and candidates, judged where they do. growing:
    chains will go on, so designs are for all the room that makes a difference to the right, and to
    the left for that or none; they do not change as a table grows (F14).
    """
    if len(needs) == 0:
        return Designs(setting, ()), np.empty(0, dtype=np.int64)
    if growing:
        known = _for_growing(setting, known)
    if setting.model.is_stationary:
        return _by_rooms(setting, needs, known, progress)
    return _one_by_one(setting, needs, known, progress, max_minutes)


def windows_for(
    designs: Designs, needs: SurroundingCounts, which: Integers
) -> tuple[tuple[Design, ...], Integers]:
    """Designs that know the best window around the secrets that others are for, and which of them
    each surrounding gets: just what the mechanism `window` would take for them.

    which: of `designs`, which need not be made for rooms as exact as those of windows.
    """
    setting = designs.setting
    window = BestWindow()
    if not setting.model.is_stationary or setting.mechanism == window:
        return designs.designs, which
    setting = setting._replace(mechanism=window)
    # a design knows its window, so those for the very rooms of a secret stand
    is_growing = designs.grids is not None and designs.grids[1][0] > 0
    known = Designs(setting, designs.designs)
    found, used = designs_for(setting, needs, known=known, growing=is_growing)
    return found.designs, used


@dataclass(frozen=True, eq=False)
class _Stock:
    """What there is before anything is designed: designs that stand, and candidates for others.

    cut: room at which chains are cut to the left, None where they are not.
    """

    setting: Setting
    standing: dict[Surrounding, Design]
    offered: Mapping[Surrounding, Design]
    cut: int | None

    @classmethod
    def of(cls, setting: Setting, known: Designs | None, gaps: Sequence[int]) -> _Stock:
        model, epsilon = setting.model, setting.epsilon
        cut = None if model.is_stationary else room_limits(model, epsilon)[0]
        if known is None:
            return cls(setting, {}, {}, cut)
        standing, offered = (
            {design.surrounding: design for design in designs if design.serves_gaps(gaps)}
            for designs in (known.designs, known.candidates.values())
        )
        return cls(setting, standing, offered, cut)

    def slack(self, surrounding: Surrounding) -> float:
        """How much more a design may tell in a chain that goes on to the left. In a set of models
        nothing: what is left of a chain in the set is in it, however it begins.
        """
        is_cut = surrounding.left == self.cut and self.setting.model.box is None
        return CUT * self.setting.epsilon if is_cut else 0.0

    def problem(self, surrounding: Surrounding) -> Problem:
        """What a design for a surrounding is made for."""
        model, epsilon, _, protect = self.setting
        return surrounding.problem(model, epsilon - self.slack(surrounding), protect)

    def serving(self, design: Design | None) -> Design | None:
        """A design with all that it may tell; None if it does not serve chains that go on."""
        slack = 0.0 if design is None else self.slack(design.surrounding)
        if design is None or slack == 0:
            return design
        return design.loosened(slack) if design.serves_beyond(design.surrounding.left) else None

    def taken(self, surrounding: Surrounding) -> Design | None:
        """The candidate for a surrounding, if there is one and it is private there."""
        if surrounding not in self.offered:
            return None
        return self.serving(self.offered[surrounding].judged(self.problem(surrounding)))

    def work(self, surrounding: Surrounding) -> Work:
        """What makes a new design."""
        return self.setting.mechanism.around, (self.problem(surrounding), surrounding)

    def made(self, surrounding: Surrounding, design: Design) -> Design:
        """A new design; InputError for one that does not serve chains that go on."""
        found = self.serving(design)
        if found is None:
            raise InputError(
                f"a design of {self.setting.mechanism.name} does not end within the"
                f" {surrounding.left} records to the left that are looked at; take another"
                " --mechanism"
            )
        return found

    def fill(self, wanted: Iterable[Surrounding]) -> tuple[list[Surrounding], int]:
        """Take what it can; what is missing still, and how many candidates were refused."""
        missing, refused = [], 0
        for surrounding in wanted:
            if surrounding in self.standing:
                continue
            taken = self.taken(surrounding)
            if taken is not None:
                self.standing[surrounding] = taken
            else:
                missing.append(surrounding)
                refused += surrounding in self.offered
        return missing, refused


# ---- a stationary chain


def _cap(chain: MarkovChain, epsilon: float) -> int:
    """Room that is designed at most."""
    room = forgotten_room(chain, epsilon)
    return _UNFORGETTING if room is None else room


@dataclass(frozen=True, eq=False)
class _Rooms:
    """The rooms of secrets in a stationary chain, as far as they make a difference."""

    setting: Setting
    left: Integers
    right: Integers
    lengths: Integers
    cap: int

    @cached_property
    def workshop(self) -> Workshop:
        """Where designs are made."""
        model, epsilon, mechanism, protect = self.setting
        return mechanism.workshop(model, epsilon, protect, self.cap)

    def grids(self) -> Grids:
        """The workshop's own rooms, and those that secrets have where they are as few; or the
        finest whose surroundings are few enough for it.
        """
        own = self.workshop.rooms()
        if own is not None:
            return self._with_exact(own[0], self.left), self._with_exact(own[1], self.right)
        for ratio in _RATIOS:
            grid = _geometric(self.cap, ratio)
            rounded = self.rounded((grid, grid))
            if len(distinct(*rounded, self.lengths)[0]) <= self.workshop.most:
                break
        return grid, grid

    def _with_exact(self, nodes: tuple[int, ...], rooms: Integers) -> tuple[int, ...]:
        present = np.unique(rooms).tolist()
        if self.workshop.serves_every_room or len(present) > len(nodes):
            return nodes
        return tuple(sorted({*nodes, *present}))

    def rounded(self, grids: Grids) -> tuple[Integers, Integers]:
        """Rooms to the left and right, rounded up to grids."""
        left, right = (
            np.array(grid)[np.searchsorted(grid, rooms)]
            for grid, rooms in zip(grids, (self.left, self.right), strict=True)
        )
        return left, right


def _by_rooms(
    setting: Setting, needs: SurroundingCounts, known: Designs | None, progress: Progress
) -> tuple[Designs, Integers]:
    """Where the rooms of a secret alone matter."""
    chain = setting.model.along()
    grids = None if known is None else known.grids
    cap = _cap(chain, setting.epsilon) if grids is None else min(grids[0][-1], grids[1][-1])
    left, right = np.minimum(needs.left, cap), np.minimum(needs.right, cap)
    rooms = _Rooms(setting, left, right, _length_classes(chain, needs.length), cap)
    if grids is None:
        grids = rooms.grids()
    triples, used, _ = distinct(*rooms.rounded(grids), rooms.lengths)
    wanted = [Surrounding(*triple) for triple in triples.tolist()]
    stock = _Stock.of(setting, known, needs.gaps)
    loss = 0.0 if known is None else known.loss
    were_missing = any(surrounding not in stock.standing for surrounding in wanted)
    missing, refused = stock.fill(wanted)
    if missing:
        rooms.workshop.adopt(() if known is None else known.designs)
        rooms.workshop.expect_gaps(needs.gaps)
        _worked(rooms.workshop, rooms.workshop.tasks(missing), progress)
        stock.standing.update((one, rooms.workshop.around(one)) for one in missing)
    found = tuple(stock.standing[surrounding] for surrounding in wanted)
    is_rounded = grids[1][0] == 0  # and not made for more room on purpose
    if were_missing and is_rounded and not rooms.workshop.serves_every_room:

        def make(surrounding: Surrounding) -> Design:
            return stock.taken(surrounding) or rooms.workshop.around(surrounding)

        exact = np.stack((left, right), axis=1)
        loss = expected_loss(setting, found, exact, needs.counts, used, grids, make)
    return Designs(setting, found, grids, loss, refused=refused), used


def _worked(workshop: Workshop, tasks: Sequence[Any], progress: Progress) -> None:
    """Do all tasks: first those that need none of the others."""
    works = [(task, workshop.apart(task)) for task in tasks]
    alone = {task: work for task, work in works if work is not None}
    with (
        progress(_DESIGNING, len(tasks)) as tell,
        closing(crew.each(list(alone.values()))) as found,
    ):
        for task, made in zip(alone, found, strict=True):
            workshop.keep(task, made)
            tell(1)
        for task in tasks:
            if task not in alone:
                workshop.work(task)
                tell(1)


def _for_growing(setting: Setting, known: Designs | None) -> Designs:
    """What is known, with the grids of a table that grows; InputError where that cannot be."""
    if not setting.model.is_stationary:
        raise InputError(
            "--growing needs a stationary model: one kernel for all times, and no start of its own"
        )
    cap = _cap(setting.model.along(), setting.epsilon)
    grids = (0, cap), (cap,)
    if known is None:
        return Designs(setting, (), grids)
    if known.grids not in (None, grids):
        raise InputError("--designs holds designs for tables that do not grow; give another file")
    return replace(known, grids=grids)


def _length_classes(chain: MarkovChain, lengths: Integers) -> Integers:
    """The shortest secret with the same possible ends as one of each length: all else about a
    longer one is the same. Of order m its ends are its first and last m records (R6), so one that
    is shorter than that stands for itself. In a set of models its ends are what any of them allows.
    """
    possible = (chain.lifted.transition if chain.box is None else chain.box.lifted[0].high) > 0
    if np.all(possible):
        return np.minimum(lengths, 2)
    present = np.unique(lengths)
    if present[-1] > _LONGEST_RUN:
        raise InputError(
            f"private runs of more than {_LONGEST_RUN:,} records need a model in which every"
            " transition is possible"
        )
    patterns: dict[bytes, int] = {}
    walks = pattern_powers(possible)
    short = max(chain.order - 1, 1)
    classes = {length: length for length in range(1, short + 1)}
    if chain.order == 1:
        next(walks)  # a lone record is both ends: it stands for itself too
    for length, reached in zip(range(short + 1, int(present[-1]) + 1), walks, strict=False):
        classes[length] = patterns.setdefault(reached.tobytes(), length)
    return np.array([classes[int(length)] for length in present])[np.searchsorted(present, lengths)]


def _geometric(cap: int, ratio: float) -> tuple[int, ...]:
    nodes = [0]
    while nodes[-1] < cap:
        nodes.append(min(max(nodes[-1] + 1, int(nodes[-1] * ratio)), cap))
    return tuple(nodes)


# ---- any other model


def _one_by_one(
    setting: Setting,
    needs: SurroundingCounts,
    known: Designs | None,
    progress: Progress,
    max_minutes: float,
) -> tuple[Designs, Integers]:
    """A design for each place in a chain; InputError if that would take too long."""
    numbers: dict[Surrounding, int] = {}
    used = np.array([numbers.setdefault(one, len(numbers)) for one in needs], dtype=np.int64)
    stock = _Stock.of(setting, known, needs.gaps)
    missing, refused = stock.fill(numbers)
    started = time.monotonic()
    with closing(crew.each([stock.work(surrounding) for surrounding in missing])) as designs:
        for done, surrounding in enumerate(followed(missing, _DESIGNING, progress)):
            stock.standing[surrounding] = stock.made(surrounding, next(designs))
            # while the first is made, others are on their way
            minutes = (time.monotonic() - started) / 60 / max(done + 1, crew.size()) * len(missing)
            if done in _LOOKS and done + 1 < len(missing) and minutes > max_minutes:
                raise _too_long(len(missing), minutes)
    found = tuple(stock.standing[surrounding] for surrounding in numbers)
    return Designs(setting, found, refused=refused), used


def _too_long(count: int, minutes: float) -> InputError:
    return InputError(
        "the model is not stationary, so each place in a chain, or each sequence of phases, needs a"
        f" design of its own: {count} of them would take about {minutes:.0f} minutes; allow that"
        f" with --design-minutes {np.ceil(minutes) + 1:.0f}, take a quicker --mechanism (window,"
        " 3r-relaxed), or a stationary model"
    )
