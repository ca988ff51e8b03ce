"""The figures of the paper, by the rows that they are drawn from."""

from offrecord.paper import figures


def test_fig1_shows_all_three_regions_and_symmetry():
    rows, threshold = figures.fig1()
    assert {row["region"] for row in rows} == {"L", "M", "S"}
    assert 0 < threshold < 0.5
    left = {(row["record"], row["name"]): row["influence"] for row in rows}
    assert all(left[record, value] == left[-record, value] for record, value in left)


def test_fig2_grows_but_for_the_jumps_of_the_regions():
    rows = figures.fig2([0.3, 0.4])
    assert len(rows) == 8
    by_name = {
        name: [r["utility"] for r in rows if r["mechanism"] == name] for name in figures.FIG2_NAMES
    }
    assert all(low <= high for low, high in by_name.values())


def test_fig3_is_drawn_from_the_designs():
    rows, names = figures.fig3()
    assert len(names) == 4
    assert {row["record"] for row in rows} == {1, 2, 3, 4, 5}
