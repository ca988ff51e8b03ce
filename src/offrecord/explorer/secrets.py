"""Which secret is looked at, and what it is called."""

from __future__ import annotations

from offrecord.theory.problem import Problem, Secret


def looked_at(problem: Problem, about: int) -> tuple[int, Secret]:
    """The secret of this number, counted from 1, or the last."""
    number = min(about, len(problem.secrets))
    return number, problem.secrets[number - 1]


def name_of(secret: Secret) -> str:
    """In words."""
    if secret.first == secret.last:
        return f"record {secret.first}"
    return f"records {secret.first}–{secret.last}"
