"""What comes before every request: only this machine's own pages get an answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from offrecord.explorer.state import LARGEST_MODEL

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HOSTS = ("127.0.0.1", "localhost")
LARGEST_BODY = LARGEST_MODEL + (1 << 16)
_HEADERS = {
    # Everything comes from this server, nothing is evaluated, and no other page frames this one.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Refuses requests by Host, Origin, size and type; adds headers to every answer."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *added]}
            await send(message)

        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = _refused(scope["method"], headers)
        if refusal is not None:
            await _say(with_headers, *refusal)
            return
        body = await _read(receive)
        if body is None:
            await _say(with_headers, *_TOO_LARGE)
            return
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def read_already() -> Message:
            return next(messages, None) or await receive()

        await self.app(scope, read_already, with_headers)


async def _read(receive: Receive) -> bytes | None:
    """The whole body; None if it is larger than allowed, whatever its length was said to be."""
    parts, size = [], 0
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


_TOO_LARGE = (
    413,
    f"the request must have at most {LARGEST_BODY:,} bytes: a model file at most {LARGEST_MODEL:,}",
)


def _refused(method: str, headers: dict[bytes, str]) -> tuple[int, str] | None:
    """Why a request is not answered; None if it is."""
    if headers.get(b"host", "").rpartition(":")[0] not in HOSTS and (
        headers.get(b"host") not in HOSTS
    ):
        # another name that leads here may be another site's page (DNS rebinding)
        return 421, "the explorer answers to 127.0.0.1 and localhost alone"
    origin = headers.get(b"origin")
    if origin is not None and origin != f"http://{headers[b'host']}":
        return 403, "the explorer answers to its own page alone"
    if method == "POST":
        length = headers.get(b"content-length", "0")
        if length.isdecimal() and len(length) < 20 and int(length) > LARGEST_BODY:
            return _TOO_LARGE
        if headers.get(b"content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 415, "the request must be application/json"
    return None


async def _say(send: Send, status: int, message: str) -> None:
    content = json.dumps({"errors": [{"field": None, "message": message}]}, ensure_ascii=False)
    body = content.encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
