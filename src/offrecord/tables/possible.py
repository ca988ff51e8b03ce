"""Whether a table can have come from its model at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from offrecord.chain import MarkovChain
from offrecord.designs import Model
from offrecord.errors import InputError
from offrecord.phased import PhasedChain
from offrecord.tables.chains import Chains


def check_possible(model: Model, chains: Chains, phases: NDArray[np.int8] | None) -> None:
    """InputError with a count if records one step apart make a transition that the model calls impossible."""
    order = model.order
    length = model.length if isinstance(model, MarkovChain) else None
    if length is not None:
        wrong = int((chains.places[chains.starts[1:] - 1] + 1 != length).sum())
        if wrong:
            raise InputError(f"the model has a kernel for each of {length - 1} steps, but {wrong} chains have another length")
    zero = model.transition == 0
    if not zero.any():
        return
    codes = chains.codes.astype(np.int64)
    rows = len(codes) - order
    if rows <= 0:
        return
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
    impossible = int((zero[index] & together).sum())
    if impossible:
        raise InputError(
            f"the table has {impossible} transitions that the model calls impossible: it is not the model of these data"
        )
