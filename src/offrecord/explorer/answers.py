"""What is answered: numbers, pictures and a sample for one state; curves over ε.

A sample is drawn from the chain, redacted by the policy, and attacked by who knows both.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from offrecord.attacks import paths as attacked
from offrecord.attacks.paths import Inferred, Paths, Shown
from offrecord.attacks.walks import Walks
from offrecord.charts import Chart, influence_chart, rule_chart, utility_chart
from offrecord.errors import InputError
from offrecord.explorer.state import Asked, AskedCurve, FieldError
from offrecord.mechanisms import MECHANISMS, design
from offrecord.mechanisms.base import Policy
from offrecord.mechanisms.deciding.layout import layout_of
from offrecord.mechanisms.deciding.rule_book import RuleBook
from offrecord.mechanisms.deciding.stopping import clusters_of
from offrecord.mechanisms.local_policy import LocalPolicy
from offrecord.mechanisms.rules_policy import Records, RulesPolicy
from offrecord.models.base import Integers, Mask
from offrecord.models.members import Members
from offrecord.models.records import MISSING, Chains
from offrecord.reports.pictures import pair_picture, shown_setting
from offrecord.text import many
from offrecord.theory.influence import pointwise_influence, regions
from offrecord.theory.problem import Problem, Secret

_KEPT = 2048  # designs: those of a curve for some fifty states
_AROUND = 30  # records shown on each side of a private run
_BUDGETS = 12  # points of a curve: smooth enough, and within a second for local mechanisms
_WIDEST = (3.0, 6.0, 12.0, 20.0)  # the last ε of a curve: the first that holds the chosen one
MODEL_FILE = "model.json"  #: what a model file is called in commands


def answer(asked: Asked) -> dict[str, Any]:
    """What the mechanism of a state does, and what the model says.

    FieldError for what cannot be answered, with the field that is wrong.
    """
    problem = asked.problem()
    at = min(asked.about, len(problem.secrets)) - 1
    secret = problem.secrets[at]
    span = _around(secret, problem.n)
    policy = designed(asked.key)
    return {
        "question": _question(problem),
        "secrets": [_name(one) for one in problem.secrets],
        "about": at + 1,
        "utility": policy.utility,
        "leakage": _finite(policy.leakage),
        "within": policy.is_private,
        "epsilon": problem.epsilon,
        "influence": _shown(_influence(problem, secret, span), "influence"),
        "profile": _shown(_profile(policy, secret, span), "profile"),
        "sample": sample_of(policy, asked.seed, at, span),
        "copies": _copies(asked, problem),
    }


def _around(secret: Secret, n: int) -> range:
    return range(max(secret.first - _AROUND, 1), min(secret.last + _AROUND, n) + 1)


def _finite(number: float) -> float | str:
    # JSON has no infinity.
    return number if np.isfinite(number) else "inf"


def curves(asked: AskedCurve) -> dict[str, Any]:
    """Utility over ε of some mechanisms, the chosen one marked; and why others are not shown.

    FieldError for what cannot be answered.
    """
    budgets = _budgets(asked.epsilon)
    rows, why = [], {}
    chosen = designed(asked.key)
    for name in asked.mechanisms:
        try:
            for epsilon in budgets:
                other = asked.model_copy(update={"mechanism": name, "epsilon": epsilon})
                utility = _utility(other.key)
                rows.append({"epsilon": epsilon, "mechanism": name, "utility": utility})
        except InputError as error:
            why[name] = str(error)
    names = [name for name in MECHANISMS if any(row["mechanism"] == name for row in rows)]
    chart = utility_chart(rows, names[::-1], chosen=(asked.epsilon, chosen.utility))
    return {"picture": _shown(chart, "utility"), "rows": rows, "why": why}


def _budgets(epsilon: float) -> list[float]:
    last = next(one for one in _WIDEST if epsilon <= one)
    # as they are shown: the same budgets of two states have the same key
    return [float(f"{last * step / _BUDGETS:.6g}") for step in range(1, _BUDGETS + 1)]


@lru_cache(maxsize=64)
def designed(key: str) -> Policy:
    """The policy of a state, the same for all of its samples."""
    asked = Asked(**json.loads(key))
    problem = asked.problem()
    try:
        return design(problem, asked.mechanism)
    except InputError as error:
        raise FieldError("mechanism", str(error)) from None


# a number each, of more states than policies are kept
@lru_cache(maxsize=_KEPT)
def _utility(key: str) -> float:
    return designed(key).utility


def _shown(chart: Chart, name: str) -> dict[str, str]:
    return {"svg": chart.svg(name), "words": chart.description}


# ---- pictures


def _influence(problem: Problem, secret: Secret, span: range) -> Chart:
    before, after = range(span.start, secret.first), range(secret.last + 1, span.stop)
    rows = [*_influences(problem, secret.first, before), *_influences(problem, secret.last, after)]
    names = [f"value {label}" for label in problem.chain.labels]
    words = "Lines of influence by record and value, over the regions L, M and S."
    return influence_chart(rows, problem.epsilon, names, along="Record t", description=words)


def _influences(problem: Problem, edge: int, span: range) -> Iterator[dict[str, Any]]:
    # The influence of records on one side about the private record nearest to them.
    if not span:
        return
    chain, records = problem.chain, np.array(span)
    try:
        influence = pointwise_influence(chain, edge, records).tolist()
    except InputError as error:  # values too rare to compute with
        raise FieldError("model", str(error)) from None
    named = regions(chain, edge, records, problem.epsilon).tolist()
    for record, values, region in zip(span, influence, named, strict=True):
        where = {"record": record, "side": record > edge, "region": region}
        for label, one in zip(chain.labels, values, strict=True):
            yield where | {"name": f"value {label}", "influence": one}


def _profile(policy: Policy, secret: Secret, span: range) -> Chart:
    labels = policy.problem.chain.labels
    if isinstance(policy, RulesPolicy):
        setting, pair = shown_setting(policy.table)
        return pair_picture(pair, policy.problem.members, setting.place, labels)
    assert isinstance(policy, LocalPolicy)
    names = [f"if its value is {label}" for label in labels]
    beside = [(one, one - secret.first) for one in range(span.start, secret.first)]
    beside += [(one, one - secret.last) for one in range(secret.last + 1, span.stop)]
    rows = [
        {"distance": distance, "name": name, "redaction": chance}
        for record, distance in beside
        for name, chance in zip(names, policy.redaction[record - 1].tolist(), strict=True)
    ]
    return rule_chart(rows, names, description="Redaction probability by record and value.")


# ---- words


def _name(secret: Secret) -> str:
    if secret.first == secret.last:
        return f"record {secret.first}"
    return f"records {secret.first}–{secret.last}"


def _question(problem: Problem) -> str:
    verb = "is" if len(problem.private) == 1 else "are"
    return (
        f"{many(problem.n, 'record')}; {_named(problem.secrets)} {verb} private. What else must be"
        f" withheld, so that nobody's odds move by more than a factor of e^{problem.epsilon:g} ="
        f" {np.exp(problem.epsilon):.3g}?"
    )


def _named(secrets: Sequence[Secret]) -> str:
    more = f" and {len(secrets) - 4} more" if len(secrets) > 4 else ""
    return ", ".join(map(_name, secrets[:4])) + more


def _copies(asked: Asked, problem: Problem) -> dict[str, str]:
    chain, made = ["--model", MODEL_FILE], f'off.MarkovChain.load("{MODEL_FILE}")'
    if asked.model is None:
        chain = ["--alpha", f"{asked.alpha:g}", "--beta", f"{asked.beta:g}"]
        made = f"off.MarkovChain.binary(alpha={asked.alpha!r}, beta={asked.beta!r})"
    private = "".join(asked.private.split())  # one word of a command
    which = [*chain, "--n", str(asked.n), "--private", private, "--epsilon", f"{asked.epsilon:g}"]
    chosen = [*which, "--mechanism", asked.mechanism]
    python = (
        f"import offrecord as off\n\nchain = {made}\n"
        f"problem = off.Problem(chain, n={asked.n}, private={list(problem.private)},"
        f" epsilon={asked.epsilon!r})\n"
        f'policy = off.design(problem, "{asked.mechanism}")\nprint(policy)\n'
    )
    return {"design": shlex.join(["offrecord", "design", *chosen]), "python": python}


# ---- a sample


def sample_of(policy: Policy, seed: int, run: int, span: range) -> dict[str, Any]:
    """A sample of what a policy releases.

    run: number of a private run, from 0. span: the records to show, counted from 1. Beside them
    comes what is inferred about the run: prior and posterior of its first record, and the log-ratio
    between its values (None: impossible, "inf": infinite).
    """
    problem = policy.problem
    # the same seed shows the same values beside another mechanism or ε
    rng = np.random.default_rng(seed)
    values = drawn_values(problem.members, problem.n, rng)
    released = policy.apply(values.tolist(), rng)
    found = inferred(policy, values, released)
    size = abs(float(found.ratio[run]))
    own = int(values[problem.secrets[run].first - 1])
    return {
        "records": [_record(problem, values, released, record) for record in span],
        "redacted": int((~released).sum()),
        "beliefs": [*_beliefs(problem, found, run, own)],
        "ratio": None if np.isnan(size) else _finite(size),
    }


def _record(problem: Problem, values: Integers, released: Mask, record: int) -> dict[str, Any]:
    return {
        "record": record,
        "value": str(problem.chain.labels[values[record - 1]]),
        "released": bool(released[record - 1]),
        "private": record in problem.private,
    }


def _beliefs(problem: Problem, found: Inferred, run: int, own: int) -> Iterator[dict[str, Any]]:
    # own: which value it was.
    pairs = zip(found.prior[run].tolist(), found.posterior[run].tolist(), strict=True)
    for at, (before, after) in enumerate(pairs):
        if not np.isnan(after):
            label = str(problem.chain.labels[at])
            yield {"value": label, "prior": before, "posterior": after, "was": at == own}


def drawn_values(members: Members, n: int, rng: np.random.Generator) -> Integers:
    """(n,) values of one chain's records."""
    order, k = members.order, members.k
    begin = 0 if members.places is None else order - 1
    # the first context holds the first `order` values
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
