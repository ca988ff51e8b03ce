"""Rules against their definition: every sequence, every walk, every output."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np

import offrecord as off
from offrecord.errors import InputError
from soak.running import Campaign, Notes, ViolationError

_NAMES = ("quilt", "window", "3r-relaxed", "3r-convex", "3r-constant", "best-local", "owner")
_EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)
_ROUNDING = 1e-9


def _decisions(rng: random.Random, folder: Path) -> Notes:
    """Stopping rules that were made for no chain, in tables with holes, ends and near runs."""
    from cases import excesses, is_kept, random_case

    notes: Notes = Counter()
    for _, leaks, claim in excesses(random_case(rng.randrange(2**31))):
        notes["clusters"] += 1
        if not is_kept(leaks, claim):
            raise ViolationError(f"a cluster leaks {leaks!r}, claimed are {claim!r}")
    return notes


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
    from definition import told_by_outcomes

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
        leaks = told_by_outcomes(off.Problem(chain, n, private, epsilon), policy)
        notes["by every output"] += 1
        if leaks > epsilon + _ROUNDING:
            raise ViolationError(f"{name} leaks {leaks!r} where {epsilon} is allowed")
    return notes


CAMPAIGN = Campaign(
    {
        "stopping rules in tables": _decisions,
        **{f"{name}, order 1": partial(_designed, name, 1) for name in _NAMES},
        **{f"{name}, order 2": partial(_designed, name, 2) for name in ("window", "owner")},
    },
    limit=300.0,
    words="Random lists of chains (one to three, two or three values, order 1 and 2, with and"
    " without starts), random private records, ε from 0 to 4. A policy is designed for the list,"
    " and the largest ratio is computed from every sequence and every output under each chain."
    " Stopping rules in tables are random too, with near runs, missing records and ends, by exact"
    " fractions. A violation is a ratio above e^ε, or above what a rule claims.",
)
