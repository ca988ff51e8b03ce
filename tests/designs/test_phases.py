"""Designs for models with phases: shared by the phases around a secret, private in the whole chain,
and kept in files.
"""

import datetime as dt
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.designs.library import Designs
from offrecord.errors import InputError
from offrecord.mechanisms.local.stretches import Stretches
from offrecord.models.phased import PhasedChain
from offrecord.theory.room import CUT, _diameter, cut_room

MONDAY = dt.date(2024, 1, 1)


def weekly(rng, k=2, stay=0.4):
    """A chain by weekday that forgets within a few weeks."""
    kernels = (1 - stay) * rng.dirichlet(np.full(k, 3.0), size=(7, k)) + stay * np.eye(k)
    starts = rng.dirichlet(np.full(k, 5.0), size=7)
    return PhasedChain("weekday", kernels, starts).rounded()


def days(n, private, k=2):
    return pl.DataFrame(
        {
            "day": [MONDAY + dt.timedelta(days=at) for at in range(n)],
            "v": [at % k for at in range(n)],
            "p": [at + 1 in private for at in range(n)],
        }
    )


def asked(model, tmp_path, **more):
    given = dict(value="v", order="day", single_chain=True, private="p", model=model, epsilon=1.0)
    given |= dict(dataset="days", dry_run=True, accept_model=True, key_file=tmp_path / "key")
    return given | more


@pytest.mark.parametrize("mechanism", ["window", "3r-constant", "best-local"])
@pytest.mark.parametrize("seed", range(3))
def test_a_shared_design_is_private_in_the_whole_chain(mechanism, seed, tmp_path):
    rng = np.random.default_rng(seed)
    model, n = weekly(rng, k=2 + seed % 2, stay=0.2), 160
    cut = cut_room(model, 1.0)
    private = sorted({3, 30, 60, 67, 74, 95, 98, 130, 158})
    release = off.redact(days(n, private, model.k), **asked(model, tmp_path, mechanism=mechanism))
    rule = release.explain().select(pl.col("^Pr.*$")).to_numpy()
    chain = model.along(np.arange(n) % 7)
    for record in private:
        # the definition, in the chain as it is: its own start, all its records
        told = off.leakage(off.Problem(chain, n, [record], 1.0), rule)
        assert told <= 1.0 + 1e-9
    far = [t for t in private if t - 1 >= cut and n - t >= cut]
    near = len(private) - len(far)
    assert len(far) >= 3
    assert release.summary.designs <= near + len({t % 7 for t in far})


def test_an_owners_design_is_private_in_the_whole_chain(tmp_path):
    model, n = weekly(np.random.default_rng(5), stay=0.2), 160
    private = [60, 67, 98]
    release = off.redact(days(n, private), **asked(model, tmp_path, mechanism="owner"))
    chain = model.along(np.arange(n) % 7)
    designs = release._outcome.plan.designs.designs
    assert len(designs) == 2  # 60 and 67 are the same weekday
    by_day = {design.surrounding.phases[design.surrounding.left]: design for design in designs}
    for record in private:
        design = by_day[(record - 1) % 7]
        told = design.leakage_under(off.Problem(chain, n, [record], 1.0))
        assert told <= design.leakage + design.rounding <= 1.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.floats(0.0, 0.8), st.floats(0.05, 5.0))
def test_how_far_the_beginning_of_a_chain_matters(seed, k, stay, epsilon):
    rng = np.random.default_rng(seed)
    model = weekly(rng, k, stay)
    room = cut_room(model, epsilon)
    if room is None:
        assert np.any(model.transition == 0) or stay > 0
        return
    phases = rng.integers(0, 7, room)  # in any order
    product = np.eye(k)
    for phase in phases:
        product = product @ model.transition[phase]
    one, other = (np.log(row @ product) for row in rng.dirichlet(np.ones(k), size=2))
    told = np.ptp(one - other)
    assert told <= _diameter(product, product) + 1e-12
    assert _diameter(product, product) <= CUT * epsilon + 1e-12


def test_a_chain_that_may_never_forget_is_not_cut(tmp_path):
    kernels = np.stack(
        [np.array([[1.0, 0.0], [0.3, 0.7]]), *[np.array([[0.9, 0.1], [0.3, 0.7]])] * 6]
    )
    model = PhasedChain("weekday", kernels, np.full((7, 2), 0.5))
    assert cut_room(model, 1.0) is None
    private = [60, 67, 74]
    release = off.redact(days(160, private), **asked(model, tmp_path, mechanism="window"))
    assert release.summary.designs == 3  # each place has its own


@pytest.mark.parametrize("mechanism", ["window", "best-local", "owner"])
def test_they_are_kept_in_a_file(mechanism, tmp_path, monkeypatch):
    model, n = weekly(np.random.default_rng(5), stay=0.5), 160
    file = tmp_path / "designs.json"
    given = asked(model, tmp_path, mechanism=mechanism, designs=file, dry_run=False, step="1d")
    private = [3, 60, 67, 98, n]  # the last one ends its chain
    first = off.redact(days(n, private), **given)
    content = json.loads(file.read_text())
    assert all(len(one["phases"]) == 1 for one in content["designs"])  # the days of a week, in turn

    def made_anew(self, problem, surrounding):
        raise AssertionError("a design that is known was made again")

    kind = type(first._outcome.plan.designs.setting.mechanism)
    monkeypatch.setattr(kind, "around", made_anew)
    again = off.redact(days(n, private), **given)
    assert again.certificate["designs"] == first.certificate["designs"]
    assert again.frame.equals(first.frame)
    # under another key they are only candidates, which this table judges
    other = off.redact(days(n, private), **(given | {"key_file": tmp_path / "another"}))
    assert other.certificate["designs"]["designs"] == first.certificate["designs"]["designs"]


def test_a_file_that_lies_about_phases(tmp_path):
    model, n = weekly(np.random.default_rng(5), stay=0.2), 160
    file = tmp_path / "designs.json"
    given = asked(model, tmp_path, mechanism="window", designs=file, dry_run=False)
    first = off.redact(days(n, [60]), **given)
    setting = first._outcome.plan.designs.setting
    whole = json.loads(file.read_text())
    for runs in ([[0, 1, 5]], [[0, 1, 10**12]], [[0, 1]], [["0", 1, 5]], "0123", [[3, 2, 134]]):
        content = json.loads(file.read_text())
        content["designs"][0]["phases"] = runs
        (tmp_path / "lies.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match="damaged"):
            Designs.load(tmp_path / "lies.json", setting, None)
    content = whole | {"designs": [{**whole["designs"][0], "phases": None}]}
    (tmp_path / "older.json").write_text(json.dumps(content))
    assert not Designs.load(tmp_path / "older.json", setting, None).candidates


def test_a_design_that_fills_the_cut_room_is_refused(tmp_path):
    """How likely nothing is released depends on where the chain began."""

    class Hesitant(off.BestWindow):
        name = "hesitant"

        def sides(self, problem, secret, left, right):
            return tuple(
                Stretches.of(np.tile([1.0, 0.5], (side.room, 1)))
                if side is left
                else Stretches.always(2, side.room)
                for side in (left, right)
            )

    model = weekly(np.random.default_rng(5), stay=0.2)
    with pytest.raises(InputError, match="does not end within the"):
        off.redact(days(160, [60]), **asked(model, tmp_path, mechanism=Hesitant(), epsilon=3.0))
