"""For which chains a promise holds: those that data leave plausible, or a list of known ones."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field

from offrecord.errors import InputError
from offrecord.models.base import Label, Section
from offrecord.models.chain import ChainForm, MarkovChain
from offrecord.models.members import Members, Places

if TYPE_CHECKING:
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

    labels: the k values as they appear in the data. order: how many records the next one depends
    on. coverage: 0.99 or 0.95 of the chains that are drawn from a posterior; None: all of a list.
    """

    labels: tuple[Label, ...]
    order: int
    coverage: float | None

    @property
    @abstractmethod
    def mean(self) -> Members:
        """The one chain (M = 1) that utility is computed under."""

    @property
    def places(self) -> Places | None:
        """Which places make a difference."""
        return self.mean.places

    @property
    def chain(self) -> MarkovChain:
        """The mean chain as one known chain, for problems without a table.

        Raises:
            InputError: Where kernels depend on the place, or the chain has a start of its own.
        """
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
        """Seed of the publisher's draws for a purpose such as "design" or "validate-0"."""
        # The same chains and ε give the same seed. A verifier uses seeds of its own, so that it
        # draws other chains than those that rules were designed for.
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


# ---- a finite list (Song et al.'s Θ)


class KnownChains(Promise):
    """Chains that may each be the true one; a single known chain is a list of one.

    Raises InputError for an empty list and for chains of different labels, orders or lengths.
    """

    coverage: float | None = None

    def __init__(self, chains: Sequence[MarkovChain]) -> None:
        self.chains = tuple(chains)
        if not self.chains:
            raise InputError("the list of chains must hold at least one chain")
        for chain in self.chains:
            if not isinstance(chain, MarkovChain):
                raise InputError(f"the list must hold chains, got {type(chain).__name__}")
            self._check_like_first(chain)
        self.labels, self.order = self.chains[0].labels, self.chains[0].order

    def _check_like_first(self, chain: MarkovChain) -> None:
        one = self.chains[0]
        if chain.labels != one.labels:
            raise InputError(
                f"chains of one list must have the same values, got {list(one.labels)} and"
                f" {list(chain.labels)}"
            )
        if chain.order != one.order:
            raise InputError(
                f"chains of one list must have the same order, got {one.order} and {chain.order}"
            )

    @property
    def chain(self) -> MarkovChain:
        """The first of the list."""
        return self.chains[0]

    @cached_property
    def all(self) -> Members:
        """The whole list."""
        return self.of_length(None)

    def of_length(self, length: int | None) -> Members:
        """The whole list as members, of chains of this length, or of any."""
        places = self._places(length)
        return Members.joined([chain.placed(places) for chain in self.chains])

    def _places(self, length: int | None) -> Places | None:
        if all(chain.is_stationary for chain in self.chains):
            return None
        fixed = {chain.length for chain in self.chains if chain.length is not None}
        if fixed and length is None:
            length = max(fixed)
        for only in fixed - {length}:
            raise InputError(f"this chain has {only} records, got n={length}")
        count = length
        if count is None:  # as many places as the chain needs that is slowest to forget its start
            count = max(chain.steps_to_forget() for chain in self.chains)
        return Places("step", max(count, self.order), goes_on=length is None)

    @cached_property
    def mean(self) -> Members:
        """The mean of the kernels and of the starts."""
        # of one chain without a mean, which keeps what is known of its laws
        known = self.all
        if known.count == 1:
            return known
        first = None if known.first is None else known.first.mean(axis=0, keepdims=True)
        return Members(known.rows.mean(axis=0, keepdims=True), known.order, known.places, first)

    def members(self, count: int = 0, seed: bytes | int = 0) -> Members:
        """All of the list, whatever the count and the seed."""
        return self.all

    def form(self) -> ListForm:
        """What files hold of it."""
        return ListForm(kind="chains", chains=[chain.form() for chain in self.chains])

    def __repr__(self) -> str:
        return f"<KnownChains {len(self.chains)} of k={self.k} order={self.order}>"


class ListForm(Section):
    """A list of known chains in a file."""

    kind: Literal["chains"]
    chains: list[ChainForm] = Field(min_length=1)

    def promise(self) -> KnownChains:
        """The list; InputError if chains do not belong together."""
        return KnownChains([one.chain() for one in self.chains])
