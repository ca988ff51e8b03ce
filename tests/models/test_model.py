"""What every model answers: the same questions, told by the definition."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import chains, sequences
from offrecord.models.base import Model
from offrecord.models.clock import Clock, phases_of


def phased(k=2, seed=0):
    """By weekday, with a kernel and a start of its own for each."""
    rng = np.random.default_rng(seed)
    return off.PhasedChain(
        "weekday",
        rng.dirichlet(np.ones(k), size=(7, k)),
        rng.dirichlet(np.ones(k), size=7),
        zone="Europe/Berlin",
    )


def test_both_kinds_of_model_answer_all_of_its_questions():
    asked = [name for name in vars(Model) if not name.startswith("_")]
    assert len(asked) > 10
    for model in (off.MarkovChain.binary(0.1, 0.2), phased()):
        assert all(hasattr(model, name) for name in asked)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_masses_and_contexts_of_a_chain_are_those_of_its_joint_distribution(data):
    n = data.draw(st.integers(2, 5))
    chain = data.draw(chains(n))
    assert chain.along() is chain
    assert chain.clock is None
    paths, weights = sequences(chain, n)
    places = np.array([0, n - 1, 1, 0])
    masses = np.broadcast_to(chain.masses(places), (len(places), chain.k))
    for place, mass in zip(places, masses, strict=True):
        found = np.bincount(paths[:, place], weights=weights, minlength=chain.k)
        assert np.allclose(mass, found, atol=1e-12)
    contexts = chain.contexts(places)
    if chain.length is None:
        assert contexts is None
    else:
        for place, context in zip(places, contexts, strict=True):
            if place:  # the step into record place + 1, counted from 1, leaves record `place`
                assert np.array_equal(chain.transition[context], chain.kernel(int(place)))


def test_masses_and_contexts_of_a_phased_chain_are_those_of_the_chain_along_its_phases():
    model = phased(k=3)
    phases = np.array([5, 6, 0, 1], dtype=np.int8)
    chain = model.along(phases)
    assert np.allclose(model.masses(np.arange(4), phases)[0], chain.marginal(1))
    assert np.array_equal(model.masses(np.arange(4), phases), model.start[phases])
    contexts = model.contexts(np.arange(4), phases)
    for place in (1, 2, 3):
        assert np.array_equal(model.transition[contexts[place]], chain.kernel(place))
    assert not model.is_stationary
    assert model.length is None


def test_phases_are_asked_for_where_a_model_has_a_clock_and_nowhere_else():
    with pytest.raises(off.InputError, match="needs the phases"):
        phased().along()
    with pytest.raises(off.InputError, match="has no phases"):
        off.MarkovChain.binary(0.1, 0.2).along(np.array([1, 2]))


def test_a_clock_tells_the_phases_that_its_zone_shows():
    clock = phased().clock
    assert clock == Clock("weekday", "Europe/Berlin")
    assert clock.count == 7
    sunday_evening = np.array([1_709_506_800 * 10**9])  # 2024-03-03T23:00Z: Monday in Berlin
    assert clock.phases(sunday_evening).tolist() == [0]
    assert Clock("weekday").phases(sunday_evening).tolist() == [6]
    assert phases_of(sunday_evening, "weekday").tolist() == [6]


@dataclass(frozen=True)
class Disguised:
    """A third kind of model: it has a chain inside, and is none."""

    inside: off.MarkovChain | off.PhasedChain

    def __getattr__(self, name):
        if name.startswith("__") or not hasattr(Model, name):
            raise AttributeError(name)
        return getattr(self.inside, name)

    def rounded(self):
        inside = self.inside.rounded()
        return self if inside is self.inside else Disguised(inside)

    def with_learned(self, learned):
        return Disguised(self.inside.with_learned(learned))


def table(rooms=6, days=60):
    rng = np.random.default_rng(4)
    at = np.datetime64("2024-01-01") + np.tile(np.arange(days), rooms)
    room, state = np.repeat(np.arange(rooms), days), rng.integers(0, 2, rooms * days)
    private = (room == 2) & (np.tile(np.arange(days), rooms) == 30)
    return pl.DataFrame({"room": room, "day": at, "state": state, "private": private})


@pytest.mark.parametrize(
    "model",
    [off.MarkovChain.binary(0.1234, 0.21), phased().rounded()],
    ids=["chain", "phased"],
)
def test_a_third_kind_of_model_goes_through_a_whole_job_unasked_what_it_is(model, tmp_path):
    if model.clock is not None:
        model = off.PhasedChain("weekday", model.transition, model.start)  # as the times: no zone
    released = []
    for one in (model, Disguised(model)):
        release = off.redact(
            table(),
            by="room",
            order="day",
            value="state",
            private="private",
            model=one,
            epsilon=1.0,
            dataset="d",
            mechanism="window",
            key_file=tmp_path / "key.json",
            step="1d",
            accept_model=True,
        )
        released.append(release.frame)
    assert released[0].equals(released[1])
    assert released[0]["state"].null_count() > 0
