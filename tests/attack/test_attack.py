"""The verb: who finds what, what is refused, and what is never said."""

import json
import warnings
from itertools import product

import numpy as np
import polars as pl
import pytest

import offrecord as off
from attack.test_bayes import bayes, check, released
from definition import samples
from offrecord.attack import attack
from offrecord.attack.result import BEYOND, ORIGINAL, PROMISED
from offrecord.attack.shown import Shown
from offrecord.attack.steps import Steps
from offrecord.attack.walking import told
from offrecord.mechanisms.blocks import Secrets
from offrecord.models.records import Chains

BINARY = off.MarkovChain.binary(0.1, 0.3)


def long_table(values):
    count, n = values.shape
    return pl.DataFrame(
        {
            "chain": np.repeat(np.arange(count), n),
            "t": np.tile(np.arange(n), count),
            "v": values.ravel(),
        }
    )


def drawn(chain, count, n, seed):
    return long_table(samples(chain, count, n, np.random.default_rng(seed)))


def private_of(frame, share, seed):
    taken = np.random.default_rng(seed).random(frame.height) < share
    return frame.filter(pl.Series(taken)).select("chain", "t")


@pytest.fixture
def release(tmp_path):
    """A release with its original."""
    frame = drawn(BINARY, 30, 40, 1)
    frame.write_parquet(tmp_path / "original.parquet")
    released(BINARY, frame, private_of(frame, 0.03, 2), 1.0, tmp_path)
    return tmp_path


# ---- the promise


@pytest.mark.parametrize("mechanism", ["best-local", "window", "3r-relaxed"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_promise_holds_and_erasure_would_not(tmp_path, mechanism, epsilon):
    frame = drawn(BINARY, 30, 40, 3)
    frame.write_parquet(tmp_path / "original.parquet")
    keys = private_of(frame, 0.02, 4)
    _, path = released(BINARY, frame, keys, epsilon, tmp_path, mechanism=mechanism)
    found = attack(path, original=tmp_path / "original.parquet", others=False)
    kinds = {one.name: one for one in found.attackers}
    assert found.holds
    assert 0 < found.own.largest <= epsilon + 1e-9
    assert kinds["instead: plain erasure"].largest > epsilon
    assert kinds["instead: plain erasure"].above(epsilon) > 0.5
    assert kinds["instead: window"].largest <= epsilon + 1e-9
    assert not found.notes
    assert not found.unattacked


def test_missing_values_that_nobody_knows(tmp_path):
    """Without the original, an empty cell that may have been redacted counts as such."""
    frame = drawn(BINARY, 30, 40, 5)
    empty = np.random.default_rng(6).random(frame.height) < 0.05
    frame = frame.with_columns(v=pl.when(pl.Series(~empty)).then(pl.col("v")))
    keys = private_of(frame, 0.02, 7)
    for protect in ("run", "each"):
        _, path = released(BINARY, frame, keys, 1.0, tmp_path, protect=protect)
        found = attack(path, others=False)
        assert found.holds
        assert found.own.largest <= 1.0 + 1e-9


@pytest.mark.parametrize("mechanism", ["best-local", "owner"])
def test_corners_of_a_set(tmp_path, mechanism):
    rng = np.random.default_rng(8)
    reference = long_table(samples(BINARY, 200, 50, rng))
    fitted = off.fit(reference, value="v", order="t", by="chain", step=1, no_audit=True)
    frame = drawn(BINARY, 30, 40, 9)
    keys = private_of(frame, 0.05, 10)
    _, path = released(fitted.model, frame, keys, 1.0, tmp_path, mechanism=mechanism)
    found = attack(path)
    assert found.attackers[0].kind == PROMISED
    assert not found.unattacked
    corner = next(one for one in found.attackers if "corner" in one.name)
    assert corner.kind == PROMISED
    assert found.own.largest <= corner.largest <= 1.0 + 1e-9
    assert np.all(np.abs(corner.ratios) >= 0)
    assert found.holds


# ---- who knows more


@pytest.mark.parametrize("mechanism", ["best-local", "owner"])
def test_a_longer_memory_finds_what_the_model_does_not_know(tmp_path, mechanism):
    """The next value is that of two records before, mostly: to order 1 all records are a coin."""
    rng = np.random.default_rng(11)
    values = np.empty((200, 60), dtype=np.int64)
    values[:, :2] = rng.random((200, 2)) < 0.5
    for t in range(2, 60):
        same = rng.random(200) < 0.9
        values[:, t] = np.where(same, values[:, t - 2], 1 - values[:, t - 2])
    frame = long_table(values)
    chain = off.MarkovChain.binary(0.5, 0.5)
    keys = private_of(frame, 0.01, 12)
    _, path = released(chain, frame, keys, 0.5, tmp_path, mechanism=mechanism)
    found = attack(path)
    longer = {one.name: one for one in found.attackers}["a memory of 2 records"]
    assert found.holds
    assert found.own.largest == pytest.approx(0.0, abs=1e-12)
    assert longer.kind == BEYOND
    assert longer.largest > 2.0
    assert longer.above(0.5) > 0.8
    assert "a memory of 2 records" in found.exceeded


def test_the_next_chain_and_the_clock(tmp_path):
    """Chains in twos that show the same, and values that stay by day and not by night."""
    rng = np.random.default_rng(13)
    values = rng.integers(0, 2, (10, 24 * 20))
    for t in range(1, values.shape[1]):
        stays = rng.random(10) < 0.99 if t % 24 < 12 else np.zeros(10, dtype=bool)
        values[:, t] = np.where(stays, values[:, t - 1], values[:, t])
    values[1::2] = values[::2]
    frame = long_table(values).with_columns(
        t=pl.datetime(2026, 1, 1) + pl.duration(hours=pl.col("t"))
    )
    keys = private_of(frame, 0.01, 14)
    release = off.redact(
        frame,
        value="v",
        order="t",
        by="chain",
        step="1h",
        private_list=keys,
        model=off.MarkovChain.binary(0.25, 0.25),
        epsilon=1.0,
        dataset="d",
        mechanism="window",
        accept_model=True,
        publish_positions=True,
        key_file=tmp_path / "keys" / "key.json",
    )
    out = tmp_path / "out" / "released.parquet"
    out.parent.mkdir()
    release.write(out)
    found = attack(out)
    named = {one.name: one for one in found.attackers}
    assert found.holds
    assert named["the next chain alone"].largest > 1.0
    assert named["the hour"].largest > 1.0
    assert "the weekday" in named


# ---- other models, against the definition


def one_chain(likes):
    """Evidence of a chain whose every record shows something of its own."""
    n = len(likes)
    chains = Chains(np.array([0, n]), np.zeros(n, dtype=np.int8), np.arange(n), False, None)
    codes = np.full(n, -1, dtype=np.int8)
    released = np.flatnonzero((likes > 0).sum(axis=1) == 1)
    codes[released] = likes[released].argmax(axis=1)
    holes = np.setdiff1d(np.arange(n), released)
    return Shown.of(chains, codes, holes, likes[holes])


def secret(first, last):
    return Secrets(*(np.array([one]) for one in (0, first, last, first, last + 1, first)))


def shows_of(rng, n, k, first, last):
    likes = np.ones((n, k))
    for t in range(n):
        if not first <= t <= last:
            value = np.eye(k)[rng.integers(k)]
            likes[t] = value if rng.random() < 0.6 else rng.choice([0.2, 0.5, 1.0], k)
    return likes


ORDERS = [
    off.MarkovChain(np.random.default_rng(15).dirichlet([1, 1], (2, 2)), order=2),
    off.MarkovChain(np.random.default_rng(16).dirichlet([1, 1, 1], (3, 3)), order=2),
    off.MarkovChain(np.random.default_rng(17).dirichlet([1, 1], (2, 2, 2)), order=3),
    off.MarkovChain([[0.5, 0.5], [1.0, 0.0]]),
    off.MarkovChain([[0.7, 0.3], [0.2, 0.8]], start=[0.9, 0.1]),
    off.MarkovChain(np.random.default_rng(18).dirichlet([1, 1], (5, 2)), start=[0.4, 0.6]),
]


@pytest.mark.parametrize("chain", ORDERS)
def test_chains_of_any_kind(chain):
    rng, n = np.random.default_rng(19), 6
    for first, last in [(0, 0), (1, 1), (3, 3), (5, 5), (2, 3), (0, 1), (1, 4), (3, 5), (0, 5)]:
        for _ in range(4):
            likes = shows_of(rng, n, chain.k, first, last)
            found = told(Steps.of_chain(chain), one_chain(likes), secret(first, last))
            expected = bayes(chain, likes, first, last)
            if expected is None:
                continue
            ratio, prior, posterior = expected
            assert abs(found.ratio[0]) == pytest.approx(ratio, abs=1e-9)
            assert found.prior[0] == pytest.approx(prior, abs=1e-9)
            assert found.posterior[0] == pytest.approx(posterior, abs=1e-9)


def test_hidden_states():
    """Against a sum over all states."""
    kernel = np.random.default_rng(20).dirichlet([1, 1, 1], 3)
    chain = off.MarkovChain(kernel, shows=[0, 0, 1])
    states, rng, n = chain.lifted, np.random.default_rng(21), 5
    for first, last in [(0, 0), (2, 2), (4, 4), (1, 2), (0, 3)]:
        likes = shows_of(rng, n, 2, first, last)
        seen, mass = {}, {}
        for path in product(range(3), repeat=n):
            chance = states.start[path[0]] * np.prod(kernel[path[:-1], path[1:]])
            values = tuple(chain.shows[list(path)].tolist())
            here = values[first : last + 1]
            mass[here] = mass.get(here, 0) + chance
            seen[here] = seen.get(here, 0) + chance * np.prod(likes[range(n), values])
        ratios = [seen[one] / mass[one] for one in seen]
        found = told(Steps.of_chain(chain), one_chain(likes), secret(first, last))
        assert abs(found.ratio[0]) == pytest.approx(np.log(max(ratios) / min(ratios)), abs=1e-9)


def test_order_two_in_a_table(tmp_path):
    chain = off.MarkovChain([[[0.8, 0.2], [0.4, 0.6]], [[0.6, 0.4], [0.3, 0.7]]], order=2)
    values = np.random.default_rng(22).integers(0, 2, (2, 7))
    keys = pl.DataFrame({"chain": [0, 1, 1], "t": [3, 1, 2]})
    check(chain, long_table(values), keys, 1.0, tmp_path)


def test_a_clock_in_the_model(tmp_path):
    """Two values that follow each other by the weekday; a day without a row lies between."""
    rng = np.random.default_rng(25)
    kernels, starts = rng.dirichlet([3, 3], (7, 2)), rng.dirichlet([3, 3], 7)
    model = off.PhasedChain("weekday", kernels, starts).rounded()
    days = [0, 1, 2, 3, 5, 6]
    frame = pl.DataFrame({"day": days, "v": [0, 1, 1, 0, 0, 1]}).with_columns(
        day=pl.date(2026, 1, 1) + pl.duration(days=pl.col("day"))  # a Thursday
    )
    release = off.redact(
        frame,
        value="v",
        order="day",
        single_chain=True,
        step="1d",
        private_list=frame[[2]].select("day"),
        model=model,
        epsilon=0.4,
        dataset="d",
        mechanism="best-local",
        accept_model=True,
        publish_positions=True,
        key_file=tmp_path / "keys" / "key.json",
    )
    path = tmp_path / "out" / "released.csv"
    path.parent.mkdir()
    release.write(path)
    found = attack(path)
    rule = release.explain().select(pl.col("^Pr.*$")).to_numpy()
    likes = np.ones((7, 2))
    for place, value, chances in zip(days, release.frame["v"].to_list(), rule, strict=True):
        likes[place] = chances if value is None else np.eye(2)[value]
    chain = model.along((np.arange(7) + 3) % 7)
    ratio, prior, posterior = bayes(chain, likes, 2, 2)
    assert abs(found.own.ratios[0]) == pytest.approx(ratio, abs=1e-9)
    assert found.prior[0] == pytest.approx(prior, abs=1e-9)
    assert found.posterior[0] == pytest.approx(posterior, abs=1e-9)
    assert found.holds


# ---- the command


def test_text_and_json(run, release):
    table = release / "released.parquet"
    code, out, err = run("attack", table, "--original", release / "original.parquet")
    assert (code, err) == (0, "")
    assert out.startswith("within ε = 1: ")
    assert "instead: plain erasure †" in out
    code, out, err = run("attack", table, "--json")
    said = json.loads(out)
    assert (code, err, said["holds"]) == (0, "", True)
    own = said["attackers"][0]
    assert own["secrets"] == said["secrets"]
    assert 0 < own["median"] <= own["largest"] <= 1 + 1e-9
    assert own["above"] == 0
    assert all(one["kind"] != ORIGINAL for one in said["attackers"])


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_picture(run, release, kind):
    picture = release / f"ratios.{kind}"
    assert run("attack", release / "released.parquet", "--picture", picture)[0] == 0
    assert picture.stat().st_size > 1000
    code, _, err = run("attack", release / "released.parquet", "--picture", picture)
    assert code == 2
    assert err.count("\n") == 1


def changed(path, change):
    """A certificate with something else in it."""
    proof = path / "released.parquet.certificate.json"
    content = json.loads(proof.read_text())
    change(content)
    proof.write_text(json.dumps(content))


def test_a_design_that_redacts_too_little_is_found(run, release):
    """The table is erased plainly, and the certificate says just that."""
    original = pl.read_parquet(release / "original.parquet")

    def plain(content):
        for design in content["designs"]["designs"]:
            design["left_rest"] = design["right_rest"] = False
        content["designs"]["sides"] = [[[1, [0.0, 0.0]]] for _ in content["designs"]["sides"]]
        content["designs"]["kind"] = "local"
        for design in content["designs"]["designs"]:
            for name in ("mechanism", "inside", "redaction_inside"):
                design.pop(name, None)
        content["designs"]["mechanism"] = "best-local"
        content["private"]["positions"]["keys"] = [[0, 10]]
        content["private"]["count"] = content["counts"]["private"] = 1
        content["counts"]["secrets"] = 1
        first = content["designs"]["designs"][0]
        room = content["designs"]["grids"]["left"]
        first["left"] = next(one for one in room if one >= min(10, room[-1]))
        room = content["designs"]["grids"]["right"]
        first["right"] = next(one for one in room if one >= min(29, room[-1]))
        first["length"], first["uses"] = 1, 1
        content["designs"]["designs"] = [first]

    changed(release, plain)
    here = (pl.col("chain") == 0) & (pl.col("t") == 10)
    out = original.with_columns(v=pl.when(~here).then(pl.col("v")))
    out.write_parquet(release / "released.parquet")
    code, said, _ = run("attack", release / "released.parquet")
    assert code == 1
    assert said.startswith("NOT WITHIN ε")


def test_a_private_value_that_was_released(run, release):
    (release / "released.parquet").write_bytes((release / "original.parquet").read_bytes())
    code, out, _ = run("attack", release / "released.parquet", "--json")
    said = json.loads(out)
    assert code == 1
    assert said["attackers"][0]["largest"] == "infinite"
    assert said["released_though_always_redacted"] > 0


def test_strict(run, tmp_path):
    rng = np.random.default_rng(23)
    values = np.repeat(rng.integers(0, 2, (100, 20)), 2, axis=1)  # in twos
    chain = off.MarkovChain.binary(0.25, 0.25)
    frame = long_table(values)
    _, path = released(chain, frame, private_of(frame, 0.02, 24), 1.0, tmp_path)
    assert run("attack", path)[0] == 0
    assert run("attack", path, "--strict")[0] == 1


def refused(run, *arguments):
    code, out, err = run("attack", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "internal error" not in err
    return err


def test_what_cannot_be_read(run, release, tmp_path):
    table = release / "released.parquet"
    assert "No such file" in refused(run, table, "--certificate", tmp_path / "none.json")
    assert "ratios.gif" in refused(run, table, "--picture", tmp_path / "ratios.gif")
    other = tmp_path / "other.parquet"
    pl.read_parquet(release / "original.parquet").head(100).write_parquet(other)
    proof = release / "released.parquet.certificate.json"
    assert "not of the same release" in refused(run, other, "--certificate", proof)
    refused(run, table, "--original", other)
    refused(run, tmp_path / "absent.parquet", "--certificate", proof)
    changed(release, lambda content: content["private"].update(positions=None))
    assert "--private-list" in refused(run, table)
    listed = tmp_path / "list.csv"
    listed.write_text("chain,t\n1,1\n")
    assert "private record" in refused(run, table, "--private-list", listed)
    changed(release, lambda content: content["designs"].update(kind="mine"))
    assert "mine" in refused(run, table)
    proof.write_text("{")
    refused(run, table)


def test_a_list_does_as_well_as_positions(run, release):
    table = release / "released.parquet"
    with_positions = run("attack", table, "--json")[1]
    content = json.loads((release / "released.parquet.certificate.json").read_text())
    keys = content["private"]["positions"]["keys"]
    listed = release / "list.csv"
    listed.write_text("chain,t\n" + "".join(f"{a},{b}\n" for a, b in keys))
    changed(release, lambda content: content["private"].update(positions=None))
    assert run("attack", table, "--private-list", listed, "--json")[1] == with_positions


HOURS = pl.datetime_range(
    pl.datetime(2026, 3, 28, time_zone="Europe/Berlin"),
    pl.datetime(2026, 3, 29, 6, time_zone="Europe/Berlin"),
    "1h",
    eager=True,
).head(30)
READ = {
    "rows": {"by": "site", "order": "row"},
    "zone": {"by": "site", "order": "time", "step": "1h"},
    "unit": {"by": "site", "order": "x", "order_unit": "0.1", "step": 1},
    "each": {"by": "site", "order": "i", "protect": "each"},
}


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_positions_are_found_however_the_table_is_read(tmp_path, read, ending):
    frame = pl.DataFrame(
        {
            "site": ["a b"] * 30 + ["07"] * 30,
            "w": np.random.default_rng(26).choice(["dry", "wet"], 60),
            "i": [*range(30)] * 2,
            "time": [*HOURS, *HOURS],
            "x": [0.1 * i for i in range(30)] * 2,
        }
    )
    release = off.redact(
        frame,
        value="w",
        private=pl.Series([i in (5, 9, 40) for i in range(60)]),
        model=off.MarkovChain.binary(0.3, 0.4, labels=["dry", "wet"]),
        epsilon=1.0,
        dataset="d",
        mechanism="best-local",
        accept_model=True,
        publish_positions=True,
        key_file=tmp_path / "keys" / "key.json",
        **READ[read],
    )
    path = tmp_path / "out" / f"released.{ending}"
    path.parent.mkdir()
    release.write(path)
    found = attack(path, others=False)
    assert (found.secrets, len(found.own.found), found.notes) == (3, 3, ())
    assert 0 < found.own.largest <= 1.0 + 1e-9


def test_no_secret(tmp_path):
    frame = drawn(BINARY, 2, 5, 27)
    _, path = released(BINARY, frame, None, 1.0, tmp_path, private=[False] * 10, allow_none=True)
    found = attack(path)
    assert found.holds
    assert found.most_moved is None
    assert "0 secrets" in str(found)


@pytest.mark.parametrize("mechanism", ["best-local", "owner"])
def test_twins(tmp_path, mechanism):
    """Two originals that differ only where everything is redacted and nobody looks, in the middle
    of private runs: the same is released, and the same is found.
    """
    frame = drawn(BINARY, 30, 40, 31)
    keys = frame.filter((pl.col("chain") % 2 == 0) & pl.col("t").is_between(18, 20))
    inside = (pl.col("chain") % 4 == 0) & (pl.col("t") == 19)
    twin = frame.with_columns(v=pl.when(inside).then(1 - pl.col("v")).otherwise(pl.col("v")))
    shown, said = [], []
    for one in (frame, twin):
        options = {"mechanism": mechanism}
        _, path = released(BINARY, one, keys.select("chain", "t"), 1.0, tmp_path, **options)
        shown.append(pl.read_parquet(path))
        said.append(str(attack(path)) + json.dumps(attack(path).to_dict()))
    assert not frame.equals(twin)
    assert shown[0].equals(shown[1])
    assert said[0] == said[1]


def test_private_values_change_nothing(release):
    """What is found follows from what was released: the original's private values do not matter."""
    table, original = release / "released.parquet", release / "original.parquet"
    found = attack(table, original=original)
    content = json.loads((release / "released.parquet.certificate.json").read_text())
    keys = {tuple(one) for one in content["private"]["positions"]["keys"]}
    frame = pl.read_parquet(original)
    is_private = pl.Series([one in keys for one in frame.select("chain", "t").rows()])
    frame = frame.with_columns(v=pl.when(is_private).then(1 - pl.col("v")).otherwise(pl.col("v")))
    frame.write_parquet(original)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = attack(table, original=original)
    assert json.dumps(found.to_dict()) == json.dumps(again.to_dict())


def test_memories_that_are_too_long_to_walk_are_said(tmp_path):
    twelve = off.MarkovChain((np.full((12, 12), 0.5) + 6.0 * np.eye(12)) / 12)
    frame = drawn(twelve, 20, 30, 11)
    keys = private_of(frame, 0.01, 12)
    _, path = released(twelve, frame, keys, 1.0, tmp_path, mechanism="window")
    found = attack(path)
    assert any("a memory of 3 records" in note for note in found.notes)
    assert any(one.name == "a memory of 2 records" for one in found.attackers)
