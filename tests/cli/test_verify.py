"""The verb verify: 0 if a release holds, 1 with reasons if it does not, 2 if it cannot be read."""

import json
import os

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord import cli


@pytest.fixture
def released(tmp_path):
    """A release of a small table, and its list of private records."""
    rng = np.random.default_rng(2)
    table = pl.DataFrame(
        {
            "site": np.repeat(np.arange(30), 20),
            "day": np.tile(np.arange(20), 30),
            "rain": rng.integers(0, 2, 600),
        }
    )
    private = pl.DataFrame({"site": [3, 3, 20], "day": [5, 6, 10]})
    private.write_csv(tmp_path / "optouts.csv")
    table.write_csv(tmp_path / "original.csv")
    release = off.redact(
        table,
        value="rain", order="day", by="site", private_list=private, epsilon=1.0,
        model=off.MarkovChain.binary(0.3, 0.4), mechanism="best-local", dataset="rain",
        key_file=tmp_path / "key" / "key.json", accept="model",
    )  # fmt: skip
    release.write(tmp_path / "out.csv")
    return tmp_path / "out.csv"


def proof_of(file):
    return file.with_name(f"{file.name}.certificate.json")


def test_a_release_is_verified_and_says_what_was_not_checked(released, capsys):
    optouts = str(released.with_name("optouts.csv"))
    given = [str(proof_of(released)), str(released), "--private-list", optouts]
    assert cli.main(["verify", *given]) == 0
    said = capsys.readouterr().out
    assert said.startswith("verified: odds of at most ")
    assert "not checked" in said
    key = str(released.parent / "key" / "key.json")
    assert cli.main(["verify", *given, "--key-file", key, "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["verified"] is True
    assert verdict["problems"] == []
    assert (verdict["epsilon"], verdict["coverage"]) == (1.0, None)
    assert (verdict["drawn"]["chains"], verdict["drawn"]["above"]) == (1, 0)
    assert 0 < verdict["drawn"]["largest"] <= 1.0
    original = str(released.with_name("original.csv"))
    assert cli.main(["verify", *given, "--key-file", key, "--original", original]) == 0
    assert "is that of the original table" in capsys.readouterr().out


def test_what_does_not_hold_is_exit_1_with_reasons(released, capsys):
    certificate = proof_of(released)
    content = json.loads(certificate.read_bytes())
    content["claim"]["epsilon"] = 0.5
    certificate.write_text(json.dumps(content))
    assert cli.main(["verify", str(certificate)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("NOT VERIFIED: ")
    assert "0.5" in said


def test_another_table_is_exit_1(released, capsys):
    text = released.read_text()
    released.write_text(text.replace("\n0,0,", "\n0,0,1" if "\n0,0,0" in text else "\n0,0,0", 1))
    assert cli.main(["verify", str(proof_of(released)), str(released)]) == 1
    assert "NOT VERIFIED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:-200]), "not JSON"),
        (lambda file: file.unlink(), "does not exist"),
        (
            lambda file: file.write_text('{"format": "offrecord-certificate", "version": 99}'),
            "version must be 6",
        ),
        (lambda file: file.write_text("[" * 10_000), ""),
        (lambda file: file.write_text('{"format": NaN}'), ""),
    ],
)
def test_what_cannot_be_read_is_exit_2_and_one_line(released, capsys, change, says):
    change(proof_of(released))
    assert cli.main(["verify", str(proof_of(released))]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert said.err.count("\n") == 1


def test_a_list_without_a_table_is_asked_back(released, capsys):
    optouts = str(released.with_name("optouts.csv"))
    assert cli.main(["verify", str(proof_of(released)), "--private-list", optouts]) == 2
    assert "with the released table" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_what_may_have_no_end_is_not_read(released, capsys):
    """Pipes that nobody writes to, and devices."""
    os.mkfifo(released.parent / "pipe")
    for endless in (released.parent / "pipe", "/dev/zero"):
        for words in ([endless], [f"{released}.certificate.json", endless]):
            assert cli.main(["verify", *map(str, words)]) == 2
            assert capsys.readouterr().err.endswith(f"{endless} is not a file\n")


def test_a_column_of_the_table_says_what_is_private(released, capsys):
    listed = pl.read_csv(released.with_name("optouts.csv")).with_columns(withdrawn=True)
    table = pl.read_csv(released.with_name("original.csv"))
    marked = table.join(listed, on=["site", "day"], how="left").with_columns(
        pl.col("withdrawn").fill_null(False)
    )
    file = str(released.with_name("marked.csv"))
    marked.write_csv(file)
    key = str(released.parent / "key" / "key.json")
    of_verify = ["verify", str(proof_of(released)), str(released), "--key-file", key]
    for verb in (of_verify, ["attack", str(released)]):
        for option in ("--private-list", "--original"):
            assert cli.main([*verb, option, file, "--private", "withdrawn"]) == 0
        assert cli.main([*verb, "--private", "withdrawn"]) == 2
        assert "give that as --private-list" in capsys.readouterr().err


def test_a_list_of_other_records_is_one_reason(released, capsys):
    fewer = released.with_name("fewer.csv")
    pl.read_csv(released.with_name("optouts.csv"))[:1].write_csv(fewer)
    given = [str(proof_of(released)), str(released), "--private-list", str(fewer), "--json"]
    assert cli.main(["verify", *given]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert "names 1 private record of this table, the certificate counts 3" in problem
