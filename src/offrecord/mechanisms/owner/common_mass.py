"""Common mass: stop the same mass whatever the start context is, where members do not forbid it.

Under the mean chain the walk to a far context l is a bridge from the start context x to l; level by
level every x stops what all bridges have in common at a context, which needs no solver. Under other
members the outcomes differ a little between start contexts. An outcome that differs by more than a
target s in too many members is forbidden, and its mass waits for later levels. How much an outcome
differs depends on earlier levels alone, so one walk decides all of them. Where the outcome of the
deadline differs by more than s, a larger share of the common mass waits for it.
"""

from __future__ import annotations

import numpy as np

from offrecord.mechanisms.owner.law import Steps
from offrecord.mechanisms.owner.side import Side
from offrecord.models.base import Floats, Integers

#: The least share of a bridge that stops at a level. Many small outcomes leak as much as a few
#: large ones: without it rules of rain redact a tenth more, from .02 to .035 the same. Below the
#: second one, for one chain, it would be noise of the division.
_LEAST, _LEAST_KNOWN = 0.025, 1e-7
#: δ, the share of the common mass that waits for the deadline, at least; one chain needs none.
_SLACK = 0.05
#: How often the share is halved towards the least one that the deadline's outcome keeps.
_HALVINGS = 5


def common_mass(side: Side, levels: list[int], target: float) -> Floats:
    """(n − 1, C, S, S) stop probabilities of one side.

    levels: distances; the last one keeps the target by itself.
    """
    mean, walk = side.steps(levels, mean=True), side.steps(levels)
    stop = np.zeros((len(levels) - 1, side.classes, side.contexts, side.contexts))
    slack = np.full(side.classes, _SLACK if side.members.count > 1 else 0.0)
    low, high = slack.copy(), np.ones(side.classes)
    active = np.arange(side.classes)
    for halving in range(_HALVINGS + 1):
        found, at_deadline = _forward(side, mean, walk, active, slack[active], target)
        keeps = at_deadline <= target
        stop[:, active[keeps]] = found[:, keeps]
        high[active[keeps]] = slack[active[keeps]]
        low[active[~keeps]] = slack[active[~keeps]]
        if halving == 0:  # most classes keep the target with the least slack
            active = active[~keeps]
        slack = (low + high) / 2.0
        if not len(active):
            break
    return stop


# (n − 1, C, S, S) probability of stopping with what all bridges share, where no outcome exceeds the
# target, and (C,) how much the one at the deadline differs, for some far classes.
def _forward(
    side: Side, mean: Steps, walk: Steps, classes: Integers, slack: Floats, target: float
) -> tuple[Floats, Floats]:
    beyond = [one[0].T[classes] for one in mean.beyond]  # (C, S)
    chain = mean.first[0]
    reached = (chain @ mean.beyond[0][0]).T[classes, :, np.newaxis]  # of each class, by the start
    taken = np.zeros(beyond[0].shape)
    members, contexts = walk.first.shape[:2]
    mass = np.broadcast_to(walk.first[:, np.newaxis], (members, len(classes), contexts, contexts))
    stop = []
    for level, kernels in enumerate(walk.between):
        with np.errstate(divide="ignore", invalid="ignore"):
            bridge = chain * beyond[level][:, np.newaxis] / reached
            chances, more = _in_common(side, bridge, taken, slack)
            forbidden = side.quantile(side.spread(mass * chances)) > target
            carried = (taken + np.where(forbidden, 0.0, more)) / beyond[level]
        chances = np.where(forbidden[:, np.newaxis], 0.0, chances)
        stop.append(chances)
        left = (mass * (1.0 - chances)).reshape(members, -1, contexts)
        mass = (left @ kernels).reshape(mass.shape)
        kernel = mean.between[level][0]
        taken = np.where(beyond[level] > 0, carried, 0.0) @ kernel * beyond[level + 1]
        chain = chain @ kernel
    spread = side.quantile(side.spread(mass))
    at_deadline = [spread[i, side.far == far].max() for i, far in enumerate(classes)]
    shape = (len(stop), len(classes), contexts, contexts)
    return np.array(stop).reshape(shape), np.array(at_deadline)


# (C, S, S) the chances of stopping with what all bridges share beyond what was taken, and (C, S)
# how much that is.
def _in_common(side: Side, bridge: Floats, taken: Floats, slack: Floats) -> tuple[Floats, Floats]:
    # what all bridges have in common is as likely from every start context (S6)
    shared = np.nan_to_num(bridge[:, side.starts]).min(axis=1)
    more = shared * (1.0 - slack)[:, np.newaxis] - taken
    more = np.where(more > (_LEAST if side.members.count > 1 else _LEAST_KNOWN), more, 0.0)
    chances = np.clip(more[:, np.newaxis] / (bridge - taken[:, np.newaxis]), 0.0, 1.0)
    return np.where(more[:, np.newaxis] > 0, np.nan_to_num(chances), 0.0), more


def bridges_in_common(mean: Steps, side: Side) -> Floats:
    """(n − 1, C, S, S) probability of stopping with all that bridges of the mean chain share."""
    known = side.of_mean()
    none = np.zeros(side.classes)
    return _forward(known, mean, mean, np.arange(side.classes), none, np.inf)[0]
