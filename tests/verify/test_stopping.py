"""Owner's designs by the verifier: certificates that the package writes are proven, what is made
worse is not, and bounds are what all paths and outcomes give in rationals.
"""

import base64
import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from tempfile import mkdtemp

import flint
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import offrecord as off
from definition import samples
from offrecord.mechanisms.owner.ways import Ways
from offrecord.release.certificate import (
    Certificate,
    GapStopping,
    StoppingPair,
    StoppingSide,
    spelled_thresholds,
)
from offrecord.release.keys import Key
from offrecord.verify.balls import decided, upper
from offrecord.verify.chain import completed
from offrecord.verify.stopping import bounds, cone, span
from offrecord.verify.stopping import over_set as sets
from offrecord.verify.stopping.gap import told_between
from offrecord.verify.stopping.outcomes import in_units, told_by, told_in_turn
from offrecord.verify.stopping.way import ways_far

WHOLE = 2**64
TWO = off.MarkovChain([[0.9, 0.1], [0.3, 0.7]])
HOURS = np.stack([[[1 - a, a], [0.3, 0.7]] for a in np.linspace(0.05, 0.4, 24).round(4)])
ZEROS = [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.6, 0.4]]
#: A model, ε and how many records there are in a chain.
CASES = {
    "two values": (TWO, 1.0, 30),
    "sticky": (off.MarkovChain([[0.97, 0.03], [0.05, 0.95]]), 1.5, 60),
    "restless": (off.MarkovChain([[0.2, 0.8], [0.9, 0.1]]), 0.7, 30),
    "rare": (off.MarkovChain([[0.9999, 0.0001], [0.5, 0.5]]), 1.0, 30),
    "three values": (off.MarkovChain([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]), 2.0, 20),
    "impossible steps": (off.MarkovChain(ZEROS), 2.0, 20),
    "order 2": (
        off.MarkovChain([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], order=2),
        1.5,
        30,
    ),
    "over a set": (TWO.with_box(off.Box.binary((0.09, 0.11), (0.28, 0.32))), 1.0, 30),
    "over a long set": (
        off.MarkovChain([[0.977, 0.023], [0.31, 0.69]]).with_box(
            off.Box.binary((0.0199, 0.0258), (0.282, 0.336))
        ),
        1.0,
        40,
    ),
    "over a line": (TWO.with_box(off.Box.binary((0.1, 0.12), (0.3, 0.3))), 1.0, 30),
    "a start": (off.MarkovChain(TWO.transition, start=[1.0, 0.0]), 1.0, 16),
    "a start and impossible steps": (off.MarkovChain(ZEROS, start=[1.0, 0.0, 0.0]), 2.0, 10),
    "a kernel for each step": (off.MarkovChain(HOURS[:15], start=[0.6, 0.4]), 1.0, 16),
    "hours": (off.PhasedChain("hour", HOURS, np.tile([0.75, 0.25], (24, 1)), zone="UTC"), 1.0, 16),
}


def table(k, n, chains=8, share=0.12, seed=1):
    """Hours of chains, with private records near each other and far apart."""
    rng = np.random.default_rng(seed)
    like = off.MarkovChain(np.full((k, k), 1 / k)) if k > 2 else TWO
    start = datetime(2026, 3, 1, tzinfo=UTC)
    return pl.DataFrame(
        {
            "id": np.repeat(np.arange(chains), n),
            "t": [start + timedelta(hours=t) for t in range(n)] * chains,
            "v": samples(like, chains, n, rng).ravel(),
            "p": rng.random(chains * n) < share,
        }
    )


@cache
def certificate_of(name):
    """As the package writes it."""
    model, epsilon, n = CASES[name]
    key = Key.new(Path(mkdtemp()) / "key.json")
    release = off.redact(
        table(model.k, n, chains=8 if model.is_stationary else 3),
        model=model,
        epsilon=epsilon,
        key_file=key.file,
        accept_model=True,
        design_minutes=1000,
        mechanism="owner",
        dataset="d",
        **{"value": "v", "order": "t", "by": "id", "private": "p", "step": "1h"},
    )
    return Certificate.from_dict(json.loads(json.dumps(release.certificate)))


def unproven(certificate):
    """The places of all that is not proven."""
    found = bounds(certificate.designs, certificate.model)
    return [kept.place for kept in found if not decided(kept.bound, kept.limit)[0]]


def with_stopping(certificate, number, **changes):
    designs = certificate.designs
    stoppings = list(designs.stoppings)
    stoppings[number] = replace(stoppings[number], **changes)
    return replace(certificate, designs=replace(designs, stoppings=stoppings))


def with_side(certificate, number, at, **changes):
    sides = list(certificate.designs.stoppings[number].sides)
    sides[at] = replace(sides[at], **changes)
    return with_stopping(certificate, number, sides=sides)


def written(thresholds):
    return base64.b64encode(np.array(thresholds, dtype="<u8").tobytes()).decode()


# ---- certificates that the package writes


@pytest.mark.parametrize("name", CASES)
def test_what_the_package_writes_is_proven(name):
    certificate = certificate_of(name)
    assert any(side.levels for one in certificate.designs.stoppings for side in one.sides)
    assert unproven(certificate) == []


def test_near_secrets_have_gaps_and_far_ones_pairs():
    """So the certificates above have all that there is to prove."""
    stoppings = [
        certificate_of(name).designs.stoppings[0] for name in ("two values", "three values")
    ]
    assert all(one.gaps and one.pair for one in stoppings)
    assert certificate_of("order 2").designs.stoppings[0].pair
    assert any(side.ahead for side in stoppings[0].sides) or stoppings[0].pair.ahead
    placed = certificate_of("hours")
    first = next(bounds(placed.designs, placed.model))
    assert first.place == "designs.stoppings[0].options[0], designs.designs[0]"


@pytest.mark.parametrize("name", ["two values", "sticky", "three values", "order 2", "rare"])
def test_bounds_are_those_of_the_referee(name):
    """Which computes in whole numbers, and adds 2⁻⁴⁸."""
    certificate, (model, _, _) = certificate_of(name), CASES[name]
    ways = Ways.far(model.along())
    library = off.mechanisms.owner.files.stopping_from_dict(
        certificate.to_dict()["designs"]["stoppings"][0], model.k**model.order
    )
    asked = {id(side): float(ways.told(side).max()) for one in library.options for side in one}
    told = {
        number: asked[id(side)]
        for one, numbers in zip(
            library.options, certificate.designs.stoppings[0].options, strict=True
        )
        for side, number in zip(one, numbers, strict=True)
    }
    for kept in bounds(certificate.designs, certificate.model):
        found = float(decided(kept.bound, kept.limit)[1])
        if ".sides" in kept.place:
            number = int(kept.place.split("[")[-1][:-1])
            assert abs(found - told[number]) < 1e-9
        if kept.place.endswith("pair"):
            assert abs(found - float(ways.told_by_pair(library.pair).max())) < 1e-9


# ---- what is made worse


@pytest.mark.parametrize("name", CASES)
def test_a_budget_below_what_is_told_is_not_proven(name):
    certificate = certificate_of(name)
    for kept in bounds(certificate.designs, certificate.model):
        number, rest = kept.place.removeprefix("designs.stoppings[").split("]", 1)
        if not rest.startswith(".sides"):
            continue
        at = int(rest.removeprefix(".sides[").split("]")[0])
        told = float(decided(kept.bound, kept.limit)[1])
        if told > 0:
            worse = with_side(certificate, int(number), at, budget=told - 1e-6)
            assert kept.place in unproven(worse)


@pytest.mark.parametrize("name", ["two values", "three values", "order 2", "over a set", "hours"])
def test_a_threshold_that_binds_cannot_be_moved(name):
    """Each of some thresholds, a hundredth of it up and down: most outcomes tell all they may."""
    certificate = certificate_of(name)
    number = next(
        number
        for number, one in enumerate(certificate.designs.stoppings)
        if any(len(side.levels) > 1 for side in one.sides)
    )
    stopping = certificate.designs.stoppings[number]
    used = {side for option in stopping.options for side in option}
    at = next(at for at in sorted(used) if len(stopping.sides[at].levels) > 1)
    thresholds = list(spelled_thresholds(stopping.sides[at].stop))
    rng, caught = np.random.default_rng(4), 0
    some = [one for one in range(len(thresholds)) if 2**40 < thresholds[one] < WHOLE - 1]
    some = rng.permutation(some)[:6]
    for one, factor in product(some, (0.99, 1.01)):
        changed = list(thresholds)
        changed[one] = min(int(changed[one] * factor), WHOLE - 1)
        worse = with_side(certificate, number, at, stop=written(changed))
        caught += any(f"sides[{at}]" in place for place in unproven(worse))
    assert caught >= len(some)


@pytest.mark.parametrize("name", ["two values", "three values"])
def test_thresholds_of_pairs_and_gaps_cannot_be_moved(name):
    certificate = certificate_of(name)
    stopping = certificate.designs.stoppings[0]
    pair, k = stopping.pair, len(certificate.model.labels)
    limits = np.array(spelled_thresholds(pair.stop), dtype=np.uint64)
    limits.reshape(k * (len(pair.levels) - 1), k, -1)[:, 0] //= np.uint64(2)
    worse = with_stopping(certificate, 0, pair=replace(pair, stop=written(limits)))
    assert unproven(worse) == ["designs.stoppings[0].pair"]
    gaps = [gap for gap in stopping.gaps if any(spelled_thresholds(gap.stop))]
    for gap in gaps:
        limits = np.array(spelled_thresholds(gap.stop), dtype=np.uint64)
        limits.reshape(-1, k, k, k, k, 2)[:, 0, ..., 0] //= np.uint64(16)
        worse = with_stopping(certificate, 0, gaps=[replace(gap, stop=written(limits))])
        assert all(".gaps" in place for place in unproven(worse))
        assert unproven(worse)
    assert gaps


@pytest.mark.parametrize(
    "name", ["two values", "three values", "order 2", "a start", "a kernel for each step", "hours"]
)
def test_another_kernel_is_not_proven(name):
    """One that is stickier."""
    certificate = certificate_of(name)
    kernels = np.array(certificate.model.transition)
    k = kernels.shape[-1]
    stay = np.broadcast_to(np.eye(k), kernels.shape)
    worse = (0.95 * kernels + 0.05 * stay).round(4).tolist()
    changed = replace(certificate, model=replace(certificate.model, transition=_tuples(worse)))
    assert unproven(changed)


def _tuples(numbers):
    return tuple(map(_tuples, numbers)) if isinstance(numbers, list) else numbers


@pytest.mark.parametrize("name", ["over a set", "over a long set", "over a line"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_wider_intervals_are_not_proven(name, direction):
    """Of either direction, for the sides there."""
    certificate = certificate_of(name)
    known = certificate.model.set
    low, high = (np.array(end) for end in getattr(known, direction))
    low, high = low - 0.01 * np.array([[1, 1], [1, 1]]), high + 0.01
    wider = replace(known, **{direction: (_tuples(low.tolist()), _tuples(high.tolist()))})
    changed = replace(certificate, model=replace(certificate.model, set=wider))
    sides = certificate.designs.stoppings[0].sides
    wrong = {sides[int(place.split("[")[-1][:-1])].side for place in unproven(changed)}
    assert wrong == {"left" if direction == "backward" else "right"}


def test_budgets_of_the_first_option_may_not_sum_to_more():
    certificate = certificate_of("two values")
    left, right = certificate.designs.stoppings[0].options[0]
    changed = with_side(certificate, 0, left, budget=0.6)
    changed = with_side(changed, 0, right, budget=math.nextafter(0.4, 1))
    assert "designs.stoppings[0].options[0]" in unproven(changed)


# ---- what is not served


def test_what_is_not_known_how_to_prove_is_not_proven():
    certificate = certificate_of("over a set")
    stopping = certificate.designs.stoppings[0]
    known = certificate.model.set
    number, side = next((at, one) for at, one in enumerate(stopping.sides) if len(one.levels) > 1)
    stop = written(np.repeat(np.array(spelled_thresholds(side.stop)), 2))
    ahead = with_side(certificate, 0, number, ahead=True, stop=stop)
    assert f"designs.stoppings[0].sides[{number}]" in unproven(ahead)
    for start in ("any", "settled"):
        other = replace(certificate.model, set=replace(known, start=start))
        assert unproven(replace(certificate, model=other))
    never = (((0.9, 0.0), (0.3, 0.7)), ((1.0, 0.1), (0.3, 0.7)))
    other = replace(certificate.model, set=replace(known, forward=never, backward=never))
    assert unproven(replace(certificate, model=other))
    alone = certificate_of("two values")
    pair = replace(alone, model=certificate.model)
    places = unproven(pair)
    assert "designs.stoppings[0].pair" in places
    assert "designs.stoppings[0].gaps[0].budgets[0]" in places


def test_a_model_with_two_stationary_laws_or_hidden_states_is_not_proven():
    certificate = certificate_of("two values")
    apart = replace(certificate.model, transition=((1.0, 0.0), (0.0, 1.0)))
    assert unproven(replace(certificate, model=apart))
    hidden = replace(
        certificate.model,
        shows=(0, 1, 1),
        transition=((0.85, 0.05, 0.1), (0.2, 0.5, 0.3), (0.2, 0.2, 0.6)),
        start=(0.5, 0.25, 0.25),
    )
    assert len(unproven(replace(certificate, model=hidden))) >= 2


def test_tuples_that_overlap_the_secret_are_not_released():
    certificate = certificate_of("order 2")
    at = certificate.designs.stoppings[0].options[0][1]
    side = certificate.designs.stoppings[0].sides[at]
    levels = [1, *side.levels[1:]]
    assert f"designs.stoppings[0].sides[{at}]" in unproven(
        with_side(certificate, 0, at, levels=levels)
    )


@pytest.mark.parametrize("side", ["left", "right"])
def test_walks_that_pass_where_rooms_are_cut_are_not_proven(side):
    """What lies there is not in the certificate. To the left a walk ends before the first record,
    whose value follows from a start that a longer chain has not.
    """
    certificate = certificate_of("hours")
    at, design, number = next(
        (at, design, number)
        for at, design in enumerate(certificate.designs.designs)
        for number in [certificate.designs.stoppings[design.stopping].options[0][side == "right"]]
        if len(certificate.designs.stoppings[design.stopping].sides[number].levels) > 1
    )
    room = getattr(design, side)
    place = f"designs.stoppings[{design.stopping}].sides[{number}], designs.designs[{at}]"
    first, *_ = certificate.designs.stoppings[design.stopping].sides[number].levels
    count = len(certificate.designs.stoppings[design.stopping].sides[number].levels)
    for last in range(first + count - 1, room + 3):
        levels = [*range(first, first + count - 1), last]
        longer = with_side(certificate, design.stopping, number, levels=levels)
        passes = last > room if side == "right" else last >= room
        for limit in (None, room):
            designs = replace(longer.designs, **{f"{side}_limit": limit})
            bound = next(
                kept.bound for kept in bounds(designs, longer.model) if kept.place == place
            )
            assert bound().is_finite() == (limit is None or not passes)


# ---- against the definition


def probability(limit):
    return Fraction(1) if limit == WHOLE - 1 else Fraction(limit, WHOLE)


def outcome_masses(side, kernels, k, labels=1):
    """Pr(label, stop, all values from it on | x) of every outcome, by all paths; kernels: of each
    step. The label of a walk that reached its last level is its far value.
    """
    shape = (k, len(side.levels) - 1, k, k, k if side.ahead else 1, labels)
    limits = np.array(spelled_thresholds(side.stop), dtype=object).reshape(shape)
    masses = {}
    for x in range(k):
        for path in product(range(k), repeat=side.levels[-1]):
            walked = (x, *path)
            chance = math.prod(one[walked[t]][walked[t + 1]] for t, one in enumerate(kernels))
            far = path[-1]
            for level, distance in enumerate(side.levels[:-1]):
                here = path[distance - 1]
                further = path[side.levels[level + 1] - 1] if side.ahead else 0
                below = Fraction(0)
                for label in range(labels):
                    share = probability(limits[far, level, x, here, further, label])
                    key = (label, level, path[distance - 1 :])
                    masses.setdefault(key, [Fraction(0)] * k)[x] += chance * (share - below)
                    below = share
                chance *= 1 - below
            key = (labels + far, len(side.levels) - 1, path[-1:])
            masses.setdefault(key, [Fraction(0)] * k)[x] += chance
    return masses


def worst(masses, possible):
    """The largest log-ratio; infinite where an outcome cannot be under one value."""
    most = 0.0
    for mass in masses.values():
        given_x = [mass[x] for x in possible]
        if any(given_x):
            most = max(most, math.log(max(given_x) / min(given_x)) if min(given_x) else math.inf)
    return most


def close(found, wanted, within=1e-12):
    if wanted == math.inf:
        return not found.is_finite()
    return abs(float(found) - wanted) < within and upper(found) >= wanted - 1e-15


def back(kernel):
    """Of a stationary chain, in fractions."""
    k = len(kernel)
    rows = [[kernel[i][j] - (i == j) for i in range(k)] for j in range(k - 1)] + [[Fraction(1)] * k]
    solved = flint.fmpq_mat([[flint.fmpq(p.numerator, p.denominator) for p in row] for row in rows])
    right = flint.fmpq_mat([[0]] * (k - 1) + [[1]])
    often = [Fraction(int(p.p), int(p.q)) for p in solved.solve(right).entries()]
    return [[often[j] * kernel[j][i] / often[i] for j in range(k)] for i in range(k)], often


def exact(rows):
    return [[Fraction(int(p.p), int(p.q)) for p in completed(row)] for row in rows]


@st.composite
def models(draw, sizes=(2, 3)):
    k = draw(st.sampled_from(sizes))
    rows = []
    for _ in range(k):
        row = [draw(st.integers(1, 40)) for _ in range(k)]
        total = sum(row)
        short = [round(one / total, 3) for one in row[1:]]
        rows.append([float(round(1 - sum(short), 3)), *short])
    return rows


@st.composite
def thresholds(draw, count, labels=1):
    few = st.one_of(st.sampled_from([0, WHOLE - 1, 2**63]), st.integers(1, WHOLE - 1))
    found = [sorted(draw(few) for _ in range(labels)) for _ in range(count)]
    return written([one for several in found for one in several])


@st.composite
def sides(draw, k, name, ahead=None):
    levels = sorted(draw(st.sets(st.integers(1, 4), min_size=1, max_size=3)))
    ahead = draw(st.booleans()) if ahead is None else ahead
    count = (len(levels) - 1) * k ** (4 if ahead else 3)
    stop = draw(thresholds(count))
    return StoppingSide(side=name, budget=1.0, levels=levels, ahead=ahead, stop=stop)


def model_of(rows):
    chain = off.MarkovChain(rows)
    return replace(
        certificate_of("two values").model,
        labels=tuple(range(len(rows))),
        transition=_tuples(rows),
        start=tuple(chain.marginal(1).tolist()),
    )


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_side_tells_what_all_paths_say(data):
    rows = data.draw(models())
    k, kernel = len(rows), exact(rows)
    name = data.draw(st.sampled_from(["left", "right"]))
    side = data.draw(sides(k, name))
    step = kernel if name == "right" else back(kernel)[0]
    masses = outcome_masses(side, [step] * side.levels[-1], k)
    found = told_by(ways_far(model_of(rows)).towards(name), side)
    assert close(found, worst(masses, range(k)))


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_both_sides_in_turn_tell_no_more_than_is_said(data):
    rows = data.draw(models(sizes=(2,)))
    kernel = exact(rows)
    first, other = data.draw(st.sampled_from([("left", "right"), ("right", "left")]))
    steps = {"right": kernel, "left": back(kernel)[0]}
    seconds = [data.draw(sides(2, other)) for _ in range(3)]
    labels = data.draw(st.integers(1, 2))
    ahead = data.draw(st.booleans())
    stop = data.draw(thresholds(2 ** (4 if ahead else 3), labels))
    numbers = data.draw(st.lists(st.integers(0, 2), min_size=labels + 2, max_size=labels + 2))
    pair = StoppingPair(
        first=first, epsilon=1.0, levels=[1, 3], ahead=ahead, labels=labels, stop=stop,
        seconds=numbers,
    )  # fmt: skip
    mine = outcome_masses(pair, [steps[first]] * 3, 2, labels)
    theirs = [outcome_masses(one, [steps[other]] * one.levels[-1], 2) for one in seconds]
    by_label, shown = 0.0, {}
    for (label, *seen), mass in mine.items():
        for key, after in theirs[numbers[label]].items():
            both = [a * b for a, b in zip(mass, after, strict=True)]
            if any(both):
                ratio = math.log(max(both) / min(both)) if all(both) else math.inf
                by_label = max(by_label, ratio)
            at = shown.setdefault((tuple(seen), numbers[label], key), [Fraction(0)] * 2)
            at[:] = [a + b for a, b in zip(at, both, strict=True)]
    found = told_in_turn(ways_far(model_of(rows)), pair, seconds)
    assert close(found, by_label)
    assert worst(shown, range(2)) <= upper(found)


def released_between(rows, gap):
    """Pr(outcome, b | x) by all values of the gap and all draws."""
    k, n = len(rows), gap.length
    limits = np.array(spelled_thresholds(gap.stop), dtype=object).reshape(-1, k, k, k, k, 2)
    found = {}
    for x, *between, b in product(range(k), repeat=n + 2):
        walked = (x, *between, b)
        chance = math.prod(rows[i][j] for i, j in pairwise(walked))
        held = {(1, n): chance}
        for dropped in range(n):
            for first in range(1, dropped + 2):
                last = first + n - 1 - dropped
                here = held.pop((first, last), Fraction(0))
                number = dropped * (dropped + 1) // 2 + first - 1
                case = limits[number, x, b, between[first - 1], between[last - 1]]
                release, lose = probability(case[0]), max(map(probability, case))
                seen = (first, *between[first - 1 : last])
                found.setdefault(seen, {}).setdefault((x, b), Fraction(0))
                found[seen][x, b] += here * release
                parts = (here * (lose - release), here * (1 - lose))
                after = ((first + 1, last), (first, last - 1)) if first < last else ((), ())
                for state, part in zip(after, parts, strict=True):
                    held[state] = held.get(state, Fraction(0)) + part
        found.setdefault((), {}).setdefault((x, b), Fraction(0))
        found[()][x, b] += held[()]
    return found


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_a_gap_tells_what_all_its_values_say(data):
    rows = data.draw(models())
    k, kernel = len(rows), exact(rows)
    length = data.draw(st.integers(1, 3 if k == 2 else 2))
    budgets = [data.draw(st.sampled_from([0.25, 0.5, 1.0])) for _ in range(2)]
    count = length * (length + 1) * k**4
    gap = GapStopping(length=length, budgets=budgets, stop=data.draw(thresholds(count)))
    often = back(kernel)[1]
    told = [0.0, 0.0]
    for mass in released_between(kernel, gap).values():
        for far in product((0, 1), repeat=k):
            beyond = [[math.exp(s * one) for one in far] for s in budgets]
            q = [[float(mass.get((x, b), 0)) for b in range(k)] for x in range(k)]
            left = [sum(q[x][b] * beyond[0][b] for b in range(k)) for x in range(k)]
            right = [
                sum(q[x][b] * float(often[x] / often[b]) * beyond[1][x] for x in range(k))
                for b in range(k)
            ]
            for end, given_end in enumerate((left, right)):
                if any(given_end):
                    least = min(given_end)
                    ratio = math.log(max(given_end) / least) if least else math.inf
                    told[end] = max(told[end], ratio)
    found = told_between(ways_far(model_of(rows)).right.chain, gap)
    assert close(found[0], told[0], 1e-9)
    assert close(found[1], told[1], 1e-9)


@pytest.mark.parametrize("name", ["a start", "a kernel for each step", "hours"])
def test_where_places_differ_every_place_has_its_own_kernels(name):
    """By all paths, each step by the chain's own kernel or, to the left, by Bayes."""
    certificate = certificate_of(name)
    designs = certificate.designs
    told = {kept.place: kept.bound for kept in bounds(designs, certificate.model)}
    seen = 0
    for at, design in enumerate(designs.designs):
        n = designs.records(design, 1)
        kernels, start = kernels_of(certificate, design, n)
        law = [start]
        for kernel in kernels:
            law.append([sum(a * kernel[i][j] for i, a in enumerate(law[-1])) for j in range(2)])
        stopping = designs.stoppings[design.stopping]
        for number in {number for option in stopping.options for number in option}:
            side = stopping.sides[number]
            if not side.levels or side.levels[-1] > 7:
                continue
            origin = design.left if side.side == "left" else design.left + design.length - 1
            steps = []
            for t in range(side.levels[-1]):
                if side.side == "right":
                    steps.append(kernels[min(origin + t, n - 2)])
                elif origin - t > 0:
                    steps.append(reversed_kernel(kernels[origin - t - 1], law[origin - t - 1]))
                else:
                    steps.append(kernels[0])
            masses = outcome_masses(side, steps, 2)
            possible = [x for x in range(2) if law[origin][x]]
            place = f"designs.stoppings[{design.stopping}].sides[{number}], designs.designs[{at}]"
            assert close(told[place](), worst(masses, possible))
            seen += 1
    assert seen > 5


def kernels_of(certificate, design, n):
    model = certificate.model
    if model.phase is not None:
        (first, rise, _), *more = certificate.designs.phases[design.phases]
        assert not more
        phases = [(first + rise * t) % 24 for t in range(n)]
        start = exact([model.start[phases[0]]])[0]
        return [exact(model.transition[phase]) for phase in phases[:-1]], start
    start = exact([model.start])[0]
    if model.length is not None:
        return [exact(kernel) for kernel in model.transition], start
    return [exact(model.transition)] * (n - 1), start


def reversed_kernel(kernel, before):
    after = [sum(before[i] * kernel[i][j] for i in range(2)) for j in range(2)]
    return [
        [before[j] * kernel[j][i] / after[i] if after[i] else Fraction(0) for j in range(2)]
        for i in range(2)
    ]


# ---- over sets


def box_of(up, down):
    return sets.Box(
        *(tuple(flint.fmpq(p.numerator, p.denominator) for p in one) for one in (up, down))
    )


def worst_over(side, up, down):
    """Of all sequences of corners and all paths."""
    corners = [[[1 - a, a], [b, 1 - b]] for a in up for b in down]
    return max(
        worst(outcome_masses(side, kernels, 2), range(2))
        for kernels in product(corners, repeat=side.levels[-1])
    )


ends = st.integers(1, 99).map(lambda n: Fraction(n, 100))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_over_a_set_a_side_tells_what_all_sequences_of_corners_say(data):
    up, down = (sorted(data.draw(st.tuples(ends, ends))) for _ in range(2))
    side = data.draw(sides(2, "right", ahead=False).filter(lambda one: one.levels[-1] < 4))
    found = sets.told_over(box_of(up, down), side)
    assert close(found, worst_over(side, up, down), 1e-8)


def forget():
    """What was found before, by other hulls."""
    cone.extremes.cache_clear()
    cone._products.cache_clear()


@settings(max_examples=25, deadline=None)
@given(st.data(), st.randoms(use_true_random=False))
def test_a_careless_hull_costs_rays_and_no_truth(data, random):
    """Corners of hulls that are left out, faces that are none or lie elsewhere, cones that are made
    wider by them: nothing is told too low.
    """
    up, down = (sorted(data.draw(st.tuples(ends, ends))) for _ in range(2))
    side = data.draw(sides(2, "right", ahead=False).filter(lambda one: one.levels[-1] < 4))
    right = span.Chart.hull

    def careless(chart):
        found = right(chart)
        if found is None or len(found[0]) < 4:
            return found
        vertices, faces, planes = found
        keep = np.sort(random.sample(vertices.tolist(), random.randint(1, len(vertices))))
        are = np.isin(faces, keep).all(axis=1)
        return keep, faces[are], planes[are] - random.choice((0.0, 0.0, 1e-6, 0.1))

    forget()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(span.Chart, "hull", careless)
        effort = cone.Effort(random.choice((5, 20, 300)), random.choice((4, 6, 300)))
        patched.setattr(sets, "_EFFORTS", (effort,))
        found = sets.told_over(box_of(up, down), side)
    forget()
    wanted = worst_over(side, up, down)
    assert not found.is_finite() or upper(found) >= wanted - 1e-12


@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_products_of_kernels_are_held_by_their_cone(data, count, seed):
    """In rationals: each product, of corners or of kernels between them, is a sum of rays of the
    cone with no negative share, up to what is said to be missed.
    """
    up, down = (sorted(data.draw(st.tuples(ends, ends))) for _ in range(2))
    corners = [[[1 - a, a], [b, 1 - b]] for a in up for b in down]
    products = cone._Products(np.array(corners, dtype=float), data.draw(st.sampled_from((4, 8))))
    held = products.of(count)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        together = [[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]]
        for _ in range(count):
            a, b = (
                ends[0] + (ends[1] - ends[0]) * Fraction(int(rng.integers(0, 3)), 2)
                for ends in (up, down)
            )
            kernel = [[1 - a, a], [b, 1 - b]]
            together = [
                [sum(row[i] * kernel[i][j] for i in range(2)) for j in range(2)] for row in together
            ]
        entries = np.array(together, dtype=float).ravel()
        parts, _ = nnls(held.rays.T, entries)
        logs = np.log(entries / (held.rays.T @ parts))
        assert logs.max() - logs.min() <= float(Fraction(str(held.missed))) + 1e-10


def test_products_of_too_many_rays_prove_nothing(monkeypatch):
    """As where hulls fail, and rays are four times as many with every step."""
    monkeypatch.setattr(span.Chart, "hull", lambda chart: None)
    stop = written([0] * 8)
    side = StoppingSide(side="right", budget=1.0, levels=[30, 31], ahead=False, stop=stop)
    forget()
    found = sets.told_over(box_of(*[(Fraction(1, 5), Fraction(1, 4))] * 2), side)
    forget()
    assert not found.is_finite()


def test_wider_cones_hold_the_others():
    """Of few rays and of many: what few tell is no less, and not by much more."""
    certificate = certificate_of("over a long set")
    box = sets.box_of(certificate.model, "right")
    sides = certificate.designs.stoppings[0].sides
    side = max((one for one in sides if one.side == "right"), key=lambda one: len(one.levels))
    walked = tuple(box.corners), tuple(side.levels)
    units = tuple(in_units(side.stop))
    for far, half in enumerate((units[: len(units) // 2], units[len(units) // 2 :])):
        few, many = (
            float(sets._stops(cone.extremes(cone.Walk(*walked, half, effort)), half, far))
            for effort in (cone.Effort(20, 12), cone.Effort(10_000, 10_000))
        )
        assert many - 1e-9 <= few <= many + 1e-2
