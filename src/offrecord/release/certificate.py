"""The certificate of a release: what was promised, on what it rests, and what left.

docs/certificate.md says what every field means. The form is kept by pydantic: types are strict, an
unknown field is an error. Keeping the form is not being true: `offrecord verify` checks that.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Sequence
from importlib.metadata import version as version_of
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from offrecord.errors import InputError
from offrecord.files import checked_content, read_json
from offrecord.models.base import Section
from offrecord.models.evidence import Verdict
from offrecord.models.file import Origin, PromiseForm

FORMAT: Literal["offrecord-certificate"] = "offrecord-certificate"
CERTIFICATE_VERSION: Literal[6] = 6
_MOST_PROBABILITIES = 1 << 24  # of one rule: 128 MB

Count = Annotated[int, Field(ge=0, le=10**15)]
Finite = Annotated[float, Field(ge=0)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Texts = tuple[str, ...]


class Claim(Section):
    """What is promised."""

    epsilon: Finite
    protect: Literal["run", "each"]
    # of plausible chains; None: in all of a list, or under any model (whole chains)
    coverage: float | None
    statement: str


class Columns(Section):
    """How the table is read."""

    value: str
    order: str  # "row" where rows stand in order
    by: Texts
    keep: Texts = ()
    keep_all: bool = False  # kept cells leave beside redacted values too
    step: str | None = None  # None where neighbours are one step apart
    order_kind: Literal["time", "integer"]
    zone: str | None = None


class Counts(Section):
    """How much of everything there is in the released table."""

    rows: Count
    chains: Count
    missing: Count  # rows that had no value before, private ones apart
    private: Count
    runs: Count  # private records where each is protected by itself
    released: Count  # rows with a value
    dropped_chains: Count = 0  # of which no row is left
    dropped_records: Count = 0  # values that these had


class Positions(Section):
    """Private positions as they are published: columns, and a row of their cells for each."""

    columns: Texts
    keys: tuple[tuple[str | int | bool, ...], ...]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if any(len(key) != len(self.columns) for key in self.keys):
            raise ValueError("keys must have a cell for each column")
        return self


class Private(Section):
    """The private records."""

    count: Count
    # of which they are, for the key's owner alone; None after a dry run
    digest: Annotated[str | None, Field(pattern="^[0-9a-f]{32}:[0-9]{1,16}$")] = None
    positions: Positions | None = None  # unless they are published


class Standing(Section):
    """How the release stands in the ledger."""

    others: Count | None  # of the data set; None with a reason where nobody can know
    accepted: bool = False  # --accept another-release
    why: str | None = None


class Growing(Section):
    """What a growing table holds back."""

    until: Annotated[int, Field(ge=-(2**63), lt=2**63)]  # the newest order value
    lag: Count  # so many of the newest steps may still become private
    reach: Count  # how far to its left a private record redacts at most
    link: Count  # private records nearer than this to what may become private wait with it


# ---- rules


class Window(Section):
    """A local rule that redacts `window` records whatever their values."""

    kind: Literal["local"]
    window: Annotated[int, Field(ge=0, le=10**7)]
    values: Annotated[int, Field(ge=2, le=64)]

    def chances(self) -> NDArray[np.float64]:
        """(window, values) ones."""
        return np.ones((self.window, self.values))


class Matrix(Section):
    """A local rule: a row for each distance, in it a probability for each value."""

    kind: Literal["local"]
    redaction: tuple[tuple[float, ...], ...]

    @model_validator(mode="after")
    def _exact(self) -> Self:
        widths = {*map(len, self.redaction)}
        if len(widths) != 1 or not 2 <= min(widths) <= 64:
            raise ValueError("redaction must have a row of 2 to 64 probabilities a distance")
        self.chances()
        return self

    def chances(self) -> NDArray[np.float64]:
        """(reach, k) probability of redaction by distance and value."""
        return _drawable(np.array(self.redaction, dtype=np.float64))


class Stopping(Section):
    """A stopping rule; `stop` holds its probabilities: little-endian float64, zlib, base64."""

    kind: Literal["stopping"]
    order: Annotated[int, Field(ge=1, le=6)]
    values: Annotated[int, Field(ge=2, le=64)]
    levels: tuple[Annotated[int, Field(ge=1, le=10**7)], ...]
    far: tuple[Annotated[int, Field(ge=0, lt=64)], ...]
    stop: str

    @model_validator(mode="after")
    def _complete(self) -> Self:
        contexts = self.values**self.order
        if contexts > 64 or len(self.far) != contexts or max(self.far) >= contexts:
            raise ValueError("far must have a class for each of at most 64 contexts")
        rising = all(one < other for one, other in pairwise(self.levels))
        if not self.levels or self.levels[0] < self.order or not rising:
            raise ValueError(f"levels must rise, from {self.order} on")
        if math.prod(self._shape) > _MOST_PROBABILITIES:
            raise ValueError("stop holds too many probabilities")
        self.chances()
        return self

    @property
    def _shape(self) -> tuple[int, int, int, int]:
        contexts = self.values**self.order
        return len(self.levels) - 1, max(self.far) + 1, contexts, contexts

    def chances(self) -> NDArray[np.float64]:
        """(n − 1, C, S, S) probability of stopping by level, far class, start context, context."""
        size = 8 * math.prod(self._shape)
        # a few bytes may unpack to more than memory holds, so no more than fits is unpacked
        try:
            packed = zlib.decompressobj()
            content = packed.decompress(base64.b64decode(self.stop, validate=True), size + 8)
        except (ValueError, zlib.error):
            raise ValueError("stop must be packed probabilities") from None
        if len(content) != size or not packed.eof:
            raise ValueError(f"stop must hold {size // 8:,} probabilities")
        found = np.frombuffer(content, dtype="<f8").astype(np.float64)
        return _drawable(found.reshape(self._shape))


def _drawable(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities that coins of 64 bits draw exactly; ValueError for others."""
    inside = bool(np.all((chances >= 0) & (chances <= 1)))  # false for what is no number
    if not inside or np.any(chances * 2.0**64 % 1 != 0):
        raise ValueError("probabilities must be multiples of 2**-64 from 0 to 1")
    return chances


# A mechanism may bring a kind of rule of its own; verify says that it cannot judge it.
class Unknown(BaseModel):
    """A rule of a kind that is not known here, as it was given."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, allow_inf_nan=False)
    kind: str


def _rule_tag(content: Any) -> str:
    """Which of the classes above a rule is."""
    read = isinstance(content, dict)
    kind = content.get("kind") if read else getattr(content, "kind", None)
    if kind == "local":
        has_size = "window" in content if read else isinstance(content, Window)
        return "window" if has_size else "matrix"
    return "stopping" if kind == "stopping" else "unknown"


Rule = Annotated[
    Annotated[Window, Tag("window")]
    | Annotated[Matrix, Tag("matrix")]
    | Annotated[Stopping, Tag("stopping")]
    | Annotated[Unknown, Tag("unknown")],
    Discriminator(_rule_tag),
]


class SettingRules(Section):
    """The rules of one setting at one place."""

    setting: Literal["record", "run", "first", "last"]
    place: Count
    left: Rule | None
    right: Rule | None


class Validated(Section):
    """What the publisher's own draws say."""

    drawn: Count
    above: Count  # how many of them exceed ε
    quantiles: tuple[Finite, Finite, Finite]  # what 50, 95 and 99 % of them do not exceed
    largest: Finite


class Policy(Section):
    """The content of `TablePolicy.to_dict()`."""

    mechanism: str
    epsilon: Finite
    protect: Literal["run", "each"]
    coverage: float | None
    rules: tuple[SettingRules, ...]
    validation: Validated | None


class Choice(Section):
    """Which mechanism acts, and which came next, by expected share of records released."""

    # from positions and model alone
    acting: str
    expected: Annotated[float, Field(ge=0, le=1)]
    runner_up: str | None = None
    runner_up_expected: Annotated[float, Field(ge=0, le=1)] | None = None


# ---- the model


class Evidence(Section):
    """How the model stands to the data."""

    unseen: bool | None = None  # learned from no record that may be redacted here, if known
    accepted: Texts = ()  # objections to the model


# ---- the release as it left


class Output(Section):
    """What was written: one file, or a folder of several with a SHA-256 each."""

    format: str
    rows: Count
    columns: Texts
    sha256: Digest | None = None
    files: dict[str, Digest] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.sha256 is None) == (self.files is None):
            raise ValueError("must have either sha256 or files")
        return self


class Certificate(Section):
    """Everything that is said about a release.

    kind: "rules": side rules act around private runs. "whole chains": every chain with a private
    record went as a whole, under no model. "none": private records are whole chains, or there are
    none, and nothing else had to go. model: `Promise.form()`. key_id: which key drew the coins;
    None after a dry run. origin and verdicts: as in the model file, without `origin.seen`. output:
    None until it is written.
    """

    format: Literal["offrecord-certificate"] = FORMAT
    version: Literal[6] = CERTIFICATE_VERSION
    kind: Literal["rules", "whole chains", "none"]
    claim: Claim
    assumptions: Texts
    dataset: str
    key_id: Annotated[str | None, Field(pattern="^[0-9a-f]{16}$")] = None
    columns: Columns
    counts: Counts
    private: Private
    release: Standing
    growing: Growing | None = None
    policy: Policy | None = None
    choice: Choice | None = None
    model: PromiseForm | None = None
    origin: Origin | None = None
    verdicts: tuple[Verdict, ...] = ()
    evidence: Evidence = Evidence()
    versions: dict[str, str]
    output: Output | None = None

    @model_validator(mode="after")
    def _rules_have_a_model(self) -> Self:
        acting = self.kind == "rules"
        if acting != (self.policy is not None) or acting != (self.model is not None):
            raise ValueError('policy and model go with the kind "rules", and with no other')
        if self.model is not None:
            self.model.promise()  # counts that are no model are an error of the form
        if self.origin is not None and self.origin.seen is not None:
            raise ValueError("origin.seen is for the key's owner alone")
        return self

    def __repr__(self) -> str:
        mechanism = self.kind if self.policy is None else self.policy.mechanism
        return f"<Certificate of {self.dataset!r}: {mechanism}, ε = {self.claim.epsilon:g}>"

    # ---- files

    def of_output(self, kind: str, columns: Sequence[str], **digests: Any) -> Self:
        """The same with what was written: a format, columns, and `sha256` or `files`."""
        rows = self.counts.rows
        made = Output(format=kind, rows=rows, columns=tuple(columns), **digests)
        return self.model_copy(update={"output": made})

    def to_json(self) -> bytes:
        """The content of a certificate file."""
        written = json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)
        return f"{written}\n".encode()

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """The certificate of a JSON object; InputError for anything that is not of the form."""
        return cls.of(checked_content(content, "certificate", CERTIFICATE_VERSION, ()))

    @classmethod
    def load(cls, path: Path) -> Self:
        """The certificate in a file; InputError, in one line, for anything else."""
        content = read_json(path)
        try:
            return cls.from_dict(content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


# ---- words


def statement(kind: str, epsilon: float, coverage: float | None) -> str:
    """The promise in words."""
    if kind != "rules":
        return "Nothing is released of a chain that has a private record."
    # e to this is still a float
    likely = f"e^{epsilon:g} = {math.exp(min(epsilon, 700.0)):.6g}"
    promise = f"no output is more than {likely} times likelier under one value of a private record"
    promise += " (or run) than under another."
    if coverage is None:
        return f"Under every chain of the model {promise}"
    plausible = f"{coverage:.0%} of the chains that the model's counts leave plausible"
    return f"In at least {plausible} {promise}"


#: What every promise rests on.
ASSUMPTIONS = (
    "Chains are independent of each other.",
    "Which records are private, which are missing, how long chains are, and the order values do not"
    " depend on the values.",
    "The attacker knows none of the redacted values otherwise.",
)
MODEL_HOLDS = "The records of a chain follow one of the chains that the promise is about."
#: What rules and their coins rest on; where whole chains go there is neither.
ACTING = (
    "The key stays secret; each record's coin is its own.",
    "Each private run is protected by itself, not several of them jointly.",
)
ALONE = "No other release of these records, or of records that depend on them, exists."
GROWN = (
    "No other release of these records, or of records that depend on them, exists, except earlier"
    " ones of the same growing table, which this one repeats; of every record but the newest lag"
    " steps it was known whether it is private."
)
KEPT = "The columns kept beside the value carry nothing about it."


def assumptions(kind: str, *, growing: bool, kept: bool) -> Texts:
    """What the promise rests on. kept: columns leave beside the value."""
    model, acting = ((MODEL_HOLDS,), ACTING) if kind == "rules" else ((), ())
    alone = GROWN if growing else ALONE
    return (*model, *ASSUMPTIONS, *acting, alone, *((KEPT,) if kept else ()))


def software_versions() -> dict[str, str]:
    """What made the release, by name and version."""
    return {name: version_of(name) for name in ("offrecord", "polars", "numpy")}
