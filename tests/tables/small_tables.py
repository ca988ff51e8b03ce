"""Small tables, gaps and all, whose every output can be counted, and the check of the rule against
the definition.
"""

import numpy as np
import polars as pl
from hypothesis import assume
from hypothesis import strategies as st

import offrecord as off
from definition import leakage_of_table, output_table
from explained import explained

KERNELS = {
    2: [
        [[0.9, 0.1], [0.3, 0.7]],
        [[0.2, 0.8], [0.9, 0.1]],
        [[0.99, 0.01], [0.8, 0.2]],
        [[0.5, 0.5], [1.0, 0.0]],
    ],
    3: [
        [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]],
        [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]],
        [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]],
    ],
}


@st.composite
def tables(draw, max_n=6):
    """A model, and chains of at most max_n steps with gaps, missing values and private records,
    some in gaps.
    """
    k = draw(st.sampled_from([2, 2, 3]))
    transition = np.array(draw(st.sampled_from(KERNELS[k])))
    start = draw(st.sampled_from([None, None, None, [1.0] + [0.0] * (k - 1)]))
    chain = off.MarkovChain(transition, start=start)
    rows, keys = [], []
    for name in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, max_n if k == 2 else 5))
        kept = sorted({0, n - 1} | draw(st.sets(st.integers(0, n - 1))))
        value = int(np.argmax(chain.start))
        path = [value]
        for _ in range(n - 1):
            value = draw(st.sampled_from(np.flatnonzero(transition[value]).tolist()))
            path.append(value)
        empty = draw(st.sets(st.sampled_from(kept), max_size=1))
        rows += [(name, t, None if t in empty else path[t]) for t in kept]
        keys += [(name, t) for t in draw(st.sets(st.integers(0, n - 1), max_size=3))]
    assume(keys)
    frame = pl.DataFrame(
        rows, schema={"chain": pl.Int64, "t": pl.Int64, "v": pl.Int64}, orient="row"
    )
    listed = pl.DataFrame(keys, schema={"chain": pl.Int64, "t": pl.Int64}, orient="row")
    return chain, frame, listed


def rule(release, frame, name, k):
    """(n, k) redaction probabilities of one chain over all its steps: what is missing is
    redacted.
    """
    found = explained(release).filter(pl.col("chain") == name)
    rows = frame.filter(pl.col("chain") == name).sort("t")
    n = int(rows["t"].max()) + 1
    matrix = np.ones((n, k))
    for (t, value), chances in zip(
        rows.select("t", "v").rows(), found.select(pl.col("^Pr.*$")).rows(), strict=True
    ):
        if value is not None:
            matrix[t] = chances
    return matrix


def secrets_by_definition(frame, keys, name, protect):
    """Private steps of a chain, joined where nothing but missing records lies between."""
    seen = {
        t
        for t, value in frame.filter(pl.col("chain") == name).select("t", "v").rows()
        if value is not None
    }
    steps = sorted(keys.filter(pl.col("chain") == name)["t"].unique().to_list())
    if protect == "each":
        return [[t] for t in steps]
    runs = []
    for t in steps:
        if runs and not any(between in seen for between in range(runs[-1][-1] + 1, t)):
            runs[-1].append(t)
        else:
            runs.append([t])
    return runs


def dry(chain, frame, keys, epsilon, **options):
    """The rule for a table, without a release; a local one, unless another mechanism is named."""
    always = {"step": 1, "dataset": "d"}
    options = {"mechanism": "best-local", "dry_run": True} | options
    return off.redact(
        frame,
        value="v",
        order="t",
        by="chain",
        private_list=keys,
        model=chain,
        epsilon=epsilon,
        **always,
        **options,
    )


def keep_designs(chain, frame, keys, epsilon, **options):
    """Have a file hold the designs of a table: of a release, as a dry run writes nothing."""
    options = {"accept": ("model", "another-release"), "dry_run": False} | options
    return dry(chain, frame, keys, epsilon, **options)


def check_table(chain, frame, keys, epsilon, protect, mechanism, **options):
    release = dry(chain, frame, keys, epsilon, protect=protect, mechanism=mechanism, **options)
    assert release.summary.leakage <= epsilon
    for name in keys["chain"].unique().to_list():
        matrix = rule(release, frame, name, chain.k)
        for secret in secrets_by_definition(frame, keys, name, protect):
            if len(matrix) > 1:
                table = output_table(chain, len(matrix), matrix, [t + 1 for t in secret])
                assert leakage_of_table(table) <= epsilon + 1e-9
            for t in secret:
                assert np.all(matrix[t] == 1)
    return release
