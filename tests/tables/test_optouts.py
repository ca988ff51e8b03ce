"""What a private list protects: records, ranges and whole chains, against a naive reading of it."""

from datetime import date, datetime, timedelta

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import offrecord as off
from explained import explained
from offrecord.errors import InputError
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.chains import Columns, arrange
from offrecord.tables.optouts import OptOuts
from offrecord.tables.private import private_records
from offrecord.tables.steps import Step
from offrecord.verification import verify

CHAIN = off.MarkovChain([[0.9, 0.1], [0.3, 0.7]])
COLUMNS = Columns("v", "t", ("chain",))


@st.composite
def chains(draw, step):
    """Order values by chain: a few, with gaps, up to a quarter step beside the grid."""
    found = {}
    for name in range(draw(st.integers(1, 3))):
        start = draw(st.integers(-20, 20))
        places = sorted({0} | draw(st.sets(st.integers(0, 9), max_size=6)))
        off_grid = draw(
            st.lists(
                st.integers(-(step // 4), step // 4), min_size=len(places), max_size=len(places)
            )
        )
        found[name] = [
            start + step * p + (o if p else 0) for p, o in zip(places, off_grid, strict=True)
        ]
    return found


def table(orders):
    rows = [(name, t, t % 2) for name, times in orders.items() for t in times]
    return pl.DataFrame(rows, schema=["chain", "t", "v"], orient="row")


def protected(orders, listed, step, private=None):
    """The private records of a table: the chain and the place of each."""
    frame = table(orders)
    if private is not None:
        frame = frame.with_columns(p=pl.Series(private))
    columns = Columns("v", "t", ("chain",))
    steps = None if step is None else Step.parsed(step)
    arranged = arrange(
        frame,
        columns,
        alphabet=Alphabet((0, 1)),
        private=None if private is None else "p",
        step=steps,
    )
    optouts = OptOuts.of(listed, columns)
    found = private_records(arranged, optouts, steps)
    names = arranged.frame["chain"].to_numpy()[arranged.chains.starts[found.chain]]
    return {*zip(names.tolist(), found.place.tolist(), strict=True)}, found


def places(times, step):
    """The place of each row in its chain."""
    if step is None:
        return [*range(len(times))]
    return [round((t - times[0]) / step) for t in times]


def naive(orders, ranges, step):
    """The private records by a loop over the list, and which of its rows find one."""
    found, hits = set(), []
    for name, low, high in ranges:
        mine = set()
        times = orders.get(name, [])
        for t, place in zip(times, places(times, step), strict=True):
            if (low is None or low <= t) and (high is None or t <= high):
                mine.add((name, place))
        if step is not None and times and (low, high) != (None, None):
            for place in range(places(times, step)[-1] + 1):
                here = times[0] + step * place
                before = low is None or 4 * (low - here) <= step
                if before and (high is None or 4 * (here - high) <= step):
                    mine.add((name, place))
        found |= mine
        hits.append(bool(mine))
    return found, hits


ENDS = st.one_of(st.none(), st.integers(-60, 120))


@settings(max_examples=300)
@given(st.data(), st.sampled_from([None, 1, 4, 7, 12]))
def test_ranges_are_what_a_loop_over_the_list_finds(data, step):
    orders = data.draw(chains(step or 4))
    ranges = data.draw(st.lists(st.tuples(st.integers(0, 3), ENDS, ENDS), min_size=1, max_size=4))
    ranges = [
        (n, min(a, b), max(a, b)) if a is not None and b is not None else (n, a, b)
        for n, a, b in ranges
    ]
    ranges += data.draw(st.lists(st.sampled_from(ranges), max_size=2))  # some twice
    listed = pl.DataFrame(
        ranges, schema={"chain": pl.Int64, "from": pl.Int64, "to": pl.Int64}, orient="row"
    )
    expected, hits = naive(orders, ranges, step)
    got, found = protected(orders, listed, step)
    assert got == expected
    assert found.found.tolist() == hits
    assert found.known.tolist() == [name in orders for name, _, _ in ranges]


@settings(max_examples=100)
@given(st.data(), st.sampled_from([None, 1, 4]))
def test_a_range_is_the_list_of_its_records(data, step):
    """One by one, gaps too: with the same order values, for the ledger and for coins."""
    orders = data.draw(chains(step or 4))
    orders = {  # on the grid: a record in a gap has one order value then
        name: [times[0] + (step or 1) * place for place in places(times, step)]
        for name, times in orders.items()
    }
    name = data.draw(st.sampled_from([*orders]))
    low = data.draw(st.integers(orders[name][0], orders[name][-1]))
    high = data.draw(st.integers(low, orders[name][-1]))
    inside = [t for t in range(low, high + 1) if step and (t - orders[name][0]) % step == 0]
    inside = inside or [t for t in orders[name] if low <= t <= high]
    assume(inside)
    if step is not None:  # ends on the grid, or a quarter step beyond would count
        low, high = inside[0], inside[-1]
    ranged = protected(orders, pl.DataFrame({"chain": [name], "from": [low], "to": [high]}), step)[
        1
    ]
    listed = pl.DataFrame({"chain": [name] * len(inside), "t": inside})
    single = protected(orders, listed, step)[1]
    for one, other in zip(
        (ranged.chain, ranged.place, ranged.order),
        (single.chain, single.place, single.order),
        strict=True,
    ):
        assert one.tolist() == other.tolist()


@settings(max_examples=100)
@given(st.data(), st.sampled_from([None, 4]))
def test_a_list_and_a_column_together_are_both(data, step):
    orders = data.draw(chains(step or 4))
    rows = [(name, t) for name, times in orders.items() for t in times]
    marks = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    whole = data.draw(st.lists(st.sampled_from([*orders, 9]), min_size=1, max_size=2))
    got, found = protected(orders, pl.DataFrame({"chain": whole}), step, marks)
    at = {
        (name, t): place
        for name, times in orders.items()
        for t, place in zip(times, places(times, step), strict=True)
    }
    expected = {(n, at[n, t]) for (n, t), mark in zip(rows, marks, strict=True) if mark}
    expected |= {(n, at[n, t]) for n, t in rows if n in whole}
    assert got == expected
    assert found.found.tolist() == [name in orders for name in whole]


def redacted(frame, listed, **options):
    given = dict(
        value="v", order="t", by="chain", model=CHAIN, epsilon=1.0, dataset="d", dry_run=True
    )
    return off.redact(frame, private_list=listed, **(given | options))


def private_rows(frame, listed, **options):
    found = explained(redacted(frame, listed, **options))
    return found.filter(pl.col("region") == "private").select("chain", "t").rows()


HOURS = pl.DataFrame(
    {
        "chain": ["a"] * 72 + ["b"] * 72,
        "t": [datetime(2024, 3, 1) + timedelta(hours=h) for h in range(72)] * 2,
        "v": [0, 0, 1] * 48,
    }
)


@pytest.mark.parametrize(
    "cells",
    [
        lambda day: date(2024, 3, day),
        lambda day: f"2024-03-0{day}",
        lambda day: datetime(2024, 3, day),  # as of programs that know no days
        lambda day: f"2024-03-0{day}T00:00:00",
    ],
)
def test_days_of_times_are_whole_days(cells):
    listed = pl.DataFrame({"chain": ["b"], "from": [cells(1)], "to": [cells(2)]})
    rows = private_rows(HOURS, listed)
    assert rows == [("b", datetime(2024, 3, 1) + timedelta(hours=h)) for h in range(48)]


def test_times_that_are_not_all_midnights_are_times():
    listed = pl.DataFrame(
        {
            "chain": ["a", "b"],
            "from": [datetime(2024, 3, 1), datetime(2024, 3, 2)],
            "to": [datetime(2024, 3, 2), datetime(2024, 3, 2, 1, 30)],
        }
    )
    rows = private_rows(HOURS, listed)
    assert len([t for name, t in rows if name == "a"]) == 25
    assert len([t for name, t in rows if name == "b"]) == 2


def test_days_of_zoned_times_are_an_error_and_midnights_are_those_of_their_zone():
    zoned = HOURS.with_columns(pl.col("t").dt.replace_time_zone("Europe/Berlin"))
    days = pl.DataFrame({"chain": ["a"], "from": [date(2024, 3, 1)], "to": [date(2024, 3, 1)]})
    with pytest.raises(InputError, match="in which zone days begin is not known: give times"):
        redacted(zoned, days)
    midnights = days.with_columns(
        pl.col("from", "to").cast(pl.Datetime("us")).dt.replace_time_zone("Europe/Berlin")
    )
    assert len(private_rows(zoned, midnights)) == 24
    other = midnights.with_columns(pl.col("from", "to").dt.convert_time_zone("UTC"))
    # 23:00 of the day before is no midnight: to the second
    assert len(private_rows(zoned, other)) == 1


def test_a_range_of_days_among_days():
    days = pl.DataFrame(
        {"chain": ["a"] * 9, "t": [date(2024, 3, d) for d in range(1, 10)], "v": [0, 1, 0] * 3}
    )
    for kind in (pl.Date, pl.Datetime("us")):
        listed = pl.DataFrame({"chain": ["a"], "from": [None], "to": [date(2024, 3, 2)]})
        listed = listed.with_columns(pl.col("to").cast(kind))
        assert private_rows(days, listed) == [("a", date(2024, 3, d)) for d in (1, 2)]
    timed = pl.DataFrame({"chain": ["a"], "from": [None], "to": [datetime(2024, 3, 2, 5)]})
    with pytest.raises(InputError, match="holds times in the private list"):
        redacted(days, timed)


def test_rows_are_ranges_too():
    frame = pl.DataFrame({"chain": ["b", "a"] * 6, "v": [0, 1, 0, 1, 1, 0] * 2})
    listed = pl.DataFrame({"chain": ["a"], "from": ["2"], "to": ["4"]})
    found = explained(redacted(frame, listed, order="row"))
    assert (found["region"] == "private").to_list() == [False, True, True, True] + [False] * 8


@pytest.mark.parametrize(
    ("columns", "by", "order", "said"),
    [
        (["chain", "t", "from", "to"], "chain", "t", "it may name either, leave one out"),
        (["chain", "from", "to"], "chain", "from", "rename the order column, or leave 'to' out"),
        (["chain", "from"], "chain", "t", "no column 'to': ranges need both"),
        (["chain", "note"], "chain", "t", "no column 't'.*the by columns alone"),
    ],
)
def test_lists_that_may_mean_two_things_are_an_error(columns, by, order, said):
    listed = pl.DataFrame({name: [1] for name in columns})
    with pytest.raises(InputError, match=said):
        OptOuts.of(listed, Columns("v", order, (by,)))


def test_chains_may_be_called_from_and_to():
    columns = Columns("v", "t", ("from", "to"))
    listed = pl.DataFrame({"from": ["x"], "to": ["y"]})
    assert OptOuts.of(listed, columns).form == "chains"
    assert OptOuts.of(listed.with_columns(t=1), columns).form == "records"


def test_a_range_of_very_many_steps_is_not_counted_one_by_one():
    far = 10**15
    orders = {0: [0, 1, 2, far]}
    got, _ = protected(orders, pl.DataFrame({"chain": [0], "from": [-far], "to": [1]}), 1)
    assert got == {(0, 0), (0, 1)}
    got, _ = protected(orders, pl.DataFrame({"chain": [0]}), 1)
    assert got == {(0, 0), (0, 1), (0, 2), (0, far)}
    orders = {0: [0, 1, 2, 10**12]}
    listed = pl.DataFrame({"chain": [0] * 2, "from": [1] * 2, "to": [10**12 - 1] * 2})
    with pytest.raises(InputError, match="hold 999,999,999,997 steps without a row"):
        protected(orders, listed, 1)


@pytest.mark.parametrize("keep_rows", [False, True])
def test_whole_chains_leave_nothing(keep_rows, tmp_path):
    """Nothing else goes, and no model is asked for."""
    options = {"model": None, "dry_run": False, "key_file": tmp_path / "k" / "key.json"}
    listed = pl.DataFrame({"chain": ["a"]})
    release = redacted(HOURS, listed, **options, step="1h", keep_rows=keep_rows)
    by_chain = release.frame.group_by("chain", maintain_order=True).agg(pl.col("v").count())
    assert by_chain.rows() == ([("a", 0)] if keep_rows else []) + [("b", 72)]
    found = release.certificate
    assert (found["kind"], found["policy"], found["model"]) == ("none", None, None)
    kept = {"rows": 144, "private": 72, "runs": 1, "dropped_chains": 0}
    dropped = {"rows": 72, "private": 0, "runs": 0, "dropped_chains": 1}
    assert (kept if keep_rows else dropped).items() <= found["counts"].items()
    said = [one for one in release.summary.warnings if "is an assumption" in one]
    assert len(said) == keep_rows


def test_a_fit_takes_the_same_lists():
    zones = pl.DataFrame({"chain": ["a"]})
    ranges = pl.DataFrame({"chain": ["a"], "from": [date(2024, 3, 1)], "to": [date(2024, 3, 1)]})
    records = pl.DataFrame({"chain": ["a"], "t": [datetime(2024, 3, 1, 5)]})
    columns = dict(value="v", order="t", by="chain")
    fits = [off.fit(HOURS, private_list=one, **columns) for one in (zones, ranges, records)]
    assert fits[0].model.to_dict() == fits[1].model.to_dict() == fits[2].model.to_dict()
    marked = HOURS.with_columns(p=pl.col("chain") == "b")
    with pytest.raises(InputError, match="every chain holds a private record"):
        off.fit(marked, private_list=zones, private="p", **columns)
    late = pl.DataFrame({"chain": ["a"], "from": [date(2025, 1, 1)], "to": [None]})
    with pytest.raises(InputError, match="names 1 range that the table does not have"):
        off.fit(HOURS, private_list=late, **columns)


def test_a_range_that_ends_with_a_day_leaves_the_next_midnight_out(tmp_path):
    """Records at midnight, a day apart: the next one begins where the range has ended."""
    days = pl.datetime_range(pl.datetime(2026, 3, 1), pl.datetime(2026, 3, 20), "1d", eager=True)
    listed = pl.DataFrame({"from": ["2026-03-05"], "to": ["2026-03-06"]})
    release = off.redact(
        pl.DataFrame({"t": days, "v": [0, 1] * 10}),
        value="v", order="t", single_chain=True, step="1d", private_list=listed, epsilon=1.0,
        model=off.MarkovChain.binary(0.4, 0.4), mechanism="window", dataset="days",
        accept="model", publish_positions=True,
    )  # fmt: skip
    assert release.certificate["private"]["count"] == 2
    release.write(tmp_path / "out.csv")
    certificate, optouts = tmp_path / "out.csv.certificate.json", tmp_path / "optouts.csv"
    listed.write_csv(optouts)
    assert verify(certificate, tmp_path / "out.csv", private_list=optouts).is_verified


@pytest.mark.parametrize(
    ("first", "step", "beside", "missing"),
    [
        (date(2024, 7, 1), "1w", date(2024, 7, 14), date(2024, 7, 22)),
        (date(2024, 1, 1), "1mo", date(2024, 4, 3), date(2024, 5, 1)),
        (2000, "8", 2009, 2032),
    ],
)
def test_a_day_or_a_number_names_one_record_and_not_the_next(first, step, beside, missing):
    """A Sunday is of the week that began six days before, not of tomorrow's."""
    grid = Step.parsed(step)
    if step == "1mo":
        orders = [date(2024, month, 1) for month in range(1, 13)]
    else:
        size = 8 if step == "8" else timedelta(weeks=1)
        orders = [first + place * size for place in range(12)]
    orders = [one for one in orders if one != missing]
    frame = pl.DataFrame({"t": orders, "v": [0, 1] * 5 + [0]})
    columns = Columns("v", "t", ())
    arranged = arrange(frame, columns, alphabet=Alphabet((0, 1)), step=grid)
    listed = pl.DataFrame({"t": [beside, missing, orders[6]]})
    held = private_records(arranged, OptOuts.of(listed, columns), grid)
    assert held.found.tolist() == [False, True, True]
    assert held.count == 2
