"""Units: decimal order values, counted as whole numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.models.base import Integers
from offrecord.tables.cells import type_name

_OFF = 1e-6  # of a unit: what floats may be off the grid, beside their own rounding
_FARTHEST = 1e-3  # of a unit: rounding above which floats cannot tell neighbours apart


@dataclass(frozen=True)
class Unit:
    """What order values are counted in. text: as model files and certificates say it."""

    size: Fraction
    text: str

    @classmethod
    def parsed(cls, given: Any) -> Unit:
        """0.1, 0.25 or 5: a decimal number above 0; InputError for anything else."""
        found = re.fullmatch(r"(?=.*\d)0*(\d{0,12}?)(?:\.(\d{1,12}?)0*)?", str(given).strip())
        if isinstance(given, bool) or found is None:
            raise InputError(f"--order-unit must be a decimal number such as 0.1, got {given!r}")
        text = (found[1] or "0") + (f".{found[2]}" if found[2] and found[2] != "0" else "")
        if Fraction(text) == 0:
            raise InputError("--order-unit must be above 0, got 0")
        return cls(Fraction(text), text)

    def counted(self, series: pl.Series, where: str) -> Integers:
        """(n,) how many units each order value is; InputError with the first row that lies beside
        them. where: whose column it is, for messages.
        """
        kind = series.dtype
        if not (kind.is_numeric() or kind == pl.String) or kind in (pl.Int128, pl.UInt128):
            raise InputError(
                f"--order-unit is for numbers, but column {series.name!r} of {where} holds"
                f" {type_name(kind)}"
            )
        if kind.is_integer():
            units, off = self._of_integers(series.cast(pl.Int64, strict=False).to_numpy())
        else:
            cells = series.cast(kind if kind.is_float() else pl.Float64, strict=False)
            units, off = self._of_floats(cells.fill_null(float("nan")).to_numpy())
        if off.any():
            row = int(off.argmax()) + 1
            raise InputError(
                f"column {series.name!r} of {where} must hold whole multiples of --order-unit"
                f" {self.text}; row {row:,} does not"
            )
        return units

    def _of_integers(self, values: Any) -> tuple[Integers, Any]:
        if values.dtype != np.int64:  # nulls: numbers beyond 64 bits
            raise InputError("--order-unit: order values must be below 2^63")
        most = 2**62 // self.size.denominator
        large = (values > most) | (values < -most)
        scaled = np.where(large, 0, values) * self.size.denominator
        return scaled // self.size.numerator, large | (scaled % self.size.numerator != 0)

    def _of_floats(self, values: Any) -> tuple[Integers, Any]:
        """A float stands for the multiple next to it, if that is as near as rounding leaves it:
        0.30000000000000004 is 3 units of 0.1.
        """
        odd = ~np.isfinite(values)
        units = np.where(odd, 0.0, values).astype(np.float64)
        units = units * float(self.size.denominator) / float(self.size.numerator)
        rounding = 2 * float(np.finfo(values.dtype).eps) * np.abs(units)
        nearest = np.rint(units)
        odd |= (np.abs(units - nearest) > _OFF + rounding) | (rounding > _FARTHEST)
        return np.where(odd, 0.0, nearest).astype(np.int64), odd
