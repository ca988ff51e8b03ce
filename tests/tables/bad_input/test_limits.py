"""What a table file may hold at most: each limit has a name, and its message names it."""

import gzip
import subprocess
import sys
import zlib
from pathlib import Path

import polars as pl
import pytest

import offrecord as off
from offrecord.tables.io.format import ReadOptions
from offrecord.tables.io.formats import table_file
from offrecord.tables.io.limits import LIMITS
from table_files import ENDINGS, write

WIDE = pl.DataFrame({f"column {i}": [1, 2] for i in range(300)})


def refused(path, said, **limits):
    """Reading the file at once and in batches meets a limit."""
    for read in (lambda one: one.read(), lambda one: list(one.batches(["a"], 10))):
        with pytest.raises(off.InputError, match=said):
            read(table_file(path, ReadOptions(limits=limits)))


@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_and_columns(tmp_path, ending):
    few = write(pl.DataFrame({"a": range(20), "b": ["x"] * 20}), tmp_path / f"few{ending}")
    refused(few, 'limits={"rows": 7}', rows=7)
    assert table_file(few, ReadOptions(limits={"rows": 20, "columns": 2})).read().height == 20
    refused(few, 'limits={"columns": NUMBER}', columns=1)
    wide = write(WIDE, tmp_path / f"wide{ending}")
    refused(wide, 'limits={"columns": NUMBER}', columns=40)
    assert table_file(wide).read().width == 300


@pytest.mark.parametrize("ending", [".csv", ".ndjson", ".csv.gz", ".ndjson.gz"])
def test_lines(tmp_path, ending):
    long = pl.DataFrame({"a": ["x", "y" * 3000, "z"]})
    text = long.write_csv() if ".csv" in ending else long.write_ndjson()
    packed = gzip.compress if ending.endswith(".gz") else bytes
    path = tmp_path / f"t{ending}"
    path.write_bytes(packed(text.encode()))
    refused(path, 'limits={"line": NUMBER}', line=1000)
    path.write_bytes(packed(b'"a' + b"a" * 3000 + b'"\n1\n'))
    refused(path, 'limits={"line": NUMBER}', line=1000)


def test_unpacked_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    text = pl.DataFrame({"a": ["x" * 1000 + str(i) for i in range(5000)]})
    text.write_parquet(
        path, compression="zstd", use_pyarrow=True, pyarrow_options={"use_dictionary": False}
    )
    assert path.stat().st_size < 100_000
    refused(path, 'limits={"unpacked": NUMBER}', unpacked=1_000_000)
    assert table_file(path).read().height == 5000


def test_other_limits_are_refused(tmp_path):
    write(WIDE, tmp_path / "t.csv")
    with pytest.raises(off.InputError, match="limits takes rows, columns, line, unpacked"):
        table_file(tmp_path / "t.csv", ReadOptions(limits={"cells": 1})).read()
    assert set(LIMITS) == {"rows", "columns", "line", "unpacked"}


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """Some megabytes that unpack to gigabytes of lines as any others."""
    path = tmp_path_factory.mktemp("bomb") / "bomb.csv.gz"
    packer, lines = zlib.compressobj(9, wbits=31), b"a,1,0\n" * (1 << 17)
    with path.open("wb") as file:
        file.write(packer.compress(b"room,hour,state\n"))
        for _ in range((2 << 30) // len(lines)):
            file.write(packer.compress(lines))
        file.write(packer.flush())
    return path


#: Runs the command line and says how much time and memory it took. A process of its own does so, as
#: the kernel counts the memory of whoever starts a command as that of the command.
_MEASURED = """
import os, subprocess, sys
command = [sys.executable, "-c", "from offrecord.cli import run; run()", *sys.argv[1:]]
_, status, used = os.wait4(subprocess.Popen(command).pid, 0)
print(used.ru_utime, used.ru_maxrss, sep="\\n", file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("verb", ["look", "fit", "redact"])
def test_a_bomb_takes_little_time_and_memory(bomb, tmp_path, verb):
    off.MarkovChain([[0.8, 0.2], [0.4, 0.6]]).save(tmp_path / "chain.json")
    columns = ["--value", "state", "--order", "hour", "--by", "room"]
    rest = {
        "look": [],
        "fit": [*columns, "-o", "m.json"],
        "redact": [
            *(*columns, "--private", "hidden", "--model", "chain.json", "--epsilon", "1"),
            *("--dataset", "d", "--key-file", "k/key.json", "-o", "o.csv"),
        ],
    }[verb]
    command = [sys.executable, "-c", _MEASURED, verb, str(bomb)]
    ended = subprocess.run(
        [*command, *rest], cwd=tmp_path, capture_output=True, check=False, text=True
    )
    assert ended.returncode == 2
    *_, last, seconds, memory = ended.stderr.splitlines()
    assert "unpacks to more bytes than" in last
    assert "--limit unpacked=NUMBER" in last
    assert float(seconds) < 15
    assert int(memory) < 1 << 20  # a gibibyte, in KiB
    assert not Path(tmp_path / "o.csv").exists()
