"""Designs at scale: shared by rooms, stamped, kept in files that are not believed."""

import json

import numpy as np
import pytest

import offrecord as off
from offrecord.designs import library as designs
from offrecord.designs.library import Designs, Setting
from offrecord.designs.needs import SurroundingCounts, distinct
from offrecord.designs.sharing import designs_for
from offrecord.mechanisms.local.design import LocalDesign
from offrecord.mechanisms.local.stretches import Stretches
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.mechanisms.workshop import Workshop

BINARY = off.MarkovChain.binary(0.05, 0.3)
THREE = off.MarkovChain([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])


def needs(*places):
    rows = np.array([(*place, 0) for place in places])
    return SurroundingCounts.of(rows, np.ones(len(places), dtype=np.int64), {})


def made_for(model, epsilon, mechanism, protect, needed, **options):
    return designs_for(Setting(model, epsilon, mechanism, protect), needed, **options)


def loaded(file, model, epsilon, name, protect, key=None):
    setting = Setting(model, epsilon, off.mechanism_named(name), protect)
    return Designs.load(file, setting, key)


def whole(design, k):
    """The redaction of a design's own chain."""
    around = design.surrounding
    left, right = design.left.spelled_out, design.right.spelled_out
    matrix = np.zeros((around.left + around.length + around.right, k))
    matrix[around.left : around.left + around.length] = 1
    for d in range(1, around.left + 1):
        matrix[around.left - d] = left[d - 1] if d <= len(left) else float(design.left_rest)
    for d in range(1, around.right + 1):
        place = around.left + around.length + d - 1
        matrix[place] = right[d - 1] if d <= len(right) else float(design.right_rest)
    return matrix


@pytest.mark.parametrize("chain", [BINARY, THREE], ids=["two values", "three values"])
@pytest.mark.parametrize(
    "mechanism",
    [off.BestLocal(), off.BestWindow(), off.ThreeRegion("constant")],
    ids=lambda m: m.name,
)
def test_each_design_is_that_of_its_own_problem(chain, mechanism):
    made, which = made_for(
        chain, 1.0, mechanism, "run", needs((2, 3, 1), (0, 4, 1), (10**6, 10**6, 1), (5, 0, 4))
    )
    assert len(made.designs) == 4
    for index, (left, right, length) in enumerate(
        [(2, 3, 1), (0, 4, 1), (10**6, 10**6, 1), (5, 0, 4)]
    ):
        design = made.designs[which[index]]
        around = design.surrounding
        assert around.left in (left, max(made.grids[0]))
        assert around.right in (right, max(made.grids[1]))
        n = around.left + around.length + around.right
        problem = off.Problem(
            chain, n, range(around.left + 1, around.left + around.length + 1), 1.0
        )
        matrix = whole(design, chain.k)
        assert off.leakage(problem, matrix) == pytest.approx(design.leakage, abs=1e-12)
        assert design.leakage <= 1.0
        policy = off.design(problem, mechanism)
        assert np.array_equal(matrix, policy.redaction)
        window = off.design(problem, off.BestWindow()).redaction
        assert sum(design.window) + around.length == int(window[:, 0].sum())
        assert length == around.length or (
            length > 2 and around.length == 2
        )  # every transition is possible


def test_beyond_the_room_that_is_looked_at_a_design_ends():
    made, _ = made_for(BINARY, 1.0, off.BestLocal(), "run", needs((10**9, 10**9, 1)))
    design = made.designs[0]
    assert not design.left_rest
    assert not design.right_rest
    far = off.design(off.Problem(BINARY, 2001, [1001], 1.0))
    left, right = design.left.spelled_out, design.right.spelled_out
    assert np.allclose(far.rows(1001 - len(left), 1000)[::-1], left, atol=1e-9)
    assert far.redaction.sum() == pytest.approx(left.sum() + right.sum() + 2, abs=1e-6)


def test_a_chain_that_never_forgets_is_redacted_to_its_end():
    frozen = off.MarkovChain([[1.0, 0.0], [0.0, 1.0]], start=[0.5, 0.5])
    made, _ = made_for(frozen, 1.0, off.BestLocal(), "run", needs((100, 300, 1)))
    assert made.designs[0].left_rest
    assert made.designs[0].right_rest


def test_runs_longer_than_one_differ_only_where_ends_exclude_each_other():
    flip = off.MarkovChain([[0.0, 1.0], [0.5, 0.5]])
    made, _ = made_for(
        flip, 1.0, off.BestWindow(), "run", needs(*((3, 3, length) for length in range(1, 9)))
    )
    assert {design.surrounding.length for design in made.designs} == {1, 2, 3}


def test_many_rooms_are_rounded_up_and_the_loss_is_told(monkeypatch):
    monkeypatch.setattr(Workshop, "most", 12)
    rooms = [(left, right, 1) for left in range(9) for right in range(9)]
    made, which = made_for(BINARY, 1.0, off.BestLocal(), "run", needs(*rooms))
    assert len(made.designs) <= 12
    own = [
        off.design(off.Problem(BINARY, left + 1 + right, [left + 1], 1.0))
        for left, right, _ in rooms
        if left + right
    ]
    lost = 0.0
    masses = BINARY.marginal(1)
    for (left, right, _), index in zip(rooms, which, strict=True):
        around = made.designs[index].surrounding
        assert around.left >= left
        assert around.right >= right
        lost += made.designs[index].cost(masses, left, right)
    lost -= sum((1 - policy.utility) * policy.problem.n - 1 for policy in own)
    assert lost > 0
    assert made.loss * len(rooms) >= 0.5 * lost  # an estimate from the most frequent of them


def test_sides_designed_apart_keep_within_epsilon_and_beat_the_window():
    rng = np.random.default_rng(2)
    chain = off.MarkovChain(rng.dirichlet(np.ones(12), 12) * 0.4 + np.eye(12) * 0.6)
    made, _ = made_for(
        chain, 1.0, off.BestLocal(), "run", needs((40, 40, 1), (2, 40, 1), (40, 40, 3), (0, 9, 1))
    )
    masses = chain.marginal(1)
    for design in made.designs:
        around = design.surrounding
        n = around.left + around.length + around.right
        problem = off.Problem(
            chain, n, range(around.left + 1, around.left + around.length + 1), 1.0
        )
        assert off.leakage(problem, whole(design, 12)) <= 1.0
        assert design.cost(masses, around.left, around.right) <= sum(design.window) + 1e-9


def test_what_does_not_pass_redacts_everything_and_keeps_its_identity():
    """A lone record of a chain of order 2 has two more to be told apart from: releasing them tells.

    Ledgers of earlier releases know such a design by these bytes.
    """
    chain = off.MarkovChain([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], order=2)
    around = Surrounding(0, 0, 1)
    problem = around.problem(chain, 0.1, "run")
    open_sides = Stretches.always(2, 0), Stretches.always(2, 0)
    assert off.leakage(problem, np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])) > 0.1
    design = LocalDesign.refereed(problem, around, open_sides, (0, 2))
    np.testing.assert_array_equal(design.right.spelled_out, np.ones((2, 2)))
    assert (design.left.size, design.leakage, design.window) == (0, 0.0, (0, 2))
    shape = repr((0, 0, 1, "", 0, 2, True, True)).encode()
    assert design.identity == shape + np.ones((2, 2)).tobytes()


def test_a_file_is_reused_and_never_believed(tmp_path):
    file, key = tmp_path / "designs.json", bytes(32)
    made, _ = made_for(BINARY, 1.0, off.BestLocal(), "run", needs((5, 5, 1), (0, 7, 2)))
    made.save(file, key)
    again = loaded(file, BINARY, 1.0, "best-local", "run", key)
    assert again.sealed
    assert again.digest == made.digest
    content = json.loads(file.read_text())
    content["designs"][0]["leakage"] = 0.0
    file.write_text(json.dumps(content))
    for given in (key, bytes(31) + b"x", None):
        read = loaded(file, BINARY, 1.0, "best-local", "run", given)
        assert not read.sealed
        assert (read.designs, read.grids, read.loss) == ((), None, 0.0)
        same, _ = made_for(
            BINARY, 1.0, off.BestLocal(), "run", needs((5, 5, 1), (0, 7, 2)), known=read
        )
        assert same.to_dict() == made.to_dict()
        assert same.refused == 0
    content["sides"] = [[] for _ in content["sides"]]  # releases everything
    file.write_text(json.dumps(content))
    read = loaded(file, BINARY, 1.0, "best-local", "run", key)
    anew, _ = made_for(BINARY, 1.0, off.BestLocal(), "run", needs((5, 5, 1), (0, 7, 2)), known=read)
    assert anew.to_dict() == made.to_dict()
    assert anew.refused == 2
    more, which = made_for(
        BINARY, 1.0, off.BestLocal(), "run", needs((5, 5, 1), (3, 3, 1)), known=made
    )
    assert [d.surrounding for d in more.designs] == [Surrounding(3, 3, 1), Surrounding(5, 5, 1)]
    assert more.designs[which[0]] is next(
        d for d in made.designs if d.surrounding == Surrounding(5, 5, 1)
    )


def test_a_file_that_is_not_sealed_is_judged_only_where_it_is_needed(tmp_path, monkeypatch):
    file, asked, judged = tmp_path / "designs.json", [], LocalDesign.judged
    chain = off.MarkovChain([[0.9, 0.1], [0.3, 0.7]], start=[1.0, 0.0])
    for model in (THREE, chain):
        made, _ = made_for(
            model, 1.0, off.BestWindow(), "run", needs((1, 2, 1), (2, 3, 1), (4, 0, 2))
        )
        made.save(file)
        read = loaded(file, model, 1.0, "window", "run")
        monkeypatch.setattr(
            LocalDesign,
            "judged",
            lambda self, *given: asked.append(self.surrounding) or judged(self, *given),
        )
        some, _ = made_for(
            model, 1.0, off.BestWindow(), "run", needs((2, 3, 1), (3, 3, 1)), known=read
        )
        assert asked == [Surrounding(2, 3, 1)]
        assert [design.surrounding for design in some.merged(read).designs] == [
            Surrounding(2, 3, 1),
            Surrounding(3, 3, 1),
        ]
        asked.clear()
        monkeypatch.undo()


def sealed_anew(content, key):
    """A file as its owner could write it."""
    content.pop("seal", None)
    return {**content, "seal": designs._seal(content, key)}


@pytest.mark.parametrize(
    ("path", "new"),
    [
        (["designs", 0, "left"], 2),  # fewer records than the design has rows
        (["designs", 0, "right"], 2),
        (["designs", 0, "left"], 5.0),
        (["designs", 0, "length"], 0),
        (["designs", 0, "length"], True),
        (["designs", 0, "context"], None),
        (["designs", 0, "redaction_left"], -1),
        (["designs", 0, "redaction_left"], True),
        (["designs", 0, "left_rest"], 0),
        (["designs", 0, "leakage"], 1.1),
        (["designs", 0, "leakage"], -1.0),
        (["designs", 0, "rounding"], "0"),
        (["designs", 0, "window"], [1, 2, 3]),
        (["designs", 0, "window"], [-1, 2]),
        (["designs", 0, "left"], 10**16),
        (["sides", 0], [[10**7, [1.0, 1.0]]] * 2000),
        (["sides", 0], [[1, [True, 1.0]]]),
        (["sides", 0], [[1, ["1", 1.0]]]),
        (["sides", 0], [[1, [1.0, 1.0, 1.0]]]),
        (["sides", 0], [[0, [1.0, 1.0]]]),
        (["sides", 0], {"1": [1.0, 1.0]}),
        (["grids"], [[0], [0]]),
        (["grids"], [[0, 9], [0, 8]]),
        (["grids"], [[0, 9, 9], [0, 9]]),
        (["grids"], [[0, 9.0], [0, 9]]),
        (["grids"], [[0, 9], [0, 9], [0, 9]]),
        (["loss"], -1),
        (["loss"], True),
        (["epsilon"], True),
        (["epsilon"], [1.0] * 1000),
        (["model"], [[[]]]),
        (["version"], [1] * 1000),
    ],
    ids=str,
)
def test_a_sealed_file_is_checked_for_its_form(tmp_path, path, new):
    file, key = tmp_path / "designs.json", bytes(32)
    made, _ = made_for(BINARY, 1.0, off.BestLocal(), "run", needs((20, 20, 1)))
    content = json.loads(json.dumps(made.to_dict()))
    place = content
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = new
    file.write_text(json.dumps(sealed_anew(content, key)))
    with pytest.raises(off.InputError) as caught:
        loaded(file, BINARY, 1.0, "best-local", "run", key)
    assert str(caught.value).startswith(f"{file}: ")
    assert len(str(caught.value)) < len(str(file)) + 200
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seal", [None, 5, "", "é", "\ud800", "0" * 64, ["x"]])
def test_a_seal_that_is_none_makes_a_file_of_candidates(tmp_path, seal):
    file = tmp_path / "designs.json"
    made, _ = made_for(BINARY, 1.0, off.BestLocal(), "run", needs((2, 3, 1)))
    file.write_text(json.dumps({**made.to_dict(), "seal": seal}))
    read = loaded(file, BINARY, 1.0, "best-local", "run", bytes(32))
    assert not read.sealed
    assert list(read.candidates) == [Surrounding(2, 3, 1)]


def test_a_seal_of_another_version_or_key_does_not_count(tmp_path, monkeypatch):
    file, key = tmp_path / "designs.json", bytes(32)
    made, _ = made_for(BINARY, 1.0, off.BestLocal(), "run", needs((2, 3, 1)))
    made.save(file, key)
    assert loaded(file, BINARY, 1.0, "best-local", "run", key).sealed
    assert not loaded(file, BINARY, 1.0, "best-local", "run", bytes(31) + b"x").sealed
    monkeypatch.setattr(designs, "version", lambda _: "0.0.1")
    assert not loaded(file, BINARY, 1.0, "best-local", "run", key).sealed


def test_a_surrounding_that_comes_twice_and_deep_nesting_are_refused(tmp_path):
    file = tmp_path / "designs.json"
    made, _ = made_for(BINARY, 1.0, off.BestLocal(), "run", needs((2, 3, 1)))
    text = json.dumps(made.to_dict())
    content = json.loads(text)
    content["designs"] *= 2
    deep = {
        f'"{name}": {"[" * depth}{"]" * depth}, '
        for name in ("loss", "seal", "more")
        for depth in (500, 5000, 10**6)
    }
    for damaged in (
        json.dumps(content),
        *("{" + part + text[1:].replace('"loss": 0.0, ', "") for part in deep),
    ):
        file.write_text(damaged)
        try:
            read = loaded(file, BINARY, 1.0, "best-local", "run", bytes(32))
        except off.InputError as error:
            refused = str(error)
            assert "\n" not in refused
        else:
            assert '"loss": [' not in damaged
            assert len(read.candidates) == 1


def test_rows_that_a_table_does_not_need_are_never_spelled_out(tmp_path):
    file = tmp_path / "designs.json"
    made, _ = made_for(BINARY, 1.0, off.BestLocal(), "run", needs((2, 3, 1), (1, 1, 1)))
    content = json.loads(json.dumps(made.to_dict()))
    content["sides"] = [
        [[10**7, [1.0, 0.0]], [10**7, [1.0, 1.0]]] * 10_000 for _ in content["sides"]
    ]  # 3 TB
    content["designs"][0] |= {"left": 10**12, "right": 10**12}
    file.write_text(json.dumps(content))
    read = loaded(file, BINARY, 1.0, "best-local", "run")
    anew, _ = made_for(BINARY, 1.0, off.BestLocal(), "run", needs((2, 3, 1), (1, 1, 1)), known=read)
    assert anew.to_dict() == made.to_dict()
    assert anew.refused == 1


def test_a_model_that_is_not_stationary_gets_a_design_for_each_place():
    chain = off.MarkovChain([[0.9, 0.1], [0.3, 0.7]], start=[1.0, 0.0])
    made, which = made_for(
        chain, 1.0, off.BestWindow(), "run", needs((0, 9, 1), (1, 8, 1), (5, 4, 1), (5, 4, 1))
    )
    assert len(made.designs) == 3
    assert which[2] == which[3]
    for design in made.designs:
        problem = off.Problem(chain, 10, [design.surrounding.left + 1], 1.0)
        assert off.leakage(problem, whole(design, 2)) <= 1.0
    with pytest.raises(off.InputError, match=r"not stationary.*--design-minutes"):
        made_for(
            chain,
            1.0,
            off.BestWindow(),
            "run",
            needs(*((left, 40, 1) for left in range(1, 30))),
            max_minutes=0.0,
        )


def test_distinct_rows_however_large_their_numbers():
    rng = np.random.default_rng(0)
    for high in (4, 10**7):
        columns = rng.integers(0, high, (3, 500))
        rows, used, counts = distinct(*columns)
        expected, times = np.unique(columns.T, axis=0, return_counts=True)
        assert np.array_equal(rows, expected)
        assert np.array_equal(counts, times)
        assert np.array_equal(rows[used], columns.T)
