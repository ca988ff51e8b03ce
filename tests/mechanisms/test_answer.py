"""The owner of one record answers alone, always the same, and as often as the policy says."""

import io
import json

import numpy as np
import pytest

import offrecord as off
from definition import joint_table, leakage_of_table
from offrecord import cli
from offrecord.mechanisms.answer import answer, value_of
from offrecord.release.coins import INTEGER, Coins
from offrecord.release.keys import Key


@pytest.fixture
def policy():
    return off.design(
        off.Problem(off.MarkovChain.binary(0.01, 0.8), n=10, private=[1], epsilon=1.0)
    )


def test_answers_follow_the_policy_and_repeat(policy, tmp_path):
    keys = [Key(bytes([i % 256, i // 256]) + bytes(30), tmp_path / "key") for i in range(2000)]
    assert all(
        answer(policy, 1, value, key, remember=False) is None
        for key in keys[:50]
        for value in (0, 1)
    )
    assert all(
        answer(policy, 7, value, key, remember=False) == value
        for key in keys[:50]
        for value in (0, 1)
    )
    silent = np.array([answer(policy, 2, 0, key, remember=False) is None for key in keys])
    again = np.array([answer(policy, 2, 0, key, remember=False) is None for key in keys])
    assert np.array_equal(silent, again)
    q = policy.redaction[1, 0]
    assert abs(silent.mean() - q) < 5 * np.sqrt(q * (1 - q) / len(keys))
    other = np.array([answer(policy, 3, 0, key, remember=False) is None for key in keys])
    assert abs(np.corrcoef(silent, other)[0, 1]) < 0.1


def test_a_policy_that_leaks_more_than_it_says_gets_no_answer(policy, tmp_path):
    leaky = off.LocalPolicy(policy.problem, first_alone(10), "mine")
    with pytest.raises(off.InputError, match="do not answer"):
        answer(leaky, 2, 0, Key(bytes(32), tmp_path / "key"))


def with_row(policy, record, row):
    """The same policy but for one record."""
    matrix = policy.redaction.copy()
    matrix[record - 1] = row
    return off.LocalPolicy(policy.problem, matrix, policy.mechanism)


def first_alone(n):
    """A matrix that redacts record 1."""
    matrix = np.zeros((n, 2))
    matrix[0] = 1
    return matrix


def test_the_coin_is_none_of_the_askers_business(policy, tmp_path):
    """Ten texts in the policy file, or another model: the same draw, so that nothing is gained by
    asking again.
    """
    keys = [Key(bytes([i]) + bytes(31), tmp_path / "key") for i in range(200)]
    texts = [
        off.LocalPolicy(policy.problem, policy.redaction, f"mechanism {i}", None, {"note": i})
        for i in range(10)
    ]
    another = off.Problem(off.MarkovChain.binary(0.02, 0.7), 12, [1], 2.0)
    silent = np.ones((12, 2))
    silent[1] = policy.redaction[1]
    texts.append(off.LocalPolicy(another, silent, "another model"))
    for key in keys:
        assert len({answer(one, 2, 0, key, remember=False) for one in texts}) == 1
    assert len({answer(policy, 2, 0, key, remember=False) for key in keys}) == 2


def test_protocols_records_and_tables_have_coins_of_their_own(policy, tmp_path):
    """A value that was shown bounds its coin: no other record, protocol or data set may
    use that.
    """
    secrets = [bytes([i % 256, i // 256]) + bytes(30) for i in range(2000)]
    keys = [Key(secret, tmp_path / "key") for secret in secrets]
    even = with_row(with_row(policy, 2, [0.5, 1]), 3, [0.5, 1])
    assert even.is_private
    said = [
        [answer(even, 2, 0, key, remember=False) is None for key in keys],
        [answer(even, 3, 0, key, remember=False) is None for key in keys],
        [answer(even, 2, 0, key, remember=False, protocol="another") is None for key in keys],
        [_redacted_in_a_table(secret) for secret in secrets],
    ]
    assert np.all(np.abs(np.corrcoef(said) - np.eye(4)) < 0.1)


def _redacted_in_a_table(secret):
    coins = Coins(secret, "answer", "answer")
    return bool(coins.draw(coins.chain_tags([b""]), np.array([2]), INTEGER)[0] < 2**63)


def test_two_questions_about_a_record_leak_their_minimum_and_the_second_is_refused(
    policy, tmp_path
):
    """By brute force over coins: with one coin for both, the pair of answers tells what the
    pointwise minimum tells (F3).
    """
    small = off.design(off.Problem(policy.problem.chain, n=4, private=[1], epsilon=1.0))
    asked = with_row(small, 2, small.redaction[1] * [0.5, 1])
    rules = small.redaction, asked.redaction
    together = leakage_of_table(joint_table(policy.problem.chain, 4, rules, [1], shared=True))
    least = off.leakage(small.problem, np.minimum(*rules))
    assert together == pytest.approx(least, abs=1e-9)
    assert together > 1.0
    assert (
        leakage_of_table(joint_table(policy.problem.chain, 4, rules, [1], shared=False)) > together
    )
    asked = off.LocalPolicy(
        off.Problem(policy.problem.chain, 4, [1], 3.0), asked.redaction, "asks again"
    )
    assert asked.is_private
    for i in range(
        300
    ):  # and one coin there is: who is silent at the smaller probability is so at the larger
        key = Key(bytes([i % 256, i // 256]) + bytes(30), tmp_path / "key")
        silent = [answer(one, 2, 0, key, remember=False) is None for one in (small, asked)]
        assert silent[0] >= silent[1]
    key = Key.new(tmp_path / "data" / "key.json")
    first = answer(small, 2, 0, key)
    before = key.ledger_file.read_bytes()
    with pytest.raises(
        off.InputError, match=rf"asked about before by another rule; .* leak {least:.4g} or more"
    ):
        answer(asked, 2, 0, key)
    assert key.ledger_file.read_bytes() == before
    assert answer(small, 2, 0, key) == first


def test_another_answer_to_the_same_question_is_refused(policy, tmp_path):
    """A value that has changed would be a second look; what is kept of the first tells nothing
    without the key.
    """
    key = Key.new(tmp_path / "data" / "key.json")
    assert answer(policy, 7, 0, key) == 0
    with pytest.raises(off.InputError, match="answered differently before"):
        answer(policy, 7, 1, key)
    assert answer(policy, 7, 0, key) == 0
    assert (
        answer(policy, 1, 0, key) is answer(policy, 1, 1, key) is None
    )  # nothing was said, whatever it is
    kept = json.loads(key.ledger_file.read_text())["answers"]
    assert kept.keys() == {"answer"}
    assert kept["answer"].keys() == {"7", "1"}
    digests = [
        json.loads(file.read_text())["answers"]["answer"]["7"]["answer"]
        for file in _asked(policy, tmp_path)
    ]
    assert len(set(digests)) == len(digests)
    assert answer(policy, 7, 1, key, protocol="the year after") == 1


def _asked(policy, folder):
    """The ledgers of owners with keys of their own who said the same."""
    for i in range(3):
        key = Key.new(folder / f"owner {i}" / "key.json")
        answer(policy, 7, 0, key)
        yield key.ledger_file


def test_an_owner_has_an_epsilon_of_their_own(policy, tmp_path):
    key = Key.new(tmp_path / "data" / "key.json")
    everything = off.LocalPolicy(
        off.Problem(policy.problem.chain, n=10, private=[1], epsilon=50.0),
        first_alone(10),
        "all",
    )
    assert everything.is_private
    with pytest.raises(
        off.InputError, match=r"ε = 50, more than your max_epsilon=3; do not answer"
    ):
        answer(everything, 2, 0, key)
    assert answer(everything, 2, 0, key, max_epsilon=50) == 0
    with pytest.raises(off.InputError, match=r"more than your max_epsilon=0\.5"):
        answer(policy, 3, 0, key, max_epsilon=0.5)
    for wrong in (-1, float("nan"), "3"):
        with pytest.raises(off.InputError, match="max_epsilon must be"):
            answer(policy, 3, 0, key, max_epsilon=wrong)
    for wrong in ("", "two\nlines", 5):
        with pytest.raises(off.InputError, match="protocol must be"):
            answer(policy, 3, 0, key, protocol=wrong)


def test_values_as_people_write_them(policy):
    assert value_of(policy, "1") == 1
    with pytest.raises(off.InputError, match="one of 0, 1"):
        value_of(policy, "2")


def test_the_command_line(policy, tmp_path, monkeypatch, capsys):
    file, key = tmp_path / "policy.json", tmp_path / "data" / "key.json"
    policy.save(file)

    def asked(record, value, *more):
        monkeypatch.setattr("sys.stdin", io.StringIO(value))
        code = cli.main(
            ["answer", "--policy", str(file), "--record", record, "--key-file", str(key), *more]
        )
        return code, capsys.readouterr()

    code, said = asked("1", "0\n")
    assert (code, said.out) == (0, "⊥\n")
    assert "made a new key" in said.err
    code, said = asked("7", "1\n", "--mark", "withheld")
    assert (code, said.out, said.err) == (0, "1\n", "")
    assert asked("7", "1\n")[1].out == "1\n"
    assert asked("7", "0\n", "--protocol", "another year", "--max-epsilon", "1")[1].out == "0\n"
    wrong = [
        ("0", "1", ()),
        ("11", "1", ()),
        ("2", "", ()),
        ("2", "7", ()),
        ("2", "1", ("--mark", "1")),
    ]
    wrong += [("7", "0", ()), ("8", "0", ("--max-epsilon", "0.9")), ("8", "0", ("--protocol", " "))]
    for record, value, more in wrong:
        code, said = asked(record, value, *more)
        assert (code, said.out) == (2, "")
        assert said.err.startswith("offrecord: ")
        assert len(said.err.splitlines()) == 1
    key.with_name("key.ledger.json").unlink()
    assert "without its ledger" in asked("7", "1\n")[1].err


def test_two_policies_for_records_of_one_owner_may_not_add_up(tmp_path):
    """Each hides one side of the secret and shows the other: together both sides are shown."""
    chain, n = off.MarkovChain.binary(0.05, 0.1), 41
    problem = off.Problem(chain, n, [21], 1.0)
    side = off.design(off.Problem(chain, 21, [1], 1.0)).redaction[1:]
    rows = np.vstack([np.ones((21, 2)), side])
    right = off.LocalPolicy(problem, rows, "right")
    left = off.LocalPolicy(problem, rows[::-1], "left")
    assert right.is_private
    assert left.is_private
    assert off.leakage(problem, np.minimum(right.redaction, left.redaction)) > 1.2
    key = Key.new(tmp_path / "key.json")
    for record in range(1, 20):
        answer(left, record, 0, key)
    with pytest.raises(
        off.InputError, match=r"answered by another policy; together with this one they leak 2,"
    ):
        answer(right, 30, 0, key)
    assert answer(left, 30, 0, key) is None
