"""A certificate as the package's own objects: its model, how its table was read, its designs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from offrecord.designs.library import Designs, Setting
from offrecord.designs.needs import SurroundingCounts
from offrecord.designs.sharing import room_limits
from offrecord.errors import InputError
from offrecord.mechanisms import BestWindow, Mechanism, mechanism_named
from offrecord.mechanisms.base import Design, Made
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.models.base import Model
from offrecord.models.chain import settled_since
from offrecord.models.loading import model_from_dict
from offrecord.release import certificate as form
from offrecord.tables.batch import Reading, TableSpec
from offrecord.tables.chains import Arranged, Columns
from offrecord.tables.frames import listed_keys
from offrecord.tables.optouts import OptOuts, key_columns
from offrecord.tables.steps import Step

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Certified:
    """What a certificate says, as the package's own objects.

    promised: the model that the promise is for. model: what it is from the record on since which
    its set holds.
    """

    certificate: form.Certificate
    model: Model
    columns: Columns
    step: Step | None
    setting: Setting
    promised: Model
    since: int = 1

    @classmethod
    def of(cls, certificate: form.Certificate) -> Certified:
        """InputError for designs of a kind that is not known here."""
        designs, columns = certificate.designs, certificate.columns
        if designs.kind not in form.KINDS:
            raise InputError(f"designs of kind {designs.kind!r} are not known here")
        content = certificate.model.to_dict()
        model = model_from_dict({name: one for name, one in content.items() if one is not None})
        named = Columns.named(
            columns.value,
            columns.order,
            columns.by or None,
            not columns.by,
            order_unit=columns.order_unit,
        )
        step = None if columns.step is None else Step.parsed(columns.step)
        mechanism: Mechanism = BestWindow()  # of one's own: all that acts is listed
        try:
            mechanism = mechanism_named(designs.mechanism)
        except InputError:
            if designs.kind != "local":
                raise
        promised = model
        model, since = settled_since(promised)
        setting = Setting(model, designs.epsilon, mechanism, designs.protect)
        return cls(certificate, model, named, step, setting, promised, since)

    @classmethod
    def load(cls, path: Path) -> Certified:
        """From a certificate file."""
        from offrecord.verify.verdict import read_certificate  # the verifier has much to import

        certificate = read_certificate(path)
        try:
            return cls.of(certificate)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @property
    def designs(self) -> form.Designs:
        """The designs, as the certificate has them."""
        return self.certificate.designs

    @property
    def spec(self) -> TableSpec:
        """How the table is read."""
        reading = Reading(self.columns, None, self.step)
        limits = room_limits(self.model, self.setting.epsilon, self._gridded(()))
        nearness = None
        if self.designs.kind == form.CLUSTERED and limits[0] is not None:
            model, epsilon, mechanism, protect = self.setting
            nearness = mechanism.nearness(model, epsilon, protect, limits[0])
        protect = self.setting.protect
        return TableSpec(reading, protect, self.model, limits, nearness, self.since)

    @property
    def every(self) -> list[Design]:
        """All designs that the certificate lists, in its order."""
        return self._read(list(self._entries(())))

    def _read(self, entries: Sequence[tuple[Made, Mapping[str, Any]]]) -> list[Design]:
        kind = self.setting.mechanism.designs
        return list(kind.read(entries, self.designs.to_dict()[kind.shares], self.model))

    def known(self, needs: SurroundingCounts) -> tuple[Designs, Designs]:
        """The designs that the certificate lists: those of its mechanism, and windows that act
        instead.
        """
        entries = list(self._entries(needs))
        every = self._read(entries)
        is_window = [content.get("mechanism") == BestWindow.name for _, content in entries]
        if self.setting.mechanism.name == BestWindow.name:
            is_window = [False] * len(every)
        own = [one for one, window in zip(every, is_window, strict=True) if not window]
        windows = [one for one, window in zip(every, is_window, strict=True) if window]
        instead = self.setting._replace(mechanism=BestWindow())
        return self._gridded(own), Designs(instead, tuple(windows))

    def _gridded(self, designs: Sequence[Design]) -> Designs:
        grids = self.designs.grids
        rooms = None if grids is None else (tuple(grids.left), tuple(grids.right))
        return Designs(self.setting, tuple(designs), rooms, self.designs.loss)

    def _entries(self, needs: Iterable[Surrounding]) -> Iterator[tuple[Made, Mapping[str, Any]]]:
        """What is said of each design; needs: whose phases may be told in a shorter way."""
        alike = {(*one[:3], tuple(one.along.tolist())): one for one in needs if one.phases}
        modulus = self.certificate.model.phase_count
        for design in self.designs.designs:
            content = design.to_dict()
            phases: list[int] = []
            if design.phases is not None and modulus is not None:
                phases = form.spelled_phases(self.designs.phases[design.phases], modulus)
            rooms = design.left, design.right, design.length
            inside = bytes(content.get("inside") or ())
            around = Surrounding(*rooms, np.array(phases, dtype=np.int8).tobytes(), inside)
            around = alike.get((*rooms, tuple(phases)), around)
            left, right = design.window
            yield (
                Made(around, design.leakage, design.rounding, design.method, (left, right)),
                content,
            )

    def optouts(self, arranged: Arranged, listed: Any) -> OptOuts:
        """The private records that are listed, or published; InputError if they are neither."""
        if listed is not None:
            keys = listed_keys(listed, key_columns(self.columns))
            assert keys is not None
            return OptOuts.of(keys, self.columns)
        positions = self.certificate.private.positions
        if positions is None:
            raise InputError(
                "the certificate does not say which records are private: give --private-list"
            )
        return OptOuts.of(_published(positions, self.columns, arranged), self.columns)


def _published(positions: form.Positions, columns: Columns, arranged: Arranged) -> pl.DataFrame:
    """Published positions as a list of keys, order values as the table has them."""
    import polars as pl

    cells = list(zip(*positions.keys, strict=True)) or [()] * len(positions.columns)
    *names, order = (list(one) for one in cells)
    keys = [pl.Series(name, one) for name, one in zip(columns.by, names, strict=True)]
    name, kind = columns.order or "row", arranged.order_type
    if columns.unit is not None:
        size = columns.unit.size
        told = pl.Series(name, [_decimal(size * int(one)) for one in order], dtype=pl.String)
    elif kind == pl.Date:
        told = pl.Series(name, order, dtype=pl.Int64).cast(pl.Datetime("ns")).cast(pl.Date)
    elif isinstance(kind, pl.Datetime):
        told = pl.Series(name, order, dtype=pl.Int64).cast(pl.Datetime("ns", kind.time_zone))
    else:
        told = pl.Series(name, order, dtype=pl.Int64)
    return pl.DataFrame([*keys, told])


def _decimal(number: Fraction) -> str:
    """A number whose denominator is a power of ten, in decimals."""
    digits = len(str(number.denominator)) * 4
    scaled = abs(number.numerator) * 10**digits // number.denominator
    text = f"{scaled // 10**digits}.{scaled % 10**digits:0{digits}d}"
    return ("-" if number < 0 else "") + text.rstrip("0").rstrip(".")
