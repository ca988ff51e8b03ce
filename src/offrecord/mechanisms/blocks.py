"""Secrets among records, and what is decided about them: all that decides a table sees of it.

Nothing here knows of files, columns or keys; coins come as a function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.models.records import Chains, Codes
from offrecord.release.coins import Counter

Mask: TypeAlias = NDArray[np.bool_]
#: Whether a record is redacted, by the rule and whatever is drawn: for some values at times, for
#: all of them always. (n,) one for each record.
NEVER, AT_TIMES, ALWAYS = 0, 1, 2
Certainty: TypeAlias = NDArray[np.int8]
#: What these are called, as the paper calls its regions; and what is private itself.
REGIONS = ("S", "M", "L")
PRIVATE = "private"
#: How columns begin that tell how likely a record is redacted.
REDACTED = "Pr(redacted"


@dataclass(frozen=True, eq=False, repr=False)
class Secrets:
    """What is protected, sorted: the chain, the places of the first and last record, and the rows
    low … high − 1 it holds.

    order: of the first record.
    """

    chain: Integers
    first: Integers
    last: Integers
    low: Integers
    high: Integers
    order: Integers

    @property
    def count(self) -> int:
        """How many secrets there are."""
        return len(self.first)

    def part(self, begin: int, end: int) -> Secrets:
        """The secrets begin … end − 1."""
        return Secrets(*(values[begin:end] for values in vars(self).values()))

    def joined(self, begin: Integers, end: Integers) -> Secrets:
        """Clusters of them as one each: of the secrets begin … end − 1 from the first record to the
        last one.
        """
        last = end - 1
        return Secrets(
            self.chain[begin],
            self.first[begin],
            self.last[last],
            self.low[begin],
            self.high[last],
            self.order[begin],
        )

    def bounds(self, chains: Chains, sizes: Integers, rests: Mask) -> tuple[Integers, Integers]:
        """The first row, and the one after the last, within sizes[:, 0] to a secret's left and
        sizes[:, 1] to its right; where it rests, all rows of its chain on that side.
        """
        begin, end = chains.starts[self.chain], chains.starts[self.chain + 1]
        if chains.steps is None:
            left, right = self.low - sizes[:, 0], self.high + sizes[:, 1]
        else:
            base, widest = self.chain * chains.width, chains.width - 1
            nearest = base + np.maximum(self.first - sizes[:, 0], 0)
            farthest = base + np.minimum(self.last + sizes[:, 1], widest)
            left = np.searchsorted(chains.keys, nearest, side="left")
            right = np.searchsorted(chains.keys, farthest, side="right")
        return (
            np.where(rests[:, 0], begin, np.maximum(left, begin)),
            np.where(rests[:, 1], end, np.minimum(right, end)),
        )

    def rooms(self, chains: Chains) -> tuple[Integers, Integers]:
        """How many records, gaps included, each secret has to its left and right."""
        ends = chains.starts[self.chain + 1] - 1
        farthest = ends - chains.starts[self.chain] if chains.steps is None else chains.steps[ends]
        return self.first, farthest - self.last


class Block(NamedTuple):
    """Whole chains at `rows` of a table, the secrets there, and which design each of them has."""

    chains: Chains
    rows: slice
    secrets: Secrets
    which: Integers

    @property
    def size(self) -> int:
        """How many records it has."""
        return int(self.rows.stop - self.rows.start)

    @property
    def codes(self) -> Codes:
        """(n,) the values of its records."""
        return self.chains.codes[self.rows]


class Draw(Protocol):
    """Keyed coins: the same draw for the same record, purpose and counter, another for any
    other.
    """

    def __call__(
        self,
        chain: Integers,
        order: NDArray[np.integer],
        purpose: bytes = ...,
        counter: Counter = ...,
    ) -> NDArray[np.uint64]:
        """(r,) 64 bits each for records of chains that hold a secret, by their order values.

        counter: which of a record's draws for this purpose, below 2⁴⁸.
        """


class Decision(NamedTuple):
    """redacted: (n,) which records leave empty. certainty: by the rule, not by the draws."""

    redacted: Mask
    certainty: Certainty


class Expectation(NamedTuple):
    """released: (n,) the probability that each record leaves, by the rule and the model."""

    released: Floats
    certainty: Certainty


class Explanation(NamedTuple):
    """rule: (n,) numbers for each record, in columns with a name."""

    certainty: Certainty
    rule: dict[str, Floats]


def certainty_of(rows: Floats) -> Certainty:
    """(n,) of records with redaction probabilities (n, k)."""
    always, ever = np.all(rows == 1, axis=1), np.any(rows > 0, axis=1)
    return np.where(always, ALWAYS, ever).astype(np.int8)


def blocks(
    chains: Chains, secrets: Secrets, which: Integers, size: int, cuts: Integers | None = None
) -> Iterator[Block]:
    """Whole chains of about so many records each, with the secrets in them. A short rest goes with
    the last of them: what is done once for each would be done for little.

    cuts: the numbers of chains with which a block may begin, and of all of them; each, without it.
    """
    starts = chains.starts if cuts is None else chains.starts[cuts]
    count, begin = len(starts) - 1, 0
    while begin < count:
        end = int(np.searchsorted(starts, starts[begin] + size, side="right")) - 1
        end = min(max(end, begin + 1), count)
        if starts[-1] - starts[end] <= size // 4:
            end = count
        ends = (begin, end) if cuts is None else cuts[[begin, end]]
        first, last = np.searchsorted(secrets.chain, ends).tolist()
        rows = slice(int(starts[begin]), int(starts[end]))
        yield Block(chains, rows, secrets.part(first, last), which[first:last])
        begin = end
