"""Phased models and steps on real clocks: designs are for the phases that records have, in every
zone, by the definition.
"""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import leakage_of_table, output_table
from offrecord.errors import InputError
from offrecord.models import clock
from offrecord.tables.steps import Step

#: Zones, and a day three or four before their clocks were put back in 2021.
ZONES = {
    "UTC": (10, 28),
    "Europe/Berlin": (10, 28),
    "Europe/London": (10, 28),
    "America/New_York": (11, 4),
    "America/St_Johns": (11, 4),
    "Asia/Kolkata": (10, 28),
    "Australia/Lord_Howe": (4, 1),
    "Australia/Sydney": (4, 1),
    "Pacific/Auckland": (4, 1),
    "America/Santiago": (4, 1),
    "Africa/Casablanca": (4, 8),
    "Asia/Tehran": (9, 18),
}


def kernels(phase, even=0):
    """Kernels that differ much from phase to phase, even and odd: with another's, a design leaks
    what it should not.
    """
    rng = np.random.default_rng(3)
    count = clock.PHASES[phase]
    sticky = np.where(
        np.arange(count) % 2 == even, rng.uniform(0.005, 0.03, count), rng.uniform(0.3, 0.5, count)
    )
    there, back = (
        np.round(sticky, 3),
        np.round(1.3 * sticky, 3),
    )  # few digits, so that the model is taken as it is
    return np.stack([np.stack([1 - there, there], 1), np.stack([back, 1 - back], 1)], 1)


def model(phase, zone, even=0):
    count = clock.PHASES[phase]
    return off.PhasedChain(
        phase, kernels(phase, even), np.tile([0.55, 0.45], (count, 1)), zone=zone
    )


def told(phase, when):
    """The phase that a clock tells, from the standard library."""
    return {"hour": when.hour, "weekday": when.weekday(), "month": when.month - 1}[phase]


def leakage(chain, phases, rule, secret):
    """By the definition: every sequence and every output of the chain whose records stand in these
    phases.
    """
    steps = off.MarkovChain(chain.transition[phases[:-1]], chain.start[phases[0]])
    return leakage_of_table(output_table(steps, len(phases), rule, [secret + 1]))


def dry(times, private, chain, step, epsilon=1.0):
    frame = pl.DataFrame({"t": times, "v": [0] * len(times), "p": private})
    return off.redact(
        frame,
        value="v",
        order="t",
        single_chain=True,
        private="p",
        model=chain,
        epsilon=epsilon,
        dataset="d",
        step=step,
        dry_run=True,
        mechanism="window",
    )


def rules(release, present, count):
    """(count, 2) the redaction probabilities of all places; missing ones are redacted."""
    matrix = np.ones((count, 2))
    matrix[present] = release.explain().select(pl.col("^Pr.*$")).to_numpy()
    return matrix


def check(times, present, phases, secret, chain, step, epsilon=1.0):
    """times: of the records that are there, at the places `present`; phases: of all places, from
    the standard library.
    """
    release = dry(times, [place == secret for place in present], chain, step, epsilon)
    found = leakage(chain, np.array(phases), rules(release, present, len(phases)), secret)
    assert found <= epsilon * (1 + 1e-9)
    assert release.summary.leakage >= found - 1e-9


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("change", ["spring", "autumn"])
def test_days_are_days_of_the_calendar(zone, change):
    """Local midnights over a change of clocks are one step apart, and each has its own weekday."""
    first = datetime(2021, 3, 25) if change == "spring" else datetime(2021, *ZONES[zone])
    days = [first + timedelta(days=i) for i in range(7)]
    times = pl.Series(days).dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    if times.null_count():
        pytest.skip("clocks skip midnight itself in this zone and week")
    for missing in ((), (2, 3, 5)):
        present = [i for i in range(7) if i not in missing]
        for secret in present:
            for even in (0, 1):
                chain = model("weekday", zone, even)
                check(
                    times.gather(present),
                    present,
                    [day.weekday() for day in days],
                    secret,
                    chain,
                    "1d",
                )


@pytest.mark.parametrize("zone", ZONES)
@settings(max_examples=25)
@given(data=st.data())
def test_hours_are_counted_in_time_and_told_by_the_clock(zone, data):
    """Around changes of clocks an hour comes twice or not at all on the clock, never in time."""
    start = datetime(
        2021,
        *data.draw(
            st.sampled_from([(3, 14), (3, 28), (4, 4), (9, 26), (10, 3), (10, 31), (11, 7)])
        ),
        tzinfo=UTC,
    )
    start += timedelta(
        hours=data.draw(st.integers(-14, 18)), minutes=data.draw(st.sampled_from([0, 30]))
    )
    n = data.draw(st.integers(2, 7))
    instants = [start + timedelta(hours=i) for i in range(n)]
    phases = [told("hour", when.astimezone(ZoneInfo(zone))) for when in instants]
    present = sorted({0, n - 1} | data.draw(st.sets(st.integers(0, n - 1))))
    times = (
        pl.Series([instants[i].replace(tzinfo=None) for i in present])
        .dt.replace_time_zone("UTC")
        .dt.convert_time_zone(zone)
    )
    secret = data.draw(st.sampled_from(present))
    check(
        times,
        present,
        phases,
        secret,
        model("hour", zone),
        "1h",
        data.draw(st.sampled_from([0.3, 1.0])),
    )


@settings(max_examples=40)
@given(data=st.data())
def test_months_are_months(data):
    """From any day of a month, also from the last of a long one."""
    first = date(2019, 1, 1) + timedelta(days=data.draw(st.integers(0, 800)))
    n = data.draw(st.integers(2, 6))
    stepped = pl.Series([first]).dt
    days = [stepped.offset_by(f"{i}mo")[0] for i in range(n)]
    present = sorted({0, n - 1} | data.draw(st.sets(st.integers(0, n - 1))))
    times = pl.Series([days[i] for i in present])
    if data.draw(st.booleans()):
        times = times.cast(pl.Datetime("us")).dt.replace_time_zone("Europe/Berlin")
    zone = getattr(times.dtype, "time_zone", None)
    phases = [day.month - 1 for day in days]
    check(times, present, phases, data.draw(st.sampled_from(present)), model("month", zone), "1mo")


def test_records_that_lie_beside_the_hour_have_the_phase_of_their_own_clock():
    """The first 5 s before the hour, the others 5 s after: fit takes each record's own clock, and
    so do designs.
    """
    first = datetime(2021, 5, 3, 5, 59, 55)
    times = [first] + [datetime(2021, 5, 3, 6 + i, 0, 5) for i in range(1, 7)]
    series = pl.Series(times).dt.replace_time_zone("UTC")
    phases = [when.hour for when in times]
    for secret in range(7):
        check(series, list(range(7)), phases, secret, model("hour", "UTC"), "1h")
    fitted = off.fit(
        pl.DataFrame({"t": series, "v": [0, 1, 1, 0, 1, 0, 0]}),
        value="v",
        order="t",
        single_chain=True,
        phase="hour",
        step="1h",
    )
    assert np.flatnonzero(fitted.counts.sum(axis=(1, 2))).tolist() == [5, 7, 8, 9, 10, 11]


def test_a_private_record_in_a_gap_has_the_phase_of_the_time_that_was_listed():
    """Whatever the records beside it do: one that came ten minutes early is no clock for the one
    that is missing.
    """
    hours = [9, 10, 11, 12, 13, 14, 15]
    times = [datetime(2021, 5, 3, hour) for hour in hours if hour != 12]
    times[2] -= timedelta(minutes=10)
    chain = model("hour", None)
    for listed in (
        datetime(2021, 5, 3, 12),
        datetime(2021, 5, 3, 11, 58),
        datetime(2021, 5, 3, 12, 10),
    ):
        release = off.redact(
            pl.DataFrame({"t": times, "v": [0] * 6}),
            value="v",
            order="t",
            single_chain=True,
            private_list=pl.DataFrame({"t": [listed]}),
            model=chain,
            epsilon=1.0,
            dataset="d",
            step="1h",
            dry_run=True,
            mechanism="window",
        )
        phases = np.array([9, 10, 10, listed.hour, 13, 14, 15])
        present = [0, 1, 2, 4, 5, 6]
        assert leakage(chain, phases, rules(release, present, 7), 3) <= 1 + 1e-9


def test_a_gap_keeps_to_the_grid_of_its_chain():
    """Not to that of the record before it, which may be early, nor to the first, which
    may be too.
    """
    chain = model("hour", None)
    for early in (0, 2, 4):
        times = [datetime(2021, 5, 3, 9 + i, 0, 5) for i in range(7)]
        times[early] -= timedelta(minutes=10)
        phases = [when.hour for when in times]
        for gap in (1, 3, 5):
            present = [i for i in range(7) if i != gap]
            for secret in present:
                check(pl.Series([times[i] for i in present]), present, phases, secret, chain, "1h")


def test_published_positions_are_those_that_were_listed(tmp_path):
    days = [date(2024, 1, 31), date(2024, 2, 29), date(2024, 4, 30)]
    release = off.redact(
        pl.DataFrame({"t": days, "v": [0, 1, 1]}),
        value="v",
        order="t",
        single_chain=True,
        private_list=pl.DataFrame({"t": [date(2024, 3, 31)]}),
        model=off.MarkovChain.binary(0.1, 0.2),
        epsilon=1.0,
        dataset="d",
        step="1mo",
        key_file=tmp_path / "keys" / "key.json",
        publish_positions=True,
    )
    at = release.certificate["private"]["positions"]["keys"]
    assert at == [[int(datetime(2024, 3, 31, tzinfo=UTC).timestamp()) * 10**9]]


def test_a_day_that_a_calendar_skips_is_no_record():
    """Samoa had no 30 December 2011: the 29th and the 31st are neighbours."""
    days = [datetime(2011, 12, day) for day in (27, 28, 29, 31)] + [
        datetime(2012, 1, 1),
        datetime(2012, 1, 2),
    ]
    times = pl.Series(days).dt.replace_time_zone("Pacific/Apia")
    check(
        times,
        list(range(6)),
        [day.weekday() for day in days],
        2,
        model("weekday", "Pacific/Apia"),
        "1d",
    )
    check(
        times,
        list(range(6)),
        [day.weekday() for day in days],
        3,
        model("weekday", "Pacific/Apia", 1),
        "1d",
    )


NAIVE = [datetime(2021, 5, 3, i) for i in range(8)]


@pytest.mark.parametrize(
    ("phase", "zone", "times"),
    [
        ("hour", "Europe/Berlin", pl.Series(NAIVE)),
        ("hour", None, pl.Series(NAIVE).dt.replace_time_zone("UTC")),
        ("hour", "Europe/Berlin", pl.Series(NAIVE).dt.replace_time_zone("UTC")),
        ("weekday", "Europe/Berlin", pl.Series([date(2021, 5, 1 + i) for i in range(8)])),
        ("hour", None, pl.Series([date(2021, 5, 1 + i) for i in range(8)])),
    ],
    ids=["zoned, naive", "naive, zoned", "other zone", "zoned, dates", "hours of dates"],
)
def test_a_model_and_a_table_in_other_zones_are_an_error(phase, zone, times):
    with pytest.raises(off.InputError, match=r"zone|time of day"):
        dry(
            times,
            [True] + [False] * 7,
            model(phase, zone),
            "1h" if times.dtype != pl.Date else "1d",
        )


def hourly(first, count, zone, every=timedelta(hours=1)):
    """What a clock in a zone shows, every hour of time that passes; without the zone."""
    start = datetime.fromisoformat(first).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    return pl.Series(
        [(start + i * every).astimezone(ZoneInfo(zone)).replace(tzinfo=None) for i in range(count)]
    )


@pytest.mark.parametrize(
    ("zone", "first"),
    [
        ("Europe/Berlin", "2021-03-27T20:00"),
        ("Europe/London", "2021-03-27T20:00"),
        ("Europe/Athens", "2021-03-27T20:00"),
        ("Europe/Vienna", "1999-03-27T20:00"),
        ("America/New_York", "2021-03-13T20:00"),
        ("America/Los_Angeles", "2003-04-05T20:00"),
        ("Australia/Melbourne", "2021-10-02T20:00"),
        ("Pacific/Auckland", "2021-09-25T20:00"),
        ("America/Santiago", "2021-09-04T20:00"),
        ("America/Nuuk", "2024-03-30T16:00"),
        ("Europe/Istanbul", "2014-03-30T20:00"),
        ("Asia/Gaza", "2019-03-28T20:00"),
    ],
)
@pytest.mark.parametrize("minutes", [60, 15, 10])
def test_naive_local_hours_over_a_spring_change_are_an_error(zone, first, minutes):
    times = hourly(first, 12 * 60 // minutes, zone, timedelta(minutes=minutes))
    with pytest.raises(off.InputError, match="no time zone and miss the hour that clocks skip"):
        dry(
            times,
            [True] + [False] * (len(times) - 1),
            off.MarkovChain.binary(0.1, 0.2),
            f"{minutes}m",
        )


@pytest.mark.parametrize("step", ["1h", None])
def test_naive_local_hours_over_an_autumn_change_are_an_error_that_says_so(step):
    times = hourly("2021-10-30T20:00", 12, "Europe/Berlin")
    with pytest.raises(off.InputError, match="clocks were put back then"):
        dry(times, [True] + [False] * 11, off.MarkovChain.binary(0.1, 0.2), step)
    twice = pl.Series([datetime(2021, 5, 3, 1), datetime(2021, 5, 3, 1)])
    with pytest.raises(
        off.InputError, match=r"has the same value in 2 rows of one chain or another"
    ):
        dry(twice, [True, False], off.MarkovChain.binary(0.1, 0.2), None)


def test_times_that_merely_miss_an_hour_are_not_an_error():
    times = [when for when in hourly("2021-03-27T20:00", 24, "UTC").to_list() if when.hour != 7]
    release = dry(pl.Series(times), [True] + [False] * 22, off.MarkovChain.binary(0.1, 0.2), "1h")
    assert release.summary.rows == 23


def test_gaps_of_many_chains_are_no_change_of_clocks():
    """Somebody has a record in the hour that clocks would have skipped."""
    rng = np.random.default_rng(0)
    hours = [datetime(2024, 3, 1) + timedelta(hours=i) for i in range(31 * 24)]
    rows = [(chain, hour) for chain in range(40) for hour in hours if rng.random() > 0.02]
    frame = pl.DataFrame(rows, schema=["chain", "t"], orient="row").with_columns(
        v=pl.lit(0), p=pl.int_range(pl.len()) == 100
    )
    options = {
        "value": "v",
        "order": "t",
        "by": "chain",
        "private": "p",
        "epsilon": 1.0,
        "dataset": "d",
        "step": "1h",
    }
    off.redact(
        frame, **options, model=off.MarkovChain.binary(0.1, 0.2), dry_run=True, mechanism="window"
    )


@given(
    zone=st.sampled_from([*ZONES]),
    text=st.sampled_from(["1d", "2d", "1w", "1mo", "3mo", "1y", "1h", "10m"]),
    first=st.datetimes(datetime(1971, 1, 1), datetime(2090, 1, 1)),
    count=st.integers(0, 60),
)
def test_steps_there_and_back(zone, text, first, count):
    step = Step.parsed(text)
    at = clock.shown(np.array([int(first.replace(tzinfo=UTC).timestamp()) * 10**9]), None)
    there = step.onward(at, np.array([count]), zone)
    back, off_grid = step.counted(at, there, zone)
    assert back.tolist() == [count]
    assert int(off_grid[0]) <= clock.HOUR  # a time that clocks skip is the one they jump to


def test_the_same_step_in_other_words():
    same = [("60m", "1h"), ("24h", "1d"), ("7d", "1w"), ("12mo", "1y"), ("1", "1")]
    for one, other in same:
        assert Step.parsed(one).same(Step.parsed(other), "UTC")
    assert not Step.parsed("24h").same(Step.parsed("1d"), "Europe/Berlin")
    assert not Step.parsed("1").same(Step.parsed("1h"), None)


# ---- fits of dates


def dated(step, chains=20, count=120):
    """Chains of records that stand a step apart, by date; in the first of them one is private."""
    last = pl.Series([date(1901, 1, 1)]).dt.offset_by(step.replace("1", str(count - 1)))[0]
    days = pl.date_range(date(1901, 1, 1), last, step, eager=True)
    at = np.arange(chains * count)
    values = (np.random.default_rng(2).random(len(at)) < 0.3).astype(int)
    return pl.DataFrame(
        {"c": at // count, "t": pl.concat([days] * chains), "v": values, "p": at == 60}
    )


READING = {"value": "v", "order": "t", "by": "c", "private": "p"}


@pytest.mark.parametrize("stepped", [True, False])
@pytest.mark.parametrize(
    ("step", "kinds"), [("1d", {"weekday"}), ("1w", set()), ("1mo", set()), ("1y", set())]
)
def test_an_audit_looks_at_the_phases_that_dates_tell(step, kinds, stepped):
    found = off.fit(dated(step), **READING, step=step if stepped else None)
    looked = {one.kind for one in found.audit.findings}
    assert looked
    assert looked & set(clock.PHASES) == kinds


@pytest.mark.parametrize(
    ("form", "step"),
    [("%Y-%m-%d", "1d"), ("%Y-%m-%d", "1y"), ("%Y-%m", "1mo"), (None, "1d"), (None, "1mo")],
)
def test_a_table_by_date_is_fitted_and_redacted_at_once(form, step, tmp_path):
    frame = dated(step)
    if form is not None:
        frame = frame.with_columns(pl.col("t").dt.strftime(form))
    given = {"epsilon": 2.0, "dataset": "d", "key_file": tmp_path / "k.json", "dry_run": True}
    release = off.redact(frame, **READING, fit=True, step=step, **given)
    assert release.summary.audit is not None


def test_a_kernel_for_each_hour_of_dates_is_refused_as_before():
    with pytest.raises(InputError, match="not dates"):
        off.fit(dated("1d"), **READING, phase="hour")
