"""The pictures there are: rules, influence, utility, leakage, beliefs, what attackers find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from offrecord.charts.chart import Chart
from offrecord.charts.look import (
    INK,
    PALETTE,
    REGIONS,
    Rows,
    Spec,
    layer,
    layered,
    level,
    lines,
    number,
    scaled,
)
from offrecord.models.base import Floats
from offrecord.text import many, odds

_CHANCE = "Probability of being redacted"
_RECORDS: Spec = {
    "axis": {"tickMinStep": 1, "grid": False, "format": "d"},
    "scale": {"nice": False, "zero": False},
}
#: Points closer than these would touch and hide the dashes of their line.
_MOST_POINTS = 200
_BINS = 40  # a bar is wide enough to be seen, and one chain in 8,000 shows as a line
_KNOWLEDGE = ("#9b9ba8", PALETTE[2], PALETTE[0])  # before, erasure, release
_POINTS = 400  # of a line, more than a screen shows

# ---- the rule


def rule_chart(
    rows: Rows, names: Sequence[str], stops: Rows = (), *, description: str = ""
) -> Chart:
    """How likely each record around a private one is redacted, over the paper's regions.

    For stopping rules a line says how likely the walk has not stopped yet, and bars where it stops.

    rows: distance (below 0 before the private record), name, redaction. names: of the lines, in
    order. stops: distance, probability. description: what the picture shows, in words.
    """
    sides = _parted([row for row in rows if row["distance"]], "distance")
    bar = {"x": number("distance"), "y": number("probability"), "y2": {"datum": 0}}
    layers = [
        *_lettered(rule_regions(rows)),
        layer("rect", [{"from": -0.5, "to": 0.5}], _span(), color=INK),
        layer("rule", stops, bar, color=PALETTE[4], strokeWidth=5, opacity=0.75),
        _chances(sides, "distance", names, part="side"),
    ]
    title = "How likely the records around a private one are redacted"
    along = "Records before (−) and after the private one"
    return Chart(layered(layers, x=along, y=_CHANCE, height=240), title, description)


def redaction_chart(rows: Rows, names: Sequence[str]) -> Chart:
    """Fig. 3: Pr(Y_t = ⊥ | X_t = 0) by record, a line for each mechanism.

    rows: record, name, redaction. names: the mechanisms in order.
    """
    words = f"Lines of redaction probabilities by record, for {', '.join(names)}."
    spec = layered([_chances(rows, "record", names)], x="Record t", y=_CHANCE, height=300)
    return Chart(spec, "Probability of redacting the value 0", words)


def _chances(rows: Rows, along: str, names: Sequence[str], part: str = "") -> Spec:
    style = {"point": {"size": 22}} if len(rows) < _MOST_POINTS else {}
    axis = {"format": ".0%", "tickCount": 5}
    # the whole range, so that pictures of two rules can be compared
    chance = number("redaction", scale={"domain": [0, 1]}, axis=axis)
    return lines(rows, number(along, **_RECORDS), chance, "name", names, part=part, **style)


def _parted(rows: Rows, along: str) -> Rows:
    # The rows, each with the side that it is on: no line crosses the private record.
    return [{"side": row[along] > 0} | row for row in rows]


# ---- regions


def rule_regions(rows: Rows) -> list[Spec]:
    """The regions of a rule. L: redacted whatever the value, S: never, M: the rest.

    The private record itself belongs to no region.
    """
    chances: dict[int, list[float]] = {}
    for row in rows:
        chances.setdefault(row["distance"], []).append(row["redaction"])
    return bands((distance, _region(those)) for distance, those in chances.items() if distance)


def _region(chances: Sequence[float]) -> str:
    return "L" if min(chances) == 1 else "S" if max(chances) == 0 else "M"


def bands(regions: Iterable[tuple[int, str]]) -> list[Spec]:
    """Runs of records of one region: from, to, region."""
    found: list[Spec] = []
    for record, region in sorted(set(regions)):
        if found and found[-1]["region"] == region and found[-1]["to"] == record - 0.5:
            found[-1]["to"] = record + 0.5
        else:
            found.append({"from": record - 0.5, "to": record + 0.5, "region": region})
    return found


def _span() -> Spec:
    return {"x": number("from"), "x2": {"field": "to"}}


def _shades(found: Rows, legend: Spec | None) -> Spec:
    colour = scaled("region", list(REGIONS), list(REGIONS.values()), legend=legend)
    return layer("rect", found, _span() | {"fill": colour}, opacity=0.2)


def _lettered(found: Rows) -> list[Spec]:
    width = found[-1]["to"] - found[0]["from"] if found else 0.0
    letters = [_centred(one) for one in found if one["to"] - one["from"] > width / 40]
    where = {"x": number("middle"), "y": {"value": 0}, "text": {"field": "region"}}
    style = {"fontWeight": "bold", "baseline": "bottom", "dy": -4}
    return [_shades(found, None), layer("text", letters, where, **style)]


def _centred(band: Spec) -> Spec:
    return band | {"middle": (band["from"] + band["to"]) / 2}


# ---- influence


def influence_chart(
    rows: Rows,
    threshold: float,
    names: Sequence[str],
    *,
    along: str = "Distance t − p from the private record",
    name: str = "ε",
    description: str = "",
) -> Chart:
    """Fig. 1: the influence of each record on the private one, a line for each name.

    rows: record, name, influence; side where records do not count from the private one; low and
    high where plausible chains differ; region where regions are shaded. Infinite influence is not
    drawn. threshold: the level above which a record leaks too much. names: of the lines, in order.
    along: what records count. name: of the threshold. description: what the picture shows, in
    words.
    """
    # an infinite influence, as of a value that rules others out, has no place on an axis
    finite = _parted([row for row in rows if row["influence"] != float("inf")], "record")
    layers = [*_shaded(rows), *_ranges(finite)]
    records, influence = number("record", **_RECORDS), number("influence")
    layers.append(lines(finite, records, influence, "name", names, part="side", point={"size": 22}))
    layers += level("y", threshold, f"{name} = {threshold:g}")
    spec = layered(layers, x=along, y="Influence (log of odds)")
    return Chart(spec, "Influence of each record on the private one", description)


def _shaded(rows: Rows) -> list[Spec]:
    if not rows or "region" not in rows[0]:
        return []
    legend = {"title": "region", "symbolType": "square", "columns": 3}
    return [_shades(bands((row["record"], row["region"]) for row in rows), legend)]


def _ranges(rows: Rows) -> list[Spec]:
    # What plausible chains say: an area from the lowest to the highest of them.
    if not rows or "low" not in rows[0]:
        return []
    between = {"x": number("record"), "y": number("low"), "y2": {"field": "high"}}
    apart = {"detail": [{"field": "name"}, {"field": "side"}]}
    return [layer("area", rows, between | apart, color=PALETTE[0], opacity=0.15)]


# ---- utility


def utility_chart(
    rows: Rows,
    names: Sequence[str],
    *,
    chosen: tuple[float, float] | None = None,
    log: bool = False,
) -> Chart:
    """Utility over ε (Fig. 2), a line for each mechanism.

    rows: epsilon, mechanism, utility. names: the mechanisms in order. chosen: the budget and the
    utility of the point to mark. log: ε on a logarithmic axis.
    """
    style: Spec = {"point": {"size": 30}} if log else {}
    layers = [lines(rows, _budgets(log=log), _released(rows), "mechanism", names, **style)]
    if chosen is not None:
        layers += [*level("x", chosen[0], f"chosen: ε = {chosen[0]:g}"), _diamond(*chosen)]
    along = "Privacy budget ε (smaller protects more)"
    spec = layered(layers, x=along, y="Expected share of records released", height=300)
    return Chart(spec, "What each mechanism releases, over the privacy budget", _words(rows, names))


def _budgets(*, log: bool) -> Spec:
    scale: Spec = {"nice": False, **({"type": "log"} if log else {})}
    ticks = {"grid": False, "format": ".3~g", "labelOverlap": True, "tickCount": 6}
    return number("epsilon", scale=scale, axis=ticks)


def _released(rows: Rows) -> Spec:
    axis = {"format": _percents(rows), "tickCount": 6}
    # shares differ by a few per cent: an axis from zero would hide that
    return number("utility", scale={"zero": False}, axis=axis)


def _percents(rows: Rows) -> str:
    shares = [row["utility"] for row in rows]
    spread = max(shares) - min(shares) if shares else 1.0
    return ".0%" if spread > 0.05 else ".1%" if spread > 0.005 else ".2%"


def _diamond(epsilon: float, utility: float) -> Spec:
    where = {"x": number("epsilon"), "y": number("utility"), "color": {"value": REGIONS["L"]}}
    style = {"shape": "diamond", "size": 140, "filled": True, "opacity": 1, "stroke": INK}
    return layer("point", [{"epsilon": epsilon, "utility": utility}], where, **style)


def _words(rows: Rows, names: Sequence[str]) -> str:
    curves = {name: [row for row in rows if row["mechanism"] == name] for name in names}
    return "; ".join(_ends(name, curve) for name, curve in curves.items() if curve) + "."


def _ends(name: str, curve: Rows) -> str:
    points = sorted((row["epsilon"], row["utility"]) for row in curve)
    (low, least), (high, most) = points[0], points[-1]
    return f"{name}: from {least:.1%} at ε = {low:.3g} to {most:.1%} at {high:.3g}"


# ---- leakage, and what it means


def leakage_chart(leakages: Floats, epsilon: float) -> Chart:
    """How many chains have which leakage; those above ε in another colour.

    leakages: (M,) of each chain; infinite ones stand in the last bar. epsilon: the budget.
    """
    rows = _histogram(leakages, epsilon)
    colour = {"condition": {"test": "datum.above", "value": REGIONS["L"]}, "value": PALETTE[0]}
    channels = {
        "x": number("from", scale={"zero": True}),
        "x2": {"field": "to"},
        "y": number("chains", axis={"tickMinStep": 1}),
        "y2": {"datum": 0},
        "color": colour,
    }
    layers = [layer("rect", rows, channels, opacity=0.85), *level("x", epsilon, f"ε = {epsilon:g}")]
    median, high = np.quantile(leakages, (0.5, 0.99), method="higher").tolist()
    words = (
        f"In {int((leakages > epsilon).sum()):,} of {many(len(leakages), 'plausible chain')} drawn"
        f" for this picture the odds exceed {odds(epsilon)} to 1, which is promised. They are at"
        f" most {odds(median)} to 1 in half of these chains, and at most {odds(high)} to 1 in 99 %."
    )
    along = "Leakage of the release (log of odds)"
    spec = layered(layers, x=along, y="Plausible chains", height=220)
    return Chart(spec, "Leakage under the chains that the data leave plausible", words)


def _histogram(leakages: Floats, epsilon: float) -> list[Spec]:
    # Bars that hold a chain: from, to, chains, above.
    finite = leakages[np.isfinite(leakages)]
    top = max(float(finite.max(initial=0.0)), epsilon) * 1.02 or 1.0
    edges = _edges(epsilon, top)
    counts, _ = np.histogram(np.minimum(leakages, top), edges)
    bars = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    return [
        {"from": low, "to": high, "chains": count, "above": low >= epsilon}
        for low, high, count in bars
        if count
    ]


def _edges(epsilon: float, top: float) -> Floats:
    # ε is an edge of two bars, so that no bar holds chains on both sides of it
    steps = int(np.ceil(_BINS * epsilon / top)) if epsilon > 0 else 0
    below = np.linspace(0.0, epsilon, steps + 1)
    return np.append(below, np.linspace(epsilon, top, max(_BINS - steps, 1) + 1)[1:])


def belief_chart(rows: Rows, description: str) -> Chart:
    """A bar for each state of knowledge: how likely one value is.

    rows: knowledge, probability, in the order of the bars. description: what the picture shows, in
    words.
    """
    names = [row["knowledge"] for row in rows]
    labelled = [row | {"text": f"{row['probability']:.1%}"} for row in rows]
    wide = {"labelLimit": 320, "domain": False, "ticks": False}
    share = number("probability", scale={"domain": [0, 1]}, axis={"format": "%", "tickCount": 5})
    bar = {"x": share, "y": {"field": "knowledge", "type": "nominal", "sort": names, "axis": wide}}
    colour = {"color": scaled("knowledge", names, _KNOWLEDGE, legend=None)}
    text = {"text": {"field": "text"}}
    layers = [
        layer("bar", labelled, bar | colour),
        layer("text", labelled, bar | text, align="left", dx=4),
    ]
    along = "How likely the value is, to an attacker"
    spec = layered(layers, x=along, y=None, height=34 * len(rows))
    return Chart(spec, "What an attacker infers about a private record", description)


def ratio_chart(ratios: Mapping[str, Floats], epsilon: float) -> Chart:
    """What attackers infer.

    ratios: by attacker, a log-ratio for each private run; NaN where none was found. Infinite ones
    stand at the edge. epsilon: the budget.
    """
    some = {name: one[~np.isnan(one)] for name, one in ratios.items()}
    # infinite ratios stand just beyond the largest finite one
    edge = 1.05 * max([epsilon, *map(_largest, some.values())])
    rows = [
        {"attacker": name, "share": share, "ratio": ratio}
        for name, one in some.items()
        for share, ratio in _sorted(one, edge)
    ]
    within = [{"low": -epsilon, "high": epsilon}]
    between = {"y": number("low"), "y2": {"field": "high"}}
    share = number("share", axis={"format": "%"})
    layers = [
        layer("rect", within, between, color="#e8e8e8", opacity=0.6),
        lines(rows, share, number("ratio"), "attacker", list(some), interpolate="step-before"),
        *level("y", epsilon, "ε"),
        *level("y", -epsilon, "−ε"),
    ]
    most = [f"{name}: at most {np.abs(one).max(initial=0.0):.3g}" for name, one in some.items()]
    words = "; ".join(f"{one} in size" for one in most)
    spec = layered(layers, x="Private runs, sorted", y="Log of how far the odds moved")
    return Chart(spec, "How far the release moved the odds on each private run", f"{words}.")


def _largest(ratios: Floats) -> float:
    return float(np.abs(ratios[np.isfinite(ratios)]).max(initial=0.0))


def _sorted(ratios: Floats, edge: float) -> list[tuple[float, float]]:
    # Points of a sorted line, the first and the last among them.
    if not len(ratios):
        return []
    ordered = np.sort(np.clip(ratios, -edge, edge))
    at = np.unique(np.linspace(0, len(ordered) - 1, _POINTS).round().astype(int))
    shares = [0.0, *((at + 1) / len(ordered)).tolist()]
    return list(zip(shares, [ordered[0].item(), *ordered[at].tolist()], strict=True))
