"""No design acts that the verifier does not prove, from what the certificate will say of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from offrecord.designs.library import Designs
from offrecord.errors import InputError
from offrecord.mechanisms.base import Design
from offrecord.mechanisms.local.design import LocalDesign
from offrecord.mechanisms.local.stretches import Stretches
from offrecord.processes import crew
from offrecord.release.certificate import KINDS
from offrecord.tables.certifying import designs_section, model_section

if TYPE_CHECKING:
    from offrecord.verify.designs import Judged

#: Of what is released by chance, the share that is redacted too, at first.
_LEAST = 2.0**-50
_HALVINGS = 8  # of the logarithm of that share, to find the least that passes


def proven(designs: Designs, known: Designs | None = None) -> Designs:
    """The same designs. One that is not proven redacts more, by the least share that is; InputError
    where that does not help. Those known from a sealed file were proven when they were made.
    """
    if designs.setting.mechanism.designs.kind not in KINDS:
        return designs  # of a kind of one's own: the verifier says that it does not know it
    old = set() if known is None or not known.sealed else {one.identity for one in known.designs}
    fresh = [at for at, one in enumerate(designs.designs) if one.identity not in old]
    if not fresh:
        return designs
    found = list(designs.designs)
    for at, one in zip(fresh, _judged(designs, [found[at] for at in fresh]), strict=True):
        if one.why is not None:
            found[at] = _raised(designs, found[at], one)
    return replace(designs, designs=tuple(found))


def _judged(designs: Designs, some: Sequence[Design]) -> list[Judged]:
    """What the verifier says of each; what it says of parts that they share counts for all."""
    from offrecord.verify.designs import judged  # with its exact numbers: where all is known, not

    chosen = replace(designs, designs=tuple(some))
    section = designs_section(chosen, np.zeros(len(some), dtype=np.int64), chosen)
    every = judged(section, model_section(designs.model), _each)
    each = list(islice(every, len(some)))
    shared = next((one for one in every if one.why is not None), None)
    return [shared if shared is not None and one.why is None else one for one in each]


def _each(function: Callable[[Any], Any], arguments: Iterable[Any]) -> Iterator[Any]:
    return crew.each([(function, (one,)) for one in arguments])


def _raised(designs: Designs, design: Design, why: Judged) -> Design:
    """A local design that redacts a little more, so that it is proven."""
    share = _LEAST
    while isinstance(design, LocalDesign) and share <= 1.0:
        if _passes(designs, _with_more(design, share)):
            return _with_more(design, _least_share(designs, design, share))
        share *= 4.0
    raise InputError(
        f"a design for {design.surrounding.left} records to the left and"
        f" {design.surrounding.right} to the right of a secret is not proven: it {why.why}; take"
        " another --mechanism"
    )


def _least_share(designs: Designs, design: LocalDesign, passing: float) -> float:
    """The least share that passes, about, above a quarter of one that does."""
    low, high = passing / 4.0, passing
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        if _passes(designs, _with_more(design, middle)):
            high = middle
        else:
            low = middle
    return high


def _passes(designs: Designs, design: Design) -> bool:
    return _judged(designs, [design])[0].why is None


def _with_more(design: LocalDesign, share: float) -> LocalDesign:
    """So much of what it releases by chance redacted too; more redaction never tells more (F3)."""
    left, right = (_stretched(side, share) for side in design.sides)
    inside = None if design.inside is None else _stretched(design.inside, share)
    return replace(design, left=left, right=right, inside=inside)


def _stretched(side: Stretches, share: float) -> Stretches:
    more = np.minimum(side.rows + (1.0 - side.rows) * share, 1.0)
    return Stretches(np.where(side.rows > 0.0, more, side.rows), side.lengths)
