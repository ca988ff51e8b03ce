"""A chain learned from data: rounded kernels, how sure they are, and a verdict on whether a chain
is the right model at all.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offrecord.errors import InputError
from offrecord.fitting.counting import (
    Codes,
    Counts,
    binned,
    counted,
    linked_records,
    reaching,
    tuples,
)
from offrecord.models.base import Floats, Label
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import MAX_VALUES as MAX_STATES
from offrecord.models.checking import whole_number
from offrecord.models.clock import phase_count
from offrecord.models.phased import PhasedChain, checked_phases
from offrecord.models.published_rounding import DIGITS, rounded_row
from offrecord.text import aligned, many

if TYPE_CHECKING:
    from offrecord.tables.chains import Chains

LARGEST_ORDER = 3  #: of the orders that BIC compares
MIN_STARTS = 20  #: fewer first records are not tested
FEW = 5  #: a transition seen less often is called rare
_ENOUGH = 30  # visits from which on a change of a probability is more than noise
_UNLIKELY = 0.01  # p-values below are worth a word
_SMALL = 0.02  # a change of a probability below is small
_SHOWN = 36  # transitions that are listed one by one


@dataclass(frozen=True)
class Check:
    """A test of an assumption. change: the largest difference of a probability it is about, where
    there are data enough.
    """

    statistic: float
    degrees: int
    p_value: float
    change: float | None
    records: int

    @property
    def passed(self) -> bool:
        """Nothing unlikely was seen."""
        return self.p_value >= _UNLIKELY

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "statistic": self.statistic,
            "degrees_of_freedom": self.degrees,
            "p_value": self.p_value,
            "largest_change": self.change,
            "records": self.records,
        }


@dataclass(frozen=True)
class Stationarity:
    """Tests of what a stationary chain assumes; None where the data cannot tell.

    halves: one kernel throughout, against one for the first and one for the second half of each
    chain.
    starts: first records are distributed as the model says, stationary (or, with phases, as any
    record in their phase).
    phases: one kernel throughout, against one for each phase; only of a model with phases.
    """

    halves: Check | None
    starts: Check | None
    phases: Check | None


@dataclass(frozen=True, eq=False)
class Fit:
    """What was learned, and from how much.

    model: with kernels rounded: the rounded kernel is the model. counts: k^(order + 1) transitions,
    the next record's value last, with phases an axis of phases before. intervals: 95 % Wilson
    intervals of every transition probability, in a last axis of 2. bic: by order, all on the same
    bic_records records. records: those with a value, in the chains used. dropped: how many chains
    were left out. values: how many records have each value, in the chains used.
    """

    model: MarkovChain | PhasedChain
    counts: Counts
    intervals: Floats
    bic: dict[int, float]
    bic_records: int
    stationarity: Stationarity
    records: int
    chains: int
    dropped: int
    values: dict[Label, int]
    warnings: tuple[str, ...] = ()

    @property
    def transitions(self) -> int:
        """How many transitions were counted."""
        return int(self.counts.sum())

    @property
    def preferred_order(self) -> int:
        """The order with the smallest BIC."""
        return min(self.bic, key=lambda order: self.bic[order])

    @cached_property
    def verdict(self) -> str:
        """In plain words, for who publishes: does a chain like this describe the data?"""
        said = [
            _on_order(self),
            *_on_phases(self),
            _on_halves(self),
            _on_starts(self),
            *_on_few(self),
        ]
        return " ".join(said)

    def summary(self) -> dict[str, Any]:
        """Everything, for JSON."""
        checks = self.stationarity
        return {
            "order": self.model.order,
            "phase": _phase(self.model),
            "labels": list(self.model.labels),
            "values": {str(value): count for value, count in self.values.items()},
            "records": self.records,
            "chains": self.chains,
            "chains_dropped": self.dropped,
            "transitions": self.transitions,
            "counts": self.counts.tolist(),
            "transition": self.model.transition.tolist(),
            "intervals": self.intervals.tolist(),
            "bic": {str(order): value for order, value in self.bic.items()},
            "bic_records": self.bic_records,
            "preferred_order": self.preferred_order,
            "stationarity": {
                name: None if check is None else check.summary()
                for name, check in (
                    ("halves", checks.halves),
                    ("starts", checks.starts),
                    ("phases", checks.phases),
                )
            },
            "verdict": self.verdict,
        }

    def __str__(self) -> str:
        model, phase = self.model, _phase(self.model)
        lines = [
            f"order {model.order}, {model.k}"
            f" values{f', a kernel for each {phase}' if phase else ''}: {self.transitions:,}"
            f" transitions, {self.records:,} records, {many(self.chains, 'chain')}"
            + (f" ({self.dropped:,} left out: they hold private records)" if self.dropped else ""),
            *textwrap.wrap(listed_values(self.values), 100),
            "",
        ]
        if phase is None and self.counts.size <= _SHOWN:
            lines += [aligned(_transition_table(self), right=True), ""]
        lines += [aligned(_order_table(self), right=True), ""]
        if checks := _check_table(self):
            lines += [aligned(checks, right=True), ""]
        return "\n".join([*lines, *textwrap.wrap(self.verdict, 100)])


def fit_chains(
    chains: Chains,
    labels: Sequence[Label],
    *,
    order: int = 1,
    phases: ArrayLike | None = None,
    phase: str | None = None,
    zone: str | None = None,
    dropped: ArrayLike | None = None,
) -> Fit:
    """Learn a chain from records, pooled over chains; only what stands exactly one step apart and
    has values is counted.

    phases: (n,) the phase of each record, from 0, with phase saying of what kind and zone in which
    time zone they were told.
    dropped: (m,) chains that hold a private record: they are left out. InputError if nothing is
    left to learn from.
    """
    k, order = len(labels), whole_number("order", order)
    if order not in (1, 2):
        raise InputError(f"order must be 1 or 2, got {order}")
    if (phases is None) != (phase is None):
        raise InputError("phases and phase go together: give both or neither")
    if phase is not None and order != 1:
        raise InputError(f"kernels by phase need order 1, got order {order}")
    if k**order > MAX_STATES:
        raise InputError(
            f"order {order} takes at most {int(MAX_STATES ** (1 / order))} values, got {k}"
        )
    out = _dropped(dropped, chains.count)
    codes = chains.codes
    if out.any():
        codes = np.where(np.repeat(out, np.diff(chains.starts)), codes.dtype.type(-1), codes)
    records, chain_count = int(np.count_nonzero(codes >= 0)), int(chains.count - out.sum())
    linked = linked_records(codes, chains.starts, chains.steps)
    told = None if phases is None or phase is None else checked_phases(phases, phase)
    if told is not None and len(told) != len(codes):
        raise InputError(
            f"phases must name the phase of each of {len(codes)} records, got {len(told)}"
        )
    halves = _halves(
        codes, linked, chains, k, order, told, 0 if phase is None else phase_count(phase)
    )
    counts = halves.sum(axis=0)
    if not counts.any():
        raise InputError(
            f"no {order + 1} records with values stand one step apart: there is nothing to learn"
            " the model from"
        )
    bic, bic_records = _bic(codes, linked, k)
    firsts = chains.starts[:-1][codes[chains.starts[:-1]] >= 0]
    model: MarkovChain | PhasedChain
    if phase is None or told is None:
        model = MarkovChain(rounded(counts), labels=labels, order=order)
        starts, by_phase = _starts_check(model, counts, codes[firsts]), None
    else:
        here = codes >= 0
        marginals = binned(told[here].astype(np.int64) * k + codes[here], len(counts) * k).reshape(
            -1, k
        )
        model = PhasedChain(phase, rounded(counts), rounded(marginals), labels, zone)
        starts, by_phase = (
            _phased_starts_check(model, told[firsts], codes[firsts]),
            _ratio_check(counts),
        )
    return Fit(
        model,
        counts,
        wilson(counts, counts.sum(axis=-1, keepdims=True)),
        bic,
        bic_records,
        Stationarity(_ratio_check(halves), starts, by_phase),
        records,
        chain_count,
        int(out.sum()),
        dict(zip(labels, np.bincount(codes[codes >= 0], minlength=k).tolist(), strict=True)),
    )


def listed_values(values: Mapping[Label, int]) -> str:
    """How many values there are, and which, with their counts; text in quotes, so that a blank
    shows.
    """
    return f"{many(len(values), 'value')}: " + ", ".join(
        f"{value!r} ({count:,})" for value, count in values.items()
    )


def _dropped(dropped: ArrayLike | None, count: int) -> NDArray[np.bool_]:
    if dropped is None:
        return np.zeros(count, dtype=bool)
    out = np.asarray(dropped)
    if out.shape != (count,) or out.dtype != np.bool_:
        raise InputError(f"dropped must say true or false for each of {count} chains")
    if out.all():
        raise InputError(
            f"no chain is left to learn the model from: {many(count, 'chain')} given, and every one"
            " holds a private record; fit a model on reference data instead"
        )
    return out


# ---- counting


def _halves(
    codes: Codes,
    linked: NDArray[np.bool_],
    chains: Chains,
    k: int,
    order: int,
    phases: Codes | None,
    phase_total: int,
) -> Counts:
    """(2, k, …, k), or (2, P, k, k), transitions in the first and second halves of chains."""
    places = chains.places
    last = np.repeat(places[chains.starts[1:] - 1], np.diff(chains.starts))
    context = (2 * places - order > last).astype(
        np.int16
    )  # by the middle of the transition that ends at a record
    if phases is None:
        return counted(codes, linked, k, order, context, 2)
    context[1:] = context[1:] * phase_total + phases[:-1]
    return counted(codes, linked, k, order, context, 2 * phase_total).reshape(2, phase_total, k, k)


def _merged(
    keys: NDArray[np.integer[Any]], counts: Counts | None, size: int
) -> tuple[NDArray[np.integer[Any]], Counts]:
    """Equal keys below size become one, with the sum of their counts (or, without counts, their
    number).
    """
    if size <= max(4 * len(keys), 1 << 16):
        dense = np.bincount(keys, counts, minlength=size)
        found = np.flatnonzero(dense)
        return found, dense[found].astype(np.int64)
    if counts is None:
        return np.unique(keys, return_counts=True)
    found, where = np.unique(keys, return_inverse=True)
    return found, np.bincount(where, counts).astype(np.int64)


def _bic(
    codes: NDArray[np.int8], linked: NDArray[np.bool_], k: int
) -> tuple[dict[int, float], int]:
    """BIC by order, all on the records with LARGEST_ORDER predecessors (or as many as any has), and
    the number of these.
    """
    deepest = next(order for order in range(LARGEST_ORDER, 0, -1) if reaching(linked, order).any())
    keys: NDArray[np.integer[Any]]
    keys, counts = _merged(
        tuples(codes, reaching(linked, deepest), k, deepest), None, k ** (deepest + 1)
    )
    records = int(counts.sum())
    bic = {}
    for order in range(deepest, -1, -1):
        _, context_counts = _merged(keys // k, counts, k**order)
        likelihood = _log_powers(counts) - _log_powers(context_counts)
        bic[order] = _penalty(k, order, records) - 2 * likelihood
        keys, counts = (
            _merged(keys % k**order, counts, k**order) if order else (keys, counts)
        )  # forget the oldest record
    return dict(sorted(bic.items())), records


def _penalty(k: int, order: int, records: int) -> float:
    """What BIC asks for the free parameters of an order."""
    return float(k**order * (k - 1) * np.log(records))


def _log_powers(counts: Counts) -> float:
    """The sum of c·log c."""
    from scipy.special import xlogy

    return float(xlogy(counts, counts).sum())


# ---- estimates


def rounded(counts: Counts) -> Floats:
    """Distributions over the last axis: counts plus one half, as shares, rounded to four digits
    (digits.py).
    """
    k = counts.shape[-1]
    exact = Context(prec=60)
    rows = [
        rounded_row(
            [exact.divide(Decimal(2 * count + 1), Decimal(2 * sum(seen) + k)) for count in seen]
        )
        for seen in counts.reshape(-1, k).tolist()
    ]
    return np.array(rows).reshape(counts.shape)


def wilson(counts: ArrayLike, totals: ArrayLike) -> Floats:
    """95 % Wilson intervals of shares, lower and upper in a last axis of 2; 0 to 1 where nothing
    was seen.
    """
    from scipy.special import ndtri

    seen, of = np.broadcast_arrays(
        np.asarray(counts, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    )
    square = float(ndtri(0.975)) ** 2
    centre = (seen + square / 2) / (of + square)
    spread = (
        np.sqrt(square)
        / (of + square)
        * np.sqrt(seen * (1 - seen / np.maximum(of, 1)) + square / 4)
    )
    lower = np.where(
        seen == 0, 0.0, np.maximum(centre - spread, 0.0)
    )  # the ends are exact, not off by rounding
    upper = np.where(seen == of, 1.0, np.minimum(centre + spread, 1.0))
    return np.stack([lower, upper], axis=-1)


# ---- tests


def _ratio_check(groups: Counts) -> Check | None:
    """Likelihood-ratio test of one kernel against one for each group (first axis); None if no
    context is seen in two groups.

    Degrees of freedom count the values seen after each context, less one, for each further group
    that visits it.
    """
    pooled = groups.sum(axis=0)
    visits, pooled_visits = groups.sum(axis=-1), pooled.sum(axis=-1)
    further = np.maximum(np.count_nonzero(visits, axis=0) - 1, 0)
    degrees = int((further * np.maximum(np.count_nonzero(pooled, axis=-1) - 1, 0)).sum())
    if not further.any():
        return None
    apart = _log_powers(groups) - _log_powers(visits)
    together = _log_powers(pooled) - _log_powers(pooled_visits)
    statistic = max(2 * (apart - together), 0.0)
    return Check(
        statistic,
        degrees,
        _tail(degrees, statistic),
        _largest_change(groups, visits),
        int(pooled.sum()),
    )


def _largest_change(groups: Counts, visits: Counts) -> float | None:
    """Of a probability between two groups, where both visit the context often enough."""
    enough = (visits >= _ENOUGH)[..., np.newaxis]
    if not np.any(np.count_nonzero(enough, axis=0) >= 2):
        return None
    shares = groups / np.maximum(visits, 1)[..., np.newaxis]
    return float(
        (
            np.where(enough, shares, 0.0).max(axis=0) - np.where(enough, shares, 1.0).min(axis=0)
        ).max()
    )


def _tail(degrees: int, statistic: float) -> float:
    """Pr(chi-square ≥ statistic)."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees, statistic)) if degrees else 1.0


def _starts_check(model: MarkovChain, counts: Counts, firsts: NDArray[np.int8]) -> Check | None:
    """First records against the stationary distribution, which is itself learned: both errors
    count.

    With few or short chains the second error is as large as the first. By the delta method: π moves
    by π·dP·Z with Z = (1 − P + 1π)⁻¹, the rows of P vary as shares do, and start and kernel of a
    chain are estimated independently.
    """
    if len(firsts) < MIN_STARTS:
        return None
    lifted, k = model.lifted, model.k
    states = len(lifted.start)
    values = np.zeros((states, k))
    values[np.arange(states), model.coordinate(0)] = 1.0
    moves = np.linalg.solve(np.eye(states) - lifted.transition + lifted.start, values)
    onward = (np.arange(states) * k % states)[:, np.newaxis] + np.arange(k)
    rows, after = model.transition.reshape(states, k), moves[onward]
    weight = lifted.start**2 / (counts.reshape(states, k).sum(axis=1) + k / 2)
    mean = np.einsum("sj,sjv->sv", rows, after)
    learned = (
        np.einsum("s,sj,sju,sjv->uv", weight, rows, after, after, optimize=True)
        - (mean * weight[:, np.newaxis]).T @ mean
    )
    expected = model.marginal(1)
    drawn = np.diag(expected) - np.outer(expected, expected)
    count = len(firsts)
    return _first_records(binned(firsts, k), count * expected, count * drawn + count**2 * learned)


def _phased_starts_check(
    model: PhasedChain, phases: NDArray[np.integer[Any]], firsts: NDArray[np.int8]
) -> Check | None:
    """First records against all records of their phases."""
    if len(firsts) < MIN_STARTS:
        return None
    visits = binned(phases, len(model.start)).astype(np.float64)
    expected = visits @ model.start
    drawn = np.diag(expected) - (model.start * visits[:, np.newaxis]).T @ model.start
    return _first_records(binned(firsts, model.k), expected, drawn)


def _first_records(seen: Counts, expected: Floats, covariance: Floats) -> Check | None:
    """Chi-square test of counts; the rarest values are taken together until FEW of them are
    expected.
    """
    count = int(seen.sum())
    rising = np.argsort(expected, kind="stable")
    together = max(
        int(np.searchsorted(np.cumsum(expected[rising]), FEW)),
        int(np.count_nonzero(expected < FEW)) - 1,
    )
    group = np.zeros(len(seen), dtype=np.int64)
    group[rising] = np.maximum(np.arange(len(seen)) - together, 0)
    groups = int(group.max()) + 1
    if groups < 2:
        return None
    belongs = np.eye(groups)[group][:, 1:]  # counts sum to a constant: one group says nothing new
    off = (seen - expected) @ belongs
    statistic = float(off @ np.linalg.solve(belongs.T @ covariance @ belongs, off))
    change = float(np.abs(seen - expected).max()) / count
    return Check(statistic, groups - 1, _tail(groups - 1, statistic), change, count)


# ---- in words


def _on_order(fit: Fit) -> str:
    order, preferred = fit.model.order, fit.preferred_order
    among = f"order {preferred} among orders 0 to {max(fit.bic)}"
    rests = (
        ""
        if fit.bic_records >= max(fit.transitions / 10, 100)
        else f" (it compares {fit.bic_records:,} records only)"
    )
    if preferred == order:
        return (
            f"BIC prefers {among}, the one fitted{rests}. The guarantee assumes that the model is"
            " right; this speaks for it."
        )
    if preferred < order:
        return (
            f"BIC prefers {among}{rests}, simpler than the order {order} fitted: order {order}"
            " includes it, but more of it is chance. The guarantee assumes that the model is"
            " right."
        )
    gain = (_likelihood(fit, preferred) - _likelihood(fit, order)) / fit.bic_records / np.log(2)
    advice = (
        "; fit order 2"
        if order == 1 and _phase(fit.model) is None and fit.model.k**2 <= MAX_STATES
        else ""
    )
    advice = f"{advice}, closer though not enough" if advice and preferred > 2 else advice
    return (
        f"BIC prefers {among}{rests}, not the order {order} fitted: earlier records tell more than"
        f" the model knows ({_short(gain)} bits a record). The guarantee assumes that the model is"
        f" right, so here it is approximate{advice}."
    )


def _likelihood(fit: Fit, order: int) -> float:
    return (_penalty(fit.model.k, order, fit.bic_records) - fit.bic[order]) / 2


def _on_phases(fit: Fit) -> list[str]:
    phase, check = _phase(fit.model), fit.stationarity.phases
    if phase is None:
        return []
    said = []
    if check is not None and check.passed:
        said.append(
            f"Kernels do not clearly differ by {phase} ({_size(check)}): one kernel would do."
        )
    elif check is not None:
        worth = check.statistic > check.degrees * np.log(check.records)
        said.append(
            f"Kernels differ by {phase} ({_size(check)})"
            + (
                "."
                if worth
                else ", but by BIC too little for so many kernels: one kernel would do."
            )
        )
    empty = int(np.count_nonzero(fit.counts.sum(axis=(1, 2)) == 0))
    if empty:
        said.append(
            f"{empty} of {len(fit.counts)} phases were never seen; do not use the model there."
        )
    return said


def _on_halves(fit: Fit) -> str:
    check = fit.stationarity.halves
    if check is None:
        return "The chains are too short to see whether the kernel drifts."
    between = "between the first and second halves of the chains"
    return _judged(
        check,
        f"No clear drift {between}",
        f"The kernel drifts {between}",
        "change",
        "records",
        "it does not",
    )


def _on_starts(fit: Fit) -> str:
    check = fit.stationarity.starts
    if check is None and fit.chains < MIN_STARTS:
        return (
            f"{many(fit.chains, 'chain')} cannot show whether first records are like any other:"
            f" {MIN_STARTS} are needed."
        )
    if check is None:
        return "First records are too much alike to show whether they are like any other."
    like = (
        "the stationary distribution"
        if _phase(fit.model) is None
        else "other records of their phase"
    )
    return _judged(
        check,
        f"First records look like {like}",
        f"First records differ from {like}",
        "difference",
        "chains",
        "they do not",
    )


def _judged(check: Check, passed: str, failed: str, change: str, things: str, assumed: str) -> str:
    """What a test says, its size beside its p-value: with much data everything is significant."""
    size = _size(
        check, "largest change of a probability" if change == "change" else f"largest {change}"
    )
    if check.passed:
        return f"{passed} ({size})."
    if check.change is not None and check.change < _SMALL:
        return (
            f"{failed} ({size}); the {change} is small, and with this many {things} any {change}"
            " shows."
        )
    return f"{failed} ({size}); the guarantee assumes that {assumed}."


def _on_few(fit: Fit) -> list[str]:
    rare = int(np.count_nonzero(fit.counts < FEW))
    if not rare:
        return []
    verb = "was" if rare == 1 else "were"
    return [
        f"{rare:,} of {fit.counts.size:,} transitions {verb} seen fewer than {FEW} times: data are"
        " few there, and their probabilities are known only roughly."
    ]


def _size(check: Check, change: str = "largest change of a probability") -> str:
    return f"p {_p_value(check)}" + (
        "" if check.change is None else f", {change} {_short(check.change)}"
    )


def _p_value(check: Check) -> str:
    return "below 0.000001" if check.p_value < 1e-6 else f"= {_short(check.p_value)}"


def _short(number: float) -> str:
    return str(np.format_float_positional(number, precision=2, fractional=False, trim="-"))


def _phase(model: MarkovChain | PhasedChain) -> str | None:
    return model.phase if isinstance(model, PhasedChain) else None


def _transition_table(fit: Fit) -> list[list[str]]:
    labels = [str(label) for label in fit.model.labels]
    table = [["from", "to", "probability", "95 % interval", "seen"]]
    for at in product(range(fit.model.k), repeat=fit.counts.ndim):
        low, high = fit.intervals[at]
        before = ", ".join(labels[i] for i in at[:-1])
        share, least, most = (
            f"{number:.{DIGITS}g}" for number in (fit.model.transition[at], low, high)
        )
        table.append([before, labels[at[-1]], share, f"{least} to {most}", f"{fit.counts[at]:,}"])
    return table


def _order_table(fit: Fit) -> list[list[str]]:
    return [
        ["order", *(str(order) for order in fit.bic)],
        ["BIC", *(f"{value:,.1f}" for value in fit.bic.values())],
    ]


def _check_table(fit: Fit) -> list[list[str]]:
    checks = fit.stationarity
    named = (
        ("phases", checks.phases),
        ("first and second halves", checks.halves),
        ("first records", checks.starts),
    )
    table = [["test of", "statistic", "degrees", "p", "largest change"]]
    for name, check in named:
        if check is not None:
            change = "" if check.change is None else _short(check.change)
            p_value = _p_value(check).removeprefix("= ")
            table.append([name, f"{check.statistic:,.1f}", f"{check.degrees:,}", p_value, change])
    return table if len(table) > 1 else []
