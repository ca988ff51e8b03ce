"""The verb fit."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from offrecord.cli.parameters import offering, options_from, whole
from offrecord.cli.paths import check_all_apart, check_outside
from offrecord.cli.printing import Json, as_json_text
from offrecord.cli.progress import busy
from offrecord.cli.tables import Table, columns_read, read_keys, read_table, said_of


@offering(
    "table",
    "value",
    "order",
    "output",
    *options_from("by", "private_list"),
    "problems",
    "fit_distance",
    *options_from("chain_order", "no_audit"),
    "states",
    "calibrate",
    "step",
    "order_unit",
    "key_file",
    "format",
    "separator",
    "encoding",
    "sheet",
    "max_rows",
    "force",
    "as_json",
)
def fit(
    table: Table,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (JSON).")],
    max_rows: int,
    force: bool,
    states: Annotated[
        int | None,
        typer.Option(
            help="Also a chain on so many hidden states; taken if it foretells better.",
            parser=whole,
            metavar="COUNT",
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Enlarge the model until its promise holds in data held back."
        ),
    ] = False,
    as_json: Json = False,
    **described: Any,
) -> None:
    """Learn the model from reference data: kernel, uncertainty, and a verdict on how well
    it fits.
    """
    from offrecord.files import check_writable
    from offrecord.release.keys import default_key_file
    from offrecord.tables.formats import Said
    from offrecord.tables.reference import fit as fit_table
    from offrecord.tables.reporting import check_report, reporting

    keys, problems = described.pop("private_list"), described.pop("problems")
    described["key_file"] = described["key_file"] or default_key_file()
    value, order, by = described["value"], described["order"], described["by"]
    check_writable(output, force=force)
    written = {"--output": output, "--problems": problems}
    check_all_apart(written, {"the input": table, "--private-list": keys})
    check_outside(written, table)
    check_report(problems, force=force)
    said = Said(*(described.pop(one.name) for one in fields(Said)))
    listed = read_keys(keys, said, max_rows)
    columns = columns_read(value, order, by, described["private"])
    frame = read_table(table, columns, said_of(table, keys, said), max_rows, text=[value])
    described |= {"states": states, "calibrate": calibrate}
    with busy("fitting"), reporting(problems, force=force):
        found = fit_table(frame, private_list=listed, **described)
    found.model.save(output, force=force)
    typer.echo(as_json_text(found.summary()) if as_json else str(found))
