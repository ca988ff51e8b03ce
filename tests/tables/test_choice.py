"""Opt-outs chosen by value are noticed, exactly and rarely in vain; who runs the release is told,
and no artefact is.
"""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import offrecord as off
from definition import samples
from offrecord import cli
from offrecord.tables.checks.choice import RARELY, Choice

CHAIN = off.MarkovChain([[0.9, 0.1], [0.3, 0.7]])


def table(seed=0, chains=64, length=60, chosen="whatever"):
    """Chains of people; each takes two days off the record, sick ones if chosen by value."""
    rng = np.random.default_rng(seed)
    values = samples(CHAIN, chains, length, rng)
    private = np.zeros(values.shape, dtype=bool)
    for person, days in enumerate(values):
        sick = np.flatnonzero(days == 1)
        among = sick if chosen == "sick" and len(sick) else np.arange(length)
        private[person, rng.choice(among, size=2)] = True
    return pl.DataFrame(
        {
            "who": np.repeat(np.arange(chains), length),
            "day": np.tile(np.arange(length), chains),
            "ill": values.ravel(),
            "opted_out": private.ravel(),
        }
    )


def options(tmp_path, **others):
    standard = {
        "value": "ill",
        "order": "day",
        "by": "who",
        "private": "opted_out",
        "model": CHAIN,
        "epsilon": 1.0,
        "dataset": "d",
    }
    return standard | {"key_file": tmp_path / "keys" / "key.json", "mechanism": "window"} | others


def test_sick_days_off_the_record_are_noticed_on_standard_error_alone(tmp_path, capsys):
    frame = table(chosen="sick")
    frame.write_csv(tmp_path / "t.csv")
    CHAIN.save(tmp_path / "model.json")
    (tmp_path / "out").mkdir()
    arguments = [
        "redact",
        str(tmp_path / "t.csv"),
        "--value",
        "ill",
        "--order",
        "day",
        "--by",
        "who",
        "--private",
        "opted_out",
    ]
    arguments += [
        "--model",
        str(tmp_path / "model.json"),
        "--epsilon",
        "1",
        "--dataset",
        "d",
        "--mechanism",
        "window",
    ]
    arguments += [
        "--key-file",
        str(tmp_path / "keys" / "key.json"),
        "-o",
        str(tmp_path / "out" / "o.csv"),
        "--force",
        "--json",
    ]
    for engine in ("--in-memory", "--stream"):
        assert cli.main([*arguments, engine]) == 0
        said = capsys.readouterr()
        assert said.err.count("offrecord: warning: private records have other values") == 1
        assert "other values" not in said.out
        assert json.loads(said.out)["rows"] == frame.height
        for file in (tmp_path / "out").iterdir():
            assert "other values" not in file.read_text()


def test_in_python_it_is_a_warning_and_no_part_of_the_release(tmp_path):
    with pytest.warns(off.ChosenByValue, match="that choice leaks it"):
        release = off.redact(table(chosen="sick"), **options(tmp_path))
    assert "other values" not in str(release.summary) + json.dumps(release.certificate)


def test_it_does_not_name_the_value_nor_depend_on_which_it_is(tmp_path):
    texts = set()
    for flip in (False, True):
        frame = table(chosen="sick")
        model = off.MarkovChain(CHAIN.transition[::-1, ::-1]) if flip else CHAIN
        frame = frame.with_columns(ill=1 - pl.col("ill")) if flip else frame
        with pytest.warns(off.ChosenByValue) as caught:
            off.redact(frame, **options(tmp_path, model=model, dataset=str(flip)))
        texts.add(str(caught[0].message))
    assert len(texts) == 1


def test_records_chosen_whatever_their_value_are_left_alone(tmp_path):
    """Warnings are errors in these tests: 60 tables get none."""
    for seed in range(60):
        off.redact(table(seed, chains=20), **options(tmp_path, dataset=str(seed)))


def test_a_long_run_is_one_choice(tmp_path):
    """A hundred private minutes in a row have one value in a slow chain, and were chosen once."""
    slow = off.MarkovChain([[0.999, 0.001], [0.002, 0.998]])
    values = np.repeat([0, 1, 0, 1], 400)
    frame = pl.DataFrame(
        {"who": 0, "day": np.arange(1600), "ill": values, "opted_out": np.arange(1600) // 100 == 5}
    )
    off.redact(frame, **options(tmp_path, model=slow, accept="model"))


def test_a_dry_run_looks_at_no_value(tmp_path):
    off.redact(table(chosen="sick"), **options(tmp_path, dry_run=True))


@given(
    shares=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=12),
    seen=st.integers(0, 12),
)
def test_it_is_never_surer_than_the_exact_distribution(shares, seen):
    """By the definition: the sum of independent truth values, by convolution."""
    seen = min(seen, len(shares))
    exact = np.ones(1)
    for share in shares:
        exact = np.convolve(exact, [1 - share, share])
    mean = sum(shares)
    choice = Choice(
        len(shares), np.array([len(shares) - seen, seen]), np.array([len(shares) - mean, mean])
    )
    tail = min(exact[seen:].sum(), exact[: seen + 1].sum())
    assert choice.p_value >= min(tail, 1.0) * (1 - 1e-9)
    assert (choice.warning() is None) == (choice.p_value * RARELY >= 1)
