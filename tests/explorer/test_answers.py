"""What the API says is what the library says, and a sample tells what Bayes says it does."""

import json
import shlex
from itertools import pairwise, product

import numpy as np
import pytest

import offrecord as off
from offrecord.explorer.samples import drawn_values, inferred, released_by
from offrecord.explorer.secrets import looked_at
from offrecord.explorer.state import Asked

THREE = off.MarkovChain(
    [[0.90, 0.08, 0.02], [0.20, 0.70, 0.10], [0.05, 0.15, 0.80]], labels=["home", "work", "away"]
)


def test_regions_are_the_papers(ask):
    asked = {"alpha": 0.1, "beta": 0.3, "n": 30, "private": "12", "epsilon": 0.5}
    found = ask("POST", "/api/regions", asked).json
    chain = off.MarkovChain.binary(0.1, 0.3)
    assert found["shown"] == {"first": 1, "last": 30}
    for row in found["influence"]:
        of_record = off.pointwise_influence(chain, 12, row["record"])
        assert row["influence"] == of_record[int(row["value"])]
        assert row["side"] == ("left" if row["record"] < 12 else "right")
    assert len(found["influence"]) == 29 * 2
    named = {}
    for band in found["regions"]:
        for record in np.arange(band["begin"] + 0.5, band["end"]):
            named[int(record)] = band["region"]
    others = np.setdiff1d(np.arange(1, 31), [12])
    assert named == dict(
        zip(others.tolist(), off.regions(chain, 12, others, 0.5).tolist(), strict=True)
    )


@pytest.mark.parametrize("mechanism", off.MECHANISMS)
@pytest.mark.parametrize("private", ["1", "4-5,11"])
def test_a_policy_is_the_librarys(ask, mechanism, private):
    asked = {"alpha": 0.05, "beta": 0.3, "n": 14, "private": private, "epsilon": 1.0}
    found = ask("POST", "/api/policy", {**asked, "mechanism": mechanism}).json
    records = [1] if private == "1" else [4, 5, 11]
    problem = off.Problem(off.MarkovChain.binary(0.05, 0.3), 14, records, 1.0)
    policy = off.design(problem, mechanism)
    assert found["utility"] == policy.utility
    assert found["leakage"] == policy.leakage
    assert found["worst_output"] == str(policy.worst)
    assert found["leakage_is_exact"] == policy.summary()["leakage_is_exact"]
    if mechanism != "owner":
        by_place = {(one["record"], one["series"]): one["probability"] for one in found["profile"]}
        for record, row in enumerate(policy.redaction, start=1):
            for value, q in enumerate(row):
                assert by_place[record, f"value {value}"] == q
    else:
        redacted = [one["probability"] for one in found["profile"] if "redacted" in one["series"]]
        assert np.isclose(1 - sum(redacted) / 14, policy.utility)


@pytest.mark.parametrize(
    ("changed", "is_final"),
    [
        ({"alpha": 0.01, "beta": 0.04}, False),  # walks that go far
        ({"alpha": 0.9, "beta": 0.7, "mechanism": "best-local"}, False),  # values that take turns
        ({"alpha": 0.3, "beta": 0.4}, True),
        ({"alpha": 0.01, "beta": 0.04, "mechanism": "best-local"}, True),
        ({"alpha": 0.01, "beta": 0.04, "private": "20-21"}, True),  # never in turn
        ({"alpha": 0.01, "beta": 0.04, "private": "9,20"}, True),
        ({"alpha": 0.01, "beta": 0.04, "mechanism": "window"}, True),
    ],
)
def test_a_first_answer_is_private_too_and_says_that_it_is_the_first(ask, changed, is_final):
    asked = {"n": 60, "private": "20", "epsilon": 1.0, "mechanism": "owner", **changed}
    first, last = (
        ask("POST", "/api/policy", {**asked, "soon": soon}).json for soon in (True, False)
    )
    assert (first["final"], last["final"]) == (is_final, True)
    assert (first == last) == is_final
    if is_final:
        return
    chain = off.MarkovChain.binary(asked["alpha"], asked["beta"])
    problem = off.Problem(chain, 60, [20], 1.0)
    mechanism = off.OwnerStopping() if asked["mechanism"] == "owner" else off.BestLocal()
    soon, best = mechanism.at_once(problem), off.design(problem, mechanism)
    assert (first["utility"], first["leakage"]) == (soon.utility, soon.leakage)
    assert first["leakage"] <= 1.0
    assert (last["utility"], last["leakage"]) == (best.utility, best.leakage)
    assert first["utility"] < last["utility"]


def test_a_curve_is_what_compare_says(ask, run):
    asked = {"alpha": 0.01, "beta": 0.8, "n": 10, "private": "1", "epsilons": [0.5, 1.0]}
    words = "compare --alpha 0.01 --beta 0.8 --n 10 --private 1 --epsilon 0.5,1 --json"
    _, out, _ = run(*shlex.split(words))
    rows = {(one["mechanism"], one["epsilon"]): one for one in json.loads(out)["results"]}
    for mechanism in off.MECHANISMS:
        for point in ask("POST", "/api/curve", {**asked, "mechanism": mechanism}).json["points"]:
            same = rows[mechanism, point["epsilon"]]
            assert point["utility"] == same["utility"]
            assert point["leakage"] == same["leakage"]


def of_definition(policy, values, redacted):
    """(secrets, k) the posterior of each secret's first value, and the log-ratios of what is shown
    under two values of the whole secret, over every sequence and every mask.
    """
    problem, chain = policy.problem, policy.problem.chain
    shown = [None if gone else int(value) for value, gone in zip(values, redacted, strict=True)]
    joint, prior = {}, {}
    for x in product(range(chain.k), repeat=problem.n):
        likely = chain.start[x[0]] * np.prod([chain.transition[a, b] for a, b in pairwise(x)])
        seen = 0.0
        if all(one is None or one == value for one, value in zip(shown, x, strict=True)):
            masks = policy.outcomes(x)
            seen = sum(chance for mask, chance in masks if np.array_equal(~mask, redacted))
        for at, secret in enumerate(problem.secrets):
            key = at, x[secret.first - 1 : secret.last]
            joint[key] = joint.get(key, 0.0) + likely * seen
            prior[key] = prior.get(key, 0.0) + likely
    posteriors, ratios = [], []
    for at in range(len(problem.secrets)):
        mine = {key[1]: weight for key, weight in joint.items() if key[0] == at}
        total = sum(mine.values())
        posteriors.append(
            [sum(w for v, w in mine.items() if v[0] == one) / total for one in range(chain.k)]
        )
        logs = np.log([mine[v] / prior[at, v] for v in mine])
        ratios.append(logs.max() - logs.min())
    return np.array(posteriors), np.array(ratios)


@pytest.mark.parametrize("mechanism", ["window", "3r-constant", "best-local", "owner"])
@pytest.mark.parametrize(
    ("chain", "n", "private", "epsilon"),
    [
        (off.MarkovChain.binary(0.2, 0.3), 7, [3], 0.7),
        (off.MarkovChain.binary(0.1, 0.4), 8, [1, 4, 5], 1.2),
        (THREE, 6, [2], 1.0),
    ],
)
def test_what_an_attacker_infers_is_bayes(mechanism, chain, n, private, epsilon):
    policy = off.design(off.Problem(chain, n, private, epsilon), mechanism)
    outputs = set()
    for seed in range(40):
        values = drawn_values(chain, n, seed)
        redacted = released_by(policy, values, seed)
        output = tuple(np.where(redacted, -1, values).tolist())
        if output in outputs or len(outputs) > 4:
            continue
        outputs.add(output)
        found = inferred(policy, values, redacted)
        posterior, ratio = of_definition(policy, values, redacted)
        np.testing.assert_allclose(found.posterior, posterior, atol=1e-9)
        np.testing.assert_allclose(np.abs(found.ratio), ratio, atol=1e-7)
        assert np.all(np.abs(found.ratio) <= epsilon + 1e-9)
        np.testing.assert_allclose(found.prior[0], chain.marginal(private[0]))


def test_samples_come_from_the_chain():
    """Counts of neighbouring values over many samples, and records of a chain of order 2."""
    counts = np.zeros((2, 2))
    for seed in range(300):
        values = drawn_values(off.MarkovChain.binary(0.2, 0.4), 50, seed)
        np.add.at(counts, (values[:-1], values[1:]), 1)
    rates = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rates, [[0.8, 0.2], [0.4, 0.6]], atol=0.02)
    alternating = off.MarkovChain(
        [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]], order=2, start=[[0.5, 0], [0, 0.5]]
    )
    for seed in range(20):  # the next one is the exclusive or of the last two, negated at 0, 0
        values = drawn_values(alternating, 12, seed)
        for a, b, c in zip(values, values[1:], values[2:], strict=False):
            assert alternating.transition[a, b, c] == 1.0


def test_local_samples_are_redacted_as_often_as_the_policy_says():
    policy = off.design(off.Problem(off.MarkovChain.binary(0.05, 0.3), 12, [4], 1.0))
    gone, seen = np.zeros((12, 2)), np.zeros((12, 2))
    for seed in range(4000):
        values = drawn_values(policy.problem.chain, 12, seed)
        np.add.at(gone, (np.arange(12), values), released_by(policy, values, seed))
        np.add.at(seen, (np.arange(12), values), 1)
    off_by = np.abs(gone / seen - policy.redaction)
    assert np.all(off_by <= 4.5 * np.sqrt(0.25 / seen))


def test_a_sample_stays_as_sliders_move(ask):
    """Values depend on the chain and the seed alone, so that a move shows what it changes."""
    asked = {"alpha": 0.2, "beta": 0.3, "n": 20, "private": "8", "seed": 5}
    samples = [
        ask("POST", "/api/policy", asked | more).json["sample"]["records"]
        for more in ({"epsilon": 0.5}, {"epsilon": 2}, {"mechanism": "window"})
    ]
    values = [[one["value"] for one in records] for records in samples]
    assert values[0] == values[1] == values[2]
    hidden = [{one["record"] for one in records if one["released"] is None} for records in samples]
    assert 8 in hidden[0] & hidden[1] & hidden[2]


def test_a_model_file_takes_the_place_of_two_probabilities(ask):
    asked = {"model": THREE.to_dict(), "n": 20, "private": "8,12", "about": 2, "epsilon": 1}
    regions = ask("POST", "/api/regions", asked).json
    assert regions["labels"] == ["home", "work", "away"]
    assert regions["secret"] == {"first": 12, "last": 12}
    policy = ask("POST", "/api/policy", asked | {"mechanism": "3r-relaxed"}).json
    same = off.design(off.Problem(THREE, 20, [8, 12], 1.0), "3r-relaxed")
    assert policy["utility"] == same.utility
    assert [one["value"] for one in policy["sample"]["beliefs"]] == ["home", "work", "away"]
    refused = ask("POST", "/api/policy", asked | {"mechanism": "quilt"})
    assert refused.status == 422
    assert refused.json["errors"][0]["field"] == "mechanism"


def test_what_is_infinite_is_said(ask):
    found = ask("POST", "/api/regions", {"alpha": 1, "beta": 1, "n": 6, "private": "3"}).json
    assert found["influence"] == []  # all of them infinite
    assert {band["region"] for band in found["regions"]} == {"L"}
    policy = ask("POST", "/api/policy", {"alpha": 1, "beta": 1, "n": 6, "private": "3"}).json
    assert policy["utility"] == 0


def test_the_secret_that_is_looked_at():
    asked = Asked(private="3,10-12,30", n=40, about=99)
    assert looked_at(asked.problem(), asked.about) == (3, (30, 30))
