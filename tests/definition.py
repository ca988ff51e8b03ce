"""Leakage straight from its definition: every sequence, every output, no Markov shortcuts. The
referee of the tests.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
from hypothesis import strategies as st

import offrecord as off


def everywhere(chain, step):
    """The place function where places make no difference."""
    return np.zeros(len(chain), dtype=np.int64)


def sequences(chain, n):
    """All k^n sequences with their probabilities."""
    paths, order = np.array(list(product(range(chain.k), repeat=n))), chain.order
    weight = chain.start[tuple(paths[:, :order].T)].copy()
    for t in range(order, n):
        kernel = chain.transition if chain.is_homogeneous else chain.transition[t - 1]
        weight *= kernel[tuple(paths[:, t - order : t + 1].T)]
    return paths[weight > 0], weight[weight > 0]


def samples(chain, count, n, rng):
    """(count, n) sequences of a chain with one kernel, as codes."""
    start, kernel = chain.start.cumsum(), chain.transition.cumsum(axis=1)
    values = np.empty((count, n), dtype=np.int64)
    values[:, 0] = (rng.random((count, 1)) > start[:-1]).sum(axis=1)
    for t in range(1, n):
        values[:, t] = (rng.random((count, 1)) > kernel[values[:, t - 1], :-1]).sum(axis=1)
    return values


def output_table(chain, n, redaction, secret_positions):
    """(secrets, (k+1)^n) array of Pr(Y = y | secret), y numbered in base k + 1 with digit
    k for ⊥.
    """
    return table_of_paths(*sequences(chain, n), chain.k, redaction, secret_positions)


def table_of_paths(paths, weight, k, redaction, secret_positions):
    """The same of any sequences of values, with their probabilities."""
    n = paths.shape[1]
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


def leakage_of_paths(paths, weight, problem, redaction):
    """The largest leakage about one of a problem's secrets, by all sequences of values."""
    return max(
        leakage_of_table(
            table_of_paths(
                paths, weight, problem.chain.k, redaction, range(secret.first, secret.last + 1)
            )
        )
        for secret in problem.secrets
    )


def joint_table(chain, n, rules, secret_positions, *, shared):
    """(secrets, outputs) of Pr(both releases | secret) of two redaction matrices: a record is
    redacted if its coin lies below.

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
                chances = (
                    np.minimum(a, b),
                    np.maximum(b - a, 0),
                    np.maximum(a - b, 0),
                    1 - np.maximum(a, b),
                )
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
    return max(
        leakage_of_table(output_table(problem.chain, problem.n, redaction, s)) for s in secrets
    )


def utility_by_definition(problem, redaction):
    """Expected share of records released."""
    paths, weight = sequences(problem.chain, problem.n)
    redaction = np.asarray(redaction, dtype=float)
    released = sum(1 - redaction[t][paths[:, t]] for t in range(problem.n))
    return float((weight * released).sum() / weight.sum() / problem.n)


# ---- the same without rounding, for numbers of any size


def exact_stationary(kernel):
    """The stationary distribution of rows of fractions with one closed class."""
    k = len(kernel)
    reach = np.array([[p > 0 or i == j for j, p in enumerate(row)] for i, row in enumerate(kernel)])
    for _ in range(k):
        reach = reach @ reach
    closed = [i for i in range(k) if all(reach[j, i] for j in range(k) if reach[i, j])]
    rows = [[kernel[i][j] for j in closed] for i in closed]
    for last in range(len(closed) - 1, 0, -1):
        away = sum(rows[last][:last])
        for i in range(last):
            rows[i][last] /= away
            for j in range(last):
                rows[i][j] += rows[i][last] * rows[last][j]
    weights = [Fraction(1)]
    for i in range(1, len(closed)):
        weights.append(sum(weights[j] * rows[j][i] for j in range(i)))
    return [
        weights[closed.index(i)] / sum(weights) if i in closed else Fraction(0) for i in range(k)
    ]


def exact_kernel(rows):
    """Rows of floats as fractions that sum to 1."""
    exact = [[Fraction(float(p)) for p in row] for row in rows]
    return [[p / sum(row) for p in row] for row in exact]


def exact_log(ratio):
    """The logarithm of a fraction of at least 1, however large."""
    if ratio < Fraction(5, 4):
        return math.log1p(ratio - 1)
    power = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    return math.log(ratio / Fraction(2) ** power) + power * math.log(2)


def exact_leakage(problem, redaction):
    """Leakage of a first-order chain with one kernel, by its definition, in fractions."""
    chain, n = problem.chain, problem.n
    kernel = exact_kernel(chain.transition)
    start = exact_stationary(kernel) if chain.is_stationary else exact_kernel([chain.start])[0]
    chances = [[Fraction(float(q)) for q in row] for row in np.asarray(redaction)]
    found = 0.0
    for first, last in problem.secrets:
        seen, totals = {}, {}
        for path in product(range(chain.k), repeat=n):
            weight = start[path[0]] * math.prod(kernel[i][j] for i, j in pairwise(path))
            if weight == 0:
                continue
            secret = path[first - 1 : last]
            totals[secret] = totals.get(secret, 0) + weight
            for silent in product((False, True), repeat=n):
                coins = (
                    q[x] if quiet else 1 - q[x]
                    for q, x, quiet in zip(chances, path, silent, strict=True)
                )
                probability = weight * math.prod(coins)
                if probability:
                    output = tuple(
                        None if quiet else x for x, quiet in zip(path, silent, strict=True)
                    )
                    mine = seen.setdefault(output, {})
                    mine[secret] = mine.get(secret, 0) + probability
        for mine in seen.values():
            given = [mine.get(secret, 0) / total for secret, total in totals.items()]
            found = max(found, math.inf if min(given) == 0 else exact_log(max(given) / min(given)))
    return found


# ---- random chains, problems and matrices


@st.composite
def rare_kernels(draw, k):
    """(k, k) kernels with entries as small as floats get; rows sum to 1 up to rounding."""
    sizes = st.sampled_from(
        [
            0.0,
            5e-324,
            1e-320,
            1e-310,
            1e-300,
            1e-250,
            1e-200,
            1e-160,
            1e-100,
            1e-30,
            1e-16,
            1e-8,
            0.1,
            0.5,
        ]
    )
    rows = []
    for _ in range(k):
        row = [draw(sizes) for _ in range(k)]
        row[draw(st.integers(0, k - 1))] = 0.0
        if sum(row) < 1:
            row[row.index(0.0)] = 1 - sum(row)
        rows.append([p / sum(row) for p in row])
    return rows


@st.composite
def distributions(draw, k):
    """k probabilities, zeros and ones among them."""
    parts = draw(
        st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 5, 9, 40]), min_size=k, max_size=k).filter(any)
    )
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
    return off.Problem(
        chain, n, private, draw(st.sampled_from(epsilons)), draw(st.sampled_from(["run", "each"]))
    )


@st.composite
def redactions(draw, problem):
    """Matrices with exact 0s and 1s; private records mostly redacted, as they must be."""
    entry = st.sampled_from([0.0, 0.0, 1.0, 1.0, 1.0, 0.5, 0.01, 0.99, 1 - 2**-53, 0.3])
    rows = [[draw(entry) for _ in range(problem.chain.k)] for _ in range(problem.n)]
    if draw(st.integers(0, 9)):
        for p in problem.private:
            rows[p - 1] = [1.0] * problem.chain.k
    return np.array(rows)


# ---- any policy, by the outcomes that it lists


def told_by_outcomes(problem, policy):
    """What a policy leaks and which share of records it releases, from its outcomes for every
    sequence: nothing is asked of it but its masks.
    """
    paths, weight = sequences(problem.chain, problem.n)
    outputs, released, tables = {}, 0.0, [{} for _ in problem.secrets]
    totals = [{} for _ in problem.secrets]
    for path, likely in zip(paths, weight, strict=True):
        values = [path[one.first - 1 : one.last].tobytes() for one in problem.secrets]
        for of_values, value in zip(totals, values, strict=True):
            of_values[value] = of_values.get(value, 0.0) + likely
        whole = 0.0
        for mask, chance in policy.outcomes(path.tolist()):
            assert not any(mask[p - 1] for p in problem.private)
            output = outputs.setdefault(np.where(mask, path, -1).tobytes(), len(outputs))
            whole += chance
            released += likely * chance * mask.mean()
            for table, value in zip(tables, values, strict=True):
                table[value, output] = table.get((value, output), 0.0) + likely * chance
        assert math.isclose(whole, 1.0, abs_tol=1e-9)
    leakage = 0.0
    for table, of_values in zip(tables, totals, strict=True):
        rows = {value: number for number, value in enumerate(of_values)}
        told = np.zeros((len(rows), len(outputs)))
        for (value, output), mass in table.items():
            told[rows[value], output] = mass / of_values[value]
        leakage = max(leakage, leakage_of_table(told))
    return leakage, released / weight.sum()
