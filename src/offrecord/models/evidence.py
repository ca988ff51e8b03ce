"""What tests of a model found, and the words for it: whoever prints a verdict takes these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from offrecord.models.base import Section

_SENSITIVE = 1.3  # times the window that acts, from which on a sensitivity is warned of
_NARROW = 0.75  # of the odds promised: with more counted, the promise holds narrowly
# times the odds at random: 1.48 beside 1.47 was a difference that no remedy could have mended
_MATERIAL = 1.05


class Verdict(Section):
    """What a test of windows on held-back records found, for one ε (plausible chains, section 6).

    verdict: "broken" if the odds counted exceed those promised, "not shown" if too few cases exist
    to see any excess, else "holds". counted: lower 95 % limit of the largest odds found; None if no
    pattern has enough cases. promised: e^ε. visible: the least true odds that these records would
    show as broken in half of all tables; None if there are none. pattern: what was counted, and
    which value it favours. cases: beside the two values. windows: records redacted on each side of
    a record, in each half. order_ratio, time_ratio: windows with the order that AIC chooses, and
    with one more block of time, divided by the windows that act.
    """

    epsilon: float = Field(ge=0)
    verdict: Literal["holds", "not shown", "broken"]
    counted: float | None = Field(default=None, ge=0)
    promised: float = Field(gt=0)
    visible: float | None = Field(default=None, ge=0)
    pattern: str | None = None
    cases: list[int] = Field(default=[])
    windows: list[int] = Field(default=[])
    order_ratio: float | None = Field(default=None, ge=0)
    time_ratio: float | None = Field(default=None, ge=0)

    @property
    def is_narrow(self) -> bool:
        """Whether the promise holds, but the odds counted come near to those promised."""
        near = self.counted is not None and self.counted > _NARROW * self.promised
        return near and self.verdict == "holds"

    def words(self, where: str = "held-back records") -> str:
        """The outcome with its reasons. where: the records that were counted."""
        narrowly = " narrowly" if self.is_narrow else ""
        return f"{self.verdict}{narrowly}: {self.reasons(where)}"

    def reasons(self, where: str = "held-back records") -> str:
        """What was counted, what is promised, and what would have been seen."""
        promised = f"{self.promised:.3g} to 1 is promised"
        if self.counted is None:
            return f"no pattern of {where} occurs often enough to be counted; {promised}"
        if self.visible is None:
            seen = "so few cases would have shown no violation"
        else:
            # `visible` is the median of what shows, and larger violations show more often
            seen = f"a violation from {self.visible:.3g} to 1 on would probably have shown"
        if self.counted <= 1:
            return f"in {where} no pattern favours a value beyond chance; {promised}, and {seen}"
        cases = " and ".join(map(str, self.cases))
        # Not "beyond chance": it is the largest of many limits, each of which allows for chance.
        counted = (
            f"in {where} {self.pattern} most, by odds of at least {self.counted:.3g} to 1"
            f" (95 % limit of {cases} cases)"
        )
        if self.verdict == "broken":
            return f"{counted}, where only {promised}"
        return f"{counted}; {promised}, and {seen}"


def sensitivities(verdicts: Sequence[Verdict]) -> list[str]:
    """What other assumptions would widen windows by, where that is much, at the worst ε."""
    said = []
    for name, what in (
        ("order_ratio", "if records depend on as many before them as AIC prefers"),
        ("time_ratio", "if the next weeks, months or years differ as much as those seen"),
    ):
        ratios = [(getattr(one, name) or 0.0, one.epsilon) for one in verdicts]
        ratio, epsilon = max(ratios, default=(0.0, 0.0))
        if ratio > _SENSITIVE:
            said.append(
                f"{what}, windows would have to be {ratio:,.1f} times as long to keep the"
                f" promise (at ε = {epsilon:g}), and the model does not allow for that"
            )
    return said


class Dependence(Section):
    """Whether records of neighbouring chains say more of each other than their common time does.

    counted: lower limit of the largest odds between a record and the next chain's at the same time,
    all times weighted alike. by_chance: the largest such limit of chains paired at random. alike,
    alike_by_chance: the share of pairs with the same value, of neighbours and at random.
    """

    counted: float = Field(ge=0)
    by_chance: float = Field(ge=0)
    alike: float = Field(ge=0, le=1)
    alike_by_chance: float = Field(ge=0, le=1)

    @property
    def exists(self) -> bool:
        """Whether neighbours depend on each other beyond what they share with all chains."""
        return self.counted > max(_MATERIAL * self.by_chance, 1.0)

    @property
    def words(self) -> str:
        """What was counted, and what chance shows."""
        return (
            f"{self.alike:.0%} of records have the value of the next chain at the same time,"
            f" {self.alike_by_chance:.0%} that of a random one (odds of at least"
            f" {self.counted:.3g} to 1; at random {self.by_chance:.3g})"
        ).replace("%", " %")

    @property
    def warning(self) -> str:
        """What a person should know, and do."""
        return (
            f"the ids leak values, or neighbouring chains depend on each other: {self.words};"
            f" {REMEDY}"
        )


#: What helps where neighbouring chains depend on each other.
REMEDY = (
    "if ids follow the values, replace them by random ones; if neighbours belong together, as in a"
    " household, make each group one chain (docs/fitting.md shows how)"
)


def lone_counts(count: int) -> str:
    """What is said of published counts that one chain alone gives; "" for none."""
    if count == 0:
        return ""
    which = "1 of the counts comes" if count == 1 else f"{count:,} of the counts come"
    return (
        f"; {which} from a single chain and shows what that chain did: if it is about a person who"
        " may be known, learn fewer values (--merge) or from more chains"
    )
