"""Which records of whole chains are redacted: by a table policy, the values and keyed coins."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.deciding.layout import Draw, Mask, PlaceOf, layout_of
from offrecord.mechanisms.deciding.local import LocalPlan
from offrecord.mechanisms.deciding.rule_book import local_book, stopping_book
from offrecord.mechanisms.deciding.stopping import (
    Coin,
    KeyedCoin,
    clusters_of,
    covered,
    least_stops,
    stops_of,
)
from offrecord.mechanisms.rules import StoppingRule
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Floats
from offrecord.models.records import Chains, Runs

#: Whether a record is redacted, whatever the values and the coins are: for none of them, for some,
#: for all.
NEVER, AT_TIMES, ALWAYS = 0, 1, 2
Certainty: TypeAlias = NDArray[np.int8]

STOPPING = StoppingRule.kind


def decide(
    chains: Chains,
    runs: Runs,
    policy: TablePolicy,
    place_of: PlaceOf,
    draw: Draw,
    order: int,
) -> Mask:
    """(n,) which records are redacted.

    Args:
        chains: whole chains, any number of them.
        runs: their private runs; with protect="each", one for each private record.
        policy: local rules, or stopping rules and windows, for every setting that occurs.
        place_of: from chain numbers and steps to places.
        draw: keyed coins, by chain number and order value.
        order: m, of the model.

    Returns:
        Missing records count as redacted where they would be whatever their value.

    Raises:
        InputError: the policy has no rule for a setting, or rules that do not act together.
    """
    layout = layout_of(chains, runs, order, place_of)
    if STOPPING not in policy.kinds:
        return LocalPlan.of(chains, layout, local_book(policy)).redacted(draw)
    return walked(chains, runs, policy, place_of, KeyedCoin(draw), order)


def walked(
    chains: Chains,
    runs: Runs,
    policy: TablePolicy,
    place_of: PlaceOf,
    coin: Coin,
    order: int,
) -> Mask:
    """(n,) which records are redacted by stopping rules, given the outcomes of their coins.

    Args and Raises: see `decide`. coin: whether walks stop.
    """
    layout, book = layout_of(chains, runs, order, place_of), stopping_book(policy, order)
    clusters = clusters_of(layout, book)
    return covered(chains, clusters, stops_of(chains, runs.order, book, clusters, coin), order)


def local_redaction(
    chains: Chains, runs: Runs, policy: TablePolicy, place_of: PlaceOf, order: int
) -> Floats | None:
    """(n, k) the probability that each record is redacted, by its value; None for stopping rules,
    which look at more than one record.

    Args and Raises: see `decide`.
    """
    if STOPPING in policy.kinds:
        return None
    layout = layout_of(chains, runs, order, place_of)
    return LocalPlan.of(chains, layout, local_book(policy)).redaction()


def certain(
    chains: Chains, runs: Runs, policy: TablePolicy, place_of: PlaceOf, order: int
) -> Certainty:
    """(n,) NEVER, AT_TIMES or ALWAYS: whether records are redacted, by positions alone.

    Args and Raises: see `decide`.
    """
    layout = layout_of(chains, runs, order, place_of)
    if STOPPING not in policy.kinds:
        always, ever = LocalPlan.of(chains, layout, local_book(policy)).certainty()
    else:
        book = stopping_book(policy, order)
        clusters = clusters_of(layout, book)
        always = covered(chains, clusters, least_stops(book, clusters), order)
        ever = covered(chains, clusters, clusters.deadlines, order)
    return always.astype(np.int8) + ever
