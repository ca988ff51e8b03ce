"""Reports: a release on one page, for people who never saw the paper."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from offrecord.errors import InputError
from offrecord.files import certificate_beside, check_writable, write_text
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.promise import Promise
from offrecord.release.certificate import Certificate
from offrecord.reports import sections
from offrecord.reports.pictures import Point, windows_over_budgets
from offrecord.tables.meaning import Meaning
from offrecord.tables.summary import Summary
from offrecord.verification.verdict import CANNOT_JUDGE, Verdict


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What there is to say about a release, as a page and as data.

    file, table: what the certificate and the released table are called. digest: the SHA-256 of the
    table, where it is a file. summary: of the run, where it is at hand. verdict: of a check, if
    there was one. points: what other budgets would release. warnings: what a person should know.
    """

    certificate: Certificate
    file: str
    table: str | None = None
    digest: str | None = None
    summary: Summary | None = None
    verdict: Verdict | None = None
    points: Sequence[Point] = ()
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Report {self.certificate.dataset!r}: {self.lead}>"

    @property
    def lead(self) -> str:
        """The release in two sentences."""
        return sections.lead(self)

    @cached_property
    def html(self) -> str:
        """One self-contained page."""
        return sections.page_of(self)

    @property
    def problems(self) -> tuple[str, ...]:
        """What speaks against the certificate."""
        return () if self.verdict is None else tuple(self.verdict.problems)

    @property
    def holds(self) -> bool:
        """Nothing was found that speaks against the certificate."""
        return self.verdict is None or self.verdict.is_verified

    @property
    def is_unjudged(self) -> bool:
        """Rules or a model are of a kind that the check does not know."""
        return self.verdict is not None and self.verdict.status == CANNOT_JUDGE

    @cached_property
    def policy(self) -> TablePolicy | None:
        """The rules that act."""
        policy = self.certificate.policy
        return None if policy is None else TablePolicy.from_form(policy)

    @cached_property
    def acting(self) -> tuple[TablePolicy, Promise] | None:
        """Rules and chains, where rules of known kinds act on private records."""
        model = self.certificate.model
        if self.policy is None or model is None or not self.certificate.counts.private:
            return None
        return self.policy, model.promise()

    @cached_property
    def belief(self) -> Meaning | None:
        """What an attacker may come to believe."""
        if self.acting is None:
            return None
        # a run knows how many private records are at which place; a certificate may not say it
        known = None if self.summary is None else self.summary.gain
        return known or Meaning.of(*self.acting)

    @property
    def records(self) -> int:
        """How many records had a value and do not wait, in chains that were left out too."""
        counts = self.certificate.counts
        waiting = 0 if self.summary is None else self.summary.waiting
        return counts.rows - counts.missing - waiting + counts.dropped_records

    @property
    def released(self) -> float:
        """The share of these records that left, as the certificate counts them."""
        return self.certificate.counts.released / max(self.records, 1)

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Write it, complete or not at all.

        Args:
            path: ends in .html.
            force: overwrite a file that is there.

        Raises:
            InputError: where it cannot be written.
        """
        path = check_report(path, force=force)
        write_text(path, self.html, force=force)
        return path

    def is_of(self, certificate: Path) -> bool:
        """Whether a certificate file is that of the same release and the same table."""
        with suppress(OSError, InputError):
            there = Certificate.load(certificate)
            known = None if there.output is None else there.output.sha256
            if self.digest in (None, known):
                # the one at hand does not say yet which file it is about
                one, other = (
                    it.model_copy(update={"output": None}) for it in (self.certificate, there)
                )
                return one.to_json() == other.to_json()
        return False

    def to_dict(self) -> dict[str, Any]:
        """Its figures, for machines."""
        certificate = self.certificate
        return {
            "dataset": certificate.dataset,
            "kind": certificate.kind,
            "epsilon": certificate.claim.epsilon,
            "mechanism": None if self.policy is None else self.policy.mechanism,
            "released": self.released,
            "verified": None if self.verdict is None else self.verdict.is_verified,
            "problems": list(self.problems),
            "warnings": list(self.warnings),
            "belief": None if self.belief is None else vars(self.belief),
            "curve": [point._asdict() for point in self.points],
        }


def check_report(path: str | Path, *, force: bool) -> Path:
    """The path, if a report may be written there; InputError otherwise."""
    if Path(path).suffix != ".html":
        raise InputError(f"a report must end in .html, got {path}")
    return check_writable(path, force=force)


def report(
    made: Any, released: str | Path | None = None, *, private_list: str | Path | None = None
) -> Report:
    """The report of a release.

    Args:
        made: what redact, redact_file or Spark's redact gave back, or the path of a certificate.
        released: the released table, which is checked with its certificate; of a release at hand,
            what its file is called.
        private_list: which records are private, where the certificate does not say it.

    Raises:
        InputError: for what cannot be read, and for a dry run.
    """
    table = None if released is None else Path(released)
    if isinstance(made, (str, Path)):
        from offrecord.verification import verify

        path, name = Path(made), None if table is None else table.name
        verdict = verify(path, table, private_list=private_list)
        proof = Certificate.load(path)
        # The other warnings of a run are not in its certificate.
        depends = None if proof.origin is None else proof.origin.dependence
        warnings = () if depends is None else (depends.warning,)
        return Report(proof, path.name, name, verdict=verdict, warnings=warnings)
    if not hasattr(made, "outcome"):
        kind = type(made).__name__
        raise InputError(f"report takes a release or the path of a certificate, got {kind}")
    if private_list is not None:
        raise InputError("private_list is for certificates: a release knows its private records")
    return report_of(made, certificate_beside(table or Path("RELEASED")), table)


def report_of(made: Any, certificate: Path, released: Path | None) -> Report:
    """The report of a release that is at hand.

    made: what an engine gave back. certificate, released: what its files are called; None where the
    table has none. InputError for a dry run.
    """
    if made.summary.dry_run:
        raise InputError("a dry run is no release: there is nothing to report")
    # what Spark gives back knows neither a digest nor how the ledger has it
    return Report(
        made.outcome.certificate(getattr(made, "_entered", None)),
        certificate.name,
        None if released is None else released.name,
        getattr(made, "_digest", None),
        made.summary,
        points=_points(made.outcome.plan),
        warnings=made.outcome.warnings,
    )


def _points(plan: Any) -> list[Point]:
    policy, survey = plan.chosen.policy, plan.survey
    if policy is None or plan.model is None or survey.private == 0:
        return []
    # by positions and model alone: nothing that the certificate does not give away already
    promise, known = plan.model.promise, plan.forecast.window
    return windows_over_budgets(policy, promise, survey.geometry, plan.records, known)
