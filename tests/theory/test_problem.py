"""Problem: secrets, and what it refuses."""

import numpy as np
import pytest

import offrecord as off

CHAIN = off.MarkovChain.binary(0.01, 0.8)


def test_neighbouring_private_records_are_one_secret_or_each_its_own():
    private = [9, 2, 3, 4, 7]
    assert off.Problem(CHAIN, 10, private, 1.0).secrets == [(2, 4), (7, 7), (9, 9)]
    assert off.Problem(CHAIN, 10, private, 1.0, protect="each").secrets == [
        (2, 2),
        (3, 3),
        (4, 4),
        (7, 7),
        (9, 9),
    ]


def test_one_private_record_may_be_given_as_a_number():
    assert off.Problem(CHAIN, 10, np.int64(3), 1).private == (3,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((CHAIN, 1, [1], 1.0), "n must be from 2"),
        ((CHAIN, 10.0, [1], 1.0), "n must be a whole number, got 10.0"),
        ((CHAIN, True, [1], 1.0), "n must be a whole number"),
        (
            (CHAIN, 10, [0], 1.0),
            r"private must be records from 1 to 10, got 0 \(records count from 1\)",
        ),
        ((CHAIN, 10, [11], 1.0), "private must be records from 1 to 10, got 11"),
        ((CHAIN, 10, [3, 3], 1.0), "private must name each record once, got 3 twice"),
        ((CHAIN, 10, [], 1.0), "private must name at least one record"),
        ((CHAIN, 10, ["a"], 1.0), "private must be a whole number, got 'a'"),
        ((CHAIN, 10, [1.5], 1.0), "private must be a whole number, got 1.5"),
        ((CHAIN, 10, [1], -1.0), r"epsilon must be finite and at least 0, got epsilon=-1\.0"),
        ((CHAIN, 10, [1], float("nan")), "epsilon must be finite"),
        ((CHAIN, 10, [1], float("inf")), "epsilon must be finite"),
        ((CHAIN, 10, [1], "1"), "epsilon must be a number"),
        ((CHAIN, 10, [1], 10**400), "epsilon must be finite"),
        ((CHAIN, 10, [1], 1.0, np.array(["run", "each"])), "protect must be"),
        ((CHAIN, 10, [1], 1.0, "all"), 'protect must be "run" or "each"'),
        (("chain", 10, [1], 1.0), "chain must be a MarkovChain"),
        (
            (off.MarkovChain([[[0.5, 0.5], [0.1, 0.9]]], start=[0.5, 0.5]), 3, [1], 1.0),
            "n must be 2, one more than",
        ),
    ],
)
def test_what_is_no_problem_is_refused(arguments, message):
    with pytest.raises(off.InputError, match=message):
        off.Problem(*arguments)


THREE = off.MarkovChain(np.full((3, 3), 1 / 3))


@pytest.mark.parametrize(
    ("models", "coverage", "message"),
    [
        ([], None, "the list of chains must hold at least one chain"),
        ([CHAIN, THREE], None, "chains of one list must have the same values"),
        ([THREE], None, "models must have the chain's values"),
        (CHAIN, None, "models must be a list of chains or a posterior, got MarkovChain"),
        ([CHAIN, 0.5], None, "the list must hold chains, got float"),
        ([CHAIN], 0.9, r"coverage must be 0.99 or 0.95, got 0.9"),
    ],
)
def test_what_is_no_list_of_models_is_refused(models, coverage, message):
    with pytest.raises(off.InputError, match=message) as refused:
        off.Problem(CHAIN, 10, [1], 1.0, models=models, coverage=coverage)
    assert "\n" not in str(refused.value)
