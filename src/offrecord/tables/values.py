"""Value columns: which label each cell is, which labels there are, and as what they leave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.models.base import Label
from offrecord.models.records import MISSING, UNKNOWN, Codes
from offrecord.tables.cells import type_name, whole_numbers

MAX_VALUES = 64  #: that a value column may have
_PIECE = 1 << 16  # numbers that are looked up together
#: What programs write for a cell that is missing.
_MARKERS = ("na", "n/a", "nan", "null", "none", "nil", "missing", "-", "?", ".")
_DECIMAL = r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,12})?"  # a number in its plain form
_FAMILIES = {
    "text": "text",
    "truth": "true and false",
    "whole": "whole numbers",
    "number": "numbers",
}


def value_cells(series: pl.Series) -> pl.Series:
    """The cells of a value column: numbers, truth values, or text without blanks around it."""
    kind = series.dtype
    other = kind in (pl.Binary, pl.Duration, pl.Object, pl.Null, pl.Unknown)
    if kind.is_nested() or other or isinstance(kind, pl.BaseExtension):
        raise InputError(
            f"value column {series.name!r} must hold text, numbers or truth values, got"
            f" {type_name(kind)}"
        )
    if not (kind.is_numeric() or kind == pl.Boolean) or kind.is_decimal():
        series = series.cast(pl.String)
    return series.str.strip_chars() if series.dtype == pl.String else series


# ---- codes


def coded(series: pl.Series, labels: Sequence[Label]) -> Codes:
    """(n,) which label each cell of a value column is.

    A value that is no label is UNKNOWN, and for whoever decides to judge: a record that is redacted
    whatever it is may be anything, and an error would leak something about it.
    """
    cells = value_cells(series)
    family = _checked_family(labels)
    known = cells
    if cells.dtype in (pl.Int128, pl.UInt128):
        known = cells.cast(pl.Int64, strict=False)
    elif cells.dtype == pl.String and family != "text":
        known = _parsed_values(cells, family)
    _check_family(known, family)
    codes = _codes(known, labels)
    # a cell that was there, but is none of the labels
    if int((codes == MISSING).sum()) > cells.null_count():
        there = cells.is_not_null().to_numpy()
        codes = np.where((codes == MISSING) & there, np.int8(UNKNOWN), codes)
    return codes


def _checked_family(labels: Sequence[Label]) -> str:
    """What all labels are; InputError for labels that a table cannot hold."""
    if not 2 <= len(labels) <= MAX_VALUES:
        raise InputError(f"tables take models with 2 to {MAX_VALUES} values, got {len(labels)}")
    if any(label == "" for label in labels):
        raise InputError(
            "the empty text cannot be a value: it is how a redaction is written; rename it"
        )
    if any(isinstance(label, str) and label != label.strip() for label in labels):
        raise InputError(
            "the model's values must not have blanks around them: cells are read without"
        )
    family = label_family(labels)
    if family == "whole" and not all(-(2**63) <= int(label) < 2**63 for label in labels):
        raise InputError("the model's values must be whole numbers of at most 64 bits")
    return family


def _check_family(series: pl.Series, family: str) -> None:
    """InputError unless cells are text, or truth values, just where labels are."""
    is_text, is_truth = series.dtype == pl.String, series.dtype == pl.Boolean
    if (family == "text") != is_text or (family == "truth") != is_truth:
        raise InputError(
            f"value column {series.name!r} holds {type_name(series.dtype)}, but the model's values"
            f" are {_FAMILIES[family]}"
        )


def label_family(labels: Sequence[Label]) -> str:
    """What all labels are: text, truth, whole or number."""
    if all(isinstance(label, str) for label in labels):
        return "text"
    if all(isinstance(label, bool) for label in labels):
        return "truth"
    if any(isinstance(label, (str, bool)) for label in labels):
        raise InputError(
            "tables need a model whose values are all text, all numbers, or true and false"
        )
    return "whole" if all(isinstance(label, int) for label in labels) else "number"


def _parsed_values(series: pl.Series, family: str) -> pl.Series:
    """Text cells as the truth values or numbers that labels are; null for a cell that is none."""
    if family == "truth":
        known = series.str.to_lowercase().replace({"1": "true", "0": "false"})
        return known.replace_strict(
            {"true": True, "false": False}, default=None, return_dtype=pl.Boolean
        )
    floats = series.cast(pl.Float64, strict=False)
    if family == "number":
        return floats
    # 1.0 is 1 too, but large numbers must not go by way of floats
    exact = (floats == floats.round()) & (floats.abs() < 2**53)
    whole = pl.select(pl.when(exact).then(floats)).to_series().cast(pl.Int64)
    return series.cast(pl.Int64, strict=False).fill_null(whole)


def _codes(series: pl.Series, labels: Sequence[Label]) -> Codes:
    """(n,) which label each cell is; MISSING for all others."""
    if series.dtype == pl.String:
        texts = series.cast(pl.Enum([str(label) for label in labels]), strict=False)
        return texts.to_physical().cast(pl.Int8).fill_null(MISSING).to_numpy()
    if series.dtype == pl.Boolean:
        truths = series.cast(pl.UInt8)
        return _looked_up(truths, {int(label): code for code, label in enumerate(labels)})
    if series.dtype.is_integer():
        whole = {
            int(label): code
            for code, label in enumerate(labels)
            if isinstance(label, int) or float(label).is_integer()
        }
        return _looked_up(series, whole)
    numbers = np.array([float(label) for label in labels])
    values = series.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    rank = np.argsort(numbers)
    at = np.clip(np.searchsorted(numbers[rank], values), 0, len(rank) - 1)
    return np.where(numbers[rank][at] == values, rank[at], MISSING).astype(np.int8)


def _looked_up(series: pl.Series, codes: dict[int, int]) -> Codes:
    """Whole numbers through a table of codes."""
    found = np.full(len(series), MISSING, dtype=np.int8)
    values = (series.fill_null(0) if series.null_count() else series).to_numpy()
    low, high = min(codes, default=0), max(codes, default=0)
    if values.dtype.itemsize == 1:
        every = np.arange(256, dtype=np.uint8).view(values.dtype).tolist()
        table = np.array([codes.get(value, MISSING) for value in every], dtype=np.int8)
        for begin in range(0, len(values), _PIECE):  # places are wider, see below
            piece = values[begin : begin + _PIECE].view(np.uint8)
            np.take(table, piece, out=found[begin : begin + _PIECE], mode="clip")
    elif high - low < 1 << 20 and high < 2**62 and low > -(2**62):
        table = np.full(high - low + 2, MISSING, dtype=np.int8)
        for value, code in codes.items():
            table[value - low] = code
        # piece by piece: wider numbers in between stay in the cache
        for begin in range(0, len(values), _PIECE):
            place = values[begin : begin + _PIECE].astype(np.int64) - low
            # the last entry is for what lies outside
            place[(place < 0) | (place > high - low)] = high - low + 1
            np.take(table, place, out=found[begin : begin + _PIECE], mode="clip")
        if values.dtype == np.uint64:
            found[values > np.uint64(2**63 - 1)] = MISSING
    else:
        for value, code in codes.items():
            found[values == value] = code
    if series.null_count():
        found[series.is_null().to_numpy()] = MISSING
    return found


# ---- labels


def labels_of(series: pl.Series, where: str = "") -> tuple[Label, ...]:
    """The values that occur in a value column, sorted; InputError if no model takes them.

    where: for messages.
    """
    series = value_cells(series)
    values = series.drop_nulls().unique()
    check_finite(series)
    if values.dtype == pl.String:
        check_markers(series, values)
    if not 2 <= len(values) <= MAX_VALUES:
        raise InputError(
            f"value column {series.name!r} must have 2 to {MAX_VALUES} distinct values{where}, got"
            f" {len(values)}{_remedy(values)}"
        )
    return _as_labels(values)


def listed_labels(values: Sequence[Label] | Label) -> tuple[Label, ...]:
    """Values that a person lists as labels, sorted as those that occur in a column are: the same
    values make the same model. InputError for what no column can hold.
    """
    listed: list[Label] = [values] if isinstance(values, (str, int, float)) else list(values)
    if not all(isinstance(value, (str, int, float)) for value in listed):
        raise InputError("--values must be text, numbers, or true and false")
    listed = [value.strip() if isinstance(value, str) else value for value in listed]
    if not 2 <= len(listed) <= MAX_VALUES:
        raise InputError(f"--values must list 2 to {MAX_VALUES} values, got {len(listed)}")
    label_family(listed)
    if any(isinstance(value, float) and not np.isfinite(value) for value in listed):
        raise InputError("--values must not list NaN or infinity, which no model takes")
    try:
        labels = _as_labels(pl.Series("--values", listed, strict=True).unique())
    except (TypeError, OverflowError, pl.exceptions.PolarsError):  # whole numbers and others
        labels = _as_labels(pl.Series("--values", [float(value) for value in listed]).unique())
    _checked_family(labels)
    if len(labels) < len(listed):
        raise InputError("--values lists a value twice")
    return labels


def _as_labels(values: pl.Series) -> tuple[Label, ...]:
    """Distinct values as labels, sorted: of text that is all numbers, or all true and false, these;
    whole numbers as such, however they were written.
    """
    if values.dtype == pl.String:
        values = typed_text(values)
    if values.dtype.is_float():
        whole = bool((values == values.round()).all()) and bool((values.abs() < 2**53).all())
        values = values.cast(pl.Int64) if whole else values
    return tuple(values.sort().to_list())


def _remedy(values: pl.Series) -> str:
    """What to do about too many values."""
    if len(values) <= MAX_VALUES:
        return ""
    numbers = values.cast(pl.Float64, strict=False) if values.dtype == pl.String else values
    are_numbers = not numbers.null_count()
    cut = "cut numbers with --bins, such as --bins 0,1,3, or " if are_numbers else ""
    return f"; {cut}make one of the rare ones with --merge rare"


def check_finite(series: pl.Series) -> None:
    """InputError for numbers that no model takes."""
    if series.dtype.is_float() and not series.drop_nulls().is_finite().all():
        raise InputError(
            f"value column {series.name!r} holds NaN or infinity, which no model takes"
        )


def typed_text(values: pl.Series) -> pl.Series:
    """Text that is all plain numbers, or all true and false, as these: as in a typed file."""
    numbers = whole_numbers(values)
    if numbers.dtype != pl.String:
        return numbers
    if values.str.contains(f"^{_DECIMAL}$").all():
        return values.cast(pl.Float64).unique()
    lower = values.str.to_lowercase()
    if lower.is_in(["true", "false"]).all():
        return (lower == "true").unique()
    return values


def check_markers(series: pl.Series, values: pl.Series) -> None:
    """InputError where all cells are numbers or truth values but for some that say "missing"."""
    marks = values.filter(values.str.to_lowercase().is_in(_MARKERS))
    rest = values.filter(~values.is_in(marks.implode()))
    if not len(marks) or not len(rest):
        return
    numbers = rest.cast(pl.Float64, strict=False).is_finite().fill_null(False).all()
    if numbers or rest.str.to_lowercase().is_in(["true", "false"]).all():
        others = "numbers" if numbers else "true and false"
        raise InputError(
            f"value column {series.name!r} holds {others}, but in"
            f" {series.is_in(marks.implode()).sum()} cells {', '.join(marks.sort())}: empty them, a"
            " missing value is an empty cell"
        )


# ---- released


def released_type(kind: pl.DataType, labels: Sequence[Label]) -> pl.DataType:
    """The type of the released column, from the labels alone but for the input's width."""
    family = label_family(labels)
    if family == "text":
        return pl.String()
    if family == "truth":
        return pl.Boolean()
    if family == "number":
        return kind if kind.is_float() else pl.Float64()
    if not kind.is_integer() or kind in (pl.Int128, pl.UInt128):
        return pl.Int64()
    width = np.iinfo(str(kind).lower())
    return kind if all(width.min <= int(label) <= width.max for label in labels) else pl.Int64()
