"""The guarantee of a redacted table against its definition: the rule that decided, gaps and all,
over every output.
"""

import copy
import hashlib
import json
from datetime import datetime
from itertools import product

import numpy as np
import polars as pl
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import joint_table, leakage_of_table, output_table
from offrecord.designs import sharing as surroundings
from offrecord.designs.library import Designs, problem_of
from offrecord.release.keys import Key
from offrecord.tables import deciding
from offrecord.tables.chains import Columns, arrange
from offrecord.tables.secrets import private_records, secrets_of
from offrecord.tables.steps import Step

KERNELS = {
    2: [
        [[0.9, 0.1], [0.3, 0.7]],
        [[0.2, 0.8], [0.9, 0.1]],
        [[0.99, 0.01], [0.8, 0.2]],
        [[0.5, 0.5], [1.0, 0.0]],
    ],
    3: [
        [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]],
        [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]],
        [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]],
    ],
}


@st.composite
def tables(draw, max_n=6):
    """A model, and chains of at most max_n steps with gaps, missing values and private records,
    some in gaps.
    """
    k = draw(st.sampled_from([2, 2, 3]))
    transition = np.array(draw(st.sampled_from(KERNELS[k])))
    start = draw(st.sampled_from([None, None, None, [1.0] + [0.0] * (k - 1)]))
    chain = off.MarkovChain(transition, start=start)
    rows, keys = [], []
    for name in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, max_n if k == 2 else 5))
        kept = sorted({0, n - 1} | draw(st.sets(st.integers(0, n - 1))))
        value = int(np.argmax(chain.start))
        path = [value]
        for _ in range(n - 1):
            value = draw(st.sampled_from(np.flatnonzero(transition[value]).tolist()))
            path.append(value)
        empty = draw(st.sets(st.sampled_from(kept), max_size=1))
        rows += [(name, t, None if t in empty else path[t]) for t in kept]
        keys += [(name, t) for t in draw(st.sets(st.integers(0, n - 1), max_size=3))]
    assume(keys)
    frame = pl.DataFrame(
        rows, schema={"chain": pl.Int64, "t": pl.Int64, "v": pl.Int64}, orient="row"
    )
    listed = pl.DataFrame(keys, schema={"chain": pl.Int64, "t": pl.Int64}, orient="row")
    return chain, frame, listed


def rule(release, frame, name, k):
    """(n, k) redaction probabilities of one chain over all its steps: what is missing is
    redacted.
    """
    explained = release.explain().filter(pl.col("chain") == name)
    rows = frame.filter(pl.col("chain") == name).sort("t")
    n = int(rows["t"].max()) + 1
    matrix = np.ones((n, k))
    for (t, value), chances in zip(
        rows.select("t", "v").rows(), explained.select(pl.col("^Pr.*$")).rows(), strict=True
    ):
        if value is not None:
            matrix[t] = chances
    return matrix


def secrets_by_definition(frame, keys, name, protect):
    """Private steps of a chain, joined where nothing but missing records lies between."""
    seen = {
        t
        for t, value in frame.filter(pl.col("chain") == name).select("t", "v").rows()
        if value is not None
    }
    steps = sorted(keys.filter(pl.col("chain") == name)["t"].unique().to_list())
    if protect == "each":
        return [[t] for t in steps]
    runs = []
    for t in steps:
        if runs and not any(between in seen for between in range(runs[-1][-1] + 1, t)):
            runs[-1].append(t)
        else:
            runs.append([t])
    return runs


def dry(chain, frame, keys, epsilon, **options):
    """The rule for a table, without a release."""
    always = {"step": 1, "dataset": "d", "dry_run": True}
    return off.redact(
        frame,
        value="v",
        order="t",
        by="chain",
        private_list=keys,
        model=chain,
        epsilon=epsilon,
        **always,
        **options,
    )


def check_table(chain, frame, keys, epsilon, protect, mechanism, **options):
    release = dry(chain, frame, keys, epsilon, protect=protect, mechanism=mechanism, **options)
    assert release.summary.leakage <= epsilon
    for name in keys["chain"].unique().to_list():
        matrix = rule(release, frame, name, chain.k)
        for secret in secrets_by_definition(frame, keys, name, protect):
            if len(matrix) > 1:
                table = output_table(chain, len(matrix), matrix, [t + 1 for t in secret])
                assert leakage_of_table(table) <= epsilon + 1e-9
            for t in secret:
                assert np.all(matrix[t] == 1)
    return release


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.sampled_from(["run", "each"]))
def test_no_output_of_a_table_tells_more_than_epsilon(table, epsilon, protect):
    check_table(*table, epsilon, protect, "best-local")


@settings(max_examples=25, deadline=None)
@given(
    tables(), st.sampled_from([0.5, 1.0]), st.sampled_from(["window", "3r-constant", "3r-relaxed"])
)
def test_nor_with_another_mechanism(table, epsilon, mechanism):
    check_table(*table, epsilon, "run", mechanism)


@settings(max_examples=25, deadline=None)
@given(tables(), st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from(["run", "each"]))
def test_nor_where_rooms_are_rounded_up_or_sides_designed_apart(table, epsilon, protect):
    chain, frame, keys = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(surroundings, "QUICK", 1)
        patch.setattr(surroundings, "SLOW", 1)
        coarse = check_table(chain, frame, keys, epsilon, protect, "best-local")
        patch.setattr(surroundings, "JOINT", 0)
        patch.setattr(surroundings, "_SIDE_NODES", 4)
        apart = check_table(chain, frame, keys, epsilon, protect, "best-local")
    if chain.is_stationary:
        assert coarse.summary.designs >= 1
        assert apart.summary.loss >= 0


# ---- designs from elsewhere


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
    kept = Designs.load(file, chain, epsilon, "best-local", protect, key)
    assert kept.sealed
    if kept.grids is not None:
        cap = surroundings.room_limits(chain, epsilon)[0]
        assert {grid[-1] for grid in kept.grids} == {cap}
    for design in kept.designs:
        problem = problem_of(chain, epsilon, protect, design.surrounding)
        first, last = problem.private[0] - 1, problem.private[-1]
        matrix = np.ones((problem.n, chain.k))
        assert len(design.left) <= first
        assert len(design.right) <= problem.n - last
        for rows, rest, side in (
            (design.left, design.left_rest, matrix[:first][::-1]),
            (design.right, design.right_rest, matrix[last:]),
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
    monkeypatch.setattr(surroundings._Rooms, "cap", lambda _: 3)
    chain, epsilon = off.MarkovChain.binary(0.02, 0.1), 1.0
    frame, keys = one_chain(10, [4])
    key = Key.new(tmp_path / "key.json")
    file = tmp_path / "designs.json"
    dry(chain, frame, keys, epsilon, designs=file, key_file=key.file)
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
    check_honest(file, key.secret, chain, epsilon, "run")
    again = dry(chain, frame, keys, epsilon, designs=file, key_file=key.file)
    assert again.explain().equals(release.explain())
    assert not any("has no seal" in warning for warning in again.summary.warnings)


def test_the_summary_tells_how_many_designs_were_not_taken(tmp_path):
    chain = off.MarkovChain.binary(0.3, 0.3)
    frame, keys = one_chain(9, [2, 6])
    file = tmp_path / "designs.json"
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
def falsified(draw, content, k):
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
        patch.setattr(surroundings, "_FAR", 2)
        if (
            cap is not None
        ):  # whatever room is taken to be all that matters, designs must stay private
            patch.setattr(surroundings._Rooms, "cap", lambda _: cap)
        if apart:
            patch.setattr(surroundings, "QUICK", 1)
            patch.setattr(surroundings, "SLOW", 2)
            patch.setattr(surroundings, "JOINT", 0)
            patch.setattr(surroundings, "_SIDE_NODES", 4)
            patch.setattr(surroundings.best_local, "solved", lambda _: False)
        dry(chain, frame, keys, epsilon, protect=protect, **options)
        content = data.draw(falsified(json.loads(file.read_text()), chain.k))
        written(content, file)
        try:
            release = check_table(chain, frame, keys, epsilon, protect, "best-local", **options)
        except off.InputError as error:
            refused = str(error)
            assert "\n" not in refused
            assert len(refused) < 400
            return
        check_honest(file, key.secret, chain, epsilon, protect)
        again = check_table(chain, frame, keys, epsilon, protect, "best-local", **options)
        assert again.explain().equals(release.explain())


# ---- order above 1


def sequences_of_order_2(chain, n):
    paths = np.array(list(product(range(chain.k), repeat=n)))
    weight = chain.start[paths[:, 0], paths[:, 1]].copy()
    for t in range(2, n):
        weight *= chain.transition[paths[:, t - 2], paths[:, t - 1], paths[:, t]]
    return paths, weight


@pytest.mark.parametrize(
    ("private", "gone"),
    [([3], []), ([1], []), ([6], []), ([2, 3], []), ([2, 5], []), ([3], [4]), ([2, 4], [3])],
)
def test_nor_for_a_chain_of_order_2(private, gone, monkeypatch):
    chain = off.MarkovChain([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], order=2)
    n, epsilon = 6, 1.0
    kept = [t for t in range(1, n + 1) if t not in gone]
    frame = pl.DataFrame({"chain": 0, "t": kept, "v": [t % 2 for t in kept]})
    keys = pl.DataFrame({"chain": [0] * len(private), "t": private})
    release = dry(chain, frame, keys, epsilon)
    matrix = np.ones((n, 2))
    matrix[np.array(kept) - 1] = release.explain().select(pl.col("^Pr.*$")).to_numpy()
    joined = [[2, 4]] if gone == [3] else [[2, 3]] if private == [2, 3] else [[p] for p in private]
    import definition

    monkeypatch.setattr(definition, "sequences", sequences_of_order_2)
    for secret in joined:
        assert leakage_of_table(output_table(chain, n, matrix, secret)) <= epsilon + 1e-9


@settings(max_examples=100, deadline=None)
@given(tables(), st.sampled_from(["run", "each"]))
def test_secrets_are_the_private_records_joined_over_what_is_missing(table, protect):
    _, frame, keys = table
    columns, step = Columns.named("v", "t", "chain", False), Step.parsed(1)
    arranged = arrange(frame, columns, labels=(0, 1, 2), step=step)
    private = private_records(arranged, keys, step)
    found = secrets_of(arranged.chains, private, protect)
    names = arranged.frame["chain"].to_numpy()[arranged.chains.starts[:-1]]
    expected = [
        (name, secret[0], secret[-1])
        for name in names
        for secret in secrets_by_definition(frame, keys, name, protect)
    ]
    assert [
        (names[c], a, b) for c, a, b in zip(found.chain, found.first, found.last, strict=True)
    ] == expected
    t = arranged.frame["t"].to_numpy()
    for c, low, high, first, last in zip(
        found.chain, found.low, found.high, found.first, found.last, strict=True
    ):
        begin, end = arranged.chains.starts[c], arranged.chains.starts[c + 1]
        inside = [row for row in range(begin, end) if first <= t[row] <= last]
        assert list(range(low, high)) == inside


def test_the_share_of_redactions_is_what_the_rule_says(tmp_path):
    chain = off.MarkovChain.binary(0.01, 0.8)
    chains, n = 3000, 10
    rng = np.random.default_rng(7)
    values = np.zeros((chains, n), dtype=np.int64)
    values[:, 0] = rng.random(chains) < 0.01 / 0.81
    for t in range(1, n):
        u = rng.random(chains)
        values[:, t] = np.where(values[:, t - 1] == 1, u >= 0.8, u < 0.01)
    frame = pl.DataFrame(
        {
            "chain": np.repeat(np.arange(chains), n),
            "t": np.tile(np.arange(n), chains),
            "v": values.ravel(),
            "private": np.tile(np.arange(n) == 0, chains),
        }
    )
    release = off.redact(
        frame,
        value="v",
        order="t",
        by="chain",
        private="private",
        model=chain,
        epsilon=1.0,
        dataset="d",
        key_file=tmp_path / "key",
    )
    policy = off.design(off.Problem(chain, n, [1], 1.0))
    gone = release.frame["v"].is_null().to_numpy().reshape(chains, n)
    chances = policy.redaction[np.arange(n), values]
    assert np.all(gone[chances == 1])
    assert not np.any(gone[chances == 0])
    for t in range(1, 4):
        zeros = values[:, t] == 0
        q, count = policy.redaction[t, 0], int(zeros.sum())
        assert abs(gone[zeros, t].sum() - q * count) < 5 * np.sqrt(q * (1 - q) * count)
    assert release.summary.redacted == gone.sum()


def test_a_lone_record_of_a_model_with_phases_is_redacted():
    model = off.PhasedChain(
        "hour", np.tile([[0.9, 0.1], [0.3, 0.7]], (24, 1, 1)), np.tile([0.75, 0.25], (24, 1))
    )
    hours = [datetime(2020, 1, 1, hour) for hour in (5, 5, 6, 7)]
    frame = pl.DataFrame(
        {"chain": [1, 2, 2, 2], "t": hours, "v": [0, 0, 1, 1], "p": [True, False, True, False]}
    )
    for step in (None, "1h"):
        release = off.redact(
            frame,
            value="v",
            order="t",
            by="chain",
            private="p",
            model=model,
            epsilon=1.0,
            step=step,
            dataset="d",
            dry_run=True,
        )
        assert release.explain()["region"].to_list()[::2] == ["private", "private"]


def test_no_frame_leaves_before_the_ledger_knows_it(tmp_path):
    frame = pl.DataFrame(
        {"chain": [1, 1, 1], "t": [1, 2, 3], "v": [0, 1, 1], "p": [True, False, False]}
    )
    options = {
        "value": "v",
        "order": "t",
        "by": "chain",
        "private": "p",
        "model": off.MarkovChain.binary(0.1, 0.2),
        "epsilon": 1.0,
    }
    options |= {"dataset": "d", "key_file": tmp_path / "key" / "key.json"}
    release = off.redact(frame, remember=False, **options)
    assert release.frame is None
    ledger = tmp_path / "key" / "key.ledger.json"
    assert json.loads(ledger.read_text())["releases"] == {}
    assert release.certificate["release"]["composed"] is None
    release.write(tmp_path / "out.csv")
    assert len(json.loads(ledger.read_text())["releases"]["d"]) == 1
    assert release.certificate["release"] == {"other_releases": 0, "composed": True}
    assert off.redact(frame, **options).frame is not None


# ---- a second release


def chains_of(values, private=(3,)):
    """Chains of the same length, one a row of values; the same records of each private."""
    count, n = np.shape(values)
    return pl.DataFrame(
        {
            "chain": np.repeat(np.arange(count), n),
            "t": np.tile(np.arange(1, n + 1), count),
            "v": np.ravel(values),
            "p": np.tile(np.isin(np.arange(1, n + 1), private), count),
        }
    )


@pytest.fixture
def again(tmp_path):
    """Releases under one key, of the same records unless another dataset is named."""

    def redact(frame, **options):
        standard = {
            "value": "v",
            "order": "t",
            "by": "chain",
            "private": "p",
            "model": off.MarkovChain.binary(0.1, 0.3),
        }
        standard |= {
            "epsilon": 1.0,
            "dataset": "d",
            "key_file": tmp_path / "key" / "key.json",
            "mechanism": "3r-constant",
        }
        return off.redact(frame, **(standard | options))

    return redact


FIGURE_2 = off.MarkovChain.binary(0.01, 0.8)


def test_two_releases_that_share_their_coins_leak_their_pointwise_minimum(again):
    """By brute force over coins (F3). A table that has grown is one: what was not there is what was
    redacted.
    """
    n = 5
    whole = chains_of([[0] * n], private=[1])

    def rule(frame, epsilon, mechanism):
        found = again(frame, epsilon=epsilon, mechanism=mechanism, model=FIGURE_2, dry_run=True)
        return np.vstack(
            [found.explain().select(pl.col("^Pr.*$")).to_numpy(), np.ones((n - frame.height, 2))]
        )

    another_epsilon = rule(whole, 1.0, "3r-constant"), rule(whole, 1.5, "3r-constant")
    grown = rule(whole.head(4), 1.0, "best-local"), rule(whole, 1.0, "best-local")
    for pair, together, apart in ((another_epsilon, 1.789, 1.888), (grown, 1.277, 2.550)):
        shared = leakage_of_table(joint_table(FIGURE_2, n, pair, [1], shared=True))
        fresh = leakage_of_table(joint_table(FIGURE_2, n, pair, [1], shared=False))
        assert shared == pytest.approx(
            leakage_of_table(output_table(FIGURE_2, n, np.minimum(*pair), [1])), abs=1e-12
        )
        assert (shared, fresh) == (
            pytest.approx(together, abs=1e-3),
            pytest.approx(apart, abs=1e-3),
        )


def test_releases_under_one_name_share_their_coins_and_under_another_do_not(again):
    """So with more redaction, for a smaller ε, nothing is shown that was not shown before; under
    another name it is.
    """
    frame = chains_of(np.zeros((400, 6), dtype=int), private=[1])
    options = {"model": FIGURE_2, "mechanism": "best-local"}
    large, small = (
        again(frame, epsilon=1.0, **options),
        again(frame, epsilon=0.5, another_release=True, **options),
    )
    rules = [one.explain()["Pr(redacted | 0)"].to_numpy() for one in (large, small)]
    more = rules[1] >= rules[0]
    assert np.any(more & (rules[0] > 0) & (rules[1] < 1))
    renamed = again(frame, epsilon=0.5, dataset="e", **options)
    shown = [one.frame["v"].is_not_null().to_numpy() for one in (large, small, renamed)]
    assert not np.any(shown[1] & ~shown[0] & more)
    assert np.any(shown[2] & ~shown[0] & more)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 1), min_size=12, max_size=12), min_size=2, max_size=2))
def test_the_ledger_tells_apart_what_leaves_and_nothing_else(tmp_path_factory, rows):
    """Two tables are the same release if and only if the chains that hold a secret leave
    the same.
    """
    folder = tmp_path_factory.mktemp("told")
    options = {
        "value": "v",
        "order": "t",
        "by": "chain",
        "private": "p",
        "model": off.MarkovChain.binary(0.1, 0.3),
    }
    options |= {
        "epsilon": 1.0,
        "dataset": "d",
        "key_file": folder / "key.json",
        "mechanism": "3r-constant",
    }
    shown = []
    for row in rows:
        table = chains_of([row, row]).with_columns(p=pl.col("p") & (pl.col("chain") == 0))
        release = off.redact(table, another_release=True, **options)
        shown.append(release.frame.filter(pl.col("chain") == 0))
        assert release.certificate["release"]["composed"] == shown[0].equals(shown[-1])
    if shown[0].equals(shown[1]):
        off.redact(table, **options)


@pytest.mark.parametrize("order", [pl.Int64, pl.UInt8, pl.Datetime("ms")])
def test_what_the_ledger_remembers_of_what_left_is_what_the_documentation_says(
    again, tmp_path, monkeypatch, order
):
    """docs/coins.md, one record at a time."""
    monkeypatch.setattr(deciding, "_STRIP", 5)
    monkeypatch.setattr(deciding, "_BLOCK", 14)
    frame = chains_of(np.random.default_rng(2).integers(2, size=(7, 9))).with_columns(
        p=pl.col("p") & (pl.col("chain") != 2),
        v=pl.when(pl.col("t") != 8).then("v"),
        t=pl.col("t").cast(order),
    )
    released = again(frame).frame.with_columns(
        pl.col("t").cast(pl.Int64) * (1 if order.is_integer() else 10**6)
    )
    key = Key.load(tmp_path / "key" / "key.json").secret
    cipher = Cipher(
        algorithms.AES(hashlib.blake2b(key=key, digest_size=32, person=b"offrecord/left").digest()),
        modes.ECB(),
    )
    digest = 0
    for chain in (0, 1, 3, 4, 5, 6):
        total = 0
        for t, value in released.filter(pl.col("chain") == chain).select("t", "v").rows():
            x = t * 0x9E3779B97F4A7C15 + (0 if value is None else value + 1) * 0xD1B54A32D192ED03
            x %= 2**64
            total += (x ^ x >> 32) ** 2
        name = b"".join(
            bytes([kind]) + len(content).to_bytes(8, "little") + content
            for kind, content in ((3, b"d"), (3, b"v"), (1, chain.to_bytes(16, "little")))
        )
        tag = int.from_bytes(
            hashlib.blake2b(name, key=key, digest_size=16, person=b"offrecord/chain").digest(),
            "little",
        )
        block = tag ^ (total % 2**64 | 9 << 64)
        digest ^= int.from_bytes(cipher.encryptor().update(block.to_bytes(16, "little")), "little")
    (entry,) = json.loads((tmp_path / "key" / "key.ledger.json").read_text())["releases"]["d"]
    assert int(entry["set of released values"], 16) == digest


@pytest.mark.parametrize(
    "ones", [(8, 11), (9, 10), (8, 9, 10, 11), (8, 12, 13), (9, 10, 14)]
)  # the same sums of places
def test_ones_elsewhere_are_another_release(again, ones):
    def table(places):
        return chains_of([[int(t in places) for t in range(1, 16)]])

    again(table((8, 11)))
    if ones == (8, 11):
        assert again(table(ones)).certificate["release"]["composed"] is True
        return
    with pytest.raises(off.InputError, match="another set of released values") as refused:
        again(table(ones))
    assert str(refused.value).index("--another-release") < str(refused.value).index(
        "Another --dataset"
    )
    release = again(table(ones), another_release=True)
    assert release.certificate["release"] == {"other_releases": 1, "composed": False}
    assert [warning for warning in release.summary.warnings if "1 other release;" in warning]


def test_what_was_released_before_content_was_remembered_is_another_release(again, tmp_path):
    frame = chains_of([[0, 1, 1, 0, 0, 1]])
    again(frame)
    file = tmp_path / "key" / "key.ledger.json"
    content = json.loads(file.read_text())
    del content["releases"]["d"][0]["set of released values"]
    file.write_text(
        json.dumps({name: content[name] for name in ("format", "version", "key", "releases")})
    )
    with pytest.raises(off.InputError, match="another set of released values"):
        again(frame)
    assert again(frame, another_release=True).certificate["release"] == {
        "other_releases": 1,
        "composed": False,
    }


def test_the_certificate_counts_what_others_released_while_it_was_made(again, tmp_path):
    frame = chains_of([[0, 1, 1, 0, 0, 1]])
    slow = again(frame, remember=False, another_release=True)
    again(frame, epsilon=2.0, another_release=True)
    warnings = slow.write(tmp_path / "out.csv")[1]
    assert [warning for warning in warnings if "1 other release;" in warning]
    assert slow.certificate["release"] == {"other_releases": 1, "composed": False}
    assert (
        json.loads((tmp_path / "out.csv.certificate.json").read_text())["release"]
        == slow.certificate["release"]
    )
    late = again(frame, remember=False, epsilon=2.0)
    assert slow.write(tmp_path / "out.csv", force=True)[1] == []
    assert late.certificate["release"]["composed"] is None
