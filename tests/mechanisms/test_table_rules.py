"""Rules of tables: no output of a chain leaks more than is said, under any member, by the
definition: every sequence of values, every output, every place of private records.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

import offrecord as off
from definition import leakage_by_definition
from offrecord.mechanisms.base import Mechanism, Unserved
from offrecord.mechanisms.design_table import design_table, validate
from offrecord.mechanisms.rules import LocalRule, Pair, Setting
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.members import Members, Places
from offrecord.models.promise import Promise
from offrecord.theory.window import shortest_window, smallest_windows, staircase

MECHANISMS = [off.BestWindow(), off.ThreeRegion(), off.BestLocal(programs=20)]
PRIVATE = [[1], [3], [4, 5], [2, 3, 4], [2, 5], [6], [1, 4], [3, 6], [1, 2]]


@dataclass(frozen=True)
class Listed(Promise):
    """Any members, every one of which counts."""

    listed: Members
    coverage: float | None = field(default=None)

    @property
    def labels(self):
        return tuple(range(self.listed.k))

    @property
    def order(self):
        return self.listed.order

    @property
    def places(self):
        return self.listed.places

    @property
    def mean(self):
        return self.listed.part(slice(0, 1))

    def members(self, count, seed):
        return self.listed

    def form(self):
        raise NotImplementedError("members of no file")

    def to_dict(self):
        return {"rows": self.listed.rows.tolist()}


def sides_of(first, last, n, order):
    """A run's core and setting, None if it is the whole chain; records count from 1."""
    low = first if last - first + 1 >= order else max(last - order + 1, 1)
    high = max(last, low + order - 1)
    if low == 1 and high == n:
        return low, high, None
    kind = "first" if low == 1 else "last" if high == n else "run" if last > first else "record"
    return low, high, kind


def runs_of(private):
    runs = []
    for p in private:
        if runs and runs[-1][1] == p - 1:
            runs[-1][1] = p
        else:
            runs.append([p, p])
    return runs


def settings_of(private, n, order, place_of):
    found = set()
    for first, last in runs_of(private):
        low, high, kind = sides_of(first, last, n, order)
        if kind is not None:
            found |= {Setting(kind, place_of(high)), Setting(kind, place_of(low + order - 1))}
    return found


def matrix_of(policy, private, n, order, place_of, k):
    """What the rules redact in one chain."""
    matrix = np.zeros((n, k))
    for first, last in runs_of(private):
        low, high, kind = sides_of(first, last, n, order)
        matrix[low - 1 : high] = 1
        if kind is None:
            continue
        left = policy.rules[Setting(kind, place_of(low + order - 1))].left
        right = policy.rules[Setting(kind, place_of(high))].right
        for rule, at, step in ((left, low - 1, -1), (right, high - 1, 1)):
            for d, row in enumerate([] if rule is None else rule.redaction, start=1):
                if 0 <= at + step * d < n:
                    matrix[at + step * d] = np.maximum(matrix[at + step * d], row)
    return matrix


def check(promise, mechanism, n, place_of, chain_of, epsilon=1.0, cases=PRIVATE):
    """Design for all cases together; the figure of each member bounds what it leaks."""
    order, k = promise.order, promise.k
    cases = [case for case in cases if case[-1] <= n]
    settings = set().union(*(settings_of(case, n, order, place_of) for case in cases))
    policy = design_table(mechanism, promise, epsilon, "run", settings)
    members = promise.members(0, 0)
    said = policy.leakages(members)
    assert np.all(said <= epsilon)
    assert TablePolicy.from_dict(policy.to_dict()).to_dict() == policy.to_dict()
    for case in cases:
        matrix = matrix_of(policy, case, n, order, place_of, k)
        for number in range(members.count):
            problem = off.Problem(chain_of(number), n, case, epsilon)
            assert leakage_by_definition(problem, matrix) <= said[number] + 1e-9
    return policy


@pytest.mark.parametrize("seed", range(6))
def test_no_member_of_a_list_leaks_more(seed):
    rng = np.random.default_rng(seed)
    k = 2 if seed % 3 else 3
    chains = [off.MarkovChain(rng.dirichlet(np.full(k, 0.8), size=k)) for _ in range(3)]
    promise = off.KnownChains(chains)
    for mechanism in MECHANISMS:
        check(promise, mechanism, 7 if k == 2 else 5, lambda t: 0, lambda i: chains[i], 1.5)


@pytest.mark.parametrize("seed", range(4))
def test_so_it_is_of_order_two(seed):
    """Runs of 2, m and m + 1 records, and records whose core holds those before them."""
    rng = np.random.default_rng(10 + seed)
    k = 2 if seed else 3
    kernels = rng.dirichlet(np.full(k, 1.5), size=(2, k, k))
    chains = [off.MarkovChain(kernel, order=2) for kernel in kernels]
    cases = [[1], [3], [2], [3, 4], [3, 4, 5], [2, 3], [6]]
    policy = check(
        off.KnownChains(chains), off.BestLocal(), 7 if k == 2 else 5, lambda t: 0,
        lambda i: chains[i], 2.5, cases,
    )  # fmt: skip
    assert policy.mechanism == "window"


@pytest.mark.parametrize("seed", range(4))
def test_so_it_is_of_chains_with_a_start(seed):
    """Rules differ by the number of steps from the start, until that is forgotten."""
    rng = np.random.default_rng(20 + seed)
    order, k = (1, 2) if seed < 3 else (2, 2)
    kernel = rng.dirichlet(np.full(k, 2.0), size=(k,) * order)
    start = rng.dirichlet(np.full(k**order, 0.5)).reshape((k,) * order)
    chain = off.MarkovChain(kernel, start=start, order=order)
    promise = off.KnownChains([chain])
    last = promise.places.count - 1
    for mechanism in MECHANISMS[: 3 if order == 1 else 1]:
        check(promise, mechanism, 7, lambda t: min(t - 1, last), lambda i: chain, 1.5)


def test_so_it_is_where_the_start_is_forgotten_soon():
    """The last place is that of all later records, however near the real beginning is."""
    chain = off.MarkovChain([[0.5, 0.5], [0.5 + 1e-13, 0.5 - 1e-13]], start=[0.1, 0.9])
    promise = off.KnownChains([chain])
    assert promise.places.count <= 4
    last = promise.places.count - 1
    rule = LocalRule(np.array([[1.0, 1.0], [0.5, 1.0], [0.25, 0.75], [1.0, 0.5], [0.5, 0.5]]))
    for case in PRIVATE:
        settings = settings_of(case, 7, 1, lambda t: min(t - 1, last))
        rules = {
            one: Pair(None if one.kind == "first" else rule, None if one.kind == "last" else rule)
            for one in settings
        }
        policy = TablePolicy("mine", 1.0, "run", None, rules)
        matrix = matrix_of(policy, case, 7, 1, lambda t: min(t - 1, last), 2)
        truth = leakage_by_definition(off.Problem(chain, 7, case, 1.0), matrix)
        assert truth <= policy.leakages(promise.members(0, 0))[0] + 1e-9


@pytest.mark.parametrize("begin", range(3))
def test_so_it_is_of_places_by_a_clock(begin):
    rng = np.random.default_rng(5)
    members = Members(rng.dirichlet(np.ones(2), size=(2, 12, 2)), 1, Places("month", 12))
    promise = Listed(members)

    def chain_of(number):
        kernels = [members.kernel((begin + t) % 12)[number] for t in range(6)]
        return off.MarkovChain(kernels, start=members.law(begin)[number])

    for mechanism in MECHANISMS[:1]:
        check(promise, mechanism, 7, lambda t: (begin + t - 1) % 12, chain_of, 1.5)


def test_so_it_is_of_panels():
    rng = np.random.default_rng(6)
    rows, first = rng.dirichlet(np.ones(2), size=(2, 7, 2)), rng.dirichlet(np.ones(2), size=2)
    promise = Listed(Members(rows, 1, Places("step", 7), first))

    def chain_of(number):
        return off.MarkovChain(rows[number, :6], start=first[number])

    for mechanism in MECHANISMS[:2]:
        check(promise, mechanism, 7, lambda t: t - 1, chain_of, 1.5)


# ---- windows


def test_the_smallest_windows_are_those_of_the_definition():
    rng = np.random.default_rng(8)
    for order, k in ((1, 2), (1, 3), (2, 2)):
        members = Members(rng.dirichlet(np.ones(k), size=(40, 1, k**order)), order)
        for kind in ("record", "run", "first", "last"):
            for allowed in (0, 5):
                found = smallest_windows(members, kind, 0, 1.0, allowed)

                def above(left, right, kind=kind, members=members, k=k):
                    pair = Pair(
                        None if kind == "first" else LocalRule.window(left, k),
                        None if kind == "last" else LocalRule.window(right, k),
                    )
                    rules = {Setting(kind): pair}
                    policy = TablePolicy("", 1.0, "run", None, rules)
                    return int((policy.leakages(members) > 1.0).sum())

                assert above(*found) <= allowed
                if max(found) > 0:
                    assert above(*(max(size - 1, 0) for size in found)) > allowed


def test_windows_of_chosen_chains():
    for chain, size in (
        (off.MarkovChain.binary(0.024, 0.27), 8),
        (off.MarkovChain.binary(0.0036, 0.012), 129),
        (off.MarkovChain([[0.95, 0.05, 0], [0.1, 0.8, 0.1], [0, 0.08, 0.92]]), 27),
    ):
        left, right = shortest_window(chain.members(), "record", 0, 1.0)
        assert 2 * size - 1 <= left + right <= 2 * size
    assert shortest_window(off.MarkovChain.binary(1.0, 1.0).members(), "record", 0, 1.0) is None


def test_a_staircase_is_walked_to_its_smallest_sum():
    rng = np.random.default_rng(9)
    for _ in range(200):
        heights = np.sort(rng.integers(0, 12, 12))[::-1]  # for each left, the least right

        def keeps(left, right, heights=heights):
            return right >= heights[left]

        every = [(i, j) for i in range(12) for j in range(12) if keeps(i, j)]
        found = staircase(keeps, (11, 11))
        if not every:
            assert found is None
            continue
        least = min(map(sum, every))
        assert found in [one for one in every if sum(one) == least]
        assert abs(found[0] - found[1]) == min(abs(i - j) for i, j in every if i + j == least)


# ---- plausible chains


@pytest.mark.parametrize(
    ("counts", "strict"), [([[3889, 96], [95, 263]], False), ([[38890, 960], [950, 2630]], True)]
)
def test_a_posterior_is_validated_on_draws_of_its_own(counts, strict):
    posterior = off.Posterior(counts, 1)
    settings = [Setting("record"), Setting("run"), Setting("first")]
    costs = {}
    for mechanism in (off.BestWindow(), off.BestLocal()):
        policy = design_table(mechanism, posterior, 1.0, "run", settings)
        assert policy.validation.drawn == 8000
        assert policy.validation.above <= 20
        assert validate(policy, posterior, 77) is not None
        assert (policy.leakages(posterior.members(8000, 5)) > 1.0).sum() <= 53
        again = design_table(mechanism, posterior, 1.0, "run", settings)
        assert again.to_dict() == policy.to_dict()
        pair = policy.rules[Setting("record")]
        costs[mechanism.name] = sum(
            float(rule.expected_redactions(posterior.mean, 0, side)[0])
            for rule, side in zip(pair, ("left", "right"), strict=True)
        )
    assert costs["best-local"] <= costs["window"] <= 20
    assert costs["best-local"] < costs["window"] or not strict


def test_a_policy_of_the_mean_alone_is_not_accepted():
    posterior = off.Posterior([[480, 20], [15, 35]], 1)
    rules = {Setting("record"): off.BestWindow().rules(posterior.mean, Setting("record"), 1.0)}
    policy = TablePolicy("window", 1.0, "run", 0.99, rules)
    assert policy.leakages(posterior.mean)[0] <= 1.0
    assert validate(policy, posterior) is None


def test_chains_that_never_forget_have_no_rules():
    still = off.KnownChains([off.MarkovChain([[1.0, 0.0], [0.0, 1.0]], start=[0.5, 0.5])])
    with pytest.raises(off.InputError, match="never forgets its start"):
        design_table(off.BestWindow(), still, 1.0, "run", [Setting("record", 0)])
    swinging = off.KnownChains([off.MarkovChain([[0.0, 1.0], [1.0, 0.0]])])
    with pytest.raises(Unserved, match="no window"):
        design_table(off.BestWindow(), swinging, 1.0, "run", [Setting("record", 0)])


# ---- mechanisms of one's own


@dataclass(frozen=True)
class Wider(Mechanism):
    """Rules alone: a window of so many records more on either side."""

    more: int = 2

    @property
    def name(self):
        return "wider"

    def rules(self, mean, setting, epsilon):
        pair = off.BestWindow().rules(mean, setting, epsilon)
        return Pair(
            *(
                None if one is None else LocalRule.window(one.reach + self.more, mean.k)
                for one in pair
            )
        )


@dataclass(frozen=True)
class Lopsided(Mechanism):
    """A design alone: half of the budget."""

    @property
    def name(self):
        return "lopsided"

    def design(self, problem):
        return off.BestWindow().design(problem.with_epsilon(problem.epsilon / 2))


@pytest.mark.parametrize("mechanism", [Wider(), Lopsided()])
def test_a_mechanism_needs_rules_or_a_design(mechanism):
    chain = off.MarkovChain.binary(0.1, 0.3)
    promise = off.KnownChains([chain])
    policy = check(promise, mechanism, 7, lambda t: 0, lambda i: chain)
    assert policy.mechanism == mechanism.name
    problem = off.Problem(chain, 60, [20, 40], 1.0, "each")
    designed = off.design(problem, mechanism)
    assert designed.is_private
    assert 0 < designed.utility < off.design(problem, "window").utility
    posterior = off.Posterior([[900, 100], [60, 140]], 1)
    listed = design_table(mechanism, posterior, 1.0, "run", [Setting("record"), Setting("last")])
    assert listed.validation.above <= 20
