"""Verbs that need no data: design, compare, reproduce."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offrecord.cli.shared import Force, Json, as_json_text, busy, number, progress, whole
from offrecord.errors import InputError
from offrecord.text import aligned

if TYPE_CHECKING:
    from offrecord.models.chain import MarkovChain
    from offrecord.theory.problem import Problem

MAX_PRIVATE = 1_000_000

Alpha = Annotated[
    float | None,
    typer.Option(
        parser=number, metavar="NUMBER", help="P(0→1) of a chain with two values, in (0, 1]."
    ),
]
Beta = Annotated[
    float | None, typer.Option(parser=number, metavar="NUMBER", help="P(1→0), in (0, 1].")
]
Model = Annotated[Path | None, typer.Option(help="Model file, instead of --alpha and --beta.")]
N = Annotated[int, typer.Option("--n", parser=whole, metavar="COUNT", help="Number of records.")]
Private = Annotated[str, typer.Option(help="Private records, counted from 1: 3,7 or 10-12.")]
Protect = Annotated[
    str,
    typer.Option(help="run: neighbouring private records are one secret; each: every one its own."),
]
Split = Annotated[
    str | None,
    typer.Option(help="3R: the left side's share of ε: best, even, or a number from 0 to 1."),
]


def design(
    n: N,
    private: Private,
    epsilon: Annotated[
        float,
        typer.Option(
            parser=number,
            metavar="NUMBER",
            help="Privacy budget ε ≥ 0, natural log. No default: you decide.",
        ),
    ],
    alpha: Alpha = None,
    beta: Beta = None,
    model: Model = None,
    mechanism: Annotated[
        str, typer.Option(help="quilt, window, 3r-relaxed, 3r-convex, 3r-constant or best-local.")
    ] = "best-local",
    split: Split = None,
    protect: Protect = "run",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save the policy here (JSON).")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Regions, redaction probabilities, exact leakage and utility for a chain; no data needed."""
    from offrecord.files import check_writable
    from offrecord.mechanisms import design as design_policy
    from offrecord.mechanisms import mechanism_named

    chosen = mechanism_named(mechanism, **_split(split))
    problem = _problem(alpha, beta, model, n, private, epsilon, protect)
    if output is not None:
        check_writable(output, force=force)
    with busy("designing"):
        policy = design_policy(problem, chosen)
    typer.echo(as_json_text(policy.summary()) if as_json else str(policy))
    sys.stdout.flush()
    if output is not None:
        policy.save(output, force=force)


def compare(
    n: N,
    private: Private,
    epsilon: Annotated[
        str, typer.Option(help="Privacy budgets: 0.1,0.5,1 or from:to:count such as 0.1:3:30.")
    ],
    alpha: Alpha = None,
    beta: Beta = None,
    model: Model = None,
    mechanism: Annotated[
        str | None, typer.Option(help="Mechanisms to compare, by comma; all without it.")
    ] = None,
    split: Split = None,
    protect: Protect = "run",
    csv: Annotated[Path | None, typer.Option(help="Write the table here.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw it here: .svg, .png or .html.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Mechanisms side by side over a range of ε: utility and exact leakage, as a table, CSV or
    picture.
    """
    from offrecord.files import check_writable, write_text
    from offrecord.paper import comparison
    from offrecord.paper.charts import check_picture, utility_chart, write_chart
    from offrecord.theory.problem import budget

    epsilons = [budget(value) for value in _epsilons(epsilon)]
    chosen = comparison.mechanisms(mechanism.split(",") if mechanism else None, _split(split))
    problem = _problem(alpha, beta, model, n, private, epsilons[0], protect)
    if csv is not None:
        check_writable(csv, force=force)
    if picture is not None:
        check_picture(picture, force=force)
        if csv is not None and csv.absolute() == picture.absolute():
            raise InputError(f"--csv and --picture must be two files, got {csv} for both")
    rows = [
        row
        for value in progress(epsilons, "comparing")
        for row in comparison.compare(
            problem.with_epsilon(value), chosen, named=mechanism is not None
        )
    ]
    if csv is not None:
        write_text(csv, comparison.csv_text(rows), force=force)
    if picture is not None:
        drawn = list(dict.fromkeys(row["mechanism"] for row in rows))
        write_chart(utility_chart(rows, drawn), picture, force=force)
    typer.echo(
        as_json_text({"n": n, "private": list(problem.private), "results": rows})
        if as_json
        else comparison.table(rows)
    )


def reproduce(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the figures.")] = Path(
        "offrecord-paper"
    ),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Every number, table and figure of the paper beside the paper's value; exit 1 if anything
    disagrees.
    """
    from offrecord.paper import reproduce as paper
    from offrecord.paper.charts import (
        check_picture,
        influence_chart,
        redaction_chart,
        utility_chart,
        write_chart,
    )

    try:
        if output.exists() and not output.is_dir():
            raise InputError(f"--output must be a folder, got the file {output}")
    except OSError as error:
        raise InputError(f"--output cannot be used: {error.strerror}") from None
    files = [output / f"fig{number}.{kind}" for number in (1, 2, 3) for kind in ("svg", "png")]
    made = not output.exists()
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{output} cannot be made: {error.strerror}") from None
    try:
        for file in files:
            check_picture(file, force=force)
        checks = list(progress(list(paper.checks()), "numbers"))
        errata = list(paper.errata())
        profile, profile_names = paper.fig3()
        points = [
            row
            for epsilon in progress(paper.FIG2_EPSILONS, "Fig. 2")
            for row in paper.fig2([epsilon])
        ]
        charts = [
            influence_chart(*paper.fig1()),
            utility_chart(points, paper.FIG2_NAMES),
            redaction_chart(profile, profile_names),
        ]
        for index, file in enumerate(files):
            write_chart(charts[index // 2], file, force=force)
    except BaseException:
        if made and not any(output.iterdir()):
            output.rmdir()
        raise
    failed = sum(not check.agrees for check in checks) + sum(
        not erratum.recomputed for erratum in errata
    )
    if as_json:
        typer.echo(
            as_json_text(
                {
                    "checks": [
                        {**vars(check), "difference": check.difference, "agrees": check.agrees}
                        for check in checks
                    ],
                    "errata": [vars(erratum) for erratum in errata],
                    "figures": [str(file) for file in files],
                    "failed": failed,
                }
            )
        )
    else:
        lines = [["paper", "number", "paper's value", "ours", "difference", "source", ""]]
        lines += [
            [
                c.place,
                c.what,
                f"{c.paper:.6g}",
                f"{c.ours:.6g}",
                f"{c.difference:+.1e}",
                c.source,
                "" if c.agrees else "DISAGREES",
            ]
            for c in checks
        ]
        typer.echo(aligned(lines))
        typer.echo("\nWhere the paper does not hold as printed (counter-examples recomputed):")
        for erratum in errata:
            state = "" if erratum.recomputed else "  NOT REPRODUCED"
            typer.echo(f"- {erratum.place}: «{erratum.statement}»: {erratum.finding}{state}")
        typer.echo("\nFigures: " + ", ".join(map(str, files)))
        typer.echo(f"{len(checks)} numbers and {len(errata)} errata checked, {failed} disagree.")
    if failed:
        raise typer.Exit(1)


# ---- what the verbs share


def _problem(
    alpha: float | None,
    beta: float | None,
    model: Path | None,
    n: int,
    private: str,
    epsilon: float,
    protect: str,
) -> Problem:
    from offrecord.theory.problem import Problem

    return Problem(_chain(alpha, beta, model), n, _positions(private, n), epsilon, protect)


def _chain(alpha: float | None, beta: float | None, model: Path | None) -> MarkovChain:
    from offrecord.models.chain import MarkovChain

    if model is not None:
        if alpha is not None or beta is not None:
            raise InputError("give either --model or --alpha and --beta, not both")
        return MarkovChain.load(model)
    if alpha is None or beta is None:
        raise InputError("give --alpha and --beta, or --model FILE")
    return MarkovChain.binary(alpha, beta)


def _positions(text: str, n: int) -> list[int]:
    positions: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            low = int(first)
            high = int(last) if dash else low
        except ValueError:
            raise InputError(
                f"--private must be records such as 3,7 or 10-12, got {part.strip()!r}"
            ) from None
        if high < low or high - low >= n:
            raise InputError(f"--private must be ranges within 1 to {n}, got {part.strip()!r}")
        if len(positions) + high - low >= MAX_PRIVATE:
            raise InputError(
                f"--private must name at most {MAX_PRIVATE} records, got {part.strip()!r} and"
                f" {len(positions)} more"
            )
        positions.extend(range(low, high + 1))
    return positions


def _split(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        return {"split": float(text)}
    except ValueError:
        return {"split": text}


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
