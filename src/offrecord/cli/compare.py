"""The verb compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from offrecord.cli.chains import Described, Split, split_of
from offrecord.cli.files import check_all_apart
from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, bar, show
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
    from offrecord.charts import check_picture
    from offrecord.files import check_writable, write_text
    from offrecord.paper.comparison import compare as compared
    from offrecord.theory.problem import budget

    epsilons = [budget(value) for value in _epsilons(epsilon)]
    chosen = mechanism.split(",") if mechanism else None
    if csv is not None:
        check_writable(csv, force=force)
    if picture is not None:
        check_picture(picture, force=force)
    check_all_apart({"--csv": csv, "--picture": picture}, {})
    problem = Described(epsilon=epsilons[0], **described).problem()
    found = compared(problem, chosen, epsilons=epsilons, **split_of(split), progress=bar)
    if csv is not None:
        write_text(csv, found.csv(), force=force)
    if picture is not None:
        found.chart().write(picture, force=force)
    show(as_json, {"n": problem.n, "private": problem.private, "results": found.rows}, found)


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
