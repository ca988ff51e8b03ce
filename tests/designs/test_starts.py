"""Chains with a start of their own: a design for each place up to where it is forgotten, one for
all beyond, private in the whole chain.
"""

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.designs.sharing import room_limits
from offrecord.theory.room import cut_room

TWO = off.MarkovChain([[0.7, 0.3], [0.4, 0.6]], start=[1.0, 0.0])
THREE = off.MarkovChain(
    [[0.6, 0.2, 0.2], [0.25, 0.5, 0.25], [0.2, 0.3, 0.5]], start=[0.0, 0.1, 0.9]
)
N = 100


def redacted(model, private, tmp_path, **options):
    """One chain for each private place, all as long."""
    frame = pl.DataFrame(
        {
            "c": np.repeat(private, N),
            "t": np.tile(np.arange(N), len(private)),
            "v": np.tile(np.arange(N) % model.k, len(private)),
            "p": (np.tile(np.arange(N), len(private)) + 1) == np.repeat(private, N),
        }
    )
    given = {"value": "v", "order": "t", "by": "c", "private": "p", "model": model, "epsilon": 1.0}
    given |= {"dataset": "d", "dry_run": True, "accept_model": True}
    return off.redact(frame, **given, key_file=tmp_path / "key.json", **options)


@pytest.mark.parametrize("model", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("mechanism", ["window", "3r-constant", "best-local"])
def test_a_shared_design_is_private_wherever_a_secret_stands(model, mechanism, tmp_path):
    cut = cut_room(model, 1.0)
    assert cut is not None
    assert cut < 40
    private = [1, 2, 3, 6, cut, cut + 1, cut + 2, 60, 98, N]
    release = redacted(model, private, tmp_path, mechanism=mechanism)
    rule = release.explain().select(pl.col("^Pr.*$")).to_numpy().reshape(len(private), N, model.k)
    for place, matrix in zip(private, rule, strict=True):
        # the definition, in the chain as it is: its own start, all its records
        assert off.leakage(off.Problem(model, N, [place], 1.0), matrix) <= 1.0 + 1e-9
    rooms = {(min(place - 1, cut), min(N - place, cut)) for place in private}
    assert len(release.certificate["designs"]["designs"]) == len(rooms) < len(private)


def test_many_secrets_need_few_designs(tmp_path):
    release = redacted(TWO, list(range(1, N + 1)), tmp_path, mechanism="window")
    cut = cut_room(TWO, 1.0)
    assert len(release.certificate["designs"]["designs"]) == 2 * cut + 1
    assert release.certificate["designs"]["left_limit"] == cut


def test_a_chain_that_may_never_forget_is_not_cut():
    never = off.MarkovChain([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]], start=[1, 0, 0])
    assert room_limits(never, 1.0)[0] is None
    by_step = off.MarkovChain([TWO.transition] * 3, start=[1.0, 0.0])
    assert room_limits(by_step, 1.0)[0] is None
    longer = off.MarkovChain(np.full((2, 2, 2), 0.5), start=[[1.0, 0.0], [0.0, 0.0]], order=2)
    assert room_limits(longer, 1.0)[0] is None


@pytest.mark.parametrize("mechanism", ["window", "3r-relaxed", "best-local", "owner"])
def test_independent_records_with_a_start_of_their_own(mechanism, tmp_path):
    """Nothing but the private record has to go, wherever it stands."""
    model = off.MarkovChain([[0.76, 0.24], [0.76, 0.24]], start=[0.267, 0.733])
    release = redacted(model, [1, 2, 3, 50, N], tmp_path, mechanism=mechanism)
    assert release.summary.to_dict()["redacted"] == 5
