"""What the owner's decider redacts, exactly: the decider itself, taken through every branch.

Draws are never made. Whoever asks for one gets the number of a question, and what it is compared
with decides: a threshold inside the interval in which the draw is known to lie parts it in two, one
for this chain and one for another that is decided later. So all sequences of values and all their
branches are chains of one table, and each comes out with its exact probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from unittest import mock

import numpy as np

from offrecord.mechanisms.blocks import Block
from offrecord.mechanisms.owner.deciding import bridging, completion, walking
from offrecord.mechanisms.owner.deciding import decider as deciding
from offrecord.models.records import MISSING, Chains
from offrecord.release.coins import ALWAYS
from offrecord.tables.secrets import Private, secrets_of

WHOLE = 1 << 64
_AT_ONCE = 4000  # chains that are decided together


@dataclass(frozen=True, eq=False)
class Shape:
    """Positions of a chain: length in places, rows (those that have one), null ones among them,
    private ones, and their order values.
    """

    length: int
    rows: tuple[int, ...]
    nulls: frozenset[int]
    private: tuple[int, ...]
    protect: str
    order: dict[int, int]

    @cached_property
    def observed(self):
        """The places whose values are in the table."""
        return [p for p in self.rows if p not in self.nulls]

    def block(self, tables, which=None):
        """One chain for each of the tables {place: value}, after another that is none of it."""
        count, size = len(tables), len(self.rows)
        codes = np.full((count, size), MISSING, dtype=np.int8)
        for number, values in enumerate(tables):
            for at, place in enumerate(self.rows):
                if place not in self.nulls:
                    codes[number, at] = values[place]
        starts = np.concatenate(([0, 2], 2 + size * np.arange(1, count + 1)))
        order = [self.order[p] for p in self.rows]
        steps = None
        if size < self.length:
            steps = np.concatenate(([0, 1], np.tile(self.rows, count))).astype(np.int64)
        chains = Chains(
            starts,
            np.concatenate((np.array([0, 1], dtype=np.int8), codes.ravel())),
            np.concatenate(([0, 1], np.tile(order, count))).astype(np.int64),
            False,
            steps,
        )
        mine = len(self.private)
        private = Private(
            np.repeat(np.arange(1, count + 1), mine),
            np.tile(np.array(self.private, dtype=np.int64), count),
            np.tile([self.order.get(p, 7) for p in self.private], count).astype(np.int64),
        )
        secrets = secrets_of(chains, private, self.protect)
        taken = np.zeros(secrets.count, dtype=np.int64)
        if which is not None:
            taken = np.array(
                [
                    which(a, b)
                    for a, b in zip(secrets.first.tolist(), secrets.last.tolist(), strict=True)
                ]
            )
        return Block(chains, slice(2, int(starts[-1])), secrets, taken)

    @property
    def protected(self):
        """The private places of each secret."""
        secrets = self.block([dict.fromkeys(self.rows, 0)]).secrets
        both = zip(secrets.first.tolist(), secrets.last.tolist(), strict=True)
        return [[p for p in self.private if a <= p <= b] for a, b in both]


@dataclass
class _Branch:
    """What is known so far of one table's draws: intervals, and values drawn for what is absent."""

    table: int
    draws: dict = field(default_factory=dict)
    values: dict = field(default_factory=dict)

    def but(self, draws=(), values=()):
        return _Branch(self.table, {**self.draws, **dict(draws)}, {**self.values, **dict(values)})

    @property
    def chance(self):
        inside = 1
        for low, high in self.draws.values():
            inside *= high - low
        found = Fraction(inside, WHOLE ** len(self.draws))
        for _, likely in self.values.values():
            found *= likely
        return found


class _Oracle:
    """Answers draws with the numbers of questions, comparisons by what is known or by parting."""

    def __init__(self, branches):
        self.branches, self.later = branches, []
        self.questions, self.absent = [], []

    def draw(self, chain, order, purpose=b"offrecord/coins", counter=0):
        chain = np.asarray(chain)
        counters = np.broadcast_to(counter, chain.shape).tolist()
        asked = list(zip(chain.tolist(), np.asarray(order).tolist(), counters, strict=True))
        assert all(1 <= one <= len(self.branches) for one, _, _ in asked)
        keys = [(one, (purpose, value, count)) for one, value, count in asked]
        if purpose == completion.PURPOSE:
            if not counters or counters[0] % 2 == 0:
                self.absent = keys
            return np.zeros(len(keys), dtype=np.uint64)
        assert len(set(keys)) == len(keys)  # no two of them share a draw
        first = len(self.questions)
        self.questions += keys
        return np.arange(first, len(self.questions), dtype=np.uint64)

    def redacts(self, draws, limits):
        found = np.empty(len(draws), dtype=bool)
        for at, (number, given) in enumerate(zip(draws.tolist(), limits.tolist(), strict=True)):
            chain, key = self.questions[number]
            branch = self.branches[chain - 1]
            limit = WHOLE if given == int(ALWAYS) else given
            low, high = branch.draws.get(key, (0, WHOLE))
            if low < limit < high:
                self.later.append(branch.but(draws={key: (limit, high)}))
                high = limit
            branch.draws[key] = low, high
            found[at] = high <= limit
        return found

    def picked(self, laws, _):
        assert len(laws) == len(self.absent)
        found = np.empty(len(laws), dtype=np.int64)
        for at, ((chain, key), law) in enumerate(zip(self.absent, laws.tolist(), strict=True)):
            branch = self.branches[chain - 1]
            if key not in branch.values:
                likely = _dyadic(law)
                self.later += [branch.but(values={key: one}) for one in likely[1:]]
                branch.values[key] = likely[0]
            found[at] = branch.values[key][0]
        return found


def _dyadic(law):
    """[(value, probability)] in units of 2⁻⁶⁴."""
    exact = [Fraction(p) for p in law]
    units = [round(p / sum(exact) * WHOLE) for p in exact]
    units[int(np.argmax(law))] += WHOLE - sum(units)
    return [(value, Fraction(p, WHOLE)) for value, p in enumerate(units) if p]


def whole(chances):
    """Fractions as whole numbers over one denominator."""
    common = math.lcm(*(one.denominator for one in chances))
    return [one.numerator * (common // one.denominator) for one in chances]


def laws_of_masks(decider, shape, tables, which=None):
    """For each table {redacted places: probability}, in whole numbers over one denominator, and the
    branches that can be tried with real draws, each with what it redacts.
    """
    found = [{} for _ in tables]
    tried = []
    waiting = [_Branch(number) for number in range(len(tables))]
    while waiting:
        now, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
        oracle = _Oracle(now)
        block = shape.block([tables[branch.table] for branch in now], which)
        with (
            mock.patch.object(walking, "redacts", oracle.redacts),
            mock.patch.object(bridging, "redacts", oracle.redacts),
            mock.patch.object(completion, "picked", oracle.picked),
            mock.patch.object(deciding, "picked", oracle.picked),
            mock.patch.object(walking, "_CELLS", 1),  # a level at a time: fewer branches
        ):
            redacted = decider.decide(block, oracle.draw).redacted
        for branch, gone in zip(now, redacted.reshape(len(now), -1), strict=True):
            places = frozenset(p for p, is_gone in zip(shape.rows, gone, strict=True) if is_gone)
            mine = found[branch.table]
            mine[places] = mine.get(places, 0) + branch.chance
            if not branch.values:
                tried.append((branch, places))
        waiting += oracle.later
    assert all(sum(masks.values()) == 1 for masks in found)
    chances = iter(whole([one for masks in found for one in masks.values()]))
    return [{places: next(chances) for places in masks} for masks in found], tried


def check_with_real_draws(decider, shape, tables, tried, rng, which=None):
    """Draws anywhere inside their intervals decide the same, nothing being replaced."""
    some = [tried[at] for at in rng.permutation(len(tried))[:60]]
    if not some:
        return
    block = shape.block([tables[branch.table] for branch, _ in some], which)

    def draw(chain, order, purpose=b"", counter=0):
        counters = np.broadcast_to(counter, chain.shape).tolist()
        found = []
        for one, value, count in zip(chain.tolist(), order.tolist(), counters, strict=True):
            low, high = some[one - 1][0].draws.get((purpose, value, count), (0, WHOLE))
            inside = int(rng.integers(low, high - 1, dtype=np.uint64, endpoint=True))
            found.append((low, inside, high - 1)[int(rng.integers(3))])
        return np.array(found, dtype=np.uint64)

    redacted = decider.decide(block, draw).redacted.reshape(len(some), -1)
    for (_, places), gone in zip(some, redacted, strict=True):
        assert places == {p for p, is_gone in zip(shape.rows, gone, strict=True) if is_gone}


# ---- models


def joint(shape, kernels, start, order=1):
    """[(values, probability)] of all sequences, in whole numbers over one denominator. kernels: one
    for each step, as nested fractions, by the last `order` values; start: of the first `order`
    values, flat.
    """
    k = round(len(start) ** (1 / order))
    found = []
    for values in product(range(k), repeat=shape.length):
        weight = _first(values[:order], start, k)
        for t in range(order, shape.length):
            if not weight:
                break
            row = kernels[t - order]
            for v in values[t - order : t]:
                row = row[v]
            weight *= row[values[t]]
        if weight:
            found.append((values, Fraction(weight)))
    weights = whole([weight for _, weight in found])
    return [(values, weight) for (values, _), weight in zip(found, weights, strict=True)]


def _first(values, start, k):
    """The probability of a sequence's first values."""
    low, high = 0, len(start)
    for value in values:
        width = (high - low) // k
        low, high = low + value * width, low + (value + 1) * width
    return sum(start[low:high])


def worst_ratio(shape, law, masks, places, told=()):
    """The largest ratio of likelihoods of an output under two values of some places, told together
    with the values of others; law: [(values, probability)], masks: by observed values.
    """
    totals, seen = {}, {}
    for values, weight in law:
        secret = tuple(values[p] for p in places)
        totals[secret] = totals.get(secret, 0) + weight
        known = tuple(values[p] for p in told)
        for redacted, chance in masks[tuple(values[p] for p in shape.observed)].items():
            shown = tuple(None if p in redacted else values[p] for p in shape.observed)
            mine = seen.setdefault((shown, known), {})
            mine[secret] = mine.get(secret, 0) + weight * chance
    worst = Fraction(1)
    for mine in seen.values():
        if any(secret not in mine for secret in totals):
            return math.inf
        given = [(mine[secret], total) for secret, total in totals.items()]
        most = least = given[0]
        for chance, total in given[1:]:
            most = (chance, total) if chance * most[1] > most[0] * total else most
            least = (chance, total) if chance * least[1] < least[0] * total else least
        top, below = most[0] * least[1], most[1] * least[0]
        if top * worst.denominator > below * worst.numerator:
            worst = Fraction(top, below)
    return worst
