"""What a local design tells of its secrets under the model alone, of order m above 1.

Given the tuple z of m neighbouring records at the secret, what is seen before and what is seen
after are independent (R6). With L[y, z] = Pr(y before, z) and R[y, z] = Pr(y after | z), an output
has the probability Σ L·R over the z that hold the secret's values. All outputs of a side are
followed inwards, from m records in a row that are released (beyond, nothing counts) or from the
chain's end. Where they are too many, everything from some distance on counts as released, which
only tells more (F3); then the bound by pairs of tuples (F8) may be smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import flint

from offrecord.release.certificate import Model
from offrecord.verify.alone import Ratios
from offrecord.verify.balls import Ball, Matrix, ball, double, infinite, is_zero, largest
from offrecord.verify.chain import Chain, completed
from offrecord.verify.pairs_of_outputs import largest_ratio
from offrecord.verify.problem import Problem, Secret, Stretch
from offrecord.verify.states import combined, follows, shown_by_states, told_of_states

#: Outputs of a side at most, and pairs of them; else so many times the tuples there are.
_MOST, _MOST_PAIRS, _TIMES = 4096, 2**22, 4


def told(problem: Problem) -> Ball:
    """The largest log-ratio of an output under two values of a secret, or a bound of it."""
    tuples = Tuples.of(problem.model, problem.n)
    return largest(_told_of(problem, tuples, secret) for secret in problem.secrets)


def _told_of(problem: Problem, tuples: Tuples, secret: Secret) -> Ball:
    found, is_exact = _by_outputs(problem, tuples, secret)
    return found if is_exact else found.min(_by_tuples(problem, tuples, secret))


@dataclass(frozen=True, eq=False)
class Tuples:
    """m-tuples of neighbouring records, numbered with their values as digits, the oldest first.

    chain: on tuples, each counted as the record that it begins with.
    """

    k: int
    order: int
    chain: Chain

    @classmethod
    def of(cls, model: Model, n: int) -> Tuples:
        """Those of n records of a model."""
        k, order = model.k, model.order
        size = k**order
        kernel = flint.arb_mat(size, size)
        for code, row in enumerate(_rows(model.transition, order)):
            for value, share in enumerate(completed(row)):
                kernel[code, code * k % size + value] = ball(share)
        numbers = [one for row in _rows(model.start, order - 1) for one in row]
        start = None if model.stationary else [ball(one) for one in completed(numbers)]
        return cls(k, order, Chain(max(n - order + 1, 1), [kernel], start))

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.k**self.order)

    @property
    def kernel(self) -> Matrix:
        """From each to the next."""
        return self.chain.kernels[0]

    def values(self, place: int) -> list[int]:
        """The value at a place of each tuple, the oldest is 0."""
        below = self.k ** (self.order - 1 - place)
        return [code // below % self.k for code in range(self.size)]

    def often(self, begins: int) -> Sequence[Ball]:
        """How likely each is, begun at a record."""
        if self.chain.start is None:
            return self.chain.marginal(0)
        return _at(self.chain.start, self.kernel, begins)


def _rows(numbers: Any, depth: int) -> Iterator[Sequence[float]]:
    """The innermost lists."""
    if depth == 0:
        yield numbers
        return
    for part in numbers:
        yield from _rows(part, depth - 1)


def _at(start: Sequence[Ball], kernel: Matrix, steps: int) -> list[Ball]:
    row = flint.arb_mat([list(start)])
    return list((row * kernel**steps if steps else row).entries())


# ---- all outputs


class _Seen(NamedTuple):
    """Outputs of a side: by tuple, how likely each is, up to a factor. recent: of each, the values
    that were released last without a redaction between, the last one first, m at most.
    """

    vectors: list[list[Ball]]
    recent: list[tuple[int, ...]]


class _Reach(NamedTuple):
    """How many records are followed, how many outputs that makes; is_exact: no other counts.

    ends: nothing lies beyond; else m records lie there that are released.
    """

    records: int
    outputs: int
    is_exact: bool
    ends: bool


def _by_outputs(problem: Problem, tuples: Tuples, secret: Secret) -> tuple[Ball, bool]:
    """What the outputs nearest to a secret tell; whether these are all that count."""
    m, length = tuples.order, secret.last - secret.first + 1
    # the tuple at which both sides meet: it ends with the secret, or is the chain's first
    meets = max(secret.last, m - 1) if tuples.chain.start is not None else secret.last
    left = list(problem.outward(secret.first, -1))
    right = list(problem.outward(meets, 1))
    reaches = [_reach(side, tuples, _MOST) for side in (left, right)]
    if not all(one.is_exact for one in reaches) or reaches[0].outputs * reaches[1].outputs > (
        _MOST_PAIRS
    ):
        reaches = [_reach(side, tuples, _TIMES * tuples.size) for side in (left, right)]
    before = _before(problem, tuples, secret, left, reaches[0])
    after = _after(tuples, right, reaches[1])
    if length < m:
        found = _of_few(tuples, secret, meets, before, after)
    else:
        found = _of_many(tuples, secret, before, after)
    return found, all(one.is_exact for one in reaches)


def _of_few(
    tuples: Tuples,
    secret: Secret,
    meets: int,
    before: list[list[Ball]],
    after: list[list[Ball]],
) -> Ball:
    """Of a secret that is shorter than a tuple."""
    begins = meets - tuples.order + 1
    often = tuples.often(begins)
    places = [tuples.values(record - begins) for record in range(secret.first, secret.last + 1)]
    groups: dict[tuple[int, ...], list[int]] = {}
    for code, values in enumerate(zip(*places, strict=True)):
        groups.setdefault(values, []).append(code)
    parts = []
    for codes in groups.values():
        likely = sum((often[code] for code in codes), flint.arb(0))
        if not is_zero(likely):
            own = [[row[code] / likely for code in codes] for row in before]
            parts.append((own, [[row[code] for code in codes] for row in after]))
    return largest_ratio(parts).log()


def _of_many(
    tuples: Tuples, secret: Secret, before: list[list[Ball]], after: list[list[Ball]]
) -> Ball:
    """Of a secret of m records or more: its first m say what is seen before, its last m what is
    seen after.
    """
    often = tuples.often(secret.first)
    given = [
        [flint.arb(0) if is_zero(p) else one / p for one, p in zip(row, often, strict=True)]
        for row in before
    ]
    ends = secret.first, secret.last - tuples.order + 1
    after_them = follows(tuples.chain, ends)
    firsts = [state for state, found in enumerate(after_them) if found]
    lasts = sorted(frozenset().union(*after_them))
    return combined(
        _ratios(given, firsts, tuples.size), _ratios(after, lasts, tuples.size), after_them
    )


def _ratios(rows: list[list[Ball]], states: list[int], size: int) -> Ratios:
    """The largest ratio of two entries of a row, for every two states that occur."""
    worst = [[flint.arb(1) for _ in range(size)] for _ in range(size)]
    for row in rows:
        for x in states:
            if is_zero(row[x]):
                continue
            for other in states:
                if other != x:
                    ratio = infinite() if is_zero(row[other]) else row[x] / row[other]
                    worst[x][other] = worst[x][other].max(ratio)
    return worst


# ---- how far


def _reach(side: list[Stretch], tuples: Tuples, most: int) -> _Reach:
    """As far as there are no more than so many outputs, and no farther than counts."""
    k, m = tuples.k, tuples.order
    shown = _values_that_occur(tuples)
    best = _Reach(0, k**m, False, False)
    going, done, records = [1] + [0] * (m - 1), 0, 0  # by how many releases they end with
    for count, row in side:
        open_to = sum(row[value] < 1 for value in shown)
        silent = any(row[value] > 0 for value in shown)
        for _ in range(1 if not open_to else count):
            done += going[-1] * open_to
            going = [sum(going) if silent else 0, *(one * open_to for one in going[:-1])]
            records += count if not open_to else 1
            if not any(going):
                return _Reach(records - m, done, True, False) if done <= most else best
            if done + sum(going) > most:
                return best
            closed = done + sum(one * k ** (m - run) for run, one in enumerate(going))
            if closed <= most:
                best = _Reach(records, closed, False, False)
    return _Reach(records, done + sum(going), True, True)


def _values_that_occur(tuples: Tuples) -> list[int]:
    """Of a stationary chain, those that are not impossible; else all."""
    if tuples.chain.start is not None:
        return list(range(tuples.k))
    often, newest = tuples.chain.marginal(0), tuples.values(tuples.order - 1)
    found = {value for value, p in zip(newest, often, strict=True) if not is_zero(p)}
    return sorted(found)


def _followed(side: list[Stretch], reach: _Reach, m: int, k: int) -> tuple[list[Stretch], bool]:
    """The stretches that are followed, farthest first; whether they end where the chain does.

    Fewer than m records beyond them are released one by one.
    """
    left, found = reach.records, []
    for count, row in side:
        if left > 0:
            found.append(Stretch(min(count, left), row))
        left -= count
    beyond = -left
    if reach.ends or beyond >= m:
        return found[::-1], reach.ends
    rest = [Stretch(beyond, (0.0,) * k)] if beyond else []
    return [*rest, *found[::-1]], True


# ---- inwards


def _before(
    problem: Problem, tuples: Tuples, secret: Secret, side: list[Stretch], reach: _Reach
) -> list[list[Ball]]:
    """By the tuple that ends with the secret, or is its first m records, or the chain's first m."""
    m, k = tuples.order, tuples.k
    stretches, ends = _followed(side, reach, m, k)
    newest = tuples.values(m - 1)
    steps = _Steps([tuples.kernel * one for one in _choices(newest, k)], tuples.kernel, newest, m)
    if ends and tuples.chain.start is not None:
        return _from_start(problem, tuples, secret, stretches, steps)
    if ends:
        seen = _Seen([list(tuples.chain.marginal(0))], [()])
    else:
        first = secret.first - sum(count for count, _ in stretches) - m
        likely = enumerate(tuples.often(first))
        codes = [code for code, p in likely if not is_zero(p)]
        seen = _Seen(_units(codes, tuples.size), [_digits(code, k, m)[::-1] for code in codes])
    seen = steps.through(seen, stretches)
    return steps.silent(seen, min(secret.last - secret.first + 1, m)).vectors


def _from_start(
    problem: Problem,
    tuples: Tuples,
    secret: Secret,
    stretches: list[Stretch],
    steps: _Steps,
) -> list[list[Ball]]:
    """The same from the chain's first m records on, which are as likely as the model says."""
    m = tuples.order
    rows = [row for count, row in stretches for _ in range(min(count, m))][:m]
    # of the first m records, those of the secret and perhaps some after it
    rows += [(1.0,) * tuples.k] * min(m - len(rows), secret.last - secret.first + 1)
    for count, row in problem.outward(secret.last, 1):
        rows += [row] * min(m - len(rows), count)
    seen = _Seen([list(tuples.chain.start or ())], [()])
    for place, row in enumerate(rows):
        seen = _weighed(seen, row, tuples.values(place), m)
    passed = _without(stretches, m)
    seen = steps.through(seen, passed)
    length = secret.last - secret.first + 1
    last = secret.first + m - 1 if length >= m else max(secret.last, m - 1)
    done = m - 1 + sum(count for count, _ in passed)
    return steps.silent(seen, last - done).vectors


def _without(stretches: list[Stretch], records: int) -> list[Stretch]:
    """All but the first so many records."""
    found = []
    for count, row in stretches:
        taken = min(count, records)
        records -= taken
        if count > taken:
            found.append(Stretch(count - taken, row))
    return found


def _after(tuples: Tuples, side: list[Stretch], reach: _Reach) -> list[list[Ball]]:
    """By the tuple that ends where the side begins."""
    m, k, size = tuples.order, tuples.k, tuples.size
    stretches, ends = _followed(side, reach, m, k)
    newest, back = tuples.values(m - 1), tuples.kernel.transpose()
    steps = _Steps([one * back for one in _choices(newest, k)], back, newest, m, inner_last=False)
    if ends:
        seen = _Seen([[flint.arb(1)] * size], [()])
    else:
        codes = range(size)
        beyond = back**m
        rows = beyond.tolist()
        seen = _Seen([rows[code] for code in codes], [_digits(code, k, m) for code in codes])
        seen = _kept(seen.vectors, seen.recent, m)
    return steps.through(seen, stretches).vectors


@dataclass(frozen=True, eq=False)
class _Steps:
    """One record nearer to the secret: a vector times a matrix.

    released: by the value that is seen. silently: where it is not known whether. newest: the value
    of the record in each tuple. inner_last: weights apply after the step, else before.
    """

    released: list[Matrix]
    silently: Matrix
    newest: list[int]
    m: int
    inner_last: bool = True

    def through(self, seen: _Seen, stretches: list[Stretch]) -> _Seen:
        """Past stretches, the farthest first."""
        for count, row in stretches:
            if all(share == 1 for share in row):
                seen = self.silent(seen, count)
                continue
            for _ in range(count):
                seen = self._past(seen, row)
        return seen

    def silent(self, seen: _Seen, count: int) -> _Seen:
        """Past records that are redacted, whatever they are."""
        if count == 0:
            return seen
        rows = flint.arb_mat(seen.vectors) * self.silently**count
        return _Seen(rows.tolist(), [()] * len(seen.recent))

    def _past(self, seen: _Seen, row: tuple[float, ...]) -> _Seen:
        rows = flint.arb_mat(seen.vectors)
        vectors: list[list[Ball]] = []
        recent: list[tuple[int, ...]] = []
        if any(share > 0 for share in row):
            vectors += (rows * self._redacted(row)).tolist()
            recent += [()] * len(seen.recent)
        for value, share in enumerate(row):
            if share < 1:
                vectors += (rows * self.released[value]).tolist()
                recent += [(value, *one)[: self.m] for one in seen.recent]
        return _kept(vectors, recent, self.m)

    def _redacted(self, row: tuple[float, ...]) -> Matrix:
        weights = diagonal([ball(double(row[value])) for value in self.newest])
        return self.silently * weights if self.inner_last else weights * self.silently


def _weighed(seen: _Seen, row: tuple[float, ...], values: list[int], m: int) -> _Seen:
    """What a record shows that the tuples hold already."""
    vectors: list[list[Ball]] = []
    recent: list[tuple[int, ...]] = []
    symbols = [value for value, share in enumerate(row) if share < 1]
    if any(share > 0 for share in row):
        kept = [ball(double(row[value])) for value in values]
        vectors += [[a * b for a, b in zip(one, kept, strict=True)] for one in seen.vectors]
        recent += [()] * len(seen.recent)
    for symbol in symbols:
        for one, values_before in zip(seen.vectors, seen.recent, strict=True):
            chosen = [p if v == symbol else flint.arb(0) for p, v in zip(one, values, strict=True)]
            vectors.append(chosen)
            recent.append((symbol, *values_before)[:m])
    return _kept(vectors, recent, m)


def _kept(vectors: list[list[Ball]], recent: list[tuple[int, ...]], m: int) -> _Seen:
    """Without what cannot occur; after m releases in a row vectors with the same values differ in a
    factor only, and one of them is kept.
    """
    known: set[tuple[int, ...]] = set()
    found = _Seen([], [])
    for vector, values in zip(vectors, recent, strict=True):
        if values in known or all(map(is_zero, vector)):
            continue
        if len(values) == m:
            known.add(values)
        found.vectors.append(vector)
        found.recent.append(values)
    return found


def _choices(newest: list[int], k: int) -> list[Matrix]:
    """For each value the matrix that keeps the tuples with it."""
    return [diagonal([flint.arb(int(one == value)) for one in newest]) for value in range(k)]


def diagonal(entries: Sequence[Ball]) -> Matrix:
    """Zeros but for these."""
    found = flint.arb_mat(len(entries), len(entries))
    for i, entry in enumerate(entries):
        found[i, i] = entry
    return found


def _units(codes: list[int], size: int) -> list[list[Ball]]:
    return [[flint.arb(int(code == other)) for other in range(size)] for code in codes]


def _digits(code: int, k: int, m: int) -> tuple[int, ...]:
    """The values of a tuple, the oldest first."""
    return tuple(code // k ** (m - 1 - place) % k for place in range(m))


# ---- pairs of tuples


def _by_tuples(problem: Problem, tuples: Tuples, secret: Secret) -> Ball:
    """Who sees a record is taken to see the whole tuple that begins, or ends, with it (F8)."""
    m = tuples.order
    first = max(secret.first - m + 1, 0)
    last = max(secret.last, first + m - 1)
    if not problem.is_redacted(first, last):
        return infinite()
    left = shown_by_states(problem.outward(first, -1), tuples.values(0))
    right = shown_by_states(problem.outward(last, 1), tuples.values(m - 1))
    values = tuples.values(secret.first - first) if secret.first == secret.last else None
    return told_of_states(tuples.chain, (first, last - m + 1), (left, right), values)
