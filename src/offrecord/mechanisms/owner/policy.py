"""OwnerPolicy: what the owner's mechanism decided for one problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from offrecord.errors import InputError
from offrecord.files import checked_content, read_count, read_list
from offrecord.mechanisms.base import Policy, Shared
from offrecord.mechanisms.blocks import Block, Mask, Secrets
from offrecord.mechanisms.owner.deciding.decider import OwnerDecider
from offrecord.mechanisms.owner.files import stopping_from_dict, stopping_to_dict
from offrecord.mechanisms.owner.outcomes import outcomes_of
from offrecord.mechanisms.owner.proof import METHOD, proven_leakage, unserved
from offrecord.mechanisms.owner.stopping import Stopping
from offrecord.mechanisms.owner.ways import Ways
from offrecord.mechanisms.owner.worst import worst_of
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain
from offrecord.models.records import Chains
from offrecord.text import aligned, html_note, html_table
from offrecord.theory.leakage import WorstOutput
from offrecord.theory.problem import Problem, Secret

POLICY_VERSION = 1
#: The most records of which every outcome is listed.
MAX_OUTCOMES = 20
_WHOLE = 100_000  # records that are all looked at
_LISTED = 24  # distances in a table
_DAMAGED = "damaged: it does not hold what a policy of the owner's mechanism holds"


@dataclass(frozen=True, eq=False)
class OwnerPolicy(Policy):
    """stoppings: one that serves every secret, or in a chain that is not stationary one for each.

    Who runs it must see all values: it says where releasing begins, and no record's own line says
    what to do.
    """

    kind: ClassVar[str] = "owner"

    problem: Problem
    mechanism: str
    stoppings: tuple[Stopping, ...]

    @cached_property
    def _proofs(self) -> list[float | None]:
        if unserved(self.problem.chain) is not None:
            return [None]
        return [
            proven_leakage(stopping, Ways.around(problem))
            for stopping, problem in zip(self.stoppings, problems(self.problem), strict=True)
        ]

    @cached_property
    def leakage(self) -> float:
        """What no secret tells more than, by the referee in whole numbers; ∞ if a proof fails."""
        return max(np.inf if one is None else one for one in self._proofs)

    @property
    def is_private(self) -> bool:
        """Proven to be within its ε: always so for what a mechanism designed, to be asked of what
        came from a file.
        """
        budgets = all(one.epsilon == self.problem.epsilon for one in self.stoppings)
        return budgets and self.leakage <= self.problem.epsilon

    @cached_property
    def worst(self) -> WorstOutput:
        """The output that tells most about a private record with enough room on both sides, where
        both walk by themselves. Both sides in turn tell no more than `leakage` either.
        """
        found = [
            worst_of(self.problem, secret, Ways.around(problem), stopping.options[0])
            for stopping, problem, secret in zip(
                self.stoppings, problems(self.problem), self.problem.secrets, strict=False
            )
        ]
        return max(found, key=lambda one: one.leakage)

    # ---- what it releases

    @cached_property
    def decider(self) -> OwnerDecider:
        """What decides by it."""
        rooms = [(secret.first - 1, self.problem.n - secret.last) for secret in self._designed]
        return OwnerDecider.of(self.stoppings, np.array(rooms), self.problem.chain)

    @property
    def _designed(self) -> list[Secret]:
        """The secrets that have a stopping of their own."""
        return self.problem.secrets[: len(self.stoppings)]

    @cached_property
    def utility(self) -> float:
        """Expected share of the n records that is released, exactly."""
        return 1.0 - float(self.redacted.sum()) / self.problem.n

    @cached_property
    def redacted(self) -> Floats:
        """How likely each record is redacted, whatever its value: of all records if they are few,
        else of those that a walk may look at.
        """
        expected = self.decider.expect(self._block(), self.problem.chain.marginal(1)).released
        return np.asarray(1.0 - expected)

    @cached_property
    def stopping_law(self) -> tuple[Floats, Floats]:
        """To the left and right of a single private record with enough room, how likely releasing
        begins at each distance, from 0 to the deadline; nowhere on a closed side.
        """
        return self.decider.alone()

    def outcomes(self, values: Sequence[int]) -> Iterator[tuple[Mask, float]]:
        """Every mask of released records that one sequence of values (0 … k − 1) may get, with its
        probability.
        """
        n = self.problem.n
        if len(values) != n or n > MAX_OUTCOMES:
            raise InputError(
                f"outcomes are listed for {n} values, if they are at most {MAX_OUTCOMES}, got"
                f" {len(values)}"
            )
        found: dict[bytes, float] = {}
        for mask, chance in outcomes_of(self.decider, self._block(np.asarray(values))):
            found[mask.tobytes()] = found.get(mask.tobytes(), 0.0) + chance
        for mask_bytes, chance in found.items():
            yield np.frombuffer(mask_bytes, dtype=bool), chance

    def _block(self, values: Integers | None = None) -> Block:
        """The problem as a chain: all its records if they are few, else those that a walk may look
        at, and the ends.
        """
        problem = self.problem
        ends = np.array(problem.secrets, dtype=np.int64) - 1
        places = _near(ends, problem.n, max(one.reach for one in self.stoppings))
        codes = np.zeros(len(places), dtype=np.int8) if values is None else values.astype(np.int8)
        steps = None if len(places) == problem.n else places
        chains = Chains(np.array([0, len(places)]), codes, places, False, steps)
        low, high = np.searchsorted(places, ends[:, 0]), np.searchsorted(places, ends[:, 1]) + 1
        alone = np.zeros(len(ends), dtype=np.int64)
        secrets = Secrets(alone, ends[:, 0], ends[:, 1], low, high, ends[:, 0])
        which = np.minimum(np.arange(len(ends)), len(self.stoppings) - 1)
        return Block(chains, slice(0, len(places)), secrets, which)

    # ---- for machines

    def summary(self) -> dict[str, Any]:
        """What `offrecord design --json` prints."""
        problem = self.problem
        left, right = self.stopping_law
        return {
            "mechanism": self.mechanism,
            "epsilon": problem.epsilon,
            "n": problem.n,
            "private": list(problem.private),
            "protect": problem.protect,
            "leakage": self.leakage if np.isfinite(self.leakage) else "inf",
            "leakage_is_exact": False,
            "leakage_method": METHOD,
            "utility": self.utility,
            "stopping_law": {"left": left.tolist(), "right": right.tolist()},
            "worst_output": str(self.worst),
        }

    def to_dict(self) -> dict[str, Any]:
        """The content of a policy file."""
        shared, problem = Shared(), self.problem
        numbers = [shared.number(one.identity, stopping_to_dict(one)) for one in self.stoppings]
        return {
            "format": "offrecord-policy",
            "version": POLICY_VERSION,
            "kind": self.kind,
            "mechanism": self.mechanism,
            "model": problem.chain.to_dict(),
            "n": problem.n,
            "private": list(problem.private),
            "protect": problem.protect,
            "epsilon": problem.epsilon,
            "leakage": self.leakage if np.isfinite(self.leakage) else "inf",
            "utility": self.utility,
            "stoppings": shared.listed,
            "by_secret": numbers,
        }

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """The policy of a policy file's content; what it leaks is proven anew, as it will act, and
        InputError if that fails.
        """
        keys = ("model", "n", "private", "protect", "epsilon", "stoppings", "by_secret")
        content = checked_content(content, "policy", POLICY_VERSION, keys)
        chain = MarkovChain.from_dict(content["model"])
        given = content["n"], content["private"], content["epsilon"], content["protect"]
        problem = Problem(chain, *given)
        try:
            known = [
                stopping_from_dict(one, chain.lifted.k) for one in read_list(content["stoppings"])
            ]
            numbers = [read_count(number) for number in read_list(content["by_secret"])]
            designed = problems(problem)
            if len(numbers) != len(designed):
                raise ValueError("a stopping for each secret")
            stoppings = tuple(
                Ways.around(one).told_of(known[number])
                for number, one in zip(numbers, designed, strict=True)
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise InputError(f"{_DAMAGED} ({error})") from None
        policy = cls(problem, str(content.get("mechanism", "unnamed")), stoppings)
        if not policy.is_private:
            raise InputError(
                f"this policy is not proven to keep within its ε = {problem.epsilon:g} for its"
                " model; design it anew"
            )
        return policy

    # ---- for people

    def __repr__(self) -> str:
        told = f"leakage at most {self.leakage:.4g}, ε = {self.problem.epsilon:g}"
        return f"<OwnerPolicy {self.mechanism}: utility {self.utility:.4f}, {told}>"

    def __str__(self) -> str:
        return "\n".join([*self._told(), "", aligned(self._table())])

    def _repr_html_(self) -> str:
        return html_note(*self._told()) + html_table(self._table())

    def _told(self) -> list[str]:
        problem = self.problem
        return [
            f"{self.mechanism}: releases {self.utility:.2%} of {problem.n} records, leakage at most"
            f" {self.leakage:.6g} of ε = {problem.epsilon:g}",
            f"worst output: {self.worst}",
            "not local: who redacts must see all values",
        ]

    def _table(self) -> list[list[str]]:
        """How likely releasing has begun, by distance."""
        laws = [np.cumsum(law) for law in self.stopping_law]
        longest = max(len(law) for law in laws)
        rows = [["distance", "released on the left", "on the right"]]
        for distance in _shown(longest - 1):
            cells = [
                f"{law[distance]:.4f}" if distance < len(law) else ("0" if not len(law) else "1")
                for law in laws
            ]
            rows.append([str(distance), *cells])
        return rows


def problems(problem: Problem) -> list[Problem]:
    """For each stopping that a problem needs, the problem of the one secret it was made for."""
    chain, n, epsilon, protect = problem.chain, problem.n, problem.epsilon, problem.protect
    secrets = problem.secrets[:1] if chain.is_stationary else problem.secrets
    return [Problem(chain, n, range(first, last + 1), epsilon, protect) for first, last in secrets]


def _near(ends: Integers, n: int, reach: int) -> Integers:
    """The places from 0 that lie within reach of a secret, and the first and the last."""
    if n <= _WHOLE:
        return np.arange(n)
    found = [np.array([0, n - 1])]
    found += [
        np.arange(max(first - reach, 0), min(last + reach + 1, n)) for first, last in ends.tolist()
    ]
    return np.unique(np.concatenate(found))


def _shown(longest: int) -> list[int]:
    """Distances that a table lists: the nearest ones, and then ever fewer."""
    listed = np.unique(np.geomspace(1, max(longest, 1), _LISTED).round().astype(int))
    return [int(one) for one in listed]
