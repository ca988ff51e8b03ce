"""The verb design."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offrecord.cli.chains import Described, Split, split_of
from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, bar, busy, show
from offrecord.errors import InputError
from offrecord.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from offrecord.mechanisms.base import Mechanism, Policy
    from offrecord.mechanisms.table_policy import TablePolicy

#: What only a chain without a table has.
_ONE_CHAIN = ("n", "private", "alpha", "beta")


@offering(Described)
def design(
    force: bool,
    table: Annotated[
        bool,
        typer.Option(
            "--table",
            help="Rules for every setting of a table, which redact --policy takes; needs --model"
            " and --output.",
        ),
    ] = False,
    mechanism: Annotated[
        str,
        typer.Option(help=f"{', '.join(MECHANISMS[:-1])} or {MECHANISMS[-1]}."),
    ] = "best-local",
    split: Split = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save the policy here (JSON).")
    ] = None,
    as_json: Json = False,
    **described: Any,
) -> None:
    """Regions, redaction probabilities, exact leakage and utility for a chain; no data needed."""
    from offrecord.files import check_writable
    from offrecord.mechanisms import mechanism_named

    chosen = mechanism_named(mechanism, **split_of(split))
    if output is not None:
        check_writable(output, force=force)
    policy: Policy | TablePolicy
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


def _of_chain(mechanism: Mechanism, described: dict[str, Any]) -> Policy:
    from offrecord.mechanisms import design as design_policy

    problem = Described(**described).problem()
    with busy("designing"):
        return design_policy(problem, mechanism)


def _of_table(mechanism: Mechanism, described: dict[str, Any], output: Path | None) -> TablePolicy:
    """The rules of every setting at every place of a model."""
    from offrecord.mechanisms.design_table import design_table
    from offrecord.mechanisms.rules import SETTINGS, Setting
    from offrecord.models.file import load_model
    from offrecord.models.posterior import Posterior
    from offrecord.models.promise import KnownChains

    given = [name for name in _ONE_CHAIN if described[name] is not None]
    if given:
        raise InputError(f"--{given[0]} is for one chain without a table: leave --table out")
    if described["model"] is None or output is None:
        raise InputError("--table needs --model FILE and --output FILE")
    promise = load_model(described["model"]).promise
    if described["exact_model"] and isinstance(promise, Posterior):
        promise = KnownChains([promise.chain])
    places = range(promise.mean.place_count)
    settings = [Setting(kind, place) for kind in SETTINGS for place in places]
    epsilon, protect = described["epsilon"], described["protect"]
    return design_table(mechanism, promise, epsilon, protect, settings, bar)


def _shown(policy: TablePolicy) -> str:
    """A policy in two lines."""
    from offrecord.text import many

    lines = [f"{policy.mechanism}: rules for {len(policy.rules)} settings, ε = {policy.epsilon:g}"]
    if policy.validation is not None:
        found = policy.validation
        lines.append(f"{many(found.drawn, 'chain')} judged: {found.above:,} exceed ε")
    return "\n".join(lines)
