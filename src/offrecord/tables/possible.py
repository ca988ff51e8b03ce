"""Whether a table can have come from its model at all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.chain import MarkovChain
from offrecord.designs import Model
from offrecord.errors import InputError
from offrecord.phased import PhasedChain
from offrecord.tables.chains import Chains


class Impossible(NamedTuple):
    """chains: that have another length than the model. transitions: of records one step apart, with probability 0."""

    chains: int
    transitions: int

    def check(self, model: Model) -> None:
        """InputError with a count, if there are any."""
        if self.chains:
            assert isinstance(model, MarkovChain)
            assert model.length is not None
            steps = model.length - 1
            raise InputError(f"the model has a kernel for each of {steps} steps, but {self.chains} chains have another length")
        if self.transitions:
            raise InputError(
                f"the table has {self.transitions} transitions that the model calls impossible:"
                " it is not the model of these data"
            )


def impossible(model: Model, chains: Chains, phases: NDArray[np.int8] | None) -> Impossible:
    """Count what the model calls impossible."""
    order = model.order
    length = model.length if isinstance(model, MarkovChain) else None
    if length is not None:
        wrong = int((chains.places[chains.starts[1:] - 1] + 1 != length).sum())
        if wrong:
            return Impossible(wrong, 0)
    zero = model.transition == 0
    if not zero.any():
        return Impossible(0, 0)
    codes = chains.codes.astype(np.int64)
    rows = len(codes) - order
    if rows <= 0:
        return Impossible(0, 0)
    together = np.ones(rows, dtype=bool)
    for ahead in range(order):
        step = chains.places[1 + ahead : rows + 1 + ahead] - chains.places[ahead : rows + ahead]
        together &= (step == 1) & (codes[ahead : rows + ahead] >= 0) & (codes[1 + ahead : rows + 1 + ahead] >= 0)
    index = tuple(np.maximum(codes[ahead : rows + ahead], 0) for ahead in range(order + 1))
    if isinstance(model, PhasedChain):
        assert phases is not None
        index = (phases[:rows].astype(np.int64), *index)
    elif length is not None:
        index = (np.minimum(chains.places[:rows], length - 2), *index)
    return Impossible(0, int((zero[index] & together).sum()))
