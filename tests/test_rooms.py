"""The rooms of the package and which way imports flow: read off the sources, nothing is imported.

Every import counts, wherever it stands: at the top, in a function, or for type checking alone.
"""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "offrecord"
PACKAGE = SOURCE.name

#: What is in the root, in order: a room imports itself and rooms on lines above its own.
ORDER = (
    {"errors"},
    {"files", "parquet", "text", "processes", "_moved"},
    {"charts"},
    {"release", "models"},
    {"theory", "verify"},
    {"mechanisms"},
    {"designs"},
    {"fitting"},
    {"tables"},
    {"paper", "attack"},
    {"reports"},
    {"demo", "explorer"},
    {"cli"},
)
LINE = {room: number for number, rooms in enumerate(ORDER) for room in rooms}

#: Imports that go the other way, each to be mended: this is exactly what is found.
AGAINST_THE_ORDER: set[tuple[str, str]] = set()
#: Imports inside a function that lead back, and why each is there.
DETOURS = {
    ("mechanisms.base", "mechanisms"),  # a policy file of any kind: the registry knows them all
    ("mechanisms.local.design", "mechanisms.window"),  # what every design is compared with,
    ("mechanisms.local.side_mechanism", "mechanisms.window"),  # and is a local mechanism itself
}


def module_of(file):
    """`tables/engines/stream.py` as `tables.engines.stream`; the root is an empty name."""
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(file): file for file in SOURCE.rglob("*.py")}


def room_of(module):
    return module.split(".")[0]


def within(name):
    """A full name less the package's, or None if it is of another package."""
    first, _, rest = name.partition(".")
    return rest if first == PACKAGE else None


def relative(module, level):
    """The full name of what `level` dots stand for in a module."""
    parts = [PACKAGE, *filter(None, module.split("."))]
    ups = level - (FILES[module].name == "__init__.py")
    return ".".join(parts[: len(parts) - ups])


def named(module, node):
    """The full names that one node of a module's syntax tree imports, if any."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = relative(module, node.level) if node.level else ""
        base = ".".join(filter(None, (base, node.module)))
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        return [text.value for text in node.args[:1] if isinstance(text, ast.Constant)]
    return []


def imports(module, *, types=True):
    """The modules of the package that one of them imports: `from models import chain` is of
    `models.chain`, `from models.chain import MarkovChain` too.

    types: what type checkers alone see counts too.
    """
    tree = ast.parse(FILES[module].read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not types and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    names = {within(name) for node in ast.walk(tree) for name in named(module, node)} - {None}
    return {name if name in FILES else name.rpartition(".")[0] for name in names} - {module}


GRAPH = {module: imports(module) for module in FILES}


def test_every_room_has_its_place():
    assert {room_of(module) for module in FILES} - {""} <= set(LINE)


def test_imports_flow_one_way():
    found = {
        (one, other)
        for one, others in GRAPH.items()
        for other in others
        if one  # the root shows every room's names
        if room_of(one) != room_of(other)
        if not other or LINE[room_of(one)] <= LINE[room_of(other)]
    }
    assert found == AGAINST_THE_ORDER


def test_no_module_imports_itself_by_a_detour():
    graph = {one: imports(one, types=False) for one in FILES}  # types may speak of each other
    for one, other in DETOURS:
        assert other in graph[one], f"{one} no longer imports {other}: strike it off"
        graph[one] -= {other}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_the_certificate_knows_nothing_of_designs():
    """Whoever checks one must not have to trust what made it."""
    for module in FILES:
        if module.startswith("release.certificate"):
            others = {one for one in GRAPH[module] if not one.startswith("release.certificate")}
            assert others <= {"errors"}, module


def test_the_verifier_shares_nothing_with_what_it_checks():
    """Neither itself nor by way of another module; whether a file can be opened at all is no
    question of designs.
    """
    reached, further = set(), [module for module in FILES if room_of(module) == "verify"]
    while further:
        module = further.pop()
        if module not in reached:
            reached.add(module)
            further += GRAPH[module]
    allowed = ("verify", "release.certificate", "errors", "parquet")
    assert "verify.alone" in reached
    assert [one for one in reached if not one.startswith(allowed)] == []


def test_the_root_is_small():
    rooms = [file.parent for file in SOURCE.glob("*/__init__.py")]
    modules = [file for file in SOURCE.glob("*.py") if file.name != "__init__.py"]
    assert len(rooms) <= 16
    assert len(modules) <= 5


@pytest.mark.parametrize(
    ("module", "text", "expected"),
    [
        ("tables.cells", "import offrecord", {""}),
        ("tables.cells", "import numpy as np, offrecord.files as f", {"files"}),
        ("tables.cells", "from offrecord.models import chain", {"models.chain"}),
        ("tables.cells", "from offrecord.models.chain import MarkovChain", {"models.chain"}),
        ("tables.cells", "def f():\n    from offrecord import text", {"text"}),
        ("tables.cells", "if TYPE_CHECKING:\n    from . import steps", {"tables.steps"}),
        ("tables.cells", "from ..models.chain import MarkovChain", {"models.chain"}),
        ("tables", "from .engines.stream import redact_file", {"tables.engines.stream"}),
        ("tables", "importlib.import_module('offrecord.errors')", {"errors"}),
        ("tables", "from offrecords import cells", set()),
    ],
)
def test_the_reader_of_imports(module, text, expected, tmp_path, monkeypatch):
    """The reading itself, on one form of import after the other."""
    file = tmp_path / FILES[module].name
    file.write_text(text)
    monkeypatch.setitem(FILES, module, file)
    assert imports(module) == expected
