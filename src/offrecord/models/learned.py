"""What a model was learned from, as far as its use depends on that.

It travels with the model, into certificates too.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields
from typing import Any, get_args, get_type_hints

from offrecord.errors import InputError
from offrecord.models.audited import Audited

_LATER = ("audit", "calibration", "share", "distance", "seen")


@dataclass(frozen=True)
class Learned:
    """Where a model comes from.

    value: the column it is about. order: what ordered its records, "time", "integer" or "row".
    step: the distance of one record from the next, None where neighbours counted as one step apart.
    zone: the time zone of order values. spacing: the median distance of neighbours, in seconds or
    numbers, where there is no step. verdict: what the fit says about itself. audit: whether its
    promise holds in data that it has not seen; None where nobody looked. calibration: what was
    enlarged until the audit passed, in words, and share: of ε that designs are made for then.
    distance: it was learned from the very table that holds private records, as many steps and more
    away from each. seen: the name under which it is kept beside a key which records it was learned
    from; records: those themselves, as long as they are in memory, and in no file.
    """

    value: str
    order: str
    step: str | None
    zone: str | None
    spacing: float | None
    verdict: str
    audit: Audited | None = None
    calibration: str | None = None
    share: float = 1.0
    distance: int | None = None
    seen: str | None = None
    records: Any = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        said = {one.name: getattr(self, one.name) for one in fields(self) if one.compare}
        return said | {"audit": None if self.audit is None else self.audit.to_dict()}

    @classmethod
    def from_dict(cls, content: Any) -> Learned:
        """From a file; InputError for anything else."""
        kinds = {one.name: get_type_hints(cls)[one.name] for one in fields(cls) if one.compare}
        if isinstance(content, dict):  # what fits did not always say
            earlier = {one.name: one.default for one in fields(cls) if one.name in _LATER}
            content = earlier | content
        if not isinstance(content, dict) or set(content) != set(kinds):
            raise InputError(
                f'model file: "learned" must hold {", ".join(kinds)}, and nothing else'
            )
        audit = None if content["audit"] is None else Audited.from_dict(content["audit"])
        for name, kind in kinds.items():
            if name != "audit" and not _is_of(content[name], kind):
                raise InputError(f'model file: "{name}" in "learned" is not what it should be')
        if content["distance"] is not None and content["distance"] < 1:
            raise InputError('model file: "distance" in "learned" must be at least 1')
        if not 0 < content["share"] <= 1:
            raise InputError('model file: "share" in "learned" must be above 0 and at most 1')
        return cls(**{**content, "audit": audit})


def _is_of(value: Any, kind: Any) -> bool:
    """What a file holds is of the kind that a field has; JSON has no floats of its own."""
    allowed = get_args(kind) or (kind,)
    if float in allowed:
        allowed = (*allowed, int)
    if isinstance(value, bool) or not isinstance(value, allowed):
        return False
    # whole numbers may be too large for a float, too
    return not isinstance(value, (int, float)) or abs(value) <= sys.float_info.max
