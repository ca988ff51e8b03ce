"""What the owner's walks tell, against every outcome of every sequence of values."""

from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import offrecord as off
from attack.test_bayes import probability, released
from definition import samples
from offrecord.attack import attack
from offrecord.attack.released import Table
from offrecord.mechanisms.owner.outcomes import outcomes_of
from offrecord.tables.certified import Said


def law(chain, table):
    """For each outcome of a table of one chain, how likely it is by the values of all records."""
    n, found = len(table.codes), defaultdict(dict)
    (block,) = table.rule.blocks(table.batch, table.acting)
    for values in product(range(chain.k), repeat=n):
        likely = float(probability(chain, values))
        codes = np.array(values, dtype=np.int8)
        chains = replace(block.chains, codes=codes)
        for mask, chance in outcomes_of(table.rule.decider, block._replace(chains=chains)):
            shown = tuple(np.where(mask, codes, -1).tolist())
            found[shown][values] = found[shown].get(values, 0.0) + likely * chance
    return found


def by_definition(chain, likely, n, first, last):
    """The log-ratio about some records and the posterior of the first; likely: by all values."""
    mass, seen = defaultdict(float), defaultdict(float)
    for values in product(range(chain.k), repeat=n):
        secret = values[first : last + 1]
        mass[secret] += float(probability(chain, values))
        seen[secret] += likely.get(values, 0.0)
    ratios = [seen[one] / mass[one] for one in mass if mass[one] > 0]
    posterior = np.array([sum(seen[s] for s in seen if s[0] == x) for x in range(chain.k)])
    return np.log(max(ratios) / min(ratios)), posterior / posterior.sum()


MOST = 12  # outcomes that are attacked of each
CASES = [
    (off.MarkovChain.binary(0.3, 0.4), 7, [3], 0.5),
    (off.MarkovChain.binary(0.3, 0.4), 8, [0], 0.7),
    (off.MarkovChain.binary(0.2, 0.5), 8, [2, 4], 1.0),
    (off.MarkovChain.binary(0.3, 0.4), 8, [2, 6], 1.0),
    (off.MarkovChain.binary(0.45, 0.4), 9, [1, 4, 7], 1.0),
    (off.MarkovChain.binary(0.3, 0.4), 8, [3, 4], 1.0),
    (off.MarkovChain([[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]]), 6, [2], 1.0),
]


@pytest.mark.parametrize(("chain", "n", "private", "epsilon"), CASES)
def test_every_outcome(tmp_path, chain, n, private, epsilon):
    values = samples(chain, 1, n, np.random.default_rng(1))[0]
    frame = pl.DataFrame({"chain": [1] * n, "t": range(n), "v": values})
    keys = pl.DataFrame({"chain": [1] * len(private), "t": private})
    _, path = released(chain, frame, keys, epsilon, tmp_path, mechanism="owner")
    table = Table.read(path, Said.load(Path(f"{path}.certificate.json")))
    attacked = 0
    every = law(chain, table)
    for shown in sorted(every, key=hash)[:MOST]:
        likely = every[shown]
        out = pl.DataFrame({"chain": [1] * n, "t": range(n), "v": shown})
        out = out.with_columns(pl.when(pl.col("v") >= 0).then(pl.col("v")).alias("v"))
        out.write_parquet(path)
        found = attack(path, others=False)
        assert found.holds
        secrets = table.batch.secrets
        for at in range(found.secrets):
            if np.isnan(found.own.ratios[at]):
                assert found.unattacked
                continue
            attacked += 1
            ends = int(secrets.first[at]), int(secrets.last[at])
            ratio, posterior = by_definition(chain, likely, n, *ends)
            assert abs(found.own.ratios[at]) == pytest.approx(ratio, abs=1e-9)
            assert found.posterior[at] == pytest.approx(posterior, abs=1e-9)
    assert attacked
