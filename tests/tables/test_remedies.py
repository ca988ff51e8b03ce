"""Every refusal of the planner, and each of its remedies followed to the letter."""

import json
import re
import shlex
from contextlib import chdir
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord import cli
from offrecord.models.posterior import Posterior
from offrecord.tables.advice import merged

READ = ["--value", "state", "--order", "step", "--by", "who", "--step", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with chdir(tmp_path):
        yield tmp_path


def walks(chains, length, stay=0.8, k=2, seed=0):
    """People whose state mostly stays as it is."""
    rng, rows = np.random.default_rng(seed), []
    for who in range(chains):
        state = int(rng.integers(k))
        for step in range(length):
            rows.append((who, step, "abc"[state]))
            if rng.random() > stay:
                state = (state + int(rng.integers(1, k))) % k
    return pl.DataFrame(rows, schema=["who", "step", "state"], orient="row")


def with_memory(chains, length, seed=0):
    """States that follow the one three steps before."""
    rng, rows = np.random.default_rng(seed), []
    for who in range(chains):
        values = rng.integers(2, size=length)
        for step in range(3, length):
            if rng.random() < 0.9:
                values[step] = values[step - 3]
        rows += [(who, step, "ab"[value]) for step, value in enumerate(values)]
    return pl.DataFrame(rows, schema=["who", "step", "state"], orient="row")


def write(table, private=None, reference=None):
    """Files of a table, its private records and what a model is learned from."""
    table.write_csv("t.csv")
    if private is None:  # one of each chain
        length = table["step"].max() + 1
        private = table.select("who").unique(maintain_order=True).with_columns(step=length // 2)
    private.write_csv("private.csv")
    if reference is not None:
        reference.write_csv("r.csv")


def run(capsys, *words):
    code = cli.main([str(word) for word in words])
    return code, *capsys.readouterr()


def fit(capsys, *more):
    code, _, said = run(capsys, "fit", "r.csv", *READ, *more, "-o", "m.json", "--force")
    assert code == 0, said


def redact(capsys, *more, data="d", model=True):
    """Redact; of an option that is given twice the last one counts."""
    given = ["--epsilon", "1", "--dataset", data, "--private-list", "private.csv"]
    given += ["--model", "m.json"] if model else []
    given += [] if "--report" in more else ["--no-report"]
    words = ["redact", "t.csv", *READ, *given, "-o", "o.csv", "--force"]
    code, out, said = run(capsys, *words, *more)
    return code, out, " ".join(said.split())


def refusal(capsys, *more, **how):
    code, _, said = redact(capsys, *more, **how)
    assert code == 2, said
    assert redact(capsys, *more, "--dry-run", **how)[0] == 2
    return said


def changes(said):
    """What the message says would help: lists of words for fit, and for redact."""
    for change in re.findall(r"(?:What would help: |, or )(.+?) \((?:about|at most)", said):
        words, _, rest = change.removeprefix("a model fitted with ").partition(", and ")
        if "times as many" not in change:
            fitted = words != change and change.startswith("a model")
            yield (words.split(), rest.split()) if fitted else ([], change.split())


def follow(capsys, said, *more, data="f", least=0.02):
    """Each change that a message names releases more."""
    listed = list(changes(said))
    assert listed, said
    for number, (learned, asked) in enumerate(listed):
        fit(capsys, *learned)
        words = [*more, *asked, "--json"]
        code, out, error = redact(capsys, *words, data=f"{data}{number}")
        assert code == 0, (learned, asked, error)
        assert json.loads(out)["released"] > least, (learned, asked)


# ---- little is left


def test_an_empty_table_is_refused_with_what_helps(capsys):
    write(walks(30, 8, seed=1), reference=walks(300, 8))
    fit(capsys)
    said = refusal(capsys, "--epsilon", "0.25")
    assert "of 240 records less than one is expected to leave" in said
    assert "--epsilon" in said
    follow(capsys, said)
    fit(capsys)
    code, out, _ = redact(capsys, "--epsilon", "0.25", "--accept", "empty", "--keep-rows")
    assert code == 0
    assert out.startswith("little left  0.00% of the records, where erasing private ones alone")


def test_where_values_are_rare_fewer_of_them_help(capsys):
    """A rare label in a model of order 2 has contexts that were never seen."""
    reference, table = walks(60, 12), walks(40, 12, seed=1)
    rare = np.random.default_rng(1)
    reference, table = (
        one.with_columns(
            state=pl.when(pl.Series(rare.random(len(one)) < 0.03))
            .then(pl.lit("c"))
            .otherwise("state")
        )
        for one in (reference, table)
    )
    write(table, reference=reference)
    fit(capsys, "--chain-order", "2")
    said = refusal(capsys, "--epsilon", "4")
    assert re.search(r"a model fitted with --merge 2 \(at most \d+% would leave\)", said)
    follow(capsys, said, "--epsilon", "4", least=0.4)


def test_a_release_that_keeps_little_says_so_first(capsys):
    """In its first line, the report and --json; the change it names lets more leave."""
    table = walks(60, 8, seed=1)
    private = pl.DataFrame({"who": range(50), "step": [4] * 50})
    write(table, private, reference=walks(300, 8))
    fit(capsys)
    code, out, _ = redact(capsys, "--epsilon", "0.25", "--report", "r.html")
    assert code == 0
    first = out.splitlines()[0]
    assert first.startswith("little left  16.67% of the records")
    assert "where erasing private ones alone would keep 89.58%" in first
    assert "What would help: --epsilon" in first
    assert "Little is left: 16.67%" in Path("r.html").read_text(encoding="utf-8")
    code, out, _ = redact(capsys, "--epsilon", "0.25", "--dry-run", "--json", data="e")
    content = json.loads(out)
    assert first.endswith(content["advice"])
    follow(capsys, content["advice"], least=0.3)


def test_counts_of_merged_values_are_those_of_merged_data():
    rng = np.random.default_rng(0)
    for k, order, kept in ((3, 1, 2), (4, 2, 2), (5, 2, 3)):
        values = rng.integers(0, k, 4000)

        def counted(values, k, order):
            counts = np.zeros((k,) * (order + 1), dtype=int)
            places = tuple(values[i : len(values) - order + i] for i in range(order + 1))
            np.add.at(counts, places, 1)
            return counts.reshape(-1, k)

        posterior = Posterior(counted(values, k, order), order)
        often = np.argsort(-posterior.counts.sum(axis=0), kind="stable")[: kept - 1].tolist()
        fewer = np.array([often.index(one) if one in often else kept - 1 for one in values])
        assert np.array_equal(merged(posterior, kept).counts, counted(fewer, kept, order))


# ---- no rules act


def test_a_broken_model_of_few_chains(capsys):
    private = pl.DataFrame({"who": [1], "step": [200]})
    write(with_memory(3, 400, seed=1), private, with_memory(9, 400))
    fit(capsys, "--chain-order", "1")
    said = refusal(capsys)
    assert "the model is broken at ε = 1" in said
    assert "or add --accept model" in said
    assert redact(capsys, "--accept", "model")[0] == 0
    assert "a --private-list of who alone" in said
    pl.DataFrame({"who": [1]}).write_csv("private.csv")
    assert redact(capsys, data="whole", model=False)[0] == 0
    assert "a higher --chain-order" in said
    private.write_csv("private.csv")
    fit(capsys, "--chain-order", "3")
    assert redact(capsys, data="higher")[0] == 0


def test_a_chain_that_never_forgets(capsys):
    """No window keeps any ε, so nothing helps but whole chains."""
    table = walks(3, 40).with_columns(
        state=pl.when(pl.col("step") % 2 == 0).then(pl.lit("a")).otherwise(pl.lit("b"))
    )
    write(table, pl.DataFrame({"who": [1], "step": [20]}))
    off.MarkovChain([[0.0, 1.0], [1.0, 0.0]], labels=["a", "b"]).save("m.json")
    said = refusal(capsys)
    assert "with 3 chains whole ones do not go unasked" in said
    assert "Nothing helps of what was tried: a larger --epsilon" in said
    assert "a --private-list of who alone" in said
    pl.DataFrame({"who": [1]}).write_csv("private.csv")
    assert redact(capsys, model=False)[0] == 0


def test_chains_that_depend_on_each_other(capsys):
    """Pairs of people share all their states, so whole chains do not protect."""
    one = walks(60, 20)
    twins = pl.concat([one.with_columns(who=2 * pl.col("who") + extra) for extra in (0, 1)])
    reference = twins.sort("who", "step")
    write(walks(30, 20, seed=1), reference=reference)
    fit(capsys)
    said = refusal(capsys, "--epsilon", "0.02")
    assert "neighbouring ones depend on them" in said
    follow(capsys, said)
    fit(capsys)
    code, out, said = redact(capsys, "--report", "r.html", "--json", data="twins")
    assert code == 0
    assert "the ids leak values, or neighbouring chains depend on each other: " in said
    assert "The ids leak values, or neighbouring" in Path("r.html").read_text(encoding="utf-8")
    listed = json.loads(out)["warnings"]
    assert len([one for one in listed if "random ones; if neighbours belong together" in one]) == 1


def test_a_growing_table_at_no_budget(capsys):
    write(walks(30, 200, seed=1), reference=walks(40, 200))
    fit(capsys)
    said = refusal(capsys, "--epsilon", "0", "--growing")
    assert "whole chains cannot go from a table that grows" in said
    follow(capsys, said, "--growing")


# ---- given rules, and what is asked for


def test_rules_that_do_not_serve_the_table(capsys):
    write(walks(30, 60, seed=1), reference=walks(40, 60))
    fit(capsys)
    words = ["design", "--table", "--model", "m.json", "--epsilon", "1", "--mechanism", "window"]
    assert run(capsys, *words, "-o", "p.json", "--force")[0] == 0
    said = refusal(capsys, "--policy", "p.json", "--epsilon", "0.1")
    assert "the policy exceeds ε = 0.1" in said
    assert "Leave --policy out" in said
    assert redact(capsys, "--epsilon", "0.1", "--accept", "empty")[0] == 0
    said = refusal(capsys, "--policy", "p.json", "--protect", "each", data="each")
    assert "add --protect run" in said
    assert redact(capsys, "--policy", "p.json", "--protect", "run", data="each")[0] == 0


def test_no_model_no_private_record_and_nothing_but_private_ones(capsys):
    write(walks(30, 60, seed=1), reference=walks(40, 60))
    assert "give either --model or --fit" in refusal(capsys, model=False)
    fit(capsys)
    assert redact(capsys)[0] == 0
    said = refusal(capsys, "--epsilon", "2")
    assert "add --accept another-release" in said
    (command,) = re.findall("take it back: `offrecord (.+?)`", said)
    assert run(capsys, *shlex.split(command))[0] == 0
    assert redact(capsys)[0] == 0
    assert redact(capsys, "--epsilon", "2", "--accept", "another-release")[0] == 0
    pl.DataFrame({"who": [], "step": []}, schema={"who": pl.Int64, "step": pl.Int64}).write_csv(
        "private.csv"
    )
    said = refusal(capsys, data="none")
    assert "add --accept none" in said
    assert redact(capsys, "--accept", "none", data="none")[0] == 0
    pl.DataFrame({"who": range(30)}).write_csv("private.csv")
    said = refusal(capsys, data="all")
    assert "--keep-rows keeps their rows" in said
    assert redact(capsys, "--keep-rows", data="all")[0] == 0


def test_chains_longer_than_the_model_knows(capsys):
    write(walks(30, 60, seed=1), reference=walks(300, 12))
    fit(capsys, "--phase", "step")
    said = refusal(capsys)
    assert "fit a model with --phase none" in said
    fit(capsys, "--phase", "none")
    assert redact(capsys)[0] == 0


# ---- small tables


@pytest.mark.parametrize("rows", [150, 300])
def test_small_tables_are_released_and_say_that_nothing_can_be_counted(rows):
    """One chain of days, and people of 15 days."""
    for table, by in ((walks(1, rows, stay=0.6), None), (walks(rows // 15, 15, stay=0.6), "who")):
        chain = {"single_chain": True} if by is None else {"by": by}
        private = table[[rows // 2]].select(*([by] if by else []), "step")
        with pytest.warns(off.OffrecordWarning):
            release = off.redact(
                table, value="state", order="step", step=1, private_list=private, fit=True,
                epsilon=2.0, dataset=f"{by}", **chain,
            )  # fmt: skip
        assert not release.summary.verdict.startswith("broken")
        if rows == 150:
            assert release.summary.verdict.startswith("not shown")
        assert release.summary.released > 0.5
