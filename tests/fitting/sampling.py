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


def with_gaps(rng, k, chains=6, longest=14):
    """Small chains with gaps, missing values and an empty chain."""
    lengths = rng.integers(1, longest, chains)
    lengths[0] = 0
    starts = np.concatenate([[0], lengths.cumsum()])
    codes = rng.integers(MISSING, k, starts[-1]).astype(np.int8)
    steps = np.concatenate([np.r_[0, rng.integers(1, 3, n - 1)].cumsum() for n in lengths if n])
    return Chains(starts, codes, np.arange(starts[-1]), False, steps.astype(np.int64))
