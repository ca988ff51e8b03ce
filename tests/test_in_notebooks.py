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
MARKUP = {
    "p": set(),
    "b": set(),
    "br": set(),
    "ul": set(),
    "li": set(),
    "table": {"style"},
    "thead": set(),
    "tbody": set(),
    "tr": set(),
    "th": {"style", "scope"},
    "td": {"style"},
    "img": {"alt", "style", "src"},
}
LARGEST = 60_000  # characters of a page, pictures apart
PICTURE = "data:image/svg+xml;base64,"


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


def page_of(shown):
    page = shown._repr_html_()
    read = Page(page)
    assert page.startswith("<p><b>")
    assert len(re.sub(r"base64,[\w+/=]*", "", page)) <= LARGEST
    for picture in read.pictures:
        assert len(picture) <= 500_000
        for element in ElementTree.fromstring(picture).iter():
            assert element.tag.removeprefix("{http://www.w3.org/2000/svg}") not in (
                "script",
                "foreignObject",
                "a",
            )
            assert not [name for name in element.attrib if name.startswith("on") or "href" in name]
    return read


def is_short(text):
    return len(text) <= 300 and "\n" not in text


def shown_in(read, name):
    """A name as it was given stands in the text, not in the markup."""
    return name in read.text


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
    read = page_of(policy)
    assert f"releases {policy.utility:.2%} of 21 records" in read.text
    assert shown_in(read, SCRIPT if mechanism.name == "owner" else f"Pr(⊥ | {IMAGE})")
    assert is_short(repr(policy))


def test_a_policy_that_is_not_private_says_so_first(problem):
    policy = off.LocalPolicy(problem, off.Redaction.of(21, 2, [(10, 11, [1.0, 1.0])]), IMAGE)
    assert page_of(policy).text.startswith("NOT PRIVATE: leakage ")


def test_comparisons(problem):
    once = off.compare(problem, {SCRIPT: off.BestWindow(), IMAGE: off.BestLocal()})
    read = page_of(once)
    assert read.pictures == []
    assert shown_in(read, SCRIPT)
    assert f"{once[-1]['leakage']:.6g}" in read.text
    over = off.compare(problem, {IMAGE: off.BestWindow()}, epsilons=[0.5, 1])
    read = page_of(over)
    assert shown_in(read, IMAGE)
    assert IMAGE in read.alts[0]
    assert len(read.pictures) == 1
    assert is_short(repr(over))


def test_what_has_no_shape_is_shown_by_its_number(problem):
    named = off.LocalPolicy(problem, off.design(problem).sparse, TURNED)
    assert r"a\u202eb\nc: releases" in page_of(named).text


VALUE, ORDER, CHAINS = f"v{SCRIPT}", f"t{IMAGE}", f"c{IMAGE}"


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


COLUMNS = {"by": CHAINS, "order": ORDER, "value": VALUE}
DATASET = f"d{SCRIPT}{IMAGE}"
PRIVATE = ((3, 10), (17, 25))


def released(values, folder, model, **options):
    keys = [{CHAINS: f"{SCRIPT}{i:02}", ORDER: t} for i, t in PRIVATE]
    release = off.redact(
        table_of(values),
        private_list=pl.DataFrame(keys),
        model=model,
        epsilon=1.0,
        dataset=DATASET,
        key_file=folder / "key" / "key.json",
        publish_positions=True,
        **COLUMNS,
        **options,
    )
    certificate, _ = release.write(folder / "out.parquet", force=True)
    verdict = verify(certificate, folder / "out.parquet")
    found = attack(folder / "out.parquet", certificate=certificate)
    read = Certificate.from_json(certificate.read_bytes())
    return {
        "release": release,
        "summary": release.summary,
        "content": release.certificate,
        "certificate": read,
        "verdict": verdict,
        "attack": found,
    }


@pytest.fixture(scope="module")
def values(chain):
    return samples(chain, 20, 40, np.random.default_rng(1))


@pytest.fixture(scope="module")
def objects(values, chain, tmp_path_factory):
    return released(values, tmp_path_factory.mktemp("released"), chain)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("release", DATASET),
        ("summary", DATASET),
        ("content", ORDER),
        ("certificate", VALUE),
        ("verdict", "verified: designs tell at most "),
        ("attack", DATASET),
    ],
)
def test_releases_and_what_follows_them(objects, name, says):
    read = page_of(objects[name])
    assert shown_in(read, says)
    if name != "content":  # a dictionary still
        assert is_short(repr(objects[name]))


def test_pages_say_what_the_objects_say(objects):
    summary, found = objects["summary"], objects["attack"]
    for line in summary.figures().splitlines():
        name, _, said = line.partition("  ")
        assert name + said.strip() in page_of(summary).text
    assert page_of(objects["release"]).text == page_of(summary).text
    assert page_of(objects["content"]).text.startswith("certificate of ")
    assert objects["certificate"].claim.statement in page_of(objects["certificate"]).text
    assert len(page_of(found).pictures) == 1
    for attacker in found.attackers:
        assert f"{attacker.largest:.4f}" in page_of(found).text


def test_a_dictionary_that_is_no_certificate_any_more_is_shown_as_one(objects):
    content = type(objects["content"])(objects["content"])
    assert content == objects["content"]
    content["claim"] = "less"
    assert content._repr_html_() is None


def test_warnings_come_first(objects):
    warned = dataclasses.replace(objects["summary"], warnings=(SCRIPT, "second"))
    text = page_of(warned).text
    assert text.index(SCRIPT) < text.index("second") < text.index("protected")


def test_a_file_that_went_through(objects):
    from offrecord.tables.engines.stream import Streamed

    release = objects["release"]
    streamed = Streamed(objects["summary"], None, release._outcome, release._entered, None)
    assert streamed._repr_html_() == objects["summary"]._repr_html_()


def test_no_page_depends_on_a_redacted_value(values, chain, tmp_path):
    """Twins that differ in every record that is redacted whatever its value."""
    seen = []
    rule = released(values, tmp_path, chain, mechanism="best-local")["release"].explain()
    always = np.isin(rule["region"].to_numpy(), ["private", "L"]).reshape(values.shape)
    assert always.sum() > len(PRIVATE)
    for twin in (values, np.where(always, 1 - values, values)):
        again = {"mechanism": "best-local", "another_release": True}
        found = released(twin, tmp_path, chain, **again)
        seen.append([_without_time(one._repr_html_()) for one in found.values()])
    assert seen[0] == seen[1]


def _without_time(page):
    return re.sub(r">[\d.]+ s<", "><", page)


def test_fits(values, chain):
    fit = off.fit(table_of(values), **COLUMNS)
    read = page_of(fit)
    assert shown_in(read, IMAGE)
    assert fit.verdict[:200] in read.text
    assert f"{fit.counts[0, 0]:,}" in read.text
    assert is_short(repr(fit))


# ---- size


def test_a_policy_of_ten_thousand_records_shows_what_is_about_the_private_one():
    slow = off.MarkovChain.binary(0.001, 0.002)
    policy = off.design(off.Problem(slow, 10_000, [5000], 0.5), off.ThreeRegion("relaxed"))
    wide = np.zeros((10_000, 2))
    wide[4900:5100, 0] = np.linspace(0.1, 0.9, 200)
    wide[4999] = 1
    mine = off.LocalPolicy(policy.problem, off.Redaction.from_matrix(wide, 10_000, 2), "mine")
    for one in (policy, mine):
        assert "5000private" in page_of(one).text
        assert re.search(r"^ *5000 +private", str(one), re.M)
    lines = str(mine).splitlines()
    assert sum(line.split() == ["…"] * 4 for line in lines) == 2  # before and after
    assert len(lines) < 40


def test_a_policy_of_many_values():
    k = 60
    chain = off.MarkovChain(np.full((k, k), 1 / k), labels=[f"{i}" * 300 for i in range(k)])
    read = page_of(off.design(off.Problem(chain, 9, [5], 1.0), off.BestWindow()))
    assert "…" in read.text


def test_a_fit_of_256_histories_shows_those_seen_most():
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"t": np.arange(20_000), "v": rng.choice(4, 20_000, p=[0.7, 0.1, 0.1, 0.1])}
    )
    fit = off.fit(frame, value="v", order="t", single_chain=True, chain_order=4, no_audit=True)
    read = page_of(fit)
    assert "the 36 of 1,024 transitions that were seen most" in read.text
    assert f"0, 0, 0, 0{0}{fit.chain.transition[0, 0, 0, 0, 0]:.4g}" in read.text
    most = np.sort(fit.counts.ravel())[::-1][:36]
    assert all(f"{count:,}" in read.text for count in most)


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
    notes = (SCRIPT,) * 1000
    found = Attack(IMAGE, 1.0, 10_000, attackers, beliefs, beliefs, 1, notes)
    read = page_of(found)
    assert read.text.startswith("NOT WITHIN ε = 1")
    assert "infinite" in read.text
    assert is_short(repr(found))


def test_a_verdict_with_ten_thousand_reasons():
    verdict = Verdict([f"{SCRIPT} {i}" * 300 for i in range(10_000)], np.inf, 1.0, ["a"], ["b"])
    page = verdict._repr_html_()
    assert Page(page).text.startswith("NOT VERIFIED: 10000 reasons")
    assert "… and 9,960 more" in page
    assert len(page) < 200_000
    assert is_short(repr(verdict))


# ---- comparing


def test_compare_takes_names_and_mechanisms(problem):
    every = off.compare(problem)
    assert set(off.MECHANISMS) <= set(every.names)
    some = off.compare(problem, ["window", off.BestLocal()], epsilons=[0.5, 1.0, 2.0])
    assert some.epsilons == [0.5, 1.0, 2.0]
    for row in some:
        if row["leakage"] is not None:
            policy = off.design(
                problem.with_epsilon(row["epsilon"]), off.mechanism_named(row["mechanism"])
            )
            assert (row["utility"], row["leakage"]) == (policy.utility, policy.leakage)
    assert len(some) == len(some.rows) == len(list(some))
    assert str(some).splitlines()[1].split()[-2:] == ["window", "best-local"]


def test_compare_leaves_out_what_does_not_serve_unless_it_is_asked_for():
    chain = off.MarkovChain([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]], start=[1, 0, 0])
    problem = off.Problem(chain, 7, [3], 1.0)
    assert set(off.MECHANISMS) - set(off.compare(problem).names) == {"quilt"}
    with pytest.raises(off.InputError):
        off.compare(problem, ["quilt"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mechanisms": "window"}, "mechanisms must be a list of them, got the text 'window'"),
        ({"mechanisms": [off.BestLocal(), "best-local"]}, "two mechanisms have the same name"),
        ({"mechanisms": ["windo"]}, "window"),
        ({"epsilons": []}, "epsilons must hold at least one privacy budget, got none"),
        ({"epsilons": [-1]}, "epsilon"),
    ],
)
def test_what_compare_refuses(problem, given, said):
    with pytest.raises(off.InputError, match=said):
        off.compare(problem, **given)
