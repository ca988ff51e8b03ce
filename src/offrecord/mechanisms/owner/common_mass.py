"""Common mass: stop the same mass whatever the start context is, where members do not forbid it.

Under the mean chain the walk to a far context l is a bridge from the start context x to l; level by
level every x stops what all bridges have in common at a context, which needs no solver. Under other
members the outcomes differ a little between start contexts. Those that differ by more than a target
s for too many members are forbidden, and the mass waits for later levels.
"""

from __future__ import annotations

import numpy as np

from offrecord.mechanisms.owner.law import Steps, unstopped
from offrecord.mechanisms.owner.side import Side
from offrecord.models.base import Floats, Integers, Mask

#: A common mass below this share of a bridge does not stop: it would be noise of the division.
_LEAST_MASS = 1e-7
#: And so would what it has gained since the level before, below this.
_LEAST_GAIN = 1e-10
#: Members that forbid first, so that the others have less to look at: 40 % of the time at 32
#: contexts, the same rules.
_FIRST = 60


#: What designs of a side have forbidden, by its direction and levels, with their targets.
Forbidden = dict[tuple[str, ...], list[tuple[float, Mask]]]


def common_mass(
    side: Side, levels: list[int], target: float, slack: float, forbidden: Forbidden
) -> Floats:
    """Stop probabilities of one side.

    Args:
        side: the chains, the place and the direction.
        levels: distances; the last one keeps the target by itself.
        target: s, the largest log-ratio of an outcome between start contexts that count as
            different, in as many members as `side` asks for.
        slack: δ, the share of the common mass that waits.
        forbidden: what designs before have forbidden, to which this one is added. What was too much
            for a larger target is so for this one.

    Returns:
        (n − 1, C, S, S) probability of stopping.
    """
    mean = side.steps(levels, mean=True)
    before = forbidden.setdefault((side.direction, *map(str, levels)), [])
    larger = [one for one in before if one[0] >= target]
    if larger:
        allowed = min(larger, key=lambda one: one[0])[1].copy()
    else:
        allowed = np.ones((len(levels) - 1, side.classes, side.contexts), dtype=bool)
    few = side.first_members(_FIRST)
    for one in (few, side) if few.members.count < side.members.count else (side,):
        _forbid(one, mean, one.steps(levels), allowed, (target, slack))
    before.append((target, allowed))
    return bridges_in_common(mean, side.starts, allowed, slack)


def _forbid(
    side: Side, mean: Steps, walk: Steps, allowed: Mask, target_slack: tuple[float, float]
) -> None:
    """Forbid outcomes, in place, until none exceeds the target. Far classes are independent."""
    target, slack = target_slack
    active = np.arange(side.classes)
    while len(active):
        stop = bridges_in_common(_towards(mean, active), side.starts, allowed[:, active], slack)
        ratios, at_deadline = judged(side, _towards(walk, active), stop, active)
        done = []
        over = ratios > target
        worst = np.median(ratios[over]) if over.any() else np.inf
        for number, far in enumerate(active):
            if over[:, number].any():
                allowed[:, far] &= ratios[:, number] < max(worst, np.nextafter(target, np.inf))
            elif at_deadline[number] > target and stop[:, number].any():
                allowed[np.flatnonzero(stop[:, number].any(axis=(1, 2)))[-1], far] = False
            else:
                done.append(number)
        active = np.delete(active, done)


def _towards(walk: Steps, active: Integers) -> Steps:
    """The walk to some of the far classes."""
    return walk._replace(beyond=[one[:, :, active] for one in walk.beyond])


def bridges_in_common(mean: Steps, starts: Integers, allowed: Mask, slack: float) -> Floats:
    """(n − 1, C, S, S) probability of stopping with what all bridges share, where it is allowed."""
    beyond = [one[0].T for one in mean.beyond]  # (C, S)
    kernels = [one[0] for one in mean.between]
    chain = mean.first[0]
    reached = (chain @ mean.beyond[0][0]).T[:, :, np.newaxis]  # of each far class, by the start
    stop = np.zeros((*allowed.shape, len(chain))).swapaxes(2, 3)
    taken = np.zeros(beyond[0].shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for level, may in enumerate(allowed):
            if level:
                carried = np.where(beyond[level - 1] > 0, taken / beyond[level - 1], 0.0)
                taken = carried @ kernels[level - 1] * beyond[level]
                chain = chain @ kernels[level - 1]
            bridge = chain * beyond[level][:, np.newaxis] / reached
            shared = (1.0 - slack) * np.nan_to_num(bridge[:, starts]).min(axis=1)
            more = np.where(may & (shared > _LEAST_MASS), shared - taken, 0.0)
            more = np.where(more > _LEAST_GAIN, more, 0.0)
            chances = more[:, np.newaxis] / (bridge - taken[:, np.newaxis])
            stop[level] = np.where(more[:, np.newaxis] > 0, np.clip(chances, 0.0, 1.0), 0.0)
            taken = taken + more
    return np.nan_to_num(stop)


def judged(side: Side, walk: Steps, stop: Floats, classes: Integers) -> tuple[Floats, Floats]:
    """How much each outcome may differ between start contexts, in as many members as asked for.

    Returns:
        (n − 1, C, S) log-ratio by level, far class and context, and (C,) of the deadline.
    """
    ratios = np.zeros((*stop.shape[:2], side.contexts))
    at_deadline = np.zeros(len(classes))
    for level, mass in enumerate(unstopped(walk, stop)):
        if level < len(stop):
            ratios[level] = side.quantile(side.spread(mass * stop[level]))
            continue
        spread = side.quantile(side.spread(mass))
        for number, far in enumerate(classes):
            at_deadline[number] = spread[number, side.far == far].max()
    return ratios, at_deadline
