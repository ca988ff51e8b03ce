"""What README and docs show is what happens: every Python block runs, every command prints what
stands below it.
"""

import re
import shlex
from pathlib import Path

import pytest

from offrecord import cli

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, re.S))
def test_python_examples_run(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    ("command", "shown"), re.findall(r"```console\n\$ offrecord (.*?)\n(.*?)```", README, re.S)
)
def test_commands_print_what_is_shown(command, shown, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(shlex.split(command)) == 0
    assert capsys.readouterr().out.strip() == shown.strip()


def test_every_link_leads_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


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
