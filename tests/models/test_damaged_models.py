"""Model files with anything changed: what they come to is a model, or one line about what is
wrong.
"""

import copy
import json
import random

import pytest

import offrecord as off
from offrecord.models.learned import Learned
from offrecord.models.loading import model_from_dict

AUDIT = {
    "verdict": "doubtful",
    "odds": "inf",
    "at_least": 4.1,
    "promised": 2.72,
    "epsilon": 1.0,
    "kind": "neighbours",
    "where": "two ones before",
    "chance": False,
    "held_back": "stretches, a quarter of the records at a time",
    "looked_at": ["neighbours", "period"],
    "closed": [0.5],
}
LEARNED = {
    "value": "v",
    "order": "integer",
    "step": None,
    "zone": None,
    "spacing": 1.0,
    "verdict": "fine",
    "audit": AUDIT,
    "calibration": "order 2, windows as for 0.5 of ε",
    "share": 0.5,
}
BOX = off.Box.binary((0.1, 0.2), (0.3, 0.5), confidence=0.95, interval="mixture")
ORDER_2 = off.MarkovChain([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], order=2)
MODELS = [
    {**off.MarkovChain.binary(0.15, 0.4).with_box(BOX).to_dict(), "learned": LEARNED},
    {**ORDER_2.to_dict(), "learned": {**LEARNED, "audit": None}},
    off.MarkovChain([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]], shows=[0, 0, 1]).to_dict(),
]
OTHERS = (
    *(None, True, 0, 1, -1, 2, 0.5, 1e-17, 1e308, 1e-320, -0.0, 10**400, -(10**400)),
    *(float("inf"), float("nan"), "", "inf", "any", "settled", "good", [], {}, [[]], [0.5, 0.5]),
)


def test_as_they_are_they_are_models():
    for content in MODELS:
        model = model_from_dict(json.loads(json.dumps(content)))
        assert model.to_dict() == {key: content[key] for key in content if key != "learned"}
    assert model_from_dict(MODELS[0]).learned == Learned.from_dict(LEARNED)


@pytest.mark.parametrize("share", [0, -0.5, 2, 1.0000001, float("nan"), True, "1", None, 10**400])
def test_a_share_is_above_0_and_at_most_1(share):
    with pytest.raises(off.InputError, match=r'"share" in "learned"'):
        Learned.from_dict({**LEARNED, "share": share})


@pytest.mark.parametrize("number", [10**400, -(10**400), float("inf"), float("nan"), True, "1"])
def test_numbers_are_such_that_can_be_computed_with(number):
    """Whole numbers of any length are JSON too."""
    with pytest.raises(off.InputError, match="spacing"):
        Learned.from_dict({**LEARNED, "spacing": number})
    for name in ("odds", "at_least", "promised", "epsilon"):
        with pytest.raises(off.InputError, match=name):
            Learned.from_dict({**LEARNED, "audit": {**AUDIT, name: number}})
    with pytest.raises(off.InputError, match="closed"):
        Learned.from_dict({**LEARNED, "audit": {**AUDIT, "closed": [number]}})


@pytest.mark.parametrize("seed", [0, pytest.param(range(1, 20), marks=pytest.mark.soak)])
def test_whatever_is_changed_nothing_else_is_raised(seed):
    said = []
    for one in seed if isinstance(seed, range) else [seed]:
        rng = random.Random(one)
        for _ in range(500):
            content = changed(rng, rng.choice(MODELS))
            try:
                model = model_from_dict(content)
            except off.InputError as error:
                said.append(str(error))
                continue
            written = json.loads(json.dumps(model.rounded().to_dict(), allow_nan=False))
            assert model_from_dict(written).rounded().to_dict() == written
    assert len(said) > 300
    assert not any("\n" in one for one in said)


def changed(rng, content):
    """A copy with some entries changed, left out or added."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice([1, 1, 2, 3])):
        holders = list(holders_in(content))
        holder, key = rng.choice(holders)
        act = rng.random()
        if act < 0.2:
            holder.pop(key)
        elif act < 0.3 and isinstance(holder, list):
            holder.append(rng.choice(OTHERS))
        else:
            holder[key] = rng.choice(OTHERS)
    return content


def holders_in(content):
    """Everything in it that can be changed: what holds it, and where."""
    keys = content if isinstance(content, dict) else range(len(content))
    for key in keys:
        yield content, key
        if isinstance(content[key], (dict, list)):
            yield from holders_in(content[key])
