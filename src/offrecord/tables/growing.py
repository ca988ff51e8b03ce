"""Tables that grow: which of their records wait, and whether a release continues the one before.

A record leaves only when no later opt-out can reach it any more; from then on the decision about
it never changes. So each release holds all that left before, unchanged, and together they say what
the last one does (docs/proofs/several-runs.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.mechanisms.rules import LocalRule, Setting, SettingKind
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Integers, Mask
from offrecord.models.promise import Promise
from offrecord.models.records import MISSING, Chains, Runs
from offrecord.release.certificate import Growing
from offrecord.release.ledger import Ledger
from offrecord.tables.chains import Arranged
from offrecord.tables.private import Private, rows_of, runs_of

#: What the ledger calls the parts of a growing release.
GROWING, KNOWN, SETTLED = (
    "state of the growing table",
    "set of private records that were known",
    "set of settled values",
)
#: What must be the same in every release of a growing table.
_SAME = ("model", "epsilon", "set of rules", "choice of columns")


class Holding(Growing):
    """Which records of a growing table wait for a later release.

    Opt-outs are taken to be known of all records but the newest lag − reach.
    """

    @property
    def text(self) -> str:
        """What the ledger keeps of it."""
        return json.dumps(self.to_dict(), sort_keys=True)

    def known(self, arranged: Arranged) -> Integers:
        """(m,) the last place of each chain of which it is known whether its record is private."""
        chains, step = arranged.chains, arranged.step
        assert step is not None
        first = chains.order[chains.starts[:-1]].astype(np.int64)
        until = np.full(len(first), self.until)
        newest = step.counted(first, until, arranged.zone)[0]
        newest -= step.onward(first, newest, arranged.zone) > until  # a step that is not over yet
        return np.asarray(newest - self.lag + self.reach)

    def knows(self, arranged: Arranged, private: Private) -> Mask:
        """(p,) of which private records it is known that they are."""
        return np.asarray(private.place <= self.known(arranged)[private.chain])

    def begins(self, arranged: Arranged, private: Private) -> Integers:
        """(m,) the first place of each chain that waits: so near to its end, or to private records
        that may depend on later ones, that a later opt-out could reach it.
        """
        known = self.known(arranged)
        begins = known - self.reach + 1
        here = private.of(self.knows(arranged, private))
        if here.count:
            chain, first = self._pending(arranged.chains, here, known)
            begins[chain] = np.minimum(begins[chain], first - self.reach)
        return np.asarray(begins)

    def _pending(self, chains: Chains, here: Private, known: Integers) -> tuple[Integers, Integers]:
        """Chains whose last private records may depend on later ones; where the first of these is.

        here: private records that are known. known: as in `known`.
        """
        heads, last = self._linked(chains, here)
        chain, ends, after = here.chain[last], here.place[last], known[here.chain[last]] + 1
        near = ends + self.link >= after
        # a later private record would go on with this one where nothing with a value is between
        near |= ~_has_value_between(chains, chain, ends, after)
        return chain[near], here.place[heads[near]]

    def _linked(self, chains: Chains, here: Private) -> tuple[Integers, Integers]:
        """Of the last private records of each chain that depend on each other: the first, the last.
        Each by its number among private records.
        """
        parts = np.append(True, self._apart(chains, here))
        heads = np.maximum.accumulate(np.where(parts, np.arange(here.count), 0))
        last = np.flatnonzero(np.diff(here.chain, append=-1))
        return heads[last], last

    def _apart(self, chains: Chains, here: Private) -> Mask:
        """Whether each private record but the first does not depend on the one before."""
        chain, place = here.chain, here.place
        apart = np.diff(place) > self.link
        apart &= _has_value_between(chains, chain[:-1], place[:-1], place[1:])
        return np.asarray(apart | (np.diff(chain) != 0))

    def waits(self, arranged: Arranged, private: Private) -> Mask:
        """(n,) the rows that wait."""
        chains = arranged.chains
        return np.asarray(chains.places >= chains.spread(self.begins(arranged, private)))


def _has_value_between(chains: Chains, chain: Integers, first: Integers, last: Integers) -> Mask:
    """Whether a record with a value stands strictly between two places of a chain."""
    valued = np.concatenate(([0], np.cumsum(chains.codes != MISSING)))
    ends = chains.places[chains.starts[1:] - 1][chain]
    _, after = rows_of(chains, chain, first)
    before, _ = rows_of(chains, chain, np.minimum(last, ends + 1))
    return np.asarray(valued[np.maximum(before, after)] > valued[after])


def open_ended(chains: Chains) -> Chains:
    """Chains that go on: each with a missing record more, so that no record is its chain's last."""
    ends = chains.starts[1:]
    starts = chains.starts + np.arange(len(chains.starts))
    codes = np.insert(chains.codes, ends, np.int8(MISSING))
    order = np.insert(chains.order, ends, chains.order[ends - 1])
    steps = np.insert(chains.places, ends, chains.places[ends - 1] + 1)
    return Chains(starts, codes, order, chains.timed, steps)


def closed(mask: NDArray[Any], chains: Chains) -> NDArray[Any]:
    """(n,) what is said of chains that go on, without the records added to them."""
    return np.delete(mask, chains.starts[1:] + np.arange(chains.count), axis=0)


def growing_settings(promise: Promise, protect: str) -> set[Setting]:
    """All settings that may come to occur while a table grows."""
    runs: tuple[SettingKind, ...] = ("run",) if protect == "run" else ()
    kinds: tuple[SettingKind, ...] = ("record", "first", *runs)
    count = 1 if promise.places is None else promise.places.count
    return {Setting(kind, place) for kind in kinds for place in range(count)}


def holding_of(policy: TablePolicy, order: int, until: int, lag: int | None) -> Holding:
    """What waits under rules for every setting that may come to occur; InputError where they reach
    further than the lag. lag: how many steps a record waits; None for as many as the rules need.
    """
    # A walk may depend on the context at its deadline; a local rule looks at no other record.
    walks = [rule.reach + order for rule in policy.sides if not isinstance(rule, LocalRule)]
    farthest = max(walks, default=0)
    # A core begins up to order - 1 records before its run; near runs redact what is between them.
    reach = max(policy.reach, farthest) + order - 1
    if lag is not None and lag < reach:
        raise _too_short(lag, reach)
    # Two walks meet where their deadlines do (rule 5); runs that touch are one.
    link = 2 * farthest + 2 * order
    return Holding(until=until, lag=reach if lag is None else lag, reach=reach, link=link)


def _too_short(lag: int, reach: int) -> InputError:
    return InputError(
        f"--lag {lag} is too short: {reach} steps before a private record may have to be"
        f" redacted, so a record must wait for the opt-outs of the next {reach}; give --lag"
        f" {reach}, and as many steps more as people have time to opt out"
    )


@dataclass(frozen=True, eq=False)
class Before:
    """The release of a growing table that another is to continue, as the ledger knows it."""

    entry: Mapping[str, str]
    holding: Holding

    @classmethod
    def of(cls, book: Ledger, dataset: str) -> Before | None:
        """The last of a data set's releases; InputError if one of them did not grow."""
        found = [cls(entry, _held(entry, dataset)) for entry in book.releases.get(dataset, ())]
        return found[-1] if found else None

    def reached(self, arranged: Arranged, private: Private, runs: Runs, protect: str) -> int:
        """How many runs that were not known reach records that have left."""
        known = private.of(self.holding.knows(arranged, private))
        begins = self.holding.begins(arranged, known)
        near = runs.first - self.holding.reach < begins[runs.chain]
        held = _spans(runs_of(arranged.chains, known, protect))
        return len(_spans(runs, near) - held)

    def differences(self, identity: Mapping[str, str], private: str, reached: int) -> Iterator[str]:
        """Why a release does not continue it, as far as that is known before it is decided.

        private: the digest of those of its private records that were known before.
        """
        for name in _SAME:
            if identity[name] != self.entry.get(name):
                yield f"it has another {name} than the releases before"
        if json.loads(identity[GROWING])["until"] < self.holding.until:
            yield "the table ends before the one that was released last"
        if private != self.entry.get(KNOWN):
            yield (
                "records of which it was known whether they are private have become so since, or"
                " are so no more, or have gone"
            )
        if reached:
            yield "private records reach back to some that have left: the lag before was too short"


def _held(entry: Mapping[str, str], dataset: str) -> Holding:
    """What waited by an entry of the ledger; InputError for one that did not grow."""
    if GROWING not in entry:
        raise InputError(
            f"data set {dataset!r} was released before without --growing, so that this would be a"
            " second observation of the same records"
        )
    try:
        return Holding.model_validate_json(entry[GROWING])
    except ValueError:
        raise InputError(
            f"the ledger's entry of data set {dataset!r} is damaged: bring the ledger back from a"
            " copy"
        ) from None


def _spans(runs: Runs, some: Mask | slice = slice(None)) -> set[tuple[int, ...]]:
    """Chain, first and last place of runs, or of some of them."""
    columns = np.stack((runs.chain, runs.first, runs.last), axis=1)
    return set(map(tuple, columns[some].tolist()))
