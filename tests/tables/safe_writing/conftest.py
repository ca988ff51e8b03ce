"""One store of models and designs, and one large table for all of these tests."""

import subprocess
from itertools import count

import numpy as np
import polars as pl
import pytest

from needles import NEEDLE
from offrecord.release.keys import Key
from releasing import COLUMNS, COMMAND, Desk
from twins import TEXTS, model

_numbers = count()


def new_key(tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "keys" / str(next(_numbers))
    return Key.new(folder / "key.json").file


@pytest.fixture
def key(tmp_path_factory):
    """Of each test, as tables are alike, and a ledger would know them again."""
    return new_key(tmp_path_factory)


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """Models and their designs, made once."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def desk(tmp_path, key, store, capsys, monkeypatch):
    return Desk(tmp_path, key, store, capsys, monkeypatch)


@pytest.fixture
def desk_of_descriptors(tmp_path, key, store, capfd, monkeypatch):
    """A desk that sees what native code writes to the descriptors, too."""
    return Desk(tmp_path, key, store, capfd, monkeypatch)


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """200,000 rows whose private records alone say NEEDLE, and the options to redact them; caches
    warm, rules made.
    """
    folder, key = tmp_path_factory.mktemp("large"), new_key(tmp_path_factory)
    chains, each = 4_000, 50
    rng = np.random.default_rng(5)
    private = rng.random(chains * each) < 0.01
    values = np.where(
        private, NEEDLE, np.where(rng.random(chains * each) < 0.5, TEXTS[0], TEXTS[1])
    )
    frame = pl.DataFrame(
        {
            "id": np.repeat(np.arange(chains), each),
            "t": np.tile(np.arange(each), chains),
            "v": values,
            "p": private,
        }
    )
    frame.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(
        folder / "large.parquet", row_group_size=20_000
    )
    frame.head(2_000).write_parquet(folder / "older.parquet")
    model(TEXTS).save(folder / "model.json")
    options = [
        *COLUMNS,
        "--private",
        "p",
        "--epsilon",
        "1",
        "--mechanism",
        "window",
        "--model",
        folder / "model.json",
    ]
    options += ["--key-file", key, "--accept", "model"]
    options = [str(option) for option in options]
    out = folder / "warm.arrow"
    subprocess.run(
        [COMMAND, "redact", folder / "large.parquet", *options, "--dataset", "large", "-o", out],
        check=True,
    )
    return folder, options
