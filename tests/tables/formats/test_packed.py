"""Text packed by gzip or zstd: the same table, the same release, and nothing half read."""

import gzip
import hashlib
import json
import os
import zlib
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import offrecord as off
from hours import COLUMNS, EPSILON, MODEL, frame
from offrecord.tables.io import csv, ndjson
from offrecord.tables.io import text as texts
from offrecord.tables.io.format import ReadOptions
from offrecord.tables.io.formats import table_file


def zstd(content):
    return pa.compress(content, "zstd", asbytes=True)


PACK = {".gz": gzip.compress, ".zst": zstd}
WRITE = {".csv": pl.DataFrame.write_csv, ".ndjson": pl.DataFrame.write_ndjson}


def unpacked(path):
    """By a program that is not ours."""
    with pa.input_stream(str(path), compression="gzip" if path.suffix == ".gz" else "zstd") as file:
        return file.read()


@pytest.mark.parametrize("stream", [None, True], ids=["memory", "stream"])
@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("kind", WRITE)
def test_packed_text_in_and_out(run, kind, ending, stream):
    table = frame(shuffled=False)
    content = WRITE[kind](table).encode()
    Path(f"plain{kind}").write_bytes(content)
    run("redact", f"plain{kind}", output=f"expected{kind}")
    half = content.index(b"\n", len(content) // 2) + 1
    pack = PACK[ending]
    Path(f"t{kind}{ending}").write_bytes(pack(content[:half]) + pack(content[half:]))
    out = Path(f"out{kind}{ending}")
    run("redact", f"t{kind}{ending}", output=out, stream=stream)
    assert unpacked(out) == Path(f"expected{kind}").read_bytes()
    certificate = json.loads(Path(f"{out}.certificate.json").read_text())
    assert certificate["output"]["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert certificate["output"]["format"] == kind[1:]


def test_packed_lists_and_references(run):
    table = frame()
    run("redact", _written(table, "t.parquet"), output="expected.csv")
    keys = table.filter("hidden").select("room", "hour").write_csv().encode()
    Path("keys.csv.zst").write_bytes(zstd(keys))
    run("redact", "t.parquet", output="o.csv", private=None, private_list="keys.csv.zst")
    assert Path("o.csv").read_bytes() == Path("expected.csv").read_bytes()
    Path("t.csv.gz").write_bytes(gzip.compress(table.write_csv().encode()))
    for source, model in (("t.parquet", "one.json"), ("t.csv.gz", "two.json")):
        run("fit", source, output=model)
    one, two = (Path(name).read_text() for name in ("one.json", "two.json"))
    assert one.replace('"table": "t.parquet"', '"table": "t.csv.gz"') == two


def _written(table, path):
    table.write_parquet(path)
    return path


@pytest.mark.parametrize("ending", PACK)
def test_the_bytes_do_not_depend_on_the_pieces_a_text_comes_in(tmp_path, ending, monkeypatch):
    """Nor say when it was packed, or of which file; and others read it back."""
    monkeypatch.setattr(texts, "_BLOCK", 1000)
    content = frame().write_csv().encode()
    written = []
    for size in (1, 7, 999, 1000, 1001, len(content)):
        path = tmp_path / f"{size}{ending}"
        with path.open("wb") as file, texts.packed(file, texts.PACKINGS[ending]) as out:
            for start in range(0, len(content), size):
                out.write(content[start : start + size])
        assert unpacked(path) == content
        written.append(path.read_bytes())
    assert len(set(written)) == 1
    if ending == ".gz":
        assert written[0][3:8] == b"\0" * 5  # no name, no time
    else:
        assert written[0][4] & 4  # a checksum


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("kind", WRITE)
def test_text_that_was_cut_short_is_an_error_wherever_it_was_cut(tmp_path, kind, ending):
    path = tmp_path / f"t{kind}{ending}"
    whole = PACK[ending](WRITE[kind](frame(rooms=("a",))).encode())
    for size in [*range(4, len(whole), 41), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(off.InputError, match=r"cut short|is empty"):
            table_file(path).read(["state"])
        with pytest.raises(off.InputError, match=r"cut short|is empty"):
            list(table_file(path).batches(["state"], 10))
    path.write_bytes(whole)
    assert table_file(path).read(["state"]).height == 80


def test_damage_is_an_error(tmp_path):
    content = frame().write_csv().encode()
    path = tmp_path / "t.csv.gz"
    for at in range(20, 400, 37):
        whole = bytearray(gzip.compress(content, mtime=0))
        whole[at] ^= 0x10
        path.write_bytes(whole)
        with pytest.raises(off.InputError, match="damaged"):
            table_file(path).read(["state"])
    path.write_bytes(gzip.compress(content) + b"something else")
    with pytest.raises(off.InputError, match="damaged"):
        table_file(path).read(["state"])
    path.write_bytes(gzip.compress(content[:-4]))
    with pytest.raises(off.InputError, match="stops in the middle of a line"):
        table_file(path).read(["state"])


def test_what_unpacks_to_too_much_meets_a_limit(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    packer = zlib.compressobj(wbits=31)
    line = b"a,1\n" * 250_000
    path.write_bytes(
        packer.compress(b"room,state\n")
        + b"".join(packer.compress(line) for _ in range(20))
        + packer.flush()
    )
    assert path.stat().st_size < 30_000  # of 20 million bytes
    few = ReadOptions(limits={"rows": 1000})
    with pytest.raises(off.InputError, match=r"more rows than limits=.\"rows\": 1000"):
        table_file(path, few).read(["state"])
    with pytest.raises(off.InputError, match=r"more rows than limits=.\"rows\": 1000"):
        list(table_file(path, few).batches(["state"], 100))
    monkeypatch.setattr(os, "sysconf", lambda name: 1000)
    with pytest.raises(off.InputError, match="more than this machine's memory holds"):
        table_file(path).read(["state"])
    monkeypatch.undo()
    small = ReadOptions(limits={"unpacked": 1 << 20})
    for look in (lambda: table_file(path, small).read(["state"]), lambda: _streamed(path, small)):
        with pytest.raises(off.InputError, match=r'unpacks .*; limits=."unpacked": NUMBER'):
            look()


def _streamed(path, options):
    return list(table_file(path, options).batches(["state"], 10))


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_a_line_without_end_does_not_fill_memory(tmp_path, monkeypatch, kind):
    monkeypatch.setattr({"csv": csv, "ndjson": ndjson}[kind], "_BLOCK", 1 << 10)
    path = tmp_path / f"t.{kind}.gz"
    path.write_bytes(gzip.compress(b"room,state\n" + b"a" * (1 << 22)))
    seen, blocks = [], texts.Text._blocks

    def counted(*given):
        for block in blocks(*given):
            seen.append(len(block))
            yield block

    monkeypatch.setattr(texts, "_BLOCK", 1 << 14)
    monkeypatch.setattr(texts.Text, "_blocks", counted)
    with pytest.raises(
        off.InputError, match=r"has a line of more bytes .*; limits=.\"line\": NUMBER"
    ):
        _streamed(path, ReadOptions(limits={"line": 1 << 16}))
    assert sum(seen) < 1 << 20  # all looks together


def test_size_is_that_of_the_text_not_of_the_file(tmp_path):
    content = frame().write_csv().encode()
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(content))
    source = table_file(path)
    assert path.stat().st_size < len(content) // 2
    assert source.exceeds(8 * len(content) - 8, a_row=80)
    assert not source.exceeds(8 * len(content), a_row=80)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", gzip.compress(b"a\n", mtime=0), "is packed by gzip: give it a name that ends so"),
        ("t.ndjson", zstd(b"{}\n"), "is packed by zstd"),
        ("t.csv.gz", b"room,state\n", "named as one packed by gzip, but it is not"),
        ("t.csv.gz", gzip.compress(b"", mtime=0), "is empty"),
        ("t.parquet.gz", b"PAR1", "parquet has compression of its own"),
        ("t.arrow.zst", b"ARROW1", "ipc has compression of its own"),
        ("t.gz", b"PAR1", "the name must end in"),
    ],
)
def test_names_and_packings_agree(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(off.InputError, match=said):
        table_file(tmp_path / name).read()


def test_python_writes_packed_text_too(redact, tmp_path):
    (tmp_path / "out").mkdir()
    release = redact(frame())
    release.write(tmp_path / "out" / "o.csv.zst")
    release.write(tmp_path / "out" / "o.csv")
    assert unpacked(tmp_path / "out" / "o.csv.zst") == (tmp_path / "out" / "o.csv").read_bytes()
    with pytest.raises(off.InputError, match="compression of its own"):
        release.write(tmp_path / "out" / "o.parquet.gz")
    options = COLUMNS | {"private": "hidden", "model": MODEL, "epsilon": EPSILON}
    options |= {"dataset": "rooms", "key_file": tmp_path / "keys" / "key.json"}
    source = tmp_path / "t.csv.gz"
    source.write_bytes(gzip.compress(frame(shuffled=False).write_csv().encode()))
    off.redact_file(source, tmp_path / "out" / "p.csv.zst", **options)
    first, second = (tmp_path / "out" / f"{name}.csv.zst" for name in "op")
    assert first.read_bytes() == second.read_bytes()
