"""What is said of an audit where the designs of a release are not those that it looked at."""

import json

import numpy as np
import polars as pl
import pytest

import offrecord as off

ROWS = 400
TABLE = pl.DataFrame(
    {"t": np.arange(ROWS), "v": (np.random.default_rng(0).random(ROWS) < 0.3).astype(int)}
).with_columns(p=pl.col("t") == 200)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    values = (np.random.default_rng(1).random(2000) < 0.3).astype(int)
    reference = pl.DataFrame({"t": np.arange(2000), "v": values})
    path = tmp_path_factory.mktemp("model") / "model.json"
    off.fit(reference, value="v", order="t", single_chain=True, chain_order=1).model.save(path)
    return json.loads(path.read_text())


def warnings_of(tmp_path, content, epsilon=1.0, **options):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(content))
    always = {"value": "v", "order": "t", "single_chain": True, "private": "p", "dataset": "d"}
    options |= {"key_file": tmp_path / "key", "dry_run": True}
    release = off.redact(TABLE, model=path, epsilon=epsilon, **always, **options)
    return "\n".join(release.summary.warnings)


def test_nothing_where_the_designs_are_like_those_audited(model, tmp_path):
    assert "audit" not in warnings_of(tmp_path, model)


def test_designs_for_the_model_alone_were_not_audited_if_its_set_was_enlarged(model, tmp_path):
    assert "nobody looked" not in warnings_of(tmp_path, model, exact_model=True)
    hull = "order 1, a set that holds the kernels of every quarter"
    content = {**model, "learned": {**model["learned"], "calibration": hull}}
    assert "nobody looked" in warnings_of(tmp_path, content, exact_model=True)
    assert "nobody looked" not in warnings_of(tmp_path, content)


def test_nor_were_those_for_a_larger_budget(model, tmp_path):
    assert "ε up to 2, not 4" in warnings_of(tmp_path, model, 4.0)


def test_an_audit_of_designs_that_redact_everything_says_nothing(model, tmp_path):
    learned = model["learned"]
    nothing = {"looked_at": [], "closed": [0.5, 1.0, 2.0], "odds": 1.0, "at_least": 1.0}
    audit = {**learned["audit"], **nothing, "verdict": "good"}
    content = {**model, "learned": {**learned, "audit": audit}}
    assert "nothing to look at" in warnings_of(tmp_path, content)


def test_a_verdict_that_its_own_numbers_belie_is_refused(model, tmp_path):
    learned = model["learned"]
    audit = {**learned["audit"], "verdict": "good", "chance": False, "at_least": 40.0}
    content = {**model, "learned": {**learned, "audit": audit}}
    with pytest.raises(off.InputError, match="its numbers say unfit"):
        warnings_of(tmp_path, content)
