"""What a local design tells of its secrets under the model alone: order 1, states that are seen.

A walk leads away from each end of a secret (F1): on each side only the first release tells
anything. U[x, j] is the probability of value j at a record together with nothing released so far,
given x at the secret's end. Ratios of columns that may be released count, then what is redacted
goes on; at the chain's end the row sums count. Both sides are independent given the secret, so
their log-ratios add up, for a run over the ends that can occur (F2, F9).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import flint

from offrecord.verify.balls import Ball, Matrix, ball, double, infinite, is_zero, largest
from offrecord.verify.chain import Chain, chain_of
from offrecord.verify.problem import Problem, Secret, Stretch

#: Ratios of what one side may show, by the values x above and x′ below the line.
Ratios = list[list[Ball]]


def told(problem: Problem) -> Ball:
    """The largest log-ratio of an output under two values of a secret, over all secrets."""
    chain = chain_of(problem.model, problem.n, problem.phases)
    if chain.independent:
        return flint.arb(0)
    return largest(_told_of(problem, chain, secret) for secret in problem.secrets)


def _told_of(problem: Problem, chain: Chain, secret: Secret) -> Ball:
    left = side(chain, problem.outward(secret.first, -1), secret.first, -1)
    right = side(chain, problem.outward(secret.last, 1), secret.last, 1)
    ends = list(_ends(chain, secret))
    pairs = product(ends, ends)
    return largest(left[a][c] * right[b][d] for (a, b), (c, d) in pairs).log()


def _ends(chain: Chain, secret: Secret) -> Iterable[tuple[int, int]]:
    """The values that a secret can have at its first and its last record."""
    reached = flint.arb_mat(
        [[flint.arb(int(i == j)) for j in range(chain.k)] for i in range(chain.k)]
    )
    for record in range(secret.first, secret.last):
        reached = reached * chain.forward(record)
    often = chain.marginal(secret.first)
    for a, b in product(range(chain.k), repeat=2):
        if not (is_zero(often[a]) or is_zero(reached[a, b])):
            yield a, b


def side(chain: Chain, stretches: Iterable[Stretch], record: int, step: int) -> Ratios:
    """The largest ratios of what can be seen on one side of a record, at least 1: that nothing is
    seen yet. Rows of the stretches are by the chain's states.
    """
    k = chain.k
    possible = [not is_zero(often) for often in chain.marginal(record)]
    worst = [[flint.arb(1) for _ in range(k)] for _ in range(k)]
    reached = flint.arb_mat([[flint.arb(int(i == j)) for j in range(k)] for i in range(k)])
    for count, row in stretches:
        kept = [ball(double(share)) for share in row]
        shown = [j for j in range(k) if row[j] < 1.0]
        if not shown and chain.is_even:
            kernel = chain.forward(record) if step > 0 else chain.backward(record)
            reached = reached * kernel**count
            record += step * count
            continue
        for _ in range(count):
            reached = reached * (chain.forward(record) if step > 0 else chain.backward(record))
            record += step
            for j in shown:
                _note([reached[x, j] for x in range(k)], possible, worst)
            reached = _scaled(reached, kept)
            if _is_empty(reached):
                return worst
    sums = [sum((reached[x, j] for j in range(k)), flint.arb(0)) for x in range(k)]
    _note(sums, possible, worst)
    return worst


def _scaled(reached: Matrix, kept: Sequence[Ball]) -> Matrix:
    k = len(kept)
    return flint.arb_mat([[reached[x, j] * kept[j] for j in range(k)] for x in range(k)])


def _is_empty(reached: Matrix) -> bool:
    return all(is_zero(one) for one in reached.entries())


def _note(likelihoods: Sequence[Ball], possible: Sequence[bool], worst: Ratios) -> None:
    """What one output tells; one that no value can cause is none."""
    for x, other in product(range(len(likelihoods)), repeat=2):
        above, below = likelihoods[x], likelihoods[other]
        if x != other and possible[x] and possible[other] and not is_zero(above):
            ratio = infinite() if is_zero(below) else above / below
            worst[x][other] = worst[x][other].max(ratio)
