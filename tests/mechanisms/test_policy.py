"""Policy: prints, saves, loads, and answers the owner of one record."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings

import offrecord as off
from definition import problems

CHAIN = off.MarkovChain.binary(0.01, 0.8, labels=["away", "home"])


def policy(n=10, private=(1,), epsilon=1.0, mechanism=None):
    return off.design(off.Problem(CHAIN, n, private, epsilon), mechanism or off.ThreeRegion())


@settings(max_examples=40, deadline=None)
@given(problem=problems(max_n=5))
def test_policy_files_come_back_as_they_were(problem, tmp_path_factory):
    made = off.design(problem, off.ThreeRegion())
    path = tmp_path_factory.mktemp("policy") / "policy.json"
    made.save(path)
    again = off.Policy.load(path)
    assert np.array_equal(again.redaction, made.redaction)
    assert (again.leakage, again.utility, again.mechanism) == (
        made.leakage,
        made.utility,
        made.mechanism,
    )
    assert again.problem.secrets == problem.secrets


@pytest.mark.parametrize("name", off.MECHANISMS)
def test_every_mechanism_has_policies_that_print_and_come_back(name, tmp_path):
    made = policy(n=8, private=(2, 6), epsilon=0.8, mechanism=off.mechanism_named(name))
    made.save(tmp_path / "policy.json")
    again = off.Policy.load(tmp_path / "policy.json")
    assert type(again) is type(made)
    assert again.mechanism == made.mechanism == name
    assert (again.leakage, again.utility) == (made.leakage, made.utility)
    assert again.to_dict() == made.to_dict()
    assert repr(again) == repr(made)
    told = str(made).splitlines()  # what no other could release is not in the file
    assert str(again).splitlines() == [line for line in told if not line.startswith("no local")]
    for values in ([0] * 8, [0, 1, 1, 0, 1, 0, 0, 1]):
        masks = [(mask.tolist(), chance) for mask, chance in made.outcomes(values)]
        assert masks == [(mask.tolist(), chance) for mask, chance in again.outcomes(values)]
        assert sum(chance for _, chance in masks) == pytest.approx(1)
    summary = json.loads(json.dumps(made.summary()))
    assert summary == made.summary()
    assert (summary["mechanism"], summary["private"]) == (name, [2, 6])
    assert summary["leakage"] <= summary["epsilon"] == 0.8
    assert str(made).startswith(f"{name}: releases {made.utility:.2%} of 8 records")


def test_a_policy_file_does_not_vouch_for_itself(tmp_path):
    """A file with a smaller matrix than its leakage claims is found out: the leakage is computed
    anew.
    """
    content = policy().to_dict()
    content["redaction"] = [[1, 1, [1.0, 1.0]]]
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(content))
    loaded = off.Policy.load(path)
    assert content["leakage"] <= 1.0 < loaded.leakage
    assert not loaded.is_private
    assert "> ε = 1" in repr(loaded)
    assert str(loaded).startswith("NOT PRIVATE")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(version=9), "policy file version must be 2, got 9"),
        (lambda c: c.update(format="x"), "not a policy file"),
        (lambda c: c.pop("epsilon"), 'lacks "epsilon"'),
        (lambda c: c["redaction"].__setitem__(0, [2, 1, [1, 1]]), "in order, got 2 to 1"),
        (lambda c: c["redaction"].__setitem__(0, [0, 1, [1, 1]]), "from 1 to 10 in order"),
        (lambda c: c["redaction"].append([1, 2, [1, 1]]), "in order"),
        (lambda c: c["redaction"].append([9, 11, [1, 1]]), "from 1 to 10"),
        (lambda c: c["redaction"].append([9, 9, [1, 1.5]]), "between 0 and 1"),
        (lambda c: c["redaction"].append([9, 9, [1, "a"]]), "between 0 and 1"),
        (lambda c: c["redaction"].append([9, 9, [1]]), "2 probabilities"),
        (lambda c: c.update(private=[0]), "records count from 1"),
        (lambda c: c["model"].update(order=0), "order"),
    ],
)
def test_damaged_policy_files_are_refused(tmp_path, change, message):
    content = policy().to_dict()
    change(content)
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(content))
    with pytest.raises(off.InputError, match=message):
        off.Policy.load(path)


def test_exactly_one_survives_the_file(tmp_path):
    """Trap 1: no serialiser turns 1 into 0.999…, nor the next float below 1 into 1."""
    made = policy()
    path = tmp_path / "p.json"
    near = np.zeros((10, 2))
    near[0], near[1:3] = 1, [1 - 2**-53, 1]
    off.LocalPolicy(made.problem, near, "mine").save(path)
    rows = off.Policy.load(path).redaction
    assert rows[1].tolist() == [1 - 2**-53, 1.0]


def test_rule_is_all_the_owner_of_a_record_needs():
    made = policy()
    assert made.rule(2) == {"away": pytest.approx(0.5469265, abs=1e-7), "home": 1.0}
    assert made.rule(10) == {"away": 0.0, "home": 0.0}
    with pytest.raises(off.InputError, match="record must be from 1 to 10, got 0"):
        made.rule(0)


def test_it_prints_what_a_reader_needs():
    text = str(policy())
    assert "3r-constant: releases 78.95% of 10 records, exact leakage 1 of ε = 1" in text
    assert "Pr(⊥ | away)" in text
    assert [line.split() for line in text.splitlines()[-3:]] == [
        ["1", "private", "1", "1"],
        ["2–3", "M", "0.5469", "1"],
        ["4–10", "S", "0", "0"],
    ]
    assert repr(policy()) == "<Policy 3r-constant: utility 0.7895, leakage 1 ≤ ε = 1>"


def test_a_probability_that_is_almost_one_is_not_printed_as_one():
    near = np.zeros((10, 2))
    near[0], near[1] = 1, [1, 1 - 2**-53]
    assert "0.99999999999999989" in str(off.LocalPolicy(policy().problem, near, "mine"))


def test_a_policy_of_ten_thousand_records_shows_what_is_around_the_private_one():
    slow = off.MarkovChain.binary(0.001, 0.002)
    policy = off.design(off.Problem(slow, 10_000, [5000], 0.5), off.ThreeRegion("relaxed"))
    wide = np.zeros((10_000, 2))
    wide[4900:5100, 0] = np.linspace(0.1, 0.9, 200)
    wide[4999] = 1
    mine = off.LocalPolicy(policy.problem, wide, "mine")
    for one in (policy, mine):
        assert re.search(r"^ *5000 +private", str(one), re.M)
    lines = str(mine).splitlines()
    assert sum(line.split() == ["…"] * 4 for line in lines) == 2  # before and after
    assert len(lines) < 40


def test_regions_and_span_follow_the_contract():
    small, large = policy(n=10_000, private=[5000]), policy(n=10_001, private=[5000])
    assert (small.first, small.last, len(small.regions)) == (1, 10_000, 10_000)
    assert large.last - large.first < 20
    assert large.rows(large.first, large.first).any()
    assert large.rows(large.last, large.last).any()
    assert large.regions[5000 - large.first] == "private"


def test_rows_and_regions_of_policies_that_come_from_elsewhere():
    made = policy()
    for first, last in ((0, 3), (5, 3), (1, 11)):
        with pytest.raises(off.InputError, match="records must be from 1 to 10"):
            made.rows(first, last)
    problem = off.Problem(CHAIN, 20_000, [19_000], 1.0)
    matrix = np.zeros((20_000, 2))
    matrix[99:200] = 1
    elsewhere = off.LocalPolicy(problem, matrix, "mine")
    assert set(elsewhere.regions) == {"L"}
    assert elsewhere.leakage == np.inf


def test_spans_too_long_to_list_say_so():
    wide = off.design(off.Problem(CHAIN, 2 * 10**6, [1, 2 * 10**6], 1.0), off.ThreeRegion())
    with pytest.raises(off.InputError, match="save the policy instead"):
        wide.summary()
    assert len(json.dumps(wide.to_dict())) < 10_000


def test_what_is_applied_is_one_of_the_outcomes():
    made, rng = policy(n=6, private=[3], epsilon=0.7), np.random.default_rng(1)
    values = [0, 1, 0, 0, 1, 0]
    possible = {tuple(mask.tolist()): chance for mask, chance in made.outcomes(values)}
    drawn = [tuple(made.apply(values, rng).tolist()) for _ in range(2000)]
    for mask, chance in possible.items():
        assert drawn.count(mask) / 2000 == pytest.approx(chance, abs=0.06)
    assert set(drawn) <= set(possible)
