"""What comes before every request: only this machine's own pages get an answer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offrecord.explorer.state import LARGEST_MODEL

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
_TOO_LARGE = (
    413,
    f"the request must have at most {LARGEST_BODY:,} bytes: a model file at most {LARGEST_MODEL:,}",
)


def refusal(
    status: int, message: str, field: str | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """What the page shows beside a field, or for the request as a whole."""
    return JSONResponse({"errors": [{"field": field, "message": message}]}, status, headers)


class Guard:
    """Refuses requests by Host, Origin, size and type; adds headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        why = _refused(request)
        body = await _body(request) if why is None else None
        if body is None:
            # what is left of the request is not read
            answer = refusal(*(why or _TOO_LARGE), headers={"connection": "close"})
            await answer(scope, receive, with_headers)
            return
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def read_already() -> Message:
            return next(messages, None) or await receive()

        await self.app(scope, read_already, with_headers)


async def _body(request: Request) -> bytes | None:
    """The whole body; None if it is larger than allowed, whatever its length was said to be."""
    body = b""
    with suppress(ClientDisconnect):  # then nobody reads the answer either
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_BODY:
                return None
    return body


def _refused(request: Request) -> tuple[int, str] | None:
    headers = request.headers
    host, origin = headers.get("host", ""), headers.get("origin")
    if host not in HOSTS and host.rpartition(":")[0] not in HOSTS:
        # another name that leads here may be another site's page (DNS rebinding)
        return 421, "the explorer answers to 127.0.0.1 and localhost alone"
    if origin not in (None, f"http://{host}"):
        return 403, "the explorer answers to its own page alone"
    if request.method == "POST":
        length = headers.get("content-length", "0")
        if length.isdecimal() and len(length) < 20 and int(length) > LARGEST_BODY:
            return _TOO_LARGE
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 415, "the request must be application/json"
    return None
