"""Columns that are not there: what is said names what there is, and no cell."""

import pandas as pd
import pytest

import offrecord as off
from hours import frame
from offrecord.tables.column_names import check_columns


@pytest.mark.parametrize(
    ("wanted", "names", "said"),
    [
        (["state"], ["room", "State"], "one called 'State': capitals count"),
        (["state"], ["room", " state"], "remove the blanks"),
        (["room", "stat"], ["room", "state"], "did you mean 'state'\\? it has room, state"),
        (["x"], ["room", "hour"], "it has room, hour$"),
        (["a"], ["a;b"], "separated by ';'"),
        (["a", "b"], ['"a"\t"b"'], "separated by tab"),
        (
            ["zz"],
            [f"column{i}" for i in range(1000)],
            "column0, .* and 9[0-9][0-9] more; if each is a step",
        ),
    ],
)
def test_what_is_said(wanted, names, said):
    with pytest.raises(off.InputError, match=said) as error:
        check_columns(wanted, names, "the table")
    assert len(str(error.value)) < 400


def test_cells_are_not_taken_for_names():
    for names in (["a1", "1", "secret"], ["a1;1;secret"]):
        with pytest.raises(off.InputError, match="its first line must hold the names") as error:
            check_columns(["room", "state"], names, "t.csv", cells=True)
        assert "secret" not in str(error.value)
    with pytest.raises(off.InputError, match="one called 'ROOM': capitals count"):
        check_columns(["room", "state"], ["ROOM", "VALUE"], "t.csv", cells=True)


def test_columns_that_are_named_by_numbers(redact):
    table = frame().to_pandas()
    table.columns = range(4)
    named = {"by": "0", "order": "1", "value": "2", "private": "3"}
    assert redact(table, **named).summary.redacted > 0
    numbers = {name: int(column) for name, column in named.items()}
    with pytest.raises(
        off.InputError, match=r"value must be the name of a column, as text, got int: write '2'"
    ):
        redact(table, **numbers)
    assert isinstance(table, pd.DataFrame)
