"""BestLocal: the best local mechanism there is, or that is found, and a bound on every other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from offrecord.mechanisms.base import Mechanism
from offrecord.mechanisms.best_local.under_set import candidates, descended, is_large_set
from offrecord.mechanisms.local.design import LocalDesign
from offrecord.mechanisms.local.policy import LocalPolicy
from offrecord.mechanisms.local.referee import refereed
from offrecord.mechanisms.local.secrets import composed, cut, per_secret
from offrecord.mechanisms.local.stretches import Sides, Stretches
from offrecord.mechanisms.surroundings import Nearness, Surrounding
from offrecord.mechanisms.three_region import QUICK_TUNINGS, TUNINGS, ThreeRegion
from offrecord.mechanisms.window import BestWindow, window_of
from offrecord.mechanisms.workshop import Workshop
from offrecord.models.base import Model
from offrecord.models.box import TOO_FEW
from offrecord.theory.influence import is_forced
from offrecord.theory.leakage import is_judged_by_outputs
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.redaction import Redaction
from offrecord.theory.side import Side

if TYPE_CHECKING:
    from offrecord.mechanisms.best_local.binary_optimum import Optimum
    from offrecord.mechanisms.best_local.sequential_lp import Span

_TOLERANCE = 1e-6  # of n: utility not worth another linear programme
#: The same in a set of models, of what the window redacts, and by how many records on either side
#: windows are wider that designs begin with.
_TOLERANCE_OVER_SET, _WIDER = 1e-4, (0, 1, 3)
_MOST_KERNELS = 4_000_000  # four times the numbers of the worst ones in a set, about
_BLOCK = 1000  # entries that are improved together
_MOST = 20_000  # entries of a stretch of redactions that is improved at all
_TRIES = 600  # closings tried, divided by the entries of a block
_FEW_STATES = 32  # tuples of a chain of order above 1 for which walks take seconds, not minutes
_FEW_VALUES = 6  # of a set of models whose influences are known fast enough
_MANY = 64  # secrets of which each is bounded by its own optimum
#: What binary_optimum.py takes: the budget at most, 1 − α − β and the rarer transition at least
#: (docs/proofs/rounding.md, "Bounds on every mechanism").
_LARGEST_BUDGET, _LEAST_GAP, _LEAST_STEP = 300, 1e-7, 1e-15
_TOLERANCE_NEAR = 1e-4  # the same for clusters of a table, of which there may be many
_NEAR_SECRETS = 16  # of a table that are designed together
_TOGETHER = 1600  # entries of the matrix of a cluster
_LEAST_SPAN, _LONGEST_SPAN = 16, 120  # records of a cluster: what room must leave, and the most
_ROOM_RATIO = 1.5  # by which rooms grow that those of clusters are rounded up to
#: The relaxed q of a share is private, and constant finds the smallest one that is.
_BETTER_TUNINGS = tuple(tuning for tuning in TUNINGS if tuning != "relaxed")
_WORTHWHILE = 0.01  # expected records, below which near secrets are designed each by itself
_BOUND_SLACK = 1e-12  # what rounding may have taken from a bound on the utility


@dataclass(frozen=True)
class BestLocal(Mechanism):
    """Release as much as any local mechanism can.

    One secret in the paper's chain with α + β < 1: the optimum, with a bound that no local
    mechanism exceeds, 10⁻⁶ or so above it (binary_optimum.py). Every other problem, and chains so
    slow that thousands of records up to their end matter: the best of the other mechanisms,
    improved by linear programmes (sequential_lp.py), so never worse than they are; in a set of
    models that has no worst one, windows, improved under its worst kernels (set_span.py). The bound
    is then what F4 forces, or for several secrets the least of what each alone allows. The policy
    carries it as utility_bound. Takes every chain.

    effort: how much work the linear programmes may take, as a multiple of the default; below 1,
    designs for single models are not tried on a set.
    """

    name: ClassVar[str] = "best-local"
    designs: ClassVar[type[LocalDesign]] = LocalDesign
    keeps_to_windows: ClassVar[bool] = True
    effort: float = 1.0

    def design(self, problem: Problem) -> LocalPolicy:
        """Cost grows with the window, not with n."""
        optimum, least = _solved_design(problem, self.name) if solved(problem) else (None, None)
        if problem.models is not None and optimum is not None and optimum.utility == 0:
            optimum = None  # its corner is not the worst of its models
        if optimum is not None and least is not None and len(problem.secrets) == 1:
            bound = max(1.0 - least / problem.n, optimum.utility)
            return _noted(replace(optimum, utility_bound=bound))
        starts = [] if optimum is None else [optimum]
        window = BestWindow().design(problem)
        if is_judged_by_outputs(problem):
            return _noted(self._of_order(problem, window))
        quick = is_large_set(problem)
        if not quick and self._goes_by_worst_kernels(problem, window):
            return _noted(self._over_set(problem, window))
        tunings = _BETTER_TUNINGS
        if quick:
            tunings = QUICK_TUNINGS if problem.chain.lifted.k <= _FEW_VALUES else ()
        starts += [window, *(ThreeRegion(tuning).design(problem) for tuning in tunings)]
        start = max(starts, key=lambda policy: policy.utility)
        if quick:  # judging one design takes so long that hundreds cannot be tried
            return _noted(replace(start, mechanism=self.name, utility_bound=utility_bound(problem)))
        best = self._improved(problem, start)
        if problem.models is None or self.effort < 1:  # what follows gains half a per cent
            return _noted(best)
        return _noted(self._under_set(problem, best))

    def at_once(self, problem: Problem) -> LocalPolicy | None:
        """Of two values for which there is no optimum, as where they take turns (α + β > 1): what
        linear programmes would improve.
        """
        alone = problem.models is None and len(problem.secrets) == 1
        if not alone or not problem.chain.is_paper_setting or solved(problem):
            return None
        starts = BestWindow().design(problem), ThreeRegion("constant").design(problem)
        start = max(starts, key=lambda policy: policy.utility)
        bound = utility_bound(problem)
        if bound is not None and start.utility >= bound - _TOLERANCE:
            return None
        return replace(start, mechanism=self.name, utility_bound=bound)

    def _goes_by_worst_kernels(self, problem: Problem, window: LocalPolicy) -> bool:
        """Linear programmes can go by the worst kernels of a set for each output, and these are not
        too many: one for each step to each of them.
        """
        from offrecord.mechanisms.best_local.set_span import is_over_set

        if self.effort < 1 or problem.models is None or not is_over_set(problem):
            return False
        stretches, k = window.sparse, problem.chain.k
        longest = int((stretches.stops - stretches.starts).max(initial=0)) + 2 * max(_WIDER)
        return longest**2 * k**4 * (k - 1) <= _MOST_KERNELS

    def _over_set(self, problem: Problem, window: LocalPolicy) -> LocalPolicy:
        """The window and wider ones, improved by linear programmes, and the best of them anew, with
        values closed that bound others. What is begun with decides which values are opened at all.
        """
        from offrecord.mechanisms.best_local.set_span import SetSpan

        tolerance = _TOLERANCE_OVER_SET * (1.0 - window.utility)

        def improved(reduced: Problem) -> Redaction:
            begun = [
                _improved(
                    reduced,
                    _widened(window.sparse, by),
                    self.effort,
                    tolerance=tolerance,
                    most_tries=0,
                    kind=SetSpan,
                )
                for by in _WIDER
            ]
            best = max(begun, key=lambda redaction: redaction.released(problem.chain))
            return _improved(reduced, best, self.effort, tolerance=tolerance, kind=SetSpan)

        found = LocalPolicy.of(problem, refereed(problem, improved, _itself), self.name)
        best = found if found.utility > window.utility else replace(window, mechanism=self.name)
        return replace(best, utility_bound=utility_bound(problem))

    def _under_set(self, problem: Problem, best: LocalPolicy) -> LocalPolicy:
        """The best of what was found and of designs for single models, lowered as far as the
        problem's models allow.
        """
        starts = [best, *candidates(problem, self)]
        found = refereed(
            problem,
            lambda reduced: max(
                (descended(reduced, start.sparse) for start in starts),
                key=lambda redaction: redaction.released(problem.chain),
            ),
            _itself,
        )
        lowered = LocalPolicy.of(problem, found, self.name)
        best = lowered if lowered.utility > best.utility else best
        return replace(best, utility_bound=utility_bound(problem))

    def _of_order(self, problem: Problem, window: LocalPolicy) -> LocalPolicy:
        """The better of the shortest window (R6), and F8's designs improved, if states are few."""
        found = replace(window, mechanism=self.name)
        if problem.chain.lifted.k > _FEW_STATES:
            return found
        starts = [BestWindow().walked(problem)]
        starts += [ThreeRegion(tuning).design(problem) for tuning in TUNINGS]
        start = max(starts, key=lambda policy: policy.utility)
        return max(found, self._improved(problem, start), key=lambda policy: policy.utility)

    def _improved(self, problem: Problem, start: LocalPolicy) -> LocalPolicy:
        """A policy improved by linear programmes, unless its bound says that it cannot be."""
        best, bound = replace(start, mechanism=self.name), utility_bound(problem)
        if bound is None or best.utility < bound - _TOLERANCE:
            found = refereed(
                problem, lambda reduced: _improved(reduced, start.sparse, self.effort), _itself
            )
            improved = LocalPolicy.of(problem, found, self.name)
            best = improved if improved.utility >= best.utility else best
        return replace(best, utility_bound=bound)

    def around(self, problem: Problem, surrounding: Surrounding) -> LocalDesign:
        """The design around the one secret of a problem."""
        policy = self.design(problem)
        sides, window = cut(problem, policy.sparse), window_of(problem)
        return LocalDesign.made(problem, surrounding, sides, policy.worst, window)

    def nearness(self, model: Model, epsilon: float, protect: str, room: int) -> Nearness | None:
        """Secrets whose windows meet: there designs for each would redact the same records twice.

        For stationary chains of order 1 that stand alone, or in a set with a worst one, and are not
        too slow or of too many values for linear programmes of seconds.
        """
        span = _TOGETHER // model.k - 2 * room
        if not model.is_stationary or span < _LEAST_SPAN or epsilon <= 0:
            return None
        problem = Surrounding(room, room, 1).problem(model, epsilon, protect)
        if problem.chain.has_states or problem.corner is None:
            return None
        secrets = _TOGETHER // ((2 * room + _LEAST_SPAN) * model.k)
        nodes = [0]
        while nodes[-1] < room:
            nodes.append(min(max(nodes[-1] + 1, int(nodes[-1] * _ROOM_RATIO)), room))
        most = min(max(secrets, 2), _NEAR_SECRETS), min(span, _LONGEST_SPAN)
        return Nearness(sum(window_of(problem)), *most, tuple(nodes))

    def together(self, problem: Problem, surrounding: Surrounding) -> LocalDesign | None:
        """The best start that designs for each secret come to, improved as a whole; None where
        that gains next to nothing.
        """
        starts = [BestWindow().design(problem)]
        if solved(problem):
            starts.append(_solved_design(problem, self.name)[0])
        else:
            starts += [ThreeRegion(tuning).design(problem) for tuning in TUNINGS]
        start = max(starts, key=lambda policy: policy.utility)
        found = refereed(
            problem,
            lambda reduced: _improved(
                reduced, start.sparse, self.effort, tolerance=_TOLERANCE_NEAR, most_tries=0
            ),
            _itself,
        )
        if found is None:
            return None
        gained = found.redaction.released(problem.chain) - start.sparse.released(problem.chain)
        if gained < _WORTHWHILE:
            return None
        sides, window = cut(problem, found.redaction), window_of(problem)
        inside = Stretches.of(found.redaction.matrix(problem.private[0] - 1, problem.private[-1]))
        return LocalDesign.made(problem, surrounding, sides, found.worst, window, inside)

    def workshop(self, model: Model, epsilon: float, protect: str, room: int) -> Workshop:
        """One that designs sides apart where they are too large to be improved together, or else
        as few designs as rooms need.
        """
        from offrecord.mechanisms.best_local.sides_apart import SidesApart, is_too_large

        problem = Surrounding(room, room, 1).problem(model, epsilon, protect)
        if solved(problem):
            return Workshop(self, model, epsilon, protect)
        if is_too_large(room, model.k):
            return SidesApart(self, model.along(), epsilon, protect, room)
        from offrecord.mechanisms.best_local.few_designs import FewDesigns

        return FewDesigns(self, model, epsilon, protect, room)


def _itself(redaction: Redaction) -> Redaction:
    return redaction


def _solved_design(problem: Problem, name: str) -> tuple[LocalPolicy, float | None]:
    """The optimum around each secret, and the least redactions of any mechanism around the last.

    None where no optimum could be tabulated; that secret's sides are then redacted whole.
    """
    least: list[float] = []

    def around(reduced: Problem, secret: Secret, left: Side, right: Side) -> Sides:
        optimum = _optimum(reduced, problem.epsilon, secret, left, right)
        if optimum is None:
            return Stretches.always(2, left.room), Stretches.always(2, right.room)
        least[:] = [optimum.least + secret.last - secret.first + 1]
        return optimum.left, optimum.right

    found = refereed(
        problem,
        lambda reduced: per_secret(reduced, around),
        lambda sides: composed(problem, sides),
    )
    return LocalPolicy.of(problem, found, name), least[0] if least else None


def solved(problem: Problem) -> bool:
    """The case that is solved: the paper's chain, α + β < 1, a budget, nothing extreme."""
    chain = problem.corner
    if not 0 < problem.epsilon <= _LARGEST_BUDGET or not (chain and chain.is_paper_setting):
        return False
    rarest = min(chain.alpha, chain.beta)
    return chain.alpha + chain.beta < 1 - _LEAST_GAP and rarest > _LEAST_STEP


def _optimum(
    problem: Problem, ceiling: float, secret: Secret, left: Side, right: Side
) -> Optimum | None:
    from offrecord.mechanisms.best_local.binary_optimum import best_around

    chain = problem.corner
    if problem.epsilon <= 0 or chain is None:
        return None
    weights = problem.chain.marginal(1).tolist()
    return best_around(
        chain.alpha,
        chain.beta,
        problem.epsilon,
        max(ceiling, problem.epsilon),
        (left.room, right.room),
        together=secret.last > secret.first,
        n=problem.n,
        weights=None if problem.models is None else (weights[0], weights[1]),
    )


def utility_bound(problem: Problem) -> float | None:
    """A utility that no local mechanism exceeds; None where leakage is only bounded (F8).

    The least over the secrets of what each alone allows. Where the optimum around one secret is
    known, that; else F4 (the paper's Lemma 1): no value whose influence on a secret exceeds ε is
    released.
    """
    if problem.chain.has_states:
        return None  # F4 speaks of records, the leakage bound of tuples or hidden states
    bound = 1.0 - _forced(problem) / problem.n
    if len(problem.secrets) <= _MANY and solved(problem):
        for secret in problem.secrets:
            left, right = problem.sides(secret)
            optimum = _optimum(problem, problem.epsilon, secret, left, right)
            if optimum is not None:
                bound = min(
                    bound, 1.0 - (optimum.least + secret.last - secret.first + 1) / problem.n
                )
    return min(max(bound, 0.0) + _BOUND_SLACK, 1.0)


def _forced(problem: Problem) -> float:
    """Expected number of records that F4 forces every mechanism to redact.

    In a set of models, by the chain itself, which is one of them: influences over the set may be
    upper bounds.
    """
    chain = problem.chain.alone
    problem = Problem(chain, problem.n, problem.private, problem.epsilon, problem.protect)
    forced = Redaction.maximum([_forced_around(problem, secret) for secret in problem.secrets])
    return problem.n - forced.released(problem.chain)


def _forced_around(problem: Problem, secret: Secret) -> Redaction:
    """1 where a value's influence on a secret exceeds ε, and on the secret itself."""
    positions = [np.arange(secret.first - 1, secret.last)]
    rows = [np.ones((secret.last - secret.first + 1, problem.chain.k))]
    for side in problem.sides(secret):
        near = (side.delta_star(problem.epsilon) or side.horizon + 1) - 1  # then comes region S
        if near:
            rows.append(is_forced(side.influence(near), problem.epsilon).astype(float))
            positions.append(side.edge - 1 + side.direction * np.arange(1, near + 1))
    order = np.argsort(np.concatenate(positions))
    starts = np.concatenate(positions)[order]
    return Redaction(problem.n, starts, starts + 1, np.concatenate(rows)[order]).compressed()


def _improved(
    problem: Problem,
    start: Redaction,
    effort: float,
    *,
    tolerance: float = _TOLERANCE,
    most_tries: int | None = None,
    kind: type[Span] | None = None,
) -> Redaction:
    """The start, improved block by block wherever it redacts, and a little further out.

    tolerance: of n, as _TOLERANCE. most_tries: closings that are tried of each block, None for as
    many as its size allows. kind: as of `improve`.
    """
    from offrecord.mechanisms.best_local.sequential_lp import improve

    k = problem.chain.k
    size = max(_BLOCK // k, 8)
    parts = []
    for first, last in _clusters(problem, start):
        if (last - first) * k > _MOST:  # too long to improve: as it was
            parts.append(start.part(first, last))
            continue
        # Between stretches everything is released, so each has only its own secrets to keep.
        within = [p for p in problem.private if first < p <= last]
        local = Problem(problem.chain, problem.n, within, problem.epsilon, problem.protect)
        matrix = start.matrix(first, last)
        for begin in range(0, last - first, size // 2) if last - first > size else (0,):
            movable = np.zeros(matrix.shape, dtype=bool)
            movable[begin : begin + size] = True
            tries = max(_TRIES // (min(size, last - first) * k), 3) // len(local.secrets)
            tries = tries if most_tries is None else min(tries, most_tries)
            least = tolerance * problem.n
            matrix = improve(local, matrix, first, movable, least, tries, effort, kind)
        positions = np.arange(first, last)
        parts.append(Redaction(problem.n, positions, positions + 1, matrix))
    return Redaction.maximum(parts) if parts else start


def _widened(start: Redaction, by: int) -> Redaction:
    """Stretches that are always redacted, each longer by so many records at both ends."""
    first = np.maximum(start.starts - by, 0)
    last = np.minimum(start.stops + by, start.n)
    apart = np.flatnonzero(np.append(True, first[1:] > last[:-1]))
    ends = np.append(apart[1:] - 1, len(last) - 1)
    rows = np.ones((len(apart), start.rows.shape[1]))
    return Redaction(start.n, first[apart], last[ends], rows)


def _clusters(problem: Problem, start: Redaction) -> list[tuple[int, int]]:
    """Spans of positions apart, each a stretch of what the start redacts and some records more."""
    clusters: list[list[int]] = []
    for begin, end in zip(start.starts.tolist(), start.stops.tolist(), strict=True):
        if clusters and begin - clusters[-1][1] <= 0:
            clusters[-1][1] = end
        else:
            clusters.append([begin, end])
    wider: list[list[int]] = []
    for begin, end in clusters:
        extra = max(3, (end - begin) // 4)
        low, high = max(begin - extra, 0), min(end + extra, problem.n)
        if wider and low <= wider[-1][1]:
            wider[-1][1] = high
        else:
            wider.append([low, high])
    return [(low, high) for low, high in wider]


def _noted(policy: LocalPolicy) -> LocalPolicy:
    if policy.utility > 0:
        return policy
    note = "nothing can be released within this budget"
    models = policy.problem.models
    if models is not None and models.has_unseen:
        note = f"nothing can be released: {TOO_FEW}"
    return replace(policy, details={**policy.details, "note": note})
