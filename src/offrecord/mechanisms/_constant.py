"""The smallest private constant q of one side, for two values: the whole search in one loop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.theory._compiling import are_few, compiled
from offrecord.theory._walk import binary

_LOOKS, _LONG = 14, 2_000  # walks that a search takes, about, and the records of a long one
_MOST_LOOKS = 200  # as many as halving would need several times over
_LEAST, _MOST = 2.0**-40, 1.0 - 2.0**-53  # what is told from 0 and from 1
_CLOSE = 2.0**-47  # half of how close the ends of the search come, in log q ≥ −28
_BEYOND = 100.0  # leakages further than this above the share are all alike


def found_constant(
    kernels: Floats, releasable: NDArray[np.bool_], lengths: Integers, opens: bool, share: float
) -> float | None:
    """The smallest q with which releasable values may be redacted, 0 and 1 included; None where
    numbers become too small for the walk of two values.
    """
    records = int(lengths.sum()) + 1
    # they are walks as all others are, so they count with them
    few = records <= _LONG and are_few(_LOOKS * records, binary.function.__module__)
    search = smallest_constant.plain if few else smallest_constant
    q = float(search(kernels, releasable, lengths, opens, share))
    return q if q >= 0.0 else None


@compiled
def smallest_constant(
    kernels: Any, releasable: Any, lengths: Any, opens: bool, share: float
) -> Any:
    """See `found_constant`; −1 for None.

    Leakage never rises with q (F3), so that a search between a q that is private and one that is
    not ends at the smallest one; what it returns has been walked.
    """
    rows = np.ones(releasable.shape)
    given = kernels, rows, releasable, lengths, opens, share
    high, low = _MOST, _LEAST
    above, below = _excess(high, given), _excess(low, given)
    if math.isnan(above) or math.isnan(below):
        return -1.0
    if above > 0.0:
        return 1.0
    if below <= 0.0:
        return 0.0 if _excess(0.0, given) <= 0.0 else low
    # Chandrupatla's method in log q: the next look is where a parabola through the last three has
    # its root, wherever that may be trusted, else in the middle; and never so near to an end that
    # the other one would stay.
    b, found_b, a, found_a, t = math.log(low), below, math.log(high), above, 0.5
    for _ in range(_MOST_LOOKS):
        at = a + t * (b - a)
        q = min(max(math.exp(at), low), high)
        found = _excess(q, given)
        if math.isnan(found):
            return -1.0
        if found <= 0.0:
            high = min(high, q)
        else:
            low = max(low, q)
        if (found <= 0.0) == (found_a <= 0.0):
            c, found_c = a, found_a
        else:
            c, found_c, b, found_b = b, found_b, a, found_a
        a, found_a = at, found
        nearest = _CLOSE / abs(b - a) if b != a else 1.0
        if nearest > 0.5 or found == 0.0:
            return high
        share_a, share_f = (a - b) / (c - b), (found_a - found_b) / (found_c - found_b)
        t = 0.5
        if share_f * share_f < share_a and (1.0 - share_f) * (1.0 - share_f) < 1.0 - share_a:
            t = found_a / (found_b - found_a) * found_c / (found_b - found_c)
            t += (c - a) / (b - a) * found_a / (found_c - found_a) * found_b / (found_c - found_b)
        t = min(max(t, nearest), 1.0 - nearest)
    return high


@compiled
def _excess(q: float, given: Any) -> Any:
    """By how much the leakage with q exceeds the share; NaN where the walk does not serve."""
    kernels, rows, releasable, lengths, opens, share = given
    for i in range(len(rows)):
        for value in range(2):
            if releasable[i, value]:
                rows[i, value] = q
    ok, met, _ = binary(kernels, (rows, lengths, 0, 1, len(rows), opens))
    if not ok:
        return np.nan
    worst = 0.0
    if met[0] > 0.0:
        worst = math.log(met[0])
    if met[3] < np.inf:
        worst = max(worst, -math.log(met[3]) if met[3] > 0.0 else np.inf)
    return min(worst, share + _BEYOND) - share
