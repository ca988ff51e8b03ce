"""What somebody who holds a release, its certificate and the model infers about private runs.

Beside Bayes, patterns just beyond the rule's reach are counted next to records that are never
redacted: they show what the same patterns next to a private record would have leaked, whatever the
model says (plausible chains, section 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from offrecord.attacks import local
from offrecord.attacks.paths import Inferred, Paths, Shown
from offrecord.attacks.released import Released
from offrecord.attacks.result import INSTEAD, PROMISED, Attack, Attacker
from offrecord.attacks.walks import Walks
from offrecord.fitting.audit import counted_beyond, dependence
from offrecord.fitting.counting import Reference
from offrecord.mechanisms.deciding.decide import ALWAYS, NEVER
from offrecord.mechanisms.deciding.layout import layout_of
from offrecord.mechanisms.deciding.rule_book import RuleBook
from offrecord.mechanisms.deciding.stopping import clusters_of
from offrecord.mechanisms.rules import LocalRule, StoppingRule
from offrecord.models.evidence import Dependence, Verdict
from offrecord.models.records import MISSING, Chains, Codes
from offrecord.tables.frames import Native
from offrecord.text import many
from offrecord.theory.window import smallest_windows


def neighbours(reference: Reference) -> Dependence | None:
    """What the next chain's record at the same time says, beyond what all chains have in common;
    None where too few chains have records at the same times.
    """
    return dependence(reference) if reference.units > 1 else None


CERTIFICATE = ".certificate.json"  #: what the name of a certificate adds to that of its table


def attack(
    released: str | Path,
    *,
    certificate: str | Path | None = None,
    private_list: Native | str | Path | None = None,
    original: str | Path | None = None,
    limits: Mapping[str, int] | None = None,
) -> Attack:
    """Attack a release by its files.

    Args:
        released: the released table.
        certificate: its certificate, unless it lies beside the table.
        private_list: the private records, where the certificate does not publish them: a frame or a
            file.
        original: the table that was redacted, to compare with plain erasure.
        limits: of what the tables may hold, as `redact` takes them.

    Returns:
        What each attacker infers.

    Raises:
        InputError: for what cannot be read, and for files that do not belong together.
    """
    proof = Path(f"{released}{CERTIFICATE}") if certificate is None else Path(certificate)
    before = None if original is None else Path(original)
    return _attacked(Released.of_files(Path(released), proof, private_list, before, limits))


def _attacked(held: Released) -> Attack:
    own = _by_model(held)
    attackers = [Attacker("the model", PROMISED, own.ratio)]
    if held.original is not None:
        erased = np.where(held.is_private, np.int8(MISSING), held.original)
        erased = np.where(held.waits, np.int8(MISSING), erased)
        layout = layout_of(held.standing, held.runs, held.promise.order, held.place_of)
        paths = Paths(_plain(held, erased), held.promise.mean, held.place_of)
        ratios = local.inferred(paths, layout, held.runs).ratio
        ratios = np.where(held.settled, ratios, np.nan)
        attackers.append(Attacker("plain erasure instead", INSTEAD, ratios))
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
        notes=_notes(held, own),
        counted=_counted(held, reference),
        neighbours=neighbours(reference),
    )


def _by_model(held: Released) -> Inferred:
    """By the mean chain and the rules that act."""
    order = held.promise.order
    layout = layout_of(held.standing, held.runs, order, held.place_of)
    book = RuleBook.of_policy(held.policy, order)
    if held.policy.is_local:
        aside = np.flatnonzero(held.missing | held.waits)
        shown = local.shown_by_rules(held.chains, held.codes, aside, layout, book)
        found = local.inferred(Paths(shown, held.promise.mean, held.place_of), layout, held.runs)
    elif held.policy.kinds <= _KNOWN:
        shown = _plain(held, held.codes)
        paths = Paths(shown, held.promise.mean, held.place_of)
        found = Walks(paths, clusters_of(layout, book), book).inferred(held.runs)
    else:
        unknown = np.full((held.runs.count, held.promise.k), np.nan)
        return Inferred(unknown[:, 0], unknown, unknown)
    return found._replace(ratio=np.where(held.settled, found.ratio, np.nan))


#: Kinds of rules whose likelihoods an attacker computes.
_KNOWN = {LocalRule.kind, StoppingRule.kind}


def _plain(held: Released, codes: Codes) -> Shown:
    """Released values, and nothing else."""
    known = held.arranged.chains
    chains = Chains(known.starts, codes, known.order, known.timed, known.steps)
    nothing = np.empty(0, dtype=np.int64)
    return Shown.of(chains, codes, held.promise.k, nothing, np.zeros((0, held.promise.k)))


def _counted(held: Released, reference: Reference) -> Verdict | None:
    """Counts beyond what the rules leave out, or beyond the window that the mean chain asks for."""
    promise, size = held.promise, held.policy.reach
    if not all(rule.is_window for rule in held.policy.sides):
        asked = smallest_windows(promise.mean, "record", _a_place(held), held.policy.epsilon, 0)
        if asked is None:
            return None
        size = min(max(asked), size)
    once = promise.places is not None and not promise.places.cyclic
    return counted_beyond(reference, promise.labels, size, held.policy.epsilon, once=once)


def _a_place(held: Released) -> int:
    """A place at which rules act."""
    return sorted(setting.place for setting in held.policy.rules)[len(held.policy.rules) // 2]


def _notes(held: Released, own: Inferred) -> tuple[str, ...]:
    notes = []
    waiting = int((~held.settled).sum())
    if waiting:
        notes.append(f"not attacked: {many(waiting, 'private run')} beside records that still wait")
    unknown = sorted(held.policy.kinds - _KNOWN)
    if unknown:
        notes.append(
            f"not attacked by the model: no attack knows rules of the kind {', '.join(unknown)}"
        )
    impossible = int(np.isnan(own.ratio).sum()) - waiting
    if impossible > 0 and not unknown:
        notes.append(
            f"not attacked: {many(impossible, 'private run')} beside which the model holds what is"
            " released for impossible"
        )
    if held.runs.count != held.certificate.counts.runs:
        notes.append(
            f"{many(held.runs.count, 'private run')} here where the certificate counts"
            f" {held.certificate.counts.runs:,}: which records between private ones are missing is"
            " not known"
        )
    return tuple(notes)
