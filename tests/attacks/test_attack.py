"""Attacks on releases by their files."""

import json

import numpy as np
import polars as pl
import pytest

import offrecord as off
from attacks.releases import CHAIN, drawn, frame_of, released
from offrecord import cli
from offrecord.attacks import attack
from offrecord.errors import InputError
from offrecord.models.chain import MarkovChain

pytestmark = pytest.mark.filterwarnings("ignore::offrecord.errors.OffrecordWarning")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    values = drawn(CHAIN, 30, 60, rng)
    return frame_of(values, rng.random(values.shape) < 0.03, rng.random(values.shape) < 0.02)


@pytest.mark.parametrize("mechanism", ["window", "best-local", "owner"])
def test_no_run_is_told_beyond_epsilon_where_erasure_tells_more(table, mechanism, tmp_path):
    _, path = released(tmp_path, table, mechanism=mechanism)
    original = tmp_path / "original.csv"
    table.write_csv(original)
    found = attack(path, original=original)
    own, erased = found.attackers
    assert found.holds
    assert own.largest <= 1 + 1e-9
    assert len(own.found) == found.runs > 40
    assert erased.largest > 1.5
    assert not np.isnan(found.posterior).any(axis=1).all()
    assert json.loads(json.dumps(found.to_dict()))["holds"]
    assert "within ε = 1" in str(found)
    assert found.plot().spec


def test_without_the_original_missing_records_are_told_from_redacted_ones(table, tmp_path):
    _, path = released(tmp_path, table, mechanism="window")
    found = attack(path)
    assert found.holds
    assert found.own.largest <= 1 + 1e-9


def test_a_table_that_releases_what_always_goes_does_not_hold(table, tmp_path):
    _, path = released(tmp_path, table, mechanism="window")
    cells = pl.read_csv(path)
    private = table["out"].arg_true()[0]
    first = cells.with_row_index().with_columns(
        v=pl.when(pl.col("index") == private).then(1).otherwise(pl.col("v"))
    )
    first.drop("index").write_csv(path)
    found = attack(path)
    assert found.wrong == 1
    assert not found.holds


def test_counting_sees_a_slow_chain_under_a_fast_model(tmp_path):
    rng = np.random.default_rng(3)
    slow = MarkovChain([[0.97, 0.03], [0.06, 0.94]])
    values = drawn(slow, 60, 300, rng)
    fast = MarkovChain([[0.7, 0.3], [0.6, 0.4]])
    frame = frame_of(values, rng.random(values.shape) < 0.01)
    _, path = released(tmp_path, frame, chain=fast, mechanism="window")
    found = attack(path)
    assert found.holds
    assert found.exceeded == ("counting",)
    assert found.counted.counted > 5


def test_chains_that_copy_each_other_are_seen(tmp_path):
    rng = np.random.default_rng(4)
    values = drawn(CHAIN, 40, 60, rng)
    values[1::2] = np.where(rng.random((20, 60)) < 0.97, values[::2], values[1::2])
    frame = frame_of(values, rng.random(values.shape) < 0.02)
    _, path = released(tmp_path, frame, mechanism="window")
    found = attack(path)
    assert found.neighbours.exists
    assert "neighbouring chains" in found.exceeded


def test_what_does_not_belong_together_is_refused(table, tmp_path):
    _, path = released(tmp_path, table, mechanism="window")
    certificate = tmp_path / "out.csv.certificate.json"
    short = tmp_path / "short.csv"
    pl.read_csv(path)[:100].write_csv(short)
    with pytest.raises(InputError, match="row"):
        attack(short, certificate=certificate)
    content = json.loads(certificate.read_text())
    content["private"]["positions"] = None
    certificate.write_text(json.dumps(content))
    with pytest.raises(InputError, match="give private_list"):
        attack(path)


def test_of_whole_chains_nothing_is_inferred_and_neighbours_are_compared(tmp_path, capsys):
    rng = np.random.default_rng(4)
    values = drawn(CHAIN, 40, 60, rng)
    values[1::2] = np.where(rng.random((20, 60)) < 0.97, values[::2], values[1::2])
    frame = frame_of(values, np.repeat((np.arange(40) == 7)[:, np.newaxis], 60, axis=1))
    key = tmp_path / "key" / "key.json"
    asked = {"value": "v", "order": "t", "by": "id", "private": "out", "epsilon": 1.0}
    made = off.redact(frame, **asked, dataset="whole", keep_rows=True, key_file=key)
    made.write(tmp_path / "out.csv")
    frame.write_csv(tmp_path / "original.csv")
    found = attack(tmp_path / "out.csv")
    assert found.holds
    assert found.exceeded == ("neighbouring chains",)
    picture = tmp_path / "ratios.png"
    assert cli.main(["attack", str(tmp_path / "out.csv"), "--picture", str(picture)]) == 0
    assert "there is nothing to draw" in capsys.readouterr().err
    assert not picture.exists()
    assert "nothing is inferred by the model" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["attackers"] == []
    assert found.plot().spec
    cells = pl.read_csv(tmp_path / "original.csv").select("id", "t", "v")
    cells.write_csv(tmp_path / "out.csv")
    found = attack(tmp_path / "out.csv", original=tmp_path / "original.csv", private="out")
    assert found.wrong == 60
    assert not found.holds
