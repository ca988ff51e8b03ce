"""The owner of a single record: decides alone, from a policy and a key of their own, what the collector gets to see."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache

import numpy as np

from offrecord.chain import Label
from offrecord.draws import INTEGER, Coins, redacts, thresholds
from offrecord.errors import InputError
from offrecord.keys import Key
from offrecord.policy import Policy


@lru_cache(maxsize=8)
def policy_id(policy: Policy) -> str:
    """What names a policy: a digest of its model, problem and redaction probabilities."""
    content = {name: value for name, value in policy.to_dict().items() if name not in ("details", "leakage", "utility")}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def answer(policy: Policy, record: int, value: Label, key: Key) -> Label | None:
    """The value of one record, or None if its owner stays silent.

    The coin comes from the owner's key, the policy and the record: asked again, the owner answers the same. InputError for a
    policy that leaks more than it says: what such a policy asks for should not be given.
    """
    if not policy.private:
        raise InputError(
            f"this policy leaks {policy.leakage:.4g}, more than its ε = {policy.problem.epsilon:g}; do not answer it"
        )
    chance = policy.rule(record)[policy.problem.chain.labels[policy.problem.chain.value_index(value)]]
    coins = Coins(key.secret, policy_id(policy), "answer")
    drawn = coins.draw(coins.chain_tags([b""]), np.array([record]), INTEGER)
    return None if redacts(drawn, thresholds(np.array([chance])))[0] else value


def value_of(policy: Policy, text: str) -> Label:
    """The label that a text stands for."""
    for label in policy.problem.chain.labels:
        if str(label) == text or (isinstance(label, bool) and str(label).lower() == text.lower()):
            return label
    raise InputError(f"the value must be one of {', '.join(map(str, policy.problem.chain.labels))}")
