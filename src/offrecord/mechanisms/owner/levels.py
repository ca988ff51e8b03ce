"""Where a walk may stop, and what it is told of the far context.

All distances up to the deadline, if they are few; else so that the law of stopping, with every
distance allowed, puts its roots evenly between them (O6).
"""

from __future__ import annotations

import numpy as np

from offrecord.mechanisms.owner.common_mass import bridges_in_common
from offrecord.mechanisms.owner.law import unstopped
from offrecord.mechanisms.owner.side import Side
from offrecord.models.base import Integers
from offrecord.models.members import Members


def placed_levels(side: Side, deadline: int, most: int) -> list[int]:
    """At most `most` levels, the last one the deadline."""
    every = list(range(side.mean.order, deadline + 1))
    if len(every) <= most:
        return every
    mean = side.steps(every, mean=True)
    stop = bridges_in_common(mean, side)
    waiting = [
        float(np.einsum("x,cxi,ic->", mean.start[0], mass[0], beyond[0]))
        for mass, beyond in zip(unstopped(mean, stop), mean.beyond, strict=True)
    ]
    roots = np.cumsum(np.sqrt(np.maximum(-np.diff([*waiting, 0.0]), 0.0)))
    wanted = roots[-1] * np.arange(1, most + 1) / most
    chosen = np.minimum(np.searchsorted(roots, wanted * (1 - 1e-9)), len(every) - 1)
    return sorted({every[0], *(every[one] for one in chosen.tolist()), deadline})


def far_classes(mean: Members, place: int, most: int) -> Integers:
    """(S,) the class of each far context: each its own if they are at most 8, else the likeliest
    half of the classes alone and the others in groups that look alike from a distance.
    """
    contexts = mean.contexts
    if contexts <= most:
        return np.arange(contexts)
    from scipy.cluster.hierarchy import fcluster, linkage

    law = mean.law(place)[0]
    alone = np.argsort(-law, kind="stable")[: most // 2]
    others = np.setdiff1d(np.arange(contexts), alone)
    seen = np.log(mean.ahead(place, 2 * mean.order)[0][:, others] / law[others])
    grouped = fcluster(linkage(seen.T, "ward"), most - len(alone), "maxclust") - 1
    far = np.zeros(contexts, dtype=np.int64)
    far[alone] = np.arange(len(alone))
    far[others] = len(alone) + grouped
    return far
