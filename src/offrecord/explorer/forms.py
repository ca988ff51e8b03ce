"""What is answered: the forms of the JSON API."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

#: Infinity is no JSON.
Number = float | Literal["inf"]


class Form(BaseModel):
    """An answer, or a part of one."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Span(Form):
    """Records from first to last, counted from 1."""

    first: int
    last: int


# ---- what a record tells


class Influence(Form):
    """How much a record with a value tells about the secret; what is infinite is left out."""

    record: int
    side: Literal["left", "right"]
    value: str
    influence: float


class Band(Form):
    """Neighbouring records of one region, half a record beyond either end."""

    begin: float
    end: float
    region: Literal["L", "M", "S"]


class Level(Form):
    """The budget, as the picture names it."""

    level: float
    name: str


class Copies(Form):
    """The same question elsewhere."""

    design: str = Field(description="A command that prints the same numbers.")
    compare: str = Field(description="A command that prints the utility of all mechanisms.")
    python: str


class Regions(Form):
    """What the model says of the records around a secret, whatever the mechanism."""

    question: str
    notes: list[str]
    labels: list[str]
    epsilon: float = Field(description="What designs are made for: of a calibrated model less.")
    secrets: list[str]
    about: int = Field(description="Which secret this is about, counted from 1.")
    secret: Span
    shown: Span = Field(description="The records around the secret that are listed.")
    influence: list[Influence]
    regions: list[Band]
    threshold: list[Level]
    budgets: list[list[float]] = Field(
        description="Where the curves over ε are drawn, in the order in which to ask for them."
    )
    copies: Copies


# ---- what a mechanism does


class Profile(Form):
    """A probability of a record: that it is redacted, by value, or that releasing begins there."""

    record: int
    series: str
    probability: float


class Record(Form):
    """A record of a sample; released is null where it leaves empty."""

    record: int
    value: str
    released: str | None
    private: bool


class Belief(Form):
    """How likely a value of the secret's first record is, before and after the release."""

    value: str
    prior: float
    posterior: float | None
    was: bool = Field(description="It is the sample's own value.")


class Sample(Form):
    """A sample release, and what it tells whoever sees it."""

    records: list[Record]
    redacted: int = Field(description="Of all n records.")
    beliefs: list[Belief]
    ratio: Number | None = Field(
        description="Size of the log-ratio of what is shown under two values of the secret."
    )
    words: str


class Policy(Form):
    """What a mechanism does for a state: what it releases and tells, and a sample."""

    mechanism: str
    kind: str
    epsilon: float
    utility: float
    utility_bound: float | None
    leakage: Number
    leakage_is_exact: bool
    leakage_method: str
    within: bool = Field(description="Proven to be within ε, rounding included.")
    worst_output: str
    profile: list[Profile]
    sample: Sample
    final: bool = Field(description="Not a first answer, to which a better one is to be had.")


class Point(Form):
    """Utility of a mechanism at a budget."""

    epsilon: float
    mechanism: str
    utility: float
    leakage: Number


class Curve(Form):
    """Points of a mechanism's curve."""

    points: list[Point]


# ---- what is wrong


class Wrong(Form):
    """What is wrong with a field; null: with all of them together."""

    field: str | None
    message: str


class Refusal(Form):
    """Why a question has no answer."""

    errors: list[Wrong]
