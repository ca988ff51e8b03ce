"""Standard streams: everything and its certificate, or one line that says why not."""

import fcntl
import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import termios
import time
from pathlib import Path

import polars as pl
import pytest

from command_line import flags
from offrecord import cli
from streams import COLUMNS, frame, refused
from table_files import write

PATIENCE = 600  # seconds for what takes two: a machine may be busy
COMMAND = [sys.executable, "-c", "from offrecord.cli import run; run()"]


STANDARD = COLUMNS | {
    "private": "hidden",
    "model": "model.json",
    "epsilon": 1.5,
    "dataset": "rooms",
    "mechanism": "3r-relaxed",  # designed at once, and leaves records to their coins
    "certificate": "c.json",
}


def arguments(kind, table="-"):
    return ["redact", table, "-o", "-", "--format", kind, *flags(STANDARD)]


@pytest.fixture
def piped(folder):
    """The command as a process, with bytes on standard input."""

    def run(content, *arguments, **options):
        return subprocess.run(
            [*COMMAND, "redact", *arguments, *flags(STANDARD | options)],
            input=content,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )

    return run


def as_bytes(table, kind):
    content = io.BytesIO()
    {"csv": table.write_csv, "ndjson": table.write_ndjson, "ipc": table.write_ipc_stream}[kind](
        content
    )
    return content.getvalue()


READERS = {"csv": pl.read_csv, "ndjson": pl.read_ndjson, "ipc": pl.read_ipc_stream}


@pytest.mark.parametrize("kind", READERS)
def test_from_standard_input_to_standard_output(desk, piped, kind):
    table = frame([3, 1, 2], empty=0.1)
    ended = piped(as_bytes(table, kind), "-", output="-", format=kind)
    assert ended.returncode == 0, ended.stderr
    assert b"released" in ended.stderr
    write(table, "t.parquet")
    assert desk("t.parquet", output="o.parquet", mechanism=STANDARD["mechanism"])[0] == 0
    expected = pl.read_parquet("o.parquet")
    assert READERS[kind](io.BytesIO(ended.stdout)).cast(expected.schema).equals(expected)
    proof = json.loads(Path("c.json").read_text())
    assert proof["output"]["sha256"] == hashlib.sha256(ended.stdout).hexdigest()
    assert proof["output"]["format"] == kind
    del proof["output"]
    other = json.loads(Path("o.parquet.certificate.json").read_text())
    del other["output"]
    assert proof == other
    again = piped(as_bytes(table, kind), "-", output="-", format=kind, force=True)
    assert again.stdout == ended.stdout


def test_a_stream_on_one_side_only(desk, piped):
    table = frame([3, 1, 2])
    assert (
        piped(
            as_bytes(table, "ndjson"), "-", output="o.ndjson", certificate=None, format="ndjson"
        ).returncode
        == 0
    )
    write(table, "t.ndjson")
    ended = piped(b"", "t.ndjson", output="-")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == Path("o.ndjson").read_bytes()


@pytest.mark.parametrize("kind", READERS)
def test_input_that_was_cut_short_leaves_no_certificate(folder, kind, capfdbinary, monkeypatch):
    content = as_bytes(frame([1]), kind)
    for cut in (1, 2, 7, 8, 9, 16, 40, len(content) // 2, len(content) - 20, len(content)):
        cut_short = content[:-cut]
        if kind != "ipc" and (
            cut_short.endswith(b"\n") or (kind == "ndjson" and cut_short.endswith(b"}"))
        ):
            continue  # a shorter table, but a whole one
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(cut_short)))
        code = cli.main(arguments(kind))
        out, err = capfdbinary.readouterr()
        assert (code, out) == (2, b""), cut
        assert re.fullmatch(r"offrecord: .+\n", err.decode()), err
        assert not Path("c.json").exists()


@pytest.mark.parametrize("kind", READERS)
def test_nor_does_a_process_whose_input_was(piped, kind):
    content = as_bytes(frame([1]), kind)
    ended = piped(content[: len(content) // 2], "-", output="-", format=kind)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert re.fullmatch(r"offrecord: .+\n", ended.stderr.decode()), ended.stderr
    assert not Path("c.json").exists()


@pytest.mark.parametrize("kind", READERS)
def test_a_broken_pipe_leaves_no_certificate(desk, kind):
    content = as_bytes(frame([*range(3000)], length=40), kind)
    with subprocess.Popen(
        [*COMMAND, *arguments(kind)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdin.write(content)
        process.stdin.close()
        process.stdout.read(100)
        process.stdout.close()
        said = process.stderr.read().decode()
        assert process.wait(PATIENCE) == 2
    assert re.fullmatch(r"offrecord: .+\n", said), said
    assert not Path("c.json").exists()
    ledger = json.loads(Path("share/offrecord/key.ledger.json").read_text())
    assert "rooms" in ledger["releases"]  # somebody may have kept what they read


def wait_until_full(pipe):
    """Until something waits in a pipe and nothing more is added."""
    waiting, until = 0, time.monotonic() + PATIENCE
    while time.monotonic() < until:
        time.sleep(0.3)
        before, waiting = waiting, waiting_in(pipe)
        if 0 < before == waiting:
            return


def waiting_in(pipe):
    """How many bytes wait to be read from a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_a_reader_that_takes_its_time_gets_everything(desk):
    """Also where the parent has made the pipe one that does not wait."""
    read, end = os.pipe()
    os.set_blocking(end, False)
    with subprocess.Popen(
        [*COMMAND, *arguments("csv")], stdin=subprocess.PIPE, stdout=end, stderr=subprocess.PIPE
    ) as process:
        os.close(end)
        process.stdin.write(as_bytes(frame([*range(3000)], length=40), "csv"))
        process.stdin.close()
        wait_until_full(read)
        with os.fdopen(read, "rb") as slow:
            got = slow.read()
        assert process.wait(PATIENCE) == 0
    assert (
        json.loads(Path("c.json").read_text())["output"]["sha256"]
        == hashlib.sha256(got).hexdigest()
    )


def test_two_streams_one_after_the_other_are_not_taken_for_one(piped):
    content = as_bytes(frame([1]), "ipc")
    ended = piped(content + content, "-", output="-", format="ipc")
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert b"several Arrow IPC streams" in ended.stderr


def test_closed_standard_output(desk):
    write(frame([1]), "t.csv")
    ended = subprocess.run(
        ["sh", "-c", f"{shlex.join([*COMMAND, *arguments('csv', 't.csv')])} >&-"],
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 2
    assert not Path("c.json").exists()


def test_wrong_use_of_streams(desk):
    write(frame([1]), "t.csv")
    refused(desk, "--certificate FILE", arguments=["t.csv"], output="-")
    refused(desk, "--json", arguments=["t.csv", "--json"], output="-", certificate="c.json")
    refused(desk, "--format csv, ndjson or ipc", arguments=["-"], output="o.csv")
    refused(
        desk,
        "--format csv, ndjson or ipc",
        arguments=["t.csv"],
        output="-",
        certificate="c.json",
        format="parquet",
    )
    refused(desk, "another file", arguments=["t.csv"], output="o.csv", certificate="t.csv")
    Path("c.json").write_text("mine")
    refused(desk, "exists", arguments=["t.csv"], output="o.csv", certificate="c.json")
    refused(
        desk,
        "must not lie beside",
        arguments=["t.csv"],
        output="-",
        certificate="share/offrecord/c.json",
    )
