"""Sets of models: what is one, what files keep of it, and what it says of chains on tuples."""

import json
import math
from decimal import Decimal
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.designs.library import Designs, Setting
from offrecord.designs.needs import SurroundingCounts
from offrecord.designs.sharing import designs_for
from offrecord.models.loading import load_model

LOW, HIGH = [[0.85, 0.05], [0.2, 0.6]], [[0.95, 0.15], [0.4, 0.8]]
CHAIN = off.MarkovChain.binary(0.1, 0.3)
BOX = off.Box((LOW, HIGH), (LOW, HIGH), confidence=0.95, interval="clopper-pearson")
THREE = off.MarkovChain([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.1, 0.3, 0.6]])


def around(numbers, by=0.05):
    """Intervals around probabilities."""
    return np.clip(numbers - by, 0, 1), np.clip(numbers + by, 0, 1)


def random_order_two(k, seed=0):
    rng = np.random.default_rng(seed)
    return off.MarkovChain(rng.dirichlet(np.ones(k), size=(k, k)), order=2)


def joint_of(chain, count):
    """Probabilities of all sequences of a chain's first `count` records."""
    joint = {}
    for values in product(range(chain.k), repeat=count):
        chance = chain.start[values[: chain.order]]
        for t in range(chain.order, count):
            chance = chance * chain.transition[values[t - chain.order : t + 1]]
        joint[values] = float(chance)
    return joint


def backward_of(chain):
    """Pr(the record before | m records in the order of time), by summing over sequences."""
    joint = joint_of(chain, chain.order + 1)
    back = np.zeros((chain.k,) * (chain.order + 1))
    for values, chance in joint.items():
        back[(*values[1:], values[0])] = chance
    return back / back.sum(axis=-1, keepdims=True)


def same(box, other):
    pairs = zip((*box.forward, *box.backward), (*other.forward, *other.backward), strict=True)
    told = ("order", "start", "confidence", "interval")
    return all(np.array_equal(a, b) for a, b in pairs) and all(
        getattr(box, name) == getattr(other, name) for name in told
    )


# ---- what is a set of models


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"forward": (LOW, [[0.95, 1.15], [0.4, 0.8]])}, "within 0 and 1, got 0.05 to 1.15"),
        ({"forward": ([[0.85, -0.05], LOW[1]], HIGH)}, "within 0 and 1, got -0.05 to 0.15"),
        ({"backward": ([[0.85, 0.2], LOW[1]], HIGH)}, "backward must hold intervals within 0 and"),
        (
            {"forward": ([[0.9, 0.12], LOW[1]], HIGH)},
            "forward: a row cannot sum to 1, its least probabilities sum to 1.02 and its largest",
        ),
        (
            {"backward": ([[0.8, 0.05], LOW[1]], [[0.85, 0.1], HIGH[1]])},
            "backward: a row cannot sum to 1, its least probabilities sum to 0.85 and its largest"
            " to 0.95",
        ),
        ({"forward": (LOW, HIGH[:1])}, "forward must be two arrays of 2 axes of k ≥ 2"),
        ({"forward": ([[0.5]], [[0.5]])}, "forward must be two arrays of 2 axes of k ≥ 2"),
        ({"forward": ([["a", "b"], LOW[1]], HIGH)}, "forward (low) must be numbers"),
        ({"forward": ([[np.nan, 0.1], LOW[1]], HIGH)}, "within 0 and 1, got nan to 0.95"),
        (
            {"backward": ([LOW] * 2, [HIGH] * 2)},
            "forward and backward must have the same shape, got 2 × 2 and 2 × 2 × 2",
        ),
        ({"order": 2}, "forward must be two arrays of 3 axes of k ≥ 2"),
        ({"order": 0}, "order must be from 1"),
        ({"confidence": 0}, "confidence must be between 0 and 1, got 0"),
        ({"confidence": 1}, "confidence must be between 0 and 1, got 1"),
        ({"confidence": 1.2}, "confidence must be between 0 and 1, got 1.2"),
        ({"confidence": "high"}, "confidence must be between 0 and 1, got 'high'"),
        ({"confidence": float("nan")}, "confidence must be between 0 and 1, got nan"),
        ({"confidence": True}, "confidence must be between 0 and 1, got True"),
        ({"interval": "wilson"}, "interval must be one of clopper-pearson, mixture, got 'wilson'"),
        ({"start": "tomorrow"}, "start must be one of stationary, settled, any, got 'tomorrow'"),
    ],
)
def test_what_is_no_set_is_refused_in_one_line(change, message):
    with pytest.raises(off.InputError) as caught:
        off.Box(**({"forward": (LOW, HIGH), "backward": (LOW, HIGH)} | change))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("alpha", "beta", "message"),
    [
        ((0.2, 0.1), (0.1, 0.2), "alpha must be an interval within 0 and 1, got 0.2 to 0.1"),
        ((-0.1, 0.1), (0.1, 0.2), "alpha must be an interval within 0 and 1, got -0.1 to 0.1"),
        ((0.1, 0.2), (0.1, 1.1), "beta must be an interval within 0 and 1, got 0.1 to 1.1"),
        (0.1, (0.1, 0.2), "alpha must be an interval, two numbers, got 0.1"),
        ((0.1, 0.2), (0.1, 0.2, 0.3), "beta must be an interval, two numbers"),
    ],
)
def test_rates_that_are_no_intervals_are_refused(alpha, beta, message):
    with pytest.raises(off.InputError) as caught:
        off.Box.binary(alpha, beta)
    assert message in str(caught.value)


def test_two_values_are_told_by_two_intervals():
    box = off.Box.binary((0.1, 0.2), (0.3, 0.5), confidence=0.9, interval="mixture", start="any")
    assert np.allclose(box.forward, [[[0.8, 0.1], [0.3, 0.5]], [[0.9, 0.2], [0.5, 0.7]]])
    assert (box.confidence, box.interval, box.start) == (0.9, "mixture", "any")
    assert box.is_its_own_reverse
    assert not box.has_unseen
    assert off.Box.binary((0.0, 0.2), (0.3, 0.5)).has_unseen
    assert not off.Box.binary((0.0, 0.0), (0.3, 0.5)).has_unseen  # it is known never to happen


def test_a_set_must_hold_its_chain():
    with pytest.raises(off.InputError, match=r"transition probability 0\.96 is not in \[0\.85, 0"):
        off.MarkovChain.binary(0.04, 0.3).with_box(BOX)
    ahead, back = around(THREE.transition), around(backward_of(THREE))
    assert off.MarkovChain(THREE.transition, box=off.Box(ahead, back)).box is not None
    with pytest.raises(off.InputError, match="its backward probability"):
        off.MarkovChain(THREE.transition, box=off.Box(ahead, ahead))  # no own reverse
    # of a chain that is not stationary what lies back in time depends on the place
    off.MarkovChain(THREE.transition, start=[1, 0, 0], box=off.Box(ahead, ahead))
    with pytest.raises(off.InputError, match="its backward probability"):
        random_order_two(2).with_box(
            off.Box(*[around(random_order_two(2).transition)] * 2, order=2)
        )


@pytest.mark.parametrize(
    ("chain", "box", "message"),
    [
        (CHAIN, "a box", "models must be a Box, got str"),
        (THREE, BOX, "must be for 3 values and order 1, got 2 and order 1"),
        (random_order_two(2), BOX, "must be for 2 values and order 2, got 2 and order 1"),
        (CHAIN, off.Box(*[([LOW] * 3, [HIGH] * 3)] * 2), "has 3 steps with a box each, the chain"),
        (
            off.MarkovChain([CHAIN.transition] * 4, [0.5, 0.5]),
            off.Box(*[([LOW] * 3, [HIGH] * 3)] * 2),
            "has 3 steps with a box each, the chain 4 steps",
        ),
    ],
)
def test_a_set_of_other_models_is_refused(chain, box, message):
    for given_to in (
        lambda: chain.with_box(box),
        lambda: off.Problem(chain, 5, 1, 1.0, models=box),
    ):
        with pytest.raises(off.InputError) as caught:
            given_to()
        assert message in str(caught.value)


def test_what_is_known_of_the_start():
    settled = BOX.with_start("settled")
    assert (settled.start, BOX.start) == ("settled", "stationary")
    assert same(settled.with_start("stationary"), BOX)
    with pytest.raises(off.InputError, match="start must be one of"):
        BOX.with_start("today")
    several = off.Box(*[([LOW] * 3, [HIGH] * 3)] * 2)
    three = off.Box(*[around(THREE.transition)] * 2)
    order_two = off.Box(*[around(random_order_two(2).transition)] * 2, order=2)
    for box in (several, three, order_two):
        for start in ("settled", "any"):
            with pytest.raises(off.InputError, match="is for two values, order 1 and one box"):
                box.with_start(start)


# ---- chains on tuples


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("order", [1, 2])
def test_both_directions_on_tuples_are_those_of_the_joint_distribution(k, order):
    chain = random_order_two(k, seed=k)
    if order == 1:
        rng = np.random.default_rng(k)
        chain = off.MarkovChain(rng.dirichlet(np.ones(k), size=k))
    ahead, back = chain.transition, backward_of(chain)
    lifted = off.Box((ahead, ahead), (back, back), order=order).lifted
    joint = joint_of(chain, order + 1)
    states = {values: at for at, values in enumerate(product(range(k), repeat=order))}
    both = np.zeros((k**order, k**order))
    for values, chance in joint.items():
        both[states[values[:-1]], states[values[1:]]] += chance
    for found, told in zip(lifted, (both, both.T), strict=True):
        for end in found:
            assert np.allclose(end, told / told.sum(axis=1, keepdims=True), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(k=st.integers(2, 4), seed=st.integers(0, 10**6))
def test_intervals_are_cut_to_what_rows_leave_and_to_no_less(k, seed):
    rng = np.random.default_rng(seed)
    nominal = rng.dirichlet(np.ones(k), size=k)
    low = nominal * rng.uniform(0.2, 1, (k, k))
    high = nominal + (1 - nominal) * rng.uniform(0, 0.6, (k, k))
    cut = off.Box((low, high), (low, high)).lifted[0]
    assert np.all(cut.low >= low)
    assert np.all(cut.high <= high)
    for i, j in np.ndindex(k, k):
        others = np.arange(k) != j
        least = max(low[i, j], 1 - high[i, others].sum())
        most = min(high[i, j], 1 - low[i, others].sum())
        # each end is met by a row inside, and rounded outwards by no more than rounding
        assert least - 1e-13 <= cut.low[i, j] <= least + 1e-18
        assert most + 1e-13 >= cut.high[i, j] >= most - 1e-16


def test_rows_that_can_sum_to_one_only_up_to_rounding_keep_their_intervals():
    low, high = [[0.4, 0.5], [0.3, 0.7]], [[0.5, 0.5 - 0.0], [0.3, 0.7 - 5e-13]]
    low[1][1] = high[1][1]
    cut = off.Box((low, high), (low, high)).lifted[0]
    assert np.all(cut.low <= cut.high)
    assert np.array_equal(cut.low[1], low[1])
    assert np.array_equal(cut.high[1], high[1])


def test_what_can_follow_is_what_some_model_allows():
    low, high = (
        [[0.5, 0.0, 0.3], [0.0, 1.0, 0.0], [0, 0, 1]],
        [[0.7, 0.2, 0.3], [0, 1, 0], [0, 0, 1]],
    )
    box = off.Box((low, high), (low, high))
    expected = [[True, True, True], [False, True, False], [False, False, True]]
    assert box.can_follow(1, 2).tolist() == box.can_follow(3, 9).tolist() == expected
    assert box.can_follow(4, 4).tolist() == np.eye(3, dtype=bool).tolist()
    by_step = off.Box(
        (np.stack([low, np.eye(3)]), np.stack([high, np.eye(3)])), ([low] * 2, [high] * 2)
    )
    assert by_step.can_follow(2, 3).tolist() == np.eye(3, dtype=bool).tolist()
    assert by_step.can_follow(1, 3).tolist() == expected


# ---- phases


def phased(seed=0):
    """By weekday, with a box of its own for each, in both directions."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet([8, 4], size=(7, 2))
    forward, backward = (around(transition, by) for by in (0.04, 0.06))
    box = off.Box(forward, backward, confidence=0.9, interval="mixture")
    start = rng.dirichlet([2, 2], size=7)
    return off.PhasedChain("weekday", transition, start, zone="Europe/Berlin", box=box)


def test_along_phases_each_step_has_the_box_of_its_earlier_record():
    model, phases = phased(), np.array([5, 6, 0, 1, 2])
    chain = model.along(phases)
    box = chain.box
    assert box.by_step == len(chain.transition) == 4
    for step, phase in enumerate(phases[:-1]):
        for found, kept in zip(box.directions, model.box.directions, strict=True):
            assert np.array_equal(found.low[step], kept.low[phase])
            assert np.array_equal(found.high[step], kept.high[phase])
    assert (box.confidence, box.interval) == (0.9, "mixture")
    assert model.with_box(None).along(phases).box is None


@pytest.mark.parametrize("box", [BOX, off.Box(*[([LOW] * 3, [HIGH] * 3)] * 2)])
def test_phases_need_a_box_each(box):
    with pytest.raises(
        off.InputError, match="must hold 7 boxes for 2 values, one for each weekday"
    ):
        phased().with_box(box)


def test_a_walk_over_phases_meets_the_boxes_in_their_places():
    """Both sides of a secret, each by the definition: the largest over corners of every step."""
    model, phases = phased(), np.array([5, 6, 0, 1])
    matrix = np.array([[0.3, 1.0], [1.0, 1.0], [0.6, 1.0], [0.0, 0.5]])
    problem = off.Problem(model.along(phases), 4, [2], 1.0)
    total = np.zeros(2)
    for ends, steps, rows in (
        (model.box.backward, [5], matrix[:1]),
        (model.box.forward, [6, 0], matrix[2:]),
    ):
        corners = [
            product(
                (ends.low[s, 0, 1], ends.high[s, 0, 1]), (ends.low[s, 1, 0], ends.high[s, 1, 0])
            )
            for s in steps
        ]
        worst = np.zeros(2)
        for rates in product(*corners):
            chances = outputs([np.array([[1 - a, a], [b, 1 - b]]) for a, b in rates], rows)
            logs = np.log(chances[1] / chances[0])
            worst = np.maximum(worst, [logs.max(), -logs.min()])
        total += worst
    assert off.leakage(problem, matrix) == pytest.approx(total.max(), abs=1e-12)


def outputs(kernels, rows):
    """(2, outputs) the probability of every output of a side that can occur, by the secret."""
    found = []
    for seen in product((0, 1, None), repeat=len(rows)):
        v = np.eye(2)
        for kernel, row, value in zip(kernels, rows, seen, strict=True):
            v = v @ kernel
            v = v * (row if value is None else (1 - row) * (np.arange(2) == value))
        found.append(v.sum(axis=1))
    table = np.array(found).T
    return table[:, (table > 0).any(axis=0)]


# ---- files, and what carries a set on

MODELS = {
    "chain": CHAIN.with_box(BOX),
    "settled": CHAIN.with_box(BOX.with_start("settled")),
    "three values": THREE.with_box(off.Box(around(THREE.transition), around(backward_of(THREE)))),
    "steps": off.MarkovChain([CHAIN.transition] * 3, [0.5, 0.5]).with_box(
        off.Box(*[([LOW] * 3, [HIGH] * 3)] * 2, confidence=0.5, interval="mixture")
    ),
    "order 2": random_order_two(2).with_box(
        off.Box(
            around(random_order_two(2).transition),
            around(backward_of(random_order_two(2))),
            order=2,
        )
    ),
    "weekdays": phased(),
}


@pytest.mark.parametrize("name", MODELS)
def test_model_files_keep_the_set(name, tmp_path):
    model = MODELS[name]
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert same(again.box, model.box)
    assert again.to_dict() == model.to_dict()
    alone = model.with_box(None)
    assert "set" not in alone.to_dict()
    alone.save(tmp_path / "alone.json")
    assert load_model(tmp_path / "alone.json").box is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "ball"}, '"set" must be of kind "box"'),
        ({"more": 1}, '"set" must be of kind "box" and hold'),
        ({"forward": [LOW]}, '"forward" of a set must hold two arrays'),
        ({"forward": LOW + HIGH}, '"forward" of a set must hold two arrays'),
        ({"forward": [HIGH, LOW]}, "forward must hold intervals within 0 and 1"),
        ({"backward": [LOW, [[0.9, 0.05], [0.3, 0.6]]]}, "a row cannot sum to 1"),
        ({"forward": [[[0.0, 0.2], LOW[1]], [[0.8, 0.3], HIGH[1]]]}, "must hold the chain itself"),
        ({"confidence": 95}, "confidence must be between 0 and 1, got 95"),
        ({"interval": 5}, "interval must be one of"),
        ({"start": None}, "start must be one of"),
    ],
)
def test_damaged_sets_in_model_files_are_refused_in_one_line(change, message, tmp_path):
    content = MODELS["chain"].to_dict()
    content["set"] = content["set"] | change
    path = tmp_path / "model.json"
    path.write_text(json.dumps(content))
    with pytest.raises(off.InputError) as caught:
        load_model(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_problem_promises_for_the_chain_s_set_or_the_one_it_is_given():
    other = off.Box.binary((0.09, 0.11), (0.28, 0.32))
    own = off.Problem(CHAIN.with_box(BOX), 9, [4], 1.0)
    assert same(own.models, BOX)
    assert off.Problem(CHAIN, 9, [4], 1.0).models is None
    assert off.Problem(CHAIN, 9, [4], 1.0, models=BOX).models is BOX
    given_another = off.Problem(CHAIN.with_box(BOX), 9, [4], 1.0, models=other)
    assert given_another.models is other
    matrix = np.ones((9, 2))
    matrix[[2, 5]] = 0.0
    leaks = [
        off.leakage(one, matrix) for one in (off.Problem(CHAIN, 9, 4, 1.0), given_another, own)
    ]
    assert leaks == sorted(set(leaks))  # the larger the set, the more


def test_what_is_made_of_a_problem_keeps_its_set(tmp_path):
    problem = off.Problem(CHAIN, 9, [4], 1.0, models=BOX)
    assert problem.with_epsilon(2.0).models is BOX
    policy = off.design(problem)
    assert policy.problem.models is BOX
    policy.save(tmp_path / "policy.json")
    again = off.Policy.load(tmp_path / "policy.json")
    assert same(again.problem.models, BOX)
    assert again.leakage == policy.leakage
    alone = off.Problem(problem.chain.with_box(None), 9, [4], 1.0)
    assert off.leakage(alone, policy.redaction) < policy.leakage
    assert policy.leakage == pytest.approx(off.leakage(problem, policy.redaction), abs=1e-15)


def test_designs_are_for_the_set_they_were_made_for(tmp_path):
    model, mechanism = CHAIN.with_box(BOX), off.BestWindow()
    setting = Setting(model, 1.0, mechanism, "run")
    needed = SurroundingCounts.of(np.array([(40, 40, 1, 0)]), np.ones(1, dtype=np.int64), {})
    made, _ = designs_for(setting, needed)
    key = bytes(32)
    made.save(tmp_path / "designs.json", key)
    again = Designs.load(tmp_path / "designs.json", setting, key)
    assert [one.leakage for one in again.designs] == [one.leakage for one in made.designs]
    alone, _ = designs_for(Setting(model.with_box(None), 1.0, mechanism, "run"), needed)
    assert sum(alone.designs[0].window) < sum(made.designs[0].window)
    for other in (model.with_box(None), model.with_box(BOX.with_start("any"))):
        with pytest.raises(off.InputError, match="made for another model"):
            Designs.load(tmp_path / "designs.json", Setting(other, 1.0, mechanism, "run"), key)


def test_rounding_a_model_keeps_its_set():
    chain = off.MarkovChain.binary(0.100004, 0.3).with_box(BOX)
    assert chain.rounded().alpha == 0.1
    assert chain.rounded().box is BOX
    model = phased()
    assert model.rounded().box is model.box


def test_a_set_is_not_changed_by_who_holds_it():
    with pytest.raises(ValueError, match="read-only"):
        BOX.forward.low[0, 0] = 0.0
    given_low = np.array(LOW)
    box = off.Box((given_low, HIGH), (LOW, HIGH))
    given_low[0, 0] = 0.0
    assert box.forward.low[0, 0] == LOW[0][0]
    assert repr(BOX) == "<Box k=2 order=1 confidence=0.95>"


@pytest.mark.parametrize("alpha", [0.8179, 0.7, 0.1, 0.0001, 0.9999, 1.0, 5e-324])
def test_a_set_of_two_values_leaves_decimals_of_one(alpha):
    """So that one that is a single chain holds it, and not none."""
    low, high = off.Box.binary((alpha, alpha), (0.05, 0.05)).to_dict()["forward"]
    assert low == high
    for row in low:
        assert math.isclose(sum(row), 1.0)
        exact = sum(Decimal(repr(one)) for one in row)
        assert exact == 1 or alpha == 5e-324


def test_a_set_that_is_a_single_chain_is_redacted_for():
    """By designs that the verifier proves from the set's decimals."""
    chain = off.MarkovChain.binary(0.8179, 0.05)
    release = off.redact(
        pl.DataFrame({"t": range(30), "v": [0, 1, 1] * 10, "p": [t == 12 for t in range(30)]}),
        value="v", order="t", private="p", single_chain=True, epsilon=2.0, mechanism="owner",
        model=chain.with_box(off.Box.binary((0.8179, 0.8179), (0.05, 0.05))), dataset="d",
        dry_run=True, accept_model=True,
    )  # fmt: skip
    assert 0 < release.summary.to_dict()["redacted"] < 10


# ---- sets that hold from a later record on


def test_since_is_kept_in_files_and_left_out_where_it_is_the_first_record():
    box = off.Box.binary((0.1, 0.2), (0.3, 0.4), since=7)
    assert off.Box.from_dict(box.to_dict(), 1).since == 7
    assert "since" not in box.settled.to_dict()
    assert box.settled.since == 1
    settled = box.settled
    assert settled.settled is settled
    assert box.with_start("stationary").since == 7
    assert box.with_start("any").since == 1  # kernels forwards hold at every record


@pytest.mark.parametrize("since", [0, -1, 1001, 1.5, True, "2", None])
def test_since_is_a_record(since):
    with pytest.raises(off.InputError, match="since must be"):
        off.Box.binary((0.1, 0.2), (0.3, 0.4), since=since)


def test_since_is_for_one_box_of_order_1_and_steps_back_that_are_known():
    with pytest.raises(off.InputError, match="since above 1 is for order 1"):
        off.Box.binary((0.1, 0.2), (0.3, 0.4), start="any", since=2)
    ends = np.full((3, 2, 2), 0.4), np.full((3, 2, 2), 0.6)
    with pytest.raises(off.InputError, match="since above 1 is for order 1"):
        off.Box(ends, ends, since=2)


def test_a_chain_of_a_set_is_settled_where_the_set_holds_what_it_becomes():
    box = off.Box.binary((0.1, 0.3), (0.3, 0.5), since=4)
    begun = off.MarkovChain([[0.8, 0.2], [0.4, 0.6]], start=[0.0, 1.0], box=box)
    later = begun.settled
    assert later.is_stationary
    assert later.box.since == 1
    assert np.array_equal(later.transition, begun.transition)
    alone = begun.alone
    assert alone.settled is alone  # without a set a start is taken at its word
    assert later.settled is later
    elsewhere = off.Box(box.forward, ([[0.1, 0.8], [0.8, 0.1]], [[0.2, 0.9], [0.9, 0.2]]))
    odd = off.MarkovChain([[0.8, 0.2], [0.4, 0.6]], start=[0.0, 1.0], box=elsewhere)
    assert odd.settled is odd
