"""The tables of owner.md, made by the code: `python docs/owner.py FOLDER`, FOLDER with the tables
of real records that it names, none of which comes with the project.

Without FOLDER only the tables about models are made. Everything is seeded, and no value is looked
at but to learn a model: what is released is expected, by positions.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

import offrecord as off
from offrecord.theory.central import least_redactions, redactions_bound

MECHANISMS = ("window", "best-local", "owner")
EPSILONS = (0.5, 1.0, 2.0)
SHARES = (0.002, 0.01, 0.05)
#: α, β, ε of the tables of eight records.
SMALL = (
    (0.1, 0.3, 1.0),
    (0.05, 0.1, 1.5),
    (0.3, 0.4, 0.5),
    (0.05, 0.1, 0.5),
    (0.2, 0.9, 0.5),
    (0.01, 0.8, 0.3),
    (0.021, 0.295, 1.0),
    (0.244, 0.327, 1.0),
    (0.6, 0.8, 1.0),
    (0.01, 0.8, 1.0),
)


@dataclass(frozen=True)
class Table:
    """Records of one file: which of them, and what names their chains."""

    name: str
    file: str
    by: tuple[str, ...] = ("seq_id", "segment")
    only: pl.Expr | None = None
    slow: tuple[str, ...] = ()  # mechanisms whose designs would take hours
    set_serves: bool = True  # something can be proven for its set of models

    def read(self, folder: Path) -> pl.DataFrame:
        """Chains, positions and values."""
        frame = pl.read_parquet(folder / self.file)
        frame = frame if self.only is None else frame.filter(self.only)
        return frame.select(*self.by, "t", "state").with_columns(pl.col("t").cast(pl.Int64))


TABLES = (
    Table("flights, late", "nyc_flights.parquet"),
    Table("rain by day", "seattle_newyork_rain.parquet"),
    Table("rain by day, 3 values", "alofi_rain.parquet"),
    Table("rain by hour", "nyc_hourly_rain.parquet"),
    Table("occupancy by minute", "occupancy.parquet"),
    Table("bicycles, Palo Alto, 5", "bikeshare14.parquet", only=pl.col("city") == "Palo Alto"),
    Table("pages, 17", "msnbc.parquet", ("seq_id",), pl.col("seq_id") < 100_000, set_serves=False),
    Table(
        "activities by minute, 11", "adl_minutes.parquet", slow=("best-local",), set_serves=False
    ),
)


def learned(frame: pl.DataFrame, table: Table) -> off.MarkovChain:
    """The chain of order 1 with its set of models."""
    found = off.fit(
        frame, value="state", order="t", by=list(table.by), step=1, chain_order=1, no_audit=True
    )
    return found.model


def released(frame, table, model, epsilon, share, mechanism, exact, designs=None) -> float:
    """The expected share of the records that are not private to be released.

    designs: a file to keep what one share of private records leaves for the next.
    """
    rng = np.random.default_rng(13)
    private = pl.Series(rng.random(len(frame)) < share)
    release = off.redact(
        frame.with_columns(private=private),
        value="state",
        order="t",
        by=list(table.by),
        step=1,
        private="private",
        model=model,
        exact_model=exact,
        accept_model=True,
        epsilon=epsilon,
        dataset="owner.md",
        mechanism=mechanism,
        designs=designs,
        dry_run=True,
    )
    return release.summary.released / (1 - private.mean())


def row(*cells) -> None:
    """Print one row of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*cells) -> None:
    """Print a table's head."""
    print()
    row(*cells)
    row(*["---"] * len(cells))


def real_tables(folder: Path, epsilons, exact: bool) -> None:
    """Shares released, for all three mechanisms."""
    columns = [f"{name}, {100 * share:g} %" for share in SHARES for name in MECHANISMS]
    head("table", "ε", *columns)
    for table in TABLES:
        if not (exact or table.set_serves):
            continue
        frame = table.read(folder)
        model = learned(frame, table)
        for epsilon in epsilons:
            with TemporaryDirectory() as kept_in:
                cells = [
                    shown(frame, table, model, epsilon, share, mechanism, exact, Path(kept_in))
                    for share in SHARES
                    for mechanism in MECHANISMS
                ]
            row(table.name, f"{epsilon:g}", *cells)


def shown(frame, table, model, epsilon, share, mechanism, exact, kept_in) -> str:
    """One cell, in per cent."""
    if mechanism in table.slow:
        return "–"
    designs = kept_in / f"{mechanism}.json"
    return f"{100 * released(frame, table, model, epsilon, share, mechanism, exact, designs):.1f}"


def redactions(problem, mechanism) -> float:
    """Expected redactions of one policy."""
    return problem.n * (1 - off.design(problem, mechanism).utility)


def eight_records() -> None:
    """Beside the least that any mechanism redacts."""
    head("α, β, ε", "private", *MECHANISMS, "any mechanism", "its bound (O2)", "× of the excess")
    for alpha, beta, epsilon in SMALL:
        for private in (1, 4):
            problem = off.Problem(off.MarkovChain.binary(alpha, beta), 8, private, epsilon)
            least = least_redactions(problem)
            mine = [redactions(problem, name) for name in MECHANISMS]
            excess = (mine[-1] - 1) / (least - 1)
            told = [f"{one:.4f}" for one in (*mine, least, redactions_bound(problem))]
            row(f"{alpha:g}, {beta:g}, {epsilon:g}", private, *told, f"{excess:.2f}")


def long_chains(folder: Path) -> None:
    """One private record in the middle of a long chain of each table's model."""
    names = ("window", "owner")
    head("model", "ε", *names, "no mechanism below", "seconds of owner")
    for table in TABLES:
        model = learned(table.read(folder), table).alone
        for epsilon in EPSILONS:
            problem = off.Problem(model, 4001, 2001, epsilon)
            began = time.perf_counter()
            told = [f"{redactions(problem, name):.2f}" for name in names]
            seconds = time.perf_counter() - began
            limit = redactions_bound(problem)
            row(table.name, f"{epsilon:g}", *told, f"{limit:.2f}", f"{seconds:.1f}")


def main() -> None:
    """Print them all."""
    eight_records()
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        long_chains(folder)
        real_tables(folder, EPSILONS, exact=True)
        real_tables(folder, (1.0,), exact=False)


if __name__ == "__main__":
    main()
