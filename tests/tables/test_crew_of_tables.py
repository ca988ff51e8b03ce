"""A table is released alike whoever makes its designs: the same certificate, the same rows."""

import pickle
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord import charts
from offrecord.designs.sharing import _worked
from offrecord.mechanisms.best_local.few_designs import FewDesigns
from offrecord.mechanisms.best_local.sides_apart import SidesApart
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.processes import crew
from offrecord.text import unwatched

FAST = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]])
SLOW = np.array([[0.85, 0.1, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]])
RAIN = [[0.9, 0.1], [0.3, 0.7]]
HOURS = np.stack([[[1 - a, a], [0.4, 0.6]] for a in np.linspace(0.2, 0.4, 24)])


def around(kernel, by):
    return off.MarkovChain(kernel, box=off.Box(*[(kernel - by, kernel + by)] * 2))


MODELS = {
    "two values in a set": off.MarkovChain(RAIN, box=off.Box.binary((0.09, 0.11), (0.27, 0.33))),
    "two values": off.MarkovChain(RAIN),
    "three values in a set": around(FAST, 0.03),
    "three values": off.MarkovChain(FAST),
    "hours": off.PhasedChain("hour", HOURS, np.tile([0.6, 0.4], (24, 1)), zone="UTC"),
    "a start": off.MarkovChain(RAIN, start=[1.0, 0.0]),
}


@pytest.fixture
def others(monkeypatch):
    """Helpers who do all that can be shared; how many works they did."""
    works = []

    def found(shift, number):
        works.append(shift.works[number])
        [what] = shift.futures[number].result(timeout=300)
        return what

    alone = crew._Shift.found
    monkeypatch.setattr(crew, "_PATIENCE", 0.0)
    monkeypatch.setattr(
        crew._Shift, "found", lambda *asked: (found if len(asked[0].works) > 1 else alone)(*asked)
    )
    crew.hire(2)
    yield works
    crew.dismiss()


def table(k):
    rng = np.random.default_rng(4)
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    rows = [
        {"id": name, "time": noon + timedelta(hours=t), "v": int(rng.integers(k)), "p": False}
        for name in range(3)
        for t in range(30)
    ]
    for private in (3, 12, 15, 44, 70, 72):
        rows[private]["p"] = True
    return pl.DataFrame(rows)


def released(model, mechanism, folder):
    return off.redact(
        table(model.k),
        by="id",
        order="time",
        step="1h",
        value="v",
        private="p",
        model=model,
        mechanism=mechanism,
        epsilon=1.0,
        dataset="crew",
        accept_model=True,
        key_file=folder / "key.json",
    )


@pytest.mark.filterwarnings("ignore::offrecord.OffrecordWarning")
@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        ("two values in a set", "owner"),
        ("two values", "owner"),
        ("three values", "owner"),
        ("hours", "owner"),
        ("a start", "owner"),
        ("two values", "best-local"),
        ("three values", "best-local"),
        ("three values in a set", "best-local"),
        ("hours", "window"),
    ],
)
def test_tables_are_released_alike(name, mechanism, tmp_path, request):
    here = released(MODELS[name], mechanism, tmp_path)
    works = request.getfixturevalue("others")
    there = released(MODELS[name], mechanism, tmp_path)
    assert works
    for work in works:  # neither rows nor keys are anything that others need
        assert b"polars" not in pickle.dumps(work)
        assert b"offrecord.release.keys" not in pickle.dumps(work)
        assert b"offrecord.tables" not in pickle.dumps(work)
    assert there.frame.equals(here.frame)
    assert there.certificate == here.certificate


@pytest.mark.parametrize(
    "shop",
    [
        lambda: SidesApart(off.BestLocal(), off.MarkovChain(SLOW), 1.0, "run", 12),
        lambda: FewDesigns(off.BestLocal(), around(SLOW, 0.02), 1.0, "run", 14),
    ],
    ids=["sides apart", "few designs"],
)
def test_workshops_make_the_same_designs(shop, others):
    wanted = [Surrounding(*rooms, 1) for rooms in [(3, 12), (12, 12), (12, 4), (0, 12)]]
    alone, shared = shop(), shop()
    designs = [alone.around(one) for one in wanted]
    _worked(shared, shared.tasks(wanted), unwatched)
    assert others
    for one, design in zip(wanted, designs, strict=True):
        assert shared.around(one).identity == design.identity


def test_pages_are_alike_wherever_their_pictures_are_drawn(tmp_path):
    release = released(MODELS["two values"], "window", tmp_path)
    here = off.report(release).html
    drawn = []
    crew.hire(2)
    try:
        crew.prepare((charts.start, ()))
        helper = crew._crew[0]
        done = helper.done
        helper.done = lambda work: drawn.append((work, done(work))) or drawn[-1][1]
        there = off.report(release).html
    finally:
        crew.dismiss()
    assert there == here
    pictures = [work for work, _ in drawn if work[0] is charts.svg_of]
    assert len(pictures) == here.count("<figure")
    assert all(found is not None for _, found in drawn)
    for work in pictures:
        assert b"polars" not in pickle.dumps(work)
