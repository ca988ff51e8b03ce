"""The whole job on real data: rain at New York's JFK airport, hour by hour, in 2013.

README.md here says where the data are from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offrecord.errors import InputError
from offrecord.text import aligned

if TYPE_CHECKING:
    import polars as pl

    from offrecord.fitting.fit import Fit
    from offrecord.tables.engines.memory import Release
    from offrecord.tables.options import Listwise

#: Hours of the second half of the year whose rain someone wants off the record, whatever it was:
#: chosen by the calendar. (Hours chosen because it rained would be told by the choice itself, and
#: `redact` warns of that.)
PRIVATE_HOURS = (
    "2013-07-05T01:00:00Z",  # the fireworks
    "2013-07-05T02:00:00Z",
    "2013-08-01T18:00:00Z",
    "2013-08-15T12:00:00Z",
    "2013-09-02T20:00:00Z",
    "2013-10-11T09:00:00Z",
    "2013-11-28T14:00:00Z",  # the parade
    "2013-12-24T18:00:00Z",
)
EPSILON = 1.0
DATASET = "offrecord demo: rain at JFK, July to December 2013"
_COLUMNS: dict[str, Any] = {"value": "rain", "order": "time", "single_chain": True, "step": "1h"}


@dataclass(frozen=True)
class Files:
    """What the demo writes into a folder; certificate and report lie beside the released table."""

    folder: Path

    @property
    def model(self) -> Path:
        """What was learned."""
        return self.folder / "model.json"

    @property
    def released(self) -> Path:
        """The redacted table."""
        return self.folder / "released.csv"

    @property
    def report(self) -> Path:
        """The release on one page."""
        from offrecord.files import report_beside

        return report_beside(self.released)

    @property
    def key(self) -> Path:
        """The key: a real one lives in the user's data directory."""
        return self.folder / "key" / "key.json"

    def check(self, *, force: bool) -> None:
        """Make the folder; InputError unless all could be written."""
        from offrecord.files import check_outputs, check_writable

        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"--output must be a folder, got the file {self.folder}")
        self.folder.mkdir(parents=True, exist_ok=True)
        check_writable(self.model, force=force)
        check_outputs(self.released, None, self.key, force=force)
        check_writable(self.report, force=force)


@dataclass(frozen=True, eq=False)
class Done:
    """What the demo came to."""

    files: Files
    fitted: Fit
    release: Release
    certificate: Path

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {
            "fit": self.fitted.summary(),
            "redact": self.release.summary.to_dict(),
            "model": str(self.files.model),
            "output": str(self.files.released),
            "certificate": str(self.certificate),
            "report": str(self.files.report),
        }


def run(
    folder: Path,
    *,
    force: bool,
    say: Callable[[str], Any],
    progress: Listwise,
) -> Done:
    """Fit the first half of the year, redact the second, and say what happened."""
    from offrecord.reports.report import report_of
    from offrecord.tables.engines.memory import redact
    from offrecord.tables.reference import fit

    written = Files(folder)
    written.check(force=force)
    first, second = halves()
    records = f"{first.height + second.height:,} records"
    say(f"Rain at JFK airport, hour by hour, 2013: {records}, gaps and all.\n")
    say(f"1. fit: learn from January to June ({first.height:,} records) how rain follows rain\n")
    fitted = fit(first, chain_order=2, **_COLUMNS)
    fitted.model.save(written.model, force=force)
    say(str(fitted))
    say(
        f"\n2. redact: July to December ({second.height:,} records), {len(PRIVATE_HOURS)} hours off"
        f" the record, ε = {EPSILON:g}\n"
    )
    release = redact(
        second,
        private_list=_private_hours(),
        model=fitted.model,
        epsilon=EPSILON,
        dataset=DATASET,
        key_file=written.key,
        another_release=force,
        progress=progress,
        **_COLUMNS,
    )
    certificate, _ = release.write(written.released, force=force)
    report_of(release, certificate, written.released).write(written.report, force=force)
    say(release.summary.figures())
    say(f"\nwritten: {written.model}, {written.released} and its certificate {certificate.name}")
    say(
        "\nAround the first private hours, the rule that decided and what came of it (· is a"
        " redaction):\n"
    )
    say(_around(release.explain(), release.frame))
    say(f"\nThe release on one page, for a browser: {written.report}")
    return Done(written, fitted, release, certificate)


def halves() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The year: January to June, July to December."""
    import polars as pl

    from offrecord.tables.formats import read_frame

    with as_file(files("offrecord") / "demo" / "jfk_rain_2013.csv") as source:
        year = read_frame(source)
    is_first = pl.col("time") < "2013-07-01"
    return year.filter(is_first), year.filter(~is_first)


def _private_hours() -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame({"time": PRIVATE_HOURS})


def _around(rule: pl.DataFrame, released: pl.DataFrame) -> str:
    """The rows about the first secret: rule and outcome side by side.

    Those under the same rule stand together.
    """
    low, high = _first_secret(rule["region"].to_list())
    rows = [["from hour", "region", *rule.columns[2:], "released"]]
    before = None
    for i in range(max(low - 5, 0), min(high + 6, rule.height)):
        hour, *same = rule.row(i)
        value = released["rain"][i]
        if same != before:
            rows.append([hour, same[0], *(f"{chance:.4g}" for chance in same[1:]), ""])
            before = same
        rows[-1][-1] += "·" if value is None else str(value)
    return aligned(rows)


def _first_secret(regions: list[str]) -> tuple[int, int]:
    """The rows of the first secret and what is redacted about it, and a free one on each side."""
    low = high = regions.index("private")
    while low > 0 and regions[low] != "S":
        low -= 1
    while high < len(regions) - 1 and regions[high] != "S":
        high += 1
    return low, high
