"""Whether a certificate agrees with itself: what it says twice is the same, and it says all that
the promise rests on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from offrecord.release.certificate import (
    DRAW_BITS,
    LARGEST,
    MAXIMUM,
    STOPPING,
    Certificate,
    Designs,
    Joint,
    LocalDesigns,
    OwnerDesigns,
    Stopping,
    assumptions,
    claim_statement,
)

_COMPOSITIONS = {"local": MAXIMUM, "clustered": LARGEST, "owner": STOPPING}
#: Methods by which a stated leakage is the leakage itself, not only a bound of it.
_EXACT = ("exact", "contexts", "generators", "one walk (R1)", "cones")


def disagreements(certificate: Certificate) -> Iterator[str]:
    """What does not go together, one line each."""
    yield from _about_the_claim(certificate)
    yield from _about_the_designs(certificate)
    yield from _about_counts(certificate)
    yield from _about_growing(certificate)
    yield from _about_the_origin(certificate)


def _about_the_claim(certificate: Certificate) -> Iterator[str]:
    claim, designs = certificate.claim, certificate.designs
    share = 1.0 if certificate.learned is None else certificate.learned.share
    expected = claim.epsilon * share
    if designs.epsilon != expected:
        yield f"designs.epsilon is {designs.epsilon!r}, but claimed are {expected!r}"
    for name in ("mechanism", "protect"):
        if getattr(claim, name) != getattr(designs, name):
            yield f"claim.{name} and designs.{name} differ"
    stated = max((design.leakage for design in designs.designs), default=0.0)
    if claim.leakage != stated:
        yield f"claim.leakage is {claim.leakage!r}, but the largest of a design {stated!r}"
    if claim.leakage > claim.epsilon:
        yield f"claim.leakage, {claim.leakage!r}, is above claim.epsilon, {claim.epsilon!r}"
    exact = all(design.method in _EXACT for design in designs.designs)
    if claim.leakage_is_exact and not exact:
        yield "claim.leakage_is_exact, but a design has a bound by another method"
    if claim.statement != claim_statement(claim.epsilon):
        yield "claim.statement does not say what claim.epsilon promises"
    columns = certificate.columns
    others = certificate.growing or certificate.joint
    kept = bool(columns.keep) or columns.keep_all
    needed = assumptions(certificate.model, others, kept=kept)
    missing = [text for text in needed if text not in certificate.assumptions]
    if missing:
        yield f"assumptions leave out: {missing[0]}"


def _about_the_designs(certificate: Certificate) -> Iterator[str]:
    designs = certificate.designs
    known = _COMPOSITIONS.get(designs.kind)
    if known is not None and designs.composition != known:
        yield (
            f"designs.composition is not the rule {known.rule!r} of the kind {designs.kind!r} with"
            f" draws of {DRAW_BITS} bits, in its words"
        )
    for at, design in enumerate(designs.designs):
        if design.leakage + design.rounding > designs.epsilon:
            yield f"designs.designs[{at}]: leakage and rounding are above designs.epsilon"


def _about_others(joint: Joint) -> Iterator[str]:
    if joint.leakage > joint.epsilon:
        yield "joint.leakage is more than was accepted, joint.epsilon"
    if joint.floor > joint.leakage:
        yield "joint.floor is more than joint.leakage"
    if not joint.releases:
        yield "joint names no other release"


def _about_growing(certificate: Certificate) -> Iterator[str]:
    """What has to wait in a growing table, so that all releases tell what the last one does."""
    growing, designs, model = certificate.growing, certificate.designs, certificate.model
    if growing is None:
        return
    if certificate.columns.step is None or not model.stationary:
        yield "growing, but columns.step is null or the model is not stationary"
    if certificate.joint is not None:
        yield "growing and joint do not go together"
    grids = designs.grids
    if grids is not None and (len(grids.right) > 1 or tuple(grids.left[:-1]) not in ((), (0,))):
        yield "growing, but designs.grids are not for all the room there may be"
    if growing.lag < growing.reach:
        yield f"growing.lag, {growing.lag}, is less than growing.reach, {growing.reach}"
    reach, link = _needed(designs)
    more = model.order - 1
    if growing.reach < reach + more:
        yield f"growing.reach is {growing.reach}, but designs redact {reach + more} steps back"
    if growing.link < link + 2 * more:
        yield f"growing.link is {growing.link}, but secrets depend on others {link + 2 * more} away"


def _needed(designs: Designs) -> tuple[float, float]:
    """How far designs redact to the left, and how near to a secret others make a difference."""
    if isinstance(designs, OwnerDesigns):
        levels = [level for one in designs.stoppings for level in _levels(one)]
        reach = max(levels, default=0.0)
        return reach, 2 * reach + 1
    if type(designs) is not LocalDesigns:
        return math.inf, math.inf
    sizes = [sum(count for count, _ in side) for side in designs.sides]
    backs = [math.inf if one.left_rest else sizes[one.redaction_left] for one in designs.designs]
    return max(backs, default=0), 1


def _levels(stopping: Stopping) -> Iterator[float]:
    """The last levels of all sides; infinite where the one that serves everybody is closed."""
    for side in stopping.sides:
        if side.levels:
            yield side.levels[-1]
    if not stopping.sides[stopping.options[0][0]].levels:
        yield math.inf
    if stopping.pair is not None:
        yield stopping.pair.levels[-1]


def _about_counts(certificate: Certificate) -> Iterator[str]:
    counts, private = certificate.counts, certificate.private
    uses = sum(design.uses for design in certificate.designs.designs)
    said = [
        ("private.count", private.count, "counts.private", counts.private),
        ("the sum of all uses", uses, "counts.secrets", counts.secrets),
    ]
    if private.positions is not None:
        said.append(
            ("private.positions.keys", len(private.positions.keys), "private.count", private.count)
        )
    if private.digest is not None:
        told = int(private.digest.rpartition(":")[2])
        said.append(("private.digest", told, "private.count", private.count))
    if certificate.output is not None:
        said.append(("output.rows", certificate.output.rows, "counts.rows", counts.rows))
    for name, number, other, expected in said:
        if number != expected:
            yield f"{name} says {number}, {other} {expected}"
    if counts.secrets > counts.private:
        yield f"counts.secrets, {counts.secrets}, is more than counts.private, {counts.private}"
    if certificate.joint is not None:
        yield from _about_others(certificate.joint)
    if certificate.release.composed is not None:
        joint, growing = certificate.joint, certificate.growing
        kept = joint is not None and joint.leakage <= certificate.designs.epsilon
        alone = certificate.release.other_releases == 0
        if certificate.release.composed != (alone or kept or growing is not None):
            yield "release.composed and release.other_releases do not go together"


def _about_the_origin(certificate: Certificate) -> Iterator[str]:
    """A model is about the steps of the data that it was learned from."""
    learned, columns = certificate.learned, certificate.columns
    if learned is None:
        return
    kind = "row" if columns.order == "row" else columns.order_kind
    if learned.order != kind:
        yield f"learned.order is {learned.order!r}, but records are ordered by {kind!r}"
    if learned.unit != columns.order_unit:
        yield f"learned.unit is {learned.unit!r}, columns.order_unit {columns.order_unit!r}"
    if not _are_alike(learned.step, columns.step):
        yield f"learned.step is {learned.step!r}, columns.step {columns.step!r}"


def _are_alike(one: str | None, other: str | None) -> bool:
    """Whether two steps are the same, however they are written."""
    if one is None or other is None:
        return one == other
    from offrecord.verify.table.steps import Step

    steps = [Step.of(text) for text in (one, other)]
    kinds = {"days" if step.kind == "time" else step.kind for step in steps}
    return len(kinds) == 1 and steps[0].length == steps[1].length
