"""The same data in every kind of frame."""

import duckdb
import pytest

import offrecord as off
from hours import MODEL, frame, rows_of


def _frames(table):
    return {
        "polars": table,
        "polars lazy": table.lazy(),
        "pandas": table.to_pandas(),
        "pandas with arrow": table.to_pandas(use_pyarrow_extension_array=True),
        "pyarrow": table.to_arrow(),
        "duckdb": duckdb.from_arrow(table.to_arrow()),
    }


KINDS = ("polars", "polars lazy", "pandas", "pandas with arrow", "pyarrow", "duckdb")


@pytest.mark.parametrize("states", [(0, 1), ("dry", "wet"), (False, True), (0.5, 2.0)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_frames_come_back_as_the_kind_they_came(redact, kind, states):
    table, model = frame(states), off.MarkovChain(MODEL.transition, labels=states)
    source = _frames(table)[kind]
    release = redact(source, model=model)
    assert type(release.frame) is type(source)
    expected = redact(table, model=model).frame
    assert rows_of(release.frame) == rows_of(expected)
    if kind.startswith("pandas") and not isinstance(states[0], str):  # nulls and all
        assert (
            str(release.frame["state"].dtype)
            == {bool: "boolean", int: "Int64", float: "float64"}[type(states[0])]
        )


@pytest.mark.parametrize("kind", KINDS)
def test_private_lists_of_any_kind(redact, kind):
    table = frame()
    listed = _frames(table.filter("hidden").select("room", "hour"))[kind]
    by_list = redact(table, private=None, private_list=listed)
    assert by_list.frame.equals(redact(table).frame)
    assert by_list.certificate["private"] == redact(table).certificate["private"]


def test_whole_numbers_stay_exact_in_pandas(redact):
    states = (2**53, 2**53 + 1)
    table = frame(states)
    release = redact(table.to_pandas(), model=off.MarkovChain(MODEL.transition, labels=states))
    assert rows_of(release.frame) == rows_of(
        redact(table, model=off.MarkovChain(MODEL.transition, labels=states)).frame
    )
