"""CSV with other separators and encodings: read when that is said, named when it is not."""

import gzip
from pathlib import Path

import pytest

import offrecord as off
from hours import COLUMNS, EPSILON, MODEL, frame
from offrecord.tables.io.format import ReadOptions
from offrecord.tables.io.formats import read_list, table_file

ROOMS = ("café", "naïve; or not", "a|b\tc, d")
ENCODINGS = (
    "utf-8",
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "latin-1",
    "cp1252",
)


def content(separator=",", encoding="utf-8", rooms=ROOMS):
    return frame(rooms=rooms, shuffled=False).write_csv(separator=separator).encode(encoding)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_is_said_is_read(run, separator, encoding):
    """Table and private list alike; what leaves is UTF-8 with commas."""
    Path("plain.csv").write_bytes(content())
    run("redact", "plain.csv", output="expected.csv")
    Path("t.csv").write_bytes(content(separator, encoding))
    said = {"separator": {"\t": "tab"}.get(separator, separator), "encoding": encoding}
    run("redact", "t.csv", output="o.csv", **said)
    assert Path("o.csv").read_bytes() == Path("expected.csv").read_bytes()
    keys = frame(rooms=ROOMS, shuffled=False).filter("hidden").select("room", "hour")
    Path("keys.csv").write_bytes(keys.write_csv(separator=separator).encode(encoding))
    listed = {"private": None, "private_list": "keys.csv"}
    run("redact", "t.csv", output="p.csv", **said, **listed)
    assert Path("p.csv").read_bytes() == Path("expected.csv").read_bytes()
    frame(rooms=ROOMS).write_parquet("t.parquet")
    run("redact", "t.parquet", output="q.csv", **said, **listed)
    assert Path("q.csv").read_bytes() == Path("expected.csv").read_bytes()


def test_a_list_is_in_the_encoding_of_the_table_unless_it_has_a_mark(run):
    table = frame(rooms=("a", "b"))
    Path("t.csv").write_bytes(table.write_csv(separator=";").encode("utf-16"))
    table.filter("hidden").select("room", "hour").write_csv("keys.csv")
    said = {"separator": ";", "encoding": "utf-16"}
    run("redact", "t.csv", output="o.csv", **said)
    listed = {"private": None, "private_list": "keys.csv"}
    keys = Path("keys.csv").read_bytes()
    Path("keys.csv").write_bytes(b"\xef\xbb\xbf" + keys)
    run("redact", "t.csv", output="p.csv", force=True, **said, **listed)
    assert Path("p.csv").read_bytes() == Path("o.csv").read_bytes()
    # an even number of bytes would be some text in UTF-16, too
    for plain in (keys, keys.replace(b"\n", b"\r\n", 1)):
        Path("keys.csv").write_bytes(plain)
        with pytest.raises(AssertionError, match=r"^offrecord: keys\.csv "):
            run("redact", "t.csv", output="q.csv", **said, **listed)


def test_a_list_is_in_what_its_mark_or_the_option_says(tmp_path):
    path, packed = tmp_path / "l.csv", tmp_path / "l.csv.gz"
    text = "who,t\ncafé,1\n"
    for written, said in (
        ("utf-8", None),
        ("utf-8", "ascii"),
        ("utf-8-sig", "latin-1"),
        ("utf-16", None),
        ("utf-16", "latin-1"),
        ("utf-16-le", "utf-16-le"),
        ("latin-1", "latin-1"),
    ):
        path.write_bytes(text.encode(written))
        packed.write_bytes(gzip.compress(text.encode(written)))
        for file in (path, packed):
            assert read_list(file, ReadOptions(encoding=said)).row(0) == ("café", "1")
    path.write_text("who,t\na,1\n")
    assert read_list(path, ReadOptions(encoding="cp1252")).row(0) == ("a", "1")
    path.write_bytes("who,t\ncafé,1\n".encode("latin-1"))
    with pytest.raises(off.InputError, match="not in UTF-8: if it is in Latin-1"):
        read_list(path, ReadOptions())
    path.write_bytes(text.encode("utf-16-le") + b"\0")
    with pytest.raises(off.InputError, match="not in utf-16-le, or is damaged"):
        read_list(path, ReadOptions(encoding="utf-16-le"))


@pytest.mark.parametrize(
    ("written", "said"),
    {
        "semicolons": (content(";", rooms=("a",)), "separated by ';'; give separator=';'"),
        "tabs": (content("\t", rooms=("a",)), 'separated by tab; give separator="tab"'),
        "bars": (content("|", rooms=("a",)), "separated by '|'"),
        "semicolons and a comma": (content(";").replace(b"hour", b"h,our"), "separated by ';'"),
        "UTF-16": (content(encoding="utf-16"), 'is in UTF-16: give encoding="utf-16"'),
        "UTF-32": (content(encoding="utf-32"), 'is in UTF-32: give encoding="utf-32"'),
        "UTF-16, bare": (
            content(encoding="utf-16-be"),
            'without a mark: give encoding="utf-16-le"',
        ),
        "Latin-1": (content(encoding="latin-1"), "not in UTF-8: if it is in Latin-1"),
    }.values(),
)
def test_what_is_not_said_is_named(tmp_path, written, said):
    path = tmp_path / "t.csv"
    path.write_bytes(written)
    with pytest.raises(off.InputError, match=said.replace("|", r"\|")):
        table_file(path).read(["room", "hour", "state"])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (ReadOptions(separator=";;"), "separator must be one character"),
        (ReadOptions(separator='"'), "separator must be one character"),
        (ReadOptions(separator="e"), "separator must be one character"),
        (ReadOptions(separator="ä"), "separator must be one character"),
        (ReadOptions(encoding="klingon"), "encoding must be one such as"),
        (ReadOptions(encoding="rot13"), "encoding must be one such as"),
        (ReadOptions(encoding="cp037"), "has no column"),  # of another kind altogether
        (ReadOptions(encoding="ascii", separator=";"), "separated by"),
    ],
)
def test_what_is_said_wrongly(tmp_path, said, words):
    path = tmp_path / "t.csv"
    path.write_bytes(content("|", rooms=("a",)))
    with pytest.raises(off.InputError, match=words):
        table_file(path, said).read(["room", "hour", "state"])


def test_text_that_is_not_in_the_encoding_that_is_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(content(encoding="utf-16"))
    with pytest.raises(off.InputError, match="is in UTF-16"):
        table_file(path, ReadOptions(encoding="latin-1"))
    for cut in (1, 2):  # half a character, or its line end
        path.write_bytes(content(encoding="utf-16")[:-cut])
        with pytest.raises(off.InputError, match=r"is not in utf-16|middle of a line"):
            table_file(path, ReadOptions(encoding="utf-16")).read(["room"])
    path.write_bytes(content(encoding="latin-1").replace(b"\xe9", b"\x81"))
    with pytest.raises(off.InputError, match="is not in cp1252"):
        table_file(path, ReadOptions(encoding="cp1252")).read(["room"])


def test_tabs_by_the_ending(run):
    Path("plain.csv").write_bytes(content())
    run("redact", "plain.csv", output="expected.csv")
    Path("t.tsv").write_bytes(content("\t"))
    run("redact", "t.tsv", output="o.csv")
    assert Path("o.csv").read_bytes() == Path("expected.csv").read_bytes()
    run("redact", "t.tsv", output="p.csv", stream=True)
    assert Path("p.csv").read_bytes() == Path("expected.csv").read_bytes()


def test_python_files(tmp_path):
    """Part by part; what is not UTF-8 is read at once, and that is said."""
    (tmp_path / "out").mkdir()
    options = COLUMNS | {"private": "hidden", "model": MODEL, "epsilon": EPSILON}
    options |= {"dataset": "rooms", "key_file": tmp_path / "keys" / "key.json"}
    for name, separator in (("comma", ","), ("semicolon", ";")):
        (tmp_path / f"{name}.csv").write_bytes(content(separator))
        said = {} if separator == "," else {"separator": separator}
        off.redact_file(
            tmp_path / f"{name}.csv", tmp_path / "out" / f"{name}.csv", **options, **said
        )
    one, other = (tmp_path / "out" / f"{name}.csv" for name in ("comma", "semicolon"))
    assert one.read_bytes() == other.read_bytes()
    (tmp_path / "latin.csv").write_bytes(content(encoding="latin-1"))
    with pytest.raises(
        off.InputError, match="use redact instead of redact_file, or convert it first: iconv"
    ):
        off.redact_file(
            tmp_path / "latin.csv", tmp_path / "out" / "o.csv", encoding="latin-1", **options
        )
