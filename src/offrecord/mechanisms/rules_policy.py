"""RulesPolicy: side rules for one problem, as a table with one chain would have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.base import TIGHTENED, Mechanism, Policy, Unserved
from offrecord.mechanisms.deciding.decide import local_redaction, walked
from offrecord.mechanisms.deciding.expect import expected_released, geometry
from offrecord.mechanisms.deciding.layout import settings_needed
from offrecord.mechanisms.design_table import design_table
from offrecord.mechanisms.local_policy import LocalPolicy
from offrecord.mechanisms.rules import Direction, Pair, Setting
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.members import Members
from offrecord.models.promise import KnownChains
from offrecord.models.records import Chains, Runs
from offrecord.release.coins import ALWAYS, Draws, redacts
from offrecord.text import aligned, plain
from offrecord.theory.problem import Problem

_SHOWN = 24  # distances shown to people


@dataclass(frozen=True, eq=False, repr=False)
class RulesPolicy(Policy):
    """What a walk away from each private run decides, for one problem.

    table: rules for every setting that occurs among the n records. mechanism: the name of what
    designed them. Near runs count as one, as in tables.
    """

    kind: ClassVar[str] = "stopping"
    version: ClassVar[int] = 3
    held: ClassVar[str] = "rules"

    problem: Problem
    table: TablePolicy
    mechanism: str

    @cached_property
    def leakages(self) -> Floats:
        """(M,) the leakage under each plausible chain: exact about a lone record, of runs the sum
        of both sides.
        """
        return self.table.leakages(self.problem.members)

    @cached_property
    def utility(self) -> float:
        """See `Policy.utility`; between two runs their stops count as independent."""
        records = Records(self.problem)
        found = geometry(records.chains, records.runs, self.problem.chain.order, records.place_of)
        return expected_released(found, self.table, mean_of(self.problem)) / self.problem.n

    @cached_property
    def stopping_law(self) -> tuple[Floats, Floats]:
        """How likely releasing begins at each distance from a core, to the left and to the right.

        Of the first rules that have the side, given enough margin; entry d is that of distance d.
        """
        return self._begins("left"), self._begins("right")

    def _begins(self, direction: Direction) -> Floats:
        for setting, pair in sorted(self.table.rules.items()):
            rule = pair.left if direction == "left" else pair.right
            if rule is not None:
                law = rule.stop_law(mean_of(self.problem), setting.place, direction)[0]
                return np.append(0.0, law)
        return np.zeros(0)

    def outcomes(self, values: Sequence[int]) -> Iterator[tuple[Mask, float]]:
        """See `Policy.outcomes`."""
        self._check_listed(values)
        found: dict[bytes, float] = {}
        records = Records(self.problem, np.asarray(values))
        for redacted, chance in enumerated(records, self.table, self.problem.chain.order):
            found[redacted.tobytes()] = found.get(redacted.tobytes(), 0.0) + chance
        for redacted_bytes, chance in found.items():
            yield ~np.frombuffer(redacted_bytes, dtype=bool), chance

    def apply(self, values: Sequence[int], rng: np.random.Generator) -> Mask:
        """See `Policy.apply`."""
        records = Records(self.problem, np.asarray(values))

        def coin(limits: Any, *_: Any) -> Mask:
            return redacts(rng.integers(2**64, size=len(limits), dtype=np.uint64), limits)

        return ~_walked(records, self.table, coin, self.problem.chain.order)

    def summary(self) -> dict[str, Any]:
        """See `Policy.summary`."""
        left, right = self.stopping_law
        return {**self._head(), "stopping_law": {"left": left.tolist(), "right": right.tolist()}}

    def _held(self) -> Any:
        return self.table.to_dict()

    @classmethod
    def _from_file(cls, problem: Problem, content: dict[str, Any], mechanism: str) -> Self:
        table, kind = TablePolicy.from_dict(content[cls.held]), cls
        missing = Records(problem).settings() - set(table.rules)
        if problem.epsilon == 0 and not table.rules:
            from offrecord.mechanisms.owner.greedy import GreedyPolicy

            kind = GreedyPolicy  # type: ignore[assignment] # nothing but the problem decides it
        elif missing:
            raise InputError(f"this policy has no rules for {sorted(missing)[0]}")
        return kind(problem, table, mechanism)

    def __str__(self) -> str:
        head = (
            f"{self.mechanism}: releases {self.utility:.2%} of {self.problem.n} records, leakage"
            f" {self.leakage:.6g} of ε = {self.problem.epsilon:g}"
        )
        says = "not local: who redacts must see all values"
        return "\n".join([plain(head), says, "", aligned(self._table())])

    # How likely releasing has begun, by distance.
    def _table(self) -> list[list[str]]:
        laws = [np.cumsum(law) for law in self.stopping_law]
        longest = max(len(law) for law in laws)
        listed = np.unique(np.geomspace(1, max(longest - 1, 1), _SHOWN).round().astype(int))
        rows = [["distance", "released on the left", "on the right"]]
        for distance in listed.tolist():
            cells = [f"{law[min(distance, len(law) - 1)]:.4f}" if len(law) else "" for law in laws]
            rows.append([str(distance), *cells])
        return rows


class Records:
    """A problem as one chain of a table."""

    def __init__(
        self, problem: Problem, values: Integers | None = None, *, protect: str = "run"
    ) -> None:
        n = problem.n
        codes = np.zeros(n, dtype=np.int8) if values is None else values.astype(np.int8)
        private = np.zeros(n, dtype=bool)
        private[np.array(problem.private) - 1] = True
        self.chains = Chains(np.array([0, n]), codes, np.arange(n), False, None)
        self.runs = Runs.of(self.chains, private, each=protect == "each")
        self.order, self.protect = problem.chain.order, protect
        self._places = problem.members.places

    def place_of(self, chain: Integers, step: Integers) -> Integers:
        """The place of records; see `deciding`. A problem begins at the first place."""
        places = self._places
        if places is None:
            return np.zeros_like(step)
        return step % places.count if places.cyclic else np.minimum(step, places.count - 1)

    def settings(self, *, joining: bool = True) -> set[Setting]:
        """The settings that occur; see `settings_needed`."""
        protect: Any = self.protect
        where = self.chains, self.runs, self.order, protect, self.place_of
        return settings_needed(*where, joining=joining)


def policy_of_rules(
    mechanism: Mechanism, problem: Problem, rules: Callable[[Setting, float], Pair] | None = None
) -> Policy:
    """A policy within ε of the rules that a mechanism makes for a problem's settings.

    rules: makes those of a setting and a budget, in place of the mechanism's own.

    Raises InputError where the mechanism has no rules within ε.
    """
    protect = "run" if mechanism.joins else problem.protect
    settings = sorted(Records(problem, protect=protect).settings(joining=mechanism.joins))
    if not isinstance(problem.promise, KnownChains):
        table = design_table(mechanism, problem.promise, problem.epsilon, protect, settings)
        return policy_of_table(problem, table)
    if rules is None:
        mean = mean_of(problem)
        rules = partial(mechanism.rules, mean)
    for share in TIGHTENED:  # rules of one chain at less than ε, for the others of a list
        made = {one: rules(one, share * problem.epsilon) for one in settings}
        table = TablePolicy(mechanism.name, problem.epsilon, protect, None, made)
        policy = policy_of_table(problem, table)
        if policy.is_private:
            return policy
    raise Unserved(f"{mechanism.name} has no rules that keep ε together")


def policy_of_table(problem: Problem, table: TablePolicy) -> Policy:
    """The policy of a problem whose records a table's rules decide."""
    if not table.is_local:
        return RulesPolicy(problem, table, table.mechanism)
    if not table.sides:  # the private run is the whole chain
        return LocalPolicy(problem, np.ones((problem.n, problem.chain.k)), table.mechanism)
    of = Records(problem, protect=table.protect)
    matrix = local_redaction(of.chains, of.runs, table, of.place_of, of.order)
    assert matrix is not None  # the rules are local
    return LocalPolicy(problem, matrix, table.mechanism)


def mean_of(problem: Problem) -> Members:
    """The chain of a problem (M = 1), with the places of its members."""
    if not isinstance(problem.promise, KnownChains):
        length = None if problem.members.places is None else problem.n
        return KnownChains([problem.chain]).of_length(length)
    chains = [problem.chain, *problem.promise.chains]
    return KnownChains(chains).of_length(problem.n).part(slice(0, 1))


class _Scripted:
    """Coins that show what a script says, in the order they are tossed in, then never stop."""

    def __init__(self, script: tuple[bool, ...]) -> None:
        self.script = script
        self.shown: list[bool] = []
        self.chance = 1.0

    def __call__(self, limits: Draws, *_: Any) -> Mask:
        stops = np.asarray(limits == ALWAYS)
        for i in np.flatnonzero((limits > 0) & ~stops):
            tossed = len(self.shown)
            stops[i] = tossed < len(self.script) and self.script[tossed]
            self.shown.append(bool(stops[i]))
            stopping = float(limits[i]) / 2.0**64
            self.chance *= stopping if stops[i] else 1.0 - stopping
        return stops


def enumerated(records: Records, table: TablePolicy, order: int) -> Iterator[tuple[Mask, float]]:
    """Every set of redacted records that one sequence may get, with its probability."""
    scripts: list[tuple[bool, ...]] = [()]
    while scripts:
        coin = _Scripted(scripts.pop())
        yield _walked(records, table, coin, order), coin.chance
        for tossed in range(len(coin.script), len(coin.shown)):
            scripts.append((*coin.shown[:tossed], True))


# (n,) which records are redacted; all of a chain that is private from end to end.
def _walked(records: Records, table: TablePolicy, coin: Any, order: int) -> Mask:
    return walked(records.chains, records.runs, table, records.place_of, coin, order)
