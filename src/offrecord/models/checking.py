"""Whether what is given can be a model: numbers, distributions, labels, whole numbers."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats, Label

#: Rows must sum to 1 within this much; what is off by more than rounding is divided by its sum.
ROW_TOLERANCE = 1e-9
_ROUNDING = 1e-12
MAX_VALUES = 1024  #: of a chain, lifted to its order
MAX_ORDER = 10


def checked_order(order: Any) -> int:
    """The order of a chain; InputError unless it is from 1 to MAX_ORDER."""
    number = whole_number("order", order)
    if not 1 <= number <= MAX_ORDER:
        # a number from a file may have more digits than Python agrees to print
        got = number if abs(number) < 10**9 else "a huge number"
        raise InputError(f"order must be from 1 to {MAX_ORDER}, got {got}")
    return number


def checked_kernels(transition: ArrayLike, order: int) -> Floats:
    """The kernel of a chain of some order, or those of each step of a first-order chain."""
    kernels = numbers("transition", transition)
    if order > 1:
        _check_shape_of_order(kernels, order)
    else:
        _check_shape(kernels)
    return distributions("transition", kernels)


def _check_shape(kernels: Floats) -> None:
    shape = kernels.shape
    if kernels.ndim not in (2, 3) or shape[-1] != shape[-2] or shape[-1] < 2:
        raise InputError(
            "transition must be a k × k matrix with k ≥ 2, or n − 1 of them, got shape"
            f" {shape_text(kernels)}"
        )
    if shape[-1] > MAX_VALUES:
        raise InputError(f"transition must have at most {MAX_VALUES} values, got {shape[-1]}")
    if kernels.ndim == 3 and len(kernels) == 0:
        raise InputError("transition must hold at least one kernel, got none")


def _check_shape_of_order(kernels: Floats, order: int) -> None:
    k = kernels.shape[-1] if kernels.ndim else 0
    if kernels.ndim != order + 1 or set(kernels.shape) != {k} or k < 2:
        raise InputError(
            f"transition of order {order} must have {order + 1} axes of k ≥ 2, got shape"
            f" {shape_text(kernels)}"
        )
    if k**order > MAX_VALUES:
        raise InputError(
            f"k to the power of order must be at most {MAX_VALUES}, got {k} to the power of {order}"
        )


def checked_start(start: ArrayLike, k: int, order: int) -> Floats:
    """(k^order,) the distribution of the first `order` records."""
    initial = numbers("start", start)
    if initial.shape != (k,) * order:
        wanted = (
            f"start must hold {k} probabilities"
            if order == 1
            else f"start of order {order} must have {order} axes of {k}"
        )
        raise InputError(f"{wanted}, got shape {shape_text(initial)}")
    return distributions("start", initial.ravel())


def checked_probability(name: str, value: Any) -> float:
    """A number in (0, 1]."""
    # to Python, True is the number 1
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    if not is_number or isinstance(value, bool):
        raise InputError(f"{name} must be a number in (0, 1], got {name}={value!r}")
    if not 0 < value <= 1:
        raise InputError(f"{name} must be in (0, 1], got {name}={value}")
    return float(value)


def numbers(name: str, value: ArrayLike) -> Floats:
    """What is given as an array of numbers."""
    return array_of(name, value, "iuf", "numbers").astype(np.float64)


def array_of(name: str, value: ArrayLike, kinds: str, what: str) -> NDArray[Any]:
    """What is given as an array of some of numpy's kinds of numbers."""
    try:
        array = np.array(value)
    except (TypeError, ValueError, OverflowError):
        array = np.array(None)
    if array.dtype.kind not in kinds:
        raise InputError(f"{name} must be {what} in rows of equal length")
    return array


def distributions(name: str, array: Floats) -> Floats:
    """The array, if its last axis holds probabilities that sum to 1 within ROW_TOLERANCE."""
    if not np.all(np.isfinite(array)):
        raise InputError(f"{name} must hold finite numbers, got NaN or infinity")
    outside = (array < 0) | (array > 1 + ROW_TOLERANCE)
    if np.any(outside):
        raise InputError(
            f"{name} must hold probabilities between 0 and 1, got {float(array[outside][0])}"
        )
    sums = array.sum(axis=-1, keepdims=True)
    wrong = np.abs(sums - 1)
    if np.any(wrong > ROW_TOLERANCE):
        where = np.unravel_index(int(np.argmax(wrong)), wrong.shape)[:-1]
        place = f" row {' of kernel '.join(str(i + 1) for i in reversed(where))}" if where else ""
        raise InputError(
            f"{name}{place} must sum to 1 within {ROW_TOLERANCE:g}, got"
            f" {float(sums[(*where, 0)]):.12g}"
        )
    # rows that sum to 1 but for rounding stay as they are, to the last bit
    return np.where(wrong > _ROUNDING, array / sums, array)


def shape_text(array: Floats) -> str:
    """The shape of an array, for people."""
    return " × ".join(map(str, array.shape)) or "of a single number"


def checked_labels(labels: Sequence[Label] | None, k: int) -> tuple[Label, ...]:
    """The k values as they appear in the data; 0 … k − 1 where none are given."""
    if labels is None:
        return tuple(range(k))
    try:
        known = tuple(_plain_label(label) for label in labels)
    except TypeError:
        raise InputError(f"labels must be a list of values, got {type(labels).__name__}") from None
    if len(known) != k:
        raise InputError(f"labels must name {k} values, got {len(known)}")
    # 1, 1.0 and True are equal, so one label; "1" is another
    if len({(isinstance(label, str), label) for label in known}) != k:
        raise InputError("labels must differ from each other")
    return known


def _plain_label(label: Any) -> Label:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, float) and not math.isfinite(label):
        raise InputError(f"labels must be finite, got {label}")
    # labels reach terminals and reports: control codes would act there
    if isinstance(label, str) and not label.isprintable():
        raise InputError(f"labels must be printable text, got {label!a}")
    if isinstance(label, (str, int, float, bool)):
        return label
    raise InputError(f"labels must be text, numbers or booleans, got {type(label).__name__}")


def printable(name: str, text: str) -> str:
    """The text, checked to be one line of printable characters."""
    is_text = isinstance(text, str) and text.isprintable()
    if not (is_text and re.fullmatch(r"\S(.{0,198}\S)?", text)):
        raise InputError(f"{name} must be 1 to 200 printable characters, got {text!r}")
    return text


def whole_number(name: str, value: Any) -> int:
    """The value as an int; InputError for anything that is not a whole number."""
    if isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be a whole number, got {value}")
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, got {value!r}") from None
