"""What all models share: types of arrays, and the base of what is read from a file.

One declaration of fields is the parser, the check, the error and the JSON Schema of a file.
"""

from __future__ import annotations

import json
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from offrecord.errors import InputError

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Label: TypeAlias = str | int | float | bool
Mask: TypeAlias = NDArray[np.bool_]


_LONGEST_PLACE = 80  # characters: a place holds keys of the file, which may be anything


class Section(BaseModel):
    """A part of a file: immutable, strict about types, without further fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @classmethod
    def of(cls, content: Any, what: str = "") -> Self:
        """The section of a JSON object; InputError in one line, which begins with `what`."""
        what = what or cls.__name__.lower()
        try:
            # as JSON, in which lists stand for tuples; Python objects are taken more strictly
            return cls.model_validate_json(json.dumps(content))
        except ValidationError as error:
            raise InputError(f"{what}: {_first_problem(error)}") from None
        except RecursionError:
            raise InputError(f"{what}: nested too deeply") from None

    def to_dict(self) -> dict[str, Any]:
        """Its JSON object."""
        return self.model_dump(mode="json")


def _first_problem(error: ValidationError) -> str:
    """The first field that is wrong, and why."""
    # without the value, which may be private
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:_LONGEST_PLACE]
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message
