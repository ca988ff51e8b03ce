"""Random cases for brute force: chains, rules that were made for none of them, tables."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from exact_decisions import ExactChain, Table, leakage, local_outputs, outputs, stationary

from definition import everywhere
from offrecord.mechanisms.deciding.layout import layout_of
from offrecord.mechanisms.deciding.rule_book import RuleBook
from offrecord.mechanisms.deciding.stopping import clusters_of
from offrecord.mechanisms.rules import SETTINGS, LocalRule, Pair, Setting, StoppingRule
from offrecord.mechanisms.table_policy import TablePolicy, record_leakage
from offrecord.models.members import Members, Places
from offrecord.theory.pairs import side_leakages


@dataclass(frozen=True)
class Case:
    chain: ExactChain
    members: Members
    policy: TablePolicy
    table: Table

    @property
    def place_of(self):
        return everywhere if self.members.places is None else lambda chain, step: step

    def layout(self):
        """Where its cores are, and its private runs."""
        one = np.zeros((1, self.table.n), dtype=np.int8)
        chains, runs = self.table.chains(one, each=self.policy.protect == "each")
        return layout_of(chains, runs, self.chain.order, self.place_of), runs

    def values(self, runs, which):
        """The places of some runs that have a value."""
        holes = {*self.table.empty, *self.table.absent}
        spans = [range(int(runs.first[i]), int(runs.last[i]) + 1) for i in which]
        return [place for span in spans for place in span if place not in holes]


def random_rows(rng, k, contexts):
    """The next value's law after each context, all of it positive."""
    rows = []
    for _ in range(contexts):
        weights = rng.integers(1, 9, size=k)
        rows.append(tuple(Fraction(int(one), int(weights.sum())) for one in weights))
    return tuple(rows)


def random_chain(rng, k, order, *, steps=0):
    """A stationary chain; with steps, one with a start and kernels of its own for each step."""
    contexts = k**order
    if not steps:
        rows = random_rows(rng, k, contexts)
        chain = ExactChain(k, order, (rows,), stationary(rows, order, k))
        return chain, Members(
            np.array([[rows]], dtype=np.float64).reshape(1, 1, contexts, k), order
        )
    # the kernel from place p to the next; those before the first context are never used
    kernels = tuple(random_rows(rng, k, contexts) for _ in range(steps - 1))
    weights = rng.integers(1, 9, size=contexts)
    first = tuple(Fraction(int(one), int(weights.sum())) for one in weights)
    chain = ExactChain(k, order, kernels[order - 1 :], first)
    rows = np.array((*kernels, kernels[-1]), dtype=np.float64)[np.newaxis]
    law = np.array(first, dtype=np.float64)[np.newaxis]
    return chain, Members(rows, order, Places("step", steps), law)


def random_rule(rng, k, order, furthest):
    """A stopping rule with random levels up to `furthest`, far classes and chances."""
    contexts = k**order
    count = min(int(rng.choice([1, 2, 2, 3, 3, 4])), furthest - order + 1)
    levels = np.sort(rng.choice(np.arange(order, furthest + 1), size=count, replace=False))
    classes = int(rng.integers(1, contexts + 1)) if rng.random() < 0.7 else contexts
    far = rng.permutation(
        np.concatenate((np.arange(classes), rng.integers(classes, size=contexts - classes)))
    )
    base = rng.integers(1, 8, size=(count - 1, classes, 1, contexts))
    stop = base + rng.integers(-1, 2, size=(count - 1, classes, contexts, contexts))
    # an outcome that some start contexts cannot have leaks without limit: then nothing is claimed
    stop = np.where(rng.random(base.shape) < 0.2, 0, np.clip(stop, 1, 8))
    if rng.random() < 0.9:
        stop = np.minimum(stop, 7)
    return StoppingRule(order, k, levels.astype(np.int64), far, stop / 8)


def random_side(rng, k, order, furthest):
    """A stopping rule, or at times a window."""
    if rng.random() < 0.06:
        return LocalRule.window(int(rng.integers(0, furthest - order + 1)), k)
    return random_rule(rng, k, order, furthest)


def random_policy(rng, k, order, furthest, steps=0):
    """Rules for every setting, at every place where places make a difference."""
    rules = {}
    for setting in all_settings(steps):
        left, right = furthest, furthest
        if steps:  # what a rule asks for must be there, or the side goes whole
            left = min(furthest, setting.place - order + 1)
            right = min(furthest, steps - 1 - setting.place)
        sides = [
            random_side(rng, k, order, room) if room >= order else LocalRule.window(steps, k)
            for room in (left, right)
        ]
        rules[setting] = one_sided(setting.kind, *sides)
    return TablePolicy("random", 1.0, "run", None, rules)


def random_table(rng, n, order, *, holes=True):
    """A table with one to three private runs, at the chain's ends at times."""
    private = set()
    for _ in range(int(rng.choice([1, 2, 2, 3]))):
        length = int(rng.choice([1, 1, 1, 2, order, order + 1]))
        where = int(rng.integers(0, max(n - length, 0) + 1))
        if rng.random() < 0.2:
            where = int(rng.choice([0, n - length]))
        private |= set(range(where, min(where + length, n)))
    if len(private) >= n - 1:
        private = {int(rng.integers(n))}
    others = [place for place in range(n) if place not in private]
    empty, absent = set(), set()
    if holes and rng.random() < 0.4:
        empty |= {int(one) for one in rng.choice(others, size=int(rng.integers(1, 3)))}
    if holes and rng.random() < 0.08:
        empty.add(int(rng.choice(sorted(private))))
    inner = [place for place in others if 0 < place < n - 1 and place not in empty]
    if holes and inner and rng.random() < 0.2:
        absent |= {int(one) for one in rng.choice(inner, size=int(rng.integers(1, 3)))}
    return Table(n, tuple(sorted(private)), tuple(sorted(empty)), tuple(sorted(absent)))


def near_table(rng, n, order, deadline):
    """Two runs with a gap of up to twice the deadline between their cores, one with a hole at
    times.
    """
    # most are too far apart to be one: then both walk, and may meet
    least = deadline if rng.random() < 0.7 else 0
    gap = min(int(rng.integers(least, 2 * deadline + 1)), n - 2 * order)
    first = int(rng.integers(order, max(n - gap - order, order) + 1)) - 1
    second = first + gap + order
    private = {first, min(second, n - 1)}
    if order > 1 and rng.random() < 0.3:
        private.add(first - 1)
    empty = set()
    if rng.random() < 0.3:
        others = [place for place in range(n) if place not in private]
        empty = {int(rng.choice(others))}
    return Table(n, tuple(sorted(private)), tuple(sorted(empty)))


def random_case(seed, most=4096):
    """The case of a number. most: sequences."""
    rng = np.random.default_rng(seed)
    k, order = [(2, 1), (2, 1), (2, 2), (2, 2), (3, 1), (3, 1), (3, 2), (2, 3)][seed % 8]
    longest = int(np.log(most) / np.log(k) + 1e-9)
    n = int(rng.integers(max(order + 2, longest - 4), longest + 1))
    steps = n if rng.random() < 0.2 else 0
    furthest = order + int(
        rng.integers(0 if rng.random() < 0.1 else 1, max((n - order) // 2, 1) + 1)
    )
    near = seed % 3 != 2
    if near:
        n, furthest = longest, order + int(rng.choice([1, 1, 2, 3]))
        steps = n if steps else 0
    chain, members = random_chain(rng, k, order, steps=steps)
    policy = random_policy(rng, k, order, furthest, steps)
    table = near_table(rng, n, order, furthest) if near else random_table(rng, n, order)
    return Case(chain, members, policy, table)


def random_local_case(seed, most=256):
    """The same for local rules; of order 2 for windows."""
    rng = np.random.default_rng((1, seed))
    k, order = [(2, 1), (3, 1), (2, 2), (2, 1)][seed % 4]
    longest = int(np.log(most) / np.log(k) + 1e-9)
    n = int(rng.integers(order + 2, longest + 1))
    steps = n if rng.random() < 0.3 else 0
    chain, members = random_chain(rng, k, order, steps=steps)
    rules = {}
    for setting in all_settings(steps):
        sides = [random_local_rule(rng, k, order) for _ in range(2)]
        rules[setting] = one_sided(setting.kind, *sides)
    protect = "each" if rng.random() < 0.3 else "run"
    return Case(
        chain,
        members,
        TablePolicy("random", 1.0, protect, None, rules),
        random_table(rng, n, order),
    )


def random_local_rule(rng, k, order):
    """Probabilities of redaction in eighths, at up to three distances."""
    reach = int(rng.integers(0, 4))
    if order > 1:
        return LocalRule.window(reach, k)
    redaction = rng.integers(0, 9, size=(reach, k))
    redaction[rng.random(reach) < 0.3] = 8
    return LocalRule(redaction / 8)


def all_settings(steps):
    return [Setting(kind, place) for place in range(max(steps, 1)) for kind in SETTINGS]


def one_sided(kind, left, right):
    return Pair(None if kind == "first" else left, None if kind == "last" else right)


def stopping_leakages(case):
    """For every cluster, what the table leaks about its private values, jointly with those of all
    others, and what is claimed.
    """
    found = outputs(case.chain, case.table, case.policy, case.place_of)
    layout, runs = case.layout()
    clusters = clusters_of(layout, RuleBook.of_policy(case.policy, case.chain.order))
    values = [
        case.values(runs, range(*clusters.begin[i : i + 2].tolist())) for i in range(clusters.count)
    ]
    for i, secret in enumerate(values):
        others = [place for j, one in enumerate(values) if j != i for place in one]
        single = clusters.begin[i + 1] - clusters.begin[i] == 1 and layout.single[clusters.begin[i]]
        claim = claimed(case, int(clusters.first[i]), int(clusters.last[i]), single)
        yield leakage(*found, secret, others, case.chain.k), claim


def local_leakages(case):
    """For every run, what the table leaks about its values, and what is claimed."""
    found = local_outputs(case.chain, case.table, case.policy, case.place_of)
    layout, runs = case.layout()
    for i in range(layout.count):
        claim = claimed(case, int(layout.first[i]), int(layout.last[i]), layout.single[i])
        yield leakage(*found, case.values(runs, [i]), [], case.chain.k), claim


def claimed(case, first, last, single):
    """The leakage that the policy claims for a core from a first to a last place."""
    members, order = case.members, case.chain.order
    opens, closes = first == 0, last == case.table.n - 1
    if opens and closes:
        return 0.0
    kind = "first" if opens else "last" if closes else "record" if single else "run"
    left, right = ((0 if members.places is None else place) for place in (first + order - 1, last))
    if kind == "record":
        return float(record_leakage(case.policy.rules[Setting(kind, right)], members, right)[0])
    total = 0.0
    if not opens:
        total += side(case.policy.rules[Setting(kind, left)].left, members, left, "left")
    if not closes:
        total += side(case.policy.rules[Setting(kind, right)].right, members, right, "right")
    return total


def side(rule, members, place, direction):
    return float(side_leakages(rule.outcomes(members, place, direction), members.law(place))[0])
