"""What a local design was made for and what it redacts there, read off the certificate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from offrecord.errors import InputError
from offrecord.release.certificate import (
    ClusteredDesign,
    LocalDesign,
    LocalDesigns,
    Model,
    spelled_phases,
)

_MOST_RECORDS = 2_000_000  # of a design: no room that a chain takes to forget is as large


class Stretch(NamedTuple):
    """So many records, one after the other, with these redaction probabilities, by value."""

    records: int
    row: tuple[float, ...]


class Secret(NamedTuple):
    """Records first … last, from 0."""

    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Problem:
    """n records of a model, their redaction from the first to the last, and the secrets.

    phases: of the records, None for a model without.
    """

    model: Model
    n: int
    stretches: tuple[Stretch, ...]
    secrets: tuple[Secret, ...]
    phases: Sequence[int] | None

    @classmethod
    def of(cls, designs: LocalDesigns, design: LocalDesign, model: Model) -> Problem:
        """The problem of one of the designs."""
        n, k = designs.records(design, model.order), model.k
        if n > _MOST_RECORDS:
            raise InputError(f"a design for {n} records is more than is checked ({_MOST_RECORDS})")
        left, right = (
            [Stretch(count, tuple(row)) for count, row in designs.sides[number]]
            for number in (design.redaction_left, design.redaction_right)
        )
        after = design.left + design.length
        parts = [
            *_filled(left, design.left_rest, design.left, k)[::-1],
            *_within(designs, design, k),
            *_filled(right, design.right_rest, n - after, k),
        ]
        phases = None
        if design.phases is not None and model.phase_count is not None:
            phases = spelled_phases(designs.phases[design.phases], model.phase_count)
        private = _private(design)
        secrets = _runs(private) if designs.protect == "run" else [Secret(i, i) for i in private]
        return cls(model, n, tuple(parts), tuple(secrets), phases)

    @property
    def tells_nothing(self) -> bool:
        """Everything is redacted, whatever it is."""
        return all(min(stretch.row) == 1.0 for stretch in self.stretches)

    @cached_property
    def _begins(self) -> list[int]:
        begins = [0]
        for stretch in self.stretches:
            begins.append(begins[-1] + stretch.records)
        return begins

    def outward(self, record: int, step: int) -> Iterator[Stretch]:
        """The stretches from the record after this one (step 1), or before it (step −1), to the end
        of the chain, the nearest first.
        """
        pairs = list(zip(self._begins, self.stretches, strict=False))
        for begin, stretch in pairs if step > 0 else pairs[::-1]:
            end = begin + stretch.records
            count = end - max(begin, record + 1) if step > 0 else min(end, record) - begin
            if count > 0:
                yield Stretch(count, stretch.row)

    def is_redacted(self, first: int, last: int) -> bool:
        """Whether these records always are."""
        left = last - first + 1
        for count, row in self.outward(first - 1, 1):
            if left > 0 and min(row) < 1:
                return False
            left -= count
        return left <= 0


def _filled(side: list[Stretch], rests: bool, room: int, k: int) -> list[Stretch]:
    """A side, and what lies beyond it within the room."""
    beyond = room - sum(stretch.records for stretch in side)
    rest = [Stretch(beyond, (float(rests),) * k)] if beyond > 0 else []
    return [*side, *rest]


def _within(designs: LocalDesigns, design: LocalDesign, k: int) -> list[Stretch]:
    """What stands between the first private record and the last."""
    if isinstance(design, ClusteredDesign) and design.redaction_inside is not None:
        inside = designs.sides[design.redaction_inside]
        return [Stretch(count, tuple(row)) for count, row in inside]
    return [Stretch(design.length, (1.0,) * k)]


def _private(design: LocalDesign) -> list[int]:
    """The private records, from 0."""
    inside: Sequence[int] = ()
    if isinstance(design, ClusteredDesign):
        inside = design.inside
    if not inside:
        inside = [1] * design.length
    return [design.left + at for at, one in enumerate(inside) if one]


def _runs(private: list[int]) -> list[Secret]:
    """Neighbouring private records together."""
    found: list[Secret] = []
    for record in private:
        if found and found[-1].last == record - 1:
            found[-1] = Secret(found[-1].first, record)
        else:
            found.append(Secret(record, record))
    return found
