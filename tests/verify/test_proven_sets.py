"""What local designs tell over a set of models: never less than any model inside, no more than the
worst of all corners where that is claimed, and what the design's own side says.
"""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

import offrecord as off
from offrecord.verify import sets
from offrecord.verify.balls import upper
from offrecord.verify.problem import Problem
from releases import certificate_of, judged, table_of
from small_chains import box_of, model_of, nested, problem_of, random_redaction


def intervals(rng, k, order, width, least=0.04):
    """Rows of probabilities and intervals of four digits around them."""
    rows = rng.dirichlet(np.ones(k), size=k**order) * (1 - k * least) + least
    low = np.clip(rows - width * rng.random(rows.shape), 0, 1).round(4)
    high = np.clip(rows + width * rng.random(rows.shape), 0, 1).round(4)
    return rows, low, high


def random_set(rng, k, order, width):
    """A model with a set, and its intervals as rows."""
    rows, *forward = intervals(rng, k, order, width)
    _, *backward = intervals(rng, k, order, width)
    shaped = [tuple(nested(one, k, order + 1) for one in pair) for pair in (forward, backward)]
    start = nested(np.full(k**order, 1 / k**order), k, order)
    model = model_of(
        nested(rows, k, order + 1), start, k=k, order=order, models=box_of(*shaped), stationary=True
    )
    return model, forward, backward


def kernel_within(rng, low, high, corner):
    """Rows in a box: corners of it, or anything."""
    found = []
    for least, most in zip(low, high, strict=True):
        row, rest = least.copy(), 1.0 - least.sum()
        for share in (1.0 if corner else rng.random(), 1.0):
            for j in rng.permutation(len(row)):
                given = min(most[j] - row[j], rest) * share
                row[j], rest = row[j] + given, rest - given
        found.append(row)
    return np.array(found)


def lifted(kernel, k, order, back):
    """The step from a tuple to the next, or to the one before."""
    size = k**order
    matrix = np.zeros((size, size))
    for code, value in product(range(size), range(k)):
        target = value * (size // k) + code // k if back else code * k % size + value
        matrix[code, target] = kernel[code, value]
    return matrix


def seen(steps, rows, k, order, back):
    """(outputs, tuples) how likely each output of a side is, given the tuple where it begins."""
    size = k**order
    shown = np.arange(size) // k ** (order - 1) if back else np.arange(size) % k
    found = np.ones((1, size))
    for kernel, row in zip(steps[::-1], rows[::-1], strict=True):
        parts = [found * row[shown]]
        parts += [found * (shown == value) for value in range(k) if row[value] < 1]
        found = np.concatenate(parts) @ lifted(kernel, k, order, back).T
        found = found[found.max(axis=1) > 0]
    return found


@pytest.mark.parametrize("seed", range(40))
def test_no_model_of_the_set_tells_more(seed):
    rng = np.random.default_rng(seed)
    k, order = ((3, 1), (4, 1), (2, 2), (5, 1), (2, 3), (7, 1), (2, 1), (3, 2))[seed % 8]
    width = float(rng.choice([0.01, 0.05]))
    model, forward, backward = random_set(rng, k, order, width)
    n = 2 * order + 3 if k < 5 else 4
    place = int(rng.integers(order - 1, n - 1))
    core = range(place - order + 1, place + 1)
    matrix = random_redaction(rng, n, k, [(core[0], core[-1])])
    bound = float(sets.told(problem_of(model, matrix, [(place, place)])))
    right, left = matrix[place + 1 :], matrix[: core[0]][::-1]
    value = np.arange(k**order) % k
    worst = 0.0
    for number in range(30):
        corner = number % 2 == 0
        ahead = [kernel_within(rng, *forward, corner) for _ in right]
        back = [kernel_within(rng, *backward, corner) for _ in left]
        after, before = seen(ahead, right, k, order, False), seen(back, left, k, order, True)
        often = rng.dirichlet(np.full(k**order, 0.3)) + 1e-12
        told = np.stack(
            [(before * often * (value == v)) @ after.T / often[value == v].sum() for v in range(k)]
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = told.max(axis=0) / told.min(axis=0)
        worst = max(worst, float(np.log(np.nan_to_num(ratios, nan=1.0).max())))
    assert worst <= bound + 1e-12


def corners_of(low, high):
    """Every vertex of the rows that sum to 1."""
    found = set()
    for order in permutations(range(len(low))):
        row, rest = low.copy(), 1.0 - low.sum()
        for j in order:
            given = min(high[j] - low[j], rest)
            row[j], rest = row[j] + given, rest - given
        found.add(tuple(row.round(12)))
    return [np.array(row) for row in found]


@pytest.mark.parametrize("seed", range(8))
def test_of_three_values_it_is_the_worst_of_all_corners(seed):
    rng = np.random.default_rng(seed)
    model, forward, _ = random_set(rng, 3, 1, 0.05)
    matrix = random_redaction(rng, 3, 3, [(0, 0)])
    bound = float(sets.told(problem_of(model, matrix, [(0, 0)])))
    rows = [corners_of(low, high) for low, high in zip(*forward, strict=True)]
    kernels = [np.array(chosen) for chosen in product(*rows)]
    far = np.concatenate([seen([one], matrix[2:], 3, 1, False) for one in kernels])
    parts = [far * matrix[1]] + [np.eye(3)[[j]] for j in range(3) if matrix[1, j] < 1]
    near = np.unique(np.concatenate(parts).round(14), axis=0)
    near = near[near.max(axis=1) > 0]
    worst = 0.0
    for kernel in kernels:
        told = near @ kernel.T
        with np.errstate(divide="ignore"):
            worst = max(worst, float(np.log((told.max(axis=1) / told.min(axis=1)).max())))
    assert bound == pytest.approx(worst, abs=1e-10)


def chain_with_set(rng, k, order=1, width=0.02, least=0.1):
    """As people give them: a chain, and intervals around its steps in both directions."""
    rows = (rng.dirichlet(np.ones(k), size=k**order) * (1 - k * least) + least).round(4)
    rows[:, 0] = (1 - rows[:, 1:].sum(axis=1)).round(4)
    chain = off.MarkovChain(rows.reshape((k,) * (order + 1)), order=order)

    def ends(nominal):
        return np.clip(nominal - width, 0, 1).round(4), np.clip(nominal + width, 0, 1).round(4)

    return chain.with_box(off.Box(ends(chain.transition), ends(chain._lifted_reverse), order))


@pytest.mark.parametrize("seed", range(16))
def test_the_design_side_says_the_same(seed):
    rng = np.random.default_rng(seed)
    k, order = ((3, 1), (4, 1), (2, 2), (5, 1), (2, 3), (8, 1), (3, 2), (3, 1))[seed % 8]
    chain = chain_with_set(rng, k, order, float(rng.choice([0.01, 0.04])), 0.25 / k)
    first = int(rng.integers(order - 1, 10))
    last = first + int(rng.choice([0, 0, 2]))
    n = 20
    matrix = random_redaction(rng, n, k, [(max(first - order + 1 - 3, 0), last + 3)])
    expected = off.leakage(off.Problem(chain, n, range(first + 1, last + 2), 1.0), matrix)
    content = chain.box
    model = model_of(
        nested(chain.transition, k, order + 1),
        nested(chain.start, k, order),
        k=k,
        order=order,
        stationary=True,
        models=box_of(
            *(
                tuple(nested(side, k, order + 1) for side in pair)
                for pair in (content.forward, content.backward)
            )
        ),
    )
    found = upper(sets.told(problem_of(model, matrix, [(first, last)])))
    if np.isinf(expected):
        assert np.isinf(found)
    else:
        assert expected - 0.05 <= found <= expected + 1e-11  # ranges may be a little better here


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("by", ["weekday", None])
def test_each_step_has_its_own_box(seed, by):
    """By phases, or a box for each step: as the design side says, which takes them as steps."""
    rng = np.random.default_rng(seed)
    n, k = 12, 3
    phases = (np.arange(n) + int(rng.integers(7))) % 7
    count = 7 if by else n - 1
    kernels = (rng.dirichlet(np.ones(k), size=(count, k)) * 0.7 + 0.1).round(4)
    kernels[..., 0] = (1 - kernels[..., 1:].sum(axis=-1)).round(4)
    ends = [
        [np.clip(one + sign * 0.03, 0, 1).round(4) for sign in (-1, 1)]
        for one in (kernels, kernels[::-1])
    ]
    along = phases[:-1] if by else np.arange(n - 1)
    start = np.full(k, [0.5, 0.25, 0.25])
    box = off.Box(*[[side[along] for side in pair] for pair in ends])
    chain = off.MarkovChain(kernels[along], start).with_box(box)
    first = int(rng.integers(n))
    last = min(first + int(rng.choice([0, 2])), n - 1)
    matrix = random_redaction(rng, n, k, [(max(first - 2, 0), last + 2)])
    expected = off.leakage(off.Problem(chain, n, range(first + 1, last + 2), 1.0), matrix)

    def tuples(array):
        return tuple(map(tuples, array)) if isinstance(array, list) else array

    model = replace(
        model_of(
            tuples(kernels.tolist()),
            tuples(np.tile(start, (7, 1)).tolist()) if by else tuple(start.tolist()),
            k=k,
            models=box_of(*[tuple(tuples(side.tolist()) for side in pair) for pair in ends]),
        ),
        phase=by,
    )
    problem = problem_of(model, matrix, [(first, last)], phases.tolist() if by else None)
    found = upper(sets.told(problem))
    assert found == pytest.approx(expected, abs=1e-10)


RELEASES = [
    ("three values", "window"),
    ("three values", "3r-relaxed"),
    ("four values", "window"),
    ("order 2", "window"),
    ("order 2", "3r-relaxed"),
    ("five values", "window"),
]


@pytest.mark.parametrize(("name", "mechanism"), RELEASES)
def test_certificates_of_releases_are_proven(name, mechanism):
    k, order = {"three values": (3, 1), "four values": (4, 1), "order 2": (2, 2)}.get(name, (5, 1))
    chain = chain_with_set(np.random.default_rng(5), k, order)
    frame = table_of(chain, chains=2, n=24)
    certificate, _ = certificate_of(chain, mechanism, frame=frame)
    for proven, found, design in judged(certificate, sets.told):
        assert proven
        assert upper(found) <= design.leakage + design.rounding + 1e-12


def test_a_wider_set_or_less_redaction_is_not_proven():
    chain = chain_with_set(np.random.default_rng(5), 3)
    certificate, _ = certificate_of(chain, "3r-relaxed", frame=table_of(chain, chains=1, n=24))
    designs, model = certificate.designs, certificate.model
    design = max(designs.designs, key=lambda one: one.leakage)
    limit = upper(sets.told(Problem.of(designs, design, model)))
    for name in ("forward", "backward"):
        low, high = getattr(model.set, name)
        wider = (
            tuple(tuple(p - 1e-4 for p in row) for row in low),
            tuple(tuple(min(p + 1e-4, 1.0) for p in row) for row in high),
        )
        other = replace(model, set=replace(model.set, **{name: wider}))
        assert float(sets.told(Problem.of(designs, design, other)).lower()) > limit + 1e-7
    problem = Problem.of(designs, design, model)
    partial = [s for s, one in enumerate(problem.stretches) if 0 < min(one.row) < 1]
    assert partial
    worse = []
    for at in partial:
        stretches = list(problem.stretches)
        stretches[at] = stretches[at]._replace(row=tuple(0.9 * p for p in stretches[at].row))
        worse.append(float(sets.told(replace(problem, stretches=tuple(stretches))).lower()))
    assert max(worse) > limit + 1e-7


def test_numbers_too_small_for_doubles_are_never_taken_for_none():
    """A value that is all but never redacted, or all but never follows, counts as if it might."""
    rng = np.random.default_rng(3)
    model, _, _ = random_set(rng, 3, 1, 0.02)
    matrix = np.array([[1.0, 1.0, 1.0], [5e-324, 0.5, 1.0], [1e-300, 1.0, 1.0]])
    found = [
        upper(sets.told(problem_of(model, rows, [(0, 0)])))
        for rows in (matrix, np.where(matrix < 1e-60, 0.0, matrix))
    ]
    assert found[0] == found[1]
    rare = ((0.9, 5e-324, 0.05), (0.2, 0.5, 0.2), (0.2, 0.2, 0.5))
    most = ((0.95, 1e-300, 0.1), (0.25, 0.6, 0.25), (0.25, 0.25, 0.6))
    tiny = replace(model, set=replace(model.set, forward=(rare, most)))
    released = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    assert np.isinf(upper(sets.told(problem_of(tiny, released, [(0, 0)]))))
