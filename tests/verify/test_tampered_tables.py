"""Tables and certificates that break the promise, made to go together: none of them verifies."""

import hashlib
from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest

import offrecord as off
import table_files
from offrecord.verify.document import disagreements
from offrecord.verify.table import check_table
from test_table import MODELS, PRIVATE, START, Released, table

pytestmark = pytest.mark.usefixtures("known_keys")


def listed(tmp_path, records):
    """A private list of some records."""
    path = tmp_path / "list.csv"
    hours = [START + timedelta(hours=7 * chain + t) for chain, t in records]
    frame = pl.DataFrame({"id": [chain for chain, _ in records], "t": hours})
    frame.with_columns(pl.col("t").dt.to_string("iso:strict")).write_csv(path)
    return path


@pytest.mark.parametrize("mechanism", ["window", "owner"])
@pytest.mark.parametrize("step", ["1h", None])
def test_a_private_row_that_is_gone(mechanism, step, tmp_path):
    """Whoever removes a private row, and denies that it was private, is found by the list; with a
    step its place is still there.
    """
    model = MODELS["two values"]
    rest = PRIVATE - {(4, 18)}
    frame = table(model, private=rest, drop={(4, 18)})
    released = Released(tmp_path, frame, model, mechanism=mechanism, step=step)
    assert released.found().problems == []
    problems = released.found(listed(tmp_path, sorted(PRIVATE))).problems
    assert any("name records that their chains do not have" in one for one in problems)


def test_so_are_ranges_that_hold_nothing(tmp_path):
    model = MODELS["two values"]
    released = Released(tmp_path, table(model), model)
    path = tmp_path / "ranges.csv"
    path.write_text("id,from,to\n0,2027-01-01T00:00:00Z,2027-02-01T00:00:00Z\n")
    problems = released.found(path).problems
    assert any("name records that their chains do not have" in one for one in problems)


@pytest.mark.parametrize(
    ("labels", "cells"),
    [((0, 1), ["1", "1.0", "01"]), ((False, True), ["True", "true"]), ((0.5, 1.0), ["1", "1.0"])],
)
def test_values_that_are_written_in_several_ways(labels, cells, tmp_path):
    """How a value is written could tell what another one is."""
    model = off.MarkovChain(model_rows(), labels=list(labels))
    released = Released(tmp_path, table(model), model, ending=".csv")
    rows = pl.read_csv(released.path, infer_schema=False)
    assert released.problems(rows) == []
    values, wanted = rows["v"].to_list(), iter(cells * 99)
    plain = {cell.lower() for cell in cells} | {str(labels[1]).lower()}
    values = [next(wanted) if v is not None and v.lower() in plain else v for v in values]
    problems = released.problems(rows.with_columns(pl.Series("v", values)))
    assert any("in several ways" in one for one in problems)


def test_zeros_with_and_without_a_sign(tmp_path):
    model = off.MarkovChain(model_rows(), labels=[0.0, 1.5])
    released = Released(tmp_path, table(model), model)
    rows = released.frame
    first = rows["v"].eq(0.0).fill_null(False).arg_true()[0]
    values = rows["v"].to_list()
    values[first] = -0.0
    problems = released.problems(rows.with_columns(pl.Series("v", values)))
    assert any("in several ways" in one for one in problems)


def model_rows():
    return [[0.9, 0.1], [0.3, 0.7]]


def test_a_model_of_another_step(tmp_path):
    """Half the step makes every distance twice as long, for the same kernel."""
    model = MODELS["two values"]
    reference = table(model, chains=30, n=60, private=set())
    fitted = off.fit(reference, value="v", order="t", by="id", step="1h").model
    released = Released(tmp_path, table(model), fitted)
    assert list(disagreements(released.certificate)) == []
    for name, value in (("step", "30m"), ("order", "integer"), ("unit", "0.1")):
        learned = replace(released.certificate.learned, **{name: value})
        problems = list(disagreements(replace(released.certificate, learned=learned)))
        assert any(f"learned.{name}" in one for one in problems), name
    same = replace(released.certificate.learned, step="60m")
    assert list(disagreements(replace(released.certificate, learned=same))) == []


@pytest.mark.parametrize("mechanism", ["best-local", "owner"])
def test_designs_serve_as_many_secrets_as_they_say(mechanism, tmp_path):
    model = MODELS["two values"]
    near = {(chain, t) for chain in range(6) for t in (3, 6, 12)}
    released = Released(tmp_path, table(model, private=near), model, mechanism=mechanism)
    assert released.found().problems == []
    designs = released.certificate.designs
    listed_designs = list(designs.designs)
    several = len(listed_designs) > 1
    first, last = listed_designs[0], listed_designs[-1]
    moved = 1000 if not several else first.uses
    listed_designs[0] = replace(first, uses=first.uses - moved if several else first.uses + moved)
    if several:
        listed_designs[-1] = replace(last, uses=last.uses + moved)
    lies = replace(designs, designs=tuple(listed_designs))
    problems = check_table(replace(released.certificate, designs=lies), released.path).problems
    assert any("uses" in one for one in problems)


def test_files_that_programs_pass_over(tmp_path):
    model = MODELS["two values"]
    released = Released(tmp_path, table(model), model)
    folder = tmp_path / "several"
    folder.mkdir()
    released.frame.write_parquet(folder / "part-0.parquet")
    digest = hashlib.sha256((folder / "part-0.parquet").read_bytes()).hexdigest()
    output = replace(released.certificate.output, sha256=None, files={"part-0.parquet": digest})
    certificate = replace(released.certificate, output=output)
    for name in ("_SUCCESS", ".part-0.parquet.crc"):
        (folder / name).write_bytes(b"")
    assert not any("pass over" in one for one in check_table(certificate, folder).not_checked)
    table(model).write_parquet(folder / "_private.parquet")
    assert any("_private.parquet" in one for one in check_table(certificate, folder).not_checked)


def test_the_format_that_the_certificate_names(tmp_path):
    model = MODELS["two values"]
    released = Released(tmp_path, table(model), model)
    output = replace(released.certificate.output, format="csv")
    problems = check_table(replace(released.certificate, output=output), released.path).problems
    assert any("output.format" in one for one in problems)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.with_columns(id=pl.when(pl.col("id") == 2).then(None).otherwise("id")),
        lambda rows: rows.with_columns(id=pl.when(pl.col("id") == 2).then(77).otherwise("id")),
        lambda rows: rows.with_columns(
            t=pl.when(pl.col("id") == 2).then(pl.col("t").dt.offset_by("40m")).otherwise("t")
        ),
        lambda rows: pl.concat([rows.head(9), rows[8:9], rows[9:]]),
    ],
    ids=["no name", "another name", "another time", "a row twice"],
)
@pytest.mark.parametrize("mechanism", ["window", "owner"])
def test_rows_that_are_moved(mechanism, change, tmp_path):
    """With the counts made to agree: what is known of private records does not."""
    model = MODELS["two values"]
    released = Released(tmp_path, table(model), model, mechanism=mechanism)
    assert agreeing(tmp_path, released, change(released.frame)).problems
    assert released.found().problems == []


@pytest.mark.parametrize("mechanism", ["window", "owner"])
def test_rows_that_are_removed(mechanism, tmp_path):
    """Without a step others move nearer. With one they are gaps, which tell what empty cells do."""
    model = MODELS["two values"]
    released = Released(tmp_path, table(model), model, mechanism=mechanism, step=None)
    rows = released.frame.filter((pl.col("id") != 2) | pl.col("v").is_not_null())
    assert agreeing(tmp_path, released, rows).problems


def agreeing(tmp_path, released, rows):
    """What is found of other rows whose certificate was made to count them."""
    there = tmp_path / "altered.parquet"
    table_files.write(rows, there)
    digest = hashlib.sha256(there.read_bytes()).hexdigest()
    certificate = replace(
        released.certificate,
        output=replace(released.certificate.output, sha256=digest, rows=rows.height),
        counts=replace(released.certificate.counts, rows=rows.height, chains=rows["id"].n_unique()),
    )
    return check_table(certificate, there)


def test_a_cost_is_never_paid_back(tmp_path):
    """A tuple beyond the chain's end is no stop: counted as one, it hid a row that was emptied."""
    model = MODELS["order 2"]
    private, drop = {(1, 1), (0, 4)}, {(0, 1), (1, 6), (1, 11), (0, 11)}
    frame = table(model, chains=2, n=13, private=private, drop=drop)
    released = Released(tmp_path, frame, model, mechanism="owner", epsilon=3.0)
    values = released.frame["v"].to_list()
    values[0], values[1:4] = 0, [None] * 3
    values[17] = None  # far from every secret
    rows = released.frame.with_columns(pl.Series("v", values, dtype=pl.Int64))
    assert any("no walk redacts" in one for one in released.problems(rows))
