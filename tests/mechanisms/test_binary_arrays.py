"""Bounds over arrays are those of the loops, to the last bit; so are paths and whole designs."""

from __future__ import annotations

import math
import sys
from collections import Counter

import numpy as np
import pytest

import offrecord as off
from offrecord.mechanisms.best_local import _binary_arrays, _binary_bounds, binary_optimum
from offrecord.theory import _compiling

CHAINS = [(0.05, 0.3), (0.02, 0.1), (0.01, 0.8), (0.3, 0.3), (1e-6, 0.4), (0.2, 0.79)]


def _found(action, is_few):
    """What comes out where everything counts as few, or nothing does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binary_optimum, "_are_few", lambda visits: is_few)
        binary_optimum._tables.cache_clear()
        found = action()
    binary_optimum._tables.cache_clear()
    return found


def _solver(rates, rooms, together=False):
    masses = rates[1] / sum(rates), rates[0] / sum(rates)
    return binary_optimum._TwoSides(rates, masses, rooms, together, sum(rooms) + 1)


@pytest.mark.parametrize("rates", CHAINS)
def test_tables_are_the_same(rates):
    solver = _solver(rates, (6, 6))
    machine, arrays = (
        _found(lambda: solver._values(solver._stages(12.0), 8192), few) for few in (False, True)
    )
    assert machine.span == arrays.span
    assert machine.end.stages > 0
    for one, other in ((machine.free, arrays.free), (machine.end, arrays.end)):
        assert np.array_equal(one.firsts, other.firsts)
        for known, same in zip(one.rest, other.rest, strict=True):
            assert np.array_equal(known, same)


@pytest.mark.parametrize("rates", CHAINS)
@pytest.mark.parametrize("rooms", [(40, 40), (5, 60), (3, 2), (1, 1)])
@pytest.mark.parametrize("together", [False, True])
def test_costs_of_intervals_are_the_same(rates, rooms, together):
    solver = _solver(rates, rooms, together)
    values = _found(lambda: solver._values(solver._stages(float(sum(rooms))), 8192), True)
    rng = np.random.default_rng(0)
    ends = np.sort(rng.random((60, 2)), axis=1)
    intervals = np.concatenate((ends, [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]]))
    for epsilon in (1e-9, 0.3, 1.0, 4.0, 30.0):
        given = intervals, epsilon, *solver._given(values)
        found = _binary_arrays.least_costs(*given)
        assert np.array_equal(found, _binary_bounds.least_costs(*given))
        for (low, high), cost in zip(intervals, found, strict=True):
            pair = (epsilon * high, epsilon * (1.0 - low)), epsilon, *solver._given(values)
            assert _binary_bounds.pair.plain(*pair) == _binary_bounds.pair(*pair)
            assert _binary_bounds.pair(*pair)[0] == cost


@pytest.mark.parametrize("rates", [(0.05, 0.3), (0.02, 0.1), (0.3, 0.05)])
@pytest.mark.parametrize("private", [[20], [1], [38], [19, 20]])
def test_designs_are_the_same(rates, private):
    problem = off.Problem(off.MarkovChain.binary(*rates), 40, private, 1.0)
    machine, plain = (_found(lambda: off.design(problem), few) for few in (False, True))
    assert np.array_equal(machine.redaction, plain.redaction)
    assert machine.utility_bound == plain.utility_bound


def test_states_beyond_floats():
    for budget, steps in ((1.0, 1e6), (1e-300, 800.0), (40.0, 709.0), (0.0, 1e6), (0.5, 0.0)):
        given = budget, steps, 0.1, -1.0
        machine, plain = (
            _binary_bounds.state_after(*given),
            _binary_bounds.state_after.plain(*given),
        )
        arrays = _binary_arrays._states(
            np.array([budget]), np.array([0]), np.array([int(steps)]), 0.1, -1.0
        )
        assert machine == plain == arrays[0]
        assert math.isfinite(machine)


def test_a_small_table_of_designs_needs_no_machine_code(monkeypatch):
    """Eight places of a secret among 90 records, as a small table has them."""
    called = Counter()
    run = _compiling.Loop.__call__

    def counted(loop, *arguments):
        called[loop.function.__name__] += 1
        return run(loop, *arguments)

    binary_optimum._tables.cache_clear()
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(_compiling, "_visited", Counter())
    monkeypatch.setattr(_compiling.Loop, "__call__", counted)
    for place in (1, 2, 3, 5, 8, 45, 86, 90):
        off.design(off.Problem(off.MarkovChain.binary(0.05, 0.3), 90, [place], 1.0))
    assert not called
