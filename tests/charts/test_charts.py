"""Charts: drawn as SVG, PNG and HTML, with words, without asking anybody for anything."""

import re

import numpy as np
import pytest

from offrecord import charts
from offrecord.charts.pictures import rule_regions
from offrecord.errors import InputError

RULE = [
    {"distance": at, "name": name, "redaction": chance}
    for at, chance in ((-2, 0.0), (-1, 0.5), (0, 1.0), (1, 1.0), (2, 0.25), (3, 0.0))
    for name in ("a", "b")
]
CURVE = [
    {"epsilon": e, "mechanism": name, "utility": u + e / 10}
    for e in (0.5, 1.0, 2.0)
    for name, u in (("owner", 0.5), ("window", 0.3))
]
INFLUENCE = [
    {"record": at, "name": "0", "influence": abs(1 / at), "low": 0.1, "high": 1.2}
    for at in (-2, -1, 1, 2)
]
EVERY = {
    "rule": lambda: charts.rule_chart(
        RULE, ["a", "b"], [{"distance": 1, "probability": 0.5}], description="it stops"
    ),
    "influence": lambda: charts.influence_chart(INFLUENCE, 1.0, ["0"]),
    "utility": lambda: charts.utility_chart(CURVE, ["owner", "window"], chosen=(1.0, 0.6)),
    "budgets": lambda: charts.utility_chart(CURVE, ["window"], chosen=(1.0, 0.6), log=True),
    "redaction": lambda: charts.redaction_chart([{"record": 1, **RULE[0]}], ["a"]),
    "leakage": lambda: charts.leakage_chart(np.linspace(0.5, 1.1, 100), 1.0),
    "ratios": lambda: charts.ratio_chart({"model": np.array([-0.5, np.inf, np.nan])}, 1.0),
    "belief": lambda: charts.belief_chart([{"knowledge": "before", "probability": 0.1}], "little"),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_chart_is_drawn_with_its_words_and_asks_for_nothing(name):
    chart = EVERY[name]()
    svg = chart.svg("one")
    assert svg.startswith('<svg role="img" aria-labelledby="one-title"')
    assert "<title" in svg
    assert f'id="one-title">{chart.title}' in svg
    assert "<script" not in svg
    assert not re.search(r'(?:href|src)="(?!#)', svg)
    assert svg.count('role="') == 1  # parts are not read one by one


def test_labels_are_text_whatever_they_hold():
    svg = charts.belief_chart([{"knowledge": "<b>", "probability": 0.1}], "little").svg()
    assert "<b>" not in svg
    assert "&lt;b&gt;" in svg


def test_no_line_crosses_the_private_record():
    """Whether records count from it, or from the beginning of a chain."""
    given = [row | {"record": row["record"] + 5, "side": row["record"] > 0} for row in INFLUENCE]
    for rows in (INFLUENCE, given):
        layers = charts.influence_chart(rows, 1.0, ["0"]).spec["layer"]
        (line,) = [one for one in layers if one["mark"]["type"] == "line"]
        assert line["encoding"]["detail"] == {"field": "side"}
        assert [row["side"] for row in line["data"]["values"]] == [False, False, True, True]


def test_leakage_bars_part_at_epsilon_and_hold_every_chain():
    chart = EVERY["leakage"]()
    rows = chart.spec["layer"][0]["data"]["values"]
    assert sum(row["chains"] for row in rows) == 100
    assert (
        sum(row["chains"] for row in rows if row["above"]) == (np.linspace(0.5, 1.1, 100) > 1).sum()
    )
    assert "of 100 plausible chains" in chart.description


def test_regions_are_read_off_the_rule():
    found = [(one["from"], one["to"], one["region"]) for one in rule_regions(RULE)]
    assert found == [
        (-2.5, -1.5, "S"),
        (-1.5, -0.5, "M"),
        (0.5, 1.5, "L"),
        (1.5, 2.5, "M"),
        (2.5, 3.5, "S"),
    ]


@pytest.mark.parametrize("kind", charts.FORMATS)
def test_files(kind, tmp_path):
    path = tmp_path / f"chart.{kind}"
    EVERY["utility"]().write(path)
    start = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE"}[kind]
    assert path.read_bytes().startswith(start)
    with pytest.raises(InputError, match="force=True"):
        EVERY["utility"]().write(path)


def test_other_formats_and_too_little_address_space_are_refused(tmp_path, monkeypatch):
    import resource

    with pytest.raises(InputError, match=r"\.svg, \.png, \.html"):
        charts.check_picture(tmp_path / "chart.pdf", force=False)
    monkeypatch.setattr(resource, "getrlimit", lambda what: (1 << 30, 1 << 30))
    with pytest.raises(InputError, match="address space"):
        charts.check_drawable()
    assert "<img" not in EVERY["utility"]()._repr_html_()
