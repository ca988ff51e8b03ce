"""How much room around a secret makes a difference (F14)."""

from __future__ import annotations

import math

import numpy as np

from offrecord.models.base import Floats
from offrecord.models.chain import MarkovChain
from offrecord.models.phased import PhasedChain
from offrecord.theory.side import Side

_FAR = 10**12
_LONGEST = 4096  # room that is worth knowing of a chain that is not stationary
CUT = 2.0**-20  #: of ε: what a chain that is not stationary may tell beyond a room that is cut
_SURE = 2.0**-3  # of ε: a window that tells no more than this on one side is surely wide enough


def far_side(chain: MarkovChain, direction: int) -> Side:
    """All that lies to the left (−1) or right (1) of a secret with unlimited room."""
    return Side(chain, _FAR, direction, _FAR - 1)


def forgotten_room(chain: MarkovChain, epsilon: float) -> int | None:
    """Room beyond which nothing changes: about twice what both sides need if each may tell ε/2.

    None for a chain that never forgets so much. The chain is stationary.
    """
    reaches = [far_side(chain, direction).delta_star(epsilon / 2) for direction in (-1, 1)]
    known = [reach for reach in reaches if reach is not None]
    return 2 * max(known) + 6 if len(known) == len(reaches) else None


def cut_room(chain: PhasedChain | MarkovChain, epsilon: float) -> int | None:
    """Room to the left of a secret after which it makes next to no difference how likely the values
    were there: what is told about the secret changes by less than CUT·ε (F14, "Cut to the left").
    In a set of models it makes none anywhere, so that room is enough in which designs end.

    None for a chain that forgets too slowly, or never. The steps may be of any phases. A chain
    without phases is of order 1, with one kernel.
    """
    largest = max(_diameter(*bounds) for bounds in _kernels(chain))
    kept = math.tanh(largest / 4)  # Birkhoff: of what was told, at most so much by a step further
    if largest == 0:
        return 2  # records are independent: a design redacts none, and so ends within the first
    if kept == 1 or epsilon <= 0:
        return None
    told = (CUT if chain.box is None else _SURE) * epsilon
    steps = 1 + math.ceil(max(math.log(told / largest) / math.log(kept), 0.0)) + 1
    return steps if steps <= _LONGEST else None


def _kernels(chain: PhasedChain | MarkovChain) -> list[tuple[Floats, Floats]]:
    """The lower and upper ends of what the kernel, or each phase's, may be."""
    k = chain.k
    ends = (chain.transition, chain.transition) if chain.box is None else chain.box.forward
    low, high = (end.reshape(-1, k, k) for end in ends)
    return list(zip(low, high, strict=True))


def _diameter(low: Floats, high: Floats) -> float:
    """The largest log[K(i, x)·K(j, y) / (K(i, y)·K(j, x))] of a kernel between two bounds."""
    if np.any(low <= 0):
        return math.inf
    below, above = np.log(low), np.log(high)
    most = (above[:, np.newaxis] - below[np.newaxis]).max(axis=2)
    return max(
        (float(most[i, j] + most[j, i]) for i in range(len(most)) for j in range(i)), default=0.0
    )
