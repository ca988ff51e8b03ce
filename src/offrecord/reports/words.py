"""What a report says, in words for someone who never saw the paper."""

from __future__ import annotations

from collections.abc import Iterator

from offrecord.reports.content import Content
from offrecord.reports.page import Bullets, Page, Paragraph, Section, sentence
from offrecord.reports.sections.asked import asked_section
from offrecord.reports.sections.belief import belief_section
from offrecord.reports.sections.budgets import budgets_section
from offrecord.reports.sections.costs import costs_section
from offrecord.reports.sections.further import further_section
from offrecord.reports.sections.left import left_section
from offrecord.reports.sections.promise import promise_section
from offrecord.reports.sections.rule import rule_section
from offrecord.text import many, share_text


def page_of(content: Content) -> Page:
    """The page of a report, warnings first."""
    certificate = content.certificate
    sections = [
        *_warnings(content),
        asked_section(content),
        left_section(content),
        promise_section(content),
        belief_section(content),
        rule_section(content),
        budgets_section(content),
        costs_section(content),
        further_section(content),
    ]
    made = ", ".join(f"{name} {one}" for name, one in sorted(certificate.versions.items()))
    digest = content.names.digest
    of_table = "" if digest is None else f" The released table has the SHA-256 {digest}."
    key = "" if certificate.key_id is None else f" Key {certificate.key_id}."
    foot = (
        f"Made of the certificate {content.names.certificate}: its release was made by {made}."
        f"{key}{of_table} This page holds no redacted value."
    )
    return Page(certificate.dataset, _lead(content), sections, foot)


def _lead(content: Content) -> str:
    """The release in two sentences."""
    if not content.checked.holds:
        return "The certificate of this release does not verify: what follows is what it claims."
    counts, left = content.certificate.counts, content.left
    protected = (
        f"{many(counts.private, 'private record')} of a table of {counts.rows:,} rows"
        f" {'was' if counts.private == 1 else 'were'} taken off the record, and with"
        f" {'it' if counts.private == 1 else 'them'} what would give"
        f" {'it' if counts.private == 1 else 'them'} away."
    )
    if counts.private == 0:
        protected = f"Of a table of {counts.rows:,} rows no record is private."
    if left.released is None:
        return protected
    return f"{protected} {share_text(left.released)} of the records left."


# ---- warnings


def _warnings(content: Content) -> Iterator[Section]:
    """What must not be missed, if there is something."""
    problems = content.checked.problems
    if problems:
        told = [Paragraph("Do not rely on what follows: the certificate does not hold.", True)]
        more = [f"… and {len(problems) - 10:,} more"] if len(problems) > 10 else []
        yield Section(
            "not-verified", "Not verified", [*told, Bullets([*problems[:10], *more])], True
        )
    if content.warnings:
        yield Section("warnings", "Warnings", [Bullets([sentence(w) for w in content.warnings])])
