"""Which rows of a growing table wait for a later release: they are empty, whatever designs say.

By places alone: of each chain all after the last one that no later opt-out can reach, and all from
the first of the last private ones on, less the reach, if later ones may still belong to these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from offrecord.errors import InputError
from offrecord.release.certificate import Certificate, Growing
from offrecord.verify.table.cells import EMPTY, Integers, Mask
from offrecord.verify.table.found import Found
from offrecord.verify.table.listed import Private
from offrecord.verify.table.rows import Table


@dataclass(frozen=True, eq=False)
class Waiting:
    """begins: (chains,) the first place of each chain that waits. rows: (n,) which rows do."""

    begins: Integers
    rows: Mask

    @classmethod
    def of(cls, table: Table, private: Private, growing: Growing) -> Waiting:
        """Of a table and its private records; InputError for one without steps."""
        if table.step is None or table.steps is None:
            raise InputError("a growing table needs columns.step")
        first, zone = table.order[table.starts[:-1]], table.columns.zone
        until = np.full(len(first), growing.until)
        newest, _ = table.step.counted(first, until, zone)
        is_over = table.step.onward(first, newest, zone) <= until
        known = np.where(is_over, newest, newest - 1) - growing.lag + growing.reach
        begins = known - growing.reach + 1
        for chain in np.unique(private.chain).tolist():
            mine = slice(*np.searchsorted(private.chain, (chain, chain + 1)))
            places = private.place[mine]
            places = places[places <= known[chain]]
            if len(places) == 0 or places[-1] + growing.link <= known[chain]:
                continue
            apart = np.flatnonzero(np.diff(places) > growing.link)
            head = places[apart[-1] + 1 if len(apart) else 0]
            begins[chain] = min(begins[chain], head - growing.reach)
        lengths = np.diff(table.starts)
        return cls(begins, np.asarray(table.steps >= np.repeat(begins, lengths)))

    def check(self, table: Table, found: Found) -> None:
        """That nothing leaves that waits."""
        shown = np.flatnonzero(self.rows & (table.codes != EMPTY))
        found.wrong_at(table.named(shown), len(shown), "a value is released that has to wait")
        if table.kept is not None and not table.columns.keep_all:
            told = np.flatnonzero(self.rows & table.kept)
            found.wrong_at(table.named(told), len(told), "a kept cell beside a value that waits")
        found.checked.append(f"That {int(self.rows.sum()):,} rows that have to wait are empty.")

    def are_settled(self, private: Private) -> Mask:
        """(p,) the private records that do not wait."""
        return np.asarray(private.place < self.begins[private.chain])

    def settled(self, table: Table, private: Private) -> tuple[Table, Private] | None:
        """The rows that do not wait, and the private records among them; None if there is none."""
        stays = ~self.rows
        counts = np.add.reduceat(stays, table.starts[:-1], dtype=np.int64)
        kept = np.flatnonzero(counts)
        if len(kept) == 0:
            return None
        rows = np.flatnonzero(stays)
        number = np.cumsum(counts > 0) - 1
        cut = replace(table.taken(rows, counts[kept]), waits=None)
        at = np.cumsum(np.append(0, stays))
        here = self.are_settled(private)
        chain, place, order = private.chain[here], private.place[here], private.order[here]
        part = Private(number[chain], place, order, at[private.row[here]], private.there[here])
        return cut, part


def waiting_rows(
    table: Table, private: Private, certificate: Certificate, found: Found
) -> Waiting | None:
    """What waits in a table, and is empty; None in one that does not grow."""
    if certificate.growing is None:
        return None
    waiting = Waiting.of(table, private, certificate.growing)
    waiting.check(table, found)
    return waiting
