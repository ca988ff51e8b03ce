"""Exact leakage of any local redaction mechanism (F1, F2, F9; of order above 1, R6 and F8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offrecord.models.base import Floats, Integers, Label
from offrecord.theory.generators import Outward, Releases, Told, told_by
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.redaction import Redaction
from offrecord.theory.sets.side_set import BY_CONES, BY_ONE_WALK, NOWHERE
from offrecord.theory.side import Side, SideLeakage

#: How a leakage was found: exactly, or as an upper bound.
EXACT, BY_CONTEXTS, BY_GENERATORS = "exact", "contexts", "generators"
BY_NEAREST, BY_TUPLE_PAIRS = "nearest generators (F3)", "tuple pairs (F8)"
_EXACT_METHODS = (EXACT, BY_CONTEXTS, BY_GENERATORS, BY_ONE_WALK, BY_CONES)


def is_exact(method: str) -> bool:
    """What was found in this way is no mere upper bound."""
    return method in _EXACT_METHODS


@dataclass(frozen=True)
class FirstRelease:
    """What is first seen on one side of a secret: this record with this value.

    further: the releases beyond it that the output shows too, where they count: in a chain of order
    m, until m records in a row are released.
    """

    record: int
    value: Label
    further: tuple[tuple[int, Label], ...] = ()

    def __str__(self) -> str:
        seen = ((self.record, self.value), *self.further)
        return ", ".join(f"X_{record} = {value!r}" for record, value in seen)


@dataclass(frozen=True)
class WorstOutput:
    """The output that tells most about a secret, and how much.

    leakage: its log-likelihood ratio, ∞ included. rounding: floating point is no further than this
    from the true leakage.
    secret: the private records it is about. more_likely, less_likely: the values of the secret's
    first and last record under which the output is most and least likely. left, right: the first
    release on each side, None where nothing is released to the end.
    method: "exact" for order 1; for chains of order above 1 by which way the leakage was found,
    exactly by "contexts" or "generators" (R6), or as an upper bound: "nearest generators (F3)", as
    if all records further out were released, or "tuple pairs (F8)". For a set of models, the way of
    each side over the set, after "tuple pairs (F8)" where states are tuples.
    located: what is seen is known; not so for larger sets of models.
    """

    leakage: float
    rounding: float
    secret: Secret
    more_likely: tuple[Label, Label]
    less_likely: tuple[Label, Label]
    left: FirstRelease | None
    right: FirstRelease | None
    itself: bool = False
    method: str = EXACT
    located: bool = True

    @property
    def exact(self) -> bool:
        """No mere upper bound."""
        return is_exact(self.method)

    @property
    def upper(self) -> float:
        """A number the true leakage does not exceed."""
        return self.leakage + self.rounding

    def __str__(self) -> str:
        records = f"X_{self.secret.first}"
        more, less = repr(self.more_likely[0]), repr(self.less_likely[0])
        if self.secret.last > self.secret.first:
            records = f"(X_{self.secret.first}, …, X_{self.secret.last})"
            more, less = (f"({a!r}, …, {b!r})" for a, b in (self.more_likely, self.less_likely))
        if self.itself:
            return f"{records} itself is released"
        if self.leakage == 0:
            return "no output tells anything"
        if not self.located:
            return (
                f"some output is e^{self.leakage:.6g} times likelier if {records} = {more} than"
                f" {less}, under the worst models of the set"
            )
        seen = [
            (f"{side} first on the {name}" if side else f"nothing released on the {name}")
            for name, side in (("left", self.left), ("right", self.right))
            if side or name == "right" or self.secret.first > 1
        ]
        return (
            f"{' and '.join(seen)}: e^{self.leakage:.6g} times likelier if {records} = {more} than"
            f" {less}"
        )


def leakage(problem: Problem, redaction: ArrayLike | Redaction) -> float:
    """𝓛(X_p → Y) of a local redaction matrix (n, k) (Definition 1), exact, ∞ included.

    The largest over the problem's secrets, O(n·k³) each. The formula, U = V·P and V = U·diag(q),
    stands in `offrecord.theory.first_release`.
    """
    return worst_output(problem, redaction).leakage


def worst_output(problem: Problem, redaction: ArrayLike | Redaction) -> WorstOutput:
    """The output that tells most about one of the problem's secrets.

    Of order above 1, exactly where that is possible, else by the smaller of two bounds; `method` of
    what is returned says how.
    """
    if is_judged_by_outputs(problem):
        return _worst_of_all(problem, redaction, _Nearest(problem))
    return walked_output(problem, redaction)


def walked_output(problem: Problem, redaction: ArrayLike | Redaction) -> WorstOutput:
    """The same by walks to the first release alone: of order above 1, by F8's tuples.

    Fast enough to be asked thousands of times.
    """
    return _worst_of_all(problem, redaction, _worst_about)


_Judge: TypeAlias = Callable[[Problem, Redaction, Integers, Secret], WorstOutput]


def _worst_of_all(problem: Problem, redaction: ArrayLike | Redaction, judge: _Judge) -> WorstOutput:
    """The worst of what `judge` says about each secret."""
    n, k = problem.n, problem.chain.k
    matrix = (
        redaction.checked(n, k)
        if isinstance(redaction, Redaction)
        else Redaction.from_matrix(redaction, n, k)
    )
    lengths = matrix.stops - matrix.starts
    worst: WorstOutput | None = None
    for secret in problem.secrets:
        output = judge(problem, matrix, lengths, secret)
        if worst is None or output.upper > worst.upper:
            worst = output
        if worst.leakage == np.inf:
            break
    assert worst is not None
    return worst


def is_judged_by_outputs(problem: Problem) -> bool:
    """Whether R6 applies: to one stationary chain of order above 1, not to a set of models."""
    chain = problem.chain
    return chain.order > 1 and chain.is_stationary and getattr(problem, "models", None) is None


def side_leakage(side: Side, matrix: Redaction, lengths: Integers) -> SideLeakage:
    """Directional leakage of one side under the rows of a whole redaction matrix."""
    start = side.edge  # position (from 0) of the first record to the right of the edge
    if side.direction > 0:
        index = int(np.searchsorted(matrix.stops, start, side="right"))
        return _walk_out(side, matrix, lengths, index, 1, start)
    index = int(np.searchsorted(matrix.starts, start - 1, side="left")) - 1
    return _walk_out(side, matrix, lengths, index, -1, start - 1)


def _walk_out(
    side: Side, matrix: Redaction, lengths: Integers, index: int, step: int, edge: int
) -> SideLeakage:
    """Walk over the stretches from `edge` to the first gap between them or the chain's end."""
    starts, stops = matrix.starts, matrix.stops
    begins, ends, end_of_chain = (starts, stops, matrix.n) if step > 0 else (stops, starts, 0)
    last = len(starts) - 1 if step > 0 else 0
    remaining = (last - index) * step + 1
    if remaining <= 0:
        return side.leakage(matrix.rows[:0], lengths[:0], opens=side.room > 0)
    inner = begins[index]
    inside = (inner < edge) if step > 0 else (inner > edge)
    if not inside and inner != edge:
        return side.leakage(matrix.rows[:0], lengths[:0], opens=True)
    if inside:  # the edge lies within a stretch: only its outer part counts
        lengths = lengths.copy()
        lengths[index] = abs(int(ends[index]) - edge)
    order = slice(index, None, step)
    gaps = np.flatnonzero(ends[order][:-1] != begins[order][1:])
    count = int(gaps[0]) + 1 if len(gaps) else remaining
    opens = bool(ends[index + step * (count - 1)] != end_of_chain)
    if step > 0:
        return side.leakage(
            matrix.rows[: index + count], lengths[: index + count], opens=opens, index=index
        )
    first = index - count + 1
    return side.leakage(matrix.rows[first:], lengths[first:], opens=opens, index=count - 1, step=-1)


def combine(
    left: Floats, right: Floats, possible: NDArray[np.bool_], values: Integers | None = None
) -> tuple[float, tuple[int, int, int, int]]:
    """The largest left[a, a'] + right[b, b'] over possible ends of a secret, and where (F2, F9).

    Its ends are (a, b) or (a', b'), for a single record a = b. Exact where the paper adds the
    largest of each side (Remark 1); over a set of models R3. values: for one record of a chain on
    tuples or hidden states, its value in each state; pairs of states with the same one do not
    count.
    """
    a, b = np.nonzero(possible)
    best, where = 0.0, (int(a[0]), int(b[0]), int(a[0]), int(b[0]))
    for i in range(len(a)):
        totals = left[a[i], a] + right[b[i], b]
        if values is not None:
            totals[values[a] == values[a[i]]] = 0.0
        j = int(np.argmax(totals))
        if totals[j] > best:
            best, where = float(totals[j]), (int(a[i]), int(b[i]), int(a[j]), int(b[j]))
    return best, where


def possible_ends(problem: Problem, secret: Secret) -> NDArray[np.bool_]:
    """(states, states) which states the two ends of a secret can take together."""
    left, right = problem.sides(secret)
    if problem.models is not None:
        return problem.models.can_follow(left.origin, right.origin)
    return np.diag(left.support) @ left.chain.can_follow(left.origin, right.origin)


def _worst_about(
    problem: Problem, matrix: Redaction, lengths: Integers, secret: Secret
) -> WorstOutput:
    possible = possible_ends(problem, secret)
    method = BY_TUPLE_PAIRS if problem.chain.has_states else EXACT
    first_labels, last_labels = _end_labels(problem, secret)
    if _given_away(problem, matrix, problem.core(secret)):
        a, b = np.nonzero(possible)
        more, less = ((first_labels[a[i]], last_labels[b[i]]) for i in (0, -1))
        return WorstOutput(np.inf, 0.0, secret, more, less, None, None, itself=True, method=method)
    sides = problem.sides(secret)
    left, right = (side_leakage(side, matrix, lengths) for side in sides)
    single = secret.first == secret.last
    values = sides[0].secret_values if single and problem.chain.has_states else None
    total, (first, last, other_first, other_last) = combine(
        left.worst, right.worst, possible, values
    )
    found = left.value[first, other_first], right.value[last, other_last]
    return WorstOutput(
        total,
        left.rounding + right.rounding,
        secret,
        (first_labels[first], last_labels[last]),
        (first_labels[other_first], last_labels[other_last]),
        _first_release(problem, matrix, sides[0], left, (first, other_first)),
        _first_release(problem, matrix, sides[1], right, (last, other_last)),
        method=_method(problem, left, right),
        located=NOWHERE not in found,
    )


def _method(problem: Problem, left: SideLeakage, right: SideLeakage) -> str:
    """How the leakage about a secret was found by walks on both sides."""
    by_side = dict.fromkeys(side.method for side in (left, right) if side.method is not None)
    ways = [BY_TUPLE_PAIRS] * problem.chain.has_states + list(by_side)
    return ", ".join(ways) or EXACT


# ---- order above 1 (R6)


class _Nearest:
    """Judges secrets by the outputs nearest to them; those with the same about them once."""

    def __init__(self, problem: Problem) -> None:
        self._told: dict[tuple[bytes, bytes, int], Told | None] = {}
        self._chain = problem.chain

    def __call__(
        self, problem: Problem, matrix: Redaction, lengths: Integers, secret: Secret
    ) -> WorstOutput:
        if _given_away(problem, matrix, secret):
            return replace(_worst_about(problem, matrix, lengths, secret), method=EXACT)
        told = self._about(matrix, secret)
        if told is not None and told.is_exact:
            return _of_outputs(problem, secret, told)
        walked = _worst_about(problem, matrix, lengths, secret)
        if told is None or walked.upper <= told.leakage + told.rounding:
            return walked
        return _of_outputs(problem, secret, told)

    def _about(self, matrix: Redaction, secret: Secret) -> Told | None:
        left, right = (
            _outward(matrix, secret, direction, self._chain.order) for direction in (-1, 1)
        )
        length = secret.last - secret.first + 1
        key = (_spelled(left), _spelled(right), length)
        if key not in self._told:
            self._told[key] = told_by(self._chain, left, right, length)
        return self._told[key]


def _of_outputs(problem: Problem, secret: Secret, told: Told) -> WorstOutput:
    """What was found by distance, about the records of one secret."""
    labels = problem.chain.labels
    exact = BY_CONTEXTS if told.is_window else BY_GENERATORS
    more, less = ((labels[first], labels[last]) for first, last in (told.more, told.less))
    return WorstOutput(
        told.leakage,
        told.rounding,
        secret,
        more,
        less,
        _released(problem, secret.first, -1, told.left),
        _released(problem, secret.last, 1, told.right),
        method=exact if told.is_exact else BY_NEAREST,
    )


def _released(
    problem: Problem, edge: int, direction: int, releases: Releases
) -> FirstRelease | None:
    """What an output shows on one side; None if nothing to the end."""
    labels = problem.chain.labels
    seen = [(edge + direction * distance, labels[value]) for distance, value in releases]
    return FirstRelease(*seen[0], tuple(seen[1:])) if seen else None


def _outward(matrix: Redaction, secret: Secret, direction: int, order: int) -> Outward:
    """The stretches on one side of a secret, nearest first, equal neighbours as one.

    To the chain's end, or `order` records in a row that are never redacted: more do not count.
    """
    found: list[tuple[Floats, int]] = []
    for row, count in _stretches(matrix, secret, direction):
        known = found.pop()[1] if found and np.array_equal(found[-1][0], row) else 0
        found.append((row, known + count))
        if known + count >= order and not row.any():
            found[-1] = (row, order)
            break
    return found


def _stretches(matrix: Redaction, secret: Secret, direction: int) -> Iterator[tuple[Floats, int]]:
    """All stretches on one side of a secret, nearest first, also those that are never redacted."""
    low, high = (0, secret.first - 1) if direction < 0 else (secret.last, matrix.n)
    first = int(np.searchsorted(matrix.stops, low, side="right"))
    last = int(np.searchsorted(matrix.starts, high, side="left"))
    released, at = np.zeros(matrix.k), high if direction < 0 else low
    for i in range(first, last)[::direction]:
        start, stop = max(int(matrix.starts[i]), low), min(int(matrix.stops[i]), high)
        near, far = (start, stop) if direction > 0 else (stop, start)
        if near != at:
            yield released, abs(near - at)
        yield matrix.rows[i], stop - start
        at = far
    rest = high - at if direction > 0 else at - low
    if rest:
        yield released, rest


def _spelled(side: Outward) -> bytes:
    """Everything about the records of one side."""
    return b"".join(row.tobytes() + count.to_bytes(8, "big") for row, count in side)


# ---- by walks


def _end_labels(problem: Problem, secret: Secret) -> tuple[list[Label], list[Label]]:
    """The labels of the secret's first and last value in each state at its ends."""
    chain, core = problem.chain, problem.core(secret)
    first = chain.coordinate(secret.first - core.first)
    last = chain.coordinate(chain.order - 1 - (core.last - secret.last))
    return [chain.labels[v] for v in first], [chain.labels[v] for v in last]


def _first_release(
    problem: Problem, matrix: Redaction, side: Side, found: SideLeakage, pair: tuple[int, int]
) -> FirstRelease | None:
    """What the worst output for a pair of states shows on a side; None if nothing to the end."""
    if side.independent:
        return _any_release(problem, matrix, side)
    value = int(found.value[pair])
    if value < 0:
        return None
    record = side.edge + side.direction * int(found.distance[pair])
    return FirstRelease(record, problem.chain.labels[side.shown_value_of_state[value]])


def _any_release(problem: Problem, matrix: Redaction, side: Side) -> FirstRelease | None:
    """A first release on a side that tells nothing, among its nearest thousand records."""
    for distance in range(1, min(side.room, 1000) + 1):
        record = side.edge + side.direction * distance
        released = np.flatnonzero((matrix.row(record - 1) < 1.0) & problem.chain.support(record))
        if len(released):
            return FirstRelease(record, problem.chain.labels[released[0]])
    return None


def _given_away(problem: Problem, matrix: Redaction, secret: Secret) -> bool:
    """Whether a record of the secret's core may be released that could have another value.

    F1's walks begin beside the core and do not see that.
    """
    first, last = secret.first - 1, secret.last  # positions from 0, end excluded
    low = int(np.searchsorted(matrix.stops, first, side="right"))
    high = int(np.searchsorted(matrix.starts, last, side="left"))
    starts, stops, rows = matrix.starts[low:high], matrix.stops[low:high], matrix.rows[low:high]
    covered = (
        len(starts) > 0
        and starts[0] <= first
        and stops[-1] >= last
        and bool(np.all(starts[1:] == stops[:-1]))
    )
    if covered and bool(np.all(rows == 1.0)):
        return False
    if problem.models is not None:
        return True  # in some model of the set any value may occur
    if problem.chain.is_stationary:
        support = problem.chain.support(1)
        return int(support.sum()) > 1 and not (covered and bool(np.all(rows[:, support] == 1.0)))
    supports = np.stack(
        [problem.chain.support(record) for record in range(secret.first, secret.last + 1)]
    )
    released = matrix.matrix(first, last) < 1.0
    return bool(np.any((released & supports).any(axis=1) & (supports.sum(axis=1) > 1)))
