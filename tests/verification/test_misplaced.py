"""Models, policies and numbers that do not belong to the table: the publisher refuses them, and
where a changed program does not, the verifier finds out.
"""

import datetime as dt
import json
import warnings

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.mechanisms.rules import LocalRule, Pair, Setting
from offrecord.mechanisms.table_policy import TablePolicy, Validation
from offrecord.models.file import Model
from offrecord.models.members import Places
from offrecord.models.posterior import Posterior
from offrecord.tables import plan, survey
from offrecord.tables.steps import Step
from offrecord.theory.pairs import record_bounds, record_leakages
from offrecord.verification import verify
from offrecord.verification.law import Judged
from releases import HUGE, posterior, rules_for

STICKY = np.array([[980, 20], [20, 980]])


def released(folder, frame, **options):
    """The paths of a released table and its certificate."""
    asked = {"value": "v", "order": "t", "by": "id", "private": "p", "step": 1, "dataset": "x"}
    asked |= {"key_file": folder / "key" / "key.json", "epsilon": 4.0, "accept": "model"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = off.redact(frame, **asked | options)
        certificate, _ = made.write(folder / "x.csv")
    return certificate, folder / "x.csv"


def frame(rows):
    return pl.DataFrame(rows, schema=["id", "t", "v", "p"], orient="row")


def problems(paths):
    return " ".join(verify(*paths, seed=1).problems)


def test_chains_longer_than_the_model(tmp_path, monkeypatch):
    counts = np.array([STICKY] * 12)
    panel = Posterior(
        counts.sum(0), 1, ["v0", "v1"], 0.95, places=Places("step", 12), place_counts=counts,
        place_kappa=50.0, first_counts=[300, 200],
    )  # fmt: skip
    rng = np.random.default_rng(1)
    rows = [(f"c{j}", i, f"v{rng.integers(2)}", i == 25 and j < 4) for j in range(20)
            for i in range(40)]  # fmt: skip
    asked = {"model": Model(panel), "mechanism": "window"}
    with pytest.raises(off.InputError, match="12 steps"):
        released(tmp_path, frame(rows), **asked)
    monkeypatch.setattr(survey, "_too_long", lambda *_: 0)
    assert "longer than the model's 12 steps" in problems(released(tmp_path, frame(rows), **asked))


def test_a_clock_that_is_not_the_step(tmp_path, monkeypatch):
    counts = np.array([STICKY] * 24)
    daily = Posterior(
        counts.sum(0), 1, ["v0", "v1"], 0.95, places=Places("hour", 24, "UTC"),
        place_counts=counts, place_kappa=50.0,
    )  # fmt: skip
    rng, begin = np.random.default_rng(1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = [("c0", begin + dt.timedelta(hours=2 * i), f"v{rng.integers(2)}", i == 150)
            for i in range(300)]  # fmt: skip
    asked = {"model": Model(daily), "mechanism": "window", "step": "2h"}
    with pytest.raises(off.InputError, match='needs step="1h"'):
        released(tmp_path, frame(rows), **asked)
    with monkeypatch.context() as patched:
        patched.setattr(Step, "same", lambda *_: True)
        paths = released(tmp_path, frame(rows), **asked)
    assert "not this table's step" in problems(paths)


def test_a_growing_table_that_is_said_to_be_longer_than_it_is(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    promise = posterior(rng, 2, 1)
    rows = [(f"c{c}", t, f"v{rng.integers(2)}", rng.random() < 0.05) for c in range(3)
            for t in range(90)]  # fmt: skip
    honest = plan.holding_of
    monkeypatch.setattr(
        plan, "holding_of", lambda policy, order, until, lag: honest(policy, order, 9999, lag)
    )
    policy = rules_for(rng, "stopping", promise)
    asked = {"model": Model(promise), "policy": policy, "growing": True, "epsilon": HUGE}
    paths = released(tmp_path, frame(rows), **asked)
    listed = tmp_path / "list.csv"
    frame(rows).filter("p").select("id", "t").write_csv(listed)
    found = verify(*paths, private_list=listed, seed=1)
    assert any("growing.until" in one for one in found.problems)


WINDOW = LocalRule.window(9, 2)


@pytest.mark.parametrize(
    ("setting", "pair", "message"),
    [
        (Setting("record", 9), Pair(WINDOW, WINDOW), "place 9"),
        (Setting("record"), Pair(None, WINDOW), "other sides"),
        (Setting("run"), Pair(None, WINDOW), "other sides"),
        (Setting("first"), Pair(WINDOW, WINDOW), "other sides"),
    ],
)
def test_policies_of_another_shape(setting, pair, message, tmp_path):
    promise = Posterior([[900, 100], [300, 700]], 1, ["v0", "v1"])
    rows = [("c0", t, f"v{t % 3 // 2}", t in (100, 300)) for t in range(600)]
    rules = {Setting("record"): Pair(WINDOW, WINDOW), setting: pair}
    policy = TablePolicy("mine", 4.0, "run", None, rules)
    with pytest.raises(off.InputError, match=message):
        released(tmp_path, frame(rows), model=Model(promise), policy=policy)


def test_a_policy_that_is_given_is_certified_as_a_verifier_judges_it(tmp_path):
    """A policy that 30 of 8,000 chains exceed serves, and its certificate verifies."""
    promise = Posterior([[900, 100], [300, 700]], 1, ["v0", "v1"])
    window = LocalRule.window(4, 2)
    rules = {Setting("record"): Pair(window, window)}
    leakages = TablePolicy("", 1.0, "run", None, rules).leakages(promise.members(100_000, 1))
    epsilon = float(np.quantile(leakages, 1 - 30 / 8000))
    rows = [("c0", t, f"v{t % 3 // 2}", t in (100, 300)) for t in range(600)]
    policy = TablePolicy("mine", 1.0, "run", None, rules)
    paths = released(tmp_path, frame(rows), model=Model(promise), policy=policy, epsilon=epsilon)
    assert problems(paths) == ""


def test_leakage_that_is_no_number_is_no_small_leakage():
    found = np.array([0.0, np.nan, 2.0])
    assert Validation.of(found, 1.0).above == 2
    assert Judged(found, 1.0).above == 2
    kernels = np.array([[[[0.5, 0.5], [np.nan, 0.5]]]])
    from offrecord.models.members import Members

    panel = Members(kernels, 1, Places("step", 3), np.array([[0.5, 0.5]]))
    with pytest.raises(off.InputError, match="no numbers"):
        panel.law(2)


def test_bounds_count_an_unlimited_outcome_beside_one_that_cannot_occur():
    law = np.full((1, 4), 0.25)
    left = np.array([[[0.0, 0.0, 0.0, 0.0], [0.5, 0.4, 0.3, 0.2]]])
    right = np.array([[[1.0, 0.0, 1.0, 0.0], [0.3, 0.3, 0.4, 0.4]]])
    last = np.array([0, 1, 0, 1])
    assert record_leakages(left, right, law, last)[0] == np.inf
    assert record_bounds(left, right, law, last)[0] == np.inf


def test_rules_of_different_places_keep_epsilon_together():
    """A chain with a start of its own: the left rule of one place beside the right of another."""
    rows = [[0.640625, 0.359375], [0.21875, 0.78125]]
    chain = off.MarkovChain(rows, [0.8659794043466217, 0.13402059565337818])
    policy = off.design(off.Problem(chain, 9, [3, 4], 2.0), off.OwnerStopping())
    assert policy.is_private
    both = [off.MarkovChain(rows), chain]
    mixed = off.design(off.Problem(both[0], 9, [4], 1.0, models=both), off.OwnerStopping())
    assert mixed.is_private


@pytest.fixture
def fitted(tmp_path):
    """A release of a table that its model was learned from; the paths, and the original."""
    rng, values = np.random.default_rng(4), []
    for _ in range(40):
        value = int(rng.integers(2))
        for _ in range(50):
            values.append(value)
            value = value if rng.random() < 0.7 else 1 - value
    rows = [(f"c{i // 50}", i % 50, f"v{v}", i in (120, 730)) for i, v in enumerate(values)]
    paths = released(tmp_path, frame(rows), fit=True, accept=(), epsilon=1.0)
    original = tmp_path / "original.csv"
    frame(rows).drop("p").write_csv(original)
    return *paths, original


def changed(certificate, part, **numbers):
    content = json.loads(certificate.read_text())
    content[part] = content[part] | numbers if numbers else []
    path = certificate.with_name("changed.json")
    path.write_text(json.dumps(content))
    return path


def test_no_number_takes_a_caveat_away(fitted):
    certificate, table, _ = fitted
    said = verify(certificate, table, seed=1)
    assert said.is_verified
    for path in (changed(certificate, "verdicts"), changed(certificate, "release", others=0),
                 changed(certificate, "evidence", unseen=True)):  # fmt: skip
        assert verify(path, table, seed=1).not_checked == said.not_checked
    caveats = " ".join(said.not_checked)
    for what in ("counts, order and κ", "Where the model was learned", "Other releases"):
        assert what in caveats


def test_an_origin_that_is_not_of_this_table(fitted):
    certificate, table, original = fitted
    assert "origin.column" in problems((changed(certificate, "origin", column="w"), table))
    with pytest.raises(off.InputError, match="none of its values"):
        verify(changed(certificate, "origin", others="zz"), table, original=original, seed=1)
