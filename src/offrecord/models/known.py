"""KnownChains: a finite list of chains, every one of which keeps the promise (Song et al.'s Θ)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

from pydantic import Field

from offrecord.errors import InputError
from offrecord.models.base import Label, Section
from offrecord.models.chain import ChainForm, MarkovChain
from offrecord.models.members import Members, Places
from offrecord.models.promise import Promise


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
    def labels(self) -> tuple[Label, ...]:
        """The k values as they appear in the data."""
        return self.chains[0].labels

    @property
    def order(self) -> int:
        """How many records the next one depends on."""
        return self.chains[0].order

    @property
    def places(self) -> Places | None:
        """A place for each step, unless all chains are stationary."""
        return self.all.places

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
        if length is None and not all(chain.is_stationary for chain in self.chains):
            return self._with_starts()
        if length is not None and all(chain.is_stationary for chain in self.chains):
            length = None
        return Members.joined([self._placed(chain, length) for chain in self.chains])

    def _with_starts(self) -> Members:
        """Chains of which some have a start of their own, with as many places as all need."""
        lengths = {chain.length for chain in self.chains if chain.length is not None}
        if lengths:
            return self.of_length(max(lengths))
        count = max(*(chain.steps_to_forget() for chain in self.chains), self.order)
        places = Places("step", count, goes_on=True)
        return Members.joined([_with_places(chain, places) for chain in self.chains])

    def _placed(self, chain: MarkovChain, length: int | None) -> Members:
        if length is None or chain.length is not None:
            return chain.members(length)
        return _with_places(chain, Places("step", max(length, self.order)))

    @cached_property
    def mean(self) -> Members:
        """The mean of the kernels and of the starts."""
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


def _with_places(chain: MarkovChain, places: Places) -> Members:
    rows = chain.transition.reshape(1, -1, chain.k**chain.order, chain.k)
    return Members(rows, chain.order, places, chain.start.reshape(1, -1))
