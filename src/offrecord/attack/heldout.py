"""Gaps that are held out as a whole (O15): how likely what one shows is, together with what lies
beside it.
"""

from __future__ import annotations

import numpy as np

from offrecord.mechanisms.owner.designing.repair import stopped_shares
from offrecord.mechanisms.owner.stopping import GapStopping
from offrecord.models.base import Floats, Integers

#: First and last record that are released, from 1; None for nothing.
Held = tuple[int, int] | None
_MOST_CELLS = 1 << 22


def is_too_wide(gap: GapStopping, states: int) -> bool:
    """Whether `held_out` would take too long."""
    return len(gap.states) * states**4 > _MOST_CELLS


def held_out(gap: GapStopping, kernels: Floats, value: Integers) -> dict[Held, Floats]:
    """By what is released (s, t, i, j): how likely that is, with state t at the right cluster's
    first record and states i and j at the ends of what is released, by state s at the left
    cluster's last one; of nothing (s, t). What leads from i to j is left out.

    kernels: (length + 1, S, S) of the steps from the one cluster to the other. value: (S,) of the
    record that a state ends with.
    """
    states = len(value)
    found: dict[Held, Floats] = {}
    seen = np.ix_(value, value, value, value)
    nothing = np.zeros((states, states))
    reached: dict[tuple[int, int], Floats] = {
        (1, gap.length): kernels[0][:, np.newaxis, :, np.newaxis]
        * kernels[-1].T[np.newaxis, :, np.newaxis, :]
    }
    for number, (first, last) in enumerate(gap.states):
        here = reached.pop((first, last), np.zeros((states,) * 4))
        shares = stopped_shares(gap.limits[number][seen])
        release, lose = shares[..., 0], np.maximum(shares[..., 0], shares[..., 1])
        found[first, last] = here * release
        if first == last:
            nothing += np.einsum("stii->st", here * (1.0 - release))
            continue
        less = np.einsum("stij,ia->staj", here * (lose - release), kernels[first], optimize=True)
        more = np.einsum("stij,aj->stia", here * (1.0 - lose), kernels[last - 1], optimize=True)
        for target, part in (((first + 1, last), less), ((first, last - 1), more)):
            reached[target] = reached.get(target, 0.0) + part
    found[None] = nothing
    return found
