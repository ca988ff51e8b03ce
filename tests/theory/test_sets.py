"""Worst cases over a box of kernels (R5, R6) against kernels at its corners and inside."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from offrecord.theory.first_release import directional_leakage
from offrecord.theory.sets import cones, events, many, pairwise, planar, polytropes, ranges
from offrecord.theory.sets.walks import Walk

#: A box of three states, partly redacted rows, and what they leak at worst.
LOW = np.array([[[0.55, 0.15, 0.05], [0.35, 0.2, 0.15], [0.1, 0.2, 0.4]]])
HIGH = np.array([[[0.75, 0.3, 0.2], [0.55, 0.4, 0.3], [0.3, 0.4, 0.6]]])
ROWS = np.array([(1, 1, 1), (0.6, 1, 1), (0, 0.5, 1), (0, 0, 0)])
WORST = [
    [0, 0.429275757, 0.976915354],
    [0.540638487, 0, 0.796943974],
    [0.892793344, 0.625233099, 0],
]
#: One of each row of ROWS.
EACH = np.ones(4, dtype=np.int64)

soak = pytest.mark.soak


def cases(count, more):
    """Seeds of random cases: some for every run, more for a soak."""
    return [*range(count), *(pytest.param(seed, marks=soak) for seed in range(count, more))]


def random_box(rng, k, *, width=0.1, sticky=0.0, unseen=0.0, steps=1):
    """(steps, k, k) lows and highs around random kernels; some of the lows 0."""
    kernel = rng.dirichlet(np.ones(k), size=(steps, k))
    kernel = (1 - sticky) * kernel + sticky * np.eye(k)
    low = np.clip(kernel - width * rng.random(kernel.shape), 0, 1)
    high = np.clip(kernel + width * rng.random(kernel.shape), 0, 1)
    return np.where(rng.random(low.shape) < unseen, 0.0, low), high


def random_rows(rng, records, k):
    return rng.choice([0.0, 0.3, 0.8, 1.0, 1.0, 1.0], size=(records, k))


def random_walk(rng, records, k):
    """Rows of a side on which something may be seen."""
    while True:
        rows, opens = random_rows(rng, records, k), bool(rng.integers(2))
        if (rows < 1).any():
            return rows, opens


def lifted_box(rng, m, width=0.03, backward=False):
    """Histories of m binary values: two successors each, or two predecessors."""
    states = 2**m
    low, high = np.zeros((1, states, states)), np.zeros((1, states, states))
    for state, chance in enumerate(rng.uniform(0.1, 0.9, size=states)):
        for value, p in enumerate((1 - chance, chance)):
            other = state // 2 + value * states // 2 if backward else (2 * state + value) % states
            low[0, state, other], high[0, state, other] = max(p - width, 0), min(p + width, 1)
    return low, high


def row_vertices(low, high):
    """All rows at corners of { low ≤ p ≤ high, sum 1 }: every entry but one at its low or high."""
    possible = np.flatnonzero(high)
    found = []
    for free in possible:
        others = possible[possible != free]
        for ends in product((low, high), repeat=len(others)):
            p = np.zeros(len(low))
            p[others] = [end[j] for end, j in zip(ends, others, strict=True)]
            p[free] = 1 - p.sum()
            if low[free] - 1e-12 <= p[free] <= high[free] + 1e-12:
                found.append(np.maximum(p, 0.0))
    return np.unique(np.round(found, 14), axis=0)


def corners_of(low, high):
    """The corners of each row of a box (k, k)."""
    return [row_vertices(*row) for row in zip(low, high, strict=True)]


def random_kernel(rng, corners, *, inside):
    """A kernel of a box: rows at corners, or mixtures of corners."""
    rows = []
    for corner in corners:
        weights = rng.dirichlet(np.ones(len(corner))) if inside else np.eye(len(corner))[0]
        rows.append(rng.permutation(corner).T @ weights)
    return np.array(rows) / np.sum(rows, axis=1, keepdims=True)


def by_definition(rows, low, high):
    """The worst over all outputs of up to two records and all kernels at corners, no shortcut.

    low, high: (2, k, k). Beyond the last record the chain ends.
    """
    k = rows.shape[1]
    ahead = [np.ones(k)]
    for d in range(len(rows), 0, -1):
        emissions = [rows[d - 1], *((1 - rows[d - 1]) * np.eye(k))]
        outputs = np.array([e * h for e in emissions for h in ahead])
        outputs = outputs[outputs.any(axis=1)]
        corners = corners_of(low[d - 1], high[d - 1])
        chances = [corner @ outputs.T for corner in corners]  # (corners, outputs) of each row
        if d == 1:
            return _largest_ratios(chances)
        ahead = [
            np.array(h) for o in range(len(outputs)) for h in product(*(c[:, o] for c in chances))
        ]
    raise AssertionError


def _largest_ratios(chances):
    k = len(chances)
    worst = np.zeros((k, k))
    for x, other in product(range(k), repeat=2):
        if x != other:
            above, below = chances[x].max(axis=0), chances[other].min(axis=0)
            with np.errstate(divide="ignore"):
                ratios = np.log(above[above > 0]) - np.log(np.maximum(below[above > 0], 0))
            worst[x, other] = max(0, ratios.max(initial=0))
    return worst


def per_step(box, steps):
    return np.broadcast_to(box, (steps, *box.shape[1:]))


# ---- the numbers known


def test_the_box_of_three_states():
    found = many.bound(ROWS, EACH, False, LOW, HIGH)
    assert found.method == "cones"
    assert found.rounding == 0.0
    assert found.worst == pytest.approx(np.array(WORST), abs=1e-9)


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
    ],
)
def test_two_states_by_pairs_are_exact(rows, alpha, beta, expected):
    """A cone in two dimensions is its two ratios; the worst case of each is known (R1)."""
    low = np.array([[[1 - alpha[1], alpha[0]], [beta[0], 1 - beta[1]]]])
    high = np.array([[[1 - alpha[0], alpha[1]], [beta[1], 1 - beta[0]]]])
    worst = many.bound(np.array(rows), np.ones(len(rows)), False, low, high).worst
    assert (worst[1, 0], worst[0, 1]) == pytest.approx(expected, abs=1e-11)


# ---- cones: never below, and attained


@pytest.mark.parametrize("seed", cases(24, 200))
def test_cones_are_what_corners_and_all_outputs_give(seed):
    rng = np.random.default_rng(seed)
    k, records = (3, 4)[seed % 2], 1 + seed // 2 % 2
    if k == 4:
        records = 1  # at two records its corners are too many
    low, high = random_box(
        rng, k, width=rng.choice([0.05, 0.3]), unseen=0.3 * (seed % 3 == 0), steps=2
    )
    rows, _ = random_walk(rng, records, k)
    found = many.bound(rows, np.ones(records), False, low, high)
    exact = by_definition(rows, low, high)
    assert found.method == "cones"
    assert (found.worst >= exact - 1e-13).all()
    assert found.worst == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("seed", cases(12, 100))
def test_no_kernels_of_the_box_leak_more(seed):
    rng = np.random.default_rng(seed)
    k, records = 3 + seed % 4, 5
    low, high = random_box(rng, k, sticky=0.5, unseen=0.2 * (seed % 2), steps=records)
    rows, _ = random_walk(rng, records, k)
    worst = many.bound(rows, np.ones(records), False, low, high).worst
    corners = [corners_of(*box) for box in zip(low, high, strict=True)]
    for inside in (False, True) * 8:
        kernels = [random_kernel(rng, corner, inside=inside) for corner in corners]
        assert (directional_leakage(kernels, rows) <= worst + 1e-12).all()


@pytest.mark.parametrize("seed", cases(8, 60))
@pytest.mark.parametrize("k", [3, 4])
def test_a_box_of_one_kernel_is_that_kernel(seed, k):
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.ones(k), size=(6, k))
    rows, opens = random_walk(rng, 6, k)
    found = many.bound(rows[:5], np.ones(5), opens, kernel, kernel)
    rows[5] = 0.0 if opens else 1.0
    assert found.method == "cones"
    assert found.worst == pytest.approx(directional_leakage(kernel, rows), abs=1e-8)


def test_stretches_are_their_records():
    lengths = np.array([3, 0, 2, 4])
    long = many.bound(ROWS, lengths, False, LOW, HIGH).worst
    single = np.repeat(ROWS, lengths, axis=0)
    assert (many.bound(single, np.ones(len(single)), False, LOW, HIGH).worst == long).all()


def test_nothing_matters_beyond_a_record_that_may_release_each_state():
    telling = many.bound(np.array([(1, 1, 1), (0.9, 0.2, 0)]), np.ones(2), False, LOW, HIGH).worst
    assert (telling == many.bound(np.ones((1, 3)), np.ones(1), True, LOW, HIGH).worst).all()
    beyond = np.array([(1, 1, 1), (0.9, 0.2, 0), (0.3, 1, 0.5)])
    assert (many.bound(beyond, np.ones(3), True, LOW, HIGH).worst == telling).all()


def test_what_is_never_released_tells_nothing():
    for k in (3, 5, 8):
        low, high = random_box(np.random.default_rng(k), k)
        assert not many.bound(np.ones((2, k)), np.array([7, 2]), False, low, high).worst.any()
        assert not many.bound(np.ones((0, k)), np.ones(0), False, low, high).worst.any()


# ---- outer bounds: never below cones


@pytest.mark.parametrize("unseen", [0.0, 0.3])
@pytest.mark.parametrize("seed", cases(60, 600))
def test_bounds_are_never_below_the_cone(seed, unseen):
    rng = np.random.default_rng([seed, int(10 * unseen)])
    k, records = 3 + seed % 2, int(rng.integers(1, 6))
    low, high = random_box(
        rng, k, width=rng.choice([0.01, 0.05, 0.2]), sticky=0.5 * (seed % 3 == 0), unseen=unseen
    )
    walk = Walk.of(*_with_lengths(*random_walk(rng, records, k)))
    exact = cones.side(walk, low, high)
    assert (by_pairs(walk, low, high) >= exact - 1e-6).all()
    assert (by_events(walk, low, high) >= exact - 1e-6).all()
    assert (ranges.side(walk, low, high) >= exact - 1e-6).all()


def by_pairs(walk, low, high):
    """Pairwise bounds alone."""
    bounds = np.zeros(low[0].shape) if walk.ends else None
    for _, row in walk.inward():
        bounds = pairwise.advanced(bounds, row, pairwise.groups_of(high[0]), low[0], high[0])
    return bounds


def by_events(walk, low, high):
    """Ranges alone, step by step."""
    bounds = np.zeros(low[0].shape)
    beyond = walk.ends
    for _, row in walk.inward():
        bounds = pairwise.closed(events.stepped(bounds, beyond, row, low[0], high[0]))
        beyond = True
    return bounds


def _with_lengths(rows, opens):
    return rows, np.ones(len(rows)), opens


def test_blocks_bound_what_one_step_does_not():
    """No value is sure to lead to value 3 at once, all are in two steps."""
    low = np.array(
        [[[0.5, 0.2, 0.0, 0.0], [0.2, 0.3, 0.2, 0.2], [0.2, 0.3, 0.3, 0.1], [0.3, 0.3, 0.1, 0.2]]]
    )
    high = np.minimum(low + 0.3, 1.0)
    window = Walk.window(4, np.ones(4, bool))
    bound = ranges.side(window, low, high)
    assert np.isfinite(bound).all()
    assert (bound >= cones.side(window, low, high)).all()
    assert np.isinf(ranges.side(Walk.window(1, np.ones(4, bool)), low, high)[1:, 0]).all()


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("seed", cases(6, 40))
def test_histories_of_two_values(seed, backward):
    """Each pair of rows touches four states; a release tells the history, forgotten in m steps."""
    rng = np.random.default_rng(seed)
    low, high = lifted_box(rng, 2, backward=backward)
    walk = Walk.window(6, np.ones(4, bool))
    assert (by_pairs(walk, low, high) >= cones.side(walk, low, high) - 1e-8).all()
    low, high = lifted_box(rng, 3, backward=backward)
    table = many.windows(5, low, high)
    assert np.isinf(table[1]).any()
    assert np.isfinite(table[2:]).all()
    rows = np.vstack((np.ones((4, 8)), np.zeros((1, 8))))
    corners = corners_of(low[0], high[0])
    for inside in (False, True) * 4:
        kernels = [random_kernel(rng, corners, inside=inside) for _ in range(5)]
        assert (directional_leakage(kernels, rows) <= table[4] + 1e-12).all()


def test_what_each_number_of_states_is_bounded_by():
    rng = np.random.default_rng(3)
    ways = {}
    for k in (3, 4, 5, 8):
        low, high = random_box(rng, k, width=0.01, sticky=0.3)
        ways[k] = many.bound(np.ones((1, k)), np.ones(1), True, low, high).method
    low, high = lifted_box(rng, 3)
    ways["histories"] = many.bound(np.ones((1, 8)), np.array([4]), True, low, high).method
    assert ways == {
        3: "cones",
        4: "cones",
        5: "pairwise, range and block bounds",
        8: "range and block bounds",
        "histories": "pairwise, range and block bounds",
    }


# ---- tables


@pytest.mark.parametrize("k", [3, 4, 5, 7])
def test_windows_are_sides_with_all_redacted_up_to_a_release(k):
    low, high = random_box(np.random.default_rng(k), k, width=0.05, sticky=0.3)
    table = many.windows(6, low, high)
    assert (np.diff(table, axis=0) <= 0).all()
    for distance in range(1, 7):
        side = many.bound(np.ones((1, k)), np.array([distance - 1]), True, low, high).worst
        assert table[distance - 1] == pytest.approx(side, abs=1e-7 if k < 7 else 0.05)


@pytest.mark.parametrize("k", [3, 4])
def test_influences_are_what_single_values_tell(k):
    """A window tells what the value that tells most does."""
    low, high = random_box(np.random.default_rng(k), k, width=0.05, sticky=0.3)
    told = many.influences(6, low, high)
    assert (told[1:] <= told[:-1]).all()
    assert told.max(axis=1) == pytest.approx(many.windows(6, low, high).max(axis=(1, 2)), abs=1e-8)
    corners = corners_of(low[0], high[0])
    for value in range(k):
        above = max(corner[:, value].max() for corner in corners)
        below = min(corner[:, value].min() for corner in corners)
        expected = np.log(above / below) if below > 0 else np.inf
        assert told[0, value] == pytest.approx(expected, abs=1e-8)


def test_influences_are_never_exceeded():
    rng = np.random.default_rng(8)
    for k in (3, 5, 7):
        low, high = random_box(rng, k, width=0.05, steps=4)
        told = many.influences(4, low, high)
        corners = [corners_of(*box) for box in zip(low, high, strict=True)]
        for _ in range(20):
            reached = np.eye(k)
            for d in range(4):
                reached = reached @ random_kernel(rng, corners[d], inside=False)
                with np.errstate(divide="ignore"):
                    logs = np.log(np.maximum(reached, 0.0))
                assert (logs.max(axis=0) - logs.min(axis=0) <= told[d] + 1e-12).all()


@pytest.mark.parametrize("k", [3, 4, 5, 7])
def test_a_box_for_each_step_may_be_the_same_box(k):
    low, high = random_box(np.random.default_rng(k), k, width=0.05)
    boxes = per_step(low, 5), per_step(high, 5)
    assert many.windows(5, *boxes) == pytest.approx(
        many.windows(5, low, high), abs=1e-7 if k < 7 else 0.1
    )
    assert many.influences(5, *boxes)[0] == pytest.approx(
        many.influences(5, low, high)[0], abs=1e-8
    )


@pytest.mark.parametrize("seed", cases(10, 60))
def test_more_redaction_never_tells_more(seed):
    """F3, for every pair and every box."""
    rng = np.random.default_rng(seed)
    k = 3 + seed % 2
    low, high = random_box(rng, k, unseen=0.2 * (seed % 3 == 0))
    rows, opens = random_walk(rng, 4, k)
    more = np.maximum(rows, random_rows(rng, 4, k))
    fewer = many.bound(rows, np.ones(4), opens, low, high).worst
    assert (many.bound(more, np.ones(4), opens, low, high).worst <= fewer + 1e-8).all()


@pytest.mark.parametrize("k", [3, 4, 5, 9])
def test_thousands_of_redacted_records_are_crossed(k):
    low, high = random_box(np.random.default_rng(k), k, width=0.002, sticky=0.7)
    rows = np.vstack((np.ones(k), np.linspace(0.2, 1, k), np.ones(k)))
    for opens in (False, True):
        worst = many.bound(rows, np.array([3000, 2, 4000]), opens, low, high).worst
        assert (worst < 1e-3).all()
        assert (worst[~np.eye(k, dtype=bool)] > 0).all()


# ---- the parts


def test_extreme_points_in_the_plane():
    rng = np.random.default_rng(4)
    for count in (3, 10, 200):
        points = rng.dirichlet(np.ones(3), size=count)
        kept, lost = planar.extreme(points)
        hull = points[ConvexHull(points[:, :2]).vertices]
        assert {tuple(point) for point in kept} == {tuple(point) for point in hull}
        assert lost < 1e-10


def test_points_on_an_edge_are_not_lost_to_others_near_it():
    edge = np.array([[0.5, 0.5, 0.0], [0.4, 0.6, 0.0], [0.6, 0.4, 0.0]])
    near = np.array([[0.5, 0.5, 1e-18], [0.3, 0.7, 1e-18], [0.7, 0.3, 1e-18], [0.3, 0.3, 0.4]])
    kept, _ = planar.extreme(np.concatenate((edge, near)))
    assert {tuple(point) for point in edge[1:]} <= {tuple(point) for point in kept}
    kept, _ = planar.extreme(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]))
    assert len(kept) == 2


@pytest.mark.parametrize("infinite", [False, True])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_rays_of_bounded_ratios(k, infinite):
    """Every ray that meets as many independent bounds as it must, found by trying all of them."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        bounds = rng.uniform(0.1, 1.0, size=(k, k))
        if infinite:
            bounds[rng.random((k, k)) < 0.3] = np.inf
        c = np.exp(pairwise.closed(bounds))
        found = polytropes.vertices(c, *polytropes.trees(k))
        found = {tuple(np.round(v / v.sum(), 9)) for v in found}
        assert found == {tuple(np.round(v, 9)) for v in _rays_by_trial(c)}


def _rays_by_trial(c):
    k = len(c)
    halves = [np.eye(k)[i] for i in range(k)]  # h_i ≥ 0, then c_ij·h_j − h_i ≥ 0
    for i, j in product(range(k), repeat=2):
        if i != j and np.isfinite(c[i, j]):
            halves.append(c[i, j] * np.eye(k)[j] - np.eye(k)[i])
    halves = np.array(halves)
    for met in combinations(halves, k - 1):
        values, vectors = np.linalg.svd(np.array(met))[1:]
        if values[-1] > 1e-9:
            ray = vectors[-1] / vectors[-1].sum() if abs(vectors[-1].sum()) > 1e-9 else None
            if ray is not None and (halves @ ray > -1e-11).all():
                yield np.maximum(ray, 0.0)


def test_pairs_of_rows_are_looked_at_by_the_states_they_touch():
    rng = np.random.default_rng(0)
    assert pairwise.groups_of(random_box(rng, 7)[1][0]) is None
    (dense,) = pairwise.groups_of(random_box(rng, 6)[1][0])
    assert list(dense.rows) == list(dense.states) == list(range(6))
    for backward in (False, True):
        groups = pairwise.groups_of(lifted_box(rng, 4, backward=backward)[1][0])
        assert len(groups) == 28  # pairs of the eight ways to go on
        assert {(len(group.rows), len(group.states)) for group in groups} == {(4, 4)}
