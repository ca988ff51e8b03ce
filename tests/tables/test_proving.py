"""No design acts that the verifier does not prove: one that tells too much redacts more."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.mechanisms.local.stretches import Stretches
from offrecord.tables import plan
from offrecord.verify import verify

CHAIN = off.MarkovChain([[0.9, 0.1], [0.3, 0.7]])
SOME = {
    "value": "v", "order": "t", "by": "c", "private": "p", "epsilon": 1.0, "model": CHAIN,
    "accept_model": True,
}  # fmt: skip


def table():
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "c": np.repeat(np.arange(20), 40),
            "t": np.tile(np.arange(40), 20),
            "v": rng.integers(0, 2, 800),
            "p": rng.random(800) < 0.02,
        }
    )


def lowered(share):
    """As if mechanisms made designs that redact less by chance."""
    made = plan.with_clusters

    def side(stretches):
        rows = np.where(stretches.rows < 1.0, stretches.rows * (1.0 - share), 1.0)
        return Stretches(rows, stretches.lengths)

    def with_clusters(*given, **named):
        found = made(*given, **named)
        designs = [
            replace(one, left=side(one.left), right=side(one.right)) for one in found.designs
        ]
        return replace(found, designs=tuple(designs))

    return with_clusters


def shares(file):
    """All redaction probabilities of a certificate that are neither 0 nor 1."""
    content = json.loads(file.read_bytes())
    rows = [row for side in content["designs"]["sides"] for _, row in side]
    return np.sort([share for row in rows for share in row if 0 < share < 1])


@pytest.mark.parametrize("share", [1e-12, 1e-6, 1e-2])
def test_a_design_that_tells_too_much_redacts_a_little_more(share, tmp_path, monkeypatch):
    usual = off.redact(table(), **SOME, mechanism="best-local", dataset=f"usual {share}")
    usual.write(tmp_path / "usual.csv")
    monkeypatch.setattr(plan, "with_clusters", lowered(share))
    mended = off.redact(table(), **SOME, mechanism="best-local", dataset=f"mended {share}")
    mended.write(tmp_path / "mended.csv")
    files = [tmp_path / f"{name}.csv.certificate.json" for name in ("usual", "mended")]
    before, after = map(shares, files)
    assert verify(files[1]).is_verified
    assert len(before) == len(after) > 0
    # about what was taken off is put back, no more
    assert np.all(after >= before * (1.0 - share))
    assert np.abs(after - before).max() < 3 * share


def test_nothing_else_acts_unproven(monkeypatch):
    """Of walks that stop too soon nothing can be mended: they are refused, in one line."""
    made = plan.with_clusters

    def with_clusters(*given, **named):
        found = made(*given, **named)
        (one, *others) = found.designs
        options = [
            tuple(replace(side, budget=side.budget / 2) for side in option)
            for option in one.stopping.options
        ]
        stopping = replace(one.stopping, options=tuple(options), gaps=())
        return replace(found, designs=(replace(one, stopping=stopping), *others))

    monkeypatch.setattr(plan, "with_clusters", with_clusters)
    with pytest.raises(off.InputError, match="is not proven: it tells"):
        off.redact(table(), **SOME, mechanism="owner", dataset="walks")


def test_designs_of_a_sealed_file_are_not_proven_twice(tmp_path, monkeypatch):
    designs = tmp_path / "designs.json"
    off.redact(table(), **SOME, mechanism="window", dataset="kept", designs=designs)
    asked = []
    real = plan.proven

    def proven(found, known=None):
        asked.append(known is not None and known.sealed)
        return real(found, known)

    monkeypatch.setattr(plan, "proven", proven)
    off.redact(table(), **SOME, mechanism="window", dataset="kept", designs=designs)
    assert asked == [True]
