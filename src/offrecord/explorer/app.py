"""The web application: which path answers what, and serving it on loopback."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from threading import Thread
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException

from offrecord.errors import InputError, in_python
from offrecord.explorer.answers import answer, curves
from offrecord.explorer.guard import Guard
from offrecord.explorer.state import Asked, AskedCurve, FieldError

ADDRESS = "127.0.0.1"
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


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

    _add_page(app)
    return app


def _add_page(app: FastAPI) -> None:
    """The page, and what it is made of."""

    @app.get("/", include_in_schema=False)
    def page() -> HTMLResponse:
        return HTMLResponse(_static("index.html"))

    def served(name: str) -> None:
        @app.get(f"/static/{name}", include_in_schema=False)
        def static() -> Response:
            return Response(_static(name), media_type=_TYPES[name.rpartition(".")[2]])

    for name in ("page.css", "page.js", "icon.svg"):
        served(name)


@cache
def _static(name: str) -> bytes:
    return files("offrecord.explorer").joinpath("page", name).read_bytes()


def _refuse(status: int, field: str | None, message: str) -> JSONResponse:
    return JSONResponse({"errors": [{"field": field, "message": message}]}, status)


async def _unprocessable(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = [str(part) for part in first["loc"][1:]]
    if first["type"] == "json_invalid":
        return _refuse(422, None, "the request is not JSON, or is truncated")
    if first["type"] == "extra_forbidden":
        return _refuse(422, None, f"no field is called {place[-1]!r:.60}")
    message = first["msg"].removeprefix("Value error, ")
    field = place[0] if place else None
    return _refuse(422, field, message if field is None else f"{field}: {message}")


async def _wrong_input(_: Request, error: Exception) -> Response:
    field = error.field if isinstance(error, FieldError) else None
    return _refuse(422, field, in_python(str(error)))


async def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = _refuse(error.status_code, None, str(error.detail))
    said.headers.update(error.headers or {})
    return said
