"""The plan for a table that has been surveyed, and what came of it once it was decided.

Nothing here changes once it is made: `Plan.of` what a survey found, `Plan.judged` what was
decided, `Outcome.entered` into the ledger; certificate and summary are told of each.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from offrecord.designs.clusters import with_clusters
from offrecord.designs.library import Designs
from offrecord.designs.needs import SurroundingCounts
from offrecord.designs.sharing import designs_for
from offrecord.errors import ChosenByValue, InputError, advise
from offrecord.fitting.audit.looks import CHAINS
from offrecord.mechanisms.window import BestWindow
from offrecord.models.audited import Audited
from offrecord.models.base import Integers, Model
from offrecord.models.box import TOO_FEW
from offrecord.models.learned import Learned
from offrecord.release.certificate import Certificate
from offrecord.release.ledger import Ledger, ledger
from offrecord.tables.batch import ChainBatch
from offrecord.tables.cautions import (
    UNAUDITED,
    UNKNOWN_SIGHT,
    about_accepted,
    about_audit,
    about_columns,
    about_distance,
    about_origin,
)
from offrecord.tables.certifying import Stands, certificate_of
from offrecord.tables.entering import (
    Entered,
    about_elsewhere,
    foretold,
    not_continued,
    not_entered,
    refuse_another,
    release_identity,
    standing,
)
from offrecord.tables.erasure import erasure_leakage
from offrecord.tables.job import Job, ModelledJob
from offrecord.tables.meaning import Meaning
from offrecord.tables.model_check import (
    NEIGHBOURS,
    Comparison,
    begun,
    check_origin,
    compared,
    spaced,
    sparse,
)
from offrecord.tables.proving import proven
from offrecord.tables.rule import Rule
from offrecord.tables.secrets import check_all_found
from offrecord.tables.several.accounting import Accounted, accounted_for
from offrecord.tables.several.growing import (
    DESIGNS,
    GROWING,
    KNOWN,
    SETTLED,
    Holding,
    holding_of,
    told_designs,
    told_holding,
)
from offrecord.tables.several.remembered import entry_digest
from offrecord.tables.summary import Summary, models_told
from offrecord.tables.survey import Dropped, Survey, digest_text
from offrecord.tables.tally import Tally
from offrecord.tables.worker import Worker
from offrecord.text import listwise, many

CONTENT = "set of released values"  #: what the ledger calls what left, beside what decided it


@dataclass(frozen=True, eq=False)
class Plan:
    """What a job comes to for a table that has been surveyed.

    uses: (designs,) how many secrets have each by their surroundings. windows: what may act instead
    of designs. rule: what they come to. identity: digests of what decides the release. accepted:
    what speaks against the model, and was accepted. warnings: what a person should know.
    """

    modelled: ModelledJob
    survey: Survey
    dropped: Dropped
    designs: Designs
    uses: Integers
    windows: Designs | None
    rule: Rule
    identity: dict[str, str]
    accepted: tuple[str, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, modelled: ModelledJob, survey: Survey, listed: int, dropped: Dropped) -> Plan:
        """Designs for what a survey found. listed: how long the private list is. dropped: what is
        left out.

        InputError where the table speaks against its model, or was released differently before.
        """
        job = modelled.job
        check_all_found(survey.keys + dropped.keys, listed)
        job.check_private(survey.private, dropped.chains)
        if dropped.chains and job.options.say is not None:
            gone = f"{many(dropped.chains, 'chain')}, {many(dropped.rows, 'row')}"
            job.options.say(f"--drop leaves out {gone}; no file that is written says so")
        accepted = _accepted(job, _doubts(modelled, survey))
        warnings = [*survey.warnings(job.columns, job.step), *_model_warnings(modelled)]
        windows, instead = _windows(modelled, survey)
        designs, which = _designed(modelled, survey, windows)
        columns = job.columns
        warnings += _design_warnings(job, designs)
        warnings += about_columns(columns.order, columns.keep, keep_all=columns.keep_all)
        holding = _holding(modelled, survey, designs) if job.options.growing else None
        identity = release_identity(modelled, survey, dropped, designs, which)
        if holding is not None:
            identity |= {GROWING: told_holding(holding), DESIGNS: told_designs(designs)}
        if job.options.dry_run:
            warnings += foretold(modelled, survey, identity)
        else:
            book = Ledger.read(job.key)
            refuse_another(modelled, book, survey, identity)
            warnings += about_elsewhere(job, book, identity)
        uses = np.bincount(which, survey.needs.counts, minlength=len(designs.designs))
        rule = Rule.of(designs, windows, survey.needs, (which, instead), holding)
        told = tuple(warnings)
        return cls(
            modelled, survey, dropped, designs, uses, windows, rule, identity, accepted, told
        )

    @property
    def job(self) -> Job:
        """What was asked."""
        return self.modelled.job

    @property
    def worker(self) -> Worker:
        """What decides the table."""
        options = self.job.options
        is_local = self.designs.setting.mechanism.designs.kind == "local"
        is_named = options.is_one_file and self.job.columns.order is not None
        is_whole = not (options.drop or options.dry_run)  # else who was dropped would be forgotten
        is_whole = is_whole and self.modelled.since == 1
        remembers = is_local and is_named and is_whole
        return replace(self.modelled.worker, rule=self.rule, remembers=remembers)

    def judged(self, tally: Tally) -> Outcome:
        """What a decision says about what it rests on; InputError if that speaks against the
        promise.

        It looks at values that are released anyway. What it finds about private ones is a Python
        warning, and in no artefact.
        """
        # a model that has seen what is dropped tells about it
        tally = replace(tally, seen=tally.seen + self.dropped.seen)
        if tally.choice is not None and (chosen := tally.choice.warning()) is not None:
            advise([chosen], ChosenByValue)
        comparison = None
        saw, warnings = _sight(self.modelled, tally.seen.count)
        accepted = (*self.accepted, *saw)
        if tally.moves is not None and self.survey.secrets:
            comparison = compared(self.designs, self.uses, tally.moves)
        if comparison is not None:
            objected = _accepted(self.job, [comparison.objection(self.job.epsilon)])
            accepted += objected
            if not objected and (warning := comparison.warning()) is not None:
                warnings.append(warning)
        if tally.firsts is not None and self.survey.secrets:
            warnings += filter(None, [begun(self.modelled.model, tally.firsts)])
        for finding in () if tally.kept is None else tally.kept.findings:
            said = finding.says(self.designs.model.labels)
            if finding.sure:
                raise InputError(f"{said}; leave it out of --keep")
            warnings.append(f"{said}; is it needed?")
        warnings += about_accepted(accepted)
        return Outcome(self, tally, comparison, accepted, (*self.warnings, *warnings))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a plan.

    comparison: of model and table. accepted: what speaks against the model, and was accepted.
    accounted: with which releases before it was judged together, if it was.
    """

    plan: Plan
    tally: Tally
    comparison: Comparison | None
    accepted: tuple[str, ...]
    warnings: tuple[str, ...]
    accounted: Accounted | None = None

    def after(self, batch: ChainBatch) -> Outcome:
        """Judged together with the releases that it comes after; InputError if they tell too much
        together.
        """
        if self.plan.job.options.after is None:
            return self
        accounted = accounted_for(self.plan, batch)
        return replace(self, accounted=accounted, warnings=(*self.warnings, *accounted.warnings))

    @property
    def acting(self) -> tuple[Designs, Integers]:
        """The designs that act, those of windows last, and how many secrets each serves."""
        plan, uses = self.plan, self.tally.uses
        if plan.windows is None or uses is None:
            return plan.designs, plan.uses
        every = (*plan.designs.designs, *plan.windows.designs)
        used = tuple(one for one, count in zip(every, uses.tolist(), strict=True) if count)
        return replace(plan.designs, designs=used), uses[uses > 0]

    @property
    def _identity(self) -> dict[str, str]:
        """What tells the release from others: what decides it, and what leaves."""
        left = {CONTENT: f"{self.tally.content:032x}"}
        if self.plan.rule.holding is not None:
            grown = self.tally.grown
            left[SETTLED] = f"{grown.settled:032x}"
            left[KNOWN] = digest_text(grown.digest, grown.known)
        return {**self.plan.identity, **left}

    def advise(self, more: Iterable[str] = ()) -> None:
        """Warn of what a person should know before a release is entered; InputError, and no
        warning, if the ledger refuses it.
        """
        job = self.plan.job
        if not job.options.dry_run:
            self._refuse_another(Ledger.read(job.key))
        advise([*self.warnings, *more])

    def enter(self) -> Entered | None:
        """Enter the release, and what leaves, into the ledger before anyone sees it: how it stands
        there. InputError for a second, different one. A dry run is no release.
        """
        job = self.plan.job
        if job.options.dry_run:
            return None
        with ledger(job.key) as book:
            self._refuse_another(book)
            self._remember()
            book.add(job.options.dataset, self._identity)
            return standing(job, book, self._identity, self.accounted)

    def _remember(self) -> None:
        """Keep what later releases need to be judged together with this one."""
        if self.plan.worker.remembers:
            held = self.tally.remembered.renumbered(self._numbered)
            held.save(self.plan.job.key, self.certificate(None), entry_digest(self._identity))

    @property
    def _numbered(self) -> Integers | None:
        """How many secrets each design serves, where a certificate lists only those that act."""
        return None if self.plan.windows is None else self.tally.uses

    def _refuse_another(self, book: Ledger) -> None:
        """InputError if the release may not be entered."""
        plan = self.plan
        if self.accounted is not None:
            self.accounted.check_all(book, plan.job.options.dataset, self._identity)
            return
        if book.differences(plan.job.options.dataset, self._identity) == []:
            return  # it has been entered already
        refuse_another(plan.modelled, book, plan.survey, self._identity)
        before = plan.modelled.before
        if before is not None and before.is_unsettled(f"{self.tally.grown.repeated:032x}"):
            raise not_continued(
                plan.job, ["what left before would leave otherwise: values or rows have changed"]
            )

    def certificate(self, entered: Entered | None) -> Certificate:
        """The certificate; it names no output yet."""
        made = self._unentered
        return made if entered is None else made.with_release(entered.said)

    @cached_property
    def _unentered(self) -> Certificate:
        """The certificate of a release that the ledger does not know."""
        is_known = self.plan.modelled.seen is not None and not self.plan.job.options.dry_run
        unseen = self.tally.seen.count == 0 if is_known else None
        joint = None if self.accounted is None else self.accounted.joint
        stands = Stands(not_entered(self.plan.job), joint)
        return certificate_of(
            self.plan, self.acting, self.comparison, self.accepted, unseen, stands
        )

    def summary(self, entered: Entered | None) -> Summary:
        """What the release amounts to."""
        plan, tally, survey = self.plan, self.tally, self.plan.survey
        designs, uses = self.acting
        joint = [bool(one.surrounding.inside) for one in designs.designs]
        model = designs.model
        verdict = None if model.learned is None else model.learned.verdict
        grown, touched = tally.grown, tally.touched
        valued = max(survey.rows - survey.missing - grown.waiting, 1)
        return Summary(
            dataset=plan.job.options.dataset,
            dry_run=plan.job.options.dry_run,
            epsilon=plan.job.epsilon,
            mechanism=designs.setting.mechanism.name,
            rows=survey.rows,
            chains=survey.chains,
            missing=survey.missing,
            private=survey.private,
            secrets=survey.secrets,
            touched=survey.chains_with_secret,
            touched_records=touched.records,
            touched_released=touched.released / max(touched.records, 1),
            lost=touched.lost,
            closed=touched.closed,
            redacted=survey.rows - survey.missing - grown.waiting - round(tally.released),
            waiting=grown.waiting,
            released=tally.released / valued,
            window=tally.window / valued,
            leakage=designs.leakage,
            exact=designs.is_exact,
            models=models_told(plan.modelled.model, verdict),
            meaning=Meaning.of(
                model, survey.needs, designs.most_told, verdict, plan.modelled.model
            ),
            erasure=erasure_leakage(model, survey.needs),
            erasure_is_least=model.box is not None,
            regions=tally.named_regions(survey.private_rows - grown.private),
            designs=len(designs.designs),
            loss=designs.loss,
            seconds=round(time.monotonic() - plan.job.started, 3),
            near=sum(survey.clustered.values()),
            together=int(uses[np.array(joint, dtype=bool)].sum()),
            unserved=plan.modelled.unserved,
            verdict=verdict,
            audit=_audit_told(model),
            warnings=(*self.warnings, *(() if entered is None else entered.warnings)),
        )


def _audit_told(model: Model) -> str | None:
    """The audit's verdict and number, and what was done about it; None where nobody looked."""
    learned = model.learned
    if learned is None or learned.audit is None:
        return None
    done = "" if learned.calibration is None else f"; calibrated: {learned.calibration} (empirical)"
    return f"{learned.audit.short}{done}"


# ---- before anything is decided


#: How a dry run begins to tell what a release would be refused for.
FORETOLD = "this would be refused, as far as can be told without a look at the values,"
#: How an objection begins that the audit of a fit has made.
_AUDITED = "the audit of this model calls it"
#: How one begins that is about what a fit saw.
_SAW = "the model was learned from records that"


def _accepted(job: Job, objections: Iterable[str | None]) -> tuple[str, ...]:
    """What speaks against the model, if that is to be accepted; InputError if it is not."""
    found = tuple(filter(None, objections))
    if found and not job.options.accept_model:
        said = found[0]
        if not said.startswith((_AUDITED, _SAW)):
            said = f"this is not the model of these data: {said}; fit a model to data like these"
        raise InputError(f"{said}, or add --accept-model, and the certificate says so")
    return found


def _doubts(modelled: ModelledJob, survey: Survey) -> list[str | None]:
    """What speaks against a model before a value is looked at; InputError where the table is read
    in another way.
    """
    job, learned = modelled.job, modelled.setting.model.learned
    doubts = [sparse(survey.pairs, survey.linked)]
    if learned is not None:
        timed = "time" if survey.is_timed else "integer"
        kind = "row" if job.columns.order is None else timed
        zone = getattr(survey.order_type, "time_zone", None)
        check_origin(learned, kind, job.step, zone, job.columns.unit)
        doubts.append(_unfit(learned))
        doubts.append(spaced(learned, survey.spacing if survey.pairs >= NEIGHBOURS else None))
    return doubts


def _unfit(learned: Learned) -> str | None:
    """What the audit of the fit says against the model."""
    audit = learned.audit
    if audit is None or audit.verdict != "unfit":
        return None
    remedy = "fit it with --calibrate"
    if audit.kind == CHAINS:
        remedy = "release one of these chains, or make them one (docs/independent-chains.md)"
    return f"{_AUDITED} {audit.short} ({audit.where}); {remedy}"


def _seen(modelled: ModelledJob, count: int) -> str | None:
    """What speaks against a model that was learned from what it should not have seen."""
    if count == 0:
        return None
    learned = modelled.setting.model.learned
    distance = None if learned is None else learned.distance
    said = (
        f"{_SAW} are not released for certain here ({many(count, 'record')}), so it tells of them"
    )
    if distance is not None:
        return f"{said}; learn from further away than --fit-distance {distance}, or from other data"
    return f"{said}; fit it with --private-list or --private, or use redact --fit"


def _sight(modelled: ModelledJob, count: int) -> tuple[tuple[str, ...], list[str]]:
    """What speaks against a model that saw so many records that may be redacted, if that is to be
    accepted; and what a dry run, which knows them by their places alone, warns of instead.

    InputError where it is not to be accepted.
    """
    try:
        return _accepted(modelled.job, [_seen(modelled, count)]), []
    except InputError as error:
        if not modelled.job.options.dry_run:
            raise
        return (), [f"{FORETOLD} unless the model was learned from other data: {error}"]


def _model_warnings(modelled: ModelledJob) -> list[str]:
    """What a person should know about the model."""
    job, model = modelled.job, modelled.setting.model
    warnings = about_origin(model.learned, job.options.value)
    warnings += _learning_warnings(modelled)
    if model.box is not None and model.box.has_unseen:
        warnings.append(TOO_FEW)
    audit = None if model.learned is None else model.learned.audit
    if model.learned is not None and audit is None:
        warnings.append(UNAUDITED)
    if model.learned is not None and audit is not None:
        warnings += _audit_warnings(job, model.learned, audit)
    if job.given_model is not None and job.given_model.rounded() is not job.given_model:
        warnings.append(
            "the model was rounded to four digits, as it is published; the guarantee is about the"
            " rounded one"
        )
    return warnings


def _learning_warnings(modelled: ModelledJob) -> list[str]:
    """What a person should know about which records a model was learned from."""
    learned = modelled.setting.model.learned
    warnings = about_distance(learned)
    if learned is not None and modelled.seen is None:
        warnings.append(UNKNOWN_SIGHT)
    return warnings


def _audit_warnings(job: Job, learned: Learned, audit: Audited) -> list[str]:
    """What a person should know about an audit."""
    warnings = about_audit(audit, job.epsilon)
    if job.options.exact_model and learned.calibration is not None:
        warnings.append(
            "the audit is of a model that was calibrated, its set too; designs for the model alone"
            " may redact less, and nobody looked at them"
        )
    return warnings


def _designed(
    modelled: ModelledJob, survey: Survey, windows: Designs | None
) -> tuple[Designs, Integers]:
    """The designs that a table needs, and which each surrounding gets; new ones, and windows that
    may act in their place, are kept in their file, if there is one and the run is not dry.
    """
    options, known = modelled.job.options, modelled.known
    designs, which = designs_for(
        modelled.setting,
        survey.needs,
        known=known,
        growing=options.growing,
        progress=listwise(options.progress),
        max_minutes=options.design_minutes,
    )
    designs = with_clusters(
        designs, survey.clustered, known=known, progress=listwise(options.progress)
    )
    designs = proven(designs, known)
    kept = designs if windows is None else replace(designs, windows=windows.designs)
    is_new = known is None or not known.sealed or kept.adds_to(known)
    if options.designs is not None and is_new and not options.dry_run:
        kept.merged(known).save(options.designs, modelled.job.key.secret)
    return designs.for_gaps(survey.needs.gaps), which


def _windows(modelled: ModelledJob, survey: Survey) -> tuple[Designs | None, Integers]:
    """The windows of a table and which each surrounding gets, if they may act instead of designs of
    its mechanism; one of one's own need not know.
    """
    is_asked = getattr(modelled.setting.mechanism, "keeps_to_windows", False)
    if not is_asked or modelled.job.options.growing:  # then rules may not depend on what comes
        return None, np.empty(0, dtype=np.int64)
    setting = modelled.setting._replace(mechanism=BestWindow())
    # Without grids: a table has the same windows whatever other tables have brought to their file.
    sealed = () if modelled.known is None else modelled.known.windows
    known = Designs(setting, sealed, sealed=True)
    found, which = designs_for(setting, survey.needs, known=known)
    return proven(found, known), which


def _design_warnings(job: Job, designs: Designs) -> list[str]:
    """What a person should know about the file of designs."""
    if not designs.refused:
        return []
    return [
        f"{job.options.designs} has no seal of this key and version, and does not keep within ε"
        f" here: made {many(designs.refused, 'design')} anew"
    ]


def _holding(modelled: ModelledJob, survey: Survey, designs: Designs) -> Holding:
    """What waits in a growing table, whatever secrets come later."""
    room = modelled.worker.spec.limits[0] or 0
    lengths = (1, 2) if modelled.setting.protect == "run" else (1,)
    any_of = SurroundingCounts.of(
        np.array([[room, room, length, 0] for length in lengths]),
        np.ones(len(lengths), dtype=np.int64),
        {},
        (),
    )
    standing = replace(designs, sealed=True)
    later, _ = designs_for(modelled.setting, any_of, known=standing, growing=True)
    every = replace(designs, designs=(*designs.designs, *later.designs))
    return holding_of(every, survey.newest, modelled.job.options.lag)
