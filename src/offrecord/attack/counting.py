"""Counting: what the released values themselves say, whatever the model says.

Patterns just beyond the rule's reach are counted beside records that are never redacted; these show
what the same patterns beside a private record would have leaked (plausible chains, section 6).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from offrecord.fitting.audit import Dependence, dependence
from offrecord.fitting.counting import Reference
from offrecord.fitting.patterns import Line, odds, patterns, visible
from offrecord.fitting.patterns import counted as cases_of
from offrecord.models.base import Label
from offrecord.text import many

_GAP = 64  # records beyond two windows that patterns never reach; longer gaps are cut to this


class Counted(NamedTuple):
    """The largest odds that were counted.

    odds: their lower 95 % limit; None if no pattern has enough cases. visible: the least true odds
    that this table would show to exceed e^ε, ∞ if none. pattern: what was counted. size: how many
    records on each side of a record were left out.
    """

    odds: float | None
    visible: float
    pattern: str | None
    size: int

    def exceeds(self, epsilon: float) -> bool:
        """Whether more was counted than e^ε allows."""
        return self.odds is not None and self.odds > math.exp(epsilon)

    def sentence(self, epsilon: float) -> str:
        """What was counted, what would show, and the conclusion."""
        where = f"{many(self.size, 'record')} and more away"
        if self.odds is None:
            return f"counting: too few cases of any pattern {where} to count odds"
        seen = f"odds of {self.visible:.3g} would show" if self.visible < math.inf else "none show"
        said = "MORE than" if self.exceeds(epsilon) else "no more than"
        return (
            f"counting: patterns {where} show odds of at least {self.odds:.3g} to 1"
            f" ({self.pattern}; {seen}): {said} the {math.exp(epsilon):.3g} that ε allows"
        )


def counted(
    reference: Reference, labels: Sequence[Label], size: int, epsilon: float, *, once: bool
) -> Counted:
    """Count patterns.

    Args:
        reference: released values of records that are never redacted.
        labels: the values.
        size: how many records on each side of a record are left out, as the rule would.
        epsilon: the budget.
        once: of a chain, cases count once, as where all chains have the same steps.
    """
    line = Line.of(reference, 2 * size + _GAP, None, once)
    best, least, named = None, math.inf, None
    for pattern in patterns(line, size):
        found = cases_of(line, pattern, max(2 * size, 1))
        largest = None if found is None else odds(found)
        if found is None or largest is None:
            continue
        least = min(least, visible(found, math.exp(epsilon)))
        ratio, (value, other, _) = largest
        if best is None or ratio > best:
            best = ratio
            named = f"{pattern.name}, beside {labels[value]!r} and {labels[other]!r}"
    return Counted(best, least, named, size)


def neighbours(reference: Reference) -> Dependence | None:
    """What the next chain's record at the same time says, beyond what all chains have in common;
    None where too few chains have records at the same times.
    """
    return dependence(reference) if reference.units > 1 else None
