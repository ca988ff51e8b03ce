"""The API's own page: every path, field and limit, read off its OpenAPI description."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from offrecord.explorer.state import Asked

_EXAMPLE = {"alpha": 0.01, "beta": 0.8, "n": 10, "private": "1", "epsilon": 1}


def reference_page(described: dict[str, Any], host: str) -> str:
    """HTML, without a script. host: where it is served."""
    forms = described["components"]["schemas"]
    paths = "".join(
        _path(path, method, one)
        for path, methods in described["paths"].items()
        for method, one in methods.items()
    )
    tables = "".join(_form(name, form) for name, form in forms.items() if "properties" in form)
    command = (
        f"curl -s http://{host}/api/policy -H 'content-type: application/json' -d '"
        + json.dumps(_EXAMPLE)
        + "'"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>The explorer's JSON API</title>"
        '<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/page.css">'
        '</head><body class="reference"><main><h1>The explorer\'s JSON API</h1>'
        "<p>It answers on this machine alone, keeps no state, and takes a limit on every field. The"
        ' same as <a href="/api/openapi.json">OpenAPI</a>; <a href="/">back to the explorer</a>.'
        f"</p><pre><code>{escape(command)}</code></pre>{paths}<h2>Forms</h2>{tables}"
        "</main></body></html>"
    )


def _path(path: str, method: str, one: dict[str, Any]) -> str:
    codes = "".join(
        f"<li><b>{escape(code)}</b> {escape(answer['description'])} {_answered(answer)}</li>"
        for code, answer in one["responses"].items()
    )
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {})
    takes = f"<p>Takes {_kind(body['schema'])}.</p>" if body else ""
    said = escape(" ".join(one.get("description", "").split()))
    return f"<h2>{method.upper()} {escape(path)}</h2><p>{said}</p>{takes}<ul>{codes}</ul>"


def _answered(answer: dict[str, Any]) -> str:
    content = answer.get("content", {}).get("application/json", {})
    return _kind(content["schema"]) if content.get("schema") else ""


def _form(name: str, form: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{escape(field)}</th><td>{_kind(one)}{_limits(one)}</td>"
        f"<td>{_default(name, field, one)}</td><td>{escape(one.get('description', ''))}</td></tr>"
        for field, one in form["properties"].items()
    )
    said = escape(" ".join(form.get("description", "").split()))
    return (
        f"<h3 id='{escape(name)}'>{escape(name)}</h3><p>{said}</p><div class='wide' tabindex='0'"
        f" role='region' aria-label='{escape(name)}'><table><thead><tr><th scope='col'>field</th>"
        "<th scope='col'>holds</th><th scope='col'>without it</th><th scope='col'>what it is</th>"
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _default(name: str, field: str, one: dict[str, Any]) -> str:
    if "default" in one:
        return escape(json.dumps(one["default"]))
    return "nothing" if name.startswith(Asked.__name__) and field == "model" else ""


def _kind(one: dict[str, Any]) -> str:
    if "$ref" in one:
        name = escape(one["$ref"].rpartition("/")[2])
        return f"<a href='#{name}'>{name}</a>"
    for several in ("anyOf", "oneOf"):
        if several in one:
            return " or ".join(map(_kind, one[several]))
    if "enum" in one:
        return escape(", ".join(map(str, one["enum"])))
    if "const" in one:
        return escape(json.dumps(one["const"]))
    if one.get("type") == "array":
        return f"list of {_kind(one.get('items', {}))}"
    return escape(str(one.get("type", "anything")))


def _limits(one: dict[str, Any]) -> str:
    words = {
        "minimum": "at least",
        "maximum": "at most",
        "minLength": "characters at least",
        "maxLength": "characters at most",
        "minItems": "items at least",
        "maxItems": "items at most",
    }
    return "".join(f", {said} {one[key]:g}" for key, said in words.items() if key in one)
