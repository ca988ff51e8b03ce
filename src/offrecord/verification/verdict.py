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
from offrecord.text import many, odds, plain, worst_odds
from offrecord.verification.agreement import Found, disagreements, left_out
from offrecord.verification.law import ROUNDING, SHARES, Judged, leakages
from offrecord.verification.members import CannotJudgeError, Promised
from offrecord.verification.reading import listed_records
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
        return {
            "verified": self.is_verified,
            "status": self.status,
            "epsilon": self.epsilon,
            "coverage": self.coverage,
            "drawn": None if judged is None else judged.to_dict() | {"allowed": self.allowed},
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
        return f"NOT VERIFIED: {many(len(self.problems), 'reason')}"

    @property
    def draws(self) -> str:
        """What the drawn chains say, in a line."""
        judged = self.judged
        if judged is None:
            return "no chains were drawn"
        count, promised = len(judged.leakages), f"ε = {self.epsilon:g} ({odds(self.epsilon)} to 1)"
        if self.coverage is None:
            chains = "the known chain" if count == 1 else f"all {count:,} chains"
            most = odds(max(judged.largest, 0.0))
            return f"odds of at most {most} to 1 under {chains}, within {promised}"
        half, most, all_but_few = map(odds, judged.quantiles)
        return (
            f"{judged.above:,} of {count:,} plausible chains exceed {promised}, of which"
            f" {self.allowed} may for {self.coverage:.0%}; odds of at most {half}, {most} and"
            f" {all_but_few} to 1 in 50, 95 and 99 % of them, {worst_odds(judged.largest)}"
        )

    def __repr__(self) -> str:
        return f"<Verdict {self.headline}>"

    def __str__(self) -> str:
        lines = [self.headline, *(f"  {problem}" for problem in self.problems)]
        lines += ["checked", *(f"  {one}" for one in self.checked)]
        lines += ["not checked", *(f"  {one}" for one in self.not_checked)]
        return "\n".join(map(plain, lines))


def verify(
    certificate: Path | str,
    released: Path | str | None = None,
    *,
    private_list: Native | Path | str | None = None,
    private: str | None = None,
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
        private: where private_list, or else original, is the table that was redacted: its boolean
            column that is true where a record is private.
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
    if released is None and any(one is not None for one in (private_list, private, key, before)):
        raise InputError(
            "a list of private records, a key and an original are checked with the released table"
        )
    read, given = Certificate.load(Path(certificate)), None
    if released is not None:
        keys = listed_records(read, private_list, private, before)
        given = Given(Path(released), keys, key, before, limits)
    # a publisher who knew the draws could choose rules that fail in other chains
    return _verdict(read, given, secrets.randbits(64) if seed is None else seed)


def _verdict(read: Certificate, given: Given | None, seed: int) -> Verdict:
    random = np.random.default_rng(seed)
    found = Found([], ["The form of the certificate, and that it agrees with itself."])
    found.not_checked += left_out(read)
    promised = None if read.model is None else Promised(read.model)
    rules, judged, unknown = None, None, None
    if promised is not None:
        try:
            rules, judged = _judged(read, promised, random, found)
            found.checked.append(_drawn(judged, promised, seed))
        except CannotJudgeError as error:
            unknown = str(error)
            found.not_checked.append(f"What cannot be judged here: {unknown}.")
        except InputError as error:
            found.wrong(str(error))
    found.problems += disagreements(read)
    if given is not None:
        found.add(check_table(read, promised, rules, given, random))
    else:
        found.not_checked += _without_table(promised)
    status = NOT_VERIFIED if found.problems else VERIFIED
    if unknown is not None and not found.problems:
        status, found.problems = CANNOT_JUDGE, [unknown]
    claim, allowed = read.claim, 0 if promised is None else promised.allowed
    outcome = status, found.problems, claim.epsilon, claim.coverage, judged, allowed, seed
    return Verdict(*outcome, found.checked, found.not_checked)


def _without_table(promised: Promised | None) -> Iterator[str]:
    yield (
        "The released table: none was given (output, columns, counts, private, dataset, key_id,"
        " model.labels, growing)."
    )
    if promised is not None and promised.coverage is not None:
        yield f"{OTHER}: no table was given."


def _judged(
    certificate: Certificate, promised: Promised, random: np.random.Generator, found: Found
) -> tuple[Rules, Judged]:
    """The rules and the leakage of drawn chains; a problem where too many exceed ε."""
    policy, epsilon = certificate.policy, certificate.claim.epsilon
    assert policy is not None  # as there is a model
    rules = Rules.of(policy, promised)
    judged = Judged(leakages(rules, promised.draw(promised.drawn, random)), epsilon)
    if judged.above > promised.allowed:
        found.wrong(
            f"{judged.above:,} of {len(judged.leakages):,} chains exceed ε = {epsilon:g}, of which"
            f" {promised.allowed} may; {worst_odds(judged.largest)}"
        )
    if policy.validation is not None:
        known = promised.coverage is None
        found.problems += _quantile_problems(policy.validation, judged, known)
        found.problems += _largest_problems(policy.validation, judged, known)
    # near runs become one, so that no record of it is protected by itself
    if rules.walks and certificate.claim.protect != "run":
        found.wrong("stopping rules protect runs: claim.protect must be 'run'")
    return rules, judged


# What the publisher's draws cannot have shown, as those drawn here are of the same law. known: the
# chains are a list, which both have judged.


def _quantile_problems(stated: Validated, judged: Judged, known: bool) -> Iterator[str]:
    count, slack = len(judged.leakages), 2 * ROUNDING
    for share, one, here in zip(SHARES, stated.quantiles, judged.quantiles, strict=True):
        # of n draws np lie below the quantile p of n others: six standard deviations, 2e-9
        margin = 6 * math.sqrt(2 * count * share * (1 - share)) + 1
        below = np.count_nonzero(judged.leakages < one - slack)
        up_to = np.count_nonzero(judged.leakages <= one + slack)
        unlike = below > share * count + margin or up_to < share * count - margin
        if abs(one - here) > slack if known else unlike:
            yield (
                f"policy.validation.quantiles: {share:.0%} of the publisher's chains have leakage"
                f" {one:.6g} at most, of those drawn here {here:.6g}"
            )


def _largest_problems(stated: Validated, judged: Judged, known: bool) -> Iterator[str]:
    count, slack = len(judged.leakages), 2 * ROUNDING
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
        return f"Leakage under {many(count, 'known chain')}, to {ROUNDING:g}."
    return (
        f"Leakage under {count:,} plausible chains, drawn with seed {seed}: a sample, which accepts"
        f" rules that fail in more than {1 - promised.coverage:.0%} of them with probability 0.1 %."
    )
