"""What was seen around a secret, as a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from offrecord.fitting.audit.looks import CHAINS, PERIOD, Depth, Look
from offrecord.fitting.audit.odds import Worst
from offrecord.models.base import Label


def described(look: Look, depth: Depth, worst: Worst, labels: Sequence[Label]) -> str:
    """What tells of a secret's value, and which value it makes likelier."""
    seen = _digits(worst.pattern, len(labels), sum(depth))
    values = [str(labels[code]) for code in seen]
    left, right = values[: depth.left], values[depth.left :]
    likelier, other = labels[worst.likelier], labels[worst.other]
    told = f"likelier beside a record that is {likelier} than beside one that is {other}"
    name = look.names[worst.group]
    if look.kind == CHAINS:
        return f"another chain's {_other_chain(left, right)}, {told} ({name})"
    if look.kind == PERIOD:
        return f"{_sides(left, right)} at a distance of {name} steps, {told}"
    where = f" in {name}" if name else ""
    return f"the nearest released values, {_sides(left, right)}, {told}{where}"


def _digits(pattern: int, k: int, count: int) -> list[int]:
    """The codes that a pattern stands for, the first leading."""
    return [pattern // k**place % k for place in range(count - 1, -1, -1)]


def _sides(left: list[str], right: list[str]) -> str:
    """In the order of time: what is nearest comes last on the left."""
    before = f"{', '.join(reversed(left))} before" if left else ""
    after = f"{', '.join(right)} after" if right else ""
    return " and ".join(filter(None, (before, after)))


def _other_chain(left: list[str], right: list[str]) -> str:
    times = ("at the same time", "a step before")
    said = [f"{value} {time}" for value, time in zip(left, times, strict=False)]
    return " and ".join([*said, *(f"{value} a step after" for value in right)])
