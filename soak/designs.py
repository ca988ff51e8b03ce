"""Designs of random problems, made as `redact` makes them and judged as they would stand in a
certificate: proven by the verifier's balls, and in small chains by every output in fractions.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import flint
import numpy as np

import offrecord as off
from offrecord.designs.clusters import with_clusters
from offrecord.designs.library import Designs, Setting
from offrecord.designs.needs import SurroundingCounts
from offrecord.designs.sharing import designs_for, room_limits
from offrecord.errors import InputError
from offrecord.mechanisms import mechanism_named
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.models.base import Model
from offrecord.release import certificate as form
from offrecord.tables.certifying import designs_section, model_section
from offrecord.tables.proving import proven
from offrecord.verify.designs import judged
from offrecord.verify.problem import Problem
from soak.campaign import Case, Notes, ViolationError

LOCAL = ("quilt", "window", "3r-relaxed", "3r-convex", "3r-constant", "best-local")
EPSILONS = (0.05, 0.1, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0)
#: Sequences of values times outputs of each, up to which every output is looked at.
_FEW = 4000


class DesignsCampaign:
    """Random problems of every mechanism and kind of model."""

    name = "designs"
    least = 100_000
    limit = 600.0
    memory = None
    #: By mechanism and model: the cheap ones make up the number, every one has a share of the time.
    kinds: ClassVar = {
        **{f"{name}, alone": 1.5 for name in LOCAL},
        **{f"{name}, set of two values": 1.5 for name in LOCAL},
        **{f"{name}, set": 2.0 for name in LOCAL if name != "quilt"},
        **{f"{name}, start": 1.0 for name in ("window", "3r-constant", "best-local", "owner")},
        **{f"{name}, order 2": 1.0 for name in ("window", "3r-relaxed", "best-local", "owner")},
        **{f"{name}, phases": 1.0 for name in ("window", "owner")},
        "best-local, near secrets": 2.0,
        "owner, alone": 4.0,
        "owner, set of two values": 4.0,
    }

    def prepared(self, folder: Path) -> None:
        """Nothing is needed."""

    def ready(self, folder: Path, kind: str) -> None:
        """The compiled loops of a kind, which would take each batch as long to find."""
        _warmed(kind)

    def run(self, case: Case, folder: Path, store: Path) -> Notes:
        """Draw a problem, design it, prove it, and look at every output where there are few."""
        rng = case.random()
        mechanism, _, kind = case.kind.partition(", ")
        # rounded, as models are published
        model = _until_taken(lambda: _served(mechanism, _MODELS[kind](rng).rounded()))
        epsilon = rng.choice(EPSILONS) if rng.random() < 0.7 else round(rng.uniform(0.02, 6), 3)
        setting = Setting(model, epsilon, mechanism_named(mechanism), rng.choice(["run", "each"]))
        needs, clustered = _needed(rng, setting, kind)
        notes: Notes = Counter()
        designs, _ = designs_for(setting, needs)
        if clustered:
            designs = with_clusters(designs, clustered)
        for one in _said(designs)[1]:
            notes["bounds"] += 1
            notes["redacts more, to be proven"] += one.why is not None
        acting = proven(designs)
        section, found = _said(acting)
        wrong = [one for one in found if one.why is not None]
        if wrong:
            raise ViolationError(f"{wrong[0].place} {wrong[0].why}")
        _count_what_releases(acting, notes)
        if isinstance(section, form.LocalDesigns):
            _look_at_outputs(rng, section, setting, notes)
        elif mechanism == "owner" and kind == "alone":
            _walk_every_branch(rng, acting, setting, notes)
        return notes


@cache
def _warmed(kind: str) -> None:
    campaign = DesignsCampaign()
    for number in range(2):
        campaign.run(Case(campaign.name, kind, -1, number), Path(), Path())


def _said(designs: Designs) -> tuple[form.Designs, list[Any]]:
    """The certificate's section of designs, and what is said of each."""
    section = designs_section(designs, np.zeros(len(designs.designs), dtype=np.int64), designs)
    model = model_section(designs.model)
    return section, list(judged(section, model))


def _count_what_releases(designs: Designs, notes: Notes) -> None:
    """A design that redacts everything is proven by that; how many are not such."""
    for one in designs.designs:
        notes["designs"] += 1
        notes["designs that tell something"] += one.leakage > 0


# ---- models, rounded as they are published


def _row(rng: random.Random, k: int, *, zeros: float = 0.0, stay: float = 0.0) -> list[float]:
    """A row of probabilities of at most four digits."""
    weights = [0.0 if rng.random() < zeros else rng.expovariate(1.0) ** 1.5 for _ in range(k)]
    weights[rng.randrange(k)] += 0.05
    digits = rng.choice([2, 3, 4])
    units = [round(w / sum(weights) * (1 - stay) * 10**digits) for w in weights]
    units[max(range(k), key=units.__getitem__)] += 10**digits - sum(units)
    return [float(Fraction(u, 10**digits)) for u in units]


def _kernel(rng: random.Random, k: int, zeros: float | None = None) -> list[list[float]]:
    """Quick or slow, with or without what cannot happen."""
    zeros = rng.choice([0.0, 0.0, 0.0, 0.3]) if zeros is None else zeros
    stay = rng.choice([0.0, 0.0, 0.3, 0.6, 0.8])
    rows = []
    for i in range(k):
        row = _row(rng, k, zeros=zeros)
        mixed = [round((1 - stay) * p, 4) for p in row]
        mixed[i] = round(mixed[i] + 1 - sum(mixed), 4)
        rows.append(mixed)
    return rows


def _values(rng: random.Random) -> int:
    return rng.choice([2, 2, 2, 3, 3, 4, 5, 6])


def _until_taken(draw: Callable[[], Model]) -> Model:
    """Some draws are no model: several closed classes, a set that no chain is in."""
    while True:
        try:
            return draw()
        except InputError:
            continue


def _served(mechanism: str, model: Model) -> Model:
    """The model, if `redact` would take this mechanism for it; InputError if not."""
    why = mechanism_named(mechanism).unserved(model)
    if why is None and mechanism == "quilt":
        mechanism_named(mechanism).check(off.Problem(model.along(), 3, [2], 1.0))
    if why is not None:
        raise InputError(why)
    return model


def _alone(rng: random.Random) -> Model:
    def draw() -> Model:
        k = _values(rng)
        if k == 2 and rng.random() < 0.3:  # rare and slow ones
            rates = [rng.choice([1e-3, 0.01, 0.05, 0.5, 0.9, 0.999, 1.0]) for _ in range(2)]
            return off.MarkovChain.binary(*rates)
        return off.MarkovChain(_kernel(rng, k))

    return _until_taken(draw)


def _with_start(rng: random.Random) -> Model:
    def draw() -> Model:
        k = rng.choice([2, 2, 3, 4])
        return off.MarkovChain(_kernel(rng, k, 0.0), start=_row(rng, k, zeros=0.3))

    return _until_taken(draw)


def _of_order(rng: random.Random) -> Model:
    def draw() -> Model:
        return off.MarkovChain([_kernel(rng, 2, 0.0) for _ in range(2)], order=2)

    return _until_taken(draw)


def _in_phases(rng: random.Random) -> Model:
    def draw() -> Model:
        k = rng.choice([2, 2, 3])
        kernels = np.array([_kernel(rng, k, 0.0) for _ in range(7)])
        starts = np.array([_row(rng, k) for _ in range(7)])
        return off.PhasedChain("weekday", kernels, starts, zone="UTC")

    return _until_taken(draw)


def _set_of_two(rng: random.Random) -> Model:
    def draw() -> Model:
        ends, middles = [], []
        for _ in range(2):
            low = rng.choice([0.01, 0.05, 0.1, 0.2, 0.4, 0.7, round(rng.random() * 0.9, 4)])
            high = min(round(low + rng.choice([0.0, 0.01, 0.05, 0.2, rng.random()]), 4), 1.0)
            ends.append((low, high))
            middles.append(round((low + high) / 2, 4))
        start = rng.choice(["stationary", "stationary", "settled", "any"])
        box = off.Box.binary(*ends, start=start)
        return off.MarkovChain.binary(*middles).with_box(box)

    return _until_taken(draw)


def _set_of_many(rng: random.Random) -> Model:
    def draw() -> Model:
        k = rng.choice([3, 3, 3, 3, 3, 3, 4, 4, 5, 6])
        chain = off.MarkovChain(_kernel(rng, k, 0.0))
        width = rng.choice([0.005, 0.02, 0.05])
        back = chain.start[:, None] * chain.transition
        ends = []
        for kernel in (chain.transition, (back / back.sum(axis=0)).T):
            low, high = np.clip(kernel - width, 0, 1), np.clip(kernel + width, 0, 1)
            ends.append((np.floor(low * 1e4) / 1e4, np.ceil(high * 1e4) / 1e4))
        return chain.with_box(off.Box(*ends))

    return _until_taken(draw)


_MODELS = {
    "alone": _alone,
    "near secrets": _alone,
    "start": _with_start,
    "order 2": _of_order,
    "phases": _in_phases,
    "set of two values": _set_of_two,
    "set": _set_of_many,
}


# ---- secrets


def _needed(
    rng: random.Random, setting: Setting, kind: str
) -> tuple[SurroundingCounts, dict[Surrounding, int]]:
    """One surrounding that a table may have, mostly of few records; a cluster besides, at times."""
    rooms = [rng.choice([0, 1, 2, 3, 3, 5, 8, 12, 20, rng.randrange(40)]) for _ in range(2)]
    if kind == "set":  # of which every record counts
        rooms = [rng.choice([0, 1, 2, 3, 4, 5, 8]) for _ in range(2)]
    if rng.random() < 0.3:
        rooms = [rng.randrange(3), rng.randrange(3)]
    length = rng.choice([1, 1, 1, 1, 2, 3, rng.randrange(1, 6)])
    if setting.protect == "each":
        length = 1
    limits = room_limits(setting.model, setting.epsilon)
    rooms = [
        room if most is None else min(room, most) for room, most in zip(rooms, limits, strict=True)
    ]
    phases: dict[int, bytes] = {}
    row = [*rooms, length, 0]
    if kind == "phases":
        begin, count = rng.randrange(7), sum(rooms) + length
        around = bytes((begin + t) % 7 for t in range(count))
        one = Surrounding(*rooms, length, around)
        row[3] = int(one.context, 16)
        phases[row[3]] = around
    gaps: tuple[int, ...] = ()
    if setting.mechanism.name == "owner":
        gaps = tuple(sorted(rng.sample(range(1, 9), rng.choice([0, 0, 1, 2]))))
    needs = SurroundingCounts.of(
        np.array([row], dtype=np.int64), np.ones(1, dtype=np.int64), phases, gaps
    )
    if kind != "near secrets":
        return needs, {}
    inside = bytes([1, *(rng.random() < 0.4 for _ in range(rng.randrange(1, 6))), 1])
    return needs, {Surrounding(*rooms, len(inside), inside=inside): 2}


# ---- by every output


def _look_at_outputs(
    rng: random.Random, section: form.LocalDesigns, setting: Setting, notes: Notes
) -> None:
    """Of designs for few records: the largest ratio over all outputs is within ε, in fractions."""
    model = model_section(setting.model)
    if model.order > 1 or model.phase is not None:
        return
    for design in section.designs:
        problem = Problem.of(section, design, model)
        if model.k**problem.n * 2**problem.n > _FEW:
            continue
        shares = [
            [Fraction(share) for share in stretch.row]
            for stretch in problem.stretches
            for _ in range(stretch.records)
        ]
        for secret in problem.secrets:
            law = _member(rng, model, problem.n, secret)
            if law is None:
                continue
            worst = _worst_ratio(law, shares, secret)
            notes["by every output"] += 1
            if worst is None or not _is_within(worst, section.epsilon):
                raise ViolationError(f"an output has odds of {worst} for ε {section.epsilon!r}")


def _is_within(ratio: Fraction, epsilon: float) -> bool:
    """Whether its logarithm is at most ε, decided by balls; what they cannot tell apart is."""
    logarithm = flint.arb(flint.fmpq(ratio.numerator, ratio.denominator)).log()
    return not logarithm > flint.arb(epsilon)


def _decimal(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def _rows(kernel: Sequence[Sequence[float]]) -> list[list[Fraction]]:
    exact = [[_decimal(p) for p in row] for row in kernel]
    return [[p / sum(row) for p in row] for row in exact]


def _member(rng: random.Random, model: form.Model, n: int, secret: Any) -> Any:
    """The law of all sequences under the model, or under one of its set: a list of (values,
    probability). None where the set is about beginnings that are not drawn here.
    """
    if model.set is None:
        kernel = _rows(model.transition)
        start = _stationary(kernel) if model.stationary else _rows([model.start])[0]
        return _law(n, start, [kernel] * (n - 1))
    if secret.first != secret.last:
        return None
    forward, backward = (
        [[[_decimal(p) for p in row] for row in part] for part in side]
        for side in (model.set.forward, model.set.backward)
    )
    k = model.k
    if model.set.start == "any":
        start = [Fraction(rng.randrange(1, 50)) for _ in range(k)]
        start = [one / sum(start) for one in start]
        return _law(n, start, [_corner(rng, *forward) for _ in range(n - 1)])
    if model.set.start == "settled":
        first = _corner(rng, *forward)
        if first[0][1] + first[1][0] == 0:
            return None
        return _law(n, _stationary(first), [_corner(rng, *forward) for _ in range(n - 1)])
    return _two_sided(rng, n, k, secret.first, forward, backward)


def _two_sided(rng, n, k, place, forward, backward):
    """From the secret outwards: kernels forwards to its right, backwards to its left."""
    right = [_corner(rng, *forward) for _ in range(n - 1 - place)]
    left = [_corner(rng, *backward) for _ in range(place)]
    found = []
    for values in product(range(k), repeat=n):
        weight = Fraction(1, k)
        for step, kernel in enumerate(right):
            weight *= kernel[values[place + step]][values[place + step + 1]]
        for step, kernel in enumerate(left):
            weight *= kernel[values[place - step]][values[place - step - 1]]
        if weight:
            found.append((values, weight))
    return found


def _corner(rng, low, high):
    """A kernel of a set: every row filled up in a random order, which is a corner of it."""
    rows = []
    for least, most in zip(low, high, strict=True):
        row, rest = list(least), 1 - sum(least)
        for j in rng.sample(range(len(row)), len(row)):
            more = min(rest, most[j] - row[j])
            row[j] += more
            rest -= more
        if rest:  # within rounding of the form
            row[rng.randrange(len(row))] += rest
        rows.append([p / sum(row) for p in row])
    return rows


def _law(n, start, kernels):
    found = []
    for values in product(range(len(start)), repeat=n):
        weight = start[values[0]]
        for t, kernel in enumerate(kernels):
            if not weight:
                break
            weight *= kernel[values[t]][values[t + 1]]
        if weight:
            found.append((values, weight))
    return found


def _stationary(kernel: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    from definition import exact_stationary

    return exact_stationary([list(row) for row in kernel])


def _worst_ratio(law, shares, secret) -> Fraction | None:
    """The largest ratio of the likelihoods of an output under two values of the secret; None: it
    is infinite.
    """
    from small_chains import outputs

    mass: dict[Any, Fraction] = {}
    told: dict[Any, dict[Any, Fraction]] = {}
    for values, weight in law:
        hidden = values[secret.first : secret.last + 1]
        mass[hidden] = mass.get(hidden, Fraction(0)) + weight
        for output, share in outputs(values, shares):
            own = told.setdefault(output, {})
            own[hidden] = own.get(hidden, Fraction(0)) + weight * share
    worst = Fraction(1)
    for own in told.values():
        given = [own.get(hidden, Fraction(0)) / mass[hidden] for hidden in mass]
        if min(given) == 0:
            return None
        worst = max(worst, max(given) / min(given))
    return worst


def _walk_every_branch(rng: random.Random, acting: Designs, setting: Setting, notes: Notes) -> None:
    """What the owner's decider does in a small chain, through every branch of its draws."""
    import owner_law
    from owner_reference import exact_rows

    model, k = setting.model, setting.model.k
    n = rng.choice([3, 4, 5]) if k == 2 else 3 if k == 3 else 0
    reach = max(one.reach for one in acting.designs)
    if n == 0 or reach > 5 or (model.along().transition == 0).any():
        return  # where something cannot happen, what is not in the table has no law
    private = sorted(rng.sample(range(n), rng.choice([1, 1, 2])))
    shape = owner_law.Shape(
        n, tuple(range(n)), frozenset(), tuple(private), setting.protect, {t: t for t in range(n)}
    )
    decider = setting.mechanism.designs.decider(acting.designs, model)
    tables = [dict(enumerate(values)) for values in product(range(k), repeat=n)]
    masks, _ = owner_law.laws_of_masks(decider, shape, tables)
    by_values = {tuple(table.values()): law for table, law in zip(tables, masks, strict=True)}
    kernel = exact_rows(model.along().transition)
    sequences = owner_law.joint(shape, [kernel] * n, _stationary(kernel))
    for places in shape.protected:
        worst = owner_law.worst_ratio(shape, sequences, by_values, places)
        notes["by every output"] += 1
        if worst == math.inf or not _is_within(worst, setting.epsilon):
            raise ViolationError(f"an output has odds of {worst} for ε {setting.epsilon!r}")
