"""Fits: orders, coverage, units and places of drawn tables, verdicts, and the demo's numbers."""

import csv
from importlib.resources import files

import numpy as np
import pytest

from fitting.sampling import RAIN, drawn, panel, table
from offrecord.errors import InputError
from offrecord.fitting.audit import dependence, windows
from offrecord.fitting.counting import Reference
from offrecord.fitting.fit import fit
from offrecord.fitting.kernels import compared, unit_kappa
from offrecord.models.chain import MarkovChain
from offrecord.models.evidence import Dependence
from offrecord.models.file import load_model
from offrecord.models.members import Places
from offrecord.models.posterior import Posterior
from offrecord.models.records import Chains
from offrecord.theory.pairs import record_leakages
from offrecord.theory.sides import local_outcomes


def demo():
    """The demo's records; its hours as steps."""
    source = files("offrecord") / "demo" / "jfk_rain_2013.csv"
    with source.open() as file:
        rows = list(csv.DictReader(file))
    hours = np.array([row["time"][:-1] for row in rows], dtype="datetime64[h]").astype(np.int64)
    codes = np.array([int(row["rain"]) if row["rain"] else -1 for row in rows], dtype=np.int8)
    return hours, codes


# ---- orders


@pytest.mark.parametrize(("k", "expected"), [(2, 2), (3, 2), (5, 2), (12, 1)])
def test_orders_of_independent_records_lie_above_bics(k, expected):
    rng = np.random.default_rng(k)
    reference = Reference(table(rng.integers(0, k, (1, 3000))), k)
    orders = compared(reference)
    assert orders.preferred == 0
    assert orders.chosen == expected


def test_orders_without_units_are_those_of_the_textbook():
    """BIC on the same transitions for all orders, by counts."""
    chains = drawn(RAIN, 2500, 1, seed=1)
    orders = compared(Reference(chains, 2))
    longest = max(orders.bic)
    values = chains.codes.astype(int)
    for order, bic in orders.bic.items():
        ends = np.arange(longest, len(values))
        tuples = [values[ends - back] for back in range(order, -1, -1)]
        counts = np.zeros((2,) * (order + 1))
        np.add.at(counts, tuple(tuples), 1)
        totals = counts.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            likelihood = np.nansum(counts * np.log(counts / totals))
        assert bic == pytest.approx(2**order * np.log(len(ends)) - 2 * likelihood)
    assert orders.chosen == orders.preferred + 2


# ---- the posterior


def test_counts_orders_and_borrowers_of_the_demo():
    """Section 7's numbers."""
    hours, codes = demo()
    usable = np.flatnonzero(codes >= 0)[:4353]
    codes, steps = codes[usable], hours[usable] - hours[usable[0]]
    chains = Chains(np.array([0, 4353]), codes, steps, False, steps)
    reference = Reference(chains, 2)
    assert reference.counts(2)[0].tolist() == [[3813, 77], [37, 59], [76, 19], [58, 204]]
    found = fit(chains, [0, 1], epsilons=(1.0,))
    assert (found.orders.preferred, found.posterior.order) == (3, 5)
    assert len(found.posterior.borrowed) == 7
    assert 24 <= found.windows[1.0][0] <= 31
    assert found.verdicts[0].verdict == "holds"


def true_leakage(rows, order, window):
    """Of a window in the true chain."""
    k = rows.shape[1]
    chain = MarkovChain(rows.reshape((k,) * (order + 1)), order=order)
    members = chain.members()
    left = local_outcomes(np.ones((max(window - order + 1, 0), k)), members, 0, "left")
    right = local_outcomes(np.ones((window, k)), members, 0, "right")
    return float(record_leakages(left, right, members.law(), members.last_value)[0])


@pytest.mark.parametrize(("length", "chains"), [(500, 1), (60, 12)])
def test_windows_of_the_rule_protect_the_true_chain(length, chains):
    """At least 95 % of tables, the order unknown to the rule (section 5)."""
    kept = 0
    for seed in range(40):
        reference = Reference(drawn(RAIN, length, chains, seed), 2)
        order = compared(reference).chosen
        kappa = unit_kappa(reference, order) if chains > 1 else None
        posterior = Posterior(reference.counts(order)[0], order, kappa=kappa)
        (window,) = windows(posterior, (1.0,))
        kept += window is None or true_leakage(RAIN, 2, window) <= 1.0
    assert kept >= 38


@pytest.mark.parametrize("kappa", [8.0, 64.0])
def test_units_that_differ_are_found_to_differ(kappa):
    rng = np.random.default_rng(1)
    rows = np.array([[0.8, 0.2], [0.4, 0.6]])
    own = np.array([[rng.dirichlet(kappa * row) for row in rows] for _ in range(150)])
    reference = Reference(drawn(own, 150, 150, seed=2), 2)
    assert kappa / 2 <= unit_kappa(reference, 1) <= 2 * kappa
    alike = Reference(drawn(rows, 150, 150, seed=3), 2)
    assert unit_kappa(alike, 1) >= 512


# ---- places


def test_panels_whose_steps_differ_get_a_kernel_each():
    rng = np.random.default_rng(5)
    values = np.zeros((300, 10), dtype=np.int8)
    for step in range(1, 10):
        leaves = 0.02 if step % 2 else 0.5
        values[:, step] = values[:, step - 1] ^ (rng.random(300) < leaves)
    found = fit(table(values), [0, 1], epsilons=(1.0,))
    assert found.posterior.places == Places("step", 10)
    assert found.posterior.mean.rows[0, 4, 0, 1] < 0.1 < found.posterior.mean.rows[0, 5, 0, 1]
    assert fit(table(values), [0, 1], epsilons=(1.0,), phase=None).posterior.places is None


@pytest.mark.parametrize("first_missing", [(), (0, 2)])
def test_few_chains_with_a_kernel_for_each_step_are_tested_chain_by_chain(first_missing):
    """The later half of every chain has no first records, and knows nothing of early steps."""
    values = np.random.default_rng(3).integers(0, 2, (4, 60))
    values[list(first_missing), 0] = -1
    found = fit(table(values), [0, 1], phase="step", chain_order=1, epsilons=(1.0,))
    assert found.posterior.first_counts.sum() == 4 - len(first_missing)
    assert [one.verdict for one in found.verdicts] == ["not shown"]


def test_places_that_make_no_difference_are_left_out():
    chains = drawn(RAIN, 20, 100, seed=6)
    hours = {"hour": chains.order % 24}
    found = fit(chains, [0, 1], epsilons=(1.0,), clocks=hours, zone="Europe/Berlin")
    assert found.posterior.places is None
    assert {gain.kind for gain in found.gains} == {"hour", "step"}
    forced = fit(chains, [0, 1], epsilons=(), clocks=hours, zone="Europe/Berlin", phase="hour")
    assert forced.posterior.places == Places("hour", 24, "Europe/Berlin")


# ---- verdicts


def test_tables_that_obey_the_model_are_not_called_broken():
    for seed in range(10):
        for rows, length, chains in ((RAIN, 2000, 1), (np.array([[0.6, 0.4], [0.5, 0.5]]), 50, 40)):
            found = fit(drawn(rows, length, chains, seed), [0, 1])
            assert [one.verdict for one in found.verdicts if one.verdict == "broken"] == []


def test_a_trait_that_lasts_as_long_as_a_chain_breaks_a_model_of_pooled_records():
    """Half of the visitors like one page, half the other: their choice shows far from a record.

    Chains that are named alike are one unit, so nothing says that units differ.
    """
    rng = np.random.default_rng(7)
    likes = rng.integers(0, 2, 60)
    values = (rng.random((60, 60)) < np.where(likes, 0.95, 0.05)[:, None]).astype(np.int8)
    whole = Chains(np.array([0, 3600]), values.ravel(), np.arange(3600), False, None)
    verdict = fit(whole, [0, 1], epsilons=(1.0,), chain_order=1).verdicts[0]
    assert verdict.verdict == "broken"
    assert verdict.counted > verdict.promised
    by_unit = fit(table(values), [0, 1], epsilons=(1.0,)).verdicts[0]
    assert by_unit.verdict != "broken"


def test_too_few_cases_are_no_proof():
    verdict = fit(drawn(RAIN, 60, 1, seed=8), [0, 1], epsilons=(1.0,)).verdicts[0]
    assert verdict.verdict == "not shown"


def test_only_what_neighbours_share_beyond_the_season_is_dependence():
    rng = np.random.default_rng(9)
    season = np.where(np.arange(200) % 20 < 10, 0.1, 0.9)
    alone = (rng.random((30, 200)) < season).astype(np.int8)
    assert not dependence(Reference(table(alone), 2)).exists
    pairs = np.repeat(alone[:15], 2, axis=0)
    pairs[1::2] ^= (rng.random((15, 200)) < 0.05).astype(np.int8)
    found = dependence(Reference(table(pairs), 2))
    assert found.exists
    assert found.counted > 3


def test_odds_hardly_above_those_at_random_are_no_dependence():
    assert not Dependence(counted=1.48, by_chance=1.47, alike=0.5, alike_by_chance=0.5).exists
    assert Dependence(counted=1.6, by_chance=1.47, alike=0.5, alike_by_chance=0.5).exists


@pytest.mark.parametrize(
    "effects",
    [
        dict(age=4.0),
        dict(age=4.0, chains=40, length=8),
        dict(age=6.0, chains=1000, trait=1.5),
        dict(season=2.0, length=60, chains=30),
        dict(season=2.0, cohorts=40),
        dict(age=4.0, cohorts=30),
        dict(age=4.0, season=1.5, cohorts=150),
    ],
)
def test_what_age_or_year_do_to_all_alike_is_no_dependence(effects):
    """By chance 1 table of 100 is called dependent: of 50, more than 3 are in 1 of 600 tries."""
    found = [
        dependence(Reference(panel(np.random.default_rng(seed), **effects), 2))
        for seed in range(50)
    ]
    assert sum(one is not None and one.exists for one in found) <= 3


def test_few_chains_that_copy_each_other_are_found_or_nothing_is_said():
    """Three chains can be paired by three pairings: time and dependence look the same."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        values = panel(rng, 4, 200, season=2.0).codes.reshape(4, 200).repeat(2, axis=0)
        values[1::2] ^= rng.random((4, 200)) < 0.2
        assert dependence(Reference(table(values), 2)).exists
        assert dependence(Reference(table(values[:3]), 2)) is None


@pytest.mark.parametrize(("chains", "length"), [(300, 12), (40, 8)])
def test_ids_in_the_order_of_answers_are_found(chains, length):
    for seed in range(10):
        drawn = panel(np.random.default_rng(seed), chains, length, age=3.0, trait=1.5)
        values = drawn.codes.reshape(chains, length)
        found = dependence(Reference(table(values[np.lexsort(values.T[::-1])]), 2))
        assert found.exists
        assert found.alike > found.alike_by_chance + 0.1


# ---- what a fit says, keeps and refuses


def test_a_fit_says_what_it_publishes_and_keeps_it(tmp_path):
    found = fit(drawn(RAIN, 300, 2, seed=10), ["dry", "wet"], coverage=0.95, epsilons=(1.0,))
    assert "publishes the exact counts of 600 records" in str(found)
    assert "order" in str(found)
    found.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.promise.to_dict() == found.posterior.to_dict()
    assert again.origin.records == 600
    assert found.summary()["model"]["coverage"] == 0.95
    assert found.chain.order == found.posterior.order


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chain_order": 0}, "from 1 to 7 for 2 values"),
        ({"chain_order": "best"}, "auto or a whole number"),
        ({"phase": "second"}, "must be one of hour, weekday, month, step"),
        ({"phase": "hour"}, "needs an order column with times"),
        ({"coverage": 0.9}, "coverage must be 0.99 or 0.95"),
        ({"reference": np.zeros(30, dtype=bool)}, "nothing to learn from"),
    ],
)
def test_what_cannot_be_fitted_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        fit(drawn(RAIN, 30, 1, seed=11), [0, 1], **options)
