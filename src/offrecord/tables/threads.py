"""Threads: several parts of a table's rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")

_AT_ONCE = 4  # parts at most, if the table engine has so many threads: each takes memory


def in_threads(work: Callable[[_T], _R], parts: Iterable[_T]) -> list[_R]:
    """What is found of each part, in their order. One alone is done here: a thread would have
    memory of its own.
    """
    import polars as pl

    every, threads = list(parts), min(pl.thread_pool_size(), _AT_ONCE)
    if len(every) == 1 or threads == 1:
        return [work(part) for part in every]
    with ThreadPoolExecutor(threads) as several:
        return list(several.map(work, every))
