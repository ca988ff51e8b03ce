"""How a release stands in the ledger: what distinguishes it, and whether it may be entered."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from offrecord.errors import InputError, as_called
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.promise import Promise
from offrecord.release.certificate import Standing
from offrecord.release.ledger import RECORDS, Ledger
from offrecord.tables.checks.check import REFUSED, DataCheck, Finding
from offrecord.tables.growing import Before
from offrecord.tables.options import NEVER_PUBLISHED
from offrecord.tables.survey import Survey, digest_text
from offrecord.tables.table import Dropped
from offrecord.text import many

if TYPE_CHECKING:
    from offrecord.tables.given import Given
    from offrecord.tables.plan import Plan

_RULES = "set of rules"
# in a certificate, which must not name a file of the publisher's machine
_NO_LEDGER = "the key was there without its ledger: earlier releases are not known"
#: How the warning of a dry run begins whose release the ledger would refuse.
FORETOLD = f"{REFUSED} by the ledger, as far as is known without deciding it:"


class OtherReleases(DataCheck):
    """Looks for other releases of the same records."""

    def before(self, plan: Plan) -> Iterator[Finding]:
        try:
            book = Ledger.read(plan.given.key)
            refuse_another(plan, book, plan.identity)
        except InputError as error:
            if not plan.given.options.dry_run:
                raise
            yield Finding("warning", f"{FORETOLD} {error}")
            return
        names = book.elsewhere(plan.given.options.dataset, plan.identity)
        if names:
            yield Finding("warning", _same_records(plan, names[0]))


def _same_records(plan: Plan, name: str) -> str:
    return (
        f"the very same private records, of a column {plan.given.columns.value!r}, were released"
        f" as data set {name!r} before: if these are the same data, keep --dataset {name!r}, as"
        " both together may leak more than either, and the certificate says that this is not known."
        " Other data may have a key of their own (--key-file)"
    )


# ---- what distinguishes a release


def release_identity(
    given: Given,
    survey: Survey,
    dropped: Dropped,
    promise: Promise | None,
    policy: TablePolicy | None,
) -> dict[str, str]:
    """Digests of what decides a release; of sets of records, whatever their order, and for the
    key's owner alone.
    """
    low, high = survey.private_digest.tolist()
    digest = f"{low ^ dropped.digest[0]:016x}{high ^ dropped.digest[1]:016x}"
    rules = None if policy is None else _rules_content(policy)
    identity = {
        "private list": f"{digest}:{survey.private + dropped.private}",
        "model": _digest(None if promise is None else promise.to_dict()),
        _RULES: _digest([rules, given.options.protect]),
        **_asked(given, survey),
    }
    if survey.private:
        identity[RECORDS] = digest_text(survey.records_digest, survey.private)
    return identity


def _asked(given: Given, survey: Survey) -> dict[str, str]:
    """What decides a release and is known before its rules."""
    columns = given.columns
    shape = [
        columns.value,
        columns.order,
        columns.by,
        columns.keep,
        None if given.step is None else given.step.text,
        [str(kind) for kind in survey.names_are_integers],
        survey.is_timed,
        columns.keep_all,
    ]
    return {"epsilon": repr(given.epsilon), "choice of columns": _digest(shape)}


def _rules_content(policy: TablePolicy) -> list[Any]:
    rules: list[Any] = policy.to_dict()["rules"]
    return sorted(rules, key=lambda rule: (rule["setting"], rule["place"]))


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# ---- whether it may be entered


def refuse_early(given: Given, survey: Survey) -> None:
    """InputError for a second, different release, as far as that is known before its rules; a dry
    run goes on, and says it later.
    """
    if given.options.dry_run:
        return
    # Designing rules may take minutes: nobody should wait for a refusal that is known before.
    book, known = Ledger.read(given.key), _asked(given, survey)
    if not given.options.growing:
        _refuse_second(given, book, known)
        return
    last = Before.of(book, given.options.dataset)
    differences = [name for name in known if last and known[name] != last.entry.get(name)]
    if differences:
        raise not_continued(given, f"it has another {differences[0]} than the releases before")


def refuse_another(plan: Plan, book: Ledger, identity: Mapping[str, str]) -> None:
    """InputError for a second, different release, and for one of a growing table that does not
    continue the one before.
    """
    if plan.given.options.growing:
        _check_continued(plan, book, identity)
    else:
        _refuse_second(plan.given, book, identity)


def _refuse_second(given: Given, book: Ledger, identity: Mapping[str, str]) -> None:
    dataset = given.options.dataset
    differences = book.differences(dataset, identity)
    if differences and not given.options.accepts("another-release"):
        # other rules follow from another ε, model or list: a person reads what they changed
        causes = [name for name in differences if name != _RULES] or differences
        raise InputError(
            f"data set {dataset!r} was released before with another"
            f" {' and another '.join(causes)}; a second observation of the same records adds"
            " to what the first gave away. Records that were released before, in a table that has"
            " grown or was corrected, must keep their --dataset: add --accept another-release."
            " Another --dataset is for data about other records alone."
            f" {_taking_back(given, len(book.releases[dataset]))}"
        )


def _taking_back(given: Given, releases: int) -> str:
    # All of it, as the command refuses to go on without --because.
    words = ["offrecord", "ledger", "forget", given.options.dataset, "--because", NEVER_PUBLISHED]
    words += ["--release", "all"] if releases > 1 else []
    if given.options.key_file is not None:
        words += ["--key-file", str(given.key_path)]
    which = "it was never published" if releases == 1 else f"none of its {releases} releases was"
    which += "" if releases == 1 else " ever published"
    return f"If {which}, take it back: `{shlex.join(words)}`"


def _check_continued(plan: Plan, book: Ledger, identity: Mapping[str, str]) -> None:
    """InputError unless a release of a growing table continues the last one."""
    dataset, survey, before = plan.given.options.dataset, plan.survey, plan.before
    last = Before.of(book, dataset)
    if last is None:
        return
    if before is None or before.entry != last.entry:
        raise InputError(f"data set {dataset!r} was released meanwhile; start again")
    known = digest_text(survey.known_digest, survey.known)
    for difference in before.differences(identity, known, survey.reached):
        raise not_continued(plan.given, difference)


def not_continued(given: Given, difference: str) -> InputError:
    """What is said of a release of a growing table that does not continue the last one."""
    return InputError(
        f"this does not continue the last release of data set {given.options.dataset!r}, so that"
        f" together they may say more than e^ε: {difference}"
    )


# ---- how it stands there


class Entered(NamedTuple):
    """How a release stands in the ledger: what its certificate says, and warnings."""

    said: Standing
    warnings: tuple[str, ...]

    def since(self, before: Entered | None) -> list[str]:
        """The warnings that were not said when it was entered before."""
        said = () if before is None else before.warnings
        return [one for one in self.warnings if one not in said]


def standing(given: Given, book: Ledger, identity: Mapping[str, str]) -> Entered:
    """How a release that has been entered stands in the ledger."""
    dataset = given.options.dataset
    others, warnings = book.others(dataset, identity), []
    if not book.announced:
        warnings.append(_new_key(given))
    if others and not given.options.growing:
        had = many(others, "other release")
        warnings.append(
            f"data set {dataset!r} has had {had}; together they may leak more than this one's ε"
        )
        return Entered(Standing(others=others, accepted=True), tuple(warnings))
    why = _unknown(book, dataset, identity)
    if why is not None:
        known = _lost(given) if why == _NO_LEDGER else why
        warnings.append(f"{known}; the certificate says so")
    # nobody knows how many others there were
    return Entered(Standing(others=others if why is None else None, why=why), tuple(warnings))


def _new_key(given: Given) -> str:
    key = given.key
    return as_called(
        f"made a new key, {key.file} (id {key.id}): keep it secret, and keep it: a re-release with"
        " another key is a second observation of the data. From now on its ledger refuses data set"
        f" {given.options.dataset!r} with other options: try these with --dry-run, which writes"
        " nothing"
    )


def _lost(given: Given) -> str:
    return (
        f"the key {given.key.file} was there without its ledger: earlier releases of data set"
        f" {given.options.dataset!r} are not known"
    )


def _unknown(book: Ledger, dataset: str, identity: Mapping[str, str]) -> str | None:
    """Why nobody knows whether there were other releases; None where that is known."""
    unpublished = book.others_forgotten(dataset, identity)
    elsewhere = book.elsewhere(dataset, identity)
    if unpublished:
        return (
            f"the ledger forgot {many(unpublished, 'other release')} of the data set, on the"
            " publisher's word that nothing of it was ever published"
        )
    if elsewhere:
        count = many(len(elsewhere), "release")
        return f"{count} of other data sets had the very same private records"
    if book.complete:
        return None
    return _NO_LEDGER


def not_entered(given: Given) -> Standing:
    """What the certificate says of a release that the ledger does not know."""
    why = "the release has not been entered into the ledger yet"
    if given.options.dry_run:
        why = "a dry run is no release"
    return Standing(others=None, why=why)
