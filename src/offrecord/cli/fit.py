"""The verb fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from offrecord.cli.files import (
    Table,
    check_all_apart,
    check_outside,
    columns_read,
    read_keys,
    read_table,
    said_of,
)
from offrecord.cli.parameters import cuts, offering
from offrecord.cli.printing import Json, as_json_text, busy
from offrecord.tables.options import EPSILONS


@offering()
def fit(
    table: Table,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (JSON).")],
    limits: list[tuple[str, int]] | None,
    force: bool,
    epsilons: Annotated[
        Any,
        typer.Option(
            "--epsilon",
            help="Budgets at which the promise is tested in the data.  [default: 0.5,1,2]",
            parser=cuts,
            metavar="NUMBERS",
        ),
    ] = None,
    as_json: Json = False,
    **described: Any,
) -> None:
    """Learn from reference data which chains are plausible: counts, order, places, and a verdict
    on the promise.
    """
    from offrecord.files import check_writable
    from offrecord.release.keys import default_key_file
    from offrecord.tables.io.format import ReadOptions
    from offrecord.tables.reference import fit as fit_table

    keys = described.pop("private_list")
    described["key_file"] = described["key_file"] or default_key_file()
    value, order, by = described["value"], described["order"], described["by"]
    check_writable(output, force=force)
    written = {"--output": output}
    check_all_apart(written, {"the input": table, "--private-list": keys})
    check_outside(written, table)
    kind, separator, encoding = (described.pop(one) for one in ("format", "separator", "encoding"))
    options = ReadOptions(kind, separator, encoding, dict(limits or ()))
    listed = read_keys(keys, options)
    columns = columns_read(value, order, by, described["private"])
    frame = read_table(table, columns, said_of(table, keys, options), text=[value])
    described["epsilons"] = EPSILONS if epsilons is None else tuple(epsilons)
    described["table"] = table.name
    with busy("fitting"):
        found = fit_table(frame, private_list=listed, **described)
    found.save(output, force=force)
    typer.echo(as_json_text(found.summary()) if as_json else str(found))
