"""No table leaks more than its rules claim, by definition: all sequences, all coins, exactly.

Rules are random and made for no chain at all, so what is tested are the rules of tables: cores,
sides that cannot look, near runs, walks that meet, one policy for lone records and one for runs.
"""

import math

import pytest
from deciding_cases import (
    local_leakages,
    random_case,
    random_local_case,
    stopping_leakages,
)

from offrecord.theory.pairs import ROUNDING


def check(cases, leakages):
    """Every case keeps its claims, and some claims are met exactly: they are no loose bounds."""
    met = 0
    for case in cases:
        for leaks, claim in leakages(case):
            assert leaks <= claim + ROUNDING, case.table
            met += 0 < claim < leaks + ROUNDING and math.isfinite(claim)
    assert met >= len(cases) // 10


def test_stopping_rules_leak_no_more_than_they_claim():
    check([random_case(seed, most=256) for seed in range(100)], stopping_leakages)


def test_local_rules_leak_no_more_than_they_claim():
    check([random_local_case(seed, most=64) for seed in range(60)], local_leakages)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_stopping_rules_leak_no_more_than_they_claim_in_many_tables(part):
    seeds = range(1000 + 300 * part, 1300 + 300 * part)
    check([random_case(seed, most=2200) for seed in seeds], stopping_leakages)


@pytest.mark.soak
def test_local_rules_leak_no_more_than_they_claim_in_many_tables():
    check([random_local_case(seed) for seed in range(1000, 2000)], local_leakages)
