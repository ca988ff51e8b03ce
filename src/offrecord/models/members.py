"""Members: the chains that a promise is for, as arrays with a leading axis of members.

Everything that computes leakage works on all members at once, so one known chain is a list of one.
The order is lifted here: a *context* is the tuple of the last `order` values, numbered with the
latest value as its last digit in base k, and all kernels returned are on contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.models.stationary import stationary_laws

PlaceKind = Literal["hour", "weekday", "month", "step"]
PLACE_COUNTS = {"hour": 24, "weekday": 7, "month": 12}


@dataclass(frozen=True)
class Places:
    """What a kernel depends on besides the context: where its record stands.

    kind: "hour", "weekday" or "month", shown by a clock in a time zone, or "step", the number of
    steps from the first record of the chain. count: how many places there are. goes_on: for steps,
    whether all records from the last place on count as standing there; otherwise a record beyond it
    is an error.
    """

    kind: PlaceKind
    count: int
    zone: str | None = None
    goes_on: bool = False

    @property
    def cyclic(self) -> bool:
        """Whether the first place follows the last one."""
        return self.kind != "step"


@dataclass(frozen=True, eq=False, repr=False)
class Members:
    """M chains on k values, all of one order, with the same places.

    rows: (M, P, k**order, k) probability of each next value after each context; rows[:, p] leads
    from a record at place p to the next one. P is 1 without places and for steps may be 1 (the same
    kernel at every step). first: (M, k**order) law of the first `order` records of a chain; None
    where chains are stationary.
    """

    rows: Floats
    order: int = 1
    places: Places | None = None
    first: Floats | None = None
    _powers: dict[tuple[int, int], Floats] = field(default_factory=dict, init=False)

    @property
    def count(self) -> int:
        """How many chains there are."""
        return len(self.rows)

    @property
    def k(self) -> int:
        """Number of values."""
        return int(self.rows.shape[-1])

    @property
    def contexts(self) -> int:
        """Number of contexts, k**order."""
        return int(self.rows.shape[-2])

    @property
    def place_count(self) -> int:
        """Number of places; 1 where places make no difference."""
        return 1 if self.places is None else self.places.count

    @cached_property
    def last_value(self) -> Integers:
        """(contexts,) the latest value of each context."""
        return np.arange(self.contexts) % self.k

    def part(self, which: slice | Integers) -> Members:
        """Some of the chains."""
        first = None if self.first is None else self.first[which]
        some = Members(self.rows[which], self.order, self.places, first)
        for name in ("_laws", "_kernels"):  # half of the time that windows of panels take
            if name in self.__dict__:
                some.__dict__[name] = self.__dict__[name][which]
        return some

    # ---- places

    def place_after(self, place: int, steps: int) -> int:
        """The place of the record `steps` after one at `place` (before it, if negative).

        Raises InputError where a chain has no such record.
        """
        if self.places is None:
            return 0
        if self.places.cyclic:
            return (place + steps) % self.places.count
        found = place + steps
        if found < 0 or (found >= self.places.count and not self.places.goes_on):
            raise InputError(f"a chain has {self.places.count} steps, and none has number {found}")
        return min(found, self.places.count - 1)

    def margin(self, place: int) -> tuple[int | None, int | None]:
        """How many records a chain has before and after one at `place`; None: any number."""
        if self.places is None or self.places.cyclic:
            return None, None
        last = self.places.count - 1
        if self.places.goes_on:
            return (None if place == last else place), None
        return place, last - place

    # ---- kernels and laws, on contexts; the context at a place ends at the record there

    def kernel(self, place: int = 0) -> Floats:
        """(M, S, S) from the context at a place to the one at the next place."""
        return self._kernels[:, min(place, self._kernels.shape[1] - 1)]

    @cached_property
    def _kernels(self) -> Floats:
        """(M, P, S, S)"""
        return on_contexts(self.rows)

    def law(self, place: int = 0) -> Floats:
        """(M, S) probability of each context at a place."""
        return self._laws[:, place]

    @cached_property
    def _laws(self) -> Floats:
        """(M, places, S); places before the first whole context hold zeros."""
        if self.places is None and self.first is None:
            return stationary_laws(self.kernel())[:, np.newaxis]
        assert self.places is not None
        laws = np.zeros((self.count, self.places.count, self.contexts))
        begin = 0
        if self.places.cyclic:
            laws[:, 0] = stationary_laws(self.ahead(0, self.places.count))
        else:
            assert self.first is not None
            begin = self.order - 1
            laws[:, begin] = self.first
        for place in range(begin, self.places.count - 1):
            laws[:, place + 1] = np.einsum("ms,mst->mt", laws[:, place], self.kernel(place))
        if not np.isfinite(laws).all():  # nan would compare with ε as if nothing leaked
            raise InputError("a chain of the model has probabilities that are no numbers")
        return laws

    def ahead(self, place: int, steps: int) -> Floats:
        """(M, S, S) probability of each context `steps` after one at `place`."""
        if steps == 0:
            return np.broadcast_to(np.eye(self.contexts), (self.count,) + (self.contexts,) * 2)
        if self._kernels.shape[1] == 1:
            return self._power(steps)
        known = self._powers.get((place, steps))
        if known is None:
            before = self.ahead(place, steps - 1)
            known = before @ self.kernel(self.place_after(place, steps - 1))
            self._powers[place, steps] = known
        return known

    def _power(self, steps: int) -> Floats:
        """The `steps`-th power of the only kernel, by smaller powers, which are kept."""
        if steps == 1:
            return self.kernel()
        known = self._powers.get((0, steps))
        if known is None:
            # bisection asks for sums of two powers of two: one product each
            half = 1 << (int(steps) - 1).bit_length() - 1
            part = steps - 1 if (0, steps - 1) in self._powers else half
            known = self._power(part) @ self._power(steps - part)
            self._powers[0, steps] = known
        return known

    def back(self, place: int, steps: int) -> Floats:
        """(M, S, S) probability of each context `steps` before one at `place`; rows of contexts
        that never occur are 0.
        """
        source = self.place_after(place, -steps) if self.places is not None else 0
        before, here = self.law(source), self.law(place)
        joint = before[:, :, np.newaxis] * self.ahead(source, steps)
        # Bayes: Pr(before | here) is the joint law divided by that of `here`
        safe = np.where(here > 0, here, 1.0)
        return np.swapaxes(joint / safe[:, np.newaxis, :], 1, 2) * (here > 0)[:, :, np.newaxis]

    def forget(self) -> None:
        """Drop the products of kernels that are kept, to free memory."""
        self._powers.clear()

    def parts(self, size: int) -> Iterator[Members]:
        """The same chains in parts of at most `size`."""
        if self.count <= size:  # what is known of them stays known
            yield self
            return
        for begin in range(0, self.count, size):
            yield self.part(slice(begin, begin + size))

    @classmethod
    def joined(cls, parts: Sequence[Members]) -> Members:
        """One list of several; InputError unless all have the same values, order and places."""
        one = parts[0]
        for other in parts[1:]:
            same = (other.k, other.order, other.places) == (one.k, one.order, one.places)
            if not same or (other.first is None) != (one.first is None):
                raise InputError("chains of one list must have the same values, order and places")
        # chains with one kernel stand beside others with a kernel for each step
        width = max(part.rows.shape[1] for part in parts)
        rows = [np.broadcast_to(p.rows, (p.count, width, *p.rows.shape[2:])) for p in parts]
        firsts = [part.first for part in parts if part.first is not None]
        first = np.concatenate(firsts) if firsts else None
        return cls(np.concatenate(rows), one.order, one.places, first)


def on_contexts(rows: Floats) -> Floats:
    """(…, S, S) kernels on contexts; rows: (…, S, k) of each next value after each context."""
    *first, contexts, k = rows.shape
    if contexts == k:
        return rows
    lifted = np.zeros((*first, contexts, contexts))
    context = np.arange(contexts)[:, np.newaxis]
    # the oldest value goes, the next one comes
    lifted[..., context, (context * k + np.arange(k)) % contexts] = rows
    return lifted


def of_value(contexts: Any, k: int, back: int = 0) -> Any:
    """(…, k) sums over (…, S) contexts by their value `back` records before the latest."""
    return contexts.reshape(*contexts.shape[:-1], -1, k, k**back).sum(axis=(-3, -1))
