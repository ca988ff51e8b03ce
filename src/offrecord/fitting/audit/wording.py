"""What was seen around a secret, as a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from offrecord.fitting.audit.looks import CHAINS, PERIOD, Depth, Look
from offrecord.fitting.audit.odds import Worst
from offrecord.fitting.audit.stops import Stops
from offrecord.models.base import Label
from offrecord.text import many


def described(look: Look, depth: Depth, worst: Worst, labels: Sequence[Label]) -> str:
    """What tells of a secret's value, and which value it makes likelier."""
    likelier, other = labels[worst.likelier], labels[worst.other]
    told = f"likelier beside a record that is {likelier} than beside one that is {other}"
    if isinstance(look, Stops):
        return f"releasing begins {_stops(look, depth, worst.pattern, labels)}, {told}"
    seen = _digits(worst.pattern, len(labels), sum(depth))
    values = [str(labels[code]) for code in seen]
    left, right = values[: depth.left], values[depth.left :]
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


def _stops(look: Stops, depth: Depth, pattern: int, labels: Sequence[Label]) -> str:
    """Where releasing begins, what is there, and what the far value is."""
    k = len(labels)
    rest, right = pattern, ""
    if depth.right:
        rest, seen = divmod(pattern, (len(look.edges[1]) - 1) * k * k)
        right = _stop(look.edges[1], seen, labels, "after")
    left = _stop(look.edges[0], rest, labels, "before") if depth.left else ""
    # designs of other looks are made without what is held back; these are not
    return f"{' and '.join(filter(None, (left, right)))}, by sides made with all records"


def _stop(edges: Sequence[int], seen: int, labels: Sequence[Label], place: str) -> str:
    k = len(labels)
    stretch, here, far = seen // (k * k), labels[seen // k % k], labels[seen % k]
    first, last, deadline = edges[stretch], edges[stretch + 1] - 1, edges[-1] - 1
    begins = many(first, "record") if first == last else f"{first} to {last} records"
    if first == deadline:  # what is there is the far value
        return f"{begins} {place}, at {here}"
    return f"{begins} {place}, at {here} ({far} at {deadline} {place})"
