"""Certificates that were tampered with: whatever makes the promise weaker than it says is found,
and what is not found is harmless, each for a reason that is named here.
"""

import copy
import json
import math
import random
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.errors import InputError
from offrecord.release.keys import Key
from offrecord.verify import verify
from offrecord.verify.designs import judged

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
        self.folder, self.key = folder, Key.new(folder / "key" / "key.json")

    def __missing__(self, name):
        model, mechanism, private = MODELS[name]
        release = off.redact(
            table(private),
            value="v", order="t", private="p", single_chain=True, step="1h", epsilon=1.0,
            model=model, mechanism=mechanism, dataset=name, key_file=self.key.file,
            accept_model=True,
        )  # fmt: skip
        file = self.folder / f"{name}.csv"
        release.write(file)
        self[name] = json.loads(file.with_name(f"{file.name}.certificate.json").read_bytes())
        return self[name]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Written(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def refused(tmp_path):
    """Whether a certificate's content is: in one line, or by reasons."""
    file = tmp_path / "certificate.json"

    def ask(content):
        file.write_text(json.dumps(content))
        try:
            return not verify(file).is_verified
        except InputError as error:
            return "\n" not in str(error)

    return ask


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


@pytest.mark.parametrize("name", MODELS)
def test_every_field_that_is_changed_is_noticed_or_harmless(name, certificates, refused):
    content = certificates[name]
    assert not refused(content)
    noticed, passed = 0, []
    for path in leaves(content):
        before = at(content, path)
        for value in others(before):
            if value == before:
                continue
            if refused(changed(content, path, value)):
                noticed += 1
            elif not is_harmless(path):
                passed.append((path, before, value))
    assert passed == []
    assert noticed > 50


@pytest.mark.parametrize("name", ["local", "clustered", "three values", "a set", "a start"])
def test_a_redaction_probability_that_binds_must_not_be_lowered(name, certificates, refused):
    content = certificates[name]
    lowered = 0
    for number, side in enumerate(content["designs"]["sides"]):
        for stretch, (_, row) in enumerate(side):
            for value, share in enumerate(row):
                if share > 0.01:
                    path = ("designs", "sides", number, stretch, 1, value)
                    lowered += refused(changed(content, path, 0.9 * share))
    assert lowered > 0


@pytest.mark.parametrize("name", ["local", "a set", "a start", "three values"])
def test_epsilon_is_told_from_the_next_double_below(name, certificates, refused):
    """Nothing is lost between what is proven and what is: the least ε that verifies is the least
    double above what is told, and the one before it does not.
    """
    from offrecord.release.certificate import Certificate

    read = Certificate.from_dict(certificates[name])
    told = max(one.told for one in judged(read.designs, read.model))
    for epsilon, verifies in ((told, True), (math.nextafter(told, 0.0), False)):
        content = copy.deepcopy(certificates[name])
        content["claim"]["epsilon"] = content["designs"]["epsilon"] = epsilon
        content["claim"]["statement"] = off.release.certificate.claim_statement(epsilon)
        for design in content["designs"]["designs"]:
            design["leakage"] = min(design["leakage"], epsilon)
            design["rounding"] = 0.0
        content["claim"]["leakage"] = max(
            design["leakage"] for design in content["designs"]["designs"]
        )
        # what is stated must not be below what is told, so the largest states ε itself
        for design in content["designs"]["designs"]:
            if design["leakage"] == content["claim"]["leakage"]:
                design["leakage"] = epsilon
        content["claim"]["leakage"] = epsilon
        assert refused(content) != verifies


def test_a_wider_set_is_another_promise(certificates, refused):
    """An interval counts by what its row leaves of it, so both of its ends move."""
    for side, change in (("forward", 0), ("backward", 0), ("forward", 1)):
        content = copy.deepcopy(certificates["a set"])
        low, high = content["model"]["set"][side]
        low[change][1 - change] -= 0.004
        high[change][change] += 0.004
        assert refused(content)


def test_one_unit_in_the_last_place_of_a_probability_counts(tmp_path):
    """A window of one record that is redacted by chance, in a chain of two: what is told is known
    in closed form, so it is known on which side of ε each double lies.
    """
    from offrecord.release.certificate import Model
    from offrecord.verify.alone import told
    from offrecord.verify.balls import decided
    from offrecord.verify.problem import Problem, Secret, Stretch

    model = Model(
        order=1, labels=(0, 1), transition=((0.9, 0.1), (0.3, 0.7)), start=(0.75, 0.25),
        stationary=True,
    )  # fmt: skip

    def within(share, epsilon):
        """Nothing released has odds 9/10·q + 1/10 to 3/10·q + 7/10 for q of value 0, 1 of value 1
        redacted; where 0 is released, 3 to 1.
        """
        stretches = (Stretch(1, (1.0, 1.0)), Stretch(1, (share, 1.0)))
        problem = Problem(model, 2, stretches, (Secret(0, 0),), None)
        return decided(lambda: told(problem), epsilon)[0]

    import mpmath

    with mpmath.workprec(400):
        for share in (0.25, 0.5):
            q = Fraction(share)
            silent = (Fraction(3, 10) * q + Fraction(7, 10)) / (
                Fraction(9, 10) * q + Fraction(1, 10)
            )
            exact = max(mpmath.mpf(3), mpmath.mpf(silent.numerator) / silent.denominator)
            limit = float(mpmath.log(exact))
            for epsilon in (math.nextafter(limit, 0.0), limit, math.nextafter(limit, math.inf)):
                assert within(share, epsilon) == (mpmath.mpf(epsilon) >= mpmath.log(exact))


def test_walks_in_phases_are_cut_where_the_chain_has_forgotten(tmp_path):
    """Their designs keep to a little less than ε, for what the beginning of the chain may add; such
    a certificate can be read, and is proven with that.
    """
    model = off.PhasedChain("hour", HOURS, np.tile([0.75, 0.25], (24, 1)), zone="UTC")
    hours = pl.datetime_range(
        pl.datetime(2026, 3, 1), pl.datetime(2026, 3, 7, 23), "1h", eager=True, time_zone="UTC"
    )
    private = [at == 84 for at in range(len(hours))]
    values = np.random.default_rng(5).integers(0, 2, len(hours))
    release = off.redact(
        pl.DataFrame({"t": hours, "v": values, "p": private}),
        value="v", order="t", private="p", single_chain=True, step="1h", epsilon=1.0, model=model,
        mechanism="owner", dataset="phases", key_file=tmp_path / "key" / "key.json",
        accept_model=True,
    )  # fmt: skip
    release.write(tmp_path / "out.csv")
    file = tmp_path / "out.csv.certificate.json"
    content = json.loads(file.read_bytes())
    assert content["designs"]["left_limit"] == content["designs"]["designs"][0]["left"]
    assert content["designs"]["stoppings"][0]["epsilon"] < content["designs"]["epsilon"]
    verdict = verify(file, tmp_path / "out.csv")
    assert verdict.is_verified
    assert 1 - 2.0**-20 < verdict.told <= 1


@pytest.mark.parametrize("name", ["clustered", "owner"])
def test_a_design_swapped_or_missing(name, certificates, refused):
    content = certificates[name]
    for number in range(len(content["designs"]["designs"])):
        without = copy.deepcopy(content)
        del without["designs"]["designs"][number]
        assert refused(without)


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


@pytest.mark.parametrize("name", MODELS)
def test_random_changes_never_end_in_a_traceback(name, certificates, refused):
    rng = random.Random(name)
    content = certificates[name]
    assert sum(refused(mutated(content, rng)) for _ in range(150)) > 50


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", '{"format": "offrecord-certificate"}', "\x00", '{"a": NaN}',
        '{"format": "offrecord-certificate", "version": 99}', "[" * 100_000,
        '{"format": 1, "format": 1}',
    ],
)  # fmt: skip
def test_what_is_no_certificate_is_said_in_one_line(text, tmp_path):
    file = tmp_path / "certificate.json"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        verify(file)
    assert "\n" not in str(error.value)
    with pytest.raises(InputError):
        verify(tmp_path / "none.json")
