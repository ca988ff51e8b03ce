"""Whether a release without its key may be what its walks came to.

Plain erasure is consistent with every walk stopping at once, which is not likely. The check bounds
the probability that walks redact as little as is seen, under the chain for which that is likeliest:
by Chernoff's inequality, P(Σ T ≤ r) ≤ min over λ of e^{λr} Π E e^{−λT}. Walks of different runs are
taken to be independent.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from offrecord.verification.agreement import Found
from offrecord.verification.law import stop_law
from offrecord.verification.local import certain
from offrecord.verification.members import Drawn, Floats, Integers
from offrecord.verification.reading import Records
from offrecord.verification.rules import Local, Rules
from offrecord.verification.runs import Case
from offrecord.verification.walks import nearest_shown, walks_of

LEAST = 1e-6  #: a release less likely than this does not verify
CHAINS = 200  #: that the probability is the largest of
_RATES = np.concatenate(([0.0], np.geomspace(1e-4, 20.0, 80)))  # λ that are tried


def check_chance(case: Case, drawn: Drawn, found: Found) -> None:
    """A problem where walks redacted less than chance explains."""
    records, clusters, kind = case.records, case.clusters, case.rules.kind
    bounds = []
    for name in ("left", "right"):
        right, laws, least = name == "right", [], 0
        margin, _ = clusters.margins(records, right=right)
        empty = nearest_shown(records, clusters, margin, right=right)
        for walks in walks_of(case, name):
            # walks that cannot look redact more, so it is no less likely that others redact so few
            which, side = walks.which, walks.side
            # where nothing shows at all the stop is not seen: it is at most the deadline
            hidden = np.where(empty[which] >= margin[which], side.reach, empty[which])
            least += int(np.minimum(hidden, side.reach).sum())
            edge = clusters.last[which] if right else clusters.first[which] + side.order - 1
            places = Counter(records.placed(kind, clusters.chain[which], edge).tolist())
            for place, count in places.items():
                law = stop_law(side, drawn, place, name)
                laws.append((law, side.levels - side.order, count))
        bounds.append(_log_bound(laws, least))
    _judge(bounds, found)


def check_holes(
    records: Records, rules: Rules, drawn: Drawn, private: int, missing: int, found: Found
) -> None:
    """Without knowing which records are private: holes are taken as runs.

    Of all records in holes beyond the private ones, each hole has at least two walks, unless it
    reaches an end of its chain.
    """
    shown = np.flatnonzero(records.codes >= 0)
    chain = records.chain_of[shown]
    apart = np.diff(records.places[shown]) - 1
    inside = (np.diff(chain) == 0) & (np.diff(shown) > 1)  # a gap without a row hides nothing
    holes = int(inside.sum()) - missing
    hidden = int(np.count_nonzero(records.codes < 0)) - private
    absent = int((apart - np.diff(shown) + 1)[inside].sum())
    if holes <= 0:
        return
    inner = ((key, one) for key, one in rules.sides.items() if key[0] in ("record", "run"))
    logs = []
    for (_, place, name), side in inner:
        law, sizes = np.ones((len(drawn.rows), 1)), np.array([0])
        if isinstance(side, Local):
            sizes[0] = certain(side)
        else:
            law, sizes = stop_law(side, drawn, place, name), side.levels - side.order
        # a hole's two walks may depend on each other: E e^(−λ(A + B)) ≤ max E e^(−2λA)
        logs.append(_log_means(2 * _RATES, law, sizes))
    if logs:
        _judge([_least(holes * np.max(logs, axis=0), hidden + absent)], found)


def _log_means(rates: Floats, law: Floats, sizes: Integers) -> Floats:
    """(M, λ) log E e^(−λT)."""
    means = np.clip(law, 0.0, None) @ np.exp(-sizes[:, np.newaxis] * rates)
    return np.log(np.maximum(means, 1e-300))


def _log_bound(chains: list[tuple[Floats, Integers, int]], seen: int) -> Floats:
    """(M,) log of the bound for walks with these laws, of each so many."""
    if not chains:
        return np.zeros(1)
    # walks are independent, so the expectation of e^(−λΣT) is the product of theirs (Chernoff)
    return _least(sum(count * _log_means(_RATES, law, sizes) for law, sizes, count in chains), seen)


def _least(logs: Floats | int, seen: int) -> Floats:
    return np.asarray(np.min(logs + _RATES * seen, axis=-1))


def _judge(bounds: list[Floats], found: Found) -> None:
    """bounds: of each group of walks (M,); the least of them counts, for the best chain."""
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
