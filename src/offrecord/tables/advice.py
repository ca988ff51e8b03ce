"""What would let more of a table leave: changes that are tried by expectation, before any coin.

A change is judged by windows of a few plausible chains, so its share is approximate. Nothing here
looks at a value of the table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from offrecord.mechanisms.base import Unserved
from offrecord.mechanisms.deciding.expect import expected_released
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.mechanisms.window import pair_of_window
from offrecord.models.base import Integers
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
    """A change in words that can be typed, and what it changes."""

    change: str
    promise: Promise
    epsilon: float


def is_little(survey: Survey, records: float) -> bool:
    """Whether so few records leave that a person should learn what would help."""
    return records < LITTLE * (survey.records - survey.private)


def what_helps(given: Given, model: Model, survey: Survey, share: float) -> str:
    """A sentence on the changes that let clearly more leave. share: of records that leaves now."""
    return remedies(given, model, survey, share) or _NOTHING_HELPS


def remedies(given: Given, model: Model, survey: Survey, share: float) -> str | None:
    """As `what_helps`; None where nothing does."""
    latest = time.process_time() + _SECONDS
    beside = survey.records - survey.touched_records
    most = max(survey.touched_records - survey.private, 1)

    def part(share: float) -> float:
        """The part of a share that is of chains with a private record, where it counts."""
        return (share * survey.records - beside) / most

    least = max(_BETTER * part(share), _LEAST)
    enough: list[tuple[str, float]] = []
    some: list[tuple[str, float]] = []
    for kind in _kinds(given, model):
        if enough and kind.is_last:
            break
        for trial in kind.trials:
            found = trial.change, _share(trial, survey, latest)
            if part(found[1]) >= LITTLE:
                enough.append(found)
                break  # a smaller change of the same kind is enough
            if part(found[1]) >= least:
                some.append(found)
    best = sorted(enough or some, key=lambda one: -one[1])[:_NAMED]
    named = [f"{change} (about {released:.0%} would leave)" for change, released in best]
    return f"What would help: {', or '.join(named)}" if named else None


class _Kind(NamedTuple):
    """Changes of one kind, the smallest first. is_last: tried where no other is enough."""

    trials: list[_Trial]
    is_last: bool = False


def _kinds(given: Given, model: Model) -> Iterator[_Kind]:
    """What is tried."""
    promise, epsilon = model.promise, given.epsilon
    budgets = [factor * max(epsilon, _LEAST_BUDGET) for factor in _FACTORS]
    larger = _Kind([_Trial(f"--epsilon {budget:g}", promise, budget) for budget in budgets])
    if not isinstance(promise, Posterior):
        yield larger
        return
    fitted = "" if given.options.fit else "a model fitted with "
    fewer: dict[int, Posterior] = {}
    for kept in (promise.k // 2, 3, 2) if _may_merge(given, model) else ():
        if 2 <= kept < promise.k:
            fewer[kept] = merged(promise, kept)
    yield _Kind([_Trial(f"{fitted}--merge {kept}", one, epsilon) for kept, one in fewer.items()])
    yield larger
    if promise.coverage > min(ACCEPTANCE):
        lower = promise.with_coverage(min(ACCEPTANCE))
        yield _Kind([_Trial(f"--coverage {lower.coverage:g}", lower, epsilon)])
    more = _with_counts(promise, lambda counts, _: counts * _MORE_DATA)
    words = f"a model fitted to {_MORE_DATA} times as many records like these"
    yield _Kind([_Trial(words, more, epsilon)])
    for kept, two in [*fewer.items()][-1:]:
        both = f"{fitted}--merge {kept}, and --epsilon"
        yield _Kind([_Trial(f"{both} {one:g}", two, one) for one in budgets], is_last=True)


def _may_merge(given: Given, model: Model) -> bool:
    """Whether --merge can make fewer values of those of the model."""
    options, origin = given.options, model.origin
    if origin is None or origin.bins is not None or options.values is not None:
        return False
    # --merge learns from chains without a private record, and needs a name that is free
    is_free = OTHERS not in model.promise.labels or origin.others is not None
    return origin.distance is None and is_free


def _share(trial: _Trial, survey: Survey, latest: float) -> float:
    """Share of the records that windows of a few plausible chains would release; 0 where they keep
    no ε, or take too long.
    """
    promise, epsilon = trial.promise, _MARGIN * trial.epsilon
    count = int(np.clip(_NUMBERS // promise.mean.rows.size, *_CHAINS))
    members = promise.members(count, promise.seed(epsilon, "advice"))
    quantile = 1.0 if promise.acceptance is None else promise.acceptance.quantile
    allowed = int(members.count * (1 - quantile) + 1e-9)
    rules = {}
    for setting in survey.settings:
        if time.process_time() > latest:
            return 0.0
        try:
            sizes = smallest_windows(members, *setting, epsilon, allowed)
            rules[setting] = pair_of_window(setting, sizes, promise.k)
        except Unserved:
            return 0.0
    policy = TablePolicy("window", epsilon, "run", None, rules)
    released = expected_released(survey.geometry, policy, promise.mean)
    return min(max(released / max(survey.records, 1), 0.0), 1.0)


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
