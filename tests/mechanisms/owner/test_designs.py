"""Designs keep their promise, and redact what the mathematics says they should."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from offrecord.mechanisms.base import Unserved
from offrecord.mechanisms.owner.common_mass import bridges_in_common
from offrecord.mechanisms.owner.mechanism import OwnerStopping
from offrecord.mechanisms.owner.search import Plausible, Search
from offrecord.mechanisms.owner.side import Side
from offrecord.mechanisms.rules import Setting, StoppingRule, expected_cost
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.chain import MarkovChain
from offrecord.models.members import Members, Places
from offrecord.models.posterior import Posterior
from offrecord.models.promise import KnownChains
from offrecord.release.certificate import Stopping
from offrecord.text import unwatched

RECORD = Setting("record")
RAIN = [[0.976, 0.024], [0.27, 0.73]]
OCCUPANCY = [[0.9964, 0.0036], [0.012, 0.988]]


def known(rows, order=1):
    members = Members(np.array(rows)[np.newaxis, np.newaxis], order)
    return Plausible(members, members, members)


def redactions(chains, pair, place=0):
    cost = expected_cost(pair, chains.mean, 0)
    return cost + chains.mean.order


def optimum(rows, start, target, deadline):
    """O3 written down at once: the mass stopped at every level, for each far value."""
    k, total, bound = len(rows), 0.0, np.exp(target)
    powers = [np.linalg.matrix_power(rows, t) for t in range(deadline + 1)]
    for far in range(k):
        number = np.arange(deadline * k * k).reshape(deadline, k, k)
        rows_ub, most, rows_eq, equal = [], [], [], []
        for t in range(1, deadline + 1):
            for x in range(k):
                for i in range(k):
                    row = np.zeros(number.size)
                    row[number[t - 1, x, i]] = 1.0
                    for u in range(1, t):
                        row[number[u - 1, x]] += powers[t - u][:, i]
                    if t < deadline:  # no more stops than is there
                        rows_ub.append(row)
                        most.append(powers[t][x, i])
                    elif i == far:  # and at the deadline all of it
                        rows_eq.append(row)
                        equal.append(powers[t][x, i])
                    for y in range(k):
                        if y != x:
                            pair = np.zeros(number.size)
                            pair[number[t - 1, x, i]] = 1.0
                            pair[number[t - 1, y, i]] = -bound
                            rows_ub.append(pair)
                            most.append(0.0)
        costs = np.zeros(number.shape)
        limits = np.full((*number.shape, 2), [0.0, np.inf])
        for t in range(1, deadline + 1):
            costs[t - 1] = start[:, np.newaxis] * powers[deadline - t][:, far] * (t - 1)
        limits[-1, :, np.arange(k) != far, 1] = 0.0
        found = linprog(
            costs.ravel(), rows_ub, most, rows_eq, equal, limits.reshape(-1, 2), method="highs"
        )
        total += found.fun
    return total


@pytest.mark.parametrize("seed", range(4))
def test_one_known_chain_reaches_the_optimum_of_all_levels(seed):
    rng = np.random.default_rng(seed)
    k = 2 + seed % 2
    rows = 0.5 * rng.dirichlet(np.ones(k) * 0.7, k) + 0.5 * np.eye(k)
    chains = known(rows)
    pair = Search(chains, RECORD, 1.0).best().pair
    law, back = chains.mean.law()[0], chains.mean.back(0, 1)[0]
    best = optimum(back, law, 0.5, pair.left.deadline) + optimum(
        rows, law, 0.5, pair.right.deadline
    )
    assert redactions(chains, pair) - 1 == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize(("rows", "expected"), [(RAIN, 3.94), (OCCUPANCY, 83.2)])
def test_known_chains_redact_what_they_did_in_the_prototype(rows, expected):
    chains = known(rows)
    pair = Search(chains, RECORD, 1.0).best().pair
    assert redactions(chains, pair) == pytest.approx(expected, rel=0.01)


def random_posterior(rng, k, order, size):
    contexts = k**order
    truth = rng.dirichlet(np.ones(k) * 2, contexts)
    return Posterior(rng.multinomial(size, truth), order, tuple(range(k)))


@pytest.mark.parametrize(("k", "order", "seed"), [(2, 1, 0), (3, 1, 1), (2, 2, 2)])
def test_rules_keep_the_promise_in_fresh_members(k, order, seed):
    """Every kind of setting, alone and together, and within the acceptance of a verifier."""
    promise = random_posterior(np.random.default_rng(seed), k, order, 3000)
    kinds = ("record", "run", "first", "last") if order == 1 else ("record",)
    settings = [Setting(kind) for kind in kinds]
    rules = next(OwnerStopping().attempts(promise, settings, 1.0, unwatched))
    assert all(isinstance(one, StoppingRule | None) for pair in rules.values() for one in pair)
    policy = TablePolicy("owner", 1.0, "run", 0.99, rules)
    above = int((policy.leakages(promise.members(8000, 1234)) > 1.0).sum())
    assert above <= 53
    again = next(OwnerStopping().attempts(promise, settings, 1.0, unwatched))
    np.testing.assert_array_equal(again[settings[0]].left.stop, rules[settings[0]].left.stop)
    for pair in rules.values():
        for rule in pair:
            if rule is not None:
                assert np.all(rule.stop * 2.0**64 % 1 == 0)
                back = StoppingRule.from_form(Stopping.of(rule.to_dict()))
                np.testing.assert_array_equal(back.stop, rule.stop)


@pytest.mark.parametrize(("k", "order"), [(2, 1), (3, 1), (2, 2)])
def test_every_chain_of_a_list_keeps_epsilon(k, order):
    rng = np.random.default_rng([k, order])
    rows = rng.dirichlet(np.ones(k) * 3, (3, k**order))
    promise = KnownChains(
        [MarkovChain(one.reshape((k,) * (order + 1)), order=order) for one in rows]
    )
    settings = [Setting(kind) for kind in ("record", "run", "first", "last")]
    policy = TablePolicy(
        "owner", 0.8, "run", None, next(OwnerStopping().attempts(promise, settings, 0.8, unwatched))
    )
    assert policy.leakages(promise.members()).max() <= 0.8


def test_rain_redacts_as_little_as_the_prototype():
    """Orders 1 and 2 at the 99 % quantile, within a tenth."""
    for counts, order, expected in (
        ([[3894, 96], [95, 263]], 1, 6.0),
        ([[3813, 77], [37, 59], [76, 19], [58, 204]], 2, 12.8),
    ):
        promise = Posterior(counts, order, (0, 1))
        chains = Plausible(
            promise.mean, promise.members(400, 1), promise.members(2000, 2), 0.01, 20
        )
        pair = Search(chains, RECORD, 1.0).best().pair
        assert redactions(chains, pair) <= 1.1 * expected


def test_all_bridges_stop_the_same_mass():
    """Under the mean chain every outcome is as likely from each start, up to the far context."""
    rng = np.random.default_rng(7)
    chain = Members(rng.dirichlet(np.ones(3), (1, 1, 3)))
    side = Side(chain, chain, 0, "right", 0.0, True, np.arange(3))
    walk = side.steps([1, 2, 3, 5])
    stop = bridges_in_common(walk, side)
    rule = StoppingRule(1, 3, np.array([1, 2, 3, 5]), np.arange(3), stop)
    seen = rule.outcomes(chain, 0, "right")[0]
    far = chain.ahead(0, 5)[0]
    allowed = [far[:, value] / far[:, value].sum() for value in range(3)]
    for row in seen[seen.max(axis=1) > 1e-12]:
        assert min(np.abs(row / row.sum() - one).max() for one in allowed) < 1e-9


def test_sides_of_panels_are_closed_where_no_deadline_fits():
    rng = np.random.default_rng(5)
    rows = 0.9 * np.eye(2) + 0.1 * rng.dirichlet(np.ones(2), (1, 7, 2))
    panel = Members(rows, 1, Places("step", 8), np.full((1, 2), 0.5))
    pair = Search(Plausible(panel, panel, panel), Setting("record", 3), 1.0).best().pair
    assert (pair.left.deadline, pair.right.deadline) == (4, 5)
    policy = TablePolicy("owner", 1.0, "run", None, {Setting("record", 3): pair})
    assert policy.leakages(panel)[0] == 0.0


def test_what_is_not_served():
    promise = KnownChains([MarkovChain(RAIN)])
    with pytest.raises(Unserved, match="ε = 0"):
        next(OwnerStopping().attempts(promise, [RECORD], 0.0, unwatched))
    periodic = KnownChains([MarkovChain([[0.0, 1.0], [1.0, 0.0]])])
    with pytest.raises(Unserved, match="forgets"):
        next(OwnerStopping().attempts(periodic, [RECORD], 1.0, unwatched))
    with pytest.raises(Unserved, match="too long"):
        replace(Search(known(RAIN), RECORD, 1.0), latest=0.0).best()
