"""Where a limit leaves the drawing engine no room, it would end the process: nothing is drawn."""

import subprocess
import sys

import pytest

from offrecord import MarkovChain
from offrecord.charts import undrawable

pytest.importorskip("resource", reason="there is no such limit on this system")
LIMIT = 16  # GiB, as on many clusters
COMMAND = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({LIMIT} << 30, {LIMIT} << 30))
from offrecord.cli import run
run()
"""
DESIGN = ["--alpha", "0.1", "--beta", "0.3", "--n", "10", "--private", "4", "--epsilon", "1"]


def limited(*arguments, cwd):
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_there_is_room_without_a_limit():
    assert undrawable() is None


def test_a_picture_is_refused_in_one_line(tmp_path):
    done = limited("compare", *DESIGN, "--mechanism", "window", "--picture", "a.svg", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "ulimit -v" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_explorer_says_so(tmp_path):
    done = limited("explore", "--no-browser", "--port", "0", cwd=tmp_path)
    assert done.returncode == 2
    assert "ulimit -v" in done.stderr


def test_a_release_has_its_report_all_the_same(tmp_path):
    """With the numbers of its pictures, which stand below them anyway."""
    (tmp_path / "a.csv").write_text("t,v,p\n" + "".join(f"{t},0,{t == 9}\n" for t in range(40)))
    (tmp_path / "key").mkdir()
    MarkovChain.binary(0.1, 0.3).save(tmp_path / "m.json")
    words = (
        "redact a.csv --value v --order t --single-chain --private p --model m.json --epsilon 1"
        " --dataset d --key-file key/key.json -o out.csv --mechanism window --accept-model"
    )
    done = limited(*words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out.csv.report.html").read_text(encoding="utf-8")
    assert "Not drawn: pictures take" in page
    assert "<svg" not in page
    assert "The same in numbers" in page
