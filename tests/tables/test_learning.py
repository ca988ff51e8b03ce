"""A model may be learned from what is released for certain, and from nothing else."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import offrecord as off
from command_line import flags
from definition import leakage_of_table, samples, sequences, table_of_paths
from docs_pages import blocks_of
from explained import explained
from fitting.sampling import panel
from offrecord import cli
from offrecord.errors import InputError
from offrecord.models.evidence import Verdict
from offrecord.models.file import Model
from offrecord.models.records import Chains
from offrecord.tables import choosing
from offrecord.tables.private import Private
from offrecord.tables.reference import named_distances, steps_apart

CHAIN = off.MarkovChain([[0.95, 0.05], [0.3, 0.7]])
PRIVATE = (400, 1500, 1501, 2900)


def one_chain(n=3600, seed=1, private=PRIVATE):
    """A single chain, opt-outs all over it."""
    values = samples(CHAIN, 1, n, np.random.default_rng(seed))[0]
    return pl.DataFrame({"t": range(n), "v": values, "p": [t in private for t in range(n)]})


def rooms(count=30, n=120, seed=1, private=((2, 60), (7, 30)), chain=CHAIN):
    """Several chains, few of which hold a private record."""
    values = samples(chain, count, n, np.random.default_rng(seed)).ravel()
    keys = [(room, t) for room in range(count) for t in range(n)]
    frame = pl.DataFrame(keys, schema=["room", "t"], orient="row")
    return frame.with_columns(v=values, p=pl.Series([key in private for key in keys]))


SINGLE = {"value": "v", "order": "t", "single_chain": True}
BY_ROOM = {"value": "v", "order": "t", "by": "room"}


LEARNING = {"chain_order": 1, "phase": "none", "coverage": 0.95}


def redacted(frame, columns, tmp_path, **more):
    given = {"private": "p", "epsilon": 1.0, "dataset": "d", "mechanism": "window"}
    given |= LEARNING if "fit" in more else {}
    return off.redact(frame, **columns, **given | {"key_file": tmp_path / "key.json"} | more)


def fitted(frame, columns, **more):
    return off.fit(frame, **columns, **LEARNING, **more).model


# ---- the definition


def adaptive_table(chain, n, secret, learned, rule_of):
    """(values, outputs) of Pr(Y = y | X_p = x) where the rule is a function of some values."""
    paths, weight = sequences(chain, n)
    totals, table = np.bincount(paths[:, secret - 1], weight), 0.0
    seen = paths[:, [t - 1 for t in learned]]
    for values in np.unique(seen, axis=0):
        mine = np.all(seen == values, axis=1)
        share = np.bincount(paths[mine, secret - 1], weight[mine]) / totals
        rule = rule_of(values.tolist())
        table += share[:, None] * table_of_paths(paths[mine], weight[mine], chain.k, rule, [secret])
    return table


def test_a_rule_may_depend_on_what_it_releases_for_certain():
    n, secret, far = 7, 4, (1, 7)
    problem = off.Problem(CHAIN, n, [secret], 1.5)
    rules = [
        off.design(problem, mechanism).redaction
        for mechanism in (off.BestLocal(), off.BestWindow(), off.ThreeRegion("constant"))
    ]
    for rule in rules:
        rule[[t - 1 for t in far]] = 0  # released, as the shape of the designs allows
    leaks = [off.leakage(problem, rule) for rule in rules]
    assert len({rule.tobytes() for rule in rules}) > 1
    table = adaptive_table(CHAIN, n, secret, far, lambda seen: rules[sum(seen) % len(rules)])
    assert leakage_of_table(table) <= max(leaks) + 1e-9


def test_a_rule_that_depends_on_what_it_may_redact_tells_of_it():
    """The same rules, each private by itself, chosen by the record next to the secret."""
    n, secret = 3, 1
    problem = off.Problem(CHAIN, n, [secret], 1.0)
    hidden = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    open_ended = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    alone = max(off.leakage(problem, rule) for rule in (hidden, open_ended))
    mixed = adaptive_table(CHAIN, n, secret, (2,), lambda seen: (hidden, open_ended)[seen[0]])
    assert leakage_of_table(mixed) > alone + 0.5


# ---- which records are learned from


@st.composite
def placed(draw):
    """Chains of records at some steps, and private places among them or in their gaps."""
    starts, steps, private = [0], [], []
    for chain in range(draw(st.integers(1, 4))):
        places = sorted({0} | draw(st.sets(st.integers(1, 12), max_size=8)))
        steps += places
        starts.append(len(steps))
        for place in sorted(draw(st.sets(st.integers(0, places[-1]), max_size=2))):
            private.append((chain, place))
    at = np.array(steps)
    chains = Chains(np.array(starts), np.zeros(len(at), dtype=np.int8), at, False, at)
    chain, place = (np.array(private, dtype=np.int64).reshape(-1, 2)).T
    return chains, Private(chain, place, place)


@given(placed())
def test_how_far_records_are_from_private_ones(given):
    chains, private = given
    assume(private.count)
    near = np.array(
        [
            np.abs(private.place[private.chain == chain] - step).min(initial=99)
            for chain, step in zip(chains.chain_of, chains.steps, strict=True)
        ]
    )
    steps = steps_apart(chains, private)
    assert np.minimum(steps, 99).tolist() == near.tolist()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=400))
def test_distances_are_named_by_positions(steps):
    far = np.array(steps)
    if np.sort(far)[-min(60, len(far))] < 3 or len(far) < 60:
        with pytest.raises(InputError, match="too few records are far from one"):
            named_distances(far)
    else:
        found = named_distances(far)
        assert found == sorted(set(found))
        assert min(found) >= 3
        assert all(np.count_nonzero(far >= one) >= 60 for one in found)
        half = int(np.sort(far)[len(far) - max(len(far) // 2, 1)])
        assert half < 3 or found[0] == half


@pytest.mark.parametrize("mechanism", ["window", "best-local", "owner"])
def test_one_table_with_opt_outs_all_over_it(mechanism, tmp_path):
    frame, told = one_chain(), []
    release = redacted(frame, SINGLE, tmp_path, fit=True, mechanism=mechanism, say=told.append)
    distance = release.certificate["origin"]["distance"]
    assert f"in records {distance} steps or more from every private one" in told[0]
    assert release.certificate["evidence"]["unseen"] is True
    assert any(
        "records nearer to private ones change in the same way was not tested" in one
        for one in release.summary.warnings
    )
    # all it learned from is in region S, and counting it again gives the same model
    nearest = np.min([np.abs(np.arange(frame.height) - p) for p in PRIVATE], axis=0)
    regions = explained(release)["region"].to_numpy()
    assert set(regions[nearest >= distance]) == {"S"}
    blank = pl.when(pl.Series(nearest >= distance)).then(pl.col("v"))
    again = fitted(release.frame.with_columns(blank.alias("v")), SINGLE)
    assert again.promise.to_dict() == release.fit.posterior.to_dict()
    assert again.promise.to_dict() == release.certificate["model"]


def test_what_it_learns_follows_from_what_leaves(tmp_path):
    """Twins: they differ only where a window redacts for certain."""
    frame = one_chain()
    first = redacted(frame, SINGLE, tmp_path, fit=True)
    near = explained(first)["region"].is_in(["L", "private"])
    assert near.sum() > len(PRIVATE)
    changed = pl.when(near).then(1 - pl.col("v")).otherwise(pl.col("v")).alias("v")
    second = redacted(frame.with_columns(changed), SINGLE, tmp_path, fit=True)
    assert second.frame.equals(first.frame)
    assert second.certificate == first.certificate


def test_a_design_that_reaches_into_what_was_learned_from_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"learn from records further away, fit_distance=\d+"):
        redacted(one_chain(), SINGLE, tmp_path, fit=True, fit_distance=3)


def test_too_dense(tmp_path):
    frame = one_chain(400, private=range(0, 400, 4))
    with pytest.raises(InputError, match="too few records are far from one"):
        redacted(frame, SINGLE, tmp_path, fit=True)


# ---- models whose fit saw too much


@pytest.mark.parametrize("columns", [SINGLE, BY_ROOM], ids=["single", "rooms"])
def test_a_fit_of_the_same_table_is_refused(columns, tmp_path):
    frame = one_chain() if columns is SINGLE else rooms()
    model = fitted(frame, columns)
    with pytest.raises(InputError, match=r"learned from records that are not released") as error:
        redacted(frame, columns, tmp_path, model=model)
    assert "fit it with private_list or private" in str(error.value)
    release = redacted(frame, columns, tmp_path, model=model, accept="model")
    assert release.certificate["evidence"]["unseen"] is False
    assert "learned from records" in release.certificate["evidence"]["accepted"][0]
    clean = fitted(frame, columns, private="p")
    release = redacted(frame, columns, tmp_path, model=clean, dataset="clean")
    assert release.certificate["evidence"]["unseen"] is True


def test_the_count_is_right(tmp_path):
    """All of what may be redacted in a chain that was seen, and nothing of others."""
    frame = rooms()
    model = fitted(frame.filter(pl.col("room") != 7), BY_ROOM)
    release = redacted(frame, BY_ROOM, tmp_path, model=model, accept="model")
    rule = explained(release).filter(pl.col("room") == 2)
    uncertain = rule.filter(pl.col("region") != "S").height
    said = release.certificate["evidence"]["accepted"][0]
    assert f"({uncertain} records)" in said


@settings(max_examples=10)
@given(st.lists(st.integers(0, 3599), max_size=3), st.integers(0, 3560), st.integers(40, 3600))
def test_which_blocks_were_seen(tmp_path_factory, corrected, first, size):
    """A fit saw some stretch, and some of its values were corrected since: a record counts as seen
    unless a corrected one lies in its block of 32.
    """
    tmp_path = tmp_path_factory.mktemp("seen")
    frame = one_chain()
    stretch = frame.filter(pl.col("t").is_between(first, first + size - 1))
    assume(stretch["v"].n_unique() == 2)
    model = fitted(stretch, SINGLE)
    off_by = pl.col("t").is_in(corrected)
    now = frame.with_columns(v=pl.when(off_by).then(1 - pl.col("v")).otherwise(pl.col("v")))
    release = redacted(now, SINGLE, tmp_path, model=model, accept="model")
    regions, values = explained(release)["region"].to_list(), now["v"].to_list()
    seen, changing, alike = 0, 0, 0
    for begin in range(first, first + stretch.height, 32):
        block = range(begin, min(begin + 32, first + stretch.height))
        same = not set(block) & set(corrected)
        seen += same * sum(regions[t] != "S" for t in block)
        changes = len({values[t] for t in block}) > 1
        changing, alike = changing + changes, alike + (same and changes)
    seen *= 2 * alike >= changing
    evidence = release.certificate["evidence"]
    assert evidence["unseen"] is (seen == 0)
    if seen:
        assert any(f"({seen} record" in one for one in evidence["accepted"])


@pytest.mark.parametrize("rare", [0.05, 0.002])
def test_other_data_under_the_same_names(rare, tmp_path):
    """Where a value is rare, most blocks are alike by chance."""
    chain = off.MarkovChain([[1 - rare, rare], [0.3, 0.7]])
    private = tuple((room, 60) for room in range(0, 30, 3))
    one, other = (rooms(seed=seed, private=private, chain=chain) for seed in (5, 1))
    model = fitted(other, BY_ROOM)
    for table, unseen in ((one, True), (other, False)):
        given = {"model": model, "accept": "model", "dataset": f"unseen {unseen}"}
        release = redacted(table, BY_ROOM, tmp_path, **given)
        assert release.certificate["evidence"]["unseen"] is unseen


def test_row_order_names_as_text_and_shuffled_rows(tmp_path):
    frame = rooms()
    text = frame.with_columns(pl.col("room").cast(pl.String))
    shuffled = text.sample(fraction=1, shuffle=True, seed=3)
    model = fitted(frame, BY_ROOM)
    with pytest.raises(InputError, match="learned from records"):
        redacted(shuffled, BY_ROOM, tmp_path, model=model)
    by_row = {"value": "v", "order": "row", "by": "room"}
    model = fitted(frame, by_row)
    with pytest.raises(InputError, match="learned from records"):
        redacted(text, by_row, tmp_path, model=model)


def test_a_dry_run_foretells_by_places_alone(tmp_path):
    frame = rooms()
    model = fitted(frame, BY_ROOM)
    release = redacted(frame, BY_ROOM, tmp_path, model=model, dry_run=True)
    assert release.certificate["evidence"]["unseen"] is None
    with pytest.raises(InputError) as refused:
        redacted(frame, BY_ROOM, tmp_path, model=model)
    (said,) = foretold(release)
    assert said.endswith(str(refused.value))
    # whatever the values are
    others = frame.with_columns(v=pl.col("v").reverse())
    assert foretold(redacted(others, BY_ROOM, tmp_path, model=model, dry_run=True)) == [said]
    accepting = dict(model=model, dry_run=True, accept="model")
    accepted = redacted(frame, BY_ROOM, tmp_path, **accepting)
    assert foretold(accepted) == []
    assert any(
        '(accepted with accept="model"): the model was' in one for one in accepted.summary.warnings
    )
    clean = fitted(frame, BY_ROOM, private="p")
    assert foretold(redacted(frame, BY_ROOM, tmp_path, model=clean, dry_run=True)) == []


def foretold(release):
    return [one for one in release.summary.warnings if one.startswith("this would be refused")]


# ---- model files


@pytest.fixture
def run(tmp_path, capsys):
    def run(verb, frame, columns, **options):
        file = tmp_path / "table.csv"
        frame.write_csv(file)
        code = cli.main([verb, str(file), *flags(columns | options)])
        return code, capsys.readouterr().err

    return run


def test_a_model_of_another_key_is_refused_before_rules_are_designed(tmp_path, monkeypatch):
    frame = rooms()
    model = tmp_path / "model.json"
    off.fit(frame, **BY_ROOM, **LEARNING, key_file=tmp_path / "a" / "key.json").save(model)
    with monkeypatch.context() as patched:
        patched.setattr(choosing, "design_table", lambda *_, **__: pytest.fail("designed"))
        with pytest.raises(InputError, match="give fit and redact the same key_file"):
            redacted(frame, BY_ROOM, tmp_path, model=model)
    assert redacted(frame, BY_ROOM, tmp_path, model=model, accept="model").summary.released > 0.5


@pytest.mark.parametrize("stream", [True, None], ids=["streamed", "in memory"])
def test_model_files_remember_under_their_key(stream, run, tmp_path):
    frame, key, other = rooms(), tmp_path / "a" / "key.json", tmp_path / "b" / "key.json"
    model, out = tmp_path / "model.json", tmp_path / "out.csv"
    release = dict(private="p", epsilon=1, model=model, output=out, stream=stream, force=True)
    release |= {"mechanism": "window"}
    fitting = dict(output=model, force=True, **LEARNING)
    assert run("fit", frame, BY_ROOM, key_file=key, **fitting)[0] == 0
    held = _held(tmp_path)
    dry = release | dict(output=None, dry_run=True, dataset="d")
    code, said = run("redact", frame, BY_ROOM, key_file=key, **dry)
    assert (code, _held(tmp_path)) == (2, held)
    saw = "the model was learned from records that are not released for certain here"
    assert "this would be refused" in said
    assert saw in said
    unknown = "the model was learned from a column 'v' under another key"
    code, said = run("redact", frame, BY_ROOM, key_file=other, **dry)
    assert (code, _held(tmp_path)) == (2, held)
    assert unknown in said
    code, said = run("redact", frame, BY_ROOM, dataset="d", key_file=key, **release)
    assert (code, out.exists()) == (2, False)
    assert saw in said
    # under another key nobody can know
    code, said = run("redact", frame, BY_ROOM, dataset="d", key_file=other, **release)
    assert (code, out.exists(), said.count("\n")) == (2, False, 1)
    assert unknown in said
    accepted = release | {"accept": "model"}
    code, said = run("redact", frame, BY_ROOM, dataset="d", key_file=other, **accepted)
    assert code == 0
    assert "is not known, as it was not fitted under this key" in said
    assert _certificate(out)["evidence"]["unseen"] is None
    # and with its list the fit is clean
    assert run("fit", frame, BY_ROOM, key_file=key, private="p", **fitting)[0] == 0
    assert run("redact", frame, BY_ROOM, dataset="e", key_file=key, **release)[0] == 0
    assert _certificate(out)["evidence"]["unseen"] is True
    held = sorted(path.name for path in (tmp_path / "a" / "key.fits").iterdir())
    assert len(held) == 2
    assert (tmp_path / "a" / "key.fits" / held[0]).stat().st_mode & 0o077 == 0


COUNTS = [[90, 10], [10, 90]]
UNIFORM = [
    {"kind": "chain", "labels": list(range(k)), "transition": [[1 / k] * k] * k} for k in (2, 3)
]


@pytest.mark.parametrize(
    ("model", "file", "says"),
    [
        ({"counts": [[90, -1], [10, 90]]}, {}, "counts must be from 0"),
        ({"counts": [[90, 0.5], [10, 90]]}, {}, "valid integer"),
        ({"counts": [[0, 0], [0, 0]]}, {}, "counts must not all be 0"),
        ({"coverage": 0.9}, {}, "coverage must be 0.99 or 0.95"),
        ({"kind": "chains", "chains": []}, {}, "at least 1 item"),
        ({"kind": "chains", "chains": UNIFORM}, {}, "must have the same values"),
        ({}, {"version": 1}, "fit again"),
        ({}, {"origin": {"column": "v", "order": "integer", "step": "2"}}, "give --step 2"),
        ({}, {"origin": {"column": "w", "order": "integer"}}, "the column 'w', not 'v'"),
        ({}, {"origin": {"column": "v", "order": "time"}}, "ordered by times, not by whole"),
        ({}, {"origin": {"column": "v", "order": "integer", "seen": "abc"}}, "another key"),
    ],
)
def test_bad_models_get_one_line(model, file, says, run, tmp_path):
    posterior = off.Posterior(COUNTS, 1).to_dict()
    if "chains" in model:
        posterior = {}
    content = {"format": "offrecord-model", "version": 2, "model": posterior | model}
    (tmp_path / "model.json").write_text(json.dumps(content | file))
    code, said = run(
        "redact", rooms(), BY_ROOM, private="p", epsilon=1, dataset="d", output=tmp_path / "o.csv",
        model=tmp_path / "model.json", key_file=tmp_path / "k" / "key.json", mechanism="window",
    )  # fmt: skip
    assert (code, said.count("\n")) == (2, 1), said
    assert says in said


@pytest.mark.parametrize(("verdict", "remedy"), [("broken", "chain_order"), (None, "larger")])
def test_a_single_chain_is_refused_with_what_helps(verdict, remedy, tmp_path):
    """A broken model is not mended by a larger ε alone, nor endless windows by --accept model."""
    told = [] if verdict is None else [
        Verdict(epsilon=1.0, verdict=verdict, counted=9.0, promised=2.7, cases=[9, 9])
    ]  # fmt: skip
    counts = COUNTS if verdict else [[1, 0], [0, 1]]
    model = Model(off.Posterior(counts, 1), None, tuple(told))
    with pytest.raises(InputError, match=remedy) as refused:
        redacted(one_chain(60, private=(20,)), SINGLE, tmp_path, model=model)
    assert ('accept="model"' in str(refused.value)) == (verdict is not None)


def _held(folder):
    return {one: one.is_file() and one.read_bytes() for one in folder.rglob("*")}


def _certificate(out):
    return json.loads(out.with_name(out.name + ".certificate.json").read_text())


def test_what_is_kept_is_the_same_again_and_refused_if_damaged(run, tmp_path):
    frame, key = rooms(), tmp_path / "a" / "key.json"
    models = [tmp_path / "one.json", tmp_path / "two.json"]
    for model in models:
        assert run("fit", frame, BY_ROOM, key_file=key, output=model, **LEARNING)[0] == 0
    assert models[0].read_bytes() == models[1].read_bytes()
    (kept,) = (tmp_path / "a" / "key.fits").iterdir()
    content = kept.read_bytes()
    assert all(str(room).encode() not in content for room in (b"room", b"state"))
    kept.write_bytes(content[: len(content) // 2])
    given = dict(private="p", epsilon=1, model=models[0], output=tmp_path / "o.csv", dataset="d")
    code, said = run("redact", frame, BY_ROOM, key_file=key, **given)
    assert (code, said.count("\n")) == (2, 1)
    assert "is damaged: fit the model anew" in said


def test_what_the_key_keeps_is_not_named_in_the_certificate(tmp_path):
    frame = rooms()
    model = fitted(frame, BY_ROOM, private="p", key_file=tmp_path / "key.json")
    assert model.origin.seen is not None
    release = redacted(frame, BY_ROOM, tmp_path, model=model)
    assert release.certificate["evidence"]["unseen"] is True
    assert model.origin.seen not in json.dumps(release.certificate)


@pytest.mark.parametrize("alike", [True, False])
def test_whole_chains_go_only_where_chains_do_not_tell_of_each_other(alike, tmp_path):
    """Beside a chain that is gone stands its neighbour: nothing was gained if both are alike."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, size=(20, 150))
    if alike:
        values[1::2] = values[::2]
    keys = [(room, t) for room in range(20) for t in range(150)]
    frame = pl.DataFrame(keys, schema=["room", "t"], orient="row")
    frame = frame.with_columns(v=values.ravel(), p=pl.Series([key == (4, 60) for key in keys]))
    learned = off.fit(frame, **BY_ROOM, private="p", step=1, **LEARNING).model
    assert (learned.origin.dependence is not None) == alike
    broken = Verdict(epsilon=1.0, verdict="broken", counted=9.0, promised=2.7, cases=[9, 9])
    model = Model(learned.promise, learned.origin, (broken,))
    if alike:
        with pytest.raises(InputError, match="neighbouring ones depend on them"):
            redacted(frame, BY_ROOM | {"step": 1}, tmp_path, model=model)
    else:
        release = redacted(frame, BY_ROOM | {"step": 1}, tmp_path, model=model)
        assert release.summary.kind == "whole chains"


# ---- how far from private records a table's own fit stands


def _sticky(random, size, stay):
    """A chain of 0 and 1 that stays what it is with some probability."""
    return (np.cumsum(random.random(size) > stay) % 2).astype(int)


def test_a_sensor_by_the_minute_is_learned_from_beyond_the_reach_of_its_rules(tmp_path):
    """Half of its records are nearer to private ones than its rules reach."""
    random = np.random.default_rng(1)
    frame = pl.DataFrame({"t": range(20_000), "v": _sticky(random, 20_000, 0.97)})
    private = pl.Series(np.isin(np.arange(20_000), random.choice(20_000, 250, replace=False)))
    frame = frame.with_columns(p=private)
    release = redacted(frame, SINGLE, tmp_path, fit=True, private="p")
    distance = release.certificate["origin"]["distance"]
    places = np.flatnonzero(private.to_numpy())
    nearest = np.min(np.abs(np.arange(20_000)[:, None] - places), axis=1)
    assert distance > np.median(nearest)
    assert release.certificate["evidence"]["unseen"] is True
    assert set(explained(release)["region"].to_numpy()[nearest >= distance]) == {"S"}


def test_a_panel_with_a_private_record_of_every_person(tmp_path):
    """The report pictures it too: of order 2, the second record has no context two steps before."""
    random = np.random.default_rng(2)
    values = np.concatenate([_sticky(random, 12, 0.7) for _ in range(600)])
    frame = pl.DataFrame({"room": np.repeat(range(600), 12), "t": list(range(12)) * 600})
    private = np.zeros((600, 12), dtype=bool)
    private[np.arange(600), random.integers(0, 12, 600)] = True
    frame = frame.with_columns(v=pl.Series(values), p=pl.Series(private.ravel()))
    release = redacted(frame, BY_ROOM, tmp_path, fit=True, private="p", chain_order=2, phase="step")
    assert release.certificate["origin"]["distance"] >= 3
    assert release.summary.released > 0.1


def test_few_chains_without_a_private_record_are_not_all_that_is_learned_from(tmp_path):
    random = np.random.default_rng(3)
    values = np.concatenate([_sticky(random, 100, 0.6) for _ in range(40)])
    frame = pl.DataFrame({"room": np.repeat(range(40), 100), "t": list(range(100)) * 40})
    private = np.zeros((40, 100), dtype=bool)
    private[np.arange(39), random.integers(0, 100, 39)] = True
    frame = frame.with_columns(v=pl.Series(values), p=pl.Series(private.ravel()))
    release = redacted(frame, BY_ROOM, tmp_path, fit=True, private="p")
    assert release.fit.records > 1000
    assert release.certificate["origin"]["distance"] is not None


def test_ids_that_follow_the_values_are_replaced_as_the_page_says(tmp_path, monkeypatch):
    """People numbered in the order of their answers: refused; with random ids, released."""
    monkeypatch.chdir(tmp_path)
    drawn = panel(np.random.default_rng(3), trait=4.0)
    values = drawn.codes.reshape(300, 12)
    values = values[np.lexsort(values.T[::-1])]
    keys = {"room": np.repeat(np.arange(300), 12), "time": np.tile(np.arange(12), 300)}
    frame = pl.DataFrame(keys | {"state": values.ravel()})
    frame.write_parquet("readings.parquet")
    private = frame.filter(pl.col("room") % 30 == 7, pl.col("time") == 5)
    private.select("room", "time").write_csv("optouts.csv")
    asked = dict(value="state", order="time", by="room", step=1, fit=True, epsilon=0.5)
    asked |= dict(dataset="panel", key_file="key.json")
    with pytest.raises(InputError, match=r"9\d % of .* replace them by random ones.*fitting.md"):
        off.redact(frame, **asked, private_list="optouts.csv")
    (remedy,) = [block.text for block in blocks_of("docs/fitting.md") if block.kind == "python"]
    exec(remedy, {})
    renamed = pl.read_parquet("renamed.parquet")
    release = off.redact(renamed, **asked, private_list="renamed-optouts.csv")
    assert release.summary.kind == "whole chains"
    assert release.summary.released == pytest.approx(290 / 300)


def test_the_furthest_records_need_not_be_enough_to_learn_from(tmp_path):
    """Of the furthest ones no two are neighbours, so they say nothing of windows."""
    random = np.random.default_rng(4)
    near = [(t, v, t % 40 == 20) for t, v in enumerate(_sticky(random, 4_000, 0.6).tolist())]
    far = [(5_000 + 2 * t, int(random.integers(2)), False) for t in range(1_000)]
    frame = pl.DataFrame(near + far, schema=["t", "v", "p"], orient="row")
    release = redacted(frame, SINGLE, tmp_path, fit=True, private="p", step=1)
    assert release.fit.transitions > 0
