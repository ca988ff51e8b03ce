"""Every field of certificates of each kind, changed: which changes verify, and why they may.

Field by field, numbers a little more and less, texts, truths and lists; then junk anywhere.
"""

import copy
import json
import random

import numpy as np
import pytest

import offrecord as off
from offrecord.errors import InputError
from offrecord.mechanisms.rules import LocalRule, Pair, Setting
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.known import KnownChains
from offrecord.models.posterior import Posterior
from offrecord.verify import verify
from releases import HUGE, Released, posterior, rules_for, table

SHOWN = "a name, or how a table is read: checked with the table"
COUNTED = "checked with the table"
SAID = "repeated by verify as what it does not check"
DEEPER = "rules that redact more, or leak no more than ε all the same"
LIKELY = "the rules keep ε under these chains, too"
#: By field without numbers of entries: changes that a certificate alone does not show.
HARMLESS = {
    "dataset": SHOWN,
    "columns.step": SHOWN,
    "columns.zone": SHOWN,
    "columns.keep_all": SHOWN,
    "counts.chains": COUNTED,
    "counts.missing": COUNTED,
    "counts.runs": COUNTED,
    "counts.released": COUNTED,
    "counts.dropped_chains": COUNTED,
    "release.others": SAID,
    "release.accepted": SAID,
    "release.why": SAID,
    "policy.validation.quantiles": SAID,
    "policy.validation.largest": SAID,
    "policy.rules.left.window": DEEPER,
    "policy.rules.right.window": DEEPER,
    "policy.rules.left.redaction": DEEPER,
    "policy.rules.right.redaction": DEEPER,
    "policy.rules.left.levels": DEEPER,
    "policy.rules.right.levels": DEEPER,
    "policy.rules.left.far": DEEPER,
    "policy.rules.right.far": DEEPER,
    "choice.expected": SAID,
    "choice.runner_up": SAID,
    "choice.runner_up_expected": SAID,
    "model.labels": SHOWN,
    "model.chains.labels": SHOWN,
    "model.counts": LIKELY,
    "model.kappa": LIKELY,
    "versions.offrecord": SHOWN,
    "versions.polars": SHOWN,
    "versions.numpy": SHOWN,
    "output.format": SHOWN,
}
#: Of these, what is not found with table, list, key and original either.
HARMLESS_WITH_TABLE = {
    "columns.zone": "of a step that no calendar counts",
    "release.others": SAID,
    "release.accepted": SAID,
    "release.why": SAID,
    "policy.validation.quantiles": SAID,
    "policy.validation.largest": SAID,
    "choice.expected": SAID,
    "choice.runner_up": SAID,
    "choice.runner_up_expected": SAID,
    "policy.rules.left.window": "of a setting that does not occur",
    "policy.rules.right.window": "of a setting that does not occur",
    "policy.rules.left.redaction": "no record's coin lies between",
    "policy.rules.right.redaction": "no record's coin lies between",
    "policy.rules.left.levels": "no walk that acts stops elsewhere",
    "policy.rules.right.levels": "no walk that acts stops elsewhere",
    "policy.rules.left.far": "no walk that acts stops elsewhere",
    "policy.rules.right.far": "no walk that acts stops elsewhere",
    "model.counts": LIKELY,
    "model.kappa": LIKELY,
    "versions.offrecord": SHOWN,
    "versions.polars": SHOWN,
    "versions.numpy": SHOWN,
}


def windows(promise, size=25):
    window = LocalRule.window(size, promise.k)
    sides = {"record": (1, 1), "run": (1, 1), "first": (0, 1), "last": (1, 0)}
    rules = {
        Setting(name): Pair(*(window if one else None for one in both))
        for name, both in sides.items()
    }
    return TablePolicy("window", 1.0, "run", promise.coverage, rules)


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
    promise = posterior(rng, 2, 1)
    return Released(folder, frame, promise, rules_for(rng, name, promise, epsilon=HUGE))


NAMES = ("windows", "a list", "local", "stopping")


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


def verifies(released, content, way):
    """Whether it verifies; what cannot be read does not."""
    path = released.certificate_path.with_name("altered.json")
    path.write_text(json.dumps(content))
    given = released.ways[way or "alone"]
    try:
        table_path = None if way is None else released.path
        return verify(path, table_path, seed=3, **given).is_verified
    except InputError:
        return False


def passing(released, way, each=3):
    """The fields of which some change verifies; of long lists a few entries."""
    found, seen = set(), {}
    for path in leaves(released.content):
        field = field_of(path)
        seen[field] = seen.get(field, 0) + 1
        if seen[field] > each or field in found:
            continue
        for value in others(at(released.content, path)):
            if verifies(released, changed(released.content, path, value), way):
                found.add(field)
                break
    return found


@pytest.mark.parametrize("name", NAMES)
def test_changes_that_verify_are_harmless(name, releases):
    released = releases[name]
    assert verifies(released, released.content, None)
    assert passing(released, None) - {*HARMLESS} == set()


@pytest.mark.parametrize("name", NAMES)
def test_with_the_table_fewer_do(name, releases):
    released = releases[name]
    assert verifies(released, released.content, "original")
    assert passing(released, "original") - {*HARMLESS_WITH_TABLE} == set()


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
        verifies(released, content, None)


def test_rules_of_a_kind_that_is_not_known(releases):
    released = releases["local"]
    content = copy.deepcopy(released.content)
    content["policy"]["rules"][0]["left"] = {"kind": "oracle", "anything": [1]}
    verdict = released.verdict("alone", content=content)
    assert verdict.status == "cannot judge"
    assert not verdict.is_verified
    assert "CANNOT JUDGE" in str(verdict)
