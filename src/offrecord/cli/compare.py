"""The verb compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from offrecord.cli.chains import Described, Split, split_of
from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, as_json_text, bar
from offrecord.errors import InputError


@offering(Described)
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
    """Mechanisms side by side over a range of ε, for a chain: as a table, CSV or picture."""
    from offrecord.files import write_text
    from offrecord.paper import comparison
    from offrecord.theory.problem import budget

    epsilons = [budget(value) for value in _epsilons(epsilon)]
    chosen = comparison.mechanisms(mechanism.split(",") if mechanism else None, split_of(split))
    _check_outputs(csv, picture, force=force)
    problem = Described(epsilon=epsilons[0], **described).problem()
    named = mechanism is not None
    found = comparison.compare(problem, chosen, epsilons=epsilons, named=named, progress=bar)
    if csv is not None:
        write_text(csv, found.csv(), force=force)
    if picture is not None:
        found.chart().write(picture, force=force)
    content = {"n": problem.n, "private": list(problem.private), "results": found.rows}
    typer.echo(as_json_text(content) if as_json else str(found))


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
