"""Whether a release without its key may be what its walks came to.

Plain erasure is consistent with every walk stopping at once, which is not likely. The check bounds
the probability that walks redact as little as is seen, under the chain for which that is likeliest:
by Chernoff's inequality, P(Σ T ≤ r) ≤ min over λ of e^{λr} Π E e^{−λT}. Walks of different runs are
taken to be independent.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from offrecord.models.base import Floats, Integers
from offrecord.verification.agreement import Found
from offrecord.verification.cells import Case, nearest_shown, walks_of
from offrecord.verification.law import stop_law
from offrecord.verification.members import Drawn
from offrecord.verification.reading import Records
from offrecord.verification.rules import Rules, Stops

LEAST = 1e-6  #: a release less likely than this does not verify
CHAINS = 200  #: that the probability is the largest of
_RATES = np.concatenate(([0.0], np.geomspace(1e-4, 20.0, 80)))  # λ that are tried


def check_chance(case: Case, drawn: Drawn) -> None:
    """A problem where walks redacted less than chance explains."""
    bounds = [_side_bound(case, drawn, name) for name in ("left", "right")]
    _judge(bounds, case.records.found)


def _side_bound(case: Case, drawn: Drawn, name: str) -> Floats:
    """(M,) log of the bound for all walks to one side."""
    records, clusters, kind = case.records, case.clusters, case.rules.kind
    margin, _ = clusters.margins(records, name)
    empty, edge = nearest_shown(records, clusters, name), clusters.edges(name)
    logs, least = np.zeros(()), 0
    for walks in walks_of(case, name):
        # walks that cannot look redact more, so it is no less likely that others redact so few
        which, side = walks.which, walks.side
        # where nothing shows at all the stop is not seen: it is at most the deadline
        hidden = np.where(empty[which] >= margin[which], side.reach, empty[which])
        least += int(np.minimum(hidden, side.reach).sum())
        start = edge[which] + (0 if name == "right" else side.order - 1)
        places = Counter(records.placed(kind, clusters.cores.chain[which], start).tolist())
        for place, count in places.items():
            law = stop_law(side, drawn, place, name)
            # walks are independent: the expectation of e^(−λΣT) is the product of theirs
            logs = logs + count * _log_means(_RATES, law, side.levels - side.order)
    return _least(logs, least) if logs.ndim else np.zeros(1)


def check_holes(records: Records, rules: Rules, drawn: Drawn) -> None:
    """The same without knowing which records are private: holes are taken as runs."""
    counts, shown = records.counts, np.flatnonzero(records.shown)
    same = np.diff(records.chains.chain_of[shown]) == 0
    apart, rows = np.diff(records.chains.places[shown]) - 1, np.diff(shown) - 1
    inside = same & (rows > 0)  # a gap without a row hides nothing
    holes = int(inside.sum()) - counts.missing
    hidden = int(np.count_nonzero(~records.shown)) - counts.private
    absent = int((apart - rows)[inside].sum())
    if holes <= 0:
        return
    logs = []
    for (setting, place, name), side in rules.sides.items():
        if setting not in ("record", "run"):  # a hole with a value on both sides
            continue
        if isinstance(side, Stops):
            law, sizes = stop_law(side, drawn, place, name), side.levels - side.order
        else:
            law, sizes = np.ones((len(drawn.rows), 1)), np.array([side.certain])
        # a hole's two walks may depend on each other: E e^(−λ(A + B)) ≤ max E e^(−2λA)
        logs.append(_log_means(2 * _RATES, law, sizes))
    if logs:
        # all records in holes beyond the private ones; each hole has at least two walks
        _judge([_least(holes * np.max(logs, axis=0), hidden + absent)], records.found)


def _log_means(rates: Floats, law: Floats, sizes: Integers) -> Floats:
    """(M, λ) log E e^(−λT)."""
    means = np.clip(law, 0.0, None) @ np.exp(-sizes[:, np.newaxis] * rates)
    return np.log(np.maximum(means, 1e-300))


def _least(logs: Floats, seen: int) -> Floats:
    """(M,) log of the bound: the least over all rates (Chernoff)."""
    return np.asarray(np.min(logs + _RATES * seen, axis=-1))


def _judge(bounds: list[Floats], found: Found) -> None:
    """A problem where the least of some bounds (M,) is too low for every chain."""
    # whichever bound is the least is looked at, so it counts as often as there are bounds
    most = float(np.exp(np.max(np.min(np.broadcast_arrays(*bounds), axis=0)))) * len(bounds)
    if most < LEAST:
        found.wrong(
            f"so few records are redacted that it has probability {most:.1g} at most under every"
            " plausible chain: this is not what the rules make"
        )
    else:
        found.checked.append(
            "That as few redactions as these are not improbable: at most"
            f" {min(most, 1.0):.2g} under the likeliest of {CHAINS} chains."
        )
