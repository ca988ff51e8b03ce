"""Released tables: honest ones verify in every way of looking, altered ones do not."""

import hashlib
import json
import warnings

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.models.file import Model
from offrecord.models.promise import KnownChains
from offrecord.release.keys import Key
from offrecord.verification import verify
from releases import Released, posterior, rules_for, table

KINDS = ("local", "stopping", "mixed")


def made(folder, seed, kind=None, **changes):
    rng = np.random.default_rng(seed)
    k, order = ((2, 1), (3, 1), (2, 2), (2, 3))[seed % 4]
    promise = posterior(rng, k, order, places="day" if seed % 3 == 0 else None)
    kind = kind or KINDS[seed % 3]
    protect = "each" if kind == "local" and seed % 2 else "run"
    share = (0.02, 0.05, 0.15, 0.4)[seed % 4]
    policy = rules_for(rng, kind, promise, protect)
    shape = {"share": share, "missing": 0.03 * (seed % 2), "gaps": 0.03 * (seed // 2 % 2)}
    frame = table(rng, k, **shape | changes)
    return Released(folder, frame, promise, policy, keep_rows=seed % 5 == 0)


@pytest.mark.parametrize("seed", range(12))
def test_honest_releases_verify_in_every_way(seed, tmp_path):
    released = made(tmp_path, seed)
    for way in released.ways:
        assert released.verdict(way).problems == [], way


def altered(released, change):
    """A certificate and a table that were made to agree in digest and counts."""
    rows = change(pl.read_csv(released.path, infer_schema=False))
    path = released.path.with_name("altered.csv")
    rows.write_csv(path)
    content = {**released.content}
    shown = int((rows["v"].is_not_null() & (rows["v"] != "")).sum())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    content["output"] = {**content["output"], "sha256": digest, "rows": rows.height}
    content["counts"] = {**content["counts"], "rows": rows.height, "released": shown}
    content["counts"]["chains"] = rows["id"].n_unique()
    return content, path


def with_cell(row, value):
    def change(rows):
        cells = rows["v"].to_list()
        cells[row] = value
        return rows.with_columns(pl.Series("v", cells, dtype=pl.String))

    return change


@pytest.mark.parametrize("kind", KINDS)
def test_every_single_cell_that_is_altered_is_found(kind, tmp_path):
    """With key, list and original: each value that is shown too much, or too little."""
    released = made(tmp_path, 4, kind, n=12, missing=0.0, gaps=0.0)
    rows = pl.read_csv(released.path, infer_schema=False)
    before = pl.read_csv(released.original, infer_schema=False)
    for row, cell in enumerate(rows["v"].to_list()):
        value = None if cell is not None else before["v"][row]
        content, path = altered(released, with_cell(row, value))
        assert not released.verdict(content=content, path=path).is_verified, row


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_without_the_original(kind, tmp_path):
    """A private value that is shown, and a value next to one that no rule shows."""
    released = made(tmp_path, 4, kind, missing=0.0, gaps=0.0)
    private = pl.read_csv(released.listed).join(
        pl.read_csv(released.original).with_row_index("row"), on=["id", "t"]
    )
    content, path = altered(released, with_cell(int(private["row"][0]), "v0"))
    for way in ("listed", "key"):
        problems = released.verdict(way, content=content, path=path).problems
        assert any("private" in one for one in problems)


def test_plain_erasure_is_no_release_of_walks(tmp_path):
    """Where only private records are empty, every walk would have stopped at once."""
    rng = np.random.default_rng(2)
    promise = posterior(rng, 2, 1)
    policy = rules_for(rng, "stopping", promise)
    frame = table(rng, 2, n=600, share=0.03)
    frame = pl.concat(
        frame.filter(pl.col("id") == "c0").with_columns(id=pl.lit(f"c{i}")) for i in range(6)
    )
    released = Released(tmp_path, frame, promise, policy)
    assert released.verdict("alone").problems == []

    def erased(rows):
        before = pl.read_csv(released.original, infer_schema=False)
        private = frame["p"]
        return rows.with_columns(pl.when(~private).then(before["v"]).alias("v"))

    content, path = altered(released, erased)
    for way in ("alone", "listed"):
        problems = released.verdict(way, content=content, path=path).problems
        assert problems, way


def test_another_key_another_list_another_original(tmp_path):
    released = made(tmp_path, 1, "local")
    other = Key.new(tmp_path / "others" / "key.json").file
    listed = {"private_list": released.listed}
    verdict = verify(released.certificate_path, released.path, **listed, key_file=other)
    assert any("key_id" in one for one in verdict.problems)
    fewer = tmp_path / "fewer.csv"
    pl.read_csv(released.listed)[1:].write_csv(fewer)
    found = verify(released.certificate_path, released.path, private_list=fewer,
                   key_file=released.key).problems  # fmt: skip
    assert [one for one in found if "the certificate counts" in one] == found
    shifted = tmp_path / "shifted.csv"
    rows = pl.read_csv(released.original).join(
        pl.read_csv(released.listed), on=["id", "t"], how="anti"
    )
    pl.concat([pl.read_csv(fewer), rows.select("id", "t")[:1]]).write_csv(shifted)
    found = verify(released.certificate_path, released.path, private_list=shifted,
                   key_file=released.key).problems  # fmt: skip
    assert any("private.digest" in one for one in found)
    rows = pl.read_csv(released.original, infer_schema=False)
    swapped = tmp_path / "swapped.csv"
    values = {"v0": "v1", "v1": "v0"}
    rows.with_columns(pl.col("v").replace(values)).write_csv(swapped)
    given = {**listed, "key_file": released.key, "original": swapped}
    problems = verify(released.certificate_path, released.path, **given).problems
    assert any("another value than in the original" in one for one in problems)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows.reverse(), "sorted"),
        (lambda rows: rows.rename({"v": "w"}), "columns"),
        (lambda rows: rows.with_columns(v=pl.col("v").replace({"v0": "x"})), "labels"),
        (lambda rows: pl.concat([rows, rows[-1:]]), "same value"),
        (lambda rows: rows[1:], "counts"),
    ],
    ids=["order", "columns", "labels", "twice", "a row less"],
)
def test_rows_that_are_moved_or_renamed(change, says, tmp_path):
    released = made(tmp_path, 5, "stopping")
    rows = change(pl.read_csv(released.path, infer_schema=False))
    path = released.path.with_name("altered.csv")
    rows.write_csv(path)
    content = {**released.content}
    content["output"] |= {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    problems = released.verdict(content=content, path=path, way="listed").problems
    assert any(says in one for one in problems)


def test_bytes_that_are_not_those_of_the_certificate(tmp_path):
    released = made(tmp_path, 1, "local")
    released.path.write_bytes(released.path.read_bytes() + b"\n")
    assert any("SHA-256" in one for one in released.verdict("alone").problems)


def test_whole_chains(tmp_path):
    """Chains that are private as a whole: nothing else goes, and no model is asked for."""
    rng = np.random.default_rng(0)
    frame = pl.concat(
        table(rng, 2, n=20, share=0).filter(pl.col("id") == "c0").with_columns(id=pl.lit(f"c{i}"))
        for i in range(9)
    ).with_columns(p=pl.col("id").is_in(["c2", "c5"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = off.redact(
            frame, value="v", order="t", by="id", private="p", epsilon=1.0, dataset="whole",
            key_file=tmp_path / "keys" / "key.json", keep_rows=True,
        )  # fmt: skip
    path, listed = tmp_path / "r.csv", tmp_path / "list.csv"
    release.write(path)
    frame.filter("p").select("id", "t").write_csv(listed)
    certificate = path.with_name("r.csv.certificate.json")
    assert verify(certificate, path, private_list=listed).problems == []


def test_a_known_chain_is_judged_without_a_sample(tmp_path):
    rng = np.random.default_rng(0)
    chain = off.MarkovChain([[0.9, 0.1], [0.3, 0.7]], labels=["v0", "v1"])
    frame = table(rng, 2)
    released = Released(tmp_path, frame, KnownChains([chain]), epsilon=1.0, mechanism="window")
    verdict = released.verdict()
    assert verdict.problems == []
    assert verdict.judged is not None
    assert len(verdict.judged.leakages) == 1
    assert "under the known chain" in verdict.headline
    assert Model(KnownChains([chain])).promise.coverage is None


@pytest.mark.parametrize("kind", KINDS)
def test_an_original_without_the_key_shows_what_no_rule_reaches(kind, tmp_path):
    """A value far from every private record that is empty, though some rows had none before."""
    released = made(tmp_path, 5, kind, share=0.01)
    rows = pl.read_csv(released.path, infer_schema=False)
    private = pl.read_csv(released.listed, infer_schema=False).with_columns(p=True)
    near = rows.join(private, on=["id", "t"], how="left", maintain_order="left")["p"].is_not_null()
    apart = [
        row
        for row in range(15, rows.height - 15)
        if rows["v"][row] and not near[row - 15 : row + 15].any()
    ]
    content, path = altered(released, with_cell(apart[0], None))
    given = released.ways["listed"] | {"original": released.original}
    certificate = path.with_name("altered.json")
    certificate.write_text(json.dumps(content))
    problems = verify(certificate, path, seed=1, **given).problems
    assert len(problems) == 1
    assert "empty, although the rules release it" in problems[0]


def test_no_cell_is_kept_beside_what_walks_surely_redact(tmp_path):
    """Beside a record of a core that is not private itself, whoever looks."""
    rng = np.random.default_rng(2)
    promise = posterior(rng, 2, 3)
    frame = table(rng, 2, share=0.03).with_columns(w=pl.lit("x"))
    policy = rules_for(rng, "stopping", promise)
    released = Released(tmp_path, frame, promise, policy, keep="w")
    rows, listed = pl.read_csv(released.path, infer_schema=False), pl.read_csv(released.listed)
    first = rows.with_row_index("row").join(
        listed.cast(pl.String), on=["id", "t"], maintain_order="left"
    )["row"]
    beside = next(row - 1 for row in first if row - 1 not in set(first))
    kept = pl.Series("w", [cell if row != beside else "x" for row, cell in enumerate(rows["w"])])
    content, path = altered(released, lambda rows: rows.with_columns(kept))
    for way in ("listed", "key", "original"):
        problems = released.verdict(way, content=content, path=path).problems
        assert any("a kept cell beside a redacted value" in one for one in problems), way
