"""A release by local designs as one matrix: its records, and how likely each value was redacted."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.base import Decider
from offrecord.mechanisms.blocks import Mask, Secrets, blocks
from offrecord.models.base import Floats, Integers, Label
from offrecord.models.records import MISSING, Chains, Codes
from offrecord.release import certificate as form
from offrecord.release.coins import INTEGER, TIME, ChainTags, Coins, joined
from offrecord.release.keys import Key
from offrecord.tables.acting import BLOCK, Acting
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.batch import ChainBatch
from offrecord.tables.certified import Certified
from offrecord.tables.chains import Arranged, arrange
from offrecord.tables.formats import read_frame
from offrecord.tables.rule import Rule
from offrecord.tables.secrets import Private, begins_secret, rows_of
from offrecord.tables.several.growing import Holding
from offrecord.tables.several.remembered import Part, Remembered
from offrecord.tables.survey import digest_text

if TYPE_CHECKING:
    import polars as pl

CERTIFICATE = ".certificate.json"  #: what the name of a certificate adds to that of its table
#: The column of order values, and of whether a private record begins a secret; those of chain
#: names are called by their numbers.
ORDER, BEGINS = "order", "begins"
_LOCAL = ("local", form.CLUSTERED)


@dataclass(frozen=True, eq=False, repr=False)
class Laid:
    """A release. coins: releases with the same draw the same coins for the same records. records: a
    row for each, its chain and order value, with redaction probabilities rows (n, k); what is not
    there is redacted. values: (n,) which label each has, MISSING where none is known. private: the
    private records, and whether each begins a secret.
    """

    coins: Hashable
    records: pl.DataFrame
    rows: Floats
    values: Codes
    private: pl.DataFrame

    @classmethod
    def of(
        cls,
        coins: Hashable,
        arranged: Arranged,
        private: tuple[Private, Mask],
        decider: Decider,
        acting: Acting,
    ) -> Laid:
        """Of a whole table, by what acts in it. private: its private records, and which of them
        begin a secret.
        """
        import polars as pl

        held, begins = private
        chains = arranged.chains
        told = [
            np.stack(list(decider.explain(block, arranged.labels).rule.values()), axis=1)
            for block in blocks(chains, acting.secrets, acting.which, BLOCK)
        ]
        rows = np.concatenate(told)
        rows[held.rows(chains)] = 1.0
        names = _named(arranged)
        order = pl.Series(ORDER, chains.order.astype(np.int64))
        marks = pl.Series(ORDER, held.order), pl.Series(BEGINS, begins)
        listed = names[chains.starts[held.chain]].with_columns(marks)
        return cls(coins, names.with_columns(order), rows, chains.codes, listed)

    def without(self, some: Mask) -> Laid:
        """Without some records: nobody can tell one that is not there from a redacted one."""
        return replace(self, rows=np.where(some[:, None], 1.0, self.rows))

    def labelled(self, old: Sequence[Label], new: Sequence[Label]) -> Laid:
        """With numbers that stand for other labels; InputError unless these are the same values."""
        number = {str(label): at for at, label in enumerate(old)}
        if sorted(number) != sorted(map(str, new)):
            raise InputError("its records have other values than those of this table")
        at = [number[str(label)] for label in new]
        known = np.argsort(at).astype(np.int8)[np.maximum(self.values, 0)]
        values = np.where(self.values >= 0, known, np.int8(MISSING))
        return replace(self, rows=np.ascontiguousarray(self.rows[:, at]), values=values)


def _named(arranged: Arranged) -> pl.DataFrame:
    """The names of each row's chain as text, which is the same however a table is kept."""
    import polars as pl

    if not arranged.columns.by:
        return pl.DataFrame({"0": np.zeros(len(arranged.chains.codes), dtype=np.int8)}).cast(
            pl.String
        )
    return arranged.names.select(
        pl.col(name).cast(pl.String).alias(str(at)) for at, name in enumerate(arranged.columns.by)
    )


def laid_now(coins: Hashable, batch: ChainBatch, rule: Rule) -> Laid:
    """What is about to be released."""
    arranged = batch.arranged
    begins = begins_secret(arranged.chains, batch.private, batch.secrets)
    private = batch.private, begins
    laid = Laid.of(coins, arranged, private, rule.decider, rule.acting(batch))
    return laid.without(arranged.chains.codes == MISSING)


# ---- releases from before


@dataclass(frozen=True, eq=False, repr=False)
class Earlier:
    """A release from before. told: what another certificate says of it. is_exact: no record was
    without a value, which looks as if it had been redacted. entry: a digest of its entry in the
    ledger of this key.
    """

    told: form.Earlier
    columns: form.Columns
    laid: Laid
    is_exact: bool
    entry: str


def earlier_of(path: Path, key: Key, labels: Sequence[Label], mine: Hashable) -> Earlier:
    """From a certificate, its table beside it and what is kept beside the key; InputError where one
    of these is not there, or does not belong to it. mine: the coins of the release it is for.
    """
    said = Certified.load(path)
    certificate = said.certificate
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if certificate.designs.kind not in _LOCAL:
        raise InputError(
            f"{path}: releases of the kind {certificate.designs.kind!r} are judged together with"
            " others only if they are the same, or the table grows (--growing); take a local"
            " --mechanism from the first release on"
        )
    columns = certificate.columns
    if columns.order == "row":
        raise InputError(f"{path}: by --order row nobody can tell which records are the same")
    arranged = _released(path, said)
    kept = Remembered.load(key, certificate)
    if kept is None:
        raise InputError(
            f"{path}: nothing is kept beside the key {key.file} of which records were private in"
            " this release: bring back the folder beside the key, or the key it was made with"
        )
    held, entry = kept
    coins = Coins(key.secret, certificate.dataset, columns.value)
    _check_kept(held, coins, certificate)
    count = arranged.chains.count
    tags = coins.chain_tags(joined(arranged.chain_values(np.arange(count)), count))
    private = _private(held, tags)
    _check_places(arranged.chains, private[0].chain, private[0].place)
    decider = said.setting.mechanism.designs.decider(said.every, said.model)
    domain = coins_of(certificate)
    laid = Laid.of(domain, arranged, private, decider, _acting(held, tags, arranged.chains))
    # what no design redacts, and yet is empty, had no value
    laid = laid.without((arranged.chains.codes == MISSING) & ~laid.rows.any(axis=1))
    if certificate.growing is not None:
        holding = Holding(**certificate.growing.to_dict())
        laid = laid.without(holding.waits(arranged, private[0]))
    try:
        laid = laid.labelled(said.model.labels, labels)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    told = form.Earlier(dataset=certificate.dataset, certificate=digest, same_coins=domain == mine)
    return Earlier(told, columns, laid, certificate.counts.missing == 0, entry)


_NOT_ITS_OWN = "what is kept of an earlier release beside the key is not of its table"


def _check_kept(held: Part, coins: Coins, certificate: form.Certificate) -> None:
    """InputError unless the private records that are kept are those of the certificate's digest."""
    kind = TIME if certificate.columns.order_kind == "time" else INTEGER
    alone = np.zeros(len(held.private), dtype=np.int64)
    digest = coins.set_digests(held.tags, held.private[:, 1], kind, alone, 1)[0]
    if digest_text(digest, len(held.private)) != certificate.private.digest:
        raise InputError(_NOT_ITS_OWN)


def _check_places(chains: Chains, chain: Integers, place: Integers) -> None:
    """InputError for places beyond the ends of their chains."""
    if np.any(place > chains.places[chains.starts[chain + 1] - 1]):
        raise InputError(_NOT_ITS_OWN)


def coins_of(certificate: form.Certificate) -> Hashable:
    """What decides the coins of records."""
    columns = certificate.columns
    return certificate.key_id, certificate.dataset, columns.value, tuple(columns.by)


def _released(path: Path, said: Certified) -> Arranged:
    """The table of a certificate, which lies beside it."""
    output = said.certificate.output
    table = path.with_name(path.name.removesuffix(CERTIFICATE))
    if output is None or output.sha256 is None or not table.is_file() or table == path:
        raise InputError(
            f"{path}: its released table must lie beside it, as {table.name}, in one file"
        )
    with table.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != output.sha256:
            raise InputError(f"{table} is not the table of {path.name}: its SHA-256 is another")
    frame = read_frame(table, said.columns.released)
    return arrange(frame, said.columns, alphabet=Alphabet(said.model.labels), step=said.step)


def _private(held: Part, tags: ChainTags) -> tuple[Private, Mask]:
    """The private records, and which of them begin a secret."""
    chain = _numbers(held.tags, tags)
    place, order, begin = held.private.T
    by = np.lexsort((place, chain))
    return Private(chain[by], place[by], order[by]), begin[by] > 0


def _acting(held: Part, tags: ChainTags, chains: Chains) -> Acting:
    """Which design acted around secrets, or clusters of them."""
    chain = _numbers(held.around, tags)
    sorted_ = np.lexsort((held.acting[:, 0], chain))
    chain, (first, last, which) = chain[sorted_], held.acting[sorted_].T
    _check_places(chains, chain, last)
    low, high = rows_of(chains, chain, first)[0], rows_of(chains, chain, last)[1]
    return Acting(Secrets(chain, first, last, low, high, np.zeros_like(first)), which)


def _numbers(wanted: ChainTags, tags: ChainTags) -> Integers:
    """(m,) which chain each tag is."""
    numbers = {tag: number for number, tag in enumerate(map(tuple, tags.tolist()))}
    try:
        found = [numbers[tag] for tag in map(tuple, wanted.tolist())]
    except KeyError:
        raise InputError(_NOT_ITS_OWN) from None
    return np.array(found, dtype=np.int64)
