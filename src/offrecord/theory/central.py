"""The least that any mechanism redacts, one that sees all values: a linear programme over every
mask for every sequence, and a bound for long chains (O2).

Nothing is assumed about the mechanism: not that it is local, nor that what it redacts lies
together. The programme has one variable, Pr(mask | sequence), for each of the k^n sequences and
each mask that hides all private records, and ratio constraints for each output, which is a mask
with the values it shows. Eight records of two values, one of them private: 256 · 128 = 32,768
variables, 256 sums and 2 · 3^7 = 4,374 ratios. Sequences that cannot occur are left out, and so are
choices that would show what some value of a secret makes impossible.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.programmes import Entries, Solver

#: Programmes of more variables are refused.
MOST_VARIABLES = 70_000


def least_redactions(problem: Problem) -> float:
    """The expected redactions of the best mechanism of any kind, private records included, to about
    six digits, under the chain alone.

    Raises InputError for more than MOST_VARIABLES variables, and for chains of order above 1.
    """
    _refuse_states(problem.chain)
    size = problem.chain.k**problem.n * 2 ** (problem.n - len(problem.private))
    if size > MOST_VARIABLES:
        raise InputError(
            f"every mask for every sequence is up to {MOST_VARIABLES:,} variables,"
            f" got {size:,}: take fewer records or values"
        )
    choices = _possible_choices(problem)
    return _solved(choices, [_ratios(choices, s, problem.epsilon) for s in problem.secrets])


def redactions_bound(problem: Problem) -> float:
    """A lower bound of the same for chains of any length: each record on its own (O2)."""
    _refuse_states(problem.chain)
    forced = np.zeros(problem.n)
    for private in problem.private:
        for direction in (-1, 1):
            _force(problem, private, direction, forced)
    forced[np.array(problem.private) - 1] = 1.0
    return float(forced.sum())


def _refuse_states(chain: MarkovChain) -> None:
    if chain.has_states:
        raise InputError("the least that any mechanism redacts is known for chains of order 1 only")


def _force(problem: Problem, private: int, direction: int, forced: Floats) -> None:
    """Raise to how often each record of a side is redacted at least, because of one private one."""
    chain, growth = problem.chain, np.exp(problem.epsilon)
    weights, seen = chain.marginal(private), np.eye(chain.k)
    for record in range(private + direction, problem.n + 1 if direction > 0 else 0, direction):
        step = chain.kernel(record - 1) if direction > 0 else chain.reversed_kernel(record + 1)
        seen = seen @ step
        excess = np.maximum(seen - growth * seen[weights > 0].min(axis=0), 0.0)
        forced[record - 1] = max(forced[record - 1], float(weights @ excess.sum(axis=1)))


@dataclass(frozen=True, eq=False)
class _Choices:
    """A mask for a sequence each, c of them, of those that a private mechanism may make.

    paths: (s, n) sequences that can occur. chances: (s,) their probabilities. path: (c,) which of
    them a choice is for. output: (c,) number of what it shows. redacted: (c,) how many records.
    """

    paths: Integers
    chances: Floats
    path: Integers
    output: Integers
    redacted: Integers

    def kept(self, keep: NDArray[np.bool_]) -> _Choices:
        """Those of them for which `keep` is true, with outputs numbered anew."""
        _, output = np.unique(self.output[keep], return_inverse=True)
        return _Choices(self.paths, self.chances, self.path[keep], output, self.redacted[keep])

    def values_of(self, secret: Secret) -> Integers:
        """(s,) the value that each sequence gives to a secret, numbered."""
        run = self.paths[:, secret.first - 1 : secret.last]
        return np.asarray(np.unique(run, axis=0, return_inverse=True)[1]).reshape(-1)


def _possible_choices(problem: Problem) -> _Choices:
    """Of outputs that every value of every secret makes possible; others have probability 0."""
    choices = _all_choices(problem)
    for secret in problem.secrets:
        values = choices.values_of(secret)[choices.path]
        met = np.unique(np.stack([choices.output, values]), axis=1)
        met_by = np.bincount(met[0])
        choices = choices.kept(met_by[choices.output] == values.max() + 1)
    return choices


def _all_choices(problem: Problem) -> _Choices:
    """Every mask that hides the private records, for every sequence that can occur."""
    chain, n = problem.chain, problem.n
    paths = np.array(list(product(range(chain.k), repeat=n)))
    chances = chain.marginal(1)[paths[:, 0]]
    for t in range(1, n):
        chances = chances * chain.kernel(t)[paths[:, t - 1], paths[:, t]]
    paths, chances = paths[chances > 0], chances[chances > 0]
    public = [t for t in range(n) if t + 1 not in problem.private]
    masks = np.array(list(product((False, True), repeat=len(public))))
    shown = np.where(masks, paths[:, np.newaxis, public], chain.k)
    code = (shown * (chain.k + 1) ** np.arange(len(public))).sum(axis=-1)
    redacted = np.broadcast_to(n - masks.sum(axis=1), code.shape)
    path = np.repeat(np.arange(len(paths)), len(masks))
    output = np.unique(code, return_inverse=True)[1].reshape(-1)
    return _Choices(paths, chances, path, output, redacted.reshape(-1))


@dataclass(frozen=True, eq=False)
class _Ratios:
    """That m ≤ Pr(output | value) ≤ e^ε·m for all values of a secret, m a number of each output.

    rows: which constraint, one for each output and value. weights: (c,) what a choice adds to it,
    scaled so that the largest of an output is 1. outputs: of which output each constraint is.
    """

    rows: Integers
    weights: Floats
    outputs: Integers
    growth: float


def _ratios(choices: _Choices, secret: Secret, epsilon: float) -> _Ratios:
    values = choices.values_of(secret)
    given = choices.chances / np.bincount(values, choices.chances)[values]
    weights = given[choices.path]
    largest = np.zeros(choices.output.max() + 1)
    np.maximum.at(largest, choices.output, weights)
    count = int(values.max()) + 1
    rows = choices.output * count + values[choices.path]
    outputs = np.repeat(np.arange(len(largest)), count)
    return _Ratios(rows, weights / largest[choices.output], outputs, float(np.exp(epsilon)))


def _solved(choices: _Choices, ratios: list[_Ratios]) -> float:
    """By HiGHS: the choices' probabilities, and beside them each secret's m of each output."""
    count, sequences = len(choices.path), len(choices.paths)
    outputs = int(choices.output.max()) + 1
    each = np.arange(count)
    parts = [Entries(choices.path, each, np.ones(count))]  # a sequence's probabilities sum to 1
    height = sequences
    for place, ratio in enumerate(ratios):
        rows = len(ratio.outputs)
        seen = Entries(ratio.rows, each, ratio.weights)
        least = Entries(np.arange(rows), count + place * outputs + ratio.outputs, np.ones(rows))
        parts += [seen.times(-1.0).moved(height, 0), least.moved(height, 0)]
        height += rows
        parts += [seen.moved(height, 0), least.times(-ratio.growth).moved(height, 0)]
        height += rows
    costs = np.zeros(count + len(ratios) * outputs)
    costs[:count] = choices.chances[choices.path] * choices.redacted
    low, high = np.full(height, -np.inf), np.zeros(height)
    low[:sequences] = high[:sequences] = 1.0
    solved = Solver().least(costs, Entries.together(parts), low, high)
    assert solved is not None, "to redact everything is a choice"
    return float(costs @ solved)
