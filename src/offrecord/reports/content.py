"""What a report says, as objects: of a run, or of a certificate with what a check found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.promise import Promise
from offrecord.release.certificate import Certificate
from offrecord.reports.pictures import Point
from offrecord.tables.meaning import Meaning
from offrecord.tables.summary import Summary
from offrecord.verification.verdict import CANNOT_JUDGE, Verdict


@dataclass(frozen=True)
class Names:
    """What files are called. digest: the SHA-256 of the released table, where it is a file."""

    certificate: str
    released: str | None = None
    digest: str | None = None


@dataclass(frozen=True, eq=False)
class Content:
    """All that a report says.

    summary: of the run, where it is at hand. verdict: of a check, if there was one. points: what
    other budgets would release. warnings: what a person should know.
    """

    certificate: Certificate
    names: Names
    summary: Summary | None = None
    verdict: Verdict | None = None
    points: Sequence[Point] = ()
    warnings: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """What speaks against the certificate."""
        return () if self.verdict is None else tuple(self.verdict.problems)

    @property
    def holds(self) -> bool:
        """Nothing was found that speaks against the certificate."""
        return self.verdict is None or self.verdict.is_verified

    @property
    def is_unjudged(self) -> bool:
        """Rules or a model are of a kind that the check does not know."""
        return self.verdict is not None and self.verdict.status == CANNOT_JUDGE

    @cached_property
    def policy(self) -> TablePolicy | None:
        """The rules that act."""
        policy = self.certificate.policy
        return None if policy is None else TablePolicy.from_form(policy)

    @cached_property
    def promise(self) -> Promise | None:
        """The chains that the promise is about."""
        model = self.certificate.model
        return None if model is None else model.promise()

    @cached_property
    def acting(self) -> tuple[TablePolicy, Promise] | None:
        """Rules and chains, where rules of known kinds act on private records."""
        if self.policy is None or self.promise is None or not self.certificate.counts.private:
            return None
        return self.policy, self.promise

    @cached_property
    def belief(self) -> Meaning | None:
        """What an attacker may come to believe."""
        if self.acting is None:
            return None
        known = None if self.summary is None else self.summary.gain
        return known or Meaning.of(*self.acting)

    @property
    def records(self) -> int:
        """How many records had a value and do not wait, in chains that were left out too."""
        counts = self.certificate.counts
        waiting = 0 if self.summary is None else self.summary.waiting
        return counts.rows - counts.missing - waiting + counts.dropped_records

    @property
    def released(self) -> float:
        """The share of these records that left, as the certificate counts them."""
        return self.certificate.counts.released / max(self.records, 1)

    def to_dict(self) -> dict[str, Any]:
        """Its figures, for machines."""
        certificate = self.certificate
        return {
            "dataset": certificate.dataset,
            "kind": certificate.kind,
            "epsilon": certificate.claim.epsilon,
            "mechanism": None if self.policy is None else self.policy.mechanism,
            "released": self.released,
            "verified": None if self.verdict is None else self.verdict.is_verified,
            "problems": list(self.problems),
            "warnings": list(self.warnings),
            "belief": None if self.belief is None else vars(self.belief),
            "curve": [point._asdict() for point in self.points],
        }
