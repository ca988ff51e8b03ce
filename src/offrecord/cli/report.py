"""The verb report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from offrecord.cli.files import Certificate, PrivateList, Released, check_all_apart
from offrecord.cli.printing import Json, as_json_text, busy, warned


def report(
    certificate: Certificate,
    released: Released = None,
    private_list: PrivateList = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The page (.html).  [default: RELEASED.report.html]",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing output.")] = False,
    as_json: Json = False,
) -> None:
    """A release on one page, from its files, after they are verified: exit 0 if they are, 1 if they
    do not hold, which the page then says first.
    """
    from offrecord.reports.report import check_report
    from offrecord.reports.report import report as reported

    page = _beside(certificate, released) if output is None else output
    inputs = {"CERTIFICATE": certificate, "RELEASED": released, "--private-list": private_list}
    check_all_apart({"--output": page}, inputs)
    check_report(page, force=force)
    with busy("reporting"):
        made = reported(certificate, released, private_list=private_list)
        made.write(page, force=force)
    problems = made.problems
    if as_json:
        typer.echo(as_json_text(made.to_dict() | {"report": str(page)}))
    else:
        typer.echo(f"{made.lead}\n\nwritten: {page}")
    if problems:
        if not as_json:
            reasons = f"{len(problems)} reasons" if len(problems) > 1 else problems[0]
            verb = "CANNOT BE JUDGED" if made.is_unjudged else "does NOT VERIFY"
            warned(f"the certificate {verb} ({reasons}): the page says so first")
        raise typer.Exit(1)


def _beside(certificate: Path, released: Path | None) -> Path:
    """Where the page goes unless that is said: beside the table, or the certificate."""
    from offrecord.files import report_beside

    if released is not None:
        return report_beside(released)
    return report_beside(certificate.with_name(certificate.name.removesuffix(".certificate.json")))
