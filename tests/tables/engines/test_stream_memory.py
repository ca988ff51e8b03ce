"""A stream takes little memory."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl

import offrecord as off
from definition import samples
from streams import CHAIN, frame
from table_files import write


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
    assert peaks[1] < 1.75 * peaks[0], peaks


def test_a_large_file_is_streamed_without_being_asked(desk, monkeypatch):
    write(frame([1, 2, 3]), "t.parquet")
    used = []
    redact_file = off.redact_file
    monkeypatch.setattr(off, "redact_file", lambda *a, **o: used.append(a) or redact_file(*a, **o))
    assert desk("t.parquet", output="a.csv")[0] == 0
    assert not used
    monkeypatch.setattr(os, "sysconf", lambda name: 100 if name == "SC_PAGE_SIZE" else 10)
    assert desk("t.parquet", output="b.csv")[0] == 0
    assert len(used) == 1
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
