"""Gaps that are held out as a whole (O15): how likely what one shows is, together with the values
beside it.
"""

from __future__ import annotations

import numpy as np

from offrecord.mechanisms.owner.designing.repair import stopped_shares
from offrecord.mechanisms.owner.stopping import GapStopping
from offrecord.models.base import Floats

#: First and last record that are released, from 1; None for nothing.
Held = tuple[int, int] | None


def held_out(gap: GapStopping, kernels: Floats) -> dict[Held, Floats]:
    """By what is released (x, b, i, j): how likely that is, with the value b of the right cluster's
    first record and the values i and j at the ends of what is released, by the value x of the left
    cluster's last one; of nothing (x, b). What lies between i and j is left out: it is the same
    whatever x and b are.

    kernels: (length + 1, k, k) of the steps from the one cluster to the other.
    """
    k, found = kernels.shape[1], {}
    nothing = np.zeros((k, k))
    reached: dict[tuple[int, int], Floats] = {
        (1, gap.length): kernels[0][:, np.newaxis, :, np.newaxis]
        * kernels[-1].T[np.newaxis, :, np.newaxis, :]
    }
    for number, (first, last) in enumerate(gap.states):
        here = reached.pop((first, last), np.zeros((k,) * 4))
        shares = stopped_shares(gap.limits[number])
        release, lose = shares[..., 0], np.maximum(shares[..., 0], shares[..., 1])
        found[first, last] = here * release
        if first == last:
            nothing += np.einsum("xbii->xb", here * (1.0 - release))
            continue
        less = np.einsum("xbij,ia->xbaj", here * (lose - release), kernels[first])
        more = np.einsum("xbij,aj->xbia", here * (1.0 - lose), kernels[last - 1])
        for target, part in (((first + 1, last), less), ((first, last - 1), more)):
            reached[target] = reached.get(target, 0.0) + part
    return {**found, None: nothing}
