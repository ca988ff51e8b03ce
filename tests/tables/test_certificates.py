"""Certificates of real releases: of their form, and enough to compute every design's leakage from
nothing else.
"""

import json
from datetime import UTC, datetime, timedelta
from itertools import product
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
HOURS_BOX = off.Box(*[(np.clip(HOURS - 0.03, 0.01, 1), np.clip(HOURS + 0.03, 0, 1))] * 2)
MODELS = {
    "stationary": off.MarkovChain(BINARY),
    "three values": off.MarkovChain(THREE, labels=["dry", "wet", "snow"]),
    "a start": off.MarkovChain(BINARY, start=[1.0, 0.0]),
    "a kernel for each step": off.MarkovChain([BINARY, [[0.6, 0.4], [0.5, 0.5]]] * 9, [0.5, 0.5]),
    "order 2": off.MarkovChain([BINARY, [[0.6, 0.4], [0.2, 0.8]]], order=2),
    "hidden": off.MarkovChain(
        [[0.85, 0.05, 0.1], [0.2, 0.5, 0.3], [0.2, 0.2, 0.6]], shows=[0, 1, 1]
    ),
    "over a set": off.MarkovChain(BINARY, box=off.Box.binary((0.08, 0.12), (0.25, 0.35))),
    "over another set": off.MarkovChain(
        BINARY, box=off.Box(*[([[0.87, 0.08], [0.2, 0.65]], [[0.95, 0.125], [0.36, 0.8]])] * 2)
    ),
    "settled": off.MarkovChain(
        BINARY, box=off.Box.binary((0.08, 0.12), (0.25, 0.35), start="settled")
    ),
    "any start": off.MarkovChain(
        BINARY, box=off.Box.binary((0.08, 0.12), (0.25, 0.35), start="any")
    ),
    "hours over a set": off.PhasedChain(
        "hour", HOURS, np.tile([0.75, 0.25], (24, 1)), zone="UTC", box=HOURS_BOX
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
    # the set is left to the test's own walk
    chain = off.MarkovChain(kernels, start, order=model.order, shows=model.shows)
    inside = getattr(design, "inside", ()) or [1] * design.length
    private = [design.left + at for at, one in enumerate(inside, start=1) if one]
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
    if getattr(design, "inside", ()):
        matrix[first:last] = spelled_rows(certificate.designs.sides[design.redaction_inside])
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


def seen_outwards(rows, order, row=0):
    """What one side may show, nearest first: values and None, up to `order` values in a row."""
    if row == order or len(rows) == 0:
        return [()]
    shown = [(value, row + 1) for value in np.flatnonzero(rows[0] < 1)]
    silent = [(None, 0)] if np.any(rows[0] > 0) else []
    return [
        (symbol, *rest)
        for symbol, released in shown + silent
        for rest in seen_outwards(rows[1:], order, released)
    ]


def leakage_of_order(model, redaction, first, last):
    """A design of order m as the page says (R6), from the model's numbers alone: for each output
    and each value of the secret one pass along the chain.
    """
    kernel, start, order = np.array(model.transition), np.array(model.start), model.order
    left, right = redaction[: first - 1][::-1], redaction[last:]

    def chance(before, secret, after):
        state = start  # of the records before those that count
        weights = [weight(left[i], symbol) for i, symbol in enumerate(before)][::-1]
        weights += [np.eye(len(kernel))[value] for value in secret]
        weights += [weight(right[i], symbol) for i, symbol in enumerate(after)]
        for one in weights:
            state = (state[..., np.newaxis] * kernel).sum(axis=0) * one
        return state.sum()

    worst = 1.0
    secrets = list(product(range(len(kernel)), repeat=last - first + 1))
    for before, after in product(seen_outwards(left, order), seen_outwards(right, order)):
        told = [chance(before, secret, after) / chance((), secret, ()) for secret in secrets]
        worst = max(worst, max(told) / min(told))
    return np.log(worst)


def weight(row, symbol):
    """How likely a record shows this, by its value; the chance of a release cancels."""
    return row if symbol is None else np.eye(len(row))[symbol]


def rates(low, high):
    """What rows that sum to 1 leave of the intervals of P(0→1) and P(1→0)."""
    ends = []
    for x in (0, 1):
        least, most = max(low[x][1 - x], 1 - high[x][x]), min(high[x][1 - x], 1 - low[x][x])
        ends.append((least, most))
    return ends


def seen_at(row, least, most):
    """The ratios that a record with this row shows, the ratios beyond it between two."""
    zero, one = row
    seen = [0.0] * int(zero < 1) + [np.inf] * int(one < 1)
    if zero > 0:
        return [*seen, least * one / zero, most * one / zero]
    return [*seen, np.inf] if one > 0 else seen


def ahead(rho, alpha, beta):
    return (
        (1 - beta) / alpha
        if rho == np.inf
        else (beta + (1 - beta) * rho) / (1 - alpha + alpha * rho)
    )


def known_forwards(rho, alpha, beta, odds):
    """A step to the left by forward kernels, the odds of 1 between two: tried at many."""
    with np.errstate(divide="ignore"):
        tried = np.exp(np.linspace(*np.log(np.clip(odds, 1e-12, 1e12)), 4001))
    one, zero = (1 - beta) / alpha, beta / (1 - alpha)
    if rho == np.inf:
        return one / zero * (1 + zero * tried) / (1 + one * tried)
    return (
        (1 + one * tried * rho) / (1 + one * tried) * (1 + zero * tried) / (1 + zero * tried * rho)
    )


def worst_over_set(rows, boxes, odds=None):
    """Log-ratios 1 : 0 and 0 : 1 of one side by a walk towards the secret; boxes: nearest first."""
    least = most = 1.0
    for row, (low, high) in zip(rows[::-1].tolist(), boxes[::-1], strict=True):
        found = []
        for rho in seen_at(row, least, most):
            for alpha in rates(low, high)[0]:
                for beta in rates(low, high)[1]:
                    if odds is None:
                        found.append(ahead(rho, alpha, beta))
                    else:
                        found.extend(known_forwards(rho, alpha, beta, odds))
        least, most = min(found), max(found)
    return np.array([np.log(most), -np.log(least)])


def leakage_over_set(certificate, design, problem, redaction):
    """From nothing but the certificate's numbers: any two ends of a run may occur together."""
    models, n = certificate.model.set, problem.n
    forward, backward = (np.array(ends) for ends in (models.forward, models.backward))
    if certificate.model.phase is None:
        forward, backward = (
            np.repeat(ends[:, None], n - 1, axis=1) for ends in (forward, backward)
        )
    else:
        along = spelled_phases(certificate.designs.phases[design.phases], forward.shape[1])[:-1]
        forward, backward = forward[:, along], backward[:, along]
    odds = {"stationary": None, "any": (0.0, np.inf), "settled": (0.08 / 0.35, 0.12 / 0.25)}
    first, last = problem.private[0] - 1, problem.private[-1]
    left_ends = backward if models.start == "stationary" else forward
    left = worst_over_set(
        redaction[:first][::-1],
        list(zip(*left_ends[:, :first][:, ::-1], strict=True)),
        odds[models.start],
    )
    right = worst_over_set(redaction[last:], list(zip(*forward[:, last - 1 :], strict=True)))
    return (left + right).max() if last - first == 1 else left.max() + right.max()


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
        matrix = redaction_of(certificate, design, problem)
        found = off.leakage(problem, matrix)
        if certificate.model.set is None:
            assert found == pytest.approx(design.leakage, abs=1e-12 + design.rounding)
        else:
            over = leakage_over_set(certificate, design, problem, matrix)
            # of many odds tried the best may be missed by a little
            assert over == pytest.approx(
                design.leakage, abs=1e-5 if name in ("settled", "any start") else 1e-11
            )
            assert found <= design.leakage + design.rounding
        if name == "hidden":
            again = bound_on_states(certificate, problem, matrix)
            assert again == pytest.approx(design.leakage, abs=1e-9)
        if name == "order 2":
            ends = problem.private[0], problem.private[-1]
            told = leakage_of_order(certificate.model, matrix, *ends)
            assert told == pytest.approx(design.leakage, abs=1e-12 + design.rounding)
        assert design.leakage + design.rounding <= 1.0
        leakages.append(design.leakage)
    assert certificate.claim.leakage == max(leakages)
    exact = {"exact", "contexts", "generators", "one walk (R1)", "cones"}
    methods = {design.method for design in certificate.designs.designs}
    assert certificate.claim.leakage_is_exact == (methods <= exact)
    assert (methods <= exact) == (name not in ("hidden", "settled", "any start"))


NEAR = {"stationary": 0.0, "three values": 0.0, "over a set": 1e-11}


@pytest.mark.parametrize("protect", ["run", "each"])
@pytest.mark.parametrize("name", NEAR)
def test_so_is_one_of_clusters_of_near_secrets(name, protect, tmp_path):
    """Secret by secret, each from the numbers of its cluster's design alone; and windows that act
    instead of designs are told apart.
    """
    model = MODELS[name]
    frame = table(model, chains=2, n=20).with_columns(
        p=pl.int_range(pl.len()).is_in([8, 11, 12])  # of the first chain
    )
    release = off.redact(
        frame,
        **COLUMNS,
        step="1h",
        model=model,
        mechanism="best-local",
        protect=protect,
        dataset=name,
        key_file=Key.new(tmp_path / "key" / "key.json").file,
        accept_model=True,
    )
    release.write(tmp_path / "out.parquet")
    written = (tmp_path / "out.parquet.certificate.json").read_bytes()
    content = json.loads(written)
    jsonschema.Draft202012Validator(SCHEMA).validate(content)
    certificate = Certificate.from_json(written)
    assert certificate.to_json() == written
    designs = certificate.designs
    assert designs.kind == "clustered"
    assert sum(design.uses for design in designs.designs) == certificate.counts.secrets
    assert any(design.inside for design in designs.designs)
    assert certificate.claim.leakage == max(design.leakage for design in designs.designs)
    for design in designs.designs:
        problem = problem_of(certificate, design)
        matrix = redaction_of(certificate, design, problem)
        leakages = []
        for first, last in problem.secrets:
            ends = range(first, last + 1)
            alone = off.Problem(problem.chain, problem.n, ends, problem.epsilon, protect)
            assert np.all(matrix[first - 1 : last] == 1)
            if certificate.model.set is None:
                leakages.append(off.leakage(alone, matrix))
            else:
                leakages.append(leakage_over_set(certificate, design, alone, matrix))
        assert max(leakages) == pytest.approx(design.leakage, abs=1e-11 + design.rounding)
        assert design.leakage + design.rounding <= designs.epsilon


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"inside": [1, 0]}, r"designs\.designs\[\d\]\.inside"),
        ({"redaction_inside": None}, r"designs\.designs\[\d\]\.redaction_inside"),
        ({"redaction_inside": 99}, r"designs\.designs\[\d\]\.redaction_inside"),
        ({"inside": []}, r"designs\.designs\[\d\]\.inside"),
    ],
    ids=str,
)
def test_a_cluster_that_is_none_is_refused(change, said):
    frame = pl.DataFrame({"id": 0, "t": range(24), "v": 0, "p": [t in (8, 11) for t in range(24)]})
    model = MODELS["stationary"]
    options = COLUMNS | {"mechanism": "best-local", "dataset": "d", "dry_run": True}
    content = off.redact(frame, **options, model=model, accept_model=True).certificate
    content = json.loads(json.dumps(content))
    (cluster,) = [one for one in content["designs"]["designs"] if one["inside"]]
    cluster.update(change)
    with pytest.raises(off.InputError, match=said):
        Certificate.from_json(json.dumps(content).encode())
