"""Certificates of real releases: of their form, and enough to compute every design's leakage from
nothing else.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.release.certificate import Certificate, spelled_phases, spelled_rows
from offrecord.release.keys import Key

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs" / "certificate.schema.json").read_text(encoding="utf-8")
)
COLUMNS = {"value": "v", "order": "t", "by": "id", "private": "p", "epsilon": 1.0}
BINARY = [[0.9, 0.1], [0.3, 0.7]]
THREE = [[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]
HOURS = np.stack([[[1 - a, a], [0.3, 0.7]] for a in np.linspace(0.05, 0.4, 24)])
MODELS = {
    "stationary": off.MarkovChain(BINARY),
    "three values": off.MarkovChain(THREE, labels=["dry", "wet", "snow"]),
    "a start": off.MarkovChain(BINARY, start=[1.0, 0.0]),
    "a kernel for each step": off.MarkovChain([BINARY, [[0.6, 0.4], [0.5, 0.5]]] * 9, [0.5, 0.5]),
    "order 2": off.MarkovChain([BINARY, [[0.6, 0.4], [0.2, 0.8]]], order=2),
    "hidden": off.MarkovChain(
        [[0.85, 0.05, 0.1], [0.2, 0.5, 0.3], [0.2, 0.2, 0.6]], shows=[0, 1, 1]
    ),
    "hours": off.PhasedChain("hour", HOURS, np.tile([0.75, 0.25], (24, 1)), zone="UTC"),
}


def table(model, chains=6, n=19):
    """Some chains of some hours, of which a few records are private."""
    rng = np.random.default_rng(3)
    start = datetime(2026, 3, 1, 17, tzinfo=UTC)
    rows = [
        {
            "id": chain,
            "t": start + timedelta(hours=7 * chain + t),
            "v": model.labels[rng.integers(model.k)],
            "p": (chain, t) in {(0, 4), (1, 0), (2, 9), (2, 10), (4, 18), (5, 3)},
        }
        for chain in range(chains)
        for t in range(n)
    ]
    return pl.DataFrame(rows)


def problem_of(certificate, design):
    """What a design was made for, read off the certificate as its page says."""
    model = certificate.model
    n = certificate.designs.records(design, model.order)
    kernels, start = np.array(model.transition), np.array(model.start)
    if model.phase is not None:
        runs = certificate.designs.phases[design.phases]
        along = spelled_phases(runs, len(kernels))
        kernels, start = kernels[along[:-1]], start[along[0]]
    chain = off.MarkovChain(kernels, start, order=model.order, shows=model.shows)
    private = range(design.left + 1, design.left + design.length + 1)
    return off.Problem(chain, n, private, certificate.designs.epsilon, certificate.designs.protect)


def redaction_of(certificate, design, problem):
    """(n, k) the design's own probabilities."""
    matrix = np.ones((problem.n, certificate.model.k))
    first, last = problem.private[0] - 1, problem.private[-1]
    for side, rest, view in (
        (design.redaction_left, design.left_rest, matrix[:first][::-1]),
        (design.redaction_right, design.right_rest, matrix[last:]),
    ):
        rows = spelled_rows(certificate.designs.sides[side])
        view[:] = float(rest)
        view[: len(rows)] = np.array(rows).reshape(len(rows), matrix.shape[1])
    return matrix


def bound_on_states(certificate, problem, redaction):
    """Of one secret or a run, as the certificate's page says for hidden states."""
    model = certificate.model
    kernel, often = np.array(model.transition), np.array(model.start)
    shows, h = np.array(model.shows), len(model.shows)
    back = (kernel * often[:, None]).T / often[:, None]
    first, last = problem.private[0] - 1, problem.private[-1]
    sides = []
    for step, rows in ((back, redaction[:first][::-1]), (kernel, redaction[last:])):
        worst, reached = np.zeros((h, h)), np.eye(h)
        for row in rows[:, shows]:
            if not reached.any():
                break
            reached = reached @ step
            shown = reached[:, row < 1]
            if shown.size:
                logs = np.log(shown)
                worst = np.maximum(worst, (logs[:, None] - logs[None]).max(axis=2))
            reached = reached * row
        silent = reached.sum(axis=1)
        if silent.max() > 0:
            worst = np.maximum(worst, np.log(silent[:, None] / silent))
        sides.append(worst)
    if last - first == 1:
        return float(np.where(shows[:, None] != shows, sides[0] + sides[1], 0).max())
    return float(sides[0].max() + sides[1].max())  # any two ends may occur together


@pytest.mark.parametrize("mechanism", ["window", "3r-constant"])
@pytest.mark.parametrize("name", MODELS)
def test_a_certificate_is_enough_to_compute_what_it_claims(name, mechanism, tmp_path):
    key, model = Key.new(tmp_path / "key" / "key.json"), MODELS[name]
    release = off.redact(
        table(model),
        **COLUMNS,
        step="1h",
        model=model,
        mechanism=mechanism,
        dataset=name,
        key_file=key.file,
        publish_positions=True,
        accept_model=True,
        design_minutes=1000,
    )
    release.write(tmp_path / "out.parquet")
    written = (tmp_path / "out.parquet.certificate.json").read_bytes()
    content = json.loads(written)
    jsonschema.Draft202012Validator(SCHEMA).validate(content)
    certificate = Certificate.from_json(written)
    assert certificate.to_json() == written
    assert content == {**release.certificate, "output": content["output"]}
    assert sum(design.uses for design in certificate.designs.designs) == certificate.counts.secrets
    leakages = []
    for design in certificate.designs.designs:
        problem = problem_of(certificate, design)
        found = off.leakage(problem, redaction_of(certificate, design, problem))
        assert found == pytest.approx(design.leakage, abs=1e-12 + design.rounding)
        if name == "hidden":
            matrix = redaction_of(certificate, design, problem)
            again = bound_on_states(certificate, problem, matrix)
            assert again == pytest.approx(design.leakage, abs=1e-9)
        assert design.leakage + design.rounding <= 1.0
        leakages.append(design.leakage)
    assert certificate.claim.leakage == max(leakages)
    assert certificate.claim.leakage_is_exact == (name not in ("order 2", "hidden"))
