"""A killed run leaves a whole release or none, and no needle."""

import signal
import subprocess
import time

import pytest

from needles import assert_whole_or_absent
from releasing import COMMAND


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
                time.sleep(0.001)
        time.sleep(delay)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


MOMENTS = [("start", 0.4), *(("partial", 0.005 * i**1.5) for i in range(7)), ("start", 0.9)]
FEW = MOMENTS[1:8:2]


@pytest.mark.parametrize(
    ("name", "moments"),
    [
        ("out.arrow", MOMENTS[::2]),
        ("out.csv", FEW),
        pytest.param("out.arrow", MOMENTS, marks=pytest.mark.soak),
    ],
    ids=["arrow", "csv", "arrow at more moments"],
)
def test_a_kill_leaves_all_or_nothing(large, tmp_path, name, moments):
    folder, options = large
    out = tmp_path / name
    endings = set()
    for moment in moments:
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
    for moment in FEW:
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
