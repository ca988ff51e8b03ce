"""What decides by the owner's designs: clusters, walks, and what is released between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from offrecord.mechanisms.blocks import (
    ALWAYS,
    AT_TIMES,
    NEVER,
    REDACTED,
    Block,
    Certainty,
    Decision,
    Draw,
    Expectation,
    Explanation,
    Mask,
    Secrets,
)
from offrecord.mechanisms.owner.deciding.bridging import Bridges
from offrecord.mechanisms.owner.deciding.choosing import Choice, Kit, choose, second_sides
from offrecord.mechanisms.owner.deciding.clusters import LEFT, RIGHT, Clusters, clusters_of, ranges
from offrecord.mechanisms.owner.deciding.completion import (
    Completion,
    Places,
    beyond_ends,
    completed,
    joined,
    nothing,
    picked,
    uniform,
)
from offrecord.mechanisms.owner.deciding.contraction import Contraction
from offrecord.mechanisms.owner.deciding.expecting import SideLaw, window_law
from offrecord.mechanisms.owner.deciding.ground import Ground
from offrecord.mechanisms.owner.deciding.lifting import Lifted, lifted
from offrecord.mechanisms.owner.deciding.packed import PackedSides
from offrecord.mechanisms.owner.deciding.sight import Outlook, all_places, outlook, seen
from offrecord.mechanisms.owner.deciding.walking import Walks, walked
from offrecord.mechanisms.owner.stopping import NEVER_REACHED, Stopping
from offrecord.mechanisms.owner.way import Way
from offrecord.mechanisms.owner.ways import Ways
from offrecord.models.base import Floats, Integers, Label, Model

_BOTH = (LEFT, RIGHT)


class Plan(NamedTuple):
    """What is known of a block from positions alone.

    deadlines: (c, 2) within which distance the walks of a cluster stop. views: where they look,
    then where the second sides of pairs look. blocked: (c, 2) which go straight to their deadlines,
    whatever they would see. lifted: of a chain of order above 1, how the tuples that all this is
    about became of records.
    """

    ground: Ground
    clusters: Clusters
    choice: Choice
    deadlines: Integers
    views: list[Outlook]
    blocked: Mask
    lifted: Lifted | None

    @property
    def records(self) -> Block:
        """The block of records that is decided."""
        return self.ground.block if self.lifted is None else self.lifted.records


@dataclass(frozen=True, eq=False)
class OwnerDecider:
    """stoppings: all different ones. numbers: (designs,) which of them each design has. rooms:
    (designs, 2) what designs are made for. ways: to the left and to the right, where all steps are
    alike; None where they are not. is_known: the model is the only one, so that what it says about
    missing records, and about secrets inside a cluster, can be relied on; not so of tuples. order:
    of the chain, and then k is the number of tuples. values: how many values records have.
    """

    #: What is done once for each block is much, and memory goes by secrets, not by records.
    breadth: ClassVar[int] = 2

    stoppings: tuple[Stopping, ...]
    numbers: Integers
    rooms: Integers
    k: int
    ways: tuple[Way, Way] | None
    is_known: bool
    order: int
    values: int

    @classmethod
    def of(cls, stoppings: Sequence[Stopping], rooms: Integers, model: Model) -> OwnerDecider:
        """From what each design holds, which are then known by their numbers.

        rooms: (designs, 2) records to the left and right that each is made for.
        """
        names = {id(stopping): stopping.identity for stopping in stoppings}
        different: dict[bytes, Stopping] = {}
        for stopping in stoppings:
            different.setdefault(names[id(stopping)], stopping)
        numbers = {name: number for number, name in enumerate(different)}
        ways = None
        if model.is_stationary and model.shows is None:
            far = Ways.far(model.along())
            ways = far.left, far.right
        return cls(
            tuple(different.values()),
            np.array([numbers[names[id(stopping)]] for stopping in stoppings], dtype=np.int64),
            np.asarray(rooms, dtype=np.int64).reshape(-1, 2),
            model.k**model.order,
            ways,
            ways is not None and model.box is None and model.order == 1,
            model.order,
            model.k,
        )

    def __getstate__(self) -> dict[str, object]:
        fields = ("stoppings", "numbers", "rooms", "k", "ways", "is_known", "order", "values")
        return {name: getattr(self, name) for name in fields}  # the rest is soon made again

    @cached_property
    def kit(self) -> Kit:
        """All sides there are, and what is known of them."""
        channels = None
        if self.is_known and self.ways is not None:
            left, right = (_among_possible(way) for way in self.ways)
            channels = Contraction(left), Contraction(right)
        return Kit.of(self.stoppings, self.ways, channels)

    @cached_property
    def bridges(self) -> Bridges:
        """Gaps that one choice serves: of the one menu that all secrets of such a model have."""
        alone = self.is_known and len(self.stoppings) == 1
        return Bridges.worth(self.stoppings[0].gaps if alone else (), self.k)

    @property
    def _packed(self) -> PackedSides:
        return self.kit.packed

    @cached_property
    def _bases(self) -> Integers:
        """(stoppings, 2) the deadlines of their first options."""
        bases = [[side.deadline for side in stopping.options[0]] for stopping in self.stoppings]
        return np.array(bases, dtype=np.int64).reshape(-1, 2)

    # ---- decisions

    def decide(self, block: Block, draw: Draw) -> Decision:
        """Walk away from every cluster; redact up to the stops, and what lies between two walks
        that might have seen each other (O10).
        """
        if not block.secrets.count:
            redacted = np.zeros(block.size, dtype=bool)
            return Decision(redacted, np.full(block.size, NEVER, dtype=np.int8))
        plan = self.planned(block)
        redacted = self.redacted(plan, self._walked(plan, draw))
        return Decision(redacted, self._certainty(plan))

    def redacted(self, plan: Plan, stops: Integers) -> Mask:
        """(n,) which records leave empty, given where the walks of each cluster (c, 2) stop."""
        stops = _met(plan, np.minimum(stops, plan.clusters.gaps + 1))
        redacted = np.zeros(plan.records.size, dtype=bool)
        redacted[_covered(plan, stops - 1)] = True
        return redacted if plan.lifted is None else redacted | plan.lifted.hidden

    def alone(self) -> tuple[Floats, Floats]:
        """By distance from 0, how likely releasing begins to the left and right of a single record
        far from all others.
        """
        kit = self.kit
        numbers = kit.pairs[0].sides if kit.pairs else kit.menus[0].options[0].sides
        found = []
        for law in map(kit.law, numbers):
            chances = np.zeros(0 if law is None else int(law.levels[-1]) + 1)
            if law is not None:
                chances[law.levels] = law.chances
            found.append(chances)
        return found[0], found[1]

    def planned(self, block: Block) -> Plan:
        """What is known of a block from positions alone."""
        tuples = None if self.order == 1 else lifted(block, self.order, self.values)
        block = block if tuples is None else tuples.block
        clusters, choice = self._clustered(block)
        ground = Ground(block)
        views = list(self._views(ground, clusters, choice))
        deadlines = self._packed.deadlines[choice.sides]
        blocked = np.zeros((clusters.count, 2), dtype=bool)
        if not self.is_known:
            for view in views:
                blocked[view.cluster, view.column] = self._is_blocked(ground, clusters, view)
            blocked[choice.pairs >= 0] |= blocked[choice.pairs >= 0].any(axis=1, keepdims=True)
        return Plan(ground, clusters, choice, deadlines, views, blocked, tuples)

    def _clustered(self, block: Block) -> tuple[Clusters, Choice]:
        """The clusters of a block, and what they take. One of secrets with different designs whose
        budgets do not go together joins its neighbour, until it has the chain to itself.
        """
        stoppings = self.numbers[block.which]
        joined = np.zeros(len(stoppings), dtype=bool)
        served = self.bridges.are_served(block)
        while True:
            clusters = clusters_of(block, self._bases[stoppings], joined, served)
            choice = choose(self.kit, clusters, block.secrets, stoppings)
            if not choice.lacking.any():
                return clusters, choice
            right = np.flatnonzero(choice.lacking & clusters.faces[:, RIGHT])
            left = np.flatnonzero(choice.lacking & ~clusters.faces[:, RIGHT])
            joined[clusters.begin[right + 1]] = True
            joined[clusters.begin[left]] = True

    def _views(self, ground: Ground, clusters: Clusters, choice: Choice) -> Iterator[Outlook]:
        """Where walks look; the second sides of pairs come last."""
        firsts = np.array([pair.first for pair in self.kit.pairs] + [-1])[choice.pairs]
        for is_second in (False, True):
            for column in _BOTH:
                sides, endless = choice.sides[:, column], firsts == column
                walks = (clusters.gaps[:, column] > 0) | endless
                walks &= (self._packed.counts[sides] > 0) & ~clusters.bridged[:, column]
                walks &= (firsts == 1 - column) == is_second
                cluster = np.flatnonzero(walks)
                if len(cluster):
                    yield outlook(ground, clusters, cluster, column, sides, self._packed, endless)

    def _is_blocked(self, ground: Ground, clusters: Clusters, view: Outlook) -> Mask:
        """(w,) which walks look at something that has no value and cannot be given one."""
        blocked = view.misses(ground)
        past = view.looks(self._packed) & (self._packed.deadlines[view.sides] > view.room)
        end = np.where(view.column == LEFT, 0, ground.last_place(view.chain))
        blocked |= past & (ground.value_at(view.chain, end) < 0)
        if self.ways is None:
            blocked |= past & ~self._has_law_beyond(view, clusters, ground.block)
        return blocked

    def _has_law_beyond(self, view: Outlook, clusters: Clusters, block: Block) -> Mask:
        """(w,) whether the side of a walk says how to go on beyond the chain's end, and was made
        for this very end.
        """
        edge = clusters.begin[:-1] if view.column == LEFT else clusters.begin[1:] - 1
        made_for = self.rooms[block.which[edge[view.cluster]], view.column]
        found = np.zeros(len(view.chain), dtype=bool)
        found[view.beyond(self._packed)] = True
        found &= made_for == view.room
        for walk in np.flatnonzero(found).tolist():
            found[walk] = self.kit.sides[int(view.sides[walk])].beyond is not None
        return found

    def _walked(self, plan: Plan, draw: Draw) -> Integers:
        """(c, 2) the distances at which releasing begins, whatever other clusters do."""
        stops, pairs = plan.deadlines.copy(), plan.choice.pairs
        draw = draw if plan.lifted is None else plan.lifted.draw(draw)
        completion = self._completed(plan, draw)
        labels = np.full(len(pairs), -1, dtype=np.int64)  # −1: the first side went straight
        for view in plan.views:
            cluster, sides = view.cluster, view.sides
            straight = plan.blocked[cluster, view.column]
            second = (pairs[cluster] >= 0) & ~view.endless
            if second.any():  # all of them are
                straight = straight | (labels[cluster] < 0)
                labelled = second_sides(self.kit, pairs[cluster], np.maximum(labels[cluster], 0))
                sides = np.where(straight, sides, labelled)
            sight = seen(view, plan.ground, self._packed, completion, sides)
            sight.straight[straight] = True
            reaches = np.where(view.endless, NEVER_REACHED, view.room)
            walks = Walks(view.sign, sides, reaches, sight)
            stops[cluster, view.column], found = walked(walks, self._packed, self.k, draw)
            named = view.endless & ~sight.straight
            labels[cluster[named]] = found[named]
        bridged = self.bridges.gaps_of(plan.clusters)
        if len(bridged.cluster):
            both = self.bridges.stops(bridged, plan.clusters, plan.ground.block, draw)
            stops[bridged.cluster, RIGHT], stops[bridged.cluster + 1, LEFT] = both.T
        return np.minimum(stops, plan.clusters.gaps + 1)

    def _completed(self, plan: Plan, draw: Draw) -> Completion:
        """Values for what walks look at and is not there."""
        places = all_places(plan.ground, plan.views, self._packed)
        if not len(places.chain):
            return nothing()
        if self.ways is None:
            return self._completed_beyond(plan, draw)
        if not self.is_known:
            places = beyond_ends(plan.ground, places)
        return completed(plan.ground, places, self.ways, draw)

    def _completed_beyond(self, plan: Plan, draw: Draw) -> Completion:
        """Far values beyond the ends of chains, by the laws that sides bring with them."""
        ground, found = plan.ground, []
        for view in plan.views:
            free = ~plan.blocked[view.cluster, view.column]
            walks = view.beyond(self._packed)
            walks = walks[free[walks]]
            chain = view.chain[walks]
            end = np.where(view.column == LEFT, 0, ground.last_place(chain))
            last = ground.value_at(chain, end)
            laws = [
                beyond[value]
                for number, value in zip(view.sides[walks].tolist(), last.tolist(), strict=True)
                if (beyond := self.kit.sides[number].beyond) is not None
            ]
            deadlines = self._packed.deadlines[view.sides[walks]]
            places = Places(chain, view.place[walks] + view.sign * deadlines)
            if len(walks):
                values = picked(np.array(laws), uniform(ground, places, draw))
                found.append(Completion(places, values))
        return joined(found)

    # ---- what is foretold

    def expect(self, block: Block, masses: Floats) -> Expectation:
        """Each record's probability of leaving. The model's own masses count, not what is given."""
        if not block.secrets.count:
            return Expectation(np.ones(block.size), np.full(block.size, NEVER, dtype=np.int8))
        plan = self.planned(block)
        released = self._released(plan)
        released = released if plan.lifted is None else plan.lifted.released(released)
        return Expectation(released, self._certainty(plan))

    def explain(self, block: Block, labels: Sequence[Label]) -> Explanation:
        """How likely each record is redacted, and how likely releasing begins with it if the walk
        from the nearer cluster gets there, by the value it has.
        """
        released, certainty = self.expect(block, np.empty(0))
        if self.order > 1:  # walks see tuples
            return Explanation(certainty, {f"{REDACTED})": 1.0 - released})
        stops = np.zeros((block.size, self.k))
        if block.secrets.count:
            plan = self.planned(block)
            nearest = np.full(block.size, NEVER_REACHED)
            for column in _BOTH:
                self._explain_side(plan, column, nearest, stops)
        columns = {f"{REDACTED})": 1.0 - released}
        columns |= {f"Pr(stop | {label})": stops[:, i] for i, label in enumerate(labels)}
        return Explanation(certainty, columns)

    def _explain_side(self, plan: Plan, column: int, nearest: Integers, stops: Floats) -> None:
        """Note how likely walks to one side stop at records that no other cluster is nearer to."""
        for law, some in self._by_law(plan, column):
            if law is None:
                continue
            by_distance = np.zeros((len(law.released), self.k))
            by_distance[law.levels] = law.stops
            reach = np.minimum(int(law.levels[-1]), plan.clusters.gaps[some, column])
            rows, distance, _ = _beside(plan, column, some, reach)
            nearer = distance < nearest[rows]
            rows, distance = rows[nearer], distance[nearer]
            nearest[rows], stops[rows] = distance, by_distance[distance]

    def _released(self, plan: Plan) -> Floats:
        """(n,) the probability that each record leaves."""
        released = np.ones(plan.ground.block.size)
        ends = plan.clusters.ends
        released[ranges(ends.low, ends.high) - plan.ground.block.rows.start] = 0.0
        meets = _meets(plan)
        for column in _BOTH:
            for law, some in self._by_law(plan, column):
                alone = some[~meets[some, column]]
                rows, distance, _ = _beside(plan, column, alone, plan.clusters.gaps[alone, column])
                if law is None:
                    released[rows] = 0.0
                else:
                    released[rows] *= law.released[np.minimum(distance, len(law.released) - 1)]
        self._release_gaps(plan, np.flatnonzero(meets[:, RIGHT]), released)
        rows, chances = self.bridges.released(self.bridges.gaps_of(plan.clusters))
        released[rows - plan.ground.block.rows.start] = chances
        return released

    def _release_gaps(self, plan: Plan, some: Integers, released: Floats) -> None:
        """Note how likely records of gaps leave in which two walks may meet, to the right of some
        clusters.
        """
        gaps = plan.clusters.gaps[some, RIGHT]
        shapes = np.stack(
            (
                plan.choice.sides[some, RIGHT],
                plan.choice.sides[some + 1, LEFT],
                plan.blocked[some, RIGHT],
                plan.blocked[some + 1, LEFT],
                gaps,
            ),
            axis=1,
        )
        rows, distance, which = _beside(plan, RIGHT, some, gaps)
        different, shape_of = np.unique(shapes, axis=0, return_inverse=True)
        for number, shape in enumerate(different.tolist()):
            inside = np.flatnonzero(shape_of[which] == number)
            released[rows[inside]] = self.kit.gap(*shape)[distance[inside]]

    def _by_law(self, plan: Plan, column: int) -> Iterator[tuple[SideLaw | None, Integers]]:
        """The laws of walks to one side, and which clusters have each."""
        sides = 2 * plan.choice.sides[:, column] + plan.blocked[:, column]
        for number in np.unique(sides).tolist():
            side, blocked = divmod(number, 2)
            deadline = int(self._packed.deadlines[side])
            law = window_law(deadline, self.k) if blocked else self.kit.law(side)
            yield law, np.flatnonzero((sides == number) & ~plan.clusters.bridged[:, column])

    def _certainty(self, plan: Plan) -> Certainty:
        """What is redacted whatever is drawn, and what never."""
        gaps, faces = plan.clusters.gaps, plan.clusters.faces
        deadlines = plan.deadlines
        nearest = np.where(plan.blocked, deadlines, self._packed.nearest[plan.choice.sides])
        others, beyond = plan.clusters.facing(deadlines), plan.clusters.facing(nearest)
        never = faces & ((nearest > gaps + 1 - others) | (beyond > gaps + 1 - deadlines))
        always = np.where(never, gaps, np.minimum(nearest - 1, gaps))
        ever = np.where(_meets(plan), gaps, np.minimum(deadlines - 1, gaps))
        bridged = plan.clusters.bridged
        always, ever = np.where(bridged, 0, always), np.where(bridged, gaps, ever)
        certainty = np.full(plan.records.size, NEVER, dtype=np.int8)
        certainty[_covered(plan, ever)] = AT_TIMES
        certainty[_covered(plan, always)] = ALWAYS
        if plan.lifted is not None:
            certainty[plan.lifted.hidden] = ALWAYS
        return certainty


def _met(plan: Plan, stops: Integers) -> Integers:
    """(c, 2) where releasing begins: nowhere in a gap in which a walk stopped where the other one
    might have looked (O10).
    """
    gaps, faces = plan.clusters.gaps, plan.clusters.faces
    apart = stops <= gaps + 1 - plan.clusters.facing(plan.deadlines)
    both = apart & (plan.clusters.facing(apart.astype(np.int64)) > 0)
    return np.where(faces & ~plan.clusters.bridged & ~both, gaps + 1, stops)


def _meets(plan: Plan) -> Mask:
    """(c, 2) which gaps are so short that two walks may look at the same record."""
    clusters, deadlines = plan.clusters, plan.deadlines
    near = clusters.gaps < deadlines + clusters.facing(deadlines) - 1
    return clusters.faces & ~clusters.bridged & near


def _beside(
    plan: Plan, column: int, some: Integers, sizes: Integers
) -> tuple[Integers, Integers, Integers]:
    """Rows of the block to one side of some clusters within sizes (n,) of them, how far from them
    each stands, and beside which of them.
    """
    block, ends = plan.ground.block, plan.clusters.ends
    reach = np.zeros((len(some), 2), dtype=np.int64)
    reach[:, column] = sizes
    mine = Secrets(*(values[some] for values in vars(ends).values()))
    begin, end = mine.bounds(block.chains, reach, np.zeros(reach.shape, dtype=bool))
    begin, end = (begin, mine.low) if column == LEFT else (mine.high, end)
    counts = np.maximum(end - begin, 0)
    which = np.repeat(np.arange(len(some)), counts)
    rows = ranges(begin, end)
    place = plan.ground.place_of(mine.chain[which], rows)
    distance = mine.first[which] - place if column == LEFT else place - mine.last[which]
    return rows - block.rows.start, distance, which


def _covered(plan: Plan, sizes: Integers) -> Integers:
    """Records inside clusters and within sizes (c, 2) of them, some of them twice: rows of the
    block that is decided.
    """
    block, ends, rests = plan.records, plan.clusters.ends, np.zeros(sizes.shape, dtype=bool)
    if plan.lifted is not None:
        ends = plan.lifted.ends(plan.clusters)
        sizes, rests = plan.lifted.sizes(sizes, plan.clusters)
    begin, end = ends.bounds(block.chains, sizes, rests)
    return ranges(begin - block.rows.start, end - block.rows.start)


def _among_possible(way: Way) -> Floats:
    """A way's kernel on the values that can occur."""
    return np.ascontiguousarray(way.kernels[0][np.ix_(way.possible, way.possible)])
