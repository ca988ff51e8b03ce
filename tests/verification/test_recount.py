"""Counts, order and κ of a model that was learned from the released table are computed again."""

import json
import warnings
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.errors import InputError
from offrecord.fitting.fit import fit
from offrecord.models.records import Chains
from offrecord.verification import verify
from offrecord.verification.members import mean_rows
from offrecord.verification.recount import _Reference

RULE = "The model's order, κ and borrowing, which are those of the rule."


def walk(rng, k, chains, n):
    rows = rng.dirichlet(np.full(k, 0.5), k * k).cumsum(axis=1)
    codes = np.zeros((chains, n), dtype=np.int8)
    for chain in codes:
        for t, draw in enumerate(rng.random(n)):
            before = chain[t - 2] * k + chain[t - 1] if t > 1 else 0
            chain[t] = min(np.searchsorted(rows[before], draw, side="right"), k - 1)
    return codes


@pytest.mark.parametrize("seed", range(24))
def test_the_rule_by_other_code(seed):
    """Orders, κ and counts of the fit, whatever values, chains and gaps there are."""
    rng = np.random.default_rng(seed)
    k, chains, n = (int(rng.choice(few)) for few in ((2, 3, 5), (1, 3, 9, 40), (6, 40, 300)))
    codes = walk(rng, k, chains, n).ravel()
    codes[rng.random(len(codes)) < 0.02] = -1
    steps = np.tile(np.arange(n), chains)
    records = Chains(np.arange(chains + 1) * n, codes, steps, False, steps)
    try:
        posterior = fit(records, list(range(k)), epsilons=(), phase=None).posterior
    except InputError:  # nothing to learn from
        return
    released = SimpleNamespace(codes=codes, chains=records)
    reference = _Reference.of(released, np.ones(len(codes), dtype=bool), k)
    assert reference.order_of_the_rule() == posterior.order
    assert np.array_equal(reference.counts(posterior.order), posterior.counts)
    if reference.units >= 8:
        kappa, _ = reference.spread(posterior.order, mean_rows(posterior))
        assert kappa == posterior.kappa
    else:
        assert posterior.kappa is None


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The verdict on a release whose model was learned from it, after a change of the model."""
    folder = tmp_path_factory.mktemp("recount")
    rng = np.random.default_rng(3)
    rows = rng.dirichlet([2.0, 2.0], 30)  # chains that differ
    frame = pl.DataFrame(
        {
            "id": np.repeat([f"c{one:02d}" for one in range(30)], 50),
            "t": np.tile(np.arange(50), 30),
            "v": (rng.random((30, 50)) < rows[:, :1]).astype(int).ravel(),
            "p": np.arange(1500) == 325,
        }
    )
    listed, path = folder / "list.csv", folder / "r.csv"
    frame.filter("p").select("id", "t").write_csv(listed)

    def verdict(change, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = off.redact(
                frame, value="v", order="t", by="id", private="p", step="1", fit=True,
                epsilon=3.0, dataset="d", key_file=folder / "keys" / "key.json", phase=None,
                mechanism="window", accept=("model", "another-release"), **options,
            )  # fmt: skip
        release.write(path, force=True)
        file = folder / "r.csv.certificate.json"
        content = json.loads(file.read_text())
        change(content["model"])
        file.write_text(json.dumps(content))
        return verify(file, path, private_list=listed, seed=1)

    return verdict


def test_order_and_kappa_are_those_of_the_rule(released):
    verdict = released(lambda model: None)
    assert verdict.problems == []
    assert RULE in verdict.checked


def test_another_kappa_is_found(released):
    def change(model):
        assert model["kappa"] is not None
        model["kappa"] *= 64

    problems = released(change).problems
    assert any(one.startswith("the model's κ is") for one in problems)


def test_an_order_that_was_chosen_is_told(released):
    verdict = released(lambda model: None, chain_order=1)
    assert verdict.problems == []
    assert RULE not in verdict.checked
    assert any(
        "The model's order: it is 1, where the rule gives 2" in one for one in verdict.not_checked
    )
