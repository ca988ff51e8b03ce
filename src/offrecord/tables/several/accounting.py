"""Releases that come after others: whether all of them together keep within what is allowed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from offrecord.errors import InputError
from offrecord.release import certificate as form
from offrecord.release.ledger import ENTERED, Ledger
from offrecord.tables.batch import ChainBatch
from offrecord.tables.options import Certificates
from offrecord.tables.several.joint import Grid, joint_of
from offrecord.tables.several.laid import Earlier, earlier_of, laid_now
from offrecord.tables.several.remembered import entry_digest
from offrecord.text import many, odds

if TYPE_CHECKING:
    from offrecord.tables.plan import Plan


@dataclass(frozen=True)
class Accounted:
    """A release judged together with others. is_kept: what is promised of this one holds for all of
    them together. entries: of these, as the ledger knows them.
    """

    joint: form.Joint
    is_kept: bool
    entries: frozenset[str]
    warnings: tuple[str, ...]

    def check_all(self, book: Ledger, dataset: str, identity: Mapping[str, str]) -> None:
        """InputError unless every release of the data set was accounted for."""
        known = {*self.entries, entry_digest(dict(identity))}
        for entry in book.releases.get(dataset, []):
            if entry_digest(entry) not in known:
                when = entry.get(ENTERED, "an unknown time")
                raise InputError(
                    f"data set {dataset!r} has another release, entered {when}, that --after does"
                    " not name: give the certificates of all of them; what was never published can"
                    " be taken back: offrecord ledger forget"
                )


def accounted_for(plan: Plan, batch: ChainBatch) -> Accounted:
    """A release together with those that it comes after; InputError if they tell too much, or
    cannot be judged together.
    """
    job, setting = plan.job, plan.designs.setting
    if setting.mechanism.designs.kind != "local":
        raise InputError(
            f"--mechanism {setting.mechanism.name} is not local: its releases are judged together"
            " with others only if they are the same, or the table grows (--growing); take a local"
            " one, such as best-local"
        )
    options, labels = job.options, plan.designs.model.labels
    coins = job.key.id, options.dataset, options.value, tuple(job.columns.by)
    before = [earlier_of(path, job.key, labels, coins) for path in _paths(options.after)]
    arranged = batch.arranged
    for path, one in zip(_paths(options.after), before, strict=True):
        _check_alike(plan, path, one)
    grid = Grid(job.step, arranged.zone, arranged.chains.timed)
    asked = options.joint_epsilon
    accepted = setting.epsilon if asked is None else float(asked)
    now = laid_now(coins, batch, plan.rule)
    joint = joint_of(now, before, setting, grid, accepted, opted_in=options.opted_in)
    is_kept = joint.leakage <= setting.epsilon
    return Accounted(
        joint, is_kept, frozenset(one.entry for one in before), _judged(joint, setting.epsilon)
    )


def _paths(after: Certificates) -> list[Path]:
    if after is None or isinstance(after, (str, Path)):
        return [] if after is None else [Path(after)]
    return [Path(one) for one in after]


def _check_alike(plan: Plan, path: Path, one: Earlier) -> None:
    """InputError unless records of both tables are named alike."""
    columns, timed = plan.job.columns, plan.survey.is_timed
    unit = None if columns.unit is None else columns.unit.text
    mine = tuple(columns.by), "time" if timed else "integer", unit
    theirs = tuple(one.columns.by), one.columns.order_kind, one.columns.order_unit
    if mine != theirs:
        raise InputError(
            f"{path}: its chains and records are not named as in this table (--by, --order,"
            " --order-unit), so that nobody can tell which are the same"
        )


def _judged(joint: form.Joint, epsilon: float) -> tuple[str, ...]:
    """What a person should know; InputError for more than is accepted."""
    releases = many(len(joint.releases) + 1, "release")
    if joint.leakage > joint.epsilon:
        raise InputError(
            f"{releases} together would tell {_shown(joint.leakage)} about a secret, more than the"
            f" {_shown(joint.epsilon)} that is allowed; the others alone have told"
            f" {_shown(joint.floor)}, which nothing can undo; redact more, or accept it:"
            f" --joint-epsilon {_rounded(joint.leakage)}"
        )
    if joint.leakage > epsilon:
        return (
            f"{releases} together tell {_shown(joint.leakage)} about a secret, more than"
            f" ε = {epsilon:g}, which was accepted; {_shown(joint.floor)} had been told before",
        )
    return ()


def _shown(leakage: float) -> str:
    if math.isinf(leakage):
        return "everything"
    return f"{leakage:.4g} (odds {odds(leakage)} to 1)"


def _rounded(leakage: float) -> str:
    return "inf" if math.isinf(leakage) else f"{math.ceil(leakage * 1000) / 1000:g}"
