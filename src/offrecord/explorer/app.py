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

from offrecord.explorer.forms import Curve, Form, Policy, Refusal, Regions, Wrong
from offrecord.explorer.guard import Guard
from offrecord.explorer.pictures import Pictures, pictures
from offrecord.explorer.reference import reference_page
from offrecord.explorer.state import Asked, AskedCurve, AskedPolicy
from offrecord.explorer.workers import Answer, Workers

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "The body is no JSON that can be read."},
    403: {"model": Refusal, "description": "The request comes from another site's page."},
    413: {"model": Refusal, "description": "The body is too large."},
    415: {"model": Refusal, "description": "The body is not application/json."},
    421: {"model": Refusal, "description": "The Host header names another machine."},
    422: {"model": Refusal, "description": "A field is wrong, or the answer takes too long."},
}


def application(desk: Workers) -> FastAPI:
    """The application; whoever makes it ends the workers."""
    app = FastAPI(
        title="Offrecord explorer",
        version=version("offrecord"),
        summary="What a design releases and tells, for one state of the explorer. Stateless;"
        " loopback alone.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_middleware(Guard)
    app.add_exception_handler(RequestValidationError, _unprocessable)
    app.add_exception_handler(HTTPException, _failed)
    _add_answers(app, desk)
    _add_page(app, desk)
    return app


def _add_answers(app: FastAPI, desk: Workers) -> None:
    """The API."""

    def documented(form: type[Form]) -> dict[str, Any]:
        return {"response_class": Response, "responses": {200: {"model": form}, **_REFUSALS}}

    @app.post("/api/regions", **documented(Regions))
    def regions(asked: Asked) -> Response:
        """What the records around a secret tell about it, by the model alone: pointwise influence,
        the regions L, M and S at ε, and the question as a command and as Python.
        """
        return _response(desk.regions(asked))

    @app.post("/api/policy", **documented(Policy))
    def policy(asked: AskedPolicy) -> Response:
        """What the mechanism does: utility, leakage and the output that tells most, the redaction
        of each record, a sample release and what it tells.
        """
        return _response(desk.policy(asked))

    @app.post("/api/curve", **documented(Curve))
    def curve(asked: AskedCurve) -> Response:
        """Utility and leakage of the mechanism at other budgets."""
        return _response(desk.curve(asked))

    @app.get("/api/pictures", responses={421: _REFUSALS[421], 422: _REFUSALS[422]})
    def specifications(dark: bool = False) -> Pictures:
        """The Vega-Lite specifications of the page's pictures, with named data: rows of the other
        answers.
        """
        return pictures(dark=dark)


def _add_page(app: FastAPI, desk: Workers) -> None:
    """The page, and what it is made of."""

    @app.get("/", include_in_schema=False)
    def page() -> HTMLResponse:
        return HTMLResponse(_static("index.html"))

    @app.get("/api", include_in_schema=False)
    def reference(request: Request) -> HTMLResponse:
        return HTMLResponse(reference_page(app.openapi(), request.headers["host"]))

    @app.get("/static/vega.js", include_in_schema=False)
    def vega() -> Response:
        return Response(desk.vega(), media_type=_TYPES["js"])

    def served(name: str) -> None:
        @app.get(f"/static/{name}", include_in_schema=False)
        def static() -> Response:
            return Response(_static(name), media_type=_TYPES[name.rpartition(".")[2]])

    for name in ("page.css", "page.js", "icon.svg"):
        served(name)


@cache
def _static(name: str) -> bytes:
    return files("offrecord.explorer").joinpath("page", name).read_bytes()


def _response(answer: Answer) -> Response:
    return Response(answer.content, answer.status, media_type="application/json")


def _refuse(status: int, errors: list[Wrong]) -> JSONResponse:
    return JSONResponse(Refusal(errors=errors).model_dump(), status)


async def _unprocessable(_: Request, error: Exception) -> Response:
    """Fields in the command line's words."""
    assert isinstance(error, RequestValidationError)
    return _refuse(422, [_wrong(one) for one in error.errors()])


def _wrong(error: dict[str, Any]) -> Wrong:
    place = [str(part) for part in error["loc"][1:]]
    said = error.get("ctx", {}).get("error")
    if error["type"] == "json_invalid":
        return Wrong(field=None, message="the request is not JSON, or is truncated")
    if error["type"] == "extra_forbidden":
        return Wrong(field=None, message=f"no field is called {place[-1]!r:.60}")
    message = str(said) if isinstance(said, Exception) else " ".join([*place, error["msg"]])
    return Wrong(field=place[0] if place else None, message=message)


async def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = _refuse(error.status_code, [Wrong(field=None, message=str(error.detail))])
    said.headers.update(error.headers or {})
    return said
