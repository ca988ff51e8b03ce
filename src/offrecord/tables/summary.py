"""What a release amounts to, in a few lines."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

from offrecord.models.base import Model
from offrecord.text import aligned, many, odds


def models_told(model: Model) -> str:
    """Which models a promise holds for."""
    box = model.box
    if box is None:
        return "the model alone, taken for exactly right"
    sure = (
        "given intervals"
        if box.confidence is None
        else f"their {100 * box.confidence:.10g} % intervals"
    )
    start = {"stationary": "", "settled": ", long under way", "any": ", whatever their start"}
    return f"every chain whose one-step probabilities lie in {sure}{start[box.start]}"


@dataclass(frozen=True)
class Summary:
    """What a release amounts to, for people and machines.

    touched: chains that hold a secret. released, window: share of the records with a value that
    leave with it, and that the best data-independent mechanism would let go. exact: leakage is no
    mere upper bound. models: which models that holds for. erasure: what erasing private records
    alone would have leaked. loss: expected redactions that rounding rooms up to a grid costs a
    secret. near, together: secrets that are near others, where such are designed together, and how
    many have been. unserved: why it is another mechanism than was asked for. verdict: what the fit
    of the model said about itself, audit: whether the promise held in data that the model has not
    seen, None if the model does not say.
    """

    dataset: str
    epsilon: float
    mechanism: str
    rows: int
    chains: int
    missing: int
    private: int
    secrets: int
    touched: int
    redacted: int
    released: float
    window: float
    leakage: float
    exact: bool
    models: str
    erasure: float | None
    regions: dict[str, int]
    designs: int
    loss: float
    seconds: float
    near: int = 0
    together: int = 0
    unserved: str | None = None
    verdict: str | None = None
    audit: str | None = None
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {name: "inf" if value == math.inf else value for name, value in vars(self).items()}

    def figures(self) -> str:
        """The release in a few lines."""
        plain = (
            "not computed for a model like this one"
            if self.erasure is None
            else f"would have given {odds(self.erasure)} to 1"
        )
        regions = {name: f"{count:,}" for name, count in self.regions.items()}
        where = (
            many(self.chains, "chain")
            if self.touched == self.chains
            else f"{self.touched:,} of {self.chains:,} chains"
        )
        bound = "" if self.exact else " (an upper bound)"
        loss = (
            f", rooms rounded up: about {self.loss:.2g} records a secret lost by that"
            if self.loss > 5e-4
            else ""
        )
        near = ""
        if self.near:
            near = f", {self.together:,} of {many(self.near, 'near secret')} designed together"
        instead = "" if self.unserved is None else f"; {self.unserved}"
        nothing = ": nothing else had to go" if self.regions["L"] == self.regions["M"] == 0 else ""
        verdict = textwrap.wrap(
            "not said: the model was not learned by fit" if self.verdict is None else self.verdict,
            100,
        )
        return aligned(
            [
                [
                    "released",
                    (
                        f"{self.released:.2%} of {self.rows - self.missing:,} records (window:"
                        f" {self.window:.2%})"
                    ),
                ],
                [
                    "protected",
                    (
                        f"{many(self.private, 'private record')}, {many(self.secrets, 'secret')},"
                        f" in {where}"
                    ),
                ],
                [
                    "odds",
                    f"at most {odds(self.leakage)} to 1 between two values of a secret{bound}",
                ],
                ["allowed", f"e^{self.epsilon:g} = {odds(self.epsilon)} to 1"],
                ["for", self.models],
                ["plain erasure", plain],
                [
                    "regions",
                    (
                        f"{regions['private']} private, {regions['L']} L (always redacted),"
                        f" {regions['M']} M (sometimes), {regions['S']} S{nothing}"
                    ),
                ],
                [
                    "mechanism",
                    f"{self.mechanism}, {many(self.designs, 'design')}{near}{loss}{instead}",
                ],
                ["audit", "nobody looked" if self.audit is None else self.audit],
                *zip(["model", *[""] * (len(verdict) - 1)], verdict, strict=True),
                ["time", f"{self.seconds:.1f} s"],
            ]
        )

    def __str__(self) -> str:
        return "\n".join([self.figures(), *(f"warning: {warning}" for warning in self.warnings)])
