"""Twins leave the same bytes as frames of every kind."""

import re

import polars as pl
import pytest

from explained import explained
from needles import NEEDLE, frame_bytes
from releasing import assert_same
from twins import FRAMES, KEYS, KINDS, LONG, TEXTS, model, redacted, table, twins


@pytest.mark.parametrize("backend", FRAMES)
@pytest.mark.parametrize(
    "kind", ["int64", "float64", "truth", "text", "long text", "categorical", "enum"]
)
def test_twin_frames(key, tmp_path, kind, backend):
    if backend == "duckdb" and kind in ("categorical", "enum"):
        pytest.skip("DuckDB has its own enumerations")
    labels = KINDS[kind].labels
    results = []
    for codes in twins(len(labels)):
        frame = FRAMES[backend](table(kind, codes, {"kept": ["x", None] * (len(KEYS) // 2)}))
        release = redacted(
            frame, model(labels), key_file=key, dataset=f"{kind} in {backend}", keep="kept"
        )
        path = tmp_path / f"{len(results)}.parquet"
        release.write(path)
        summary = {
            name: value for name, value in release.summary.to_dict().items() if name != "seconds"
        }
        results.append(
            {
                "frame": frame_bytes(release.frame),
                "certificate": release.certificate,
                "summary": summary,
                "explain": frame_bytes(explained(release)),
                "file": path.read_bytes(),
                "repr": (
                    ""
                    if backend in ("duckdb", "polars lazy")
                    else re.sub(r"seconds=[\d.e-]+", "", repr(release))
                ),
            }
        )
    assert_same(*results)


@pytest.mark.parametrize("kind", ["long text", "categorical", "enum"])
def test_twin_frames_whose_columns_share_memory(key, kind):
    """Chain names and values cut from one text, or that are categories of one set, share buffers in
    polars.
    """
    results = []
    for codes in twins(3):
        # few rows: polars tidies up memory of which much is wasted
        frame = (
            table("long text", codes)
            .head(LONG)
            .with_columns(id="a name longer than twelve bytes: " + pl.col("id"))
        )
        if kind == "long text":
            both = frame.with_columns(both=pl.concat_str("id", "v", separator="|"))
            size = len(frame["id"][0])
            frame = both.with_columns(
                id=pl.col("both").str.slice(0, size), v=pl.col("both").str.slice(size + 1)
            ).drop("both")
        elif kind == "categorical":
            own = pl.Categorical(pl.Categories(f"shared-{len(results)}"))
            frame = frame.with_columns(pl.col("v").cast(own), pl.col("id").cast(own))
        else:
            words = [
                *frame["id"].unique(maintain_order=True),
                "short",
                TEXTS[1],
                *([NEEDLE] if not results else []),
            ]
            frame = frame.with_columns(pl.col("id", "v").cast(pl.Enum(words)))
        frame = frame.with_columns(kept=pl.col("id"))
        release = redacted(frame, model(TEXTS), key_file=key, dataset=f"shared {kind}", keep="kept")
        results.append(
            {name: frame_bytes(release.frame.select(name)) for name in release.frame.columns}
        )
    assert_same(*results)
    for name in ("id", "t", "kept"):
        assert NEEDLE.encode() not in results[0][name]
