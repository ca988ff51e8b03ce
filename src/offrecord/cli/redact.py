"""The verb redact."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from offrecord.cli.files import (
    Table,
    check_all_apart,
    check_outside,
    columns_read,
    is_too_large,
    output_format,
    read_keys,
    read_table,
    said_of,
)
from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, as_json_text, bar, failed, fault_of, noted
from offrecord.errors import InputError
from offrecord.tables.options import FileOptions, Options

if TYPE_CHECKING:
    from offrecord.fitting.fit import Fit
    from offrecord.tables.engines.memory import Release
    from offrecord.tables.engines.stream import Streamed
    from offrecord.tables.io.format import ReadOptions
    from offrecord.tables.summary import Summary


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
    options["accept"] = options["accept"] or ()
    options["limits"] = dict(options["limits"] or ())
    asked = FileOptions(**options, progress=bar, say=noted)
    report = _report_place(output, report, no_report=no_report, dry_run=asked.dry_run)
    places = _places(table, output, asked, report)
    keys = read_keys(asked.private_list, _said(asked))
    asked = replace(asked, private_list=keys)
    engine = _in_file if _is_streamed(stream, places, asked) else _in_memory
    done = engine(places, asked)
    # The release is there by now: whatever becomes of its report, what it is is said.
    fault = None if places.report is None else _report_fault(done, places, force=asked.force)
    if fault is not None:
        places = replace(places, report=None)
    if as_json:
        typer.echo(as_json_text(done.to_dict(places)))
    else:
        typer.echo(_text(done, places))
    if fault is not None:
        failed(f"{fault}; the release and its certificate are there")
    if fault is not None or done.summary.is_refused:
        raise typer.Exit(2)  # no error: what else there is to say is said, too


# ---- where the table comes from, and where its release goes


@dataclass(frozen=True)
class _Places:
    """Where a table comes from and its release goes, each with its format.

    said: how the table is to be read. output, certificate, report: None where there is none, as in
    a dry run.
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
    """Where the report goes; None for none."""
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
    from offrecord.files import check_apart, check_outputs
    from offrecord.release.keys import default_key_file
    from offrecord.reports.report import check_report

    if output is None and not asked.dry_run:
        raise InputError("give --output FILE for the released table, or --dry-run")
    output = None if asked.dry_run else output
    named = {"--private-list": asked.private_list, "--model": asked.model, "--policy": asked.policy}
    inputs = {"the input": table} | {
        name: Path(one) for name, one in named.items() if isinstance(one, (str, Path))
    }
    certificate = None if asked.certificate is None else Path(asked.certificate)
    outputs = {"--output": output, "--certificate": certificate, "--report": report}
    check_all_apart(outputs, inputs)
    check_outside(outputs, table)
    said = said_of(table, asked.private_list, _said(asked))
    if output is None:
        return _Places(table, said)
    kind = output_format(output, asked.format)
    key = default_key_file() if asked.key_file is None else Path(asked.key_file)
    certificate = check_outputs(output, certificate, key, force=asked.force)
    # A certificate that no option names lies beside the output: it may be an input, too.
    outputs = {"--output": output, "the certificate": certificate, "--report": report}
    check_all_apart(outputs, inputs)
    if report is not None:
        check_report(report, force=asked.force)
        check_apart(key, report)
    return _Places(table, said, output, kind, certificate, report)


def _said(asked: FileOptions) -> ReadOptions:
    from offrecord.tables.io.format import ReadOptions

    return ReadOptions(asked.format, asked.separator, asked.encoding, asked.limits)


# ---- the engines


class _Done(NamedTuple):
    """What became of a table."""

    summary: Summary
    warnings: list[str]
    made: Release | Streamed
    fitted: Fit | None = None

    def to_dict(self, places: _Places) -> dict[str, Any]:
        """What --json prints."""
        content = self.summary.to_dict() | {"warnings": self.warnings}
        if places.output is not None:
            content |= {"output": str(places.output), "certificate": str(places.certificate)}
            content |= {"report": None if places.report is None else str(places.report)}
        return content if self.fitted is None else content | {"fit": self.fitted.summary()}


def _is_streamed(stream: bool | None, places: _Places, asked: FileOptions) -> bool:
    """Whether a table goes through part by part: if a person says so, or it is too large."""
    whole = asked.fit or asked.single_chain
    if stream is None and not whole:
        return is_too_large(places.table, places.said)
    return bool(stream)


def _in_file(places: _Places, asked: FileOptions) -> _Done:
    from offrecord.tables.engines.stream import redact_file

    asked = replace(
        asked,
        **vars(places.said),
        output_format=places.output_format,
        certificate=places.certificate,
    )
    made = redact_file(places.table, places.output, **vars(asked))
    return _Done(made.summary, [*made.summary.warnings], made)


def _in_memory(places: _Places, asked: FileOptions) -> _Done:
    keep = list(asked.keep or ())
    columns = columns_read(asked.value, asked.order, asked.by, asked.private)
    frame = read_table(
        places.table,
        [*columns, *keep],
        places.said,
        text=[asked.value, *([] if asked.keep_all else keep)],
    )
    from offrecord.tables.engines.memory import redact as redact_table

    options = {one.name: getattr(asked, one.name) for one in fields(Options)}
    release = redact_table(frame, remember=False, **options)
    warnings = [*release.summary.warnings]
    if places.output is not None:
        how: dict[str, Any] = {"format": places.output_format, "certificate": places.certificate}
        warnings += release.write(places.output, **how, force=asked.force)[1]
    return _Done(release.summary, warnings, release, release.fit)


def _report_fault(done: _Done, places: _Places, *, force: bool) -> str | None:
    """Write the report of a release that is there; what went wrong, if something did, and then no
    page of an older one stays.
    """
    from offrecord.files import locked_folder, remove_page
    from offrecord.reports.report import report_of

    assert places.report is not None
    assert places.certificate is not None
    try:
        page = report_of(done.made, places.certificate, places.output)
        _ = page.html  # drawing takes a second: not while others wait for the lock
        # Releases are renamed into place one after the other, under this lock.
        with locked_folder((places.output or places.certificate).parent):
            if not page.is_of(places.certificate):
                return "the report was not written: another run has overwritten the release"
            page.write(places.report, force=force)
        return None
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


# ---- what is said


def _text(done: _Done, places: _Places) -> str:
    """A release in a few lines, and which files were written: those beside the output by name."""
    figures = done.summary.figures()
    if places.output is None:
        return figures
    folder = places.output.resolve().parent
    others = [one for one in (places.certificate, places.report) if one is not None]
    names = [one.name if one.resolve().parent == folder else str(one) for one in others]
    return f"{figures}\n\nwritten: {', '.join([str(places.output), *names])}"
