"""One secret by itself: the rule around it, and what it is expected to cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from offrecord.mechanisms.base import Design
from offrecord.mechanisms.blocks import PRIVATE, REGIONS, Block, Secrets
from offrecord.models.base import Floats, Integers, Model
from offrecord.models.records import Chains

_BEYOND = 3  # records shown beyond the last that may be redacted
_LONGEST = 40  # characters of a value that are shown
_MOST_LINES = 6  # values that have a line each
_MOST_ROWS = 2_000_000  # records in all rooms that are foretold


@dataclass(frozen=True)
class Step:
    """A record beside a secret: before it at distances below 0, after it above; the secret itself
    at 0. rule: the probabilities that the rule names, in the order of `Around.names`.
    """

    distance: int
    region: str
    rule: tuple[float, ...]


@dataclass(frozen=True)
class Around:
    """The rule around one secret that stands alone. rooms: how many records it has before and after
    it, up to where more make no difference. length: how many records it holds. names: of the
    probabilities; drawn: how many of them, from the first, are of being redacted. kind: of its
    design.
    """

    kind: str
    rooms: tuple[int, int]
    length: int
    names: tuple[str, ...]
    drawn: int
    steps: tuple[Step, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many of the records shown are in each region."""
        regions = [step.region for step in self.steps]
        return {region: regions.count(region) for region in ("L", "M", "S")}


@dataclass(frozen=True)
class Cost:
    """What secrets with the same surroundings cost: how many they are, what they hold, the records
    beside each that are expected to be redacted, and how many a window would redact.
    """

    secrets: int
    length: int
    rooms: tuple[int, int]
    is_cluster: bool
    expected: float
    window: int


@dataclass(frozen=True, eq=False)
class _Laid:
    """Designs, each around a secret in a chain of its own. block: these chains. masses: how likely
    their values are. private: (n,) which records are.
    """

    block: Block
    masses: Floats
    private: Integers

    @classmethod
    def of(cls, designs: Sequence[Design], model: Model) -> _Laid:
        around = [design.surrounding for design in designs]
        sizes = np.array([one.left + one.length + one.right for one in around], dtype=np.int64)
        starts = np.append(0, np.cumsum(sizes))
        first = np.array([one.left for one in around], dtype=np.int64)
        last = first + np.array([one.length for one in around], dtype=np.int64) - 1
        low, high = starts[:-1] + first, starts[:-1] + last + 1
        places = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
        chains = Chains(starts, np.zeros(starts[-1], np.int8), places, False, None)
        numbers = np.arange(len(designs))
        secrets = Secrets(numbers, first, last, low, high, first)
        private = np.concatenate(
            [start + np.array(one.private) - 1 for start, one in zip(starts, around, strict=False)]
        )
        phases = None
        if model.clock is not None:
            pairs = zip(around, sizes, strict=True)
            phases = np.concatenate([one.along[:size] for one, size in pairs]).astype(np.int8)
        masses = model.masses(places, phases)
        block = Block(chains, slice(0, int(starts[-1])), secrets, numbers)
        return cls(block, masses, private)


def expected_of(designs: Sequence[Design], model: Model) -> Floats:
    """(d,) how many records beside the secret of each design are expected to be redacted, if no
    other secret is near.
    """
    laid = _Laid.of(designs, model)
    gone = 1.0 - type(designs[0]).decider(designs, model).expect(laid.block, laid.masses).released
    gone[laid.private] = 0.0
    return np.add.reduceat(gone, laid.block.chains.starts[:-1])


def costs_of(designs: Sequence[Design], uses: Sequence[int], model: Model) -> tuple[Cost, ...]:
    """What the secrets of each design that acts cost, those of most secrets first; of as many
    designs as are quickly told.
    """
    pairs = [pair for pair in zip(designs, uses, strict=True) if pair[1]]
    pairs.sort(key=lambda pair: -pair[1])
    rows = np.cumsum([sum(design.surrounding[:3]) for design, _ in pairs])
    pairs = pairs[: max(int(np.searchsorted(rows, _MOST_ROWS)), 1)]
    if not pairs:
        return ()
    expected = expected_of([design for design, _ in pairs], model)
    return tuple(
        Cost(
            count,
            design.surrounding.length,
            (design.surrounding.left, design.surrounding.right),
            bool(design.surrounding.inside),
            total,
            sum(design.window),
        )
        for (design, count), total in zip(pairs, expected.tolist(), strict=True)
    )


def around_of(designs: Sequence[Design], uses: Sequence[int], model: Model) -> Around | None:
    """The rule around one secret: of the design that most of them have. None without secrets that
    stand alone.
    """
    alone = [
        (count, sum(design.surrounding[:2]), -at)
        for at, (design, count) in enumerate(zip(designs, uses, strict=True))
        if count and not design.surrounding.inside
    ]
    if not alone:
        return None
    design = designs[-max(alone)[2]]
    laid = _Laid.of([design], model)
    decider = type(design).decider([design], model)
    told = decider.explain(laid.block, model.labels)
    around = design.surrounding
    names, rule, drawn = _named(told.rule, model, laid.masses)
    place = np.arange(laid.block.size)
    after = place - around.left - around.length + 1
    distance = np.where(place < around.left, place - around.left, after)
    steps = []
    for at in range(laid.block.size):
        inside = around.left <= at < around.left + around.length
        if inside and at > around.left:
            continue
        region = PRIVATE if inside else REGIONS[int(told.certainty[at])]
        row = (1.0,) * drawn + (0.0,) * (len(names) - drawn) if inside else tuple(rule[at].tolist())
        steps.append(Step(0 if inside else int(distance[at]), region, row))
    return Around(
        design.kind, (around.left, around.right), around.length, names, drawn, _near(steps)
    )


def _named(
    rule: dict[str, Floats], model: Model, masses: Floats
) -> tuple[tuple[str, ...], Floats, int]:
    """The names of what a rule says, (n, names) what it says, and how many are of being
    redacted.
    """
    columns = np.stack(list(rule.values()), axis=1)
    labels = _values(model.labels)
    if len(rule) != model.k or model.k == 1:  # who redacts sees all values: one probability
        stops = tuple(f"of a walk that gets here, to stop if it is {one}" for one in labels)
        names = ("whatever its value, on average", *stops[: columns.shape[1] - 1])
        return names, columns, 1
    if model.k <= _MOST_LINES:
        return tuple(f"if its value is {one}" for one in labels), columns, model.k
    weights = np.broadcast_to(masses, columns.shape)
    told = [columns.min(axis=1), columns.max(axis=1), (columns * weights).sum(axis=1)]
    names = ("of the value that it is least likely for", "of the one that it is likeliest for")
    return (*names, "on average"), np.stack(told, axis=1), 3


def _values(labels: Sequence[object]) -> list[str]:
    """Values as they are shown: short, and each by a name of its own."""
    shown = [repr(label) for label in labels]
    shown = [one if len(one) <= _LONGEST else f"{one[: _LONGEST - 1]}…" for one in shown]
    return [
        one if shown.count(one) == 1 else f"{one} (value {number})"
        for number, one in enumerate(shown, 1)
    ]


def _near(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Without all but a few of the outermost records that are never redacted."""
    ruled = [step.distance for step in steps if step.region != "S"]
    low, high = min(ruled) - _BEYOND, max(ruled) + _BEYOND
    return tuple(step for step in steps if low <= step.distance <= high)
