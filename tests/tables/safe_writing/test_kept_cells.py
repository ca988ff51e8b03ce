"""Kept cells tell nothing about what was redacted beside them, and leave where the value does."""

import contextlib
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from needles import NEEDLE, NEEDLES, assert_no_needle, frame_bytes, hash_of, patterns
from offrecord.errors import InputError
from offrecord.tables.engines import stream
from releasing import COLUMNS, QUICK, RefusedError, assert_same
from twins import FRAMES, KEYS, SUFFIX, TEXTS, Extension, certain, model, redacted, table, twins


def hidden_under_nulls(dtype, cells, gone):
    """A column of pyarrow that keeps a cell's bytes under its null."""
    valid = pa.py_buffer(np.packbits(~gone, bitorder="little").tobytes())
    plain = pa.array(cells, dtype)
    return pa.Array.from_buffers(dtype, len(cells), [valid, *plain.buffers()[1:]])


def kept_columns(certain_cell, rows):
    """Columns to keep whose visible cells are the same whatever the certain cell is: it hides in
    every way Arrow has.
    """
    n = len(KEYS)
    gone = np.zeros(n, dtype=bool)
    gone[rows] = True
    text = [certain_cell if hidden else f"kept text number {i}" for i, hidden in enumerate(gone)]
    number = [hash_of(certain_cell) if hidden else i for i, hidden in enumerate(gone)]
    twice = [cell for cell in text for _ in range(2)]
    offsets = pa.py_buffer(np.arange(0, 2 * n + 2, 2, dtype=np.int32).tobytes())
    valid = pa.py_buffer(np.packbits(~gone, bitorder="little").tobytes())
    codes = pa.array([i % 2 for i in range(n)], pa.int32())
    shared = pa.DictionaryArray.from_arrays(codes, pa.array(["short", TEXTS[1], certain_cell]))
    ends = pa.array(range(n + 1), pa.int32())
    return {
        "text": hidden_under_nulls(pa.large_string(), text, gone),
        "number": hidden_under_nulls(pa.int64(), number, gone),
        "list": pa.Array.from_buffers(
            pa.list_(pa.string()), n, [valid, offsets], children=[pa.array(twice)]
        ),
        "struct": pa.StructArray.from_arrays(
            [pa.array(text), pa.array(number)], names=["x", "y"], mask=pa.array(gone)
        ),
        "array": pa.FixedSizeListArray.from_arrays(pa.array(twice), 2, mask=pa.array(gone)),
        "dictionary": shared,
        "list of dictionary": pa.ListArray.from_arrays(ends, shared),
        "struct of dictionary": pa.StructArray.from_arrays([shared], names=["x"]),
        "map of dictionary": pa.MapArray.from_arrays(ends, pa.array(["k"] * n), shared),
    }


@pytest.mark.parametrize("target", ["ipc", "parquet", "ndjson"])
@pytest.mark.parametrize("source", ["ipc", "parquet"])
def test_twins_with_kept_columns_that_hide_the_value(desk, source, target):
    results = []
    for name, codes, cell in (("one", twins(3)[0], NEEDLE), ("two", twins(3)[1], "something else")):
        kept = kept_columns(cell, certain(3))
        frame = table("dictionary", codes, kept)
        results.append(
            desk.release(name, frame, source, target, "--keep", ",".join(kept), labels=TEXTS)
        )
    assert_same(*results)
    for name in (f"out{SUFFIX[target]}",):
        assert_no_needle(desk.folder / "one" / name, [NEEDLE, hash_of(NEEDLE)])


def odd_columns(certain_cell, rows, names=None):
    """Columns to keep in which the rows that are always redacted say something else, in every type
    there is.
    """
    n = len(KEYS)
    gone = np.zeros(n, dtype=bool)
    gone[rows] = True
    text = [
        certain_cell if hidden else f"kept text number {i % 7}" for i, hidden in enumerate(gone)
    ]
    number = [hash_of(certain_cell) if hidden else i % 11 for i, hidden in enumerate(gone)]
    seconds = [number[i] % 10**9 if hidden else 86400 * (i % 5) for i, hidden in enumerate(gone)]
    lists = [[cell] * (3 if hidden else 1) for cell, hidden in zip(text, gone, strict=True)]
    words = sorted(set(text))
    columns = {
        "text": pl.Series(text),
        "number": pl.Series(number),
        "float": pl.Series([float(one) / 4 for one in number]),
        "truth": pl.Series([bool(hidden) and len(certain_cell) > 20 for hidden in gone]),
        "empty": pl.Series(
            [certain_cell if hidden and len(certain_cell) > 20 else None for hidden in gone],
            dtype=pl.String,
        ),
        "date": pl.Series([one // 86400 for one in seconds]).cast(pl.Date),
        "time": pl.Series(seconds).cast(pl.Datetime("ms", "UTC")),
        "duration": pl.Series(seconds).cast(pl.Duration("us")),
        "clock": pl.Series([one % 86400 * 10**9 for one in seconds]).cast(pl.Time),
        "decimal": pl.Series([Decimal(one % 10**6) for one in number], dtype=pl.Decimal(10, 2)),
        "bytes": pl.Series([cell.encode() for cell in text]),
        "category": pl.Series(text, dtype=pl.Categorical),
        "enumeration": pl.Series(text, dtype=pl.Enum(words)),
        "list": pl.Series(lists),
        "list of category": pl.Series(lists).cast(pl.List(pl.Enum(words))),
        "array": pl.Series([[one, -one] for one in number], dtype=pl.Array(pl.Int64, 2)),
        "struct": pl.Series(
            [{"x": cell, "y": one, "z": [cell]} for cell, one in zip(text, number, strict=True)]
        ),
        "structs": pl.Series(
            [[{"x": cell}] * len(some) for cell, some in zip(text, lists, strict=True)]
        ),
    }
    return {name: columns[name] for name in names or columns}


PLAIN = [
    "text",
    "number",
    "float",
    "truth",
    "empty",
    "date",
    "time",
    "clock",
    "decimal",
    "category",
    "enumeration",
]
NESTED = [*PLAIN, "list", "struct", "structs"]
ODD = {"ipc": None, "parquet": None, "csv": PLAIN, "ndjson": NESTED}
NEWER = {"packed csv": PLAIN, "packed ndjson": NESTED}
ROUTES = [
    *((source, target) for source in ODD for target in ODD),
    *(("parquet", target) for target in NEWER),
    *((source, "parquet") for source in NEWER),
]


@pytest.mark.parametrize(("source", "target"), ROUTES)
@pytest.mark.parametrize("engine", ["--in-memory", "--stream"])
def test_twins_that_differ_in_kept_cells_beside_certain_redactions(
    desk, monkeypatch, engine, source, target
):
    """Kept cells of redacted rows leave no trace: not under a null, in a type, among categories, or
    in how long a text is.
    """
    monkeypatch.setattr(stream, "_PART", 30)
    names = [
        name
        for name in odd_columns("", [])
        if all(name in ((ODD | NEWER)[kind] or [name]) for kind in (source, target))
    ]
    results = []
    for name, cell in (("one", NEEDLE), ("two", "else")):
        kept = odd_columns(cell, certain(3), names)
        frame = table("long text", twins(3)[0], kept)
        results.append(
            desk.release(
                name, frame, source, target, "--keep", ",".join(kept), engine, labels=TEXTS
            )
        )
    assert_same(*results)
    assert_no_needle(desk.folder / "one" / f"out{SUFFIX[target]}", NEEDLES)


@pytest.mark.parametrize(
    "cell", ["7.5", '"seven"', "true", '{"seven": 7}', "12345678901234567890123"]
)
def test_the_type_of_a_kept_cell_in_json_does_not_tell_beside_a_redaction(desk, cell):
    """A cell that is a fraction would turn every released 1 into 1.0, and one with a name of its
    own would show the name.
    """
    frame, results = table("long text", twins(3)[0]), []
    for name, certain_cell in (("one", cell), ("two", "7")):
        folder, given = desk.folder / name, desk.folder / f"{name}.ndjson"
        folder.mkdir()
        lines = frame.write_ndjson().splitlines()
        cells = [certain_cell if i in certain(3) else str(i % 5) for i in range(len(lines))]
        given.write_text(
            "".join(
                f'{line[:-1]},"kept":{cell}}}\n' for line, cell in zip(lines, cells, strict=True)
            )
        )
        for how in ("--in-memory", "--stream"):
            out = folder / f"out{how}.ndjson"
            arguments = [
                "redact",
                given,
                *COLUMNS,
                "--private",
                "p",
                *QUICK,
                *desk.model_options(TEXTS),
                "--keep",
                "kept",
                how,
            ]
            code, _, err = desk.run(
                folder, *arguments, "--dataset", desk.dataset, "--key-file", desk.key, "-o", out
            )
            assert code == 0, err
        results.append({file.name: file.read_bytes() for file in folder.iterdir()})
    assert_same(*results)
    assert results[0]["out--in-memory.ndjson"] == results[0]["out--stream.ndjson"]


@pytest.mark.parametrize(
    "backend", ["polars", "polars lazy", "pandas", "pandas with arrow", "pyarrow", "duckdb"]
)
def test_twin_frames_that_differ_in_kept_cells_beside_certain_redactions(key, backend):
    names = [
        name
        for name in odd_columns("", [])
        if "category" not in name and name not in ("enumeration", "array", "clock")
    ]
    names = [name for name in names if backend != "duckdb" or name not in ("duration", "time")]
    names = [
        name
        for name in names
        if "pandas" not in backend or name not in ("list", "struct", "structs", "empty")
    ]
    results = []
    for cell in (NEEDLE, "else"):
        frame = FRAMES[backend](table("truth", twins(2)[0], odd_columns(cell, certain(2), names)))
        release = redacted(
            frame,
            model((False, True)),
            key_file=key,
            dataset=f"kept cells in {backend}",
            keep=names,
        )
        results.append({"frame": frame_bytes(release.frame), "certificate": release.certificate})
    assert_same(*results)
    assert not any(pattern in results[0]["frame"] for pattern in patterns(NEEDLES))


def test_kept_cells_leave_where_the_value_does(key):
    """And where it was missing from the start, unless that record is private."""
    codes = twins(3)[0]
    frame = table("long text", codes, {"kept": [f"{i % 3}" for i in range(len(KEYS))]})
    missing = pl.Series(
        [i in (9, 50, 51) for i in range(len(KEYS))]
    )  # one of them private, as 8 is
    frame = frame.with_columns(v=pl.when(~missing).then("v"))
    release = redacted(frame, model(TEXTS), key_file=key, dataset="leave", keep="kept")
    gone = release.frame["v"].is_null() & (~missing | frame["p"])
    assert 0 < gone.sum() < len(KEYS)
    assert (missing & frame["p"]).sum() == 1
    assert release.frame["kept"].is_null().equals(gone.alias("kept"))
    assert release.frame["kept"].filter(~gone).equals(frame["kept"].filter(~gone))
    assert release.certificate["columns"]["keep_all"] is False
    with pytest.raises(InputError, match="another choice of columns"):
        redacted(frame, model(TEXTS), key_file=key, dataset="leave", keep="kept", keep_all=True)
    every = redacted(
        frame, model(TEXTS), key_file=key, dataset="leave all", keep="kept", keep_all=True
    )
    assert every.frame["kept"].equals(frame["kept"])
    assert every.certificate["columns"]["keep_all"] is True


@pytest.mark.parametrize(
    "dtype",
    [
        "map of enum",
        "map by category",
        "list of enum",
        "extension",
        "struct of extension",
        "extension of dictionary",
    ],
)
@pytest.mark.parametrize("target", ["ipc", "parquet"])
def test_twins_with_kept_columns_of_types_that_carry_words_of_their_own(desk, dtype, target):
    results = []
    for name, codes, word in (("one", twins(3)[0], NEEDLE), ("two", twins(3)[1], "something else")):
        n = len(KEYS)
        if dtype == "map of enum":
            pairs = pa.MapArray.from_arrays(
                pa.array(range(n + 1), pa.int32()), pa.array(["k"] * n), pa.array(["x"] * n)
            )
            kept = pl.from_arrow(pairs).cast(pl.Map(pl.String, pl.Enum(["x", word])))
        elif dtype == "map by category":
            keys = pa.DictionaryArray.from_arrays(
                pa.array([0] * n, pa.int32()), pa.array(["x", word])
            )
            kept = pa.MapArray.from_arrays(
                pa.array(range(n + 1), pa.int32()), keys, pa.array(["x"] * n)
            )
        elif dtype == "list of enum":
            kept = pl.Series([["x"]] * n).cast(pl.List(pl.Enum(["x", word])))
        else:
            storage = pa.array(range(n))
            if dtype == "extension of dictionary":
                storage = pa.DictionaryArray.from_arrays(
                    pa.array([0] * n, pa.int32()), pa.array(["x", word])
                )
            kept = pa.ExtensionArray.from_storage(Extension(storage.type, word), storage)
            if dtype == "struct of extension":
                kept = pa.StructArray.from_arrays([kept], names=["x"])
        frame = table("long text", codes, {"kept": kept})
        source = "ipc" if isinstance(frame, pa.Table) else "parquet"
        if "extension" in dtype or dtype == "map by category":  # may be refused, in words of ours
            with contextlib.suppress(RefusedError):
                results.append(
                    desk.release(name, frame, source, target, "--keep", "kept", labels=TEXTS)
                )
        else:
            results.append(
                desk.release(name, frame, source, target, "--keep", "kept", labels=TEXTS)
            )
    if results:
        assert_same(*results)
        assert_no_needle(desk.folder / "one" / f"out{SUFFIX[target]}", [NEEDLE])


@pytest.mark.parametrize("target", SUFFIX)
@pytest.mark.parametrize("source", ["ipc", "parquet"])
def test_twins_whose_files_say_something_about_themselves(desk, source, target):
    results = []
    for name, codes, word in (("one", twins(3)[0], NEEDLE), ("two", twins(3)[1], "something else")):
        frame = table("long text", codes, {"kept": list(range(len(KEYS)))}).to_pandas()
        frame.attrs["note"] = word
        frame = pa.Table.from_pandas(frame, preserve_index=True)
        fields = [
            field.with_metadata({"note": word, "PARQUET:field_id": "7"}) for field in frame.schema
        ]
        frame = frame.cast(pa.schema(fields, metadata={**frame.schema.metadata, "note": word}))
        results.append(desk.release(name, frame, source, target, "--keep", "kept", labels=TEXTS))
    assert_same(*results)
    assert_no_needle(desk.folder / "one" / f"out{SUFFIX[target]}", [NEEDLE])
    if target == "parquet":
        assert set(pq.read_metadata(desk.folder / "one" / "out.parquet").metadata) <= {
            b"ARROW:schema"
        }
        assert pq.read_schema(desk.folder / "one" / "out.parquet").metadata is None
    if target == "ipc":
        assert pa.ipc.open_file(desk.folder / "one" / "out.arrow").schema.metadata is None


@pytest.mark.parametrize("backend", ["pandas", "pandas with arrow", "pyarrow"])
def test_kept_lists_of_text_come_back(key, backend):
    kept = [["x", "a text longer than 12 bytes"], []] * (len(KEYS) // 2)
    frame = FRAMES[backend](table("truth", twins(2)[0], {"kept": kept}))
    release = redacted(
        frame, model((False, True)), key_file=key, dataset=f"lists in {backend}", keep="kept"
    )
    cells = (
        release.frame["kept"].to_pylist()
        if backend == "pyarrow"
        else release.frame["kept"].tolist()
    )
    shown = [cell is not None for cell in cells]
    values = release.frame["v"]
    assert shown == (
        values.is_valid().to_pylist() if backend == "pyarrow" else values.notna().tolist()
    )
    assert [list(cell) for cell in cells if cell is not None] == [
        cell for cell, there in zip(kept, shown, strict=True) if there
    ]
