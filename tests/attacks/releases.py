"""A small release on disk, by any mechanism."""

import numpy as np
import polars as pl

from offrecord.models.chain import MarkovChain
from offrecord.models.file import Model
from offrecord.models.promise import KnownChains
from offrecord.tables.engines.memory import redact

CHAIN = MarkovChain([[0.9, 0.1], [0.3, 0.7]])


def drawn(chain, chains, length, rng):
    """(chains, length) values, 0 and 1."""
    values = np.zeros((chains, length), dtype=int)
    values[:, 0] = rng.random(chains) < chain.start[1]
    for at in range(1, length):
        values[:, at] = rng.random(chains) < chain.transition[values[:, at - 1], 1]
    return values


def frame_of(values, private, missing=None):
    chains, length = values.shape
    frame = pl.DataFrame(
        {
            "id": np.repeat([f"c{at:02}" for at in range(chains)], length),
            "t": np.tile(np.arange(length), chains),
            "v": values.reshape(-1),
            "out": private.reshape(-1),
        }
    )
    if missing is not None:
        gone = pl.Series(missing.reshape(-1) & ~private.reshape(-1))
        frame = frame.with_columns(v=pl.when(gone).then(None).otherwise(pl.col("v")))
    return frame


def released(folder, frame, *, chain=CHAIN, mechanism=None, epsilon=1.0, **options):
    """The release and the path of its table."""
    folder.mkdir(parents=True, exist_ok=True)
    made = redact(
        frame,
        by="id",
        order="t",
        value="v",
        private="out",
        model=Model(KnownChains([chain])),
        epsilon=epsilon,
        dataset="some",
        mechanism=mechanism,
        accept="model",
        publish_positions=True,
        key_file=folder / "key" / "key.json",
        **options,
    )
    made.write(folder / "out.csv", force=True)
    return made, folder / "out.csv"
