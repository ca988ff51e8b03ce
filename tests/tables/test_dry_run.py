"""A dry run writes nothing at all, and says what the ledger would say."""

import json

import polars as pl
import pytest

import offrecord as off
from offrecord import cli
from offrecord.tables import choosing
from offrecord.tables.checks.ledger import FORETOLD

CHAIN = off.MarkovChain.binary(0.2, 0.3)
TABLE = pl.DataFrame(
    {"t": range(12), "v": [0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1], "p": [t == 5 for t in range(12)]}
)


@pytest.fixture
def redact(tmp_path):
    def redacted(table=TABLE, **options):
        asked = {"value": "v", "order": "t", "single_chain": True, "private": "p"}
        asked |= {"model": CHAIN, "mechanism": "window", "epsilon": 1.0, "dataset": "d"}
        asked |= {"key_file": tmp_path / "keys" / "key.json"}
        return off.redact(table, **asked | options)

    return redacted


def files(folder):
    return {
        one: one.is_file() and (one.read_bytes(), one.stat().st_mtime_ns)
        for one in folder.rglob("*")
    }


def foretold(release):
    return [one for one in release.summary.warnings if one.startswith(FORETOLD)]


def test_it_writes_no_key_no_ledger_and_no_rules(redact, tmp_path):
    assert foretold(redact(dry_run=True)) == []
    assert list(tmp_path.iterdir()) == []
    redact()
    there = files(tmp_path)
    redact(dry_run=True)
    at_the_end = TABLE.with_columns(p=pl.col("t") == 11)  # which needs other rules
    redact(at_the_end, dry_run=True, dataset="another")
    redact(dry_run=True, epsilon=2.0)
    assert files(tmp_path) == there


def test_it_foretells_what_the_ledger_would_refuse(redact):
    redact()
    assert foretold(redact(dry_run=True)) == []
    changed = {"epsilon": 2.0}
    with pytest.raises(off.InputError, match="another epsilon") as refused:
        redact(**changed)
    assert foretold(redact(dry_run=True, **changed)) == [f"{FORETOLD} {refused.value}"]
    assert foretold(redact(dry_run=True, accept="another-release", **changed)) == []
    assert foretold(redact(dry_run=True, dataset="another", **changed)) == []


def test_what_the_ledger_refuses_is_refused_before_rules_are_designed(redact, monkeypatch):
    redact()
    monkeypatch.setattr(choosing, "design_table", lambda *_, **__: pytest.fail("designed"))
    for changed in ({"epsilon": 2.0}, {"step": 1}):
        with pytest.raises(off.InputError, match="was released before with another"):
            redact(**changed)


def test_it_cannot_tell_that_values_were_corrected(redact):
    """It looks at none."""
    redact()
    corrected = TABLE.with_columns(v=pl.when(pl.col("t") == 11).then(0).otherwise("v"))
    assert foretold(redact(corrected, dry_run=True)) == []
    with pytest.raises(off.InputError, match="another set of released values"):
        redact(corrected)


def test_a_ledger_that_a_release_would_not_take_is_said_too(redact, tmp_path):
    redact()
    ledger = tmp_path / "keys" / "key.ledger.json"
    ledger.write_text("{}")
    (said,) = foretold(redact(dry_run=True))
    assert str(ledger) in said
    assert "format: Field required" in said
    ledger.unlink()
    (tmp_path / "keys" / "key.json").unlink()
    assert foretold(redact(dry_run=True)) == []


def test_the_command_exits_with_2_where_the_ledger_would_refuse(tmp_path, capsys):
    TABLE.write_csv(tmp_path / "t.csv")
    CHAIN.save(tmp_path / "model.json")
    words = ["redact", str(tmp_path / "t.csv"), *["--value", "v", "--order", "t", "--single-chain"]]
    words += [*["--private", "p", "--mechanism", "window", "--dataset", "d", "--model"]]
    words += [str(tmp_path / "model.json"), "--key-file", str(tmp_path / "keys" / "key.json")]
    written = ["-o", str(tmp_path / "o.csv"), "--no-report"]
    assert cli.main([*words, "--epsilon", "1", "--dry-run"]) == 0
    assert cli.main([*words, "--epsilon", "1", *written]) == 0
    assert cli.main([*words, "--epsilon", "1", "--dry-run"]) == 0
    capsys.readouterr()
    assert cli.main([*words, "--epsilon", "2", "--dry-run", "--json"]) == 2
    out, err = capsys.readouterr()
    assert FORETOLD in err
    assert json.loads(out)["epsilon"] == 2
