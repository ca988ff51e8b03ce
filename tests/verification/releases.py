"""Releases under rules of any kind, with all that can be checked of them."""

import json
import warnings

import numpy as np
import polars as pl

import offrecord as off
from offrecord.mechanisms.rules import SETTINGS, LocalRule, Pair, Setting, StoppingRule
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.file import Model
from offrecord.models.members import Places
from offrecord.models.posterior import Posterior
from offrecord.verification import verify

HUGE = 200.0  #: ε that any rule keeps: what is tested is cells, not leakage


def drawable(chances):
    """Probabilities as coins draw them."""
    return np.floor(np.asarray(chances) * 2.0**40) / 2.0**40


def local_rule(rng, k, order):
    if order > 1 or rng.random() < 0.3:
        return LocalRule.window(int(rng.integers(0, 5)), k)
    chances = drawable(rng.random((int(rng.integers(1, 5)), k)) * 0.98 + 0.01)
    chances[rng.random(chances.shape) < 0.2] = 1
    return LocalRule(chances)


def stopping_rule(rng, k, order):
    contexts, count = k**order, int(rng.integers(1, 5))
    levels = np.sort(rng.choice(np.arange(order, order + 8), count, replace=False))
    far = np.unique(rng.integers(0, 3, contexts), return_inverse=True)[1]
    stop = drawable(rng.random((count - 1, far.max() + 1, contexts, contexts)) * 0.9 + 0.05)
    if rng.random() < 0.5:
        stop[:, :, :, rng.random(contexts) < 0.5] = 0
    return StoppingRule(order, k, levels, far, stop)


def rule(rng, kind, k, order):
    if kind == "local":
        return local_rule(rng, k, order)
    if kind == "mixed" and rng.random() < 0.5:
        return LocalRule.window(int(rng.integers(0, 5)), k)
    return stopping_rule(rng, k, order)


def posterior(rng, k, order, places=None):
    """Counts, with places of a day or without."""
    labels, contexts = [f"v{i}" for i in range(k)], k**order
    if places is None:
        return Posterior(rng.integers(20, 80, (contexts, k)), order, labels, 0.95)
    counts = rng.integers(20, 60, (24, contexts, k))
    return Posterior(
        counts.sum(axis=0), order, labels, 0.95,
        places=Places("hour", 24, "UTC"), place_counts=counts, place_kappa=50.0,
    )  # fmt: skip


def rules_for(rng, kind, promise, protect="run", epsilon=HUGE):
    """A policy for every setting and place."""
    places = 1 if promise.places is None else promise.places.count
    rules = {
        Setting(name, place): Pair(
            None if name == "first" else rule(rng, kind, promise.k, promise.order),
            None if name == "last" else rule(rng, kind, promise.k, promise.order),
        )
        for name in SETTINGS
        for place in range(places)
    }
    return TablePolicy("mine", epsilon, protect, promise.coverage, rules)


def table(rng, k, *, n=150, share=0.05, missing=0.0, gaps=0.0):
    """A few chains by the hour, private at random."""
    rows = []
    for chain in range(int(rng.integers(1, 5))):
        for t in range(n):
            if t and rng.random() < gaps:
                continue
            value = None if rng.random() < missing else f"v{rng.integers(k)}"
            time = f"2026-01-{1 + t // 24:02d}T{t % 24:02d}:00:00Z"
            rows.append((f"c{chain}", time, value, bool(rng.random() < share)))
    rows[n // 2] = (*rows[n // 2][:3], True)
    return pl.DataFrame(rows, schema=["id", "t", "v", "p"], orient="row")


class Released:
    """A release in a folder, with its private list and its original."""

    def __init__(self, folder, frame, promise, policy=None, *, name="r", **options):
        self.path, self.original = folder / f"{name}.csv", folder / f"{name}-original.csv"
        self.listed, self.key = folder / f"{name}-list.csv", folder / "keys" / "key.json"
        self.certificate_path = folder / f"{name}.csv.certificate.json"
        frame.drop("p").write_csv(self.original)
        frame.filter("p").select("id", "t").write_csv(self.listed)
        if policy is not None:
            file = folder / f"{name}-policy.json"
            content = {"format": "offrecord-policy", "policy": policy.to_dict()}
            file.write_text(json.dumps(content))
            options |= {"policy": file, "protect": policy.protect, "epsilon": policy.epsilon}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = off.redact(
                frame, value="v", order="t", by="id", private="p", step="1h",
                model=Model(promise), dataset=f"{folder}/{name}", key_file=self.key,
                accept=("model", "empty"), **options,
            )  # fmt: skip
        release.write(self.path)
        self.content = json.loads(self.certificate_path.read_text())

    @property
    def ways(self):
        """What is given to a check beside the release."""
        found = {"alone": {}}
        found["listed"] = {"private_list": self.listed}
        found["key"] = {**found["listed"], "key_file": self.key}
        found["original"] = {**found["key"], "original": self.original}
        return found

    def verdict(self, way="original", *, content=None, path=None):
        certificate = self.certificate_path
        if content is not None:
            certificate = certificate.with_name("altered.json")
            certificate.write_text(json.dumps(content))
        return verify(certificate, path or self.path, seed=1, **self.ways[way])
