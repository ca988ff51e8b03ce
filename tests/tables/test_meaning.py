"""What a promise means for a table: no reader of a release can believe more than is said."""

import math
import re
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import offrecord as off
from definition import sequences
from offrecord.designs.needs import SurroundingCounts
from offrecord.models.phased import PhasedChain
from offrecord.tables.meaning import Meaning, posterior, shares_text


def needs_of(*rows, phases=None):
    """Surroundings, of one secret each."""
    rows = np.array([(*row, 0) if len(row) == 3 else row for row in rows])
    return SurroundingCounts.of(rows, np.ones(len(rows), dtype=np.int64), phases or {})


def test_a_value_of_one_in_fifteen():
    chain = off.MarkovChain.binary(0.02, 0.28)  # 1 holds in 1 of 15 records
    said = Meaning.of(chain, needs_of((50, 50, 1)), 1.0, None)
    assert (said.value, said.before) == (1, pytest.approx(1 / 15))
    assert said.after == pytest.approx(math.e / (math.e + 14))
    assert str(said) == (
        "by the model a private record is 1 in about 1 of 15 cases; after the release in at most"
        " 1 of 6"
    )


@pytest.mark.parametrize("private", [[3], [3, 4]])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
@pytest.mark.parametrize(
    "chain",
    [
        off.MarkovChain.binary(0.1, 0.3),
        off.MarkovChain([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.2, 0.4, 0.4]]),
    ],
)
def test_no_belief_is_above_it(chain, epsilon, private):
    """Bayes over every sequence and every output, for each record of a secret."""
    policy = off.design(off.Problem(chain, 6, private, epsilon), off.BestLocal())
    said = Meaning.of(chain, needs_of((2, 6 - private[-1], len(private))), policy.leakage, None)
    largest = 0.0
    for record in private:
        beliefs = beliefs_of(chain, policy, record)
        prior = chain.marginal(record)
        for value in range(chain.k):
            at_most = posterior(float(prior[value]), policy.leakage)
            assert beliefs[value] <= at_most + 1e-9
            assert at_most - prior[value] <= said.after - said.before + 1e-12
        largest = max(largest, beliefs[said.value] - prior[said.value])
    assert largest >= 0.3 * (said.after - said.before)  # and it is not far off


def beliefs_of(chain, policy, record):
    """(k,) the largest Pr(value | output) of one record over all outputs."""
    joint = defaultdict(lambda: np.zeros(chain.k))
    paths, weights = sequences(chain, policy.problem.n)
    for path, weight in zip(paths.tolist(), weights, strict=True):
        for mask, chance in policy.outcomes(path):
            seen = tuple(value if kept else None for value, kept in zip(path, mask, strict=True))
            joint[seen][path[record - 1]] += weight * chance
    return np.max([masses / masses.sum() for masses in joint.values()], axis=0)


def test_the_mean_over_places_where_values_depend_on_them():
    starting = off.MarkovChain([[0.9, 0.1], [0.5, 0.5]], start=[0.5, 0.5])
    said = Meaning.of(starting, needs_of((0, 9, 1), (1, 8, 1)), 0.5, None)
    mean = (starting.marginal(1) + starting.marginal(2)) / 2
    assert said.varies
    assert said.before == pytest.approx(mean[said.value])
    apart = [posterior(float(starting.marginal(t)[said.value]), 0.5) for t in (1, 2)]
    assert np.mean(apart) <= said.after + 1e-15
    assert ", on average;" in str(said)
    kernels = np.tile([[0.8, 0.2], [0.4, 0.6]], (7, 1, 1))
    starts = np.array([[1 - p, p] for p in np.linspace(0.1, 0.4, 7)])
    weekly = PhasedChain("weekday", kernels, starts)
    along = {5: bytes([3, 4, 5, 6]), 6: bytes([6, 0, 1, 2])}
    said = Meaning.of(weekly, needs_of((1, 2, 1, 5), (2, 1, 1, 6), phases=along), 1.0, None)
    assert said.before == pytest.approx((starts[4, said.value] + starts[1, said.value]) / 2)


DIFFER = "First records differ from the stationary distribution (p below 0.000001); "
LIKE = "First records look like the stationary distribution (p = 0.5, largest difference 0.1)."
SMALL = "the difference is small, and with this many chains any difference shows."
HELD = "near the beginning of a chain a design may tell more. The set holds chains that begin so."


@pytest.mark.parametrize(
    ("verdict", "settled"),
    [(None, False), (LIKE, False), (DIFFER + SMALL, False), (DIFFER + HELD, True)],
)
def test_of_first_records_that_are_unlike_the_rest_nothing_is_said(verdict, settled):
    """By such a chain a first record may be 1 in most cases: neither share is about it."""
    said = Meaning.of(off.MarkovChain.binary(0.1, 0.3), needs_of((0, 11, 1)), 1.0, verdict)
    assert said.settled == settled
    assert (" of 4 cases, away from where a chain begins; after" in str(said)) == settled


def test_nor_where_chains_may_begin_in_any_way():
    box = off.Box.binary((0.09, 0.11), (0.28, 0.32), start="any")
    model = off.MarkovChain.binary(0.1, 0.3).with_box(box)
    assert "away from where a chain begins" in str(
        Meaning.of(model, needs_of((0, 9, 1)), 1.0, None)
    )


def test_without_secrets_it_means_nothing():
    none = SurroundingCounts.of(np.empty((0, 4), dtype=np.int64), np.empty(0, dtype=np.int64), {})
    assert Meaning.of(off.MarkovChain.binary(0.1, 0.3), none, 0.0, None) is None


@given(st.floats(1e-9, 1), st.floats(0, 30))
def test_what_is_said_is_no_less_than_what_holds(before, leakage):
    after = posterior(before, leakage)
    assert before <= after + 1e-15
    told, bound = shares_text(before, after)
    number = re.fullmatch(r"1 of ([\d,]+)|([\d.]+) %", bound)
    assert number is not None
    one_of, per_cent = number.groups()
    said = 1 / int(one_of.replace(",", "")) if one_of else float(per_cent) / 100
    assert said >= after * (1 - 1e-12)
    assert said <= after * 1.11 + 1e-12  # nor much more
    assert told.endswith(" of cases") or re.fullmatch(r"1 of [\d,]+ cases", told)
