"""Calibration: the smallest enlargement of a model whose designs pass the audit.

This part of a promise is empirical: it rests on what was counted, not on a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from offrecord.errors import InputError
from offrecord.fitting.audit.result import Audit
from offrecord.text import many

#: Shares of ε that designs are made for, where nothing else passes: windows widen.
SHARES = (0.8, 0.64, 0.5, 0.4, 0.32, 0.25, 0.2, 0.16, 0.125, 0.1, 0.05)
CONFIDENCES = (0.99, 0.999)  #: of wider sets of models


@dataclass(frozen=True)
class Enlargement:
    """What is learned instead of the plainest model.

    order: of the chain. phase: what has a kernel each. confidence: of the set of models, None as
    it stands. hull: the set holds the kernels of every quarter of the reference. share: of ε that
    designs are made for.
    """

    order: int = 1
    phase: str | None = None
    confidence: float | None = None
    hull: bool = False
    share: float = 1.0

    @property
    def is_wider_set(self) -> bool:
        """Whether it is the set of models that is larger."""
        return self.hull or self.confidence is not None

    def __str__(self) -> str:
        said = [f"order {self.order}"]
        if self.phase is not None:
            said.append(f"a kernel for each {self.phase}")
        if self.confidence is not None:
            said.append(f"a set of models with confidence {self.confidence:g}")
        if self.hull:
            said.append("a set that holds the kernels of every quarter")
        if self.share < 1:
            said.append(f"windows as for {self.share:g} of ε")
        return ", ".join(said)


@dataclass(frozen=True)
class Calibration:
    """What passed, and all that was tried; an audit is None where there were no such designs.

    chosen: the first enlargement that passed, None if none did. audit: of that, or of the best.
    """

    chosen: Enlargement | None
    audit: Audit | None
    tried: tuple[tuple[Enlargement, Audit | None], ...]

    def __str__(self) -> str:
        if self.chosen is not None:
            return f"Calibrated: {self.chosen}. This rests on what was counted, not on a model."
        said = f"Nothing passes the audit ({many(len(self.tried), 'enlargement')} tried)."
        if self.audit is not None and not self.audit.is_mendable:
            return f"{said} {self.audit.advice}"
        return (
            f"{said} What would: coarser steps (hours instead of minutes), a value that changes"
            " faster, or whole chains redacted."
        )


def enlargements(
    plain: Enlargement,
    orders: Sequence[int],
    phases: Sequence[str] = (),
    confidences: Sequence[float] = CONFIDENCES,
    *,
    hull: bool = True,
) -> Iterator[Enlargement]:
    """What is tried, from small to large: higher orders, phases, wider sets of models."""
    yield plain
    yield from (replace(plain, order=order) for order in orders if order > plain.order)
    if plain.phase is None:  # chains with phases have order 1
        yield from (replace(plain, order=1, phase=phase) for phase in phases)
    known = plain.confidence or 0.0
    yield from (replace(plain, confidence=one) for one in confidences if one > known)
    if hull:
        yield replace(plain, hull=True)


def calibrated(
    candidates: Iterator[Enlargement] | Sequence[Enlargement],
    audit: Callable[[Enlargement], Audit],
    shares: Sequence[float] = SHARES,
) -> Calibration:
    """Audit one candidate after the other; the first that passes is chosen.

    audit: of designs as an enlargement says, for its share of ε. If no candidate passes, that with
    the smallest excess gets wider windows, until the odds are within the promise: what chance would
    do under a model that did not pass is no excuse there.
    """
    tried = []
    for candidate in candidates:
        found = _audited(candidate, audit)
        tried.append((candidate, found))
        if found is not None and found.is_passed:
            return Calibration(candidate, found, tuple(tried))
    best = _best(tried)
    if best is None:
        return Calibration(None, None, tuple(tried))
    for share in shares if best[1].is_mendable else ():
        widened = replace(best[0], share=share * best[0].share)
        found = _audited(widened, audit)
        tried.append((widened, found))
        if found is not None and found.is_passed and not found.chance:
            return Calibration(widened, found, tuple(tried))
    return Calibration(None, best[1], tuple(tried))


def _audited(candidate: Enlargement, audit: Callable[[Enlargement], Audit]) -> Audit | None:
    """None for an enlargement that these data do not allow."""
    try:
        return audit(candidate)
    except InputError:
        return None


def _best(
    tried: Sequence[tuple[Enlargement, Audit | None]],
) -> tuple[Enlargement, Audit] | None:
    """The enlargement that exceeds its promise least, of those that release something."""
    known = [(one, found) for one, found in tried if found is not None and found.findings]
    return min(known, key=lambda pair: pair[1].excess, default=None)
