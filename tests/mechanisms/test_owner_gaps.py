"""Gaps too short for two walks: the whole mechanism in exact rationals, and the decider's part."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

import offrecord as off
from offrecord.mechanisms.blocks import Block, Secrets
from offrecord.mechanisms.owner.deciding.bridging import PURPOSE
from offrecord.mechanisms.owner.deciding.decider import OwnerDecider
from offrecord.mechanisms.owner.designing.between import (
    asked_gaps,
    gap_stopping,
    is_proven,
    longest_gap,
    released_law,
    told_between,
)
from offrecord.mechanisms.owner.menu import Menu
from offrecord.mechanisms.owner.proof import proven_leakage
from offrecord.mechanisms.owner.stopping import gap_states
from offrecord.mechanisms.owner.ways import Ways
from offrecord.models.records import MISSING, Chains
from offrecord.release.coins import ALWAYS

WHOLE = 1 << 64


def exact(kernel):
    rows = [[Fraction(repr(p)) for p in row] for row in kernel.tolist()]
    return [[p / sum(row) for p in row] for row in rows]


def share(limit):
    return Fraction(WHOLE if limit == ALWAYS else int(limit), WHOLE)


def power(kernel, steps):
    k = len(kernel)
    found = [[Fraction(int(i == j)) for j in range(k)] for i in range(k)]
    for _ in range(steps):
        found = [[sum(row[m] * kernel[m][j] for m in range(k)) for j in range(k)] for row in found]
    return found


def stationary(kernel):
    a, b = kernel[0][1], kernel[1][0]
    return [b / (a + b), a / (a + b)]


def side_law(side, kernel, end, values):
    """{how many of the values (by distance) stay redacted: probability}, exactly."""
    found = {}
    room, deadline = len(values), side.deadline
    last = values[-1] if room else end
    if deadline <= room:
        fars = {values[deadline - 1]: Fraction(1)}
    else:
        fars = dict(enumerate(power(kernel, deadline - room)[last]))
    for far, likely in fars.items():
        going = likely
        for level, distance in enumerate(side.levels[:-1].tolist()):
            if distance > room:
                break
            stops = share(side.limits[far, level, end, values[distance - 1], 0])
            found[distance - 1] = found.get(distance - 1, 0) + going * stops
            going *= 1 - stops
        lost = min(deadline - 1, room)
        found[lost] = found.get(lost, 0) + going
    return found


def gap_law(gap, x, b, values):
    """{(first, last) released, or None: probability}, exactly."""
    held, found = {(1, gap.length): Fraction(1)}, {}
    for number, (first, last) in enumerate(gap_states(gap.length)):
        going = held.pop((first, last), Fraction(0))
        limits = gap.limits[number, x, b, values[first - 1], values[last - 1]]
        stop, lose = share(limits[0]), max(share(limits[0]), share(limits[1]))
        found[first, last] = found.get((first, last), 0) + going * stop
        if first == last:
            found[None] = found.get(None, 0) + going * (1 - stop)
            continue
        for target, part in (((first + 1, last), lose - stop), ((first, last - 1), 1 - lose)):
            held[target] = held.get(target, Fraction(0)) + going * part
    return found


def whole_law(stopping, kernel, n, private):
    """{(output, values of the private records): probability} over every sequence, exactly."""
    k, law = len(kernel), {}
    start = stationary(kernel)
    gaps = {gap.length: gap for gap in stopping.gaps}
    left, right = stopping.options[0]
    for values in product(range(k), repeat=n):
        chance = start[values[0]]
        for before, after in pairwise(values):
            chance *= kernel[before][after]
        if not chance:
            continue
        parts = [side_law(left, kernel, values[private[0]], values[: private[0]][::-1])]
        for one, other in pairwise(private):
            between = values[one + 1 : other]
            parts.append(gap_law(gaps[len(between)], values[one], values[other], between))
        parts.append(side_law(right, kernel, values[private[-1]], values[private[-1] + 1 :]))
        told = tuple(values[p] for p in private)
        for taken in product(*(part.items() for part in parts)):
            seen = [None] * n
            (lost, _), *across, (gone, _) = taken
            seen[: private[0] - lost] = values[: private[0] - lost]
            begin = private[-1] + 1 + gone
            seen[begin:] = values[begin:]
            for one, (what, _) in zip(private[:-1], across, strict=True):
                if what is not None:
                    seen[one + what[0] : one + what[1] + 1] = values[
                        one + what[0] : one + what[1] + 1
                    ]
            total = chance * math.prod((p for _, p in taken), start=Fraction(1))
            key = tuple(seen), told
            law[key] = law.get(key, Fraction(0)) + total
    return law


def leakage_about(law, at, prior):
    """The largest log-ratio of an output under two values of one private record, exactly."""
    by_output = {}
    for (seen, told), chance in law.items():
        by_output.setdefault(seen, {}).setdefault(told[at], Fraction(0))
        by_output[seen][told[at]] += chance
    worst = 0.0
    for chances in by_output.values():
        likely = [chances.get(x, Fraction(0)) / prior[x] for x in range(len(prior))]
        if not any(likely):
            continue
        if not all(likely):
            return math.inf
        worst = max(worst, math.log(max(likely) / min(likely)))
    return worst


@pytest.mark.parametrize(
    ("alpha", "beta", "epsilon", "n", "private"),
    [
        (0.1, 0.3, 1.4, 5, (1, 3)),
        (0.1, 0.3, 1.4, 6, (0, 2, 5)),
        (0.1, 0.3, 1.4, 7, (1, 3, 5)),
        (0.05, 0.2, 1.0, 7, (0, 2, 4)),
        (0.2, 0.35, 0.8, 6, (1, 4)),
        (0.021, 0.295, 1.0, 7, (1, 3, 6)),
        (0.6, 0.75, 0.7, 6, (0, 2, 4)),
    ],
)
def test_no_secret_tells_more_than_epsilon_exactly(alpha, beta, epsilon, n, private):
    chain = off.MarkovChain.binary(alpha, beta)
    ways = Ways.far(chain)
    lengths = {b - a - 1 for a, b in pairwise(private)}
    menu = Menu(ways, epsilon, lengths=set(lengths))
    stopping = menu.stopping
    # gaps in which two walks would do are designed here too: the claim is about every length
    budgets = stopping.options[0][1].budget, stopping.options[0][0].budget
    gaps = tuple(gap_stopping(chain, length, budgets) for length in sorted(lengths))
    stopping = replace(stopping, gaps=gaps)
    assert proven_leakage(stopping, ways) <= epsilon
    assert any(gap.law.sum() > 0.05 for gap in gaps)
    kernel = exact(chain.transition)
    law = whole_law(stopping, kernel, n, private)
    assert sum(law.values()) == 1
    for at in range(len(private)):
        assert leakage_about(law, at, stationary(kernel)) <= epsilon


@pytest.mark.parametrize("seed", range(4))
def test_laws_of_gaps(seed):
    rng = np.random.default_rng(seed)
    alpha, beta = rng.uniform(0.05, 0.4, 2).round(3)
    chain = off.MarkovChain.binary(float(alpha), float(beta))
    gap = gap_stopping(chain, 3, (0.5, 0.5))
    left, right = told_between(gap, chain)
    assert left.max() <= 0.5
    assert right.max() <= 0.5
    kernel, start = exact(chain.transition), stationary(exact(chain.transition))
    released = [Fraction(0)] * 3
    for values in product(range(2), repeat=5):
        chance = start[values[0]]
        for before, after in pairwise(values):
            chance *= kernel[before][after]
        for what, likely in gap_law(gap, values[0], values[-1], values[1:-1]).items():
            for place in range(what[0] - 1, what[1]) if what else ():
                released[place] += chance * likely
    assert released_law(gap, chain) == pytest.approx([float(one) for one in released], abs=1e-12)


def test_more_values():
    rng = np.random.default_rng(5)
    chain = off.MarkovChain(rng.dirichlet(np.ones(3), 3) * 0.7 + 0.3 * np.eye(3)).rounded()
    for length in (1, 2):
        gap = gap_stopping(chain, length, (0.6, 0.6))
        assert is_proven(gap, chain)
        assert gap.law.sum() > 0.2


def test_a_stop_that_is_a_little_too_likely_is_seen():
    chain = off.MarkovChain.binary(0.05, 0.2)
    gap = gap_stopping(chain, 2, (0.5, 0.5))
    seen = 0
    for place in np.argwhere((gap.limits[..., 0] > 0) & (gap.limits[..., 0] < ALWAYS)):
        limits = gap.limits.copy()
        at = (*place, 0)
        limits[at] = min(int(int(limits[at]) * 1.0001) + 1, int(ALWAYS) - 1)
        seen += not is_proven(replace(gap, limits=limits), chain)
    assert seen >= 4


def test_which_gaps_are_asked_for():
    stopping = Menu(Ways.far(off.MarkovChain.binary(0.021, 0.295)), 1.0).stopping
    base = stopping.options[0]
    assert asked_gaps([0, 1, 5, 200], base) == [1, 5]
    assert max(asked_gaps(range(100), base)) == min(longest_gap(2), 2 * base[0].deadline - 2)
    closed = Menu(Ways.far(off.MarkovChain([[0.0, 1.0], [1.0, 0.0]])), 1.0).stopping
    assert asked_gaps([1, 2], closed.options[0]) == []


# ---- the decider's part


class Scripted:
    """Draws that anyone can recompute."""

    def __call__(self, chain, order, purpose=b"", counter=0):
        chain, order = np.asarray(chain), np.asarray(order)
        counters = np.broadcast_to(counter, chain.shape)
        return np.array(
            [
                self.one(*each, purpose)
                for each in zip(chain.tolist(), order.tolist(), counters.tolist(), strict=True)
            ],
            dtype=np.uint64,
        )

    def one(self, chain, order, counter, purpose):
        seed = [chain, order, counter, *purpose]
        return int(np.random.default_rng(seed).integers(0, 2**64, dtype=np.uint64))


def dense_block(rng, chains, length, share_private, missing):
    starts = np.arange(chains + 1) * length
    codes = rng.integers(0, 2, chains * length).astype(np.int8)
    private = rng.random(chains * length) < share_private
    codes[(rng.random(len(codes)) < missing)] = MISSING
    rows = np.flatnonzero(private)
    chain, place = rows // length, rows % length
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (np.diff(rows) > 1) | (np.diff(chain) > 0)
    head = np.flatnonzero(begins)
    tail = np.append(head[1:], len(rows)) - 1
    secrets = Secrets(
        chain[head], place[head], place[tail], rows[head], rows[tail] + 1, place[head]
    )
    made = Chains(starts, codes, np.tile(np.arange(length), chains), False, None)
    return Block(made, slice(0, len(codes)), secrets, np.zeros(len(head), dtype=np.int64))


@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(3))
def test_decisions_in_gaps_follow_the_thresholds(seed, missing):
    rng = np.random.default_rng(seed)
    chain = off.MarkovChain.binary(0.021, 0.295)
    stopping = Menu(Ways.far(chain), 1.0, lengths=set(range(1, 6))).stopping
    decider = OwnerDecider.of([stopping], np.array([[50, 50]]), chain)
    block = dense_block(rng, 12, 40, 0.25, missing)
    draw = Scripted()
    decision = decider.decide(block, draw)
    codes, secrets = block.chains.codes, block.secrets
    gaps = {gap.length: gap for gap in stopping.gaps if gap.law.sum() >= 0.25}
    met = 0
    for one, other in pairwise(range(secrets.count)):
        length = int(secrets.first[other] - secrets.last[one] - 1)
        rows = np.arange(secrets.high[one], secrets.low[other])
        same = secrets.chain[one] == secrets.chain[other]
        if not same or length not in gaps or np.any(codes[rows] < 0):
            continue
        met += 1
        x, b = int(codes[rows[0] - 1]), int(codes[rows[-1] + 1])
        redacted = np.ones(length, dtype=bool)
        first, last, step = 1, length, 0
        while x >= 0 and b >= 0:
            number = gap_states(length).index((first, last))
            i, j = int(codes[rows[first - 1]]), int(codes[rows[last - 1]])
            stop, lose = gaps[length].limits[number, x, b, i, j].tolist()
            end = int(secrets.high[one]) - 1
            drawn = draw.one(int(secrets.chain[one]), int(block.chains.order[end]), step, PURPOSE)
            if stop == int(ALWAYS) or drawn < stop:
                redacted[first - 1 : last] = False
                break
            if first == last:
                break
            if max(stop, lose) == int(ALWAYS) or drawn < max(stop, lose):
                first += 1
            else:
                last -= 1
            step += 1
        assert np.array_equal(decision.redacted[rows], redacted), (one, length)
    assert met > 10
    expected = decider.expect(block, np.empty(0))
    assert np.array_equal(expected.certainty, decision.certainty)


@pytest.mark.parametrize("absent", [None, 2, 4, 5, "null"])
def test_nothing_is_released_beside_an_end_without_a_value(absent):
    """Two private runs, 1 … 2 and 4 … 5, and one record between them. Where the end of a run has no
    row, the value of the record before it stands further from the gap than thresholds are made for.
    """
    chain = off.MarkovChain.binary(0.1, 0.3)
    stopping = Menu(Ways.far(chain), 1.4, lengths={1}).stopping
    decider = OwnerDecider.of([stopping], np.array([[50, 50]]), chain)
    rows = np.array([place for place in range(7) if place != absent])
    codes = np.where((rows == 2) & (absent == "null"), MISSING, 0).astype(np.int8)
    at = np.searchsorted(rows, [1, 3, 4, 6])  # rows where runs begin and end
    secrets = Secrets(np.zeros(2, int), *np.array([[1, 4], [2, 5], at[::2], at[1::2], [1, 4]]))
    made = Chains(np.array([0, len(rows)]), codes, rows, False, rows)
    block = Block(made, slice(0, len(rows)), secrets, np.zeros(2, dtype=np.int64))
    assert np.all(decider.planned(block).clusters.bridged == [[False, True], [True, False]])
    lowest = decider.decide(block, lambda chain, *_: np.zeros(len(chain), dtype=np.uint64))
    assert lowest.redacted[rows == 3].tolist() == [absent not in (None, 5)]


def test_policies_of_near_secrets():
    chain = off.MarkovChain.binary(0.1, 0.3)
    for private in ([2, 4], [2, 5, 7]):
        problem = off.Problem(chain, 8, private, 1.4)
        policy = off.design(problem, off.OwnerStopping())
        released = 0.0
        for values in product(range(2), repeat=8):
            chance = chain.marginal(1)[values[0]]
            for before, after in pairwise(values):
                chance *= chain.transition[before, after]
            for mask, likely in policy.outcomes(np.array(values)):
                released += chance * likely * mask.sum()
        assert policy.utility == pytest.approx(released / 8, abs=1e-9)
        assert policy.is_private


def test_long_gaps_of_rare_values_are_judged_within_what_floats_hold():
    """Likelihoods and how often values are have hundreds of digits each, and so have products."""
    chain = off.MarkovChain([[0.9987, 0.0013], [0.3, 0.7]])
    gap = gap_stopping(chain, 9, (2.0, 2.0))
    assert is_proven(gap, chain)
    assert released_law(gap, chain).sum() > 0.1
    assert all(np.isfinite(told).all() for told in told_between(gap, chain))
