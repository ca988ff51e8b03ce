"""Releases of growing tables, verified: what waits is empty, and all that has to wait does."""

import hashlib
import json

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples
from offrecord.verify import verify

CHAIN = off.MarkovChain.binary(0.05, 0.3)


@pytest.fixture(params=["window", "best-local", "owner"])
def release(request, tmp_path):
    """A released table of records some of which are missing, its certificate, key and original."""
    rng = np.random.default_rng(3)
    values = samples(CHAIN, 15, 50, rng)
    private = rng.random(values.shape) < 0.04
    private[0, 40:], private[1, 30:] = False, False
    frame = pl.DataFrame(
        {
            "chain": np.repeat(np.arange(15), 50),
            "t": np.tile(np.arange(1, 51), 15),
            "v": values.ravel(),
            "p": private.ravel(),
        }
    )
    frame = frame.filter(pl.Series(rng.random(frame.height) > 0.02) | frame["p"])
    key = tmp_path / "key" / "key.json"
    made = off.redact(
        frame,
        value="v",
        order="t",
        by="chain",
        step=1,
        private="p",
        model=CHAIN,
        epsilon=1.0,
        dataset="d",
        mechanism=request.param,
        growing=True,
        publish_positions=True,
        key_file=key,
        remember=False,
    )
    made.write(tmp_path / "out.csv")
    frame.drop("p").write_csv(tmp_path / "in.csv")
    waits = made.explain().filter(pl.col("region") == "waits")
    return tmp_path, waits


def proof_of(folder):
    return folder / "out.csv.certificate.json"


def changed(folder, change=lambda content: None):
    """The certificate with a change, and the table's own SHA-256."""
    content = json.loads(proof_of(folder).read_text())
    change(content)
    table = (folder / "out.csv").read_bytes()
    content["output"]["sha256"] = hashlib.sha256(table).hexdigest()
    proof_of(folder).write_text(json.dumps(content))


def test_it_is_verified_and_says_what_was_not_checked(release):
    folder, waits = release
    key = {"key_file": folder / "key" / "key.json"}
    for more in ({}, key, key | {"original": folder / "in.csv"}):
        verdict = verify(proof_of(folder), folder / "out.csv", **more)
        assert verdict.problems == []
    assert waits.height
    assert any("rows that have to wait are empty" in one for one in verdict.checked)
    assert any("Earlier releases of the growing table" in one for one in verdict.not_checked)


def test_a_value_that_leaves_too_early_is_found(release):
    folder, waits = release
    chain, t = waits.select("chain", "t").row(waits.height // 2)
    table = (folder / "out.csv").read_text()
    assert f"\n{chain},{t},\n" in table
    (folder / "out.csv").write_text(table.replace(f"\n{chain},{t},\n", f"\n{chain},{t},0\n"))
    changed(folder)
    verdict = verify(proof_of(folder), folder / "out.csv")
    assert any("has to wait" in problem for problem in verdict.problems)


HARMFUL = {
    "a shorter reach": ("reach", -1),
    "a lag below the reach": ("lag", -1),
    "secrets that are taken to be settled too early": ("link", -1),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_a_certificate_that_lets_records_leave_too_early_is_found(release, name):
    folder, _ = release
    field, by = HARMFUL[name]

    def change(content):
        content["growing"][field] += by

    changed(folder, change)
    verdict = verify(proof_of(folder))
    assert any(problem.startswith("growing.") for problem in verdict.problems)


@pytest.mark.parametrize("by", [-1, 1])
def test_another_end_of_the_table_is_found_by_the_table(release, by):
    folder, _ = release

    def change(content):
        content["growing"]["until"] += by

    changed(folder, change)
    assert verify(proof_of(folder)).problems == []  # of the certificate alone nobody can tell
    assert verify(proof_of(folder), folder / "out.csv").problems


def test_a_growing_table_that_is_said_not_to_grow_is_found(release):
    folder, _ = release

    def change(content):
        content["growing"] = None

    changed(folder, change)
    assert any("leave out" in problem for problem in verify(proof_of(folder)).problems)
    assert verify(proof_of(folder), folder / "out.csv").problems
