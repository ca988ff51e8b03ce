"""A released table against its certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.release.certificate import Certificate, Growing
from offrecord.tables.frames import Native
from offrecord.tables.private import Private
from offrecord.verification.agreement import Found
from offrecord.verification.chance import CHAINS, check_chance, check_holes
from offrecord.verification.coins import Coins, check_key, read_coins
from offrecord.verification.local import check_local, limits_of, redacted_exactly
from offrecord.verification.members import Drawn, Mask, Promised
from offrecord.verification.reading import (
    Records,
    check_bytes,
    check_kept_beside,
    check_private,
    private_of,
    read_records,
    with_original,
)
from offrecord.verification.recount import OTHER, check_counts
from offrecord.verification.rules import Rules
from offrecord.verification.runs import Case, Runs, clusters_of, runs_of
from offrecord.verification.walks import check_walks, redacted_by_walks


@dataclass(frozen=True)
class Given:
    """What is checked: the release, and what only some know: the private list, the publisher's key,
    and the table before it was redacted. limits: of what files may hold, as `redact` takes them.
    """

    released: Path
    private_list: Native | Path | None = None
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
            judged = None if promised is None or rules is None else (promised, rules)
            if promised is not None:
                records.check_places(promised.kind, found)
            _check_records(certificate, judged, given, records, random, found)
    except InputError as error:
        if not found.problems:
            raise
        found.wrong(str(error))  # another file than the certificate is about
    except (pl.exceptions.PolarsError, OverflowError):
        raise InputError(f"{given.released} holds cells that cannot be compared") from None
    found.not_checked.append("What the files hold beside cells: metadata, spelling, making.")
    return found


def _check_records(
    certificate: Certificate,
    judged: tuple[Promised, Rules] | None,
    given: Given,
    records: Records,
    random: np.random.Generator,
    found: Found,
) -> None:
    counts = certificate.counts
    found.unequal("counts.rows", counts.rows, len(records.codes))
    found.unequal("counts.chains", counts.chains, len(records.starts) - 1)
    found.unequal("counts.released", counts.released, int(np.count_nonzero(records.codes >= 0)))
    other = np.flatnonzero(records.codes < -1)
    found.wrong_at(records.named(other), len(other), "a value that is none of the model's labels")
    found.checked.append("Rows, chains, order, labels and the number of values released.")
    if given.original is not None:
        records = with_original(records, given.original, certificate, found, given.limits)
    private = private_of(records, certificate, given.private_list, found)
    if private is None:
        _check_without_list(certificate, judged, records, random, found)
        return
    check_private(records, private, certificate, found)
    coins = _coins_of(certificate, given, records, private, found)
    runs = runs_of(records, private, certificate.claim.protect, counts.missing)
    if not runs.count - int(runs.open.sum()) <= counts.runs <= runs.count:
        found.unequal("counts.runs", counts.runs, runs.count)
    if certificate.kind != "rules":
        _check_whole(records, private, certificate, found)
    elif judged is None:
        found.not_checked.append("Cells against rules: the rules cannot be judged.")
    else:
        _check_rules(certificate, judged, (records, private, runs, coins), random, found)
        check_counts(records, private, certificate, judged[0], found)


def _check_without_list(
    certificate: Certificate,
    judged: tuple[Promised, Rules] | None,
    records: Records,
    random: np.random.Generator,
    found: Found,
) -> None:
    """What can be said where nobody says which records are private."""
    found.not_checked.append(
        "Cells against rules: nobody says which records are private (private, counts.private,"
        " counts.runs, counts.missing, counts.dropped_chains, key_id, dataset, growing)."
    )
    if judged is None:
        return
    promised, rules = judged
    if promised.coverage is not None:
        found.not_checked.append(f"{OTHER}: nobody says which records are private.")
    if certificate.growing is None:  # rows that wait are empty, and no holes
        counts, drawn = certificate.counts, promised.draw(CHAINS, random)
        check_holes(records, rules, drawn, counts.private, counts.missing, found)


def _coins_of(
    certificate: Certificate, given: Given, records: Records, private: Private, found: Found
) -> Coins | None:
    """The coins of the key, if it was given and is the one that drew them."""
    if given.key_file is None:
        found.not_checked.append("Coins: the key was not given (key_id, dataset, private.digest).")
        return None
    coins = read_coins(given.key_file, certificate, records)
    return check_key(coins, private, certificate, found)


def _check_rules(
    certificate: Certificate,
    judged: tuple[Promised, Rules],
    seen: tuple[Records, Private, Runs, Coins | None],
    random: np.random.Generator,
    found: Found,
) -> None:
    """Cells against the rules of the runs around them."""
    (promised, rules), (records, private, runs, coins) = judged, seen
    counts = certificate.counts
    unsure = np.unique(runs.chain[runs.open]) if counts.runs < runs.count else runs.chain[:0]
    if len(unsure):
        runs = runs.without(unsure)
        found.not_checked.append(
            f"Cells of {len(unsure):,} chains: whether rows between private ones are redacted or"
            " were missing is not known without the original."
        )
    clusters, lacking = clusters_of(records, runs, rules)
    for setting, place in sorted(lacking):
        found.wrong(f"policy.rules: none for the setting {setting!r} at place {place}")
    if not lacking:
        waits = _waiting(records, private, certificate.growing, found)
        waits |= np.isin(records.chain_of, unsure) & (records.codes < 0)
        case = Case(records, clusters, rules, coins, waits, counts.missing)
        _check_cells(case, promised.draw(CHAINS, random), found)


def _check_whole(
    records: Records, private: Private, certificate: Certificate, found: Found
) -> None:
    """Nothing is left of a chain that holds a private record."""
    # any other record of such a chain may depend on the private one, under no model at all
    touched = np.isin(records.chain_of, private.chain)
    shown = np.flatnonzero(touched & (records.codes >= 0))
    says = "a value is released of a chain with a private record"
    found.wrong_at(records.named(shown), len(shown), says)
    check_kept_beside(records, touched, found)
    empty = int(np.count_nonzero(~touched & (records.codes < 0)))
    if empty > certificate.counts.missing:
        found.wrong(f"{empty:,} rows of other chains are empty")
    found.checked.append("That every chain with a private record has left as a whole.")


def _check_cells(case: Case, drawn: Drawn, found: Found) -> None:
    records, rules, waits = case.records, case.rules, case.waits
    local = None if rules.walks else limits_of(records, case.clusters, rules.kind.k)
    early = np.flatnonzero(waits & (records.codes >= 0))
    found.wrong_at(records.named(early), len(early), "a value is released that has to wait")
    if records.original is not None and case.coins is not None:
        gone = redacted_by_walks(case) if local is None else redacted_exactly(case, local)
        gone |= waits
        shown = records.codes >= 0
        says = "a value is released that rules and coins redact"
        wrong = np.flatnonzero(shown & gone & ~waits)
        found.wrong_at(records.named(wrong), len(wrong), says)
        wrong = np.flatnonzero(~shown & ~gone & (records.original != -1))
        says = "empty, although rules and coins release it"
        found.wrong_at(records.named(wrong), len(wrong), says)
        check_kept_beside(records, gone, found)
        found.checked.append("Every cell, recomputed from rules, coins and the original values.")
        return
    if local is not None:
        check_local(case, local, found)
        check_kept_beside(records, local.sure | waits, found)
    else:
        check_walks(case, found)
        if case.coins is None and not waits.any():
            check_chance(case, drawn, found)
    found.checked.append("That each released value may be released by the rules around it.")
    if case.coins is not None:
        found.not_checked.append("What coins decided by values that are redacted: no original.")


def _waiting(records: Records, private: Private, growing: Growing | None, found: Found) -> Mask:
    """(n,) rows of a growing table that a later opt-out might still reach."""
    step, zone = records.arranged.step, records.arranged.zone
    if growing is None or step is None:  # without a step the certificate contradicts itself
        return np.zeros(len(records.codes), dtype=bool)
    if growing.until > records.order.max(initial=growing.until - 1):
        found.wrong("growing.until lies beyond the newest record")
    first = records.order[records.starts[:-1]]
    until = np.full(len(first), growing.until)
    newest, _ = step.counted(first, until, zone)
    newest = np.where(step.onward(first, newest, zone) > until, newest - 1, newest)
    known = newest - growing.lag + growing.reach  # all opt-outs up to here are known
    begins = known - growing.reach + 1
    for chain in np.unique(private.chain).tolist():
        places = private.place[private.chain == chain]
        places = places[places <= known[chain]]
        if not len(places) or not _goes_on(records, chain, places[-1], known[chain] + 1, growing):
            continue
        head = len(places) - 1
        while head and _goes_on(records, chain, places[head - 1], places[head], growing):
            head -= 1
        begins[chain] = min(begins[chain], places[head] - growing.reach)
    return np.asarray(records.places >= begins[records.chain_of])


def _goes_on(records: Records, chain: int, first: int, last: int, growing: Growing) -> bool:
    """Whether what happens to a private record may depend on one at a later place."""
    if last - first <= growing.link:
        return True
    codes = records.codes if records.original is None else records.original
    rows = records.row_from(np.array([chain, chain]), np.array([first + 1, last]))
    return not (codes[rows[0] : rows[1]] != -1).any()
