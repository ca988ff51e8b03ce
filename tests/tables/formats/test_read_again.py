"""Released files read by another library: a fault of our reader is not common to maker and
verifier.
"""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from hours import frame

READERS = {
    ".csv": lambda path: pa.csv.read_csv(
        path, convert_options=pa.csv.ConvertOptions(column_types={"state": pa.int64()})
    ),
    ".parquet": pa.parquet.read_table,
}


@pytest.mark.parametrize("ending", READERS)
def test_another_reader_sees_the_released_rows(redact, tmp_path, ending):
    (tmp_path / "out").mkdir()
    release = redact(frame())
    path = tmp_path / "out" / f"o{ending}"
    release.write(path)
    read = READERS[ending](path).to_pylist()
    shown = release.frame.to_dicts()
    assert read == shown
    assert 0 < sum(row["state"] is None for row in read) == release.summary.redacted
    private = frame().filter("hidden").select("room", "hour").rows()
    assert {(row["room"], row["hour"]) for row in read if row["state"] is None} >= set(private)
    inputs = {
        (room, hour): state for room, hour, state in frame().select("room", "hour", "state").rows()
    }
    assert all(row["state"] in (None, inputs[row["room"], row["hour"]]) for row in read)
