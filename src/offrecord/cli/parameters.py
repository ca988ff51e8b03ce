"""What people write on the command line, and how it is read.

A verb that takes options of `redact` names them, and their types, defaults and help come from
`offrecord.tables.options`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import typer

from offrecord.tables.options import FileOptions, Options

_Verb = TypeVar("_Verb", bound=Callable[..., None])


def number(text: str) -> float:
    """A number as a person writes it."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number, got {text!r}") from None


def whole(text: str) -> int:
    """A whole number as a person writes it."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"must be a whole number, got {text!r}") from None


def whole_or_auto(text: str) -> int | str:
    """A whole number, or: auto."""
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise typer.BadParameter(f"must be auto or a whole number, got {text!r}") from None


def names(text: str) -> list[str]:
    """Names by comma."""
    return [name.strip() for name in text.split(",")]


def cuts(text: str) -> list[float]:
    """Numbers by comma."""
    return [number(one.strip()) for one in text.split(",")]


#: How an option of each type is written: the type here, and what else its reading takes.
_WRITTEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "str": (str, {}),
    "str | None": (str | None, {}),
    "str | int | None": (str | None, {}),
    "str | Sequence[str] | None": (str | None, {"parser": names, "metavar": "<str>"}),
    "str | float | None": (str | None, {}),
    "Sequence[Label] | None": (str | None, {"parser": names}),
    "Sequence[float] | None": (str | None, {"parser": cuts}),
    "Mechanism | str | None": (str | None, {}),
    "bool": (bool, {}),
    "int": (int, {"parser": whole}),
    "int | None": (int | None, {"parser": whole}),
    "int | str": (str, {"parser": whole_or_auto}),
    "float": (float, {"parser": number}),
    "float | None": (float | None, {"parser": number}),
    "str | Path | None": (Path | None, {}),
    "MarkovChain | Sequence[MarkovChain] | Promise | Fit | str | Path | None": (Path | None, {}),
    "TablePolicy | str | Path | None": (Path | None, {}),
    "Native | str | Path | None": (Path | None, {}),  # the verb reads the file
    "str | Native | None": (str | None, {}),
}


def options_from(first: str, last: str) -> list[str]:
    """The names of the options from one to another, as `Options` lists them."""
    listed = [one.name for one in fields(Options)]
    return listed[listed.index(first) : listed.index(last) + 1]


def offering(
    *listed: str, shared: type | None = None, optional: Collection[str] = ()
) -> Callable[[_Verb], _Verb]:
    """A decorator that gives a verb its parameters, in the order in which its help lists them.

    Those that the verb annotates for the command line are its own; others are fields of what it
    shares with another verb, and the rest are options of `redact`. optional: which of them may be
    left out here, though others need them.
    """

    def offered(verb: _Verb) -> _Verb:
        known = _OFFERED | ({} if shared is None else _annotated(shared)) | _annotated(verb)
        known |= {name: _left_out(known[name]) for name in optional}
        parameters = [known[name] for name in listed]
        verb.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # typer reads it
        verb.__annotations__ = {one.name: one.annotation for one in parameters}
        return verb

    return offered


def _annotated(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that a function or class annotates for the command line, by name."""
    return {
        name: one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, one in inspect.signature(function, eval_str=True).parameters.items()
        if get_origin(one.annotation) is Annotated
    }


def _left_out(needed: inspect.Parameter) -> inspect.Parameter:
    """A parameter that need not be given: None then."""
    kind, *reading = get_args(needed.annotation)
    return needed.replace(default=None, annotation=Annotated[kind | None, *reading])


def _parameter(option: Field[Any]) -> inspect.Parameter:
    """An option of `redact` as a parameter of a verb."""
    kind, reading = _WRITTEN[str(option.type)]
    metavar = option.metadata["metavar"]
    shown = reading if metavar is None else reading | {"metavar": metavar}
    flag = f"--{option.name.replace('_', '-')}"  # by itself, a truth value would have a --no- too
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if option.default is MISSING else option.default,
        annotation=Annotated[kind, typer.Option(flag, help=option.metadata["words"], **shown)],
    )


#: The options of `redact` that the command line has, by name.
_OFFERED = {one.name: _parameter(one) for one in fields(FileOptions) if "words" in one.metadata}
