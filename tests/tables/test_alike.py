"""Short ways to what is found by a definition: numbers that are alike, and what begins a secret."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offrecord.models.records import Chains
from offrecord.tables import acting
from offrecord.tables.secrets import Private, begins_secret, secrets_of
from offrecord.tables.several import remembered
from offrecord.tables.several.remembered import Part, Remembered


@pytest.mark.parametrize("first", [1, 4, 16])
@pytest.mark.parametrize("distinct", [1, 3, 200])
def test_one_of_each_number_stands_for_all_that_are_the_same(monkeypatch, first, distinct):
    monkeypatch.setattr(acting, "_FIRST", first)
    rng = np.random.default_rng(distinct)
    several = rng.integers(0, 2**64, distinct, dtype=np.uint64)
    numbers = several[rng.integers(0, distinct, 500)]
    one, same = acting._one_of_each(numbers)
    assert np.array_equal(numbers[one[same]], numbers)
    assert sorted(numbers[one].tolist()) == sorted(set(numbers.tolist()))


@given(
    st.sets(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=1),
    st.sets(st.integers(0, 29)),
    st.sampled_from(["run", "each"]),
)
def test_a_secret_begins_with_its_first_record(keys, empty, protect):
    codes = np.zeros(30, dtype=np.int8)
    codes[sorted(empty)] = -1
    chains = Chains(np.arange(4) * 10, codes, np.arange(30), False, None)
    chain, place = (np.array(column) for column in zip(*sorted(keys), strict=True))
    private = Private(chain, place, place)
    secrets = secrets_of(chains, private, protect)
    begun = set(zip(secrets.chain.tolist(), secrets.first.tolist(), strict=True))
    found = begins_secret(chains, private, secrets)
    assert found.tolist() == [key in begun for key in sorted(keys)]


def _part(count, begin):
    tags = np.arange(begin, begin + 2 * count, dtype=np.uint64).reshape(-1, 2)
    numbers = np.arange(begin, begin + 3 * count).reshape(-1, 3)
    return Part(tags, numbers, tags, numbers % 4)


def test_parts_are_remembered_in_their_order():
    parts = [_part(3, 0), _part(0, 7), _part(2, 50)]
    found = sum((Remembered((part,)) for part in parts), Remembered()).whole
    for one, several in zip(found, zip(*parts, strict=True), strict=True):
        assert np.array_equal(one, np.concatenate(several))
    uses = np.array([1, 0, 0, 2])
    some = Remembered((Part(*found[:3], found.acting % 2 * 3),)).renumbered(uses).whole
    assert np.array_equal(some.acting[:, 2], found.acting[:, 2] % 2)


def test_more_than_can_be_kept_are_lost_and_stay_so(monkeypatch):
    monkeypatch.setattr(remembered, "_MOST", 4)
    kept = Remembered((_part(2, 0),)) + Remembered((_part(2, 0),))
    assert not kept.is_lost
    lost = kept + Remembered((_part(1, 0),))
    assert lost.is_lost
    assert (Remembered() + lost).is_lost
    assert len(lost.whole.tags) == 0
