"""MarkovChain: the model of how records depend on each other (paper, Sec. II)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offrecord.errors import InputError, renamed
from offrecord.files import read_json
from offrecord.models.base import Floats, Integers, Label, Model, Phases
from offrecord.models.box import Box
from offrecord.models.checking import (
    checked_kernels,
    checked_labels,
    checked_order,
    checked_probability,
    checked_shows,
    checked_start,
)
from offrecord.models.files import (
    HEAD,
    box_of,
    labels_of,
    learned_of,
    model_content,
    save_model,
    set_content,
)
from offrecord.models.hidden import shown_masses, without_needless_states
from offrecord.models.learned import Learned
from offrecord.models.lifted import coordinate, lifted_kernel, unlifted_back
from offrecord.models.published_rounding import rounded_distributions
from offrecord.models.stationary import RAREST, settled, stationary_distribution
from offrecord.models.walks import pattern_power, step_back, walked


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MarkovChain:
    """A chain on k values, of order 1 unless said otherwise.

    transition: (k, k), one kernel for every step, or (n − 1, k, k), the kernel from record t to
    t + 1 for each t.
    start: (k,), the distribution of record 1; without it, the one kernel's stationary one.
    labels: the k values as they appear in the data; 0 … k − 1 without it.
    order: how many records the next one depends on. For order m > 1, transition has m + 1 axes of
    k, the next record's last, and start m axes, the distribution of the first m records. `lifted`
    is the same chain on m-tuples (F8).
    shows: for a chain on h states that nobody sees, which of the k values a record shows in each;
    transition is then (h, h), start (h,), both on states, and order is 1. Several states may show
    the same value: regimes. `lifted` is the plain chain on the states.
    learned: what it was learned from, where it was; no part of the chain itself.
    box: a set of models that holds this one; problems about the chain then promise for all of them.

    Raises InputError for anything that is not such a chain, or has no start and several stationary
    distributions.
    """

    transition: Floats
    start: Floats
    labels: tuple[Label, ...]
    order: int
    shows: Integers | None
    learned: Learned | None
    box: Box | None

    def __init__(
        self,
        transition: ArrayLike,
        start: ArrayLike | None = None,
        labels: Sequence[Label] | None = None,
        order: int = 1,
        learned: Learned | None = None,
        box: Box | None = None,
        shows: ArrayLike | None = None,
    ) -> None:
        order = checked_order(order)
        kernels = checked_kernels(transition, order)
        k = kernels.shape[-1]
        initial = None if start is None else checked_start(start, k, order)
        shown = None if shows is None else checked_shows(shows, kernels, order)
        if shown is not None:
            k = int(shown.max()) + 1
            kernels, initial, shown = without_needless_states(kernels, initial, shown)
        if order > 1 or shown is not None:
            lifted = lifted_kernel(kernels) if order > 1 else kernels
            self.__dict__["lifted"] = MarkovChain(lifted, initial)
            initial = self.lifted.start.reshape(kernels.shape[1:])
        else:
            initial = _first_distribution(kernels, initial)
        kernels.setflags(write=False)
        initial.setflags(write=False)
        object.__setattr__(self, "transition", kernels)
        object.__setattr__(self, "start", initial)
        object.__setattr__(self, "labels", checked_labels(labels, k))
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "shows", shown)
        object.__setattr__(self, "learned", learned)
        self._set_box(box)

    def _set_box(self, box: Box | None) -> None:
        """InputError for a set of other models."""
        if box is not None:
            self._check_box(box)
        object.__setattr__(self, "box", box)

    def _check_box(self, box: Box) -> None:
        if not isinstance(box, Box):
            raise InputError(f"models must be a Box, got {type(box).__name__}")
        if self.shows is not None:
            raise InputError("sets of models are for chains on values, not on hidden states")
        if (box.k, box.order) != (self.k, self.order):
            raise InputError(
                f"the set of models must be for {self.k} values and order {self.order}, got"
                f" {box.k} and order {box.order}"
            )
        if box.by_step is not None and (self.is_homogeneous or box.by_step != len(self.transition)):
            steps = "one kernel" if self.is_homogeneous else f"{len(self.transition)} steps"
            raise InputError(
                f"the set of models has {box.by_step} steps with a box each, the chain {steps}"
            )
        box.check_holds("transition", self.transition)
        if self.is_stationary:  # else what lies back in time depends on the place
            box.check_holds("backward", self._lifted_reverse, back=True)

    @property
    def _lifted_reverse(self) -> Floats:
        """(k, …, k) Pr(the record before | m records in the order of time), of a stationary chain,
        the record before last; 0 after records that never occur.
        """
        reverse = self.lifted._stationary_reverse
        return reverse if self.order == 1 else unlifted_back(reverse, self.k)

    @cached_property
    def lifted(self) -> MarkovChain:
        """The first-order chain that is walked: on tuples of `order` records, or on hidden states.

        The chain itself where its states are its values.
        """
        return self

    def coordinate(self, index: int) -> Integers:
        """(states,) the value of the index-th record (from 0) in each of the lifted tuples.

        Or the value that each hidden state shows.
        """
        if self.shows is not None:
            return self.shows
        return coordinate(self.k, self.order, index)

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
    def has_states(self) -> bool:
        """Records depend on states that are more than values: tuples of them, or hidden ones.

        What is computed of leakage is then an upper bound (F8).
        """
        return self.order > 1 or self.shows is not None

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
        if self.has_states:
            return self.lifted.is_stationary
        return self.is_homogeneous and self._start_is_implied

    @cached_property
    def is_paper_setting(self) -> bool:
        """Two values, stationary, both transitions possible, and alpha and beta say all about it.

        They do not where a value stays with a probability that is lost in 1 − alpha, 1 − beta or
        their sum.
        """
        if self.has_states or self.k != 2 or not self.is_stationary:
            return False
        if not (self.alpha > 0 and self.beta > 0):
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
        if self.k != 2 or not self.is_homogeneous or self.has_states:
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
        return MarkovChain(
            transition, start, self.labels, self.order, self.learned, self.box, self.shows
        )

    # ---- distributions; records count from 1

    def marginal(self, record: int) -> Floats:
        """(k,) distribution of one record."""
        return np.asarray(self.marginals(record, record)[0])

    def marginals(self, first: int, last: int) -> Floats:
        """(last − first + 1, k) distributions of the records first … last."""
        self._check_record(first)
        self._check_record(last)
        count = last - first + 1
        if self.shows is not None:
            return shown_masses(self.lifted.marginals(first, last), self.shows, self.k)
        if self.order > 1:
            return self._record_marginals(first, last)
        if self.is_stationary:
            return np.broadcast_to(self.start, (count, self.k))
        if not self.is_homogeneous:
            return np.asarray(self._all_marginals[first - 1 : last])
        row = self.start @ np.linalg.matrix_power(self.transition, first - 1)
        return walked(row, self.transition[np.newaxis], count)

    def _record_marginals(self, first: int, last: int) -> Floats:
        """Of single records, from those of the tuples that end at them."""
        # the first few records end no tuple: they are told from the first tuple, in which they
        # stand further in front
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
        return walked(self.start, self.transition, len(self.transition) + 1)

    def support(self, record: int) -> NDArray[np.bool_]:
        """(k,) the values a record can take, however unlikely: nothing underflows."""
        self._check_record(record)
        if self.has_states:
            end = max(record, self.order)
            tuples = self.lifted.support(end - self.order + 1)
            place = self.coordinate(record - end + self.order - 1)
            return np.bincount(place[tuples], minlength=self.k) > 0
        if self.is_stationary:
            return self.start > 0
        if not self.is_homogeneous:
            return np.asarray(self._all_supports[record - 1])
        return np.asarray((self.start > 0) @ pattern_power(self.transition > 0, record - 1))

    def _supports(self, first: int, last: int) -> NDArray[np.bool_]:
        """(last − first + 1, k) the values that the records first … last can take."""
        if not self.is_homogeneous:
            return np.asarray(self._all_supports[first - 1 : last])
        pattern = self.transition[np.newaxis] > 0
        return walked(self.support(first), pattern, last - first + 1)

    @cached_property
    def _all_supports(self) -> NDArray[np.bool_]:
        return walked(self.start > 0, self.transition > 0, len(self.transition) + 1)

    def kernel(self, record: int) -> Floats:
        """(k, k) Pr(X_{record+1} = j | X_record = i)."""
        self._check_record(record)
        self._first_order()
        return self.transition if self.is_homogeneous else self.transition[record - 1]

    def reversed_kernel(self, record: int) -> Floats:
        """(k, k) Pr(X_{record−1} = i | X_record = j) in row j; 0 if j never occurs (F7)."""
        self._first_order()
        if self.is_stationary:
            return self._stationary_reverse
        return np.asarray(self.kernels(record, record - 1)[0])

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
        if len(kernels) == 1 and abs(target - source) > 1:
            return np.linalg.matrix_power(kernels[0], abs(target - source))
        product = np.eye(self.k)
        for kernel in kernels:
            product = product @ kernel
        return product

    def kernels(self, source: int, target: int) -> Floats:
        """The kernels met on the way from source to target, forwards or backwards in time.

        (1, k, k) if all are the same, else (|target − source|, k, k).
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
        return self._kernels_back(source, target)

    def _kernels_back(self, source: int, target: int) -> Floats:
        """(source − target, k, k) the kernels back in time of a chain that is not stationary."""
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

    def can_follow(self, first: int, second: int) -> NDArray[np.bool_]:
        """(k, k) whether X_second = j is possible after X_first = i, first ≤ second."""
        patterns = self.kernels(first, second) > 0
        if len(patterns) == 1:
            return pattern_power(patterns[0], second - first)
        reached = np.eye(self.k, dtype=bool)
        for pattern in patterns:
            reached = reached @ pattern
        return reached

    def _first_order(self) -> None:
        if self.order > 1:
            raise InputError(
                f"a chain of order {self.order} has kernels on tuples: ask its .lifted chain"
            )
        if self.shows is not None:
            raise InputError("a chain on hidden states has kernels on these: ask its .lifted chain")

    def joint(self, first: int, second: int) -> Floats:
        """(k, k) Pr(X_first = i, X_second = j) for first < second, of any chain."""
        lifted, order = self.lifted, self.order
        # the tuples that end at both records; the first few records stand in the first tuple
        begin, end = max(first, order), max(second, order)
        source, target = begin - order + 1, end - order + 1
        place = self.coordinate(first - begin + order - 1)
        chosen = place == np.arange(self.k)[:, np.newaxis]
        weights = np.where(chosen, lifted.marginal(source), 0.0)
        possible = chosen & lifted.support(source)
        if target > source:
            weights = weights @ lifted.n_step(source, target)
            possible = possible @ lifted.can_follow(source, target)
        place = self.coordinate(second - end + order - 1)
        both: Floats = np.stack(
            [np.bincount(place, weights=row, minlength=self.k) for row in weights]
        )
        together = np.stack([np.bincount(place[row], minlength=self.k) > 0 for row in possible])
        if np.any((both < RAREST) & together):
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

    # ---- model files

    def with_learned(self, learned: Learned) -> MarkovChain:
        """The same chain, with what it was learned from."""
        known = copy(self)
        object.__setattr__(known, "learned", learned)
        return known

    def with_box(self, box: Box | None) -> MarkovChain:
        """The same chain, in another set of models; None: it is known exactly."""
        other = copy(self)
        other._set_box(box)
        return other

    @property
    def settled(self) -> MarkovChain:
        """For chains of a set, which says all that is promised of how they begin: what this one is
        once it has forgotten how it began, in the set of what is left of chains from the record on
        since which the set holds. The chain itself where it has no set, or one without the like.
        """
        box = self.box
        if box is None or self.order > 1 or not self.is_homogeneous:
            return self
        if self.is_stationary:
            return self if box.since == 1 else self.with_box(box.settled)
        later = MarkovChain(self.transition, None, self.labels, 1, self.learned)
        if box.start == "stationary" and not box.holds(later._stationary_reverse, back=True):
            return self
        return later.with_box(box.settled)

    @property
    def alone(self) -> MarkovChain:
        """The same chain as the only model."""
        return self if self.box is None else self.with_box(None)

    def to_dict(self) -> dict[str, Any]:
        """What the chain is, as model files, policies, designs and certificates hold it."""
        implied = self.is_homogeneous and self._start_is_implied
        return {
            **HEAD,
            "order": self.order,
            "labels": list(self.labels),
            **({} if self.shows is None else {"shows": self.shows.tolist()}),
            "transition": self.transition.tolist(),
            "start": None if implied else self.start.tolist(),
            **set_content(self.box),
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
        content = model_content(content, "transition", "labels")
        if content.get("phase") is not None:
            raise InputError(
                'the model has a kernel for each phase ("phase"), not one chain: read it with'
                " load_model"
            )
        return cls(
            content["transition"],
            content.get("start"),
            labels_of(content),
            content.get("order", 1),
            learned_of(content),
            box_of(content),
            content.get("shows"),
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a model file; complete or absent, and never over an existing one without force."""
        save_model(self, path, force=force)

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
        if self.shows is not None:
            return f"<MarkovChain k={self.k} states={len(self.shows)}>"
        kind = "one kernel" if self.is_homogeneous else f"n={self.length}"
        return f"<MarkovChain k={self.k} {'stationary' if self.is_stationary else kind}>"


def settled_since(model: Model) -> tuple[Model, int]:
    """A model from the record on since which its set holds, and the number of that record."""
    if not isinstance(model, MarkovChain) or model.box is None:
        return model, 1
    since = model.box.since
    return model.settled, since


def _first_distribution(kernels: Floats, start: Floats | None) -> Floats:
    """(k,) the distribution of record 1 of a first-order chain, as given or as follows."""
    if kernels.ndim == 3:
        if start is None:
            raise InputError("start must be given for a chain with one kernel per step")
        return start
    return stationary_distribution(kernels) if start is None else settled(kernels, start)
