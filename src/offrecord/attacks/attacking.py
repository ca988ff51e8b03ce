"""What somebody who holds a release, its certificate and the model infers about private runs.

Beside Bayes, patterns just beyond the rule's reach are counted next to records that are never
redacted: they show what the same patterns next to a private record would have leaked, whatever the
model says (plausible chains, section 6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from offrecord.attacks.paths import Inferred, Paths, Shown, inferred
from offrecord.attacks.result import INSTEAD, PROMISED, Attack, Attacker
from offrecord.attacks.walks import Walks
from offrecord.errors import InputError
from offrecord.fitting.audit import counted_beyond, dependence
from offrecord.fitting.counting import Reference
from offrecord.mechanisms.deciding import decide as deciding
from offrecord.mechanisms.deciding.decide import ALWAYS, NEVER
from offrecord.mechanisms.deciding.layout import Layout, PlaceOf, layout_of
from offrecord.mechanisms.deciding.rule_book import RuleBook
from offrecord.mechanisms.deciding.stopping import clusters_of
from offrecord.mechanisms.rules import LocalRule, StoppingRule
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Floats, Mask
from offrecord.models.evidence import Dependence, Verdict
from offrecord.models.promise import Promise
from offrecord.models.records import MISSING, Chains, Codes, Runs
from offrecord.release.certificate import Certificate
from offrecord.tables.chains import Arranged
from offrecord.tables.frames import Native
from offrecord.tables.growing import Holding, closed, open_ended
from offrecord.tables.private import Private, runs_of
from offrecord.tables.table import Table
from offrecord.tables.values import MAX_VALUES, coded, value_cells
from offrecord.text import many
from offrecord.theory.window import smallest_windows
from offrecord.verification.agreement import Found
from offrecord.verification.reading import (
    Records,
    another_list,
    listed_records,
    private_of,
    read_records,
    with_original,
)

CERTIFICATE = ".certificate.json"  #: what the name of a certificate adds to that of its table
_LOOKS = 3  # at which records are missing for certain; sides that cannot look depend on it
#: Kinds of rules whose likelihoods an attacker computes.
_KNOWN = {LocalRule.kind, StoppingRule.kind}


def attack(
    released: str | Path,
    *,
    certificate: str | Path | None = None,
    private_list: Native | str | Path | None = None,
    private: str | None = None,
    original: str | Path | None = None,
    limits: Mapping[str, int] | None = None,
) -> Attack:
    """Attack a release by its files.

    Args:
        released: the released table.
        certificate: its certificate, unless it lies beside the table.
        private_list: the private records, where the certificate does not publish them: a frame or a
            file.
        private: where private_list, or else original, is the table that was redacted: its boolean
            column that is true where a record is private.
        original: the table that was redacted, to compare with plain erasure.
        limits: of what the tables may hold, as `redact` takes them.

    Returns:
        What each attacker infers.

    Raises:
        InputError: for what cannot be read, and for files that do not belong together.
    """
    proof = f"{released}{CERTIFICATE}" if certificate is None else certificate
    said, before = Certificate.load(Path(proof)), None if original is None else Path(original)
    listed = listed_records(said, private_list, private, before)
    if said.model is None:
        return _of_whole_chains(_read(said, Path(released), None, limits), listed)
    promise = said.model.promise()
    records = _read(said, Path(released), promise.labels, limits)
    return _of_rules(Released.of(records, promise, listed, before, limits))


def _of_rules(held: Released) -> Attack:
    own = _by_model(held)
    attackers = [Attacker("the model", PROMISED, own.ratio)]
    if held.original is not None:
        erased = _by_erasure(held, held.original)
        attackers.append(Attacker("plain erasure instead", INSTEAD, erased))
    # records that no coin touches: which of them are there depends on no value
    free = (held.certain == NEVER) & (held.codes >= 0)
    reference = Reference.of(held.chains, held.promise.k, free)
    return Attack(
        held.certificate.dataset,
        held.policy.epsilon,
        held.runs.count,
        tuple(attackers),
        own.prior,
        own.posterior,
        wrong=int(((held.certain == ALWAYS) & (held.codes >= 0)).sum()),
        notes=tuple(_notes(held, own)),
        counted=_counted(held, reference),
        neighbours=_neighbours(reference),
    )


def _neighbours(reference: Reference) -> Dependence | None:
    # too few chains with records at the same times say nothing about each other
    return dependence(reference) if reference.units > 1 else None


def _of_whole_chains(records: Records, listed: pl.DataFrame | None) -> Attack:
    """Of a release that has nothing of chains with a private record, and no model."""
    private, said = private_of(records, listed), records.said
    touched = np.zeros(0, np.int64) if private is None else private.chain
    shown = np.isin(records.chains.chain_of, touched) & records.shown
    reference, nothing = _of_any_values(records), np.zeros((0, 0))
    return Attack(
        said.dataset,
        said.claim.epsilon,
        said.counts.runs,
        (),
        nothing,
        nothing,
        wrong=int(shown.sum()),
        neighbours=None if reference is None else _neighbours(reference),
    )


def _of_any_values(records: Records) -> Reference | None:
    """A released table whose values are its own labels; None if they cannot be."""
    arranged = records.arranged
    assert arranged.unlabelled is not None
    cells = value_cells(arranged.unlabelled)
    cells = cells if arranged.rows is None else cells[arranged.rows]
    labels = tuple(cells.drop_nulls().unique().sort())
    if not 2 <= len(labels) <= MAX_VALUES:
        return None
    with suppress(InputError):  # NaN is no label
        return Reference(replace(arranged.chains, codes=coded(cells, labels)), len(labels))
    return None


def _by_model(held: Released) -> Inferred:
    """By the mean chain and the rules that act."""
    if held.policy.is_local:
        paths = held.paths(held.chains, held.redaction)
        return held.where_settled(inferred(paths, held.layout, held.runs))
    if held.policy.kinds <= _KNOWN:
        return held.where_settled(_by_walks(held))
    unknown = np.full((held.runs.count, held.promise.k), np.nan)
    return Inferred(unknown[:, 0], unknown, unknown)


def _by_walks(held: Released) -> Inferred:
    book = RuleBook.of_policy(held.policy, held.order)
    clusters = clusters_of(held.layout, book)
    return Walks(held.paths(held.chains), clusters, book).inferred(held.runs)


def _by_erasure(held: Released, original: Codes) -> Floats:
    """(r,) ratios, had private records alone been redacted."""
    erased = np.where(held.is_private | held.waits, np.int8(MISSING), original)
    paths = held.paths(replace(held.arranged.chains, codes=erased))
    return held.where_settled(inferred(paths, held.layout, held.runs)).ratio


def _counted(held: Released, reference: Reference) -> Verdict | None:
    """Counts beyond what the rules leave out, or beyond the window that the mean chain asks for."""
    size, labels = _counted_from(held), held.promise.labels
    if size is None:
        return None
    return counted_beyond(reference, labels, size, held.policy.epsilon, once=held.by_step)


def _counted_from(held: Released) -> int | None:
    policy = held.policy
    if all(rule.is_window for rule in policy.sides):
        return policy.reach
    places = sorted(setting.place for setting in policy.rules)
    at = places[len(places) // 2]  # some place at which rules act
    # rules that look at values may leave records that are nearer than they reach
    asked = smallest_windows(held.promise.mean, "record", at, policy.epsilon, 0)
    return None if asked is None else min(max(asked), policy.reach)


def _notes(held: Released, own: Inferred) -> Iterator[str]:
    waiting = int((~held.settled).sum())
    if waiting:
        yield f"not attacked: {many(waiting, 'private run')} beside records that still wait"
    unknown = ", ".join(sorted(held.policy.kinds - _KNOWN))
    if unknown:
        yield f"not attacked by the model: no attack knows rules of the kind {unknown}"
    impossible = int(np.isnan(own.ratio).sum()) - waiting
    if impossible > 0 and not unknown:
        yield (
            f"not attacked: {many(impossible, 'private run')} beside which the model holds what is"
            " released for impossible"
        )
    yield from _other_runs(held.runs.count, held.certificate.counts.runs)


def _other_runs(there: int, said: int) -> Iterator[str]:
    if there != said:
        yield (
            f"{many(there, 'private run')} here where the certificate counts {said:,}: which"
            " records between private ones are missing is not known"
        )


# ---- what an attacker holds


def _read(
    said: Certificate, table: Path, labels: tuple[Any, ...] | None, limits: Mapping[str, int] | None
) -> Records:
    """The released table; InputError if it is not the certificate's."""
    found = Found()
    records = read_records(said, table, labels, found, limits)
    if records is None:
        raise InputError(found.problems[0])
    _check_rows(len(records.codes), said.counts.rows)
    return records


def _check_rows(there: int, said: int) -> None:
    if there != said:
        raise InputError(
            f"the table has {many(there, 'row')}, its certificate is about {said:,}: these are not"
            " of the same release"
        )


@dataclass(frozen=True, eq=False)
class Released:
    """A release."""

    certificate: Certificate
    policy: TablePolicy
    promise: Promise
    arranged: Arranged
    private: Private
    codes: Codes  # released values, MISSING where there is none
    original: Codes | None = None  # those before, where they are known

    @classmethod
    def of(
        cls,
        records: Records,
        promise: Promise,
        listed: pl.DataFrame | None,
        original: Path | None,
        limits: Mapping[str, int] | None,
    ) -> Released:
        """What its files say; InputError where they do not belong together."""
        if original is not None:
            records = with_original(records, original, limits)
        private, said = private_of(records, listed), records.said
        if private is None:
            raise InputError(
                "the certificate does not publish which records are private: give --private-list"
            )
        if (other := another_list(said, private)) is not None:
            raise InputError(other)
        assert said.policy is not None  # as there is a model
        policy = TablePolicy.from_form(said.policy)
        arranged, before = records.arranged, records.original
        return cls(said, policy, promise, arranged, private, records.codes, before)

    # ---- its records

    @property
    def chains(self) -> Chains:
        """The records; their values are those that left."""
        return replace(self.arranged.chains, codes=self.codes)

    @cached_property
    def runs(self) -> Runs:
        """What is protected."""
        return self._runs(self.missing)

    @cached_property
    def layout(self) -> Layout:
        """Where the runs' cores are."""
        return layout_of(self._standing(self.missing), self.runs, self.order, self.place_of)

    @property
    def order(self) -> int:
        """How many records the next one depends on."""
        return self.promise.order

    @property
    def by_step(self) -> bool:
        """Whether each step of a chain has a kernel of its own."""
        return self.promise.places is not None and not self.promise.places.cyclic

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

    def paths(self, chains: Chains, redaction: Floats | None = None) -> Paths:
        """What chains show to an attacker who takes the mean chain for true."""
        shown = Shown.of(chains, self.promise.k, redaction)
        return Paths(shown, self.promise.mean, self.place_of)

    # ---- what waits, in a growing table

    @cached_property
    def _holding(self) -> Holding | None:
        growing = self.certificate.growing
        return None if growing is None else Holding(**growing.to_dict())

    @cached_property
    def waits(self) -> Mask:
        """(n,) rows that leave later."""
        if self._holding is None:
            return np.zeros(len(self.codes), dtype=bool)
        return self._holding.waits(self.arranged, self.private)

    @cached_property
    def settled(self) -> Mask:
        """(r,) runs beside which nothing waits that their rules may reach."""
        if self._holding is None:
            return np.ones(self.runs.count, dtype=bool)
        # what waits is empty, too, and would be read as redacted
        begins = self._holding.begins(self.arranged, self.private)[self.runs.chain]
        return np.asarray(self.runs.last + self.policy.reach + self.order < begins)

    def where_settled(self, found: Inferred) -> Inferred:
        """What is inferred, with no ratio for runs that are not settled."""
        return found._replace(ratio=np.where(self.settled, found.ratio, np.nan))

    # ---- what is missing, and what never goes

    @cached_property
    def missing(self) -> Mask:
        """(n,) rows that had no value before, as far as anybody knows."""
        if self.original is not None:
            return np.asarray((self.original == MISSING) & ~self.is_private)
        found = np.zeros(len(self.codes), dtype=bool)
        hidden = (self.codes == MISSING) & ~self.is_private & ~self.waits
        # a row that is empty although no rule reaches it had no value; a side that would have seen
        # it goes straight to its deadline, so that more rows are within reach
        for _ in range(_LOOKS if self.certificate.counts.missing else 0):
            found = hidden & (self._certain(found) == NEVER)
        return found

    @cached_property
    def certain(self) -> deciding.Certainty:
        """(n,) whether each row goes never, at times or always."""
        return self._certain(self.missing)

    @property
    def redaction(self) -> Floats:
        """(n, k) how likely local rules redact each record, by its value."""
        acting, order = self._standing(self.missing), self.order
        found = deciding.local_redaction(acting, self.runs, self.policy, self.place_of, order)
        assert found is not None
        found = found if self._holding is None else closed(found, self.arranged.chains)
        found[self.missing | self.waits] = 0.0  # no rule made these empty
        return found

    def _certain(self, missing: Mask) -> deciding.Certainty:
        acting, runs = self._standing(missing), self._runs(missing)
        found = deciding.certain(acting, runs, self.policy, self.place_of, self.order)
        return found if self._holding is None else closed(found, self.arranged.chains)

    def _runs(self, missing: Mask) -> Runs:
        """The runs, if these rows had no value: runs with nothing but such rows between are one."""
        return runs_of(self._standing(missing), self.private, self.policy.protect)

    def _standing(self, missing: Mask) -> Chains:
        """The chains as rules see them: which rows have a value, and nothing of what it is."""
        codes = np.where(missing, np.int8(MISSING), np.int8(0))
        chains = replace(self.arranged.chains, codes=codes)
        return chains if self._holding is None else open_ended(chains)
