"""Leakage of decisions by definition: every sequence of values, every walk, every table, exactly.

Probabilities are whole numbers over a common denominator: kernels have small denominators, and
stop probabilities are eighths. What decides is the code that acts; only its coins are scripted,
and each script has the probability that the thresholds give it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from math import inf, lcm, log, prod

import numpy as np

from definition import everywhere
from offrecord.mechanisms.deciding.decide import decide, walked
from offrecord.mechanisms.deciding.stopping import SIDE
from offrecord.models.records import MISSING, Chains, Runs
from offrecord.release.coins import ALWAYS

EIGHTH = 2**61


@dataclass(frozen=True)
class ExactChain:
    """kernels: for each step a (k**m, k) list of fractions; one for all of them where steps make
    no difference. first: law of the first m values.
    """

    k: int
    order: int
    kernels: tuple
    first: tuple

    def law(self, n):
        """(k**n, n) all sequences, and their probabilities as whole numbers."""
        sequences = np.array(list(itertools.product(range(self.k), repeat=n)), dtype=np.int8)
        masses = []
        for values in sequences.tolist():
            context = number(values[: self.order], self.k)
            mass = self.first[context]
            for step in range(self.order, n):
                kernel = self.kernels[min(step - self.order, len(self.kernels) - 1)]
                mass *= kernel[context][values[step]]
                context = (context * self.k + values[step]) % self.k**self.order
            masses.append(mass)
        scale = lcm(*(mass.denominator for mass in masses))
        return sequences, np.array([int(mass * scale) for mass in masses], dtype=object)


def number(values, k):
    """Values as digits in base k, the latest last."""
    found = 0
    for value in values:
        found = found * k + value
    return found


def stationary(rows, order, k):
    """The stationary law of contexts, in fractions, by elimination."""
    size = k**order
    kernel = [[Fraction(0)] * size for _ in range(size)]
    for context, row in enumerate(rows):
        for value, chance in enumerate(row):
            kernel[context][(context * k + value) % size] += chance
    for last in range(size - 1, 0, -1):
        leaving = sum(kernel[last][:last])
        for i in range(last):
            kernel[i][last] /= leaving
            for j in range(last):
                kernel[i][j] += kernel[i][last] * kernel[last][j]
    weights = [Fraction(1)]
    for i in range(1, size):
        weights.append(sum(weights[j] * kernel[j][i] for j in range(i)))
    return tuple(weight / sum(weights) for weight in weights)


@dataclass(frozen=True)
class Table:
    """n places of one chain: which are private, and which have no value or no record at all."""

    n: int
    private: tuple
    empty: tuple = ()
    absent: tuple = ()

    @property
    def there(self):
        return [place for place in range(self.n) if place not in self.absent]

    def chains(self, sequences, *, each=False):
        """Each sequence as a chain of one table, and their private runs."""
        there = self.there
        codes = sequences[:, there].copy()
        codes[:, [there.index(place) for place in self.empty]] = MISSING
        count, size = codes.shape
        steps = np.tile(there, count) if self.absent else None
        starts = np.arange(count + 1) * size
        chains = Chains(starts, codes.ravel(), np.tile(there, count), False, steps)
        private = np.tile([place in self.private for place in there], count)
        return chains, Runs.of(chains, private, each=each)


class Scripted:
    """Coins whose outcomes are scripted: the walk of a chain to a side stops at a level, or never.

    scripts: {(order value, side): (chains,) number of the level}. weights: (chains,) the
    probability of the script, in eighths to the power of `coins`.
    """

    def __init__(self, scripts, count):
        self.scripts = scripts
        self.weights = np.ones(count, dtype=object)
        self.coins = np.zeros(count, dtype=np.int64)

    def __call__(self, limits, chain, order, counter):
        side, level = counter // SIDE, counter % SIDE
        stops = np.zeros(len(chain), dtype=bool)
        for (value, walks_to), script in self.scripts.items():
            mine = (order == value) & (side == walks_to)
            stops[mine] = script[chain[mine]] == level[mine]
        eighths = np.where(limits == ALWAYS, 8, limits // np.uint64(EIGHTH)).astype(np.int64)
        assert np.all((limits == ALWAYS) | (limits % np.uint64(EIGHTH) == 0))
        chances = np.where(stops, eighths, 8 - eighths).astype(object)
        np.multiply.at(self.weights, chain, chances)  # two clusters of a chain may have one rule
        np.add.at(self.coins, chain, 1)
        return stops


class Listening:
    """A coin that never stops, and notes which walks ask at which levels."""

    def __init__(self):
        self.levels = {}

    def __call__(self, limits, chain, order, counter):
        for value, one in zip(order.tolist(), counter.tolist(), strict=True):
            key = value, one // SIDE
            self.levels[key] = max(self.levels.get(key, 0), one % SIDE + 1)
        return np.zeros(len(limits), dtype=bool)


def outputs(chain, table, policy, place_of=everywhere):
    """All sequences (rows, n), what is released of them (rows, n), and how likely that is (rows,)
    in whole numbers: one row for each sequence and outcome of all coins.
    """
    sequences, masses = chain.law(table.n)
    chains, runs = table.chains(sequences[:1])
    listening = Listening()
    walked(chains, runs, policy, place_of, listening, chain.order)
    walks = list(listening.levels)
    levels = [range(listening.levels[walk] + 1) for walk in walks]
    scripts = np.array(list(itertools.product(*levels)), dtype=np.int64)
    rows = np.repeat(np.arange(len(sequences)), len(scripts))
    which = np.tile(np.arange(len(scripts)), len(sequences))
    chains, runs = table.chains(sequences[rows])
    coin = Scripted({walk: scripts[which, i] for i, walk in enumerate(walks)}, len(rows))
    redacted = walked(chains, runs, policy, place_of, coin, chain.order)
    most = int(coin.coins.max(initial=0))
    even = np.array([8**missing for missing in range(most + 1)], dtype=object)
    weights = masses[rows] * coin.weights * even[most - coin.coins]
    released = np.full((len(rows), table.n), -1, dtype=np.int64)
    released[:, table.there] = np.where(redacted, -1, chains.codes).reshape(len(rows), -1)
    possible = weights != 0
    assert weights.sum() == masses.sum() * 8**most
    return sequences[rows[possible]], released[possible], weights[possible]


def constant(draw):
    """Coins that all show the same."""
    return lambda chain, order, *purpose: np.full(len(chain), draw, dtype=np.uint64)


def local_outputs(chain, table, policy, place_of=everywhere):
    """The same for local rules, whose probabilities are eighths: one row for each sequence and
    outcome of all coins. How likely a record goes is read off decisions with draws of each eighth.
    """
    sequences, masses = chain.law(table.n)
    chains, runs = table.chains(sequences, each=policy.protect == "each")
    eighths = np.zeros(len(chains.codes), dtype=np.int64)
    for eighth in range(8):
        draw = constant(eighth * EIGHTH)
        eighths += decide(chains, runs, policy, place_of, draw, chain.order)
    chances = np.full((len(sequences), table.n), 8)
    chances[:, table.there] = eighths.reshape(len(sequences), -1)
    chances[:, list(table.empty)] = 8
    unsure = np.flatnonzero(np.any((chances > 0) & (chances < 8), axis=0))
    masks = np.array(list(itertools.product((False, True), repeat=len(unsure))), dtype=bool)
    rows = np.repeat(np.arange(len(sequences)), len(masks))
    which = np.tile(np.arange(len(masks)), len(sequences))
    goes = chances[rows] == 8
    goes[:, unsure] = masks[which]
    factors = np.where(goes, chances[rows], 8 - chances[rows])[:, unsure]
    weights = masses[rows] * factors.astype(object).prod(axis=1)
    possible = weights != 0
    assert weights.sum() == masses.sum() * 8 ** len(unsure)
    released = np.where(goes, -1, sequences[rows])
    return sequences[rows][possible], released[possible], weights[possible]


def largest_ratio(secret, seen, weights):
    """The largest ratio of Pr(seen | secret) between two values of the secret; (rows,) each."""
    secret = np.unique(secret, return_inverse=True)[1]
    seen = np.unique(seen, return_inverse=True)[1]
    joint = np.zeros((seen.max() + 1, secret.max() + 1), dtype=object)
    np.add.at(joint, (seen, secret), weights)
    prior = joint.sum(axis=0)
    scale = prod(prior.tolist())
    likelihood = joint * np.array([scale // one for one in prior.tolist()], dtype=object)
    likely, unlikely = likelihood.max(axis=1), likelihood.min(axis=1)
    if np.any(unlikely == 0):
        return inf
    return max(Fraction(a, b) for a, b in zip(likely.tolist(), unlikely.tolist(), strict=True))


def leakage(sequences, released, weights, secret, others, k):
    """Leakage about the values at the places `secret`, jointly with those at `others`: Pr(table,
    others | secret).
    """
    if not secret:
        return 0.0
    of = digits(sequences[:, secret].astype(np.int64), k)
    seen = digits(np.concatenate((released + 1, sequences[:, others] + 1), axis=1), k + 1)
    ratio = largest_ratio(of, seen, weights)
    return inf if ratio == inf else log(ratio.numerator) - log(ratio.denominator)


def digits(rows, base):
    """(rows,) each row as one number."""
    found = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        found = found * base + column
    return found
