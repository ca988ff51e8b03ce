"""A number for what each record holds: sets of records whose sums are equal hold the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_STRIP = 1 << 15  # records whose numbers of 64 bits fit into the processor's cache
#: Odd numbers that mix order values, and what is shown.
_ODD = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03], dtype=np.uint64)


def record_numbers(order: NDArray[np.integer], shown: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """(n,) the order value of each record and what it shows, mixed."""
    mixed = np.empty(len(shown), dtype=np.uint64)
    other = np.empty(min(_STRIP, len(shown)), dtype=np.uint64)
    for begin in range(0, len(shown), _STRIP):
        strip = slice(begin, begin + _STRIP)
        numbers = mixed[strip]
        rest = other[: len(numbers)]
        np.multiply(order[strip].astype(np.uint64), _ODD[0], out=numbers)
        numbers += np.multiply(shown[strip], _ODD[1], out=rest)
        numbers ^= np.right_shift(numbers, np.uint64(32), out=rest)
        numbers *= numbers  # a sum of what is linear would not tell 1 and 4 from 2 and 3
    return mixed
