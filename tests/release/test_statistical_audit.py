"""Coins and releases against what is promised of them, by counting, with exact confidence limits.

The other tests check what is computed. These run what acts: keyed coins by the hundred million, and
whole releases whose outputs are counted by the value of the secret. Mechanisms that are broken on
purpose must be caught at the size used; how large a break can be seen, `visible` says.
"""

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta, binom, norm

import offrecord as off
from offrecord.release import coins as draws

KEY = bytes(range(32))
ERROR = 1e-9  # of one test here, over all its comparisons
ALPHA, BETA, EPSILON = 0.2, 0.3, 1.0  # of the paper's chain of two values
RECORDS, SECRET = 7, 3


# ---- coins


def likely(count, trials, share):
    """Whether a count is one that draws with this probability give, but for `ERROR` / 100."""
    return (
        binom.cdf(count, trials, share) > ERROR / 100
        and binom.sf(count - 1, trials, share) > ERROR / 100
    )


def test_a_hundred_million_coins_have_their_probabilities():
    """Of the first and last record of chains too; probabilities next to 0 and 1 among them."""
    coins = draws.Coins(KEY, "audit", "v")
    shares = np.array([2.0**-20, 1e-3, 0.25, 0.5, 0.75, 1 - 1e-3, 1 - 2.0**-20])
    limits = draws.thresholds(shares)
    chains, length, rounds = 2_000, 1_000, 50
    below, first, last = (np.zeros(len(shares), dtype=np.int64) for _ in range(3))
    order = np.tile(np.arange(length), chains)
    for one in range(rounds):
        names = [f"{one}/{chain}".encode() for chain in range(chains)]
        tags = np.repeat(coins.chain_tags(names), length, axis=0)
        drawn = coins.draw(tags, order, draws.INTEGER).reshape(chains, length)
        for at, limit in enumerate(limits):
            redacted = draws.redacts(drawn, limit)
            below[at] += np.count_nonzero(redacted)
            first[at] += np.count_nonzero(redacted[:, 0])
            last[at] += np.count_nonzero(redacted[:, -1])
    trials = chains * length * rounds
    assert trials == 10**8
    for counts, size in ((below, trials), (first, chains * rounds), (last, chains * rounds)):
        for count, share in zip(counts.tolist(), shares.tolist(), strict=True):
            assert likely(count, size, share), (share, count / size)
    assert not likely(int(0.2504 * trials), trials, 0.25)  # what would be noticed


# ---- likelihood ratios


def simulated(count, seed):
    """(count, RECORDS) chains as the model says."""
    rng = np.random.default_rng(seed)
    values = np.empty((count, RECORDS), dtype=np.int64)
    values[:, 0] = rng.random(count) < ALPHA / (ALPHA + BETA)
    for at in range(1, RECORDS):
        stays = np.where(values[:, at - 1] == 1, 1 - BETA, ALPHA)
        values[:, at] = rng.random(count) < stays
    return values


def shown(values, redacted):
    """The nearest release on each side of the secret as one number: 0 and 1 are values, 2 nothing.
    What lies beyond adds nothing (F1), and would scatter the counts.
    """
    found = np.full(values.shape, 2)
    for side in (range(SECRET - 1, -1, -1), range(SECRET + 1, RECORDS)):
        silent = np.ones(len(values), dtype=bool)
        for at in side:
            released_here = silent & ~redacted[:, at]
            found[released_here, at] = values[released_here, at]
            silent &= redacted[:, at]
    found[:, SECRET] = np.where(redacted[:, SECRET], 2, values[:, SECRET])
    return found @ 3 ** np.arange(RECORDS)


def at_least(outputs, secrets):
    """The largest log-ratio of an output under the two values of the secret that counts prove: the
    lower limit of one probability against the upper limit of the other (Clopper–Pearson).
    """
    totals = [int(np.count_nonzero(secrets == x)) for x in range(2)]
    counts = [Counter(outputs[secrets == x].tolist()) for x in range(2)]
    kinds = set(counts[0]) | set(counts[1])
    error = ERROR / (4 * len(kinds))
    most = -math.inf
    for kind in kinds:
        low, high = [], []
        for x in range(2):
            seen, total = counts[x][kind], totals[x]
            low.append(beta.ppf(error, seen, total - seen + 1) if seen else 0.0)
            high.append(beta.ppf(1 - error, seen + 1, total - seen) if seen < total else 1.0)
        for above, below in ((0, 1), (1, 0)):
            if low[above] > 0:
                most = max(most, math.log(low[above] / high[below]))
    return most


def visible(trials, share, epsilon):
    """The least log-ratio above ε that counts of so many chains prove, of an output whose likelier
    probability is `share`: by normal limits.
    """
    width = -float(norm.ppf(ERROR / 100))
    relative = width * math.sqrt((1 - share) / (share * trials))
    other = share / math.exp(epsilon)
    relative += width * math.sqrt((1 - other) / (other * trials))
    return epsilon + relative


def local_matrix(mechanism):
    problem = off.Problem(
        off.MarkovChain.binary(ALPHA, BETA), n=RECORDS, private=[SECRET + 1], epsilon=EPSILON
    )
    policy = off.design(problem, mechanism)
    return np.array([policy.redaction[at] for at in range(RECORDS)])


def released(matrix, count, seed, tag="audit", twice=False):
    """Outputs and secrets, by keyed coins."""
    coins = draws.Coins(KEY, f"{tag}{seed}", "v")
    values = simulated(count, seed)
    names = [str(chain).encode() for chain in range(count)]
    tags = np.repeat(coins.chain_tags(names), RECORDS, axis=0)
    order = np.tile(np.arange(RECORDS), count)
    if twice:  # one coin for a record and its neighbour on the other side of the secret
        order = np.abs(order - SECRET)
    drawn = coins.draw(tags, order, draws.INTEGER).reshape(count, RECORDS)
    limits = draws.thresholds(matrix)
    redacted = draws.redacts(drawn, limits[np.arange(RECORDS), values])
    return shown(values, redacted), values[:, SECRET]


@pytest.mark.parametrize("mechanism", ["best-local", "3r-constant", "window"])
def test_what_leaves_tells_no_more_than_was_promised(mechanism):
    outputs, secrets = released(local_matrix(mechanism), 400_000, 1)
    told = at_least(outputs, secrets)
    assert told <= EPSILON
    assert told > 0.5 * EPSILON  # the count is no idle one: it proves most of what is told


def broken():
    """Redaction matrices that are not private, and by how much more they tell."""
    right = local_matrix("best-local")
    partial = (right > 0) & (right < 1)
    assert partial.any()
    without_noise = np.where(partial, 0.0, right)
    too_small = np.where(partial, 0.8 * right, right)
    open_secret = right.copy()
    open_secret[SECRET] = [0.999, 0.999]
    return {"no noise": without_noise, "q too small": too_small, "secret shown": open_secret}


@pytest.mark.parametrize(
    ("name", "count"),
    [("no noise", 300_000), ("q too small", 2_000_000), ("secret shown", 2_000_000)],
)
def test_a_broken_mechanism_is_caught(name, count):
    outputs, secrets = released(broken()[name], count, 2)
    assert at_least(outputs, secrets) > EPSILON


def test_a_coin_used_twice_is_caught():
    """Both neighbours of the secret by one coin: what they show together is not the product."""
    matrix = np.full((RECORDS, 2), 1.0)
    matrix[[SECRET - 1, SECRET + 1]] = 0.5
    apart, _ = released(matrix, 200_000, 3)
    together, _ = released(matrix, 200_000, 3, twice=True)

    def both_redacted(outputs):
        digits = outputs[:, None] // 3 ** np.array([SECRET - 1, SECRET + 1]) % 3
        return int(np.count_nonzero((digits == 2).all(axis=1)))

    assert likely(both_redacted(apart), 200_000, 0.25)
    assert not likely(both_redacted(together), 200_000, 0.25)


def test_how_small_a_break_can_be_seen():
    """The power of the test above: of 2 million chains, an output that a twentieth of them show
    betrays a tenth more than ε.
    """
    assert visible(2_000_000, 0.05, EPSILON) < 1.1 * EPSILON
    assert visible(20_000, 0.05, EPSILON) > 1.3 * EPSILON


# ---- the owner's mechanism, end to end


def owner_outputs(count, seed, tmp_path, change=None):
    """Outputs of a whole release, and the secrets."""
    values = simulated(count, seed)
    table = pl.DataFrame(
        {
            "c": np.repeat(np.arange(count), RECORDS),
            "t": np.tile(np.arange(RECORDS), count),
            "v": values.ravel(),
            "p": np.tile(np.arange(RECORDS) == SECRET, count),
        }
    )
    release = off.redact(
        table,
        value="v", order="t", by="c", private="p", epsilon=EPSILON, mechanism="owner",
        model=off.MarkovChain.binary(ALPHA, BETA), dataset=f"audit {seed} {change}",
        key_file=tmp_path / "key.json", accept="model",
    )  # fmt: skip
    left = release.frame["v"].to_numpy().reshape(count, RECORDS)
    return shown(values, np.isnan(left.astype(float))), values[:, SECRET]


def test_the_owners_release_tells_no_more_than_was_promised(tmp_path):
    outputs, secrets = owner_outputs(150_000, 4, tmp_path)
    told = at_least(outputs, secrets)
    assert told <= EPSILON
    assert told > 0.4 * EPSILON


def test_walks_that_stop_too_soon_are_caught(tmp_path, monkeypatch):
    """Stop probabilities that are too large, as if nothing had looked at them."""
    exact = draws.thresholds

    def hasty(chances):
        return exact(np.minimum(chances * 1.3 + 1 / 16, 1 - 2.0**-40))

    monkeypatch.setattr(draws, "thresholds", hasty)
    outputs, secrets = owner_outputs(400_000, 5, tmp_path, "hasty")
    assert at_least(outputs, secrets) > EPSILON
