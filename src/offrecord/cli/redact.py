"""The verb redact."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offrecord.cli.files import (
    Table,
    check_all_apart,
    check_outside,
    columns_read,
    read_table,
    said_of,
)
from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, bar, failed, fault_of, noted, show
from offrecord.errors import InputError
from offrecord.tables.options import FileOptions, Options

if TYPE_CHECKING:
    from offrecord.tables.engines.memory import Release
    from offrecord.tables.engines.stream import Streamed
    from offrecord.tables.io.format import ReadOptions


@offering()
def redact(
    table: Table,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Released table, its certificate beside it."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="The release on one page (.html).  [default: OUTPUT.report.html]"),
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--in-memory",
            help="Read the table part by part, or at once.  [default: what fits this machine]",
        ),
    ] = None,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Redact a table: what is private and what would give it away. Writes the released table, its
    certificate and a report.
    """
    from offrecord.tables.io.formats import read_list

    options["accept"] = options["accept"] or ()
    options["limits"] = dict(options["limits"] or ())
    asked = FileOptions(**options, progress=bar, say=noted)
    report = _report_place(output, report, no_report=no_report, dry_run=asked.dry_run)
    places = _places(table, output, asked, report)
    if isinstance(asked.private_list, (str, Path)):
        asked = replace(asked, private_list=read_list(asked.private_list, _said(asked)))
    engine = _in_file if _is_streamed(stream, places, asked) else _in_memory
    done, warnings = engine(places, asked)
    # The release is there by now: whatever becomes of its report, what it is is said.
    fault = None if places.report is None else _report_fault(done, places, force=asked.force)
    if fault is not None:
        places = replace(places, report=None)
    show(as_json, _content(done, warnings, places), _text(done, places))
    if fault is not None:
        failed(f"{fault}; the release and its certificate are there")
    if fault is not None or done.summary.is_refused:
        raise typer.Exit(2)  # no error: what else there is to say is said, too


# ---- where the table comes from, and where its release goes


@dataclass(frozen=True)
class _Places:
    """Where a table comes from and its release goes; None for what is not written.

    said: how the table is to be read.
    """

    table: Path
    said: ReadOptions
    output: Path | None = None
    output_format: str | None = None
    certificate: Path | None = None
    report: Path | None = None


def _report_place(
    output: Path | None, report: Path | None, *, no_report: bool, dry_run: bool
) -> Path | None:
    from offrecord.files import report_beside

    if report is not None and no_report:
        raise InputError("give --report or --no-report, not both")
    if report is not None and dry_run:
        raise InputError("--report is about a release: leave --dry-run out, or --report")
    if report is not None or no_report or dry_run or output is None:
        return report
    return report_beside(output)


def _places(table: Path, output: Path | None, asked: FileOptions, report: Path | None) -> _Places:
    """Where things are, checked before anything is read; InputError if they cannot be there."""
    from offrecord.files import certificate_beside

    if output is None and not asked.dry_run:
        raise InputError("give --output FILE for the released table, or --dry-run")
    output = None if asked.dry_run else output
    named = {"--private-list": asked.private_list, "--model": asked.model, "--policy": asked.policy}
    inputs = {"the input": table} | {
        name: Path(one) for name, one in named.items() if isinstance(one, (str, Path))
    }
    # a certificate that no option names lies beside the output: it may be an input, too
    name, certificate = "the certificate", None if output is None else certificate_beside(output)
    if asked.certificate is not None:
        name, certificate = "--certificate", Path(asked.certificate)
    outputs = {"--output": output, name: certificate, "--report": report}
    check_all_apart(outputs, inputs)
    check_outside(outputs, table)
    places = _Places(table, said_of(table, asked.private_list, _said(asked)))
    if output is None or certificate is None:
        return places
    kind = _output_format(output, asked.format)
    _check_writable(output, certificate, report, asked)
    return replace(
        places, output=output, output_format=kind, certificate=certificate, report=report
    )


def _output_format(path: Path, named: str | None) -> str:
    """By the ending of the output's name, else the one that is named."""
    from offrecord.tables.io.formats import written_format

    try:
        return written_format(path)
    except InputError:
        if named is None:
            raise
        return written_format(path, named)


def _check_writable(
    output: Path, certificate: Path, report: Path | None, asked: FileOptions
) -> None:
    """InputError unless all could be written, apart from the key."""
    from offrecord.files import check_apart, check_outputs
    from offrecord.release.keys import default_key_file
    from offrecord.reports.report import check_report

    key = default_key_file() if asked.key_file is None else Path(asked.key_file)
    check_outputs(output, certificate, key, force=asked.force)
    if report is not None:
        check_report(report, force=asked.force)
        check_apart(key, report)


def _said(asked: FileOptions) -> ReadOptions:
    from offrecord.tables.io.format import ReadOptions

    return ReadOptions(asked.format, asked.separator, asked.encoding, asked.limits)


# ---- the engines: what each makes, and of what it warns


def _is_streamed(stream: bool | None, places: _Places, asked: FileOptions) -> bool:
    """Whether a table goes through part by part: if a person says so, or it is too large."""
    from offrecord.tables.guarding import memory_size
    from offrecord.tables.io.formats import table_file

    if stream is not None or asked.fit or asked.single_chain:
        return bool(stream)
    # a table takes its size again while it is worked on
    return table_file(places.table, places.said).exceeds(memory_size() // 2, a_row=80)


def _in_file(places: _Places, asked: FileOptions) -> tuple[Streamed, list[str]]:
    from offrecord.tables.engines.stream import redact_file

    where: dict[str, Any] = {
        "output_format": places.output_format,
        "certificate": places.certificate,
    }
    asked = replace(asked, **vars(places.said), **where)
    made = redact_file(places.table, places.output, **vars(asked))
    return made, [*made.summary.warnings]


def _in_memory(places: _Places, asked: FileOptions) -> tuple[Release, list[str]]:
    keep = list(asked.keep or ())
    columns = columns_read(asked.value, asked.order, asked.by, asked.private)
    text = [asked.value, *([] if asked.keep_all else keep)]
    frame = read_table(places.table, [*columns, *keep], places.said, text=text)
    from offrecord.tables.engines.memory import redact as redact_table

    options = {one.name: getattr(asked, one.name) for one in fields(Options)}
    release = redact_table(frame, remember=False, **options)
    warnings = [*release.summary.warnings]
    if places.output is not None:
        kind, certificate, force = places.output_format, places.certificate, asked.force
        warnings += release.write(places.output, format=kind, certificate=certificate, force=force)[
            1
        ]
    return release, warnings


def _report_fault(done: Release | Streamed, places: _Places, *, force: bool) -> str | None:
    """Write the report of a release that is there; what went wrong, if something did, and then no
    page of an older one stays.
    """
    from offrecord.files import remove_page

    assert places.report is not None
    try:
        return _write_report(done, places, places.report, force=force)
    except InputError as error:
        fault = str(error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the drawing engine is not an Exception
        if os.environ.get("OFFRECORD_TRACEBACK"):
            raise
        fault = f"the report was not made: {fault_of(error)}. Please report it with this line"
    remove_page(places.report)
    return fault


def _write_report(
    done: Release | Streamed, places: _Places, report: Path, *, force: bool
) -> str | None:
    """Write it unless another run has put another release into its place, which is said."""
    from offrecord.files import locked_folder
    from offrecord.reports.report import report_of

    assert places.certificate is not None
    page = report_of(done, places.certificate, places.output)
    _ = page.html  # drawing takes a second: not while others wait for the lock
    # Releases are renamed into place one after the other, under this lock.
    with locked_folder((places.output or places.certificate).parent):
        if not page.is_of(places.certificate):
            return "the report was not written: another run has overwritten the release"
        page.write(report, force=force)
    return None


# ---- what is said


def _content(done: Release | Streamed, warnings: list[str], places: _Places) -> dict[str, Any]:
    """What --json prints."""
    content = done.summary.to_dict() | {"warnings": warnings}
    if places.output is not None:
        content |= {"output": str(places.output), "certificate": str(places.certificate)}
        content |= {"report": None if places.report is None else str(places.report)}
    fitted = getattr(done, "fit", None)  # streams learn nothing
    return content if fitted is None else content | {"fit": fitted.summary()}


def _text(done: Release | Streamed, places: _Places) -> str:
    """A release in a few lines, and which files were written: those beside the output by name."""
    figures = done.summary.figures()
    if places.output is None:
        return figures
    folder = places.output.resolve().parent
    others = [one for one in (places.certificate, places.report) if one is not None]
    names = [one.name if one.resolve().parent == folder else str(one) for one in others]
    return f"{figures}\n\nwritten: {', '.join([str(places.output), *names])}"
