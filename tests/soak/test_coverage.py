"""Whole table policies, runs and places included, protect the chain that a table came from.

All cells are in `make soak`; these are two of them, a hundred tables in a minute.
"""

import pytest
from soak.coverage import CAMPAIGN

from soak import running

CELLS = [("rain, order 2, 150", 86), ("a kernel for each weekday", 14)]


@pytest.mark.parametrize(("cell", "tables"), CELLS)
def test_at_least_95_per_cent_of_tables_are_covered(cell, tables, tmp_path):
    covered = sum(
        CAMPAIGN.kinds[cell](running.numbers("coverage", cell, number), tmp_path)["covered"]
        for number in range(tables)
    )
    assert covered >= 0.95 * tables
