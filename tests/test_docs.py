"""What README and docs show is what happens: every Python block runs, every command prints what
stands below it, no link leads nowhere, and no option, verb, target or name is made up.
"""

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

import docs_world
import offrecord
from offrecord import cli
from offrecord.cli.app import app
from offrecord.tables.meaning import posterior

ROOT = Path(__file__).parent.parent
PAGES = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
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


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, what it is called, its text."""

    page: str
    line: int
    kind: str
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}"

    @property
    def commands(self):
        """Of a console block: each command, and what is shown below it."""
        parts = re.split(r"^\$ ", self.text, flags=re.M)
        if len(parts) == 1:
            return [(line, "") for line in self.text.splitlines()]
        return [(part.partition("\n")[0], part.partition("\n")[2].strip()) for part in parts[1:]]


def blocks_of(page):
    for found in re.finditer(r"^( *)```(\w*)\n(.*?)^\1```$", PAGES[page], re.M | re.S):
        line = PAGES[page][: found.start()].count("\n") + 1
        text = re.sub(f"^{found[1]}", "", found[3], flags=re.M)
        yield Block(page, line, found[2], text)


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
SHOWN = ("python", "console", "text")
RUN = sorted({block.page for block in BLOCKS if block.kind in SHOWN} - {*ELSEWHERE})


def why_not(words):
    return next((why for begin, why in NOT_RUN.items() if re.match(begin, words)), None)


# ---- what is shown runs


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


# ---- what is named is there


def inline():
    """Each span of code outside of blocks: its page and its text."""
    for page, text in PAGES.items():
        bare = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.M | re.S)
        for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", bare):
            yield page, span


def verbs():
    """The options of each verb, its parts' included."""
    found = {}
    for name, verb in typer.main.get_command(app).commands.items():
        parts = [verb, *getattr(verb, "commands", {}).values()]
        found[name] = {
            o for part in parts for p in part.params for o in (*p.opts, *p.secondary_opts)
        }
        found[name] |= {"--help"}
    return found


def test_every_command_in_a_line_of_text_has_its_verb_and_options():
    known = verbs()
    for page, span in inline():
        found = re.match(r"(?:.*\| )?offrecord (\w+)(.*)", span)
        if found:
            assert found[1] in known, f"{page}: {span}"
            assert set(re.findall(r"(?<!\S)--[a-z-]+", found[2])) <= known[found[1]], (
                f"{page}: {span}"
            )


def test_every_option_that_is_named_exists():
    known = set().union(*verbs().values()) | {"--version"}
    for page, span in inline():
        for option in re.findall(r"^--[a-z-]+", span):
            assert option in known, f"{page}: {span}"


def test_every_public_name_that_is_named_exists():
    for page, span in [*inline(), *((b.page, b.text) for b in BLOCKS if b.kind == "python")]:
        for name in re.findall(r"\boff\.([A-Za-z]\w*)", span):
            assert name in offrecord.__all__, f"{page}: {span}"


def test_every_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    named = [(page, span) for page, span in inline()]
    named += [(b.page, command) for b in BLOCKS if b.kind == "console" for command, _ in b.commands]
    for page, words in named:
        for target in re.findall(r"^make ([a-z-]+)", words):
            assert target in targets, f"{page}: make {target}"


def test_what_a_budget_means_is_as_the_page_says():
    rows = re.findall(r"^\| (\d+) % \|(.*)\|$", PAGES["docs/choosing.md"], re.M)
    assert len(rows) == 6
    for before, after in rows:
        told = [100 * posterior(int(before) / 100, budget) for budget in (0.1, 0.5, 1, 2, 3)]
        assert re.findall(r"[\d.]+", after) == [f"{share:.1f}" for share in told]


def test_every_public_name_is_in_the_reference():
    told = Counter(
        name
        for page, text in PAGES.items()
        if page.startswith("docs/api/")
        for name in re.findall(r"^::: offrecord\.(\w+)$", text, re.M)
    )
    assert told == Counter(offrecord.__all__)


# ---- links


def anchors(text):
    """What headings are called in links, as GitHub and the site make it of their words."""
    bare = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.M | re.S)
    for heading in re.findall(r"^#+ (.*)$", bare, re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        yield re.sub(r" ", "-", re.sub(r"[^\w\- ]", "", words.strip()))


def test_every_link_leads_somewhere():
    for page, text in PAGES.items():
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
            assert not re.match(r"[a-z]+:", target), f"{page}: {target} leads out of the project"
            path = (ROOT / page).parent / target if target else ROOT / page
            assert path.exists(), f"{page}: {target}"
            if anchor:
                there = path.read_text(encoding="utf-8")
                assert anchor in anchors(there), f"{page}: {target}#{anchor}"


def test_every_page_is_in_the_navigation():
    """And each of them once."""
    listed = re.findall(r"[\w/-]+\.md$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)
    assert Counter(f"docs/{one}" for one in listed) == Counter(set(PAGES) - {"README.md"})


def test_every_fact_the_code_names_has_its_page():
    named = set()
    for source in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r"\b[FRO]\d+\b", source.read_text(encoding="utf-8")))
    proven = set()
    for page in (ROOT / "docs" / "proofs").glob("[FRO]*.md"):
        headings = re.findall(r"^##? ([FRO]\d+)\b", page.read_text(encoding="utf-8"), re.M)
        proven |= {page.name.split("-")[0], *headings}
    assert named <= proven
    for path in re.findall(
        r"docs/\S+\.md",
        "".join(s.read_text(encoding="utf-8") for s in (ROOT / "src").rglob("*.py")),
    ):
        assert (ROOT / path).exists(), path
