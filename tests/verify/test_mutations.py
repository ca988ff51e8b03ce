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
from mutations import HOURS, MODELS, Written, at, changed, is_harmless, leaves, mutated, others
from offrecord.errors import InputError
from offrecord.verify import verify
from offrecord.verify.designs import judged


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


def test_steps_that_differ_are_not_those_of_a_stationary_model(certificates, tmp_path):
    """It cannot be read: who judges designs takes such a model by its one kernel."""
    content = changed(certificates["hours"], ("model", "stationary"), True)
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r'"model.stationary" must be false where steps'):
        verify(file)


@pytest.mark.parametrize("name", ["clustered", "owner"])
def test_a_design_swapped_or_missing(name, certificates, refused):
    content = certificates[name]
    for number in range(len(content["designs"]["designs"])):
        without = copy.deepcopy(content)
        del without["designs"]["designs"][number]
        assert refused(without)


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
