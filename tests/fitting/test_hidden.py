"""Chains on hidden states: likelihoods and updates by their definition, regimes found again."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offrecord.errors import InputError
from offrecord.fitting.expectation import (
    LONGEST_GAP,
    HiddenKernel,
    Sightings,
    climbed,
    random_kernel,
)
from offrecord.fitting.hidden import HELD_SHARE, allocations, fit_states
from offrecord.models.records import Chains
from offrecord.models.stationary import stationary_distribution

#: Two regimes: in the first 1 is rare, in the second common; states 0 and 1 show 0, 2 and 3 show 1.
REGIMES = np.array(
    [
        [0.930, 0.005, 0.064, 0.001],
        [0.010, 0.390, 0.001, 0.599],
        [0.850, 0.005, 0.144, 0.001],
        [0.001, 0.200, 0.009, 0.790],
    ]
)


def chains_of(lists, places=None):
    """Chains of codes, −1 for a missing value; places: of each record, one step apart if None."""
    starts = np.cumsum([0, *map(len, lists)])
    codes = np.concatenate([np.asarray(one, dtype=np.int8) for one in lists])
    if places is not None:
        steps = np.concatenate([np.asarray(one, dtype=np.int64) for one in places])
        return Chains(starts, codes, steps.copy(), False, steps)
    return Chains(starts, codes, np.arange(len(codes)), False, None)


def simulated(transition, shows, count, seed):
    """Values of a stationary chain on states."""
    rng = np.random.default_rng(seed)
    steps = transition.cumsum(axis=1).tolist()
    state = int(rng.choice(len(shows), p=stationary_distribution(transition)))
    values = np.empty(count, dtype=np.int8)
    for t, coin in enumerate(rng.random(count)):
        values[t] = shows[state]
        state = next((j for j, edge in enumerate(steps[state]) if coin < edge), len(shows) - 1)
    return values


# ---- against every path of states


@st.composite
def small_cases(draw):
    """A kernel, and chains of a few records with missing values and missing records."""
    widths = draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2), (1, 1, 2)]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    h = sum(widths)
    kernel = HiddenKernel(widths, rng.dirichlet(np.ones(h), size=h), rng.dirichlet(np.ones(h)))
    codes = st.lists(st.integers(-1, len(widths) - 1), min_size=1, max_size=4)
    lists = draw(st.lists(codes, min_size=1, max_size=3))
    gap = st.sampled_from([1, 1, 1, 2, 3])
    places = [np.cumsum([draw(gap) for _ in one]) for one in lists]
    return kernel, chains_of(lists, places)


def by_paths(kernel, chains):
    """Log-likelihood, expected transitions and expected first states, from every path of states.

    A chain begins at its first record with a value.
    """
    h, shows, likelihood = len(kernel.transition), kernel.shows, 0.0
    steps, begun = np.zeros((h, h)), np.zeros(h)
    for first, end in pairwise(chains.starts):
        seen = {
            int(place): int(code)
            for place, code in zip(chains.places[first:end], chains.codes[first:end], strict=True)
            if code >= 0
        }
        if not seen:
            continue
        span = range(min(seen), max(seen) + 1)
        total, transitions, starts = 0.0, np.zeros((h, h)), np.zeros(h)
        for path in product(range(h), repeat=len(span)):
            if any(seen.get(t, shows[s]) != shows[s] for t, s in zip(span, path, strict=True)):
                continue
            chance = kernel.start[path[0]] * np.prod(
                [kernel.transition[a, b] for a, b in pairwise(path)]
            )
            total += chance
            starts[path[0]] += chance
            for a, b in pairwise(path):
                transitions[a, b] += chance
        likelihood += np.log(total)
        steps += transitions / total
        begun += starts / total
    return likelihood, steps, begun


@settings(max_examples=80, deadline=None)
@given(case=small_cases())
def test_likelihood_and_update_are_those_of_all_paths(case):
    kernel, chains = case
    seen = Sightings.of(chains, np.ones(len(chains.codes), dtype=bool))
    likelihood, steps, begun = by_paths(kernel, chains)
    assert kernel.log_chances(seen).sum() == pytest.approx(likelihood, abs=1e-10)
    for added in (0.0, 0.5):
        better = climbed(kernel, seen, 1, least_gain=-np.inf, added=added).kernel
        wanted = steps + added
        sums = wanted.sum(axis=1)
        assert better.transition[sums > 0] == pytest.approx(
            wanted[sums > 0] / sums[sums > 0, None], abs=1e-10
        )
        if begun.sum() > 0:
            assert better.start == pytest.approx((begun + added) / (begun + added).sum(), abs=1e-10)


@pytest.mark.parametrize("added", [0.0, 0.5])
@pytest.mark.parametrize("widths", [(2, 1), (2, 2), (3, 2)])
def test_every_iteration_climbs(widths, added):
    rng = np.random.default_rng(3)
    places = np.cumsum(rng.choice([1, 1, 1, 2, 5], size=400))
    codes = simulated(REGIMES, [0, 0, 1, 1], int(places[-1]) + 1, 5)[places]
    chains = chains_of([codes[:250], codes[250:]], [places[:250], places[250:]])
    seen = Sightings.of(chains, np.ones(400, dtype=bool))
    begun = random_kernel(widths, np.array([[0.8, 0.2], [0.4, 0.6]]), rng)
    climb = climbed(begun, seen, 60, least_gain=-np.inf, added=added)
    assert climb.iterations == 60
    assert np.all(np.diff(climb.heights) > -1e-9)
    assert climb.heights[-1] > climb.heights[0] + 1
    if not added:
        assert climb.heights[-1] == pytest.approx(climb.kernel.log_chances(seen).sum(), abs=1e-9)


def test_a_long_gap_begins_a_chain_anew():
    for gap, anew in ((LONGEST_GAP, False), (LONGEST_GAP + 1, True)):
        chains = chains_of([[0, 1, 0]], [[0, gap, gap + 1]])
        seen = Sightings.of(chains, np.ones(3, dtype=bool))
        assert seen.gaps.tolist() == [0, 0 if anew else gap, 1]


# ---- what is found


def test_one_state_for_each_value_is_the_chain_of_order_one():
    values = simulated(np.array([[0.9, 0.1], [0.3, 0.7]]), [0, 1], 3000, 1)
    fit = fit_states(chains_of([values]), ["dry", "wet"], states=2)
    counts = np.zeros((2, 2))
    np.add.at(counts, (values[:-1], values[1:]), 1)
    shares = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
    assert fit.transition == pytest.approx(shares, abs=5e-5)  # four digits are published
    assert fit.held_out == pytest.approx(fit.by_order[1], abs=1e-12)
    assert fit.shows.tolist() == [0, 1]
    assert fit.labels == ("dry", "wet")


def test_two_regimes_are_found_again():
    """Held-out likelihood as the truth's, but for chance, and above every order's."""
    values = simulated(REGIMES, [0, 0, 1, 1], 20_000, 11)
    chains = chains_of([values])
    fit = fit_states(chains, [0, 1], states=4)
    assert fit.shows.tolist() == [0, 0, 1, 1]
    assert fit.by_order.keys() == {0, 1, 2, 3, 4}
    assert fit.gain > 0.01
    assert fit.is_preferred
    seen = Sightings.of(chains, np.ones(len(values), dtype=bool))
    truth = HiddenKernel((2, 2), REGIMES, stationary_distribution(REGIMES)).log_chances(seen)
    assert fit.held_out == pytest.approx(truth[-fit.held_out_records :].mean(), abs=0.004)
    assert fit.transition.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    slow = np.sort(np.abs(np.linalg.eigvals(fit.transition)))[-2]
    assert slow == pytest.approx(np.sort(np.abs(np.linalg.eigvals(REGIMES)))[-2], abs=0.01)


def test_regimes_are_not_found_where_there_are_none():
    """Of a chain of order 1, another state foretells no more than its order does."""
    values = simulated(np.array([[0.9, 0.1], [0.3, 0.7]]), [0, 1], 10_000, 2)
    fit = fit_states(chains_of([values]), [0, 1], states=3)
    assert fit.held_out == pytest.approx(fit.by_order[1], abs=0.001)


def test_whole_chains_are_held_back_where_there_are_many():
    lists = [simulated(REGIMES, [0, 0, 1, 1], 120, seed) for seed in range(40)]
    whole = fit_states(chains_of(lists), [0, 1], states=3)
    assert whole.chains == 40
    assert whole.records == 4800
    assert whole.held_out_records == (120 - 4) * 40 * HELD_SHARE  # four have too short a past
    few = fit_states(chains_of(lists[:3]), [0, 1], states=3)
    assert few.held_out_records == 3 * 120 * HELD_SHARE
    assert set(whole.by_shows) == {(0, 0, 1), (0, 1, 1)}
    assert whole.held_out == max(whole.by_shows.values())


def test_what_is_dropped_or_missing_is_not_learned_from():
    lists = [simulated(REGIMES, [0, 0, 1, 1], 300, seed) for seed in range(4)]
    without = fit_states(chains_of(lists[:3]), [0, 1], states=3)
    dropped = fit_states(
        chains_of(lists), [0, 1], states=3, dropped=np.array([False, False, False, True])
    )
    nothing = fit_states(
        chains_of([*lists[:3], np.full(300, -1)]), [0, 1], states=3
    )  # a chain without values
    for other in (dropped, nothing):
        assert np.array_equal(without.transition, other.transition)
        assert without.held_out == other.held_out
        assert (other.records, other.chains) == (900, 3)


def test_missing_records_cost_little():
    """A third of the records unseen: the same chain is found, by steps that nobody saw."""
    values = simulated(np.array([[0.9, 0.1], [0.3, 0.7]]), [0, 1], 40_000, 1)
    kept = np.flatnonzero(np.random.default_rng(0).random(len(values)) < 2 / 3)
    fit = fit_states(chains_of([values[kept]], [kept]), [0, 1], states=2)
    assert fit.transition == pytest.approx(np.array([[0.9, 0.1], [0.3, 0.7]]), abs=0.015)


def test_states_are_given_one_after_the_other_where_there_are_many_ways():
    rng = np.random.default_rng(8)
    values = rng.integers(0, 5, size=600)
    fit = fit_states(chains_of([values]), list("abcde"), states=7)
    assert len(fit.shows) == 7
    assert set(fit.shows) == set(range(5))
    assert 1 < len(fit.by_shows) <= 5


def test_allocations_are_all_and_each_once():
    found = list(allocations(3, 6))
    assert len(found) == len(set(found)) == 10
    assert all(sum(widths) == 6 and min(widths) >= 1 for widths in found)


def test_the_same_seed_finds_the_same():
    chains = chains_of([simulated(REGIMES, [0, 0, 1, 1], 800, 4)])
    one, again = (fit_states(chains, [0, 1], states=4, seed=7) for _ in range(2))
    assert np.array_equal(one.transition, again.transition)
    assert one.summary() == again.summary()


def test_states_of_one_value_stand_from_the_commonest():
    fit = fit_states(chains_of([simulated(REGIMES, [0, 0, 1, 1], 5000, 4)]), [0, 1], states=4)
    often = stationary_distribution(fit.transition)
    assert np.all(np.diff(fit.shows) >= 0)
    for value in (0, 1):
        assert np.all(np.diff(often[fit.shows == value]) <= 0)


@pytest.mark.parametrize(
    ("lists", "states", "message"),
    [
        ([[0, 1, 0, 1, 1, 0]], 1, "states must be from 2, one for each value, to 64, got 1"),
        ([[0, 1, 0, 1, 1, 0]], 65, "got 65"),
        ([[0, 1, 0, 1, 1, 0]], 2.5, "states must be a whole number"),
        ([[0], [1], [0]], 2, "nothing to learn"),
        ([[0, -1, 1, -1, 0]], 2, "nothing to learn"),
        ([[0, 1, -1, -1, 1]], 2, "too few to hold any back"),
    ],
)
def test_what_cannot_be_learned_is_said(lists, states, message):
    with pytest.raises(InputError, match=message):
        fit_states(chains_of(lists), [0, 1], states=states)


def test_dropped_is_checked():
    with pytest.raises(InputError, match="dropped must say true or false for each of 1 chains"):
        fit_states(chains_of([[0, 1, 0]]), [0, 1], states=2, dropped=np.array([1, 0]))
