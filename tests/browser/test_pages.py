"""Explorer and report in a browser: what moves when sliders move, and what axe finds."""

import pytest

from attacks.releases import CHAIN, drawn, frame_of, released


def axe(page):
    """What axe finds, by rule."""
    tool = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = tool.Axe().run(page).response
    return {one["id"]: [node["html"][:100] for node in one["nodes"]] for one in found["violations"]}


def value(page, name):
    return page.locator(f"#{name}").inner_text()


def test_the_explorer_opens_on_the_paper_and_follows_its_sliders(opened):
    page = opened()
    assert value(page, "utility") == "79.57 %"
    assert page.locator("#strip li").count() == 10
    assert page.locator("#influence-picture svg").count() == 1
    page.locator("#epsilon").fill("2")
    page.locator("#leakage-of", has_text="of ε = 2").wait_for()
    assert value(page, "utility") != "79.57 %"
    assert "epsilon=2" in page.url
    page.locator("#mechanism").select_option("owner")
    page.locator("#copy-design", has_text="owner").wait_for()
    page.locator("body[data-curves]").wait_for(state="attached")
    assert page.locator("#utility-picture svg").count() == 1


def test_what_is_wrong_stands_beside_its_field_and_the_last_answer_stays(opened):
    page = opened("n=12&private=3")
    page.locator("#private").fill("13")
    page.locator("#private-wrong", has_text="13").wait_for()
    assert page.locator("#private").get_attribute("aria-invalid") == "true"
    assert page.locator("#strip li").count() == 12


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_explorer(opened, width, scheme):
    look = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    page = opened("n=40&private=9,20-21&mechanism=owner", **look)
    page.locator("body[data-curves]").wait_for(state="attached")
    assert axe(page) == {}
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.filterwarnings("ignore::offrecord.errors.OffrecordWarning")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_report(browser, tmp_path, scheme):
    import numpy as np

    from offrecord.reports.report import report

    rng = np.random.default_rng(1)
    values = drawn(CHAIN, 12, 60, rng)
    release, path = released(tmp_path, frame_of(values, rng.random(values.shape) < 0.03))
    page_file = report(release, path).write(tmp_path / "page.html")
    for width in (400, 1280):
        look = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        context = browser.new_context(**look)
        page = context.new_page()
        page.goto(page_file.as_uri())
        assert axe(page) == {}
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        context.close()
