"""The whole job on real data: rain at New York's JFK airport, hour by hour, in 2013.

README.md here says where the data are from, and how policy.json was made.
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
    from offrecord.mechanisms.base import Policy
    from offrecord.mechanisms.table_policy import TablePolicy
    from offrecord.models.chain import MarkovChain
    from offrecord.tables.engines.memory import Release
    from offrecord.text import Progress

#: Hours of the second half of the year whose rain someone wants off the record, whatever it was:
#: chosen by the calendar. (Hours chosen because it rained would be leaked by the choice itself, and
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
_SHOWN = 24  #: hours shown on each side of a private one
_LETTERS = {"L": "L", "M": "M", "S": "S"}
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
    progress: Progress,
) -> Done:
    """Fit the first half of the year, redact the second, and say what happened."""
    from offrecord.reports.report import report_of
    from offrecord.tables.engines.memory import redact

    written = Files(folder)
    written.check(force=force)
    first, second = halves()
    say(
        f"Rain at JFK airport, hour by hour, 2013. {len(PRIVATE_HOURS)} hours between July and"
        " December are off the record.\n"
    )
    fitted = learned(first)
    fitted.save(written.model, force=force)
    say(
        f"1. fit learns from January to June ({fitted.records:,} records) which chains are"
        f" plausible: memory of {fitted.posterior.order} hours.\n"
    )
    release = redact(
        second,
        private_list=_private_hours(),
        model=fitted,
        policy=shipped_policy(),
        epsilon=EPSILON,
        dataset=DATASET,
        key_file=written.key,
        accept=("another-release",) if force else (),
        progress=progress,
        **_COLUMNS,
    )
    certificate, _ = release.write(written.released, force=force)
    report_of(release, certificate, written.released).write(written.report, force=force)
    say(f"2. redact releases the rest of July to December ({second.height:,} records):\n")
    say(release.summary.figures())
    say("\n3. What an attacker can infer about a private hour, as odds between rain and none:\n")
    say(_odds(release))
    say("\n4. One private hour (P), and what left around it (· is redacted):\n")
    say(_around(release.frame))
    say("\n5. The paper's mechanisms, if rain were known to follow a chain of order 1:\n")
    say(_paper(first))
    say(f"\nwritten: {written.model}, {written.released} and its certificate {certificate.name}")
    say(f"The release on one page, for a browser: {written.report}")
    return Done(written, fitted, release, certificate)


def halves() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The year: January to June, July to December."""
    import polars as pl

    from offrecord.tables.io.formats import read_frame

    with as_file(files("offrecord") / "demo" / "jfk_rain_2013.csv") as source:
        year = read_frame(source)
    is_first = pl.col("time") < "2013-07-01"
    return year.filter(is_first), year.filter(~is_first)


def learned(reference: pl.DataFrame) -> Fit:
    """The fit to a half of the year, tested at the demo's ε."""
    from offrecord.tables.reference import fit

    return fit(reference, epsilons=(EPSILON,), **_COLUMNS)


def designed(fitted: Fit) -> TablePolicy:
    """The rules that policy.json holds: the owner's, for all settings of a single chain."""
    from offrecord.mechanisms import mechanism_named
    from offrecord.mechanisms.design_table import design_table
    from offrecord.mechanisms.rules import SETTINGS, Setting

    settings = [Setting(kind) for kind in SETTINGS]
    return design_table(mechanism_named("owner"), fitted.posterior, EPSILON, "run", settings)


def shipped_policy() -> TablePolicy:
    """The rules of `designed`, made beforehand: designing them takes a minute."""
    from offrecord.files import read_json
    from offrecord.mechanisms.table_policy import TablePolicy

    with as_file(files("offrecord") / "demo" / "policy.json") as path:
        return TablePolicy.from_dict(read_json(path))


def _private_hours() -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame({"time": PRIVATE_HOURS})


def _odds(release: Release) -> str:
    """Bars of the odds after plain erasure and after the release, on a logarithmic scale."""
    from offrecord.text import odds

    summary = release.summary
    shown = [("plain erasure", summary.erasure or 0.0), ("this release", summary.leakage)]
    rows = [[name, "█" * max(round(4 * it), 1), f"{odds(it)} to 1"] for name, it in shown]
    return aligned(rows)


def _around(released: pl.DataFrame) -> str:
    """The hours around the private one of 15 August, a character each."""
    hour = PRIVATE_HOURS[3]
    times = released["time"].to_list()
    at = times.index(hour)
    cells = ["·" if cell is None else str(cell) for cell in released["rain"].to_list()]
    cells[at] = "P"
    begin = max(at - _SHOWN, 0)
    return f"{times[begin]}  {''.join(cells[begin : at + _SHOWN + 1])}  {times[at + _SHOWN]}"


def _paper(reference: pl.DataFrame) -> str:
    """Windows, the paper's constant q and the best local mechanism around one hour: for dry hours
    and for hours of rain, which records are redacted always, sometimes and never.
    """
    from offrecord.mechanisms import design
    from offrecord.theory.problem import Problem

    chain = _chain_of_order_1(reference)
    problem = Problem(chain, n=2 * _SHOWN + 1, private=[_SHOWN + 1], epsilon=EPSILON)
    rows = [["mechanism", "regions around the private hour (P)", "expected redactions"]]
    for name in ("window", "3r-constant", "best-local", "owner"):
        policy = design(problem, name)
        redacted = problem.n * (1 - policy.utility)
        rows.append([name, _regions(policy), f"{redacted:.1f}"])
    legend = "L: always redacted, M: redacted for some values or sometimes, S: never."
    left_out = (
        "A chain of order 1 leaves out what the longer memory above counts with: real rain"
        " needs more."
    )
    return f"{aligned(rows)}\n{legend}\n{left_out}"


def _chain_of_order_1(reference: pl.DataFrame) -> MarkovChain:
    from offrecord.tables.reference import fit

    return fit(reference, chain_order=1, epsilons=(EPSILON,), **_COLUMNS).chain


def _regions(policy: Policy) -> str:
    """A character for each record; the owner's walk has no regions."""
    regions = getattr(policy, "regions", None)
    if regions is None:
        return "stops at a random distance on each side"
    return "".join(_LETTERS.get(str(getattr(one, "value", one)), "P") for one in regions)
