"""Reports: a release on one page, for someone who never saw the paper."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offrecord.errors import InputError
from offrecord.files import write_text
from offrecord.release.certificate import Certificate
from offrecord.reports.content import Content, Names
from offrecord.reports.html import html_of
from offrecord.reports.markdown import markdown_of
from offrecord.reports.page import Page
from offrecord.reports.place import check_report
from offrecord.reports.words import page_of

if TYPE_CHECKING:
    from offrecord.reports.run import Made

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

    @cached_property
    def markdown(self) -> str:
        """A short text."""
        return markdown_of(self.page)

    @property
    def is_verified(self) -> bool:
        """Nothing was found that speaks against the certificate."""
        return self.content.checked.holds

    def draw(self, path: Path) -> str:
        """What is written there, by the ending of the name; made once."""
        return self.markdown if path.suffix == ".md" else self.html

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Write it, by the ending of the name: .html or .md. Complete or absent."""
        path = check_report(path, force=force)
        write_text(path, self.draw(path), force=force)
        return path

    def is_of(self, certificate: Path) -> bool:
        """A certificate that is there is that of the same release, and of the same table."""
        digest = self.content.names.digest
        with suppress(OSError, InputError):
            there = Certificate.from_json(certificate.read_bytes())
            if digest is None or (there.output is not None and there.output.sha256 == digest):
                own, other = (
                    replace(one, output=None) for one in (self.content.certificate, there)
                )
                return own.to_json() == other.to_json()
        return False

    def to_dict(self) -> dict[str, Any]:
        """Its figures, for machines."""
        return self.content.to_dict()


def report(
    certificate_or_release: str | Path | Made,
    released: str | Path | None = None,
    *,
    private_list: str | Path | None = None,
) -> Report:
    """The report of a release.

    certificate_or_release: what redact, redact_file or Spark's redact gave back, or the path of a
    certificate. released: the released table, of which files tell more; of a release that is at
    hand, what its file is called. private_list: which records are private, where the certificate
    does not say it.

    InputError for what cannot be read, and for a table that is not the certificate's.
    """
    table = None if released is None else Path(released)
    if isinstance(certificate_or_release, (str, Path)):
        from offrecord.reports.files import content_from

        listed = None if private_list is None else Path(private_list)
        return Report(content_from(Path(certificate_or_release), table, listed))
    if not hasattr(certificate_or_release, "_outcome"):
        kind = type(certificate_or_release).__name__
        raise InputError(f"report takes a release or the path of a certificate, got {kind}")
    if private_list is not None:
        raise InputError("private_list is for certificates: a release knows its private records")
    name = "RELEASED" if table is None else table.name
    return report_of(certificate_or_release, Path(f"{name}{CERTIFICATE}"), table)


def report_of(made: Made, certificate: Path, released: Path | None) -> Report:
    """The report of a release that is at hand. certificate, released: what its files are called,
    None where the table has none.
    """
    from offrecord.reports.run import content_of

    digest: str | None = getattr(made, "_digest", None)
    names = Names(certificate.name, None if released is None else released.name, digest)
    return Report(content_of(made, names))
