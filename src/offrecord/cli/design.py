"""The verb design."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from offrecord.cli.chains import Described, Split, split_of
from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, as_json_text
from offrecord.cli.progress import busy


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
    "output",
    "force",
    "as_json",
    shared=Described,
)
def design(
    force: bool,
    mechanism: Annotated[
        str,
        typer.Option(
            help="quilt, window, 3r-relaxed, 3r-convex, 3r-constant, best-local or owner."
        ),
    ] = "best-local",
    split: Split = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save the policy here (JSON).")
    ] = None,
    as_json: Json = False,
    **described: Any,
) -> None:
    """Regions, redaction probabilities, exact leakage and utility for a chain; no data needed."""
    from offrecord.files import check_writable
    from offrecord.mechanisms import design as design_policy
    from offrecord.mechanisms import mechanism_named

    chosen = mechanism_named(mechanism, **split_of(split))
    problem = Described(**described).problem()
    if output is not None:
        check_writable(output, force=force)
    with busy("designing"):
        policy = design_policy(problem, chosen)
    typer.echo(as_json_text(policy.summary()) if as_json else str(policy))
    sys.stdout.flush()  # if nobody can read it, nothing is saved either
    if output is not None:
        policy.save(output, force=force)
