"""How well a value is guessed from a bin: learned in some rows, counted in others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.models.records import Codes

_BINS = 64  # at most, of numbers
_BIN = 40  # rows that a bin has for learning, at least


class Binning(NamedTuple):
    """(n,) the bin of each row, from 0, and the rows in which it can be told."""

    bins: Integers
    usable: NDArray[np.bool_]


class Guesses(NamedTuple):
    """(bins, known, k) how often a value stood with a bin and what is known without it.

    learned: in the rows from which guesses come. foretold: in those that are guessed.
    """

    learned: Integers
    foretold: Integers

    @classmethod
    def of(
        cls,
        bins: Integers,
        known: Integers,
        target: Codes,
        halves: tuple[NDArray[np.bool_], NDArray[np.bool_]],
        k: int,
    ) -> Guesses:
        """From rows: their bins, what is known, and the values; halves: to learn, to foretell."""
        shape = (int(bins.max()) + 1, int(known.max()) + 1, k)
        keys = (bins * shape[1] + known) * k + target
        size = shape[0] * shape[1] * k
        return cls(*(np.bincount(keys[half], minlength=size).reshape(shape) for half in halves))

    @property
    def total(self) -> int:
        """How many values are guessed."""
        return int(self.foretold.sum())

    def errors(self, code: int | None) -> tuple[int, int]:
        """Wrong guesses by the bin, and at best without it: of the value, or whether it is one."""
        return self._errors() if code is None else self._errors_about(code)

    def _errors(self) -> tuple[int, int]:
        by_bin = self.learned.argmax(axis=2)
        overall = np.broadcast_to(self.learned.sum(axis=0).argmax(axis=1), by_bin.shape)
        guess = np.where(self.learned.sum(axis=2) > 0, by_bin, overall)
        right = np.take_along_axis(self.foretold, guess[:, :, None], axis=2).sum()
        plain = self.foretold.sum(axis=0)
        return int(self.foretold.sum() - right), int(plain.sum() - plain.max(axis=1).sum())

    def _errors_about(self, code: int) -> tuple[int, int]:
        guess = 2 * self.learned[:, :, code] > self.learned.sum(axis=2)
        hit, rows = self.foretold[:, :, code], self.foretold.sum(axis=2)
        wrong = np.where(guess, rows - hit, hit).sum()
        return int(wrong), int(min(hit.sum(), (rows - hit).sum()))

    def best_guess(self) -> Integers:
        """(known,) the value that is guessed best without the bin."""
        return np.asarray(self.foretold.sum(axis=0).argmax(axis=1))


def categories(cells: Floats | Integers) -> Integers:
    """A bin for each different cell; all NaN are one."""
    return np.asarray(np.unique(cells, return_inverse=True)[1])


def quantiles(numbers: Floats, learn: NDArray[np.bool_]) -> Integers:
    """Bins with about as many rows for learning each, equal numbers together; NaN has its own."""
    known = np.sort(numbers[learn & ~np.isnan(numbers)])
    count = min(_BINS, len(known) // _BIN)
    edges = known[:0]
    if count > 1:
        edges = np.unique(known[np.arange(1, count) * len(known) // count])
    bins = np.searchsorted(edges, numbers, side="right")
    return np.where(np.isnan(numbers), len(edges) + 1, bins)


def best_cuts(numbers: Floats, aims: NDArray[np.bool_]) -> Iterator[float]:
    """For each aim, the threshold that best parts the rows where it holds from the others."""
    there = ~np.isnan(numbers)
    rank = np.argsort(numbers[there], kind="stable")
    ordered = numbers[there][rank]
    ends = np.flatnonzero(np.diff(ordered) > 0)
    if not len(ends):
        return
    for aim in aims:
        held = np.cumsum(aim[there][rank])
        low = held[ends]  # where it holds, up to each cut
        high = held[-1] - low
        # on each side of a cut the smaller group is wrong
        wrong = np.minimum(low, ends + 1 - low) + np.minimum(high, len(ordered) - ends - 1 - high)
        cut = ends[int(np.argmin(wrong))]
        yield float(ordered[cut] / 2 + ordered[cut + 1] / 2)


def independent_rows(missed: NDArray[np.bool_], values: Codes, chain: Integers) -> float:
    """How many of the missed rows say something of their own.

    Those of a run of equal values say the same, and long runs weigh more.
    """
    run = np.cumsum((np.diff(values, prepend=-1) != 0) | (np.diff(chain, prepend=-1) != 0))
    lengths = np.bincount(run[missed]).astype(np.float64)
    return float(lengths.sum() ** 2 / (lengths**2).sum())


def chance_of(wrong: float, base: float, size: float) -> float:
    """How likely so small a share of errors is if each guess is wrong with the chance `base`."""
    from scipy.special import bdtr

    trials = int(size)
    return float(bdtr(np.ceil(wrong * trials), trials, base))
