"""How a local policy is shown to people: as text, and in notebooks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from offrecord.mechanisms.blocks import PRIVATE, REGIONS, certainty_of
from offrecord.models.base import Floats
from offrecord.text import html_note, html_table

if TYPE_CHECKING:
    from offrecord.mechanisms.local.policy import LocalPolicy

_SHOWN = 24  # stretches of records


class _Stretch(NamedTuple):
    """Records treated alike."""

    first: int
    last: int
    row: Floats


def text(policy: LocalPolicy) -> str:
    """What it releases and tells, and what it does to which records."""
    table = _table(policy)
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    rows = ("  ".join(map(str.rjust, row, widths)) for row in table)
    return "\n".join([*_told(policy), "", *rows])


def html(policy: LocalPolicy) -> str:
    """The same for notebooks."""
    return html_note(*_told(policy)) + html_table(_table(policy))


def _told(policy: LocalPolicy) -> list[str]:
    """What it releases and tells."""
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
    return [*lines, *(f"{name}: {value}" for name, value in policy.details.items())]


def _table(policy: LocalPolicy) -> list[list[str]]:
    """Stretches of records treated alike: records, region, how often each value is withheld. Of
    many those about the first private record.
    """
    labels = policy.problem.chain.labels
    table = [["records", "region", *(f"Pr(⊥ | {label})" for label in labels)]]
    private = set(policy.problem.private)
    left_out = ["…"] * len(table[0])
    before, stretches, after = _about(_alike(policy), policy.problem.private[0])
    if before:
        table.append(left_out)
    for first, last, row in stretches:
        region = PRIVATE if first in private else REGIONS[certainty_of(row[np.newaxis])[0]]
        records = str(first) if first == last else f"{first}–{last}"
        table.append([records, region, *(_probability(q) for q in row)])
    if after:
        table.append(left_out)
    return table


def _about(alike: Iterator[_Stretch], record: int) -> tuple[bool, list[_Stretch], bool]:
    """Up to so many stretches as are shown, about the one of a record if there are more; whether
    some are left out before and after them.
    """
    shown: deque[_Stretch] = deque(maxlen=_SHOWN)
    count = 0
    for stretch in alike:
        if len(shown) == _SHOWN and shown[_SHOWN // 2].first >= record:
            return count > _SHOWN, list(shown), True
        shown.append(stretch)
        count += 1
    return count > _SHOWN, list(shown), False


def _alike(policy: LocalPolicy) -> Iterator[_Stretch]:
    """First and last record of each stretch, private ones by themselves, and its row."""
    sparse, released = policy.sparse, np.zeros(policy.sparse.k)
    position = 1
    stretches = zip(sparse.starts.tolist(), sparse.stops.tolist(), sparse.rows, strict=True)
    for start, stop, row in [*stretches, (policy.problem.n, policy.problem.n, released)]:
        if position <= start:
            yield _Stretch(position, start, released)
        position = start + 1
        for p in policy.problem.private:
            if position <= p <= stop:
                if position < p:
                    yield _Stretch(position, p - 1, row)
                yield _Stretch(p, p, row)
                position = p + 1
        if position <= stop:
            yield _Stretch(position, stop, row)
        position = stop + 1


def _probability(q: float) -> str:
    """Four digits, and never 0 or 1 for what is neither."""
    if q in (0.0, 1.0):
        return str(int(q))
    shown = f"{q:.4f}"
    return shown if 0.0 < float(shown) < 1.0 else f"{q:.17g}"
