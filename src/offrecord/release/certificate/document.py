"""The certificate itself: its sections, and how it is written and read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Annotated, Any, ClassVar, Self

from offrecord.errors import InputError
from offrecord.release.certificate.designs import Designs, Protect, designs_of
from offrecord.release.certificate.form import (
    MAX_COUNT,
    Count,
    Entry,
    Number,
    Section,
    Text,
    Texts,
    Truth,
    cells,
    listed,
    mapped,
    matching,
    number_or_infinite,
    optional,
    parsed,
    refused,
    text,
    truth,
    whole,
    word,
)
from offrecord.release.certificate.model import Learned, Model, ModelCheck, OptionalText
from offrecord.release.certificate.shown import page_of

FORMAT = "offrecord-certificate"
CERTIFICATE_VERSION = 5
#: Of the model alone, and of a set of models.
FOLLOWS = "The records of a chain follow the model given here."
FOLLOWS_SET = (
    "The one-step probabilities of a chain, forwards to the right of a secret and backwards to its"
    " left, lie in the intervals given here, at every step; the chain has no memory beyond as many"
    " records as the model's order."
)
FOLLOWS_SINCE = (
    "The one-step probabilities of a chain, forwards to the right of a secret and backwards to its"
    " left as far as record {since} of the chain, lie in the intervals given here, at every step;"
    " the chain has no memory beyond the record before."
)
FOLLOWS_FORWARDS = (
    "The one-step probabilities of a chain lie in the intervals given here, at every step; the"
    " chain has no memory beyond the record before."
)
ASSUMPTIONS = (
    "Chains are independent of each other.",
    (
        "Which records are private, which are missing, how long chains are, and the order values do"
        " not depend on the values."
    ),
    "Whoever attacks knows none of the redacted values otherwise.",
    "The key stays secret; each record's coin is its own.",
    "Each secret is protected on its own, not several of them jointly.",
)
#: Of a release that stands alone, of one of a growing table, and of one after others.
ALONE = "No other release of these records, or of records that depend on them, exists."
GROWN = (
    "No other release of these records, or of records that depend on them, exists, except earlier"
    " ones of the same growing table, all of which this one repeats; of every record but the newest"
    " lag less reach steps it was known whether it is private."
)
ACCOUNTED = (
    "No other release of these records, or of records that depend on them, exists, except those"
    " named here, with which it was judged together."
)

KEPT = "The columns kept beside the value carry nothing about it."

#: What is said about positions that are not published.
POSITIONS = (
    "The designs say how many records lie to the left and right of a secret, up to where the chain"
    " has forgotten, and how many secrets have each: in short chains that tells where they are, and"
    " so do the holes in the table."
)

_DIGEST = matching(re.compile("[0-9a-f]{64}").fullmatch, "a SHA-256 in 64 hexadecimal digits")
_KEY_ID = matching(re.compile("[0-9a-f]{16}").fullmatch, "16 hexadecimal digits")
_SET_DIGEST = matching(
    re.compile("[0-9a-f]{32}:[0-9]{1,16}").fullmatch, "32 hexadecimal digits, a colon and a count"
)


# ---- what was promised, about what


@dataclass(frozen=True, kw_only=True)
class Claim(Section):
    """What is promised.

    leakage: the largest of a design, at most epsilon. leakage_is_exact: it is no mere upper bound.
    """

    epsilon: Number
    protect: Protect
    mechanism: Text
    leakage: Number
    leakage_is_exact: Truth
    statement: Text


def claim_statement(epsilon: float) -> str:
    """The promise in words."""
    return (
        "For every output that can occur and every two values of a secret, the likelihoods"
        f" of the output differ by a factor of at most e^{epsilon:g} ="
        f" {math.exp(min(epsilon, 700.0)):.6g}."
    )


def assumptions(model: Model, others: Growing | Joint | None, *, kept: bool) -> tuple[str, ...]:
    """What the promise rests on. others: how it stands to other releases, if there may be some.
    kept: columns leave beside the value.
    """
    follows = FOLLOWS
    if model.set is not None:
        follows = FOLLOWS_SET if model.set.start == "stationary" else FOLLOWS_FORWARDS
        if model.set.since > 1:
            follows = FOLLOWS_SINCE.format(since=model.set.since)
    only = ALONE if others is None else GROWN if isinstance(others, Growing) else ACCOUNTED
    return (follows, *ASSUMPTIONS, only, *((KEPT,) if kept else ()))


@dataclass(frozen=True, kw_only=True)
class Columns(Section):
    """How the table was read. step: the distance of one record from the next, None where neighbours
    count as one step apart. zone: the time zone of the order column, where days and longer steps
    are counted. order_unit: what order values are counted in, where they are decimals.
    """

    value: Text
    order: Text
    by: Texts
    keep: Texts
    keep_all: Truth
    step: OptionalText
    order_kind: Annotated[str, word("time", "integer")]
    zone: OptionalText = None
    order_unit: OptionalText = None


@dataclass(frozen=True, kw_only=True)
class Counts(Section):
    """How much of everything the table has. missing: rows without a value, private ones apart."""

    rows: Count
    chains: Count
    missing: Count
    private: Count
    secrets: Count


@dataclass(frozen=True, kw_only=True)
class Positions(Section):
    """Private positions as they are published: the names of the columns, and a key for each private
    record.
    """

    columns: Texts
    keys: Annotated[Sequence[Sequence[str | int | bool]], listed(cells)]


@dataclass(frozen=True, kw_only=True)
class Private(Section):
    """The private records. digest: of which they are, for the key's owner alone; None after a dry
    run. positions: where they are, if that is published.
    """

    count: Count
    digest: Annotated[str | None, optional(_SET_DIGEST)] = None
    positions: Annotated[Positions | None, optional(Positions.read)] = None
    note: Text = POSITIONS


@dataclass(frozen=True, kw_only=True)
class Release(Section):
    """How the release stands in the ledger. other_releases: of the data set, when this one was
    entered; composed: there were none, or what is promised holds for all of them together. Both
    None, with the reason, where nobody can know.
    """

    other_releases: Annotated[int | None, optional(whole(0, MAX_COUNT))]
    composed: Annotated[bool | None, optional(truth)]
    why: OptionalText = None


@dataclass(frozen=True, kw_only=True)
class Growing(Section):
    """Which records of a growing table wait for a later release, so that all releases together tell
    what the last one does.

    until: the newest order value. lag: records wait so many steps. reach: how far to its left a
    secret redacts. link: how near to the end of what is known secrets may depend on later ones.
    """

    until: Annotated[int, whole(-(2**63), 2**63 - 1)]
    lag: Count
    reach: Count
    link: Count


@dataclass(frozen=True, kw_only=True)
class Earlier(Section):
    """Another release that this one was judged together with. certificate: the SHA-256 of its
    certificate. same_coins: it drew the same coins for the same records.
    """

    dataset: Text
    certificate: Annotated[str, _DIGEST]
    same_coins: Truth


@dataclass(frozen=True, kw_only=True)
class Joint(Section):
    """What this release and others of the same records tell together about any secret of any of
    them.

    epsilon: what was accepted. leakage: what they tell. floor: what the others told without this
    one, which nothing can undo. secrets: how many were judged.
    """

    epsilon: Annotated[float, number_or_infinite]
    leakage: Annotated[float, number_or_infinite]
    leakage_is_exact: Truth
    floor: Annotated[float, number_or_infinite]
    secrets: Count
    releases: Annotated[Sequence[Earlier], listed(Earlier.read)]


# ---- the release as it left


@dataclass(frozen=True, kw_only=True)
class Output(Section):
    """What was written: one file, or a folder of several with a SHA-256 each."""

    format: Text
    rows: Count
    columns: Texts
    sha256: Annotated[str | None, optional(_DIGEST)] = None
    files: Annotated[Mapping[str, str] | None, optional(mapped(_DIGEST))] = None

    def check(self) -> None:
        """InputError unless it is one of both."""
        if (self.sha256 is None) == (self.files is None):
            raise refused("output", "must have either sha256 or files, and null for the other")


@dataclass(frozen=True, kw_only=True)
class Certificate(Section):
    """Everything that is said about a release.

    key_id: which key drew the coins, None after a dry run. output: None until it is written.
    """

    form: ClassVar[str] = "certificate"

    format: Annotated[str, word(FORMAT)] = FORMAT
    version: Annotated[int, whole(CERTIFICATE_VERSION, CERTIFICATE_VERSION)] = CERTIFICATE_VERSION
    claim: Claim
    assumptions: Texts
    dataset: Text
    key_id: Annotated[str | None, optional(_KEY_ID)]
    columns: Columns
    counts: Counts
    private: Private
    release: Release
    growing: Annotated[Growing | None, optional(Growing.read)] = None
    joint: Annotated[Joint | None, optional(Joint.read)] = None
    designs: Annotated[Designs, designs_of]
    model: Model
    learned: Annotated[Learned | None, optional(Learned.read)]
    model_check: ModelCheck
    versions: Annotated[Mapping[str, str], mapped(text)]
    output: Annotated[Output | None, optional(Output.read)] = None

    def __repr__(self) -> str:
        claim = self.claim
        return f"<Certificate of {self.dataset!r}: {claim.mechanism}, ε = {claim.epsilon:g}>"

    def _repr_html_(self) -> str:
        return page_of(self)

    def to_dict(self) -> Content:
        """Its JSON."""
        return Content(super().to_dict())

    def with_release(self, release: Release) -> Certificate:
        """The same, with how the release stands in the ledger."""
        return replace(self, release=release)

    def with_output(self, output: Output) -> Certificate:
        """The same, with what was written."""
        return replace(self, output=output)

    def to_json(self) -> bytes:
        """The content of a certificate file."""
        written = json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)
        return (written + "\n").encode()

    @classmethod
    def from_json(cls, content: str | bytes) -> Self:
        """The certificate in a file's content; InputError for anything that is not of the form."""
        return cls.from_dict(parsed(content, cls.form))

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """The certificate of a JSON object; InputError for anything that is not of the form.

        It says that the form is kept, not that the claim is true.
        """
        _check_version(content)
        return cls.read(Entry(content, cls.form))

    @classmethod
    def read(cls, entry: Entry) -> Self:
        """The certificate that an entry holds, its sections checked to go together."""
        certificate = super().read(entry)
        certificate.model.check()
        certificate.designs.check(certificate.model)
        positions = certificate.private.positions
        if positions is not None and any(
            len(key) != len(positions.columns) for key in positions.keys
        ):
            raise refused("private.positions.keys", "must have a cell for each column")
        models = certificate.model.set
        if models is not None and models.since > 1 and (certificate.growing or certificate.joint):
            raise refused("model.set.since", "must not stand beside growing or joint")
        if certificate.output is not None:
            certificate.output.check()
        return certificate


class Content(dict[str, Any]):
    """A certificate as JSON has it, which a notebook shows as a page."""

    def _repr_html_(self) -> str | None:
        """None, for the dictionary as it is, if it is no longer of the form."""
        try:
            return page_of(Certificate.from_dict(self))
        except InputError:
            return None


def _check_version(content: Any) -> None:
    """InputError for another file, or one of another version, before its fields are looked at."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f'not a certificate: "format" must be "{FORMAT}"')
    found = content.get("version")
    if type(found) is not int or found < CERTIFICATE_VERSION:
        root = Entry(content, Certificate.form)
        raise Entry(found, Certificate.form, root, "version").refused(f"{CERTIFICATE_VERSION}")
    if found > CERTIFICATE_VERSION:
        raise InputError(
            f"the certificate is of a newer version than {CERTIFICATE_VERSION}; a newer offrecord"
            " can read it"
        )


def software_versions() -> dict[str, str]:
    """What made the release, by name and version."""
    return {name: version(name) for name in ("offrecord", "polars", "numpy")}
