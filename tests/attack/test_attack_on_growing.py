"""Attacks on growing tables: a record that waits tells nothing by being empty."""

import math
from itertools import pairwise, product

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples
from offrecord.attack import attack

CHAIN = off.MarkovChain.binary(0.2, 0.3)


def released(tmp_path, values, private, mechanism, **options):
    count, n = values.shape
    frame = pl.DataFrame(
        {
            "chain": np.repeat(np.arange(count), n),
            "t": np.tile(np.arange(1, n + 1), count),
            "v": values.ravel(),
            "p": private.ravel(),
        }
    )
    release = off.redact(
        frame,
        value="v",
        order="t",
        by="chain",
        step=1,
        private="p",
        model=CHAIN,
        dataset="d",
        mechanism=mechanism,
        growing=True,
        publish_positions=True,
        key_file=tmp_path / "key" / "key.json",
        remember=False,
        **{"epsilon": 1.0, **options},
    )
    release.write(tmp_path / "out.csv")
    return release


@pytest.mark.parametrize("mechanism", ["window", "best-local", "owner"])
def test_what_is_promised_holds(tmp_path, mechanism):
    rng = np.random.default_rng(2)
    values = samples(CHAIN, 40, 60, rng)
    release = released(tmp_path, values, rng.random(values.shape) < 0.03, mechanism)
    found = attack(tmp_path / "out.csv")
    assert 0 < found.secrets <= release.summary.secrets
    (own,) = (one for one in found.attackers if one.name == "the certificate's model")
    assert np.nanmax(np.abs(own.ratios)) <= 1.0 + 1e-9
    assert not np.isnan(own.ratios).any()


@pytest.mark.parametrize("seed", range(6))
def test_it_is_bayes_over_all_values(tmp_path, seed):
    """One chain of nine records by a local mechanism: the ratio of all that is seen."""
    rng = np.random.default_rng(seed)
    values = samples(CHAIN, 1, 9, rng)
    private = np.zeros((1, 9), dtype=bool)
    private[0, 2 + seed % 5] = True
    release = released(tmp_path, values, private, "3r-constant", epsilon=0.8, lag=3)
    told = release.explain()
    waits = (told["region"] == "waits").to_numpy()
    assert waits.any()
    rule = told.select(name for name in told.columns if name.startswith("Pr(")).to_numpy()
    seen = pl.read_csv(tmp_path / "out.csv")["v"].to_list()
    likely = [0.0, 0.0]
    at = int(np.flatnonzero(private[0])[0])
    for path in product(range(2), repeat=9):
        chance = CHAIN.start[path[0]]
        for i, j in pairwise(path):
            chance *= CHAIN.transition[i, j]
        for t, value in enumerate(path):
            if t == at or waits[t]:
                continue
            redacted = rule[t, value]
            chance *= redacted if seen[t] is None else (1 - redacted) * (seen[t] == value)
        likely[path[at]] += chance
    ratio = math.log(likely[1] / CHAIN.start[1]) - math.log(likely[0] / CHAIN.start[0])
    (own,) = (one for one in attack(tmp_path / "out.csv").attackers if "certificate" in one.name)
    assert own.ratios[0] == pytest.approx(ratio, abs=1e-9)
