"""What an audit came to: one word, one number, and where it was found."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

from offrecord.fitting.audit.looks import CHAINS, NEIGHBOURS, PERIOD, STOPS, Depth
from offrecord.models.audited import Audited, rounded
from offrecord.text import aligned

_WIDTH = 100


@dataclass(frozen=True)
class Finding:
    """The largest odds that one look found at one depth.

    kind: "neighbours", "period", "chains", "stops", or the name of phases. epsilon: what was
    promised. depth: how many records were seen on either side. odds: as counted, infinite where
    something was never seen with the other value. at_least: their lower limit. where: what tells,
    and of what.
    """

    kind: str
    epsilon: float
    depth: Depth
    odds: float
    at_least: float
    where: str

    @property
    def excess(self) -> float:
        """How many times what was promised the odds are at least."""
        return self.at_least / math.exp(self.epsilon)

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kind": self.kind,
            "epsilon": self.epsilon,
            "promised": rounded(math.exp(self.epsilon)),
            "left": self.depth.left,
            "right": self.depth.right,
            "odds": rounded(self.odds),
            "at_least": rounded(self.at_least),
            "where": self.where,
        }


@dataclass(frozen=True)
class Audit(Audited):
    """An audit with all that was found. cases: pretended secrets. patterns: how many were seen
    often enough, left_out: how many were not. findings: the largest odds of each look.
    """

    cases: int = 0
    patterns: int = 0
    left_out: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def is_passed(self) -> bool:
        """The model is good, and something is released for every ε."""
        return self.verdict == "good" and not self.closed

    @property
    def is_mendable(self) -> bool:
        """Other designs may pass: what tells is not in another chain."""
        return self.kind != CHAINS

    @property
    def advice(self) -> str:
        """What to do about a verdict that is not good."""
        if self.verdict == "good":
            return ""
        if self.kind == CHAINS:
            return "Release one of these chains, or make them one (docs/independent-chains.md)."
        if self.kind == PERIOD:
            return "Records a period away tell: fit a kernel for each phase, or calibrate."
        if self.kind in (NEIGHBOURS, STOPS):
            return "Fit a higher order, or calibrate."
        return f"Fit a kernel for each {self.kind}, or calibrate."

    def worst(self, epsilon: float) -> Finding | None:
        """The largest odds found for designs that promise e^epsilon."""
        own = [finding for finding in self.findings if finding.epsilon == epsilon]
        return max(own, key=lambda finding: finding.at_least, default=None)

    # ---- for people

    def summary(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            **self.to_dict(),
            "cases": self.cases,
            "patterns": self.patterns,
            "left_out": self.left_out,
            "findings": [finding.summary() for finding in self.findings],
        }

    def __str__(self) -> str:
        """The verdict as a sentence, then the odds by ε."""
        lines = textwrap.wrap(self.sentence, _WIDTH)
        if self.findings:
            lines += ["", aligned(self.table, right=True)]
        return "\n".join(lines)

    @property
    def sentence(self) -> str:
        """The verdict and what it rests on."""
        if not self.looked_at:
            return (
                f"Audit: {self.verdict}. Held back: {self.held_back}. Nothing tells, as all is"
                " redacted: designs for ε = 0.5, 1 and 2 release too little to look at."
            )
        if self.excess <= 1:
            shut = ", ".join(f"{one:g}" for one in self.closed)
            closed = f" For ε = {shut} too little is released to look at." if self.closed else ""
            return (
                f"Audit: {self.verdict}. Held back: {self.held_back}. Nothing that was looked at"
                f" ({', '.join(self.looked_at)}) tells more than designs promise.{closed}"
            )
        ends = ", within chance" if self.chance else ""
        counted = "" if math.isinf(self.odds) else f"counted {self.odds:.3g} to 1, "
        return (
            f"Audit: {self.verdict}. Held back: {self.held_back}. Where the odds exceed the promise"
            f" most they are {counted}at least {self.at_least:.3g} to 1{ends}; designs for ε ="
            f" {self.epsilon:g} promise {self.promised:.3g} to 1. What tells: {self.where}."
            f" {self.advice}"
        ).rstrip()

    @property
    def table(self) -> list[list[str]]:
        """The largest odds of each kind, for each ε."""
        rows = [["ε", "promised", "looked at", "odds", "at least"]]
        largest: dict[tuple[float, str], Finding] = {}
        for finding in sorted(self.findings, key=lambda finding: finding.at_least):
            largest[finding.epsilon, finding.kind] = finding
        for (epsilon, kind), finding in sorted(largest.items()):
            numbers = (math.exp(epsilon), finding.odds, finding.at_least)
            promised, odds, at_least = (f"{number:.3g}" for number in numbers)
            sides = f"{finding.depth.left} before, {finding.depth.right} after"
            rows.append([f"{epsilon:g}", promised, f"{kind}, {sides}", odds, at_least])
        return rows
