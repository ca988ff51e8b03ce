"""Whether kept columns tell the value: a test on released rows alone, so that nothing redacted can
show in its answer.

A sample of released rows is split into two halves by chain. In one it is learned how to guess a
value from a kept cell, in the other the guesses are counted. Three questions: does the cell tell
the value of its own record, does it tell where one certain value stands, and does it tell the value
of a record some before or after (a previous state, or how long a state has lasted) better than the
cell's own value does, which is released anyway? The same of how a cell differs from the one before
it: that is what running counts, and times at which a state began, tell by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers, Label
from offrecord.models.records import MISSING, Chains, Codes
from offrecord.tables.cells import parsed_times
from offrecord.tables.chains import Arranged

if TYPE_CHECKING:
    import polars as pl

#: Rows of a sample: enough to tell an error rate of 2 % from one of 40 %, few enough to cost
#: nothing.
SAMPLE = 20_000
#: A column that takes away so much of the error of guessing determines the value but for rounding
#: and typing errors.
SURE = 0.95
#: One that takes away so much tells something a person should know of.
SOME = 0.1
#: By chance less often than once in a million columns; with few rows nothing is below it.
CHANCE = 1e-6
_BINS = 64  # at most, of numbers
_BIN = 40  # rows that a bin has for learning, at least
_REACH = 3  # records before and after whose values are foretold
_FOLD = 0.2  # a smaller share of the rows is too little for a half
_GOLDEN = np.uint64(
    0x9E3779B97F4A7C15
)  # multiples of it are spread evenly, in step with no period of the data


class Finding(NamedTuple):
    """What a column tells. code: of the one value it is about, if it is; shift: how many records
    after (or, negative, before).

    right, guessed: how many of the values are foretold with the column and without. gain: the share
    of errors it takes away.
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
        where = "" if abs(self.shift) == 1 else f" {abs(self.shift)}"
        what = "the value" + (
            ""
            if self.shift == 0
            else f" of the record{where} {'after' if self.shift > 0 else 'before'}"
        )
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


@dataclass(frozen=True, eq=False)
class Sample:
    """Released rows of a table, spread evenly. level: one in 2^level was taken, those with the
    lowest marks.

    codes: (n, 2·_REACH + 1) the values of records by how many they come after, the record itself
    first, those before it last, MISSING where one is not released. chain: (n,) which chain it is
    of, counted from 0. cells, numbers: (n, c) the kept cells, as names of categories and, where
    they are numbers or times, as such; NaN where they are empty. changes: (n, c) how they differ
    from those of the record before, NaN where that is not released.
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
    def of(cls, arranged: Arranged, gone: NDArray[np.bool_]) -> Sample | None:
        """A sample of a part of a table, in which some rows are redacted; None without kept
        columns.
        """
        names = tuple(
            name for name in arranged.columns.keep if not arranged.frame[name].dtype.is_nested()
        )
        if not names:
            return None
        chains = arranged.chains
        shown = np.where(gone, np.int8(MISSING), chains.codes)
        rows = np.flatnonzero(shown != MISSING)
        marks = np.arange(1, len(rows) + 1, dtype=np.uint64) * _GOLDEN
        level = _level(marks, max(len(rows) // SAMPLE, 1).bit_length() - 1)
        taken = np.flatnonzero(_low(marks, level))
        rows = rows[taken]
        told = [_told(arranged.frame[name].gather(rows)) for name in names]
        before = [_told(arranged.frame[name].gather(np.maximum(rows - 1, 0))) for name in names]
        codes = _around(shown, chains, rows)
        follows = codes[:, -1] != MISSING
        return cls(
            names,
            level,
            marks[taken],
            codes,
            np.searchsorted(chains.starts, rows, side="right") - 1,
            np.stack([cells for cells, _ in told], axis=1),
            np.stack([numbers for _, numbers in told], axis=1),
            np.stack([_changes(*pair, follows) for pair in zip(told, before, strict=True)], axis=1),
        )

    def __add__(self, other: Sample | None) -> Sample:
        """Rows of both, as few as of one."""
        if other is None:
            return self
        marks = np.concatenate((self.marks, other.marks))
        level = _level(marks, max(self.level, other.level))
        taken = _low(marks, level)
        first = int(self.chain.max(initial=-1)) + 1
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
            max(self._tried(at, test), key=lambda one: one.gain, default=None)
            for at in range(len(self.columns))
        )
        return [one for one in found if one is not None]

    def _test_half(self) -> NDArray[np.bool_]:
        """(n,) the rows that are foretold: every other chain, or what comes later where chains are
        few or of unequal length.
        """
        odd = np.unique(self.chain, return_inverse=True)[1] % 2 == 1
        if _FOLD <= odd.mean() <= 1 - _FOLD:
            return np.asarray(odd)
        return np.arange(len(odd)) >= len(odd) // 2

    def _tried(self, column: int, test: NDArray[np.bool_]) -> Iterator[Finding]:
        """What a column is found to tell."""
        own, k = self.codes[:, 0], int(self.codes.max(initial=0)) + 1
        cells, numbers = self.cells[:, column], self.numbers[:, column]
        every, changes = np.ones(len(own), dtype=bool), self.changes[:, column]
        sorts = [(np.unique(cells, return_inverse=True)[1], every)]  # NaN is a category too
        numeric = bool(np.isfinite(numbers).any())
        if numeric:
            sorts.append((_quantiles(numbers, ~test), every))
        grown = ~np.isnan(changes)
        sorts += [
            (np.unique(changes, return_inverse=True)[1], grown),
            (_quantiles(changes, ~test & grown), grown),
        ]
        for shift in sorted(range(-_REACH, _REACH + 1), key=abs):
            target, known = (
                self.codes[:, shift],
                np.zeros(len(own), dtype=np.int64) if shift == 0 else own.astype(np.int64),
            )
            there = target != MISSING
            tried = list(sorts)
            if numeric and np.any(
                there & ~test
            ):  # one threshold, for where a value stands, or for where it changes
                learn = there & ~test
                aims = np.arange(k)[:, None] == target if shift == 0 else (target != own)[None]
                tried += [
                    ((numbers > cut).astype(np.int64), every)
                    for cut in _cuts(numbers[learn], aims[:, learn])
                ]
            for bins, usable in tried:
                learn, check = there & usable & ~test, there & usable & test
                if learn.any() and check.any():
                    yield from self._judged(
                        column, shift, _Counts.of(bins, known, target, learn, check, k), check
                    )

    def _judged(
        self, column: int, shift: int, counts: _Counts, check: NDArray[np.bool_]
    ) -> Iterator[Finding]:
        """Findings, if any, from counts of learned and foretold rows."""
        total = int(counts.foretold.sum())
        k = counts.learned.shape[2]
        codes: list[int | None] = [None, *(range(k) if shift == 0 and k > 2 else ())]
        for code in codes:
            wrong, base = counts.errors() if code is None else counts.errors_about(code)
            if base == 0 or 1 - wrong / base < SOME:
                continue
            missed = self._missed(shift, code, counts, check)
            size = _independent(missed, self.codes[check, shift], self.chain[check]) / (
                base / total
            )
            if _chance(wrong / total, base / total, size) < CHANCE:
                yield Finding(
                    self.columns[column],
                    code,
                    shift,
                    1 - wrong / total,
                    1 - base / total,
                    1 - wrong / base,
                )

    def _missed(
        self, shift: int, code: int | None, counts: _Counts, check: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """The rows that the best guess without the column gets wrong."""
        target, plain = self.codes[check, shift], counts.foretold.sum(axis=0)
        if code is not None:
            here = target == code
            return np.asarray(here if 2 * np.count_nonzero(here) <= len(here) else ~here)
        guess = plain.argmax(axis=1)
        return np.asarray(target != (guess[self.codes[check, 0]] if shift else guess[0]))


class _Counts(NamedTuple):
    """(bins, known, k) how often a value stood with a bin and what is known without it, for
    learning and for foretelling.
    """

    learned: Integers
    foretold: Integers

    @classmethod
    def of(
        cls,
        bins: Integers,
        known: Integers,
        target: Codes,
        learn: NDArray[np.bool_],
        check: NDArray[np.bool_],
        k: int,
    ) -> _Counts:
        shape = (int(bins.max()) + 1, int(known.max()) + 1, k)
        keys = (bins * shape[1] + known) * k + target
        size = shape[0] * shape[1] * k
        return cls(
            *(np.bincount(keys[half], minlength=size).reshape(shape) for half in (learn, check))
        )

    def errors(self) -> tuple[int, int]:
        """Wrong guesses of the value: by the bin, and at best without it."""
        by_bin = self.learned.argmax(axis=2)
        overall = np.broadcast_to(self.learned.sum(axis=0).argmax(axis=1), by_bin.shape)
        guess = np.where(self.learned.sum(axis=2) > 0, by_bin, overall)
        right = np.take_along_axis(self.foretold, guess[:, :, None], axis=2).sum()
        plain = self.foretold.sum(axis=0)
        return int(self.foretold.sum() - right), int(plain.sum() - plain.max(axis=1).sum())

    def errors_about(self, code: int) -> tuple[int, int]:
        """The same for whether it is one certain value."""
        there, all_of = self.learned[:, :, code], self.learned.sum(axis=2)
        hit, rows = self.foretold[:, :, code], self.foretold.sum(axis=2)
        guess = 2 * there > all_of
        return int(np.where(guess, rows - hit, hit).sum()), int(min(hit.sum(), (rows - hit).sum()))


def _level(marks: NDArray[np.uint64], level: int) -> int:
    """The lowest level, from one on, at which few enough rows are left."""
    while np.count_nonzero(_low(marks, level)) > SAMPLE:
        level += 1
    return level


def _low(marks: NDArray[np.uint64], level: int) -> NDArray[np.bool_]:
    return marks <= np.uint64((2**64 - 1) >> level)


def _around(shown: Codes, chains: Chains, rows: Integers) -> Codes:
    """(n, 2·_REACH + 1) what is shown in rows, after each and before each in its chain: by shift,
    negative ones last.
    """
    chain = np.searchsorted(chains.starts, rows, side="right") - 1
    begin, end = chains.starts[chain], chains.starts[chain + 1]
    columns = []
    for shift in (*range(_REACH + 1), *range(-_REACH, 0)):
        there = rows + shift
        columns.append(
            np.where(
                (there >= begin) & (there < end), shown[np.clip(there, 0, len(shown) - 1)], MISSING
            )
        )
    return np.stack(columns, axis=1).astype(np.int8)


def _changes(
    told: tuple[Floats, Floats], before: tuple[Floats, Floats], follows: NDArray[np.bool_]
) -> Floats:
    """(n,) how much a number grows from the record before, or whether another cell stays; NaN where
    that is not released.
    """
    (cells, numbers), (old_cells, old_numbers) = told, before
    with np.errstate(invalid="ignore"):
        grown = np.where(
            np.isfinite(numbers) & np.isfinite(old_numbers),
            numbers - old_numbers,
            cells == old_cells,
        )
    return np.where(follows, grown, np.nan)


def _told(series: pl.Series) -> tuple[Floats, Floats]:
    """Cells as names of categories, and as numbers; NaN where they are empty, or no numbers."""
    import polars as pl

    kind = series.dtype
    if kind.is_numeric() or kind.is_temporal() or kind == pl.Boolean:
        plain = series.to_physical() if kind.is_temporal() else series
        numbers = plain.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return numbers, numbers
    if kind not in (pl.String, pl.Binary):  # of nothing but nulls
        empty = np.full(len(series), np.nan)
        return empty, empty
    words: dict[Any, float] = {None: np.nan}
    for word in series.unique().drop_nulls().to_list():
        words[word] = float(crc32(word if isinstance(word, bytes) else word.encode()))
    cells = np.array([words[word] for word in series.to_list()], dtype=np.float64)
    numbers = np.full(len(series), np.nan)
    if kind == pl.String:
        try:
            times = parsed_times(series.drop_nulls())
        except InputError:  # with and without a zone: names of categories, then
            times = None
        found = series.str.strip_chars().cast(pl.Float64, strict=False)
        if times is not None and len(times):
            numbers[series.is_not_null().to_numpy()] = times.to_physical().to_numpy()
        else:
            numbers = found.fill_null(float("nan")).to_numpy()
    return cells, numbers


def _quantiles(numbers: Floats, learn: NDArray[np.bool_]) -> Integers:
    """Bins of numbers with about as many rows for learning each, equal numbers together; NaN has
    one of its own.
    """
    known = np.sort(numbers[learn & ~np.isnan(numbers)])
    count = min(_BINS, len(known) // _BIN)
    edges = (
        np.unique(known[np.arange(1, count) * len(known) // max(count, 1)])
        if count > 1
        else known[:0]
    )
    bins = np.searchsorted(edges, numbers, side="right")
    return np.where(np.isnan(numbers), len(edges) + 1, bins)


def _cuts(numbers: Floats, aims: NDArray[np.bool_]) -> Iterator[float]:
    """For each aim, the threshold that best parts the rows where it holds from the others."""
    there = ~np.isnan(numbers)
    rank = np.argsort(numbers[there], kind="stable")
    ordered = numbers[there][rank]
    ends = np.flatnonzero(np.diff(ordered) > 0)
    if not len(ends):
        return
    for aim in aims:
        above = np.cumsum(aim[there][rank])
        low = above[ends]  # where it holds, up to each cut
        high = above[-1] - low
        wrong = np.minimum(low, ends + 1 - low) + np.minimum(high, len(ordered) - ends - 1 - high)
        cut = ends[int(np.argmin(wrong))]
        yield float(ordered[cut] / 2 + ordered[cut + 1] / 2)


def _independent(missed: NDArray[np.bool_], values: Codes, chain: Integers) -> float:
    """How many of the missed rows say something of their own: those of a run say the same, and long
    runs weigh more.
    """
    run = np.cumsum((np.diff(values, prepend=-1) != 0) | (np.diff(chain, prepend=-1) != 0))
    lengths = np.bincount(run[missed]).astype(np.float64)
    return float(lengths.sum() ** 2 / (lengths**2).sum())


def _chance(wrong: float, base: float, size: float) -> float:
    """How likely so few errors are if each guess is wrong with the chance `base`."""
    from scipy.special import bdtr

    trials = int(size)
    return float(bdtr(np.ceil(wrong * trials), trials, base))
