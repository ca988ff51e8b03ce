"""The owner's mechanism in plain words: one chain, record by record, nothing vectorised.

What it needs from outside it asks for, so that the same words decide a table with real coins, or
are taken through every branch there is with its exact probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations, product

import numpy as np

from definition import exact_stationary
from offrecord.mechanisms.owner.stopping import StoppingSide

ALWAYS = 2**64 - 1
CLOSED = 2**62
FIRST, SECOND = 0, 1


# ---- what is asked for


@dataclass(frozen=True)
class Look:
    """The value of the record at a place."""

    place: int


@dataclass(frozen=True)
class Coin:
    """Which of several outcomes: the first whose limit lies above a draw, or none (the last one).

    limits: cumulated, in units of 2⁻⁶⁴.
    """

    limits: tuple[int, ...]
    place: int
    sign: int
    level: int


@dataclass(frozen=True)
class Absent:
    """A value for a place that has none. laws: exact probabilities."""

    laws: tuple[Fraction, ...]
    place: int


# ---- models, exactly


def exact_rows(rows):
    """A kernel's decimals as fractions."""
    return [[Fraction(repr(float(p))) for p in row] for row in rows]


def times(a, b):
    return [
        [sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)]
        for row in a
    ]


def power(kernel, steps):
    result = [[Fraction(int(i == j)) for j in range(len(kernel))] for i in range(len(kernel))]
    for _ in range(steps):
        result = times(result, kernel)
    return result


@dataclass(frozen=True, eq=False)
class Model:
    """kernels: one for all steps, or one for each step of the chain. is_known: no set of models."""

    kernels: list
    start: list
    is_known: bool = True
    _powers: dict = field(default_factory=dict)

    @property
    def is_even(self):
        return len(self.kernels) == 1

    @property
    def k(self):
        return len(self.start)

    def kernel(self, t):
        return self.kernels[0 if self.is_even else t]

    @cached_property
    def back(self):
        """One step back in time, of a stationary chain."""
        k = self.k
        return [
            [
                self.start[j] * self.kernels[0][j][i] / self.start[i]
                if self.start[i]
                else Fraction(0)
                for j in range(k)
            ]
            for i in range(k)
        ]

    def hop(self, sign, steps):
        """So many steps away, of a stationary chain."""
        if (sign, steps) not in self._powers:
            kernel = self.kernels[0] if sign > 0 else self.back
            self._powers[sign, steps] = power(kernel, steps)
        return self._powers[sign, steps]

    @classmethod
    def stationary(cls, rows, is_known=True):
        kernel = exact_rows(rows)
        return cls([kernel], exact_stationary(kernel), is_known)

    def sequences(self, n):
        """All sequences of n values with their probabilities."""
        for values in product(range(self.k), repeat=n):
            weight = self.start[values[0]]
            for t in range(n - 1):
                weight *= self.kernel(t)[values[t]][values[t + 1]]
            if weight:
                yield values, weight


# ---- one chain


def remembered(method):
    """A method of a situation that is asked the same again and again."""

    def asked(self, *given):
        known = self.__dict__.setdefault("_known", {})
        if (method.__name__, given) not in known:
            known[method.__name__, given] = method(self, *given)
        return known[method.__name__, given]

    return asked


@dataclass(frozen=True, eq=False)
class Situation:
    """length: places of the chain. absent: those without a value, private ones among them, `known`
    ones that have no row. secrets: (first, last, design) in order. stoppings: by design.
    """

    model: Model
    length: int
    absent: frozenset
    secrets: tuple
    stoppings: tuple

    def stopping(self, secret):
        return self.stoppings[self.secrets[secret][2]]

    # ---- clusters and options, from positions alone

    @cached_property
    def clusters(self):
        """Lists of numbers of secrets; none of them without an option that it is allowed."""
        joined = set()
        while True:
            found = self._joined(joined)
            trial = replace(self)
            trial.__dict__["clusters"] = found
            lacking = [c for c in range(len(found)) if trial._choice(c) is None]
            if not lacking:
                return found
            for c in lacking:  # joins the next one, the last one that before it
                joined.add(found[c + 1][0] if c + 1 < len(found) else found[c][0])

    def _joined(self, joined):
        """By gaps, and `joined`, the secrets that join the one before them anyhow."""
        found = []
        for number, (first, _, _) in enumerate(self.secrets):
            if found and number in joined:
                found[-1].append(number)
                continue
            if found:
                before = found[-1][-1]
                gap = first - self.secrets[before][1] - 1
                right = deadline(self.stopping(before).options[0][1].levels)
                left = deadline(self.stopping(number).options[0][0].levels)
                if gap < max(left, right):
                    found[-1].append(number)
                    continue
            found.append([number])
        return found

    @remembered
    def ends(self, c):
        return self.secrets[self.clusters[c][0]][0], self.secrets[self.clusters[c][-1]][1]

    @remembered
    def gap(self, c, side):
        """Records beside a cluster, and whether another cluster comes then."""
        first, last = self.ends(c)
        if side == 0:
            return (first - self.ends(c - 1)[1] - 1, True) if c else (first, False)
        if c + 1 < len(self.clusters):
            return self.ends(c + 1)[0] - last - 1, True
        return self.length - 1 - last, False

    @cached_property
    def choices(self):
        return [self._choice(c) for c in range(len(self.clusters))]

    def _choice(self, c):
        """("sides", left, right) or ("pair", pair); None if nothing is allowed."""
        cluster = self.clusters[c]
        one, other = self.stopping(cluster[0]), self.stopping(cluster[-1])
        closed = closed_side(one.options[0][0].limits)
        if one is other:
            options = [*one.options, (closed, closed)]
        else:
            options = [
                (a[0], b[1])
                for a in (*one.options, (closed, closed))
                for b in (*other.options, (closed, closed))
            ]
        best, found = math.inf, None
        epsilon = min(one.epsilon, other.epsilon)
        for left, right in options:
            if not self._is_allowed(c, left, right, epsilon):
                continue
            cost = self._cost(c, 0, law_of(self, left)) + self._cost(c, 1, law_of(self, right))
            if cost * (1 + 1e-9) + 1e-9 < best:
                best, found = cost, ("sides", left, right)
        pair = one.pair
        if pair is not None and self.model.is_even and self._may_pair(c):
            laws = pair_laws(self, pair)
            cost = self._cost(c, 0, laws[0]) + self._cost(c, 1, laws[1])
            if cost * (1 + 1e-9) + 1e-9 < best:
                found = ("pair", pair)
        return found

    def _is_allowed(self, c, left, right, epsilon):
        if left.budget + right.budget <= epsilon:
            return True
        if not (self.model.is_known and self.model.is_even):
            return False
        a, b = self.ends(c)
        for number in self.clusters[c]:
            first, last, _ = self.secrets[number]
            told = contraction(self.model, -1, first - a, left.budget)
            told += contraction(self.model, 1, b - last, right.budget)
            if told > epsilon - 1e-9:
                return False
        return True

    def _cost(self, c, side, law):
        gap, faces = self.gap(c, side)
        if law is None:
            return math.inf if faces else gap
        return sum(p * (t - 1 if faces else min(t - 1, gap)) for t, p in law)

    def is_single(self, c):
        first, last = self.ends(c)
        return len(self.clusters[c]) == 1 and first == last

    def _may_pair(self, c):
        """A record alone, out of sight of all that its neighbours may look at."""
        if not self.is_single(c):
            return False
        mine = self.stopping(self.clusters[c][0]).pair.deadlines
        for side, other in ((0, c - 1), (1, c + 1)):
            gap, faces = self.gap(c, side)
            if not faces:
                continue
            edge = self.clusters[other][-1 if side == 0 else 0]
            theirs = deadline(self.stopping(edge).options[0][1 - side].levels)
            if self.is_single(other) and self.stopping(edge).pair is not None:
                theirs = max(theirs, self.stopping(edge).pair.deadlines[1 - side])
            if gap < mine[side] + theirs - 1:
                return False
        return True

    @remembered
    def reach(self, c, side):
        """Within which distance a cluster's walk stops."""
        choice = self.choices[c]
        if choice[0] == "pair":
            return choice[1].deadlines[side]
        return deadline(choice[1 + side].levels)

    # ---- what walks look at, from positions alone

    @remembered
    def looks(self, c, side):
        """The places that the walk of one side may look at, some beyond the chain's ends."""
        choice = self.choices[c]
        gap, _ = self.gap(c, side)
        if choice[0] == "sides":
            return self._places(c, side, look_at(choice[1 + side], gap))
        pair = choice[1]
        if (0 if pair.first < 0 else 1) == side:
            return self._places(c, side, pair.levels.tolist())
        if not gap:
            return []
        every = {t for second in pair.seconds for t in second.levels.tolist()}
        if len(every) == 1:
            return []
        far = {deadline(second.levels) for second in pair.seconds}
        ahead = any(second.limits.shape[-1] > 1 for second in pair.seconds)
        kept = [t for t in sorted(every) if t <= gap or t in far or ahead]
        return self._places(c, side, kept)

    def _places(self, c, side, distances):
        end = self.ends(c)[side]
        return [end + (2 * side - 1) * t for t in distances]

    def has_value(self, place):
        return 0 <= place < self.length and place not in self.absent

    @cached_property
    def private(self):
        return {p for first, last, _ in self.secrets for p in range(first, last + 1)}

    @cached_property
    def needed(self):
        """All places without a value that are looked at."""
        every = {
            p
            for c in range(len(self.clusters))
            for side in (0, 1)
            if self.gap(c, side)[0] or self.choices[c][0] == "pair"
            for p in self.looks(c, side)
        }
        return sorted(p for p in every if not self.has_value(p))

    @remembered
    def around(self, place):
        """The nearest places with a value, or None."""
        left = [p for p in range(min(place, self.length) - 1, -1, -1) if self.has_value(p)]
        right = [p for p in range(max(place, -1) + 1, self.length) if self.has_value(p)]
        return left[0] if left else None, right[0] if right else None

    @remembered
    def can_draw(self, place):
        """Whether a value may be drawn for a place."""
        left, right = self.around(place)
        if self.model.is_known and self.model.is_even:
            low = -1 if left is None else left
            high = self.length if right is None else right
            hidden = any(low < p < high for p in self.private)
            return not hidden and (left is not None or right is not None)
        end = 0 if place < 0 else self.length - 1
        return not 0 <= place < self.length and self.has_value(end)

    @remembered
    def law(self, place, beside, value, right, after):
        """The law of a place's value, given that beside it and, if there is one, that after."""
        sign = 1 if beside < place else -1
        laws = self.model.hop(sign, abs(place - beside))[value]
        if after is not None:
            laws = [p * self.model.hop(1, right - place)[v][after] for v, p in enumerate(laws)]
        return tuple(p / sum(laws) for p in laws)

    @remembered
    def is_blocked(self, c, side):
        """A walk that goes straight to its deadline whatever it would see."""
        for place in self.looks(c, side):
            if self.has_value(place):
                continue
            if not self.can_draw(place):
                return True
            if not self.model.is_even:
                law = self.choices[c][1 + side].beyond
                far = self.ends(c)[side] + (2 * side - 1) * self.reach(c, side)
                if law is None or place != far:
                    return True
        return False


def closed_side(limits):
    """A side of which everything is redacted."""
    return StoppingSide(0, 0.0, np.empty(0, dtype=np.int64), limits[:, :0])


def deadline(levels):
    return int(levels[-1]) if len(levels) else CLOSED


def look_at(side, gap):
    """The distances that a side's walk may look at."""
    levels = side.levels.tolist()
    if len(levels) < 2:
        return []
    inside = [t for t in levels if t <= gap]
    beyond = [t for t in levels if t > gap]
    if side.limits.shape[-1] > 1 and inside and beyond:
        return sorted({*inside, beyond[0], levels[-1]})
    return sorted({*inside, levels[-1]})


# ---- laws, by walking every path


@cache
def stop_chances(limits):
    """The probabilities of cumulated limits, and of none."""
    cumulated = [Fraction(1) if limit == ALWAYS else Fraction(limit, 2**64) for limit in limits]
    parts = [b - a for a, b in zip([Fraction(0), *cumulated[:-1]], cumulated, strict=True)]
    return [*parts, 1 - cumulated[-1]]


def labelled_law(model, sign, levels, limits):
    """{(x, level, far value, label): probability given x}, by every path over the levels."""
    k, found = model.k, {}
    levels = levels.tolist()
    for path in product(range(k), repeat=len(levels) + 1):
        x, values = path[0], path[1:]
        chance, place, before = 1.0, 0, x
        for t, value in zip(levels, values, strict=True):
            chance *= float(model.hop(sign, t - place)[before][value])
            place, before = t, value
        if not chance:
            continue
        for q in range(len(levels) - 1):
            ahead = values[q + 1] if limits.shape[4] > 1 else 0
            chances = stop_chances(tuple(limits[values[-1], q, x, values[q], ahead].tolist()))
            for label, part in enumerate(chances[:-1]):
                key = x, q, values[-1], label
                found[key] = found.get(key, 0.0) + chance * float(part)
            chance *= float(chances[-1])
        key = x, len(levels) - 1, values[-1], limits.shape[5]
        found[key] = found.get(key, 0.0) + chance
    return found


_LAWS = {}


def law_of(situation, side):
    """[(distance, probability)] of a side; None of a closed one."""
    if not len(side.levels):
        return None
    levels = side.levels.tolist()
    if len(levels) == 1:
        return [(levels[0], 1.0)]
    if not situation.model.is_even:
        return list(zip(levels, side.law.sum(axis=1).tolist(), strict=True))
    name = id(situation.model), id(side)
    if name not in _LAWS:
        chances = [0.0] * len(levels)
        law = labelled_law(situation.model, side.direction, side.levels, side.limits[..., None])
        for (x, q, _, _), p in law.items():
            chances[q] += float(situation.model.start[x]) * p
        _LAWS[name] = situation.model, side, list(zip(levels, chances, strict=True))
    return _LAWS[name][2]


def pair_laws(situation, pair):
    """The laws of the left and the right side of a pair."""
    name = id(situation.model), id(pair)
    if name not in _LAWS:
        model = situation.model
        law = labelled_law(model, pair.first, pair.levels, pair.limits)
        first, second, labels = {}, {}, pair.limits.shape[5]
        seconds = [
            labelled_law(model, -pair.first, side.levels, side.limits[..., None])
            for side in pair.seconds
        ]
        for (x, q, far, label), p in law.items():
            weight = float(model.start[x]) * p
            t = int(pair.levels[q])
            first[t] = first.get(t, 0.0) + weight
            number = label if label < labels else labels + far
            for (y, u, _, _), r in seconds[number].items():
                if y == x:
                    t = int(pair.seconds[number].levels[u])
                    second[t] = second.get(t, 0.0) + weight * r
        both = list(first.items()), list(second.items())
        _LAWS[name] = model, pair, both if pair.first < 0 else both[::-1]
    return _LAWS[name][2]


_TOLD = {}


def contraction(model, sign, steps, budget):
    """O11's c, over all sets of values."""
    name = id(model), sign, steps, budget
    if name not in _TOLD:
        channel, rise, worst = model.hop(sign, steps), math.expm1(budget), 0.0
        possible = [x for x in range(model.k) if model.start[x]]
        for size in range(1, len(possible)):
            for some in combinations(possible, size):
                seen = [float(sum(channel[x][i] for i in some)) * rise + 1 for x in possible]
                worst = max(worst, math.log(max(seen) / min(seen)))
        _TOLD[name] = model, worst
    return _TOLD[name][1]


# ---- the mechanism


def mechanism(situation):
    """Redacted places, as what is asked for is answered: a generator that returns a frozenset."""
    drawn = yield from completed(situation)
    stops = {}
    for c in range(len(situation.clusters)):
        yield from stopped(situation, c, drawn, stops)
    redacted = set()
    for c in range(len(situation.clusters)):
        first, last = situation.ends(c)
        redacted |= set(range(first, last + 1))
        for side in (0, 1):
            gap, faces = situation.gap(c, side)
            count = min(stops[c, side] - 1, gap)
            if faces:
                other = c + 2 * side - 1
                mine = stops[c, side] <= gap + 1 - situation.reach(other, 1 - side)
                theirs = stops[other, 1 - side] <= gap + 1 - situation.reach(c, side)
                count = count if mine and theirs else gap
            redacted |= set(
                range(last + 1, last + 1 + count) if side else range(first - count, first)
            )
    return frozenset(redacted)


def completed(situation):
    """Values for the places that are looked at and have none."""
    if not situation.model.is_even:
        return (yield from _beyond_ends(situation))
    drawn = {}
    places = [p for p in situation.needed if situation.can_draw(p)]
    back = [p for p in places if situation.around(p)[0] is None]
    for place in [*reversed(back), *(p for p in places if p not in back)]:
        left, right = situation.around(place)
        after = None
        if left is None:
            beside = min([p for p in drawn if place < p < right] + [right])
        else:
            beside = max([p for p in drawn if left < p < place] + [left])
            after = None if right is None else (yield Look(right))
        value = drawn[beside] if beside in drawn else (yield Look(beside))
        drawn[place] = yield Absent(situation.law(place, beside, value, right, after), place)
    return drawn


def _beyond_ends(situation):
    drawn = {}
    for place in situation.needed:
        for c in range(len(situation.clusters)):
            for side in (0, 1):
                if place in situation.looks(c, side) and not situation.is_blocked(c, side):
                    end = yield Look(0 if place < 0 else situation.length - 1)
                    law = situation.choices[c][1 + side].beyond[end]
                    laws = tuple(Fraction(float(p)) for p in law)
                    drawn[place] = yield Absent(tuple(p / sum(laws) for p in laws), place)
    return drawn


def stopped(situation, c, drawn, stops):
    """Note where both walks of a cluster stop."""
    choice = situation.choices[c]
    if choice[0] == "sides":
        for side in (0, 1):
            mine = choice[1 + side]
            gap, _ = situation.gap(c, side)
            straight = situation.is_blocked(c, side) or not gap
            walk = mine.levels, mine.limits[..., np.newaxis], gap
            stops[c, side], _ = yield from walked(situation, (c, side), walk, straight, drawn)
        return
    pair = choice[1]
    first = 0 if pair.first < 0 else 1
    straight = situation.is_blocked(c, first)
    if not situation.model.is_known:
        straight = straight or situation.is_blocked(c, 1 - first)
    walk = pair.levels, pair.limits, CLOSED
    stop, label = yield from walked(situation, (c, first), walk, straight, drawn)
    stops[c, first] = stop
    if label is None:  # went straight
        stops[c, 1 - first] = pair.deadlines[1 - first]
        return
    second = pair.seconds[label]
    gap, _ = situation.gap(c, 1 - first)
    straight = situation.is_blocked(c, 1 - first) or not gap
    walk = second.levels, second.limits[..., np.newaxis], gap
    stops[c, 1 - first], _ = yield from walked(situation, (c, 1 - first), walk, straight, drawn)


def walked(situation, which, walk, straight, drawn):
    """Where one walk stops, and its label, None if it went straight. walk: levels, limits, room."""
    c, side = which
    levels, limits, room = walk
    end, sign = situation.ends(c)[side], 2 * side - 1
    far_place = end + sign * deadline(levels)
    if straight or not situation.has_value(end) or not len(levels):
        return deadline(levels), None

    def value(t):
        place = end + sign * t
        if place in drawn:
            return drawn[place]
        return (yield Look(place))

    labels = limits.shape[5]
    if len(levels) == 1 and room < CLOSED:  # looks at nothing
        return deadline(levels), None
    x = yield Look(end)
    far = drawn[far_place] if far_place in drawn else (yield Look(far_place))
    for q, t in enumerate(levels.tolist()[:-1]):
        if t > room:
            break
        here = yield from value(t)
        ahead = (yield from value(int(levels[q + 1]))) if limits.shape[4] > 1 else 0
        outcomes = tuple(limits[far, q, x, here, ahead].tolist())
        label = yield Coin(outcomes, end, sign, q)
        if label < labels:
            return t, label
    return deadline(levels), labels + far


# ---- with real coins


def decided(situation, values, draw, order):
    """Redacted places of one table. draw: (order value, purpose, counter) → 64 bits. order: the
    order values of places that have a row.
    """
    process = mechanism(situation)
    answer = None
    while True:
        try:
            asked = process.send(answer)
        except StopIteration as end:
            return end.value
        if isinstance(asked, Look):
            answer = values[asked.place]
        elif isinstance(asked, Coin):
            purpose = b"offrecord/walk>" if asked.sign > 0 else b"offrecord/walk<"
            u = draw(order[asked.place], purpose, asked.level)
            above = [n for n, limit in enumerate(asked.limits) if limit == ALWAYS or u < limit]
            answer = above[0] if above else len(asked.limits)
        else:
            answer = _real_value(asked, draw, order)


def _real_value(asked, draw, order):
    before = [p for p in order if p <= asked.place]
    if before:
        row = max(before)
        counter = 2 * (asked.place - row)
    else:
        row = min(order)
        counter = 2**47 + 2 * (row - asked.place)
    a, b = (draw(order[row], b"offrecord/absent", counter + i) for i in (0, 1))
    u = Fraction(2 * ((a << 64) + b) + 1, 2**129)
    reached = Fraction(0)
    ranked = sorted(range(len(asked.laws)), key=lambda v: (asked.laws[v], v))
    for value in ranked:
        reached += asked.laws[value]
        if u < reached:
            return value
    return ranked[-1]


# ---- through every branch


class Tree:
    """All that the mechanism may do, found as it is asked for."""

    def __init__(self, situation):
        self.situation, self.nodes = situation, {}
        self.waiting = {}  # processes that wait for an answer, by the answers they got

    def masks(self, values):
        """{redacted places: probability} of one sequence of values."""
        found, open_ = {}, [((), Fraction(1))]
        while open_:
            path, chance = open_.pop()
            asked = self._node(path)
            if isinstance(asked, frozenset):
                found[asked] = found.get(asked, 0) + chance
            elif isinstance(asked, Look):
                open_.append(((*path, values[asked.place]), chance))
            else:
                chances = asked.laws if isinstance(asked, Absent) else stop_chances(asked.limits)
                open_ += [((*path, n), chance * p) for n, p in enumerate(chances) if p]
        return found

    def _node(self, path):
        if path not in self.nodes:
            process = self.waiting.pop(path[:-1], None) if path else None
            answers = path[-1:] if process else (None, *path)
            process = process or mechanism(self.situation)
            try:
                for answer in answers:
                    self.nodes[path] = process.send(answer)
                self.waiting[path] = process
            except StopIteration as end:
                self.nodes[path] = end.value
        return self.nodes[path]


def laws_of_masks(situation):
    """[(values, probability, {redacted: probability})] over all sequences of values."""
    tree = Tree(situation)
    sequences = situation.model.sequences(situation.length)
    return [(values, weight, tree.masks(values)) for values, weight in sequences]


def worst_ratios(situation, laws, protected):
    """For each secret, the largest ratio of likelihoods of an output, told together with the values
    of all other clusters. protected: for each secret the places that are private.
    """
    shown = [(values, weight, _shown(situation, values, masks)) for values, weight, masks in laws]
    worst = []
    for c, cluster in enumerate(situation.clusters):
        others = [
            p
            for other, numbers in enumerate(situation.clusters)
            if other != c
            for number in numbers
            for p in protected[number]
        ]
        worst += [_worst_ratio(shown, protected[number], others) for number in cluster]
    return worst


def _shown(situation, values, masks):
    """[(what everybody sees, probability)] of one sequence of values."""
    return [
        (
            tuple(
                None if p in redacted or p in situation.absent else v for p, v in enumerate(values)
            ),
            chance,
        )
        for redacted, chance in masks.items()
    ]


def _worst_ratio(shown, places, others):
    totals, seen = {}, {}
    for values, weight, outputs in shown:
        secret = tuple(values[p] for p in places)
        totals[secret] = totals.get(secret, 0) + weight
        told = tuple(values[p] for p in others)
        for output, chance in outputs:
            mine = seen.setdefault((output, told), {})
            mine[secret] = mine.get(secret, 0) + weight * chance
    worst = Fraction(1)
    for mine in seen.values():
        given = [mine.get(secret, 0) / total for secret, total in totals.items()]
        if min(given) == 0:
            return math.inf
        worst = max(worst, max(given) / min(given))
    return worst
