"""The whole job on real data: rain at New York's JFK airport, hour by hour, in 2013.

README.md here says where the data are from, and how policy.json was made.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import polars as pl

from offrecord.files import check_outputs, check_writable, folder_made, read_json, report_beside
from offrecord.fitting.fit import Fit
from offrecord.mechanisms import design, mechanism_named
from offrecord.mechanisms.base import Policy
from offrecord.mechanisms.design_table import design_table
from offrecord.mechanisms.local_policy import LocalPolicy
from offrecord.mechanisms.rules import SETTINGS, Setting
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.reports.report import report_of
from offrecord.tables.engines.memory import Release, redact
from offrecord.tables.io.formats import table_file
from offrecord.tables.reference import fit
from offrecord.text import Progress, aligned, odds, plain
from offrecord.theory.problem import Problem

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
_COLUMNS: dict[str, Any] = {"value": "rain", "order": "time", "single_chain": True, "step": "1h"}


def run(
    folder: Path, *, force: bool, say: Callable[[str], Any], progress: Progress
) -> dict[str, Any]:
    """Fit the first half of the year, redact the second, and say what happened.

    folder: where all is written. say: is called with each part of the text. The figures come back.
    """
    model, released = folder / "model.json", folder / "released.csv"
    report = report_beside(released)
    key = folder / "key" / "key.json"  # a real one lives in the user's data directory
    with folder_made(folder):
        _check(model, released, key, force=force)
        first, second = halves()
        say(
            f"Rain at JFK airport, hour by hour, 2013. {len(PRIVATE_HOURS)} hours between July and"
            " December are off the record.\n"
        )
        fitted = learned(first)
        fitted.save(model, force=force)
    say(
        f"1. fit learns from January to June ({fitted.records:,} records) which chains are"
        f" plausible: memory of {fitted.posterior.order} hours.\n"
    )
    release = _released(second, fitted, key, force=force, progress=progress)
    certificate, _ = release.write(released, force=force)
    report_of(release, certificate, released).write(report, force=force)
    say(f"2. redact releases the rest of July to December ({second.height:,} records):\n")
    say(release.summary.figures())
    say("\n3. What an attacker can infer about a private hour, as odds between rain and none:\n")
    say(_odds(release))
    say("\n4. One private hour (P), and what left around it (· is redacted):\n")
    say(_around(release.frame))
    say("\n5. The paper's mechanisms, if rain were known to follow a chain of order 1:\n")
    say(_paper(first))
    say(f"\nwritten: {plain(f'{model}, {released}')} and its certificate {certificate.name}")
    say(f"The release on one page, for a browser: {plain(str(report))}")
    written = {"model": model, "output": released, "certificate": certificate, "report": report}
    figures = {"fit": fitted.summary(), "redact": release.summary.to_dict()}
    return figures | {name: str(path) for name, path in written.items()}


def _check(model: Path, released: Path, key: Path, *, force: bool) -> None:
    check_outputs(released, None, key, force=force)
    for path in (model, report_beside(released)):
        check_writable(path, force=force)


def _released(
    table: pl.DataFrame, fitted: Fit, key: Path, *, force: bool, progress: Progress
) -> Release:
    return redact(
        table,
        private_list=pl.DataFrame({"time": PRIVATE_HOURS}),
        model=fitted,
        policy=shipped_policy(),
        epsilon=EPSILON,
        dataset=DATASET,
        key_file=key,
        accept=("another-release",) if force else (),
        progress=progress,
        **_COLUMNS,
    )


def halves() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The year: January to June, July to December."""
    with as_file(files("offrecord") / "demo" / "jfk_rain_2013.csv") as source:
        year = table_file(source).read()
    is_first = pl.col("time") < "2013-07-01"
    return year.filter(is_first), year.filter(~is_first)


def learned(reference: pl.DataFrame) -> Fit:
    """The fit to a half of the year, tested at the demo's ε."""
    return fit(reference, epsilons=(EPSILON,), **_COLUMNS)


def designed(fitted: Fit) -> TablePolicy:
    """The rules that policy.json holds: the owner's, for all settings of a single chain."""
    settings = [Setting(kind) for kind in SETTINGS]
    return design_table(mechanism_named("owner"), fitted.posterior, EPSILON, "run", settings)


def shipped_policy() -> TablePolicy:
    """The rules of `designed`, made beforehand: designing them takes a minute."""
    with as_file(files("offrecord") / "demo" / "policy.json") as path:
        return TablePolicy.from_dict(read_json(path))


def _odds(release: Release) -> str:
    # Bars of the odds after plain erasure and after the release, on a logarithmic scale.
    summary = release.summary
    shown = [("plain erasure", summary.erasure or 0.0), ("this release", summary.leakage)]
    rows = [[name, "█" * max(round(4 * it), 1), f"{odds(it)} to 1"] for name, it in shown]
    return aligned(rows)


def _around(released: pl.DataFrame) -> str:
    # The hours around the private one of 15 August, a character each.
    times = released["time"].to_list()
    at = times.index(PRIVATE_HOURS[3])
    cells = ["·" if cell is None else str(cell) for cell in released["rain"].to_list()]
    cells[at] = "P"
    begin, end = at - _SHOWN, at + _SHOWN
    return f"{times[begin]}  {''.join(cells[begin : end + 1])}  {times[end]}"


def _paper(reference: pl.DataFrame) -> str:
    # Windows, the paper's constant q and the best local mechanism around one hour: for dry hours
    # and for hours of rain, which records are redacted always, sometimes and never.
    chain = fit(reference, chain_order=1, epsilons=(EPSILON,), **_COLUMNS).chain
    problem = Problem(chain, n=2 * _SHOWN + 1, private=[_SHOWN + 1], epsilon=EPSILON)
    rows = [["mechanism", "regions around the private hour (P)", "expected redactions"]]
    rows += [_designed(problem, name) for name in ("window", "3r-constant", "best-local", "owner")]
    return (
        f"{aligned(rows)}\n"
        "L: always redacted, M: redacted for some values or sometimes, S: never.\n"
        "A chain of order 1 leaves out what the longer memory above counts with: real rain needs"
        " more."
    )


def _designed(problem: Problem, mechanism: str) -> list[str]:
    policy = design(problem, mechanism)
    return [mechanism, _regions(policy), f"{problem.n * (1 - policy.utility):.1f}"]


def _regions(policy: Policy) -> str:
    if not isinstance(policy, LocalPolicy):
        return "stops at a random distance on each side"
    return "".join("P" if one == "private" else one for one in policy.regions)
