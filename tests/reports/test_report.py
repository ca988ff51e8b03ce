"""The page of a release: what it says is what the objects say, and it holds nothing private."""

import math
import re

import numpy as np
import pytest

from attacks.releases import CHAIN, drawn, frame_of, released
from offrecord.charts import undrawable
from offrecord.errors import InputError
from offrecord.mechanisms.rules import LocalRule, Pair, Setting
from offrecord.models.members import Members
from offrecord.models.posterior import Posterior
from offrecord.reports import pictures
from offrecord.reports.report import report
from offrecord.tables.meaning import Meaning

pytestmark = pytest.mark.filterwarnings("ignore::offrecord.errors.OffrecordWarning")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    values = drawn(CHAIN, 12, 80, rng)
    return frame_of(values, rng.random(values.shape) < 0.02)


@pytest.fixture(scope="module", params=["best-local", "owner"])
def made(request, table, tmp_path_factory):
    return released(tmp_path_factory.mktemp(request.param), table, mechanism=request.param)


def test_the_page_says_what_the_release_is(made):
    release, path = made
    found = report(release, path)
    page = found.html
    records = release.summary.rows - release.summary.missing
    share = release.frame["v"].is_not_null().sum() / records
    assert f"{share:.2%} of {records} records left" in page
    assert release.summary.mechanism in page
    assert "no output gives odds of more than 2.718 to 1 between two values" in page
    assert "e^" not in page
    for name in ("left", "promise", "inferred", "rule", "budgets", "checked", "verify"):
        assert f'<section id="{name}"' in page
    assert f"offrecord verify {path.name}.certificate.json {path.name}" in page
    assert found.to_dict()["released"] == pytest.approx(share)


def test_windows_are_not_shown_better_than_those_that_act(table, tmp_path):
    """Few draws show fewer of the chains that windows are to protect from."""
    release, path = released(tmp_path, table, mechanism="window")
    found = report(release, path)
    shares = [point.utility for point in found.points]
    assert shares == sorted(shares, reverse=False)
    (here,) = [point.utility for point in found.points if point.epsilon == 1]
    assert here == release.summary.window


def test_the_page_is_small_alone_and_without_scripts(made):
    page = report(*made).html
    assert len(page.encode()) < 300_000
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!#)|url\(|@import', page)
    assert undrawable() is None
    assert page.count("<svg") == page.count("<figure") >= 4
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert "key.json" not in page  # no path of the publisher's machine


def test_from_its_files_the_page_says_what_was_checked(made, tmp_path):
    _, path = made
    proof = path.with_name(f"{path.name}.certificate.json")
    found = report(proof, path)
    assert found.problems == ()
    assert "Verified" in found.html
    found.write(tmp_path / "page.html")
    with pytest.raises(InputError, match="add force=True"):
        found.write(tmp_path / "page.html")
    with pytest.raises(InputError, match=r"\.html"):
        found.write(tmp_path / "page.pdf")


def test_a_certificate_that_does_not_hold_is_said_first(made, tmp_path):
    _, path = made
    proof = path.with_name(f"{path.name}.certificate.json")
    other = tmp_path / path.name
    lines = path.read_text().splitlines()
    at = next(at for at, line in enumerate(lines) if line.endswith(",0"))
    lines[at] = lines[at][:-1] + "1"
    other.write_text("\n".join(lines) + "\n")
    found = report(proof, other)
    assert found.problems
    assert found.html.index("Not verified") < found.html.index("What left")


def test_twins_have_the_same_page(table, tmp_path):
    """Two tables that differ in private values alone, under windows."""
    pages = []
    for name, frame in (("a", table), ("b", table.with_columns(v=_flipped(table)))):
        release, path = released(tmp_path / name, frame, mechanism="window")
        page = report(release, path).html
        pages.append(re.sub(r"SHA-256 \w+|Key \w+", "", page))
    assert pages[0] == pages[1]


def _flipped(frame):
    return (frame["v"] + frame["out"].cast(int)) % 2


def test_dry_runs_and_other_things_are_refused(made, table, tmp_path):
    with pytest.raises(InputError, match="a release or the path"):
        report(3)
    with pytest.raises(InputError, match="private_list"):
        report(made[0], private_list="list.csv")


# ---- pictures against definitions


def test_influence_is_the_largest_log_ratio_of_joint_probabilities():
    rng = np.random.default_rng(6)
    members = Members(rng.dirichlet(np.ones(3), size=(2, 1, 9)), 2)
    for member in range(2):
        one = members.part(np.array([member]))
        joint = np.zeros((3, 3))
        law = one.law()[0].reshape(3, 3)
        rows = one.rows[0, 0].reshape(3, 3, 3)
        for x, y, z, w in np.ndindex(3, 3, 3, 3):
            joint[y, w] += law[x, y] * rows[x, y, z] * rows[y, z, w]
        right, left = joint / joint.sum(axis=1, keepdims=True), joint / joint.sum(axis=0)
        for distance, given in ((2, right), (-2, left.T)):
            exact = np.log(given.max(axis=0) / given.min(axis=0)).max()
            assert pictures.influence_at(members, 0, distance)[member] == pytest.approx(exact)


def test_beliefs_follow_bayes():
    promise = Posterior([[900, 100], [300, 700]], 1, ["no", "yes"])
    rule = LocalRule.window(3, 2)
    from offrecord.mechanisms.table_policy import TablePolicy

    policy = TablePolicy("window", 1.0, "run", 0.99, {Setting("record"): Pair(rule, rule)})
    found = Meaning.of(policy, promise)
    odds = found.before / (1 - found.before) * math.e
    assert found.after == pytest.approx(odds / (1 + odds))
    assert found.before < found.after < found.erased
