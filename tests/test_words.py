"""Words: the glossary is short, and words that were retired do not come back."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Retired words, and the plain ones that took their place.
RETIRED = {
    "tell|told|tells|telling": "leak, leakage",
    "referees?": "check",
    "menus?": "options",
    "crews?": "process pool",
    "workshops?": "planner",
    "stock": "cache",
    "ways": "paths",
    "sights?": "observation",
    "(?:a|one|two|first|second|another|next) looks?": "observation, pass",
    "stretch(?:es)?": "run, range",
    "stamping|stamped": "overlay",
    "openings?": "burn-in",
    "programmes?": "program",
    "doors?": "function",
    "rooms?": "margin",
}
#: What may stay: lines with these words, by file. Tables of rooms are the examples of the pages.
EXCEPTIONS = {
    "rooms?": r"^docs/|^README|^CHANGELOG|tables/io/parquet\.py|tables/look\.py",
    "openings?": r"^docs/literature\.md",
}


def pages():
    """Every source and page, by its path."""
    files = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    for folder, ending in (("src", "py"), ("src", "html"), ("src", "js"), ("docs", "md")):
        files += sorted((ROOT / folder).rglob(f"*.{ending}"))
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


@pytest.mark.parametrize("words", RETIRED)
def test_retired_words_do_not_come_back(words):
    allowed = EXCEPTIONS.get(words, "(?!)")
    pattern = re.compile(rf"(?<![A-Za-z.])(?:{words})(?![A-Za-z])", re.I)
    found = [
        f"{page}:{number}: {line.strip()}"
        for page, text in pages().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line) and not re.search(allowed, page)
    ]
    assert found == [], f"write {RETIRED[words]}"


def test_the_glossary_has_at_most_thirty_words():
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", glossary, re.M)[2:]
    assert len(words) == len(set(words)) <= 30
