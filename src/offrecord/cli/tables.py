"""Verbs that work on tables: demo, fit, redact, key."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offrecord.cli.shared import Force, Json, as_json_text, number, progress, rows_done, whole
from offrecord.errors import InputError
from offrecord.tables.formats import MAX_ROWS

if TYPE_CHECKING:
    import polars as pl


STREAM = Path("-")  #: standard input or output
Table = Annotated[
    Path,
    typer.Argument(
        help=(
            "CSV, Parquet, Arrow IPC or NDJSON file, by the ending of its name; - for standard"
            " input."
        ),
        metavar="TABLE",
    ),
]
Value = Annotated[str, typer.Option(help="Column with the records' values: 2 to 64 distinct ones.")]
Order = Annotated[
    str,
    typer.Option(
        help="Column that orders the records of a chain (whole numbers, dates or times), or: row."
    ),
]
By = Annotated[
    str | None, typer.Option(help="Column whose values name the chains; several by comma.")
]
SingleChain = Annotated[
    bool, typer.Option("--single-chain", help="All records are one chain (instead of --by).")
]
PrivateColumn = Annotated[
    str | None, typer.Option("--private", help="Boolean column: true where a record is private.")
]
PrivateList = Annotated[
    Path | None,
    typer.Option(help="File of keys (the --by and --order columns) of private records."),
]
StepSize = Annotated[
    str | None,
    typer.Option(
        "--step", help="Distance of neighbours, 1h or 1: what is missing counts as redacted."
    ),
]
ChainOrder = Annotated[
    int, typer.Option(parser=whole, metavar="1|2", help="How many records the next one depends on.")
]
Phase = Annotated[str | None, typer.Option(help="A kernel for each hour, weekday or month.")]
Format = Annotated[
    str | None,
    typer.Option("--format", help="csv, parquet, ipc or ndjson, instead of the input's ending."),
]
MaxRows = Annotated[int, typer.Option(parser=whole, metavar="COUNT", help="Refuse longer tables.")]
KeyFile = Annotated[
    Path | None, typer.Option(help="Key file, instead of the one in your data directory.")
]


def fit(
    table: Table,
    value: Value,
    order: Order,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (JSON).")],
    by: By = None,
    single_chain: SingleChain = False,
    private: PrivateColumn = None,
    private_list: PrivateList = None,
    chain_order: ChainOrder = 1,
    phase: Phase = None,
    step: StepSize = None,
    format: Format = None,
    max_rows: MaxRows = MAX_ROWS,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Learn the model from reference data: kernel, uncertainty, and a verdict on how well
    it fits.
    """
    from offrecord.files import check_writable
    from offrecord.tables.reference import fit as fit_table

    check_writable(output, force=force)
    _apart({"--output": output}, {"the input": table, "--private-list": private_list})
    found = fit_table(
        _read(
            table,
            [value, *_order(order), *_names(by), *_names(private)],
            format,
            max_rows,
            text=[value],
        ),
        **_described(
            value,
            order,
            by,
            single_chain,
            private,
            private_list,
            chain_order,
            phase,
            step,
            max_rows,
        ),
    )
    found.model.save(output, force=force)
    for warning in found.warnings:
        warned(warning)
    typer.echo(as_json_text(found.summary()) if as_json else str(found))


def redact(
    table: Table,
    value: Value,
    order: Order,
    epsilon: Annotated[
        float,
        typer.Option(
            parser=number,
            metavar="NUMBER",
            help="Privacy budget ε ≥ 0, natural log. No default: you decide.",
        ),
    ],
    dataset: Annotated[
        str,
        typer.Option(help="Name of the data: the same for a re-release, another for other data."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Released table, its certificate beside it; - for standard output.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Where the certificate goes instead.")
    ] = None,
    by: By = None,
    single_chain: SingleChain = False,
    private: PrivateColumn = None,
    private_list: PrivateList = None,
    model: Annotated[Path | None, typer.Option(help="Model file, from offrecord fit.")] = None,
    learn: Annotated[
        bool,
        typer.Option("--fit", help="Learn the model from the chains without a private record."),
    ] = False,
    chain_order: ChainOrder = 1,
    phase: Phase = None,
    step: StepSize = None,
    keep: Annotated[
        str | None,
        typer.Option(
            help=(
                "Columns to release too, by comma, where the value is released; the guarantee does"
                " not cover them."
            )
        ),
    ] = None,
    keep_all: Annotated[
        bool,
        typer.Option("--keep-all", help="Release their cells also where the value is redacted."),
    ] = False,
    mechanism: Annotated[
        str, typer.Option(help="quilt, window, 3r-relaxed, 3r-convex, 3r-constant or best-local.")
    ] = "best-local",
    protect: Annotated[
        str,
        typer.Option(
            help="run: neighbouring private records are one secret; each: every one its own."
        ),
    ] = "run",
    designs: Annotated[
        Path | None, typer.Option(help="File to take designs from, and to keep new ones in.")
    ] = None,
    design_minutes: Annotated[
        float,
        typer.Option(
            parser=number,
            metavar="MINUTES",
            help="How long designs for a model that is not stationary may take.",
        ),
    ] = 10.0,
    key_file: KeyFile = None,
    format: Format = None,
    max_rows: MaxRows = MAX_ROWS,
    accept_model: Annotated[
        bool,
        typer.Option(
            "--accept-model",
            help="Go on although the table speaks against the model; the certificate says so.",
        ),
    ] = False,
    allow_none: Annotated[
        bool, typer.Option("--allow-none", help="Go on although no record is private.")
    ] = False,
    another_release: Annotated[
        bool,
        typer.Option(
            "--another-release", help="Release data again that were released differently before."
        ),
    ] = False,
    publish_positions: Annotated[
        bool,
        typer.Option("--publish-positions", help="Put the private positions into the certificate."),
    ] = False,
    explain: Annotated[
        Path | None,
        typer.Option(help="Table to write: each row's region and redaction probabilities."),
    ] = None,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--in-memory",
            help="Part by part, or the table at once. Default: whichever fits this machine.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Design and report, write nothing.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Redact a table: what is private and what would give it away. Writes the released table and
    its certificate.
    """
    from offrecord.files import check_apart, check_outputs, check_writable
    from offrecord.release.keys import default_key_file
    from offrecord.tables.formats import format_of, stream_format

    if output is None and not dry_run:
        raise InputError("give --output FILE for the released table, or --dry-run")
    to_stream = output == STREAM and not dry_run
    given = {
        "the input": table,
        "--private-list": private_list,
        "--model": model,
        "--designs": designs,
    }
    outputs = {"--output": output, "--certificate": certificate, "--explain": explain}
    if dry_run:
        del outputs["--output"]
    _apart(outputs, given)
    secret = default_key_file() if key_file is None else key_file
    out_kind = ""
    if to_stream:
        if certificate is None:
            raise InputError("a table on standard output needs --certificate FILE")
        if sys.stdout is None:
            raise InputError("standard output is closed")
        if as_json:
            raise InputError("standard output holds either the table or --json, not both")
        out_kind = stream_format(
            format if format is not None or table == STREAM else format_of(table)
        )
        check_apart(secret, check_writable(certificate, force=force))
    elif output is not None and not dry_run:
        out_kind = _out_kind(output, format)
        certificate = check_outputs(output, certificate, secret, force=force)
        _apart(outputs | {"the certificate": certificate, "--certificate": None}, given)
    explain_kind = None if explain is None else _out_kind(explain, format)
    if explain is not None:
        check_writable(explain, force=force)
    if designs is not None:
        check_writable(designs, force=True)
        _apart(
            {"--designs": designs},
            {name: path for name, path in given.items() if name != "--designs"},
        )
    kind = stream_format(format) if table == STREAM else format_of(table, format)
    described = _described(
        value, order, by, single_chain, private, private_list, chain_order, phase, step, max_rows
    )
    options = described | {
        "epsilon": epsilon,
        "dataset": dataset,
        "model": model,
        "fit": learn,
        "keep": _names(keep) or None,
        "keep_all": keep_all,
        "mechanism": mechanism,
        "protect": protect,
        "key_file": key_file,
        "designs": designs,
        "design_minutes": design_minutes,
        "accept_model": accept_model,
        "allow_none": allow_none,
        "another_release": another_release,
        "publish_positions": publish_positions,
        "dry_run": dry_run,
        "progress": partial(progress, what="designing"),
        "say": _note,
    }
    if stream and (table == STREAM or to_stream):
        raise InputError(
            "--stream is for files: a table on a standard stream is held in memory, as it takes two"
            " looks"
        )
    if stream is None and table != STREAM and not (to_stream or learn or single_chain):
        stream = _too_large(table, kind)
    fitted = None
    if stream:
        from offrecord.tables.engines.stream import redact_file

        streamed = redact_file(
            table,
            None if dry_run else output,
            format=kind,
            output_format=out_kind or None,
            certificate=certificate,
            explain=explain,
            explain_format=explain_kind,
            force=force,
            max_rows=max_rows,
            watch=rows_done,
            **options,
        )
        summary, warnings = streamed.summary, [*streamed.summary.warnings]
    else:
        wanted = [value, *_order(order), *_names(by), *_names(private), *_names(keep)]
        frame = _read(
            table, wanted, kind, max_rows, text=[value, *([] if keep_all else _names(keep))]
        )
        from offrecord.tables.engines.memory import redact as redact_table
        from offrecord.tables.writing import write_table

        release = redact_table(frame, remember=False, **options)
        summary, warnings, fitted = release.summary, [*release.summary.warnings], release.fit
        explained = None if explain is None else release.explain()
        if to_stream:
            assert certificate is not None
            with suppress(OSError):  # whoever reads may take its time
                os.set_blocking(sys.stdout.fileno(), True)
            warnings += release.write_stream(
                sys.stdout.buffer, format=out_kind, certificate=certificate, force=force
            )
        elif output is not None and not dry_run:
            warnings += release.write(
                output, format=out_kind, certificate=certificate, force=force
            )[1]
        if explain is not None and explained is not None and explain_kind is not None:
            warnings += write_table(iter([explained]), explain, explain_kind, force=force)
    for warning in warnings:
        warned(warning)
    if as_json:
        content: dict[str, Any] = summary.to_dict() | {"warnings": warnings}
        if output is not None and not dry_run:
            content |= {"output": str(output), "certificate": str(certificate)}
        if fitted is not None:
            content["fit"] = fitted.summary()
        typer.echo(as_json_text(content))
        return
    said = [summary.figures()]
    written = [] if output is None or dry_run or to_stream else [str(output)]
    written += [] if dry_run or certificate is None else [_shown(certificate, output)]
    written += [] if explain is None else [str(explain)]
    if written:
        said.append(f"\nwritten: {', '.join(written)}")
    typer.echo("\n".join(said), err=to_stream)


def _shown(certificate: Path, output: Path | None) -> str:
    """The certificate's path, or its name where it lies beside the output."""
    return (
        certificate.name
        if output is not None and _same(certificate.parent, output.parent)
        else str(certificate)
    )


def _too_large(table: Path, kind: str) -> bool:
    """The table, in memory, would take over half of what this machine has."""
    from offrecord.tables.formats import table_file

    source = table_file(table, kind)
    rows = source.rows()
    needed = table.stat().st_size * 8 if rows is None else rows * 80
    return needed > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for what it writes.")
    ] = Path("offrecord-demo"),
    force: Force = False,
) -> None:
    """The whole job on real data: a year of rain at an airport, hour by hour; fit,
    redact, certify.
    """
    from offrecord.demo import run

    run(
        output,
        force=force,
        say=typer.echo,
        warn=warned,
        progress=partial(progress, what="designing"),
    )


def answer(
    policy: Annotated[Path, typer.Option(help="Policy file, as published (offrecord design -o).")],
    record: Annotated[
        int,
        typer.Option(parser=whole, metavar="NUMBER", help="Which record is yours, counted from 1."),
    ],
    protocol: Annotated[
        str,
        typer.Option(
            help="Your name for what you take part in: the same for the same record, whoever asks."
        ),
    ] = "answer",
    max_epsilon: Annotated[
        float,
        typer.Option(parser=number, metavar="NUMBER", help="The largest ε that you agree to."),
    ] = 3.0,
    key_file: KeyFile = None,
    mark: Annotated[
        str, typer.Option(help="What to print instead of a value that is withheld.")
    ] = "⊥",
) -> None:
    """One record's owner decides alone: its value on standard input, the value or ⊥ on standard
    output.
    """
    from offrecord.mechanisms.answer import answer as answer_one
    from offrecord.mechanisms.answer import value_of
    from offrecord.mechanisms.policy import Policy
    from offrecord.release.keys import Key, default_key_file
    from offrecord.release.ledger import ledger

    published = Policy.load(policy)
    if mark in map(str, published.problem.chain.labels) or not mark.isprintable():
        raise InputError("--mark must be printable text that is no value of the policy")
    given = sys.stdin.readline().strip()
    if not given:
        raise InputError("give the record's value on standard input")
    value = value_of(published, given)
    file = default_key_file() if key_file is None else key_file
    own = Key.load_or_new(file)
    with ledger(own) as book:  # as it was before
        pass
    shown = answer_one(published, record, value, own, protocol=protocol, max_epsilon=max_epsilon)
    if not book.announced:
        warned(f"made a new key, {file}: keep it, so that the same question gets the same answer")
    if not book.complete:
        warned(
            f"the key {file} was there without its ledger, so nobody knows what was answered before"
        )
    typer.echo(mark if shown is None else given)


def key(
    action: Annotated[
        str, typer.Argument(metavar="new|show-id", help="Make a key, or show the public id of one.")
    ],
    key_file: KeyFile = None,
) -> None:
    """Make a key, or show its public id."""
    from offrecord.release.keys import Key, default_key_file

    file = default_key_file() if key_file is None else key_file
    if action == "new":
        made = Key.new(file)
        warned(f"made {file}: keep it secret, and keep it; a re-release needs the same key")
        typer.echo(made.id)
    elif action == "show-id":
        typer.echo(Key.load(file).id)
    else:
        raise InputError(f"key takes new or show-id, got {action!r}")


def _read(
    path: Path, columns: list[str], kind: str | None, max_rows: int, *, text: Sequence[str] = ()
) -> pl.DataFrame:
    """The columns of a table; what works on it is imported while the engine reads. text: columns
    that are not to be typed.
    """
    from concurrent.futures import ThreadPoolExecutor
    from importlib import import_module

    from offrecord.tables.formats import table_file, table_stream

    with ThreadPoolExecutor(1) as pool:
        pool.submit(import_module, "offrecord.tables.engines.memory")
        source = table_stream(sys.stdin.buffer, kind) if path == STREAM else table_file(path, kind)
        return source.read(list(dict.fromkeys(columns)), text=text, max_rows=max_rows)


def _described(
    value: str,
    order: str,
    by: str | None,
    single_chain: bool,
    private: str | None,
    private_list: Path | None,
    chain_order: int,
    phase: str | None,
    step: str | None,
    max_rows: int,
) -> dict[str, Any]:
    """What fit and redact are told about a table alike."""
    from offrecord.tables.formats import read_frame

    return {
        "value": value,
        "order": order,
        "by": _names(by) or None,
        "single_chain": single_chain,
        "private": private,
        "private_list": (
            None if private_list is None else read_frame(private_list, max_rows=max_rows)
        ),
        "chain_order": chain_order,
        "phase": phase,
        "step": step,
    }


def _out_kind(path: Path, named: str | None) -> str:
    """The format of an output: by the ending of its name, else the one that is named."""
    from offrecord.tables.formats import format_of

    try:
        return format_of(path)
    except InputError:
        if named is None:
            raise
        return format_of(path, named)


def _apart(outputs: dict[str, Path | None], inputs: dict[str, Path | None]) -> None:
    """InputError if an output would overwrite an input or another output."""
    named = [(name, path) for name, path in outputs.items() if path is not None and path != STREAM]
    for at, (name, path) in enumerate(named):
        for other, taken in [*inputs.items(), *named[:at]]:
            if taken is not None and _same(path, taken):
                raise InputError(f"{name} must be another file than {other}, got {path} for both")


def _names(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",")]


def _order(order: str) -> list[str]:
    return [] if order == "row" else [order]


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _note(message: str) -> None:
    print(f"offrecord: note: {' '.join(message.split())}", file=sys.stderr)


def warned(message: str) -> None:
    """Say a warning on standard error."""
    print(f"offrecord: warning: {' '.join(message.split())}", file=sys.stderr)
