"""OwnerPolicy: stopping rules for one problem."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from offrecord.errors import InputError
from offrecord.files import checked_content
from offrecord.mechanisms.base import Policy, Unserved
from offrecord.mechanisms.deciding import expected_released, geometry, settings_needed
from offrecord.mechanisms.deciding.decide import walked
from offrecord.mechanisms.owner.law import stop_law
from offrecord.mechanisms.rules import Direction, Pair, StoppingRule
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.chain import MarkovChain
from offrecord.models.known import KnownChains
from offrecord.models.members import Members
from offrecord.models.records import Chains, Runs
from offrecord.release.coins import ALWAYS, redacts
from offrecord.text import aligned
from offrecord.theory.leakage import figure
from offrecord.theory.pairs import ROUNDING
from offrecord.theory.problem import Problem

if TYPE_CHECKING:
    from offrecord.mechanisms.base import Mechanism

POLICY_VERSION = 3
MAX_OUTCOMES = 20  #: the most records of which every outcome is listed
_SHOWN = 24  # distances shown to people


@dataclass(frozen=True, eq=False)
class OwnerPolicy(Policy):
    """What a walk away from each private run decides, for one problem.

    table: rules for every setting that occurs among the n records. mechanism: the name of what
    designed them. Near runs count as one, as in tables.
    """

    kind: ClassVar[str] = "stopping"

    problem: Problem
    table: TablePolicy
    mechanism: str

    # ---- what it leaks, and what it releases

    @cached_property
    def leakages(self) -> Floats:
        """(M,) the leakage under each plausible chain: exact about a lone record, of runs the sum
        of both sides.
        """
        return self.table.leakages(self.problem.members)

    @property
    def leakage(self) -> float:
        """See `Policy.leakage`."""
        return figure(self.problem, self.leakages)

    @property
    def is_private(self) -> bool:
        """See `Policy.is_private`."""
        return self.leakage <= self.problem.epsilon + ROUNDING

    @cached_property
    def utility(self) -> float:
        """See `Policy.utility`; between two runs their stops count as independent."""
        records = Records(self.problem)
        found = geometry(records.chains, records.runs, self.problem.chain.order, records.place_of)
        return expected_released(found, self.table, mean_of(self.problem)) / self.problem.n

    @cached_property
    def stopping_law(self) -> tuple[Floats, Floats]:
        """How likely releasing begins at each distance from a core, to the left and to the right.

        Of the first rules that have the side, given enough room; entry d is that of distance d.
        """
        return self._begins("left"), self._begins("right")

    def _begins(self, direction: Direction) -> Floats:
        for setting, pair in sorted(self.table.rules.items()):
            rule = pair.left if direction == "left" else pair.right
            if isinstance(rule, StoppingRule):
                law = np.zeros(rule.reach + 2)
                found = stop_law(rule, mean_of(self.problem), setting.place, direction)
                law[rule.levels - rule.order + 1] = found[0]
                return law
            if rule is not None:
                return np.asarray((np.arange(rule.reach + 2) == rule.reach + 1) * 1.0)
        return np.zeros(0)

    def outcomes(self, values: Sequence[int]) -> Iterator[tuple[Mask, float]]:
        """See `Policy.outcomes`.

        Raises:
            InputError: For another number of values than n, or more than MAX_OUTCOMES.
        """
        n = self.problem.n
        if len(values) != n or n > MAX_OUTCOMES:
            raise InputError(
                f"outcomes are listed for {n} values, if they are at most {MAX_OUTCOMES}, got"
                f" {len(values)}"
            )
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

    # ---- for machines

    def summary(self) -> dict[str, Any]:
        """See `Policy.summary`."""
        left, right = self.stopping_law
        return {**self._said(), "stopping_law": {"left": left.tolist(), "right": right.tolist()}}

    def _said(self) -> dict[str, Any]:
        problem = self.problem
        return {
            "mechanism": self.mechanism,
            "n": problem.n,
            "private": list(problem.private),
            "protect": problem.protect,
            "epsilon": problem.epsilon,
            "leakage": self.leakage if math.isfinite(self.leakage) else "inf",
            "utility": self.utility,
        }

    def to_dict(self) -> dict[str, Any]:
        """See `Policy.to_dict`."""
        return {
            "format": "offrecord-policy",
            "version": POLICY_VERSION,
            "kind": self.kind,
            **self._said(),
            "model": self.problem.chain.to_dict(),
            "rules": self.table.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """See `Policy.from_dict`. The promise is for the file's one chain."""
        keys = ("model", "n", "private", "protect", "epsilon", "rules")
        content = checked_content(content, "policy", POLICY_VERSION, keys)
        given = content["n"], content["private"], content["epsilon"], content["protect"]
        problem = Problem(MarkovChain.from_dict(content["model"]), *given)
        table = TablePolicy.from_dict(content["rules"])
        missing, kind = Records(problem).settings() - set(table.rules), cls
        if problem.epsilon == 0 and not table.rules:
            from offrecord.mechanisms.owner.greedy import GreedyPolicy

            kind = GreedyPolicy  # type: ignore[assignment] # nothing but the problem decides it
        elif missing:
            raise InputError(f"this policy has no rules for {sorted(missing)[0]}")
        return kind(problem, table, str(content.get("mechanism", "unnamed")))

    # ---- for people

    def __repr__(self) -> str:
        leakage = f"leakage {self.leakage:.4g}, ε = {self.problem.epsilon:g}"
        return f"<OwnerPolicy {self.mechanism}: utility {self.utility:.4f}, {leakage}>"

    def __str__(self) -> str:
        return "\n".join([*self._headlines(), "", aligned(self._table())])

    def _headlines(self) -> list[str]:
        problem = self.problem
        return [
            f"{self.mechanism}: releases {self.utility:.2%} of {problem.n} records, leakage"
            f" {self.leakage:.6g} of ε = {problem.epsilon:g}",
            "not local: who redacts must see all values",
        ]

    def _table(self) -> list[list[str]]:
        """How likely releasing has begun, by distance."""
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

    def __init__(self, problem: Problem, values: Integers | None = None) -> None:
        n = problem.n
        codes = np.zeros(n, dtype=np.int8) if values is None else values.astype(np.int8)
        private = np.zeros(n, dtype=bool)
        private[np.array(problem.private) - 1] = True
        self.chains = Chains(np.array([0, n]), codes, np.arange(n), False, None)
        self.runs = Runs.of(self.chains, private)
        self.order = problem.chain.order
        self._places = problem.members.places

    def place_of(self, chain: Integers, step: Integers) -> Integers:
        """The place of records; see `deciding`. A problem begins at the first place."""
        places = self._places
        if places is None:
            return np.zeros_like(step)
        return step % places.count if places.cyclic else np.minimum(step, places.count - 1)

    def settings(self) -> set[Any]:
        """The settings that occur."""
        return settings_needed(self.chains, self.runs, self.order, "run", self.place_of)


def designed_policy(problem: Problem, mechanism: Mechanism) -> OwnerPolicy:
    """The owner's policy for a problem, whose leakage is at most ε.

    Args:
        problem: which records are private, and under which chains.
        mechanism: what makes the rules.

    Returns:
        For one known chain rules of any chain length; for a posterior those of a table, validated.

    Raises:
        InputError: Where no stopping rules and no window keep ε.
    """
    from offrecord.mechanisms.design_table import TIGHTENED, design_table
    from offrecord.mechanisms.owner.greedy import GreedyPolicy
    from offrecord.mechanisms.owner.search import Plausible, Search

    settings = sorted(Records(problem).settings())
    if problem.epsilon == 0 and problem.is_for_one_chain:
        return GreedyPolicy(problem, _policy(problem, mechanism.name, {}), mechanism.name)
    fitted = not isinstance(problem.promise, KnownChains)
    if fitted or problem.epsilon == 0 or problem.members.contexts > 64:
        table = design_table(mechanism, problem.promise, problem.epsilon, "run", settings)
        return OwnerPolicy(problem, table, table.mechanism)
    chains = Plausible(mean_of(problem), problem.members, problem.members)
    for share in TIGHTENED:  # sides of different places meet around a run
        budget = share * problem.epsilon
        rules = {one: Search(chains, one, budget).best().pair for one in settings}
        policy = OwnerPolicy(problem, _policy(problem, mechanism.name, rules), mechanism.name)
        if policy.is_private:
            return policy
    raise Unserved("stopping rules of these places do not keep ε together")


def _policy(problem: Problem, name: str, rules: dict[Any, Pair]) -> TablePolicy:
    return TablePolicy(name, problem.epsilon, "run", problem.promise.coverage, rules)


def mean_of(problem: Problem) -> Members:
    """The chain of a problem (M = 1), with the places of its members."""
    if not isinstance(problem.promise, KnownChains):
        length = None if problem.members.places is None else problem.n
        return KnownChains([problem.chain]).of_length(length)
    chains = [problem.chain, *problem.promise.chains]
    return KnownChains(chains).of_length(problem.n).part(slice(0, 1))


# ---- every outcome


class _UnsureError(Exception):
    """A coin whose outcome is not fixed yet."""


def enumerated(records: Records, table: TablePolicy, order: int) -> Iterator[tuple[Mask, float]]:
    """Every set of redacted records that one sequence may get, with its probability."""
    fixed: list[tuple[tuple[int, ...], bool]] = []
    waiting = [(fixed, 1.0)]
    while waiting:
        fixed, chance = waiting.pop()
        known = dict(fixed)

        def coin(limits: Any, chain: Any, first: Any, counter: Any, known: Any = known) -> Mask:
            stops = np.zeros(len(limits), dtype=bool)
            for i, (limit, *who) in enumerate(zip(limits, first, counter, strict=True)):
                name = (int(who[0]), int(who[1]))
                if limit == ALWAYS:
                    stops[i] = True
                elif limit > 0:
                    if name not in known:
                        raise _UnsureError(name, float(limit) / 2.0**64)
                    stops[i] = known[name]
            return stops

        try:
            yield _walked(records, table, coin, order), chance
        except _UnsureError as unsure:
            name, stops = unsure.args
            waiting.append(([*fixed, (name, True)], chance * stops))
            waiting.append(([*fixed, (name, False)], chance * (1.0 - stops)))


def _walked(records: Records, table: TablePolicy, coin: Any, order: int) -> Mask:
    """(n,) which records are redacted; all of a chain that is private from end to end."""
    return walked(records.chains, records.runs, table, records.place_of, coin, order)
