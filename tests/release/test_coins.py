"""Coins: the bytes docs/coins.md describes, exact thresholds, and nothing but a record's identity
in its draw.
"""

import hashlib
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from offrecord.mechanisms.answer import draw
from offrecord.mechanisms.deciding.stopping import STOPS
from offrecord.release import coins as draws
from offrecord.release.keys import Key

KEY = bytes(range(32))
DOCS = Path(__file__).parents[2] / "docs" / "coins.md"


def draw_by_the_book(
    key, dataset, column, chain, order, kind, purpose=b"offrecord/coins", counter=0
):
    """docs/coins.md, step by step, one record at a time."""

    def field(tag, content):
        return bytes([tag]) + len(content).to_bytes(8, "little") + content

    message = field(3, dataset.encode()) + field(3, column.encode())
    for value in chain:
        if isinstance(value, bool):
            message += field(4, bytes([value]))
        elif isinstance(value, int):
            message += field(1, value.to_bytes(16, "little", signed=True))
        else:
            message += field(3, value.encode())
    tag = hashlib.blake2b(message, key=key, digest_size=16, person=b"offrecord/chain").digest()
    block = order.to_bytes(15, "little", signed=True) + bytes([kind])
    counted = bytes(8) + counter.to_bytes(6, "little") + bytes(2)
    block = bytes(a ^ b for a, b in zip(block, counted, strict=True))
    aes = hashlib.blake2b(key=key, digest_size=32, person=purpose).digest()
    encryptor = Cipher(algorithms.AES(aes), modes.ECB()).encryptor()
    return int.from_bytes(
        encryptor.update(bytes(a ^ b for a, b in zip(tag, block, strict=True)))[:8], "little"
    )


def encoded(value):
    if isinstance(value, bool):
        return draws.encoded_boolean(value)
    if isinstance(value, int):
        return draws.encoded_integers(np.array([value]), draws.INTEGER)[0]
    return draws.encoded_text(value)


def drawn(key, dataset, column, chain, order, kind, purpose=draws.RECORDS, counter=0):
    coins = draws.Coins(key, dataset, column)
    tags = coins.chain_tags([b"".join(map(encoded, chain))])
    return int(coins.draw(tags, np.array([order]), kind, purpose, counter)[0])


VALUES = st.one_of(st.text(max_size=20), st.integers(-(2**63), 2**63 - 1), st.booleans())


@given(
    st.binary(min_size=32, max_size=32),
    st.text(max_size=10),
    st.text(max_size=10),
    st.lists(VALUES, max_size=3),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([draws.INTEGER, draws.TIME]),
    st.binary(max_size=16),
    st.integers(0, 2**48 - 1),
)
def test_a_draw_is_what_the_documentation_says(
    key, dataset, column, chain, order, kind, purpose, counter
):
    record = key, dataset, column, chain, order, kind
    assert drawn(*record) == draw_by_the_book(*record)
    assert drawn(*record, purpose, counter) == draw_by_the_book(*record, purpose, counter)


def test_the_vectors_in_the_documentation_hold():
    rows = re.findall(
        r"^\|" + 5 * r" `([^`]*)` \|" + r" `([0-9a-f]{16})` \|$",
        DOCS.read_text("utf-8"),
        re.M,
    )
    assert len(rows) >= 6
    for dataset, column, chain, kind, order, expected in rows:
        values = eval(chain, {"__builtins__": {}})
        number = {"integer": draws.INTEGER, "time": draws.TIME}[kind]
        assert f"{drawn(KEY, dataset, column, values, int(order), number):016x}" == expected
        assert (
            f"{draw_by_the_book(KEY, dataset, column, values, int(order), number):016x}" == expected
        )


def test_the_vectors_of_several_draws_hold():
    rows = re.findall(
        r"^\|" + 7 * r" `([^`]*)` \|" + r" `([0-9a-f]{16})` \|$", DOCS.read_text("utf-8"), re.M
    )
    assert len(rows) >= 8
    for dataset, column, chain, kind, order, purpose, counter, expected in rows:
        values = eval(chain, {"__builtins__": {}})
        number = {"integer": draws.INTEGER, "time": draws.TIME}[kind]
        record = KEY, dataset, column, values, int(order), number, purpose.encode(), int(counter)
        assert f"{drawn(*record):016x}" == expected
        assert f"{draw_by_the_book(*record):016x}" == expected
    purposes = {STOPS}
    assert {row[5].encode() for row in rows} == purposes
    told = re.findall(r"^\| `(offrecord/[^`]*)` \|", DOCS.read_text("utf-8"), re.M)
    assert {purpose.encode() for purpose in told} == purposes


def test_counters_are_one_for_all_records_or_one_for_each():
    coins = draws.Coins(KEY, "d", "v")
    tags, order = coins.chain_tags([b"x"] * 4), np.array([-3, -3, 5, 5])
    counters = np.array([0, 1, 1, 2**48 - 1])
    together = coins.draw(tags, order, draws.INTEGER, b"p", counters)
    alone = [
        int(coins.draw(tags[[i]], order[[i]], draws.INTEGER, b"p", int(counters[i]))[0])
        for i in range(4)
    ]
    assert together.tolist() == alone
    assert len(set(alone)) == 4
    plain = coins.draw(tags, order, draws.INTEGER, b"p")
    assert np.array_equal(plain, coins.draw(tags, order, draws.INTEGER, b"p", np.zeros(4, int)))


def test_the_vectors_of_answers_hold():
    rows = re.findall(
        r"^\| `([^`]*)` \| `(\d+)` \| `([0-9a-f]{16})` \|$", DOCS.read_text("utf-8"), re.M
    )
    assert len(rows) >= 3
    owner = hashlib.blake2b(key=KEY, digest_size=32, person=b"offrecord/owner").digest()
    for protocol, record, expected in rows:
        assert f"{int(draw(Key(KEY, Path('key')), protocol, int(record))[0]):016x}" == expected
        assert (
            f"{draw_by_the_book(owner, protocol, 'answer', [], int(record), draws.INTEGER):016x}"
            == expected
        )


def test_integers_of_any_width_are_alike():
    coins = draws.Coins(KEY, "d", "v")
    tags = coins.chain_tags([b"x"] * 3)
    widths = [
        np.array([0, 7, 100], dtype=kind)
        for kind in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64)
    ]
    assert len({coins.draw(tags, numbers, draws.INTEGER).tobytes() for numbers in widths}) == 1
    assert len({tuple(draws.encoded_integers(numbers, draws.INTEGER)) for numbers in widths}) == 1


def test_everything_named_matters_and_fields_cannot_run_together():
    seen = {
        drawn(*arguments)
        for arguments in [
            (KEY, "ab", "c", ["x"], 1, 1),
            (KEY[::-1], "ab", "c", ["x"], 1, 1),
            (KEY, "a", "bc", ["x"], 1, 1),
            (KEY, "ab", "c", ["x", ""], 1, 1),
            (KEY, "ab", "cx", [], 1, 1),
            (KEY, "ab", "c", ["x"], 2, 1),
            (KEY, "ab", "c", ["x"], 1, 2),
            (KEY, "ab", "c", ["x"], -1, 1),
            (KEY, "ab", "c", ["1"], 1, 1),
            (KEY, "ab", "c", [1], 1, 1),
            (KEY, "ab", "c", [True], 1, 1),
        ]
    }
    assert len(seen) == 11


@given(st.floats(0, 1))
def test_thresholds_round_up_and_1_is_certain(q):
    limit = int(draws.thresholds(np.array([q]))[0])
    if q == 1:
        assert limit == int(draws.ALWAYS)
        assert draws.redacts(np.array([2**64 - 1], dtype=np.uint64), np.array([draws.ALWAYS]))[0]
        return
    share = Fraction(limit, 2**64)
    assert Fraction(q) <= share < Fraction(q) + Fraction(1, 2**64)
    below, at = np.array([max(limit - 1, 0)], dtype=np.uint64), np.array([limit], dtype=np.uint64)
    assert bool(draws.redacts(below, at)[0]) == (limit > 0)
    assert not draws.redacts(at, at)[0]


@pytest.mark.parametrize("q", [1 - 2.0**-53, 2.0**-64, 2.0**-70, 5e-324])
def test_probabilities_next_to_0_and_1_stay_what_they_are(q):
    limit = int(draws.thresholds(np.array([q]))[0])
    assert 0 < limit < int(draws.ALWAYS)


def test_draws_look_uniform_and_independent_of_their_neighbours():
    coins = draws.Coins(KEY, "d", "v")
    tags = np.repeat(coins.chain_tags([bytes([i]) for i in range(100)]), 1000, axis=0)
    u = coins.draw(tags, np.tile(np.arange(1000), 100), draws.INTEGER) / 2.0**64
    counts = np.histogram(u, bins=64, range=(0, 1))[0]
    assert (
        (counts - 100_000 / 64) ** 2 / (100_000 / 64)
    ).sum() < 120  # chi-square, 63 degrees: beyond 120 once in 50,000
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.015
    assert abs(np.corrcoef(u[1000:], u[:-1000])[0, 1]) < 0.015


def test_the_digest_of_a_set_does_not_depend_on_order_but_on_every_record():
    coins = draws.Coins(KEY, "d", "v")
    tags, order = np.repeat(coins.chain_tags([b"a", b"b"]), 5, axis=0), np.tile(np.arange(5), 2)

    def digest(tags, order, key=KEY):
        return draws.Coins(key, "d", "v").set_digest(tags, order, draws.INTEGER)

    whole = digest(tags, order)
    assert np.array_equal(whole, digest(tags[::-1], order[::-1]))
    assert not np.array_equal(whole, digest(tags[1:], order[1:]))
    assert not np.array_equal(whole, digest(tags, order, KEY[::-1]))
    halves = [digest(tags[:5], order[:5]), digest(tags[5:], order[5:])]
    assert np.array_equal(whole, halves[0] ^ halves[1])


def test_tags_anywhere_are_the_last_block_of_aes_in_cbc_mode():
    """Whatever the data set; names of other lengths, columns and keys have others."""
    names = [b"", b"a", b"\0" * 15, b"\0" * 16, b"\0" * 17, b"c" * 40, b"d" * 25, b"d" * 25]
    names = [draws.encoded_text(name.decode()) for name in names]
    key, column = KEY, "Größe"
    filled = [one + b"\0" * (-len(one) % 16) for one in (draws.encoded_text(column), *names)]
    mode = modes.CBC(bytes(16))
    expected = []
    for name in filled[1:]:
        cipher = Cipher(algorithms.AES(draws.subkey(key, b"offrecord/again")), mode).encryptor()
        expected.append((cipher.update(filled[0] + name) + cipher.finalize())[-16:])
    for dataset in ("one", "another"):
        tags = draws.Coins(key, dataset, column).tags_anywhere(names)
        assert [tag.astype("<u8").tobytes() for tag in tags] == expected
    assert len(set(expected)) == len(names) - 1  # two are the same
    for other in (draws.Coins(key, "one", "Grö"), draws.Coins(bytes(32), "one", column)):
        found = {tag.astype("<u8").tobytes() for tag in other.tags_anywhere(names)}
        assert not found & set(expected)
    assert draws.Coins(key, "one", column).tags_anywhere([]).shape == (0, 2)
    assert draws.Coins(key, "one", column).tags_anywhere([b""]).shape == (1, 2)
