"""Whether a table follows its model, judged by the records that are released whatever they are.

No value of these records is ever redacted, so what is found here can be computed from the release,
and which records they are does not depend on values. With many records every table differs from
its model beyond chance. So a difference counts only if it matters: under the table's own
transitions the rules would leak clearly more than they may, or the model describes the data clearly
worse than their own transitions do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Floats, Integers
from offrecord.models.members import Members
from offrecord.models.origin import Origin
from offrecord.models.records import Codes
from offrecord.tables.steps import Step
from offrecord.tables.table import Table
from offrecord.text import many, odds

if TYPE_CHECKING:
    from offrecord.tables.decision import Rule

SIGNIFICANCE = 1e-6  #: a smaller p-value is more than chance
ODDS = 1.25  #: how much larger than promised the odds may be under the table's own transitions
#: how much more a record may cost under the model than under its own transitions, as a share of its
#: entropy
WASTE = 0.05
SPARSE = 0.1  #: share of neighbouring rows that must be one step apart
#: how many times as far as where the model comes from neighbours may be, or as near, where no step
#: is given
SPACING = 1.5
NEIGHBOURS = 20  #: rows below which their distance says nothing
ENOUGH = 100  #: transitions below which nothing is said
_SEEN = 50  # visits of a context from which its own row is compared: a χ² of fewer is no χ²
# transitions that the model itself counts for where a context's own row is estimated
_PRIOR = 50


@dataclass(frozen=True, eq=False)
class Moves:
    """Transitions among records that are never redacted. counts: (P, S, k)."""

    counts: Integers

    def __add__(self, other: Moves) -> Moves:
        return Moves(self.counts + other.counts)

    @classmethod
    def of(cls, table: Table, codes: Codes, rule: Rule) -> Moves:
        """Those of a table. codes: of its records, negative where one is not to be looked at."""
        from offrecord.fitting.counting import Reference

        places = None if rule.kernel_places is None else table.record_places(rule.kernel_places)
        count = 1 if rule.kernel_places is None else rule.kernel_places.count
        reference = Reference(replace(table.chains, codes=codes), rule.values)
        return cls(reference.counts(rule.order, places, count))

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self.counts.sum())


def objection_to(moves: Moves, mean: Members, policy: TablePolicy) -> tuple[str | None, str | None]:
    """What released transitions say against a model.

    Args:
        moves: transitions among records that are never redacted.
        mean: the model's mean chain.
        policy: the rules that act.

    Returns:
        What speaks clearly against it, or what a person should know all the same; None for nothing.
    """
    counts, rows = moves.counts, mean.rows[0]
    impossible = int(np.where(rows == 0, counts, 0).sum())
    if impossible:
        said = f"{many(impossible, 'transition')} among released records are impossible under it"
        return said, None
    if moves.total < ENOUGH:
        return None, (
            f"only {many(moves.total, 'transition')} are released as they are, too few to tell"
            " whether the table follows the model; that it does is taken on trust"
        )
    visits = counts.sum(axis=-1, keepdims=True)
    p_value, waste = _compared(counts, visits, rows)
    if p_value >= SIGNIFICANCE:
        return None, None
    told = f"p below {SIGNIFICANCE:g}"
    own: Floats = (counts + _PRIOR * rows) / (visits + _PRIOR)
    members = Members(own[np.newaxis], mean.order, mean.places, mean.first)
    leakage = float(policy.leakages(members)[0])
    if leakage > policy.epsilon + math.log(ODDS):
        return (
            f"by the table's own transitions the odds would reach {odds(leakage)} to 1 instead of"
            f" {odds(policy.epsilon)} ({told})"
        ), None
    if waste > WASTE:
        return (
            f"it describes a record {waste:.0%} worse than the table's own transitions do ({told})"
        ), None
    return None, (
        f"the table differs from the model beyond chance ({told}), but not by much: by its own"
        f" transitions the odds would reach {odds(leakage)} to 1"
    )


def _compared(counts: Integers, visits: Integers, rows: Floats) -> tuple[float, float]:
    """The p-value of the model in a likelihood-ratio test, and what a record costs more under it,
    as a share of its entropy.
    """
    from scipy.stats import chi2

    own = counts / np.maximum(visits, 1)
    there = (counts > 0) & (visits >= _SEEN)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(there, np.log(np.where(there, own / rows, 1.0)), 0.0)
        costs = np.where(there, np.log(np.where(there, own, 1.0)), 0.0)
    statistic = max(2 * float((counts * ratios).sum()), 0.0)
    free = np.maximum(np.count_nonzero(rows, axis=-1) - 1, 0)
    degrees = int((free * (visits[..., 0] >= _SEEN)).sum())
    if degrees == 0:
        return 1.0, 0.0
    entropy = -float((counts * costs).sum())
    excess = max(statistic - degrees, 0.0) / 2
    return float(chi2.sf(statistic, degrees)), excess / entropy if entropy > 0 else math.inf


# ---- before a value is looked at


def check_origin(origin: Origin, order_kind: str, step: Step | None, zone: str | None) -> None:
    """InputError unless a table is read as the data were that its model was learned from."""
    if origin.order != order_kind:
        kinds = {"row": "the order of rows", "integer": "whole numbers", "time": "times"}
        raise InputError(
            f"the model was learned from records ordered by {kinds[origin.order]}, not by"
            f" {kinds[order_kind]}: it is not the model of these"
        )
    known = None if origin.step is None else Step.parsed(origin.step)
    same = known is step if known is None or step is None else known.same(step, zone)
    if not same:
        fitted, asked = (f"--step {one.text}" if one else "no --step" for one in (known, step))
        remedy = f"give {fitted}" if known else f"fit it with {asked}"
        raise InputError(
            f"the model was learned with {fitted}, but is used with {asked}: it says how records"
            f" change from one such step to the next; {remedy}, or fit a model for this step"
        )


def sparse(pairs: int, linked: int) -> str | None:
    """What speaks against a step at which hardly any record has a neighbour."""
    if pairs < NEIGHBOURS or linked >= SPARSE * pairs:
        return None
    return (
        f"only {linked:,} of {pairs:,} neighbouring rows are one --step apart: records come at"
        " another step than that"
    )


def spaced(origin: Origin, spacing: float | None) -> str | None:
    """What speaks against a model whose records came at another distance, without a step."""
    if not origin.spacing or not spacing:
        return None
    if max(origin.spacing / spacing, spacing / origin.spacing) <= SPACING:
        return None
    unit = " seconds" if origin.order == "time" else ""
    return (
        f"neighbours are {spacing:g}{unit} apart (the median), but {origin.spacing:g}{unit} in the"
        " data that the model was learned from"
    )
