"""What a local design tells of its secrets over a set of models: two values, order 1.

A walk leads towards the secret (R1). Of all that may be seen beyond a record, under all models, it
keeps the least and the largest ratio h(1)/h(0) of the probabilities given the record's value. A
record that may release 0 adds the ratio 0, one that may release 1 the ratio ∞; where it is
redacted, what lies beyond it counts times the ratio of its redaction probabilities. A step is
monotone in everything, so its extremes lie at the ends of the ratios and at corners of the box.

To the left the kernels back in time are those of the set, or, where it knows kernels forwards alone
(R4), a step has the odds of the earlier record in it, too: for a given corner it is extreme at the
ends of the odds or at one place between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import flint

from offrecord.verify.balls import Ball, Exact, ball, decimal, double, infinite, is_zero, largest
from offrecord.verify.problem import Problem, Secret

#: h(1)/h(0); None is ∞.
Ratio: TypeAlias = Any
_Step: TypeAlias = Callable[[Ratio], Iterable[Ratio]]
_Row: TypeAlias = tuple[float, ...]


class Corner(NamedTuple):
    """A kernel at a corner of the box, row by row."""

    p00: Ball
    p01: Ball
    p10: Ball
    p11: Ball


class Ends(NamedTuple):
    """The least and the largest ratio of all that may be seen."""

    least: Ratio
    most: Ratio


def told(problem: Problem) -> Ball:
    """The largest log-ratio of an output under two values of a secret, over models and secrets."""
    return largest(_told_of(problem, secret) for secret in problem.secrets)


def _told_of(problem: Problem, secret: Secret) -> Ball:
    left = _side(problem, secret.first, -1)
    right = _side(problem, secret.last, 1)
    up, down = ([_odds(side) for side in (left, right)], [_inverse(side) for side in (left, right)])
    if secret.first < secret.last:  # the two ends of a run may have any values
        up = down = [one.max(other) for one, other in zip(up, down, strict=True)]
    return _product(up).max(_product(down)).log()


def _odds(side: Ends) -> Ball:
    """Of 1 over 0."""
    return infinite() if side.most is None else side.most


def _inverse(side: Ends) -> Ball:
    """Of 0 over 1."""
    if side.least is None:
        return flint.arb(0)
    return infinite() if is_zero(side.least) else 1 / side.least


def _product(factors: Iterable[Ball]) -> Ball:
    found = flint.arb(1)
    for factor in factors:
        if factor == infinite():
            return infinite()
        found = found * factor
    return found


# ---- one side


def _side(problem: Problem, record: int, step: int) -> Ends:
    """What may be seen from a record on to one side, itself left out."""
    rows = list(_rows(problem, record, step))
    ends = Ends(flint.arb(1), flint.arb(1))
    kinds: dict[int, _Step] = {}
    for distance in range(len(rows), 0, -1):
        # the step between this record and the next one towards the secret, by the earlier of both
        earlier = record + distance - 1 if step > 0 else record - distance
        number = _box_number(problem, earlier)
        if number not in kinds:
            kinds[number] = _stepping(problem, number, step)
        seen = list(_seen(rows[distance - 1], ends))
        found = [image for ratio in seen for image in kinds[number](ratio)]
        ends = _hull(found)
    return ends


def _rows(problem: Problem, record: int, step: int) -> Iterator[_Row]:
    """Redaction probabilities by distance, up to where all that lies beyond is of no account."""
    for count, row in problem.outward(record, step):
        if max(row) < 1.0:
            yield row
            return
        for _ in range(count):
            yield row


def _seen(row: _Row, beyond: Ends) -> Iterator[Ratio]:
    """What a record shows."""
    zero, one = row
    if zero < 1.0:
        yield flint.arb(0)
    if one < 1.0:
        yield None
    if zero > 0.0:
        factor = ball(double(one)) / ball(double(zero))
        for ratio in beyond:
            if ratio is not None:
                yield ratio * factor
            elif one > 0.0:
                yield None
            # else the output takes a 1 here, and that is never redacted
    elif one > 0.0:
        yield None


def _hull(found: Sequence[Ratio]) -> Ends:
    finite = [ratio for ratio in found if ratio is not None]
    least = most = None
    if finite:
        least = most = finite[0]
        for ratio in finite[1:]:
            least, most = least.min(ratio), most.max(ratio)
    return Ends(least, None if len(finite) < len(found) else most)


# ---- one step


def _box_number(problem: Problem, earlier: int) -> int:
    """Which box of the set a step has, by its earlier record; −1 where there is but one."""
    if problem.phases is not None:
        return problem.phases[earlier]
    return -1 if problem.model.length is None else earlier


def _stepping(problem: Problem, number: int, step: int) -> _Step:
    """All that one step may make of a ratio."""
    models = problem.model.set
    assert models is not None
    forwards = step > 0 or models.start != "stationary"
    low, high = models.forward if forwards else models.backward
    if number >= 0:
        low, high = low[number], high[number]
    changes = _changes(low, high)
    corners = [Corner(ball(1 - a), ball(a), ball(b), ball(1 - b)) for a, b in product(*changes)]
    if step < 0 and models.start != "stationary":
        odds = _settled(changes) if models.start == "settled" else _ANY
        return lambda ratio: (
            image for corner in corners for image in _back_by_odds(ratio, corner, odds)
        )
    return lambda ratio: (image for corner in corners for image in _image(ratio, corner))


def _changes(low: Any, high: Any) -> list[tuple[Exact, Exact]]:
    """The least and the largest probability of a change from 0 and from 1: what rows that sum to 1
    leave of the intervals.
    """
    found = []
    for x in range(2):
        least = max(decimal(low[x][1 - x]), 1 - decimal(high[x][x]))
        most = min(decimal(high[x][1 - x]), 1 - decimal(low[x][x]))
        found.append((least, most))
    return found


def _image(ratio: Ratio, corner: Corner) -> Iterator[Ratio]:
    """One step nearer; nothing where no value there can lead to what was seen."""
    if ratio is None:
        top, bottom = corner.p11, corner.p01
    else:
        top, bottom = corner.p10 + corner.p11 * ratio, corner.p00 + corner.p01 * ratio
    yield from _quotient(top, bottom)


def _quotient(top: Ball, bottom: Ball) -> Iterator[Ratio]:
    if not is_zero(bottom):
        yield top / bottom
    elif not is_zero(top):
        yield None


# ---- to the left by kernels forwards (R4)


class Small(NamedTuple):
    """A number that is positive times a power of what tends to 0; power 0: just the number."""

    number: Ball
    power: int


#: Odds as two numbers, of value 1 and of value 0: any of them, up to what they tend to.
_ANY = ((Small(1, 1), Small(1, 0)), (Small(1, 0), Small(1, 1)))


def _settled(changes: Sequence[tuple[Exact, Exact]]) -> Any:
    """What odds a chain has after long, where it never changes more often than not."""
    (alpha, alpha_high), (beta, beta_high) = changes
    if alpha_high + beta_high > 1:
        return _ANY
    pairs = (alpha, beta_high), (alpha_high, beta)
    return [tuple(Small(ball(one), 0) if one else Small(1, 1) for one in pair) for pair in pairs]


def _back_by_odds(ratio: Ratio, corner: Corner, odds: Any) -> Iterator[Ratio]:
    """A step to the left: what is seen, given each value of the later record, is an average over
    the earlier one, with weights by the kernel and its odds.
    """
    tried = list(odds)
    if ratio is not None and not any(is_zero(p) for p in (*corner, ratio)):
        # where it is extreme between, unless that surely lies outside the odds
        place = (corner.p01 * corner.p00 / (corner.p11 * corner.p10 * ratio)).sqrt()
        least, most = odds
        below = not least[0].power and place * least[1].number < least[0].number
        above = not most[1].power and place * most[1].number > most[0].number
        if not (below or above):
            tried.append((Small(place, 0), Small(1, 0)))
    for one, zero in tried:
        of_one = _averaged(ratio, _weighted(corner.p01, zero), _weighted(corner.p11, one))
        of_zero = _averaged(ratio, _weighted(corner.p00, zero), _weighted(corner.p10, one))
        if of_one is None or of_zero is None:
            continue
        top, bottom = _both(of_one[0], of_zero[1]), _both(of_zero[0], of_one[1])
        if bottom is None or (top is not None and top.power < bottom.power):
            if top is not None:
                yield None
        elif top is None or top.power > bottom.power:
            yield flint.arb(0)
        else:
            yield top.number / bottom.number


def _weighted(entry: Ball, odds: Small) -> Small | None:
    """A weight; None for 0."""
    return None if is_zero(entry) else Small(entry * odds.number, odds.power)


def _averaged(
    ratio: Ratio, zero: Small | None, one: Small | None
) -> tuple[Small | None, Small] | None:
    """What is seen together with the later value, and how likely that is; None where never."""
    whole = _sum(zero, one)
    if whole is None:
        return None
    if ratio is None:
        return one, whole
    scaled = None if one is None or is_zero(ratio) else Small(one.number * ratio, one.power)
    return _sum(zero, scaled), whole


def _sum(first: Small | None, second: Small | None) -> Small | None:
    """What has the lower power counts alone."""
    if first is None or second is None:
        return second if first is None else first
    if first.power != second.power:
        return min(first, second, key=lambda one: one.power)
    return Small(first.number + second.number, first.power)


def _both(first: Small | None, second: Small | None) -> Small | None:
    """The product."""
    if first is None or second is None:
        return None
    return Small(first.number * second.number, first.power + second.power)
