"""What leaves as CSV holds nothing that a spreadsheet would run."""

import io
import json

import polars as pl
import pytest

from releasing import COLUMNS, QUICK, bad_input
from twins import KEYS, TEXTS, table, twins, written

FORMULAS = ["=1+1", "+1+1", "-1+cmd", "@SUM(A1)", "\t=1+1", "\r=1+1", "=cmd|' /C calc'!A0"]
HARMLESS = ["-5", "+3.5", "-1e-3", "a=b", "", "plain"]


def test_kept_cells_that_a_spreadsheet_would_run_are_escaped(desk):
    cells = [*FORMULAS, *HARMLESS]
    kept = [cells[i % len(cells)] for i in range(len(KEYS))]
    frame = table(
        "long text", twins(3)[0], {"kept": kept, "category": pl.Series(kept).cast(pl.Categorical)}
    )
    seen = desk.release(
        "one", frame, "parquet", "csv", "--keep", "kept,category", "--keep-all", labels=TEXTS
    )
    read = pl.read_csv(io.BytesIO(seen["out.csv"]), infer_schema=False, empty_string_is_null=False)
    expected = ["'" + cell if cell in FORMULAS else cell for cell in kept]
    order = (
        pl.DataFrame(KEYS, schema=["id", "t"], orient="row")
        .with_row_index()
        .sort("id", "t")["index"]
        .to_list()
    )
    assert read["kept"].fill_null("").to_list() == [expected[i] for i in order]
    assert read["category"].fill_null("").to_list() == [expected[i] for i in order]
    assert seen["stderr"].decode().count("now begin with an apostrophe") == 2
    other = desk.release(
        "two", frame, "parquet", "ndjson", "--keep", "kept,category", "--keep-all", labels=TEXTS
    )
    assert sorted(
        {json.loads(line)["kept"] for line in other["out.ndjson"].splitlines()}
    ) == sorted(set(cells))


@pytest.mark.parametrize("cell", FORMULAS)
def test_chains_and_values_that_a_spreadsheet_would_run_are_refused(desk, cell):
    frame = table("long text", twins(3)[0])
    named = frame.with_columns(id=pl.when(pl.col("id") == "cy").then(pl.lit(cell)).otherwise("id"))
    err = bad_input(desk, "named.parquet", named)
    blank = "has blanks around the name of chains in column 'id', in 24 rows"
    assert (
        blank if cell != cell.strip() else "column 'id' has 24 cells that a spreadsheet would run"
    ) in err
    if not cell.isprintable():
        return  # is no label
    labels = (cell, *TEXTS[1:])
    valued = frame.with_columns(v=pl.col("v").replace("short", cell))
    assert "column 'v' has " in bad_input(desk, "valued.parquet", valued, labels=labels)


def test_an_explanation_is_as_safe_for_spreadsheets(desk):
    frame = table("long text", twins(3)[0]).with_columns(id="=1+1 " + pl.col("id"))
    folder = desk.folder / "one"
    folder.mkdir()
    written(frame, desk.folder / "in.parquet")
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
        "formulas",
        "--key-file",
        desk.key,
        "-o",
        "out.parquet",
    ]
    desk.run(folder, *arguments)


def test_names_of_columns_that_a_spreadsheet_would_run(desk):
    frame = table("long text", twins(3)[0], {"=1+1": [1] * len(KEYS)})
    folder = desk.folder / "one"
    folder.mkdir()
    written(frame, desk.folder / "in.parquet")
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
        "formulas",
        "--key-file",
        desk.key,
        "-o",
        "out.csv",
        "--keep",
        "=1+1",
    ]
    code, _, err = desk.run(folder, *arguments)
    assert code == 2
    assert "would run the name of column '=1+1'" in err
    assert not (folder / "out.csv").exists()
