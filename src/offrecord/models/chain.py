"""MarkovChain: one known chain (paper, Sec. II), of any order, with any start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from offrecord.errors import InputError
from offrecord.models.base import Floats, Label, Mask, Section
from offrecord.models.checking import (
    MAX_VALUES,
    checked_kernels,
    checked_labels,
    checked_order,
    checked_probability,
    checked_start,
)
from offrecord.models.members import Members, Places, of_value, on_contexts
from offrecord.models.stationary import (
    RAREST,
    pattern_power,
    settled,
    stationary_distribution,
    step_back,
    walked,
)

#: Relative distance from the stationary law below which a chain's start is forgotten.
_FORGOTTEN = 1e-13
#: Steps within which a start must be forgotten where the number of records is not given: laws of
#: so many places are kept.
_MOST_STEPS = 100_000


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MarkovChain:
    """A chain on k values, of order 1 unless said otherwise.

    transition: (k, k), one kernel for every step, or (n − 1, k, k), the kernel from record t to
    t + 1 for each t.
    start: (k,), the distribution of record 1; without it, the one kernel's stationary one.
    labels: the k values as they appear in the data; 0 … k − 1 without it.
    order: how many records the next one depends on. For order m > 1, transition has m + 1 axes of
    k, the next record's last, and start m axes, the distribution of the first m records.

    Raises InputError for anything that is not such a chain, or has no start and several stationary
    distributions.
    """

    transition: Floats
    start: Floats
    labels: tuple[Label, ...]
    order: int

    def __init__(
        self,
        transition: ArrayLike,
        start: ArrayLike | None = None,
        labels: Sequence[Label] | None = None,
        order: int = 1,
    ) -> None:
        order = checked_order(order)
        kernels = checked_kernels(transition, order)
        k = kernels.shape[-1]
        initial = None if start is None else checked_start(start, k, order)
        initial = _first_distribution(_on_contexts(kernels, order), initial)
        initial = initial.reshape((k,) * order)
        kernels.setflags(write=False)
        initial.setflags(write=False)
        object.__setattr__(self, "transition", kernels)
        object.__setattr__(self, "start", initial)
        object.__setattr__(self, "labels", checked_labels(labels, k))
        object.__setattr__(self, "order", order)

    @classmethod
    def binary(
        cls, alpha: float, beta: float, labels: Sequence[Label] | None = None
    ) -> MarkovChain:
        """The paper's stationary chain: P(0→1) = alpha, P(1→0) = beta, both in (0, 1]."""
        alpha = checked_probability("alpha", alpha)
        beta = checked_probability("beta", beta)
        from_zero, from_one = [1.0 - alpha, alpha], [beta, 1.0 - beta]
        if alpha + beta == 1.0:  # independent records: both rows are the same, to the last bit
            from_one = from_zero
        return cls([from_zero, from_one], labels=labels)

    # ---- what kind of chain it is

    @property
    def k(self) -> int:
        """Number of values."""
        return len(self.labels)

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
        return self.is_homogeneous and self._start_is_implied

    @cached_property
    def is_paper_setting(self) -> bool:
        """Two values, stationary, both transitions possible, and alpha and beta say all of it."""
        if self.order > 1 or self.k != 2 or not self.is_stationary:
            return False
        # Proposition 1 divides by both
        if not (self.alpha > 0 and self.beta > 0):
            return False
        if self.alpha + self.beta == 1.0:
            return bool(np.all(self.transition[0] == self.transition[1]))
        # a value may stay with a probability that is lost in 1 − alpha, 1 − beta or their sum
        stays, rest = np.diag(self.transition), np.array([1.0 - self.alpha, 1.0 - self.beta])
        return bool(np.all(np.abs(stays - rest) <= 1e-9 * stays))

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

    # ---- distributions; records count from 1

    def marginal(self, record: int) -> Floats:
        """(k,) distribution of one record."""
        return np.asarray(self.marginals(record, record)[0])

    def marginals(self, first: int, last: int) -> Floats:
        """(last − first + 1, k) distributions of the records first … last."""
        self._check_record(first)
        self._check_record(last)
        if not self.is_homogeneous:
            return np.asarray(self._all_marginals[first - 1 : last])
        if self.is_stationary:
            law = of_value(self.start.ravel(), self.k)
            return np.broadcast_to(law, (last - first + 1, self.k))
        begin, end = max(first, self.order), max(last, self.order)
        contexts = walked(self._context_law(begin), self._kernel[np.newaxis], end - begin + 1)
        # the first few records end no context: they stand further in front in the first one
        early = [of_value(contexts[0], self.k, begin - one) for one in range(first, begin)]
        found = (np.reshape(early, (-1, self.k)), of_value(contexts, self.k))
        return np.concatenate(found)[: last - first + 1]

    @cached_property
    def _kernel(self) -> Floats:
        """(S, S) the only kernel, on contexts, the tuples of the latest `order` values (F8)."""
        return _on_contexts(self.transition, self.order)

    def _context_law(self, record: int) -> Floats:
        """(S,) the law of the context that ends at a record, of a chain with one kernel."""
        if self.is_stationary:
            return self.start.ravel()
        return np.asarray(
            self.start.ravel() @ np.linalg.matrix_power(self._kernel, record - self.order)
        )

    @cached_property
    def _all_marginals(self) -> Floats:
        return walked(self.start, self.transition, len(self.transition) + 1)

    def support(self, record: int) -> Mask:
        """(k,) the values a record can take, however unlikely: nothing underflows."""
        self._check_record(record)
        if not self.is_homogeneous:
            return np.asarray(self._all_supports[record - 1])
        end = max(record, self.order)
        return np.asarray(of_value(self._context_support(end), self.k, end - record) > 0)

    def _context_support(self, record: int) -> Mask:
        """(S,) the contexts that can end at a record, of a chain with one kernel."""
        # patterns of zeros, as probabilities of late records may vanish
        steps = 0 if self.is_stationary else record - self.order
        return np.asarray((self.start.ravel() > 0) @ pattern_power(self._kernel > 0, steps))

    def _supports(self, first: int, last: int) -> Mask:
        """(last − first + 1, k) the values that the records first … last can take."""
        if not self.is_homogeneous:
            return np.asarray(self._all_supports[first - 1 : last])
        pattern = self.transition[np.newaxis] > 0
        return walked(self.support(first), pattern, last - first + 1)

    @cached_property
    def _all_supports(self) -> Mask:
        return walked(self.start > 0, self.transition > 0, len(self.transition) + 1)

    def kernel(self, record: int) -> Floats:
        """(k, k) Pr(X_{record+1} = j | X_record = i)."""
        self._check_record(record)
        self._check_first_order()
        return self.transition if self.is_homogeneous else self.transition[record - 1]

    @cached_property
    def _stationary_reverse(self) -> Floats:
        if self.k == 2:
            return self.transition  # two-state stationary chains are their own reverse
        return step_back(self.start, self.transition, self.start)

    def n_step(self, source: int, target: int) -> Floats:
        """(k, k) Pr(X_target = j | X_source = i), forwards or backwards in time."""
        self._check_record(source)
        self._check_record(target)
        kernels = self.kernels(source, target)
        if len(kernels) == 1:
            return np.linalg.matrix_power(kernels[0], abs(target - source))
        return reduce(np.matmul, kernels, np.eye(self.k))

    def kernels(self, source: int, target: int) -> Floats:
        """The kernels met on the way from source to target, forwards or backwards in time.

        (1, k, k) if all are the same, else (|target − source|, k, k).
        """
        self._check_first_order()
        steps = abs(target - source)
        if steps == 0:
            return np.empty((0, self.k, self.k))
        if target > source:
            if self.is_homogeneous:
                return self.transition[np.newaxis]
            return self.transition[source - 1 : target - 1]
        if self.is_stationary:
            return self._stationary_reverse[np.newaxis]
        return self._kernels_back(source, target)

    def _kernels_back(self, source: int, target: int) -> Floats:
        """(source − target, k, k) the kernels back in time of a chain that is not stationary."""
        # Bayes divides by these: below RAREST a quotient has no digits left (F7)
        marginals = self.marginals(target, source)
        if np.any((marginals < RAREST) & self._supports(target, source)):
            raise InputError(
                f"a value that is taken with probability below {RAREST:g} makes walks to the left"
                " inexact"
            )
        walked_back = np.empty((source - target, self.k, self.k))
        for i, record in enumerate(range(source, target, -1)):
            before, here = marginals[record - 1 - target], marginals[record - target]
            walked_back[i] = step_back(before, self.kernel(record - 1), here)
        return walked_back

    def _check_first_order(self) -> None:
        if self.order > 1:
            raise InputError(f"a chain of order {self.order} has no kernels from value to value")

    def joint(self, first: int, second: int) -> Floats:
        """(k, k) Pr(X_first = i, X_second = j), first < second, of a chain with one kernel."""
        k, begin, end = self.k, max(first, self.order), max(second, self.order)
        value = np.arange(len(self._kernel)) // k ** (begin - first) % k
        chosen, steps = value == np.arange(k)[:, np.newaxis], end - begin
        weights = np.where(chosen, self._context_law(begin), 0.0)
        weights = weights @ np.linalg.matrix_power(self._kernel, steps)
        possible = chosen & self._context_support(begin)
        possible = possible @ pattern_power(self._kernel > 0, steps)
        both: Floats = of_value(weights, k, end - second)
        if np.any((both < RAREST) & (of_value(possible, k, end - second) > 0)):
            raise InputError(
                f"values that occur together with probability below {RAREST:g} are too rare to"
                " compute with"
            )
        return both

    def _check_record(self, record: int) -> None:
        if record < 1:
            raise InputError(f"records count from 1, got record {record}")
        if self.length is not None and record > self.length:
            raise InputError(f"this chain has {self.length} records, got record {record}")

    # ---- as a list of one

    def members(self, length: int | None = None) -> Members:
        """The chain as a list of one, for everything that works on members.

        Args:
            length: number of records of each chain; None where chains have any number of them.

        Returns:
            Members without places if the chain is stationary, else with a place for each step. With
            one kernel and no length there are as many places as steps until the start is forgotten.

        Raises:
            InputError: for a length that a chain with a kernel for each step does not have, or if
                no length is given and the start is not forgotten within 100,000 steps.
        """
        from offrecord.models.promise import KnownChains

        return KnownChains([self]).of_length(length)

    def placed(self, places: Places | None) -> Members:
        """The chain as a list of one with these places; None if it is stationary."""
        rows = self.transition.reshape(1, -1, self.k**self.order, self.k)
        first = None if places is None else self.start.reshape(1, -1)
        return Members(rows, self.order, places, first)

    def steps_to_forget(self) -> int:
        """Number of records after which the law of records is the stationary one, within 1e-13.

        Raises InputError if there is no single stationary law, or the chain does not come near it.
        """
        if self.is_stationary:
            return 1
        kernel, law = self._kernel, self.start.ravel()
        try:
            stationary = stationary_distribution(kernel)
        except InputError:  # values between which the chain never moves
            raise InputError("the chain never forgets its start: no promise is possible") from None
        for count in range(self.order, _MOST_STEPS):
            # relative to each probability: rare values must be near theirs too
            if np.all(np.abs(law - stationary) <= _FORGOTTEN * stationary):
                return count
            law = law @ kernel
        raise InputError(
            f"the chain does not forget its start within {_MOST_STEPS:,} steps: give it no start,"
            " or one kernel for each step"
        )

    # ---- model files

    def form(self) -> ChainForm:
        """What files hold of it."""
        implied = self.is_homogeneous and self._start_is_implied
        return ChainForm(
            kind="chain",
            labels=list(self.labels),
            order=self.order,
            transition=self.transition.tolist(),
            start=None if implied else self.start.tolist(),
        )

    def to_dict(self) -> dict[str, Any]:
        """Content of policies."""
        return self.form().to_dict()

    @cached_property
    def _start_is_implied(self) -> bool:
        try:  # to the last bit: files leave such a start out, and it must come back
            return bool(np.array_equal(stationary_distribution(self._kernel), self.start.ravel()))
        except InputError:
            return False

    @classmethod
    def from_dict(cls, content: Any) -> MarkovChain:
        """The chain of `to_dict`; InputError for anything else."""
        return ChainForm.of(content, "chain").chain()

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a model file; complete or absent, and never over an existing one without force."""
        from offrecord.models.file import Model
        from offrecord.models.promise import KnownChains

        Model(KnownChains([self])).save(path, force=force)

    @classmethod
    def load(cls, path: str | Path) -> MarkovChain:
        """Read a model file that holds one known chain; InputError for any other."""
        from offrecord.models.file import load_model

        return load_model(path).only_chain

    def __repr__(self) -> str:
        if self.is_paper_setting and self.labels == (0, 1):
            return f"MarkovChain.binary(alpha={self.alpha!r}, beta={self.beta!r})"
        if self.order > 1:
            return f"<MarkovChain k={self.k} order={self.order}>"
        kind = "one kernel" if self.is_homogeneous else f"n={self.length}"
        return f"<MarkovChain k={self.k} {'stationary' if self.is_stationary else kind}>"


class ChainForm(Section):
    """One known chain in a file. transition: nested lists, the next record's value last."""

    kind: Literal["chain"]
    labels: list[str | bool | int | float] = Field(max_length=MAX_VALUES)
    order: int = 1
    transition: list[Any]
    start: list[Any] | None = None

    def chain(self) -> MarkovChain:
        """The chain; InputError if it cannot be one."""
        return MarkovChain(self.transition, self.start, self.labels, self.order)


def _first_distribution(kernels: Floats, start: Floats | None) -> Floats:
    """(k,) the distribution of record 1 of a first-order chain, as given or as follows."""
    if kernels.ndim == 3:
        if start is None:
            raise InputError("start must be given for a chain with one kernel per step")
        return start
    return stationary_distribution(kernels) if start is None else settled(kernels, start)


def _on_contexts(transition: Floats, order: int) -> Floats:
    """Kernels on contexts; of order 1 as they are."""
    k = transition.shape[-1]
    return transition if order == 1 else on_contexts(transition.reshape(-1, k))
