"""What leaves tells nothing about what was redacted: twins, needles, kills, full disks, errors,
re-releases, spreadsheets.

The attacker has the released file, its certificate, both output streams, the explain file, the
designs file and whatever a killed run left behind.
"""

import base64
import contextlib
import hashlib
import io
import json
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import offrecord as off
from offrecord import cli
from offrecord.errors import InputError
from offrecord.files import beside
from offrecord.release.keys import Key
from offrecord.tables.engines import stream
from offrecord.tables.writing import write_table

COMMAND = str(Path(sys.executable).with_name("offrecord"))
NEEDLE = "NEEDLE-IN-HAYSTACK-0123"
NEEDLE_INT = 0x1EADBEEF123456  # below 2^53
NEEDLE_FLOAT = float.fromhex("0x1.eadbeef123456p+3")
NAMES = ("ann", "bob-has-a-name-of-more-than-12-bytes", "cy", "dee")
LONG = 24
PRIVATE = {
    ("ann", 8),
    ("ann", 9),
    ("bob-has-a-name-of-more-than-12-bytes", 3),
    ("bob-has-a-name-of-more-than-12-bytes", 18),
}
KERNELS = {2: [[0.9, 0.1], [0.3, 0.7]], 3: [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]}
SUFFIX = {"csv": ".csv", "parquet": ".parquet", "ipc": ".arrow", "ndjson": ".ndjson"}
COLUMNS = ("--value", "v", "--order", "t", "--by", "id")
QUICK = ("--epsilon", "1", "--mechanism", "3r-relaxed")


# ---- tables


class Kind(NamedTuple):
    """A type of value column: the model's labels, how cells become a column, and the text formats
    that can hold it.
    """

    labels: tuple[Any, ...]
    column: Any
    texts: tuple[str, ...] = ()


def polars_column(dtype):
    return lambda cells: pl.Series(cells, strict=False).cast(dtype)


def dictionary(cells):
    return pa.array(cells).dictionary_encode()


TEXTS = ("short", "another text, longer than 12 bytes", NEEDLE)
BOTH = ("csv", "ndjson")
KINDS = {
    "int8": Kind((0, 5, 100), polars_column(pl.Int8)),
    "uint8": Kind((0, 5, 200), polars_column(pl.UInt8)),
    "int16": Kind((0, -5, 30_000), polars_column(pl.Int16)),
    "int32": Kind((0, -5, 0x7EADBEEF), polars_column(pl.Int32)),
    "int64": Kind((0, -5, NEEDLE_INT), polars_column(pl.Int64), BOTH),
    "uint64": Kind((0, 5, NEEDLE_INT), polars_column(pl.UInt64)),
    "float32": Kind((0.5, -1.25, 7.625), polars_column(pl.Float32)),
    "float64": Kind((0.1, -2.5, NEEDLE_FLOAT), polars_column(pl.Float64), BOTH),
    "whole and broken": Kind((0, 1, 0.5), polars_column(pl.Float64), BOTH),
    "truth": Kind((False, True), polars_column(pl.Boolean), BOTH),
    "text": Kind(("a", "b", "c"), polars_column(pl.String), BOTH),
    "long text": Kind(TEXTS, polars_column(pl.String), BOTH),
    "categorical": Kind(TEXTS, polars_column(pl.Categorical)),
    "enum": Kind(TEXTS, polars_column(pl.Enum(TEXTS))),
    "dictionary": Kind(TEXTS, dictionary),
    "dictionary of numbers": Kind((0, -5, NEEDLE_INT), dictionary),
    "date": Kind(
        ("2020-01-01", "2020-01-02", "2021-12-24"),
        lambda cells: pl.Series([date.fromisoformat(cell) for cell in cells]),
    ),
    "decimal": Kind(
        (0.5, 1.25, 1234.5),
        lambda cells: pl.Series([Decimal(cell) for cell in cells], dtype=pl.Decimal(10, 3)),
    ),
}
KEYS = [(name, t) for name in NAMES for t in range(LONG)]
MARKED = [key in PRIVATE for key in KEYS]


def model(labels):
    return off.MarkovChain(KERNELS[len(labels)], labels=labels)


@cache
def certain(k):
    """The rows that are redacted whatever their values: private ones, and their neighbours in
    region L.
    """
    frame = pl.DataFrame(KEYS, schema=["id", "t"], orient="row").with_columns(
        v=pl.lit("0"), p=pl.Series(MARKED)
    )
    chain = model([str(i) for i in range(k)])
    release = redacted(frame, chain, dry_run=True, key_file="no-key-is-needed")
    regions = np.array(release.explain()["region"])
    assert (regions == "L").sum() >= 4
    assert (regions == "S").sum() >= 4
    return np.flatnonzero((regions == "private") | (regions == "L"))


def redacted(frame, chain, **options):
    given = dict(
        value="v",
        order="t",
        by="id",
        private="p",
        epsilon=1.0,
        dataset="twins",
        mechanism="3r-relaxed",
    )
    return off.redact(frame, **(given | {"model": chain} | options))


@cache
def twins(k):
    """Two lists of codes that differ in every certain row and nowhere else; the last code stands in
    certain rows only.
    """
    codes = np.random.default_rng(7).integers(0, max(k - 1, 2), len(KEYS))
    one, other = codes.copy(), codes.copy()
    one[certain(k)] = k - 1
    other[certain(k)] = np.arange(len(certain(k))) % max(k - 1, 1)
    assert (one != other).sum() == len(certain(k))
    return one, other


def table(kind, codes, extra=None):
    """As a polars frame, or one of pyarrow if some column is."""
    column = KINDS[kind].column([KINDS[kind].labels[code] for code in codes])
    columns = {
        "id": [key[0] for key in KEYS],
        "t": [key[1] for key in KEYS],
        "v": column,
        "p": MARKED,
        **(extra or {}),
    }
    if any(isinstance(column, pa.Array) for column in columns.values()):
        return pa.table(
            {
                name: cells.to_arrow() if isinstance(cells, pl.Series) else cells
                for name, cells in columns.items()
            }
        )
    return pl.DataFrame(columns)


def written(frame, path, rows=None):
    """Write a table as whoever made it would."""
    if rows is not None:
        frame = frame[rows] if isinstance(frame, pl.DataFrame) else frame.take(rows)
    if isinstance(frame, pa.Table):
        if path.suffix == ".parquet":
            pq.write_table(frame, path)
        else:
            with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, frame.schema) as writer:
                writer.write_table(frame)
        return path
    {
        ".csv": frame.write_csv,
        ".parquet": frame.write_parquet,
        ".arrow": frame.write_ipc,
        ".ndjson": frame.write_ndjson,
    }[path.suffix](path)
    return path


# ---- running


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return Key.new(tmp_path_factory.mktemp("keys") / "key.json").file


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Models and their designs, made once."""
    return tmp_path_factory.mktemp("store")


class RefusedError(Exception):
    """A column that cannot be kept."""


class Desk:
    """Runs releases, each in a folder of its own."""

    def __init__(self, folder, key, store, capsys, monkeypatch):
        self.folder, self.key, self.store, self.capsys, self.monkeypatch = (
            folder,
            key,
            store,
            capsys,
            monkeypatch,
        )
        self.dataset = folder.name

    def model_options(self, labels):
        name = hashlib.sha256(repr(labels).encode()).hexdigest()[:12]
        file = self.store / f"{name}.model.json"
        if not file.exists():
            model(labels).save(file)
        return ["--model", file, "--designs", self.store / f"{name}.designs.json"]

    def run(self, folder, *arguments):
        """Exit code, standard output and standard error, times apart."""
        self.monkeypatch.chdir(folder)
        self.capsys.readouterr()
        code = cli.main([str(argument) for argument in arguments])
        out, err = self.capsys.readouterr()
        return code, re.sub(r"(?m)^time .*$|\"seconds\": [\d.e-]+", "", out), err

    def release(
        self,
        name,
        frame,
        source,
        target,
        *options,
        rows=None,
        fit=False,
        labels=None,
        private=("--private", "p"),
    ):
        """Everything an attacker may see of one release: files by name, and both streams."""
        folder = self.folder / name
        folder.mkdir()
        given = self.folder / f"{name} input"
        given.mkdir()
        path = written(frame, given / f"table{SUFFIX[source]}", rows)
        how = ["--fit"] if fit else self.model_options(labels)
        out = f"out{SUFFIX[target]}"
        arguments = ["redact", path, *COLUMNS, *private, *QUICK, *how, "--dataset", self.dataset]
        arguments += ["--key-file", self.key, "-o", out]
        code, stdout, stderr = self.run(
            folder, *arguments, "--explain", f"explain{SUFFIX[target]}", *options
        )
        if (
            code == 2
            and re.search(r"offrecord: column '\w+' cannot be kept: .+\n$", stderr)
            and NEEDLE not in stderr
        ):
            raise RefusedError
        assert code == 0, stderr
        seen = {file.name: file.read_bytes() for file in folder.iterdir()}
        assert set(seen) >= {out, f"{out}.certificate.json", f"explain{SUFFIX[target]}"}
        return seen | {"stdout": stdout.encode(), "stderr": stderr.replace(str(given), "").encode()}


@pytest.fixture
def desk(tmp_path, key, store, capsys, monkeypatch):
    return Desk(tmp_path, key, store, capsys, monkeypatch)


@pytest.fixture
def desk_of_descriptors(tmp_path, key, store, capfd, monkeypatch):
    """A desk that sees what native code writes to the descriptors, too."""
    return Desk(tmp_path, key, store, capfd, monkeypatch)


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name] == other[name], f"{name} tells the twins apart"


# ---- twins


def routes():
    for name, kind in KINDS.items():
        for source in ("parquet", "ipc", *kind.texts):
            yield name, source, source
    for name in ("int64", "long text"):
        for source in SUFFIX:
            for target in SUFFIX:
                if source != target:
                    yield name, source, target


@pytest.mark.parametrize(("kind", "source", "target"), list(routes()))
def test_twins_that_differ_in_certain_redactions_leave_the_same_bytes(desk, kind, source, target):
    labels = KINDS[kind].labels
    one, other = twins(len(labels))
    left = desk.release("one", table(kind, one), source, target, labels=labels)
    right = desk.release("two", table(kind, other), source, target, labels=labels)
    assert_same(left, right)


@pytest.mark.parametrize(
    ("kind", "source"),
    [("int64", "csv"), ("enum", "ipc"), ("dictionary", "parquet"), ("truth", "ndjson")],
)
def test_twins_in_another_order_of_rows(desk, kind, source):
    labels = KINDS[kind].labels
    one, other = twins(len(labels))
    rows = np.random.default_rng(1).permutation(len(KEYS))
    left = desk.release("one", table(kind, one), source, source, labels=labels)
    right = desk.release("two", table(kind, other), source, source, labels=labels, rows=rows)
    assert_same(left, right)


@pytest.mark.parametrize(
    "options", [["--json"], ["--publish-positions"], ["--protect", "each", "--step", "1"]]
)
def test_twins_with_other_options(desk, options):
    labels = KINDS["long text"].labels
    one, other = twins(3)
    results = [
        desk.release(
            name,
            table("long text", codes),
            "csv",
            "csv",
            *options,
            "--designs",
            "designs.json",
            labels=labels,
        )
        for name, codes in (("one", one), ("two", other))
    ]
    assert_same(*results)
    assert "designs.json" in results[0]


@pytest.mark.parametrize("source", SUFFIX)
@pytest.mark.parametrize("kind", ["int64", "long text"])
def test_twins_whose_model_is_learned_from_the_other_chains(desk, kind, source):
    labels = KINDS[kind].labels
    codes = np.random.default_rng(3).choice(3, len(KEYS), p=[0.5, 0.3, 0.2])
    one, other = codes.copy(), codes.copy()
    for place in [place for place, key in enumerate(KEYS) if key in PRIVATE]:
        one[place], other[place] = 2, place % 2
    left = desk.release(
        "one", table(kind, one), source, source, "--designs", "designs.json", fit=True
    )
    right = desk.release(
        "two", table(kind, other), source, source, "--designs", "designs.json", fit=True
    )
    assert_same(left, right)
    assert json.loads(left[f"out{SUFFIX[source]}.certificate.json"])["model"]["labels"] == sorted(
        labels
    )


def test_twins_of_fit(desk):
    """A model that is learned beside private records is learned from other chains alone."""
    codes = np.random.default_rng(3).choice(3, len(KEYS), p=[0.5, 0.3, 0.2])
    others = np.random.default_rng(4).choice(3, len(KEYS))
    held = np.array([key[0] in {name for name, _ in PRIVATE} for key in KEYS])
    results = []
    for name, cells in (("one", codes), ("two", np.where(held, others, codes))):
        folder = desk.folder / name
        folder.mkdir()
        written(table("long text", cells), desk.folder / f"{name}.csv")
        code, out, err = desk.run(
            folder,
            "fit",
            desk.folder / f"{name}.csv",
            *COLUMNS,
            "--private",
            "p",
            "-o",
            "model.json",
        )
        assert code == 0, err
        results.append(
            {"model": (folder / "model.json").read_bytes(), "stdout": out, "stderr": err}
        )
    assert_same(*results)


def test_a_dry_run_is_no_second_look():
    """With new coins at every run, the figures of many dry runs would give away what a release
    redacts.
    """
    n = 6_000
    frame = pl.DataFrame(
        {"id": np.arange(n) // 30, "t": np.arange(n) % 30, "p": np.arange(n) % 30 == 15}
    )
    values = np.random.default_rng(8).integers(0, 2, n)
    seen = set()
    for cells in (values, values, 1 - values):
        release = redacted(
            frame.with_columns(v=pl.Series(cells)),
            model((0, 1)),
            dataset="dry",
            dry_run=True,
            key_file="no-key-is-needed",
        )
        seen.add(
            json.dumps(
                {
                    name: value
                    for name, value in release.summary.to_dict().items()
                    if name != "seconds"
                }
            )
        )
    assert release.summary.regions["M"] > 100
    assert len(seen) == 1


@pytest.mark.parametrize("how", ["model", "fit"])
def test_how_a_private_number_was_written_does_not_show_in_json(desk, how):
    """1.0 in a private record must not turn every released 1 into 1.0."""
    codes = np.random.default_rng(3).integers(0, 2, len(KEYS))
    results = []
    for name, cell in (("one", "1"), ("two", "1.0")):
        lines = [
            f'{{"id":"{key[0]}","t":{key[1]},"v":{cell if key in PRIVATE else code},'
            f'"p":{str(key in PRIVATE).lower()}}}'
            for key, code in zip(KEYS, codes, strict=True)
        ]
        folder, given = desk.folder / name, desk.folder / f"{name}.ndjson"
        folder.mkdir()
        given.write_text("\n".join(lines) + "\n")
        options = ["--fit"] if how == "fit" else desk.model_options((0, 1))
        arguments = [
            "redact",
            given,
            *COLUMNS,
            "--private",
            "p",
            *QUICK,
            *options,
            "--dataset",
            f"written {how}",
        ]
        code, out, err = desk.run(folder, *arguments, "--key-file", desk.key, "-o", "out.ndjson")
        assert code == 0, err
        results.append(
            {file.name: file.read_bytes() for file in folder.iterdir()}
            | {"stdout": out, "stderr": err}
        )
    assert_same(*results)


def test_twins_by_a_list_of_times_with_gaps(desk):
    times = [
        f"2024-05-{1 + t // 24:02d}T{t % 24:02d}:00:00Z" for t in range(60) if t not in (20, 21, 40)
    ]
    results = []
    for name, cell in (("one", NEEDLE), ("two", "short")):
        folder = desk.folder / name
        folder.mkdir()
        cells = ["short" if i % 3 else TEXTS[1] for i in range(len(times))]
        for hidden in (18, 19, 20):  # hour 18 and 19, and 22 after the gap
            cells[hidden] = cell
        pl.DataFrame({"t": times, "v": cells}).write_csv(desk.folder / f"{name}.csv")
        pl.DataFrame({"t": [times[18], times[19], "2024-05-01T20:00:00Z", times[20]]}).write_csv(
            desk.folder / "list.csv"
        )
        arguments = [
            "redact",
            desk.folder / f"{name}.csv",
            "--value",
            "v",
            "--order",
            "t",
            "--single-chain",
            "--step",
            "1h",
        ]
        arguments += [
            "--private-list",
            desk.folder / "list.csv",
            *QUICK,
            *desk.model_options(TEXTS),
            "--dataset",
            "hours",
        ]
        code, out, err = desk.run(
            folder, *arguments, "--key-file", desk.key, "-o", "out.csv", "--explain", "explain.csv"
        )
        assert code == 0, err
        results.append(
            {file.name: file.read_bytes() for file in folder.iterdir()}
            | {"stdout": out, "stderr": err}
        )
    assert_same(*results)
    assert NEEDLE.encode() not in results[0]["out.csv"]


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


def hash_of(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")


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
ODD = {"ipc": None, "parquet": None, "csv": PLAIN, "ndjson": [*PLAIN, "list", "struct", "structs"]}
NEEDLES = [NEEDLE, hash_of(NEEDLE), hash_of(NEEDLE) / 4]


@pytest.mark.parametrize("target", SUFFIX)
@pytest.mark.parametrize("source", SUFFIX)
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
        if all(name in (ODD[kind] or [name]) for kind in (source, target))
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
            kept = pa.ExtensionArray.from_storage(_Extension(storage.type, word), storage)
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


class _Extension(pa.ExtensionType):
    """A type of one's own, with words of one's own."""

    def __init__(self, storage, word):
        self.word = word
        super().__init__(storage, "test.extension")

    def __arrow_ext_serialize__(self):
        return self.word.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, word):
        return cls(storage, word.decode())


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


def frame_bytes(frame):
    """All bytes a released frame holds, whatever kind it is of."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        newest, oldest = io.BytesIO(), io.BytesIO()
        frame.write_ipc(newest)
        frame.write_ipc(oldest, compat_level=pl.CompatLevel.oldest())
        return newest.getvalue() + oldest.getvalue() + pickle.dumps(frame)
    if isinstance(frame, pd.DataFrame):
        masked = [frame[name].array for name in frame if hasattr(frame[name].array, "_mask")]
        under = b"".join(column._data.tobytes() + column._mask.tobytes() for column in masked)
        return under + buffers(pa.Table.from_pandas(frame)) + repr(frame.attrs).encode()
    if isinstance(frame, pa.Table):
        return repr(frame.schema.metadata).encode() + buffers(frame)
    return repr(frame.fetchall()).encode()


def buffers(frame):
    """The bytes of all buffers of a table of pyarrow, dictionaries and what stands under nulls
    included.
    """
    found = []

    def collect(array):
        found.extend(part.to_pybytes() for part in array.buffers() if part is not None)
        if isinstance(array, pa.ExtensionArray):
            collect(array.storage)
        if isinstance(array, pa.DictionaryArray):
            collect(array.dictionary)
        if isinstance(array, pa.StructArray):
            for i in range(array.type.num_fields):
                collect(array.field(i))
        if isinstance(array, (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray)):
            collect(array.values)

    for column in frame.columns:
        for chunk in column.chunks:
            collect(chunk)
    return b"".join(found)


FRAMES = {
    "polars": lambda frame: frame,
    "polars lazy": lambda frame: frame.lazy(),
    "pandas": lambda frame: frame.to_pandas(),
    "pandas with arrow": lambda frame: frame.to_pandas(use_pyarrow_extension_array=True),
    "pyarrow": lambda frame: frame.to_arrow(),
    "duckdb": lambda frame: _relation(frame),
}


def _relation(frame):
    import duckdb

    return duckdb.from_arrow(frame.to_arrow())


@pytest.mark.parametrize("backend", FRAMES)
@pytest.mark.parametrize(
    "kind", ["int64", "float64", "truth", "text", "long text", "categorical", "enum"]
)
def test_twin_frames(key, tmp_path, kind, backend):
    if backend == "duckdb" and kind in ("categorical", "enum"):
        pytest.skip("DuckDB has its own enumerations")
    labels = KINDS[kind].labels
    results = []
    for codes in twins(len(labels)):
        frame = FRAMES[backend](table(kind, codes, {"kept": ["x", None] * (len(KEYS) // 2)}))
        release = redacted(
            frame, model(labels), key_file=key, dataset=f"{kind} in {backend}", keep="kept"
        )
        path = tmp_path / f"{len(results)}.parquet"
        release.write(path)
        summary = {
            name: value for name, value in release.summary.to_dict().items() if name != "seconds"
        }
        results.append(
            {
                "frame": frame_bytes(release.frame),
                "certificate": release.certificate,
                "summary": summary,
                "explain": frame_bytes(release.explain()),
                "file": path.read_bytes(),
                "repr": (
                    ""
                    if backend in ("duckdb", "polars lazy")
                    else re.sub(r"seconds=[\d.e-]+", "", repr(release))
                ),
            }
        )
    assert_same(*results)


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


@pytest.mark.parametrize("kind", ["long text", "categorical", "enum"])
def test_twin_frames_whose_columns_share_memory(key, kind):
    """Chain names and values cut from one text, or that are categories of one set, share buffers in
    polars.
    """
    results = []
    for codes in twins(3):
        # few rows: polars tidies up memory of which much is wasted
        frame = (
            table("long text", codes)
            .head(LONG)
            .with_columns(id="a name longer than twelve bytes: " + pl.col("id"))
        )
        if kind == "long text":
            both = frame.with_columns(both=pl.concat_str("id", "v", separator="|"))
            size = len(frame["id"][0])
            frame = both.with_columns(
                id=pl.col("both").str.slice(0, size), v=pl.col("both").str.slice(size + 1)
            ).drop("both")
        elif kind == "categorical":
            own = pl.Categorical(pl.Categories(f"shared-{len(results)}"))
            frame = frame.with_columns(pl.col("v").cast(own), pl.col("id").cast(own))
        else:
            words = [
                *frame["id"].unique(maintain_order=True),
                "short",
                TEXTS[1],
                *([NEEDLE] if not results else []),
            ]
            frame = frame.with_columns(pl.col("id", "v").cast(pl.Enum(words)))
        frame = frame.with_columns(kept=pl.col("id"))
        release = redacted(frame, model(TEXTS), key_file=key, dataset=f"shared {kind}", keep="kept")
        results.append(
            {name: frame_bytes(release.frame.select(name)) for name in release.frame.columns}
        )
    assert_same(*results)
    for name in ("id", "t", "kept"):
        assert NEEDLE.encode() not in results[0][name]


# ---- needles


def zstd_frames(content):
    """What every compressed stretch of a file holds: pages of Parquet, buffers of Arrow IPC."""
    for found in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), content):
        stream = pa.CompressedInputStream(pa.BufferReader(content[found.start() :]), "zstd")
        plain = bytearray()
        try:
            while piece := stream.read(1):
                plain += piece
        except (OSError, pa.ArrowException):
            pass  # what follows the frame is none
        yield bytes(plain)


def patterns(needles):
    for needle in needles:
        if isinstance(needle, str):
            yield needle.encode()
            yield from (
                base64.b64encode(b"..."[:shift] + needle.encode())[4:-4] for shift in range(3)
            )
        elif isinstance(needle, float):
            yield np.float64(needle).tobytes()
            yield repr(needle).encode()
        else:
            yield from (
                needle.to_bytes(8, "little"),
                needle.to_bytes(8, "big"),
                str(needle).encode(),
            )


def assert_no_needle(path, needles, *, columns=None):
    """No needle in a table file: not in its bytes, raw or unpacked, its buffers, dictionaries,
    statistics or metadata.
    """
    content = path.read_bytes()
    parts = {"the file": content}
    parts |= {f"compressed stretch {i}": part for i, part in enumerate(zstd_frames(content))}
    if path.suffix == ".arrow":
        assert len(parts) > 1
        parts["buffers"] = buffers(pa.ipc.open_file(path).read_all())
    elif path.suffix == ".parquet":
        assert len(parts) > 1
        texts = [
            field.name for field in pq.read_schema(path) if pa.types.is_large_string(field.type)
        ]
        parts["buffers"] = buffers(pq.read_table(path, read_dictionary=texts))
        metadata = pq.read_metadata(path)
        parts["metadata"] = b"".join(
            base64.b64decode(value) for value in (metadata.metadata or {}).values()
        )
        for group in range(metadata.num_row_groups):
            for column in range(metadata.num_columns):
                statistics = metadata.row_group(group).column(column).statistics
                if statistics is not None and statistics.has_min_max:
                    assert statistics.min not in needles
                    assert statistics.max not in needles
    for name, part in parts.items():
        for pattern in patterns(needles):
            assert pattern not in part, f"{pattern} is in {name} of {path.name}"


@pytest.mark.parametrize("first", [False, True], ids=["last label", "first label"])
@pytest.mark.parametrize("target", SUFFIX)
@pytest.mark.parametrize(
    "kind", ["int64", "uint64", "float64", "long text", "categorical", "enum", "dictionary"]
)
def test_no_needle_in_any_file(desk, kind, target, first):
    """A value that only private records have, though the model knows it, is nowhere in the table,
    as text, number or bytes.
    """
    labels = KINDS[kind].labels
    needle = labels[-1]
    codes = twins(3)[0]
    if first:
        labels = (labels[2], labels[0], labels[1])
    desk.release("one", table(kind, codes), "parquet", target, labels=labels)
    assert_no_needle(desk.folder / "one" / f"out{SUFFIX[target]}", [needle])
    explained = desk.folder / "one" / f"explain{SUFFIX[target]}"
    if target == "csv":  # the model's labels are in its header
        assert not any(
            pattern in explained.read_bytes().split(b"\n", 1)[1] for pattern in patterns([needle])
        )
    elif target != "ndjson":
        read = pl.read_parquet(explained) if target == "parquet" else pl.read_ipc(explained)
        assert NEEDLE not in [cell for column in read.get_columns() for cell in column.to_list()]


def test_the_needle_scan_finds_needles(desk, tmp_path):
    """The scan itself: it finds a needle in a table that holds one."""
    codes = twins(3)[0]
    for kind in ("int64", "float64", "long text"):
        for suffix in SUFFIX.values():
            path = tmp_path / f"{kind}{suffix}"
            frame = table(kind, codes)
            (
                frame.write_ipc(path, compression="zstd")
                if suffix == ".arrow"
                else written(frame, path)
            )
            with pytest.raises(AssertionError):
                assert_no_needle(path, [KINDS[kind].labels[-1]])


# ---- kills


#: Private records that alone say NEEDLE were chosen by their value, and that is said: to who runs
#: it, in no file.
CHOSEN = r"(offrecord: warning: private records have other values .+\n)?"


@pytest.fixture(scope="module")
def large(tmp_path_factory, key):
    """200,000 rows whose private records alone say NEEDLE, and the options to redact them; caches
    warm, designs made.
    """
    folder = tmp_path_factory.mktemp("large")
    chains, each = 4_000, 50
    rng = np.random.default_rng(5)
    private = rng.random(chains * each) < 0.01
    values = np.where(
        private, NEEDLE, np.where(rng.random(chains * each) < 0.5, TEXTS[0], TEXTS[1])
    )
    frame = pl.DataFrame(
        {
            "id": np.repeat(np.arange(chains), each),
            "t": np.tile(np.arange(each), chains),
            "v": values,
            "p": private,
        }
    )
    frame.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(
        folder / "large.parquet", row_group_size=20_000
    )
    frame.head(2_000).write_parquet(folder / "older.parquet")
    model(TEXTS).save(folder / "model.json")
    options = [
        *COLUMNS,
        "--private",
        "p",
        "--epsilon",
        "1",
        "--mechanism",
        "window",
        "--model",
        folder / "model.json",
    ]
    options += ["--designs", folder / "designs.json", "--key-file", key, "--accept-model"]
    options = [str(option) for option in options]
    out = folder / "warm.arrow"
    subprocess.run(
        [COMMAND, "redact", folder / "large.parquet", *options, "--dataset", "large", "-o", out],
        check=True,
    )
    return folder, options


def assert_whole_or_absent(out):
    """An output only with a certificate that matches it; what else is there is partial, hidden, and
    holds no needle.
    """
    certificate = out.with_name(out.name + ".certificate.json")
    if out.exists():
        content = json.loads(certificate.read_text())
        assert content["output"]["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    for file in out.parent.iterdir():
        if file in (out, certificate):
            continue
        assert file.name.startswith(".")
        assert file.name.endswith(".partial")
        content = file.read_bytes()
        if ".certificate." not in file.name:  # there the needle is a label of the model
            assert not any(
                NEEDLE.encode() in part for part in (content, *zstd_frames_start(content))
            )


def zstd_frames_start(content):
    """The first bytes of each compressed stretch, with texts if any."""
    for found in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), content):
        stream = pa.CompressedInputStream(
            pa.BufferReader(content[found.start() : found.start() + (1 << 20)]), "zstd"
        )
        plain = b""
        try:
            while len(plain) < 1 << 22 and (piece := stream.read(4096)):
                plain += piece
        except (OSError, pa.ArrowException):
            pass
        yield plain


def killed(command, moment, folder):
    """Start a command and kill it at a moment: so many seconds after its start, or after a partial
    file appeared.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        started = time.monotonic()
        kind, delay = moment
        if kind == "partial":
            while process.poll() is None and not any(
                file.suffix == ".partial" for file in folder.iterdir()
            ):
                if time.monotonic() - started > 30:
                    break
        time.sleep(delay)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


MOMENTS = [("start", 0.4), *(("partial", 0.005 * i**1.5) for i in range(7)), ("start", 0.9)]


@pytest.mark.parametrize("name", ["out.arrow", "out.csv"])
def test_a_kill_leaves_all_or_nothing(large, tmp_path, name):
    folder, options = large
    out = tmp_path / name
    endings = set()
    for moment in MOMENTS if name == "out.arrow" else MOMENTS[1:8:2]:
        killed(
            [
                COMMAND,
                "redact",
                folder / "large.parquet",
                *options,
                "--dataset",
                "large",
                "-o",
                out,
            ],
            moment,
            tmp_path,
        )
        assert_whole_or_absent(out)
        endings.add(out.exists())
        for file in tmp_path.iterdir():
            file.unlink()
    assert False in endings


def test_a_kill_while_overwriting_leaves_no_mixture(large, tmp_path):
    folder, options = large
    out, certificate = tmp_path / "out.arrow", tmp_path / "out.arrow.certificate.json"
    older = [COMMAND, "redact", folder / "older.parquet", *options, "--dataset", "older", "-o", out]
    subprocess.run([*map(str, older)], check=True, stdout=subprocess.DEVNULL)
    before = out.read_bytes(), certificate.read_bytes()
    for moment in MOMENTS[1:8:2]:
        out.write_bytes(before[0])
        certificate.write_bytes(before[1])
        command = [
            COMMAND,
            "redact",
            folder / "large.parquet",
            *options,
            "--dataset",
            "large",
            "-o",
            out,
            "--force",
        ]
        killed(command, moment, tmp_path)
        assert_whole_or_absent(out)
        for file in tmp_path.glob(".*"):
            file.unlink()


# ---- the disk


def limited(command, size, **options):
    """Run a command that may write files of so many bytes at most."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return subprocess.run(
        [*map(str, command)],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow", "out.csv", "out.ndjson"])
def test_a_full_disk_loses_nothing(large, tmp_path, name):
    folder, options = large
    out, certificate = tmp_path / name, tmp_path / f"{name}.certificate.json"
    command = [
        COMMAND,
        "redact",
        folder / "large.parquet",
        *options,
        "--dataset",
        "large",
        "-o",
        out,
        "--force",
    ]
    out.write_text("an older release")
    certificate.write_text("and its certificate")
    ended = limited(command, 12_000)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert re.fullmatch(CHOSEN + r"offrecord: .+\n", ended.stderr)
    assert "Traceback" not in ended.stderr
    assert (out.read_text(), certificate.read_text()) == ("an older release", "and its certificate")
    assert sorted(tmp_path.iterdir()) == [out, certificate]


def test_a_disk_too_full_for_the_certificate_writes_no_output(large, tmp_path):
    folder, options = large
    out = tmp_path / "out.parquet"
    command = [
        COMMAND,
        "redact",
        folder / "older.parquet",
        *options,
        "--dataset",
        "older",
        "-o",
        out,
    ]
    fits = limited(command, 10_000_000)
    assert fits.returncode == 0, fits.stderr
    table_size, certificate_size = (
        out.stat().st_size,
        (tmp_path / "out.parquet.certificate.json").stat().st_size,
    )
    assert table_size < certificate_size - 100
    for file in tmp_path.iterdir():
        file.unlink()
    ended = limited(command, certificate_size - 50)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(CHOSEN + r"offrecord: .+\n", ended.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", [InputError, KeyboardInterrupt, pl.exceptions.PanicException])
@pytest.mark.parametrize("kind", SUFFIX)
def test_an_engine_that_comes_late_leaves_nothing(tmp_path, monkeypatch, kind, end):
    """A failed engine's threads may still run, or have yet to open what they were told to write:
    here they all are late.
    """
    targets = []

    def late(_, target, **options):
        targets.append(target if isinstance(target, (str, Path)) else os.dup(target.fileno()))
        raise end("in the middle")

    release = redacted(
        table("int64", twins(3)[0]),
        model((0, -5, NEEDLE_INT)),
        remember=False,
        key_file=tmp_path / "k" / "key",
    )
    explained = release.explain()
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / f"out{SUFFIX[kind]}"
    monkeypatch.setattr(pl.LazyFrame, f"sink_{kind}", late)
    for write in (
        lambda: release.write(out),
        lambda: write_table(iter([explained]), out, kind, force=False),
    ):
        with pytest.raises(KeyboardInterrupt if end is KeyboardInterrupt else InputError):
            write()
    assert len(targets) == 2
    for target in targets:
        with open(target, "wb") as file:
            file.write(b"what came late")
    assert not [*(tmp_path / "out").iterdir()]


def test_an_interrupt_while_a_file_is_made_leaves_nothing(tmp_path, monkeypatch):
    made = os.open

    def interrupted(path, *how):
        os.close(made(path, *how))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt), beside(tmp_path / "out.csv"):
        pass
    monkeypatch.undo()
    assert not [*tmp_path.iterdir()]


SMALL = {
    "POLARS_OVERRIDE_TOTAL_MEMORY_MB": "1",
    "POLARS_OOC_DRIFT_THRESHOLD": "1024",
}  # a machine with hardly any memory


@pytest.mark.parametrize("name", ["large.parquet", "large.csv", "large.ndjson", "large.arrow"])
def test_unredacted_data_are_never_spilled_to_disk(large, tmp_path, name):
    """On a machine with little memory polars spills what it reads to /var/tmp, where a killed run
    leaves it.
    """
    folder, options = large
    given = folder / name
    if not given.exists():
        written(pl.read_parquet(folder / "large.parquet"), given)
    spilled = tmp_path / "spilled"
    spilled.mkdir()
    before = spilled.stat().st_mtime_ns
    small = os.environ | SMALL | {"POLARS_OOC_SPILL_DIR": str(spilled)}
    command = [
        COMMAND,
        "redact",
        given,
        *options,
        "--dataset",
        "large",
        "-o",
        tmp_path / "out.arrow",
    ]
    subprocess.run([*map(str, command)], env=small, check=True, stdout=subprocess.DEVNULL)
    assert list(spilled.iterdir()) == []
    assert spilled.stat().st_mtime_ns == before


def test_a_frame_that_is_collected_is_not_spilled_either(large, tmp_path):
    """Polars may have been imported, and have read its settings, long before."""
    folder, options = large
    (tmp_path / "spilled").mkdir()
    script = (
        "import polars as pl; import sys; pl.DataFrame({'a': [1]}).lazy().collect(); import"
        " offrecord as off\noff.redact(pl.scan_parquet(sys.argv[1]), value='v', order='t', by='id',"
        " private='p', epsilon=1.0, dataset='large', model=sys.argv[2], mechanism='window',"
        " designs=sys.argv[3], key_file=sys.argv[4], accept_model=True)"
    )
    files = [folder / "large.parquet", folder / "model.json", folder / "designs.json", options[-2]]
    small = os.environ | SMALL | {"POLARS_OOC_SPILL_DIR": str(tmp_path / "spilled")}
    subprocess.run(
        [sys.executable, "-c", script, *map(str, files)],
        env=small,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert list((tmp_path / "spilled").iterdir()) == []


# ---- errors


def bad_input(desk, name, content, *options, labels=TEXTS):
    """What is said about a table that cannot be redacted."""
    given, folder = desk.folder / name, desk.folder / "out"
    folder.mkdir(exist_ok=True)
    if isinstance(content, bytes):
        given.write_bytes(content)
    else:
        written(content, given)
    private = () if "--private-list" in options else ("--private", "p")
    arguments = [
        "redact",
        given,
        *COLUMNS,
        *private,
        *QUICK,
        *desk.model_options(labels),
        "--dataset",
        f"{desk.dataset} {name}",
    ]
    code, out, err = desk.run(folder, *arguments, "--key-file", desk.key, "-o", "out.csv", *options)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"offrecord: .+\n", err), err
    assert len(err) < 400
    assert NEEDLE not in err
    assert "internal error" not in err
    assert list(folder.iterdir()) == []
    return err


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
        (CSV.replace("short", "short\xff").encode("latin-1"), "cannot be read as csv"),
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
            "value column 'v' holds a value the model does not know in 1 rows",
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
    assert "does not know in 1 rows, first in row 20" in bad_input(
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
    (desk.folder / "list.csv").write_text(f"id,t\n{NEEDLE},{times[3]}\n")
    err = bad_input(desk, "bad.csv", frame, "--private-list", desk.folder / "list.csv")
    assert "names 1 records of chains that the table does not have" in err
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
            _Extension(pa.int64(), NEEDLE), pa.array(range(n))
        ),
        "list": pl.Series([["x"]] * n).cast(pl.List(pl.Enum(["x", NEEDLE]))),
    }[type_]
    bad_input(desk, "bad.arrow", table("long text", twins(3)[0], {column: cells}))


def test_a_missing_column_names_no_cells(desk):
    frame = table("long text", twins(3)[0])
    assert "did you mean 't'" in bad_input(desk, "bad.parquet", frame, "--keep", "tt")
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

    monkeypatch.setattr("offrecord.tables.engines.memory.arrange", failing)
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


# ---- re-releases


def test_the_same_command_gives_the_same_bytes(desk):
    labels = KINDS["long text"].labels
    frame = table("long text", twins(3)[0])
    first = desk.release("one", frame, "csv", "parquet", labels=labels)
    again = desk.release("two", frame, "csv", "parquet", labels=labels)
    assert_same(first, again)
    release = json.loads(first["out.parquet.certificate.json"])["release"]
    assert release == {"other_releases": 0, "composed": True}


OTHERS = {
    "epsilon": ["--epsilon", "0.5"],
    "mechanism": ["--mechanism", "3r-relaxed"],
    "model": ["--model", "other.json", "--designs", "other.designs.json"],
    "choice of columns": ["--keep", "kept"],
    "private list": ["--private", "q"],
}


@pytest.mark.parametrize("differs", OTHERS)
def test_another_release_under_the_same_name_is_refused(desk, differs):
    folder = desk.folder / "one"
    folder.mkdir()
    key = Key.new(desk.folder / "keys" / "key.json").file
    other = [key in PRIVATE or key == ("ann", 20) for key in KEYS]
    frame = table("truth", twins(2)[0], {"kept": list(range(len(KEYS))), "q": other})
    written(frame, desk.folder / "in.parquet")
    model((False, True)).save(folder / "model.json")
    off.MarkovChain([[0.85, 0.15], [0.3, 0.7]], labels=(False, True)).save(folder / "other.json")
    command = [
        "redact",
        desk.folder / "in.parquet",
        *COLUMNS,
        "--private",
        "p",
        "--epsilon",
        "1",
        "--mechanism",
        "window",
    ]
    command += ["--model", "model.json", "--dataset", "mine", "--key-file", key]
    assert desk.run(folder, *command, "-o", "out.csv")[0] == 0
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    code, out, err = desk.run(folder, *command, *OTHERS[differs], "-o", "out2.csv")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"offrecord: data set 'mine' was released before with another .+\n", err)
    named = (
        re.search(r"with (another .+?);", err)[1].removeprefix("another ").split(" and another ")
    )
    assert differs in named
    assert set(named) <= {differs, "set of designs"}
    assert before == {
        file.name: content
        for file, content in ((f, f.read_bytes()) for f in folder.iterdir())
        if "designs" not in file.name
    }
    code, _, err = desk.run(
        folder, *command, *OTHERS[differs], "-o", "out2.csv", "--another-release"
    )
    assert code == 0
    assert "1 other release;" in err
    certificate = json.loads((folder / "out2.csv.certificate.json").read_text())
    assert certificate["release"] == {"other_releases": 1, "composed": False}
    assert (
        desk.run(folder, *command, *OTHERS[differs], "-o", "out3.csv")[0] == 0
    )  # it has been released like this before
    assert (folder / "out3.csv").read_bytes() == (folder / "out2.csv").read_bytes()
    code, _, err = desk.run(
        folder, *command, *OTHERS[differs], "-o", "out4.csv", "--dataset", "other data"
    )
    assert (code, err.count("other releases")) == (0, 0)


def variants():
    frame = table("int64", np.random.default_rng(4).integers(0, 3, len(KEYS)))
    numbers = {name: number for number, name in enumerate(NAMES)}
    frame = frame.with_columns(id=pl.col("id").replace_strict(numbers, return_dtype=pl.Int64))
    rows = np.random.default_rng(2).permutation(len(KEYS))
    pieces = pl.concat([frame[i : i + 7] for i in range(0, len(KEYS), 7)], rechunk=False)
    yield "as it is", frame
    yield "shuffled", frame[rows]
    yield "backwards", frame[::-1]
    yield "in pieces", pieces
    yield "a slice", pl.concat([frame[:5], frame])[5:]
    for kind in (pl.Int8, pl.UInt8, pl.Int16, pl.Int32, pl.UInt32, pl.UInt64):
        yield f"id and t as {kind}", frame.with_columns(pl.col("id", "t").cast(kind))
    yield "values in a narrower type", frame.with_columns(pl.col("v").cast(pl.Float64))
    yield "names as text", frame.with_columns(pl.col("id", "t").cast(pl.String))
    yield "pandas", frame.to_pandas()
    yield "pyarrow", frame[rows].to_arrow()
    yield "columns in another order", frame.select("p", "v", "t", "id")
    yield "private as numbers", frame.with_columns(pl.col("p").cast(pl.Int8))


def test_how_a_table_is_laid_out_does_not_decide_what_is_redacted(key, tmp_path):
    results = {}
    options = {
        "key_file": key,
        "dataset": "layouts",
        "by": ["id"],
        "designs": tmp_path / "designs.json",
    }
    for name, frame in variants():
        release = redacted(frame, model((0, -5, NEEDLE_INT)), **options)
        released = (
            release.frame
            if isinstance(release.frame, pl.DataFrame)
            else pl.DataFrame(release.frame)
        )
        results[name] = released.select(
            pl.col("id", "t").cast(pl.Int64), pl.col("v").cast(pl.Int64)
        ).rows()
    expected = results["as it is"]
    assert any(value is None for *_, value in expected)
    for name, rows in results.items():
        assert rows == expected, name


def test_row_groups_do_not_decide_what_is_redacted(desk):
    frame = table("long text", twins(3)[0])
    rows = np.random.default_rng(6).permutation(len(KEYS))
    whole = desk.release("one", frame, "parquet", "parquet", labels=TEXTS)
    folder = desk.folder / "two"
    folder.mkdir()
    pq.write_table(frame[rows].to_arrow(), desk.folder / "groups.parquet", row_group_size=7)
    arguments = [
        "redact",
        desk.folder / "groups.parquet",
        *COLUMNS,
        "--private",
        "p",
        *QUICK,
        *desk.model_options(TEXTS),
    ]
    arguments += ["--dataset", desk.dataset, "--key-file", desk.key, "-o", "out.parquet"]
    assert desk.run(folder, *arguments)[0] == 0
    for name in ("out.parquet", "out.parquet.certificate.json"):
        assert (folder / name).read_bytes() == whole[name]


def test_large_tables_leave_the_same_bytes_from_any_order_of_rows(large, tmp_path, key):
    """Engines cut large tables into pieces by how they came in; the released file has
    none of that.
    """
    folder, _ = large
    frame = pl.read_parquet(folder / "large.parquet").with_columns(
        kept=pl.col("t").cast(pl.String) + " of a kept text"
    )
    digests = set()
    pieces = [
        frame,
        frame.sort("id", "t"),
        pl.concat([frame[:70_001], frame[70_001:70_002], frame[70_002:]], rechunk=False),
        pl.concat(
            [frame.sort("id", "t")[i : i + 10_000] for i in range(0, frame.height, 10_000)],
            rechunk=False,
        ),
    ]
    for number, piece in enumerate(pieces):
        with pytest.warns(off.ChosenByValue):
            release = redacted(
                piece,
                model(TEXTS),
                key_file=key,
                dataset="large kept",
                keep="kept",
                mechanism="window",
                accept_model=True,
            )
        for name in ("out.parquet", "out.arrow"):
            release.write(tmp_path / f"{number}.{name}")
            digests.add(
                (name, hashlib.sha256((tmp_path / f"{number}.{name}").read_bytes()).hexdigest())
            )
    assert len(digests) == 2


@pytest.mark.parametrize("name", ["id", "t"])
@pytest.mark.parametrize("numbered", [False, True])
def test_a_wrong_flag_does_not_split_a_chain(key, tmp_path, name, numbered):
    """A frame may claim to be sorted and not be: a chain in many pieces would be protected in few
    of them.
    """
    frame = table("int64", twins(3)[0]).sort(
        "t", maintain_order=True
    )  # every row is of another chain than the one before
    if numbered:
        frame = frame.with_columns(
            id=pl.col("id").replace_strict({name: i for i, name in enumerate(NAMES)})
        )
    results = []
    for given in (frame, frame.with_columns(pl.col(name).set_sorted())):
        copy = shutil.copy(key, tmp_path / f"key{len(results)}.json")  # with a ledger of its own
        try:
            results.append(
                redacted(given, model((0, -5, NEEDLE_INT)), key_file=copy, dataset="flags")
            )
        except InputError as error:
            assert "sorted" in str(error)  # noqa: PT017
            return
    assert results[1].summary.chains == len(NAMES)
    assert results[1].frame.equals(results[0].frame)


# ---- spreadsheets


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
    blank = "with blanks around the name, 1 times"
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
        "--explain",
        "explain.csv",
    ]
    desk.run(folder, *arguments)
    if (folder / "explain.csv").exists():
        assert not re.search(r"(?m)^[=+@-]", (folder / "explain.csv").read_text())


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
    code, _, _ = desk.run(folder, *arguments)
    assert code == 2 or "'=1+1" in (folder / "out.csv").read_text().splitlines()[0]


# ---- nothing lost, nothing mistaken


def test_no_output_over_what_was_given(desk):
    """--force overwrites an older output, never the table, the private list, the model or the
    designs.
    """
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
        for options in (["-o", name], ["-o", "out.csv", "--explain", name]):
            code, _, err = desk.run(folder, *command, *options)
            assert {file: (folder / file).read_bytes() for file in before} == before, options
            assert code == 2, options
            assert re.fullmatch(r"offrecord: .+\n", err)
    code, _, err = desk.run(folder, *command, "-o", "out.csv", "--designs", "out.csv")
    assert code == 2
    assert not (folder / "out.csv").exists()


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


def test_an_explanation_keeps_a_column_that_is_called_region(key):
    frame = table("long text", twins(3)[0]).rename({"id": "region"})
    try:
        explained = redacted(
            frame, model(TEXTS), key_file=key, dataset="regions", by="region"
        ).explain()
    except InputError:
        return
    assert set(explained.to_series(0)) == set(NAMES)
    assert {"S", "L", "private"} <= set(explained.to_series(2))


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
