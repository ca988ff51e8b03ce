"""Forms: frozen sections that write themselves as JSON and read themselves back strictly.

A section names its fields once, each with its reader: `epsilon: Number`. A reader takes an entry,
which is a value of a document and where it stands there, and gives what the entry holds; InputError
says in one line where something else stands. Nothing is guessed and nothing is dropped: a key that
the form does not name is refused, so that what was read is all that was written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeGuard, TypeVar, get_type_hints

from offrecord.errors import InputError

T = TypeVar("T")

#: Documents larger than this are refused before they are parsed.
MAX_BYTES = 1 << 30
#: Counts end here: below 2^53, so that programs whose numbers are all doubles read the same ones.
MAX_COUNT = 10**15
#: Whole numbers in tables have 16 bytes at most.
MAX_WHOLE = 2**127
#: Where a form leaves room for what it does not know, how deep that may be nested; and how many
#: axes an array may have.
MAX_DEPTH = 32
#: How infinity is written where it may stand, as JSON has no number for it.
INFINITE = "infinite"


# ---- from text to entries


def parsed(text: str | bytes, what: str, most: int = MAX_BYTES) -> Any:
    """The content of a JSON document; InputError for anything that two readers might understand
    differently: a key that comes twice, NaN, numbers that are no finite ones.
    """
    if len(text) > most:
        raise InputError(f"{what} is larger than {most >> 20} MiB")
    try:
        spelled = text if isinstance(text, str) else text.decode()
        return json.loads(
            spelled,
            parse_constant=_no_number,
            parse_float=_finite,
            object_pairs_hook=_each_key_once,
        )
    except UnicodeDecodeError:
        raise InputError(f"{what} is not JSON (not UTF-8 text)") from None
    except InputError as error:
        raise InputError(f"{what} {error}") from None
    except RecursionError:
        raise InputError(f"{what} is nested too deeply") from None
    except ValueError:
        raise InputError(
            f"{what} is not JSON, is truncated, or holds a number too long to read"
        ) from None


def _no_number(name: str) -> Any:
    raise InputError(f"holds {name}, which is no number in JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise InputError(f"holds the number {digits:.60}, which is too large")
    return value


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"holds {twice!r:.60} twice in one object")
    return content


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a document, and where it stands. what: the kind of document, for messages."""

    value: Any
    what: str
    parent: Entry | None = None
    key: str | int = ""

    @property
    def place(self) -> str:
        """Where it stands, such as designs.designs[3].left; made only when it is asked for."""
        if self.parent is None:
            return ""
        before = self.parent.place
        if isinstance(self.key, int):
            return f"{before}[{self.key}]"
        name = self.key if self.key.isidentifier() else f"{self.key!r:.60}"
        return f"{before}.{name}" if before else name

    def refused(self, accepted: str) -> InputError:
        """The error for another value than what is accepted here."""
        return InputError(f"{self._told} must be {accepted}, got {_shown(self.value)}")

    @property
    def _told(self) -> str:
        return self.what if self.parent is None else f'{self.what}: "{self.place}"'

    def items(self) -> list[Entry]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            raise self.refused("a list")
        return [Entry(value, self.what, self, at) for at, value in enumerate(self.value)]

    def members(self) -> dict[str, Entry]:
        """The entries of an object, whatever their names."""
        if not isinstance(self.value, dict):
            raise self.refused("an object")
        for key in self.value:
            if not _is_text(key):
                raise InputError(f"{self._told} must have keys of Unicode text")
        return {key: Entry(value, self.what, self, key) for key, value in self.value.items()}

    def named(self, names: Sequence[str], *, others: bool = False) -> dict[str, Entry]:
        """The entries of an object that has these names; others: and may have more."""
        members = self.members()
        for name in names:
            if name not in members:
                raise InputError(f'{self._told} lacks "{name}"')
        known = set(names)
        unknown = [] if others else [name for name in members if name not in known]
        if unknown:
            raise InputError(f"{self._told} holds {unknown[0]!r:.60}, which the form does not name")
        return members


def _shown(value: Any) -> str:
    """A wrong value, short enough for one line."""
    if isinstance(value, (dict, list, tuple)):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int) and abs(value) > MAX_COUNT:
        return "a huge number"
    return f"{value!r:.60}"


def _is_text(value: Any) -> bool:
    """Text that UTF-8 can write: no half of a surrogate pair, which JSON's escapes can spell."""
    if not isinstance(value, str):
        return False
    return value.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in value)


# ---- readers

Reader: TypeAlias = Callable[[Entry], T]


def text(entry: Entry) -> str:
    """Unicode text."""
    if not _is_text(entry.value):
        raise entry.refused("text")
    return str(entry.value)


def truth(entry: Entry) -> bool:
    """True or false."""
    if not isinstance(entry.value, bool):
        raise entry.refused("true or false")
    return entry.value


def whole(least: int, most: int) -> Reader[int]:
    """A whole number within bounds; 1.0 is none."""

    def read(entry: Entry) -> int:
        if type(entry.value) is not int or not least <= entry.value <= most:
            raise entry.refused(f"a whole number from {least} to {most}")
        return entry.value

    return read


def number(entry: Entry) -> float:
    """A finite number of at least 0. It stays as it is written, 1 or 1.0, which are equal."""
    if not _is_number(entry.value) or entry.value < 0:
        raise entry.refused("a number of at least 0")
    return entry.value


def signed_number(entry: Entry) -> float:
    """A finite number, of either sign."""
    if not _is_number(entry.value):
        raise entry.refused("a number")
    return entry.value


def number_or_infinite(entry: Entry) -> float:
    """A number of at least 0, or the word for an infinite one."""
    if entry.value == INFINITE:
        return math.inf
    if not _is_number(entry.value) or entry.value < 0:
        raise entry.refused(f'a number of at least 0, or "{INFINITE}"')
    return entry.value


def probability(entry: Entry) -> float:
    """A number from 0 to 1."""
    if not _is_number(entry.value) or not 0 <= entry.value <= 1:
        raise entry.refused("a number from 0 to 1")
    return entry.value


def _is_number(value: Any) -> TypeGuard[float]:
    if type(value) is int:
        return abs(value) < 2**1000  # what a float can hold
    return type(value) is float and math.isfinite(value)


def probabilities(entry: Entry) -> tuple[float, ...]:
    """A list of numbers from 0 to 1; entries are made only for those that are not."""
    if not isinstance(entry.value, list):
        raise entry.refused("a list")
    for at, value in enumerate(entry.value):
        if not (type(value) is float and 0.0 <= value <= 1.0):
            probability(Entry(value, entry.what, entry, at))
    return tuple(entry.value)


def array(entry: Entry, axes: int = 0) -> Any:
    """Numbers from 0 to 1 in lists of lists, of any shape."""
    if axes > MAX_DEPTH:
        raise entry.refused(f"nested no deeper than {MAX_DEPTH}")
    if isinstance(entry.value, list) and entry.value and isinstance(entry.value[0], list):
        return tuple(array(item, axes + 1) for item in entry.items())
    return probabilities(entry)


def cell(entry: Entry) -> str | int | bool:
    """What a table may name a chain or a record by: text, a whole number, true or false."""
    if isinstance(entry.value, int) and -MAX_WHOLE <= entry.value < MAX_WHOLE:
        return entry.value
    if not _is_text(entry.value):
        raise entry.refused("text, a whole number, true or false")
    return str(entry.value)


def cells(entry: Entry) -> tuple[str | int | bool, ...]:
    """A list of such names; entries are made only for those that are none."""
    if not isinstance(entry.value, list):
        raise entry.refused("a list")
    for at, value in enumerate(entry.value):
        if not (isinstance(value, str) and value.isascii()):
            cell(Entry(value, entry.what, entry, at))
    return tuple(entry.value)


def label(entry: Entry) -> str | int | float | bool:
    """A value as it appears in the data."""
    if type(entry.value) is float and math.isfinite(entry.value):
        return entry.value
    return cell(entry)


def anything(entry: Entry, depth: int = 0) -> Any:
    """What a form leaves room for: any JSON that is not nested too deeply."""
    if depth > MAX_DEPTH:
        raise entry.refused(f"nested no deeper than {MAX_DEPTH}")
    if isinstance(entry.value, list):
        return [anything(item, depth + 1) for item in entry.items()]
    if isinstance(entry.value, dict):
        return {key: anything(item, depth + 1) for key, item in entry.members().items()}
    return None if entry.value is None else label(entry)


def word(*words: str) -> Reader[str]:
    """One of some words."""
    accepted = " or ".join(f'"{each}"' for each in words)

    def read(entry: Entry) -> str:
        if not isinstance(entry.value, str) or entry.value not in words:
            raise entry.refused(accepted)
        return entry.value

    return read


def matching(fits: Callable[[str], object], accepted: str) -> Reader[str]:
    """Text of which a test holds."""

    def read(entry: Entry) -> str:
        if not isinstance(entry.value, str) or not fits(entry.value):
            raise entry.refused(accepted)
        return entry.value

    return read


def optional(reader: Reader[T]) -> Reader[T | None]:
    """What a reader reads, or null."""
    return lambda entry: None if entry.value is None else reader(entry)


def listed(reader: Reader[T], size: int | None = None) -> Reader[tuple[T, ...]]:
    """A list of what a reader reads; size: how many."""

    def read(entry: Entry) -> tuple[T, ...]:
        items = entry.items()
        if size is not None and len(items) != size:
            raise InputError(f"{entry._told} must be a list of {size}, got {len(items)}")
        return tuple(map(reader, items))

    return read


def mapped(reader: Reader[T]) -> Reader[dict[str, T]]:
    """An object with any names, each holding what a reader reads."""
    return lambda entry: {name: reader(item) for name, item in entry.members().items()}


Text = Annotated[str, text]
Truth = Annotated[bool, truth]
Count = Annotated[int, whole(0, MAX_COUNT)]
Number = Annotated[float, number]
Probability = Annotated[float, probability]
Texts = Annotated[Sequence[str], listed(text)]


# ---- sections


@dataclass(frozen=True, kw_only=True)
class Section:
    """An object of a form. Lists that it is given are kept as tuples, so that it equals the one
    that is read back. rare: fields that stand there only where they are not what they are by
    default.
    """

    rare: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, (list, tuple)):
                object.__setattr__(self, one.name, _tupled(value))

    def to_dict(self) -> dict[str, Any]:
        """Its JSON, by the names of its fields, in their order."""
        return {
            one.name: _plain(getattr(self, one.name))
            for one in fields(self)
            if one.name not in self.rare or getattr(self, one.name) != one.default
        }

    @classmethod
    def read(cls, entry: Entry) -> Self:
        """The section that an entry holds; InputError if it holds anything else."""
        there = entry.members() if cls.rare else {}
        readers = {
            name: reader
            for name, reader in readers_of(cls).items()
            if name not in cls.rare or name in there
        }
        held = entry.named(list(readers))
        return cls(**{name: reader(held[name]) for name, reader in readers.items()})


@dataclass(frozen=True, kw_only=True)
class OpenSection(Section):
    """A section with room for keys that the form does not name. own: what they hold, as JSON."""

    own: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        named = [one.name for one in fields(self) if one.name != "own"]
        taken = [name for name in named if name in self.own]
        if taken:
            raise InputError(f'"{taken[0]}" is the form\'s own and cannot be a key beside it')

    def to_dict(self) -> dict[str, Any]:
        """Its JSON: what the form names, then the rest."""
        content = super().to_dict()
        own = content.pop("own")
        return {**content, **own}

    @classmethod
    def read(cls, entry: Entry) -> Self:
        """The section that an entry holds, with whatever else stands there."""
        readers = {name: reader for name, reader in readers_of(cls).items() if name != "own"}
        held = entry.named(list(readers), others=True)
        own = {name: anything(item) for name, item in held.items() if name not in readers}
        return cls(own=own, **{name: reader(held[name]) for name, reader in readers.items()})


def readers_of(section: Any) -> dict[str, Reader[Any]]:
    """The reader of each field of a section: what its annotation carries, or the section it is."""
    return _readers(section)


@cache
def _readers(section: Any) -> dict[str, Reader[Any]]:
    hints = get_type_hints(section, include_extras=True)
    return {one.name: _reader(hints[one.name]) for one in fields(section)}


def _reader(hint: Any) -> Any:
    if isinstance(hint, type) and issubclass(hint, Section):
        return hint.read
    return getattr(hint, "__metadata__", (None,))[0]


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, (list, tuple)) else value


def _plain(value: Any) -> Any:
    """JSON of what a section holds; the most frequent first, as positions may be many."""
    if isinstance(value, (str, int)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Section):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return INFINITE if value == math.inf else value


def refused(place: str, says: str) -> InputError:
    """An error about one place of a certificate."""
    return InputError(f'certificate: "{place}" {says}')
