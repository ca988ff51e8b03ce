"""A report of a release from its files: what its certificate says, and what the released table and
the places of private records add to that. Nothing is believed unchecked, and nothing is made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from offrecord.attack.released import Table
from offrecord.designs.needs import SurroundingCounts
from offrecord.errors import InputError
from offrecord.models.audited import Audited
from offrecord.models.box import TOO_FEW
from offrecord.release.certificate import Certificate
from offrecord.reports.around import around_of, costs_of
from offrecord.reports.content import Checked, Content, Curve, Left, Named, Names
from offrecord.reports.curve import thorough_curve
from offrecord.reports.opted import named_costs
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.budgets import Blank
from offrecord.tables.cautions import (
    UNAUDITED,
    UNKNOWN_SIGHT,
    about_accepted,
    about_audit,
    about_columns,
    about_distance,
    about_origin,
    about_others,
)
from offrecord.tables.certified import Certified
from offrecord.tables.chains import Arranged, arrange
from offrecord.tables.erasure import erasure_leakage
from offrecord.tables.formats import read_frame
from offrecord.tables.meaning import Meaning
from offrecord.tables.summary import models_told
from offrecord.tables.tally import Tally
from offrecord.verify import verify
from offrecord.verify.table.files import check_bytes
from offrecord.verify.table.found import Found

NO_TABLE = "that takes the released table and the places of private records"


def content_from(
    certificate: Path, released: Path | None, private_list: Path | None = None
) -> Content:
    """What files say; InputError for what cannot be read, and for another table than that of the
    certificate.
    """
    said = Certified.load(certificate)
    document = said.certificate
    if released is not None:
        _check_same(document, released)
    verdict = verify(certificate, released, private_list=private_list)
    what = "the certificate" if released is None else "certificate and released table"
    checked = Checked(verdict.told, tuple(verdict.problems), what)
    table = None
    if released is not None and checked.holds:
        table = _Table.read(released, said, private_list)
    designs, uses = said.every, [one.uses for one in document.designs.designs]
    digest = None if document.output is None else document.output.sha256
    names = Names(certificate.name, None if released is None else released.name, digest)
    return Content(
        certificate=document,
        names=names,
        left=Left() if table is None else table.left,
        warnings=tuple(_warnings(said)),
        checked=checked,
        models=models_told(said.promised, _verdict(said)),
        meaning=_meaning(said, None if table is None else table.needs),
        around=around_of(designs, uses, said.model),
        costs=costs_of(designs, uses, said.model),
        curve=Curve(why=NO_TABLE) if table is None else table.curve,
        named=() if table is None else table.named,
    )


def _check_same(document: Certificate, released: Path) -> None:
    """InputError for another table than the certificate's."""
    if document.output is None:
        raise InputError("the certificate names no released table: it was not written with one")
    found = Found()
    check_bytes(document.output, released, found)
    if any("SHA-256" in problem or "files" in problem for problem in found.problems):
        raise InputError(
            f"{released} is not the table of this certificate: its SHA-256 is another one"
        )


@dataclass(frozen=True, eq=False)
class _Table:
    """A released table as far as its files tell. whole: with the places of private records."""

    said: Certified
    arranged: Arranged
    whole: Table | None

    @classmethod
    def read(cls, path: Path, said: Certified, private_list: Path | None) -> _Table:
        """Read it; InputError for a private list of something else."""
        document = said.certificate
        frame = read_frame(path, said.columns.released)
        alphabet = Alphabet(said.model.labels)
        arranged = arrange(frame, said.columns, alphabet=alphabet, step=said.step)
        is_told = private_list is not None or document.private.positions is not None
        if not is_told or document.growing is not None:
            return cls(said, arranged, None)
        whole = Table.of(arranged, said, private_list, with_openings=True)
        if int(whole.missing.sum()) != document.counts.missing:
            return cls(said, arranged, None)  # which records were missing is not known
        return cls(said, arranged, whole)

    @property
    def needs(self) -> SurroundingCounts | None:
        """The surroundings of its secrets."""
        return None if self.whole is None else self.whole.batch.needs

    @property
    def left(self) -> Left:
        """What left."""
        counts = self.said.certificate.counts
        shown = int((self.arranged.chains.codes >= 0).sum())
        if self.said.certificate.growing is not None:
            return Left()  # what waits is not told from what is redacted
        records = counts.rows - counts.missing
        share = shown / max(records, 1)
        if self.whole is None:
            return Left(records=records, released=share, kept_back=records - shown, waiting=0)
        whole, batch, rule = self.whole, self.whole.batch, self.whole.rule
        masses, tally = batch.masses(self.said.model), Tally()
        for block in rule.blocks(batch, whole.acting):
            certainty = rule.foretold(batch, block, masses).certainty
            tally += Tally.of(batch, block, whole.codes[block.rows] >= 0, certainty)
        touched, private = tally.touched, len(batch.private.rows(batch.arranged.chains))
        return Left(
            records=records,
            released=share,
            kept_back=records - shown,
            waiting=0,
            touched=len(batch.chains_with_secret),
            touched_records=touched.records,
            touched_released=touched.released / max(touched.records, 1),
            lost=touched.lost,
            closed=touched.closed,
            window=rule.windows.released(batch) / max(records, 1),
            private=private,
            regions=tally.named_regions(private),
            erasure=erasure_leakage(self.said.model, batch.needs),
            erasure_is_least=self.said.model.box is not None,
        )

    @property
    def curve(self) -> Curve:
        """What other budgets would release."""
        if self.whole is None:
            return Curve(why=NO_TABLE)
        if self.whole.batch.secrets.count == 0:
            return Curve(why="no record is private: all of them leave with every budget")
        document = self.said.certificate
        share = 1.0 if document.learned is None else document.learned.share
        blank = Blank.of(self.said.spec, self.whole.batch, share, growing=False)
        return thorough_curve(blank, self.said.setting.mechanism, document.claim.epsilon)

    @property
    def named(self) -> tuple[Named, ...]:
        """What each opt-out cost, where their places are published."""
        if self.whole is None or self.said.certificate.private.positions is None:
            return ()
        whole = self.whole
        return named_costs(whole.batch, whole.acting, whole.designs.designs, self.said.model)


def _verdict(said: Certified) -> str | None:
    """What the fit of the model said about itself; None for a model that was not learned by one."""
    learned = said.certificate.learned
    return None if learned is None else learned.verdict


def _meaning(said: Certified, needs: SurroundingCounts | None) -> Meaning | None:
    """What the promise means; None without secrets, and where the places of secrets are not known
    and matter.
    """
    model, designs, verdict = said.model, said.every, _verdict(said)
    told = max((one.leakage + one.rounding for one in designs), default=0.0)
    if needs is not None:
        return Meaning.of(model, needs, told, verdict)
    if not designs or not model.is_stationary:
        return None
    rows = np.array([[*one.surrounding[:3], 0] for one in designs[:1]])
    one = SurroundingCounts.of(rows, np.ones(1, dtype=np.int64), {})
    return Meaning.of(model, one, told, verdict)


def _warnings(said: Certified) -> list[str]:
    """What a person should know, as far as the certificate says it."""
    document, model = said.certificate, said.model
    learned, check = document.learned, document.model_check
    warnings = about_origin(learned, document.columns.value)
    warnings += about_distance(learned)
    if learned is not None and check.unseen is None:
        warnings.append(UNKNOWN_SIGHT)
    if model.box is not None and model.box.has_unseen:
        warnings.append(TOO_FEW)
    if learned is not None and learned.audit is None:
        warnings.append(UNAUDITED)
    if learned is not None and learned.audit is not None:
        warnings += about_audit(Audited(**vars(learned.audit)), document.claim.epsilon)
    columns = document.columns
    order = None if columns.order == "row" else columns.order
    warnings += about_columns(order, columns.keep, keep_all=columns.keep_all)
    warnings += about_accepted(check.accepted)
    return warnings + about_others(document.release, document.dataset)
