"""A mechanism of one's own needs its file and a line of the registry: everything else takes it."""

import json
import warnings

import numpy as np
import polars as pl
import pytest
from one_coin import CoinEach, CoinRule, OneCoin

import offrecord as off
from definition import told_by_outcomes
from offrecord.attacks import attack
from offrecord.mechanisms import REGISTRY
from offrecord.mechanisms.base import Policy
from offrecord.mechanisms.design_table import design_table
from offrecord.mechanisms.rules import Setting, SideRule, rule_of
from offrecord.models.file import Model
from offrecord.models.members import Places
from offrecord.models.posterior import Posterior
from offrecord.release.certificate import Unknown
from offrecord.reports.report import report
from offrecord.verification import verify

HOURS = np.array([[[40, 10], [15, 35]]] * 12 + [[[30, 20], [25, 25]]] * 12)
MODELS = {
    "one chain": off.MarkovChain([[0.7, 0.3], [0.4, 0.6]]),
    "a start of its own": off.MarkovChain([[0.7, 0.3], [0.4, 0.6]], start=[1, 0]),
    "order 2": off.MarkovChain([[[0.6, 0.4], [0.4, 0.6]], [[0.6, 0.4], [0.3, 0.7]]], order=2),
    "plausible chains by the hour": Posterior(
        HOURS.sum(axis=0), 1, [0, 1], 0.95,
        places=Places("hour", 24, "UTC"), place_counts=HOURS, place_kappa=50.0,
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(REGISTRY, "one-coin", ("one_coin.OneCoin", {}))
    monkeypatch.setitem(REGISTRY, "coin-each", ("one_coin.CoinEach", {}))


def frame(length=72):
    """Three chains by the hour, with lone private records, runs, and two at a chain's ends."""
    rng = np.random.default_rng(1)
    hidden = np.zeros((3, length), dtype=bool)
    hidden[0, [0, 30, 31, 50]] = hidden[1, [20, 23]] = hidden[2, length - 1] = True
    return pl.DataFrame(
        {
            "room": np.repeat(["a", "b", "c"], length),
            "hour": [f"2026-01-{1 + t // 24:02}T{t % 24:02}:00:00Z" for t in range(length)] * 3,
            "state": rng.integers(2, size=3 * length),
            "hidden": hidden.ravel(),
        }
    )


class Desk:
    """A table, redacted in one folder."""

    def __init__(self, folder, run, model):
        self.folder, self.run, self.out = folder, run, folder / "out.csv"
        self.proof = folder / "out.csv.certificate.json"
        promise = model if isinstance(model, Posterior) else off.KnownChains([model])
        self.options = {
            "value": "state", "order": "hour", "by": "room", "private": "hidden", "step": "1h",
            "model": Model(promise), "epsilon": 1.5, "dataset": "out", "accept": ["model"],
            "publish_positions": True, "key_file": folder / "keys" / "key.json",
        }  # fmt: skip

    def redact(self, mechanism, table=None, **options):
        """A release in memory, written to out.csv."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = off.redact(
                frame() if table is None else table,
                mechanism=mechanism,
                **self.options | options,
            )
        made.write(self.out, force=True)
        return made

    def stream(self, mechanism):
        """The same of a file, part by part."""
        file = self.folder / "table.csv"
        frame().write_csv(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            off.redact_file(file, self.out, mechanism=mechanism, force=True, **self.options)


@pytest.fixture
def desk(tmp_path, run):
    return lambda model: Desk(tmp_path, run, MODELS[model])


@pytest.mark.parametrize(
    "model", ["one chain", "a start of its own", "plausible chains by the hour"]
)
def test_local_rules_are_certified_verified_attacked_and_reported(desk, model):
    made = desk(model)
    release = made.redact("coin-each")
    assert not any("by their own account" in warning for warning in release.summary.warnings)
    assert json.loads(made.proof.read_text())["policy"]["mechanism"] == "coin-each"
    assert verify(made.proof, made.out).status == "verified"
    assert attack(made.out).holds
    assert "coin-each" in report(made.proof, made.out).html


@pytest.mark.parametrize("model", MODELS)
def test_a_third_kind_is_certified_attacked_and_reported(desk, model):
    made = desk(model)
    release = made.redact("one-coin")
    assert any("by their own account" in warning for warning in release.summary.warnings)
    assert json.loads(made.proof.read_text())["policy"]["mechanism"] == "one-coin"
    found = attack(made.out)
    assert any("rules of the kind coin" in note for note in found.notes)
    assert str(found).startswith("the model attacks none of")
    page = report(made.proof, made.out)
    assert "one-coin" in page.html
    assert page.lead.startswith("The certificate of this release cannot be judged")


def test_a_third_kind_cannot_be_judged_and_is_not_called_forged(desk):
    made = desk("one chain")
    made.redact("one-coin")
    code, out, _ = made.run("verify", made.proof, made.out, "--json")
    verdict = json.loads(out)
    assert (code, verdict["status"]) == (1, "cannot judge")
    assert verdict["problems"] == ["rules of the kind 'coin'"]
    made.out.write_text(made.out.read_text().replace(",1\n", ",0\n", 1))
    assert json.loads(made.run("verify", made.proof, made.out, "--json")[1])["status"] == (
        "not verified"
    )


@pytest.mark.parametrize("mechanism", ["one-coin", "coin-each"])
def test_a_stream_gives_the_bytes_of_memory(desk, mechanism, monkeypatch):
    from offrecord.tables.engines import stream

    made = desk("plausible chains by the hour")
    made.redact(mechanism)
    memory = made.out.read_bytes(), made.proof.read_bytes()
    monkeypatch.setattr(stream, "_PART", 50)
    made.stream(mechanism)
    assert (made.out.read_bytes(), made.proof.read_bytes()) == memory


@pytest.mark.parametrize("mechanism", ["one-coin", "coin-each"])
def test_a_growing_table_repeats_what_left(desk, mechanism):
    made, table = desk("one chain"), frame()
    early = table.filter(pl.col("hour") < "2026-01-03")
    made.redact(mechanism, table=early, growing=True)
    before = pl.read_csv(made.out)
    made.redact(mechanism, table=table, growing=True)
    both = before.join(pl.read_csv(made.out), on=["room", "hour"]).drop_nulls("state")
    assert len(both) > 60
    assert both["state"].equals(both["state_right"], check_names=False)


@pytest.mark.parametrize("chain", ["one chain", "a start of its own", "order 2"])
@pytest.mark.parametrize("private", [[1], [3], [3, 4], [2, 6]])
def test_the_policy_of_a_problem_is_private_by_the_definition(chain, private, tmp_path):
    problem = off.Problem(MODELS[chain], 6, private, 1.5)
    for mechanism in (OneCoin(more=1), CoinEach(more=1)):
        if problem.chain.order > 1 and mechanism.name == "coin-each":
            continue  # of order 2 the leakage of each output is computed, and these are many
        policy = off.design(problem, mechanism)
        leakage, released = told_by_outcomes(problem, policy)
        assert leakage <= policy.leakage + 1e-9
        assert policy.is_private
        assert policy.utility == pytest.approx(released, abs=1e-9)
        policy.save(tmp_path / f"{mechanism.name}.json")
        assert Policy.load(tmp_path / f"{mechanism.name}.json").utility == policy.utility


def test_the_command_line_designs_and_compares_by_name(run):
    asked = ["--alpha", "0.1", "--beta", "0.4", "--n", "20", "--private", "4"]
    for name in ("one-coin", "coin-each"):
        code, out, _ = run("design", *asked, "--epsilon", "1", "--mechanism", name, "--json")
        assert code == 0
        assert json.loads(out)["leakage"] <= 1
        assert run("compare", *asked, "--epsilon", "1", "--mechanism", name)[0] == 0


@pytest.mark.parametrize("mechanism", ["owner", "one-coin", "coin-each"])
def test_of_a_chain_that_is_private_as_a_whole_nothing_leaves(mechanism):
    problem = off.Problem(MODELS["one chain"], 3, [1, 2, 3], 1.0)
    policy = off.design(problem, mechanism)
    assert (policy.leakage, policy.utility) == (0, 0)


def test_whole_runs_are_protected_by_what_is_not_local():
    posterior = MODELS["plausible chains by the hour"]
    settings = [Setting("record", place) for place in range(24)]
    with pytest.raises(off.InputError, match="protect must be 'run'"):
        design_table(OneCoin(), posterior, 1.5, "each", settings)

    class Hidden(OneCoin):
        joins = False

    with pytest.raises(off.InputError, match="it must set joins"):
        design_table(Hidden(), posterior, 1.5, "run", settings)


def test_rules_of_files_are_those_of_the_class():
    rule = CoinRule(2, 3, 1, 0.25)
    assert vars(rule_of(Unknown(**rule.to_dict()))) == vars(rule)
    assert issubclass(CoinRule, SideRule)
    with pytest.raises(off.InputError, match="'dice'"):
        rule_of(Unknown(kind="dice"))
