"""What an attack found: ratios and posteriors, never a value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from offrecord.models.base import Floats
from offrecord.text import aligned, many, odds, plain

if TYPE_CHECKING:
    from offrecord.charts import Chart
    from offrecord.models.evidence import Dependence, Verdict

#: Rounding of a ratio: one above ε by no more than this is not above it.
TOLERANCE = 1e-9
#: Of neighbouring chains, by whether they depend on each other.
_DEPENDS = {
    False: "no dependence beyond what time alone shows",
    True: "chains DEPEND on each other, which no promise covers",
}
#: Whose ratios are promised, and which show what another release would have given away.
PROMISED, INSTEAD = "promised", "instead"


@dataclass(frozen=True, eq=False)
class Attacker:
    """One way to infer. kind: PROMISED or INSTEAD. ratios: (r,) the log-ratio about each run; NaN
    where it was not tried, or where what is shown is held for impossible.
    """

    name: str
    kind: str
    ratios: Floats

    @property
    def found(self) -> Floats:
        """The sizes of the ratios that there are."""
        return np.abs(self.ratios[~np.isnan(self.ratios)])

    @property
    def tried(self) -> int:
        """About how many runs there is a ratio."""
        return len(self.found)

    @property
    def largest(self) -> float:
        """The largest; 0 of none."""
        return float(self.found.max(initial=0.0))

    @property
    def is_limited(self) -> bool:
        """No run is given away."""
        return bool(np.isfinite(self.largest))

    def above(self, epsilon: float) -> float:
        """The share of runs above ε."""
        found = self.found
        return float((found > epsilon + TOLERANCE).mean()) if len(found) else 0.0

    def to_dict(self, epsilon: float) -> dict[str, Any]:
        """For machines."""
        return {
            "attacker": self.name,
            "kind": self.kind,
            "runs": self.tried,
            # infinity is no JSON
            "largest": self.largest if self.is_limited else "infinite",
            "above": self.above(epsilon),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Attack:
    """All attackers of a release.

    runs: how many private runs there are. attackers: the model's own first. prior, posterior:
    (r, k) of the value of each run's first record, by the model. wrong: how many values are
    released that the rules always redact. notes: what else a person should know. counted: patterns
    in the released table. neighbours: what chains say about each other, None where nothing can be
    said.
    """

    dataset: str
    epsilon: float
    runs: int
    attackers: tuple[Attacker, ...]
    prior: Floats
    posterior: Floats
    wrong: int = 0
    notes: tuple[str, ...] = ()
    counted: Verdict | None = None
    neighbours: Dependence | None = None

    @property
    def own(self) -> Attacker:
        """Who takes the model's mean chain for true."""
        return self.attackers[0]

    @property
    def holds(self) -> bool:
        """Nothing that is promised is above ε, and nothing is released that must not be."""
        return self.wrong == 0 and all(one.above(self.epsilon) == 0 for one in self._promised)

    @property
    def _promised(self) -> list[Attacker]:
        return [one for one in self.attackers if one.kind == PROMISED]

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The attackers who find more than ε in the released table."""
        names = [one.name for one in self._promised if one.above(self.epsilon) > 0]
        if self.counted is not None and self.counted.verdict == "broken":
            names.append("counting")
        if self._neighbours_exceed:
            names.append("neighbouring chains")
        return tuple(names)

    @property
    def _neighbours_exceed(self) -> bool:
        beside = self.neighbours
        return beside is not None and beside.exists and beside.counted > math.exp(self.epsilon)

    @property
    def most_moved(self) -> tuple[float, float] | None:
        """Prior and posterior of the value whose odds grew most; None if there is none."""
        grew = self._growth()
        if not grew.size or not np.isfinite(self.posterior).any():
            return None
        at = int(grew.argmax())
        return float(self.prior.flat[at]), float(self.posterior.flat[at])

    def _growth(self) -> Floats:
        """(r, k) by what factor the odds on each value grew."""
        with np.errstate(divide="ignore", invalid="ignore"):
            before, after = (one / (1.0 - one) for one in (self.prior, self.posterior))
            grew = np.where(self.prior > 0, after / before, -np.inf)
        # NaN where a value was certain before and after, and where no run was attacked
        return np.nan_to_num(grew, nan=-np.inf)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        moved, counted, beside = self.most_moved, self.counted, self.neighbours
        return {
            "dataset": self.dataset,
            "epsilon": self.epsilon,
            "tolerance": TOLERANCE,
            "holds": self.holds,
            "exceeded_by": list(self.exceeded),
            "runs": self.runs,
            "attackers": [one.to_dict(self.epsilon) for one in self.attackers],
            "most_moved": None if moved is None else {"prior": moved[0], "posterior": moved[1]},
            "counting": None if counted is None else counted.to_dict(),
            "neighbours": None if beside is None else beside.to_dict(),
            "released_though_always_redacted": self.wrong,
            "notes": list(self.notes),
        }

    def plot(self) -> Chart:
        """The ratios of all runs, a line for each attacker."""
        from offrecord.charts import ratio_chart

        return ratio_chart({one.name: one.ratios for one in self.attackers}, self.epsilon)

    def __str__(self) -> str:
        head, said = map(plain, self._headlines()), map(plain, self._notes())
        table = [aligned(self._table())] if self.attackers else []
        return "\n\n".join(filter(None, ("\n".join(one) for one in (head, table, said))))

    def __repr__(self) -> str:
        within = "within" if self.holds else "NOT within"
        return f"<Attack on {self.dataset!r}: {within} ε = {self.epsilon:g}>"

    def _headlines(self) -> list[str]:
        runs = many(self.runs, "private run")
        if not self.attackers:
            return [
                f"nothing of the chains with private records is in the table of {self.dataset}, so"
                " nothing is inferred by the model"
            ]
        if self.runs and not self.own.tried and self.wrong == 0:
            return [f"the model attacks none of {runs} of {self.dataset}: the notes say why"]
        within = "within" if self.holds else "NOT WITHIN"
        lines = [
            f"{within} ε = {self.epsilon:g}: by the mean chain the release of {self.dataset} moves"
            f" the odds on any of {many(self.own.tried, 'private run')} by a factor of at most"
            f" {odds(self.own.largest)}"
        ]
        return lines if self.most_moved is None else [*lines, _grown(*self.most_moved)]

    def _table(self) -> list[list[str]]:
        heads = ["attacker", "largest log-ratio", "above ε"]
        return [heads, *(self._line(one) for one in self.attackers)]

    def _line(self, one: Attacker) -> list[str]:
        name = f"{one.name} †" if one.kind == INSTEAD else one.name
        if self.runs and not one.tried:
            return [name, "", ""]
        largest = f"{one.largest:.4f}" if one.is_limited else "infinite"
        return [name, largest, f"{one.above(self.epsilon):.2%}"]

    def _notes(self) -> Iterator[str]:
        if any(one.kind == INSTEAD for one in self.attackers):
            yield "† what another release of the same records would have given away"
        if self.wrong:
            yield (
                f"{many(self.wrong, 'value')} released that must be redacted: this is not the"
                " certificate's table"
            )
        if self.counted is not None:
            said = self.counted.words("the released records")
            yield f"counting, {many(self.counted.windows[0], 'record')} and more away: {said}"
        if self.neighbours is not None:
            beside = self.neighbours
            yield f"neighbouring chains: {_DEPENDS[beside.exists]}: {beside.words}"
        yield from self.notes


def _grown(prior: float, posterior: float) -> str:
    return (
        f"where odds grew most, a value of probability {prior:.4g} has {posterior:.4g} after the"
        " release"
    )
