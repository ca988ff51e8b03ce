"""Bayes against local rules: each record was redacted by a coin of its own, weighted by its value.

Forward–backward with the probabilities of redaction as emissions is exact.
"""

from __future__ import annotations

import numpy as np

from offrecord.attacks.paths import Core, Inferred, Paths, Shown, read
from offrecord.mechanisms.deciding.layout import LEFT, RIGHT, WHOLE, Layout
from offrecord.mechanisms.deciding.rule_book import NO_SIDE, RuleBook
from offrecord.models.base import Floats, Integers
from offrecord.models.records import Chains, Codes, Runs


def shown_by_rules(
    chains: Chains, codes: Codes, missing: Integers, layout: Layout, book: RuleBook
) -> Shown:
    """What local rules leave of a table."""
    k = book.rules[0].k if book.rules else int(codes.max(initial=1)) + 1
    holes = np.setdiff1d(np.flatnonzero(codes < 0), missing)
    chances = redaction_chances(layout, book, chains.chain_of[holes], chains.places[holes], k)
    unsure = ~np.all(chances == 1.0, axis=1) & np.any(chances > 0.0, axis=1)
    return Shown.of(chains, codes, k, holes[unsure], chances[unsure])


def redaction_chances(
    layout: Layout, book: RuleBook, chain: Integers, place: Integers, k: int
) -> Floats:
    """(r, k) the probability that records are redacted, given their value: the largest of all
    rules that reach them (F3); 1 inside cores.
    """
    found = np.zeros((len(chain), k))
    rules = book.of(layout.kinds, layout.places)
    width = int(layout.ends.max(initial=0)) + 2
    firsts, lasts = (layout.chain * width + one for one in (layout.first, layout.last))
    key = chain * width + place
    most = int(book.reaches.max(initial=0))
    # Cores of one chain may overlap (order 2 and more), so both ends are sorted, and no core that
    # lies further off than the longest reach matters.
    low = np.searchsorted(lasts, np.maximum(key - most, chain * width))
    high = np.searchsorted(firsts, np.minimum(key + most, chain * width + width - 1), side="right")
    for step in range(int((high - low).max(initial=0))):
        some = np.flatnonzero(low + step < high)
        core = low[some] + step
        before, after = layout.first[core] - place[some], place[some] - layout.last[core]
        found[some[(before <= 0) & (after <= 0)]] = 1.0
        for side, distance in ((LEFT, before), (RIGHT, after)):
            number = rules[core, side]
            reached = (distance > 0) & (number != NO_SIDE) & (distance <= book.reaches[number])
            for one in np.unique(number[reached]).tolist():
                at = np.flatnonzero(reached & (number == one))
                chances = book.local[one].redaction[distance[at] - 1]
                found[some[at]] = np.maximum(found[some[at]], chances)
        whole = layout.kinds[core] == WHOLE
        found[some[whole]] = 1.0
    return found


def inferred(paths: Paths, layout: Layout, runs: Runs) -> Inferred:
    """What the model's own attacker infers about each run."""
    order, k = paths.mean.order, paths.mean.k
    ratio = np.zeros(runs.count)
    prior, posterior = np.full((2, runs.count, k), np.nan)
    for at in np.flatnonzero(layout.kinds != WHOLE).tolist():
        chain, first, last = (int(one[at]) for one in (layout.chain, layout.first, layout.last))
        near = first + order - 1
        core = Core(chain, first, last, (int(runs.first[at]), int(runs.last[at])))
        left, right = paths.left(chain, near, first), paths.right(chain, last)
        ratio[at], prior[at], posterior[at] = read(paths, core, left, right)
    return Inferred(ratio, prior, posterior)
