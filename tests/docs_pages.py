"""README and the pages of docs, with their blocks and spans of code."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
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


def inline():
    """Each span of code outside of blocks: its page and its text."""
    for page, text in PAGES.items():
        bare = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.M | re.S)
        for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", bare):
            yield page, span
