"""Ratios and posteriors against Bayes over all sequences of values, in whole numbers."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.attack import attack
from tables.small_tables import rule, secrets_by_definition, tables

SETTINGS = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.generate],  # shrinking would take minutes
)


def released(chain, frame, keys, epsilon, folder, **options):
    """A release of a table in a file, with the positions of its private records."""
    (folder / "keys").mkdir(exist_ok=True)
    options = {"mechanism": "best-local", "accept_model": True, "another_release": True} | options
    release = off.redact(
        frame,
        value="v",
        order="t",
        by="chain",
        step=1,
        private_list=keys,
        model=chain,
        epsilon=epsilon,
        dataset="d",
        publish_positions=True,
        key_file=folder / "keys" / "key.json",
        **options,
    )
    path = folder / "released.parquet"
    release.write(path, force=True)
    return release, path


def probability(chain, values):
    """Of a sequence, exactly: of order m the first m records come from the start."""
    m, n = chain.order, len(values)
    if n < m:
        more = product(range(chain.k), repeat=m - n)
        return sum(probability(chain, (*values, *rest)) for rest in more)
    found = Fraction(float(chain.start[values[:m]] if m > 1 else chain.start[values[0]]))
    for t in range(m, n):
        kernel = chain.transition if chain.is_homogeneous else chain.transition[t - 1]
        found *= Fraction(float(kernel[values[t - m : t + 1]]))
    return found


def bayes(chain, likes, first, last):
    """The log-ratio about the records first … last, and prior and posterior of the first; likes:
    (n, k) how likely what is shown of each record is, by value. None if it cannot be.
    """
    exact = [[Fraction(float(one)) for one in row] for row in likes]
    seen, mass = {}, {}
    for values in product(range(chain.k), repeat=len(likes)):
        chance, secret = probability(chain, values), values[first : last + 1]
        mass[secret] = mass.get(secret, 0) + chance
        for row, value in zip(exact, values, strict=True):
            chance *= row[value]
        seen[secret] = seen.get(secret, 0) + chance
    likely = [seen[secret] / mass[secret] for secret in mass if mass[secret]]
    total = sum(seen.values())
    if total == 0:
        return None
    prior, posterior = (
        [float(sum(found[s] for s in found if s[0] == x) / whole) for x in range(chain.k)]
        for found, whole in ((mass, sum(mass.values())), (seen, total))
    )
    ratio = math.inf if min(likely) == 0 else math.log(max(likely)) - math.log(min(likely))
    return ratio, prior, posterior


def shown(matrix, rows, private):
    """(n, k) how likely what a chain shows is; rows: its released rows by place, None if empty."""
    likes = np.ones(matrix.shape)
    for t, value in rows.items():
        if t not in private:
            likes[t] = matrix[t] if value is None else np.eye(matrix.shape[1])[value]
    return likes


def by_definition(chain, release, path, frame, keys, protect):
    """What Bayes says of each secret, as they stand in the table."""
    out = pl.read_parquet(path)
    for name in sorted(keys["chain"].unique().to_list()):
        matrix = rule(release, frame, name, chain.k)
        rows = dict(out.filter(pl.col("chain") == name).select("t", "v").rows())
        private = set(keys.filter(pl.col("chain") == name)["t"].to_list())
        likes = shown(matrix, rows, private)
        for secret in secrets_by_definition(frame, keys, name, protect):
            inside = likes.copy()
            inside[secret[0] : secret[-1] + 1] = 1
            yield bayes(chain, inside, secret[0], secret[-1])


def check(chain, frame, keys, epsilon, folder, protect="run", **options):
    release, path = released(chain, frame, keys, epsilon, folder, protect=protect, **options)
    original = folder / "original.parquet"
    frame.write_parquet(original)
    found = attack(path, original=original, others=False)
    expected = list(by_definition(chain, release, path, frame, keys, protect))
    assert found.secrets == len(expected)
    for at, (ratio, prior, posterior) in enumerate(expected):
        assert abs(found.own.ratios[at]) == pytest.approx(ratio, abs=1e-9)
        assert found.prior[at] == pytest.approx(prior, abs=1e-9)
        assert found.posterior[at] == pytest.approx(posterior, abs=1e-9)
    assert found.holds
    assert found.own.largest <= epsilon + 1e-9
    return found


@given(
    tables(),
    st.sampled_from([0.3, 1.0, 2.0]),
    st.sampled_from(["run", "each"]),
    st.sampled_from(["best-local", "window", "3r-relaxed", "3r-constant"]),
)
@SETTINGS
def test_any_table(tmp_path_factory, table, epsilon, protect, mechanism):
    check(*table, epsilon, tmp_path_factory.mktemp("t"), protect, mechanism=mechanism)
