"""The model's own attacker against the definition: every sequence, walk and coin enumerated."""

import numpy as np
import pytest

from attacks.bayes import likelihoods, runs_of, sequences, table, walked_releases
from definition import everywhere
from offrecord.attacks.paths import Paths, Shown, inferred
from offrecord.attacks.walks import Walks
from offrecord.mechanisms.deciding.decide import local_redaction
from offrecord.mechanisms.deciding.layout import layout_of
from offrecord.mechanisms.deciding.rule_book import RuleBook
from offrecord.mechanisms.deciding.stopping import clusters_of
from offrecord.mechanisms.rules import SETTINGS, LocalRule, Pair, Setting, StoppingRule
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.members import Members, Places
from offrecord.models.records import MISSING


def spread(likely):
    with np.errstate(divide="ignore"):
        return np.log(likely.max(axis=1)) - np.log(likely.min(axis=1))


def policy(make, protect="run"):
    rules = {Setting(kind, place): Pair(make(), make()) for kind in SETTINGS for place in range(12)}
    return TablePolicy("some", 1.0, protect, None, rules)


def stopping(rng, k, order):
    """A random stopping rule with two or three levels and two far classes."""
    size, levels = k**order, order + np.array([0, 1, 3])[: rng.integers(2, 4)]
    far = np.arange(size) % 2
    stop = rng.integers(0, 5, size=(len(levels) - 1, 2, size, size)) / 4
    return StoppingRule(order, k, levels, far, stop)


WALKS = [
    # k, order, n, private, missing
    (2, 1, 8, (4,), ()),
    (2, 1, 8, (3, 4), ()),
    (2, 1, 8, (0, 7), ()),
    (2, 1, 9, (1, 7), ()),  # two walks meet, or lose the gap
    (2, 1, 9, (1, 7), (4,)),  # no side looks
    (2, 1, 8, (4,), (6,)),
    (2, 1, 8, (2, 4), ()),  # one cluster
    (2, 2, 9, (1, 7), ()),
    (2, 2, 9, (1, 8), ()),
    (2, 2, 8, (4,), (0,)),
    (3, 1, 6, (2,), ()),
    (3, 1, 7, (0, 6), ()),
]


@pytest.mark.parametrize(("k", "order", "n", "private", "missing"), WALKS)
def test_what_walks_give_away_is_what_enumeration_says(k, order, n, private, missing):
    rng = np.random.default_rng([k, order, n, *private])
    members = Members(rng.dirichlet(np.ones(k), size=(1, 1, k**order)), order)
    made = policy(lambda: stopping(rng, k, order))
    every = walked_releases(*sequences(members, n), private, missing, made, order)
    hidden = np.zeros((1, n))
    hidden[:, list(missing)] = MISSING
    runs = runs_of(table(hidden), private)
    book = RuleBook.of_policy(made, order)
    clusters = clusters_of(layout_of(table(hidden), runs, order, everywhere), book)
    for one in range(clusters.count):
        low, high = clusters.begin[one : one + 2]
        secret = list(range(int(clusters.first[one]), int(clusters.last[one]) + 1))
        if high - low == 1:
            secret = list(range(int(runs.first[low]), int(runs.last[low]) + 1))
        likely, releases, joint = likelihoods(*every, secret)
        for number, release in enumerate(releases):
            shown = Shown.of(table(release[np.newaxis]), k)
            found = Walks(Paths(shown, members, everywhere), clusters, book).inferred(runs)
            exact = spread(likely[number : number + 1])[0]
            assert abs(found.ratio[low]) == pytest.approx(exact, abs=1e-9)
            first = joint[number].reshape(k, -1).sum(axis=1)
            assert found.posterior[low] == pytest.approx(first / first.sum(), abs=1e-12)


LOCAL = [
    # k, order, n, private, missing, protect
    (2, 1, 7, (3,), (), "run"),
    (2, 1, 7, (2, 3), (5,), "run"),
    (2, 1, 7, (2, 3), (), "each"),
    (2, 1, 7, (0, 6), (), "run"),
    (2, 2, 8, (4,), (), "run"),
    (2, 2, 8, (3, 4, 5), (), "run"),
    (2, 2, 8, (0, 3, 4), (6,), "each"),
    (3, 1, 6, (1, 3), (), "run"),
]


@pytest.mark.parametrize(("k", "order", "n", "private", "missing", "protect"), LOCAL)
@pytest.mark.parametrize("stepped", [False, True])
def test_what_local_rules_give_away_is_what_enumeration_says(
    k, order, n, private, missing, protect, stepped
):
    rng = np.random.default_rng([k, order, n, *private])
    members = Members(rng.dirichlet(np.ones(k), size=(1, 1, k**order)), order)
    place_of = everywhere
    if stepped:
        rows = rng.dirichlet(np.ones(k), size=(1, n, k**order))
        first = rng.dirichlet(np.ones(k**order), size=1)
        members = Members(rows, order, Places("step", n), first)
        place_of = lambda chain, step: np.asarray(step)  # noqa: E731
    made = policy(lambda: LocalRule(rng.integers(0, 5, size=(rng.integers(1, 4), k)) / 4), protect)
    values, chance = sequences(members, n)
    hidden = np.zeros((1, n))
    hidden[:, list(missing)] = MISSING
    one = table(hidden)
    runs = runs_of(one, private, each=protect == "each")
    layout = layout_of(one, runs, order, place_of)
    silent = local_redaction(one, runs, made, place_of, order)
    every = _released(values, chance, silent, missing)
    by_rules = silent.copy()
    by_rules[list(missing)] = 0.0
    for run in range(runs.count):
        secret = list(range(int(runs.first[run]), int(runs.last[run]) + 1))
        likely, releases, joint = likelihoods(*every, secret)
        for number, release in enumerate(releases[:200]):
            shown = Shown.of(table(release[np.newaxis]), k, by_rules)
            found = inferred(Paths(shown, members, place_of), layout, runs)
            exact = spread(likely[number : number + 1])[0]
            assert abs(found.ratio[run]) == pytest.approx(exact, abs=1e-9)
            first = joint[number].reshape(k, -1).sum(axis=1)
            assert found.posterior[run] == pytest.approx(first / first.sum(), abs=1e-12)


def _released(values, chance, silent, missing):
    """All releases by independent coins, of all sequences."""
    n = values.shape[1]
    at = np.flatnonzero(np.any((silent > 0) & (silent < 1), axis=1))
    parts = []
    for pattern in range(2 ** len(at)):
        mask = silent[np.arange(n), values] == 1
        own = silent[at, values[:, at]]
        bits = pattern >> np.arange(len(at)) & 1 > 0
        mask[:, at] = bits
        likely = chance * np.where(bits, own, 1 - own).prod(axis=1)
        mask[:, list(missing)] = True
        parts.append((values, np.where(mask, MISSING, values), likely))
    return [np.concatenate(one) for one in zip(*parts, strict=True)]
