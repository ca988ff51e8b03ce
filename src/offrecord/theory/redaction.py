"""Redaction: a local redaction matrix, Pr(Y_t = ⊥ | X_t = x), kept only where it is not 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain

#: Largest number of matrix entries that is ever spelled out.
MAX_DENSE = 200_000_000
_CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class Redaction:
    """n × k redaction probabilities as stretches of equal rows; rows in no stretch are 0.

    In order and apart. starts, stops: (m,) positions from 0, stop excluded. rows: (m, k).
    """

    n: int
    starts: Integers
    stops: Integers
    rows: Floats

    @property
    def k(self) -> int:
        """Number of values."""
        return int(self.rows.shape[1])

    @classmethod
    def of(cls, n: int, k: int, stretches: Iterable[tuple[int, int, ArrayLike]]) -> Redaction:
        """From (start, stop, row) stretches in order; empty ones are left out."""
        kept = [(start, stop, row) for start, stop, row in stretches if stop > start]
        return cls(
            n,
            np.array([start for start, _, _ in kept], dtype=np.int64),
            np.array([stop for _, stop, _ in kept], dtype=np.int64),
            np.array([row for _, _, row in kept], dtype=np.float64).reshape(len(kept), k),
        )

    @classmethod
    def everything(cls, n: int, k: int) -> Redaction:
        """Every record always redacted."""
        return cls.of(n, k, [(0, n, np.ones(k))])

    @classmethod
    def from_matrix(cls, matrix: Any, n: int, k: int) -> Redaction:
        """From an (n, k) array of probabilities; InputError for anything else."""
        try:
            rows = np.ascontiguousarray(matrix, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError("redaction must be an array of numbers") from None
        if rows.shape != (n, k):
            raise InputError(f"redaction must have shape ({n}, {k}), got {rows.shape}")
        if not (rows.min() >= 0.0 and rows.max() <= 1.0):  # False for NaN too
            raise InputError("redaction must hold probabilities between 0 and 1")
        positions = np.arange(n + 1)
        return cls(n, positions[:-1], positions[1:], rows)

    def checked(self, n: int, k: int) -> Redaction:
        """Itself; InputError unless it is a redaction of n records with k values.

        Its stretches in order and apart, its rows probabilities.
        """
        if self.n != n or self.rows.ndim != 2 or self.rows.shape[1] != k:
            raise InputError(f"redaction must be of {n} records with {k} values")
        if not len(self.starts) == len(self.stops) == len(self.rows):
            raise InputError("redaction must have a start, a stop and a row for each stretch")
        if len(self.rows) == 0:
            return self
        if not (self.rows.min() >= 0.0 and self.rows.max() <= 1.0):
            raise InputError("redaction must hold probabilities between 0 and 1")
        inside = (
            self.starts[0] >= 0 and self.stops[-1] <= n and bool(np.all(self.starts < self.stops))
        )
        if not inside or np.any(self.starts[1:] < self.stops[:-1]):
            raise InputError(
                f"redaction must have stretches within its {n} records, in order and apart"
            )
        return self

    def matrix(self, first: int = 0, last: int | None = None) -> Floats:
        """(last − first, k) array of the records at positions first … last − 1; else of all n."""
        stop = self.n if last is None else last
        if (stop - first) * self.k > MAX_DENSE:
            raise InputError(
                f"{stop - first} records are too many to spell out; ask for a part of them"
            )
        out = np.zeros((stop - first, self.k))
        for start, end, row in zip(self.starts, self.stops, self.rows, strict=True):
            if start < stop and end > first:
                out[max(start - first, 0) : end - first] = row
        return out

    def part(self, first: int, last: int) -> Redaction:
        """What lies at positions first … last − 1, in whole stretches."""
        kept = (self.starts >= first) & (self.stops <= last)
        return Redaction(self.n, self.starts[kept], self.stops[kept], self.rows[kept])

    def row(self, position: int) -> Floats:
        """(k,) redaction probabilities of the record at a position (from 0)."""
        at = int(np.searchsorted(self.starts, position, side="right")) - 1
        if at >= 0 and position < self.stops[at]:
            return np.asarray(self.rows[at])
        return np.zeros(self.k)

    def compressed(self) -> Redaction:
        """The same matrix in as few stretches as possible."""
        kept = np.flatnonzero(self.rows.any(axis=1))
        if len(kept) == 0:
            return Redaction(self.n, self.starts[:0], self.stops[:0], self.rows[:0])
        starts, stops, rows = self.starts[kept], self.stops[kept], self.rows[kept]
        joins = (starts[1:] == stops[:-1]) & np.all(rows[1:] == rows[:-1], axis=1)
        first = np.flatnonzero(np.concatenate(([True], ~joins)))
        last = np.concatenate((first[1:] - 1, [len(starts) - 1]))
        return Redaction(self.n, starts[first], stops[last], rows[first])

    @staticmethod
    def maximum(parts: Sequence[Redaction]) -> Redaction:
        """The per-record, per-value maximum: private for every secret of its parts (F3)."""
        n, k = parts[0].n, parts[0].k
        starts = np.concatenate([part.starts for part in parts])
        stops = np.concatenate([part.stops for part in parts])
        rows = np.concatenate([part.rows for part in parts])
        cuts = np.unique(np.concatenate((starts, stops)))
        result = np.zeros((max(len(cuts) - 1, 0), k))
        low, high = np.searchsorted(cuts, starts), np.searchsorted(cuts, stops)
        for i, j, row in zip(low, high, rows, strict=True):
            np.maximum(result[i:j], row, out=result[i:j])
        return Redaction(n, cuts[:-1], cuts[1:], result).compressed()

    def released(self, chain: MarkovChain) -> float:
        """Expected number of released records, n·ν (Definition 2), by each record's own marginal.

        Theorem 1 and Eq. (3) are this sum for a 3R matrix of the paper's chain.
        """
        lengths = self.stops - self.starts
        total = float(self.n - int(lengths.sum()))
        if chain.is_stationary:
            return total + float(lengths @ ((1.0 - self.rows) @ chain.marginal(1)))
        for start, stop, row in zip(self.starts, self.stops, self.rows, strict=True):
            if np.any(row < 1):
                for begin in range(int(start), int(stop), _CHUNK):
                    marginals = chain.marginals(begin + 1, min(begin + _CHUNK, int(stop)))
                    total += float((marginals @ (1.0 - row)).sum())
        return total
