"""The privacy–utility curve: what each mechanism releases over the budget (Fig. 2)."""

from __future__ import annotations

from collections.abc import Sequence

from offrecord.charts.chart import Chart
from offrecord.charts.look import (
    INK,
    REGIONS,
    Rows,
    Spec,
    layered,
    level,
    mark,
    named_lines,
    quantity,
    values,
)

_BUDGET = "Privacy budget ε (smaller protects more)"
_SHARE = "Expected share of records released"


def utility_chart(
    rows: Rows,
    names: Sequence[str],
    title: str | None = None,
    *,
    chosen: tuple[float, float] | None = None,
    log: bool = False,
) -> Chart:
    """Utility over ε, a line for each mechanism.

    rows: epsilon, mechanism, utility. names: the mechanisms in order. title: of the picture.
    chosen: the budget and the utility of the point to mark. log: ε on a logarithmic axis.
    """
    layers = [_lines(rows, names, log)]
    if chosen is not None:
        layers += [*level("x", chosen[0], f"chosen: ε = {chosen[0]:g}"), _point(*chosen)]
    heading = title or "What each mechanism releases, over the privacy budget"
    return Chart(layered(*layers, x=_BUDGET, y=_SHARE, height=300), heading, _words(rows, names))


def budgets_chart(
    rows: Rows, names: Sequence[str], epsilon: float, released: float | None
) -> Chart:
    """The same for a table, on a logarithmic axis, with what left.

    rows: epsilon, mechanism, utility. names: the mechanisms in order. epsilon: the chosen budget.
    released: the share that left with it, if known.
    """
    layers = [_lines(rows, names, True), *level("x", epsilon, f"chosen: ε = {epsilon:g}")]
    if released is not None:
        layers.append(_point(epsilon, released))
    title = "Expected share of records released, over the privacy budget"
    return Chart(layered(*layers, x=_BUDGET, y=_SHARE), title, _words(rows, names))


def _lines(rows: Rows, names: Sequence[str], log: bool) -> Spec:
    scale: Spec = {"nice": False, **({"type": "log"} if log else {})}
    axis = {"grid": False, "format": ".3~g", "labelOverlap": True, "tickCount": 6}
    lines = mark("line", strokeWidth=2, **({"point": {"size": 30}} if log else {}))
    return {
        "data": values(rows),
        "mark": lines,
        "encoding": {
            "x": quantity("epsilon", scale=scale, axis=axis),
            "y": quantity(
                "utility",
                scale={"zero": False},
                axis={"format": _percents(rows), "tickCount": 6},
            ),
            "order": {"field": "epsilon"},
            **named_lines("mechanism", names),
        },
    }


def _percents(rows: Rows) -> str:
    """As many digits as the ticks need."""
    shares = [row["utility"] for row in rows]
    spread = max(shares) - min(shares) if shares else 1.0
    return ".0%" if spread > 0.05 else ".1%" if spread > 0.005 else ".2%"


def _point(epsilon: float, utility: float) -> Spec:
    where = {"x": quantity("epsilon"), "y": quantity("utility")}
    diamond = mark("point", shape="diamond", size=140, filled=True, opacity=1, stroke=INK)
    colour = {"color": {"value": REGIONS["L"]}}
    data = values([{"epsilon": epsilon, "utility": utility}])
    return {"data": data, "mark": diamond, "encoding": where | colour}


def _words(rows: Rows, names: Sequence[str]) -> str:
    """From which share each line rises to which."""
    said = []
    for name in names:
        mine = sorted((row["epsilon"], row["utility"]) for row in rows if row["mechanism"] == name)
        if mine:
            (low, least), (high, most) = mine[0], mine[-1]
            said.append(f"{name}: from {least:.1%} at ε = {low:.3g} to {most:.1%} at {high:.3g}")
    return "; ".join(said) + "."
