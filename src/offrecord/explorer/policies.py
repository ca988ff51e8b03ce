"""What a mechanism does for a state: its policy, kept while samples are drawn from it."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

from offrecord.errors import InputError
from offrecord.explorer.forms import Curve, Number, Point, Policy, Profile, Span
from offrecord.explorer.regions import shown_around
from offrecord.explorer.samples import sample_of
from offrecord.explorer.secrets import looked_at
from offrecord.explorer.state import Asked, AskedCurve, AskedPolicy, FieldError
from offrecord.mechanisms import design, mechanism_named
from offrecord.mechanisms.local.policy import LocalPolicy
from offrecord.mechanisms.owner.policy import OwnerPolicy
from offrecord.theory.problem import Secret

_KEPT = 128  # policies
#: Names of what a profile shows.
REDACTED, BEGINS = "redacted, whatever its value", "releasing begins here"


def policy_of(asked: AskedPolicy) -> Policy:
    """What the mechanism of a state does."""
    first = _at_once(_key(asked)) if asked.soon else None
    designed: Any = designed_for(asked) if first is None else first
    problem = designed.problem
    _, secret = looked_at(problem, asked.about)
    span = shown_around(problem, secret)
    is_owner = isinstance(designed, OwnerPolicy)
    return Policy(
        mechanism=asked.mechanism,
        kind=designed.kind,
        epsilon=problem.epsilon,
        utility=designed.utility,
        utility_bound=None if is_owner else designed.utility_bound,
        leakage=_number(designed.leakage),
        leakage_is_exact=not is_owner and designed.worst.exact,
        leakage_method=designed.worst.method,
        within=designed.is_private,
        worst_output=str(designed.worst),
        profile=(_walked(designed, secret, span) if is_owner else _by_value(designed, span)),
        sample=sample_of(designed, asked.seed, secret, span),
        final=first is None,
    )


def curve_of(asked: AskedCurve) -> Curve:
    """Utility of the mechanism of a state at some budgets."""
    points = []
    for epsilon in asked.epsilons:
        at = asked.model_copy(update={"epsilon": epsilon})
        utility, leakage = _measured(_key(at))
        points.append(
            Point(epsilon=epsilon, mechanism=asked.mechanism, utility=utility, leakage=leakage)
        )
    return Curve(points=points)


def designed_for(asked: Asked) -> Any:
    """The policy for a state, the same for all of its samples."""
    return _designed(_key(asked))


def _key(asked: Asked) -> str:
    """All that a design depends on."""
    kept = set(Asked.model_fields) - {"about", "seed"}  # not what a question adds to its state
    return json.dumps(asked.model_dump(include=kept), sort_keys=True)


@lru_cache(maxsize=_KEPT)
def _designed(key: str) -> LocalPolicy | OwnerPolicy:
    asked = Asked(**json.loads(key))
    problem = asked.problem()
    try:
        found: LocalPolicy | OwnerPolicy = design(problem, asked.mechanism)
    except InputError as error:
        raise FieldError("mechanism", str(error)) from None
    return found


@lru_cache(maxsize=_KEPT)
def _at_once(key: str) -> Any:
    """A first policy, where the best takes longer."""
    asked = Asked(**json.loads(key))
    try:
        return mechanism_named(asked.mechanism).at_once(asked.problem())
    except InputError as error:
        raise FieldError("mechanism", str(error)) from None


@lru_cache(maxsize=64 * _KEPT)
def _measured(key: str) -> tuple[float, Number]:
    designed = _designed(key)
    return designed.utility, _number(designed.leakage)


def _number(value: float) -> Number:
    return float(value) if np.isfinite(value) else "inf"


def _by_value(policy: LocalPolicy, span: Span) -> list[Profile]:
    """Of a local policy: the redaction of each record, by value."""
    rows = policy.rows(span.first, span.last).tolist()
    return [
        Profile.model_construct(record=span.first + at, series=f"value {label}", probability=q)
        for at, row in enumerate(rows)
        for label, q in zip(policy.problem.chain.labels, row, strict=True)
    ]


def _walked(policy: OwnerPolicy, secret: Secret, span: Span) -> list[Profile]:
    """Of the owner's: how likely each record is redacted, and how likely releasing begins there
    beside a secret that has enough room.
    """
    redacted = policy.redacted[span.first - 1 : span.last].tolist()
    rows = [
        Profile.model_construct(record=span.first + at, series=REDACTED, probability=q)
        for at, q in enumerate(redacted)
    ]
    for law, edge, sign in zip(
        policy.stopping_law, (secret.first, secret.last), (-1, 1), strict=True
    ):
        for distance, chance in enumerate(law.tolist()):
            record = edge + sign * distance
            if distance and span.first <= record <= span.last:
                rows.append(
                    Profile.model_construct(record=record, series=BEGINS, probability=chance)
                )
    return sorted(rows, key=lambda one: (one.series, one.record))
