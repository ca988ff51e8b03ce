"""Stamping: what decides by local designs.

Each secret's design is laid onto the records around it, like a stamp; where several fall on one
record, the largest redaction probability of each value counts (F3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.blocks import (
    REDACTED,
    Block,
    Decision,
    Draw,
    Expectation,
    Explanation,
    Mask,
    certainty_of,
)
from offrecord.models.base import Floats, Integers, Label
from offrecord.models.records import UNKNOWN, Codes
from offrecord.release import coins
from offrecord.release.coins import Draws, redacts, thresholds

if TYPE_CHECKING:
    from offrecord.mechanisms.local.design import LocalDesign

#: Rows of `Stamping.limits` onto records, which are counted within a block. The last one says
#: whether a record may come twice.
_Lay = Callable[[Integers, Integers, bool], None]


class Stamps(NamedTuple):
    """For each record: the threshold of its own value, the values always redacted (as bits), and
    whether any design falls on it.
    """

    limits: Draws
    certain: NDArray[np.unsignedinteger]
    touched: Mask


@dataclass(frozen=True, eq=False)
class Stamping:
    """Designs ready to be stamped.

    limits: (rows, k) thresholds by distance, of every design the left, then the right; then, of
    every design for a cluster, those from its first to its last record. sizes: (designs, 2) how
    many rows the sides have. rests: (designs, 2) whether everything further out is redacted too.
    insides: (designs,) how many rows a cluster has, 0 for one secret.
    """

    limits: Draws
    sizes: Integers
    rests: Mask
    insides: Integers

    @classmethod
    def of(cls, designs: Sequence[LocalDesign], k: int) -> Stamping:
        """From designs, which are then known by their numbers."""
        sides = [side for design in designs for side in design.sides]
        clusters = [design.inside for design in designs if design.inside is not None]
        rows = np.concatenate([*(one.spelled_out for one in sides + clusters), np.zeros((0, k))])
        sizes = np.array([side.size for side in sides], dtype=np.int64).reshape(-1, 2)
        rests = [(design.left_rest, design.right_rest) for design in designs]
        insides = [0 if design.inside is None else design.inside.size for design in designs]
        return cls(
            thresholds(rows),
            sizes,
            np.array(rests, dtype=bool).reshape(-1, 2),
            np.array(insides, dtype=np.int64),
        )

    @cached_property
    def _offsets(self) -> Integers:
        """(designs, 2) where their rows begin in limits."""
        return (np.cumsum(self.sizes) - self.sizes.ravel()).reshape(-1, 2)

    @cached_property
    def _inside_offsets(self) -> Integers:
        """(designs,) where the rows of clusters begin in limits."""
        return np.asarray(self.sizes.sum() + np.cumsum(self.insides) - self.insides)

    @cached_property
    def _resting(self) -> Mask:
        """(designs,) whether everything further out is redacted on any side."""
        return np.asarray(self.rests.any(axis=1))

    @cached_property
    def _bits(self) -> NDArray[np.unsignedinteger]:
        """(k,) a bit for each value."""
        bits = np.uint64(1) << np.arange(self.limits.shape[1], dtype=np.uint64)
        return bits.astype(np.min_scalar_type(bits.max()))  # most tables have few values

    @cached_property
    def _every(self) -> np.unsignedinteger:
        """The bits of all values."""
        return self._bits.dtype.type(self._bits.sum(dtype=np.uint64))

    @cached_property
    def _always(self) -> NDArray[np.unsignedinteger]:
        """(rows,) the values that a row of limits always redacts, as bits."""
        certain = (self.limits == coins.ALWAYS) * self._bits
        return np.asarray(np.bitwise_or.reduce(certain, axis=1))

    @cached_property
    def _by_code(self) -> Draws:
        """(rows × (k + 2),) the limits of a row by code, those without one of the values before
        the others.
        """
        return np.pad(self.limits, ((0, 0), (-UNKNOWN, 0))).ravel()

    # ---- the three answers

    def decide(self, block: Block, draw: Draw) -> Decision:
        """Redact a record if its draw lies below the largest threshold for its value."""
        stamps = self._stamped(block, block.codes)
        # What is always redacted is so also without a value, or with one that nobody knows.
        redacted = stamps.certain == self._every
        certainty = stamps.touched.view(np.int8) + redacted.view(np.int8)  # NEVER … ALWAYS
        at_times = np.flatnonzero(stamps.touched & ~redacted)
        limits = stamps.limits[at_times]
        redacted[at_times] = limits == coins.ALWAYS
        unsure = at_times[(limits > 0) & (limits < coins.ALWAYS)]
        if len(unsure):
            rows = unsure + block.rows.start
            starts = block.chains.starts
            first, end = np.searchsorted(starts, (block.rows.start, block.rows.stop))
            chain = np.searchsorted(starts[first:end], rows, side="right") + (first - 1)
            drawn = draw(chain, block.chains.order[rows])
            redacted[unsure] = redacts(drawn, stamps.limits[unsure])
        return Decision(redacted, certainty)

    def expect(self, block: Block, masses: Floats) -> Expectation:
        """Each record's probability of leaving, its value being as likely as the model says."""
        rule = self._probabilities(block)
        return Expectation(1.0 - (rule * masses).sum(axis=1), certainty_of(rule))

    def explain(self, block: Block, labels: Sequence[Label]) -> Explanation:
        """The redaction probability of every value of each record."""
        rule = self._probabilities(block)
        columns = {f"{REDACTED} | {label})": rule[:, i] for i, label in enumerate(labels)}
        return Explanation(certainty_of(rule), columns)

    def _probabilities(self, block: Block) -> Floats:
        """(n, k) the redaction probability of every value of each record, whatever they are."""
        columns = []
        for value in range(self.limits.shape[1]):
            limits = self._stamped(block, np.full(block.size, value, dtype=np.int8)).limits
            certain = limits == coins.ALWAYS
            columns.append(np.where(certain, 1.0, limits.astype(np.float64) * 2.0**-64))
        return np.stack(columns, axis=1)

    # ---- stamps

    def _stamped(self, block: Block, codes: Codes) -> Stamps:
        """Stamp each secret's design onto a block. codes: what its values are taken to be."""
        stamps = Stamps(
            np.zeros(block.size, dtype=np.uint64),
            np.zeros(block.size, dtype=self._bits.dtype),
            np.zeros(block.size, dtype=bool),
        )
        columns = self.limits.shape[1] - UNKNOWN

        def lay(row: Integers, at: Integers, twice: bool) -> None:
            own = self._by_code[at * columns + codes[row] - UNKNOWN]
            if twice:  # a record that comes twice counts twice
                np.maximum.at(stamps.limits, row, own)
                np.bitwise_or.at(stamps.certain, row, self._always[at])
            else:
                stamps.limits[row] = np.maximum(stamps.limits[row], own)
                stamps.certain[row] |= self._always[at]
            stamps.touched[row] = True

        start, secrets, which = block.rows.start, block.secrets, block.which
        low, high = secrets.low - start, secrets.high - start
        near = [bound - start for bound in self._bounds(block, to_the_end=False)]
        far = near
        if self._resting[which].any():
            far = [bound - start for bound in self._bounds(block, to_the_end=True)]
        together = self.insides[which] > 0
        whole = np.where(together, low, high)  # of one secret everything is redacted
        for begin, end in ((low, whole), (far[0], near[0]), (near[1], far[1])):
            inside = _ranges(begin, end)
            stamps.limits[inside] = coins.ALWAYS
            stamps.certain[inside] = self._every
            stamps.touched[inside] = True
        first_row = self._offsets.take(which, axis=0) - 1  # of distance 0, if it had one
        _walk(block, low - 1, secrets.first, -1, low - near[0], first_row[:, 0], lay)
        _walk(block, high, secrets.last, 1, near[1] - high, first_row[:, 1], lay)
        if together.any():
            redacting = np.asarray(self.limits.any(axis=1))

            def lay_inside(row: Integers, at: Integers, twice: bool) -> None:
                kept = redacting[at]
                lay(row[kept], at[kept], twice)

            inner = self._inside_offsets[which] - 1
            _walk(block, low, secrets.first - 1, 1, high - whole, inner, lay_inside)
        return stamps

    def _bounds(self, block: Block, *, to_the_end: bool) -> tuple[Integers, Integers]:
        """The first row within each secret's design, and the one after the last."""
        # taken, which is far faster than an index into rows of two
        sizes = self.sizes.take(block.which, axis=0)
        rests = self.rests.take(block.which, axis=0) & to_the_end
        return block.secrets.bounds(block.chains, sizes, rests)


def _walk(
    block: Block,
    nearest: Integers,
    place: Integers,
    sign: int,
    counts: Integers,
    first_row: Integers,
    lay: _Lay,
) -> None:
    """Lay one side of each secret: `counts` records outwards from row `nearest`, each with the row
    of its distance from the secret's own `place`.
    """
    steps = None if block.chains.steps is None else block.chains.steps[block.rows]
    if len(counts) and int(counts.max()) > len(counts):  # few secrets, far-reaching designs
        for i in np.flatnonzero(counts):
            row = nearest[i] + sign * np.arange(counts[i])
            away = np.arange(counts[i]) + 1 if steps is None else sign * (steps[row] - place[i])
            lay(row, first_row[i] + away, False)
        return
    twice = bool(np.any(nearest[1:] <= nearest[:-1]))  # secrets may lie in one gap
    for out in range(int(counts.max(initial=0))):
        kept = counts > out
        if not kept.all():
            some = np.flatnonzero(kept)
            nearest, place, counts, first_row = (
                one[some] for one in (nearest, place, counts, first_row)
            )
        row = nearest + sign * out
        distance = out + 1 if steps is None else sign * (steps[row] - place)
        lay(row, first_row + distance, twice)


def _ranges(begin: Integers, end: Integers) -> Integers:
    """All numbers begin[i] … end[i] − 1, one range after the other."""
    counts = np.maximum(end - begin, 0)
    if counts.max(initial=0) <= 1:
        return np.asarray(begin[counts > 0])
    offsets = np.repeat(begin - np.cumsum(counts) + counts, counts)
    return np.asarray(offsets + np.arange(int(counts.sum())))
