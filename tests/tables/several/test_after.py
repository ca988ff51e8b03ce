"""Releases after others (R8): what all of them tell together, against all values and coins."""

import io
import json
import math
import zipfile
import zlib

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import joint_table, leakage_of_table, samples
from offrecord.release.keys import Key
from offrecord.tables.several import remembered
from offrecord.tables.several.laid import earlier_of
from tables.several.conftest import CHAIN, rule_of


def table(values, private):
    """One chain for each row of values; private: (chain, order value) pairs, from 1."""
    count, n = np.shape(values)
    marks = [(chain, t) in private for chain in range(count) for t in range(1, n + 1)]
    return pl.DataFrame(
        {
            "chain": np.repeat(np.arange(count), n),
            "t": np.tile(np.arange(1, n + 1), count),
            "v": np.ravel(values),
            "p": marks,
        }
    )


def rows(release, chain, places):
    """(n, k) redaction probabilities of some records; of those that are not there, 1."""
    rule = rule_of(release)
    return np.array([rule.get((chain, t), [1.0, 1.0]) for t in places])


@pytest.mark.parametrize(
    ("another", "n", "private", "more"),
    [
        ({"epsilon": 0.4, "mechanism": "3r-constant"}, (5, 5), [2], []),
        ({"epsilon": 2.0, "mechanism": "best-local"}, (5, 5), [2], []),
        ({"epsilon": 0.4, "mechanism": "best-local", "dataset": "e"}, (5, 5), [3], []),
        ({"epsilon": 2.0, "mechanism": "3r-constant", "dataset": "e"}, (5, 5), [3], []),
        ({"epsilon": 1.0, "mechanism": "best-local"}, (3, 5), [1], []),
        ({"epsilon": 1.0, "mechanism": "best-local"}, (3, 5), [2], [5]),
        ({"epsilon": 1.0, "mechanism": "3r-constant", "protect": "each"}, (3, 5), [2], [3, 5]),
        ({"epsilon": 0.3, "mechanism": "best-local"}, (4, 3), [2], []),
    ],
)
def test_what_releases_tell_together_is_that_of_all_values_and_coins(
    desk, another, n, private, more
):
    """n: records of the first and of the second release. more: those that become private."""
    values = samples(CHAIN, 1, max(n), np.random.default_rng(5))
    first = {(0, t) for t in private}
    second = {(0, t) for t in (*private, *more)}
    old = desk.redact(table(values[:, : n[0]], first), "a.csv", mechanism="best-local")
    another = {"joint_epsilon": math.inf, "after": desk.proof("a.csv")} | another
    new = desk.redact(table(values[:, : n[1]], second), "b.csv", **another)
    joint = new.certificate["joint"]
    places = range(1, max(n) + 1)
    rules = [rows(one, 0, places) for one in (old, new)]
    shared = another.get("dataset", "d") == "d"
    secrets = [[t] for t in (*private, *more)]
    if another.get("protect", "run") == "run" and more == [3, 5]:
        secrets = [[2], [2, 3], [5]]
    told = max(
        leakage_of_table(joint_table(CHAIN, max(n), rules, secret, shared=shared))
        for secret in secrets
    )
    before = max(
        leakage_of_table(joint_table(CHAIN, max(n), [rules[0]] * 2, secret, shared=True))
        for secret in secrets
    )
    for name, true in (("leakage", told), ("floor", before)):
        said = math.inf if joint[name] == "infinite" else joint[name]
        assert said == pytest.approx(true, abs=1e-9)
        assert said >= true - 1e-12
    assert joint["secrets"] == len(secrets)
    assert new.certificate["release"]["composed"] == (told <= another["epsilon"])


@pytest.mark.parametrize("seed", range(4))
def test_a_release_is_laid_out_again_as_it_was(desk, seed):
    """From certificate, released table and what is kept beside the key: near secrets, missing
    records and values, three labels.
    """
    rng = np.random.default_rng(seed)
    k = 3 if seed == 3 else 2
    kernel = np.full((k, k), 0.1) + np.eye(k) * (1 - 0.1 * k)
    chain = off.MarkovChain(kernel, labels=["a", "b", "c"][:k])
    values = np.array(["a", "b", "c"])[samples(chain, 6, 40, rng)]
    frame = table(values, {(c, t) for c in range(6) for t in range(1, 41) if rng.random() < 0.1})
    empty = pl.Series(rng.random(frame.height) < 0.05) & ~frame["p"]
    frame = frame.with_columns(v=pl.when(empty).then(None).otherwise(pl.col("v")))
    frame = frame.filter(pl.Series(rng.random(frame.height) > 0.05) | frame["p"])
    release = desk.redact(frame, "a.csv", model=chain, mechanism="best-local", epsilon=2.0)
    laid = earlier_of(desk.proof("a.csv"), Key.load(desk.key), chain.labels, "mine").laid
    rule = rule_of(release)
    told = zip(laid.records.iter_rows(), laid.rows.tolist(), strict=True)
    frame = frame.with_columns(given=pl.col("v").is_not_null() | pl.col("p"))
    given = {(row["chain"], row["t"]): row["given"] for row in frame.to_dicts()}
    seen = 0
    for (name, t), row in told:
        expected = rule[int(name), t]
        if not given[int(name), t] and row != expected:
            assert row == [1.0] * k  # without a value, where nothing redacts it
            seen += 1
        else:
            assert row == expected
    assert seen
    assert laid.private.height == frame["p"].sum()


def test_the_same_release_once_more_tells_nothing_more(desk):
    values = samples(CHAIN, 5, 30, np.random.default_rng(1))
    private = {(0, 3), (0, 9), (1, 20), (3, 1)}
    desk.redact(table(values, private), "a.csv", mechanism="best-local")
    again = {"mechanism": "best-local", "after": [desk.proof("a.csv")]}
    joint = desk.redact(table(values, private), "b.csv", **again).certificate["joint"]
    assert joint["leakage"] <= 1.0
    assert joint["leakage"] == joint["floor"]
    assert desk.released("a.csv").equals(desk.released("b.csv"))


@pytest.fixture
def one(desk):
    """A release, and its table."""
    values = samples(CHAIN, 5, 30, np.random.default_rng(1))
    frame = table(values, {(0, 3), (1, 20)})
    desk.redact(frame, "a.csv", mechanism="best-local")
    return frame


def private_too(frame, chain, t):
    return frame.with_columns(p=pl.col("p") | ((pl.col("chain") == chain) & (pl.col("t") == t)))


def test_a_record_that_has_left_cannot_be_taken_back(desk, one):
    late = private_too(one, 2, 5)
    with pytest.raises(off.InputError, match=r"everything about a secret.*nothing can undo"):
        desk.redact(late, "b.csv", after=desk.proof("a.csv"), joint_epsilon=5)
    release = desk.redact(late, "b.csv", after=desk.proof("a.csv"), joint_epsilon=math.inf)
    assert release.certificate["joint"]["floor"] == "infinite"
    assert release.certificate["release"]["composed"] is False
    assert not (desk.folder / "c.csv").exists()


def test_more_than_epsilon_must_be_accepted(desk, one):
    """Other coins for the same records: together they show more."""
    more = {"after": desk.proof("a.csv"), "dataset": "e", "mechanism": "best-local"}
    with pytest.raises(off.InputError, match=r"together would tell 1\.\d+ .* --joint-epsilon 1"):
        desk.redact(one, "b.csv", **more)
    assert not (desk.folder / "b.csv").exists()
    release = desk.redact(one, "b.csv", joint_epsilon=2, **more)
    assert 1.0 < release.certificate["joint"]["leakage"] <= 2
    assert any("which was accepted" in warning for warning in release.summary.warnings)
    assert any("named here" in text for text in release.certificate["assumptions"])


def test_every_release_must_be_named(desk, one):
    more = {"mechanism": "window", "joint_epsilon": 1}
    desk.redact(one, "b.csv", after=desk.proof("a.csv"), epsilon=0.5, **more)
    with pytest.raises(off.InputError, match=r"another release, entered .* that --after does not"):
        desk.redact(one, "c.csv", after=desk.proof("a.csv"), epsilon=0.7, **more)
    both = [desk.proof("a.csv"), desk.proof("b.csv")]
    desk.redact(one, "c.csv", after=both, epsilon=0.7, **more)


def test_who_opts_in_again_says_so(desk, one):
    fewer = one.with_columns(p=pl.col("p") & (pl.col("chain") == 0))
    more = {"after": desk.proof("a.csv"), "mechanism": "window", "joint_epsilon": 3}
    with pytest.raises(off.InputError, match="1 record that a release before kept private"):
        desk.redact(fewer, "b.csv", **more)
    release = desk.redact(fewer, "b.csv", opted_in=True, **more)
    assert release.certificate["joint"]["secrets"] == 1


def test_by_default_a_local_mechanism_is_taken(desk, one):
    release = desk.redact(one, "b.csv", after=desk.proof("a.csv"))
    assert release.summary.mechanism == "best-local"
    assert "not judged together" in release.summary.unserved


def test_owners_releases_are_not_judged_together(desk, one):
    desk.redact(one, "o.csv", dataset="o")
    with pytest.raises(off.InputError, match="only if they are the same, or the table grows"):
        desk.redact(one, "b.csv", after=desk.proof("o.csv"), dataset="o")
    with pytest.raises(off.InputError, match="is not local"):
        desk.redact(one, "b.csv", after=desk.proof("a.csv"), mechanism="owner")


def test_values_that_changed_are_refused(desk, one):
    shown = desk.released("a.csv").filter(pl.col("v").is_not_null())
    chain, t, _ = shown.row(40)
    here = (pl.col("chain") == chain) & (pl.col("t") == t)
    changed = one.with_columns(v=pl.when(here).then(1 - pl.col("v")).otherwise(pl.col("v")))
    with pytest.raises(off.InputError, match="showed another value"):
        desk.redact(changed, "b.csv", after=desk.proof("a.csv"))


def test_what_is_always_redacted_changes_nothing(desk, one):
    """Values that no release may show: whatever they are, the same joint leakage."""
    other = one.with_columns(v=pl.when(pl.col("p")).then(1 - pl.col("v")).otherwise(pl.col("v")))
    more = {"after": desk.proof("a.csv"), "epsilon": 1.0, "mechanism": "window"}
    told = [
        desk.redact(frame, f"{name}.csv", **more).certificate
        for name, frame in (("b", one), ("c", other))
    ]
    assert told[0]["joint"] == told[1]["joint"]
    assert desk.released("b.csv").equals(desk.released("c.csv"))


def spoilt(desk, how):
    """Something wrong with what a release left."""
    proof, released = desk.proof("a.csv"), desk.folder / "a.csv"
    if how == "table":
        released.write_text(released.read_text().replace("\n0,5,0", "\n0,5,1", 1) + "9,9,0\n")
    elif how == "gone":
        released.unlink()
    elif how == "certificate":
        content = json.loads(proof.read_text())
        content["claim"]["leakage"] /= 2
        proof.write_text(json.dumps(content))
    elif how == "forgotten":
        for file in (desk.key.parent / "key.releases").iterdir():
            file.unlink()
    elif how == "damaged":
        for file in (desk.key.parent / "key.releases").iterdir():
            file.write_bytes(file.read_bytes()[:-40])
    elif how == "damaged and packed":
        for file in (desk.key.parent / "key.releases").iterdir():
            file.write_bytes(unpackable(file.read_bytes()))
    elif how == "no certificate":
        proof.write_text("{}")
    return proof


def unpackable(content):
    """Arrays packed, in a file that says so; what is packed is none of it."""
    with np.load(io.BytesIO(content)) as held:
        arrays = {name: np.repeat(held[name], 50, axis=0) for name in held.files}
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    content = bytearray(packed.getvalue())
    for part in zipfile.ZipFile(io.BytesIO(content)).infolist():
        begins = part.header_offset + 30 + len(part.filename) + 20  # of what is extra in its head
        content[begins : begins + 8] = b"\xff" * 8
    with pytest.raises(zlib.error):
        np.load(io.BytesIO(content))["tags"]
    return bytes(content)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("table", "its SHA-256 is another"),
        ("gone", "must lie beside it, as a.csv"),
        ("certificate", "nothing is kept beside the key"),
        ("forgotten", "nothing is kept beside the key"),
        ("damaged", "is damaged"),
        ("damaged and packed", "is damaged"),
        ("no certificate", "not a certificate"),
    ],
)
def test_what_does_not_belong_together_is_refused(desk, one, how, says):
    with pytest.raises(off.InputError, match=says) as raised:
        desk.redact(one, "b.csv", after=spoilt(desk, how))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"order": "row", "step": None}, "--after needs --order"),
        ({"growing": True}, "--after and --growing"),
        ({"another_release": True}, "--after and --another-release"),
        ({"joint_epsilon": -1}, "at least 0"),
        ({"joint_epsilon": math.nan}, "at least 0"),
        ({"by": ["chain", "w"]}, "not named as in this table"),
        ({"after": None, "joint_epsilon": 1}, "is for --after"),
        ({"after": None, "opted_in": True}, "is for --after"),
    ],
)
def test_options_that_do_not_go_together(desk, one, options, says):
    with pytest.raises(off.InputError, match=says):
        desk.redact(one.with_columns(w=1), "b.csv", **({"after": desk.proof("a.csv")} | options))


def test_what_is_kept_reads_the_same_in_wide_numbers(desk, one):
    """As files kept it before numbers were written in as few bytes as hold them."""
    given = {"after": desk.proof("a.csv"), "joint_epsilon": math.inf, "dataset": "e"}
    narrow = desk.redact(one, "b.csv", **given)
    for file in (desk.key.parent / "key.releases").iterdir():
        with np.load(file) as held:
            arrays = {name: held[name] for name in held.files}
        assert arrays["acting"].dtype == np.int8
        wide = {name: arrays[name].astype(np.int64) for name in ("private", "acting")}
        np.savez(file, allow_pickle=False, **(arrays | wide))
    again = desk.redact(one, "c.csv", **given)
    assert again.certificate["joint"] == narrow.certificate["joint"]


@pytest.mark.parametrize("most", [0, 2**7 - 1, 2**7, 2**15, 2**31 - 1, 2**31, 2**62, 2**63 - 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_are_kept_whatever_their_size(most, sign):
    numbers = np.array([[0, 1, sign * most]])
    narrow = remembered._narrowed(numbers)
    assert narrow.dtype.kind == "i"
    wide = remembered._widened(narrow)
    assert wide.dtype == np.int64
    assert np.array_equal(wide, numbers)


def test_another_key_does_not_know(desk, one):
    with pytest.raises(off.InputError, match="nothing is kept beside the key"):
        desk.redact(one, "b.csv", after=desk.proof("a.csv"), key_file=desk.folder / "k2" / "k.json")


def test_streams_refuse(desk, one):
    one.write_csv(desk.folder / "in.csv")
    options = {"value": "v", "order": "t", "by": "chain", "private": "p", "model": CHAIN}
    with pytest.raises(off.InputError, match="leave --stream away"):
        off.redact_file(
            desk.folder / "in.csv",
            desk.folder / "b.csv",
            epsilon=1.0,
            dataset="d",
            key_file=desk.key,
            after=desk.proof("a.csv"),
            **options,
        )
