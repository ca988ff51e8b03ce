"""Mechanisms side by side for one problem."""

import pytest

import offrecord as off


@pytest.fixture
def problem():
    return off.Problem(off.MarkovChain.binary(0.05, 0.3), n=21, private=[11], epsilon=1.0)


def test_compare_takes_names_and_mechanisms(problem):
    every = off.compare(problem)
    assert set(off.MECHANISMS) <= set(every.names)
    some = off.compare(problem, ["window", off.BestLocal()], epsilons=[0.5, 1.0, 2.0])
    assert some.epsilons == [0.5, 1.0, 2.0]
    for row in some:
        if row["leakage"] is not None:
            policy = off.design(
                problem.with_epsilon(row["epsilon"]), off.mechanism_named(row["mechanism"])
            )
            assert row["utility"] == policy.utility
            # products of kernels are rounded by what was asked for before
            assert row["leakage"] == pytest.approx(policy.leakage, rel=1e-12)
    assert len(some) == len(some.rows) == len(list(some))
    assert str(some).splitlines()[1].split()[-2:] == ["window", "best-local"]


@pytest.mark.parametrize("private", [[1], [3], [7]])
def test_compare_leaves_out_what_does_not_serve_unless_it_is_asked_for(private):
    """No walk comes to the values that this chain cannot begin with."""
    chain = off.MarkovChain([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]], start=[1, 0, 0])
    problem = off.Problem(chain, 7, private, 1.0)
    found = off.compare(problem)
    assert set(off.MECHANISMS) - set(found.names) == {"quilt"}
    utility = {row["mechanism"]: row["utility"] for row in found}
    assert max(utility.values()) == pytest.approx(utility["owner"], abs=1e-9)
    with pytest.raises(off.InputError):
        off.compare(problem, ["quilt"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mechanisms": "window"}, "mechanisms must be a list of them, got the text 'window'"),
        ({"mechanisms": [off.BestLocal(), "best-local"]}, "two mechanisms have the same name"),
        ({"mechanisms": ["windo"]}, "window"),
        ({"epsilons": []}, "epsilons must hold at least one privacy budget, got none"),
        ({"epsilons": [-1]}, "epsilon"),
    ],
)
def test_what_compare_refuses(problem, given, said):
    with pytest.raises(off.InputError, match=said):
        off.compare(problem, **given)
