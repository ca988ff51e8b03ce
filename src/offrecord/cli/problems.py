"""The verbs about a chain without a table: design, compare."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

import offrecord as off
from offrecord.cli.files import check_all_apart
from offrecord.cli.parameters import number, numbered, offering, outgoing, whole
from offrecord.cli.printing import Json, bar, show
from offrecord.errors import InputError
from offrecord.files import check_writable, write_text
from offrecord.mechanisms import MECHANISMS
from offrecord.text import many

if TYPE_CHECKING:
    from offrecord.mechanisms.rules import Setting
    from offrecord.models.promise import Promise

_ALPHA = "P(0→1) of a chain with two values, in (0, 1]."
_PRIVATE = "Private records, counted from 1: 3,7 or 10-12."
_SPLIT = "3R: the left side's share of ε: best, even, or a number from 0 to 1."

_Split = Annotated[str | None, Option(help=_SPLIT)]


@dataclass(frozen=True, kw_only=True)
class _Described:
    """A problem as a person describes it; the fields are parameters of the verbs."""

    epsilon: float
    protect: str
    exact_model: bool
    n: Annotated[
        int | None, Option("--n", parser=whole, metavar="COUNT", help="Number of records.")
    ] = None
    private: Annotated[str | None, Option(help=_PRIVATE)] = None
    alpha: Annotated[float | None, numbered("NUMBER", _ALPHA, number)] = None
    beta: Annotated[float | None, numbered("NUMBER", "P(1→0), in (0, 1].", number)] = None
    model: Annotated[Path | None, Option(help="Model file, instead of --alpha and --beta.")] = None

    def problem(self) -> off.Problem:
        """The problem; InputError for a description that is wrong."""

        from offrecord.theory.problem import listed_records

        if self.n is None or self.private is None:
            raise InputError("give --n and --private")
        chain, models = self._chain()
        private = listed_records(self.private, self.n)
        return off.Problem(chain, self.n, private, self.epsilon, self.protect, models=models)

    def _chain(self) -> tuple[off.MarkovChain, Promise | None]:
        # The chain that utility is computed under, and the chains that leakage is judged over; None
        # for the chain alone.

        if self.model is None:
            if self.alpha is None or self.beta is None:
                raise InputError("give --alpha and --beta, or --model FILE")
            return off.MarkovChain.binary(self.alpha, self.beta), None
        if self.alpha is not None or self.beta is not None:
            raise InputError("give either --model or --alpha and --beta, not both")
        promise = off.load_model(self.model).promise
        return promise.chain, None if self.exact_model else promise


def _split(text: str | None) -> dict[str, Any]:
    # The `split` argument of the 3R mechanisms.
    if text is None:
        return {}
    try:
        return {"split": float(text)}
    except ValueError:
        return {"split": text}


#: What only a chain without a table has.
_ONE_CHAIN = ("n", "private", "alpha", "beta")


@offering(_Described)
def design(
    force: bool,
    table: Annotated[
        bool,
        Option(
            "--table",
            help="Rules for every setting of a table, which redact --policy takes; needs --model"
            " and --output.",
        ),
    ] = False,
    mechanism: Annotated[
        str, Option(help=f"{', '.join(MECHANISMS[:-1])} or {MECHANISMS[-1]}.")
    ] = "best-local",
    split: _Split = None,
    output: Annotated[Path | None, outgoing("Save the policy here (JSON).")] = None,
    as_json: Json = False,
    **described: Any,
) -> None:
    """Regions, redaction probabilities, exact leakage and utility for a chain; no data needed."""

    chosen = off.mechanism_named(mechanism, **_split(split))
    # before the design, which may take minutes
    if output is not None:
        check_writable(output, force=force)
    policy: off.Policy | off.TablePolicy
    if table:
        policy = _of_table(chosen, described, output)
        content = {name: it for name, it in policy.to_dict().items() if name != "rules"}
        show(as_json, content, _shown(policy))
    else:
        policy = _of_chain(chosen, described)
        show(as_json, policy.summary(), policy)
    sys.stdout.flush()  # if nobody can read it, nothing is saved either
    if output is not None:
        policy.save(output, force=force)


def _of_chain(mechanism: off.Mechanism, described: dict[str, Any]) -> off.Policy:

    problem = _Described(**described).problem()
    with bar("designing", None):
        return off.design(problem, mechanism)


def _of_table(
    mechanism: off.Mechanism, described: dict[str, Any], output: Path | None
) -> off.TablePolicy:
    from offrecord.mechanisms.design_table import design_table

    _check_of_table(described, output)
    promise = off.load_model(described["model"]).promise
    if described["exact_model"] and isinstance(promise, off.Posterior):
        promise = off.KnownChains([promise.chain])
    epsilon, protect = described["epsilon"], described["protect"]
    return design_table(mechanism, promise, epsilon, protect, _settings(promise), bar)


def _settings(promise: Promise) -> list[Setting]:
    from offrecord.mechanisms.rules import SETTINGS, Setting

    places = range(promise.mean.place_count)
    return [Setting(kind, place) for kind in SETTINGS for place in places]


def _check_of_table(described: dict[str, Any], output: Path | None) -> None:
    given = [name for name in _ONE_CHAIN if described[name] is not None]
    if given:
        raise InputError(f"--{given[0]} is for one chain without a table: leave --table out")
    if described["model"] is None or output is None:
        raise InputError("--table needs --model FILE and --output FILE")


def _shown(policy: off.TablePolicy) -> str:
    lines = [f"{policy.mechanism}: rules for {len(policy.rules)} settings, ε = {policy.epsilon:g}"]
    if policy.validation is not None:
        found = policy.validation
        lines.append(f"{many(found.drawn, 'chain')} judged: {found.above:,} exceed ε")
    return "\n".join(lines)


@offering(_Described)
def compare(
    epsilon: Annotated[
        str, Option(help="Privacy budgets: 0.1,0.5,1 or from:to:count such as 0.1:3:30.")
    ],
    force: bool,
    mechanism: Annotated[
        str | None, Option(help="Mechanisms to compare, by comma; all without it.")
    ] = None,
    split: _Split = None,
    csv: Annotated[Path | None, Option(help="Write the table here.")] = None,
    picture: Annotated[Path | None, Option(help="Draw it here: .svg, .png or .html.")] = None,
    as_json: Json = False,
    **described: Any,
) -> None:
    """Mechanisms side by side over a range of ε, for a chain: as a table, CSV or picture."""
    from offrecord.theory.problem import budget

    epsilons = [budget(value) for value in _epsilons(epsilon)]
    chosen = mechanism.split(",") if mechanism else None
    _check_files(csv, picture, force=force)  # before all designs are made
    problem = _Described(epsilon=epsilons[0], **described).problem()
    found = off.compare(problem, chosen, epsilons=epsilons, **_split(split), progress=bar)
    if csv is not None:
        write_text(csv, found.csv(), force=force)
    if picture is not None:
        found.chart().write(picture, force=force)
    show(as_json, {"n": problem.n, "private": problem.private, "results": found.rows}, found)


def _check_files(csv: Path | None, picture: Path | None, *, force: bool) -> None:
    from offrecord.charts import check_picture

    if csv is not None:
        check_writable(csv, force=force)
    if picture is not None:
        check_picture(picture, force=force)
    check_all_apart({"--csv": csv, "--picture": picture}, {})


def _epsilons(text: str) -> list[float]:
    try:
        return _spaced(*text.split(":")) if ":" in text else [float(one) for one in text.split(",")]
    except (ValueError, TypeError):
        raise InputError(
            "--epsilon must be numbers such as 0.1,0.5,1 or from:to:count such as 0.1:3:30, with 2"
            f" to 10,000 values from low to high, got {text!r}"
        ) from None


def _spaced(low: str, high: str, count: str) -> list[float]:
    start, stop, steps = float(low), float(high), int(count)
    if not (2 <= steps <= 10_000 and 0 <= start < stop < math.inf):
        raise ValueError(count)
    return [start + (stop - start) * i / (steps - 1) for i in range(steps)]
