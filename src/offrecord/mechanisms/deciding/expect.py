"""How many records a policy is expected to release, by positions and the mean chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from offrecord.mechanisms.deciding.layout import Layout, PlaceOf
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Integers
from offrecord.models.members import Members
from offrecord.models.records import Chains, Runs


@dataclass(frozen=True, eq=False, repr=False)
class Geometry:
    """Where private runs and missing records are; chains that are alike are held once.

    layout: of chains that have a private run. copies: (chains,) how many are like each. records:
    number of records with a value in all chains, those without a private run included.
    """

    layout: Layout
    copies: Integers
    records: int

    @classmethod
    def joined(cls, parts: Sequence[Geometry]) -> Geometry:
        """That of several batches of chains."""
        raise NotImplementedError


def geometry(chains: Chains, runs: Runs, order: int, place_of: PlaceOf) -> Geometry:
    """The geometry of a batch of whole chains, by positions alone; `joined` adds batches up."""
    raise NotImplementedError


def expected_released(geometry: Geometry, policy: TablePolicy, mean: Members) -> float:
    """Expected number of records with a value that leave, under the mean chain (M = 1)."""
    raise NotImplementedError
