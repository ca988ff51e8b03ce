"""Members: kernels, laws and steps of several chains at once, against sums over all sequences."""

from itertools import product

import numpy as np
import pytest

from offrecord.errors import InputError
from offrecord.models.chain import MarkovChain
from offrecord.models.members import Members, Places
from offrecord.models.promise import KnownChains
from offrecord.models.stationary import stationary_laws


def rows(rng, members, places, order, k):
    return rng.dirichlet(np.ones(k), size=(members, places, k**order))


def sequences(chain, n, order):
    """All sequences of n records with their probabilities, from its first context on."""
    k, places = chain.k, chain.rows.shape[1]
    for values in product(range(k), repeat=n):
        context = 0
        for value in values[:order]:
            context = context * k + value
        mass = chain.first[0, context]
        for place in range(order - 1, n - 1):
            mass *= chain.rows[0, min(place, places - 1), context, values[place + 1]]
            context = (context * k + values[place + 1]) % k**order
        yield values, mass


def number(values, k):
    found = 0
    for value in values:
        found = found * k + value
    return found


@pytest.mark.parametrize(("k", "order", "kernels"), [(2, 1, 4), (3, 1, 1), (2, 2, 4), (3, 2, 1)])
def test_laws_and_steps_with_a_start_are_sums_over_all_sequences(k, order, kernels):
    rng, n = np.random.default_rng(k + order), 5
    first = rng.dirichlet(np.ones(k**order), size=1)
    chain = Members(rows(rng, 1, kernels, order, k), order, Places("step", n), first)
    for source in range(order - 1, n):
        for target in range(source, n):
            joint = np.zeros((k**order,) * 2)
            for values, mass in sequences(chain, n, order):
                contexts = [number(values[at - order + 1 : at + 1], k) for at in (source, target)]
                joint[contexts[0], contexts[1]] += mass
            law = joint.sum(axis=1)
            assert chain.law(source)[0] == pytest.approx(law)
            ahead = chain.law(source)[0][:, None] * chain.ahead(source, target - source)[0]
            assert ahead == pytest.approx(joint)
            back = chain.law(target)[0][:, None] * chain.back(target, target - source)[0]
            assert back == pytest.approx(joint.T)


@pytest.mark.parametrize("order", [1, 2])
def test_members_are_judged_as_if_each_were_alone(order):
    rng = np.random.default_rng(3)
    many = Members(rows(rng, 5, 7, order, 2), order, Places("weekday", 7))
    for member in range(5):
        alone = many.part(slice(member, member + 1))
        assert many.law(3)[member] == pytest.approx(alone.law(3)[0])
        assert many.ahead(5, 9)[member] == pytest.approx(alone.ahead(5, 9)[0])
        assert many.back(1, 4)[member] == pytest.approx(alone.back(1, 4)[0])


def test_a_cycle_of_places_keeps_the_law_of_each_place():
    rng = np.random.default_rng(4)
    chain = Members(rows(rng, 3, 12, 2, 2), 2, Places("month", 12))
    for place in range(12):
        later = np.einsum("ms,mst->mt", chain.law(place), chain.ahead(place, 1))
        assert chain.law((place + 1) % 12) == pytest.approx(later)


def test_powers_are_the_same_however_they_are_asked_for():
    rng = np.random.default_rng(5)
    one, other = (Members(rows(np.random.default_rng(5), 4, 1, 2, 2), 2) for _ in range(2))
    for steps in rng.permutation(np.arange(1, 40)):
        assert one.ahead(0, steps) == pytest.approx(
            np.linalg.matrix_power(other.kernel(), int(steps)), rel=1e-12
        )


def test_stationary_laws_of_kernels_with_values_that_never_come_back():
    kernels = np.array([[[0.5, 0.5, 0], [0, 0.3, 0.7], [0, 0.6, 0.4]], np.full((3, 3), 1 / 3)])
    laws = stationary_laws(kernels)
    assert laws[0] == pytest.approx([0, 6 / 13, 7 / 13])
    assert laws[1] == pytest.approx(np.full(3, 1 / 3))
    with pytest.raises(InputError, match="2 separate closed classes"):
        stationary_laws(np.eye(2)[np.newaxis])


# ---- known chains as lists


def test_a_start_is_forgotten_at_the_last_of_its_places():
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], [0.1, 0.9])
    members = chain.members()
    last = members.place_count - 1
    assert members.places.goes_on
    assert members.law(last)[0] == pytest.approx([0.8, 0.2], rel=1e-12)
    assert members.place_after(last, 3) == last
    assert members.margin(2) == (2, None)
    assert members.margin(last) == (None, None)
    with pytest.raises(InputError, match="does not forget its start"):
        MarkovChain([[0, 1], [1, 0]], [0.3, 0.7]).members()


def test_a_kernel_for_each_step_fixes_how_many_places_there_are():
    chain = MarkovChain([[[0.5, 0.5], [0.1, 0.9]]] * 3, [0.5, 0.5])
    assert chain.members().places == Places("step", 4)
    assert chain.members().law(3)[0] == pytest.approx(chain.marginal(4))
    with pytest.raises(InputError, match="this chain has 4 records"):
        chain.members(7)
    with pytest.raises(InputError, match="none has number 4"):
        chain.members().place_after(3, 1)


def test_a_list_of_chains_has_places_if_any_of_them_needs_some():
    stationary = MarkovChain([[0.8, 0.2], [0.3, 0.7]])
    other = MarkovChain([[0.9, 0.1], [0.4, 0.6]], [0.1, 0.9])
    assert KnownChains([stationary]).places is None
    both = KnownChains([stationary, other])
    assert both.members().law(0) == pytest.approx(np.array([[0.6, 0.4], [0.1, 0.9]]))
    assert both.mean.law(0)[0] == pytest.approx([0.35, 0.65])
    assert both.of_length(3).places == Places("step", 3)


@pytest.mark.parametrize(
    ("chains", "message"),
    [
        ([], "at least one chain"),
        ([MarkovChain.binary(0.1, 0.2), "chain"], "must hold chains, got str"),
        (
            [MarkovChain.binary(0.1, 0.2), MarkovChain.binary(0.1, 0.2, labels=["a", "b"])],
            "the same values",
        ),
        (
            [MarkovChain.binary(0.1, 0.2), MarkovChain(np.full((2, 2, 2), 0.5), order=2)],
            "the same order",
        ),
    ],
)
def test_what_is_no_list_of_chains_is_refused(chains, message):
    with pytest.raises(InputError, match=message):
        KnownChains(chains)
