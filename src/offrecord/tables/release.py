"""The main job: a table in, a table out in which no private record can be inferred beyond e^ε, and its certificate."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from offrecord import draws
from offrecord.certificate import certificate, certificate_bytes
from offrecord.chain import Floats
from offrecord.designs import Designs, Model
from offrecord.digits import rounded_model
from offrecord.errors import InputError
from offrecord.keys import Key, Ledger, default_key_file, ledger
from offrecord.mechanisms import Mechanism, mechanism_named
from offrecord.phased import PhasedChain, load_model, phase_count, phases_of
from offrecord.problem import PROTECT, budget
from offrecord.redaction import Integers
from offrecord.surroundings import MAX_MINUTES, Needs, designs_for, distinct
from offrecord.tables.chains import Arranged, Chains, Columns, Step, arrange
from offrecord.tables.erasure import erasure_leakage
from offrecord.tables.formats import format_of
from offrecord.tables.frames import Native, from_native, to_native
from offrecord.tables.possible import check_possible
from offrecord.tables.reference import fit_arranged
from offrecord.tables.secrets import Private, Secrets, private_records, secrets_of
from offrecord.tables.stamping import InnerStep, Stamping, windows_release
from offrecord.tables.summary import Summary
from offrecord.tables.writing import printable, released_values, without_hidden, write_release
from offrecord.text import many

if TYPE_CHECKING:
    import polars as pl

    from offrecord.fitting import Fit

_BLOCK = 1 << 18  # rows that are decided at a time: few enough to stay in the processor's cache
REGIONS = ("S", "M", "L", "private")


@dataclass(frozen=True, eq=False)
class Release:
    """A released table.

    frame: of the kind that came in; None after a dry run, or as long as the ledger does not know the release. certificate:
    names no output until it is written.
    """

    frame: Any
    certificate: dict[str, Any]
    summary: Summary
    fit: Fit | None
    _table: pl.DataFrame | None = field(repr=False)
    _columns: Columns = field(repr=False)
    _explain: Callable[[], pl.DataFrame] = field(repr=False)
    _remember: Callable[[], None] = field(repr=False)
    _key_file: Path = field(repr=False)

    def write(self, path: str | Path, *, format: str | None = None, force: bool = False) -> tuple[Path, list[str]]:
        """Write the table and, beside it, its certificate: the certificate's path, and warnings. Complete or absent."""
        path = Path(path)
        kind = format_of(path, format)
        if self._key_file.resolve().parent == path.resolve().parent:
            raise InputError(f"the key {self._key_file} must not lie beside the output; give --key-file in another folder")
        if self._table is None:
            raise InputError("a dry run has nothing to write")
        columns = self._table.columns

        def content(digest: str) -> bytes:
            output = {"format": kind, "sha256": digest, "rows": self.summary.rows, "columns": columns}
            return certificate_bytes(self.certificate, output)

        return write_release(self._table, self._columns, path, kind, content, self._remember, force=force)

    def explain(self) -> pl.DataFrame:
        """For each row its region and the redaction probability of every value: the rule, never what was drawn."""
        return self._explain()


def redact(
    frame: Native,
    *,
    value: str,
    order: str,
    epsilon: float,
    dataset: str,
    by: str | Sequence[str] | None = None,
    single_chain: bool = False,
    private: str | None = None,
    private_list: Native | None = None,
    model: Model | str | Path | None = None,
    fit: bool = False,
    chain_order: int = 1,
    phase: str | None = None,
    step: str | int | None = None,
    keep: str | Sequence[str] | None = None,
    mechanism: Mechanism | str = "best-local",
    protect: str = "run",
    key_file: str | Path | None = None,
    designs: str | Path | None = None,
    design_minutes: float = MAX_MINUTES,
    allow_none: bool = False,
    another_release: bool = False,
    publish_positions: bool = False,
    dry_run: bool = False,
    remember: bool = True,
    progress: Callable[[list[Any]], Iterable[Any]] = list,
) -> Release:
    """Redact a table so that no private record can be inferred beyond a likelihood ratio of e^epsilon.

    frame: any frame narwhals knows; the released one is of the same kind. value, order ("row": as rows stand), by: columns; a
    table without by needs single_chain=True. private: a boolean column; private_list: a frame of (by, order) keys. model: a
    chain, or a model file; fit=True learns one from the chains without a private record. step: "1h" or 1, so that missing steps
    count as records already redacted. dataset: names the data; the same for a re-release, another for other data. key_file:
    the secret behind the coins, made on first use. designs: a file to take designs from and keep them in. dry_run: design and
    report what to expect, without a look at the values. remember: enter the release into the ledger at once; if not, that
    happens when it is written, and until then there is no frame.

    Raises InputError for wrong input, and for a second, different release under one name unless another_release is set.
    """
    started = time.monotonic()
    printable("dataset", dataset)
    chosen = mechanism_named(mechanism) if isinstance(mechanism, str) else mechanism
    epsilon = budget(epsilon)
    columns = Columns.named(value, order, by, single_chain, keep)
    steps = None if step is None else Step.parsed(step)
    if protect not in PROTECT:
        raise InputError(f'protect must be "run" or "each", got {protect!r}')
    if (private is None) == (private_list is None):
        raise InputError("give either --private (a column) or --private-list (keys), one of them")
    if (model is None) != fit:
        raise InputError("give either --model or --fit (model or fit=True)")
    if not fit and (chain_order != 1 or phase is not None):
        raise InputError("--chain-order and --phase are for --fit; a model says its own")
    if phase is not None:
        phase_count(phase)
    if not (isinstance(design_minutes, (int, float)) and design_minutes >= 0):
        raise InputError(f"--design-minutes must be a number of at least 0, got {design_minutes}")
    table = from_native(frame)
    given = load_model(model) if isinstance(model, (str, Path)) else model
    chain = None if given is None else rounded_model(given)
    if private is not None and private in columns.released:
        raise InputError(f"the private column {private!r} cannot be released too")
    arranged = arrange(table, columns, labels=None if chain is None else chain.labels, private=private, step=steps)
    del table
    hidden = private_records(arranged, None if private_list is None else from_native(private_list), steps)
    if hidden.count == 0 and not allow_none:
        raise InputError("no record is private; if that is right, add --allow-none (allow_none=True)")
    fitted = None
    if chain is None:
        arranged, fitted = fit_arranged(arranged, hidden.chain, chain_order, phase, named=True)
        chain = fitted.model
    phases = _phases(chain, arranged)
    check_possible(chain, arranged.chains, phases)
    secrets = secrets_of(arranged.chains, hidden, protect)
    warnings = [*arranged.warnings]
    if chain is not given and given is not None:
        warnings.append("the model was rounded to four digits, as it is published; the guarantee is about the rounded one")
    key = _key(key_file)
    made, which = _designs(chain, epsilon, chosen, protect, arranged, secrets, steps, designs, design_minutes, key, progress)
    if columns.keep:
        warnings.append(f"kept columns are released as they are, the guarantee does not cover them: {', '.join(columns.keep)}")
    if columns.order is None:
        warnings.append("coins go by row number: a row inserted later changes the draws of those after it")
    release: dict[str, Any] = {}
    private_entry: dict[str, Any] = {"count": hidden.count}
    out = None

    def enter() -> None:
        """A dry run is no release."""

    if dry_run:
        regions, released = _expected(arranged, hidden, secrets, which, made, _masses(chain, arranged, phases))
    else:
        if not key.file.exists():
            warnings.append(
                f"made a new key, {key.file} (id {key.id}): keep it secret, and keep it: "
                "a re-release with another key is a second look at the data"
            )
        drawer = _Drawer(draws.Coins(key.secret, dataset, columns.value), arranged)
        gone, regions, released = _decide(arranged, hidden, secrets, which, Stamping(made), drawer)
        decided = _decided(arranged, hidden, secrets, which, made, drawer, steps, columns)
        private_entry["digest"] = decided["private list"]
        if publish_positions:
            private_entry["positions"] = _positions(arranged, hidden, steps)
        release = _look_up(key, dataset, decided, another_release, warnings)
        out = _table(arranged, gone)

        def enter() -> None:
            """Enter the release into the ledger, and keep the key, before anyone sees it."""
            if not key.file.exists():
                key.save()
            with ledger(key) as book:
                _refuse(book, dataset, decided, another_release)
                book.add(dataset, decided)

    counts = {
        "rows": len(arranged.chains.codes),
        "chains": arranged.chains.count,
        "missing": int((arranged.chains.codes < 0).sum()),
        "private": hidden.count,
        "secrets": secrets.count,
    }
    valued = max(counts["rows"] - counts["missing"], 1)
    summary = Summary(
        dataset=dataset,
        epsilon=epsilon,
        mechanism=chosen.name,
        **counts,
        touched=len(distinct(secrets.chain)[0]) if secrets.count else 0,
        redacted=counts["rows"] - counts["missing"] - round(released),
        released=released / valued,
        window=windows_release(made, arranged.chains, secrets, which) / valued,
        leakage=max((design.leakage for design in made.designs), default=0.0),
        exact=chain.order == 1,
        erasure=erasure_leakage(chain, secrets, arranged.chains),
        regions=regions,
        designs=len(made.designs),
        loss=made.loss,
        seconds=round(time.monotonic() - started, 3),
        warnings=tuple(warnings),
    )
    content = certificate(
        designs=made,
        counts=counts,
        columns={
            "value": columns.value,
            "order": columns.order or "row",
            "by": list(columns.by),
            "keep": list(columns.keep),
            "step": None if steps is None else steps.text,
            "order_kind": "time" if arranged.chains.timed else "integer",
        },
        dataset=dataset,
        key_id="none: dry run" if dry_run else key.id,
        private=private_entry,
        release=release,
        kept=bool(columns.keep),
        exact=chain.order == 1,
    )
    native = to_native(out, frame, columns.value) if out is not None and remember else None
    if remember:
        enter()
    return Release(
        native,
        content,
        summary,
        fitted,
        out,
        columns,
        lambda: _explained(arranged, hidden, secrets, which, made),
        enter,
        key.file,
    )


def _key(key_file: str | Path | None) -> Key:
    """The key; a new one, not yet written, where there is none."""
    file = default_key_file() if key_file is None else Path(key_file)
    return Key.load(file) if file.exists() else Key(token_bytes(draws.KEY_BYTES), file)


# ---- designs


def _phases(model: Model, arranged: Arranged) -> NDArray[np.int8] | None:
    """The phase of each record, for a model that has them."""
    if not isinstance(model, PhasedChain):
        return None
    if not arranged.chains.timed:
        raise InputError(f"the model has a kernel for each {model.phase}, so the order column must hold times")
    return phases_of(arranged.chains.order.astype(np.int64), model.phase, model.zone)


def _designs(
    model: Model,
    epsilon: float,
    mechanism: Mechanism,
    protect: str,
    arranged: Arranged,
    secrets: Secrets,
    step: Step | None,
    file: str | Path | None,
    minutes: float,
    key: Key,
    progress: Callable[[list[Any]], Iterable[Any]],
) -> tuple[Designs, Integers]:
    left, right = secrets.rooms(arranged.chains)
    length = secrets.last - secrets.first + 1
    needs = Needs(left, right, length, _context(model, arranged, secrets, step))
    known = None
    if file is not None and Path(file).exists():
        known = Designs.load(file, model, epsilon, mechanism.name, protect, key.secret)
    made, which = designs_for(model, epsilon, mechanism, protect, needs, known=known, progress=progress, max_minutes=minutes)
    if file is not None and (known is None or not known.sealed or len(made.merged(known).designs) > len(known.designs)):
        made.merged(known).save(file, key.secret)
    return made, which


def _context(model: Model, arranged: Arranged, secrets: Secrets, step: Step | None) -> Callable[[int, int], Integers] | None:
    """For a model with phases: those of the first records of a secret's chain, missing ones included."""
    if not isinstance(model, PhasedChain):
        return None
    chains = arranged.chains

    def along(secret: int, count: int) -> Integers:
        begin, end = chains.starts[secrets.chain[secret]], chains.starts[secrets.chain[secret] + 1]
        if step is None:
            times = chains.order[begin : min(begin + count, end)]
        else:
            times = chains.order[begin] + step.size * np.arange(count)
        return phases_of(times.astype(np.int64), model.phase, model.zone).astype(np.int64)

    return along


# ---- deciding


class _Drawer:
    """Draws of rows: the tags of chains are computed once, and only of chains that need them."""

    def __init__(self, coins: draws.Coins, arranged: Arranged) -> None:
        self.coins, self.arranged = coins, arranged
        self.kind = draws.TIME if arranged.chains.timed else draws.INTEGER
        self.numbers: Integers = np.empty(0, dtype=np.int64)
        self.tags: draws.ChainTags = np.empty((0, 2), dtype=np.uint64)

    def prepare(self, chains: Integers) -> None:
        """Compute the tags of these chains, sorted."""
        self.numbers = chains
        self.tags = self.coins.chain_tags(draws.joined(self.arranged.chain_values(chains), len(chains)))

    def tags_of(self, chains: Integers) -> draws.ChainTags:
        """(r, 2) the tags of some of the prepared chains."""
        return self.tags[np.searchsorted(self.numbers, chains)]

    def drawn(self, rows: Integers) -> draws.Draws:
        """The draw of each row."""
        chains = self.arranged.chains
        of = np.searchsorted(chains.starts, rows, side="right") - 1
        return self.coins.draw(self.tags_of(of), chains.order[rows], self.kind)


def _decide(
    arranged: Arranged, hidden: Private, secrets: Secrets, which: Integers, step: InnerStep, drawer: _Drawer
) -> tuple[NDArray[np.bool_], dict[str, int], int]:
    """Decide block by block of whole chains: which rows leave empty, rows by region, and how many records leave."""
    chains = arranged.chains
    drawer.prepare(secrets.chain[np.diff(secrets.chain, prepend=-1) > 0])  # sorted: each chain once
    gone = np.zeros(len(chains.codes), dtype=bool)
    counts = np.zeros(3, dtype=np.int64)
    released = 0
    for rows, mine in blocks(chains, secrets):
        decision = step.decide(chains, secrets.part(mine.start, mine.stop), which[mine], rows, drawer.drawn)
        gone[rows] = decision.redacted
        released += int((~decision.redacted if chains.whole else ~decision.redacted & (chains.codes[rows] >= 0)).sum())
        counts += np.bincount(decision.regions, minlength=3)
    return gone, _regions(counts, len(hidden.rows(chains))), released


def _expected(
    arranged: Arranged, hidden: Private, secrets: Secrets, which: Integers, designs: Designs, masses: Floats
) -> tuple[dict[str, int], float]:
    """What a release is expected to show: rows by region, and how many records leave, by the model and not by the values."""
    stamping, chains = Stamping(designs), arranged.chains
    counts = np.zeros(3, dtype=np.int64)
    released = 0.0
    for rows, mine in blocks(chains, secrets):
        rule = stamping.probabilities(chains, secrets.part(mine.start, mine.stop), which[mine], rows)
        weights = masses if masses.ndim == 1 else masses[rows]
        released += float((1.0 - (rule * weights).sum(axis=1))[chains.codes[rows] >= 0].sum())
        counts += np.bincount(_region(rule), minlength=3)
    return _regions(counts, len(hidden.rows(chains))), released


def _masses(model: Model, arranged: Arranged, phases: NDArray[np.int8] | None) -> Floats:
    """How likely each value of a record is: (k,) for all records, or (n, k)."""
    if isinstance(model, PhasedChain):
        assert phases is not None
        return model.start[phases]
    if model.stationary:
        return model.marginal(1)
    places = arranged.chains.places
    return np.asarray(model.marginals(1, int(places.max()) + 1)[places])


def _region(rule: Floats) -> NDArray[np.int8]:
    """(n,) 2, 1, 0 for L, M and S: all values always redacted, some at times, none ever."""
    return np.where(np.all(rule == 1, axis=1), 2, np.any(rule > 0, axis=1)).astype(np.int8)


def _regions(counts: Integers, private: int) -> dict[str, int]:
    """Rows by region; private ones, which are always redacted, named apart."""
    regions = dict(zip(REGIONS, (*counts.tolist(), private), strict=True))
    regions["L"] -= private
    return regions


def blocks(chains: Chains, secrets: Secrets) -> Iterable[tuple[slice, slice]]:
    """Stretches of whole chains of about so many rows, and the secrets in each."""
    begin = 0
    while begin < chains.count:
        end = int(np.searchsorted(chains.starts, chains.starts[begin] + _BLOCK, side="right")) - 1
        end = min(max(end, begin + 1), chains.count)
        mine = np.searchsorted(secrets.chain, (begin, end))
        yield slice(int(chains.starts[begin]), int(chains.starts[end])), slice(int(mine[0]), int(mine[1]))
        begin = end


def _table(arranged: Arranged, gone: NDArray[np.bool_]) -> pl.DataFrame:
    columns, chains = arranged.columns, arranged.chains
    empty = gone | (chains.codes < 0)
    values = released_values(columns.value, chains.codes, empty, arranged.labels, arranged.value_type)
    frame = arranged.frame.with_columns(values) if arranged.frame.width else values.to_frame()
    return without_hidden(frame.select(columns.released), columns.keep)


def _explained(arranged: Arranged, hidden: Private, secrets: Secrets, which: Integers, designs: Designs) -> pl.DataFrame:
    import polars as pl

    stamping, chains = Stamping(designs), arranged.chains
    parts, regions = [], []
    secret = np.zeros(len(chains.codes), dtype=bool)
    secret[hidden.rows(chains)] = True
    for rows, mine in blocks(chains, secrets):
        rule = stamping.probabilities(chains, secrets.part(mine.start, mine.stop), which[mine], rows)
        parts.append(rule)
        regions.append(np.where(secret[rows], 3, _region(rule)))
    names = arranged.columns.released[: len(arranged.columns.released) - 1 - len(arranged.columns.keep)]
    frame = arranged.frame.select(names) if names else pl.DataFrame()
    whole = np.concatenate(parts)
    taken = "region" in names
    added = [pl.Series("region of the record" if taken else "region", np.array(REGIONS)[np.concatenate(regions)])]
    added += [pl.Series(f"Pr(redacted | {label})", whole[:, i]) for i, label in enumerate(arranged.labels)]
    return frame.with_columns(added) if names else pl.DataFrame(added)


# ---- what decided the release


def _orders(arranged: Arranged, chain: Integers, place: Integers, step: Step | None) -> Integers:
    """The order values of places in chains, gaps included."""
    chains = arranged.chains
    begin = chains.starts[chain]
    if step is None:
        return np.asarray(chains.order[begin + place].astype(np.int64))
    return np.asarray(chains.order[begin].astype(np.int64) + step.size * place)


def _decided(
    arranged: Arranged,
    hidden: Private,
    secrets: Secrets,
    which: Integers,
    designs: Designs,
    drawer: _Drawer,
    step: Step | None,
    columns: Columns,
) -> dict[str, str]:
    """Digests of what decided a release; of sets of records, whatever their order, and for the key's owner alone."""

    def records(chain: Integers, place: Integers, groups: Integers, count: int) -> list[str]:
        order = _orders(arranged, chain, place, step)
        digests = drawer.coins.set_digests(drawer.tags_of(chain), order, drawer.kind, groups, count)
        sizes = np.bincount(groups, minlength=count)
        return [f"{digest.hex()}:{size}" for digest, size in zip(digests, sizes, strict=True)]

    placed = hashlib.sha256(designs.digest.encode())
    for mine in records(secrets.chain, secrets.first, which, len(designs.designs)):
        placed.update(mine.encode())
    kinds = [str(arranged.names[name].dtype.is_integer()) for name in columns.by]
    shape = [
        columns.value,
        columns.order,
        columns.by,
        columns.keep,
        None if step is None else step.text,
        kinds,
        arranged.chains.timed,
    ]
    return {
        "private list": records(hidden.chain, hidden.place, np.zeros(hidden.count, dtype=np.int64), 1)[0],
        "model": hashlib.sha256(json.dumps(designs.model.to_dict()).encode()).hexdigest(),
        "epsilon": repr(designs.epsilon),
        "mechanism": f"{designs.mechanism}, {designs.protect}",
        "choice of columns": hashlib.sha256(json.dumps(shape).encode()).hexdigest(),
        "set of designs": placed.hexdigest(),
    }


def _look_up(key: Key, dataset: str, decided: dict[str, str], another: bool, warnings: list[str]) -> dict[str, Any]:
    """Look the data set up in the ledger; what the certificate says of other releases."""
    book = Ledger.read(key)
    _refuse(book, dataset, decided, another)
    others = book.others(dataset, decided)
    if others and another:
        had = many(others, "other release")
        warnings.append(f"data set {dataset!r} has had {had}; together they may leak more than this one's ε")
    return {"other_releases": others, "composed": others == 0}


def _refuse(book: Ledger, dataset: str, decided: dict[str, str], another: bool) -> None:
    """InputError for a second, different release."""
    differences = book.differences(dataset, decided)
    if differences and not another:
        raise InputError(
            f"data set {dataset!r} was released before with another {' and another '.join(differences)};"
            " a second look at the same records adds to what the first gave away."
            " Name other data with another --dataset, or add --another-release"
        )


def _positions(arranged: Arranged, hidden: Private, step: Step | None) -> dict[str, Any]:
    from offrecord.certificate import positions

    columns, chains = arranged.columns, arranged.chains
    order = _orders(arranged, hidden.chain, hidden.place, step).tolist()
    names = arranged.names[chains.starts[hidden.chain]] if columns.by else None
    by = [[] for _ in order] if names is None else [[_plain(cell) for cell in row] for row in names.iter_rows()]
    return positions(columns.by, columns.order or "row", [[*row, value] for row, value in zip(by, order, strict=True)])


def _plain(cell: Any) -> Any:
    return cell if isinstance(cell, (str, int, bool)) else cell.isoformat()
