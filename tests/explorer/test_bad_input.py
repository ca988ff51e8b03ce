"""What is wrong is said beside its field, in the command line's words."""

import json

import pytest

import offrecord as off
from offrecord.explorer.guard import LARGEST_BODY
from offrecord.explorer.state import LARGEST_MODEL, MOST_STATES

COMMAND = {"alpha": "0.01", "beta": "0.8", "n": "10", "private": "1", "epsilon": "1"}


def refused(answer):
    assert answer.status == 422
    return {one["field"]: one["message"] for one in answer.json["errors"]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", 2),
        ("alpha", 0),
        ("alpha", -0.5),
        ("beta", 1.5),
        ("n", 1),
        ("private", "12"),
        ("private", "0"),
        ("private", "5-20"),
        ("private", "x"),
        ("private", "3,3"),
        ("private", ""),
        ("epsilon", -1),
        ("mechanism", "best-locale"),
        ("mechanism", "?"),
    ],
)
def test_the_words_are_the_command_lines(ask, run, field, value):
    message = refused(ask("POST", "/api/regions", {field: value}))[field]
    words = [
        word
        for name, default in (COMMAND | {"mechanism": "best-local"}).items()
        for word in (f"--{name}={value if name == field else default}",)
    ]
    code, _, err = run("design", *words)
    assert code == 2
    if field == "n":  # the explorer's own limit, said in the same way
        assert message == "n must be from 2 to 1000 here, got n=1"
        return
    # of a whole number, one of the two says that it was read as a float
    assert message.replace(".0", "") == err.removeprefix("offrecord: ").strip().replace(".0", "")


@pytest.mark.parametrize(
    ("body", "field", "part"),
    [
        ({"n": 1001}, "n", "from 2 to 1000 here, got n=1001; offrecord design takes more"),
        ({"n": "ten"}, "n", "whole number, got 'ten'"),
        ({"n": 10.5}, "n", "whole number"),
        ({"n": True}, "n", "whole number"),
        ({"n": None}, "n", "whole number"),
        ({"n": 10**30}, "n", "a huge number"),
        ({"alpha": "a"}, "alpha", "alpha must be a number in (0, 1], got alpha='a'"),
        ({"alpha": 1e-9}, "alpha", "from 1e-06 to 1 here"),
        ({"epsilon": 21}, "epsilon", "from 0 to 20 here, got epsilon=21"),
        ({"epsilon": "1"}, "epsilon", "must be a number"),
        ({"private": 3}, "private", "must be text such as 3,7 or 10-12"),
        ({"private": "1," * 300}, "private", "at most 400 characters"),
        ({"mechanism": 7}, "mechanism", "must be one of quilt"),
        ({"seed": -1}, "seed", "from 0 to"),
        ({"about": 0}, "about", "from 1 to 1000"),
        ({"speed": 1}, None, "no field is called 'speed'"),
        ({"\ud800": 1}, None, "unicode"),
        ({"private": "\ud800"}, "private", "--private must be records such as"),
    ],
)
def test_every_field_has_its_limit(ask, body, field, part):
    assert part in refused(ask("POST", "/api/policy", body))[field]


def test_all_that_is_wrong_is_said_at_once(ask):
    said = refused(ask("POST", "/api/regions", {"alpha": 2, "n": 0, "epsilon": -1}))
    assert set(said) == {"alpha", "n", "epsilon"}


def test_curves_have_limits_too(ask):
    assert "epsilons" in refused(ask("POST", "/api/curve", {"epsilons": []}))
    assert "epsilons" in refused(ask("POST", "/api/curve", {"epsilons": [1] * 9}))
    assert "epsilons" in refused(ask("POST", "/api/curve", {}))
    said = refused(ask("POST", "/api/curve", {"epsilons": [1, -1]}))
    assert said["epsilons"] == "epsilon must be finite and at least 0, got epsilon=-1.0"


def test_models_are_refused_in_the_command_lines_words(ask, run, tmp_path):
    good = off.MarkovChain.binary(0.2, 0.3).to_dict()
    for change in (
        {"format": "other"},
        {"version": 2},
        {"transition": [[0.5, 0.6], [0.5, 0.5]]},
        {"transition": [[0.5, "x"], [0.5, 0.5]]},
        {"transition": []},
        {"labels": "ab"},
        {"order": 99},
        {"phase": "hour"},
        {"set": {"low": 1}},
    ):
        message = refused(ask("POST", "/api/regions", {"model": good | change}))["model"]
        file = tmp_path / "model.json"
        file.write_text(json.dumps(good | change))
        code, _, err = run(*("design", "--model", file, "--n", 10, "--private", 1, "--epsilon", 1))
        assert code == 2
        assert err.strip() == f"offrecord: {file}: {message}"


@pytest.mark.parametrize(
    ("model", "part"),
    [
        ([], "not a model file"),
        ("model.json", "not a model file"),
        ({}, "not a model file"),
        ({"format": "offrecord-model", "version": 1, "labels": ["\ud800"]}, "no Unicode"),
        ({"a": json.loads("[" * 100 + "]" * 100)}, "lists within lists"),
    ],
)
def test_what_is_no_model_is_refused(ask, model, part):
    assert part in refused(ask("POST", "/api/regions", {"model": model}))["model"]


def test_models_too_large_to_wait_for_are_refused(ask):
    k = MOST_STATES + 1
    model = off.MarkovChain([[1 / k] * k] * k).to_dict()
    said = refused(ask("POST", "/api/regions", {"model": model}))["model"]
    assert said.startswith(f"the model must have at most {MOST_STATES} values")


def test_labels_that_would_fill_answers_are_refused(ask):
    model = off.MarkovChain.binary(0.1, 0.3).to_dict() | {"labels": ["a", "b" * 65]}
    said = refused(ask("POST", "/api/regions", {"model": model}))["model"]
    assert said == "the model's labels must have at most 64 characters here"


def test_a_model_of_some_length_asks_for_that_n(ask):
    model = off.MarkovChain([[[0.5, 0.5], [0.5, 0.5]]] * 4, start=[0.5, 0.5]).to_dict()
    said = refused(ask("POST", "/api/regions", {"model": model, "n": 10}))
    assert said == {"n": "n must be 5, one more than the chain's kernels, got n=10"}
    assert ask("POST", "/api/policy", {"model": model, "n": 5}).status == 200


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[1]", 422),
        (b'"x"', 422),
        (b"null", 422),
        (b"\xff\xfe", 422),
        (b"[" * 100_000, 400),
        (b'{"model": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
        (b'{"alpha": NaN}', 422),
        (b'{"alpha": 1e999}', 422),
        (b'{"n": ' + b"9" * 5000 + b"}", 400),
    ],
)
def test_bodies_that_are_no_question(ask, content, status):
    answer = ask("POST", "/api/regions", content=content)
    assert answer.status == status
    assert answer.json["errors"][0]["message"]


def test_uploads_have_a_size(ask):
    large = b'{"model": "' + b"x" * LARGEST_BODY + b'"}'
    refusal = ask("POST", "/api/regions", content=large)
    assert refusal.status == 413
    assert f"{LARGEST_MODEL:,}" in refusal.json["errors"][0]["message"]
    pieces = [b"x" * (1 << 16)] * (2 + LARGEST_BODY // (1 << 16))
    endless = ask(
        "POST", "/api/regions", chunks=pieces, content_type="application/json"
    )  # no length said
    assert endless.status == 413


def test_only_json_is_read(ask):
    assert ask("POST", "/api/regions", content=b"{}", content_type="text/plain").status == 415
    assert ask("POST", "/api/regions", content=b"{}", content_type=None).status == 415
    with_charset = "application/json; charset=utf-8"
    assert ask("POST", "/api/regions", content=b"{}", content_type=with_charset).status == 200
