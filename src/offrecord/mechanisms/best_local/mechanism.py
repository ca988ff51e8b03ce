"""BestLocal: the best local mechanism there is, or that is found, and a bound on every other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from offrecord.mechanisms.base import Mechanism
from offrecord.mechanisms.best_local.optimum import Optimum, best_around
from offrecord.mechanisms.best_local.sequential_lp import improve
from offrecord.mechanisms.local_mechanism import composed, within_budget
from offrecord.mechanisms.local_policy import LocalPolicy
from offrecord.mechanisms.three_region import ThreeRegion
from offrecord.mechanisms.window import BestWindow
from offrecord.models.base import Floats
from offrecord.theory.influence import is_forced
from offrecord.theory.one_side import OneSide
from offrecord.theory.problem import Problem, Secret

_TOLERANCE = 1e-6  # of n: utility not worth another linear program
_MOST = 1000  # entries of a span that linear programs improve: they then take seconds
_TRIES = 600  # values closed in trial, divided by the entries of a span
_FEW_PROGRAMS = 40  # they gain within 1 % of what 400 do
_MANY = 64  # secrets of which each is bounded by its own optimum
#: Chains that optimum.py takes: budgets at most, 1 − α − β and the rarer transition at least
#: (docs/proofs/rounding.md, "Bounds on every mechanism").
_LARGEST_BUDGET, _LEAST_GAP, _LEAST_STEP = 300, 1e-7, 1e-15
_RAREST = 1e-100  # transition below which derivatives are no longer floating-point numbers
_BOUND_SLACK = 1e-12  # what rounding may have taken from a bound on the utility


@dataclass(frozen=True)
class BestLocal(Mechanism):
    """Release as much as any local mechanism can.

    One secret in the paper's chain with α + β < 1: the optimum, with a bound that no local
    mechanism exceeds, 10⁻⁶ or so above it (optimum.py). Every other problem of order 1: the best of
    the other mechanisms, improved by linear programs (sequential_lp.py), so never worse than they
    are; the bound is then what F4 forces, or for several secrets the least of what each alone
    allows. Of order above 1 the window. The policy carries the bound as utility_bound, for one
    chain alone. Takes every chain.

    programs: how many linear programs one problem may take; 400 of three values take 2 s.
    """

    name: ClassVar[str] = "best-local"
    is_compared: ClassVar[bool] = True
    programs: int = 400

    def design(self, problem: Problem) -> LocalPolicy:
        """The best policy found; its cost grows with the window, not with n."""
        if problem.chain.order > 1:
            return replace(BestWindow().design(problem), mechanism=self.name)
        policy = within_budget(problem, self._design_for_chain)
        if not problem.is_for_one_chain:
            window = BestWindow().design(problem)
            policy = policy if policy.utility >= window.utility else window
            policy = replace(policy, mechanism=self.name, utility_bound=None)
        if policy.utility == 0:
            note = "nothing can be released within this budget"
            policy = replace(policy, details={**policy.details, "note": note})
        return policy

    @property
    def quicker(self) -> BestLocal:
        """With few linear programs."""
        return replace(self, programs=_FEW_PROGRAMS)

    def _design_for_chain(self, problem: Problem) -> LocalPolicy:
        optima = [_optimum(problem, secret) for secret in problem.secrets[:_MANY]]
        bound = _utility_bound(problem, optima)
        solved = [one for one in optima if one is not None]
        if len(solved) == len(problem.secrets):
            matrix = composed(problem, [(one.left, one.right) for one in solved])
            if len(solved) == 1 or (problem.protect == "each" and _are_apart(matrix, problem)):
                return LocalPolicy(problem, matrix, self.name, bound)
            starts = [LocalPolicy(problem, matrix, self.name)]
        else:
            alone = Problem(
                problem.chain, problem.n, problem.private, problem.epsilon, problem.protect
            )
            starts = [BestWindow().design(alone)]
            starts += [ThreeRegion(tuning).design(alone) for tuning in ("convex", "constant")]
        start = max(starts, key=lambda policy: policy.utility)
        matrix = start.redaction
        ordinary = float(problem.chain.transition[problem.chain.transition > 0].min()) > _RAREST
        if ordinary and problem.epsilon > 0 and start.utility < bound - _TOLERANCE:
            matrix = _improved(problem, matrix, self.programs)
        return LocalPolicy(problem, matrix, self.name, bound)


# Whether secrets have sides of their own, so that each design is the best there is.
def _are_apart(matrix: Floats, problem: Problem) -> bool:
    return len(_spans(matrix, 0)) == len(problem.secrets)


# The optimum around one secret of the paper's chain with α + β < 1, a budget, and nothing extreme;
# None for others.
def _optimum(problem: Problem, secret: Secret) -> Optimum | None:
    chain, epsilon = problem.chain, problem.epsilon
    if not 0 < epsilon <= _LARGEST_BUDGET or not chain.is_paper_setting:
        return None
    if min(chain.alpha, chain.beta) <= _LEAST_STEP or chain.alpha + chain.beta >= 1 - _LEAST_GAP:
        return None
    ceiling = epsilon * (1 + 2.0**-40)  # the budget that rounding took from the design
    margins, run = (secret.first - 1, problem.n - secret.last), secret.last > secret.first
    rates = chain.alpha, chain.beta
    return best_around(*rates, epsilon, ceiling, margins, together=run, n=problem.n)


# A utility that no local mechanism exceeds. The least over the secrets of what each alone allows.
# Where the optimum around one secret is known, that; else F4 (the paper's Lemma 1): no value whose
# influence on a secret exceeds ε is released.
def _utility_bound(problem: Problem, optima: list[Optimum | None]) -> float:
    # F4: what every local mechanism has to redact
    least = float((_forced(problem) * problem.chain.marginals(1, problem.n)).sum())
    for secret, optimum in zip(problem.secrets, optima, strict=False):
        if optimum is not None:
            # F5, F6: what any mechanism redacts around this secret alone
            least = max(least, optimum.least + secret.last - secret.first + 1)
    return min(max(1.0 - least / problem.n, 0.0) + _BOUND_SLACK, 1.0)


# (n, k) 1 where a value's influence on a secret exceeds ε, and on the secrets themselves.
def _forced(problem: Problem) -> Floats:
    sides = [OneSide.both(problem, secret) for secret in problem.secrets]
    epsilon = problem.epsilon
    return composed(problem, [(_near(a, epsilon), _near(b, epsilon)) for a, b in sides])


def _near(side: OneSide, epsilon: float) -> Floats:
    reach = (side.delta_star(epsilon) or min(side.margin, 10_000) + 1) - 1
    influence = side.influence(reach) if reach else np.empty((0, side.chain.k))
    return is_forced(influence, epsilon).astype(np.float64)


# The start, improved wherever it redacts, and a little further out.
def _improved(problem: Problem, matrix: Floats, programs: int) -> Floats:
    result = matrix.copy()
    for first, last in _spans(matrix, 3):
        if (last - first) * problem.chain.k > _MOST:
            continue  # too long: it stays as it is
        # between spans everything is released, so each has only its own secrets to keep
        private = [p for p in problem.private if first < p <= last]
        local = problem.about(private)
        size = (last - first) * problem.chain.k
        tries = max(_TRIES // size, 3) // len(local.secrets)
        least = _TOLERANCE * problem.n
        result[first:last] = improve(local, matrix[first:last], first, (least, tries, programs))
    return result


# Spans of positions apart: what a matrix redacts, and a quarter more, `least` at least.
def _spans(matrix: Floats, least: int) -> list[tuple[int, int]]:
    used = np.concatenate(([False], matrix.any(axis=1), [False]))
    edges = np.flatnonzero(used[1:] != used[:-1]).tolist()
    found: list[list[int]] = []
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        extra = max(least, (end - begin) // 4) if least else 0
        low, high = max(begin - extra, 0), min(end + extra, len(matrix))
        if found and low < found[-1][1]:
            found[-1][1] = high
        else:
            found.append([low, high])
    return [(low, high) for low, high in found]
