"""What stopping is in files: levels and thresholds, as they act."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np

from offrecord.files import read_count, read_list, read_number, read_text, read_truth
from offrecord.mechanisms.base import Shared
from offrecord.mechanisms.owner.stopping import (
    GapStopping,
    Stopping,
    StoppingPair,
    StoppingSide,
    gap_states,
)
from offrecord.models.base import Integers
from offrecord.release.coins import Draws

_FURTHEST = 10**6  # of a level
_LONGEST_GAP = 64


def stopping_to_dict(stopping: Stopping) -> dict[str, Any]:
    """The content of a file; sides that several have are written once."""
    sides = Shared()
    options = [[_number(sides, side) for side in option] for option in stopping.options]
    pair = stopping.pair
    told = None if pair is None else {
        "first": _side_name(pair.first),
        "epsilon": pair.epsilon,
        "levels": pair.levels.tolist(),
        "ahead": pair.limits.shape[-2] > 1,
        "labels": pair.limits.shape[-1],
        "stop": _encoded(pair.limits),
        "seconds": [_number(sides, side) for side in pair.seconds],
    }  # fmt: skip
    gaps = [
        {"length": gap.length, "budgets": list(gap.budgets), "stop": _encoded(gap.limits)}
        for gap in stopping.gaps
    ]
    return {
        "epsilon": stopping.epsilon,
        "options": options,
        "pair": told,
        "gaps": gaps,
        "sides": sides.listed,
    }


def stopping_from_dict(content: Mapping[str, Any], k: int) -> Stopping:
    """As a file says it is, nothing of it proven; ValueError, KeyError … if it cannot be."""
    sides = [_side(one, k) for one in read_list(content["sides"])]
    options = []
    for one in read_list(content["options"]):
        left, right = (sides[read_count(number)] for number in read_list(one))
        if (left.direction, right.direction) != (-1, 1):
            raise ValueError("an option is a left and a right side")
        options.append((left, right))
    if not options:
        raise ValueError("no option")
    pair = None if content["pair"] is None else _pair(content["pair"], sides, k)
    gaps = tuple(_gap(one, k) for one in read_list(content["gaps"]))
    if len({gap.length for gap in gaps}) < len(gaps):
        raise ValueError("a gap comes twice")
    return Stopping(read_number(content["epsilon"]), tuple(options), pair, gaps)


def _gap(content: Mapping[str, Any], k: int) -> GapStopping:
    length = read_count(content["length"], 1, _LONGEST_GAP)
    left, right = (read_number(one) for one in read_list(content["budgets"]))
    shape = (len(gap_states(length)), k, k, k, k, 2)
    return GapStopping(length, (left, right), _decoded(content["stop"], shape))


def _pair(content: Mapping[str, Any], sides: list[StoppingSide], k: int) -> StoppingPair:
    levels, labels = _levels(content["levels"]), read_count(content["labels"], 1, 1 << 10)
    first = _direction(content["first"])
    shape = (k, len(levels) - 1, k, k, k if read_truth(content["ahead"]) else 1, labels)
    seconds = tuple(sides[read_count(number)] for number in read_list(content["seconds"]))
    if len(levels) == 0 or len(seconds) != labels + k:
        raise ValueError("a side for each label and far value")
    if any(side.direction == first for side in seconds):
        raise ValueError("the second side is the other one")
    limits = _decoded(content["stop"], shape)
    if np.any(np.diff(limits.astype(object), axis=-1) < 0):
        raise ValueError("thresholds that do not increase")
    return StoppingPair(first, read_number(content["epsilon"]), levels, limits, seconds)


def _side(content: Mapping[str, Any], k: int) -> StoppingSide:
    levels = _levels(content["levels"])
    shape = (k, max(len(levels) - 1, 0), k, k, k if read_truth(content["ahead"]) else 1)
    limits = _decoded(content["stop"], shape)
    return StoppingSide(_direction(content["side"]), read_number(content["budget"]), levels, limits)


def _number(sides: Shared, side: StoppingSide) -> int:
    content = {
        "side": _side_name(side.direction),
        "budget": side.budget,
        "levels": side.levels.tolist(),
        "ahead": side.limits.shape[-1] > 1,
        "stop": _encoded(side.limits),
    }
    return sides.number(tuple(map(str, content.values())), content)


def _levels(content: Any) -> Integers:
    levels = np.array([read_count(one, 1, _FURTHEST) for one in read_list(content)], dtype=np.int64)
    if np.any(np.diff(levels) <= 0):
        raise ValueError("levels that do not increase")
    return levels


def _side_name(direction: int) -> str:
    return "left" if direction < 0 else "right"


def _direction(name: Any) -> int:
    return {"left": -1, "right": 1}[read_text(name)]


def _encoded(limits: Draws) -> str:
    return base64.b64encode(limits.astype("<u8").tobytes()).decode("ascii")


def _decoded(content: Any, shape: tuple[int, ...]) -> Draws:
    try:
        raw = base64.b64decode(read_text(content), validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None
    if len(raw) != 8 * int(np.prod(shape)):
        raise ValueError("not as many thresholds as levels and values ask for")
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64).reshape(shape)
