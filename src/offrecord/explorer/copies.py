"""The same question elsewhere: as a command, and as Python."""

from __future__ import annotations

import shlex

from offrecord.explorer.budgets import spelled
from offrecord.explorer.forms import Copies
from offrecord.explorer.state import Asked
from offrecord.theory.problem import Problem

MODEL_FILE = "model.json"  #: what an uploaded model is called in them


def copies_of(asked: Asked, problem: Problem) -> Copies:
    """Commands and Python that give the same numbers."""
    chain = ["--model", MODEL_FILE]
    if asked.model is None:
        chain = ["--alpha", _number(asked.alpha), "--beta", _number(asked.beta)]
    private = ",".join("".join(asked.private.split()).split(","))
    which = [*chain, "--n", str(asked.n), "--private", private]
    chosen = ["--epsilon", _number(asked.epsilon), "--mechanism", asked.mechanism]
    return Copies(
        design=shlex.join(["offrecord", "design", *which, *chosen]),
        compare=shlex.join(["offrecord", "compare", *which, "--epsilon", spelled(asked.epsilon)]),
        python=_python(asked, problem),
    )


def _number(value: float) -> str:
    """In as few digits as tell it."""
    return repr(value).removesuffix(".0")


def _python(asked: Asked, problem: Problem) -> str:
    chain = f'off.MarkovChain.load("{MODEL_FILE}")'
    if asked.model is None:
        chain = f"off.MarkovChain.binary(alpha={asked.alpha!r}, beta={asked.beta!r})"
    parts = [
        str(one.first) if one.first == one.last else f"*range({one.first}, {one.last + 1})"
        for one in problem.secrets
    ]
    return "\n".join(
        [
            "import offrecord as off",
            "",
            f"chain = {chain}",
            f"problem = off.Problem(chain, n={asked.n}, private=[{', '.join(parts)}],"
            f" epsilon={problem.epsilon!r})",
            f'policy = off.design(problem, "{asked.mechanism}")',
            "print(policy)",
            "",
        ]
    )
