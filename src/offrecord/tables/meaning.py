"""What a promise means for the values of a table: from how likely a value is before the release to
how likely it can get by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from offrecord.designs.needs import SurroundingCounts
from offrecord.fitting.verdict import begins_otherwise
from offrecord.models.base import Floats, Label, Model

_NEAR = 0.1  # by which share one part of n may differ from what it stands for


class Gain(NamedTuple):
    """A value that a release can make likelier: how likely it is before, and after at most."""

    value: Label
    before: float
    after: float

    @classmethod
    def of(cls, model: Model, before: Floats, leakage: float) -> Gain:
        """The value that gains most, of values that are so likely before."""
        after = np.array([posterior(share, leakage) for share in before.tolist()])
        worst = int(np.argmax(after - before))
        return cls(model.labels[worst], float(before[worst]), float(after[worst]))


@dataclass(frozen=True)
class Meaning:
    """The value of a private record that a release can make so much likelier than any other.

    before: how likely it is by the model, of the first record of each secret. after: how likely it
    is at most for whoever knows the model and the release, and nothing else of the redacted values.
    varies: it depends on the place of a record, and these are means. settled: these are about
    records away from the beginnings of chains alone, as chains begin otherwise. first: the same of
    the first record of a chain, where the model says how likely its values are.

    Let odds between values be at most e^λ. Of prior p the posterior is at most
    p·e^λ / (p·e^λ + 1 − p); that is concave in p, so a mean of it is at most that of the mean. The
    same holds for each record of a run: what is seen is as likely, given one of its values, as on
    average over runs with that value.
    """

    value: Label
    before: float
    after: float
    varies: bool
    settled: bool = False
    first: Gain | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        needs: SurroundingCounts,
        leakage: float,
        verdict: str | None,
        whole: Model | None = None,
    ) -> Meaning | None:
        """Of the surroundings of secrets, and of what is told about them; None without secrets.

        verdict: what the fit of the model said about itself. whole: the model with how its chains
        begin, where designs are for what it is later.
        """
        if len(needs) == 0:
            return None
        gain = Gain.of(model, _masses(model, needs), leakage)
        varies = not model.is_stationary
        # how likely values are there, neither the model nor its set says
        any_start = model.box is not None and model.box.start == "any"
        assumed = model.is_stationary or model.clock is not None  # else it has a start of its own
        settled = any_start or (assumed and begins_otherwise(verdict))
        first = None
        if settled and whole is not None and not whole.is_stationary:
            first = Gain.of(model, whole.masses(np.zeros(1, dtype=np.int64))[0], leakage)
        return cls(*gain, varies, settled, first)

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return vars(self) | {"first": None if self.first is None else self.first._asdict()}

    def __str__(self) -> str:
        before, after = shares_text(self.before, self.after)
        mean = ", on average" if self.varies else ""
        mean += ", away from where a chain begins" if self.settled else ""
        said = (
            f"by the model a private record is {repr(self.value)[:60]} in about {before}{mean};"
            f" after the release in at most {after}"
        )
        if self.first is None:
            return said
        before, after = shares_text(self.first.before, self.first.after)
        return (
            f"{said}. The first of a chain is {repr(self.first.value)[:60]} in about {before}, then"
            f" in at most {after}"
        )


def posterior(share: float, leakage: float) -> float:
    """How likely a value is at most, once odds between it and others are e^leakage to 1."""
    if share <= 0 or share >= 1:
        return share
    against = (1.0 - share) / share * math.exp(-leakage)
    return 1.0 / (1.0 + against)


def _masses(model: Model, needs: SurroundingCounts) -> Floats:
    """(k,) how likely each value of the first record of a secret is; the mean over secrets."""
    if model.is_stationary:
        return model.masses(needs.left)
    phases = None
    if model.clock is not None:
        phases = np.array([around.along[around.left] for around in needs], dtype=np.int8)
    return np.average(model.masses(needs.left, phases), axis=0, weights=needs.counts)


def shares_text(before: float, after: float) -> tuple[str, str]:
    """Two shares as people say them: of the first about as much, of the second no less.

    1 of 15 cases and 1 of 6, where that is near enough; else per cent.
    """
    if 0 < before <= after:
        parts, most = round(1 / before), math.floor(1 / after)
        near = abs(before * parts - 1) <= _NEAR and (1 + _NEAR) * after * most >= 1
        if near and 1 < most < parts:
            return f"1 of {parts:,} cases", f"1 of {most:,}"
    return f"{_per_cent(before, up=False)} of cases", _per_cent(after, up=True)


def _per_cent(share: float, *, up: bool) -> str:
    """To two digits of it or of what it leaves of 1; up: none less than it is."""
    least = max(min(share, 1.0 - share), 1e-12)
    digits = max(-math.floor(math.log10(least)) - 1, 0) if 0 < share < 1 else 0
    scaled = share * 100 * 10**digits
    whole = math.ceil(scaled) if up else round(scaled)
    return f"{whole / 10**digits:.{digits}f} %"
