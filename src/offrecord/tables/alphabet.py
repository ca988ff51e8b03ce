"""Alphabets: which values a column has, and which of them each cell is.

Values are those that occur, or that a person declares; numbers may be cut into bins, and rare
values be one. Cutting and merging look at one cell at a time, so what a record is depends on no
other. Which values are rare is learned from the reference, as the model is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.models.base import Label
from offrecord.models.records import MISSING, UNKNOWN, Codes
from offrecord.tables.cells import type_name
from offrecord.tables.values import (
    MAX_VALUES,
    coded,
    labels_of,
    learned_cells,
    listed_labels,
    released_type,
    value_cells,
)
from offrecord.text import many

OTHERS = "other"  #: what rare values become
RARE = 100  #: a value is rare if fewer than one in so many records have it
_NAMED = 5  # values that an error names


@dataclass(frozen=True)
class Alphabet:
    """The values of a column."""

    labels: tuple[Label, ...]  # in the order of their codes
    bins: tuple[float, ...] | None = None  # where numbers are cut: the least numbers of bins
    others: str | None = None  # the label of every cell that is no other label

    @classmethod
    def of(
        cls,
        labels: tuple[Label, ...],
        bins: tuple[float, ...] | None = None,
        others: str | None = None,
    ) -> Alphabet:
        """That of a model; InputError if its labels are not what it says of them."""
        if bins is not None and (others is not None or bin_labels(_checked_bins(bins)) != labels):
            raise InputError("the model's values are not the bins that it was learned with")
        if others is not None and (
            others not in labels or not all(isinstance(label, str) for label in labels)
        ):
            raise InputError(
                f"the model merges rare values as {others!r}, which is none of its values"
            )
        return cls(labels, bins, others)

    def coded(self, series: pl.Series) -> Codes:
        """(n,) which label each cell of a value column is; UNKNOWN for a value that is none."""
        if self.bins is not None:
            return _cut(series, self.bins)
        if self.others is None:
            return coded(series, self.labels)
        codes = coded(_plain_text(value_cells(series)), self.labels)
        return np.where(codes == UNKNOWN, np.int8(self.labels.index(self.others)), codes)

    def released_type(self, kind: pl.DataType) -> pl.DataType:
        """The type of the released column, from the labels alone but for the input's width."""
        return released_type(kind, self.labels)


@dataclass(frozen=True)
class Wanted:
    """What a person wants of an alphabet that is learned; at most one of these."""

    values: tuple[Label, ...] | None = None  # all that there are, whether they occur or not
    bins: tuple[float, ...] | None = None  # where numbers are cut
    merge: str | int | None = None  # "rare", or how many values are to be left

    @classmethod
    def of(
        cls,
        values: Sequence[Label] | None,
        bins: Sequence[float] | None,
        merge: str | int | None,
    ) -> Wanted:
        """From what a person gives; InputError for what is wrong or does not go together."""
        given = {"--values": values, "--bins": bins, "--merge": merge}
        named = [name for name, one in given.items() if one is not None]
        if len(named) > 1:
            raise InputError(f"give one of {' and '.join(named)}: each says what the values are")
        return cls(
            None if values is None else listed_labels(values),
            None if bins is None else _checked_bins(bins),
            None if merge is None else _checked_merge(merge),
        )

    def alphabet(self, series: pl.Series, where: str = "") -> tuple[Alphabet, int]:
        """The alphabet of a reference's value column, and how many values were merged.

        InputError if no model takes it. where: for messages.
        """
        if self.values is not None:
            _check_declared(series, self.values, where)
            return Alphabet(self.values), 0
        if self.bins is not None:
            _check_bins_used(series, self.bins, where)
            return Alphabet(bin_labels(self.bins), self.bins), 0
        if self.merge is not None:
            kept, merged = _merged(series, self.merge, where)
            if merged:
                return Alphabet(kept, others=OTHERS), merged
        return Alphabet(labels_of(series, where)), 0


# ---- values that are declared


def _check_declared(series: pl.Series, labels: Sequence[Label], where: str) -> None:
    codes = coded(series, labels)
    cells = value_cells(series).filter(pl.Series(codes == UNKNOWN)).unique().sort().to_list()
    if cells:
        shown = ", ".join(map(repr, cells[:_NAMED]))
        more = f" and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
        raise InputError(
            f"value column {series.name!r} holds {shown}{more}{where}, which --values does not list"
        )
    if not np.any(codes >= 0):
        raise InputError(f"value column {series.name!r} has no values{where}")


# ---- numbers in bins


def bin_labels(bins: Sequence[float]) -> tuple[str, ...]:
    """What bins are called: a cut belongs to the bin above it."""
    # no name begins with a sign, which spreadsheets would run
    cuts = [_number_text(cut) for cut in bins]
    between = (f"from {low} to under {high}" for low, high in pairwise(cuts))
    return (f"under {cuts[0]}", *between, f"from {cuts[-1]}")


def _number_text(number: float) -> str:
    plain = format(Decimal(repr(number)), "f")
    return re.sub(r"\.?0+$", "", plain) if "." in plain else plain


def _checked_bins(bins: Any) -> tuple[float, ...]:
    listed = list(bins) if isinstance(bins, Sequence) and not isinstance(bins, str) else [bins]
    for cut in listed:
        if not _is_cut(cut):
            raise InputError(f"--bins must be numbers by comma, such as 0,1,3, got {cut!r}")
    if not 1 <= len(listed) < MAX_VALUES:
        raise InputError(f"--bins must be 1 to {MAX_VALUES - 1} numbers, got {len(listed)}")
    cuts = tuple(float(cut) + 0.0 for cut in listed)  # −0 is 0
    if any(low >= high for low, high in pairwise(cuts)):
        raise InputError(f"--bins must rise, got {','.join(map(_number_text, cuts))}")
    return cuts


def _is_cut(cut: Any) -> bool:
    number = isinstance(cut, (int, float)) and not isinstance(cut, bool)
    return number and math.isfinite(cut) and abs(cut) < 2**53


def _cut(series: pl.Series, bins: Sequence[float]) -> Codes:
    """(n,) the bin of each cell; UNKNOWN for what is no number."""
    cells = value_cells(series)
    if cells.dtype == pl.Boolean:
        raise InputError(
            f"--bins cuts numbers, but value column {series.name!r} holds {type_name(cells.dtype)}"
        )
    numbers = cells.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    codes = np.searchsorted(np.array(bins), numbers, side="right").astype(np.int8)
    codes[~np.isfinite(numbers)] = UNKNOWN
    codes[cells.is_null().to_numpy()] = MISSING
    return codes


def _check_bins_used(series: pl.Series, bins: Sequence[float], where: str) -> None:
    """InputError for cells of the reference that are no numbers, and for bins without any."""
    codes = _cut(learned_cells(series), bins)
    odd = int((codes == UNKNOWN).sum())
    if odd:
        raise InputError(
            f"--bins cuts numbers, but value column {series.name!r} holds something else in"
            f" {many(odd, 'cell')}{where}"
        )
    counts = np.bincount(codes[codes >= 0], minlength=len(bins) + 1)
    for label, count in zip(bin_labels(bins), counts.tolist(), strict=True):
        if not count:
            raise InputError(
                f"--bins: no record has a value {label}{where}, so nothing can be learned of it;"
                " leave a cut out"
            )


# ---- rare values


def _checked_merge(merge: Any) -> str | int:
    """ "rare", or how many values are to be left; InputError for anything else."""
    if merge == "rare":
        return "rare"
    count = int(merge) if re.fullmatch("[0-9]{1,3}", str(merge)) else 0
    if not 2 <= count <= MAX_VALUES:
        raise InputError(f"--merge must be rare, or a count from 2 to {MAX_VALUES}, got {merge!r}")
    return count


def _merged(series: pl.Series, how: str | int, where: str) -> tuple[tuple[str, ...], int]:
    """The labels that are left, OTHERS among them, and how many values became one."""
    values, common = _by_frequency(_plain_text(learned_cells(series)).drop_nulls())
    kept = values[: min(common, MAX_VALUES - 1) if how == "rare" else int(how) - 1]
    merged = len(values) - len(kept)
    if merged < 2:  # one rare value stays what it is
        return (), 0
    if OTHERS in values:
        raise InputError(
            f"value column {series.name!r} has a value {OTHERS!r}{where}, which is what --merge"
            " calls the values that become one; rename it"
        )
    if not kept:
        raise InputError(
            f"value column {series.name!r} has {len(values):,} values{where}, each in fewer than"
            f" one of {RARE} records: nothing would be left beside {OTHERS!r}; cut numbers with"
            " --bins"
        )
    return tuple(sorted([*kept, OTHERS])), merged


def _by_frequency(text: pl.Series) -> tuple[list[str], int]:
    """The values that occur, the most common first, and how many of them are not rare."""
    counts = text.value_counts(name="count").sort(["count", text.name], descending=[True, False])
    common = int((counts["count"] * RARE >= len(text)).sum())
    return counts[text.name].to_list(), common


def _plain_text(cells: pl.Series) -> pl.Series:
    """Cells as text, numbers in one form: 1.0 is 1, and 1.50 is 1.5, cell by cell."""
    text = cells if cells.dtype == pl.String else cells.cast(pl.String)
    return (
        text.str.replace(r"^(-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9])0+$", "$1")
        .str.replace(r"^(-?(?:0|[1-9][0-9]*))\.0+$", "$1")
        .replace({"-0": "0"})
    )
