"""What objects print: bounded, and the same for tables that differ in redacted values alone."""

import re

import numpy as np
import pytest

import offrecord as off
from attacks.releases import CHAIN, drawn, frame_of, released
from offrecord.attacks import attack
from offrecord.release.certificate import Certificate
from offrecord.verification import verify

pytestmark = pytest.mark.filterwarnings("ignore::offrecord.errors.OffrecordWarning")


def objects(folder, values, private):
    """A release, and everything that is made of it."""
    release, path = released(folder, frame_of(values, private), mechanism="window")
    certificate = path.with_name(f"{path.name}.certificate.json")
    made = {
        "release": release,
        "summary": release.summary,
        "certificate": Certificate.load(certificate),
        "verdict": verify(certificate, path, seed=1),
        "attack": attack(path, certificate=certificate),
    }
    return release, made


def test_nothing_printed_depends_on_a_redacted_value(tmp_path):
    """Twins that differ in every record that is redacted whatever its value."""
    rng = np.random.default_rng(1)
    values, private = drawn(CHAIN, 20, 40, rng), rng.random((20, 40)) < 0.01
    objects(tmp_path, values, private)  # the first release also says that it made a key
    release, made = objects(tmp_path, values, private)
    always = release.frame["v"].is_null().to_numpy()  # windows look at no value
    assert always.sum() > private.sum()
    twin = np.where(always.reshape(values.shape), 1 - values, values)
    _, other = objects(tmp_path, twin, private)
    for name, one in made.items():
        assert len(repr(one)) <= 300
        for shown in (repr, str):
            texts = [re.sub(r"\b[\d.]+ s\b", "", shown(it)) for it in (one, other[name])]
            assert texts[0] == texts[1], name


def test_representations_are_short():
    labels = [f"{i}" * 300 for i in range(10, 30)]
    chain = off.MarkovChain(np.full((20, 20), 1 / 20), labels=labels)
    problem = off.Problem(chain, 9, [5], 1.0)
    assert len(repr(off.design(problem, off.BestWindow()))) <= 300
    assert len(repr(off.compare(problem, [off.BestWindow()]))) <= 300
