"""Designs for sets of models: private for every model in them, and what that costs."""

from itertools import product

import numpy as np
import pytest

import offrecord as off
from offrecord.fitting.boxes import Sureness, learned_box
from offrecord.fitting.intervals import rounded_shares
from offrecord.theory.first_release import directional_leakage

#: How often no, little or much rain was followed by each on a Pacific island (R's markovchain).
ALOFI = np.array([[362, 126, 60], [136, 90, 68], [50, 79, 124]])


def alofi(transitions=None):
    """The chain with its 95 % set, from the counts or from as many as would be expected."""
    counts = ALOFI
    if transitions is not None:
        chain = off.MarkovChain(ALOFI / ALOFI.sum(axis=1, keepdims=True))
        counts = np.round(chain.start[:, np.newaxis] * chain.transition * transitions).astype(int)
    chain = off.MarkovChain(rounded_shares(counts))
    return chain.with_box(learned_box(counts, chain, Sureness()))


def redacted(policy):
    """Expected redactions beside the one private record."""
    return policy.problem.n * (1 - policy.utility) - 1


@pytest.mark.parametrize(("transitions", "window"), [(None, 6), (10_000, 4), (100_000, 3)])
def test_windows_for_three_values(transitions, window):
    problem = off.Problem(alofi(transitions), 41, [21], 1.0)
    policy = off.BestWindow().design(problem)
    assert policy.is_private
    assert policy.worst.exact
    assert redacted(policy) == pytest.approx(window)
    alone = off.BestWindow().design(off.Problem(alofi(transitions).alone, 41, [21], 1.0))
    assert redacted(alone) == pytest.approx(3)


@pytest.mark.soak
@pytest.mark.parametrize(("transitions", "best"), [(None, 5.06), (10_000, 3.25), (100_000, 2.74)])
def test_best_local_for_three_values(transitions, best):
    policy = off.BestLocal().design(off.Problem(alofi(transitions), 41, [21], 1.0))
    assert policy.is_private
    assert redacted(policy) <= 1.05 * best


def members(intervals, rng):
    """A kernel of a box: a corner of every row, or something inside."""
    low, high = intervals
    kernel = low.copy()
    for row, most in zip(kernel, high, strict=True):
        for j in rng.permutation(len(row)):
            rest = 1.0 - row.sum()
            row[j] += min(rest, most[j] - row[j])
        assert row.sum() == pytest.approx(1.0)
    return kernel


def test_no_model_of_the_set_tells_more_than_a_design_may():
    """Kernels free by step, forwards to the right and backwards to the left (R3)."""
    rng = np.random.default_rng(3)
    chain = alofi()
    box, n, p = chain.box, 9, 5
    problem = off.Problem(chain, n, [p], 1.0)
    for mechanism in (off.BestWindow(), off.ThreeRegion("relaxed"), off.ThreeRegion("constant")):
        policy = mechanism.design(problem)
        matrix = policy.redaction
        assert policy.is_private
        largest = 0.0
        for _ in range(300):
            kernels = [[members(way, rng) for _ in range(4)] for way in (box.backward, box.forward)]
            left = directional_leakage(np.stack(kernels[0]), matrix[: p - 1][::-1])
            right = directional_leakage(np.stack(kernels[1]), matrix[p:])
            largest = max(largest, float((left + right).max()))
        assert largest <= policy.leakage + 1e-12
        assert policy.leakage <= 1.0


def test_runs_and_several_secrets_keep_within_their_budget_over_the_set():
    chain = alofi()
    for protect, private in product(("run", "each"), ([8, 9], [8, 12], [1, 20])):
        problem = off.Problem(chain, 20, private, 1.0, protect)
        policy = off.ThreeRegion("relaxed").design(problem)
        assert policy.is_private
        assert policy.utility > 0


def test_a_policy_file_keeps_its_set(tmp_path):
    problem = off.Problem(alofi(), 41, [21], 1.0)
    policy = off.BestWindow().design(problem)
    policy.save(tmp_path / "policy.json")
    again = off.Policy.load(tmp_path / "policy.json")
    assert again.leakage == policy.leakage
    alone = off.leakage(off.Problem(problem.chain.alone, 41, [21], 1.0), policy.redaction)
    assert alone < policy.leakage


def test_designs_know_their_set(tmp_path):
    """Designs of one set are not those of another, nor of the model alone."""
    from offrecord.designs.library import Designs, Setting
    from offrecord.designs.needs import SurroundingCounts
    from offrecord.designs.sharing import designs_for

    one = (np.array([10]), np.array([10]), np.array([1]), np.array([0]), np.array([1]))
    mechanism, chain = off.BestWindow(), off.MarkovChain.binary(0.05, 0.3)
    box = off.Box.binary((0.04, 0.06), (0.25, 0.35))
    setting = Setting(chain.with_box(box), 1.0, mechanism, "run")
    designs, _ = designs_for(setting, SurroundingCounts(*one))
    designs.save(tmp_path / "designs.json")
    assert Designs.load(tmp_path / "designs.json", setting).candidates
    wider = off.Box.binary((0.03, 0.06), (0.25, 0.35))
    for other in (chain, chain.with_box(wider), chain.with_box(box.with_start("any"))):
        with pytest.raises(off.InputError, match="another model"):
            Designs.load(tmp_path / "designs.json", Setting(other, 1.0, mechanism, "run"))


def test_a_constant_is_found_where_the_search_for_it_does_not_converge():
    """A set that was learned from 3,600 records: bounds over it are not smooth in the constant."""
    forward = (
        [[0.878, 0.0658, 0.00999], [0.164, 0.65, 0.0711], [0.0276, 0.114, 0.739]],
        [[0.9185, 0.103, 0.0278], [0.246, 0.744, 0.132], [0.0833, 0.206, 0.841]],
    )
    backward = (
        [[0.877, 0.0696, 0.00783], [0.155, 0.653, 0.0763], [0.0351, 0.107, 0.737]],
        [[0.9173, 0.108, 0.0242], [0.237, 0.747, 0.139], [0.0955, 0.196, 0.839]],
    )
    chain = off.MarkovChain(
        [[0.8993, 0.08311, 0.01759], [0.2031, 0.69785, 0.09905], [0.05122, 0.157, 0.79178]],
        box=off.Box(forward, backward),
    )
    problem = off.Problem(chain, 55, [51], 0.4)
    policy = off.design(problem, off.ThreeRegion("constant"))
    assert off.worst_output(problem, policy.redaction).upper <= 0.4
    assert policy.utility > 0.6
