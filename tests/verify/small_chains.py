"""Small problems, and what their designs tell by the definition: every output, in fractions."""

from fractions import Fraction
from itertools import product

import numpy as np

from offrecord.release.certificate import Model, ModelSet
from offrecord.verify.problem import Problem, Secret, Stretch


def fraction(number):
    return Fraction(repr(float(number)))


def decimals(rng, k, zeros=0.0):
    """A row of probabilities of two digits."""
    while True:
        parts = rng.dirichlet(np.full(k, 0.8)) * (rng.random(k) >= zeros)
        if parts.sum() > 0:
            break
    row = np.round(parts / parts.sum(), 2)
    row[row.argmax()] = 0.0
    row[row.argmax() if row.sum() > 1 else int(np.argmax(parts))] += round(1 - row.sum(), 2)
    return [round(float(one), 2) for one in np.clip(row, 0, 1)]


def nested(numbers, k, axes):
    """Rows as lists in lists, as tuples."""
    array = np.array(numbers, dtype=float).reshape((k,) * axes)

    def tuples(part):
        return tuple(map(tuples, part)) if isinstance(part, list) else part

    return tuples(array.tolist())


def model_of(transition, start, *, k, order=1, stationary=False, shows=None, models=None):
    return Model(
        order=order,
        labels=tuple(range(k)),
        shows=shows,
        transition=transition,
        start=start,
        stationary=stationary,
        set=models,
    )


def box_of(forward, backward):
    return ModelSet(
        confidence=None, interval=None, start="stationary", forward=forward, backward=backward
    )


def random_redaction(rng, n, k, secrets):
    """Rows of doubles, many of them 0 and 1."""
    matrix = rng.choice([0.0, 1.0, 0.25, 0.5, 0.9], size=(n, k))
    plain = rng.random(n)
    matrix[plain < 0.25] = 1.0
    matrix[plain > 0.85] = 0.0
    for first, last in secrets:
        matrix[first : last + 1] = 1.0
    return matrix


def problem_of(model, matrix, secrets, phases=None):
    rows = [Stretch(1, tuple(row)) for row in matrix.tolist()]
    together = []
    for row in rows:
        if together and together[-1].row == row.row:
            together[-1] = Stretch(together[-1].records + 1, row.row)
        else:
            together.append(row)
    return Problem(
        model, len(matrix), tuple(together), tuple(Secret(*one) for one in secrets), phases
    )


def told_by_definition(likelihood, matrix, secrets, k):
    """The largest ratio of Pr(output | secret's values), over outputs and secrets, as a fraction;
    None: it is infinite. likelihood: of all values of a chain.
    """
    n = len(matrix)
    shares = [[Fraction(one) for one in row] for row in matrix.tolist()]
    chains = [(values, likelihood(values)) for values in product(range(k), repeat=n)]
    chains = [(values, p) for values, p in chains if p]
    worst = Fraction(1)
    for first, last in secrets:
        mass, told = {}, {}
        for values, p in chains:
            secret = values[first : last + 1]
            mass[secret] = mass.get(secret, 0) + p
            for output, share in outputs(values, shares):
                own = told.setdefault(output, {})
                own[secret] = own.get(secret, 0) + p * share
        for own in told.values():
            found = [own.get(secret, 0) / mass[secret] for secret in mass]
            if max(found) == 0:
                continue
            if min(found) == 0:
                return None
            worst = max(worst, max(found) / min(found))
    return worst


def outputs(values, shares):
    """What may be seen of a chain, and how likely that is."""
    found = [((), Fraction(1))]
    for value, row in zip(values, shares, strict=True):
        share = row[value]
        longer = []
        for output, p in found:
            if share > 0:
                longer.append(((*output, None), p * share))
            if share < 1:
                longer.append(((*output, value), p * (1 - share)))
        found = longer
    return found
