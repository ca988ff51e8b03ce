"""Nothing that was given is lost, and nothing that is released mistaken."""

import re
from datetime import timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest

from needles import NEEDLE
from offrecord.errors import InputError
from releasing import COLUMNS, QUICK
from twins import FRAMES, KEYS, MARKED, SUFFIX, TEXTS, model, redacted, table, twins, written


def test_no_output_over_what_was_given(desk):
    """--force overwrites an older output, never the table, the private list or the model."""
    folder = desk.folder / "one"
    folder.mkdir()
    table("long text", twins(3)[0]).drop("p").write_csv(folder / "in.csv")
    pl.DataFrame({"id": ["ann"], "t": [8]}).write_csv(folder / "list.csv")
    model(TEXTS).save(folder / "model.csv")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    command = [
        "redact",
        "in.csv",
        *COLUMNS,
        "--private-list",
        "list.csv",
        *QUICK,
        "--model",
        "model.csv",
    ]
    command += ["--dataset", desk.dataset, "--key-file", desk.key, "--force"]
    for name in ("in.csv", "list.csv", "model.csv"):
        for options in (["-o", name], ["-o", "out.csv", "--certificate", name]):
            code, _, err = desk.run(folder, *command, *options)
            assert {file: (folder / file).read_bytes() for file in before} == before, options
            assert code == 2, options
            assert re.fullmatch(r"offrecord: .+\n", err)


@pytest.mark.parametrize("suffix", SUFFIX.values())
def test_a_name_with_brackets_is_a_name(desk, suffix):
    """Engines take [1] for a pattern, and would read another table."""
    frame = table("long text", twins(3)[0])
    written(frame.head(3), desk.folder / f"table1{suffix}")
    written(frame, desk.folder / f"table[1]{suffix}")
    folder = desk.folder / "one"
    folder.mkdir()
    arguments = [
        "redact",
        desk.folder / f"table[1]{suffix}",
        *COLUMNS,
        "--private",
        "p",
        *QUICK,
        *desk.model_options(TEXTS),
    ]
    code, _, err = desk.run(
        folder, *arguments, "--dataset", desk.dataset, "--key-file", desk.key, "-o", "out.csv"
    )
    assert code == 0, err
    assert len((folder / "out.csv").read_text().splitlines()) == len(KEYS) + 1


def test_a_single_column_keeps_its_rows_in_csv(desk):
    """An empty line is no row for most readers of CSV."""
    folder = desk.folder / "one"
    folder.mkdir()
    table("long text", twins(3)[0]).head(24).select("v", "p").write_csv(desk.folder / "in.csv")
    arguments = [
        "redact",
        desk.folder / "in.csv",
        "--value",
        "v",
        "--order",
        "row",
        "--single-chain",
        "--private",
        "p",
        *QUICK,
    ]
    arguments += [
        *desk.model_options(TEXTS),
        "--dataset",
        "single",
        "--key-file",
        desk.key,
        "-o",
        "out.csv",
    ]
    assert desk.run(folder, *arguments)[0] == 0
    assert len(pd.read_csv(folder / "out.csv")) == 24


def test_large_whole_numbers_are_released_as_they_are(key, desk):
    """2^53 + 1 is a number of its own, in every format and frame."""
    labels = (0, 2**53, 2**53 + 1)
    codes = np.random.default_rng(4).integers(0, 3, len(KEYS))
    codes[40:] = np.arange(len(KEYS) - 40) % 3
    frame = pl.DataFrame(KEYS, schema=["id", "t"], orient="row")
    frame = frame.with_columns(v=pl.Series([labels[code] for code in codes]), p=pl.Series(MARKED))
    expected = dict(zip(KEYS, frame["v"], strict=True))
    for kind in ("polars", "pandas", "pyarrow"):
        release = redacted(FRAMES[kind](frame), model(labels), key_file=key, dataset="whole")
        columns = (release.frame[name] for name in ("id", "t", "v"))
        cells = [
            column.to_pylist() if kind == "pyarrow" else column.to_list() for column in columns
        ]
        for name, t, value in zip(*cells, strict=True):
            assert value is None or value is pd.NA or value == expected[name, t]
    for source in ("csv", "ndjson", "parquet"):
        seen = desk.release(f"as {source}", frame, source, "csv", labels=labels)
        for line in seen["out.csv"].decode().splitlines()[1:]:
            name, t, value = line.split(",")
            assert value == "" or int(value) == expected[name, int(t)]


def test_kept_whole_numbers_stay_what_they_are_in_pandas(key):
    frame = table("truth", twins(2)[0]).to_pandas()
    frame["kept"] = pd.array([2**53 + 1, None] * (len(KEYS) // 2), dtype="Int64")
    release = redacted(
        frame,
        model((False, True)),
        key_file=key,
        dataset="kept numbers",
        keep="kept",
        keep_all=True,
    )
    assert [None if cell is pd.NA else cell for cell in release.frame["kept"]] == [
        2**53 + 1,
        None,
    ] * (len(KEYS) // 2)


def test_values_too_large_for_a_column_are_an_error_in_words(key):
    frame = table("int8", np.random.default_rng(4).integers(0, 2, len(KEYS)))
    for labels in ((0, 5, 300), (0, 5, 2**70)):
        try:
            release = redacted(frame, model(labels), key_file=key, dataset=f"wide {labels[-1]}")
        except InputError as error:
            assert "v" in str(error)  # noqa: PT017
        else:
            assert release.frame["v"].drop_nulls().is_in([0, 5]).all()


@pytest.mark.parametrize(
    ("kind", "target"),
    [("binary", "csv"), ("binary", "ndjson"), ("duration", "csv"), ("list", "csv")],
)
def test_what_a_format_cannot_hold_is_said_in_words(desk_of_descriptors, kind, target):
    desk = desk_of_descriptors
    kept = {
        "binary": pl.Series([NEEDLE.encode()] * len(KEYS)),
        "duration": pl.Series([timedelta(days=1)] * len(KEYS)),
        "list": pl.Series([[NEEDLE]] * len(KEYS)),
    }[kind]
    folder = desk.folder / "one"
    folder.mkdir()
    written(table("long text", twins(3)[0], {"kept": kept}), desk.folder / "in.parquet")
    arguments = [
        "redact",
        desk.folder / "in.parquet",
        *COLUMNS,
        "--private",
        "p",
        *QUICK,
        *desk.model_options(TEXTS),
    ]
    arguments += [
        "--dataset",
        desk.dataset,
        "--key-file",
        desk.key,
        "--keep",
        "kept",
        "-o",
        f"out{SUFFIX[target]}",
    ]
    code, _, err = desk.run(folder, *arguments)
    if code == 0:
        return
    said = [line for line in err.splitlines() if "warning" not in line]
    assert code == 2
    assert len(said) == 1
    assert "'kept'" in said[0]
    assert "disk" not in said[0]
    assert list(folder.iterdir()) == []
