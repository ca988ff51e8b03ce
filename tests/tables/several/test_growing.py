"""Tables that grow: each release repeats what left, so together they tell what the last does."""

import json

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples
from offrecord import cli
from offrecord.theory.several import joint_redaction
from tables.several.conftest import CHAIN, OPTIONS, rule_of

JFK = off.MarkovChain.binary(0.0209, 0.2938)


def grown(values, private, until, missing=None):
    """What there is of a table at order value `until`."""
    count = len(values)
    frame = pl.DataFrame(
        {
            "chain": np.repeat(np.arange(count), until),
            "t": np.tile(np.arange(1, until + 1), count),
            "v": values[:, :until].ravel(),
            "p": private[:, :until].ravel(),
        }
    )
    if missing is not None:
        frame = frame.filter(pl.Series(~missing[:, :until].ravel() | frame["p"].to_numpy()))
    return frame


def drawn(seed, n=60, count=12, share=0.04, chain=CHAIN):
    rng = np.random.default_rng(seed)
    return samples(chain, count, n, rng), rng.random((count, n)) < share, rng.random((count, n))


def shown(desk, name):
    """The values that a release shows, by chain and order value."""
    rows = desk.released(name).iter_rows()
    return {(chain, t): value for chain, t, value in rows if value is not None}


MECHANISMS = ["window", "3r-constant", "best-local", "owner"]


@pytest.mark.parametrize("protect", ["run", "each"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_release_repeats_the_ones_before(desk, mechanism, protect):
    """Shown stays shown, redacted stays redacted, as long as it was not only waiting."""
    values, private, empty = drawn(MECHANISMS.index(mechanism) + 10 * (protect == "run"))
    before, settled = {}, {}
    for until in range(25, 61, 5):
        frame = grown(values, private, until, empty < 0.03)
        name = f"{until}.csv"
        release = desk.redact(frame, name, mechanism=mechanism, protect=protect, growing=True)
        now, told = shown(desk, name), release.explain()
        assert before.items() <= now.items()
        due = told.filter(pl.col("region") != "waits")
        records = set(due.select("chain", "t").iter_rows())
        for record, was_shown in settled.items():
            assert record in records
            assert (record in now) == was_shown
        settled = {record: record in now for record in records}
        assert release.certificate["release"]["composed"] is True
        before = now
    assert len(before) > 100
    assert settled


@pytest.mark.parametrize("mechanism", ["window", "best-local"])
def test_what_all_releases_tell_is_what_the_last_one_does(desk, mechanism):
    """By R8 from the rules of all of them, which redact by the same coins."""
    values, private, _ = drawn(3, n=45, count=3, share=0.06)
    rules = []
    for until in range(20, 46, 5):
        release = desk.redact(
            grown(values, private, until), f"{until}.csv", mechanism=mechanism, growing=True
        )
        waits = release.explain().filter(pl.col("region") == "waits").select("chain", "t")
        gone = set(waits.iter_rows())
        told = rule_of(release)
        rules.append({one: [1.0, 1.0] if one in gone else row for one, row in told.items()})
    for chain in range(3):
        secrets = np.flatnonzero(private[chain]) + 1
        if not len(secrets):
            continue
        every = [
            np.array([rule.get((chain, t), [1.0, 1.0]) for t in range(1, 46)]) for rule in rules
        ]
        as_one = [off.Redaction.from_matrix(matrix, 45, 2) for matrix in every]
        problem = off.Problem(CHAIN, 45, secrets.tolist(), 1.0)
        together = joint_redaction({"d": as_one})
        assert np.array_equal(together.matrix(), every[-1])
        assert off.leakage(problem, together) <= 1.0 + 1e-12


def test_the_lag_that_hourly_rain_needs(desk):
    """R8's table: with a lag of 7 all releases tell 0.989, with less more than is promised."""
    values, private, _ = drawn(0, n=80, count=2, chain=JFK)
    options = {"model": JFK, "mechanism": "window", "growing": True, "protect": "each"}
    with pytest.raises(off.InputError, match="--lag 6 is too short: 7 steps before"):
        desk.redact(grown(values, private, 60), "a.csv", lag=6, **options)
    release = desk.redact(grown(values, private, 60), "a.csv", lag=7, **options)
    assert release.summary.leakage == pytest.approx(0.989, abs=5e-4)
    told = release.explain().filter(pl.col("region") == "waits")
    assert told["t"].min() >= 60 - 7 + 1 - 7  # near a record that was just made private, further
    again = desk.redact(grown(values, private, 80), "b.csv", lag=7, **options)
    assert again.certificate["growing"] == {"until": 80, "lag": 7, "reach": 7, "link": 1}


@pytest.fixture
def one(desk):
    """A release, and the records of more time."""
    values, private, _ = drawn(7)
    private[3, :40] = False
    desk.redact(grown(values, private, 40), "a.csv", mechanism="best-local", growing=True)
    return values, private


def later(desk, values, private, **options):
    more = {"mechanism": "best-local", "growing": True} | options
    return desk.redact(grown(values, private, 50), "b.csv", **more)


def test_a_release_may_be_entered_before_it_is_written(desk):
    values, private, _ = drawn(7)
    for until in (40, 50):
        options = OPTIONS | {"epsilon": 1.0, "dataset": "d", "key_file": desk.key}
        release = off.redact(grown(values, private, until), growing=True, **options)
        release.write(desk.folder / f"{until}.csv")
        assert release.certificate["release"]["other_releases"] == (until - 40) // 10


def test_a_release_that_is_repeated_is_the_same(desk, one):
    values, private = one
    desk.redact(grown(values, private, 40), "a2.csv", mechanism="best-local", growing=True)
    assert desk.released("a.csv").equals(desk.released("a2.csv"))
    later(desk, values, private)


@pytest.mark.parametrize("t", [10, 30, 35])
def test_who_opts_out_too_late_is_refused(desk, one, t):
    values, private = one
    private = private.copy()
    private[3, t - 1] = True
    with pytest.raises(off.InputError, match="have become so since"):
        later(desk, values, private)
    assert not (desk.folder / "b.csv").exists()


def test_who_opts_in_again_is_refused(desk, one):
    values, private = one
    private = private.copy()
    private[np.unravel_index(np.flatnonzero(private[:, :30])[0], (len(private), 30))] = False
    with pytest.raises(off.InputError, match="are so no more"):
        later(desk, values, private)


def test_who_opts_out_in_time_is_served(desk, one):
    values, private = one
    private = private.copy()
    private[3, 40:43] = True
    release = later(desk, values, private)
    assert release.certificate["release"]["other_releases"] == 1


def test_a_value_that_changed_is_refused(desk, one):
    values, private = one
    chain = int(np.flatnonzero(private[:, :30].any(axis=1))[0])
    known = desk.released("a.csv").filter((pl.col("chain") == chain) & pl.col("v").is_not_null())
    values = values.copy()
    values[chain, known["t"][0] - 1] ^= 1
    with pytest.raises(off.InputError, match="values or rows have changed"):
        later(desk, values, private)


def test_a_row_that_comes_late_is_refused(desk):
    values, private, empty = drawn(7)
    early, late = empty < 0.05, np.zeros_like(private)
    options = {"mechanism": "best-local", "growing": True}
    desk.redact(grown(values, private, 40, early), "a.csv", **options)
    with pytest.raises(off.InputError, match="values or rows have changed"):
        desk.redact(grown(values, private, 50, late), "b.csv", **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"epsilon": 1.2}, "another epsilon"),
        ({"mechanism": "window"}, "another mechanism"),
        ({"model": off.MarkovChain.binary(0.06, 0.3)}, "another model"),
        ({"protect": "each"}, "another mechanism"),
        ({"growing": False}, "was released before with another"),
        ({"lag": 2}, "too short"),
        ({"lag": 20}, "values or rows have changed"),
        ({"lag": -1}, "whole number"),
        ({"step": None}, "needs --order, a column, and --step"),
        ({"drop": True}, "do not go together"),
        ({"another_release": True}, "do not go together"),
        ({"fit": True, "model": None}, "one model for all releases"),
        ({"growing": False, "lag": 3}, "is for --growing"),
    ],
)
def test_what_does_not_continue_is_refused(desk, one, options, says):
    with pytest.raises(off.InputError, match=says) as raised:
        later(desk, *one, **options)
    assert "\n" not in str(raised.value)
    assert not (desk.folder / "b.csv").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"until": 1}', '{"until": 1e9, "lag": 1, "reach": 1, "link": 1}']
)
def test_a_ledger_that_is_damaged_is_said_in_one_line(desk, one, text):
    file = desk.key.with_name("key.ledger.json")
    ledger = json.loads(file.read_text())
    ledger["releases"]["d"][0]["state of the growing table"] = text
    file.write_text(json.dumps(ledger))
    with pytest.raises(off.InputError, match="entry of data set 'd' is damaged") as raised:
        later(desk, *one)
    assert "\n" not in str(raised.value)


def test_a_table_that_shrinks_is_refused(desk, one):
    with pytest.raises(off.InputError, match="ends before the one that was released last"):
        desk.redact(grown(*one, 35), "b.csv", mechanism="best-local", growing=True)


def test_a_table_that_did_not_grow_before_is_refused(desk):
    values, private, _ = drawn(7)
    desk.redact(grown(values, private, 40), "a.csv", mechanism="best-local")
    with pytest.raises(off.InputError, match="released before without --growing"):
        later(desk, values, private)


def test_models_by_the_clock_are_refused(desk):
    values, private, _ = drawn(7)
    chain = off.MarkovChain(CHAIN.transition, start=[0.5, 0.5])
    with pytest.raises(off.InputError, match="stationary model"):
        later(desk, values, private, model=chain)


def test_nothing_leaves_where_designs_never_end(desk):
    values, private, _ = drawn(7)
    with pytest.raises(off.InputError, match="without end"):
        later(desk, values, private, epsilon=0.0)


def test_from_the_first_record_on_later_secrets_are_reckoned_with(desk):
    """Without any private record yet, records wait as long as with."""
    values, private, _ = drawn(7)
    none = np.zeros_like(private)
    first = desk.redact(
        grown(values, none, 40), "a.csv", mechanism="best-local", growing=True, allow_none=True
    )
    private = private.copy()
    private[:, :40] = False
    private[0, 40] = True
    second = later(desk, values, private)
    for release in (first, second):
        assert release.certificate["growing"]["reach"] == 5


def test_a_stream_is_the_same(desk, tmp_path):
    values, private, empty = drawn(9, count=20)
    for until in (40, 55):
        frame = grown(values, private, until, empty < 0.02)
        frame.write_csv(tmp_path / "in.csv")
        release = desk.redact(frame, f"{until}.csv", growing=True)
        off.redact_file(
            tmp_path / "in.csv",
            tmp_path / f"{until}-stream.csv",
            value="v",
            order="t",
            by="chain",
            step=1,
            private="p",
            model=CHAIN,
            epsilon=1.0,
            dataset="d",
            key_file=desk.key,
            growing=True,
        )
        streamed = (tmp_path / f"{until}-stream.csv").read_bytes()
        assert (desk.folder / f"{until}.csv").read_bytes() == streamed
        proofs = [desk.proof(f"{until}.csv"), desk.proof(f"{until}-stream.csv")]
        one, other = (json.loads(proof.read_text()) for proof in proofs)
        assert one == other
        assert release.summary.waiting > 0


def test_values_that_wait_are_in_no_file(desk):
    """Two tables that differ only in what waits leave the same."""
    values, private, _ = drawn(11)
    local = {"mechanism": "window", "growing": True}  # an owner's walks look at what is redacted
    release = desk.redact(grown(values, private, 40), "a.csv", dataset="one", **local)
    waits = release.explain().filter(pl.col("region") == "waits")
    other = values.copy()
    for chain, t in waits.select("chain", "t").iter_rows():
        other[chain, t - 1] ^= 1
    assert not np.array_equal(values, other)
    for name, these in (("b", values), ("c", other)):
        desk.redact(grown(these, private, 40), f"{name}.csv", dataset="two", **local)
    assert (desk.folder / "b.csv").read_bytes() == (desk.folder / "c.csv").read_bytes()
    assert desk.proof("b.csv").read_bytes() == desk.proof("c.csv").read_bytes()


def test_a_ledger_that_may_not_know_all_is_said_and_verifies(desk):
    off.Key.new(desk.key)
    desk.key.with_name("key.ledger.json").unlink()
    values, private, _ = drawn(2)
    for days in (40, 60):
        frame, name = grown(values, private, days), f"{days}.csv"
        with pytest.warns(off.OffrecordWarning, match="without its ledger"):
            release = desk.redact(frame, name, mechanism="window", growing=True)
        said = release.certificate["release"]
        assert (said["composed"], said["other_releases"]) == (None, None)
        assert cli.main(["verify", str(desk.proof(f"{days}.csv"))]) == 0
