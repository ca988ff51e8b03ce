"""Chains on hidden states: what they say of values is that of every path of states."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import sequences

REGIMES = [[0.9, 0.05, 0.05], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]]


@st.composite
def hidden_chains(draw):
    shows = draw(st.sampled_from([(0, 0, 1), (1, 0, 1), (1, 0, 0, 1), (0, 1, 2, 0)]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    h = len(shows)
    start = rng.dirichlet(np.ones(h)) if draw(st.booleans()) else None
    if start is not None and draw(st.booleans()):
        start = np.eye(h)[0]
    return off.MarkovChain(rng.dirichlet(np.ones(h), size=h), start, shows=shows)


@settings(max_examples=60, deadline=None)
@given(chain=hidden_chains())
def test_distributions_are_those_of_the_paths(chain):
    n = 4
    states, weights = sequences(chain.lifted, n)
    values = chain.shows[states]
    for record in range(1, n + 1):
        mass = np.bincount(values[:, record - 1], weights=weights, minlength=chain.k)
        assert chain.marginal(record) == pytest.approx(mass, abs=1e-12)
        assert np.array_equal(chain.support(record), mass > 0)
        for later in range(record + 1, n + 1):
            joint = np.zeros((chain.k, chain.k))
            np.add.at(joint, (values[:, record - 1], values[:, later - 1]), weights)
            assert chain.joint(record, later) == pytest.approx(joint, abs=1e-12)
    masses = np.stack([chain.marginal(record) for record in range(1, n + 1)])
    assert chain.marginals(1, n) == pytest.approx(masses, abs=1e-15)
    places = np.array([0, 3, 1])
    found = np.broadcast_to(chain.masses(places), (3, chain.k))
    assert found == pytest.approx(masses[places], abs=1e-12)


def test_what_kind_of_chain_it_is():
    chain = off.MarkovChain(REGIMES, shows=[0, 0, 1], labels=["dry", "wet"])
    assert (chain.k, chain.order, chain.labels) == (2, 1, ("dry", "wet"))
    assert chain.has_states
    assert chain.is_stationary
    assert chain.is_homogeneous
    assert chain.length is None
    assert not chain.is_paper_setting
    assert not chain.lifted.has_states
    assert np.array_equal(chain.lifted.transition, REGIMES)
    assert chain.coordinate(0).tolist() == [0, 0, 1]
    assert chain.contexts(np.arange(3)) is None
    assert repr(chain) == "<MarkovChain k=2 states=3>"
    assert not off.MarkovChain(REGIMES, [1, 0, 0], shows=[0, 0, 1]).is_stationary
    for ask in (chain.kernel, chain.reversed_kernel):
        with pytest.raises(off.InputError, match=r"ask its \.lifted chain"):
            ask(2)
    with pytest.raises(off.InputError, match="alpha and beta exist for first-order chains"):
        _ = chain.alpha


def test_marginals_of_many_records_take_no_memory():
    chain = off.MarkovChain(REGIMES, shows=[0, 0, 1])
    many = chain.marginals(1, 10**9)
    assert many.shape == (10**9, 2)
    assert many[-1] == pytest.approx(chain.marginal(1), abs=0)


@pytest.mark.parametrize("start", [None, [0.5, 0.25, 0.25]])
def test_model_files_keep_what_states_show(start, tmp_path):
    chain = off.MarkovChain(REGIMES, start, ["dry", "wet"], shows=[0, 1, 0])
    chain.save(tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    assert content["shows"] == [0, 1, 0]
    for again in (off.MarkovChain.load(tmp_path / "m.json"), pickle.loads(pickle.dumps(chain))):
        assert again.to_dict() == chain.to_dict()
        assert again.shows.tolist() == [0, 1, 0]
        assert np.array_equal(again.start, chain.start)
        assert again.is_stationary == (start is None)
    assert "shows" not in off.MarkovChain.binary(0.1, 0.2).to_dict()
    policy = off.design(off.Problem(chain, 20, [9], 2.0), off.ThreeRegion())
    policy.save(tmp_path / "p.json")
    loaded = off.Policy.load(tmp_path / "p.json")
    assert np.array_equal(loaded.redaction, policy.redaction)
    assert loaded.leakage == policy.leakage
    assert "leakage at most" in str(loaded)


@pytest.mark.parametrize("start", [None, [1 / 3, 1 / 7, 11 / 21]])
def test_published_probabilities_have_four_digits(start):
    rng = np.random.default_rng(0)
    chain = off.MarkovChain(rng.dirichlet(np.ones(3), size=3), start, shows=[1, 0, 1])
    short = chain.rounded()
    assert short.shows.tolist() == [1, 0, 1]
    assert short.transition == pytest.approx(chain.transition, rel=1e-3)
    assert not np.array_equal(short.transition, chain.transition)
    assert short.is_stationary == (start is None)
    assert short.rounded() is short


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dict(shows=[0, 0]), "shows must name the value, from 0, that each of 3 states shows"),
        (dict(shows=[0, 0.5, 1]), "shows must name the value"),
        (dict(shows="001"), "shows must be numbers"),
        (dict(shows=[0, 0, 0]), "two or more values"),
        (dict(shows=[0, 2, 2]), "two or more values, each from 0"),
        (dict(shows=[-1, 0, 1]), "two or more values, each from 0"),
        (dict(labels=["a", "b", "c"]), "labels must name 2 values, got 3"),
        (dict(start=[0.5, 0.5]), "start must hold 3 probabilities"),
        (dict(transition=np.full((2, 2, 2), 0.5), order=2), "must have order 1 and one kernel"),
        (dict(transition=np.full((4, 3, 3), 1 / 3)), "must have order 1 and one kernel"),
    ],
)
def test_what_is_no_such_chain_is_refused(changed, message):
    with pytest.raises(off.InputError, match=message):
        off.MarkovChain(**(dict(transition=REGIMES, shows=[0, 0, 1]) | changed))


def test_sets_of_models_are_for_values():
    box = off.Box.binary(alpha=(0.1, 0.2), beta=(0.1, 0.2))
    with pytest.raises(off.InputError, match="not on hidden states"):
        off.Problem(off.MarkovChain(REGIMES, shows=[0, 0, 1]), 5, [2], 1.0, models=box)


def test_phases_and_hidden_states_do_not_go_together():
    content = off.PhasedChain("weekday", [[[0.5, 0.5]] * 2] * 7, [[0.5, 0.5]] * 7).to_dict()
    with pytest.raises(off.InputError, match="cannot have hidden states"):
        off.PhasedChain.from_dict({**content, "shows": [0, 1, 0]})
