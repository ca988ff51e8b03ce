"""The web application on loopback: which path answers what, and who gets an answer at all."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import version
from importlib.resources import files
from threading import Thread

import uvicorn
from fastapi import FastAPI, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offrecord.errors import InputError, in_python
from offrecord.explorer.answers import answer, curves
from offrecord.explorer.state import LARGEST_MODEL

ADDRESS = "127.0.0.1"
#: The page, and what it is made of: the path of each file, and its type.
_PAGE = {
    "/": ("index.html", "text/html"),
    "/static/page.css": ("page.css", "text/css"),
    "/static/page.js": ("page.js", "text/javascript"),
    "/static/icon.svg": ("icon.svg", "image/svg+xml"),
}
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


def serve(port: int, open_browser: bool, say: Callable[[str], None]) -> None:
    """Serve until somebody stops it.

    port: on loopback; 0 takes any. open_browser: whether to open the page. say: is called with the
    address. InputError for a port that cannot be had.
    """
    with bound_to(port) as bound:
        url = f"http://{ADDRESS}:{bound.getsockname()[1]}/"
        say(url)
        config = uvicorn.Config(
            application(), log_level="error", access_log=False, server_header=False
        )
        if open_browser:
            Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        uvicorn.Server(config).run(sockets=[bound])


def bound_to(port: int) -> socket.socket:
    """A socket that listens on loopback alone."""
    if not 0 <= port <= 65_535:
        raise InputError(f"--port must be from 0 to 65535, got {port}")
    # asyncio sends small answers at once, 40 ms earlier, if it knows that this is TCP
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((ADDRESS, port))
        bound.listen(128)
    except OSError as error:
        bound.close()
        raise InputError(
            f"port {port} cannot be had ({error.strerror or error}): another program may listen"
            " there; choose another one with --port, or --port 0 for any"
        ) from None
    return bound


def application() -> FastAPI:
    """The application."""
    app = FastAPI(
        title="Offrecord explorer",
        version=version("offrecord"),
        summary="What a design releases and gives away, for one state of the explorer.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # FastAPI's own pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_middleware(Guard)
    app.add_exception_handler(RequestValidationError, _unprocessable)
    app.add_exception_handler(InputError, _wrong_input)
    app.add_exception_handler(HTTPException, _failed)
    app.post("/api/answer")(answer)
    app.post("/api/curves")(curves)
    for path, (name, kind) in _PAGE.items():
        content = files("offrecord.explorer").joinpath("page", name).read_bytes()
        app.add_api_route(path, _static(content, kind), include_in_schema=False)
    return app


def _static(content: bytes, kind: str) -> Callable[[], Response]:
    def static() -> Response:
        return Response(content, media_type=kind)

    return static


async def _unprocessable(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = [str(part) for part in first["loc"][1:]]
    if first["type"] == "json_invalid":
        return refusal(422, "the request is not JSON, or is truncated")
    if first["type"] == "extra_forbidden":
        return refusal(422, f"no field is called {place[-1]!r:.60}")
    message = first["msg"].removeprefix("Value error, ")
    return refusal(422, ": ".join([*place[:1], message]), place[0] if place else None)


async def _wrong_input(_: Request, error: Exception) -> Response:
    return refusal(422, in_python(str(error)), getattr(error, "field", None))


async def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refusal(error.status_code, str(error.detail), headers=error.headers)


# ---- the guard: only this machine's own pages get an answer


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
    # The whole body; None if it is larger than allowed, whatever its length was said to be.
    body = b""
    with suppress(ClientDisconnect):  # then nobody reads the answer either
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_BODY:
                return None
    return body


def _is_here(host: str) -> bool:
    return host in HOSTS or host.rpartition(":")[0] in HOSTS


def _refused(request: Request) -> tuple[int, str] | None:
    headers = request.headers
    host, origin = headers.get("host", ""), headers.get("origin")
    if not _is_here(host):
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
