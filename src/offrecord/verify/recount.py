"""Counting again what a model was learned from, where that is the released table itself."""

from __future__ import annotations

import numpy as np

from offrecord.models.known import KnownChains
from offrecord.release.certificate import Certificate
from offrecord.tables.private import Private
from offrecord.verify.found import Found
from offrecord.verify.members import Integers, Mask, Promised
from offrecord.verify.reading import Records

_OTHER = "The counts of the model, which inflated would narrow the plausible chains"


def check_counts(
    records: Records,
    private: Private,
    certificate: Certificate,
    promised: Promised,
    found: Found,
) -> None:
    """Compare the model's counts with those of the released records it was learned from.

    These are chains without a private record, or records so many steps from every private one. Of a
    model that was not learned from this table nothing can be said.
    """
    read, origin = promised.read, certificate.origin
    if isinstance(read, KnownChains):
        found.not_checked.append("Where the known chains come from.")
        return
    distance = None if origin is None else origin.distance
    counted = _counted(records, _apart(records, private, distance), promised)
    if np.array_equal(counted, read.counts):
        found.checked.append("The model's counts, which are those of released records here.")
        found.not_checked.append("The order, κ and places that were chosen for the model.")
    elif distance is None:
        found.not_checked.append(f"{_OTHER}: they are of other data.")
    else:
        found.wrong(
            f"the model's counts are not those of the records {distance} steps or more from every"
            " private one"
        )


def _apart(records: Records, private: Private, distance: int | None) -> Mask:
    """(n,) the records that a model may have been learned from."""
    if distance is None:
        return ~np.isin(records.chain_of, private.chain)
    far = np.ones(len(records.codes), dtype=bool)
    low = records.row_from(private.chain, np.maximum(private.place - distance + 1, 0))
    last = np.minimum(private.place + distance - 1, records.ends[private.chain])
    edges = np.zeros(len(far) + 1, dtype=np.int64)
    np.add.at(edges, low, 1)
    np.add.at(edges, records.row_from(private.chain, last + 1), -1)
    return np.asarray(far & (np.cumsum(edges[:-1]) == 0))


def _counted(records: Records, counts: Mask, promised: Promised) -> Integers:
    """(S, k) how often each value follows each context, within a chain and without gaps."""
    kind = promised.kind
    codes = np.where(counts & (records.codes >= 0), records.codes, -1).astype(np.int64)
    size = len(codes) - kind.order
    found = np.zeros((kind.contexts, kind.k), dtype=np.int64)
    if size <= 0:
        return found
    context = np.zeros(size, dtype=np.int64)
    good = codes[kind.order :] >= 0
    for at in range(kind.order):
        good &= codes[at : at + size] >= 0
        context = context * kind.k + codes[at : at + size]
    good &= records.chain_of[:size] == records.chain_of[kind.order :]
    good &= records.places[kind.order :] - records.places[:size] == kind.order
    np.add.at(found, (context[good], codes[kind.order :][good]), 1)
    return found
