"""What a model was learned from, as far as its use depends on that.

It travels with the model, into certificates too.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, get_args, get_type_hints

from offrecord.errors import InputError


@dataclass(frozen=True)
class Learned:
    """Where a model comes from.

    value: the column it is about. order: what ordered its records, "time", "integer" or "row".
    step: the distance of one record from the next, None where neighbours counted as one step apart.
    zone: the time zone of order values. spacing: the median distance of neighbours, in seconds or
    numbers, where there is no step. verdict: what the fit says about itself.
    """

    value: str
    order: str
    step: str | None
    zone: str | None
    spacing: float | None
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Any) -> Learned:
        """From a file; InputError for anything else."""
        kinds = get_type_hints(cls)
        if not isinstance(content, dict) or set(content) != set(kinds):
            raise InputError(
                f'model file: "learned" must hold {", ".join(kinds)}, and nothing else'
            )
        for name, kind in kinds.items():
            if not _is_of(content[name], kind):
                raise InputError(f'model file: "{name}" in "learned" is not what it should be')
        return cls(**content)


def _is_of(value: Any, kind: Any) -> bool:
    """What a file holds is of the kind that a field has; JSON has no floats of its own."""
    allowed = get_args(kind) or (kind,)
    if float in allowed:
        allowed = (*allowed, int)
    if isinstance(value, bool) or not isinstance(value, allowed):
        return False
    return not isinstance(value, float) or math.isfinite(value)
