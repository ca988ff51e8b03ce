"""Another chain of the same table at the same time: what its records tell of a secret by
themselves, by counts on released values.
"""

from __future__ import annotations

import numpy as np

from offrecord.attack.shown import Shown
from offrecord.mechanisms.blocks import Mask, Secrets
from offrecord.models.base import Floats, Integers

_MOST_ROWS = 2_000_000  # that are counted
_HALF = 0.5  # added to every count
_AROUND = (-1, 0, 1)


def beside(shown: Shown, free: Mask, secrets: Secrets) -> Floats:
    """(s,) the log-ratio that the next chain's records at the time of a secret's first record, and
    one place before and after, give; 0 where that chain shows nothing then.

    All three count together where all are released, else the one at the same time.
    """
    chains, k = shown.chains, shown.k
    rows = np.flatnonzero(free[:_MOST_ROWS])
    chain = np.searchsorted(chains.starts, rows, side="right") - 1
    own = shown.symbols[rows] - 1
    seen = _seen(shown, chain, chains.order[rows].astype(np.int64))
    there = _seen(shown, secrets.chain, secrets.order)
    ratio = np.zeros(secrets.count)
    alone, together = (np.all(seen[:, one] >= 0, axis=1) for one in ([1], [0, 1, 2]))
    for columns, counted in (([1], alone), ([0, 1, 2], together)):
        code = _coded(seen[:, columns], k)
        counts = np.zeros((k, k ** len(columns))) + _HALF
        np.add.at(counts, (own[counted], code[counted]), 1.0)
        logs = np.log(counts / counts.sum(axis=1, keepdims=True))
        asked = np.all(there[:, columns] >= 0, axis=1)
        found = logs[:, _coded(there[:, columns], k)[asked]]
        gap = np.ptp(found, axis=0)
        first = found.argmax(axis=0) < found.argmin(axis=0)
        ratio[asked] = np.where(first, -gap, gap)
    return ratio


def _coded(seen: Integers, k: int) -> Integers:
    """(n,) a number for each row of values."""
    code = np.zeros(len(seen), dtype=np.int64)
    for column in seen.T:
        code = code * k + np.maximum(column, 0)
    return code


def _seen(shown: Shown, chain: Integers, order: Integers) -> Integers:
    """(n, 3) the values of the next chain around an order value, the last chain's next one being
    the one before it; −1 where nothing is shown.
    """
    chains = shown.chains
    other = np.where(chain + 1 < chains.count, chain + 1, chain - 1)
    row = _row(shown, other, order)
    place = chains.places[np.maximum(row, 0)]
    found = np.full((len(chain), len(_AROUND)), -1, dtype=np.int64)
    for at, away in enumerate(_AROUND):
        near = np.where(row < 0, -1, shown.rows(other, place + away))
        symbol = shown.symbols[np.maximum(near, 0)]
        released = (near >= 0) & (symbol > 0) & (symbol <= shown.k)
        found[released, at] = symbol[released] - 1
    return found


def _row(shown: Shown, chain: Integers, order: Integers) -> Integers:
    """(n,) the row of a chain with an order value; −1 where it has none."""
    chains = shown.chains
    low, high = chains.starts[chain], chains.starts[chain + 1]
    end = high
    while np.any(wide := low < high):
        middle = (low + high) // 2
        less = wide & (chains.order[np.minimum(middle, len(chains.order) - 1)] < order)
        low, high = np.where(less, middle + 1, low), np.where(wide & ~less, middle, high)
    there = low < end
    there &= chains.order[np.minimum(low, len(chains.order) - 1)] == order
    return np.where(there, low, -1)
