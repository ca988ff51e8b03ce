"""The verbs about a key: key, ledger, answer."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

import offrecord as off
from offrecord.cli.parameters import number, numbered, offering
from offrecord.cli.printing import Json, show, warned
from offrecord.errors import InputError
from offrecord.tables.options import NEVER_PUBLISHED
from offrecord.text import aligned, many, plain

if TYPE_CHECKING:
    from offrecord.release.ledger import Ledger

_DIGEST, _DIGITS = re.compile("[0-9a-f]{32,}"), 12  # of which a person sees so many digits


@offering()
def ledger(
    action: Annotated[
        str,
        Argument(
            metavar="list|show|forget",
            help="The data sets of a key, the releases of one of them, or take one back.",
        ),
    ],
    key_file: Path | None,
    name: Annotated[
        str | None, Argument(metavar="DATASET", help="Which data set to show or forget.")
    ] = None,
    release: Annotated[
        str | None,
        Option(
            metavar="NUMBERS",
            help="Which releases to forget, as show counts them: 2 or 1,3 or: all.",
        ),
    ] = None,
    because: Annotated[
        str | None, Option(help=f'Forget needs these words: "{NEVER_PUBLISHED}".', metavar="WORDS")
    ] = None,
    as_json: Json = False,
) -> None:
    """What was released with a key: list data sets, show the releases of one, or forget one that
    was never published.
    """
    from offrecord.release.keys import default_key_file
    from offrecord.release.ledger import Ledger
    from offrecord.release.ledger import ledger as locked

    _check_action(action, name)
    if action != "forget" and (release, because) != (None, None):
        raise InputError(f"--release and --because are for ledger forget, not for {action}")
    key = off.Key.load(key_file or default_key_file())
    if name is None:
        content, text = _listed(Ledger.read(key))
    elif action == "show":
        content, text = _shown(Ledger.read(key), name)
    else:
        with locked(key) as book:
            content, text = _forgotten(book, name, release, because)
    show(as_json, content, text)


def _check_action(action: str, name: str | None) -> None:
    if action not in ("list", "show", "forget"):
        raise InputError(f"ledger takes list, show or forget, got {action!r}")
    if (name is None) != (action == "list"):
        expects = "no data set" if action == "list" else "the name of a data set"
        raise InputError(f"ledger {action} takes {expects}, got {name or 'none'}")


_Shown = tuple[dict[str, Any], str]  #: what --json prints, and what people read


def _listed(book: Ledger) -> _Shown:
    if not book.complete:
        warned(f"{book.key.file} was there without its ledger: earlier releases are not known")
    datasets = [_dataset(book, name) for name in sorted({*book.releases, *book.forgotten})]
    answered = {name: len(records) for name, records in book.answers.items()}
    protocols = [{"protocol": name, "records": count} for name, count in answered.items()]
    content = {"complete": book.complete, "datasets": datasets, "protocols": protocols}
    said = [_as_table(datasets) if datasets else "nothing was released with this key"]
    said += [
        f"{plain(one)}: answered for {many(count, 'record')}" for one, count in answered.items()
    ]
    return _of_key(book) | content, "\n".join(said)


def _as_table(datasets: list[dict[str, Any]]) -> str:
    rows = [[str(cell or "–") for cell in one.values()] for one in datasets]
    return aligned([["data set", "releases", "forgotten", "last"], *rows])


def _dataset(book: Ledger, name: str) -> dict[str, Any]:
    from offrecord.release.ledger import ENTERED

    releases = book.releases.get(name, [])
    return {
        "dataset": name,
        "releases": len(releases),
        "forgotten": len(book.forgotten.get(name, [])),
        "last": max((one.get(ENTERED, "") for one in releases), default="") or None,
    }


def _of_key(book: Ledger) -> dict[str, Any]:
    return {"key": book.key.id, "file": str(book.key.ledger_file)}


def _shown(book: Ledger, name: str) -> _Shown:
    from offrecord.release.ledger import ENTERED

    _check_known(book, name)
    releases, forgotten = book.releases.get(name, []), book.forgotten.get(name, [])
    content = {"dataset": name, "releases": releases, "forgotten": forgotten}
    entries = [*releases, *forgotten]
    names = list(dict.fromkeys([ENTERED, *(one for entry in entries for one in entry)]))
    head = _numbered(len(releases), len(forgotten))
    rows = [[one, *(_short(entry.get(one, "–")) for entry in entries)] for one in names]
    return _of_key(book) | content, aligned([["release", *head], *rows])


def _numbered(releases: int, forgotten: int) -> list[str]:
    return [*map(str, range(1, releases + 1)), *["forgotten"] * forgotten]


def _forgotten(book: Ledger, name: str, release: str | None, because: str | None) -> _Shown:
    _check_known(book, name)
    count = len(book.releases.get(name, []))
    which = _which(release, count, name)
    if because != NEVER_PUBLISHED:
        raise InputError(
            "a release that was published and is forgotten lets a second, different one out, and"
            f" together they may leak more than ε: if nobody has ever seen it, --because"
            f' "{NEVER_PUBLISHED}"'
        )
    book.forget(name, which)
    left = count - len(which)
    content = {"dataset": name, "forgotten": len(which), "releases": left}
    return content, f"forgot {many(len(which), 'release')} of {name!r}; {left:,} left"


def _check_known(book: Ledger, name: str) -> None:
    known = sorted({*book.releases, *book.forgotten})
    if name not in known:
        has = f"it has {', '.join(known[:8])}" if known else "it is empty"
        raise InputError(f"{book.key.ledger_file} has no data set {name!r}; {has}")


def _which(release: str | None, count: int, name: str) -> set[int]:
    # Which releases are meant, counted from 0.
    if count == 0:
        raise InputError(f"the ledger knows no release of {name!r} that is not forgotten")
    if release is None and count > 1:
        raise InputError(
            f"{name!r} has had {count} releases: say --release 1 to {count}, as offrecord ledger"
            " show counts them, or all"
        )
    if release is None or release == "all":
        return set(range(count))
    try:
        which = {int(part) - 1 for part in release.split(",")}
    except ValueError:
        which = {-1}
    if not which <= set(range(count)):
        raise InputError(f"--release must be numbers from 1 to {count}, or all, got {release!r}")
    return which


def _short(text: str) -> str:
    # A digest as a person compares it, with the count behind it; other text as it is.
    digest, colon, more = text.partition(":")
    return f"{digest[:_DIGITS]}…{colon}{more}" if _DIGEST.fullmatch(digest) else text


@offering()
def key(
    action: Annotated[
        str, Argument(metavar="new|show-id", help="Make a key, or show the public id of one.")
    ],
    key_file: Path | None,
    as_json: Json = False,
) -> None:
    """Make a key, or show its public id."""
    from offrecord.release.keys import default_key_file

    file = key_file or default_key_file()
    if action not in ("new", "show-id"):
        raise InputError(f"key takes new or show-id, got {action!r}")
    found = off.Key.new(file) if action == "new" else off.Key.load(file)
    if action == "new":
        warned(f"made {file}: keep it secret, and keep it; a re-release needs the same key")
    show(as_json, {"id": found.id, "file": str(file)}, found.id)


@offering()
def answer(
    policy: Annotated[Path, Option(help="Policy file, as published (offrecord design -o).")],
    record: Annotated[int, numbered("NUMBER", "Which record is yours, counted from 1.")],
    key_file: Path | None,
    protocol: Annotated[
        str,
        Option(
            help="Your name for what you take part in: the same for the same record, whoever asks."
        ),
    ] = "answer",
    max_epsilon: Annotated[
        float, numbered("NUMBER", "The largest ε that you agree to.", number)
    ] = 3.0,
    mark: Annotated[str, Option(help="What to print instead of a value that is withheld.")] = "⊥",
    as_json: Json = False,
) -> None:
    """One record's owner decides alone: its value on standard input, the value or ⊥ on standard
    output.
    """
    from offrecord.mechanisms.answer import value_of
    from offrecord.release.keys import default_key_file
    from offrecord.release.ledger import ledger

    published = off.LocalPolicy.load(policy)
    _check_mark(mark, published)
    given = _given()
    value = value_of(published, given)
    own = off.Key.load_or_new(key_file or default_key_file())
    with ledger(own) as book:  # as it was before
        pass
    shown = off.answer(published, record, value, own, protocol=protocol, max_epsilon=max_epsilon)
    _warn_of(book)
    content = {"record": record, "released": shown is not None, "value": shown}
    show(as_json, content, mark if shown is None else given)


def _check_mark(mark: str, policy: off.LocalPolicy) -> None:
    if mark in map(str, policy.problem.chain.labels) or not mark.isprintable():
        raise InputError("--mark must be printable text that is no value of the policy")


def _given() -> str:
    given = sys.stdin.readline().strip()  # `echo` ends its text with a line end
    if not given:
        raise InputError("give the record's value on standard input")
    return given


def _warn_of(book: Ledger) -> None:
    file = book.key.file
    if not book.announced:
        warned(f"made a new key, {file}: keep it, so that the same question gets the same answer")
    if not book.complete:
        why = "so nobody knows what was answered before"
        warned(f"the key {file} was there without its ledger, {why}")
