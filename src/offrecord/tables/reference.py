"""Learn the model of a table from its reference records: chains without a private record, or
stretches far from every one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from offrecord.errors import InputError, advise
from offrecord.files import check_path
from offrecord.fitting.asked import Asked
from offrecord.fitting.boxes import Sureness
from offrecord.fitting.orders import AUTO
from offrecord.mechanisms.blocks import Mask
from offrecord.models.base import Integers, Label
from offrecord.models.learned import Learned
from offrecord.models.records import MISSING, Chains
from offrecord.release.keys import Key
from offrecord.tables.alphabet import Alphabet, Wanted
from offrecord.tables.chains import Arranged, Columns, arrange
from offrecord.tables.frames import Native, from_native, listed_keys, marked
from offrecord.tables.model_check import sparse
from offrecord.tables.optouts import OptOuts, key_columns
from offrecord.tables.secrets import Private, private_records
from offrecord.tables.seen import Seen
from offrecord.tables.steps import Step

if TYPE_CHECKING:
    from offrecord.fitting.fit import Fit

_FAR = np.iinfo(np.int64).max  # steps from a private record where there is none
_COMMAND = "give it to the command line: offrecord fit"
_NEAREST = 3  # steps: less leaves next to nothing between two private records


def fit(  # noqa: PLR0913 - what a table needs to be read, by name
    frame: Native,
    *,
    value: str,
    order: str,
    by: str | Sequence[str] | None = None,
    single_chain: bool = False,
    private: str | Native | None = None,
    private_list: Native | str | Path | None = None,
    chain_order: int | str = AUTO,
    phase: str | None = None,
    confidence: float = Sureness.confidence,
    interval: str = Sureness.interval,
    no_audit: bool = False,
    states: int | None = None,
    calibrate: bool = False,
    step: str | int | None = None,
    values: Sequence[Label] | None = None,
    bins: Sequence[float] | None = None,
    merge: str | None = None,
    order_unit: str | float | None = None,
    fit_distance: int | None = None,
    key_file: str | Path | None = None,
) -> Fit:
    """Learn a chain from reference data, with uncertainty and a verdict in words.

    Columns and steps as in `redact`. private, private_list: every chain that holds a private record
    is left out. chain_order: how many records the next one depends on, or "auto": as many as the
    data speak for. phase: "hour", "weekday" or "month", for a kernel each. confidence: that the
    true chain lies in the set of models learned, by intervals of a kind: "clopper-pearson" or
    "mixture". no_audit: do not check the promise against records held back. states: a chain on so
    many hidden states is learned too, and is the model if it foretells records held back better
    than every order. calibrate: enlarge the model until the audit passes. values: all values that
    there are; any other is an error. bins: cut numbers into values. merge: "rare" makes one value
    of all that fewer than one record in a hundred has. order_unit: what decimal order values are
    counted in. fit_distance: learn from all records that are so many steps, or more, from every
    private one, instead. key_file: keep beside this key which records were seen, so that `redact`
    can tell it of model files too.
    """
    check_path("key-file", key_file)
    if fit_distance is not None and private is None and private_list is None:
        raise InputError(
            "--fit-distance is about private records: give --private or --private-list, or leave it"
            " out"
        )
    sure = Sureness(confidence, interval)
    asked = Asked(chain_order, phase, sure, states, not no_audit, calibrate)
    steps = None if step is None else Step.parsed(step)
    wanted = Wanted.of(values, bins, merge)
    columns = Columns.named(value, order, by, single_chain, order_unit=order_unit)
    marks = [private] if isinstance(private, str) else []
    if any(mark in columns.released for mark in marks):
        raise InputError(f"the private column {private!r} must not be the value, order or by, too")
    table = from_native(frame, [*columns.released, *marks], value, instead=_COMMAND)
    table, mark = marked(table, frame, private)
    arranged = arrange(table, columns, alphabet=None, private=mark, step=steps)
    listed = listed_keys(private_list, key_columns(columns))
    optouts = None if listed is None else OptOuts.of(listed, columns)
    held = private_records(arranged, optouts, steps)
    if optouts is not None:  # a reference may lack chains of the list, but no record of its own
        optouts.check_found(held.found | ~held.known, held.known, stepped=steps is not None)
    found = fit_arranged(arranged, held, replace(asked, distance=fit_distance), wanted)[1]
    if key_file is not None:
        found = _remembered(found, Key.load_or_new(Path(key_file)))
    warnings = (*arranged.warnings, *filter(None, [sparse(*arranged.pairs)]))
    advise(warnings)
    return replace(found, warnings=warnings)


def _remembered(found: Fit, key: Key) -> Fit:
    """A fit whose records are kept beside a key, too."""
    learned = found.model.learned
    assert learned is not None
    learned = replace(learned, seen=learned.records.save(key))
    return replace(found, model=found.model.with_learned(learned))


def fit_arranged(
    arranged: Arranged,
    private: Private,
    asked: Asked,
    wanted: Wanted,
    say: Callable[[str], None] | None = None,
) -> tuple[Arranged, Fit]:
    """Fit to records that stand apart from private ones; the table coded by their labels, and the
    fit.

    Labels come from them alone: a value seen only next to private records would tell about these.
    wanted: what values there are to be. say: is told the values before anything is learned.
    """
    from offrecord.fitting.believed import Reference, believed
    from offrecord.fitting.printed import listed_values

    kept, distance = apart(arranged.chains, private, asked.distance)
    assert arranged.unlabelled is not None
    if distance is not None and wanted.merge is not None:
        # of chains with a private record nothing but what is released may be learned from
        raise InputError(
            "--merge learns which values are rare from what merging withholds, so it needs chains"
            " without a private record; fit other data, or name the values with --values"
        )
    where = " in the records to learn from, apart from private ones" if private.count else ""
    alphabet, merged = wanted.alphabet(arranged.unlabelled.filter(kept), where)
    arranged = arranged.labelled(alphabet)
    labels, codes = arranged.labels, np.where(kept, arranged.chains.codes, np.int8(MISSING))
    chains = replace(arranged.chains, codes=codes)
    dropped = ~np.logical_or.reduceat(kept, chains.starts[:-1])
    if say is not None:
        counts = np.bincount(codes[codes >= 0], minlength=len(labels))
        values = listed_values(dict(zip(labels, counts.tolist(), strict=True)))
        far = f", in records {distance} steps or more from every private one" if distance else ""
        say(f"learning from {values}{far}")
    names = [name for name in ("hour", "weekday") if asked.audit and arranged.tells(name)]
    names += filter(None, [asked.phase])  # if the order column cannot tell it, that says why
    phases = {name: arranged.phases(name, arranged.zone) for name in names}
    instants = chains.order if arranged.columns.order is not None and chains.count > 1 else None
    reference = Reference(chains, labels, dropped, phases, arranged.zone, instants, asked.sure)
    result = replace(believed(reference, asked), merged=merged)
    learned = _origin(arranged, alphabet, result)
    learned = replace(learned, distance=distance, records=Seen.of(arranged, kept))
    return arranged, replace(result, model=result.model.with_learned(learned))


def apart(chains: Chains, private: Private, distance: int | None) -> tuple[Mask, int | None]:
    """(n,) the records to learn from, and how far from every private one of their chains they are;
    None where their chains have none.

    distance: in steps. Without it chains without a private record, if there are any, else the half
    of all records that is furthest: a choice by positions alone, as one by values would tell.
    """
    if private.count == 0:
        return np.ones(len(chains.codes), dtype=bool), None
    if distance is not None and (not isinstance(distance, (int, np.integer)) or distance < 1):
        raise InputError(
            f"--fit-distance must be at least 1 step, a whole number, got {distance!r:.40}"
        )
    steps = _steps_apart(chains, private)
    if distance is None:
        free = steps == _FAR
        if free.any():
            return free, None
        distance = int(np.partition(steps, len(steps) // 2)[len(steps) // 2])
        if distance < _NEAREST:
            raise InputError(
                "every chain holds a private record, and half of all records stand next to one, so"
                " too few are left to learn from; fit other data and give --model"
            )
    kept = steps >= distance
    if not kept.any():
        raise InputError(f"no record is {distance} steps from every private one of its chain")
    return kept, distance


def _steps_apart(chains: Chains, private: Private) -> Integers:
    """(n,) how many steps each record is from the nearest private one of its chain."""
    places = private.chain * chains.width + private.place
    after = np.searchsorted(places, chains.keys)
    found = np.full(len(chains.keys), _FAR, dtype=np.int64)
    for at in (after - 1, after):
        there = places[np.clip(at, 0, len(places) - 1)]
        alike = (at >= 0) & (at < len(places)) & (there // chains.width == chains.chain_of)
        found[alike] = np.minimum(found[alike], np.abs(there - chains.keys)[alike])
    return found


def _origin(arranged: Arranged, alphabet: Alphabet, result: Fit) -> Learned:
    """What the model was learned from, as far as its use depends on that."""
    spacing = None
    if arranged.spacing is not None:  # in seconds, or numbers
        spacing = arranged.spacing[0] / (1e9 if arranged.chains.timed else 1)
    return Learned(
        value=arranged.columns.value,
        order=arranged.order_kind,
        step=None if arranged.step is None else arranged.step.text,
        zone=arranged.zone,
        spacing=spacing,
        verdict=result.verdict,
        audit=result.audit,
        calibration=result.calibration,
        share=result.share,
        unit=None if arranged.columns.unit is None else arranged.columns.unit.text,
        bins=alphabet.bins,
        others=alphabet.others,
    )
