"""Clusters: secrets so near to each other that everything between them is redacted (O10).

Which secrets join depends on positions alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from offrecord.mechanisms.blocks import Block, Mask, Secrets
from offrecord.models.base import Integers

#: The two columns of all that lies to the left and to the right of a cluster.
LEFT, RIGHT = 0, 1
SIGNS = (-1, 1)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Neighbouring secrets that joined.

    ends: from the first record of each one's first secret to the last of its last one, as secrets
    themselves. begin: (c + 1,) the number of its first secret, and how many there are. gaps: (c, 2)
    how many records, missing ones included, lie between it and the next cluster, or the chain's
    end. faces: (c, 2) whether a cluster is what comes next. bridged: (c, 2) whether one choice
    serves the gap to it, instead of two walks (O15).
    """

    ends: Secrets
    begin: Integers
    gaps: Integers
    faces: Mask
    bridged: Mask

    @property
    def count(self) -> int:
        """How many clusters there are."""
        return self.ends.count

    @property
    def sizes(self) -> Integers:
        """(c,) how many secrets each one holds."""
        return np.diff(self.begin)

    def facing(self, values: Integers) -> Integers:
        """(c, 2) of values (c, 2) for each cluster's sides, those of the side that faces it across
        the gap; where none does, its own.
        """
        faced = values.copy()
        left = np.flatnonzero(self.faces[:, LEFT])
        faced[left, LEFT] = values[left - 1, RIGHT]
        faced[left - 1, RIGHT] = values[left, LEFT]
        return faced


def clusters_of(block: Block, deadlines: Integers, joined: Mask, served: Mask) -> Clusters:
    """The clusters of a block. deadlines: (secrets, 2) within which each secret's walks stop.

    Two neighbours join if the gap between them is shorter than one of the deadlines that face each
    other in it: so no walk ever looks at another cluster. joined: (secrets,) which ones join the
    one before them whatever the gap is. served: (secrets,) before which ones lies a gap that may be
    bridged.
    """
    secrets = block.secrets
    chain, first, last = secrets.chain, secrets.first, secrets.last
    between = first[1:] - last[:-1] - 1
    together = chain[1:] == chain[:-1]
    longest = np.maximum(deadlines[:-1, RIGHT], deadlines[1:, LEFT])
    # Where walks may meet, two of them are better if one has nothing on its other side to share ε.
    apart = deadlines[:-1, RIGHT] + deadlines[1:, LEFT] - 1
    room_left, room_right = secrets.rooms(block.chains)
    amid = (room_left[:-1] > 0) & (room_right[1:] > 0)
    bridged = served[1:] & ~joined[1:] & ((between < longest) | (amid & (between < apart)))
    joins = together & (((between < longest) & ~bridged) | joined[1:])
    begin = np.flatnonzero(np.concatenate(([True], ~joins)))
    head = begin[: secrets.count]  # none where there is no secret
    tail = np.append(head[1:], secrets.count)[: len(head)] - 1
    ends = Secrets(
        chain[head],
        first[head],
        last[tail],
        secrets.low[head],
        secrets.high[tail],
        secrets.order[head],
    )
    gaps = np.stack(ends.rooms(block.chains), axis=1)
    faces = np.zeros((len(head), 2), dtype=bool)
    faces[1:, LEFT] = faces[:-1, RIGHT] = ends.chain[1:] == ends.chain[:-1]
    inner = ends.first[1:] - ends.last[:-1] - 1
    gaps[1:, LEFT] = np.where(faces[1:, LEFT], inner, gaps[1:, LEFT])
    gaps[:-1, RIGHT] = np.where(faces[:-1, RIGHT], inner, gaps[:-1, RIGHT])
    spans = np.zeros((len(head), 2), dtype=bool)
    spans[1:, LEFT] = spans[:-1, RIGHT] = bridged[head[1:] - 1]
    return Clusters(ends, np.append(head, secrets.count), gaps, faces, spans)


def ranges(begin: Integers, end: Integers) -> Integers:
    """All numbers begin[i] … end[i] − 1, one range after the other."""
    counts = np.maximum(end - begin, 0)
    offsets = np.repeat(begin - np.cumsum(counts) + counts, counts)
    return np.asarray(offsets + np.arange(int(counts.sum())))
