"""What several releases by local designs tell together about every secret of any of them (R8)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from offrecord.designs.library import Setting
from offrecord.errors import InputError
from offrecord.mechanisms.blocks import Secrets
from offrecord.models.base import Floats, Integers, Model
from offrecord.models.records import Chains
from offrecord.release import certificate as form
from offrecord.tables.several.laid import BEGINS, ORDER, Earlier, Laid
from offrecord.tables.steps import Step
from offrecord.text import many
from offrecord.theory.leakage import is_exact, worst_output
from offrecord.theory.problem import Problem
from offrecord.theory.several import joint_rows

if TYPE_CHECKING:
    import polars as pl

_AT, _FIRST, _LAST = "place among all", "first", "last"


class Grid(NamedTuple):
    """How records are counted: by a step, in the zone of times, or one after the other."""

    step: Step | None
    zone: str | None
    timed: bool


class Told(NamedTuple):
    """The most that is told about a secret, rounding included, and whether it is no mere bound."""

    leakage: float
    exact: bool


def joint_of(
    now: Laid,
    before: Sequence[Earlier],
    setting: Setting,
    grid: Grid,
    accepted: float,
    *,
    opted_in: bool,
) -> form.Joint:
    """What a release tells together with those before it, about every secret of any of them.

    accepted: how much they may. opted_in: who was private before and is not now has opted in again;
    without it that is an InputError, as no opt-out may be lost.
    """
    if not setting.model.is_stationary:
        raise InputError("--after needs a stationary model, to judge releases together")
    for one in before:
        _check_values(now, one.laid)
    together = _Together.of(now, [one.laid for one in before], grid, opted_in=opted_in)
    chains, secrets = together.chains, together.secrets
    told = most_told(chains, secrets, _joined(together.releases), setting)
    floor = most_told(chains, secrets, _joined(together.releases[1:]), setting)
    return form.Joint(
        epsilon=accepted,
        leakage=told.leakage,
        leakage_is_exact=told.exact and all(one.is_exact for one in before),
        floor=floor.leakage,
        secrets=secrets.count,
        releases=tuple(one.told for one in before),
    )


def _check_values(now: Laid, before: Laid) -> None:
    """InputError if records show another value than before: then they are not the same records.
    What is always redacted now is not looked at.
    """
    import polars as pl

    keys = now.records.columns
    may_leave = np.any(now.rows < 1.0, axis=1) & (now.values >= 0)
    mine = now.records.with_columns(pl.Series("now", now.values)).filter(pl.Series(may_leave))
    theirs = before.records.with_columns(pl.Series("before", before.values))
    both = theirs.filter(pl.col("before") >= 0).join(mine, on=keys)
    other = both.filter(pl.col("now") != pl.col("before")).height
    if other:
        raise InputError(
            f"of {many(other, 'record')} a release before showed another value than this table has:"
            " what both tell together about the same records cannot be said"
        )


def _joined(releases: Sequence[tuple[Hashable, Floats]]) -> Floats:
    by_coins: dict[Hashable, list[Floats]] = {}
    for coins, rows in releases:
        by_coins.setdefault(coins, []).append(rows)
    return joint_rows(by_coins)


@dataclass(frozen=True, eq=False, repr=False)
class _Together:
    """All records of some releases, in the chains that hold a private one, and every secret of any
    of them.

    releases: of each its coins, and (n, k) redaction probabilities of all records; of those that it
    does not have, 1.
    """

    chains: Chains
    secrets: Secrets
    releases: list[tuple[Hashable, Floats]]

    @classmethod
    def of(cls, now: Laid, before: Sequence[Laid], grid: Grid, *, opted_in: bool) -> _Together:
        """Of a release and those before it."""
        import polars as pl

        every = [now, *before]
        *names, order = now.records.columns
        again = _opted_in_again(now, before, allowed=opted_in)
        listed = [_without(one.private, again) for one in every]
        secrets = pl.concat([_secrets(one, names) for one in listed]).unique()
        touched = secrets.select(names).unique()
        records = [one.records.join(touched, on=names, how="semi") for one in every]
        places = [one.select(*names, order) for one in (*records, *listed)]
        union = pl.concat(places).unique().sort(*names, order).with_row_index(_AT)
        releases = []
        for one in every:
            rows = np.ones((union.height, now.rows.shape[1]))
            mine = one.records.with_row_index("row").join(union, on=[*names, order])
            rows[mine[_AT].to_numpy()] = one.rows[mine["row"].to_numpy()]
            releases.append((one.coins, rows))
        chains = _chains(union, names, grid)
        for end in (_FIRST, _LAST):
            there = union.rename({order: end, _AT: f"{end} of all"})
            secrets = secrets.join(there, on=[*names, end])
        first, last = (
            secrets[f"{end} of all"].to_numpy().astype(np.int64) for end in (_FIRST, _LAST)
        )
        chain = np.searchsorted(chains.starts, first, side="right") - 1
        spans = chains.places[first], chains.places[last]
        held = Secrets(chain, *spans, first, last + 1, chains.order[first].astype(np.int64))
        return cls(chains, held, releases)


def _opted_in_again(now: Laid, before: Sequence[Laid], *, allowed: bool) -> pl.DataFrame:
    """The records that were private and, in this table, are not; InputError unless that may be."""
    import polars as pl

    keys = now.records.columns
    old = pl.concat([one.private.select(keys) for one in before]).unique()
    again = old.join(now.private, on=keys, how="anti").join(now.records, on=keys, how="semi")
    if again.height and not allowed:
        raise InputError(
            f"{many(again.height, 'record')} that a release before kept private"
            f" {'is' if again.height == 1 else 'are'} not private now; list them, or add"
            " --opted-in if their owners have opted in again"
        )
    return again


def _without(private: pl.DataFrame, some: pl.DataFrame) -> pl.DataFrame:
    """Private records without some; what follows one of these begins another secret."""
    import polars as pl

    keys = some.columns
    marked = private.join(some.with_columns(gone=True), on=keys, how="left").sort(keys)
    gone = pl.col("gone").is_not_null()
    begins = pl.col(BEGINS) | gone.shift(1, fill_value=False)
    return marked.with_columns(begins.alias(BEGINS)).filter(~gone).drop("gone")


def _secrets(private: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The first and the last record of each secret."""
    import polars as pl

    number = pl.col(BEGINS).cum_sum().alias("secret")
    ends = [pl.col(ORDER).min().alias(_FIRST), pl.col(ORDER).max().alias(_LAST)]
    grouped = private.sort(*names, ORDER).with_columns(number).group_by(*names, "secret")
    return grouped.agg(ends).drop("secret")


def _chains(union: pl.DataFrame, names: Sequence[str], grid: Grid) -> Chains:
    """Records sorted by chain and order, counted in steps."""
    import polars as pl

    which = union.select(pl.struct(names).rle_id().alias("chain"))["chain"].to_numpy()
    starts = np.append(np.flatnonzero(np.diff(which, prepend=-1)), union.height).astype(np.int64)
    order = union[ORDER].to_numpy().astype(np.int64)
    steps = None
    if grid.step is not None:
        first = np.repeat(order[starts[:-1]], np.diff(starts))
        steps = grid.step.counted(first, order, grid.zone)[0]
        same = np.diff(steps) <= 0
        same[starts[1:-1] - 1] = False
        if same.any():
            raise InputError(
                f"{many(int(same.sum()), 'record')} of this table and the releases before fall on"
                " the same step: they are not counted alike"
            )
    return Chains(starts, np.zeros(len(order), dtype=np.int8), order, grid.timed, steps)


# ---- judging


def most_told(chains: Chains, secrets: Secrets, rows: Floats, setting: Setting) -> Told:
    """The most that a redaction of some records tells about a secret.

    rows: (n, k) redaction probabilities. Beyond as many records in a row as the chain's order that
    are released for certain, nothing tells more, so a secret is judged up to there; secrets around
    which all is alike are judged once.
    """
    if secrets.count == 0:
        return Told(0.0, True)
    judged: dict[tuple[object, ...], Told] = {}
    for window in _windows(chains, secrets, rows, setting.model):
        if window.key not in judged:
            judged[window.key] = window.told(setting)
    return Told(
        max(one.leakage for one in judged.values()), all(one.exact for one in judged.values())
    )


class _Window(NamedTuple):
    """What counts for one secret: places from its first record, and redaction probabilities."""

    length: int
    places: Integers
    rows: Floats
    span: tuple[int, int]

    @property
    def key(self) -> tuple[object, ...]:
        return self.length, self.span, self.places.tobytes(), self.rows.tobytes()

    def told(self, setting: Setting) -> Told:
        """What it tells about the secret, whose records are one, whatever each release took for a
        secret.
        """
        model, epsilon, _, _ = setting
        first, last = self.span
        n = max(last - first + 1, model.order + 1, 2)  # beyond the last one nothing is seen
        redaction = np.ones((n, self.rows.shape[1]))
        redaction[self.places - first] = self.rows
        private = range(1 - first, 1 - first + self.length)
        problem = Problem(model.along(), n, private, epsilon, "run")
        worst = worst_output(problem, redaction)
        return Told(worst.upper, is_exact(worst.method))


def _windows(chains: Chains, secrets: Secrets, rows: Floats, model: Model) -> Iterator[_Window]:
    """Of each secret what counts for it."""
    places, chain, order = chains.places, chains.chain_of, model.order
    released = ~np.any(rows > 0.0, axis=1)
    linked = np.append((chain[1:] == chain[:-1]) & (np.diff(places) == 1), False)
    ends = released.copy()  # row i and the order − 1 after it are released, one step apart each
    for later in range(1, order):
        ends[:-later] &= linked[later - 1 :][: len(ends) - later] & released[later:]
        ends[-later:] = False
    stops = np.flatnonzero(ends & (model.shows is None))  # a value does not tell a hidden state
    bounds = zip(
        chains.starts[secrets.chain].tolist(),
        chains.starts[secrets.chain + 1].tolist(),
        np.searchsorted(stops, secrets.low - order + 1).tolist(),
        np.searchsorted(stops, secrets.high).tolist(),
        *(one.tolist() for one in (secrets.first, secrets.last, secrets.low, secrets.high)),
        strict=True,
    )
    for start, stop, before, after, first, last, low, high in bounds:
        left = int(stops[before - 1]) if before else -1
        right = int(stops[after]) + order - 1 if after < len(stops) else len(places)
        left, right = max(left, start), min(right, stop - 1)
        mine = slice(min(left, low), max(right, high - 1) + 1)
        span = min(first, int(places[mine.start])), max(last, int(places[mine.stop - 1]))
        yield _Window(
            last - first + 1,
            places[mine] - first,
            rows[mine],
            (span[0] - first, span[1] - first),
        )
