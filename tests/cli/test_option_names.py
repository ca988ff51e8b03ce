"""Messages name arguments in Python, and flags on the command line."""

import re
from dataclasses import fields
from datetime import date

import polars as pl
import pytest

import offrecord as off
from offrecord import cli
from offrecord.errors import SWITCHES, in_python
from offrecord.tables.options import FileOptions

FITTED = {"model": None, "fit": True, "private": "few"}
#: Options that are wrong, what is said of them in Python, and on the command line.
WRONG = [
    ({"by": None}, "by (a column or several, one chain each), or single_chain=True", "--by (a"),
    ({"order": "row", "step": 1}, 'step needs an order column, not order="row"', "--order row"),
    ({"step": "soon"}, "step must be a whole number", "--step must be"),
    ({"step": "1h"}, 'step="1h" is a time', "--step 1h is a time"),
    ({"step": 9}, "step=9 does not fit column", "--step 9 does not fit column"),
    (
        {"epsilon": -1.0},
        "epsilon must be finite and at least 0",
        "--epsilon must",
    ),
    ({"dataset": " "}, "dataset must be 1 to 200 printable", "--dataset must be"),
    ({"protect": "all"}, 'protect must be "run" or "each"', "--protect must be"),
    ({"mechanism": "best"}, "mechanism must be one of", "--mechanism must be"),
    ({"coverage": 0.5}, "coverage must be 0.99 or 0.95", "--coverage must be"),
    ({"accept": "all"}, "accept takes model, none,", "--accept takes model, none,"),
    ({"private": None}, "give private (a column), private_list (a file)", "give --private (a"),
    ({"model": None}, "give either model or fit=True", "give either --model or --fit"),
    ({"fit": True}, "give either model or fit=True", "give either --model or --fit"),
    ({"exact_model": True, "coverage": 0.95}, "exact_model=True promises", "leave --coverage out"),
    (
        {"phase": "hour"},
        "and merge are for fit=True; a model",
        "and --merge are for --fit;",
    ),
    ({"lag": 3}, "lag is for growing=True", "--lag is for --growing"),
    ({"growing": True}, "growing=True needs order, a column, and step", "--growing needs --order,"),
    ({"keep_all": True}, "keep_all=True is about keep", "--keep-all is about --keep"),
    ({"policy": "p", "mechanism": "window"}, "policy or mechanism, not", "--policy or --mechanism"),
    ({**FITTED, "merge": "few"}, "merge must be rare", "--merge must be rare"),
    ({**FITTED, "bins": [1, 0]}, "bins must rise, got 1,0", "--bins must rise, got 1,0"),
    ({**FITTED, "values": ["0"]}, "values must list 2 to 64", "--values must list 2 to 64"),
    ({**FITTED, "chain_order": 0}, "chain_order must be", "--chain-order must be"),
    ({**FITTED, "fit_distance": 0}, "fit_distance must be", "--fit-distance must be"),
    ({"private": "none"}, 'add accept="none"', "add --accept none"),
]


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """What is right, for a table of two chains."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    chain = off.MarkovChain.binary(0.2, 0.3)
    off.Model(off.KnownChains([chain])).save("model.json")
    who, t = [1] * 12 + [2] * 12, [*range(12)] * 2
    marks = {
        "p": [one == 5 for one in t],
        "few": [one == 5 for one in range(24)],
        "none": [False] * 24,
    }
    frame = pl.DataFrame(
        {"who": who, "t": t, "v": [0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1] * 2, **marks}
    )
    frame.write_parquet("t.parquet")
    asked = {"value": "v", "order": "t", "by": "who", "private": "p", "model": "model.json"}
    return asked | {"epsilon": 1.0, "dataset": "d", "dry_run": True}


def flags(options):
    """Options as words of the command line."""
    for name, value in options.items():
        if value is not None and value is not False:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            yield from [f"--{name.replace('_', '-')}", *([] if value is True else [text])]


@pytest.mark.parametrize(("wrong", "argument", "flag"), WRONG, ids=lambda one: str(one)[:40])
def test_a_message_names_an_option_as_the_caller_writes_it(asked, wrong, argument, flag, capsys):
    with pytest.raises(off.InputError, match=re.escape(argument)) as refused:
        off.redact(pl.read_parquet("t.parquet"), **asked | wrong)
    assert "--" not in str(refused.value)
    assert cli.main(["redact", "t.parquet", *flags(asked | wrong)]) == 2
    *notes, said = capsys.readouterr().err.splitlines()
    assert flag in said
    assert all(": note: " in note for note in notes)


def test_warnings_of_a_release_name_arguments(asked):
    days = pl.lit(date(2026, 1, 1)) + pl.duration(days=pl.col("t") + pl.col("t") // 10)
    frame = pl.read_parquet("t.parquet").with_columns(t=days)
    with pytest.warns(off.OffrecordWarning, match="give step to count time"):
        release = off.redact(frame, **asked)
    assert not any("--" in warning for warning in release.summary.warnings)


def test_switches_are_the_options_that_are_true_or_false():
    assert {one.name for one in fields(FileOptions) if one.type == "bool"} == SWITCHES


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("a cell '--step 1' in /data/--force", "a cell '--step 1' in /data/--force"),
        ("one --step apart", "one step apart"),
        ("such as --bins 0,1.5,3, or", "such as bins=[0, 1.5, 3], or"),
        ("keep --dataset 'two words', as", "keep dataset='two words', as"),
        ("--limit rows=NUMBER allows more", 'limits={"rows": NUMBER} allows more'),
        ("leave --stream out", "use redact instead of redact_file"),
        ("make one with offrecord fit, and give --model", "make one with off.fit, and give model"),
        ("give --encoding latin-1 or cp1252", 'give encoding="latin-1" or cp1252'),
    ],
)
def test_flags_become_arguments(text, python):
    assert in_python(text) == python
