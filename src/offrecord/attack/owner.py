"""What the walks of the owner's mechanism tell."""

from __future__ import annotations

import numpy as np

from offrecord.attack.released import Table
from offrecord.attack.walking import Told


def told_by_walks(table: Table) -> tuple[Told, tuple[tuple[str, int], ...]]:
    """What is told of each secret, and how many were not attacked, and why."""
    count, k = table.batch.secrets.count, table.said.model.k
    nothing = np.full((count, k), np.nan)
    return Told(np.full(count, np.nan), nothing, nothing), (("not yet", count),)
