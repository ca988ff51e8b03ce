"""The guarantee of a redacted table against its definition: the rule that decided, gaps and all,
over every output.
"""

from datetime import datetime
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import leakage_of_table, output_table
from offrecord.mechanisms import workshop
from offrecord.mechanisms.best_local import sides_apart
from offrecord.mechanisms.best_local.few_designs import FewDesigns
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.chains import Columns, arrange
from offrecord.tables.optouts import OptOuts
from offrecord.tables.secrets import private_records, secrets_of
from offrecord.tables.steps import Step
from small_tables import check_table, dry, secrets_by_definition, tables


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.sampled_from(["run", "each"]))
def test_no_output_of_a_table_tells_more_than_epsilon(table, epsilon, protect):
    check_table(*table, epsilon, protect, "best-local")


@settings(max_examples=25, deadline=None)
@given(
    tables(), st.sampled_from([0.5, 1.0]), st.sampled_from(["window", "3r-constant", "3r-relaxed"])
)
def test_nor_with_another_mechanism(table, epsilon, mechanism):
    check_table(*table, epsilon, "run", mechanism)


@settings(max_examples=25, deadline=None)
@given(tables(), st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from(["run", "each"]))
def test_nor_where_rooms_are_rounded_up_or_sides_designed_apart(table, epsilon, protect):
    chain, frame, keys = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workshop.Workshop, "most", 1)
        patch.setattr(FewDesigns, "most", 1)
        coarse = check_table(chain, frame, keys, epsilon, protect, "best-local")
        patch.setattr(sides_apart, "JOINT", 0)
        patch.setattr(sides_apart, "_NODES", 4)
        apart = check_table(chain, frame, keys, epsilon, protect, "best-local")
    if chain.is_stationary:
        assert coarse.summary.designs >= 1
        assert apart.summary.loss >= 0


def sequences_of_order_2(chain, n):
    paths = np.array(list(product(range(chain.k), repeat=n)))
    weight = chain.start[paths[:, 0], paths[:, 1]].copy()
    for t in range(2, n):
        weight *= chain.transition[paths[:, t - 2], paths[:, t - 1], paths[:, t]]
    return paths, weight


@pytest.mark.parametrize(
    ("private", "gone"),
    [([3], []), ([1], []), ([6], []), ([2, 3], []), ([2, 5], []), ([3], [4]), ([2, 4], [3])],
)
def test_nor_for_a_chain_of_order_2(private, gone, monkeypatch):
    chain = off.MarkovChain([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], order=2)
    n, epsilon = 6, 1.0
    kept = [t for t in range(1, n + 1) if t not in gone]
    frame = pl.DataFrame({"chain": 0, "t": kept, "v": [t % 2 for t in kept]})
    keys = pl.DataFrame({"chain": [0] * len(private), "t": private})
    release = dry(chain, frame, keys, epsilon)
    matrix = np.ones((n, 2))
    matrix[np.array(kept) - 1] = release.explain().select(pl.col("^Pr.*$")).to_numpy()
    joined = [[2, 4]] if gone == [3] else [[2, 3]] if private == [2, 3] else [[p] for p in private]
    import definition

    monkeypatch.setattr(definition, "sequences", sequences_of_order_2)
    for secret in joined:
        assert leakage_of_table(output_table(chain, n, matrix, secret)) <= epsilon + 1e-9


@settings(max_examples=100, deadline=None)
@given(tables(), st.sampled_from(["run", "each"]))
def test_secrets_are_the_private_records_joined_over_what_is_missing(table, protect):
    _, frame, keys = table
    columns, step = Columns.named("v", "t", "chain", False), Step.parsed(1)
    arranged = arrange(frame, columns, alphabet=Alphabet((0, 1, 2)), step=step)
    private = private_records(arranged, OptOuts.of(keys, columns), step)
    found = secrets_of(arranged.chains, private, protect)
    names = arranged.frame["chain"].to_numpy()[arranged.chains.starts[:-1]]
    expected = [
        (name, secret[0], secret[-1])
        for name in names
        for secret in secrets_by_definition(frame, keys, name, protect)
    ]
    assert [
        (names[c], a, b) for c, a, b in zip(found.chain, found.first, found.last, strict=True)
    ] == expected
    t = arranged.frame["t"].to_numpy()
    for c, low, high, first, last in zip(
        found.chain, found.low, found.high, found.first, found.last, strict=True
    ):
        begin, end = arranged.chains.starts[c], arranged.chains.starts[c + 1]
        inside = [row for row in range(begin, end) if first <= t[row] <= last]
        assert list(range(low, high)) == inside


def test_the_share_of_redactions_is_what_the_rule_says(tmp_path):
    chain = off.MarkovChain.binary(0.01, 0.8)
    chains, n = 3000, 10
    rng = np.random.default_rng(7)
    values = np.zeros((chains, n), dtype=np.int64)
    values[:, 0] = rng.random(chains) < 0.01 / 0.81
    for t in range(1, n):
        u = rng.random(chains)
        values[:, t] = np.where(values[:, t - 1] == 1, u >= 0.8, u < 0.01)
    frame = pl.DataFrame(
        {
            "chain": np.repeat(np.arange(chains), n),
            "t": np.tile(np.arange(n), chains),
            "v": values.ravel(),
            "private": np.tile(np.arange(n) == 0, chains),
        }
    )
    release = off.redact(
        frame,
        value="v",
        order="t",
        by="chain",
        private="private",
        model=chain,
        epsilon=1.0,
        dataset="d",
        mechanism="best-local",
        key_file=tmp_path / "key",
    )
    policy = off.design(off.Problem(chain, n, [1], 1.0))
    gone = release.frame["v"].is_null().to_numpy().reshape(chains, n)
    chances = policy.redaction[np.arange(n), values]
    assert np.all(gone[chances == 1])
    assert not np.any(gone[chances == 0])
    for t in range(1, 4):
        zeros = values[:, t] == 0
        q, count = policy.redaction[t, 0], int(zeros.sum())
        assert abs(gone[zeros, t].sum() - q * count) < 5 * np.sqrt(q * (1 - q) * count)
    assert release.summary.redacted == gone.sum()


def test_a_lone_record_of_a_model_with_phases_is_redacted():
    model = off.PhasedChain(
        "hour", np.tile([[0.9, 0.1], [0.3, 0.7]], (24, 1, 1)), np.tile([0.75, 0.25], (24, 1))
    )
    hours = [datetime(2020, 1, 1, hour) for hour in (5, 5, 6, 7)]
    frame = pl.DataFrame(
        {"chain": [1, 2, 2, 2], "t": hours, "v": [0, 0, 1, 1], "p": [True, False, True, False]}
    )
    for step in (None, "1h"):
        release = off.redact(
            frame,
            value="v",
            order="t",
            by="chain",
            private="p",
            model=model,
            epsilon=1.0,
            step=step,
            dataset="d",
            dry_run=True,
        )
        assert release.explain()["region"].to_list()[::2] == ["private", "private"]
