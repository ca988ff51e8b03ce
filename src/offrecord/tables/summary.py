"""What a release amounts to, in a few lines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from offrecord.models.posterior import Posterior
from offrecord.tables.checks.check import REFUSED
from offrecord.tables.choosing import NONE, RULES
from offrecord.tables.decision import REGIONS
from offrecord.tables.meaning import Meaning, erased, leakage_of, places_of
from offrecord.text import aligned, many, odds, share_text, worst_odds

if TYPE_CHECKING:
    from offrecord.mechanisms.table_policy import Validation
    from offrecord.models.file import Model
    from offrecord.tables.decision import Decision
    from offrecord.tables.plan import Plan

_NOTHING = 0.01  # a log-ratio not worth a word
#: What a summary repeats of the survey, and of the choice of rules.
_SURVEYED = ("rows", "chains", "missing", "private", "runs", "touched")
_CHOSEN = ("window", "runner_up", "runner_up_expected")
_DROPPED = ("rows", "records", "private")


@dataclass(frozen=True, repr=False)
class Summary:
    """What a release amounts to, for people and machines.

    Records are those with a value that do not wait, in chains that were left out too. kind: as in
    the certificate. touched: chains with a private record; touched_records, touched_released:
    records of these, and their share that leaves; lost: those of which nothing leaves. dropped:
    chains that were left out, with dropped_rows, of which dropped_records had a value, and
    dropped_private records off the record, which private does not count. released,
    expected: the share of the records that leaves, and that was expected to by positions and model;
    window: that of windows, None where they were not compared. runner_up: the mechanism that came
    next, with what was expected of it. regions: records by what their position says: S never
    redacted, M sometimes, L always, private. leakage: what the rules leak; promise: for which
    chains. gain: what that means. erasure: what erasing private records alone would have leaked
    under the mean chain. waiting: records of a growing table that leave later. verdict: of the
    model at this ε, None if it was not tested. advice: where less than half of what erasing private
    records alone would keep is released, what would help.
    """

    dataset: str
    dry_run: bool
    kind: str
    epsilon: float
    mechanism: str | None
    rows: int
    chains: int
    missing: int
    private: int
    runs: int
    touched: int
    touched_records: int
    touched_released: float
    lost: int
    dropped: int
    dropped_rows: int
    dropped_records: int
    dropped_private: int
    redacted: int
    released: float
    expected: float
    window: float | None
    runner_up: str | None
    runner_up_expected: float | None
    leakage: float
    promise: str
    gain: Meaning | None
    erasure: float | None
    regions: dict[str, int]
    waiting: int
    verdict: str | None
    advice: str | None
    seconds: float
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, plan: Plan, decision: Decision, warnings: tuple[str, ...], seconds: float
    ) -> Summary:
        """Of what was decided."""
        survey, chosen, dropped = plan.survey, plan.forecast, plan.dropped
        options, epsilon = plan.given.options, plan.given.epsilon
        policy, model = chosen.policy, plan.model
        records = decision.records + dropped.records
        released, touched_released = _leaving(plan, decision, records)
        share = released / max(records, 1)
        gain, erasure = _gained(plan)
        verdict = None if model is None else model.verdict(epsilon)
        return cls(
            dataset=options.dataset,
            dry_run=options.dry_run,
            kind=chosen.kind,
            epsilon=epsilon,
            mechanism=None if policy is None else policy.mechanism,
            **{name: getattr(survey, name) for name in _SURVEYED},
            **{name: getattr(chosen, name) for name in _CHOSEN},
            touched_records=decision.touched,
            touched_released=max(touched_released, 0.0) / max(decision.touched, 1),
            lost=decision.lost,
            dropped=dropped.chains,
            **{f"dropped_{name}": getattr(dropped, name) for name in _DROPPED},
            redacted=records - round(released),
            released=share,
            # where no coin is thrown, what is released was certain
            expected=chosen.expected if chosen.kind == RULES else share,
            leakage=leakage_of(policy, epsilon),
            promise=promise_text(plan),
            gain=gain,
            erasure=erasure,
            regions=dict(zip(REGIONS, decision.regions.tolist(), strict=True)),
            waiting=decision.waiting,
            verdict=None if verdict is None else verdict.words(),
            advice=_advice(plan, share),
            seconds=seconds,
            warnings=warnings,
        )

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        said = vars(self) | {"gain": None if self.gain is None else vars(self.gain)}
        return {name: "inf" if value == math.inf else value for name, value in said.items()}

    @property
    def _records(self) -> int:
        return self.rows - self.missing - self.waiting + self.dropped_records

    @property
    def is_refused(self) -> bool:
        """Whether it is of a dry run whose release would be refused."""
        return any(warning.startswith(REFUSED) for warning in self.warnings)

    @property
    def short(self) -> str:
        """The release in less than a line."""
        released = f"{self.released:.2%} of {self._records:,} records released"
        return f"{self.dataset!r}: {released}, odds at most {odds(self.leakage)} to 1"

    def figures(self) -> str:
        """The release in a few lines."""
        lines = {
            "little left": self.advice,
            "released": self._released(),
            "protected": self._protected(),
            "in these": self._cost(),
            "waiting": self._waiting(),
            "promise": self.promise,
            "meaning": None if self.gain is None else str(self.gain),
            "plain erasure": self._erasure(),
            "regions": self._regions(),
            "mechanism": self._mechanism(),
            "model": self.verdict,
            "time": f"{self.seconds:.1f} s",
        }
        return aligned([[name, line] for name, line in lines.items() if line is not None])

    def _waiting(self) -> str | None:
        if self.waiting == 0:
            return None
        return f"{many(self.waiting, 'record')} until no later opt-out can reach them"

    def _released(self) -> str:
        share = f"{share_text(self.released)} of {self._records:,} records"
        if self.dry_run:
            return f"{share} expected"
        return share if self.kind != RULES else f"{share} ({share_text(self.expected)} expected)"

    def _protected(self) -> str:
        said = [left_out(self.dropped, self.dropped_private)] if self.dropped else []
        if self.private or not self.dropped:
            inside = f"{many(self.private, 'private record')} in {many(self.runs, 'run')}"
            said.insert(0, f"{inside}, in {self.touched:,} of {many(self.chains, 'chain')}")
        return "; ".join(said)

    def _cost(self) -> str | None:
        if self.touched == 0 or self.kind != RULES:
            return None
        if self.touched == self.chains and self.lost == 0:
            return None  # that was said of all
        records = many(self.touched_records, "record")
        said = f"{share_text(self.touched_released)} of {records} released"
        if self.lost == 0 or self.dry_run:
            return said
        return f"{said}; of {many(self.lost, 'chain')} nothing is left"

    def _erasure(self) -> str | None:
        if self.erasure is None or self.erasure < _NOTHING:
            return None
        return f"would have given {odds(self.erasure)} to 1 under the mean chain"

    def _regions(self) -> str | None:
        if self.kind != RULES:
            return None
        said = {name: f"{count:,}" for name, count in self.regions.items()}
        return (
            f"{said['private']} private, {said['L']} L (always redacted), {said['M']} M"
            f" (sometimes), {said['S']} S (never)"
        )

    def _mechanism(self) -> str | None:
        if self.runner_up is None or self.runner_up_expected is None:
            return self.mechanism
        share = share_text(self.runner_up_expected)
        return f"{self.mechanism}; next: {self.runner_up}, {share} expected"

    def __repr__(self) -> str:
        return f"<Summary {self.short}>"

    def __str__(self) -> str:
        return "\n".join([self.figures(), *(f"warning: {warning}" for warning in self.warnings)])


def _leaving(plan: Plan, decision: Decision, records: int) -> tuple[float, float]:
    """How many records leave, of all and of chains with a private one; in a dry run as expected."""
    # A dry run looks at no value, and which records rules take may depend on values.
    if not plan.given.options.dry_run or plan.chosen.policy is None:
        return float(decision.released), float(decision.touched_released)
    released = plan.forecast.expected * records
    return released, released - (decision.records - decision.touched)


def _gained(plan: Plan) -> tuple[Meaning | None, float | None]:
    """What the release means for a private record, and what plain erasure would have leaked."""
    policy, model, survey = plan.chosen.policy, plan.model, plan.survey
    if policy is None or model is None or not survey.runs:
        return None, None
    gain = Meaning.of(policy, model.promise, places_of(survey.geometry))
    return gain, erased(policy, model.promise)


def _advice(plan: Plan, share: float) -> str | None:
    if plan.chosen.advice is None:
        return None
    private = plan.survey.private + plan.dropped.private
    plain = max(plan.records - private, 0) / max(plan.records, 1)
    return (
        f"{share_text(share)} of the records, where erasing private ones alone would keep"
        f" {share_text(plain)}. {plan.chosen.advice}"
    )


def left_out(chains: int, private: int) -> str:
    """How many private records went with their whole chains."""
    are = "is" if chains == 1 else "are"
    inside = f"{many(private, 'private record')} in {many(chains, 'chain')}"
    return f"{inside}, which {are} left out as a whole"


def promise_text(plan: Plan) -> str:
    """For which chains a promise holds, and what draws say of it."""
    chosen, model = plan.chosen, plan.model
    if chosen.policy is None or model is None:
        if chosen.kind == NONE:
            return "no model is needed: nothing but whole chains is private"
        return "under any model: every chain with a private record goes as a whole"
    ratio = f"at most {odds(plan.given.epsilon)} to 1 about each private value"
    validation, coverage = chosen.policy.validation, model.promise.coverage
    if coverage is None:
        count = model.promise.members(0, 0).count
        which = "the model, taken for exactly right" if count == 1 else f"each of {count:,} chains"
        leaks = "" if validation is None else f"; {odds(validation.largest)} to 1 is reached"
        return f"{ratio}, under {which}{leaks}"
    said = f"{ratio}, in {100 * coverage:.0f} % of the chains {_source(model)}"
    return said if validation is None else f"{said} ({_drawn(validation)})"


def _source(model: Model) -> str:
    if not isinstance(model.promise, Posterior):
        return "of the model"
    records = "its" if model.origin is None else f"{model.origin.records:,}"
    return f"that {records} reference records leave plausible"


def _drawn(validation: Validation) -> str:
    worst = f", {worst_odds(validation.largest)}" if validation.above else ""
    return f"{validation.drawn:,} drawn: {validation.above:,} exceed it{worst}"
