"""How much room around a secret makes a difference (F14)."""

from __future__ import annotations

from offrecord.models.chain import MarkovChain
from offrecord.theory.side import Side

_FAR = 10**12


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
