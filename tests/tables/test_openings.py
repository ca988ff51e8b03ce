"""Tables whose model's set holds from a later record on: what stands before leaves or stays with
the first record that does not, and nothing tells more than it may, by definition.
"""

import hashlib
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import samples
from offrecord.attack import attack
from offrecord.errors import InputError
from offrecord.fitting.boxes import Sureness, begun_box
from offrecord.release.certificate import Certificate
from offrecord.reports.files import content_from
from offrecord.verify.table import check_table
from small_tables import dry, rule, secrets_by_definition
from test_guarantee_of_sets import kernel_within

TWO = np.array([[0.8, 0.2], [0.3, 0.7]])
SLOW = np.array([[0.92, 0.08], [0.15, 0.85]])
THREE = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.15, 0.25, 0.6]])
READING = {"value": "v", "order": "t", "by": "chain"}


def model_since(kernel, firsts, since, counted=20_000):
    """A model of chains that begin so, in a set that holds from a record on."""
    chain = off.MarkovChain(kernel)
    counts = np.rint(counted * chain.start[:, np.newaxis] * kernel).astype(np.int64)
    box = begun_box(counts, np.asarray(firsts), chain, Sureness(), since)
    return off.MarkovChain(kernel, start=np.asarray(firsts) / sum(firsts), box=box)


def edge_of(frame, name, since):
    """The place of the first row that stands no earlier than a record, else of the last one."""
    places = frame.filter(pl.col("chain") == name)["t"].sort().to_list()
    return next((t for t in places if t >= since - 1), places[-1])


def told(shown, edge, matrix, kernels, start, secret):
    """The largest log-ratio of an output's chances under two values of a secret: over all values,
    with a coin for each record from the edge on. shown: which places have a value.
    """
    n, k = matrix.shape
    chances = {}
    rows = [t for t in range(edge, n) if shown[t]]
    masses = {}
    for path in product(range(k), repeat=n):
        weight = start[path[0]]
        for t in range(1, n):
            weight *= kernels[t - 1][path[t - 1], path[t]]
        own = tuple(path[t] for t in secret)
        masses[own] = masses.get(own, 0.0) + weight
        for hidden in product((False, True), repeat=len(rows)):
            chance = weight
            for t, gone in zip(rows, hidden, strict=True):
                chance *= matrix[t, path[t]] if gone else 1 - matrix[t, path[t]]
            if chance == 0:
                continue
            seen = {t: path[t] for t, gone in zip(rows, hidden, strict=True) if not gone}
            if edge in seen:
                seen |= {t: path[t] for t in range(edge) if shown[t]}
            output = chances.setdefault(tuple(sorted(seen.items())), {})
            output[own] = output.get(own, 0.0) + chance
    largest = 0.0
    for output in chances.values():
        given_own = [output.get(own, 0.0) / mass for own, mass in masses.items() if mass > 0]
        if max(given_own) > 1e-300:
            largest = max(largest, np.log(max(given_own)) - np.log(max(min(given_own), 1e-300)))
    return largest


@settings(max_examples=25, deadline=None)
@given(
    kernel=st.sampled_from([TWO, SLOW, THREE]),
    since=st.integers(2, 4),
    epsilon=st.sampled_from([0.5, 1.0, 2.0]),
    mechanism=st.sampled_from(["window", "best-local"]),
    seed=st.integers(0, 2**31),
)
def test_no_output_of_a_chain_tells_more_than_epsilon_however_near_its_beginning(
    kernel, since, epsilon, mechanism, seed
):
    rng, k = np.random.default_rng(seed), len(kernel)
    firsts = np.zeros(k, dtype=np.int64)
    firsts[rng.integers(k)] = 400
    if rng.random() < 0.5:
        firsts += rng.integers(0, 100, k)
    model = model_since(kernel, firsts, since)
    n = int(rng.integers(3, 7 if k == 2 else 6))
    kept = sorted({0, n - 1, *np.flatnonzero(rng.random(n) < 0.85).tolist()})
    rows = [(0, t, 0 if rng.random() < 0.9 else None) for t in kept]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(("chain", "t", "v"), pl.Int64), orient="row")
    private = [(0, t) for t in range(n) if rng.random() < 0.25] or [(0, int(rng.integers(n)))]
    keys = pl.DataFrame(private, schema={"chain": pl.Int64, "t": pl.Int64}, orient="row")
    release = dry(model, frame, keys, epsilon, mechanism=mechanism, accept_model=True)
    matrix, edge = rule(release, frame, 0, k), edge_of(frame, 0, since)
    shown = np.isin(np.arange(n), [t for _, t, v in rows if v is not None])
    start = firsts / firsts.sum()
    for secret in secrets_by_definition(frame, keys, 0, "run"):
        assert all(not shown[t] or np.all(matrix[t] == 1) for t in secret)
        whole = range(secret[0], secret[-1] + 1)
        for number in range(3):
            kernels = [kernel_within(rng, model.box.forward, number % 2 == 0) for _ in range(n - 1)]
            assert told(shown, edge, matrix, kernels, start, whole) <= epsilon + 1e-9


def random_table(model, rng, chains=30, length=24, gaps=0.0):
    values = samples(off.MarkovChain(model.transition, start=model.start), chains, length, rng)
    frame = pl.DataFrame(
        {
            "chain": np.repeat(np.arange(chains), length),
            "t": np.tile(np.arange(length), chains),
            "v": values.ravel(),
            "p": rng.random(chains * length) < 0.03,
        }
    )
    there = (rng.random(len(frame)) >= gaps) | (frame["t"] == 0).to_numpy()
    empty = (rng.random(len(frame)) < gaps / 2) & ~frame["p"].to_numpy()
    value = pl.when(pl.Series(empty)).then(None).otherwise("v")
    return frame.with_columns(v=value).filter(pl.Series(there))


def released_file(folder, model, seed, gaps=0.0, mechanism="owner"):
    """A random table, the file that left of it, and what that amounts to."""
    frame = random_table(model, np.random.default_rng(seed), gaps=gaps)
    frame.write_csv(folder / "table.csv")
    frame.filter("p").select("chain", "t").write_csv(folder / "list.csv")
    (folder / "out").mkdir()
    output = folder / "out" / "released.csv"
    options = {"private": "p", "model": model, "epsilon": 1.0, "dataset": "d", "step": "1"}
    options |= READING | {"key_file": folder / "key.json", "accept_model": True}
    release = off.redact_file(folder / "table.csv", output, **options, mechanism=mechanism)
    return frame, output, release.summary


def cut_at_edges(frame, since):
    """What is left of a table from the edges on, and what is private in it, by definition."""
    edges = {name: edge_of(frame, name, since) for name in frame["chain"].unique().to_list()}
    edge = frame["chain"].replace_strict(edges).alias("edge")
    frame = frame.with_columns(edge)
    early = frame.filter(pl.col("p") & (pl.col("t") < pl.col("edge")))["chain"].unique()
    is_edge = pl.col("t") == pl.col("edge")
    moved = pl.col("p") | (is_edge & pl.col("chain").is_in(early.implode()))
    return frame.with_columns(p=moved).filter(pl.col("t") >= pl.col("edge")).drop("edge"), edge


@pytest.mark.parametrize("gaps", [0.0, 0.15])
@pytest.mark.parametrize(
    ("kernel", "firsts", "mechanism"),
    [
        (SLOW, [0, 300], "owner"),
        *((SLOW, [0, 300], name) for name in ("best-local", "window")),
        *((THREE, [300, 0, 0], name) for name in ("best-local", "window")),
    ],
)
def test_a_table_is_decided_as_what_is_left_of_it_from_the_edges_on(
    kernel, firsts, mechanism, gaps, tmp_path
):
    model, rng = model_since(kernel, firsts, 5), np.random.default_rng(7)
    frame = random_table(model, rng, gaps=gaps)
    options = {"epsilon": 1.0, "dataset": "d", "step": 1, "mechanism": mechanism, "private": "p"}
    options |= {"accept_model": True, "another_release": True} | READING
    key = {"key_file": tmp_path / "key.json"}
    whole = off.redact(frame, **options, **key, model=model)
    cut, edge = cut_at_edges(frame, 5)
    part = off.redact(cut, **options, **key, model=model.settled)
    left = whole.frame.with_columns(edge)
    assert left.filter(pl.col("t") >= pl.col("edge")).drop("edge").equals(part.frame)
    # before: with the edge in chains with a secret, in others all of it
    held = frame.filter("p")["chain"].unique().to_list()
    for (name,), rows in left.group_by("chain"):
        before = rows.filter(pl.col("t") < pl.col("edge"))
        (there,) = rows.filter(pl.col("t") == pl.col("edge"))["v"].is_not_null()
        asked = frame.filter((pl.col("chain") == name) & (pl.col("t") < edge_of(frame, name, 5)))
        if name in held and not there:
            assert before["v"].is_null().all()
        else:
            assert before["v"].equals(asked["v"])
    summary = whole.summary
    valued = frame.filter(pl.col("v").is_not_null() | pl.col("p")).height
    assert summary.released == pytest.approx(whole.frame["v"].count() / valued)
    assert sum(summary.regions.values()) == valued
    assert summary.touched_records <= valued
    assert summary.secrets == part.summary.secrets


def test_what_is_foretold_is_what_comes_on_average(tmp_path):
    model = model_since(SLOW, [0, 300], 5)
    frame = random_table(model, np.random.default_rng(1), chains=12, gaps=0.1)
    options = {"epsilon": 1.0, "step": 1, "private": "p", "accept_model": True} | READING
    options |= {"mechanism": "best-local", "model": model}
    dry_run = off.redact(frame, **options, dataset="d", dry_run=True).summary
    # values of the model, so that the expectation is by it
    random, shares = np.random.default_rng(2), []
    chain = off.MarkovChain(SLOW)
    for number in range(60):
        values = samples(chain, 12, 24, random)
        value = pl.Series("v", values[frame["chain"].to_numpy(), frame["t"].to_numpy()])
        drawn = frame.with_columns(v=pl.when(frame["v"].is_null()).then(None).otherwise(value))
        release = off.redact(drawn, **options, dataset=f"d{number}", key_file=tmp_path / "key.json")
        shares.append(release.summary.released)
        assert release.summary.window == dry_run.window
    error = np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) == pytest.approx(dry_run.released, abs=4 * error)
    assert dry_run.released >= dry_run.window - 1e-9


def test_the_window_of_the_summary_is_what_windows_release():
    model = model_since(SLOW, [0, 300], 5)
    for seed in range(6):
        frame = random_table(model, np.random.default_rng(seed), gaps=0.1 * (seed % 2))
        options = {"epsilon": 1.0, "dataset": "d", "step": 1, "private": "p", "dry_run": True}
        options |= READING | {"model": model, "accept_model": True}
        window = off.redact(frame, **options, mechanism="window").summary
        assert window.released == pytest.approx(window.window, abs=1e-12)
        best = off.redact(frame, **options, mechanism="best-local").summary
        assert best.window == pytest.approx(window.window, abs=1e-12)
        assert best.released >= best.window - 1e-9


@pytest.mark.parametrize("mechanism", ["owner", "best-local"])
def test_the_verifier_follows_it_and_sees_what_was_changed(mechanism, tmp_path):
    model = model_since(SLOW, [0, 300], 5)
    frame, output, _ = released_file(tmp_path, model, 3, mechanism=mechanism)
    others = {
        "private_list": tmp_path / "list.csv",
        "key_file": tmp_path / "key.json",
        "original": tmp_path / "table.csv",
    }

    def problems(path, **checked):
        said = Certificate.from_json(Path(f"{output}.certificate.json").read_bytes())
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        said = replace(said, output=replace(said.output, sha256=digest))
        return check_table(said, path, **checked).problems

    assert problems(output, **others) == []
    assert problems(output, private_list=others["private_list"]) == []
    released = pl.read_csv(output)
    held = frame.filter("p")["chain"].unique()
    held_rows = released.filter(pl.col("chain").is_in(held.implode()))
    edges = held_rows.filter(pl.col("t") == 4)
    stays = edges.filter(pl.col("v").is_null())["chain"][0]
    leaves = edges.filter(pl.col("v").is_not_null())["chain"][0]

    def changed(name, place, value):
        here = (pl.col("chain") == name) & (pl.col("t") == place)
        table = released.with_columns(v=pl.when(here).then(value).otherwise("v"))
        path = output.with_name("changed.csv")
        table.write_csv(path)
        return path

    original = {(c, t): v for c, t, v in frame.select("chain", "t", "v").rows()}
    free = next(t for t in range(4) if not frame.row(stays * 24 + t)[3])
    shown = changed(stays, free, original[stays, free])
    (said,) = problems(shown, private_list=others["private_list"])
    assert "released without its chain's edge" in said
    hidden = changed(leaves, 1, None)
    assert any("empty though its edge is not" in one for one in problems(hidden, **others))
    (said,) = problems(hidden, private_list=others["private_list"])
    assert "counts.missing says 0" in said


def test_a_private_first_record_keeps_all_up_to_the_edge_back(tmp_path):
    model = model_since(SLOW, [0, 300], 5)
    frame = random_table(model, np.random.default_rng(3)).with_columns(
        p=(pl.col("chain") == 2) & (pl.col("t") == 1)
    )
    release = off.redact(
        frame,
        **READING,
        private="p",
        model=model,
        epsilon=1.0,
        dataset="d",
        accept_model=True,
        key_file=tmp_path / "key.json",
    )
    rows = release.frame.filter(pl.col("chain") == 2)
    assert rows.filter(pl.col("t") <= 4)["v"].is_null().all()
    assert release.frame.filter(pl.col("chain") != 2)["v"].null_count() == 0
    assert release.summary.private == release.summary.secrets == 1


def test_what_needs_a_set_from_the_first_record_on_is_refused(tmp_path):
    model = model_since(SLOW, [0, 300], 5)
    frame = random_table(model, np.random.default_rng(3))
    options = {"private": "p", "model": model, "epsilon": 1.0, "dataset": "d"} | READING
    options |= {"key_file": tmp_path / "key.json"}
    with pytest.raises(InputError, match="--growing needs a set of models"):
        off.redact(frame, **options, growing=True, step=1)
    with pytest.raises(InputError, match="--after needs a set of models"):
        off.redact(frame, **options, after=tmp_path / "before.json")
    with pytest.raises(InputError, match="holds from record 5 of a chain on"):
        off.Problem(model, 10, 4, 1.0)
    off.Problem(model.alone, 10, 4, 1.0)


@pytest.mark.parametrize("mechanism", ["owner", "best-local"])
def test_attackers_find_no_more_than_is_promised(mechanism, tmp_path):
    model = model_since(SLOW, [0, 300], 5)
    _, output, _ = released_file(tmp_path, model, 11, gaps=0.05, mechanism=mechanism)
    found = attack(output, private_list=tmp_path / "list.csv", original=tmp_path / "table.csv")
    assert found.secrets > 10
    assert found.attackers[0].largest <= 1.0 + 1e-9
    assert found.wrong == 0
    assert found.holds


def test_a_report_from_files_counts_what_the_release_did(tmp_path):
    model = model_since(SLOW, [0, 300], 5)
    _, output, summary = released_file(tmp_path, model, 11)
    content = content_from(Path(f"{output}.certificate.json"), output, tmp_path / "list.csv")
    assert content.models == summary.models
    assert "from its record 5 on" in content.models
    assert content.left.released == pytest.approx(summary.released)
    assert content.left.window == pytest.approx(summary.window)
    assert content.left.touched == summary.touched
    assert content.left.touched_released == pytest.approx(summary.touched_released)
    assert content.left.regions == summary.regions


@pytest.mark.parametrize("place", [1, 4])
def test_what_a_private_cell_holds_before_or_at_an_edge_changes_nothing(place, tmp_path):
    model = model_since(SLOW, [0, 300], 5)
    frame = random_table(model, np.random.default_rng(3), gaps=0.1)
    here = (pl.col("chain") == 2) & (pl.col("t") == place)
    own = pl.DataFrame({"chain": [2], "t": [place], "v": [0], "p": [True]}, schema=frame.schema)
    frame = frame.filter(~here).vstack(own)
    options = {"private": "p", "model": model, "epsilon": 1.0, "dataset": "d", "step": 1}
    options |= READING | {"key_file": tmp_path / "key.json", "mechanism": "best-local"}
    found = []
    for value in (0, 0, 1, None, 7):  # the first one makes the key, and says so
        cell = pl.when(here).then(pl.lit(value, dtype=pl.Int64)).otherwise("v")
        release = off.redact(frame.with_columns(v=cell), **options, accept_model=True)
        summary = replace(release.summary, seconds=0.0)
        found.append((release.frame.rows(), release.certificate, summary.to_dict()))
    for one in found[2:]:
        assert one == found[1]
