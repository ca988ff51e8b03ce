"""What several releases of the same records tell together (R8, docs/proofs/R8-several.md).

Given a record's value, all releases redact it with one probability, and any other outcome shows the
value; so together they tell what one local redaction does. Releases with the same coins redact a
record together with the least of their probabilities, those with other coins with the product.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import reduce

import numpy as np

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.theory.leakage import WorstOutput, worst_output
from offrecord.theory.problem import Problem
from offrecord.theory.redaction import Redaction


def joint_output(problem: Problem, releases: Mapping[Hashable, Sequence[Redaction]]) -> WorstOutput:
    """What tells most about one of the problem's secrets of all that was released.

    releases: local ones, by the coins that they share. A record that is not in one of them is
    redacted there.
    """
    return worst_output(problem, joint_redaction(releases))


def joint_redaction(releases: Mapping[Hashable, Sequence[Redaction]]) -> Redaction:
    """The one redaction that tells as much as all of them."""
    every = [one for several in releases.values() for one in several]
    if not every:
        raise InputError("several releases must be at least one")
    n, k = every[0].n, every[0].k
    for one in every:
        one.checked(n, k)
    cuts = np.unique(
        np.concatenate([[0, n], *((one.starts, one.stops) for one in every)], axis=None)
    )
    begins = cuts[:-1].astype(np.int64)
    rows = joint_rows(
        {coins: [_rows(one, begins) for one in several] for coins, several in releases.items()}
    )
    return Redaction(n, begins, cuts[1:].astype(np.int64), rows).compressed()


def joint_rows(releases: Mapping[Hashable, Sequence[Floats]]) -> Floats:
    """(n, k) the same of rows of redaction probabilities: by the coins that releases share, those
    of each of them for the same records.
    """
    together = [reduce(np.minimum, several) for several in releases.values()]
    return reduce(_times, together)


def _rows(redaction: Redaction, positions: Integers) -> Floats:
    """(m, k) redaction probabilities of some records."""
    at = np.searchsorted(redaction.starts, positions, side="right") - 1
    inside = at >= 0
    inside[inside] = positions[inside] < redaction.stops[at[inside]]
    rows = np.zeros((len(positions), redaction.k))
    rows[inside] = redaction.rows[at[inside]]
    return rows


def _times(one: Floats, other: Floats) -> Floats:
    """A product, rounded down where it is rounded: less redaction never tells less (F3)."""
    product = one * other
    certain = (one == 1.0) | (other == 1.0) | (product == 0.0)
    return np.where(certain, product, np.nextafter(product, 0.0))
