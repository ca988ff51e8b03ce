"""The options of `redact`, once for all: their names, types, defaults and words for people.

Engines take them as one object, people as keywords, and the command line makes its own of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    ParamSpec,
    Protocol,
    TypeVar,
    dataclass_transform,
    overload,
)

from offrecord.errors import InputError
from offrecord.text import Progress, unwatched

if TYPE_CHECKING:
    from offrecord.fitting.fit import Fit
    from offrecord.mechanisms.base import Mechanism
    from offrecord.mechanisms.table_policy import TablePolicy
    from offrecord.models.base import Label
    from offrecord.models.chain import MarkovChain
    from offrecord.models.promise import Promise
    from offrecord.tables.frames import Native

#: What `accept` takes.
REASONS = ("model", "none", "another-release", "empty")
NEVER_PUBLISHED = "never published"  #: what a person must say of a release that is to be forgotten
#: Budgets at which a fit is tested unless others are given.
EPSILONS = (0.5, 1.0, 2.0)
# An option that the command line has too, in a docstring: its name, what stands for its value there
# instead of its type, and what its help says.
_OPTION = re.compile(r"^- (\w+)(?: <(.+?)>)?: (.+(?:\n  .+)*)\n?", re.MULTILINE)

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")
_First = TypeVar("_First")
_Second = TypeVar("_Second")
_Options_co = TypeVar("_Options_co", bound="Learning", covariant=True)


@dataclass_transform(eq_default=False, kw_only_default=True, frozen_default=True)
def _options(kind: type[_T]) -> type[_T]:
    """Frozen data, given by name, with the words of the docstring."""
    for name, metavar, words in _OPTION.findall(inspect.getdoc(kind) or ""):
        said = {"words": " ".join(words.split()), "metavar": metavar or None}
        setattr(kind, name, field(default=getattr(kind, name, MISSING), metadata=said))
    # They do not print: a list of private keys may be among them.
    return dataclass(frozen=True, kw_only=True, eq=False, repr=False)(kind)


@_options
class Learning:
    """How a table is read, and a model learned from it: what `fit` and `redact` share.

    In Python, private may also be a column of truth values, private_list a frame, and phase None
    instead of "none".

    - value: Column with the records' values: 2 to 64 distinct ones.
    - order: Column that orders the records of a chain (whole numbers, dates or times), or: row.
    - by: Column whose values name the chains; several by comma.
    - single_chain: All records are one chain (instead of --by).
    - private: Boolean column: true where a record is private.
    - private_list: File of private records (columns --by and --order), ranges (--by, from, to) or
      whole chains (--by).
    - fit_distance <STEPS>: Learn from all records so many steps or more from every private one.
    - chain_order <auto|1|2|…>: How many records the next one depends on; auto: as many as the data
      speak for, and more.
    - phase <auto|hour|weekday|month|step|none>: A kernel for each hour, weekday, month or step of a
      chain; auto: where one foretells clearly better; none: one kernel.
    - coverage <0.99|0.95>: Share of plausible chains in which the promise must hold: 0.99 or 0.95.
      [default: that of the model, 0.99]
    - values <A,B,…>: All values that there are, by comma; any other is an error.
    - bins <NUMBERS>: Cut numbers: 0,1,3 makes the values under 0, 0 to under 1, 1 to under 3, and
      from 3.
    - merge <rare|COUNT>: rare: values that fewer than one record in 100 has become one, other; a
      count: so many values are left, the most frequent ones and other.
    - step: Distance of neighbours, 1h or 1: what is missing counts as redacted.
    - key_file: Key file, instead of the one in your data directory.
    """

    value: str
    order: str
    by: str | Sequence[str] | None = None
    single_chain: bool = False
    private: str | Native | None = None
    private_list: Native | str | Path | None = None
    fit_distance: int | None = None
    chain_order: int | str = "auto"
    phase: str | None = "auto"
    coverage: float | None = None
    values: Sequence[Label] | None = None
    bins: Sequence[float] | None = None
    merge: str | int | None = None
    step: str | int | None = None
    key_file: str | Path | None = None


@_options
class FitOptions(Learning):
    """epsilons: budgets at which the promise is tested. table: what the model file calls the table.

    With key_file, `fit` keeps beside this key which records it saw, so that `redact` knows it.
    """

    epsilons: Sequence[float] = EPSILONS
    table: str | None = None


@_options
class Options(Learning):
    """In Python, model may also be a chain, a list of chains or a fit, mechanism an object such as
    BestLocal(), and policy a table policy. progress: shows how far a step is. say: gets a line on
    which values fit=True learns from, before it does.

    - epsilon <NUMBER>: Privacy budget ε ≥ 0, natural log. No default: you decide.
    - dataset: Name of the data: the same for a re-release, another for other data.
    - keep_rows: Keep the rows of chains that are private as a whole, with empty values.
    - model: Model file, from offrecord fit.
    - fit: Learn the model from the table: chains without a private record, else records far from
      every one.
    - exact_model: Take the mean chain for exactly right: promise for it alone.
    - keep: Columns to release too, by comma, where the value is released; the guarantee does not
      cover them.
    - keep_all: Release their cells also where the value is redacted.
    - mechanism: owner, quilt, window, 3r-relaxed, 3r-convex, 3r-constant or best-local; without it
      the one of owner, best-local and window that is expected to release most.
    - protect: run: neighbouring private records are one secret; each: every one its own.
    - policy: Side rules that act: a policy file, from offrecord design --table, or a certificate.
    - accept <REASON>: Go on although model: the table, or its verdict, speaks against the model;
      none: no record is private; another-release: the same data were released differently before;
      empty: less than one record is expected to leave. Repeatable.
    - growing: The table grows: a record leaves when no later opt-out can reach it any more, and
      every release repeats the ones before.
    - lag <STEPS>: With --growing: how many steps a record waits; without it, as many as its rules
      need.
    - publish_positions: Put the private positions into the certificate.
    - dry_run: Design, report and say if the ledger would refuse; write nothing.
    """

    epsilon: float
    dataset: str
    keep_rows: bool = False
    model: MarkovChain | Sequence[MarkovChain] | Promise | Fit | str | Path | None = None
    fit: bool = False
    exact_model: bool = False
    keep: str | Sequence[str] | None = None
    keep_all: bool = False
    mechanism: Mechanism | str | None = None
    protect: str = "run"
    policy: TablePolicy | str | Path | None = None
    accept: str | Sequence[str] = ()
    growing: bool = False
    lag: int | None = None
    publish_positions: bool = False
    dry_run: bool = False
    progress: Progress = unwatched
    say: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        for reason in self._accepted:
            if reason not in REASONS:
                raise InputError(f"--accept takes {', '.join(REASONS)}, got {reason!r:.60}")

    @property
    def _accepted(self) -> Sequence[str]:
        return (self.accept,) if isinstance(self.accept, str) else self.accept

    def accepts(self, reason: str) -> bool:
        """Whether a person goes on in spite of this."""
        return reason in self._accepted


@_options
class FileOptions(Options):
    """format, output_format: instead of the endings of names. separator, encoding: of CSV that is
    not separated by commas, or not in UTF-8. certificate: where it goes, instead of
    beside the output. force: overwrite what is there. limits: {"rows": 1000} refuses longer tables;
    the others are "columns", "line" and "unpacked", in bytes.

    - certificate: Where the certificate goes instead.
    - format: csv, parquet, ipc or ndjson, instead of the input's ending.
    - separator: What stands between the cells of CSV, if no comma: ; or tab.
    - encoding: Of CSV that is not in UTF-8: utf-16, latin-1, cp1252 …
    - limits <NAME=VALUE>: rows=COUNT, columns=COUNT, line=BYTES, unpacked=BYTES: refuse larger
      tables. [default: rows=200000000, columns=10000, line=16777216, unpacked=268435456]
    - force: Overwrite existing output.
    """

    certificate: str | Path | None = None
    format: str | None = None
    separator: str | None = None
    encoding: str | None = None
    output_format: str | None = None
    limits: Mapping[str, int] | None = None
    force: bool = False


@_options
class MemoryOptions(Options):
    """remember: enter the release into the ledger at once; if not, that happens when it is written,
    and until then there is no frame.
    """

    remember: bool = True


@_options
class SparkOptions(Options):
    """partitions: chains are spread over so many, and a task holds one in memory: a few million
    rows each are well; without it, four for each core of the cluster.
    """

    partitions: int | None = None


class _Taking(Protocol[_P, _Options_co]):
    """Gives an engine of one table, or of a table and an output, its keyword form."""

    @overload
    def __call__(
        self, engine: Callable[[_First, _Options_co], _R]
    ) -> Callable[Concatenate[_First, _P], _R]: ...
    @overload
    def __call__(
        self, engine: Callable[[_First, _Second, _Options_co], _R]
    ) -> Callable[Concatenate[_First, _Second, _P], _R]: ...


def takes(kind: Callable[_P, _Options_co]) -> _Taking[_P, _Options_co]:
    """A decorator for an engine whose last argument are options of a kind: people give them as
    keywords, which type checkers know, and help() shows with what they mean.
    """
    assert isinstance(kind, type)
    given = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=one.type,
        )
        for one in fields(kind)
    ]

    def taking(engine: Callable[..., _R]) -> Callable[..., _R]:
        signature = inspect.signature(engine)
        tables = list(signature.parameters.values())[:-1]
        signature = signature.replace(parameters=[*tables, *given])

        @wraps(engine)
        def called(*positional: Any, **named: Any) -> _R:
            try:
                bound = signature.bind(*positional, **named)
            except TypeError as error:
                raise TypeError(f"{engine.__name__}() {error}") from None
            return engine(*bound.args, kind(**bound.kwargs))

        called.__signature__ = signature  # type: ignore[attr-defined] # help() reads it
        called.__annotations__ = {
            **{one.name: one.annotation for one in signature.parameters.values()},
            "return": signature.return_annotation,
        }
        called.__doc__ = "\n\n".join([inspect.getdoc(engine) or "", *_meanings(kind)])
        return called

    return taking


def _meanings(kind: type) -> Iterable[str]:
    """What options of a kind mean: a paragraph for each class, then a line for each option."""
    classes = [one for one in reversed(kind.__mro__) if issubclass(one, Learning)]
    yield from (_OPTION.sub("", inspect.getdoc(one) or "").strip() for one in classes)
    known: Any = kind
    said = [one for one in fields(known) if "words" in one.metadata]
    yield "\n".join(f"{one.name}: {one.metadata['words']}" for one in said)
