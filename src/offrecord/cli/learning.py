"""The verbs that learn from a table: look, fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

import offrecord as off
from offrecord.cli.files import Table, check_all_apart, check_outside, read_table, said_of
from offrecord.cli.parameters import cuts, offering, outgoing
from offrecord.cli.printing import Json, bar, show
from offrecord.files import check_writable
from offrecord.tables.options import EPSILONS

if TYPE_CHECKING:
    import polars as pl

    from offrecord.tables.io.format import ReadOptions


@offering()
def look(table: Table, as_json: Json = False, **asked: Any) -> None:
    """Look at a table: what its columns seem to be, and the fit and redact commands to run next."""

    found = off.look(table, **asked)
    show(as_json, found.to_dict(), found)


@offering()
def fit(
    table: Table,
    output: Annotated[Path, outgoing("Model file to write (JSON).")],
    limits: list[tuple[str, int]] | None,
    force: bool,
    epsilons: Annotated[
        Any,
        Option(
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
    from offrecord.release.keys import default_key_file

    keys = described.pop("private_list")
    check_writable(output, force=force)  # before the fit, which may take minutes
    check_all_apart({"--output": output}, {"the input": table, "--private-list": keys})
    check_outside({"--output": output}, table)
    options = _reading(described, dict(limits or ()))
    listed, frame = _read(table, keys, options, described)
    described["key_file"] = described["key_file"] or default_key_file()
    described["epsilons"] = EPSILONS if epsilons is None else tuple(epsilons)
    with bar("fitting", None):
        found = off.fit(frame, private_list=listed, table=table.name, **described)
    found.save(output, force=force)
    show(as_json, found.summary(), found)


def _reading(described: dict[str, Any], limits: dict[str, int]) -> ReadOptions:
    from offrecord.tables.io.format import ReadOptions

    said = {name: described.pop(name) for name in ("format", "separator", "encoding")}
    return ReadOptions(**said, limits=limits)


def _read(
    table: Path, keys: Path | None, options: ReadOptions, described: dict[str, Any]
) -> tuple[pl.DataFrame | None, pl.DataFrame]:
    from offrecord.tables.io.formats import read_list

    listed = None if keys is None else read_list(keys, options)
    # values are text, as labels of a model must not depend on how a type was guessed
    text = [described["value"]]
    return listed, read_table(table, said_of(table, keys, options), described, text=text)
