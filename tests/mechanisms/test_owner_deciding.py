"""The owner's decider against the mechanism in plain words, and that against the definition."""

import math
import pickle
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

import offrecord as off
import owner_reference as ref
from definition import exact_log
from offrecord.mechanisms.blocks import ALWAYS, NEVER, Block
from offrecord.mechanisms.owner.deciding.completion import Places, picked, uniform
from offrecord.mechanisms.owner.deciding.contraction import Contraction, channel_leakages
from offrecord.mechanisms.owner.deciding.decider import OwnerDecider
from offrecord.mechanisms.owner.deciding.ground import Ground
from offrecord.mechanisms.owner.designing.labels import stopping_pair
from offrecord.mechanisms.owner.designing.laws import with_laws
from offrecord.mechanisms.owner.designing.sides import Effort, closed_side, stopping_side
from offrecord.mechanisms.owner.stopping import Stopping, is_shorter
from offrecord.mechanisms.owner.way import Way
from offrecord.models.records import Chains
from offrecord.release.coins import INTEGER, Coins
from offrecord.tables.secrets import Private, secrets_of

KEY = bytes(range(32))


def random_kernel(rng, k):
    """Decimals of two digits, some of them 0."""
    while True:
        rows = np.round(rng.multinomial(100, rng.dirichlet(np.ones(k), size=k)) / 100, 2)
        try:
            return off.MarkovChain(rows)
        except off.InputError:  # several closed classes
            continue


@cache
def made(seed):
    """A chain and what stopping its secrets need."""
    rng = np.random.default_rng(seed)
    k, epsilon = (2, 2, 3)[seed % 3], float(rng.choice([0.7, 1.4, 2.5]))
    chain, ways = random_kernel(rng, k), None
    while ways is None or not 1 < ways[0].deadline(epsilon / 2, np.ones(k)) < 7 - k:
        chain = random_kernel(rng, k)
        ways = Way.of(chain, -1, 1, 1), Way.of(chain, 1, 1, 1)
    effort = Effort(int(rng.choice([2, 3, 40])), bool(rng.random() < 0.3))

    @cache
    def side(column, share):
        if not share:
            return closed_side(2 * column - 1, k)
        return stopping_side(ways[column], share * epsilon, effort)

    shares = [(0.5, 0.5), (0, 1), (1, 0), (0.7, 0.7), (0.9, 0.9), (0.3, 0.7)]
    if rng.random() < 0.2:
        shares = [(0, 1), *shares]  # a side that is closed wherever it is
    options = [
        (left, right)
        for a, b in shares
        if (left := side(0, a)) is not None and (right := side(1, b)) is not None
    ]
    base = options[0]
    options = [
        both
        for both in options
        if all(
            not len(one.levels) or one.deadline <= first.deadline
            for one, first in zip(both, base, strict=True)
        )
    ]
    pair = None
    if rng.random() < 0.5:
        pair = stopping_pair(ways[0], ways[1], epsilon, Effort(3, bool(rng.random() < 0.3)), (0.5,))
        if rng.random() < 0.5:
            pair = stopping_pair(ways[1], ways[0], epsilon, Effort(3), (0.5,))
    return chain, Stopping(epsilon, tuple(options), pair)


class Case:
    """A chain of a table, in both ways of telling it."""

    def __init__(
        self, rng, model, stoppings, n, *, share=0.3, places=None, exact=None, missing=True
    ):
        self.model, self.n, self.stoppings = model, n, tuple(stoppings)
        self.protect = str(rng.choice(["run", "each"]))
        kept, null = rng.choice([0.8, 1.0]), rng.choice([0.0, 0.15])
        rows = {0, n - 1, *np.flatnonzero((rng.random(n) < kept) | (not missing)).tolist()}
        self.rows = sorted(rows)
        nulls = (rng.random(n) < null) & missing
        if places is None:
            places = np.flatnonzero(rng.random(n) < share)
        self.places = places if len(places) else np.array([int(rng.integers(n))])
        self.absent = frozenset(p for p in range(n) if p not in rows or nulls[p])
        self.order = {p: int(3 * p + rng.integers(2) - 40) for p in self.rows}
        secrets = self.block(np.zeros(n, dtype=int)).secrets
        both = zip(secrets.first.tolist(), secrets.last.tolist(), strict=True)
        self.secrets = [(a, b, a * n + b if len(stoppings) > 1 else 0) for a, b in both]
        if exact is None:
            exact = ref.Model.stationary(model.transition, model.box is None)
        self.situation = ref.Situation(exact, n, self.absent, tuple(self.secrets), self.stoppings)

    @property
    def decider(self):
        """As it gets to a worker."""
        first, last = np.divmod(np.arange(len(self.stoppings)), self.n)
        rooms = np.stack((first, self.n - 1 - last), axis=1)
        return pickle.loads(pickle.dumps(OwnerDecider.of(self.stoppings, rooms, self.model)))

    def block(self, values):
        return table([self], [values])

    @property
    def protected(self):
        """The private places of each secret."""
        return [[p for p in self.places.tolist() if a <= p <= b] for a, b, _ in self.secrets]


def table(cases, values):
    """Several chains as one block, which is not the first one of its table."""
    codes = [np.array([0, 1], dtype=np.int8)]
    for case, row in zip(cases, values, strict=True):
        codes.append(
            np.array([-1 if p in case.absent else row[p] for p in case.rows], dtype=np.int8)
        )
    starts = np.concatenate(([0], np.cumsum([len(one) for one in codes])))
    gaps = any(len(case.rows) < case.n for case in cases)
    chains = Chains(
        starts,
        np.concatenate(codes),
        np.concatenate(([0, 1], *([case.order[p] for p in case.rows] for case in cases))),
        False,
        np.concatenate(([0, 1], *(case.rows for case in cases))) if gaps else None,
    )
    private = Private(
        np.concatenate([np.full(len(case.places), c + 1) for c, case in enumerate(cases)]),
        np.concatenate([case.places for case in cases]),
        np.concatenate([[case.order.get(p, 0) for p in case.places] for case in cases]),
    )
    secrets = secrets_of(chains, private, cases[0].protect)
    which = np.zeros(secrets.count, dtype=np.int64)
    if len(cases[0].stoppings) > 1:
        which = secrets.first * cases[0].n + secrets.last
    return Block(chains, slice(2, int(starts[-1])), secrets, which)


def drawing(dataset, count):
    coins = Coins(KEY, dataset, "v")
    tags = coins.chain_tags([bytes([c]) for c in range(count + 1)])

    def draw(chain, order, purpose=b"offrecord/coins", counter=0):
        assert np.all(chain > 0)
        return coins.draw(tags[chain], order, INTEGER, purpose, counter)

    def one(chain):
        def drawn(order, purpose, counter):
            return int(coins.draw(tags[[chain]], np.array([order]), INTEGER, purpose, counter)[0])

        return drawn

    return draw, one


def check_decisions(cases, rng, times=3):
    decider = cases[0].decider
    for number in range(times):
        values = [rng.integers(case.model.k, size=case.n) for case in cases]
        draw, one = drawing(f"data {number}", len(cases))
        block = table(cases, values)
        decision = decider.decide(block, draw)
        for c, case in enumerate(cases):
            begin, end = block.chains.starts[c + 1 : c + 3] - 2
            gone = decision.redacted[begin:end]
            redacted = {p for p, is_gone in zip(case.rows, gone, strict=True) if is_gone}
            expected = ref.decided(case.situation, values[c].tolist(), one(c + 1), case.order)
            assert redacted == {p for p in expected if p in case.rows}


def exactly(chain):
    """In a set of models that holds this one alone."""
    back = chain._stationary_reverse
    return chain.with_box(off.Box((chain.transition,) * 2, (back,) * 2))


def random_cases(rng, count, most):
    """Chains of a table with the same model."""
    chain, stopping = made(int(rng.integers(12)))
    model = chain if rng.random() < 0.7 else exactly(chain)
    share, cases = float(rng.choice([0.03, 0.1, 0.3])), []
    while len(cases) < count:
        case = Case(rng, model, [stopping], int(rng.integers(1, most)), share=share)
        if not cases or case.protect == cases[0].protect:
            cases.append(case)
    return cases


@pytest.mark.parametrize(
    "seed", [*range(25), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(25, 250))]
)
def test_decisions_are_those_of_the_mechanism_in_plain_words(seed):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        check_decisions(random_cases(rng, 4, 30), rng)


def small_case(rng, models=12):
    """A chain short enough for all its sequences: anything, or two secrets about as far apart as
    deadlines are long, or a cluster of several.
    """
    chain, stopping = made(int(rng.integers(models)))
    model = chain if rng.random() < 0.8 else exactly(chain)
    most = 8 if chain.k == 2 else int(rng.integers(4, 6))
    longest = max([s.deadline for s in stopping.options[0] if len(s.levels)])
    kind = rng.choice(["any", "apart", "together"])
    if kind == "any":
        return Case(rng, model, [stopping], int(rng.integers(2, most + 1)), share=0.4)
    low, high = (longest, 2 * longest) if kind == "apart" else (0, longest)
    gap = int(rng.integers(low, high))
    first, rest = int(rng.integers(3)), int(rng.integers(3))
    places = [first, first + gap + 1]
    n = min(places[-1] + rest + 1, most)
    places = [p for p in places if p < n]
    return Case(rng, model, [stopping], n, places=np.array(places))


def check_privacy(case):
    laws = ref.laws_of_masks(case.situation)
    assert sum(weight * sum(masks.values()) for _, weight, masks in laws) == 1
    epsilon = case.situation.stoppings[0].epsilon
    for ratio in ref.worst_ratios(case.situation, laws, case.protected):
        assert ratio < math.inf
        assert exact_log(ratio) <= epsilon, exact_log(ratio) - epsilon
    return laws


def check_expectation(case, laws):
    """What is foretold is what all sequences and coins come to, unless a private record is missing,
    of which nothing is foretold.
    """
    foretold = case.decider.expect(case.block(np.zeros(case.n, dtype=int)), np.empty(0))
    told = dict(zip(case.rows, foretold.released.tolist(), strict=True))
    certainty = dict(zip(case.rows, foretold.certainty.tolist(), strict=True))
    leaves = dict.fromkeys(case.rows, 0.0)
    for _, weight, masks in laws:
        for redacted, chance in masks.items():
            for p in case.rows:
                assert p in redacted or certainty[p] != ALWAYS
                assert p not in redacted or certainty[p] != NEVER
                leaves[p] += 0.0 if p in redacted else float(weight * chance)
    if not any(p in case.absent for p in case.places):
        assert told == pytest.approx(leaves, abs=1e-9)


def stops_by_definition(case, laws):
    """{(place, value): Pr(releasing begins there | nothing nearer leaves, the value there)} beside
    the only cluster.
    """
    first, last = case.situation.ends(0)
    found = {}
    for place, value in product(range(case.n), range(case.model.k)):
        nearer = range(last + 1, place) if place > last else range(place + 1, first)
        got = stopped = 0
        for values, weight, masks in laws:
            if values[place] == value:
                for redacted, chance in masks.items():
                    if redacted.issuperset(nearer):
                        got += weight * chance
                        stopped += weight * chance * (place not in redacted)
        if got:
            found[place, value] = 0.0 if first <= place <= last else float(stopped / got)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_what_is_explained_is_how_likely_releasing_begins(seed):
    rng = np.random.default_rng(seed)
    chain, stopping = made(seed)
    stopping = replace(stopping, pair=None)
    case = Case(rng, chain, [stopping], 5, places=np.array([2]), missing=False)
    laws = ref.laws_of_masks(case.situation)
    labels = [f"value {i}" for i in range(chain.k)]
    block = case.block(np.zeros(case.n, dtype=int))
    told = case.decider.explain(block, labels)
    expected = case.decider.expect(block, np.empty(0))
    assert list(told.rule) == ["Pr(redacted)", *(f"Pr(stop | {label})" for label in labels)]
    assert np.array_equal(told.rule["Pr(redacted)"], 1 - expected.released)
    assert np.array_equal(told.certainty, expected.certainty)
    stops = {
        (place, value): float(told.rule[f"Pr(stop | {label})"][place])
        for place in range(case.n)
        for value, label in enumerate(labels)
    }
    for where, chance in stops_by_definition(case, laws).items():
        assert stops[where] == pytest.approx(chance, abs=1e-9)


#: 200 cases; two thousand, of more models, are a soak.
SEEDS = [
    *((seed, 12) for seed in range(40)),
    *(pytest.param(seed, 60, marks=pytest.mark.soak) for seed in range(100, 500)),
]


@pytest.mark.parametrize(("seed", "models"), SEEDS)
def test_no_output_tells_more_than_epsilon(seed, models):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        case = small_case(rng, models)
        check_expectation(case, check_privacy(case))


# ---- steps that differ from place to place


@cache
def changing(seed):
    """A chain with a kernel for each step, the same exactly, and stoppings: that of a secret from
    place a to place b has the number a·n + b.
    """
    rng = np.random.default_rng(seed)
    n, epsilon = int(rng.integers(3, 8)), float(rng.choice([0.7, 1.4, 2.5]))
    kernels = [random_kernel(rng, 2).transition for _ in range(n - 1)]
    kernels = [np.round(0.5 * kernel + 0.25, 3) for kernel in kernels]
    start = np.array([0.3, 0.7])
    chain = off.MarkovChain(kernels, start)
    exact = ref.Model([ref.exact_rows(one) for one in kernels], ref.exact_rows([start])[0])
    effort = Effort(int(rng.choice([2, 40])), bool(rng.random() < 0.3))

    def side(place, column, share):
        room = (place, n - 1 - place)[column]
        way = Way.of(chain, 2 * column - 1, place + 1, room)
        found = stopping_side(way, share * epsilon, effort) if room and share else None
        return closed_side(2 * column - 1, 2) if found is None else with_laws(found, way, room)

    sides = [
        [[side(place, column, share) for share in (0.0, 0.5, 1.0)] for place in range(n)]
        for column in (0, 1)
    ]
    stoppings = []
    for a, b in product(range(n), repeat=2):
        (none, half, whole), (nothing, other_half, everything) = sides[0][a], sides[1][b]
        options = [(none, everything), (whole, nothing)]
        if not (half.is_closed or other_half.is_closed):
            options = [(half, other_half), *options]
        kept = [option for option in options[1:] if is_shorter(option, options[0])]
        stoppings.append(Stopping(epsilon, (options[0], *kept)))
    return chain, exact, stoppings


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(12, 200))]
)
def test_no_output_tells_more_than_epsilon_where_steps_differ(seed):
    rng = np.random.default_rng(seed)
    for number in range(3):
        chain, exact, stoppings = changing(3 * seed + number)
        case = Case(rng, chain, stoppings, chain.length, share=0.4, exact=exact)
        check_decisions([case], rng)
        laws = check_privacy(case)
        if len(case.situation.clusters) == 1:  # of gaps between clusters only an estimate is known
            check_expectation(case, laws)


# ---- parts


@pytest.mark.parametrize("k", [2, 3, 5])
def test_what_is_told_through_a_channel_is_the_largest_over_all_sets_of_values(k):
    rng = np.random.default_rng(k)
    for _ in range(40):
        budget = float(rng.choice([0.1, 1.0, 3.0]))
        channel = rng.dirichlet(np.full(k, 0.5), size=k) * (rng.random((k, k)) < 0.8) + 1e-12
        channel /= channel.sum(axis=1, keepdims=True)
        sets = np.array(list(product((0, 1), repeat=k)))
        seen = (channel @ sets.T) * np.expm1(budget) + 1
        largest = np.log(seen.max(axis=0) / seen.min(axis=0)).max()
        assert channel_leakages(channel[np.newaxis], budget) == pytest.approx(largest, abs=1e-12)


def test_from_far_away_no_less_is_told_than_through_the_channel_itself():
    kernel = np.array([[0.995, 0.005], [0.01, 0.99]])
    contraction = Contraction(kernel)
    distance = np.arange(0, 1500, 7)
    told = contraction.told(0.9, distance)
    channels = np.array([np.linalg.matrix_power(kernel, int(steps)) for steps in distance])
    exact = channel_leakages(channels, 0.9)
    assert told[0] == 0.9
    assert np.all(told >= exact)
    assert np.all(told <= exact + 0.05)


def test_rare_values_are_drawn_as_rarely_as_they_are():
    laws = np.array([[1.0, 1e-30, 0.0], [0.0, 2.0, 2.0], [0.25, 0.5, 0.25]])
    cases = [
        (0, 1e-40, 1),
        (0, 0.999e-30, 1),
        (0, 1.001e-30, 0),
        (0, 1.0, 0),
        (1, 1e-40, 1),
        (1, 0.499, 1),
        (1, 0.501, 2),
        (2, 0.249, 0),
        (2, 0.251, 2),
        (2, 0.501, 1),
    ]
    rows, numbers, expected = zip(*cases, strict=True)
    assert picked(laws[list(rows)], np.array(numbers)).tolist() == list(expected)


def test_numbers_of_missing_places_are_as_fine_near_0_as_a_float():
    chains = Chains(
        np.array([0, 2]), np.array([0, -1], dtype=np.int8), np.array([5, 9]), False, None
    )
    block = Block(chains, slice(0, 2), None, None)
    words = {(9, 0): 0, (9, 1): 2**40, (9, 4): 2**63, (9, 5): 0}
    words |= {(5, 2**47 + 6): 1, (5, 2**47 + 7): 2**64 - 1}

    def draw(chain, order, purpose, counter):
        assert purpose == b"offrecord/absent"
        asked = zip(order.tolist(), counter.tolist(), strict=True)
        return np.array([words[one] for one in asked], dtype=np.uint64)

    places = Places(np.zeros(3, dtype=np.int64), np.array([-3, 1, 3]))
    found = uniform(Ground(block), places, draw)
    assert found.tolist() == [2.0**-63, (2.0**40 + 0.5) * 2.0**-128, 0.5]
