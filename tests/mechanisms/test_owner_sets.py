"""Stopping over a box of kernels: the referee against all corner sequences, all paths and all
outcomes in rationals; designs against searched sequences; what is too much is caught.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.optimize import nnls

import offrecord as off
from offrecord.mechanisms.owner.designing import _set_walk, set_referee, under_set
from offrecord.mechanisms.owner.designing.set_referee import leakage_over, serves_set
from offrecord.mechanisms.owner.designing.under_set import side_over
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.models.box import Intervals
from offrecord.release.coins import ALWAYS

#: Boxes at 95 %, hourly rain with 8,691 and with 10⁵ transitions, and rain by day with 1,460.
RAIN = {"alpha": (0.0179, 0.0279), "beta": (0.257, 0.372)}
MUCH_RAIN = {"alpha": (0.0199, 0.0228), "beta": (0.282, 0.316)}
DAILY = {"alpha": (0.214, 0.306), "beta": (0.29, 0.404)}


def intervals(alpha, beta):
    return off.Box.binary(alpha, beta).lifted[0]


def kernel(alpha, beta):
    return np.array([[1 - alpha, alpha], [beta, 1 - beta]])


def law(alpha, beta):
    return np.array([beta, alpha]) / (alpha + beta)


# ---- the definition, in rationals


def probability(limit):
    return Fraction(1) if limit == ALWAYS else Fraction(int(limit), 2**64)


def outcome_masses(side, kernels):
    """Pr(stop, value there, value at the deadline | x) of every outcome, by all paths; `kernels`
    are those of each step.
    """
    masses = {}
    for x in range(2):
        for path in product(range(2), repeat=side.deadline):
            walked = (x, *path)
            chance = math.prod(one[walked[t]][walked[t + 1]] for t, one in enumerate(kernels))
            for level, distance in enumerate(side.levels.tolist()):
                here, far = path[distance - 1], path[-1]
                stop = Fraction(1)
                if level < len(side.levels) - 1:
                    stop = probability(side.limits[far, level, x, here, 0])
                key = (level, path[distance - 1 :])
                masses.setdefault(key, [Fraction(0)] * 2)[x] += chance * stop
                chance *= 1 - stop
    return masses


def told(masses):
    """The largest ratio of an outcome under two values; None where it is infinite."""
    possible = [pair for pair in masses.values() if any(pair)]
    if any(0 in pair for pair in possible):
        return None
    return max(max(a / b, b / a) for a, b in possible)


def closed(side):
    """The plain window at the deadline."""
    return StoppingSide(side.direction, side.budget, side.levels[-1:], side.limits[:, :0])


def exact_leakage(side, sequences):
    return max(
        told(outcome_masses(one, kernels)) for kernels in sequences for one in (side, closed(side))
    )


def exact_kernel(alpha, beta):
    return [[1 - Fraction(alpha), Fraction(alpha)], [Fraction(beta), 1 - Fraction(beta)]]


def corner_sequences(box, length):
    ends = []
    for alpha in (box.low[0, 1], box.high[0, 1]):
        ends += [exact_kernel(alpha, beta) for beta in (box.low[1, 0], box.high[1, 0])]
    return product(ends, repeat=length)


def random_box(rng, width):
    alpha, beta = rng.uniform(0.02, 0.6, 2)
    return intervals(
        *((one, min(one + rng.uniform(0, width), 0.97)) for one in (float(alpha), float(beta)))
    )


def random_side(rng, levels):
    """Stops that differ little between x, most of the time, so that ratios are finite."""
    base = rng.uniform(0, 1, (2, len(levels) - 1, 1, 2, 1))
    stops = np.clip(base * np.exp(rng.uniform(-0.5, 0.5, (2, len(levels) - 1, 2, 2, 1))), 0, 0.999)
    stops *= rng.random(base.shape) < 0.8
    limits = np.floor(stops * 2.0**64).astype(np.uint64)
    return StoppingSide(1, 1.0, np.array(levels), limits)


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_is_the_largest_over_all_corner_sequences_paths_and_outcomes(seed):
    rng = np.random.default_rng(seed)
    levels = [(1, 2, 3), (2, 3), (1, 3), (1, 2)][seed % 4]
    box, side = random_box(rng, 0.2), random_side(rng, levels)
    exact = math.log(exact_leakage(side, corner_sequences(box, side.deadline)))
    bound = leakage_over(box, side)
    assert exact <= bound <= exact + 1e-9


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 160))
def test_more_of_the_same_with_more_levels(seed):
    rng = np.random.default_rng(seed)
    levels = [(1, 2, 3, 4), (1, 3, 4), (2, 4)][seed % 3]
    box, side = random_box(rng, 0.3), random_side(rng, levels)
    exact = math.log(exact_leakage(side, corner_sequences(box, side.deadline)))
    assert exact <= leakage_over(box, side) <= exact + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_kernels_inside_the_box_tell_no_more(seed):
    rng = np.random.default_rng(50 + seed)
    box, side = random_box(rng, 0.3), random_side(rng, (1, 2, 4))
    inside = [
        [
            exact_kernel(
                *(float(rng.uniform(box.low[x, 1 - x], box.high[x, 1 - x])) for x in (0, 1))
            )
            for _ in range(side.deadline)
        ]
        for _ in range(10)
    ]
    assert math.log(exact_leakage(side, inside)) <= leakage_over(box, side)


def test_a_box_of_one_kernel_is_that_kernel():
    side = random_side(np.random.default_rng(3), (1, 2, 3))
    box = intervals((0.125, 0.125), (0.375, 0.375))
    exact = exact_leakage(side, [[exact_kernel(0.125, 0.375)] * 3])
    assert leakage_over(box, side) == pytest.approx(math.log(exact), abs=1e-12)


def test_stopping_under_one_value_alone_is_told_for_ever():
    limits = np.zeros((2, 1, 2, 2, 1), dtype=np.uint64)
    limits[0, 0, 1, 0] = 2**40
    side = StoppingSide(1, 1.0, np.array([1, 2]), limits)
    assert leakage_over(intervals(**DAILY), side) == np.inf
    limits[0, 0, 0, 0] = 2**40
    assert leakage_over(intervals(**DAILY), side) < 2


def test_stopping_surely_leaves_nothing_for_later_levels():
    limits = np.full((2, 2, 2, 2, 1), ALWAYS)
    side = StoppingSide(1, 1.0, np.array([1, 2, 3]), limits)
    box = intervals(**DAILY)
    exact = exact_leakage(side, corner_sequences(box, 3))
    assert leakage_over(box, side) == pytest.approx(math.log(exact), abs=1e-9)


def test_what_is_not_served_is_infinite():
    side = random_side(np.random.default_rng(0), (1, 2))
    seen = intervals(**DAILY)
    ahead = StoppingSide(1, 1.0, side.levels, np.repeat(side.limits, 2, axis=4))
    unseen = Intervals(np.array([[0.9, 0.0], [0.2, 0.7]]), np.array([[1.0, 0.1], [0.3, 0.8]]))
    three = Intervals(np.full((3, 3), 0.2), np.full((3, 3), 0.5))
    assert leakage_over(seen, ahead) == np.inf
    assert leakage_over(unseen, side) == np.inf
    assert leakage_over(three, side) == np.inf
    assert leakage_over(seen, StoppingSide(1, 1.0, side.levels[:0], side.limits[:, :0])) == 0.0


def test_which_boxes_are_served():
    assert serves_set(off.Box.binary(**RAIN))
    assert not serves_set(off.Box.binary(**RAIN, start="settled"))
    assert not serves_set(off.Box.binary((0.0, 0.1), (0.2, 0.3)))
    thirds = np.full((3, 3), 1 / 3)
    assert not serves_set(off.Box((thirds, thirds), (thirds, thirds)))


# ---- many steps


def walked_leakage(side, kernels):
    """By the walk of one sequence of kernels (4 numbers), in floats."""
    most = 0.0
    stops = side.limits[..., 0] / 2.0**64
    for far in range(2):
        masses, distance = np.eye(2), 0
        for level, stop in enumerate(side.levels):
            for step in range(distance, stop):
                masses = masses @ kernels[step]
            distance = stop
            if level == len(side.levels) - 1:
                logs = np.log(masses[:, far])
                most = max(most, abs(logs[0] - logs[1]))
                break
            for value in range(2):
                if stops[far, level, :, value].any():
                    logs = np.log(masses[:, value] * stops[far, level, :, value])
                    most = max(most, abs(logs[0] - logs[1]))
            masses = masses * (1 - stops[far, level])
    return most


def searched_leakage(side, box, rng, count):
    """The largest over random corner sequences with few changes, and over single corners."""
    corners = set_referee.corners_of(box)
    worst = 0.0
    for at in range(count):
        changes = np.sort(rng.integers(0, side.deadline, at % 4))
        pieces = np.searchsorted(changes, np.arange(side.deadline), side="right")
        worst = max(worst, walked_leakage(side, corners[rng.integers(0, 4, 8)[pieces]]))
    return worst


@pytest.fixture(scope="module")
def slow():
    """A slow chain with a side that stops little, 24 steps."""
    box = intervals((0.02, 0.03), (0.05, 0.08))
    rng = np.random.default_rng(5)
    levels = np.array([3, 6, 9, 13, 18, 24])
    base = rng.uniform(0.05, 0.4, (2, 5, 1, 2, 1))
    stops = base * np.exp(rng.uniform(-0.1, 0.1, (2, 5, 2, 2, 1)))
    return box, StoppingSide(1, 1.0, levels, np.floor(stops * 2.0**64).astype(np.uint64))


def test_no_searched_sequence_exceeds_the_bound(slow):
    box, side = slow
    bound = leakage_over(box, side)
    found = searched_leakage(side, box, np.random.default_rng(8), 400)
    assert bound - 1e-9 <= found <= bound


@pytest.fixture
def change_referee(monkeypatch):
    """Another number or function in the referee, which then remembers nothing of before."""

    def change(name, other):
        monkeypatch.setattr(set_referee, name, other)
        forget()

    def forget():
        set_referee._verdicts.clear()
        set_referee._told.cache_clear()
        set_referee._leaps.cache_clear()

    yield change
    forget()


def test_fewer_rays_only_widen_the_cone(slow, change_referee):
    box, side = slow
    change_referee("_RAYS", 1_500)
    exact = leakage_over(box, side)
    for rays in (200, 30):
        change_referee("_RAYS", rays)
        wider = leakage_over(box, side)
        assert exact - 1e-9 <= wider <= exact + 1e-6


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 19, 45])
@pytest.mark.parametrize("seed", range(4))
def test_leaps_hold_every_product_of_kernels_of_the_set(steps, seed, change_referee):
    """Each is a sum of rays with no negative share, up to what is said to be missed."""
    rng = np.random.default_rng(seed)
    change_referee("_MOST_CORNERS", 60)
    box = random_box(rng, 0.2) if seed else intervals((0.0024, 0.0114), (0.0112, 0.0535))
    corners = set_referee.corners_of(box)
    leap = set_referee._leaps(corners.tobytes()).over(steps)
    assert len(leap.rays) <= 24
    assert leap.missed < 1e-8
    for kind in range(60):
        chosen = rng.integers(0, 4, steps)
        if kind % 3 == 0:  # one change at most
            chosen = np.where(np.arange(steps) < rng.integers(0, steps + 1), *rng.integers(0, 4, 2))
        kernels = corners[chosen]
        if kind % 3 == 1:  # inside
            shares = rng.dirichlet(np.full(4, 0.3), steps)
            kernels = np.einsum("sc,cij->sij", shares, corners)
        together = np.linalg.multi_dot([np.eye(2), *kernels, np.eye(2)])
        parts, _ = nnls(leap.rays.T, together.ravel())
        logs = np.log(together.ravel() / (leap.rays.T @ parts))
        assert logs.max() - logs.min() <= leap.missed + 1e-11


def test_cones_that_are_made_wider_thirty_times_are_no_wider_where_it_counts():
    """A wide set of slow chains, a deadline of 158 records: what the search found at its worst is
    all there is, so that a design need not aim below its budget.
    """
    box = intervals((0.0025, 0.0115), (0.012, 0.0608))
    one = np.array([[0.995, 0.005], [0.02, 0.98]])
    side = side_over(box, one, 1, np.array([0.8, 0.2]), 0.5, levels=6)
    kernels = set_referee.corners_of(box)
    ground = _set_walk.Ground.of(kernels, side.levels, walks=4)
    found = 0.0
    for limits in side.limits[..., 0]:
        sequences = _set_walk.worst_sequences(ground, limits / 2.0**64)
        walks = kernels[sequences.reshape(-1, side.deadline + 1)[:, 1:]]
        found = max(found, *(walked_leakage(side, walk) for walk in walks))
    assert 0.499 < found <= leakage_over(box, side) <= min(found + 1e-3, 0.5)


def test_what_another_process_found_counts_for_just_that_side_and_set(slow, change_referee):
    box, side = slow
    change_referee("_REMEMBERED", 128)
    assert set_referee.verdict(box, side) == {}
    own = leakage_over(box, side)
    (asked,) = set_referee.verdict(box, side)
    set_referee.remember({asked: (9.0, 8.0)})
    assert set_referee.leakages_over(box, side).tolist() == [9.0, 8.0]
    limits = side.limits.copy()
    limits[0, 0, 0, 0, 0] += 1
    for other_box, other in [
        (intervals((0.02, 0.03), (0.05, 0.0801)), side),
        (box, StoppingSide(1, 1.0, side.levels, limits)),
        (box, StoppingSide(1, 1.0, np.append(side.levels[:-1], 25), side.limits)),
    ]:
        assert leakage_over(other_box, other) == pytest.approx(own, abs=0.1)


@pytest.mark.parametrize("rare", [1e-162, 5e-324, 2.0**-101])
def test_steps_so_rare_that_products_underflow_are_not_served(rare):
    """Nothing would be left of a stop that tells 6.8 where it happens."""
    stops = np.zeros((2, 2, 2, 2, 1), dtype=np.uint64)
    stops[:, 0, :, 1] = ALWAYS
    stops[:, 1, 0, 0], stops[:, 1, 1, 0] = int(0.9 * 2**64), int(0.001 * 2**64)
    side = StoppingSide(1, 1.0, np.array([20, 40, 41]), stops)
    assert leakage_over(intervals((1 - 2.0**-40,) * 2, (rare, rare)), side) == np.inf
    assert leakage_over(intervals((1 - 2.0**-40,) * 2, (1e-9, 1e-9)), side) >= 6.802


def test_two_threads_that_ask_at_once_find_what_one_finds(change_referee):
    box = intervals((0.98, 0.985), (0.98, 0.985))
    sides = []
    for first in (20, 22):
        stops = np.full((2, 1, 2, 2, 1), int(0.2 * 2**64), dtype=np.uint64)
        stops[:, :, 0, 0] = stops[:, :, 1, 1] = int(0.7 * 2**64)
        sides.append(StoppingSide(1, 1.0, np.array([first, first + 150]), stops))
    alone = [leakage_over(box, side) for side in sides]
    for _ in range(5):
        change_referee("_REMEMBERED", 128)  # which forgets all
        with ThreadPoolExecutor(2) as threads:
            assert list(threads.map(partial(leakage_over, box), sides)) == alone


def test_a_cone_that_is_too_large_is_given_up(slow, change_referee):
    box, side = slow
    change_referee("_MOST_RAYS", 100)
    assert leakage_over(box, side) == np.inf


def test_a_hull_that_leaves_out_too_much_changes_nothing(slow, change_referee):
    """Rays that are no combination of those that are kept are kept, too."""
    _, side = slow
    short = StoppingSide(1, 1.0, side.levels[:2], side.limits[:, :1])
    box = intervals((0.02, 0.03), (0.05, 0.08))
    exact = leakage_over(box, short)
    right = set_referee._hull

    def careless(coordinates):
        found = right(coordinates)
        if found is None or len(found.vertices) < 8:
            return found
        few = found.vertices[::2]
        inner = right(coordinates[few])
        return inner and inner._replace(vertices=few[inner.vertices], faces=few[inner.faces])

    change_referee("_hull", careless)
    assert leakage_over(box, short) == pytest.approx(exact, abs=1e-9)


# ---- designs


def expected_redactions(side, one, weights):
    """Under one kernel throughout, by the law of the stop."""
    masses = outcome_masses(side, [one.tolist()] * side.deadline)
    return sum(
        float(weights[x] * mass[x]) * (side.levels[level] - 1)
        for (level, _), mass in masses.items()
        for x in range(2)
    )


def designed(box, alpha, beta, budget, levels=24):
    nominal, weights = kernel(alpha, beta), law(alpha, beta)
    return side_over(intervals(**box), nominal, 1, weights, budget, levels=levels), nominal, weights


@pytest.mark.parametrize(
    ("box", "alpha", "beta", "most"),
    [(DAILY, 0.2437, 0.3274, 0.49), (MUCH_RAIN, 0.0209, 0.2938, 1.54), (RAIN, 0.021, 0.2941, 2.35)],
    ids=["daily", "much rain", "rain"],
)
def test_designs_keep_within_the_budget_and_redact_little(box, alpha, beta, most):
    side, nominal, weights = designed(box, alpha, beta, 0.5)
    assert side.budget == 0.5
    assert leakage_over(intervals(**box), side) <= 0.5
    found = searched_leakage(side, intervals(**box), np.random.default_rng(1), 100)
    assert 0.45 <= found <= 0.5
    assert expected_redactions(side, nominal, weights) <= most


def test_a_design_for_a_set_of_one_kernel_is_that_of_the_kernel():
    """1.330 is the best of hourly rain at a side's budget of ½ that looks at the far value."""
    one = {"alpha": (0.0209, 0.0209), "beta": (0.2938, 0.2938)}
    side, nominal, weights = designed(one, 0.0209, 0.2938, 0.5)
    assert expected_redactions(side, nominal, weights) == pytest.approx(1.33, abs=0.01)


def test_a_stop_that_is_a_little_too_likely_is_caught():
    side, *_ = designed(DAILY, 0.2437, 0.3274, 0.5)
    box = intervals(**DAILY)
    caught = 0
    for place in zip(*np.nonzero(side.limits), strict=True):
        limits = side.limits.copy()
        limits[place] = np.uint64(min(int(limits[place]) // 20 * 21, 2**64 - 2**11))
        caught += leakage_over(box, StoppingSide(1, 0.5, side.levels, limits)) > 0.5
    assert caught >= np.count_nonzero(side.limits) // 2


def test_levels_are_placed_up_to_the_deadline():
    nominal, weights = kernel(0.0036, 0.012), law(0.0036, 0.012)
    levels = under_set.placed_levels(nominal, weights, 140, 20)
    assert levels[-1] == 140
    assert len(levels) <= 20
    assert np.all(np.diff(levels) > 0)
    assert levels[0] >= 1
    assert under_set.placed_levels(nominal, weights, 5, 20).tolist() == [1, 2, 3, 4, 5]


def test_where_the_window_is_best_there_is_no_design():
    fast = intervals((0.45, 0.5), (0.45, 0.5))
    assert side_over(fast, kernel(0.48, 0.48), 1, law(0.48, 0.48), 0.5, levels=8) is None
    unseen = intervals((0.0, 0.1), (0.2, 0.3))
    assert side_over(unseen, kernel(0.05, 0.25), 1, law(0.05, 0.25), 0.5, levels=8) is None


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_designs_for_random_boxes_keep_within_the_budget(seed):
    rng = np.random.default_rng(seed)
    alpha, beta = rng.uniform(0.02, 0.3, 2)
    share = rng.uniform(0.05, 0.2)
    box = intervals(*((one * (1 - share), one * (1 + share)) for one in (alpha, beta)))
    budget = float(rng.uniform(0.2, 1.0))
    side = side_over(box, kernel(alpha, beta), 1, law(alpha, beta), budget, levels=16)
    if side is not None:
        assert leakage_over(box, side) <= budget
        assert searched_leakage(side, box, rng, 300) <= budget


@pytest.mark.soak
def test_a_slow_chain_of_many_steps_is_designed_for():
    """Occupancy by the minute with 10⁵ transitions: a window of 146 a side."""
    box = {"alpha": (0.00318, 0.00452), "beta": (0.0106, 0.0151)}
    side, nominal, weights = designed(box, 0.0036, 0.012, 0.5)
    assert leakage_over(intervals(**box), side) <= 0.5
    assert 0.47 <= searched_leakage(side, intervals(**box), np.random.default_rng(2), 300) <= 0.5
    stops, reached, distance, waited = side.limits[..., 0] / 2.0**64, [np.eye(2)] * 2, 0, 0.0
    for level, stop in enumerate(side.levels.tolist()):
        beyond = np.linalg.matrix_power(nominal, side.deadline - distance)
        waited += (stop - distance - (distance == 0)) * sum(
            weights @ reached[far] @ beyond[:, far] for far in range(2)
        )
        if level < len(side.levels) - 1:
            step = np.linalg.matrix_power(nominal, stop - distance)
            reached = [(reached[far] @ step) * (1 - stops[far, level]) for far in range(2)]
        distance = stop
    assert waited <= 60
