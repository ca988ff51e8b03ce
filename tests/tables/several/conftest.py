"""Releases of the same records, under one key."""

import polars as pl
import pytest

import offrecord as off

CHAIN = off.MarkovChain.binary(0.05, 0.3)
OPTIONS = {"value": "v", "order": "t", "by": "chain", "step": 1, "private": "p", "model": CHAIN}


class Desk:
    """redact writes a release and gives it, proof is where its certificate lies."""

    def __init__(self, folder):
        self.folder = folder
        self.key = folder / "key" / "key.json"

    def redact(self, frame, name, **options):
        given = OPTIONS | {"epsilon": 1.0, "dataset": "d", "key_file": self.key} | options
        release = off.redact(frame, remember=False, **given)
        release.write(self.folder / name)
        return release

    def proof(self, name):
        return self.folder / f"{name}.certificate.json"

    def released(self, name):
        return pl.read_csv(self.folder / name)


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def rule_of(release):
    """By chain and order value, the redaction probabilities of all values."""
    told = release.explain()
    columns = [name for name in told.columns if name.startswith("Pr(")]
    return {(row["chain"], row["t"]): [row[name] for name in columns] for row in told.to_dicts()}
