"""Released tables against their certificates: real ones pass, altered ones do not. What must be
found of a single altered cell is told by the release's own `explain`, for every cell and value.
"""

import gzip
import hashlib
import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
import table_files
from offrecord.release.certificate import Certificate
from offrecord.release.coins import Coins
from offrecord.release.keys import Key
from offrecord.verify.table import check_table, local
from offrecord.verify.table.channels import Channels

BINARY = [[0.9, 0.1], [0.3, 0.7]]
THREE = [[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]
HOURS = np.stack([[[1 - a, a], [0.3, 0.7]] for a in np.linspace(0.05, 0.4, 24)])
MODELS = {
    "two values": off.MarkovChain(BINARY),
    "text": off.MarkovChain(THREE, labels=["dry", "wet", "snow"]),
    "truth": off.MarkovChain(BINARY, labels=[False, True]),
    "decimals": off.MarkovChain(BINARY, labels=[0.5, 1.25]),
    "impossible steps": off.MarkovChain([[0.8, 0.2, 0], [0, 0.6, 0.4], [0.5, 0, 0.5]]),
    "a start": off.MarkovChain(BINARY, start=[1.0, 0.0]),
    "order 2": off.MarkovChain([BINARY, [[0.6, 0.4], [0.2, 0.8]]], order=2),
    "a set": off.MarkovChain(BINARY, box=off.Box.binary((0.08, 0.12), (0.25, 0.35))),
    "hours": off.PhasedChain("hour", HOURS, np.tile([0.75, 0.25], (24, 1)), zone="UTC"),
}
PRIVATE = {(0, 4), (1, 0), (2, 9), (2, 10), (2, 13), (4, 18), (5, 3)}
START = datetime(2026, 3, 1, 17, tzinfo=UTC)


def table(model, chains=6, n=19, private=PRIVATE, drop=(), empty=(), seed=3):
    """Chains of hours, in which some records are private, not there, or without a value."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "id": chain,
            "t": START + timedelta(hours=7 * chain + t),
            "v": None if (chain, t) in empty else model.labels[rng.integers(model.k)],
            "p": (chain, t) in private,
            "more": t % 3,
        }
        for chain in range(chains)
        for t in range(n)
        if (chain, t) not in drop
    ]
    return pl.DataFrame(rows)


class Released:
    """A release in a folder."""

    def __init__(self, folder, frame, model, ending=".parquet", **options):
        self.folder, self.key = folder, Key.new(folder / "key" / "key.json")
        chosen = {
            "value": "v",
            "order": "t",
            "by": "id",
            "step": "1h",
            "epsilon": 1.0,
            "mechanism": "window",
            "dataset": "d",
            "publish_positions": True,
            "accept_model": True,
            "design_minutes": 1000,
        }
        chosen |= options
        if "private_list" not in chosen:
            chosen["private"] = "p"
        self.release = off.redact(frame, model=model, key_file=self.key.file, **chosen)
        self.path = folder / f"out{ending}"
        self.release.write(self.path)
        written = (folder / f"{self.path.name}.certificate.json").read_bytes()
        self.certificate = Certificate.from_json(written)

    def found(self, private_list=None, key=False):
        key_file = self.key.file if key else None
        return check_table(self.certificate, self.path, private_list, key_file)

    def altered(self, frame):
        """The same certificate about other rows, as its SHA-256 says."""
        there = self.folder / f"altered{table_files.ending_of(self.path)}"
        table_files.write(frame, there)
        digest = hashlib.sha256(there.read_bytes()).hexdigest()
        output = replace(self.certificate.output, sha256=digest)
        return replace(self.certificate, output=output), there

    def problems(self, frame, key=False):
        certificate, there = self.altered(frame)
        key_file = self.key.file if key else None
        return check_table(certificate, there, None, key_file).problems

    @property
    def frame(self):
        return pl.read_parquet(self.path)


def with_cell(frame, row, value):
    values = frame["v"].to_list()
    values[row] = value
    return frame.with_columns(pl.Series("v", values, dtype=frame["v"].dtype))


# ---- what is released verifies


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        *((name, mechanism) for name in MODELS for mechanism in ("window", "owner")),
        ("two values", "best-local"),
        ("a set", "best-local"),
    ],
)
def test_a_release_of_every_kind_verifies(name, mechanism, tmp_path):
    model = MODELS[name]
    released = Released(tmp_path, table(model), model, mechanism=mechanism)
    found = released.found(key=True)
    assert found.problems == []
    assert any(str(len(PRIVATE)) in one for one in found.checked)
    assert released.found().problems == []


@pytest.mark.parametrize("protect", ["run", "each"])
@pytest.mark.parametrize("mechanism", ["window", "best-local", "owner"])
def test_so_does_one_with_gaps_and_missing_values(mechanism, protect, tmp_path):
    model = MODELS["two values"]
    drop = {(0, 6), (0, 7), (1, 2), (2, 11), (4, 3), (5, 9)}
    empty = {(0, 9), (2, 12), (3, 3), (3, 4), (5, 4)}
    frame = table(model, drop=drop, empty=empty)
    released = Released(tmp_path, frame, model, mechanism=mechanism, protect=protect)
    assert released.certificate.counts.missing == len(empty)
    assert released.found(key=True).problems == []


@pytest.mark.parametrize("ending", table_files.ENDINGS)
def test_every_format_is_read(ending, tmp_path):
    for name in ("two values", "text", "truth", "decimals"):
        folder = tmp_path / name
        folder.mkdir()
        model = MODELS[name]
        released = Released(folder, table(model), model, ending, keep="more")
        assert released.found(key=True).problems == [], name


@pytest.mark.parametrize(
    ("step", "orders"),
    [
        (None, range(3, 60, 3)),
        ("3", range(3, 60, 3)),
        ("1d", [date(2026, 3, 20) + timedelta(days=t) for t in range(19)]),
        ("1mo", [date(2026 + t // 12, t % 12 + 1, 1) for t in range(19)]),
        ("1mo", [f"{2026 + t // 12}-{t % 12 + 1:02}" for t in range(19)]),
    ],
    ids=str,
)
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_order_values_of_every_kind(step, orders, ending, tmp_path):
    model = MODELS["two values"]
    every = list(orders)
    frame = table(model).with_columns(t=pl.Series([every[i % 19] for i in range(6 * 19)]))
    released = Released(tmp_path, frame, model, ending, step=step)
    assert released.found(key=True).problems == []


def test_days_are_those_of_the_calendar(tmp_path):
    model = MODELS["two values"]
    noon = datetime(2026, 3, 20, 12)
    days = pl.Series([noon + timedelta(days=t % 19) for t in range(6 * 19)])
    frame = table(model).with_columns(t=days.dt.replace_time_zone("Europe/Berlin"))
    for ending in (".csv", ".parquet"):
        folder = tmp_path / ending
        folder.mkdir()
        released = Released(folder, frame, model, ending, step="1d")
        assert released.certificate.columns.zone == "Europe/Berlin"
        assert released.found(key=True).problems == []


def test_order_by_row_and_by_decimals(tmp_path):
    model = MODELS["two values"]
    frame = table(model).drop("t").with_columns(t=pl.int_range(pl.len()).over("id") / 10)
    for name, options in {
        "row": {"order": "row", "step": None},
        "decimals": {"order_unit": 0.1, "step": "1"},
        "one chain": {"by": None, "single_chain": True, "order": "row", "step": None},
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        released = Released(folder, frame, model, ".csv", **options)
        assert released.found(key=True).problems == [], name


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".ndjson", ".xlsx"])
def test_names_of_chains_of_every_type(ending, tmp_path):
    """Coins know truth values and times from text, which some formats do not."""
    model = MODELS["two values"]
    frame = table(model, chains=2, private={(0, 4), (1, 9)})
    for name, names in {
        "truth": [False, True],
        "days": [date(2026, 1, 1), date(2026, 2, 1)],
        "text": ["a", "b c"],
        "numbers as text": ["7", "12"],
        "some of them": ["7", "x"],
        "large": [2**62, 2**62 + 2**61],
    }.items():
        if (name, ending) == ("large", ".xlsx"):
            continue
        folder = tmp_path / name
        folder.mkdir()
        named = frame.with_columns(pl.Series("id", [names[i] for i in frame["id"]]))
        released = Released(folder, named, model, ending)
        assert released.found(key=True).problems == [], name


@pytest.mark.parametrize("form", ["records", "ranges", "chains"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_private_list_of_every_form(form, ending, tmp_path):
    model, drop = MODELS["two values"], {(2, 11), (0, 5)}
    frame = table(model, drop=drop)
    times = {key: START + timedelta(hours=7 * key[0] + key[1]) for key in [(0, 5), (2, 9), (2, 12)]}
    listed = {
        "records": {"id": [0, 2], "t": [times[0, 5], times[2, 9]]},
        "ranges": {"id": [0, 2], "from": [None, times[2, 9]], "to": [times[0, 5], times[2, 12]]},
        "chains": {"id": [3, 5]},
    }
    path = table_files.write(pl.DataFrame(listed[form]), tmp_path / f"list{ending}")
    options = {"private_list": str(path), "publish_positions": False}
    released = Released(tmp_path, frame, model, **options)
    found = released.found()
    assert found.problems == []
    assert any("private list" in one for one in found.not_checked)
    assert released.found(path, key=True).problems == []
    other = pl.DataFrame({"id": [1], "t": [START + timedelta(hours=7)]})
    table_files.write(other, tmp_path / "other.csv")
    problems = released.found(tmp_path / "other.csv", key=True).problems
    assert any("counts.private" in one for one in problems)
    assert any("private.digest" in one for one in problems)


@pytest.mark.parametrize("mechanism", ["window", "best-local", "owner"])
def test_chains_that_were_dropped_are_named_in_vain(mechanism, tmp_path):
    model = MODELS["two values"]
    path = table_files.write(pl.DataFrame({"id": [3, 5]}), tmp_path / "list.csv")
    frame = table(model)
    released = Released(
        tmp_path, frame, model, private="p", private_list=str(path), drop=True, mechanism=mechanism
    )
    assert released.certificate.counts.chains == 4
    assert released.found(key=True).problems == []


@settings(max_examples=30)
@given(data=st.data())
def test_dense_secrets_at_random(data, tmp_path_factory):
    """Whatever lies near whatever, nothing that was released is called a problem."""
    folder = tmp_path_factory.mktemp("dense")
    model = MODELS[data.draw(st.sampled_from(["two values", "text", "a set"]))]
    places = st.sets(st.tuples(st.integers(0, 1), st.integers(0, 29)), max_size=14)
    private = data.draw(places.filter(len))
    drop = data.draw(places) - {(0, 0), (1, 0)} - private
    empty = data.draw(places) - drop - private
    frame = table(model, 2, 30, private, drop, empty, data.draw(st.integers(0, 9)))
    released = Released(
        folder,
        frame,
        model,
        mechanism=data.draw(st.sampled_from(["window", "best-local", "owner"])),
        protect=data.draw(st.sampled_from(["run", "each"])),
    )
    assert released.found(key=True).problems == []
    assert released.found().problems == []


# ---- what is altered does not


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        ("two values", "window"),
        ("two values", "3r-constant"),
        ("two values", "best-local"),
        ("text", "best-local"),
        ("a start", "window"),
        ("order 2", "window"),
    ],
)
def test_every_altered_cell_is_found_that_the_rule_rules_out(name, mechanism, tmp_path):
    """By the redaction probabilities that the release itself explains."""
    model = MODELS[name]
    rows = table(model, 2, 14, {(0, 4), (1, 0), (1, 8)})
    released = Released(tmp_path, rows, model, mechanism=mechanism)
    assert released.certificate.designs.kind == "local"
    frame, rule = released.frame, released.release.explain()
    columns = [rule[f"Pr(redacted | {label})"].to_numpy() for label in model.labels]
    chances, is_private = np.stack(columns, axis=1), (rule["region"] == "private").to_list()
    values = frame["v"].to_list()
    for row, value in enumerate(values):
        for code, label in enumerate([*model.labels, None]):
            if label == value and (label is None) == (value is None):
                continue
            problems = released.problems(with_cell(frame, row, label))
            if label is None:
                expected = chances[row].max() == 0
            else:
                expected = is_private[row] or chances[row, code] == 1
            assert bool(problems) == bool(expected), (row, value, label, problems)


@pytest.mark.parametrize("mechanism", ["window", "3r-constant", "best-local"])
def test_with_the_key_every_draw_counts(mechanism, tmp_path):
    """Each cell as it was decided is right, any other decision about the same value is wrong."""
    model = MODELS["two values"]
    input_ = table(model, chains=3, private={(0, 6), (1, 9), (2, 0)})
    released = Released(tmp_path, input_, model, mechanism=mechanism)
    frame, rule = released.frame, released.release.explain()
    original = input_.sort("id", "t")["v"].to_list()
    columns = [rule[f"Pr(redacted | {label})"].to_numpy() for label in model.labels]
    chances, is_private = np.stack(columns, axis=1), (rule["region"] == "private").to_list()
    coins = Coins(released.key.secret, "d", "v")
    for row, value in enumerate(frame["v"].to_list()):
        if value is None and not is_private[row]:
            shown = released.problems(with_cell(frame, row, original[row]), key=True)
            assert shown, "a value that its draw redacts"
        elif value is not None and chances[row].max() < 1:
            problems = released.problems(with_cell(frame, row, None), key=True)
            chain = (1).to_bytes() + (16).to_bytes(8, "little") + row_of(frame, row, "id")
            tag = coins.chain_tags([chain])
            order = np.array([int(frame["t"][row].timestamp()) * 10**9])
            draw = int(coins.draw(tag, order, 2)[0])
            could_be = any(draw < int(np.ceil(q * 2.0**64)) for q in chances[row].tolist())
            assert bool(problems) == (not could_be)


def row_of(frame, row, name):
    return int(frame[name][row]).to_bytes(16, "little")


def test_near_secrets_by_whatever_may_act(tmp_path):
    model = MODELS["two values"]
    frame = table(model, 2, 24, {(0, 8), (0, 11), (0, 12)})
    released = Released(tmp_path, frame, model, mechanism="best-local")
    assert released.certificate.designs.kind == "clustered"
    found = released.found(key=True)
    assert found.problems == []
    assert any("several designs" in one for one in found.not_checked)
    rows, rule = released.frame, released.release.explain()
    chances = np.stack([rule[f"Pr(redacted | {x})"].to_numpy() for x in (0, 1)], axis=1)
    for row, chance in enumerate(chances.tolist()):
        if rule["region"][row] == "private":
            assert released.problems(with_cell(rows, row, 0))
        elif chance == [0, 0]:
            assert released.problems(with_cell(rows, row, None))


def test_groups_of_near_secrets_together_as_one_by_one(tmp_path, monkeypatch):
    """What layouts of all groups at once come to is what each group's own come to."""
    rng, model = np.random.default_rng(4), MODELS["two values"]
    private = {(chain, t) for chain in range(12) for t in rng.choice(60, 7, replace=False).tolist()}
    released = Released(tmp_path, table(model, 12, 60, private), model, mechanism="best-local")
    values = released.frame["v"].to_list()
    for row in rng.choice(len(values), 40, replace=False).tolist():
        values[row] = None if values[row] is not None else 0
    altered = released.frame.with_columns(pl.Series("v", values, dtype=released.frame["v"].dtype))
    together, seen = local._explained, []

    def compared(judge, ways, groups, costs):
        high = np.full_like(costs, 2**60)  # every group, and each is explained better than that
        found, verdict = together(judge, ways, groups, high)
        alone = [
            together(judge, ways, groups, np.where(np.arange(len(costs)) == one, high, 0))
            for one in range(len(costs))
        ]
        assert found.tolist() == [one for each, _ in alone for one in each.tolist()]
        for name in ("shown", "drawn", "idle", "told"):
            rows = sorted(row for _, one in alone for row in getattr(one, name).tolist())
            assert sorted(getattr(verdict, name).tolist()) == rows
            seen.append((name, len(rows)))
        assert len(set(groups.chain.tolist())) < len(found)  # several in a chain
        return together(judge, ways, groups, costs)

    monkeypatch.setattr(local, "_explained", compared)
    assert released.problems(altered, key=True)
    assert {name for name, count in seen if count} == {"shown", "drawn", "idle"}


@pytest.mark.parametrize("name", ["two values", "text", "order 2", "a set", "a start"])
def test_an_owners_table_whose_stretches_no_walk_leaves(name, tmp_path):
    model = MODELS[name]
    frame = table(model, 3, 40, {(0, 20), (1, 10), (1, 30)})
    released = Released(tmp_path, frame, model, mechanism="owner")
    assert released.found(key=True).problems == []
    rows = released.frame
    values = rows["v"].to_list()
    far = [row for row in range(len(values)) if row // 40 == 2 or row % 40 in (0, 39)]
    for row in far:
        if values[row] is not None:
            assert released.problems(with_cell(rows, row, None)), row
    for row in (20, 50, 70):
        assert released.problems(with_cell(rows, row, model.labels[0]))
    # a hole in what is released, and one record alone in what is redacted
    gone = [row for row in range(40) if values[row] is None]
    if len(gone) > 3 * model.order:
        assert released.problems(with_cell(rows, gone[1], model.labels[0]))


def test_stops_between_levels(tmp_path):
    """Levels that are moved make stops that are none."""
    model = MODELS["two values"]
    frame = table(model, 6, 60, {(chain, 30) for chain in range(6)})
    released = Released(tmp_path, frame, model, mechanism="owner")
    content = json.loads(released.certificate.to_json())
    for stopping in content["designs"]["stoppings"]:
        for one in [*stopping["sides"], *([stopping["pair"]] if stopping["pair"] else [])]:
            one["levels"] = [7 * level + 20 for level in one["levels"]]
    moved = Certificate.from_json(json.dumps(content))
    assert check_table(moved, released.path).problems


def test_values_rows_and_columns(tmp_path):
    model = MODELS["text"]
    released = Released(tmp_path, table(model), model, keep="more")
    rows = released.frame
    free = rows["v"].is_not_null().arg_true()[-1]
    gone = rows["v"].is_null().arg_true()[0]
    assert "label" in released.problems(with_cell(rows, free, "hail"))[0]
    for altered, said in (
        (rows.tail(-1), "counts.rows"),
        (pl.concat([rows, rows.tail(1).with_columns(id=pl.lit(9, pl.Int64))]), "counts.rows"),
        (pl.concat([rows, rows.tail(1)]), "same order value"),
        (rows.reverse(), "sorted"),
        (rows.select("t", "id", "v", "more"), "columns"),
        (rows.drop("more"), "columns"),
        (rows.drop("t"), "columns"),
        (rows.with_columns(t=pl.col("t").dt.offset_by("20m")).tail(-1), "counts.rows"),
        (rows.with_columns(more=pl.Series(range(len(rows)))), "kept cell"),
        (rows.with_columns(id=pl.col("id") // 5), "sorted"),
        (rows.filter(pl.col("id") > 0), "counts.chains"),
        (rows.head(0), "no rows"),
    ):
        problems = released.problems(altered)
        assert any(said in one for one in problems), (said, problems)
        assert all("\n" not in one for one in problems)
    assert released.problems(rows) == []
    assert gone in rows["v"].is_null().arg_true()


def test_another_file_and_another_key(tmp_path):
    model = MODELS["two values"]
    released = Released(tmp_path, table(model), model)
    other = tmp_path / "other.parquet"
    table_files.write(released.frame.with_columns(pl.col("id") + 0), other)
    problems = check_table(replace(released.certificate), other).problems
    assert any("SHA-256" in one for one in problems) == (
        other.read_bytes() != released.path.read_bytes()
    )
    (tmp_path / "altered.parquet").write_bytes(released.path.read_bytes() + b" ")
    key = Key.new(tmp_path / "another" / "key.json")
    found = check_table(released.certificate, released.path, None, key.file)
    assert any("key_id" in one for one in found.problems)
    wrong = replace(released.certificate, key_id=key.id)
    problems = check_table(wrong, released.path, None, key.file).problems
    assert any("private.digest" in one for one in problems)


def test_many_problems_are_counted(tmp_path):
    model = MODELS["two values"]
    frame = table(model, 40, 30, {(chain, 15) for chain in range(40)})
    released = Released(tmp_path, frame, model)
    rows = released.frame.with_columns(pl.col("v").fill_null(0))
    problems = released.problems(rows)
    assert len(problems) < 60
    assert any("30 more: a private value is released" in one for one in problems)


def test_counts_that_are_not_so(tmp_path):
    model = MODELS["two values"]
    released = Released(tmp_path, table(model), model)
    for name in ("missing", "private", "secrets", "chains", "rows"):
        counts = released.certificate.counts
        other = replace(counts, **{name: getattr(counts, name) + 1000})
        problems = check_table(replace(released.certificate, counts=other), released.path).problems
        assert any(f"counts.{name}" in one for one in problems), name
    designs = released.certificate.designs
    first = replace(designs.designs[0], uses=designs.designs[0].uses + 1)
    other = replace(designs, designs=(first, *designs.designs[1:]))
    problems = check_table(replace(released.certificate, designs=other), released.path).problems
    assert any("uses" in one for one in problems)


def test_a_secret_that_no_design_serves(tmp_path):
    model = MODELS["two values"]
    released = Released(tmp_path, table(model), model)
    designs = released.certificate.designs
    fewer = replace(released.certificate, designs=replace(designs, designs=designs.designs[1:]))
    problems = check_table(fewer, released.path).problems
    assert any("no design" in one for one in problems)


def test_a_design_that_does_not_end_within_its_room(tmp_path):
    """In a larger room than it was made for it must rest, or release the next record (F14)."""
    model = MODELS["two values"]
    released = Released(tmp_path, table(model, 1, 200, {(0, 100)}), model)
    content = json.loads(released.certificate.to_json())
    (design,) = content["designs"]["designs"]
    content["designs"]["sides"].append([[design["left"], [0.5, 0.5]]])
    design["redaction_left"] = len(content["designs"]["sides"]) - 1
    problems = check_table(Certificate.from_json(json.dumps(content)), released.path).problems
    assert any("no design" in one for one in problems)


# ---- what cannot be read


def said_of(*files):
    """The problems, or the one line that says what cannot be read."""
    try:
        said = check_table(*files).problems
    except off.InputError as error:
        said = [str(error)]
    return said if not any("\n" in line for line in said) else []


@pytest.mark.parametrize("ending", table_files.ENDINGS)
def test_broken_files_are_one_line(ending, tmp_path):
    model = MODELS["two values"]
    released = Released(tmp_path, table(model), model, ending)
    content = released.path.read_bytes()
    contents = [b"", b"\0" * 100, content[: len(content) // 2], content[::-1], b"\xff\xfe\n" * 9]
    for at, broken in enumerate(contents):
        released.path.write_bytes(broken)
        assert said_of(released.certificate, released.path), at
    released.path.unlink()
    with pytest.raises(off.InputError, match="does not exist"):
        released.found()


def test_other_things_that_cannot_be_read(tmp_path):
    model = MODELS["two values"]
    released = Released(tmp_path, table(model), model)
    with pytest.raises(off.InputError, match="dry run"):
        check_table(replace(released.certificate, output=None), released.path)
    with pytest.raises(off.InputError, match="folder"):
        check_table(released.certificate, tmp_path)
    for content in (b"", b"{}", b"[1]", b'{"key": 3}', b'{"key": "00"}', b"\xff"):
        (tmp_path / "bad.json").write_bytes(content)
        with pytest.raises(off.InputError, match="not a key file"):
            check_table(released.certificate, released.path, None, tmp_path / "bad.json")
    for text in ("", "x\n1\n", "id\n\n", "id,t\n0,\n", "id,t\n0,never\n", "id,from,to\n0,2,1\n"):
        (tmp_path / "bad.csv").write_text(text)
        assert said_of(released.certificate, released.path, tmp_path / "bad.csv"), text
    with pytest.raises(off.InputError, match="does not exist"):
        check_table(released.certificate, released.path, tmp_path / "none.csv")


def test_labels_that_are_text_among_numbers(tmp_path):
    """No cell is such a label, whatever the column holds."""
    model = MODELS["decimals"]
    for ending in (".csv", ".parquet"):
        released = Released(tmp_path / ending, table(model), model, ending=ending)
        certificate = released.certificate
        labelled = replace(certificate, model=replace(certificate.model, labels=("", 1.25)))
        assert any("label" in line for line in said_of(labelled, released.path))


def test_a_folder_of_files(tmp_path):
    model = MODELS["two values"]
    released = Released(tmp_path, table(model), model)
    folder = tmp_path / "several"
    folder.mkdir()
    rows = released.frame
    files = {}
    for at, part in enumerate((rows.tail(60), rows.head(-60))):
        path = folder / f"part-{at}.parquet"
        part.write_parquet(path)
        files[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "_SUCCESS").write_bytes(b"")
    output = replace(released.certificate.output, sha256=None, files=files)
    certificate = replace(released.certificate, output=output)
    assert check_table(certificate, folder, None, released.key.file).problems == []
    (folder / "more.parquet").write_bytes((folder / "part-0.parquet").read_bytes())
    assert any("does not name" in one for one in check_table(certificate, folder).problems)
    (folder / "more.parquet").unlink()
    (folder / "part-1.parquet").unlink()
    assert any("not there" in one for one in check_table(certificate, folder).problems)


def test_text_that_is_packed_under_another_name(tmp_path):
    model = MODELS["two values"]
    released = Released(tmp_path, table(model), model, ".csv.gz")
    plain = gzip.decompress(released.path.read_bytes())
    assert released.found().problems == []
    (tmp_path / "plain.csv").write_bytes(plain)
    problems = check_table(released.certificate, tmp_path / "plain.csv").problems
    assert len(problems) == 1
    assert "SHA-256" in problems[0]


# ---- what clusters hide


def leakage_through(kernel, budget):
    """By all sets of values."""
    k, gain, worst = len(kernel), np.expm1(budget), 0.0
    for number in range(2**k):
        chosen = (number >> np.arange(k)) & 1 == 1
        told = np.log(kernel[:, chosen].sum(axis=1) * gain + 1)
        worst = max(worst, told.max() - told.min())
    return worst


@settings(max_examples=40)
@given(st.integers(0, 12), st.integers(0, 12), st.floats(0.05, 2), st.floats(0.05, 2))
def test_budgets_through_channels(left, right, one, other):
    P = np.array(THREE)
    chain = off.MarkovChain(THREE)
    start = chain.start
    back = (start[:, None] * P / start).T
    told = leakage_through(np.linalg.matrix_power(back, left), one)
    told += leakage_through(np.linalg.matrix_power(P, right), other)
    channels = _channels()
    assert channels.keeps([(left, right)], (one, other), told + 1e-9)
    assert not channels.keeps([(left, right)], (one, other), told - 1e-9)


@cache
def _channels():
    frame = table(off.MarkovChain(THREE), 1, 20, {(0, 9)})
    options = {"value": "v", "order": "t", "by": "id", "private": "p", "epsilon": 1.0}
    release = off.redact(
        frame,
        **options,
        model=off.MarkovChain(THREE),
        dataset="d",
        mechanism="window",
        dry_run=True,
        accept_model=True,
    )
    return Channels(Certificate.from_json(json.dumps(release.certificate)).model)


def test_nothing_of_the_design_side_is_imported():
    folder = Path(off.__file__).parent / "verify" / "table"
    # parquet: which files the table engine survives, from their bytes alone
    ground = ("offrecord.errors", "offrecord.parquet")
    allowed = (*ground, "offrecord.release.certificate", "offrecord.verify")
    for path in folder.glob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip().startswith(("from offrecord", "import offrecord")):
                assert line.split()[1].startswith(allowed), (path.name, line)
