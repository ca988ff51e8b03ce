"""Posterior: borrowing, moments of draws, one more unit, places, files, and what it refuses."""

import numpy as np
import pytest

from offrecord.errors import InputError
from offrecord.models.evidence import Verdict
from offrecord.models.file import FORMAT, VERSION, Model, Origin, load_model
from offrecord.models.members import Places
from offrecord.models.posterior import LEAST, Posterior, never_followed

RAIN = np.array([[3813, 77], [37, 59], [76, 19], [58, 204]])


def test_rows_have_the_moments_of_their_dirichlet_laws():
    counts = np.array([[7, 2, 0], [0, 30, 1], [4, 4, 40]])
    shape = counts + 1 / 3
    mean = shape / shape.sum(axis=1, keepdims=True)
    spread = np.sqrt(mean * (1 - mean) / (shape.sum(axis=1, keepdims=True) + 1))
    rows = Posterior(counts, 1).members(20_000, 1).rows[:, 0]
    assert np.abs(rows.mean(axis=0) - mean).max() < 5 * spread.max() / np.sqrt(20_000)
    assert rows.std(axis=0) == pytest.approx(spread, rel=0.1)
    assert Posterior(counts, 1).mean.rows[0, 0] == pytest.approx(mean)


def test_one_more_unit_varies_around_the_rows_by_its_concentration():
    """Variance of a row drawn around a row: E[p(1 − p)]/(κ + 1) more than that of the row."""
    kappa, counts = 8.0, np.array([[5000, 2500], [4000, 6000]])
    rows = Posterior(counts, 1, kappa=kappa).members(20_000, 2).rows[:, 0, :, 0]
    mean = np.array([2 / 3, 0.4])
    assert rows.var(axis=0) == pytest.approx(mean * (1 - mean) / (kappa + 1), rel=0.05)


def test_small_shapes_leave_no_zero_and_no_nan():
    rows = Posterior([[10**6, 0], [0, 1]], 1, kappa=0.5).members(5_000, 3).rows
    assert np.isfinite(rows).all()
    assert rows.min() > 0.9 * LEAST
    assert rows.sum(axis=-1) == pytest.approx(1)


def test_contexts_hardly_seen_take_the_row_of_their_longest_suffix_seen_often():
    counts = np.zeros((8, 2), dtype=int)
    counts[0], counts[1], counts[2], counts[4] = (900, 30), (20, 10), (3, 1), (30, 30)
    counts[3], counts[5], counts[6], counts[7] = (40, 60), (2, 2), (5, 5), (10, 40)
    posterior = Posterior(counts, 3)
    assert posterior.borrowed.tolist() == [2, 5]
    rows = posterior.mean.rows[0, 0]
    # 010: suffix 10 was seen 14 times, suffix 0 often; 101: suffix 01 34 times, suffix 1 often
    even, odd = counts[::2].sum(axis=0) + 0.5, counts[1::2].sum(axis=0) + 0.5
    assert rows[2] == pytest.approx(even / even.sum())
    assert rows[5] == pytest.approx(odd / odd.sum())
    counts[1] = (40, 10)
    longer = Posterior(counts, 3).mean.rows[0, 0, 5]
    both = counts[1] + counts[5] + 0.5
    assert longer == pytest.approx(both / both.sum())


def test_borrowers_share_one_draw_unless_units_vary():
    counts = np.zeros((4, 2), dtype=int)
    counts[0], counts[2], counts[1] = (400, 100), (1, 0), (60, 50)
    rows = Posterior(counts, 2).members(50, 1).rows[:, 0]
    assert not np.array_equal(rows[:, 0], rows[:, 2])  # the suffix is not the other context
    counts = np.zeros((8, 2), dtype=int)  # 010 and 110 take the row of 0
    counts[0], counts[2], counts[6] = (60, 50), (1, 0), (0, 1)
    same = Posterior(counts, 3).members(50, 1).rows[:, 0]
    assert np.array_equal(same[:, 2], same[:, 6])
    apart = Posterior(counts, 3, kappa=4).members(50, 1).rows[:, 0]
    assert not np.array_equal(apart[:, 2], apart[:, 6])


def test_no_context_takes_the_row_of_all_records():
    """It knows no memory, so the promise would not cover chains that have one."""
    rain = Posterior([[133, 2], [1, 3], [3, 0], [3, 5]], 2)
    assert rain.borrowed.tolist() == [2]  # 01 keeps its own row


def test_draws_depend_on_the_seed_alone():
    posterior = Posterior(RAIN, 2)
    one = posterior.members(10, b"seed").rows
    assert np.array_equal(one, Posterior(RAIN, 2).members(10, b"seed").rows)
    assert not np.array_equal(one, posterior.members(10, b"other").rows)
    assert posterior.seed(1.0, "design") != posterior.seed(1.0, "validate-0")
    assert posterior.seed(1.0, "design") == Posterior(RAIN, 2).seed(1.0, "design")
    chain = posterior.draw(10, b"seed")[3]
    assert chain.transition.reshape(4, 2) == pytest.approx(one[3, 0])


def panel(coverage=0.99):
    place_counts = np.random.default_rng(1).integers(0, 9, (6, 4, 2))
    return Posterior(
        place_counts.sum(axis=0),
        2,
        ["dry", "wet"],
        coverage,
        kappa=16,
        places=Places("step", 6),
        place_counts=place_counts,
        place_kappa=4,
        first_counts=[3, 0, 2, 9],
    )


def test_rows_of_places_lie_between_their_counts_and_the_pooled_rows():
    posterior = panel()
    pooled = Posterior(posterior.counts, 2).mean.rows[0, 0]
    counts = posterior.place_counts[2]
    expected = (4 * pooled + counts) / (4 + counts.sum(axis=1, keepdims=True))
    assert posterior.mean.rows[0, 2] == pytest.approx(expected)
    assert posterior.mean.law(1)[0] == pytest.approx(np.array([3.25, 0.25, 2.25, 9.25]) / 15)
    members = posterior.members(4_000, 5)
    assert members.rows[:, 2].mean(axis=0) == pytest.approx(expected, abs=0.02)
    assert members.law(5).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("posterior", [Posterior(RAIN, 2, kappa=32.0), panel(0.95)])
def test_files_keep_everything_that_draws_depend_on(posterior, tmp_path):
    origin = Origin(column="rain", order="time", step="1h", records=4353, lone_cells=2)
    verdict = Verdict(epsilon=1.0, verdict="holds", promised=2.718, counted=1.5, cases=[9, 7])
    Model(posterior, origin, (verdict,)).save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert (again.origin, again.verdicts) == (origin, (verdict,))
    assert again.promise.to_dict() == posterior.to_dict()
    assert np.array_equal(again.promise.members(9, 1).rows, posterior.members(9, 1).rows)
    assert again.verdict(2.0) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": [[1, 2], [3, -4]]}, "must be from 0"),
        ({"counts": [[1, 2], [3, 4.5]]}, "valid integer"),
        ({"counts": [[0, 0], [0, 0]]}, "must not all be 0"),
        ({"counts": [[1, 2, 3], [3, 4, 5]]}, r"k\*\*1 rows of k"),
        ({"counts": [[1, 2], [3]]}, "rows of equal length"),
        ({"labels": ["a"]}, "labels must name 2 values"),
        ({"coverage": 0.5}, "coverage must be 0.99 or 0.95"),
        ({"kappa": 0}, "kappa must be a number from 0.01 to 1e9"),
        ({"kappa": float("inf")}, "finite number"),
        ({"prior": "1"}, "prior"),
        ({"place_kappa": 3.0}, "need places"),
        ({"places": {"kind": "hour", "count": 24, "zone": None}}, "places need place_counts"),
        ({"places": {"kind": "hour", "count": 23, "zone": None}}, "places of kind hour are 24"),
        ({"kind": "box"}, "does not match any of the expected tags"),
        ({"more": 1}, "Extra inputs"),
    ],
)
def test_what_cannot_be_a_posterior_is_refused_in_one_line(change, message):
    content = Posterior([[1, 2], [3, 4]], 1).to_dict() | change
    with pytest.raises(InputError, match=message) as caught:
        Model.from_dict({"format": FORMAT, "version": VERSION, "model": content})
    assert "\n" not in str(caught.value)


def test_values_that_nothing_follows_are_told():
    ending = Posterior([[40, 20, 5], [20, 40, 5], [0, 0, 0]], 1, labels=["a", "b", "end"])
    assert never_followed(ending)[0].startswith("nothing was counted after 'end', so")
    assert never_followed(Posterior([[5, 0, 0], [0, 0, 0], [0, 0, 0]], 1)) == []
    assert never_followed(Posterior(RAIN, 2)) == []
