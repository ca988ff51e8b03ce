"""Small jobs whose results must not change: a change of code that changes one is no refactoring.

Every job has one known chain, and a table's private records stand alone, at least 60 records from
each other and from both ends of their chains, so that its decisions follow from one rule a side.
`python -m tests.golden.jobs --write` writes the digests of all results anew.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
from tests.table_files import read, write

import offrecord as off

CORPUS = Path(__file__).with_name("corpus.json")
Job = Callable[[Path], Any]
JOBS: dict[str, Job] = {}

LOCAL = ("quilt", "window", "3r-relaxed", "3r-convex", "3r-constant", "best-local")
PAPER = off.MarkovChain.binary(alpha=0.01, beta=0.8)  # Figs. 2 and 3
RAIN = off.MarkovChain.binary(alpha=0.1, beta=0.3)
THREE = [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.4, 0.5]]  # not reversible
FOUR = [[0.5, 0.3, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.2, 0.1, 0.5, 0.2], [0.3, 0.1, 0.2, 0.4]]
SECOND = [[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.3, 0.7]]]  # of order 2
PLACES = (66, 132)  # of private records, of 300 from 0


def digest(result: Any) -> str:
    text = json.dumps(result, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def gist(result: Any) -> str:
    """For people: what is easily seen to differ."""
    if isinstance(result, dict) and "redacted" in result:
        return f"{result['redacted'].count('1')} of {len(result['redacted'])} rows are empty"
    if isinstance(result, dict) and "utility" in result:
        return f"leakage {result['leakage']}, utility {result['utility']}"
    if isinstance(result, dict):
        return "; ".join(f"{name}: {gist(one)}" for name, one in result.items())
    return str(result) if len(str(result)) < 60 else f"{len(result)} results"


# ---- tables


def _path(chain: off.MarkovChain, n: int, seed: int) -> list[int]:
    """The values 0 … k − 1 of n records, the same on every machine."""
    draws = random.Random(seed)

    def drawn(row: Any) -> int:
        return int(np.searchsorted(np.cumsum(row)[:-1], draws.random(), side="right"))

    path = [int(one) for one in np.unravel_index(drawn(chain.start.ravel()), chain.start.shape)]
    while len(path) < n:
        path.append(drawn(chain.transition[tuple(path[-chain.order :])]))
    return path


def _table(
    chain: off.MarkovChain = RAIN, chains: Iterable[Any] = ("attic", "cellar"), n: int = 300
) -> pl.DataFrame:
    """Chains by `room`, records by `t`, values `x` as the chain's labels say, marks `private`."""
    rows = [
        (room, t, chain.labels[value], t in PLACES)
        for seed, room in enumerate(chains)
        for t, value in enumerate(_path(chain, n, seed))
    ]
    return pl.DataFrame(rows, schema=["room", "t", "x", "private"], orient="row")


def _key(folder: Path) -> Path:
    file = folder / "key" / "key.json"
    if not file.exists():
        file.parent.mkdir()
        content = {"format": "offrecord-key", "version": 1, "key": bytes(range(32)).hex()}
        file.write_text(json.dumps(content) + "\n")
        file.chmod(0o600)
    return file


def _options(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    usual = {"by": "room", "order": "t", "value": "x", "model": RAIN, "epsilon": 1.0}
    usual |= {"mechanism": "best-local", "dataset": "golden", "key_file": _key(folder)}
    usual |= {} if "private_list" in options else {"private": "private"}
    return {name: one for name, one in (usual | options).items() if one is not None}


def _redact(folder: Path, frame: Any, **options: Any) -> Any:
    return off.redact(frame, **_options(folder, options)).frame


def _rows(frame: pl.DataFrame, value: str = "x") -> dict[str, Any]:
    """Every cell of a released table, and which values are empty."""
    empty = frame[value].is_null().to_list()
    return {
        "columns": frame.columns,
        "rows": [list(map(_cell, row)) for row in frame.rows()],
        "redacted": "".join(str(int(one)) for one in empty),
    }


def _cell(cell: Any) -> Any:
    return cell.isoformat() if isinstance(cell, date) else cell  # a datetime is a date too


def _simple(name: str, frame: Callable[[], Any] = _table, **options: Any) -> None:
    """A job: a polars frame is redacted, with a few options."""
    value = options.get("value", "x")
    JOBS[f"table, {name}"] = lambda folder: _rows(_redact(folder, frame(), **options), value)


def _chain(transition: Any, *labels: Any, order: int = 1) -> off.MarkovChain:
    return off.MarkovChain(transition, labels=labels or None, order=order)


RAIN_ROWS = [[0.9, 0.1], [0.3, 0.7]]
WORDS = _chain(RAIN_ROWS, "dry", "wet")
TRUTHS = _chain(RAIN_ROWS, False, True)
LEVELS = _chain(THREE, 0.5, 1.0, 2.25)
SEVERAL = [f"house {i}" for i in range(10)]
LIST = pl.DataFrame({"room": ["attic", "cellar", "cellar"], "t": [70, 61, 135]})
LATE = pl.DataFrame({"room": ["attic"], "t": [230]})
RANGES = pl.DataFrame({"room": ["attic", "cellar"], "from": [80, 90], "to": [80, 90]})
WHOLE = pl.DataFrame({"room": ["cellar"]})

for _mechanism in LOCAL:
    _simple(_mechanism, mechanism=_mechanism)
for _mechanism in ("window", "3r-constant", "best-local"):
    _simple(f"coins of {_mechanism}", lambda: _table(PAPER, SEVERAL),
            mechanism=_mechanism, model=PAPER, epsilon=1.5)  # fmt: skip
    _simple(f"three values, {_mechanism}", lambda: _table(_chain(THREE), SEVERAL),
            mechanism=_mechanism, model=_chain(THREE))  # fmt: skip
for _epsilon in (1.2, 2.0):  # at which one shortest window is the only one
    _simple(f"order 2, {_epsilon}", lambda: _table(_chain(SECOND, order=2)),
            model=_chain(SECOND, order=2), mechanism="window", epsilon=_epsilon)  # fmt: skip
_simple("another name of the data", dataset="silver")
_simple("another column", lambda: _table().rename({"x": "y"}), value="y")
_simple("each", protect="each")
_simple("truth values", lambda: _table(TRUTHS), model=TRUTHS)
_simple("decimals", lambda: _table(LEVELS), model=LEVELS, mechanism="window")
_simple("a private list", private_list=LIST)
_simple("a list of ranges", private_list=RANGES, mechanism="3r-constant")
_simple("a list and marks", private="private", private_list=LATE)
_simple("a whole chain", private_list=WHOLE, keep_rows=True)
_simple("a whole chain dropped", private="private", private_list=WHOLE)


def _gaps() -> pl.DataFrame:
    """Rows are missing beside private records and far from them; one private record has no row."""
    missing = (64, 65, 68, 100, 101, 102, 134, 190)
    return _table().filter(~pl.col("t").is_in(missing), pl.col("t") != 230)


def _empty_cells() -> pl.DataFrame:
    """The same with rows whose values are missing."""
    return _table().with_columns(
        pl.when(~pl.col("t").is_in((64, 65, 68, 100, 131, 132))).then(pl.col("x"))
    )


_simple("missing rows", _gaps, step=1)
_simple("a private gap", _gaps, step=1, private="private", private_list=LATE)
_simple("missing values", _empty_cells, mechanism="3r-constant")


def _timed(times: Callable[[int], Any]) -> pl.DataFrame:
    return _table().with_columns(pl.Series("t", [times(t) for t in _table()["t"].to_list()]))


def _hours() -> pl.DataFrame:
    """Hour by hour in a zone, over the end of summer time."""
    begin = datetime(2025, 10, 20, tzinfo=ZoneInfo("UTC"))
    table = _timed(lambda t: begin + timedelta(hours=t))
    return table.with_columns(pl.col("t").dt.convert_time_zone("Europe/Berlin"))


_simple("times with a zone", _hours, step="1h")
_simple("days", lambda: _timed(lambda t: date(2025, 1, 1) + timedelta(days=t)), step="1d")
_simple("order of rows", lambda: _table().sort("t", maintain_order=True), order="row")
_simple("one chain", lambda: _table(chains=["a"]).drop("room"), by=None, single_chain=True)
_simple("unsorted", lambda: _table().sample(fraction=1.0, shuffle=True, seed=1))
_simple("several columns name chains", by=["even", "room"],
        frame=lambda: _table(chains=[2, 10, 1]).with_columns(even=pl.col("room") > 1))  # fmt: skip
_simple("kept columns", lambda: _table().with_row_index("row").with_columns(unit=pl.lit("mm")),
        keep=["row", "unit"])  # fmt: skip
_simple("all kept", lambda: _table().with_row_index("row"), keep="row", keep_all=True)


def _frames(folder: Path) -> Any:
    """Frames of other libraries: what comes back is of their kind."""
    pandas = _redact(folder, _table().to_pandas())
    arrow: Any = _redact(folder, _table(WORDS).to_arrow(), model=WORDS, dataset="words")
    released: Any = pl.from_arrow(arrow)
    return {"pandas": _rows(pl.from_pandas(pandas)), "pyarrow": _rows(released)}


def _growing(folder: Path) -> Any:
    """Released twice, the second time with more rows and one more private record."""
    found = {}
    for n in (260, 330):
        table = _table(n=330).with_columns(private=pl.col("t").is_in((66, 132, 270)))
        table = table.filter(pl.col("t") < n)
        options = {"growing": True, "lag": 40, "step": 1, "mechanism": "3r-constant"}
        found[f"{n} records"] = _rows(_redact(folder, table, **options))
    return found


def _alphabets(folder: Path) -> Any:
    """Values that are declared, cut or merged: what leaves of chains without a private record."""
    table = _table(_chain(THREE), range(9), n=100)
    table = table.with_columns(private=pl.col("private") & (pl.col("room") == 8))
    rare = pl.when(pl.col("t") != 7).then(pl.col("x")).otherwise(pl.col("room") + 10)
    options = {"model": None, "fit": True, "chain_order": 1, "mechanism": "window"}
    found = {}
    for name, one in {"values": [0, 1, 2], "bins": [0.5, 1.5], "merge": "rare"}.items():
        given = table.with_columns(x=rare) if name == "merge" else table
        released = _redact(folder, given, **options, dataset=name, **{name: one})
        found[name] = _rows(released.filter(pl.col("room") < 8))
    return found


JOBS["table, frames of other libraries"] = _frames
JOBS["table, growing"] = _growing
JOBS["table, which values there are"] = _alphabets


# ---- files


def _read(file: Path) -> pl.DataFrame:
    """Cells of CSV as their text."""
    return pl.read_csv(file, infer_schema=False) if ".csv" in file.name else read(file)


def _files(ending: str, written: str, chain: off.MarkovChain) -> Job:
    """A table file is redacted part by part."""

    def work(folder: Path) -> Any:
        table = write(_table(chain), folder / f"table{ending}")
        output = folder / f"released{written}"
        off.redact_file(table, output, **_options(folder, {"model": chain}))
        return _rows(_read(output))

    return work


for _ending, _written, _labelled in (
    (".csv", ".csv", RAIN),
    (".csv.gz", ".ndjson", WORDS),
    (".ndjson", ".csv.gz", TRUTHS),
    (".ndjson", ".parquet", RAIN),
    (".parquet", ".arrow", WORDS),
    (".arrow", ".parquet", LEVELS),
):
    JOBS[f"file, {_ending} to {_written}"] = _files(_ending, _written, _labelled)


def _engines(folder: Path) -> Any:
    """Many chains, part by part and at once."""
    table, output = _table(PAPER, SEVERAL), folder / "released.parquet"
    options = _options(folder, {"model": PAPER})
    off.redact_file(write(table, folder / "table.parquet"), output, **options)
    released = _rows(_read(output))
    assert released == _rows(off.redact(table, **options).frame)
    return released


JOBS["file, streamed and at once"] = _engines


# ---- problems


def _rounded(number: Any, digits: int = 9) -> Any:
    if isinstance(number, np.ndarray):
        return [_rounded(one, digits) for one in number.tolist()]
    if isinstance(number, list):
        return [_rounded(one, digits) for one in number]
    return str(number) if np.isinf(number) else round(float(number), digits) + 0.0


def _policy(problem: off.Problem, mechanism: Any, digits: int = 9) -> Any:
    policy = off.design(problem, mechanism)
    named = {"redaction": policy.redaction, "leakage": policy.leakage, "utility": policy.utility}
    return {name: _rounded(one, digits) for name, one in named.items()}


def _policies(
    name: str, chain: off.MarkovChain, n: int, private: Any, epsilon: float, **options: Any
) -> None:
    """A job: a problem, and what some mechanisms make of it."""
    mechanisms, digits = options.pop("mechanisms", LOCAL), options.pop("digits", 9)

    def work(folder: Path) -> Any:
        problem = off.Problem(chain, n, private, epsilon, **options)
        return {str(one): _policy(problem, one, digits) for one in mechanisms}

    JOBS[f"problem, {name}"] = work


def _figure_2(mechanism: str) -> Job:
    budgets = (0.1, 0.5, 1.0, 1.5, 2.0, 3.0)
    return lambda folder: {
        str(one): _policy(off.Problem(PAPER, 10, [1], one), mechanism) for one in budgets
    }


def _figure_3(folder: Path) -> Any:
    """Regions and influences."""
    records = range(2, 11)
    return [
        list(off.regions(PAPER, 1, records, 1.0)),
        [off.delta_star(PAPER, epsilon, 100) for epsilon in (0.1, 0.5, 1.0, 3.0)],
        _rounded(off.influence_by_distance(PAPER, 1, 9)),
        _rounded(off.pointwise_influence(PAPER, 1, records)),
    ]


for _mechanism in LOCAL:
    JOBS[f"problem, Fig. 2, {_mechanism}"] = _figure_2(_mechanism)
JOBS["problem, Fig. 3"] = _figure_3

TURNS = off.MarkovChain.binary(alpha=0.6, beta=0.8)  # alpha + beta > 1
KERNELS = [[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]], [[0.8, 0.2], [0.5, 0.5]]] * 5
STEPS = off.MarkovChain(KERNELS, start=[0.7, 0.3])  # 16 records
BEGUN = off.MarkovChain(THREE, start=[0.2, 0.5, 0.3])
ZEROS = off.MarkovChain([[0.95, 0.05, 0.0], [0.1, 0.8, 0.1], [0.0, 0.08, 0.92]])
EVERY = ("window", "3r-relaxed", "3r-convex", "3r-constant")  # take every chain
SPLITS = [off.ThreeRegion(tuning="constant", split=one) for one in ("even", "best", 0.3)]

_policies("both sides", off.MarkovChain.binary(0.05, 0.2), 40, [20], 1.0)
_policies("near an end", off.MarkovChain.binary(0.061, 0.15), 12, [6], 1.788, mechanisms=LOCAL[:5])
_policies("near an end, best", off.MarkovChain.binary(0.061, 0.15), 12, [6], 1.788,
          mechanisms=LOCAL[5:], digits=6)  # fmt: skip
_policies("splits", off.MarkovChain.binary(0.061, 0.15), 12, [6], 1.788, mechanisms=SPLITS)
_policies("a budget of 0", RAIN, 8, [4], 0.0, mechanisms=LOCAL[:2])
_policies("values take turns", TURNS, 20, [9], 0.5, mechanisms=LOCAL[:5])
_policies("three values", _chain(THREE), 20, [9], 1.0, mechanisms=EVERY)
_policies("three values, best", _chain(THREE), 20, [9], 1.0, mechanisms=LOCAL[5:], digits=6)
_policies("four values", _chain(FOUR), 20, [9], 0.7, mechanisms=EVERY)
_policies("impossible steps", ZEROS, 60, [30], 1.0, mechanisms=EVERY)
_policies("a kernel for each step", STEPS, 16, [6], 1.0, mechanisms=EVERY)
_policies("a start of its own", BEGUN, 20, [3], 1.0, mechanisms=EVERY)
_policies("a private run", RAIN, 40, [20, 21, 22], 1.0, mechanisms=LOCAL[:5])
_policies("several records", RAIN, 40, [8, 9, 30], 1.0, mechanisms=LOCAL[:5], protect="each")
for _epsilon in (1.2, 2.0):
    _policies(f"order 2, {_epsilon}", _chain(SECOND, order=2), 40, [20], _epsilon,
              mechanisms=["window"])  # fmt: skip


def _leakages(folder: Path) -> Any:
    """Exact leakage of redactions that no mechanism made."""
    found = []
    for seed, chain in enumerate([RAIN, TURNS, PAPER, STEPS, BEGUN, ZEROS, _chain(FOUR)]):
        draws = random.Random(seed)
        for private in ([5], [1, 9], [6, 7, 8]):
            chances = [[draws.choice((0.0, draws.random(), 1.0)) for _ in range(chain.k)]
                       for _ in range(16)]  # fmt: skip
            for p in private:
                chances[p - 1] = [1.0] * chain.k
            for protect in ("run", "each"):
                problem = off.Problem(chain, 16, private, 1.0, protect)
                found.append(_rounded(off.leakage(problem, np.array(chances))))
    return found


def _outcomes(folder: Path) -> Any:
    """Every release of one sequence of values, and its probability."""
    problem = off.Problem(PAPER, 6, [3], 1.0)
    outcomes = off.design(problem, "3r-constant").outcomes([0, 1, 0, 0, 1, 0])
    return sorted([mask.tolist(), _rounded(chance)] for mask, chance in outcomes)


JOBS["problem, leakages"] = _leakages
JOBS["problem, outcomes"] = _outcomes


def results(job: Job) -> Any:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", off.OffrecordWarning)
        return job(Path(folder))


def entry(result: Any) -> dict[str, str]:
    """What the corpus says about a result."""
    return {"sha256": digest(result), "gist": gist(result)}


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("python -m tests.golden.jobs --write: write the digests of all jobs anew")
    os.environ["OFFRECORD_PROCESSES"] = "1"
    corpus = {name: entry(results(job)) for name, job in JOBS.items()}
    CORPUS.write_text(json.dumps(corpus, indent=1) + "\n")
