"""Stamping and its figures, against slow loops over records."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.designs.needs import SurroundingCounts
from offrecord.mechanisms.blocks import Block
from offrecord.mechanisms.local.design import LocalDesign
from offrecord.mechanisms.local.stamping import Stamping
from offrecord.mechanisms.local.stretches import Stretches
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.models.records import Chains
from offrecord.release.coins import ALWAYS, thresholds
from offrecord.tables.erasure import erasure_leakage
from offrecord.tables.secrets import Private, secrets_of
from offrecord.tables.windows import Windows

CHANCES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@st.composite
def situations(draw):
    """Chains with gaps and missing values, secrets, and arbitrary designs for them."""
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    starts = np.concatenate(([0], np.cumsum(lengths)))
    codes = np.array(
        [draw(st.sampled_from([-1, 0, 1, 1])) for _ in range(starts[-1])], dtype=np.int8
    )
    steps = None
    if draw(st.booleans()):
        steps = np.concatenate(
            [
                np.concatenate(([0], np.cumsum([draw(st.integers(1, 3)) for _ in range(n - 1)])))
                for n in lengths
            ]
        )
    chains = Chains(
        starts,
        codes,
        np.arange(starts[-1]),
        False,
        steps if steps is None else steps.astype(np.int64),
    )
    items = []
    for chain, n in enumerate(lengths):
        last = n - 1 if steps is None else int(steps[starts[chain + 1] - 1])
        items += [
            (chain, place) for place in sorted(draw(st.sets(st.integers(0, last), max_size=4)))
        ]
    private = Private(*(np.array([item[i] for item in items], dtype=np.int64) for i in (0, 1, 1)))
    secrets = secrets_of(chains, private, draw(st.sampled_from(["run", "each"])))
    made = []
    for _ in range(2):
        rows = [
            np.array(draw(st.lists(st.tuples(CHANCES, CHANCES), max_size=5)), dtype=float).reshape(
                -1, 2
            )
            for _ in range(2)
        ]
        window = (draw(st.integers(0, 4)), draw(st.integers(0, 4)))
        rests = draw(st.booleans()), draw(st.booleans())
        sides = Stretches.of(rows[0]), Stretches.of(rows[1])
        made.append(LocalDesign(Surrounding(6, 6, 1), *sides, *rests, 0.0, 0.0, "own", window))
    which = np.array([draw(st.integers(0, 1)) for _ in range(secrets.count)], dtype=np.int64)
    return chains, secrets, made, which


def slowly(chains, secrets, designs, which):
    """(n, 2) redaction probabilities, record by record and secret by secret."""
    out = np.zeros((len(chains.codes), 2))
    for i in range(secrets.count):
        design, c = designs[which[i]], secrets.chain[i]
        for row in range(chains.starts[c], chains.starts[c + 1]):
            place = chains.places[row]
            if secrets.first[i] <= place <= secrets.last[i]:
                out[row] = 1
                continue
            left = place < secrets.first[i]
            distance = secrets.first[i] - place if left else place - secrets.last[i]
            side, rest = (
                (design.left, design.left_rest) if left else (design.right, design.right_rest)
            )
            rows = side.spelled_out
            out[row] = np.maximum(
                out[row], rows[distance - 1] if distance <= len(rows) else float(rest)
            )
    return out


@settings(max_examples=300, deadline=None)
@given(situations())
def test_stamps_are_the_maximum_of_all_designs_by_distance(situation):
    chains, secrets, designs, which = situation
    expected = slowly(chains, secrets, designs, which)
    stamping = Stamping.of(designs, 2)
    block = Block(chains, slice(0, len(chains.codes)), secrets, which)
    told = stamping.explain(block, ("a", "b"))
    assert list(told.rule) == ["Pr(redacted | a)", "Pr(redacted | b)"]
    assert np.array_equal(np.stack(list(told.rule.values()), axis=1), expected)
    regions = np.where(
        np.all(expected == 1, axis=1), 2, np.where(np.any(expected > 0, axis=1), 1, 0)
    )
    assert np.array_equal(told.certainty, regions)
    for masses in (np.array([0.25, 0.75]), np.tile([0.5, 0.5], (block.size, 1))):
        foretold = stamping.expect(block, masses)
        assert np.allclose(foretold.released, 1 - (expected * masses).sum(axis=1), atol=1e-15)
        assert np.array_equal(foretold.certainty, regions)
    valued = chains.codes >= 0
    asked = []

    def draw(chain, order):
        asked.append((chain, order))
        return np.full(len(order), 2**62 - 1, dtype=np.uint64)  # just below a quarter

    decision = stamping.decide(block, draw)
    own = expected[np.arange(len(expected)), chains.codes]
    assert np.array_equal(decision.redacted[valued], own[valued] >= 0.25)
    touched = decision.certainty > 0
    assert np.array_equal(decision.certainty[touched], np.maximum(regions, 1)[touched])
    assert np.all(regions[~touched] == 0)
    for chain, order in asked:  # a record's own chain and order value
        assert np.array_equal(chains.chain_of[order], chain)


@settings(max_examples=200, deadline=None)
@given(situations())
def test_what_the_window_releases(situation):
    chains, secrets, designs, which = situation
    covered = np.zeros(len(chains.codes), dtype=bool)
    for i in range(secrets.count):
        (left, right), c = designs[which[i]].window, secrets.chain[i]
        for row in range(chains.starts[c], chains.starts[c + 1]):
            place = chains.places[row]
            covered[row] |= secrets.first[i] - left <= place <= secrets.last[i] + right
    none = SurroundingCounts.of(np.empty((0, 4), dtype=np.int64), np.empty(0, dtype=np.int64), {})
    windows = Windows.of(designs, np.empty(0, dtype=np.int64), none)
    begin, end = windows._inside(chains, secrets, which)
    times = np.zeros(len(covered), dtype=np.int64)
    for first, after in zip(begin, end, strict=True):
        times[first:after] += 1
    assert np.array_equal(times, covered)


def test_few_secrets_with_far_reaching_designs():
    n, reach = 5000, 2000
    chains = Chains(np.array([0, n]), np.zeros(n, dtype=np.int8), np.arange(n), False, None)
    secrets = secrets_of(
        chains, Private(np.array([0, 0]), np.array([100, 2500]), np.array([100, 2500])), "run"
    )
    rows = np.stack([np.linspace(1, 0.1, reach), np.ones(reach)], axis=1)
    side = Stretches.of(rows)
    design = LocalDesign(Surrounding(n, n, 1), side, side, False, False, 0.0, 0.0, "own", (0, 0))
    block = Block(chains, slice(0, n), secrets, np.array([0, 0]))
    stamps = Stamping.of([design], 2)._stamped(block, chains.codes)
    limits = thresholds(rows)[:, 0]
    assert stamps.limits[2500] == stamps.limits[100] == ALWAYS
    assert stamps.limits[2400] == limits[99]
    assert stamps.limits[1200] == max(limits[1299], limits[1099])
    assert stamps.limits[4600] == 0


@pytest.mark.parametrize("k", [2, 8, 9, 17, 33, 64])
def test_a_record_is_redacted_for_certain_if_it_is_so_with_each_of_all_values(k):
    chains = Chains(np.array([0, 3]), np.full(3, -1, dtype=np.int8), np.arange(3), False, None)
    secrets = secrets_of(chains, Private(*(np.array([one]) for one in (0, 1, 1))), "run")
    but_one = np.ones((1, k))
    but_one[0, -1] = 0
    sides = Stretches.of(np.ones((1, k))), Stretches.of(but_one)
    design = LocalDesign(Surrounding(1, 1, 1), *sides, False, False, 0.0, 0.0, "own", (1, 1))
    block = Block(chains, slice(0, 3), secrets, np.array([0]))
    decision = Stamping.of([design], k).decide(block, lambda chain, order: order)
    assert decision.certainty.tolist() == [2, 2, 1]
    assert decision.redacted.tolist() == [True, True, False]


def needs_of(n, private):
    chains = Chains(np.array([0, n]), np.zeros(n, dtype=np.int8), np.arange(n), False, None)
    places = np.array(private) - 1
    secrets = secrets_of(
        chains, Private(np.zeros(len(private), dtype=np.int64), places, places), "run"
    )
    around = np.stack(
        (*secrets.rooms(chains), secrets.last - secrets.first + 1, np.zeros_like(secrets.first)),
        axis=1,
    )
    return SurroundingCounts.of(around, np.ones(secrets.count, dtype=np.int64), {})


def test_erasure_leaks_what_erasing_the_private_records_alone_does():
    three = off.MarkovChain([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])
    zeros = off.MarkovChain([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]])
    for chain in (
        off.MarkovChain.binary(0.05, 0.3),
        off.MarkovChain.binary(0.6, 0.8),
        three,
        zeros,
    ):
        for n, private in ((7, [4]), (7, [1]), (7, [3, 4]), (2, [2]), (3, [1, 2, 3])):
            matrix = np.zeros((n, chain.k))
            matrix[np.array(private) - 1] = 1
            expected = off.leakage(off.Problem(chain, n, private, 1.0), matrix)
            assert (
                np.isclose(erasure_leakage(chain, needs_of(n, private)), expected, atol=1e-12)
                or expected == np.inf
            )


def test_erasure_in_a_chain_of_order_2_against_its_lifted_joint_distribution():
    chain = off.MarkovChain([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], order=2)
    found = erasure_leakage(chain, needs_of(9, [5]))
    worst = 0.0
    for a in range(2):
        for b in range(2):
            for c in range(2):
                for d in range(2):
                    odds = []
                    for x in range(2):
                        path = (a, b, x, c, d)
                        mass = chain.start[a, b]
                        for t in range(2, 5):
                            mass *= chain.transition[path[t - 2 : t + 1]]
                        odds.append(mass / chain.marginal(5)[x])
                    worst = max(worst, abs(np.log(odds[0] / odds[1])))
    assert np.isclose(found, worst, atol=1e-12)
