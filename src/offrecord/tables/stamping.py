"""The engine's inner step: the values and private positions of chains in, which of their records to
redact out.

Each chain is decided by itself: by its own values, its own secrets and its own records' draws.
Stamping is the first form: a local design around each secret. A mechanism that looks at the values
around a secret (its owner has them all) is another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from offrecord.designs.library import Designs
from offrecord.models.base import Floats, Integers
from offrecord.release.coins import ALWAYS, Draws, redacts, thresholds
from offrecord.tables.cells import MISSING, Codes
from offrecord.tables.chains import Chains
from offrecord.tables.secrets import Secrets

#: For rows of a table, their draws.
Drawn = Callable[[Integers], Draws]


class Decision(NamedTuple):
    """redacted: (n,) which records leave empty. regions: (n,) 0, 1, 2 for S, M and L: by the rule,
    not by the draws.
    """

    redacted: NDArray[np.bool_]
    regions: NDArray[np.int8]


class InnerStep(Protocol):
    """What decides. It is asked for a stretch of whole chains at a time; rows are counted within
    the whole table.
    """

    def decide(
        self, chains: Chains, secrets: Secrets, which: Integers, rows: slice, drawn: Drawn
    ) -> Decision:
        """Decide the records in `rows`, given the secrets there and which design each has."""
        ...


class Stamps(NamedTuple):
    """For each record: the threshold of its own value, the values always redacted (as bits), and
    whether any is at times.
    """

    limits: Draws
    certain: NDArray[np.uint64]
    touched: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Stamping:
    """Stamp designs around secrets and redact a record if its draw lies below the largest threshold
    for its value.
    """

    designs: Designs

    @cached_property
    def _limits(self) -> Draws:
        """(rows, k) thresholds by distance: of every design the left, then the right."""
        rows = [rows for design in self.designs.designs for rows in (design.left, design.right)]
        return thresholds(np.concatenate([*rows, np.zeros((0, self.designs.model.k))]))

    @cached_property
    def _sizes(self) -> Integers:
        """(designs, 2) how many rows the left and the right have."""
        sizes = [(len(design.left), len(design.right)) for design in self.designs.designs]
        return np.array(sizes, dtype=np.int64).reshape(-1, 2)

    @cached_property
    def _offsets(self) -> Integers:
        """(designs, 2) where they begin in _limits."""
        return (np.cumsum(self._sizes) - self._sizes.ravel()).reshape(-1, 2)

    @cached_property
    def _rests(self) -> NDArray[np.bool_]:
        """(designs, 2) whether everything further out is redacted too."""
        rests = [(design.left_rest, design.right_rest) for design in self.designs.designs]
        return np.array(rests, dtype=bool).reshape(-1, 2)

    @cached_property
    def _always(self) -> tuple[NDArray[np.uint64], np.uint64]:
        """(rows,) the values that a row of _limits always redacts, as bits; and all of them."""
        bits = np.uint64(1) << np.arange(self.designs.model.k, dtype=np.uint64)
        return ((self._limits == ALWAYS) * bits).sum(axis=1, dtype=np.uint64), np.uint64(
            bits.sum(dtype=np.uint64)
        )

    def stamped(
        self,
        chains: Chains,
        secrets: Secrets,
        which: Integers,
        rows: slice,
        codes: Codes | None = None,
    ) -> Stamps:
        """Stamp each secret's design: where several fall on a record, the maximum for each value
        counts (F3).

        codes: what the values of these records are taken to be, instead of what they are.
        """
        size = rows.stop - rows.start
        codes = chains.codes[rows] if codes is None else codes
        steps = None if chains.steps is None else chains.steps[rows]
        stamps = Stamps(
            np.zeros(size, dtype=np.uint64),
            np.zeros(size, dtype=np.uint64),
            np.zeros(size, dtype=bool),
        )
        always, every = self._always
        nothing = np.zeros_like(self._rests[which])
        near = [bound - rows.start for bound in secrets.bounds(chains, self._sizes[which], nothing)]
        far = [
            bound - rows.start
            for bound in secrets.bounds(chains, self._sizes[which], self._rests[which])
        ]
        low, high = secrets.low - rows.start, secrets.high - rows.start
        for begin, end in ((low, high), (far[0], near[0]), (near[1], far[1])):
            inside = _ranges(begin, end)
            stamps.limits[inside], stamps.certain[inside], stamps.touched[inside] = (
                ALWAYS,
                every,
                True,
            )

        def lay(row: Integers, at: Integers) -> None:
            """Rows of _limits onto records; a record may come twice."""
            code = codes[row]
            own = np.where(code >= 0, self._limits[at, code], np.uint64(0))
            np.maximum.at(stamps.limits, row, own)
            np.bitwise_or.at(stamps.certain, row, always[at])
            stamps.touched[row] = True

        for side, counts in ((0, low - near[0]), (1, near[1] - high)):
            sign = 1 if side else -1
            nearest, place = (high, secrets.last) if side else (low - 1, secrets.first)
            offset = self._offsets[which, side] - 1
            if len(counts) and int(counts.max()) > len(counts):  # few secrets, far-reaching designs
                for i in np.flatnonzero(counts):
                    row = nearest[i] + sign * np.arange(counts[i])
                    distance = (
                        np.arange(1, counts[i] + 1)
                        if steps is None
                        else sign * (steps[row] - place[i])
                    )
                    lay(row, offset[i] + distance)
                continue
            active, out = np.flatnonzero(counts), 0
            while len(active):
                row = nearest[active] + sign * out
                distance = out + 1 if steps is None else sign * (steps[row] - place[active])
                lay(row, offset[active] + distance)
                out += 1
                active = active[counts[active] > out]
        return stamps

    def decide(
        self, chains: Chains, secrets: Secrets, which: Integers, rows: slice, drawn: Drawn
    ) -> Decision:
        """Redact what the stamps and the draws say."""
        stamps = self.stamped(chains, secrets, which, rows)
        touched = np.flatnonzero(stamps.touched)
        redacted, regions = (
            np.zeros(len(stamps.touched), dtype=bool),
            np.zeros(len(stamps.touched), dtype=np.int8),
        )
        limits = stamps.limits[touched]
        regions[touched] = np.where(
            stamps.certain[touched] == self._always[1], np.int8(2), np.int8(1)
        )
        redacted[touched] = (limits == ALWAYS) | (
            regions[touched] == 2
        )  # in region L also what has no value, or none known
        unsure = touched[(limits > 0) & (limits < ALWAYS)]
        if len(unsure):
            redacted[unsure] = redacts(drawn(unsure + rows.start), stamps.limits[unsure])
        return Decision(redacted, regions)

    def probabilities(
        self, chains: Chains, secrets: Secrets, which: Integers, rows: slice
    ) -> Floats:
        """(rows, k) the redaction probability of every value of each record: by the rule, whatever
        the records are.
        """
        columns = []
        for value in range(self.designs.model.k):
            assumed = np.full(rows.stop - rows.start, value, dtype=np.int8)
            limits = self.stamped(chains, secrets, which, rows, assumed).limits
            columns.append(np.where(limits == ALWAYS, 1.0, limits.astype(np.float64) * 2.0**-64))
        return np.stack(columns, axis=1)


def windows_release(designs: Designs, chains: Chains, secrets: Secrets, which: Integers) -> int:
    """How many records with a value the best data-independent mechanism would release: all outside
    its windows.
    """
    valued = None if chains.whole else np.concatenate(([0], np.cumsum(chains.codes != MISSING)))
    total = len(chains.codes) if valued is None else int(valued[-1])
    if secrets.count == 0:
        return total
    sizes = np.array([design.window for design in designs.designs], dtype=np.int64)
    rooms = np.array([design.surrounding[:2] for design in designs.designs], dtype=np.int64)
    begin, end = secrets.bounds(chains, sizes[which], (sizes >= rooms)[which])
    begin = np.maximum(
        begin, np.maximum.accumulate(np.concatenate(([0], end[:-1])))
    )  # count no row twice
    end = np.maximum(end, begin)
    return total - int(
        (end - begin).sum() if valued is None else (valued[end] - valued[begin]).sum()
    )


def _ranges(begin: Integers, end: Integers) -> Integers:
    """All numbers begin[i] … end[i] − 1, one range after the other."""
    counts = np.maximum(end - begin, 0)
    if counts.max(initial=0) <= 1:
        return np.asarray(begin[counts > 0])
    return np.asarray(
        np.repeat(begin - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
    )
