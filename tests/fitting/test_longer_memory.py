"""What attackers of higher orders gain, against the definition and on data whose order is known."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offrecord.fitting.counting import linked_records
from offrecord.fitting.fit import fit_chains
from offrecord.fitting.longer_memory import counts_apart, judged_by_longer_memory
from offrecord.models.chain import MarkovChain
from offrecord.tables.chains import Chains

#: Rain by the hour: hours after a dry one and after a wet one, and with one more hour remembered.
FIRST = np.array([[0.979, 0.021], [0.294, 0.706]])
SECOND = np.array([[[0.984, 0.016], [0.42, 0.58]], [[0.83, 0.17], [0.24, 0.76]]])


def drawn(rng, kernel, length):
    """One chain, long after its start."""
    order = kernel.ndim - 1
    values = np.zeros(length + 50, dtype=np.int8)
    coins = rng.random(len(values))
    for t in range(order, len(values)):
        values[t] = coins[t] < kernel[(*values[t - order : t], 1)]
    return values[50:]


def one_chain(values):
    return Chains(np.array([0, len(values)]), values, np.arange(len(values)), False, None)


def halves_of(chains, k, order):
    linked = linked_records(chains.codes, chains.starts, chains.steps)
    return counts_apart(chains.codes, linked, chains, k, order)


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 350), min_size=1, max_size=6),
    order=st.integers(1, 2),
    seed=st.integers(0, 1000),
)
def test_every_other_stretch_of_every_chain_goes_to_one_half_and_none_to_both(lengths, order, seed):
    rng = np.random.default_rng(seed)
    values = [rng.integers(0, 2, length).astype(np.int8) for length in lengths]
    starts = np.cumsum([0, *lengths])
    places = np.concatenate([np.arange(length) for length in lengths])
    chains = Chains(starts, np.concatenate(values), places, False, None)
    expected = [Counter(), Counter()]
    for number, chain in enumerate(values):
        for begin in range(0, len(chain), 100):
            stretch = chain[begin : begin + 100].tolist()
            half = (number + begin // 100) % 2
            expected[half].update(
                tuple(stretch[i : i + order + 3]) for i in range(len(stretch) - order - 2)
            )
    found = halves_of(chains, 2, order)
    for half, seen in enumerate(expected):
        assert {at: int(n) for at, n in np.ndenumerate(found[half]) if n} == dict(seen)


def leakage_by_definition(chain, left, right):
    """Over everything that the records released beside a window may be."""
    order = chain.order
    length = 2 * order + left + 1 + right
    likely = Counter()
    for values in product(range(chain.k), repeat=length):
        mass = chain.start[values[:order]]
        for t in range(order, length):
            mass *= chain.transition[values[t - order : t + 1]]
        likely[values[:order], values[order + left], values[-order:]] += mass
    total = Counter()
    for (_, secret, _), mass in likely.items():
        total[secret] += mass
    outputs = {(before, after) for before, _, after in likely}
    return max(
        math.log(likely[before, x, after] / total[x] * total[y] / likely[before, y, after])
        for before, after in outputs
        for x, y in product(range(chain.k), repeat=2)
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_said_is_what_the_window_leaks(seed):
    rng = np.random.default_rng(seed)
    kernel = np.array([[0.6, 0.4], [0.45, 0.55]])
    halves = halves_of(one_chain(drawn(rng, kernel, 3000)), 2, 1)
    judged = judged_by_longer_memory(halves, 1)
    left, right = judged.window
    assert left + right <= 3
    assert list(judged.leakage) == [1, 2, 3]
    assert list(judged.by_chance) == list(judged.further) == [2, 3]
    for order, leakage in judged.leakage.items():
        counts = halves[1].sum(axis=tuple(range(3 - order))) + 0.5
        other = MarkovChain(counts / counts.sum(axis=-1, keepdims=True), order=order)
        assert leakage == pytest.approx(leakage_by_definition(other, left, right), abs=1e-9)
    own = halves[0].sum(axis=(0, 1)) + 0.5
    made = MarkovChain(own / own.sum(axis=-1, keepdims=True))
    assert leakage_by_definition(made, left, right) <= 1
    assert judged_by_longer_memory(halves, 1) == judged  # what is drawn is drawn again


def test_memory_that_there_is_is_told_from_chance():
    """Of order-1 data a window of order 1 leaks more than chance seldom, of order-2 data mostly."""
    beyond = {}
    for name, kernel in (("first", FIRST), ("second", SECOND)):
        judged = [
            judged_by_longer_memory(
                halves_of(one_chain(drawn(np.random.default_rng(seed), kernel, 8000)), 2, 1), 1
            )
            for seed in range(12)
        ]
        beyond[name] = sum(not one.is_within_chance for one in judged)
    assert beyond["first"] <= 4
    assert beyond["second"] >= 9


def test_a_fit_prints_it_beside_bic():
    values = drawn(np.random.default_rng(5), SECOND, 20_000)
    fit = fit_chains(one_chain(values), range(2))
    told = fit.longer_memory
    assert fit.summary()["longer_memory"]["leakage"] == {
        str(order): leakage for order, leakage in told.leakage.items()
    }
    line = next(line for line in str(fit).splitlines() if line.startswith("window for ε = 1"))
    assert line.split()[-3:] == [f"{leakage:.2f}" for leakage in told.leakage.values()]
    assert f"{told.leakage[2]:.2f}" in fit.verdict
    assert f"by order 1, made from half of the data, leaks {told.leakage[2]:.2f}" in fit.verdict
    again = fit_chains(one_chain(values), range(2), order="auto")
    assert again.model.order == 2
    assert list(again.longer_memory.leakage) == [2, 3, 4]
    assert again.longer_memory.is_within_chance


def test_where_nothing_can_be_told_nothing_is_said():
    short = fit_chains(one_chain(np.array([0, 1, 0, 0, 1, 1], dtype=np.int8)), range(2))
    assert short.longer_memory is None
    many_values = np.random.default_rng(1).integers(0, 20, 500).astype(np.int8)
    assert fit_chains(one_chain(many_values), range(20)).longer_memory is None
    by_hour = fit_chains(
        one_chain(drawn(np.random.default_rng(2), FIRST, 500)),
        range(2),
        phases=np.arange(500) % 24,
        phase="hour",
        order="auto",
    )
    assert by_hour.model.order == 1
    assert by_hour.longer_memory is None
    assert by_hour.summary()["longer_memory"] is None
