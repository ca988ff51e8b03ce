"""The verb compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from offrecord.cli.chains import Described, Split, share_of, split_of
from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, as_json_text
from offrecord.cli.progress import bar
from offrecord.errors import InputError
from offrecord.text import followed


@offering(
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
    "csv",
    "picture",
    "force",
    "as_json",
    shared=Described,
)
def compare(
    epsilon: Annotated[
        str, typer.Option(help="Privacy budgets: 0.1,0.5,1 or from:to:count such as 0.1:3:30.")
    ],
    force: bool,
    mechanism: Annotated[
        str | None, typer.Option(help="Mechanisms to compare, by comma; all without it.")
    ] = None,
    split: Split = None,
    csv: Annotated[Path | None, typer.Option(help="Write the table here.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw it here: .svg, .png or .html.")] = None,
    as_json: Json = False,
    **described: Any,
) -> None:
    """Mechanisms side by side over a range of ε: utility and exact leakage, as a table, CSV or
    picture.
    """
    from offrecord.files import write_text
    from offrecord.paper import comparison
    from offrecord.paper.charts import utility_chart, write_chart
    from offrecord.theory.problem import budget

    epsilons = [budget(value) for value in _epsilons(epsilon)]
    chosen = comparison.mechanisms(mechanism.split(",") if mechanism else None, split_of(split))
    problem = Described(epsilon=epsilons[0], **described).problem()
    share = share_of(problem.chain)
    _check_outputs(csv, picture, force=force)
    rows = [
        row
        for value in followed(epsilons, "comparing", bar)
        for row in comparison.compare(
            problem.with_epsilon(share * value), chosen, named=mechanism is not None
        )
    ]
    if csv is not None:
        write_text(csv, comparison.csv_text(rows), force=force)
    if picture is not None:
        drawn = list(dict.fromkeys(row["mechanism"] for row in rows))
        write_chart(utility_chart(rows, drawn), picture, force=force)
    content = {"n": problem.n, "private": list(problem.private), "results": rows}
    typer.echo(as_json_text(content) if as_json else comparison.table(rows))


def _check_outputs(csv: Path | None, picture: Path | None, *, force: bool) -> None:
    """InputError unless both could be written."""
    from offrecord.files import check_writable
    from offrecord.paper.charts import check_picture

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
