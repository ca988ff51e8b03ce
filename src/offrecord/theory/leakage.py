"""Exact leakage of a local redaction matrix, for all plausible chains at once (F1, F2, F9, R6).

A secret and its two sides: given the start context the sides are independent, so what an observer
of each side may see, with its likelihood by start context, is all there is (sides.py). Of a secret
of at least m records the sides start from contexts of their own and their largest log-ratios add,
pair by pair (F2, F9); a shorter one lies within one context, and the likelihood of both sides given
its values is a sum over the contexts that hold them (R6).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.members import Members, of_value
from offrecord.theory.pairs import NOTHING, log_ratios, record_leakages
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.sides import (
    LEAST,
    SIDES,
    Direction,
    Walk,
    fully_redacted,
    local_outcomes,
)

#: Outputs of one side of order above 1 that are followed; beyond, leakage takes minutes.
_MOST_OUTPUTS = 4096
_MOST_NUMBERS = 2**25  # of the states of these outputs: 256 MB
_FIRST_LOOK = 256  # rows: few sides reach further, and long chains have many secrets


def leakage(problem: Problem, redaction: ArrayLike) -> float:
    """The leakage of a local redaction matrix (Definition 1), ∞ included: the promise's figure.

    Args:
        problem: whose secrets it is about, and under which chains.
        redaction: (n, k) probability of redaction by record and value.

    Returns:
        Of a list of chains the largest over all of them, of a posterior the quantile of its
        coverage.

    Raises:
        InputError: For another shape, and where leakage of order above 1 would take too long.
    """
    return figure(problem, leakages(problem, redaction))


def figure(problem: Problem, found: Floats) -> float:
    """Of (M,) leakages the promise's: the largest of a list, a posterior's quantile."""
    coverage = problem.promise.coverage
    if coverage is None:
        return float(found.max())
    return float(np.quantile(found, coverage, method="higher"))


def leakages(problem: Problem, redaction: ArrayLike) -> Floats:
    """The exact leakage of a local redaction matrix under each member.

    Args:
        problem: whose secrets it is about, and under which chains.
        redaction: (n, k) probability of redaction by record and value.

    Returns:
        (M,) the largest over the secrets.

    Raises:
        InputError: As `leakage`.
    """
    matrix = checked_redaction(redaction, problem)
    known: dict[object, Floats] = {}
    found = np.zeros(problem.members.count)
    for secret in problem.secrets:
        around = Around.of(problem, problem.members, secret, matrix)
        if around.key not in known:
            known[around.key] = around.leakages()
        found = np.maximum(found, known[around.key])
    return found


@dataclass(frozen=True, eq=False)
class Around:
    """A secret, the start contexts beside it and the redaction of both sides.

    rows: of the left and the right side, from the secret outwards; beyond them all is released.
    inside: of the secret's own records, which are always redacted without it.
    """

    problem: Problem
    members: Members
    secret: Secret
    rows: tuple[Floats, Floats]
    inside: Floats | None = None

    @classmethod
    def of(cls, problem: Problem, members: Members, secret: Secret, matrix: Floats) -> Around:
        """What a whole redaction does around a secret."""
        inside = matrix[secret.first - 1 : secret.last]
        rows = rows_beside(matrix, secret, members.order)
        return cls(problem, members, secret, rows, None if np.all(inside == 1) else inside)

    @property
    def order(self) -> int:
        """Of the chains."""
        return self.members.order

    @property
    def length(self) -> int:
        """How many records the secret has."""
        return self.secret.last - self.secret.first + 1

    @property
    def ends(self) -> tuple[int, int]:
        """The last records (from 1) of the contexts that the left and the right side start from."""
        order, (first, last) = self.order, self.secret
        # a long secret holds whole contexts, which the sides then start from (F9)
        if self.length >= order:
            return first + order - 1, last
        return max(last, order), max(last, order)

    @property
    def margins(self) -> tuple[int, int]:
        """How many records lie to the left and to the right of the secret."""
        return self.secret.first - 1, self.problem.n - self.secret.last

    @property
    def key(self) -> object:
        """Equal for secrets with the same leakage."""
        if self.members.places is not None:
            return self.secret
        inside = None if self.inside is None else self.inside.tobytes()
        left, right = map(self._side_key, self.rows, self.margins)
        return inside, left, right, self.length, self.ends[1] - self.secret.last

    def _side_key(self, rows: Floats, margin: int) -> tuple[bytes, int]:
        # of records that are all released, those beyond the order say nothing (R6)
        return rows.tobytes(), min(margin - len(rows), self.order)

    def _place(self, record: int) -> int:
        return self.members.place_after(0, record - 1)

    # ---- leakage

    def leakages(self) -> Floats:
        """(M,) leakage about the secret."""
        if self.is_given_away:
            return np.full(self.members.count, np.inf)
        parts = self.members.parts(max(_MOST_NUMBERS // self.members.contexts**2, 1))
        return np.concatenate([self._leakages(part) for part in parts])

    def _leakages(self, members: Members) -> Floats:
        walks = [Walk(members, self._place(end), side) for end, side in self._starts]
        left, right = map(self._outcomes, walks)
        if self.length < members.order:
            # a secret within one context: a sum over the contexts that hold it (R6)
            return record_leakages(left, right, walks[0].law, self._codes)
        # first and last values of a run occur together or not (F9)
        pairs = log_ratios(left, walks[0].law), log_ratios(right, walks[1].law)
        found = _added(*pairs, self._together(members))
        return np.asarray(np.where(found > NOTHING, found, 0.0))

    @property
    def _starts(self) -> list[tuple[int, Direction]]:
        return list(zip(self.ends, SIDES, strict=True))

    @property
    def is_given_away(self) -> bool:
        """Whether a record of the secret may be released that could have another value."""
        if self.inside is None:
            return False
        rows = enumerate(self.inside, self.secret.first)
        return any(self._gives_away(record, row) for record, row in rows)

    def _gives_away(self, record: int, row: Floats) -> bool:
        end = max(record, self.order)
        laws = of_value(self.members.law(self._place(end)), self.members.k, end - record)
        possible = (laws > 0).any(axis=0)
        return bool(possible.sum() > 1 and not (row == 1)[possible].all())

    @property
    def _codes(self) -> Integers:
        """(S,) the values of a short secret in each start context, as one number."""
        k, after = self.members.k, self.ends[1] - self.secret.last
        return np.asarray(np.arange(self.members.contexts) // k**after % k**self.length)

    def _together(self, members: Members) -> Mask:
        """(M, S, S) which start contexts of a long secret occur together."""
        walk = Walk(members, self._place(self.ends[0]), "right")
        product = walk.product(self.ends[1] - self.ends[0])
        return np.asarray((product > 0) & (walk.law > 0)[:, :, np.newaxis])

    # ---- what is seen on one side

    def _outcomes(self, walk: Walk) -> Floats:
        """(M, O, S) what may be seen of one side."""
        at = SIDES.index(walk.direction)
        rows, margin = self.rows[at], self.margins[at]
        if self.order == 1:
            return local_outcomes(rows, walk.members, walk.place, walk.direction, margin)
        window = fully_redacted(rows)
        # windows show the nearest context (R6); anything else is enumerated
        if rows[window : min(window + self.order, margin)].any():
            return np.stack(list(self._enumerated(walk, rows, margin)), axis=1)
        seen = min(self.order, margin - window)
        if seen == 0:
            return np.ones((walk.members.count, 1, walk.members.contexts))
        return walk.context_outcomes(self._steps(window + seen, walk.direction), seen)

    def _steps(self, distance: int, direction: Direction) -> int:
        """How many steps from the start context shows a record; up to 0 if it holds the record."""
        if direction == "right":
            return distance - (self.ends[1] - self.secret.last)
        # a step to the left shows the first record of a context
        return distance + self.ends[0] - self.order + 1 - self.secret.first

    def _enumerated(self, walk: Walk, rows: Floats, margin: int) -> Iterator[Floats]:
        """(M, S) likelihoods of every output of a side up to `order` releases in a row (R6)."""
        given, states = 0, [(0, walk.product(0))]
        for distance in range(1, margin + 1):
            row = rows[distance - 1] if distance <= len(rows) else np.zeros(rows.shape[1])
            going = []
            for released, shown in self._branched(walk, states, distance, row):
                if released < self.order:
                    going.append((released, shown))
                else:
                    given += 1
                    yield shown.sum(axis=2)
            states = going
            _check_effort(walk.members, len(states), given)
        end = self.ends[SIDES.index(walk.direction)]
        for _, state in states:
            yield walk.nothing_released(state, end - self.order)

    def _branched(
        self, walk: Walk, states: list[tuple[int, Floats]], distance: int, row: Floats
    ) -> Iterator[tuple[int, Floats]]:
        """What the record at a distance may show after each state: how many records in a row are
        released then, and what is likely.
        """
        k, steps = walk.members.k, self._steps(distance, walk.direction)
        to_left = self.order - 1 + min(steps, 0)
        digit = max(-steps, 0) if walk.direction == "right" else to_left
        values = np.arange(walk.members.contexts) // k**digit % k
        for released, state in states:
            # records that the start context holds come first, without a step
            moved = walk.one_further(state, steps) if steps > 0 else state
            yield from _branches(_followed(moved), values, row, released)


def _check_effort(members: Members, open_outputs: int, given: int) -> None:
    size = open_outputs * members.count * members.contexts**2
    if open_outputs + given > _MOST_OUTPUTS or size > _MOST_NUMBERS:
        raise InputError(
            f"a redaction of order {members.order} with so many outputs takes too long to judge; a"
            " window does not"
        )


def _followed(state: Floats) -> Floats:
    """Likelihoods by the largest; InputError if some are too small to be followed."""
    state = state / max(float(state.max()), np.finfo(float).tiny)
    if np.any((state > 0) & (state < LEAST)):
        raise InputError("probabilities of this redaction are too small to compute with")
    return state


def _branches(
    state: Floats, values: Integers, row: Floats, released: int
) -> Iterator[tuple[int, Floats]]:
    chances = [(0, row[values])]
    chances += [
        (released + 1, (values == value) * (1 - row[value])) for value in np.flatnonzero(row < 1)
    ]
    for more, chance in chances:
        shown = state * chance
        if shown.any():
            yield more, shown


def _added(left: Floats, right: Floats, together: Mask) -> Floats:
    """(M,) the largest left[a, a'] + right[b, b'] over pairs (a, b), (a', b') that occur (F9)."""
    size = left.shape[1]
    # where every pair occurs, each side may take its own worst pair (F2)
    if size > 1 and together.all():
        return np.asarray(left.max(axis=(1, 2)) + right.max(axis=(1, 2)))
    best = np.full((len(left),), 0.0)
    for a in range(size):
        from_a = np.where(together[:, a, :, np.newaxis], right, -np.inf).max(axis=1)  # (M, b')
        for other in range(size):
            most = np.where(together[:, other], from_a, -np.inf).max(axis=1)
            best = np.maximum(best, left[:, a, other] + most)
    return best


# ---- redaction matrices: (n, k) probability of redaction of each record and value


def checked_redaction(redaction: ArrayLike, problem: Problem) -> Floats:
    """An (n, k) matrix of a problem; InputError for another shape, and for no probabilities."""
    shape = (problem.n, problem.chain.k)
    try:
        matrix = np.asarray(redaction, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"redaction must be {shape[0]} × {shape[1]} numbers") from None
    if matrix.shape != shape:
        raise InputError(f"redaction must have shape {shape}, got {matrix.shape}")
    outside = ~((matrix >= 0) & (matrix <= 1))
    if outside.any():
        record, value = np.argwhere(outside)[0]
        raise InputError(
            f"redaction must hold probabilities, got {matrix[record, value]} for record"
            f" {record + 1}"
        )
    return matrix


def rows_beside(matrix: Floats, secret: Secret, order: int) -> tuple[Floats, Floats]:
    """(reach, k) the redaction to the left and right of a secret, as far as it differs from 0."""
    left, right = matrix[: secret.first - 1][::-1], matrix[secret.last :]
    return _nearest(left, order), _nearest(right, order)


def _nearest(rows: Floats, order: int) -> Floats:
    """The rows up to the first `order` rows of zeros."""
    # a whole look at each of many secrets in a long chain would be quadratic
    count = _FIRST_LOOK
    while (end := _first_free(rows[:count], order)) is None and count < len(rows):
        count *= 8
    if end is not None:
        return rows[:end]
    used = np.flatnonzero(rows.any(axis=1))
    return rows[: int(used[-1]) + 1] if len(used) else rows[:0]


def _first_free(rows: Floats, order: int) -> int | None:
    """Where the first `order` rows of zeros begin."""
    redacted = rows.any(axis=1)
    if len(rows) < order:
        return None
    free = np.flatnonzero(~sliding_window_view(redacted, order).any(axis=1))
    return int(free[0]) if len(free) else None


def released(matrix: Floats, problem: Problem) -> float:
    """Expected number of released records, n·ν (Definition 2), by each record's own law."""
    # Theorem 1 and Eq. (3) are this sum for a 3R matrix of the paper's chain
    return float(((1.0 - matrix) * problem.chain.marginals(1, problem.n)).sum())
