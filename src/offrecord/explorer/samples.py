"""A sample release: records drawn from the model, redacted by a policy, and what that tells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from offrecord.attack.owner import told_in_blocks
from offrecord.attack.reading import Told
from offrecord.attack.shown import Shown
from offrecord.attack.sights import Sights
from offrecord.attack.steps import Steps
from offrecord.attack.walking import told
from offrecord.explorer.forms import Belief, Number, Record, Sample, Span
from offrecord.explorer.secrets import name_of
from offrecord.mechanisms.base import Policy
from offrecord.mechanisms.blocks import Block, Mask, Secrets
from offrecord.mechanisms.local.policy import LocalPolicy
from offrecord.mechanisms.owner.policy import OwnerPolicy
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain
from offrecord.models.records import MISSING, Chains, Codes
from offrecord.release.coins import INTEGER, RECORDS, Coins, Counter, Draws, redacts, thresholds
from offrecord.theory.problem import Problem, Secret


def sample_of(policy: Policy, seed: int, secret: Secret, span: Span) -> Sample:
    """The sample of this number; beside it what is inferred about a secret."""
    problem = policy.problem
    values = drawn_values(problem.chain, problem.n, seed)
    redacted = released_by(policy, values, seed)
    found = inferred(policy, values, redacted)
    number = problem.secrets.index(secret)
    labels, private = list(map(str, problem.chain.labels)), set(problem.private)
    first, last = span.first - 1, span.last
    records = [
        Record(
            record=at + 1,
            value=labels[values[at]],
            released=None if redacted[at] else labels[values[at]],
            private=at + 1 in private,
        )
        for at in range(first, last)
    ]
    own = int(values[secret.first - 1])
    posterior = found.posterior[number].tolist()
    beliefs = [
        Belief(
            value=label,
            prior=before,
            posterior=None if np.isnan(after) else after,
            was=at == own,
        )
        for at, (label, before, after) in enumerate(
            zip(labels, found.prior[number].tolist(), posterior, strict=True)
        )
    ]
    size = abs(float(found.ratio[number]))
    ratio: Number | None = None if np.isnan(size) else "inf" if np.isinf(size) else size
    return Sample(
        records=records,
        redacted=int(redacted.sum()),
        beliefs=beliefs,
        ratio=ratio,
        words=_words(problem, secret, beliefs, ratio),
    )


def drawn_values(chain: MarkovChain, n: int, seed: int) -> Integers:
    """(n,) values 0 … k − 1 of a chain's records, the same for the same seed."""
    lifted, order = chain.lifted, chain.order
    uniform = np.random.default_rng(seed).random(n)
    steps = lifted.transition if lifted.transition.ndim == 3 else lifted.transition[np.newaxis]
    laws = np.cumsum(steps, axis=2)
    state = _picked(np.cumsum(lifted.start), uniform[order - 1])
    values = np.empty(n, dtype=np.int64)
    for place in range(order):
        values[place] = chain.coordinate(place)[state]
    newest = chain.coordinate(order - 1)
    for at in range(order, n):
        state = _picked(laws[min(at - order, len(laws) - 1)][state], uniform[at])
        values[at] = newest[state]
    return values


def _picked(law: Floats, uniform: float) -> int:
    """By a distribution, given as its sums; rounding at its end picks nothing impossible."""
    return int(np.searchsorted(law, uniform * law[-1], side="right"))


def released_by(policy: Policy, values: Integers, seed: int) -> Mask:
    """(n,) which records a policy redacts, by coins of the seed's own."""
    coins = Coins(seed.to_bytes(32, "little"), "explorer", "value")
    tag = coins.chain_tags([b""])

    def draw(
        chain: Integers,
        order: NDArray[np.integer],
        purpose: bytes = RECORDS,
        counter: Counter = 0,
    ) -> Draws:
        return coins.draw(np.repeat(tag, len(order), axis=0), order, INTEGER, purpose, counter)

    if isinstance(policy, OwnerPolicy):
        return policy.decider.decide(_block(policy.problem, values), draw).redacted
    assert isinstance(policy, LocalPolicy)
    records = np.arange(len(values))
    silent = policy.redaction[records, values]
    return redacts(draw(np.zeros_like(records), records), thresholds(silent))


def inferred(policy: Policy, values: Integers, redacted: Mask) -> Told:
    """What whoever sees the rest infers about each secret, by the model and the mechanism."""
    problem = policy.problem
    shown = np.where(redacted, np.int8(MISSING), values.astype(np.int8))
    block, steps = _block(problem, values), Steps.of_chain(problem.chain)
    none = np.empty(0, dtype=np.int64)
    if isinstance(policy, OwnerPolicy):
        plain = Shown.of(block.chains, shown, none, np.zeros((0, problem.chain.k)))
        missing = np.zeros(problem.n, dtype=bool)
        sights = Sights(plain.rows, shown, missing, problem.chain.k)
        return told_in_blocks(sights, policy.decider, [block], steps, is_own=True)[0]
    assert isinstance(policy, LocalPolicy)
    holes = np.setdiff1d(np.flatnonzero(redacted), np.array(problem.private) - 1)
    rule = policy.redaction[holes]
    return told(steps, Shown.of(block.chains, shown, holes, rule), block.secrets)


def _block(problem: Problem, values: Integers) -> Block:
    """The problem as one chain of a table."""
    n = problem.n
    codes: Codes = values.astype(np.int8)
    chains = Chains(np.array([0, n]), codes, np.arange(n), False, None)
    ends = np.array(problem.secrets, dtype=np.int64) - 1
    first, last = ends[:, 0], ends[:, 1]
    alone = np.zeros(len(ends), dtype=np.int64)
    secrets = Secrets(alone, first, last, first, last + 1, first)
    which = alone if problem.chain.is_stationary else np.arange(len(ends))
    return Block(chains, slice(0, n), secrets, which)


def _words(problem: Problem, secret: Secret, beliefs: list[Belief], ratio: Number | None) -> str:
    """What the release told, in a sentence."""
    name = f"record {secret.first}"
    told = [one for one in beliefs if one.posterior is not None]
    moved = max(told, key=lambda one: abs((one.posterior or 0.0) - one.prior), default=None)
    if ratio is None or moved is None or moved.posterior is None:
        return f"What this release tells about {name} was not computed."
    before, after = (f"{100 * one:.3g} %" for one in (moved.prior, moved.posterior))
    factor = "without bound" if ratio == "inf" else f"by a factor of {np.exp(ratio):.3g}"
    alone = secret.first == secret.last
    odds = "Its odds" if alone else f"The odds between two values of {name_of(secret)}"
    return (
        f"Before this release {name} was {moved.value} with a probability of {before}; after it,"
        f" {after}. {odds} moved {factor}; at most {np.exp(problem.epsilon):.3g} is allowed."
    )
