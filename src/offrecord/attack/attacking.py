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

from offrecord.attack.fitted import MOST_STATES, by_clock, corners, of_order, phased
from offrecord.attack.neighbours import beside
from offrecord.attack.owner import MOST_STATES_OF_WALKS, Unattacked, told_by_walks
from offrecord.attack.reading import Told
from offrecord.attack.released import LOCAL, Evidence, Table, original_codes
from offrecord.attack.result import BEYOND, ORIGINAL, PROMISED, Attack, Attacker, merged
from offrecord.attack.shown import Shown
from offrecord.attack.steps import Steps
from offrecord.attack.walking import told
from offrecord.mechanisms.blocks import Mask
from offrecord.models.phased import PhasedChain
from offrecord.models.records import MISSING
from offrecord.tables.certified import Certified
from offrecord.text import many

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
    table = Table.read(Path(released), Certified.load(proof), private_list)
    codes = None
    if original is not None:
        codes, missing = original_codes(Path(original), table)
        table = table.knowing(missing)
    return _Attacks(table, codes, others).found()


@dataclass(frozen=True, eq=False)
class _Attacks:
    """All that is tried on a table. codes: the original values, but for private ones."""

    table: Table
    codes: Any
    others: bool

    def found(self) -> Attack:
        """What came of it."""
        own, why = self._told(self.steps, is_own=True)
        table, said = self.table, self.table.said.certificate
        attackers = [Attacker("the certificate's model", PROMISED, own.ratio)]
        notes = list(table.notes)
        for attacker, left in self._others():
            attackers.append(attacker)
            notes += [
                f"not attacked by {attacker.name}: {many(count, 'secret')}: {reason}"
                for reason, count in left
                if (reason, count) not in why
            ]
        attackers += self._instead()
        exposed = self._exposed()
        for one in attackers:
            if one.kind != ORIGINAL:
                one.ratios[exposed] = np.inf
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

    def _told(self, steps: Steps, is_own: bool = False) -> tuple[Told, Unattacked]:
        """By some chain, and how many secrets were not attacked, and why."""
        if not self.is_local:
            return told_by_walks(self.table, steps, is_own)
        return told(steps, self.evidence.shown, self.table.batch.secrets), ()

    def _others(self) -> Iterator[tuple[Attacker, Unattacked]]:
        """All but the certificate's model, and whom they could not attack."""
        name = "the worst corner of its set"
        found = [self._told(one) for one in corners(self.table.said.model)]
        if found:
            each = [Attacker(name, PROMISED, one.ratio) for one, _ in found]
            yield merged(each, name, PROMISED), found[0][1]
        if not self.others:
            return
        for name, steps in self._beyond():
            one, left = self._told(steps)
            yield Attacker(name, BEYOND, one.ratio), left
        shown = self.evidence.shown
        if shown.chains.count > 1:
            ratios = beside(shown, self.free, self.table.batch.secrets)
            yield Attacker("the next chain alone", BEYOND, ratios), ()

    def _beyond(self) -> Iterator[tuple[str, Steps]]:
        """Chains that know more than the promise is about."""
        shown, free = self.evidence.shown, self.free
        for order in () if self.steps.hidden else self._orders:
            if not self._is_too_long(order):
                yield f"a memory of {order} records", of_order(shown, free, order)
        for phase in () if self._has_clock else _CLOCKS:
            clocked = by_clock(self.table, shown, free, phase)
            if clocked is not None:
                yield f"the {phase}", clocked

    @property
    def _orders(self) -> tuple[int, int]:
        """Memories longer than the model's."""
        return self.steps.order + 1, self.steps.order + 2

    def _is_too_long(self, order: int) -> bool:
        """Whether a memory has too many tuples to walk over."""
        most = MOST_STATES if self.is_local else MOST_STATES_OF_WALKS
        return bool(self.table.said.model.k**order > most)

    @property
    def _has_clock(self) -> bool:
        return self.table.said.model.clock is not None

    def _left_out(self) -> Iterator[str]:
        """What was not tried."""
        if not self.others:
            return
        if self.steps.hidden:
            yield "not tried on a chain on hidden states: longer memories"
            return
        for order in filter(self._is_too_long, self._orders):
            yield f"not tried, for too many tuples: a memory of {order} records"

    def _instead(self) -> Iterator[Attacker]:
        """What other releases of the same records would have told."""
        if self.codes is None:
            return
        for name, gone in (("plain erasure", None), ("window", self._windows())):
            codes = self.codes if gone is None else np.where(gone, np.int8(MISSING), self.codes)
            none = np.zeros((0, self.table.said.model.k))
            shown = Shown.of(self.table.chains, codes, np.empty(0, dtype=np.int64), none)
            ratios = told(self.steps, shown, self.table.batch.secrets).ratio
            yield Attacker(f"instead: {name}", ORIGINAL, ratios)

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
