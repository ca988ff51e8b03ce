"""A sample release: records drawn from the chain, redacted by a policy; what that gives away."""

from __future__ import annotations

from typing import Any

import numpy as np

from offrecord.attacks import paths as attacked
from offrecord.attacks.paths import Inferred, Paths, Shown
from offrecord.attacks.walks import Walks
from offrecord.mechanisms.base import Policy
from offrecord.mechanisms.deciding.layout import layout_of
from offrecord.mechanisms.deciding.rule_book import RuleBook
from offrecord.mechanisms.deciding.stopping import clusters_of
from offrecord.mechanisms.local_policy import LocalPolicy
from offrecord.mechanisms.rules_policy import Records, RulesPolicy
from offrecord.models.base import Integers, Mask
from offrecord.models.members import Members
from offrecord.models.records import MISSING, Chains


def sample_of(policy: Policy, seed: int, run: int, span: range) -> dict[str, Any]:
    """A sample of what a policy releases.

    run: number of a private run, from 0. span: the records to show, counted from 1. Beside them
    comes what is inferred about the run: prior and posterior of its first record, and the log-ratio
    between its values (None: impossible, "inf": infinite).
    """
    problem = policy.problem
    rng = np.random.default_rng(seed)
    values = drawn_values(problem.members, problem.n, rng)
    released = policy.apply(values.tolist(), rng)
    found = inferred(policy, values, released)
    labels, private = [str(one) for one in problem.chain.labels], set(problem.private)
    records = [
        {
            "record": record,
            "value": labels[values[record - 1]],
            "released": bool(released[record - 1]),
            "private": record in private,
        }
        for record in span
    ]
    size = abs(float(found.ratio[run]))
    own = int(values[problem.secrets[run].first - 1])
    pairs = zip(found.prior[run].tolist(), found.posterior[run].tolist(), strict=True)
    beliefs = [
        {"value": labels[at], "prior": before, "posterior": after, "was": at == own}
        for at, (before, after) in enumerate(pairs)
    ]
    return {
        "records": records,
        "redacted": int((~released).sum()),
        "beliefs": [one for one in beliefs if not np.isnan(one["posterior"])],
        "ratio": None if np.isnan(size) else size if np.isfinite(size) else "inf",
    }


def drawn_values(members: Members, n: int, rng: np.random.Generator) -> Integers:
    """(n,) values of one chain's records."""
    order, k = members.order, members.k
    begin = 0 if members.places is None else order - 1
    context = int(rng.choice(members.contexts, p=members.law(begin)[0]))
    values = [context // k**back % k for back in range(order - 1, -1, -1)]
    for at in range(order - 1, n - 1):
        rows = members.rows[0, min(at, members.rows.shape[1] - 1)]
        values.append(int(rng.choice(k, p=rows[context])))
        context = (context * k + values[-1]) % members.contexts
    return np.array(values[:n])


def inferred(policy: Policy, values: Integers, released: Mask) -> Inferred:
    """What is inferred about each private run by who knows the chain and the policy."""
    problem = policy.problem
    k, order = problem.chain.k, problem.chain.order
    codes = np.where(released, values, MISSING).astype(np.int8)
    chains = Chains(np.array([0, problem.n]), codes, np.arange(problem.n), False, None)
    known = Records(problem)
    layout = layout_of(known.chains, known.runs, order, known.place_of)
    if isinstance(policy, LocalPolicy):
        paths = Paths(Shown.of(chains, k, policy.redaction), problem.members, known.place_of)
        return attacked.inferred(paths, layout, known.runs)
    assert isinstance(policy, RulesPolicy)
    book = RuleBook.of_policy(policy.table, order)
    paths = Paths(Shown.of(chains, k), problem.members, known.place_of)
    return Walks(paths, clusters_of(layout, book), book).inferred(known.runs)
