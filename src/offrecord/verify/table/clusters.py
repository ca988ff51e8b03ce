"""What may act around secrets: the design of their surroundings, a window, or one of a cluster.

Which of them does act cannot be repeated from a certificate. But it is the same for all secrets
whose designs may meet: designs of clusters and else of surroundings, those of surroundings alone,
or windows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from offrecord.release.certificate import (
    Certificate,
    ClusteredDesign,
    LocalDesign,
    LocalDesigns,
    spelled_rows,
)
from offrecord.verify.table.cells import Integers, Mask
from offrecord.verify.table.listed import Private
from offrecord.verify.table.rows import Table
from offrecord.verify.table.secrets import Secrets
from offrecord.verify.table.serving import NONE, Serving, length_classes
from offrecord.verify.table.stamps import Layout, Sheet

_WINDOW = "window"


@dataclass(frozen=True, eq=False)
class Option:
    """layout: of all secrets that are served in this way. served: (s,) which are."""

    layout: Layout
    served: Mask


@dataclass(frozen=True, eq=False)
class Groups:
    """Secrets whose designs may meet: (s,) the group of each; of each group its chain and the rows
    begin … end − 1 on which its designs may fall.
    """

    of: Integers
    chain: Integers
    begin: Integers
    end: Integers

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
                rows = spelled_rows(designs.sides[one.redaction_left])
                all_gone = rests and all(min(row) == 1 for row in rows)
                found[number, side] = room > 0 and (all_gone or reach + 1 < room)
        return found

    def fits(self, which: Integers, left: Integers, right: Integers) -> Mask:
        """(s,) whether designs hold in some rooms."""
        made_left = np.array([one.left for one in self.listed])[which]
        made_right = np.array([one.right for one in self.listed])[which]
        beyond = self.beyond[which]
        return ((left <= made_left) | beyond[:, 0]) & ((right <= made_right) | beyond[:, 1])

    # ---- what may act

    def options(self, table: Table, private: Private, secrets: Secrets) -> list[Option]:
        """The ways in which secrets may be served, those of surroundings first."""
        own = self._single(table, secrets, self.own.serving(table, private, secrets))
        if not self.windows and not self.clusters:
            return [own]
        found = [own]
        if self.clusters:
            found.append(self._together(table, secrets, own))
        if self.windows:
            found.append(self._single(table, secrets, self._windows(table, secrets)))
        return found

    def _single(self, table: Table, secrets: Secrets, which: Integers) -> Option:
        served = which != NONE
        served[served] = self.fits(which[served], *self._rooms(table, secrets.part(served)))
        return Option(Layout(secrets.part(served), which[served]), served)

    def _rooms(self, table: Table, spans: Secrets) -> tuple[Integers, Integers]:
        return spans.rooms(table)

    def _windows(self, table: Table, secrets: Secrets) -> Integers:
        """(s,) the window of each secret: of those that fit, the one for the least rooms."""
        length = secrets.last - secrets.first + 1
        if self.certificate.model.stationary and len(length):
            length = length_classes(self.certificate.model, length)
        return self._least(self.windows, secrets.rooms(table), length)

    def _least(
        self, numbers: Iterable[int], rooms: tuple[Integers, Integers], length: Integers
    ) -> Integers:
        found = np.full(len(length), NONE)
        # the last that is taken stays: those for the largest rooms that do not reach the true
        # ones first, then from the largest that do to the least
        ordered = sorted(numbers, key=lambda at: (self.listed[at].left, self.listed[at].right))
        for number in ordered:
            one = self.listed[number]
            fits = (one.length == length) & self._fits_one(number, rooms)
            short = (rooms[0] > one.left) | (rooms[1] > one.right)
            found[fits & short] = number
        for number in reversed(ordered):
            one = self.listed[number]
            found[(one.length == length) & (rooms[0] <= one.left) & (rooms[1] <= one.right)] = (
                number
            )
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

    def _together(self, table: Table, secrets: Secrets, own: Option) -> Option:
        """Clusters from the left, and the designs of their surroundings for all other secrets."""
        matches = self.matches(table, secrets)
        taken, reached = [], 0
        pairs = zip(matches.begin.tolist(), matches.end.tolist(), strict=True)
        for at, (begin, end) in enumerate(pairs):
            if begin >= reached:
                taken.append(at)
                reached = end
        chosen = np.array(taken, dtype=np.int64)
        return self.with_clusters(
            secrets, own, matches.begin[chosen], matches.end[chosen], matches.which[chosen]
        )

    def with_clusters(
        self, secrets: Secrets, own: Option, begin: Integers, end: Integers, which: Integers
    ) -> Option:
        """Some clusters, and the designs of surroundings for the secrets in none of them."""
        inside = np.zeros(secrets.count + 1, dtype=np.int64)
        np.add.at(inside, begin, 1)
        np.add.at(inside, end, -1)
        joined = np.cumsum(inside)[:-1] > 0
        numbers = np.full(secrets.count, NONE)
        numbers[own.served] = own.layout.which
        alone = np.flatnonzero(own.served & ~joined)
        begins = np.concatenate((alone, begin))
        order = np.argsort(begins, kind="stable")
        ends = np.concatenate((alone + 1, end))[order]
        spans = secrets.joined(begins[order], ends)
        layout = Layout(spans, np.concatenate((numbers[alone], which))[order])
        return Option(layout, own.served | joined)

    # ---- groups

    def groups(self, table: Table, secrets: Secrets) -> Groups:
        """Secrets with records between them on which both may act: all of a chain, where a design
        goes to its end.
        """
        rests = bool(self.sheet.rests.any())
        reach = int(self.sheet.reaches.max(initial=0))
        between = secrets.first[1:] - secrets.last[:-1] - 1
        longest = max((self.listed[one].length for one in self.clusters), default=0)
        meets = (between <= max(2 * reach, longest)) | rests
        begins = np.ones(secrets.count, dtype=bool)
        begins[1:] = (secrets.chain[1:] != secrets.chain[:-1]) | ~meets
        first = np.flatnonzero(begins)
        last = np.append(first[1:], secrets.count)[: len(first)] - 1
        chain = secrets.chain[first]
        if rests:
            ends = table.starts[chain], table.starts[chain + 1]
        else:
            ends = (
                table.row_from(chain, np.maximum(secrets.first[first] - reach, 0)),
                table.row_from(chain, secrets.last[last] + reach + 1),
            )
        return Groups(np.cumsum(begins) - 1, chain, *ends)
