"""What a page says, against counts and sums made another way."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import sequences
from offrecord.designs.library import Setting
from offrecord.designs.needs import SurroundingCounts
from offrecord.designs.sharing import designs_for
from offrecord.reports.around import around_of, costs_of
from reports.desks import CHAIN, PRIVATE, drawn


def counted(out):
    """What left, counted in the file with polars alone."""
    table = pl.read_csv(out)
    touched = table.filter(pl.col("who").is_in([0, 2, 5]))
    shares = {
        one: 1 - frame["v"].null_count() / frame.height
        for one, frame in (("all", table), ("touched", touched))
    }
    lost = touched.group_by("who").agg(pl.col("v").count()).filter(pl.col("v") == 0).height
    return shares, lost


@pytest.mark.parametrize("mechanism", ["owner", "best-local", "window", "3r-relaxed"])
def test_what_left_is_what_the_file_holds(desk, mechanism):
    release, out, certificate = desk.released("out.csv", mechanism=mechanism)
    shares, lost = counted(out)
    listed = off.report(certificate, out, private_list=desk.list).content
    for content in (off.report(release, out).content, listed):
        left = content.left
        assert left.released == pytest.approx(shares["all"], abs=1e-12)
        assert left.touched_released == pytest.approx(shares["touched"], abs=1e-12)
        assert (left.touched, left.touched_records, left.lost) == (3, 120, lost)
        assert left.kept_back == pl.read_csv(out)["v"].null_count()
        assert left.erased == pytest.approx(1 - len(PRIVATE) / 320)
        assert sum(left.regions.values()) == 320


@pytest.mark.parametrize("mechanism", ["owner", "best-local", "window"])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_run_and_its_files_agree(desk, mechanism, gaps):
    """Wherever both say something."""
    frame = drawn()
    if gaps:
        frame = frame.with_columns(
            v=pl.when(pl.int_range(pl.len()) % 37 == 5).then(None).otherwise("v")
        )
    release, out, certificate = desk.released("out.parquet", frame, mechanism=mechanism)
    run = off.report(release, out)
    alone = off.report(certificate)
    table = off.report(certificate, out)
    listed = off.report(certificate, out, private_list=desk.list)
    for files in (alone, table, listed):
        for name, value in vars(files.content.left).items():
            if value not in (None, False):
                assert value == pytest.approx(getattr(run.content.left, name)), name
        assert files.content.meaning == run.content.meaning
        assert files.content.costs == run.content.costs
        assert files.content.around == run.content.around
        assert files.content.models == run.content.models
        assert set(files.content.warnings) <= set(run.content.warnings)
        assert files.is_verified
        own = {
            (point.epsilon, point.mechanism): point.released for point in files.content.curve.points
        }
        for point in run.content.curve.points:
            if (point.epsilon, point.mechanism) in own:
                assert own[point.epsilon, point.mechanism] == pytest.approx(point.released)
    assert alone.content.left.released is None
    assert table.content.left.window is None
    assert "not known from these files" in alone.markdown
    assert "not known from these files" in table.markdown
    if not gaps:
        assert listed.content.left == run.content.left
        assert listed.content.curve.points


@pytest.mark.parametrize("mechanism", ["owner", "best-local", "window"])
def test_the_curve_is_what_dry_runs_expect(desk, mechanism):
    """At every point of it, by the engine that compares mechanisms."""
    release = desk.redacted(mechanism=mechanism)
    points = off.report(release).content.curve.points
    assert {point.mechanism for point in points} >= {"window"}
    for point in points[::3]:
        dry = desk.redacted(
            mechanism=point.mechanism, epsilon=point.epsilon, dry_run=True, dataset="dry"
        )
        assert point.released == pytest.approx(dry.summary.released, abs=1e-9)
    window = next(one for one in points if (one.epsilon, one.mechanism) == (1.0, "window"))
    assert window.released == pytest.approx(release.summary.window)


def test_a_large_table_is_foretold_by_some_of_its_chains(desk):
    from offrecord.tables.budgets import Blank

    many = drawn(count=400, seed=3).with_columns(p=pl.int_range(pl.len()) % 53 == 7)
    release = desk.redacted(many, private="p")
    plan = release._outcome.plan
    args = plan.modelled.worker.spec, release._batch, 1.0
    whole = Blank.of(*args, growing=False)
    part = Blank.of(*args, growing=False, most=2_000)
    assert (whole.every, part.every, part.batch.rows) == (1, 8, 2_000)
    taken = many.filter(pl.col("who") % 8 == 0)
    assert part.batch.private.count == taken["p"].sum()
    alone = desk.redacted(taken, private="p", mechanism="window", dry_run=True)
    (point,) = part.points(off.BestWindow(), [1.0])
    assert point.released == pytest.approx(alone.summary.released)
    assert whole.points(off.BestWindow(), [1.0])[0].released == release.summary.window


def expected_by_definition(policy, chain, n, private):
    """Expected redactions beside private records, over every sequence and every outcome."""
    total = 0.0
    for values, weight in zip(*sequences(chain, n), strict=True):
        for mask, chance in policy.outcomes(values):
            gone = [not left for left in mask]
            total += weight * chance * (sum(gone) - len(private))
    return total


@pytest.mark.parametrize("mechanism", [off.BestLocal(), off.BestWindow()])
@pytest.mark.parametrize(("left", "right", "length"), [(3, 4, 1), (0, 6, 1), (4, 2, 2)])
def test_what_an_opt_out_costs_is_what_its_policy_redacts(mechanism, left, right, length):
    setting = Setting(CHAIN, 1.0, mechanism, "run")
    needs = SurroundingCounts.of(np.array([[left, right, length, 0]]), np.array([7]), {})
    designs, which = designs_for(setting, needs)
    design = designs.designs[int(which[0])]
    private = list(range(left + 1, left + length + 1))
    problem = off.Problem(CHAIN, left + length + right, private, 1.0)
    policy = off.design(problem, mechanism)
    (cost,) = costs_of([design], [7], CHAIN)
    by_definition = expected_by_definition(policy, CHAIN, problem.n, private)
    assert cost.expected == pytest.approx(by_definition, abs=1e-9)
    assert (cost.secrets, cost.length, cost.rooms) == (7, length, (left, right))


@pytest.mark.parametrize("length", [1, 2])
def test_what_an_opt_out_costs_by_the_owners_mechanism(length):
    """Its designs are for every room: by the policy for one as large."""
    mechanism = off.OwnerStopping()
    needs = SurroundingCounts.of(np.array([[9, 9, length, 0]]), np.array([3]), {})
    designs, which = designs_for(Setting(CHAIN, 1.0, mechanism, "run"), needs)
    (cost,) = costs_of([designs.designs[int(which[0])]], [3], CHAIN)
    left, right = cost.rooms
    private = list(range(left + 1, left + length + 1))
    policy = off.design(off.Problem(CHAIN, left + length + right, private, 1.0), mechanism)
    redacted = policy.problem.n * (1 - policy.utility)
    assert cost.expected == pytest.approx(redacted - length, abs=1e-9)


def test_the_rule_is_the_policys(desk):
    """Around a secret by itself: probabilities and regions of its policy, record by record."""
    pl.DataFrame({"who": [3], "t": [20]}).write_csv(desk.list)
    release = desk.redacted(mechanism="best-local")
    around = off.report(release).content.around
    explained = release.explain().filter(pl.col("who") == 3)
    by_place = {row[1] - 20: row[2:] for row in explained.iter_rows()}
    assert around.names == ("if its value is 0", "if its value is 1")
    assert {"L", "M", "S"} & {step.region for step in around.steps}
    for step in around.steps:
        region, *rule = by_place[step.distance]
        assert step.region == region
        assert step.rule == pytest.approx(rule)


def test_the_rule_around_a_run_counts_from_its_ends(desk):
    pl.DataFrame({"who": [3, 3, 3], "t": [20, 21, 22]}).write_csv(desk.list)
    release = desk.redacted(mechanism="best-local")
    around = off.report(release).content.around
    explained = release.explain().filter(pl.col("who") == 3)
    by_place = {row[1]: row[3:] for row in explained.iter_rows()}
    for step in around.steps:
        if step.distance:
            place = 20 + step.distance if step.distance < 0 else 22 + step.distance
            assert step.rule == pytest.approx(by_place[place])


def test_many_values_have_three_lines():
    rng = np.random.default_rng(0)
    kernel = rng.dirichlet(np.ones(8) * 3, size=8)
    chain = off.MarkovChain(np.round(kernel, 3) + np.diag(1 - np.round(kernel, 3).sum(axis=1)))
    needs = SurroundingCounts.of(np.array([[9, 9, 1, 0]]), np.array([1]), {})
    designs, _ = designs_for(Setting(chain, 1.0, off.ThreeRegion("relaxed"), "run"), needs)
    around = around_of(designs.designs, [1], chain)
    assert around.drawn == 3
    for step in around.steps:
        least, most, mean = step.rule
        assert least - 1e-12 <= mean <= most + 1e-12


def test_opt_outs_by_name_only_where_they_are_published(desk):
    release, out, certificate = desk.released("out.csv", publish_positions=True)
    run, files = off.report(release, out).content, off.report(certificate, out).content
    assert run.named == files.named
    assert {one.name for one in run.named} == {("0", "12"), ("2", "0"), ("2", "30"), ("5", "20")}
    assert [one.expected for one in run.named] == sorted(
        (one.expected for one in run.named), reverse=True
    )
    total = sum(cost.secrets * cost.expected for cost in run.costs)
    assert sum(one.expected for one in run.named) == pytest.approx(total)
    plain, _, _ = desk.released("plain.csv")
    assert off.report(plain).content.named == ()


def test_a_release_of_spark_has_a_page_too(desk):
    """What it holds of a release, and no rows: nothing is foretold from these."""
    release, out, _ = desk.released("out.csv")
    spark = SimpleNamespace(
        summary=release.summary, certificate=release.certificate, _outcome=release._outcome
    )
    here, there = off.report(release, out).content, off.report(spark, out).content
    assert there.left == here.left
    assert there.costs == here.costs
    assert "went through part by part" in there.curve.why


def test_long_values_that_begin_alike_have_lines_of_their_own():
    alike = ["a department with a very long name, " * 2 + end for end in ("north", "south")]
    chain = off.MarkovChain([[0.8, 0.2], [0.3, 0.7]], labels=alike)
    needs = SurroundingCounts.of(np.array([[9, 9, 1, 0]]), np.array([1]), {})
    designs, _ = designs_for(Setting(chain, 1.0, off.BestLocal(), "run"), needs)
    names = around_of(designs.designs, [1], chain).names
    assert len(set(names)) == 2
    assert max(map(len, names)) < 80
