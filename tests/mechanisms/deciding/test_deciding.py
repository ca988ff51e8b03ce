"""Decisions about tables: against the rules spelled out place by place, and what positions say."""

import itertools
import pickle

import numpy as np
import pytest
from deciding_cases import all_settings, one_sided, random_policy, random_rows

from definition import everywhere
from offrecord.errors import InputError
from offrecord.mechanisms.deciding.decide import ALWAYS, NEVER, certain, decide
from offrecord.mechanisms.deciding.expect import Geometry, expected_released, geometry
from offrecord.mechanisms.deciding.layout import settings_needed
from offrecord.mechanisms.rules import LocalRule, Setting, StoppingRule
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.members import Members
from offrecord.models.records import MISSING, UNKNOWN, Chains, Runs


def drawn(chain, order, purpose=b"offrecord/coins", counter=0):
    """Coins that look random: a function of the chain, the record, the purpose and the counter."""
    counters = np.broadcast_to(np.asarray(counter), len(chain))
    keys = zip(chain.tolist(), order.tolist(), counters.tolist(), strict=True)
    return np.array(
        [
            np.random.SeedSequence([a, b, c, len(purpose)]).generate_state(1, np.uint64)[0]
            for a, b, c in keys
        ],
        dtype=np.uint64,
    )


def random_chains(rng, k, count=40, *, absent=0.0, empty=0.03, rows=None):
    """Some chains of random values or of a Markov chain of order 1, and the private rows."""
    sizes = rng.integers(1, 60, size=count)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    n = int(starts[-1])
    codes = rng.integers(k, size=n).astype(np.int8)
    if rows is not None:
        first = np.isin(np.arange(n), starts)
        law = Members(rows[np.newaxis, np.newaxis]).law()[0]
        for i in range(n):
            codes[i] = rng.choice(k, p=law if first[i] else rows[codes[i - 1]])
    codes[rng.random(n) < empty] = MISSING
    places = np.arange(n) - np.repeat(starts[:-1], sizes)
    steps = None
    if absent:
        jumps = np.cumsum(rng.random(n) < absent)
        steps = places + jumps - np.repeat(jumps[starts[:-1]], sizes)
    order = rng.permutation(n)
    return Chains(starts, codes, order, False, steps), rng.random(n) < 0.06


def random_local_policy(rng, k, reach=5):
    rules = {}
    for setting in all_settings(0):
        sides = [LocalRule(rng.integers(0, 9, size=(reach, k)) / 8) for _ in range(2)]
        rules[setting] = one_sided(setting.kind, *sides)
    return TablePolicy("random", 1.0, "run", None, rules)


# ---- the table rules, place by place


def decided(values, private, policy, order, coin):
    """Which places of one chain are redacted. values: by place, None for what is not there."""
    end = len(values) - 1
    clusters = joined(cores_of(private, order, end), policy, end)
    gone, stops = set(), []
    for first, last, *_ in clusters:
        gone |= set(range(first, last + 1))
    for first, last, single, run in clusters:
        both = rules_of(policy, first, last, single, end)
        found = []
        for side, (rule, edge) in enumerate(zip(both, (first, last), strict=True)):
            if rule is None:
                found.append(None)
                continue
            context = contexts(values, rule, edge, side)
            found.append(rule.deadline if context is None else stop(rule, context, run, side, coin))
            sign = 1 if side else -1
            gone |= {edge + sign * d for d in range(1, found[-1] - order + 1)}
        stops.append(found)
    for i, (one, other) in enumerate(itertools.pairwise(clusters)):
        gap = other[0] - one[1] - 1
        right = rules_of(policy, *one[:3], end)[1].deadline
        left = rules_of(policy, *other[:3], end)[0].deadline
        if stops[i][1] > gap + order - left or stops[i + 1][0] > gap + order - right:
            gone |= set(range(one[1], other[0]))
    return {place for place in gone if 0 <= place <= end}


def cores_of(private, order, end):
    """First and last place of each core, whether its run is one record, and where that begins."""
    runs = []
    for place in sorted(private):
        if runs and runs[-1][1] == place - 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return [
        (max(min(a, b - order + 1), 0), min(max(b, order - 1), end), a == b, a) for a, b in runs
    ]


def rules_of(policy, first, last, single, end):
    if first == 0 or last == end:
        kind = "first" if first == 0 else "last"
    else:
        kind = "record" if single else "run"
    pair = policy.rules[Setting(kind)]
    return None if first == 0 else pair.left, None if last == end else pair.right


def joined(cores, policy, end):
    """All near neighbours become one at once; again, until nothing changes."""
    while True:
        found = cores[:1]
        for one, other in itertools.pairwise(cores):
            right = rules_of(policy, *one[:3], end)[1]
            left = rules_of(policy, *other[:3], end)[0]
            if other[0] - one[1] - 1 < max(right.deadline, left.deadline):
                found[-1] = (found[-1][0], other[1], False, found[-1][3])
            else:
                found.append(other)
        if len(found) == len(cores):
            return found
        cores = found


def contexts(values, rule, edge, side):
    """The number of the context at each level, at 0 that of the start; None if one is not whole."""
    found = {}
    for level in (0, *rule.levels.tolist()):
        begin = edge - rule.order + 1 + level if side else edge - level
        places = range(begin, begin + rule.order)
        seen = [values[place] if 0 <= place < len(values) else None for place in places]
        if None in seen:
            return None
        found[level] = sum(value * rule.k**i for i, value in enumerate(reversed(seen)))
    return found


def stop(rule, context, run, side, coin):
    far = rule.far[context[rule.deadline]]
    for number, level in enumerate(rule.levels[:-1].tolist()):
        chance = rule.stop[number, far, context[0], context[level]]
        if chance == 1 or coin(run, side * 2**20 + number) < int(chance * 2**64):
            return level
    return rule.deadline


@pytest.mark.parametrize("seed", range(12))
def test_decisions_follow_the_table_rules(seed):
    rng = np.random.default_rng(seed)
    k, order = [(2, 1), (2, 2), (3, 1), (2, 3)][seed % 4]
    policy = stopping_policy(rng, k, order, order + 4)
    chains, private = random_chains(rng, k, absent=0.03 * (seed % 2))
    runs = Runs.of(chains, private)
    redacted = decide(chains, runs, policy, everywhere, drawn, order)
    expected = np.zeros(len(private), dtype=bool)
    for chain in range(chains.count):
        rows = slice(*chains.starts[chain : chain + 2])
        places = chains.places[rows].tolist()
        values = [None] * (places[-1] + 1)
        for place, code in zip(places, chains.codes[rows].tolist(), strict=True):
            values[place] = None if code == MISSING else code
        order_of = dict(zip(places, chains.order[rows].tolist(), strict=True))

        def coin(run, counter, chain=chain, order_of=order_of):
            at = np.array([chain]), np.array([order_of[run]])
            return int(drawn(*at, b"offrecord/stops", counter)[0])

        hidden = {place for place, one in zip(places, private[rows], strict=True) if one}
        gone = decided(values, hidden, policy, order, coin)
        expected[rows] = [place in gone for place in places]
    np.testing.assert_array_equal(redacted, expected)


def stopping_policy(rng, k, order, furthest):
    """As random_policy, with stopping rules alone."""
    while True:
        policy = random_policy(rng, k, order, furthest)
        if policy.kinds == {"stopping"}:
            return policy


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_local_probability_counts(seed):
    rng = np.random.default_rng(seed)
    policy = random_local_policy(rng, 3)
    chains, private = random_chains(rng, 3, absent=0.05 * (seed % 2))
    runs = Runs.of(chains, private)
    redacted = decide(chains, runs, policy, everywhere, drawn, 1)
    draws = drawn(chains.chain_of, chains.order).astype(object)
    ends = chains.places[chains.starts[1:] - 1]
    for i in np.flatnonzero(chains.codes != MISSING):
        chance = 0.0
        for r in np.flatnonzero(runs.chain == chains.chain_of[i]):
            opens, closes = runs.first[r] == 0, runs.last[r] == ends[runs.chain[r]]
            alone = "record" if runs.first[r] == runs.last[r] else "run"
            pair = policy.rules[Setting("first" if opens else "last" if closes else alone)]
            away = runs.first[r] - chains.places[i], chains.places[i] - runs.last[r]
            rule, distance = (pair.left, away[0]) if away[0] > 0 else (pair.right, away[1])
            if distance <= 0:
                chance = 1.0
            elif not (opens and closes) and distance <= rule.reach:
                chance = max(chance, rule.redaction[distance - 1, chains.codes[i]])
        assert redacted[i] == (draws[i] < chance * 2**64)


# ---- what does not matter


@pytest.mark.parametrize("kind", ["local", "stopping"])
def test_batches_of_chains_are_decided_alike(kind):
    rng = np.random.default_rng(3)
    policy = random_local_policy(rng, 2) if kind == "local" else stopping_policy(rng, 2, 2, 6)
    order = 1 if kind == "local" else 2
    chains, private = random_chains(rng, 2, absent=0.02)
    whole = decide(chains, Runs.of(chains, private), policy, everywhere, drawn, order)
    parts = []
    for chain in range(chains.count):
        rows = slice(*chains.starts[chain : chain + 2])
        starts = np.array([0, rows.stop - rows.start])
        one = Chains(starts, chains.codes[rows], chains.order[rows], False, chains.steps[rows])

        def draw(_, *arguments, chain=chain):
            return drawn(np.full(len(arguments[0]), chain), *arguments)

        parts.append(decide(one, Runs.of(one, private[rows]), policy, everywhere, draw, order))
    np.testing.assert_array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("kind", ["local", "stopping"])
def test_absent_records_are_missing_ones(kind):
    rng = np.random.default_rng(4)
    policy = random_local_policy(rng, 2) if kind == "local" else stopping_policy(rng, 2, 1, 5)
    full, private = random_chains(rng, 2, empty=0.1)
    inner = ~np.isin(np.arange(len(private)), np.append(full.starts, full.starts - 1))
    gone = (full.codes == MISSING) & inner & ~private
    sizes = np.add.reduceat(~gone, full.starts[:-1])
    starts = np.concatenate(([0], np.cumsum(sizes)))
    some = Chains(starts, full.codes[~gone], full.order[~gone], False, full.places[~gone])
    by_row = decide(full, Runs.of(full, private), policy, everywhere, drawn, 1)
    by_step = decide(some, Runs.of(some, private[~gone]), policy, everywhere, drawn, 1)
    np.testing.assert_array_equal(by_row[~gone], by_step)


def test_private_values_that_the_model_does_not_know_decide_nothing():
    rng = np.random.default_rng(5)
    policy = stopping_policy(rng, 2, 1, 4)
    chains, private = random_chains(rng, 2, empty=0)
    known, unknown = (
        Chains(
            chains.starts, np.where(private, np.int8(code), chains.codes), chains.order, False, None
        )
        for code in (0, UNKNOWN)
    )
    runs = Runs.of(chains, private)
    masks = [decide(one, runs, policy, everywhere, drawn, 1) for one in (known, unknown)]
    np.testing.assert_array_equal(*masks)


# ---- what positions say


@pytest.mark.parametrize("kind", ["local", "stopping"])
def test_what_is_certain_holds_for_all_values_and_coins(kind):
    rng = np.random.default_rng(6)
    policy = random_local_policy(rng, 2) if kind == "local" else stopping_policy(rng, 2, 1, 5)
    chains, private = random_chains(rng, 2)
    runs = Runs.of(chains, private)
    seen = np.zeros((2, len(private)), dtype=bool)
    found = certain(chains, runs, policy, everywhere, 1)
    for _ in range(60):
        codes = np.where(chains.codes == MISSING, MISSING, rng.integers(2, size=len(private)))
        one = Chains(chains.starts, codes.astype(np.int8), chains.order, False, None)
        seed = int(rng.integers(2**32))

        def draw(chain, order, *purpose, seed=seed):
            return drawn(chain + seed, order, *purpose)

        redacted = decide(one, runs, policy, everywhere, draw, 1)
        seen |= [redacted, ~redacted]
    assert not np.any(seen[0] & (found == NEVER))
    assert not np.any(seen[1] & (found == ALWAYS))
    assert np.mean((seen[0] & seen[1]) == (found == 1)) > 0.98  # a rare few were not seen


@pytest.mark.parametrize("seed", range(8))
def test_the_settings_needed_are_enough(seed):
    rng = np.random.default_rng(seed)
    order = 1 + seed % 2
    policy = random_policy(rng, 2, order, order + 3, steps=60)
    chains, private = random_chains(rng, 2, count=3)
    runs = Runs.of(chains, private)

    def place_of(chain, step):
        return step

    needed = settings_needed(chains, runs, order, "run", place_of)
    few = TablePolicy("few", 1.0, "run", None, {s: policy.rules[s] for s in needed})
    np.testing.assert_array_equal(
        decide(chains, runs, few, place_of, drawn, order),
        decide(chains, runs, policy, place_of, drawn, order),
    )


def test_settings_of_lone_runs_near_runs_and_ends():
    chains = Chains(np.array([0, 9, 18]), np.zeros(18, dtype=np.int8), np.arange(18), False, None)
    private = np.isin(np.arange(18), [2, 5, 6, 9])
    runs = Runs.of(chains, private)
    found = settings_needed(chains, runs, 1, "run", lambda chain, step: step)
    own = {Setting("record", 2), Setting("run", 5), Setting("run", 6), Setting("first", 0)}
    assert found == own | {Setting("run", 2)}
    assert settings_needed(chains, runs, 1, "run", everywhere, joining=False) == {
        Setting("record"),
        Setting("run"),
        Setting("first"),
    }
    # of order 2 a core begins a record earlier
    found = settings_needed(chains, runs, 2, "run", lambda chain, step: step, joining=False)
    assert found == {Setting("record", 2), Setting("run", 6), Setting("first", 1)}


@pytest.mark.parametrize("kind", ["local", "stopping"])
def test_as_many_records_leave_as_expected(kind):
    rng = np.random.default_rng(7)
    rows = np.array(random_rows(rng, 2, 2), dtype=np.float64)
    policy = random_local_policy(rng, 2) if kind == "local" else stopping_policy(rng, 2, 1, 6)
    chains, private = random_chains(rng, 2, count=1500, absent=0.02, rows=rows)
    runs = Runs.of(chains, private)
    released = (chains.codes != MISSING) & ~decide(chains, runs, policy, everywhere, drawn, 1)
    by_chain = np.add.reduceat(released.astype(np.int64), chains.starts[:-1])
    found = geometry(chains, runs, 1, everywhere)
    expected = expected_released(found, policy, Members(rows[np.newaxis, np.newaxis]))
    assert abs(expected - released.sum()) < 3 * by_chain.std() * np.sqrt(chains.count)
    twice = Geometry.joined([found, pickle.loads(pickle.dumps(found))])
    assert twice.layout.count == 2 * found.layout.count
    both = expected_released(twice, policy, Members(rows[np.newaxis, np.newaxis]))
    assert both == pytest.approx(2 * expected)


# ---- bad input


def test_rules_that_do_not_serve_a_table_are_refused():
    chains = Chains(np.array([0, 9]), np.zeros(9, dtype=np.int8), np.arange(9), False, None)
    runs = Runs.of(chains, np.arange(9) == 4)
    window = LocalRule.window(1, 2)
    walk = StoppingRule(1, 2, np.array([2]), np.zeros(2, dtype=np.int64), np.zeros((0, 1, 2, 2)))

    def refused(policy, order=1):
        with pytest.raises(InputError) as error:
            decide(chains, runs, policy, everywhere, drawn, order)
        return str(error.value)

    def policy(left, right, kind="record", protect="run"):
        rules = {Setting(kind): one_sided(kind, left, right)}
        return TablePolicy("some", 1.0, protect, None, rules)

    assert "no rule for the setting record" in refused(policy(window, window, "run"))
    assert "local rules must be windows" in refused(policy(walk, LocalRule(np.full((1, 2), 0.5))))
    assert "protect must be 'run'" in refused(policy(walk, walk, protect="each"))
    assert "not for chains of order 2" in refused(policy(walk, window), order=2)
    mixed = decide(chains, runs, policy(walk, window), everywhere, drawn, 1)
    np.testing.assert_array_equal(np.flatnonzero(mixed), [3, 4, 5])
