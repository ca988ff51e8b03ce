"""A full disk, a late engine or an interrupt loses and leaves nothing, and nothing is spilled."""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from needles import NEEDLE_INT
from offrecord.errors import InputError
from offrecord.files import beside
from releasing import COMMAND
from twins import SUFFIX, model, redacted, table, twins, written

#: Private records that alone say NEEDLE were chosen by their value, and that is said: to who runs
#: it, in no file.
CHOSEN = r"(offrecord: warning: private records have other values .+\n)?"


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


@pytest.mark.parametrize(
    "name",
    ["out.parquet", "out.arrow", "out.csv", "out.ndjson", "out.csv.gz", "out.ndjson.zst"],
)
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
@pytest.mark.parametrize("kind", ["csv", "parquet", "ipc", "ndjson"])
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
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / f"out{SUFFIX[kind]}"
    monkeypatch.setattr(pl.LazyFrame, f"sink_{kind}", late)
    with pytest.raises(KeyboardInterrupt if end is KeyboardInterrupt else InputError):
        release.write(out)
    assert len(targets) == 1
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


@pytest.mark.parametrize(
    "name",
    ["large.parquet", "large.csv", "large.ndjson", "large.arrow", "large.csv.gz"],
)
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
        " key_file=sys.argv[3], accept='model')"
    )
    files = [
        folder / "large.parquet",
        folder / "model.json",
        options[options.index("--key-file") + 1],
    ]
    small = os.environ | SMALL | {"POLARS_OOC_SPILL_DIR": str(tmp_path / "spilled")}
    subprocess.run(
        [sys.executable, "-c", script, *map(str, files)],
        env=small,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert list((tmp_path / "spilled").iterdir()) == []
