"""A released table against its certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.models.base import Integers, Mask
from offrecord.models.records import Runs
from offrecord.release.certificate import Certificate
from offrecord.tables.private import Private
from offrecord.tables.steps import Step
from offrecord.verification.agreement import Found
from offrecord.verification.cells import Case, check_cells
from offrecord.verification.chance import CHAINS, check_chance, check_holes
from offrecord.verification.coins import coins_of
from offrecord.verification.members import Promised
from offrecord.verification.reading import (
    Records,
    another_list,
    check_bytes,
    check_kept,
    check_list,
    check_private,
    private_of,
    read_records,
    with_original,
)
from offrecord.verification.recount import OTHER, check_counts
from offrecord.verification.rules import Rules
from offrecord.verification.runs import clusters_of, runs_of


@dataclass(frozen=True)
class Given:
    """What is checked, and what only some know: the list, the key and the table before."""

    released: Path
    private_list: pl.DataFrame | None = None
    key_file: Path | None = None
    original: Path | None = None
    limits: Mapping[str, int] | None = None


def check_table(
    certificate: Certificate,
    promised: Promised | None,
    rules: Rules | None,
    given: Given,
    random: np.random.Generator,
) -> Found:
    """Compare a released table with its certificate; InputError for what cannot be read."""
    found = Found()
    if certificate.output is None:
        raise InputError("the certificate names no output: it is of a dry run")
    check_bytes(certificate.output, given.released, found)
    try:
        labels = None if promised is None else promised.labels
        records = read_records(certificate, given.released, labels, found, given.limits)
        if records is not None:
            if promised is not None:
                records.check_places(promised.kind)
            _check_records(records, rules, given, random)
    except InputError as error:
        if not found.problems:
            raise
        found.wrong(str(error))  # another file than the certificate is about
    except (pl.exceptions.PolarsError, OverflowError):
        raise InputError(f"{given.released} holds cells that cannot be compared") from None
    found.not_checked.append("What the files hold beside cells: metadata, spelling, making.")
    return found


def _check_records(
    records: Records, rules: Rules | None, given: Given, random: np.random.Generator
) -> None:
    _check_counts(records)
    if given.original is not None:
        records = with_original(records, given.original, given.limits)
    private = private_of(records, given.private_list)
    if private is None:
        _check_without_list(records, rules, random)
        return
    if (said := another_list(records.said, private)) is not None:
        records.found.wrong(said)  # which makes all that follows pointless
        return
    check_list(records, private, given.private_list)
    check_private(records, private)
    coins, (runs, unsure) = coins_of(records, private, given.key_file), _runs(records, private)
    if records.said.kind != "rules":
        _check_whole(records, private)
    elif rules is None:
        records.found.not_checked.append("Cells against rules: the rules cannot be judged.")
    else:
        waits = np.isin(records.chains.chain_of, unsure) & ~records.shown
        waits |= _waiting(records, private)
        clusters = clusters_of(records, runs, rules)
        _check_rules(Case(records, clusters, rules, coins, waits), random)
        check_counts(records, private, rules.promised)


def _check_rules(case: Case, random: np.random.Generator) -> None:
    lacking = sorted(case.clusters.lacking)
    for setting, place in lacking:
        case.records.found.wrong(f"policy.rules: none for the setting {setting!r} at place {place}")
    if lacking:
        return
    check_cells(case)
    if case.rules.walks and case.coins is None and not case.waits.any():
        check_chance(case, case.rules.promised.draw(CHAINS, random))


def _runs(records: Records, private: Private) -> tuple[Runs, Integers]:
    """The runs of which it is known where they end, and the chains with others."""
    (runs, joins), said = runs_of(records, private), records.counts.runs
    if not runs.count - int(joins.sum()) <= said <= runs.count:
        records.found.unequal("counts.runs", said, runs.count)
    unsure = np.unique(runs.chain[joins]) if said < runs.count else runs.chain[:0]
    if len(unsure):
        records.found.not_checked.append(
            f"Cells of {len(unsure):,} chains: whether rows between private ones are redacted or"
            " were missing is not known without the original."
        )
    return runs.part(~np.isin(runs.chain, unsure)), unsure


def _check_counts(records: Records) -> None:
    counts, found = records.counts, records.found
    released = int(np.count_nonzero(records.shown))
    there = {"rows": len(records.codes), "chains": records.chains.count, "released": released}
    for name, count in there.items():
        found.unequal(f"counts.{name}", getattr(counts, name), count)
    none = np.flatnonzero(records.codes < -1)
    records.wrong(none, "a value that is none of the model's labels")
    found.checked.append("Rows, chains, order, labels and the number of values released.")


def _check_without_list(records: Records, rules: Rules | None, random: np.random.Generator) -> None:
    """What can be said where nobody says which records are private."""
    found = records.found
    found.not_checked.append(
        "Chains that left as a whole: no list was given (counts.dropped_chains)."
    )
    found.not_checked.append(
        "Cells against rules: nobody says which records are private (private, counts.private,"
        " counts.runs, counts.missing, counts.dropped_chains, key_id, dataset, growing)."
    )
    if rules is None:
        return
    if rules.promised.coverage is not None:
        found.not_checked.append(f"{OTHER}: nobody says which records are private.")
    if records.said.growing is None:  # rows that wait are empty, and no holes
        check_holes(records, rules, rules.promised.draw(CHAINS, random))


def _check_whole(records: Records, private: Private) -> None:
    """Nothing is left of a chain that holds a private record."""
    # any other record of such a chain may depend on the private one, under no model at all
    touched = np.isin(records.chains.chain_of, private.chain)
    records.hidden(touched, "a value is released of a chain with a private record")
    check_kept(records, touched)
    empty = int(np.count_nonzero(~touched & ~records.shown))
    if empty > records.counts.missing:
        records.found.wrong(f"{empty:,} rows of other chains are empty")
    records.found.checked.append("That every chain with a private record has left as a whole.")


def _waiting(records: Records, private: Private) -> Mask:
    """(n,) rows of a growing table that a later opt-out might still reach."""
    growing, step, zone = records.said.growing, records.arranged.step, records.arranged.zone
    if growing is None or step is None:  # without a step the certificate contradicts itself
        return np.zeros(len(records.codes), dtype=bool)
    if growing.until > records.order.max(initial=growing.until - 1):
        records.found.wrong("growing.until lies beyond the newest record")
    newest = _newest(records.order[records.chains.starts[:-1]], growing.until, step, zone)
    known = newest - growing.lag + growing.reach  # all opt-outs up to here are known
    begins = known - growing.reach + 1
    for chain in np.unique(private.chain).tolist():
        head = known[chain] + 1
        for place in reversed(private.place[private.chain == chain].tolist()):
            if place <= known[chain]:
                # what waits for a later record takes along those it may depend on
                if not _goes_on(records, chain, place, head, growing.link):
                    break
                head = place
        begins[chain] = min(begins[chain], head - growing.reach)
    return np.asarray(records.chains.places >= begins[records.chains.chain_of])


def _newest(first: Integers, until: int, step: Step, zone: str | None) -> Integers:
    """(m,) the place of each chain's last step that is over."""
    newest, _ = step.counted(first, np.full(len(first), until), zone)
    return np.where(step.onward(first, newest, zone) > until, newest - 1, newest)


def _goes_on(records: Records, chain: int, first: int, last: int, link: int) -> bool:
    """Whether what happens to a private record may depend on one at a later place."""
    if last - first <= link:
        return True
    rows = records.row_from(np.array([chain, chain]), np.array([first + 1, last]))
    return not (records.known[rows[0] : rows[1]] != -1).any()
