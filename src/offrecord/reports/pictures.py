"""Pictures of policies and promises: the rule, influence, leakage, beliefs, the curve over ε.

They need a table policy and the chains it is for, and no value of any table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from offrecord.charts import Chart, belief_chart, budgets_chart, influence_chart, leakage_chart
from offrecord.charts.rule import rule_chart
from offrecord.mechanisms.deciding.expect import Geometry, expected_released
from offrecord.mechanisms.rules import (
    Direction,
    LocalRule,
    Pair,
    Setting,
    SettingKind,
    SideRule,
)
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Floats, Label
from offrecord.models.members import Members
from offrecord.models.promise import Promise
from offrecord.tables.meaning import Meaning
from offrecord.text import many, odds, share_text
from offrecord.theory.sides import margin_beyond
from offrecord.theory.window import smallest_windows

_BEYOND = 3  # records shown beyond the last that may be redacted
_MOST_LINES = 6  # values that have a line each
_LONGEST = 40  # characters of a label
_FEW = 8  # contexts up to which many chains are drawn: pictures take less than a second then
_MANY_DRAWN, _FEW_DRAWN = 400, 60  # chains in pictures; validation draws thousands
_SEED = b"offrecord pictures"
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of ε, on a curve
_MOST_SETTINGS = 8  # that windows are made for at each ε of a curve
SIDES: tuple[Direction, Direction] = ("left", "right")
_FIRST_OF: tuple[SettingKind, ...] = ("record", "run", "first", "last")


def drawn(promise: Promise) -> Members:
    """Chains for pictures: all of a list, else as many as are quickly judged."""
    contexts = promise.k**promise.order
    return promise.members(_MANY_DRAWN if contexts <= _FEW else _FEW_DRAWN, _SEED)


# ---- the rule


class RuleRows(NamedTuple):
    """A rule by distance: rows and stops as charts take them, names of the lines, and in words."""

    rows: list[dict[str, Any]]
    names: list[str]
    stops: list[dict[str, Any]]
    words: str


def shown_setting(policy: TablePolicy) -> tuple[Setting, Pair]:
    """The setting whose rules are shown: a lone record, if there is one."""
    return min(policy.rules.items(), key=lambda one: (_FIRST_OF.index(one[0].kind), one[0].place))


def rule_picture(policy: TablePolicy, promise: Promise) -> Chart:
    """The rule around a private record: redaction by distance, and where walks stop."""
    setting, pair = shown_setting(policy)
    found = rule_rows(pair, promise.mean, setting.place, promise.labels)
    return rule_chart(found.rows, found.names, found.stops, description=found.words)


def rule_rows(pair: Pair, mean: Members, place: int, labels: Sequence[Label]) -> RuleRows:
    """The rules of both sides by distance from the core, under one chain.

    pair: the rules. mean: the chain (M = 1). place: of the setting. labels: the values.
    """
    walks = not all(rule is None or isinstance(rule, LocalRule) for rule in pair)
    names = ["whatever its value, on average"] if walks else _names(labels)
    rows = [{"distance": 0, "name": name, "redaction": 1.0} for name in names]
    stops: list[dict[str, Any]] = []
    for rule, direction in zip(pair, SIDES, strict=True):
        sign = -1 if direction == "left" else 1
        if rule is None:
            continue
        chances, ends = _by_distance(rule, mean, place, direction)
        if not walks:
            chances = _lines(chances)
        for distance, row in enumerate([*chances, *np.zeros((_BEYOND, len(names)))], start=1):
            rows += [
                {"distance": sign * distance, "name": name, "redaction": float(one)}
                for name, one in zip(names, row, strict=True)
            ]
        stops += [
            {"distance": sign * distance, "probability": chance}
            for distance, chance in ends
            if chance > 0
        ]
    return RuleRows(rows, names, stops, _rule_words(pair, mean, place))


def _by_distance(
    rule: SideRule, mean: Members, place: int, direction: Direction
) -> tuple[Floats, list[tuple[int, float]]]:
    """(reach, lines) redaction by distance; and where releasing begins, how likely."""
    if isinstance(rule, LocalRule):
        return rule.redaction, []
    law = rule.stop_law(mean, place, direction)[0]
    waits = [float(law[distance:].sum()) for distance in range(1, rule.reach + 1)]
    return np.minimum(np.array(waits).reshape(-1, 1), 1.0), list(enumerate(law.tolist(), start=1))


def _names(labels: Sequence[Label]) -> list[str]:
    if len(labels) > _MOST_LINES:
        return ["of the value that it is least likely for", "of the one that it is likeliest for"]
    shown = [
        repr(one) if len(repr(one)) <= _LONGEST else f"{repr(one)[:_LONGEST]}…" for one in labels
    ]
    return [f"if its value is {one}" for one in shown]


def _lines(chances: Floats) -> Floats:
    """A column for each line."""
    if chances.shape[1] <= _MOST_LINES:
        return chances
    return np.stack((chances.min(axis=1), chances.max(axis=1)), axis=1)


def _rule_words(pair: Pair, mean: Members, place: int) -> str:
    said = []
    for rule, direction, where in zip(pair, SIDES, ("before", "after"), strict=True):
        if rule is not None:
            expected = float(rule.expected_redactions(mean, place, direction)[0])
            reach = many(rule.reach, "record")
            said.append(f"{where} it {expected:,.3g} are expected to go, at most {reach}")
    return f"Besides the private record, {'; '.join(said)}." if said else "Nothing else goes."


# ---- the model


def influence_picture(promise: Promise, place: int, epsilon: float) -> Chart:
    """Influence of records by distance: of the mean chain, and of most plausible chains.

    promise: the chains. place: of the private record. epsilon: the level that is marked.
    """
    mean, members = promise.mean, drawn(promise)
    rows: list[dict[str, Any]] = []
    most = 40 if promise.places is None else 24
    reach = 0
    for sign in (-1, 1):
        for distance in range(1, most + 1):
            central = influence_at(mean, place, sign * distance)
            if central is None:
                break
            band = influence_at(members, place, sign * distance)
            assert band is not None
            low, high = np.quantile(band, (0.005, 0.995), method="higher")  # some may be infinite
            finite = {"low": float(low), "high": float(high)} if np.isfinite(high) else {}
            row = {"record": sign * distance, "name": "mean chain", "influence": float(central[0])}
            rows.append(row | finite)
            if central[0] > epsilon / 4:
                reach = max(reach, distance)
    kept = [row for row in rows if abs(row["record"]) <= max(reach + _BEYOND, 6)]
    if not all("low" in row for row in kept):
        kept = [{name: row[name] for name in ("record", "name", "influence")} for row in kept]
    words = (
        f"Under the mean chain, records up to {many(reach, 'step')} away have more influence than a"
        " quarter of ε. The band holds 99 % of the plausible chains."
    )
    where = "Records before (−) and after the private one"
    return influence_chart(kept, epsilon, ["mean chain"], along=where, description=words)


def influence_at(members: Members, place: int, distance: int) -> Floats | None:
    """(M,) the largest log-ratio between two values of a record that a value so far away gives;
    None where chains have no such record, or fewer than `order` records up to it.
    """
    margin = margin_beyond(members, place, "right" if distance > 0 else "left")
    if margin is not None and abs(distance) > margin:
        return None
    source = place if distance > 0 else members.place_after(place, distance)
    law, k = members.law(source), members.k
    joint = law[:, :, np.newaxis] * members.ahead(source, abs(distance))
    values = (np.arange(members.contexts)[:, np.newaxis] % k == np.arange(k)).astype(np.float64)
    pairs = np.einsum("sv,mst,tw->mvw", values, joint, values, optimize=True)
    if distance < 0:
        pairs = pairs.swapaxes(1, 2)  # the private record's value comes first
    mass = pairs.sum(axis=2, keepdims=True)
    given = np.divide(pairs, mass, out=np.full_like(pairs, np.nan), where=mass > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(np.nanmax(given, axis=1)) - np.log(np.nanmin(given, axis=1))
    return np.asarray(np.nanmax(ratio, axis=1))


def leakage_picture(policy: TablePolicy, promise: Promise) -> Chart:
    """The leakage of everything that acts, under plausible chains."""
    return leakage_chart(policy.leakages(drawn(promise)), policy.epsilon)


# ---- what it means


def belief_picture(belief: Meaning) -> Chart:
    """The same as bars."""
    rows = [
        {"knowledge": "before", "probability": belief.before},
        {
            "knowledge": "private records erased",
            "probability": belief.erased,
        },
        {"knowledge": "this release", "probability": belief.after},
    ]
    words = (
        f"A private record is {str(belief.value)[:_LONGEST]} with a probability of"
        f" {share_text(belief.before)} before anything is released. If private records alone were"
        f" erased, the rest of the table could make that {share_text(belief.erased)}; this release"
        f" can make it {share_text(belief.after)} at most."
    )
    return belief_chart(rows, words)


# ---- other budgets


class Point(NamedTuple):
    """The expected share of records that leaves with a budget."""

    epsilon: float
    mechanism: str
    utility: float


def windows_over_budgets(
    policy: TablePolicy, promise: Promise, geometry: Geometry, records: int
) -> list[Point]:
    """What windows would release of this table with other budgets, estimated from a few hundred
    plausible chains; empty where that would take long.
    """
    members = drawn(promise)
    rule = promise.acceptance
    allowed = 0 if rule is None else round(members.count * (1 - rule.quantile))
    if policy.epsilon == 0 or len(policy.rules) > _MOST_SETTINGS:
        return []
    points = []
    for epsilon in (factor * policy.epsilon for factor in _FACTORS):
        rules = {}
        for setting in policy.rules:
            sizes = smallest_windows(members, *setting, epsilon, allowed)
            if sizes is None:
                break
            ends = zip(sizes, ("first", "last"), strict=True)
            sides = [
                None if setting.kind == end else LocalRule.window(size, promise.k)
                for size, end in ends
            ]
            rules[setting] = Pair(*sides)
        else:
            windows = replace(policy, mechanism="window", epsilon=epsilon, rules=rules)
            released = expected_released(geometry, windows, promise.mean)
            points.append(Point(epsilon, "window", released / max(records, 1)))
    return points


def curve_picture(points: Sequence[Point], epsilon: float, released: float | None) -> Chart:
    """Expected shares over ε, with what left."""
    names = list(dict.fromkeys(point.mechanism for point in points))
    return budgets_chart([point._asdict() for point in points], names, epsilon, released)


def odds_text(leakage: float) -> str:
    """A log-ratio as odds."""
    return f"{odds(leakage)} to 1"
