"""Designs of chains of order above 1: windows by contexts (R6), in any room, with other secrets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.designs.sharing import _length_classes
from offrecord.mechanisms.best_local.sides_apart import SidesApart
from offrecord.mechanisms.local.design import LocalDesign
from offrecord.mechanisms.local.stretches import Stretches
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.theory.contexts import context_windows, window_leakage
from offrecord.theory.leakage import worst_output

SLOW = off.MarkovChain([[[0.95, 0.05], [0.4, 0.6]], [[0.8, 0.2], [0.2, 0.8]]], order=2)


@st.composite
def chains(draw):
    order = draw(st.sampled_from([2, 2, 3]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return off.MarkovChain(rng.dirichlet(np.ones(2), (2,) * order), order=order)


rooms = st.tuples(st.integers(0, 7), st.integers(0, 7))


@settings(max_examples=60, deadline=None)
@given(
    chain=chains(),
    sizes=rooms,
    length=st.integers(1, 3),
    epsilon=st.sampled_from([0.3, 1.0, 2.5]),
    more=rooms,
    less=rooms,
)
def test_a_design_is_private_in_more_room_and_in_less(chain, sizes, length, epsilon, more, less):
    """Where fewer records than the order are left of its room, those beyond it are redacted: with
    them in sight it would tell more than was judged (F14).
    """
    around = Surrounding(*sizes, length)
    design = off.BestWindow().around(around.problem(chain, epsilon, "run"), around)
    assert design.leakage + design.rounding <= epsilon
    if sizes == (0, 0):
        return  # a plan for no records neither ends nor fills: F14
    larger = [room + extra if room else 0 for room, extra in zip(sizes, more, strict=True)]
    smaller = [max(room - extra, 0) for room, extra in zip(sizes, less, strict=True)]
    for left, right in (larger, smaller):
        n = left + length + right
        if n <= chain.order:
            continue
        problem = off.Problem(chain, n, range(left + 1, left + length + 1), epsilon)
        matrix = np.ones((n, 2))
        for side, rest, view in (
            (design.left, design.left_rest, matrix[:left][::-1]),
            (design.right, design.right_rest, matrix[left + length :]),
        ):
            view[:] = float(rest)
            rows = side.spelled_out[: len(view)]
            view[: len(rows)] = rows
        assert worst_output(problem, matrix).leakage <= epsilon + 1e-12


def test_a_record_left_of_the_room_is_kept_and_the_rest_redacted():
    around = Surrounding(6, 6, 1)
    problem = around.problem(SLOW, 10.0, "run")
    sides = Stretches.always(2, 5), Stretches.always(2, 4)
    design = LocalDesign.refereed(problem, around, sides, (5, 4))
    np.testing.assert_array_equal(design.left.spelled_out, [[1.0, 1.0]] * 5 + [[0.0, 0.0]])
    assert design.left_rest
    assert (design.right.size, design.right_rest) == (4, False)  # two records are a context
    assert design.leakage < window_leakage(SLOW, 5, 4)
    assert design.leakage + design.rounding == pytest.approx(
        window_leakage(SLOW, 5, 4, 6, 6), abs=1e-12
    )
    again = design.judged(problem)
    assert again.identity == design.identity


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.integers(1, 3), window=rooms)
def test_secrets_that_share_a_design_leak_the_same(seed, order, window):
    """Also where some transitions are impossible: then lengths differ in the ends they can have."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(2), (2,) * order)
    certain = rng.random((2,) * order) < 0.5
    transition[certain] = np.eye(2)[rng.integers(0, 2, certain.sum())]
    try:
        chain = off.MarkovChain(transition, order=order)
    except off.InputError:
        return
    lengths = np.arange(1, 9)
    for length, shared in zip(lengths, _length_classes(chain, lengths), strict=True):
        mine, other = (window_leakage(chain, *window, length=int(s)) for s in (length, shared))
        assert mine == pytest.approx(other, abs=1e-10)


def test_many_secrets_have_their_own_windows():
    """Whatever windows lie between: each keeps within ε, and none is longer than it must be."""
    private = [3, 40, 41, 60, 63, 100, 118, 119, 120]
    problem = off.Problem(SLOW, 120, private, 1.0)
    policy = off.design(problem, off.BestWindow())
    assert policy.worst.upper <= 1.0
    redacted = np.zeros(120, dtype=bool)
    for first, last in problem.secrets:
        left, right = context_windows(SLOW, 1.0, first - 1, 120 - last, last - first + 1)
        redacted[first - 1 - left : last + right] = True
    np.testing.assert_array_equal(policy.redaction, np.repeat(redacted[:, None], 2, axis=1))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_best_local_is_no_worse_than_the_window(epsilon):
    problem = off.Problem(SLOW, 60, [30], epsilon)
    window, best = (off.design(problem, one) for one in (off.BestWindow(), off.BestLocal()))
    assert best.utility >= window.utility
    assert best.worst.upper <= epsilon
    assert window.utility >= off.BestWindow().walked(problem).utility


def test_sides_designed_apart_pass_together():
    """Two sides may tell more than the sum of what they tell alone; the window stands then."""
    workshop = SidesApart(off.BestLocal(), SLOW, 1.0, "run", 24)
    design = workshop.around(Surrounding(24, 24, 1))
    assert design.leakage + design.rounding <= 1.0
    masses = SLOW.marginal(1)
    assert design.cost(masses, 24, 24) <= sum(context_windows(SLOW, 1.0, 24, 24)) + 1e-9
