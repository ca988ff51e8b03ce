"""A fit in words, for who publishes: does a chain like this describe the data?"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from offrecord.fitting.checks import FEW, Check
from offrecord.fitting.longer_memory import EPSILON
from offrecord.fitting.orders import largest_order, penalty
from offrecord.text import many, odds

if TYPE_CHECKING:
    from offrecord.fitting.beginnings import Beginnings
    from offrecord.fitting.fit import Fit
    from offrecord.models.box import Box

_SMALL = 0.02  # a change of a probability below is small
_NAMED = 3  # transitions, or values, that are named in a sentence
# what sentences say that speak against a model
_ASSUMES = "the guarantee assumes that"
_UNCOVERED = "the promise does not cover that"
_BEGINNINGS = "First records differ from"  # of sentences on how chains begin
_NOT_MUCH = "the difference is small"
_NEAR = "near the beginning of a chain a design that knows nothing of it may tell"
_LIKE_THESE = "The set holds chains that begin like these"


def verdict_on(fit: Fit) -> str:
    """What speaks for the model and what against it."""
    said = [
        _on_order(fit),
        *_on_longer_memory(fit),
        *_on_hidden(fit),
        *_on_phases(fit),
        *_on_halves(fit),
        *_on_starts(fit),
        *_on_untested(fit),
        _on_set(fit),
        *_on_few(fit),
    ]
    return " ".join(said)


def objections(verdict: str) -> list[str]:
    """What a verdict says against the model, in short: files keep of a verdict its text alone."""
    said = []
    for sentence in re.split(r"(?<=\.) (?=[A-Z0-9])", verdict):
        found = sentence.split(" (")[0]
        if f"; {_ASSUMES}" in sentence:
            said.append(found)
        elif _UNCOVERED in sentence:
            said.append(f"{found}, and {_UNCOVERED}")
    return said


def leaves_out_beginnings(verdict: str | None, box: Box | None) -> bool:
    """Whether by a verdict first records are so unlike the rest that it matters, and a promise for
    the chains of a set does not cover that; without a set, for the model alone.
    """
    if _NEAR not in (verdict or ""):
        return False
    if box is None:
        return True
    held = box.start == "stationary" and _LIKE_THESE in (verdict or "")
    return not held and box.start != "any"


def begins_otherwise(verdict: str | None) -> bool:
    """Whether a verdict says that first records are unlike the rest, and not by little."""
    sentences = re.split(r"(?<=\.) (?=[A-Z0-9])", verdict or "")
    return any(one.startswith(_BEGINNINGS) and _NOT_MUCH not in one for one in sentences)


def p_value_text(check: Check) -> str:
    """How unlikely what was seen is, for a sentence."""
    return "below 0.000001" if check.p_value < 1e-6 else f"= {short(check.p_value)}"


def short(number: float) -> str:
    """A number with two digits that count."""
    return str(np.format_float_positional(number, precision=2, fractional=False, trim="-"))


# ---- the order


def _on_order(fit: Fit) -> str:
    order, preferred = fit.chain.order, fit.preferred_order
    prefers = "BIC prefers" if fit.phase is None else f"Given the {fit.phase}, BIC prefers"
    prefers = f"{prefers} order {preferred} among orders 0 to {max(fit.bic)}"
    assumes = f"The guarantee assumes that the chain remembers no more than {many(order, 'record')}"
    if preferred == order:
        return f"{prefers}, the one fitted. {assumes}; this speaks for it."
    if preferred < order:
        return f"{prefers}, simpler than the order {order} fitted, which includes it. {assumes}."
    gain = (_likelihood(fit, preferred) - _likelihood(fit, order)) / fit.bic_records / np.log(2)
    return (
        f"{prefers}, not the order {order} fitted: earlier records tell more than"
        f" the model knows ({short(gain)} bits a record). {assumes}, so here it is"
        f" approximate{_advice(fit)}."
    )


def _advice(fit: Fit) -> str:
    """What to fit instead, where there is something better."""
    better = min(fit.preferred_order, largest_order(fit.chain.k))
    if fit.phase is not None or better <= fit.chain.order:
        return ""
    return f"; fit order {better}" + (
        ", closer though not enough" if fit.preferred_order > better else ""
    )


def _on_longer_memory(fit: Fit) -> list[str]:
    """What the next orders' attackers would gain."""
    judged, order = fit.longer_memory, fit.chain.order
    if judged is None:
        return []
    leaks = " and ".join(
        f"{leakage:.2f} ({odds(leakage)} to 1) under order {further}"
        for further, leakage in judged.further.items()
    )
    said = (
        f"A window for ε = {EPSILON:g} by order {order}, made from half of the data, leaks {leaks},"
        " as the other half has them"
    )
    if not judged.by_chance:
        return [f"{said}; how much of that is chance was not computed."]
    chance = " and ".join(
        f"{leakage:.2f} under order {further}" for further, leakage in judged.by_chance.items()
    )
    if judged.is_within_chance:
        return [f"{said}: no more than chance gives where order {order} is right ({chance})."]
    return [f"{said}; where order {order} is right, chance gives up to {chance}."]


def _likelihood(fit: Fit, order: int) -> float:
    return (penalty(fit.chain.k, order, fit.bic_records, fit.kernels) - fit.bic[order]) / 2


# ---- hidden states


def _on_hidden(fit: Fit) -> list[str]:
    hidden = fit.hidden
    if hidden is None:
        return []
    shown = ", ".join(str(hidden.labels[value]) for value in hidden.shows)
    states = f"A chain on {many(len(hidden.shows), 'hidden state')} ({shown})"
    than = f"order {hidden.best_order}, the best of orders 0 to {max(hidden.by_order)}"
    nats = f"by {short(abs(hidden.gain))} nats a record"
    if hidden.is_preferred:
        return [
            f"{states} foretells records held back better than {than}, {nats}: it is the model, and"
            " the promise is for it alone, without a set."
        ]
    return [f"{states} foretells records held back no better than {than} ({nats}): it is not used."]


# ---- one kernel throughout


def _on_phases(fit: Fit) -> list[str]:
    phase, check = fit.phase, fit.stationarity.phases
    if phase is None:
        return []
    said = [] if check is None else [_on_kernels(phase, check)]
    empty = int(np.count_nonzero(fit.counts.sum(axis=(1, 2)) == 0))
    if empty:
        said.append(
            f"{empty} of {len(fit.counts)} phases were never seen; do not use the model there."
        )
    return said


def _on_kernels(phase: str, check: Check) -> str:
    """Whether a kernel for each phase is worth it."""
    if check.passed:
        return f"Kernels do not clearly differ by {phase} ({_size(check)}): one kernel would do."
    differ = f"Kernels differ by {phase} ({_size(check)})"
    if check.statistic > check.degrees * np.log(check.records):
        return f"{differ}."
    return f"{differ}, but by BIC too little for so many kernels: one kernel would do."


def _on_halves(fit: Fit) -> list[str]:
    check = fit.stationarity.halves
    if check is None:
        return []
    between = "between the first and second halves of the chains"
    size = _size(check)
    if check.passed:
        return [f"No clear drift {between} ({size})."]
    consequence = _consequence(check, "change", "records", "it does not")
    return [f"The kernel drifts {between} ({size}); {consequence}"]


# ---- first records


def _on_starts(fit: Fit) -> list[str]:
    check = fit.stationarity.starts
    if check is None:
        return []
    others = "other records of their phase" if fit.phase else "the stationary distribution"
    size = _size(check, "largest difference")
    if check.passed:
        return [f"First records look like {others} ({size})."]
    if fit.beginnings is not None:
        said = _on_beginnings(fit.beginnings, [str(one) for one in fit.chain.labels])
        return [f"{_BEGINNINGS} {others} ({size}); {said}"]
    consequence = _consequence(check, "difference", "chains", "they do not")
    return [f"{_BEGINNINGS} {others} ({size}); {consequence}"]


def _on_untested(fit: Fit) -> list[str]:
    """What these data cannot show, in few words: nothing follows from it."""
    checks = {"drift": fit.stationarity.halves, "first records": fit.stationarity.starts}
    untested = [name for name, check in checks.items() if check is None]
    return [f"Not tested: {', '.join(untested)}."] if untested else []


def _on_beginnings(found: Beginnings, labels: list[str]) -> str:
    """What first records that differ mean for the promise."""
    most = np.argsort(-found.shares, kind="stable")[:_NAMED].tolist()
    shares = ", ".join(f"{labels[value]} in {short(100 * found.shares[value])} %" for value in most)
    told = f"{_NEAR} {short(math.exp(found.excess))} times the odds it promises"
    learned = f"The model has learned how chains begin ({shares})"
    if found.held == "any":
        held = "The set holds chains however they begin"
        return f"{told}. {learned}. {held}, so the promise covers that."
    if found.held is None:
        return f"{told}, and the set does not hold such chains: {_UNCOVERED}. {learned}."
    since = ""
    if found.since > 1:
        since = f" from record {found.since} on, and in a chain with a secret redact lets earlier"
        since += " ones leave or stay with that one"
    return f"{told}. {learned}. {_LIKE_THESE}{since}, so the promise covers that."


def _consequence(check: Check, change: str, things: str, assumed: str) -> str:
    """What a failed test means: with much data everything is significant, so its size counts."""
    if check.change is not None and check.change < _SMALL:
        return f"the {change} is small, and with this many {things} any {change} shows."
    return f"{_ASSUMES} {assumed}."


def _size(check: Check, change: str = "largest change of a probability") -> str:
    """How unlikely, and how much."""
    much = "" if check.change is None else f", {change} {short(check.change)}"
    return f"p {p_value_text(check)}{much}"


# ---- how much was seen


def _on_set(fit: Fit) -> str:
    kind = {"clopper-pearson": "Clopper–Pearson", "mixture": "mixture"}[fit.box.interval or ""]
    confidence = f"{100 * (fit.box.confidence or 0):.12g} %"
    return (
        f"With confidence {confidence} the true one-step probabilities, forward and backward, all"
        f" lie in the set's intervals ({kind})."
    )


def _on_few(fit: Fit) -> list[str]:
    unseen, rare = (int(np.count_nonzero(fit.counts < least)) for least in (1, FEW))
    said = []
    if unseen:
        said.append(
            f"Too few transitions: {unseen:,} of {fit.counts.size:,} {_were(unseen)} never seen"
            f"{_named(fit)}, so nothing says that they are possible at all; merge values or bring"
            " more data."
        )
    if rare:
        said.append(
            f"{rare:,} of {fit.counts.size:,} transitions {_were(rare)} seen fewer than {FEW}"
            " times: data are few there, and their probabilities are known only roughly."
        )
    return said


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _named(fit: Fit) -> str:
    """Which transitions were never seen, where they are few."""
    cells = np.argwhere(fit.counts == 0)
    if fit.phase is not None or len(cells) > _NAMED:
        return ""
    labels = [str(label) for label in fit.chain.labels]
    paths = (" → ".join(labels[value] for value in cell) for cell in cells)
    return f" ({'; '.join(paths)})"
