"""The form of certificates: what is written is read, anything else gets one line."""

import copy
import json

import numpy as np
import pytest

from offrecord.errors import InputError
from offrecord.mechanisms.rules import LocalRule, Pair, Setting, StoppingRule
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.posterior import Posterior
from offrecord.release.certificate import (
    Certificate,
    Claim,
    Columns,
    Counts,
    Output,
    Policy,
    Private,
    Standing,
    assumptions,
    software_versions,
    statement,
)
from offrecord.verification.agreement import disagreements


def certificate():
    promise = Posterior([[90, 10], [30, 70]], 1, ["dry", "wet"])
    stop = np.array([[[[0.5, 0.25], [0.125, 0.0]]]])
    walk = StoppingRule(1, 2, np.array([1, 3]), np.array([0, 0]), stop)
    rules = {
        Setting("record"): Pair(LocalRule.window(3, 2), LocalRule(np.array([[1.0, 0.5]]))),
        Setting("run"): Pair(walk, walk),
    }
    policy = TablePolicy("mine", 1.0, "run", 0.99, rules)
    return Certificate(
        kind="rules",
        claim=Claim(
            epsilon=1.0, protect="run", coverage=0.99, statement=statement("rules", 1.0, 0.99)
        ),
        assumptions=assumptions("rules", growing=False, kept=False),
        dataset="rain",
        columns=Columns(value="v", order="t", by=("id",), order_kind="integer"),
        counts=Counts(rows=9, chains=1, missing=0, private=1, runs=1, released=6),
        private=Private(count=1, digest="0" * 32 + ":1"),
        release=Standing(others=0),
        policy=Policy.of(policy.to_dict()),
        model=promise.form(),
        versions=software_versions(),
        key_id="0" * 16,
        output=Output(format="csv", rows=9, columns=("id", "t", "v"), sha256="0" * 64),
    ), policy


def test_what_is_written_is_read():
    one, policy = certificate()
    read = Certificate.from_dict(json.loads(one.to_json()))
    assert read == one
    assert list(disagreements(read)) == []
    again = TablePolicy.from_dict(read.policy.to_dict())
    for setting, pair in policy.rules.items():
        for rule, other in zip(pair, again.rules[setting], strict=True):
            assert rule.to_dict() == other.to_dict()
    assert Certificate.model_json_schema()["title"] == "Certificate"


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("version",), 5, "version must be 6"),
        (("format",), "x", "not a certificate"),
        (("kind",), "none", "policy and model go with"),
        (("counts", "rows"), "9", "counts.rows"),
        (("counts", "rows"), -1, "counts.rows"),
        (("counts", "more"), 1, "counts.more"),
        (("key_id",), "xyz", "key_id"),
        (("output", "files"), {}, "either sha256 or files"),
        (("model", "counts"), [[1, -1], [1, 1]], "counts"),
        (("model", "kind"), "box", "model"),
        (("policy", "rules", 0, "right", "redaction"), [[1.0, 1e-19]], "2\\*\\*-64"),
        (("policy", "rules", 0, "right", "redaction"), [[1.0], [0.5, 0.5]], "row of 2 to 64"),
        (("policy", "rules", 1, "left", "levels"), [3, 1], "levels must rise"),
        (("policy", "rules", 1, "left", "far"), [0], "far must"),
        (("policy", "rules", 1, "left", "stop"), "AAAA", "stop must"),
    ],
)
def test_anything_else_gets_a_line(path, value, says):
    content = json.loads(certificate()[0].to_json())
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError, match=says) as error:
        Certificate.from_dict(content)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"a": NaN}', b"\xff", b"[" * 100_000])
def test_what_is_no_json(text, tmp_path):
    path = tmp_path / "c.json"
    path.write_bytes(text)
    with pytest.raises(InputError, match=r"JSON|certificate"):
        Certificate.load(path)
    with pytest.raises(InputError, match="does not exist"):
        Certificate.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("claim", "statement"), "x", "claim.statement"),
        (("claim", "coverage"), 0.95, "claim.coverage"),
        (("assumptions",), [], "assumptions"),
        (("private", "count"), 2, "counts.private"),
        (("counts", "runs"), 2, "counts"),
        (("output", "rows"), 8, "output.rows"),
        (("policy", "epsilon"), 2.0, "policy"),
        (("columns", "step"), "1x", "columns.step"),
        (("columns", "zone"), "Europe/Berlin", "columns.zone"),
        (
            ("verdicts",),
            [{"epsilon": 1e308, "verdict": "holds", "promised": 2.0}],
            "verdicts.promised",
        ),
        (
            ("verdicts",),
            [{"epsilon": 0.0, "verdict": "holds", "promised": 1.0}],
            "nothing was counted",
        ),
        (("growing",), {"until": 9, "lag": 0, "reach": 0, "link": 0}, "growing"),
    ],
)
def test_a_certificate_that_contradicts_itself(path, value, says):
    content = copy.deepcopy(json.loads(certificate()[0].to_json()))
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert any(says in one for one in disagreements(Certificate.from_dict(content)))
