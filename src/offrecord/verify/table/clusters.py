"""What may act around secrets: the design of their surroundings, a window, or one of a cluster.

Which of them does act cannot be repeated from a certificate. But it is the same for all secrets
whose designs may meet: designs of clusters and else of surroundings, those of surroundings alone,
or windows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from offrecord.release.certificate import (
    Certificate,
    ClusteredDesign,
    LocalDesign,
    LocalDesigns,
)
from offrecord.verify.table.cells import Integers, Mask
from offrecord.verify.table.listed import Private
from offrecord.verify.table.rows import Table, expand
from offrecord.verify.table.secrets import Secrets
from offrecord.verify.table.serving import NONE, Serving, length_classes
from offrecord.verify.table.stamps import Layout, Sheet, covered

_LARGE = 1 << 30  # more than any room that designs are made for


@dataclass(frozen=True, eq=False)
class Option:
    """layout: of all secrets that are served in this way. served: (s,) which are."""

    layout: Layout
    served: Mask


@dataclass(frozen=True, eq=False)
class Groups:
    """Secrets whose designs may meet: (s,) the group of each; of each group its chain, the rows
    begin … end − 1 on which its designs may fall, and the secrets first … after − 1.
    """

    of: Integers
    chain: Integers
    begin: Integers
    end: Integers
    first: Integers
    after: Integers

    def of_rows(self, rows: Integers) -> Integers:
        """(r,) the group on whose stretch each row lies, −1 for none."""
        at = np.searchsorted(self.begin, rows, side="right") - 1
        inside = (at >= 0) & (rows < self.end[np.maximum(at, 0)])
        return np.where(inside, at, -1)


@dataclass(frozen=True, eq=False)
class Matches:
    """Clusters that a listed design fits: secrets begin … end − 1, and the design."""

    begin: Integers
    end: Integers
    which: Integers

    def from_the_left(self) -> Matches:
        """Some that share no secret: of those that begin first the longest, and so on."""
        taken, reached = [], 0
        for at, (begin, end) in enumerate(zip(self.begin.tolist(), self.end.tolist(), strict=True)):
            if begin >= reached:
                taken.append(at)
                reached = end
        return self.part(np.array(taken, dtype=np.int64))

    def part(self, chosen: Integers) -> Matches:
        """Some of them."""
        return Matches(self.begin[chosen], self.end[chosen], self.which[chosen])


@dataclass(frozen=True, eq=False)
class Ways:
    """What may serve secrets. own, windows: (s,) the design of the surroundings of each, and the
    window; NONE where there is none.
    """

    secrets: Secrets
    own: Integers
    windows: Integers
    matches: Matches

    def uses(self, designs: int) -> tuple[Integers, Integers]:
        """(designs,) how many secrets each serves at least, as nothing else does, and at most."""
        joined = expand(self.matches.begin, self.matches.end)
        sizes = self.matches.end - self.matches.begin
        every = np.arange(self.secrets.count)
        secret = np.concatenate((every, every, joined))
        which = np.concatenate((self.own, self.windows, np.repeat(self.matches.which, sizes)))
        pairs = np.unique(secret[which != NONE] * designs + which[which != NONE])
        secret, which = pairs // max(designs, 1), pairs % max(designs, 1)
        alone = np.bincount(secret, minlength=self.secrets.count)[secret] == 1
        return (
            np.bincount(which[alone], minlength=designs),
            np.bincount(which, minlength=designs),
        )

    def single(self, which: Integers) -> Option:
        """Each secret by its own design."""
        served = which != NONE
        return Option(Layout(self.secrets.part(served), which[served]), served)

    def clustered(self, chosen: Matches) -> Option:
        """Some clusters, and the designs of surroundings for the secrets in none of them."""
        joined = covered(chosen.begin, chosen.end, self.secrets.count)
        alone = np.flatnonzero((self.own != NONE) & ~joined)
        begin = np.concatenate((alone, chosen.begin))
        order = np.argsort(begin, kind="stable")
        end = np.concatenate((alone + 1, chosen.end))[order]
        which = np.concatenate((self.own[alone], chosen.which))[order]
        spans = self.secrets.joined(begin[order], end)
        return Option(Layout(spans, which), (self.own != NONE) | joined)

    def acting(self, some: Integers, taken: Integers) -> Layout:
        """Of some secrets, with the clusters that some matches make of them."""
        chosen = self.matches.part(taken)
        begin = np.searchsorted(some, chosen.begin)
        moved = Matches(begin, begin + chosen.end - chosen.begin, chosen.which)
        mine = Ways(self.secrets.part(some), self.own[some], self.windows[some], moved)
        return mine.clustered(moved).layout

    def choices(self, first: int, after: int, most: int) -> Iterator[tuple[int, ...]]:
        """All choices of matches that share no secret, of the secrets first … after − 1, at most so
        many.
        """
        begins = np.searchsorted(self.matches.begin, np.arange(first, after + 1)).tolist()
        ends = self.matches.end[begins[0] : begins[-1]].tolist()
        alone = (self.own[first:after] != NONE).tolist()
        heads: list[tuple[int, tuple[int, ...]]] = [(first, ())]
        done = 0
        while heads and done < most:
            at, taken = heads.pop()
            if at >= after:
                done += 1
                yield taken
                continue
            for one in range(begins[at - first], begins[at - first + 1]):
                end = ends[one - begins[0]]
                if end <= after:
                    heads.append((end, (*taken, one)))
            if alone[at - first]:
                heads.append((at + 1, taken))


class Alternatives:
    """The designs of a certificate by what they are for."""

    def __init__(self, certificate: Certificate, sheet: Sheet) -> None:
        designs = certificate.designs
        assert isinstance(designs, LocalDesigns)
        self.certificate, self.sheet = certificate, sheet
        self.listed: Sequence[LocalDesign] = designs.designs
        own, windows, clusters = [], [], []
        for number, one in enumerate(self.listed):
            if isinstance(one, ClusteredDesign) and one.inside:
                clusters.append(number)
            elif isinstance(one, ClusteredDesign) and one.mechanism != designs.mechanism:
                windows.append(number)
            else:
                own.append(number)
        self.own, self.windows, self.clusters = Serving(certificate, own), windows, clusters

    @cached_property
    def beyond(self) -> Mask:
        """(designs, 2) whether a design holds in a larger room than it was made for (F14)."""
        designs, model = self.certificate.designs, self.certificate.model
        assert isinstance(designs, LocalDesigns)
        found = np.zeros((len(self.listed), 2), dtype=bool)
        for number, one in enumerate(self.listed):
            for side, room in ((0, one.left), (1, one.right)):
                reach = int(self.sheet.reaches[number, side])
                rests = bool(self.sheet.rests[number, side])
                ends = reach + model.order <= room
                if model.stationary or side == 1 or model.set is not None:
                    found[number, side] = room > 0 and (rests or ends)
                    continue
                # how the chain began may be told by what is redacted at times
                side_rows = designs.sides[one.redaction_left]
                all_gone = rests and all(min(row) == 1 for _, row in side_rows)
                found[number, side] = room > 0 and (all_gone or reach + 1 < room)
        return found

    def fits(self, which: Integers, left: Integers, right: Integers) -> Mask:
        """(s,) whether designs hold in some rooms."""
        made_left = np.array([one.left for one in self.listed])[which]
        made_right = np.array([one.right for one in self.listed])[which]
        beyond = self.beyond[which]
        return ((left <= made_left) | beyond[:, 0]) & ((right <= made_right) | beyond[:, 1])

    # ---- what may act

    def ways(self, table: Table, private: Private, secrets: Secrets) -> Ways:
        """What may serve each secret."""
        own = self.own.serving(table, private, secrets)
        windows = self._windows(table, secrets)
        rooms = secrets.rooms(table)
        for which in (own, windows):
            served = np.flatnonzero(which != NONE)
            fits = self.fits(which[served], rooms[0][served], rooms[1][served])
            which[served[~fits]] = NONE
        return Ways(secrets, own, windows, self.matches(table, secrets))

    def options(self, ways: Ways) -> list[Option]:
        """The ways in which all secrets may be served, those of surroundings first."""
        found = [ways.single(ways.own)]
        if self.clusters:
            found.append(ways.clustered(ways.matches.from_the_left()))
        if self.windows:
            found.append(ways.single(ways.windows))
        return found

    def _windows(self, table: Table, secrets: Secrets) -> Integers:
        """(s,) the window of each secret: of those that fit, the one for the least rooms."""
        length = secrets.last - secrets.first + 1
        if not self.windows:
            return np.full(secrets.count, NONE)
        if self.certificate.model.stationary and len(length):
            length = length_classes(self.certificate.model, length)
        return self._least(self.windows, secrets.rooms(table), length)

    def _least(
        self, numbers: Iterable[int], rooms: tuple[Integers, Integers], length: Integers
    ) -> Integers:
        """(s,) of some designs for secrets of a length the one that fits their rooms best: the
        least that are no smaller, else the largest.
        """
        found, best = np.full(len(length), NONE), np.full(len(length), np.iinfo(np.int64).max)
        for number in numbers:
            one = self.listed[number]
            rank = np.zeros(len(length), dtype=np.int64)
            for room, said in zip(rooms, (one.left, one.right), strict=True):
                made = min(said, _LARGE)
                rank = (rank << 31) + np.where(room <= made, made, _LARGE - made)
            better = (one.length == length) & self._fits_one(number, rooms) & (rank < best)
            found[better] = number
            best[better] = rank[better]
        return found

    def _fits_one(self, number: int, rooms: tuple[Integers, Integers]) -> Mask:
        return self.fits(np.full(len(rooms[0]), number), *rooms)

    # ---- clusters

    def matches(self, table: Table, secrets: Secrets) -> Matches:
        """All stretches of secrets that have the pattern of a listed cluster, sorted."""
        by_size: dict[int, dict[bytes, list[int]]] = {}
        for number in self.clusters:
            pattern = self._pattern(number)
            by_size.setdefault(len(pattern) // 2, {}).setdefault(pattern.tobytes(), []).append(
                number
            )
        begins, ends, which = [], [], []
        for size, patterns in by_size.items():
            begin, numbers = self._matching(table, secrets, size, patterns)
            begins.append(begin)
            ends.append(begin + size)
            which.append(numbers)
        if not begins:
            none = np.zeros(0, dtype=np.int64)
            return Matches(none, none, none)
        begin, end = np.concatenate(begins), np.concatenate(ends)
        order = np.lexsort((-end, begin))
        return Matches(begin[order], end[order], np.concatenate(which)[order])

    def _pattern(self, number: int) -> Integers:
        """The first and last record of each secret of a cluster."""
        design = self.listed[number]
        assert isinstance(design, ClusteredDesign)
        marks = np.array([0, *design.inside, 0])
        if self.certificate.designs.protect == "each":
            first = last = np.flatnonzero(marks) - 1
        else:
            first = np.flatnonzero(np.diff(marks) == 1)
            last = np.flatnonzero(np.diff(marks) == -1) - 1
        return np.stack((first, last), axis=1).ravel().astype(np.int64)

    def _matching(
        self, table: Table, secrets: Secrets, size: int, patterns: dict[bytes, list[int]]
    ) -> tuple[Integers, Integers]:
        longest = max(self.listed[numbers[0]].length for numbers in patterns.values())
        begin = np.arange(max(secrets.count - size + 1, 0))
        end = begin + size - 1
        near = secrets.chain[begin] == secrets.chain[end]
        near &= secrets.last[end] - secrets.first[begin] < longest
        begin = begin[near]
        members = begin[:, None] + np.arange(size)
        origin = secrets.first[begin][:, None]
        rows = np.stack((secrets.first[members] - origin, secrets.last[members] - origin), axis=2)
        rows = np.ascontiguousarray(rows.reshape(len(begin), 2 * size).astype(np.int64))
        left = secrets.first[begin]
        right = table.lengths[secrets.chain[begin]] - 1 - secrets.last[begin + size - 1]
        which = np.full(len(begin), NONE)
        if len(begin) == 0:
            return begin, which
        keys = rows.view(np.dtype((np.void, rows.shape[1] * 8))).ravel()
        for pattern, numbers in patterns.items():
            mine = np.flatnonzero(keys == np.frombuffer(pattern, dtype=keys.dtype)[0])
            if len(mine):
                lengths = np.full(len(mine), self.listed[numbers[0]].length)
                which[mine] = self._least(numbers, (left[mine], right[mine]), lengths)
        kept = which != NONE
        return begin[kept], which[kept]

    # ---- groups

    def groups(self, table: Table, ways: Ways) -> Groups:
        """Secrets whose designs may fall on the same records: all of a chain, where one goes to its
        end. None is larger than the groups for which it was chosen what acts.
        """
        secrets, matches, rests = ways.secrets, ways.matches, self.sheet.resting
        to_the_end = np.zeros(table.chains, dtype=bool)
        for which in (ways.own, ways.windows):
            to_the_end[secrets.chain[(which != NONE) & rests[which]]] = True
        to_the_end[secrets.chain[matches.begin[rests[matches.which]]]] = True
        reach = int(self.sheet.reaches.max(initial=0))
        meets = np.zeros(secrets.count, dtype=bool)  # the one before
        meets[1:] = secrets.first[1:] - secrets.last[:-1] - 1 <= 2 * reach
        meets |= to_the_end[secrets.chain]
        meets |= covered(matches.begin + 1, matches.end, secrets.count)
        meets[1:] &= secrets.chain[1:] == secrets.chain[:-1]
        meets[:1] = False
        first = np.flatnonzero(~meets)
        last = np.append(first[1:], secrets.count)[: len(first)] - 1
        chain = secrets.chain[first]
        begin = table.row_from(chain, np.maximum(secrets.first[first] - reach, 0))
        end = table.row_from(chain, secrets.last[last] + reach + 1)
        whole = to_the_end[chain]
        begin = np.where(whole, table.starts[chain], begin)
        end = np.where(whole, table.starts[chain + 1], end)
        return Groups(np.cumsum(~meets) - 1, chain, begin, end, first, last + 1)
