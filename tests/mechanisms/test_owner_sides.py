"""The owner's sides: thresholds that act, against their definition in exact rationals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.mechanisms.owner.designing.labels import stopping_pair
from offrecord.mechanisms.owner.designing.laws import expected_redactions, stopping_law
from offrecord.mechanisms.owner.designing.pinned import Pinned, bridges, programme
from offrecord.mechanisms.owner.designing.referee import told_by, told_by_pair
from offrecord.mechanisms.owner.designing.repair import repaired
from offrecord.mechanisms.owner.designing.sides import Effort, effort_for, stopping_side
from offrecord.mechanisms.owner.mechanism import far_window
from offrecord.mechanisms.owner.menu import Menu
from offrecord.mechanisms.owner.policy import OwnerPolicy
from offrecord.mechanisms.owner.proof import proven_leakage
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.mechanisms.owner.ways import Ways
from offrecord.release.coins import ALWAYS
from offrecord.theory.programmes import Solver

WHOLE = 1 << 64


def right(chain, nearest=1):
    return Way.of(chain, 1, 1000, 1000, nearest)


def exact(kernel):
    return [[Fraction(repr(float(p))) for p in row] for row in kernel.tolist()]


def share(limit):
    return Fraction(WHOLE if limit == ALWAYS else int(limit), WHOLE)


def outcome_law(side, kernel):
    """{(distance, values from the stop to the deadline): [Pr(… | x)]} over every path, exactly."""
    k, deadline = len(kernel), side.deadline
    law = {}
    for x in range(k):
        for path in product(range(k), repeat=deadline):
            chance, before = Fraction(1), x
            for value in path:
                chance *= kernel[before][value]
                before = value
            far, going = path[-1], chance
            for level, distance in enumerate(side.levels[:-1].tolist()):
                following = path[int(side.levels[level + 1]) - 1]
                j = following if side.limits.shape[-1] > 1 else 0
                stops = share(side.limits[far, level, x, path[distance - 1], j])
                seen = (distance, path[distance - 1 :])
                law.setdefault(seen, [Fraction(0)] * k)[x] += going * stops
                going *= 1 - stops
            law.setdefault((deadline, (far,)), [Fraction(0)] * k)[x] += going
    return law


def exact_leakage(law):
    worst = 0.0
    for chances in law.values():
        if not any(chances):
            continue
        if not all(chances):
            return math.inf
        worst = max(worst, math.log(max(chances) / min(chances)))
    return worst


kernels = st.integers(2, 3).flatmap(
    lambda k: st.lists(
        st.lists(st.integers(0, 9), min_size=k, max_size=k).filter(lambda row: sum(row) > 0),
        min_size=k,
        max_size=k,
    )
)


def chain_of(rows):
    """A chain with decimals of four digits, or None where it has no one stationary law."""
    kernel = np.array(rows, dtype=float)
    kernel /= kernel.sum(axis=1, keepdims=True)
    try:
        return off.MarkovChain(kernel).rounded()
    except off.InputError:
        return None


@settings(max_examples=60, deadline=None)
@given(kernels, st.sampled_from([0.3, 0.7, 1.4]), st.booleans(), st.booleans())
def test_sides_keep_within_their_budget_exactly(rows, budget, ahead, by_programme):
    chain = chain_of(rows)
    if chain is None or not np.all(chain.marginal(1) > 0):
        return
    way = right(chain)
    effort = Effort(6 if by_programme else None, ahead)
    side = stopping_side(way, budget, effort)
    if side is None or side.deadline > 5:
        return
    law = outcome_law(side, exact(chain.transition))
    found = exact_leakage(law)
    assert found <= budget
    told = told_by(side, way).max()
    assert found <= told <= found + 1e-9 or told <= 1e-9
    for x in range(chain.k):
        assert sum(chances[x] for chances in law.values()) == 1
    waited = sum(
        (seen[0] - 1) * float(sum(w * c for w, c in zip(chain.marginal(1), chances, strict=True)))
        for seen, chances in law.items()
    )
    assert expected_redactions(side, way) == pytest.approx(waited, abs=1e-12)
    assert stopping_law(side, way).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("direction", [-1, 1])
@pytest.mark.parametrize("seed", range(4))
def test_the_left_side_is_that_of_the_reversed_chain(direction, seed):
    rng = np.random.default_rng(seed)
    chain = off.MarkovChain(rng.dirichlet(np.ones(3), 3)).rounded()
    way = Way.of(chain, direction, 1000, 1000)
    side = stopping_side(way, 0.8, effort_for(3))
    # backwards in exact fractions: Pr(before | after) = π_before·P/π_after
    kernel = exact(chain.transition)
    law = stationary(kernel)
    back = [[law[i] * kernel[i][j] / law[j] for i in range(3)] for j in range(3)]
    found = exact_leakage(outcome_law(side, kernel if direction > 0 else back))
    assert found <= told_by(side, way).max() <= found + 1e-9 <= 0.8 + 1e-9


def stationary(kernel):
    """By Cramer's rule on the spanning trees of three states (Kirchhoff), in fractions."""
    (_, ab, ac), (ba, _, bc), (ca, cb, _) = kernel
    weights = [
        ba * ca + bc * ca + cb * ba,
        ab * cb + ac * cb + ca * ab,
        ac * bc + ab * bc + ba * ac,
    ]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize(
    ("alpha", "beta", "budget", "deadline", "cost"),
    [
        (0.0036, 0.012, 0.5, 130, 41.4),
        (0.0005, 0.0016, 0.5, 957, 315),
        (0.021, 0.295, 0.5, 9, 1.33),
        (0.1, 0.3, 0.5, 4, 0.769),
        (0.05, 0.1, 0.25, 16, 4.446),
    ],
)
def test_costs_are_those_that_others_found(alpha, beta, budget, deadline, cost):
    way = right(off.MarkovChain.binary(alpha, beta))
    side = stopping_side(way, budget, effort_for(2))
    assert side.deadline == deadline
    assert expected_redactions(side, way) == pytest.approx(cost, rel=3e-3)


def test_the_closed_form_costs_what_others_found():
    for alpha, beta, cost in ((0.0036, 0.012, 47.8), (0.021, 0.295, 1.96)):
        way = right(off.MarkovChain.binary(alpha, beta))
        deadline = way.deadline(0.5 - 1e-6, np.ones(2))
        side = Pinned(way, np.arange(1, deadline + 1), np.ones(2))
        limits = repaired(side, np.stack([bridges(side, far) for far in range(2)]), 0.5)
        made = StoppingSide(1, 0.5, side.levels, limits)
        assert expected_redactions(made, way) == pytest.approx(cost, rel=3e-3)
        assert told_by(made, way).max() <= 0.5


@pytest.mark.parametrize("seed", range(5))
def test_programmes_never_cost_more_than_bridges(seed):
    rng = np.random.default_rng(seed)
    chain = off.MarkovChain(rng.dirichlet(np.full(3, 0.5), 3) * 0.98 + 0.02 / 3).rounded()
    way = right(chain)
    deadline = way.deadline(0.4, np.ones(3))
    if deadline is None or deadline < 2:
        return
    side = Pinned(way, np.arange(1, deadline + 1), np.ones(3))
    costs = []
    for aims in (bridges, lambda side, far: programme(side, far, 0.4 - 1e-8, Solver())):
        limits = repaired(side, np.stack([aims(side, far) for far in range(3)]), 0.4)
        costs.append(expected_redactions(StoppingSide(1, 0.4, side.levels, limits), way))
    assert costs[1] <= costs[0] + 1e-9


@pytest.mark.parametrize(
    ("alpha", "beta", "epsilon", "sides", "labels"),
    [(0.0212, 0.2954, 1.0, 3.66, 2.98), (0.1, 0.3, 1.0, 2.54, 2.19)],
)
def test_both_sides_in_turn(alpha, beta, epsilon, sides, labels):
    ways = Ways.far(off.MarkovChain.binary(alpha, beta))
    menu = Menu(ways, epsilon)
    assert 1 + ways.cost(*menu.stopping.options[0]) == pytest.approx(sides, rel=0.02)
    pair = menu.stopping.pair
    told = ways.told_by_pair(pair).max()
    assert told <= epsilon
    assert told > epsilon - 1e-6  # it is used up
    assert proven_leakage(menu.stopping, ways) <= epsilon
    policy = off.design(off.Problem(ways.right.chain, 1001, 501, epsilon), off.OwnerStopping())
    laws = policy.stopping_law
    assert 1 + sum(law @ np.maximum(np.arange(len(law)) - 1, 0) for law in laws) == pytest.approx(
        labels, rel=0.01
    )


@pytest.mark.parametrize("seed", range(3))
def test_labelled_outcomes_keep_within_epsilon_exactly(seed):
    rng = np.random.default_rng(seed)
    alpha, beta = rng.uniform(0.15, 0.5, 2).round(3)
    chain = off.MarkovChain.binary(alpha, beta)
    first, second = right(chain), Way.of(chain, -1, 1000, 1000)
    pair = stopping_pair(first, second, 1.4, Effort(40, ahead=True))
    kernel, k = exact(chain.transition), 2
    labels = pair.limits.shape[-1]
    firsts = {}  # (label, outcome) → likelihoods
    for x in range(k):
        for path in product(range(k), repeat=int(pair.levels[-1])):
            chance, before = Fraction(1), x
            for value in path:
                chance *= kernel[before][value]
                before = value
            far = path[-1]
            for level, distance in enumerate(pair.levels[:-1].tolist()):
                j = path[int(pair.levels[level + 1]) - 1]
                limits = pair.limits[far, level, x, path[distance - 1], j]
                done = Fraction(0)
                for label in range(labels):
                    taken = share(limits[label]) - done
                    done += taken
                    seen = (label, distance, path[distance - 1 :])
                    firsts.setdefault(seen, [Fraction(0)] * k)[x] += chance * taken
                chance *= 1 - done
            seen = (labels + far, int(pair.levels[-1]), (far,))
            firsts.setdefault(seen, [Fraction(0)] * k)[x] += chance
    seconds = [outcome_law(side, kernel) for side in pair.seconds]
    # the label is hidden: what is seen is both outcomes, whichever label led to the second
    law = {}
    for (label, *seen), mine in firsts.items():
        for other, theirs in seconds[label].items():
            both = law.setdefault((*seen, other), [Fraction(0)] * k)
            for x in range(k):
                both[x] += mine[x] * theirs[x]
    for x in range(k):
        assert sum(chances[x] for chances in law.values()) == 1
    found = exact_leakage(law)
    seconds = [told_by(side, second) for side in pair.seconds]
    assert found <= told_by_pair(pair, first, seconds).max() <= 1.4


def test_a_stop_that_is_a_little_too_likely_is_seen():
    chain = off.MarkovChain.binary(0.05, 0.2)
    ways = Ways.far(chain)
    stopping = Menu(ways, 1.0).stopping
    left, side = stopping.options[0]
    refused = 0
    for place in np.argwhere((side.limits > 0) & (side.limits < ALWAYS)):
        limits = side.limits.copy()
        limits[tuple(place)] = min(int(limits[tuple(place)] * 1.00001) + 1, int(ALWAYS) - 1)
        changed = replace(stopping, options=((left, replace(side, limits=limits)),))
        told = told_by(changed.options[0][1], ways.right).max()
        assert (proven_leakage(changed, ways) is None) == (told > 0.5)
        refused += told > 0.5
    assert refused >= 4


def test_menus_are_refused_that_would_not_be_used_as_proven():
    ways = Ways.far(off.MarkovChain.binary(0.05, 0.2))
    stopping = Menu(ways, 1.0).stopping
    base = stopping.options[0]
    dear = next(both for both in stopping.options if both[0].budget == 1.0 == both[1].budget)
    assert proven_leakage(replace(stopping, options=(dear,)), ways) is None
    lower = tuple(replace(side, budget=0.1) for side in base)
    assert proven_leakage(replace(stopping, options=(lower,)), ways) is None
    longer = replace(base[0], levels=base[0].levels + 1)
    assert proven_leakage(replace(stopping, options=(base, (longer, base[1]))), ways) is None
    assert proven_leakage(stopping, Ways.far(off.MarkovChain.binary(0.04, 0.2))) is None


def test_a_chain_that_never_forgets_has_both_sides_closed():
    chain = off.MarkovChain([[0.0, 1.0], [1.0, 0.0]])
    stopping = Menu(Ways.far(chain), 1.0).stopping
    assert all(side.is_closed for side in stopping.options[0])


@pytest.mark.parametrize("place", [1, 2, 5, 8])
def test_steps_that_differ(place):
    """Kernels by step, a start of its own: left by Bayes, beyond the ends any kernel."""
    rng = np.random.default_rng(place)
    kernels = np.array(
        [[[1 - a, a], [b, 1 - b]] for a, b in rng.uniform(0.1, 0.4, (7, 2)).round(3)]
    )
    chain = off.MarkovChain(kernels, [0.25, 0.75])
    problem = off.Problem(chain, 8, place, 1.0)
    ways = Ways.around(problem)
    stopping = Menu(ways, 1.0).stopping
    assert proven_leakage(stopping, ways) <= 1.0
    for option in stopping.options:
        for side in option:
            way = ways.of(side)
            if side.is_closed or side.deadline > 6:
                continue
            steps = [
                exact_step(kernels, chain, way, place, distance)
                for distance in range(side.deadline)
            ]
            found = exact_leakage(walked_law(side, steps))
            assert found <= told_by(side, way).max() <= found + 1e-9
            assert found <= side.budget


def exact_step(kernels, chain, way, place, distance):
    """The kernel away from the secret at a distance, in fractions."""
    rows = [exact(one) for one in kernels]
    if way.direction > 0:
        return rows[min(place - 1 + distance, len(rows) - 1)]
    record = place - distance  # the one that is left, from 1
    if record <= 1:
        return rows[0]
    law = [Fraction(repr(float(p))) for p in chain.start]
    for step in rows[: record - 2]:
        law = [sum(law[i] * step[i][j] for i in range(2)) for j in range(2)]
    step = rows[record - 2]
    after = [sum(law[i] * step[i][j] for i in range(2)) for j in range(2)]
    return [[law[i] * step[i][j] / after[j] for i in range(2)] for j in range(2)]


def walked_law(side, steps):
    law = {}
    for x in range(2):
        for path in product(range(2), repeat=side.deadline):
            chance, before = Fraction(1), x
            for step, value in zip(steps, path, strict=True):
                chance *= step[before][value]
                before = value
            for level, distance in enumerate(side.levels[:-1].tolist()):
                stops = share(side.limits[path[-1], level, x, path[distance - 1], 0])
                seen = (distance, path[distance - 1 :])
                law.setdefault(seen, [Fraction(0)] * 2)[x] += chance * stops
                chance *= 1 - stops
            law.setdefault((side.deadline, path[-1:]), [Fraction(0)] * 2)[x] += chance
    return law


@pytest.mark.parametrize("private", [[1], [3], [60], [118], [40, 41, 42], [2, 3]])
@pytest.mark.parametrize(("alpha", "beta", "epsilon"), [(0.1, 0.3, 1.0), (0.02, 0.1, 0.7)])
def test_what_is_made_for_one_secret_is_what_it_takes_of_all(alpha, beta, epsilon, private):
    problem = off.Problem(off.MarkovChain.binary(alpha, beta), 120, private, epsilon)
    made = off.design(problem, "owner")
    window = far_window(problem.chain, epsilon)
    everything = Menu(Ways.around(problem), epsilon, window).stopping
    of_all = OwnerPolicy(problem, "owner", (everything,))
    assert len(made.stoppings[0].options) < len(everything.options)
    assert made.redacted == pytest.approx(of_all.redacted, abs=1e-12)
    assert made.is_private
