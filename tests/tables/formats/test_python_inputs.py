"""What people give in Python instead of what a function takes: it works, or a line says what to
write.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import offrecord as off
from hours import COLUMNS, EPSILON, MODEL, frame, rows_of

# ---- models, lists and marks


def test_a_fit_is_taken_for_its_model(redact):
    table = frame()
    fit = off.fit(frame(rooms=("d", "e"), seed=2), **COLUMNS)
    assert redact(table, model=fit).frame.equals(redact(table, model=fit.model).frame)


@pytest.mark.parametrize("model", [5, MODEL.transition, {"alpha": 0.1}], ids=repr)
def test_what_is_no_model_is_said(redact, model):
    with pytest.raises(off.InputError, match="a list of chains, a fit or a model file, got"):
        redact(frame(), model=model)


@pytest.mark.parametrize("path", [str, lambda file: file], ids=["text", "path"])
def test_a_private_list_may_be_a_file(redact, tmp_path, path):
    table, file = frame(), tmp_path / "list.csv"
    listed = table.filter("hidden").select("room", "hour")
    listed.write_csv(file)
    release = redact(table, private=None, private_list=path(file))
    assert release.frame.equals(redact(table).frame)
    whole = off.fit(table, **COLUMNS, private_list=listed[:1])
    listed[:1].write_csv(file)
    assert off.fit(table, **COLUMNS, private_list=path(file)).units == 2
    assert whole.units == 2


def test_a_file_takes_a_list_in_a_file(tmp_path):
    table, asked = frame(shuffled=False), {"model": MODEL, "epsilon": EPSILON, "dataset": "rooms"}
    asked |= COLUMNS | {"key_file": tmp_path / "k" / "key.json"}
    table.write_csv(tmp_path / "t.csv")
    table.filter("hidden").select("room", "hour").write_csv(tmp_path / "list.csv")
    off.redact_file(tmp_path / "t.csv", tmp_path / "a.csv", private="hidden", **asked)
    listed = {"private_list": str(tmp_path / "list.csv")}
    off.redact_file(tmp_path / "t.csv", tmp_path / "b.csv", **listed, **asked)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


MARKS = {
    "polars": lambda table: (table, table["hidden"]),
    "an array": lambda table: (table, table["hidden"].to_numpy()),
    "a list": lambda table: (table, table["hidden"].to_list()),
    "pandas": lambda table: (given := table.to_pandas(), given["hidden"]),
    "pandas, array": lambda table: (table.to_pandas(), table["hidden"].to_numpy()),
    "an index": lambda table: (
        given := table.to_pandas().set_index(np.arange(table.height)[::-1] // 2),
        given["hidden"],
    ),
    "pyarrow": lambda table: (given := table.to_arrow(), given["hidden"]),
}


@pytest.mark.parametrize("kind", MARKS)
def test_marks_may_stand_beside_the_table(redact, kind):
    table = frame()
    given, marks = MARKS[kind](table)
    release = redact(given, private=marks)
    expected = redact(table)
    assert rows_of(release.frame) == rows_of(expected.frame)
    assert release.certificate["private"] == expected.certificate["private"]
    few = [False] * (table.height - 1) + [True]
    held = off.fit(given, **COLUMNS, private=few)
    assert held.units == 2


WRONG = {
    "shorter": (
        lambda given: given["hidden"].to_numpy()[:-1],
        "a mark for each of 240 rows, got 239",
    ),
    "sorted": (
        lambda given: given["hidden"].sort_values(kind="stable"),
        "its index is another one",
    ),
    "another index": (
        lambda given: given["hidden"].set_axis(range(1, 241)),
        "its index is another one",
    ),
    "some of it": (lambda given: given["hidden"][given["hidden"]], "its index is another one"),
    "empty": (lambda given: pl.Series([None, *[True] * 239]), "true or false in every row"),
    "numbers": (lambda given: given["hidden"].astype(int), "true or false in every row"),
    "text": (lambda given: ["no"] * 240, "true or false for each row, got list"),
    "a frame": (lambda given: given[["hidden"]], "true or false"),
    "an expression": (lambda given: pl.col("hidden"), "true or false for each row, got Expr"),
    "true": (lambda given: True, "true or false for each row, got bool"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_marks_that_do_not_belong_to_the_rows_are_refused(redact, kind):
    given = frame().to_pandas()
    marks, said = WRONG[kind]
    with pytest.raises(off.InputError, match=said) as refused:
        redact(given, private=marks(given))
    assert "name of a column" in str(refused.value)


def test_marks_need_rows_in_an_order(redact, tmp_path):
    table = frame()
    with pytest.raises(off.InputError, match="a lazy frame has no order of rows"):
        redact(table.lazy(), private=table["hidden"])
    asked = COLUMNS | {"model": MODEL, "epsilon": EPSILON, "dataset": "rooms"}
    with pytest.raises(off.InputError, match="must be the name of a column here, got Series"):
        off.redact_file("t.csv", "out.csv", private=table["hidden"], **asked)


# ---- tables


@pytest.mark.parametrize("verb", ["redact", "fit"])
def test_a_path_is_no_frame(redact, verb):
    instead = {"redact": "or give off.redact_file both", "fit": "command line: offrecord fit$"}
    with pytest.raises(off.InputError, match=rf"got the path 'a.csv': read.*{instead[verb]}"):
        redact("a.csv") if verb == "redact" else off.fit("a.csv", **COLUMNS)


def test_a_frame_is_no_path():
    asked = COLUMNS | {"model": MODEL, "epsilon": EPSILON, "dataset": "rooms", "private": "hidden"}
    with pytest.raises(off.InputError, match="takes the path of a table, got DataFrame"):
        off.redact_file(frame(), "out.csv", **asked)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"value": 2}, "value must be the name of a column, as text, got int: write '2'"),
        ({"order": 1}, "order must be the name of a column, as text, got int: write '1'"),
        ({"by": 0}, "by must be the name of a column, as text, got int: write '0'"),
        ({"by": ["0", 1]}, "by must be the name of a column, as text, got int: write '1'"),
        ({"keep": 4}, "keep must be the name of a column, as text, got int: write '4'"),
        ({"value": None}, "value must be the name of a column, as text, got None$"),
        ({"order": None}, "order must be the name of a column, as text, got None$"),
        ({"value": ["state"]}, "value must be the name of a column, as text, got list$"),
        ({"order": ("hour",)}, "order must be the name of a column, as text, got tuple$"),
        ({"value": pd.Series(["a secret"])}, "value must be .* as text, got Series$"),
        ({"by": pd.Series(["a secret"])}, "by must be .* as text, got Series$"),
    ],
    ids=str,
)
def test_columns_are_named_by_text(redact, changed, said):
    with pytest.raises(off.InputError, match=said):
        redact(frame(), **changed)


def test_columns_that_are_numbered_go_by_their_numbers_as_text(redact):
    table = frame()
    given = table.to_pandas().set_axis(range(4), axis=1)
    release = redact(given, by="0", order="1", value="2", private="3")
    expected = redact(
        table.rename(dict(zip(table.columns, "0123", strict=True))),
        by="0",
        order="1",
        value="2",
        private="3",
    )
    assert rows_of(release.frame) == rows_of(expected.frame)
    with pytest.raises(off.InputError, match="two columns of the table have the same name"):
        redact(given.set_axis([0, 1, 2, "2"], axis=1), by="0", order="1", value="2", private="3")


def test_a_private_cell_of_a_numbered_column_changes_nothing(redact):
    """Whatever its type: cells of any objects are text, whichever names columns have."""
    table = frame().to_pandas().set_axis(range(4), axis=1).astype({2: object})
    asked = {"by": "0", "order": "1", "value": "2", "private": "3", "mechanism": "window"}
    expected = rows_of(redact(table, **asked).frame)
    for cell in ("?", 2.5, None, (1, 2)):
        other = table.copy()
        other.at[int(np.flatnonzero(table[3])[0]), 2] = cell
        assert rows_of(redact(other, **asked).frame) == expected


@pytest.mark.parametrize("index", [["room"], ["hour"], ["room", "hour"]], ids=str)
def test_the_index_of_pandas_has_columns(redact, index):
    given, expected = frame().to_pandas().set_index(index), redact(frame()).frame
    release = redact(given, private=given["hidden"])
    assert rows_of(release.frame) == rows_of(expected)
    assert list(release.frame.columns) == ["room", "hour", "state"]
    asked = COLUMNS | {"private": given["hidden"]}
    assert off.fit(given, **asked).units == off.fit(frame(), **COLUMNS, private="hidden").units


def test_an_index_without_a_name_is_called_index(redact):
    table = frame().to_pandas()
    days = pd.to_datetime(table["hour"], unit="h")
    for hours in (table["hour"], days):
        given = table.drop(columns="hour").set_axis(pd.Index(hours).rename(None))
        asked = {"order": "index", "dataset": str(hours.dtype)}
        release = redact(given, **asked, private=given["hidden"])
        assert list(release.frame.columns) == ["room", "index", "state"]
        assert rows_of(release.frame) == rows_of(redact(given.reset_index(), **asked).frame)
    # a range that nobody asks for says nothing
    assert "index" not in off.look(table).redact


@pytest.mark.parametrize("index", [["room"], ["hour"], ["room", "hour"]], ids=str)
def test_the_index_of_a_list_has_columns(redact, index):
    """Without its order column, it would be a list of whole chains."""
    table, expected = frame(), redact(frame()).frame
    listed = table.filter("hidden").select("room", "hour").to_pandas().set_index(index)
    assert redact(table, private=None, private_list=listed).frame.equals(expected)
    units = off.fit(table, **COLUMNS, private_list=listed).units
    assert units == off.fit(table, **COLUMNS, private="hidden").units
    ranged = listed.reset_index().assign(to=99).rename(columns={"hour": "from"})
    by_column = redact(table, private=None, private_list=ranged, dataset="ranges").frame
    by_index = redact(
        table, private=None, private_list=ranged.set_index("from"), dataset="ranges"
    ).frame
    assert by_index.equals(by_column)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"mechanism": 5}, "mechanism must be one of .*, or an object such as .*, got int$"),
        ({"mechanism": off.BestLocal}, r"such as BestLocal\(\), got the class BestLocal$"),
        ({"key_file": 5}, "key_file must be the path of a file, got int$"),
        ({"model": None, "fit": True, "fit_distance": "2"}, "a whole number, got .2.$"),
        ({"private_list": 5}, "the private list must be a frame .*, got int$"),
    ],
    ids=str,
)
def test_what_is_of_another_type_is_said(redact, tmp_path, changed, said):
    asked = COLUMNS | {"private": "hidden", "model": MODEL, "epsilon": EPSILON, "dataset": "d"}
    with pytest.raises(off.InputError, match=said):
        off.redact(frame(), **asked | {"key_file": tmp_path / "k" / "key.json"} | changed)


# ---- what is printed


def test_a_release_prints_its_figures_and_no_table(redact, tmp_path):
    release = redact(frame())
    assert str(release) == release.summary.figures()
    assert repr(release).count("\n") == 0
    assert len(repr(release)) < 100
    assert "records released" in repr(release)
    asked = COLUMNS | {"model": MODEL, "epsilon": EPSILON, "dataset": "x", "private": "hidden"}
    frame(shuffled=False).write_csv(tmp_path / "t.csv")
    done = off.redact_file(tmp_path / "t.csv", None, dry_run=True, **asked)
    assert str(done) == done.summary.figures()
    assert len(repr(done)) < 100


def test_a_fit_is_a_page_and_its_repr_a_line():
    fit = off.fit(frame(), **COLUMNS)
    assert repr(fit) == f"<Fit of {str(fit).splitlines()[0]}>"
