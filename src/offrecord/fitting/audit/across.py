"""Looks across chains: what one chain shows, at the same time, about a record of another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from offrecord.fitting.audit.looks import CHAINS, Look
from offrecord.fitting.audit.records import Records
from offrecord.models.base import Integers

_FEW = 8  # chains of which all pairs are looked at one by one
_PAIRS = 2000  # of neighbouring chains that are looked at together, at most
_SHARED = 100  # times that a pair shares, to be looked at by itself


def across_chains(
    records: Records, instants: NDArray[np.integer], epsilon: float, span: int
) -> list[Look]:
    """What another chain shows at the same time, and one step before and after.

    instants: (n,) when each record was made. Few chains are looked at pair by pair; pairs of
    neighbouring chains, in the order of the table, all together. Nothing is redacted in the other
    chain, whatever is promised.
    """
    starts = np.append(np.flatnonzero(records.first == np.arange(len(records))), len(records))
    count = len(starts) - 1
    looks = []
    if 1 < count <= _FEW:
        pairs = [(one, other) for one in range(count) for other in range(count) if one != other]
        joined = [_joined(starts, instants, pair) for pair in pairs]
        kept = [i for i, (secrets, _) in enumerate(joined) if len(secrets) >= _SHARED]
        if kept:
            names = tuple(f"chain {pairs[i][1] + 1} about chain {pairs[i][0] + 1}" for i in kept)
            looks.append(_look(records, [joined[i] for i in kept], names, epsilon, span))
    elif count > _FEW:
        pairs_looked_at = min(_PAIRS, count - 1)
        chosen = np.arange(pairs_looked_at) * (count - 1) // pairs_looked_at
        joined = [_joined(starts, instants, (i, i + 1)) for i in chosen.tolist()]
        if sum(len(secrets) for secrets, _ in joined) >= _SHARED:
            looks.append(_look(records, joined, ("a neighbouring chain",), epsilon, span))
    return looks


def _joined(
    starts: Integers, instants: NDArray[np.integer], pair: tuple[int, int]
) -> tuple[Integers, Integers]:
    """The records of one chain that share an instant with one of the other, and the latter."""
    own = np.arange(starts[pair[0]], starts[pair[0] + 1])
    other = instants[starts[pair[1]] : starts[pair[1] + 1]]
    found = np.minimum(np.searchsorted(other, instants[own]), len(other) - 1)
    same = other[found] == instants[own]
    return own[same], starts[pair[1]] + found[same]


def _look(
    records: Records,
    joined: list[tuple[Integers, Integers]],
    names: tuple[str, ...],
    epsilon: float,
    span: int,
) -> Look:
    """Pairs one after the other: each a group of its own, or all one."""
    secrets, same = (np.concatenate([pair[i] for pair in joined]) for i in (0, 1))
    number = np.repeat(np.arange(len(joined)), [len(pair[0]) for pair in joined])
    groups = number if len(names) > 1 else np.zeros(len(secrets), dtype=np.int64)
    before, after = np.maximum(same - 1, 0), np.minimum(same + 1, len(records) - 1)
    before = np.where(records.at[same] - records.at[before] == 1, before, -1)
    after = np.where(records.at[after] - records.at[same] == 1, after, -1)
    return Look(
        CHAINS,
        epsilon,
        secrets.astype(np.int32),
        np.stack((same, before), axis=1).astype(np.int32),
        after[:, np.newaxis].astype(np.int32),
        span,
        groups.astype(np.int32),
        names,
    )
