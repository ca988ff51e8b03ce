"""What a release amounts to, in a few lines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Summary:
    """What a release amounts to, for people and machines.

    released, window: share of the records with a value that leave with it, and that the best data-independent mechanism
    would let go. erasure: what erasing private records alone would have leaked. loss: expected redactions that rounding rooms
    up to a grid costs a secret.
    """

    dataset: str
    epsilon: float
    mechanism: str
    rows: int
    chains: int
    missing: int
    private: int
    secrets: int
    redacted: int
    released: float
    window: float
    leakage: float
    erasure: float | None
    regions: dict[str, int]
    designs: int
    loss: float
    seconds: float
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {name: "inf" if value == math.inf else value for name, value in vars(self).items()}

    def __str__(self) -> str:
        from offrecord.comparison import aligned

        share = {name: f"{count:,}" for name, count in self.regions.items()}
        plain = "not computed for this model" if self.erasure is None else f"would have given {_odds(self.erasure)} to 1"
        lines = [
            ["released", f"{self.released:.2%} of {self.rows - self.missing:,} records (window: {self.window:.2%})"],
            [
                "protected",
                f"{_many(self.private, 'private record')}, {_many(self.secrets, 'secret')}, in {_many(self.chains, 'chain')}",
            ],
            [
                "odds",
                f"at most {_odds(self.leakage)} to 1 between two values of a secret; allowed: e^{self.epsilon:g} ="
                f" {_odds(self.epsilon)}",
            ],
            ["plain erasure", plain],
            [
                "regions",
                f"{share['private']} private, {share['L']} L (always redacted), {share['M']} M (sometimes), {share['S']} S",
            ],
            [
                "mechanism",
                f"{self.mechanism}, {_many(self.designs, 'design')}"
                + (f", rooms rounded up: about {self.loss:.2g} records a secret lost by that" if self.loss > 5e-4 else ""),
            ],
            ["time", f"{self.seconds:.1f} s"],
        ]
        return aligned(lines)


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _odds(leakage: float) -> str:
    return "infinitely many" if leakage > 700 else f"{math.exp(leakage):.4g}"
