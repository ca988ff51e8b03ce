"""What a mechanism is, in three protocols: a design around one secret, what decides by designs,
and a policy for one problem.

Nothing here says that a policy is a matrix. The local kind (local/) has one; another kind brings
its own design, its own decider and its own policy, and one line in the registry of `mechanisms`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self
from warnings import warn

from offrecord.errors import InputError
from offrecord.files import read_json, write_text
from offrecord.mechanisms.blocks import Block, Decision, Draw, Expectation, Explanation, Mask
from offrecord.mechanisms.surroundings import Nearness, Surrounding
from offrecord.mechanisms.workshop import Workshop
from offrecord.models.base import Floats, Label, Model
from offrecord.release.certificate import Composition
from offrecord.theory.problem import Problem


class Mechanism(Protocol):
    """What designs: a small frozen object, known by its name. designs: what it makes."""

    designs: ClassVar[type[Design]]
    #: Of a table it releases at least what the best window does, by expectation: where designs
    #: together come to less, windows take their place.
    keeps_to_windows: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The name on the command line."""

    def unserved(self, model: Model) -> str | None:
        """Why it does not serve the tables of a model; None where it does."""
        return None

    def design(self, problem: Problem) -> Policy:
        """The policy for a problem; its leakage is at most ε."""

    def around(self, problem: Problem, surrounding: Surrounding) -> Design:
        """The design around the one secret of a problem, which is that of a surrounding."""

    def nearness(self, model: Model, epsilon: float, protect: str, room: int) -> Nearness | None:
        """Which secrets of a table it designs together, where more than `room` makes no difference;
        None: each by itself.
        """
        return None

    def together(self, problem: Problem, surrounding: Surrounding) -> Design | None:
        """One design for a cluster of near secrets; None where that gains nothing."""
        return None

    def at_once(self, problem: Problem) -> Policy | None:
        """Where `design` takes longer than a few hundredths of a second: a policy that is private
        too, does not, and releases a little less. None where it does not, or there is none.
        """
        return None

    def workshop(self, model: Model, epsilon: float, protect: str, room: int) -> Workshop:
        """Where designs for the secrets of one table are made, none of which needs more room."""
        return Workshop(self, model, epsilon, protect)


class Design(Protocol):
    """What a mechanism makes around one secret, for every place with these surroundings.

    kind: what designs of this class are called in files and certificates. shares: what is called
    there what several have in common. composition: how they act together on one table, and why that
    is private.
    """

    kind: ClassVar[str]
    shares: ClassVar[str]
    composition: ClassVar[Composition]

    @property
    def surrounding(self) -> Surrounding:
        """What it was made for."""

    @property
    def leakage(self) -> float:
        """Proven for what it was made for, up to its rounding."""

    @property
    def rounding(self) -> float:
        """No further than this is `leakage` from what it stands for."""

    @property
    def method(self) -> str:
        """How its leakage was found, as `theory.leakage` calls it."""

    @property
    def window(self) -> tuple[int, int]:
        """How far the best data-independent mechanism would redact to the left and right."""

    @property
    def reach(self) -> int:
        """How far it redacts, apart from what it redacts to the chain's end."""

    @property
    def identity(self) -> bytes:
        """Everything in it that decides which records are redacted."""

    @property
    def lasting(self) -> dict[str, bytes]:
        """The parts of its identity that stand for themselves, by name: as tables grow, others may
        join them.
        """
        return {"": self.identity}

    @property
    def back(self) -> tuple[int, int] | None:
        """In a table that grows: how far to its left it redacts, and how near to it a later secret
        may change what it does; None: it is not for such tables, or redacts without end.
        """
        return None

    def cost(self, masses: Floats, left: int, right: int) -> float:
        """Expected redactions beside the secret, in rooms no larger than it was made for."""

    def fits(self, order: int) -> bool:
        """It is no longer than the rooms it says it was made for, in a chain of this order."""

    def serves_gaps(self, lengths: Sequence[int]) -> bool:
        """It knows what to do in gaps of these lengths between neighbouring secrets."""
        return True

    def for_gaps(self, lengths: Sequence[int]) -> Self:
        """What acts of it in a table whose gaps have these lengths."""
        return self

    def serves_beyond(self, left: int) -> bool:
        """In a chain that goes on beyond so many records to the left, of which values are not as
        likely as where it was made for: it ends before the last of them, or redacts the left side
        for certain.
        """
        return self.reach + 1 < left

    def loosened(self, slack: float) -> Self:
        """The same, where it may tell so much more than its leakage says."""

    def judged(self, problem: Problem) -> Self | None:
        """With its leakage proven anew; None if it does not fit or leaks more than ε."""

    def leakage_under(self, problem: Problem) -> float:
        """What it would leak if another model were right, its secret being the problem's."""

    def to_dict(self, shared: Shared) -> dict[str, Any]:
        """Its own part of a file; what several designs have in common is numbered in `shared`."""

    @classmethod
    def read(
        cls, entries: Sequence[tuple[Made, Mapping[str, Any]]], shared: Sequence[Any], model: Model
    ) -> list[Self]:
        """As a file says they are, nothing of it proven; ValueError, KeyError … if it cannot be."""

    @classmethod
    def decider(cls, designs: Sequence[Self], model: Model) -> Decider:
        """What decides by these designs; they are known by their numbers."""


class Decider(Protocol):
    """What decides the records of whole chains, block by block; it is pickled, and has no key.

    Several threads may ask at once: what it keeps for later must be the same whoever asks first.
    One that has a `breadth` would rather have so many times as many records at a time.
    """

    def decide(self, block: Block, draw: Draw) -> Decision:
        """Which records leave empty."""

    def expect(self, block: Block, masses: Floats) -> Expectation:
        """What the rule and the model say, without a look at the values."""

    def explain(self, block: Block, labels: Sequence[Label]) -> Explanation:
        """The rule for each record, never what was drawn."""


class Policy(ABC):
    """What every policy can answer: what a mechanism decided for one problem.

    kind: as of designs; a policy file that names none holds a local one.
    """

    kind: ClassVar[str]
    problem: Problem
    mechanism: str

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """A policy was a matrix once, and who makes one by that name still gets it."""
        if cls is not Policy:
            return super().__new__(cls)
        warn("Policy(…) of a matrix is now LocalPolicy(…)", DeprecationWarning, stacklevel=2)
        return super().__new__(_kind_named("local"))  # type: ignore[return-value] # on purpose another kind

    @property
    @abstractmethod
    def leakage(self) -> float:
        """The largest over the secrets, ∞ included."""

    @property
    @abstractmethod
    def is_private(self) -> bool:
        """Within its ε, rounding included: to be asked of what came from a file."""

    @property
    @abstractmethod
    def utility(self) -> float:
        """Expected share of the records that is released."""

    @abstractmethod
    def outcomes(self, values: Sequence[int]) -> Iterator[tuple[Mask, float]]:
        """Every mask of released records that one sequence of values (0 … k − 1) may get, with its
        probability: what definitions are tested against. For few records.
        """

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """What `offrecord design --json` prints."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The content of a policy file."""

    @classmethod
    @abstractmethod
    def from_dict(cls, content: Any) -> Self:
        """The policy of a policy file's content; what it leaks is computed anew."""

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a policy file; complete or absent, and never over an existing one without force."""
        write_text(path, json.dumps(self.to_dict(), allow_nan=False) + "\n", force=force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a policy file; of any kind, unless it is asked of one kind alone."""
        content = read_json(path)
        named = content.get("kind", "local") if isinstance(content, dict) else "local"
        try:
            kind = _kind_named(named)
            if not issubclass(kind, cls):
                raise InputError(f"a policy of the kind {kind.kind}, not {cls.kind}")
            return kind.from_dict(content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def _kind_named(name: Any) -> type[Policy]:
    """The policies of a kind; those of mechanisms that come with the package are all known."""
    import_module("offrecord.mechanisms")  # knows all of them
    for kind in _subclasses(Policy):  # type: ignore[type-abstract] # none is made of it
        if getattr(kind, "kind", None) == name:
            return kind
    raise InputError(f"no policy is of the kind {name!r:.60}")


def _subclasses(kind: type[Policy]) -> Iterator[type[Policy]]:
    for one in kind.__subclasses__():
        yield one
        yield from _subclasses(one)


# ---- what these speak of


class Made(NamedTuple):
    """What a file says about a design of any kind."""

    surrounding: Surrounding
    leakage: float
    rounding: float
    method: str
    window: tuple[int, int]


class Shared:
    """What designs of one file have in common, each thing once."""

    def __init__(self) -> None:
        self.listed: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, name: Hashable, content: Any) -> int:
        """Where the content stands in the list; the same name stands for the same content."""
        if name not in self._numbers:
            self._numbers[name] = len(self.listed)
            self.listed.append(content)
        return self._numbers[name]
