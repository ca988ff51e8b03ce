"""Deciding by local rules: each run's rules are laid onto the records around it.

Where several fall on one record, the largest redaction probability of its value counts (F3), and
one coin decides. Missing records count in distances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
        low, high = rows_between(
            chains, layout.chain, layout.first - goes[:, LEFT], layout.last + goes[:, RIGHT]
        )
        surely = filled(len(chains.codes), low, high)
        return cls(chains, layout, book, rules, certain, margins, surely)

    def redacted(self, draw: Draw) -> Mask:
        """(n,) which records are redacted: surely, or where the draw lies below the largest
        threshold of the record's value.
        """
        if not self._is_partial:
            return self.surely
        # one coin and the larger threshold: more redaction never leaks more (F3)
        limits = self._laid(_by_code(self._rows), self.chains.codes, np.maximum)
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
        bits = np.uint64(1) << np.arange(self._rows.shape[1], dtype=np.uint64)
        always = np.bitwise_or.reduce((self._rows == 1) * bits, axis=1)
        nothing = np.broadcast_to(np.int8(0), self.chains.codes.shape)
        surely = self._laid(always[:, np.newaxis], nothing, np.bitwise_or) == bits.sum()
        ever = np.any(self._rows > 0, axis=1).astype(np.uint64)
        touched = self._laid(ever[:, np.newaxis], nothing, np.bitwise_or) > 0
        return self.surely | surely, self.surely | touched

    def redaction(self) -> Floats:
        """(n, k) the probability that each record is redacted, by its value."""
        rows = self._rows
        found = np.zeros((len(self.chains.codes), rows.shape[1]))
        limits = _by_code(rows)
        for value in range(rows.shape[1]):
            codes = np.broadcast_to(np.int8(value), self.chains.codes.shape)
            laid = self._laid(limits, codes, np.maximum)
            found[:, value] = np.where(laid == ALWAYS, 1.0, laid / 2.0**64)
        found[self.surely] = 1.0
        return found

    @property
    def _is_partial(self) -> bool:
        """Whether a rule that acts has distances at which some values go and others need not."""
        return bool(np.any(self.book.reaches[self.rules] > self.certain))

    @property
    def _rows(self) -> Floats:
        """(sum of reaches, k) redaction probabilities of all rules, one after the other."""
        return np.concatenate([rule.redaction for rule in self.book.local])

    def _laid(
        self, table: NDArray[np.uint64], codes: NDArray[np.int8], combine: Any
    ) -> NDArray[np.uint64]:
        """(n,) what the rules say about each record beyond their certain parts, combined.

        table: by row of all rules, and by code from its last column on (codes may be negative).
        """
        found = np.zeros(len(codes), dtype=np.uint64)
        columns = table.shape[1]
        flat = table.ravel()
        for rows, at in self._steps():
            own = flat[at * columns + codes[rows] % columns]
            if np.any(rows[1:] <= rows[:-1]):  # edges within one range of absent records
                combine.at(found, rows, own)
            else:
                found[rows] = combine(found[rows], own)
        return found

    def _steps(self) -> Iterator[tuple[Integers, Integers]]:
        """Step by step outwards, rows and their rules' rows among all rules' rows."""
        offsets = np.cumsum(self.book.reaches) - self.book.reaches
        edges = self.layout.first, self.layout.last
        for side, sign in ((LEFT, -1), (RIGHT, 1)):
            rules, edge = self.rules[:, side], edges[side]
            skipped = self.certain[:, side]
            reach = np.minimum(self.book.reaches[rules], self.margins[:, side])
            some = np.flatnonzero(reach > skipped)
            chain, place = self.layout.chain[some], edge[some]
            near, far = place + sign * (skipped[some] + 1), place + sign * reach[some]
            low, high = rows_between(
                self.chains, chain, np.minimum(near, far), np.maximum(near, far)
            )
            row, counts = (low, high - low) if side == RIGHT else (high - 1, high - low)
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


def _by_code(rows: Floats) -> NDArray[np.uint64]:
    """Thresholds by code, those of UNKNOWN and MISSING last.

    A value that the model does not know has the largest threshold of all. No coin is drawn for a
    missing record.
    """
    limits = thresholds(rows)
    found = np.column_stack((limits, limits.max(axis=1), np.zeros(len(limits), dtype=np.uint64)))
    assert UNKNOWN == -2  # from the end, as arrays count
    return found
