"""Whether the redacted stretches of a table follow owner's designs: the rule `stopping`.

Where walks stopped is seen by what is released. Which option a cluster took is not, so a chain is a
problem only if no choice of options explains all of its stretches: each stop at a level of a side
that its cluster may take, gaps between clusters released if each stop leaves the last level of the
other walk, everything beyond the last levels released.

rule        what the certificate allows    sights    what is seen around secrets
explaining  choices that explain it        stops     where walks may stop
drawn       what the key says of walks     held      and of gaps that are held out
thresholds  a walk by its draws            stand_ins for missing values
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from offrecord.release.certificate import Certificate
from offrecord.verify.table.cells import EMPTY, Integers, Mask
from offrecord.verify.table.coins import Coins
from offrecord.verify.table.found import Found
from offrecord.verify.table.listed import Private
from offrecord.verify.table.owner.drawn import Drawn
from offrecord.verify.table.owner.explaining import NEVER, Choices, Floats
from offrecord.verify.table.owner.rule import Rule
from offrecord.verify.table.owner.sights import Places, View
from offrecord.verify.table.rows import Table
from offrecord.verify.table.secrets import Joins, Secrets, joins_of
from offrecord.verify.table.serving import Serving, check_uses

_AT_ONCE = 1 << 15  # secrets whose chains are looked at together


def check_owner(
    table: Table,
    private: Private,
    certificate: Certificate,
    coins: Coins | None,
    found: Found,
    joined: tuple[Joins, Mask | None] | None = None,
) -> None:
    """Compare redacted stretches with where walks may stop. joined: how private records join, where
    that is known from a larger table.
    """
    joins, also = joined or joins_of(table, private, certificate, found)
    rule = Rule(certificate)
    drawn = None if coins is None else Drawn(rule, coins)
    check = _Check(rule, table, private, View.of(table), drawn)
    for one in _tried(joins, also):
        uses = check.look(joins.secrets(private, one))
    if also is not None and joined is None:
        check_uses(certificate, uses, found)
    open_ = 0
    for number, _, ways in joins.mixed(private) if also is None else ():
        if not ways:  # too many
            open_ += 1
            check.skip(number)
        elif check.costs[number]:
            for secrets in ways:
                check.look(secrets)
    check.report(found)
    _check_elsewhere(table, private, certificate, found)
    _check_kept(table, private, certificate, found)
    missing, total = certificate.counts.missing, check.total
    if table.original is not None:  # then what was missing is no cost
        missing = 0
    if total > missing:
        found.wrong(
            f"{total:,} rows have no value though no walk redacts them, but counts.missing says"
            f" {missing:,}"
        )
    _say(drawn, found)
    if also is None:
        found.not_checked.append(
            "Whether private records with nothing but empty rows between them are one secret cannot"
            " be told: either must explain what is redacted."
            + (
                f" Of {open_:,} chains with too many of these, nothing was checked."
                if open_
                else ""
            )
        )


def _tried(joins: Joins, also: Mask | None) -> list[Mask]:
    return [also] if also is not None else [np.zeros_like(joins.perhaps), joins.perhaps]


class _Check:
    """What the chains of a table cost by the best that was looked at.

    costs: (chains,) −1 of those without a secret. lost: of those that nothing explains, how to name
    where.
    """

    def __init__(
        self, rule: Rule, table: Table, private: Private, view: View, drawn: Drawn | None
    ) -> None:
        self.rule, self.table, self.private = rule, table, private
        self.view, self.drawn = view, drawn
        self.serving = Serving(rule.certificate, range(len(rule.designs.designs)))
        self.costs = np.full(table.chains, -1.0)
        self.unserved: dict[int, int] = {}
        self.lost: dict[int, Choices | None] = {}

    def look(self, secrets: Secrets) -> Integers:
        """At chains whose secrets are these; (designs,) how many each design serves."""
        which = self.serving.serving(self.table, self.private, secrets)
        stoppings = np.array([one.stopping for one in self.rule.designs.designs] + [-1])[which]
        chains = np.unique(secrets.chain)
        costs = np.zeros(len(chains))
        is_short = self.table.lengths[chains] <= self.rule.extra
        costs[is_short] = np.where(self.view.released(chains[is_short]), NEVER, 0.0)
        lacking = np.flatnonzero(stoppings < 0)
        is_unserved = np.isin(chains, secrets.chain[lacking])
        costs[is_unserved] = NEVER
        plain = ~(is_short | is_unserved)
        some = plain[np.searchsorted(chains, secrets.chain)]
        costs[plain] = self._explain(secrets.part(some), stoppings[some])
        for at in lacking[::-1].tolist():
            self.unserved[int(secrets.chain[at])] = int(secrets.first[at])
        for chain in chains[(costs == NEVER) & is_short].tolist():
            self.lost[chain] = None
        before = self.costs[chains]
        self.costs[chains] = np.where(before < 0, costs, np.minimum(before, costs))
        return np.bincount(which[which >= 0], minlength=len(self.rule.designs.designs))

    def _explain(self, secrets: Secrets, stoppings: Integers) -> Floats:
        """(chains,) what chains with secrets cost, some of them at a time."""
        begins = np.flatnonzero(np.diff(secrets.chain, prepend=-1))
        blocks = np.append(begins[:: max(_AT_ONCE * len(begins) // (secrets.count + 1), 1)], -1)
        blocks[-1] = secrets.count
        found = [np.zeros(0)]
        for begin, end in pairwise(blocks.tolist()):
            some = np.arange(begin, end)
            places = Places.of(self.view, self.rule.extra, secrets.part(some), stoppings[some])
            missing = self.rule.certificate.counts.missing
            choices = Choices(self.rule, places, missing, self.drawn)
            costs = choices.explained()
            for chain in places.number[costs == NEVER].tolist():
                self.lost[chain] = choices
                self.unserved.pop(chain, None)
            found.append(costs)
        return np.concatenate(found)

    def skip(self, chain: int) -> None:
        """Nothing is said of a chain."""
        self.costs[chain] = 0.0

    @property
    def total(self) -> int:
        """Rows that must have been missing, in all chains."""
        finite = np.isfinite(self.costs) & (self.costs > 0)
        return int(self.costs[finite].sum()) + len(_elsewhere(self.table, self.private))

    def report(self, found: Found) -> None:
        """Chains that nothing explains."""
        never = np.flatnonzero(self.costs == NEVER).tolist()
        lost = [chain for chain in never if chain not in self.unserved]
        unserved = [chain for chain in never if chain in self.unserved]
        says = "what is redacted there, or further to the left, is explained by no option"
        found.wrong_at(map(self._told, lost), len(lost), says)
        names = (self.table.told(chain, self.unserved[chain]) for chain in unserved)
        says = "a secret that no design of the certificate serves"
        found.wrong_at(names, len(unserved), says)

    def _told(self, chain: int) -> str:
        """Where the first stretch is that is not explained."""
        choices = self.lost[chain]
        if choices is None:
            return "a chain that is too short for a tuple of its model's order"
        at = int(np.searchsorted(choices.places.number, chain))
        gap = choices.unexplained(at)
        secrets = choices.places.part(np.array([at]))
        where = "before" if gap < secrets.count else "after"
        begin = int(secrets.begin[min(gap, secrets.count - 1)])
        return f"{where} the secret at {self.table.told(chain, begin)}"


def _say(drawn: Drawn | None, found: Found) -> None:
    found.checked.append(
        "Every redacted stretch: walks stop at levels of sides that their clusters may take, and"
        " what lies beyond the last levels is released, but for what was missing."
    )
    found.not_checked.append(
        "Which option a cluster took is not told: one of those that it may take must explain what"
        " is redacted."
    )
    if drawn is None:
        found.not_checked.append("Draws: they need the publisher's key.")
        return
    if not drawn.is_exact:
        found.checked.append(
            "Every draw of walks and gaps: some values of what is redacted go with all of them."
        )
        found.not_checked.append(
            "Draws by the values that were redacted: they need the table as it was (--original)."
            " Without it a walk that reached its last level, and a gap that was held out of which"
            " nothing is released, may be those of private records without a value."
        )
        return
    found.checked.append(
        "Every draw of walks and gaps, and of stand-ins for missing values: what is redacted is"
        " what they say of the values that were there."
    )
    if drawn.unsure:
        found.not_checked.append(
            "Stand-ins that walks saw in longer stretches of missing records, or beyond the ends of"
            " chains that are not stationary or of order above 1: any value was allowed for them"
            f" ({drawn.unsure:,} times)."
        )


def _check_kept(table: Table, private: Private, certificate: Certificate, found: Found) -> None:
    """Kept cells are empty beside a redacted value, though not beside one that was missing."""
    if table.kept is None or table.columns.keep_all:
        return
    told = (table.codes == EMPTY) & table.kept
    told[private.row[private.there]] = False
    missing = certificate.counts.missing
    if table.original is not None:
        told &= table.original != EMPTY
        missing = 0
    rows = np.flatnonzero(told)
    if len(rows) > missing:
        says = "a kept cell beside a value that is redacted, or there are more missing than said"
        found.wrong_at(table.named(rows), len(rows), says)


def _elsewhere(table: Table, private: Private) -> Integers:
    """The rows of chains without a secret that have no value, though they may have had one."""
    empty = table.codes == EMPTY
    if table.original is not None:
        empty &= table.original != EMPTY
    rows = np.flatnonzero(empty)
    touched = np.zeros(table.chains, dtype=bool)
    touched[private.chain] = True
    return rows[~touched[table.chain_of(rows)]]


def _check_elsewhere(
    table: Table, private: Private, certificate: Certificate, found: Found
) -> None:
    if certificate.counts.missing and table.original is None:
        return
    rows = _elsewhere(table, private)
    found.wrong_at(table.named(rows), len(rows), "without a value, though nothing redacts it")
