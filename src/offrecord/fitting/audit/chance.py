"""What chance does: the same records, drawn from models that they may have come from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.fitting.audit.records import FOLDS, Records
from offrecord.fitting.counting import Counts
from offrecord.models.base import Floats, Integers, Model
from offrecord.models.chain import MarkovChain
from offrecord.models.lifted import onward
from offrecord.models.phased import PhasedChain
from offrecord.models.records import Codes

_FORGOTTEN = 1000  # steps after which a chain is drawn anew
_UNSEEN = 0.5  # what is added to each count, as where a model is learned


@dataclass(frozen=True, eq=False, repr=False)
class Drawing:
    """Chains on states, which each show a value, along some records.

    apart: (n,) steps since the record before, 0 where a chain begins anew. contexts: (n,) which
    kernel leads to each. starts: (contexts, states) cumulative. counts: (contexts, states,
    branches) how often each branch was seen. onward: (states, branches) where branches lead. shows:
    (states,).
    """

    apart: Integers
    contexts: Integers
    starts: Floats
    counts: Counts
    onward: Integers
    shows: Integers

    @classmethod
    def along(cls, model: Model, records: Records, phases: NDArray[np.integer] | None) -> Drawing:
        """Models of the same kind along these records; phases: (n,) of them, if it has some."""
        if isinstance(model, PhasedChain):
            assert phases is not None
            return cls._phased(model, records, phases.astype(np.int64))
        chain = model.along()
        k, order = chain.k, chain.order
        apart = np.where(records.apart > _FORGOTTEN, 0, records.apart)
        if chain.shows is not None:
            return cls._hidden(chain, apart, chain.shows)
        return cls(
            apart,
            np.zeros(len(records), dtype=np.int64),
            np.cumsum(chain.start.reshape(1, -1), axis=-1),
            _visits(records, k, order, np.zeros(len(records), dtype=np.int64), 1),
            onward(k, k**order),
            chain.coordinate(order - 1),
        )

    @classmethod
    def _hidden(cls, chain: MarkovChain, apart: Integers, shows: Integers) -> Drawing:
        # nobody sees states: each step is taken to have been seen as often as it is likely
        states = chain.lifted
        expected = len(apart) * states.start[:, np.newaxis] * states.transition
        return cls(
            apart,
            np.zeros(len(apart), dtype=np.int64),
            np.cumsum(states.start, axis=-1)[np.newaxis],
            np.rint(expected).astype(np.int64)[np.newaxis],
            np.tile(np.arange(states.k), (states.k, 1)),
            shows,
        )

    @classmethod
    def _phased(cls, model: PhasedChain, records: Records, phases: Integers) -> Drawing:
        # what phases the records of a gap would have had is not known: it is begun anew
        apart = np.where(records.apart > 1, 0, records.apart)
        contexts = np.where(apart == 1, np.roll(phases, 1), phases)
        k, count = model.k, len(model.start)
        return cls(
            apart,
            contexts,
            np.cumsum(model.start, axis=-1),
            _visits(records, k, 1, contexts, count),
            onward(k, k),
            np.arange(k),
        )

    def drawn(self, rng: np.random.Generator) -> Codes:
        """(n,) values as one of the models would have them that the counts allow.

        Kernels are drawn first, from what is known of them where a part is held back: designs
        were made for another one.
        """
        from offrecord.fitting.audit._tables import drawn_codes

        weights = rng.standard_gamma(self.counts * (1 - 1 / FOLDS) + _UNSEEN)
        steps = np.cumsum(weights / weights.sum(axis=-1, keepdims=True), axis=-1)
        found: Codes = drawn_codes(
            rng, self.apart, self.contexts, self.starts, steps, self.onward, self.shows
        )
        return found


def _visits(records: Records, k: int, order: int, contexts: Integers, count: int) -> Counts:
    """(contexts, k^order, k) how often each value follows `order` others, one step apart."""
    linked = records.apart == 1
    keys = contexts[order:]
    whole = np.ones(len(keys), dtype=bool)
    for back in range(order, -1, -1):
        there = slice(order - back, len(records) - back)
        keys = keys * k + records.codes[there]
        if back < order:
            whole &= linked[there]
    shape = (count, k**order, k)
    return np.bincount(keys[whole], minlength=count * k ** (order + 1)).reshape(shape)
