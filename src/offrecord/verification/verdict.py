"""The whole check of a certificate, and of a released table where one is given."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from offrecord.errors import InputError
from offrecord.release.certificate import Certificate, Validated
from offrecord.tables.frames import Native
from offrecord.verification.agreement import disagreements, left_out
from offrecord.verification.law import ROUNDING, Judged, leakages
from offrecord.verification.members import CannotJudgeError, Promised
from offrecord.verification.recount import OTHER
from offrecord.verification.rules import Rules
from offrecord.verification.table import Given, check_table

#: More than so many of n draws exceed the largest of n others with a probability of 2**-31.
_ABOVE_LARGEST = 30
VERIFIED, NOT_VERIFIED, CANNOT_JUDGE = "verified", "not verified", "cannot judge"


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a check came to.

    status: "verified"; "not verified", because of the problems; or "cannot judge" rules of a kind
    that this version does not know. judged: leakage of the drawn chains, None where nothing is
    drawn. allowed: how many of them may exceed ε. seed: of the draws. checked, not_checked: in
    sentences.
    """

    status: str
    problems: Sequence[str]
    epsilon: float
    coverage: float | None
    judged: Judged | None
    allowed: int
    seed: int
    checked: Sequence[str]
    not_checked: Sequence[str]

    @property
    def is_verified(self) -> bool:
        """Everything that was checked holds."""
        return self.status == VERIFIED

    def to_dict(self) -> dict[str, Any]:
        """For JSON; numbers without a limit are the text "inf"."""
        judged = self.judged
        drawn = None
        if judged is not None:
            drawn = {
                "chains": len(judged.leakages),
                "above": judged.above,
                "allowed": self.allowed,
                "quantiles": [_number(one) for one in judged.quantiles],
                "largest": _number(judged.largest),
            }
        return {
            "verified": self.is_verified,
            "status": self.status,
            "epsilon": self.epsilon,
            "coverage": self.coverage,
            "drawn": drawn,
            "seed": self.seed,
            "problems": list(self.problems),
            "checked": list(self.checked),
            "not_checked": list(self.not_checked),
        }

    @property
    def headline(self) -> str:
        """In a line."""
        if self.status == CANNOT_JUDGE:
            return f"CANNOT JUDGE: {self.problems[0]}"
        if self.is_verified:
            return "verified" if self.judged is None else f"verified: {self.draws}"
        count = len(self.problems)
        return f"NOT VERIFIED: {count} reason{'' if count == 1 else 's'}"

    @property
    def draws(self) -> str:
        """What the drawn chains say, in a line."""
        judged = self.judged
        if judged is None:
            return "no chains were drawn"
        count, most = len(judged.leakages), max(judged.largest, 0.0)
        if self.coverage is None:
            chains = "the known chain" if count == 1 else f"all {count:,} chains"
            return f"leakage at most {most:.6g} of ε = {self.epsilon:g} under {chains}"
        return (
            f"{judged.above:,} of {count:,} plausible chains exceed ε = {self.epsilon:g}, of which"
            f" {self.allowed} may for {self.coverage:.0%}; 50, 95 and 99 % of them leak at most"
            f" {', '.join(f'{one:.4g}' for one in judged.quantiles)}, the worst {most:.4g}"
        )

    def __repr__(self) -> str:
        return f"<Verdict {self.headline}>"

    def __str__(self) -> str:
        lines = [self.headline, *(f"  {problem}" for problem in self.problems)]
        lines += ["checked", *(f"  {one}" for one in self.checked)]
        lines += ["not checked", *(f"  {one}" for one in self.not_checked)]
        return "\n".join(lines)


def _number(value: float) -> float | str:
    return value if value < np.inf else "inf"


def verify(
    certificate: Path | str,
    released: Path | str | None = None,
    *,
    private_list: Native | Path | str | None = None,
    key_file: Path | str | None = None,
    original: Path | str | None = None,
    seed: int | None = None,
    limits: Mapping[str, int] | None = None,
) -> Verdict:
    """Check a certificate by itself, and with the released table if that is given.

    Args:
        certificate: its file.
        released: the table it is about.
        private_list: which records are private, where the certificate does not publish it: a frame
            or a file.
        key_file: the publisher's key, with which every coin is drawn again.
        original: the table before it was redacted, by whose values coins decide.
        seed: of the draws of plausible chains; the machine's randomness without it.
        limits: of what the tables may hold, as `redact` takes them.

    Returns:
        What was checked, what it came to, and what was not checked.

    Raises:
        InputError: for what cannot be read.
    """
    key, before = (None if one is None else Path(one) for one in (key_file, original))
    if released is None and any(one is not None for one in (private_list, key, before)):
        raise InputError(
            "a list of private records, a key and an original are checked with the released table"
        )
    read = Certificate.load(Path(certificate))
    given = None if released is None else Given(Path(released), private_list, key, before, limits)
    return judge(read, given, secrets.randbits(64) if seed is None else seed)


def judge(certificate: Certificate, given: Given | None, seed: int) -> Verdict:
    """Check a certificate that has been read; see `verify`."""
    random = np.random.default_rng(seed)
    promised = None if certificate.model is None else Promised(certificate.model)
    problems: list[str] = []
    checked = ["The form of the certificate, and that it agrees with itself."]
    not_checked = list(left_out(certificate))
    judged, rules, unknown = None, None, None
    if promised is not None and certificate.policy is not None:
        try:
            rules = Rules.of(certificate.policy, promised.kind)
            judged = _judged(certificate, promised, rules, random, problems)
            checked.append(_drawn(judged, promised, seed))
        except CannotJudgeError as error:
            unknown, rules = str(error), None
            not_checked.append(f"What cannot be judged here: {unknown}.")
        except InputError as error:
            rules = None
            problems.append(str(error))
    problems += disagreements(certificate)
    if given is not None:
        found = check_table(certificate, promised, rules, given, random)
        problems += found.problems
        checked += found.checked
        not_checked += found.not_checked
    else:
        not_checked.append(
            "The released table: none was given (output, columns, counts, private, dataset, key_id,"
            " model.labels, growing)."
        )
        if promised is not None and promised.coverage is not None:
            not_checked.append(f"{OTHER}: no table was given.")
    status = NOT_VERIFIED if problems else VERIFIED
    if unknown is not None and not problems:
        status, problems = CANNOT_JUDGE, [unknown]
    allowed = 0 if promised is None else promised.allowed
    claim = certificate.claim
    return Verdict(
        status, problems, claim.epsilon, claim.coverage, judged, allowed, seed, checked, not_checked
    )


def _judged(
    certificate: Certificate,
    promised: Promised,
    rules: Rules,
    random: np.random.Generator,
    problems: list[str],
) -> Judged:
    """The leakage of drawn chains, and a problem where too many exceed ε."""
    epsilon = certificate.claim.epsilon
    judged = Judged(leakages(rules, promised.draw(promised.drawn, random)), epsilon)
    if judged.above > promised.allowed:
        problems.append(
            f"{judged.above:,} of {len(judged.leakages):,} chains exceed ε = {epsilon:g}, of which"
            f" {promised.allowed} may; the worst leaks {judged.largest:.6g}"
        )
    if certificate.policy is not None and certificate.policy.validation is not None:
        problems += _validation_problems(
            certificate.policy.validation, judged, promised.coverage is None
        )
    if rules.walks and certificate.claim.protect != "run":
        problems.append("stopping rules protect runs: claim.protect must be 'run'")
    return judged


def _validation_problems(stated: Validated, judged: Judged, known: bool) -> Iterator[str]:
    """What the publisher's draws cannot have shown, as these ones are of the same law.

    known: the chains are a list, which both have judged.
    """
    count, slack = len(judged.leakages), 2 * ROUNDING
    for share, one in zip((0.5, 0.95, 0.99), stated.quantiles, strict=True):
        here = judged.quantile(share)
        # of n draws np lie below the quantile p of n others: six standard deviations, 2e-9
        margin = 6 * math.sqrt(2 * count * share * (1 - share)) + 1
        below = np.count_nonzero(judged.leakages < one - slack)
        up_to = np.count_nonzero(judged.leakages <= one + slack)
        unlike = below > share * count + margin or up_to < share * count - margin
        if abs(one - here) > slack if known else unlike:
            yield (
                f"policy.validation.quantiles: {share:.0%} of the publisher's chains leak at most"
                f" {one:.6g}, of those drawn here {here:.6g}"
            )
    beyond = int(np.count_nonzero(judged.leakages > stated.largest + slack))
    too_large = known and stated.largest > judged.largest + slack
    if too_large or beyond > (0 if known else _ABOVE_LARGEST):
        yield (
            f"policy.validation.largest is {stated.largest:.6g}, and {beyond:,} of {count:,} chains"
            " drawn here exceed it"
        )


def _drawn(judged: Judged, promised: Promised, seed: int) -> str:
    count = len(judged.leakages)
    if promised.coverage is None:
        return f"Leakage under {count:,} known chain{'' if count == 1 else 's'}, to {ROUNDING:g}."
    return (
        f"Leakage under {count:,} plausible chains, drawn with seed {seed}: a sample, which accepts"
        f" rules that fail in more than {1 - promised.coverage:.0%} of them with probability 0.1 %."
    )
