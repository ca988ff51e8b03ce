"""The certificate's model: as in model files, and what is known of how well it fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from offrecord.release.certificate.form import (
    MAX_COUNT,
    Count,
    Entry,
    Number,
    Probability,
    Section,
    Text,
    Texts,
    Truth,
    array,
    label,
    listed,
    number,
    number_or_infinite,
    optional,
    probability,
    refused,
    signed_number,
    text,
    truth,
    whole,
    word,
)

#: How many phases there are of each kind: hours from midnight, weekdays from Monday, months from
#: January. A record's phase decides the step out of it.
PHASES = {"hour": 24, "weekday": 7, "month": 12}
MAX_STATES = 1024  #: that a model has at most, hidden or not
#: Rows of probabilities must sum to 1 within this much.
ROW_TOLERANCE = 1e-9
OptionalText = Annotated[str | None, optional(text)]


#: What may be known of how chains begin, and by which intervals a set was learned.
STARTS = "stationary", "settled", "any"
INTERVALS = "clopper-pearson", "mixture"
LATEST = 1_000  #: record of a chain from which on a set may hold


@dataclass(frozen=True, kw_only=True)
class ModelSet(Section):
    """A set of models: the least and the largest value of every one-step probability, forwards and
    backwards in time, each shaped as the model's transition.

    since: the record of a chain, counted from 1, from which on it holds backwards.
    """

    rare: ClassVar[tuple[str, ...]] = ("since",)

    kind: Annotated[str, word("box")] = "box"
    confidence: Annotated[float | None, optional(probability)]
    interval: Annotated[str | None, optional(word(*INTERVALS))]
    start: Annotated[str, word(*STARTS)]
    forward: Annotated[Sequence[Any], listed(array, 2)]
    backward: Annotated[Sequence[Any], listed(array, 2)]
    since: Annotated[int, whole(2, LATEST)] = 1

    def check(self, model: Model) -> None:
        """InputError unless they are intervals that rows of probabilities can lie in, and the
        model's own do.
        """
        if self.confidence in (0.0, 1.0):
            raise refused("model.set.confidence", "must lie between 0 and 1")
        shape = _shape(model.transition)
        for name, (low, high) in (("forward", self.forward), ("backward", self.backward)):
            place = f"model.set.{name}"
            if _shape(low) != shape or _shape(high) != shape:
                raise refused(place, f"must be two lists with axes {_axes(shape)}")
            if any(a > b for a, b in zip(_flat(low), _flat(high), strict=True)):
                raise refused(place, "must have each least probability no larger than the largest")
            sums = zip(_sums(low, None), _sums(high, None), strict=True)
            if any(a > 1.0 + ROW_TOLERANCE or b < 1.0 - ROW_TOLERANCE for a, b in sums):
                raise refused(place, "must have rows that can sum to 1")
        inside = zip(
            _flat(self.forward[0]), _flat(model.transition), _flat(self.forward[1]), strict=True
        )
        if any(not a - ROW_TOLERANCE <= p <= b + ROW_TOLERANCE for a, p, b in inside):
            raise refused("model.set.forward", "must hold the model's own transition")
        if self.start != "stationary" and (model.k, len(shape)) != (2, 2):
            raise refused("model.set.start", 'must be "stationary" for more than two values')
        plain = model.stationary and model.order == 1 and self.start == "stationary"
        if self.since > 1 and not plain:
            says = 'is for a stationary model of order 1, with start "stationary"'
            raise refused("model.set.since", says)


@dataclass(frozen=True, kw_only=True)
class Model(Section):
    """The model as in model files, with its start spelled out.

    stationary: every record has the same distribution, and start is the solution of start =
    start·transition, rounded. shows: the value (from 0) of each hidden state, where states are
    hidden; transition and start are then on states. set: the models that the promise is for, this
    one among them; None: it alone.
    """

    format: Annotated[str, word("offrecord-model")] = "offrecord-model"
    version: Annotated[int, whole(1, 1)] = 1
    order: Annotated[int, whole(1, 10)]
    phase: Annotated[str | None, optional(word(*PHASES))] = None
    zone: OptionalText = None
    labels: Annotated[Sequence[str | int | float | bool], listed(label)]
    shows: Annotated[Sequence[int] | None, optional(listed(whole(0, MAX_STATES - 1)))] = None
    transition: Annotated[Sequence[Any], array]
    start: Annotated[Sequence[Any], array]
    stationary: Truth
    set: Annotated[ModelSet | None, optional(ModelSet.read)] = None

    @property
    def k(self) -> int:
        """Number of values."""
        return len(self.labels)

    @property
    def states(self) -> int:
        """Number of states: of values, unless more of them are hidden."""
        return self.k if self.shows is None else len(self.shows)

    @property
    def phase_count(self) -> int | None:
        """How many phases there are, None for a model without them."""
        return None if self.phase is None else PHASES[self.phase]

    def check(self) -> None:
        """InputError unless its parts go together."""
        different = {(isinstance(one, str), one) for one in self.labels}
        if self.k < 2 or len(different) < self.k:
            raise refused("model.labels", "must be two or more different values")
        self._check_shows()
        self._check_shapes()
        per_start = 1 if self.phase is None else PHASES[self.phase]
        for name, numbers, rows in (
            ("transition", self.transition, None),
            ("start", self.start, per_start),
        ):
            if any(abs(total - 1.0) > ROW_TOLERANCE for total in _sums(numbers, rows)):
                raise refused(f"model.{name}", f"must sum to 1 within {ROW_TOLERANCE:g}")
        if self.set is not None:
            self.set.check(self)

    def _check_shows(self) -> None:
        if self.shows is None:
            return
        if self.order != 1 or self.phase is not None or self.set is not None:
            raise refused("model.shows", "must not stand beside order above 1, phases or a set")
        if set(self.shows) != set(range(self.k)) or self.states == self.k:
            raise refused("model.shows", "must name every value, and one of them more than once")

    def _check_shapes(self) -> None:
        k, phases = self.states, self.phase_count
        if phases is not None and self.order != 1:
            raise refused("model.order", f"must be 1 for a model with phases, got {self.order}")
        one = (k,) * (self.order + 1)
        kernels, starts = (one, one[1:]) if phases is None else ((phases, k, k), (phases, k))
        shape = _shape(self.transition)
        a_kernel_each_step = self._may_have_steps and shape[1:] == one
        if shape != kernels and not (a_kernel_each_step and shape[0] > 0):
            raise refused("model.transition", f"must have axes {_axes(kernels)}")
        if _shape(self.start) != starts:
            raise refused("model.start", f"must have axes {_axes(starts)}")
        if self.stationary and (phases is not None or self.length is not None):
            raise refused("model.stationary", "must be false where steps are not all alike")

    @property
    def length(self) -> int | None:
        """The only number of records that a model with a kernel for each step can serve."""
        several = self._may_have_steps and len(_shape(self.transition)) == 3
        return len(self.transition) + 1 if several else None

    @property
    def _may_have_steps(self) -> bool:
        """Whether it may have a kernel for each step."""
        return self.phase is None and self.order == 1 and self.shows is None


def _shape(numbers: Any) -> tuple[int, ...]:
    """The shape of lists of lists; (−1,) where they are not of equal length."""
    if not isinstance(numbers, tuple):
        return ()
    shapes = set(map(_shape, numbers))
    if len(shapes) > 1 or (-1,) in shapes:
        return (-1,)
    return (len(numbers), *next(iter(shapes), ()))


def _flat(numbers: Any) -> list[float]:
    """The numbers in lists of lists, one after the other."""
    if numbers and isinstance(numbers[0], tuple):
        return [number for row in numbers for number in _flat(row)]
    return list(numbers)


def _axes(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))


def _sums(numbers: Any, groups: int | None) -> list[float]:
    """The sum of each innermost list; groups: how many sums there are, if those lists are parts of
    longer distributions.
    """
    rows = [numbers]
    while isinstance(rows[0][0], tuple):
        rows = [row for several in rows for row in several]
    size = 1 if groups is None else len(rows) // groups
    return [
        math.fsum(p for row in rows[at : at + size] for p in row)
        for at in range(0, len(rows), size)
    ]


@dataclass(frozen=True, kw_only=True)
class Audit(Section):
    """Whether the promise of the model's designs held in data that it was not learned from.

    odds: as counted where they exceed what was promised most, at_least: their lower limit,
    promised: for the designs' epsilon. kind, where: what tells. chance: chance does as much.
    """

    verdict: Annotated[str, word("good", "doubtful", "unfit")]
    odds: Annotated[float, number_or_infinite]
    at_least: Number
    promised: Number
    epsilon: Number
    kind: Text
    where: Text
    chance: Truth
    held_back: Text
    looked_at: Texts
    closed: Annotated[Sequence[float], listed(number)]


def _share(entry: Entry) -> float:
    """A number above 0, at most 1."""
    if probability(entry) == 0:
        raise entry.refused("a number above 0, at most 1")
    return probability(entry)


@dataclass(frozen=True, kw_only=True)
class Learned(Section):
    """What the model was learned from, in its own words.

    audit: None where nobody looked. calibration: what was enlarged until the audit passed, which is
    empirical. share: of the claim's ε that designs are made for then. distance: where it was
    learned from the released table itself, how many steps from every private record at least. unit:
    that order values were counted in, where they are decimals. bins: where numbers were cut into
    values. others: what all values are called that were too rare to be learned.
    """

    value: Text
    order: Text
    step: OptionalText
    zone: OptionalText
    spacing: Annotated[float | None, optional(number)]
    verdict: Text
    audit: Annotated[Audit | None, optional(Audit.read)]
    calibration: OptionalText
    share: Annotated[float, _share]
    distance: Annotated[int | None, optional(whole(1, MAX_COUNT))]
    unit: OptionalText = None
    bins: Annotated[Sequence[float] | None, optional(listed(signed_number))] = None
    others: OptionalText = None


@dataclass(frozen=True, kw_only=True)
class ModelComparison(Section):
    """What released transitions say about the model. leakage: the largest of a design by the
    table's own transitions; None where that was not computed.
    """

    transitions: Count
    impossible: Count
    statistic: Annotated[float, number_or_infinite]
    degrees: Count
    p_value: Probability
    waste: Annotated[float, number_or_infinite]
    leakage: Annotated[float | None, optional(number_or_infinite)]
    significance: Probability


@dataclass(frozen=True, kw_only=True)
class ModelCheck(Section):
    """Whether the table follows the model. unseen: it was learned from no record that is not
    released for certain; None where that is not known. compared: None where nothing was. accepted:
    what speaks against the model, and was accepted.
    """

    unseen: Annotated[bool | None, optional(truth)]
    compared: Annotated[ModelComparison | None, optional(ModelComparison.read)]
    accepted: Texts
