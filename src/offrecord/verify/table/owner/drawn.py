"""What the key says about walks: draws anew, and which stops they let the values have.

With the table that was redacted all values are known, and so is where each walk of a side stops.
Without it those that are redacted may be any, and a private record may have been without a value,
so that its walks went straight to their last levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from offrecord.release.certificate import GapStopping, StoppingPair
from offrecord.verify.table.cells import Integers, Mask
from offrecord.verify.table.coins import Coins
from offrecord.verify.table.owner.held import HeldOut
from offrecord.verify.table.owner.rule import Rule
from offrecord.verify.table.owner.sights import Places
from offrecord.verify.table.owner.stand_ins import StandIns
from offrecord.verify.table.owner.thresholds import (
    ANY,
    Draws,
    Possible,
    Thresholds,
    Values,
    Walks,
)
from offrecord.verify.table.rows import Table

_PURPOSES = (b"offrecord/walk<", b"offrecord/walk>")
_GAP = b"offrecord/gap"
_SIGNS = (-1, 1)


class Ends(NamedTuple):
    """The ends of clusters to one side (column 0: the left); (c,) chain, place, and room: how many
    tuples lie up to the next cluster or the chain's end. other_place, other_room: of the other end,
    for sides that go second.
    """

    column: int
    chain: Integers
    place: Integers
    room: Integers
    other_place: Integers
    other_room: Integers

    @classmethod
    def of(cls, places: Places, first: Integers, after: Integers) -> Ends:
        """The left ones of clusters from one secret to before another."""
        line = places.line[first]
        following = np.minimum(after, places.count - 1)
        is_last = (after == places.count) | places.is_head[following]
        room = np.where(is_last, places.after.size[line], places.before.size[following])
        return cls(
            0,
            places.number[line],
            places.begin[first],
            places.before.size[first],
            places.end[after - 1],
            room,
        )

    def part(self, chosen: Integers) -> Ends:
        """Of some clusters."""
        chain, place, room, other, other_room = (one[chosen] for one in self[1:])
        return Ends(self.column, chain, place, room, other, other_room)

    def turned(self) -> Ends:
        """The other ends."""
        other = self.other_place, self.other_room
        return Ends(1 - self.column, self.chain, *other, self.place, self.room)


class _Sight(NamedTuple):
    """What walks see: (n,) the end's value, (n, m) those at levels; straight: they look at nothing;
    unsure: it is not known what they see, or whether they do.
    """

    end: Values
    values: Values
    straight: Mask
    unsure: Mask


@dataclass(eq=False)
class Drawn:
    """Of one table. unsure: how many walks saw stand-ins that are not drawn again here."""

    rule: Rule
    coins: Coins
    unsure: int = 0

    @property
    def table(self) -> Table:
        """The released one."""
        return self.coins.table

    @property
    def is_exact(self) -> bool:
        """All values are known."""
        return self.table.original is not None

    @property
    def k(self) -> int:
        """How many values, or tuples, there are."""
        return int(self.rule.model.k**self.rule.model.order)

    @cached_property
    def stand_ins(self) -> StandIns:
        """Those of this model."""
        return StandIns(self.rule.model, self.coins)

    @cached_property
    def _codes(self) -> Values:
        """(n,) the value or tuple of each row, ANY where it is not known or there is none."""
        table, k = self.table, self.rule.model.k
        own = table.codes if table.original is None else table.original
        if self.rule.extra == 0:
            return np.maximum(own, np.int8(ANY))
        own = own.astype(np.int64)
        found, whole = own.copy(), own >= 0
        chain = np.repeat(np.arange(table.chains), np.diff(table.starts))
        place = np.arange(table.rows) if table.steps is None else table.steps
        for further in range(1, self.rule.extra + 1):
            after = np.minimum(np.arange(table.rows) + further, table.rows - 1)
            linked = (chain[after] == chain) & (place[after] == place + further)
            whole &= linked & (own[after] >= 0)
            found = found * k + own[after]
        return np.where(whole, found, ANY)

    @cache  # noqa: B019 - lives as long as a check
    def thresholds(self, number: int) -> Thresholds:
        """Of a side that does not go second."""
        made_of = self.rule.sides[number].made_of
        assert made_of is not None
        return Thresholds.of(made_of, self.k)

    @cache  # noqa: B019
    def _seconds(self, number: int) -> list[tuple[Thresholds, list[int]]]:
        """The different sides of a pair that may go second, and by which labels; closed ones apart,
        which redact to the chain's end.
        """
        pair = self.rule.sides[number].made_of
        assert isinstance(pair, StoppingPair)
        sides = next(one.sides for one in self.rule.designs.stoppings if one.pair is pair)
        found: dict[int, list[int]] = {}
        for label, second in enumerate(pair.seconds):
            if sides[second].levels:
                found.setdefault(second, []).append(label)
        return [(Thresholds.of(sides[one], self.k), labels) for one, labels in found.items()]

    # ---- values

    def value_at(self, chain: Integers, place: Integers) -> Values:
        """The value or tuple at places, ANY where it is not known or there is none."""
        row, there = self.table.row_at(chain, place)
        return np.where(there, self._codes[row], self._codes.dtype.type(ANY))

    def _sight(self, ends: Ends, levels: Integers, beyond: Mask, *, ahead: bool) -> _Sight:
        """beyond: (m,) the levels that are looked at beyond the chain's end too."""
        sign = _SIGNS[ends.column]
        end = self.value_at(ends.chain, ends.place)
        values = self.value_at(ends.chain[:, None], ends.place[:, None] + sign * levels)
        near = levels <= ends.room[:, None]
        values[~near] = ANY
        nothing = np.zeros(len(end), dtype=bool)
        if not self.is_exact:
            return _Sight(end, values, nothing, nothing)
        straight = end == ANY
        missed = near & (values == ANY)
        past = levels[-1] > ends.room
        edge = self.value_at(ends.chain, ends.place + sign * np.where(past, ends.room, 0))
        if self.rule.is_known:
            unsure = self._filled_between(ends, levels, values, missed) | (past & (edge == ANY))
        else:
            straight = straight | missed.any(axis=1) | (past & (edge == ANY))
            unsure = past & (not self.rule.model.stationary or self.rule.extra > 0)
        drawn = np.flatnonzero(past & ~unsure & ~straight)
        self._filled_beyond(ends, levels, values, (drawn, edge), beyond, ahead=ahead)
        return _Sight(end, values, straight, unsure & ~straight)

    def _filled_between(self, ends: Ends, levels: Integers, values: Values, missed: Mask) -> Mask:
        """Put stand-ins where a single record is missing; (n,) the walks that look at others."""
        walk, level = np.nonzero(missed)
        chain = ends.chain[walk]
        place = ends.place[walk] + _SIGNS[ends.column] * levels[level]
        before, after = (self.value_at(chain, place + away) for away in (-1, 1))
        single = (before != ANY) & (after != ANY)
        found = np.full(len(walk), ANY)
        some = np.flatnonzero(single)
        if len(some):
            around = before[some], after[some]
            found[some] = self.stand_ins.between(chain[some], place[some], *around)
        values[walk, level] = found
        unsure = np.zeros(len(values), dtype=bool)
        unsure[walk[~single]] = True
        return unsure

    def _filled_beyond(
        self,
        ends: Ends,
        levels: Integers,
        values: Values,
        some: tuple[Integers, Values],
        beyond: Mask,
        *,
        ahead: bool,
    ) -> None:
        """Put stand-ins where walks look beyond the chain's end, each given the one before; who
        looks ahead looks at the first level there, too. some: walks, and the value at the end.
        """
        walks, edge = some
        sign = _SIGNS[ends.column]
        at, value = ends.room.copy(), edge.copy()
        for level, distance in enumerate(levels.tolist()):
            room = ends.room[walks]
            looks = beyond[level] | (ahead & (level > 0) & (levels[level - 1] <= room))
            here = walks[looks & (distance > room)]
            for steps in np.unique(distance - at[here]).tolist():
                mine = here[distance - at[here] == steps]
                place = ends.place[mine] + sign * distance
                value[mine] = self.stand_ins.beyond(
                    ends.chain[mine], place, sign * steps, value[mine]
                )
            values[here, level], at[here] = value[here], distance

    # ---- draws

    def draws(self, ends: Ends, count: int) -> Draws:
        """(n, count) of the records at ends."""
        table = self.table
        row = np.minimum(table.row_from(ends.chain, ends.place), table.starts[ends.chain + 1] - 1)
        return self.coins.several(ends.chain, table.order[row], _PURPOSES[ends.column], count)

    def count(self, number: int) -> int:
        """How many draws a walk to a side needs at most."""
        side = self.rule.sides[number]
        if not side.is_second:
            return len(side.levels) - 1
        return max((len(one.levels) for one, _ in self._seconds(number)), default=1) - 1

    def possible(self, number: int, ends: Ends, draws: Draws) -> Mask:
        """(n, m) at which levels of a side, none of a pair, the walks from some ends may stop."""
        limits = self.thresholds(number)
        beyond = np.arange(len(limits.levels)) == len(limits.levels) - 1
        sight = self._sight(ends, limits.levels, beyond, ahead=limits.ahead)
        return self._walked(limits, ends, sight, draws).stops

    def _walked(
        self, limits: Thresholds, ends: Ends, sight: _Sight, draws: Draws, *, endless: bool = False
    ) -> Possible:
        """What walks may have done. endless: they go on beyond the chain's end."""
        reach = np.where(endless, limits.levels[-1], ends.room)
        found = limits.possible(Walks(sight.end, sight.values, draws, reach))
        found.stops[sight.straight, :-1] = False
        found.labels[sight.straight] = False
        self.unsure += int(sight.unsure.sum())
        found.stops[self._may_be_straight(sight), -1] = True
        return found

    def _may_be_straight(self, sight: _Sight) -> Mask:
        """(n,) which walks went straight to their last levels, or may have."""
        return (sight.straight | sight.unsure) if self.is_exact else np.ones_like(sight.straight)

    def in_turn(self, number: int, ends: Ends, draws: tuple[Draws, Draws]) -> tuple[Mask, Mask]:
        """Of both sides of a pair: of the second by the labels that the first may have drawn.

        number: of the first. ends: from which the first walks. draws: of the first, and the second.
        """
        seconds = ends.turned()
        limits = self.thresholds(number)
        every = np.ones(len(limits.levels), dtype=bool)
        first_sight = self._sight(ends, limits.levels, every, ahead=limits.ahead)
        sides = self._seconds(number)
        if not sides:  # all that go second are closed
            first = self._walked(limits, ends, first_sight, draws[0], endless=True)
            return first.stops, np.zeros((len(ends.place), 0), dtype=bool)
        levels = np.unique(np.concatenate([one.levels for one, _ in sides]))
        ahead = any(one.ahead for one, _ in sides)
        beyond = np.isin(levels, [one.levels[-1] for one, _ in sides]) | ahead
        sight = self._sight(seconds, levels, beyond, ahead=ahead)
        if not self.rule.is_known:  # if one goes straight both do
            both = first_sight.straight | sight.straight
            sight = sight._replace(straight=both)
            first_sight = first_sight._replace(straight=both)
        first = self._walked(limits, ends, first_sight, draws[0], endless=True)
        found = np.zeros((len(ends.place), len(levels)), dtype=bool)
        for one, labels in sides:
            columns = np.searchsorted(levels, one.levels)
            own = sight._replace(values=sight.values[:, columns])
            stops = self._walked(one, seconds, own, draws[1]).stops
            drawn = np.any(first.labels[:, labels], axis=1, keepdims=True)
            found[:, columns] |= stops & drawn
        found[self._may_be_straight(sight) | self._may_be_straight(first_sight), -1] = True
        return first.stops, found

    # ---- gaps that are held out

    def rules_out(self, places: Places, secrets: Integers) -> Mask:
        """(g,) whether draws do not allow what is released of the gaps before some secrets."""
        found = np.zeros(len(secrets), dtype=bool)
        gaps = self.rule.designs.stoppings[0].gaps if len(secrets) else ()
        sizes = places.before.size[secrets]
        for gap in gaps:
            some = np.flatnonzero(sizes == gap.length)
            if len(some):
                found[some] = ~self._allows(gap, places, secrets[some])
        return found

    def _allows(self, gap: GapStopping, places: Places, secrets: Integers) -> Mask:
        seen = places.before.part(secrets)
        chain, left, right = seen.chain, places.end[secrets - 1], places.begin[secrets]
        inside = self.value_at(chain[:, None], left[:, None] + 1 + np.arange(gap.length))
        ends = self.value_at(chain, left), self.value_at(chain, right)
        row = np.maximum(self.table.row_from(chain, left + 1) - 1, 0)
        drawn = self.coins.several(chain, self.table.order[row], _GAP, gap.length)
        held = HeldOut(*ends, inside, drawn, seen.first, seen.last)
        found = held.possible(gap, self.k)
        # nothing is released beside a secret without a value
        silent = seen.released == 0
        if not self.is_exact:
            return np.asarray(found | silent)
        empty = (ends[0] == ANY) | (ends[1] == ANY)
        return np.asarray(np.where(empty, silent, found))
