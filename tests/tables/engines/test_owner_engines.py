"""The owner's mechanism in every engine: dense secrets, clusters and gaps, whatever the order of
rows, the parts, the format.
"""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.tables.engines import stream
from streams import CHAIN, COLUMNS, ROOMS, frame
from table_files import STREAMED, write

ORDER2 = off.MarkovChain([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], order=2)
MODELS = {
    "order 1": CHAIN,
    "three values": off.MarkovChain([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]),
    "order 2": ORDER2,
    "a start of its own": off.MarkovChain(CHAIN.transition, start=[0.5, 0.5]),
    "over a set": CHAIN.with_box(off.Box.binary((0.18, 0.22), (0.37, 0.43))),
    "over a set since record 4": CHAIN.with_box(
        off.Box.binary((0.18, 0.22), (0.37, 0.43), since=4)
    ),
}


def dense(rooms, share, **options):
    """Rooms in which a share of the records is private."""
    table = frame(rooms, **options)
    private = np.random.default_rng(2).random(table.height) < share
    return table.with_columns(pl.Series("hidden", private))


@pytest.mark.parametrize(
    ("model", "share"), [("order 1", 0.05), ("over a set", 0.05), *((name, 0.2) for name in MODELS)]
)
def test_a_stream_gives_the_bytes_of_memory(both, model, share):
    """Some rows missing, some values; a part may be less than a chain."""
    few = "start" in model  # where every place has a design of its own
    table = dense(ROOMS["text among numbers"][: 4 if few else 20], share, gaps=0.1, empty=0.1)
    found = both(table, ".csv", part=7, model=MODELS[model], step=1, mechanism="owner")
    assert found.summary.mechanism == "owner"
    assert found.summary.unserved is None


@pytest.mark.parametrize("ending", STREAMED)
def test_every_format(both, ending):
    both(dense(ROOMS["another order"], 0.15), ending, mechanism="owner")


def test_phases(both):
    start = datetime(2026, 1, 1)
    hours = pl.Series("hour", [start + timedelta(hours=h) for h in range(17)] * 2)
    table = dense(["b", "a"], 0.15).with_columns(hours.dt.strftime("%Y-%m-%dT%H:%M:%S"))
    kernels = np.stack([[[1 - a, a], [0.4, 0.6]] for a in np.linspace(0.1, 0.4, 24)])
    model = off.PhasedChain("hour", kernels, np.tile([2 / 3, 1 / 3], (24, 1)))
    found = both(table, ".csv", part=17, model=model, step="1h", mechanism="owner")
    assert found.summary.mechanism == "owner"


def test_rows_in_any_order_give_the_same_release(tmp_path, monkeypatch):
    table = dense(ROOMS["in order"], 0.1, gaps=0.1, empty=0.1)
    given = COLUMNS | {"private": "hidden", "model": CHAIN, "epsilon": 1.5, "step": 1}
    given |= {"dataset": tmp_path.name, "mechanism": "owner", "key_file": tmp_path / "key.json"}
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=5)
    first = off.redact(table, **given)
    again = off.redact(shuffled, **given)
    assert again.frame.equals(first.frame)
    assert again.certificate == first.certificate
    inside = shuffled.sort("room", maintain_order=True)  # chains together, in any order within
    write(inside, tmp_path / "t.parquet")
    monkeypatch.setattr(stream, "_PART", 50)
    out = tmp_path / "out"
    out.mkdir()
    off.redact_file(tmp_path / "t.parquet", out / "o.parquet", **given)
    assert pl.read_parquet(out / "o.parquet").equals(first.frame)


def test_a_chain_is_decided_by_itself(tmp_path):
    """The same with all others and without them: parts of whole chains suffice."""
    table = dense(ROOMS["in order"], 0.15, gaps=0.1, empty=0.1)
    given = COLUMNS | {"private": "hidden", "model": CHAIN, "epsilon": 1.5, "step": 1}
    given |= {"mechanism": "owner", "key_file": tmp_path / "key.json", "another_release": True}
    given |= {"designs": tmp_path / "designs.json", "dataset": tmp_path.name, "allow_none": True}
    whole = off.redact(table, **given).frame
    for rooms in ([3], [7, 21], [*range(30, 40)]):
        some = off.redact(table.filter(pl.col("room").is_in(rooms)), **given).frame
        assert some.equals(whole.filter(pl.col("room").is_in(rooms)))
