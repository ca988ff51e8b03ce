"""Whether a table follows its model, told from the records that are released as they are.

Only records in region S are looked at: no value of theirs is ever redacted, so what is found here
can be computed from the release, and which records those are does not depend on values. A
likelihood-ratio test says whether transitions differ from the model's beyond chance; with many
records everything does, so a difference counts only if it matters: by the table's own transitions
the designs would tell clearly more than they may, or the model describes the data clearly worse
than their own transitions do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from offrecord.designs.library import Designs
from offrecord.errors import InputError
from offrecord.fitting.beginnings import excess_near_beginning
from offrecord.fitting.chance import chi_square_tail
from offrecord.fitting.checks import MIN_STARTS
from offrecord.fitting.counting import Counts, counted, linked_records
from offrecord.fitting.dispersion import dispersion
from offrecord.fitting.verdict import leaves_out_beginnings
from offrecord.models.base import Floats, Integers, Model
from offrecord.models.chain import MarkovChain
from offrecord.models.hidden import value_kernel
from offrecord.models.learned import Learned
from offrecord.models.records import Chains, Codes
from offrecord.tables.steps import Step
from offrecord.tables.units import Unit
from offrecord.text import odds

SIGNIFICANCE = 1e-6  #: a smaller p-value is more than chance
ODDS = 1.25  #: how much larger than promised the odds may be by the table's own transitions
#: how much more a record may cost under the model than under its own transitions, as a share of its
#: entropy
WASTE = 0.05
SPARSE = 0.1  #: share of neighbouring rows that must be one step apart
#: how many times as far as where the model comes from neighbours may be, or as near, where no step
#: is given
SPACING = 1.5
NEIGHBOURS = 20  #: rows below which their distance says nothing
ENOUGH = 100  #: transitions below which nothing is said
# transitions from each value that the model itself counts for, where the table's own are estimated
_PRIOR = 50
_JUDGED = 10  # designs that are judged by them: the most frequent ones


def check_origin(
    learned: Learned, order_kind: str, step: Step | None, zone: str | None, unit: Unit | None
) -> None:
    """InputError unless a table is read as the data were that its model was learned from."""
    if learned.order != order_kind:
        kinds = {"row": "the order of rows", "integer": "whole numbers", "time": "times"}
        here, there = kinds[order_kind], kinds.get(learned.order, learned.order)
        raise InputError(
            f"the model was learned from records ordered by {there}, not by {here}: it is not the"
            " model of these"
        )
    counted = None if unit is None else unit.text
    if learned.unit != counted:
        fitted, asked = (
            f"--order-unit {one}" if one else "no --order-unit" for one in (learned.unit, counted)
        )
        raise InputError(
            f"the model was learned with {fitted}, but is used with {asked}: it is not the model of"
            " these"
        )
    known = None if learned.step is None else Step.parsed(learned.step)
    same = known is step if known is None or step is None else known.same(step, zone)
    if not same:
        fitted, asked = (f"--step {one.text}" if one else "no --step" for one in (known, step))
        remedy = f"give {fitted}" if known else f"fit it with {asked}"
        raise InputError(
            f"the model was learned with {fitted}, but is used with {asked}: it says how records"
            f" change from one such step to the next; {remedy}, or fit a model for this step"
        )


def begun(model: Model, firsts: Counts) -> str | None:
    """What speaks against a model of how chains begin, where first records of the table are clearly
    unlike what it says and that matters; only of one kernel on values, of order 1.

    firsts: (k,) their values, as far as they are never redacted.
    """
    if not isinstance(model, MarkovChain) or model.has_states or not model.is_homogeneous:
        return None
    total = int(firsts.sum())
    if total < MIN_STARTS or (model.box is not None and model.box.start == "any"):
        return None
    verdict = None if model.learned is None else model.learned.verdict
    if model.box is not None and leaves_out_beginnings(verdict, model.box):
        model = model.settled  # its own beginnings are not in its set
    statistic, degrees = _likelihood_ratio(
        model.start, firsts, np.full((*firsts.shape[:-1], 1), total), firsts / total
    )
    if chi_square_tail(degrees, statistic) >= SIGNIFICANCE:
        return None
    # where the table shows little, it is taken to be like the model
    start = (firsts + model.start) / (total + 1)
    excess = excess_near_beginning(model, start)
    if excess is None or excess <= math.log(ODDS) or _holds_beginning(model, start):
        return None
    return (
        "chains begin otherwise than the model says (p < 10⁻⁶): near their beginnings secrets may"
        f" be told {math.exp(excess):.2g} times the odds promised; {_remedy(model)}"
    )


def _remedy(model: MarkovChain) -> str:
    """What helps against chains that begin otherwise than a model says."""
    fitted = "fit the model to chains that begin like these"
    if model.box is None:
        fitted = "take the set of a model that is fitted to chains that begin like these"
    if model.k == 2:
        return f"{fitted}, or take --start any"
    verdict = None if model.learned is None else model.learned.verdict
    if model.box is not None and leaves_out_beginnings(verdict, model.box):
        return (
            "the model was fitted to such chains, and its set does not hold them, as data are too"
            " few: bring more, or take --exact-model, which has a start of its own"
        )
    return f"{fitted}, or give one with a start of its own (in Python, MarkovChain(P, start=…))"


def _holds_beginning(model: MarkovChain, start: Floats) -> bool:
    """Whether the set of models holds steps back to such first records, where a step back tells
    most of them.
    """
    if model.box is None:
        return False
    there = start @ np.linalg.matrix_power(model.transition, model.box.since - 1)
    joint = there[:, np.newaxis] * model.transition
    low, high = model.box.backward
    back = (joint / joint.sum(axis=0)).T
    return bool(np.all(low <= back) and np.all(back <= high))


def sparse(pairs: int, linked: int) -> str | None:
    """What speaks against a step at which hardly any record has a neighbour."""
    if pairs < NEIGHBOURS or linked >= SPARSE * pairs:
        return None
    return (
        f"only {linked:,} of {pairs:,} neighbouring rows are one --step apart: records come at"
        " another step than that"
    )


def spaced(learned: Learned, spacing: float | None) -> str | None:
    """What speaks against a model whose records came at another distance, without a step."""
    if not learned.spacing or not spacing:
        return None
    if max(learned.spacing / spacing, spacing / learned.spacing) <= SPACING:
        return None
    unit = " seconds" if learned.order == "time" else ""
    here, there = f"{spacing:g}{unit}", f"{learned.spacing:g}{unit}"
    return (
        f"neighbours are {here} apart (the median), but {there} in the data that the model was"
        " learned from"
    )


def first_counts(model: Model, chains: Chains, rows: slice, codes: Codes) -> Counts:
    """(k,) the values of the first records of some whole chains; codes: as in `model_counts`."""
    first, last = np.searchsorted(chains.starts, (rows.start, rows.stop))
    found = codes[chains.starts[first:last] - rows.start]
    return np.bincount(found[found >= 0], minlength=model.k)


def model_counts(
    model: Model, chains: Chains, rows: slice, codes: Codes, phases: Codes | None
) -> Counts:
    """Transitions of some whole chains, counted in the shape of `counted_shape`.

    codes: those of the rows, negative where a record is not looked at. phases: of all records.
    """
    first = int(np.searchsorted(chains.starts, rows.start))
    last = int(np.searchsorted(chains.starts, rows.stop))
    steps = None if chains.steps is None else chains.steps[rows]
    linked = linked_records(codes, chains.starts[first : last + 1] - rows.start, steps)
    shape = counted_shape(model)
    kernels = math.prod(shape[: -model.order - 1])
    context = None
    if kernels > 1:  # with one kernel, places need not even be counted
        context = model.contexts(chains.places[rows], None if phases is None else phases[rows])
    return counted(codes, linked, model.k, model.order, context, kernels).reshape(shape)


def counted_shape(model: Model) -> tuple[int, ...]:
    """That of the model's `transition`; (k, k), of values, where its states are hidden."""
    return model.transition.shape if model.shows is None else (model.k, model.k)


def check_lengths(model: Model, chains: Chains) -> None:
    """InputError if the model has a kernel for each step, and chains have another length."""
    length = model.length
    if length is None:
        return
    wrong = int((chains.places[chains.starts[1:] - 1] + 1 != length).sum())
    if wrong:
        raise InputError(
            f"the model has a kernel for each of {length - 1} steps, but {wrong} chains have"
            " another length"
        )


@dataclass(frozen=True)
class Comparison:
    """What a table's released transitions say about its model.

    transitions: how many were looked at. impossible: those the model gives probability 0. waste:
    what a record costs more under the model than under the table's own transitions, as a share of
    its entropy. leakage: the largest of a design, by the table's own transitions; None where that
    is not computed: nothing differs beyond chance, or the model is not stationary or has hidden
    states. statistic: for hidden states, divided by how much more their transitions vary.
    """

    transitions: int
    impossible: int
    statistic: float
    degrees: int
    p_value: float
    waste: float
    leakage: float | None

    @property
    def differs(self) -> bool:
        """Beyond chance."""
        return self.impossible > 0 or (self.transitions >= ENOUGH and self.p_value < SIGNIFICANCE)

    def objection(self, epsilon: float) -> str | None:
        """What speaks against the model, if that is clear."""
        if self.impossible:
            return f"{self.impossible} transitions among them are impossible under it"
        if not self.differs:
            return None
        if self.leakage is not None and self.leakage > epsilon + math.log(ODDS):
            return (
                f"by the table's own transitions the odds would reach {odds(self.leakage)} to 1"
                f" instead of {odds(epsilon)} (p {self.told_p})"
            )
        if self.waste > WASTE:
            return (
                f"it describes a record {self.waste:.0%} worse than the table's own transitions do"
                f" (p {self.told_p})"
            )
        return None

    def warning(self) -> str | None:
        """What a person should know although it is no objection."""
        if self.transitions < ENOUGH:
            return (
                f"only {self.transitions} transitions are released as they are, too few to tell"
                " whether the table follows the model; that it does is taken on trust"
            )
        if not self.differs:
            return None
        said = f"the table differs from the model beyond chance (p {self.told_p}), but not by much"
        if self.leakage is None:
            return said
        return f"{said}: by its own transitions the odds would reach {odds(self.leakage)} to 1"

    @property
    def told_p(self) -> str:
        """The p-value, for people."""
        return f"below {SIGNIFICANCE:g}" if self.p_value < SIGNIFICANCE else f"= {self.p_value:.2g}"

    def to_dict(self) -> dict[str, Any]:
        """For certificates: four digits."""
        short = {
            name: float(f"{value:.4g}") if isinstance(value, float) else value
            for name, value in vars(self).items()
        }
        return short | {"significance": SIGNIFICANCE}


def compared(designs: Designs, uses: Integers, counts: Counts) -> Comparison | None:
    """The model of some designs against counted transitions; uses: secrets that each serves.

    None for hidden states that do not begin as they go on: no one kernel says what to expect.
    """
    model, total = designs.model, int(counts.sum())
    if model.shows is not None and not model.is_stationary:
        return None
    kernels, spread = _expected(model)
    impossible = int(counts[kernels == 0].sum())
    visits = counts.sum(axis=-1, keepdims=True)
    own = counts / np.maximum(visits, 1)
    statistic, degrees = _likelihood_ratio(kernels, counts, visits, own)
    statistic /= spread
    p_value = chi_square_tail(degrees, statistic)
    leakage = None
    differs = total >= ENOUGH and p_value < SIGNIFICANCE and not impossible
    if differs and model.is_stationary and model.shows is None:
        leakage = _leakage(designs, uses, _estimated(model, counts, visits))
    waste = spread * _waste(statistic, degrees, counts, own)
    return Comparison(total, impossible, statistic, degrees, p_value, waste, leakage)


def _expected(model: Model) -> tuple[Floats, float]:
    """The kernels that transitions are compared with, and by how much more than chance they vary.

    Values that hidden states show are no chain: what one tells of the next is compared all the
    same, but transitions of one regime hang together.
    """
    if model.shows is None:
        return model.transition, 1.0
    chain = model.along()
    lifted = chain.lifted
    kernel = value_kernel(lifted.transition, lifted.start, model.shows, model.k)
    return kernel, dispersion(chain)


def _likelihood_ratio(
    kernels: Floats, counts: Counts, visits: Counts, own: Floats
) -> tuple[float, int]:
    """Twice the log-ratio of likelihoods, own shares over kernels, and its degrees of freedom.

    What the kernels call impossible is left out: no statistic is needed to tell.
    """
    seen = (counts > 0) & (kernels > 0)
    log_ratios = np.log(np.divide(own, kernels, out=np.ones_like(own), where=seen))
    free = np.maximum(np.count_nonzero(kernels, axis=-1) - 1, 0)  # each row sums to 1
    statistic = max(2 * float((counts * log_ratios).sum()), 0.0)
    return statistic, int(((visits[..., 0] > 0) * free).sum())


def _waste(statistic: float, degrees: int, counts: Counts, own: Floats) -> float:
    """What records cost more under the model, beyond what chance explains, by their entropy."""
    entropy = -float((counts * np.log(own, out=np.zeros_like(own), where=counts > 0)).sum())
    if entropy == 0:  # own transitions are certain: any cost is infinitely more
        return 0.0 if statistic <= degrees else math.inf
    return max(statistic - degrees, 0.0) / 2 / entropy


def _estimated(model: Model, counts: Counts, visits: Counts) -> MarkovChain:
    """The table's own chain; where it shows little, it is taken to be like the model."""
    shares: Floats = (counts + _PRIOR * model.transition) / (visits + _PRIOR)
    return MarkovChain(shares / shares.sum(axis=-1, keepdims=True), None, model.labels, model.order)


def _leakage(designs: Designs, uses: Integers, chain: MarkovChain) -> float:
    """The largest of the most frequent designs, were this the chain."""
    _, epsilon, _, protect = designs.setting
    worst = 0.0
    for at in np.argsort(-uses, kind="stable")[:_JUDGED].tolist():
        design = designs.designs[at]
        problem = design.surrounding.problem(chain, epsilon, protect)
        worst = max(worst, design.leakage_under(problem))
    return worst
