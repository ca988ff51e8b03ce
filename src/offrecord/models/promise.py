"""For which chains a promise holds: those that data leave plausible, or a list of known ones."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from offrecord.errors import InputError
from offrecord.models.base import Label
from offrecord.models.members import Members, Places

if TYPE_CHECKING:
    from offrecord.models.chain import MarkovChain
    from offrecord.models.file import PromiseForm


class Acceptance(NamedTuple):
    """How draws decide whether a promise is kept.

    drawn: how many chains are drawn. publisher, verifier: how many of them may exceed ε.
    quantile: of the members' windows, which a table's window takes.
    """

    drawn: int
    publisher: int
    verifier: int
    quantile: float


#: By coverage. A design that fails in more than 1 - coverage of all chains passes the verifier with
#: probability at most 0.001; one that the publisher accepts passes with about 0.999.
ACCEPTANCE = {0.99: Acceptance(8000, 20, 53, 0.997), 0.95: Acceptance(2000, 40, 70, 0.985)}


class Promise(ABC):
    """The chains that a promise is for, and how many of them it must hold in.

    coverage: 0.99 or 0.95 of the chains that are drawn from a posterior; None: all of a list.
    """

    coverage: float | None

    @property
    @abstractmethod
    def labels(self) -> tuple[Label, ...]:
        """The k values as they appear in the data."""

    @property
    @abstractmethod
    def order(self) -> int:
        """How many records the next one depends on."""

    @property
    @abstractmethod
    def places(self) -> Places | None:
        """Which places make a difference."""

    @property
    @abstractmethod
    def mean(self) -> Members:
        """The one chain (M = 1) that utility is computed under."""

    @property
    def chain(self) -> MarkovChain:
        """The mean chain as one known chain, for problems without a table.

        Raises:
            InputError: Where kernels depend on the place, or the chain has a start of its own.
        """
        from offrecord.models.chain import MarkovChain

        mean = self.mean
        if mean.places is not None or mean.first is not None:
            raise InputError("chains whose kernels depend on the place have no single kernel")
        rows = mean.rows.reshape((self.k,) * (self.order + 1))
        return MarkovChain(rows, None, self.labels, self.order)

    @abstractmethod
    def members(self, count: int, seed: bytes | int) -> Members:
        """`count` plausible chains; of a list, all of it, whatever the count and the seed."""

    @abstractmethod
    def form(self) -> PromiseForm:
        """What model files and certificates hold of it: all that draws depend on."""

    def to_dict(self) -> dict[str, Any]:
        """The content of `form`."""
        return self.form().to_dict()

    def seed(self, epsilon: float, purpose: str) -> bytes:
        """Seed of the publisher's draws for a purpose such as "design" or "validate-0".

        The same chains and ε give the same seed. A verifier uses seeds of its own.
        """
        content = json.dumps([self.to_dict(), epsilon, purpose], sort_keys=True, allow_nan=False)
        return hashlib.sha256(content.encode()).digest()

    @property
    def k(self) -> int:
        """Number of values."""
        return len(self.labels)

    @property
    def acceptance(self) -> Acceptance | None:
        """None for a list, of which every member must keep ε."""
        return None if self.coverage is None else ACCEPTANCE[self.coverage]
