"""What the records around a secret tell about it, by the model alone."""

from __future__ import annotations

import numpy as np

from offrecord.charts.influence import bands
from offrecord.errors import InputError
from offrecord.explorer.budgets import budgets
from offrecord.explorer.copies import copies_of
from offrecord.explorer.forms import Band, Influence, Level, Regions, Span
from offrecord.explorer.secrets import looked_at, name_of
from offrecord.explorer.state import Asked, FieldError
from offrecord.models.base import Floats, Integers
from offrecord.text import many
from offrecord.theory.influence import pointwise_influence, regions
from offrecord.theory.problem import Problem, Secret

_FEW = 60  # records that are all shown
_NEAREST, _FURTHEST = 20, 60  # records shown on either side of a secret, where there are so many


def regions_of(asked: Asked) -> Regions:
    """Influence and regions around the secret that is looked at."""
    problem = asked.problem()
    about, secret = looked_at(problem, asked.about)
    span = shown_around(problem, secret)
    rows = _influence(problem, secret, span)
    found = [
        {"record": record, "region": region} for record, region in _regions(problem, secret, span)
    ]
    return Regions(
        question=_question(problem),
        notes=_notes(asked, problem),
        labels=list(map(str, problem.chain.labels)),
        epsilon=problem.epsilon,
        secrets=[name_of(one) for one in problem.secrets],
        about=about,
        secret=Span(first=secret.first, last=secret.last),
        shown=span,
        influence=rows,
        regions=[Band.model_validate(one) for one in bands(found)],
        threshold=[Level(level=problem.epsilon, name=f"ε = {problem.epsilon:g}")],
        budgets=budgets(asked.epsilon),
        copies=copies_of(asked, problem),
    )


def shown_around(problem: Problem, secret: Secret) -> Span:
    """The records that pictures show: all if they are few, else further where records tell more
    from afar.
    """
    if problem.n <= _FEW:
        return Span(first=1, last=problem.n)
    left, right = problem.sides(secret)
    reach = _NEAREST
    for place, sign, side in ((secret.first, -1, left), (secret.last, 1, right)):
        distance = np.arange(1, min(side.room, _FURTHEST) + 1)
        if len(distance):
            most = _of_records(problem, place, place + sign * distance).max(axis=1)
            reach = max(reach, int((most > problem.epsilon / 4).sum()) + 3)
    reach = min(reach, _FURTHEST)
    last = min(secret.last + reach, problem.n, secret.first + 2 * _FURTHEST)
    return Span(first=max(secret.first - reach, 1), last=max(last, secret.first))


def _of_records(problem: Problem, private: int, records: Integers) -> Floats:
    try:
        return pointwise_influence(problem.chain, private, records)
    except InputError as error:  # values too rare to compute with
        raise FieldError("model", str(error)) from None


def _sides(secret: Secret, span: Span) -> list[tuple[str, int, Integers]]:
    """Either side of a secret: the nearest of its records, and the records there."""
    left, right = np.arange(span.first, secret.first), np.arange(secret.last + 1, span.last + 1)
    return [("left", secret.first, left), ("right", secret.last, right)]


def _influence(problem: Problem, secret: Secret, span: Span) -> list[Influence]:
    rows = []
    for side, place, records in _sides(secret, span):
        if not len(records):
            continue
        found = _of_records(problem, place, records)
        for record, row in zip(records.tolist(), found.tolist(), strict=True):
            for label, value in zip(problem.chain.labels, row, strict=True):
                if np.isfinite(value):
                    rows.append(
                        Influence.model_construct(
                            record=record, side=side, value=str(label), influence=value
                        )
                    )
    return rows


def _regions(problem: Problem, secret: Secret, span: Span) -> list[tuple[int, str]]:
    found = []
    for _, place, records in _sides(secret, span):
        if len(records):
            named = regions(problem.chain, place, records, problem.epsilon)
            found += list(zip(records.tolist(), named.tolist(), strict=True))
    return found


def _question(problem: Problem) -> str:
    named = [name_of(one).removeprefix("records ").removeprefix("record ") for one in _few(problem)]
    more = len(problem.secrets) - len(named)
    named += [f"{more} more"] if more else []
    listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    one = len(problem.private) == 1
    return (
        f"{many(problem.n, 'record')}; {'record' if one else 'records'} {listed}"
        f" {'is' if one else 'are'} private. What else must be withheld, so that nobody's odds on"
        f" {'it' if one else 'them'} move by more than a factor of e^{problem.epsilon:g} ="
        f" {np.exp(problem.epsilon):.3g}?"
    )


def _few(problem: Problem) -> list[Secret]:
    return problem.secrets[:4] if len(problem.secrets) > 5 else problem.secrets


def _notes(asked: Asked, problem: Problem) -> list[str]:
    notes = []
    if problem.epsilon != asked.epsilon:
        share = problem.epsilon / asked.epsilon
        notes.append(f"the model is calibrated: designs are made for {share:g} of ε")
    if problem.models is not None:
        notes.append(
            "the model comes with a set of models: mechanisms keep the promise for all of them,"
            " influence and samples are of the one in the middle"
        )
    return notes
