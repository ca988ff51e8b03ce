"""How a local policy is shown to people: as text, and in notebooks."""

from __future__ import annotations

import html as markup
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from offrecord.mechanisms.blocks import PRIVATE, REGIONS, certainty_of
from offrecord.models.base import Floats
from offrecord.text import html_table

if TYPE_CHECKING:
    from offrecord.mechanisms.local.policy import LocalPolicy

_SHOWN = 24  # stretches of records


def text(policy: LocalPolicy) -> str:
    """What it releases and tells, and what it does to which records."""
    epsilon = policy.problem.epsilon
    lines = []
    if not policy.is_private:
        lines.append(f"NOT PRIVATE: leakage {policy.leakage:.6g} exceeds ε = {epsilon:g}")
    told = "exact leakage" if policy.worst.exact else "leakage at most"
    way = f" (by {policy.worst.method})" if policy.problem.chain.order > 1 else ""
    lines.append(
        f"{policy.mechanism}: releases {policy.utility:.2%} of {policy.problem.n} records, {told}"
        f" {policy.leakage:.6g} of ε = {epsilon:g}{way}"
    )
    if policy.utility_bound is not None:
        lines.append(f"no local mechanism releases more than {policy.utility_bound:.4%}")
    lines.append(f"worst output: {policy.worst}")
    lines += [f"{name}: {value}" for name, value in policy.details.items()]
    table = _table(policy)
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in ["", *table]:
        lines.append("  ".join(map(str.rjust, row, widths)))
    return "\n".join(lines)


def html(policy: LocalPolicy) -> str:
    """The same in short, for notebooks."""
    title, worst = (markup.escape(line) for line in text(policy).splitlines()[:2])
    return f"<p><b>{title}</b><br>{worst}</p>{html_table(_table(policy))}"


def _table(policy: LocalPolicy) -> list[list[str]]:
    """Stretches of records treated alike: records, region, how often each value is withheld."""
    labels = policy.problem.chain.labels
    table = [["records", "region", *(f"Pr(⊥ | {label})" for label in labels)]]
    private = set(policy.problem.private)
    for count, (first, last, row) in enumerate(_alike(policy)):
        if count == _SHOWN:
            table.append(["…"] * len(table[0]))
            break
        region = PRIVATE if first in private else REGIONS[certainty_of(row[np.newaxis])[0]]
        records = str(first) if first == last else f"{first}–{last}"
        table.append([records, region, *(_probability(q) for q in row)])
    return table


def _alike(policy: LocalPolicy) -> Iterator[tuple[int, int, Floats]]:
    """First and last record of each stretch, private ones by themselves, and its row."""
    sparse, released = policy.sparse, np.zeros(policy.sparse.k)
    position = 1
    stretches = zip(sparse.starts.tolist(), sparse.stops.tolist(), sparse.rows, strict=True)
    for start, stop, row in [*stretches, (policy.problem.n, policy.problem.n, released)]:
        if position <= start:
            yield position, start, released
        position = start + 1
        for p in policy.problem.private:
            if position <= p <= stop:
                if position < p:
                    yield position, p - 1, row
                yield p, p, row
                position = p + 1
        if position <= stop:
            yield position, stop, row
        position = stop + 1


def _probability(q: float) -> str:
    """Four digits, and never 0 or 1 for what is neither."""
    if q in (0.0, 1.0):
        return str(int(q))
    shown = f"{q:.4f}"
    return shown if 0.0 < float(shown) < 1.0 else f"{q:.17g}"
