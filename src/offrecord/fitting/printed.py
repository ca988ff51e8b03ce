"""A fit as a page of text, and in notebooks: what was counted, learned and tested, in columns."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from offrecord.fitting.longer_memory import EPSILON
from offrecord.fitting.verdict import p_value_text, short
from offrecord.models.base import Label
from offrecord.models.published_rounding import DIGITS
from offrecord.text import aligned, html_list, html_note, html_table, many, odds

if TYPE_CHECKING:
    from offrecord.fitting.fit import Fit

_SHOWN = 36  # transitions that are listed one by one
_WIDTH = 100


def page_of(fit: Fit) -> str:
    """All that a person who has fitted a model should read."""
    tables = [_order_table(fit), _check_table(fit), _audit_table(fit)]
    if fit.phase is None and fit.counts.size <= _SHOWN:
        tables.insert(0, _transition_table(fit))
    lines = [headline(fit), *textwrap.wrap(_values(fit), _WIDTH), ""]
    for table in filter(None, tables):
        lines += [aligned(table, right=True), ""]
    for paragraph in _sentences(fit):
        lines += [*textwrap.wrap(paragraph, _WIDTH, break_on_hyphens=False), ""]
    return "\n".join(lines[:-1])


def html_of(fit: Fit) -> str:
    """The same for notebooks, the verdict first. Of many transitions those that were seen most."""
    verdict, *others = reversed(_sentences(fit))
    parts = [html_note(headline(fit), _values(fit), verdict), html_list("Warnings", fit.warnings)]
    if fit.phase is None:
        if fit.counts.size > _SHOWN:
            most = f"the {_SHOWN} of {fit.counts.size:,} transitions that were seen most"
            parts.append(html_note(most))
        parts.append(html_table(_transition_table(fit)))
    for table in filter(None, (_order_table(fit), _check_table(fit), _audit_table(fit))):
        parts.append(html_table(table))
    return "".join([*parts, html_list("In data held back", others[::-1])])


def _values(fit: Fit) -> str:
    merged = f"; {fit.merged:,} rare values are one" if fit.merged else ""
    return listed_values(fit.values) + merged


def _sentences(fit: Fit) -> list[str]:
    """What audit and calibration came to, and the verdict."""
    said = [] if fit.audit is None else [fit.audit.sentence]
    if fit.calibration is not None:
        said.append(f"Calibrated: {fit.calibration}. This part is empirical.")
    return [*said, fit.verdict]


def listed_values(values: Mapping[Label, int]) -> str:
    """How many values there are, and which, with their counts; text in quotes: a blank shows."""
    return f"{many(len(values), 'value')}: " + ", ".join(
        f"{value!r} ({count:,})" for value, count in values.items()
    )


def headline(fit: Fit) -> str:
    """What was learned from how much, in a line."""
    each = f", a kernel for each {fit.phase}" if fit.phase else ""
    dropped = f" ({fit.dropped:,} left out: they hold private records)" if fit.dropped else ""
    return (
        f"order {fit.chain.order}, {fit.chain.k} values{each}: {fit.transitions:,} transitions,"
        f" {fit.records:,} records, {many(fit.chains, 'chain')}{dropped}"
    )


def _transition_table(fit: Fit) -> list[list[str]]:
    """A line for each transition, or for those seen most, in the order of the kernel."""
    labels = [str(label) for label in fit.chain.labels]
    table = [["from", "to", "probability", "interval", "seen"]]
    chosen = np.sort(np.argsort(-fit.counts, axis=None, kind="stable")[:_SHOWN])
    axes = np.unravel_index(chosen, fit.counts.shape)
    for at in zip(*(axis.tolist() for axis in axes), strict=True):
        low, high = fit.intervals[at]
        before = ", ".join(labels[i] for i in at[:-1])
        share = f"{fit.chain.transition[at]:.{DIGITS}g}"
        # ends are short as they are; to shorten them further might move them inward
        table.append(
            [before, labels[at[-1]], share, f"{low:.12g} to {high:.12g}", f"{fit.counts[at]:,}"]
        )
    return table


def _order_table(fit: Fit) -> list[list[str]]:
    """BIC by order, and beside it what a window for the order fitted leaks to attackers who know of
    a longer memory.
    """
    judged = fit.longer_memory
    leakage, by_chance = ({}, {}) if judged is None else (judged.leakage, judged.by_chance)
    orders = sorted({*fit.bic, *leakage})
    given = "" if fit.phase is None else f", given the {fit.phase}"
    rows: list[tuple[str, dict[int, str]]] = [
        (f"BIC{given}", {order: f"{value:,.1f}" for order, value in fit.bic.items()}),
        (f"window for ε = {EPSILON:g} leaks", _numbers(leakage)),
        ("odds, to 1", {order: odds(value) for order, value in leakage.items()}),
        ("by chance up to", _numbers(by_chance)),
    ]
    return [
        ["order", *(str(order) for order in orders)],
        *([name, *(cells.get(order, "") for order in orders)] for name, cells in rows if cells),
    ]


def _numbers(by_order: dict[int, float]) -> dict[int, str]:
    return {order: f"{value:.2f}" for order, value in by_order.items()}


def _audit_table(fit: Fit) -> list[list[str]]:
    """The largest odds of each look; nothing where nobody looked."""
    return [] if fit.audit is None or not fit.audit.findings else fit.audit.table


def _check_table(fit: Fit) -> list[list[str]]:
    """One line for each test that could be made; nothing where none could."""
    checks = fit.stationarity
    named = {
        "phases": checks.phases,
        "first and second halves": checks.halves,
        "first records": checks.starts,
    }
    table = [
        [
            name,
            f"{check.statistic:,.1f}",
            f"{check.degrees:,}",
            p_value_text(check).removeprefix("= "),
            "" if check.change is None else short(check.change),
        ]
        for name, check in named.items()
        if check is not None
    ]
    head = ["test of", "statistic", "degrees", "p", "largest change"]
    return [head, *table] if table else []
