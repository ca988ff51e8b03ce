"""Loops that are written once and run in two ways: as they stand, or as machine code.

Compiling takes seconds on a machine that has not done it before, more than all that a small table
needs. So a loop that says how many records it visits runs as it stands while its kind has visited
few in this process, and from then on as machine code, which is compiled at the first call and kept
for later processes. Both do the same operations on the same numbers in the same order, without
fused or reordered ones, so that which of the two it was cannot be told from what comes out, to the
last bit. That holds for sums, products, quotients and comparisons, and for `math.log` and
`math.exp`, which are the C library's in both; loops with NumPy's own functions always are machine
code.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

#: Records that each kind of loop visits as it stands, in one process: that takes about as long as
#: loading the compiler and what it has kept, so that nothing is lost where it has kept all.
_FEW = 50_000
#: A walk over more than this is machine code at once.
_SHORT = 2_000


_visited: Counter[str] = Counter()  # by kind of loop, in this process
_staying: list[bool] = []  # whether it is a process that stays


def stay() -> None:
    """This process answers many questions: all loops are machine code from the first call on, so
    that no question in the midst of others waits for the compiler.
    """
    _staying.append(True)


class Loop:
    """A function made of loops; calling it runs machine code."""

    def __init__(self, function: FunctionType, inlined: bool) -> None:
        self.function, self.inlined = function, inlined

    def __call__(self, *arguments: Any) -> Any:
        return self._in(machine=True)(*arguments)

    def plain(self, *arguments: Any) -> Any:
        """As it stands; division by 0 gives what machine code gives."""
        with np.errstate(all="ignore"):
            return self._in(machine=False)(*arguments)

    def over(self, records: int, *arguments: Any, short: int = _SHORT) -> Any:
        """By the one or the other, for a walk over so many records; short: machine code at once for
        more than these.
        """
        few = records <= short and are_few(records, self.function.__module__)
        return (self.plain if few else self)(*arguments)

    def _in(self, *, machine: bool) -> Any:
        return _namespace(self.function.__module__, machine)[self.function.__name__]


def are_few(records: int, kind: str) -> bool:
    """Walks over so many more are quicker as they stand than compiling them would be; never again
    once some of their kind were not, as these have been compiled, or in a process that stays.
    """
    if _staying or _visited[kind] + records > _FEW:
        _visited[kind] = _FEW + 1
        return False
    _visited[kind] += records
    return True


def compiled(function: Callable[..., Any]) -> Loop:
    """A loop that is called from Python or from other loops."""
    assert isinstance(function, FunctionType)
    return Loop(function, inlined=False)


def inlined(function: Callable[..., Any]) -> Loop:
    """A loop that is compiled as part of whatever calls it: a call would cost more than is done."""
    assert isinstance(function, FunctionType)
    return Loop(function, inlined=True)


@cache
def _namespace(module: str, machine: bool) -> dict[str, Any]:
    """A module's names, with loops that call each other: all as they stand, or all compiled."""
    names = dict(vars(sys.modules[module]))
    for name, loop in list(names.items()):
        if isinstance(loop, Loop):
            if loop.function.__module__ == module:
                names[name] = _twin(loop, names, machine)
            else:
                names[name] = loop._in(machine=machine)
    return names


def _twin(loop: Loop, names: dict[str, Any], machine: bool) -> Any:
    """The same function among other names."""
    function = loop.function
    twin = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    twin.__module__, twin.__qualname__ = function.__module__, function.__qualname__
    if not machine:
        return twin
    import numba

    return numba.njit(twin, cache=True, error_model="numpy", forceinline=loop.inlined)
