"""What the outcomes of a walk tell of the value at a secret's end (O3, O4, O7, O13).

For each far value a walk of its own: U[x, i] is the likelihood of value i at a level together with
no stop so far, given x at the secret's end. At each level U times the probability of stopping
counts, by the value there (and at the next level, where it looks ahead) as far as these can lead to
the far value; at the last level column l of U, for far value l. That the far value is l is as
likely under every x from a level on, and so is left out; and so are factors 2⁻⁶⁴ of thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import flint

from offrecord.release.certificate import StoppingPair, StoppingSide, spelled_thresholds
from offrecord.verify.balls import Ball, Matrix, infinite, is_zero, largest
from offrecord.verify.stopping.way import Way, Ways

WHOLE = 2**64
#: A draw that always lies below.
ALWAYS = WHOLE - 1
#: Ratios of what outcomes are, by the values x above and x′ below the line.
Ratios = list[list[Ball]]


def in_units(stop: str) -> list[int]:
    """Thresholds as probabilities, in units of 2⁻⁶⁴."""
    return [WHOLE if limit == ALWAYS else limit for limit in spelled_thresholds(stop)]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Likelihoods of one outcome by the value of the secret's end; label: of a stop, and after the
    last label the far value of a walk that reached its last level.
    """

    label: int
    likelihoods: Sequence[Ball]


def outcomes(way: Way, side: StoppingSide | StoppingPair, labels: int = 1) -> Iterator[Outcome]:
    """All outcomes of a side with at least one level."""
    k, jumps, units = way.k, way.jumps(side.levels), in_units(side.stop)
    wide = k if side.ahead else 1
    size = k * k * wide * labels  # thresholds of a level
    possible, leading = way.possible, _leading(jumps)
    for far in range(k):
        reached = [[jumps[0][x, i] for i in range(k)] for x in possible]
        for level, jump in enumerate(jumps[1:]):
            begin = (far * (len(jumps) - 1) + level) * size
            limits = [
                _nested(units[begin + x * size // k : begin + (x + 1) * size // k], wide, labels)
                for x in possible
            ]
            contexts = [
                (i, j)
                for i in range(k)
                for j in range(wide)
                if far in leading[level][i]
                and (wide == 1 or (not is_zero(jump[i, j]) and far in leading[level + 1][j]))
            ]
            yield from _stops(reached, limits, contexts, labels)
            reached = _going_on(reached, limits, jump)
        yield Outcome(labels + far, [row[far] for row in reached])


def _leading(jumps: Sequence[Matrix]) -> list[list[set[int]]]:
    """For each level, which far values each value there can lead to."""
    k = int(jumps[0].nrows())
    found = [[{i} for i in range(k)]]
    for jump in jumps[:0:-1]:
        after = found[-1]
        found.append(
            [
                set().union(*(after[j] for j in range(k) if not is_zero(jump[i, j])))
                for i in range(k)
            ]
        )
    return found[::-1]


def _nested(units: Sequence[int], wide: int, labels: int) -> list[list[Sequence[int]]]:
    """By value there, next value and label."""
    by_next = [units[at : at + labels] for at in range(0, len(units), labels)]
    return [by_next[at : at + wide] for at in range(0, len(by_next), wide)]


def _stops(
    reached: Sequence[Sequence[Ball]],
    limits: Sequence[Sequence[Sequence[Sequence[int]]]],
    contexts: Sequence[tuple[int, int]],
    labels: int,
) -> Iterator[Outcome]:
    """At one level: limits by x, value there, next value and label, which cumulate; contexts: the
    values there and next that can be.
    """
    for i, j in contexts:
        below = [0] * len(reached)
        for label in range(labels):
            here = [of_x[i][j][label] for of_x in limits]
            likely = [
                row[i] * (limit - less)
                for row, limit, less in zip(reached, here, below, strict=True)
            ]
            yield Outcome(label, likely)
            below = here


def _going_on(
    reached: Sequence[Sequence[Ball]],
    limits: Sequence[Sequence[Sequence[Sequence[int]]]],
    jump: Matrix,
) -> list[list[Ball]]:
    """What has not stopped, at the next level."""
    k = int(jump.nrows())
    rest = [
        [[U * (WHOLE - one[-1]) for one in by_next] for U, by_next in zip(row, of_x, strict=True)]
        for row, of_x in zip(reached, limits, strict=True)
    ]
    if len(rest[0][0]) == 1:
        return _rows(flint.arb_mat([[one for (one,) in row] for row in rest]) * jump)
    nothing = flint.arb(0)
    return [
        [sum((row[i][j] * jump[i, j] for i in range(k)), nothing) for j in range(k)] for row in rest
    ]


def _rows(found: Matrix) -> list[list[Ball]]:
    return [list(row) for row in found.table()]


# ---- what they tell


def told_by(way: Way, side: StoppingSide) -> Ball:
    """The largest log-ratio of an outcome of a side under two values of the secret's end."""
    if not side.levels:
        return flint.arb(0)
    if side.levels[0] < way.nearest:
        return infinite()
    return largest(widest(one.likelihoods) for one in outcomes(way, side)).max(1).log()


def widest(likelihoods: Sequence[Ball]) -> Ball:
    """The largest over the least likelihood; 0 for an outcome that never occurs."""
    zeros = sum(map(is_zero, likelihoods))
    if zeros:
        return flint.arb(0) if zeros == len(likelihoods) else infinite()
    most = least = likelihoods[0]
    for one in likelihoods[1:]:
        most, least = most.max(one), least.min(one)
    return most / least


def told_in_turn(ways: Ways, pair: StoppingPair, sides: Sequence[StoppingSide]) -> Ball:
    """The largest log-ratio of an outcome of both sides of a record in turn."""
    first = ways.towards(pair.first)
    second = ways.towards("left" if pair.first == "right" else "right")
    if pair.levels[0] < first.nearest:
        return infinite()
    by_label = [_none(len(first.possible)) for _ in pair.seconds]
    for one in outcomes(first, pair, pair.labels):
        _note(one.likelihoods, by_label[one.label])
    after = {number: _ratios(second, sides[number]) for number in set(pair.seconds)}
    return (
        largest(
            here[x][other] * after[number][x][other]
            for here, number in zip(by_label, pair.seconds, strict=True)
            for x in range(len(here))
            for other in range(len(here))
            if not is_zero(here[x][other])
        )
        .max(1)
        .log()
    )


def _none(size: int) -> Ratios:
    return [[flint.arb(0)] * size for _ in range(size)]


def _ratios(way: Way, side: StoppingSide) -> Ratios:
    """The largest ratios of outcomes of a side, by two values of the secret's end."""
    size = len(way.possible)
    if not side.levels:
        return [[flint.arb(1)] * size for _ in range(size)]
    found = _none(size)
    if side.levels[0] < way.nearest:
        return [[infinite()] * size for _ in range(size)]
    for one in outcomes(way, side):
        _note(one.likelihoods, found)
    return found


def _note(likelihoods: Sequence[Ball], worst: Ratios) -> None:
    for x, above in enumerate(likelihoods):
        if is_zero(above):
            continue
        for other, below in enumerate(likelihoods):
            if x != other:
                ratio = infinite() if is_zero(below) else above / below
                worst[x][other] = worst[x][other].max(ratio)
