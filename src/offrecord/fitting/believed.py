"""A fit with its audit, calibrated where that is asked for: is the model to be believed?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.fitting.asked import Asked
from offrecord.fitting.audit.audit import audited
from offrecord.fitting.audit.calibration import (
    CONFIDENCES,
    Calibration,
    Enlargement,
    calibrated,
    enlargements,
)
from offrecord.fitting.audit.designs import (
    BestWindows,
    Designs,
    Learn,
    PhasedWindows,
    WidenedWindows,
)
from offrecord.fitting.audit.records import FOLDS
from offrecord.fitting.audit.result import Audit
from offrecord.fitting.audit.stops import Walkers, walkers
from offrecord.fitting.boxes import Sureness, reverse_of, told_back
from offrecord.fitting.fit import Fit, fit_chains
from offrecord.fitting.intervals import rounded_outward
from offrecord.fitting.orders import largest_order
from offrecord.models.base import Floats, Label, Model
from offrecord.models.box import Box, Intervals
from offrecord.models.chain import MarkovChain
from offrecord.models.phased import PhasedChain
from offrecord.models.records import MISSING, Chains

_FURTHER = 2  # orders beyond a model's own that calibration tries
_STATES = 8  # of models whose sets are small


@dataclass(frozen=True, eq=False)
class Reference:
    """Records that models are learned from, and their promises checked with.

    dropped: (m,) chains that hold a private record: they are left out. phases: (n,) of records, by
    name, where times tell them, in a zone. instants: (n,) when records were made, where chains
    share time. sure: of sets of models.
    """

    chains: Chains
    labels: Sequence[Label]
    dropped: NDArray[np.bool_]
    phases: Mapping[str, NDArray[np.integer]]
    zone: str | None
    instants: NDArray[np.integer] | None
    sure: Sureness

    @cached_property
    def kept(self) -> Chains:
        """The records that may be learned from; all others have no value."""
        out = np.repeat(self.dropped, np.diff(self.chains.starts))
        return _blanked(self.chains, out)

    # ---- models

    def fit(
        self, wanted: Enlargement, chains: Chains | None = None, order: int | str | None = None
    ) -> Fit:
        """What an enlargement says, learned from all records that may be, or from some chains.

        order: instead of the enlargement's.
        """
        sure = self.sure
        if wanted.confidence is not None:
            sure = replace(sure, confidence=wanted.confidence)
        phases = None if wanted.phase is None else self.phases[wanted.phase]
        found = fit_chains(
            self.chains if chains is None else chains,
            self.labels,
            order=wanted.order if order is None else order,
            phases=phases,
            phase=wanted.phase,
            zone=None if wanted.phase is None else self.zone,
            dropped=self.dropped if chains is None else None,
            sure=sure,
        )
        if not wanted.hull:
            return found
        parts = _quarters(self.kept if chains is None else chains)
        own = [self.fit(replace(wanted, hull=False), part).model for part in parts]
        known = [one for one in own if isinstance(one, (MarkovChain, PhasedChain))]
        return replace(found, model=found.model.with_box(_hull(found, known)))

    def _learn(self, wanted: Enlargement, states: int | None) -> Learn:
        """Windows by an enlargement, or by a chain on hidden states, from part of the records.

        They are those of the model alone, unless it is its set that was enlarged: a set's windows
        are wider, and a wrong order would hide behind them in all but long references.
        """

        def learned(rest: Chains) -> Designs:
            model = self._model(wanted, states, rest)
            if model.box is not None and not (wanted.is_wider_set and _is_small(model)):
                model = model.with_box(None)
            made: Designs = BestWindows(model)
            if isinstance(model, PhasedChain):
                made = PhasedWindows.along(model, self.kept, self.phases[model.phase])
            return made if wanted.share == 1 else WidenedWindows(made, wanted.share)

        return learned

    def _model(self, wanted: Enlargement, states: int | None, rest: Chains) -> Model:
        if states is None:
            return self.fit(wanted, rest).model
        from offrecord.fitting.hidden import fit_states

        return fit_states(rest, self.labels, states=states).model

    # ---- whether to believe them

    def audited(self, wanted: Enlargement, states: int | None = None) -> Audit:
        """The promise of an enlargement's designs, counted in records that it was not made with;
        that of the owner's sides, which take longer to make, with sides made once, from all.

        states: of a chain on so many hidden states instead.
        """
        others = {name: one for name, one in self.phases.items() if name != wanted.phase}
        return audited(
            self.kept,
            self.labels,
            self._learn(wanted, states),
            phases=None if wanted.phase is None else self.phases[wanted.phase],
            by={name: others[name] for name in ("hour", "weekday") if name in others},
            instants=self.instants,
            walking=self._walking(wanted, states),
        )

    def _walking(self, wanted: Enlargement, states: int | None) -> Walkers | None:
        """The owner's sides, where a look at them is not worth too much time."""
        if states is not None or wanted.order != 1 or wanted.phase is not None:
            return None
        return walkers(self.fit(wanted).model, wanted.share, alone=not wanted.is_wider_set)

    def calibrated(self, plain: Enlargement) -> Calibration:
        """The smallest enlargement that passes the audit."""
        orders = range(plain.order + 1, largest_order(len(self.labels)) + 1)[:_FURTHER]
        wider = [one for one in CONFIDENCES if one > self.sure.confidence]
        return calibrated(enlargements(plain, orders, list(self.phases), wider), self.audited)


def _is_small(model: Model) -> bool:
    """Whether windows over its set of models are found in seconds."""
    states: int = model.k**model.order
    return states <= _STATES


def _blanked(chains: Chains, out: NDArray[np.bool_]) -> Chains:
    return replace(chains, codes=np.where(out, chains.codes.dtype.type(MISSING), chains.codes))


def _quarters(chains: Chains) -> list[Chains]:
    """Each quarter of the records, the others without values."""
    quarter = np.arange(len(chains.codes)) * FOLDS // max(len(chains.codes), 1)
    return [_blanked(chains, quarter != one) for one in range(FOLDS)]


def _hull(found: Fit, models: Sequence[MarkovChain | PhasedChain]) -> Box:
    """A box that also holds the kernels of some models, told forwards and backwards; where it is
    learned from first records, all that follows from these.
    """
    box, begun = found.box, found.beginnings
    forward = _widened(box.forward, [model.transition for model in models])
    backward = forward
    if begun is not None and begun.ends is not None and isinstance(found.model, MarkovChain):
        backward = Intervals(*told_back(forward, begun.ends, begun.since, found.model))
    elif not box.is_its_own_reverse:
        backward = _widened(box.backward, [reverse_of(model) for model in models])
    return Box(forward, backward, box.order, box.start, box.confidence, box.interval)


def _widened(intervals: Intervals, kernels: Sequence[Floats]) -> Intervals:
    low, high = intervals
    return Intervals(
        *rounded_outward(np.min([low, *kernels], axis=0), np.max([high, *kernels], axis=0))
    )


# ---- a fit, as it is asked for


def believed(reference: Reference, asked: Asked) -> Fit:
    """What is learned from a reference, and whether to believe it."""
    return _learned(reference, asked).begun


def _learned(reference: Reference, asked: Asked) -> Fit:
    """What is learned, but for how chains begin."""
    found = reference.fit(Enlargement(phase=asked.phase), order=asked.order)
    if asked.states is not None:
        from offrecord.fitting.hidden import fit_states

        states, chains = asked.states, reference.chains
        hidden = fit_states(chains, reference.labels, states=states, dropped=reference.dropped)
        found = found.with_hidden(hidden)
    if not asked.audit:
        return found
    plain = Enlargement(found.chain.order, asked.phase)
    if asked.calibrate:
        return _enlarged(reference, plain, found)
    is_hidden = found.model.shows is not None
    return replace(found, audit=reference.audited(plain, asked.states if is_hidden else None))


def _enlarged(reference: Reference, plain: Enlargement, found: Fit) -> Fit:
    """What passes the audit; InputError, with what would help, if nothing does."""
    calibration = reference.calibrated(plain)
    chosen, audit = calibration.chosen, calibration.audit
    if chosen is None or audit is None:
        raise InputError(str(calibration))
    found = found if chosen == plain else reference.fit(chosen)
    told = None if chosen == plain else str(chosen)
    return replace(found, audit=audit, calibration=told, share=chosen.share)
