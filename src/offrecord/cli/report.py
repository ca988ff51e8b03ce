"""The verb report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from offrecord.cli.files import Certificate, PrivateList, Released, check_all_apart
from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, busy, show, warned


@offering()
def report(
    certificate: Certificate,
    force: bool,
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
    as_json: Json = False,
) -> None:
    """A release on one page, from its files, after they are verified: exit 0 if they are, 1 if they
    do not hold, which the page then says first.
    """
    from offrecord.files import report_beside
    from offrecord.reports.report import check_report
    from offrecord.reports.report import report as reported

    table = released or certificate.with_name(certificate.name.removesuffix(".certificate.json"))
    page = report_beside(table) if output is None else output
    inputs = {"CERTIFICATE": certificate, "RELEASED": released, "--private-list": private_list}
    check_all_apart({"--output": page}, inputs)
    check_report(page, force=force)
    with busy("reporting"):
        made = reported(certificate, released, private_list=private_list)
        made.write(page, force=force)
    show(as_json, made.to_dict() | {"report": str(page)}, f"{made.lead}\n\nwritten: {page}")
    problems = made.problems
    if problems and not as_json:
        reasons = f"{len(problems)} reasons" if len(problems) > 1 else problems[0]
        verb = "CANNOT BE JUDGED" if made.is_unjudged else "does NOT VERIFY"
        warned(f"the certificate {verb} ({reasons}): the page says so first")
    if problems:
        raise typer.Exit(1)
