"""The web application: which path answers what, and serving it on loopback."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files
from threading import Thread
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from offrecord.errors import InputError, in_python
from offrecord.explorer.answers import answer, curves
from offrecord.explorer.guard import Guard, refusal
from offrecord.explorer.state import Asked, AskedCurve

ADDRESS = "127.0.0.1"
#: The page, and what it is made of: the path of each file, and its type.
_PAGE = {
    "/": ("index.html", "text/html"),
    "/static/page.css": ("page.css", "text/css"),
    "/static/page.js": ("page.js", "text/javascript"),
    "/static/icon.svg": ("icon.svg", "image/svg+xml"),
}


def serve(port: int, *, open_browser: bool, say: Callable[[str], None]) -> None:
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
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_middleware(Guard)
    app.add_exception_handler(RequestValidationError, _unprocessable)
    app.add_exception_handler(HTTPException, _failed)
    app.add_exception_handler(InputError, _wrong_input)

    @app.post("/api/answer")
    def answered(asked: Asked) -> dict[str, Any]:
        """What the mechanism does: utility, leakage, pictures, a sample and what it gives away."""
        return answer(asked)

    @app.post("/api/curves")
    def curved(asked: AskedCurve) -> dict[str, Any]:
        """Utility of some mechanisms over ε, as a picture and as rows."""
        return curves(asked)

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
