"""What somebody who holds a released table, its certificate and the model infers about every
private record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from offrecord.attack.fitted import by_clock, corners, is_too_long, of_order, phased
from offrecord.attack.neighbours import beside
from offrecord.attack.owner import told_by_walks
from offrecord.attack.reading import Told
from offrecord.attack.released import LOCAL, Evidence, Table, original_codes
from offrecord.attack.result import BEYOND, ORIGINAL, PROMISED, Attack, Attacker, merged
from offrecord.attack.shown import Shown
from offrecord.attack.steps import Steps
from offrecord.attack.walking import told
from offrecord.mechanisms.blocks import Mask
from offrecord.models.phased import PhasedChain
from offrecord.models.records import MISSING
from offrecord.tables.certified import Said

CERTIFICATE = ".certificate.json"  #: what the name of a certificate adds to that of its table
_CLOCKS = ("hour", "weekday")


def attack(
    released: str | Path,
    *,
    certificate: str | Path | None = None,
    private_list: Any = None,
    original: str | Path | None = None,
    others: bool = True,
) -> Attack:
    """Attack a release; InputError for what cannot be read.

    certificate: beside the table, unless it is named. private_list: the private records, where the
    certificate does not say them. original: the table that was redacted, to compare with other
    ways. others: attackers who know more than the certificate's model too.
    """
    proof = Path(f"{released}{CERTIFICATE}") if certificate is None else Path(certificate)
    table = Table.read(Path(released), Said.load(proof), private_list)
    codes = None
    if original is not None:
        codes, missing = original_codes(Path(original), table)
        table = Table.of(table.arranged, table.said, private_list, missing)
    return _Attacks(table, codes, others).found()


@dataclass(frozen=True, eq=False)
class _Attacks:
    """All that is tried on a table. codes: the original values, but for private ones."""

    table: Table
    codes: Any
    others: bool

    def found(self) -> Attack:
        """What came of it."""
        own, why = self._own()
        table, said = self.table, self.table.said.certificate
        exposed = self._exposed()
        attackers = [Attacker("the certificate's model", PROMISED, own.ratio)]
        attackers += self._corners()
        if self.others:
            attackers += self._beyond()
        attackers += self._instead()
        for one in attackers:
            if one.kind != ORIGINAL:
                one.ratios[exposed] = np.inf
        notes = list(table.notes)
        if len(table.exposed):
            notes.append(f"private records whose value is released: {len(table.exposed):,}")
        impossible = int(np.isnan(own.ratio).sum()) - sum(count for _, count in why)
        if impossible > 0:
            why = (*why, ("what is released around them is impossible by the model", impossible))
        wrong = self.evidence.wrong + len(table.exposed)
        return Attack(
            said.dataset,
            said.claim.epsilon,
            table.batch.secrets.count,
            tuple(attackers),
            own.prior,
            own.posterior,
            wrong,
            why,
            (*notes, *self._left_out()),
        )

    @cached_property
    def is_local(self) -> bool:
        """Each record was redacted by its own value."""
        return self.table.said.designs.kind in LOCAL

    @cached_property
    def evidence(self) -> Evidence:
        """What the table shows."""
        if self.is_local:
            return self.table.shown()
        table = self.table
        never = np.asarray(table.certainty() == 0)
        none = np.empty(0, dtype=np.int64)
        rule = np.zeros((0, table.said.model.k))
        return Evidence(Shown.of(table.chains, table.codes, none, rule), never, 0)

    @cached_property
    def free(self) -> Mask:
        """(n,) released rows that are never redacted, so that they are as the records are; all
        released ones, if there is none of these.
        """
        free = self.evidence.never & self.evidence.shown.released
        return free if free.any() else self.evidence.shown.released

    @cached_property
    def steps(self) -> Steps:
        """Those of the certificate's model."""
        model = self.table.said.model
        return (
            phased(self.table, model)
            if isinstance(model, PhasedChain)
            else Steps.of_chain(model.along())
        )

    def _own(self) -> tuple[Told, tuple[tuple[str, int], ...]]:
        """By the certificate's model, and how many secrets were not attacked, and why."""
        if not self.is_local:
            return told_by_walks(self.table)
        found = told(self.steps, self.evidence.shown, self.table.batch.secrets)
        return found, ()

    def _told(self, name: str, kind: str, steps: Steps, shown: Shown | None = None) -> Attacker:
        shown = self.evidence.shown if shown is None else shown
        return Attacker(name, kind, told(steps, shown, self.table.batch.secrets).ratio)

    def _corners(self) -> Iterator[Attacker]:
        """Who knows that the truth is a corner of the set."""
        name = "the worst corner of its set"
        if self.is_local:
            found = [self._told(name, PROMISED, one) for one in corners(self.table.said.model)]
            if found:
                yield merged(found, name, PROMISED)

    def _beyond(self) -> Iterator[Attacker]:
        """Who knows more than the promise is about."""
        shown, free = self.evidence.shown, self.free
        if self.is_local and not self.steps.hidden:
            for more in (1, 2):
                order = self.steps.order + more
                longer = of_order(shown, free, order)
                if longer is not None:
                    yield self._told(f"a memory of {order} records", BEYOND, longer)
        for phase in _CLOCKS if self.is_local and not self._has_clock else ():
            clocked = by_clock(self.table, shown, free, phase)
            if clocked is not None:
                yield self._told(f"the {phase}", BEYOND, clocked)
        if shown.chains.count > 1:
            ratios = beside(shown, free, self.table.batch.secrets)
            yield Attacker("the next chain alone", BEYOND, ratios)

    @property
    def _has_clock(self) -> bool:
        return self.table.said.model.clock is not None

    def _left_out(self) -> Iterator[str]:
        """What was not tried."""
        if not self.others:
            return
        if not self.is_local:
            yield "not tried on owner's designs: longer memories, clocks, and corners of a set"
        elif self.steps.hidden:
            yield "not tried on a chain on hidden states: longer memories"
        else:
            longer = [self.steps.order + more for more in (1, 2)]
            for order in (one for one in longer if is_too_long(self.evidence.shown, one)):
                yield f"not tried, for too many tuples: a memory of {order} records"

    def _instead(self) -> Iterator[Attacker]:
        """What other releases of the same records would have told."""
        if self.codes is None:
            return
        for name, gone in (("plain erasure", None), ("window", self._windows())):
            codes = self.codes if gone is None else np.where(gone, np.int8(MISSING), self.codes)
            none = np.zeros((0, self.table.said.model.k))
            shown = Shown.of(self.table.chains, codes, np.empty(0, dtype=np.int64), none)
            yield self._told(f"instead: {name}", ORIGINAL, self.steps, shown)

    def _windows(self) -> Mask:
        """(n,) what the best data-independent mechanism would redact."""
        table = self.table
        batch, windows = table.batch, table.rule.windows
        which = batch.looked_up(windows.which)
        begin, end = batch.secrets.bounds(table.chains, windows.sizes[which], windows.rests[which])
        edges = np.zeros(len(table.codes) + 1, dtype=np.int32)
        np.add.at(edges, begin, 1)
        np.add.at(edges, end, -1)
        return np.asarray(np.cumsum(edges)[:-1] > 0)

    def _exposed(self) -> Mask:
        """(s,) the secrets of which a value is released."""
        secrets, found = self.table.batch.secrets, np.zeros(self.table.batch.secrets.count, bool)
        at = np.searchsorted(secrets.low, self.table.exposed, side="right") - 1
        found[at] = True
        return found
