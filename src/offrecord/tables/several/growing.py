"""Tables that grow: which of their records wait, and whether a release continues the one before.

A record leaves only when no later opt-out can reach it any more; from then on the rule for it never
changes. So each release holds all that left before, unchanged, and together they tell what the last
one does (R8, docs/several.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offrecord.designs.library import Designs
from offrecord.errors import InputError
from offrecord.mechanisms.blocks import Mask, Secrets
from offrecord.models.base import Integers
from offrecord.tables.chains import Arranged
from offrecord.tables.secrets import Private, secrets_of

#: What the ledger calls the parts of a growing release.
GROWING, KNOWN, DESIGNS, SETTLED = (
    "state of the growing table",
    "set of private records that were known",
    "designs by their surroundings",
    "set of settled values",
)
#: What must be the same in every release of a growing table.
_SAME = ("model", "epsilon", "mechanism", "choice of columns")


@dataclass(frozen=True)
class Holding:
    """Which records of a growing table wait for a later release.

    until: the newest order value. lag: records leave so many steps after they came. reach: how far
    to its left a secret redacts. link: how near to the end of what is known the last secrets of a
    chain may still depend on later ones. Opt-outs are taken to be known of all records but the
    newest lag − reach.
    """

    until: int
    lag: int
    reach: int
    link: int

    def known(self, arranged: Arranged) -> Integers:
        """(m,) the last place of each chain of which it is known whether its record is private."""
        chains, step = arranged.chains, arranged.step
        assert step is not None
        first = chains.order[chains.starts[:-1]].astype(np.int64)
        until = np.full(len(first), self.until)
        newest = step.counted(first, until, arranged.zone)[0]
        newest -= step.onward(first, newest, arranged.zone) > until  # a step that is not over yet
        return np.asarray(newest - self.lag + self.reach)

    def begins(self, arranged: Arranged, private: Private) -> Integers:
        """(m,) the first place of each chain that waits: so near to its end, or to secrets that may
        depend on later ones, that a later opt-out could reach it.
        """
        known = self.known(arranged)
        begins = known - self.reach + 1
        here = np.flatnonzero(private.place <= known[private.chain])
        if len(here) == 0:
            return np.asarray(begins)
        chain, place = private.chain[here], private.place[here]
        parts = np.append(True, (np.diff(chain) != 0) | (np.diff(place) > self.link))
        heads = np.maximum.accumulate(np.where(parts, np.arange(len(here)), 0))
        last = np.flatnonzero(np.diff(chain, append=-1))
        still = last[place[last] + self.link > known[chain[last]]]
        begins[chain[still]] = np.minimum(begins[chain[still]], place[heads[still]] - self.reach)
        return np.asarray(begins)

    def waits(self, arranged: Arranged, private: Private) -> Mask:
        """(n,) the rows that wait."""
        chains = arranged.chains
        return np.asarray(chains.places >= self.begins(arranged, private)[chains.chain_of])


def holding_of(designs: Designs, until: int, lag: int | None) -> Holding:
    """What waits under these designs; InputError where they are not for tables that grow, or reach
    further than the lag.
    """
    asked = [getattr(one, "back", None) for one in designs.designs]  # one's own need not know
    found = [back for back in asked if back is not None]
    if len(found) < len(asked):
        raise InputError(
            "nothing can ever leave of this table while it grows: its designs redact without end to"
            " the left of a private record; take a larger --epsilon, or another --mechanism"
        )
    more = designs.model.order - 1  # where designs are about tuples of so many records
    reach = max((reach for reach, _ in found), default=0) + more
    if lag is not None and lag < reach:
        raise InputError(
            f"--lag {lag} is too short: {reach} steps before a private record may have to be"
            f" redacted, so a record must wait for the opt-outs of the next {reach}; give --lag"
            f" {reach}, and as many steps more as people have time to opt out"
        )
    link = max((link for _, link in found), default=0) + 2 * more
    return Holding(until, reach if lag is None else lag, reach, link)


@dataclass(frozen=True, eq=False)
class Grown:
    """What is counted of a growing table as it is decided.

    waiting, private: records that wait, and the private ones of them. known, digest: how many
    private records are known to be so, and which. settled, repeated: digests of what leaves of the
    records that do not wait, and of those that did not wait in the release before.
    """

    waiting: int = 0
    private: int = 0
    known: int = 0
    digest: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(2, dtype=np.uint64))
    settled: int = 0
    repeated: int = 0

    def __add__(self, other: Grown) -> Grown:
        return Grown(
            self.waiting + other.waiting,
            self.private + other.private,
            self.known + other.known,
            self.digest ^ other.digest,
            self.settled ^ other.settled,
            self.repeated ^ other.repeated,
        )


@dataclass(frozen=True, eq=False)
class Before:
    """The release of a growing table that another is to continue, as the ledger knows it. designs:
    for each surrounding, which one served it.
    """

    entry: Mapping[str, str]
    holding: Holding
    designs: Mapping[str, str]

    @classmethod
    def of(cls, entries: Iterable[Mapping[str, str]], dataset: str) -> Before | None:
        """The last of a data set's releases; InputError if one of them did not grow."""
        last = None
        for entry in entries:
            if GROWING not in entry:
                raise InputError(
                    f"data set {dataset!r} was released before without --growing, so that this"
                    " would be a second look at the same records: see --after"
                )
            try:
                held = json.loads(entry[GROWING])
                designs = json.loads(entry[DESIGNS])
                holding = Holding(*(_whole(held[one.name]) for one in fields(Holding)))
                _check_names(designs)
            except (KeyError, TypeError, ValueError, RecursionError):
                raise InputError(
                    f"the ledger's entry of data set {dataset!r} is damaged: bring the ledger back"
                    " from a copy"
                ) from None
            last = cls(entry, holding, designs)
        return last

    def known_private(self, arranged: Arranged, private: Private) -> Mask:
        """(p,) the private records of which that was known."""
        return np.asarray(private.place <= self.holding.known(arranged)[private.chain])

    def reached(self, arranged: Arranged, private: Private, secrets: Secrets, protect: str) -> int:
        """How many secrets that were not known reach records that have left."""
        chains = arranged.chains
        known = private.of(self.known_private(arranged, private))
        old = secrets_of(chains, known, protect)
        begins = self.holding.begins(arranged, private)
        near = np.flatnonzero(secrets.first - self.holding.reach < begins[secrets.chain])
        held = set(zip(old.chain.tolist(), old.first.tolist(), old.last.tolist(), strict=True))
        asked = (one[near].tolist() for one in (secrets.chain, secrets.first, secrets.last))
        return sum(one not in held for one in zip(*asked, strict=True))

    def differences(self, identity: Mapping[str, str], private: str, reached: int) -> list[str]:
        """Why a release does not continue it, as far as that is known before it is decided.

        private: the digest of those of its private records that were known before.
        """
        entry = self.entry
        found = [
            f"it has another {name} than the releases before"
            for name in _SAME
            if identity[name] != entry.get(name)
        ]
        if json.loads(identity[GROWING])["until"] < self.holding.until:
            found.append("the table ends before the one that was released last")
        if private != entry.get(KNOWN):
            found.append(
                "records of which it was known whether they are private have become so since, or"
                " are so no more, or have gone"
            )
        if reached:
            found.append(
                "private records reach back to some that have left: the lag before was too short"
            )
        new = json.loads(identity[DESIGNS])
        if any(self.designs.get(around, digest) != digest for around, digest in new.items()):
            found.append("its designs are others than those of the releases before")
        return found

    def is_unsettled(self, settled: str) -> bool:
        """Something that left before leaves otherwise now. settled: a digest of what does, of the
        same records.
        """
        return settled != self.entry.get(SETTLED)


def _whole(value: Any) -> int:
    """A whole number; ValueError for anything else."""
    if type(value) is not int or abs(value) >= 2**63:
        raise ValueError("not a whole number")
    return value


def _check_names(value: Any) -> None:
    """ValueError unless it is text by name."""
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise ValueError("not text by name")


def told_designs(designs: Designs) -> str:
    """What the ledger keeps of designs: for each surrounding, which one serves it."""
    told = {}
    for one in designs.designs:
        around = one.surrounding
        name = f"{around.left} {around.right} {around.length}"
        for part, identity in one.lasting.items():
            told[f"{name} {part}".strip()] = sha256(identity).hexdigest()[:32]
    return json.dumps(told, sort_keys=True)


def told_holding(holding: Holding) -> str:
    """What the ledger keeps of what waits."""
    return json.dumps(asdict(holding), sort_keys=True)
