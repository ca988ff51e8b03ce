"""Bounds over sets of three and more states against the truth, in rational numbers: every output of
a side, every corner of every step (R5). Never below it, not by a unit in the last place.
"""

from fractions import Fraction
from itertools import product

import flint
import numpy as np
import pytest

from offrecord.verify import sets
from offrecord.verify.problem import Stretch
from offrecord.verify.sets import bounds, cones
from offrecord.verify.sets.boxes import Box, tightened
from offrecord.verify.sets.walks import Walk

TINY = (1e-4, 1e-9, 1e-30, 1e-59, 1e-90, 5e-324)


def exact(number):
    return Fraction(repr(float(number)))


def random_row(rng, k):
    """Intervals of a row: narrow or wide, with zeros, unseen transitions and tiny entries."""
    p = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])))
    p[rng.random(k) < rng.choice([0, 0.3])] = 0.0
    p[rng.random(k) < rng.choice([0, 0.3])] = rng.choice(TINY)
    p = p / p.sum() if p.sum() > 0 else np.eye(k)[rng.integers(k)]
    width = rng.choice([0.0, 1e-3, 0.05, 0.4])
    low = np.clip(p - width * rng.random(k), 0, 1)
    high = np.where(p > 0, np.clip(p + width * rng.random(k), 0, 1), 0.0)
    digits = int(rng.choice([2, 4, 17]))
    kept = high > 0
    low, high = low.round(digits), high.round(digits)
    high[kept & (high == 0)] = rng.choice(TINY)
    if rng.random() < 0.2:
        low[:] = 0.0
    return np.minimum(low, high).tolist(), high.tolist()


def random_box(rng, k):
    """A box of kernels, and its intervals as they were given."""
    given = [random_row(rng, k) for _ in range(k)]
    rows = [
        tightened(*([flint.fmpq(*exact(one).as_integer_ratio()) for one in row] for row in ends))
        for ends in given
    ]
    return Box([low for low, _ in rows], [high for _, high in rows]), given


def within(given):
    """Each row of a box as exact numbers; where it cannot sum to 1, widened by what is missing."""
    found = []
    for ends in given:
        low, high = ([exact(one) for one in row] for row in ends)
        missing = max(sum(low) - 1, 1 - sum(high), Fraction(0))
        found.append(
            (
                [max(one - missing, Fraction(0)) for one in low],
                [one + missing if one > 0 else one for one in high],
            )
        )
    return found


def extremes(row, h):
    """The least and the largest average of h by a row of the set: a linear programme, solved by
    putting what the least probabilities leave on the smallest, or the largest, numbers first.
    """
    low, high = row
    found = []
    for sign in (1, -1):
        rest, total = 1 - sum(low), sum(p * x for p, x in zip(low, h, strict=True))
        for j in sorted(range(len(h)), key=lambda at: sign * h[at]):
            given = min(rest, high[j] - low[j])
            total, rest = total + given * h[j], rest - given
        assert rest == 0
        found.append(total)
    return found


def truth(rows, boxes, k):
    """{(x, y): the largest ratio}, over outputs and corners of all steps. rows: nearest first."""
    rays = {(Fraction(1),) * k}
    worst = dict.fromkeys(product(range(k), repeat=2), Fraction(1))
    for at in range(len(rows) - 1, -1, -1):
        row = [Fraction(share) for share in rows[at]]
        seen = {tuple(r * x for r, x in zip(row, h, strict=True)) for h in rays}
        seen |= {tuple(Fraction(i == j) for i in range(k)) for j in range(k) if row[j] < 1}
        ends = [[extremes(one, h) for one in boxes[at]] for h in seen if any(h)]
        if at:
            rays = {corner for one in ends for corner in product(*one)}
            continue
        for one in ends:
            for x, y in product(range(k), repeat=2):
                top, bottom = one[x][1], one[y][0]
                if x != y and top > 0:
                    ratio = top / bottom if bottom > 0 else float("inf")
                    worst[x, y] = max(worst[x, y], ratio)
    return worst


def random_redaction(rng, records, k):
    rows = []
    for _ in range(records):
        row = rng.random(k)
        row[rng.random(k) < 0.5] = 1.0
        row[rng.random(k) < 0.2] = 0.0
        row[rng.random(k) < 0.1] = rng.choice([1e-12, 1e-59, 1e-80, 1 - 2.0**-53])
        rows.append(tuple(row.tolist()))
    return rows


def is_no_less(found, expected):
    return all(
        np.isinf(found[x, y]) or (ratio != float("inf") and Fraction(found[x, y]) >= ratio)
        for (x, y), ratio in expected.items()
        if x != y
    )


@pytest.mark.parametrize("seed", range(12))
def test_no_bound_lies_below_the_truth(seed):
    rng = np.random.default_rng(seed)
    for case in range(25):
        k = (3, 3, 4, 3, 5, 7)[case % 6]
        records = int(rng.integers(1, 4 if k == 3 else 3))
        rows = random_redaction(rng, records, k)
        alike = rng.random() < 0.5
        pairs = [random_box(rng, k) for _ in range(1 if alike else records)]
        given = [within(one) for _, one in pairs] * (records if alike else 1)
        boxes = [box for box, _ in pairs]
        expected = truth(rows, given, k)
        stretches = [Stretch(1, row) for row in rows]
        assert is_no_less(sets._side(stretches, boxes, k), expected), (seed, case)
        sound = [Stretch(1, tuple(r if r > 1e-60 else 0.0 for r in row)) for row in rows]
        walk = Walk.of(sound, boxes)
        if walk.records:
            assert is_no_less(bounds.side(walk), expected), (seed, case)
            if k <= 4:
                found = cones.side(walk, k)
                assert found is None or is_no_less(found, expected), (seed, case)


def test_what_is_all_but_impossible_is_not_impossible():
    """A value that is reached by thirty steps of 10⁻⁵⁸ each: too rare for a double, and told."""
    states = 33
    given = []
    for state in range(states):
        low, high = [0.0] * states, [0.0] * states
        low[0], high[0] = 0.5, 1.0
        onward = {1: 3, 2: 3, states - 1: None, 0: None}.get(state, state + 1)
        if onward is not None:
            rare = 1e-58 if state != 2 else 1e-56
            low[onward], high[onward] = rare, 2 * rare
        given.append((low, high))
    rows = [
        tightened(*([flint.fmpq(*exact(one).as_integer_ratio()) for one in row] for row in ends))
        for ends in given
    ]
    box = Box([low for low, _ in rows], [high for _, high in rows])
    silent, shown = (1.0,) * states, (0.0,) * states
    stretches = [Stretch(states - 4, silent), Stretch(1, shown)]
    assert sets._side(stretches, [box], states)[2, 1] >= 200
