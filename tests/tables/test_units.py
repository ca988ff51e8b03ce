"""Decimal order values count as whole numbers of their unit, exactly, and leave as they came."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import offrecord as off
from definition import samples
from offrecord.tables.engines import stream
from offrecord.tables.units import Unit

CHAIN = off.MarkovChain([[0.8, 0.2], [0.4, 0.6]])
ROWS = 300


@given(
    unit=st.sampled_from(["0.1", "0.25", "0.001", "5", "2.5", "0.3"]),
    counts=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=9),
    off_by=st.integers(-3, 3),
)
def test_multiples_are_counted_exactly_however_they_are_written(unit, counts, off_by):
    found = Unit.parsed(unit)
    exact = [Fraction(unit) * count for count in counts]
    floats = np.array([float(one) for one in exact])
    for _ in range(abs(off_by)):  # a few roundings away
        floats = np.nextafter(floats, np.inf if off_by > 0 else -np.inf)
    texts = [f"{float(one):.6f}" for one in exact]
    for series in (pl.Series("t", floats), pl.Series("t", texts)):
        assert found.counted(series, "the table").tolist() == counts
    if all(one.denominator == 1 for one in exact):
        whole = pl.Series("t", [int(one) for one in exact])
        assert found.counted(whole, "the table").tolist() == counts


@pytest.mark.parametrize(
    "cells",
    [
        [0.1, 0.25],
        [0.1, 0.2001],
        ["0.1", "x"],
        ["0.1", "nan"],
        ["0.1", "2020-01-01"],
        [0.1, float("inf")],
        [0.1, 1e300],
    ],
)
def test_the_first_row_beside_the_grid_is_named(cells):
    with pytest.raises(off.InputError, match=r"column 't' of the table .* 0.1; row 2 does not"):
        Unit.parsed("0.1").counted(pl.Series("t", cells), "the table")


@pytest.mark.parametrize("given", ["0", "0.0", "", ".", "a", "-1", "1e-1", "1/3", True, "1,5"])
def test_units_that_are_none_are_refused(given):
    with pytest.raises(off.InputError, match="--order-unit"):
        Unit.parsed(given)


def test_a_unit_is_the_same_however_it_is_written():
    assert {Unit.parsed(one) for one in ("0.1", "0.10", ".1", "00.100", 0.1)} == {
        Unit(Fraction(1, 10), "0.1")
    }
    assert Unit.parsed("5.0") == Unit.parsed(5) == Unit(Fraction(5), "5")


def table(kind):
    """Two chains with a gap each, ordered by tenths, which a kind of column holds."""
    places = [t for t in range(ROWS) if t % 50 != 17]
    values = samples(CHAIN, 2, len(places), np.random.default_rng(3))
    order = {
        "whole": pl.Series("t", places * 2),
        "float": pl.Series("t", [t * 0.1 for t in places] * 2),  # 0.30000000000000004
        "text": pl.Series("t", [f"{t / 10:.2f}" for t in places] * 2),
        "decimal": pl.Series("t", [f"{t / 10:.2f}" for t in places] * 2).cast(pl.Decimal(10, 2)),
    }
    return pl.DataFrame(
        {"c": ["a"] * len(places) + ["b"] * len(places), "t": order[kind], "v": values.ravel()}
    )


KEYS = {"whole": [100, 117], "float": [10.0, 11.7], "text": ["10.0", "11.70"]}


def redacted(kind, tmp_path, keys="float", **options):
    listed = pl.DataFrame({"c": ["a", "b"], "t": KEYS[keys]})
    unit = {} if kind == "whole" else {"order_unit": "0.1"}
    given = {"value": "v", "order": "t", "by": "c", "step": 1, "epsilon": 1.0, "dataset": "d"}
    given |= {"model": CHAIN, "private_list": listed, "key_file": tmp_path / "key.json"}
    return off.redact(table(kind), **given, **unit, another_release=True, **options)


@pytest.mark.parametrize("mechanism", ["owner", "window"])
def test_coins_and_steps_go_by_the_whole_number_and_order_values_leave_as_they_came(
    mechanism, tmp_path
):
    whole = redacted("whole", tmp_path, "whole", mechanism=mechanism).frame
    assert whole["v"].null_count() > 2
    for kind in ("float", "text", "decimal"):
        for keys in ("float", "text"):
            out = redacted(kind, tmp_path, keys, mechanism=mechanism).frame
            assert out["v"].equals(whole["v"])
            assert out["t"].equals(table(kind)["t"], check_dtypes=True)


def test_rows_are_sorted_as_numbers(tmp_path):
    shuffled = table("text").sample(fraction=1.0, shuffle=True, seed=1)
    given = {"value": "v", "order": "t", "by": "c", "order_unit": "0.1", "model": CHAIN}
    given |= {"epsilon": 1.0, "dataset": "d", "key_file": tmp_path / "key.json"}
    listed = pl.DataFrame({"c": ["a"], "t": ["10.0"]})
    out = off.redact(shuffled, **given, private_list=listed).frame
    assert out["t"].equals(table("text")["t"])


def test_a_stream_gives_the_same_bytes_and_its_certificate_says_the_unit(tmp_path):
    release = redacted("text", tmp_path, publish_positions=True)
    (tmp_path / "out").mkdir()
    release.write(tmp_path / "out" / "held.csv")
    table("text").write_csv(tmp_path / "t.csv")
    listed = pl.DataFrame({"c": ["a", "b"], "t": KEYS["text"]})
    stream.redact_file(
        tmp_path / "t.csv",
        tmp_path / "out" / "streamed.csv",
        value="v",
        order="t",
        by="c",
        step=1,
        order_unit=0.1,
        epsilon=1.0,
        dataset="d",
        model=CHAIN,
        private_list=listed,
        key_file=tmp_path / "key.json",
        another_release=True,
    )
    held, streamed = ((tmp_path / "out" / f"{n}.csv").read_bytes() for n in ("held", "streamed"))
    assert held == streamed
    assert release.certificate["columns"]["order_unit"] == "0.1"
    assert release.certificate["private"]["positions"]["keys"] == [["a", 100], ["b", 117]]


def test_a_model_learned_in_another_unit_is_of_another_order(tmp_path):
    reading = {"value": "v", "order": "t", "by": "c", "chain_order": 1}
    model = off.fit(table("float"), **reading, order_unit="0.1").model
    assert (model.origin.unit, model.origin.spacing) == ("0.1", 1)
    path = tmp_path / "m.json"
    model.save(path)
    using = {"value": "v", "order": "t", "by": "c", "model": path, "epsilon": 1.0, "dataset": "d"}
    using |= {"dry_run": True, "exact_model": True, "mechanism": "window"}
    keys = pl.DataFrame({"c": ["a"], "t": [10.0]})
    off.redact(table("float"), **using, order_unit="0.10", private_list=keys)
    with pytest.raises(off.InputError, match=r"but is used with --order-unit 0\.05"):
        off.redact(table("float"), **using, order_unit="0.05", private_list=keys)
    whole = pl.DataFrame({"c": ["a"], "t": [100]})
    with pytest.raises(off.InputError, match="but is used with no --order-unit"):
        off.redact(table("whole"), **using, private_list=whole)


def test_a_key_beside_the_grid_is_an_error_and_no_opt_out_is_lost(tmp_path):
    keys = pl.DataFrame({"c": ["a", "b"], "t": [10.0, 11.74]})
    with pytest.raises(off.InputError, match=r"of the private list .* row 2"):
        off.redact(
            table("float"),
            value="v",
            order="t",
            by="c",
            order_unit="0.1",
            model=CHAIN,
            epsilon=1.0,
            dataset="d",
            private_list=keys,
            dry_run=True,
            key_file=tmp_path / "key.json",
        )


def test_a_unit_is_about_a_column_of_numbers():
    days = table("whole").with_columns((pl.date(2020, 1, 1) + pl.duration(days="t")).alias("t"))
    reading = {"value": "v", "by": "c", "order_unit": "0.1"}
    with pytest.raises(off.InputError, match="--order-unit is for numbers"):
        off.fit(days, order="t", **reading)
    with pytest.raises(off.InputError, match="not about --order row"):
        off.fit(days, order="row", **reading)
    with pytest.raises(off.InputError, match=r"--order-unit 0\.1"):
        off.fit(table("float"), order="t", value="v", by="c")
    with pytest.raises(off.InputError, match="it counts units"):
        off.fit(table("float"), order="t", **reading, step="0.1")
