"""What a release amounts to, in a few lines."""

from __future__ import annotations

import math
import re
import textwrap
from dataclasses import dataclass
from typing import Any

from offrecord.fitting.verdict import leaves_out_beginnings, objections
from offrecord.models.base import Model
from offrecord.models.box import Box
from offrecord.tables.meaning import Meaning
from offrecord.text import (
    aligned,
    html_facts,
    html_list,
    html_note,
    many,
    odds,
    odds_at_least,
    share_text,
)

_NOTHING = 0.01  # a log-ratio not worth a word
_OWNER = "owner"  # the one mechanism that may fall short of windows


def models_told(model: Model, verdict: str | None) -> str:
    """Which models a promise holds for; verdict: what the fit of the model said about itself."""
    but = ""
    is_said = model.is_stationary or model.box is not None  # else the start of the model is its own
    if is_said and leaves_out_beginnings(verdict, model.box):
        but = "; not for secrets near where a chain begins, as first records are unlike the rest"
    return f"{_held(model.box)}{but}"


def _held(box: Box | None) -> str:
    if box is None:
        return "the model alone, taken for exactly right"
    sure = (
        "given intervals"
        if box.confidence is None
        else f"their {100 * box.confidence:.10g} % intervals"
    )
    start = {"stationary": "", "settled": ", long under way", "any": ", whatever their start"}
    since = ""
    if box.since > 1:
        since = f", from its record {box.since} on; in a chain with a secret earlier ones leave or"
        since += " stay with that one"
    return f"every chain whose one-step probabilities lie in {sure}{start[box.start]}{since}"


@dataclass(frozen=True, repr=False)
class Summary:
    """What a release amounts to, for people and machines.

    Records are those with a value. touched: chains that hold a secret. released, window: share of
    the records that leave with it, and that the best data-independent mechanism would let go.
    touched_records, touched_released: records of touched chains, and their share that leaves. lost:
    touched chains of which no record leaves, in a dry run those of which that is certain. closed:
    those of which no record can leave by the rule, whatever its value. regions: records. exact:
    leakage is no mere upper bound. models: which models that holds for. meaning: what it is for the
    value that gains most, None without secrets. erasure: what erasing private records alone would
    have leaked; at least, over a set of models, if erasure_is_least. loss: expected redactions that
    rounding rooms up to a grid costs a secret. near, together: secrets that are near others, where
    such are designed together, and how many have been. waiting: records of a growing table that
    leave later, which count nowhere else. unserved: why it is another mechanism than
    was asked for. verdict: what the fit of the model said about itself, audit: whether the promise
    held in data that the model has not seen, None if the model does not say.
    """

    dataset: str
    dry_run: bool
    epsilon: float
    mechanism: str
    rows: int
    chains: int
    missing: int
    private: int
    secrets: int
    touched: int
    touched_records: int
    touched_released: float
    lost: int
    closed: int
    redacted: int
    released: float
    window: float
    leakage: float
    exact: bool
    models: str
    meaning: Meaning | None
    erasure: float | None
    erasure_is_least: bool
    regions: dict[str, int]
    designs: int
    loss: float
    seconds: float
    near: int = 0
    together: int = 0
    waiting: int = 0
    unserved: str | None = None
    verdict: str | None = None
    audit: str | None = None
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        meaning = None if self.meaning is None else self.meaning.to_dict()
        said = vars(self) | {"meaning": meaning}
        return {name: "inf" if value == math.inf else value for name, value in said.items()}

    @property
    def short(self) -> str:
        """The release in less than a line."""
        records = self.rows - self.missing - self.waiting
        released = f"{self.released:.2%} of {records:,} records released"
        return f"{self.dataset!r}: {released}, odds at most {odds(self.leakage)} to 1"

    def figures(self) -> str:
        """The release in a few lines."""
        return aligned([[name, line] for name, line in self._lines()])

    def _lines(self) -> list[tuple[str, str]]:
        """What there is to say, by name."""
        lines = {
            "released": self._released(),
            "protected": self._protected(),
            "in these": self._cost(),
            "waiting": self._waiting(),
            "meaning": None if self.meaning is None else str(self.meaning),
            "odds": self._odds(),
            "for": self.models,
            "plain erasure": self._erasure(),
            "regions": self._regions(),
            "mechanism": self._mechanism(),
            "audit": "nobody looked" if self.audit is None else self.audit,
            "model": self._model(),
            "time": f"{self.seconds:.1f} s",
        }
        return [(name, line) for name, line in lines.items() if line is not None]

    def _waiting(self) -> str | None:
        """None where nothing waits."""
        if self.waiting == 0:
            return None
        return f"{many(self.waiting, 'record')} until no later opt-out can reach them"

    def _released(self) -> str:
        expected = " expected" if self.dry_run else ""
        records = f"{self.rows - self.missing - self.waiting:,} records"
        shares = share_text(self.released), share_text(self.window)
        more = ""
        if self.mechanism == _OWNER and self.window > self.released:
            more = "; --mechanism best-local releases no less than windows, by expectation"
        return f"{shares[0]} of {records}{expected} (window: {shares[1]}{more})"

    def _protected(self) -> str:
        where = (
            many(self.chains, "chain")
            if self.touched == self.chains
            else f"{self.touched:,} of {self.chains:,} chains"
        )
        return f"{many(self.private, 'private record')}, {many(self.secrets, 'secret')}, in {where}"

    def _cost(self) -> str | None:
        """What it cost the chains concerned, unless that was said of all."""
        if self.touched == 0 or (self.touched == self.chains and self.lost == 0):
            return None
        records = many(self.touched_records, "record")
        if self.touched_records == self.regions["private"]:
            return f"nothing: all {records} are private"
        if self.closed == self.touched:
            return (
                f"nothing: {self.mechanism} can release none of {records} within"
                f" ε = {self.epsilon:g}; a larger ε may"
            )
        said = f"{share_text(self.touched_released)} of {records} released"
        if self.lost == 0:
            return said
        lose = "lost everything"
        if self.dry_run:
            lose = f"{'loses' if self.lost == 1 else 'lose'} everything for certain"
        return f"{said}; {many(self.lost, 'chain')} {lose}"

    def _odds(self) -> str:
        bound = "" if self.exact else " (an upper bound)"
        return (
            f"at most {odds(self.leakage)} to 1 between two values of a secret{bound}; allowed:"
            f" e^{self.epsilon:g} = {odds(self.epsilon)}"
        )

    def _erasure(self) -> str | None:
        """None where there is nothing to say."""
        if self.erasure is None:
            return None
        if not self.erasure_is_least:
            return f"would have given {odds(self.erasure)} to 1, by the model alone"
        if self.erasure < _NOTHING:
            return None
        return f"would have given at least {odds_at_least(self.erasure)} to 1"

    def _regions(self) -> str:
        regions = {name: f"{count:,}" for name, count in self.regions.items()}
        nothing = ": nothing else had to go" if self.regions["L"] == self.regions["M"] == 0 else ""
        return (
            f"{regions['private']} private, {regions['L']} L (always redacted), {regions['M']} M"
            f" (sometimes), {regions['S']} S (never){nothing}"
        )

    def _mechanism(self) -> str:
        loss = (
            f", rooms rounded up: about {self.loss:.2g} records a secret lost by that"
            if self.loss > 5e-4
            else ""
        )
        near = ""
        if self.near:
            near = f", {self.together:,} of {many(self.near, 'near secret')} designed together"
        instead = "" if self.unserved is None else f"; {self.unserved}"
        return f"{self.mechanism}, {many(self.designs, 'design')}{near}{loss}{instead}"

    def _model(self) -> str:
        """How the verdict of the fit begins, what in it speaks against an assumption, and where the
        rest is.
        """
        if self.verdict is None:
            return "not said: the model was not learned by fit"
        first = re.split(r"[.:;] ", self.verdict)[0].rstrip(".")
        against = [f"but: {one}" for one in objections(self.verdict)]
        said = [textwrap.shorten(one, 100) for one in (first, *against)]
        return f'{"; ".join(said)}; more: "learned" in the certificate'

    def __repr__(self) -> str:
        return f"<Summary {self.short}>"

    def __str__(self) -> str:
        return "\n".join([self.figures(), *(f"warning: {warning}" for warning in self.warnings)])

    def _repr_html_(self) -> str:
        """For notebooks: warnings first."""
        headline = f"{'dry run of ' if self.dry_run else ''}{self.short}"
        warnings = html_list("Warnings", self.warnings)
        return html_note(headline) + warnings + html_facts(self._lines())
