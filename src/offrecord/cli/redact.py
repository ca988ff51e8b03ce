"""The verb redact."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

import offrecord as off
from offrecord.cli.files import Table, check_all_apart, check_outside, read_table, said_of
from offrecord.cli.parameters import offering, outgoing
from offrecord.cli.printing import Json, bar, failed, fault_of, noted, show
from offrecord.errors import InputError
from offrecord.files import (
    certificate_beside,
    check_apart,
    check_outputs,
    locked_folder,
    remove_page,
    report_beside,
)
from offrecord.tables.options import FileOptions, Options
from offrecord.text import plain

if TYPE_CHECKING:
    from offrecord.tables.io.format import ReadOptions


@offering()
def redact(
    table: Table,
    output: Annotated[Path | None, outgoing("Released table, its certificate beside it.")] = None,
    report: Annotated[
        Path | None, Option(help="The release on one page (.html).  [default: OUTPUT.report.html]")
    ] = None,
    no_report: Annotated[bool, Option("--no-report", help="Write no report.")] = False,
    stream: Annotated[
        bool | None,
        Option(
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
    asked = _asked(**options)
    page = _report_place(output, report, no_report=no_report, dry_run=asked.dry_run)
    if output is None and not asked.dry_run:
        raise InputError("give --output FILE for the released table, or --dry-run")
    output = None if asked.dry_run else output
    asked = _checked(table, output, page, asked)
    engine = _in_file if _is_streamed(stream, table, asked) else _in_memory
    done, warnings = engine(table, output, asked)
    # The release is there by now: whatever becomes of its report, what it is is said.
    fault = None if page is None else _report_fault(done, output, page, asked)
    proof = None if asked.certificate is None else Path(asked.certificate)
    written = {"output": output, "certificate": proof, "report": page if fault is None else None}
    show(as_json, _content(done, warnings, written), _text(done, written))
    if fault is not None:
        failed(f"{fault}; the release and its certificate are there")
    if fault is not None or done.summary.is_refused:
        raise typer.Exit(2)  # no error: what else there is to say is said, too


def _asked(accept: Any, limits: Any, **options: Any) -> FileOptions:
    # typer hands on None for an option that can be repeated and was not given
    more: dict[str, Any] = {"accept": accept or (), "limits": dict(limits or ())}
    return FileOptions(**options, **more, progress=bar, say=noted)


# ---- where the table comes from, and where its release goes


def _report_place(
    output: Path | None, report: Path | None, *, no_report: bool, dry_run: bool
) -> Path | None:

    if report is not None and no_report:
        raise InputError("give --report or --no-report, not both")
    if report is not None and dry_run:
        raise InputError("--report is about a release: leave --dry-run out, or --report")
    if report is not None or no_report or dry_run or output is None:
        return report
    return report_beside(output)


def _checked(
    table: Path, output: Path | None, report: Path | None, asked: FileOptions
) -> FileOptions:
    # What is asked, with the formats and the certificate's path that follow from names, and with
    # the list of private records read; InputError where something cannot be written.
    from offrecord.tables.io.formats import read_list

    name, certificate = _certificate_of(output, asked)
    outputs = {"--output": output, name: certificate, "--report": report}
    check_all_apart(outputs, _inputs(table, asked))
    check_outside(outputs, table)
    keys, said = asked.private_list, _said(asked)
    own = said_of(table, keys, said)
    if output is None or certificate is None:
        kind = certificate = None
    else:
        kind = _output_format(output, asked.format)
        _check_writable(output, certificate, report, asked)
    if isinstance(keys, (str, Path)):
        keys = read_list(keys, said)
    # the list was read as its own ending says, the table is read as its own says
    found = replace(asked, **vars(own))
    return replace(found, output_format=kind, certificate=certificate, private_list=keys)


def _certificate_of(output: Path | None, asked: FileOptions) -> tuple[str, Path | None]:
    if asked.certificate is not None:
        return "--certificate", Path(asked.certificate)
    # one that no option names lies beside the output: it may be an input, too
    return "the certificate", None if output is None else certificate_beside(output)


def _inputs(table: Path, asked: FileOptions) -> dict[str, Path]:
    named = {"--private-list": asked.private_list, "--model": asked.model, "--policy": asked.policy}
    paths = {name: Path(one) for name, one in named.items() if isinstance(one, (str, Path))}
    return {"the input": table, **paths}


def _output_format(path: Path, named: str | None) -> str:
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


def _is_streamed(stream: bool | None, table: Path, asked: FileOptions) -> bool:
    # Whether a table goes through part by part: if a person says so, or it is too large.
    from offrecord.tables.guarding import memory_size
    from offrecord.tables.io.formats import table_file

    if stream is not None or asked.fit or asked.single_chain:
        return bool(stream)
    # a table takes its size again while it is worked on
    return table_file(table, _said(asked)).exceeds(memory_size() // 2, a_row=80)


def _in_file(
    table: Path, output: Path | None, asked: FileOptions
) -> tuple[off.Streamed, list[str]]:

    made = off.redact_file(table, output, **vars(asked))
    return made, [*made.summary.warnings]


def _in_memory(
    table: Path, output: Path | None, asked: FileOptions
) -> tuple[off.Release, list[str]]:
    keep = list(asked.keep or ())
    # guessed types would leak: a redacted 0.5 turns a released 0 into 0.0
    text = [asked.value, *([] if asked.keep_all else keep)]
    frame = read_table(table, _said(asked), vars(asked), keep=keep, text=text)

    options = {one.name: getattr(asked, one.name) for one in fields(Options)}
    # the ledger has a release from when its table is written
    release = off.redact(frame, remember=False, **options)
    warnings = [*release.summary.warnings]
    if output is not None:
        kind, certificate = asked.output_format, asked.certificate
        where = release.write(output, format=kind, certificate=certificate, force=asked.force)
        warnings += where[1]
    return release, warnings


# ---- the report


def _report_fault(
    done: off.Release | off.Streamed, output: Path | None, report: Path, asked: FileOptions
) -> str | None:
    # Write the report of a release that is there; what went wrong, if something did, and then no
    # page of an older one stays.

    assert output is not None
    assert asked.certificate is not None
    try:
        return _write_report(done, output, Path(asked.certificate), report, force=asked.force)
    except InputError as error:
        fault = str(error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the drawing engine is not an Exception
        if os.environ.get("OFFRECORD_TRACEBACK"):
            raise
        fault = f"the report was not made: {fault_of(error)}. Please report it with this line"
    remove_page(report)
    return fault


def _write_report(
    done: off.Release | off.Streamed, output: Path, certificate: Path, report: Path, *, force: bool
) -> str | None:
    from offrecord.reports.report import report_of

    page = report_of(done, certificate, output)
    _ = page.html  # drawing takes a second: not while others wait for the lock
    # Releases are renamed into place one after the other, under this lock.
    with locked_folder(output.parent):
        if not page.is_of(certificate):
            return "the report was not written: another run has overwritten the release"
        page.write(report, force=force)
    return None


# ---- what is said

_Written = dict[str, Path | None]  #: which files were written; no output in a dry run


def _content(
    done: off.Release | off.Streamed, warnings: list[str], written: _Written
) -> dict[str, Any]:
    content = done.summary.to_dict() | {"warnings": warnings}
    if written["output"] is not None:
        content |= {name: one and str(one) for name, one in written.items()}
    fitted = getattr(done, "fit", None)  # streams learn nothing
    return content if fitted is None else content | {"fit": fitted.summary()}


def _text(done: off.Release | off.Streamed, written: _Written) -> str:
    # A release in a few lines, and which files were written.
    figures, output = done.summary.figures(), written["output"]
    if output is None:
        return figures
    files = ", ".join(_name(one, output) for one in written.values() if one is not None)
    return f"{figures}\n\nwritten: {files}"


def _name(file: Path, output: Path) -> str:
    # Files beside the output go by their names alone.
    is_beside = file is not output and file.resolve().parent == output.resolve().parent
    return plain(file.name if is_beside else str(file))
