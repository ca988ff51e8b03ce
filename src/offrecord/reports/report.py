"""Reports: a release on one page, for people who never saw the paper."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from offrecord.errors import InputError
from offrecord.files import check_writable, write_text
from offrecord.release.certificate import Certificate
from offrecord.reports.content import Content, Names
from offrecord.reports.html import html_of
from offrecord.reports.page import Page
from offrecord.reports.pictures import Point, windows_over_budgets
from offrecord.reports.sections import page_of

CERTIFICATE = ".certificate.json"  #: what the name of a certificate adds to that of its table


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What there is to say about a release, as a page and as data."""

    content: Content

    def __repr__(self) -> str:
        return f"<Report {self.content.certificate.dataset!r}: {self.page.lead}>"

    @cached_property
    def page(self) -> Page:
        """The page, before it has a form."""
        return page_of(self.content)

    @cached_property
    def html(self) -> str:
        """One self-contained page."""
        return html_of(self.page)

    @property
    def problems(self) -> tuple[str, ...]:
        """What speaks against the certificate."""
        return self.content.problems

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
        digest = self.content.names.digest
        with suppress(OSError, InputError):
            there = Certificate.load(certificate)
            if digest is None or (there.output is not None and there.output.sha256 == digest):
                own, other = (
                    one.model_copy(update={"output": None})
                    for one in (self.content.certificate, there)
                )
                return own.to_json() == other.to_json()
        return False

    def to_dict(self) -> dict[str, Any]:
        """Its figures, for machines."""
        return self.content.to_dict()


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

        path = Path(made)
        verdict = verify(path, table, private_list=private_list)
        names = Names(path.name, None if table is None else table.name)
        return Report(Content(Certificate.load(path), names, verdict=verdict))
    if not hasattr(made, "outcome"):
        kind = type(made).__name__
        raise InputError(f"report takes a release or the path of a certificate, got {kind}")
    if private_list is not None:
        raise InputError("private_list is for certificates: a release knows its private records")
    name = "RELEASED" if table is None else table.name
    return report_of(made, Path(f"{name}{CERTIFICATE}"), table)


def report_of(made: Any, certificate: Path, released: Path | None) -> Report:
    """The report of a release that is at hand.

    made: what an engine gave back. certificate, released: what its files are called; None where the
    table has none. InputError for a dry run.
    """
    if made.summary.dry_run:
        raise InputError("a dry run is no release: there is nothing to report")
    digest: str | None = getattr(made, "_digest", None)
    names = Names(certificate.name, None if released is None else released.name, digest)
    said = made.outcome.certificate(getattr(made, "_entered", None))
    content = Content(
        said, names, made.summary, points=_points(made, said), warnings=made.outcome.warnings
    )
    return Report(content)


def _points(made: Any, said: Certificate) -> list[Point]:
    """What other budgets would release."""
    plan = made.outcome.plan
    policy = plan.chosen.policy
    if policy is None or plan.model is None or said.counts.private == 0:
        return []
    survey = plan.survey
    return windows_over_budgets(policy, plan.model.promise, survey.geometry, plan.records)
