"""Every sequence of values, every walk and every coin of a small table, all in one batch."""

import itertools

import numpy as np

from definition import everywhere
from offrecord.mechanisms.deciding.decide import walked
from offrecord.models.records import MISSING, Chains, Runs

SIDE = 2**20  # what counters of walks hold besides the level


class Coins:
    """A coin that reads outcomes off the bits of a pattern, one pattern a chain, and says how
    likely they were.

    names: (order value, counter) of each bit.
    """

    def __init__(self, patterns, names):
        self.patterns, self.names = patterns, {name: at for at, name in enumerate(names)}
        self.probability = np.full(len(patterns), 0.5 ** len(names))

    def __call__(self, limits, chain, order, counter):
        chance = np.where(limits == np.uint64(2**64 - 1), 1.0, limits / 2.0**64)
        bits = [self.names[one] for one in zip(order.tolist(), counter.tolist(), strict=True)]
        found = (self.patterns[chain] >> np.array(bits, dtype=int)) & 1 > 0
        np.multiply.at(self.probability, chain, 2 * np.where(found, chance, 1 - chance))
        return found


def sequences(members, n):
    """(r, n) all sequences of n values, and their probabilities under the one member."""
    k, m = members.k, members.order
    values = np.array(list(itertools.product(range(k), repeat=n)))
    context = values[:, :m] @ k ** np.arange(m - 1, -1, -1)
    chance = members.law(0 if members.place_count == 1 else m - 1)[0][context]
    for at in range(m, n):
        place = 0 if members.place_count == 1 else at - 1
        rows = members.rows[0, min(place, members.rows.shape[1] - 1)]
        chance = chance * rows[context, values[:, at]]
        context = (context * k + values[:, at]) % k**m
    return values, chance


def table(codes):
    """Chains of equal length, from (chains, n) values."""
    count, n = codes.shape
    orders = np.tile(np.arange(n), count)
    return Chains(np.arange(count + 1) * n, codes.astype(np.int8).reshape(-1), orders, False, None)


def runs_of(chains, private, *, each=False):
    """The same private records in each chain."""
    n = len(chains.codes) // chains.count
    mask = np.tile(np.isin(np.arange(n), list(private)), chains.count)
    return Runs.of(chains, mask, each=each)


def walked_releases(values, chance, private, missing, policy, order, place_of=everywhere):
    """(r, n) values, (r, n) releases and their joint probabilities, over all walks."""
    n = values.shape[1]
    firsts = runs_of(table(values[:1]), private).order.tolist()
    levels = max(
        len(rule.levels) - 1 for pair in policy.rules.values() for rule in pair if rule is not None
    )
    names = list(itertools.product(firsts, (a * SIDE + b for a in (0, 1) for b in range(levels))))
    patterns = np.arange(2 ** len(names))
    every = np.repeat(values, len(patterns), axis=0)
    codes = every.astype(np.int8)
    codes[:, list(missing)] = MISSING
    chains = table(codes)
    coins = Coins(np.tile(patterns, len(values)), names)
    mask = walked(chains, runs_of(chains, private), policy, place_of, coins, order).reshape(-1, n)
    return (
        every,
        np.where(mask, MISSING, codes),
        np.repeat(chance, len(patterns)) * (coins.probability),
    )


def likelihoods(values, releases, chance, secret):
    """(releases, values) the probability of each release given each value of some records; and the
    different releases.

    secret: the records.
    """
    k = int(values.max()) + 1
    own = values[:, secret] @ k ** np.arange(len(secret) - 1, -1, -1)
    different, which = np.unique(releases, axis=0, return_inverse=True)
    joint = np.zeros((len(different), k ** len(secret)))
    np.add.at(joint, (which.reshape(-1), own), chance)
    occurs = joint.any(axis=1)
    return joint[occurs] / joint.sum(axis=0), different[occurs], joint[occurs]
