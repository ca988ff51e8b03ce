"""Problems that a person describes without data: what design and compare share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offrecord.cli.parameters import number, whole
from offrecord.cli.printing import warned
from offrecord.errors import InputError

if TYPE_CHECKING:
    from offrecord.models.chain import MarkovChain
    from offrecord.theory.problem import Problem

Alpha = Annotated[
    float | None,
    typer.Option(
        parser=number, metavar="NUMBER", help="P(0→1) of a chain with two values, in (0, 1]."
    ),
]
Beta = Annotated[
    float | None, typer.Option(parser=number, metavar="NUMBER", help="P(1→0), in (0, 1].")
]
Model = Annotated[Path | None, typer.Option(help="Model file, instead of --alpha and --beta.")]
N = Annotated[int, typer.Option("--n", parser=whole, metavar="COUNT", help="Number of records.")]
Private = Annotated[str, typer.Option(help="Private records, counted from 1: 3,7 or 10-12.")]
Split = Annotated[
    str | None,
    typer.Option(help="3R: the left side's share of ε: best, even, or a number from 0 to 1."),
]


@dataclass(frozen=True, kw_only=True)
class Described:
    """A problem as a person describes it; the fields are parameters of the verbs."""

    n: N
    private: Private
    epsilon: float
    protect: str
    exact_model: bool
    alpha: Alpha = None
    beta: Beta = None
    model: Model = None

    def problem(self) -> Problem:
        """The problem; InputError for a description that is wrong."""
        from offrecord.theory.listed import listed_records
        from offrecord.theory.problem import Problem

        chain, private = self._chain(), listed_records(self.private, self.n)
        share = share_of(chain)
        if share < 1:
            warned(f"the model is calibrated: designs are made for {share:g} of ε")
        return Problem(chain, self.n, private, share * self.epsilon, self.protect)

    def _chain(self) -> MarkovChain:
        """The chain of a model file, or of two probabilities."""
        from offrecord.models.chain import MarkovChain

        if self.model is not None:
            if self.alpha is not None or self.beta is not None:
                raise InputError("give either --model or --alpha and --beta, not both")
            chain = MarkovChain.load(self.model)
            return chain.alone if self.exact_model else chain
        if self.alpha is None or self.beta is None:
            raise InputError("give --alpha and --beta, or --model FILE")
        return MarkovChain.binary(self.alpha, self.beta)


def share_of(chain: MarkovChain) -> float:
    """The share of ε that designs for a chain are made for: less than 1 if it is calibrated."""
    return 1.0 if chain.learned is None else chain.learned.share


def split_of(text: str | None) -> dict[str, Any]:
    """What the 3R mechanisms are told about the split of ε."""
    if text is None:
        return {}
    try:
        return {"split": float(text)}
    except ValueError:
        return {"split": text}
