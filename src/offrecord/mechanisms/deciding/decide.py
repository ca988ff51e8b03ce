"""Which records of whole chains are redacted: by a table policy, the values and keyed coins."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.deciding.layout import Draw, Mask, PlaceOf, layout_of
from offrecord.mechanisms.deciding.local import LocalPlan
from offrecord.mechanisms.deciding.rule_book import RuleBook
from offrecord.mechanisms.deciding.stopping import (
    Clusters,
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
    chains: Chains, runs: Runs, policy: TablePolicy, place_of: PlaceOf, draw: Draw, order: int
) -> Mask:
    """(n,) which records are redacted.

    runs: their private runs; with protect="each", one for each private record. Missing records
    count as redacted where they would be whatever their value. Raises InputError where the policy
    has no rule for a setting, or rules that do not act together.
    """
    if policy.is_local:
        return _local_plan(chains, runs, policy, place_of, order).redacted(draw)
    return walked(chains, runs, policy, place_of, keyed(draw), order)


def walked(
    chains: Chains, runs: Runs, policy: TablePolicy, place_of: PlaceOf, coin: Coin, order: int
) -> Mask:
    """(n,) which records are redacted by rules that are not local, given what their coins say."""
    clusters, book = _clusters(chains, runs, policy, place_of, order)
    return covered(chains, clusters, stops_of(chains, runs.order, book, clusters, coin))


def local_redaction(
    chains: Chains, runs: Runs, policy: TablePolicy, place_of: PlaceOf, order: int
) -> Floats | None:
    """(n, k) the probability that each record is redacted, by its value; None for rules that are
    not local.
    """
    if not policy.is_local:
        return None
    return _local_plan(chains, runs, policy, place_of, order).redaction()


def certain(
    chains: Chains, runs: Runs, policy: TablePolicy, place_of: PlaceOf, order: int
) -> Certainty:
    """(n,) NEVER, AT_TIMES or ALWAYS: whether records are redacted, by positions alone."""
    if policy.is_local:
        always, ever = _local_plan(chains, runs, policy, place_of, order).certainty()
    else:
        clusters, book = _clusters(chains, runs, policy, place_of, order)
        always = covered(chains, clusters, least_stops(book, clusters))
        ever = covered(chains, clusters, clusters.deadlines)
    return always.astype(np.int8) + ever


def _local_plan(
    chains: Chains, runs: Runs, policy: TablePolicy, place_of: PlaceOf, order: int
) -> LocalPlan:
    layout = layout_of(chains, runs, order, place_of)
    return LocalPlan.of(chains, layout, RuleBook.of_policy(policy, order))


def _clusters(
    chains: Chains, runs: Runs, policy: TablePolicy, place_of: PlaceOf, order: int
) -> tuple[Clusters, RuleBook]:
    book = RuleBook.of_policy(policy, order)
    return clusters_of(layout_of(chains, runs, order, place_of), book), book
