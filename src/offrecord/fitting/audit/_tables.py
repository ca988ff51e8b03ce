"""Compiled loops of the audit: counting what was seen with what, and drawing chains."""

from __future__ import annotations

from typing import Any

import numpy as np

from offrecord.theory._compiling import compiled

#: Secrets that are counted as loops stand, at most: each is a few lookups.
SHORT = 10_000
_NEVER = -(2**62)


@compiled
def seen_together(
    codes: Any,
    at: Any,
    secrets: Any,
    left: Any,
    right: Any,
    groups: Any,
    tables: Any,
    setting: Any,
) -> Any:
    """(cells,) twice: how often each cell occurs, and how often separately.

    codes: (n,) of 64 bits each, so that patterns fit. secrets: (m,) records. left, right: (m,
    depth) the records seen on a side, nearest first, −1 where there is none. groups: (m,) from 0,
    −1 for those left out. tables: (2, …) where the tables of left 1, 2, …, right 1, 2, … and both
    1, 2, … begin, −1 for those not counted, and how many patterns a group has in each. setting: the
    number of values, the span and the number of cells. A cell is (group, left values, right values,
    the secret's value); cases are counted as separate that are further than the span from the last
    one counted so.
    """
    k, span, size = setting
    offsets, patterns = tables[0], tables[1]
    counts = np.zeros(size, dtype=np.int64)
    separate = np.zeros(size, dtype=np.int64)
    last = np.full(size, _NEVER, dtype=np.int64)
    left_depth, right_depth = left.shape[1], right.shape[1]
    found = np.zeros(len(offsets), dtype=np.int64)
    for i in range(len(secrets)):
        group = groups[i]
        if group < 0:
            continue
        secret = secrets[i]
        value, here = codes[secret], at[secret]
        for j in range(len(found)):
            found[j] = -1
        power, seen = 1, 0
        for j in range(left_depth):
            if left[i, j] < 0:
                break
            power *= k
            seen = seen * k + codes[left[i, j]]
            found[j] = seen
        power, seen = 1, 0
        for j in range(right_depth):
            if right[i, j] < 0:
                break
            power *= k
            seen = seen * k + codes[right[i, j]]
            found[left_depth + j] = seen
            if j < left_depth and found[j] >= 0:
                found[left_depth + right_depth + j] = found[j] * power + seen
        for table in range(len(offsets)):
            if found[table] < 0 or offsets[table] < 0:
                continue
            cell = offsets[table] + (group * patterns[table] + found[table]) * k + value
            counts[cell] += 1
            if here - last[cell] > span:
                separate[cell] += 1
                last[cell] = here
    return counts, separate


@compiled
def cells_seen(cells: Any, at: Any, span: int, size: int) -> Any:
    """(size,) twice: how often each cell occurs, and how often separately, as above.

    cells: (m,) of some secrets. at: (m,) where these stand, in their order.
    """
    counts = np.zeros(size, dtype=np.int64)
    separate = np.zeros(size, dtype=np.int64)
    last = np.full(size, _NEVER, dtype=np.int64)
    for i in range(len(cells)):
        cell = cells[i]
        counts[cell] += 1
        if at[i] - last[cell] > span:
            separate[cell] += 1
            last[cell] = at[i]
    return counts, separate


@compiled
def seen_deepest(codes: Any, secrets: Any, left: Any, right: Any, setting: Any) -> Any:
    """(cells,) how often each cell of the deepest table occurs; every secret has all its records.

    setting: the number of values and the number of cells. A cell is (left values, right values, the
    secret's value): shallower tables are sums of it.
    """
    k, size = setting
    counts = np.zeros(size, dtype=np.int64)
    left_depth, right_depth = left.shape[1], right.shape[1]
    for i in range(len(secrets)):
        cell = 0
        for j in range(left_depth):
            cell = cell * k + codes[left[i, j]]
        for j in range(right_depth):
            cell = cell * k + codes[right[i, j]]
        counts[cell * k + codes[secrets[i]]] += 1
    return counts


@compiled
def _chosen(shares: Any, draw: float) -> int:
    """The first whose cumulative share is above a draw."""
    for i in range(len(shares) - 1):
        if draw < shares[i]:
            return i
    return len(shares) - 1


@compiled
def drawn_codes(
    rng: Any,
    apart: Any,
    contexts: Any,
    starts: Any,
    steps: Any,
    onward: Any,
    shows: Any,
) -> Any:
    """(n,) values of records, drawn from a chain on states.

    apart: (n,) steps since the record before, 0 where a chain begins (anew). contexts: (n,) which
    kernel leads to a record, or which start it has. starts: (contexts, states) cumulative. steps:
    (contexts, states, branches) cumulative. onward: (states, branches) the state that a branch
    leads to. shows: (states,) the value of each.
    """
    codes = np.empty(len(apart), dtype=np.int8)
    state = 0
    for i in range(len(apart)):
        if apart[i] == 0:
            state = _chosen(starts[contexts[i]], rng.random())
        for _ in range(apart[i]):
            state = onward[state, _chosen(steps[contexts[i], state], rng.random())]
        codes[i] = shows[state]
    return codes
