"""Whether records were made private because of their values.

The guarantee assumes that they were not: who takes all sick days off the record, and no others, has
revealed the sick days, whatever is redacted. So the values of private records are compared with
those of their chains. Each run of private records counts once, by its first record, and only if it
is far from the one before it: had it been put anywhere in its chain, it would show a value as often
as the chain does. The number of runs that show a value is then a sum of independent truth values
with different probabilities, and by a theorem of Hoeffding (On the distribution of the number of
successes in independent trials, 1956) its tails, one or more away from the mean, are at most those
of a binomial with the same mean: an exact test that is never too sure.

What it finds depends on private values. So it goes into no artefact: it is a warning, for the one
who runs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.records import Chains, Runs
from offrecord.tables.checks.check import Added, DataCheck, Finding, Part
from offrecord.tables.private import rows_of

if TYPE_CHECKING:
    from offrecord.tables.plan import Plan
    from offrecord.tables.table import Table

#: Of so many tables whose private records were chosen whatever their values, at most one gets the
#: warning.
RARELY = 1000
_LOOKED_AT = 500  # runs of a part, at most, about


class ChosenByValues(DataCheck):
    """Compares the values of private records with those of their chains."""

    def observe(self, part: Part) -> Choice | None:
        if part.gone is None or part.rule.policy is None:
            return None
        return choice_of(part.table, part.rule.values, part.rule.reach)

    def after(self, plan: Plan, observed: Choice) -> Iterator[Finding]:
        if (said := observed.warning()) is not None:
            yield Finding("secret", said)


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Added):
    """How often private runs show each value.

    runs: how many were looked at. seen, expected: (k,) how many show it, and how many would by
    chance.
    """

    runs: int
    seen: Integers
    expected: Floats

    @property
    def p_value(self) -> float:
        """At most: of the value that stands out most, times the number of values."""
        both = zip(self.seen.tolist(), self.expected.tolist(), strict=True)
        return min(2 * len(self.seen) * min(self._tail(*one) for one in both), 1.0)

    def _tail(self, seen: int, mean: float) -> float:
        """How likely so many runs, or more extreme ones, show a value by chance."""
        from scipy.special import bdtr, bdtrc

        if abs(seen - mean) < 1:  # Hoeffding's theorem says nothing so near to the mean
            return 1.0
        share = mean / self.runs
        above = seen > mean
        return float(bdtrc(seen - 1, self.runs, share) if above else bdtr(seen, self.runs, share))

    def warning(self) -> str | None:
        """What a person should know; it does not say which value stands out."""
        if self.p_value * RARELY >= 1:
            return None
        return (
            "private records have other values than the rest of their chains, beyond chance (exact"
            f" test, wrong in less than 1 of {RARELY} tables): if records were made private because"
            " of their value, that choice leaks it, whatever is redacted (docs/tables.md, Opt-outs"
            " chosen by value). This warning depends on private values and is in no file"
        )


def choice_of(table: Table, k: int, apart: int) -> Choice:
    """The first values of private runs against their chains.

    Args:
        table: what is private, and the values.
        k: how many values there are.
        apart: steps after which a chain has about forgotten.
    """
    chains, runs = table.chains, table.runs("run")
    some = runs.part(slice(None, None, max(runs.count // _LOOKED_AT, 1)))
    low, after = rows_of(chains, some.chain, some.first)
    there = low < after
    there[there] = chains.codes[low[there]] >= 0
    kept = _apart(some, there, apart)
    chain, low = some.chain[kept], low[kept]
    own, which = np.unique(chain, return_inverse=True)
    seen = np.bincount(chains.codes[low], minlength=k)
    return Choice(len(kept), seen, _shares(chains, own, k)[which].sum(axis=0))


def _shares(chains: Chains, some: Integers, k: int) -> Floats:
    """(m, k) the share of each value in some chains."""
    sizes = np.diff(chains.starts)[some]
    ends = np.cumsum(sizes)
    rows = np.arange(int(sizes.sum())) + np.repeat(chains.starts[some] - ends + sizes, sizes)
    codes, of = chains.codes[rows], np.repeat(np.arange(len(some)) * k, sizes)
    has_value = codes >= 0
    counts = np.bincount(of[has_value] + codes[has_value], minlength=len(some) * k).reshape(-1, k)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def _apart(runs: Runs, there: Mask, apart: int) -> list[int]:
    """Which runs to take: those that show a value, each far from the one that was taken before."""
    taken: list[int] = []
    before = (-1, 0)
    columns = (one.tolist() for one in (runs.chain, runs.first, runs.last, there))
    for at, (here, begins, ends, shows) in enumerate(zip(*columns, strict=True)):
        if shows and not (here == before[0] and begins - before[1] <= apart):
            taken.append(at)
            before = (here, ends)
    return taken
