"""Certificates of each kind, every change that can be made to them, and why one that passes is
harmless.
"""

import copy
import json

import numpy as np
import polars as pl

import offrecord as off
from offrecord.release.keys import Key

BINARY = [[0.9, 0.1], [0.3, 0.7]]
HOURS = np.stack([[[1 - a, a], [0.3, 0.7]] for a in np.linspace(0.05, 0.4, 24)])
MODELS = {
    "local": (off.MarkovChain(BINARY), "best-local", (10, 40)),
    "clustered": (off.MarkovChain(BINARY), "best-local", (10, 12, 14, 40)),
    "owner": (off.MarkovChain(BINARY), "owner", (10, 12, 30)),
    "three values": (
        off.MarkovChain([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]),
        "best-local",
        (10, 40),
    ),
    "a set": (
        off.MarkovChain(BINARY, box=off.Box.binary((0.08, 0.12), (0.25, 0.35))),
        "best-local",
        (10, 40),
    ),
    "a start": (off.MarkovChain(BINARY, start=[1.0, 0.0]), "best-local", (3, 40)),
    "hours": (
        off.PhasedChain("hour", HOURS, np.tile([0.75, 0.25], (24, 1)), zone="UTC"),
        "window",
        (10, 40),
    ),
    "order 2": (
        off.MarkovChain([BINARY, [[0.6, 0.4], [0.2, 0.8]]], order=2),
        "window",
        (10, 40),
    ),
    "growing": (off.MarkovChain(BINARY), "best-local", (10, 20, 57)),
    "growing walks": (off.MarkovChain(BINARY), "owner", (8, 10, 57)),
    "after": (off.MarkovChain(BINARY), "window", (10, 40)),
}

#: Why a change that passes is harmless, by where it is; indices are left out.
WORDS = "it is about what was read or who made it, and a certificate alone cannot show that"
MORE = "more is redacted, or more is owned up to, than has to be"
HARMLESS = {
    "dataset": WORDS,
    "key_id": WORDS,
    "columns.*": "how the table was read is checked with the table",
    "counts.rows": "checked with the table, where no output is named",
    "counts.chains": "checked with the table",
    "counts.missing": "checked with the table",
    "private.digest": "the key's owner checks it with the table",
    "private.note": WORDS,
    "release.*": "it tells more of the ledger, or less, and verify repeats what it says",
    "growing.*": "which rows wait is checked with the table",
    "joint.*": "it takes all releases that it names, and verify says that it does not check it",
    "designs.loss": "an estimate of a cost",
    "designs.grids.*": "which design serves which secret is checked with the table",
    "designs.left_limit": "which design serves which secret is checked with the table",
    "designs.right_limit": "which design serves which secret is checked with the table",
    "designs.designs.left": MORE,
    "designs.designs.right": MORE,
    "designs.designs.length": MORE,
    "designs.designs.leakage": "below ε all the same, and no less than it tells",
    "designs.designs.rounding": "below ε all the same",
    "designs.designs.method": "the bound holds, however it was found",
    "designs.designs.window": "a comparison",
    "designs.designs.mechanism": WORDS,
    "designs.designs.uses": "checked with the table",
    "designs.designs.redaction_left": MORE,
    "designs.designs.redaction_right": MORE,
    "designs.designs.left_rest": MORE,
    "designs.designs.right_rest": MORE,
    "designs.designs.inside": MORE,
    "designs.designs.redaction_inside": MORE,
    "designs.designs.stopping": "every stopping is judged",
    "designs.sides": MORE,
    "designs.stoppings.sides.budget": MORE,
    "designs.stoppings.sides.ahead": "a side with one level or none has nothing to look ahead for",
    "designs.stoppings.sides.levels": "proven all the same: the chain forgets with distance",
    "designs.stoppings.pair.levels": "proven all the same: the chain forgets with distance",
    "designs.stoppings.pair.epsilon": MORE,
    "designs.stoppings.pair.seconds": MORE,
    "designs.stoppings.options": MORE,
    "model.labels": "names of values",
    "model.zone": "how the table was read is checked with the table",
    "model.start": "of a stationary model it follows from the kernel",
    "model.transition": "the bound holds for this kernel, too",
    "model.set.forward": "what the other numbers of its row leave, or what the bound holds for too",
    "model.set.backward": "as forwards",
    "model.set.confidence": WORDS,
    "model.set.interval": WORDS,
    "learned.*": "what the model was learned from cannot be shown by a certificate",
    "model_check.*": "verify repeats what it says",
    "versions.*": WORDS,
    "output.format": WORDS,
    "output.columns": "checked with the table",
    "output.sha256": "checked with the table",
    "claim.leakage_is_exact": "it claims less",
    "designs.phases": "proven in these phases, too; whose they are is checked with the table",
}


def table(private):
    """Sixty hours of one chain."""
    rng = np.random.default_rng(5)
    hours = pl.datetime_range(
        pl.datetime(2026, 3, 1), pl.datetime(2026, 3, 3, 11), "1h", eager=True, time_zone="UTC"
    )
    return pl.DataFrame(
        {"t": hours, "v": rng.integers(0, 2, 60), "p": [at in private for at in range(60)]}
    )


class Written(dict):
    """One of each kind, as it was written; made when it is asked for."""

    def __init__(self, folder):
        self.folder = folder

    def key(self, name):
        """Of each table its own, but for the release that comes after another."""
        file = self.folder / "keys" / ("local" if name == "after" else name) / "key.json"
        return file if file.exists() else Key.new(file).file

    def __missing__(self, name):
        model, mechanism, private = MODELS[name]
        more = {"growing": name.startswith("growing")}
        if name == "after":
            assert self["local"]
            more = {"after": self.folder / "local.csv.certificate.json", "joint_epsilon": 9}
        release = off.redact(
            table(private),
            value="v", order="t", private="p", single_chain=True, step="1h", epsilon=1.0,
            model=model, mechanism=mechanism, dataset=name, key_file=self.key(name),
            accept_model=True, **more,
        )  # fmt: skip
        file = self.folder / f"{name}.csv"
        release.write(file)
        self[name] = json.loads(file.with_name(f"{file.name}.certificate.json").read_bytes())
        return self[name]


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
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, max(value - 1, 0)]
    if isinstance(value, float):
        return [value * 1.01 + 1e-6, max(value * 0.99 - 1e-6, 0.0)]
    if isinstance(value, str):
        return [value + "x", ""]
    return [1, "x"]


def is_harmless(path):
    place = ".".join(str(part) for part in path if not isinstance(part, int))
    if place in HARMLESS:
        return True
    parts = place.split(".")
    return any(".".join([*parts[:n], "*"]) in HARMLESS for n in range(1, len(parts)))


def mutated(content, rng):
    """Something else at a random place: junk, another part of it, nothing, or more of it."""
    copied = copy.deepcopy(content)
    paths = list(leaves(copied))
    path = rng.choice(paths)[: rng.randint(1, 6)]
    junk = [
        None, True, 0, -1, 10**15, 10**16, 1e308, 5e-324, "", "x" * 50, [], {}, [[1]], {"a": 1},
        0.5, 2**63, "AAAA", [1, [0.5, 0.5]],
    ]  # fmt: skip
    kind = rng.randrange(4)
    parent, key = at(copied, path[:-1]), path[-1]
    if kind == 0:
        parent[key] = rng.choice(junk)
    elif kind == 1:
        parent[key] = copy.deepcopy(at(copied, rng.choice(paths)[: rng.randint(1, 5)]))
    elif kind == 2:
        del parent[key]
    elif isinstance(parent, list):
        parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(parent[key]))
    else:
        parent[f"{key}x"] = parent[key]
    return copied
