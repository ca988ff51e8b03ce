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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers, Label, Mask
from offrecord.models.records import MISSING, Chains
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
    """Released rows of a table, spread evenly: those with the lowest marks.

    rows: the mark and the chain of each, the values at each of _SHIFTS from it, MISSING where one
    is not released, and of each kept column, by its number, the cell as a category and as a number,
    and how it changed since the record before; NaN where it is no number, or that is not released.
    """

    columns: tuple[str, ...]
    rows: pl.DataFrame

    @classmethod
    def of(cls, arranged: Arranged, redacted: Mask) -> Sample | None:
        """A sample of a part of a table; redacted: (n,) its rows. None without kept columns."""
        frame, chains = arranged.frame, arranged.chains
        names = tuple(name for name in arranged.columns.keep if not frame[name].dtype.is_nested())
        if not names:
            return None
        around = _around(chains, redacted)
        rows = np.flatnonzero(around[0] != MISSING)
        marks = np.arange(1, len(rows) + 1, dtype=np.uint64) * _GOLDEN
        taken = _lowest(marks)
        rows = rows[taken]
        read: dict[str, NDArray[Any]] = {"mark": marks[taken]}
        read["chain"] = np.searchsorted(chains.starts, rows, side="right")
        read |= {f"value {shift}": codes[rows] for shift, codes in around.items()}
        follows = around[-1][rows] != MISSING
        for number, name in enumerate(names):
            found = _column(frame[name], rows, follows)
            read |= {f"{what} {number}": one for what, one in found.items()}
        return cls(names, pl.DataFrame(read))

    def __add__(self, other: Sample) -> Sample:
        """Rows of both, as few as of one."""
        # chains of both are different ones, counted from 1
        more = other.rows.with_columns(pl.col("chain") + (self.rows["chain"].max() or 0))
        rows = pl.concat([self.rows, more])
        return Sample(self.columns, rows[_lowest(rows["mark"].to_numpy())])

    @property
    def leaks(self) -> list[Leak]:
        """For each column that leaks something, the most of it."""
        if self.rows.height < 2:
            return []
        # Learned in one half, counted in the other: a column of noise foretells nothing there.
        test = _test_half(self._read("chain"))
        found = (
            max(self._found(number, test), key=lambda one: one.gain, default=None)
            for number in range(len(self.columns))
        )
        return [one for one in found if one is not None]

    def _read(self, what: str) -> NDArray[Any]:
        return self.rows[what].to_numpy()

    def _found(self, number: int, test: Mask) -> Iterator[Leak]:
        """What a column leaks, of the record itself first."""
        chain, own = self._read("chain"), self._read("value 0")
        every_bins = list(self._bins(number, ~test))
        for shift in _SHIFTS:
            known = own if shift else np.zeros_like(own)
            for code, target in self._targets(shift):
                for bins in every_bins:
                    found = _foretold(bins, known, target, test, chain)
                    if found is not None:
                        yield Leak(self.columns[number], code, shift, *found)

    def _targets(self, shift: int) -> Iterator[tuple[int | None, Integers]]:
        """(n,) what is foretold: values, and where each of them stands."""
        target = self._read(f"value {shift}")
        yield None, target
        k = int(target.max()) + 1
        if shift == 0 and k > 2:  # with two values, where one stands is what the value is
            for code in range(k):
                yield code, (target == code).astype(np.int8)

    def _bins(self, number: int, learn: Mask) -> Iterator[Integers]:
        """(n,) a column's cells in several bins; -1 for a row that has none."""
        numbers, changes = self._read(f"number {number}"), self._read(f"change {number}")
        yield _categories(self._read(f"cell {number}"))  # an empty cell is a category too
        if np.isfinite(numbers).any():
            yield from (_quantiles(numbers, learn, rows) for rows in _BINS)
        follows = ~np.isnan(changes)
        for bins in (_categories(changes), *(_quantiles(changes, learn, rows) for rows in _BINS)):
            yield np.where(follows, bins, -1)


def _around(chains: Chains, redacted: Mask) -> dict[int, Integers]:
    """(n,) for each shift, the released values so many records further; MISSING for none."""
    shown = np.where(redacted, np.int8(MISSING), chains.codes)
    around = {shift: np.roll(shown, -shift) for shift in _SHIFTS}
    # beyond the ends of a chain there is nothing
    around[1][chains.starts[1:] - 1] = around[-1][chains.starts[:-1]] = MISSING
    return around


def _column(cells: pl.Series, rows: Integers, follows: Mask) -> dict[str, NDArray[Any]]:
    """(r,) a kept column at some rows, as a sample has it."""
    names, numbers = _read_cells(cells.gather(rows))
    changes = _changes(names, numbers, *_read_cells(cells.gather(rows - 1)))
    return {"cell": names, "number": numbers, "change": np.where(follows, changes, np.nan)}


def _lowest(marks: NDArray[np.uint64]) -> Integers:
    """The rows of a sample: the lowest marks of a table are among those of its parts."""
    if len(marks) <= SAMPLE:
        return np.arange(len(marks))
    return np.sort(np.argpartition(marks, SAMPLE)[:SAMPLE])


def _test_half(chain: Integers) -> Mask:
    """(n,) the rows that are foretold."""
    # of every other chain; what comes later, where chains are few or of unequal length
    odd = _categories(chain) % 2 == 1
    if _FOLD <= odd.mean() <= 1 - _FOLD:
        return np.asarray(odd)
    return np.arange(len(odd)) >= len(odd) // 2


# ---- guesses


def _foretold(
    bins: Integers, known: Integers, target: Integers, test: Mask, chain: Integers
) -> tuple[float, float, float] | None:
    """Shares of values foretold with bins and without, and of errors less; None by chance."""
    there = (bins >= 0) & (target != MISSING)
    learn, check = there & ~test, there & test
    if not learn.any() or not check.any():
        return None
    shape = (int(bins.max()) + 1, int(known.max()) + 1, int(target.max()) + 1)
    learned = _counted(shape, bins[learn], known[learn], target[learn])
    bins, known, target = bins[check], known[check], target[check]
    without = _counted(shape[1:], known, target).argmax(axis=1)[known]
    missed, wrong = without != target, _guesses(learned)[bins, known] != target
    return _gained(missed, wrong, target, chain[check])


def _guesses(learned: Integers) -> Integers:
    """(b, s) the value to guess by bin and by what else is known, from counts of values."""
    # a bin that was not learned from is guessed as if there were none
    every = learned.sum(axis=0).argmax(axis=1)
    return np.asarray(np.where(learned.any(axis=2), learned.argmax(axis=2), every))


def _gained(
    missed: Mask, wrong: Mask, target: Integers, chain: Integers
) -> tuple[float, float, float] | None:
    """As `_foretold`. missed, wrong: (n,) where guesses without and with bins fail."""
    without, errors = float(missed.mean()), float(wrong.mean())
    if without == 0 or 1 - errors / without < SOME:
        return None
    # Of guesses without the bins so large a share is missed: so many rows count for a miss.
    size = _independent_rows(missed, target, chain) / without
    if _chance_of(errors, without, size) >= CHANCE:
        return None
    return 1 - errors, 1 - without, 1 - errors / without


def _counted(shape: tuple[int, ...], *digits: Integers) -> Integers:
    keys = np.ravel_multi_index(digits, shape)
    return np.bincount(keys, minlength=int(np.prod(shape))).reshape(shape)


def _independent_rows(missed: Mask, values: Integers, chain: Integers) -> float:
    """How many of the missed rows say something of their own."""
    # Those of a run of equal values say the same, and long runs weigh more.
    run = np.cumsum((np.diff(values, prepend=-1) != 0) | (np.diff(chain, prepend=-1) != 0))
    lengths = np.bincount(run[missed]).astype(np.float64)
    return float(lengths.sum() ** 2 / (lengths**2).sum())


def _chance_of(wrong: float, base: float, size: float) -> float:
    """How likely so small a share of errors is if each guess is wrong with the chance `base`."""
    from scipy.special import bdtr

    trials = int(size)
    return float(bdtr(np.ceil(wrong * trials), trials, base))


def _categories(cells: NDArray[np.generic]) -> Integers:
    """A bin for each different cell; all NaN are one."""
    return np.asarray(np.unique(cells, return_inverse=True)[1])


def _quantiles(numbers: Floats, learn: Mask, rows: int) -> Integers:
    """Bins with so many rows for learning or more, equal numbers together; NaN has its own."""
    known = np.sort(numbers[learn & ~np.isnan(numbers)])
    count = max(len(known) // rows, 1)
    edges = np.unique(known[np.arange(1, count) * len(known) // count])
    bins = np.searchsorted(edges, numbers, side="right")
    return np.where(np.isnan(numbers), len(edges) + 1, bins)


# ---- cells as numbers


def _read_cells(series: pl.Series) -> tuple[NDArray[np.uint64], Floats]:
    """Cells as names of categories, and as numbers; NaN where they are none."""
    numbers = _numbers_in(series) if series.dtype == pl.String else series
    if numbers.dtype.is_temporal():
        numbers = numbers.to_physical()
    if not (numbers.dtype.is_numeric() or numbers.dtype == pl.Boolean):
        numbers = pl.repeat(None, len(series), eager=True)
    return series.hash().to_numpy(), numbers.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _numbers_in(texts: pl.Series) -> pl.Series:
    """Text as times where all of it is, else as numbers; null where it is none."""
    known = texts.drop_nulls().unique()
    try:
        times = parsed_times(known)
    except InputError:  # with and without a zone: names of categories, then
        times = None
    if times is None or not len(times):
        return texts.str.strip_chars().cast(pl.Float64, strict=False)
    return texts.replace_strict(known, times, default=None)


def _changes(
    cells: NDArray[np.uint64], numbers: Floats, old_cells: NDArray[np.uint64], old_numbers: Floats
) -> Floats:
    """(n,) how much a number grows from the record before, or whether another cell stays."""
    grown = numbers - old_numbers
    return np.where(np.isfinite(grown), grown, cells == old_cells)
