"""Errors are one line and quote no cell, whatever goes wrong."""

import re
import subprocess

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from needles import NEEDLE, NEEDLE_INT, assert_whole_or_absent
from offrecord.errors import InputError
from releasing import COLUMNS, COMMAND, QUICK, bad_input
from twins import KEYS, TEXTS, Extension, model, redacted, table, twins, written

CSV = "id,t,v,p\n" + "".join(
    f"ann,{t},{NEEDLE if t % 2 else 'short'},{str(t == 5).lower()}\n" for t in range(20)
)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            CSV.replace(f"ann,7,{NEEDLE}", f"ann,7,{NEEDLE},{NEEDLE}"),
            "1 row has more or fewer cells .* first row 8",
        ),
        (CSV.replace("id,t,v,p", 'id,t,v,"p'), "no column 'p'|a quoted cell that does not end"),
        (CSV.replace("id,t,v,p\nann,0,short", f"ann,0,{NEEDLE}"), "no column|none of the columns"),
        (CSV.replace("ann,7,", 'ann,7,"'), "a quoted cell that does not end"),
        (CSV.replace("short", "short\xff").encode("latin-1"), "is not in UTF-8"),
        (CSV.replace("ann,7,", f"ann,{NEEDLE},"), "column 't' "),
        (
            CSV.replace("ann,7,", f"ann,{NEEDLE}!,"),
            "column 't' must hold whole numbers, dates or times",
        ),
        (CSV.replace("ann,5,", "ann,4,"), "column 't' must order the records"),
        (
            CSV.replace(f"{NEEDLE},true", f"short,{NEEDLE}"),
            "private column 'p' must hold true and false",
        ),
        (
            CSV.replace(f"ann,19,{NEEDLE}", f"ann,19,{NEEDLE}!"),
            "value column 'v' holds a value the model does not know in 1 row: ",
        ),
    ],
    ids=[
        "ragged",
        "open header",
        "no header",
        "open cell",
        "not utf-8",
        "order",
        "time",
        "repeated",
        "private",
        "unknown",
    ],
)
def test_errors_about_csv_quote_no_cell(desk, content, says):
    content = content.encode() if isinstance(content, str) else content
    assert re.search(says, bad_input(desk, "bad.csv", content))


def test_an_unknown_number_is_not_quoted(desk):
    content = CSV.replace(NEEDLE, "1").replace("short", "0").replace("ann,19,1", f"ann,19,{NEEDLE}")
    assert "does not know in 1 row: id 'ann', t 19 (row 20)" in bad_input(
        desk, "bad.csv", content.encode(), labels=(0, 1)
    )


@pytest.mark.parametrize(
    "line",
    [
        f'{{"id":"ann","t":99,"v":"{NEEDLE}","p":fal',
        f'{{"id":"ann","t":99,"v":"{NEEDLE}',
        f'{{"id":"ann","t":99,"v":{{"{NEEDLE}":1}},"p":false}}',
        f'{{"id":"ann","t":"{NEEDLE}","v":"short","p":false}}',
        f'{{"id":"ann","t":99,"v":"short","p":"{NEEDLE}"}}',
        f'{{"id":"ann","t":99,"v":["{NEEDLE}"],"p":false}}',
        NEEDLE,
    ],
)
def test_errors_about_json_quote_no_cell(desk, line):
    rows = [
        f'{{"id":"ann","t":{t},"v":"{NEEDLE if t % 2 else "short"}","p":{str(t == 5).lower()}}}'
        for t in range(20)
    ]
    bad_input(desk, "bad.ndjson", "\n".join([*rows[:7], line, *rows[7:]]).encode())


@pytest.mark.parametrize(
    "cell", ["2024-13-45", NEEDLE, f"2024-01-01T00:00:00 {NEEDLE}", "2024-01-01T00:00:00Z", ""]
)
def test_errors_about_the_private_list_quote_no_cell(desk, cell):
    times = [f"2024-01-01T{hour:02d}:00:00" for hour in range(20)]
    frame = pl.DataFrame({"id": ["ann"] * 20, "t": times, "v": ["short", NEEDLE] * 10})
    (desk.folder / "list.csv").write_text(f"id,t\nann,{times[3]}\nann,{cell}\n")
    bad_input(desk, "bad.csv", frame, "--private-list", desk.folder / "list.csv")
    # keys are named: they are the publisher's own words
    (desk.folder / "list.csv").write_text(f"id,t\nbob,{times[3]}\n")
    err = bad_input(desk, "bad.csv", frame, "--private-list", desk.folder / "list.csv")
    assert "names 1 record that the table does not have" in err
    assert f"id 'bob', t {times[3]} (row 1)" in err
    (desk.folder / "list.csv").write_text(f'id,"t\nann,{times[3]}\n{NEEDLE},{times[4]}\n')
    bad_input(desk, "bad.csv", frame, "--private-list", desk.folder / "list.csv")


@pytest.mark.parametrize(
    ("type_", "column"),
    [("enum", column) for column in "vtp"]  # an Enum may name chains: there is no error to word
    + [
        (type_, column)
        for type_ in ("struct", "extension", "list")
        for column in ("v", "t", "p", "id")
    ],
)
def test_types_are_not_described_by_their_words(desk, column, type_):
    """The name of a type may list categories, fields or an extension's words: cells, as likely as
    not.
    """
    n = len(KEYS)
    cells = {
        "enum": pl.Series(["x"] * n).cast(pl.Enum(["x", NEEDLE])),
        "struct": pl.Series([{NEEDLE: 1}] * n),
        "extension": pa.ExtensionArray.from_storage(
            Extension(pa.int64(), NEEDLE), pa.array(range(n))
        ),
        "list": pl.Series([["x"]] * n).cast(pl.List(pl.Enum(["x", NEEDLE]))),
    }[type_]
    bad_input(desk, "bad.arrow", table("long text", twins(3)[0], {column: cells}))


def test_a_missing_column_names_no_cells(desk):
    frame = table("long text", twins(3)[0])
    assert "it has id, t, v, p" in bad_input(desk, "bad.parquet", frame, "--keep", "tt")
    content = CSV.replace("id,t,v,p\n", "").encode()
    assert re.search("no column|none of the columns", bad_input(desk, "bad.csv", content))


def test_a_file_cut_short_is_one_line(desk_of_descriptors):
    desk = desk_of_descriptors
    for suffix in (".parquet", ".arrow"):
        whole = written(
            table("long text", twins(3)[0]), desk.folder / f"whole{suffix}"
        ).read_bytes()
        for size in (1, 4, 8, 40, len(whole) // 2, len(whole) - 9, len(whole) - 1):
            bad_input(desk, f"cut{suffix}", whole[:size])


def test_a_panic_of_the_engine_is_one_line(large, tmp_path, capfd):
    """Engines that panic print to the file descriptor of standard error; whatever they say, the
    user sees one line.
    """
    _, options = large
    path = tmp_path / "damaged.parquet"
    frame = table("long text", twins(3)[0]).with_columns(pl.col("t").cast(pl.Int32)).to_arrow()
    pq.write_table(frame, tmp_path / "whole.parquet", compression="none")
    whole = (tmp_path / "whole.parquet").read_bytes()
    for place in range(4, len(whole) // 2, 12):
        path.write_bytes(whole[:place] + bytes(16) + whole[place + 16 :])
        try:
            pl.read_parquet(path)
        except BaseException as error:  # a panic is no Exception
            if type(error).__name__ == "PanicException":
                break
    assert "panicked" in capfd.readouterr().err, (
        "this polars does not panic: find it another file, or drop this test"
    )
    command = [
        COMMAND,
        "redact",
        path,
        *options,
        "--dataset",
        "damaged",
        "-o",
        tmp_path / "out.csv",
    ]
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(r"offrecord: .+\n", ended.stderr), ended.stderr[:500]


@pytest.mark.parametrize(
    "error", [pl.exceptions.PanicException, pl.exceptions.ComputeError, pa.ArrowInvalid, ValueError]
)
def test_an_error_from_anywhere_is_one_line(desk, monkeypatch, error):
    def failing(*_, **__):
        raise error(f"in cell {NEEDLE}")

    monkeypatch.setattr("offrecord.tables.table.arrange", failing)
    given, folder = desk.folder / "in.csv", desk.folder / "out"
    folder.mkdir()
    given.write_text(CSV)
    arguments = [
        "redact",
        given,
        *COLUMNS,
        "--private",
        "p",
        *QUICK,
        *desk.model_options(TEXTS),
        "--dataset",
        desk.dataset,
    ]
    code, out, err = desk.run(folder, *arguments, "--key-file", desk.key, "-o", "out.csv")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"offrecord: .+\n", err)
    assert NEEDLE not in err
    assert list(folder.iterdir()) == []


def test_without_a_standard_error_all_goes_on(large, tmp_path):
    folder, options = large
    command = [
        COMMAND,
        "redact",
        folder / "older.parquet",
        *options,
        "--dataset",
        "older",
        "-o",
        tmp_path / "out.csv",
    ]
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *map(str, command)],
        check=False,
        stdout=subprocess.PIPE,
    )
    assert ended.returncode == 0
    assert b"written: " in ended.stdout
    assert_whole_or_absent(tmp_path / "out.csv")
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *map(str, command)],
        check=False,
        stdout=subprocess.PIPE,
    )
    assert (ended.returncode, ended.stdout) == (2, b"")  # it exists, and there is nowhere to say so


def test_frames_that_cannot_be_converted_are_not_quoted(key):
    frame = table("int64", twins(3)[0]).to_pandas()
    frame["v"] = frame["v"].astype(object)
    frame.loc[3, "v"] = NEEDLE
    with pytest.raises(InputError) as caught:
        redacted(frame, model((0, -5, NEEDLE_INT)), key_file=key, dataset="mixed")
    assert NEEDLE not in str(caught.value)
