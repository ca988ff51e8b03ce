"""Pictures of policies and promises: the rule, influence, leakage, beliefs, the curve over ε.

They need a table policy and the chains it is for, and no value of any table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from offrecord.charts import (
    Chart,
    belief_chart,
    influence_chart,
    leakage_chart,
    rule_chart,
    utility_chart,
)
from offrecord.mechanisms.deciding.expect import Geometry
from offrecord.mechanisms.rules import Direction, LocalRule, Pair, Setting, SettingKind, SideRule
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Floats, Label
from offrecord.models.members import Members
from offrecord.models.promise import Promise
from offrecord.tables.advice import released_by, windows_of
from offrecord.tables.meaning import Meaning
from offrecord.text import many, share_text
from offrecord.theory.sides import margin_beyond

_BEYOND = 3  # records shown beyond the last that may be redacted
_LEAST = 6  # records shown on each side in any case
_MOST_LINES = 6  # values that have a line each
_LONGEST = 40  # characters of a label
_FEW = 8  # contexts up to which many chains are drawn: pictures take less than a second then
_MANY_DRAWN, _FEW_DRAWN = 400, 60  # chains in pictures; validation draws thousands
_SEED = b"offrecord pictures"  # the same release has the same page
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of ε, on a curve
_MOST_SETTINGS = 8  # that windows are made for at each ε of a curve
SIDES: tuple[Direction, Direction] = ("left", "right")
_FIRST_OF: tuple[SettingKind, ...] = ("record", "run", "first", "last")


def drawn(promise: Promise) -> Members:
    """Chains for pictures: all of a list, else as many as are quickly judged."""
    contexts = promise.k**promise.order
    return promise.members(_MANY_DRAWN if contexts <= _FEW else _FEW_DRAWN, _SEED)


# ---- the rule


def shown_setting(policy: TablePolicy) -> tuple[Setting, Pair]:
    """The setting whose rules are shown: a lone record, if there is one."""
    return min(policy.rules.items(), key=lambda one: (_FIRST_OF.index(one[0].kind), one[0].place))


def rule_picture(policy: TablePolicy, promise: Promise) -> Chart:
    """The rule around a private record: redaction by distance, and where walks stop."""
    setting, pair = shown_setting(policy)
    return pair_picture(pair, promise.mean, setting.place, promise.labels)


def pair_picture(pair: Pair, mean: Members, place: int, labels: Sequence[Label]) -> Chart:
    """The rules of both sides by distance from the core, under one chain.

    pair: the rules. mean: the chain (M = 1). place: of the setting. labels: the values.
    """
    is_local = all(rule is None or isinstance(rule, LocalRule) for rule in pair)
    names = _names(labels) if is_local else ["whatever its value, on average"]
    rows = [{"distance": 0, "name": name, "redaction": 1.0} for name in names]
    stops: list[dict[str, Any]] = []
    for rule, direction, sign in zip(pair, SIDES, (-1, 1), strict=True):
        if rule is not None:
            chances, ends = _by_distance(rule, mean, place, direction)
            rows += _distances(np.vstack((chances, np.zeros((_BEYOND, len(names))))), names, sign)
            stops += _stops(ends, sign)
    return rule_chart(rows, names, stops, description=_rule_words(pair, mean, place))


def _distances(chances: Floats, names: Sequence[str], sign: int) -> Iterator[dict[str, Any]]:
    for distance, row in enumerate(chances.tolist(), start=1):
        for name, one in zip(names, row, strict=True):
            yield {"distance": sign * distance, "name": name, "redaction": one}


def _stops(ends: Sequence[float], sign: int) -> list[dict[str, Any]]:
    found = enumerate(ends, start=1)
    return [{"distance": sign * at, "probability": one} for at, one in found if one > 0]


def _by_distance(
    rule: SideRule, mean: Members, place: int, direction: Direction
) -> tuple[Floats, list[float]]:
    # (reach, lines) redaction by distance; and how likely releasing begins at each distance.
    if isinstance(rule, LocalRule):
        return _by_value(rule.redaction), []
    # a record goes as long as the walk has not stopped before it
    law = rule.stop_law(mean, place, direction)[0]
    waits = [float(law[distance:].sum()) for distance in range(1, rule.reach + 1)]
    return np.minimum(np.array(waits).reshape(-1, 1), 1.0), law.tolist()


def _by_value(chances: Floats) -> Floats:
    if chances.shape[1] <= _MOST_LINES:
        return chances
    return np.stack((chances.min(axis=1), chances.max(axis=1)), axis=1)


def _names(labels: Sequence[Label]) -> list[str]:
    if len(labels) > _MOST_LINES:
        return ["of the value that it is least likely for", "of the one that it is likeliest for"]
    return [f"if its value is {_cut(repr(one))}" for one in labels]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _rule_words(pair: Pair, mean: Members, place: int) -> str:
    said = []
    for rule, direction, where in zip(pair, SIDES, ("before", "after"), strict=True):
        if rule is not None:
            expected = float(rule.expected_redactions(mean, place, direction)[0])
            said.append(
                f"{expected:,.3g} of the records {where} it (never more than {rule.reach:,})"
            )
    if not said:
        return "Nothing else is redacted."
    return f"Besides the private record, on average {' and '.join(said)} are redacted."


# ---- the model


def influence_picture(promise: Promise, place: int, epsilon: float) -> Chart:
    """Influence of records by distance: of the mean chain, and of most plausible chains.

    promise: the chains. place: of the private record. epsilon: the level that is marked.
    """
    rows = [*_influences(promise, place, -1), *_influences(promise, place, 1)]
    far = [abs(row["record"]) for row in rows if row["influence"] > epsilon / 4]
    reach = max(far, default=0)
    kept = [row for row in rows if abs(row["record"]) <= max(reach + _BEYOND, _LEAST)]
    if any(row["high"] == np.inf for row in kept):  # a band with a gap would mislead
        kept = [{name: row[name] for name in ("record", "name", "influence")} for row in kept]
    words = (
        f"Under the mean chain, records up to {many(reach, 'step')} away have more influence than a"
        " quarter of ε. The band holds 99 % of the plausible chains."
    )
    where = "Records before (−) and after the private one"
    return influence_chart(kept, epsilon, ["mean chain"], along=where, description=words)


def _influences(promise: Promise, place: int, sign: int) -> Iterator[dict[str, Any]]:
    # The records on one side, as far as a chain has them.
    members = drawn(promise)
    for distance in range(1, (40 if promise.places is None else 24) + 1):
        central = influence_at(promise.mean, place, sign * distance)
        band = influence_at(members, place, sign * distance)
        if central is None or band is None:
            return
        low, high = np.quantile(band, (0.005, 0.995), method="higher").tolist()
        record = {"record": sign * distance, "name": "mean chain", "influence": float(central[0])}
        yield record | {"low": low, "high": high}


def influence_at(members: Members, place: int, distance: int) -> Floats | None:
    """(M,) the largest log-ratio between two values of a record that a value so far away gives;
    None where chains have no such record, or fewer than `order` records up to it.
    """
    margin = margin_beyond(members, place, "right" if distance > 0 else "left")
    if margin is not None and abs(distance) > margin:
        return None
    pairs = _joint(members, place, distance)
    mass = pairs.sum(axis=2, keepdims=True)
    given = np.divide(pairs, mass, out=np.full_like(pairs, np.nan), where=mass > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(np.nanmax(given, axis=1)) - np.log(np.nanmin(given, axis=1))
    return np.asarray(np.nanmax(ratio, axis=1))


def _joint(members: Members, place: int, distance: int) -> Floats:
    # (M, k, k) joint law of the private record's value and that of a record so far away.
    source = place if distance > 0 else members.place_after(place, distance)
    law, k = members.law(source), members.k
    joint = law[:, :, np.newaxis] * members.ahead(source, abs(distance))
    # a context is a number to the base k, whose last digit is the value of its last record
    values = (np.arange(members.contexts)[:, np.newaxis] % k == np.arange(k)).astype(np.float64)
    pairs = np.einsum("sv,mst,tw->mvw", values, joint, values, optimize=True)
    return pairs.swapaxes(1, 2) if distance < 0 else np.asarray(pairs)


def leakage_picture(policy: TablePolicy, promise: Promise) -> Chart:
    """The leakage of everything that acts, under plausible chains."""
    return leakage_chart(policy.leakages(drawn(promise)), policy.epsilon)


def belief_picture(belief: Meaning) -> Chart:
    """What the leakage means, as bars."""
    named = ("before", "private records erased", "this release")
    known = (belief.before, belief.erased, belief.after)
    rows = [{"knowledge": name, "probability": one} for name, one in zip(named, known, strict=True)]
    before, erased, after = map(share_text, known)
    words = (
        f"A private record is {_cut(str(belief.value))} with a probability of {before} before"
        " anything is released. If private records alone were erased, the rest of the table could"
        f" make that {erased}; this release can make it {after} at most."
    )
    return belief_chart(rows, words)


# ---- other budgets


class Point(NamedTuple):
    """The expected share of records that leaves with a budget."""

    epsilon: float
    mechanism: str
    utility: float


def windows_over_budgets(
    policy: TablePolicy,
    promise: Promise,
    geometry: Geometry,
    records: int,
    known: float | None = None,
) -> list[Point]:
    """What windows would release of this table with other budgets, estimated from a few plausible
    chains; empty where that would take long. known: what is known of windows at the policy's ε.
    """
    if policy.epsilon == 0 or len(policy.rules) > _MOST_SETTINGS:
        return []
    members, points = drawn(promise), []
    for factor in _FACTORS:
        epsilon = factor * policy.epsilon
        windows = windows_of(policy.rules, promise, members, epsilon)
        if windows is not None:
            share = released_by(windows, promise, geometry, epsilon) / max(records, 1)
            points.append(Point(epsilon, "window", _beside(share, known, factor)))
    return points


def _beside(share: float, known: float | None, factor: float) -> float:
    # Windows that act also allow for chains that few draws do not show: for as much protection, or
    # more, an estimate must not look better than they do.
    if known is None or factor == 1:
        return share if known is None else known
    return min(share, known) if factor < 1 else max(share, known)


def curve_picture(points: Sequence[Point], epsilon: float, released: float) -> Chart:
    """Expected shares over ε, with what left."""
    rows = [point._asdict() for point in points]
    return utility_chart(rows, ["window"], chosen=(epsilon, released), log=True)
