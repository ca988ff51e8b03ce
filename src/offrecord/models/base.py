"""What every model of correlated records can answer, whatever it is inside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from offrecord.models.box import Box
    from offrecord.models.chain import MarkovChain
    from offrecord.models.clock import Clock
    from offrecord.models.learned import Learned

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Label: TypeAlias = str | int | float | bool
#: (n,) the phase of each record, from 0.
Phases: TypeAlias = NDArray[np.int8]


class Model(Protocol):
    """How the records of a chain depend on each other.

    Nobody asks which model it is: a new one answers these questions, and all else serves it.
    Records stand at places, from 0 in each chain; where the model has a clock, in phases too.
    """

    @property
    def k(self) -> int:
        """Number of values."""

    @property
    def order(self) -> int:
        """How many records the next one depends on."""

    @property
    def has_states(self) -> bool:
        """Records depend on states that are more than values, and leakage is a bound (F8)."""

    @property
    def shows(self) -> Integers | None:
        """(h,) the value that each hidden state shows; None where no state is hidden."""

    @property
    def labels(self) -> tuple[Label, ...]:
        """The k values as they appear in the data."""

    @property
    def learned(self) -> Learned | None:
        """What it was learned from, where it was."""

    @property
    def box(self) -> Box | None:
        """The set of models that the promise is for, this one among them; None: this one alone."""

    @property
    def transition(self) -> Floats:
        """(…, k, …, k) its kernels; the last `order` + 1 axes are one kernel, its values last.

        (h, h) where h states are hidden.
        """

    @property
    def length(self) -> int | None:
        """The only number of records it serves; None for any."""

    @property
    def is_stationary(self) -> bool:
        """Wherever a secret stands, only how many records lie on each side of it matters."""

    @property
    def clock(self) -> Clock | None:
        """What tells the phases of records; None where it has no phases."""

    def along(self, phases: Integers | None = None) -> MarkovChain:
        """The chain of records that stand in these phases; without a clock, of all records."""

    def masses(self, places: Integers, phases: Phases | None = None) -> Floats:
        """How likely each value of records is: (k,) if the same for all, else (n, k)."""

    def contexts(self, places: Integers, phases: Phases | None = None) -> Integers | Phases | None:
        """(n,) which kernel the step into each record uses; None where there is only one.

        Records are those of whole chains; what is said of a chain's first record means nothing.
        """

    def rounded(self) -> Self:
        """The model with its probabilities as they are published; itself where they are so."""

    def with_learned(self, learned: Learned) -> Self:
        """The same model, with what it was learned from."""

    def with_box(self, box: Box | None) -> Self:
        """The same model, in another set of models."""

    def to_dict(self) -> dict[str, Any]:
        """What the model is, as model files, designs and certificates hold it."""

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a model file; complete or absent, and never over an existing one without force."""
