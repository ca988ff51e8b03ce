"""The certificate's designs: what every kind says of them, and what local and owner's ones are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from offrecord.release.certificate.form import (
    MAX_COUNT,
    Count,
    Entry,
    Number,
    OpenSection,
    Section,
    Text,
    Truth,
    listed,
    optional,
    probabilities,
    refused,
    text,
    whole,
    word,
)
from offrecord.release.certificate.model import Model
from offrecord.release.certificate.stopping import Stopping

#: A record is redacted, or a walk stops, if its draw, a number of so many bits, lies below its
#: threshold.
DRAW_BITS = 64
COMPOSITION = (
    "Around each secret stands the design for its surroundings; where several fall on a record, the"
    " largest redaction probability of each value counts. A record is redacted if its 64-bit draw"
    " lies below that probability times 2^64, rounded up. More redaction never leaks more, so the"
    " release leaks about each secret on its own at most the largest leakage of a design."
)
CLUSTERS = (
    "Near secrets form clusters. Around each cluster stands one design for it, or around each of"
    " its secrets, as around every other secret, the design for its surroundings or its window: by"
    " expectation over the model whichever redacts least; only the places of records, and which of"
    " them have a value, decide that. Where several designs fall on a record, the largest redaction"
    " probability of each value counts. A record is redacted if its 64-bit draw lies below that"
    " probability times 2^64, rounded up. More redaction never leaks more, so the release leaks"
    " about each secret on its own at most the largest leakage of a design."
)
WALKS = (
    "Neighbouring secrets join into a cluster where fewer records lie between them than the longer"
    " of the two last levels that face each other there, by the first option of their designs,"
    " unless the gap is held out; a cluster is redacted whole. It takes the option of least"
    " expected redactions among those whose budgets sum to at most epsilon, or by which no secret"
    " inside tells more than epsilon from its distance to both ends; a single record far from all"
    " others may take both sides in turn, the second by a label that the first one's stop draws;"
    " positions alone decide which. From each end a walk leads away: it looks up the value at its"
    " last level, and stops at a level if its 64-bit draw there lies below the threshold for that"
    " far value, the value at the end and the value at the level (and at the next one, where it"
    " looks ahead), at the last level surely. What lies before the stop is redacted, what lies from"
    " it on is released; a walk that passes the chain's end redacts everything up to it. Between"
    " two clusters the records from one stop to the other are released if each stop lies no nearer"
    " to the other cluster than the last level of the walk from there, else none. Instead, a gap"
    " between two neighbouring secrets is held out if it has fewer records than the longer of those"
    " two last levels, or, where the left secret does not begin its chain nor the right one end it,"
    " fewer than both add up to, less one; and if the model is stationary, of order 1 and stands"
    " alone, all designs have the same stopping, every record of the gap has a value, and a gap of"
    " its length is listed of which at least a quarter of a record is released by expectation. Then"
    " no walks lead into it, and the clusters beside it take the first option: all of it is held"
    " out at first, and step by step a draw (purpose offrecord/gap, counter the number of the step"
    " from 0, order value of the left secret's last record) releases what is held out, if it lies"
    " below the first threshold for that and the values at its ends and at those of the secrets"
    " beside it, else drops its first record, if it lies below the second one, else its last;"
    " nothing is released if nothing is left, or if one of those ends of the secrets has no value."
    " A missing value that a walk looks at is drawn from the model; a walk that misses one which is"
    " not drawn, or has no value at its own end, goes straight to its last level. No outcome of a"
    " side is more than e^budget times as likely under one value at the end as under another, so"
    " both sides together tell about a secret at most the sum of their budgets, or less from"
    " further inside; of two sides in turn, the second makes up for what its label tells: epsilon"
    " at most. A gap that is held out, with all beyond it, tells about the end of a secret beside"
    " it no more than the budget of the side that it stands for, as what lies beyond the other"
    " secret tells no more than that about its end. Whatever another cluster's walks do follows"
    " from what this one's stops release, so the release leaks about each secret on its own at most"
    " the largest leakage of a design."
)
#: Equal neighbouring rows by distance: how many, and the redaction probability of each value.
Stretch: TypeAlias = Sequence[Any]
#: Phases along a chain: the first, what is added from one record to the next, and how many.
Run: TypeAlias = tuple[int, int, int]
_ONE_OR_MORE = whole(1, MAX_COUNT)
Protect = Annotated[str, word("run", "each")]


@dataclass(frozen=True, kw_only=True)
class Composition(Section):
    """How designs become redactions. rule: a name for programs, text: the same for people.

    draw_bits: probabilities act as multiples of 2^−draw_bits.
    """

    rule: Text
    draw_bits: Annotated[int, whole(1, 1024)]
    text: Text


#: The kind of local designs of which some are for clusters of near secrets, or are windows that act
#: instead of others.
CLUSTERED = "clustered"
MAXIMUM = Composition(rule="maximum", draw_bits=DRAW_BITS, text=COMPOSITION)
LARGEST = Composition(rule="maximum", draw_bits=DRAW_BITS, text=CLUSTERS)
STOPPING = Composition(rule="stopping", draw_bits=DRAW_BITS, text=WALKS)


@dataclass(frozen=True, kw_only=True)
class Grids(Section):
    """The rooms to the left and right of a secret that designs of a stationary model are made
    for.
    """

    left: Annotated[Sequence[int], listed(whole(0, MAX_COUNT))]
    right: Annotated[Sequence[int], listed(whole(0, MAX_COUNT))]

    def check(self) -> None:
        """InputError unless both increase and end with the same room."""
        for name, grid in (("left", self.left), ("right", self.right)):
            if not grid or list(grid) != sorted(set(grid)):
                raise refused(f"designs.grids.{name}", "must hold a room or more, and increase")
        if not 0 < self.left[-1] == self.right[-1]:
            raise refused("designs.grids", "must end with the same room, of at least 1")


@dataclass(frozen=True, kw_only=True)
class Design(Section):
    """What every kind says of a design: what it was made for, what it tells, whom it serves.

    left, right: records beside a secret of `length` records. phases: which of the phase sequences
    they stand in, None for a model without phases. leakage, rounding: of the problem it was made
    for, and how far computing may be from it. method: how it was found. uses: how many secrets it
    serves. window: how far the
    best data-independent mechanism would redact to the left and right.
    """

    left: Count
    right: Count
    length: Annotated[int, _ONE_OR_MORE]
    phases: Annotated[int | None, optional(whole(0, MAX_COUNT))] = None
    leakage: Number
    rounding: Number
    method: Text
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
class ClusteredDesign(LocalDesign):
    """A local design for one secret or a cluster of them.

    mechanism: what made it. inside: of a cluster, whether each of its `length` records is private;
    nothing for one secret. redaction_inside: which of the sides stands from its first record to its
    last, None for one secret, which is redacted whole.
    """

    mechanism: Text
    inside: Annotated[Sequence[int], listed(whole(0, 1))]
    redaction_inside: Annotated[int | None, optional(whole(0, MAX_COUNT))]


@dataclass(frozen=True, kw_only=True)
class OwnerDesign(Design):
    """A design by which walks lead away from a secret and stop. stopping: which of those that
    designs share.
    """

    stopping: Count


@dataclass(frozen=True, kw_only=True)
class OtherDesign(OpenSection, Design):
    """A design of a kind that is not known here."""


@dataclass(frozen=True, kw_only=True)
class Designs(Section):
    """What every kind says of its designs.

    composition: how they become redactions. grids, loss: the rooms they are made for, and the
    expected redactions that rounding rooms up costs a secret; None for a model that is not
    stationary. left_limit, right_limit: how many records to the left and right are then looked at,
    None for all.
    phases: the distinct sequences in which records stand, as runs.
    """

    kind: Text
    mechanism: Text
    epsilon: Number
    protect: Protect
    composition: Composition
    grids: Annotated[Grids | None, optional(Grids.read)] = None
    loss: Number = 0.0
    left_limit: Annotated[int | None, optional(_ONE_OR_MORE)] = None
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
                raise refused("designs.grids", "must be null for a model that is not stationary")
            self.grids.check()
        _check_runs(self.phases, model)
        served = set()
        for at, design in enumerate(self.designs):
            self._check_records(f"designs.designs[{at}]", design, model)
            served.add(self._served(design))
        if len(served) < len(self.designs):
            raise refused("designs.designs", "must have one design for the same surroundings")

    def _served(self, design: Design) -> tuple[Any, ...]:
        """What no two designs are for."""
        runs = None if design.phases is None else self.phases[design.phases]
        return design.left, design.right, design.length, runs

    def _check_records(self, place: str, design: Design, model: Model) -> None:
        known = design.phases is None or design.phases < len(self.phases)
        if (design.phases is None) != (model.phase is None) or not known:
            says = "null for a model without phases" if model.phase is None else "one of the list"
            raise refused(f"{place}.phases", f"must be {says}")
        beside = design.left + design.length
        records, least = self.records(design, model.order), max(beside + design.right, 2)
        if not (design.phases is None or least <= records <= beside + max(design.right, 1)):
            raise refused(f"{place}.phases", f"must be the phases of {least} records")
        if model.length is not None and records != model.length:
            raise refused(place, f"must be about the {model.length} records of the model")


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
            raise refused("designs.composition.rule", f'must be "{MAXIMUM.rule}" for local designs')
        for at, side in enumerate(self.sides):
            if any(len(row) != model.k for _, row in side):
                raise refused(f"designs.sides[{at}]", f"must hold rows of {model.k} probabilities")
        sizes = [sum(count for count, _ in side) for side in self.sides]
        for at, design in enumerate(self.designs):
            beyond = self.records(design, model.order) - design.left - design.length
            for name, index, room in (
                ("redaction_left", design.redaction_left, design.left),
                ("redaction_right", design.redaction_right, beyond),
            ):
                if index >= len(sizes) or sizes[index] > room:
                    place = f"designs.designs[{at}].{name}"
                    raise refused(place, f"must be a side of at most {room} records")


@dataclass(frozen=True, kw_only=True)
class ClusteredDesigns(LocalDesigns):
    """Local designs of which some are for clusters of near secrets, or are windows that act instead
    of others.
    """

    kind: Annotated[str, word(CLUSTERED)] = CLUSTERED
    composition: Composition = LARGEST
    designs: Annotated[Sequence[ClusteredDesign], listed(ClusteredDesign.read)]

    def check(self, model: Model) -> None:
        """InputError unless the insides of clusters are as long as they are, and redact all that is
        private in them.
        """
        super().check(model)
        for at, design in enumerate(self.designs):
            place, inside, number = f"designs.designs[{at}]", design.inside, design.redaction_inside
            if not inside and number is None:
                continue
            if len(inside) != design.length or not inside[0] == inside[-1] == 1:
                says = f"must be empty, or {design.length} numbers that begin and end with 1"
                raise refused(f"{place}.inside", says)
            side = self.sides[number] if number is not None and number < len(self.sides) else ()
            rows = spelled_rows(side) if sum(count for count, _ in side) == design.length else []
            if not rows or any(min(row) < 1 for row, one in zip(rows, inside, strict=True) if one):
                says = f"must be a side of {design.length} records that redacts the private ones"
                raise refused(f"{place}.redaction_inside", says)

    def _served(self, design: Design) -> tuple[Any, ...]:
        assert isinstance(design, ClusteredDesign)
        return *super()._served(design), design.inside, design.mechanism


@dataclass(frozen=True, kw_only=True)
class OwnerDesigns(Designs):
    """Designs of who sees all values: walks lead away from secrets, and what lies before their
    stops is redacted. stoppings: the distinct ones.
    """

    kind: Annotated[str, word("owner")] = "owner"
    composition: Composition = STOPPING
    stoppings: Annotated[Sequence[Stopping], listed(Stopping.read)]
    designs: Annotated[Sequence[OwnerDesign], listed(OwnerDesign.read)]

    def check(self, model: Model) -> None:
        """InputError unless stoppings are of the model's values and of the designs' ε."""
        super().check(model)
        acting = self.composition.rule, self.composition.draw_bits
        if acting != (STOPPING.rule, STOPPING.draw_bits):
            says = f'must be "{STOPPING.rule}" with draws of {DRAW_BITS} bits for owner\'s designs'
            raise refused("designs.composition", says)
        for at, stopping in enumerate(self.stoppings):
            # of order m, walks lead over tuples of m records
            stopping.check(f"designs.stoppings[{at}]", model.k**model.order, self.epsilon)
        for at, design in enumerate(self.designs):
            if design.stopping >= len(self.stoppings):
                raise refused(f"designs.designs[{at}].stopping", "must be one of the stoppings")


@dataclass(frozen=True, kw_only=True)
class OtherDesigns(OpenSection, Designs):
    """Designs of a kind that is not known here: whoever checks them must say so, not pass them."""

    designs: Annotated[Sequence[OtherDesign], listed(OtherDesign.read)]


#: Kinds whose own part is known here; a new one is one class and one line.
KINDS: dict[str, type[Designs]] = {
    "local": LocalDesigns,
    CLUSTERED: ClusteredDesigns,
    "owner": OwnerDesigns,
}


def read_designs(content: Mapping[str, Any]) -> Designs:
    """Designs of any kind from a JSON object; InputError if it is not of the form."""
    return designs_of(Entry(dict(content), "designs"))


def designs_of(entry: Entry) -> Designs:
    """Designs of any kind."""
    kind = text(entry.named(["kind"], others=True)["kind"])
    return KINDS.get(kind, OtherDesigns).read(entry)


def _check_runs(sequences: Sequence[Sequence[Sequence[int]]], model: Model) -> None:
    modulus = model.phase_count
    if modulus is None:
        if sequences:
            raise refused("designs.phases", "must be empty for a model without phases")
        return
    for at, runs in enumerate(sequences):
        if not all(first < modulus and rise < modulus and count for first, rise, count in runs):
            raise refused(f"designs.phases[{at}]", f"must be runs of phases below {modulus}")


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


def spelled_rows(side: Iterable[Stretch]) -> list[tuple[float, ...]]:
    """The rows of a side, one for each distance from 1."""
    return [tuple(row) for count, row in side for _ in range(count)]
