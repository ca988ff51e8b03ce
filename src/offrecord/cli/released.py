"""The verbs about a release that is there: verify, attack, report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

import offrecord as off
from offrecord.cli.files import check_all_apart
from offrecord.cli.parameters import numbered, offering, outgoing
from offrecord.cli.printing import Json, bar, show, warned
from offrecord.files import report_beside
from offrecord.text import plain

_Certificate = Annotated[
    Path, Argument(metavar="CERTIFICATE", help="The certificate of a release (JSON).")
]
_Released = Annotated[
    Path | None, Argument(metavar="RELEASED", help="The released table, checked with it.")
]
_PrivateList = Annotated[
    Path | None, Option(help="The list of private records, where the certificate has none.")
]


@dataclass
class Known:
    """What only some know about a release."""

    private_list: _PrivateList = None
    private: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            help="The column that is true where a record is private: --private-list, or else"
            " --original, is then the table that was redacted.",
        ),
    ] = None
    original: Annotated[
        Path | None,
        Option(help="The table before it was redacted, for checks that need its values."),
    ] = None


@offering(Known)
def verify(
    certificate: _Certificate,
    released: _Released = None,
    key_file: Annotated[
        Path | None, Option(help="The publisher's key: every coin is drawn again.")
    ] = None,
    seed: Annotated[
        int | None,
        numbered(
            "NUMBER",
            "Draw plausible chains from this seed, for tests; else from the machine's own"
            " randomness.",
        ),
    ] = None,
    as_json: Json = False,
    **known: Any,
) -> None:
    """Check a certificate by code of its own, under plausible chains drawn anew: exit 0 if it
    holds, 1 if it does not.
    """

    known["limits"] = dict(known["limits"] or ())
    with bar("verifying", None):
        verdict = off.verify(certificate, released, key_file=key_file, seed=seed, **known)
    show(as_json, verdict.to_dict(), verdict)
    if not verdict.is_verified:
        raise typer.Exit(1)


@offering(Known)
def attack(
    released: Annotated[Path, Argument(metavar="RELEASED", help="The released table.")],
    certificate: Annotated[
        Path | None, Option(help="Its certificate.  [default: RELEASED.certificate.json]")
    ] = None,
    strict: Annotated[
        bool, Option("--strict", help="Exit 1 if any attacker finds more than ε.")
    ] = False,
    picture: Annotated[
        Path | None, Option(help="Draw the ratios of all secrets: .svg, .png or .html.")
    ] = None,
    as_json: Json = False,
    **known: Any,
) -> None:
    """Infer private records from a release as anyone could, and as some who know more: exit 0 if
    what is promised holds, 1 if it does not.
    """
    from offrecord.charts import check_picture

    # before the attack, which may take minutes
    force, known["limits"] = known.pop("force"), dict(known["limits"] or ())
    if picture is not None:
        check_picture(picture, force=force)
    with bar("attacking", None):
        found = off.attack(released, certificate=certificate, **known)
    if picture is not None and found.attackers:
        found.plot().write(picture, force=force)
    elif picture is not None:
        warned(f"nothing is inferred, so there is nothing to draw: {picture} is not written")
    show(as_json, found.to_dict(), found)
    if not found.holds or (strict and found.exceeded):
        raise typer.Exit(1)


@offering()
def report(
    certificate: _Certificate,
    force: bool,
    released: _Released = None,
    private_list: _PrivateList = None,
    output: Annotated[
        Path | None, outgoing("The page (.html).  [default: RELEASED.report.html]")
    ] = None,
    as_json: Json = False,
) -> None:
    """A release on one page, from its files, after they are verified: exit 0 if they are, 1 if they
    do not hold, which the page then says first.
    """
    from offrecord.reports.report import check_report

    page = _page_of(certificate, released) if output is None else output
    inputs = {"CERTIFICATE": certificate, "RELEASED": released, "--private-list": private_list}
    check_all_apart({"--output": page}, inputs)
    check_report(page, force=force)
    with bar("reporting", None):
        made = off.report(certificate, released, private_list=private_list)
        made.write(page, force=force)
    show(
        as_json,
        made.to_dict() | {"report": str(page)},
        f"{made.lead}\n\nwritten: {plain(str(page))}",
    )
    if not made.problems:
        return
    if not as_json:
        _warn_of(made)
    raise typer.Exit(1)


def _page_of(certificate: Path, released: Path | None) -> Path:

    name = certificate.name.removesuffix(".certificate.json")
    return report_beside(released or certificate.with_name(name))


def _warn_of(page: off.Report) -> None:
    problems = page.problems
    reasons = f"{len(problems)} reasons" if len(problems) > 1 else problems[0]
    verb = "CANNOT BE JUDGED" if page.is_unjudged else "does NOT VERIFY"
    warned(f"the certificate {verb} ({reasons}): the page says so first")
