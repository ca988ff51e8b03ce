"""Twins leave the same bytes, whatever the type, format and options."""

import json

import numpy as np
import polars as pl
import pytest

from needles import NEEDLE
from releasing import COLUMNS, QUICK, assert_same
from twins import (
    AUDITED,
    KEYS,
    KINDS,
    PRIVATE,
    SUFFIX,
    TEXTS,
    model,
    redacted,
    table,
    twins,
    written,
)


def routes():
    for name, kind in KINDS.items():
        for source in ("parquet", "ipc", *kind.texts):
            yield name, source, source
    for name in ("int64", "long text"):
        for source in SUFFIX:
            for target in SUFFIX:
                if source != target:
                    yield name, source, target
    for name in ("float64", "truth", "whole and broken"):
        for source in ("packed csv", "packed ndjson"):
            yield name, source, source


@pytest.mark.parametrize(("kind", "source", "target"), list(routes()))
def test_twins_that_differ_in_certain_redactions_leave_the_same_bytes(desk, kind, source, target):
    labels = KINDS[kind].labels
    one, other = twins(len(labels))
    left = desk.release("one", table(kind, one), source, target, labels=labels)
    right = desk.release("two", table(kind, other), source, target, labels=labels)
    assert_same(left, right)


@pytest.mark.parametrize(
    ("kind", "source"),
    [("int64", "csv"), ("enum", "ipc"), ("dictionary", "parquet"), ("truth", "ndjson")],
)
def test_twins_in_another_order_of_rows(desk, kind, source):
    labels = KINDS[kind].labels
    one, other = twins(len(labels))
    rows = np.random.default_rng(1).permutation(len(KEYS))
    left = desk.release("one", table(kind, one), source, source, labels=labels)
    right = desk.release("two", table(kind, other), source, source, labels=labels, rows=rows)
    assert_same(left, right)


@pytest.mark.parametrize(
    "options", [["--json"], ["--publish-positions"], ["--protect", "each", "--step", "1"]]
)
def test_twins_with_other_options(desk, options):
    labels = KINDS["long text"].labels
    one, other = twins(3)
    results = [
        desk.release(
            name,
            table("long text", codes),
            "csv",
            "csv",
            *options,
            labels=labels,
        )
        for name, codes in (("one", one), ("two", other))
    ]
    assert_same(*results)


@pytest.mark.parametrize("source", SUFFIX)
@pytest.mark.parametrize("kind", ["int64", "long text"])
def test_twins_whose_model_is_learned_from_the_other_chains(desk, kind, source):
    labels = KINDS[kind].labels
    codes = np.random.default_rng(3).choice(3, len(AUDITED), p=[0.5, 0.3, 0.2])
    one, other = codes.copy(), codes.copy()
    for place in [place for place, key in enumerate(AUDITED) if key in PRIVATE]:
        one[place], other[place] = 2, place % 2
    left = desk.release("one", table(kind, one, keys=AUDITED), source, source, fit=True)
    right = desk.release(
        "two",
        table(kind, other, keys=AUDITED),
        source,
        source,
        fit=True,
    )
    assert_same(left, right)
    assert json.loads(left[f"out{SUFFIX[source]}.certificate.json"])["model"]["labels"] == sorted(
        labels
    )


def test_twins_of_fit(desk):
    """A model that is learned beside private records is learned from other chains alone."""
    codes = np.random.default_rng(3).choice(3, len(AUDITED), p=[0.5, 0.3, 0.2])
    others = np.random.default_rng(4).choice(3, len(AUDITED))
    held = np.array([key[0] in {name for name, _ in PRIVATE} for key in AUDITED])
    results = []
    for name, cells in (("one", codes), ("two", np.where(held, others, codes))):
        folder, given = desk.folder / name, desk.folder / f"{name} input"
        folder.mkdir()
        given.mkdir()
        path = written(table("long text", cells, keys=AUDITED), given / "table.csv")
        code, out, err = desk.run(
            folder,
            "fit",
            path,
            *COLUMNS,
            "--private",
            "p",
            "-o",
            "model.json",
        )
        assert code == 0, err
        results.append(
            {"model": (folder / "model.json").read_bytes(), "stdout": out, "stderr": err}
        )
    assert_same(*results)


def test_a_dry_run_is_no_second_look():
    """With new coins at every run, the figures of many dry runs would give away what a release
    redacts.
    """
    n = 6_000
    frame = pl.DataFrame(
        {"id": np.arange(n) // 30, "t": np.arange(n) % 30, "p": np.arange(n) % 30 == 15}
    )
    values = np.random.default_rng(8).integers(0, 2, n)
    seen = set()
    for cells in (values, values, 1 - values):
        release = redacted(
            frame.with_columns(v=pl.Series(cells)),
            model((0, 1)),
            dataset="dry",
            dry_run=True,
            key_file="no-key-is-needed",
        )
        seen.add(
            json.dumps(
                {
                    name: value
                    for name, value in release.summary.to_dict().items()
                    if name != "seconds"
                }
            )
        )
    assert release.summary.regions["M"] > 100
    assert len(seen) == 1


@pytest.mark.parametrize("how", ["model", "fit"])
def test_how_a_private_number_was_written_does_not_show_in_json(desk, how):
    """1.0 in a private record must not turn every released 1 into 1.0."""
    keys = AUDITED if how == "fit" else KEYS
    codes = np.random.default_rng(3).integers(0, 2, len(keys))
    results = []
    for name, cell in (("one", "1"), ("two", "1.0")):
        lines = [
            f'{{"id":"{key[0]}","t":{key[1]},"v":{cell if key in PRIVATE else code},'
            f'"p":{str(key in PRIVATE).lower()}}}'
            for key, code in zip(keys, codes, strict=True)
        ]
        folder, given = desk.folder / name, desk.folder / f"{name}.ndjson"
        folder.mkdir()
        given.write_text("\n".join(lines) + "\n")
        options = ["--fit"] if how == "fit" else desk.model_options((0, 1))
        arguments = [
            "redact",
            given,
            *COLUMNS,
            "--private",
            "p",
            *QUICK,
            *options,
            "--dataset",
            f"written {how}",
        ]
        code, out, err = desk.run(folder, *arguments, "--key-file", desk.key, "-o", "out.ndjson")
        assert code == 0, err
        results.append(
            {file.name: file.read_bytes() for file in folder.iterdir()}
            | {"stdout": out, "stderr": err}
        )
    assert_same(*results)


def test_twins_by_a_list_of_times_with_gaps(desk):
    times = [
        f"2024-05-{1 + t // 24:02d}T{t % 24:02d}:00:00Z" for t in range(60) if t not in (20, 21, 40)
    ]
    results = []
    for name, cell in (("one", NEEDLE), ("two", "short")):
        folder = desk.folder / name
        folder.mkdir()
        cells = ["short" if i % 3 else TEXTS[1] for i in range(len(times))]
        for hidden in (18, 19, 20):  # hour 18 and 19, and 22 after the gap
            cells[hidden] = cell
        pl.DataFrame({"t": times, "v": cells}).write_csv(desk.folder / f"{name}.csv")
        pl.DataFrame({"t": [times[18], times[19], "2024-05-01T20:00:00Z", times[20]]}).write_csv(
            desk.folder / "list.csv"
        )
        arguments = [
            "redact",
            desk.folder / f"{name}.csv",
            "--value",
            "v",
            "--order",
            "t",
            "--single-chain",
            "--step",
            "1h",
        ]
        arguments += [
            "--private-list",
            desk.folder / "list.csv",
            *QUICK,
            *desk.model_options(TEXTS),
            "--dataset",
            "hours",
        ]
        code, out, err = desk.run(folder, *arguments, "--key-file", desk.key, "-o", "out.csv")
        assert code == 0, err
        results.append(
            {file.name: file.read_bytes() for file in folder.iterdir()}
            | {"stdout": out, "stderr": err}
        )
    assert_same(*results)
    assert NEEDLE.encode() not in results[0]["out.csv"]


@pytest.mark.parametrize("how", ["--in-memory", "--stream"])
@pytest.mark.parametrize("kind", ["int64", "long text"])
def test_twins_have_the_same_report(desk, kind, how):
    """With the release and from its files."""
    labels = KINDS[kind].labels
    listed = desk.folder / "list.csv"
    pl.DataFrame(sorted(PRIVATE), schema=["id", "t"], orient="row").write_csv(listed)
    results = []
    for name, codes in zip(("one", "two"), twins(len(labels)), strict=True):
        seen = desk.release(name, table(kind, codes), "csv", "csv", how, labels=labels)
        files = ["out.csv.certificate.json", "out.csv"]
        for more, page in (([], "a.html"), (["--private-list", listed], "b.html")):
            folder = desk.folder / name
            code, out, err = desk.run(folder, "report", *files, *more, "-o", page)
            assert code == 0, err
            seen |= {page: (folder / page).read_bytes(), f"{page} said": out + err}
        results.append(seen)
    assert_same(*results)
    assert len(results[0]["out.csv.report.html"]) > 10_000
