"""MarkovChain: the model of how records depend on each other (paper, Sec. II)."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offrecord.errors import InputError, renamed
from offrecord.files import checked_content, read_json, write_text
from offrecord.models.base import Floats, Integers, Label, Phases
from offrecord.models.learned import Learned
from offrecord.models.published_rounding import rounded_distributions

#: Rows must sum to 1 within this much; what is off by more than rounding is then divided by its
#: sum.
ROW_TOLERANCE = 1e-9
_ROUNDING = 1e-12
_SMALLEST = 1e-250  # of a value that walks may start from or end at
_SMALLEST_STEP = 1e-300  # of a step back in time
MAX_VALUES = 1024
MODEL_VERSION = 1


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MarkovChain:
    """A chain on k values, of order 1 unless said otherwise.

    transition: (k, k), one kernel for every step, or (n − 1, k, k), the kernel from record t to t +
    1 for each t.
    start: (k,), the distribution of record 1; without it, the stationary distribution of the one
    kernel.
    labels: the k values as they appear in the data; 0 … k − 1 without it.
    order: how many records the next one depends on. For order m > 1, transition has m + 1 axes of
    k, the next record's last, and start m axes, the distribution of the first m records. `lifted`
    is the same chain on m-tuples (F8).
    learned: what it was learned from, where it was; no part of the chain itself.

    Raises InputError for anything that is not such a chain, or has no start and several stationary
    distributions.
    """

    transition: Floats
    start: Floats
    labels: tuple[Label, ...]
    order: int
    learned: Learned | None

    def __init__(
        self,
        transition: ArrayLike,
        start: ArrayLike | None = None,
        labels: Sequence[Label] | None = None,
        order: int = 1,
        learned: Learned | None = None,
    ) -> None:
        object.__setattr__(self, "learned", learned)
        order = whole_number("order", order)
        if not 1 <= order <= 10:
            raise InputError(
                "order must be from 1 to 10, got"
                f" {order if abs(order) < 10**9 else 'a huge number'}"
            )
        object.__setattr__(self, "order", order)
        kernels = _numbers("transition", transition)
        if order > 1:
            self._lift(kernels, start, labels)
            return
        if (
            kernels.ndim not in (2, 3)
            or kernels.shape[-1] != kernels.shape[-2]
            or kernels.shape[-1] < 2
        ):
            raise InputError(
                "transition must be a k × k matrix with k ≥ 2, or n − 1 of them, got shape"
                f" {_shape(kernels)}"
            )
        if kernels.shape[-1] > MAX_VALUES:
            raise InputError(
                f"transition must have at most {MAX_VALUES} values, got {kernels.shape[-1]}"
            )
        if kernels.ndim == 3 and len(kernels) == 0:
            raise InputError("transition must hold at least one kernel, got none")
        kernels = _distributions("transition", kernels)
        k = kernels.shape[-1]
        if start is None:
            if kernels.ndim == 3:
                raise InputError("start must be given for a chain with one kernel per step")
            initial = stationary_distribution(kernels)
        else:
            initial = _numbers("start", start)
            if initial.shape != (k,):
                raise InputError(f"start must hold {k} probabilities, got shape {_shape(initial)}")
            initial = _distributions("start", initial)
            if kernels.ndim == 2:
                initial = _exactly_stationary(kernels, initial)
        kernels.setflags(write=False)
        initial.setflags(write=False)
        object.__setattr__(self, "transition", kernels)
        object.__setattr__(self, "start", initial)
        object.__setattr__(self, "labels", _labels(labels, k))

    def _lift(
        self, kernels: Floats, start: ArrayLike | None, labels: Sequence[Label] | None
    ) -> None:
        """Order m > 1: keep the kernel as given and the first-order chain on m-tuples, the first
        record's value leading.
        """
        k, order = kernels.shape[-1] if kernels.ndim else 0, self.order
        if kernels.ndim != order + 1 or set(kernels.shape) != {k} or k < 2:
            raise InputError(
                f"transition of order {order} must have {order + 1} axes of k ≥ 2, got shape"
                f" {_shape(kernels)}"
            )
        if k**order > MAX_VALUES:
            raise InputError(
                f"k to the power of order must be at most {MAX_VALUES}, got {k} to the power of"
                f" {order}"
            )
        kernels = _distributions("transition", kernels)
        states = k**order
        lifted = np.zeros((states, states))
        rows = kernels.reshape(states, k)
        for state in range(states):
            onward = (state * k) % states  # drop the oldest value, then append the next
            lifted[state, onward : onward + k] = rows[state]
        initial = None
        if start is not None:
            initial = _numbers("start", start)
            if initial.shape != (k,) * order:
                raise InputError(
                    f"start of order {order} must have {order} axes of {k}, got shape"
                    f" {_shape(initial)}"
                )
            initial = _distributions("start", initial.ravel())
        chain = MarkovChain(lifted, initial)
        kernels.setflags(write=False)
        object.__setattr__(self, "transition", kernels)
        object.__setattr__(self, "start", chain.start.reshape((k,) * order))
        object.__setattr__(self, "labels", _labels(labels, k))
        self.__dict__["lifted"] = chain

    @cached_property
    def lifted(self) -> MarkovChain:
        """The first-order chain on tuples of `order` neighbouring records; the chain itself for
        order 1.
        """
        return self

    def coordinate(self, index: int) -> NDArray[np.int64]:
        """(k^order,) the value of the index-th record (from 0) in each tuple of the
        lifted chain.
        """
        states = np.arange(self.k**self.order)
        return np.asarray(states // self.k ** (self.order - 1 - index) % self.k)

    @classmethod
    def binary(
        cls, alpha: float, beta: float, labels: Sequence[Label] | None = None
    ) -> MarkovChain:
        """The paper's chain: P(0→1) = alpha, P(1→0) = beta, both in (0, 1], started from its
        stationary distribution.
        """
        for name, value in (("alpha", alpha), ("beta", beta)):
            if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(
                value, bool
            ):
                raise InputError(f"{name} must be a number in (0, 1], got {name}={value!r}")
            if not 0 < value <= 1:
                raise InputError(f"{name} must be in (0, 1], got {name}={value}")
        alpha, beta = float(alpha), float(beta)
        # alpha + beta = 1 means independent records: both rows are then the same numbers, to the
        # last bit.
        from_zero = [1.0 - alpha, alpha]
        return cls(
            [from_zero, from_zero if alpha + beta == 1.0 else [beta, 1.0 - beta]], labels=labels
        )

    # ---- what kind of chain it is

    @property
    def k(self) -> int:
        """Number of values."""
        return int(self.transition.shape[-1])

    @property
    def is_homogeneous(self) -> bool:
        """One kernel for every step."""
        return self.order > 1 or self.transition.ndim == 2

    @property
    def length(self) -> int | None:
        """The only n this chain can serve, or None for any."""
        return None if self.is_homogeneous else len(self.transition) + 1

    @cached_property
    def is_stationary(self) -> bool:
        """Every record has the same distribution and every step the same kernel."""
        if self.order > 1:
            return self.lifted.is_stationary
        return self.is_homogeneous and self._start_is_implied

    @cached_property
    def is_paper_setting(self) -> bool:
        """The paper's setting: two values, stationary, both transitions possible, and alpha and
        beta say all about it.

        They do not where a value stays with a probability that is lost in 1 − alpha, 1 − beta or
        their sum.
        """
        if (
            self.order > 1
            or self.k != 2
            or not self.is_stationary
            or not (self.alpha > 0 and self.beta > 0)
        ):
            return False
        if self.alpha + self.beta == 1.0:
            return bool(np.all(self.transition[0] == self.transition[1]))
        stays, rest = np.diag(self.transition), np.array([1.0 - self.alpha, 1.0 - self.beta])
        return bool(np.all(np.abs(stays - rest) <= 1e-9 * stays))

    homogeneous = renamed("is_homogeneous")
    stationary = renamed("is_stationary")
    paper = renamed("is_paper_setting")

    @property
    def alpha(self) -> float:
        """P(0→1) of a chain with two values and one kernel."""
        return self._binary(0, 1)

    @property
    def beta(self) -> float:
        """P(1→0) of a chain with two values and one kernel."""
        return self._binary(1, 0)

    def _binary(self, i: int, j: int) -> float:
        if self.k != 2 or not self.is_homogeneous or self.order > 1:
            raise InputError(
                "alpha and beta exist for first-order chains with two values and one kernel only"
            )
        return float(self.transition[i, j])

    def value_index(self, label: Label) -> int:
        """The index 0 … k − 1 of a label."""
        for index, known in enumerate(self.labels):
            if known == label and isinstance(known, str) == isinstance(label, str):
                return index
        raise InputError(f"value must be one of {list(self.labels)}, got {label!r}")

    # ---- as one model among others; places count from 0

    @property
    def clock(self) -> None:
        """None: phases make no difference."""
        return None

    def along(self, phases: Integers | None = None) -> MarkovChain:
        """The chain itself; InputError for phases, which it does not know."""
        if phases is not None:
            raise InputError("this chain has no phases, but records are given with theirs")
        return self

    def masses(self, places: Integers, phases: Phases | None = None) -> Floats:
        """How likely each value of records at these places is: (k,) if stationary, else (n, k)."""
        if self.is_stationary:
            return self.marginal(1)
        return np.asarray(self.marginals(1, int(places.max(initial=0)) + 1)[places])

    def contexts(self, places: Integers, phases: Phases | None = None) -> Integers | None:
        """(n,) the number of the kernel that leads to each place; None for one kernel."""
        if self.is_homogeneous:
            return None
        # no step leads to a chain's first place: any kernel will do there
        return np.clip(places - 1, 0, len(self.transition) - 1)

    def rounded(self) -> MarkovChain:
        """The chain with its probabilities as they are published; itself where they are so."""
        transition = rounded_distributions(self.transition)
        same = np.array_equal(transition, self.transition)
        start: Floats | None = None  # that of a stationary chain follows from its kernel
        if not self.is_stationary:
            # of order m, the start is one distribution of m records
            start = rounded_distributions(self.start.ravel()).reshape(self.start.shape)
            same = same and np.array_equal(start, self.start)
        if same:
            return self
        return MarkovChain(transition, start, self.labels, self.order, self.learned)

    # ---- distributions; records count from 1

    def marginal(self, record: int) -> Floats:
        """(k,) distribution of one record."""
        return np.asarray(self.marginals(record, record)[0])

    def marginals(self, first: int, last: int) -> Floats:
        """(last − first + 1, k) distributions of the records first … last; O((last − first)·k²)
        beyond the first.
        """
        self._check_record(first)
        self._check_record(last)
        count = last - first + 1
        if self.order > 1:
            return self._record_marginals(first, last)
        if self.is_stationary:
            return np.broadcast_to(self.start, (count, self.k))
        if not self.is_homogeneous:
            return np.asarray(self._all_marginals[first - 1 : last])
        rows = np.empty((count, self.k))
        rows[0] = self.start @ np.linalg.matrix_power(self.transition, first - 1)
        for i in range(1, count):
            rows[i] = rows[i - 1] @ self.transition
        return rows

    def _record_marginals(self, first: int, last: int) -> Floats:
        """Of single records, from those of the tuples that end (or, for the first few, stand) at
        them.
        """
        ends = np.clip(np.arange(first, last + 1), self.order, None)
        tuples = self.lifted.marginals(
            int(ends[0]) - self.order + 1, int(ends[-1]) - self.order + 1
        )
        rows = np.zeros((len(ends), self.k))
        for i, end in enumerate(ends):
            place = self.coordinate(first + i - int(end) + self.order - 1)
            rows[i] = np.bincount(place, weights=tuples[int(end) - int(ends[0])], minlength=self.k)
        return rows

    @cached_property
    def _all_marginals(self) -> Floats:
        rows = np.empty((len(self.transition) + 1, self.k))
        rows[0] = self.start
        for i, kernel in enumerate(self.transition):
            rows[i + 1] = rows[i] @ kernel
        return rows

    def support(self, record: int) -> NDArray[np.bool_]:
        """(k,) the values a record can take, however unlikely: from the zeros of start and kernels,
        so nothing underflows.
        """
        self._check_record(record)
        if self.order > 1:
            end = max(record, self.order)
            tuples = self.lifted.support(end - self.order + 1)
            place = self.coordinate(record - end + self.order - 1)
            return np.bincount(place[tuples], minlength=self.k) > 0
        reached = self.start > 0
        if self.is_stationary:
            return reached
        if not self.is_homogeneous:
            return np.asarray(self._all_supports[record - 1])
        steps, base = record - 1, self.transition > 0
        while steps:
            if steps & 1:
                reached = reached @ base
            base = base @ base
            steps >>= 1
        return np.asarray(reached)

    def _supports(self, first: int, last: int) -> NDArray[np.bool_]:
        """(last − first + 1, k) the values that the records first … last can take."""
        if not self.is_homogeneous:
            return np.asarray(self._all_supports[first - 1 : last])
        rows = np.empty((last - first + 1, self.k), dtype=bool)
        rows[0], base = self.support(first), self.transition > 0
        for i in range(1, len(rows)):
            rows[i] = rows[i - 1] @ base
        return rows

    @cached_property
    def _all_supports(self) -> NDArray[np.bool_]:
        rows = np.empty((len(self.transition) + 1, self.k), dtype=bool)
        rows[0] = self.start > 0
        for i, kernel in enumerate(self.transition):
            rows[i + 1] = rows[i] @ (kernel > 0)
        return rows

    def kernel(self, record: int) -> Floats:
        """(k, k) Pr(X_{record+1} = j | X_record = i)."""
        self._check_record(record)
        self._first_order()
        return self.transition if self.is_homogeneous else self.transition[record - 1]

    def reversed_kernel(self, record: int) -> Floats:
        """(k, k) Pr(X_{record−1} = i | X_record = j), by Bayes; the row of a value that never
        occurs is 0 (F7).
        """
        self._first_order()
        if self.is_stationary:
            return self._stationary_reverse
        return np.asarray(self.kernels(record, record - 1)[0])

    @cached_property
    def _stationary_reverse(self) -> Floats:
        if self.k == 2:
            return self.transition  # two-state stationary chains are their own reverse
        return _bayes(self.start, self.transition, self.start)

    def n_step(self, source: int, target: int) -> Floats:
        """(k, k) Pr(X_target = j | X_source = i), forwards or backwards in time."""
        self._check_record(source)
        self._check_record(target)
        kernels = self.kernels(source, target)
        if len(kernels) == 1 and abs(target - source) > 1:
            return np.linalg.matrix_power(kernels[0], abs(target - source))
        product = np.eye(self.k)
        for kernel in kernels:
            product = product @ kernel
        return product

    def kernels(self, source: int, target: int) -> Floats:
        """The kernels met when walking from source to target: (1, k, k) if all are the same, else
        (|target − source|, k, k).
        """
        self._first_order()
        steps = abs(target - source)
        if steps == 0:
            return np.empty((0, self.k, self.k))
        if target > source:
            if self.is_homogeneous:
                return self.transition[np.newaxis]
            return self.transition[source - 1 : target - 1]
        if self.is_stationary:
            return self._stationary_reverse[np.newaxis]
        marginals = self.marginals(target, source)
        if np.any((marginals < _SMALLEST) & self._supports(target, source)):
            raise InputError(
                f"a value that is taken with probability below {_SMALLEST:g} makes walks to the"
                " left inexact"
            )
        walked = np.empty((steps, self.k, self.k))
        for i in range(steps):
            record = source - i
            before, here = marginals[record - 1 - target], marginals[record - target]
            walked[i] = _bayes(before, self.kernel(record - 1), here)
        return walked

    def can_follow(self, first: int, second: int) -> NDArray[np.bool_]:
        """(k, k) whether X_second = j is possible after X_first = i, first ≤ second: from the zeros
        of kernels alone.
        """
        reached, steps = np.eye(self.k, dtype=bool), second - first
        kernels = self.kernels(first, second) > 0
        if len(kernels) != 1:
            for kernel in kernels:
                reached = reached @ kernel
            return reached
        base = kernels[0]
        while steps:
            if steps & 1:
                reached = reached @ base
            base = base @ base
            steps >>= 1
        return reached

    def _first_order(self) -> None:
        if self.order > 1:
            raise InputError(
                f"a chain of order {self.order} has kernels on tuples: ask its .lifted chain"
            )

    def joint(self, first: int, second: int) -> Floats:
        """(k, k) Pr(X_first = i, X_second = j) for first < second, of any order."""
        lifted, order = self.lifted, self.order
        begin, end = max(first, order), max(second, order)
        tuples = lifted.marginal(begin - order + 1)
        rows = np.zeros((self.k, len(tuples)))
        place = self.coordinate(first - begin + order - 1)
        rows[place, np.arange(len(tuples))] = tuples
        possible = (place == np.arange(self.k)[:, np.newaxis]) & lifted.support(begin - order + 1)
        if end > begin:
            rows = rows @ lifted.n_step(begin - order + 1, end - order + 1)
            possible = possible @ lifted.can_follow(begin - order + 1, end - order + 1)
        place = self.coordinate(second - end + order - 1)
        both: Floats = np.stack([np.bincount(place, weights=row, minlength=self.k) for row in rows])
        if np.any(
            (both < _SMALLEST)
            & np.stack([np.bincount(place[row], minlength=self.k) > 0 for row in possible])
        ):
            raise InputError(
                f"values that occur together with probability below {_SMALLEST:g} are too rare to"
                " compute with"
            )
        return both

    def _check_record(self, record: int) -> None:
        if record < 1:
            raise InputError(f"records count from 1, got record {record}")
        if self.length is not None and record > self.length:
            raise InputError(f"this chain has {self.length} records, got record {record}")

    # ---- model files

    def with_learned(self, learned: Learned) -> MarkovChain:
        """The same chain, with what it was learned from."""
        known = copy(self)
        object.__setattr__(known, "learned", learned)
        return known

    def to_dict(self) -> dict[str, Any]:
        """What the chain is, as model files, policies, designs and certificates hold it."""
        implied = self.is_homogeneous and self._start_is_implied
        return {
            "format": "offrecord-model",
            "version": MODEL_VERSION,
            "order": self.order,
            "labels": list(self.labels),
            "transition": self.transition.tolist(),
            "start": None if implied else self.start.tolist(),
        }

    @cached_property
    def _start_is_implied(self) -> bool:
        try:
            lifted = self.lifted
            return bool(np.array_equal(stationary_distribution(lifted.transition), lifted.start))
        except InputError:
            return False

    @classmethod
    def from_dict(cls, content: Any) -> MarkovChain:
        """The chain of a model file's content; InputError for another format or version."""
        content = checked_content(content, "model", MODEL_VERSION, ("transition", "labels"))
        if content.get("phase") is not None:
            raise InputError(
                'the model has a kernel for each phase ("phase"), not one chain: read it with'
                " load_model"
            )
        if not isinstance(content["labels"], list):
            raise InputError('model file: "labels" must be a list')
        learned = learned_of(content)
        return cls(
            content["transition"],
            content.get("start"),
            content["labels"],
            content.get("order", 1),
            learned,
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a model file; complete or absent, and never over an existing one without force."""
        save_model(self.to_dict(), self.learned, path, force=force)

    @classmethod
    def load(cls, path: str | Path) -> MarkovChain:
        """Read a model file."""
        try:
            return cls.from_dict(read_json(path))
        except InputError as error:
            raise InputError(
                f"{path}: {error}" if str(path) not in str(error) else str(error)
            ) from None

    def __repr__(self) -> str:
        if self.is_paper_setting and self.labels == (0, 1):
            return f"MarkovChain.binary(alpha={self.alpha!r}, beta={self.beta!r})"
        if self.order > 1:
            return f"<MarkovChain k={self.k} order={self.order}>"
        kind = (
            "stationary"
            if self.is_stationary
            else "one kernel"
            if self.is_homogeneous
            else f"n={self.length}"
        )
        return f"<MarkovChain k={self.k} {kind}>"


def save_model(
    content: dict[str, Any], learned: Learned | None, path: str | Path, *, force: bool
) -> None:
    """Write a model file: what the model is, and what it was learned from."""
    whole = content if learned is None else {**content, "learned": learned.to_dict()}
    write_text(path, json.dumps(whole, indent=1, allow_nan=False) + "\n", force=force)


def learned_of(content: dict[str, Any]) -> Learned | None:
    """What the model of a file was learned from, where the file says so."""
    return None if content.get("learned") is None else Learned.from_dict(content["learned"])


def stationary_distribution(transition: Floats) -> Floats:
    """(k,) the unique π with π = π·P, by Grassmann–Taksar–Heyman elimination (no subtraction, so
    small entries are accurate).

    Raises InputError if there is more than one.
    """
    k = len(transition)
    members = np.arange(k)
    if np.any(transition == 0):
        from scipy.sparse.csgraph import connected_components

        count, component = connected_components(transition > 0, directed=True, connection="strong")
        closed = [
            c for c in range(count) if not np.any(transition[component == c][:, component != c] > 0)
        ]
        if len(closed) > 1:
            raise InputError(
                f"start must be given: the chain has {len(closed)} separate closed classes of"
                " values"
            )
        members = np.flatnonzero(component == closed[0])
    reduced = transition[np.ix_(members, members)]
    try:
        with np.errstate(all="raise"):
            weights = _eliminated(reduced.copy())
            if (
                not weights.min() > 1e-280
            ):  # what is lost below the smallest float is then too little to count
                raise FloatingPointError
            shares = weights / weights.sum()
    except FloatingPointError:
        shares = _eliminated_apart(reduced)
    if (
        np.any(shares < _SMALLEST) and k > 2
    ):  # two values are their own reverse, however rare one is
        raise InputError(
            "start must be given: in the long run a value is taken with probability below"
            f" {_SMALLEST:g}, too rare to compute with; or make the transitions to it 0, or"
            " likelier"
        )
    result = np.zeros(k)
    result[members] = shares
    return result


def _eliminated(reduced: Floats) -> Floats:
    """Weights in proportion to the stationary distribution, the first being 1; FloatingPointError
    if one gets too small.
    """
    for last in range(len(reduced) - 1, 0, -1):
        reduced[:last, last] /= reduced[last, :last].sum()
        reduced[:last, :last] += np.outer(reduced[:last, last], reduced[last, :last])
    weights = np.zeros(len(reduced))
    weights[0] = 1.0
    for i in range(1, len(reduced)):
        weights[i] = weights[:i] @ reduced[:i, i]
    return weights


def _eliminated_apart(reduced: Floats) -> Floats:
    """The stationary distribution by the same elimination, exponents apart from the numbers, so
    that none is too small.
    """
    parts, powers = _apart(*np.frexp(reduced))
    for last in range(len(reduced) - 1, 0, -1):
        total, power = _sum_apart(parts[last, :last], powers[last, :last])
        parts[:last, last], powers[:last, last] = _apart(
            parts[:last, last] / total, powers[:last, last] - power
        )
        through = (
            np.outer(parts[:last, last], parts[last, :last]),
            np.add.outer(powers[:last, last], powers[last, :last]),
        )
        both = [
            np.stack(pair)
            for pair in zip(
                (parts[:last, :last], powers[:last, :last]), _apart(*through), strict=True
            )
        ]
        parts[:last, :last], powers[:last, :last] = _sum_apart(*both)
    weights, scales = np.ones(len(reduced)), np.zeros(len(reduced), dtype=np.int64)
    for i in range(1, len(reduced)):
        weights[i], scales[i] = _sum_apart(
            *_apart(weights[:i] * parts[:i, i], scales[:i] + powers[:i, i])
        )
    total, power = _sum_apart(*_apart(weights, scales))
    return np.asarray(np.ldexp(weights / total, np.clip(scales - power, -5000, 5000)))


def _apart(parts: Any, powers: Any) -> tuple[Any, Any]:
    """Numbers parts·2^powers with parts from ½ to 1; 0 with a power below all others."""
    parts, more = np.frexp(parts)
    return parts, np.where(parts == 0, np.int64(-(2**60)), powers + more.astype(np.int64))


def _sum_apart(parts: Any, powers: Any) -> tuple[Any, Any]:
    """The sum over the first axis."""
    top = powers.max(axis=0)
    return _apart(np.ldexp(parts, np.maximum(powers - top, -2000)).sum(axis=0), top)


def _exactly_stationary(transition: Floats, start: Floats) -> Floats:
    """The stationary distribution where the start is that up to its last bits, else the start as
    given.
    """
    try:
        stationary = stationary_distribution(transition)
    except InputError:
        return start
    return stationary if np.all(np.abs(start - stationary) <= 2.0**-50 * stationary) else start


def _bayes(before: Floats, kernel: Floats, here: Floats) -> Floats:
    joint = before[:, np.newaxis] * kernel
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        back = np.where(here > 0, joint / here, 0.0)
        small = (joint < _SMALLEST_STEP) & (before > 0)[:, np.newaxis] & (kernel > 0) & (here > 0)
        if np.any(small):  # the product is too small for a float, the quotient need not be
            back = np.where(small, kernel * (before[:, np.newaxis] / here), back)
            if np.any(back[small] < _SMALLEST_STEP):
                raise InputError(
                    f"a step that is taken back in time with probability below {_SMALLEST_STEP:g}"
                    " makes walks to the left inexact; make transitions this rare 0, or likelier"
                )
    return np.ascontiguousarray(back.T)


def _numbers(name: str, value: ArrayLike) -> Floats:
    try:
        array = np.array(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numbers in rows of equal length") from None
    if array.dtype.kind not in "iuf":
        raise InputError(f"{name} must be numbers in rows of equal length")
    return array.astype(np.float64)


def _distributions(name: str, array: Floats) -> Floats:
    """The array with its last axis checked to be probabilities that sum to 1 within
    ROW_TOLERANCE.
    """
    if not np.all(np.isfinite(array)):
        raise InputError(f"{name} must hold finite numbers, got NaN or infinity")
    if np.any(array < 0) or np.any(array > 1 + ROW_TOLERANCE):
        raise InputError(
            f"{name} must hold probabilities between 0 and 1, got {_first_outside(array)}"
        )
    sums = array.sum(axis=-1, keepdims=True)
    wrong = np.abs(sums - 1)
    if np.any(wrong > ROW_TOLERANCE):
        where = np.unravel_index(int(np.argmax(wrong)), wrong.shape)[:-1]
        place = f" row {' of kernel '.join(str(i + 1) for i in reversed(where))}" if where else ""
        raise InputError(
            f"{name}{place} must sum to 1 within {ROW_TOLERANCE:g}, got"
            f" {float(sums[(*where, 0)]):.12g}"
        )
    return np.where(wrong > _ROUNDING, array / sums, array)


def _first_outside(array: Floats) -> float:
    return float(array[(array < 0) | (array > 1 + ROW_TOLERANCE)][0])


def _shape(array: Floats) -> str:
    return " × ".join(map(str, array.shape)) or "of a single number"


def _labels(labels: Sequence[Label] | None, k: int) -> tuple[Label, ...]:
    if labels is None:
        return tuple(range(k))
    try:
        known = tuple(_plain(label) for label in labels)
    except TypeError:
        raise InputError(f"labels must be a list of values, got {type(labels).__name__}") from None
    if len(known) != k:
        raise InputError(f"labels must name {k} values, got {len(known)}")
    if len({(isinstance(label, str), label) for label in known}) != k:
        raise InputError("labels must differ from each other")
    return known


def _plain(label: Any) -> Label:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, float) and not math.isfinite(label):
        raise InputError(f"labels must be finite, got {label}")
    if isinstance(label, str) and not label.isprintable():
        raise InputError(f"labels must be printable text, got {label!a}")
    if isinstance(label, (str, int, float, bool)):
        return label
    raise InputError(f"labels must be text, numbers or booleans, got {type(label).__name__}")


def whole_number(name: str, value: Any) -> int:
    """The value as an int; InputError for anything that is not a whole number."""
    if isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be a whole number, got {value}")
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, got {value!r}") from None
