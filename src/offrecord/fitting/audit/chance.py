"""What chance does: the same records, drawn from the model that was learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.fitting.audit.records import Records
from offrecord.models.base import Floats, Integers, Model
from offrecord.models.chain import MarkovChain
from offrecord.models.lifted import onward
from offrecord.models.phased import PhasedChain
from offrecord.models.records import Codes

_FORGOTTEN = 1000  # steps after which a chain is drawn anew


@dataclass(frozen=True, eq=False, repr=False)
class Drawing:
    """A chain on states, which each show a value, along some records.

    apart, contexts: (n,). starts: (contexts, states) and steps: (contexts, states, branches),
    cumulative. onward: (states, branches) where branches lead. shows: (states,).
    """

    apart: Integers
    contexts: Integers
    starts: Floats
    steps: Floats
    onward: Integers
    shows: Integers

    @classmethod
    def along(cls, model: Model, records: Records, phases: NDArray[np.integer] | None) -> Drawing:
        """From a model along the records of a reference; phases: (n,) of these, if it has some."""
        apart = records.apart
        if isinstance(model, PhasedChain):
            assert phases is not None
            # what phases the records of a gap would have had is not known: it is begun anew
            apart = np.where(apart > 1, 0, apart)
            contexts = np.where(apart == 1, np.roll(phases, 1), phases).astype(np.int64)
            branches = np.broadcast_to(np.arange(model.k), (model.k, model.k))
            starts, steps, shows = model.start, model.transition, np.arange(model.k)
        else:
            chain = model.along()
            assert isinstance(chain, MarkovChain)
            apart = np.where(apart > _FORGOTTEN, 0, apart)
            contexts = np.zeros(len(records), dtype=np.int64)
            states = chain.k**chain.order
            branches = onward(chain.k, states)
            starts = chain.start.reshape(1, states)
            steps = chain.transition.reshape(1, states, chain.k)
            shows = chain.coordinate(chain.order - 1)
        return cls(
            apart,
            contexts,
            np.cumsum(starts, axis=-1),
            np.cumsum(steps, axis=-1),
            np.ascontiguousarray(branches),
            shows,
        )

    def drawn(self, rng: np.random.Generator) -> Codes:
        """(n,) values as the model would have them."""
        from offrecord.fitting.audit._tables import drawn_codes

        found: Codes = drawn_codes(
            rng, self.apart, self.contexts, self.starts, self.steps, self.onward, self.shows
        )
        return found
