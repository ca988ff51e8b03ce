"""Loops run as they stand or as machine code: the same bits, and no compiler for a small table."""

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.fitting.audit import _tables
from offrecord.mechanisms.owner.designing import _set_walk
from offrecord.mechanisms.owner.designing.set_referee import corners_of
from offrecord.theory import _compiling, _walk
from offrecord.theory.sets import binary

PROBABILITIES = st.sampled_from([0.0, 1e-60, 0.3, 0.9999999, 1.0]) | st.floats(0.0, 1.0)
RATES = st.floats(1e-3, 0.999)


def bits(found):
    """All numbers of nested tuples and arrays, as they are in memory."""
    if isinstance(found, tuple | list):
        return [one for part in found for one in bits(part)]
    return np.atleast_1d(np.asarray(found, dtype=float)).view(np.int64).ravel().tolist()


@st.composite
def walks(draw):
    rows = draw(st.lists(st.tuples(PROBABILITIES, PROBABILITIES), min_size=1, max_size=6))
    lengths = draw(st.lists(st.integers(1, 20), min_size=len(rows), max_size=len(rows)))
    numbers = np.array(lengths, dtype=np.int64)
    index, step = draw(st.sampled_from([(0, 1), (len(rows) - 1, -1)]))
    return np.array(rows), numbers, index, step, len(rows), draw(st.booleans())


@settings(max_examples=150, deadline=None)
@given(walks(), PROBABILITIES, PROBABILITIES)
def test_a_walk_of_two_values_is_the_same_in_machine_code(walked, alpha, beta):
    kernels = np.array([[[1 - alpha, alpha], [beta, 1 - beta]]])
    assert bits(_walk.binary.plain(kernels, walked)) == bits(_walk.binary(kernels, walked))


@settings(max_examples=60, deadline=None)
@given(walks(), st.integers(0, 2**32 - 1), st.booleans())
def test_a_walk_of_any_values_is_the_same_in_machine_code(walked, seed, careful):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(3, 0.5), size=3) * rng.choice([0.0, 1e-90, 1.0, 1.0], (3, 3))
    with np.errstate(divide="ignore"):
        logs = np.log(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300))[np.newaxis]
    rows = np.column_stack((walked[0], rng.choice(walked[0][:, 0], len(walked[0]))))
    support = rng.random(3) < 0.9
    for loop, given_ in (
        (_walk.general, (logs, support, (rows, *walked[1:]), careful)),
        (_walk.likelihoods, (logs, support, 12, careful)),
    ):
        (ok, *plain), (too, *machine) = loop.plain(*given_), loop(*given_)
        assert ok == too
        if ok:  # else what was found is not looked at
            assert bits(plain) == bits(machine)


@settings(max_examples=150, deadline=None)
@given(
    walks(),
    st.lists(PROBABILITIES, min_size=4, max_size=4).map(sorted),
    st.booleans(),
    st.sampled_from([(-1.0, -1.0), (0.0, np.inf), (0.1, 3.0)]),
)
def test_a_walk_over_a_box_is_the_same_in_machine_code(walked, ends, crossed, odds):
    alpha, beta = (ends[::2], ends[1::2]) if crossed else (ends[:2], ends[2:])
    box = off.Box.binary(alpha, beta)
    corners = binary.corners(*(end[np.newaxis] for end in box.forward))
    for loop, given_ in (
        (binary._walk_in, (*corners, odds, walked)),
        (binary._hulls, (20, *corners, odds, 0.0, np.inf)),
    ):
        assert bits(loop.plain(*given_)) == bits(loop(*given_))


def test_what_the_audit_counts_is_the_same_in_machine_code():
    rng = np.random.default_rng(3)
    codes, at = rng.integers(0, 3, 200), np.arange(200)
    secrets = np.sort(rng.choice(np.arange(5, 195), 60, replace=False))
    left, right = (secrets[:, np.newaxis] + side * np.arange(1, 4) for side in (-1, 1))
    left[rng.random(left.shape) < 0.1] = -1
    groups = rng.integers(-1, 2, len(secrets))
    patterns = 3 ** np.array([1, 2, 3, 1, 2, 3, 2, 4, 6])
    sizes = 2 * 3 * patterns
    begins = np.where(np.arange(9) == 4, -1, np.cumsum(sizes) - sizes)
    tables, setting = np.array([begins, patterns]), (3, 7, int(sizes.sum()))
    for loop, given_ in (
        (_tables.seen_together, (codes, at, secrets, left, right, groups, tables, setting)),
        (_tables.cells_seen, (codes[secrets], secrets, 7, 3)),
    ):
        found = loop.plain(*given_)
        assert bits(found) == bits(loop(*given_))
        assert 0 < found[1].sum() < found[0].sum()


@settings(max_examples=40, deadline=None)
@given(RATES, RATES, st.integers(0, 2**32 - 1))
def test_the_worst_sequences_are_the_same_in_machine_code(alpha, beta, seed):
    rng = np.random.default_rng(seed)
    box = off.Box.binary(*((0.8 * rate, min(1.2 * rate, 1.0)) for rate in (alpha, beta)))
    kernels = np.concatenate(
        (corners_of(box.forward), [[[1 - alpha, alpha], [beta, 1 - beta]]]), axis=0
    )
    levels = np.unique(rng.integers(1, 13, 6))
    stops = rng.uniform(0.0, 1.0 - 2.0**-20, (len(levels) - 1, 2, 2))
    stops *= rng.integers(0, 2, stops.shape)
    sequences = rng.integers(0, 4, (len(levels), 2, 2, int(levels[-1]) + 1))
    found = []
    for is_plain in (True, False):
        ground = _set_walk.Ground(kernels, levels, is_plain)
        lowered, worst = stops.copy(), sequences.copy()
        met = _set_walk.repaired(ground, lowered, worst, 0.7, is_thorough=True)
        targets = np.array([(level, i % 2) for level in range(len(levels)) for i in range(4)])
        slopes = _set_walk.slopes(ground, lowered, targets, worst.reshape(len(targets), -1))
        found.append(bits((met, lowered, worst, slopes)))
    assert found[0] == found[1]


def test_after_so_many_records_and_for_long_walks_loops_are_machine_code(monkeypatch):
    monkeypatch.setattr(_compiling, "_visited", Counter())
    counts = 0
    while _compiling.are_few(1_000, "walk"):
        counts += 1
    assert counts * 1_000 == _compiling._FEW


SMALL = """
import sys
import numpy as np
import polars as pl
import offrecord as off

key, exact = sys.argv[1:]
rng = np.random.default_rng(1)
ill = np.empty((40, 90), dtype=int)
ill[:, 0] = rng.random(40) < 0.05 / 0.35
for day in range(1, 90):
    ill[:, day] = rng.random(40) < np.where(ill[:, day - 1] == 1, 0.7, 0.05)
days = {"who": np.repeat(np.arange(40), 90), "day": np.tile(np.arange(90), 40), "ill": ill.ravel()}
table = pl.DataFrame(days).with_columns(private=pl.Series(rng.random(3_600) < 0.005))
model = off.MarkovChain.binary(0.05, 0.3)
if exact == "no":
    model = model.with_box(off.Box.binary((0.047, 0.055), (0.28, 0.33)))
options = {"by": "who", "order": "day", "value": "ill", "private": "private", "epsilon": 1.0}
release = off.redact(table, model=model, dataset="small", key_file=key, **options)
print(release.summary.mechanism, "numba" in sys.modules)
"""


@pytest.mark.parametrize("exact", ["yes", "no"])
def test_a_small_table_of_two_values_needs_no_compiler(tmp_path, exact):
    """Compiling for a set of models took twenty seconds, ten times as long as all the rest."""
    done = subprocess.run(
        [sys.executable, "-c", SMALL, str(tmp_path / "key.json"), exact],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert done.stdout.split() == ["owner", "False"]


def test_a_process_that_stays_has_machine_code_from_the_first_call_on(monkeypatch):
    monkeypatch.setattr(_compiling, "_visited", Counter())
    monkeypatch.setattr(_compiling, "_staying", [])
    assert _compiling.are_few(1, "these")
    _compiling.stay()
    assert not _compiling.are_few(1, "these")
