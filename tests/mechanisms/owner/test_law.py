"""The law of a walk against every sequence, and the leakage of tables against every output."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from offrecord.errors import InputError
from offrecord.mechanisms.owner import law
from offrecord.mechanisms.rules import Pair, Setting, StoppingRule
from offrecord.mechanisms.rules_policy import RulesPolicy
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.chain import MarkovChain
from offrecord.models.members import Members, Places
from offrecord.theory.problem import Problem

CASES = [(2, 1), (3, 1), (2, 2)]


def random_members(rng, k, order, count=3):
    return Members(rng.dirichlet(np.ones(k), (count, 1, k**order)), order)


def random_rule(rng, k, order, levels, classes):
    contexts = k**order
    far = rng.permutation(np.arange(contexts) % classes)
    stop = np.floor(rng.random((len(levels) - 1, classes, contexts, contexts)) * 2**20) / 2**20
    stop[rng.random(stop.shape[:2]) < 0.2] = 0.0
    stop[0, 0, :, 0] = 1.0
    return StoppingRule(order, k, np.array(levels), far, stop)


def context(values, end, order, k):
    number = 0
    for value in values[end - order + 1 : end + 1]:
        number = number * k + value
    return number


def sequence_chance(members, member, values):
    order, k = members.order, members.k
    chance = members.law(0)[member, context(values, order - 1, order, k)]
    for end in range(order, len(values)):
        chance *= members.rows[member, 0, context(values, end - 1, order, k), values[end]]
    return chance


@pytest.mark.parametrize(("k", "order"), CASES)
@pytest.mark.parametrize("direction", ["left", "right"])
def test_outcomes_are_the_likelihoods_of_every_walk(k, order, direction):
    rng = np.random.default_rng([k, order, len(direction)])
    members = random_members(rng, k, order)
    levels = [order, order + 2, order + 3]
    rule = random_rule(rng, k, order, levels, 2)
    deadline, contexts = levels[-1], k**order
    seen = {}  # (level, context there, far context) → by start context
    stopped = np.zeros((members.count, len(levels)))
    for values in product(range(k), repeat=deadline + order):
        first, last = order - 1, order - 1 + deadline
        start_end, sign = (first, 1) if direction == "right" else (last, -1)
        start = context(values, start_end, order, k)
        at = [context(values, start_end + sign * level, order, k) for level in levels]
        for member in range(members.count):
            waiting = sequence_chance(members, member, values)
            for q in range(len(levels)):
                sigma = 1.0
                if q < len(levels) - 1:
                    sigma = rule.stop[q, rule.far[at[-1]], start, at[q]]
                key = (q, at[q], at[-1])
                row = seen.setdefault(key, np.zeros((members.count, contexts)))
                row[member, start] += waiting * sigma
                stopped[member, q] += waiting * sigma
                waiting *= 1.0 - sigma
    seen = {key: row / members.law(0) for key, row in seen.items() if row.any()}

    np.testing.assert_allclose(law.stop_law(rule, members, 0, direction), stopped, atol=1e-12)
    redacted = stopped @ (rule.levels - order)
    found = rule.expected_redactions(members, 0, direction)
    np.testing.assert_allclose(found, redacted, atol=1e-12)
    # up to factors that the start context does not change, and these are all that occur
    normal = {key: row / row.sum(axis=1, keepdims=True) for key, row in seen.items()}
    outcomes = rule.outcomes(members, 0, direction)
    outcomes = outcomes[:, outcomes.any(axis=(0, 2))]
    listed = outcomes / outcomes.sum(axis=2, keepdims=True)
    for row in normal.values():
        assert np.min(np.abs(listed - row[:, np.newaxis]).max(axis=(0, 2))) < 1e-12
    for number in range(listed.shape[1]):
        near = [np.abs(listed[:, number] - row).max() for row in normal.values()]
        assert min(near) < 1e-12


@pytest.mark.parametrize(("k", "order"), CASES)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_no_output_of_a_table_exceeds_the_leakage_of_its_rules(k, order, length):
    """Every sequence, walk and output, for a run of a table under rules made for no chain."""
    rng = np.random.default_rng([k, order, length])
    levels = [1, 2, 3] if (k, order) == (2, 1) else [order, order + 1]
    rules = [random_rule(rng, k, order, levels, min(2, k**order)) for _ in range(2)]
    for rule in rules:  # far from 0 and 1, so that no log-ratio is all there is
        np.copyto(rule.stop, rule.stop * 0.6 + 0.2 * (rule.stop > 0), where=rule.stop < 1)
    pair, deadline, core = Pair(*rules), levels[-1], max(order, length)
    setting = Setting("record" if length == 1 else "run")
    members = random_members(rng, k, order, 2)
    table = TablePolicy("test", 1.0, "run", None, {setting: pair})
    claimed = table.leakages(members)
    n = core + 2 * deadline if k == 2 and core + 2 * deadline <= 10 else core + deadline + 1
    end = n - deadline if n < core + 2 * deadline else deadline + core
    private = list(range(end - length + 1, end + 1))
    for member in range(members.count):
        chain = MarkovChain(members.rows[member, 0].reshape((k,) * (order + 1)), order=order)
        policy = RulesPolicy(Problem(chain, n, private, 1.0), table, "test")
        likely = {}
        for values in product(range(k), repeat=n):
            secret = values[private[0] - 1 : private[-1]]
            chance = sequence_chance(members, member, values)
            for mask, share in policy.outcomes(values):
                shown = tuple(v if kept else -1 for v, kept in zip(values, mask, strict=True))
                row = likely.setdefault(shown, {})
                row[secret] = row.get(secret, 0.0) + chance * share
        given = {}
        for row in likely.values():
            for secret, chance in row.items():
                given[secret] = given.get(secret, 0.0) + chance
        assert sum(given.values()) == pytest.approx(1.0)
        worst = 0.0
        for row in likely.values():
            ratios = [row.get(secret, 0.0) / chance for secret, chance in given.items()]
            if max(ratios) > 1e-15:
                worst = max(worst, np.log(max(ratios) / min(ratios)) if min(ratios) else np.inf)
        assert worst <= claimed[member] + 1e-9
        if length == 1 and n == core + 2 * deadline:  # exact where both sides can look
            assert worst == pytest.approx(claimed[member], abs=1e-9)


def test_a_deadline_beyond_a_known_end_closes_the_side():
    rng = np.random.default_rng(4)
    rows = rng.dirichlet(np.ones(2), (2, 1, 2))
    first = rng.dirichlet(np.ones(2), 2)
    members = Members(rows, 1, Places("step", 6), first)
    closing = random_rule(rng, 2, 1, [1, 3], 2)
    np.testing.assert_array_equal(closing.outcomes(members, 2, "left"), 1.0)
    np.testing.assert_array_equal(closing.expected_redactions(members, 2, "left"), 2.0)
    assert closing.outcomes(members, 3, "left").shape[1] > 1
    two = Members(rng.dirichlet(np.ones(2), (1, 1, 4)), 2, Places("step", 6), np.full((1, 4), 0.25))
    partly = random_rule(rng, 2, 2, [2, 4], 4)
    with pytest.raises(InputError, match="does not close"):
        partly.outcomes(two, 4, "left")
