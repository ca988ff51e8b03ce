"""What the owner's walks tell, against every outcome of every sequence of values."""

import math
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import offrecord as off
from attack.test_bayes import probability, released
from offrecord.attack.fitted import phased
from offrecord.attack.owner import told_by_walks
from offrecord.attack.released import Table
from offrecord.attack.steps import Steps
from offrecord.tables.certified import Certified
from owner_law import Shape, laws_of_masks

MOST = 10  # outcomes that are attacked of each


def outcomes(table, shape):
    """By what is shown, by place with None for what is not: {values of all places: how likely it is
    given them}. The decider itself is taken through every branch.
    """
    (block,) = table.rule.blocks(table.batch, table.acting)
    ends = zip(block.secrets.first.tolist(), block.secrets.last.tolist(), strict=True)
    which = dict(zip(ends, block.which.tolist(), strict=True))
    k = table.said.model.k
    observed = [
        dict(zip(shape.observed, values, strict=True))
        for values in product(range(k), repeat=len(shape.observed))
    ]
    masks, _ = laws_of_masks(
        table.rule.decider, shape, observed, lambda first, last: which[first, last]
    )
    found = defaultdict(dict)
    for values, law in zip(observed, masks, strict=True):
        whole = sum(law.values())
        for redacted, chance in law.items():
            seen = tuple(
                values[p] if p in values and p not in redacted else None
                for p in range(shape.length)
            )
            mine, key = found[seen], tuple(values.values())
            mine[key] = mine.get(key, 0.0) + chance / whole
    return found


def some_of(every, most):
    """Some outcomes, the same ones always."""
    order = np.random.default_rng(7).permutation(len(every))
    listed = list(every)
    return [listed[at] for at in order[:most]]


def by_definition(chain, likely, shape, first, last):
    """The log-ratio about some records, and prior and posterior of the first. likely: of what is
    shown, by the values that are observed.
    """
    mass, seen = defaultdict(float), defaultdict(float)
    for values in product(range(chain.k), repeat=shape.length):
        chance, secret = float(probability(chain, values)), values[first : last + 1]
        mass[secret] += chance
        seen[secret] += chance * likely.get(tuple(values[p] for p in shape.observed), 0.0)
    ratios = [seen[one] / mass[one] for one in mass if mass[one] > 0]
    prior, posterior = (
        np.array([sum(law[s] for s in law if s[0] == x) for x in range(chain.k)])
        for law in (mass, seen)
    )
    ratio = math.inf if min(ratios) == 0 else math.log(max(ratios) / min(ratios))
    return ratio, prior / prior.sum(), posterior / posterior.sum()


def a_release(tmp_path, model, shape, epsilon):
    """The path of a release of a table of that shape, by the owner's mechanism."""
    values = np.random.default_rng(1).integers(0, model.k, shape.length)
    rows = list(shape.rows)
    cells = [None if p in shape.nulls else int(values[p]) for p in rows]
    frame = pl.DataFrame({"chain": [1] * len(rows), "t": rows, "v": cells})
    keys = pl.DataFrame({"chain": [1] * len(shape.private), "t": list(shape.private)})
    options = {"mechanism": "owner", "protect": shape.protect}
    _, path = released(model, frame, keys, epsilon, tmp_path, **options)
    return path


def shape_of(length, private, rows=None, nulls=(), protect="run"):
    rows = tuple(range(length)) if rows is None else tuple(rows)
    order = {place: place for place in rows}
    return Shape(length, rows, frozenset(nulls), tuple(private), protect, order)


def shown_in(path, shape, seen):
    """The table with what an outcome shows."""
    cells = [seen[p] for p in shape.rows]
    schema = {"chain": pl.Int64, "t": pl.Int64, "v": pl.Int64}
    columns = {"chain": [1] * len(cells), "t": shape.rows, "v": cells}
    pl.DataFrame(columns, schema=schema).write_parquet(path)


def check(tmp_path, model, shape, epsilon, others=(), most=MOST):
    """Attack outcomes by the model's chain, which must hold, and by others; how many secrets were
    attacked by each, and how many not.
    """
    path = a_release(tmp_path, model, shape, epsilon)
    said = Certified.load(Path(f"{path}.certificate.json"))
    empty = np.array([p in shape.nulls for p in shape.rows])
    every = outcomes(Table.read(path, said).knowing(empty), shape)
    chains = [model, *others]
    counts = np.zeros((len(chains), 2), dtype=int)
    for seen in some_of(every, most):
        shown_in(path, shape, seen)
        table = Table.read(path, said).knowing(empty)
        secrets = table.batch.secrets
        for number, chain in enumerate(chains):
            told, why = told_by_walks(table, Steps.of_chain(chain), is_own=number == 0)
            for at in range(secrets.count):
                ends = int(secrets.first[at]), int(secrets.last[at])
                ratio, prior, posterior = by_definition(chain, every[seen], shape, *ends)
                is_known = not np.isnan(told.ratio[at])
                counts[number, 0 if is_known else 1] += 1
                assert is_known or why
                if is_known:
                    assert abs(told.ratio[at]) == pytest.approx(ratio, abs=1e-9)
                    assert told.prior[at] == pytest.approx(prior, abs=1e-9)
                    assert told.posterior[at] == pytest.approx(posterior, abs=1e-9)
                    assert number or ratio <= epsilon + 1e-9
    return counts


TWO = off.MarkovChain.binary(0.3, 0.4)
THREE = off.MarkovChain([[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
SECOND = off.MarkovChain([[[0.7, 0.3], [0.45, 0.55]], [[0.6, 0.4], [0.35, 0.65]]], order=2)
THIRD = off.MarkovChain(np.random.default_rng(3).dirichlet([4, 4], (2, 2, 2)), order=3)
CASES = {
    "one": (TWO, shape_of(7, [3]), 0.5),
    "at the start": (TWO, shape_of(8, [0]), 0.7),
    "a gap held out": (off.MarkovChain.binary(0.2, 0.5), shape_of(8, [2, 4]), 1.0),
    "two walks": (TWO, shape_of(8, [2, 6]), 1.0),
    "three": (off.MarkovChain.binary(0.45, 0.4), shape_of(9, [1, 4, 7]), 1.0),
    "a run": (TWO, shape_of(8, [3, 4]), 1.0),
    "each": (TWO, shape_of(8, [3, 4], protect="each"), 1.0),
}


@pytest.mark.parametrize("case", CASES)
def test_by_the_model_and_by_chains_of_longer_memory(tmp_path, case):
    model, shape, epsilon = CASES[case]
    counts = check(tmp_path, model, shape, epsilon, [SECOND, THIRD])
    assert counts[:, 0].all()
    # a pair beside which less is released than an attacker remembers is left alone
    assert case == "two walks" or not counts[:, 1].any()
    assert not counts[0, 1]


def test_three_values(tmp_path):
    counts = check(tmp_path, THREE, shape_of(6, [2]), 1.0, most=5)
    assert not counts[:, 1].any()


MISSING = {
    "no row beside": shape_of(8, [3], rows=[0, 1, 2, 3, 5, 6, 7]),
    "empty cells": shape_of(9, [4], nulls=[2, 5]),
    "two without a row": shape_of(9, [3], rows=[0, 1, 3, 4, 7, 8]),
    "no value at the ends": shape_of(8, [3], nulls=[0, 7]),
    "between two walks": shape_of(8, [1, 6], nulls=[4]),
    "all between": shape_of(8, [2, 6], rows=[0, 1, 2, 6, 7]),
    "a private one": shape_of(8, [3, 4], rows=[0, 1, 2, 4, 5, 6, 7]),
    "near a private one": shape_of(8, [3], rows=[0, 1, 2, 5, 6, 7]),
}


@pytest.mark.parametrize("case", MISSING)
def test_missing_records(tmp_path, case):
    counts = check(tmp_path, TWO, MISSING[case], 0.7, [SECOND])
    assert counts[0, 0]
    assert case == "all between" or not counts[0, 1]


SLOWER = off.MarkovChain([[[0.8, 0.2], [0.4, 0.6]], [[0.6, 0.4], [0.3, 0.7]]], order=2)
START = off.MarkovChain([[0.7, 0.3], [0.4, 0.6]], start=[0.2, 0.8])
STEPS = off.MarkovChain(np.random.default_rng(5).dirichlet([4, 4], (7, 2)), start=[0.4, 0.6])
OTHERS = {
    "order 2": (SECOND, shape_of(8, [3])),
    "order 2, a missing record": (SECOND, shape_of(8, [4], nulls=[6])),
    "order 2, nothing between": (SLOWER, shape_of(8, [0, 6])),
    "order 2, too short": (SECOND, shape_of(1, [0])),
    "own start": (START, shape_of(8, [3])),
    "own start, two": (START, shape_of(8, [0, 6])),
    "own start, a missing record": (START, shape_of(8, [4], nulls=[6])),
    "steps": (STEPS, shape_of(8, [3])),
    "steps, two": (STEPS, shape_of(8, [0, 6])),
}


@pytest.mark.parametrize("case", OTHERS)
def test_models_of_any_kind(tmp_path, case):
    model, shape = OTHERS[case]
    counts = check(tmp_path, model, shape, 1.2, [THIRD])
    assert counts[:, 0].all()
    assert not counts[:, 1].any()


def test_a_clock(tmp_path):
    """Two values that follow each other by the weekday, a day without a row; and somebody who
    believes in other kernels for each weekday.
    """
    rng = np.random.default_rng(25)
    model, other = (
        off.PhasedChain(
            "weekday", rng.dirichlet([4, 4], (7, 2)), rng.dirichlet([4, 4], 7)
        ).rounded()
        for _ in range(2)
    )
    shape = shape_of(9, [4], rows=[0, 1, 2, 3, 4, 5, 6, 8])
    days = pl.Series(shape.rows) * 86_400_000_000_000
    day = days.cast(pl.Datetime("ns")).cast(pl.Date)  # the first is a Thursday
    frame = pl.DataFrame({"day": day, "v": [0, 1, 1, 0, 0, 1, 0, 1]})
    release = off.redact(
        frame,
        value="v",
        order="day",
        single_chain=True,
        step="1d",
        private_list=frame[[4]].select("day"),
        model=model,
        epsilon=1.2,
        dataset="d",
        mechanism="owner",
        accept_model=True,
        publish_positions=True,
        key_file=tmp_path / "keys" / "key.json",
    )
    path = tmp_path / "out" / "released.csv"
    path.parent.mkdir()
    release.write(path)
    said = Certified.load(Path(f"{path}.certificate.json"))
    every = outcomes(Table.read(path, said), shape)
    for seen in some_of(every, 8):
        cells = pl.Series("v", [seen[p] for p in shape.rows], dtype=pl.Int64)
        frame.with_columns(cells).write_csv(path)
        table = Table.read(path, said)
        for one in (model, other):
            told, _ = told_by_walks(table, phased(table, one), is_own=one is model)
            chain = one.along((np.arange(9) + 3) % 7)
            ratio, _, posterior = by_definition(chain, every[seen], shape, 4, 4)
            assert abs(told.ratio[0]) == pytest.approx(ratio, abs=1e-9)
            assert told.posterior[0] == pytest.approx(posterior, abs=1e-9)
