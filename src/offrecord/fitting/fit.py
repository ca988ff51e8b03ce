"""A chain learned from data: rounded kernels, how sure they are, and a verdict on their fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offrecord.errors import InputError
from offrecord.fitting.beginnings import Beginnings, box_and_beginnings
from offrecord.fitting.boxes import Sureness, learned_box
from offrecord.fitting.checks import (
    Check,
    Stationarity,
    kernel_check,
    phased_starts_check,
    starts_check,
)
from offrecord.fitting.counting import Codes, Counts, binned, half_counts, linked_records, reaching
from offrecord.fitting.intervals import rounded_shares
from offrecord.fitting.longer_memory import LongerMemory, counts_apart, judged_by_longer_memory
from offrecord.fitting.orders import (
    bic_by_order,
    checked_order,
    chosen_order,
    deepest_order,
    kernels_used,
)
from offrecord.fitting.printed import headline, html_of, page_of
from offrecord.fitting.verdict import verdict_on
from offrecord.models.base import Floats, Label, Model
from offrecord.models.box import Box
from offrecord.models.chain import MarkovChain
from offrecord.models.clock import Clock
from offrecord.models.phased import PhasedChain, checked_phases
from offrecord.text import many

if TYPE_CHECKING:
    from offrecord.fitting.audit.result import Audit
    from offrecord.fitting.hidden import HiddenFit
    from offrecord.models.records import Chains

_SURE = Sureness()


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """What was learned, and from how much.

    model: with kernels rounded: the rounded kernel is the model; its box is the set of models that
    the data leave likely. counts: k^(order + 1) transitions, the next record's value last, with
    phases an axis of phases before. bic: by order, given the phase where kernels differ by it, all
    on the same bic_records records. records: those with a value, in the chains used. dropped: how
    many chains were left out. values: how many records have each value, in the chains used. apart:
    (2, k, …, k) transitions of higher orders in two halves of the data, where a longer memory can
    be looked at. beginnings: how chains begin, where that is unlike the rest and matters. hidden: a
    chain on hidden states, where that was asked for; if it foretells better than every order it is
    the model, and on_values the chain that all else here is about. audit: what the promise came to
    on data held back, where that was asked for. merged: how many rare values are one. calibration:
    what was enlarged until that passed, and share: of ε that designs are made for then.
    """

    model: Model
    counts: Counts
    bic: dict[int, float]
    bic_records: int
    stationarity: Stationarity
    records: int
    chains: int
    dropped: int
    values: dict[Label, int]
    apart: Counts | None = None
    beginnings: Beginnings | None = None
    hidden: HiddenFit | None = None
    on_values: Model | None = None
    audit: Audit | None = None
    calibration: str | None = None
    share: float = 1.0
    merged: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def chain(self) -> Model:
        """The chain on values: the model, or what it would be without hidden states."""
        return self.model if self.on_values is None else self.on_values

    @property
    def box(self) -> Box:
        """The set of chains on values that the data leave likely."""
        assert self.chain.box is not None
        return self.chain.box

    @property
    def intervals(self) -> Floats:
        """The intervals of every transition probability, in a last axis of 2."""
        return np.stack(self.box.forward, axis=-1)

    @property
    def transitions(self) -> int:
        """How many transitions were counted."""
        return int(self.counts.sum())

    @property
    def phase(self) -> str | None:
        """What has a kernel each: "hour", "weekday" or "month"; None for one kernel."""
        return None if self.chain.clock is None else self.chain.clock.phase

    @property
    def kernels(self) -> int:
        """How many kernels were learned from transitions: those of phases that were seen, or 1."""
        return 1 if self.phase is None else int(self.counts.any(axis=(1, 2)).sum())

    @property
    def preferred_order(self) -> int:
        """The order with the smallest BIC."""
        return min(self.bic, key=lambda order: self.bic[order])

    @cached_property
    def longer_memory(self) -> LongerMemory | None:
        """What attackers of higher orders would gain; None where the data cannot tell."""
        if self.apart is None:
            return None
        return judged_by_longer_memory(self.apart, self.chain.order)

    @cached_property
    def verdict(self) -> str:
        """In plain words, for who publishes: does a chain like this describe the data?"""
        return verdict_on(self)

    @property
    def begun(self) -> Fit:
        """The same, the chain on values with first records as they are, where these are unlike the
        rest: fits and audits are of what chains are once they have forgotten how they began.
        """
        if self.beginnings is None or not isinstance(self.chain, MarkovChain):
            return self
        chain = self.beginnings.begun(self.chain)
        if self.on_values is not None:
            return replace(self, on_values=chain)
        return replace(self, model=chain)

    def with_hidden(self, hidden: HiddenFit) -> Fit:
        """The same, and beside it a chain on hidden states: the model, if it foretells better."""
        if not hidden.is_preferred:
            return replace(self, hidden=hidden)
        return replace(self, hidden=hidden, model=hidden.model, on_values=self.model)

    def summary(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "order": self.chain.order,
            "phase": self.phase,
            "labels": list(self.model.labels),
            "values": {str(value): count for value, count in self.values.items()},
            "records": self.records,
            "chains": self.chains,
            "chains_dropped": self.dropped,
            "transitions": self.transitions,
            "counts": self.counts.tolist(),
            "transition": self.chain.transition.tolist(),
            "set": self.box.to_dict(),
            "bic": {str(order): value for order, value in self.bic.items()},
            "bic_records": self.bic_records,
            "preferred_order": self.preferred_order,
            "longer_memory": None if self.longer_memory is None else self.longer_memory.summary(),
            "stationarity": self.stationarity.summary(),
            "beginnings": None if self.beginnings is None else self.beginnings.summary(),
            "hidden": None if self.hidden is None else self.hidden.summary(),
            "audit": None if self.audit is None else self.audit.summary(),
            "calibration": self.calibration,
            "share": self.share,
            "verdict": self.verdict,
        }

    def __repr__(self) -> str:
        return f"<Fit of {headline(self)}>"

    def __str__(self) -> str:
        return page_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)


def fit_chains(
    chains: Chains,
    labels: Sequence[Label],
    *,
    order: int | str = 1,
    phases: ArrayLike | None = None,
    phase: str | None = None,
    zone: str | None = None,
    dropped: ArrayLike | None = None,
    sure: Sureness = _SURE,
) -> Fit:
    """Learn a chain from records, pooled over chains.

    Only what stands exactly one step apart and has values is counted. order: how many records the
    next one depends on, or "auto": as BIC prefers. phases: (n,) the phase of each record, from 0,
    with phase saying of what kind and zone in which time zone they were told. dropped: (m,) chains
    that hold a private record: they are left out. sure: of the set of models. InputError if nothing
    is left to learn from.
    """
    k, asked = len(labels), checked_order(order, len(labels))
    clock = _checked_clock(phases, phase, zone, asked)
    out = _checked_dropped(dropped, chains.count)
    codes = chains.codes
    if out.any():
        codes = np.where(np.repeat(out, np.diff(chains.starts)), codes.dtype.type(-1), codes)
    here = codes >= 0
    linked = linked_records(codes, chains.starts, chains.steps)
    told = None if clock is None else _checked_phases(phases, clock, len(codes))
    if not reaching(linked, asked or 1).any():
        raise InputError(
            f"no {(asked or 1) + 1} records with values stand one step apart: there is nothing to"
            " learn the model from"
        )
    used = None if told is None else kernels_used(linked, told)
    deepest = deepest_order(linked, k, 1 if used is None else int(used.max()) + 1)
    bic, bic_records = bic_by_order(codes, linked, k, deepest, used)
    own = (1 if clock is not None else chosen_order(bic, k)) if asked is None else asked
    context = None if clock is None or told is None else (told, clock.count)
    halves = half_counts(codes, linked, chains, k, own, context)
    counts = halves.sum(axis=0)
    model: MarkovChain | PhasedChain
    beginnings = None
    if clock is None or told is None:
        chain, starts, by_phase = _one_kernel(counts, codes, chains, labels, own)
        firsts = binned(codes[_first_rows(codes, chains)], k)
        box, beginnings = box_and_beginnings(counts, firsts, starts, chain, sure)
        model = chain.with_box(box)
    else:
        model, starts, by_phase = _kernel_by_phase(counts, codes, chains, labels, clock, told)
        model = model.with_box(learned_box(counts, model, sure))
    return Fit(
        model,
        counts,
        bic,
        bic_records,
        Stationarity(kernel_check(halves), starts, by_phase),
        int(np.count_nonzero(here)),
        int(chains.count - out.sum()),
        int(out.sum()),
        dict(zip(labels, np.bincount(codes[here], minlength=k).tolist(), strict=True)),
        counts_apart(codes, linked, chains, k, own) if clock is None else None,
        beginnings=beginnings,
    )


def _one_kernel(
    counts: Counts, codes: NDArray[np.int8], chains: Chains, labels: Sequence[Label], order: int
) -> tuple[MarkovChain, Check | None, None]:
    """The stationary chain, and the test of first records."""
    model = MarkovChain(rounded_shares(counts), labels=labels, order=order)
    return model, starts_check(model, counts, codes[_first_rows(codes, chains)]), None


def _kernel_by_phase(
    counts: Counts,
    codes: NDArray[np.int8],
    chains: Chains,
    labels: Sequence[Label],
    clock: Clock,
    phases: Codes,
) -> tuple[PhasedChain, Check | None, Check | None]:
    """The chain with a kernel for each phase, and the tests of first records and of phases."""
    here, k = codes >= 0, len(labels)
    keys = phases[here].astype(np.int64) * k + codes[here]
    marginals = binned(keys, clock.count * k).reshape(-1, k)
    model = PhasedChain(
        clock.phase, rounded_shares(counts), rounded_shares(marginals), labels, clock.zone
    )
    firsts = _first_rows(codes, chains)
    return model, phased_starts_check(model, phases[firsts], codes[firsts]), kernel_check(counts)


def _first_rows(codes: NDArray[np.int8], chains: Chains) -> NDArray[np.int64]:
    """The rows that begin a chain and have a value."""
    firsts = chains.starts[:-1]
    return firsts[codes[firsts] >= 0]


# ---- what is given


def _checked_clock(
    phases: ArrayLike | None, phase: str | None, zone: str | None, order: int | None
) -> Clock | None:
    if (phases is None) != (phase is None):
        raise InputError("phases and phase go together: give both or neither")
    if phase is None:
        return None
    if order not in (None, 1):
        raise InputError(f"kernels by phase need order 1, got order {order}")
    return Clock(phase, zone)


def _checked_phases(phases: ArrayLike | None, clock: Clock, count: int) -> Codes:
    known = checked_phases(np.asarray(phases), clock.phase)
    if len(known) != count:
        raise InputError(f"phases must name the phase of each of {count} records, got {len(known)}")
    return known


def _checked_dropped(dropped: ArrayLike | None, count: int) -> NDArray[np.bool_]:
    if dropped is None:
        return np.zeros(count, dtype=bool)
    out = np.asarray(dropped)
    if out.shape != (count,) or out.dtype != np.bool_:
        raise InputError(f"dropped must say true or false for each of {count} chains")
    if out.all():
        raise InputError(
            f"no chain is left to learn the model from: {many(count, 'chain')} given, and every one"
            " holds a private record; fit a model on reference data instead"
        )
    return out
