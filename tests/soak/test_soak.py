"""A small sample of every campaign of `make soak`, by the same code; and what the runner sees."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from soak import running

ROOT = Path(__file__).parents[2]
#: Of each campaign, kinds that take little, and how many cases.
SAMPLE = [
    ("rules", "stopping rules in tables", 10),
    ("rules", "window, order 1", 10),
    ("rules", "owner, order 1", 3),
    ("coverage", "three values with zeros, 500", 1),
    ("fits", "20 chains of 200", 1),
    ("hostile", "redact, table.csv", 10),
    ("hostile", "verify, certificate", 6),
    ("hostile", "redact, options", 10),
    ("twins", "table.csv", 5),
    ("kills", ".csv", 1),
]


@pytest.mark.parametrize(("campaign", "kind", "cases"), SAMPLE)
def test_a_sample_of_each_campaign_finds_nothing(campaign, kind, cases):
    done = running.watched(campaign, kind, 0, 240.0, seconds=240.0, cases=cases)
    assert done.found == []
    assert done.cases == cases


def _run_here(found, *, case):
    """A batch of one kind in a process of its own, as `running.watched` starts it."""
    program = (
        "import sys, time, os, random; from itertools import count; from soak import running\n"
        "def case(rng, folder):\n"
        f"    {case}\n"
        "    return running.Notes(good=1)\n"
        "running.batch('c', case, 'k', range(3), 60)"
    )
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("case", "said", "code"),
    [
        ("pass", '"notes": {"good": 1}', 0),
        ("raise running.ViolationError('what must not be')", '"found": "what must not be"', 0),
        ("{}['a fault']", "KeyError: 'a fault'", 0),
        ("os.abort()", "", -6),
    ],
)
def test_what_happens_is_seen(case, said, code):
    done = _run_here([], case=case)
    assert done.returncode == code
    assert said in done.stdout
    assert done.stdout.count("\n") == (3 if code == 0 else 0)


def test_a_process_that_says_nothing_is_killed(monkeypatch, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True
    )
    with (tmp_path / "said").open("w+") as said:
        began = time.monotonic()
        assert not running._ends(process, said.fileno(), -29.5)
        assert time.monotonic() - began < 20
    assert process.returncode is not None


def test_a_case_is_the_same_each_time():
    one, other = running.numbers("rules", "a", 7), running.numbers("rules", "a", 8)
    assert running.numbers("rules", "a", 7).random() == one.random() != other.random()


def test_a_run_goes_on_where_it_was(tmp_path):
    done = running.Result("rules", "a", 3, 4, {"good": 4}, [], 1.0, "a test")
    assert running.record(done, tmp_path)
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"campaign": "rules", "ki')  # killed while writing
    assert list(running.results(tmp_path)) == [done]
    assert os.listdir(tmp_path) == ["results.jsonl"]
