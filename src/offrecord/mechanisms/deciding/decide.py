"""Which records of whole chains are redacted: by a table policy, the values and keyed coins."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.deciding.layout import Draw, Mask, PlaceOf, layout_of
from offrecord.mechanisms.deciding.local import LocalPlan
from offrecord.mechanisms.deciding.rule_book import RuleBook
from offrecord.mechanisms.deciding.stopping import (
    Coin,
    clusters_of,
    covered,
    keyed,
    least_stops,
    stops_of,
)
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Floats
from offrecord.models.records import Chains, Runs

#: Whether a record is redacted, whatever the values and the coins are: for none of them, for some,
#: for all.
NEVER, AT_TIMES, ALWAYS = 0, 1, 2
Certainty: TypeAlias = NDArray[np.int8]


def decide(
    chains: Chains,
    runs: Runs,
    policy: TablePolicy,
    place_of: PlaceOf,
    draw: Draw,
    order: int,
) -> Mask:
    """(n,) which records are redacted.

    runs: their private runs; with protect="each", one for each private record. Missing records
    count as redacted where they would be whatever their value. Raises InputError where the policy
    has no rule for a setting, or rules that do not act together.
    """
    if policy.is_local:
        layout, book = layout_of(chains, runs, order, place_of), RuleBook.of_policy(policy, order)
        return LocalPlan.of(chains, layout, book).redacted(draw)
    return walked(chains, runs, policy, place_of, keyed(draw), order)


def walked(
    chains: Chains,
    runs: Runs,
    policy: TablePolicy,
    place_of: PlaceOf,
    coin: Coin,
    order: int,
) -> Mask:
    """(n,) which records are redacted by rules that are not local, given what their coins say.

    Args and Raises: see `decide`. coin: whether walks stop.
    """
    layout, book = layout_of(chains, runs, order, place_of), RuleBook.of_policy(policy, order)
    clusters = clusters_of(layout, book)
    return covered(chains, clusters, stops_of(chains, runs.order, book, clusters, coin), order)


def local_redaction(
    chains: Chains, runs: Runs, policy: TablePolicy, place_of: PlaceOf, order: int
) -> Floats | None:
    """(n, k) the probability that each record is redacted, by its value; None for rules that are
    not local.

    Args and Raises: see `decide`.
    """
    if not policy.is_local:
        return None
    layout, book = layout_of(chains, runs, order, place_of), RuleBook.of_policy(policy, order)
    return LocalPlan.of(chains, layout, book).redaction()


def certain(
    chains: Chains, runs: Runs, policy: TablePolicy, place_of: PlaceOf, order: int
) -> Certainty:
    """(n,) NEVER, AT_TIMES or ALWAYS: whether records are redacted, by positions alone.

    Args and Raises: see `decide`.
    """
    layout, book = layout_of(chains, runs, order, place_of), RuleBook.of_policy(policy, order)
    if policy.is_local:
        always, ever = LocalPlan.of(chains, layout, book).certainty()
    else:
        clusters = clusters_of(layout, book)
        always = covered(chains, clusters, least_stops(book, clusters), order)
        ever = covered(chains, clusters, clusters.deadlines, order)
    return always.astype(np.int8) + ever
