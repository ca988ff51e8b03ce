"""The owner's decider against an attacker: random small tables through every branch of its coins,
in exact fractions, and what an attacker might try besides.
"""

import math
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

import offrecord as off
import owner_law as law
from definition import exact_log, exact_stationary
from offrecord.mechanisms.blocks import ALWAYS, NEVER
from offrecord.mechanisms.owner.deciding.decider import OwnerDecider
from offrecord.mechanisms.owner.menu import Menu
from offrecord.mechanisms.owner.policy import OwnerPolicy
from offrecord.mechanisms.owner.proof import proven_leakage
from offrecord.mechanisms.owner.way import Way
from offrecord.mechanisms.owner.ways import Ways
from offrecord.mechanisms.surroundings import Surrounding
from owner_reference import exact_rows

EPSILONS = (0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 2.5)


def random_rows(rng, k):
    """Decimals, some of them 0, some of them slow."""
    rows = np.round(rng.multinomial(100, rng.dirichlet(np.ones(k), size=k)) / 100, 2)
    return np.round(0.5 * rows + 0.5 * np.eye(k), 3) if rng.random() < 0.5 else rows


@cache
def made(seed, k, longest):
    """A chain whose walks may be as long as that, and its menu with near gaps."""
    rng = np.random.default_rng([seed, k])
    while True:
        epsilon = float(rng.choice(EPSILONS))
        try:
            chain = off.MarkovChain(random_rows(rng, k))
        except off.InputError:  # several closed classes
            continue
        walks = [Way.of(chain, sign, 1, 1).deadline(epsilon / 2, np.ones(k)) for sign in (-1, 1)]
        if None not in walks and 1 < max(walks) <= longest:
            break
    ways = Ways.far(chain)
    stopping = Menu(ways, epsilon, lengths=set(range(1, longest))).stopping
    assert proven_leakage(stopping, ways) <= epsilon
    return chain, stopping


def random_shape(rng, most, least=2, missing=0.5):
    """Positions: anything private, some of it missing, rows or values."""
    n = int(rng.integers(least, most + 1))
    private = np.flatnonzero(rng.random(n) < rng.choice([0.2, 0.4, 0.6])).tolist()
    rows, nulls, kind = tuple(range(n)), frozenset(), rng.random()
    if kind < 0.7 * missing:
        rows = tuple(sorted({0, n - 1, *np.flatnonzero(rng.random(n) < 0.8).tolist()}))
    if 0.4 * missing < kind < missing:
        nulls = frozenset(p for p in rows if rng.random() < 0.15)
    order = {p: int(3 * p + rng.integers(2) - 12) for p in rows}
    private = private or [int(rng.integers(n))]
    return law.Shape(n, rows, nulls, tuple(private), str(rng.choice(["run", "each"])), order)


class Attack:
    """All that is known of a decider's masks in chains of one shape."""

    def __init__(self, decider, shape, k, rng, which=None):
        self.decider, self.shape, self.which = decider, shape, which
        sequences = list(product(range(k), repeat=len(shape.observed)))
        tables = [dict(zip(shape.observed, one, strict=True)) for one in sequences]
        laws, tried = law.laws_of_masks(decider, shape, tables, which)
        law.check_with_real_draws(decider, shape, tables, tried, rng, which)
        self.masks = dict(zip(sequences, laws, strict=True))
        self.whole = sum(laws[0].values())  # what stands for certainty
        self.empty = shape.block([dict.fromkeys(shape.rows, 0)], which)
        self.clusters = decider.planned(self.empty).clusters

    @property
    def secrets(self):
        """(the private places of a secret, those of all that are not linked to its cluster)."""
        protected, rows = self.shape.protected, []
        for cluster in range(self.clusters.count):
            mine = range(self.clusters.begin[cluster], self.clusters.begin[cluster + 1])
            if cluster and self.clusters.bridged[cluster, 0]:
                rows[-1] += mine
            else:
                rows.append([*mine])
        for row in rows:
            others = [p for s, places in enumerate(protected) if s not in row for p in places]
            for secret in row:
                yield protected[secret], others

    def worst(self, sequences):
        """The largest leakage about any secret, the attacker knowing nothing, or other clusters."""
        worst = 0.0
        for places, others in self.secrets:
            for told in [(), others] if others else [()]:
                ratio = law.worst_ratio(self.shape, sequences, self.masks, places, told)
                worst = max(worst, ratio if ratio == math.inf else exact_log(ratio))
        return worst

    def check_expectation(self, sequences):
        """What is foretold is what all sequences and coins come to."""
        foretold = self.decider.expect(self.empty, np.empty(0))
        leaves = dict.fromkeys(self.shape.rows, 0)
        for values, weight in sequences:
            for gone, chance in self.masks[tuple(values[p] for p in self.shape.observed)].items():
                for at, place in enumerate(self.shape.rows):
                    certain = foretold.certainty[at]
                    assert certain != (NEVER if place in gone else ALWAYS)
                    leaves[place] += 0 if place in gone else weight * chance
        if set(self.shape.private) <= set(self.shape.observed):
            told = dict(zip(self.shape.rows, foretold.released.tolist(), strict=True))
            every = sum(weight for _, weight in sequences) * self.whole
            assert told == pytest.approx({p: one / every for p, one in leaves.items()}, abs=1e-9)


def attacked(rng, chain, stopping, shape):
    decider = OwnerDecider.of([stopping], np.array([[50, 50]]), chain)
    return Attack(decider, shape, chain.k, rng)


#: Seeds, how many chains, of how many values, the longest walk, the most records: 40 cases, and a
#: soak.
FEW = [(seed, 3, 2, 4, 6) for seed in range(17)] + [(seed, 1, 3, 2, 4) for seed in range(3)]
MANY = [(seed, 40, *((2, 6, 8), (2, 6, 8), (3, 3, 5))[seed % 3]) for seed in range(100, 300)]


@pytest.mark.parametrize(
    ("seed", "models", "k", "longest", "most"),
    [*FEW, *(pytest.param(*one, marks=pytest.mark.soak) for one in MANY)],
)
def test_nothing_that_the_decider_does_tells_more_than_epsilon(seed, models, k, longest, most):
    rng = np.random.default_rng(seed)
    for _ in range(2):
        chain, stopping = made(int(rng.integers(models)), k, longest)
        attack = attacked(rng, chain, stopping, random_shape(rng, most))
        kernel = exact_rows(chain.transition)
        sequences = law.joint(attack.shape, [kernel] * 8, exact_stationary(kernel))
        assert attack.worst(sequences) <= stopping.epsilon
        attack.check_expectation(sequences)


@pytest.mark.parametrize("private", [(1, 3, 5), (0, 2, 3, 6)])
def test_near_runs(private):
    rng = np.random.default_rng(len(private))
    chain = off.MarkovChain.binary(0.1, 0.3)
    stopping = near_menu(1.4)
    shape = law.Shape(7, tuple(range(7)), frozenset(), private, "run", {p: p for p in range(7)})
    attack = attacked(rng, chain, stopping, shape)
    assert attack.clusters.bridged.any()
    kernel = exact_rows(chain.transition)
    sequences = law.joint(shape, [kernel] * 7, exact_stationary(kernel))
    assert 0.5 * stopping.epsilon < attack.worst(sequences) <= stopping.epsilon
    attack.check_expectation(sequences)


@cache
def near_menu(epsilon):
    return Menu(Ways.far(off.MarkovChain.binary(0.1, 0.3)), epsilon, lengths={1, 2}).stopping


# ---- order 2


@cache
def made_of_pairs(seed):
    """A chain of order 2, and its menu."""
    rng = np.random.default_rng([seed, 22])
    while True:
        epsilon = float(rng.choice([1.0, 1.4, 2.0, 2.5]))
        rows = np.round(0.5 * rng.dirichlet(np.ones(2), size=(2, 2)) + 0.25, 2)
        rows[..., 1] = np.round(1 - rows[..., 0], 2)
        chain = off.MarkovChain(rows, order=2)
        ways = Ways.far(chain)
        walks = [way.deadline(epsilon / 2, np.ones(4)) for way in (ways.left, ways.right)]
        if None not in walks and max(walks) <= 5:
            stopping = Menu(ways, epsilon).stopping
            assert proven_leakage(stopping, ways) <= epsilon
            return chain, stopping


def pair_law(chain):
    """Kernels by two values, and the law of the first two, as fractions."""
    kernel = [exact_rows(rows) for rows in chain.transition]
    lifted = [
        [kernel[a][b][d] if b == c else 0 for c in range(2) for d in range(2)]
        for a in range(2)
        for b in range(2)
    ]
    return kernel, exact_stationary(lifted)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 60))]
)
def test_chains_of_order_2(seed):
    rng = np.random.default_rng(seed)
    for _ in range(2):
        chain, stopping = made_of_pairs(seed % 20 if seed > 2 else 0)
        attack = attacked(rng, chain, stopping, random_shape(rng, 9, 1))
        kernel, start = pair_law(chain)
        sequences = law.joint(attack.shape, [kernel] * 9, start, order=2)
        assert attack.worst(sequences) <= stopping.epsilon


# ---- a kernel for each step, another start


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 100))]
)
def test_steps_that_differ_and_other_starts(seed):
    rng = np.random.default_rng([seed, 9])
    shape, epsilon = random_shape(rng, 7, 3), float(rng.choice(EPSILONS[2:]))
    n, k = shape.length, 2
    # 0.1 to 0.9, so that every value has a place in every law
    ends = rng.integers(100, 900, size=(n - 1, k)) / 1000
    kernels = [np.array([[1 - a, a], [b, 1 - b]]).round(3) for a, b in ends]
    kernels = kernels if rng.random() < 0.7 else kernels[:1]
    start = np.array([0.3, 0.7])
    chain = off.MarkovChain(kernels if len(kernels) > 1 else kernels[0], start)
    secrets = shape.block([dict.fromkeys(shape.rows, 0)]).secrets
    both = list(zip(secrets.first.tolist(), secrets.last.tolist(), strict=True))
    designs = [
        off.OwnerStopping().around(
            off.Problem(chain, n, range(a + 1, b + 2), epsilon, shape.protect),
            Surrounding(a, n - 1 - b, b - a + 1),
        )
        for a, b in both
    ]
    decider = designs[0].decider(designs, chain)
    attack = Attack(decider, shape, k, rng, lambda a, b: both.index((a, b)))
    exact = [exact_rows(one) for one in kernels]
    sequences = law.joint(shape, exact if len(exact) > 1 else exact * n, exact_rows([start])[0])
    assert attack.worst(sequences) <= epsilon


# ---- sets of models


@cache
def made_over_set(seed):
    """A chain in a set of models, backwards the same or wider, and its menu."""
    rng = np.random.default_rng([seed, 77])
    while True:
        epsilon, (alpha, beta) = float(rng.choice([1.0, 1.4, 2.0])), rng.uniform(0.2, 0.6, 2)
        wide = [(one - rng.uniform(0, 0.08), one + rng.uniform(0, 0.08)) for one in (alpha, beta)]
        box = off.Box.binary(*wide)
        if rng.random() < 0.5:
            wider = off.Box.binary(*((low * 0.9, high * 1.1) for low, high in wide))
            box = off.Box(box.forward, wider.backward)
        chain = off.MarkovChain.binary(float(alpha), float(beta)).with_box(box)
        ways = Ways.far(chain)
        stopping = Menu(ways, epsilon).stopping
        if len(stopping.options[0][0].levels) > 1 and stopping.options[0][0].deadline <= 4:
            assert proven_leakage(stopping, ways) <= epsilon
            return chain, stopping


def corners(intervals):
    """The four corners of a box of kernels, as fractions."""
    low, high = intervals
    return [
        [[1 - Fraction(a), Fraction(a)], [Fraction(b), 1 - Fraction(b)]]
        for a in (low[0, 1], high[0, 1])
        for b in (low[1, 0], high[1, 0])
    ]


def law_from(shape, place, kernels):
    """[(values, probability)]: steps to the right of a place by their kernels, to the left of it
    backwards by theirs.
    """
    found = []
    for values in product(range(2), repeat=shape.length):
        weight = Fraction(1)
        for step, kernel in enumerate(kernels):
            one, other = (step, step + 1) if step >= place else (step + 1, step)
            weight *= kernel[values[one]][values[other]]
        found.append((values, weight))
    weights = law.whole([weight for _, weight in found])
    return [(values, weight) for (values, _), weight in zip(found, weights, strict=True)]


def leakage_of(attack, places, kernels):
    """The largest ratio about one secret, which kernels lead away from."""
    sequences = law_from(attack.shape, places[0], kernels)
    return law.worst_ratio(attack.shape, sequences, attack.masks, places)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 60))]
)
def test_no_corner_sequence_of_a_set_tells_more_than_epsilon(seed):
    rng = np.random.default_rng([seed, 3])
    chain, stopping = made_over_set(seed % 10 if seed > 2 else 0)
    attack = attacked(rng, chain, stopping, random_shape(rng, 6, 2))
    forward, backward = map(corners, chain.box.directions)
    for places, _ in attack.secrets:
        steps = range(attack.shape.length - 1)
        choices = [forward if step >= places[0] else backward for step in steps]
        kernels = [some[int(rng.integers(4))] for some in choices]
        worst = leakage_of(attack, places, kernels)
        for step in steps:  # one kernel after the other is changed for the worse
            for corner in choices[step]:
                tried = [*kernels[:step], corner, *kernels[step + 1 :]]
                ratio = leakage_of(attack, places, tried)
                if ratio > worst:
                    kernels, worst = tried, ratio
        assert worst < math.inf
        assert exact_log(worst) <= stopping.epsilon


def test_a_set_of_chains_with_another_start_is_not_served():
    """Steps back in time are not those of the set there; one kernel of it proves nothing."""
    box = off.Box.binary((0.1, 0.3), (0.2, 0.4))
    kernel, start = [[0.8, 0.2], [0.3, 0.7]], [0.5, 0.5]
    chain = off.MarkovChain(kernel, start, box=box)
    assert "not proven for such a set" in off.OwnerStopping().unserved(chain)
    with pytest.raises(off.InputError, match="set of models"):
        off.design(off.Problem(chain, 12, [6], 1.0), off.OwnerStopping())
    plain = off.design(
        off.Problem(off.MarkovChain(kernel, start), 12, [6], 1.0), off.OwnerStopping()
    )
    told = plain.to_dict() | {"model": chain.to_dict()}
    with pytest.raises(off.InputError, match="not proven"):
        OwnerPolicy.from_dict(told)
    surrounding = Surrounding(5, 6, 1)
    design = off.OwnerStopping().around(plain.problem, surrounding)
    assert design.judged(plain.problem) is not None
    assert design.judged(off.Problem(chain, 12, [6], 1.0)) is None


def test_tuples_without_a_row_and_chains_too_short_for_one():
    """The last record private, the one before it without a row: its pair begins beyond the last
    row of pairs. A chain of one record has no pair at all.
    """
    rng = np.random.default_rng(1)
    chain, stopping = made_of_pairs(0)
    kernel, start = pair_law(chain)
    for n, rows, private in ((6, (0, 1, 2, 5), (5,)), (1, (0,), (0,)), (4, (0, 3), (0, 3))):
        shape = law.Shape(n, rows, frozenset(), private, "each", {p: p for p in rows})
        attack = attacked(rng, chain, stopping, shape)
        if n > 1:
            sequences = law.joint(shape, [kernel] * n, start, order=2)
            assert attack.worst(sequences) <= stopping.epsilon
        for masks in attack.masks.values():
            assert all(gone.issuperset(private) for gone in masks)
