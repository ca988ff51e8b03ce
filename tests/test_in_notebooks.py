"""What notebooks show: pages of known markup, whatever names and labels are; bounded; and the same
for tables that differ in redacted values alone.
"""

import base64
import dataclasses
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples
from offrecord.attack import Attack, Attacker, attack
from offrecord.release.certificate import Certificate
from offrecord.verify import Verdict, verify

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
TURNED = "a\u202eb\nc"  # the direction of writing, and a line
#: What may be in a page, and which attributes.
MARKUP = {tag: set() for tag in ("p", "b", "br", "ul", "li", "thead", "tbody", "tr")} | {
    "table": {"style"},
    "th": {"style", "scope"},
    "td": {"style"},
    "img": {"alt", "style", "src"},
}
LARGEST = 60_000  # characters of a page, pictures apart
PICTURE = "data:image/svg+xml;base64,"
SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """A page read as a browser would: its text, its pictures, and that all else is known."""

    def __init__(self, page):
        super().__init__()
        self.text, self.alts, self.pictures, self.open = "", [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        assert set(given) <= MARKUP[tag]
        assert "color" not in re.sub("background:#fff", "", given.get("style", ""))
        if tag == "img":
            assert given["src"].startswith(PICTURE)
            self.pictures.append(base64.b64decode(given["src"].removeprefix(PICTURE)).decode())
            self.alts.append(given["alt"])
        elif tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        pytest.fail(f"a comment: {data}")

    handle_decl = handle_pi = unknown_decl = handle_comment


def page_of(shown, largest=LARGEST):
    """The page of an object, read."""
    page = shown._repr_html_()
    read = Page(page)
    assert page.startswith("<p><b>")
    assert len(re.sub(r"base64,[\w+/=]*", "", page)) <= largest
    for picture in read.pictures:
        assert len(picture) <= 500_000
        for element in ElementTree.fromstring(picture).iter():
            assert element.tag.removeprefix(SVG) not in ("script", "foreignObject", "a")
            assert not [name for name in element.attrib if name.startswith("on") or "href" in name]
    assert len(repr(shown)) <= 300
    return read


# ---- hostile names


@pytest.fixture(scope="module")
def chain():
    return off.MarkovChain.binary(0.05, 0.3, labels=[SCRIPT, IMAGE])


@pytest.fixture(scope="module")
def problem(chain):
    return off.Problem(chain, n=21, private=[11], epsilon=1.0)


@pytest.mark.parametrize("mechanism", [off.BestLocal(), off.BestWindow(), off.OwnerStopping()])
def test_policies(problem, mechanism):
    policy = off.design(problem, mechanism)
    text = page_of(policy).text
    assert f"releases {policy.utility:.2%} of 21 records" in text
    assert ("not local" if mechanism.name == "owner" else f"Pr(⊥ | {IMAGE})") in text


def test_a_policy_of_ones_own(problem):
    """One that is not private says so first; what has no shape is shown by its number."""
    erased = np.zeros((21, 2))
    erased[10] = 1.0
    assert page_of(off.LocalPolicy(problem, erased, IMAGE)).text.startswith("NOT PRIVATE: leakage ")
    named = off.LocalPolicy(problem, off.design(problem).redaction, TURNED)
    assert r"a\u202eb\nc: releases" in page_of(named).text


def test_comparisons(problem):
    once = off.compare(problem, {SCRIPT: off.BestWindow(), IMAGE: off.BestLocal()})
    read = page_of(once)
    assert read.pictures == []
    assert SCRIPT in read.text
    assert f"{once[-1]['leakage']:.6g}" in read.text
    read = page_of(off.compare(problem, {IMAGE: off.BestWindow()}, epsilons=[0.5, 1]))
    assert IMAGE in read.text
    assert IMAGE in read.alts[0]
    assert len(read.pictures) == 1


VALUE, ORDER, CHAINS = f"v{SCRIPT}", f"t{IMAGE}", f"c{IMAGE}"
COLUMNS = {"by": CHAINS, "order": ORDER, "value": VALUE}
DATASET = f"d{SCRIPT}{IMAGE}"
PRIVATE = ((3, 10), (17, 25))


def table_of(values):
    count, n = values.shape
    labels = np.array([SCRIPT, IMAGE], dtype=object)
    return pl.DataFrame(
        {
            CHAINS: [f"{SCRIPT}{i:02}" for i in np.repeat(np.arange(count), n)],
            ORDER: np.tile(np.arange(n), count),
            VALUE: pl.Series(labels[values.ravel()].tolist(), dtype=pl.String),
        }
    )


def released(values, folder, model, **options):
    """A release of a table, and everything that follows it."""
    release = off.redact(
        table_of(values),
        private_list=pl.DataFrame([{CHAINS: f"{SCRIPT}{i:02}", ORDER: t} for i, t in PRIVATE]),
        model=model,
        epsilon=1.0,
        dataset=DATASET,
        key_file=folder / "key" / "key.json",
        **COLUMNS,
        accept_model=True,
        **options,
    )
    certificate, _ = release.write(folder / "out.parquet", force=True)
    return {
        "release": release,
        "summary": release.summary,
        "certificate": Certificate.load(certificate),
        "verdict": verify(certificate, folder / "out.parquet", seed=1),
        "attack": attack(folder / "out.parquet", certificate=certificate),
    }


@pytest.fixture(scope="module")
def values(chain):
    return samples(chain, 20, 40, np.random.default_rng(1))


@pytest.fixture(scope="module")
def fit(values):
    return off.fit(table_of(values), chain_order=1, **COLUMNS)


@pytest.fixture(scope="module")
def objects(values, fit, tmp_path_factory):
    found = released(values, tmp_path_factory.mktemp("released"), fit, publish_positions=True)
    return {**found, "fit": fit}


def test_releases_and_what_follows_them(objects):
    for name in ("release", "summary", "certificate", "attack"):
        assert DATASET in page_of(objects[name]).text
    assert page_of(objects["verdict"]).text.startswith("verified: ")
    assert repr(IMAGE) in page_of(objects["fit"]).text


def test_pages_say_what_the_objects_say(objects):
    summary, found, fit = objects["summary"], objects["attack"], objects["fit"]
    text = page_of(summary).text
    for line in summary.figures().splitlines():
        name, _, said = line.partition("  ")
        assert name + said.strip() in text
    assert page_of(objects["release"]).text == text
    warned = page_of(dataclasses.replace(summary, warnings=(SCRIPT,))).text
    assert warned.index(SCRIPT, len(summary.short)) < warned.index("protected")
    certificate = page_of(objects["certificate"]).text
    assert objects["certificate"].claim.statement in certificate
    assert all(one in certificate for one in objects["certificate"].assumptions)
    assert objects["verdict"].draws in page_of(objects["verdict"]).text
    assert len(page_of(found).pictures) == 1
    assert all(f"{one.largest:.4f}" in page_of(found).text for one in found.attackers)
    text = page_of(fit).text
    assert all(one in text for one in fit.warnings)
    assert all(one.verdict in text for one in fit.verdicts)
    assert f"{fit.transitions:,} transitions" in text


def test_no_page_depends_on_a_redacted_value(values, chain, tmp_path):
    """Twins that differ in every record that is redacted whatever its value."""
    asked = {"mechanism": "best-local", "publish_positions": True}
    rule = released(values, tmp_path, chain, **asked)["release"].explain()
    always = np.isin(rule["region"].to_numpy(), ["private", "L"]).reshape(values.shape)
    assert always.sum() > len(PRIVATE)
    pages = []
    for twin in (values, np.where(always, 1 - values, values)):
        found = released(twin, tmp_path, chain, **asked)
        pages.append([re.sub(r">[\d.]+ s<", "><", one._repr_html_()) for one in found.values()])
    assert pages[0] == pages[1]


# ---- size


def test_a_policy_of_ten_thousand_records_shows_what_is_about_the_private_one():
    slow = off.MarkovChain.binary(0.001, 0.002)
    policy = off.design(off.Problem(slow, 10_000, [5000], 0.5), off.ThreeRegion("relaxed"))
    wide = np.zeros((10_000, 2))
    wide[4900:5100, 0] = np.linspace(0.1, 0.9, 200)
    wide[4999] = 1
    mine = off.LocalPolicy(policy.problem, wide, "mine")
    for one in (policy, mine):
        assert "5000private" in page_of(one).text
        assert re.search(r"^ *5000 +private", str(one), re.M)
    lines = str(mine).splitlines()
    assert sum(line.split() == ["…"] * 4 for line in lines) == 2  # before and after
    assert len(lines) < 40


def test_a_policy_and_a_fit_of_many_values():
    labels = [f"{i}" * 300 for i in range(10, 30)]
    chain = off.MarkovChain(np.full((20, 20), 1 / 20), labels=labels)
    assert "…" in page_of(off.design(off.Problem(chain, 9, [5], 1.0), off.BestWindow())).text
    drawn = np.random.default_rng(2).permutation(np.repeat(labels[:8], 9))
    frame = pl.DataFrame({"t": np.arange(len(drawn)), "v": drawn})
    assert "…" in page_of(off.fit(frame, value="v", order="t", single_chain=True)).text


def test_a_comparison_of_ten_thousand_budgets():
    rows = [
        {"epsilon": i / 1000, "mechanism": name, "utility": i / 10_000, "leakage": 0.0}
        for i in range(10_000)
        for name in ("one", "other")
    ]
    read = page_of(off.Comparison(tuple(rows)))
    assert "9.999" in read.text  # the last one is among them


def test_an_attack_on_ten_thousand_secrets():
    ratios = np.random.default_rng(3).normal(0, 0.2, 10_000)
    ratios[:10] = np.inf
    attackers = (Attacker(IMAGE, "promised", ratios), Attacker(SCRIPT, "instead", ratios))
    beliefs = np.full((10_000, 2), 0.5)
    read = page_of(Attack(IMAGE, 1.0, 10_000, attackers, beliefs, beliefs, 1, (SCRIPT,) * 1000))
    assert read.text.startswith("NOT WITHIN ε = 1")
    assert "infinite" in read.text


def test_a_verdict_with_ten_thousand_reasons():
    problems = [f"{i} {SCRIPT}" * 300 for i in range(10_000)]
    verdict = Verdict("not verified", problems, 1.0, 0.99, None, 53, 1, ["a"], ["b"])
    text = page_of(verdict, largest=200_000).text
    assert text.startswith("NOT VERIFIED: 10000 reasons")
    assert f"9999 {SCRIPT}" in text  # the last one is among them
