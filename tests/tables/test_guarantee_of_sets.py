"""The guarantee of a redacted table under every model of a set, against its definition: the rule
that decided, gaps and all, over every output, under random models and corners of the set.
"""

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.mechanisms import workshop
from offrecord.mechanisms.best_local import sides_apart
from offrecord.mechanisms.best_local.few_designs import FewDesigns
from small_tables import dry, rule, secrets_by_definition

MODELS = 6  # of a set, for each secret


def row_within(rng, low, high, corner):
    """A row of a kernel in a box: a corner of it, or anything."""
    row, rest = low.copy(), 1.0 - low.sum()
    for j in rng.permutation(len(low)):
        given = min(high[j] - low[j], rest) * (1.0 if corner else rng.random())
        row[j], rest = row[j] + given, rest - given
    for j in rng.permutation(len(low)):  # what is left over
        given = min(high[j] - row[j], rest)
        row[j], rest = row[j] + given, rest - given
    return row


def kernel_within(rng, ends, corner):
    return np.array([row_within(rng, low, high, corner) for low, high in zip(*ends, strict=True)])


def outputs_of(kernels, rows):
    """Pr(output | value of the secret), up to a factor, for every output of a side.

    kernels: from each record to the one further out, nearest first; rows: of these records.
    """
    k = rows.shape[1]
    found = np.ones((1, k))
    for kernel, row in zip(kernels[::-1], rows[::-1], strict=True):
        shown = [found[:, [j]] * (np.eye(k)[j] * (1 - row[j])) for j in range(k) if row[j] < 1]
        found = np.concatenate([found * row, *shown]) @ kernel.T
        found = found[found.max(axis=1) > 0]
        found = np.unique(found / found.max(axis=1, keepdims=True), axis=0)
    return found


def largest(found):
    """(k, k) the largest log-ratio of one value over another, over outputs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(found)
        ratios = logs[:, :, np.newaxis] - logs[:, np.newaxis, :]
    return np.where(np.isnan(ratios), -np.inf, ratios).max(axis=0)


def steps_around(rng, box, n, secret, number):
    """Kernels of the steps to the right of a secret, and back in time to its left, of one of the
    set's models.
    """
    first, last = secret[0], secret[-1]
    corner, same = number % 2 == 0, number % 3 == 0
    if box.start == "stationary":
        right = [kernel_within(rng, box.forward, corner) for _ in range(n - 1 - last)]
        left = [kernel_within(rng, box.backward, corner) for _ in range(first)]
        return (right[:1] * len(right), left[:1] * len(left)) if same else (right, left)
    kernels = [kernel_within(rng, box.forward, corner) for _ in range(n - 1)]
    kernels = kernels[:1] * len(kernels) if same else kernels
    rates = kernel_within(rng, box.forward, corner)[[1, 0], [0, 1]]
    masses = [rates / rates.sum() if box.start == "settled" else rng.dirichlet([0.3, 0.3]) + 1e-9]
    for kernel in kernels:
        masses.append(masses[-1] @ kernel)
    left = [
        (masses[t][:, np.newaxis] * kernels[t] / masses[t + 1]).T for t in range(first - 1, -1, -1)
    ]
    return kernels[last:], left


def leakage_under(matrix, secret, kernels):
    """What a rule tells about neighbouring records, all of which it redacts, under one model."""
    right, left = kernels
    assert np.all(matrix[secret[0] : secret[-1] + 1] == 1)
    after = largest(outputs_of(right, matrix[secret[-1] + 1 :]))
    before = largest(outputs_of(left, matrix[: secret[0]][::-1]))
    if len(secret) == 1:
        return (before + after).max()
    return before.max() + after.max()  # of sets in which any value may follow any other


def random_table(rng, k):
    rows, keys = [], []
    for name in range(rng.integers(1, 4)):
        n = int(rng.integers(1, 9 if k == 2 else 6))
        kept = sorted({0, n - 1, *np.flatnonzero(rng.random(n) < 0.8).tolist()})
        rows += [(name, t, int(rng.integers(k)) if rng.random() < 0.95 else None) for t in kept]
        keys += [(name, t) for t in np.flatnonzero(rng.random(n) < 0.3).tolist()]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(("chain", "t", "v"), pl.Int64), orient="row")
    return frame, pl.DataFrame(keys, schema={"chain": pl.Int64, "t": pl.Int64}, orient="row")


def random_model(rng, k):
    transition = rng.dirichlet(np.full(k, rng.choice([0.5, 1.0, 3.0])), size=k)
    transition = 0.95 * transition + 0.05 / k + rng.choice([0.0, 1.0]) * np.eye(k)
    chain = off.MarkovChain(transition / transition.sum(axis=1, keepdims=True)).rounded()
    start = chain.marginal(1)
    back = (start[:, np.newaxis] * chain.transition).T / start[:, np.newaxis]
    width = rng.choice([0.005, 0.02, 0.08])
    ends = []
    for nominal in (chain.transition, back):
        below, above = width * rng.random((2, k, k))
        ends.append((np.clip(nominal - below, 0, 1), np.clip(nominal + above, 0, 1)))
    if k == 2 and rng.random() < 0.6:  # as fit makes them: one for both directions
        both = np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])
        ends = [both, both]
    return chain.with_box(off.Box(*ends))


SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(12, 300))]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_output_of_a_table_tells_more_than_epsilon_under_any_model(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    k = 3 if seed % 4 == 3 else 2
    model, (frame, keys) = random_model(rng, k), random_table(rng, k)
    if not len(keys):
        pytest.skip("no record is private")
    start = str(rng.choice(["stationary", "settled", "any"])) if k == 2 else "stationary"
    name = str(rng.choice(["window", "3r-constant", "best-local"] if k == 2 else ["window"]))
    if rng.random() < 0.4:  # rooms rounded up, sides designed apart
        monkeypatch.setattr(workshop.Workshop, "most", 1)
        monkeypatch.setattr(FewDesigns, "most", 1)
        monkeypatch.setattr(sides_apart, "JOINT", 0 if rng.random() < 0.5 else sides_apart.JOINT)
    epsilon, protect = float(rng.choice([0.3, 1.0, 2.0])), str(rng.choice(["run", "each"]))
    release = dry(model, frame, keys, epsilon, protect=protect, mechanism=name, start=start)
    box = model.box.with_start(start)
    for chain in keys["chain"].unique().to_list():
        matrix = rule(release, frame, chain, k)
        for records in secrets_by_definition(frame, keys, chain, protect):
            secret = range(records[0], records[-1] + 1)
            for number in range(MODELS):
                kernels = steps_around(rng, box, len(matrix), secret, number)
                assert leakage_under(matrix, secret, kernels) <= epsilon + 1e-9
