"""Where modules have gone: their old names work, and warn.

The finder comes after all others, so it is asked about names alone that nothing else knows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any
from warnings import warn

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # the real one brings much along, and --help is to answer at once

#: Old names of modules, and new ones.
MODULES = {
    "offrecord._walk": "offrecord.theory._walk",
    "offrecord.bounds": "offrecord.paper.bounds",
    "offrecord.certificate": "offrecord.release.certificate",
    "offrecord.chain": "offrecord.models.chain",
    "offrecord.chance": "offrecord.fitting.chance",
    "offrecord.paper.charts": "offrecord.charts",
    "offrecord.clock": "offrecord.models.clock",
    "offrecord.comparison": "offrecord.paper.comparison",
    "offrecord.counting": "offrecord.fitting.counting",
    "offrecord.digits": "offrecord.models.published_rounding",
    "offrecord.draws": "offrecord.release.coins",
    "offrecord.exact_leakage": "offrecord.theory.leakage",
    "offrecord.influence": "offrecord.theory.influence",
    "offrecord.keys": "offrecord.release.keys",
    "offrecord.learned": "offrecord.models.learned",
    "offrecord.owner": "offrecord.mechanisms.answer",
    "offrecord.phased": "offrecord.models.phased",
    "offrecord.policy": "offrecord.mechanisms.local.policy",
    "offrecord.problem": "offrecord.theory.problem",
    "offrecord.redaction": "offrecord.theory.redaction",
    "offrecord.side": "offrecord.theory.side",
    "offrecord.surroundings": "offrecord.designs.sharing",
    "offrecord.tables.release": "offrecord.tables.engines.memory",
    "offrecord.tables.stream": "offrecord.tables.engines.stream",
}
#: Modules that became packages: where their names are now, and which had a name for others.
PACKAGES = {
    "offrecord.designs": (
        "offrecord.designs.library",
        ("Design", "Designs", "Model", "Surrounding"),
    ),
    "offrecord.fitting": (
        "offrecord.fitting.fit",
        ("Check", "Fit", "Stationarity", "fit_chains"),
    ),
    "offrecord.paper": (
        "offrecord.paper.reproduce",
        (
            "FIG2_EPSILONS",
            "FIG2_NAMES",
            "FIG2_VALUES",
            "Check",
            "Erratum",
            "checks",
            "errata",
            "fig1",
            "fig2",
            "fig2_problem",
            "fig3",
        ),
    ),
}


class _Moved(Loader):
    """Finds a module by its old name, and loads the one it has become."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MODULES else None

    def create_module(self, spec: ModuleSpec) -> None:
        """An empty one will do."""

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = import_module(MODULES[old])
        sys.modules[old] = new  # which the import system takes instead of the empty one
        warn(f"{old} is {new.__name__} now", DeprecationWarning, stacklevel=2)


def install() -> None:
    """Have old names of modules found."""
    sys.meta_path.append(_Moved())


def names_moved(package: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package that was a module: its names, wherever they are now."""
    module, names = PACKAGES[package]

    def attribute(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        warn(f"{package}.{name} is {module}.{name} now", DeprecationWarning, stacklevel=2)
        return getattr(import_module(module), name)

    return attribute
