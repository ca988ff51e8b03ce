"""What cells say: names of chains, order values, private marks, values and labels; nothing is
guessed, nothing quoted.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Label
from offrecord.models.records import MISSING, UNKNOWN, Codes
from offrecord.release import coins as draws

if TYPE_CHECKING:
    import polars as pl
    from polars._typing import PolarsDataType

MAX_VALUES = 64
_PIECE = 1 << 16
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6}
_WHOLE = re.compile("(0|-?[1-9][0-9]{0,17})")  # a whole number in its plain form
_BLANK = r"^\s|\s$"  # around a cell
#: What programs write for a cell that is missing.
_MARKERS = ("na", "n/a", "nan", "null", "none", "nil", "missing", "-", "?", ".")
_DECIMAL = r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,12})?"  # a number in its plain form
_DAY, _ZONE = r"\d{4}-\d\d-\d\d", r"(Z|[+-]\d\d:?\d\d)"


def chain_column(series: pl.Series) -> pl.Series:
    """A column of chain names as whole numbers, text, truth values, dates or times."""
    import polars as pl

    nulls = series.null_count()
    if nulls:
        raise InputError(
            f"column {series.name!r} names chains and must not be empty: {nulls} rows are"
        )
    kind = series.dtype
    if isinstance(kind, (pl.Categorical, pl.Enum)):
        series, kind = series.cast(pl.String), pl.String()
    if kind == pl.String:
        return whole_numbers(series)
    if (
        (kind.is_integer() and kind not in (pl.Int128, pl.UInt128))
        or kind in (pl.Boolean, pl.Date)
        or isinstance(kind, pl.Datetime)
    ):
        return series
    raise InputError(
        f"column {series.name!r} must name chains by text, whole numbers, truth values or times,"
        f" got {type_name(kind)}"
    )


def check_names(names: pl.Series, where: str) -> None:
    """InputError for blanks around names of chains: with them a chain falls into two, and trimming
    could make one of two.
    """
    import polars as pl

    count = int(names.str.contains(_BLANK).sum()) if names.dtype == pl.String else 0
    if count:
        raise InputError(
            f"{where} names chains in column {names.name!r} with blanks around the name, {count}"
            " times: remove the blanks"
        )


def _blanks(series: pl.Series) -> str:
    """A word about blanks around cells, where there are any."""
    count = int(series.str.contains(_BLANK).sum())
    return f"; {count} cells have blanks around them" if count else ""


def whole_numbers(series: pl.Series) -> pl.Series:
    """Text as whole numbers where every cell is one in its plain form (so that nothing changes),
    else as it is.
    """
    import polars as pl

    first = series[0]
    if (
        first is None
        or not _WHOLE.fullmatch(first)
        or not series.str.contains(f"^{_WHOLE.pattern}$").all()
    ):
        return series
    return series.cast(pl.Int64)


def order_column(series: pl.Series) -> pl.Series:
    """A column that orders records, as whole numbers, dates or times."""
    import polars as pl

    nulls = series.null_count()
    if nulls:
        raise InputError(
            f"column {series.name!r} orders records and must not be empty: {nulls} rows are"
        )
    kind = series.dtype
    if kind == pl.String:
        numbers = whole_numbers(series)
        if numbers.dtype != pl.String:
            return numbers
        times = parsed_times(series)
        if times is not None:
            return times
        raise InputError(
            f"column {series.name!r} must hold whole numbers, dates or times (ISO 8601), got other"
            f" text{_blanks(series)}"
        )
    if kind in (pl.Int128, pl.UInt64, pl.UInt128):
        try:
            return series.cast(pl.Int64)
        except Exception:
            raise InputError(f"column {series.name!r} must hold whole numbers below 2^63") from None
    if kind.is_integer() or kind == pl.Date or isinstance(kind, pl.Datetime):
        return series
    raise InputError(
        f"column {series.name!r} must hold whole numbers, dates or times to order records, got"
        f" {type_name(kind)}"
        + ("; numbers with a fraction are not exact enough" if kind.is_float() else "")
    )


def parsed_times(series: pl.Series) -> pl.Series | None:
    """Text as days, or as times (ISO 8601) that all have or all lack a time zone; None if some cell
    is neither.
    """
    import polars as pl

    if series.str.contains(rf"^{_DAY}$").all():
        days = series.str.to_date("%Y-%m-%d", strict=False)
        return None if days.null_count() else days
    if not series.str.contains(rf"^{_DAY}[T ]\d\d:\d\d(:\d\d(\.\d{{1,9}})?)?{_ZONE}?$").all():
        return None
    zoned = series.str.contains(f"{_ZONE}$")
    if zoned.any() != zoned.all():
        raise InputError(
            f"column {series.name!r} has times with and without a time zone; give all of them one"
        )
    try:
        return series.str.to_datetime(
            time_unit="ns", time_zone="UTC" if zoned.all() else None, strict=True
        )
    except pl.exceptions.PolarsError:
        return None


def nanoseconds(series: pl.Series) -> NDArray[np.int64]:
    """Dates and times as nanoseconds since 1970, UTC (a date at midnight; times without a zone are
    taken as they stand).
    """
    import polars as pl

    kind = series.dtype
    unit = _UNITS[kind.time_unit] if isinstance(kind, pl.Datetime) else 86400 * 10**9
    ticks = series.to_physical().to_numpy().astype(np.int64)
    if len(ticks) and max(abs(int(ticks.min())), abs(int(ticks.max()))) * unit >= 2**63:
        raise InputError(f"column {series.name!r} has times beyond the years 1678 to 2261")
    return np.asarray(ticks * unit)


def private_marks(series: pl.Series) -> NDArray[np.bool_]:
    """The private column as truth values; a null would be an opt-out lost in silence."""
    import polars as pl

    name = series.name
    if series.null_count():
        raise InputError(
            f"private column {name!r} must say true or false in every row: {series.null_count()}"
            " rows are empty"
        )
    if series.dtype == pl.String:
        series = series.str.to_lowercase().replace({"1": "true", "0": "false"})
        if not series.is_in(["true", "false"]).all():
            raise InputError(
                f"private column {name!r} must hold true and false, or 1 and 0, got other"
                f" text{_blanks(series)}"
            )
        series = series == "true"
    elif series.dtype.is_integer():
        if not series.is_in([0, 1]).all():
            raise InputError(
                f"private column {name!r} must hold true and false, or 1 and 0, got other numbers"
            )
        series = series == 1
    elif series.dtype != pl.Boolean:
        raise InputError(
            f"private column {name!r} must hold true and false, got {type_name(series.dtype)}"
        )
    return series.to_numpy()


def value_cells(series: pl.Series) -> pl.Series:
    """The cells of a value column: numbers, truth values, or text without blanks around it."""
    import polars as pl

    name, kind = series.name, series.dtype
    if (
        kind.is_nested()
        or kind in (pl.Binary, pl.Object, pl.Null, pl.Unknown)
        or isinstance(kind, pl.BaseExtension)
    ):
        raise InputError(
            f"value column {name!r} must hold text, numbers or truth values, got {type_name(kind)}"
        )
    if not (kind.is_numeric() or kind == pl.Boolean) or kind.is_decimal():
        series = series.cast(pl.String)
    return series.str.strip_chars() if series.dtype == pl.String else series


def coded(series: pl.Series, labels: Sequence[Label]) -> Codes:
    """(n,) which label each cell of a value column is.

    A value that is no label is UNKNOWN, and for whoever decides to judge: a record that is redacted
    whatever it is may be anything, and an error would tell about it.
    """
    import polars as pl

    name, series = series.name, value_cells(series)
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
    cells = series
    if series.dtype in (pl.Int128, pl.UInt128):
        series = series.cast(pl.Int64, strict=False)
    if series.dtype == pl.String and family != "text":
        series = _parsed_values(series, family)
    elif (family == "text") != (series.dtype == pl.String) or (family == "truth") != (
        series.dtype == pl.Boolean
    ):
        raise InputError(
            f"value column {name!r} holds {type_name(series.dtype)}, but the model's values are"
            f" {_FAMILIES[family]}"
        )
    codes = _codes(series, labels)
    if int((codes == MISSING).sum()) > cells.null_count():
        codes = np.where(
            (codes == MISSING) & cells.is_not_null().to_numpy(), np.int8(UNKNOWN), codes
        )
    return codes


_FAMILIES = {
    "text": "text",
    "truth": "true and false",
    "whole": "whole numbers",
    "number": "numbers",
}


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


def labels_of(series: pl.Series, where: str = "") -> tuple[Label, ...]:
    """The values that occur in a value column, sorted; InputError if they are none that a model
    takes. where: for messages.
    """
    import polars as pl

    series = value_cells(series)
    values = series.drop_nulls().unique()
    if series.dtype.is_float() and not values.is_finite().all():
        raise InputError(
            f"value column {series.name!r} holds NaN or infinity, which no model takes"
        )
    if values.dtype == pl.String:
        _check_markers(series, values)
    if not 2 <= len(values) <= MAX_VALUES:
        raise InputError(
            f"value column {series.name!r} must have 2 to {MAX_VALUES} distinct values{where}, got"
            f" {len(values)}"
        )
    if values.dtype == pl.String:
        # text that is all numbers in their plain form, or all true and false, stands for these, as
        # in a typed file
        numbers = whole_numbers(values)
        if numbers.dtype != pl.String:
            values = numbers
        elif values.str.contains(f"^{_DECIMAL}$").all():
            values = values.cast(pl.Float64).unique()
        elif values.str.to_lowercase().is_in(["true", "false"]).all():
            values = values.str.to_lowercase() == "true"
            values = values.unique()
    if (
        values.dtype.is_float()
        and bool((values == values.round()).all())
        and bool((values.abs() < 2**53).all())
    ):
        values = values.cast(
            pl.Int64
        )  # whole numbers are labels as such, however they were written
    return tuple(values.sort().to_list())


def _check_markers(series: pl.Series, values: pl.Series) -> None:
    """InputError where all cells are numbers or truth values but for some that say a value is
    missing.
    """
    import polars as pl

    marks = values.filter(values.str.to_lowercase().is_in(_MARKERS))
    rest = values.filter(~values.is_in(marks.implode()))
    if not len(marks) or not len(rest):
        return
    numbers = rest.cast(pl.Float64, strict=False).is_finite().fill_null(False).all()
    if numbers or rest.str.to_lowercase().is_in(["true", "false"]).all():
        count, others = (
            series.is_in(marks.implode()).sum(),
            "numbers" if numbers else "true and false",
        )
        raise InputError(
            f"value column {series.name!r} holds {others}, but in {count} cells"
            f" {', '.join(marks.sort())}: empty them, a missing value is an empty cell"
        )


def _parsed_values(series: pl.Series, family: str) -> pl.Series:
    """Text cells as the numbers or truth values the model's labels are; null for a cell that is
    none.
    """
    import polars as pl

    if family == "truth":
        known = series.str.to_lowercase().replace({"1": "true", "0": "false"})
        parsed = known.replace_strict(
            {"true": True, "false": False}, default=None, return_dtype=pl.Boolean
        )
    elif family == "whole":
        parsed = series.cast(
            pl.Int64, strict=False
        )  # 1.0 is 1 too, but large numbers must not go by way of floats
        floats = series.cast(pl.Float64, strict=False)
        whole = (
            pl.select(pl.when((floats == floats.round()) & (floats.abs() < 2**53)).then(floats))
            .to_series()
            .cast(pl.Int64)
        )
        parsed = parsed.fill_null(whole)
    else:
        parsed = series.cast(pl.Float64, strict=False)
    return parsed


def _codes(series: pl.Series, labels: Sequence[Label]) -> Codes:
    import polars as pl

    if series.dtype == pl.String:
        return _with_missing(
            series.cast(pl.Enum([str(label) for label in labels]), strict=False).to_physical()
        )
    if series.dtype == pl.Boolean:
        truths = series.cast(pl.UInt8)
        return _looked_up(truths, {int(label): code for code, label in enumerate(labels)})
    whole = {
        int(label): code
        for code, label in enumerate(labels)
        if isinstance(label, int) or float(label).is_integer()
    }
    if series.dtype.is_integer():
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
        np.take(table, values.view(np.uint8), out=found, mode="clip")
    elif high - low < 1 << 20 and high < 2**62 and low > -(2**62):
        table = np.full(
            high - low + 2, MISSING, dtype=np.int8
        )  # the last entry is for what lies outside
        for value, code in codes.items():
            table[value - low] = code
        for begin in range(
            0, len(values), _PIECE
        ):  # piece by piece: wider numbers in between stay in the cache
            place = values[begin : begin + _PIECE].astype(np.int64) - low
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


def _with_missing(physical: pl.Series) -> Codes:
    import polars as pl

    return physical.cast(pl.Int8).fill_null(MISSING).to_numpy()


def released_type(kind: pl.DataType, labels: Sequence[Label]) -> pl.DataType:
    """The type of the released column, from the labels: the input's own width where that is of the
    same family.
    """
    import polars as pl

    family = label_family(labels)
    if family == "text":
        return pl.String()
    if family == "truth":
        return pl.Boolean()
    if family == "whole":
        if not kind.is_integer() or kind in (pl.Int128, pl.UInt128):
            return pl.Int64()
        width = np.iinfo(str(kind).lower())
        return kind if all(width.min <= int(label) <= width.max for label in labels) else pl.Int64()
    return kind if kind.is_float() else pl.Float64()


def plain(series: pl.Series) -> pl.Series:
    """A kept column without dictionaries or categories, also within lists and structs: they may
    hold what was redacted.
    """
    import polars as pl

    if isinstance(series.dtype, pl.BaseExtension):
        series = series.ext.storage()
    kind = _plain_type(series.dtype, series.name)
    try:
        return _afresh(series if kind == series.dtype else series.cast(kind))
    except pl.exceptions.PolarsError:
        raise InputError(
            f"column {series.name!r} cannot be kept: it holds {type_name(series.dtype)} of"
            " categories"
        ) from None


def _afresh(series: pl.Series) -> pl.Series:
    """Text in memory of its own: cells cut from a longer text keep all of it, values of private
    records among them.
    """
    import polars as pl

    if series.dtype != pl.String:
        return series
    buffer = io.BytesIO()
    series.to_frame().write_ipc(buffer, compat_level=pl.CompatLevel.oldest())
    buffer.seek(0)
    return pl.read_ipc(buffer).to_series()


def _plain_type(kind: PolarsDataType, name: str) -> PolarsDataType:
    import polars as pl

    if isinstance(kind, (pl.Categorical, pl.Enum)):
        return pl.String()
    if isinstance(kind, pl.List):
        return pl.List(_plain_type(kind.inner, name))
    if isinstance(kind, pl.Array):
        return pl.Array(_plain_type(kind.inner, name), kind.size)
    if isinstance(kind, pl.Map):
        return pl.Map(_plain_type(kind.key, name), _plain_type(kind.value, name))
    if isinstance(kind, pl.BaseExtension):
        raise InputError(
            f"column {name!r} cannot be kept: extension types carry metadata of their own; store it"
            " plainly"
        )
    if isinstance(kind, pl.Struct):
        return pl.Struct(
            [pl.Field(field.name, _plain_type(field.dtype, name)) for field in kind.fields]
        )
    if kind in (pl.Object, pl.Unknown):
        raise InputError(f"column {name!r} cannot be kept: it holds {type_name(kind)}")
    return kind


def _encoded_name(text: str) -> bytes:
    return draws.encoded_whole(int(text)) if _WHOLE.fullmatch(text) else draws.encoded_text(text)


def type_name(kind: PolarsDataType) -> str:
    """What kind of type it is; its parameters (categories, fields, metadata) may be words of the
    data.
    """
    return type(kind).__name__


def encoded(series: pl.Series) -> list[bytes]:
    """The values of a chain column as bytes for their coins (draws.py)."""
    import polars as pl

    kind = series.dtype
    if (
        kind == pl.String
    ):  # a whole number is one also as text, whatever the other chains are called
        return [_encoded_name(text) for text in series.to_list()]
    if kind == pl.Boolean:
        return [draws.encoded_boolean(value) for value in series.to_list()]
    if kind.is_integer():
        return draws.encoded_integers(series.to_numpy(), draws.INTEGER)
    return draws.encoded_integers(nanoseconds(series), draws.TIME)
