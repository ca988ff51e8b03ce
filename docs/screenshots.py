"""The pictures of the explorer and of a report in README and docs. `make screenshots` runs it."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent / "pictures"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
STATE = "alpha=0.05&beta=0.4&n=40&private=18&epsilon=1&mechanism=best-local&seed=5"


def main() -> None:
    """Write them, over what is there."""
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        explorer(browser)
        report(browser)
        browser.close()


def explorer(browser: Any) -> None:
    """Its first screen, once everything is drawn."""
    page = browser.new_page(viewport={"width": 1200, "height": 1010})
    with served() as address:
        page.goto(f"{address}?{STATE}")
        page.locator("body[data-pictures][data-curves]").wait_for(state="attached", timeout=300_000)
        page.screenshot(path=FOLDER / "explorer.png")
    page.close()


def report(browser: Any) -> None:
    """Of the demo's report, the rule around a private record and the curve."""
    with tempfile.TemporaryDirectory() as folder:
        code = "from offrecord.cli import run; run()"
        command = [sys.executable, "-c", code, "demo", "--output", f"{folder}/demo"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (written,) = Path(folder, "demo").glob("*.report.html")
        page = browser.new_page(viewport={"width": 1000, "height": 1010})
        page.goto(written.as_uri())
        page.get_by_role("heading", name="Around one private record").evaluate(
            "heading => window.scrollTo(0, heading.offsetTop - 20)"
        )
        page.screenshot(path=FOLDER / "report.png")
        page.close()


@contextmanager
def served() -> Iterator[str]:
    """The explorer's address, while it is served."""
    code = "from offrecord.cli import run; run()"
    command = [sys.executable, "-c", code, "explore", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+/", server.stdout.readline())
        assert found is not None
        yield found[0]
        server.terminate()


if __name__ == "__main__":
    main()
