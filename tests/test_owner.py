"""The owner of one record answers alone, always the same, and as often as the policy says."""

import io

import numpy as np
import pytest

import offrecord as off
from offrecord import cli
from offrecord.keys import Key
from offrecord.owner import answer, policy_id, value_of


@pytest.fixture
def policy():
    return off.design(off.Problem(off.MarkovChain.binary(0.01, 0.8), n=10, private=[1], epsilon=1.0))


def test_answers_follow_the_policy_and_repeat(policy, tmp_path):
    keys = [Key(bytes([i % 256, i // 256]) + bytes(30), tmp_path / "key") for i in range(2000)]
    assert all(answer(policy, 1, value, key) is None for key in keys[:50] for value in (0, 1))
    assert all(answer(policy, 7, value, key) == value for key in keys[:50] for value in (0, 1))
    silent = np.array([answer(policy, 2, 0, key) is None for key in keys])
    again = np.array([answer(policy, 2, 0, key) is None for key in keys])
    assert np.array_equal(silent, again)
    q = policy.redaction[1, 0]
    assert abs(silent.mean() - q) < 5 * np.sqrt(q * (1 - q) / len(keys))
    other = np.array([answer(policy, 3, 0, key) is None for key in keys])
    assert abs(np.corrcoef(silent, other)[0, 1]) < 0.1


def test_a_policy_that_leaks_more_than_it_says_gets_no_answer(policy, tmp_path):
    leaky = off.Policy(policy.problem, off.Redaction.of(10, 2, [(0, 1, np.ones(2))]), "mine")
    with pytest.raises(off.InputError, match="do not answer"):
        answer(leaky, 2, 0, Key(bytes(32), tmp_path / "key"))


def test_another_policy_has_another_id(policy):
    other = off.design(off.Problem(off.MarkovChain.binary(0.01, 0.8), n=10, private=[1], epsilon=1.1))
    assert policy_id(policy) != policy_id(other)
    assert policy_id(policy) == policy_id(off.design(policy.problem))


def test_values_as_people_write_them(policy):
    assert value_of(policy, "1") == 1
    with pytest.raises(off.InputError, match="one of 0, 1"):
        value_of(policy, "2")


def test_the_command_line(policy, tmp_path, monkeypatch, capsys):
    file, key = tmp_path / "policy.json", tmp_path / "data" / "key.json"
    policy.save(file)

    def asked(record, value, *more):
        monkeypatch.setattr("sys.stdin", io.StringIO(value))
        code = cli.main(["answer", "--policy", str(file), "--record", record, "--key-file", str(key), *more])
        return code, capsys.readouterr()

    code, said = asked("1", "0\n")
    assert (code, said.out) == (0, "⊥\n")
    assert "made a new key" in said.err
    code, said = asked("7", "1\n", "--mark", "withheld")
    assert (code, said.out, said.err) == (0, "1\n", "")
    for record, value, more in (("0", "1", ()), ("11", "1", ()), ("2", "", ()), ("2", "7", ()), ("2", "1", ("--mark", "1"))):
        code, said = asked(record, value, *more)
        assert (code, said.out) == (2, "")
        assert said.err.startswith("offrecord: ")
        assert len(said.err.splitlines()) == 1
