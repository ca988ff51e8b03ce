"""The window of a summary is what the mechanism `window` releases of the same table."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.mechanisms.best_local.few_designs import FewDesigns
from offrecord.models.phased import PhasedChain

MONDAY = dt.date(2024, 1, 1)


def sticky(rng, k, order=1, stay=0.5):
    rows = rng.dirichlet(np.full(k, 2.0), size=(k,) * order)
    return off.MarkovChain((1 - stay) * rows + stay * np.eye(k), order=order).rounded()


def widened(chain, width=0.02):
    pairs = (
        (np.clip(kernel - width, 0.001, 1), np.clip(kernel + width, 0, 1))
        for kernel in (chain.transition, chain.reversed_kernel(2))
    )
    return chain.with_box(off.Box(*pairs))


def weekly(rng):
    kernels = 0.8 * rng.dirichlet(np.full(2, 3.0), size=(7, 2)) + 0.2 * np.eye(2)
    return PhasedChain("weekday", kernels, rng.dirichlet(np.full(2, 5.0), size=7)).rounded()


MODELS = {
    "two values": lambda rng: sticky(rng, 2, stay=0.8),
    "three values": lambda rng: sticky(rng, 3),
    "order 2": lambda rng: sticky(rng, 2, order=2, stay=0.3),
    "a set": lambda rng: widened(sticky(rng, 2)),
    "a set of three values": lambda rng: widened(sticky(rng, 3)),
    "a start of its own": lambda rng: off.MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.5, 0.5]),
    "an impossible transition": lambda rng: off.MarkovChain([[0.5, 0.5], [1.0, 0.0]]),
    "phases": weekly,
}


QUICK = ("two values", "three values", "a set")  #: to design for, by the best local mechanism


def random_table(rng, k, *, longest=30, chains=4, dates=False):
    """Chains with gaps, empty cells (private ones too) and private records."""
    rows = []
    for chain in range(chains):
        for place in range(int(rng.integers(1, longest + 1))):
            if rng.random() > 0.15:
                value = None if rng.random() < 0.1 else int(rng.integers(k))
                rows.append((chain, place, value, bool(rng.random() < 0.06)))
    rows.append((chains, 0, 0, True))
    schema = {"c": pl.Int64, "t": pl.Int64, "v": pl.Int64, "p": pl.Boolean}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    if dates:
        days = [MONDAY + dt.timedelta(days=place) for place in frame["t"]]
        frame = frame.with_columns(t=pl.Series(days))
    return frame


def summary(frame, model, mechanism, folder, **more):
    asked = dict(value="v", order="t", by="c", private="p", epsilon=1.0, accept_model=True) | more
    asked |= dict(model=model, mechanism=mechanism, dataset=mechanism, key_file=folder / "k.json")
    return off.redact(frame, **asked).summary


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(2))
def test_the_window_of_a_summary(name, seed, tmp_path):
    rng = np.random.default_rng(seed)
    model = MODELS[name](rng)
    frame = random_table(rng, model.k, dates=name == "phases")
    more = dict(
        step="1d" if name == "phases" else (None, 1)[seed],
        protect=("run", "each")[seed],
        epsilon=(0.4, 1.0)[seed],
    )
    window = summary(frame, model, "window", tmp_path, **more)
    assert window.window == window.released
    assert 0 < window.released < 1
    mechanism = "best-local" if name in QUICK else "3r-relaxed"
    assert summary(frame, model, mechanism, tmp_path, **more).window == window.released


def test_the_window_beside_the_owners_mechanism(tmp_path):
    rng = np.random.default_rng(4)
    frame, model = random_table(rng, 2), sticky(rng, 2)
    window = summary(frame, model, "window", tmp_path)
    assert summary(frame, model, "owner", tmp_path).window == window.released


def test_the_window_where_designs_share_a_grid_of_rooms(tmp_path, monkeypatch):
    """Designs are for rooms rounded up, windows for those that secrets have."""
    monkeypatch.setattr(FewDesigns, "most", 4)
    rng = np.random.default_rng(2)
    model = sticky(rng, 3)
    frame = random_table(rng, 3, chains=12)
    window = summary(frame, model, "window", tmp_path)
    shared = summary(frame, model, "best-local", tmp_path)
    assert shared.designs < window.designs
    assert shared.window == window.released
