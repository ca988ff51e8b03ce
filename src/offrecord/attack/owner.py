"""What a release by the owner's mechanism tells: the likelihood of where its walks stopped, and of
all that is released, by the values of a secret and by any chain that an attacker believes in.

What lies between two clusters falls apart where as many released records in a row as the chain
remembers lie there. So each side of a cluster counts by itself, once for all that look alike;
clusters between which less is released are walked through one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from offrecord.attack.beside import Beside, Found
from offrecord.attack.reading import Reading, Told
from offrecord.attack.released import Table
from offrecord.attack.roles import IDLE, Walkers
from offrecord.attack.sides import Laws
from offrecord.attack.sights import Sights, numbered
from offrecord.attack.steps import Opened, Steps
from offrecord.mechanisms.blocks import Block, Mask, Secrets
from offrecord.mechanisms.owner.deciding.clusters import LEFT, RIGHT
from offrecord.mechanisms.owner.deciding.decider import OwnerDecider, Plan
from offrecord.models.base import Floats, Integers

_CHUNK = 1 << 15  # secrets at a time
MOST_STATES_OF_WALKS = 256  #: of a chain that owner's walks are followed on

#: How many secrets were not attacked, and why.
Unattacked = tuple[tuple[str, int], ...]


def told_by_walks(table: Table, steps: Steps, is_own: bool) -> tuple[Told, Unattacked]:
    """What is told of each secret of a table, and how many were not attacked, and why. is_own: the
    steps are those of the certificate's model.
    """
    decider = table.rule.decider
    assert isinstance(decider, OwnerDecider)
    blocks = table.rule.blocks(table.batch, table.acting)
    return told_in_blocks(Sights.of(table), decider, blocks, steps, is_own)


def told_in_blocks(
    sights: Sights, decider: OwnerDecider, blocks: Iterable[Block], steps: Steps, is_own: bool
) -> tuple[Told, Unattacked]:
    """The same of each secret of some blocks, one after the other."""
    opened = Opened.of(steps, max(steps.order, decider.order))
    laws = Laws(Walkers(decider), opened, is_own)
    k = sights.k
    parts = [Told(np.empty(0), np.empty((0, k)), np.empty((0, k)))]
    reasons: dict[str, int] = {}
    for block in blocks:
        if block.secrets.count:
            told, why = _Block(sights, laws, block).told()
            parts.append(told)
            for reason, number in why.items():
                reasons[reason] = reasons.get(reason, 0) + number
    found = Told(*(np.concatenate(one) for one in zip(*parts, strict=True)))
    return found, tuple(reasons.items())


@dataclass(frozen=True, eq=False)
class _Block:
    """The clusters of a block."""

    sights: Sights
    laws: Laws
    block: Block

    @cached_property
    def plan(self) -> Plan:
        """What is known of it from positions alone."""
        return self.laws.walkers.decider.planned(self.block)

    @cached_property
    def beside(self) -> Beside:
        """What lies beside them."""
        return Beside(self.sights, self.laws, self.plan, self.chain)

    @cached_property
    def chain(self) -> Integers:
        """(c,) the chain of each cluster, as the table numbers them."""
        lifted = self.plan.lifted
        return self.plan.clusters.ends.chain + (0 if lifted is None else lifted.first_chain)

    @cached_property
    def ends(self) -> tuple[Integers, Integers]:
        """(c,) where the states end that hold the first and the last tuple of each cluster."""
        ends, more = self.plan.clusters.ends, self.laws.size - 1
        return ends.first + more, ends.last + more

    def told(self) -> tuple[Told, dict[str, int]]:
        """What is told of each secret, and how many are not attacked, and why."""
        secrets = self.block.secrets
        served = np.arange(secrets.count)
        if self.plan.lifted is not None:  # chains too short for a tuple are redacted whole
            sizes = self.block.chains.places[self.block.chains.starts[secrets.chain + 1] - 1] + 1
            served = np.flatnonzero(sizes >= self.laws.size)
        near, far, why = self._sides()
        sizes = self.plan.clusters.sizes
        cluster = np.repeat(np.arange(len(sizes)), sizes)
        parts = []
        of = np.full(secrets.count, -1)
        of[served] = cluster
        for begin in range(0, secrets.count, _CHUNK):
            some = np.arange(begin, min(begin + _CHUNK, secrets.count))
            parts.append(self._read(secrets.part(begin, begin + _CHUNK), of[some], near, far))
        found = Told(*(np.concatenate(one) for one in zip(*parts, strict=True)))
        reasons: dict[str, int] = {}
        said = np.append(why, "")[of]
        for reason in sorted(set(why.tolist()) - {""}):
            lost = said == reason
            for one in found:
                one[lost] = np.nan
            reasons[reason] = int(lost.sum())
        return found, reasons

    def _read(self, secrets: Secrets, cluster: Integers, near: Floats, far: Floats) -> Told:
        """What is told of some secrets of clusters; −1 for those of none, which tell nothing."""
        opened = self.laws.opened
        is_long = secrets.last - secrets.first + 1 >= opened.order
        # a chain's first tuple, if it has one, may end after a short secret
        least = np.where(is_long | (cluster < 0), 0, self.laws.size - 1)
        last = np.maximum(secrets.last, least)
        first = np.where(is_long, secrets.first + opened.order - 1, last)
        prior = opened.priors(secrets.chain, first)
        left, right = prior.copy(), np.ones_like(prior)
        some = np.flatnonzero(cluster >= 0)
        chain, of = secrets.chain[some], cluster[some]
        begin, end = (one[of] for one in self.ends)
        left[some] = opened.carried(near[of], chain, begin, first[some] - begin)
        right[some] = opened.carried_back(far[of], chain, end, end - last[some])
        beyond = opened.carried_back(right, secrets.chain, last, last - first)
        return Reading(opened.steps, secrets, first, last, left, right, beyond, prior).told()

    # ---- clusters

    def _sides(self) -> tuple[Floats, Floats, NDArray[np.object_]]:
        """(c, S) how likely all to the left of each cluster is together with the state at its first
        tuple, and all to its right by that at its last; and (c,) why either is not known.
        """
        beside, clusters = self.beside, self.plan.clusters
        sides = beside.sides(LEFT), beside.sides(RIGHT)
        why = np.full(clusters.count, "", dtype=object)
        near, far = (self._plain(found, why) for found in sides)
        begins = np.flatnonzero(~clusters.faces[:, LEFT] & (beside.roles.role[:, LEFT] == IDLE))
        near[begins] *= self.laws.opened.priors(self.chain[begins], self.ends[0][begins])
        self._pair_up(sides, near, far)
        # what parts a gap for the one walk may be too little for the other, which looks further
        parted = [found.which >= 0 for found in sides]
        linked = clusters.faces[:, RIGHT] & ~(parted[RIGHT] & np.append(parted[LEFT][1:], True))
        self._link(linked, near, far, why)
        return near, far, why

    def _plain(self, found: Found, why: NDArray[np.object_]) -> Floats:
        """(c, S) the laws of sides that have no labels, 1 for all others."""
        states = self.laws.opened.states
        laws = [*found.laws, np.ones((1, states))]
        plain = [
            one[0] if not isinstance(one, str) and len(one) == 1 else laws[-1][0] for one in laws
        ]
        reasons = np.array([one if isinstance(one, str) else "" for one in laws], dtype=object)
        said = reasons[found.which]
        why[said != ""] = said[said != ""]
        return np.stack(plain)[found.which]

    def _pair_up(self, sides: tuple[Found, Found], near: Floats, far: Floats) -> None:
        """Where what one side does depends on the other, both together count as the left one."""
        left, right = (
            np.array([not isinstance(one, str) and len(one) > 1 for one in (*found.laws, "")])[
                found.which
            ]
            for found in sides
        )
        paired = np.flatnonzero(left & right)
        both = [found.which[paired] for found in sides]
        if not len(paired):
            return
        different, which = numbered(both)
        laws = [
            np.sum(sides[LEFT].laws[both[LEFT][at]] * sides[RIGHT].laws[both[RIGHT][at]], axis=0)
            for at in different.tolist()
        ]
        near[paired], far[paired] = np.stack(laws)[which], 1.0

    def _link(self, linked: Mask, near: Floats, far: Floats, why: NDArray[np.object_]) -> None:
        """Walk through clusters that nothing parts from each other, all such groups at once.
        linked: (c,) which are not parted from the next.
        """
        some = np.flatnonzero(linked)
        if not len(some):
            return
        gaps = self.beside.gaps(some)
        states = self.laws.opened.states
        kernels = np.stack(
            [np.ones((states, states)) if isinstance(one, str) else one for one in gaps.laws]
        )
        reasons = np.array([one if isinstance(one, str) else "" for one in gaps.laws], dtype=object)
        opened, (first, last) = self.laws.opened, self.ends
        depth = np.arange(len(linked)) - np.maximum.accumulate(
            np.where(np.concatenate(([True], ~linked[:-1])), np.arange(len(linked)), 0)
        )
        said = reasons[gaps.which[some]]
        why[some[said != ""]] = said[said != ""]
        for turn in range(1, int(depth.max()) + 1):
            here = np.flatnonzero(depth == turn)
            across = opened.carried(
                near[here - 1], self.chain[here], first[here - 1], (last - first)[here - 1]
            )
            on = np.einsum("ns,nst->nt", across, kernels[gaps.which[here - 1]])
            near[here] = _scaled(on)
            lost = here[(why[here] == "") & (why[here - 1] != "")]
            why[lost] = why[lost - 1]
        for turn in range(int(depth.max()), 0, -1):
            here = np.flatnonzero(depth == turn)
            across = opened.carried_back(
                far[here], self.chain[here], last[here], (last - first)[here]
            )
            back = np.einsum("nst,nt->ns", kernels[gaps.which[here - 1]], across)
            far[here - 1] = _scaled(back)
            lost = here[(why[here] != "") & (why[here - 1] == "")] - 1
            why[lost] = why[lost + 1]


def _scaled(weights: Floats) -> Floats:
    """Rows with a largest entry of 1, so that nothing underflows."""
    most = weights.max(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, most, out=weights, where=most > 0))
