"""Side rules and table policies in files: exact, and checked when they are read."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.rules import SETTINGS, LocalRule, Pair, Setting, SideRule, StoppingRule
from offrecord.mechanisms.table_policy import TablePolicy, Validation
from offrecord.models.base import Floats

_MOST_REACH = 10**7  # records on one side
_MOST_PROBABILITIES = 2**24  # of one rule
_UNIT = 2.0**64


def local_rule(content: Any) -> LocalRule:
    """A local rule from a file."""
    if "window" in content:
        size, k = _whole(content["window"], 0, _MOST_REACH), _whole(content["values"], 2, 64)
        return LocalRule.window(size, k)
    rows = np.array(content["redaction"], dtype=np.float64)
    if rows.ndim != 2 or not 2 <= rows.shape[1] <= 64 or len(rows) > _MOST_REACH:
        raise InputError("redaction must be a row of 2 to 64 probabilities for each distance")
    return LocalRule(_thresholds(rows))


def stopping_content(rule: StoppingRule) -> dict[str, Any]:
    """A stopping rule for a file."""
    packed = zlib.compress(np.ascontiguousarray(rule.stop, dtype="<f8").tobytes(), 9)
    return {
        "kind": "stopping",
        "order": rule.order,
        "values": rule.k,
        "levels": rule.levels.tolist(),
        "far": rule.far.tolist(),
        "stop": base64.b64encode(packed).decode(),
    }


def stopping_rule(content: Any) -> StoppingRule:
    """A stopping rule from a file."""
    order, k = _whole(content["order"], 1, 6), _whole(content["values"], 2, 64)
    contexts = k**order
    levels = np.array([_whole(one, 1, _MOST_REACH) for one in content["levels"]], dtype=np.int64)
    far = np.array([_whole(one, 0, contexts) for one in content["far"]], dtype=np.int64)
    if len(levels) == 0 or levels[0] < order or np.any(np.diff(levels) <= 0):
        raise InputError(f"levels must increase, from {order} on")
    if contexts > 64 or len(far) != contexts:
        raise InputError("far must name a class for each of at most 64 contexts")
    shape = (len(levels) - 1, int(far.max()) + 1, contexts, contexts)
    size = int(np.prod(shape))
    if size > _MOST_PROBABILITIES:
        raise InputError(f"a rule has at most {_MOST_PROBABILITIES} probabilities")
    try:
        unpacker = zlib.decompressobj()
        unpacked = unpacker.decompress(base64.b64decode(content["stop"], validate=True), size * 8)
    except (binascii.Error, zlib.error, TypeError, ValueError):
        raise InputError("stop must be packed probabilities") from None
    if len(unpacked) != size * 8 or (not unpacker.eof and unpacker.unconsumed_tail):
        raise InputError(f"stop must hold {size} probabilities")
    stop = np.frombuffer(unpacked, dtype="<f8").astype(np.float64).reshape(shape)
    return StoppingRule(order, k, levels, far, _thresholds(stop))


def table_policy_content(policy: TablePolicy) -> dict[str, Any]:
    """A table policy for a file; places with the same rules share one entry."""
    validation = policy.validation
    rules = [
        {
            "setting": setting.kind,
            "place": setting.place,
            "left": None if pair.left is None else pair.left.to_dict(),
            "right": None if pair.right is None else pair.right.to_dict(),
        }
        for setting, pair in policy.rules.items()
    ]
    return {
        "mechanism": policy.mechanism,
        "epsilon": policy.epsilon,
        "protect": policy.protect,
        "coverage": policy.coverage,
        "rules": rules,
        "validation": None
        if validation is None
        else {
            "drawn": validation.drawn,
            "above": validation.above,
            "quantiles": list(validation.quantiles),
            "largest": validation.largest,
        },
    }


def table_policy(content: Any) -> TablePolicy:
    """A table policy from a file."""
    try:
        rules = {
            _setting(one): Pair(_side(one["left"]), _side(one["right"])) for one in content["rules"]
        }
        if len(rules) != len(content["rules"]):
            raise InputError("a setting has rules twice")
        known = content["validation"]
        validation = (
            None
            if known is None
            else Validation(
                _whole(known["drawn"], 1, 10**9),
                _whole(known["above"], 0, 10**9),
                _three(known["quantiles"]),
                float(known["largest"]),
            )
        )
        return TablePolicy(
            str(content["mechanism"]),
            float(content["epsilon"]),
            str(content["protect"]),
            content["coverage"],
            rules,
            validation,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"this is not a table policy: {type(error).__name__}") from None


def _three(content: Any) -> tuple[float, float, float]:
    first, second, third = (float(one) for one in content)
    return first, second, third


def _setting(content: Any) -> Setting:
    if content["setting"] not in SETTINGS:
        raise InputError(f"setting must be one of {', '.join(SETTINGS)}")
    return Setting(content["setting"], _whole(content["place"], 0, 10**6))


def _side(content: Any) -> SideRule | None:
    if content is None:
        return None
    kinds: dict[Any, type[LocalRule | StoppingRule]] = {
        "local": LocalRule,
        "stopping": StoppingRule,
    }
    if content["kind"] not in kinds:
        raise InputError(f"a rule of the kind {content['kind']!r:.40} is not known")
    return kinds[content["kind"]].from_dict(content)


def _thresholds(probabilities: Floats) -> Floats:
    """Probabilities that are whole multiples of 2**-64."""
    fits = np.isfinite(probabilities) & (probabilities >= 0) & (probabilities <= 1)
    if not np.all(fits) or np.any(probabilities * _UNIT % 1 != 0):
        raise InputError("probabilities must be multiples of 2**-64 from 0 to 1")
    return probabilities


def _whole(value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"expected a whole number from {least} to {most}, got {value!r:.40}")
    return value
