"""Frames of any kind narwhals knows, in and out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from offrecord.errors import InputError
from offrecord.tables.guarding import collected, never_spill

if TYPE_CHECKING:
    import polars as pl

Native: TypeAlias = Any


def from_native(
    frame: Native,
    columns: Sequence[str] | None = None,
    value: str | None = None,
    where: str = "the table",
) -> pl.DataFrame:
    """Any frame as one of polars.

    columns: those that are needed; others may hold anything. value: a column whose cells may be of
    several types in pandas: they are text then, whatever each of them is, so that none decides what
    becomes of the others. where: what it is, for messages.
    """
    import polars as pl

    never_spill()
    if isinstance(frame, pl.DataFrame):
        return frame
    import narwhals as nw

    try:
        known = nw.from_native(frame)
    except TypeError:
        raise InputError(
            "the table must be a frame (polars, pandas, pyarrow, DuckDB …), got"
            f" {type(frame).__name__}"
        ) from None
    if isinstance(frame, pl.LazyFrame):
        return collected(frame)
    if known.implementation.is_pandas_like():
        _check_names(frame, columns or [], where)
    try:
        return _converted(known, columns, value)
    except Exception:  # whatever a library says about it may quote cells
        raise InputError(
            "the table cannot be converted: give each column values of one type"
        ) from None


def keys_from_native(listed: Native | None, columns: Sequence[str]) -> pl.DataFrame | None:
    """The keys of private records, if there is a list of them."""
    return None if listed is None else from_native(listed, columns, where="the private list")


def _check_names(frame: Native, columns: Sequence[str], where: str) -> None:
    """InputError for a column that pandas has as its index, or under a name that is no text."""
    there = list(frame.columns)
    for name in columns:
        if name in there:
            continue
        if name in frame.index.names:
            raise InputError(
                f"{where} has no column {name!r}: it is the index; give df.reset_index()"
            )
        if name in [str(one) for one in there if not isinstance(one, str)]:
            raise InputError(
                f"{where} has a column {name} whose name is no text; write df.columns ="
                " df.columns.astype(str) first"
            )


def _converted(known: Any, columns: Sequence[str] | None, value: str | None) -> pl.DataFrame:
    """A frame that narwhals knows as one of polars."""
    import narwhals as nw

    if columns is not None and set(columns) <= set(known.columns):
        known = known.select(*columns)
    if isinstance(known, nw.LazyFrame):
        known = known.collect()
    if known.implementation.is_pandas() and value in known.columns:
        native = _one_type(known.to_native(), str(value), nw.get_native_namespace(known))
        known = nw.from_native(native)
    table: pl.DataFrame = known.to_polars()
    return table


def _one_type(frame: Native, value: str, pandas: Any) -> Native:
    """A frame of pandas whose column of any objects is one of text."""
    if frame[value].dtype != object:
        return frame

    def text(cell: Any) -> str | None:
        if isinstance(cell, str):
            return cell
        empty = pandas.isna(cell)  # of a list, a list
        return None if empty is True or str(empty) == "True" else str(cell)

    return frame.assign(**{value: frame[value].map(text)})


def to_native(frame: pl.DataFrame, like: Native, value: str) -> Native:
    """A frame of polars as the kind another one is.

    Whole numbers and truth values stay such in pandas, nulls and all.
    """
    import polars as pl

    if isinstance(like, pl.DataFrame):
        return frame
    import narwhals as nw

    known = nw.from_native(like)
    lazy = isinstance(known, nw.LazyFrame)
    if known.implementation.is_polars():
        return frame.lazy() if lazy else frame
    if lazy:
        return nw.from_native(frame).lazy(backend=known.implementation).to_native()
    plain = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    native = nw.DataFrame.from_arrow(plain, backend=known.implementation).to_native()
    if known.implementation.is_pandas_like():
        pandas = nw.get_native_namespace(known)  # or what is like it
        for name, kind in frame.schema.items():
            exact = kind.is_integer() or kind == pl.Boolean
            if exact and (name == value or frame[name].null_count()):
                # by way of floats, large numbers would not stay what they are
                dtype = "boolean" if kind == pl.Boolean else str(kind)
                native[name] = pandas.array(frame[name].to_list(), dtype=dtype)
    return native
