"""The command line as its users meet it: whole processes for what matters there."""

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).with_name("offrecord"))
DESIGN = [
    "design",
    "--alpha",
    "0.01",
    "--beta",
    "0.8",
    "--n",
    "10",
    "--private",
    "1",
    "--epsilon",
    "1",
]


def test_outputs_that_cannot_be_are_refused_before_anything_is_written(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    compare = ["compare", *DESIGN[1:]]
    for arguments in (
        [*DESIGN, "-o", "a" * 300],
        [*compare, "--picture", "a" * 300 + ".svg"],
        [*compare, "--csv", "same.svg", "--picture", "same.svg"],
        ["reproduce", "-o", "a" * 300],
        [*DESIGN[:-4], "--epsilon", "1", "--private", "1-900000000", "--n", "1000000000"],
        ["design", "--model", "/dev/zero", "--n", "5", "--private", "1", "--epsilon", "1"],
    ):
        code, out, err = run(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["design", "--mechansim", "window"], "--mechansim (Possible options: --mechanism)"),
        (["ledger", "list", "--keyfile", "k"], "--keyfile (Possible options: --key-file)"),
        ([*DESIGN, "--mechanism", "windows"], "'windows'; did you mean window?"),
        ([*DESIGN, "--mechanism", "none"], "'none'"),
        ([*DESIGN, "--mechanism", "laplace"], "'laplace'"),
    ],
    ids=str,
)
def test_hints_come_only_where_something_is_near(run, words, hint):
    code, out, err = run(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.endswith(f" {hint}\n")


def test_help_answers_without_loading_anything_heavy():
    """How long that takes is measured by `make bench`; what makes it slow is known."""
    program = (
        "import sys, offrecord.cli as c; c.main(['--help']); print([m for m in sys.modules if m in"
        " set(sys.argv[1:])])"
    )
    heavy = ["numpy", "scipy", "polars", "pydantic", "rich"]
    done = subprocess.run(
        [sys.executable, "-c", program, *heavy], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    text = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    assert [text.index(verb) for verb in ("design", "compare", "reproduce")] == sorted(
        text.index(verb) for verb in ("design", "compare", "reproduce")
    )


def test_the_installed_command_fails_with_2_and_one_line():
    done = subprocess.run(
        [COMMAND, "design", "--n", "x"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "Traceback" not in done.stderr


def test_version(run):
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("offrecord ")
