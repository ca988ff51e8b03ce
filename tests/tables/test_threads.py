"""Parts of a table are decided by several threads: it is the same release, whatever they do."""

import json
import sys
from threading import Event

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.tables import threads
from offrecord.tables.engines import stream

MODELS = {
    "two values": off.MarkovChain.binary(0.06, 0.2),
    "three values": off.MarkovChain([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]),
    "order 2": off.MarkovChain([[[0.95, 0.05], [0.4, 0.6]], [[0.8, 0.2], [0.2, 0.8]]], order=2),
}


def table_of(k, rng, chains=40, length=60):
    """Near private records and far ones, gaps, missing values."""
    values = rng.integers(k, size=(chains, length))
    for t in range(1, length):
        values[:, t] = np.where(rng.random(chains) < 0.2, values[:, t], values[:, t - 1])
    frame = pl.DataFrame(
        {
            "chain": np.repeat(np.arange(chains), length),
            "t": np.tile(np.arange(length), chains),
            "v": values.ravel(),
            "p": rng.random(chains * length) < 0.04,
        }
    )
    there = pl.Series(rng.random(chains * length) > 0.05) | frame["p"]
    empty = pl.Series(rng.random(chains * length) < 0.02) & ~frame["p"]
    return frame.with_columns(v=pl.when(~empty).then("v")).filter(there)


@pytest.fixture
def impatient():
    """Threads that give way to each other all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [("two values", "owner"), ("order 2", "owner"), ("three values", "best-local")],
)
@pytest.mark.usefixtures("impatient")
def test_threads_change_nothing(name, mechanism, monkeypatch, tmp_path):
    model = MODELS[name]
    frame = table_of(model.k, np.random.default_rng(8))
    frame.write_parquet(tmp_path / "table.parquet")
    options = dict(
        value="v", order="t", by="chain", step=1, private="p", model=model, epsilon=1.0,
        mechanism=mechanism, dataset="d", accept="model",
        key_file=tmp_path / "key" / "key.json",
    )  # fmt: skip
    monkeypatch.setattr(stream, "_PART", 200)
    monkeypatch.setattr(threads, "_AT_ONCE", 8)
    held = off.redact(frame, **options).frame
    assert held["v"].null_count() > frame["v"].null_count()
    certificates = []
    for count in (1, 2, 8):
        monkeypatch.setattr(pl, "thread_pool_size", lambda count=count: count)
        output = tmp_path / f"by {count}.parquet"
        found = off.redact_file(tmp_path / "table.parquet", output, **options)
        assert pl.read_parquet(output).equals(held)
        certificates.append(json.loads(found.certificate.read_text()))
    assert all(one == certificates[0] for one in certificates)


def test_parts_are_asked_for_as_they_are_needed_and_come_back_in_order():
    asked = []

    def parts():
        for number in range(10):
            asked.append(number)
            yield number

    found = threads.in_threads(lambda number: 10 * number, parts(), 3)
    assert next(found) == 0
    assert len(asked) == 4  # three that are worked on, and one that waits
    assert [0, *found] == [10 * number for number in range(10)]


@pytest.mark.parametrize("count", [1, 3])
def test_what_goes_wrong_in_a_thread_is_raised_where_its_part_would_be(count):
    def work(number):
        if number == 2:
            raise ValueError("two")
        return number

    found = threads.in_threads(work, range(10), count)
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(found)


def test_one_of_the_threads_may_be_the_one_to_give_up():
    """As where what is left over of an interrupted release is cleared away by whoever is last."""
    begin, ended = Event(), Event()

    def work(number):
        if number == 1:
            assert begin.wait(10)
            found.close()
            ended.set()
        return number

    found = threads.in_threads(work, range(10), 2)
    assert next(found) == 0
    begin.set()
    assert ended.wait(10)
    assert list(found) == []
