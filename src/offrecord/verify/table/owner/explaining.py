"""Whether choices of options explain what is seen of chains: all chains at once.

What a chain costs is how many of its rows without a value must have been missing, infinite if no
choice explains it. Between two clusters that is a table by the options of both; along a chain such
tables are multiplied as matrices, with the least for the sum and the sum for the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.verify.table.cells import Integers, Mask
from offrecord.verify.table.owner.drawn import Drawn, Ends
from offrecord.verify.table.owner.rule import FAR, Away, Rule
from offrecord.verify.table.owner.sights import Gaps, Places
from offrecord.verify.table.owner.stops import Stops, stops_of

Floats = NDArray[np.float64]
NEVER = np.inf  #: what nothing explains
_MOST_CHOICES = 64  # ways to hold out gaps, or to join clusters, that are tried


@dataclass(frozen=True, eq=False)
class Clusters:
    """(c,) their first secret and the one after their last; options: (c, o) the numbers of left and
    right sides, −1 beyond what each may take.
    """

    first: Integers
    after: Integers
    left: Integers
    right: Integers


@dataclass(frozen=True, eq=False)
class Choices:
    """Of a table. drawn: what draws say, where there is a key."""

    rule: Rule
    places: Places
    missing: int
    drawn: Drawn | None

    def explained(self) -> Floats:
        """(chains,) what each costs by the best of all ways to hold out gaps."""
        if not self.places.chains:
            return np.zeros(0)
        may, is_open = self._may_hold()
        found = self._walked(self.places, may)
        bits = np.where(is_open, _from_the_end(is_open, self.places), FAR)
        counts = np.add.reduceat(is_open, self.places.heads)
        for choice in range(1, _MOST_CHOICES):
            again = np.flatnonzero((found > 0) & (choice < 2.0 ** np.minimum(counts, 62)))
            if not len(again):
                break
            held = may & ~((bits < 62) & ((choice >> np.minimum(bits, 62)) & 1 == 1))
            some = self.places.part(again)
            costs = self._walked(some, _part(held, self.places, again))
            found[again] = np.minimum(found[again], costs)
        return found

    def unexplained(self, chain: int) -> int:
        """The first gap of a chain, counted from its beginning, that is explained by no option of
        the usual choice.
        """
        one = self.places.part(np.array([chain]))
        held = self._may_hold()[0]
        held = _part(held, self.places, np.array([chain]))
        joins = self._joins(one, held)
        broken = np.flatnonzero(joins & (one.before.released > 0))
        if len(broken):
            return int(broken[0])
        clusters = self._clusters(one, held, joins)
        tables = self._tables(one, clusters, held)
        costs = tables[0]
        for at, table in enumerate(tables):
            costs = table if at == 0 else _times(costs[None], table[None])[0]
            if costs.min() == NEVER:
                return int(clusters.first[at])
        return one.count

    def _may_hold(self) -> tuple[Mask, Mask]:
        """(s,) whether the gap before a secret may be held out, and where it need not be."""
        places, held_out = self.places, self.rule.held_out
        may = np.zeros(places.count, dtype=bool)
        if not held_out:
            return may, may
        longest = max(held_out)
        known = np.array([size in held_out for size in range(longest + 2)])
        unsure = np.array([held_out.get(size, 0) is None for size in range(longest + 2)])
        seen = places.before
        size = np.minimum(seen.size, longest + 1)
        may = known[size] & ~places.is_head
        some = np.flatnonzero(may)
        left = self.rule.bases[places.which[some - 1], 1]
        right = self.rule.bases[places.which[some], 0]
        amid = (places.begin[some - 1] > 0) & (places.end[some] < places.length[some] - 1)
        near = seen.size[some] < np.maximum(left, right)
        near |= amid & (seen.size[some] < left + right - 1)
        rows = seen.part(some).rows(np.ones_like(some), seen.size[some])
        may[some] = near & (rows == seen.size[some])
        is_open = unsure[size]
        if self.missing and seen.view.had is None:
            is_open = is_open | (seen.released < seen.size)
        return may, may & is_open

    # ---- one way to hold out gaps

    def _joins(self, places: Places, held: Mask) -> Mask:
        """(s,) whether each joins the one before."""
        joins = np.zeros(places.count, dtype=bool)
        inner = np.flatnonzero(~places.is_head & ~held)
        left = self.rule.bases[places.which[inner - 1], 1]
        right = self.rule.bases[places.which[inner], 0]
        joins[inner] = places.before.size[inner] < np.maximum(left, right)
        return joins

    def _walked(self, places: Places, held: Mask) -> Floats:
        """(chains,) by the best options of clusters."""
        joins = self._joins(places, held)
        found = self._chosen(places, held, joins)
        lows, highs = (one.reduceat(places.which, places.heads) for one in (np.minimum, np.maximum))
        # clusters of different designs whose budgets do not go together join their neighbours
        loose = ~joins & ~places.is_head
        bits = np.where(loose, _from_the_end(loose, places), FAR)
        counts = np.add.reduceat(loose, places.heads)
        lost = (found == NEVER) & (lows < highs)
        for choice in range(1, _MOST_CHOICES):
            again = np.flatnonzero(lost & (found > 0) & (choice < 2.0 ** np.minimum(counts, 62)))
            if not len(again):
                break
            more = joins | ((bits < 62) & ((choice >> np.minimum(bits, 62)) & 1 == 1))
            some = places.part(again)
            costs = self._chosen(some, _part(held, places, again), _part(more, places, again))
            found[again] = np.minimum(found[again], costs)
        return found

    def _chosen(self, places: Places, held: Mask, joins: Mask) -> Floats:
        """(chains,) by the best options, where it is known which secrets join."""
        clusters = self._clusters(places, held, joins)
        tables = self._tables(places, clusters, held)
        lines = places.line[clusters.first]
        found = _multiplied(tables, lines, places.chains)
        broken = joins & (places.before.released > 0)
        found[places.line[broken]] = NEVER
        return found

    def _clusters(self, places: Places, held: Mask, joins: Mask) -> Clusters:
        first = np.flatnonzero(~joins)
        after = np.append(first[1:], places.count)
        following = np.minimum(after, places.count - 1)
        leaning = held[first] | ((after < places.count) & held[following])
        single = (after - first == 1) & places.is_single[first]
        ends = places.which[first], places.which[after - 1]
        classes = np.zeros(len(first), dtype=np.int64)
        options: list[list[tuple[int, int]]] = []
        seen: dict[tuple[object, ...], int] = {}
        for some, pattern in self._patterns(places, first, after):
            columns = np.column_stack((*(one[some] for one in (*ends, leaning, single)), pattern))
            rows, which = _unique_rows(columns.astype(np.int64))
            numbers = []
            for one, other, leans, alone, *away in rows.tolist():
                pairs: Away = tuple(zip(away[::2], away[1::2], strict=True))
                key = (one, other, bool(leans), bool(alone), pairs)
                if key not in seen:
                    seen[key] = len(options)
                    options.append(self.rule.allowed((one, other), pairs, bool(alone), bool(leans)))
                numbers.append(seen[key])
            classes[some] = np.array(numbers, dtype=np.int64)[which]
        most = max(map(len, options))
        table = np.full((len(options), most, 2), -1)
        for number, allowed in enumerate(options):
            table[number, : len(allowed)] = allowed
        return Clusters(first, after, table[classes, :, 0], table[classes, :, 1])

    def _patterns(
        self, places: Places, first: Integers, after: Integers
    ) -> Iterator[tuple[Integers, Integers]]:
        """Clusters of as many secrets, and how far these are from their ends, where that counts."""
        sizes = after - first if self.rule.is_known else np.ones_like(first)
        for size in np.unique(sizes).tolist():
            some = np.flatnonzero(sizes == size)
            if size == 1:
                yield some, np.zeros((len(some), 0), dtype=np.int64)
                continue
            inside = first[some][:, None] + np.arange(size)
            left = places.begin[inside] - places.begin[first[some]][:, None]
            right = places.end[after[some] - 1][:, None] - places.end[inside]
            yield some, np.stack((left, right), axis=2).reshape(len(some), -1)

    def _tables(self, places: Places, clusters: Clusters, held: Mask) -> Floats:
        """(c, o, o) what each cluster costs with the gap before it, and the chain's end after it if
        it is the last; by the option of the one before and its own.
        """
        ends = Ends.of(places, clusters.first, clusters.after)
        left, right = stops_of(self.rule, self.drawn, ends, (clusters.left, clusters.right))
        count, most = clusters.left.shape
        tables = np.full((count, most, most), NEVER)
        lines = places.line[clusters.first]
        is_first = np.diff(lines, prepend=-1) > 0
        heads = np.flatnonzero(is_first)
        tables[heads] = _at_end(places.before.part(clusters.first[heads]), left.part(heads))[
            :, None, :
        ]
        inner = np.flatnonzero(~is_first)
        bridged = held[clusters.first[inner]]
        walks = inner[~bridged]
        gaps = places.before.part(clusters.first[walks])
        tables[walks] = _between(gaps, right.part(walks - 1), left.part(walks))
        kept = inner[bridged]
        costs = _held(places.before.part(clusters.first[kept]))
        if self.drawn is not None:
            ruled_out = self.drawn.rules_out(places, clusters.first[kept])
            costs = np.where(ruled_out, NEVER, costs)
        tables[kept] = costs[:, None, None]
        tables = np.where(clusters.left[:, None, :] < 0, NEVER, tables)
        before = clusters.left[np.maximum(np.arange(count) - 1, 0)] < 0
        tables[inner] = np.where(before[inner][:, :, None], NEVER, tables[inner])
        tails = np.append(heads[1:], count) - 1
        tables[tails] += _at_end(places.after, right.part(tails))[:, None, :]
        return tables


def _part(of_secrets: Mask, places: Places, chains: Integers) -> Mask:
    """Of the secrets of some chains."""
    sizes = np.diff(np.append(places.heads, places.count))[chains]
    heads = np.cumsum(sizes) - sizes
    chosen = np.repeat(places.heads[chains] - heads, sizes) + np.arange(int(sizes.sum()))
    return of_secrets[chosen]


def _from_the_end(chosen: Mask, places: Places) -> Integers:
    """(s,) how many of the chosen ones come after each in its chain."""
    total = np.cumsum(chosen)
    last = np.append(places.heads[1:], places.count) - 1
    return np.asarray(total[last][places.line] - total)


def _unique_rows(rows: Integers) -> tuple[Integers, Integers]:
    """Different rows, and which of them each is."""
    rows = np.ascontiguousarray(rows)
    keys = rows.view(np.dtype((np.void, rows.shape[1] * 8))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], which.ravel()


# ---- what a stretch costs: rows without a value that must have been missing


def _between(gaps: Gaps, left: Stops, right: Stops) -> Floats:
    """(g, o, o) of gaps between two walks."""
    size, first, last, released = (
        one[:, None, None] for one in (gaps.size, gaps.first, gaps.last, gaps.released)
    )
    ends, others = left.last[:, :, None], right.last[:, None, :]
    far = (left.alone[:, :, None] | right.alone[:, None, :]) & (size < ends + others - 1)
    far |= (ends >= FAR) | (others >= FAR)
    apart, facing = size + 1 - others, size + 1 - ends
    stop, other = left.most[:, :, None], right.most[:, None, :]
    meet = (stop > apart) | (other > facing)
    silent = np.where(meet, 0, gaps.rows(*np.broadcast_arrays(stop, size + 1 - other)))
    shape = (len(gaps.size), left.sides.shape[1], right.sides.shape[1])
    stop = left.within(np.broadcast_to(np.minimum(first, apart), shape), 2)
    other = right.within(np.broadcast_to(np.minimum(size + 1 - last, facing), shape), 1)
    told = (gaps.rows(stop, size + 1 - other) - released).astype(np.float64)
    told[(stop == 0) | (other == 0)] = NEVER
    return np.where(far, NEVER, np.where(released == 0, silent, told))


def _at_end(gaps: Gaps, side: Stops) -> Floats:
    """(g, o) between a cluster and the chain's end; distances are from the cluster."""
    size, first, released = (one[:, None] for one in (gaps.size, gaps.first, gaps.released))
    most = side.most
    silent = np.where(most > size, 0, gaps.rows(*np.broadcast_arrays(most, size)))
    # a walk that stops beyond the chain's end releases nothing of it
    nearest = np.minimum(first, size)
    stop = side.within(np.broadcast_to(nearest, most.shape)[:, :, None], 2)[:, :, 0]
    told = (gaps.rows(*np.broadcast_arrays(stop, size)) - released).astype(np.float64)
    told[stop == 0] = NEVER
    return np.where(size <= 0, 0.0, np.where(released == 0, silent, told))


def _held(gaps: Gaps) -> Floats:
    """(g,) of gaps that are held out, of which one stretch is released, or nothing."""
    missing = gaps.last - gaps.first + 1 - gaps.released
    return np.where((gaps.released == 0) | (missing == 0), 0.0, NEVER)


# ---- tables along chains


def _times(one: Floats, other: Floats) -> Floats:
    """Products of matrices (n, o, o), the least of sums."""
    found = np.full(one.shape, NEVER)
    for middle in range(one.shape[2]):
        np.minimum(found, one[:, :, middle, None] + other[:, None, middle, :], out=found)
    return found


def _multiplied(tables: Floats, lines: Integers, chains: int) -> Floats:
    """(chains,) the least entry of the product of each chain's tables: neighbours together, until
    one is left of each.
    """
    while len(lines) > chains:
        heads = np.flatnonzero(np.diff(lines, prepend=-1))
        rank = np.arange(len(lines)) - np.repeat(heads, np.diff(np.append(heads, len(lines))))
        keep = np.flatnonzero(rank % 2 == 0)
        nexts = np.minimum(keep + 1, len(lines) - 1)
        paired = (lines[nexts] == lines[keep]) & (keep + 1 < len(lines))
        merged = tables[keep]
        merged[paired] = _times(tables[keep[paired]], tables[nexts[paired]])
        tables, lines = merged, lines[keep]
    return np.asarray(tables.min(axis=(1, 2)))
