"""Every field of certificates of each kind, changed or left away.

Each change is refused, or the field is named among those that the verdict did not check.
"""

import copy
import json
import random
import re

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.errors import InputError
from offrecord.mechanisms.rules import LocalRule, Pair, Setting
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.members import Places
from offrecord.models.posterior import Posterior
from offrecord.models.promise import KnownChains
from offrecord.release.certificate import Certificate
from offrecord.verification import members, verify
from releases import HUGE, Released, posterior, rules_for, table


def windows(promise, size=25):
    window = LocalRule.window(size, promise.k)
    sides = {"record": (1, 1), "run": (1, 1), "first": (0, 1), "last": (1, 0)}
    rules = {
        Setting(name): Pair(*(window if one else None for one in both))
        for name, both in sides.items()
    }
    return TablePolicy("window", 1.0, "run", promise.coverage, rules)


def panel(rng):
    """Short chains of as many steps, and kernels for each of them."""
    rows = [(f"c{c:02d}", f"2026-01-01T{t:02d}:00:00Z", f"v{rng.integers(2)}", c % 4 == t == 2)
            for c in range(20) for t in range(4)]  # fmt: skip
    counts = rng.integers(20, 60, (4, 2, 2))
    promise = Posterior(
        counts.sum(axis=0), 1, ["v0", "v1"], 0.95, places=Places("step", 4), place_counts=counts,
        place_kappa=50.0, first_counts=[30, 20],
    )  # fmt: skip
    return pl.DataFrame(rows, schema=["id", "t", "v", "p"], orient="row"), promise


def made(folder, name):
    """A release of each kind."""
    rng = np.random.default_rng(11)
    frame = table(rng, 2, n=60, share=0.03)
    if name == "windows":
        promise = Posterior([[900, 100], [300, 700]], 1, ["v0", "v1"], 0.95, kappa=512.0)
        return Released(folder, frame, promise, windows(promise))
    if name == "a list":
        rows = [[0.9, 0.1], [0.3, 0.7]]
        promise = KnownChains([off.MarkovChain(rows, labels=["v0", "v1"])])
        return Released(folder, frame, promise, epsilon=1.0, mechanism="window")
    if name == "whole chains":
        chain = pl.concat([frame.filter(id="c0"), frame.filter(id="c0").with_columns(
            id=pl.lit("c9"), p=False)])  # fmt: skip
        promise = Posterior([[900, 1], [1, 700]], 1, ["v0", "v1"], 0.95)
        return Released(folder, chain, promise, epsilon=0.01, mechanism="window")
    if name == "places":
        frame, promise = panel(rng)
        policy = rules_for(rng, "local", promise, epsilon=HUGE)
        return Released(folder, frame, promise, policy)
    promise = posterior(rng, 2, 1)
    if name == "growing":
        policy = rules_for(rng, "stopping", promise, epsilon=HUGE)
        return Released(folder, frame, promise, policy, growing=True)
    kind = "local" if name == "published" else name
    policy = rules_for(rng, kind, promise, epsilon=HUGE)
    return Released(folder, frame, promise, policy, publish_positions=name == "published")


NAMES = (
    "windows", "a list", "local", "stopping", "whole chains", "growing", "places", "published",
)  # fmt: skip


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    return {name: made(tmp_path_factory.mktemp("made"), name) for name in NAMES}


def leaves(content, path=()):
    """Where single values stand."""
    if isinstance(content, dict | list):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        for key, inner in items:
            yield from leaves(inner, (*path, key))
    else:
        yield path


def at(content, path):
    for key in path:
        content = content[key]
    return content


def changed(content, path, value):
    copied = copy.deepcopy(content)
    at(copied, path[:-1])[path[-1]] = value
    return copied


def others(value):
    """What may stand there instead."""
    return [one for one in changes(value) if one != value or type(one) is not type(value)]


def changes(value):
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, max(value - 1, 0)]
    if isinstance(value, float):
        return [value * 1.01 + 1e-6, max(value * 0.99 - 1e-6, 0.0)]
    if isinstance(value, str):
        return [value + "x", ""]
    return [1, "x", 0.5]


def field_of(path):
    return ".".join(str(part) for part in path if not isinstance(part, int))


def removed(content, path):
    copied = copy.deepcopy(content)
    del at(copied, path[:-1])[path[-1]]
    return copied


def parts(content, path=()):
    """Where anything stands: single values, and what holds them."""
    if path:
        yield path
    if isinstance(content, dict | list):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        for key, inner in items:
            yield from parts(inner, (*path, key))


def altered(content, each):
    """The changed contents, each with the field that was changed; of long lists a few entries."""
    seen = {}
    for path in parts(content):
        field = field_of(path)
        seen[field] = seen.get(field, 0) + 1
        if seen[field] > each:
            continue
        yield field, removed(content, path)
        value = at(content, path)
        if not isinstance(value, dict | list):
            for other in others(value):
                yield field, changed(content, path, other)


def verdict_of(released, content, way):
    """The verdict on other content; None where it cannot be read."""
    path = released.certificate_path.with_name("altered.json")
    path.write_text(json.dumps(content))
    try:
        table_path = None if way is None else released.path
        return verify(path, table_path, seed=3, **released.ways[way or "alone"])
    except InputError:
        return None


def is_named(field, verdict):
    """Whether a field, or what holds it, is among those that were not checked."""
    inside = re.findall(r"\(([^()]*)\)", " ".join(verdict.not_checked))
    names = {name for listed in inside for name in listed.split(", ")}
    steps = field.split(".")
    return any(".".join(steps[:count]) in names for count in range(1, len(steps) + 1))


@pytest.mark.parametrize("way", [None, "listed", "original"])
@pytest.mark.parametrize("name", NAMES)
def test_a_change_is_refused_or_named_as_not_checked(name, way, releases):
    released = releases[name]
    assert verdict_of(released, released.content, way).is_verified
    unnoticed, honest = set(), Certificate.from_dict(released.content)
    for field, content in altered(released.content, 1):
        verdict = verdict_of(released, content, way)
        if verdict is None or not verdict.is_verified or is_named(field, verdict):
            continue
        if Certificate.from_dict(content) != honest:  # a default that is left away is no change
            unnoticed.add(field)
    assert unnoticed == set()


@pytest.mark.parametrize("name", ["windows", "a list", "stopping"])
@pytest.mark.parametrize("half", ["quantiles", "largest"])
def test_leakage_that_is_stated_as_half_is_refused(half, name, releases):
    content = copy.deepcopy(releases[name].content)
    validation = content["policy"]["validation"]
    if half == "quantiles":
        validation["quantiles"] = [one / 2 for one in validation["quantiles"]]
    else:  # no smaller than the quantiles, so that they agree
        validation["largest"] = validation["quantiles"][2] / 2
        validation["quantiles"][2] = validation["largest"]
    verdict = verdict_of(releases[name], content, None)
    assert "policy.validation" in " ".join(verdict.problems)


@pytest.mark.parametrize("name", NAMES)
def test_junk_gets_a_line_or_a_verdict(name, releases):
    """Something else at a random place, another part, nothing, or more of it: never a crash."""
    released, rng = releases[name], random.Random(5)
    junk = [None, True, 0, -1, 10**16, 1e308, "", "x" * 50, [], {}, [[1]], 0.5, 2**63, "AAAA"]
    paths = list(leaves(released.content))
    for _ in range(60):
        content = copy.deepcopy(released.content)
        path = rng.choice(paths)[: rng.randint(1, 6)]
        parent, key = at(content, path[:-1]), path[-1]
        kind = rng.randrange(3)
        if kind == 0:
            parent[key] = rng.choice(junk)
        elif kind == 1:
            del parent[key]
        else:
            other = rng.choice(paths)[: rng.randint(1, 5)]
            parent[key] = copy.deepcopy(at(released.content, other))
        verdict_of(released, content, None)


def test_models_of_a_kind_that_is_not_known(releases, monkeypatch):
    """Chains that nothing but the publisher's own code draws are not judged by that code."""
    released = releases["local"]
    monkeypatch.setattr(members, "Posterior", KnownChains)
    for way in ("listed", "original"):
        verdict = released.verdict(way)
        assert verdict.status == "cannot judge"
        assert "models of the kind 'posterior'" in str(verdict)


def test_rules_of_a_kind_that_is_not_known(releases):
    released = releases["local"]
    content = copy.deepcopy(released.content)
    content["policy"]["rules"][0]["left"] = {"kind": "oracle", "anything": [1]}
    verdict = released.verdict("alone", content=content)
    assert verdict.status == "cannot judge"
    assert not verdict.is_verified
    assert "CANNOT JUDGE" in str(verdict)
