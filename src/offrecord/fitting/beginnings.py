"""How chains begin: first records that are unlike the rest, and sets of models that hold them.

A stationary model is wrong about first records that differ from the rest, and so is a set learned
from steps back in time anywhere in the chains. How likely values are at each record follows from
the first records and the forward kernels, and steps back in time follow from that by Bayes
(docs/proofs/R4-left-forwards.md, "From first records").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from offrecord.fitting.boxes import Sureness, begun_box, first_ends, learned_box
from offrecord.fitting.checks import Check
from offrecord.fitting.counting import Counts
from offrecord.fitting.intervals import rounded_shares
from offrecord.models.base import Floats
from offrecord.models.box import Box
from offrecord.models.chain import MarkovChain

#: How a set holds chains that begin unlike the rest: as the first records say, or in any way.
Held = Literal["learned", "any"]

EPSILON = 2.0  #: the largest that audits look at: a larger one forgets less
_USUAL = 1.0  # ε by which it is judged what a set costs
_CLEAR = 1e-3  # p-values of first records below are more than chance
_MATTERS = 1.05  # times what is promised, in odds, above which a difference of first records counts
_WIDER = 1.4  # times the cost however chains begin, above which knowing first records is no gain
_SINCE = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # records from which on a set may hold


@dataclass(frozen=True, eq=False)
class Beginnings:
    """First records that differ from the rest by more than chance, and where that matters.

    shares: (k,) of their values, one half added to each count. excess: how much more than EPSILON
    a design of a stationary model may tell about a secret near the beginning of such a chain. held:
    how the set holds such chains, None where it does not. since: from which record on. ends: of
    intervals for how likely their values are, where the set is learned from these.
    """

    shares: Floats
    excess: float
    held: Held | None
    since: int = 1
    ends: tuple[Floats, Floats] | None = None

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        shares = self.shares.tolist()
        return {"shares": shares, "excess": self.excess, "held": self.held, "since": self.since}

    def begun(self, model: MarkovChain) -> MarkovChain:
        """A stationary model with first records as they are, in a set that holds from where on they
        are forgotten.
        """
        box = model.box
        if box is not None and self.since > 1:
            made = box.confidence, box.interval
            box = Box(*box.directions, box.order, box.start, *made, since=self.since)
        return MarkovChain(
            model.transition, self.shares, model.labels, learned=model.learned, box=box
        )


def box_and_beginnings(
    counts: Counts, firsts: Counts, check: Check | None, model: MarkovChain, sure: Sureness
) -> tuple[Box, Beginnings | None]:
    """The set of models that data leave likely, and how chains begin, where that is unlike the rest
    and matters. The set is of what is left of chains from the record on since which it holds.

    counts, firsts: transitions, and values of first records, with the test of these.
    """
    usual = learned_box(counts, model, sure)
    if check is None or check.p_value >= _CLEAR or model.order > 1:
        return usual, None
    shares = rounded_shares(firsts)
    excess = excess_near_beginning(model, shares)
    if excess is None or excess <= math.log(_MATTERS):
        return usual, None
    length = 1 + counts.sum() / firsts.sum()
    found = _cheapest(counts, firsts, model, sure, length)
    if model.k == 2:
        anyhow = usual.with_start("any")
        cost = _cost(model.with_box(anyhow), 1, length)
        if found is None or found[0] > _WIDER * cost:
            return anyhow, Beginnings(shares, excess, "any")
    if found is None:
        return usual, Beginnings(shares, excess, None)
    box, ends = found[1], first_ends(firsts, model, sure)
    return box.settled, Beginnings(shares, excess, "learned", box.since, ends)


def _cheapest(
    counts: Counts, firsts: Counts, model: MarkovChain, sure: Sureness, length: float
) -> tuple[float, Box] | None:
    """Of the sets that hold chains that begin like these from some record on, the one that costs
    least, with its cost; None if all of them never forget. The later the record, the narrower the
    set, and the more is lost before it.
    """
    best: tuple[float, Box] | None = None
    for since in _SINCE:
        if best is not None and since * since > best[0] * length:
            break  # what is lost before it is more than that
        box = begun_box(counts, firsts, model, sure, since)
        cost = _cost(model.with_box(box.settled), since, length)
        if cost < math.inf and (best is None or cost < best[0]):
            best = cost, box
    return best


def _cost(model: MarkovChain, since: int, length: float) -> float:
    """What the best window of a set redacts around a secret, on average over the records of chains
    of a length, if up to a record that is redacted all that comes before that `since` is.
    """
    window = _window(model, _USUAL)
    if window is None:
        return math.inf
    left, right = window
    places = np.arange(1, math.ceil(length) + 1)
    lost = np.where(places - left <= since, np.maximum(places, since) - 1, left)
    return float((lost + np.minimum(right, np.maximum(length - places, 0))).mean())


def _window(model: MarkovChain, epsilon: float = EPSILON) -> tuple[int, int] | None:
    """What the best window redacts in unlimited room; None where it never ends."""
    from offrecord.mechanisms.owner.mechanism import far_window

    return far_window(model, epsilon)


def excess_near_beginning(model: MarkovChain, start: Floats) -> float | None:
    """By how much more than it promises a design of a model of order 1 with one kernel for EPSILON
    may tell about a record of a chain that begins with the distribution `start`; None where the
    model never forgets so much.

    Where the first release to the left is y at distance d, what it tells of x against x′ is
    log P^d(y, x)/P^d(y, x′) + log μ(x′)/μ(x), with μ the distribution of the secret. The model puts
    its own for μ. Both come nearer to each other with every step, so it is the first record with a
    release at distance d that tells most beyond what it should.
    """
    window = _window(MarkovChain(model.transition))
    if window is None:
        return None
    walk = np.linalg.matrix_power(model.transition, window[0] + 1)
    apart = np.log(start @ walk) - np.log(model.start @ walk)
    return float(apart.max() - apart.min())
