"""What would let more of a table leave: changes that are tried by expectation, before any coin.

A change is judged by windows of a few plausible chains, so its share is approximate. Nothing here
looks at a value of the table.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from offrecord.mechanisms.deciding.expect import Geometry, expected_released
from offrecord.mechanisms.rules import Setting
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.mechanisms.window import pair_of_window
from offrecord.models.base import Integers
from offrecord.models.members import Members
from offrecord.models.posterior import Posterior
from offrecord.models.promise import ACCEPTANCE, Promise
from offrecord.tables.alphabet import OTHERS
from offrecord.theory.window import smallest_windows

if TYPE_CHECKING:
    from offrecord.models.file import Model
    from offrecord.tables.given import Given
    from offrecord.tables.survey import Survey

#: Little is left where less than this share leaves of the records that erasing private ones alone
#: would keep.
LITTLE = 0.5
_SECONDS = 3.0  # of CPU after which no trial begins; the slowest one seen took 1.2
_NUMBERS = 2**16  # of the kernels of a trial's chains
_CHAINS = (200, 2000)  # so many plausible chains in a trial, as their kernels are large or small
_MARGIN = 0.95  # of ε: designs keep some of it for chains that they have not seen
_BETTER = 1.5  # a change is worth a word if so many times as many records leave
_LEAST = 0.05  # share of the records that must leave then
_FACTORS = (2.0, 4.0, 8.0, 16.0)  # of ε
_LEAST_BUDGET = 0.25  # what is multiplied where ε is less
_MORE_DATA = 10  # times as many reference records
_NAMED = 3  # changes in a message
_NOTHING_HELPS = (
    "Nothing helps of what was tried: a larger --epsilon, fewer values, a lower --coverage and"
    f" {_MORE_DATA} times as many reference records. Release a coarser --step, or totals"
    " (docs/choosing.md)"
)


class _Trial(NamedTuple):
    """A change in words that can be typed, and what it changes. is_bound: less may leave."""

    change: str
    promise: Promise
    epsilon: float
    is_bound: bool = False

    def words(self, share: float) -> str:
        about = "at most" if self.is_bound else "about"
        return f"{self.change} ({about} {share:.0%} would leave)"


def is_little(survey: Survey, records: float) -> bool:
    """Whether so few records leave that a person should learn what would help."""
    return records < LITTLE * (survey.records - survey.private)


def what_helps(given: Given, model: Model, survey: Survey, share: float) -> str:
    """A sentence on the changes that let clearly more leave. share: of records that leaves now."""
    return remedies(given, model, survey, share) or _NOTHING_HELPS


def remedies(given: Given, model: Model, survey: Survey, share: float) -> str | None:
    """As `what_helps`; None where nothing does."""
    found = _tried(_changes(given, model), survey)
    least = max(_BETTER * _part(survey, share * survey.records), _LEAST)
    enough = [one for one in found if one[0] >= LITTLE] or [one for one in found if one[0] >= least]
    best = sorted(enough, key=lambda one: -one[0])[:_NAMED]
    return f"What would help: {', or '.join(words for _, words in best)}" if best else None


def _part(survey: Survey, released: float) -> float:
    beside = survey.records - survey.touched_records
    return (released - beside) / max(survey.touched_records - survey.private, 1)


def _tried(changes: list[list[_Trial]], survey: Survey) -> list[tuple[float, str]]:
    """Of each change, how much of what counts would leave, and its words."""
    latest = time.process_time() + _SECONDS
    *single, both = changes
    found = [one for trials in single for one in _until_enough(trials, survey, latest)]
    if all(part < LITTLE for part, _ in found):
        found += _until_enough(both, survey, latest)
    return found


def _until_enough(
    trials: list[_Trial], survey: Survey, latest: float
) -> Iterator[tuple[float, str]]:
    for trial in trials:
        released = _released(trial, survey, latest)
        part = _part(survey, released)
        yield part, trial.words(released / max(survey.records, 1))
        if part >= LITTLE:
            return  # a smaller change of the same kind is enough


def _changes(given: Given, model: Model) -> list[list[_Trial]]:
    """What is tried: lists of changes of one kind, the smallest first, and two kinds at once."""
    promise, epsilon = model.promise, given.epsilon
    budgets = [factor * max(epsilon, _LEAST_BUDGET) for factor in _FACTORS]
    larger = [_Trial(f"--epsilon {budget:g}", promise, budget) for budget in budgets]
    if not isinstance(promise, Posterior):
        return [larger, []]
    fewer = _fewer_values(given, model, promise)
    both = [
        one._replace(change=f"{one.change}, and --epsilon {budget:g}", epsilon=budget)
        for one in fewer[-1:]
        for budget in budgets
    ]
    return [fewer, larger, *_of_the_data(promise, epsilon), both]


def _fewer_values(given: Given, model: Model, promise: Posterior) -> list[_Trial]:
    if not _may_merge(given, model):
        return []
    fitted = "" if given.options.fit else "a model fitted with "
    kept = dict.fromkeys(one for one in (promise.k // 2, 3, 2) if 2 <= one < promise.k)
    # A fit of merged values may choose a longer order, whose windows are longer than these: of one
    # table 96.3 % left where 98 % were foretold.
    return [
        _Trial(f"{fitted}--merge {one}", merged(promise, one), given.epsilon, is_bound=True)
        for one in kept
    ]


def _of_the_data(promise: Posterior, epsilon: float) -> Iterator[list[_Trial]]:
    """A lower coverage, and more reference records."""
    lower = promise.with_coverage(min(ACCEPTANCE))
    if lower.coverage != promise.coverage:
        yield [_Trial(f"--coverage {lower.coverage:g}", lower, epsilon)]
    more = _with_counts(promise, lambda counts, _: counts * _MORE_DATA)
    words = f"a model fitted to {_MORE_DATA} times as many records like these"
    yield [_Trial(words, more, epsilon)]


def _may_merge(given: Given, model: Model) -> bool:
    options, origin = given.options, model.origin
    if origin is None or origin.bins is not None or options.values is not None:
        return False
    # --merge learns from chains without a private record, and needs a name that is free
    is_free = OTHERS not in model.promise.labels or origin.others is not None
    return origin.distance is None and is_free


def _released(trial: _Trial, survey: Survey, latest: float) -> float:
    """How many records windows would release; 0 where none keep ε, or they take too long."""
    promise, epsilon = trial.promise, _MARGIN * trial.epsilon
    count = int(np.clip(_NUMBERS // promise.mean.rows.size, *_CHAINS))
    members = promise.members(count, promise.seed(epsilon, "advice"))
    windows = windows_of(survey.settings, promise, members, epsilon, latest)
    return 0.0 if windows is None else released_by(windows, promise, survey.geometry, epsilon)


def windows_of(
    settings: Iterable[Setting],
    promise: Promise,
    members: Members,
    epsilon: float,
    latest: float = math.inf,
) -> dict[Setting, tuple[int, int]] | None:
    """The smallest windows that keep ε in the share of some plausible chains that the coverage asks
    for, without a test; None where none does, or later than a time of the process's clock.
    """
    quantile = 1.0 if promise.acceptance is None else promise.acceptance.quantile
    allowed = int(members.count * (1 - quantile) + 1e-9)
    windows = {}
    for setting in settings:
        late = time.process_time() > latest
        sizes = None if late else smallest_windows(members, *setting, epsilon, allowed)
        if sizes is None:
            return None
        windows[setting] = sizes
    return windows


def released_by(
    windows: Mapping[Setting, tuple[int, int]], promise: Promise, table: Geometry, epsilon: float
) -> float:
    """How many records are expected to leave by windows. epsilon: what these are for."""
    rules = {one: pair_of_window(one, sizes, promise.k) for one, sizes in windows.items()}
    policy = TablePolicy("window", epsilon, "run", None, rules)
    return max(expected_released(table, policy, promise.mean), 0.0)


def merged(posterior: Posterior, kept: int) -> Posterior:
    """The posterior of the same records where one value stands for all but the kept − 1 most
    frequent ones.
    """
    frequent = np.argsort(-posterior.counts.sum(axis=0), kind="stable")[: kept - 1]
    becomes = np.zeros((posterior.k, kept), dtype=np.int64)
    becomes[:, kept - 1] = 1
    becomes[frequent] = np.eye(kept, dtype=np.int64)[: kept - 1]

    def summed(counts: Integers, axes: int) -> Integers:
        # values are the last digits of counts; a place may stand before them
        lead = counts.shape[:1] if counts.size > posterior.k**axes else ()
        cells = counts.reshape(*lead, *[posterior.k] * axes)
        for _ in range(axes):  # each turn takes the first of them to the end
            cells = np.tensordot(cells, becomes, axes=(len(lead), 0))
        return cells.reshape(*lead, -1, *[kept] * (axes > posterior.order))

    return _with_counts(posterior, summed)


def _with_counts(posterior: Posterior, changed: Callable[[Integers, int], Integers]) -> Posterior:
    """The posterior of other counts. changed: takes counts and how many values they go by."""
    order, first, by_place = posterior.order, posterior.first_counts, posterior.place_counts
    return Posterior(
        changed(posterior.counts, order + 1),
        order,
        None,
        posterior.coverage,
        kappa=posterior.kappa,
        places=posterior.places,
        place_counts=None if by_place is None else changed(by_place, order + 1),
        place_kappa=posterior.place_kappa,
        first_counts=None if first is None else changed(first, order),
    )
