"""The verifier's evaluation of rules: the definition, by brute force, and what designed them."""

from itertools import product

import numpy as np
import pytest

import offrecord as off
import releases
from offrecord.mechanisms.rules import LocalRule, Pair, Setting, StoppingRule
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.members import Places
from offrecord.models.posterior import Posterior
from offrecord.models.promise import KnownChains
from offrecord.release.certificate import Policy
from offrecord.verification.law import leakages, stop_law
from offrecord.verification.members import Drawn, Promised
from offrecord.verification.rules import Rules


def judged(rules, promise, rows=None):
    """Leakage by the verifier of rules, for all of a list or for given members."""
    promised = Promised(promise.form())
    policy = TablePolicy("x", 1.0, "run", promise.coverage, rules)
    drawn = promised.draw(1, np.random.default_rng(0))
    if rows is not None:
        drawn = Drawn(promised.kind, rows.rows, rows.first)
    return leakages(Rules.of(Policy.of(policy.to_dict()), promised), drawn)


def outcomes(rule, path, core, sign, order, k):
    """What one side shows of a path of values, with probabilities, from the definition."""
    if isinstance(rule, LocalRule):
        shown = [((), 1.0)]
        for distance, value in enumerate(path, 1):
            q = rule.redaction[distance - 1, value] if distance <= rule.reach else 0.0
            shown = [
                ((*here, one), chance * p)
                for here, chance in shown
                for one, p in (("*", q), (value, 1 - q))
                if p > 0
            ]
        return shown

    def context(distance):
        # the records of a context, in the order of time
        values = list(core)[-order:] if sign > 0 else list(core)[:order]
        line = values + list(path) if sign > 0 else list(reversed(path)) + values
        at = order + distance if sign > 0 else len(path) - distance
        part = line[at - order : at] if sign > 0 else line[at : at + order]
        return sum(v * k ** (order - 1 - i) for i, v in enumerate(part))

    found, going, far = [], 1.0, rule.far[context(rule.deadline)]
    for number, level in enumerate(rule.levels.tolist()):
        last = level == rule.deadline
        stop = 1.0 if last else rule.stop[number, far, context(0), context(level)]
        hidden = ("*",) * (level - order)
        if going * stop > 0:
            found.append((hidden + tuple(path[level - order :]), going * stop))
        going *= 1 - stop
    return found


def brute_force(chain, left, right, order):
    """Leakage about a lone record whose sides see as far as they look, from the definition."""
    k, m = chain.k, order
    beyond = [
        one.deadline if isinstance(one, StoppingRule) else one.reach + m for one in (left, right)
    ]
    n = beyond[0] + m + beyond[1]
    lifted = chain.members()
    law, kernel = lifted.law()[0], lifted.rows[0, 0]
    likely = {}
    for path in product(range(k), repeat=n):

        def number(at, path=path):
            return sum(path[at + i] * k ** (m - 1 - i) for i in range(m))

        weight = law[number(0)]
        for at in range(m, n):
            weight *= kernel[number(at - m), path[at]]
        core = path[beyond[0] : beyond[0] + m]
        before = tuple(reversed(path[: beyond[0]]))
        after = path[beyond[0] + m :]
        for a, p in outcomes(left, before, core, -1, m, k):
            for b, q in outcomes(right, after, core, 1, m, k):
                given = likely.setdefault((a, b), np.zeros(k))
                given[core[-1]] += weight * p * q
    mass = law.reshape(-1, k).sum(axis=0)
    table = np.array(list(likely.values())) / mass
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(table.max(axis=1) / table.min(axis=1))
    return np.nanmax(ratios)


@pytest.mark.parametrize(
    ("order", "kind"), [(1, "local"), (1, "mixed"), (2, "mixed"), (2, "local")]
)
def test_a_lone_record_against_the_definition(order, kind):
    rng = np.random.default_rng(7)
    for _ in range(6):
        rows = rng.dirichlet(np.ones(2) * 2, size=2**order).reshape((2,) * (order + 1))
        chain = off.MarkovChain(rows, order=order)
        sides = []
        while len(sides) < 2:
            one = releases.rule(rng, kind, 2, order)
            if (one.deadline if isinstance(one, StoppingRule) else one.reach + order) <= 4:
                sides.append(one)
        found = judged({Setting("record"): Pair(*sides)}, KnownChains([chain]))
        assert found[0] == pytest.approx(brute_force(chain, *sides, order), abs=1e-9)


def promises(rng, k, order):
    """Each kind of promise."""
    contexts = k**order
    counts = rng.integers(0, 80, (contexts, k)) + 1
    yield Posterior(counts, order)
    yield Posterior(counts, order, kappa=32.0)
    by_place = rng.integers(0, 30, (7, contexts, k)) + 1
    week = {"places": Places("weekday", 7), "place_counts": by_place, "place_kappa": 10.0}
    yield Posterior(by_place.sum(axis=0), order, **week)
    steps = Places("step", 7)
    first = rng.integers(1, 9, contexts)
    yield Posterior(by_place.sum(axis=0), order, **week | {"places": steps}, first_counts=first)
    shape = (k,) * (order + 1)
    yield KnownChains(
        [
            off.MarkovChain(
                rng.dirichlet(np.ones(k), size=contexts).reshape(shape),
                rng.dirichlet(np.ones(contexts)).reshape(shape[1:]),
                order=order,
            )
            for _ in range(3)
        ]
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_same_leakage_as_where_rules_are_designed(seed):
    rng = np.random.default_rng(seed)
    k, order = ((2, 1), (3, 1), (2, 2), (2, 3), (3, 2), (2, 4))[seed % 6]
    for promise in promises(rng, k, order):
        stepped = promise.places is not None and promise.places.kind == "step"
        kind = "local" if stepped else ("local", "stopping", "mixed")[seed % 3]
        places = 1 if promise.places is None else promise.places.count
        rules = {}
        for name in ("record", "run", "first", "last"):
            place = int(rng.integers(order if stepped else 0, places)) if places > 1 else 0
            pair = [releases.rule(rng, kind, k, order) for _ in range(2)]
            rules[Setting(name, place)] = Pair(
                None if name == "first" else pair[0], None if name == "last" else pair[1]
            )
        policy = TablePolicy("x", 1.0, "run", promise.coverage, rules)
        members = promise.members(15, seed)
        np.testing.assert_allclose(
            judged(rules, promise, members), policy.leakages(members), rtol=1e-9, atol=1e-9
        )


def test_many_outcomes_are_all_looked_at():
    """Bounds leave out pairs of outcomes; the largest is never one of them."""
    rng = np.random.default_rng(3)
    levels = np.arange(3, 11)
    promise = Posterior(rng.integers(1, 60, (8, 2)), 3)
    sides = [
        StoppingRule(3, 2, levels, np.arange(8), releases.drawable(rng.random((7, 8, 8, 8))))
        for _ in range(2)
    ]
    members = promise.members(20, 1)
    policy = TablePolicy("x", 1.0, "run", 0.99, {Setting("record"): Pair(*sides)})
    found = judged(policy.rules, promise, members)
    np.testing.assert_allclose(found, policy.leakages(members), rtol=1e-9)


@pytest.mark.parametrize("direction", ["left", "right"])
def test_the_law_of_the_stop(direction):
    from offrecord.mechanisms.owner.law import stop_law as designed

    rng = np.random.default_rng(1)
    promise = Posterior(rng.integers(1, 60, (4, 2)), 2)
    one = releases.stopping_rule(rng, 2, 2)
    members = promise.members(5, 1)
    rules = {Setting("run"): Pair(one, one)}
    policy = TablePolicy("x", 1.0, "run", 0.99, rules)
    rules = Rules.of(Policy.of(policy.to_dict()), Promised(promise.form()))
    side = rules.sides["run", 0, direction]
    found = stop_law(side, Drawn(rules.kind, members.rows), 0, direction)
    np.testing.assert_allclose(found, designed(one, members, 0, direction), atol=1e-12)


def test_likelihoods_that_may_vanish_count_as_a_leak():
    """Beyond what floats hold, nothing is said to be private."""
    chances = np.full((60, 2), 2.0**-64)
    rules = {Setting("record"): Pair(LocalRule(chances), LocalRule(chances))}
    chain = off.MarkovChain([[1 - 1e-12, 1e-12], [1e-12, 1 - 1e-12]])
    assert judged(rules, KnownChains([chain]))[0] > 20
