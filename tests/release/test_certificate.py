"""The certificate's form: what is written is read back, the schema says the same, nothing else
passes, and the page tells all of it.
"""

import ast
import base64
import copy
import json
import math
import re
import sys
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.errors import InputError
from offrecord.mechanisms.base import Shared
from offrecord.mechanisms.local.stretches import Stretches
from offrecord.mechanisms.owner import stopping as acting
from offrecord.mechanisms.owner.designing.between import gap_stopping, is_proven, told_between
from offrecord.mechanisms.owner.designing.labels import stopping_pair
from offrecord.mechanisms.owner.designing.sides import Effort, closed_side, stopping_side
from offrecord.mechanisms.owner.files import stopping_to_dict
from offrecord.mechanisms.owner.ways import Ways
from offrecord.models.clock import PHASES
from offrecord.models.loading import model_from_dict
from offrecord.release import certificate as cert
from offrecord.release.certificate import (
    Certificate,
    GapStopping,
    LocalDesign,
    LocalDesigns,
    ModelComparison,
    OtherDesign,
    OtherDesigns,
    Output,
    OwnerDesign,
    OwnerDesigns,
    Positions,
    Stopping,
    StoppingPair,
    StoppingSide,
    form,
    phase_runs,
    spelled_phases,
    spelled_rows,
    spelled_thresholds,
)
from offrecord.release.coins import ALWAYS

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / "docs" / "certificate.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
EXAMPLE = re.findall(r"```json\n(.*?)```", PAGE, re.S)[0]


# ---- certificates by hand, of every sort

MODEL = cert.Model(
    order=1,
    labels=[0, 1],
    transition=[[0.9, 0.1], [0.3, 0.7]],
    start=[0.75, 0.25],
    stationary=True,
)
AUDIT = cert.Audit(
    verdict="doubtful",
    odds=math.inf,
    at_least=4.1,
    promised=2.72,
    epsilon=1.0,
    kind="neighbours",
    where="1 after, of 0 against 1",
    chance=False,
    held_back="each quarter in turn",
    looked_at=["neighbours", "hour"],
    closed=[0.5],
)


def plain(**changed):
    """A stationary model with two designs of one secret each."""
    design = dict(leakage=0.5, rounding=1e-15, method="exact", uses=1, window=[1, 2])
    design |= dict(left_rest=False, right_rest=True)
    given = dict(
        claim=cert.Claim(
            epsilon=1.0,
            protect="run",
            mechanism="best-local",
            leakage=0.5,
            leakage_is_exact=True,
            statement=cert.claim_statement(1.0),
        ),
        assumptions=cert.assumptions(MODEL, None, kept=True),
        dataset="rain ☂",
        key_id="0123456789abcdef",
        columns=cert.Columns(
            value="wet",
            order="hour",
            by=["site"],
            keep=["note"],
            keep_all=False,
            step="1h",
            order_kind="time",
            zone="Europe/Berlin",
        ),
        counts=cert.Counts(rows=10, chains=1, missing=1, private=2, secrets=2),
        private=cert.Private(
            count=2,
            digest="0" * 32 + ":2",
            positions=Positions(columns=["site", "hour"], keys=[["a", 2**62], ["a", -1]]),
        ),
        release=cert.Release(other_releases=0, composed=True),
        designs=LocalDesigns(
            mechanism="best-local",
            epsilon=1.0,
            protect="run",
            grids=cert.Grids(left=[0, 1, 4], right=[0, 2, 4]),
            loss=0.25,
            sides=[[], [[2, [1.0, 0.5]], [1, [0.0, 1.0]]]],
            designs=[
                LocalDesign(
                    left=0, right=4, length=1, redaction_left=0, redaction_right=1, **design
                ),
                LocalDesign(
                    left=4, right=4, length=2, redaction_left=1, redaction_right=1, **design
                ),
            ],
        ),
        model=MODEL,
        learned=cert.Learned(
            value="wet",
            order="time",
            step="1h",
            zone=None,
            spacing=None,
            verdict="good",
            audit=AUDIT,
            calibration="order 2",
            share=1.0,
            distance=None,
        ),
        model_check=cert.ModelCheck(
            unseen=True,
            compared=ModelComparison(
                transitions=500,
                impossible=0,
                statistic=3.5,
                degrees=2,
                p_value=0.17,
                waste=math.inf,
                leakage=None,
                significance=1e-6,
            ),
            accepted=["it is from elsewhere"],
        ),
        versions=cert.software_versions(),
        output=Output(format="csv", rows=10, columns=["site", "hour", "wet"], sha256="a" * 64),
    )
    return Certificate(**(given | changed))


def phased():
    certificate = plain()
    phases = [[[22, 1, 9]], phase_runs([5] * 10, 24)]
    entries = [
        replace(one, phases=at, right=right)
        for at, (one, right) in enumerate(zip(certificate.designs.designs, (8, 4), strict=True))
    ]
    designs = replace(
        certificate.designs, grids=None, right_limit=4096, phases=phases, designs=entries
    )
    model = cert.Model(
        order=1,
        phase="hour",
        zone="Europe/Berlin",
        labels=["dry", "wet"],
        transition=[[[0.9, 0.1], [0.3, 0.7]]] * 24,
        start=[[0.75, 0.25]] * 24,
        stationary=False,
    )
    return replace(certificate, designs=designs, model=model, learned=None)


def second_order():
    model = cert.Model(
        order=2,
        labels=["a", "b"],
        transition=[[[0.9, 0.1], [0.5, 0.5]], [[0.4, 0.6], [0.2, 0.8]]],
        start=[[0.25, 0.25], [0.25, 0.25]],
        stationary=True,
    )
    return plain(model=model)


def set_around(model, start="stationary", by=0.125):
    """Intervals around the probabilities of a model that is its own reverse."""

    def moved(numbers, end):
        if isinstance(numbers, tuple):
            return [moved(one, end) for one in numbers]
        return min(max(numbers + end * by, 0.0), 1.0)

    ends = [moved(model.transition, -1), moved(model.transition, 1)]
    return cert.ModelSet(
        confidence=0.95, interval="mixture", start=start, forward=ends, backward=ends
    )


def over_a_set(start="settled"):
    return plain(model=replace(MODEL, set=set_around(MODEL, start)))


def phased_over_a_set():
    certificate = phased()
    model = certificate.model
    return replace(certificate, model=replace(model, set=set_around(model)))


def second_order_over_a_set():
    model = second_order().model
    return plain(model=replace(model, set=set_around(model)))


def hidden():
    model = cert.Model(
        order=1,
        labels=["a", "b"],
        shows=[0, 1, 0],
        transition=[[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8]],
        start=[0.5, 0.25, 0.25],
        stationary=True,
    )
    return plain(model=model)


def stepped():
    """A kernel for each step, of which only one design's problem has as many records."""
    certificate = plain()
    designs = replace(certificate.designs, grids=None, designs=certificate.designs.designs[1:])
    model = cert.Model(
        order=1,
        labels=[True, False],
        transition=[[[0.9, 0.1], [0.3, 0.7]]] * 9,
        start=[1, 0],
        stationary=False,
    )
    return replace(certificate, designs=designs, model=model)


def of_another_kind():
    common = dict(left=3, right=3, length=1, leakage=0.5, rounding=0.0, uses=2, window=[1, 1])
    common["method"] = "own"
    designs = OtherDesigns(
        kind="coin",
        mechanism="all or nothing",
        epsilon=1.0,
        protect="each",
        composition=cert.Composition(rule="a coin each", draw_bits=64, text="One coin a secret."),
        designs=[OtherDesign(**common, own={"chance": 0.5, "levels": [[1, None], {"b": -1.5}]})],
        own={"deadline": 7},
    )
    return plain(designs=designs)


def written(thresholds):
    """Thresholds as certificates write them."""
    return base64.b64encode(np.array(thresholds, dtype="<u8").tobytes()).decode()


def owners():
    """Two sides, closed ones, both sides in turn, and gaps."""
    given = dict(side="left", budget=0.5, levels=[1, 4], ahead=False)
    left = StoppingSide(**given, stop=written(range(8)))
    second = StoppingSide(**given | dict(ahead=True), stop=written([2**64 - 1] * 16))
    right = StoppingSide(
        side="right", budget=0.25, levels=[2, 3, 5], ahead=True, stop=written(range(32))
    )
    closed = StoppingSide(side="right", budget=0.25, levels=[], ahead=False, stop="")
    pair = StoppingPair(
        first="right",
        epsilon=1.0,
        levels=[1, 3],
        ahead=False,
        labels=3,
        stop=written([0, 2, 2**64 - 1] * 8),
        seconds=[0, 2, 0, 2, 2],
    )
    gaps = [
        GapStopping(length=length, budgets=[0.25, 0.5], stop=written(range(16 * count)))
        for length, count in ((3, 12), (1, 2))
    ]
    stopping = Stopping(
        epsilon=1.0,
        options=[[0, 1], [2, 1], [0, 3]],
        pair=pair,
        gaps=gaps,
        sides=[left, right, second, closed],
    )
    window = replace(stopping, options=[[0, 1]], pair=None, gaps=[], sides=windows(1, 0.5))
    common = dict(leakage=0.5, rounding=0.0, method="stopping (O3)", uses=1, window=[1, 2])
    designs = OwnerDesigns(
        mechanism="owner",
        epsilon=1.0,
        protect="run",
        grids=cert.Grids(left=[0, 4], right=[0, 4]),
        stoppings=[stopping, window],
        designs=[
            OwnerDesign(left=0, right=4, length=1, stopping=0, **common),
            OwnerDesign(left=4, right=4, length=2, stopping=1, **common),
        ],
    )
    return plain(designs=designs)


def second_order_owners():
    """Of two values, but four pairs of them."""
    given = dict(budget=0.5, levels=[2, 4], ahead=False, stop=written(range(4**3)))
    sides = [StoppingSide(side=side, **given) for side in ("left", "right")]
    stopping = Stopping(epsilon=1.0, options=[[0, 1]], sides=sides)
    designs = owners().designs
    entries = [replace(one, stopping=0) for one in designs.designs]
    return replace(second_order(), designs=replace(designs, stoppings=[stopping], designs=entries))


def windows(deadline, budget):
    """Both sides without a level before the last."""
    given = dict(budget=budget, levels=[deadline], ahead=False, stop="")
    return [StoppingSide(side=side, **given) for side in ("left", "right")]


def phased_owners():
    certificate = phased()
    common = dict(leakage=0.5, rounding=0.0, method="stopping (O3)", uses=1, window=[1, 2])
    entries = [
        OwnerDesign(
            left=one.left,
            right=one.right,
            length=one.length,
            phases=one.phases,
            stopping=0,
            **common,
        )
        for one in certificate.designs.designs
    ]
    designs = OwnerDesigns(
        mechanism="owner",
        epsilon=1.0,
        protect="each",
        phases=certificate.designs.phases,
        stoppings=[Stopping(epsilon=1.0, options=[[0, 1]], sides=windows(7, 0.5))],
        designs=entries,
    )
    return replace(certificate, designs=designs)


def of_spark():
    files = {"part-0.parquet": "b" * 64, "part-1.parquet": "c" * 64}
    return plain(output=Output(format="parquet", rows=10, columns=["wet"], files=files))


def dry():
    empty = LocalDesigns(
        mechanism="window", epsilon=0.0, protect="each", sides=[], designs=[], phases=[]
    )
    return plain(
        key_id=None,
        private=cert.Private(count=0),
        release=cert.Release(other_releases=None, composed=None, why="a dry run is no release"),
        designs=empty,
        model_check=cert.ModelCheck(unseen=None, compared=None, accepted=[]),
        output=None,
    )


LATER = {"since": 5}


def over_a_later_set():
    certificate = over_a_set("stationary")
    models = replace(certificate.model.set, **LATER)
    return replace(certificate, model=replace(certificate.model, set=models))


@pytest.mark.parametrize("name", ["growing", "joint"])
def test_a_later_set_does_not_stand_beside_other_releases(name):
    others = getattr({"growing": growing, "joint": joint}[name](), name)
    wrong = replace(over_a_later_set(), **{name: others})
    says = refusal(wrong.to_dict())
    assert "model.set.since" in says
    assert "growing or joint" in says


def growing():
    held = cert.Growing(until=2**62, lag=9, reach=7, link=1)
    grown = cert.assumptions(MODEL, held, kept=True)
    return plain(growing=held, assumptions=grown)


def joint():
    other = cert.Earlier(dataset="rain", certificate="d" * 64, same_coins=True)
    told = cert.Joint(
        epsilon=math.inf,
        leakage=math.inf,
        leakage_is_exact=False,
        floor=1.5,
        secrets=3,
        releases=[other],
    )
    return plain(joint=told, assumptions=cert.assumptions(MODEL, told, kept=True))


SORTS = [
    *(growing, joint),
    *(owners, phased_owners, second_order_owners),
    *(plain, phased, second_order, hidden, stepped, of_another_kind, of_spark, dry),
    *(over_a_set, phased_over_a_set, second_order_over_a_set, over_a_later_set),
]


def is_of_the_schema(content):
    return not any(VALIDATOR.iter_errors(content))


def refusal(content):
    """What the reader says against it, in one line; None if it takes it."""
    try:
        Certificate.from_dict(copy.deepcopy(content))
    except InputError as error:
        return str(error)
    return None


def is_read(content):
    says = refusal(content)
    assert says is None or ("\n" not in says and 0 < len(says) < 300)
    return says is None


# ---- both ways


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("sort", SORTS)
def test_what_is_written_is_read_back(sort):
    certificate = sort()
    written = certificate.to_json()
    assert Certificate.from_json(written) == certificate
    assert Certificate.from_json(written.decode()).to_json() == written
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    assert is_of_the_schema(json.loads(written))
    assert written.endswith(b"}\n")
    assert written.startswith(b'{\n "format": "offrecord-certificate",\n "version": 5,')


def test_the_example_of_the_page_is_one():
    certificate = Certificate.from_json(EXAMPLE)
    assert json.loads(EXAMPLE) == certificate.to_dict()
    assert is_of_the_schema(json.loads(EXAMPLE))
    assert certificate.claim.statement == cert.claim_statement(certificate.claim.epsilon)
    assert certificate.assumptions == cert.assumptions(certificate.model, None, kept=False)
    assert certificate.designs.composition == cert.MAXIMUM


def test_the_first_assumption_says_of_which_models():
    first = {
        cert.assumptions(sort().model, None, kept=False)[0] for sort in (plain, phased_over_a_set)
    }
    assert len(first | {cert.assumptions(over_a_set().model, None, kept=False)[0]}) == 3
    assert all("memory" in said for said in first if "intervals" in said)


def checked_by_hand(certificate, folder, monkeypatch, capsys, blocks):
    """What some of the page's blocks print about a certificate: found, stated, allowed, each."""
    monkeypatch.chdir(folder)
    Path("released.csv.certificate.json").write_text(json.dumps(certificate), encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S)[blocks]:
        exec(compile(block, "certificate.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    return [[float(one) for one in re.findall(r"\d\.\d+(?:e-\d+)?", line)] for line in printed]


def test_checking_by_hand_as_the_page_says_finds_the_leakage(tmp_path, monkeypatch, capsys):
    alone, over = checked_by_hand(json.loads(EXAMPLE), tmp_path, monkeypatch, capsys, slice(2))
    found, stated, allowed = over
    assert found == pytest.approx(stated, abs=1e-12)
    assert found <= allowed == Certificate.from_json(EXAMPLE).claim.epsilon
    assert alone[0] < found - 0.01
    assert alone[1:] == over[1:]


def test_checking_by_hand_finds_the_leakage_of_a_model_alone(tmp_path, monkeypatch, capsys):
    content = changed(json.loads(EXAMPLE), ("model", "set"), None)
    ((found, _, _),) = checked_by_hand(content, tmp_path, monkeypatch, capsys, slice(1))
    problem, matrix = problem_of(Certificate.from_dict(content))
    assert found == pytest.approx(off.leakage(problem, matrix), abs=1e-12)


CHAIN = off.MarkovChain.binary(0.3, 0.4)


def owners_of(stopping):
    """A certificate of the chain with this stopping alone."""
    model = replace(MODEL, transition=CHAIN.transition.tolist(), start=CHAIN.start.tolist())
    designs = owners().designs
    entries = [replace(one, stopping=0) for one in designs.designs]
    section = section_of(stopping)
    designs = replace(designs, epsilon=section.epsilon, stoppings=[section], designs=entries)
    return plain(model=model, designs=designs)


def test_checking_by_hand_finds_what_owners_designs_tell(tmp_path, monkeypatch, capsys):
    ways, effort = Ways.far(CHAIN), Effort(8, ahead=True)
    sides = [stopping_side(way, 0.25, effort) for way in (ways.left, ways.right)]
    closed = closed_side(-1, 2), stopping_side(ways.right, 0.5, Effort(2))
    pair = stopping_pair(ways.right, ways.left, 0.5, effort)
    gaps = tuple(gap_stopping(CHAIN, length, (0.25, 0.25)) for length in (1, 3))
    content = owners_of(acting.Stopping(0.5, (tuple(sides), closed), pair, gaps)).to_dict()
    assert Certificate.from_dict(content).to_dict() == content
    found = checked_by_hand(content, tmp_path, monkeypatch, capsys, slice(2, 4))
    expected = [(ways.told(side).max(), side.budget) for side in (*sides, *closed)]
    expected.append((ways.told_by_pair(pair).max(), 0.5))
    expected += [(told.max(), 0.25) for gap in gaps for told in told_between(gap, CHAIN)]
    assert np.array(found) == pytest.approx(np.array(expected), abs=1e-9)


def test_the_threshold_of_the_page_is_where_it_says():
    example = json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.S)[1])
    ways, (left, right) = Ways.far(CHAIN), example["sides"]
    Stopping.read(form.Entry(example, "stopping")).check("stopping", 2, 0.5)
    assert left["stop"] == right["stop"]
    (raw,) = re.findall(r"number .* = (4) counts, the bytes `(.*?)`", PAGE)
    number, shown = int(raw[0]), bytes.fromhex(raw[1])
    assert base64.b64decode(right["stop"])[8 * number : 8 * number + 8] == shown
    threshold = spelled_thresholds(right["stop"])[number]
    told = re.search(rf"That is {threshold}, or (0\.\d+) of 2⁶⁴", PAGE)
    assert float(told[1]) == pytest.approx(threshold / 2**64, abs=5e-7)
    limits = np.array(spelled_thresholds(right["stop"]), dtype=np.uint64).reshape(2, 1, 2, 2, 1)
    far, level, end, here, following = 1, 0, 0, 0, 0
    assert limits[far, level, end, here, following] == threshold
    assert limits[far, level, end, 1, following] == ALWAYS
    side = acting.StoppingSide(1, 0.25, np.array(right["levels"]), limits)
    assert 0.2499 < ways.told(side).max() <= 0.25


def test_the_threshold_of_a_gap_on_the_page_is_where_it_says():
    example = json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.S)[1])
    (gap,) = example["gaps"]
    (raw,) = re.findall(r"number .* = (30) is the first of its two, the bytes `(.*?)`", PAGE)
    number, shown = int(raw[0]), bytes.fromhex(raw[1])
    assert base64.b64decode(gap["stop"])[8 * number : 8 * number + 8] == shown
    threshold = spelled_thresholds(gap["stop"])[number]
    told = re.search(rf"That is {threshold}, or (0\.\d+) of 2⁶⁴", PAGE)
    assert float(told[1]) == pytest.approx(threshold / 2**64, abs=5e-7)
    limits = np.array(spelled_thresholds(gap["stop"]), dtype=np.uint64).reshape(1, 2, 2, 2, 2, 2)
    state, left, right, first, last, released = 0, 1, 1, 1, 1, 0
    assert limits[state, left, right, first, last, released] == threshold
    acts = acting.GapStopping(gap["length"], tuple(gap["budgets"]), limits)
    assert is_proven(acts, CHAIN)
    assert max(told.max() for told in told_between(acts, CHAIN)) > 0.2499


def test_thresholds_of_gaps_are_numbered_as_the_page_says():
    """By what is held out, the most records first, then the leftmost."""
    for length in (1, 2, 5):
        for number, (first, last) in enumerate(acting.gap_states(length)):
            dropped = length - (last - first + 1)
            assert number == dropped * (dropped + 1) // 2 + first - 1


def problem_of(certificate):
    """The problem of the only design of a certificate, and what it redacts there."""
    designs, chain = certificate.designs, model_from_dict(certificate.to_dict()["model"])
    (one,) = designs.designs
    n = designs.records(one, chain.order)
    matrix = np.zeros((n, chain.k))
    matrix[one.left : one.left + one.length] = 1.0
    left = spelled_rows(designs.sides[one.redaction_left])
    right = spelled_rows(designs.sides[one.redaction_right])
    matrix[one.left - len(left) : one.left] = left[::-1]
    after = one.left + one.length
    matrix[after : after + len(right)] = right
    return off.Problem(chain, n, range(one.left + 1, after + 1), designs.epsilon), matrix


def test_the_problem_of_a_design_has_the_leakage_that_is_stated():
    certificate = Certificate.from_json(EXAMPLE)
    problem, matrix = problem_of(certificate)
    assert problem.chain.is_stationary
    assert problem.models is not None
    (one,) = certificate.designs.designs
    assert off.leakage(problem, matrix) == pytest.approx(one.leakage, abs=1e-12)


@pytest.mark.parametrize(
    ("rooms", "order", "records"),
    [((0, 1, 0), 1, 2), ((0, 1, 0), 3, 4), ((2, 3, 4), 1, 9), ((2, 3, 4), 8, 9), ((0, 2, 0), 1, 2)],
)
def test_how_many_records_a_problem_has(rooms, order, records):
    left, length, right = rooms
    designs = plain().designs
    one = replace(designs.designs[0], left=left, length=length, right=right)
    assert designs.records(one, order) == records


def test_phases_say_how_many_records_there_are():
    designs = phased().designs
    assert [designs.records(one, 1) for one in designs.designs] == [9, 10]


# ---- any certificate

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
maybe_words = st.none() | words
counts = st.integers(0, 10**15)
numbers = st.floats(0, allow_nan=False, allow_infinity=False)
chances = st.floats(0, 1)
names = st.lists(words, max_size=3)
digests = st.text("0123456789abcdef", min_size=64, max_size=64)
cells = words | st.integers(-(2**127), 2**127 - 1) | st.booleans()
jsons = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def distributions(k):
    weights = st.lists(st.integers(0, 100), min_size=k, max_size=k).filter(any)
    return weights.map(lambda row: [one / sum(row) for one in row])


@st.composite
def models(draw):
    k, order = draw(st.integers(2, 3)), draw(st.integers(1, 2))
    phase = draw(st.sampled_from([None, *PHASES])) if order == 1 else None
    row = distributions(k)
    kernel = st.lists(row, min_size=k, max_size=k)
    start = row
    if phase is not None:
        kernel, start = (
            kernel.map(lambda one: [one] * PHASES[phase]),
            row.map(lambda one: [one] * PHASES[phase]),
        )
    if order == 2:
        kernel = st.lists(kernel, min_size=k, max_size=k)
        start = distributions(k * k).map(lambda one: [one[i * k : i * k + k] for i in range(k)])
    labels = st.lists(words | st.integers(-5, 5), min_size=k, max_size=k, unique=True)
    model = cert.Model(
        order=order,
        phase=phase,
        zone=draw(maybe_words),
        labels=draw(labels),
        transition=draw(kernel),
        start=draw(start),
        stationary=phase is None and draw(st.booleans()),
    )
    around = st.floats(0, 1).map(lambda by: set_around(model, by=by))
    return replace(model, set=draw(st.none() | around))


def common_parts(draw, model, left, right):
    """What every design has, and the runs of its phases."""
    length = draw(st.integers(1, 4))
    runs = []
    if model.phase is not None:
        least = max(left + length + right, 2)
        n = draw(st.integers(least, max(left + length + max(right, 1), least)))
        first, rise = draw(st.tuples(st.integers(0, 6), st.integers(0, 6)))
        runs = phase_runs(
            [(first + rise * at) % PHASES[model.phase] for at in range(n)], PHASES[model.phase]
        )
    given = dict(left=left, right=right, length=length, window=draw(st.tuples(counts, counts)))
    given |= dict(leakage=draw(numbers), rounding=draw(numbers), uses=draw(counts))
    given |= dict(method=draw(st.sampled_from(["exact", "contexts", "ways of others"])))
    return given, runs


@st.composite
def acting_levels(draw, most=12):
    return np.sort(draw(st.lists(st.integers(1, most), unique=True, max_size=3))).astype(np.int64)


@st.composite
def acting_limits(draw, shape):
    """Thresholds, the least and the largest among them."""
    drawn = np.random.default_rng(draw(st.integers(0, 99)))
    limits = drawn.integers(0, 2**64, shape, dtype=np.uint64)
    limits[drawn.random(shape) < 0.1] = 0
    limits[drawn.random(shape) < 0.1] = ALWAYS
    return limits


@st.composite
def acting_sides(draw, k, direction, budget, most=12):
    levels = draw(acting_levels(most))
    shape = (k, max(len(levels) - 1, 0), k, k, draw(st.sampled_from([1, k])))
    return acting.StoppingSide(direction, budget, levels, draw(acting_limits(shape)))


@st.composite
def acting_stoppings(draw, k, epsilon):
    """Stopping as it acts, with any thresholds."""
    budgets = epsilon * 0.5, epsilon * draw(st.floats(0, 0.5))
    base = tuple(draw(acting_sides(k, way, s)) for way, s in zip((-1, 1), budgets, strict=True))
    most = [int(side.levels[-1]) if len(side.levels) else 12 for side in base]
    options = [base]
    for _ in range(draw(st.integers(0, 2))):
        sides = zip((-1, 1), most, strict=True)
        options.append(tuple(draw(acting_sides(k, way, epsilon, far)) for way, far in sides))
    pair = draw(st.none() | acting_pairs(k, epsilon))
    lengths = draw(st.lists(st.integers(1, 3), unique=True, max_size=2 if k <= 3 else 0))
    gaps = [draw(acting_gaps(k, length, budgets[::-1])) for length in lengths]
    return acting.Stopping(epsilon, tuple(options), pair, tuple(gaps))


@st.composite
def acting_gaps(draw, k, length, budgets):
    shape = (length * (length + 1) // 2, k, k, k, k, 2)
    return acting.GapStopping(length, budgets, draw(acting_limits(shape)))


@st.composite
def acting_pairs(draw, k, epsilon):
    levels = draw(acting_levels().filter(len))
    first, labels = draw(st.sampled_from([-1, 1])), draw(st.integers(1, 3))
    shape = (k, len(levels) - 1, k, k, draw(st.sampled_from([1, k])), labels)
    limits = np.sort(draw(acting_limits(shape)), axis=-1)
    some = [draw(acting_sides(k, -first, epsilon)) for _ in range(2)]
    seconds = tuple(some[at % 2] for at in range(labels + k))
    return acting.StoppingPair(first, epsilon, levels, limits, seconds)


@st.composite
def owners_sections(draw, model):
    epsilon, rooms = draw(st.floats(0, 50)), st.integers(0, 5)
    stoppings = acting_stoppings(model.k**model.order, epsilon)
    listed = draw(st.lists(stoppings, min_size=1, max_size=2))
    entries, sequences = [], []
    for left in draw(st.lists(rooms, unique=True, max_size=3)):
        given, runs = common_parts(draw, model, left, draw(rooms))
        sequences.append(runs)
        phases = None if model.phase is None else len(sequences) - 1
        which = draw(st.integers(0, len(listed) - 1))
        entries.append(OwnerDesign(**given, phases=phases, stopping=which))
    return OwnerDesigns(
        mechanism=draw(words),
        epsilon=epsilon,
        protect=draw(st.sampled_from(["run", "each"])),
        grids=cert.Grids(left=[0, 5], right=[0, 5]) if model.stationary else None,
        phases=[] if model.phase is None else sequences,
        stoppings=[section_of(stopping) for stopping in listed],
        designs=entries,
    )


def section_of(stopping):
    """What a mechanism writes, as a section of the form."""
    return Stopping.read(form.Entry(stopping_to_dict(stopping), "stopping"))


@st.composite
def design_sections(draw, model):
    if draw(st.booleans()):
        return draw(owners_sections(model))
    row = st.lists(chances, min_size=model.k, max_size=model.k)
    sides = draw(st.lists(st.lists(st.tuples(st.integers(1, 3), row), max_size=2), min_size=1))
    sizes = [sum(count for count, _ in side) for side in sides]
    local = draw(st.booleans())
    entries, sequences = [], []
    for _ in range(draw(st.integers(0, 3))):
        which = draw(st.tuples(*[st.integers(0, len(sides) - 1)] * 2))
        rooms = (sizes[index] + draw(st.integers(0, 3)) for index in which)
        given, runs = common_parts(draw, model, *rooms)
        made_for = given["left"], given["right"], given["length"]
        if any(made_for == (one.left, one.right, one.length) for one in entries):
            continue
        sequences.append(runs)
        own = dict(redaction_left=which[0], redaction_right=which[1])
        own |= dict(left_rest=draw(st.booleans()), right_rest=draw(st.booleans()))
        entries.append(
            LocalDesign(**given, **own) if local else OtherDesign(**given, own={"own": draw(jsons)})
        )
    phases = []
    if model.phase is not None:
        phases = list(dict.fromkeys(sequences))
        which = [phases.index(one) for one in sequences]
        entries = [replace(one, phases=at) for one, at in zip(entries, which, strict=True)]
    given = dict(
        mechanism=draw(words),
        epsilon=draw(numbers),
        protect=draw(st.sampled_from(["run", "each"])),
        grids=cert.Grids(left=[0, 3], right=[0, 1, 3]) if model.stationary else None,
        loss=draw(numbers),
        right_limit=draw(st.none() | st.integers(1, 5000)),
        phases=phases,
        designs=entries,
    )
    if local:
        return LocalDesigns(**given, sides=sides)
    composition = cert.Composition(rule=draw(words), draw_bits=draw(st.integers(1, 99)), text="")
    kind = draw(words.filter(lambda one: one not in cert.KINDS))
    return OtherDesigns(**given, kind=kind, composition=composition, own={"x": draw(jsons)})


audits = st.builds(
    cert.Audit,
    verdict=st.sampled_from(["good", "doubtful", "unfit"]),
    odds=numbers | st.just(math.inf),
    **dict.fromkeys(("at_least", "promised", "epsilon"), numbers),
    **dict.fromkeys(("kind", "where", "held_back"), words),
    chance=st.booleans(),
    looked_at=names.map(tuple),
    closed=st.lists(numbers, max_size=3).map(tuple),
)


@st.composite
def certificates(draw):
    model = draw(models())
    width = draw(st.integers(0, 2))
    keys = st.lists(st.lists(cells, min_size=width, max_size=width), max_size=2)
    sha, files = draw(
        st.tuples(digests, st.none()) | st.tuples(st.none(), st.dictionaries(words, digests))
    )
    positions = Positions(columns=["c"] * width, keys=draw(keys))
    output = Output(
        format=draw(words), rows=draw(counts), columns=draw(names), sha256=sha, files=files
    )
    private = cert.Private(count=draw(counts), positions=draw(st.none() | st.just(positions)))
    learned = cert.Learned(
        value=draw(words),
        order=draw(words),
        step=draw(maybe_words),
        zone=draw(maybe_words),
        spacing=draw(st.none() | numbers),
        verdict=draw(words),
        audit=draw(st.none() | audits),
        calibration=draw(maybe_words),
        share=draw(st.floats(0, 1, exclude_min=True)),
        distance=draw(st.none() | st.integers(1, 10**6)),
        unit=draw(maybe_words),
        bins=draw(st.none() | st.lists(st.floats(-10, 10), max_size=2)),
        others=draw(maybe_words),
    )
    return plain(
        dataset=draw(words),
        assumptions=draw(names),
        private=private,
        designs=draw(design_sections(model)),
        model=model,
        learned=draw(st.none() | st.just(learned)),
        versions=draw(st.dictionaries(words, words, max_size=2)),
        output=draw(st.none() | st.just(output)),
    )


@settings(max_examples=60, deadline=None)
@given(certificates())
def test_every_certificate_is_read_back_and_of_the_schema(certificate):
    written = certificate.to_json()
    assert Certificate.from_json(written) == certificate
    assert Certificate.from_json(written).to_json() == written
    assert is_of_the_schema(json.loads(written))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 3).flatmap(lambda k: st.tuples(st.just(k), acting_stoppings(k, 1.5))))
def test_stopping_is_all_that_acts_as_it_acts(case):
    """What a mechanism writes is of the form, and holds the very thresholds."""
    k, stopping = case
    section = section_of(stopping)
    section.check("stopping", k, 1.5)
    assert section.to_dict() == stopping_to_dict(stopping)
    for told, option in zip(section.options, stopping.options, strict=True):
        for number, side in zip(told, option, strict=True):
            one = section.sides[number]
            assert one.side == {-1: "left", 1: "right"}[side.direction]
            assert one.budget == side.budget
            assert list(one.levels) == side.levels.tolist()
            assert spelled_thresholds(one.stop).tolist() == side.limits.ravel().tolist()
            assert one.count(k) == side.limits.size
    if stopping.pair is not None:
        pair, acts = section.pair, stopping.pair
        assert spelled_thresholds(pair.stop).tolist() == acts.limits.ravel().tolist()
        assert (pair.labels, pair.ahead) == (acts.limits.shape[-1], acts.limits.shape[-2] > 1)
    for gap, acts in zip(section.gaps, stopping.gaps, strict=True):
        assert (gap.length, gap.budgets) == (acts.length, acts.budgets)
        assert spelled_thresholds(gap.stop).tolist() == acts.limits.ravel().tolist()
        assert gap.count(k) == acts.limits.size


# ---- nothing else passes

#: What the reader refuses and a schema cannot: by place, the page's words for it.
BEYOND_A_SCHEMA = {
    r"model\.labels": "labels that are equal as values",
    r"model\.order": "other shapes than labels, order and phase ask for",
    r"model\.shows": "`shows` that leaves a value out",
    r"model\.(transition|start)": "rows that do not sum to 1",
    r"model\.set\.(forward|backward)": "whose intervals are crossed",
    r"model\.set\.since": "`since` for a model that is not stationary of order 1",
    r"model\.set": "whose `start` is not for its model",
    r"model\.stationary": "`grids` for a model that is not stationary",
    r"designs\.grids": "grids that do not increase, or do not end with the same room",
    r"designs\.phases": "sequences of phases",
    r"designs\.sides": "rows of sides with another number of values than the model",
    r"designs\.designs$": "two designs for the same rooms, length and phases",
    r"designs\.designs\.\d+\.(left|right|length)": "longer or shorter than the problem",
    r"designs\.designs\.\d+\.(phases|redaction_left|redaction_right)": "an index beyond its list",
    r"designs\.epsilon": "an `epsilon` of a stopping above that of the designs",
    r"designs\.stoppings$": "a `stopping` beyond its list",
    r"designs\.designs\.\d+\.stopping$": "a `stopping` beyond its list",
    r"designs\.stoppings\.\d+\.epsilon": "an `epsilon` of a stopping above",
    r"designs\.stoppings\.\d+\.pair\.epsilon": "a pair's `epsilon` above it",
    r"designs\.stoppings\.\d+\.sides\.\d+\.budget": "a budget or",
    r"designs\.stoppings\.\d+\.(sides\.\d+|pair)\.levels": "levels that do not increase",
    r"designs\.stoppings\.\d+\.(sides\.\d+|pair)\.(ahead|stop)": "more or fewer thresholds",
    r"designs\.stoppings\.\d+\.pair\.(labels|seconds)": "one for each label and value",
    r"designs\.stoppings\.\d+\.(options|sides$)": "a left and a right side of the list",
    r"designs\.stoppings\.\d+\.gaps$": "two gaps of the same length",
    r"designs\.stoppings\.\d+\.gaps\.\d+\.budgets": "the right and the left budget of the first",
    r"designs\.stoppings\.\d+\.gaps\.\d+\.(length|stop)": "the length of a gap",
    r"private\.positions": "positions with more or fewer cells than columns",
}
FRACTION, TOO_LARGE = "a count that is written with a fraction", "a number too large for a double"
WRONG = [None, True, -1, 1.0, 1.5, 10**16, 10**400, "x", [], {}]


def places(content, path=()):
    """Every place in a document, from the outside in; of long lists the first and last item."""
    yield path
    if isinstance(content, dict):
        for key, value in content.items():
            yield from places(value, (*path, key))
    elif isinstance(content, list):
        for key in sorted({0, len(content) - 1} & set(range(len(content)))):
            yield from places(content[key], (*path, key))


def at(content, path):
    for key in path:
        content = content[key]
    return content


def changed(content, path, value):
    if not path:
        return value
    key, *rest = path
    content = copy.copy(content)
    content[key] = changed(content[key], rest, value) if rest else value
    return content


def corrupted(content, root=()):
    """A document with one thing wrong with it, or at least changed: where, and the document."""
    for path in places(at(content, root), root):
        here = at(content, path)
        for value in WRONG:
            if type(here) is not type(value) or here != value:
                yield path, changed(content, path, value)
        if isinstance(here, dict):
            yield path, changed(content, path, {**here, "unheard of": 1})
            for key in here:
                kept = {name: value for name, value in here.items() if name != key}
                yield path, changed(content, path, kept)
        if isinstance(here, list) and here:
            yield path, changed(content, path, here[:-1])
            yield path, changed(content, path, [*here, here[-1]])


def beyond_a_schema(wrong, path):
    """Whether the page says that this is what a schema cannot say."""
    here = at(wrong, path)
    if isinstance(here, float) and here.is_integer():
        return FRACTION
    if here == 10**400:
        return TOO_LARGE
    place = ".".join(map(str, path))
    return next((says for key, says in BEYOND_A_SCHEMA.items() if re.match(key, place)), None)


@pytest.mark.parametrize(
    ("sort", "root"),
    [
        (plain, ()),
        (phased, ("designs",)),
        (second_order, ("model",)),
        (hidden, ("model",)),
        (stepped, ("model",)),
        (over_a_set, ("model",)),
        (phased_over_a_set, ("model", "set")),
        (second_order_over_a_set, ("model", "set")),
        (owners, ("designs",)),
        (phased_owners, ("designs", "designs")),
        (of_another_kind, ("designs",)),
        (of_spark, ("output",)),
        (dry, ("designs",)),
    ],
)
def test_one_thing_wrong_is_refused_by_reader_and_schema(sort, root):
    content = sort().to_dict()
    for path, wrong in corrupted(content, root):
        if is_read(wrong):
            assert Certificate.from_dict(wrong).to_dict() == wrong, path
            assert is_of_the_schema(wrong), path
        elif beyond_a_schema(wrong, path) is None:
            assert not is_of_the_schema(wrong), path


def closed_objects(content):
    """The places of objects whose keys the form names, one and all."""
    for path in places(content):
        if isinstance(at(content, path), dict) and path[-1:] not in (("versions",), ("files",)):
            yield path


def test_owners_designs_of_other_types_are_refused_by_reader_and_schema():
    """Here places that a schema cannot judge by themselves do not count as an excuse."""
    content = owners().to_dict()
    for path in places(content["designs"]["stoppings"], ("designs", "stoppings")):
        for value in (-1, {}, "x", None):
            if (path[-1], value) == ("pair", None):
                continue
            document = changed(content, path, value)
            assert not is_read(document), (path, value)
            assert not is_of_the_schema(document), (path, value)


@pytest.mark.parametrize("sort", [plain, phased, over_a_set, owners])
def test_a_key_more_or_less_is_refused(sort):
    content = sort().to_dict()
    for path in closed_objects(content):
        here = at(content, path)
        wrong = [{**here, "unheard of": 1}]
        wrong += [{name: here[name] for name in here if name != key} for key in here]
        for one in wrong:
            document = changed(content, path, one)
            assert not is_read(document), (path, one.keys())
            assert not is_of_the_schema(document), (path, one.keys())


def test_thresholds_of_values_are_too_few_for_tuples():
    content = second_order_owners().to_dict()
    place = "designs", "stoppings", 0, "sides", 1, "stop"
    says = refusal(changed(content, place, written(range(2**3))))
    assert '.sides[1].stop" must be base64 of 64 thresholds' in says


def test_an_unknown_kind_has_the_part_that_every_kind_has():
    content = of_another_kind().to_dict()
    own = {"deadline", "chance", "levels"}
    for path in [("designs",), ("designs", "designs", 0)]:
        here = at(content, path)
        for key in here:
            document = changed(content, path, {name: here[name] for name in here if name != key})
            assert is_read(document) == is_of_the_schema(document) == (key in own), key


def gap_twice():
    """A list of gaps of which two have the same length."""
    return owners().to_dict()["designs"]["stoppings"][0]["gaps"][:1] * 2


@pytest.mark.parametrize(
    ("sort", "path", "value"),
    [
        (plain, ("model", "labels"), [1, True]),
        (plain, ("model", "order"), 2),
        (hidden, ("model", "shows"), [0, 0, 0]),
        (hidden, ("model", "shows"), [0, 1, 2]),
        (hidden, ("model", "shows"), [0, 1, 0, 1]),
        (over_a_set, ("model", "set", "forward", 0, 0, 0), 1.0),
        (over_a_set, ("model", "set", "backward", 1, 1), [0.25, 0.5]),
        (over_a_set, ("model", "set", "backward", 0, 1), [0.75, 0.5]),
        (over_a_set, ("model", "set", "forward", 1, 0), [0.875, 0.25]),
        (over_a_set, ("model", "set", "forward", 1), [[0.5, 0.5]]),
        (phased_over_a_set, ("model", "set", "start"), "any"),
        (second_order_over_a_set, ("model", "set", "start"), "settled"),
        (plain, ("model", "transition", 0), [0.5, 0.25]),
        (plain, ("model", "start"), [0.5, 0.25, 0.25]),
        (plain, ("model", "stationary"), False),
        (plain, ("designs", "grids", "left"), [0, 4, 1]),
        (plain, ("designs", "sides", 1, 0, 1), [1.0, 1.0, 1.0]),
        (plain, ("designs", "designs"), plain().to_dict()["designs"]["designs"][:1] * 2),
        (plain, ("designs", "designs", 1, "left"), 2),
        (plain, ("designs", "designs", 1, "redaction_left"), 2),
        (plain, ("private", "positions", "columns"), ["hour"]),
        (plain, ("counts", "rows"), 1.0),
        (owners, ("designs", "epsilon"), 0.75),
        (owners, ("designs", "stoppings"), []),
        (owners, ("designs", "designs", 1, "stopping"), 2),
        (owners, ("designs", "stoppings", 1, "epsilon"), 2.0),
        (owners, ("designs", "stoppings", 0, "pair", "epsilon"), 1.5),
        (owners, ("designs", "stoppings", 0, "pair", "levels"), [3, 1]),
        (owners, ("designs", "stoppings", 0, "pair", "labels"), 2),
        (owners, ("designs", "stoppings", 0, "pair", "stop"), written([0, 2, 1] * 8)),
        (owners, ("designs", "stoppings", 0, "pair", "seconds"), [0, 2, 0, 2]),
        (owners, ("designs", "stoppings", 0, "pair", "seconds", 4), 4),
        (owners, ("designs", "stoppings", 0, "sides", 1, "levels"), [3, 2, 5]),
        (owners, ("designs", "stoppings", 0, "sides", 1, "budget"), 0.75),
        (owners, ("designs", "stoppings", 0, "sides", 1, "ahead"), False),
        (owners, ("designs", "stoppings", 0, "sides", 1, "stop"), written(range(31))),
        (owners, ("designs", "stoppings", 0, "sides", 1, "stop"), "AAAA"),
        (owners, ("designs", "stoppings", 0, "gaps", 1, "length"), 2),
        (owners, ("designs", "stoppings", 0, "gaps", 1, "budgets"), [0.5, 0.25]),
        (owners, ("designs", "stoppings", 0, "gaps", 1, "stop"), written(range(31))),
        (owners, ("designs", "stoppings", 0, "gaps"), gap_twice()),
        (owners, ("designs", "stoppings", 0, "options", 0), [1, 0]),
        (owners, ("designs", "stoppings", 0, "options", 2), [0, 4]),
        (phased, ("designs", "phases"), []),
        (phased, ("designs", "designs", 1, "phases"), 0),
        (phased_over_a_set, ("model", "set"), phased_over_a_set().model.set.to_dict() | LATER),
        (over_a_later_set, ("model", "set", "start"), "any"),
    ],
)
def test_what_a_schema_cannot_say(sort, path, value):
    wrong = changed(sort().to_dict(), path, value)
    assert beyond_a_schema(wrong, path) is not None
    assert is_of_the_schema(wrong)
    assert not is_read(wrong)


def test_what_a_schema_cannot_say_is_on_the_page():
    section = PAGE.split("## What a schema cannot say")[1].split("\n## ")[0]
    for says in (FRACTION, TOO_LARGE, *BEYOND_A_SCHEMA.values()):
        assert says in section, says


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("version",), 6, "newer"),
        pytest.param(("version",), 10**5000, "newer", id="huge version"),
        (("version",), 2, '"version" must be 5, got 2'),
        (("version",), True, '"version" must be 5, got true'),
        (("format",), "offrecord-model", "not a certificate"),
        (("claim", "epsilon"), "1", "\"claim.epsilon\" must be a number of at least 0, got '1'"),
        (("claim", "epsilon"), math.nan, '"claim.epsilon" must be a number'),
        (("claim", "epsilon"), math.inf, '"claim.epsilon" must be a number'),
        (("dataset",), "\ud800", '"dataset" must be text'),
        pytest.param(("counts", "rows"), 10**5000, "got a huge number", id="huge count"),
        (("designs", "designs", 1, "left"), -1, '"designs.designs[1].left" must be a whole number'),
        (("designs", "designs", 1, "left"), 1, '"designs.designs[1].redaction_left" must be'),
        (("designs", "sides", 1, 0, 1, 0), 1.1, '"designs.sides[1][0][1][0]" must be a number'),
        (("designs", "sides", 1, 0, 1), [1.0], '"designs.sides[1]" must hold rows of 2'),
        (("designs", "composition", "rule"), "sum", 'must be "maximum"'),
        (("designs", "grids", "left"), [0, 4, 1], "must hold a room or more, and increase"),
        (("designs", "grids", "left"), [0, 1, 5], "must end with the same room"),
        (("model", "stationary"), False, '"designs.grids" must be null'),
        (("model", "labels"), [1, True], "must be two or more different values"),
        (("model", "transition", 0), [0.9, 0.2], '"model.transition" must sum to 1'),
        (("model", "transition"), [[[1.0]]], '"model.transition" must have axes 2 × 2'),
        (("model", "transition"), [[0.5, 0.5], [1.0]], '"model.transition" must have axes'),
        (("model", "start"), [0.5, 0.25, 0.25], '"model.start" must have axes 2'),
        (("private", "positions", "keys", 0), ["a"], "must have a cell for each column"),
        (("learned", "audit", "verdict"), "fine", '"learned.audit.verdict" must be "good" or'),
        (("learned", "audit", "odds"), "inf", 'a number of at least 0, or "infinite"'),
        (("learned", "share"), 0, '"learned.share" must be a number above 0, at most 1, got 0'),
        (("learned", "share"), 1.1, '"learned.share" must be a number from 0 to 1'),
        (("output", "sha256"), None, "either sha256 or files"),
        (("output", "sha256"), "a" * 64 + "\n", "64 hexadecimal digits"),
        pytest.param(("versions", "\n" * 400), 1, "must be text", id="unprintable name"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(path, value, says):
    content = changed(plain().to_dict(), path, value)
    with pytest.raises(InputError) as error:
        Certificate.from_dict(content)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("kind",), "ball", '"model.set.kind" must be "box"'),
        (("confidence",), 1.0, '"model.set.confidence" must lie between 0 and 1'),
        (("confidence",), 1.5, '"model.set.confidence" must be a number'),
        (("interval",), "wilson", '"model.set.interval" must be "clopper-pearson" or "mixture"'),
        (("start",), "tomorrow", '"model.set.start" must be "stationary" or "settled" or "any"'),
        (("forward",), [[[0.5, 0.5]] * 2], '"model.set.forward" must be a list of 2'),
        (("forward", 1), [[1.0], [1.0]], '"model.set.forward" must be two lists with axes 2 × 2'),
        (("forward", 0, 0, 1), -0.1, '"model.set.forward[0][0][1]" must be a number from 0 to 1'),
        (("forward", 1, 0, 1), 1.1, '"model.set.forward[1][0][1]" must be a number from 0 to 1'),
        (("backward", 0, 0, 1), 0.5, '"model.set.backward" must have each least probability no'),
        (("backward", 0, 1), [0.75, 0.5], '"model.set.backward" must have each least'),
        (("backward", 1, 1), [0.5, 0.49], '"model.set.backward" must have each least'),
        (("backward",), [[[0.5, 0.5]] * 2, [[0.5, 0.51]] * 2], None),
        (("backward",), [[[0.5, 0.51]] * 2, [[0.6, 0.6]] * 2], "must have rows that can sum to 1"),
        (("backward",), [[[0.1, 0.2]] * 2, [[0.6, 0.3]] * 2], "must have rows that can sum to 1"),
        (("forward", 1, 0), [0.875, 0.25], "must hold the model's own transition"),
    ],
)
def test_what_is_wrong_with_a_set_is_said_in_one_line(path, value, says):
    content = changed(over_a_set().to_dict(), ("model", "set", *path), value)
    found = refusal(content)
    assert (found is None) if says is None else says in found
    assert found is None or "\n" not in found


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("composition", "rule"), "maximum", '"designs.composition" must be "stopping"'),
        (("composition", "draw_bits"), 32, '"designs.composition" must be "stopping" with draws'),
        (("designs", 0, "stopping"), 2, '"designs.designs[0].stopping" must be one of the'),
        (("stoppings", 0, "epsilon"), 1.5, '"designs.stoppings[0].epsilon" must be at most that'),
        (("stoppings", 0, "epsilon"), 0.5, '.options[0]" must have budgets that sum'),
        (("stoppings", 0, "options"), [], '"designs.stoppings[0].options" must hold at least one'),
        (("stoppings", 0, "options", 1), [1, 0], '[0].options[1]" must be a left and a right side'),
        (("stoppings", 0, "options", 1), [0, 9], '[0].options[1]" must be a left and a right side'),
        (("stoppings", 0, "options", 1), [0], '[0].options[1]" must be a list of 2, got 1'),
        (("stoppings", 0, "options", 0), [0, 3], None),  # closed: no last level is later than never
        (("stoppings", 0, "sides", 0, "side"), "up", '.sides[0].side" must be "left" or "right"'),
        (("stoppings", 1, "sides", 1, "budget"), 0.5, None),
        (("stoppings", 1, "sides", 1, "budget"), 0.51, '.options[0]" must have budgets that sum'),
        (("stoppings", 0, "sides", 3, "budget"), 1.01, '.sides[3].budget" must be at most epsilon'),
        (("stoppings", 0, "sides", 3, "budget"), 1.0, None),
        (("stoppings", 0, "sides", 1, "levels"), [2, 2, 5], '.sides[1].levels" must increase'),
        (("stoppings", 0, "sides", 1, "levels", 0), 0, '.sides[1].levels[0]" must be a whole'),
        (("stoppings", 0, "sides", 2, "levels", 1), 5, '.options[1]" must not have a later last'),
        (("stoppings", 0, "sides", 2, "levels", 1), 3, None),
        (("stoppings", 0, "sides", 0, "stop"), "AAA", '.sides[0].stop" must be base64, got'),
        (("stoppings", 0, "sides", 0, "stop"), "AB==", '.sides[0].stop" must be base64, got'),
        (("stoppings", 0, "sides", 0, "stop"), "ä", '.sides[0].stop" must be base64, got'),
        (
            ("stoppings", 0, "sides", 0, "stop"),
            "",
            '.sides[0].stop" must be base64 of 8 thresholds',
        ),
        (("stoppings", 0, "sides", 3, "stop"), "AAAA", '.sides[3].stop" must be base64 of 0'),
        (("stoppings", 0, "pair", "first"), "left", '.pair.seconds[0]" must be one of the sides'),
        (("stoppings", 0, "pair", "epsilon"), 1.01, '.pair.epsilon" must be at most'),
        (("stoppings", 0, "pair", "epsilon"), 0.9, None),
        (("stoppings", 0, "pair", "levels"), [], '.pair.levels" must hold at least one level'),
        (("stoppings", 0, "pair", "levels"), [2, 1], '.pair.levels" must increase'),
        (("stoppings", 0, "pair", "levels"), [1, 99], None),
        (("stoppings", 0, "pair", "ahead"), True, '.pair.stop" must be base64 of 48 thresholds'),
        (("stoppings", 0, "pair", "labels"), 0, '.pair.labels" must be a whole number from 1 to'),
        (("stoppings", 0, "pair", "labels"), 4, '.pair.stop" must be base64 of 32 thresholds'),
        (("stoppings", 0, "pair", "stop"), written([2, 1, 3] * 8), "must not decrease from label"),
        (("stoppings", 0, "pair", "seconds"), [0] * 4, '.pair.seconds" must be 5 sides'),
        (("stoppings", 0, "pair", "seconds", 1), 1, '.pair.seconds[1]" must be one of the sides'),
        (("stoppings", 0, "pair", "seconds", 1), 9, '.pair.seconds[1]" must be one of the sides'),
        (("stoppings", 0, "gaps"), [], None),
        (("stoppings", 0, "gaps"), None, '[0].gaps" must be a list'),
        (("stoppings", 0, "gaps"), gap_twice(), '[0].gaps" must have one gap of the same length'),
        (("stoppings", 0, "gaps", 0, "length"), 0, '.gaps[0].length" must be a whole number from'),
        (("stoppings", 0, "gaps", 0, "length"), 65, '.gaps[0].length" must be a whole number from'),
        (("stoppings", 0, "gaps", 0, "length"), 64, '.gaps[0].stop" must be base64 of 66560'),
        (("stoppings", 0, "gaps", 0, "length"), 2, '.gaps[0].stop" must be base64 of 96'),
        (("stoppings", 0, "gaps", 0, "budgets"), [0.25], '.gaps[0].budgets" must be a list of 2'),
        (("stoppings", 0, "gaps", 0, "budgets", 1), -1, '.gaps[0].budgets[1]" must be a number'),
        (
            ("stoppings", 0, "gaps", 1, "budgets"),
            [0.5, 0.25],
            '.gaps[1].budgets" must be the right',
        ),
        (("stoppings", 0, "gaps", 1, "stop"), "", '.gaps[1].stop" must be base64 of 32 thresholds'),
        (("stoppings", 0, "gaps", 1, "stop"), "AAA", '.gaps[1].stop" must be base64, got'),
        (("stoppings", 0, "options", 0), [2, 1], None),  # budgets are the same there
        (("stoppings", 0, "sides", 0, "budget"), 0.4, '.gaps[0].budgets" must be the right and'),
    ],
)
def test_what_is_wrong_with_stopping_is_said_in_one_line(path, value, says):
    found = refusal(changed(owners().to_dict(), ("designs", *path), value))
    assert (found is None) if says is None else says in found
    assert found is None or "\n" not in found


@pytest.mark.parametrize("sort", [phased_over_a_set, second_order_over_a_set])
def test_a_start_that_is_not_for_its_model_is_refused(sort):
    for start in ("settled", "any"):
        says = refusal(changed(sort().to_dict(), ("model", "set", "start"), start))
        assert '"model.set.start" must be "stationary"' in says


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("designs", "phases", 0), [[24, 1, 9]], "must be runs of phases below 24"),
        (("designs", "phases", 0), [[22, 1, 8]], "must be the phases of 9 records"),
        (("designs", "designs", 0, "phases"), 2, "must be one of the list"),
        (("designs", "designs", 0, "phases"), None, "must be one of the list"),
        (("model", "order"), 2, "must be 1 for a model with phases"),
    ],
)
def test_what_is_wrong_with_phases_is_said(path, value, says):
    with pytest.raises(InputError, match=re.escape(says)):
        Certificate.from_dict(changed(phased().to_dict(), path, value))


def test_a_model_with_a_kernel_for_each_step_is_about_so_many_records():
    content = changed(stepped().to_dict(), ("designs", "designs", 0, "right"), 5)
    with pytest.raises(InputError, match="must be about the 10 records of the model"):
        Certificate.from_dict(content)


DEEP = 200_000


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"epsilon": 1.0', b'"epsilon": 1.0, "epsilon": 2.0', "'epsilon' twice"),
        (b'"epsilon": 1.0', b'"epsilon": NaN', "NaN"),
        (b'"epsilon": 1.0', b'"epsilon": -Infinity', "-Infinity"),
        (b'"epsilon": 1.0', b'"epsilon": 1e999', "1e999"),
        pytest.param(b'"epsilon": 1.0', b'"epsilon": 1' + b"0" * 5000, "too long", id="digits"),
        pytest.param(b"0.25,", b"[" * DEEP + b"]" * DEEP + b",", "nested too deeply", id="depth"),
        (b'"loss": 0.25', b'"loss": 0.25 0.25', "not JSON"),
        (b"rain", b"\xff", "not UTF-8"),
        (b"rain", b"\\ud800", '"dataset" must be text'),
        (b"}\n", b"", "truncated"),
    ],
)
def test_text_that_is_no_certificate(old, new, says):
    written = plain().to_json()
    assert old in written
    broken = written.replace(old, new) if old != b"}\n" else written[:-2]
    with pytest.raises(InputError) as error:
        Certificate.from_json(broken)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "null", "[]", "1", '"x"', "{}", "\ufeff{}"])
def test_other_documents_are_refused(text):
    with pytest.raises(InputError):
        Certificate.from_json(text)


def test_too_large_is_refused_before_it_is_parsed(monkeypatch):
    written = plain().to_json()
    with pytest.raises(InputError, match="larger than 0 MiB"):
        form.parsed(written, "certificate", len(written) - 1)
    assert form.parsed(written, "certificate", len(written)) == plain().to_dict()


def test_an_unknown_kind_is_bounded_in_depth():
    content = of_another_kind().to_dict()
    nested = content
    for _ in range(33):
        nested = [nested]
    for deep in (nested, [nested]):
        content["designs"]["deadline"] = deep
        with pytest.raises(InputError, match="nested no deeper than 32"):
            Certificate.from_dict(content)


def test_an_unknown_kind_cannot_take_the_place_of_what_every_kind_says():
    (one,) = of_another_kind().designs.designs
    with pytest.raises(InputError, match='"uses" is the form\'s own'):
        replace(one, own={"uses": 3})


def test_nothing_that_is_no_number_is_written():
    certificate = plain()
    with pytest.raises(ValueError, match="not JSON compliant"):
        replace(certificate, claim=replace(certificate.claim, leakage=math.nan)).to_json()


# ---- shorter ways to write what repeats


@given(
    st.sampled_from(sorted(PHASES.values())).flatmap(
        lambda modulus: st.tuples(st.just(modulus), st.lists(st.integers(0, modulus - 1)))
    )
)
def test_runs_spell_the_phases(case):
    modulus, phases = case
    runs = phase_runs(phases, modulus)
    assert spelled_phases(runs, modulus) == phases
    assert all(0 <= first < modulus and 0 <= rise < modulus for first, rise, _ in runs)
    assert all(count >= 1 for _, _, count in runs)
    assert phase_runs(np.array(phases, dtype=np.int8), modulus) == runs
    # Never longer than by taking the records two by two.
    assert len(runs) <= (len(phases) + 1) // 2


@given(st.integers(0, 23), st.integers(0, 23), st.integers(2, 500))
def test_one_run_is_one_run(first, rise, count):
    runs = ((first, rise, count),)
    assert phase_runs(spelled_phases(runs, 24), 24) == runs


def test_a_year_of_hours_is_one_run():
    hours = [(13 + at) % 24 for at in range(8700)]
    assert phase_runs(hours, 24) == ((13, 1, 8700),)


@given(st.lists(st.sampled_from([(0.0, 1.0), (0.5, 1.0), (1.0, 1.0)])))
def test_stretches_spell_the_rows(rows):
    """As designs write them, and as whoever checks reads them."""
    shared = Shared()
    number = Stretches.of(np.array(rows).reshape(-1, 2)).number(shared)
    side = shared.listed[number]
    assert spelled_rows(side) == rows
    assert all(a[1] != b[1] for a, b in pairwise(side))


@given(st.lists(st.integers(0, 5)))
def test_what_is_shared_is_listed_once_and_found_again(items):
    shared = Shared()
    which = [shared.number(item, item) for item in items]
    assert len(set(shared.listed)) == len(shared.listed)
    assert [shared.listed[at] for at in which] == items


def test_phases_are_those_of_the_models():
    assert cert.PHASES == PHASES


# ---- the page, and what the module stands on


def field_names():
    """Of all sections of the form."""
    found = [one for one in vars(cert).values() if isinstance(one, type)]
    return {
        one.name
        for section in found
        if issubclass(section, form.Section)
        for one in fields(section)
    } - {"own"}


def test_the_page_names_every_field():
    known = field_names()
    told = set(re.findall(r"`([a-z_0-9]+)`", PAGE))
    assert len(known) > 70
    assert not known - told, known - told


def test_the_schema_names_every_field_and_no_other():
    def named(part):
        if isinstance(part, dict):
            yield from part.get("properties", {})
            part = part.values()
        for inner in part if not isinstance(part, (str, int, float, type(None))) else ():
            yield from named(inner)

    assert set(named(SCHEMA)) == field_names()


@pytest.mark.parametrize("module", ["__init__", "document", "designs", "stopping", "model", "form"])
def test_the_form_knows_nothing_of_how_designs_are_made(module):
    folder = ROOT / "src" / "offrecord" / "release" / "certificate"
    source = (folder / f"{module}.py").read_text(encoding="utf-8")
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module)
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    ours = {name for name in imported if name.split(".")[0] == "offrecord"}
    beside = {f"offrecord.release.certificate.{file.stem}" for file in folder.glob("*.py")}
    assert ours <= {"offrecord.errors", *beside}
    assert {name.split(".")[0] for name in imported - ours} <= sys.stdlib_module_names
