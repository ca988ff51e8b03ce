"""Every number, table and figure of the paper."""

from offrecord.paper import reproduce as paper


def test_every_number_is_the_papers():
    """All in one test: what they share is computed once, and not before a test asks for it."""
    checks = list(paper.checks())
    wrong = [
        f"{check.place}: {check.what}: the paper has {check.paper}, ours is {check.ours}"
        for check in checks
        if not check.agrees
    ]
    assert checks
    assert wrong == []


def test_every_erratum_has_its_counter_example():
    errata = list(paper.errata())
    assert errata
    assert [f"{one.place}: {one.finding}" for one in errata if not one.recomputed] == []


def test_fig1_shows_all_three_regions_and_symmetry():
    rows, threshold = paper.fig1()
    assert {row["region"] for row in rows} == {"L", "M", "S"}
    assert 0 < threshold < 0.5
    left = {(row["record"], row["value"]): row["influence"] for row in rows}
    assert all(left[record, value] == left[-record, value] for record, value in left)


def test_fig2_grows_but_for_the_jumps_of_the_regions():
    rows = paper.fig2([0.3, 0.4])
    assert len(rows) == 8
    by_name = {
        name: [r["utility"] for r in rows if r["mechanism"] == name] for name in paper.FIG2_NAMES
    }
    assert all(low <= high for low, high in by_name.values())


def test_fig3_is_drawn_from_the_designs():
    rows, names = paper.fig3()
    assert len(names) == 4
    assert {row["record"] for row in rows} == {1, 2, 3, 4, 5}
