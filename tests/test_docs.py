"""What README and docs show is what happens: every Python block runs, every command prints what
stands below it. test_docs_names.py: what they name is there.
"""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

import docs_world
from docs_pages import BLOCKS, ROOT, blocks_of
from offrecord import cli

#: What no test runs from the page, by how the command or the snippet begins, and why.
NOT_RUN = {
    r"make \S+$": "a target of this project's: tests look whether it is there",
    r"(\.venv/bin/)?(python -m )?pip install ": "asks a package registry",
    r"python -m http\.server": "serves until it is stopped",
    r"offrecord explore": "serves until it is stopped; tests/explorer and tests/browser run it",
    r"from offrecord\.tables\.spark": "needs Java; `make test-spark` runs tests of the same call",
}
#: What may stand beside `offrecord` in a pipe.
PIPED = {"offrecord", "echo", "xzcat", "xz"}
#: Text that is a drawing.
DRAWN = [block for block in BLOCKS if "──▶" in block.text]
SHOWN = ("python", "console", "text")
RUN = sorted({block.page for block in BLOCKS if block.kind in SHOWN})


def why_not(words):
    return next((why for begin, why in NOT_RUN.items() if re.match(begin, words)), None)


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """The files that pages name."""
    folder = tmp_path_factory.mktemp("world")
    with chdir(folder):
        docs_world.rooms()
    return folder


@pytest.fixture
def around(world, tmp_path, monkeypatch):
    """Work in a folder of these files."""
    for file in world.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@pytest.mark.parametrize("page", RUN)
def test_what_a_page_shows_runs(page, around, tmp_path, monkeypatch, capsys):
    names, printed = {"__name__": "__main__"}, ""
    for number, block in enumerate(blocks_of(page)):
        # alternatives of one release: each block as if nothing had left before
        data = tmp_path / "data" / str(number)
        keep_key(tmp_path / "data" / str(number - 1), data)
        monkeypatch.setenv("XDG_DATA_HOME", str(data))
        if block.kind == "python" and not why_not(block.text):
            remove_outputs(block.text)
            exec(compile(block.text, str(block), "exec"), names)
            printed = capsys.readouterr().out
        elif block.kind == "console":
            printed = "".join(
                run(command, shown, block, capsys) for command, shown in block.commands
            )
        elif block.kind == "text" and block not in DRAWN:
            assert is_shown(block.text, printed), block


def keep_key(before, data):
    """The key of the block before, with what fits saw, but without its ledger."""
    (data / "offrecord").mkdir(parents=True)
    for kept in ("key.json", "key.fits"):
        file = before / "offrecord" / kept
        if file.is_dir():
            shutil.copytree(file, data / "offrecord" / kept)
        elif file.exists():
            shutil.copy(file, data / "offrecord" / kept)


def run(command, shown, block, capsys):
    """Runs one command; what it printed."""
    if why_not(command):
        return ""
    remove_outputs(command)
    if re.match(r"offrecord [^|<>]*$", command):
        code = cli.main(shlex.split(command)[1:])
        printed, said = capsys.readouterr()
    else:
        programs = {part.split()[0] for part in command.split("|")}
        assert programs <= PIPED, f"{block}: {command} is neither run nor listed in NOT_RUN"
        piped = ["bash", "-c", f"set -o pipefail; {command}"]
        shell = subprocess.run(piped, capture_output=True, text=True, check=False)
        code, printed, said = shell.returncode, shell.stdout, shell.stderr
    assert code == 0, f"{block}: {command}\n{said}"
    assert not shown or is_shown(shown, printed), f"{block}: {command}\n{printed}"
    return printed


def remove_outputs(text):
    """What a page's command or snippet makes is not there before, whoever else made it."""
    made = r"(?:-o |--output |--certificate |--picture |\.write\(\"|\.save\(\")([\w./-]+)"
    for output in re.findall(made, text):
        for path in (Path(output), Path(f"{output}.certificate.json")):
            path.unlink(missing_ok=True)


def is_shown(shown, printed):
    """Line by line; a line of … stands for any number of them."""
    lines = [line.rstrip() for line in shown.strip().splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else re.escape(f"{line}\n") for line in lines)
    return re.fullmatch(pattern, "".join(f"{s.rstrip()}\n" for s in printed.strip().splitlines()))


def test_the_example_of_the_local_protocol_comes_to_the_same(capsys):
    runpy.run_path(str(ROOT / "examples" / "local_protocol.py"), run_name="__main__")
    assert "decided without a coin: True" in capsys.readouterr().out


def test_blocks_say_what_they_are():
    """A command in a block without a kind would not be run."""
    kinds = {"", "python", "console", "text", "json"}
    for block in BLOCKS:
        assert block.kind in kinds, block
        if block.kind in ("", "text", "json"):
            assert not re.search(r"^\$ |^(offrecord|make|pip|python) ", block.text, re.M), block
