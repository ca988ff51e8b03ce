"""What README and docs show is what happens: every Python block runs, every command prints what
stands below it. test_docs_names.py: what they name is there.
"""

import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

import docs_world
from docs_pages import BLOCKS, PAGES, ROOT, blocks_of
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
#: Pages whose snippets are run elsewhere, and where.
ELSEWHERE = {
    "docs/certificate.md": "tests/release/test_certificate.py, with a certificate of each kind"
}
#: Printed by what the project does not hold, by page and first words; all else in a text block
#: stands below what prints it, or is shown on another page where it does.
RECORDED = {
    ("docs/attack.md", "within ε = 1: the release of illness"): "a table and coins of its own",
    ("docs/independent-chains.md", "Audit: unfit. Held back: stretches"): "two more airports",
    ("docs/models.md", "Too few transitions: 50 of 121"): "minutes of two people's activities",
}
SHOWN = ("python", "console", "text")
RUN = sorted({block.page for block in BLOCKS if block.kind in SHOWN} - {*ELSEWHERE})


def why_not(words):
    return next((why for begin, why in NOT_RUN.items() if re.match(begin, words)), None)


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """The files that pages name: a folder of those of rooms, and one of those of people."""
    folders = {}
    for made in (docs_world.rooms, docs_world.people):
        folders[made] = tmp_path_factory.mktemp("world")
        with chdir(folders[made]):
            made()
    return folders


@pytest.fixture
def around(world, tmp_path, monkeypatch):
    """Stands in a folder of the files that a page names."""

    def around(page):
        made = docs_world.people if "illness.csv" in PAGES[page] else docs_world.rooms
        for file in world[made].iterdir():
            if file.is_file():
                (tmp_path / file.name).write_bytes(file.read_bytes())
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")

    return around


@pytest.mark.parametrize("page", RUN)
def test_what_a_page_shows_runs(page, around, tmp_path, monkeypatch, capsys):
    around(page)
    names, printed = {"__name__": "__main__"}, ""
    for number, block in enumerate(blocks_of(page)):
        # alternatives of one release: each block as if nothing had left before
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data" / str(number)))
        if block.kind == "python" and not why_not(block.text):
            remove_outputs(block.text)
            exec(compile(block.text, str(block), "exec"), names)
            printed = capsys.readouterr().out
        elif block.kind == "console":
            printed = "".join(
                run(command, shown, block, capsys) for command, shown in block.commands
            )
        elif block.kind == "text" and not recorded(block):
            assert is_shown(block.text, printed) or is_shown_elsewhere(block), block


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


def recorded(block):
    return any(block.page == page and block.text.startswith(words) for page, words in RECORDED)


def is_shown_elsewhere(block):
    """All its lines stand below a command of another page, whose test runs it."""
    others = [one for one in BLOCKS if one.kind == "console" and one.page != block.page]
    shown = [shown for one in others for command, shown in one.commands if not why_not(command)]
    known = {line.rstrip() for text in shown for line in text.splitlines()}
    return {line.rstrip() for line in block.text.splitlines()} <= known


def test_the_example_of_the_local_protocol_comes_to_the_same(capsys):
    runpy.run_path(str(ROOT / "examples" / "local_protocol.py"), run_name="__main__")
    assert "decided without a coin: True" in capsys.readouterr().out


def test_what_helps_when_little_is_left_is_as_measured(capsys):
    """One row of ten; `python docs/choosing.py` makes all of them, in two minutes."""
    made = runpy.run_path(str(ROOT / "docs" / "choosing.py"))
    made["row"]("steps of 6 hours", 0.01, 6, 1.0)
    assert capsys.readouterr().out in PAGES["docs/choosing.md"]


def test_nothing_is_listed_that_is_not_there():
    for page, words in RECORDED:
        assert any(block.text.startswith(words) for block in blocks_of(page)), words
    for where in ELSEWHERE.values():
        assert (ROOT / where.partition(",")[0]).exists()


def test_blocks_say_what_they_are():
    """A command in a block without a kind would not be run."""
    kinds = {"", "python", "console", "text", "json"}
    for block in BLOCKS:
        assert block.kind in kinds, block
        if block.kind in ("", "text", "json"):
            assert not re.search(r"^\$ |^(offrecord|make|pip|python) ", block.text, re.M), block
