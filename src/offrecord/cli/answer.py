"""The verb answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from offrecord.cli.parameters import number, offering, whole
from offrecord.cli.printing import Json, show, warned
from offrecord.errors import InputError


@offering()
def answer(
    policy: Annotated[Path, typer.Option(help="Policy file, as published (offrecord design -o).")],
    record: Annotated[
        int,
        typer.Option(parser=whole, metavar="NUMBER", help="Which record is yours, counted from 1."),
    ],
    key_file: Path | None,
    protocol: Annotated[
        str,
        typer.Option(
            help="Your name for what you take part in: the same for the same record, whoever asks."
        ),
    ] = "answer",
    max_epsilon: Annotated[
        float,
        typer.Option(parser=number, metavar="NUMBER", help="The largest ε that you agree to."),
    ] = 3.0,
    mark: Annotated[
        str, typer.Option(help="What to print instead of a value that is withheld.")
    ] = "⊥",
    as_json: Json = False,
) -> None:
    """One record's owner decides alone: its value on standard input, the value or ⊥ on standard
    output.
    """
    from offrecord.mechanisms.answer import answer as answer_one
    from offrecord.mechanisms.answer import value_of
    from offrecord.mechanisms.local_policy import LocalPolicy
    from offrecord.release.keys import Key, default_key_file
    from offrecord.release.ledger import ledger

    published = LocalPolicy.load(policy)
    if mark in map(str, published.problem.chain.labels) or not mark.isprintable():
        raise InputError("--mark must be printable text that is no value of the policy")
    given = sys.stdin.readline().strip()
    if not given:
        raise InputError("give the record's value on standard input")
    value = value_of(published, given)
    own = Key.load_or_new(key_file or default_key_file())
    with ledger(own) as book:  # as it was before
        pass
    shown = answer_one(published, record, value, own, protocol=protocol, max_epsilon=max_epsilon)
    if not book.announced:
        why = "keep it, so that the same question gets the same answer"
        warned(f"made a new key, {own.file}: {why}")
    if not book.complete:
        why = "so nobody knows what was answered before"
        warned(f"the key {own.file} was there without its ledger, {why}")
    content = {"record": record, "released": shown is not None, "value": shown}
    show(as_json, content, mark if shown is None else given)
