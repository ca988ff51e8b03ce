"""Courses: the ways in which a walk of the owner's mechanism may have gone, each as factors of the
values that it met.

Whoever knows the certificate knows the thresholds. Given the value x that a walk leads away from
and the far value, how likely it went on is a product over levels of what the values there (and at
the next level) say; so is how likely it stopped. Beyond the chain's end values are drawn by the
mechanism's own kernel, whatever chain an attacker believes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from offrecord.mechanisms.owner.designing.repair import kept_shares, stopped_shares
from offrecord.models.base import Floats, Integers
from offrecord.release.coins import Draws


@dataclass(eq=False)
class Course:
    """One way that a walk may have gone.

    fars: (f,) the far values that it may have looked up. here: by distance (f, x, i) factors of the
    value there. across: by two distances (f, x, i, j) factors of the values at both. check: the
    distance at which the far value stands, if it is one of the values that are summed over.
    """

    fars: Integers
    here: dict[int, Floats] = field(default_factory=dict)
    across: dict[tuple[int, int], Floats] = field(default_factory=dict)
    check: int | None = None

    def times(self, distance: int, factors: Floats) -> None:
        """One more factor of the value at a distance."""
        self.here[distance] = self.here.get(distance, 1.0) * factors


@dataclass(frozen=True)
class Ground:
    """Where a walk leads. room: how many records (tuples) lie there before the next cluster or the
    chain's end. far, end: the values at the deadline and at the chain's end, where these are
    released beyond what is summed over; None if they are not.
    """

    room: int
    far: int | None = None
    end: int | None = None


@dataclass(frozen=True, eq=False)
class Walker:
    """One side of a menu, or the first of a pair.

    levels: its distances. kept: (l, level, x, i, 1 or j) how likely it goes on. parts: (…, label)
    how likely it stops, by label. is_endless: it goes on beyond the chain's end for the sake of its
    label. hop: (steps) → (k, k) how values are drawn beyond the chain's end, so many steps on.
    """

    levels: tuple[int, ...]
    kept: Floats
    parts: Floats
    is_endless: bool
    hop: Callable[[int], Floats]

    @classmethod
    def of(
        cls, levels: Integers, limits: Draws, hop: Callable[[int], Floats], is_endless: bool = False
    ) -> Walker:
        """limits: (l, level, x, i, 1 or j, label) thresholds."""
        shares = stopped_shares(limits)
        parts = np.diff(shares, axis=-1, prepend=0.0)
        return cls(tuple(levels.tolist()), kept_shares(limits[..., -1]), parts, is_endless, hop)

    @property
    def deadline(self) -> int:
        """Where it stops at the latest."""
        return self.levels[-1]

    @property
    def k(self) -> int:
        """How many values it tells apart."""
        return len(self.kept)

    @property
    def labels(self) -> int:
        """How many labels stops before the deadline have."""
        return int(self.parts.shape[-1])

    @property
    def looks_ahead(self) -> bool:
        """It sees the value at the next level."""
        return bool(self.kept.shape[-1] > 1)

    def after(self, distance: int) -> int:
        """The first level beyond a distance; that itself if there is none."""
        return next((level for level in self.levels if level > distance), distance)

    def kept_to(self, limit: int, ground: Ground) -> Course:
        """That it did not stop up to a limit before its deadline."""
        course = self._begun(ground)
        for number, level in enumerate(self.levels[:-1]):
            if level <= limit:
                self._add(course, number, self.kept[:, number], ground)
        if not course.here and not course.across:  # whatever the far value is
            return Course(course.fars[:1])
        return self._ended(course, ground)

    def stopped_at(self, stop: int | None, ground: Ground) -> Iterator[tuple[int, Course]]:
        """That it stopped at a level, or nowhere before the chain's end (None): by label, which is
        one for each far value, after all others, at the deadline.
        """
        if stop is None:
            yield from self._passed_the_end(ground)
        elif stop == self.deadline:
            for far in range(self.k):
                course = self._begun(ground, only=far)
                if len(course.fars):
                    for number in range(len(self.levels) - 1):
                        self._add(course, number, self.kept[:, number], ground)
                    yield self.labels + far, self._ended(course, ground)
        else:
            at = self.levels.index(stop)
            for label in range(self.labels):
                course = self._begun(ground)
                for number in range(at):
                    self._add(course, number, self.kept[:, number], ground)
                self._add(course, at, self.parts[:, at, ..., label], ground)
                yield label, self._ended(course, ground)

    def _begun(self, ground: Ground, only: int | None = None) -> Course:
        fars = np.arange(self.k) if ground.far is None else np.array([ground.far])
        if only is not None:
            fars = fars[fars == only]
        return Course(fars)

    def _add(self, course: Course, number: int, factors: Floats, ground: Ground) -> None:
        """factors: (l, x, i, 1 or j) of a level."""
        level, after = self.levels[number], self.levels[number + 1]
        factors = factors[course.fars]
        if not self.looks_ahead:
            course.times(level, factors[..., 0])
        elif after <= ground.room:
            course.across[level, after] = factors
        else:  # what comes next is drawn together with the far value
            near, far = self.hop(after - ground.room), self.hop(self.deadline - after)
            both = near[:, :, np.newaxis] * far[:, course.fars]  # (end, j, f)
            drawn = np.einsum("fxij,ejf->fxie", factors, both)
            self._at_end(course, level, drawn, ground)
            course.check = ground.room + 1  # the far value is in it

    @staticmethod
    def _at_end(course: Course, level: int, factors: Floats, ground: Ground) -> None:
        """factors: (f, x, i, e) of the values at a level and at the chain's end."""
        if ground.end is not None:
            course.times(level, factors[..., ground.end])
        elif level == ground.room:
            course.times(level, np.einsum("fxii->fxi", factors))
        else:
            course.across[level, ground.room] = factors

    def _ended(self, course: Course, ground: Ground) -> Course:
        """With where the far value comes from."""
        if self.deadline <= ground.room:
            if ground.far is None:
                course.check = self.deadline
            return course
        if course.check is None:
            law = self.hop(self.deadline - ground.room)[:, course.fars].T  # (f, e)
            law = law[:, np.newaxis, :] * np.ones((1, self.k, 1))
            if ground.end is None:
                course.times(ground.room, law)
            else:
                course.times(0, np.repeat(law[..., [ground.end]], self.k, axis=2))
        course.check = None
        return course

    def _passed_the_end(self, ground: Ground) -> Iterator[tuple[int, Course]]:
        """That nothing is released up to the chain's end."""
        inside = [level for level in self.levels[:-1] if level <= ground.room]
        if not self.is_endless:
            yield 0, self.kept_to(ground.room, ground)
            return
        tails = self._tails(len(inside), ground.room)
        for label in range(self.labels + self.k):
            course = self._begun(ground)
            last = len(inside) - 1 if self.looks_ahead and inside else len(inside)
            for number in range(last):
                self._add(course, number, self.kept[:, number], ground)
            if last < len(inside):
                self._at_end(course, inside[-1], tails[label], ground)
            else:
                course.times(ground.room, tails[label][:, :, 0])
            yield label, course

    def _tails(self, inside: int, room: int) -> Floats:
        """(label, l, x, i or 1, e) how likely a walk that goes on beyond the chain's end ends with
        each label and far value, by the value at the last level before it, if that counts, and by
        that at the end.
        """
        k, labels, levels = self.k, self.labels, self.levels
        first = self.hop(levels[inside] - room)  # (e, j)
        going = np.broadcast_to(first, (k, k, 1, k, k))  # (l, x, i, e, j)
        if self.looks_ahead and inside:
            kept = self.kept[:, inside - 1]  # (l, x, i, j)
            going = kept[:, :, :, np.newaxis, :] * first
        found = np.zeros((labels + k, *going.shape[:-1]))
        for number in range(inside, len(levels) - 1):
            after = levels[number + 1]
            step = going[..., np.newaxis] * self.hop(after - levels[number])  # (…, j, j')
            far = self.hop(self.deadline - after).T[:, np.newaxis, np.newaxis, np.newaxis]
            for label in range(labels):
                part = self.parts[:, number, ..., label][:, :, np.newaxis, np.newaxis]
                stopped = (step * part).sum(axis=-2)
                found[label] += (stopped * far).sum(axis=-1)
            going = (step * self.kept[:, number][:, :, np.newaxis, np.newaxis]).sum(axis=-2)
        for far_value in range(k):
            found[labels + far_value, far_value] = going[far_value, ..., far_value]
        return found
