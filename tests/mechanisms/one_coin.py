"""Mechanisms of one's own: a local one, and one that brings a third kind of side rule."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from offrecord.mechanisms.base import Mechanism
from offrecord.mechanisms.rules import LocalRule, Pair, SideRule
from offrecord.mechanisms.window import BestWindow


@dataclass(frozen=True, eq=False)
class CoinRule(SideRule):
    """A window of `size` records, and with probability `q` of `more` records beyond it."""

    kind: ClassVar[str] = "coin"
    k: int
    size: int
    more: int
    q: float

    @property
    def reach(self):
        return self.size + self.more

    def outcomes(self, members, place, direction):
        windows = LocalRule.window(self.size, self.k), LocalRule.window(self.reach, self.k)
        shorter, longer = (one.outcomes(members, place, direction) for one in windows)
        return np.concatenate((shorter * (1 - self.q), longer * self.q), axis=1)

    def stop_law(self, members, place, direction):
        law = np.zeros((members.count, self.reach + 1))
        law[:, [self.size, self.reach]] = 1 - self.q, self.q
        return law

    def redacted(self, walks):
        every = np.arange(walks.count)
        goes = walks.coin(every, np.full(walks.count, int(self.q * 2**64), dtype=np.uint64), 0)
        return np.where(goes, self.reach, self.size)

    def to_dict(self):
        return {
            "kind": "coin", "values": self.k, "size": self.size, "more": self.more, "q": self.q
        }  # fmt: skip

    @classmethod
    def from_form(cls, form):
        return cls(form.values, form.size, form.more, form.q)


@dataclass(frozen=True)
class OneCoin(Mechanism):
    """One coin a side: at times the window of the side is longer than it must be."""

    name: ClassVar[str] = "one-coin"
    joins: ClassVar[bool] = True
    more: int = 2
    q: float = 0.5

    def rules(self, mean, setting, epsilon):
        return self.both(BestWindow().rules(mean, setting, epsilon))

    def attempts(self, promise, settings, epsilon, watch):
        for windows in BestWindow().attempts(promise, settings, epsilon, watch):
            yield {setting: self.both(pair) for setting, pair in windows.items()}

    def both(self, pair):
        return Pair(*(None if rule is None else self.longer(rule) for rule in pair))

    def longer(self, window):
        return CoinRule(window.k, window.reach, self.more, self.q)


@dataclass(frozen=True)
class CoinEach(OneCoin):
    """A coin for each record beyond the window instead, which makes local rules."""

    name: ClassVar[str] = "coin-each"
    joins: ClassVar[bool] = False

    def longer(self, window):
        coins = np.full((self.more, window.k), self.q)
        return replace(window, redaction=np.concatenate((window.redaction, coins)))
