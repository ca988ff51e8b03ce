"""Designs from elsewhere release nothing more, whatever their file says."""

import copy
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.designs import sharing
from offrecord.designs.library import Designs, Setting
from offrecord.mechanisms import workshop
from offrecord.mechanisms.best_local import mechanism, sides_apart
from offrecord.mechanisms.best_local.few_designs import FewDesigns
from offrecord.release.keys import Key
from small_tables import check_table, dry, keep_designs, tables


def one_chain(n, private):
    frame = pl.DataFrame({"chain": [0] * n, "t": range(n), "v": [0] * n})
    return frame, pl.DataFrame({"chain": [0] * len(private), "t": private})


def written(content, file):
    """A designs file without its seal; infinities as numbers too large for a float."""
    content.pop("seal", None)
    file.write_text(json.dumps(content).replace("Infinity", "1e999"))


def check_honest(file, key, chain, epsilon, protect):
    """What was sealed is what its owner computed: grids of this chain, and for each surrounding the
    leakage it has there.
    """
    kept = Designs.load(file, Setting(chain, epsilon, off.BestLocal(), protect), key)
    assert kept.sealed
    if kept.grids is not None:
        cap = sharing.room_limits(chain, epsilon)[0]
        assert {grid[-1] for grid in kept.grids} == {cap}
    for design in kept.designs:
        problem = design.surrounding.problem(chain, epsilon, protect)
        first, last = problem.private[0] - 1, problem.private[-1]
        matrix = np.ones((problem.n, chain.k))
        if design.inside is not None:  # a cluster of near secrets
            matrix[first:last] = design.inside.spelled_out
        left, right = design.left.spelled_out, design.right.spelled_out
        assert len(left) <= first
        assert len(right) <= problem.n - last
        for rows, rest, side in (
            (left, design.left_rest, matrix[:first][::-1]),
            (right, design.right_rest, matrix[last:]),
        ):
            side[:] = float(rest)
            side[: len(rows)] = rows
            assert (
                rest or len(side) == 0 or not side[-1].any()
            )  # it ends, or redacts whatever lies beyond
        assert off.leakage(problem, matrix) == design.leakage <= epsilon
    return kept


#: Grid, rooms and rows of designs that claim to leak nothing, or little; where a room of 3 is taken
#: to be all that matters.
LIES = {
    "no room at all": (
        [0],
        (0, 0),
        [[1, [1.0, 1.0]]],
    ),  # to the left nothing, to the right all of a second record
    "no room but one record": ([0, 1], (1, 1), [[1, [1.0, 1.0]]]),
    "rows beyond the room": ([0, 1], (1, 1), [[1, [1.0, 1.0]], [1, [0.0, 0.0]], [1, [1.0, 1.0]]]),
    "rows beyond the true room": (
        [0, 1, 2, 3],
        (3, 3),
        [[3, [1.0, 1.0]], [1, [0.0, 0.0]], [1, [1.0, 1.0]]],
    ),
    "rows that release": ([0, 1, 2, 3], (3, 3), [[1, [0.5, 0.5]]]),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_designs_file_that_lies_about_rooms_releases_nothing_more(lie, tmp_path, monkeypatch):
    monkeypatch.setattr(sharing, "_cap", lambda *_: 3)
    chain, epsilon = off.MarkovChain.binary(0.02, 0.1), 1.0
    frame, keys = one_chain(10, [4])
    key = Key.new(tmp_path / "key.json")
    file = tmp_path / "designs.json"
    keep_designs(chain, frame, keys, epsilon, designs=file, key_file=key.file)
    content = json.loads(file.read_text())
    grid, rooms, side = LIES[lie]
    content["grids"] = [grid, grid]
    content["sides"] = [[], side]
    lied = {
        "left": rooms[0],
        "right": rooms[1],
        "redaction_left": int(rooms[0] > 0),
        "redaction_right": 1,
        "leakage": 0.0,
    }
    content["designs"] = [content["designs"][0] | lied | {"left_rest": False, "right_rest": False}]
    written(content, file)
    release = check_table(
        chain, frame, keys, epsilon, "run", "best-local", designs=file, key_file=key.file
    )
    keep_designs(chain, frame, keys, epsilon, designs=file, key_file=key.file)
    check_honest(file, key.secret, chain, epsilon, "run")
    again = dry(chain, frame, keys, epsilon, designs=file, key_file=key.file)
    assert again.explain().equals(release.explain())
    assert not any("has no seal" in warning for warning in again.summary.warnings)


def test_the_summary_tells_how_many_designs_were_not_taken(tmp_path):
    chain = off.MarkovChain.binary(0.3, 0.3)
    frame, keys = one_chain(9, [2, 6])
    file = tmp_path / "designs.json"
    keep_designs(chain, frame, keys, 1.0, designs=file)
    honest = dry(chain, frame, keys, 1.0, designs=file)
    content = json.loads(file.read_text())
    written(content, file)
    assert dry(chain, frame, keys, 1.0, designs=file).summary.warnings == honest.summary.warnings
    content["sides"] = [[] for _ in content["sides"]]
    written(content, file)
    said = dry(chain, frame, keys, 1.0, designs=file).summary.warnings
    assert [
        line
        for line in said
        if "designs.json has no seal of this key and version" in line and "2 designs anew" in line
    ]


JUNK = [
    None,
    True,
    False,
    0,
    1,
    2,
    3,
    -1,
    0.5,
    1e-9,
    10**7,
    10**12,
    10**30,
    float("inf"),
    -0.0,
    "",
    "1",
    [],
    [0],
    {},
    [[]],
]


@st.composite
def falsified(draw, content, k):  # noqa: C901, PLR0912 - one branch for each lie
    """A designs file with some of its numbers, rows, rooms or keys changed."""
    content, sides = copy.deepcopy(content), len(content["sides"])
    small, truth = st.integers(0, 4), st.booleans()
    chances = st.sampled_from([0.0, 0.0, 1.0, 1.0, 0.5, 1e-300])
    row = st.lists(chances, min_size=k, max_size=k)
    side = st.lists(st.tuples(st.integers(1, 4), row).map(list), max_size=3)
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(
            st.sampled_from(["grids", "sides", "designs", "designs", "add", "claims", "any"])
        )
        designs = content.get("designs")
        if kind == "grids":
            grid = draw(
                st.sets(st.integers(1, 9), max_size=3).map(lambda nodes: [0, *sorted(nodes)])
            )
            content["grids"] = [grid, draw(st.sampled_from([grid, [0], [0, 1], [0, 2, 5]]))]
        elif kind == "sides":
            content["sides"] = draw(st.lists(side, min_size=sides, max_size=sides + 1))
        elif (
            kind in ("designs", "add")
            and isinstance(designs, list)
            and designs
            and isinstance(designs[0], dict)
        ):
            one = {
                "left": draw(small),
                "right": draw(small),
                "left_rest": draw(truth),
                "right_rest": draw(truth),
            }
            one |= {f"redaction_{name}": draw(st.integers(-1, sides)) for name in ("left", "right")}
            changed = {name: one[name] for name in draw(st.sets(st.sampled_from(sorted(one))))}
            at = draw(st.integers(0, len(designs) - 1))
            if kind == "add":
                designs.append({**designs[at], **one})
            elif isinstance(designs[at], dict):
                designs[at].update(changed)
        elif kind == "claims":
            content["loss"] = draw(st.sampled_from([0.0, 1e9]))
            for one in designs if isinstance(designs, list) else ():
                if isinstance(one, dict):
                    one |= {"leakage": 0.0, "rounding": 0.0, "window": [draw(small), draw(small)]}
        elif kind == "any":
            place, steps = content, draw(st.integers(1, 5))
            for step in range(steps):
                names = sorted(place) if isinstance(place, dict) else range(len(place))
                if len(names) == 0:
                    break
                name = draw(st.sampled_from(list(names)))
                if step + 1 < steps and isinstance(place[name], (dict, list)):
                    place = place[name]
                    continue
                place[name] = draw(st.sampled_from(JUNK))
                break
    return content


@settings(max_examples=70, deadline=None)
@given(tables(), st.data())
def test_a_falsified_designs_file_is_refused_or_releases_nothing_more(
    tmp_path_factory, table, data
):
    chain, frame, keys = table
    epsilon, protect = (
        data.draw(st.sampled_from([0.5, 1.0])),
        data.draw(st.sampled_from(["run", "each"])),
    )
    apart, cap = data.draw(st.booleans()), data.draw(st.sampled_from([None, 1, 2, 3]))
    folder = tmp_path_factory.mktemp("designs")
    key, file = Key.new(folder / "key.json"), folder / "designs.json"
    options = {"designs": file, "key_file": key.file}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharing, "_FAR", 2)
        if (
            cap is not None
        ):  # whatever room is taken to be all that matters, designs must stay private
            patch.setattr(sharing, "_cap", lambda *_: cap)
        if apart:
            patch.setattr(workshop.Workshop, "most", 1)
            patch.setattr(FewDesigns, "most", 2)
            patch.setattr(sides_apart, "JOINT", 0)
            patch.setattr(sides_apart, "_NODES", 4)
            patch.setattr(mechanism, "solved", lambda _: False)
        keep_designs(chain, frame, keys, epsilon, protect=protect, **options)
        content = data.draw(falsified(json.loads(file.read_text()), chain.k))
        written(content, file)
        try:
            release = check_table(chain, frame, keys, epsilon, protect, "best-local", **options)
        except off.InputError as error:
            refused = str(error)
            assert "\n" not in refused
            assert len(refused) < 400
            return
        keep_designs(chain, frame, keys, epsilon, protect=protect, **options)
        check_honest(file, key.secret, chain, epsilon, protect)
        again = check_table(chain, frame, keys, epsilon, protect, "best-local", **options)
        assert again.explain().equals(release.explain())
