"""Frames of any kind narwhals knows, in and out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from offrecord.errors import InputError
from offrecord.tables.guarding import collected, never_spill
from offrecord.tables.io.format import ReadOptions
from offrecord.tables.io.formats import read_list

Native: TypeAlias = Any

UNNAMED = "index"  #: what pandas calls an index without a name
_FRAMES = "a frame (polars, pandas, pyarrow, DuckDB …)"
_EITHER = "or give the name of a column"


def listed_keys(
    listed: Native | str | Path | None, said: ReadOptions | None = None
) -> pl.DataFrame | None:
    """The keys of private records, from a frame or a table file, if they are listed."""
    if isinstance(listed, (str, Path)):
        return read_list(listed, said or ReadOptions())
    return None if listed is None else from_native(listed, called="the private list")


def marked(
    table: pl.DataFrame, frame: Native, private: Native | str | None
) -> tuple[pl.DataFrame, str | None]:
    """A table and the name of its column that says what is private: given, or made of the marks
    that are given, true or false for each row of the frame that the table comes from.
    """
    if private is None or isinstance(private, str):
        return table, private
    marks = _marks(frame, private)
    if marks.dtype != pl.Boolean or marks.null_count():
        raise InputError(f"private must hold true or false in every row, nothing else; {_EITHER}")
    if len(marks) != table.height:
        raise InputError(
            f"private must have a mark for each of {table.height:,} rows, got {len(marks):,};"
            f" {_EITHER}"
        )
    name = " ".join([*table.columns, "private"])  # a name that no column can have
    return table.with_columns(marks.alias(name)), name


def _marks(frame: Native, private: Native) -> pl.Series:
    import narwhals as nw

    if isinstance(nw.from_native(frame), nw.LazyFrame):
        raise InputError("a lazy frame has no order of rows: private must be the name of a column")
    own: Any = getattr(private, "index", None)  # a method, of what is no series of pandas
    if hasattr(own, "equals") and not own.equals(getattr(frame, "index", None)):
        raise InputError(
            f"private must be a column of this very frame: its index is another one; {_EITHER}"
        )
    with suppress(TypeError):  # no series of a kind that is known
        marks: pl.Series = nw.from_native(private, series_only=True).to_polars()
        return marks
    try:
        return pl.Series(list(private), dtype=pl.Boolean)
    except Exception:  # it may quote cells
        raise InputError(
            f"private must hold true or false for each row, got {type(private).__name__}; {_EITHER}"
        ) from None


def from_native(
    frame: Native,
    columns: Sequence[str] | None = None,
    value: str | None = None,
    *,
    called: str = "the table",
    instead: str = "give off.redact_file both paths, in and out",
) -> pl.DataFrame:
    """Any frame as one of polars.

    columns: those that are needed; others may hold anything. value: a column whose cells may be of
    several types in pandas: they are text then, whatever each of them is, so that none decides what
    becomes of the others. called: what it is, in messages. instead: what to do with a path.
    """
    never_spill()
    if isinstance(frame, pl.DataFrame):
        return frame
    import narwhals as nw

    if isinstance(frame, (str, Path)):
        raise InputError(
            f"{called} must be {_FRAMES}, got the path {str(frame)!r}: read it, as"
            f" polars.read_csv does, or {instead}"
        )
    try:
        known = nw.from_native(frame)
    except TypeError:
        raise InputError(f"{called} must be {_FRAMES}, got {type(frame).__name__}") from None
    if isinstance(frame, pl.LazyFrame):
        return collected(frame)
    if known.implementation.is_pandas_like():
        known = _with_text_names(known, columns or ())
    try:
        return _converted(known, columns, value)
    except Exception:  # whatever a library says about it may quote cells
        raise InputError(
            f"{called} cannot be converted: give each column values of one type"
        ) from None


def _with_text_names(known: Any, columns: Sequence[str]) -> Any:
    """A frame of pandas with names of text, and with levels of its index as columns."""
    import narwhals as nw

    frame = known.to_native()
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise InputError("two columns of the table have the same name, as text")
    if names != list(frame.columns):
        frame = frame.set_axis(names, axis=1)
    for level, name in enumerate(frame.index.names):
        # those that are asked for, or all that say something
        called, cells = UNNAMED if name is None else str(name), frame.index.get_level_values(level)
        # a range counts rows, which is for whoever asks for it
        said = name is not None or cells.dtype.kind == "M"
        if called not in names and (called in columns if columns else said):
            frame = frame.assign(**{called: cells})
    return nw.from_native(frame)


def _converted(known: Any, columns: Sequence[str] | None, value: str | None) -> pl.DataFrame:
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
    """A frame of pandas whose values are text, where they are of several types."""
    if frame[value].dtype != object:
        return frame

    def text(cell: Any) -> str | None:
        if isinstance(cell, str):
            return cell
        empty = pandas.isna(cell)  # of a list, a list
        return None if empty is True or str(empty) == "True" else str(cell)

    return frame.assign(**{value: frame[value].map(text)})


def to_native(frame: pl.DataFrame, like: Native, value: str) -> Native:
    """A frame of polars as the kind another one is."""
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
        for name in frame.columns:
            if name == value or frame[name].null_count():
                _keep_exact(native, frame[name], nw.get_native_namespace(known))
    return native


def _keep_exact(native: Native, cells: pl.Series, pandas: Any) -> None:
    """Whole numbers and truth values stay such in pandas, or what is like it, nulls and all."""
    if cells.dtype.is_integer() or cells.dtype == pl.Boolean:
        # by way of floats, large numbers would not stay what they are
        dtype = "boolean" if cells.dtype == pl.Boolean else str(cells.dtype)
        native[cells.name] = pandas.array(cells.to_list(), dtype=dtype)
