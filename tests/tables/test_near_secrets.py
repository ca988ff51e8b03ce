"""Near secrets in a table are designed together: every secret keeps its ε, nothing depends on
values, and no table releases less than windows do.
"""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.designs import clusters
from offrecord.designs.clusters import Clusters
from offrecord.designs.library import Designs, Setting
from offrecord.mechanisms.surroundings import Nearness
from offrecord.mechanisms.window import BestWindow
from offrecord.models.records import Chains
from offrecord.tables.secrets import Private, secrets_of
from offrecord.verify import designs as verify_designs
from small_tables import dry, keep_designs, rule, secrets_by_definition

RAIN = off.MarkovChain.binary(0.02, 0.3)
QUICK = off.MarkovChain.binary(0.2, 0.35)
MODELS = {
    "rain": off.MarkovChain.binary(0.06, 0.3),
    "quick": QUICK,
    "back and forth": off.MarkovChain.binary(0.8, 0.7),
    "three values": off.MarkovChain([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]),
    "a set": off.MarkovChain(
        [[0.9, 0.1], [0.3, 0.7]], box=off.Box.binary((0.09, 0.11), (0.27, 0.33))
    ),
    "any start": off.MarkovChain(
        [[0.9, 0.1], [0.3, 0.7]], box=off.Box.binary((0.09, 0.11), (0.27, 0.33), start="any")
    ),
    "a start": off.MarkovChain([[0.8, 0.2], [0.4, 0.6]], start=[1.0, 0.0]),
    "order 2": off.MarkovChain([[[0.9, 0.1], [0.5, 0.5]], [[0.6, 0.4], [0.2, 0.8]]], order=2),
}


def chain_table(n, private, k=2, gone=(), empty=()):
    """One chain of n steps, some of them without a row or a value; and the private ones."""
    kept = [t for t in range(n) if t not in gone]
    frame = pl.DataFrame(
        {"chain": 0, "t": kept, "v": [None if t in empty else t % k for t in kept]},
        schema_overrides={"v": pl.Int64},
    )
    listed = pl.DataFrame({"chain": [0] * len(private), "t": sorted(private)})
    return frame, listed


@st.composite
def near_tables(draw):
    n = draw(st.integers(6, 40))
    count = draw(st.integers(2, min(n, 7)))
    private = draw(st.sets(st.integers(0, n - 1), min_size=count, max_size=count))
    inner = st.integers(1, n - 2)
    gone, empty = (draw(st.sets(inner, max_size=3)) for _ in range(2))
    return n, private, gone, empty - gone


@settings(max_examples=25, deadline=None)
@given(
    near_tables(),
    st.sampled_from(["rain", "rain", *MODELS]),
    st.sampled_from([0.7, 1.5, 3.0]),
    st.sampled_from(["run", "each"]),
)
def test_every_secret_of_a_chain_keeps_within_epsilon(table, name, epsilon, protect):
    """By the exact leakage of the whole chain's matrix; and no less leaves than of windows."""
    (n, private, gone, empty), model = table, MODELS[name]
    frame, listed = chain_table(n, private, model.k, gone, empty)
    options = {"protect": protect, "accept_model": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "WORK", 1500)
        release = dry(model, frame, listed, epsilon, **options)
    matrix = rule(release, frame, 0, model.k)
    for secret in secrets_by_definition(frame, listed, 0, protect):
        assert np.all(matrix[secret] == 1)
        problem = off.Problem(model, n, [t + 1 for t in secret], epsilon, "run")
        assert off.leakage(problem, matrix) <= epsilon + 1e-9
    windows = dry(model, frame, listed, epsilon, mechanism="window", **options)
    assert release.summary.released >= windows.summary.released - 1e-9
    assert release.summary.window == pytest.approx(windows.summary.released, abs=1e-12)


def test_every_fifth_record_of_a_chain():
    """`redact` finds what `design` does, where a chain is one cluster; in a longer one it loses
    what clusters redact where they meet.
    """
    frame, listed = chain_table(20, range(2, 20, 5))
    release = dry(RAIN, frame, listed, 3.0)
    policy = off.design(off.Problem(RAIN, 20, range(3, 21, 5), 3.0), off.BestLocal())
    assert release.summary.released == pytest.approx(policy.utility, abs=2e-3)
    assert (release.summary.near, release.summary.together) == (4, 4)
    assert "4 of 4 near secrets designed together" in str(release.summary)
    frame, listed = chain_table(200, range(2, 200, 5))
    release = dry(RAIN, frame, listed, 3.0)
    assert release.summary.released > 0.2
    assert release.summary.window < 0.01
    problem = off.Problem(RAIN, 200, range(3, 201, 5), 3.0)
    assert off.leakage(problem, rule(release, frame, 0, 2)) <= 3.0 + 1e-9


def test_far_secrets_have_a_design_each_and_a_certificate_as_before():
    frame, listed = chain_table(200, [30, 100, 170])
    release = dry(RAIN, frame, listed, 1.0)
    assert (release.summary.near, release.summary.together) == (0, 0)
    assert release.certificate["designs"]["kind"] == "local"
    assert "near" not in str(release.summary)


def test_what_gains_nothing_or_costs_too_much_stays_one_by_one(monkeypatch):
    frame, listed = chain_table(60, [20, 25, 40, 46])
    monkeypatch.setattr(clusters, "WORK", 0)
    release = dry(RAIN, frame, listed, 1.0)
    assert (release.summary.near, release.summary.together) == (4, 0)
    assert release.certificate["designs"]["kind"] == "local"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), min_size=1, max_size=40),
    st.integers(0, 6),
    st.integers(2, 4),
    st.integers(2, 20),
    st.sampled_from(["run", "each"]),
)
def test_clusters_by_their_definition(keys, gap, most, span, protect):
    """Secret by secret from the left: it joins the one before it if that is near, and the cluster
    neither full nor too long.
    """
    keys = sorted(set(keys))
    chains = Chains(np.arange(4) * 41, np.zeros(123, dtype=np.int8), np.arange(123), False, None)
    chain, place = (np.array(column) for column in zip(*keys, strict=True))
    secrets = secrets_of(chains, Private(chain, place, place), protect)
    expected = []
    for i in range(secrets.count):
        begin = expected[-1][0] if expected else 0
        joins = (
            i > 0
            and secrets.chain[i] == secrets.chain[i - 1]
            and secrets.first[i] - secrets.last[i - 1] - 1 <= gap
            and i - begin < most
            and secrets.last[i] - secrets.first[begin] + 1 <= span
        )
        if joins:
            expected[-1][1] = i + 1
        else:
            expected.append([i, i + 1])
    found = Clusters.of(chains, secrets, Nearness(gap, most, span, (0, 1, 5, 9)))
    assert [list(pair) for pair in zip(found.begin, found.end, strict=True)] == [
        pair for pair in expected if pair[1] - pair[0] > 1
    ]
    assert sum(found.secrets.values()) == int((found.end - found.begin).sum())
    for begin, end, number in zip(found.begin, found.end, found.used, strict=True):
        around = found.around[number]
        left, right = secrets.first[begin], 40 - secrets.last[end - 1]
        rooms = [
            min(node for node in (0, 1, 5, 9) if node >= min(room, 9)) for room in (left, right)
        ]
        assert [around.left, around.right] == rooms
        inside = [
            any(secrets.first[i] <= t <= secrets.last[i] for i in range(begin, end))
            for t in range(secrets.first[begin], secrets.last[end - 1] + 1)
        ]
        assert list(around.inside) == inside
        assert around.length == len(inside)


def many(seed, share, chains=12, n=40):
    """Chains of a table of which so much is private."""
    rng = np.random.default_rng(seed)
    rows = [
        (c, t, int(rng.random() < 0.1), bool(rng.random() < share))
        for c in range(chains)
        for t in range(n)
    ]
    return pl.DataFrame(rows, schema=["chain", "t", "v", "p"], orient="row")


COLUMNS = {"value": "v", "order": "t", "by": "chain", "private": "p", "step": 1, "dataset": "d"}


@pytest.mark.parametrize("share", [0.03, 0.12, 0.3])
def test_no_table_releases_less_than_windows(share):
    """Whatever rooms are rounded up to, and however secrets meet."""
    given = COLUMNS | {"model": QUICK, "epsilon": 0.5, "dry_run": True, "accept_model": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "WORK", 2000)
        for seed in range(3):
            table = many(seed, share)
            for most in (400, 1):
                patch.setattr(off.mechanisms.workshop.Workshop, "most", most)
                release = off.redact(table, mechanism="best-local", **given)
                windows = off.redact(table, mechanism="window", **given).summary.released
                assert release.summary.released >= windows - 1e-12
                assert release.summary.window == pytest.approx(windows, abs=1e-12)


def test_a_file_keeps_designs_of_clusters_and_believes_none_without_its_seal(tmp_path, monkeypatch):
    made = []
    together = off.BestLocal.together
    monkeypatch.setattr(
        off.BestLocal, "together", lambda *asked: made.append(1) or together(*asked)
    )
    frame, listed = chain_table(30, [8, 12, 17])
    given = {"designs": tmp_path / "designs.json", "key_file": tmp_path / "key" / "key.json"}
    first = keep_designs(RAIN, frame, listed, 2.0, **given)
    again = dry(RAIN, frame, listed, 2.0, **given)
    assert len(made) == 1
    assert first.explain().equals(again.explain())
    content = json.loads(Path(given["designs"]).read_text(encoding="utf-8"))
    (cluster,) = [one for one in content["designs"] if one["inside"]]
    private = [1, 0, 0, 0, 1, 0, 0, 0, 0, 1]
    assert (cluster["inside"], cluster["length"]) == (private, 10)
    rows = content["sides"][cluster["redaction_inside"]]
    rows[:] = [[10, [0.0, 0.0]]]  # everything inside is released
    given["designs"].write_text(json.dumps(content), encoding="utf-8")
    setting = Setting(RAIN, 2.0, off.BestLocal(), "run")
    assert not Designs.load(given["designs"], setting).designs
    third = dry(RAIN, frame, listed, 2.0, **given)
    assert len(made) == 2
    assert third.explain().equals(first.explain())
    assert any("made 1 design anew" in warning for warning in third.summary.warnings)


def test_a_file_keeps_windows_and_believes_none_without_its_seal(tmp_path, monkeypatch):
    made, proven = [], []
    around, judge = BestWindow.around, verify_designs.judged
    monkeypatch.setattr(BestWindow, "around", lambda *asked: made.append(1) or around(*asked))
    monkeypatch.setattr(verify_designs, "judged", lambda *asked: proven.append(1) or judge(*asked))
    frame, listed = chain_table(30, [8, 12, 17])
    given = {"designs": tmp_path / "designs.json", "key_file": tmp_path / "key" / "key.json"}
    first = keep_designs(RAIN, frame, listed, 2.0, **given)
    made_first = len(made)
    assert made_first > 0
    assert proven
    proven.clear()
    again = dry(RAIN, frame, listed, 2.0, **given)
    assert len(made) == made_first
    assert not proven  # sealed once they were
    assert first.explain().equals(again.explain())
    content = json.loads(Path(given["designs"]).read_text(encoding="utf-8"))
    assert len(content["windows"]) == made_first
    for rows in content["sides"]:
        rows[:] = [[10, [0.0, 0.0]]]  # everything is released
    given["designs"].write_text(json.dumps(content), encoding="utf-8")
    assert not Designs.load(given["designs"], Setting(RAIN, 2.0, off.BestLocal(), "run")).windows
    third = dry(RAIN, frame, listed, 2.0, **given)
    assert len(made) == 2 * made_first
    assert third.explain().equals(first.explain())


def test_windows_do_not_depend_on_what_else_their_file_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(off.mechanisms.workshop.Workshop, "most", 3)  # then rooms are rounded up
    tables = [chain_table(40, [3, 9, 20, 33]), chain_table(25, [2, 11, 19])]
    given = {"designs": tmp_path / "designs.json", "key_file": tmp_path / "key" / "key.json"}
    for frame, listed in tables:
        keep_designs(RAIN, frame, listed, 2.0, **given)
    for frame, listed in tables:
        kept = dry(RAIN, frame, listed, 2.0, **given)
        alone = dry(RAIN, frame, listed, 2.0)
        assert kept.summary.window == alone.summary.window


@pytest.mark.parametrize("damage", [[1, 0, 1], [0] * 10, [2] + [1] * 9, "no", [1] * 9 + [0]])
def test_a_damaged_cluster_is_refused(tmp_path, damage):
    frame, listed = chain_table(30, [8, 12, 17])
    given = {"designs": tmp_path / "designs.json", "key_file": tmp_path / "key" / "key.json"}
    keep_designs(RAIN, frame, listed, 2.0, **given)
    content = json.loads(Path(given["designs"]).read_text(encoding="utf-8"))
    for one in content["designs"]:
        if one["inside"]:
            one["inside"] = damage
    given["designs"].write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(off.InputError, match="damaged"):
        dry(RAIN, frame, listed, 2.0, **given)
