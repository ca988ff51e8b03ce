"""Reading tables in files: their bytes and their cells. What cannot be read is an InputError of one
line, which never quotes a cell.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from offrecord.errors import InputError
from offrecord.parquet import check_counts
from offrecord.release.certificate import Output
from offrecord.verify.table.found import Found, listed

#: Formats, by the endings of file names.
_ENDINGS = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".xlsx": "xlsx",
    # as Spark calls them
    ".json": "ndjson",
}
_SPARK = {"json": "ndjson"}
_PACKED = (".gz", ".zst")
_MOST = 1 << 36  # bytes that a packed text may come to
_MOST_SHEET = 1 << 33  # bytes of a workbook, unpacked
_BLOCK = 1 << 20
_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
_IPC_FILE = b"ARROW1"


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Whatever goes wrong with a file is one line."""
    try:
        yield
    except (InputError, KeyboardInterrupt, SystemExit):
        raise
    except MemoryError:
        raise InputError(f"{path} is too large for this machine's memory") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or 'it is damaged'}") from None
    except BaseException:  # a panic of the engine is no Exception
        raise InputError(f"{path} cannot be read: it is damaged, or of another format") from None


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    with _readable(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_bytes(output: Output, released: Path, found: Found) -> list[Path]:
    """Compare the bytes of a release with what the certificate says; its files."""
    if not released.exists():
        raise InputError(f"{released} does not exist")
    if output.files is None:
        if released.is_dir():
            raise InputError(f"{released} is a folder, but the certificate is about one file")
        found.unequal(f"{released.name}, SHA-256", output.sha256, digest_of(released))
        found.checked.append("The file is the one that the certificate names, byte for byte.")
        kind = format_of(released)[0]
        if kind is not None and kind != _SPARK.get(output.format, output.format):
            found.wrong(f"output.format: the certificate says {output.format}, the name {kind}")
        return [released]
    if not released.is_dir():
        raise InputError(f"{released} is no folder, but the certificate is about one")
    with _readable(released):
        every = sorted(released.iterdir())
    there = {one.name: one for one in every if _counts(one)}
    others = [one.name for one in every if not _counts(one) and not _is_mark(one)]
    if others:
        found.not_checked.append(
            f"Files that programs pass over by their names: {listed(others[:10])}."
        )
    _check_names(output, list(there), found)
    for name, said in output.files.items():
        if name in there:
            found.unequal(f"{name}, SHA-256", said, digest_of(there[name]))
    found.checked.append("The files are those that the certificate names, byte for byte.")
    return list(there.values())


def _check_names(output: Output, there: list[str], found: Found) -> None:
    said = output.files or {}
    lost = [name for name in said if name not in there]
    more = [name for name in there if name not in said]
    if lost:
        found.wrong(f"files that the certificate names are not there: {listed(lost)}")
    if more:
        found.wrong(f"files are there that the certificate does not name: {listed(more)}")


def _counts(path: Path) -> bool:
    """Names that begin so are of checksums and marks of success."""
    return not path.name.startswith((".", "_"))


def _is_mark(path: Path) -> bool:
    """What Spark leaves beside its files."""
    return path.name == "_SUCCESS" or path.suffix == ".crc"


# ---- cells


def format_of(path: Path) -> tuple[str | None, str | None]:
    """The format and the packing that a name tells."""
    packing = path.suffix.lower() if path.suffix.lower() in _PACKED else None
    plain = path.with_suffix("") if packing else path
    return _ENDINGS.get(plain.suffix.lower()), packing


def read_files(paths: list[Path], said: str | None = None) -> pl.DataFrame:
    """Files of one table, one after the other."""
    frames = [read_file(path, said) for path in paths]
    if len({tuple(frame.columns) for frame in frames}) > 1:
        raise InputError(f"{paths[0].parent}: its files do not have the same columns")
    with _readable(paths[0].parent):
        return pl.concat(frames, how="vertical_relaxed")


def read_file(path: Path, said: str | None = None) -> pl.DataFrame:
    """A table in a file. said: its format, where its name does not tell it.

    Cells of CSV and of workbooks are text.
    """
    kind, packing = format_of(path)
    kind = kind or (_SPARK.get(said, said) if said is not None else None)
    if kind not in set(_ENDINGS.values()):
        raise InputError(f"{path}: the name must end in one of {', '.join(_ENDINGS)}")
    if not path.is_file():
        raise InputError(f"{path} is not a file" if path.exists() else f"{path} does not exist")
    with _readable(path):
        if kind == "parquet":
            check_counts(path)
            return pl.read_parquet(path, glob=False, hive_partitioning=False)
        if kind == "xlsx":
            return _sheet(path)
        if kind == "ipc":
            return _arrow(path)
        return _text(path, kind, packing)


def _arrow(path: Path) -> pl.DataFrame:
    """Arrow IPC, as a file or as the stream that leaves by standard output."""
    with path.open("rb") as file:
        is_file = file.read(len(_IPC_FILE)) == _IPC_FILE
    return pl.read_ipc(path) if is_file else pl.read_ipc_stream(path)


def _text(path: Path, kind: str, packing: str | None) -> pl.DataFrame:
    source: Path | io.BytesIO = path
    with path.open("rb") as file:
        beginning = file.read(4)
    begins = next((end for magic, end in _MAGIC.items() if beginning.startswith(magic)), None)
    packing = packing or begins
    if packing:
        source = io.BytesIO(_unpacked(path, packing))
    if kind == "ndjson":
        return pl.read_ndjson(source, infer_schema_length=None)
    frame = pl.read_csv(source, infer_schema=False, glob=False)
    # in quotes or not, an empty cell is none
    return frame.with_columns(
        pl.when(pl.col(name) != "").then(pl.col(name)).alias(name)
        for name in frame.columns
        if (frame[name] == "").any()
    )


def _unpacked(path: Path, packing: str) -> bytes:
    module: Any = gzip
    if packing == ".zst":
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        module = zstd
    content = io.BytesIO()
    with module.open(path, "rb") as file:
        while block := file.read(_BLOCK):
            content.write(block)
            if content.tell() > _MOST:
                raise InputError(f"{path} unpacks to more than {_MOST >> 30} GiB, which is refused")
    return content.getvalue()


def _sheet(path: Path) -> pl.DataFrame:
    """The only sheet of a workbook, its cells as text, an empty one as none."""
    try:
        import fastexcel
    except ImportError:
        raise InputError("Excel workbooks need fastexcel: pip install 'offrecord[excel]'") from None
    with zipfile.ZipFile(path) as packed:
        if sum(part.file_size for part in packed.infolist()) > _MOST_SHEET:
            raise InputError(f"{path} unpacks to more than {_MOST_SHEET >> 30} GiB")
    book = fastexcel.read_excel(path)
    cells = book.load_sheet(0, header_row=None, dtypes="string").to_polars()
    header, rows = cells.row(0), cells[1:]
    if len(book.sheet_names) != 1 or None in header or len(set(header)) < len(header):
        raise InputError(f"{path} must be a workbook of one sheet with a name over each column")
    rows.columns = list(header)
    filled: pl.DataFrame = rows.select(pl.when(pl.all() != "").then(pl.all()))
    return filled.with_columns(_days(filled[name]) for name in filled.columns)


def _days(cells: pl.Series) -> pl.Series:
    """A column of midnights as days: workbooks have no others."""
    are_days = cells.str.contains(r"^\d{4}-\d\d-\d\d 00:00:00$").all()
    return cells.str.head(10) if are_days and len(cells) else cells
