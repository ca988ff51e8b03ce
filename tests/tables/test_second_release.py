"""What a second release of the same records tells, and what the ledger knows of it."""

import hashlib
import json

import numpy as np
import polars as pl
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import joint_table, leakage_of_table, output_table
from explained import explained
from offrecord.release.keys import Key
from offrecord.tables.checks import seen

ALONE = {"others": 0, "accepted": False, "why": None}
SECOND = {"others": 1, "accepted": True, "why": None}


def test_no_frame_leaves_before_the_ledger_knows_it(tmp_path):
    frame = pl.DataFrame(
        {"chain": [1, 1, 1], "t": [1, 2, 3], "v": [0, 1, 1], "p": [True, False, False]}
    )
    options = {
        "value": "v",
        "order": "t",
        "by": "chain",
        "private": "p",
        "model": off.MarkovChain.binary(0.1, 0.2),
        "epsilon": 1.0,
    }
    options |= {"dataset": "d", "key_file": tmp_path / "key" / "key.json"}
    release = off.redact(frame, remember=False, **options)
    assert release.frame is None
    ledger = tmp_path / "key" / "key.ledger.json"
    assert json.loads(ledger.read_text())["releases"] == {}
    assert release.certificate["release"]["others"] is None
    release.write(tmp_path / "out.csv")
    assert len(json.loads(ledger.read_text())["releases"]["d"]) == 1
    assert release.certificate["release"] == ALONE
    assert off.redact(frame, **options).frame is not None


def chains_of(values, private=(3,)):
    """Chains of the same length, one a row of values; the same records of each private."""
    count, n = np.shape(values)
    return pl.DataFrame(
        {
            "chain": np.repeat(np.arange(count), n),
            "t": np.tile(np.arange(1, n + 1), count),
            "v": np.ravel(values),
            "p": np.tile(np.isin(np.arange(1, n + 1), private), count),
        }
    )


@pytest.fixture
def again(tmp_path):
    """Releases under one key, of the same records unless another dataset is named."""

    def redact(frame, **options):
        standard = {
            "value": "v",
            "order": "t",
            "by": "chain",
            "private": "p",
            "model": off.MarkovChain.binary(0.1, 0.3),
        }
        standard |= {
            "epsilon": 1.0,
            "dataset": "d",
            "key_file": tmp_path / "key" / "key.json",
            "mechanism": "3r-constant",
        }
        return off.redact(frame, **(standard | options))

    return redact


FIGURE_2 = off.MarkovChain.binary(0.01, 0.8)


def test_two_releases_that_share_their_coins_leak_their_pointwise_minimum(again):
    """By brute force over coins (F3). A table that has grown takes the same rules: as what was not
    there is what was redacted, it adds nothing.
    """
    n = 5
    whole = chains_of([[0] * n], private=[1])

    def rule(frame, epsilon, mechanism):
        found = again(frame, epsilon=epsilon, mechanism=mechanism, model=FIGURE_2, dry_run=True)
        return np.vstack(
            [explained(found).select(pl.col("^Pr.*$")).to_numpy(), np.ones((n - frame.height, 2))]
        )

    another_epsilon = rule(whole, 1.0, "3r-constant"), rule(whole, 1.5, "3r-constant")
    grown = rule(whole.head(4), 1.0, "best-local"), rule(whole, 1.0, "best-local")
    for pair, together, apart in ((another_epsilon, 1.789, 1.888), (grown, 1.0, 1.869)):
        shared = leakage_of_table(joint_table(FIGURE_2, n, pair, [1], shared=True))
        fresh = leakage_of_table(joint_table(FIGURE_2, n, pair, [1], shared=False))
        assert shared == pytest.approx(
            leakage_of_table(output_table(FIGURE_2, n, np.minimum(*pair), [1])), abs=1e-12
        )
        assert (shared, fresh) == (
            pytest.approx(together, abs=1e-3),
            pytest.approx(apart, abs=1e-3),
        )


def test_releases_under_one_name_share_their_coins_and_under_another_do_not(again):
    """So with more redaction, for a smaller ε, nothing is shown that was not shown before; under
    another name it is.
    """
    frame = chains_of(np.zeros((400, 6), dtype=int), private=[1])
    options = {"model": FIGURE_2, "mechanism": "best-local"}
    large, small = (
        again(frame, epsilon=1.0, **options),
        again(frame, epsilon=0.5, accept="another-release", **options),
    )
    rules = [explained(one)["Pr(redacted | 0)"].to_numpy() for one in (large, small)]
    more = rules[1] >= rules[0]
    assert np.any(more & (rules[0] > 0) & (rules[1] < 1))
    renamed = again(frame, epsilon=0.5, dataset="e", **options)
    shown = [one.frame["v"].is_not_null().to_numpy() for one in (large, small, renamed)]
    assert not np.any(shown[1] & ~shown[0] & more)
    assert np.any(shown[2] & ~shown[0] & more)


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 1), min_size=12, max_size=12), min_size=2, max_size=2))
def test_the_ledger_tells_apart_what_leaves_and_nothing_else(tmp_path_factory, rows):
    """Two tables are the same release if and only if the chains that hold a secret leave
    the same.
    """
    options = {
        "value": "v",
        "order": "t",
        "by": "chain",
        "private": "p",
        "model": off.MarkovChain.binary(0.1, 0.3),
    }
    options |= {
        "epsilon": 1.0,
        "dataset": "d",
        "key_file": tmp_path_factory.mktemp("k") / "key.json",  # of its own for every example
        "mechanism": "3r-constant",
    }
    shown = []
    for row in rows:
        table = chains_of([row, row]).with_columns(p=pl.col("p") & (pl.col("chain") == 0))
        release = off.redact(table, accept="another-release", **options)
        shown.append(release.frame.filter(pl.col("chain") == 0))
        is_first = shown[0].equals(shown[-1])
        assert release.certificate["release"] == (ALONE if is_first else SECOND)
    if shown[0].equals(shown[1]):
        off.redact(table, **options)


@pytest.mark.parametrize("order", [pl.Int64, pl.UInt8, pl.Datetime("ms")])
def test_what_the_ledger_remembers_of_what_left_is_what_the_documentation_says(
    again, tmp_path, monkeypatch, order
):
    """docs/coins.md, one record at a time."""
    monkeypatch.setattr(seen, "_STRIP", 5)
    frame = chains_of(np.random.default_rng(2).integers(2, size=(7, 9))).with_columns(
        p=pl.col("p") & (pl.col("chain") != 2),
        v=pl.when(pl.col("t") != 8).then("v"),
        t=pl.col("t").cast(order),
    )
    released = again(frame).frame.with_columns(
        pl.col("t").cast(pl.Int64) * (1 if order.is_integer() else 10**6)
    )
    key = Key.load(tmp_path / "key" / "key.json").secret
    cipher = Cipher(
        algorithms.AES(hashlib.blake2b(key=key, digest_size=32, person=b"offrecord/left").digest()),
        modes.ECB(),
    )
    digest = 0
    for chain in (0, 1, 3, 4, 5, 6):
        total = 0
        for t, value in released.filter(pl.col("chain") == chain).select("t", "v").rows():
            x = t * 0x9E3779B97F4A7C15 + (0 if value is None else value + 1) * 0xD1B54A32D192ED03
            x %= 2**64
            total += (x ^ x >> 32) ** 2
        name = b"".join(
            bytes([kind]) + len(content).to_bytes(8, "little") + content
            for kind, content in ((3, b"d"), (3, b"v"), (1, chain.to_bytes(16, "little")))
        )
        tag = int.from_bytes(
            hashlib.blake2b(name, key=key, digest_size=16, person=b"offrecord/chain").digest(),
            "little",
        )
        block = tag ^ (total % 2**64 | 9 << 64)
        digest ^= int.from_bytes(cipher.encryptor().update(block.to_bytes(16, "little")), "little")
    (entry,) = json.loads((tmp_path / "key" / "key.ledger.json").read_text())["releases"]["d"]
    assert int(entry["set of released values"], 16) == digest


@pytest.mark.parametrize(
    "ones", [(8, 11), (9, 10), (8, 9, 10, 11), (8, 12, 13), (9, 10, 14)]
)  # the same sums of places
def test_ones_elsewhere_are_another_release(again, ones):
    def table(places):
        return chains_of([[int(t in places) for t in range(1, 16)]])

    again(table((8, 11)))
    if ones == (8, 11):
        assert again(table(ones)).certificate["release"] == ALONE
        return
    with pytest.raises(off.InputError, match="another set of released values") as refused:
        again(table(ones))
    assert str(refused.value).index('accept="another-release"') < str(refused.value).index(
        "Another dataset"
    )
    release = again(table(ones), accept="another-release")
    assert release.certificate["release"] == SECOND
    assert [warning for warning in release.summary.warnings if "1 other release;" in warning]


def test_the_certificate_counts_what_others_released_while_it_was_made(again, tmp_path):
    frame = chains_of([[0, 1, 1, 0, 0, 1]])
    slow = again(frame, remember=False, accept="another-release")
    again(frame, epsilon=2.0, accept="another-release")
    warnings = slow.write(tmp_path / "out.csv")[1]
    assert [warning for warning in warnings if "1 other release;" in warning]
    assert slow.certificate["release"] == SECOND
    assert (
        json.loads((tmp_path / "out.csv.certificate.json").read_text())["release"]
        == slow.certificate["release"]
    )
    late = again(frame, remember=False, epsilon=2.0)
    assert slow.write(tmp_path / "out.csv", force=True)[1] == []
    assert late.certificate["release"]["others"] is None


class TestAnotherName:
    """The same records as another data set have other coins: a second look."""

    @pytest.fixture
    def redact(self, tmp_path):
        options = {
            "value": "v", "order": "t", "by": "chain", "private": "p", "epsilon": 1.0,
            "model": off.MarkovChain.binary(0.1, 0.2), "key_file": tmp_path / "drawer" / "key.json",
        }  # fmt: skip

        def released(frame, dataset, **more):
            return off.redact(frame, dataset=dataset, **options | more)

        return released

    def test_is_told(self, redact):
        frame = chains_of([[0, 0, 1, 1, 0, 0], [1, 0, 0, 0, 1, 1]])
        first = redact(frame, "jan")
        assert first.certificate["release"] == ALONE
        told = redact(frame, "february", dry_run=True).summary.warnings
        assert any("were released as data set 'jan' before" in one for one in told)
        # another ε, model, mechanism or value makes it no other record
        turned = frame.with_columns(v=1 - pl.col("v"))
        for name, table, epsilon in (("february", frame, 1.0), ("march", turned, 2.0)):
            with pytest.warns(off.OffrecordWarning, match="released as data set 'jan' before"):
                second = redact(table, name, epsilon=epsilon)
            said = second.certificate["release"]
            assert said["others"] is None
            assert "of other data sets had the very same private records" in said["why"]
        # the first one, made again, is no longer alone either
        with pytest.warns(off.OffrecordWarning, match="as data set 'february' before"):
            again = redact(frame, "jan")
        assert again.frame.equals(first.frame)
        assert again.certificate["release"]["why"].startswith("2 releases of other data sets")

    def test_other_records_and_columns_are_free(self, redact):
        frame = chains_of([[0, 0, 1, 1, 0, 0]])
        for name, other, more in (
            ("jan", frame, {}),
            ("later", frame.with_columns(pl.col("t") + 6), {}),
            ("others", frame.with_columns(pl.col("chain") + 1), {}),
            ("fewer", chains_of([[0, 0, 1, 1, 0, 0]], private=(4,)), {}),
            ("a column", frame.rename({"v": "w"}), {"value": "w"}),
        ):
            assert redact(other, name, **more).certificate["release"] == ALONE
