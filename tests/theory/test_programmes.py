"""Linear programmes: the least cost, wherever the solver begins."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from offrecord.theory.programmes import Entries, Solver


def entries(matrix):
    row, column = np.nonzero(matrix)
    return Entries(row, column, matrix[row, column])


def drawn(rng, height, width):
    """A programme with an answer: some columns keep within its rows, and all costs are positive."""
    matrix = rng.normal(size=(height, width)) * (rng.random((height, width)) < 0.6)
    inside = rng.random(width)
    low = matrix @ inside - rng.random(height) * (rng.random(height) < 0.7)
    high = matrix @ inside + rng.random(height) * (rng.random(height) < 0.7)
    return rng.random(width) + 0.1, matrix, low, high


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 8), st.booleans())
def test_the_least_cost_one_after_the_other(seed, height, width, inside):
    rng, solver = np.random.default_rng(seed), Solver()
    for _ in range(4):  # each begins where the one before ended, however unlike it is
        costs, matrix, low, high = drawn(rng, height, width)
        found = solver.least(costs, entries(matrix), low, high, like="these", inside=inside)
        other = linprog(costs, A_ub=np.vstack((matrix, -matrix)), b_ub=np.concatenate((high, -low)))
        assert found.min() >= -1e-7
        assert np.all(matrix @ found <= high + 1e-6)
        assert np.all(matrix @ found >= low - 1e-6)
        assert costs @ found == pytest.approx(other.fun, rel=1e-6, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6))
def test_columns_within_limits_and_places_that_come_twice(seed, height, width):
    rng = np.random.default_rng(seed)
    costs, matrix, _, high = drawn(rng, height, width)
    costs *= rng.choice([-1, 1], width)
    least, most = -rng.random(width), 1 + rng.random(width)
    once, part = entries(matrix), rng.random()
    twice = Entries.together([once.times(part), once.times(1 - part)])
    for rows in (once, twice.summed()):
        found = Solver().least(costs, rows, -np.inf, high, columns=(least, most))
        other = linprog(costs, A_ub=matrix, b_ub=high, bounds=np.stack((least, most), axis=1))
        assert np.all(least - 1e-7 <= found)
        assert np.all(found <= most + 1e-7)
        assert np.all(matrix @ found <= high + 1e-6)
        assert costs @ found == pytest.approx(other.fun, rel=1e-6, abs=1e-6)


def test_what_cannot_be_is_none():
    one = np.array([[1.0]])
    solver = Solver()
    assert solver.least(np.ones(1), entries(one), -np.inf, np.array([-1.0])) is None
    found = solver.least(np.ones(1), entries(one), np.array([2.0]), np.inf)
    assert found == pytest.approx([2.0])
    for number in (1e16, np.inf, np.nan):  # what the solver does not take
        assert solver.least(np.ones(1), entries(one * number), -np.inf, np.ones(1)) is None
    for cost, low, high in ((np.inf, 0, 1), (np.nan, 0, 1), (1, np.nan, 1), (1, 0, -np.inf)):
        limits = np.array([low], dtype=float), np.array([high], dtype=float)
        assert solver.least(np.array([cost], dtype=float), entries(one), *limits) is None


@pytest.mark.parametrize(
    "wrong",
    [
        Entries(np.array([0, 0]), np.array([0, 0]), np.ones(2)),
        Entries(np.array([0, 1]), np.array([0, 0]), np.ones(2)),
    ],
)
def test_places_that_are_named_twice_or_are_not_there(wrong):
    with pytest.raises(ValueError, match="name a place twice, or one that is not there"):
        Solver().least(np.ones(1), wrong, -np.inf, np.ones(1))


def test_others_who_use_the_solver_do_not_matter():
    """HiGHS keeps one pool of threads for a process, of the size that was asked for first."""
    code = """
import sys, highspy, numpy as np
import offrecord as off
other = highspy.Highs()
other.setOptionValue("output_flag", False)
if int(sys.argv[1]):
    other.setOptionValue("threads", int(sys.argv[1]))
    other.addVars(1, np.zeros(1), np.ones(1))
    other.run()
problem = off.Problem(off.MarkovChain.binary(0.021, 0.295), 60, 30, 1.0)
print(off.design(problem, "owner").utility, off.design(problem).utility)
"""
    said = [
        subprocess.run([sys.executable, "-c", code, threads], capture_output=True, check=True)
        for threads in ("0", "1", "2")
    ]
    assert len({one.stdout for one in said}) == 1


def test_the_same_programmes_in_the_same_order_give_the_same_bits():
    def solved():
        rng, solver = np.random.default_rng(5), Solver()
        for _ in range(6):
            costs, matrix, low, high = drawn(rng, 6, 9)
            yield solver.least(costs, entries(matrix), low, high, like=0)

    assert [one.tobytes() for one in solved()] == [one.tobytes() for one in solved()]
