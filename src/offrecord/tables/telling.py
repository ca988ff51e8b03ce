"""Whether kept columns tell the value: a test on released rows alone.

So nothing redacted can show in its answer. A sample of released rows is split into two halves by
chain. In one it is learned how to guess a value from a kept cell, in the other the guesses are
counted. Three questions: does the cell tell the value of its own record, does it tell where one
certain value stands, and does it tell the value of a record some before or after (a previous state,
or how long a state has lasted) better than the cell's own value does, which is released anyway? The
same of how a cell differs from the one before it: that is what running counts, and times at which a
state began, tell by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers, Label
from offrecord.models.records import MISSING, Chains, Codes
from offrecord.tables.chains import Arranged
from offrecord.tables.guessing import (
    Binning,
    Guesses,
    best_cuts,
    categories,
    chance_of,
    independent_rows,
    quantiles,
)
from offrecord.tables.kept import changes_of, read_cells

#: Rows of a sample: enough to tell an error rate of 2 % from one of 40 %, and quick to go through.
SAMPLE = 20_000
#: A column that takes away so much of the error of guessing determines the value, but for rounding
#: and typing errors.
SURE = 0.95
#: One that takes away so much tells something a person should know of.
SOME = 0.1
#: By chance less often than once in a million columns; with few rows nothing is below it.
CHANCE = 1e-6
_REACH = 3  # records before and after whose values are foretold
_FOLD = 0.2  # a smaller share of the rows is too little for a half
# multiples of it are spread evenly, in step with no period of the data
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Finding(NamedTuple):
    """What a column tells.

    code: of the one value it is about, if it is. shift: how many records after (or, negative,
    before). right, guessed: the shares of values foretold with the column and without. gain: the
    share of errors it takes away.
    """

    column: str
    code: int | None
    shift: int
    right: float
    guessed: float
    gain: float

    @property
    def sure(self) -> bool:
        """It determines the value."""
        return self.gain >= SURE

    def says(self, labels: Sequence[Label]) -> str:
        """In words."""
        what = "the value"
        if self.shift:
            count = "" if abs(self.shift) == 1 else f" {abs(self.shift)}"
            what += f" of the record{count} {'after' if self.shift > 0 else 'before'}"
        if self.code is not None:
            what = f"where the value is {labels[self.code]!r}"
        without = "guessing" if self.shift == 0 else "without it"
        tells = "tells" if self.sure else "tells something about"
        return (
            f"kept column {self.column!r} {tells} {what}: it predicts {_percent(self.right)} of the"
            f" released values, {without} {_percent(self.guessed)}"
        )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """Released rows of a table, spread evenly.

    level: one in 2^level was taken, those with the lowest marks. codes: (n, 2·_REACH + 1) the
    values of records by how many they come after, the record itself first, those before it last,
    MISSING where one is not released. chain: (n,) which chain it is of, counted from 0. cells,
    numbers: (n, c) the kept cells, as names of categories and, where they are numbers or times, as
    such; NaN where they are empty. changes: (n, c) how they differ from those of the record before,
    NaN where that is not released.
    """

    columns: tuple[str, ...]
    level: int
    marks: NDArray[np.uint64]
    codes: Codes
    chain: Integers
    cells: Floats
    numbers: Floats
    changes: Floats

    @classmethod
    def of(cls, arranged: Arranged, redacted: NDArray[np.bool_]) -> Sample | None:
        """A sample of a part of a table; redacted: (n,) its rows. None without kept columns."""
        frame, chains = arranged.frame, arranged.chains
        names = tuple(name for name in arranged.columns.keep if not frame[name].dtype.is_nested())
        if not names:
            return None
        shown = np.where(redacted, np.int8(MISSING), chains.codes)
        rows = np.flatnonzero(shown != MISSING)
        marks = np.arange(1, len(rows) + 1, dtype=np.uint64) * _GOLDEN
        level = _fitting_level(marks, max(len(rows) // SAMPLE, 1).bit_length() - 1)
        taken = np.flatnonzero(_is_low(marks, level))
        rows = rows[taken]
        here = [read_cells(frame[name].gather(rows)) for name in names]
        before = [read_cells(frame[name].gather(np.maximum(rows - 1, 0))) for name in names]
        codes = _values_around(shown, chains, rows)
        follows = codes[:, -1] != MISSING
        changes = [changes_of(*pair, follows) for pair in zip(here, before, strict=True)]
        return cls(
            names,
            level,
            marks[taken],
            codes,
            np.searchsorted(chains.starts, rows, side="right") - 1,
            np.stack([cells for cells, _ in here], axis=1),
            np.stack([numbers for _, numbers in here], axis=1),
            np.stack(changes, axis=1),
        )

    def __add__(self, other: Sample | None) -> Sample:
        """Rows of both, as few as of one."""
        if other is None:
            return self
        marks = np.concatenate((self.marks, other.marks))
        level = _fitting_level(marks, max(self.level, other.level))
        taken = _is_low(marks, level)
        first = int(self.chain.max(initial=-1)) + 1  # chains of both are different ones
        return Sample(
            self.columns,
            level,
            marks[taken],
            np.concatenate((self.codes, other.codes))[taken],
            np.concatenate((self.chain, other.chain + first))[taken],
            np.concatenate((self.cells, other.cells))[taken],
            np.concatenate((self.numbers, other.numbers))[taken],
            np.concatenate((self.changes, other.changes))[taken],
        )

    @cached_property
    def findings(self) -> list[Finding]:
        """For each column that tells something, the most of it."""
        if len(self.marks) < 2:
            return []
        test = self._test_half()
        found = (
            max(self._found(at, test), key=lambda one: one.gain, default=None)
            for at in range(len(self.columns))
        )
        return [one for one in found if one is not None]

    def _test_half(self) -> NDArray[np.bool_]:
        """(n,) the rows that are foretold: of every other chain.

        What comes later, where chains are few or of unequal length.
        """
        odd = categories(self.chain) % 2 == 1
        if _FOLD <= odd.mean() <= 1 - _FOLD:
            return np.asarray(odd)
        return np.arange(len(odd)) >= len(odd) // 2

    def _found(self, column: int, test: NDArray[np.bool_]) -> Iterator[Finding]:
        """What a column is found to tell, of the record itself first."""
        own, k = self.codes[:, 0].astype(np.int64), int(self.codes.max(initial=0)) + 1
        binnings = self._binnings(column, test)
        for shift in sorted(range(-_REACH, _REACH + 1), key=abs):
            target, known = self.codes[:, shift], own if shift else np.zeros_like(own)
            there = target != MISSING
            cuts = self._thresholds(column, shift, there & ~test, k)
            for bins, usable in (*binnings, *cuts):
                learn, check = there & usable & ~test, there & usable & test
                if learn.any() and check.any():
                    guesses = Guesses.of(bins, known, target, (learn, check), k)
                    yield from self._judged(column, shift, guesses, check)

    def _binnings(self, column: int, test: NDArray[np.bool_]) -> list[Binning]:
        """The ways to sort a column's cells into bins, whatever is asked of them."""
        cells, numbers = self.cells[:, column], self.numbers[:, column]
        changes, every = self.changes[:, column], np.ones(len(test), dtype=bool)
        follows = ~np.isnan(changes)
        found = [Binning(categories(cells), every)]  # an empty cell is a category too
        if np.isfinite(numbers).any():
            found.append(Binning(quantiles(numbers, ~test), every))
        found.append(Binning(categories(changes), follows))
        found.append(Binning(quantiles(changes, ~test & follows), follows))
        return found

    def _thresholds(
        self, column: int, shift: int, learn: NDArray[np.bool_], k: int
    ) -> list[Binning]:
        """Numbers in two: by where each value stands, or by where a value changes."""
        numbers = self.numbers[:, column]
        if not np.isfinite(numbers).any() or not learn.any():
            return []
        own, target = self.codes[:, 0], self.codes[:, shift]
        aims = np.arange(k)[:, None] == target if shift == 0 else (target != own)[None]
        every = np.ones(len(numbers), dtype=bool)
        return [
            Binning((numbers > cut).astype(np.int64), every)
            for cut in best_cuts(numbers[learn], aims[:, learn])
        ]

    def _judged(
        self, column: int, shift: int, guesses: Guesses, check: NDArray[np.bool_]
    ) -> Iterator[Finding]:
        """Findings, if any: what takes away enough errors, and not by chance."""
        total, k = guesses.total, guesses.learned.shape[2]
        # with two values, where one stands is what the value is
        codes: list[int | None] = [None, *(range(k) if shift == 0 and k > 2 else ())]
        for code in codes:
            wrong, base = guesses.errors(code)
            if base == 0 or 1 - wrong / base < SOME:
                continue
            missed = self._missed(shift, code, guesses, check)
            values, chain = self.codes[check, shift], self.chain[check]
            size = independent_rows(missed, values, chain) / (base / total)
            if chance_of(wrong / total, base / total, size) < CHANCE:
                right, guessed = 1 - wrong / total, 1 - base / total
                name, gain = self.columns[column], 1 - wrong / base
                yield Finding(name, code, shift, right, guessed, gain)

    def _missed(
        self, shift: int, code: int | None, guesses: Guesses, check: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """The rows that the best guess without the column gets wrong."""
        target = self.codes[check, shift]
        if code is not None:
            here = target == code
            return np.asarray(here if 2 * np.count_nonzero(here) <= len(here) else ~here)
        guess = guesses.best_guess()
        return np.asarray(target != (guess[self.codes[check, 0]] if shift else guess[0]))


def _fitting_level(marks: NDArray[np.uint64], level: int) -> int:
    """The lowest level, from one on, at which few enough rows are left."""
    while np.count_nonzero(_is_low(marks, level)) > SAMPLE:
        level += 1
    return level


def _is_low(marks: NDArray[np.uint64], level: int) -> NDArray[np.bool_]:
    return marks <= np.uint64((2**64 - 1) >> level)


def _values_around(shown: Codes, chains: Chains, rows: Integers) -> Codes:
    """(n, 2·_REACH + 1) what is shown in rows, after and before each: by shift, negative ones last.

    MISSING beyond the ends of a chain.
    """
    chain = np.searchsorted(chains.starts, rows, side="right") - 1
    begin, end = chains.starts[chain], chains.starts[chain + 1]
    columns = []
    for shift in (*range(_REACH + 1), *range(-_REACH, 0)):
        there = rows + shift
        inside = (there >= begin) & (there < end)
        columns.append(np.where(inside, shown[np.clip(there, 0, len(shown) - 1)], MISSING))
    return np.stack(columns, axis=1).astype(np.int8)
