"""Numbers that are known to lie in a ball: every operation rounds outwards (Arb, by python-flint).

A number of a certificate is read as what it means: a probability of the model as its decimals, a
redaction probability as the double, a threshold as a multiple of 2⁻⁶⁴. From there nothing is lost
but what the radius says, at any precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeAlias

import flint

#: Of exact numbers: a numerator and a denominator.
Exact: TypeAlias = Any
#: A midpoint and a radius.
Ball: TypeAlias = Any
#: Rows of balls.
Matrix: TypeAlias = Any

#: Calls a function for one argument after the other, as `map` does.
Each: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

#: Bits that are tried one after the other, until it is decided whether a bound is kept.
PRECISIONS = (96, 192, 384, 768)


def decimal(number: float) -> Exact:
    """What the shortest decimals of a number say."""
    above, below = Decimal(repr(number)).as_integer_ratio()
    return flint.fmpq(above, below)


def double(number: float) -> Exact:
    """What a double is."""
    above, below = number.as_integer_ratio()
    return flint.fmpq(above, below)


def threshold(limit: int) -> Exact:
    """The probability that a 64-bit draw lies below it; the largest stands for 1."""
    return flint.fmpq(1) if limit == 2**64 - 1 else flint.fmpq(limit, 2**64)


def ball(number: Exact) -> Ball:
    """A ball around an exact number."""
    return flint.arb(number)


def is_zero(number: Ball) -> bool:
    """Exactly 0: what is made of zeros by sums and products stays so."""
    return bool(number == 0)


def largest(numbers: Iterable[Ball]) -> Ball:
    """Of nonnegative numbers; 0 if there are none."""
    most = flint.arb(0)
    for number in numbers:
        most = most.max(number)
    return most


def infinite() -> Ball:
    """More than any number."""
    return flint.arb.pos_inf()


def matrix(rows: Sequence[Sequence[Exact]]) -> Matrix:
    """Rows of exact numbers."""
    return flint.arb_mat([[ball(number) for number in row] for row in rows])


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """So many bits inside."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def decided(bound: Callable[[], Ball], limit: float) -> tuple[bool, Ball]:
    """Whether a bound is proven to be at most a limit, and the bound, as precise as it took.

    bound: computes it anew, at the precision that is set. One that precision does not bring to
    either side is not proven.
    """
    found = infinite()
    most = ball(double(limit))
    for bits in PRECISIONS:
        with precision(bits):
            found = bound()
            if found <= most:
                return True, found
            if found > most:
                return False, found
    return False, found


def upper(number: Ball) -> float:
    """The least double that is no smaller than anything in the ball."""
    if not number.is_finite():
        return float("inf")
    top = number.upper()
    found = float(top)
    while not flint.arb(found) >= top:
        found = math.nextafter(found, math.inf)
    return found
