"""A value that only private records have is nowhere in what leaves."""

import numpy as np
import polars as pl
import pytest

from needles import NEEDLE, assert_no_needle
from twins import KINDS, MARKED, SUFFIX, table, twins, written


@pytest.mark.parametrize("first", [False, True], ids=["last label", "first label"])
@pytest.mark.parametrize("target", SUFFIX)
@pytest.mark.parametrize(
    "kind", ["int64", "uint64", "float64", "long text", "categorical", "enum", "dictionary"]
)
def test_no_needle_in_any_file(desk, kind, target, first):
    """A value that only private records have, though the model knows it, is nowhere in the table,
    as text, number or bytes.
    """
    labels = KINDS[kind].labels
    needle = labels[-1]
    codes = twins(3)[0]
    if first:
        labels = (labels[2], labels[0], labels[1])
    desk.release("one", table(kind, codes), "parquet", target, labels=labels)
    assert_no_needle(desk.folder / "one" / f"out{SUFFIX[target]}", [needle])


@pytest.mark.parametrize("how", ["--in-memory", "--stream"])
def test_no_needle_in_a_report(desk, how):
    """A value that the model does not know, in records that are redacted whatever it is."""
    frame = table("text", twins(3)[0])
    known = KINDS["text"].labels
    private = pl.Series(np.array(MARKED))
    frame = frame.with_columns(v=pl.when(private).then(pl.lit(NEEDLE)).otherwise(pl.col("v")))
    seen = desk.release("one", frame, "parquet", "csv", how, labels=known)
    found = [name for name, content in seen.items() if NEEDLE.encode() in content]
    assert found == []
    assert "out.csv.report.html" in seen


def test_the_needle_scan_finds_needles(desk, tmp_path):
    """The scan itself: it finds a needle in a table that holds one."""
    codes = twins(3)[0]
    for kind in ("int64", "float64", "long text"):
        for suffix in SUFFIX.values():
            path = tmp_path / f"{kind}{suffix}"
            frame = table(kind, codes)
            (
                frame.write_ipc(path, compression="zstd")
                if suffix == ".arrow"
                else written(frame, path)
            )
            with pytest.raises(AssertionError):
                assert_no_needle(path, [KINDS[kind].labels[-1]])
