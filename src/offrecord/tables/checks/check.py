"""What a check on the data is: one small interface, one file each.

A check asks up to three things. `before`: may this plan act, by positions and the model alone?
`observe`: what is seen in a part of the decided table? `after`: what do the observations of all
parts say?
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Self

from offrecord.models.base import Mask

if TYPE_CHECKING:
    from offrecord.tables.decision import Rule
    from offrecord.tables.plan import Plan
    from offrecord.tables.table import Table

#: How a person goes on in spite of a doubt.
ACCEPT = ", or add --accept model, and the certificate says so"
#: How every warning of a dry run begins whose release would be refused.
REFUSED = "this would be refused"


@dataclass(frozen=True)
class Finding:
    """What a check found.

    kind: "refusal" stops the release. "doubt" speaks against the model: it stops the release unless
    --accept model is given, and then the certificate says it. "warning" is said, and in the
    summary. "secret" depends on private or redacted values: it is said once, and in no file. The
    others depend on positions, the model and released values alone.
    """

    kind: Literal["refusal", "doubt", "warning", "secret"]
    text: str
    error: str | None = None  # what a doubt that is not accepted says instead


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """A part of a table as it was decided.

    waits, always, never: (n,) rows that leave later, that are redacted whatever their value, and
    that never are. gone: (n,) rows that leave empty or wait; None in a dry run, which looks at no
    value.
    """

    table: Table
    rule: Rule
    waits: Mask
    always: Mask
    never: Mask
    gone: Mask | None


@dataclass(frozen=True)
class Added:
    """An observation of several parts, each of whose fields is the sum of theirs."""

    def __add__(self, other: Self) -> Self:
        names = [one.name for one in fields(self)]
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in names))


class DataCheck:
    """A question about a table that is to be released. Every method has a default: nothing."""

    def before(self, plan: Plan) -> Iterable[Finding]:
        """Findings by positions and the model alone."""
        return ()

    def observe(self, part: Part) -> Any:
        """What is seen in a part; observations add up with +. None for nothing: where no part has
        any, `after` is not called.
        """
        return None

    def after(self, plan: Plan, observed: Any) -> Iterable[Finding]:
        """Findings from the observations of all parts."""
        return ()
