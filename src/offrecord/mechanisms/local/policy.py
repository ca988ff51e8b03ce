"""LocalPolicy: a redaction matrix for one problem, with its exact leakage and utility."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from offrecord.errors import InputError, renamed
from offrecord.files import checked_content
from offrecord.mechanisms.base import Policy
from offrecord.mechanisms.blocks import PRIVATE, REGIONS, Mask, certainty_of
from offrecord.mechanisms.local import shown
from offrecord.mechanisms.local.referee import Passed
from offrecord.models.base import Floats, Label
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import whole_number
from offrecord.theory.leakage import WorstOutput, worst_output
from offrecord.theory.problem import Problem
from offrecord.theory.redaction import Redaction

POLICY_VERSION = 1
#: Up to this many records, `first` and `last` are the whole chain.
WHOLE = 10_000
#: The longest span of records that is listed one by one.
MAX_LISTED = 1_000_000
#: The most records of which every outcome is listed.
MAX_OUTCOMES = 20


@dataclass(frozen=True, eq=False)
class LocalPolicy(Policy):
    """A local redaction mechanism for one problem.

    sparse: the redaction matrix where it is not 0. mechanism: the name of what designed it.
    utility_bound: what no local mechanism exceeds, where that is known. details: what else there is
    to say about the design.
    """

    kind: ClassVar[str] = "local"

    problem: Problem
    sparse: Redaction
    mechanism: str
    utility_bound: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, found: Passed[Any] | None, name: str) -> LocalPolicy:
        """What passed the referee, or everything redacted where nothing did."""
        everything = Redaction.everything(problem.n, problem.chain.k)
        return cls(problem, everything if found is None else found.redaction, name)

    @cached_property
    def worst(self) -> WorstOutput:
        """The output that tells most about a private record."""
        return worst_output(self.problem, self.sparse)

    @property
    def leakage(self) -> float:
        """Exact leakage, the largest over the secrets; for chains of order above 1 an upper bound
        (worst.exact tells).
        """
        return self.worst.leakage

    @cached_property
    def utility(self) -> float:
        """Expected share of the n records that is released."""
        return self.sparse.released(self.problem.chain) / self.problem.n

    @property
    def redaction(self) -> Floats:
        """(n, k) redaction probabilities; InputError where n·k is too large to spell out (use
        rows).
        """
        return self.sparse.matrix()

    @property
    def first(self) -> int:
        """First record that may be redacted; 1 for chains of at most 10,000 records."""
        return (
            1
            if self.problem.n <= WHOLE or len(self.sparse.starts) == 0
            else int(self.sparse.starts[0]) + 1
        )

    @property
    def last(self) -> int:
        """Last record that may be redacted; n for chains of at most 10,000 records."""
        if self.problem.n <= WHOLE or len(self.sparse.stops) == 0:
            return self.problem.n
        return int(self.sparse.stops[-1])

    def rows(self, first: int, last: int) -> Floats:
        """(last − first + 1, k) redaction probabilities of the records first … last, counted from
        1.
        """
        if not 1 <= first <= last <= self.problem.n:
            raise InputError(
                f"records must be from 1 to {self.problem.n}, in order, got {first} to {last}"
            )
        return self.sparse.matrix(first - 1, last)

    @property
    def regions(self) -> list[str]:
        """For the records first … last: "private", else "L" (all values always redacted), "S" (none
        ever) or "M".
        """
        names = [REGIONS[one] for one in certainty_of(self._listed())]
        for p in self.problem.private:
            if self.first <= p <= self.last:
                names[p - self.first] = PRIVATE
        return names

    def _listed(self) -> Floats:
        span = self.last - self.first + 1
        if span > MAX_LISTED:
            raise InputError(
                f"{span} records lie between the first and the last redaction; only {MAX_LISTED}"
                " are listed one by one, so save the policy instead"
            )
        return self.rows(self.first, self.last)

    def rule(self, record: int) -> dict[Label, float]:
        """What the owner of one record must know: for each value, the probability of staying
        silent.
        """
        record = whole_number("record", record)
        if not 1 <= record <= self.problem.n:
            raise InputError(f"record must be from 1 to {self.problem.n}, got {record}")
        return dict(
            zip(self.problem.chain.labels, self.sparse.row(record - 1).tolist(), strict=True)
        )

    def outcomes(self, values: Sequence[int]) -> Iterator[tuple[Mask, float]]:
        """Every mask of released records that one sequence of values (0 … k − 1) may get, with its
        probability: each record is decided by itself.
        """
        n = self.problem.n
        if len(values) != n or n > MAX_OUTCOMES:
            raise InputError(
                f"outcomes are listed for {n} values, if they are at most {MAX_OUTCOMES}, got"
                f" {len(values)}"
            )
        silent = self.redaction[np.arange(n), np.asarray(values)]
        unsure = np.flatnonzero((silent > 0) & (silent < 1))
        for choice in product((False, True), repeat=len(unsure)):
            released = silent < 1
            released[unsure] = choice
            chance = np.where(choice, 1 - silent[unsure], silent[unsure])
            yield released, float(np.prod(chance))

    # ---- for machines

    def summary(self) -> dict[str, Any]:
        """What `offrecord design --json` prints."""
        return {
            "mechanism": self.mechanism,
            "epsilon": self.problem.epsilon,
            "n": self.problem.n,
            "private": list(self.problem.private),
            "protect": self.problem.protect,
            "leakage": self.leakage if math.isfinite(self.leakage) else "inf",
            "leakage_is_exact": self.worst.exact,
            "leakage_method": self.worst.method,
            "utility": self.utility,
            "utility_bound": self.utility_bound,
            "first": self.first,
            "last": self.last,
            "regions": self.regions,
            "redaction": self._listed().tolist(),
            "worst_output": str(self.worst),
            "details": dict(self.details),
        }

    def to_dict(self) -> dict[str, Any]:
        """The content of a policy file."""
        return {
            "format": "offrecord-policy",
            "version": POLICY_VERSION,
            "mechanism": self.mechanism,
            "details": dict(self.details),
            "model": self.problem.chain.to_dict(),
            "n": self.problem.n,
            "private": list(self.problem.private),
            "protect": self.problem.protect,
            "epsilon": self.problem.epsilon,
            "leakage": self.leakage if math.isfinite(self.leakage) else "inf",
            "utility": self.utility,
            "redaction": [
                [int(start) + 1, int(stop), row.tolist()]
                for start, stop, row in zip(
                    self.sparse.starts, self.sparse.stops, self.sparse.rows, strict=True
                )
            ],
        }

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """The policy of a policy file's content; its leakage and utility are computed anew, never
        taken from the file.
        """
        keys = ("model", "n", "private", "protect", "epsilon", "redaction")
        content = checked_content(content, "policy", POLICY_VERSION, keys)
        chain = MarkovChain.from_dict(content["model"])
        problem = Problem(
            chain, content["n"], content["private"], content["epsilon"], content["protect"]
        )
        details = content.get("details", {})
        return cls(
            problem,
            _stretches(content["redaction"], problem.n, chain.k),
            str(content.get("mechanism", "unnamed")),
            None,
            details if isinstance(details, dict) else {},
        )

    # ---- for people

    @property
    def is_private(self) -> bool:
        """Within its ε, rounding included: always so for what a mechanism designed, to be asked of
        what came from a file.
        """
        return self.worst.upper <= self.problem.epsilon

    private = renamed("is_private")

    def __repr__(self) -> str:
        leakage = (
            f"leakage {self.leakage:.4g} {'≤' if self.is_private else '>'} ε ="
            f" {self.problem.epsilon:g}"
        )
        return f"<Policy {self.mechanism}: utility {self.utility:.4f}, {leakage}>"

    def __str__(self) -> str:
        return shown.text(self)

    def _repr_html_(self) -> str:
        return shown.html(self)


def _stretches(content: Any, n: int, k: int) -> Redaction:
    parts = []
    position = 0
    if not isinstance(content, list):
        raise InputError('"redaction" must be a list of [first, last, probabilities]')
    for entry in content:
        if not (
            isinstance(entry, list)
            and len(entry) == 3
            and isinstance(entry[2], list)
            and len(entry[2]) == k
        ):
            raise InputError(f'"redaction" must hold entries [first, last, {k} probabilities]')
        first, last = (
            whole_number("redaction: first", entry[0]),
            whole_number("redaction: last", entry[1]),
        )
        if not position < first <= last <= n:
            raise InputError(
                f'"redaction" must name records from 1 to {n} in order, got {first} to {last}'
            )
        if not all(
            isinstance(q, (int, float)) and not isinstance(q, bool) and 0 <= q <= 1
            for q in entry[2]
        ):
            raise InputError('"redaction" must hold probabilities between 0 and 1')
        parts.append((first - 1, last, entry[2]))
        position = last
    return Redaction.of(n, k, parts)
