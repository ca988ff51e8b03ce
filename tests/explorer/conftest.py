"""A client for the application, without a network."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from offrecord.explorer.app import application


@pytest.fixture(scope="session")
def app():
    return application()


@pytest.fixture(scope="session")
def ask(app):
    """Sends a request: status, headers, text, and what JSON it holds."""

    def ask(method, path, body=None, *, content=None, chunks=None, **headers):
        given = {"host": "127.0.0.1:8750", **{k.replace("_", "-"): v for k, v in headers.items()}}
        if body is not None:
            content = json.dumps(body).encode()
        if content is not None:
            given = {
                "content-type": "application/json",
                "content-length": str(len(content)),
            } | given
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(k.encode(), v.encode()) for k, v in given.items() if v is not None],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8750),
        }
        parts = list(chunks) if chunks is not None else [content or b""]
        messages = iter(
            {"type": "http.request", "body": part, "more_body": at + 1 < len(parts)}
            for at, part in enumerate(parts)
        )
        said = []

        async def receive():
            return next(messages, {"type": "http.disconnect"})

        async def send(message):
            said.append(message)

        asyncio.run(app(scope, receive, send))
        text = b"".join(one.get("body", b"") for one in said[1:])
        found = {k.decode(): v.decode() for k, v in said[0]["headers"]}
        is_json = found.get("content-type") == "application/json"
        return SimpleNamespace(
            status=said[0]["status"],
            headers=found,
            text=text.decode(),
            json=json.loads(text) if is_json else None,
        )

    return ask
