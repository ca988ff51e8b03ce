"""The verb compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offrecord.cli.chains import Described, Split, split_of
from offrecord.cli.parameters import offering, options_from
from offrecord.cli.paths import STREAM, check_all_apart, check_outside
from offrecord.cli.printing import Json, as_json_text
from offrecord.cli.progress import bar
from offrecord.cli.tables import (
    TABLE_HELP,
    columns_read,
    is_too_large,
    read_keys,
    read_table,
    said_of,
)
from offrecord.errors import InputError
from offrecord.tables.options import FileOptions, MemoryOptions, Options

if TYPE_CHECKING:
    from offrecord.mechanisms.base import Mechanism

#: Options that only a chain without data has.
_CHAIN = ("n", "alpha", "beta")
#: Options that only a table has, in the order in which help lists them.
_TABLE = (
    *("value", "order", "by", "single_chain", "private_list", "keep_rows"),
    *options_from("fit", "step"),
    *("accept_model", "allow_none"),
    *("format", "separator", "encoding", "sheet", "max_rows"),
)


@offering(
    "table",
    "n",
    "private",
    "epsilon",
    "alpha",
    "beta",
    "model",
    "exact_model",
    "mechanism",
    "split",
    "protect",
    *_TABLE,
    "csv",
    "picture",
    "force",
    "as_json",
    shared=Described,
    optional=("n", "value", "order"),
)
def compare(  # noqa: PLR0913, PLR0917 - what a person may write, by name
    epsilon: Annotated[
        str, typer.Option(help="Privacy budgets: 0.1,0.5,1 or from:to:count such as 0.1:3:30.")
    ],
    force: bool,
    table: Annotated[
        Path | None,
        typer.Argument(metavar="TABLE", help=f"{TABLE_HELP} Without it, a chain without data."),
    ] = None,
    private: Annotated[
        str | None,
        typer.Option(
            help="Boolean column of the TABLE; without one, records counted from 1: 3,7 or 10-12."
        ),
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="Mechanisms to compare, by comma; all without it.")
    ] = None,
    split: Split = None,
    csv: Annotated[Path | None, typer.Option(help="Write the table here.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw it here: .svg, .png or .html.")] = None,
    as_json: Json = False,
    **described: Any,
) -> None:
    """Mechanisms side by side over a range of ε, as a table, CSV or picture: what they would
    release of a TABLE, by dry runs, or of a chain without data.
    """
    from offrecord.files import write_text
    from offrecord.paper import comparison
    from offrecord.theory.problem import budget

    epsilons = [budget(value) for value in _epsilons(epsilon)]
    chosen = comparison.mechanisms(mechanism.split(",") if mechanism else None, split_of(split))
    _check_outputs(csv, picture, force=force)
    described |= {"private": private}
    if table is None:
        content = _of_chain(described, epsilons, chosen, named=mechanism is not None)
    else:
        named = {"--private-list": described["private_list"], "--model": described["model"]}
        written = {"--csv": csv, "--picture": picture}
        check_all_apart(written, {"the input": table} | named)
        check_outside(written, table)
        content = _of_table(table, described, epsilons, chosen)
    found = comparison.Comparison(tuple(content["results"]))
    if csv is not None:
        write_text(csv, found.csv(), force=force)
    if picture is not None:
        found.chart().write(picture, force=force)
    typer.echo(as_json_text(content) if as_json else str(found))


def _of_chain(
    described: dict[str, Any],
    epsilons: list[float],
    chosen: Mapping[str, Mechanism],
    *,
    named: bool,
) -> dict[str, Any]:
    """What --json prints of a chain without data."""
    from offrecord.paper import comparison

    _refuse(described, _TABLE, "a TABLE: name it, or leave this out")
    if described["n"] is None or described["private"] is None:
        raise InputError("give a TABLE, or --n and --private for a chain without data")
    own = {name: value for name, value in described.items() if name not in _TABLE}
    problem = Described(epsilon=epsilons[0], **own).problem()
    found = comparison.compare(problem, chosen, epsilons=epsilons, named=named, progress=bar)
    return {"n": problem.n, "private": list(problem.private), "results": found.rows}


def _of_table(
    table: Path,
    described: dict[str, Any],
    epsilons: list[float],
    chosen: Mapping[str, Mechanism],
) -> dict[str, Any]:
    """What --json prints of a table."""
    from offrecord.tables.formats import Said

    _refuse(described, _CHAIN, "chains without data: leave the TABLE out, or this")
    if described["value"] is None or described["order"] is None:
        raise InputError("a TABLE needs --value and --order, as in offrecord redact")
    own = {name: value for name, value in described.items() if name not in _CHAIN}
    asked = FileOptions(epsilon=epsilons[0], dataset="compare", **own)
    said = Said(asked.format, asked.separator, asked.encoding, asked.sheet)
    of_table = said_of(table, asked.private_list, said)
    if table != STREAM and is_too_large(table, of_table):
        raise InputError(
            f"{table} would take over half of this machine's memory: compare some of its chains, or"
            " see offrecord redact --stream --dry-run"
        )
    columns = columns_read(asked.value, asked.order, asked.by, asked.private)
    frame = read_table(table, columns, of_table, asked.max_rows, text=[asked.value])
    from offrecord.tables.comparing import compared

    asked = replace(asked, private_list=read_keys(asked.private_list, said, asked.max_rows))
    options = MemoryOptions(**{one.name: getattr(asked, one.name) for one in fields(Options)})
    survey, trials = compared(frame, options, chosen, epsilons, bar)
    counted = ("rows", "missing", "chains", "touched", "private", "runs")
    return {name: getattr(survey, name) for name in counted} | {
        "results": [
            {
                "epsilon": trial.epsilon,
                "mechanism": trial.mechanism,
                "utility": trial.released,
                "touched_released": trial.of_touched(survey),
                "leakage": trial.leakage,
                "why": trial.why,
            }
            for trial in trials
        ]
    }


def _refuse(described: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    """InputError for an option that a person gave and that is for something else."""
    usual: dict[str, Field[Any]] = {one.name: one for one in fields(FileOptions)}
    for name in names:
        default = usual[name].default if name in usual else None
        if described[name] != (None if default is MISSING else default):
            raise InputError(f"--{name.replace('_', '-')} is for {where}")


def _check_outputs(csv: Path | None, picture: Path | None, *, force: bool) -> None:
    """InputError unless both could be written."""
    from offrecord.charts import check_picture
    from offrecord.files import check_writable

    if csv is not None:
        check_writable(csv, force=force)
    if picture is not None:
        check_picture(picture, force=force)
    if csv is not None and picture is not None and csv.absolute() == picture.absolute():
        raise InputError(f"--csv and --picture must be two files, got {csv} for both")


def _epsilons(text: str) -> list[float]:
    accepted = "--epsilon must be numbers such as 0.1,0.5,1 or from:to:count such as 0.1:3:30"
    try:
        if ":" not in text:
            return [float(part) for part in text.split(",")]
        low, high, count = text.split(":")
        start, stop, steps = float(low), float(high), int(count)
    except ValueError:
        raise InputError(f"{accepted}, got {text!r}") from None
    if not (2 <= steps <= 10_000 and 0 <= start < stop < float("inf")):
        raise InputError(f"{accepted}, with 2 to 10,000 values from low to high, got {text!r}")
    return [start + (stop - start) * i / (steps - 1) for i in range(steps)]
