"""Rules against their definition: every sequence, every walk, every output."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

import offrecord as off
from offrecord.errors import InputError
from soak.running import Campaign, Notes, ViolationError

_NAMES = ("quilt", "window", "3r-relaxed", "3r-convex", "3r-constant", "best-local", "owner")
_EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)
_ROUNDING = 1e-9


def _decisions(kind: str, rng: random.Random, folder: Path) -> Notes:
    """Rules that were made for no chain, in tables with holes, ends and near runs."""
    import deciding_cases

    draw = getattr(deciding_cases, "random_case" if kind == "stopping" else "random_local_case")
    judge = getattr(deciding_cases, f"{kind}_leakages")
    notes: Notes = Counter()
    for leaks, claim in judge(draw(rng.randrange(2**31))):
        notes["by every output"] += 1
        if leaks > claim + _ROUNDING:
            raise ViolationError(f"a run leaks {leaks!r}, claimed are {claim!r}")
    return notes


def _sequences(chain: off.MarkovChain, n: int) -> tuple[np.ndarray, np.ndarray]:
    """All sequences of a chain of any order, and their probabilities."""
    k, order = chain.k, chain.order
    paths = np.array(list(product(range(k), repeat=n)))
    rows, context = chain.transition.reshape(-1, k), np.zeros(len(paths), dtype=int)
    for t in range(order):
        context = context * k + paths[:, t]
    weights = chain.start.ravel()[context]
    for t in range(order, n):
        weights = weights * rows[context, paths[:, t]]
        context = (context * k + paths[:, t]) % k**order
    return paths, weights


def _leaked(chain: off.MarkovChain, problem: off.Problem, policy: off.Policy) -> float:
    """The largest log-ratio over all outputs, from the definition; one run is private."""
    paths, weights = _sequences(chain, problem.n)
    private = np.array(problem.private) - 1
    joint: dict[bytes, dict[bytes, float]] = {}
    totals: Notes = Counter()
    for path, likely in zip(paths, weights, strict=True):
        secret = path[private].tobytes()
        totals[secret] += likely
        for mask, chance in policy.outcomes(path.tolist()):
            seen = joint.setdefault(np.where(mask, path, -1).tobytes(), {})
            seen[secret] = seen.get(secret, 0.0) + likely * chance
    possible = [secret for secret, total in totals.items() if total > 0]
    worst = 0.0
    for seen in joint.values():
        given = [seen.get(secret, 0.0) / totals[secret] for secret in possible]
        if max(given) > 0:
            worst = max(worst, math.log(max(given) / min(given)) if min(given) > 0 else math.inf)
    return worst


def _row(rng: random.Random, k: int) -> list[float]:
    weights = [rng.choice([1, 2, 5, 20]) for _ in range(k)]
    return [one / sum(weights) for one in weights]


def _chain(rng: random.Random, k: int, order: int, *, starts: bool) -> off.MarkovChain:
    rows = np.array([_row(rng, k) for _ in range(k**order)]).reshape((k,) * order + (k,))
    if starts:
        start = np.array(_row(rng, k**order)).reshape((k,) * order)
        return off.MarkovChain(rows, start=start, order=order)
    return off.MarkovChain(rows, order=order)


def _designed(name: str, order: int, rng: random.Random, folder: Path) -> Notes:
    """A mechanism's policy for a list of chains, under each of them."""
    k = rng.choice([2, 2, 3]) if order == 1 else 2
    n = {2: rng.randint(4, 8), 3: rng.randint(4, 6)}[k]
    starts = rng.random() < 0.3
    chains = [_chain(rng, k, order, starts=starts) for _ in range(rng.choice([1, 1, 2, 3]))]
    first = rng.randint(1, n)
    private = list(range(first, min(first + rng.choice([1, 1, 2, order]), n + 1)))
    epsilon = rng.choice(_EPSILONS)
    problem = off.Problem(chains[0], n, private, epsilon, models=chains)
    notes: Notes = Counter({"designs": 1})
    try:
        policy = off.design(problem, name)
    except InputError:
        notes["not served"] += 1
        return notes
    notes["designs that release something"] += policy.utility > 0
    for chain in chains:
        leaks = _leaked(chain, problem, policy)
        notes["by every output"] += 1
        if leaks > epsilon + _ROUNDING:
            raise ViolationError(f"{name} leaks {leaks!r} where {epsilon} is allowed")
    return notes


CAMPAIGN = Campaign(
    {
        "stopping rules in tables": partial(_decisions, "stopping"),
        "local rules in tables": partial(_decisions, "local"),
        **{f"{name}, order 1": partial(_designed, name, 1) for name in _NAMES},
        **{f"{name}, order 2": partial(_designed, name, 2) for name in ("window", "owner")},
    },
    limit=300.0,
    words="Random lists of chains (one to three, two or three values, order 1 and 2, with and"
    " without starts), random private records, ε from 0 to 4. A policy is designed for the list,"
    " and the largest ratio is computed from every sequence and every output under each chain."
    " Rules in tables are random too, with near runs, missing records and ends, by exact"
    " fractions. A violation is a ratio above e^ε, or above what a rule claims.",
)
