"""Ten thousand owners answer alone; the collector assembles what they say and compares with one
party redacting it all.

python examples/local_protocol.py
"""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import offrecord as off

N, EPSILON = 10_000, 1.0


def main() -> None:
    chain = off.MarkovChain.binary(alpha=0.05, beta=0.3)
    private = list(range(50, N, 100))

    # 1. The collector publishes the policy. It needs the model and who wants to be off the record,
    # but no value.
    policy = off.design(off.Problem(chain, N, private, EPSILON), "3r-constant")
    print(f"published: {policy!r}")

    # 2. Each owner has a value and a key, and answers. Nobody else ever sees a value that is
    # withheld.
    rng = np.random.default_rng(1)
    values = [int(rng.random() < 0.05 / 0.35)]
    for _ in range(N - 1):
        values.append(int(rng.random() < (0.7 if values[-1] else 0.05)))
    nowhere = Path("the owner's own")
    owners = [off.Key(secrets.token_bytes(32), nowhere) for _ in range(N)]
    answers = [
        off.answer(policy, i + 1, values[i], owners[i], remember=False) for i in range(N)
    ]  # each is asked but once

    # 3. The collector assembles and checks: what is withheld must be as frequent as the policy
    # says.
    withheld = np.array([one is None for one in answers])
    chances = policy.redaction[np.arange(N), values]
    expected, spread = chances.sum(), np.sqrt((chances * (1 - chances)).sum())
    print(f"owners withheld {withheld.sum()} records; expected {expected:.1f} ± {spread:.1f}")
    assert all(one is None or one == value for one, value in zip(answers, values, strict=True))
    assert all(withheld[p - 1] for p in private)
    assert abs(withheld.sum() - expected) < 5 * max(spread, 1)

    # The central way: one party sees all values and redacts by the same rule, with coins of its
    # own.
    table = pl.DataFrame(
        {"t": np.arange(1, N + 1), "v": values, "private": np.isin(np.arange(1, N + 1), private)}
    )
    with tempfile.TemporaryDirectory() as folder:
        release = off.redact(
            table,
            value="v",
            order="t",
            single_chain=True,
            private="private",
            model=chain,
            epsilon=EPSILON,
            dataset="example",
            mechanism="3r-constant",
            key_file=Path(folder) / "key.json",
        )
    central = release.frame["v"].is_null().to_numpy()
    certain = (chances == 0) | (chances == 1)
    print(
        f"one party withheld {central.sum()}; both agree on {np.mean(central == withheld):.1%} of"
        " the records,"
    )
    print(
        f"and on all {certain.sum()} that are decided without a coin:"
        f" {bool(np.all(central[certain] == withheld[certain]))}"
    )
    assert np.array_equal(central[certain], withheld[certain])
    assert abs(int(central.sum()) - expected) < 5 * max(spread, 1)


if __name__ == "__main__":
    main()
