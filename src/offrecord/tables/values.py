"""Value columns: which label each cell is, which labels there are, and as what they leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Label
from offrecord.models.records import MISSING, UNKNOWN, Codes
from offrecord.tables.cells import type_name, whole_numbers

MAX_VALUES = 64  #: that a value column may have
_PIECE = 1 << 16  # numbers that are looked up together
_TABLE = 1 << 20  # numbers that a table of codes may span
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


def learned_cells(series: pl.Series) -> pl.Series:
    """The cells of a value column whose values a model is to take.

    InputError for numbers that none takes, and where all cells are numbers or truth values but for
    some that say "missing".
    """
    cells = value_cells(series)
    if cells.dtype.is_float() and not cells.drop_nulls().is_finite().all():
        raise InputError(
            f"value column {series.name!r} holds NaN or infinity, which no model takes"
        )
    if cells.dtype == pl.String:
        _check_markers(cells)
    return cells


def _check_markers(cells: pl.Series) -> None:
    values = cells.drop_nulls().unique()
    is_mark = values.str.to_lowercase().is_in(_MARKERS)
    marks, rest = values.filter(is_mark), values.filter(~is_mark)
    others = _not_text(rest)
    if len(marks) and len(rest) and others:
        raise InputError(
            f"value column {cells.name!r} holds {others}, but in"
            f" {cells.is_in(marks.implode()).sum()} cells {', '.join(marks.sort())}: empty them, a"
            " missing value is an empty cell"
        )


def _not_text(values: pl.Series) -> str | None:
    """What texts are, if they are not just text."""
    if values.cast(pl.Float64, strict=False).is_finite().fill_null(False).all():
        return "numbers"
    return "true and false" if _are_truths(values) else None


def _are_truths(values: pl.Series) -> bool:
    return values.str.to_lowercase().is_in(["true", "false"]).all()


# ---- codes


def coded(series: pl.Series, labels: Sequence[Label]) -> Codes:
    """(n,) which label each cell of a value column is; UNKNOWN for a value that is none."""
    # unknown values are for whoever decides to judge: a record that is redacted whatever it is may
    # be anything, and an error would leak something about it
    cells = value_cells(series)
    family = _checked_family(labels)
    known = cells
    if cells.dtype in (pl.UInt64, pl.Int128, pl.UInt128):
        known = cells.cast(pl.Int64, strict=False)
    elif cells.dtype == pl.String and family != "text":
        known = _parsed_values(cells, family)
    is_text, is_truth = known.dtype == pl.String, known.dtype == pl.Boolean
    if (family == "text") != is_text or (family == "truth") != is_truth:
        raise InputError(
            f"value column {series.name!r} holds {type_name(known.dtype)}, but the model's values"
            f" are {_FAMILIES[family]}"
        )
    codes = _text_codes(known, labels) if is_text else _number_codes(known, labels)
    for nulls, code in ((known, UNKNOWN), (cells, MISSING)):
        if nulls.null_count():
            codes = np.where(nulls.is_null().to_numpy(), np.int8(code), codes)
    return codes


def _checked_family(labels: Sequence[Label]) -> str:
    if not 2 <= len(labels) <= MAX_VALUES:
        raise InputError(f"tables take models with 2 to {MAX_VALUES} values, got {len(labels)}")
    if "" in labels:
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


def label_family(labels: Sequence[Label]) -> str:
    """What all labels are: text, truth, whole or number."""
    for kind, family in ((str, "text"), (bool, "truth")):
        if all(isinstance(label, kind) for label in labels):
            return family
    if any(isinstance(label, (str, bool)) for label in labels):
        raise InputError(
            "tables need a model whose values are all text, all numbers, or true and false"
        )
    return "whole" if all(isinstance(label, int) for label in labels) else "number"


def _parsed_values(series: pl.Series, family: str) -> pl.Series:
    """Text cells as the truth values or numbers that labels are; null for a cell that is none."""
    if family == "truth":
        known = series.str.to_lowercase()
        truths = {"1": True, "true": True, "0": False, "false": False}
        return known.replace_strict(truths, default=None, return_dtype=pl.Boolean)
    floats = series.cast(pl.Float64, strict=False)
    if family == "number":
        return floats
    # 1.0 is 1 too, but large numbers must not go by way of floats
    exact = (floats == floats.round()) & (floats.abs() < 2**53)
    whole = pl.select(pl.when(exact).then(floats)).to_series().cast(pl.Int64)
    return series.cast(pl.Int64, strict=False).fill_null(whole)


def _text_codes(cells: pl.Series, labels: Sequence[Label]) -> Codes:
    texts = cells.cast(pl.Enum(map(str, labels)), strict=False)
    return texts.to_physical().cast(pl.Int8).fill_null(UNKNOWN).to_numpy()


def _number_codes(cells: pl.Series, labels: Sequence[Label]) -> Codes:
    """(n,) which label each number or truth value is, anything for nulls; UNKNOWN for others."""
    cells = cells.cast(pl.UInt8) if cells.dtype == pl.Boolean else cells
    values = (cells.fill_null(0) if cells.null_count() else cells).to_numpy()
    codes = _codes_of(labels, whole=cells.dtype.is_integer())
    if not codes:
        return np.full(len(values), UNKNOWN, dtype=np.int8)
    numbers = np.array(sorted(codes))
    found = np.array([codes[number] for number in numbers.tolist()], dtype=np.int8)
    least, most = min(codes), max(codes)
    is_short = max(-least, most) < 2**62 and most - least < _TABLE
    if cells.dtype.is_integer() and is_short:
        return _from_table(values, numbers, found)
    at = np.minimum(np.searchsorted(numbers, values), len(numbers) - 1)
    return np.where(numbers[at] == values, found[at], np.int8(UNKNOWN))


def _codes_of(labels: Sequence[Label], *, whole: bool) -> dict[float, int]:
    """Codes by label. whole: those of whole numbers alone, as such."""
    if whole:  # large ones are not what they are as floats
        return {int(label): at for at, label in enumerate(labels) if int(label) == label}
    return {float(label): at for at, label in enumerate(labels)}


def _from_table(values: NDArray[Any], numbers: NDArray[np.int64], codes: Codes) -> Codes:
    """(n,) the code of each whole number, by a table of codes: 17 times as fast as a search."""
    size = int(numbers[-1] - numbers[0]) + 1
    table = np.full(size + 1, UNKNOWN, dtype=np.int8)
    table[numbers - numbers[0]] = codes
    found = np.empty(len(values), dtype=np.int8)
    # piece by piece: wider numbers in between stay in the cache
    for begin in range(0, len(values), _PIECE):
        place = values[begin : begin + _PIECE].astype(np.int64) - numbers[0]
        # numbers below the first one wrap around, beyond all others
        place = np.minimum(place.view(np.uint64), np.uint64(size)).view(np.int64)
        np.take(table, place, out=found[begin : begin + _PIECE], mode="clip")
    return found


# ---- labels


def labels_of(series: pl.Series, where: str = "") -> tuple[Label, ...]:
    """The values that occur in a value column, sorted; InputError if no model takes them.

    where: for messages.
    """
    values = learned_cells(series).drop_nulls().unique()
    if 2 <= len(values) <= MAX_VALUES:
        return _as_labels(values)
    remedy = ""
    if len(values) > MAX_VALUES:
        numbers = values.cast(pl.Float64, strict=False) if values.dtype == pl.String else values
        cut = "" if numbers.null_count() else "cut numbers with --bins, such as --bins 0,1,3, or "
        remedy = f"; {cut}make one of the rare ones with --merge rare"
    raise InputError(
        f"value column {series.name!r} must have 2 to {MAX_VALUES} distinct values{where}, got"
        f" {len(values)}{remedy}"
    )


def listed_labels(values: Sequence[Label] | Label) -> tuple[Label, ...]:
    """Values that a person lists as labels; InputError for what no column can hold."""
    listed: list[Label] = [values] if isinstance(values, (str, int, float)) else list(values)
    listed = [value.strip() if isinstance(value, str) else value for value in listed]
    _check_listed(listed)
    # sorted as those that occur in a column are: the same values make the same model
    try:
        labels = _as_labels(pl.Series("--values", listed, strict=True).unique())
    except (TypeError, OverflowError, pl.exceptions.PolarsError):  # whole numbers and others
        labels = _as_labels(pl.Series("--values", [float(value) for value in listed]).unique())
    _checked_family(labels)
    if len(labels) < len(listed):
        raise InputError("--values lists a value twice")
    return labels


def _check_listed(listed: Sequence[Any]) -> None:
    if not all(isinstance(value, (str, int, float)) for value in listed):
        raise InputError("--values must be text, numbers, or true and false")
    if not 2 <= len(listed) <= MAX_VALUES:
        raise InputError(f"--values must list 2 to {MAX_VALUES} values, got {len(listed)}")
    label_family(listed)
    if any(isinstance(value, float) and not np.isfinite(value) for value in listed):
        raise InputError("--values must not list NaN or infinity, which no model takes")


def _as_labels(values: pl.Series) -> tuple[Label, ...]:
    """Distinct values as labels, sorted; whole numbers as such, however they were written."""
    if values.dtype == pl.String:
        values = typed_text(values)
    if values.dtype.is_float():
        whole = bool((values == values.round()).all()) and bool((values.abs() < 2**53).all())
        values = values.cast(pl.Int64) if whole else values
    return tuple(values.sort().to_list())


def typed_text(values: pl.Series) -> pl.Series:
    """Text that is all plain numbers, or all true and false, as these: as in a typed file."""
    numbers = whole_numbers(values)
    if numbers.dtype != pl.String:
        return numbers
    if values.str.contains(f"^{_DECIMAL}$").all():
        return values.cast(pl.Float64).unique()
    return (values.str.to_lowercase() == "true").unique() if _are_truths(values) else values


# ---- released


def released_type(kind: pl.DataType, labels: Sequence[Label]) -> pl.DataType:
    """The type of the released column, from the labels alone but for the input's width."""
    family = label_family(labels)
    if family in ("text", "truth"):
        return pl.String() if family == "text" else pl.Boolean()
    if family == "number":
        return kind if kind.is_float() else pl.Float64()
    if not kind.is_integer() or kind in (pl.Int128, pl.UInt128):
        return pl.Int64()
    width = np.iinfo(str(kind).lower())
    return kind if all(width.min <= int(label) <= width.max for label in labels) else pl.Int64()
