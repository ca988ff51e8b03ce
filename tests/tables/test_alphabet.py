"""Values that a person declares, cuts or merges: the same in fit and in redact, in every engine."""

import json
import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord import cli
from offrecord.models.file import load_model
from offrecord.models.records import MISSING, UNKNOWN
from offrecord.tables.alphabet import Alphabet, Wanted, bin_labels
from offrecord.tables.engines import stream

NAMES = ["a", "b", "c", *(f"rare{i}" for i in range(70))]


def records(count, chains, seed=1):
    """Chains of numbers and names that hang together; the first chain has a private record."""
    random = np.random.default_rng(seed)
    rows = []
    for chain in range(chains):
        x, name = 0.0, "a"
        for t in range(count):
            x = 0.7 * x + random.normal()
            if random.random() < 0.5:
                shares = np.array([0.5, 0.3, 0.17, *[0.03 / 70] * 70])
                name = NAMES[random.choice(len(NAMES), p=shares / shares.sum())]
            rows.append((f"c{chain:02}", t, round(x, 2), name, chain == 0 and t == count // 2))
    return pl.DataFrame(rows, schema=["c", "t", "x", "name", "p"], orient="row")


TABLE = records(150, chains=8)
COLUMNS = {"order": "t", "by": "c", "private": "p"}
QUICK = {"mechanism": "window", "epsilon": 2.0, "dataset": "d", "exact_model": True}


def fitted(frame=TABLE, **wanted):
    return off.fit(frame, **COLUMNS, chain_order=1, **wanted)


def redacted(frame, model, value, tmp_path, **options):
    made = QUICK | {"key_file": tmp_path / "key.json", "accept": "another-release"} | options
    return off.redact(frame, **COLUMNS, value=value, model=model, **made).frame


# ---- bins


def bin_by_definition(x, bins, labels):
    """The label of a number: a cut belongs to the bin above it."""
    return labels[sum(cut <= x for cut in bins)]


@settings(max_examples=60, deadline=None)
@given(
    bins=st.lists(st.integers(-40, 40), min_size=1, max_size=5, unique=True).map(sorted),
    cells=st.lists(st.none() | st.integers(-500, 500), min_size=1, max_size=20),
    kind=st.sampled_from([pl.Float64, pl.String, pl.Decimal(10, 1)]),
)
def test_a_number_is_in_the_bin_whose_cuts_enclose_it(bins, cells, kind):
    bins = [cut / 10 for cut in bins]
    labels = bin_labels(bins)
    texts = [None if cell is None else f"{cell / 10:.1f}" for cell in cells]
    codes = Alphabet(labels, tuple(bins)).coded(pl.Series("x", texts, dtype=pl.String).cast(kind))
    for code, cell in zip(codes.tolist(), cells, strict=True):
        if cell is None:
            assert code == MISSING
        else:
            assert labels[code] == bin_by_definition(cell / 10, bins, labels)


def test_bins_say_which_ends_belong_to_them():
    assert bin_labels([0, 1.5, 3]) == (
        "under 0",
        "from 0 to under 1.5",
        "from 1.5 to under 3",
        "from 3",
    )
    # nothing that a spreadsheet would run
    assert bin_labels([-2, 1e-7]) == ("under -2", "from -2 to under 0.0000001", "from 0.0000001")


def test_what_is_no_number_is_unknown_in_bins():
    codes = Alphabet(bin_labels([0]), (0.0,)).coded(pl.Series(["1", "x", "nan", "inf", None, "-1"]))
    assert codes.tolist() == [1, UNKNOWN, UNKNOWN, UNKNOWN, MISSING, 0]


def test_a_model_file_carries_its_cuts(tmp_path):
    found = fitted(value="x", bins=[-1, 0.5])
    path = tmp_path / "m.json"
    found.model.save(path)
    labels = load_model(path).promise.labels
    assert labels == ("under -1", "from -1 to under 0.5", "from 0.5")
    out = redacted(TABLE, path, "x", tmp_path)
    assert out.schema["x"] == pl.String
    shown = 0
    for x, label in zip(TABLE["x"], out["x"], strict=True):
        assert label is None or label == bin_by_definition(x, [-1, 0.5], labels)
        shown += label is not None
    assert shown > 0.9 * len(TABLE)
    counts = Counter(bin_by_definition(x, [-1, 0.5], labels) for x in TABLE["x"][150:])
    assert found.values == dict(counts)


def test_cuts_that_are_not_those_of_the_labels_are_refused(tmp_path):
    found = fitted(value="x", bins=[-1, 0.5])
    content = found.model.to_dict()
    for bins in ([-1, 0.6], [0.5], [0.5, -1], ["a"], "0", [1e300], [True, 2]):
        changed = content | {"origin": content["origin"] | {"bins": bins}}
        path = tmp_path / "m.json"
        path.write_text(json.dumps(changed))
        with pytest.raises(off.InputError, match="bins"):
            redacted(TABLE, path, "x", tmp_path)
    changed = content | {"origin": content["origin"] | {"bins": None, "others": "rest"}}
    (tmp_path / "m.json").write_text(json.dumps(changed))
    with pytest.raises(off.InputError, match="rest"):
        redacted(TABLE, tmp_path / "m.json", "x", tmp_path)


@pytest.mark.parametrize(
    ("bins", "said"),
    [
        ([1, 0], "must rise"),
        ([0, 0], "must rise"),
        ([], "1 to 63"),
        ([float("nan")], "numbers"),
        (["0"], "numbers"),
        ([99], "from 99"),
        (list(range(64)), "1 to 63"),
    ],
)
def test_bins_that_cut_nothing_are_refused(bins, said):
    with pytest.raises(off.InputError, match=said):
        fitted(value="x", bins=bins)


def test_bins_cut_numbers_alone():
    with pytest.raises(off.InputError, match="bins cuts numbers"):
        fitted(value="name", bins=[0])
    truths = TABLE.with_columns(pl.col("x") > 0)
    with pytest.raises(off.InputError, match="bins cuts numbers"):
        fitted(truths, value="x", bins=[0])


# ---- rare values


def test_values_below_one_in_a_hundred_are_one():
    found = fitted(value="name", merge="rare")
    counts = Counter(TABLE["name"][150:])
    total = sum(counts.values())
    kept = {name for name, count in counts.items() if 100 * count >= total}
    assert set(found.posterior.labels) == kept | {"other"}
    rare = len(counts) - len(kept)
    assert f"{rare} rare values became one, 'other'" in found.warnings
    assert found.values["other"] == sum(counts[name] for name in set(counts) - kept)


def test_what_the_reference_never_showed_is_other_too(tmp_path):
    model = fitted(value="name", merge="rare").model
    cells = TABLE["name"].to_list()
    cells[300] = "never seen"
    frame = TABLE.with_columns(pl.Series("name", cells))
    out = redacted(frame, model, "name", tmp_path)
    assert out["name"][300] == "other"
    seen = {label for label in out["name"] if label is not None}
    assert seen == set(model.promise.labels)


@pytest.mark.parametrize("kind", [pl.Int64, pl.Float64, pl.String])
def test_numbers_are_the_same_values_however_they_are_written(kind, tmp_path):
    codes = pl.Series("v", [1, 2] * 700 + [7, 8, 9])
    frame = pl.DataFrame({"c": ["a"] * 701 + ["b"] * 702, "t": range(1403), "v": codes.cast(kind)})
    found = off.fit(frame, value="v", order="t", by="c", merge="rare", chain_order=1)
    assert found.posterior.labels == ("1", "2", "other")
    assert found.values == {"1": 700, "2": 700, "other": 3}


def test_merging_leaves_values_alone_where_fewer_than_two_are_rare():
    frame = TABLE.head(300).with_columns(pl.col("x") > 0)
    assert fitted(frame, value="x", merge="rare").posterior.labels == (False, True)


@pytest.mark.parametrize("count", [2, "3"])
def test_a_count_leaves_so_many_values(count):
    """All but the most frequent ones become one."""
    found = fitted(value="name", merge=count)
    reference = TABLE.filter(pl.col("c") != "c00")
    counts = reference["name"].value_counts(sort=True)
    kept = counts["name"].head(int(count) - 1).to_list()
    assert set(found.posterior.labels) == {*kept, "other"}
    assert found.values["other"] == counts["count"].sum() - counts["count"].head(len(kept)).sum()


def test_a_count_of_all_values_merges_none():
    frame = TABLE.filter(pl.col("name").is_in(["a", "b", "c"]))
    assert fitted(frame, value="name", merge=3).posterior.labels == ("a", "b", "c")
    for wrong in (1, 0, "2.5", 1000):
        with pytest.raises(off.InputError, match="merge must be rare, or a count"):
            fitted(value="name", merge=wrong)


def test_a_value_called_other_is_refused():
    frame = TABLE.with_columns(pl.col("name").replace("a", "other"))
    with pytest.raises(off.InputError, match="rename it"):
        fitted(frame, value="name", merge="rare")


def test_too_many_values_are_an_error_that_says_what_to_do():
    names = TABLE.with_columns(pl.col("name") + pl.col("t").cast(pl.String))
    with pytest.raises(off.InputError, match='merge="rare"') as text:
        fitted(names, value="name")
    assert "bins" not in str(text.value)
    with pytest.raises(off.InputError, match=r'bins.* merge="rare"'):
        fitted(value="x")


# ---- declared values


def test_declared_values_are_those_of_the_model_whether_they_occur_or_not():
    frame = TABLE.with_columns((pl.col("x") > 0).cast(pl.Int64))
    found = fitted(frame, value="x", values=["1", "0", "2"])
    assert found.posterior.labels == (0, 1, 2)
    assert found.values[2] == 0
    same = fitted(frame, value="x", values=[1, 0])
    assert same.model.to_dict() == fitted(frame, value="x").model.to_dict()


def test_values_that_were_not_declared_are_named():
    frame = TABLE.with_columns((pl.col("x").abs() * 2).floor().cast(pl.Int64))
    with pytest.raises(off.InputError, match=r"holds 2, 3, 4, 5, 6.* which values does not list"):
        fitted(frame, value="x", values=["0", "1"])


def test_undeclared_values_beside_private_records_are_not_named():
    names = [*(["secret"] * 150), *(["a", "b", "b"] * 350)]
    frame = TABLE.with_columns(pl.Series("name", names))
    assert fitted(frame, value="name", values=["a", "b"]).posterior.labels == ("a", "b")


@pytest.mark.parametrize(
    "values", [["a"], ["a", "a"], ["1", "1.0"], ["a", 1], [1.5, math.nan], ["", "a"], [None, 1]]
)
def test_lists_of_values_that_no_column_has_are_refused(values):
    with pytest.raises(off.InputError):
        Wanted.of(values, None, None)


def test_only_one_of_them_says_what_values_are():
    with pytest.raises(off.InputError, match="values and bins"):
        Wanted.of(["a", "b"], [1], None)
    with pytest.raises(off.InputError, match="merge must be rare"):
        Wanted.of(None, None, "some")
    model = fitted(value="x", bins=[0]).model
    with pytest.raises(off.InputError, match="merge are for fit=True"):
        off.redact(TABLE, **COLUMNS, **QUICK, value="x", model=model, bins=[0])


# ---- engines, and what a private cell holds


@pytest.mark.parametrize(
    ("value", "wanted"), [("x", {"bins": [-1, 0.5]}), ("name", {"merge": "rare"})]
)
@pytest.mark.parametrize("ending", ["csv", "parquet", "ndjson"])
def test_a_stream_gives_the_same_bytes(value, wanted, ending, tmp_path):
    model = fitted(value=value, **wanted).model
    options = QUICK | COLUMNS | {"value": value, "model": model, "accept": "another-release"}
    options["key_file"] = tmp_path / "keys" / "key.json"
    source = tmp_path / f"t.{ending}"
    getattr(TABLE, f"write_{ending}")(source)
    stream.redact_file(source, tmp_path / f"streamed.{ending}", **options)
    release = off.redact(TABLE, **options)
    release.write(tmp_path / f"held.{ending}")
    held, streamed = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("held", "streamed"))
    assert held == streamed


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("x", ["--bins", "-1,0.5"]), ("name", ["--merge", "rare"]), ("name", ["--values", "a,b,c"])],
)
@pytest.mark.parametrize("learned", [True, False])
def test_a_private_cell_tells_nothing(value, wanted, learned, tmp_path, capsys):
    frame = TABLE.select("c", "t", "p", value)
    if wanted[0] == "--values":
        known = pl.col("name").is_in(["a", "b", "c"])
        frame = frame.with_columns(pl.when(known).then("name").otherwise(pl.lit("a")).alias("name"))
    row = int(frame["p"].arg_max())
    said = []
    (tmp_path / "out").mkdir()
    described = [str(tmp_path / "t.csv"), "--value", value, "--order", "t", "--by", "c"]
    described += ["--private", "p"]
    learning = [*wanted, "--chain-order", "1"]
    key = ["--key-file", str(tmp_path / "keys" / "key.json")]
    for cell in (None, "0.7", "b", "rare9", "no such thing"):
        cells = frame[value].cast(pl.String).to_list()
        cells[row] = cell
        frame.with_columns(pl.Series(value, cells)).write_csv(tmp_path / "t.csv")
        model = ["--fit", *learning]
        if not learned:
            made = ["--model", str(tmp_path / "m.json")]
            arguments = ["fit", *described, *learning, "-o", made[1], "--force", *key]
            assert cli.main(arguments) == 0
            model = made
        asked = ["--epsilon", "2", "--dataset", "d", "--mechanism", "window", "--exact-model"]
        asked += [*key, "--force"]
        output = str(tmp_path / "out" / "o.csv")
        code = cli.main(["redact", *described, *model, *asked, "-o", output])
        files = {file.name: file.read_bytes() for file in sorted((tmp_path / "out").iterdir())}
        streams = capsys.readouterr()
        text = [line for line in streams.out.splitlines() if not line.startswith("time ")]
        noted = [line for line in streams.err.splitlines() if "new key" not in line]
        said.append((code, text, noted, files))
    assert said[0][0] == 0
    assert all(one == said[0] for one in said)


def test_rare_values_are_not_learned_beside_private_records():
    """Which they are follows from more than what leaves."""
    marked = TABLE.with_columns(p=pl.col("t") == 75)
    with pytest.raises(off.InputError, match="without a private record"):
        fitted(marked, value="name", merge="rare")
    assert len(fitted(marked, value="x", bins=[-1, 0.5]).posterior.labels) == 3
