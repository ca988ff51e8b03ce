"""A mechanism that is not local goes the same ways as all others, without a change anywhere."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples, sequences
from offrecord import cli, mechanisms
from offrecord.mechanisms.local.by_policy import whole_mechanism
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.release.certificate import Certificate
from offrecord.release.coins import INTEGER, Coins, encoded_integers
from offrecord.release.keys import Key
from one_coin import PURPOSE, OneCoin, OneCoinPolicy

CHAIN = off.MarkovChain.binary(0.2, 0.3)
SCHEMA = Path(__file__).parents[2] / "docs" / "certificate.schema.json"
COLUMNS = {"value": "v", "order": "t", "by": "id", "private": "p"}
ASKED = COLUMNS | {"model": CHAIN, "epsilon": 1.0, "dataset": "d", "mechanism": OneCoin()}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    values = samples(CHAIN, 300, 40, rng)
    columns = {"id": np.repeat(np.arange(300), 40), "t": np.tile(np.arange(40), 300)}
    return pl.DataFrame(columns | {"v": values.ravel(), "p": rng.random(values.size) < 0.01})


@pytest.fixture
def key(tmp_path):
    return Key.new(tmp_path / "key" / "key.json")


def test_its_policy_is_private_by_the_definition(tmp_path):
    problem = off.Problem(CHAIN, 7, [2, 6], 1.0)
    policy = off.design(problem, OneCoin(0.3))
    assert policy.is_private
    told, expected = {}, 0.0
    paths, weights = sequences(CHAIN, 7)
    for path, weight in zip(paths, weights, strict=True):
        for mask, chance in policy.outcomes(path.tolist()):
            output = tuple(np.where(mask, path, -1).tolist())
            expected += weight * chance * mask.mean()
            for p in problem.private:
                shares = told.setdefault((p, output), np.zeros(2))
                shares[path[p - 1]] += weight * chance / CHAIN.marginal(1)[path[p - 1]]
    ratios = [abs(math.log(shares[0] / shares[1])) for shares in told.values()]
    assert max(ratios) == pytest.approx(policy.leakage, abs=1e-12)
    assert policy.leakage <= 1.0
    assert expected == pytest.approx(policy.utility, abs=1e-12)
    policy.save(tmp_path / "policy.json")
    again = off.Policy.load(tmp_path / "policy.json")
    assert isinstance(again, OneCoinPolicy)
    assert (again.leakage, again.utility) == (policy.leakage, policy.utility)
    with pytest.raises(off.InputError, match="of the kind one coin, not local"):
        off.LocalPolicy.load(tmp_path / "policy.json")


def slowly(frame, key):
    """The release, chain by chain: coins from the key alone, windows from the library."""
    coins, out = Coins(key.secret, "d", "v"), []
    for (name,), chain in frame.partition_by("id", as_dict=True).items():
        values, private = chain["v"].to_list(), np.flatnonzero(chain["p"].to_numpy())
        runs = np.split(private, np.flatnonzero(np.diff(private) > 1) + 1) if len(private) else []
        gone = np.zeros(len(values), dtype=bool)
        tags = coins.chain_tags([encoded_integers(np.array([name]), INTEGER)[0]])
        for run in runs:
            problem = off.Problem(CHAIN, len(values), (run + 1).tolist(), 1.0)
            gone |= off.design(problem, "window").redaction[:, 0] > 0
            draw = coins.draw(tags, run[:1].astype(np.int64), INTEGER, PURPOSE)[0]
            gone |= bool(draw < 2**62)  # a quarter
        out += [None if g else v for v, g in zip(values, gone, strict=True)]
    return out


def test_it_runs_in_memory_and_does_what_its_coins_say(frame, key):
    release = off.redact(frame, **ASKED, key_file=key.file)
    assert release.frame["v"].to_list() == slowly(frame, key)
    chains = release.frame.group_by("id").agg(pl.col("v").is_null().mean().alias("gone"))
    touched = frame.filter("p")["id"].n_unique()
    wholly = chains.filter(pl.col("gone") == 1).height
    assert 0 < wholly < touched  # heads and tails both came
    shown = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    shown.validate(release.certificate)
    assert release.certificate["designs"]["kind"] == "one coin"
    assert release.certificate["designs"]["composition"]["rule"] == "union"
    assert Certificate.from_dict(release.certificate).to_dict() == release.certificate
    assert set(release.summary.regions) == {"S", "M", "L", "private"}


def test_a_dry_run_foretells_it_and_its_rule_is_explained(frame, key):
    dry = off.redact(frame, **ASKED, key_file=key.file, dry_run=True)
    rule = dry.explain()
    assert rule.columns == ["id", "t", "region", "Pr(redacted)"]
    assert dry.summary.released == pytest.approx(1 - rule["Pr(redacted)"].mean(), abs=1e-12)
    shares = [
        off.redact(frame, **ASKED | {"dataset": f"d{i}"}, key_file=key.file).summary.released
        for i in range(20)
    ]
    assert np.mean(shares) == pytest.approx(dry.summary.released, abs=0.02)


def test_it_streams_to_the_same_bytes_and_keeps_its_designs(frame, key, tmp_path, monkeypatch):
    from offrecord.tables.engines import stream

    monkeypatch.setattr(stream, "_PART", 1000)
    monkeypatch.setitem(mechanisms.REGISTRY, "one-coin", OneCoin)
    frame.write_parquet(tmp_path / "table.parquet")
    CHAIN.save(tmp_path / "model.json")
    given = ["--value", "v", "--order", "t", "--by", "id", "--private", "p", "--epsilon", "1"]
    given += ["--model", str(tmp_path / "model.json"), "--dataset", "d", "--mechanism", "one-coin"]
    given += ["--key-file", str(key.file), "--designs", str(tmp_path / "designs.json")]
    for name, how in (("memory", "--in-memory"), ("stream", "--stream")):
        out = str(tmp_path / f"{name}.parquet")
        assert cli.main(["redact", str(tmp_path / "table.parquet"), *given, how, "-o", out]) == 0
    made = [(tmp_path / f"{name}.parquet").read_bytes() for name in ("memory", "stream")]
    assert made[0] == made[1]
    released = pl.read_parquet(tmp_path / "memory.parquet")
    assert released["v"].to_list() == slowly(frame, key)
    kept = json.loads((tmp_path / "designs.json").read_text())
    assert kept["chances"] == [0.25]
    assert {design["chance"] for design in kept["designs"]} == {0}


@dataclass(frozen=True)
class Mine:
    """A name and a design, no more: so many records on each side, whatever that leaks."""

    size: int
    name: str = "mine"

    def design(self, problem):
        low, high = problem.private[0] - 1 - self.size, problem.private[-1] + self.size
        stretch = (max(low, 0), min(high, problem.n), np.ones(problem.chain.k))
        redaction = off.Redaction.of(problem.n, problem.chain.k, [stretch])
        return off.LocalPolicy(problem, redaction, self.name)


@pytest.mark.parametrize("size", [0, 5])
def test_a_mechanism_that_only_designs_policies_is_refereed(size, frame, key):
    release = off.redact(frame, **ASKED | {"mechanism": Mine(size)}, key_file=key.file)
    gone = frame.with_columns(release.frame["v"].is_null().alias("gone"))
    private = frame.filter("p").select("id", pl.col("t").alias("p_t"))
    near = gone.join(private, "id").with_columns((pl.col("t") - pl.col("p_t")).abs().alias("away"))
    if size:  # within ε: as it says
        nearest = near.group_by("id", "t").agg(pl.col("away").min(), pl.col("gone").first())
        assert (nearest["gone"] == (nearest["away"] <= size)).all()
    else:  # leaks more: nothing around a secret leaves, however far
        assert near["gone"].all()
    assert release.certificate["claim"]["leakage"] <= 1.0
    assert release.certificate["claim"]["mechanism"] == "mine"


def test_the_design_of_a_lone_record_fills_the_room_of_its_problem():
    """Which has a second record; ledgers of earlier releases know the design by these bytes."""
    around = Surrounding(0, 0, 1)
    problem = around.problem(off.MarkovChain.binary(0.1, 0.3), 1.0, "run")
    design = whole_mechanism(Mine(5)).around(problem, around)
    shape = repr((0, 0, 1, "", 0, 1, False, True)).encode()
    assert design.identity == shape + np.ones((1, 2)).tobytes()
