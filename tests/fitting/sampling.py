"""Tables drawn from known chains."""

import numpy as np

from offrecord.models.records import MISSING, Chains

RAIN = np.array([[0.98, 0.02], [0.387, 0.613], [0.797, 0.203], [0.222, 0.778]])  # order 2
_FORGET = 300  # records before the first that is kept


def drawn(rows, length, chains, seed):
    """So many chains of a kernel, as Chains; rows: (k**order, k), or (chains, k**order, k)."""
    rng = np.random.default_rng(seed)
    rows = np.broadcast_to(rows, (chains, *np.shape(rows)[-2:]))
    contexts, k = rows.shape[1:]
    below = rows.cumsum(axis=2)[:, :, :-1]
    context, each = rng.integers(0, contexts, chains), np.arange(chains)
    values = np.empty((chains, length), dtype=np.int8)
    for t in range(-_FORGET, length):
        value = (rng.random(chains)[:, None] > below[each, context]).sum(axis=1)
        if t >= 0:
            values[:, t] = value
        context = (context * k + value) % contexts
    return table(values)


def table(values):
    """(chains, length) values as Chains with common times."""
    chains, length = values.shape
    starts = np.arange(chains + 1) * length
    order = np.tile(np.arange(length), chains)
    return Chains(starts, values.astype(np.int8).ravel(), order, False, None)


def panel(rng, chains=300, length=12, *, age=0.0, season=0.0, cohorts=1, trait=0.0):
    """People whose yes or no depends on what it was, on their age, on the year, on a trait of
    their own; sizes of effects in log-odds. cohorts: of years, in which they begin in turn.
    """
    begins = np.sort(rng.integers(0, cohorts, chains))
    years = rng.normal(0, season, cohorts + length)
    own, ages = rng.normal(0, trait, (chains, 1)), np.linspace(-age / 2, age / 2, length)
    chance = 1 / (1 + np.exp(1 - own - ages - years[begins[:, None] + np.arange(length)]))
    values = rng.random((chains, length)) < chance
    stays = rng.random((chains, length)) < 0.5
    for t in range(1, length):
        values[:, t] = np.where(stays[:, t], values[:, t - 1], values[:, t])
    found = table(values)
    return Chains(found.starts, found.codes, found.order + begins.repeat(length), False, None)


def with_gaps(rng, k, chains=6, longest=14):
    """Small chains with gaps, missing values and an empty chain."""
    lengths = rng.integers(1, longest, chains)
    lengths[0] = 0
    starts = np.concatenate([[0], lengths.cumsum()])
    codes = rng.integers(MISSING, k, starts[-1]).astype(np.int8)
    steps = np.concatenate([np.r_[0, rng.integers(1, 3, n - 1)].cumsum() for n in lengths if n])
    return Chains(starts, codes, np.arange(starts[-1]), False, steps.astype(np.int64))
