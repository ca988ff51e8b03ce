"""How a release stands in the ledger: what tells it from others, and whether it may be entered."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from offrecord.designs.library import Designs
from offrecord.errors import InputError
from offrecord.models.base import Integers
from offrecord.release.certificate import Release as Standing
from offrecord.release.ledger import RECORDS, Ledger
from offrecord.tables.cautions import about_others
from offrecord.tables.job import Job, ModelledJob
from offrecord.tables.several.accounting import Accounted
from offrecord.tables.several.growing import Before
from offrecord.tables.survey import Dropped, Survey, digest_text
from offrecord.text import many

#: Why the ledger forgot a release.
_ON_WORD = "on the publisher's word that nothing of it was ever published"
_UNKNOWN = "the key was there without its ledger: earlier releases are not known"


class Entered(NamedTuple):
    """How a release stands in the ledger: what the certificate says of it, and what a person should
    know.
    """

    said: Standing
    warnings: tuple[str, ...]


def release_identity(
    modelled: ModelledJob, survey: Survey, dropped: Dropped, designs: Designs, which: Integers
) -> dict[str, str]:
    """Digests of what decides a release; of sets of records, whatever their order, and for the
    key's owner alone.
    """
    job = modelled.job
    private = survey.private_digest ^ dropped.digest, survey.private + dropped.private
    identity = {
        "private list": digest_text(*private),
        "model": _digest(modelled.model.to_dict()),
        "epsilon": repr(job.epsilon),
        "mechanism": f"{designs.setting.mechanism.name}, {job.options.protect}",
        "choice of columns": _digest(_shape(job, survey)),
        "set of designs": _designs_digest(survey, designs, which),
    }
    if survey.private:
        identity[RECORDS] = digest_text(survey.records_digest, survey.private)
    return identity


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _shape(job: Job, survey: Survey) -> list[Any]:
    """How a table is read and what leaves of it."""
    columns = job.columns
    return [
        columns.value,
        columns.order,
        columns.by,
        columns.keep,
        None if job.step is None else job.step.text,
        [str(kind) for kind in survey.names_are_integers],
        survey.is_timed,
        *([] if columns.keep_all or not columns.keep else ["emptied beside redacted values"]),
    ]


def _designs_digest(survey: Survey, designs: Designs, which: Integers) -> str:
    """Of the designs, and of the secrets that have each."""
    count = len(designs.designs)
    marks = np.zeros((count, 2), dtype=np.uint64)
    np.bitwise_xor.at(marks, which, survey.secrets_digests)
    sizes = np.bincount(which, survey.needs.counts, minlength=count).astype(np.int64)
    digest = hashlib.sha256(designs.digest.encode())
    for mark, size in zip(marks, sizes.tolist(), strict=True):
        digest.update(digest_text(mark, size).encode())
    return digest.hexdigest()


def refuse_another(
    modelled: ModelledJob, book: Ledger, survey: Survey, identity: dict[str, str]
) -> None:
    """InputError for a second, different release, and for one of a growing table that does not
    continue the one before.
    """
    job, dataset = modelled.job, modelled.job.options.dataset
    if job.options.growing:
        _check_continued(modelled, book, survey, identity)
        return
    if job.options.after is not None:
        return  # what all releases tell together decides, once that is known
    differences = book.differences(dataset, identity)
    if differences and not job.options.another_release:
        raise InputError(
            f"data set {dataset!r} was released before with another"
            f" {' and another '.join(differences)}; a second look at the same records adds to what"
            " the first gave away. Records that were released before, in a table that has grown or"
            " was corrected, must keep their --dataset: add --another-release. Another --dataset"
            " is for data about other records alone. What was never published can be taken back:"
            " offrecord ledger forget"
        )


def _check_continued(
    modelled: ModelledJob, book: Ledger, survey: Survey, identity: dict[str, str]
) -> None:
    """InputError unless a release of a growing table continues the last one."""
    job, before = modelled.job, modelled.before
    last = Before.of(book.releases.get(job.options.dataset, ()), job.options.dataset)
    if last is None:
        return
    if before is None or before.entry != last.entry:
        raise InputError(f"data set {job.options.dataset!r} was released meanwhile; start again")
    known = digest_text(survey.known_digest, survey.known)
    differences = before.differences(identity, known, survey.reached)
    if differences:
        raise not_continued(job, differences)


def not_continued(job: Job, differences: Sequence[str]) -> InputError:
    """What is said of a release of a growing table that does not continue the last one."""
    return InputError(
        f"this does not continue the last release of data set {job.options.dataset!r}, so that"
        f" together they may tell more than e^ε: {differences[0]}"
    )


def about_elsewhere(job: Job, book: Ledger, identity: dict[str, str]) -> list[str]:
    """That the same private records were released under another name, with other coins; after
    others, that is told once they are known.
    """
    names = book.elsewhere(job.options.dataset, identity)
    return _told_elsewhere(job, names) if job.options.after is None else []


def _told_elsewhere(job: Job, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [
        f"the very same private records, of a column {job.columns.value!r}, were released as data"
        f" set {names[0]!r} before: if these are the same data, keep --dataset {names[0]!r}, as"
        " both together may leak more than either, and the certificate says that this is not known."
        " Other data may have a key of their own (--key-file)"
    ]


def foretold(modelled: ModelledJob, survey: Survey, identity: dict[str, str]) -> list[str]:
    """What the ledger would say of a release, for a dry run; what would leave is not known."""
    job = modelled.job
    try:
        book = Ledger.read(job.key)
        refuse_another(modelled, book, survey, identity)
    except InputError as error:
        return [f"the ledger would refuse this, as far as can be told without deciding it: {error}"]
    return about_elsewhere(job, book, identity)


def standing(
    job: Job, book: Ledger, identity: dict[str, str], accounted: Accounted | None
) -> Entered:
    """How a release that has been entered stands in the ledger."""
    dataset, key = job.options.dataset, job.key
    others, warnings = book.others(dataset, identity), []
    if not book.announced:
        warnings.append(
            f"made a new key, {key.file} (id {key.id}): keep it secret, and keep it: a re-release"
            " with another key is a second look at the data"
        )
    judged = job.options.growing or accounted is not None  # together with those before
    if others and not judged:
        said = Standing(other_releases=others, composed=False)
        return Entered(said, (*warnings, *about_others(said, dataset)))
    why, told = _unknown(job, book, identity, accounted)
    if why is not None:
        said = Standing(other_releases=None, composed=None, why=why)
        return Entered(said, (*warnings, *told))
    kept = accounted is None or accounted.is_kept
    return Entered(Standing(other_releases=others, composed=kept), tuple(warnings))


def _unknown(
    job: Job, book: Ledger, identity: dict[str, str], accounted: Accounted | None
) -> tuple[str | None, list[str]]:
    """Why nobody knows whether there were other releases, None where that is known; and what is
    said of it besides.
    """
    dataset = job.options.dataset
    unpublished = book.others_forgotten(dataset, identity)
    elsewhere = Counter(book.elsewhere(dataset, identity))
    if accounted is not None:
        elsewhere -= Counter(one.dataset for one in accounted.joint.releases)
    if unpublished:
        why = f"the ledger forgot {many(unpublished, 'other release')} of the data set, {_ON_WORD}"
        return why, [f"{why}; the certificate says so"]
    if elsewhere:
        count = many(elsewhere.total(), "release")
        why = f"{count} of other data sets had the very same private records"
        return why, [] if accounted is None else _told_elsewhere(job, list(elsewhere))
    if not book.complete:
        told = (
            f"the key {job.key.file} was there without its ledger, so nobody knows whether data set"
            f" {dataset!r} was released before; the certificate says so"
        )
        return _UNKNOWN, [told]
    return None, []


def not_entered(job: Job) -> Standing:
    """What the certificate says of a release that the ledger does not know."""
    why = "the release has not been entered into the ledger yet"
    if job.options.dry_run:
        why = "a dry run is no release"
    return Standing(other_releases=None, composed=None, why=why)
