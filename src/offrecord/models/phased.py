"""PhasedChain: a chain whose kernel depends on the hour, the day of the week or the month."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offrecord.errors import InputError
from offrecord.files import read_json
from offrecord.models.base import Floats, Integers, Label, Phases
from offrecord.models.box import Box
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import (
    check_value_count,
    checked_labels,
    distributions,
    numbers,
    shape_text,
)
from offrecord.models.clock import Clock, phase_count
from offrecord.models.files import (
    HEAD,
    box_of,
    labels_of,
    learned_of,
    model_content,
    save_model,
    set_content,
)
from offrecord.models.learned import Learned
from offrecord.models.published_rounding import rounded_distributions


@dataclass(frozen=True, eq=False, init=False, repr=False)
class PhasedChain:
    """A first-order chain with a kernel for each phase: a record's phase decides the step after it.

    transition: (P, k, k). start: (P, k), the distribution of a record in each phase. labels: the k
    values as they appear in the data. zone: the time zone in which phases are told, without it that
    of times as they stand. learned, box: as in MarkovChain, with a box for each phase.

    Raises InputError for anything that is not such a chain.
    """

    phase: str
    transition: Floats
    start: Floats
    labels: tuple[Label, ...]
    zone: str | None
    learned: Learned | None
    box: Box | None

    def __init__(
        self,
        phase: str,
        transition: ArrayLike,
        start: ArrayLike,
        labels: Sequence[Label] | None = None,
        zone: str | None = None,
        learned: Learned | None = None,
        box: Box | None = None,
    ) -> None:
        kernels = _checked_kernels(phase, transition)
        k = kernels.shape[-1]
        starts = _checked_starts(phase, start, k)
        if zone is not None and not isinstance(zone, str):
            raise InputError(f"zone must be the name of a time zone, got {type(zone).__name__}")
        kernels, starts = distributions("transition", kernels), distributions("start", starts)
        kernels.setflags(write=False)
        starts.setflags(write=False)
        object.__setattr__(self, "phase", phase)
        object.__setattr__(self, "transition", kernels)
        object.__setattr__(self, "start", starts)
        object.__setattr__(self, "labels", checked_labels(labels, k))
        object.__setattr__(self, "zone", zone)
        object.__setattr__(self, "learned", learned)
        self._set_box(box)

    def _set_box(self, box: Box | None) -> None:
        """InputError for a set of other models."""
        if box is not None:
            if (box.k, box.order, box.by_step) != (self.k, 1, len(self.transition)):
                raise InputError(
                    f"the set of models must hold {len(self.transition)} boxes for {self.k} values,"
                    f" one for each {self.phase}"
                )
            box.check_holds("transition", self.transition)
        object.__setattr__(self, "box", box)

    @property
    def k(self) -> int:
        """Number of values."""
        return int(self.transition.shape[-1])

    @property
    def order(self) -> int:
        """How many records the next one depends on."""
        return 1

    @property
    def has_states(self) -> bool:
        """False: its states are its values."""
        return False

    @property
    def shows(self) -> None:
        """None: no state is hidden."""
        return None

    @property
    def length(self) -> None:
        """None: it serves any number of records."""
        return None

    @property
    def is_stationary(self) -> bool:
        """False: the phase in which a secret stands matters."""
        return False

    @property
    def clock(self) -> Clock:
        """What tells the phases of records."""
        return Clock(self.phase, self.zone)

    def along(self, phases: ArrayLike | None = None) -> MarkovChain:
        """The chain of records that stand in these phases, one step apart; phases: (n,) from 0."""
        if phases is None:
            raise InputError(f"a chain by {self.phase} needs the phases of its records")
        known = checked_phases(phases, self.phase)
        if len(known) == 0:
            raise InputError("phases must name at least one record's phase, got none")
        if len(known) == 1:  # a lone record takes no step: any kernel serves
            return MarkovChain(self.transition[known[0]], self.start[known[0]], self.labels)
        chain = MarkovChain(self.transition[known[:-1]], self.start[known[0]], self.labels)
        return chain if self.box is None else chain.with_box(self.box.along(known))

    def masses(self, places: Integers, phases: Phases | None = None) -> Floats:
        """(n, k) how likely each value of records in these phases is."""
        assert phases is not None
        return self.start[phases]

    def contexts(self, places: Integers, phases: Phases | None = None) -> Phases:
        """(n,) the phase of the record before each: it decides the step out of that one."""
        assert phases is not None
        return np.roll(phases, 1)

    def rounded(self) -> PhasedChain:
        """The chain with its probabilities as they are published; itself where they are so."""
        transition, start = (
            rounded_distributions(self.transition),
            rounded_distributions(self.start),
        )
        if np.array_equal(transition, self.transition) and np.array_equal(start, self.start):
            return self
        return PhasedChain(
            self.phase, transition, start, self.labels, self.zone, self.learned, self.box
        )

    # ---- model files

    def with_learned(self, learned: Learned) -> PhasedChain:
        """The same chain, with what it was learned from."""
        known = copy(self)
        object.__setattr__(known, "learned", learned)
        return known

    def with_box(self, box: Box | None) -> PhasedChain:
        """The same chain, in another set of models; None: it is known exactly."""
        other = copy(self)
        other._set_box(box)
        return other

    def to_dict(self) -> dict[str, Any]:
        """The content of a model file."""
        return {
            **HEAD,
            "order": 1,
            "phase": self.phase,
            "zone": self.zone,
            "labels": list(self.labels),
            "transition": self.transition.tolist(),
            "start": self.start.tolist(),
            **set_content(self.box),
        }

    @classmethod
    def from_dict(cls, content: Any) -> PhasedChain:
        """The chain of a model file's content; InputError for another format or version."""
        content = model_content(content, "phase", "transition", "start", "labels")
        if content.get("order", 1) != 1:
            raise InputError(f"a model with phases must have order 1, got {content['order']!r}")
        if content.get("shows") is not None:
            raise InputError("a model with phases cannot have hidden states")
        return cls(
            content["phase"],
            content["transition"],
            content["start"],
            labels_of(content),
            content.get("zone"),
            learned_of(content),
            box_of(content),
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a model file; complete or absent, and never over an existing one without force."""
        save_model(self, path, force=force)

    @classmethod
    def load(cls, path: str | Path) -> PhasedChain:
        """Read a model file with phases."""
        content = read_json(path)
        try:
            model_content(content)
            if content.get("phase") is None:
                raise InputError('model file lacks "phase"')
            return cls.from_dict(content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def __repr__(self) -> str:
        return f"<PhasedChain k={self.k} by {self.phase}{f' in {self.zone}' if self.zone else ''}>"


def _checked_kernels(phase: str, transition: ArrayLike) -> Floats:
    count, kernels = phase_count(phase), numbers("transition", transition)
    shape = kernels.shape
    if kernels.ndim != 3 or shape[0] != count or shape[1] != shape[2] or shape[2] < 2:
        raise InputError(
            f"transition by {phase} must be {count} k × k matrices with k ≥ 2, got shape"
            f" {shape_text(kernels)}"
        )
    check_value_count(shape[2])
    return kernels


def _checked_starts(phase: str, start: ArrayLike, k: int) -> Floats:
    count, starts = phase_count(phase), numbers("start", start)
    if starts.shape != (count, k):
        raise InputError(
            f"start by {phase} must hold {count} rows of {k} probabilities, got shape"
            f" {shape_text(starts)}"
        )
    return starts


def checked_phases(phases: ArrayLike, phase: str) -> NDArray[np.integer[Any]]:
    """The phases as whole numbers from 0; InputError for anything else."""
    known, count = np.asarray(phases), phase_count(phase)
    if known.ndim != 1 or (known.size and known.dtype.kind not in "iu"):
        raise InputError("phases must be whole numbers in one row")
    if known.size and not (known.min() >= 0 and known.max() < count):
        raise InputError(
            f"phases by {phase} must be from 0 to {count - 1}, got {known.min()} to {known.max()}"
        )
    return known if known.size else np.empty(0, dtype=np.int64)
