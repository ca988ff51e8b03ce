"""The owner of a single record decides alone whether to answer, from a policy and a key."""

from __future__ import annotations

import hashlib
import json
import math

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.local_policy import LocalPolicy
from offrecord.models.base import Label
from offrecord.models.checking import printable
from offrecord.release.coins import INTEGER, Coins, Draws, redacts, subkey, thresholds
from offrecord.release.keys import Key
from offrecord.release.ledger import ledger
from offrecord.theory.problem import budget

PROTOCOL = "answer"  #: what an owner calls what they take part in, unless they say otherwise
_AGAIN = "Do not answer; another --protocol is for other records alone"
MAX_EPSILON = 3.0  #: the largest ε that an owner agrees to, unless they say otherwise


def answer(
    policy: LocalPolicy,
    record: int,
    value: Label,
    key: Key,
    *,
    protocol: str = PROTOCOL,
    max_epsilon: float = MAX_EPSILON,
    remember: bool = True,
) -> Label | None:
    """The value of one record, or None if its owner stays silent.

    The coin comes from the owner's key, the protocol that the owner named and the record, and from
    nothing that the collector can choose: asked again, the owner answers the same.

    Args:
        policy: what the collector asks by.
        record: the owner's record, from 1.
        value: its value.
        key: the owner's key.
        protocol: the owner's name for this collection.
        max_epsilon: the largest ε to agree to.
        remember: keep the question and a digest of the answer in the ledger beside the key, so that
            there is one of each; without it the caller has to.

    Returns:
        The value, or None.

    Raises:
        InputError: For what should not be answered: a policy that leaks more than it says or has an
            ε above max_epsilon, another question about the record than before, and one whose
            answer would be another than before.
    """
    printable("--protocol", protocol)
    _check_budget(policy, budget(max_epsilon, "max_epsilon"))
    rule = policy.rule(record)
    label = policy.problem.chain.labels[policy.problem.chain.value_index(value)]
    silent = bool(redacts(draw(key, protocol, record), thresholds(np.array([rule[label]])))[0])
    if remember:
        _remember(policy, record, rule, None if silent else label, key, protocol)
    return None if silent else value


def _check_budget(policy: LocalPolicy, most: float) -> None:
    epsilon = policy.problem.epsilon
    if epsilon > most:
        raise InputError(
            f"this policy has ε = {epsilon:g}, more than your --max-epsilon {most:g}; do not answer"
            " it"
        )
    if not policy.is_private:
        raise InputError(
            f"this policy leaks {policy.leakage:.4g}, more than its ε = {epsilon:g}; do not answer"
            " it"
        )


def draw(key: Key, protocol: str, record: int) -> Draws:
    """(1,) the coin of one record of a protocol (docs/coins.md has the bytes); no table of the same
    owner has its like.
    """
    coins = Coins(subkey(key.secret, b"offrecord/owner"), protocol, "answer")
    return coins.draw(coins.chain_tags([b""]), np.array([record]), INTEGER)


# Enter an answer into the ledger before it is given; InputError if there was another question, or
# another answer.
def _remember(
    policy: LocalPolicy,
    record: int,
    rule: dict[Label, float],
    said: Label | None,
    key: Key,
    protocol: str,
) -> None:
    asked = {json.dumps(label): chance for label, chance in rule.items()}
    content, person = json.dumps([protocol, record, said]).encode(), b"offrecord/answer"
    digest = hashlib.blake2b(content, key=key.secret, digest_size=16, person=person).hexdigest()
    with ledger(key) as book:
        answers = book.answers.setdefault(protocol, {})
        before = answers.get(str(record))
        if before is None:
            others = {int(other): one["rule"] for other, one in answers.items()}
            _check_others(policy, others, protocol)
            answers[str(record)] = {"rule": asked, "answer": digest}
            book.save()
            return
    if before["rule"] != asked:
        both = _together(policy, record, asked, before["rule"])
        raise InputError(
            f"record {record} of protocol {protocol!r} was asked about before by another rule;"
            f" {both}. {_AGAIN}"
        )
    if before["answer"] != digest:
        raise InputError(
            f"record {record} of protocol {protocol!r} was answered differently before: its value"
            f" is another one now, and both answers together leak more than either. {_AGAIN}"
        )


# InputError if what was answered about other records, by other rules, leaks too much together with
# this policy.
def _check_others(
    policy: LocalPolicy, answered: dict[int, dict[str, float]], protocol: str
) -> None:
    labels = [json.dumps(label) for label in policy.problem.chain.labels]
    for record, rule in answered.items():
        if record > len(policy.redaction) or list(rule) != labels:
            raise InputError(
                f"protocol {protocol!r} was answered about other records than this policy has."
                f" {_AGAIN}"
            )
    rows = {record: list(rule.values()) for record, rule in answered.items()}
    together = _with_rows(policy, rows)
    if np.any(together.redaction != policy.redaction) and not together.is_private:
        raise InputError(
            f"other records of protocol {protocol!r} were answered by another policy; together with"
            f" this one they leak {together.leakage:.4g}, more than its ε ="
            f" {policy.problem.epsilon:g}. {_AGAIN}"
        )


def _with_rows(policy: LocalPolicy, rows: dict[int, list[float]]) -> LocalPolicy:
    matrix = policy.redaction.copy()
    for record, row in rows.items():
        matrix[record - 1] = row
    return LocalPolicy(policy.problem, matrix, policy.mechanism)


# What the answers to two rules for a record leak: they share a coin, so it is what their minimum
# leaks (F3).
def _together(
    policy: LocalPolicy, record: int, asked: dict[str, float], before: dict[str, float]
) -> str:
    if asked.keys() != before.keys():
        return "both answers together leak what the smaller of both probabilities leaks"
    least = [min(chance, before[label]) for label, chance in asked.items()]
    leakage = _with_rows(policy, {record: least}).leakage
    much = f"{leakage:.4g} or more" if math.isfinite(leakage) else "without bound"
    allowed = f"where this policy allows ε = {policy.problem.epsilon:g}"
    return f"both answers together leak {much}, {allowed}"


def value_of(policy: LocalPolicy, text: str) -> Label:
    """The label that a text stands for."""
    for label in policy.problem.chain.labels:
        if str(label) == text or (isinstance(label, bool) and str(label).lower() == text.lower()):
            return label
    raise InputError(f"the value must be one of {', '.join(map(str, policy.problem.chain.labels))}")
