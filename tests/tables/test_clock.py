"""Kernels by the clock and steps on real clocks: rules are for the hours, weekdays and months that
records have, in every zone, by the definition.
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
from explained import explained
from offrecord.models import clock
from offrecord.models.members import PLACE_COUNTS, Members, Places
from offrecord.models.promise import Promise
from offrecord.tables.steps import Step
from offrecord.verification import verify

#: Zones, and a day three or four before their clocks were put back in 2021.
ZONES = {
    "UTC": (10, 28),
    "Europe/Berlin": (10, 28),
    "America/New_York": (11, 4),
    "America/St_Johns": (11, 4),
    "Asia/Kolkata": (10, 28),
    "Australia/Lord_Howe": (4, 1),
    "Pacific/Auckland": (4, 1),
    "America/Santiago": (4, 1),
    "Africa/Casablanca": (4, 8),
    "Asia/Tehran": (9, 18),
}
PLAIN = off.MarkovChain.binary(0.1, 0.2)
ONE_CHAIN = {"value": "v", "order": "t", "single_chain": True}


class Clockwork(Promise):
    """One known chain whose kernels differ much from place to place, even and odd: with another's,
    a rule leaks what it should not.
    """

    coverage, labels, order = None, (0, 1), 1

    def __init__(self, kind, zone, even=0):
        rng = np.random.default_rng(3)
        count = PLACE_COUNTS[kind]
        is_sticky = np.arange(count) % 2 == even
        there = np.where(is_sticky, rng.uniform(0.005, 0.03, count), rng.uniform(0.3, 0.5, count))
        back = 1.3 * there
        self.kernels = np.stack([np.stack([1 - there, there], 1), np.stack([back, 1 - back], 1)], 1)
        self._only = Members(self.kernels[np.newaxis], 1, Places(kind, count, zone))

    @property
    def places(self):
        return self._only.places

    @property
    def mean(self):
        return self._only

    def members(self, count=0, seed=0):
        return self._only

    def form(self):
        raise NotImplementedError  # no file holds it

    def to_dict(self):
        return {"kernels": self.kernels.tolist(), "zone": self.places.zone}

    def leakage(self, phases, rule, secret):
        """By the definition: every sequence and every output of records in these phases."""
        law = self._only.law(int(phases[0]))[0]
        steps = off.MarkovChain(self.kernels[np.array(phases)[:-1]], law)
        return leakage_of_table(output_table(steps, len(phases), rule, [secret + 1]))


def dry(times, model, step, epsilon=1.0, listed=None):
    """A table of zeros at these times, of which the first or the listed one is private."""
    frame = pl.DataFrame({"t": times}).with_columns(v=pl.lit(0))
    listed = frame["t"][:1] if listed is None else listed
    return off.redact(
        frame,
        **ONE_CHAIN,
        private_list=pl.DataFrame({"t": listed}),
        model=model,
        epsilon=epsilon,
        dataset="d",
        step=step,
        dry_run=True,
        mechanism="window",
    )


def check(times, present, phases, secret, model, step, epsilon=1.0):
    """A table with the records that are `present` keeps ε about the secret, which may be in a gap.

    times, phases: of all places.
    """
    listed = times.gather([secret])
    release = dry(times.gather(present), model, step, epsilon, listed)
    rule = np.ones((len(phases), 2))  # missing ones are redacted
    rule[present] = explained(release).select(pl.col("^Pr.*$")).to_numpy()
    found = model.leakage(phases, rule, secret)
    assert found <= epsilon * (1 + 1e-9)
    assert release.summary.leakage >= found - 1e-9


def ends_and(data, n):
    return sorted({0, n - 1} | data.draw(st.sets(st.integers(0, n - 1))))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("change", ["spring", "autumn"])
def test_days_are_days_of_the_calendar(zone, change):
    """Local midnights over a change of clocks are one step apart, and each has its own weekday."""
    first = datetime(2021, 3, 25) if change == "spring" else datetime(2021, *ZONES[zone])
    days = [first + timedelta(days=i) for i in range(7)]
    times = pl.Series(days).dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    if times.null_count():
        pytest.skip("clocks skip midnight itself in this zone and week")
    phases = [day.weekday() for day in days]
    for missing in ((), (2, 3, 5)):
        present = [i for i in range(7) if i not in missing]
        for even in (0, 1):
            for secret in range(7):
                check(times, present, phases, secret, Clockwork("weekday", zone, even), "1d")


@settings(max_examples=60)
@given(data=st.data())
def test_hours_are_counted_in_time_and_go_round(data):
    """Around changes of clocks an hour comes twice or not at all on the clock, never in time."""
    zone = data.draw(st.sampled_from([*ZONES]))
    days = [(3, 14), (3, 28), (4, 4), (9, 26), (10, 3), (10, 31), (11, 7)]
    start = datetime(2021, *data.draw(st.sampled_from(days)), tzinfo=UTC)
    start += timedelta(
        hours=data.draw(st.integers(-14, 18)), minutes=data.draw(st.sampled_from([0, 30]))
    )
    n = data.draw(st.integers(2, 7))
    first = start.astimezone(ZoneInfo(zone)).hour
    instants = [(start + timedelta(hours=i)).replace(tzinfo=None) for i in range(n)]
    times = pl.Series(instants).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    phases = [(first + i) % 24 for i in range(n)]
    secret, epsilon = data.draw(st.integers(0, n - 1)), data.draw(st.sampled_from([0.3, 1.0]))
    check(times, ends_and(data, n), phases, secret, Clockwork("hour", zone), "1h", epsilon)


@settings(max_examples=40)
@given(data=st.data())
def test_months_are_months(data):
    """From any day of a month, also from the last of a long one."""
    first = date(2019, 1, 1) + timedelta(days=data.draw(st.integers(0, 800)))
    n = data.draw(st.integers(2, 6))
    times = pl.Series([pl.Series([first]).dt.offset_by(f"{i}mo")[0] for i in range(n)])
    phases = (times.dt.month() - 1).to_list()
    zone = data.draw(st.sampled_from([None, "Europe/Berlin"]))
    if zone is not None:
        times = times.cast(pl.Datetime("us")).dt.replace_time_zone(zone)
    secret = data.draw(st.integers(0, n - 1))
    check(times, ends_and(data, n), phases, secret, Clockwork("month", zone), "1mo")


@pytest.mark.parametrize("early", [0, 2, 4])
def test_rows_beside_the_grid_change_no_hour_of_others(early):
    """Nor of a gap, nor of a private record in one; the first row says the hour of all."""
    times = [datetime(2021, 5, 3, 9 + i, 0, 5) for i in range(7)]
    times[early] -= timedelta(minutes=10)
    phases = [times[0].hour + i for i in range(7)]
    for gap in (1, 3, 5):
        present = [i for i in range(7) if i != gap]
        for secret in range(7):
            check(pl.Series(times), present, phases, secret, Clockwork("hour", None), "1h")
    fit = off.fit(
        pl.DataFrame({"t": times, "v": [0, 1, 1, 0, 1, 0, 0]}),
        **ONE_CHAIN, step="1h", phase="hour", chain_order=1,
    )  # fmt: skip
    counted = fit.posterior.place_counts.sum(axis=(1, 2))
    assert np.flatnonzero(counted).tolist() == phases[:-1]


def test_a_day_that_a_calendar_skips_is_no_record():
    """Samoa had no 30 December 2011: the 29th and the 31st are neighbours."""
    days = [datetime(2011, 12, day) for day in (27, 28, 29, 31)] + [datetime(2012, 1, 1)]
    times = pl.Series(days).dt.replace_time_zone("Pacific/Apia")
    phases = [(1 + i) % 7 for i in range(5)]
    for secret in range(5):
        check(times, [*range(5)], phases, secret, Clockwork("weekday", "Pacific/Apia"), "1d")


def test_published_positions_are_those_that_were_listed(tmp_path):
    days = [date(2024, 1, 31), date(2024, 2, 29), date(2024, 4, 30)]
    release = off.redact(
        pl.DataFrame({"t": days, "v": [0, 1, 1]}),
        **ONE_CHAIN,
        private_list=pl.DataFrame({"t": [date(2024, 3, 31)]}),
        model=PLAIN,
        epsilon=1.0,
        dataset="d",
        step="1mo",
        key_file=tmp_path / "keys" / "key.json",
        publish_positions=True,
    )
    at = release.certificate["private"]["positions"]["keys"]
    assert at == [[int(datetime(2024, 3, 31, tzinfo=UTC).timestamp()) * 10**9]]


# ---- tables that are not the model's


NAIVE = pl.Series([datetime(2021, 5, 3, i) for i in range(8)])
DATES = pl.Series([date(2021, 5, 1 + i) for i in range(8)])


@pytest.mark.parametrize(
    ("kind", "zone", "times"),
    [
        ("hour", "Europe/Berlin", NAIVE),
        ("hour", None, NAIVE.dt.replace_time_zone("UTC")),
        ("hour", "Europe/Berlin", NAIVE.dt.replace_time_zone("UTC")),
        ("weekday", "Europe/Berlin", DATES),
        ("hour", None, DATES),
    ],
    ids=["zoned, naive", "naive, zoned", "other zone", "zoned, dates", "hours of dates"],
)
def test_a_model_and_a_table_in_other_zones_are_an_error(kind, zone, times):
    with pytest.raises(off.InputError, match=r"zone|time of day"):
        dry(times, Clockwork(kind, zone), "1d" if times.dtype == pl.Date else "1h")


@pytest.mark.parametrize(
    ("kind", "times", "other", "own"),
    [
        ("hour", NAIVE, "15m", "1h"),
        ("hour", NAIVE, None, "1h"),
        ("weekday", NAIVE, "1h", "1d"),
        ("month", DATES, "1d", "1mo"),
    ],
    ids=["quarters", "no step", "hours", "days"],
)
def test_kernels_lead_from_one_place_to_the_next(kind, times, other, own):
    """At another step the rules would be for places that records do not have."""
    says = f'a kernel for each {kind} needs step="{own}"'
    with pytest.raises(off.InputError, match=says):
        dry(times, Clockwork(kind, None), other)
    with pytest.raises(off.InputError, match=says):
        off.fit(pl.DataFrame({"t": times, "v": [0, 1] * 4}), **ONE_CHAIN, step=other, phase=kind)


def hourly(first, count, zone, every=timedelta(hours=1)):
    """What a clock in a zone shows, every hour of time that passes; without the zone."""
    start = datetime.fromisoformat(first).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    return pl.Series(
        [(start + i * every).astimezone(ZoneInfo(zone)).replace(tzinfo=None) for i in range(count)]
    )


@pytest.mark.parametrize("step", ["1h", None])
def test_naive_local_hours_over_an_autumn_change_are_an_error_that_says_so(step):
    with pytest.raises(off.InputError, match="where clocks were put back"):
        dry(hourly("2021-10-30T20:00", 12, "Europe/Berlin"), PLAIN, step)
    twice = pl.Series([datetime(2021, 5, 3, 1)] * 2)
    with pytest.raises(off.InputError, match="has the same value in 2 rows of one chain or anothe"):
        dry(twice, PLAIN, None)


# ---- steps


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


# ---- fits


READING = {"value": "v", "order": "t", "by": "c", "private": "p"}


def dated(step, chains=20, count=60):
    """Chains of records that stand a step apart, from days of their own on; one is private."""
    first = [date(1901, 1, 1 + i) for i in range(chains)]
    days = [
        day for one in first for day in pl.Series([one] * count).dt.offset_by(
            pl.Series([f"{int(step[:1]) * i}{step[1:]}" for i in range(count)])
        )
    ]  # fmt: skip
    at = np.arange(chains * count)
    values = (np.random.default_rng(2).random(len(at)) < 0.3).astype(int)
    return pl.DataFrame({"c": at // count, "t": days, "v": values, "p": at == 60})


@pytest.mark.parametrize(
    ("step", "kinds"),
    [("1d", {"weekday"}), ("1w", set()), ("1mo", {"month"}), ("1y", set()), (None, set())],
)
def test_a_fit_tries_the_places_that_a_step_leads_round(step, kinds):
    found = off.fit(dated(step or "1d"), **READING, step=step, chain_order=1)
    assert {gain.kind for gain in found.gains} - {"step"} == kinds
    assert found.posterior.places is None  # values do not depend on any


@pytest.mark.parametrize(
    ("form", "step"), [("%Y-%m-%d", "1d"), ("%Y-%m-%d", "1y"), ("%Y-%m", "1mo"), (None, "1mo")]
)
def test_a_table_by_date_is_fitted_and_redacted_at_once(form, step, tmp_path):
    frame = dated(step)
    if form is not None:
        frame = frame.with_columns(pl.col("t").dt.strftime(form))
    given = {"epsilon": 2.0, "dataset": "d", "key_file": tmp_path / "k.json", "dry_run": True}
    given |= {"chain_order": 1, "coverage": 0.95, "mechanism": "window"}
    release = off.redact(frame, **READING, fit=True, step=step, **given)
    assert [one.epsilon for one in release.fit.verdicts] == [2.0]
    assert release.fit.model.origin.step == step


def test_hours_that_matter_are_found_and_a_release_by_them_is_verified(tmp_path):
    """Over a change of clocks, with the private record in a gap beyond it."""
    first = datetime(2021, 3, 1, 5, tzinfo=UTC)  # 6 in Berlin
    instants = [(first + timedelta(hours=i)).replace(tzinfo=None) for i in range(24 * 60)]
    rng = np.random.default_rng(4)
    values = [int(rng.random() < (0.9 if (6 + i) % 24 > 18 else 0.05)) for i in range(24 * 60)]
    times = pl.Series(instants).dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin")
    whole = pl.DataFrame({"t": times, "v": values})
    frame = whole.filter(pl.int_range(pl.len()) != 1000)
    release = off.redact(
        frame, **ONE_CHAIN, private_list=whole[1000:1001].select("t"), publish_positions=True,
        fit=True, chain_order=1, coverage=0.95, mechanism="window", epsilon=1.0, dataset="d",
        step="1h", key_file=tmp_path / "keys" / "key.json",
    )  # fmt: skip
    assert release.fit.posterior.places == Places("hour", 24, "Europe/Berlin")
    (rule,) = release.certificate["policy"]["rules"]
    assert rule["place"] == (6 + 1000) % 24
    certificate, _ = release.write(tmp_path / "out.parquet")
    frame.write_parquet(tmp_path / "original.parquet")
    found = verify(
        certificate,
        tmp_path / "out.parquet",
        key_file=tmp_path / "keys" / "key.json",
        original=tmp_path / "original.parquet",
        seed=1,
    )
    assert (found.status, list(found.problems)) == ("verified", [])


def test_a_kernel_for_each_hour_of_dates_is_refused():
    with pytest.raises(off.InputError, match="not dates"):
        off.fit(dated("1d"), **READING, phase="hour")
