"""The verbs that show what there is: demo, explore, reproduce."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from offrecord.cli.parameters import numbered, offering, outgoing
from offrecord.cli.printing import Json, bar, show
from offrecord.text import aligned, followed, plain

if TYPE_CHECKING:
    from offrecord.charts import Chart
    from offrecord.paper.errata import Erratum
    from offrecord.paper.numbers import Check

_TITLES = ("paper", "number", "paper's value", "ours", "difference", "source", "")


@offering()
def demo(
    force: bool,
    output: Annotated[Path, outgoing("Folder for what it writes.")] = Path("offrecord-demo"),
    as_json: Json = False,
) -> None:
    """The whole job on real data: a year of rain at an airport, hour by hour; fit, redact, certify,
    report.
    """
    from offrecord.demo import run

    # with --json standard output holds one object; else each part is said when it is done
    said: list[str] = []
    say = said.append if as_json else partial(show, False, None)
    content = run(output, force=force, say=say, progress=bar)
    if as_json:
        show(as_json, content, "")


def explore(
    port: Annotated[int, numbered("NUMBER", "Port on 127.0.0.1; 0 takes any.")] = 8750,
    no_browser: Annotated[
        bool, Option("--no-browser", help="Print the address and open nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """A page on this machine alone that shows what a design does while sliders move."""
    from offrecord.charts import check_drawable
    from offrecord.explorer.app import serve

    def say(url: str) -> None:
        show(as_json, {"address": url}, f"{url} (Ctrl-C ends it)")

    check_drawable()
    serve(port, not no_browser, say)


@offering()
def reproduce(
    force: bool,
    output: Annotated[Path, outgoing("Folder for the figures.")] = Path("offrecord-paper"),
    as_json: Json = False,
) -> None:
    """Every number, table and figure of the paper beside the paper's value; exit 1 if anything
    disagrees.
    """
    from offrecord.charts import check_picture
    from offrecord.files import folder_made
    from offrecord.paper.errata import errata as found_errata
    from offrecord.paper.numbers import checks as found_checks

    files = [output / f"fig{number}.{kind}" for number in (1, 2, 3) for kind in ("svg", "png")]
    with folder_made(output):
        # before the numbers, which take minutes
        for file in files:
            check_picture(file, force=force)
        checks = list(followed(list(found_checks()), "numbers", bar))
        errata = list(found_errata())
        # written last, when all could be computed
        _write(_figures(), files, force=force)
    failed = _failed(checks, errata)
    figures = list(map(str, files))
    content = {
        "checks": [check.to_dict() for check in checks],
        "errata": [vars(erratum) for erratum in errata],
        "figures": figures,
        "failed": failed,
    }
    said = f"{len(checks)} numbers and {len(errata)} errata checked, {failed} disagree."
    show(
        as_json,
        content,
        f"{_text(checks, errata)}\n\nFigures: {', '.join(map(plain, figures))}\n{said}",
    )
    if failed:
        raise typer.Exit(1)


def _failed(checks: Sequence[Check], errata: Sequence[Erratum]) -> int:
    return [*(one.agrees for one in checks), *(one.recomputed for one in errata)].count(False)


def _write(charts: list[Chart], files: list[Path], *, force: bool) -> None:
    for index, file in enumerate(files):
        charts[index // 2].write(file, force=force)  # two files of each


def _figures() -> list[Chart]:
    from offrecord.charts import influence_chart, redaction_chart, utility_chart
    from offrecord.paper import figures

    points = figures.fig2(followed(figures.FIG2_EPSILONS, "Fig. 2", bar))
    rows, threshold = figures.fig1()
    return [
        influence_chart(rows, threshold, ["value 0", "value 1"], name="ε′"),
        utility_chart(points, figures.FIG2_NAMES),
        redaction_chart(*figures.fig3()),
    ]


def _text(checks: Sequence[Check], errata: Sequence[Erratum]) -> str:
    head = "\nWhere the paper does not hold as printed (counter-examples recomputed):"
    return "\n".join([aligned([_TITLES, *map(_cells, checks)]), head, *map(_line, errata)])


def _cells(check: Check) -> list[str]:
    return [
        check.place,
        check.what,
        f"{check.paper:.6g}",
        f"{check.ours:.6g}",
        f"{check.difference:+.1e}",
        check.source,
        "" if check.agrees else "DISAGREES",
    ]


def _line(erratum: Erratum) -> str:
    state = "" if erratum.recomputed else "  NOT REPRODUCED"
    return f"- {erratum.place}: «{erratum.statement}»: {erratum.finding}{state}"
