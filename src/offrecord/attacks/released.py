"""A release as an attacker holds it: the table, its certificate, and which records are private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.deciding import decide as deciding
from offrecord.mechanisms.deciding.layout import PlaceOf
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Mask
from offrecord.models.promise import Promise
from offrecord.models.records import MISSING, Chains, Codes, Runs
from offrecord.release.certificate import Certificate
from offrecord.tables.chains import Arranged
from offrecord.tables.frames import Native
from offrecord.tables.growing import Holding, closed, open_ended
from offrecord.tables.private import Private, runs_of
from offrecord.tables.table import Table
from offrecord.text import many
from offrecord.verification.agreement import Found
from offrecord.verification.reading import private_of, read_records, with_original

_LOOKS = 3  # at which records are missing for certain; sides that cannot look depend on it


@dataclass(frozen=True, eq=False)
class Released:
    """A release.

    arranged: its rows, sorted. codes: (n,) released values, MISSING where there is none. original:
    (n,) the values before, None where they are not known.
    """

    certificate: Certificate
    policy: TablePolicy
    promise: Promise
    arranged: Arranged
    private: Private
    codes: Codes
    original: Codes | None = None

    @classmethod
    def of_files(
        cls,
        table: Path,
        certificate: Path,
        listed: Native | Path | None,
        original: Path | None,
        limits: Mapping[str, int] | None = None,
    ) -> Released:
        """From its files."""
        said = Certificate.load(certificate)
        promise, policy = _acting(said)
        found = Found()
        records = read_records(said, table, tuple(promise.labels), found, limits)
        if records is None:
            raise InputError(found.problems[0])
        if len(records.codes) != said.counts.rows:
            raise InputError(
                f"the table has {many(len(records.codes), 'row')}, its certificate is about"
                f" {said.counts.rows:,}: these are not of the same release"
            )
        if original is not None:
            records = with_original(records, original, said, found, limits)
        private = private_of(records, said, listed, found)
        if private is None:
            raise InputError(
                "the certificate does not publish which records are private: give --private-list"
            )
        if private.count != said.counts.private:
            raise InputError(
                f"the list names {many(private.count, 'private record')}, the certificate"
                f" {said.counts.private:,}"
            )
        return cls(
            said, policy, promise, records.arranged, private, records.codes, records.original
        )

    # ---- its records

    @property
    def chains(self) -> Chains:
        """The records; their values are those that left."""
        known = self.arranged.chains
        return Chains(known.starts, self.codes, known.order, known.timed, known.steps)

    @cached_property
    def runs(self) -> Runs:
        """What is protected."""
        return self._runs(self.missing)

    def _runs(self, missing: Mask) -> Runs:
        """The runs, if these rows had no value: runs with nothing but such rows between are one."""
        return runs_of(self._standing(missing), self.private, self.policy.protect)

    @cached_property
    def is_private(self) -> Mask:
        """(n,) which rows are private."""
        found = np.zeros(len(self.codes), dtype=bool)
        found[self.private.rows(self.arranged.chains)] = True
        return found

    @cached_property
    def place_of(self) -> PlaceOf:
        """From chain numbers and steps to places."""
        # the coins are not there, and nothing is drawn
        table = Table(self.arranged, self.private, None)  # type: ignore[arg-type] # needs no coins
        return table.place_of(self.promise.places)

    @cached_property
    def holding(self) -> Holding | None:
        """What waits, in a growing table."""
        growing = self.certificate.growing
        return None if growing is None else Holding(**growing.to_dict())

    @cached_property
    def waits(self) -> Mask:
        """(n,) rows that leave later."""
        if self.holding is None:
            return np.zeros(len(self.codes), dtype=bool)
        return np.asarray(self.holding.waits(self.arranged, self.private))

    @cached_property
    def settled(self) -> Mask:
        """(r,) runs beside which nothing waits that their rules may reach."""
        if self.holding is None:
            return np.ones(self.runs.count, dtype=bool)
        begins = self.holding.begins(self.arranged, self.private)[self.runs.chain]
        return np.asarray(self.runs.last + self.policy.reach + self.promise.order < begins)

    # ---- what is missing, and what never goes

    @cached_property
    def missing(self) -> Mask:
        """(n,) rows that had no value before, as far as anybody knows."""
        if self.original is not None:
            return np.asarray((self.original == MISSING) & ~self.is_private, dtype=bool)
        if self.certificate.counts.missing == 0:
            return np.zeros(len(self.codes), dtype=bool)
        found = np.zeros(len(self.codes), dtype=bool)
        for _ in range(_LOOKS):
            empty = self._certain(found) == deciding.NEVER
            empty &= (self.codes == MISSING) & ~self.is_private & ~self.waits
            if np.array_equal(empty, found):
                break
            found = empty
        return found

    @cached_property
    def certain(self) -> deciding.Certainty:
        """(n,) whether each row goes never, at times or always."""
        return self._certain(self.missing)

    def _certain(self, missing: Mask) -> deciding.Certainty:
        chains, runs, order = self._standing(missing), self._runs(missing), self.promise.order
        if self.holding is None:
            return deciding.certain(chains, runs, self.policy, self.place_of, order)
        acting = open_ended(chains)
        found = deciding.certain(acting, runs, self.policy, self.place_of, order)
        return closed(found, chains)

    def _standing(self, missing: Mask) -> Chains:
        known = self.arranged.chains
        codes = np.where(missing, np.int8(MISSING), np.int8(0))
        return Chains(known.starts, codes, known.order, known.timed, known.steps)

    @property
    def standing(self) -> Chains:
        """The chains as rules see them: which rows have a value, and nothing of what it is."""
        standing = self._standing(self.missing)
        return standing if self.holding is None else open_ended(standing)


def _acting(certificate: Certificate) -> tuple[Promise, TablePolicy]:
    if certificate.policy is None or certificate.model is None:
        raise InputError(
            "whole chains left nothing beside a private record: there is nothing to infer from"
        )
    return certificate.model.promise(), TablePolicy.from_form(certificate.policy)
