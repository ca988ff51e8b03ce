"""Deciding by local rules: each run's rules are laid onto the records around it.

Where several fall on one record, the largest redaction probability of its value counts (F3), and
one coin decides. Missing records count in distances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.deciding.layout import (
    LEFT,
    RIGHT,
    Draw,
    Layout,
    Mask,
    filled,
    rows_between,
)
from offrecord.mechanisms.deciding.rule_book import RuleBook
from offrecord.mechanisms.rules import LocalRule
from offrecord.models.base import Floats, Integers
from offrecord.models.records import MISSING, UNKNOWN, Chains
from offrecord.release.coins import ALWAYS, redacts, thresholds


@dataclass(frozen=True, eq=False, repr=False)
class LocalPlan:
    """Where local rules act, by positions alone.

    rules: (r, 2) their numbers for each core. certain: (r, 2) how many of their nearest distances
    redact whatever the value. margins: (r, 2) records up to the chain's ends, absent ones too.
    surely: (n,) which records lie in cores and in those distances.
    """

    chains: Chains
    layout: Layout
    book: RuleBook
    rules: Integers
    certain: Integers
    margins: Integers
    surely: Mask

    @classmethod
    def of(cls, chains: Chains, layout: Layout, book: RuleBook) -> LocalPlan:
        """From the layout of the runs and the rules."""
        rules = book.of(layout.kinds, layout.places)
        margins = np.stack((layout.first, layout.ends[layout.chain] - layout.last), axis=1)
        certain = np.array([*map(_certain_part, book.local), 0])[rules]
        goes = np.minimum(certain, margins)
        span = layout.first - goes[:, LEFT], layout.last + goes[:, RIGHT]
        surely = filled(len(chains.codes), *rows_between(chains, layout.chain, *span))
        return cls(chains, layout, book, rules, certain, margins, surely)

    def redacted(self, draw: Draw) -> Mask:
        """(n,) which records are redacted: surely, or where the draw lies below the largest
        threshold of the record's value.
        """
        if not self._is_partial:
            return self.surely
        limits = self._laid(_by_code(self._rows), self.chains.codes)
        found = self.surely | (limits == ALWAYS)
        missing = np.flatnonzero(self.chains.codes == MISSING)
        if len(missing):
            found[missing] = self.certainty()[0][missing]
        unsure = np.flatnonzero((limits > 0) & ~found)
        if len(unsure):
            chain = np.searchsorted(self.chains.starts, unsure, side="right") - 1
            found[unsure] = redacts(draw(chain, self.chains.order[unsure]), limits[unsure])
        return np.asarray(found)

    def certainty(self) -> tuple[Mask, Mask]:
        """(n,) which records go whatever their value, and which go at times or always."""
        if not self._is_partial:
            return self.surely, self.surely
        always, ever = np.ones(self.surely.shape, dtype=bool), self.surely.copy()
        for limits in self._by_value():
            always &= limits == ALWAYS
            ever |= limits > 0
        return self.surely | always, ever

    def redaction(self) -> Floats:
        """(n, k) the probability that each record is redacted, by its value."""
        laid = [np.where(one == ALWAYS, 1.0, one / 2.0**64) for one in self._by_value()]
        found = np.stack(laid, axis=1)
        found[self.surely] = 1.0
        return found

    # (n,) limits beyond the certain parts, value by value.
    def _by_value(self) -> Iterator[NDArray[np.uint64]]:
        limits = _by_code(self._rows)
        for value in range(self._rows.shape[1]):
            yield self._laid(limits, np.broadcast_to(np.int8(value), self.chains.codes.shape))

    @property
    def _is_partial(self) -> bool:
        """Whether a rule that acts has distances at which some values go and others need not."""
        return bool(np.any(self.book.reaches[self.rules] > self.certain))

    @property
    def _rows(self) -> Floats:
        """(sum of reaches, k) redaction probabilities of all rules, one after the other."""
        return np.concatenate([rule.redaction for rule in self.book.local])

    # (n,) the largest limit of each record beyond the rules' certain parts. limits: by row of all
    # rules, and by code from its last column on (codes may be negative).
    def _laid(self, limits: NDArray[np.uint64], codes: NDArray[np.int8]) -> NDArray[np.uint64]:
        found = np.zeros(len(codes), dtype=np.uint64)
        columns, flat = limits.shape[1], limits.ravel()
        for rows, at in self._steps():
            own = flat[at * columns + codes[rows] % columns]
            if np.any(rows[1:] <= rows[:-1]):  # edges within one range of absent records
                np.maximum.at(found, rows, own)
            else:
                # one coin and the larger limit: more redaction never leaks more (F3)
                found[rows] = np.maximum(found[rows], own)
        return found

    # Step by step outwards, rows and their rules' rows among all rules' rows.
    def _steps(self) -> Iterator[tuple[Integers, Integers]]:
        for side, sign in ((LEFT, -1), (RIGHT, 1)):
            yield from self._outwards(side, sign)

    def _outwards(self, side: int, sign: int) -> Iterator[tuple[Integers, Integers]]:
        rules, skipped = self.rules[:, side], self.certain[:, side]
        reach = np.minimum(self.book.reaches[rules], self.margins[:, side])
        some = np.flatnonzero(reach > skipped)
        edge = self.layout.first if side == LEFT else self.layout.last
        chain, place = self.layout.chain[some], edge[some]
        near, far = place + sign * (skipped[some] + 1), place + sign * reach[some]
        low, high = rows_between(self.chains, chain, np.minimum(near, far), np.maximum(near, far))
        row, counts = low if side == RIGHT else high - 1, high - low
        offsets = np.cumsum(self.book.reaches) - self.book.reaches
        first = offsets[rules[some]] - 1  # the row of distance 0, if it had one
        for out in range(int(counts.max(initial=0))):
            if counts.min(initial=out + 1) <= out:
                kept = np.flatnonzero(counts > out)
                row, counts, first = row[kept], counts[kept], first[kept]
                chain, place = chain[kept], place[kept]
            here = row + sign * out
            yield here, first + sign * (self._places(here, chain) - place)

    def _places(self, rows: Integers, chain: Integers) -> Integers:
        if self.chains.steps is None:
            return np.asarray(rows - self.chains.starts[chain])
        return self.chains.steps[rows]


# How many of the nearest distances redact whatever the value.
def _certain_part(rule: LocalRule) -> int:
    return int(np.argmin(np.append(np.all(rule.redaction == 1, axis=1), False)))


# Thresholds by code, those of UNKNOWN and MISSING last: of a value that the model does not know it
# is the largest of all, and no coin is drawn for a missing record.
def _by_code(rows: Floats) -> NDArray[np.uint64]:
    limits = thresholds(rows)
    found = np.column_stack((limits, limits.max(axis=1), np.zeros(len(limits), dtype=np.uint64)))
    assert UNKNOWN == -2  # from the end, as arrays count
    return found
