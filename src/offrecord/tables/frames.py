"""Frames of any kind narwhals knows, in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from offrecord.errors import InputError

if TYPE_CHECKING:
    import polars as pl

Native: TypeAlias = Any


def from_native(frame: Native) -> pl.DataFrame:
    """Any frame as one of polars."""
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame
    import narwhals as nw

    try:
        known = nw.from_native(frame)
    except TypeError:
        raise InputError(f"the table must be a frame (polars, pandas, pyarrow, DuckDB …), got {type(frame).__name__}") from None
    if isinstance(known, nw.LazyFrame):
        known = known.collect()
    table: pl.DataFrame = known.to_polars()
    return table


def to_native(frame: pl.DataFrame, like: Native, value: str) -> Native:
    """A frame of polars as the kind another one is; whole numbers and truth values stay such in pandas, nulls and all."""
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
    native = nw.DataFrame.from_arrow(frame, backend=known.implementation).to_native()
    if known.implementation.is_pandas_like() and (frame[value].dtype.is_integer() or frame[value].dtype == pl.Boolean):
        native[value] = native[value].astype("boolean" if frame[value].dtype == pl.Boolean else "Int64")
    return native
