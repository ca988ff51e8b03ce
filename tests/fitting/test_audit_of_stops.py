"""The audit of the owner's sides: what is counted is what they tell."""

import math
from itertools import product

import numpy as np
import pytest
from test_audit import HOURS, RAIN, SLOW, Fixed, audit_of, one_chain, reference_of
from test_audit_counting import drawn_values
from test_fit import as_chains, stationary_chains

from offrecord.errors import InputError
from offrecord.fitting.audit._tables import cells_seen
from offrecord.fitting.audit.audit import EPSILONS, audited
from offrecord.fitting.audit.calibration import Enlargement
from offrecord.fitting.audit.looks import STOPS, Depth
from offrecord.fitting.audit.odds import Worst
from offrecord.fitting.audit.records import Records, held_back
from offrecord.fitting.audit.stops import (
    FURTHEST,
    Walkers,
    stop_probabilities,
    stops,
    stretches,
    walkers,
)
from offrecord.fitting.audit.survey import Survey
from offrecord.fitting.audit.wording import described
from offrecord.mechanisms.owner.designing.referee import told_by
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.mechanisms.owner.ways import Ways
from offrecord.models.audited import GOOD
from offrecord.models.chain import MarkovChain
from offrecord.models.records import Chains
from offrecord.release.coins import ALWAYS

FAST = MarkovChain.binary(0.2, 0.25)
#: Goes round: not its own reverse, so that left and right differ.
ROUND = MarkovChain(np.array([[0.5, 0.4, 0.1], [0.2, 0.5, 0.3], [0.4, 0.1, 0.5]]))


def records_of(chains):
    return Records.of(chains, held_back(chains))


def drawn(model, count, seed):
    rng = np.random.default_rng(seed)
    if model.k == 2:
        return one_chain(drawn_values(model.transition, count, rng))
    return one_chain(stationary_chains(rng, model.transition, 1, count)[0])


def findings(chains, walking, k=2):
    """Those of stops alone."""
    records = records_of(chains)
    return Survey.of(records, list(range(k)), [stops(records, walking)]).findings


def fitted(chains, k=2):
    return reference_of(chains, k).fit(Enlargement()).model


# ---- what is counted, against the definition


def exact_law(side, kernel, x, edges):
    """(stretch, value there, far value) Pr given x: every way to the deadline, level by level."""
    k, deadline = len(kernel), side.deadline
    likely = stop_probabilities(side)
    law = np.zeros((len(edges) - 1, k, k))
    for values in product(range(k), repeat=deadline):
        path = (x, *values)
        mass = math.prod(kernel[path[t], path[t + 1]] for t in range(deadline))
        far = path[-1]
        for number, level in enumerate(side.levels.tolist()):
            here, stop = path[level], 1.0
            if level < deadline:
                ahead = path[side.levels[number + 1]] if likely.shape[-1] > 1 else 0
                stop = likely[far, number, x, here, ahead]
            stretch = sum(level >= edge for edge in edges) - 1
            law[stretch, here, far] += mass * stop
            mass *= 1.0 - stop
    return law


@pytest.mark.parametrize("model", [FAST, ROUND], ids=["two values", "three values"])
def test_patterns_are_as_frequent_as_the_walks_make_them(model):
    """Both sides are independent given the secret; to the left, the chain is the reverse one."""
    walking, k = walkers(model), model.k
    reverse = (model.start[:, np.newaxis] * model.transition / model.start).T
    kernels = reverse, model.transition
    chains = drawn(model, 100_000, 1)
    records = records_of(chains)
    tables = dict(stops(records, walking).tables(records.codes, records.at, k))
    assert list(tables) == [Depth(2, 0), Depth(0, 2), Depth(2, 2)]
    for x in range(k):
        laws = [
            exact_law(side, kernel, x, edges).ravel()
            for side, kernel, edges in zip(walking.sides, kernels, walking.edges, strict=True)
        ]
        assert [law.sum() for law in laws] == pytest.approx([1.0, 1.0])
        every = (*laws, np.outer(*laws).ravel())
        for table, law in zip(tables.values(), every, strict=True):
            total = table.counts[0, :, x].sum()
            off = np.abs(table.counts[0, :, x] - total * law)
            # cases overlap: a little more than independent ones would stray
            assert np.all(off <= 6 * np.sqrt(total * law * (1 - law) + 1))
    assert tables[Depth(2, 2)].counts.sum() == 100_000 - walking.span


def test_what_stretches_tell_is_within_the_budget_of_a_side():
    """A pattern is a sum of outcomes, so it tells no more than the worst of them (O1)."""
    for model in (FAST, ROUND, RAIN):
        ways, walking = Ways.far(model), walkers(model)
        for side, edges in zip(walking.sides, walking.edges, strict=True):
            assert told_by(side, ways.of(side)).max() <= 0.5
            if side.deadline > 4:
                continue
            kernel = ways.of(side).kernels[0]
            laws = np.array([exact_law(side, kernel, x, edges) for x in range(model.k)])
            with np.errstate(divide="ignore", invalid="ignore"):
                odds = np.nan_to_num(laws[:, np.newaxis] / laws)
            assert odds.max() <= math.exp(0.5)


def test_a_walk_that_always_stops_does_so_at_once():
    limits = np.full((2, 2, 2, 2, 1), ALWAYS)
    sides = [StoppingSide(way, 0.5, np.array([2, 3, 5]), limits) for way in (-1, 1)]
    walking = Walkers(1.0, tuple(sides), ((2, 3, 5, 6), (2, 3, 5, 6)))
    look = stops(records_of(drawn(FAST, 500, 2)), walking)
    assert np.all(look.stretch == 0)
    assert look.left.tolist() == [[i - 2, i - 5] for i in range(5, 495)]
    assert look.right.tolist() == [[i + 2, i + 5] for i in range(5, 495)]


def test_only_secrets_with_all_their_records_are_looked_at():
    """Nothing missing within the deadlines, and no other chain."""
    walking = walkers(FAST)
    left, right = (side.deadline for side in walking.sides)
    values = drawn_values(FAST.transition, 600, np.random.default_rng(3))
    values[100] = -1
    chains = Chains(np.array([0, 300, 600]), values, np.arange(600) % 300, False, None)
    records = records_of(chains)
    free = [
        row
        for row in range(600)
        if row % 300 >= left and row % 300 < 300 - right and not row - left <= 100 <= row + right
    ]
    assert records.rows[stops(records, walking).secrets].tolist() == free


def test_the_same_records_give_the_same_stops():
    records, walking = records_of(drawn(RAIN, 2000, 4)), walkers(RAIN)
    one, other = stops(records, walking), stops(records, walking)
    assert np.array_equal(one.stretch, other.stretch)
    assert np.array_equal(one.left, other.left)


def test_cases_are_separate_beyond_both_deadlines():
    cells, at = np.array([0, 0, 1, 0, 0]), np.array([0, 5, 6, 10, 11])
    counts, separate = cells_seen(cells, at, 5, 3)
    assert counts.tolist() == [4, 1, 0]
    assert separate.tolist() == [2, 1, 0]
    walking = walkers(RAIN)
    assert walking.span == sum(side.deadline for side in walking.sides)


# ---- right and wrong models


@pytest.mark.parametrize("model", [RAIN, MarkovChain(SLOW)], ids=["rain", "three values"])
def test_right_models_of_order_1_stay_good(model):
    """Sides made for the fitted model alone, which are more fragile than those for its set."""
    for seed in range(10):
        chains = drawn(model, HOURS, seed)
        walking = walkers(fitted(chains, model.k).with_box(None))
        found = findings(chains, walking, model.k)
        assert found
        assert max(one.excess for one in found) <= GOOD


@pytest.mark.soak
def test_right_models_stay_good_with_sides_for_their_set():
    for seed in range(10):
        audit = reference_of(drawn(RAIN, HOURS, seed)).audited(Enlargement())
        assert STOPS in audit.looked_at
        assert audit.verdict == "good"
        own = [one for one in audit.findings if one.kind == STOPS]
        assert max(one.excess for one in own) <= 1


def exact_odds(walking, model):
    """The largest odds of patterns of both sides under a chain that is its own reverse."""
    laws = [
        [exact_law(side, model.transition, x, edges).ravel() for x in (0, 1)]
        for side, edges in zip(walking.sides, walking.edges, strict=True)
    ]
    most = []
    for x, other in ((0, 1), (1, 0)):
        sides = [(law[x], law[other]) for law in laws]
        most.append(math.prod((up[up > 0] / down[up > 0]).max() for up, down in sides))
    return max(most)


@pytest.mark.parametrize(("factor", "told"), [(1.0, 2.71), (0.5, 3.0), (2.0, 9.0)])
def test_a_wrong_kernel_shows_in_the_odds(factor, told):
    """Sides made for half of α, or twice of it, tell more than they promise: 2.72 to 1."""
    walking = walkers(MarkovChain.binary(factor * RAIN.alpha, RAIN.beta))
    found = findings(drawn(RAIN, 400_000, 5), walking)
    counted, at_least = max(one.odds for one in found), max(one.at_least for one in found)
    exact = exact_odds(walking, RAIN)
    assert told <= exact
    assert at_least <= exact
    assert counted >= told
    assert (exact <= math.e) == (factor == 1.0)
    assert (at_least > GOOD * math.e) == (factor == 2.0)


def test_a_wrong_kernel_changes_the_verdict():
    """Sides made for a chain that forgets at once, in one that does not."""
    chains = drawn(RAIN, HOURS, 6)
    learn = reference_of(chains)._learn(Enlargement(), None)
    audit = audited(chains, [0, 1], learn, walking=walkers(MarkovChain.binary(0.3, 0.3)))
    assert audit.verdict == "unfit"
    assert audit.kind == STOPS
    assert audit.where.startswith("releasing begins ")
    assert audit.advice == "Fit a higher order, or calibrate."
    assert audit_of(chains).verdict == "good"


# ---- which models are looked at


def test_sides_are_for_the_set_where_that_is_quick():
    model = fitted(drawn(FAST, 6000, 7))
    assert model.box is not None
    over, alone = walkers(model), walkers(model.with_box(None))
    ways = Ways.far(model.along())
    assert all(ways.told(side).max() <= 0.5 for side in over.sides)
    assert all(ways.told(side).max() > 0.5 for side in alone.sides)


def test_a_set_that_takes_long_is_left_out():
    model = fitted(drawn(MarkovChain.binary(0.0036, 0.0121), 20_000, 8))
    over, alone = walkers(model), walkers(model.with_box(None))
    for one, other in zip(over.sides, alone.sides, strict=True):
        assert one.identity == other.identity
    assert walkers(model, alone=False) is None


@pytest.mark.parametrize(
    "model",
    [
        MarkovChain.binary(0.0005, 0.0005),
        MarkovChain(np.array([[0.0, 1.0], [1.0, 0.0]])),
        MarkovChain(np.full((4, 4), 0.25)),
        MarkovChain(np.full((2, 2, 2), 0.5), order=2),
    ],
    ids=["too slow", "never forgets", "four values", "order 2"],
)
def test_other_models_are_not_looked_at(model):
    assert walkers(model) is None


def test_a_share_of_the_budget_gives_longer_walks_for_the_same_promise():
    whole, part = walkers(RAIN), walkers(RAIN, 0.5)
    assert part.epsilon == whole.epsilon == 1.0
    assert [side.budget for side in part.sides] == [0.25, 0.25]
    assert whole.span < part.span <= 2 * FURTHEST


def test_a_reference_without_room_is_not_looked_at():
    values = drawn_values(RAIN.transition, 1200, np.random.default_rng(9)).reshape(-1, 12)
    chains = as_chains(values)
    assert findings(chains, walkers(RAIN)) == ()


def test_the_audit_of_a_reference_looks_at_stops_for_order_1_alone():
    chains = drawn(FAST, 3000, 11)
    looked_at = [reference_of(chains).audited(Enlargement(order)).looked_at for order in (1, 2)]
    assert [STOPS in kinds for kinds in looked_at] == [True, False]


def test_stops_do_not_speak_for_windows():
    """Where windows release too little to look at, that is said as without stops."""
    chains = drawn(FAST, 300, 12)
    with pytest.raises(InputError, match="too short for the audit"):
        audited(chains, [0, 1], lambda rest: Fixed((140, 140)), walking=walkers(FAST))
    audit = audited(chains, [0, 1], lambda rest: Fixed(None), walking=walkers(FAST))
    assert audit.looked_at == (STOPS,)
    assert audit.closed == EPSILONS
    assert not audit.is_passed


# ---- in words


def side_with(law):
    levels = np.array([1, 2, 5, 9, 14])[-len(law) :]
    limits = np.zeros((2, len(law) - 1, 2, 2, 1), dtype=np.uint64)
    return StoppingSide(-1, 0.5, levels, limits, law=np.array(law)[:, np.newaxis])


def test_stretches_are_the_first_level_the_deadline_and_halves_between():
    assert stretches(side_with([0.6, 0.1, 0.05, 0.05, 0.2])) == (1, 2, 5, 14, 15)
    assert stretches(side_with([0.6, 0.01, 0.01, 0.18, 0.2])) == (1, 2, 14, 15)
    assert stretches(side_with([0.6, 0.2, 0.2])) == (5, 9, 14, 15)
    assert stretches(side_with([0.6, 0.4])) == (9, 14, 15)
    assert stretches(side_with([1.0])) == (14, 15)


def test_what_tells_is_said():
    side = side_with([0.6, 0.1, 0.05, 0.05, 0.2])
    walking = Walkers(1.0, (side, side), ((1, 2, 5, 14, 15), (1, 14, 15)))
    look = stops(records_of(drawn(RAIN, 300, 10)), walking)
    labels = ["dry", "wet"]
    left, right = (1 * 2 + 1) * 2 + 0, (1 * 2 + 1) * 2 + 1
    before = "releasing begins 2 to 4 records before, at wet (dry at 14 before)"
    after = "14 records after, at wet"
    told = ", by sides made with all records, likelier beside a record that is wet than beside one"
    for depth, pattern, said in (
        (Depth(2, 0), left, before),
        (Depth(0, 2), right, f"releasing begins {after}"),
        (Depth(2, 2), left * 8 + right, f"{before} and {after}"),
    ):
        worst = Worst(3.0, 4.0, 0, pattern, 1, 0)
        assert described(look, depth, worst, labels) == f"{said}{told} that is dry"
