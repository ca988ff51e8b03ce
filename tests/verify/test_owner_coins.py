"""Owner's releases with the key: every draw anew, by what is released, and by the original."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from offrecord.errors import InputError
from offrecord.release.certificate import StoppingSide
from offrecord.release.keys import Key
from offrecord.verify.table import check_table
from test_table import MODELS, Released, table, with_cell

pytestmark = pytest.mark.usefixtures("known_keys")
NEAR = {(0, 4), (0, 8), (1, 0), (2, 9), (2, 11), (3, 18), (4, 2), (4, 6), (5, 1), (5, 5)}


def owner(tmp_path, name="two values", **parts):
    model = MODELS[name]
    frame = table(model, **{"chains": 8, "private": NEAR, **parts})
    released = Released(tmp_path, frame, model, mechanism="owner")
    original = tmp_path / "original.parquet"
    frame.write_parquet(original)
    return released, frame, original


def explained(found):
    return not any("explained" in one or "no walk redacts" in one for one in found.problems)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("missing", [False, True])
def test_a_release_follows_its_own_draws(name, missing, tmp_path):
    parts = {"drop": {(0, 6), (3, 15), (3, 16)}, "empty": {(2, 7), (4, 0), (5, 18)}}
    released, _, original = owner(tmp_path, name, **(parts if missing else {}))
    for one in (None, original):
        found = check_table(released.certificate, released.path, None, released.key.file, one)
        assert found.problems == []
        assert any("Every draw" in said for said in found.checked)


@pytest.mark.parametrize("name", ["two values", "text", "order 2", "a set", "hours"])
def test_but_not_those_of_another_key(name, tmp_path):
    """What another key drew is explained by its draws, and by no other's."""
    released, _, original = owner(tmp_path, name, chains=30, private=_many(30))
    other = Key.new(tmp_path / "other" / "key.json")
    certificate = replace(released.certificate, key_id=other.id)
    with_key = check_table(certificate, released.path, None, other.file)
    by_values = check_table(certificate, released.path, None, other.file, original)
    assert not explained(by_values)
    if name == "two values":
        assert not explained(with_key)


def _many(chains):
    rng = np.random.default_rng(3)
    return {(chain, int(t)) for chain in range(chains) for t in rng.choice(19, 2, replace=False)}


def test_by_the_original_a_moved_stop_is_found(tmp_path):
    """Cell by cell: a value that draws redacted is released, one that they released is not. What is
    not found is explained by another option that a cluster might have taken.
    """
    released, frame, original = owner(tmp_path, chains=3)
    key, there = released.key.file, released.frame
    found = {None: [], original: []}
    for row in np.flatnonzero(~frame["p"]).tolist():
        value = None if there["v"][row] is not None else frame["v"][row]
        certificate, path = released.altered(with_cell(there, row, value))
        for one, told in found.items():
            told.append(not explained(check_table(certificate, path, None, key, one)))
    assert np.mean(found[original]) > 0.9
    assert np.mean(found[None]) < np.mean(found[original])


def test_gaps_that_are_held_out_follow_their_draws(tmp_path):
    private = {(chain, t) for chain in range(60) for t in (6, 9, 13)}
    released, _, original = owner(tmp_path, chains=60, private=private)
    key, certificate = released.key.file, released.certificate
    assert certificate.designs.stoppings[0].gaps
    assert check_table(certificate, released.path, None, key, original).problems == []
    values = released.frame["v"].to_list()
    inside = [chain * 19 + place for chain in range(60) for place in (7, 8)]
    assert any(values[row] is not None for row in inside)
    for row in inside:
        values[row] = None
    altered = released.frame.with_columns(pl.Series("v", values, dtype=released.frame["v"].dtype))
    certificate, path = released.altered(altered)
    assert explained(check_table(certificate, path, None, key))
    assert not explained(check_table(certificate, path, None, key, original))


def test_another_original_is_refused_or_told(tmp_path):
    released, frame, original = owner(tmp_path)
    key = released.key.file
    turned = frame.with_columns(v=1 - pl.col("v"))
    turned.write_parquet(original)
    problems = check_table(released.certificate, released.path, None, key, original).problems
    assert any("another value than in the original" in one for one in problems)
    frame[1:].write_parquet(original)
    with pytest.raises(InputError, match="must have the rows of the released one"):
        check_table(released.certificate, released.path, None, key, original)
    frame.drop("v").write_parquet(original)
    with pytest.raises(InputError, match="must have the columns v"):
        check_table(released.certificate, released.path, None, key, original)


def test_an_original_may_stand_in_any_order_and_type(tmp_path):
    """Rows that do not stand as the released ones are found by their chain and order."""
    released, frame, original = owner(tmp_path)
    key, last = released.key.file, frame.height - 1  # of a chain without secrets
    altered = released.altered(with_cell(released.frame, last, None))
    told = [
        check_table(*one, None, key, original)
        for one in ((released.certificate, released.path), altered)
    ]
    assert told[0].problems == []
    assert told[1].problems
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=1)
    for other in (mixed, frame.with_columns(pl.col("id").cast(pl.Int16))):
        other.write_parquet(original)
        assert check_table(released.certificate, released.path, None, key, original) == told[0]
        assert check_table(*altered, None, key, original) == told[1]


def test_what_was_missing_is_known_from_the_original(tmp_path):
    """A value that was there cannot be passed off as missing."""
    released, frame, original = owner(tmp_path)
    row = next(r for r in range(frame.height) if frame["id"][r] == 6)  # of a chain without secrets
    certificate, path = released.altered(with_cell(released.frame, row, None))
    lies = replace(certificate, counts=replace(certificate.counts, missing=1))
    assert check_table(lies, path, None, released.key.file).problems == []
    problems = check_table(lies, path, None, released.key.file, original).problems
    assert any("counts.missing" in one for one in problems)
    assert any("nothing redacts it" in one for one in problems)


def test_local_draws_by_the_original(tmp_path):
    """With the original it is known whether an empty cell's own value was redacted by its draw."""
    model = MODELS["two values"]
    private = {(chain, 9) for chain in range(40)}
    frame = table(model, chains=40, private=private)
    released = Released(tmp_path, frame, model, mechanism="best-local")
    original = tmp_path / "original.parquet"
    frame.write_parquet(original)
    key, there = released.key.file, released.frame
    assert check_table(released.certificate, released.path, None, key, original).problems == []
    missed = 0
    near = [chain * 19 + 9 + away for chain in range(40) for away in range(1, 7)]
    for row in [row for row in near if there["v"][row] is not None][:40]:
        certificate, path = released.altered(with_cell(there, row, None))
        missed += not check_table(certificate, path, None, key).problems
        assert check_table(certificate, path, None, key, original).problems
    assert missed


def test_a_pair_whose_second_sides_are_all_closed(tmp_path):
    """Such a certificate promises nothing wrong, and no release follows it: the far sides are told
    to redact to the chains' ends, and do not.
    """
    released, _, original = owner(tmp_path, private={(chain, 9) for chain in range(8)})
    stopping = released.certificate.designs.stoppings[0]
    assert stopping.pair is not None
    other = "right" if stopping.pair.first == "left" else "left"
    closed = StoppingSide(side=other, budget=0.0, levels=(), ahead=False, stop="")
    seconds = [len(stopping.sides)] * len(stopping.pair.seconds)
    changed = replace(
        stopping,
        pair=replace(stopping.pair, seconds=seconds),
        sides=(*stopping.sides, closed),
        options=stopping.options[:1],
    )
    designs = replace(released.certificate.designs, stoppings=(changed,))
    certificate = replace(released.certificate, designs=designs)
    for one in (None, original):
        found = check_table(certificate, released.path, None, released.key.file, one)
        assert not explained(found)
