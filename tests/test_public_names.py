"""The public names, and the old names of modules, which still work and warn."""

import importlib
import pickle
import subprocess
import sys
import warnings

import pytest

import offrecord
from offrecord._moved import MODULES, PACKAGES

#: A name that people used of each module that has another name now.
USED = {
    "offrecord._walk": "binary",
    "offrecord.bounds": "theorem2_as_printed",
    "offrecord.certificate": "ASSUMPTIONS",
    "offrecord.chain": "MarkovChain",
    "offrecord.chance": "chi_square_tail",
    "offrecord.paper.charts": "write_chart",
    "offrecord.clock": "phases_of",
    "offrecord.comparison": "compare",
    "offrecord.counting": "counted",
    "offrecord.digits": "rounded_row",
    "offrecord.draws": "Coins",
    "offrecord.exact_leakage": "worst_output",
    "offrecord.influence": "max_influence",
    "offrecord.keys": "Key",
    "offrecord.learned": "Learned",
    "offrecord.owner": "answer",
    "offrecord.phased": "PhasedChain",
    "offrecord.policy": "Policy",
    "offrecord.problem": "Problem",
    "offrecord.redaction": "Redaction",
    "offrecord.side": "Side",
    "offrecord.surroundings": "designs_for",
    "offrecord.tables.release": "redact",
    "offrecord.tables.stream": "redact_file",
}
#: And of each module that is a package now.
USED_OF_PACKAGES = {
    "offrecord.designs": "Designs",
    "offrecord.fitting": "Fit",
    "offrecord.paper": "checks",
}
#: Modules that are where they were.
STAYED = {
    "offrecord.demo": "run",
    "offrecord.errors": "InputError",
    "offrecord.files": "write_text",
    "offrecord.text": "aligned",
    "offrecord.tables.spark": "redact",
}


def test_every_public_name_is_there():
    listed = {name for names in offrecord._ROOMS.values() for name in names}
    assert listed == set(offrecord.__all__) == set(dir(offrecord))
    for name in listed:
        assert getattr(offrecord, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        offrecord.nonsense  # noqa: B018 - it is looked up


def test_owners_find_their_names():
    assert {"Key", "answer"} <= set(offrecord.__all__)
    assert offrecord.answer.__module__ == "offrecord.mechanisms.answer"
    assert offrecord.Key.__module__ == "offrecord.release.keys"


def test_all_that_moved_is_known():
    assert set(USED) == set(MODULES)
    assert set(USED_OF_PACKAGES) == set(PACKAGES)


def _forgotten(module, monkeypatch):
    """As if nobody had asked for a module yet."""
    parent, _, child = module.rpartition(".")
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.delattr(importlib.import_module(parent), child, raising=False)


@pytest.mark.parametrize(("module", "name"), USED.items())
def test_old_module(module, name, monkeypatch):
    _forgotten(module, monkeypatch)
    program = f"import {module}\nfrom {module} import {name}"
    with pytest.warns(DeprecationWarning, match=f"^{module} is ") as caught:
        exec(compile(program, "program.py", "exec"), found := {})
    assert len(caught) == 1
    assert caught[0].filename == "program.py"  # the line that has the old name
    new = importlib.import_module(MODULES[module])
    assert sys.modules[module] is new
    assert found[name] is getattr(new, name)
    assert new.__name__ == new.__spec__.name == MODULES[module]


@pytest.mark.parametrize(("module", "name"), USED_OF_PACKAGES.items())
def test_module_that_became_a_package(module, name):
    with pytest.warns(DeprecationWarning, match=rf"^{module}\.{name} is {PACKAGES[module][0]}"):
        found = getattr(importlib.import_module(module), name)
    assert found is getattr(importlib.import_module(PACKAGES[module][0]), name)


@pytest.mark.parametrize("module", PACKAGES)
def test_all_names_of_a_package_are_there(module):
    target, names = PACKAGES[module]
    for name in names:
        assert hasattr(importlib.import_module(target), name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        importlib.import_module(module).nonsense  # noqa: B018 - it is looked up


@pytest.mark.parametrize(("module", "name"), STAYED.items())
def test_module_that_stayed(module, name):
    assert hasattr(importlib.import_module(module), name)


def test_what_was_kept_under_an_old_name_loads(monkeypatch):
    _forgotten("offrecord.problem", monkeypatch)
    kept = pickle.dumps(offrecord.Secret(3, 4), protocol=0).replace(
        b"offrecord.theory.problem", b"offrecord.problem"
    )
    with pytest.warns(DeprecationWarning, match=r"offrecord\.problem is"):
        assert pickle.loads(kept) == offrecord.Secret(3, 4)


def test_what_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"offrecord\.nonsense"):
        importlib.import_module("offrecord.nonsense")


def test_new_names_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from offrecord import charts
        from offrecord.paper import reproduce

        assert charts.FORMATS
        assert reproduce.checks


def test_importing_the_package_loads_nothing_heavy():
    program = "import sys, offrecord; print(*(m for m in sys.argv[1:] if m in sys.modules))"
    heavy = ["numpy", "scipy", "numba", "polars", "altair", "rich", "typer"]
    done = subprocess.run(
        [sys.executable, "-c", program, *heavy], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
