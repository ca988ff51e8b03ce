"""The public names: all there, loaded lazily."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import offrecord


def test_every_public_name_is_there():
    listed = {name for names in offrecord._HOMES.values() for name in names.split()}
    assert listed == set(offrecord.__all__) == set(dir(offrecord))
    for name in listed:
        assert getattr(offrecord, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        offrecord.nonsense  # noqa: B018 - it is looked up


def test_no_package_hides_a_public_name():
    """Importing offrecord.verify would put a module in the place of the function."""
    here = Path(offrecord.__file__).parent
    assert {one.stem for one in here.iterdir()}.isdisjoint(offrecord.__all__)
    assert inspect.isfunction(offrecord.verify)
    assert inspect.isfunction(offrecord.attack)


def test_names_of_record_owners():
    assert offrecord.answer.__module__ == "offrecord.mechanisms.answer"
    assert offrecord.Key.__module__ == "offrecord.release.keys"


def test_importing_the_package_loads_nothing_heavy():
    program = "import sys, offrecord; print(*(m for m in sys.argv[1:] if m in sys.modules))"
    heavy = ["numpy", "scipy", "polars", "pydantic", "rich", "typer"]
    done = subprocess.run(
        [sys.executable, "-c", program, *heavy], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
