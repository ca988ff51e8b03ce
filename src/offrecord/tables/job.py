"""A job: what a person asks to be done to a table, checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from secrets import token_bytes
from typing import Any, cast

from offrecord.designs.library import Designs, Setting
from offrecord.designs.sharing import room_limits
from offrecord.errors import InputError
from offrecord.files import check_path
from offrecord.fitting.asked import Asked
from offrecord.fitting.boxes import Sureness
from offrecord.mechanisms import REGISTRY, BestLocal, Mechanism, mechanism_named
from offrecord.mechanisms.local.by_policy import whole_mechanism
from offrecord.mechanisms.surroundings import Nearness
from offrecord.models.base import Model
from offrecord.models.box import STARTS
from offrecord.models.chain import settled_since
from offrecord.models.clock import phase_count
from offrecord.models.loading import load_model
from offrecord.release.coins import KEY_BYTES, Coins
from offrecord.release.keys import Key, default_key_file
from offrecord.release.ledger import Ledger
from offrecord.tables.alphabet import Wanted
from offrecord.tables.batch import Reading, TableSpec
from offrecord.tables.chains import Columns
from offrecord.tables.formats import Said
from offrecord.tables.frames import listed_keys
from offrecord.tables.options import Options
from offrecord.tables.optouts import OptOuts, key_columns
from offrecord.tables.seen import Seen
from offrecord.tables.several.growing import Before
from offrecord.tables.steps import Step
from offrecord.tables.worker import Worker
from offrecord.text import printable
from offrecord.theory.problem import PROTECT, budget

DEFAULT = "owner"  #: the mechanism of who says nothing else


@dataclass(frozen=True, eq=False)
class Job:
    """What to do to a table: options as people give them, and what they come to.

    step: as counted. mechanism: the object. alphabet: what is wanted of one that is learned.
    started: when, by a clock that never goes back.
    """

    options: Options
    epsilon: float
    columns: Columns
    step: Step | None
    mechanism: Mechanism
    alphabet: Wanted
    started: float

    @classmethod
    def of(cls, options: Options) -> Job:
        """From options; InputError if they are wrong or do not go together."""
        printable("dataset", options.dataset)
        mechanism = _mechanism(options.mechanism)
        epsilon = budget(options.epsilon)
        columns = Columns.named(
            options.value,
            options.order,
            options.by,
            options.single_chain,
            options.keep,
            options.keep_all,
            options.order_unit,
        )
        step = None if options.step is None else Step.parsed(options.step)
        _check(options, columns)
        alphabet = Wanted.of(options.values, options.bins, options.merge)
        return cls(options, epsilon, columns, step, mechanism, alphabet, time.monotonic())

    @property
    def key_path(self) -> Path:
        """Where the key is, or will be."""
        given = self.options.key_file
        return default_key_file() if given is None else Path(given)

    @cached_property
    def key(self) -> Key:
        """The key, made where there is none; a dry run makes none, and takes one that nobody will
        have.
        """
        if not self.options.dry_run:
            return Key.load_or_new(self.key_path)
        if self.key_path.exists():
            return Key.load(self.key_path)
        return Key(token_bytes(KEY_BYTES), self.key_path)

    @cached_property
    def given_model(self) -> Model | None:
        """The model, if one is given, as it came."""
        given = self.options.model
        if isinstance(given, (str, Path)):
            return load_model(given)
        if given is None:
            return None
        model: Any = getattr(given, "model", given)  # that of a fit
        if not hasattr(model, "rounded"):
            raise InputError(
                f"model must be a chain, a fit or a model file, got {type(given).__name__}"
            )
        return cast("Model", model)

    @cached_property
    def model(self) -> Model | None:
        """The model, if one is given: with four digits, and with the set that is promised for."""
        return None if self.given_model is None else self.promised(self.given_model.rounded())

    @property
    def reading(self) -> Reading:
        """How the table is read."""
        private = self.options.private
        column = private if isinstance(private, str) else None  # or marks beside the table
        return Reading(self.columns, column, self.step, self.options.drop)

    @cached_property
    def optouts(self) -> OptOuts | None:
        """The private list, if there is one."""
        said = Said(None, *(getattr(self.options, one, None) for one in ("separator", "encoding")))
        listed = listed_keys(self.options.private_list, key_columns(self.columns), said)
        return None if listed is None else OptOuts.of(listed, self.columns)

    def promised(self, model: Model) -> Model:
        """A model with the set of models that the promise is to hold for."""
        start = self.options.start
        if self.options.exact_model:
            return model if model.box is None else model.with_box(None)
        if start == "stationary":
            return model
        if model.box is None:
            raise InputError(
                f"--start {start} needs a set of models, which this model file does not hold: fit"
                " it anew"
            )
        return model.with_box(model.box.with_start(start))

    @property
    def fitting(self) -> Asked:
        """What is asked of a fit to the table itself."""
        options = self.options
        sure = Sureness(options.confidence, options.interval)
        return Asked(
            options.chain_order,
            options.phase,
            sure,
            audit=not options.no_audit,
            distance=options.fit_distance,
        )

    def check_named(self) -> None:
        """InputError unless private is a column, for an engine that reads a table by itself."""
        private = self.options.private
        if private is not None and not isinstance(private, str):
            raise InputError(
                f"--private must be the name of a column here, got {type(private).__name__}"
            )

    def check_private(self, count: int, dropped: int) -> None:
        """InputError if no record is private, unless that is right; or if there is nothing to drop.

        count: private records that are left. dropped: chains that are not.
        """
        if count + dropped == 0 and not self.options.allow_none:
            raise InputError(
                "no record is private; if that is right, add --allow-none (allow_none=True)"
            )
        if self.options.drop and count and not dropped:
            raise InputError(
                "--drop removes chains that are private as a whole, and none is: name chains in the"
                " private list (the --by columns alone), or leave --drop out"
            )

    def nothing_left(self) -> InputError:
        """What is said where every chain is dropped."""
        return InputError("--drop leaves nothing to release: every chain is private as a whole")

    def modelled(self, model: Model) -> ModelledJob:
        """The job with its model: that is given, or learned from the table. Designs are for what is
        left of its chains from the record on since which its set holds.
        """
        whole = model
        model, since = settled_since(model)
        self._check_since(since)
        share = 1.0 if model.learned is None else model.learned.share
        mechanism, why = self.mechanism, _unserved(self.mechanism, model)
        if why is None and self.options.mechanism is None:
            why = _unfit(model)
            if why is None and self.options.after is not None:
                why = "releases of the owner's mechanism are not judged together with others"
        if why is not None:
            mechanism = BestLocal()
        setting = Setting(model, share * self.epsilon, mechanism, self.options.protect)
        file = self.options.designs
        known = None
        if file is not None and Path(file).exists():
            known = Designs.load(file, setting, self.key.secret)
        return ModelledJob(self, setting, known, whole, since, why, self._seen(model))

    def _check_since(self, since: int) -> None:
        """InputError for what needs a set that holds from the first record of chains on."""
        flags = {"--growing": self.options.growing, "--after": self.options.after is not None}
        asked = [flag for flag, is_given in flags.items() if is_given]
        if since > 1 and asked:
            raise InputError(
                f"{asked[0]} needs a set of models that holds from the first record of chains on,"
                f" and this one does from record {since} on: take --start any, for two values"
            )

    def _seen(self, model: Model) -> Seen | None:
        """Which records a model was learned from, where that is known."""
        learned = model.learned
        seen: Seen | None = None
        if learned is not None and learned.records is not None:
            records: Seen = learned.records
            seen = records.keyed(self.key.secret)
        elif learned is not None and learned.seen is not None:
            seen = Seen.load(self.key, learned.seen)
        if seen is None or not self.options.dry_run:
            return seen
        return seen.by_places()


def _unfit(model: Model) -> str | None:
    """Why a mechanism that rests on the model more than others is not taken unasked."""
    audit = None if model.learned is None else model.learned.audit
    if audit is None or audit.verdict != "unfit":
        return None
    return "the model is unfit, and the owner's mechanism rests on it more than others"


def _unserved(mechanism: Mechanism, model: Model) -> str | None:
    """Why a mechanism does not serve a model; one of one's own need not know the question."""
    asked: Callable[[Model], str | None] | None = getattr(mechanism, "unserved", None)
    return None if asked is None else asked(model)


def nearness_of(setting: Setting, room: int | None) -> Nearness | None:
    """Which secrets a mechanism designs together; one of one's own need not know the question."""
    model, epsilon, mechanism, protect = setting
    asked: Callable[..., Nearness | None] | None = getattr(mechanism, "nearness", None)
    return None if asked is None or room is None else asked(model, epsilon, protect, room)


_LEARNED_BY = {
    "fit_distance",
    "chain_order",
    "phase",
    "confidence",
    "interval",
    "values",
    "bins",
    "merge",
    "no_audit",
}
#: How a model is learned.
_LEARNING = [one for one in fields(Options) if one.name in _LEARNED_BY]


def _mechanism(given: Mechanism | str | None) -> Mechanism:
    """The mechanism that is asked for; InputError for what is none."""
    if given is None or isinstance(given, str):
        return mechanism_named(DEFAULT if given is None else given)
    if isinstance(given, type) or not (hasattr(given, "around") or hasattr(given, "design")):
        names = ", ".join(REGISTRY)
        kind = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
        raise InputError(
            f"mechanism must be one of {names}, or an object such as BestLocal(), got {kind}"
        )
    return whole_mechanism(given)


#: Options that name a file, if they are there; `after` names several.
_FILES = ("key_file", "designs", "problems", "certificate", "explain")


def _check_files(options: Options) -> None:
    """InputError for options that should name files, and do not."""
    for name in _FILES:
        check_path(name.replace("_", "-"), getattr(options, name, None))
    after: object = options.after
    several = after if isinstance(after, Sequence) else [after]
    if isinstance(after, str) or all(isinstance(one, (str, PathLike)) for one in several):
        return
    if after is not None:
        raise InputError(
            "--after must be the path of a certificate, or a list of paths, got"
            f" {type(after).__name__}"
        )


def _check(options: Options, columns: Columns) -> None:
    """InputError for options that are wrong or do not go together."""
    _check_files(options)
    if options.protect not in PROTECT:
        raise InputError(f'protect must be "run" or "each", got {options.protect!r}')
    if options.private is None and options.private_list is None:
        raise InputError("give --private (a column), --private-list (a file), or both")
    if options.drop and options.single_chain:
        raise InputError("--drop removes whole chains: with --single-chain nothing would be left")
    _check_model(options)
    _check_growing(options, columns)
    _check_after(options, columns)
    minutes = options.design_minutes
    if not (isinstance(minutes, (int, float)) and minutes >= 0):
        raise InputError(f"--design-minutes must be a number of at least 0, got {minutes}")
    if isinstance(options.private, str) and options.private in columns.released:
        raise InputError(f"the private column {options.private!r} cannot be released too")


def _check_growing(options: Options, columns: Columns) -> None:
    """InputError for options of a growing table that are wrong or do not go together."""
    lag = options.lag
    if not options.growing:
        if lag is not None:
            raise InputError("--lag is for --growing")
        return
    if options.step is None or columns.order is None:
        raise InputError(
            "--growing needs --order, a column, and --step: how far a later opt-out reaches is"
            " counted in steps"
        )
    if lag is not None and (isinstance(lag, bool) or not isinstance(lag, int) or lag < 0):
        raise InputError(f"--lag must be a whole number of steps, got {lag}")
    if options.fit:
        raise InputError(
            "--growing takes one model for all releases: make it with offrecord fit, and give"
            " --model instead of --fit"
        )
    if options.drop or options.another_release:
        flag = "--drop" if options.drop else "--another-release"
        raise InputError(f"--growing and {flag} do not go together: what left stays in the table")


def _check_after(options: Options, columns: Columns) -> None:
    """InputError for options about releases before that are wrong or do not go together."""
    accepted = options.joint_epsilon
    if options.after is None:
        if accepted is not None or options.opted_in:
            flag = "--opted-in" if accepted is None else "--joint-epsilon"
            raise InputError(f"{flag} is for --after")
        return
    for flag, given in (
        ("--growing", options.growing),
        ("--another-release", options.another_release),
        ("--drop", options.drop),
    ):
        if given:
            raise InputError(f"--after and {flag} do not go together")
    if columns.order is None:
        raise InputError("--after needs --order, a column: it tells which records are the same")
    if accepted is not None and not (isinstance(accepted, (int, float)) and accepted >= 0):
        raise InputError(f"--joint-epsilon must be a number of at least 0, got {accepted}")


def _check_model(options: Options) -> None:
    """InputError for options about the model that are wrong or do not go together."""
    if (options.model is None) != options.fit:
        raise InputError("give either --model or --fit (model or fit=True)")
    if options.start not in STARTS:
        raise InputError(f"--start must be one of {', '.join(STARTS)}, got {options.start!r}")
    if options.exact_model and options.start != "stationary":
        raise InputError("--exact-model says how chains begin: leave --start out")
    if options.fit:
        Sureness(options.confidence, options.interval)
    elif any(getattr(options, one.name) != one.default for one in _LEARNING):
        flags = [f"--{one.name.replace('_', '-')}" for one in _LEARNING]
        raise InputError(
            f"{', '.join(flags[:-1])} and {flags[-1]} are for --fit; a model says its own"
        )
    if options.phase is not None:
        phase_count(options.phase)


@dataclass(frozen=True, eq=False)
class ModelledJob:
    """A job whose model is known.

    known: designs from before, if there is a file of them. model: with how its chains begin; since:
    the record from which on its set holds, and the model of the setting. unserved: why it goes by
    the best local mechanism, where another one was asked for. seen: which records the model was
    learned from, None where that is not known.
    """

    job: Job
    setting: Setting
    known: Designs | None
    model: Model
    since: int = 1
    unserved: str | None = None
    seen: Seen | None = None

    @cached_property
    def worker(self) -> Worker:
        """What reads and surveys the table."""
        job, options = self.job, self.job.options
        model, epsilon, _, protect = self.setting
        limits = room_limits(model, epsilon, self.known)
        nearness = None if options.growing else nearness_of(self.setting, limits[0])
        spec = TableSpec(job.reading, protect, model, limits, nearness, self.since)
        coins = Coins(job.key.secret, options.dataset, options.value)
        publish = options.publish_positions and not options.dry_run
        return Worker(spec, coins, publish, self.seen, before=self.before)

    @cached_property
    def before(self) -> Before | None:
        """The release that one of a growing table is to continue, if there is one."""
        options = self.job.options
        if not options.growing:
            return None
        book = Ledger.read(self.job.key)
        return Before.of(book.releases.get(options.dataset, ()), options.dataset)
