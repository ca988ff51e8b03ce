"""A kind of model of one's own needs its members and a mean; the rest comes from the base."""

from types import SimpleNamespace

import numpy as np
import pytest

import offrecord as off
from offrecord.mechanisms.design_table import design_table
from offrecord.mechanisms.rules import Setting
from offrecord.models import file
from offrecord.models.members import Members
from offrecord.models.promise import Promise
from offrecord.tables.summary import promise_text

LIST = off.KnownChains([off.MarkovChain.binary(0.1, 0.3), off.MarkovChain.binary(0.2, 0.3)])


class Weighted(Promise):
    """Two chains, of which the first is drawn nine times as often."""

    coverage, labels, order, places = 0.95, LIST.labels, 1, None
    mean = Members(np.tensordot([0.9, 0.1], LIST.all.rows, axes=1)[np.newaxis], 1)

    def members(self, count, seed):
        entropy = int.from_bytes(seed, "big") if isinstance(seed, bytes) else seed
        drawn = np.random.default_rng(entropy).choice(2, count, p=[0.9, 0.1])
        return Members(LIST.all.rows[drawn], 1)

    def form(self):
        return SimpleNamespace(to_dict=lambda: {"kind": "weighted"})


def test_it_is_designed_for_by_the_command_line(run, monkeypatch):
    monkeypatch.setattr(off, "load_model", lambda path: file.Model(Weighted()))
    asked = ["--model", "any.json", "--n", "12", "--private", "4", "--epsilon", "1"]
    for mechanism in ("window", "best-local", "owner"):
        code, out, err = run("design", *asked, "--mechanism", mechanism)
        assert (code, err) == (0, ""), mechanism
        assert "of ε = 1" in out
    assert Weighted().chain.transition[0, 1] == pytest.approx(0.11)


def test_its_promise_is_that_of_drawn_chains():
    policy = design_table(off.BestWindow(), Weighted(), 1.0, "run", [Setting("record")])
    chosen, given = SimpleNamespace(policy=policy, kind="rules"), SimpleNamespace(epsilon=1.0)
    plan = SimpleNamespace(chosen=chosen, model=file.Model(Weighted()), given=given)
    assert "in 95 % of the chains of the model (2,000 drawn: 0 exceed it" in promise_text(plan)


def test_its_coverage_is_its_own():
    with pytest.raises(off.InputError, match="coverage is for models that were fitted"):
        off.Problem(Weighted().chain, 5, [2], 1.0, models=Weighted(), coverage=0.99)
