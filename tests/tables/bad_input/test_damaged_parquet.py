"""Parquet files with a count that is wrong, upon which the table engine would end the process."""

import hashlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from good_command import ROWS, TABLE
from offrecord.tables.io.parquet_counts import check_counts

#: Where the header of a data page begins to count, by what comes before: whether it has a checksum,
#: and of which version it is. Counts are twice what they are, so that the last bit is their sign.
COUNT = re.compile(rb"[\x1c\x2c\x4c\x5c]\x15" + bytes([2 * ROWS]))
DELTA = {"room": "DELTA_BYTE_ARRAY", "hour": "DELTA_BINARY_PACKED", "k": "DELTA_LENGTH_BYTE_ARRAY"}
FRAME = pl.DataFrame(TABLE | {"k": [None, *"abcdefg"], "many": [[1, 2], []] * 4})


def by_polars(compression):
    content = io.BytesIO()
    FRAME.write_parquet(content, compression=compression)
    return content.getvalue()


def by_arrow(**options):
    content = io.BytesIO()
    pq.write_table(FRAME.to_arrow(), content, **options)
    return content.getvalue()


WRITTEN = {
    **{f"polars, {one}": by_polars(one) for one in ("uncompressed", "snappy", "zstd", "lz4")},
    **{f"arrow, {one}": by_arrow(compression=one) for one in ("none", "snappy", "gzip", "brotli")},
    "plain": by_arrow(use_dictionary=False, compression="none"),
    "delta": by_arrow(use_dictionary=False, column_encoding=DELTA),
    "version 2": by_arrow(data_page_version="2.0"),
    "checksums": by_arrow(write_page_checksum=True),
    # whose pages have other counts
    "small groups": by_arrow(row_group_size=3, write_page_index=True),
}
COUNTED = [kind for kind in WRITTEN if kind != "small groups"]


def damaged(content, which=None):
    """With negative counts in the headers of pages, or of one of them."""
    content = bytearray(content)
    for number, count in enumerate(list(COUNT.finditer(content))):
        if which in (None, number):
            content[count.end() - 1] |= 1
    return bytes(content)


def damage(path):
    Path(path).write_bytes(damaged(Path(path).read_bytes()))
    return path


@pytest.mark.parametrize("kind", WRITTEN)
def test_whole_files_are_believed(kind, tmp_path):
    file = tmp_path / "table.parquet"
    file.write_bytes(WRITTEN[kind])
    check_counts(file)
    check_counts(file, ["state"])


def test_tables_of_no_rows_and_of_many_pages_are_believed(tmp_path):
    file = tmp_path / "table.parquet"
    pq.write_table(FRAME.head(0).to_arrow(), file)
    check_counts(file)
    pl.DataFrame({"x": range(9_000), "y": [[1]] * 9_000}).write_parquet(file, data_page_size=500)
    check_counts(file)
    names = pl.DataFrame({"x": ["a" * 9_000, "b"]})  # headers longer than what is read at first
    pq.write_table(names.to_arrow(), file, use_dictionary=False)
    check_counts(file)
    import duckdb

    rows = "SELECT i, [i, i] AS many, {'a': i} AS parts FROM range(9000) AS t(i)"
    duckdb.sql(f"COPY ({rows}) TO '{file}' (row_group_size 3000)")
    check_counts(file)


@pytest.mark.parametrize("kind", COUNTED)
def test_a_negative_count_is_seen_in_every_page(kind, tmp_path):
    file = tmp_path / "table.parquet"
    pages = [one.end() for one in COUNT.finditer(WRITTEN[kind])]
    assert len(pages) >= FRAME.width - 1  # of lists there are other counts
    for which in range(len(pages)):
        file.write_bytes(damaged(WRITTEN[kind], which))
        with pytest.raises(ValueError, match="negative"):
            check_counts(file)


def test_columns_that_are_not_read_may_be_damaged(tmp_path):
    file = tmp_path / "table.parquet"
    file.write_bytes(damaged(WRITTEN["polars, zstd"], 0))  # of the first column
    check_counts(file, ["hour", "state"])
    with pytest.raises(ValueError, match="negative"):
        check_counts(file, ["room"])


@pytest.mark.parametrize("kind", range(1, 13))
def test_a_list_longer_than_the_file_ends(kind, tmp_path):
    """Of elements of any type: a footer that says it holds 2⁶³ of them."""
    footer = bytes([0x19, 0xF0 | kind, *[0xFF] * 9, 0x00, 0x00])
    file = tmp_path / "a.parquet"
    file.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises((ValueError, IndexError)):
        check_counts(file)


@pytest.mark.parametrize("everywhere", [False, True])
def test_rows_that_no_memory_holds_are_not_asked_for(everywhere, tmp_path):
    """A footer that says there are 2⁵⁰ rows, once or everywhere alike."""
    content, rows = WRITTEN["polars, zstd"], b"\x16" + bytes([2 * ROWS])
    at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    many = b"\x16" + b"\x80" * 7 + b"\x04"
    footer = content[at:-8].replace(rows, many, -1 if everywhere else 1)
    file = tmp_path / "table.parquet"
    file.write_bytes(content[:at] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(MemoryError if everywhere else ValueError):
        check_counts(file)


_EACH_BYTE = """
import sys
from pathlib import Path
from offrecord.errors import InputError
from offrecord.tables.io.formats import table_file

file = Path(sys.argv[1])
whole, refused = file.read_bytes(), 0
for at in range(len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")):
    file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    try:
        table_file(file).read()
    except (InputError, MemoryError):
        refused += 1
print(refused)
"""


@pytest.mark.parametrize("kind", ["polars, zstd", "delta", "version 2"])
def test_no_byte_of_a_page_ends_the_process(kind, tmp_path):
    """In a process of its own, of which nothing is left to say if it does end."""
    file = tmp_path / "table.parquet"
    file.write_bytes(WRITTEN[kind])
    command = [sys.executable, "-c", _EACH_BYTE, str(file)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr[-300:]
    assert int(told.stdout) > 100  # others are of statistics, or of cells


# ---- every verb says so


@pytest.mark.parametrize("kind", COUNTED)
@pytest.mark.parametrize("how", ["in_memory", "stream"])
def test_redact(desk, kind, how):
    Path("bad.parquet").write_bytes(damaged(WRITTEN[kind]))
    desk.fails(desk.redact("bad.parquet", **{how: True}), "bad.parquet", "damaged")


def test_fit(desk):
    bad = damage(desk.write("bad.parquet"))
    desk.fails(desk.fit(bad), "bad.parquet", "damaged")


@pytest.mark.parametrize("how", ["in_memory", "stream"])
def test_a_folder(desk, how):
    Path("parts").mkdir()
    desk.write("parts/a.parquet")
    damage(desk.write("parts/b.parquet", room=["c"] * 4 + ["d"] * 4))
    desk.fails(desk.redact("parts", **{how: True}), "parts/b.parquet", "damaged")


def test_a_private_list(desk):
    bad = damage(desk.write("list.parquet", {"room": ["a"] * ROWS, "hour": range(1, ROWS + 1)}))
    asked = desk.redact(private=None, private_list=bad)
    desk.fails(asked, "list.parquet", "damaged")


def test_what_a_fit_kept_beside_the_key(desk):
    desk.works(*desk.fit(output="learned.json", key_file=desk.key))
    for file in desk.key.parent.glob("*/*.parquet"):
        content = file.read_bytes()
        count = re.search(rb"\x2c\x15(.)", content)
        assert count is not None
        file.write_bytes(content[: count.end() - 1] + b"\x03" + content[count.end() :])
    desk.fails(desk.redact(model="learned.json", exact_model=True), ".parquet", "damaged")


@pytest.fixture
def released(desk):
    """A release in Parquet, damaged, of which its certificate says the SHA-256."""
    desk.works(*desk.redact(output="out.parquet", private=None, private_list=listed(desk)))
    damage("out.parquet")
    proof = Path("out.parquet.certificate.json")
    content = json.loads(proof.read_text())
    digest = hashlib.sha256(Path("out.parquet").read_bytes()).hexdigest()
    content["output"]["sha256"] = digest
    proof.write_text(json.dumps(content))
    return desk


def listed(desk):
    return desk.write("list.csv", {"room": ["a"], "hour": [2]})


def test_verify(released):
    asked = ["verify", "out.parquet.certificate.json", "out.parquet"]
    released.fails(asked, "out.parquet", "damaged")


def test_attack(released):
    released.fails(["attack", "out.parquet", "--private-list", "list.csv"], "out.parquet")


def test_the_table_before(desk):
    desk.works(*desk.redact(private=None, private_list=listed(desk)))
    damage(desk.table)
    for asked in (
        ["attack", "out.csv", "--private-list", "list.csv", "--original", desk.table],
        ["attack", "out.csv", "--private-list", desk.table],
        ["verify", "out.csv.certificate.json", "out.csv", "--private-list", desk.table],
    ):
        desk.fails(asked, "table.parquet", "damaged")
