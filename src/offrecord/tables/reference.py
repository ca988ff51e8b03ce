"""Learn the model of a table from its reference records: chains without a private record, or
records far from every one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from offrecord.errors import InputError, advise
from offrecord.files import check_path
from offrecord.models import clock
from offrecord.models.base import Integers, Mask
from offrecord.models.file import Origin
from offrecord.models.members import PLACE_COUNTS, Places
from offrecord.models.records import Chains
from offrecord.release.keys import Key
from offrecord.tables.alphabet import Alphabet, Wanted
from offrecord.tables.chains import Arranged, Columns
from offrecord.tables.checks.model import sparse
from offrecord.tables.checks.seen import Seen
from offrecord.tables.frames import Native, from_native, listed_keys, marked
from offrecord.tables.options import FitOptions, Learning, takes
from offrecord.tables.optouts import OptOuts
from offrecord.tables.private import Private
from offrecord.tables.steps import Step
from offrecord.tables.table import Reader, Table
from offrecord.text import many

if TYPE_CHECKING:
    from offrecord.fitting.counting import Reference
    from offrecord.fitting.fit import Fit
    from offrecord.tables.given import Given

COVERAGE = 0.99  #: of plausible chains, unless others are given
_FAR = np.iinfo(np.int64).max  # steps from a private record where there is none
_COMMAND = "give it to the command line: offrecord fit"
_NEAREST = 3  # steps: less leaves next to nothing between two private records
_FREE = 4  # one in so many records in chains without a private one is enough
_SHARES = (2, 3, 4, 6, 8, 12, 16)  # of all records: the half that is furthest, a third …
_ENOUGH = 60  # records to learn from at least; of 150 rows with two private ones 75 did
_REACH = 2.0  # times the mean chain's window: rules learned from more records reach less


@takes(FitOptions)
def fit(frame: Native, options: FitOptions) -> Fit:
    """Learn which chains reference data leave plausible, with a verdict on the promise.

    Chains that hold a private record are left out; with fit_distance, records near one are instead.

    Args:
        frame: any frame narwhals knows.
        options: given by name, see below.

    Returns:
        The posterior with its tests.

    Raises:
        InputError: for wrong input, and where there is nothing to learn from.
    """
    check_path("key-file", options.key_file)
    if options.fit_distance is not None and options.private is options.private_list is None:
        raise InputError(
            "--fit-distance is about private records: give --private or --private-list, or leave it"
            " out"
        )
    table, strangers = _read(frame, options)
    found = _learned(table, options, options.epsilons, options.table)[1]
    if options.key_file is not None:
        found = _remembered(found, Key.load_or_new(Path(options.key_file)))
    grid = table.arranged.grid
    said = [*strangers, *table.arranged.warnings, sparse(*grid.pairs)]
    found = found.with_warnings(*filter(None, said))
    advise(found.warnings)
    return found


def _read(frame: Native, options: FitOptions) -> tuple[Table, list[str]]:
    """Reference data, all of their chains, and what to be warned of in the private list."""
    private = options.private
    step = None if options.step is None else Step.parsed(options.step)
    columns = Columns.named(options.value, options.order, options.by, options.single_chain)
    marks = [private] if isinstance(private, str) else []
    if any(mark in columns.released for mark in marks):
        raise InputError(f"the private column {private!r} must not be the value, order or by, too")
    rows = from_native(frame, [*columns.released, *marks], options.value, instead=_COMMAND)
    rows, mark = marked(rows, frame, private)
    keys = listed_keys(options.private_list)
    optouts = None if keys is None else OptOuts.of(keys, columns)
    table = Reader(columns, mark, step, keep_rows=True).read(rows, optouts)
    if optouts is not None:  # a reference may lack chains of the list, but no record of its own
        held = table.private
        optouts.check_found(held.found | ~held.known, stepped=step is not None)
    return table, [] if optouts is None else optouts.strangers(table.private.known)


def fit_table(table: Table, given: Given) -> tuple[Table, Fit]:
    """Learn the model of a table, read without labels, from its own reference records: the table
    with codes for its values, and the fit.
    """
    options = given.options
    return _learned(table, options, (given.epsilon,), options.dataset, options.say)


def _remembered(found: Fit, key: Key) -> Fit:
    """A fit whose records are kept beside a key, too."""
    origin = found.model.origin
    assert origin is not None
    return found.with_origin(origin.model_copy(update={"seen": origin._counted.save(key)}))


def _learned(
    table: Table,
    how: Learning,
    epsilons: Sequence[float],
    name: str | None,
    say: Callable[[str], None] | None = None,
) -> tuple[Table, Fit]:
    """Fit to records that stand apart from private ones; the table with codes for its values."""
    from offrecord.fitting.counting import Reference
    from offrecord.fitting.fit import fit as fit_chains

    kept, distance = _kept(table, how, min(epsilons, default=1.0))
    if distance is not None and how.merge is not None:
        # of chains with a private record nothing but what is released may be learned from
        raise InputError(
            "--merge learns which values are rare from what merging withholds, so it needs chains"
            " without a private record; fit other data, or name the values with --values"
        )
    where = " in the records to learn from, apart from private ones" if table.private.count else ""
    table, alphabet, merged = _labelled(table, kept, how, where)
    arranged = table.arranged
    reference = Reference.of(table.chains, len(alphabet.labels), kept)
    if say is not None:  # before anything is learned, which may take minutes
        say(_values_of(reference, alphabet, distance))
    phase = None if how.phase == "none" else how.phase
    clocks = _clocks(arranged, phase)
    _check_step(arranged)
    found = fit_chains(
        reference.chains,
        alphabet.labels,
        chain_order=how.chain_order,
        phase=phase,
        clocks=clocks,
        zone=arranged.zone,
        coverage=how.coverage or COVERAGE,
        epsilons=tuple(epsilons),
        origin=_origin(arranged, alphabet, distance, name, Seen.of(arranged, kept)),
    )
    if merged:
        found = found.with_warnings(f"{many(merged, 'rare value')} became one, {alphabet.others!r}")
    found = found.with_warnings(*_constant(reference, arranged.columns.value))
    if "hour" not in clocks and phase is not None:
        order = found.model.promise.order
        found = found.with_warnings(*_hours_left_out(arranged, reference, order))
    if table.chains.count > 1 and arranged.columns.order is not None:
        found = _with_dependence(found, reference)
    return table, found


def _check_step(arranged: Arranged) -> None:
    """InputError for a step by which no row follows another, with one by which most do."""
    pairs, linked = arranged.grid.pairs
    if arranged.step is None or linked or not pairs:
        return
    usual = arranged.usual_step
    if usual is not None:
        text = usual[0].text
        raise InputError(
            f"no 2 rows stand one step of --step {arranged.step.text} apart, so there is nothing to"
            f" learn from: most rows are {text} apart: take --step {text}"
        )


def _clocks(arranged: Arranged, phase: str | None) -> dict[str, Integers]:
    """The phases of records, of each kind that is asked for or may make a difference."""
    kinds = [one for one in PLACE_COUNTS if phase == one or arranged.has_phase(one)]
    return {one: arranged.phases(one, arranged.zone) for one in kinds}


def _constant(reference: Reference, value: str) -> Iterator[str]:
    """A warning where no chain ever changes its value."""
    counts = reference.counts(1)[0]
    if counts.sum() == np.trace(counts):
        yield (
            f"{value} never changes within a chain: a release would leave out whole chains, or"
            " nothing can be hidden"
        )


def _hours_left_out(arranged: Arranged, reference: Reference, order: int) -> Iterator[str]:
    """A warning where the hour makes a difference that no kernel of this step can follow."""
    from offrecord.fitting.kernels import gain_of

    hourly = Step.parsed(clock.STEPS["hour"])
    step, chains = arranged.step, arranged.chains
    if not chains.timed or step is None or step.length >= hourly.length:
        return
    hours = clock.phases_of(np.asarray(chains.order, dtype=np.int64), "hour", arranged.zone)
    places = Places("hour", PLACE_COUNTS["hour"], arranged.zone)
    if gain_of(reference, order, places, hours.astype(np.int64)).worth_it:
        yield (
            f"values change at some hours of the day more than at others, and one kernel of"
            f" {step.text} serves all: in hours in which they last longest the odds may exceed the"
            f" promise. For a kernel for each hour keep a row every {hourly.text}:"
            f" {hourly.thinning(str(arranged.columns.order))}"
        )


def _labelled(
    table: Table, kept: Mask, how: Learning, where: str = ""
) -> tuple[Table, Alphabet, int]:
    """A table with codes for its values, what these are, and how many rare ones became one."""
    values = table.arranged.unlabelled
    assert values is not None
    # Labels come from records to learn from alone: a value seen only next to private records would
    # say something of these.
    wanted = Wanted.of(how.values, how.bins, how.merge)
    alphabet, merged = wanted.alphabet(values.filter(kept), where)
    return table.labelled(alphabet), alphabet, merged


def _values_of(reference: Reference, alphabet: Alphabet, distance: int | None) -> str:
    """Which values are learned from, in words."""
    from offrecord.fitting.printed import listed_values

    codes, labels = reference.codes, alphabet.labels
    counts = np.bincount(codes[codes >= 0], minlength=len(labels))
    values = listed_values(dict(zip(labels, counts.tolist(), strict=True)))
    far = f", in records {distance} steps or more from every private one" if distance else ""
    return f"learning from {values}{far}"


def _with_dependence(found: Fit, reference: Reference) -> Fit:
    """The fit, with how far neighbouring chains depend on each other, if they do."""
    from offrecord.fitting.audit import dependence

    depends, origin = dependence(reference), found.model.origin
    if depends is None or not depends.exists or origin is None:
        return found
    found = found.with_origin(origin.model_copy(update={"dependence": depends}))
    return found.with_warnings(depends.warning)


def _kept(table: Table, how: Learning, epsilon: float) -> tuple[Mask, int | None]:
    """(n,) the records to learn from, and how far from every private one of their chains they are;
    None where their chains have none.
    """
    distance, count = how.fit_distance, len(table.chains.codes)
    if table.private.count == 0:
        return np.ones(count, dtype=bool), None
    if distance is not None and (not isinstance(distance, (int, np.integer)) or distance < 1):
        raise InputError(
            f"--fit-distance must be at least 1 step, a whole number, got {distance!r:.40}"
        )
    steps = steps_apart(table.chains, table.private)
    if distance is None:
        free = steps == _FAR
        if _FREE * np.count_nonzero(free) >= count:
            return free, None
        distance = _distance(table, steps, how, epsilon)
        if distance == _FAR:
            return free, None
    kept = steps >= distance
    if not kept.any():
        raise InputError(f"no record is {distance} steps from every private one of its chain")
    return kept, distance


def _distance(table: Table, steps: Integers, how: Learning, epsilon: float) -> int:
    """From how many steps on records are learned from, so that rules leave these alone."""
    # The windows of the furthest records decide among distances that positions name. All that is
    # learned from is then released for certain, those furthest records too: a distance chosen by
    # nearer records would say something of them (docs/proofs/learned.md).
    distances = named_distances(steps)
    reach = 0.0
    if distances[1:]:
        reach = _reach(table, steps >= distances[-1], how, epsilon)
    return next((one for one in distances if one >= reach), distances[-1])


def named_distances(steps: Integers) -> list[int]:
    """How far the half of all records that is furthest from private ones is from them at least,
    how far the furthest third, and so on: by positions alone.

    steps: (n,) how far records are from private ones. InputError where too few are far enough.
    """
    first = len(steps) - np.array([max(len(steps) // share, 1) for share in _SHARES])
    named = np.unique(np.sort(steps)[first]).tolist()
    far = [one for one in named if one >= _NEAREST and np.count_nonzero(steps >= one) >= _ENOUGH]
    if not far:
        raise InputError(
            "every chain holds a private record, and too few records are far from one to learn"
            " from; fit other data like these and give --model, or add --fit-distance 1 --accept"
            " model, and the certificate says that the model saw records that may be redacted"
        )
    return far


def _reach(table: Table, kept: Mask, how: Learning, epsilon: float) -> float:
    """How far from a private record rules may reach, by windows of some records."""
    from offrecord.fitting.audit import mean_windows
    from offrecord.fitting.fit import fit as fit_chains

    try:
        table, alphabet, _ = _labelled(table, kept, how)
        found = fit_chains(
            table.chains,
            alphabet.labels,
            chain_order=how.chain_order,
            phase=None,
            coverage=how.coverage or COVERAGE,
            epsilons=(),
            reference=kept,
        )
    except InputError:  # these few have one value, or none beside another: nearer ones may do
        return 0.0
    size = mean_windows(found.posterior, (epsilon,))[0]  # more records have windows near these
    return np.inf if size is None else _REACH * size + found.posterior.order


def steps_apart(chains: Chains, private: Private) -> Integers:
    """(n,) how many steps each record is from the nearest private one of its chain."""
    places = private.chain * chains.width + private.place
    after = np.searchsorted(places, chains.keys)
    found = np.full(len(chains.keys), _FAR, dtype=np.int64)
    for at in (after - 1, after):
        there = places[np.clip(at, 0, len(places) - 1)]
        alike = (at >= 0) & (at < len(places)) & (there // chains.width == chains.chain_of)
        found[alike] = np.minimum(found[alike], np.abs(there - chains.keys)[alike])
    return found


def _origin(
    arranged: Arranged, alphabet: Alphabet, distance: int | None, name: str | None, seen: Seen
) -> Origin:
    """What the model was learned from, as far as its use depends on that."""
    spacing = arranged.grid.spacing
    unit = 1e9 if arranged.chains.timed else 1  # in seconds, or numbers
    origin = Origin(
        column=arranged.columns.value,
        order=arranged.order_kind,
        step=None if arranged.step is None else arranged.step.text,
        spacing=None if spacing is None else spacing[0] / unit,
        zone=arranged.zone,
        bins=None if alphabet.bins is None else list(alphabet.bins),
        others=alphabet.others,
        table=name,
        distance=distance,
    )
    origin._counted = seen
    return origin
