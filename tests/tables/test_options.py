"""The options of redact are said once, and people meet them as typed keywords."""

import inspect
from dataclasses import FrozenInstanceError, fields
from textwrap import dedent

import pytest

import offrecord.tables.options
import offrecord.text
from offrecord.tables.io.limits import LIMITS
from offrecord.tables.options import (
    REASONS,
    FileOptions,
    MemoryOptions,
    Options,
    SparkOptions,
    takes,
)
from offrecord.text import unwatched

REQUIRED = {"value": "ill", "order": "day", "epsilon": 1.0, "dataset": "illness"}
DEFAULTS = {
    "by": None,
    "single_chain": False,
    "private": None,
    "private_list": None,
    "keep_rows": False,
    "model": None,
    "fit": False,
    "fit_distance": None,
    "chain_order": "auto",
    "phase": "auto",
    "coverage": None,
    "values": None,
    "bins": None,
    "merge": None,
    "exact_model": False,
    "step": None,
    "keep": None,
    "keep_all": False,
    "mechanism": None,
    "protect": "run",
    "key_file": None,
    "policy": None,
    "accept": (),
    "growing": False,
    "lag": None,
    "publish_positions": False,
    "dry_run": False,
    "progress": unwatched,
    "say": None,
}
OF_FILES = {
    "separator": None,
    "encoding": None,
    "format": None,
    "output_format": None,
    "certificate": None,
    "force": False,
    "limits": None,
}


@takes(MemoryOptions)
def in_memory(frame: object, options: MemoryOptions) -> MemoryOptions:
    """Redact a frame."""
    return options


@takes(FileOptions)
def in_file(table: str, output: str | None, options: FileOptions) -> tuple[str, str | None]:
    """Redact a file."""
    return table, output


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (Options, {}),
        (MemoryOptions, {"remember": True}),
        (FileOptions, OF_FILES),
        (SparkOptions, {"partitions": None}),
    ],
)
def test_defaults(kind, own):
    given = kind(**REQUIRED)
    assert {one.name: getattr(given, one.name) for one in fields(kind)} == (
        REQUIRED | DEFAULTS | own
    )
    with pytest.raises(FrozenInstanceError):
        given.value = "well"


def test_four_options_are_required():
    for name in REQUIRED:
        rest = {key: value for key, value in REQUIRED.items() if key != name}
        with pytest.raises(TypeError, match=name):
            Options(**rest)
        with pytest.raises(TypeError, match=rf"^in_memory\(\) missing .*'{name}'"):
            in_memory("table", **rest)


def test_options_are_given_by_name_alone():
    with pytest.raises(TypeError, match="positional"):
        Options("ill", "day", 1.0, "illness")
    with pytest.raises(TypeError, match=r"^in_memory\(\) too many positional"):
        in_memory("table", "ill", "day", 1.0, "illness")


def test_options_do_not_print():
    assert "day" not in repr(Options(**REQUIRED))


def test_signature():
    parameters = inspect.signature(in_memory).parameters
    assert list(parameters) == ["frame", *(one.name for one in fields(MemoryOptions))]
    defaults = DEFAULTS | {"remember": True}
    for name in [*REQUIRED, *defaults]:
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default == defaults.get(name, inspect.Parameter.empty)
    assert list(inspect.signature(in_file).parameters)[:3] == ["table", "output", "value"]


def test_help_says_what_options_mean():
    text = inspect.getdoc(in_memory)
    assert text.startswith("Redact a frame.")
    assert in_memory.__name__ == "in_memory"
    for name in [*REQUIRED, *DEFAULTS, "remember"]:
        assert name in text
    assert "remember" not in inspect.getdoc(in_file)
    for name in OF_FILES:
        assert name in inspect.getdoc(in_file)


def test_help_says_what_is_taken_and_what_limits_are():
    words = {one.name: one.metadata.get("words") for one in fields(FileOptions)}
    assert all(f"{reason}: " in words["accept"] for reason in REASONS)
    limits = ", ".join(f"{name}={most}" for name, most in LIMITS.items())
    assert f"[default: {limits}]" in words["limits"]


def test_what_is_given_arrives():
    given = in_memory("table", **REQUIRED, by=["who"], remember=False)
    assert isinstance(given, MemoryOptions)
    assert (given.value, given.by, given.remember, given.keep) == ("ill", ["who"], False, None)
    assert in_file("a.csv", None, **REQUIRED) == ("a.csv", None)
    assert in_file(table="a.csv", output="b.csv", **REQUIRED) == ("a.csv", "b.csv")


def test_unknown_keyword_is_named():
    with pytest.raises(
        TypeError, match=r"^in_memory\(\) got an unexpected keyword argument 'kep'$"
    ):
        in_memory("table", **REQUIRED, kep="x")
    with pytest.raises(
        TypeError, match=r"^in_file\(\) got an unexpected keyword argument 'remember'$"
    ):
        in_file("a.csv", None, **REQUIRED, remember=True)


def test_calls_are_type_checked(tmp_path):
    api = pytest.importorskip("mypy.api")
    engines = """
        from offrecord.tables.options import FileOptions, MemoryOptions, takes

        @takes(MemoryOptions)
        def in_memory(frame: list[int], options: MemoryOptions) -> str:
            return options.value

        @takes(FileOptions)
        def in_file(table: str, output: str | None, options: FileOptions) -> int:
            return len(options.limits or {})
        """
    good = """
        text: str = in_memory([1], value="a", order="b", epsilon=1, dataset="c", remember=False)
        rows: int = in_file("a", None, value="a", order="b", epsilon=1, dataset="c", force=True)
        """
    bad = {
        'in_memory([1], value="a", order="b", epsilon=1, dataset="c", kep="d")': '"kep"',
        'in_memory([1], value="a", order="b", epsilon="1", dataset="c")': '"epsilon"',
        'in_memory([1], value="a", order="b", epsilon=1)': '"dataset"',
        'in_memory("x", value="a", order="b", epsilon=1, dataset="c")': "Argument 1",
        'in_memory([1], value="a", order="b", epsilon=1, dataset="c", max_rows=1)': '"max_rows"',
        'in_file("a", value="a", order="b", epsilon=1, dataset="c")': "Too few",
    }
    file = tmp_path / "calls.py"
    file.write_text(dedent(engines) + dedent(good) + "\n".join(bad) + "\n", encoding="utf-8")
    first = len(file.read_text(encoding="utf-8").splitlines()) - len(bad) + 1
    looked_at = [str(file), offrecord.tables.options.__file__, offrecord.text.__file__]
    others = "--follow-imports=skip"  # of the engines and their libraries nothing is asked here
    found, _, _ = api.run(["--strict", others, f"--cache-dir={tmp_path / 'cache'}", *looked_at])
    errors = [line for line in found.splitlines() if "calls.py" in line and ": error: " in line]
    assert len(errors) == len(bad)
    for line, (error, said) in enumerate(zip(errors, bad.values(), strict=True), start=first):
        assert f"calls.py:{line}: error" in error
        assert said in error
