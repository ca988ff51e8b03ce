"""Problems that a person describes without data: what design and compare share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offrecord.cli.parameters import number, whole
from offrecord.errors import InputError

if TYPE_CHECKING:
    from offrecord.models.chain import MarkovChain
    from offrecord.models.promise import Promise
    from offrecord.theory.problem import Problem

_ALPHA = "P(0→1) of a chain with two values, in (0, 1]."
_PRIVATE = "Private records, counted from 1: 3,7 or 10-12."
_SPLIT = "3R: the left side's share of ε: best, even, or a number from 0 to 1."

Split = Annotated[str | None, typer.Option(help=_SPLIT)]


@dataclass(frozen=True, kw_only=True)
class Described:
    """A problem as a person describes it; the fields are parameters of the verbs."""

    epsilon: float
    protect: str
    exact_model: bool
    n: Annotated[
        int | None, typer.Option("--n", parser=whole, metavar="COUNT", help="Number of records.")
    ] = None
    private: Annotated[str | None, typer.Option(help=_PRIVATE)] = None
    alpha: Annotated[float | None, typer.Option(parser=number, metavar="NUMBER", help=_ALPHA)] = (
        None
    )
    beta: Annotated[
        float | None, typer.Option(parser=number, metavar="NUMBER", help="P(1→0), in (0, 1].")
    ] = None
    model: Annotated[
        Path | None, typer.Option(help="Model file, instead of --alpha and --beta.")
    ] = None

    def problem(self) -> Problem:
        """The problem; InputError for a description that is wrong."""
        from offrecord.theory.problem import Problem, listed_records

        if self.n is None or self.private is None:
            raise InputError("give --n and --private")
        chain, models = self._chain()
        private = listed_records(self.private, self.n)
        return Problem(chain, self.n, private, self.epsilon, self.protect, models=models)

    def _chain(self) -> tuple[MarkovChain, Promise | None]:
        """The chain that utility is computed under, and the chains that leakage is judged over;
        None for the chain alone.
        """
        from offrecord.models.chain import MarkovChain
        from offrecord.models.file import load_model

        if self.model is None:
            if self.alpha is None or self.beta is None:
                raise InputError("give --alpha and --beta, or --model FILE")
            return MarkovChain.binary(self.alpha, self.beta), None
        if self.alpha is not None or self.beta is not None:
            raise InputError("give either --model or --alpha and --beta, not both")
        promise = load_model(self.model).promise
        return promise.chain, None if self.exact_model else promise


def split_of(text: str | None) -> dict[str, Any]:
    """The `split` argument of the 3R mechanisms."""
    if text is None:
        return {}
    try:
        return {"split": float(text)}
    except ValueError:
        return {"split": text}
