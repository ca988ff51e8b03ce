"""Twins: tables that differ in private values alone leave the same bytes, under local rules."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

import offrecord as off
from offrecord.release.keys import Key
from soak.running import Campaign, Notes, ViolationError

_ENDINGS = (".csv", ".parquet", ".arrow", ".ndjson")


def _twins(ending: str, rng: random.Random, folder: Path) -> Notes:
    draw = np.random.default_rng(rng.randrange(2**62))
    chains, size, k = rng.randint(2, 12), rng.randint(5, 60), rng.choice([2, 2, 3])
    values = draw.integers(k, size=chains * size)
    private = draw.random(chains * size) < rng.choice([0.01, 0.05, 0.2])
    private[rng.randrange(len(private))] = True
    other = np.where(private, draw.integers(k, size=len(values)), values)
    counts = draw.integers(5, 400, size=(k, k))
    asked = {
        "value": "v", "order": "t", "by": "id", "private": "p", "dataset": "twins", "step": 1,
        "epsilon": rng.choice([0.5, 1.0, 2.0]), "mechanism": rng.choice(["window", "best-local"]),
        "model": off.Posterior(counts, 1), "accept": "model",
    }  # fmt: skip
    Key.new(folder / "key" / "key.json")
    left = []
    for name, one in (("one", values), ("other", other)):
        frame = pl.DataFrame(
            {
                "id": np.repeat(np.arange(chains), size),
                "t": np.tile(np.arange(size), chains),
                "v": one,
                "p": private,
            }
        )
        key = shutil.copytree(folder / "key", folder / f"key of {name}") / "key.json"
        file = folder / f"{name}{ending}"
        try:
            release = off.redact(frame, **asked, key_file=key)
        except off.InputError as error:  # such as for a table of which nothing would leave
            left.append((b"", b"", str(error)))
            continue
        release.write(file)
        certificate = file.with_name(f"{file.name}.certificate.json").read_bytes()
        said = re.sub(r"(?m)^time .*$", "", str(release.summary))
        left.append((file.read_bytes(), certificate, said))
    for what, one, twin in zip(("table", "certificate", "summary"), *left, strict=True):
        if one != twin:
            raise ViolationError(f"another {what} for other private values")
    refused = int(not left[0][0])
    return Counter({"twins": 1, "refused": refused, "private records": int(private.sum())})


CAMPAIGN = Campaign(
    {f"table{ending}": partial(_twins, ending) for ending in _ENDINGS},
    limit=120.0,
    words="Random tables, twice, with other values in private cells. Both are released by local"
    " rules under the same key. A violation is a byte that differs in table, certificate, summary"
    " or refusal.",
)
