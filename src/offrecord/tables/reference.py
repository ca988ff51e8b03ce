"""Learn the model of a table from its reference chains: those without a private record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from offrecord.errors import InputError
from offrecord.fitting.asked import Asked
from offrecord.fitting.boxes import Sureness
from offrecord.fitting.orders import AUTO
from offrecord.models.base import Integers, Label
from offrecord.models.learned import Learned
from offrecord.tables.alphabet import Alphabet, Wanted
from offrecord.tables.chains import Arranged, Columns, arrange
from offrecord.tables.frames import Native, from_native
from offrecord.tables.model_check import sparse
from offrecord.tables.secrets import private_records
from offrecord.tables.steps import Step

if TYPE_CHECKING:
    from offrecord.fitting.fit import Fit


def fit(  # noqa: PLR0913 - what a table needs to be read, by name
    frame: Native,
    *,
    value: str,
    order: str,
    by: str | Sequence[str] | None = None,
    single_chain: bool = False,
    private: str | None = None,
    private_list: Native | None = None,
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
    counted in.
    """
    if private is not None and private_list is not None:
        raise InputError("give --private (a column) or --private-list (keys), one of them at most")
    sure = Sureness(confidence, interval)
    asked = Asked(chain_order, phase, sure, states, not no_audit, calibrate)
    steps = None if step is None else Step.parsed(step)
    wanted = Wanted.of(values, bins, merge)
    columns = Columns.named(value, order, by, single_chain, order_unit=order_unit)
    table = from_native(frame, [*columns.released, *([] if private is None else [private])], value)
    arranged = arrange(table, columns, alphabet=None, private=private, step=steps)
    held = np.empty(0, dtype=np.int64)
    if private is not None or private_list is not None:
        held = private_records(
            arranged, None if private_list is None else from_native(private_list), steps
        ).chain
    found = fit_arranged(arranged, held, asked, wanted)[1]
    return replace(found, warnings=(*arranged.warnings, *filter(None, [sparse(*arranged.pairs)])))


def fit_arranged(
    arranged: Arranged,
    held: Integers,
    asked: Asked,
    wanted: Wanted,
    say: Callable[[str], None] | None = None,
) -> tuple[Arranged, Fit]:
    """Fit to the chains without a private record; the table coded by their labels, and the fit.

    Labels come from them alone: a value seen only next to private records would tell about these.
    wanted: what values there are to be. say: is told the values before anything is learned.
    """
    from offrecord.fitting.believed import Reference, believed
    from offrecord.fitting.printed import listed_values

    dropped = np.zeros(arranged.chains.count, dtype=bool)
    dropped[held] = True
    if dropped.all():
        raise InputError(
            "every chain holds a private record, so none is left to learn from; fit other data and"
            " give --model"
        )
    kept = np.repeat(~dropped, np.diff(arranged.chains.starts))
    assert arranged.unlabelled is not None
    where = " in the chains without a private record" if len(held) else ""
    alphabet, merged = wanted.alphabet(arranged.unlabelled.filter(kept), where)
    arranged = arranged.labelled(alphabet)
    chains, labels = arranged.chains, arranged.labels
    if say is not None:
        codes = chains.codes[kept]
        counts = np.bincount(codes[codes >= 0], minlength=len(labels))
        say(f"learning from {listed_values(dict(zip(labels, counts.tolist(), strict=True)))}")
    names = [*(("hour", "weekday") if asked.audit else ()), *filter(None, [asked.phase])]
    phases = {name: arranged.phases(name, arranged.zone) for name in names if chains.timed}
    if asked.phase is not None and not chains.timed:
        phases = {asked.phase: arranged.phases(asked.phase, arranged.zone)}  # which says why not
    instants = chains.order if arranged.columns.order is not None and chains.count > 1 else None
    reference = Reference(chains, labels, dropped, phases, arranged.zone, instants, asked.sure)
    result = replace(believed(reference, asked), merged=merged)
    learned = _origin(arranged, alphabet, result)
    return arranged, replace(result, model=result.model.with_learned(learned))


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
