"""Whether cells follow local designs: what must be redacted is, and nothing else is but by a draw.

Of `clustered` designs it is open which of several act around a secret, and of rows without a value
whether they were redacted or missing before. So cells are judged group by group of secrets whose
designs may meet, and there is a problem only where nothing that may act explains them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from offrecord.release.certificate import Certificate, ClusteredDesigns, LocalDesigns
from offrecord.verify.table.cells import EMPTY, Integers, Mask
from offrecord.verify.table.clusters import Alternatives, Groups, Option, Ways
from offrecord.verify.table.coins import ALWAYS, Coins, thresholds
from offrecord.verify.table.found import Found
from offrecord.verify.table.listed import Private
from offrecord.verify.table.rows import Table
from offrecord.verify.table.secrets import Secrets, joins_of
from offrecord.verify.table.stamps import Layout, Sheet

_WRONG = 1 << 32  # rows without a value that must have been missing, to one that is wrong
_MOST_GROUPS = 2000  # that are looked at one by one
_MOST_LAYOUTS = 256  # that are tried of each


@dataclass(frozen=True, eq=False)
class Verdict:
    """Rows that do not follow a layout. shown: released, though always redacted. drawn: released,
    though the draw redacts them. idle: without a value, though nothing redacts them: they must have
    been missing. told: with a kept cell beside a value that is always redacted.
    """

    shown: Integers
    drawn: Integers
    idle: Integers
    told: Integers

    def part(self, chosen: list[Mask]) -> Verdict:
        """Some of the rows of each."""
        return Verdict(*(one[mask] for one, mask in zip(_rows(self), chosen, strict=True)))

    def within(self, begin: int, end: int) -> Verdict:
        """Of rows begin … end − 1."""
        return self.part([(one >= begin) & (one < end) for one in _rows(self)])

    def moved(self, by: int) -> Verdict:
        """Of rows further on."""
        return Verdict(*(one + by for one in _rows(self)))

    @property
    def cost(self) -> int:
        """How much is not explained."""
        return (len(self.shown) + len(self.drawn) + len(self.told)) * _WRONG + len(self.idle)

    def joined(self, other: Verdict) -> Verdict:
        """Both."""
        pairs = zip(_rows(self), _rows(other), strict=True)
        return Verdict(*(np.concatenate(pair) for pair in pairs))


_NOTHING = Verdict(*(np.zeros(0, dtype=np.int64) for _ in range(4)))


@dataclass(frozen=True, eq=False)
class Judge:
    """What judges the rows of a table."""

    table: Table
    sheet: Sheet
    coins: Coins | None

    def verdict(self, layout: Layout) -> Verdict:
        """By one layout."""
        table, sheet = self.table, self.sheet
        stamps = sheet.stamps(table, layout)
        shown = np.flatnonzero(stamps.sure & sheet.bit(table.codes))
        empty = table.codes == EMPTY
        idle = np.flatnonzero(empty & (stamps.some == 0))
        told = np.zeros(0, dtype=np.int64)
        if table.kept is not None and not table.columns.keep_all:
            told = np.flatnonzero(empty & (stamps.sure == sheet.every) & table.kept)
            # a cell beside an empty value is there only where that was missing
            left = np.flatnonzero(empty & (stamps.sure != sheet.every) & table.kept)
            idle = np.union1d(idle, left)
        drawn = np.zeros(0, dtype=np.int64)
        if self.coins is not None:
            open_ = np.flatnonzero((stamps.some != 0) & (stamps.sure != sheet.every))
            drawn, more = self._drawn(layout, open_)
            idle = np.union1d(idle, more)
        return Verdict(shown, drawn, idle, told)

    def _drawn(self, layout: Layout, rows: Integers) -> tuple[Integers, Integers]:
        """Of rows that are redacted at times: those that their draw redacts, and those without a
        value that it does not redact, whatever the value was.
        """
        assert self.coins is not None
        limits = thresholds(self.sheet.probabilities(self.table, layout, rows))
        below = (limits == ALWAYS) | (self.coins.draws_of(rows)[:, None] < limits)
        codes = self.table.codes[rows]
        own = np.take_along_axis(below, np.maximum(codes, 0)[:, None].astype(np.int64), 1)[:, 0]
        sure = np.take_along_axis(limits, np.maximum(codes, 0)[:, None].astype(np.int64), 1)[:, 0]
        return rows[(codes >= 0) & own & (sure != ALWAYS)], rows[
            (codes == EMPTY) & ~below.any(axis=1)
        ]


@dataclass(frozen=True, eq=False)
class Judged:
    """What secrets came to: the best that can be said of each group. unserved: (s,) secrets that no
    design serves. which: the layout, where there is but one.
    """

    verdict: Verdict
    unserved: Mask
    layout: Layout | None


def check_local(
    table: Table,
    private: Private,
    certificate: Certificate,
    coins: Coins | None,
    found: Found,
) -> None:
    """Compare every cell with what local designs do to it."""
    designs = certificate.designs
    assert isinstance(designs, LocalDesigns)
    sheet = Sheet(designs, certificate.model)
    alternatives = Alternatives(certificate, sheet)
    judge = Judge(table, sheet, coins)
    joins, also = joins_of(table, private, certificate, found)
    if also is not None:
        secrets = joins.secrets(private, also)
        judged = _judged(judge, alternatives, private, secrets)
        _check_uses(certificate, judged, found)
    else:
        some = [joins.secrets(private, one) for one in (None, joins.perhaps)]
        each = [_judged(judge, alternatives, private, secrets) for secrets in some]
        secrets, judged = _better(table, some, each)
        found.not_checked.append(
            f"Whether {int(joins.perhaps.sum()):,} private records are one secret with those before"
            " them, as rows between them have no value, cannot be told; both was tried."
        )
    _report(table, secrets, judged, certificate, found)
    _say(certificate, coins, found)


def _say(certificate: Certificate, coins: Coins | None, found: Found) -> None:
    clustered = isinstance(certificate.designs, ClusteredDesigns)
    found.checked.append(
        "Every cell: no private value is released, none that the designs around secrets always"
        " redact, and none is empty that nothing redacts, but for those that were missing."
    )
    if clustered:
        found.not_checked.append(
            "Which of several designs acted around near secrets is not told: cells were compared"
            " with each of them, group by group, and one must explain them."
        )
    if coins is not None:
        found.checked.append("Every draw: what is released lies at or above its threshold.")
    else:
        found.not_checked.append("Draws: they need the publisher's key.")


def _judged(judge: Judge, alternatives: Alternatives, private: Private, secrets: Secrets) -> Judged:
    """By the option that explains most, group by group."""
    table = judge.table
    ways = alternatives.ways(table, private, secrets)
    options = alternatives.options(ways)
    verdicts = [judge.verdict(option.layout) for option in options]
    if len(options) == 1:
        return Judged(verdicts[0], ~options[0].served, options[0].layout)
    groups = alternatives.groups(table, ways)
    rows = [[groups.of_rows(one) for one in _rows(verdict)] for verdict in verdicts]
    costs = np.stack(
        [
            _costs(option, groups.of, one, len(groups.chain))
            for option, one in zip(options, rows, strict=True)
        ]
    )
    best = costs.argmin(axis=0)
    total, unserved = _explained(judge, ways, groups, costs.min(axis=0))
    best[total.explained] = len(options)
    verdict = total.verdict
    for at, (option, one, of) in enumerate(zip(options, verdicts, rows, strict=True)):
        chosen = [np.where(each < 0, at == 0, best[np.maximum(each, 0)] == at) for each in of]
        verdict = verdict.joined(one.part(chosen))
        unserved |= ~option.served & (best[groups.of] == at)
    return Judged(verdict, unserved, None)


class _Explained(NamedTuple):
    """Groups that one of many layouts explains better than the usual ones, and what is left."""

    explained: Integers
    verdict: Verdict


def _explained(
    judge: Judge, ways: Ways, groups: Groups, costs: Integers
) -> tuple[_Explained, Mask]:
    """Look for other layouts of groups that none of the usual ones explains."""
    found, verdict = [], _NOTHING
    for group in np.flatnonzero(costs)[:_MOST_GROUPS].tolist():
        chain, least = int(groups.chain[group]), int(costs[group])
        table = judge.table.alone(chain)
        start = int(judge.table.starts[chain])
        coins = None if judge.coins is None else replace(judge.coins, table=table)
        own = Judge(table, judge.sheet, coins)
        limits = int(groups.begin[group]) - start, int(groups.end[group]) - start
        best = None
        part = ways.part(int(groups.first[group]), int(groups.after[group]), start)
        for option in part.layouts(_MOST_LAYOUTS):
            one = own.verdict(option.layout).within(*limits)
            cost = one.cost
            if cost < least:
                least, best = cost, one
            if cost == 0:
                break
        if best is not None:
            found.append(group)
            verdict = verdict.joined(best.moved(start))
    explained = np.array(found, dtype=np.int64)
    return _Explained(explained, verdict), np.zeros(ways.secrets.count, dtype=bool)


def _rows(verdict: Verdict) -> tuple[Integers, Integers, Integers, Integers]:
    return verdict.shown, verdict.drawn, verdict.idle, verdict.told


def _costs(option: Option, of: Integers, rows: list[Integers], count: int) -> Integers:
    """(groups,) how much of each group an option does not explain."""
    shown, drawn, idle, told = (
        np.bincount(one[one >= 0], minlength=count).astype(np.int64) for one in rows
    )
    unserved = np.bincount(of[~option.served], minlength=count).astype(np.int64)
    return (shown + drawn + told + unserved) * _WRONG + idle


def _better(table: Table, some: list[Secrets], each: list[Judged]) -> tuple[Secrets, Judged]:
    """Of two ways to join secrets the better one, chain by chain."""
    costs = []
    for secrets, judged in zip(some, each, strict=True):
        cost = np.bincount(secrets.chain[judged.unserved], minlength=table.chains) * _WRONG
        for rows, weight in zip(_rows(judged.verdict), (_WRONG, _WRONG, 1, _WRONG), strict=True):
            cost = cost + np.bincount(table.chain_of(rows), minlength=table.chains) * weight
        costs.append(cost)
    best = np.stack(costs).argmin(axis=0)
    total = _NOTHING
    for at, judged in enumerate(each):
        chosen = [best[table.chain_of(rows)] == at for rows in _rows(judged.verdict)]
        total = total.joined(judged.verdict.part(chosen))
    unserved = each[0].unserved & (best[some[0].chain] == 0)
    return some[0], Judged(total, unserved, None)


def _check_uses(certificate: Certificate, judged: Judged, found: Found) -> None:
    """Each design serves as many secrets as it says."""
    designs = certificate.designs.designs
    if judged.layout is None:
        total = sum(one.uses for one in designs)
        found.unequal("uses of all designs", certificate.counts.secrets, total)
        return
    counted = np.bincount(judged.layout.which, minlength=len(designs)).tolist()
    for at, (design, there) in enumerate(zip(designs, counted, strict=True)):
        found.unequal(f"designs[{at}].uses", design.uses, there)


def _report(
    table: Table,
    secrets: Secrets,
    judged: Judged,
    certificate: Certificate,
    found: Found,
) -> None:
    several = isinstance(certificate.designs, ClusteredDesigns)
    by = "every design that may act here" if several else "the designs of the secrets around it"
    lost = np.flatnonzero(judged.unserved)
    names = (
        table.told(chain, place)
        for chain, place in zip(
            secrets.chain[lost].tolist(), secrets.first[lost].tolist(), strict=True
        )
    )
    found.wrong_at(names, len(lost), "a secret that no design of the certificate serves")
    shown, drawn, idle, told = _rows(judged.verdict)
    found.wrong_at(table.named(shown), len(shown), f"a value is released that {by} always redacts")
    found.wrong_at(table.named(told), len(told), "a kept cell beside a value that is redacted")
    found.wrong_at(table.named(drawn), len(drawn), "a value is released that its draw redacts")
    check_missing(table, idle, certificate, found)


def check_missing(table: Table, idle: Integers, certificate: Certificate, found: Found) -> None:
    """That no more rows without a value than were missing are redacted by nothing."""
    missing = certificate.counts.missing
    if len(idle) > missing:
        says = "without a value, though nothing redacts it"
        if missing:
            says += f" and counts.missing allows for {missing:,} of {len(idle):,} such rows"
        found.wrong_at(table.named(idle), len(idle), says)
