"""Threads: several parts of a table's rows at once, and what is found of them in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

import polars as pl

_T = TypeVar("_T")
_R = TypeVar("_R")

_AT_ONCE = 4  # parts at most, if the table engine has so many threads: each takes memory


def table_threads(parts: int | None = None) -> int:
    """How many threads work on so many parts, if that is known."""
    # one part alone is worked on by whoever asks, as a thread would have memory of its own
    threads = min(pl.thread_pool_size(), _AT_ONCE)
    return threads if parts is None else max(min(threads, parts), 1)


def in_threads(work: Callable[[_T], _R], parts: Iterable[_T], threads: int) -> Iterator[_R]:
    """What is found of each part, in their order, by so many threads."""
    # parts are asked for one by one, and one at most waits beside those that are worked on
    if threads == 1:
        yield from map(work, parts)
        return
    waiting: deque[Future[_R]] = deque()
    several = ThreadPoolExecutor(threads)
    try:
        for part in parts:
            # what is to be done about numbers that overflow, and the like, is as it is here
            waiting.append(several.submit(copy_context().run, work, part))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # Not waited for: what is left over may end in one of these threads itself.
        several.shutdown(wait=False, cancel_futures=True)
