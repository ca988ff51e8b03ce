"""Leakage straight from its definition: every sequence, every output, no Markov shortcuts. The referee of the tests."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import strategies as st

import offrecord as off


def sequences(chain, n):
    """All k^n sequences with their probabilities."""
    paths = np.array(list(product(range(chain.k), repeat=n)))
    weight = chain.start[paths[:, 0]].copy()
    for t in range(n - 1):
        kernel = chain.transition if chain.transition.ndim == 2 else chain.transition[t]
        weight *= kernel[paths[:, t], paths[:, t + 1]]
    return paths[weight > 0], weight[weight > 0]


def output_table(chain, n, redaction, secret_positions):
    """(secrets, (k+1)^n) array of Pr(Y = y | secret), y numbered in base k + 1 with digit k for ⊥."""
    paths, weight = sequences(chain, n)
    k = chain.k
    secret_code = np.zeros(len(paths), dtype=int)
    for p in secret_positions:
        secret_code = secret_code * k + paths[:, p - 1]
    codes, secret_index = np.unique(secret_code, return_inverse=True)
    table = np.zeros((len(codes), (k + 1) ** n))
    for silent in product((False, True), repeat=n):
        probability = weight.copy()
        output = np.zeros(len(paths), dtype=int)
        for t in range(n):
            q = redaction[t][paths[:, t]]
            probability = probability * (q if silent[t] else 1 - q)
            output = output * (k + 1) + (k if silent[t] else paths[:, t])
        np.add.at(table, (secret_index, output), probability)
    totals = np.zeros(len(codes))
    np.add.at(totals, secret_index, weight)
    return table / totals[:, None]


def joint_table(chain, n, rules, secret_positions, *, shared):
    """(secrets, outputs) of Pr(both releases | secret) of two redaction matrices: a record is redacted if its coin lies below.

    shared: both releases have the same coin for a record; if not, one each.
    """
    paths, weight = sequences(chain, n)
    secret_code = np.zeros(len(paths), dtype=int)
    for p in secret_positions:
        secret_code = secret_code * chain.k + paths[:, p - 1]
    codes, secret_index = np.unique(secret_code, return_inverse=True)
    symbols = 3 * chain.k + 1  # per record: nothing, or a value in the first, the second, or both
    table = np.zeros((len(codes), symbols**n))
    for shown in product(range(4), repeat=n):
        probability = weight.copy()
        output = np.zeros(len(paths), dtype=int)
        for t, which in enumerate(shown):
            value = paths[:, t]
            a, b = (np.asarray(rule)[t][value] for rule in rules)
            if shared:
                chances = np.minimum(a, b), np.maximum(b - a, 0), np.maximum(a - b, 0), 1 - np.maximum(a, b)
            else:
                chances = a * b, (1 - a) * b, a * (1 - b), (1 - a) * (1 - b)
            probability = probability * chances[which]
            output = output * symbols + (0 if which == 0 else 1 + (which - 1) * chain.k + value)
        np.add.at(table, (secret_index, output), probability)
    totals = np.zeros(len(codes))
    np.add.at(totals, secret_index, weight)
    return table / totals[:, None]


def leakage_of_table(table):
    """sup over outputs and pairs of secrets of the log-likelihood ratio (Definition 1)."""
    table = table[:, (table > 0).any(axis=0)]
    if len(table) < 2:
        return 0.0
    low, high = table.min(axis=0), table.max(axis=0)
    if (low == 0).any():
        return np.inf
    return float(np.log(high / low).max())


def leakage_by_definition(problem, redaction):
    """The largest over the secrets of a problem."""
    redaction = np.asarray(redaction, dtype=float)
    if problem.protect == "each":
        secrets = [[p] for p in problem.private]
    else:
        secrets = []
        for p in problem.private:
            if secrets and secrets[-1][-1] == p - 1:
                secrets[-1].append(p)
            else:
                secrets.append([p])
    return max(leakage_of_table(output_table(problem.chain, problem.n, redaction, s)) for s in secrets)


def utility_by_definition(problem, redaction):
    """Expected share of records released."""
    paths, weight = sequences(problem.chain, problem.n)
    redaction = np.asarray(redaction, dtype=float)
    released = sum(1 - redaction[t][paths[:, t]] for t in range(problem.n))
    return float((weight * released).sum() / weight.sum() / problem.n)


# ---- random chains, problems and matrices


@st.composite
def distributions(draw, k):
    """k probabilities, zeros and ones among them."""
    parts = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 5, 9, 40]), min_size=k, max_size=k).filter(any))
    return np.array(parts) / sum(parts)


@st.composite
def chains(draw, n, ks=(2, 3)):
    """Chains of every kind: stationary, another start, one kernel per step."""
    k = draw(st.sampled_from(ks))
    kernel = st.lists(distributions(k), min_size=k, max_size=k).map(np.array)
    kind = draw(st.sampled_from(["binary", "start", "steps", "stationary"]))
    if kind == "binary":
        number = st.sampled_from([0.01, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 1.0])
        return off.MarkovChain.binary(draw(number), draw(number))
    if kind == "steps":
        return off.MarkovChain([draw(kernel) for _ in range(n - 1)], start=draw(distributions(k)))
    transition = draw(kernel)
    if kind == "stationary":
        try:
            return off.MarkovChain(transition)
        except off.InputError:  # several closed classes
            pass
    return off.MarkovChain(transition, start=draw(distributions(k)))


@st.composite
def problems(draw, max_n=5, ks=(2, 3), epsilons=(0.0, 0.1, 0.5, 1.0, 2.0, 4.0)):
    """Problems of every kind, private records at the ends and side by side included."""
    n = draw(st.integers(2, max_n))
    chain = draw(chains(n, ks))
    private = draw(st.sets(st.integers(1, n), min_size=1, max_size=3))
    return off.Problem(chain, n, private, draw(st.sampled_from(epsilons)), draw(st.sampled_from(["run", "each"])))


@st.composite
def redactions(draw, problem):
    """Matrices with exact 0s and 1s; private records mostly redacted, as they must be."""
    entry = st.sampled_from([0.0, 0.0, 1.0, 1.0, 1.0, 0.5, 0.01, 0.99, 1 - 2**-53, 0.3])
    rows = [[draw(entry) for _ in range(problem.chain.k)] for _ in range(problem.n)]
    if draw(st.integers(0, 9)):
        for p in problem.private:
            rows[p - 1] = [1.0] * problem.chain.k
    return np.array(rows)
