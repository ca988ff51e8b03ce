"""reproduce: the paper beside what is computed."""

import json
from pathlib import Path

from offrecord.paper import figures, numbers


def test_reproduce_writes_the_figures_and_agrees(run, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FIG2_EPSILONS", [0.5, 1.0])
    code, out, _ = run("reproduce", "-o", tmp_path / "figures", "--json")
    content = json.loads(out)
    assert (code, content["failed"]) == (0, 0)
    assert {Path(f).name for f in content["figures"]} == {
        f"fig{i}.{k}" for i in (1, 2, 3) for k in ("svg", "png")
    }
    assert (tmp_path / "figures" / "fig2.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figures" / "fig1.svg").read_text().startswith("<svg")
    code, _, err = run("reproduce", "-o", tmp_path / "figures")
    assert code == 2
    assert "exists" in err


def test_reproduce_exits_1_if_a_number_disagrees(run, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FIG2_EPSILONS", [0.5, 1.0])
    wrong = numbers.Check("Fig. 2", "made up", 0.5, 0.6, 1e-3)
    monkeypatch.setattr(numbers, "checks", lambda: [wrong])
    code, out, _ = run("reproduce", "-o", tmp_path / "f")
    assert code == 1
    assert "DISAGREES" in out
