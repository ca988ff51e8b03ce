"""What the walks of the owner's mechanism tell: the likelihood of where they stopped, and of all
that is released, by the values of a secret.

Only the records before a stop are summed over; from it on everything is released, and what lies
beyond is independent of the secret. Near secrets are one cluster, redacted from end to end, and
clusters beside a gap that one choice serves are walked through one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from offrecord.attack.reading import Told, of_ends
from offrecord.attack.released import Table
from offrecord.mechanisms.blocks import Mask
from offrecord.mechanisms.owner.deciding.clusters import LEFT, RIGHT, SIGNS
from offrecord.mechanisms.owner.deciding.decider import OwnerDecider, Plan
from offrecord.mechanisms.owner.designing.repair import stopped_shares
from offrecord.mechanisms.owner.stopping import GapStopping
from offrecord.models.base import Floats, Integers
from offrecord.models.records import MISSING
from offrecord.models.walks import pattern_power
from offrecord.release.coins import Draws

_MISSING = "records near them are missing"
_CLOSED = "nothing is released between them and the next secrets"
_ODD = "no walk stops where releasing begins beside them"
_KIND = "owner's designs for a model of order above 1, or one that is not stationary"


class _UnknownError(Exception):
    """Why something is not computed."""


def told_by_walks(table: Table) -> tuple[Told, tuple[tuple[str, int], ...]]:
    """What is told of each secret, and how many were not attacked, and why."""
    count, k = table.batch.secrets.count, table.said.model.k
    found = Told(np.full(count, np.nan), *(np.full((count, k), np.nan) for _ in range(2)))
    decider = table.rule.decider
    assert isinstance(decider, OwnerDecider)
    if decider.ways is None or decider.order > 1:
        return found, ((_KIND, count),)
    reasons: dict[str, int] = {}
    laws = _Laws(decider, (decider.ways[LEFT].kernels[0], decider.ways[RIGHT].kernels[0]))
    prior, at = table.said.model.along().start, 0
    for block in table.rule.blocks(table.batch, table.acting):
        if not block.secrets.count:
            continue
        plan = decider.planned(block)
        for cluster, vectors in _Groups(table, plan, laws, prior).vectors():
            begin, end = (int(one) + at for one in plan.clusters.begin[cluster : cluster + 2])
            if isinstance(vectors, str):
                reasons[vectors] = reasons.get(vectors, 0) + end - begin
                continue
            _tell(table, plan, cluster, (begin, end), vectors, laws, prior, found)
        at += block.secrets.count
    return found, tuple(reasons.items())


def _tell(
    table: Table,
    plan: Plan,
    cluster: int,
    secrets: tuple[int, int],
    vectors: tuple[Floats, Floats],
    laws: _Laws,
    prior: Floats,
    found: Told,
) -> None:
    """Note what is told of the secrets of a cluster. vectors: how likely all to its left is
    together with the value of its first record, and all to its right by that of its last.
    """
    ends, every = plan.clusters.ends, table.batch.secrets
    for secret in range(*secrets):
        first, last = int(every.first[secret]), int(every.last[secret])
        away = first - int(ends.first[cluster]), last - first, int(ends.last[cluster]) - last
        ratio, posterior = laws.told(vectors, away, prior)
        found.prior[secret] = prior
        found.ratio[secret], found.posterior[secret] = ratio, posterior


@dataclass(frozen=True, eq=False)
class _Laws:
    """Likelihoods of walks. kernels: one step to the left, and to the right. known: so far."""

    decider: OwnerDecider
    kernels: tuple[Floats, Floats]
    known: dict[tuple[object, ...], Floats] = field(default_factory=dict)
    powers: dict[tuple[int, int], Floats] = field(default_factory=dict)

    def power(self, column: int, steps: int) -> Floats:
        """(k, k) so many steps to a side."""
        if (column, steps) not in self.powers:
            self.powers[column, steps] = np.linalg.matrix_power(self.kernels[column], steps)
        return self.powers[column, steps]

    def told(
        self, vectors: tuple[Floats, Floats], away: tuple[int, int, int], prior: Floats
    ) -> tuple[float, Floats]:
        """The log-ratio about a secret and the posterior of its first record. vectors: of its
        cluster. away: steps from there to the secret, through it, and from it to the other end.
        """
        key = ("told", *(one.tobytes() for one in vectors), *away)
        if key not in self.known:
            left = vectors[0] @ self.power(RIGHT, away[0])
            right = self.power(RIGHT, away[2]) @ vectors[1]
            joint = left * (self.power(RIGHT, away[1]) @ right)
            if not joint.sum() > 0:  # it cannot be
                self.known[key] = np.full(len(prior) + 1, np.nan)
                return self.told(vectors, away, prior)
            ends = pattern_power(self.kernels[RIGHT] > 0, away[1]) & (prior > 0)[:, np.newaxis]
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(left) - np.log(prior), np.log(right)
            ratio = of_ends(logs[0][np.newaxis], logs[1][np.newaxis], ends)
            self.known[key] = np.append(ratio, joint / joint.sum())
        found = self.known[key]
        return float(found[0]), found[1:]

    def side(self, number: int, sight: _Sight) -> Floats:
        """(k,) how likely a walk by one side is, by the value it leads away from."""
        if not self.decider.kit.packed.counts[number]:
            return _closed(sight, len(self.kernels[0]))
        side = self.decider.kit.sides[number]
        limits = side.limits[..., np.newaxis]
        found = self.labelled(("side", number), side.levels, limits, sight)
        return np.asarray(found.sum(axis=0))

    def straight(self, deadline: int, sight: _Sight) -> Floats:
        """(k,) the same of a walk that goes straight to its deadline."""
        k = len(self.kernels[0])
        if sight.stop is None:
            return np.ones(k)
        if sight.stop != deadline:
            raise _UnknownError(_ODD)
        return np.asarray(self.power(sight.column, deadline)[:, sight.value(deadline)])

    def pair(self, number: int, sights: tuple[_Sight, _Sight]) -> Floats:
        """(k,) both sides in turn."""
        pair = self.decider.kit.made_of[number]
        first = SIGNS.index(pair.first)
        named = self.labelled(("pair", number), pair.levels, pair.limits, sights[first])
        total = np.zeros(len(self.kernels[0]))
        for label in np.flatnonzero(named.any(axis=1)).tolist():
            second, sight = pair.seconds[label], sights[1 - first]
            if second.is_closed:
                if sight.stop is None:
                    total += named[label]
                continue
            limits = second.limits[..., np.newaxis]
            name = ("second", number, label)
            try:
                other = self.labelled(name, second.levels, limits, sight)
            except _UnknownError as error:
                if error.args[0] != _ODD:
                    raise
                continue  # with this label the other walk never stops there
            total += named[label] * other.sum(axis=0)
        return total

    def labelled(
        self, name: tuple[object, ...], levels: Integers, limits: Draws, sight: _Sight
    ) -> Floats:
        """(labels + k, k) how likely a walk stops as it did, by its label, which is the far value
        after those of stops before the deadline, and by the value it leads away from.
        """
        key = (*name, sight.column, *sight.seen(levels))
        if key not in self.known:
            self.known[key] = self._labelled(levels, limits, sight)
        return self.known[key]

    def _labelled(self, levels: Integers, limits: Draws, sight: _Sight) -> Floats:
        k, labels, column = len(self.kernels[0]), limits.shape[-1], sight.column
        deadline, stop, room = int(levels[-1]), sight.stop, sight.room
        if stop is not None and stop not in levels:
            raise _UnknownError(_ODD)
        if stop is None and deadline <= room:
            raise _UnknownError(_ODD)
        found = np.zeros((labels + k, k))
        for far in range(k):
            going = self.power(column, int(levels[0]))  # (x, value at the level)
            for level, distance in enumerate(levels[:-1].tolist()):
                after = int(levels[level + 1])
                shares = stopped_shares(limits[far, level])  # (x, i, 1 or j, label)
                parts = np.diff(shares, axis=-1, prepend=0.0)
                if stop == distance:
                    i, next_law = sight.value(distance), self._ahead(after, deadline, far, sight)
                    if next_law is not None:
                        held = going[:, i, np.newaxis] * next_law  # (x, j)
                        found[:labels] += np.einsum(
                            "xj,xjb->bx", held, parts[:, i] + 0.0 * held[..., np.newaxis]
                        )
                    break
                step = going[:, :, np.newaxis] * self.power(column, after - distance)
                if stop is None and distance > room:
                    rest = step * self.power(column, deadline - after)[:, far]
                    found[:labels] += np.einsum(
                        "xij,xijb->bx", rest, parts + 0.0 * rest[..., np.newaxis]
                    )
                going = (step * (1.0 - shares[..., -1])).sum(axis=1)
            else:
                found[labels + far] += self._at_deadline(going, far, deadline, sight)
        return found

    def _at_deadline(self, going: Floats, far: int, deadline: int, sight: _Sight) -> Floats:
        """(k,) how likely a walk that has come to its deadline finds this far value there."""
        if sight.stop is None:
            return np.asarray(going[:, far])
        if sight.stop == deadline and sight.value(deadline) == far:
            return np.asarray(going[:, far])
        return np.zeros(len(going))

    def _ahead(self, after: int, deadline: int, far: int, sight: _Sight) -> Floats | None:
        """(k,) how likely each value at the next level is together with the far one, given what is
        released; None where the far value is another.
        """
        column, room, one = sight.column, sight.room, np.eye(len(self.kernels[0]))
        if deadline <= room:
            return one[sight.value(after)] if sight.value(deadline) == far else None
        last = sight.value(room)
        if after <= room:
            likely = self.power(column, deadline - room)[last, far]
            return np.asarray(one[sight.value(after)] * likely)
        beyond = self.power(column, after - room)[last]
        return np.asarray(beyond * self.power(column, deadline - after)[:, far])

    def gap(self, gap: GapStopping, held: tuple[int, int] | None, ends: tuple[int, int]) -> Floats:
        """(k, k) how likely what a gap that one choice serves shows is, together with the value of
        the right cluster's first record, by that of the left one's last. held: what is released,
        ends: the values of its first and last record.
        """
        key = ("gap", gap.length, held, ends)
        if key not in self.known:
            self.known[key] = self._gap(gap, held, ends)
        return self.known[key]

    def _gap(self, gap: GapStopping, held: tuple[int, int] | None, ends: tuple[int, int]) -> Floats:
        kernel = self.kernels[RIGHT]
        k, nothing = len(kernel), np.zeros((len(kernel),) * 2)
        # by the values x and b beside the gap, and i and j at the ends of what is held out: what
        # lies between i and j is left out, as it is the same whatever x and b are
        reached: dict[tuple[int, int], Floats] = {
            (1, gap.length): kernel[:, np.newaxis, :, np.newaxis]
            * kernel.T[np.newaxis, :, np.newaxis, :]
        }
        for number, (first, last) in enumerate(gap.states):
            here = reached.pop((first, last), np.zeros((k,) * 4))
            shares = stopped_shares(gap.limits[number])
            release, lose = shares[..., 0], np.maximum(shares[..., 0], shares[..., 1])
            if held == (first, last):
                return np.asarray((here * release)[:, :, ends[0], ends[1]])
            if first == last:
                nothing += np.einsum("xbii->xb", here * (1.0 - release))
                continue
            less = np.einsum("xbij,ia->xbaj", here * (lose - release), kernel)
            more = np.einsum("xbij,aj->xbia", here * (1.0 - lose), kernel)
            for target, part in (((first + 1, last), less), ((first, last - 1), more)):
                reached[target] = reached.get(target, 0.0) + part
        if held is not None:
            raise _UnknownError(_ODD)
        return nothing


class _Sight(NamedTuple):
    """What is seen of one side of a cluster. stop: the distance at which releasing begins, None if
    nothing is released up to the chain's end. room: records on that side. values: (room,) released
    values by distance from 1, as far as they matter; MISSING where nothing is shown.
    """

    column: int
    stop: int | None
    room: int
    values: Integers

    def value(self, distance: int) -> int:
        """The value at a distance; _UnknownError if it is not shown."""
        value = int(self.values[distance - 1]) if distance <= len(self.values) else MISSING
        if value < 0:
            raise _UnknownError(_MISSING)
        return value

    def seen(self, levels: Integers) -> tuple[int | None, ...]:
        """All that the likelihood of a walk depends on."""
        deadline = int(levels[-1])
        if self.stop is None:
            return None, min(self.room, deadline)
        at = int(levels.searchsorted(self.stop))
        if at == len(levels) or levels[at] != self.stop:
            raise _UnknownError(_ODD)
        after = int(levels[min(at + 1, len(levels) - 1)])
        looked = [self.stop, min(after, self.room), min(deadline, self.room)]
        return (self.stop, min(self.room, deadline), *map(self.value, looked))


def _closed(sight: _Sight, k: int) -> Floats:
    """(k,) of a closed side, which is redacted to the chain's end."""
    if sight.stop is not None:
        raise _UnknownError(_ODD)
    return np.ones(k)


@dataclass(frozen=True, eq=False)
class _Groups:
    """The clusters of a block, those together that lie beside gaps that one choice serves."""

    table: Table
    plan: Plan
    laws: _Laws
    prior: Floats

    def vectors(self) -> Iterator[tuple[int, tuple[Floats, Floats] | str]]:
        """Of each cluster what lies to its left and right, or why it is not known."""
        clusters, begin = self.plan.clusters, 0
        while begin < clusters.count:
            end = begin + 1
            while clusters.bridged[end - 1, RIGHT]:
                end += 1
            try:
                found: list[tuple[Floats, Floats]] | str = self._group(begin, end)
            except _UnknownError as error:
                found = str(error)
            for at in range(begin, end):
                yield at, found if isinstance(found, str) else found[at - begin]
            begin = end

    def _group(self, begin: int, end: int) -> list[tuple[Floats, Floats]]:
        """Walks through clusters from both ends."""
        pair = int(self.plan.choice.pairs[begin])
        if pair >= 0:
            if self.plan.blocked[begin].any():
                raise _UnknownError(_MISSING)
            sights = self._sight(begin, LEFT), self._sight(begin, RIGHT)
            return [(self.prior * self.laws.pair(pair, sights), np.ones(len(self.prior)))]
        gaps = [self._gap(at) for at in range(begin, end - 1)]
        across = [self._across(at) for at in range(begin, end)]
        near = [self.prior * self._walk(begin, LEFT)]
        for at in range(end - begin - 1):
            near.append(near[-1] @ across[at] @ gaps[at])
        far = [self._walk(end - 1, RIGHT)]
        for at in range(end - begin - 1, 0, -1):
            far.append(gaps[at - 1] @ across[at] @ far[-1])
        return list(zip(near, reversed(far), strict=True))

    def _across(self, cluster: int) -> Floats:
        """(k, k) from the first record of a cluster to its last."""
        ends = self.plan.clusters.ends
        return self.laws.power(RIGHT, int(ends.last[cluster] - ends.first[cluster]))

    def _walk(self, cluster: int, column: int) -> Floats:
        plan, sight = self.plan, self._sight(cluster, column)
        if plan.blocked[cluster, column]:
            return self.laws.straight(int(plan.deadlines[cluster, column]), sight)
        return self.laws.side(int(plan.choice.sides[cluster, column]), sight)

    def _sight(self, cluster: int, column: int) -> _Sight:
        """What is seen beside a cluster; _UnknownError where that does not say where its walk
        stopped.
        """
        plan = self.plan
        room = int(plan.clusters.gaps[cluster, column])
        deadline = int(plan.deadlines[cluster, column])
        looked = min(room, max(deadline, 1))
        values, missing = self._beside(cluster, column, looked)
        shown = np.flatnonzero(values >= 0)
        stop = int(shown[0]) + 1 if len(shown) else None
        if stop is None and plan.clusters.faces[cluster, column]:
            raise _UnknownError(_CLOSED)
        if missing.any():
            raise _UnknownError(_MISSING)
        return _Sight(column, stop, room, values)

    def _beside(self, cluster: int, column: int, count: int) -> tuple[Integers, Mask]:
        """What is released beside a cluster, and what is missing, by distance from 1."""
        ends, table, sign = self.plan.clusters.ends, self.table, SIGNS[column]
        end, chain = (ends.first, ends.last)[column][cluster], ends.chain[cluster]
        away = np.arange(1, count + 1)
        if table.chains.steps is None:
            row = table.chains.starts[chain] + end + sign * away
            return table.codes[row].astype(np.int64), table.missing[row]
        row = table.rows(np.full(count, chain), end + sign * away)
        values = np.where(row < 0, MISSING, table.codes[row]).astype(np.int64)
        return values, np.asarray((row < 0) | table.missing[row])

    def _gap(self, cluster: int) -> Floats:
        """(k, k) of the gap to the right of a cluster that one choice serves."""
        length = int(self.plan.clusters.gaps[cluster, RIGHT])
        gap = next(one for one in self.laws.decider.bridges.gaps if one.length == length)
        values, _ = self._beside(cluster, RIGHT, length)
        shown = np.flatnonzero(values >= 0)
        if not len(shown):
            return self.laws.gap(gap, None, (0, 0))
        first, last = int(shown[0]), int(shown[-1])
        if len(shown) != last - first + 1:
            raise _UnknownError(_ODD)
        return self.laws.gap(gap, (first + 1, last + 1), (int(values[first]), int(values[last])))
