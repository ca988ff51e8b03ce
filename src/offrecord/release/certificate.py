"""The certificate of a release: what was promised, under which assumptions, and what anyone needs
to check it.

docs/certificate.md says what every field means, docs/certificate.schema.json is the same form as a
JSON Schema. Nothing here knows how designs are made: who checks a certificate needs no more than
this file, form.py and what a certificate holds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeVar

from offrecord.errors import InputError
from offrecord.release.form import (
    MAX_COUNT,
    Count,
    Entry,
    Number,
    OpenSection,
    Probability,
    Section,
    Text,
    Texts,
    Truth,
    array,
    cells,
    label,
    listed,
    mapped,
    matching,
    number,
    number_or_infinite,
    optional,
    parsed,
    probabilities,
    text,
    truth,
    whole,
    word,
)

FORMAT = "offrecord-certificate"
CERTIFICATE_VERSION = 2
#: How many phases there are of each kind: hours from midnight, weekdays from Monday, months from
#: January. A record's phase decides the step out of it.
PHASES = {"hour": 24, "weekday": 7, "month": 12}
#: A record is redacted if its draw, a number of so many bits, lies below its threshold.
DRAW_BITS = 64
#: Rows of probabilities must sum to 1 within this much.
ROW_TOLERANCE = 1e-9

COMPOSITION = (
    "Around each secret stands the design for its surroundings; where several fall on a record, the"
    " largest redaction probability of each value counts. A record is redacted if its 64-bit draw"
    " lies below that probability times 2^64, rounded up. More redaction never leaks more, so the"
    " release leaks about each secret on its own at most the largest leakage of a design."
)

ASSUMPTIONS = (
    "The records of a chain follow the model given here.",
    "Chains are independent of each other.",
    (
        "Which records are private, which are missing, how long chains are, and the order values do"
        " not depend on the values."
    ),
    "Whoever attacks knows none of the redacted values otherwise.",
    "The key stays secret; each record's coin is its own.",
    "Each secret is protected on its own, not several of them jointly.",
    "No other release of these records, or of records that depend on them, exists.",
)

KEPT = "The columns kept beside the value carry nothing about it."

#: What is said about positions that are not published.
POSITIONS = (
    "The designs say how many records lie to the left and right of a secret, up to where the chain"
    " has forgotten: in short chains that tells where it is, and so do the holes in the table."
)

#: Equal neighbouring rows by distance: how many, and the redaction probability of each value.
Stretch: TypeAlias = Sequence[Any]
#: Phases along a chain: the first, what is added from one record to the next, and how many.
Run: TypeAlias = tuple[int, int, int]
T = TypeVar("T", bound=Hashable)

_DIGEST = matching(re.compile("[0-9a-f]{64}").fullmatch, "a SHA-256 in 64 hexadecimal digits")
_KEY_ID = matching(re.compile("[0-9a-f]{16}").fullmatch, "16 hexadecimal digits")
_SET_DIGEST = matching(
    re.compile("[0-9a-f]{32}:[0-9]{1,16}").fullmatch, "32 hexadecimal digits, a colon and a count"
)
_ONE_OR_MORE = whole(1, MAX_COUNT)
Protect = Annotated[str, word("run", "each")]
OptionalText = Annotated[str | None, optional(text)]


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


def assumptions(*, kept: bool) -> tuple[str, ...]:
    """What the promise rests on; kept: columns leave beside the value."""
    return (*ASSUMPTIONS, *((KEPT,) if kept else ()))


@dataclass(frozen=True, kw_only=True)
class Columns(Section):
    """How the table was read. step: the distance of one record from the next, None where neighbours
    count as one step apart. zone: the time zone of the order column, where days and longer steps
    are counted.
    """

    value: Text
    order: Text
    by: Texts
    keep: Texts
    keep_all: Truth
    step: OptionalText
    order_kind: Annotated[str, word("time", "integer")]
    zone: OptionalText = None


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
    entered; composed: there were none. Both None, with the reason, where nobody can know.
    """

    other_releases: Annotated[int | None, optional(whole(0, MAX_COUNT))]
    composed: Annotated[bool | None, optional(truth)]
    why: OptionalText = None


# ---- the model


@dataclass(frozen=True, kw_only=True)
class Model(Section):
    """The model as in model files, with its start spelled out.

    stationary: every record has the same distribution, and start is the solution of start =
    start·transition, rounded.
    """

    format: Annotated[str, word("offrecord-model")] = "offrecord-model"
    version: Annotated[int, whole(1, 1)] = 1
    order: Annotated[int, whole(1, 10)]
    phase: Annotated[str | None, optional(word(*PHASES))] = None
    zone: OptionalText = None
    labels: Annotated[Sequence[str | int | float | bool], listed(label)]
    transition: Annotated[Sequence[Any], array]
    start: Annotated[Sequence[Any], array]
    stationary: Truth

    @property
    def k(self) -> int:
        """Number of values."""
        return len(self.labels)

    @property
    def phase_count(self) -> int | None:
        """How many phases there are, None for a model without them."""
        return None if self.phase is None else PHASES[self.phase]

    def check(self) -> None:
        """InputError unless its parts go together."""
        different = {(isinstance(one, str), one) for one in self.labels}
        if self.k < 2 or len(different) < self.k:
            raise _refused("model.labels", "must be two or more different values")
        self._check_shapes()
        per_start = 1 if self.phase is None else PHASES[self.phase]
        for name, numbers, rows in (
            ("transition", self.transition, None),
            ("start", self.start, per_start),
        ):
            if any(abs(total - 1.0) > ROW_TOLERANCE for total in _sums(numbers, rows)):
                raise _refused(f"model.{name}", f"must sum to 1 within {ROW_TOLERANCE:g}")

    def _check_shapes(self) -> None:
        k, phases = self.k, self.phase_count
        if phases is not None and self.order != 1:
            raise _refused("model.order", f"must be 1 for a model with phases, got {self.order}")
        one = (k,) * (self.order + 1)
        kernels, starts = (one, one[1:]) if phases is None else ((phases, k, k), (phases, k))
        shape = _shape(self.transition)
        a_kernel_each_step = phases is None and self.order == 1 and shape[1:] == one
        if shape != kernels and not (a_kernel_each_step and shape[0] > 0):
            raise _refused("model.transition", f"must have axes {_axes(kernels)}")
        if _shape(self.start) != starts:
            raise _refused("model.start", f"must have axes {_axes(starts)}")

    @property
    def length(self) -> int | None:
        """The only number of records that a model with a kernel for each step can serve."""
        several = self.phase is None and self.order == 1 and len(_shape(self.transition)) == 3
        return len(self.transition) + 1 if several else None


def _shape(numbers: Any) -> tuple[int, ...]:
    """The shape of lists of lists; (−1,) where they are not of equal length."""
    if not isinstance(numbers, tuple):
        return ()
    shapes = set(map(_shape, numbers))
    if len(shapes) > 1 or (-1,) in shapes:
        return (-1,)
    return (len(numbers), *next(iter(shapes), ()))


def _axes(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))


def _sums(numbers: Any, groups: int | None) -> list[float]:
    """The sum of each innermost list; groups: how many sums there are, if those lists are parts of
    longer distributions.
    """
    rows = [numbers]
    while isinstance(rows[0][0], tuple):
        rows = [row for several in rows for row in several]
    size = 1 if groups is None else len(rows) // groups
    return [
        math.fsum(p for row in rows[at : at + size] for p in row)
        for at in range(0, len(rows), size)
    ]


@dataclass(frozen=True, kw_only=True)
class Learned(Section):
    """What the model was learned from, in its own words."""

    value: Text
    order: Text
    step: OptionalText
    zone: OptionalText
    spacing: Annotated[float | None, optional(number)]
    verdict: Text


@dataclass(frozen=True, kw_only=True)
class ModelComparison(Section):
    """What released transitions say about the model. leakage: the largest of a design by the
    table's own transitions; None where that was not computed.
    """

    transitions: Count
    impossible: Count
    statistic: Annotated[float, number_or_infinite]
    degrees: Count
    p_value: Probability
    waste: Annotated[float, number_or_infinite]
    leakage: Annotated[float | None, optional(number_or_infinite)]
    significance: Probability


@dataclass(frozen=True, kw_only=True)
class ModelCheck(Section):
    """Whether the table follows the model. compared: None where nothing was. accepted: what speaks
    against the model, and was accepted.
    """

    compared: Annotated[ModelComparison | None, optional(ModelComparison.read)]
    accepted: Texts


# ---- the designs


@dataclass(frozen=True, kw_only=True)
class Composition(Section):
    """How designs become redactions. rule: a name for programs, text: the same for people.

    draw_bits: probabilities act as multiples of 2^−draw_bits, rounded up.
    """

    rule: Text
    draw_bits: Annotated[int, whole(1, 1024)]
    text: Text


MAXIMUM = Composition(rule="maximum", draw_bits=DRAW_BITS, text=COMPOSITION)


@dataclass(frozen=True, kw_only=True)
class Grids(Section):
    """The rooms to the left and right of a secret that designs of a stationary model are made
    for.
    """

    left: Annotated[Sequence[int], listed(whole(0, MAX_COUNT))]
    right: Annotated[Sequence[int], listed(whole(0, MAX_COUNT))]

    def check(self) -> None:
        """InputError unless both begin with 0, increase, and end with the same room."""
        for name, grid in (("left", self.left), ("right", self.right)):
            if not grid or grid[0] != 0 or list(grid) != sorted(set(grid)):
                raise _refused(f"designs.grids.{name}", "must begin with 0 and increase")
        if not 0 < self.left[-1] == self.right[-1]:
            raise _refused("designs.grids", "must end with the same room, of at least 1")


@dataclass(frozen=True, kw_only=True)
class Design(Section):
    """What every kind says of a design: what it was made for, what it tells, whom it serves.

    left, right: records beside a secret of `length` records. phases: which of the phase sequences
    they stand in, None for a model without phases. leakage, rounding: of the problem it was made
    for, and how far computing may be from it. uses: how many secrets it serves. window: how far the
    best data-independent mechanism would redact to the left and right.
    """

    left: Count
    right: Count
    length: Annotated[int, _ONE_OR_MORE]
    phases: Annotated[int | None, optional(whole(0, MAX_COUNT))] = None
    leakage: Number
    rounding: Number
    uses: Count
    window: Annotated[Sequence[int], listed(whole(0, MAX_COUNT), 2)]


@dataclass(frozen=True, kw_only=True)
class LocalDesign(Design):
    """A design that redacts by distance. redaction_left, redaction_right: which of the sides stand
    to the left and right; left_rest, right_rest: beyond them all is redacted to the chain's end,
    not released.
    """

    redaction_left: Count
    redaction_right: Count
    left_rest: Truth
    right_rest: Truth


@dataclass(frozen=True, kw_only=True)
class OtherDesign(OpenSection, Design):
    """A design of a kind that is not known here."""


@dataclass(frozen=True, kw_only=True)
class Designs(Section):
    """What every kind says of its designs.

    composition: how they become redactions. grids, loss: the rooms they are made for, and the
    expected redactions that rounding rooms up costs a secret; None for a model that is not
    stationary. right_limit: how many records to the right are then looked at, None for all.
    phases: the distinct sequences in which records stand, as runs.
    """

    kind: Text
    mechanism: Text
    epsilon: Number
    protect: Protect
    composition: Composition
    grids: Annotated[Grids | None, optional(Grids.read)] = None
    loss: Number = 0.0
    right_limit: Annotated[int | None, optional(_ONE_OR_MORE)] = None
    phases: Annotated[
        Sequence[Sequence[Sequence[int]]], listed(listed(listed(whole(0, MAX_COUNT), 3)))
    ] = ()
    designs: Annotated[Sequence[Design], listed(Design.read)]

    def records(self, design: Design, order: int) -> int:
        """How many records the problem has that a design was made for; order: of the model."""
        if design.phases is None:
            return max(design.left + design.length + design.right, order + 1, 2)
        return sum(count for _, _, count in self.phases[design.phases])

    def check(self, model: Model) -> None:
        """InputError unless they go together, and with the model."""
        if self.grids is not None:
            if not model.stationary:
                raise _refused("designs.grids", "must be null for a model that is not stationary")
            self.grids.check()
        _check_runs(self.phases, model)
        served = set()
        for at, design in enumerate(self.designs):
            self._check_records(f"designs.designs[{at}]", design, model)
            runs = None if design.phases is None else self.phases[design.phases]
            served.add((design.left, design.right, design.length, runs))
        if len(served) < len(self.designs):
            raise _refused("designs.designs", "must have one design for the same surroundings")

    def _check_records(self, place: str, design: Design, model: Model) -> None:
        known = design.phases is None or design.phases < len(self.phases)
        if (design.phases is None) != (model.phase is None) or not known:
            says = "null for a model without phases" if model.phase is None else "one of the list"
            raise _refused(f"{place}.phases", f"must be {says}")
        beside = design.left + design.length
        records, least = self.records(design, model.order), max(beside + design.right, 2)
        if not (design.phases is None or least <= records <= beside + max(design.right, 1)):
            raise _refused(f"{place}.phases", f"must be the phases of {least} records")
        if model.length is not None and records != model.length:
            raise _refused(place, f"must be about the {model.length} records of the model")


def _stretch(entry: Entry) -> tuple[int, tuple[float, ...]]:
    pair = entry.items()
    if len(pair) != 2:
        raise entry.refused("a count and a list of probabilities")
    return _ONE_OR_MORE(pair[0]), probabilities(pair[1])


@dataclass(frozen=True, kw_only=True)
class LocalDesigns(Designs):
    """Designs that redact each record by its own value and its distance from secrets.

    sides: distinct redactions of one side, from the secret outwards, as stretches [count,
    probabilities].
    """

    kind: Annotated[str, word("local")] = "local"
    composition: Composition = MAXIMUM
    sides: Annotated[Sequence[Sequence[Stretch]], listed(listed(_stretch))]
    designs: Annotated[Sequence[LocalDesign], listed(LocalDesign.read)]

    def check(self, model: Model) -> None:
        """InputError unless sides are those of the model's values, and no longer than their
        rooms.
        """
        super().check(model)
        if self.composition.rule != MAXIMUM.rule:
            raise _refused(
                "designs.composition.rule", f'must be "{MAXIMUM.rule}" for local designs'
            )
        for at, side in enumerate(self.sides):
            if any(len(row) != model.k for _, row in side):
                raise _refused(f"designs.sides[{at}]", f"must hold rows of {model.k} probabilities")
        sizes = [sum(count for count, _ in side) for side in self.sides]
        for at, design in enumerate(self.designs):
            beyond = self.records(design, model.order) - design.left - design.length
            for name, index, room in (
                ("redaction_left", design.redaction_left, design.left),
                ("redaction_right", design.redaction_right, beyond),
            ):
                if index >= len(sizes) or sizes[index] > room:
                    place = f"designs.designs[{at}].{name}"
                    raise _refused(place, f"must be a side of at most {room} records")


@dataclass(frozen=True, kw_only=True)
class OtherDesigns(OpenSection, Designs):
    """Designs of a kind that is not known here: whoever checks them must say so, not pass them."""

    designs: Annotated[Sequence[OtherDesign], listed(OtherDesign.read)]


#: Kinds whose own part is known here; a new one is one class and one line.
KINDS: dict[str, type[Designs]] = {"local": LocalDesigns}


def read_designs(content: Mapping[str, Any]) -> Designs:
    """Designs of any kind from a JSON object; InputError if it is not of the form."""
    return _designs(Entry(dict(content), "designs"))


def _designs(entry: Entry) -> Designs:
    kind = text(entry.named(["kind"], others=True)["kind"])
    return KINDS.get(kind, OtherDesigns).read(entry)


def _check_runs(sequences: Sequence[Sequence[Sequence[int]]], model: Model) -> None:
    modulus = model.phase_count
    if modulus is None:
        if sequences:
            raise _refused("designs.phases", "must be empty for a model without phases")
        return
    for at, runs in enumerate(sequences):
        if not all(first < modulus and rise < modulus and count for first, rise, count in runs):
            raise _refused(f"designs.phases[{at}]", f"must be runs of phases below {modulus}")


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
            raise _refused("output", "must have either sha256 or files, and null for the other")


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
    designs: Annotated[Designs, _designs]
    model: Model
    learned: Annotated[Learned | None, optional(Learned.read)]
    model_check: ModelCheck
    versions: Annotated[Mapping[str, str], mapped(text)]
    output: Annotated[Output | None, optional(Output.read)] = None

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
            raise _refused("private.positions.keys", "must have a cell for each column")
        if certificate.output is not None:
            certificate.output.check()
        return certificate


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


def _refused(place: str, says: str) -> InputError:
    return InputError(f'{Certificate.form}: "{place}" {says}')


# ---- shorter ways to write what repeats


def phase_runs(phases: Iterable[int], modulus: int) -> tuple[Run, ...]:
    """Phases as runs (first, increment, count) modulo their number; `spelled_phases` undoes it.

    Each run is as long as it can be, so the same phases always give the same runs.
    """
    runs: list[list[int]] = []
    for phase in map(int, phases):
        if runs:
            first, rise, count = runs[-1]
            if count == 1:
                runs[-1] = [first, (phase - first) % modulus, 2]
                continue
            if (first + rise * count) % modulus == phase:
                runs[-1][2] += 1
                continue
        runs.append([phase, 0, 1])
    return tuple((first, rise, count) for first, rise, count in runs)


def spelled_phases(runs: Iterable[Sequence[int]], modulus: int) -> list[int]:
    """The phases of runs, one by one."""
    return [(first + rise * at) % modulus for first, rise, count in runs for at in range(count)]


def stretches(rows: Iterable[Sequence[float]]) -> tuple[tuple[int, tuple[float, ...]], ...]:
    """Rows by distance as stretches (count, row), equal neighbours together."""
    joined: list[tuple[int, tuple[float, ...]]] = []
    for row in map(tuple, rows):
        count = 0
        if joined and joined[-1][1] == row:
            count, _ = joined.pop()
        joined.append((count + 1, row))
    return tuple(joined)


def spelled_rows(side: Iterable[Stretch]) -> list[tuple[float, ...]]:
    """The rows of a side, one for each distance from 1."""
    return [tuple(row) for count, row in side for _ in range(count)]


def listed_once(items: Iterable[T]) -> tuple[tuple[T, ...], tuple[int, ...]]:
    """The distinct items in the order in which they come, and which of them each is."""
    found: dict[T, int] = {}
    which = tuple(found.setdefault(item, len(found)) for item in items)
    return tuple(found), which


def software_versions() -> dict[str, str]:
    """What made the release, by name and version."""
    return {name: version(name) for name in ("offrecord", "polars", "numpy")}
