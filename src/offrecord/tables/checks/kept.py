"""Whether kept columns leak the value: a test on released rows alone, so nothing redacted shows.

A sample of released rows is split into two halves by chain. In one it is learned how to guess a
value from a kept cell, in the other the guesses are counted. Does the cell predict the value of its
own record, or that of the record before or after better than its own value does, which is released
anyway? The same is asked of how a cell differs from the one before it: that is how running counts,
and times at which a state began, leak.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers, Label, Mask
from offrecord.models.records import MISSING, Chains, Codes
from offrecord.tables.cells import parsed_times
from offrecord.tables.checks.check import DataCheck, Finding, Part

if TYPE_CHECKING:
    from offrecord.tables.chains import Arranged
    from offrecord.tables.plan import Plan

#: Rows of a sample: enough to distinguish error rates of 2 % and 40 %, and quick to go through.
SAMPLE = 20_000
#: A column that takes away so much of the error of guessing determines the value, but for rounding
#: and typing errors.
SURE = 0.95
#: One that takes away so much gives a person something they should know of.
SOME = 0.1
#: By chance less often than once in a million columns; with few rows nothing is below it.
CHANCE = 1e-6
_SHIFTS = (0, 1, -1)  # whose values are foretold: the record's own, the next, the one before
_FOLD = 0.2  # a smaller share of the rows is too little for a half
# rows that a bin of numbers has for learning: many to learn what shows now and then, few to see
# a sharp limit, as of a duration that begins anew with each value
_BINS = (40, 5)
# multiples of it are spread evenly, in step with no period of the data
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class KeptColumns(DataCheck):
    """Refuses a kept column that determines the value, and warns of one that leaks something."""

    def observe(self, part: Part) -> Sample | None:
        return None if part.gone is None else Sample.of(part.table.arranged, part.gone)

    def after(self, plan: Plan, observed: Sample) -> Iterator[Finding]:
        for one in observed.leaks:
            said = one.says(plan.labels)
            if one.sure:
                yield Finding("refusal", f"{said}; leave it out of --keep")
            else:
                yield Finding("warning", f"{said}; is it needed?")


class Leak(NamedTuple):
    """What a column leaks.

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
            what += f" of the record {'after' if self.shift > 0 else 'before'}"
        if self.code is not None:
            what = f"where the value is {labels[self.code]!r}"
        without = "guessing" if self.shift == 0 else "without it"
        leaks = "gives away" if self.sure else "says something about"
        return (
            f"kept column {self.column!r} {leaks} {what}: it predicts {100 * self.right:.1f} % of"
            f" the released values, {without} {100 * self.guessed:.1f} %"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """Released rows of a table, spread evenly.

    level: one in 2^level was taken, those with the lowest marks. codes: (n, 3) the values of the
    record itself, the next and the one before, MISSING where one is not released. chain: (n,) which
    chain it is of, counted from 0. cells, numbers: (n, c) the kept cells, as names of categories
    and, where they are numbers or times, as such; NaN where they are empty. changes: (n, c) how
    they differ from those of the record before, NaN where that is not released.
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
    def of(cls, arranged: Arranged, redacted: Mask) -> Sample | None:
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
        here = [_read_cells(frame[name].gather(rows)) for name in names]
        before = [_read_cells(frame[name].gather(np.maximum(rows - 1, 0))) for name in names]
        codes = _values_around(shown, chains, rows)
        follows = codes[:, -1] != MISSING
        changes = [_changes(*pair, follows) for pair in zip(here, before, strict=True)]
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

    def __add__(self, other: Sample) -> Sample:
        """Rows of both, as few as of one."""
        marks = np.concatenate((self.marks, other.marks))
        level = _fitting_level(marks, max(self.level, other.level))
        taken = _is_low(marks, level)
        first = int(self.chain.max(initial=-1)) + 1  # chains of both are different ones
        chain = np.concatenate((self.chain, other.chain + first))[taken]
        codes, cells, numbers, changes = (
            np.concatenate((getattr(self, name), getattr(other, name)))[taken]
            for name in ("codes", "cells", "numbers", "changes")
        )
        return Sample(self.columns, level, marks[taken], codes, chain, cells, numbers, changes)

    @cached_property
    def leaks(self) -> list[Leak]:
        """For each column that leaks something, the most of it."""
        if len(self.marks) < 2:
            return []
        # Learned in one half, counted in the other: a column of noise foretells nothing there.
        test = self._test_half()
        found = (
            max(self._found(at, test), key=lambda one: one.gain, default=None)
            for at in range(len(self.columns))
        )
        return [one for one in found if one is not None]

    def _test_half(self) -> Mask:
        """(n,) the rows that are foretold: of every other chain.

        What comes later, where chains are few or of unequal length.
        """
        odd = _categories(self.chain) % 2 == 1
        if _FOLD <= odd.mean() <= 1 - _FOLD:
            return np.asarray(odd)
        return np.arange(len(odd)) >= len(odd) // 2

    def _found(self, column: int, test: Mask) -> Iterator[Leak]:
        """What a column leaks, of the record itself first."""
        binnings = self._binnings(column, test)
        for shift in _SHIFTS:
            for code, target in self._targets(shift):
                known = np.zeros(len(test), dtype=np.int64) if shift == 0 else self.codes[:, 0]
                for bins, usable in binnings:
                    there = (target != MISSING) & usable
                    if not (there & ~test).any() or not (there & test).any():
                        continue
                    guesses = _Guesses.of(bins, known, target, there, test)
                    leaks = guesses.leaks(self.chain[there & test])
                    if leaks is not None:
                        yield Leak(self.columns[column], code, shift, *leaks)

    def _targets(self, shift: int) -> Iterator[tuple[int | None, Codes]]:
        """(n,) what is foretold: values, and where each of them stands."""
        target = self.codes[:, shift]
        yield None, target
        k = int(self.codes.max(initial=0)) + 1
        if shift == 0 and k > 2:  # with two values, where one stands is what the value is
            for code in range(k):
                yield code, (target == code).astype(np.int8)

    def _binnings(self, column: int, test: Mask) -> list[tuple[Integers, Mask]]:
        """(n,) the bins of a column's cells, and the rows that have one, in several bins."""
        cells, numbers = self.cells[:, column], self.numbers[:, column]
        changes, every = self.changes[:, column], np.ones(len(test), dtype=bool)
        follows = ~np.isnan(changes)
        found = [(_categories(cells), every)]  # an empty cell is a category too
        if np.isfinite(numbers).any():
            found += [(_quantiles(numbers, ~test, rows), every) for rows in _BINS]
        found.append((_categories(changes), follows))
        found += [(_quantiles(changes, ~test & follows, rows), follows) for rows in _BINS]
        return found


# ---- guesses


class _Guesses(NamedTuple):
    """Guesses of values from bins and what is known without them, learned in other rows.

    values, known: (t,) of the rows that are guessed. right: (t,) the guesses that are. plain: (t,)
    those that are, if the best guess without the bin is taken.
    """

    values: Codes
    right: Mask
    plain: Mask

    @classmethod
    def of(
        cls, bins: Integers, known: Integers | Codes, target: Codes, there: Mask, test: Mask
    ) -> _Guesses:
        """From rows: their bins, what is known, and the values."""
        known = known.astype(np.int64)
        k = int(target.max(initial=0)) + 1
        shape = (int(bins.max()) + 1, int(known.max()) + 1, k)
        learn, check = there & ~test, there & test
        keys = (bins * shape[1] + known) * k + target
        size = shape[0] * shape[1] * k
        learned = np.bincount(keys[learn], minlength=size).reshape(shape)
        overall = learned.sum(axis=0).argmax(axis=1)
        guess = np.where(learned.sum(axis=2) > 0, learned.argmax(axis=2), overall)
        values, known_there = target[check], known[check]
        foretold = np.bincount(known_there * k + values, minlength=shape[1] * k)
        best = foretold.reshape(shape[1:]).argmax(axis=1)
        right = guess[bins[check], known_there] == values
        return cls(values, right, best[known_there] == values)

    def leaks(self, chain: Integers) -> tuple[float, float, float] | None:
        """The shares foretold with the bins and without, and that of errors they take away; None
        for too few of these, or by chance. chain: (t,) of each row.
        """
        missed, total = ~self.plain, len(self.values)
        base, wrong = int(np.count_nonzero(missed)), int(np.count_nonzero(~self.right))
        if base == 0 or 1 - wrong / base < SOME:
            return None
        # Of guesses without the bins one in total / base is missed: so many rows count for a miss.
        size = _independent_rows(missed, self.values, chain) / (base / total)
        if _chance_of(wrong / total, base / total, size) >= CHANCE:
            return None
        return 1 - wrong / total, 1 - base / total, 1 - wrong / base


def _independent_rows(missed: Mask, values: Codes, chain: Integers) -> float:
    """How many of the missed rows say something of their own.

    Those of a run of equal values say the same, and long runs weigh more.
    """
    run = np.cumsum((np.diff(values, prepend=-1) != 0) | (np.diff(chain, prepend=-1) != 0))
    lengths = np.bincount(run[missed]).astype(np.float64)
    return float(lengths.sum() ** 2 / (lengths**2).sum())


def _chance_of(wrong: float, base: float, size: float) -> float:
    """How likely so small a share of errors is if each guess is wrong with the chance `base`."""
    from scipy.special import bdtr

    trials = int(size)
    return float(bdtr(np.ceil(wrong * trials), trials, base))


def _categories(cells: Floats | Integers) -> Integers:
    """A bin for each different cell; all NaN are one."""
    return np.asarray(np.unique(cells, return_inverse=True)[1])


def _quantiles(numbers: Floats, learn: Mask, rows: int) -> Integers:
    """Bins with so many rows for learning or more, equal numbers together; NaN has its own."""
    known = np.sort(numbers[learn & ~np.isnan(numbers)])
    count = len(known) // rows
    edges = known[:0]
    if count > 1:
        edges = np.unique(known[np.arange(1, count) * len(known) // count])
    bins = np.searchsorted(edges, numbers, side="right")
    return np.where(np.isnan(numbers), len(edges) + 1, bins)


# ---- rows of a sample


def _fitting_level(marks: NDArray[np.uint64], level: int) -> int:
    """The lowest level, from one on, at which few enough rows are left."""
    while np.count_nonzero(_is_low(marks, level)) > SAMPLE:
        level += 1
    return level


def _is_low(marks: NDArray[np.uint64], level: int) -> Mask:
    return marks <= np.uint64((2**64 - 1) >> level)


def _values_around(shown: Codes, chains: Chains, rows: Integers) -> Codes:
    """(n, 3) what is shown in rows, after and before each; MISSING beyond the ends of a chain."""
    chain = np.searchsorted(chains.starts, rows, side="right") - 1
    begin, end = chains.starts[chain], chains.starts[chain + 1]
    columns = []
    for shift in _SHIFTS:
        there = rows + shift
        inside = (there >= begin) & (there < end)
        columns.append(np.where(inside, shown[np.clip(there, 0, len(shown) - 1)], MISSING))
    return np.stack(columns, axis=1).astype(np.int8)


# ---- cells as numbers


def _changes(here: tuple[Floats, Floats], before: tuple[Floats, Floats], follows: Mask) -> Floats:
    """(n,) how much a number grows from the record before, or whether another cell stays.

    NaN where the record before is not released.
    """
    (cells, numbers), (old_cells, old_numbers) = here, before
    both = np.isfinite(numbers) & np.isfinite(old_numbers)
    with np.errstate(invalid="ignore"):
        grown = np.where(both, numbers - old_numbers, cells == old_cells)
    return np.where(follows, grown, np.nan)


def _read_cells(series: pl.Series) -> tuple[Floats, Floats]:
    """Cells as names of categories, and as numbers; NaN where they are empty, or no numbers."""
    kind = series.dtype
    if kind.is_numeric() or kind.is_temporal() or kind == pl.Boolean:
        plain = series.to_physical() if kind.is_temporal() else series
        numbers = plain.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return numbers, numbers
    nothing = np.full(len(series), np.nan)
    if kind == pl.String:
        return _checksums(series), _numbers_in(series)
    return (_checksums(series) if kind == pl.Binary else nothing), nothing


def _checksums(series: pl.Series) -> Floats:
    """A number for each text or string of bytes, the same for the same one in every part."""
    names: dict[Any, float] = {None: np.nan}
    for word in series.unique().drop_nulls().to_list():
        names[word] = float(crc32(word if isinstance(word, bytes) else word.encode()))
    return np.array([names[word] for word in series.to_list()], dtype=np.float64)


def _numbers_in(series: pl.Series) -> Floats:
    """Text as times where all of it is, else as numbers; NaN where it is none."""
    try:
        times = parsed_times(series.drop_nulls())
    except InputError:  # with and without a zone: names of categories, then
        times = None
    if times is None or not len(times):
        found = series.str.strip_chars().cast(pl.Float64, strict=False)
        return found.fill_null(float("nan")).to_numpy()
    numbers = np.full(len(series), np.nan)
    numbers[series.is_not_null().to_numpy()] = times.to_physical().to_numpy()
    return numbers
