"""What a mechanism and a policy are.

A mechanism needs a name and one of two methods: `rules`, the side rules of a setting under one
chain, or `design`, the policy for a problem. Each has a default made of the other, and everything
about tables, coverage and files follows from either.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from offrecord.errors import InputError
from offrecord.files import checked_content, read_json, write_text
from offrecord.mechanisms.rules import Pair, Setting, kind_named
from offrecord.models.base import Floats, Mask
from offrecord.models.chain import MarkovChain
from offrecord.models.members import Members
from offrecord.models.promise import Promise
from offrecord.text import Progress
from offrecord.theory.leakage import figure
from offrecord.theory.pairs import ROUNDING
from offrecord.theory.problem import Problem

MAX_OUTCOMES = 20  #: the most records of which every outcome is listed
#: Budgets tried in turn where a validation fails, as shares of ε: most pass at once; of windows a
#: lower budget changes nothing until it takes one more record.
TIGHTENED = (1.0, 0.985, 0.96, 0.92, 0.86, 0.78, 0.68, 0.55, 0.4, 0.2)


class Unserved(InputError):  # noqa: N818 - reads as the reason it is
    """A mechanism has no rules within ε for a model; the window is tried next."""


class Mechanism(ABC):
    """What decides which records are redacted. Subclasses are frozen dataclasses.

    joins: its rules are not local, so runs that are near become one and need rules of their own,
    and private records cannot be protected each by itself. is_compared: `redact` considers it where
    no mechanism is asked for.
    """

    joins: ClassVar[bool] = False
    is_compared: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """The name on the command line."""

    @property
    def quicker(self) -> Self:
        """What makes the rules that are only tried, where a search makes many of them."""
        return self

    def design(self, problem: Problem) -> Policy:
        """The policy for a problem; by default the rules around each private record or run.

        Args:
            problem: which records are private, under which chains, within which ε.

        Returns:
            A policy whose leakage is at most ε.

        Raises:
            InputError: For a problem that the mechanism does not take.
        """
        from offrecord.mechanisms.rules_policy import policy_of_rules

        return policy_of_rules(self, problem)

    def rules(self, mean: Members, setting: Setting, epsilon: float) -> Pair:
        """The rules of a setting under one chain; by default what `design` does in a long chain.

        Args:
            mean: the chain (M = 1).
            setting: where the rules act.
            epsilon: the budget.

        Returns:
            The rules of both sides, None on a side without records.

        Raises:
            Unserved: Where the mechanism has no rules within ε.
        """
        from offrecord.mechanisms.local_mechanism import rules_of_policy

        return rules_of_policy(self, mean, setting, epsilon)

    def attempts(
        self, promise: Promise, settings: Collection[Setting], epsilon: float, watch: Progress
    ) -> Iterator[dict[Setting, Pair]]:
        """The rules of a table to validate in turn, each stricter than those before.

        By default those of the mean chain, at the largest budget at which enough of the plausible
        chains keep ε or less. Of several chains, a window stands in for each setting in which it
        redacts less: a mechanism that is to act in any case makes its rules here.

        Args:
            promise: the chains that ε is promised for.
            settings: those that occur.
            epsilon: the budget.
            watch: follows the progress.

        Yields:
            The rules of each setting.

        Raises:
            Unserved: Where there are no such rules, or judging them would take too long.
        """
        from offrecord.mechanisms.design_table import rules_of_mean

        for share in TIGHTENED:
            yield rules_of_mean(self, promise, settings, epsilon * share, watch)


class Policy(ABC):
    """What a mechanism decided for one problem.

    kind, version: how policy files call it; a file that names no kind holds a local policy. held:
    what its files hold besides the problem.
    """

    kind: ClassVar[str]
    version: ClassVar[int]
    held: ClassVar[str]
    problem: Problem
    mechanism: str

    @property
    @abstractmethod
    def leakages(self) -> Floats:
        """(M,) the leakage under each plausible chain, ∞ included."""

    @property
    def leakage(self) -> float:
        """The promise's figure of the leakage, ∞ included."""
        return figure(self.problem, self.leakages)

    @property
    def is_private(self) -> bool:
        """Whether the leakage is within ε, rounding included; a file's policy may not be."""
        return self.leakage <= self.problem.epsilon + ROUNDING

    @property
    @abstractmethod
    def utility(self) -> float:
        """Expected share of the records that is released."""

    @abstractmethod
    def outcomes(self, values: Sequence[int]) -> Iterator[tuple[Mask, float]]:
        """Every possible release of one sequence of values, for few records.

        Args:
            values: n values, 0 … k − 1, at most MAX_OUTCOMES of them.

        Returns:
            Masks of released records, with their probabilities.

        Raises:
            InputError: For another number of values.
        """

    def _check_listed(self, values: Sequence[int]) -> None:
        n = self.problem.n
        if len(values) != n or n > MAX_OUTCOMES:
            raise InputError(
                f"outcomes are listed for {n} values, if they are at most {MAX_OUTCOMES}, got"
                f" {len(values)}"
            )

    def apply(self, values: Sequence[int], rng: np.random.Generator) -> Mask:
        """One release of a sequence, for simulations: tables use keyed coins.

        Args:
            values: n values, 0 … k − 1.
            rng: draws the outcome.

        Returns:
            (n,) true where a record is released.
        """
        drawn = list(self.outcomes(values))
        return drawn[rng.choice(len(drawn), p=[chance for _, chance in drawn])][0]

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """What `offrecord design --json` prints."""

    # What summaries and files of every kind begin with.
    def _head(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism,
            "n": self.problem.n,
            "private": list(self.problem.private),
            "protect": self.problem.protect,
            "epsilon": self.problem.epsilon,
            "leakage": self.leakage if math.isfinite(self.leakage) else "inf",
            "utility": self.utility,
        }

    def to_dict(self) -> dict[str, Any]:
        """The content of a policy file."""
        return {
            "format": "offrecord-policy",
            "version": self.version,
            "kind": self.kind,
            **self._head(),
            "model": self.problem.chain.to_dict(),
            self.held: self._held(),
        }

    @abstractmethod
    def _held(self) -> Any:
        """What a file says under the name `held`."""

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """The policy of a file's content; its leakage and utility are computed anew.

        The promise is for the file's one chain, whatever it was designed for.
        """
        keys = ("model", "n", "private", "protect", "epsilon", cls.held)
        content = checked_content(content, "policy", cls.version, keys)
        given = content["n"], content["private"], content["epsilon"], content["protect"]
        problem = Problem(MarkovChain.from_dict(content["model"]), *given)
        return cls._from_file(problem, content, str(content.get("mechanism", "unnamed")))

    @classmethod
    @abstractmethod
    def _from_file(cls, problem: Problem, content: dict[str, Any], mechanism: str) -> Self:
        """The policy of a file's problem and the other content; InputError if it is none."""

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a policy file, complete or not at all.

        Args:
            path: where.
            force: overwrite an existing file.
        """
        write_text(path, json.dumps(self.to_dict(), allow_nan=False) + "\n", force=force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a policy file.

        Args:
            path: the file.

        Returns:
            The policy; of any kind, unless a subclass is asked.

        Raises:
            InputError: For anything else.
        """
        content = read_json(path)
        try:
            name = content.get("kind", "local") if isinstance(content, dict) else None
            kind = kind_named(Policy, name)  # type: ignore[type-abstract] # a subclass
            if not issubclass(kind, cls):
                raise InputError(f"a policy of the kind {kind.kind}, not {cls.kind}")
            return kind.from_dict(content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def __repr__(self) -> str:
        leaks = f"{self.leakage:.4g} {'≤' if self.is_private else '>'} ε = {self.problem.epsilon:g}"
        return f"<Policy {self.mechanism}: utility {self.utility:.4f}, leakage {leaks}>"
