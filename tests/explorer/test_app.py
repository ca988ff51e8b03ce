"""Who gets an answer, and what the page is made of."""

import json
import re
from importlib.resources import files

import numpy as np
import pytest

import offrecord as off
from offrecord.explorer import worker
from offrecord.explorer.state import Asked
from offrecord.explorer.workers import Worker
from offrecord.mechanisms import MECHANISMS

PAGES = ("/", "/api", "/api/openapi.json", "/api/pictures", "/static/page.js", "/nothing")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8750",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8750",
        "0.0.0.0:8750",
        "[::1]:8750",
        "127.0.0.1@evil.example",
        "",
        None,
    ],
)
def test_another_host_gets_nothing(ask, path, host):
    assert ask("GET", path, host=host).status == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.1:8750", "localhost:1"])
def test_loopback_gets_the_page(ask, host):
    assert ask("GET", "/", host=host).status == 200


def test_another_sites_page_gets_nothing(ask):
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:8750"):
        answer = ask("POST", "/api/regions", {}, origin=origin)
        assert answer.status == 403
    assert ask("POST", "/api/regions", {}, origin="http://127.0.0.1:8750").status == 200


def test_no_answer_is_for_other_sites(ask):
    preflight = {"origin": "http://127.0.0.1:8750", "access_control_request_method": "POST"}
    for answer in (
        *(ask("GET", path) for path in PAGES),
        ask("POST", "/api/regions", {}),
        ask("POST", "/api/regions", {"n": 0}),
        ask("OPTIONS", "/api/regions", **preflight),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
    assert ask("OPTIONS", "/api/regions", **preflight).status == 405


def test_the_page_asks_for_nothing_from_elsewhere():
    page = files("offrecord.explorer").joinpath("page")
    for one in page.iterdir():
        text = one.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//cdn|@import|\beval\(|innerHTML", text), one.name


def test_the_page_offers_what_can_be_asked():
    page = files("offrecord.explorer").joinpath("page", "index.html").read_text(encoding="utf-8")
    offered = re.findall(r'<option value="([\w-]+)"[^>]*data-said', page)
    assert offered == list(reversed(MECHANISMS))
    for name, field in Asked.model_fields.items():
        assert f'id="{name}-wrong"' in page
        if name == "mechanism":
            assert f'<option value="{field.default}" selected' in page
        elif name not in ("model", "about"):
            value = re.search(rf'id="{name}" value="([^"]*)"', page)[1]
            assert type(field.default)(value) == field.default


def test_the_script_that_draws_is_the_package_s(ask):
    script = ask("GET", "/static/vega.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "vegaEmbed" in script.text
    assert len(script.text) > 500_000


def test_pictures_have_named_data(ask):
    for dark in ("false", "true"):
        found = ask("GET", f"/api/pictures?dark={dark}").json
        named = {
            one["data"]["name"]
            for spec in found.values()
            for one in [spec, *spec.get("layer", [])]
            if "data" in one
        }
        assert named == {"influence", "regions", "threshold", "profile", "points", "chosen"}
    assert ask("GET", "/api/pictures?dark=perhaps").status == 422


def test_the_api_page_documents_every_field(ask):
    page, described = ask("GET", "/api").text, ask("GET", "/api/openapi.json").json
    assert set(described["paths"]) == {
        *("/api/regions", "/api/policy", "/api/curve", "/api/pictures")
    }
    for path in described["paths"]:
        assert path in page
    for name, form in described["components"]["schemas"].items():
        assert f"id='{name}'" in page
        for field, one in form["properties"].items():
            assert f"<th scope='row'>{field}</th>" in page
            if name in ("Asked", "AskedCurve") and one.get("type") in ("number", "integer"):
                assert {"minimum", "maximum"} <= set(one), field


def test_what_takes_too_long_ends():
    """The process is ended, and the next question is answered by another one."""
    impatient = Worker(seconds=1.5)
    slow = np.random.default_rng(0).dirichlet(np.full(8, 0.5), size=8) * 0.1 + np.eye(8) * 0.9
    model = off.MarkovChain(slow).to_dict()
    asked = {"n": 1000, "private": ",".join(map(str, range(10, 400, 12))), "model": model}
    try:
        late = impatient.ask("policy", Asked(**asked).model_dump())
        assert late.status == 422
        assert "longer than 1.5 seconds" in json.loads(late.content)["errors"][0]["message"]
        impatient.seconds = 60
        assert impatient.ask("regions", Asked().model_dump()).status == 200
    finally:
        impatient.close()
    assert impatient.process is None


def test_a_fault_is_said_by_its_kind_alone():
    said = worker.answer(b'{"do": "regions", "what": {"nonsense": 1}}')
    assert said[:1] == worker.FAILED
    assert worker.answer(b"not json")[:1] == worker.FAILED
    assert worker.answer(b'{"do": "everything", "what": {}}') == (
        worker.FAILED + b'{"errors":[{"field":null,"message":"internal error (KeyError)"}]}'
    )
