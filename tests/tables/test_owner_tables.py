"""Tables redacted by the owner's mechanism: what is foretold comes, what every outcome's chance is,
designs files, certificates.
"""

import base64
import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples
from offrecord.release.certificate import Certificate
from offrecord.release.keys import Key

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs" / "certificate.schema.json").read_text(encoding="utf-8")
)
CHAIN = off.MarkovChain([[0.9, 0.1], [0.3, 0.7]])
HOURS = np.stack([[[1 - a, a], [0.3, 0.7]] for a in np.linspace(0.05, 0.4, 24)])
MODELS = {
    "two values": CHAIN,
    "three values": off.MarkovChain([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]),
    "order 2": off.MarkovChain([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], order=2),
    "over a set": CHAIN.with_box(off.Box.binary((0.09, 0.11), (0.28, 0.32))),
    "a start": off.MarkovChain(CHAIN.transition, start=[1.0, 0.0]),
    "hours": off.PhasedChain("hour", HOURS, np.tile([0.75, 0.25], (24, 1)), zone="UTC"),
}
COLUMNS = {"value": "v", "order": "t", "by": "id", "private": "p", "mechanism": "owner"}


@pytest.fixture
def key(tmp_path):
    return Key.new(tmp_path / "keys" / "key.json")


def table(model, chains=40, n=30, share=0.1, seed=1, gone=0.0, empty=0.0):
    """Chains of some hours, some of their records private, some missing, some without a value."""
    rng = np.random.default_rng(seed)
    alike = model if model.transition.ndim == 2 else CHAIN
    values = samples(alike, chains, n, rng).ravel()
    start = datetime(2026, 3, 1, tzinfo=UTC)
    frame = pl.DataFrame(
        {
            "id": np.repeat(np.arange(chains), n),
            "t": [start + timedelta(hours=t) for t in range(n)] * chains,
            "v": values,
            "p": rng.random(chains * n) < share,
        }
    )
    # of private ones without a value nothing is foretold
    full = pl.Series(rng.random(frame.height) >= empty) | pl.col("p")
    frame = frame.with_columns(pl.when(full).then("v"))
    return frame.filter(pl.Series(rng.random(frame.height) >= gone))


def redacted(frame, model, key, **options):
    given = COLUMNS | {"model": model, "epsilon": 1.0, "dataset": "d", "step": "1h"} | options
    return off.redact(frame, key_file=key.file, accept_model=True, design_minutes=1000, **given)


# ---- what comes


@pytest.mark.filterwarnings("ignore::offrecord.errors.ChosenByValue")
@pytest.mark.parametrize(
    ("private", "values"),
    [
        ([3], [0, 0, 1, 1, 0, 0, 0]),
        ([1], [1, 1, 0, 0, 1, 0, 0]),
        ([3, 5], [0, 0, 0, 1, 1, 0, 0]),  # one choice serves the gap
        ([2, 3, 6], [0, 1, 1, 0, 0, 0, 1]),
    ],
)
def test_coins_give_every_outcome_its_chance(private, values, key):
    """The same chain three thousand times, each with coins of its own, beside what a policy lists
    from its thresholds.
    """
    count, n = 3000, len(values)
    frame = pl.DataFrame(
        {
            "id": np.repeat(np.arange(count), n),
            "t": np.tile(np.arange(n), count),
            "v": values * count,
            "p": [t + 1 in private for t in range(n)] * count,
        }
    )
    chain = off.MarkovChain.binary(0.1, 0.3)
    release = redacted(frame, chain, key, step=1, epsilon=1.4)
    policy = off.design(off.Problem(chain, n, private, 1.4), "owner")
    expected = {mask.tobytes(): chance for mask, chance in policy.outcomes(values)}
    assert len(expected) >= 2
    masks = release.frame["v"].is_not_null().to_numpy().reshape(count, n)
    found = dict.fromkeys(expected, 0)
    for mask in masks:
        found[mask.tobytes()] += 1  # no other mask
    for mask, chance in expected.items():
        assert abs(found[mask] - chance * count) <= 5 * np.sqrt(chance * (1 - chance) * count) + 1
    assert np.all(
        release.frame["v"].to_numpy().reshape(count, n)[masks]
        == frame["v"].to_numpy().reshape(count, n)[masks]
    )


@pytest.mark.parametrize("model", MODELS)
def test_a_dry_run_foretells_what_comes(model, key):
    """Without a look at values: a table of the model with dense secrets has on average what is
    expected, and every row is what its region says.
    """
    few = {"chains": 3, "n": 16} if model in ("a start", "hours") else {}
    model = MODELS[model]
    frame = table(model, gone=0.05, empty=0.05, **few)
    dry = redacted(frame, model, key, dry_run=True)
    rule = dry.explain()
    assert dry.summary.mechanism == "owner"
    foretold = 1 - rule["Pr(redacted)"].filter(frame["v"].is_not_null()).mean()
    assert dry.summary.released == pytest.approx(foretold, abs=1e-9)
    release = redacted(frame, model, key)
    check_certificate(release)
    gone = release.frame["v"].is_null() & frame["v"].is_not_null()
    valued = frame["v"].is_not_null()
    assert gone.filter(rule["region"].is_in(["L", "private"]) & valued).all()
    assert not gone.filter(rule["region"] == "S").any()
    assert release.explain().equals(rule)
    assert release.summary.redacted == gone.sum()
    assert release.summary.leakage <= 1.0


def test_the_expected_share_is_the_average_of_releases(key):
    shares, foretold = [], []
    for seed in range(12):
        frame = table(CHAIN, chains=150, share=0.08, seed=seed, gone=0.05, empty=0.05)
        options = {"dataset": f"d{seed}", "designs": key.file.parent / "designs.json"}
        foretold.append(redacted(frame, CHAIN, key, dry_run=True, **options).summary.released)
        shares.append(redacted(frame, CHAIN, key, **options).summary.released)
    assert np.mean(shares) == pytest.approx(np.mean(foretold), abs=0.004)
    assert all(a == pytest.approx(b, abs=0.02) for a, b in zip(shares, foretold, strict=True))


def test_it_releases_more_than_windows_and_local_ones(key):
    frame = table(CHAIN, chains=100, share=0.05)
    owner = redacted(frame, CHAIN, key).summary
    local = redacted(frame, CHAIN, key, mechanism="best-local", dataset="local").summary
    assert owner.released > local.released > owner.window - 1e-9


# ---- designs files


def content_of(file):
    return json.loads(Path(file).read_text())


def test_a_sealed_designs_file_serves_again(key, tmp_path, monkeypatch):
    file = tmp_path / "designs.json"
    frame = table(CHAIN)
    first = redacted(frame, CHAIN, key, designs=file)
    kept = file.read_bytes()
    from offrecord.mechanisms.owner import menu

    def never(*_):
        raise AssertionError("nothing is designed anew")

    for made in ("stopping_side", "stopping_pair", "gap_stopping"):
        monkeypatch.setattr(menu, made, never)
    again = redacted(frame, CHAIN, key, designs=file)
    assert again.frame.equals(first.frame)
    assert again.certificate == first.certificate
    assert file.read_bytes() == kept


def test_gaps_of_other_lengths_extend_it_and_leave_the_rest_as_it_was(key, tmp_path):
    """So a table that was released before is released again as it was."""
    file = tmp_path / "designs.json"

    def spaced(*private):
        frame = table(CHAIN, chains=12, n=20, share=0.0)
        return frame.with_columns(p=pl.col("t").dt.hour().is_in(private))

    first = redacted(spaced(0, 4, 6, 14, 15), CHAIN, key, designs=file)
    lengths = [{gap["length"] for gap in one["gaps"]} for one in content_of(file)["stoppings"]]
    redacted(spaced(8, 11), CHAIN, key, designs=file, dataset="other")
    longer = [{gap["length"] for gap in one["gaps"]} for one in content_of(file)["stoppings"]]
    assert {1} <= set.union(*lengths)
    assert {1, 2} <= set.union(*longer)
    again = redacted(spaced(0, 4, 6, 14, 15), CHAIN, key, designs=file)
    assert again.frame.equals(first.frame)
    assert again.certificate == first.certificate
    assert not any("other release" in warning for warning in again.summary.warnings)


def tampered(content, change):
    """Without its seal."""
    content = copy.deepcopy(content)
    content.pop("seal")
    change(content)
    return content


def stop_at_once(content):
    """Every threshold of every side the largest there is: releasing begins right away."""
    for stopping in content["stoppings"]:
        for side in stopping["sides"]:
            raw = base64.b64decode(side["stop"])
            side["stop"] = base64.b64encode(b"\xff" * len(raw)).decode()


def shorter_deadlines(content):
    """Only the deadline is left, and it comes at once."""
    for stopping in content["stoppings"]:
        stopping["pair"], stopping["gaps"] = None, []
        for side in stopping["sides"]:
            side |= {"levels": [1], "ahead": False, "stop": ""}


def larger_budgets(content):
    for stopping in content["stoppings"]:
        for side in stopping["sides"]:
            side["budget"] *= 2


@pytest.mark.parametrize("change", [stop_at_once, shorter_deadlines, larger_budgets])
def test_a_tampered_designs_file_is_judged_as_it_would_be_used(change, key, tmp_path):
    file, frame = tmp_path / "designs.json", table(CHAIN)
    honest = redacted(frame, CHAIN, key, designs=file)
    content = content_of(file)
    file.write_text(json.dumps(tampered(content, change)))
    found = redacted(frame, CHAIN, key, designs=file)
    assert any("does not keep within ε" in warning for warning in found.summary.warnings)
    assert found.explain().equals(honest.explain())
    assert content_of(file)["stoppings"] == content["stoppings"]


def test_an_honest_file_without_a_seal_is_taken(key, tmp_path):
    file, frame = tmp_path / "designs.json", table(CHAIN)
    honest = redacted(frame, CHAIN, key, designs=file)
    file.write_text(json.dumps(tampered(content_of(file), lambda _: None)))
    found = redacted(frame, CHAIN, key, designs=file)
    assert found.summary.warnings == honest.summary.warnings
    assert found.explain().equals(honest.explain())


# ---- certificates


def check_certificate(release):
    """Of the kind owner; what is written comes back."""
    content = json.loads(json.dumps(release.certificate))
    jsonschema.Draft202012Validator(SCHEMA).validate(content)
    assert content["designs"]["kind"] == "owner"
    assert content["claim"]["mechanism"] == content["designs"]["mechanism"] == "owner"
    assert content["claim"]["leakage"] <= content["claim"]["epsilon"] == 1.0
    assert not content["claim"]["leakage_is_exact"]
    assert Certificate.from_dict(content).to_dict() == content
    uses = sum(design["uses"] for design in content["designs"]["designs"])
    assert uses == content["counts"]["secrets"]


def test_a_key_inside_a_gap_protects_the_gap(key):
    """The walks beside a record that is not there look at nothing."""
    frame = pl.DataFrame({"id": [0] * 8, "t": [0, 1, 2, 3, 6, 7, 8, 9], "v": [0] * 8})
    keys = pl.DataFrame({"id": [0], "t": [4]})
    rules = []
    for values in ([0] * 8, [1] * 8):
        given = {"private": None, "private_list": keys, "step": 1, "dataset": str(values)}
        changed = frame.with_columns(v=pl.Series(values))
        release = redacted(changed, CHAIN, key, **given)
        rules.append(release.frame["v"].is_null().to_list())
        assert "private" not in release.explain()["region"]
    assert rules[0] == rules[1]


# ---- where it does not serve


@pytest.mark.parametrize(
    "model",
    [
        off.MarkovChain([[0.85, 0.05, 0.1], [0.2, 0.5, 0.3], [0.2, 0.2, 0.6]], shows=[0, 1, 1]),
        CHAIN.with_box(off.Box.binary((0.08, 0.12), (0.25, 0.35), start="any")),
    ],
    ids=["hidden states", "any start"],
)
def test_what_is_not_proven_gets_the_best_local_mechanism_and_says_so(model, key):
    frame = table(CHAIN, chains=6, n=16)
    release = redacted(frame, model, key, mechanism=None)
    assert release.summary.mechanism == "best-local"
    assert release.summary.unserved in str(release.summary)
    assert release.certificate["claim"]["mechanism"] == "best-local"
    assert release.certificate["designs"]["kind"] in ("local", "clustered")
