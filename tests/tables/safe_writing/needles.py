"""Values that only private records have, and where they would hide in a file or a frame."""

import base64
import gzip
import hashlib
import io
import json
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

NEEDLE = "NEEDLE-IN-HAYSTACK-0123"
NEEDLE_INT = 0x1EADBEEF123456  # below 2^53
NEEDLE_FLOAT = float.fromhex("0x1.eadbeef123456p+3")


def hash_of(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")


NEEDLES = [NEEDLE, hash_of(NEEDLE), hash_of(NEEDLE) / 4]


def frame_bytes(frame):
    """All bytes a released frame holds, whatever kind it is of."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        newest, oldest = io.BytesIO(), io.BytesIO()
        frame.write_ipc(newest)
        frame.write_ipc(oldest, compat_level=pl.CompatLevel.oldest())
        return newest.getvalue() + oldest.getvalue() + pickle.dumps(frame)
    if isinstance(frame, pd.DataFrame):
        masked = [frame[name].array for name in frame if hasattr(frame[name].array, "_mask")]
        under = b"".join(column._data.tobytes() + column._mask.tobytes() for column in masked)
        return under + buffers(pa.Table.from_pandas(frame)) + repr(frame.attrs).encode()
    if isinstance(frame, pa.Table):
        return repr(frame.schema.metadata).encode() + buffers(frame)
    return repr(frame.fetchall()).encode()


def buffers(frame):
    """The bytes of all buffers of a table of pyarrow, dictionaries and what stands under nulls
    included.
    """
    found = []

    def collect(array):
        found.extend(part.to_pybytes() for part in array.buffers() if part is not None)
        if isinstance(array, pa.ExtensionArray):
            collect(array.storage)
        if isinstance(array, pa.DictionaryArray):
            collect(array.dictionary)
        if isinstance(array, pa.StructArray):
            for i in range(array.type.num_fields):
                collect(array.field(i))
        if isinstance(array, (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray)):
            collect(array.values)

    for column in frame.columns:
        for chunk in column.chunks:
            collect(chunk)
    return b"".join(found)


def zstd_frames(content):
    """What every compressed stretch of a file holds: pages of Parquet, buffers of Arrow IPC."""
    for found in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), content):
        stream = pa.CompressedInputStream(pa.BufferReader(content[found.start() :]), "zstd")
        plain = bytearray()
        try:
            while piece := stream.read(1):
                plain += piece
        except (OSError, pa.ArrowException):
            pass  # what follows the frame is none
        yield bytes(plain)


def patterns(needles):
    for needle in needles:
        if isinstance(needle, str):
            yield needle.encode()
            yield from (
                base64.b64encode(b"..."[:shift] + needle.encode())[4:-4] for shift in range(3)
            )
        elif isinstance(needle, float):
            yield np.float64(needle).tobytes()
            yield repr(needle).encode()
        else:
            yield from (
                needle.to_bytes(8, "little"),
                needle.to_bytes(8, "big"),
                str(needle).encode(),
            )


def assert_no_needle(path, needles, *, columns=None):
    """No needle in a table file: not in its bytes, raw or unpacked, its buffers, dictionaries,
    statistics or metadata.
    """
    content = path.read_bytes()
    parts = {"the file": content}
    if path.suffix == ".gz":
        parts["unpacked"] = gzip.decompress(content)
    parts |= {f"compressed stretch {i}": part for i, part in enumerate(zstd_frames(content))}
    if path.suffix in (".gz", ".zst"):
        assert len(parts) > 1
    elif path.suffix == ".arrow":
        assert len(parts) > 1
        parts["buffers"] = buffers(pa.ipc.open_file(path).read_all())
    elif path.suffix == ".parquet":
        assert len(parts) > 1
        texts = [
            field.name for field in pq.read_schema(path) if pa.types.is_large_string(field.type)
        ]
        parts["buffers"] = buffers(pq.read_table(path, read_dictionary=texts))
        metadata = pq.read_metadata(path)
        parts["metadata"] = b"".join(
            base64.b64decode(value) for value in (metadata.metadata or {}).values()
        )
        for group in range(metadata.num_row_groups):
            for column in range(metadata.num_columns):
                statistics = metadata.row_group(group).column(column).statistics
                if statistics is not None and statistics.has_min_max:
                    assert statistics.min not in needles
                    assert statistics.max not in needles
    for name, part in parts.items():
        for pattern in patterns(needles):
            assert pattern not in part, f"{pattern} is in {name} of {path.name}"


def assert_whole_or_absent(out):
    """An output only with a certificate that matches it, and a report only of one that is there;
    what else is there is partial, hidden, and holds no needle.
    """
    certificate = out.with_name(out.name + ".certificate.json")
    report = out.with_name(out.name + ".report.html")
    if out.exists():
        content = json.loads(certificate.read_text())
        assert content["output"]["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    if report.exists():
        assert out.exists()
        assert report.read_text().endswith("</html>\n")
    for file in out.parent.iterdir():
        if file in (out, certificate, report):
            continue
        assert file.name.startswith(".")
        assert file.name.endswith(".partial")
        content = file.read_bytes()
        # there the needle is a label of the model
        if ".certificate." not in file.name and ".report." not in file.name:
            assert not any(
                NEEDLE.encode() in part for part in (content, *zstd_frames_start(content))
            )


def zstd_frames_start(content):
    """The first bytes of each compressed stretch, with texts if any."""
    for found in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), content):
        stream = pa.CompressedInputStream(
            pa.BufferReader(content[found.start() : found.start() + (1 << 20)]), "zstd"
        )
        plain = b""
        try:
            while len(plain) < 1 << 22 and (piece := stream.read(4096)):
                plain += piece
        except (OSError, pa.ArrowException):
            pass
        yield plain
