"""compare: mechanisms side by side."""

import csv
import json

import offrecord as off


def test_compare_prints_writes_and_draws(run, tmp_path):
    arguments = [
        "compare",
        "--alpha",
        0.01,
        "--beta",
        0.8,
        "--n",
        10,
        "--private",
        1,
        "--epsilon",
        "0.5,1",
    ]
    code, out, _ = run(*arguments, "--csv", tmp_path / "t.csv", "--picture", tmp_path / "t.svg")
    assert code == 0
    assert "0.7134" in out
    assert "Theorem 2" in out
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert len(rows) == 2 * (1 + len(off.MECHANISMS))
    assert all(float(row["leakage"]) <= float(row["epsilon"]) for row in rows if row["leakage"])
    assert (tmp_path / "t.svg").read_text().startswith("<svg")
    code, _, err = run(*arguments, "--csv", tmp_path / "t.csv")
    assert code == 2
    assert "exists" in err
    code, out, _ = run(*arguments, "--json", "--mechanism", "window,3r-constant")
    content = json.loads(out)
    assert [r["mechanism"] for r in content["results"]][1:3] == ["window", "3r-constant"]


def test_compare_over_a_range_and_another_chain(run, tmp_path):
    off.MarkovChain([[0.9, 0.05, 0.05], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]).save(tmp_path / "m.json")
    arguments = [
        "compare",
        "--model",
        tmp_path / "m.json",
        "--n",
        20,
        "--private",
        9,
        "--epsilon",
        "0.5:1.5:3",
    ]
    code, out, _ = run(*arguments, "--json")
    results = json.loads(out)["results"]
    assert code == 0
    assert sorted({row["epsilon"] for row in results}) == [0.5, 1.0, 1.5]
    assert "quilt" not in {row["mechanism"] for row in results}
    code, _, err = run(*arguments, "--mechanism", "quilt")
    assert code == 2
    assert "quilt takes stationary chains" in err
    for wrong in ("0.5:1.5", "2:1:5", "a", "0:1:1", "nan", "0.1:inf:3"):
        assert run(*arguments[:-1], wrong)[0] == 2
    code, _, err = run(*arguments, "--picture", tmp_path / "x.gif")
    assert code == 2
    assert "picture must end in .svg, .png, .html" in err


def test_a_chain_must_be_named(run):
    for arguments in (["--alpha", 0.1, "--beta", 0.1], ["--n", 9, "--private", 1]):
        code, out, err = run("compare", "--epsilon", 1, *arguments)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert "give --" in err
