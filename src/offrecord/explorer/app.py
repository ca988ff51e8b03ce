"""The web application: which path answers what."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException

from offrecord.errors import InputError
from offrecord.explorer.answers import answer, curves
from offrecord.explorer.guard import Guard
from offrecord.explorer.state import Asked, AskedCurve, FieldError

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


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
    return _refuse(422, field, str(error))


async def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = _refuse(error.status_code, None, str(error.detail))
    said.headers.update(error.headers or {})
    return said
