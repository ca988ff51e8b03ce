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

from offrecord.fitting.boxes import Sureness, begun_box, learned_box
from offrecord.fitting.checks import Check
from offrecord.fitting.counting import Counts
from offrecord.fitting.intervals import rounded_shares
from offrecord.models.base import Floats
from offrecord.models.box import Box
from offrecord.models.chain import MarkovChain

#: How a set holds chains that begin unlike the rest: as the first records say, or in any way.
Held = Literal["learned", "any"]

EPSILON = 2.0  #: the largest that audits look at: a larger one forgets less
_CLEAR = 1e-3  # p-values of first records below are more than chance
_MATTERS = 1.05  # times what is promised, in odds, above which a difference of first records counts
_WIDER = 1.5  # times the window however chains begin, above which knowing first records is no gain


@dataclass(frozen=True, eq=False)
class Beginnings:
    """First records that differ from the rest by more than chance, and where that matters.

    shares: (k,) of their values, one half added to each count. excess: how much more than EPSILON
    a design of a stationary model may tell about a secret near the beginning of such a chain. held:
    how the set holds such chains, None where it does not.
    """

    shares: Floats
    excess: float
    held: Held | None

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        shares = self.shares.tolist()
        return {"shares": shares, "excess": self.excess, "held": self.held}


def box_and_beginnings(
    counts: Counts, firsts: Counts, check: Check | None, model: MarkovChain, sure: Sureness
) -> tuple[Box, Beginnings | None]:
    """The set of models that data leave likely, and how chains begin, where that is unlike the rest
    and matters.

    counts, firsts: transitions, and values of first records, with the test of these.
    """
    usual = learned_box(counts, model, sure)
    if check is None or check.p_value >= _CLEAR or model.order > 1:
        return usual, None
    shares = rounded_shares(firsts)
    excess = excess_near_beginning(model, shares)
    if excess is None or excess <= math.log(_MATTERS):
        return usual, None
    known = begun_box(counts, firsts, model, sure)
    held: Held | None = "learned"
    if _never_forgets(known) and not _never_forgets(usual):
        known, held = usual, None
    if model.k == 2:
        anyhow = usual.with_start("any")
        if held is None or not _is_worth_it(model, known, anyhow):
            known, held = anyhow, "any"
    return known, Beginnings(shares, excess, held)


def _never_forgets(box: Box) -> bool:
    """A step back in time may be impossible, and may not."""
    low, high = box.backward
    return bool(np.any((low == 0) & (high > 0)))


def _is_worth_it(model: MarkovChain, known: Box, anyhow: Box) -> bool:
    """To know how chains begin: what it costs is not far above what no such knowledge costs, and
    mechanisms that know steps back in time redact less.
    """
    learned, unknown = (_window(model.with_box(box)) for box in (known, anyhow))
    if learned is None or unknown is None:
        return learned is not None
    return sum(learned) <= _WIDER * sum(unknown)


def _window(model: MarkovChain) -> tuple[int, int] | None:
    """What the best window for EPSILON redacts in unlimited room; None where it never ends."""
    from offrecord.mechanisms.owner.mechanism import far_window

    return far_window(model, EPSILON)


def excess_near_beginning(model: MarkovChain, start: Floats) -> float | None:
    """By how much more than it promises a design of a stationary model of order 1 for EPSILON may
    tell about a record of a chain that begins with the distribution `start`; None where the model
    never forgets so much.

    Where the first release to the left is y at distance d, what it tells of x against x′ is
    log P^d(y, x)/P^d(y, x′) + log μ(x′)/μ(x), with μ the distribution of the secret. The model puts
    its stationary one for μ. Both come nearer to each other with every step, so it is the first
    record with a release at distance d that tells most beyond what it should.
    """
    window = _window(model.alone)
    if window is None:
        return None
    here = start @ np.linalg.matrix_power(model.transition, window[0] + 1)
    apart = np.log(here) - np.log(model.start)
    return float(apart.max() - apart.min())
