"""The same table, however it is laid out, is the same release; another one is refused."""

import hashlib
import json
import re
import shutil

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import offrecord as off
from needles import NEEDLE_INT
from offrecord.errors import InputError
from offrecord.release.keys import Key
from releasing import COLUMNS, QUICK, assert_same
from twins import KEYS, KINDS, NAMES, PRIVATE, TEXTS, model, redacted, table, twins, written


def test_the_same_command_gives_the_same_bytes(desk):
    labels = KINDS["long text"].labels
    frame = table("long text", twins(3)[0])
    first = desk.release("one", frame, "csv", "parquet", labels=labels)
    again = desk.release("two", frame, "csv", "parquet", labels=labels)
    assert_same(first, again)
    release = json.loads(first["out.parquet.certificate.json"])["release"]
    assert release == {"others": 0, "accepted": False, "why": None}


OTHERS = {
    "epsilon": ["--epsilon", "0.5"],
    "set of rules": ["--protect", "each"],
    "model": ["--model", "other.json"],
    "choice of columns": ["--keep", "kept"],
    "private list": ["--private", "q"],
}


@pytest.mark.parametrize("differs", OTHERS)
def test_another_release_under_the_same_name_is_refused(desk, differs):
    folder = desk.folder / "one"
    folder.mkdir()
    key = Key.new(desk.folder / "drawer" / "key.json").file
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
    assert set(named) <= {differs, "set of rules"}
    assert before == {
        file.name: content for file, content in ((f, f.read_bytes()) for f in folder.iterdir())
    }
    code, _, err = desk.run(
        folder, *command, *OTHERS[differs], "-o", "out2.csv", "--accept", "another-release"
    )
    assert code == 0
    assert "has had 1 other release" in err
    certificate = json.loads((folder / "out2.csv.certificate.json").read_text())
    assert certificate["release"] == {"others": 1, "accepted": True, "why": None}
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
                accept="model",
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
