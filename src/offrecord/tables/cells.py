"""What cells say: names of chains, order values, private marks; nothing is guessed or quoted."""

from __future__ import annotations

import io
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.release import coins as draws
from offrecord.tables.problems import Check, LocatedError, RowNames

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6}
_WHOLE = re.compile("(0|-?[1-9][0-9]{0,17})")  # a whole number in its plain form
_BLANK = r"^\s|\s$"  # around a cell
_DAY, _ZONE = r"\d{4}-\d\d-\d\d", r"(Z|[+-]\d\d:?\d\d)"
_TIME = rf"{_DAY}[T ]\d\d:\d\d(:\d\d(\.\d{{1,9}})?)?"


def check_filled(series: pl.Series, does: str, names: RowNames, column: int = 0) -> None:
    """InputError for empty cells of a column. does: what it is for."""
    if series.null_count():
        said = (f"column {series.name!r} {does} and must not be empty, but is in ", "row", "")
        empty = series.is_null().to_numpy()
        raise names.error(empty, Check.FILLED, said, column=column)


def chain_column(series: pl.Series) -> pl.Series:
    """A column of chain names as whole numbers, text, truth values, dates or times."""
    kind = series.dtype
    if isinstance(kind, (pl.Categorical, pl.Enum)):
        series, kind = series.cast(pl.String), pl.String()
    if kind == pl.String:
        return whole_numbers(series)
    whole = kind.is_integer() and kind not in (pl.Int128, pl.UInt128)
    if whole or kind in (pl.Boolean, pl.Date) or isinstance(kind, pl.Datetime):
        return series
    raise InputError(
        f"column {series.name!r} must name chains by text, whole numbers, truth values or times,"
        f" got {type_name(kind)}"
    )


def blank_names(names: pl.Series) -> NDArray[np.bool_] | None:
    """Which names of chains have blanks around them; None if none has."""
    # with them a chain falls into two, and trimming could make one of two
    if names.dtype != pl.String:
        return None
    blank = names.str.contains(_BLANK).fill_null(False)
    return blank.to_numpy() if blank.any() else None


#: Dates that are not in ISO form: 31/12/2024, 31 Dec 2024.
_DATED = r"^\d{1,4}[/. -]\w{1,9}[/. -]\d"
#: What helps where order values have a fraction.
DECIMALS = "; count numbers with a fraction in a smaller unit, so that they are whole"
_BLANKS = "; there are blanks around cells"


def _order_hint(series: pl.Series, strange: NDArray[np.bool_]) -> str:
    """What helps against texts that order no records. strange: (n,) which are not as most are."""
    if not series.cast(pl.Float64, strict=False).null_count():
        return DECIMALS
    if series.str.contains(_BLANK).any():
        return _BLANKS
    is_dated = series.filter(strange).str.contains(_DATED).any()
    return "; there are dates that are not in ISO form: see offrecord look" if is_dated else ""


def whole_numbers(series: pl.Series) -> pl.Series:
    """Text as whole numbers where every cell is one in its plain form, else as it is."""
    first = series[0]
    is_whole = first is not None and _WHOLE.fullmatch(first)  # mostly the first cell decides
    if is_whole and series.str.contains(f"^{_WHOLE.pattern}$").all():
        return series.cast(pl.Int64)
    return series


def order_column(series: pl.Series, names: RowNames) -> pl.Series:
    """A column that orders records, as whole numbers, dates or times."""
    kind = series.dtype
    if kind == pl.String:
        numbers = whole_numbers(series)
        if numbers.dtype != pl.String:
            return numbers
        times = parsed_times(series)
        if times is None:
            raise _no_order(series, names)
        return times
    if kind in (pl.Int128, pl.UInt64, pl.UInt128):
        try:
            return series.cast(pl.Int64)
        except Exception:
            raise InputError(f"column {series.name!r} must hold whole numbers below 2^63") from None
    if kind.is_integer() or kind == pl.Date or isinstance(kind, pl.Datetime):
        return series
    raise InputError(
        f"column {series.name!r} must hold whole numbers, dates or times to order records, got"
        f" {type_name(kind)}" + (DECIMALS if kind.is_float() else "")
    )


def _no_order(series: pl.Series, names: RowNames) -> LocatedError:
    said = (
        f"column {series.name!r} must hold whole numbers, dates or times (ISO 8601), all of one"
        " kind, got other text in "
    )
    strange = _strange(series)
    named = (said, "row", _order_hint(series, strange))
    return names.error(strange, Check.READABLE, named, unread=series.name)


def _strange(series: pl.Series) -> NDArray[np.bool_]:
    """Which cells are no whole numbers, days or times, or not what most others are."""
    kinds = [series.str.contains(f"^{_WHOLE.pattern}$").to_numpy()]
    kinds += [_fits(series, form) for form in (f"^{_DAY}$", f"^{_TIME}$", f"^{_TIME}{_ZONE}$")]
    return ~max(kinds, key=np.count_nonzero)


def _fits(series: pl.Series, pattern: str) -> NDArray[np.bool_]:
    """Which cells are days or times of a form."""
    fits = series.str.contains(pattern).to_numpy().copy()
    zone = "UTC" if pattern.endswith(f"{_ZONE}$") else None
    with suppress(pl.exceptions.PolarsError):
        cells = series.filter(fits) + ("" if "T" in pattern else "T00:00")
        times = cells.str.to_datetime(time_unit="ns", time_zone=zone, strict=False)
        fits[fits] = times.is_not_null().to_numpy()
    return fits


def parsed_times(series: pl.Series) -> pl.Series | None:
    """Text as days, months or times (ISO 8601); None if some cell is neither.

    InputError for times of which some have a time zone and some have none.
    """
    if series.str.contains(r"^\d{4}-\d\d$").all():  # a month stands for its first day
        series = series + "-01"
    if series.str.contains(rf"^{_DAY}$").all():
        days = series.str.to_date("%Y-%m-%d", strict=False)
        return None if days.null_count() else days
    if not series.str.contains(f"^{_TIME}{_ZONE}?$").all():
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
    """Days and times as nanoseconds since 1970, UTC; without a zone, as they stand."""
    kind = series.dtype
    unit = _UNITS[kind.time_unit] if isinstance(kind, pl.Datetime) else 86400 * 10**9
    ticks = series.to_physical().to_numpy().astype(np.int64)
    if len(ticks) and max(abs(int(ticks.min())), abs(int(ticks.max()))) * unit >= 2**63:
        raise InputError(f"column {series.name!r} has times beyond the years 1678 to 2261")
    return np.asarray(ticks * unit)


def private_marks(series: pl.Series, names: RowNames) -> NDArray[np.bool_]:
    """The private column as truth values; what says neither would be an opt-out lost in silence."""
    name, kind = series.name, series.dtype
    if kind == pl.Boolean:
        return series.to_numpy()
    if not (kind == pl.String or kind.is_integer()):
        raise InputError(f"private column {name!r} must hold true and false, got {type_name(kind)}")
    what = "numbers"
    if kind == pl.String:
        what = f"text{_BLANKS if series.str.contains(_BLANK).any() else ''}"
        series = series.str.to_lowercase().replace({"true": "1", "false": "0"})
    known = series.is_in(["0", "1"] if kind == pl.String else [0, 1])
    if not known.all():
        said = f"private column {name!r} must hold true and false, or 1 and 0, got other {what} in "
        raise names.error((~known).to_numpy(), Check.READABLE, (said, "row", ""), column=1)
    return (series.cast(pl.Int8) == 1).to_numpy()


def plain(series: pl.Series) -> pl.Series:
    """A kept column without dictionaries or categories, which may hold what was redacted."""
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
    """Text in memory of its own."""
    if series.dtype != pl.String:
        return series
    # cells cut from a longer text keep all of it, values of private records among them
    buffer = io.BytesIO()
    series.to_frame().write_ipc(buffer, compat_level=pl.CompatLevel.oldest())
    buffer.seek(0)
    return pl.read_ipc(buffer).to_series()


def _plain_type(kind: PolarsDataType, name: str) -> PolarsDataType:
    match kind:
        case pl.Categorical() | pl.Enum():
            return pl.String()
        case pl.List():
            return pl.List(_plain_type(kind.inner, name))
        case pl.Array():
            return pl.Array(_plain_type(kind.inner, name), kind.size)
        case pl.Map():
            return pl.Map(_plain_type(kind.key, name), _plain_type(kind.value, name))
        case pl.Struct():
            inner = [pl.Field(one.name, _plain_type(one.dtype, name)) for one in kind.fields]
            return pl.Struct(inner)
        case pl.BaseExtension():
            raise InputError(
                f"column {name!r} cannot be kept: extension types carry metadata of their own;"
                " store it plainly"
            )
        case pl.Object() | pl.Unknown():
            raise InputError(f"column {name!r} cannot be kept: it holds {type_name(kind)}")
    return kind


def type_name(kind: PolarsDataType) -> str:
    """What kind of type it is, without parameters (categories, fields): they may be cells."""
    return type(kind).__name__


def encoded(series: pl.Series) -> list[bytes]:
    """The values of a chain column as bytes for their coins (draws.py)."""
    kind = series.dtype
    if kind == pl.String:
        # a whole number is one also as text, whatever the other chains are called
        return [
            draws.encoded_whole(int(text)) if _WHOLE.fullmatch(text) else draws.encoded_text(text)
            for text in series.to_list()
        ]
    if kind == pl.Boolean:
        return [draws.encoded_boolean(value) for value in series.to_list()]
    if kind.is_integer():
        return draws.encoded_integers(series.to_numpy(), draws.INTEGER)
    return draws.encoded_integers(nanoseconds(series), draws.TIME)
