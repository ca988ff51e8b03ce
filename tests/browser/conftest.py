"""The explorer, served, and Debian's Chromium on it. All of it needs `make test-browser`."""

import os
import re
import shutil
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

CHROMIUM = shutil.which("chromium")
#: A browser of its own, which asks nobody for anything.
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name == "browser":
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """Where the explorer is served, by the command itself."""
    code = "from offrecord.cli import run; run()"
    command = [sys.executable, "-c", code, "explore", "--no-browser", "--port", "0"]
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path_factory.mktemp("data"))}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())[0]
    finally:
        server.terminate()
        server.communicate(timeout=60)


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="make test-browser installs it")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield started
        started.close()


@pytest.fixture
def opened(browser, address):
    """Opens the explorer at a state. What it asks elsewhere for, and what goes wrong in it, fails
    the test.
    """
    contexts, strays, faults = [], [], []

    def opened(query="", *, fragment="", ready=True, **look):
        look = {"viewport": {"width": 1280, "height": 900}} | look
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **look)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)

        def asked(request):
            if urlsplit(request.url).hostname not in ("127.0.0.1", None):
                strays.append(request.url)

        context.on("request", asked)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: said.type == "error" and faults.append(said.text))
        page.goto(f"{address}?{query}{fragment}")
        if ready:
            page.locator("body[data-settled=true]").wait_for(state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not strays
    assert [one for one in faults if "status of 422" not in one] == []
