"""The verb reproduce."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from offrecord.cli.files import check_folder
from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, as_json_text, bar
from offrecord.errors import InputError
from offrecord.text import aligned, followed

if TYPE_CHECKING:
    from offrecord.paper.errata import Erratum
    from offrecord.paper.numbers import Check


@offering()
def reproduce(
    force: bool,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the figures.")] = Path(
        "offrecord-paper"
    ),
    as_json: Json = False,
) -> None:
    """Every number, table and figure of the paper beside the paper's value; exit 1 if anything
    disagrees.
    """
    from offrecord.charts import check_picture

    check_folder(output)
    files = [output / f"fig{number}.{kind}" for number in (1, 2, 3) for kind in ("svg", "png")]
    with _folder(output):
        for file in files:
            check_picture(file, force=force)
        found = _reproduced(files, force=force)
    typer.echo(as_json_text(found.to_dict()) if as_json else str(found))
    if found.failed:
        raise typer.Exit(1)


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """A folder, made if there is none; if all fails, it goes again unless something is in it."""
    is_new = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be made: {error.strerror}") from None
    try:
        yield
    except BaseException:
        if is_new and not any(path.iterdir()):
            path.rmdir()
        raise


def _reproduced(files: Sequence[Path], *, force: bool) -> _Reproduced:
    """All numbers and errata computed, all figures drawn: each in the two files of its own."""
    from offrecord import paper
    from offrecord.charts import influence_chart, redaction_chart, utility_chart

    checks = list(followed(list(paper.checks()), "numbers", bar))
    errata = list(paper.errata())
    profile, profile_names = paper.fig3()
    points = [
        row
        for epsilon in followed(paper.FIG2_EPSILONS, "Fig. 2", bar)
        for row in paper.fig2([epsilon])
    ]
    rows, threshold = paper.fig1()
    influence = [row | {"name": f"value {row['value']}"} for row in rows]
    charts = [
        influence_chart(influence, threshold, ["value 0", "value 1"], name="ε′"),
        utility_chart(points, paper.FIG2_NAMES),
        redaction_chart(profile, profile_names),
    ]
    for index, file in enumerate(files):
        charts[index // 2].write(file, force=force)
    return _Reproduced(checks, errata, files)


class _Reproduced(NamedTuple):
    """The paper beside what was computed."""

    checks: Sequence[Check]
    errata: Sequence[Erratum]
    files: Sequence[Path]

    @property
    def failed(self) -> int:
        """How many numbers and errata disagree."""
        disagreeing = sum(not check.agrees for check in self.checks)
        return disagreeing + sum(not erratum.recomputed for erratum in self.errata)

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {
            "checks": [
                {**vars(check), "difference": check.difference, "agrees": check.agrees}
                for check in self.checks
            ],
            "errata": [vars(erratum) for erratum in self.errata],
            "figures": [str(file) for file in self.files],
            "failed": self.failed,
        }

    def __str__(self) -> str:
        titles = ["paper", "number", "paper's value", "ours", "difference", "source", ""]
        return "\n".join(
            [
                aligned([titles, *map(_check_cells, self.checks)]),
                "\nWhere the paper does not hold as printed (counter-examples recomputed):",
                *map(_erratum_line, self.errata),
                f"\nFigures: {', '.join(map(str, self.files))}",
                f"{len(self.checks)} numbers and {len(self.errata)} errata checked, {self.failed}"
                " disagree.",
            ]
        )


def _check_cells(check: Check) -> list[str]:
    return [
        check.place,
        check.what,
        f"{check.paper:.6g}",
        f"{check.ours:.6g}",
        f"{check.difference:+.1e}",
        check.source,
        "" if check.agrees else "DISAGREES",
    ]


def _erratum_line(erratum: Erratum) -> str:
    state = "" if erratum.recomputed else "  NOT REPRODUCED"
    return f"- {erratum.place}: «{erratum.statement}»: {erratum.finding}{state}"
