"""A model belongs to a table, or the release is refused; and what is found out about that can be
computed from the release.
"""

import json
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

import offrecord as off
from definition import samples
from offrecord import cli
from offrecord.designs.library import Designs, Setting
from offrecord.fitting.dispersion import dispersion
from offrecord.models.learned import Learned
from offrecord.tables.model_check import compared

SLOW = off.MarkovChain([[0.97, 0.03], [0.05, 0.95]])
QUICK = off.MarkovChain([[0.75, 0.25], [0.4, 0.6]])
COLUMNS = {"value": "v", "order": "t", "by": "chain"}
#: Two regimes that last a hundred records: in one 1 is rare, in the other common.
REGIMES = off.MarkovChain(
    np.kron([[0.99, 0.01], [0.01, 0.99]], np.ones((2, 2))) * [0.9, 0.1, 0.4, 0.6],
    shows=[0, 1, 0, 1],
)


def table(chain, chains=40, length=60, seed=0, minutes=None):
    """Chains of a model, one record of some of them private; ordered by numbers, or by times some
    minutes apart.
    """
    rng = np.random.default_rng(seed)
    order = np.tile(np.arange(length), chains)
    times = (
        pl.Series(order)
        if minutes is None
        else pl.Series([datetime(2021, 5, 3) + i * timedelta(minutes=minutes) for i in order])
    )
    private = np.zeros((chains, length), dtype=bool)
    private[np.arange(0, chains, 4), rng.integers(length, size=len(range(0, chains, 4)))] = True
    return pl.DataFrame(
        {
            "chain": np.repeat(np.arange(chains), length),
            "t": times,
            "v": samples(chain, chains, length, rng).ravel(),
            "p": private.ravel(),
        }
    )


@pytest.fixture
def redact(tmp_path):
    def call(frame, model, **options):
        standard = COLUMNS | {
            "private": "p",
            "epsilon": 1.0,
            "dataset": "d",
            "key_file": tmp_path / "keys" / "key.json",
        }
        return off.redact(frame, model=model, **(standard | {"mechanism": "window"} | options))

    return call


# ---- steps


@pytest.fixture
def ten():
    """Learned from records every ten minutes."""
    return off.fit(table(SLOW, seed=6, minutes=10), **COLUMNS, step="10m").model


@pytest.mark.parametrize(
    ("minutes", "options", "says"),
    [
        (10, {"step": "1m"}, "learned with --step 10m, but is used with --step 1m"),
        (60, {"step": "1h"}, "learned with --step 10m, but is used with --step 1h"),
        (10, {}, "learned with --step 10m, but is used with no --step"),
        (None, {"step": 1}, "ordered by times, not by whole numbers"),
        (10, {"order": "row"}, "ordered by times, not by the order of rows"),
    ],
)
def test_a_model_is_used_with_the_step_it_was_learned_with(
    redact, ten, tmp_path, minutes, options, says
):
    ten.save(tmp_path / "model.json")
    for model in (ten, tmp_path / "model.json"):
        with pytest.raises(off.InputError, match=says):
            redact(table(SLOW, minutes=minutes), model, **options)
    assert json.loads((tmp_path / "keys" / "key.ledger.json").read_text())["releases"] == {}


def test_the_same_step_in_other_words_is_the_same(redact, ten):
    assert redact(table(SLOW, minutes=10), ten, step="600s").summary.verdict == ten.learned.verdict


def test_a_model_without_a_step_is_not_used_with_one(redact):
    model = off.fit(table(SLOW, seed=6, minutes=10), **COLUMNS).model
    with pytest.raises(off.InputError, match="learned with no --step, but is used with --step 10m"):
        redact(table(SLOW, minutes=10), model, step="10m")


@pytest.mark.parametrize(("there", "here"), [(60, 10), (10, 60), (1, 2)])
def test_without_steps_the_distance_of_neighbours_is_compared(redact, there, here):
    """Fitted hourly, used on records every ten minutes: what changes in an hour changes less in ten
    minutes.
    """
    model = off.fit(table(SLOW, seed=6, minutes=there), **COLUMNS).model
    assert model.learned.spacing == there * 60
    with pytest.raises(
        off.InputError, match=r"neighbours are \d+ seconds apart .* but \d+ seconds in the data"
    ):
        redact(table(SLOW, minutes=here), model)
    release = redact(table(SLOW, minutes=here), model, accept_model=True)
    assert "seconds apart" in release.certificate["model_check"]["accepted"][0]
    assert any("seconds apart" in warning for warning in release.summary.warnings)
    assert (
        redact(table(SLOW, minutes=there), model, dataset="like that").certificate["model_check"][
            "accepted"
        ]
        == []
    )


@pytest.mark.parametrize("step", ["1m", "2m", "5m"])
def test_a_step_at_which_hardly_any_record_has_a_neighbour_is_refused(redact, step):
    """Such a release would be plain erasure: every neighbour seems to be far away."""
    frame = table(SLOW, minutes=10)
    with pytest.raises(
        off.InputError, match=r"only 0 of 2,360 neighbouring rows are one --step apart"
    ):
        redact(frame, SLOW, step=step)
    with pytest.raises(off.InputError, match=r"one --step apart"):
        redact(frame, SLOW, step=step, dry_run=True)
    with pytest.raises(off.InputError, match=r"stand one step apart"):
        off.fit(frame, **COLUMNS, step=step)
    assert redact(frame, SLOW, step="10m").summary.rows == 2400


# ---- models of other tables


def counted(release, frame):
    """Transitions among records that no value of theirs is ever redacted, from the release and its
    rule alone.
    """
    rule = release.explain()
    counts = np.zeros((2, 2))
    rows = zip(
        release.frame["chain"], release.frame["t"], release.frame["v"], rule["region"], strict=True
    )
    for (chain, t, v, region), (chain2, t2, v2, region2) in pairwise(rows):
        if chain == chain2 and t2 == t + 1 and region == region2 == "S":
            counts[v, v2] += 1
    return counts


def test_the_comparison_can_be_computed_from_the_release(redact):
    release = redact(table(QUICK), QUICK)
    counts = counted(release, table(QUICK))
    found = release.certificate["model_check"]["compared"]
    assert found["transitions"] == counts.sum()
    shares = counts / counts.sum(axis=1, keepdims=True)
    statistic = 2 * (counts * np.log(shares / QUICK.transition)).sum()
    assert found["statistic"] == pytest.approx(statistic, rel=1e-3)
    assert found["degrees"] == 2
    assert found["p_value"] == pytest.approx(chi2.sf(statistic, 2), rel=1e-3)


@pytest.mark.parametrize(("model", "data"), [(QUICK, SLOW), (SLOW, QUICK)])
def test_a_model_of_another_table_is_refused(redact, tmp_path, model, data):
    with pytest.raises(off.InputError, match=r"not the model of these data: .*--accept-model"):
        redact(table(data), model)
    release = redact(table(data), model, accept_model=True)
    assert len(release.certificate["model_check"]["accepted"]) == 1
    assert any("which was accepted" in warning for warning in release.summary.warnings)


def test_the_odds_that_are_named_are_those_of_the_tables_own_chain(redact):
    with pytest.raises(
        off.InputError, match=r"the odds would reach ([\d.]+) to 1 instead of 2.718"
    ) as caught:
        redact(table(SLOW, chains=400), QUICK)
    said = float(str(caught.value).split("reach ")[1].split(" to 1")[0])
    release = redact(table(SLOW, chains=400), QUICK, accept_model=True)
    matrix = release.explain().filter(pl.col("chain") == 0).select(pl.col("^Pr.*$")).to_numpy()
    private = int(table(SLOW, chains=400).filter(pl.col("chain") == 0)["p"].arg_max()) + 1
    true = off.leakage(off.Problem(SLOW, 60, [private], 1.0), matrix)
    assert np.exp(true) > 2 * np.e
    assert said == pytest.approx(
        np.exp(true), rel=0.4
    )  # estimated from the table, and the largest of several secrets


def test_a_refusal_leaves_nothing_and_every_engine_refuses(tmp_path, capsys):
    SLOW.save(tmp_path / "slow.json")
    QUICK.save(tmp_path / "quick.json")
    table(SLOW).write_csv(tmp_path / "t.csv")
    (tmp_path / "out").mkdir()
    base = [
        "redact",
        str(tmp_path / "t.csv"),
        "--value",
        "v",
        "--order",
        "t",
        "--by",
        "chain",
        "--private",
        "p",
        "--epsilon",
        "1",
    ]
    base += [
        "--dataset",
        "d",
        "--key-file",
        str(tmp_path / "key" / "key.json"),
        "-o",
        str(tmp_path / "out" / "o.csv"),
    ]
    for engine in ("--in-memory", "--stream"):
        assert cli.main([*base, engine, "--model", str(tmp_path / "quick.json")]) == 2
        assert "not the model of these data" in capsys.readouterr().err
        assert list((tmp_path / "out").iterdir()) == []
    for engine in ("--in-memory", "--stream"):
        assert cli.main([*base, engine, "--model", str(tmp_path / "slow.json"), "--force"]) == 0
    certificate = json.loads((tmp_path / "out" / "o.csv.certificate.json").read_text())
    assert certificate["model_check"]["accepted"] == []


def test_tables_of_the_model_are_hardly_ever_refused(redact):
    """200 tables of it, two values and three: none, at a significance of 1e-6."""
    three = off.MarkovChain([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    for seed in range(100):
        for chain in (SLOW, three):
            release = redact(table(chain, chains=12, seed=seed), chain, dataset=f"{seed} {chain.k}")
            assert not any("differs" in warning for warning in release.summary.warnings)


def test_few_transitions_say_nothing_and_that_is_said(redact):
    release = redact(table(SLOW, chains=1, length=40), QUICK)
    assert any(
        "too few to tell whether the table follows the model" in warning
        for warning in release.summary.warnings
    )


@pytest.mark.filterwarnings("ignore::offrecord.errors.ChosenByValue")
def test_private_values_do_not_matter(redact):
    """Neither the comparison nor its refusal depends on a value that is redacted whatever it is."""
    for data in (SLOW, QUICK):
        said = set()
        for value in (0, 1, 7):
            frame = table(data).with_columns(
                pl.when("p").then(pl.lit(value)).otherwise("v").alias("v")
            )
            try:
                said.add(json.dumps(redact(frame, SLOW).certificate))
            except off.InputError as error:
                said.add(str(error))
        assert len(said) == 1


def test_higher_orders_and_phases_are_compared_too(redact):
    second = off.MarkovChain([[[0.95, 0.05], [0.3, 0.7]], [[0.7, 0.3], [0.05, 0.95]]], order=2)
    with pytest.raises(off.InputError, match="not the model of these data"):
        redact(table(SLOW, chains=100), second)
    fitted = off.fit(table(SLOW, chains=100, seed=9), **COLUMNS, chain_order=2)
    assert (
        redact(table(SLOW, chains=100), fitted.model).certificate["model_check"]["accepted"] == []
    )
    kernels = np.tile(QUICK.transition, (24, 1, 1))
    phased = off.PhasedChain("hour", kernels, np.tile(QUICK.start, (24, 1)))
    with pytest.raises(off.InputError, match="not the model of these data"):
        redact(table(SLOW, chains=30, length=30, minutes=60), phased, dataset="by hour")


# ---- what a fit says about itself


def test_the_verdict_travels(redact, tmp_path, capsys):
    fitted = off.fit(table(SLOW, seed=6), **COLUMNS)
    fitted.model.save(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["learned"]["verdict"] == fitted.verdict
    release = redact(table(SLOW), tmp_path / "model.json")
    assert release.summary.verdict == fitted.verdict
    assert fitted.verdict.split(".")[0] in " ".join(str(release.summary).split())
    told = fitted.model.learned.to_dict()
    del told["seen"]  # which is for the key's owner
    assert release.certificate["learned"] == told
    table(SLOW).write_parquet(tmp_path / "t.parquet")
    base = [
        "redact",
        str(tmp_path / "t.parquet"),
        "--value",
        "v",
        "--order",
        "t",
        "--by",
        "chain",
        "--private",
        "p",
    ]
    base += [
        "--epsilon",
        "1",
        "--dataset",
        "e",
        "--key-file",
        str(tmp_path / "keys" / "key.json"),
        "--dry-run",
    ]
    assert cli.main([*base, "--model", str(tmp_path / "model.json")]) == 0
    assert fitted.verdict.split(".")[0] in " ".join(capsys.readouterr().out.split())
    learning = redact(table(SLOW), None, fit=True, dataset="f")
    assert learning.summary.verdict == learning.fit.verdict


def test_a_model_that_does_not_say_where_it_comes_from_is_taken_on_trust_and_that_is_said(redact):
    release = redact(table(SLOW), SLOW)
    assert release.certificate["learned"] is None
    assert any("taken on trust" in warning for warning in release.summary.warnings)


GOOD = Learned("v", "time", "1h", None, None, "fine").to_dict()


@pytest.mark.parametrize(
    "content",
    [
        [],
        "text",
        {},
        GOOD | {"more": 1},
        GOOD | {"step": 1},
        GOOD | {"spacing": "1"},
        GOOD | {"spacing": True},
        GOOD | {"verdict": None},
        {name: GOOD[name] for name in GOOD if name != "zone"},
    ],
)
def test_a_damaged_origin_is_refused(tmp_path, content):
    SLOW.save(tmp_path / "model.json")
    file = json.loads((tmp_path / "model.json").read_text()) | {"learned": content}
    (tmp_path / "model.json").write_text(json.dumps(file))
    with pytest.raises(off.InputError, match="learned"):
        off.MarkovChain.load(tmp_path / "model.json")


def test_a_file_keeps_what_a_model_was_learned_from(tmp_path):
    learned = Learned("v", "time", "1h", "Europe/Berlin", 3600.0, "fine")
    for model in (
        SLOW,
        off.PhasedChain(
            "weekday", np.tile(SLOW.transition, (7, 1, 1)), np.tile(SLOW.start, (7, 1))
        ),
    ):
        file = tmp_path / f"{model.phase if isinstance(model, off.PhasedChain) else 'plain'}.json"
        model.with_learned(learned).save(file)
        assert type(model).load(file).learned == learned
        assert type(model).load(file).to_dict() == model.to_dict()
    assert Path(file).exists()


# ---- hidden states


def shown_samples(chain, count, n, rng):
    """(count, n) values that the states of a hidden chain show."""
    return chain.shows[samples(chain.lifted, count, n, rng)]


def value_moves(values):
    """(k, k) transitions within chains."""
    counts = np.zeros((2, 2), dtype=np.int64)
    np.add.at(counts, (values[:, :-1].ravel(), values[:, 1:].ravel()), 1)
    return counts


def test_regimes_that_last_are_no_contradiction():
    """Statistics are as large as chi-square at most once divided; undivided they would refuse."""
    designs = Designs(Setting(REGIMES, 1.0, off.BestWindow(), "run"), ())
    rng, statistics, divided = np.random.default_rng(0), [], []
    for _ in range(200):
        moves = value_moves(shown_samples(REGIMES, 2, 1000, rng))
        found = compared(designs, np.empty(0, dtype=np.int64), moves)
        assert found.objection(1.0) is None
        assert found.leakage is None
        divided.append(found.statistic)
        statistics.append(found.statistic * dispersion(REGIMES))
    degrees = found.degrees
    assert degrees == 2
    assert np.mean(statistics) > 5 * degrees  # as if of another model
    assert np.mean(divided) < 1.1 * degrees
    for share in (0.9, 0.99):
        assert np.quantile(divided, share) < 1.2 * chi2.ppf(share, degrees)


def test_a_chain_without_regimes_has_no_dispersion():
    """Twins of states: values are Markov, and vary as Markov chains do."""
    twins = np.repeat([[0.9, 0.1], [0.3, 0.7]], 2, axis=0) @ np.kron(np.eye(2), [[0.5, 0.5]])
    found = dispersion(off.MarkovChain(twins, shows=[0, 0, 1, 1]))
    assert 1 <= found <= 2 + 1e-9  # sums of rows, of which the largest eigenvalue is 1


def test_another_table_is_refused_under_hidden_states(redact):
    rng = np.random.default_rng(1)
    frame = table(QUICK, chains=40, length=500)
    own = frame.with_columns(v=shown_samples(REGIMES, 40, 500, rng).ravel())
    released = redact(own, REGIMES)
    check = released.certificate["model_check"]["compared"]
    assert check["transitions"] > 100
    assert check["leakage"] is None
    assert not released.certificate["claim"]["leakage_is_exact"]
    with pytest.raises(off.InputError, match="worse than the table's own transitions"):
        redact(table(SLOW, chains=40, length=500), REGIMES)


def test_what_hidden_states_never_show_is_impossible(redact):
    kernel = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.5, 0.5, 0.0]]  # 1 never follows 1
    model = off.MarkovChain(kernel, shows=[0, 0, 1])
    with pytest.raises(off.InputError, match="transitions among them are impossible under it"):
        redact(table(QUICK), model)


def test_hidden_states_with_a_start_of_their_own_are_not_compared(redact):
    kernel = [[0.5, 0.3, 0.2], [0.3, 0.3, 0.4], [0.4, 0.3, 0.3]]
    model = off.MarkovChain(kernel, [1, 0, 0], shows=[0, 0, 1])
    released = redact(table(QUICK, chains=8, length=12), model)
    assert released.certificate["model_check"]["compared"] is None
