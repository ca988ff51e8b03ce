"""A fit as a page of text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from offrecord.models.base import Label
from offrecord.models.evidence import Verdict, lone_counts
from offrecord.models.posterior import BORROWER, LENDER
from offrecord.text import aligned, many, plain

if TYPE_CHECKING:
    from offrecord.fitting.fit import Fit

_WIDTH = 100
_NAMED = 5  # contexts that a warning names


def page(fit: Fit) -> str:
    """All that a person who has fitted a model should read beside its warnings."""
    parts = [headline(fit), *_wrapped(listed_values(fit.values)), ""]
    for table in (_order_table(fit), _window_table(fit)):
        parts += [aligned(table, right=True), ""]
    for sentence in [*map(verdict_sentence, fit.verdicts), *_sentences(fit)]:
        parts += _wrapped(sentence)
    return "\n".join(parts)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(plain(text), _WIDTH, break_on_hyphens=False)


def headline(fit: Fit) -> str:
    """What was learned from how much, in a line."""
    places = fit.posterior.places
    each = "" if places is None else f", a kernel for each {places.kind}"
    return (
        f"order {fit.posterior.order}, {many(fit.posterior.k, 'value')}{each}:"
        f" {many(fit.transitions, 'transition')}, {many(fit.records, 'record')},"
        f" {many(fit.units, 'chain')}"
    )


def listed_values(values: Mapping[Label, int]) -> str:
    """How many values there are, and which, with their counts."""
    # text in quotes, so that a blank shows
    return f"{many(len(values), 'value')}: " + ", ".join(
        f"{value!r} ({count:,})" for value, count in values.items()
    )


def publishes(fit: Fit) -> str:
    """What the model file gives away, in a line."""
    origin = fit.model.origin
    table = "" if origin is None or origin.table is None else f" of {origin.table}"
    alone = "" if origin is None else lone_counts(origin.lone_cells)
    return f"This model publishes the exact counts of {many(fit.records, 'record')}{table}{alone}."


def too_few(fit: Fit, epsilon: float) -> str:
    """The warning that windows are wide because little is known."""
    acting, mean = fit.windows[epsilon]
    rare = _seldom_seen(fit)
    return (
        f"too few records: at ε = {epsilon:g} a window takes {_records(acting)} on each side, where"
        f" the mean chain needs {_records(mean)}{rare}"
    )


def _records(window: int | None) -> str:
    return "more records than any chain has" if window is None else many(window, "record")


def _seldom_seen(fit: Fit) -> str:
    """The contexts that borrow or were seen least, by name."""
    posterior = fit.posterior
    visits = posterior.counts.sum(axis=1)
    named = list(posterior.borrowed) or [c for c in visits.argsort() if visits[c] < LENDER]
    if not named:
        return ""
    texts = [f"({_context(fit, int(c))})" for c in named[:_NAMED]]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"; seldom seen: {', '.join(texts)}{more}"


def _context(fit: Fit, context: int) -> str:
    k, order = fit.posterior.k, fit.posterior.order
    digits = [context // k**place % k for place in range(order - 1, -1, -1)]
    return ", ".join(str(fit.posterior.labels[digit]) for digit in digits)


def _sentences(fit: Fit) -> list[str]:
    posterior, said = fit.posterior, []
    if posterior.kappa is not None:
        said.append(
            f"The promise is about one more chain: rows vary with κ = {posterior.kappa:g}"
            " from chain to chain."
        )
    if len(posterior.borrowed):
        said.append(
            f"{len(posterior.borrowed)} of {len(posterior.counts)} contexts were seen fewer than"
            f" {BORROWER} times and take the row of a shorter context."
        )
    for gain in fit.gains:
        said.append(
            f"A kernel for each {gain.kind} changes the loss on held-back records from"
            f" {gain.pooled:.4f} to {gain.placed:.4f} nats a record."
        )
    return [*said, publishes(fit)]


def _order_table(fit: Fit) -> list[list[str]]:
    orders = fit.orders
    return [
        ["order", *map(str, orders.bic)],
        ["BIC", *(f"{value:,.1f}" for value in orders.bic.values())],
        ["AIC", *(f"{value:,.1f}" for value in orders.aic.values())],
    ]


def _window_table(fit: Fit) -> list[list[str]]:
    rows = [["ε", "window", "mean chain's"]]
    for epsilon, both in fit.windows.items():
        sizes = ["none" if size is None else str(size) for size in both]
        rows.append([f"{epsilon:g}", *sizes])
    return rows


def verdict_sentence(verdict: Verdict) -> str:
    """A verdict with its reasons, and for which ε."""
    return f"ε = {verdict.epsilon:g}, {verdict.words()}"
