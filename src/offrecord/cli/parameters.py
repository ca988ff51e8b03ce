"""The parameters of verbs: the options of `redact`, in groups, and how text becomes a value.

A verb names only parameters of its own. `SHARED` lists the options that it shares with `redact`;
their types, defaults and help come from `offrecord.tables.options`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_origin

import typer
from typer.core import TyperCommand

from offrecord.tables.options import FileOptions

_Verb = TypeVar("_Verb", bound=Callable[..., None])

#: The groups of options in help, in this order. Options that no group names are advanced.
GROUPS = {
    "table": ("value", "order", "by", "single_chain", "step", "values", "bins", "keep"),
    "privacy": (
        *("epsilon", "epsilons", "dataset", "private", "private_list"),
        *("protect", "coverage", "growing"),
    ),
    "model": ("alpha", "beta", "n", "model", "fit", "mechanism", "split"),
    "output": ("output", "report", "certificate", "csv", "picture", "dry_run", "force", "as_json"),
    "advanced": (),
}
_FILE = ("private_list", "format", "separator", "encoding")
#: The options of `redact` that other verbs take, too.
SHARED = {
    "look": ("value", "order", "by", "private", "epsilon", "dataset", *_FILE),
    "fit": (
        *("value", "order", "by", "single_chain", "step", "values", "bins", "private", *_FILE),
        *("limits", "key_file", "force", "merge", "fit_distance", "chain_order", "phase"),
        "coverage",
    ),
    "verify": ("limits",),
    "attack": ("limits", "force"),
    "design": ("epsilon", "protect", "exact_model", "force"),
    "compare": ("protect", "exact_model", "force"),
    **dict.fromkeys(("answer", "key", "ledger"), ("key_file",)),
    **dict.fromkeys(("demo", "report", "reproduce"), ("force",)),
}
#: What people write instead of the option's name.
_FLAGS = {"limits": "--limit"}

# ---- what people write: typer's own readers say nothing of what they found


def _reader(kind: Callable[[str], Any], accepted: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            raise typer.BadParameter(f"must be {accepted}, got {text!r}") from None

    return read


number = _reader(float, "a number")
whole = _reader(int, "a whole number")
whole_or_auto = _reader(
    lambda text: text if text == "auto" else int(text), "auto or a whole number"
)


def names(text: str) -> list[str]:
    """Names by comma."""
    return [name.strip() for name in text.split(",")]


def cuts(text: str) -> list[float]:
    """Numbers by comma."""
    return [number(one.strip()) for one in text.split(",")]


def limit(text: str) -> tuple[str, int]:
    """A limit as a person writes it: rows=1000."""
    name, _, count = text.partition("=")
    return name, whole(count)


def numbered(metavar: str, help: str, reader: Callable[[str], Any] = whole) -> Any:
    """An option for a number."""
    return typer.Option(parser=reader, metavar=metavar, help=help)


def outgoing(help: str) -> Any:
    """The option of a verb's main output."""
    return typer.Option("--output", "-o", help=help)


#: How an option is written whose type in Python is neither text nor a path: the type here, and what
#: else its reading takes.
_WRITTEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "str | Sequence[str]": (list[str] | None, {}),  # repeated
    "str | Sequence[str] | None": (str | None, {"parser": names, "metavar": "<str>"}),
    "Sequence[Label] | None": (str | None, {"parser": names}),
    "Sequence[float] | None": (str | None, {"parser": cuts}),
    "Mapping[str, int] | None": (list[Any] | None, {"parser": limit}),
    "bool": (bool, {}),
    "int | None": (int | None, {"parser": whole}),
    "int | str": (str, {"parser": whole_or_auto}),
    "float": (float, {"parser": number}),
    "float | None": (float | None, {"parser": number}),
}

# ---- from options to parameters


def offering(shared: type | None = None) -> Callable[[_Verb], _Verb]:
    """A decorator that gives a verb the parameters that it annotates, those that a class annotates,
    and options of `redact`.
    """

    def offered(verb: _Verb) -> _Verb:
        known = _shared(verb.__name__)
        known |= {} if shared is None else _annotated(shared)
        parameters = list((known | _annotated(verb)).values())
        verb.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # for typer
        verb.__annotations__ = {one.name: one.annotation for one in parameters}
        return verb

    return offered


def _shared(verb: str) -> dict[str, inspect.Parameter]:
    listed = (
        _OFFERED if verb == "redact" else {name: _OFFERED[name] for name in SHARED.get(verb, ())}
    )
    if verb != "look":
        return dict(listed)
    # look guesses what others need
    return {name: one.replace(default=None) for name, one in listed.items()}


def _annotated(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return {
        name: one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, one in inspect.signature(function, eval_str=True).parameters.items()
        if get_origin(one.annotation) is Annotated
    }


def _typed(name: str) -> tuple[Any, dict[str, Any]]:
    if name in _WRITTEN:
        return _WRITTEN[name]
    # a new type that is neither text nor a path fails here, before anybody writes it wrongly
    assert "str" in name, name
    return Path | None if "Path" in name else str | None, {}


def _parameter(option: Field[Any]) -> inspect.Parameter:
    kind, reading = _typed(str(option.type))
    metavar = option.metadata["metavar"]
    shown = reading if metavar is None else reading | {"metavar": metavar}
    # A truth value without a flag of its own would get a --no- form too.
    flag = _FLAGS.get(option.name, f"--{option.name.replace('_', '-')}")
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if option.default is MISSING else option.default,
        annotation=Annotated[kind, typer.Option(flag, help=option.metadata["words"], **shown)],
    )


#: The options of `redact` that the command line has, by name.
_OFFERED = {one.name: _parameter(one) for one in fields(FileOptions) if "words" in one.metadata}

# ---- help


class Grouped(TyperCommand):
    """A verb whose help lists options by group, in the order of `GROUPS`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then a list for each group that has options."""
        shown = {one: one.get_help_record(ctx) for one in self.get_params(ctx)}
        for group in ("arguments", *GROUPS):
            listed = [one for one in shown if shown[one] is not None and _group(one) == group]
            listed.sort(key=_place)
            if listed:
                title = "Arguments" if group == "arguments" else f"Options: {group}"
                with formatter.section(title):
                    formatter.write_dl([shown[one] for one in listed])


def _group(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "arguments"
    return next((name for name, those in GROUPS.items() if parameter.name in those), "advanced")


def _place(parameter: Any) -> int:
    # The place of a parameter in its group; those that no group names keep their order.
    listed = GROUPS.get(_group(parameter), ())
    return listed.index(parameter.name) if parameter.name in listed else len(listed)
