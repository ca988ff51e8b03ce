"""Which way imports flow between packages: read off the sources, nothing is imported.

Every import counts, wherever it stands: at the top, in a function, or for type checking alone.
"""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "offrecord"
PACKAGE = SOURCE.name

#: What is in the root, in order: a package imports itself and packages on lines above its own.
ORDER = (
    {"text"},
    {"errors"},
    {"files"},
    {"models"},
    {"charts"},
    {"theory"},
    {"release"},
    {"mechanisms"},
    {"fitting"},
    {"tables"},
    {"verification"},
    {"attacks"},
    {"paper"},
    {"reports"},
    {"demo", "explorer"},
    {"cli"},
)
LAST = len(ORDER) - 2  # the root shows all names: only the command line, above all, uses them there
LINE = {name: number for number, names in enumerate(ORDER) for name in names}

#: Imports that go the other way, each to be mended: this is exactly what is found.
AGAINST_THE_ORDER: set[tuple[str, str]] = set()


def module_of(file):
    """`tables/engines/stream.py` as `tables.engines.stream`; the root is an empty name."""
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(file): file for file in SOURCE.rglob("*.py")}


def package_of(module):
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


def imports(module, *, at_once=False):
    """The modules of the package that one of them imports: `from models import chain` is of
    `models.chain`, `from models.chain import MarkovChain` too.

    at_once: only what is imported with the module, not in its functions or for type checkers.
    """
    tree = ast.parse(FILES[module].read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if at_once and (is_function or is_typing):
            node.body = [ast.Pass()]
    names = {within(name) for node in ast.walk(tree) for name in named(module, node)} - {None}
    return {name if name in FILES else name.rpartition(".")[0] for name in names} - {module}


GRAPH = {module: imports(module) for module in FILES}


def test_every_package_has_its_place():
    assert {package_of(module) for module in FILES} - {""} <= set(LINE)


def test_imports_flow_one_way():
    found = {
        (one, other)
        for one, others in GRAPH.items()
        for other in others
        if one  # the root shows every package's names
        if package_of(one) != package_of(other)
        if LINE[package_of(one)] <= LINE.get(package_of(other), LAST)
    }
    assert found == AGAINST_THE_ORDER


def test_no_module_needs_itself():
    """A default method may import what is made of its class, in its body."""
    graph = {one: imports(one, at_once=True) for one in FILES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


#: What the verifier may share with what it checks: files, how tables are read, coins, messages.
SHARED = ("verification", "errors", "files", "text", "release", "models", "tables")


def test_the_verifier_imports_nothing_that_makes_rules():
    """Neither itself nor at the top of a module that it imports: draws, rules and leakage are its
    own code.
    """
    for module in FILES:
        if package_of(module) == "verification":
            assert {package_of(one) for one in GRAPH[module]} <= set(SHARED), module


def test_the_root_is_small():
    packages = [file.parent for file in SOURCE.glob("*/__init__.py")]
    modules = [file for file in SOURCE.glob("*.py") if file.name != "__init__.py"]
    assert len(packages) <= 14
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
