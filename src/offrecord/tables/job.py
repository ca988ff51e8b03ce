"""A job: what a person asks to be done to a table, checked; and the plan for it once the table has
been surveyed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from pathlib import Path
from secrets import token_bytes
from typing import Any, NamedTuple
from warnings import warn

import numpy as np

from offrecord.designs.library import Designs, Model
from offrecord.designs.sharing import MAX_MINUTES, designs_for, room_limits
from offrecord.errors import ChosenByValue, InputError
from offrecord.mechanisms import Mechanism, mechanism_named
from offrecord.models.base import Integers
from offrecord.models.clock import phase_count
from offrecord.models.loading import load_model
from offrecord.models.published_rounding import rounded_model
from offrecord.release import coins as draws
from offrecord.release.certificate import POSITIONS, certificate, positions
from offrecord.release.keys import Key, default_key_file
from offrecord.release.ledger import Ledger, ledger
from offrecord.tables.chains import Columns
from offrecord.tables.deciding import Deciding, Tally
from offrecord.tables.erasure import erasure_leakage
from offrecord.tables.frames import Native
from offrecord.tables.model_check import (
    NEIGHBOURS,
    Comparison,
    check_origin,
    compared,
    spaced,
    sparse,
)
from offrecord.tables.parts import Reading, Survey, hexed
from offrecord.tables.secrets import check_all_found
from offrecord.tables.steps import Step
from offrecord.tables.summary import Summary
from offrecord.text import many, printable
from offrecord.theory.problem import PROTECT, budget

CONTENT = "set of released values"  #: what the ledger calls what left, beside what decided it
_UNKNOWN = "the key was there without its ledger: earlier releases are not known"
_NOT_ENTERED = {
    "other_releases": None,
    "composed": None,
    "why": "the release has not been entered into the ledger yet",
}


@dataclass(eq=False)
class Job:
    """What to do to a table; the fields are the options of `offrecord.redact`, which says what they
    mean.

    Raises InputError for options that are wrong or do not go together.
    """

    _: KW_ONLY
    value: str
    order: str
    epsilon: float
    dataset: str
    by: str | Sequence[str] | None = None
    single_chain: bool = False
    private: str | None = None
    private_list: Native | None = None
    model: Model | str | Path | None = None
    fit: bool = False
    chain_order: int = 1
    phase: str | None = None
    step: str | int | None = None
    keep: str | Sequence[str] | None = None
    keep_all: bool = False
    mechanism: Mechanism | str = "best-local"
    protect: str = "run"
    key_file: str | Path | None = None
    designs: str | Path | None = None
    design_minutes: float = MAX_MINUTES
    accept_model: bool = False
    allow_none: bool = False
    another_release: bool = False
    publish_positions: bool = False
    dry_run: bool = False
    progress: Callable[[list[Any]], Iterable[Any]] = list
    say: Callable[[str], None] | None = None
    columns: Columns = field(init=False)
    chosen: Mechanism = field(init=False)
    steps: Step | None = field(init=False)
    rounded: bool = field(init=False, default=False)
    known: Designs | None = field(init=False, default=None)
    started: float = field(init=False, default_factory=time.monotonic)

    def __post_init__(self) -> None:
        printable("dataset", self.dataset)
        self.chosen = (
            mechanism_named(self.mechanism) if isinstance(self.mechanism, str) else self.mechanism
        )
        self.epsilon = budget(self.epsilon)
        self.columns = Columns.named(
            self.value, self.order, self.by, self.single_chain, self.keep, self.keep_all
        )
        self.steps = None if self.step is None else Step.parsed(self.step)
        if self.protect not in PROTECT:
            raise InputError(f'protect must be "run" or "each", got {self.protect!r}')
        if (self.private is None) == (self.private_list is None):
            raise InputError(
                "give either --private (a column) or --private-list (keys), one of them"
            )
        if (self.model is None) != self.fit:
            raise InputError("give either --model or --fit (model or fit=True)")
        if not self.fit and (self.chain_order != 1 or self.phase is not None):
            raise InputError("--chain-order and --phase are for --fit; a model says its own")
        if self.phase is not None:
            phase_count(self.phase)
        if not (isinstance(self.design_minutes, (int, float)) and self.design_minutes >= 0):
            raise InputError(
                f"--design-minutes must be a number of at least 0, got {self.design_minutes}"
            )
        if self.private is not None and self.private in self.columns.released:
            raise InputError(f"the private column {self.private!r} cannot be released too")

    @property
    def key_path(self) -> Path:
        """Where the key is, or will be."""
        return default_key_file() if self.key_file is None else Path(self.key_file)

    @cached_property
    def key(self) -> Key:
        """The key, made where there is none; a dry run makes none, and takes one that nobody will
        have.
        """
        if self.dry_run and not self.key_path.exists():
            return Key(token_bytes(draws.KEY_BYTES), self.key_path)
        return Key.load_or_new(self.key_path)

    @cached_property
    def given(self) -> Model | None:
        """The model, if one is given: with four digits."""
        model = load_model(self.model) if isinstance(self.model, (str, Path)) else self.model
        if model is None:
            return None
        chain = rounded_model(model)
        self.rounded = chain is not model
        return chain

    def reading(self, model: Model) -> Reading:
        """How the table is read, given its model."""
        coins = draws.Coins(self.key.secret, self.dataset, self.value)
        if self.designs is not None and Path(self.designs).exists():
            self.known = Designs.load(
                self.designs, model, self.epsilon, self.chosen.name, self.protect, self.key.secret
            )
        limits = room_limits(model, self.epsilon, self.known)
        positions = self.publish_positions and not self.dry_run
        return Reading(
            self.columns, self.private, self.steps, self.protect, model, limits, coins, positions
        )

    def check_private(self, count: int) -> None:
        """InputError if no record is private, unless that is right."""
        if count == 0 and not self.allow_none:
            raise InputError(
                "no record is private; if that is right, add --allow-none (allow_none=True)"
            )

    def plan(self, reading: Reading, survey: Survey, listed: int) -> Plan:
        """Designs for what a survey found, and what is to be said about them. listed: how long the
        private list is.
        """
        check_all_found(survey.keys, listed)
        self.check_private(survey.private)
        warnings = survey.warnings(self.columns, self.steps)
        accepted = self.accepted(_doubts(self, reading.model, survey))
        if reading.model.learned is None:
            warnings.append(
                "the model does not say what it was learned from; that it belongs to these data is"
                " taken on trust"
            )
        elif reading.model.learned.value != self.value:
            there = reading.model.learned.value
            warnings.append(
                f"the model was learned from a column called {there!r}, not {self.value!r}: is it"
                " about the same?"
            )
        if self.rounded:
            warnings.append(
                "the model was rounded to four digits, as it is published; the guarantee is about"
                " the rounded one"
            )
        known = self.known
        designs, which = designs_for(
            reading.model,
            self.epsilon,
            self.chosen,
            self.protect,
            survey.needs,
            known=known,
            progress=self.progress,
            max_minutes=self.design_minutes,
        )
        if designs.refused:
            warnings.append(
                f"{self.designs} has no seal of this key and version, and does not keep within ε"
                f" here: made {many(designs.refused, 'design')} anew"
            )
        if self.designs is not None:
            together = designs.merged(known)
            if known is None or not known.sealed or len(together.designs) > len(known.designs):
                together.save(self.designs, self.key.secret)
        if self.columns.keep:
            kept = ", ".join(self.columns.keep)
            how = (
                "are released as they are"
                if self.keep_all
                else "leave empty where the value is redacted"
            )
            warnings.append(f"kept columns {how}; the guarantee does not cover them: {kept}")
        if self.columns.order is None:
            warnings.append(
                "coins go by row number: a row inserted later changes the draws of those after it"
            )
        decided = _decided(self, survey, designs, which)
        if not self.dry_run:
            self.refuse(Ledger.read(self.key), decided)
        uses = np.bincount(which, survey.needs.counts, minlength=len(designs.designs))
        deciding = Deciding.made(designs, survey.needs, which)
        return Plan(
            self,
            survey,
            designs,
            uses,
            deciding,
            decided,
            tuple(warnings),
            Judged(accepted=accepted),
        )

    def accepted(self, objections: Iterable[str | None]) -> tuple[str, ...]:
        """What speaks against the model, if that is to be accepted; InputError if it is not."""
        found = tuple(filter(None, objections))
        if found and not self.accept_model:
            raise InputError(
                f"this is not the model of these data: {found[0]}; fit a model to data like these,"
                " or add --accept-model, and the certificate says so"
            )
        return found

    def refuse(self, book: Ledger, decided: dict[str, str]) -> None:
        """InputError for a second, different release."""
        differences = book.differences(self.dataset, decided)
        if differences and not self.another_release:
            raise InputError(
                f"data set {self.dataset!r} was released before with another"
                f" {' and another '.join(differences)}; a second look at the same records adds to"
                " what the first gave away. Records that were released before, in a table that has"
                " grown or was corrected, must keep their --dataset: add --another-release."
                " Another --dataset is for data about other records alone"
            )

    def entered(self, book: Ledger, decided: dict[str, str]) -> Entered:
        """Enter a release into the ledger: how it stands there. InputError for a second, different
        one.
        """
        self.refuse(book, decided)
        book.add(self.dataset, decided)
        others = book.others(self.dataset, decided)
        warnings = []
        if not book.announced:
            warnings.append(
                f"made a new key, {self.key.file} (id {self.key.id}): keep it secret, and keep it: "
                "a re-release with another key is a second look at the data"
            )
        if others:
            had = many(others, "other release")
            warnings.append(
                f"data set {self.dataset!r} has had {had}; together they may leak more than this"
                " one's ε"
            )
            return Entered({"other_releases": others, "composed": False}, tuple(warnings))
        if not book.complete:
            warnings.append(
                f"the key {self.key.file} was there without its ledger, so nobody knows whether"
                f" data set {self.dataset!r} was released before; the certificate says so"
            )
            return Entered(
                {"other_releases": None, "composed": None, "why": _UNKNOWN}, tuple(warnings)
            )
        return Entered({"other_releases": 0, "composed": True}, tuple(warnings))


class Entered(NamedTuple):
    """How a release stands in the ledger: what the certificate says of it, and what a person should
    know.
    """

    said: dict[str, Any]
    warnings: tuple[str, ...]


class Judged(NamedTuple):
    """What a decision says about what it rests on.

    comparison: of model and table. accepted: what speaks against the model, and was accepted.
    warnings: for whoever runs it.
    """

    comparison: Comparison | None = None
    accepted: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(eq=False)
class Plan:
    """What a job comes to for a table that has been surveyed.

    uses: (designs,) how many secrets each serves. decided: digests of what decides the release.
    noticed: what a person should know of it. judged: what the decision says about it, as far as
    there is one. entered: its place in the ledger.
    """

    job: Job
    survey: Survey
    designs: Designs
    uses: Integers
    deciding: Deciding
    decided: dict[str, str]
    noticed: tuple[str, ...]
    judged: Judged
    entered: Entered | None = None

    def judge(self, tally: Tally) -> None:
        """Find out what a decision says about what it rests on; InputError if that speaks against
        the promise.

        It looks at values that are released anyway. What it finds about private ones is a Python
        warning, and in no artefact.
        """
        if tally.choice is not None and (chosen := tally.choice.warning()) is not None:
            warn(chosen, ChosenByValue, stacklevel=2)
        comparison, accepted, warnings = None, self.judged.accepted, []
        if tally.moves is not None and self.survey.secrets:
            comparison = compared(self.designs, self.uses, tally.moves)
            objected = self.job.accepted([comparison.objection(self.job.epsilon)])
            accepted += objected
            if not objected and (warning := comparison.warning()) is not None:
                warnings.append(warning)
        for finding in () if tally.kept is None else tally.kept.findings:
            if finding.sure:
                raise InputError(
                    f"{finding.says(self.designs.model.labels)}; leave it out of --keep"
                )
            warnings.append(f"{finding.says(self.designs.model.labels)}; is it needed?")
        warnings += [
            f"this is not the model of these data, which was accepted: {one}" for one in accepted
        ]
        self.judged = Judged(comparison, accepted, tuple(warnings))

    def enter(self, tally: Tally) -> list[str]:
        """Enter the release, and what leaves, into the ledger before anyone sees it: what there is
        to say of that.

        A dry run is no release.
        """
        if self.job.dry_run:
            return []
        said = self.warnings
        with ledger(self.job.key) as book:
            self.entered = self.job.entered(
                book, {**self.decided, CONTENT: f"{tally.content:032x}"}
            )
        return [warning for warning in self.warnings if warning not in said]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know."""
        return (
            *self.noticed,
            *self.judged.warnings,
            *(() if self.entered is None else self.entered.warnings),
        )

    @property
    def exact(self) -> bool:
        """Leakage is exact, not an upper bound."""
        return self.designs.model.order == 1

    @property
    def counts(self) -> dict[str, int]:
        """What was counted, as certificate and summary say it."""
        return {
            name: getattr(self.survey, name)
            for name in ("rows", "chains", "missing", "private", "secrets")
        }

    def summary(self, tally: Tally) -> Summary:
        """What the release amounts to."""
        job, survey, learned = self.job, self.survey, self.designs.model.learned
        valued = max(survey.rows - survey.missing, 1)
        return Summary(
            dataset=job.dataset,
            epsilon=job.epsilon,
            mechanism=job.chosen.name,
            **self.counts,
            touched=survey.touched,
            redacted=survey.rows - survey.missing - round(tally.released),
            released=tally.released / valued,
            window=tally.window / valued,
            leakage=max((design.leakage for design in self.designs.designs), default=0.0),
            exact=self.exact,
            erasure=erasure_leakage(self.designs.model, survey.needs),
            regions=tally.named_regions(survey.marked),
            designs=len(self.designs.designs),
            loss=self.designs.loss,
            seconds=round(time.monotonic() - job.started, 3),
            verdict=None if learned is None else learned.verdict,
            warnings=self.warnings,
        )

    def certificate(self) -> dict[str, Any]:
        """The content of the certificate as things stand: it names no output, and what it says of
        other releases may change.
        """
        if self.job.dry_run:
            return self._certificate
        return {
            **self._certificate,
            "release": dict(_NOT_ENTERED if self.entered is None else self.entered.said),
        }

    @cached_property
    def _certificate(self) -> dict[str, Any]:
        job, survey, columns = self.job, self.survey, self.job.columns
        private: dict[str, Any] = {"count": survey.private, "note": POSITIONS}
        if not job.dry_run:
            private["digest"] = self.decided["private list"]
            if job.publish_positions:
                private["positions"] = positions(
                    columns.by, columns.order or "row", survey.published_positions()
                )
        return certificate(
            designs=self.designs,
            counts=self.counts,
            columns={
                "value": columns.value,
                "order": columns.order or "row",
                "by": list(columns.by),
                "keep": list(columns.keep),
                "keep_all": columns.keep_all,
                "step": None if job.steps is None else job.steps.text,
                "order_kind": "time" if survey.timed else "integer",
            },
            dataset=job.dataset,
            key_id="none: dry run" if job.dry_run else job.key.id,
            private=private,
            release={},
            kept=bool(columns.keep),
            exact=self.exact,
            model_check={
                "compared": (
                    None if self.judged.comparison is None else self.judged.comparison.to_dict()
                ),
                "accepted": list(self.judged.accepted),
            },
        )


def _doubts(job: Job, model: Model, survey: Survey) -> list[str | None]:
    """What speaks against a model before a value is looked at; InputError where the table is read
    in another way.
    """
    doubts = [sparse(survey.pairs, survey.linked)]
    if model.learned is not None:
        kind = "row" if job.columns.order is None else "time" if survey.timed else "integer"
        check_origin(model.learned, kind, job.steps, getattr(survey.order_type, "time_zone", None))
        doubts.append(spaced(model.learned, survey.spacing if survey.pairs >= NEIGHBOURS else None))
    return doubts


def _decided(
    job: Job, survey: Survey, designs: Designs, which: np.ndarray[Any, np.dtype[np.int64]]
) -> dict[str, str]:
    """Digests of what decides a release; of sets of records, whatever their order, and for the
    key's owner alone.
    """
    count = len(designs.designs)
    marks = np.zeros((count, 2), dtype=np.uint64)
    np.bitwise_xor.at(marks, which, survey.placed)
    sizes = np.bincount(which, survey.needs.counts, minlength=count).astype(np.int64)
    placed = hashlib.sha256(designs.digest.encode())
    for mark, size in zip(marks, sizes.tolist(), strict=True):
        placed.update(hexed(mark, size).encode())
    columns = job.columns
    shape = [
        columns.value,
        columns.order,
        columns.by,
        columns.keep,
        None if job.steps is None else job.steps.text,
        [str(kind) for kind in survey.kinds],
        survey.timed,
        *([] if columns.keep_all or not columns.keep else ["emptied beside redacted values"]),
    ]
    return {
        "private list": hexed(survey.digest, survey.private),
        "model": hashlib.sha256(json.dumps(designs.model.to_dict()).encode()).hexdigest(),
        "epsilon": repr(designs.epsilon),
        "mechanism": f"{designs.mechanism}, {designs.protect}",
        "choice of columns": hashlib.sha256(json.dumps(shape).encode()).hexdigest(),
        "set of designs": placed.hexdigest(),
    }
