"""BestWindow: the best data-independent mechanism, exact."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from offrecord.mechanisms.base import TIGHTENED, Mechanism, Unserved
from offrecord.mechanisms.rules import LocalRule, Pair, Setting, of_setting
from offrecord.models.members import Members
from offrecord.models.promise import Promise
from offrecord.text import Progress
from offrecord.theory.leakage import Around, figure
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.window import LONGEST, shortest_window, smallest_windows, staircase

if TYPE_CHECKING:
    from offrecord.mechanisms.local_policy import LocalPolicy

_FEW = 64  # members of a list for which windows of any shape are tried, and not even ones alone
#: Shares of the chains that may exceed ε, for each budget in turn. A smaller budget alone does not
#: help where a few chains hardly forget: ten of them failed for an event log of 64 contexts, where
#: beside a window of 431 records the worst 27 of 8,000 chains leak 2 or more.
_EXCEEDING = (1.0, 0.6, 0.4, 0.25, 0.15, 0.1, 0.05, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class BestWindow(Mechanism):
    """Redact the shortest window around the private record; release everything else.

    No data-independent mechanism releases more: given the nearest released records on both sides
    all others are free. Directions add (F2), so the window need not be symmetric. In a chain of
    order m the m nearest released records on each side count (R6). Takes every chain.
    """

    name: ClassVar[str] = "window"
    is_compared: ClassVar[bool] = True

    def rules(self, mean: Members, setting: Setting, epsilon: float) -> Pair:
        """The shortest window that every one of these chains keeps."""
        found = shortest_window(mean, setting.kind, setting.place, epsilon)
        return pair_of_window(setting, found, mean.k)

    def attempts(
        self, promise: Promise, settings: Collection[Setting], epsilon: float, watch: Progress
    ) -> Iterator[dict[Setting, Pair]]:
        """The windows that the promise's quantile of the plausible chains keeps."""
        from offrecord.mechanisms.design_table import drawn_for_design

        members, allowed = drawn_for_design(promise, epsilon)
        sizes: dict[Setting, tuple[int, int] | None] = {}
        for budget, exceeding in zip(TIGHTENED, _EXCEEDING, strict=True):
            at, few, found = epsilon * budget, int(allowed * exceeding), {}
            with watch("windows", len(settings)) as done:
                for one in settings:
                    if members.count <= _FEW:
                        found[one] = self.rules(members, one, at)
                    else:  # from the window before on: it only grows
                        before = sizes.get(one)
                        sizes[one] = smallest_windows(members, *one, at, few, before)
                        found[one] = pair_of_window(one, sizes[one], members.k)
                    done(1)
            yield found

    def design(self, problem: Problem) -> LocalPolicy:
        """The shortest window around each private record or run."""
        from offrecord.mechanisms.local_policy import LocalPolicy

        matrix = np.zeros((problem.n, problem.chain.k))
        known: dict[object, tuple[int, int]] = {}
        useful = problem.n  # margin beyond this makes no difference (F14)
        alike = problem.members.places is None
        for secret in problem.secrets:
            margins = secret.first - 1, problem.n - secret.last
            near = min(margins[0], useful), min(margins[1], useful), secret.last - secret.first
            key: object = near if alike else secret
            if key not in known:
                known[key] = _smallest(problem, secret, margins)
                enough = sum(known[key]) + problem.chain.order
                # beyond these records nothing changes what a window leaks (F14)
                if alike and min(margins) > enough:
                    useful = min(useful, enough)
            left, right = known[key]
            matrix[max(secret.first - 1 - left, 0) : secret.last + right] = 1.0
        return LocalPolicy(problem, matrix, self.name)


# The first of the shortest windows around one secret, by its left side.
def _smallest(problem: Problem, secret: Secret, margins: tuple[int, int]) -> tuple[int, int]:
    def keeps(*sizes: int) -> bool:
        rows = [np.broadcast_to(1.0, (size, problem.chain.k)) for size in sizes]
        found = Around(problem, problem.members, secret, (rows[0], rows[1])).leakages()
        return figure(problem, found) <= problem.epsilon

    return staircase(keeps, margins) or margins


def pair_of_window(setting: Setting, sizes: tuple[int, int] | None, k: int) -> Pair:
    """The rules that redact so many records beyond the core to the left and right.

    sizes: None if none is enough, which is Unserved.
    """
    if sizes is None:
        raise Unserved(f"no window of up to {LONGEST:,} records on a side keeps ε")
    return of_setting(setting, *(LocalRule.window(size, k) for size in sizes))
