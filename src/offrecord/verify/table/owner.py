"""Whether the redacted stretches of a table follow owner's designs: the rule `stopping`.

Where walks stopped is seen by what is released. Which option a cluster took is not, so a chain is a
problem only if no choice of options explains all of its stretches: each stop at a level of a side
that its cluster may take, gaps between clusters released if each stop leaves the last level of the
other walk, everything beyond the last levels released.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from offrecord.release.certificate import (
    Certificate,
    GapStopping,
    OwnerDesigns,
    Stopping,
    spelled_thresholds,
)
from offrecord.verify.table.cells import EMPTY, Integers, Mask
from offrecord.verify.table.channels import Channels
from offrecord.verify.table.coins import Coins
from offrecord.verify.table.found import Found
from offrecord.verify.table.listed import Private
from offrecord.verify.table.rows import Table
from offrecord.verify.table.secrets import Joins, Secrets, joins_of
from offrecord.verify.table.serving import Serving

_NEVER = math.inf  # what no choice explains
_WORTH = 0.25  # records that a gap releases by expectation, to be held out
_NEAR = 1e-6  # to that: it may be held out or not
_MOST_CHOICES = 64  # ways to hold out gaps, or to join clusters, that are tried


class Side(NamedTuple):
    """levels: at which a walk may stop. last: of them, infinite for a closed side. alone: both
    sides are taken in turn, far from all others.
    """

    levels: tuple[int, ...]
    last: float
    alone: bool = False


Option: TypeAlias = tuple[Side, Side]
_CLOSED = Side((), math.inf), Side((), math.inf)  # everything is redacted, which tells nothing


class Seen(NamedTuple):
    """What is seen between two clusters, or a cluster and the chain's end.

    size: how many tuples it has, of one record for an order of 1. first, last: how far the first
    and the last tuple that is released is from the left, 0 if none is; at a chain's end, from the
    cluster. released: how many records are. extra: one less than the order. places: the
    distances of its rows, None if no place is without one.
    """

    size: int
    first: int
    last: int
    released: int
    extra: int
    places: tuple[int, ...] | None

    def rows(self, first: int, last: int) -> int:
        """How many rows the tuples from one distance to another hold."""
        if last < first:
            return 0
        if self.places is None:
            return last + self.extra - first + 1
        return bisect_right(self.places, last + self.extra) - bisect_right(self.places, first - 1)


class Cluster(NamedTuple):
    """Secrets first … after − 1 of a chain, from a place to another."""

    first: int
    after: int
    begin: int
    end: int


class Rule:
    """What a certificate says about where walks may stop."""

    def __init__(self, certificate: Certificate) -> None:
        designs, model = certificate.designs, certificate.model
        assert isinstance(designs, OwnerDesigns)
        self.certificate, self.designs, self.model = certificate, designs, model
        self.extra = model.order - 1
        self.is_known = (
            model.stationary and model.order == 1 and model.set is None and model.shows is None
        )

    @cached_property
    def channels(self) -> Channels:
        """What is told inside clusters."""
        return Channels(self.model)

    @property
    def has_pairs(self) -> bool:
        """Whether both sides may be taken in turn."""
        return self.model.stationary and self.model.shows is None

    @cache  # noqa: B019 - a rule lives as long as its check
    def options(self, number: int) -> list[tuple[Option, tuple[float, float]]]:
        """All options of a stopping, and their budgets."""
        found = []
        stopping = self.designs.stoppings[number]
        for numbers in stopping.options:
            left, right = (stopping.sides[one] for one in numbers)
            found.append(((_side(left.levels), _side(right.levels)), (left.budget, right.budget)))
        return found

    def base(self, number: int) -> Option:
        """The sides that decide which secrets join."""
        return self.options(number)[0][0]

    def allowed(self, cluster: Cluster, secrets: _Chain, *, leaning: bool) -> list[Option]:
        """What a cluster may take. leaning: a gap beside it is held out."""
        inside = range(cluster.first, cluster.after)
        away = tuple(
            (secrets.begin[i] - cluster.begin, cluster.end - secrets.end[i]) for i in inside
        )
        ends = secrets.which[cluster.first], secrets.which[cluster.after - 1]
        if leaning:
            return [self.base(ends[0])]
        is_single = len(away) == 1 and secrets.is_single[cluster.first]
        return self._allowed(ends, away if self.is_known else (), is_single)

    @cache  # noqa: B019
    def _allowed(
        self, ends: tuple[int, int], away: tuple[tuple[int, int], ...], is_single: bool
    ) -> list[Option]:
        """By the stoppings of its first and last secret, and how far each is from its ends."""
        one, other = ends
        stopping = self.designs.stoppings[one]
        both = [*self.options(one), (_CLOSED, (0.0, 0.0))]
        if one != other:
            right = [*self.options(other), (_CLOSED, (0.0, 0.0))]
            both = [((a[0], b[1]), (s[0], t[1])) for a, s in both for b, t in right]
        found = []
        for option, budgets in both:
            if sum(budgets) <= stopping.epsilon or self._keeps(away, budgets):
                found.append(option)
        if is_single and one == other and stopping.pair is not None and self.has_pairs:
            found.append(_pair(stopping))
        return list(dict.fromkeys(found))

    def _keeps(self, away: tuple[tuple[int, int], ...], budgets: tuple[float, float]) -> bool:
        """Whether larger budgets keep every secret of a cluster within ε."""
        if not self.is_known or len(away) < 2:
            return False
        return self.channels.keeps(sorted(set(away)), budgets, self.designs.epsilon)

    @cached_property
    def held_out(self) -> dict[int, bool | None]:
        """The lengths of gaps that are held out; None: perhaps."""
        if not self.is_known or len(self.designs.stoppings) != 1:
            return {}
        found: dict[int, bool | None] = {}
        for gap in self.designs.stoppings[0].gaps:
            expected = _expected(gap, self.certificate)
            if abs(expected - _WORTH) < _NEAR:
                found[gap.length] = None
            elif expected > _WORTH:
                found[gap.length] = True
        return found


def _side(levels: Sequence[int]) -> Side:
    return Side(tuple(levels), levels[-1] if levels else math.inf)


def _pair(stopping: Stopping) -> Option:
    """Both sides in turn, the second by any label."""
    pair = stopping.pair
    assert pair is not None
    seconds = [stopping.sides[number].levels for number in set(pair.seconds)]
    levels = sorted({level for one in seconds for level in one})
    last = max(one[-1] if one else math.inf for one in seconds)
    first, second = Side(tuple(pair.levels), pair.levels[-1], True), Side(tuple(levels), last, True)
    return (first, second) if pair.first == "left" else (second, first)


def _expected(gap: GapStopping, certificate: Certificate) -> float:
    """How many records of a gap that is held out are released by expectation."""
    P, start = np.array(certificate.model.transition), np.array(certificate.model.start)
    k, n = len(P), gap.length
    stop = np.array(spelled_thresholds(gap.stop), dtype=np.float64).reshape(-1, k, k, k, k, 2)
    below = np.maximum.accumulate(np.minimum(stop / 2.0**64, 1.0), axis=-1)
    states = [(first, first + n - 1 - d) for d in range(n) for first in range(1, d + 2)]
    held = {state: np.zeros((k, k, k, k)) for state in states}
    held[1, n] = P[:, None, :, None] * P.T[None, :, None, :]
    expected = 0.0
    for (first, last), limits in zip(states, below, strict=True):
        H, release, lose = held[first, last], limits[..., 0], limits[..., 1]
        between = np.linalg.matrix_power(P, last - first)
        mass = np.einsum("x,xbij,ij->", start, H * release, between)
        expected += (last - first + 1) * float(mass)
        if first < last:
            held[first + 1, last] += np.einsum("xbij,ia->xbaj", H * (lose - release), P)
            held[first, last - 1] += np.einsum("xbij,aj->xbia", H * (1 - lose), P)
    return expected


# ---- what a stretch costs: rows without a value that must have been missing


def _between(seen: Seen, left: Side, right: Side) -> float:
    """Of a gap between two walks."""
    size = seen.size
    if (left.alone or right.alone) and size < left.last + right.last - 1:
        return _NEVER
    if math.inf in (left.last, right.last):
        return _NEVER
    apart = size + 1 - int(right.last), size + 1 - int(left.last)
    if seen.released == 0:
        if left.last > apart[0]:
            return 0
        return seen.rows(int(left.last), apart[0])
    stop = _largest(left, min(seen.first, apart[0]))
    other = _largest(right, min(size + 1 - seen.last, apart[1]))
    if stop is None or other is None:
        return _NEVER
    return seen.rows(stop, size + 1 - other) - seen.released


def _at_end(seen: Seen, side: Side) -> float:
    """Between a cluster and the chain's end; distances are from the cluster."""
    if seen.size <= 0:
        return 0 if seen.released == 0 else _NEVER
    if seen.released == 0:
        return 0 if side.last > seen.size else seen.rows(int(side.last), seen.size)
    stop = _largest(side, seen.first)
    return _NEVER if stop is None else seen.rows(stop, seen.size) - seen.released


def _held(seen: Seen) -> float:
    """Of a gap that is held out, of which one stretch is released, or nothing."""
    missing = seen.last - seen.first + 1 - seen.released
    return 0 if seen.released == 0 or missing == 0 else _NEVER


def _largest(side: Side, most: float) -> int | None:
    """The largest level up to a distance."""
    at = bisect_right(side.levels, most)
    return side.levels[at - 1] if at else None


# ---- chains


@dataclass(frozen=True, eq=False)
class _Chain:
    """The secrets of a chain, in tuples of an order, and what is seen around them.

    which: their stoppings. is_single: they have one tuple. length: of the chain. seen: of its
    beginning, the gaps between secrets, and its end.
    """

    number: int
    begin: list[int]
    end: list[int]
    which: list[int]
    is_single: list[bool]
    length: int
    seen: list[Seen]

    @property
    def count(self) -> int:
        return len(self.begin)


class _Unserved(NamedTuple):
    """The first secret of a chain that no design serves."""

    chain: int
    place: int


class Explained(NamedTuple):
    """cost: rows that must have been missing, infinite if nothing explains a chain. gap: then the
    first that is not explained.
    """

    cost: float
    gap: int


def _explain(rule: Rule, chain: _Chain, missing: int) -> Explained:
    """By the best of all ways to hold out gaps."""
    open_: list[list[bool]] = []
    for at in range(1, chain.count):
        open_.append(_may_hold(rule, chain, at, missing))
    best: Explained | None = None
    for done, held in enumerate(product(*open_)):
        if done >= _MOST_CHOICES or (best is not None and best.cost == 0):
            break
        one = _walked(rule, chain, held)
        if best is None or one.cost < best.cost:
            best = one
    assert best is not None
    return best


def _may_hold(rule: Rule, chain: _Chain, at: int, missing: int) -> list[bool]:
    """Whether the gap before a secret is held out, if it may be."""
    seen, held = chain.seen[at], rule.held_out
    if seen.size <= 0 or held.get(seen.size, False) is False:
        return [False]
    left, right = rule.base(chain.which[at - 1])[1].last, rule.base(chain.which[at])[0].last
    amid = chain.begin[at - 1] > 0 and chain.end[at] < chain.length - 1
    if not (seen.size < max(left, right) or (amid and seen.size < left + right - 1)):
        return [False]
    rows = seen.rows(1, seen.size)
    if rows < seen.size:
        return [False]
    is_open = held[seen.size] is None or (missing > 0 and seen.released < rows)
    return [True, False] if is_open else [True]


def _walked(rule: Rule, chain: _Chain, held: Sequence[bool]) -> Explained:
    """By the best options of clusters."""
    joins = [
        not is_held and seen.size < max(rule.base(a)[1].last, rule.base(b)[0].last)
        for is_held, seen, a, b in zip(
            held, chain.seen[1:-1], chain.which[:-1], chain.which[1:], strict=True
        )
    ]
    found = _chosen(rule, chain, held, joins)
    if found.cost < _NEVER or len(set(chain.which)) == 1:
        return found
    # clusters of different designs whose budgets do not go together join their neighbours
    loose = [at for at, join in enumerate(joins) if not join]
    for done, more in enumerate(product((False, True), repeat=len(loose))):
        if done >= _MOST_CHOICES:
            break
        again = list(joins)
        for at, join in zip(loose, more, strict=True):
            again[at] = join
        other = _chosen(rule, chain, held, again)
        if other.cost < found.cost:
            found = other
    return found


def _chosen(rule: Rule, chain: _Chain, held: Sequence[bool], joins: Sequence[bool]) -> Explained:
    clusters = list(_clusters(chain, joins))
    for at, join in enumerate(joins, start=1):
        if join and chain.seen[at].released:
            return Explained(_NEVER, at)
    costs: dict[Option, float] = {}
    for number, cluster in enumerate(clusters):
        bridged = cluster.first > 0 and held[cluster.first - 1]
        leaning = bridged or (cluster.after < chain.count and held[cluster.after - 1])
        options = rule.allowed(cluster, chain, leaning=leaning)
        seen = chain.seen[cluster.first]
        before, costs = costs, {}
        for option in options:
            if number == 0:
                costs[option] = _at_end(seen, option[0])
            else:
                costs[option] = min(
                    cost + (_held(seen) if bridged else _between(seen, other[1], option[0]))
                    for other, cost in before.items()
                )
        if min(costs.values()) == _NEVER:
            return Explained(_NEVER, cluster.first)
    end = chain.seen[-1]
    total = min(cost + _at_end(end, option[1]) for option, cost in costs.items())
    return Explained(total, chain.count)


def _clusters(chain: _Chain, joins: Sequence[bool]) -> Iterator[Cluster]:
    first = 0
    for at in range(1, chain.count + 1):
        if at == chain.count or not joins[at - 1]:
            yield Cluster(first, at, chain.begin[first], chain.end[at - 1])
            first = at


# ---- a table


def check_owner(
    table: Table,
    private: Private,
    certificate: Certificate,
    coins: Coins | None,
    found: Found,
) -> None:
    """Compare redacted stretches with where walks may stop."""
    rule = Rule(certificate)
    joins, also = joins_of(table, private, certificate, found)
    both = [joins.secrets(private, one) for one in _tried(joins, also)]
    best: dict[int, tuple[Explained, _Chain | _Unserved | None]] = {}
    for secrets in both:
        _keep_best(best, _explained(rule, table, private, secrets))
    open_ = 0
    for number, mine, ways in joins.mixed(private) if also is None else ():
        if not ways:  # too many
            open_ += 1
            best.pop(number, None)
        elif number in best and best[number][0].cost:
            for secrets in ways:
                _keep_best(best, _explained(rule, table, mine, secrets))
    _check_elsewhere(table, private, certificate, found)
    total = _elsewhere(table, private)
    lost, unserved = [], []
    for explained, chain in best.values():
        if explained.cost < _NEVER:
            total += int(explained.cost)
        elif isinstance(chain, _Unserved):
            unserved.append(table.told(chain.chain, chain.place))
        elif chain is not None:
            lost.append(_told(table, chain, explained))
        else:
            lost.append("a chain that is too short for a tuple of its model's order")
    says = "what is redacted there, or further to the left, is explained by no option"
    found.wrong_at(lost, len(lost), says)
    found.wrong_at(unserved, len(unserved), "a secret that no design of the certificate serves")
    _check_kept(table, private, certificate, found)
    missing = certificate.counts.missing
    if total > missing:
        found.wrong(
            f"{total:,} rows have no value though no walk redacts them, but counts.missing says"
            f" {missing:,}"
        )
    _say(coins, found)
    if also is None:
        found.not_checked.append(
            "Whether private records with nothing but empty rows between them are one secret cannot"
            " be told: either must explain what is redacted."
            + (
                f" Of {open_:,} chains with too many of these, nothing was checked."
                if open_
                else ""
            )
        )


def _tried(joins: Joins, also: Mask | None) -> list[Mask]:
    return [also] if also is not None else [np.zeros_like(joins.perhaps), joins.perhaps]


def _keep_best(
    best: dict[int, tuple[Explained, _Chain | _Unserved | None]],
    chains: Iterable[tuple[int, Explained, _Chain | _Unserved | None]],
) -> None:
    for number, explained, chain in chains:
        if number not in best or explained.cost < best[number][0].cost:
            best[number] = explained, chain


def _say(coins: Coins | None, found: Found) -> None:
    found.checked.append(
        "Every redacted stretch: walks stop at levels of sides that their clusters may take, and"
        " what lies beyond the last levels is released, but for what was missing."
    )
    found.not_checked.append(
        "Which option a cluster took is not told: one of those that it may take must explain what"
        " is redacted."
    )
    found.not_checked.append(
        "Draws: those of walks depend on values that are not released."
        if coins is not None
        else "Draws: they need the publisher's key."
    )


def _told(table: Table, chain: _Chain, explained: Explained) -> str:
    """Where the first stretch is that is not explained."""
    at = min(explained.gap, chain.count - 1)
    where = "before" if explained.gap < chain.count else "after"
    return f"{where} the secret at {table.told(chain.number, chain.begin[at])}"


def _check_kept(table: Table, private: Private, certificate: Certificate, found: Found) -> None:
    """Kept cells are empty beside a redacted value, though not beside one that was missing."""
    if table.kept is None or table.columns.keep_all:
        return
    told = (table.codes == EMPTY) & table.kept
    told[private.row[private.there]] = False
    rows = np.flatnonzero(told)
    if len(rows) > certificate.counts.missing:
        says = "a kept cell beside a value that is redacted, or there are more missing than said"
        found.wrong_at(table.named(rows), len(rows), says)


def _elsewhere(table: Table, private: Private) -> int:
    """How many rows of chains without a secret have no value."""
    empty = table.codes == EMPTY
    by_chain = np.add.reduceat(empty, table.starts[:-1], dtype=np.int64)
    by_chain[np.unique(private.chain)] = 0
    return int(by_chain.sum())


def _check_elsewhere(
    table: Table, private: Private, certificate: Certificate, found: Found
) -> None:
    if certificate.counts.missing or not _elsewhere(table, private):
        return
    empty = table.codes == EMPTY
    for chain in np.unique(private.chain).tolist():
        empty[table.starts[chain] : table.starts[chain + 1]] = False
    rows = np.flatnonzero(empty)
    found.wrong_at(table.named(rows), len(rows), "without a value, though nothing redacts it")


def _explained(
    rule: Rule, table: Table, private: Private, secrets: Secrets
) -> Iterator[tuple[int, Explained, _Chain | _Unserved | None]]:
    """Each chain with secrets, and how it is explained."""
    serving = Serving(rule.certificate, range(len(rule.designs.designs)))
    which = serving.serving(table, private, secrets)
    stoppings = np.array([one.stopping for one in rule.designs.designs] + [-1])[which]
    begins = np.flatnonzero(np.diff(secrets.chain, prepend=-1))
    ends = np.append(begins[1:], secrets.count)
    seen = _Seen(table, rule.extra)
    missing = rule.certificate.counts.missing
    cached: dict[tuple[object, ...], Explained] = {}
    for begin, end in zip(begins.tolist(), ends[: len(begins)].tolist(), strict=True):
        number = int(secrets.chain[begin])
        if np.any(stoppings[begin:end] < 0):
            at = begin + int(np.argmax(stoppings[begin:end] < 0))
            yield number, Explained(_NEVER, 0), _Unserved(number, int(secrets.first[at]))
            continue
        chain = seen.chain(secrets, begin, end, stoppings)
        if chain is None:
            yield number, Explained(_NEVER if seen.released(number) else 0, 0), None
            continue
        key = (*chain.begin, *chain.end, *chain.which, *chain.is_single, chain.length, *chain.seen)
        if key not in cached:
            cached[key] = _explain(rule, chain, missing)
        yield number, cached[key], chain


class _Seen:
    """What is seen of chains. extra: one less than the order."""

    def __init__(self, table: Table, extra: int) -> None:
        self.table, self.extra = table, extra
        self.valued: Integers = np.flatnonzero(table.codes != EMPTY)

    def released(self, chain: int) -> bool:
        """Whether anything of a chain is."""
        ends = np.searchsorted(self.valued, self.table.starts[chain : chain + 2])
        return bool(ends[1] > ends[0])

    def chain(self, secrets: Secrets, begin: int, end: int, stoppings: Integers) -> _Chain | None:
        """The secrets of a chain; None if it is too short for a tuple."""
        number = int(secrets.chain[begin])
        length = int(self.table.lengths[number]) - self.extra
        if length <= 0:
            return None
        first, last = secrets.first[begin:end], secrets.last[begin:end]
        ends = np.clip(last - self.extra, 0, length - 1)
        begins = np.minimum(first, ends)
        places = begins.tolist(), ends.tolist()
        single = (begins == ends).tolist()
        sights = [self._sight(number, *gap) for gap in _gaps(*places, length)]
        return _Chain(number, *places, stoppings[begin:end].tolist(), single, length, sights)

    def _sight(self, chain: int, before: int, after: int, backwards: bool) -> Seen:
        """Of the tuples between two places; backwards: distances are from the right."""
        table, extra = self.table, self.extra
        start, stop = table.starts[chain : chain + 2].tolist()
        size, farthest = after - before - 1, after - 1 + extra
        if size <= 0:
            return Seen(max(size, 0), 0, 0, 0, extra, None)
        if table.steps is None:
            low, high = start + before + 1, min(start + farthest + 1, stop)
        else:
            own = table.steps[start:stop]
            low = start + int(np.searchsorted(own, before + 1))
            high = start + int(np.searchsorted(own, farthest, side="right"))
        places = None
        if high - low < farthest - before:
            assert table.steps is not None
            places = tuple(self._away(table.steps[low:high], before, after, backwards))
        begin, end = np.searchsorted(self.valued, (low, high)).tolist()
        if begin == end:
            return Seen(size, 0, 0, 0, extra, places)
        ends = table.place_of(self.valued[[begin, end - 1]])
        first, last = self._away(ends, before, after, backwards)
        return Seen(size, first, last - extra, end - begin, extra, places)

    def _away(self, places: Integers, before: int, after: int, backwards: bool) -> list[int]:
        """How far records are from the tuple on one side, the nearest first."""
        if not backwards:
            return list((places - before).tolist())
        return list((after + self.extra - places)[::-1].tolist())


def _gaps(begins: list[int], ends: list[int], length: int) -> Iterator[tuple[int, int, bool]]:
    """The beginning of a chain, what lies between its secrets, and its end."""
    yield -1, begins[0], True
    for before, after in zip(ends[:-1], begins[1:], strict=True):
        yield before, after, False
    yield ends[-1], length, False
