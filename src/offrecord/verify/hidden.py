"""What a local design tells of its secrets where states are hidden: an upper bound.

Who sees a record's value is taken to see its state; given the state at a secret, both sides are
independent, so walks on states bound what is told (docs/proofs/hidden.md). Of one record, states
that show the same value are not told apart.
"""

from __future__ import annotations

from offrecord.verify.balls import Ball, largest
from offrecord.verify.chain import Chain, chain_of
from offrecord.verify.problem import Problem, Secret
from offrecord.verify.states import shown_by_states, told_of_states


def told(problem: Problem) -> Ball:
    """A bound of the largest log-ratio of an output under two values of a secret."""
    chain = chain_of(problem.model, problem.n)
    return largest(_told_of(problem, chain, secret) for secret in problem.secrets)


def _told_of(problem: Problem, chain: Chain, secret: Secret) -> Ball:
    shows = problem.model.shows
    assert shows is not None
    left = shown_by_states(problem.outward(secret.first, -1), shows)
    right = shown_by_states(problem.outward(secret.last, 1), shows)
    values = shows if secret.first == secret.last else None
    return told_of_states(chain, secret, (left, right), values)
