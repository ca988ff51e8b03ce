"""Whether cells follow local designs: what must be redacted is, and nothing else is but by a draw.

Of `clustered` designs it is open which of several act around a secret, and of rows without a value
whether they were redacted or missing before. So cells are judged group by group of secrets whose
designs may meet, and there is a problem only where nothing that may act explains them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from offrecord.release.certificate import Certificate, ClusteredDesigns, LocalDesigns
from offrecord.verify.table.cells import EMPTY, Integers, Mask
from offrecord.verify.table.clusters import Alternatives, Groups, Option, Ways
from offrecord.verify.table.coins import ALWAYS, Coins, thresholds
from offrecord.verify.table.found import Found
from offrecord.verify.table.listed import Private
from offrecord.verify.table.rows import Table, expand
from offrecord.verify.table.secrets import Joins, Secrets, joins_of
from offrecord.verify.table.serving import check_uses
from offrecord.verify.table.stamps import Layout, Sheet

_WRONG = 1 << 32  # rows without a value that must have been missing, to one that is wrong
_MOST_LAYOUTS = 256  # that are tried of each group


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

    def at(self, rows: Integers) -> Verdict:
        """The same in a larger table, in which its rows stand so."""
        return Verdict(*(rows[one] for one in _rows(self)))

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
        if table.waits is not None:
            idle, told = (one[~table.waits[one]] for one in (idle, told))
        return Verdict(shown, drawn, idle, told)

    def part(self, chains: Integers) -> Judge:
        """For a table of some chains."""
        table = self.table.part(chains)
        coins = None if self.coins is None else replace(self.coins, table=table)
        return Judge(table, self.sheet, coins)

    def _drawn(self, layout: Layout, rows: Integers) -> tuple[Integers, Integers]:
        """Of rows that are redacted at times: those that their draw redacts, and those without a
        value that it does not redact, whatever the value was, or by the one that it was.
        """
        assert self.coins is not None
        limits = thresholds(self.sheet.probabilities(self.table, layout, rows))
        below = (limits == ALWAYS) | (self.coins.draws_of(rows)[:, None] < limits)
        codes = self.table.codes[rows]
        own = np.take_along_axis(below, np.maximum(codes, 0)[:, None].astype(np.int64), 1)[:, 0]
        sure = np.take_along_axis(limits, np.maximum(codes, 0)[:, None].astype(np.int64), 1)[:, 0]
        drawn = rows[(codes >= 0) & own & (sure != ALWAYS)]
        may = below.any(axis=1)
        if self.table.original is not None:
            was = self.table.original[rows].astype(np.int64)
            by_value = np.take_along_axis(below, np.maximum(was, 0)[:, None], 1)[:, 0]
            may = np.where(was >= 0, by_value, may)
        return drawn, rows[(codes == EMPTY) & ~may]


@dataclass(frozen=True, eq=False)
class Unserved:
    """Secrets that no design serves: the chain of each, and the place of its first record."""

    chain: Integers
    place: Integers

    @classmethod
    def of(cls, secrets: Secrets, chosen: Mask) -> Unserved:
        """Some secrets."""
        return cls(secrets.chain[chosen], secrets.first[chosen])

    def joined(self, other: Unserved, chosen: Mask) -> Unserved:
        """These, and some of others."""
        return Unserved(
            np.concatenate((self.chain, other.chain[chosen])),
            np.concatenate((self.place, other.place[chosen])),
        )


_NOBODY = Unserved(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Judged:
    """What secrets came to: the best that can be said of each group. unserved: secrets that no
    design serves. layout: where there is but one. uses: else how many secrets each design serves,
    at least and at most.
    """

    verdict: Verdict
    unserved: Unserved
    layout: Layout | None
    uses: tuple[Integers, Integers] | None = None

    def costs(self, table: Table) -> Integers:
        """(chains,) how much is not explained."""
        found = np.bincount(self.unserved.chain, minlength=table.chains) * _WRONG
        for rows, weight in zip(_rows(self.verdict), (_WRONG, _WRONG, 1, _WRONG), strict=True):
            found = found + np.bincount(table.chain_of(rows), minlength=table.chains) * weight
        return np.asarray(found)

    def at(self, chain: int, rows: Integers) -> Judged:
        """From a table of one chain to that of all, in which its rows stand so."""
        unserved = Unserved(np.full_like(self.unserved.chain, chain), self.unserved.place)
        return Judged(self.verdict.at(rows), unserved, None)


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
        judged = _judged(judge, alternatives, private, joins.secrets(private, also))
        _check_uses(certificate, judged, found)
    else:
        judged = _judged_open(judge, alternatives, private, joins, found)
    _report(table, judged, certificate, found)
    _say(certificate, coins, found)


def _judged_open(
    judge: Judge, alternatives: Alternatives, private: Private, joins: Joins, found: Found
) -> Judged:
    """Where it is open which private records join: by whatever explains most, chain by chain."""
    table = judge.table
    both = [joins.secrets(private, one) for one in (None, joins.perhaps)]
    judged = [_judged(judge, alternatives, private, secrets) for secrets in both]
    costs = np.stack([one.costs(table) for one in judged])
    taken = costs.argmin(axis=0)
    least, open_ = costs.min(axis=0), 0
    others: list[Judged] = []
    for chain, mine, ways in joins.mixed(private):
        if not least[chain]:
            continue
        alone = np.array([chain])
        own, rows = judge.part(alone), table.rows_of(alone)
        for secrets in ways:
            moved = secrets.among(table, alone)
            one = _judged(own, alternatives, mine.alone(int(rows[0])), moved)
            cost = int(one.costs(own.table)[0])
            if cost < least[chain]:
                least[chain], taken[chain] = cost, len(judged) + len(others)
                others.append(one.at(chain, rows))
        if not ways:  # too many
            taken[chain], open_ = -1, open_ + 1
    verdict, unserved = _NOTHING, _NOBODY
    for at, one in enumerate([*judged, *others]):
        chosen = [taken[table.chain_of(rows)] == at for rows in _rows(one.verdict)]
        verdict = verdict.joined(one.verdict.part(chosen))
        unserved = unserved.joined(one.unserved, taken[one.unserved.chain] == at)
    found.not_checked.append(
        f"Whether {int(joins.perhaps.sum()):,} private records are one secret with those before"
        " them, as rows between them have no value, cannot be told: cells were compared with what"
        " either comes to."
        + (f" Of {open_:,} chains with too many of these, nothing was." if open_ else "")
    )
    return Judged(verdict, unserved, None)


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
        return Judged(verdicts[0], Unserved.of(secrets, ~options[0].served), options[0].layout)
    groups = alternatives.groups(table, ways)
    rows = [[groups.of_rows(one) for one in _rows(verdict)] for verdict in verdicts]
    costs = np.stack(
        [
            _costs(one, len(groups.chain)) + _unserved(option, groups)
            for option, one in zip(options, rows, strict=True)
        ]
    )
    best = costs.argmin(axis=0)
    explained, verdict = _explained(judge, ways, groups, costs.min(axis=0))
    best[explained] = len(options)
    unserved = np.zeros(secrets.count, dtype=bool)
    for at, (option, one, of) in enumerate(zip(options, verdicts, rows, strict=True)):
        chosen = [np.where(each < 0, at == 0, best[np.maximum(each, 0)] == at) for each in of]
        verdict = verdict.joined(one.part(chosen))
        unserved |= ~option.served & (best[groups.of] == at)
    uses = ways.uses(len(alternatives.listed))
    return Judged(verdict, Unserved.of(secrets, unserved), None, uses)


def _explained(
    judge: Judge, ways: Ways, groups: Groups, costs: Integers
) -> tuple[Integers, Verdict]:
    """The groups that some other layout explains better than the usual ones, and what is left: one
    layout after the other, of all groups at once that are not explained yet.
    """
    again = np.flatnonzero(costs)
    spans = (one[again].tolist() for one in (groups.first, groups.after))
    choices = {
        group: ways.choices(first, after, _MOST_LAYOUTS)
        for group, first, after in zip(again.tolist(), *spans, strict=True)
    }
    best, least = np.full(len(costs), -1), costs.copy()
    found: list[tuple[Verdict, list[Integers]]] = []
    while len(again):
        asked = [(group, next(choices[group], None)) for group in again.tolist()]
        tried = [(group, taken) for group, taken in asked if taken is not None]
        again = np.array([group for group, _ in tried], dtype=np.int64)
        taken = np.array([one for _, matches in tried for one in matches], dtype=np.int64)
        verdict = _tried(judge, ways, groups, again, taken)
        rows = [groups.of_rows(one) for one in _rows(verdict)]
        cost = _costs(rows, len(costs))
        better = again[cost[again] < least[again]]
        best[better], least[better] = len(found), cost[better]
        chosen = [(one >= 0) & (best[one] == len(found)) for one in rows]
        kept = [one[mask] for one, mask in zip(rows, chosen, strict=True)]
        found.append((verdict.part(chosen), kept))
        again = again[least[again] > 0]
    verdict = _NOTHING
    for at, (one, rows) in enumerate(found):
        verdict = verdict.joined(one.part([best[of] == at for of in rows]))
    return np.flatnonzero(best >= 0), verdict


def _tried(judge: Judge, ways: Ways, groups: Groups, some: Integers, taken: Integers) -> Verdict:
    """Of some groups, with the clusters that some matches make of their secrets."""
    chains = np.unique(groups.chain[some])
    layout = ways.acting(expand(groups.first[some], groups.after[some]), taken)
    moved = Layout(layout.spans.among(judge.table, chains), layout.which)
    return judge.part(chains).verdict(moved).at(judge.table.rows_of(chains))


def _rows(verdict: Verdict) -> tuple[Integers, Integers, Integers, Integers]:
    return verdict.shown, verdict.drawn, verdict.idle, verdict.told


def _costs(rows: list[Integers], count: int) -> Integers:
    """(groups,) how much of each is not explained. rows: the groups of the rows of a verdict."""
    shown, drawn, idle, told = (
        np.bincount(one[one >= 0], minlength=count).astype(np.int64) for one in rows
    )
    return (shown + drawn + told) * _WRONG + idle


def _unserved(option: Option, groups: Groups) -> Integers:
    """(groups,) what secrets cost that an option does not serve."""
    lacking = groups.of[~option.served]
    return np.asarray(np.bincount(lacking, minlength=len(groups.chain)) * _WRONG)


def _check_uses(certificate: Certificate, judged: Judged, found: Found) -> None:
    """Each design serves as many secrets as it says."""
    designs = certificate.designs.designs
    if judged.layout is None:
        total = sum(one.uses for one in designs)
        found.unequal("uses of all designs", certificate.counts.secrets, total)
        _check_possible_uses(certificate, judged, found)
        return
    check_uses(certificate, np.bincount(judged.layout.which, minlength=len(designs)), found)


def _check_possible_uses(certificate: Certificate, judged: Judged, found: Found) -> None:
    """No design serves fewer secrets than those that nothing else does, nor more than it can."""
    assert judged.uses is not None
    designs = certificate.designs.designs
    rows = enumerate(zip(designs, *(one.tolist() for one in judged.uses), strict=True))
    others = [
        f"designs[{at}].uses, {one.uses:,}"
        for at, (one, least, most) in rows
        if not least <= one.uses <= most
    ]
    found.wrong_at(others, len(others), "it cannot serve as many secrets, or serves more")


def _report(table: Table, judged: Judged, certificate: Certificate, found: Found) -> None:
    several = isinstance(certificate.designs, ClusteredDesigns)
    by = "every design that may act here" if several else "the designs of the secrets around it"
    lost = judged.unserved
    places = zip(lost.chain.tolist(), lost.place.tolist(), strict=True)
    names = (table.told(chain, place) for chain, place in places)
    found.wrong_at(names, len(lost.chain), "a secret that no design of the certificate serves")
    shown, drawn, idle, told = _rows(judged.verdict)
    found.wrong_at(table.named(shown), len(shown), f"a value is released that {by} always redacts")
    found.wrong_at(table.named(told), len(told), "a kept cell beside a value that is redacted")
    found.wrong_at(table.named(drawn), len(drawn), "a value is released that its draw redacts")
    check_missing(table, idle, certificate, found)


def check_missing(table: Table, idle: Integers, certificate: Certificate, found: Found) -> None:
    """That no more rows without a value than were missing are redacted by nothing."""
    missing = certificate.counts.missing
    if table.original is not None:  # then it is known which were
        idle, missing = idle[table.original[idle] != EMPTY], 0
    if len(idle) > missing:
        says = "without a value, though nothing redacts it"
        if missing:
            says += f" and counts.missing allows for {missing:,} of {len(idle):,} such rows"
        found.wrong_at(table.named(idle), len(idle), says)
