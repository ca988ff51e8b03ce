"""What options give, checked and loaded: columns, mechanism, model, key, opt-outs, rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from secrets import token_bytes
from typing import Any

from offrecord.errors import InputError
from offrecord.files import check_path
from offrecord.mechanisms import REGISTRY, mechanism_named
from offrecord.mechanisms.base import Mechanism
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import printable
from offrecord.models.file import Model, load_model
from offrecord.models.members import PLACE_COUNTS
from offrecord.models.posterior import Posterior
from offrecord.models.promise import ACCEPTANCE, KnownChains, Promise
from offrecord.release.coins import KEY_BYTES, Coins
from offrecord.release.keys import Key, default_key_file
from offrecord.tables.alphabet import Alphabet, Wanted
from offrecord.tables.chains import Columns
from offrecord.tables.frames import listed_keys
from offrecord.tables.io.format import ReadOptions
from offrecord.tables.options import Options
from offrecord.tables.optouts import OptOuts
from offrecord.tables.steps import Step
from offrecord.tables.table import Reader
from offrecord.theory.problem import PROTECT, budget

#: Options that name a file, if they are there.
_FILES = ("key_file", "certificate")
#: Options of how a model is learned.
_LEARNED_BY = {"fit_distance", "chain_order", "phase", "values", "bins", "merge"}


@dataclass(frozen=True, eq=False)
class Given:
    """What options come to.

    step: as counted. mechanism: None for the best there is. wanted: of values that are learned.
    """

    options: Options
    epsilon: float
    columns: Columns
    step: Step | None
    mechanism: Mechanism | None
    wanted: Wanted

    @classmethod
    def of(cls, options: Options) -> Given:
        """From options; InputError if they are wrong or do not go together."""
        printable("--dataset", options.dataset)
        mechanism = _mechanism(options.mechanism)
        read, kept = (options.value, options.order, options.by), (options.keep, options.keep_all)
        columns = Columns.named(*read, options.single_chain, *kept)
        step = None if options.step is None else Step.parsed(options.step)
        for name in _FILES:
            check_path(name.replace("_", "-"), getattr(options, name, None))
        for said in (*_faults(options, columns), *_growing_faults(options, columns)):
            raise InputError(said)
        wanted = Wanted.of(options.values, options.bins, options.merge)
        return cls(options, budget(options.epsilon), columns, step, mechanism, wanted)

    # ---- the key

    @property
    def key_path(self) -> Path:
        """Where the key is, or will be."""
        given = self.options.key_file
        return default_key_file() if given is None else Path(given)

    @cached_property
    def key(self) -> Key:
        """The key, made where there is none; a dry run makes none."""
        if not self.options.dry_run:
            return Key.load_or_new(self.key_path)
        if self.key_path.exists():
            return Key.load(self.key_path)
        # Digests need some key; with this one, which nobody will have, they say nothing to anybody.
        return Key(token_bytes(KEY_BYTES), self.key_path)

    @property
    def coins(self) -> Coins:
        """The coins of the column."""
        return Coins(self.key.secret, self.options.dataset, self.options.value)

    # ---- the table

    def reader(self, private: str | None) -> Reader:
        """What reads the table. private: the column that marks records, if there is one."""
        alphabet = None if self.model is None else _alphabet(self.model)
        keep_rows = self.options.keep_rows or self.options.growing
        return Reader(self.columns, private, self.step, keep_rows, alphabet)

    @cached_property
    def optouts(self) -> OptOuts | None:
        """The private list, if there is one."""
        names = ("separator", "encoding", "limits")  # of files alone
        how = ReadOptions(None, *(getattr(self.options, one, None) for one in names))
        listed = listed_keys(self.options.private_list, how)
        return None if listed is None else OptOuts.of(listed, self.columns)

    @property
    def marking(self) -> str | None:
        """The column that marks private records, if one is named."""
        private = self.options.private
        return private if isinstance(private, str) else None

    @property
    def read_columns(self) -> list[str]:
        """The columns of a table that are read: those that name chains first, then the order."""
        return [*self.columns.released, *([] if self.marking is None else [self.marking])]

    def check_named(self) -> None:
        """InputError unless private is a column, for an engine that reads a table by itself."""
        private = self.options.private
        if private is not None and not isinstance(private, str):
            raise InputError(
                f"--private must be the name of a column here, got {type(private).__name__}"
            )

    def check_private(self, count: int) -> None:
        """InputError if no record is private, unless that is right."""
        if count == 0 and not self.options.accepts("none"):
            raise InputError("no record is private; if that is right, add --accept none")

    # ---- the model and the rules

    @cached_property
    def model(self) -> Model | None:
        """The model, if one is given, under the promise that is asked for."""
        given = self.options.model
        return None if given is None else self.promised(_model(given))

    def promised(self, model: Model) -> Model:
        """A model under the promise that is asked for: its coverage, or its mean chain alone."""
        promise, coverage = model.promise, self.options.coverage
        if self.options.exact_model:
            promise = _exact(promise)
        elif coverage is not None:
            if not isinstance(promise, Posterior):
                raise InputError("--coverage is for models that were fitted: leave it out")
            promise = promise.with_coverage(coverage)
        return replace(model, promise=promise)

    @cached_property
    def policy(self) -> TablePolicy | None:
        """The rules, if some are given."""
        given = self.options.policy
        if given is None or isinstance(given, TablePolicy):
            return given
        return _policy(Path(given))


def _exact(promise: Promise) -> Promise:
    if not isinstance(promise, Posterior):
        if promise.coverage or promise.members(0, 0).count > 1:
            raise InputError("--exact-model is for one chain, and the model holds several")
        return promise
    if promise.places is not None:
        raise InputError("--exact-model takes models without places: leave --phase out")
    return KnownChains([promise.chain])


def _alphabet(model: Model) -> Alphabet:
    labels, origin = model.promise.labels, model.origin
    if origin is None:
        return Alphabet.of(labels, None, None)
    return Alphabet.of(labels, None if origin.bins is None else tuple(origin.bins), origin.others)


def _model(given: Any) -> Model:
    if isinstance(given, (str, Path)):
        return load_model(given)
    if hasattr(given, "posterior"):  # a fit, whose class need not be loaded for this
        given = given.model
    if isinstance(given, (Model, Promise)):
        return given if isinstance(given, Model) else Model(given)
    if isinstance(given, (MarkovChain, Sequence)):
        return Model(KnownChains([given] if isinstance(given, MarkovChain) else given))
    raise InputError(
        "model must be a chain, a list of chains, a fit or a model file, got"
        f" {type(given).__name__}"
    )


def _policy(path: Path) -> TablePolicy:
    from offrecord.files import read_json

    content = read_json(path)
    if isinstance(content, dict):
        content = content.get("policy", content)
    if content is None:
        raise InputError(f"{path}: this release has no side rules")
    try:
        return TablePolicy.from_dict(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _mechanism(given: Mechanism | str | None) -> Mechanism | None:
    if given is None:
        return None
    if isinstance(given, str):
        return mechanism_named(given)
    if not isinstance(given, Mechanism):
        names = ", ".join(REGISTRY)
        kind = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
        raise InputError(
            f"--mechanism must be one of {names}, or an object such as BestLocal(), got {kind}"
        )
    return given


def _faults(options: Options, columns: Columns) -> Iterator[str]:
    """What is wrong with options, or does not go together."""
    private, policy = options.private, options.policy
    if options.protect not in PROTECT:
        yield f'--protect must be "run" or "each", got {options.protect!r}'
    if private is options.private_list is None:
        yield "give --private (a column), --private-list (a file), or both"
    if options.model is not None and options.fit:
        yield "give either --model or --fit"
    yield from _model_faults(options)
    if policy is not None and options.mechanism is not None:
        yield "give --policy or --mechanism, not both"
    if isinstance(private, str) and private in columns.released:
        yield f"the private column {private!r} cannot be released too"


def _model_faults(options: Options) -> Iterator[str]:
    """The same of options of a model's promise, and of how one is learned."""
    coverage, phase = options.coverage, options.phase
    if coverage is not None and coverage not in ACCEPTANCE:
        yield f"--coverage must be 0.99 or 0.95, got {coverage!r:.40}"
    if coverage is not None and options.exact_model:
        yield "--exact-model promises for one chain: leave --coverage out"
    learning = [one for one in fields(Options) if one.name in _LEARNED_BY]
    if not options.fit and any(getattr(options, one.name) != one.default for one in learning):
        flags = [f"--{one.name.replace('_', '-')}" for one in learning]
        yield f"{', '.join(flags[:-1])} and {flags[-1]} are for --fit; a model says its own"
    phases = ("auto", "none", "step", *PLACE_COUNTS)
    if phase is not None and phase not in phases:
        yield f"--phase must be one of {', '.join(phases)}, got {phase!r:.40}"


def _growing_faults(options: Options, columns: Columns) -> Iterator[str]:
    lag = options.lag
    if not options.growing:
        if lag is not None:
            yield "--lag is for --growing"
        return
    if options.step is None or columns.order is None:
        yield (
            "--growing needs --order, a column, and --step: how far a later opt-out reaches is"
            " counted in steps"
        )
    if lag is not None and (isinstance(lag, bool) or not isinstance(lag, int) or lag < 0):
        yield f"--lag must be a whole number of steps, got {lag}"
    if options.fit:
        yield (
            "--growing takes one model for all releases: make it with offrecord fit, and give"
            " --model instead of --fit"
        )
    if options.accepts("another-release"):
        yield (
            "--growing and --accept another-release do not go together: what left stays in the"
            " table"
        )
