"""Deciding parts of a table, once the designs of all of it are known: which records leave empty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from offrecord.designs.library import Designs, Model
from offrecord.designs.sharing import Needs
from offrecord.errors import InputError
from offrecord.fitting.counting import Counts
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain
from offrecord.models.phased import PhasedChain
from offrecord.tables.cells import MISSING, UNKNOWN
from offrecord.tables.chains import Arranged, Chains
from offrecord.tables.choice import Choice, choice_of
from offrecord.tables.model_check import model_counts
from offrecord.tables.parts import Part
from offrecord.tables.secrets import Secrets
from offrecord.tables.stamping import InnerStep, Stamping, windows_release
from offrecord.tables.telling import Sample
from offrecord.tables.writing import emptied, released_values, without_hidden

if TYPE_CHECKING:
    import polars as pl

_BLOCK = 1 << 18  # rows that are decided at a time: few enough to stay in the processor's cache
_STRIP = 1 << 15  # and fewer still where numbers of 64 bits are computed with
_ODD = np.array(
    [0x9E3779B97F4A7C15, 0xD1B54A32D192ED03], dtype=np.uint64
)  # of order values, and of what is shown
REGIONS = ("S", "M", "L", "private")


@dataclass(frozen=True)
class Tally:
    """Counts of what was decided: rows by region (S, M, L with private ones), and records that
    leave, also by the window.

    moves: transitions among records of region S, as the model counts them. choice: which values
    private records have. Both None where nothing was decided. kept: released rows with their kept
    cells, a sample of them. content: a digest of what leaves of the chains that hold a secret,
    record by record, for the key's owner alone.
    """

    regions: tuple[int, ...] = (0, 0, 0)
    released: float = 0
    window: int = 0
    moves: Counts | None = None
    choice: Choice | None = None
    kept: Sample | None = None
    content: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            tuple(a + b for a, b in zip(self.regions, other.regions, strict=True)),
            self.released + other.released,
            self.window + other.window,
            _sum(self.moves, other.moves),
            _sum(self.choice, other.choice),
            _sum(self.kept, other.kept),
            self.content ^ other.content,
        )

    @property
    def rows(self) -> int:
        """How many were decided."""
        return sum(self.regions)

    def named_regions(self, private: int) -> dict[str, int]:
        """Rows by region; private ones, which are always redacted, named apart."""
        small, middle, large = self.regions
        return dict(zip(REGIONS, (small, middle, large - private, private), strict=True))


def _sum(one: Any, other: Any) -> Any:
    """The sum of what is there."""
    return other if one is None else one if other is None else one + other


@dataclass(frozen=True, eq=False)
class Deciding:
    """Decides parts. which: for each surrounding that a secret of the table has, its design."""

    designs: Designs
    which: dict[tuple[int, ...], int]

    @classmethod
    def made(cls, designs: Designs, needs: Needs, which: Integers) -> Deciding:
        """From the designs of the surroundings of a whole table."""
        return cls(
            designs,
            {
                tuple(around): at
                for around, at in zip(needs.around.tolist(), which.tolist(), strict=True)
            },
        )

    @cached_property
    def _stamping(self) -> Stamping:
        return Stamping(self.designs)

    @cached_property
    def _reach(self) -> int:
        """How far any design reaches."""
        return max(
            (max(len(design.left), len(design.right)) for design in self.designs.designs), default=0
        )

    def which_of(self, part: Part) -> Integers:
        """Which design each secret of a part has; InputError if it was not part of the table that
        was surveyed.
        """
        rows, used, _ = part.distinct
        try:
            return np.array([self.which[tuple(row)] for row in rows.tolist()], dtype=np.int64)[used]
        except KeyError:
            raise InputError("the table was changed while it was read; start again") from None

    def decide(self, part: Part) -> tuple[pl.DataFrame, Tally]:
        """Decide block by block of whole chains: the released rows, and counts."""
        step: InnerStep = self._stamping
        chains, secrets = part.arranged.chains, part.secrets
        which = self.which_of(part)
        gone = np.zeros(len(chains.codes), dtype=bool)
        counts = np.zeros(3, dtype=np.int64)
        released = 0
        model = self.designs.model
        moves = np.zeros(model.transition.shape, dtype=np.int64)
        contents = []
        for rows, mine in blocks(chains, secrets):
            decision = step.decide(
                chains, secrets.part(mine.start, mine.stop), which[mine], rows, part.drawn
            )
            gone[rows] = decision.redacted
            contents.append(_contents(chains, rows, decision.redacted))
            released += int(
                (
                    ~decision.redacted
                    if chains.whole
                    else ~decision.redacted & (chains.codes[rows] >= 0)
                ).sum()
            )
            counts += np.bincount(decision.regions, minlength=3)
            _check_known(part.arranged, rows, decision.regions)
            plain = np.where(decision.regions == 0, chains.codes[rows], np.int8(MISSING))
            moves += model_counts(model, chains, rows, plain, part.phases)
        window = windows_release(self.designs, chains, secrets, which)
        choice = choice_of(chains, secrets, model.k, self._reach)
        kept = Sample.of(part.arranged, gone)
        told = np.concatenate(contents)[part.tagged], np.diff(chains.starts)[part.tagged]
        content = part.coins.content_digest(part.tags, *told)
        return _table(part.arranged, gone), Tally(
            tuple(counts.tolist()), released, window, moves, choice, kept, content
        )

    def expect(self, part: Part) -> Tally:
        """What a release is expected to show, by the model and without a look at the values."""
        chains, secrets = part.arranged.chains, part.secrets
        which, masses = self.which_of(part), _masses(self.designs.model, part)
        counts = np.zeros(3, dtype=np.int64)
        released = 0.0
        for rows, mine in blocks(chains, secrets):
            rule = self._stamping.probabilities(
                chains, secrets.part(mine.start, mine.stop), which[mine], rows
            )
            regions = _region(rule)
            _check_known(part.arranged, rows, regions)
            weights = masses if masses.ndim == 1 else masses[rows]
            released += float((1.0 - (rule * weights).sum(axis=1))[chains.codes[rows] >= 0].sum())
            counts += np.bincount(regions, minlength=3)
        return Tally(
            tuple(counts.tolist()), released, windows_release(self.designs, chains, secrets, which)
        )

    def explain(self, part: Part) -> pl.DataFrame:
        """For each row its region and the redaction probability of every value: the rule, never
        what was drawn.
        """
        import polars as pl

        arranged, chains, secrets = part.arranged, part.arranged.chains, part.secrets
        which = self.which_of(part)
        rules, regions = [], []
        secret = np.zeros(len(chains.codes), dtype=bool)
        secret[part.hidden.rows(chains)] = True
        for rows, mine in blocks(chains, secrets):
            rule = self._stamping.probabilities(
                chains, secrets.part(mine.start, mine.stop), which[mine], rows
            )
            rules.append(rule)
            regions.append(np.where(secret[rows], 3, _region(rule)))
        names = arranged.columns.released[
            : len(arranged.columns.released) - 1 - len(arranged.columns.keep)
        ]
        frame = arranged.frame.select(names) if names else pl.DataFrame()
        whole = np.concatenate(rules)
        taken = "region" in names
        added = [
            pl.Series(
                "region of the record" if taken else "region",
                np.array(REGIONS)[np.concatenate(regions)],
            )
        ]
        added += [
            pl.Series(f"Pr(redacted | {label})", whole[:, i])
            for i, label in enumerate(arranged.labels)
        ]
        return frame.with_columns(added) if names else pl.DataFrame(added)


def blocks(chains: Chains, secrets: Secrets) -> Iterable[tuple[slice, slice]]:
    """Stretches of whole chains of about so many rows, and the secrets in each."""
    begin = 0
    while begin < chains.count:
        end = int(np.searchsorted(chains.starts, chains.starts[begin] + _BLOCK, side="right")) - 1
        end = min(max(end, begin + 1), chains.count)
        mine = np.searchsorted(secrets.chain, (begin, end))
        yield (
            slice(int(chains.starts[begin]), int(chains.starts[end])),
            slice(int(mine[0]), int(mine[1])),
        )
        begin = end


def _check_known(arranged: Arranged, rows: slice, regions: NDArray[np.int8]) -> None:
    """InputError for a value that the model does not know, unless its record is redacted whatever
    it is.
    """
    unknown = (arranged.chains.codes[rows] == UNKNOWN) & (regions != 2)
    if not unknown.any():
        return
    first = rows.start + int(np.argmax(unknown))
    row = (first if arranged.rows is None else int(arranged.rows[first])) + 1
    raise InputError(
        f"value column {arranged.columns.value!r} holds a value the model does not know in"
        f" {int(unknown.sum())} rows, first in row {row}"
    )


def _contents(chains: Chains, rows: slice, redacted: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """(m,) a number for what leaves of each chain in `rows`: over its records, the sum of their
    order value and code, mixed.
    """
    shown = ((chains.codes[rows] + np.int8(1)) * ~redacted).view(np.uint8)  # 0: empty
    order = chains.order[rows]
    mixed = np.empty(len(shown), dtype=np.uint64)
    other = np.empty(min(_STRIP, len(shown)), dtype=np.uint64)
    for begin in range(0, len(shown), _STRIP):
        strip = slice(begin, begin + _STRIP)
        numbers = mixed[strip]
        rest = other[: len(numbers)]
        np.multiply(order[strip].astype(np.uint64), _ODD[0], out=numbers)
        numbers += np.multiply(shown[strip], _ODD[1], out=rest)
        numbers ^= np.right_shift(numbers, np.uint64(32), out=rest)
        numbers *= numbers  # a sum of what is linear would not tell 1 and 4 from 2 and 3
    first, end = np.searchsorted(chains.starts, (rows.start, rows.stop))
    return np.add.reduceat(mixed, chains.starts[first:end] - rows.start)


def _masses(model: Model, part: Part) -> Floats:
    """How likely each value of a record is: (k,) for all records, or (n, k)."""
    if isinstance(model, PhasedChain):
        assert part.phases is not None
        return model.start[part.phases]
    assert isinstance(model, MarkovChain)
    if model.is_stationary:
        return model.marginal(1)
    places = part.arranged.chains.places
    return np.asarray(model.marginals(1, int(places.max()) + 1)[places])


def _region(rule: Floats) -> NDArray[np.int8]:
    """(n,) 2, 1, 0 for L, M and S: all values always redacted, some at times, none ever."""
    return np.where(np.all(rule == 1, axis=1), 2, np.any(rule > 0, axis=1)).astype(np.int8)


def _table(arranged: Arranged, gone: NDArray[np.bool_]) -> pl.DataFrame:
    columns, chains = arranged.columns, arranged.chains
    empty = gone | (chains.codes < 0)
    values = released_values(
        columns.value, chains.codes, empty, arranged.labels, arranged.value_type
    )
    frame = arranged.frame.with_columns(values) if arranged.frame.width else values.to_frame()
    frame = frame.select(columns.released)
    if columns.keep and not columns.keep_all:
        frame = emptied(frame, columns.keep, gone)
    return without_hidden(frame, columns.keep)
