"""A stream takes little memory, and what waits on disk holds nothing that was redacted."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples
from offrecord.tables.engines import stream
from streams import CHAIN, COLUMNS, ROOMS, frame
from table_files import write


def test_rows_wait_where_nothing_is_left_of_them(tmp_path, monkeypatch):
    """Whoever wants the rows may stop asking, and hold on to what gives them: an engine's thread,
    the trace of an error.
    """
    monkeypatch.setattr(stream, "_PART", 30)
    pieces = frame([3, 1, 2]).partition_by("room", maintain_order=True)
    waiting = stream._Order(np.full(3, 17), np.array([2, 0, 1])).sorted(
        iter(pieces), tmp_path / "o.csv"
    )
    assert next(waiting)["room"].unique().to_list() == [1, 2]
    assert not [*tmp_path.iterdir()]


@pytest.mark.filterwarnings("ignore::offrecord.errors.ChosenByValue")
@pytest.mark.parametrize(
    ("mechanism", "varied"),
    [("best-local", pl.col("hidden")), ("owner", pl.col("hour") == 8)],
    ids=["local", "owner"],
)
def test_rows_that_wait_hold_nothing_that_was_redacted(tmp_path, monkeypatch, mechanism, varied):
    """Twins that differ in private values alone, for the owner in those inside of runs, which no
    walk looks at, leave the same bytes in every file on the way, while it is there.
    """
    monkeypatch.setattr(stream, "_PART", 60)
    (tmp_path / "out").mkdir()
    waited = []
    for twin in range(2):
        table = frame(ROOMS["another order"])
        table = table.with_columns(hidden=pl.col("hidden") | pl.col("hour").is_between(7, 9))
        table = table.with_columns(
            pl.when(varied).then(pl.lit(twin)).otherwise("state").cast(pl.Int8).alias("state")
        )
        table.write_parquet(tmp_path / f"t{twin}.parquet")
        seen, temporary = [], stream.TemporaryFile

        @contextmanager
        def look(*, seen=seen, temporary=temporary, **where):
            with temporary(**where) as file:
                yield file
                file.seek(0)
                seen.append(file.read())

        monkeypatch.setattr(stream, "TemporaryFile", look)
        options = COLUMNS | {"private": "hidden", "model": CHAIN, "epsilon": 1.5, "dataset": "d"}
        options["mechanism"] = mechanism
        file = tmp_path / "out" / "o.parquet"
        off.redact_file(
            tmp_path / f"t{twin}.parquet",
            file,
            force=True,
            key_file=tmp_path / "k" / "key.json",
            **options,
        )
        monkeypatch.setattr(stream, "TemporaryFile", temporary)
        waited.append([*seen, file.read_bytes()])
    assert any(len(content) > 1000 for content in waited[0][:-1])
    assert waited[0] == waited[1]


def test_memory_is_bounded(tmp_path):
    """Eight times the rows take little more memory; in memory they would take several times as
    much.
    """
    CHAIN.save(tmp_path / "model.json")
    (tmp_path / "out").mkdir()
    peaks = []
    for millions in (1, 8):
        rows = millions * 10**6
        rng = np.random.default_rng(0)
        chains = np.repeat(np.arange(rows // 50, dtype=np.int32), 50)
        pl.DataFrame(
            {
                "room": chains,
                "hour": np.tile(np.arange(50, dtype=np.int16), rows // 50),
                "state": samples(CHAIN, rows // 50, 50, rng).ravel().astype(np.int8),
                "hidden": rng.random(rows) < 0.01,
            }
        ).write_parquet(tmp_path / "t.parquet", row_group_size=1 << 18)
        program = [
            "import resource, offrecord as off",
            (
                "off.redact_file('t.parquet', 'out/o.parquet', value='state', order='hour',"
                " by='room', private='hidden', epsilon=1, model='model.json', dataset='d',"
                " key_file='k/key.json', force=True, accept='another-release', mechanism='window')"
            ),
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)",
        ]
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(program)],
            cwd=tmp_path,
            capture_output=True,
            check=True,
        )
        peaks.append(int(done.stdout))
    assert peaks[1] < 1.5 * peaks[0], peaks


def test_a_large_file_is_streamed_without_being_asked(desk, monkeypatch):
    write(frame([1, 2, 3]), "t.parquet")
    used = []
    redact_file = stream.redact_file
    monkeypatch.setattr(
        stream, "redact_file", lambda *a, **o: used.append(a) or redact_file(*a, **o)
    )
    assert desk("t.parquet", output="a.csv")[0] == 0
    assert not used
    monkeypatch.setattr(os, "sysconf", lambda name: 100 if name == "SC_PAGE_SIZE" else 10)
    assert desk("t.parquet", output="b.csv")[0] == 0
    assert len(used) == 1
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
