"""The report in a real browser: nothing serious for who reads it with other means than eyes."""

import pytest
from test_explorer_in_browser import serious


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The demo's own report."""
    from offrecord import cli

    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(folder / "data"))
        assert cli.main(["demo", "--output", str(folder / "out")]) == 0
    (found,) = (folder / "out").glob("*.report.html")
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, report, scheme):
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    page, strays = context.new_page(), []
    context.on("request", lambda one: one.url.startswith("http") and strays.append(one.url))
    page.goto(report.as_uri())
    assert serious(page) == []
    assert strays == []
    context.close()


def test_it_fits_a_phone(browser, report):
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()
