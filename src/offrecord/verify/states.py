"""What is told of the ends of a secret where both sides are independent given states there.

States are values, tuples of records, or hidden: who sees a record is taken to see all of its state
(F8, hidden states), and the states at a secret's ends say all that its sides depend on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import flint

from offrecord.verify.alone import Ratios, side
from offrecord.verify.balls import Ball, Matrix, is_zero, largest
from offrecord.verify.chain import Chain
from offrecord.verify.problem import Stretch

#: Which states the last end of a secret can have, for each of the first one.
Follows = list[frozenset[int]]


def shown_by_states(stretches: Iterable[Stretch], shows: Sequence[int]) -> Iterator[Stretch]:
    """Stretches by value as stretches by state; shows: the value of each."""
    for count, row in stretches:
        yield Stretch(count, tuple(row[value] for value in shows))


def told_of_states(
    chain: Chain,
    ends: tuple[int, int],
    sides: tuple[Iterable[Stretch], Iterable[Stretch]],
    values: Sequence[int] | None,
) -> Ball:
    """The largest log-ratio of an output, given the states at the ends of a secret.

    ends: the records of the chain that they are. sides: outwards from them, by state. values: of a
    secret of one record, its value in each state; pairs of states with the same one do not count.
    """
    left, right = side(chain, sides[0], ends[0], -1), side(chain, sides[1], ends[1], 1)
    if values is not None:
        possible = [not is_zero(often) for often in chain.marginal(ends[0])]
        states = [state for state in range(chain.k) if possible[state]]
        pairs = ((a, b) for a, b in product(states, repeat=2) if values[a] != values[b])
        return _log(left[a][b] * right[a][b] for a, b in pairs)
    return combined(left, right, follows(chain, ends))


def follows(chain: Chain, ends: tuple[int, int]) -> Follows:
    """The states at the second record by those at the first; none after one that never occurs."""
    k = chain.k
    reached = unit(k)
    if chain.is_even and ends[1] > ends[0]:
        reached = pattern(chain.forward(ends[0])) ** (ends[1] - ends[0])
    else:
        for record in range(*ends):
            reached = pattern(reached * pattern(chain.forward(record)))
    often = chain.marginal(ends[0])
    return [
        frozenset(j for j in range(k) if not (is_zero(often[i]) or is_zero(reached[i, j])))
        for i in range(k)
    ]


def combined(left: Ratios, right: Ratios, after: Follows) -> Ball:
    """The largest log of left[a][c]·right[b][d] over ends (a, b) and (c, d) that occur.

    First ends after which the same can follow are looked at as one.
    """
    groups: dict[frozenset[int], list[int]] = {}
    for state, found in enumerate(after):
        if found:
            groups.setdefault(found, []).append(state)
    return _log(
        largest(left[a][c] for a, c in product(first, other))
        * largest(right[b][d] for b, d in product(last, other_last))
        for (last, first), (other_last, other) in product(groups.items(), repeat=2)
    )


def unit(k: int) -> Matrix:
    """The matrix of a step that changes nothing."""
    return flint.arb_mat([[flint.arb(int(i == j)) for j in range(k)] for i in range(k)])


def pattern(kernel: Matrix) -> Matrix:
    """1 where an entry is not 0."""
    rows = [[flint.arb(int(not is_zero(one))) for one in row] for row in kernel.tolist()]
    return flint.arb_mat(rows)


def _log(ratios: Iterable[Ball]) -> Ball:
    """Of the largest one, which is at least 1."""
    return flint.arb(1).max(largest(ratios)).log()
