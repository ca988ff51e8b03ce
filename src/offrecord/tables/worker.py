"""The worker: what every engine carries to its rows, and all that is done to them there.

An engine only brings batches to it and takes away what it says. It can be pickled; the key goes
its own way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.fitting.counting import Counts
from offrecord.mechanisms.blocks import NEVER, Block, Mask, Secrets
from offrecord.models.base import Integers
from offrecord.models.records import MISSING, Chains
from offrecord.release import coins
from offrecord.release.coins import RECORDS, ChainTags, Coins, Counter, Draws
from offrecord.tables.acting import Acting
from offrecord.tables.batch import ChainBatch, Chosen, TableSpec
from offrecord.tables.chains import Arranged
from offrecord.tables.choice import choice_of
from offrecord.tables.contents import record_numbers
from offrecord.tables.model_check import (
    check_lengths,
    counted_shape,
    first_counts,
    model_counts,
)
from offrecord.tables.optouts import OptOuts
from offrecord.tables.rule import Rule, check_known, unknown_rows, with_waiting
from offrecord.tables.secrets import Private, begins_secret, secrets_of
from offrecord.tables.seen import Seen, Sighting
from offrecord.tables.several.growing import Before, Grown, Holding
from offrecord.tables.several.remembered import Part, Remembered
from offrecord.tables.survey import Dropped, Survey
from offrecord.tables.tally import Tally
from offrecord.tables.telling import Sample
from offrecord.tables.threads import in_threads, table_threads
from offrecord.tables.writing import emptied, released_values, without_hidden

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class KeyedBatch:
    """A batch with its coins: what decides which records are redacted beside the rule."""

    batch: ChainBatch
    coins: Coins

    @cached_property
    def tags(self) -> ChainTags:
        """(c, 2) the tags that the coins of chains with a secret come from."""
        return self.coins.chain_tags(self._named)

    @cached_property
    def _named(self) -> list[bytes]:
        """(c,) the encoded values of chains with a secret."""
        tagged = self.batch.chains_with_secret
        values = self.batch.arranged.chain_values(tagged)
        return list(coins.joined(values, len(tagged)))

    @cached_property
    def _tagged(self) -> Integers:
        """(m,) which of the tags each chain has that holds a secret; of others, no matter what."""
        tagged = np.zeros(self.batch.arranged.chains.count, dtype=np.int64)
        tagged[self.batch.chains_with_secret] = np.arange(len(self.batch.chains_with_secret))
        return tagged

    def tags_of(self, chain: Integers) -> ChainTags:
        """(r, 2) the tags of some chains that hold a secret."""
        return self.tags.take(self._tagged[chain], axis=0)  # far faster than an index

    def draw(
        self,
        chain: Integers,
        order: NDArray[np.integer],
        purpose: bytes = RECORDS,
        counter: Counter = 0,
    ) -> Draws:
        """(r,) a draw for each record of chains that hold a secret, by the numbers that these have
        where they are decided.
        """
        kind, tags = _order_kind(self.batch.arranged), self.tags_of(self.batch.whole_chains(chain))
        return self.coins.draw(tags, order, kind, purpose, counter)

    def set_digests(self, chain: Integers, order: Integers, groups: Integers, count: int) -> Draws:
        """(count, 2) a digest of each group of records."""
        kind = _order_kind(self.batch.arranged)
        return self.coins.set_digests(self.tags_of(chain), order, kind, groups, count)

    def known_again(self, chain: Integers, order: Integers) -> Draws:
        """(2,) a digest of some records, whatever the name of their data set."""
        tags = self.coins.tags_anywhere(self._named)[self._tagged[chain]]
        alone = np.zeros(len(chain), dtype=np.int64)
        kind = _order_kind(self.batch.arranged)
        return np.asarray(self.coins.set_digests(tags, order, kind, alone, 1)[0])


def _order_kind(arranged: Arranged) -> int:
    return coins.TIME if arranged.chains.timed else coins.INTEGER


@dataclass(frozen=True, eq=False)
class Worker:
    """Reads and surveys batches and, once there is a rule, decides them.

    positions: surveys list the keys of private records. seen: what the model was learned from, as
    far as that is known. before: the release of a growing table that this one is to continue.
    remembers: what is private, and what acts around it, is kept for later releases.
    """

    spec: TableSpec
    coins: Coins
    positions: bool = False
    seen: Seen | None = None
    rule: Rule | None = None
    before: Before | None = None
    remembers: bool = False

    def without_key(self) -> Worker:
        """The same, to be shown to whoever may not have the key."""
        return replace(self, coins=replace(self.coins, key=b""))

    def with_key(self, key: bytes) -> Worker:
        """The same, with its key."""
        return replace(self, coins=replace(self.coins, key=key))

    def read(self, frame: pl.DataFrame, optouts: OptOuts | None) -> Chosen:
        """Rows of whole chains, and what is private in them."""
        return self.spec.read(frame, optouts)

    def keyed(self, arranged: Arranged, private: Private) -> KeyedBatch:
        """A batch with its coins."""
        return KeyedBatch(self.spec.batch(arranged, private), self.coins)

    def dropped(self, chosen: Chosen) -> Dropped:
        """What is left out of some rows."""
        if not chosen.dropped.any():
            return Dropped()
        arranged, private = chosen.arranged, chosen.private.of_chains(chosen.dropped)
        chains, which = np.unique(private.chain, return_inverse=True)
        tags = self.coins.chain_tags(coins.joined(arranged.chain_values(chains), len(chains)))
        alone = np.zeros(private.count, dtype=np.int64)
        kind = _order_kind(arranged)
        digest = self.coins.set_digests(tags[which], private.order, kind, alone, 1)[0]
        rows = int(np.diff(arranged.chains.starts)[chosen.dropped].sum())
        keys = chosen.private.keys - (0 if chosen.kept is None else chosen.kept[1].keys)
        seen = Sighting()
        if self.seen is not None and arranged.unlabelled is None:  # else it was learned without
            everything = np.ones(len(arranged.chains.codes), dtype=bool)
            seen = self.seen.sighting(self.coins.key, arranged, chains, everything)
        return Dropped(len(chains), rows, private.count, keys, digest, seen)

    def survey(self, keyed: KeyedBatch) -> Survey:
        """What is found out about a batch before anything is decided; InputError for lengths that
        the model does not serve.
        """
        import polars as pl

        batch = keyed.batch
        arranged, private, secrets = batch.arranged, batch.private, batch.secrets
        chains, by = arranged.chains, self.spec.columns.by
        check_lengths(self.spec.model, chains)
        rows, used, _ = batch.distinct
        alone = np.zeros(private.count, dtype=np.int64)
        known, reached = np.zeros(private.count, dtype=bool), 0
        if self.before is not None:
            known = self.before.known_private(arranged, private)
            reached = self.before.reached(arranged, private, secrets, self.spec.protect)
        return Survey(
            rows=batch.rows,
            chains=chains.count,
            missing=0 if batch.valued is None else batch.rows - int(batch.valued.sum()),
            private=private.count,
            secrets=secrets.count,
            chains_with_secret=len(batch.chains_with_secret),
            private_rows=len(private.rows(chains)),
            keys=private.keys,
            beside=arranged.beside,
            spread=arranged.spread,
            pairs=arranged.pairs[0],
            linked=arranged.pairs[1],
            spacings=() if arranged.spacing is None else (arranged.spacing,),
            names_are_integers=tuple(arranged.names[name].dtype.is_integer() for name in by),
            names_are_text=tuple(arranged.frame[name].dtype == pl.String for name in by),
            order_type=arranged.order_type,
            needs=batch.needs,
            clustered=batch.clusters.secrets,
            secrets_digests=keyed.set_digests(batch.secret_chains, secrets.order, used, len(rows)),
            private_digest=keyed.set_digests(private.chain, private.order, alone, 1)[0],
            records_digest=keyed.known_again(private.chain, private.order),
            positions=_positions(batch) if self.positions else [],
            newest=int(chains.order.max()),
            known=int(known.sum()),
            known_digest=keyed.set_digests(
                private.chain[known], private.order[known], alone[known], 1
            )[0],
            reached=reached,
        )

    def expect(self, keyed: KeyedBatch) -> Tally:
        """What a release of a batch is expected to show, without a look at the values."""
        assert self.rule is not None
        tally, sure = self.rule.expected(keyed.batch)
        return replace(tally, seen=self._sighting(keyed, ~sure))

    def decide(self, keyed: KeyedBatch) -> tuple[pl.DataFrame, Tally]:
        """Decide a batch: the released rows, and counts."""
        assert self.rule is not None
        rule, model = self.rule, self.spec.model
        batch = rule.due(keyed.batch)
        chains, acting = batch.arranged.chains, rule.acting(batch)
        gone, sure = np.zeros(batch.rows, dtype=bool), np.zeros(batch.rows, dtype=bool)

        def decided(block: Block) -> _Decided:
            redacted, certainty = rule.decided(batch, block, keyed.draw)
            if batch.waits is not None:
                redacted = redacted | batch.waits[block.rows]
                certainty = with_waiting(batch, block, certainty)
            gone[block.rows], sure[block.rows] = redacted, certainty == NEVER
            plain = np.where(sure[block.rows], block.codes, np.int8(MISSING))
            return _Decided(
                Tally.of(batch, block, ~redacted, certainty),
                model_counts(model, chains, block.rows, plain, batch.phases),
                first_counts(model, chains, block.rows, plain),
                _contents(chains, block.rows, redacted),
                unknown_rows(block, certainty),
            )

        _ = keyed.tags  # found once, before several ask for them
        every = list(rule.blocks(batch, acting))
        found = list(in_threads(decided, every, table_threads(len(every))))
        check_known(batch.arranged, [one.unknown for one in found])
        tagged = batch.chains_with_secret
        content = self.coins.content_digest(
            keyed.tags,
            np.concatenate([one.contents for one in found])[tagged],
            np.diff(chains.starts)[tagged],
        )
        tally = replace(
            sum((one.counted for one in found), Tally()),
            window=rule.windows.released(batch),
            moves=sum((one.moves for one in found), np.zeros(counted_shape(model), np.int64)),
            firsts=sum((one.firsts for one in found), np.zeros(model.k, np.int64)),
            choice=choice_of(chains, self._chosen(batch), model.k, rule.reach),
            kept=Sample.of(batch.arranged, gone),
            content=content,
            seen=self._sighting(keyed, ~sure),
            uses=acting.uses,
            grown=self._grown(keyed, batch.waiting, gone),
            remembered=_remembered(keyed, acting) if self.remembers else Remembered(),
        )
        return _released(batch.arranged, gone), tally

    def _chosen(self, batch: ChainBatch) -> Secrets:
        """The secrets of a batch as they were chosen, whatever they are decided as."""
        if batch.openings is None:
            return batch.secrets
        return secrets_of(batch.arranged.chains, batch.private, self.spec.protect)

    def _sighting(self, keyed: KeyedBatch, marked: Mask) -> Sighting:
        """What the model was learned from, met among rows that are marked."""
        if self.seen is None:
            return Sighting()
        batch = keyed.batch
        return self.seen.sighting(keyed.coins.key, batch.arranged, batch.chains_with_secret, marked)

    def _grown(self, keyed: KeyedBatch, waiting: tuple[int, int], gone: Mask) -> Grown:
        """What is counted of a table that grows."""
        assert self.rule is not None
        holding, private = self.rule.holding, keyed.batch.private
        if holding is None:
            return Grown()
        place = holding.known(keyed.batch.arranged)[private.chain]
        chain, order = (one[private.place <= place] for one in (private.chain, private.order))
        digest = keyed.set_digests(chain, order, np.zeros(len(chain), dtype=np.int64), 1)[0]
        before = 0 if self.before is None else _settled(keyed, self.before.holding, gone)
        return Grown(*waiting, len(chain), digest, _settled(keyed, holding, gone), before)


class _Decided(NamedTuple):
    """What is counted of a block, and (m,) a number for what leaves of each of its chains.

    unknown: rows whose values the rule must know, and nobody does.
    """

    counted: Tally
    moves: Counts
    firsts: Counts
    contents: NDArray[np.uint64]
    unknown: Integers


def _remembered(keyed: KeyedBatch, acting: Acting) -> Remembered:
    """What is kept for later releases."""
    batch, secrets = keyed.batch, acting.secrets
    private = batch.private
    begins = begins_secret(batch.arranged.chains, private, batch.secrets)
    part = Part(
        keyed.tags_of(private.chain),
        np.stack((private.place, private.order, begins), axis=1),
        keyed.tags_of(secrets.chain),
        np.stack((secrets.first, secrets.last, acting.which), axis=1),
    )
    return Remembered((part,))


def _positions(batch: ChainBatch) -> list[list[Any]]:
    """The key of each private record: its chain's names, and its order value."""
    arranged, private = batch.arranged, batch.private
    order = private.order.tolist()
    if not arranged.columns.by:
        return [[value] for value in order]
    names = arranged.names[arranged.chains.starts[private.chain]]
    return [[*map(_plain, row), value] for row, value in zip(names.iter_rows(), order, strict=True)]


def _plain(cell: Any) -> Any:
    return cell if isinstance(cell, (str, int, bool)) else cell.isoformat()


def _contents(chains: Chains, rows: slice, redacted: Mask) -> NDArray[np.uint64]:
    """(m,) a number for what leaves of each chain in `rows`: over its records, the sum of their
    order value and code, mixed.
    """
    shown = ((chains.codes[rows] + np.int8(1)) * ~redacted).view(np.uint8)  # 0: empty
    mixed = record_numbers(chains.order[rows], shown)
    first, end = np.searchsorted(chains.starts, (rows.start, rows.stop))
    return np.add.reduceat(mixed, chains.starts[first:end] - rows.start)


def _settled(keyed: KeyedBatch, holding: Holding, gone: Mask) -> int:
    """A digest of what leaves of records that do not wait, in chains with a private record of which
    that is known.
    """
    arranged, private = keyed.batch.arranged, keyed.batch.private
    if private.count == 0:
        return 0
    chains = arranged.chains
    known = np.unique(private.chain[private.place <= holding.known(arranged)[private.chain]])
    settled = chains.places < holding.begins(arranged, private)[chains.chain_of]
    shown = ((chains.codes + np.int8(1)) * ~gone).view(np.uint8)
    mixed = record_numbers(chains.order, shown) * settled
    contents = np.add.reduceat(mixed, chains.starts[:-1])[known]
    lengths = np.add.reduceat(settled, chains.starts[:-1], dtype=np.int64)[known]
    return keyed.coins.content_digest(keyed.tags_of(known), contents, lengths)


def _released(arranged: Arranged, gone: Mask) -> pl.DataFrame:
    """The rows as they leave: sorted, emptied where they are redacted, with nothing underneath."""
    columns, chains = arranged.columns, arranged.chains
    empty = gone | (chains.codes < 0)
    values = released_values(
        columns.value, chains.codes, empty, arranged.labels, arranged.value_type
    )
    frame = arranged.frame.with_columns(values) if arranged.frame.width else values.to_frame()
    frame = frame.select(columns.released)
    if columns.keep and not columns.keep_all:
        frame = emptied(frame, columns.keep, gone)
    return without_hidden(frame, columns.keep)
