"""Counting: transitions, places and first contexts of chains with gaps, against a slow count."""

from collections import Counter
from math import lgamma

import numpy as np
import pytest

from fitting.sampling import with_gaps
from offrecord.fitting.counting import Cells, Reference, merged, numbered


def by_step(chains):
    """{step: value} of each chain."""
    for chain in range(chains.count):
        rows = range(chains.starts[chain], chains.starts[chain + 1])
        yield {int(chains.places[i]): int(chains.codes[i]) for i in rows if chains.codes[i] >= 0}


def slow_counts(chains, order):
    """How often each tuple occurs at successive steps, by its last but one step."""
    found = Counter()
    for records in by_step(chains):
        for step in records:
            steps = range(step - order, step + 1)
            if all(one in records for one in steps):
                found[(step - 1, *(records[one] for one in steps))] += 1
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("order", [1, 2, 3])
def test_counts_are_those_of_records_one_step_apart(seed, order):
    k = 2 + seed % 2
    chains = with_gaps(np.random.default_rng(seed), k)
    reference = Reference(chains, k)
    slow = slow_counts(chains, order)
    places = int(chains.places.max()) + 1
    counts = reference.counts(order, chains.places, places).reshape(places, *(k,) * (order + 1))
    expected = np.zeros_like(counts)
    for at, times in slow.items():
        expected[at] = times
    assert np.array_equal(counts, expected)
    assert np.array_equal(reference.counts(order)[0], counts.sum(axis=0).reshape(-1, k))
    firsts = np.zeros((k,) * order, dtype=int)
    for records in by_step(chains):
        if all(step in records for step in range(order)):
            firsts[tuple(records[step] for step in range(order))] += 1
    assert np.array_equal(reference.first_counts(order), firsts.ravel())
    alone = Counter()
    for records in by_step(chains):
        alone.update(
            {
                tuple(records[one] for one in range(step - order, step + 1))
                for step in records
                if all(one in records for one in range(step - order, step + 1))
            }
        )
    assert reference.lone_cells(order) == sum(times == 1 for times in alone.values())


def test_records_outside_the_reference_are_never_looked_at():
    """Other values there change nothing."""
    rng = np.random.default_rng(1)
    chains = with_gaps(rng, 2, chains=9)
    allowed = rng.random(len(chains.codes)) < 0.7
    other = np.where(allowed, chains.codes, 1 - np.maximum(chains.codes, 0)).astype(np.int8)
    changed = type(chains)(chains.starts, other, chains.order, chains.timed, chains.steps)
    one, two = (Reference.of(known, 2, allowed) for known in (chains, changed))
    assert np.array_equal(one.counts(2), two.counts(2))
    assert one.units == two.units


@pytest.mark.parametrize("size", [50, 10**7])
def test_keys_are_merged_and_numbered_alike_by_bins_and_by_sorting(size):
    keys = np.random.default_rng(2).integers(0, 50, 40)
    found, times = merged(np.append(keys, size))
    assert dict(zip(found.tolist(), times.tolist(), strict=True)) == Counter([*keys.tolist(), size])
    found, where = numbered(np.append(keys, size))
    assert np.array_equal(found[where], np.append(keys, size))


def test_likelihood_of_a_spread_is_polyas():
    rng = np.random.default_rng(3)
    keys, groups = rng.integers(0, 6, 80), rng.integers(0, 7, 80)
    rows = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
    counts = np.zeros((7, 3, 2))
    np.add.at(counts, (groups, keys // 2, keys % 2), 1)
    for kappa in (0.5, 8.0, 4096.0):
        slow = 0.0
        for group in counts:
            for row, share in zip(group, rows, strict=True):
                slow += lgamma(kappa) - lgamma(kappa + row.sum())
                slow += sum(
                    lgamma(kappa * p + n) - lgamma(kappa * p)
                    for p, n in zip(share, row, strict=True)
                )
        assert Cells.of(keys, groups, 2, 6).likelihood(kappa, rows) == pytest.approx(slow)
