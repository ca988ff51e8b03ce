"""The page itself: one file, no network, no script, readable aloud, and nothing in it runs."""

import re
import warnings

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.charts import budgets_chart, rule_chart, svg_of
from offrecord.reports.html import html_of
from offrecord.reports.page import Bullets, Listing, Page, Paragraph, Section
from reports.desks import Desk, drawn
from reports.pages import Reader

ORDER = ["asked", "left", "promise", "belief", "rule", "budgets", "costs", "further"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    desk = Desk(tmp_path_factory.mktemp("page"))
    release, out, certificate = desk.released("out.csv")
    return desk, release, out, certificate


def pages(made):
    desk, release, out, certificate = made
    yield off.report(release, out)
    yield off.report(certificate)
    yield off.report(certificate, out)
    yield off.report(certificate, out, private_list=desk.list)


def test_it_asks_nobody_for_anything(made):
    for report in pages(made):
        assert len(report.html.encode()) < 3_000_000
        plain = re.sub(r' xmlns(:xlink)?="http://www.w3.org/[^"]+"', "", report.html)
        for sign in (
            "http://",
            "https://",
            "url(",
            "//cdn",
            "@import",
            "<script",
            "<link",
            "javascript:",
            "<iframe",
            "<img",
            "<object",
            "<form",
        ):
            assert sign not in plain, sign
        reader = Reader(report.html)
        names = {name for _, attributes in reader.elements for name in attributes}
        assert not [name for name in names if name.startswith("on") or name in ("src", "href")]
        (policy,) = [one["content"] for one in reader.all("meta") if "http-equiv" in one]
        assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_sections_and_their_order(made):
    for report in pages(made):
        reader = Reader(report.html)
        found = [one["id"] for one in reader.all("section")]
        assert found == ["warnings", *ORDER]  # nobody said what the model was learned from
        assert [tag for tag, _ in reader.elements if tag in ("h1", "h2", "h3")] == (
            ["h1"] + ["h2"] * len(found)
        )
        order = [report.markdown.index(f"\n## {one.title}") for one in report.page.sections]
        assert order == sorted(order)


def test_it_reads_well_aloud(made):
    for report in pages(made):
        reader = Reader(report.html)
        assert reader.all("html") == [{"lang": "en"}]
        for landmark in ("header", "main", "footer", "title", "h1"):
            assert len(reader.all(landmark)) == 1 or landmark == "title"
        ids = [one["id"] for _, one in reader.elements if "id" in one]
        assert len(ids) == len(set(ids))
        for _, attributes in reader.elements:
            for name in ("aria-labelledby", "aria-describedby"):
                for target in attributes.get(name, "").split():
                    assert target in ids
        for one in reader.all("svg"):
            assert one["role"] == "img"
            assert one["aria-labelledby"]
        figures = reader.all("figure")
        assert len(figures) == len(reader.all("svg")) == len(reader.all("figcaption"))
        assert len(reader.all("desc")) == len(figures)
        assert len(reader.all("caption")) == len(reader.all("table"))
        assert all(one["scope"] in ("row", "col") for one in reader.all("th"))


def test_pictures_come_with_their_numbers(made):
    report = off.report(made[1], made[2])
    told = {section.name: section for section in report.page.sections}
    (table,) = [one for one in told["budgets"].blocks if isinstance(one, Listing)]
    assert len(table.rows) == len({point.epsilon for point in report.content.curve.points})
    assert any("(chosen)" in row[0] for row in table.rows)
    (table,) = [one for one in told["rule"].blocks if isinstance(one, Listing)]
    assert [row[1] for row in table.rows if row[0] == "0"] == ["private"]
    drawing = Reader(report.html)
    assert "chosen: ε = 1" in drawing.text()
    assert "this release" in drawing.text()


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style><svg onload=alert(1)>",
    'x role="',
    "]]>&lt;b&gt; ` | * _ [x](http://evil.example) $(rm -rf ~)",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_labels_are_text(desk, name):
    chain = off.MarkovChain([[0.9, 0.1], [0.3, 0.7]], labels=[name, "plain"])
    frame = drawn(chain).rename({"v": name, "who": f"who {name}"})
    frame = frame.with_columns(kept=pl.lit(name)).rename({"kept": f"kept {name}"})
    listed = pl.read_csv(desk.list).rename({"who": f"who {name}"})
    release = desk.redacted(
        frame,
        value=name,
        by=f"who {name}",
        model=chain,
        dataset=name,
        keep=[f"kept {name}"],
        keep_all=True,
        private_list=listed,
        publish_positions=True,
        mechanism="best-local",
    )
    report = off.report(release, "out.parquet")
    reader = Reader(report.html)
    assert not {"script", "img", "b"} & {tag for tag, _ in reader.elements}
    assert len(reader.all("svg")) == 2
    assert not any(one.startswith("on") for _, them in reader.elements for one in them)
    assert " ".join(name.split()) in reader.text()
    assert [one for one, _ in reader.texts].count(("html", "head", "title")) == 1
    assert f"# {name[:3]}" not in report.markdown or "<" not in name[:3]
    for line in report.markdown.splitlines():
        plain = re.sub(r"\\.", "", line)
        if not line.startswith(("offrecord ", "```")):
            assert "<" not in plain
            assert "](http" not in plain


def test_what_has_no_shape_is_told_by_its_number():
    """A change of the direction of writing, an escape: in a certificate that others wrote."""
    page = Page("\u202etitle", "lead\x1b", [Section("a", "b\x00", [Paragraph("c\u2066")])], "foot")
    text = html_of(page)
    assert not {"\u202e", "\x1b", "\x00", "\u2066"} & set(text)
    assert "\\u202etitle" in text


def test_a_label_does_not_reach_into_the_drawing():
    """Vega would take a dot or brackets in the name of a field for a path, and text for text."""
    names = ["a.b[0]", "</text><script>x</script>", 'x role="', "aria-label='\">"]
    rows = [
        {
            "distance": d,
            "name": name,
            "redaction": 0.5 if d else 1.0,
            "region": "M" if d else "private",
        }
        for d in (-1, 0, 1)
        for name in names
    ]
    drawn_ = svg_of(rule_chart(rows, names), "x", "<t>", "<d>")
    Reader(drawn_)
    assert "<script" not in drawn_
    assert not re.search(r'<[^>]*role="graphics', drawn_)  # it is told as one image
    assert "&lt;t&gt;" in drawn_
    points = [{"epsilon": 1.0, "mechanism": "</svg>", "released": 0.5}]
    Reader(svg_of(budgets_chart(points, ["</svg>"], 1.0, None), "y", "t", "d"))


def test_warnings_come_first(desk):
    release = desk.redacted(keep=["kept"], frame=desk.frame.with_columns(kept=pl.lit(1)))
    page = off.report(release).page
    assert page.sections[0].name == "warnings"
    (bullets,) = page.sections[0].blocks
    assert isinstance(bullets, Bullets)
    assert any("the guarantee does not cover them: kept" in one for one in bullets.items)


def test_an_alarm_is_large_and_first():
    page = Page("x", "y", [Section("not-verified", "Not verified", [Bullets(["z"])], True)], "f")
    reader = Reader(html_of(page))
    assert reader.all("section") == [
        {
            "id": "not-verified",
            "class": "alarm",
            "role": "alert",
            "aria-labelledby": "not-verified-heading",
        }
    ]


def test_the_same_release_has_the_same_page(desk):
    release = desk.redacted()
    assert off.report(release, "out.csv").html == off.report(release, "out.csv").html


def test_a_model_that_was_learned_says_so(desk):
    table = drawn(count=60, n=60, seed=5)
    fitted = off.fit(drawn(count=60, n=60, seed=6), value="v", order="t", by="who")
    release, out, certificate = desk.released("out.csv", table, model=fitted.model)
    for report in (off.report(release, out), off.report(certificate, out)):
        said = report.markdown
        assert f"The audit calls the model {fitted.model.learned.audit.verdict}" in said
        assert "95 % intervals" in said
        assert "released transitions were compared with the model" in said


@pytest.mark.parametrize(
    "kind",
    ["three values", "order 2", "hidden", "a start of its own", "phases", "no secret", "epsilon 0"],
)
def test_every_kind_of_model_has_a_page(desk, kind):
    options, chain = {}, off.MarkovChain.binary(0.1, 0.3)
    frame = drawn()
    if kind == "three values":
        chain = off.MarkovChain([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])
        frame = drawn(chain)
    elif kind == "order 2":
        chain = off.MarkovChain(
            np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.7, 0.3], [0.2, 0.8]]]), order=2
        )
    elif kind == "hidden":
        chain = off.MarkovChain(
            [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]], shows=[0, 0, 1]
        )
    elif kind == "a start of its own":
        chain = off.MarkovChain([[0.9, 0.1], [0.3, 0.7]], start=[1.0, 0.0])
    elif kind == "phases":
        hours = pl.datetime_range(
            pl.datetime(2026, 1, 1), pl.datetime(2026, 1, 2, 15), "1h", eager=True
        )
        frame = frame.with_columns(t=pl.Series(np.tile(hours, 8)))
        keys = pl.DataFrame({"who": [1, 3], "t": [hours[5], hours[20]]})
        kernel = np.array([[[0.9, 0.1], [0.3, 0.7]]] * 24)
        chain = off.PhasedChain("hour", kernel, np.array([[0.75, 0.25]] * 24))
        options = {"private_list": keys, "mechanism": "window", "step": "1h"}
    elif kind == "no secret":
        options = {"private": pl.Series([False] * 320), "allow_none": True}
    else:
        options = {"epsilon": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = desk.redacted(frame, model=chain, accept_model=True, **options)
        report = off.report(release, "out.csv")
    Reader(report.html)
    assert [one.name for one in report.page.sections][-8:] == ORDER
    certificate, _ = release.write(desk.folder / "kind.parquet")
    files = off.report(certificate, desk.folder / "kind.parquet")
    Reader(files.html)
    assert files.is_verified
    assert files.content.costs == report.content.costs
    if kind in ("three values", "order 2"):
        assert report.content.curve.points
    else:
        assert report.content.curve.points or report.content.curve.why
