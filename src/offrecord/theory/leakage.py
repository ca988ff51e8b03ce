"""Exact leakage of a local redaction matrix, for all plausible chains at once (F1, F2, F9, R6).

A secret and its two sides: given the start context the sides are independent, so what an observer
of each side may see, with its likelihood by start context, is all there is (sides.py). Of a secret
of at least m records the sides start from contexts of their own and their largest log-ratios add,
pair by pair (F2, F9); a shorter one lies within one context, and the likelihood of both sides given
its values is a sum over the contexts that hold them (R6).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.models.members import Members
from offrecord.theory.pairs import log_ratios, record_leakages
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.redaction import checked_redaction, rows_beside
from offrecord.theory.sides import (
    LEAST,
    Direction,
    context_outcomes,
    kernel_product,
    local_outcomes,
)

#: Outputs of one side of order above 1 that are followed; beyond, leakage takes minutes.
_MOST_OUTPUTS = 4096
_MOST_NUMBERS = 2**25  # of the states of these outputs: 256 MB


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
    """The promise's figure of the leakage by member.

    found: (M,) leakages. Returns the largest of a list, of a posterior the quantile of its
    coverage.
    """
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


class Around:
    """A secret, the start contexts beside it and the redaction of both sides."""

    def __init__(
        self,
        problem: Problem,
        members: Members,
        secret: Secret,
        rows: tuple[Floats, Floats],
        inside: Floats | None = None,
    ) -> None:
        """rows: of both sides, from the secret outwards; beyond them all is released. inside: of
        the secret's own records, which are always redacted without it.
        """
        self.problem, self.members, self.secret = problem, members, secret
        self.rows, self.inside = rows, inside
        order, (first, last) = members.order, secret
        self.is_long = last - first + 1 >= order
        #: The last records (from 1) of the contexts that the left and the right side start from.
        self.ends = (first + order - 1, last) if self.is_long else (max(last, order),) * 2

    @classmethod
    def of(cls, problem: Problem, members: Members, secret: Secret, matrix: Floats) -> Around:
        """What a whole redaction does around a secret."""
        inside = matrix[secret.first - 1 : secret.last]
        rows = rows_beside(matrix, secret, members.order)
        return cls(problem, members, secret, rows, None if np.all(inside == 1) else inside)

    @property
    def key(self) -> object:
        """Equal for secrets with the same leakage."""
        if self.members.places is not None:
            return self.secret
        inside = None if self.inside is None else self.inside.tobytes()
        margins = self.secret.first - 1, self.problem.n - self.secret.last
        sides = [
            (rows.tobytes(), min(margin - len(rows), self.members.order))
            for rows, margin in zip(self.rows, margins, strict=True)
        ]
        offset = self.ends[1] - self.secret.last
        return inside, tuple(sides), self.secret.last - self.secret.first, offset

    # The place of a record, from 1.
    def _place(self, record: int) -> int:
        places = self.members.places
        if places is None:
            return 0
        return (record - 1) % places.count if places.cyclic else record - 1

    # ---- leakage

    def leakages(self) -> Floats:
        """(M,) leakage about the secret."""
        if self.is_given_away:
            return np.full(self.members.count, np.inf)
        size = max(_MOST_NUMBERS // self.members.contexts**2, 1)
        if self.members.count <= size:
            return self._leakages(self.members)
        parts = self.members.parts(size)
        return np.concatenate([self._leakages(part) for part in parts])

    def _leakages(self, members: Members) -> Floats:
        left, right = (self._outcomes(members, side) for side in ("left", "right"))
        laws = [members.law(self._place(end)) for end in self.ends]
        if not self.is_long:
            # a secret within one context: a sum over the contexts that hold it (R6)
            return record_leakages(left, right, laws[0], self._codes())
        # first and last values of a run occur together or not (F9)
        pairs = log_ratios(left, laws[0]), log_ratios(right, laws[1])
        found = _added(*pairs, self._together(members))
        return np.asarray(np.where(found > 1e-12, found, 0.0))

    @property
    def is_given_away(self) -> bool:
        """Whether a record of the secret may be released that could have another value."""
        first, last = self.secret
        if self.inside is None:
            return False
        silent = self.inside == 1
        for record in range(first, last + 1):
            possible = (self._law_of(record) > 0).any(axis=0)
            if possible.sum() > 1 and not silent[record - first][possible].all():
                return True
        return False

    # (M, k) the law of one record's value.
    def _law_of(self, record: int) -> Floats:
        members, end = self.members, max(record, self.members.order)
        law, digit = members.law(self._place(end)), end - record
        shape = (members.count, -1, members.k, members.k**digit)
        return np.asarray(law.reshape(shape).sum(axis=(1, 3)))

    # (S,) the values of a short secret in each start context, as one number.
    def _codes(self) -> Integers:
        k, after = self.members.k, self.ends[1] - self.secret.last
        length = self.secret.last - self.secret.first + 1
        return np.asarray(np.arange(self.members.contexts) // k**after % k**length)

    # (M, S, S) which start contexts of a long secret occur together.
    def _together(self, members: Members) -> NDArray[np.bool_]:
        place, steps = self._place(self.ends[0]), self.ends[1] - self.ends[0]
        product = kernel_product(members, place, steps, "right")
        return np.asarray((product > 0) & (members.law(place) > 0)[:, :, np.newaxis])

    # ---- what is seen on one side

    # (M, O, S)
    def _outcomes(self, members: Members, direction: Direction) -> Floats:
        rows, margin, end = self._side(direction)
        if members.order == 1:
            return local_outcomes(rows, members, self._place(end), direction, margin)
        window = self._window(rows, margin)
        # windows show the nearest context (R6); anything else is enumerated
        if window is None:
            return np.stack(list(self._enumerated(members, direction)), axis=1)
        steps, seen = self._steps_to_context(direction, window, margin)
        if seen == 0:
            return np.ones((members.count, 1, members.contexts))
        return context_outcomes(members, self._place(end), steps, seen, direction)

    # Rows of redaction outwards, number of records, last record of the start context.
    def _side(self, direction: Direction) -> tuple[Floats, int, int]:
        if direction == "left":
            return self.rows[0], self.secret.first - 1, self.ends[0]
        return self.rows[1], self.problem.n - self.secret.last, self.ends[1]

    # The size of a window of whole redactions, if the side is one.
    def _window(self, rows: Floats, margin: int) -> int | None:
        size = int(np.argmin(np.append(np.all(rows == 1, axis=1), False)))
        return size if not rows[size : min(size + self.members.order, margin)].any() else None

    # How far the nearest released context is, and how many of its records are released.
    def _steps_to_context(self, direction: Direction, window: int, margin: int) -> tuple[int, int]:
        order = self.members.order
        seen = min(order, margin - window)
        if direction == "right":
            end = self.secret.last + window + seen
            return end - self.ends[1], seen
        end = self.secret.first - window - 1 if seen == order else order
        return self.ends[0] - end, seen

    def _enumerated(self, members: Members, direction: Direction) -> Iterator[Floats]:
        """(M, S) likelihoods of every output of a side of order m up to m releases in a row (R6).

        The records beside the secret that its start context holds come first, without a step.
        """
        rows, margin, end = self._side(direction)
        order, k = members.order, members.k
        start = kernel_product(members, self._place(end), 0, direction)
        states = [(0, start)]  # how many records in a row were released, and what is likely then
        given = 0
        for distance in range(1, margin + 1):
            record = (
                self.secret.first - distance
                if direction == "left"
                else (self.secret.last + distance)
            )
            row = rows[distance - 1] if distance <= len(rows) else np.zeros(k)
            held = end - record if end - order < record <= end else None
            digit = held if held is not None else (order - 1 if direction == "left" else 0)
            values = np.arange(members.contexts) // k**digit % k
            going = []
            for released, state in states:
                moved = (
                    state if held is not None else self._moved(members, state, record, direction)
                )
                moved = moved / max(float(moved.max()), np.finfo(float).tiny)
                if np.any((moved > 0) & (moved < LEAST)):
                    raise InputError(
                        "probabilities of this redaction are too small to compute with"
                    )
                if row.any():
                    going.append((0, moved * row[values]))
                for value in np.flatnonzero(row < 1).tolist():
                    shown = moved * ((values == value) * (1 - row[value]))
                    if released + 1 < order:
                        going.append((released + 1, shown))
                    elif shown.any():
                        given += 1
                        yield shown.sum(axis=2)
            states = [one for one in going if one[1].any()]
            size = len(states) * members.count * members.contexts**2
            if len(states) + given > _MOST_OUTPUTS or size > _MOST_NUMBERS:
                raise InputError(
                    f"a redaction of order {order} with so many outputs takes too long to judge;"
                    " a window does not"
                )
        law = members.law(self._place(order))
        for _, state in states:
            yield (
                state.sum(axis=2) if direction == "right" else np.einsum("mxi,mi->mx", state, law)
            )

    # The states after a step that shows one more record.
    def _moved(self, members: Members, state: Floats, record: int, direction: Direction) -> Floats:
        if direction == "right":
            return np.asarray(state @ members.kernel(self._place(record - 1)))
        end = self._place(record + members.order - 1)
        occurs = (members.law(end) > 0)[:, np.newaxis, :]
        return np.asarray(state @ np.swapaxes(members.kernel(end), 1, 2)) * occurs


# (M,) the largest left[a, a'] + right[b, b'] over pairs (a, b), (a', b') that occur (F9).
def _added(left: Floats, right: Floats, together: NDArray[np.bool_]) -> Floats:
    size = left.shape[1]
    if size > 1 and together.all():
        return np.asarray(left.max(axis=(1, 2)) + right.max(axis=(1, 2)))
    best = np.full((len(left),), 0.0)
    for a in range(size):
        from_a = np.where(together[:, a, :, np.newaxis], right, -np.inf).max(axis=1)  # (M, b')
        for other in range(size):
            most = np.where(together[:, other], from_a, -np.inf).max(axis=1)
            best = np.maximum(best, left[:, a, other] + most)
    return best
