"""What README and docs name is there: no link leads nowhere, no option, verb, target, name or fact
is made up, no public name and no page is left out.
"""

import json
import math
import re
from collections import Counter

import typer

import offrecord
from docs_pages import BLOCKS, PAGES, ROOT, inline
from offrecord.cli.app import app


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


def test_every_script_that_is_named_exists():
    named = [script for _, span in inline() for script in re.findall(r"^python (\S+\.py)", span)]
    assert all((ROOT / script).is_file() for script in named)
    assert "examples/local_protocol.py" in named


def test_what_a_budget_means_is_as_the_page_says():
    rows = re.findall(r"^\| (\d+) % \|(.*)\|$", PAGES["docs/choosing.md"], re.M)
    assert len(rows) == 6
    for before, after in rows:
        share = int(before) / 100
        likely = [share * math.exp(budget) for budget in (0.1, 0.5, 1, 2, 3)]
        told = [100 * one / (1 - share + one) for one in likely]
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
        named |= set(re.findall(r"\b[FROS]\d{1,2}\b", source.read_text(encoding="utf-8")))
    proven = set()
    for page in (ROOT / "docs" / "proofs").glob("*.md"):
        headings = re.findall(r"^##? ([FROS]\d+)\b", page.read_text(encoding="utf-8"), re.M)
        proven |= {page.name.split("-")[0], *headings}
    assert named <= proven
    for path in re.findall(
        r"docs/\S+\.md",
        "".join(s.read_text(encoding="utf-8") for s in (ROOT / "src").rglob("*.py")),
    ):
        assert (ROOT / path).exists(), path


def test_the_schema_of_certificates_is_that_of_the_code():
    from offrecord.release.certificate import Certificate

    kept = (ROOT / "docs" / "certificate.schema.json").read_text(encoding="utf-8")
    assert json.loads(kept) == Certificate.model_json_schema()


def test_there_are_at_most_25_pages():
    """Besides proofs and the API."""
    apart = ("README.md", "docs/proofs/", "docs/api/")
    assert len([page for page in PAGES if not page.startswith(apart)]) <= 25
