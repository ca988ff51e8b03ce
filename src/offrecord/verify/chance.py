"""Whether a release without its key may be what its walks came to.

Plain erasure is consistent with every walk stopping at once, which is not likely. The check bounds
the probability that walks redact as little as is seen, under the chain for which that is likeliest:
by Chernoff's inequality, P(Σ T ≤ r) ≤ min over λ of e^{λr} Π E e^{−λT}. Walks of different runs are
taken to be independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from offrecord.verify.coins import Coins
from offrecord.verify.found import Found
from offrecord.verify.law import stop_law
from offrecord.verify.local import certain
from offrecord.verify.members import Drawn, Floats, Integers
from offrecord.verify.reading import Records
from offrecord.verify.rules import Local, Rules, Side
from offrecord.verify.runs import Clusters
from offrecord.verify.walks import nearest_shown, walks_of

LEAST = 1e-6  #: a release less likely than this does not verify
CHAINS = 200  #: that the probability is the largest of
_RATES = np.concatenate(([0.0], np.geomspace(1e-4, 20.0, 80)))  # λ that are tried


def check_chance(
    records: Records,
    clusters: Clusters,
    rules: Rules,
    drawn: Drawn,
    coins: Coins | None,
    missing: int,
    found: Found,
) -> None:
    """A problem where walks redacted less than chance explains."""
    if coins is not None or not rules.walks:
        return
    bounds = []
    for name in ("left", "right"):
        right = name == "right"
        seen, chains = 0, []
        room = records.ends[clusters.chain] - clusters.last if right else clusters.first
        between = clusters.gaps()
        near = np.append(between, np.iinfo(np.int64).max)
        near = near if right else np.roll(near, 1)
        room = np.minimum(room, near)
        empty = nearest_shown(records, clusters, room, right=right)
        for walks in walks_of(records, clusters, rules, name):
            sure = ~walks.absent() if not missing else np.zeros(len(walks.which), dtype=bool)
            if not sure.any():
                continue
            which, side = walks.which[sure], walks.side
            # where nothing shows at all the stop is not seen: it is at most the deadline
            most = np.where(empty[which] >= room[which], side.reach, empty[which])
            seen += int(np.minimum(most, side.reach).sum())
            edge = clusters.last[which] if right else clusters.first[which] + side.order - 1
            places = Counter(records.placed(rules.kind, clusters.chain[which], edge).tolist())
            chains += [(stop_law(side, drawn, place, name), side.levels - side.order, count)
                       for place, count in places.items()]  # fmt: skip
        bounds.append(_log_bound(chains, seen))
    _judge(bounds, found)


def check_holes(
    records: Records, rules: Rules, drawn: Drawn, private: int, missing: int, found: Found
) -> None:
    """Without knowing which records are private: holes are taken as runs.

    Of all records in holes beyond the private ones, each hole has at least two walks, unless it
    reaches an end of its chain.
    """
    shown = np.flatnonzero(records.codes >= 0)
    chain, place = records.chain_of[shown], records.places[shown]
    apart = np.diff(place) - 1
    inside = (np.diff(chain) == 0) & (np.diff(shown) > 1)  # a gap without a row hides nothing
    holes = int(inside.sum()) - missing
    hidden = int(np.count_nonzero(records.codes < 0)) - private
    absent = int((apart - np.diff(shown) + 1)[inside].sum())
    if holes <= 0 or not rules.sides:
        return
    laws = [_least_law(side, drawn, place, name) for (_, place, name), side in _inner(rules)]
    # a hole's two walks may depend on each other: E e^(−λ(A + B)) ≤ max E e^(−2λA)
    logs = np.max([_log_means(2 * _RATES, *law) for law in laws], axis=0)
    _judge([_least(holes * logs, hidden + absent)], found)


def _inner(rules: Rules) -> Iterable[tuple[tuple[str, int, str], Side]]:
    return ((key, side) for key, side in rules.sides.items() if key[0] in ("record", "run"))


def _least_law(side: Side, drawn: Drawn, place: int, name: str) -> tuple[Floats, Integers]:
    """(M, n) law of how many records a side redacts at least, and these numbers."""
    if isinstance(side, Local):
        return np.ones((len(drawn.rows), 1)), np.array([certain(side)])
    return stop_law(side, drawn, place, name), side.levels - side.order


def _log_means(rates: Floats, law: Floats, sizes: Integers) -> Floats:
    """(M, λ) log E e^(−λT)."""
    means = np.clip(law, 0.0, None) @ np.exp(-sizes[:, np.newaxis] * rates)
    return np.log(np.maximum(means, 1e-300))


def _log_bound(chains: list[tuple[Floats, Integers, int]], seen: int) -> Floats:
    """(M,) log of the bound for walks with these laws, of each so many."""
    if not chains:
        return np.zeros(1)
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
