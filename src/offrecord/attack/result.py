"""What an attack found: ratios and posteriors, never a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from offrecord.models.base import Floats
from offrecord.text import aligned, html_list, html_note, html_table, many

#: A ratio is above ε if it is so by more than floating point may be off.
TOLERANCE = 1e-9
#: Whose ratios are promised, whose are not, and which need the original table.
PROMISED, BEYOND, ORIGINAL = "promised", "beyond", "original"


@dataclass(frozen=True, eq=False)
class Attacker:
    """One way to infer. ratios: (s,) the log-ratio about each secret, NaN where it was not
    attacked, or the attacker holds what is shown for impossible.
    """

    name: str
    kind: str
    ratios: Floats

    @property
    def found(self) -> Floats:
        """The sizes of the ratios that there are."""
        return np.abs(self.ratios[~np.isnan(self.ratios)])

    @property
    def largest(self) -> float:
        """The largest; 0 of none."""
        return float(self.found.max(initial=0.0))

    @property
    def median(self) -> float:
        """The median; 0 of none."""
        found = self.found
        if len(found) == 0:
            return 0.0
        middle = np.sort(found)[(len(found) - 1) // 2 : len(found) // 2 + 1]
        return float(middle[0] if middle[0] == middle[-1] else middle.mean())

    def above(self, epsilon: float) -> float:
        """The share of secrets above ε."""
        found = self.found
        return float((found > epsilon + TOLERANCE).mean()) if len(found) else 0.0

    def to_dict(self, epsilon: float) -> dict[str, Any]:
        """For machines."""
        return {
            "attacker": self.name,
            "kind": self.kind,
            "secrets": len(self.found),
            "largest": _number(self.largest),
            "median": _number(self.median),
            "above": self.above(epsilon),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Attack:
    """prior, posterior: (s, k) of the value of each secret's first record, by the certificate's
    model. wrong: how many values are released that the certificate always redacts. unattacked: how
    many secrets were left, and why. notes: what else a person should know.
    """

    dataset: str
    epsilon: float
    secrets: int
    attackers: tuple[Attacker, ...]
    prior: Floats
    posterior: Floats
    wrong: int
    unattacked: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]

    @property
    def own(self) -> Attacker:
        """Who takes the certificate's model for true."""
        return self.attackers[0]

    @property
    def holds(self) -> bool:
        """No ratio that is promised is above ε, and nothing is released that must not be."""
        promised = [one for one in self.attackers if one.kind == PROMISED]
        return self.wrong == 0 and all(one.above(self.epsilon) == 0 for one in promised)

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The attackers who have a ratio above ε in the released table."""
        some = (one for one in self.attackers if one.kind != ORIGINAL)
        return tuple(one.name for one in some if one.above(self.epsilon) > 0)

    @property
    def most_moved(self) -> tuple[float, float] | None:
        """The prior and the posterior of the value whose odds grew most; None of none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = [one / (1.0 - one) for one in (self.prior, self.posterior)]
            grew = np.where(self.prior > 0, odds[1] / odds[0], -np.inf)
        grew = np.nan_to_num(grew, nan=-np.inf)
        if not grew.size or not np.isfinite(self.posterior).any():
            return None
        at = np.unravel_index(int(grew.argmax()), grew.shape)
        return float(self.prior[at]), float(self.posterior[at])

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        moved = self.most_moved
        return {
            "dataset": self.dataset,
            "epsilon": self.epsilon,
            "tolerance": TOLERANCE,
            "holds": self.holds,
            "exceeded_by": list(self.exceeded),
            "secrets": self.secrets,
            "attackers": [one.to_dict(self.epsilon) for one in self.attackers],
            "most_moved": None if moved is None else {"prior": moved[0], "posterior": moved[1]},
            "released_though_always_redacted": self.wrong,
            "not_attacked": [{"why": why, "secrets": count} for why, count in self.unattacked],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        said = self._said()
        return "\n".join(
            [*self._told(), "", aligned(self._table()), *([""] if said else []), *said]
        )

    def __repr__(self) -> str:
        within = "within" if self.holds else "NOT within"
        return f"<Attack on {self.dataset!r}: {within} ε = {self.epsilon:g}>"

    def _repr_html_(self) -> str:
        """For notebooks, with the ratios of all secrets as a picture."""
        from offrecord.attack.picture import ratio_chart
        from offrecord.charts import image_tag

        picture = ""
        if len(self.own.found) > 1:
            drawn = "the log-ratio of every secret, sorted, a line for each attacker, and the band"
            picture = image_tag(ratio_chart(self), f"{drawn} from −ε to ε")
        notes = html_list("Notes", self._said())
        return html_note(*self._told()) + html_table(self._table()) + picture + notes

    def _told(self) -> list[str]:
        within = "within" if self.holds else "NOT WITHIN"
        lines = [
            f"{within} ε = {self.epsilon:g}: the release of {self.dataset} tells at most"
            f" {self.own.largest:.6g} about any of {many(len(self.own.found), 'secret')}, by the"
            " certificate's model"
        ]
        if self.most_moved is not None:
            prior, posterior = self.most_moved
            lines.append(
                f"where odds grew most, a value of probability {prior:.4g} has {posterior:.4g}"
                " after the release"
            )
        return lines

    def _table(self) -> list[list[str]]:
        rows = [["attacker", "largest", "median", "above ε"]]
        for one in self.attackers:
            share = one.above(self.epsilon)
            cells = [_text(one.largest), _text(one.median), f"{share:.2%}"]
            rows.append([f"{one.name}{_MARKS[one.kind]}", *cells])
        return rows

    def _said(self) -> list[str]:
        kinds, lines = {one.kind for one in self.attackers}, []
        if BEYOND in kinds:
            lines.append("* knows more than the promise is about, or believes to")
        if ORIGINAL in kinds:
            lines.append(
                "† what another release of the same records would have told: not for others"
            )
        if self.wrong:
            lines.append(
                f"{many(self.wrong, 'value')} released that the certificate always redacts: this is"
                " not its table"
            )
        lines += [f"not attacked: {many(count, 'secret')}: {why}" for why, count in self.unattacked]
        return [*lines, *self.notes]


_MARKS = {PROMISED: "", BEYOND: " *", ORIGINAL: " †"}


def _number(value: float) -> float | str:
    """Infinity is no JSON."""
    return value if np.isfinite(value) else "infinite"


def _text(value: float) -> str:
    return f"{value:.4f}" if np.isfinite(value) else "infinite"


def merged(attackers: Sequence[Attacker], name: str, kind: str) -> Attacker:
    """Of each secret the largest ratio of several attackers."""
    ratios = np.stack([one.ratios for one in attackers])
    size = np.where(np.isnan(ratios), -1.0, np.abs(ratios))
    best = np.take_along_axis(ratios, size.argmax(axis=0)[np.newaxis], axis=0)[0]
    return Attacker(name, kind, best)
