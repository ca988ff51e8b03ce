"""The whole job on real data: rain at New York's JFK airport, hour by hour, in 2013 (README.md here
says where it is from).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from offrecord.errors import InputError
from offrecord.text import aligned

#: Hours of the second half of the year whose rain someone wants off the record, whatever it was:
#: chosen by the calendar. (Hours
#: chosen because it rained would be told by the choice itself, and `redact` warns of that.)
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


def run(
    folder: Path,
    *,
    force: bool,
    say: Callable[[str], Any],
    warn: Callable[[str], Any],
    progress: Callable[[list[Any]], Iterable[Any]],
) -> None:
    """Fit the first half of the year, redact the second, and say what happened."""
    import polars as pl

    import offrecord as off
    from offrecord.files import check_outputs, check_writable
    from offrecord.tables.formats import read_frame

    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output must be a folder, got the file {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    model_file, released_file = folder / "model.json", folder / "released.csv"
    check_writable(model_file, force=force)
    key_file = folder / "key" / "key.json"  # a real key lives in the user's data directory
    check_outputs(released_file, None, key_file, force=force)
    with as_file(files("offrecord") / "demo" / "jfk_rain_2013.csv") as source:
        year = read_frame(source)
    reference = year.filter(pl.col("time") < "2013-07-01")
    second = year.filter(pl.col("time") >= "2013-07-01")
    hours = pl.DataFrame({"time": PRIVATE_HOURS})
    columns: dict[str, Any] = {"value": "rain", "order": "time", "single_chain": True, "step": "1h"}

    say(f"Rain at JFK airport, hour by hour, 2013: {year.height:,} records, gaps and all.\n")
    say(
        f"1. fit: learn from January to June ({reference.height:,} records) how rain follows rain\n"
    )
    fitted = off.fit(reference, chain_order=2, **columns)
    fitted.model.save(model_file, force=force)
    say(str(fitted))
    say(
        f"\n2. redact: July to December ({second.height:,} records), {hours.height} hours off the"
        f" record, ε = {EPSILON:g}\n"
    )
    release = off.redact(
        second,
        private_list=hours,
        model=fitted.model,
        epsilon=EPSILON,
        dataset="offrecord demo: rain at JFK, July to December 2013",
        key_file=key_file,
        another_release=force,
        progress=progress,
        **columns,
    )
    for warning in release.summary.warnings:
        warn(warning)
    certificate, _ = release.write(released_file, force=force)
    say(release.summary.figures())
    say(f"\nwritten: {model_file}, {released_file} and its certificate {certificate.name}")
    say(
        "\nAround the first private hours, the rule that decided and what came of it (· is a"
        " redaction):\n"
    )
    say(_around(release.explain(), release.frame))


def _around(rule: Any, released: Any) -> str:
    """The rows about the first secret, those under the same rule together: rule and outcome side by
    side.
    """
    first = next(i for i, region in enumerate(rule["region"]) if region == "private")
    low = high = first
    while low > 0 and rule["region"][low] != "S":
        low -= 1
    while high < rule.height - 1 and rule["region"][high] != "S":
        high += 1
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
