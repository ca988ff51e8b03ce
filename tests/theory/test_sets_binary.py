"""Two values, a box of models: the walk of R1 and R4 against all outputs and kernels."""

from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.theory.first_release import directional_leakage
from offrecord.theory.sets import binary

JFK = {"alpha": (0.0174, 0.0247), "beta": (0.2515, 0.338)}


def side(rows, alpha, beta, odds=None, lengths=None, opens=False):
    """Directional leakages (1 over 0, 0 over 1) of one side."""
    low, high = (end[np.newaxis] for end in off.Box.binary(alpha, beta).forward)
    rows = np.array(rows, dtype=float)
    sizes = np.ones(len(rows), dtype=np.int64) if lengths is None else np.array(lengths)
    worst, *_ = binary.leakage(low, high, odds, (rows, sizes, 0, 1, len(rows), opens))
    return worst[1, 0], worst[0, 1]


# ---- vectors


@pytest.mark.parametrize(
    ("rows", "alpha", "beta", "expected"),
    [
        (
            [(0.7, 1), (0.5, 1), (0, 0)],
            (0.009, 0.011),
            (0.72, 0.88),
            (1.5539369864021935, 0.31946332231988706),
        ),
        (
            [(1, 1), (0.2, 0.9), (0.9, 0.3), (1, 0.4)],
            (0.2, 0.6),
            (0.3, 0.7),
            (0.6061358035703154, 0.4418327522790392),
        ),
        (
            [(1, 0.2), (0.3, 1), (1, 1)],
            (0.55, 0.9),
            (0.5, 0.8),
            (1.4867648914835254, 1.5040773967762744),
        ),
        ([(1, 1)] * 8 + [(0, 0)], *JFK.values(), (0.6834712541532629, 0.06564961426624384)),
    ],
)
def test_known_side_leakages(rows, alpha, beta, expected):
    assert side(rows, alpha, beta) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("marginals", "expected"),
    [
        ((0.04895891952729319, 0.08942795076031862), (0.8422823350945045, 0.1330427403283768)),
        ((0.0, 1.0), (1.01641318146979, 1.01641318146979)),
    ],
)
def test_known_left_sides_of_chains_known_forwards_alone(marginals, expected):
    odds = tuple(m / (1 - m) if m < 1 else np.inf for m in marginals)
    assert side([(1, 1)] * 8 + [(0, 0)], **JFK, odds=odds) == pytest.approx(expected, rel=1e-14)


def test_the_worst_start_may_lie_inside_its_interval():
    """R4: 0.550 and 0.587 at the ends of the interval, 1.769 within."""
    one = {"rows": [(0.1, 1)], "alpha": (0.1, 0.1), "beta": (0.1, 0.1)}
    ends = [side(**one, odds=(o, o))[0] for o in (0.01 / 0.99, 0.9 / 0.1)]
    assert ends == pytest.approx([0.5495766629, 0.5868007146], abs=1e-10)
    assert side(**one, odds=(0.01 / 0.99, 9.0))[0] == pytest.approx(1.7694223611, abs=1e-10)


# ---- against the definition

NEAR_EDGES = st.sampled_from([0.0, 1.0]) | st.floats(1e-9, 1.0)
ROWS = st.lists(st.tuples(NEAR_EDGES, NEAR_EDGES), min_size=1, max_size=4)


@st.composite
def intervals(draw, least=0.01, most=0.99):
    first, second = draw(st.floats(least, most)), draw(st.floats(least, most))
    return min(first, second), max(first, second)


def kernel(alpha, beta):
    return np.array([[1 - alpha, alpha], [beta, 1 - beta]])


def over_kernels(rows, choices):
    """The largest directional leakage over sequences of kernels, one for each record."""
    best = np.zeros((2, 2))
    for kernels in choices:
        best = np.maximum(best, directional_leakage(np.stack(kernels), rows))
    return best[1, 0], best[0, 1]


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, alpha=intervals(), beta=intervals(), seed=st.integers(0, 999))
def test_one_walk_is_the_worst_of_all_corners_and_none_inside_is_worse(rows, alpha, beta, seed):
    found = side(rows, alpha, beta)
    corners = [kernel(a, b) for a, b in product(alpha, beta)]
    worst = over_kernels(rows, product(corners, repeat=len(rows)))
    assert found == pytest.approx(worst, abs=1e-13)
    rng = np.random.default_rng(seed)
    inside = [[kernel(rng.uniform(*alpha), rng.uniform(*beta)) for _ in rows] for _ in range(20)]
    within = over_kernels(rows, inside)
    assert within[0] <= found[0] + 1e-13
    assert within[1] <= found[1] + 1e-13


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, alpha=st.floats(0.001, 0.999), beta=st.floats(0.001, 0.999))
def test_a_box_of_one_model_is_that_model(rows, alpha, beta):
    found = side(rows, (alpha, alpha), (beta, beta))
    alone = directional_leakage(kernel(alpha, beta), rows)
    assert found == pytest.approx((alone[1, 0], alone[0, 1]), abs=1e-13)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, alpha=intervals(), beta=intervals(), data=st.data())
def test_stretches_and_long_windows_are_the_records_they_stand_for(rows, alpha, beta, data):
    lengths = data.draw(st.lists(st.integers(1, 60), min_size=len(rows), max_size=len(rows)))
    each = np.repeat(rows, lengths, axis=0)
    together = side(rows, alpha, beta, lengths=lengths, opens=True)
    assert together == pytest.approx(side(each, alpha, beta, opens=True), rel=1e-9, abs=1e-12)


def test_boxes_may_differ_from_step_to_step():
    rng = np.random.default_rng(5)
    for _ in range(20):
        count = 3
        ends = np.sort(rng.uniform(0.02, 0.98, (count, 2, 2)), axis=2)
        boxes = [off.Box.binary(*step) for step in ends]
        low, high = (np.stack([box.forward[i] for box in boxes]) for i in (0, 1))
        rows = rng.choice([0.0, 0.3, 0.8, 1.0], (count, 2))
        walked = (rows, np.ones(count, dtype=np.int64), 0, 1, count, False)
        worst, *_ = binary.leakage(low, high, None, walked)
        corners = [[kernel(a, b) for a, b in product(*step)] for step in ends]
        assert (worst[1, 0], worst[0, 1]) == pytest.approx(
            over_kernels(rows, product(*corners)), abs=1e-13
        )
        for count_of in (1, 2, 3):  # windows and influences are walks too
            closed = np.ones((count_of, 2))
            closed[-1] = 0.0
            sizes = np.ones(count_of, dtype=np.int64)
            expected, *_ = binary.leakage(low, high, None, (closed, sizes, 0, 1, count_of, False))
            assert binary.windows(3, low, high)[count_of - 1] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    rows=ROWS,
    alpha=intervals(),
    beta=intervals(),
    odds=st.lists(st.floats(-4, 4), min_size=2, max_size=2),
    seed=st.integers(0, 999),
)
def test_no_start_within_its_interval_tells_more_than_the_left_walk(rows, alpha, beta, odds, seed):
    """R4: every record's odds lie in the interval, kernels are free in the box."""
    low, high = sorted(np.exp(odds))
    found = side(rows, alpha, beta, odds=(low, high))
    rng = np.random.default_rng(seed)
    for _ in range(40):
        kernels = []
        for _ in rows:  # nearest first; each step's earlier record has any odds in the interval
            rate = kernel(
                rng.choice([*alpha, rng.uniform(*alpha)]), rng.choice([*beta, rng.uniform(*beta)])
            )
            o = rng.choice([low, high, np.exp(rng.uniform(np.log(low), np.log(high)))])
            before = np.array([1, o]) / (1 + o)
            back = (before[:, np.newaxis] * rate).T
            kernels.append(back / back.sum(axis=1, keepdims=True))
        alone = directional_leakage(np.stack(kernels), rows)
        assert alone[1, 0] <= found[0] + 1e-12
        assert alone[0, 1] <= found[1] + 1e-12


@settings(max_examples=60, deadline=None)
@given(data=st.data(), count=st.integers(1, 5))
def test_the_sticky_corner_is_the_worst_model(data, count):
    """R2: rows that redact one value at least as often as the other, α + β ≤ 1 throughout."""
    alpha, beta = data.draw(intervals(0.01, 0.5)), data.draw(intervals(0.01, 0.5))
    pairs = [sorted((data.draw(NEAR_EDGES), data.draw(NEAR_EDGES))) for _ in range(count)]
    rows = np.array(pairs)[:, :: data.draw(st.sampled_from([1, -1]))]
    corner = side(rows, (alpha[0],) * 2, (beta[0],) * 2)
    assert side(rows, alpha, beta) == pytest.approx(corner, abs=1e-13)


def test_a_start_that_nobody_knows_and_a_transition_that_may_never_happen():
    """R4: ones that surely stay, and surely stand before the record, tell all of its redaction."""
    rows = [(0.1, 1.0)]
    found = side(rows, (0.1, 0.2), (0.0, 0.3), odds=(0.0, np.inf))
    assert found == pytest.approx((np.log(10), np.inf))
    nearly = side(rows, (0.1, 0.2), (0.0, 0.3), odds=(0.0, 1e9))
    assert nearly[0] == pytest.approx(np.log(10), abs=1e-8)
    flipped = side([(1.0, 0.1)], (0.1, 0.2), (0.7, 1.0), odds=(0.0, np.inf))
    nearly = side([(1.0, 0.1)], (0.1, 0.2), (0.7, 1.0), odds=(0.0, 1e9))
    assert flipped[0] == pytest.approx(nearly[0], abs=1e-6)
    assert flipped[0] >= np.log(10)


def true_hull(rows, low, high, odds=None):
    """R1, or R4, in 60 digits: over all four corners and both ends, whatever the box."""
    ends = []
    for i in (0, 1):  # what rows that sum to 1 leave of a value's probability to change
        j = 1 - i
        least = max(mpmath.mpf(low[i, j]), 1 - mpmath.mpf(high[i, i]))
        most = min(mpmath.mpf(high[i, j]), 1 - mpmath.mpf(low[i, i]))
        ends.append((least, most))
    hull = [mpmath.mpf(1), mpmath.mpf(1)]
    for zero, one in rows[::-1]:
        seen = [r * mpmath.mpf(one) / mpmath.mpf(zero) for r in hull] if zero * one > 0 else []
        seen += [0] if zero < 1 or (one == 0 < zero) else []
        seen += [mpmath.inf] if one < 1 or (zero == 0 < one) else []
        images = [
            stepped for r in seen for a, b in product(*ends) for stepped in step(r, a, b, odds)
        ]
        hull = [min(images), max(images)]
    return mpmath.log(hull[1]), -mpmath.log(hull[0])


def step(rho, alpha, beta, odds):
    """What a ratio comes to under one kernel; with odds, at their ends and where it is extreme."""
    if odds is None:
        if rho == mpmath.inf:
            return [(1 - beta) / alpha]
        return [(beta + (1 - beta) * rho) / (1 - alpha + alpha * rho)]
    one, zero = (1 - beta) / alpha, beta / (1 - alpha)
    tried = [mpmath.mpf(o) for o in odds]
    if rho == mpmath.inf:
        return [one / zero * (1 + zero * o) / (1 + one * o) for o in tried]
    if rho > 0:
        tried.append(min(max(1 / mpmath.sqrt(one * zero * rho), tried[0]), tried[1]))
    return [
        (1 + one * o * rho) / (1 + one * o) * (1 + zero * o) / (1 + zero * o * rho) for o in tried
    ]


def random_box(rng):
    """Intervals of all four probabilities; of some, rows leave less than they say."""
    alpha, beta = np.sort(10.0 ** -rng.uniform(0.05, 6, (2, 2)), axis=1)
    box = off.Box.binary(alpha, beta)
    low, high = (end.copy() for end in box.forward)
    if rng.random() < 0.5:
        low = np.maximum(low - 1e-3 * rng.random((2, 2)), 0.0)
        high = np.minimum(high + 1e-3 * rng.random((2, 2)), 1.0)
        low[0, 1], low[1, 0] = alpha[0], beta[0]
    return off.Box((low, high), (low, high))


@pytest.mark.parametrize("with_odds", [False, True], ids=["R1", "R4"])
def test_the_walk_is_off_by_no_more_than_it_says(with_odds):
    rng = np.random.default_rng(7 + with_odds)
    looked = 0
    for _ in range(80):
        box, count = random_box(rng), int(rng.integers(1, 40))
        rows = rng.choice([0.0, 1.0, 1.0, 1.0, -1.0], (count, 2))
        rows = np.where(rows < 0, 10.0 ** -rng.uniform(0, 9, (count, 2)), rows)
        rows[rng.random(count) < 0.8, rng.integers(2)] = 1.0
        odds = tuple(np.sort(10.0 ** rng.uniform(-4, 4, 2))) if with_odds else None
        low, high = (end[np.newaxis] for end in box.lifted[0])
        walked = (rows, np.ones(count, dtype=np.int64), 0, 1, count, False)
        worst, _, _, rounding = binary.leakage(low, high, odds, walked)
        with mpmath.workdps(60):
            truth = true_hull(rows.tolist(), *box.forward, odds)
            for found, true in zip((worst[1, 0], worst[0, 1]), truth, strict=True):
                if mpmath.isinf(true):
                    assert found == np.inf
                else:
                    missed = float(max(true, 0) - mpmath.mpf(float(found)))
                    within = rounding + 3 * 2.0**-53 * float(found)
                    # intervals of probabilities from 1e-6 on are rounded outwards, by some 1e-15
                    assert -within - 4e-9 * count <= missed <= within
                    looked += 1
    assert looked > 100


def test_rows_that_miss_the_sum_of_one_are_charged():
    """Accepted are rows that can sum to 1 within 1e-12: here those of one corner do so with less
    than 1, and with more.
    """
    missed = 9e-13
    box = off.Box(
        *[([[0.9 + missed, 0.1], [0.0, 0.9]], [[0.9 + missed, 0.1], [0.1 - missed, 0.9]])] * 2
    )
    low, high = (end[np.newaxis] for end in box.lifted[0])
    rows = np.vstack((np.ones((40, 2)), [[0, 0]]))
    worst, _, _, rounding = binary.leakage(
        low, high, None, (rows, np.ones(41, dtype=np.int64), 0, 1, 41, False)
    )
    alone = side(rows, (0.1, 0.1), (0.1, 0.1))
    assert worst[1, 0] < alone[0] - 1e-12
    assert alone[0] <= worst[1, 0] + rounding <= alone[0] + 1e-9


def test_numbers_too_small_to_be_held_only_widen():
    tiny = [(1.0, 1e-300), (1e-300, 1.0), (5e-324, 1.0), (1.0, 5e-324)]
    for rows in (*([row] for row in tiny), *product(tiny, repeat=2), *product(tiny, repeat=3)):
        found = side(rows, (0.2, 0.3), (0.1, 0.2))
        with mpmath.workdps(60):
            truth = true_hull(list(rows), *off.Box.binary((0.2, 0.3), (0.1, 0.2)).forward)
        assert found[0] >= float(truth[0]) - 1e-12
        assert found[1] >= float(truth[1]) - 1e-12


@pytest.mark.parametrize(("alpha", "beta"), [((0.2, 0.3), (0.1, 0.4)), ((0.6, 0.7), (0.5, 0.9))])
def test_a_long_stretch_tells_where_its_worst_output_is(alpha, beta):
    """Where the hull no longer moves the walk goes on to the stretch's nearest records."""
    rows, lengths = np.array([(0.5, 1.0), (1.0, 1.0)]), np.array([3000, 1])
    low, high = (end[np.newaxis] for end in off.Box.binary(alpha, beta).forward)
    found = binary.leakage(low, high, None, (rows, lengths, 0, 1, 2, True))
    each = np.repeat(rows[:1], 12, axis=0), np.ones(12, dtype=np.int64)
    short = binary.leakage(low, high, None, (*each, 0, 1, 12, True))
    worst, distance, value, _ = found
    assert worst == pytest.approx(short[0], abs=1e-4)
    for pair in ((0, 1), (1, 0)):
        if value[pair] == 0:
            assert (distance[pair], value[pair]) == (short[1][pair], short[2][pair])
    assert 0 in (value[0, 1], value[1, 0])


@pytest.mark.parametrize("rates", [((0.2, 0.3), (0.1, 0.4)), ((0.3, 0.7), (0.2, 0.9))])
@pytest.mark.parametrize("odds", [None, (0.1, 3.0)], ids=["R1", "R4"])
def test_a_walk_that_begins_near_is_the_whole_one(rates, odds):
    """What lies beyond many records no longer matters: the same as if all of it were walked."""
    rng = np.random.default_rng(3)
    rows = np.ones((1500, 2))
    rows[np.arange(1500), rng.integers(0, 2, 1500)] = rng.uniform(0.3, 1.0, 1500)
    low, high = (end[np.newaxis] for end in off.Box.binary(*rates).forward)
    walked = (rows, np.ones(1500, dtype=np.int64), 0, 1, 1500, False)
    near, _, _, charged = binary.leakage(low, high, odds, walked)
    steps = (np.repeat(end, 1500, axis=0) for end in (low, high))
    each, *_ = binary.leakage(*steps, odds, walked)
    whole = side(rows[:1000], *rates, odds=odds)  # too few to begin nearer
    assert near == pytest.approx(each, abs=1e-15)
    assert (near[1, 0], near[0, 1]) == pytest.approx(whole, abs=1e-15)
    assert charged < 2.0**-53 * 17 * 1100


# ---- problems and designs


@pytest.mark.parametrize(
    ("epsilon", "utilities", "plain"),
    [
        (0.1, (0.4000, 0.4857, 0.5116), (0.4075, 0.1120)),
        (0.5, (0.6000, 0.6340, 0.6508), (1.1217, 0.9726)),
        (1.0, (0.7000, 0.7046, 0.7244), (1.7391, 0.9726)),
        (1.5, (0.7000, 0.7704, 0.7760), (2.2033, 2.0042)),
        (2.0, (0.7000, 0.8147, 0.8190), (2.6436, 2.0042)),
        (3.0, (0.8000, 0.8829, 0.8829), (3.4376, 3.4376)),
    ],
)
def test_fig_2_with_a_box(epsilon, utilities, plain):
    chain = off.MarkovChain.binary(0.01, 0.8)
    alone = off.Problem(chain, 10, [1], epsilon)
    over = off.Problem(chain, 10, [1], epsilon, models=off.Box.binary((0.009, 0.011), (0.72, 0.88)))
    mechanisms = (off.BestWindow(), off.ThreeRegion("constant"), off.BestLocal())
    policies = [mechanism.design(over) for mechanism in mechanisms]
    assert [policy.utility for policy in policies] == pytest.approx(utilities, abs=5e-5)
    assert all(policy.is_private for policy in policies)
    assert policies[-1].utility_bound >= policies[-1].utility
    leaks = [
        off.leakage(over, mechanism.design(alone).sparse)
        for mechanism in (off.BestLocal(), off.BestWindow())
    ]
    assert leaks == pytest.approx(plain, abs=5e-5)


@pytest.mark.parametrize(
    ("rates", "lows", "window", "best", "plain"),
    [
        ((0.0036, 0.0121), (0.00273, 0.0091), 341, 340.70, (1.563, 1.565)),
        ((0.0209, 0.2938), (0.0178, 0.256), 19, 18.08, (1.478, 1.496)),
        ((0.0212, 0.2947), (0.0194, 0.273), 17, 16.45, (1.230, 1.267)),
        ((0.2440, 0.3277), (0.214, 0.290), 3, 2.66, (1.140, 1.140)),
        ((0.2676, 0.5649), (0.240, 0.518), 1, 0.74, (1.395, 1.395)),
        ((0.2023, 0.6784), (0.200, 0.675), 0, 0.0, (0.971, 0.971)),
    ],
)
def test_what_a_confidence_box_costs(rates, lows, window, best, plain):
    """Redactions beside one private record at ε = 1; highs far enough not to matter (R2)."""
    alpha, beta = rates
    box = off.Box.binary((lows[0], 1.3 * alpha), (lows[1], min(1.15 * beta, 1 - alpha)))
    chain, n = off.MarkovChain.binary(alpha, beta), 2001
    over = off.Problem(chain, n, [1001], 1.0, models=box)
    alone = off.Problem(chain, n, [1001], 1.0)
    costs, leaks = [], []
    for mechanism in (off.BestWindow(), off.BestLocal()):
        policy = mechanism.design(over)
        assert policy.is_private
        costs.append(n * (1 - policy.utility) - 1)
        leaks.append(off.leakage(over, mechanism.design(alone).sparse))
    assert costs == pytest.approx([window, best], abs=0.006)
    assert leaks == pytest.approx(plain, abs=0.002)


def test_windows_by_what_is_known_of_the_start():
    chain = off.MarkovChain.binary(0.0209, 0.2938)
    for start, window in (("stationary", (8, 11)), ("settled", (10, 10)), ("any", (10, 12))):
        box = off.Box.binary(**JFK, start=start)
        policy = off.BestWindow().design(off.Problem(chain, 201, [101], 1.0, models=box))
        redacted = np.flatnonzero(policy.redaction[:, 0])
        assert (100 - redacted[0], redacted[-1] - 100) == window


def test_no_model_of_the_box_tells_more_about_a_record_than_the_leakage():
    """R3, whole chains built from a marginal at the secret: kernels of both sides free."""
    rng = np.random.default_rng(11)
    for _ in range(40):
        n, p = 5, int(rng.integers(1, 6))
        a, b = rng.uniform(0.1, 0.9, 2)
        around = np.array([a, b, a, b])[:, np.newaxis] + [[-1, 1]] * rng.uniform(0, 0.1, (4, 2))
        ends = np.clip(around, 0.01, 0.99)
        ahead, back = off.Box.binary(*ends[:2]), off.Box.binary(*ends[2:])
        box = off.Box(tuple(ahead.forward), tuple(back.backward))
        matrix = rng.choice([0.0, 0.4, 1.0], (n, 2), p=[0.3, 0.3, 0.4])
        matrix[p - 1] = 1.0
        problem = off.Problem(off.MarkovChain.binary(a, b), n, [p], 1.0, models=box)
        total = off.leakage(problem, matrix)
        sides = []
        for rows, pair in ((matrix[: p - 1][::-1], ends[2:]), (matrix[p:], ends[:2])):
            corners = [kernel(a, b) for a, b in product(*pair)]
            every = np.zeros((2, 2))
            for kernels in product(corners, repeat=len(rows)):
                if len(rows):
                    every = np.maximum(every, directional_leakage(np.stack(kernels), rows))
            sides.append(every)
        assert total == pytest.approx((sides[0] + sides[1]).max(), abs=1e-12)


def test_no_window_serves_where_a_transition_was_never_seen():
    """A chain that may never leave 0 never forgets; only its zeros can be released, and seldom."""
    box = off.Box.binary((0.0, 0.1), (0.2, 0.3))
    problem = off.Problem(off.MarkovChain.binary(0.05, 0.25), 41, [21], 1.0, models=box)
    assert off.BestWindow().design(problem).utility == 0.0
    for mechanism in (off.ThreeRegion("constant"), off.BestLocal()):
        policy = mechanism.design(problem)
        assert policy.is_private
        assert np.all(policy.redaction[:, 1] == 1.0)


def test_a_box_beyond_independence_is_judged_by_the_walk():
    """α + β from 0.3 to 1.5: no corner is the worst for everything."""
    box = off.Box.binary((0.0178, 0.6), (0.256, 0.9))
    problem = off.Problem(off.MarkovChain.binary(0.0209, 0.2938), 101, [51], 1.0, models=box)
    policy = off.BestLocal().design(problem)
    assert policy.is_private
    assert policy.utility >= off.BestWindow().design(problem).utility > 0


def test_the_papers_objects_are_of_the_chain_itself():
    alone = off.MarkovChain.binary(0.02, 0.3)
    over = alone.with_box(off.Box.binary((0.01, 0.03), (0.2, 0.4)))
    assert off.delta_star(over, 1.0, 100) == off.delta_star(alone, 1.0, 100)
    records = np.arange(1, 20)
    assert np.array_equal(off.regions(over, 5, records, 1.0), off.regions(alone, 5, records, 1.0))


def test_the_quilt_is_that_of_the_sticky_corner():
    box = off.Box.binary((0.01, 0.03), (0.2, 0.4))
    over = off.Problem(off.MarkovChain.binary(0.02, 0.3), 101, [51], 1.0, models=box)
    corner = off.Problem(off.MarkovChain.binary(0.01, 0.2), 101, [51], 1.0)
    designed = off.MarkovQuilt().design(over)
    assert designed.is_private
    assert np.array_equal(designed.redaction, off.MarkovQuilt().design(corner).redaction)
