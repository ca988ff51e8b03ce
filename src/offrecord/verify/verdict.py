"""The whole check of a certificate, and of a released table where one is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offrecord.errors import InputError
from offrecord.release.certificate import Certificate
from offrecord.release.certificate.shown import html_list, html_note
from offrecord.verify.designs import judged
from offrecord.verify.document import disagreements

_LARGEST = 1 << 30  # bytes of a certificate
#: What no check of a certificate can say.
NEVER_CHECKED = (
    "That the model is right, or that the truth lies in its set.",
    "That the assumptions hold, which the certificate lists.",
    "Who made the certificate: it is not signed.",
)


@dataclass(frozen=True, repr=False)
class Verdict:
    """problems: why it does not verify, one line each; none: it does. told: the most that a design
    tells. checked, not_checked: in words.
    """

    problems: Sequence[str]
    told: float
    epsilon: float
    checked: Sequence[str]
    not_checked: Sequence[str]

    @property
    def is_verified(self) -> bool:
        """Everything that was checked holds."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "verified": self.is_verified,
            "epsilon": self.epsilon,
            "told": self.told if self.told != float("inf") else "infinite",
            "problems": list(self.problems),
            "checked": list(self.checked),
            "not_checked": list(self.not_checked),
        }

    # ---- for people

    @property
    def headline(self) -> str:
        """In a line."""
        if self.is_verified:
            told = f"{self.told:.6g} where {self.epsilon:g} is promised"
            return f"verified: designs tell at most {told}"
        count = len(self.problems)
        return f"NOT VERIFIED: {count} reason{'' if count == 1 else 's'}"

    def __repr__(self) -> str:
        return f"<Verdict {self.headline}>"

    def __str__(self) -> str:
        lines = [self.headline, *(f"  {problem}" for problem in self.problems)]
        lines += ["checked", *(f"  {one}" for one in self.checked)]
        lines += ["not checked", *(f"  {one}" for one in self.not_checked)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        listed = {"reasons": self.problems, "checked": self.checked}
        listed["not checked"] = self.not_checked
        parts = (html_list(title, lines) for title, lines in listed.items())
        return html_note(self.headline) + "".join(parts)


def verify(
    certificate: Path | str,
    released: Path | str | None = None,
    *,
    private_list: Path | str | None = None,
    key_file: Path | str | None = None,
    original: Path | str | None = None,
) -> Verdict:
    """Check a certificate by itself, and with the released table if that is given.

    private_list: which records are private, where the certificate does not publish it. key_file:
    the publisher's key, with which every coin is drawn again. original: the table before it was
    redacted, by whose values coins decide. InputError for what cannot be read.
    """
    read = read_certificate(Path(certificate))
    found = list(judged(read.designs, read.model))
    problems = list(disagreements(read))
    problems += [f"{one.place} {one.why}" for one in found if one.why is not None]
    checked = [
        "The form of the certificate, and that it agrees with itself.",
        f"{len(found)} bounds on what designs tell, by arithmetic that rounds outwards.",
    ]
    not_checked = list(_left_out(read))
    if released is not None:
        from offrecord.verify.table import check_table

        others = private_list, key_file, original
        paths = (None if one is None else Path(one) for one in others)
        table = check_table(read, Path(released), *paths)
        problems += table.problems
        checked += table.checked
        not_checked += table.not_checked
    elif any(one is not None for one in (private_list, key_file, original)):
        raise InputError(
            "a list of private records, a key and an original are checked with the released table"
        )
    else:
        not_checked.append("The released table: none was given.")
    told = max((one.told for one in found), default=0.0)
    return Verdict(problems, told, read.claim.epsilon, checked, [*not_checked, *NEVER_CHECKED])


def read_certificate(file: Path) -> Certificate:
    """InputError, in one line, for anything that is no certificate."""
    try:
        if file.exists() and not file.is_file():  # a device or a pipe may have no end
            raise InputError(f"{file} is not a file")
        if file.stat().st_size > _LARGEST:
            raise InputError(f"{file}: a certificate of more than {_LARGEST >> 30} GiB")
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    try:
        return Certificate.from_json(content)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def _left_out(certificate: Certificate) -> list[str]:
    """What this certificate itself leaves open."""
    found = []
    if certificate.growing is not None:
        found.append(
            "Earlier releases of the growing table: that this one repeats them, and that opt-outs"
            " were known in time."
        )
    if certificate.joint is not None:
        found.append(
            "What is told together with the releases that are named: that needs all of them, and"
            " which records were private in each."
        )
    if certificate.release.composed is not True:
        found.append(
            "Other releases of the data set: together they may tell more than is said here."
        )
    if certificate.model_check.accepted:
        found.append(f"The model, against which speaks: {certificate.model_check.accepted[0]}.")
    if certificate.learned is None or certificate.learned.audit is None:
        found.append("Whether the promise held in data: no audit is in the certificate.")
    return found
