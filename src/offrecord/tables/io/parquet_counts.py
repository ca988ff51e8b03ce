"""Whether the counts in a Parquet file can be believed, before the table engine reads it.

The engine (polars) sets memory aside by the counts in a file's footer and in the header of each of
its pages, and takes a negative one for one near 2⁶⁴. What no machine has it does not refuse: it
ends the process, which nobody can catch. So counts are looked at here first: they are few, they are
not compressed, and each page must have as many values as its column lacks.

Both are in Thrift's compact protocol: fields by number, each with its type.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from offrecord.tables.io.limits import beyond

_MAGIC, _TAIL = b"PAR1", 8
_HEADER = 1 << 10  # bytes that the header of a page mostly has less than
_LONGEST_HEADER = 1 << 22  # bytes, with the longest statistics that are read
_LONGEST_LIST = 1 << 20  # elements: a file of a million columns or groups of rows is none
_CELL = 16  # bytes that the engine sets aside for a cell, at most, before it has read one
#: A struct: what it holds, by the numbers of its fields.
Fields: TypeAlias = dict[int, Any]
# The numbers of fields, by the struct that has them.
_SCHEMA, _ROWS, _GROUPS = 2, 3, 4  # the footer
_TYPE, _REPETITION, _NAME, _CHILDREN = 1, 3, 4, 5  # an element of the schema
_CHUNKS, _GROUP_ROWS = 1, 3  # a group of rows
_META = 3  # a column in it
_VALUES, _DATA, _DICTIONARY = 5, 9, 11  # what is said of such a column
_KIND, _UNPACKED, _PACKED = 1, 2, 3  # the header of a page
_COUNTS = {0: 5, 2: 7, 3: 8}  # where it has its counts, by its kind: data, dictionary, newer data
_COUNT, _REPEATED = 1, 2


class _Column(NamedTuple):
    name: str  # of the column of the table that it is, or is a part of
    is_flat: bool  # it has one value for each row


def check_columns(path: Path, most: int) -> None:
    """InputError for a file with more columns than that."""
    with path.open("rb") as file:
        footer = _footer(file)
    if footer is not None and len(footer[_SCHEMA]) > 4 * most:
        raise beyond("columns", most, f"{path} describes more columns than")


def check_counts(
    path: Path, columns: Collection[str] | None = None, unpacked: int = 1 << 62
) -> None:
    """ValueError for a Parquet file whose counts contradict each other; MemoryError for one with
    more rows than a machine of this size holds.

    columns: those that will be read, all if None. unpacked: bytes that they may come to.
    """
    with path.open("rb") as file:
        footer = _footer(file)
        if footer is None:
            return  # nothing that the engine would read
        leaves = list(_leaves(footer[_SCHEMA]))
        rows = size = 0
        for group in footer[_GROUPS]:
            rows += _checked(group[_GROUP_ROWS])
            size += _check_group(file, group, leaves, columns)
            if size > unpacked:
                raise beyond("unpacked", unpacked, f"{path} unpacks to more bytes than")
        if rows != footer[_ROWS]:
            raise ValueError("groups have other rows than the file")


def _check_group(
    file: BinaryIO, group: Fields, leaves: list[_Column], columns: Collection[str] | None
) -> int:
    """The bytes that the columns of a group of rows come to."""
    size, rows = 0, group[_GROUP_ROWS]
    if rows * _CELL > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise MemoryError
    for leaf, chunk in zip(leaves, group[_CHUNKS], strict=True):
        if columns is not None and leaf.name not in columns:
            continue
        meta = chunk[_META]
        if leaf.is_flat and meta[_VALUES] != rows:
            raise ValueError("a column has other values than rows")
        size += _check_pages(file, meta)
    return size


def _check_pages(file: BinaryIO, meta: Fields) -> int:
    """Check all pages of a column in a group of rows: the bytes that they come to."""
    left = _checked(meta[_VALUES])
    if left == 0:
        return 0  # without pages, offsets are anything
    size = 0
    first = _checked(meta[_DATA])
    at = _checked(meta.get(_DICTIONARY, 0)) or first  # some say 0 for none
    _checked(first - at)
    while left:
        header, length = _header(file, at)
        left = _checked(left - _values_of(header))
        size += _checked(header[_UNPACKED])
        at += length + _checked(header[_PACKED])
    return size


def _values_of(header: Fields) -> int:
    """How many values of the column a page holds, by its checked header; a dictionary none."""
    if _checked(header[_KIND]) not in _COUNTS:
        return 0
    counts = header[_COUNTS[header[_KIND]]]
    for count in counts.values():
        if type(count) is int:
            _checked(count)
    if header[_KIND] != 2:
        return int(counts[_COUNT])
    if counts[_COUNT] > header[_UNPACKED]:
        raise ValueError("a dictionary has more values than bytes")
    return 0


def _checked(count: Any) -> int:
    if type(count) is not int or count < 0:
        raise ValueError("a count is negative")
    return count


def _leaves(schema: list[Fields]) -> Iterator[_Column]:
    """The columns that hold values, in the order in which groups of rows have them."""
    # a schema is a tree, each element before its children
    above: list[tuple[int, str, bool]] = [(_checked(schema[0].get(_CHILDREN, 0)), "", True)]
    for element in schema[1:]:
        while above[-1][0] == 0:
            above.pop()
        left, name, is_flat = above[-1]
        above[-1] = left - 1, name, is_flat
        if len(above) == 1:
            name = element[_NAME].decode()
        is_flat = is_flat and element.get(_REPETITION) != _REPEATED
        children = _checked(element.get(_CHILDREN, 0))
        if children or _TYPE not in element:
            above.append((children, name, is_flat))
        else:
            yield _Column(name, is_flat)


# ---- bytes


def _footer(file: BinaryIO) -> Fields | None:
    """What the end of a file says of all of it; None unless it is the end of a Parquet file."""
    size = file.seek(0, os.SEEK_END)
    if size < _TAIL:
        return None
    file.seek(size - _TAIL)
    tail = file.read(_TAIL)
    long = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or long > size - _TAIL:
        return None
    file.seek(size - _TAIL - long)
    return _Thrift(file.read(long)).struct()


def _header(file: BinaryIO, at: int) -> tuple[Fields, int]:
    """The header of the page that begins there, and how many bytes it takes."""
    size = _HEADER
    while True:
        file.seek(at)
        part = _Thrift(file.read(size))
        try:
            return part.struct(), part.at
        except IndexError:
            if len(part.data) < size or size > _LONGEST_HEADER:
                raise ValueError("a page is cut short") from None
            size *= 8  # it has long statistics


class _Thrift:
    """Values in Thrift's compact protocol, one after the other; IndexError beyond the data."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def taken(self, long: int) -> bytes:
        self.at += long
        if self.at > len(self.data):
            raise IndexError
        return self.data[self.at - long : self.at]

    def varint(self) -> int:
        """A number in bytes of seven bits, the lowest first."""
        number = 0
        for shift in range(0, 77, 7):
            byte = self.byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("a number without an end")

    def whole(self) -> int:
        """A number with its sign, which is its last bit."""
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def struct(self) -> Fields:
        fields: Fields = {}
        number = 0
        while (head := self.byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self.whole()
            kind = head & 15
            # true or false, by its type
            fields[number] = kind == 1 if kind <= 2 else self.value(kind)
        return fields

    def elements(self) -> list[Any]:
        head = self.byte()
        count = head >> 4 if head >> 4 < 15 else self.varint()
        if count > _LONGEST_LIST:
            raise ValueError("a list is too long")
        return [self.value(head & 15) for _ in range(count)]

    def value(self, kind: int) -> Any:
        match kind:
            case 1 | 2 | 3:
                return self.byte()
            case 4 | 5 | 6:
                return self.whole()
            case 7:
                return self.taken(8)
            case 8:
                return self.taken(self.varint())
            case 9 | 10:
                return self.elements()
            case 12:
                return self.struct()
        raise ValueError("a field of a type that Parquet does not have")
