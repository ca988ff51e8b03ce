"""A table is decided by several threads: whatever they do at once, it is the same release."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import polars as pl
import pytest
from offrecord.mechanisms.owner.deciding.contraction import Contraction
from offrecord.mechanisms.owner.way import Way

import offrecord as off
from offrecord.tables import acting, rule, threads
from offrecord.tables.engines import stream

ORDER_TWO = [[[0.95, 0.05], [0.4, 0.6]], [[0.8, 0.2], [0.2, 0.8]]]
MODELS = {
    "two values": off.MarkovChain.binary(0.06, 0.2),
    "three values": off.MarkovChain([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]),
    "order 2": off.MarkovChain(ORDER_TWO, order=2),
    "a set": off.MarkovChain.binary(0.06, 0.2).with_box(off.Box.binary((0.05, 0.07), (0.18, 0.22))),
}


def table_of(model, rng, chains, length=60):
    """Near secrets and far ones, gaps, missing values."""
    k = model.k
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


def at_once(asked, count=8):
    """What each of some threads finds, which begin together."""
    ready = Barrier(count)

    def one(number):
        ready.wait()
        return asked(number)

    with ThreadPoolExecutor(count) as several:
        return list(several.map(one, range(count)))


@pytest.mark.usefixtures("impatient")
def test_what_is_told_from_afar_is_the_same_for_all_that_ask_at_once():
    kernel = MODELS["two values"].transition
    rng = np.random.default_rng(3)
    for _ in range(100):
        distances = [rng.integers(0, 60, size=5) for _ in range(8)]
        shared = Contraction(kernel)
        found = at_once(lambda number, shared=shared, d=distances: shared.told(0.7, d[number]))
        for told, distance in zip(found, distances, strict=True):
            assert np.array_equal(told, Contraction(kernel).told(0.7, distance))


@pytest.mark.usefixtures("impatient")
def test_steps_of_a_way_are_the_same_for_all_that_ask_at_once():
    chain = MODELS["three values"]
    rng = np.random.default_rng(4)
    for _ in range(100):
        steps = rng.integers(1, 2**40, size=8)
        shared = Way.of(chain, 1, 5, 5)
        found = at_once(lambda number, shared=shared, s=steps: shared.across(0, int(s[number])))
        for power, last in zip(found, steps.tolist(), strict=True):
            assert np.array_equal(power, Way.of(chain, 1, 5, 5).across(0, last))


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        *((name, "owner") for name in MODELS),
        *((name, "best-local") for name in ("two values", "a set")),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_threads_change_nothing(name, mechanism, monkeypatch, tmp_path):
    model = MODELS[name]
    chains = 12 if mechanism == "best-local" else 40
    frame = table_of(model, np.random.default_rng(len(name)), chains)
    key = off.Key.new(tmp_path / "key" / "key.json")
    designs = tmp_path / "designs.json"

    def released(count, block):
        monkeypatch.setattr(pl, "thread_pool_size", lambda: count)
        monkeypatch.setattr(rule, "BLOCK", block)
        monkeypatch.setattr(acting, "BLOCK", block)
        return off.redact(
            frame, value="v", order="t", by="chain", step=1, private="p", model=model,
            epsilon=1.0, mechanism=mechanism, dataset="d", key_file=key.file, designs=designs,
            accept_model=True,
        )  # fmt: skip

    first = released(1, 1 << 20)
    assert first.summary.released < 1
    monkeypatch.setattr(threads, "_AT_ONCE", 8)
    for _ in range(3):  # what was known is forgotten each time: designs are read anew
        again = released(8, 60)
        assert again.frame.equals(first.frame)
        assert again.certificate == first.certificate


@pytest.mark.usefixtures("impatient")
def test_a_stream_is_the_same_by_one_thread_and_by_several(monkeypatch, tmp_path):
    frame = table_of(MODELS["two values"], np.random.default_rng(8), 60)
    frame.write_parquet(tmp_path / "table.parquet")
    monkeypatch.setattr(stream, "_PART", 200)
    monkeypatch.setattr(threads, "_AT_ONCE", 8)

    def released(count):
        monkeypatch.setattr(pl, "thread_pool_size", lambda: count)
        output = tmp_path / f"by {count}.parquet"
        found = off.redact_file(
            tmp_path / "table.parquet", output, value="v", order="t", by="chain", step=1,
            private="p", model=MODELS["two values"], epsilon=1.0, dataset="d", accept_model=True,
            key_file=tmp_path / "key" / "key.json",
        )  # fmt: skip
        return output.read_bytes(), json.loads(found.certificate.read_text())["designs"]

    one = released(1)
    for count in (2, 8, 8):
        (tmp_path / f"by {count}.parquet").unlink(missing_ok=True)
        (tmp_path / f"by {count}.parquet.certificate.json").unlink(missing_ok=True)
        assert released(count) == one


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
